/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection, from before it has a descriptor to its end: it reads once a turn, delivers
 * messages, and writes at the end of a turn or earlier. On the engine's thread.
 *
 *     CONNECTING -> OPENING         it has got a connected socket; an accepted one begins here
 *     OPENING    -> OPEN            the stream is open; a plain socket is open at once
 *     OPENING    -> CONNECTING      opening failed, and another address may be tried
 *     OPEN       -> FINISHING       the peer sends no more, or this side drains and has sent
 *                                   READONLY; started requests are answered and written. Or the
 *                                   peer of a consumer drains and no call waits for it
 *     any        -> CLOSED          final; reported at the end of the turn, then freed
 *
 * READONLY, the drain notice, means: this side accepts no more requests and sends none. It is
 * queued after all earlier output, and the peer answers it with READONLY. A side that has sent and
 * received it has thus read every request. In an engine's drain requests are served until the
 * answer. Java peers do not answer READONLY: 3 s after their last request they count as having done
 * so. Outside of a drain requests are served for 300 ms. On a wire without ids nothing is sent by
 * itself: the next answer tells that it is the last one.
 *
 * A side that steps aside sends READONLY with a marked id: it prefers no requests, answers those
 * that come, and the connection stays, until WRITABLE takes that back. Java peers do not know the
 * mark, and treat both in the same way.
 */
#ifndef SPOKEI_TRANSPORT_CONN_CONN_H
#define SPOKEI_TRANSPORT_CONN_CONN_H

#include "core/memory/map.h"
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

struct spokei_callers;
struct spokei_conn;
struct spokei_identity;
struct spokei_link;
struct spokei_link_limits;
struct spokei_sender;
struct spokei_quota_peer;
struct spokei_connector_profile;
struct spokei_greeting;
struct spokei_serving;

/*
 * The idle check. A peer that sends nothing for one interval is probed; every further interval
 * without data counts as a miss. Suspect after the first miss, dead after the third. Only this
 * side's own probes count, so the other side's interval does not matter. Intervals in which this
 * side did not read do not count. Pure: time is a parameter.
 *
 *     heard                +1 interval   +2            +3            +4
 *       |---------------------|-------------|-------------|-------------|
 *                           probe        miss 1        miss 2        miss 3
 *                                       suspect, probe    probe         dead
 */

#define SPOKEI_IDLE_MISSES 3u /* misses in a row: dead */
#define SPOKEI_IDLE_OFF 0u    /* of an interval: no idle check */

struct spokei_idle {
	uint64_t since_ns; /* when the present interval of silence began */
	uint64_t heard_ns; /* when the last byte arrived; 0: none has */
	uint8_t misses;    /* in a row, so far */
	bool asked;        /* a probe of this side is unanswered */
	/* ... and the kernel has taken it. Until then each byte that the kernel takes starts a new
	 * interval: slow readers have a deadline of their own. */
	bool handed;
	uint16_t ahead; /* bytes until the end of the probe in the control queue */
};

enum spokei_idle_verdict {
	SPOKEI_IDLE_KEEP,    /* check again at spokei_idle_due() */
	SPOKEI_IDLE_PROBE,   /* send a probe, then call spokei_idle_asked() */
	SPOKEI_IDLE_SUSPECT, /* a miss: send another probe, unless one is still queued */
	SPOKEI_IDLE_DEAD,    /* the last miss */
};

/* The circumstances of a check. */
struct spokei_idle_moment {
	uint64_t now_ns;
	uint64_t interval_ns;
	bool late; /* this side was delayed, and may have unread bytes */
};

/* Starts the check, for a new connection or after a break. */
static inline void spokei_idle_start(struct spokei_idle *idle, uint64_t now_ns)
{
	*idle = (struct spokei_idle){ .since_ns = now_ns };
}

/* A probe was queued. */
static inline void spokei_idle_asked(struct spokei_idle *idle, uint64_t now_ns)
{
	idle->asked = true;
	idle->handed = false;
	idle->since_ns = now_ns;
}

/* The kernel has taken bytes that were queued before the probe. */
static inline void spokei_idle_moved(struct spokei_idle *idle, uint64_t now_ns)
{
	if (idle->asked && !idle->handed)
		idle->since_ns = now_ns;
}

/* The kernel has taken the probe. */
static inline void spokei_idle_handed(struct spokei_idle *idle, uint64_t now_ns)
{
	spokei_idle_moved(idle, now_ns);
	idle->handed = true;
}

/* A byte has arrived. Returns whether the peer was suspect. */
static inline bool spokei_idle_heard(struct spokei_idle *idle, uint64_t now_ns)
{
	bool was_suspect = idle->misses > 0;

	idle->since_ns = now_ns;
	idle->heard_ns = now_ns;
	idle->misses = 0;
	idle->asked = false;
	return was_suspect;
}

/* Returns when to check next; UINT64_MAX: never. */
static inline uint64_t spokei_idle_due(const struct spokei_idle *idle, uint64_t interval_ns)
{
	if (interval_ns == SPOKEI_IDLE_OFF || interval_ns >= UINT64_MAX - idle->since_ns)
		return UINT64_MAX;
	return idle->since_ns + interval_ns;
}

/* Returns whether an interval that counts is over. The socket is then read once more before the
 * check. */
static inline bool spokei_idle_ripe(const struct spokei_idle *idle,
				    const struct spokei_idle_moment *moment)
{
	return !moment->late && moment->now_ns >= spokei_idle_due(idle, moment->interval_ns);
}

enum spokei_idle_verdict spokei_idle_check(struct spokei_idle *idle,
					   const struct spokei_idle_moment *moment);

/* Events of an open connection. */
enum spokei_link_event {
	SPOKEI_LINK_EVENT_HEARD,    /* the first message: the peer is alive and speaks this wire */
	SPOKEI_LINK_EVENT_ANSWERED, /* the first reply to anything that this side sent */
	SPOKEI_LINK_EVENT_MISSED,   /* a heartbeat is unanswered: conn->idle.misses in a row */
	SPOKEI_LINK_EVENT_TRUSTED,  /* after that: bytes have arrived */
	SPOKEI_LINK_EVENT_READONLY, /* the peer accepts no more requests */
	SPOKEI_LINK_EVENT_WRITABLE, /* ... the peer accepts requests again */
	SPOKEI_LINK_EVENT_NAMED,    /* a provider has told its instance: conn->instance */
};

/* The most that has come from the peer so far. */
enum spokei_conn_heard {
	SPOKEI_HEARD_NOTHING,
	SPOKEI_HEARD_MESSAGE, /* a whole message */
	SPOKEI_HEARD_ANSWER,  /* ... and a reply to this side */
};

/* Whether the stream takes output. */
enum spokei_conn_output {
	SPOKEI_OUTPUT_FREE,
	SPOKEI_OUTPUT_BLOCKED,  /* the last write did not take all, or unsent requests wait */
	SPOKEI_OUTPUT_WRITABLE, /* ... and the next write may take more */
	SPOKEI_OUTPUT_BROKEN,   /* never again; bytes that the peer has sent are still read */
	SPOKEI_OUTPUT_SHUT,     /* ... because all is sent; this side waits for the peer's end */
};

/* Conditions that may last for a limited time only: see the table in times.c. */
enum spokei_conn_limit {
	SPOKEI_LIMIT_NOTICE, /* this side has sent READONLY, or the last request has crossed that */
	SPOKEI_LIMIT_MUTE,   /* no message has come */
	SPOKEI_LIMIT_OPENING, /* of an accepted stream */
	SPOKEI_LIMIT_SHUT,    /* SPOKEI_OUTPUT_SHUT */
	SPOKEI_LIMIT_BROKEN,  /* SPOKEI_OUTPUT_BROKEN */
	SPOKEI_LIMIT_HALF,    /* the peer sends no more */
	SPOKEI_LIMIT_SLOW,    /* no byte moves of those that wait here or in the stream */
	SPOKEI_LIMIT_FRAME,   /* an incomplete frame */
	SPOKEI_LIMITS,
};

/* Counts events of one minute after the other. */
struct spokei_minute {
	uint64_t began_ns;
	uint32_t count;
};

/* Reasons for a pause. */
#define SPOKEI_PAUSED_FULL 1u /* too much output is queued; nothing is read */
#define SPOKEI_PAUSED_TURN 2u /* a request is served whose answer comes before the next request */

/* Callbacks to the owner. Each may close any connection. */
struct spokei_conn_up {
	/* The state is OPEN; or CLOSED, with the reason, which is the last callback. */
	void (*changed)(void *arg, struct spokei_conn *conn, int error);
	void (*event)(void *arg, struct spokei_conn *conn, enum spokei_link_event event);
	/*
	 * The stream could not be opened, and its descriptor is closed. Returns whether another one
	 * will be attached; else the connection is closed. `status`: the negative errno. NULL:
	 * there is no other address.
	 */
	bool (*failed)(void *arg, struct spokei_conn *conn, int status);
};

struct spokei_conn {
	/* When each limited condition began; 0: it does not last now. Turns need the last ones. */
	uint64_t since[SPOKEI_LIMITS];

	/* Of each turn, together so that a turn touches few cache lines. */
	struct spokei_link *link;
	size_t *queued;                 /* link->queued, for the hot path */
	const struct spokei_wire *wire; /* NULL until the peer's first byte tells the wire */
	enum spokei_conn_state state;
	int error;      /* why it was closed */
	uint8_t heard;  /* enum spokei_conn_heard */
	uint8_t output; /* enum spokei_conn_output */
	uint8_t paused; /* SPOKEI_PAUSED_... bits; no message is delivered meanwhile */
	bool doubted;   /* the peer was silent before, and has not answered since */
	bool readonly;  /* the peer accepts no more requests and sends none */
	bool away;      /* the peer has stepped aside, or is read only: calls go elsewhere */
	/* It ends with its last call or request: it is FINISHING, or the peer of a consumer sent
	 * READONLY and waits for the connection's end. */
	bool ending;
	bool cancels; /* the peer understands CANCEL, so it is one of spoke */
	/* The peer's instance, which remembers requests; 0: it has not said so. Of a consumer. */
	uint32_t instance;
	uint64_t instance_ns;      /* ... a time of its clock, ... */
	uint64_t instance_told_ns; /* ... and this side's, not before that arrived */
	bool waits_open;     /* the peer keeps its sending side open while it waits for replies */
	bool holds;          /* the stream has taken bytes that flush() has not passed on */
	uint8_t probe_codec; /* codec of heartbeats: the peer's, or hessian2 until it is known */
	uint8_t asked_codec; /* codec of the peer's last request; this side's own before it */
	bool local;          /* accepted at a unix socket */
	/* The owner asks for proof, and the peer has given none yet: its frames are short, few
	 * bytes wait for it, and it gets no pushes. */
	bool unproven;
	bool dismissed;         /* ... it is closed after the answer that is given now */
	bool left;              /* its owner has counted it out, before it is reported as closed */
	uint32_t serving_count; /* of `servings` */
	struct spokei_stream stream;
	uint64_t profile_id; /* of requests of this side */
	/* The route that `up` found for the last request; NULL after a different request. */
	const void *found;
	struct spokei_task settle;
	uint64_t asked_mark;    /* calls with a lower mark were written before the last read */
	size_t unsent_requests; /* bytes of unsent requests */
	size_t read_held;       /* memory of `in` and `held`, as accounted by the link */
	struct spokei_idle idle;
	struct spokei_outlet out;
	struct spokei_pendings pendings; /* calls that wait for the peer's replies */
	struct spoke_list servings;
	struct spokei_map serving; /* requests of the peer that are being served, by id */
	/* No request in `serving` has a larger id, as long as there are any. */
	uint64_t serving_top;
	struct spokei_buffer held; /* read during a pause and not processed yet */
	struct spokei_intake in;   /* its last part is for incomplete frames */

	/* Of some turns. */
	uint64_t heartbeat_ns; /* interval that the peer asks for, if it is shorter; 0: none */
	/* NULL: profile_id is that of a codec. */
	const struct spokei_connector_profile *profile;
	const struct spokei_conn_up *up; /* NULL: the end of a closed one is not reported */
	void *up_arg;
	uint64_t handle;        /* its name for users, given by `up`; 0: none */
	uint64_t showed;        /* tells the token that this side has shown in this way; 0: none */
	uint64_t show_again_ns; /* when it is shown again, because the peer refused it; 0: never */
	uint16_t refusals;      /* requests without proof */
	uint32_t unsent;        /* bytes that the kernel had not sent an interval ago ... */
	uint64_t sent;          /* ... and the total that it had sent */
	struct spokei_minute unknown;   /* replies to unknown ids */
	struct spokei_minute writables; /* times the peer took READONLY back, or stepped aside */
	const char
		*foreign; /* a sentence about a peer whose first bytes were no message, or NULL */
	/* When the request that is served has to be answered, on wires without ids. */
	uint64_t answer_ns;
	uint64_t late_turn; /* engine->turn, in which it was read for calls that were due */
	uint64_t passed;    /* of a layered stream, as of its last write or flush */
	uint64_t born_ns;
	uint64_t refilled_ns;     /* when the peer got the spare bytes for translated bodies last */
	uint64_t due_ns;          /* due time of the timer, while it is armed */
	struct spoke_timer timer; /* armed for the earliest of its times, or earlier */
	struct spokei_task resume;
	struct spokei_task end;
	struct spoke_list node;   /* in the list of the link */
	struct spoke_list silent; /* ... of those without a byte; next == NULL: not there */
	struct spokei_quota_peer *quota_peer; /* of an accepted one, for its owner */
	struct spokei_identity *identity;     /* of the peer; NULL: only its address is known */
	struct spokei_sender *sender; /* shared with requests in service; NULL: none needs it */
	struct spoke_address peer;
};

/* Prepares a link. Returns 0, or SPOKE_ELIMIT: the engine's wheel has no class left. */
SPOKE_MUST_USE int spokei_link_init(struct spokei_link *link, struct spoke_engine *engine,
				    const struct spokei_link_limits *limits);

/* Tells the peers of all connections over streams with a layer that this side ends on purpose,
 * before spokei_link_end(). A forked child, whose parent goes on, tells nothing. */
void spokei_link_part(struct spokei_link *link);

/* Closes all connections; no new ones can be made. `end` runs when the last one is freed, at the
 * end of this turn at the earliest. */
void spokei_link_end(struct spokei_link *link, struct spokei_task *end);

/* Frees the link, after its last connection was freed. */
void spokei_link_fini(struct spokei_link *link);

/* Probes all peers, because the machine has slept. */
void spokei_link_woke(struct spokei_link *link);

/* Gives the instance of a provider a number, and tells the peers. Its clock is so far ahead of the
 * engine's. */
void spokei_link_name(struct spokei_link *link, uint32_t instance, uint64_t clock_ns);

/* Makes a connection of this wire that has no descriptor yet: it takes calls at once, and waits for
 * spokei_conn_attach(). Returns 0 or SPOKE_ENOMEM. `changed` is called later, never from here. */
SPOKE_MUST_USE int spokei_conn_new(struct spokei_link *link, const struct spokei_wire *wire,
				   const struct spokei_conn_up *up, void *up_arg,
				   struct spokei_conn **ret_conn);

/* Takes over a descriptor that is connected to conn->peer, while the connection has none, and opens
 * its stream. `kind`: of that; NULL: that of the link. */
void spokei_conn_attach(struct spokei_conn *conn, int fd, const struct spokei_stream_kind *kind);

/* Makes the greeting of a stream that is open when its peer has answered: a heartbeat of the wire,
 * which has heartbeats. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_conn_greeting(const struct spokei_link *link,
					const struct spokei_wire *wire,
					struct spokei_greeting **ret_greeting);

/* Ends the opening of a stream that takes too long, as if it had failed with this negative errno.
 */
void spokei_conn_give_up(struct spokei_conn *conn, int status);

/* An accepted connection. */
struct spokei_arrival {
	int fd;
	const struct spoke_address *peer;
	bool http;                            /* HTTP is served at this address */
	bool local;                           /* it is a unix socket, which knows the peer's user */
	struct spokei_quota_peer *quota_peer; /* conn->quota_peer */
	const struct spokei_stream_kind *stream; /* NULL: that of the link */
};

/* Takes over an accepted descriptor; its first byte tells the wire. Returns 0, or SPOKE_ENOMEM
 * after closing the descriptor. */
SPOKE_MUST_USE int spokei_conn_accept(struct spokei_link *link,
				      const struct spokei_arrival *arrival,
				      const struct spokei_conn_up *up, void *up_arg,
				      struct spokei_conn **ret_conn);

/*
 * Sends a request: at the end of the turn, at once if it is long, or when the connection is open
 * and takes it. The connection may be closed afterwards, which ends the call later. message->id is
 * set here, and timeout_ms for wires that carry it. The caller sets `pending->done` and
 * `pending->timeout_ns`. done is called exactly once if this returns 0, never from here. Otherwise
 * it returns SPOKE_ELIMIT, SPOKE_ENOMEM, SPOKE_ESTATE (closed), or the error of wire->write().
 */
SPOKE_MUST_USE int spokei_conn_call(struct spokei_conn *conn, struct spokei_pending *pending,
				    struct spokei_message *message);

/* Is asked about a guarded request right before it is written. Returns 0, or the error that the
 * request ends with, unwritten. Must not call users, nor change any connection. */
typedef int (*spokei_conn_guard_fn)(struct spokei_pending *pending);

/*
 * The same for a guarded request. It stays unsent until the end of the turn, or for as long as the
 * connection takes nothing, and can be withdrawn until then. If the stream does not take its first
 * byte, it is unsent again, and `guard` is asked again before the next write.
 */
SPOKE_MUST_USE int spokei_conn_call_guarded(struct spokei_conn *conn,
					    struct spokei_pending *pending,
					    struct spokei_message *message,
					    spokei_conn_guard_fn guard);

/* Returns whether the request of an attempt in flight was written, or cannot be withdrawn any more.
 */
bool spokei_conn_may_be_written(const struct spokei_pending *pending);

/* Withdraws an attempt that is about to end, if it is still unsent. */
void spokei_conn_withdraw(struct spokei_pending *pending);

/* Ends an attempt in flight with this error, from here. `tells`: a peer of spoke is told so, and
 * need not begin. */
void spokei_conn_cancel(struct spokei_pending *pending, int error, bool tells);

/* Registers a request that is being served. Returns 0, SPOKE_ELOST (closed) or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_conn_serve(struct spokei_conn *conn, struct spokei_serving *serving,
				     const struct spokei_message *message);

/* Tells a peer of spoke which instance of a provider this is; nothing if it is none that remembers
 * requests, or the peer is not known to be of spoke. */
void spokei_conn_name(struct spokei_conn *conn);

/* Answers a registered request; message: status, error, value and so on. If the answer cannot be
 * encoded, an error with the reason is sent. The serving is over. */
void spokei_conn_answer(struct spokei_serving *serving, struct spokei_message *message);

/* Drops a request that is served without a connection. Until then, or until it is answered, it
 * counts towards its owner's limit. */
void spokei_conn_join_orphans(struct spokei_serving *serving, struct spokei_link *link);
void spokei_conn_leave_orphans(struct spokei_serving *serving);

/* Answers a request from inside the handler of requests. */
void spokei_conn_reply(struct spokei_conn *conn, const struct spokei_message *request,
		       struct spokei_message *message);

/* Tells the link's owner that a request is not served. */
void spokei_conn_note_refused(struct spokei_conn *conn, const struct spokei_message *request,
			      int error);

/* Does both, for a request that no filter has seen. */
void spokei_conn_refuse(struct spokei_conn *conn, const struct spokei_message *request, int error,
			const char *text);

/*
 * Drains: sends READONLY and accepts only requests that crossed it. When started requests are
 * answered and written, the peer has agreed, and no call waits, it shuts its sending side. It
 * closes at the peer's end, or 5 s later.
 */
void spokei_conn_finish(struct spokei_conn *conn);

/* Tells the peer, if its wire has the notice, that this side steps aside, or is back. A connection
 * that cannot bear the news that this side is back is drained, so that the peer connects again. */
void spokei_conn_tell(struct spokei_conn *conn, bool away);

/* Drains the connection of a stream. */
void spokei_conn_finish_stream(struct spokei_stream *stream);

/* Notes the SHA-256 of a token that counts for all requests of this connection. Returns 0 or
 * SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_conn_show(struct spokei_conn *conn, const unsigned char *digest);

/* Sends the queued bytes, as far as the stream takes it, and closes. */
void spokei_conn_dismiss(struct spokei_conn *conn, enum spoke_stat stat, int error);

/* Returns whether the connection is still being made. If this side makes it, it takes calls. */
static inline bool spokei_conn_is_opening(const struct spokei_conn *conn)
{
	return conn->state < SPOKEI_CONN_OPEN;
}

/* Returns whether a request is queued at once, and cannot be withdrawn any more. */
static inline bool spokei_conn_takes_at_once(const struct spokei_conn *conn)
{
	return conn->state == SPOKEI_CONN_OPEN && conn->output == SPOKEI_OUTPUT_FREE;
}

/* Returns whether writing is over. */
static inline bool spokei_conn_unwritable(const struct spokei_conn *conn)
{
	return conn->output >= SPOKEI_OUTPUT_BROKEN;
}

/* Returns whether the peer sends no more. */
static inline bool spokei_conn_ended(const struct spokei_conn *conn)
{
	return conn->since[SPOKEI_LIMIT_HALF] != 0;
}

/* Returns whether a heartbeat is unanswered. */
static inline bool spokei_conn_suspect(const struct spokei_conn *conn)
{
	return conn->idle.misses > 0;
}

/* Returns whether nothing speaks against a call: it is open, and its peer was never silent. */
static inline bool spokei_conn_is_ready(const struct spokei_conn *conn)
{
	return conn->state == SPOKEI_CONN_OPEN && !spokei_conn_unwritable(conn) && !conn->away &&
	       !conn->doubted && !spokei_conn_suspect(conn);
}

/* Returns the time since its last byte, as of this turn; UINT64_MAX: none has arrived. */
static inline uint64_t spokei_conn_quiet_ns(const struct spokei_conn *conn)
{
	uint64_t now_ns = conn->stream.engine->begin_ns;
	uint64_t heard_ns = conn->idle.heard_ns;

	if (heard_ns == 0)
		return UINT64_MAX;
	return now_ns > heard_ns ? now_ns - heard_ns : 0;
}

/* Notes that the peer has shown the credentials of this number, and trusts it. Returns 0 or
 * SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_conn_prove(struct spokei_conn *conn, uint64_t proof);

/* Returns whether a list of callers lets in the peer, which remembers it; *ret_new: this is the
 * first time. `callers` NULL: all are let in. */
bool spokei_conn_let_in(struct spokei_conn *conn, const struct spokei_callers *callers,
			bool *ret_new);

/* Closes at once; waiting calls end with this error, a little later. */
void spokei_conn_close(struct spokei_conn *conn, int error);

/* Closes with an error: counts the reason and reports it as an event, with conn->foreign, or the
 * reason of the stream. */
void spokei_conn_close_with(struct spokei_conn *conn, enum spoke_stat stat, int error);

#endif
