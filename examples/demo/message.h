/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines that the processes of the demo write to the driver. Tabs separate the fields.
 *
 *     event <ns> <user> <tag> <number> <peer> <text>   an event in the process
 *     counts <n> <n> ...                               its counts until now
 *     peer <address> <name>                            the name of the peer at that address
 */
#ifndef DEMO_MESSAGE_H
#define DEMO_MESSAGE_H

#include <spoke/stats.h>

#include <stdbool.h>
#include <stdint.h>

#define MESSAGE_MAX 1024 /* bytes of a line, with its end and a NUL */

/* Kinds of events that the driver can wait for. */
#define MESSAGE_TAGS(X)                                                                            \
	X(LISTENS)                                                                                 \
	X(CONNECTED)                                                                               \
	X(PROBATION)                                                                               \
	X(SUSPECT)                                                                                 \
	X(RECOVERED)                                                                               \
	X(READONLY)                                                                                \
	X(CLOSED)                                                                                  \
	X(RECONNECTING)                                                                            \
	X(ANSWERED)                                                                                \
	X(CALM)                                                                                    \
	X(PULSE)                                                                                   \
	X(PAUSED)                                                                                  \
	X(TOLD)                                                                                    \
	X(ADMIN)                                                                                   \
	X(ASKED)                                                                                   \
	X(HELD)                                                                                    \
	X(LOST)                                                                                    \
	X(GIVEN)                                                                                   \
	X(LATE)                                                                                    \
	X(RESTS)

enum message_tag {
#define MESSAGE_TAG(name) TAG_##name,
	MESSAGE_TAGS(MESSAGE_TAG)
#undef MESSAGE_TAG
	TAGS,
};

/* Gauges come first; they become 0 when the process ends. */
#define MESSAGE_COUNTS(X)                                                                          \
	X(WAITING)     /* failback tasks */                                                        \
	X(TRIES)       /* attempts of the oldest task */                                           \
	X(OPEN)        /* accepted calls without a result */                                       \
	X(LATE_US)     /* worst lateness of the wheel */                                           \
	X(HOLDS)       /* leases held */                                                           \
	X(CALLS)       /* accepted */                                                              \
	X(OK)          /* ended with an answer */                                                  \
	X(DEFERRED)    /* ended with a ticket */                                                   \
	X(FAILED)      /* ended with anything else */                                              \
	X(REFUSED)     /* refused by spoke_call() */                                               \
	X(RECOVERED)   /* tickets settled by an answer */                                          \
	X(UNRECOVERED) /* ... in another way */                                                    \
	X(SURVIVED)    /* tickets of a killed process, from its journal */                         \
	X(TIMED_OUT)   /* attempts whose deadline passed */                                        \
	X(RETRIES)     /* attempts after the first */                                              \
	X(UNFUNDED)    /* ... postponed by the retry budget */                                     \
	X(PROBES)      /* heartbeats sent */                                                       \
	X(MISSED)      /* ... not answered within an interval */                                   \
	X(BEATS)       /* heartbeats and answers received */                                       \
	X(BROKEN)      /* calls deferred because of a lost connection */                           \
	X(RECONNECTS)  /* pauses before a connect attempt */                                       \
	X(IDLE_CLOSES) /* connections closed by the idle check */                                  \
	X(SERVED)      /* requests answered */                                                     \
	X(GRANTED)     /* leases granted */                                                        \
	X(LOST)        /* ... that ended by `lost` */                                              \
	X(GIVEN)       /* ... that were given back */                                              \
	X(UNTOLD)      /* a lease was over, and `lost` not called yet */                           \
	X(WRITES)      /* answered, under a lease */                                               \
	X(LATE_WRITES) /* sent on purpose under a lease that was over */                           \
	X(HARM)        /* ... and accepted */                                                      \
	X(FENCED)      /* requests refused by a fence */                                           \
	X(RUNS)        /* orders that a handler has run */                                         \
	X(ANSWERS)     /* ... answered, also repeats from memory */

enum message_count {
#define MESSAGE_COUNT(name) COUNT_##name,
	MESSAGE_COUNTS(MESSAGE_COUNT)
#undef MESSAGE_COUNT
	COUNTS,
};

#define COUNT_FIRST_SUM COUNT_CALLS

enum message_kind {
	MESSAGE_NONE, /* invalid */
	MESSAGE_EVENT,
	MESSAGE_COUNTED,
	MESSAGE_PEER,
};

/* A parsed line; texts point into it. */
struct message {
	enum message_kind kind;
	uint64_t at_ns; /* of the monotonic clock */
	enum spoke_event_user user;
	enum message_tag tag;
	unsigned number;  /* of SUSPECT: heartbeats missed; of PAUSED: ms without CPU until now */
	const char *peer; /* an address; "-": none */
	const char *text; /* of an event; of PEER: the name */
	uint64_t counts[COUNTS];
};

/* Write to standard output. Texts must not contain tabs or newlines. */
void message_write_event(uint64_t at_ns, enum spoke_event_user user, enum message_tag tag,
			 unsigned number, const char *peer, const char *text);
void message_write_counts(const uint64_t *counts);
void message_write_peer(const char *address, const char *name);

/* Parses a line without its newline, and modifies it. */
void message_read(char *line, struct message *ret);

#endif
