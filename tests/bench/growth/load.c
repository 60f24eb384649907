/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider echoes, holds calls that must wait, and refuses calls that become tickets. A failed
 * call of the client ends the program. See load.h.
 */
#include "load.h"

#include "tests/bench/memory/memory.h"
#include "tests/support/echo_handler.h"

#include <spoke/consumer.h>
#include <spoke/engine.h>
#include <spoke/host.h>
#include <spoke/policy.h>
#include <spoke/provider.h>
#include <spoke/ticket.h>
#include <spoke/value.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENDPOINT_HOST "127.0.0.%u" /* address of endpoint N, from 1 on */
#define TIMEOUT_NS (600 * SECOND)  /* of a measured call: callgrind is slow */
#define HOUR_NS (3600 * SECOND)
#define REQUESTS_MORE 4096u          /* more than the held ones */
#define CONNECTIONS_MAX 20000u       /* of one address */
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
	const struct load_plan *plan;
	uint16_t port;
	uint64_t left;                   /* calls until load_repeat() returns */
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
};

/* A call that is kept in flight. */
struct seat {
	struct load *load;
	struct line *line;
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
	die("a call ended unexpectedly: %s", text);
}

static void *memory_of(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (memory == NULL)
		die("out of memory");
	return memory;
}

/* --- connections */

static void link_changed(void *arg, const struct spoke_link_event *event)
{
	struct load *load = arg;

	if (event->change != SPOKE_LINK_CONNECTED)
		die("%s is %s: %s", event->name, spoke_link_change_name(event->change),
		    spoke_strerror(event->error));
	load->connected++;
}

static struct spoke_consumer *open_consumer(struct load *load, uint32_t endpoints)
{
	const struct load_plan *plan = load->plan;
	char(*urls)[96] = memory_of(endpoints, sizeof(*urls));
	const char **pointers = memory_of(endpoints, sizeof(*pointers));
	struct spoke_consumer_options options = {
		.serialization = SPOKE_SERIALIZATION_MSGPACK,
		.url = urls[0],
		.more_urls = pointers + 1,
		.more_count = endpoints - 1,
		.timeout_ns = TIMEOUT_NS,
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
			       "dubbo://" ENDPOINT_HOST ":%u/" SERVICE "%s%s", i + 1, load->port,
			       i == 0 && plan->balancer ? "?loadbalance=" : "",
			       i == 0 && plan->balancer ? plan->balancer : "");
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
	const struct load_plan *plan = load->plan;
	uint32_t endpoints = plan->endpoints > 0 ? plan->endpoints : 1;

	load->line_count = plan->endpoints > 0 ? 1 : plan->connections;
	load->lines = memory_of(load->line_count, sizeof(*load->lines));
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

	if (result->error)
		die_of(result);
	if (load->left > 0 && --load->left == 0)
		spoke_engine_stop(load->engine);
	call_next(seat);
}

static void call(struct seat *seat)
{
	struct load *load = seat->load;
	struct spoke_call_options options = { .hash_key = { &seat->key, sizeof(seat->key) } };

	seat->key += KEY_STEP;
	must("call",
	     spoke_call(seat->line->method, load->args, load->plan->endpoints > 0 ? &options : NULL,
			call_done, seat, NULL));
}

static void begin_calls(struct load *load)
{
	uint32_t total = load->plan->total;

	load->candidates = memory_of(total, sizeof(*load->candidates));
	for (uint32_t i = 0; i < total; i++) {
		load->candidates[i] = (struct seat){ load, &load->lines[i % load->line_count], i };
		call(&load->candidates[i]);
	}
	for (uint32_t i = total; i < load->line_count; i++)
		wait_idly(load, &load->lines[i]);
}

/* --- public functions */

static void make_args(struct load *load)
{
	char *text = memory_of(load->plan->payload, 1);

	memset(text, 'x', load->plan->payload);
	spoke_builder_init(&load->builder, spoke_host_env(), NULL);
	spoke_pack_str(&load->builder, text, load->plan->payload);
	must("arguments", spoke_builder_finish(&load->builder, &load->args));
	free(text);
}

struct load *load_open(struct spoke_engine *engine, const struct load_plan *plan, uint16_t port)
{
	struct load *load = memory_of(1, sizeof(*load));

	load->engine = engine;
	load->plan = plan;
	load->port = port;
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

void load_repeat(struct load *load, uint64_t count)
{
	load->left = count;
	if (load->candidates == NULL)
		begin_calls(load);
	must("run", spoke_engine_run(load->engine));
}

void load_check(const struct load *load)
{
	if (spoke_consumer_tickets(load->consumer, NULL) != load->plan->parked)
		die("a waiting ticket has ended");
}

/* --- the provider */

static void keep(struct spoke_request *request, void *arg)
{
	(void)request;
	(void)arg;
}

/* Listens and returns the port; 0 selects a free one. */
static uint16_t serve_at(struct spoke_engine *engine, const struct load_plan *plan, uint32_t number,
			 uint16_t port)
{
	static const struct spoke_service_options service = { .name = SERVICE };
	static const struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = echo_handler },
		{ .method = "keep", .handle = keep },
		{ .method = "full", .handle = keep, .executes = 1 },
	};
	const struct spoke_provider_options options = {
		.connections_max = CONNECTIONS_MAX,
		.connections_per_peer_max = CONNECTIONS_MAX,
		.requests_max = plan->kept + REQUESTS_MORE,
		.requests_per_connection_max = plan->kept + REQUESTS_MORE,
	};
	struct spoke_provider *provider;
	char text[64];
	const char *found;

	(void)snprintf(text, sizeof(text), "dubbo://" ENDPOINT_HOST ":%u", number + 1, port);
	must("provider", spoke_provider_new(engine, &options, &provider));
	must("service", spoke_provider_add(provider, &service, handlers,
					   sizeof(handlers) / sizeof(handlers[0])));
	must(text, spoke_provider_listen(provider, text));
	if (spoke_provider_address(provider, 0, text, sizeof(text)) == 0)
		die("listens nowhere");
	found = strrchr(text, ':');
	return found == NULL ? 0 : (uint16_t)strtoul(found + 1, NULL, 10);
}

uint16_t load_serve(struct spoke_engine *engine, const struct load_plan *plan)
{
	uint16_t port = serve_at(engine, plan, 0, 0);

	for (uint32_t i = 1; i < plan->endpoints; i++)
		(void)serve_at(engine, plan, i, port);
	return port;
}
