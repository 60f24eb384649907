/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters of an engine since it was made, and its latest events. Counters only grow; a present
 * number (e.g. of connections) is the difference of two counters.
 */
#ifndef SPOKE_STATS_H
#define SPOKE_STATS_H

#include <spoke/env.h>
#include <spoke/error.h>

SPOKE_BEGIN_DECLS

struct spoke_engine;
struct spoke_histogram;

/* The table of counters: X(name, sentence) for each. The order never changes; new counters are
 * added at the end. */
#define SPOKE_STATS(X)                                                                             \
	X(BYTES_READ, "bytes read from sockets")                                                   \
	X(BYTES_WRITTEN, "bytes written to sockets")                                               \
	X(READS, "system calls that read")                                                         \
	X(WRITES, "system calls that wrote")                                                       \
	X(MESSAGES_READ, "messages received, of all kinds")                                        \
	X(MESSAGES_WRITTEN, "messages queued for sending, of all kinds")                           \
	X(CONNECTS, "attempts to connect")                                                         \
	X(CONNECTS_FAILED, "attempts to connect that failed")                                      \
	X(CONNECTS_SELF, "attempts that connected a socket to itself")                             \
	X(RESOLVES_FAILED, "names that could not be resolved")                                     \
	X(CONNECTED, "connections made by consumers")                                              \
	X(ACCEPTED, "connections accepted, by providers and the page")                             \
	X(ACCEPTS_FAILED, "errors of accept()")                                                    \
	X(ACCEPTS_SHED, "connections closed at once because descriptors ran out")                  \
	X(ACCEPTS_REFUSED_TOTAL, "connections closed at once: total limit reached")                \
	X(ACCEPTS_REFUSED_PEER, "connections closed at once: limit of the peer address reached")   \
	X(CLOSED, "connections that ended, for any reason")                                        \
	X(CLOSED_BY_PEER, "... because the peer closed or reset them")                             \
	X(CLOSED_PROTOCOL, "... because the peer violated the protocol")                           \
	X(CLOSED_LARGE, "... because an announced frame exceeds the limit")                        \
	X(CLOSED_FRAME_TIME, "... because a frame was not completed in time")                      \
	X(CLOSED_MUTE, "... because the peer sent nothing, in time or until its place was needed") \
	X(CLOSED_SLOW, "... because the peer did not read the data sent to it")                    \
	X(CLOSED_ID_TWICE, "... because a request id was in flight twice")                         \
	X(CLOSED_UNWANTED, "... because a reply came to a side that sends no requests")            \
	X(CLOSED_UNKNOWN_REPLIES, "... because of too many replies to calls never made")           \
	X(CLOSED_MEMORY, "... because memory could not be allocated")                              \
	X(READS_PAUSED, "times reading was paused because output was queued")                      \
	X(PROBES_READ, "heartbeats received")                                                      \
	X(PROBES_WRITTEN, "heartbeats sent")                                                       \
	X(PROBE_ANSWERS_READ, "answers to heartbeats received")                                    \
	X(EVENTS_IGNORED, "events of an unknown kind, ignored")                                    \
	X(BAD_REQUESTS, "requests whose body could not be decoded")                                \
	X(BAD_REPLIES, "replies whose body could not be decoded")                                  \
	X(REPLIES_LATE, "replies to calls that had ended already, dropped")                        \
	X(REPLIES_UNKNOWN, "replies to calls the connection never made, dropped")                  \
	X(REQUESTS_UNWANTED, "requests to a consumer that serves none")                            \
	X(CALLS, "calls begun")                                                                    \
	X(CALLS_OK, "calls that succeeded, one-way calls included")                                \
	X(CALLS_REMOTE, "calls that ended with an error from the provider")                        \
	X(CALLS_TIMEOUT_UNSENT, "calls whose deadline passed before they were written")            \
	X(CALLS_TIMEOUT, "calls whose deadline passed after they were written")                    \
	X(CALLS_LOST, "calls whose connection was lost or could not be made")                      \
	X(CALLS_CANCELED, "calls that were cancelled")                                             \
	X(CALLS_CLOSED, "calls that ended because their consumer was closed")                      \
	X(CALLS_FAILED, "calls that ended with another local error")                               \
	X(CALLS_REFUSED, "calls refused at once: their function returned an error")                \
	X(REQUESTS, "requests received completely")                                                \
	X(REQUESTS_OK, "requests answered with a value, or one-way and completed")                 \
	X(REQUESTS_ERROR, "requests answered with an error of the handler")                        \
	X(REQUESTS_NO_SERVICE, "requests for a service or method that is not served")              \
	X(REQUESTS_EXPIRED, "requests whose deadline passed before the handler began")             \
	X(REQUESTS_REFUSED, "requests refused before the handler: limit, or closing")              \
	X(REQUESTS_ABANDONED,                                                                      \
	  "requests whose caller was gone, or got HTTP 504, before the answer")                    \
	X(REPLIES_TOO_LARGE, "replies that did not fit a frame, replaced by an error")             \
	X(TURNS_LATE, "turns that began too late to check idle timeouts")                          \
	X(PROBES_MISSED, "heartbeats not answered within an interval")                             \
	X(SUSPECTED, "connections that became suspect: a heartbeat was not answered")              \
	X(RECOVERED, "connections that recovered from suspect, probation or read-only")            \
	X(PROBATIONS, "connections made to peers that were silent before")                         \
	X(RECONNECTS, "backoff pauses of consumers before another attempt to connect")             \
	X(READONLY_READ, "drain notices received: the peer takes no more calls")                   \
	X(READONLY_WRITTEN, "drain notices sent")                                                  \
	X(CLOSED_SILENT, "... because the peer left three heartbeats unanswered")                  \
	X(CLOSED_IDLE, "... because nothing was received for idle.close")                          \
	X(SLEEPS, "times the machine was found to have slept")                                     \
	X(PUSHES, "requests that a provider sent to its consumers")                                \
	X(CALLS_DEFERRED, "calls that failed for now and continue as a ticket")                    \
	X(CALLS_FALLBACK, "calls that succeeded with the fallback of their method")                \
	X(RETRIES, "attempts after the first ones")                                                \
	X(HEDGES, "backup attempts, begun because the one before was slow")                        \
	X(HEDGES_WON, "backup attempts whose answer came first")                                   \
	X(RETRIES_UNFUNDED, "retries delayed or dropped because the retry budget was empty")       \
	X(TICKETS_SUCCESS, "tickets settled with an answer")                                       \
	X(TICKETS_EXHAUSTED, "tickets whose last attempt failed too")                              \
	X(TICKETS_EXPIRED, "tickets whose deadline passed")                                        \
	X(TICKETS_CANCELLED, "tickets that were cancelled")                                        \
	X(TICKETS_REFUSED, "tickets dropped to make room for others")                              \
	X(TICKETS_CLOSING, "tickets whose consumer was closed")                                    \
	X(ATTEMPTS_TIMEOUT, "attempts of calls and pushes whose deadline passed")                  \
	X(LEASES_ASKED, "leases asked for")                                                        \
	X(LEASES_HELD, "leases granted")                                                           \
	X(LEASES_FAILED, "asks for a lease that ended without one")                                \
	X(LEASES_RELEASED, "leases given back")                                                    \
	X(LEASES_LOST, "leases that ended before they were given back")                            \
	X(LEASE_RENEWALS, "renewals of leases that the store has confirmed")                       \
	X(LEASE_COMMANDS, "commands sent to stores of leases")                                     \
	X(LEASE_RECONNECTS, "connections to stores of leases that were lost or not made")          \
	X(REQUESTS_FENCED, "requests refused for a fence number lower than one seen before")       \
	X(POOL_REQUESTS, "requests handed to the pool")                                            \
	X(POOL_WAITED, "requests that waited 100 ms or longer for a thread of the pool")           \
	X(POOL_FULL, "requests refused because the pool's queue was full")                         \
	X(CLOSED_HANDSHAKE, "... because the handshake of TLS or shared memory failed")            \
	X(HANDSHAKES, "handshakes of TLS with accepted peers that were begun")                     \
	X(HANDSHAKES_DONE, "handshakes of TLS with accepted peers that succeeded")                 \
	X(HANDSHAKES_SHED, "handshakes refused because their address had too many under way")      \
	X(TLS_RECORDS_READ, "records of TLS that were read")                                       \
	X(TLS_RECORDS_WRITTEN, "records of TLS that were written")                                 \
	X(TLS_REKEYS, "changes of this side's keys")                                               \
	X(TLS_RELOADS, "times that changed certificates were taken into use")                      \
	X(TLS_RELOADS_FAILED, "times that changed certificates were refused")                      \
	X(REFUSED_ADDRESS, "connections closed at once: not allowed by their address or user")     \
	X(REFUSED_CALLER, "requests refused because allow.callers does not list the caller")       \
	X(DRAINED_CALLER, "connections drained because new lists or tokens do not allow them")     \
	X(REFUSED_CREDENTIALS, "requests refused for want of a token or signature, or a bad one")  \
	X(CLOSED_AUTH, "... because the peer had no good credentials several times")               \
	X(CONNECTS_SECURED, "handshakes of TLS of connections made by this side that succeeded")   \
	X(CONNECTED_LOCAL, "connections made to providers of this host at their unix sockets")     \
	X(LOCAL_FAILED, "attempts at such a socket that failed, so that TCP was used")             \
	X(LOCAL_REFUSED, "paths of such sockets in lists of providers that are not valid")         \
	X(HANDSHAKES_FAILED, "handshakes of TLS with accepted peers that were begun and failed")   \
	X(HANDSHAKES_LATE, "handshakes of TLS or shared memory with accepted peers out of time")   \
	X(HANDSHAKES_PLAIN, "connections whose peer spoke plain bytes where TLS is required")      \
	X(BODIES_SWOLLEN, "bad requests and bad replies whose few bytes stood for too much")

/* The counters as constants: SPOKE_STAT_BYTES_READ and so on. */
enum spoke_stat {
#define SPOKE_STAT_ENUM(name, sentence) SPOKE_STAT_##name,
	SPOKE_STATS(SPOKE_STAT_ENUM)
#undef SPOKE_STAT_ENUM
	SPOKE_STAT_COUNT,
};

/* Returns the name in lower case, e.g. "calls_ok"; NULL if there is no such counter. Any thread. */
SPOKE_API const char *spoke_stat_name(enum spoke_stat stat);

/* Returns the sentence of a counter; NULL if there is no such counter. Any thread. */
SPOKE_API const char *spoke_stat_sentence(enum spoke_stat stat);

/* Returns the present value; 0 if there is no such counter. The engine's thread. */
SPOKE_API uint64_t spoke_stat_get(const struct spoke_engine *engine, enum spoke_stat stat);

#define SPOKE_EVENTS 256u     /* events that an engine remembers */
#define SPOKE_EVENT_TEXT 232u /* bytes of the text, with the NUL */

/* The user of the wheel that caused an event. */
enum spoke_event_user {
	SPOKE_EVENT_OF_NONE,      /* none of them */
	SPOKE_EVENT_OF_TIMEOUT,   /* the deadline of a request */
	SPOKE_EVENT_OF_RETRY,     /* a failback task, or another retry */
	SPOKE_EVENT_OF_HEARTBEAT, /* the check of idle connections, and its consequences */
	SPOKE_EVENT_OF_LEASE,     /* renewals of leases, and their end */
};

/* Returns the name in lower case, e.g. "heartbeat"; "" for NONE, NULL for other numbers. */
SPOKE_API const char *spoke_event_user_name(enum spoke_event_user user);

/* One event, e.g. a connection that opened or closed, a call that failed, a limit reached. */
struct spoke_event {
	uint64_t number;            /* from 1 on, without gaps */
	uint64_t at_ns;             /* time of the engine's clock */
	int error;                  /* SPOKE_OK, or the reason */
	enum spoke_event_user user; /* the user of the wheel that caused it */
	/* e.g. "conn 127.0.0.1:20880 closed"; data of peers is escaped */
	char text[SPOKE_EVENT_TEXT];
};

/*
 * Copies the oldest event whose number is at least `number`. Returns 0, or ENOENT (there is none
 * yet). To follow the events, begin with 1 and continue with ret_event->number + 1. A gap means
 * that older events were overwritten. The engine's thread.
 */
SPOKE_API SPOKE_MUST_USE int spoke_event_get(const struct spoke_engine *engine, uint64_t number,
					     struct spoke_event *ret_event);

/*
 * Copies the histogram of the durations of answered calls, in ns, since the engine was made. A
 * duration begins at the end of the turn that began the call, ends with the turn that read the
 * answer, and includes all attempts. An error from the provider is an answer; one-way calls,
 * fallbacks and tickets are not counted. See <spoke/histogram.h>. The engine's thread.
 */
SPOKE_API void spoke_engine_latency(const struct spoke_engine *engine,
				    struct spoke_histogram *ret_latency);

/* Copies the limits and the load of the engine's pool; zeros in an environment that has no such
 * report. The engine's thread. */
SPOKE_API void spoke_engine_pool(const struct spoke_engine *engine, struct spoke_pool *ret_pool);

/*
 * Returns the text of the newest event, "" if there is none. After a function whose comment refers
 * to spoke_engine_why() has failed, this is a sentence about its error, which is no event if such
 * errors may be many. Valid until the next use of the engine. The engine's thread.
 */
SPOKE_API const char *spoke_engine_why(const struct spoke_engine *engine);

SPOKE_END_DECLS

#endif
