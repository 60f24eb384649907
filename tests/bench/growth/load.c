/* SPDX-License-Identifier: Apache-2.0 */
/* The client of the benchmark; see load.h. A failed call ends the program. */
#include "load.h"

#include "tests/bench/rpc/meter.h"

#include <spoke/consumer.h>
#include <spoke/engine.h>
#include <spoke/host.h>
#include <spoke/policy.h>
#include <spoke/ticket.h>
#include <spoke/value.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS (1000 * HOST_MS)
#define HOUR_NS (3600 * SECOND_NS)
#define PENDING_MORE 65536u          /* more than the waiting ones */
#define TICKET_BYTES 4096u           /* limit of a ticket */
#define AT_ONCE 500u                 /* connections or calls begun between two turns */
#define KEY_STEP 0x9e3779b97f4a7c15u /* step between keys, which spreads them over the ring */

/* A connection, or a consumer with several. */
struct line {
	struct spoke_method *method;
	struct line *next_idle;
};

struct load {
	struct spoke_engine *engine;
	const struct rpc_plan *plan;
	uint64_t timeout_ns;
	struct meter *meter; /* NULL: `left` is counted down */
	uint64_t left;
	struct spoke_consumer *consumer; /* the first consumer */
	struct line *lines;
	uint32_t line_count;
	struct line *idle_first; /* connections without a call, the longest waiting first */
	struct line **idle_end;
	struct seat *candidates;
	uint32_t connected;
	uint32_t answered; /* number of answered calls of the preparation */
	uint32_t deferred;
	struct spoke_builder builder; /* of args */
	struct spoke_span args;
	struct spoke_value payload; /* the only value of args */
};

/* A call that is kept in flight. */
struct seat {
	struct load *load;
	struct line *line;
	uint64_t begun_ns;
	uint64_t key; /* different for each call */
};

static void turn(struct load *load)
{
	must("turn", spoke_engine_turn(load->engine, true));
}

_Noreturn static void die_of(const struct spoke_result *result)
{
	char text[256];

	(void)spoke_result_print(result, text, sizeof(text));
	host_die("spoke: a call ended unexpectedly: %s", text);
}

/* --- connections */

static void link_changed(void *arg, const struct spoke_link_event *event)
{
	struct load *load = arg;

	if (event->change != SPOKE_LINK_CONNECTED)
		host_die("spoke: %s is %s: %s", event->name, spoke_link_change_name(event->change),
			 spoke_strerror(event->error));
	load->connected++;
}

static struct spoke_consumer *open_consumer(struct load *load, uint32_t endpoints)
{
	const struct rpc_plan *plan = load->plan;
	char(*urls)[96] = host_memory(endpoints, sizeof(*urls));
	const char **pointers = host_memory(endpoints, sizeof(*pointers));
	struct spoke_consumer_options options = {
		.serialization = SPOKE_SERIALIZATION_MSGPACK,
		.url = urls[0],
		.more_urls = pointers + 1,
		.more_count = endpoints - 1,
		.timeout_ns = load->timeout_ns,
		.pending_max = plan->kept + PENDING_MORE,
		.failback_tasks_max = plan->parked + 1,
		.failback_bytes_max = ((size_t)plan->parked + 1) * TICKET_BYTES,
		.changed = link_changed,
		.changed_arg = load,
	};
	struct spoke_consumer *consumer;

	for (uint32_t i = 0; i < endpoints; i++) {
		pointers[i] = urls[i];
		(void)snprintf(urls[i], sizeof(urls[i]),
			       "dubbo://" ENDPOINT_HOST ":%u/" SERVICE "%s%s", i + 1, plan->port,
			       i == 0 && *plan->balancer ? "?loadbalance=" : "",
			       i == 0 ? plan->balancer : "");
	}
	must(urls[0], spoke_consumer_new(load->engine, &options, &consumer));
	free(pointers);
	free(urls);
	return consumer;
}

static void wait_idly(struct load *load, struct line *line)
{
	line->next_idle = NULL;
	*load->idle_end = line;
	load->idle_end = &line->next_idle;
}

static void connect_all(struct load *load)
{
	const struct rpc_plan *plan = load->plan;
	uint32_t endpoints = plan->endpoints > 0 ? plan->endpoints : 1;

	load->line_count = plan->endpoints > 0 ? 1 : plan->connections;
	load->lines = host_memory(load->line_count, sizeof(*load->lines));
	for (uint32_t i = 0; i < load->line_count; i++) {
		struct spoke_consumer *consumer = open_consumer(load, endpoints);

		if (i == 0)
			load->consumer = consumer;
		must("method",
		     spoke_consumer_method(consumer, "echo", NULL, &load->lines[i].method));
		while ((i + 1) * endpoints - load->connected >= AT_ONCE)
			turn(load);
	}
	while (load->connected < load->line_count * endpoints)
		turn(load);
}

/* --- waiting calls and tickets */

static struct spoke_method *open_method(struct load *load, const char *name,
					const struct spoke_policy *policy)
{
	const struct spoke_method_options options = { .timeout_ns = HOUR_NS, .policy = policy };
	struct spoke_method *method;

	must(name, spoke_consumer_method(load->consumer, name, &options, &method));
	return method;
}

static void kept_done(void *arg, const struct spoke_result *result)
{
	(void)arg;
	die_of(result);
}

static void answer_done(void *arg, const struct spoke_result *result)
{
	struct load *load = arg;

	if (result->error)
		die_of(result);
	load->answered++;
}

/* Makes a call and waits for its answer: all earlier requests have arrived then. */
static void sync_up(struct load *load)
{
	struct spoke_method *method = open_method(load, "echo", NULL);
	uint32_t answered = load->answered;

	must("call", spoke_call(method, load->args, NULL, answer_done, load, NULL));
	while (load->answered == answered)
		turn(load);
}

/* Begins as many waiting calls as the connection and the turn allow. Returns their number. */
static uint32_t call_some(struct load *load, struct spoke_method *method, uint32_t count,
			  spoke_call_done_fn done)
{
	for (uint32_t i = 0; i < count; i++) {
		int error = i == AT_ONCE ? SPOKE_ELIMIT
					 : spoke_call(method, load->args, NULL, done, load, NULL);

		if (error == SPOKE_ELIMIT)
			return i;
		must("waiting call", error);
	}
	return count;
}

/* Makes the first call on each connection, which allocates memory. */
static void call_all(struct load *load)
{
	for (uint32_t i = 0; i < load->line_count; i++) {
		must("call",
		     spoke_call(load->lines[i].method, load->args, NULL, answer_done, load, NULL));
		while (i + 1 - load->answered >= AT_ONCE)
			turn(load);
	}
	while (load->answered < load->line_count)
		turn(load);
}

static void keep_calls(struct load *load, const char *name, uint32_t count)
{
	struct spoke_method *method = open_method(load, name, NULL);

	while (count > 0) {
		count -= call_some(load, method, count, kept_done);
		must("turn", spoke_engine_turn(load->engine, false));
	}
	sync_up(load);
}

static void ticket_done(void *arg, const struct spoke_result *result)
{
	struct load *load = arg;

	if (result->error != SPOKE_EDEFERRED)
		die_of(result);
	load->deferred++;
}

/* Creates tickets: each call is refused once and waits an hour for its next attempt. */
static void park_calls(struct load *load)
{
	struct spoke_method *method = open_method(load, "full", &spoke_policy_failback);
	uint32_t made = 0;

	keep_calls(load, "full", 1);
	while (made < load->plan->parked) {
		made += call_some(load, method, load->plan->parked - made, ticket_done);
		while (load->deferred < made)
			turn(load);
	}
}

/* --- the measured calls */

static void call(struct seat *seat);

/* Makes the next call on the same connection, unless other connections wait for one. */
static void call_next(struct seat *seat)
{
	struct load *load = seat->load;
	struct line *next = load->idle_first;

	if (next) {
		wait_idly(load, seat->line);
		load->idle_first = next->next_idle;
		seat->line = next;
	}
	call(seat);
}

static void call_done(void *arg, const struct spoke_result *result)
{
	struct seat *seat = arg;
	struct load *load = seat->load;
	struct meter *meter = load->meter;

	if (meter && meter_is_over(meter))
		return;
	if (result->error)
		die_of(result);
	if (meter) {
		if (meter_is_new_batch(meter) && !spoke_value_equal(result->value, load->payload))
			meter_failure(meter);
		meter_call(meter, seat->begun_ns);
		if (meter_is_over(meter)) {
			spoke_engine_stop(load->engine);
			return;
		}
	} else if (load->left > 0 && --load->left == 0) {
		spoke_engine_stop(load->engine);
	}
	call_next(seat);
}

static void call(struct seat *seat)
{
	struct load *load = seat->load;
	struct spoke_call_options options = { .hash_key = { &seat->key, sizeof(seat->key) } };

	seat->key += KEY_STEP;
	seat->begun_ns = load->meter ? load->meter->now_ns : 0;
	must("call",
	     spoke_call(seat->line->method, load->args, load->plan->endpoints > 0 ? &options : NULL,
			call_done, seat, NULL));
}

static void begin_calls(struct load *load)
{
	uint32_t total = load->plan->total;

	load->candidates = host_memory(total, sizeof(*load->candidates));
	for (uint32_t i = 0; i < total; i++) {
		load->candidates[i] = (struct seat){ load, &load->lines[i % load->line_count], 0,
						     i };
		call(&load->candidates[i]);
	}
	for (uint32_t i = total; i < load->line_count; i++)
		wait_idly(load, &load->lines[i]);
}

/* --- public functions */

static void make_args(struct load *load)
{
	struct spoke_cursor cursor;
	char *text = host_memory(load->plan->payload, 1);

	memset(text, 'x', load->plan->payload);
	spoke_builder_init(&load->builder, spoke_host_env(), NULL);
	spoke_pack_str(&load->builder, text, load->plan->payload);
	must("arguments", spoke_builder_finish(&load->builder, &load->args));
	free(text);
	cursor = spoke_cursor_bytes(load->args);
	if (!spoke_cursor_next(&cursor, &load->payload))
		host_die("spoke: no argument");
}

struct load *load_open(struct spoke_engine *engine, const struct rpc_plan *plan,
		       uint64_t timeout_ns)
{
	struct load *load = host_memory(1, sizeof(*load));

	load->engine = engine;
	load->plan = plan;
	load->timeout_ns = timeout_ns;
	load->idle_end = &load->idle_first;
	make_args(load);
	connect_all(load);
	call_all(load);
	if (plan->kept > 0)
		keep_calls(load, "keep", plan->kept);
	if (plan->parked > 0)
		park_calls(load);
	return load;
}

void load_measure(struct load *load, struct meter *meter)
{
	load->meter = meter;
	meter_restart(meter);
	begin_calls(load);
	must("run", spoke_engine_run(load->engine));
}

void load_repeat(struct load *load, uint64_t calls)
{
	load->left = calls;
	if (load->candidates == NULL)
		begin_calls(load);
	must("run", spoke_engine_run(load->engine));
}

void load_check(const struct load *load)
{
	if (spoke_consumer_tickets(load->consumer, NULL) != load->plan->parked)
		host_die("spoke: a waiting ticket has ended");
}
