/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link: the settings, limits and accounts that all connections of one consumer or provider share.
 * On the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_CONN_LINK_H
#define SPOKEI_TRANSPORT_CONN_LINK_H

#include "core/base/pace.h"
#include "core/memory/buffer.h"
#include "core/memory/cells.h"
#include "transport/wire/message.h"

#define SPOKEI_FRAME_MAX 8388608u /* bytes; by default */
#define SPOKEI_OUT_HIGH 8388608u  /* queued bytes: stop reading */
#define SPOKEI_OUT_LOW 2097152u   /* ... resume reading */
#define SPOKEI_OUT_MAX 16777216u  /* ... close */
#define SPOKEI_SLOW_NS                                                                             \
	UINT64_C(30000000000) /* without a byte taken, while bytes are queued: close */
#define SPOKEI_FRAME_NS UINT64_C(10000000000)    /* time limit of an incomplete frame */
#define SPOKEI_HANDSHAKE_NS UINT64_C(5000000000) /* ... of a stream that was accepted, to open */
#define SPOKEI_HALF_NS UINT64_C(60000000000)
/* Time limit for the peer to answer READONLY; in a drain since its last request. */
#define SPOKEI_GOODBYE_NS UINT64_C(3000000000)
/* Outside of a drain: how long after READONLY a peer that does not answer it may send requests. */
#define SPOKEI_CROSSING_NS UINT64_C(300000000)
/* Queued bytes at which an unproven peer is not read any more. */
#define SPOKEI_UNPROVEN_OUT 1024u
/* Bytes that may be made of translated bodies beyond those that they earn; ... of an unproven peer.
 */
#define SPOKEI_SPARE 262144u
#define SPOKEI_UNPROVEN_SPARE 8192u
/* How long the peer's end may take once this side can write no more. */
#define SPOKEI_LINGER_NS UINT64_C(5000000000)
#define SPOKEI_UNKNOWN_REPLIES 1000u /* in a minute; beyond: close */

/* spokei_link_change() replaces all; the owner keeps those that must not change. */
struct spokei_link_limits {
	size_t out_high;
	size_t out_low;
	size_t queued_max;    /* queued bytes, over all connections */
	size_t held_max;      /* bytes of incomplete frames, over all connections */
	uint32_t pending_max; /* calls that wait for a reply, over all connections */
	uint32_t serving_max; /* requests being served, over all connections */
	uint32_t serving_per_conn_max;
	uint32_t unknown_replies; /* in a minute */
	struct spokei_wire_limits wire;
	size_t out_max;
	uint64_t slow_ns;
	uint64_t frame_ns;
	uint64_t handshake_ns; /* time limit for an accepted stream to open */
	/* Time of a request whose caller names none, for its handler; 0: no limit. */
	uint64_t timeout_default_ns;
	uint64_t half_ns; /* time limit of replies to a peer that sends no more */
	uint64_t mute_ns; /* time limit of the peer's first byte; 0: none */
	uint64_t goodbye_ns;
	uint64_t linger_ns;     /* time limit of the peer's end once this side can write no more */
	uint64_t heartbeat_ns;  /* silence after which a peer is probed; SPOKEI_IDLE_OFF: never */
	uint64_t idle_close_ns; /* silence that closes a connection whose wire has no heartbeats; 0:
				   none */
	/* Bytes of a frame of a peer that has proven nothing yet; 0: no proof is asked for. */
	size_t unproven_frame_max;
	uint8_t ring_bits; /* log2 of the bytes of a ring in shared memory, where this side
			      connects; 0: the default */
};

/* The limit that refused a call with ELIMIT: set where that is decided. */
enum spokei_refused_by {
	SPOKEI_REFUSED_BY_PENDING, /* pending_max */
	SPOKEI_REFUSED_BY_QUEUED,  /* queued_max */
	SPOKEI_REFUSED_BY_OUTPUT,  /* out_max */
	SPOKEI_REFUSED_BY_IDS,     /* those of a connection */
	/* Limits of the owner. */
	SPOKEI_REFUSED_BY_CALLS,
	SPOKEI_REFUSED_BY_KEPT, /* queued_max, for memory of calls */
	SPOKEI_REFUSED_BY_ATTACHMENTS,
	SPOKEI_REFUSED_BY_ACTIVES,
	SPOKEI_REFUSED_BY_RATE,
	SPOKEI_REFUSED_BY_ENDPOINTS,
	SPOKEI_REFUSED_BY_TIMERS,
	SPOKEI_REFUSED_BY_TASKS,
	SPOKEI_REFUSED_BY_BYTES,
	SPOKEI_REFUSED_BY_JOURNAL,
	SPOKEI_REFUSED_BY_FILTER,
};

struct spoke_engine;
struct spokei_sender;
struct spokei_stream_kind;
struct spokei_task;
struct spokei_conn;
struct spokei_pending;
struct spokei_unanswered;

/*
 * Serves a valid request. `message` is borrowed for the call. The request is answered by
 * spokei_conn_reply() at once, or registered by spokei_conn_serve() and answered later. May close
 * any connection.
 */
typedef void (*spokei_serve_fn)(void *arg, struct spokei_conn *conn,
				const struct spokei_message *message);

struct spokei_link {
	struct spoke_engine *engine;
	uint32_t pending_count;
	uint32_t serving_count;
	size_t queued;         /* bytes, unsent requests included */
	size_t held;           /* bytes */
	bool connects;         /* a consumer's: it reconnects */
	bool asked;            /* this side has sent a request: it accepts replies */
	bool closing;          /* new requests are refused */
	uint32_t instance;     /* of a provider that remembers requests; 0: none */
	uint64_t clock_ns;     /* the instance's clock is so far ahead of the engine's */
	bool users_prove;      /* the user at a unix socket is proof enough, as a list names it */
	spokei_serve_fn serve; /* NULL: requests are answered "no such service" */
	void *serve_arg;
	struct spokei_unanswered *unanswered; /* of a provider; NULL: the requests of no other */
	unsigned pending_class;               /* of timers */
	struct spokei_link_limits limits;

	/* Of few calls. */
	enum spokei_refused_by refused_by; /* of the last call that a limit refused */
	/* Of connections whose socket stands from now on. */
	const struct spokei_stream_kind *stream;
	struct spokei_wire_limits unproven; /* those of the wire, with lower bounds */
	struct spokei_buffer plans;         /* of the codecs, for all messages that are written */
	struct spoke_list conns;            /* the connections that are not closed */
	struct spoke_list silent;           /* ... accepted, and without a byte; oldest first */
	struct spokei_cells cells;          /* memory of connections */
	uint32_t conn_count;
	/* Requests whose connection is gone, while their handlers still run: a peer that sends and
	 * resets, again and again, frees no place that way. */
	uint32_t orphan_count; /* with those that their callers have cancelled */
	struct spoke_list orphans;
	struct spokei_sender *spare_sender; /* for the next request that needs one; may be NULL */
	struct spokei_bucket blames;        /* events of closed connections; counters have all */
	/* Returns whether the method of a message that is no call is known to its sender, and not
	 * marked as safe. NULL: it never is. */
	bool (*is_unsafe)(void *serve_arg, struct spokei_conn *conn,
			  const struct spokei_message *message);
	/* Counts a request that cannot be read, and so shows no proof, against its unproven sender.
	 * NULL: no peer is unproven. */
	void (*unread)(void *serve_arg, struct spokei_conn *conn);
	/* Is told of a request that is answered with this error without being served. NULL: not
	 * wanted. */
	void (*refused)(void *serve_arg, struct spokei_conn *conn,
			const struct spokei_message *message, int error);
	/* Returns how long an attempt may take in all. Called when its time is over, and before its
	 * request is written that was unsent. Must not call users, nor change any connection.
	 * NULL: as long as was said when it began. */
	uint64_t (*prolong)(struct spokei_pending *pending, bool written, uint64_t now_ns);
	struct spokei_task *end; /* frees the owner after the last connection */
	uint32_t alive;          /* connections whose memory is not freed yet */
	unsigned conn_class;
};

/* Sets all defaults. */
void spokei_link_limits_init(struct spokei_link_limits *limits);

/* Limits of arguments and replies of this side's user: frame.max, which is checked by the wire,
 * bounds their bytes. */
extern const struct spoke_value_limits spokei_link_own_values;

/* Sets the largest frame, and the limits that follow from it. */
void spokei_link_limits_frame(struct spokei_link_limits *limits, size_t max);

/* Sets the number of values in the body of a message, at most SPOKE_VALUE_ITEMS_MAX. */
void spokei_link_limits_values(struct spokei_link_limits *limits, uint32_t max);

/* Applies new limits while connections exist. */
void spokei_link_change(struct spokei_link *link, const struct spokei_link_limits *limits);

/* Closes the accepted connection that has sent nothing for longest; with a layered stream, whose
 * stream is not open. Returns it until the end of the turn, or NULL: there is none. */
struct spokei_conn *spokei_link_make_room(struct spokei_link *link);

/* Notes which limit refused a call, if that is the error. Returns the error. */
static inline int spokei_link_refused(struct spokei_link *link, int error,
				      enum spokei_refused_by by)
{
	if (error == SPOKE_ELIMIT)
		link->refused_by = by;
	return error;
}

/* Returns how many queued bytes end the pause of a connection. */
static inline size_t spokei_link_low(const struct spokei_link *link, bool unproven)
{
	size_t low = link->limits.out_low;

	return unproven && low >= SPOKEI_UNPROVEN_OUT ? SPOKEI_UNPROVEN_OUT - 1 : low;
}

#endif
