/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle: checks every run against the invariants of invariants.h. It observes each byte that
 * was written, has arrived or was read, knows the request of each answer and the handler that ran
 * it, and takes nothing from the product but its callbacks.
 */
#ifndef TESTS_SIM_ORACLE_H
#define TESTS_SIM_ORACLE_H

#include "tests/sim/sim.h"

/* Events that excuse a process from timing out a peer, counted up to some moment. Each of them
 * restarts the interval of silence. */
struct sim_excuse {
	uint64_t late_turns; /* turns of the process that began late */
	uint64_t held_ns;    /* time for which the process was frozen */
	uint64_t sleeps;     /* sleeps of the machine that the process has noticed */
};

struct sim_line;
struct spokei_tls;

enum {
	SIM_NAMED = 16, /* instances of one connection that are remembered */
};

/* One end of a connection. */
struct sim_end {
	struct sim_stream *stream;   /* NULL: a connection to the store of leases ... */
	struct sim_line *line;       /* ... namely this one */
	struct sim_process *process; /* NULL: not accepted yet */
	int fd;                      /* -1: closed, or not accepted */
	uint64_t since_ns;           /* when the end was opened */
	uint64_t stood_ns;   /* when the process was notified that the connection is established; 0:
				not yet */
	uint64_t arrived;    /* bytes that have arrived, in all */
	uint64_t taken;      /* bytes of them that were read */
	uint64_t arrived_ns; /* when the last byte arrived */
	uint64_t read_ns;    /* when the last byte was read; over TLS: of the plain ones */
	uint64_t taken_ns;   /* when the descriptor gave the last byte */
	uint64_t wrote_ns;   /* when the last byte was written; over TLS: of the plain ones */
	uint64_t passed_ns;  /* when the descriptor took the last byte */
	uint64_t first_wrote_ns;
	uint64_t first_order; /* sequence number of that */
	uint64_t frame_ns; /* when the frame that is being written began, by the process's clock */
	uint64_t frame_order; /* its sequence number */
	uint64_t again_ns;    /* when a read returned EAGAIN although there were bytes */
	uint64_t asked_ns;    /* when the last heartbeat was written whole; 0: never */
	uint64_t patience_ns; /* the answer to a heartbeat may be awaited until then */
	uint64_t broken_turn; /* the turn in which this end read an invalid frame; 0: none */
	uint64_t readonly;    /* sequence number of the read of the drain notice; 0: none */
	bool readonly_seen; /* the drain notice was read in this turn, maybe with calls after it */
	uint64_t aside;     /* the same for the notice that the peer has stepped aside; 0: it has
			       not, or is back */
	bool aside_seen;
	unsigned asides;          /* such notices that were read */
	uint64_t guessed_ns;      /* when an answer was read to a request that was half written */
	struct sim_excuse silent; /* when bytes arrived last, or the connection was established */
	struct sim_excuse asked;  /* when patience_ns was set */
	uint64_t missed_ns;
	uint64_t well_ns;   /* when all doubts were cleared last */
	unsigned misses;    /* missed heartbeats in a row, as reported */
	unsigned pauses;    /* reconnect pauses reported for this end before the next connection */
	uint64_t read_turn; /* the last turn in which this end was read */
	unsigned reads;     /* number of reads in that turn */
	uint64_t hungry_turn; /* the turn since which bytes wait to be read; 0: none */
	bool shut;
	bool ended;     /* end of stream has arrived, or the connection failed */
	bool announced; /* this end wrote the drain notice */
	bool told;      /* the process was notified that the connection is established */
	bool told_closed;
	bool suspected; /* as reported in events, like the next two */
	bool on_probation;
	bool read_only;
	struct sim_frames sent; /* bytes that this end writes */
	struct sim_frames seen; /* bytes that this end reads */
	uint8_t state;          /* of the product's connection, as seen last */
	/* Over TLS: bytes that this end has written and the other one has not read yet. */
	unsigned char *flight;
	size_t flight_from;
	size_t flight_len;
	size_t flight_room;
};

/* The history of one request id of one connection. */
struct sim_ask {
	uint32_t number; /* of the call; 0: a heartbeat */
	uint8_t attempt; /* as the request contains it; 0: it contains none */
	bool repeat;     /* it is marked as one */
	bool written;
	bool two_way;
	bool read;     /* by the provider */
	bool answered; /* by the provider */
	bool refused;  /* answered without running the handler */
	bool ran;      /* by a handler */
	bool heard;    /* the consumer has read an answer */
	bool given_up; /* the consumer has written that it does not wait any more */
	bool barred;   /* the provider may have shut its consumer out when it read the request */
	bool dropped;  /* ... and the provider has read that, so it need not answer */
	uint32_t timeout_ms; /* that the request carries; 0: none, or not looked for */
	uint64_t read_ns;
	uint64_t clock_ns;     /* the same by the clock of the provider */
	uint64_t due_ns;       /* when the turn was due in which it did */
	uint64_t held_ns;      /* value of the provider's held_ns then */
	uint64_t dropped_turn; /* turn of the provider in which it has read the cancel */
};

struct sim_stream {
	struct sim_stream *next;
	struct sim_world *world;
	unsigned number;
	unsigned place; /* index of the provider */
	bool dubbo;
	bool inner;                /* the connecting side is a provider */
	bool veiled;               /* over TLS: the network does not see the bytes of its ends */
	bool tampered;             /* bytes to or from the provider were altered on the way */
	uint32_t instance;         /* that the consumer was told last; 0: none */
	uint32_t names[SIM_NAMED]; /* the last ones of the same process, and how often it had one */
	uint32_t name_count;
	uint64_t named_order; /* sequence number of that */
	bool clogged;
	bool over;        /* both ends are closed */
	char peer[48];    /* the provider's name of the consumer's end */
	unsigned running; /* handlers that run requests of this connection */
	bool marred;      /* bytes in flight were altered or will never arrive */
	uint64_t hole_until_ns;
	uint64_t flood_until_ns; /* the provider floods; 0: it does not */
	struct sim_end ends[2];  /* the consumer's end, the provider's end */
	uint64_t id_base;
	struct sim_ask *asks;
	uint32_t ask_count;
	uint32_t ask_room;
	unsigned char last_reply[SIM_KEPT]; /* a whole frame, to be replayed; last_len bytes */
	size_t last_len;
};

static inline struct sim_end *sim_other(struct sim_end *end)
{
	return &end->stream->ends[end == &end->stream->ends[0]];
}

static inline bool sim_connected(const struct sim_end *end)
{
	return end == &end->stream->ends[0];
}

/* --- oracle_streams.c */

void sim_observe(void *arg, const struct spokei_vnet_news *news);
void sim_streams_free(struct sim_world *world);

/* Notes that a connection reads its stream. */
void sim_stream_reads(struct sim_end *end);

/* Record that an end has written, or read, these bytes. */
void sim_stream_wrote(struct sim_end *end, const void *bytes, size_t len);
void sim_stream_read(struct sim_end *end, const void *bytes, size_t len);

/* --- oracle_asks.c */

/* Record that an end has written, or read, a whole frame. */
void sim_ask_sent(struct sim_end *end, const struct sim_frame *frame);
void sim_ask_seen(struct sim_end *end, const struct sim_frame *frame);

/* Makes the drain notice that the end has read count from now on. */
void sim_ask_readonly(struct sim_end *end);

/* Records that a handler runs the call. `stream` is the connection of the request (NULL: not
 * known), `attempt` the attempt number in it. */
void sim_ask_runs(struct sim_call *call, struct sim_stream *stream, unsigned attempt);

/* Returns whether a request is left without an answer that was due. */
bool sim_asks_owed(struct sim_world *world);

/* Checks after the faults that no request is left so. */
void sim_asks_check(struct sim_world *world);

/* --- oracle_calls.c */

void sim_call_ended(struct sim_call *call, const struct spoke_result *result);

/* Records the end of a call whose process is being killed. */
void sim_call_died(struct sim_call *call);
void sim_call_taken(struct sim_call *call);

/* Returns the connection of the request, or NULL if it is not known. */
struct sim_stream *sim_call_runs(struct sim_provider *provider, struct sim_call *call,
				 const struct spoke_request *request);
void sim_handler_ended(struct sim_provider *provider, struct sim_stream *stream);
void sim_calls_check(struct sim_world *world, bool all);

/* --- oracle_attempts.c */

/* Returns whether the call may have several attempts, one after another. */
static inline bool sim_repeats(const struct sim_call *call)
{
	enum sim_policy policy = call->by->plan->calls.policy;

	return (policy == SIM_FAILOVER || policy == SIM_FAILBACK) &&
	       call->by->plan->calls.retries > 0;
}

/* Returns the longest duration of a call until its answer or its ticket. */
uint64_t sim_answer_ns(const struct sim_call *call);

/* Record that a request of the call was written whole, or that a handler of the provider runs it.
 */
void sim_attempt_written(struct sim_call *call, struct sim_stream *stream,
			 const struct sim_frame *frame);
void sim_attempt_runs(const struct sim_provider *provider, struct sim_call *call);

/* Updates the sliding window of retries; called when the engine may have counted more of them. */
void sim_window_look(struct sim_consumer *consumer);

/* --- oracle_repeats.c */

/* Records that a request of the call was written whole. */
void sim_repeat_written(struct sim_call *call, const struct sim_stream *stream,
			const struct sim_frame *frame);

/* Returns whether the provider has run the call, and may have forgotten it. */
bool sim_repeat_forgotten(const struct sim_provider *provider, const struct sim_call *call);

/* Records that the provider runs a request of the call. */
void sim_repeat_runs(struct sim_provider *provider, struct sim_call *call,
		     const struct spoke_request *request);

/* Resets the count of idle turns after a turn in which requests were forgotten. */
void sim_repeats_turned(struct sim_provider *provider);

/* Returns whether the call may be over because one instance only knows whether it has run. */
bool sim_may_be_bound(const struct sim_call *call);

/* Checks an answer that the provider has written to this request, which it has not run. Returns
 * whether it need not have run. */
bool sim_repeat_answered(const struct sim_provider *provider, const struct sim_call *call,
			 const struct sim_ask *ask, const struct sim_frame *frame);

/* Returns whether the request carries an id. */
bool sim_has_id(const struct spoke_request *request);

/* --- chains.c, oracle_parents.c */

/* The request is answered now. */
void sim_parent_answered(struct sim_world *world, const struct spoke_request *request);

/* The end of a provider has read a cancel; an end was closed. */
void sim_parent_cancelled(const struct sim_end *end, const struct sim_frame *frame);
void sim_parents_lost(const struct sim_end *end);

/* A provider has written a request whole that is none of a call. */
void sim_inner_written(const struct sim_end *end, const struct sim_frame *frame);

/* The turn of a provider is over; its engine was freed. */
void sim_parents_turned(struct sim_provider *provider);
void sim_parents_end(struct sim_provider *provider);

/* --- oracle_tickets.c */

void sim_ticket_opened(struct sim_call *call, const struct spoke_result *result);
void sim_ticket_told(struct sim_consumer *consumer, const struct spoke_ticket_result *settled);
void sim_tickets_check(struct sim_world *world);
void sim_tickets_end(struct sim_consumer *consumer);

/* --- oracle_lists.c */

void sim_list_told(struct sim_process *process, size_t count);
void sim_lists_check(struct sim_world *world);

/* Returns whether the consumer lists exactly the providers of the world and is connected to each
 * that it needs. */
bool sim_lists_all(const struct sim_consumer *consumer);

/* Returns whether the consumer lists exactly the providers that are not retired. */
bool sim_lists_living(const struct sim_consumer *consumer);

/* Reports a violation unless the consumer lists all providers that exist. */
void sim_lists_whole(const struct sim_consumer *consumer);

/* --- oracle_links.c */

/* Returns the end that the process accepted from the peer of this name. */
struct sim_end *sim_accepted_end(struct sim_process *process, const char *name);

void sim_link_changed(struct sim_process *process, const struct spoke_link_event *event);
void sim_links_check(struct sim_world *world);

/* Returns the events that excuse this end, counted up to now. */
struct sim_excuse sim_excuse_now(const struct sim_end *end);

/* Records that a heartbeat was written whole. */
void sim_link_asked(struct sim_end *end);

/* A frame was written whole. On a connection that is clogged, heartbeats and answers to them leave
 * one byte after the other; the misses count from the last one. */
void sim_link_moved(struct sim_end *end);

/* The peer has taken bytes of this end out of the memory that both share. That is a sign of life,
 * which this end notices when it checks the peer next, at most an interval later. */
void sim_link_taken(struct sim_end *end);

/* Returns how late the present turn began. A loop that was asked for another round at once is not
 * told when its next timer is due, and takes the time before for it. */
uint64_t sim_late_of(const struct sim_process *process);

/* From this delay on a turn reads all sockets before it times out calls. */
#define SIM_LATE_NS (50 * MS)

/* Returns the largest delay of a turn in which the process may time out a peer. */
uint64_t sim_judges_until(const struct sim_process *process);

/* --- oracle_access.c */

/* Checks that the consumer of a call may be served by the provider, on that connection. */
void sim_access_runs(const struct sim_provider *provider, const struct sim_call *call,
		     const struct sim_stream *stream);

/* Returns whether the provider may refuse the call: its consumer is or was shut out. */
bool sim_access_may_refuse(const struct sim_call *call);

/* Records the end of a call that was refused; checks that it may be. */
void sim_access_refused(const struct sim_call *call);

/* --- oracle_secure.c */

/* Has the oracle see the bytes of the streams of this TLS. */
void sim_secure_tap(const struct spokei_tls *tls);

/* --- oracle_turns.c */

void sim_turned(struct spokei_world_process *virt);
void sim_turns_read(struct sim_end *end);

/* --- oracle_books.c */

void sim_books_check(struct sim_process *process);
void sim_books_timers(struct sim_process *process);
void sim_books_counts(const struct sim_consumer *consumer);
void sim_books_end(struct sim_process *process);
void sim_books_read(struct sim_end *end);

/* Returns the end of a process with this descriptor, or NULL. */
struct sim_end *sim_end_at(struct sim_process *process, int fd);

/* Returns whether this end does not have to read now: because of back-pressure, because its part of
 * a handshake has to be written first, or because it has shut its side, maybe in its stream only.
 */
bool sim_books_deaf(const struct sim_end *end);

#endif
