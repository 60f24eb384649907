/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle: checks every run against the invariants of invariants.h. It observes each byte that
 * was written, has arrived or was read, knows the request of each answer and the handler that ran
 * it, and takes nothing from the product but its callbacks.
 */
#ifndef TESTS_SIM_ORACLE_H
#define TESTS_SIM_ORACLE_H

#include "tests/sim/sim.h"

/* What had kept a process from judging, up to some moment; from then on it counts anew. */
struct sim_excuse {
	uint64_t late_turns; /* of the process */
	uint64_t held_ns;    /* ... */
	uint64_t sleeps;     /* of the world */
};

/* One end of a connection. */
struct sim_end {
	struct sim_stream *stream;
	struct sim_process *process; /* NULL: not accepted yet */
	int fd;                      /* -1: closed, or not accepted */
	uint64_t since_ns;           /* when it was opened */
	uint64_t stood_ns;           /* when it was told that it stands; 0: not yet */
	uint64_t arrived;            /* bytes that could be read, ever */
	uint64_t taken;              /* of them, read */
	uint64_t arrived_ns;         /* when the last came */
	uint64_t read_ns;            /* when the last was read */
	uint64_t wrote_ns;           /* when the last was written */
	uint64_t first_wrote_ns;
	uint64_t again_ns;        /* when a read was told so although there was something */
	uint64_t asked_ns;        /* when its last heartbeat was handed over whole; 0: never */
	uint64_t patience_ns;     /* until then those may be waited for */
	uint64_t broken_turn;     /* the turn in which it read what is no frame; 0: none */
	uint64_t readonly;        /* the order of its reading that no more calls are taken; 0 */
	bool readonly_seen;       /* in this turn, maybe after what was read with it */
	uint64_t guessed_ns;      /* when an answer was read to what was half written */
	struct sim_excuse silent; /* when bytes came last, or it stood */
	struct sim_excuse asked;  /* when patience_ns was set */
	uint64_t missed_ns;
	unsigned misses;      /* in a row, as it told */
	unsigned pauses;      /* told since it was opened, before another one */
	uint64_t read_turn;   /* the last turn in which it was read ... */
	unsigned reads;       /* ... and how often then */
	uint64_t hungry_turn; /* the turn since which something waits to be read; 0: none */
	bool shut;
	bool ended;     /* the peer's end has come, or it broke */
	bool announced; /* it wrote that it takes no more calls */
	bool told;      /* that it stands */
	bool told_closed;
	bool suspected; /* as it was told, like the next two */
	bool on_probation;
	bool read_only;
	struct sim_frames sent; /* what it writes */
	struct sim_frames seen; /* what it reads */
	uint8_t state;          /* of the product's connection, as seen last */
};

/* What became of a request id of one connection. */
struct sim_ask {
	uint32_t number; /* of the call; 0: a heartbeat */
	uint8_t attempt; /* as it says; 0: it does not */
	bool written;
	bool two_way;
	bool read;     /* by the provider */
	bool answered; /* by the provider */
	bool refused;  /* ... without running it */
	bool ran;      /* by a handler */
	bool heard;    /* an answer was read by who asked */
	uint64_t read_ns;
};

struct sim_stream {
	struct sim_stream *next;
	struct sim_world *world;
	unsigned number;
	unsigned place; /* of the provider it leads to */
	bool dubbo;
	bool tampered; /* with what flows to the provider or back */
	bool clogged;
	bool over;        /* both ends are closed */
	char peer[48];    /* what the provider calls the other one */
	unsigned running; /* handlers, of its requests */
	bool marred;      /* what is under way on it is not as it was sent, or never comes */
	uint64_t hole_until_ns;
	struct sim_end ends[2]; /* who connected, who accepted */
	uint64_t id_base;
	struct sim_ask *asks;
	uint32_t ask_count;
	uint32_t ask_room;
	unsigned char last_reply[SIM_KEPT]; /* a whole frame, to be sent again; of last_len bytes */
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

/* The newest connection between these, open or not; NULL: there was none. */
struct sim_stream *sim_stream_between(struct sim_consumer *consumer, unsigned place);

/* --- oracle_asks.c */

/* A side has written, or read, a whole frame. */
void sim_ask_sent(struct sim_end *end, const struct sim_frame *frame);
void sim_ask_seen(struct sim_end *end, const struct sim_frame *frame);

/* What was read that takes no more calls counts from now on. */
void sim_ask_readonly(struct sim_end *end);

/* A handler runs it, which came by this connection (NULL: not known) and says which attempt it is.
 */
void sim_ask_runs(struct sim_call *call, struct sim_stream *stream, unsigned attempt);

/* Is anything left unanswered that should not be? After healing. */
void sim_asks_check(struct sim_world *world);

/* --- oracle_calls.c */

void sim_call_ended(struct sim_call *call, const struct spoke_result *result);
void sim_call_taken(struct sim_call *call);

/* Returns the connection by which it came, NULL: not known. */
struct sim_stream *sim_call_runs(struct sim_provider *provider, struct sim_call *call,
				 const struct spoke_request *request);
void sim_handler_ended(struct sim_provider *provider, struct sim_stream *stream);
void sim_calls_check(struct sim_world *world, bool all);

/* --- oracle_attempts.c */

/* It may have more than one attempt after another. */
static inline bool sim_repeats(const struct sim_call *call)
{
	enum sim_policy policy = call->by->plan->calls.policy;

	return (policy == SIM_FAILOVER || policy == SIM_FAILBACK) &&
	       call->by->plan->calls.retries > 0;
}

/* How long an attempt may take, and all of them. */
uint64_t sim_attempt_ns(const struct sim_call *call);
uint64_t sim_attempts_ns(const struct sim_call *call);

/* A request of this call is written whole, runs, or an answer to it is read. */
void sim_attempt_written(struct sim_call *call, struct sim_stream *stream,
			 const struct sim_frame *frame);
void sim_attempt_runs(struct sim_call *call);

/* The engine may have counted more attempts beside the first. */
void sim_window_look(struct sim_consumer *consumer);

/* --- oracle_tickets.c */

void sim_ticket_opened(struct sim_call *call, const struct spoke_result *result);
void sim_ticket_told(struct sim_consumer *consumer, const struct spoke_ticket_result *settled);
void sim_tickets_check(struct sim_world *world);
void sim_tickets_end(struct sim_consumer *consumer);

/* --- oracle_lists.c */

void sim_list_told(struct sim_process *process, size_t count);
void sim_lists_check(struct sim_world *world);

/* Does it list all providers, and nobody else, and is connected to each, unless it need not be? */
bool sim_lists_all(const struct sim_consumer *consumer);

/* Does it list those that are not gone for good, and nobody else? */
bool sim_lists_living(const struct sim_consumer *consumer);

/* Fails if it does not. */
void sim_lists_whole(const struct sim_consumer *consumer);

/* --- oracle_links.c */

/* The end that this process has accepted, by the name of its peer. */
struct sim_end *sim_accepted_end(struct sim_process *process, const char *name);

void sim_link_changed(struct sim_process *process, const struct spoke_link_event *event);
void sim_links_check(struct sim_world *world);

/* Of this side, up to now. */
struct sim_excuse sim_excuse_now(const struct sim_end *end);

/* A heartbeat was handed over whole. */
void sim_link_asked(struct sim_end *end);

/* From how much on a turn of this process is late. */
uint64_t sim_late_from(const struct sim_process *process);

/* How late a turn of it may be that judges who is silent. */
uint64_t sim_judges_until(const struct sim_process *process);

/* --- oracle_turns.c */

void sim_turned(struct spokei_world_process *virt);
void sim_turns_read(struct sim_end *end);

/* --- oracle_books.c */

void sim_books_check(struct sim_process *process);
void sim_books_timers(struct sim_process *process);
void sim_books_counts(const struct sim_consumer *consumer);
void sim_books_end(struct sim_process *process);
void sim_books_read(struct sim_end *end);

/* Does this side not read on purpose? */
bool sim_books_paused(const struct sim_end *end);

#endif
