/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that the processes of a soak share. It is mapped before they are forked, so the
 * counters of a process survive when it is killed. Each process writes only its own desk; the
 * conductor writes the rest.
 */
#ifndef TESTS_SOAK_BOARD_H
#define TESTS_SOAK_BOARD_H

#include <spoke/stats.h>

#include <stdatomic.h>

#define PROVIDERS 4u
#define CONSUMERS 5u
#define PROCESSES (PROVIDERS + CONSUMERS)
#define TEAMS 5u  /* consumers of the library in each consumer process */
#define SHARE 50u /* connections of a consumer process to each provider, all teams together */
#define CONNECTIONS (PROVIDERS * CONSUMERS * SHARE)

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

#define PATH_BYTES 128

/* Counters of calls in each process; pushes are the calls of a provider. */
#define COUNTS_OF_DESKS(X)                                                                         \
	X(CALLS, "calls begun")                                                                    \
	X(OK, "... answered")                                                                      \
	X(FAILED, "... ended with an error")                                                       \
	X(DEFERRED, "... continued as tickets")                                                    \
	X(REFUSED, "rejected by spoke_call()")                                                     \
	X(TICKETS, "tickets settled")                                                              \
	X(TOLD, "... and reported to the consumer")                                                \
	X(FUTURES, "futures begun")                                                                \
	X(FUTURES_ENDED, "... ended")                                                              \
	X(PUSHED, "pushes answered by a consumer")                                                 \
	X(TWICE, "calls that ended twice")                                                         \
	X(LOST, "calls that did not end in time")                                                  \
	X(WRONG, "wrong answers")

enum desk_count {
#define DESK_ENUM(name, sentence) COUNT_##name,
	COUNTS_OF_DESKS(DESK_ENUM)
#undef DESK_ENUM
	COUNTS,
};

#define ERRORS 64u     /* indices of errors, see error_index() */
#define SETTLEMENTS 6u /* of enum spoke_ticket_settlement */
#define COMPLAINT_BYTES 256

/* Counters and state of one process; zero when the process starts. */
struct desk {
	_Atomic uint64_t counts[COUNTS];
	_Atomic uint64_t errors[ERRORS];   /* results of calls */
	_Atomic uint64_t refusals[ERRORS]; /* calls that spoke_call() rejected */
	_Atomic uint64_t settlements[SETTLEMENTS];
	_Atomic uint64_t stats[SPOKE_STAT_COUNT]; /* the engine's counters, as of the last pulse */
	_Atomic uint64_t open;                    /* calls and tickets that have not ended */
	_Atomic uint64_t connections;             /* connections that are established now */
	_Atomic uint64_t ready;                   /* endpoints that are ready, all teams together */
	_Atomic uint64_t memory;                  /* bytes that the library has allocated */
	_Atomic uint64_t heap;                    /* bytes in use in malloc, at the last trim */
	_Atomic uint64_t holes;          /* free bytes that malloc kept, at the last trim */
	_Atomic uint64_t pulses;         /* grows while the process runs its engine */
	atomic_bool resting;             /* the process has no open calls of its own */
	atomic_bool trimmed;             /* the process has trimmed its memory, see board.trim */
	atomic_bool up;                  /* the process serves, or calls */
	atomic_bool done;                /* the process ended in order, and its counters add up */
	char complaint[COMPLAINT_BYTES]; /* text of the first failure */
	char address[PATH_BYTES]; /* of a provider; set by the conductor, kept over restarts */
};

struct board {
	struct desk desks[PROCESSES]; /* providers first */
	atomic_bool hush;             /* no process begins a call */
	atomic_uint storms; /* grows by one: every consumer process opens as many calls as possible,
			       once */
	atomic_bool trim;   /* every process returns unused memory to the system, once */
	uint64_t rate;      /* calls per second of one consumer process */
	uint64_t seed;
	char folder[PATH_BYTES]; /* directory of the unix sockets */
};

extern struct board *board;

/* Return the index of an error of <spoke/error.h>, and the error of an index. */
unsigned error_index(int error);
int error_of_index(unsigned index);

/* Records a failure of a process; only the first text is kept. */
__attribute__((format(printf, 2, 3))) void desk_complain(struct desk *desk, const char *format,
							 ...);

/* Copies the engine's counters to the desk. */
void desk_stats(struct desk *desk, const struct spoke_engine *engine);

#endif
