/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The consumer's process: engines that keep calls in flight, or one engine whose calls are made by
 * blocking threads.
 */
#include "engines.h"

#include "tests/bench/memory/memory.h"

#include <spoke/engine.h>
#include <spoke/future.h>
#include <spoke/host.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_NS (1000 * MS)

struct caller {
	struct spoke_method *method;
	struct seat *seat;
};

static struct spoke_span args;

static void pack_args(void)
{
	static struct spoke_builder builder;
	static char text[PAYLOAD];

	memset(text, 'x', sizeof(text));
	spoke_builder_init(&builder, spoke_host_env(), NULL);
	spoke_pack_str(&builder, text, sizeof(text));
	must("arguments", spoke_builder_finish(&builder, &args));
}

static void call(struct caller *caller);

static void call_done(void *arg, const struct spoke_result *result)
{
	struct caller *caller = arg;

	seat_count(caller->seat, result->error == SPOKE_OK);
	call(caller);
}

static void call(struct caller *caller)
{
	must("call", spoke_call(caller->method, args, NULL, call_done, caller, NULL));
}

static struct spoke_method *open_method(struct spoke_engine *engine, const char *url)
{
	const struct spoke_consumer_options options = {
		.serialization = SPOKE_SERIALIZATION_MSGPACK, .url = url, .timeout_ns = TIMEOUT_NS
	};
	struct spoke_consumer *consumer;
	struct spoke_method *method;

	must(url, spoke_consumer_new(engine, &options, &consumer));
	must("method", spoke_consumer_method(consumer, "echo", NULL, &method));
	return method;
}

/* Runs one engine with its calls; all of its callers use one seat. */
static void begin_engine(const struct plan *plan, const char *url, struct seat *seat)
{
	struct caller *callers = calloc((size_t)plan->connections * plan->outstanding,
					sizeof(*callers));
	struct spoke_engine *engine;

	must("memory", callers ? SPOKE_OK : SPOKE_ENOMEM);
	must("engine", spoke_engine_new(NULL, &engine));
	for (unsigned i = 0; i < plan->connections; i++) {
		struct spoke_method *method = open_method(engine, url);

		for (unsigned j = 0; j < plan->outstanding; j++, callers++) {
			*callers = (struct caller){ method, seat };
			call(callers);
		}
	}
	must("start", spoke_engine_start(engine));
}

static void *call_and_wait(void *arg)
{
	const struct caller *caller = arg;
	struct spoke_future *future;

	for (;;) {
		int error = spoke_call_wait(caller->method, args, NULL, &future);

		seat_count(caller->seat, error == SPOKE_OK);
		spoke_future_free(future);
	}
	return NULL;
}

static void begin_threads(const struct plan *plan, const char *url, struct board *board)
{
	static struct caller callers[SEATS_MAX];
	struct spoke_engine *engine;
	struct spoke_method *method;
	pthread_t thread;

	must("engine", spoke_engine_new(NULL, &engine));
	method = open_method(engine, url);
	must("start", spoke_engine_start(engine));
	for (unsigned i = 0; i < plan->outstanding; i++) {
		callers[i] = (struct caller){ method, &board->candidates[i] };
		if (pthread_create(&thread, NULL, call_and_wait, &callers[i]))
			die("no thread");
	}
}

void play_consumer(void *arg, int in, int out)
{
	const struct part *part = arg;
	const struct plan *plan = part->plan;
	char place[PLACE_SIZE];
	char url[PLACE_SIZE + 64];
	char never;

	read_all(in, place, sizeof(place));
	(void)snprintf(url, sizeof(url),
		       plan->is_unix ? "%s?interface=" SERVICE : "dubbo://%s/" SERVICE, place);
	pack_args();
	if (plan->blocks)
		begin_threads(plan, url, part->board);
	for (unsigned i = 0; i < plan->engines && !plan->blocks; i++)
		begin_engine(plan, url, &part->board->candidates[i]);
	write_all(out, "r", 1);
	read_all(in, &never, 1);
}
