/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rig for leases at a real Redis: an engine with leases in the test program, a record of all that
 * they report, one server for all tests of a program, and the relay between both. A test runs the
 * engine until something becomes true, and never for a time.
 */
#ifndef TESTS_INTEGRATION_REDISRIG_H
#define TESTS_INTEGRATION_REDISRIG_H

#include "core/virtual/faults.h"
#include "tests/integration/redispeer.h"
#include "tests/integration/redisrelay.h"
#include "tests/integration/redisserver.h"
#include "tests/integration/rig.h"

#include <spoke/engine.h>
#include <spoke/lease.h>
#include <spoke/stats.h>

#define REDISRIG_ASKS_MAX 256u
#define REDISRIG_TEXT 256u

/* A time to live that no test outlasts: nothing happens by time. */
#define LONG_NS (600 * SECOND)
#define LONG_MS 600000u

/* An ask, and what became of it. */
struct asked {
	char name[SPOKE_LEASE_NAME_MAX + 1];
	struct spoke_lease lease;
	unsigned told;
	int error;
	uint64_t fence;
	uint64_t busy_ns;  /* of EBUSY: the time of the other holder */
	uint64_t valid_ns; /* left when it was told */
	uint64_t told_ns;  /* when, on rig_now() */
	char text[REDISRIG_TEXT];
	unsigned lost;
	enum spoke_lease_loss why;
	uint64_t lost_ns;
	unsigned released;
	int release_error;
	bool is_cancelled; /* released by the test */
};

struct redisrig {
	struct spokei_faults faulty;
	struct spoke_env env; /* that of `faulty`, with a log */
	struct spoke_engine *engine;
	struct spoke_leases *leases;
	struct asked asks[REDISRIG_ASKS_MAX];
	size_t ask_count;
	char log[16384]; /* lines of warnings and errors; the oldest are kept */
	size_t log_len;
	unsigned log_lines;
};

extern struct redisrig redisrig;
extern struct redisserver redis; /* the server of all tests of the program */

/* The group of a file: one server for all its tests. */
int redisrig_set_up_all(void **state);
int redisrig_tear_down_all(void **state);
int redisrig_set_up(void **state);    /* an empty server, the relay, an engine */
int redisrig_tear_down(void **state); /* checks that each ask ended once and nothing is left */

/* Opens the leases: through the relay, unless the options have a store. */
void redisrig_open(const struct spoke_leases_options *options);

/* Opens the leases with a time to live, through the relay, and waits for the connection. */
void redisrig_open_ttl(uint64_t ttl_ns);

/* Opens the leases at the server itself. */
void redisrig_open_direct(uint64_t ttl_ns);

void redisrig_free(void);

/* Ask for a lease. The record is valid until the end of the test. */
struct asked *redisrig_ask(const char *name, uint64_t wait_ns);
struct asked *redisrig_ask_at(struct spoke_leases *leases, const char *name,
			      const struct spoke_lease_options *options);

/* Asks, and waits until it is held; the test fails if it is not. */
struct asked *redisrig_hold(const char *name);

/* Waits for the answer, and returns its error. */
int redisrig_answer(const struct asked *asked);

/* Releases a lease, or cancels an ask; the second function waits for the answer and returns its
 * error. */
void redisrig_begin_release(struct asked *asked);
int redisrig_release(struct asked *asked);

/* Waits until a held lease is lost, and returns why. */
enum spoke_lease_loss redisrig_loss(const struct asked *asked);

uint64_t redisrig_left(const struct asked *asked);

/* Waits until the lease was renewed: the server counts its time to live anew. */
void redisrig_until_renewed(const struct asked *asked);

/* Passes everything on that is under way: a lease of another name is asked for, held and released
 * at the same connections. */
void redisrig_settle(void);

/* Waits until waiters of a name listen to its channel, and have tried once since. Only a message,
 * or the end of the lock's time, lets them try again. */
void redisrig_until_waiting(const char *name);

/* Returns how often the log has these words. */
unsigned redisrig_logged(const char *words);

/* Returns how many scripts the server has run since stranger("CONFIG", "RESETSTAT"). */
unsigned redisrig_scripts(void);

/* Runs one turn of the engine, which waits a short time at most, and the relay. */
void redisrig_turn(void);

/* Run the engine until the condition holds, or while it holds; the test fails if that takes too
 * long. */
#define redisrig_until(condition)                                                                  \
	do {                                                                                       \
		uint64_t redisrig_end_ns = rig_now() + 60 * SECOND;                                \
                                                                                                   \
		while (!(condition))                                                               \
			redisrig_turn_until(redisrig_end_ns, #condition, __FILE__, __LINE__);      \
	} while (0)
void redisrig_turn_until(uint64_t end_ns, const char *what, const char *file, int line);

#endif
