/* SPDX-License-Identifier: Apache-2.0 */
/* Main program of a provider process of the soak. */
#include "provider.h"

#include "book.h"
#include "load.h"
#include "memory.h"

#include <spoke/provider.h>
#include <spoke/signals.h>

#include <stdio.h>

#define DRAIN_NS (10 * NS_PER_S)
#define PULSE_NS (100 * NS_PER_MS)
#define LOOK_NS NS_PER_S
#define HEARTBEAT_NS NS_PER_S
#define PUSH_NS (500 * NS_PER_MS) /* timeout of a push */
#define SLACK_NS (3 * NS_PER_S)
#define NAPS 8192u

/* A request with a delayed answer. */
struct nap {
	struct spoke_alarm alarm;
	struct spoke_request *request;
	struct nap *next; /* in the free list */
};

static struct {
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct spoke_method *nudge;
	struct spoke_alarm pulse;
	struct spoke_alarm look;
	struct spoke_builder builder;
	struct desk *desk;
	struct book book;
	struct nap naps[NAPS];
	struct nap *free;
} self;

void provider_path(unsigned index, char *path)
{
	(void)snprintf(path, PATH_BYTES, "%.100s/%u.sock", board->folder, index);
}

/* --- handlers */

static struct spoke_value first_of(struct spoke_request *request)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value = { 0 };

	if (!spoke_cursor_next(&args, &value))
		return (struct spoke_value){ 0 };
	return value;
}

static void echo(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply(request, first_of(request));
}

static void fail(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply_error(request, (int32_t)(load_tag(first_of(request)) % 30000) + 1,
			  "as you wish");
}

static void wake(struct spoke_alarm *alarm)
{
	struct nap *nap = spoke_container_of(alarm, struct nap, alarm);

	spoke_reply(nap->request, first_of(nap->request));
	nap->next = self.free;
	self.free = nap;
}

/* Answers after the number of ms in the second argument. */
static void doze(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value;
	struct nap *nap = self.free;
	uint64_t ms;

	(void)arg;
	if (!spoke_cursor_next(&args, &value) || !spoke_cursor_next(&args, &value) ||
	    spoke_value_u64(value, &ms) || nap == NULL || spoke_request_keep(request) ||
	    spoke_alarm_after(self.engine, &nap->alarm, ms * NS_PER_MS, wake)) {
		echo(request, NULL);
		return;
	}
	self.free = nap->next;
	nap->request = request;
}

static void pushed(void *arg, const struct spoke_result *result)
{
	struct seat *seat = book_find(&self.book, (uintptr_t)arg, SEAT_OPEN);

	if (seat == NULL)
		return;
	if (result->error == SPOKE_OK && !load_is(result->value, seat->tag, seat->len)) {
		self.desk->counts[COUNT_WRONG]++;
		desk_complain(self.desk, "a push got the answer of another one");
	}
	book_end(&self.book, seat, result->error);
}

/* Pushes to the caller and answers. */
static void nudge(struct spoke_request *request, void *arg)
{
	struct spoke_call_options options = { .timeout_ns = PUSH_NS };
	struct seat *seat = book_take(&self.book, 0);
	struct spoke_span args;
	int error;

	(void)arg;
	if (seat) {
		seat->len = seat->tag % 200;
		spoke_builder_reset(&self.builder);
		load_pack(&self.builder, seat->tag, seat->len);
		error = spoke_builder_finish(&self.builder, &args);
		if (!error)
			error = spoke_push(self.nudge, spoke_request_from(request), args, &options,
					   pushed, (void *)(uintptr_t)seat->tag, NULL);
		if (error)
			book_refuse(&self.book, seat, error);
		else
			book_begin(&self.book, seat,
				   spoke_engine_now(self.engine) + PUSH_NS + SLACK_NS);
	}
	echo(request, NULL);
}

/* --- the process */

static void pulse(struct spoke_alarm *alarm)
{
	(void)alarm;
	desk_stats(self.desk, self.engine);
	self.desk->connections = spoke_provider_connections(self.provider);
	memory_tell(self.desk);
	self.desk->pulses++;
}

static void look(struct spoke_alarm *alarm)
{
	(void)alarm;
	book_look(&self.book, spoke_engine_now(self.engine));
}

static int offer(void)
{
	static const struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = echo },
		{ .method = "toil", .handle = echo, .flags = SPOKE_HANDLER_POOL },
		{ .method = "doze", .handle = doze },
		{ .method = "fail", .handle = fail },
		{ .method = "nudge", .handle = nudge },
	};
	struct spoke_service_options service = { .name = "soak.Service" };
	struct spoke_method_options of = { .service = "soak.Nudged" };
	int error = spoke_provider_add(self.provider, &service, handlers,
				       sizeof(handlers) / sizeof(handlers[0]));

	return error ? error : spoke_provider_method(self.provider, "nudge", &of, &self.nudge);
}

static int listen_twice(unsigned index)
{
	char path[PATH_BYTES];
	char url[PATH_BYTES + 16];
	int error;

	(void)snprintf(url, sizeof(url), "dubbo://%.100s", self.desk->address);
	error = spoke_provider_listen(self.provider, url);
	provider_path(index, path);
	(void)snprintf(url, sizeof(url), "unix:%s", path);
	return error ? error : spoke_provider_listen(self.provider, url);
}

static int run(void)
{
	int error = spoke_engine_drain_on_signals(self.engine, DRAIN_NS);

	if (!error)
		error = spoke_alarm_every(self.engine, &self.pulse, PULSE_NS, pulse);
	if (!error)
		error = spoke_alarm_every(self.engine, &self.look, LOOK_NS, look);
	self.desk->up = !error;
	return error ? error : spoke_engine_run(self.engine);
}

int provider_run(unsigned index)
{
	struct spoke_engine_options with = { .env = memory_env() };
	struct spoke_provider_options options = { .heartbeat_ns = HEARTBEAT_NS };
	int error;

	self.desk = &board->desks[index];
	book_init(&self.book, self.desk);
	for (unsigned i = 0; i < NAPS; i++)
		self.naps[i].next = i + 1 < NAPS ? &self.naps[i + 1] : NULL;
	self.free = self.naps;
	spoke_builder_init(&self.builder, with.env, NULL);
	error = spoke_engine_new(&with, &self.engine);
	if (!error)
		error = spoke_provider_new(self.engine, &options, &self.provider);
	if (!error)
		error = offer();
	if (!error && listen_twice(index)) {
		spoke_engine_free(self.engine);
		return PROVIDER_NO_PLACE;
	}
	if (!error)
		error = run();
	if (error)
		desk_complain(self.desk, "provider %u: %s", index, spoke_engine_why(self.engine));
	spoke_engine_free(self.engine);
	spoke_builder_fini(&self.builder);
	if (memory_used() > 0)
		desk_complain(self.desk, "provider %u leaks %llu bytes", index,
			      (unsigned long long)memory_used());
	self.desk->done = book_close(&self.book);
	return self.desk->done ? 0 : 1;
}
