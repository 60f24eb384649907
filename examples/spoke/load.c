/* SPDX-License-Identifier: Apache-2.0 */
/* Generates load: closed and open loop, and their counters. */
#include "examples/spoke/load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
#define CONNECT_NS (5 * SECOND)
#define REST_NS UINT64_C(10000000) /* pause of a closed loop after a refused call */
#define CONNECTIONS_OF_ONE 16u     /* of a consumer, at most */
#define BATCH 512u                 /* calls that an open loop starts per turn */

struct load_slot {
	struct load *load;
	struct load_slot *next;
	uint64_t due_ns;
};

static uint64_t clock_ns(const struct load *load)
{
	return load->env->now(load->env->ctx);
}

static bool is_open(const struct load *load)
{
	return load->plan->rate > 0;
}

static void finish(struct load *load)
{
	if (load->stage == LOAD_OVER)
		return;
	load->stage = LOAD_OVER;
	load->not_ended = load->due - load->ok - load->failed - load->not_begun;
	(void)spoke_alarm_cancel(&load->pump);
	(void)spoke_alarm_cancel(&load->end);
	spoke_engine_stop(load->engine);
}

/* --- results of calls */

static void count_error(struct load *load, int error)
{
	struct load_kind *kind = load->kinds;
	struct load_kind *last = kind + LOAD_KINDS - 1;

	while (kind < last && kind->count > 0 && kind->error != error)
		kind++;
	kind->error = error;
	kind->count++;
	load->failed++;
}

/* Counts a call for which spoke_call() failed. */
static void count_refused(struct load *load, uint64_t due_ns, int error)
{
	if (due_ns < load->from_ns)
		return;
	count_error(load, error);
	if (load->first_error[0] == '\0')
		(void)snprintf(load->first_error, LOAD_TEXT, "%s", spoke_strerror(error));
}

/* Timed-out calls count in the latency: leaving them out would improve the figures. */
static bool has_waited(int error)
{
	return error == SPOKE_OK || error <= SPOKE_EREMOTE || error == SPOKE_ETIMEOUT ||
	       error == SPOKE_ETIMEOUT_UNSENT;
}

static void count_call(struct load *load, uint64_t due_ns, uint64_t now_ns,
		       const struct spoke_result *result)
{
	if (due_ns < load->from_ns)
		return;
	if (has_waited(result->error))
		spoke_histogram_add(&load->times, now_ns - due_ns);
	if (result->error == SPOKE_OK) {
		load->ok++;
	} else {
		count_error(load, result->error);
		if (load->first_error[0] == '\0')
			(void)spoke_result_print(result, load->first_error, LOAD_TEXT);
	}
	if (now_ns < load->until_ns)
		load->in_time += result->error == SPOKE_OK;
	load->last_ns = now_ns;
}

/* --- starting calls */

static void call_done(void *arg, const struct spoke_result *result);

/* May another call become due at this time? */
static bool may_begin(const struct load *load, uint64_t due_ns)
{
	return load->stage == LOAD_WARMING && due_ns < load->until_ns &&
	       (load->plan->calls == 0 || load->due < load->plan->calls);
}

/* Counts a call as due and starts it. Returns whether spoke_call() accepted it. */
static bool begin_call(struct load *load, uint64_t due_ns)
{
	struct load_slot *slot = load->spare;
	int error = SPOKE_ELIMIT;

	load->made++;
	load->due += due_ns >= load->from_ns;
	if (slot) {
		slot->due_ns = due_ns;
		error = spoke_call(load->methods[load->made % load->consumer_count],
				   load->plan->args, NULL, call_done, slot, NULL);
	}
	if (error) {
		count_refused(load, due_ns, error);
		return false;
	}
	load->spare = slot->next;
	load->running++;
	return true;
}

static void stop_beginning(struct load *load)
{
	load->stage = LOAD_ENDING;
	(void)spoke_alarm_cancel(&load->pump);
	if (load->running == 0)
		finish(load);
}

static void pump_due(struct spoke_alarm *alarm);

static void pump_again(struct load *load, uint64_t delay_ns)
{
	if (spoke_alarm_after(load->engine, &load->pump, delay_ns, pump_due))
		stop_beginning(load);
}

/* Starts calls until the plan's number is in flight. */
static void fill_closed(struct load *load, uint64_t now_ns)
{
	while (load->spare && may_begin(load, now_ns)) {
		if (!begin_call(load, now_ns)) {
			pump_again(load, REST_NS);
			return;
		}
	}
}

static uint64_t next_due_ns(const struct load *load)
{
	return load->start_ns + (uint64_t)((double)load->made * 1e9 / load->plan->rate);
}

/* Starts all due calls, but at most BATCH per turn, so that answers are read in time. */
static void fill_open(struct load *load, uint64_t now_ns)
{
	uint64_t due_ns = next_due_ns(load);

	if (load->turn_ns != spoke_engine_now(load->engine)) {
		load->turn_ns = spoke_engine_now(load->engine);
		load->turn_left = BATCH;
	}
	while (load->turn_left > 0 && due_ns <= now_ns && may_begin(load, due_ns)) {
		load->turn_left--;
		(void)begin_call(load, due_ns);
		due_ns = next_due_ns(load);
	}
}

static void fill(struct load *load, uint64_t now_ns)
{
	if (is_open(load))
		fill_open(load, now_ns);
	else
		fill_closed(load, now_ns);
	if (load->stage == LOAD_WARMING && load->plan->calls > 0 && load->due == load->plan->calls)
		stop_beginning(load);
}

static void pump_due(struct spoke_alarm *alarm)
{
	struct load *load = spoke_container_of(alarm, struct load, pump);
	uint64_t now_ns = clock_ns(load);

	fill(load, now_ns);
	if (is_open(load) && load->stage == LOAD_WARMING) {
		uint64_t due_ns = next_due_ns(load);

		pump_again(load, due_ns > now_ns ? due_ns - now_ns : 0);
	}
}

static void call_done(void *arg, const struct spoke_result *result)
{
	struct load_slot *slot = arg;
	struct load *load = slot->load;
	uint64_t now_ns;

	slot->next = load->spare;
	load->spare = slot;
	load->running--;
	if (load->stage == LOAD_OVER)
		return;
	now_ns = clock_ns(load);
	count_call(load, slot->due_ns, now_ns, result);
	if (load->stage == LOAD_WARMING)
		fill(load, now_ns);
	else if (load->running == 0)
		finish(load);
}

/* --- the stages of a run */

/* Returns the number of calls due before a time. */
static uint64_t due_before(const struct load *load, uint64_t time_ns)
{
	if (time_ns <= load->start_ns)
		return 0;
	return (uint64_t)ceil((double)(time_ns - load->start_ns) * load->plan->rate / 1e9);
}

/* Counts the calls that were due but not started. */
static void count_not_begun(struct load *load)
{
	uint64_t from = due_before(load, load->from_ns);
	uint64_t until = due_before(load, load->until_ns);

	if (from < load->made)
		from = load->made;
	if (until <= from)
		return;
	load->made = until;
	load->due += until - from;
	load->not_begun += until - from;
}

static void end_run(struct load *load)
{
	if (is_open(load))
		fill_open(load, load->until_ns);
	if (is_open(load) && load->plan->calls == 0)
		count_not_begun(load);
	stop_beginning(load);
}

static void run_over(struct spoke_alarm *alarm)
{
	end_run(spoke_container_of(alarm, struct load, end));
}

static void start(struct load *load)
{
	const struct load_plan *plan = load->plan;

	load->stage = LOAD_WARMING;
	load->start_ns = clock_ns(load);
	load->from_ns = load->start_ns + plan->warm_up_ns;
	load->until_ns = plan->calls ? UINT64_MAX : load->from_ns + plan->duration_ns;
	if (plan->calls)
		(void)spoke_alarm_cancel(&load->end);
	else if (spoke_alarm_after(load->engine, &load->end, plan->warm_up_ns + plan->duration_ns,
				   run_over))
		stop_beginning(load);
	pump_due(&load->pump);
}

static void give_up(struct load *load, int error)
{
	load->unreachable = error;
	finish(load);
}

static void not_connected(struct spoke_alarm *alarm)
{
	struct load *load = spoke_container_of(alarm, struct load, end);

	if (load->connected > 0)
		start(load);
	else
		give_up(load, SPOKE_ECONNECT);
}

static void link_changed(void *arg, const struct spoke_link_event *event)
{
	struct load *load = arg;

	if (load->stage != LOAD_CONNECTING)
		return;
	if (event->change == SPOKE_LINK_CONNECTED && ++load->connected >= load->plan->connections)
		start(load);
	else if (event->change == SPOKE_LINK_RECONNECTING && !load->plan->registry) {
		(void)snprintf(load->reason, sizeof(load->reason), "%s",
			       event->reason ? event->reason : "");
		give_up(load, event->error);
	}
}

static int make_slots(struct load *load)
{
	size_t count = is_open(load) ? LOAD_OUTSTANDING_MAX : load->plan->outstanding;

	load->slots = calloc(count, sizeof(*load->slots));
	if (!load->slots)
		return SPOKE_ENOMEM;
	for (size_t i = count; i-- > 0;) {
		load->slots[i].load = load;
		load->slots[i].next = load->spare;
		load->spare = &load->slots[i];
	}
	return SPOKE_OK;
}

/* Makes a consumer with its share of the connections. */
static int add_consumer(struct load *load, uint32_t connections)
{
	const struct load_plan *plan = load->plan;
	struct spoke_consumer_options options = {
		.url = plan->url,
		.registry = plan->registry,
		.timeout_ns = plan->timeout_ns,
		.token = plan->token,
		.token_file = plan->token_file,
		.token_plain = plan->token_plain,
		.tls = plan->tls,
		.connections = connections,
		.policy = &spoke_policy_failfast,
		.changed = link_changed,
		.changed_arg = load,
	};
	struct spoke_method_options method = { .service = plan->service };
	size_t at = load->consumer_count;
	int error = spoke_consumer_new(load->engine, &options, &load->consumers[at]);

	if (error)
		return error;
	load->consumer_count++;
	return spoke_consumer_method(load->consumers[at], plan->method, &method,
				     &load->methods[at]);
}

static int add_consumers(struct load *load)
{
	uint32_t left = load->plan->connections;
	size_t count = (left + CONNECTIONS_OF_ONE - 1) / CONNECTIONS_OF_ONE;
	int error = SPOKE_OK;

	load->consumers = calloc(count, sizeof(struct spoke_consumer *));
	load->methods = calloc(count, sizeof(struct spoke_method *));
	if (!load->consumers || !load->methods)
		return SPOKE_ENOMEM;
	for (; left > 0 && !error; count--) {
		uint32_t share = (uint32_t)(left / count);

		error = add_consumer(load, share);
		left -= share;
	}
	return error;
}

int load_begin(struct load *load, struct spoke_engine *engine, const struct load_plan *plan)
{
	int error;

	memset(load, 0, sizeof(*load));
	load->plan = plan;
	load->engine = engine;
	load->env = plan->env;
	error = make_slots(load);
	if (!error)
		error = add_consumers(load);
	if (!error)
		error = spoke_alarm_after(engine, &load->end, CONNECT_NS, not_connected);
	return error;
}

void load_stop(struct load *load)
{
	if (load->stage == LOAD_CONNECTING) {
		give_up(load, SPOKE_ECONNECT);
		return;
	}
	if (load->stage != LOAD_WARMING) {
		finish(load);
		return;
	}
	(void)spoke_alarm_cancel(&load->end);
	if (load->plan->calls == 0)
		load->until_ns = clock_ns(load);
	end_run(load);
}

void load_end(struct load *load)
{
	free(load->slots);
	free(load->consumers);
	free(load->methods);
}

uint64_t load_span_ns(const struct load *load, uint64_t now_ns)
{
	uint64_t until_ns = now_ns < load->until_ns ? now_ns : load->until_ns;

	if (load->plan->calls > 0 && load->stage >= LOAD_ENDING)
		until_ns = load->last_ns;
	return load->stage >= LOAD_WARMING && until_ns > load->from_ns ? until_ns - load->from_ns
								       : 0;
}
