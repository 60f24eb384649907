/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: providers and a consumer in the virtual world, each in its own process, with a registry
 * between them.
 */
#ifndef TESTS_CLUSTER_CONSUMER_SUBSCRIPTIONRIG_H
#define TESTS_CLUSTER_CONSUMER_SUBSCRIPTIONRIG_H

#include "core/virtual/faults.h"
#include "core/virtual/files.h"
#include "core/virtual/world.h"
#include "tests/cluster/fakereg.h"
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#define RETRY_MAX_NS (6 * SECOND) /* 5 s plus 20 % */
#define SOON_NS (100 * MS)        /* enough for all other steps */
#define ECHO "demo.Echo"

enum {
	PROVIDERS = 3,
	CLIENT = PROVIDERS,
	PROCESSES,
};

struct subscriptionrig {
	struct spokei_world world;
	struct spokei_world_process processes[PROCESSES];
	const char *registry; /* the URL; that of fakereg.h unless a test changes it */
	const struct spoke_registry *kind;
	struct spokei_faults faulty;
	struct spoke_engine *engines[PROCESSES]; /* NULL: not running */
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

/* Make a provider, or free it and end its process. */
void subscriptionrig_provide(int which);
void subscriptionrig_provide_as(int which, const char *version);
void subscriptionrig_end_provider(int which);

/* Make the consumer; `cache` may be NULL. The first function returns the error. */
int subscriptionrig_try_consumer(const char *cache);
void subscriptionrig_consume(const char *cache);
void subscriptionrig_free_consumer(void);

/* Makes a call and waits for its end. Returns the error. */
int subscriptionrig_try_call(void);

/* Returns the number of providers that the consumer knows. */
size_t subscriptionrig_endpoints(void);

#endif
