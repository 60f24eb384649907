/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a silent peer: when a probe is due, when one is missed, and when the peer is dead.
 */
#include "transport/conn/parts.h"

#define LITTLE 4096u /* bytes that fit the buffer of a peer that does nothing */

static struct spokei_idle_moment moment_of(const struct spokei_conn *conn)
{
	const struct spoke_engine *engine = spokei_conn_engine(conn);
	uint64_t interval_ns = spokei_conn_interval(conn);

	return (struct spokei_idle_moment){
		.now_ns = engine->begin_ns,
		.interval_ns = interval_ns,
		.late = spokei_engine_late_for(engine, interval_ns),
		.deaf = conn->paused,
	};
}

/* Returns whether the kernel makes progress with the output. A socket becomes writable again only
 * when a good part of its buffer is free. */
static bool still_moves(struct spokei_conn *conn)
{
	ssize_t unsent = conn->stream.kind->unsent(&conn->stream);
	uint32_t before = conn->unsent;
	uint64_t sent_before = conn->sent;

	if (unsent < 0)
		return false;
	conn->unsent = (uint32_t)unsent;
	conn->sent = conn->out.sent - (uint64_t)unsent;
	return (before > LITTLE || conn->unsent > LITTLE) &&
	       (int64_t)(conn->sent - sent_before) > 0;
}

/* Returns whether the connection is quiet because an answer is being made. */
static bool answer_is_due(const struct spokei_conn *conn)
{
	return !spokei_list_empty(&conn->servings) || conn->pendings.count > 0;
}

static void note_miss(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	spokei_count(engine, SPOKE_STAT_PROBES_MISSED);
	if (conn->idle.misses == 1)
		spokei_count(engine, SPOKE_STAT_SUSPECTED);
	conn->up->event(conn->up_arg, conn, SPOKEI_LINK_EVENT_MISSED);
}

/* Closes a connection of a wire whose idle connections end as a rule; that is no event. */
static void end_idle(struct spokei_conn *conn)
{
	spokei_count(spokei_conn_engine(conn), SPOKE_STAT_CLOSED_IDLE);
	spokei_conn_close(conn, SPOKE_ESILENT);
}

void spokei_conn_check_silence(struct spokei_conn *conn)
{
	struct spokei_idle_moment moment = moment_of(conn);

	/* Bytes in the socket count, even if the loop has not reported them. */
	if (spokei_idle_ripe(&conn->idle, &moment))
		(void)spokei_conn_read(conn);
	if (conn->state == SPOKEI_CONN_CLOSED || !spokei_conn_is_listened_to(conn))
		return;
	moment = moment_of(conn);
	if (spokei_idle_ripe(&conn->idle, &moment) && still_moves(conn) && conn->idle.asked) {
		conn->idle.since_ns = moment.now_ns;
		return;
	}
	switch (spokei_idle_check(&conn->idle, &moment)) {
	case SPOKEI_IDLE_KEEP:
		return;
	case SPOKEI_IDLE_PROBE:
		if (conn->wire->probes)
			spokei_conn_ask(conn);
		else if (answer_is_due(conn))
			conn->idle.since_ns = moment.now_ns;
		else if (conn->wire->idle_ns > 0)
			end_idle(conn);
		else
			spokei_conn_blame(conn, SPOKE_STAT_CLOSED_IDLE, SPOKE_ESILENT);
		return;
	case SPOKEI_IDLE_SUSPECT:
		/* A heartbeat that is still queued needs no second one. */
		if (conn->idle.handed)
			spokei_conn_ask(conn);
		note_miss(conn);
		return;
	case SPOKEI_IDLE_DEAD:
		note_miss(conn);
		if (conn->state != SPOKEI_CONN_CLOSED)
			spokei_conn_blame(conn, SPOKE_STAT_CLOSED_SILENT, SPOKE_ESILENT);
		return;
	}
}
