/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a soak: started, stopped, killed and reaped by their ids. Used by the conductor
 * only.
 */
#ifndef TESTS_SOAK_CAST_H
#define TESTS_SOAK_CAST_H

#include "board.h"
#include "plan.h"
#include "tests/sim/dice.h"

#include <sys/types.h>

enum actor_state {
	ACTOR_NONE, /* never started */
	ACTOR_DOWN, /* not running; starts again at `until_ns` */
	ACTOR_UP,
	ACTOR_FROZEN, /* until `until_ns` */
	ACTOR_ENDING, /* asked to end; must do so by `until_ns` */
};

enum actor_harm {
	HARM_KILL,
	HARM_FREEZE,
	HARM_END, /* asked to end, as for an upgrade */
	HARMS,
};

struct actor {
	char name[32];
	bool provides;
	unsigned index; /* among the processes of its kind */
	unsigned lives;
	pid_t pid; /* 0: none */
	enum actor_state state;
	uint64_t until_ns;
	bool killed;      /* by the conductor */
	struct desk past; /* counters of its earlier lives */
	uint64_t dropped; /* open calls and tickets of its killed lives */
};

struct cast {
	struct actor actors[PROCESSES];
	uint64_t harms[2][HARMS]; /* faults of consumers, of providers */
	unsigned failures;        /* failures of the test, printed to stderr */
	uint64_t begun_ns;
};

extern struct cast cast;

uint64_t cast_now(void);

/* Maps the board, creates the directory and starts all processes. Returns false after printing the
 * reason. */
bool cast_begin(const struct plan *plan);

/* A signal asked for the end. */
bool cast_interrupted(void);

/* Reaps processes that have ended; thaws and restarts those that are due. */
void cast_tend(void);

/* Disturbs a process that is up; `for_ns`: duration of the freeze or absence. */
void cast_harm(struct actor *actor, enum actor_harm harm, uint64_t for_ns);

/* Returns whether all processes are up, with all connections and every endpoint ready. */
bool cast_whole(void);

/* Returns whether no process has an open call. Used after board->hush was set. */
bool cast_rests(void);

/* Returns whether all processes have trimmed their memory, after board->trim was set. */
bool cast_trimmed(void);

/* Returns the number of processes that are not up. */
unsigned cast_harmed(void);

/* Return the sum of a counter over all lives of all processes, or of one kind of process. */
uint64_t cast_count(enum desk_count count);
uint64_t cast_count_of(bool provides, enum desk_count count);

/* Asks all processes of one kind to end and waits for them. */
void cast_end(bool provides);

/* Kills the remaining processes and removes the directory. */
void cast_close(void);

/* Prints a failure to stderr and counts it. */
__attribute__((format(printf, 1, 2))) void cast_fail(const char *format, ...);

#endif
