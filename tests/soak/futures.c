/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that calls through futures. */
#define _GNU_SOURCE
#include "futures.h"

#include "load.h"
#include "memory.h"

#include <spoke/future.h>

#include <pthread.h>
#include <time.h>

#define BATCH 8u
#define PAUSE_NS (20 * NS_PER_MS)
#define TIMEOUT_NS NS_PER_S
#define WAITS 5u /* waits of a second: a process that was frozen gets more time */

static struct {
	pthread_t thread;
	struct calls *calls;
	struct desk *desk;
	struct sim_dice dice;
	struct spoke_builder builder;
	uint64_t tag;
	atomic_bool end;
	atomic_bool busy;
	atomic_bool gone;
} self;

static void pause_ns(uint64_t ns)
{
	struct timespec time = { .tv_sec = (time_t)(ns / NS_PER_S),
				 .tv_nsec = (long)(ns % NS_PER_S) };

	(void)nanosleep(&time, NULL);
}

static struct spoke_future *begin(size_t *ret_len)
{
	struct team *team = calls_team(self.calls, (unsigned)(self.tag % 3));
	struct spoke_call_options options = { .timeout_ns = TIMEOUT_NS };
	struct spoke_future *future;
	struct spoke_span args;

	*ret_len = load_len(&self.dice, 8192);
	spoke_builder_reset(&self.builder);
	load_pack(&self.builder, self.tag, *ret_len);
	if (spoke_builder_finish(&self.builder, &args) ||
	    spoke_future_start(team->methods[KIND_ECHO], args, &options, &future))
		return NULL;
	self.desk->counts[COUNT_FUTURES]++;
	return future;
}

static void wrong(const char *what, int error)
{
	self.desk->counts[COUNT_WRONG]++;
	desk_complain(self.desk, "a future %s: %s", what, spoke_errname(error));
}

static void end(struct spoke_future *future, uint64_t tag, size_t len)
{
	int error = spoke_future_wait(future);
	const struct spoke_result *result;

	for (unsigned i = 1; error == SPOKE_ESTATE && i < WAITS; i++) {
		pause_ns(NS_PER_S);
		error = spoke_future_wait(future);
	}
	result = spoke_future_result(future);
	if (error || result == NULL) {
		self.desk->counts[COUNT_LOST]++;
		desk_complain(self.desk, "a future never ended: %s", spoke_errname(error));
		return;
	}
	self.desk->counts[COUNT_FUTURES_ENDED]++;
	if (result->error == SPOKE_OK && !load_is(result->value, tag, len))
		wrong("got the answer of another call", SPOKE_OK);
	else if (result->error && !calls_error_is_due(result->error))
		wrong("ended with an impossible error", result->error);
}

static void call_some(void)
{
	struct spoke_future *futures[BATCH];
	uint64_t tags[BATCH];
	size_t lens[BATCH];

	for (unsigned i = 0; i < BATCH; i++) {
		tags[i] = ++self.tag;
		futures[i] = begin(&lens[i]);
		if (futures[i] && sim_chance(&self.dice, 50))
			spoke_future_cancel(futures[i]);
	}
	for (unsigned i = 0; i < BATCH; i++) {
		if (futures[i])
			end(futures[i], tags[i], lens[i]);
		spoke_future_free(futures[i]);
	}
}

static void *run(void *arg)
{
	while (!self.end) {
		self.busy = true;
		if (!board->hush)
			call_some();
		self.busy = false;
		pause_ns(PAUSE_NS);
	}
	self.gone = true;
	return arg;
}

bool futures_start(struct calls *calls, struct desk *desk, uint64_t seed)
{
	self.calls = calls;
	self.desk = desk;
	self.dice = sim_dice_make(seed);
	spoke_builder_init(&self.builder, memory_env(), NULL);
	return pthread_create(&self.thread, NULL, run, NULL) == 0;
}

void futures_end(void)
{
	self.end = true;
}

bool futures_rest(void)
{
	return !self.busy;
}

bool futures_gone(void)
{
	return self.gone;
}

void futures_join(void)
{
	(void)pthread_join(self.thread, NULL);
	spoke_builder_fini(&self.builder);
}
