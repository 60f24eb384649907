/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: a consumer with a journal that lives several times, in the world and with the providers
 * of clusterrig. A book has what it was told of each ticket in all of its lives.
 */
#ifndef TESTS_CLUSTER_CALL_LIVES_H
#define TESTS_CLUSTER_CALL_LIVES_H

#include "tests/cluster/clusterrig.h"

#define LIVES_FOLDER "/var/j"
#define LIVES_CALLS 512u

/* A call, and its ticket in all lives. */
struct lives_call {
	struct spoke_call name;
	unsigned ends;
	int error;
	char text[96];
	uint64_t id; /* of its ticket */
	unsigned told;
	unsigned settled;
	unsigned kept;
	enum spoke_ticket_settlement settlement;
	int settled_error;
	unsigned attempts;
	uint64_t lasted_ns;
};

/* A callback that frees the consumer. */
enum lives_frees {
	LIVES_FREE_NOWHERE,
	LIVES_FREE_IN_RECOVERED,
	LIVES_FREE_IN_SETTLED,
};

struct lives {
	struct spokei_world_process process;
	struct spoke_engine *engine; /* NULL: the process is dead */
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	struct lives_call calls[LIVES_CALLS];
	unsigned count;
	unsigned told;
	unsigned settled;
	struct spoke_recovered recovered; /* in this life */
	unsigned recoveries;
	struct spoke_consumer_options options;
	struct spoke_method_options method;
	char query[160]; /* of the URL */
	bool lacks_method;
	enum lives_frees frees;
	uint64_t ahead_ns; /* lead of the clock that counts while the machine sleeps, and of the
			      wall's */
	uint64_t fail_at;  /* the allocation that fails in a life, counted from 1; 0: none */
};

extern struct lives lives;

int lives_set_up(void **state);
int lives_tear_down(void **state);

/* Begins a life: a process with a consumer. Returns the result of spoke_consumer_new(). */
int lives_try(void);
void lives_begin(void);

/* The process ends at once. What it has written stays. */
void lives_kill(void);

/* ... and power fails. */
void lives_lose_power(void);

/* Makes a call. */
struct lives_call *lives_call(void);

/* Makes a call, and asserts that its ticket is told. */
struct lives_call *lives_deferred(void);

/* Asserts that all tickets that were told were settled once, and no other ones. */
void lives_check_book(void);

#endif
