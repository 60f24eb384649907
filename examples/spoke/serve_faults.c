/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The methods of spoke serve, and injected faults. A request that is not answered at once is a
 * struct later in a list. It is removed when its delay ends, or when its caller is gone. A request
 * that is never answered has no delay.
 */
#include "examples/spoke/serve_faults.h"

#include <spoke/host.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define SLEEP_MAX_MS 3600000u

enum what {
	ANSWER_ECHO,
	ANSWER_FAIL,
};

struct later {
	struct later *next;
	struct later **link; /* the pointer to this struct */
	struct faults *faults;
	struct spoke_alarm alarm;
	struct spoke_request *request;
	enum what what;
	bool never; /* it has no delay */
};

/* --- answers */

static void answer_echo(struct spoke_request *request)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_span all = spoke_cursor_rest(&args);
	size_t count = spoke_request_arg_count(request);
	struct spoke_value value = { NULL, 0 };
	struct spoke_builder builder;
	int error;

	if (count <= 1) {
		if (!spoke_cursor_next(&args, &value))
			value = (struct spoke_value){ NULL, 0 };
		spoke_reply(request, value);
		return;
	}
	spoke_builder_init(&builder, spoke_host_env(), NULL);
	spoke_pack_array(&builder, count);
	spoke_pack_raw(&builder, all);
	error = spoke_builder_finish_value(&builder, &value);
	if (error)
		spoke_reply_error(request, 1, "%s", spoke_strerror(error));
	else
		spoke_reply(request, value);
	spoke_builder_fini(&builder);
}

static void answer_fail(struct spoke_request *request)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value;
	struct spoke_span reason;
	char text[512] = "error requested by the caller";
	int32_t code = 1;

	if (spoke_cursor_next(&args, &value) && spoke_value_i32(value, &code))
		code = 1;
	if (spoke_cursor_next(&args, &value) && !spoke_value_str(value, &reason))
		(void)snprintf(text, sizeof(text), "%.*s", (int)reason.len,
			       (const char *)reason.data);
	spoke_reply_error(request, code, "%s", text);
}

static void answer(struct spoke_request *request, enum what what)
{
	if (what == ANSWER_FAIL)
		answer_fail(request);
	else
		answer_echo(request);
}

/* --- delayed answers */

static void drop_later(struct later *later)
{
	(void)spoke_alarm_cancel(&later->alarm);
	*later->link = later->next;
	if (later->next)
		later->next->link = later->link;
	free(later);
}

static void later_due(struct spoke_alarm *alarm)
{
	struct later *later = spoke_container_of(alarm, struct later, alarm);
	struct spoke_request *request = later->request;
	enum what what = later->what;

	drop_later(later);
	answer(request, what);
}

/* The caller is gone: the reply is not sent, but ends the request. */
static void later_abandoned(struct spoke_request *request, void *arg)
{
	drop_later(arg);
	spoke_reply_error(request, 1, "abandoned");
}

/* Answers after the delay; UINT64_MAX: never. */
static void answer_later(struct faults *faults, struct spoke_request *request, enum what what,
			 uint64_t delay_ns)
{
	struct later *later = calloc(1, sizeof(*later));
	int error = later ? spoke_request_keep(request) : SPOKE_ENOMEM;

	if (!error && delay_ns != UINT64_MAX)
		error = spoke_alarm_after(faults->engine, &later->alarm, delay_ns, later_due);
	if (error) {
		free(later);
		spoke_reply_error(request, 1, "%s", spoke_strerror(error));
		return;
	}
	later->faults = faults;
	later->request = request;
	later->what = what;
	later->never = delay_ns == UINT64_MAX;
	later->next = faults->laters;
	later->link = &faults->laters;
	if (later->next)
		later->next->link = &later->next;
	faults->laters = later;
	spoke_request_on_abandoned(request, later_abandoned, later);
}

/* --- faults */

/* Returns a random number in [0, 1). */
static double roll(struct faults *faults)
{
	faults->random = faults->random * UINT64_C(6364136223846793005) +
			 UINT64_C(1442695040888963407);
	return (double)(faults->random >> 11) / 9007199254740992.0;
}

/* Stops the process: its kernel still accepts connections, but nothing is read or answered. */
static void freeze(void)
{
	(void)fprintf(stderr, "spoke serve: freezing now; SIGCONT resumes\n");
	(void)raise(SIGSTOP);
}

static void freeze_due(struct spoke_alarm *alarm)
{
	(void)alarm;
	freeze();
}

static void serve(struct faults *faults, struct spoke_request *request, enum what what,
		  uint64_t delay_ns)
{
	if (++faults->requests == faults->freeze_requests)
		freeze();
	if (faults->drop_share > 0 && roll(faults) < faults->drop_share)
		delay_ns = UINT64_MAX;
	else if (delay_ns != UINT64_MAX)
		delay_ns += faults->delay_ns;
	if (delay_ns)
		answer_later(faults, request, what, delay_ns);
	else
		answer(request, what);
}

/* Ends the requests that are never answered, so that the drain can finish. */
static void let_go(struct faults *faults)
{
	struct later *next;

	for (struct later *later = faults->laters; later; later = next) {
		struct spoke_request *request = later->request;

		next = later->next;
		if (!later->never)
			continue;
		drop_later(later);
		spoke_reply_error(request, 1, "the provider is shutting down");
	}
}

static void term_came(struct spoke_signal *signal)
{
	let_go(spoke_container_of(signal, struct faults, terms));
}

static void int_came(struct spoke_signal *signal)
{
	let_go(spoke_container_of(signal, struct faults, ints));
}

int serve_faults_begin(struct faults *faults)
{
	const struct spoke_env *env = spoke_host_env();

	int error = spoke_signal_watch(faults->engine, &faults->terms, SIGTERM, term_came);

	if (!error)
		error = spoke_signal_watch(faults->engine, &faults->ints, SIGINT, int_came);
	env->dice(env->ctx, &faults->random, sizeof(faults->random));
	if (error || !faults->freeze_ns)
		return error;
	return spoke_alarm_after(faults->engine, &faults->freeze, faults->freeze_ns, freeze_due);
}

void serve_faults_end(struct faults *faults)
{
	while (faults->laters) {
		struct later *later = faults->laters;

		faults->laters = later->next;
		free(later);
	}
}

/* --- handlers */

void serve_echo(struct spoke_request *request, void *arg)
{
	serve(arg, request, ANSWER_ECHO, 0);
}

void serve_sleep(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value;
	uint32_t ms;

	if (!spoke_cursor_next(&args, &value) || spoke_value_u32(value, &ms) || ms > SLEEP_MAX_MS)
		spoke_reply_error(request, 1, "sleep: expected a number of ms up to 3600000");
	else
		serve(arg, request, ANSWER_ECHO, ms * UINT64_C(1000000));
}

void serve_fail(struct spoke_request *request, void *arg)
{
	serve(arg, request, ANSWER_FAIL, 0);
}

void serve_drop(struct spoke_request *request, void *arg)
{
	serve(arg, request, ANSWER_ECHO, UINT64_MAX);
}
