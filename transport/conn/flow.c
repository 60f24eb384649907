/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Back-pressure: the events that a connection watches for, the pause of reading while too many
 * bytes are queued, and the lower bounds of peers that have proven nothing.
 */
#include "transport/conn/link.h"
#include "transport/conn/parts.h"

#include "core/base/env.h"
#include "core/text/sha256.h"

bool spokei_conn_has_next(const struct spokei_conn *conn)
{
	return spokei_buffer_len(&conn->held) > 0 ||
	       spokei_buffer_len(&conn->in.kept) > conn->in.given;
}

bool spokei_conn_has_room(const struct spokei_conn *conn)
{
	if (SPOKEI_LIKELY(conn->paused == 0))
		return true;
	return conn->paused == SPOKEI_PAUSED_TURN && conn->serving_count > 0 &&
	       !spokei_conn_has_next(conn);
}

/* Has a stream whose bytes count as queued call when so few wait that the pause ends. */
static SPOKEI_NOINLINE unsigned watch_layered(struct spokei_conn *conn, unsigned io)
{
	struct spokei_stream *stream = &conn->stream;

	stream->low = SIZE_MAX;
	if (conn->paused & SPOKEI_PAUSED_FULL && stream->kind->queues && !conn->unwritable) {
		stream->low = spokei_link_low(conn->link, conn->unproven);
		io |= SPOKE_IO_WRITE;
	}
	return stream->kind->wants(stream, io);
}

void spokei_conn_watch(struct spokei_conn *conn)
{
	unsigned io = 0;

	if (conn->stream.watch.fd < 0)
		return;
	if (conn->state == SPOKEI_CONN_CONNECTING) {
		spokei_stream_watch(&conn->stream, SPOKE_IO_WRITE);
		return;
	}
	if (spokei_conn_has_room(conn) && !conn->ended && conn->state != SPOKEI_CONN_OPENING)
		io = SPOKE_IO_READ;
	if (conn->blocked && !conn->writable && !conn->unwritable)
		io |= SPOKE_IO_WRITE;
	if (SPOKEI_UNLIKELY(conn->stream.layered))
		io = watch_layered(conn, io);
	spokei_stream_watch(&conn->stream, io);
}

/* Returns whether enough output waits that nothing is read. */
static inline bool is_full(const struct spokei_conn *conn)
{
	if (SPOKEI_UNLIKELY(conn->unproven))
		return spokei_conn_queues(conn, spokei_outlet_len(&conn->out), SPOKEI_UNPROVEN_OUT);
	return spokei_conn_queues(conn, spokei_buffer_len(&conn->out.out),
				  conn->link->limits.out_high);
}

void spokei_conn_answered(struct spokei_conn *conn)
{
	const struct spokei_link *link = conn->link;

	if (!is_full(conn))
		return;
	spokei_task_drop(&conn->resume); /* also if the end of the pause has queued the task */
	if (conn->paused & SPOKEI_PAUSED_FULL)
		return;
	conn->paused |= SPOKEI_PAUSED_FULL;
	spokei_count(link->engine, SPOKE_STAT_READS_PAUSED);
	spokei_conn_watch(conn);
}

void spokei_conn_trust(struct spokei_conn *conn)
{
	conn->unproven = false;
	conn->in.limits = &conn->link->limits.wire;
}

int spokei_conn_show(struct spokei_conn *conn, const unsigned char *digest)
{
	if (conn->shown == NULL)
		conn->shown = spokei_alloc_unset(spokei_conn_engine(conn)->env, SPOKEI_SHA256);
	if (conn->shown == NULL)
		return SPOKE_ENOMEM;
	memcpy(conn->shown, digest, SPOKEI_SHA256);
	return SPOKE_OK;
}

void spokei_conn_unpause(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	if (SPOKEI_UNLIKELY(conn->unproven) && is_full(conn))
		return;
	if (conn->paused & SPOKEI_PAUSED_TURN && conn->serving_count > 0) {
		conn->paused = SPOKEI_PAUSED_TURN; /* the answer ends the pause */
		return;
	}
	if (conn->paused & SPOKEI_PAUSED_TURN || spokei_buffer_len(&conn->held) > 0 ||
	    (conn->wire->in_order && spokei_conn_has_next(conn)) ||
	    spokei_stream_pending(&conn->stream) > 0) {
		spokei_engine_soon(engine, &conn->resume);
		return;
	}
	conn->paused = 0;
	if (conn->frame_ns == 0)
		return;
	conn->frame_ns = engine->settle_ns;
	spokei_conn_arm(conn);
}
