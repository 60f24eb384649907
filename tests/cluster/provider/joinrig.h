/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: providers on several engines of one process that listen together, and a process with
 * many consumers, in the virtual world.
 */
#ifndef TESTS_CLUSTER_PROVIDER_JOINRIG_H
#define TESTS_CLUSTER_PROVIDER_JOINRIG_H

#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

enum {
	ENGINES = 3,
	CALLERS = 200,
};

#define PORT "dubbo://127.0.0.1:20880"
#define PATH "unix:/run/joined.sock"

struct joinrig_caller {
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	unsigned begun;
	unsigned ends;
	int error; /* of the last call */
};

struct joinrig {
	struct spokei_world world;
	struct joinrig_side {
		struct spokei_world_process process;
		struct spokei_faults faulty;
		struct spoke_engine *engine; /* NULL: freed */
		struct spoke_provider *provider;
		unsigned served;
	} sides[ENGINES];
	struct spokei_world_process client;
	struct spoke_engine *engine; /* the consumers' */
	struct joinrig_caller callers[CALLERS];
	unsigned count;
};

extern struct joinrig joinrig;

int joinrig_set_up(void **state);
int joinrig_tear_down(void **state);

/* Makes a provider on its own engine; `options` may be NULL. */
void joinrig_provide(unsigned at, const struct spoke_provider_options *options);

/* Frees the engine with everything on it. */
void joinrig_end(unsigned at);

void joinrig_listen(unsigned at, const char *url);
void joinrig_join(unsigned at, unsigned first);

/* Adds `count` consumers, each with a connection to `place`. */
void joinrig_consume(const char *place, unsigned count);

/* Begins one call of every consumer. */
void joinrig_call(void);

/* Waits for a second, in which all calls end. Returns how many ended with this error. */
unsigned joinrig_ended(int error);

void joinrig_pass(uint64_t ns);
size_t joinrig_connections(unsigned at);

#endif
