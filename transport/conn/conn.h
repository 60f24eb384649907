/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of one connection, from before there is a descriptor: reads once a turn, hands
 * messages where they belong, writes when a turn ends, or before, and ends. On the engine's thread.
 *
 *     CONNECTING -> OPENING         the socket is connected; an accepted one begins here
 *     OPENING    -> OPEN            the stream is open; a plain socket is so at once
 *     OPENING    -> CONNECTING      it cannot be opened, and another address may be tried
 *     OPEN       -> FINISHING       the peer sends no more, or this side takes no more and has
 *                                   said so (READONLY); what is begun is answered and written
 *     any        -> CLOSED          for good; it is told with the end of the turn, and then freed
 *
 * READONLY means: I take no more requests, and send no more. It goes behind all that was put
 * before, and is answered by the same, so that a side which says it and hears it has read every
 * request there is, and answered or refused it.
 */
#ifndef SPOKEI_TRANSPORT_CONN_CONN_H
#define SPOKEI_TRANSPORT_CONN_CONN_H

#include "core/memory/map.h"
#include "transport/conn/idle.h"
#include "transport/conn/pending.h"
#include "transport/stream/stream.h"
#include "transport/wire/intake.h"
#include "transport/wire/outlet.h"

enum spokei_conn_state {
	SPOKEI_CONN_CONNECTING,
	SPOKEI_CONN_OPENING,
	SPOKEI_CONN_OPEN,
	SPOKEI_CONN_FINISHING,
	SPOKEI_CONN_CLOSED,
};

struct spokei_conn;
struct spokei_link;
struct spokei_link_limits;
struct spokei_serving;

/* What shows itself of a connection that stands. */
enum spokei_link_event {
	SPOKEI_LINK_EVENT_HEARD,    /* the first message: the peer lives, and speaks this wire */
	SPOKEI_LINK_EVENT_ANSWERED, /* the first answer to anything that was asked here */
	SPOKEI_LINK_EVENT_MISSED,   /* a heartbeat is unanswered: conn->idle.misses in a row */
	SPOKEI_LINK_EVENT_TRUSTED,  /* after that: something was heard */
	SPOKEI_LINK_EVENT_READONLY, /* the peer takes no more requests */
	SPOKEI_LINK_EVENT_WRITABLE, /* ... it does so again */
};

/* What a connection tells the floor above. Each may close any connection. */
struct spokei_conn_up {
	/* OPEN; or CLOSED, with the reason, the last thing it tells. */
	void (*changed)(void *arg, struct spokei_conn *conn, int error);
	void (*event)(void *arg, struct spokei_conn *conn, enum spokei_link_event event);
	/* The attempt to connect has failed, and its descriptor is closed. Returns whether another
	 * one is attached; else the connection is closed. `status`: the negative errno. NULL: there
	 * is no other. */
	bool (*failed)(void *arg, struct spokei_conn *conn, int status);
};

struct spokei_conn {
	struct spokei_stream stream;
	struct spokei_link *link;
	size_t *queued; /* link->queued, for the hot path */
	struct spokei_intake in;
	struct spokei_outlet out;
	struct spokei_pendings pendings; /* calls that wait for the peer's answers */
	struct spokei_map serving;       /* by id: requests of the peer that are being served */
	struct spoke_list servings;
	struct spokei_buffer held;      /* read, and not looked at yet: it was paused meanwhile */
	const struct spokei_wire *wire; /* NULL until the peer's first byte tells */
	const struct spokei_conn_up *up;
	void *up_arg;
	uint64_t handle; /* by which `up` names it to users; 0: it does not */
	/* What `up` found for the request read last; NULL again when another one differs. */
	const void *found;
	enum spokei_conn_state state;
	int error;           /* why it was closed */
	bool heard;          /* a whole message has come */
	bool answered;       /* ... and one that this side asked for */
	bool readonly;       /* the peer takes no more requests, and sends none */
	bool announced;      /* this side has said the same, since announced_ns */
	bool paused;         /* not read, for too much waits to be written */
	bool ended;          /* the peer sends no more, since ended_ns */
	bool blocked;        /* the last write did not take all, or unsent requests wait */
	bool writable;       /* ... and the next one may take more */
	bool unwritable;     /* nothing can be written any more; what the peer sent is still read */
	bool shut;           /* ... for this side has said all; the peer's end is waited for */
	uint8_t probe_codec; /* of the heartbeats it sends */
	uint8_t writables;   /* how often the peer took its READONLY back, in the present minute */
	uint32_t serving_count; /* of `servings` */
	/* No request in `serving` has a larger id, as long as there is any. */
	uint64_t serving_top;
	uint32_t unsent;        /* bytes that the system had not got rid of, an interval ago ... */
	uint64_t sent;          /* ... and those that it had, ever */
	uint64_t asked_mark;    /* calls with a lower mark were written before the last read */
	size_t unsent_requests; /* bytes of calls that wait until they can be written */
	size_t read_held;       /* memory of `in` and `held`, as the link counts it */
	uint32_t unknown;       /* replies to ids never given, in the present minute */
	uint64_t unknown_ns;    /* when that began */
	uint64_t frame_ns;      /* when the frame that lacks bytes began; 0: none */
	uint64_t moved_ns;      /* when the peer last took bytes, while some wait; 0: none wait */
	uint64_t unwritable_ns; /* since when it is so; 0: it is not */
	uint64_t ended_ns;
	uint64_t announced_ns;
	uint64_t writable_ns; /* when the minute of `writables` began */
	uint64_t born_ns;
	uint64_t due_ns; /* of the timer, while it is armed */
	struct spokei_idle idle;
	struct spoke_timer timer; /* the earliest of its times, or before */
	struct spokei_task settle;
	struct spokei_task resume;
	struct spokei_task reap;
	struct spokei_task bury;
	struct spoke_list node; /* of the link */
	struct spoke_address peer;
};

/* 0, or SPOKE_ELIMIT: the engine's wheel has no class left. */
SPOKE_MUST_USE int spokei_link_init(struct spokei_link *link, struct spoke_engine *engine,
				    const struct spokei_link_limits *limits);

/* Nothing is made any more: closes all connections. `end` is run when the last one is freed, with
 * the end of this turn at the earliest. */
void spokei_link_end(struct spokei_link *link, struct spokei_task *end);

/* After the last connection is freed. */
void spokei_link_fini(struct spokei_link *link);

/* The machine slept, and who knows what became of the peers: they are asked. */
void spokei_link_woke(struct spokei_link *link);

/*
 * A connection that is to be made, of this wire: it takes calls at once, and waits for
 * spokei_conn_attach(). Returns 0 or SPOKE_ENOMEM. `changed` is called later, never from here.
 */
SPOKE_MUST_USE int spokei_conn_new(struct spokei_link *link, const struct spokei_wire *wire,
				   const struct spokei_conn_up *up, void *up_arg,
				   struct spokei_conn **ret_conn);

/* Takes over a descriptor that is being connected, while it has none. */
void spokei_conn_attach(struct spokei_conn *conn, int fd, const struct spoke_address *peer);

/* The attempt takes too long: as if it had failed with this negative errno. */
void spokei_conn_give_up(struct spokei_conn *conn, int status);

/* Takes over an accepted descriptor; the first byte tells the wire. Returns 0 or SPOKE_ENOMEM; the
 * descriptor is closed then. */
SPOKE_MUST_USE int spokei_conn_accept(struct spokei_link *link, int fd,
				      const struct spoke_address *peer,
				      const struct spokei_conn_up *up, void *up_arg,
				      struct spokei_conn **ret_conn);

/*
 * Sends a request: when the turn ends, now if it is long, or when the connection is ready and takes
 * it; the connection may be closed afterwards, which ends the call later. message->id is set here,
 * timeout_ms for wires that carry it. `pending->done` and `pending->timeout_ns` are set by the
 * caller; done is called exactly once if this returns 0, never from here. Otherwise: SPOKE_ELIMIT,
 * SPOKE_ENOMEM, SPOKE_ESTATE (closed), or what wire->write() found, if it was asked already.
 */
SPOKE_MUST_USE int spokei_conn_call(struct spokei_conn *conn, struct spokei_pending *pending,
				    struct spokei_message *message);

/* An attempt that is about to be ended is not sent any more, if it waits for the connection. */
void spokei_conn_withdraw(struct spokei_pending *pending);

/* Ends an attempt that is under way, with this error, from here. */
void spokei_conn_cancel(struct spokei_pending *pending, int error);

/* Notes that the request is being served. Returns 0, SPOKE_ELOST (closed) or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_conn_serve(struct spokei_conn *conn, struct spokei_serving *serving,
				     const struct spokei_message *message);

/* Answers a request that was served; message: status, error, value and so on. What cannot be said
 * becomes an error that says why. The serving is over. */
void spokei_conn_answer(struct spokei_serving *serving, struct spokei_message *message);

/* A request that is served without a connection counts towards the limit of its owner all the same,
 * until it is answered, or left out here: it is over without an answer. */
void spokei_conn_join_orphans(struct spokei_serving *serving, struct spokei_link *link);
void spokei_conn_leave_orphans(struct spokei_serving *serving);

/* Answers a request from inside up->request. */
void spokei_conn_reply(struct spokei_conn *conn, const struct spokei_message *request,
		       struct spokei_message *message);

/* The same with an error, before anything was run. */
void spokei_conn_refuse(struct spokei_conn *conn, const struct spokei_message *request, int error,
			const char *text);

/* Takes no more requests, and says so; when those begun are answered and written, the peer agrees,
 * and no call waits, it ends what it sends, and closes with the peer's end, or 5 s later. */
void spokei_conn_finish(struct spokei_conn *conn);

/* Is the connection still being made? It takes calls then, if this side makes it. */
static inline bool spokei_conn_is_opening(const struct spokei_conn *conn)
{
	return conn->state < SPOKEI_CONN_OPEN;
}

/* Is a heartbeat unanswered? */
static inline bool spokei_conn_suspect(const struct spokei_conn *conn)
{
	return conn->idle.misses > 0;
}

/* How long ago its last byte came, as of this turn; UINT64_MAX: none has. */
static inline uint64_t spokei_conn_quiet_ns(const struct spokei_conn *conn)
{
	uint64_t now_ns = conn->stream.engine->begin_ns;
	uint64_t heard_ns = conn->idle.heard_ns;

	if (heard_ns == 0)
		return UINT64_MAX;
	return now_ns > heard_ns ? now_ns - heard_ns : 0;
}

/* Closes at once; calls that wait end with this error, a little later. */
void spokei_conn_close(struct spokei_conn *conn, int error);

/* Closes for a reason that is counted, and says so: what the peer did, or what is missing here. */
void spokei_conn_blame(struct spokei_conn *conn, enum spoke_stat stat, int error);

#endif
