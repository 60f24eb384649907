/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixture of tests of leases: a virtual world with a Redis in memory and two programs, each
 * with an engine and its leases. Every ask has a record of the calls to its user, which checks that
 * each is told once, and ends once if it was held.
 */
#ifndef TESTS_CLUSTER_LEASE_LEASERIG_H
#define TESTS_CLUSTER_LEASE_LEASERIG_H

#include "core/virtual/faults.h"
#include "tests/support/redis/redis.h"
#include "tests/support/test.h"

#include <spoke/engine.h>
#include <spoke/lease.h>
#include <spoke/stats.h>

#define LEASERIG_AT "127.0.0.1:6379"
#define LEASERIG_ASKS 16384
#define LEASERIG_TTL (30 * SECOND)
#define LEASERIG_GUARD (LEASERIG_TTL / 10 + LEASERIG_TTL / 100 + 2 * MS)

/* A program. */
struct leaserig_program {
	struct spokei_world_process process;
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	struct spoke_leases *leases;
	unsigned logged; /* lines of its log */
};

/* An ask, and then a lease. */
struct leaserig_ask {
	struct leaserig_program *program;
	struct spoke_lease lease;
	unsigned told;
	unsigned lost;
	unsigned released;
	bool given; /* leaserig_release() was called */
	int error;  /* of the answer */
	uint64_t fence;
	uint64_t left_ns; /* of the answer */
	char text[64];
	enum spoke_lease_loss why;
	int end; /* what the release was told */
	uint64_t told_ns;
	uint64_t lost_ns;
	uint64_t released_ns;
	uint64_t left_at_call_ns; /* what spoke_lease_left() returned in the last callback */
	/* Called in the callbacks told and lost; may be NULL. */
	void (*then)(struct leaserig_ask *ask);
};

struct leaserig {
	struct spokei_world world;
	struct fakeredis server;
	struct fakeredis replica; /* not started */
	struct leaserig_program one;
	struct leaserig_program two; /* without leases until leaserig_join() */
	struct leaserig_ask asks[LEASERIG_ASKS];
	unsigned asked;
	struct leaserig_ask *order[64]; /* asks in the order of their first HELD */
	unsigned held;
};

extern struct leaserig leaserig;

/* Starts the server and the leases of the first program, and connects them. */
int leaserig_set_up(void **state);
int leaserig_tear_down(void **state);

/* The same without the leases. */
int leaserig_set_up_world(void **state);

/* Makes leases with these options; the store is the server in memory. */
void leaserig_join(struct leaserig_program *program, const struct spoke_leases_options *options);

/* Frees what the program has. */
void leaserig_leave(struct leaserig_program *program);

void leaserig_pass(uint64_t ns);

/* Asks; the options' callbacks are the rig's. Asserts that the ask is accepted. */
struct leaserig_ask *leaserig_ask_with(struct leaserig_program *program, const char *name,
				       const struct spoke_lease_options *options);

/* The same; returns NULL if the ask is rejected. */
struct leaserig_ask *leaserig_ask_if(struct leaserig_program *program, const char *name,
				     const struct spoke_lease_options *options);

/* Asks without waiting, or waits for ever, in the first program. */
struct leaserig_ask *leaserig_try(const char *name);
struct leaserig_ask *leaserig_wait(const char *name);

/* Asks without waiting, and asserts that the lease is held. */
struct leaserig_ask *leaserig_hold(const char *name);

/* Releases; the end is in the record. */
void leaserig_release(struct leaserig_ask *ask);

static inline uint64_t leaserig_stat(enum spoke_stat stat)
{
	return spoke_stat_get(leaserig.one.engine, stat);
}

#endif
