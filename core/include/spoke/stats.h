/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an engine has counted since it was made, and the last things that happened on it. Counters
 * only grow; what is there now (connections, calls waiting) is the difference of two.
 */
#ifndef SPOKE_STATS_H
#define SPOKE_STATS_H

#include <spoke/error.h>

SPOKE_BEGIN_DECLS

struct spoke_engine;
struct spoke_histogram;

/* name, sentence; the order is fixed for ever, new ones come at the end */
#define SPOKE_STATS(X)                                                                             \
	X(BYTES_READ, "bytes read from sockets")                                                   \
	X(BYTES_WRITTEN, "bytes written to sockets")                                               \
	X(READS, "system calls that read")                                                         \
	X(WRITES, "system calls that wrote")                                                       \
	X(MESSAGES_READ, "messages that came in, of all kinds")                                    \
	X(MESSAGES_WRITTEN, "messages put on their way, of all kinds")                             \
	X(CONNECTS, "attempts to connect")                                                         \
	X(CONNECTS_FAILED, "attempts to connect that failed")                                      \
	X(CONNECTS_SELF, "attempts that led to their own start")                                   \
	X(RESOLVES_FAILED, "names that could not be resolved")                                     \
	X(CONNECTED, "connections made by consumers")                                              \
	X(ACCEPTED, "connections taken, by providers and the page")                                \
	X(ACCEPTS_FAILED, "errors of accept()")                                                    \
	X(ACCEPTS_SHED, "connections closed at once for want of descriptors")                      \
	X(ACCEPTS_REFUSED_TOTAL, "connections closed at once: over the limit in all")              \
	X(ACCEPTS_REFUSED_PEER, "connections closed at once: over the limit of their address")     \
	X(CLOSED, "connections that ended, for whatever reason")                                   \
	X(CLOSED_BY_PEER, "... because the peer closed or reset them")                             \
	X(CLOSED_PROTOCOL, "... because the peer broke the protocol")                              \
	X(CLOSED_LARGE, "... because a frame was announced that is over the limit")                \
	X(CLOSED_FRAME_TIME, "... because a frame was begun and not finished in time")             \
	X(CLOSED_MUTE, "... because the peer never said anything")                                 \
	X(CLOSED_SLOW, "... because the peer did not read what it was sent")                       \
	X(CLOSED_ID_TWICE, "... because a request id was in flight twice")                         \
	X(CLOSED_UNWANTED, "... because a reply came to a side that never asked")                  \
	X(CLOSED_UNKNOWN_REPLIES, "... because of too many replies to calls never made")           \
	X(CLOSED_MEMORY, "... because there was no memory for it")                                 \
	X(READS_PAUSED, "times a connection was not read because its output waited")               \
	X(PROBES_READ, "heartbeats that came in")                                                  \
	X(PROBES_WRITTEN, "heartbeats sent")                                                       \
	X(PROBE_ANSWERS_READ, "answers to heartbeats that came in")                                \
	X(EVENTS_IGNORED, "events that are not understood")                                        \
	X(BAD_REQUESTS, "requests whose body could not be understood")                             \
	X(BAD_REPLIES, "replies whose body could not be understood")                               \
	X(REPLIES_LATE, "replies to calls that had ended already, dropped")                        \
	X(REPLIES_UNKNOWN, "replies to calls the connection never made, dropped")                  \
	X(REQUESTS_UNWANTED, "requests to a consumer that serves none")                            \
	X(CALLS, "calls begun")                                                                    \
	X(CALLS_OK, "calls that ended well, one-way ones included")                                \
	X(CALLS_REMOTE, "calls that ended with an error from the provider")                        \
	X(CALLS_TIMEOUT_UNSENT, "calls whose deadline passed before they were written")            \
	X(CALLS_TIMEOUT, "calls whose deadline passed after they were written")                    \
	X(CALLS_LOST, "calls whose connection was lost or could not be made")                      \
	X(CALLS_CANCELED, "calls that were cancelled")                                             \
	X(CALLS_CLOSED, "calls that ended because their consumer did")                             \
	X(CALLS_FAILED, "calls that ended for another reason here")                                \
	X(CALLS_REFUSED, "calls refused before they began: their function returned an error")      \
	X(REQUESTS, "requests that came in whole")                                                 \
	X(REQUESTS_OK, "requests answered with a value, or one-way and done")                      \
	X(REQUESTS_ERROR, "requests answered with an error of the handler")                        \
	X(REQUESTS_NO_SERVICE, "requests for a service or method that is not here")                \
	X(REQUESTS_EXPIRED, "requests whose deadline had passed before the handler")               \
	X(REQUESTS_REFUSED, "requests refused before the handler: a limit, or closing")            \
	X(REQUESTS_ABANDONED, "requests whose caller was gone before the answer")                  \
	X(REPLIES_TOO_LARGE, "answers that did not fit a frame, replaced by an error")             \
	X(TURNS_LATE, "turns that began late enough to judge nobody")                              \
	X(PROBES_MISSED, "heartbeats not answered within an interval")                             \
	X(SUSPECTED, "connections that became suspect: a heartbeat was not answered")              \
	X(RECOVERED, "connections that were suspect, on probation or read-only, and are not")      \
	X(PROBATIONS, "connections made to peers that were silent before")                         \
	X(RECONNECTS, "pauses of consumers before another attempt to connect")                     \
	X(READONLY_READ, "announcements of peers that they take no more calls")                    \
	X(READONLY_WRITTEN, "announcements that no more calls are taken")                          \
	X(CLOSED_SILENT, "... because the peer left three heartbeats unanswered")                  \
	X(CLOSED_IDLE, "... because nothing was heard for as long as idle.close says")             \
	X(SLEEPS, "times the machine was found to have slept")                                     \
	X(PUSHES, "requests that a provider sent to its consumers")                                \
	X(CALLS_DEFERRED, "calls that failed for now, whose callers have a ticket")                \
	X(CALLS_FALLBACK, "calls that ended well because their method has a fallback")             \
	X(RETRIES, "attempts beside the first ones")                                               \
	X(RETRIES_UNFUNDED, "attempts that were not made, or later, for want of budget")           \
	X(TICKETS_SUCCESS, "tickets settled by an answer")                                         \
	X(TICKETS_EXHAUSTED, "tickets whose last attempt failed too")                              \
	X(TICKETS_EXPIRED, "tickets whose deadline passed")                                        \
	X(TICKETS_CANCELLED, "tickets that were cancelled")                                        \
	X(TICKETS_REFUSED, "tickets that made room for others")                                    \
	X(TICKETS_CLOSING, "tickets whose consumer ended")                                         \
	X(ATTEMPTS_TIMEOUT, "attempts of calls and pushes whose deadline passed")

enum spoke_stat {
#define SPOKE_STAT_ENUM(name, sentence) SPOKE_STAT_##name,
	SPOKE_STATS(SPOKE_STAT_ENUM)
#undef SPOKE_STAT_ENUM
	SPOKE_STAT_COUNT,
};

/* The name in small letters, as "calls_ok"; NULL for no counter. */
SPOKE_API const char *spoke_stat_name(enum spoke_stat stat);

/* What it counts; NULL for no counter. */
SPOKE_API const char *spoke_stat_sentence(enum spoke_stat stat);

/* The present value; 0 for no counter. The engine's thread. */
SPOKE_API uint64_t spoke_stat_get(const struct spoke_engine *engine, enum spoke_stat stat);

#define SPOKE_EVENTS 256u     /* how many an engine remembers */
#define SPOKE_EVENT_TEXT 232u /* bytes of the text, with the NUL */

/* The three users of the wheel: whose doing an event is. */
enum spoke_event_user {
	SPOKE_EVENT_OF_NONE,      /* of none of them */
	SPOKE_EVENT_OF_TIMEOUT,   /* a request's deadline */
	SPOKE_EVENT_OF_RETRY,     /* a failback task, or another retry */
	SPOKE_EVENT_OF_HEARTBEAT, /* the check of idle links, and what follows from it */
};

/* The name in small letters, as "heartbeat", "" for NONE; NULL for none of these. */
SPOKE_API const char *spoke_event_user_name(enum spoke_event_user user);

/* Something that happened: a connection that came or went, a call that failed, a limit reached. */
struct spoke_event {
	uint64_t number;             /* from 1 on, without gaps */
	uint64_t at_ns;              /* of the engine's clock */
	int error;                   /* SPOKE_OK, or why */
	enum spoke_event_user user;  /* whose doing it is */
	char text[SPOKE_EVENT_TEXT]; /* as "conn 127.0.0.1:20880 closed"; peers' data escaped */
};

/*
 * The oldest event whose number is at least `number`, copied. Returns 0, or ENOENT: there is none
 * yet. To follow: begin with 1, go on with ret_event->number + 1; a gap means that the ring went
 * round. The engine's thread.
 */
SPOKE_API SPOKE_MUST_USE int spoke_event_get(const struct spoke_engine *engine, uint64_t number,
					     struct spoke_event *ret_event);

/*
 * How long answered calls took, since the engine was made: from the end of the turn in which they
 * began to the turn that read the answer, in ns, with all their attempts. An error of the
 * provider's is an answer too; one-way calls, fallbacks and what becomes of tickets are not.
 * Copied; <spoke/histogram.h> has what to do with it. The engine's thread.
 */
SPOKE_API void spoke_engine_latency(const struct spoke_engine *engine,
				    struct spoke_histogram *ret_latency);

/*
 * What the newest event says, "" if there is none: a sentence about the error that a function has
 * just returned, where its description says so. Good until the engine does anything more. The
 * engine's thread.
 */
SPOKE_API const char *spoke_engine_why(const struct spoke_engine *engine);

SPOKE_END_DECLS

#endif
