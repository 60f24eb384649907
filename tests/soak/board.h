/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of a soak share: memory that was mapped before they were forked, so that what
 * a process has counted is known after it was killed. Each process writes its own desk alone, the
 * conductor the rest.
 */
#ifndef TESTS_SOAK_BOARD_H
#define TESTS_SOAK_BOARD_H

#include <spoke/stats.h>

#include <stdatomic.h>

#define PROVIDERS 4u
#define CONSUMERS 5u
#define PROCESSES (PROVIDERS + CONSUMERS)
#define TEAMS 5u  /* consumers of the library in each consumer process */
#define SHARE 50u /* connections of a consumer process to each provider, of all its teams */
#define CONNECTIONS (PROVIDERS * CONSUMERS * SHARE)

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

#define PATH_BYTES 128

/* What each process counts of its calls; pushes are the calls of a provider. */
#define COUNTS_OF_DESKS(X)                                                                         \
	X(CALLS, "calls begun")                                                                    \
	X(OK, "... answered")                                                                      \
	X(FAILED, "... ended with an error")                                                       \
	X(DEFERRED, "... went on as tickets")                                                      \
	X(REFUSED, "refused before they began")                                                    \
	X(TICKETS, "tickets settled")                                                              \
	X(TOLD, "... and told to the consumer as well")                                            \
	X(FUTURES, "futures of a thread begun")                                                    \
	X(FUTURES_ENDED, "... ended")                                                              \
	X(PUSHED, "pushes that a consumer answered")                                               \
	X(TWICE, "ends of what had ended already")                                                 \
	X(LOST, "without an end in their time")                                                    \
	X(WRONG, "answers that do not belong to their requests")

enum desk_count {
#define DESK_ENUM(name, sentence) COUNT_##name,
	COUNTS_OF_DESKS(DESK_ENUM)
#undef DESK_ENUM
	COUNTS,
};

#define ERRORS 64u     /* numbers of errors, see error_index() */
#define SETTLEMENTS 6u /* of enum spoke_ticket_settlement */
#define COMPLAINT_BYTES 256

/* Of one process; begins with zeros when it does. */
struct desk {
	_Atomic uint64_t counts[COUNTS];
	_Atomic uint64_t errors[ERRORS];   /* of ends */
	_Atomic uint64_t refusals[ERRORS]; /* of calls that were not taken */
	_Atomic uint64_t settlements[SETTLEMENTS];
	_Atomic uint64_t stats[SPOKE_STAT_COUNT]; /* the engine's, as of the last pulse */
	_Atomic uint64_t open;                    /* calls and tickets without an end */
	_Atomic uint64_t connections;             /* that stand now */
	_Atomic uint64_t ready;                   /* endpoints that can be called, of all teams */
	_Atomic uint64_t memory; /* bytes that the library has of its environment */
	_Atomic uint64_t heap;   /* bytes that the C library has given out, at the last trim */
	_Atomic uint64_t holes;  /* ... and those that it kept between them */
	_Atomic uint64_t pulses; /* grows while the process turns its engine */
	atomic_bool resting;     /* nothing of its own is open */
	atomic_bool trimmed;     /* it has, see board.trim */
	atomic_bool up;          /* it serves, or calls */
	atomic_bool done;        /* it ended as it should, and its sums are right */
	char complaint[COMPLAINT_BYTES]; /* the first */
	char address[PATH_BYTES];        /* of a provider; the conductor's, and stays */
};

struct board {
	struct desk desks[PROCESSES]; /* providers first */
	atomic_bool hush;             /* nobody begins a call */
	atomic_uint storms;           /* grows: every consumer process fills its book, once */
	atomic_bool trim;             /* memory that is kept for later is given back, once */
	uint64_t rate;                /* calls a second of one consumer process */
	uint64_t seed;
	char folder[PATH_BYTES]; /* of the unix sockets */
};

extern struct board *board;

/* A place for each error of <spoke/error.h>, and back. */
unsigned error_index(int error);
int error_of_index(unsigned index);

/* Keeps the first complaint of a process. */
__attribute__((format(printf, 2, 3))) void desk_complain(struct desk *desk, const char *format,
							 ...);

/* The engine's counters as they are now. */
void desk_stats(struct desk *desk, const struct spoke_engine *engine);

#endif
