/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers and a consumer in the virtual world, each in a process of its own, with a registry
 * between them.
 */
#ifndef TESTS_CLUSTER_CONSUMER_SUBSCRIPTIONRIG_H
#define TESTS_CLUSTER_CONSUMER_SUBSCRIPTIONRIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/virtual/faults.h"
#include "core/virtual/files.h"
#include "core/virtual/world.h"
#include "tests/cluster/fakereg.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define RETRY_MAX_NS (6 * SECOND) /* 5 s and 20 %, */
#define SOON_NS (100 * MS)        /* ... and what else has to be done then */
#define ECHO "demo.Echo"

enum {
	PROVIDERS = 3,
	CLIENT = PROVIDERS,
	PROCESSES,
};

struct subscriptionrig {
	struct spokei_world world;
	struct spokei_world_process processes[PROCESSES];
	const char *registry; /* fakereg.h's until a test names another one */
	const struct spoke_registry *kind;
	struct spokei_faults faulty;
	struct spoke_engine *engines[PROCESSES]; /* NULL: none */
	struct spoke_provider *providers[PROVIDERS];
	unsigned served[PROVIDERS];
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	unsigned ended;
	int error; /* of the last call */
	void (*in_changed)(void);
	void (*in_done)(void);
	void (*in_serve)(void);
};

extern struct subscriptionrig subscriptionrig;

int subscriptionrig_set_up(void **state);
int subscriptionrig_tear_down(void **state);
void subscriptionrig_pass(uint64_t ns);

/* Makes a provider; frees it, and ends its process. */
void subscriptionrig_provide(int which);
void subscriptionrig_provide_as(int which, const char *version);
void subscriptionrig_end_provider(int which);

/* Makes the consumer; `cache` may be NULL. The first returns the error. */
int subscriptionrig_try_consumer(const char *cache);
void subscriptionrig_consume(const char *cache);
void subscriptionrig_free_consumer(void);

/* Calls, and waits for the end; the error. */
int subscriptionrig_try_call(void);

/* How many providers the consumer knows. */
size_t subscriptionrig_endpoints(void);

#endif
