/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: a consumer and several providers of one service in the virtual world. Providers start,
 * stop and behave as the test sets. The rig records the end of every call and every ticket.
 */
#ifndef TESTS_CLUSTER_CLUSTERRIG_H
#define TESTS_CLUSTER_CLUSTERRIG_H

#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

enum {
	RIG_PROVIDERS = 5,
	RIG_CALLS = 20000,
	RIG_RUNS = 64,
};

/* The behaviour of a provider's handler. */
enum rig_manner {
	RIG_ECHO,
	RIG_ERROR,  /* replies with an application error */
	RIG_SILENT, /* never replies */
	RIG_SLOW,   /* replies after up to 2 ms, and in one of 16 cases up to 16 ms */
	RIG_REFUSE, /* the provider drains and rejects the request before its handler */
	RIG_FORBID, /* the provider does not let the caller in */
};

/* A request that reached its handler. */
struct rig_run {
	char id[33];     /* attachment; "": absent */
	char repeat[32]; /* the same */
	unsigned attempt;
	uint64_t at_ns;
	unsigned provider;
};

/* A request that a SLOW handler answers later. */
struct rig_slow {
	struct spoke_alarm alarm;
	struct spoke_request *request; /* NULL: a free place */
};

struct rig_provider {
	struct spokei_world_process process;
	struct spoke_engine *engine; /* NULL: not running */
	struct spoke_provider *provider;
	enum rig_manner manner;
	unsigned runs;
	char address[32];
	char url[64];
	struct spoke_request *held[RIG_RUNS]; /* requests kept while SILENT */
	unsigned held_count;
	uint64_t least_ns; /* of SLOW, in addition */
	uint64_t dice;
	struct rig_slow slow[RIG_RUNS];
};

struct rig_call {
	struct spoke_call name;
	unsigned ends;
	unsigned attempts;
	int error;
	bool written;
	bool fallback;
	struct spoke_ticket ticket;
	unsigned settled;
	enum spoke_ticket_settlement settlement;
	int settled_error;
	unsigned settled_attempts;
	uint64_t lasted_ns;
	uint64_t id;
};

struct clusterrig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct rig_provider providers[RIG_PROVIDERS];
	unsigned provider_count;
	struct rig_call calls[RIG_CALLS];
	unsigned call_count;
	unsigned ended;
	unsigned settled;       /* calls of the consumer's callback */
	unsigned settled_by[8]; /* the same, by kind of settlement */
	struct rig_run run_list[RIG_RUNS];
	unsigned runs;
	bool calling;
	uint64_t dedupe_ns; /* of providers that start; 0: none */
	/* Called from the callbacks; may be NULL. */
	void (*in_done)(struct rig_call *call);
	void (*in_settled)(struct rig_call *call);
};

extern struct clusterrig clusterrig;

int clusterrig_set_up(void **state);
int clusterrig_tear_down(void **state);

/* Starts `count` providers at addresses from 127.0.0.1:20880 on. */
void clusterrig_provide(unsigned count);
void clusterrig_start(unsigned which);
/* Stops a provider at once, like a killed process. */
void clusterrig_kill(unsigned which);

/* Makes the consumer with all providers in its URL, extended by `query`. Waits until it is
 * connected to the running ones. */
void clusterrig_consume(const char *query, const struct spoke_consumer_options *options);

struct spoke_method *clusterrig_method(const char *name,
				       const struct spoke_method_options *options);

/* Makes the consumer with failback. Returns its method "echo". */
struct spoke_method *clusterrig_failback(const char *query);

void clusterrig_pass(uint64_t ns);
uint64_t clusterrig_stat(enum spoke_stat stat);

/* Call with one number as argument. The first returns the result of spoke_call(), the others the
 * call. */
int clusterrig_try(struct spoke_method *method, const struct spoke_call_options *options);
struct rig_call *clusterrig_call(struct spoke_method *method);
struct rig_call *clusterrig_call_with(struct spoke_method *method,
				      const struct spoke_call_options *options);

/* Runs until the call has ended. */
void clusterrig_end(struct rig_call *call);

/* Makes a call and asserts that it becomes a ticket. */
struct rig_call *clusterrig_deferred(struct spoke_method *method);

void clusterrig_free_consumer(void);

#endif
