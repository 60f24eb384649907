/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all connections of one consumer or one provider share: what they accept, how much they may
 * hold, and what they hold now. On the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_CONN_LINK_H
#define SPOKEI_TRANSPORT_CONN_LINK_H

#include "core/base/pace.h"
#include "transport/conn/pool.h"
#include "transport/wire/message.h"

#define SPOKEI_FRAME_MAX 8388608u             /* bytes */
#define SPOKEI_OUT_HIGH 8388608u              /* bytes waiting to be written: stop reading */
#define SPOKEI_OUT_LOW 2097152u               /* ... read again */
#define SPOKEI_OUT_MAX 16777216u              /* ... close */
#define SPOKEI_SLOW_NS UINT64_C(30000000000)  /* without a byte taken, while bytes wait: close */
#define SPOKEI_FRAME_NS UINT64_C(10000000000) /* a frame once begun must be complete within */
#define SPOKEI_HALF_NS UINT64_C(60000000000)
/* For a peer to agree that nothing more is asked. */
#define SPOKEI_GOODBYE_NS UINT64_C(3000000000)
#define SPOKEI_UNKNOWN_REPLIES 1000u /* a minute; beyond: close */

/* Settled once, when the owner is made. */
struct spokei_link_limits {
	struct spokei_wire_limits wire;
	size_t out_high;
	size_t out_low;
	size_t out_max;
	size_t queued_max;    /* bytes waiting to be written, over all connections */
	size_t held_max;      /* bytes of frames that are not complete, over all connections */
	uint32_t pending_max; /* calls waiting for an answer, over all connections */
	uint32_t serving_max; /* requests being served, over all connections */
	uint32_t serving_per_conn_max;
	uint32_t unknown_replies; /* a minute */
	uint64_t slow_ns;
	uint64_t frame_ns;
	uint64_t half_ns; /* answers for a peer that sends no more are waited for so long */
	uint64_t mute_ns; /* a side that waits for the peer's first byte; 0: for ever */
	uint64_t goodbye_ns;
	uint64_t heartbeat_ns;  /* silence after which a peer is asked; SPOKEI_IDLE_OFF: never */
	uint64_t idle_close_ns; /* silence that ends a connection whose wire has no heartbeats; 0 */
};

struct spoke_engine;
struct spokei_spare;
struct spokei_stream_kind;
struct spokei_task;
struct spokei_conn;

/* Serves a valid request. `message` is borrowed for the call. The request is answered by
 * spokei_conn_reply() at once, or registered by spokei_conn_serve() and answered later. May close
 * any connection. */
typedef void (*spokei_serve_fn)(void *arg, struct spokei_conn *conn,
				const struct spokei_message *message);

struct spokei_link {
	struct spoke_engine *engine;
	const struct spokei_stream_kind
		*stream; /* of connections whose socket stands from now on */
	struct spokei_link_limits limits;
	struct spoke_list conns;      /* those that are not closed */
	struct spokei_conn_pool pool; /* memory of connections */
	uint32_t conn_count;
	uint32_t pending_count;
	uint32_t serving_count;
	/* Requests whose connection is gone, but not their handlers: who asks and resets, again and
	 * again, frees no place by that. */
	uint32_t orphan_count;
	struct spoke_list orphans;
	size_t queued;               /* bytes, of parcels too */
	size_t held;                 /* bytes */
	struct spokei_bucket blames; /* events of connections closed: counters tell of all */
	bool connects;               /* a consumer's: it connects anew */
	bool asked;                  /* this side has sent a request: it accepts replies */
	bool closing;                /* new requests are refused */
	spokei_serve_fn serve;       /* NULL: requests are answered "no such service" */
	void *serve_arg;
	uint64_t ran_ns;         /* when the turn began in which a request was run last */
	struct spokei_task *end; /* what frees the owner, once the last connection is freed */
	uint32_t alive;          /* connections whose memory is not freed yet */
	unsigned pending_class;  /* of timers */
	unsigned conn_class;
	/* Memory of outlets that were emptied, for the next one that fills; the newest first. */
	struct spokei_spare *spares;
	size_t spare_bytes;
	bool lent; /* ... to an outlet, since a heartbeat asked last */
};

/* All defaults. */
void spokei_link_limits_init(struct spokei_link_limits *limits);

/* Some of the limits are others: how many there may be of what, and the intervals of silence, which
 * count for connections that stand too. */
void spokei_link_change(struct spokei_link *link, const struct spokei_link_limits *limits);

/* A connection is freed. */
void spokei_link_left(struct spokei_link *link);

/* Lends memory to an empty buffer that is about to fill, takes it back from one that was emptied.
 */
void spokei_link_lend(struct spokei_link *link, struct spokei_buffer *buffer);
void spokei_link_return(struct spokei_link *link, struct spokei_buffer *buffer);

/* Gives back what it keeps to lend, unless an outlet has filled since it was called last. */
void spokei_link_slim(struct spokei_link *link);

/* Gives back all that it keeps to lend. */
void spokei_link_drop_spares(struct spokei_link *link);

#endif
