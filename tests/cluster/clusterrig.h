/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer and several providers of one service in the virtual world, which come and go, and
 * behave as they are told; and how every call and every ticket ended.
 */
#ifndef TESTS_CLUSTER_CLUSTERRIG_H
#define TESTS_CLUSTER_CLUSTERRIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/virtual/faults.h"
#include "core/virtual/world.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

enum {
	RIG_PROVIDERS = 5,
	RIG_CALLS = 20000,
	RIG_RUNS = 64,
};

/* What a provider's handler does. */
enum rig_manner {
	RIG_ECHO,
	RIG_ERROR,  /* answers with an error of its own */
	RIG_SILENT, /* never answers */
	RIG_REFUSE, /* it is refused before the handler: it drains */
};

/* A request that ran. */
struct rig_run {
	char id[17]; /* attachments; "": none */
	unsigned attempt;
	uint64_t at_ns;
	unsigned provider;
};

struct rig_provider {
	struct spokei_world_process process;
	struct spoke_engine *engine; /* NULL: it does not run */
	struct spoke_provider *provider;
	enum rig_manner manner;
	unsigned runs;
	char address[32];
	char url[64];
	struct spoke_request *held[RIG_RUNS]; /* by SILENT */
	unsigned held_count;
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
	unsigned settled;       /* told to the consumer's option */
	unsigned settled_by[8]; /* ... by settlement */
	struct rig_run run_list[RIG_RUNS];
	unsigned runs;
	bool calling;
	/* Done in the callbacks; may be NULL. */
	void (*in_done)(struct rig_call *call);
	void (*in_settled)(struct rig_call *call);
};

extern struct clusterrig clusterrig;

int clusterrig_set_up(void **state);
int clusterrig_tear_down(void **state);

/* So many providers run, each at a place of its own: 127.0.0.1:20880 and on. */
void clusterrig_provide(unsigned count);
void clusterrig_start(unsigned which);
/* It is gone at once, as a process that was killed. */
void clusterrig_kill(unsigned which);

/* The consumer, of all of them; what `query` says is added to its URL. Waits until it is connected
 * to those that run. */
void clusterrig_consume(const char *query, const struct spoke_consumer_options *options);

struct spoke_method *clusterrig_method(const char *name,
				       const struct spoke_method_options *options);

/* The same with failback, and its method "echo". */
struct spoke_method *clusterrig_failback(const char *query);

void clusterrig_pass(uint64_t ns);
uint64_t clusterrig_stat(enum spoke_stat stat);

/* Calls with one number as argument; what spoke_call() returned, and the call. */
int clusterrig_try(struct spoke_method *method, const struct spoke_call_options *options);
struct rig_call *clusterrig_call(struct spoke_method *method);
struct rig_call *clusterrig_call_with(struct spoke_method *method,
				      const struct spoke_call_options *options);

/* Goes on until it has ended. */
void clusterrig_end(struct rig_call *call);

/* Calls, and demands that it gets a ticket. */
struct rig_call *clusterrig_deferred(struct spoke_method *method);

void clusterrig_free_consumer(void);

#endif
