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

/* The table of counters: X(NAME, name, sentence) for each. The order never changes; new counters
 * are added at the end. */
#define SPOKE_STATS(X)                                                                             \
	X(BYTES_READ, bytes_read, "bytes read from sockets")                                       \
	X(BYTES_WRITTEN, bytes_written, "bytes written to sockets")                                \
	X(READS, reads, "system calls that read")                                                  \
	X(WRITES, writes, "system calls that wrote")                                               \
	X(MESSAGES_READ, messages_read, "messages received, of all kinds")                         \
	X(MESSAGES_WRITTEN, messages_written, "messages queued for sending, of all kinds")         \
	X(CONNECTS, connects, "attempts to connect")                                               \
	X(CONNECTS_FAILED, connects_failed, "attempts to connect that failed")                     \
	X(CONNECTS_SELF, connects_self, "attempts that connected a socket to itself")              \
	X(RESOLVES_FAILED, resolves_failed, "names that could not be resolved")                    \
	X(CONNECTED, connected, "connections made by consumers")                                   \
	X(ACCEPTED, accepted, "connections accepted, by providers and the page")                   \
	X(ACCEPTS_FAILED, accepts_failed, "errors of accept()")                                    \
	X(ACCEPTS_SHED, accepts_shed, "connections closed at once because descriptors ran out")    \
	X(ACCEPTS_REFUSED_TOTAL, accepts_refused_total,                                            \
	  "connections closed at once: total limit reached")                                       \
	X(ACCEPTS_REFUSED_PEER, accepts_refused_peer,                                              \
	  "connections closed at once: limit of the peer address reached")                         \
	X(CLOSED, closed, "connections that ended, for any reason")                                \
	X(CLOSED_BY_PEER, closed_by_peer, "... because the peer closed or reset them")             \
	X(CLOSED_PROTOCOL, closed_protocol, "... because the peer violated the protocol")          \
	X(CLOSED_LARGE, closed_large, "... because an announced frame exceeds the limit")          \
	X(CLOSED_FRAME_TIME, closed_frame_time, "... because a frame was not completed in time")   \
	X(CLOSED_MUTE, closed_mute,                                                                \
	  "... because the peer sent nothing, in time or until its place was needed")              \
	X(CLOSED_SLOW, closed_slow, "... because the peer did not read the data sent to it")       \
	X(CLOSED_ID_TWICE, closed_id_twice, "... because a request id was in flight twice")        \
	X(CLOSED_UNWANTED, closed_unwanted,                                                        \
	  "... because a reply came to a side that sends no requests")                             \
	X(CLOSED_UNKNOWN_REPLIES, closed_unknown_replies,                                          \
	  "... because of too many replies to calls never made")                                   \
	X(CLOSED_MEMORY, closed_memory, "... because memory could not be allocated")               \
	X(READS_PAUSED, reads_paused, "times reading was paused because output was queued")        \
	X(PROBES_READ, probes_read, "heartbeats received")                                         \
	X(PROBES_WRITTEN, probes_written, "heartbeats sent")                                       \
	X(PROBE_ANSWERS_READ, probe_answers_read, "answers to heartbeats received")                \
	X(EVENTS_IGNORED, events_ignored, "events of an unknown kind, ignored")                    \
	X(BAD_REQUESTS, bad_requests, "requests whose body could not be decoded")                  \
	X(BAD_REPLIES, bad_replies, "replies whose body could not be decoded")                     \
	X(REPLIES_LATE, replies_late, "replies to calls that had ended already, dropped")          \
	X(REPLIES_UNKNOWN, replies_unknown, "replies to calls the connection never made, dropped") \
	X(REQUESTS_UNWANTED, requests_unwanted, "requests to a consumer that serves none")         \
	X(CALLS, calls, "calls begun")                                                             \
	X(CALLS_OK, calls_ok, "calls that succeeded, one-way calls included")                      \
	X(CALLS_REMOTE, calls_remote, "calls that ended with an error from the provider")          \
	X(CALLS_TIMEOUT_UNSENT, calls_timeout_unsent,                                              \
	  "calls whose deadline passed before they were written")                                  \
	X(CALLS_TIMEOUT, calls_timeout, "calls whose deadline passed after they were written")     \
	X(CALLS_LOST, calls_lost, "calls whose connection was lost or could not be made")          \
	X(CALLS_CANCELED, calls_canceled, "calls that were cancelled")                             \
	X(CALLS_CLOSED, calls_closed, "calls that ended because their consumer was closed")        \
	X(CALLS_FAILED, calls_failed, "calls that ended with another local error")                 \
	X(CALLS_REFUSED, calls_refused, "calls refused at once: their function returned an error") \
	X(REQUESTS, requests, "requests received completely")                                      \
	X(REQUESTS_OK, requests_ok, "requests answered with a value, or one-way and completed")    \
	X(REQUESTS_ERROR, requests_error, "requests answered with an error of the handler")        \
	X(REQUESTS_NO_SERVICE, requests_no_service,                                                \
	  "requests for a service or method that is not served")                                   \
	X(REQUESTS_EXPIRED, requests_expired,                                                      \
	  "requests whose deadline passed before the handler began")                               \
	X(REQUESTS_REFUSED, requests_refused,                                                      \
	  "requests refused before the handler: limit, or closing")                                \
	X(REQUESTS_ABANDONED, requests_abandoned,                                                  \
	  "requests whose caller was gone, or got HTTP 504, before the answer")                    \
	X(REPLIES_TOO_LARGE, replies_too_large,                                                    \
	  "replies that did not fit a frame, replaced by an error")                                \
	X(TURNS_LATE, turns_late, "turns so late that sockets are read before times are checked")  \
	X(TURNS_HELD, turns_held, "handlers that held the loop longer than slow.loop")             \
	X(PROBES_MISSED, probes_missed, "heartbeats not answered within an interval")              \
	X(SUSPECTED, suspected, "connections that became suspect: a heartbeat was not answered")   \
	X(RECOVERED, recovered, "connections that recovered from suspect, probation or read-only") \
	X(PROBATIONS, probations, "connections made to peers that were silent before")             \
	X(RECONNECTS, reconnects, "backoff pauses of consumers before another attempt to connect") \
	X(READONLY_READ, readonly_read, "drain notices received: the peer takes no more calls")    \
	X(READONLY_WRITTEN, readonly_written, "drain notices sent")                                \
	X(CLOSED_SILENT, closed_silent, "... because the peer left three heartbeats unanswered")   \
	X(CLOSED_IDLE, closed_idle, "... because nothing was received for idle.close")             \
	X(SLEEPS, sleeps, "times the machine was found to have slept")                             \
	X(PUSHES, pushes, "requests that a provider sent to its consumers")                        \
	X(CALLS_DEFERRED, calls_deferred, "calls that failed for now and continue as a ticket")    \
	X(CALLS_FALLBACK, calls_fallback,                                                          \
	  "calls that succeeded with the fallback of their method")                                \
	X(RETRIES, retries, "attempts after the first ones")                                       \
	X(HEDGES, hedges, "backup attempts, begun because the one before was slow")                \
	X(HEDGES_WON, hedges_won, "backup attempts whose answer came first")                       \
	X(RETRIES_UNFUNDED, retries_unfunded,                                                      \
	  "retries delayed or dropped because the retry budget was empty")                         \
	X(TICKETS_SUCCESS, tickets_success, "tickets settled with an answer")                      \
	X(TICKETS_EXHAUSTED, tickets_exhausted, "tickets whose last attempt failed too")           \
	X(TICKETS_EXPIRED, tickets_expired, "tickets whose deadline passed")                       \
	X(TICKETS_CANCELLED, tickets_cancelled, "tickets that were cancelled")                     \
	X(TICKETS_REFUSED, tickets_refused, "tickets dropped to make room for others")             \
	X(TICKETS_CLOSING, tickets_closing, "tickets whose consumer was closed")                   \
	X(ATTEMPTS_TIMEOUT, attempts_timeout,                                                      \
	  "attempts of calls and pushes whose deadline passed")                                    \
	X(LEASES_ASKED, leases_asked, "leases asked for")                                          \
	X(LEASES_HELD, leases_held, "leases granted")                                              \
	X(LEASES_FAILED, leases_failed, "asks for a lease that ended without one")                 \
	X(LEASES_RELEASED, leases_released, "leases given back")                                   \
	X(LEASES_LOST, leases_lost, "leases that ended before they were given back")               \
	X(LEASE_RENEWALS, lease_renewals, "renewals of leases that the store has confirmed")       \
	X(LEASE_COMMANDS, lease_commands, "commands sent to stores of leases")                     \
	X(LEASE_RECONNECTS, lease_reconnects,                                                      \
	  "connections to stores of leases that were lost or not made")                            \
	X(REQUESTS_FENCED, requests_fenced,                                                        \
	  "requests refused for a fence number lower than one seen before")                        \
	X(POOL_REQUESTS, pool_requests, "requests handed to the pool")                             \
	X(POOL_WAITED, pool_waited,                                                                \
	  "requests that waited 100 ms or longer for a thread of the pool")                        \
	X(POOL_FULL, pool_full, "requests refused because the pool's queue was full")              \
	X(CLOSED_HANDSHAKE, closed_handshake,                                                      \
	  "... because the handshake of TLS or shared memory failed")                              \
	X(HANDSHAKES, handshakes, "handshakes of TLS with accepted peers that were begun")         \
	X(HANDSHAKES_DONE, handshakes_done,                                                        \
	  "handshakes of TLS with accepted peers that succeeded")                                  \
	X(HANDSHAKES_SHED, handshakes_shed,                                                        \
	  "handshakes refused because their address had too many under way")                       \
	X(TLS_RECORDS_READ, tls_records_read, "records of TLS that were read")                     \
	X(TLS_RECORDS_WRITTEN, tls_records_written, "records of TLS that were written")            \
	X(TLS_REKEYS, tls_rekeys, "changes of this side's keys")                                   \
	X(TLS_RELOADS, tls_reloads, "times that changed certificates were taken into use")         \
	X(TLS_RELOADS_FAILED, tls_reloads_failed, "times that changed certificates were refused")  \
	X(REFUSED_ADDRESS, refused_address,                                                        \
	  "connections closed at once: not allowed by their address or user")                      \
	X(REFUSED_CALLER, refused_caller,                                                          \
	  "requests refused because allow.callers does not list the caller")                       \
	X(DRAINED_CALLER, drained_caller,                                                          \
	  "connections drained because new lists or tokens do not allow them")                     \
	X(REFUSED_CREDENTIALS, refused_credentials,                                                \
	  "requests refused for want of a token or signature, or a bad one")                       \
	X(CLOSED_AUTH, closed_auth, "... because the peer had no good credentials several times")  \
	X(CONNECTS_SECURED, connects_secured,                                                      \
	  "handshakes of TLS of connections made by this side that succeeded")                     \
	X(CONNECTED_LOCAL, connected_local,                                                        \
	  "connections made to providers of this host at their unix sockets")                      \
	X(LOCAL_FAILED, local_failed,                                                              \
	  "attempts at such a socket that failed, so that TCP was used")                           \
	X(LOCAL_REFUSED, local_refused,                                                            \
	  "paths of such sockets in lists of providers that are not valid")                        \
	X(HANDSHAKES_FAILED, handshakes_failed,                                                    \
	  "handshakes of TLS with accepted peers that were begun and failed")                      \
	X(HANDSHAKES_LATE, handshakes_late,                                                        \
	  "handshakes of accepted peers that were out of time, or gave way to others")             \
	X(HANDSHAKES_PLAIN, handshakes_plain,                                                      \
	  "connections whose peer spoke plain bytes where TLS is required")                        \
	X(BODIES_SWOLLEN, bodies_swollen,                                                          \
	  "bad requests and bad replies whose few bytes stood for too much")                       \
	X(REPEATS_ANSWERED, repeats_answered,                                                      \
	  "repeats of requests that got the answer of the first one")                              \
	X(REPEATS_REFUSED, repeats_refused,                                                        \
	  "requests with an id that was refused for what dedupe knows, or not any more")           \
	X(REPEATS_FORGOTTEN, repeats_forgotten,                                                    \
	  "requests that dedupe forgot before their time, because there was no room")              \
	X(WRITABLE_WRITTEN, writable_written, "notices sent that this side takes calls again")     \
	X(REFUSED_EXECUTES, refused_executes, "requests refused because executes was reached")     \
	X(REFUSED_RATE, refused_rate, "requests refused because executes.tps was reached")         \
	X(REFUSED_LATE, refused_late,                                                              \
	  "requests refused because they would be answered too late (executes = auto)")            \
	X(TICKETS_UNKNOWN, tickets_unknown,                                                        \
	  "tickets whose request may have run, and must not run twice")                            \
	X(TICKETS_KEPT, tickets_kept, "tickets left in their journal, for the next consumer")      \
	X(TICKETS_RECOVERED, tickets_recovered,                                                    \
	  "tickets of earlier processes that were read from a journal")                            \
	X(JOURNAL_SYNCS, journal_syncs, "syncs of journals")                                       \
	X(JOURNAL_FAILURES, journal_failures, "writes and syncs of journals that failed")          \
	X(ANSWERS_RECOVERED, answers_recovered,                                                    \
	  "answers of earlier providers that were read from a journal")                            \
	X(ANSWERS_UNKEPT, answers_unkept,                                                          \
	  "answers that were sent although the provider's journal has them not, or not yet")

/* The counters as constants: SPOKE_STAT_BYTES_READ and so on. */
enum spoke_stat {
#define SPOKE_STAT_ENUM(name, small, sentence) SPOKE_STAT_##name,
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
 * errors may be many. Valid until the next use of the engine. On another thread, while the engine
 * runs, it is the sentence of ETHREAD, with which functions fail there.
 */
SPOKE_API const char *spoke_engine_why(const struct spoke_engine *engine);

SPOKE_END_DECLS

#endif
