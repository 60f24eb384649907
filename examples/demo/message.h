/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of the demo write to the driver: lines, with tabs between their fields.
 *
 *     event <ns> <user> <tag> <number> <peer> <text>   something happened in it
 *     counts <n> <n> ...                               what it has counted until now
 *     peer <address> <name>                            who it is that is connected from there
 */
#ifndef DEMO_MESSAGE_H
#define DEMO_MESSAGE_H

#include <spoke/stats.h>

#include <stdbool.h>
#include <stdint.h>

#define MESSAGE_MAX 1024 /* bytes of a line, with its end and a NUL */

/* What an event is, for the driver to wait for. */
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
	X(TOLD)                                                                                    \
	X(ADMIN)                                                                                   \
	X(RESTS)

enum message_tag {
#define MESSAGE_TAG(name) TAG_##name,
	MESSAGE_TAGS(MESSAGE_TAG)
#undef MESSAGE_TAG
	TAGS,
};

/* Gauges come first: they are of now, and nothing is left of them when their process ends. */
#define MESSAGE_COUNTS(X)                                                                          \
	X(WAITING)     /* failback tasks */                                                        \
	X(TRIES)       /* attempts of the oldest one of them */                                    \
	X(OPEN)        /* calls that were taken, and whose callers were not told of an end */      \
	X(LATE_US)     /* the worst lateness of its wheel */                                       \
	X(CALLS)       /* that were taken */                                                       \
	X(OK)          /* ended with an answer */                                                  \
	X(DEFERRED)    /* ended with a ticket */                                                   \
	X(FAILED)      /* ended with anything else */                                              \
	X(REFUSED)     /* not taken */                                                             \
	X(RECOVERED)   /* tickets settled by an answer */                                          \
	X(UNRECOVERED) /* ... in another way */                                                    \
	X(TIMED_OUT)   /* attempts whose deadline passed */                                        \
	X(RETRIES)     /* attempts beside the first */                                             \
	X(UNFUNDED)    /* ... put off for want of budget */                                        \
	X(PROBES)      /* heartbeats sent */                                                       \
	X(MISSED)      /* ... not answered within an interval */                                   \
	X(BEATS)       /* heartbeats, and answers to them, that came in */                         \
	X(BROKEN)      /* times calls were deferred because their connection ended */              \
	X(RECONNECTS)  /* pauses before another attempt to connect */                              \
	X(IDLE_CLOSES) /* connections closed by the idle check */                                  \
	X(SERVED)      /* requests answered */

enum message_count {
#define MESSAGE_COUNT(name) COUNT_##name,
	MESSAGE_COUNTS(MESSAGE_COUNT)
#undef MESSAGE_COUNT
	COUNTS,
};

#define COUNT_FIRST_SUM COUNT_CALLS

enum message_kind {
	MESSAGE_NONE, /* it is not understood */
	MESSAGE_EVENT,
	MESSAGE_COUNTED,
	MESSAGE_PEER,
};

/* A line that was read; texts point into it. */
struct message {
	enum message_kind kind;
	uint64_t at_ns; /* of the machine's monotonic clock */
	enum spoke_event_user user;
	enum message_tag tag;
	unsigned number;  /* of SUSPECT: heartbeats missed */
	const char *peer; /* an address; "-": none */
	const char *text; /* of an event; of PEER: the name */
	uint64_t counts[COUNTS];
};

/* Writes to standard output. Texts have neither tabs nor ends of lines. */
void message_write_event(uint64_t at_ns, enum spoke_event_user user, enum message_tag tag,
			 unsigned number, const char *peer, const char *text);
void message_write_counts(const uint64_t *counts);
void message_write_peer(const char *address, const char *name);

/* Reads a line without its end, which is cut up. */
void message_read(char *line, struct message *ret);

#endif
