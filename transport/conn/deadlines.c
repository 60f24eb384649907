/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlines of a connection: its calls, incomplete frames, queued bytes that the peer does not
 * take, peers that never sent anything, drain notices, and answers on wires without ids.
 */
#include "transport/conn/link.h"
#include "transport/conn/parts.h"

/* Returns whether more than `limit_ns` has passed since `since_ns`. A turn that is late by much of
 * that limit does not count, because arrived bytes may be unread. */
static bool is_over(const struct spokei_conn *conn, uint64_t since_ns, uint64_t limit_ns)
{
	const struct spoke_engine *engine = spokei_conn_engine(conn);

	return engine->begin_ns >= spokei_later(since_ns, limit_ns) &&
	       !spokei_engine_late_for(engine, limit_ns);
}

/* Returns the counter for which the connection is to be closed; SPOKE_STAT_COUNT: none. */
static enum spoke_stat offence_of(const struct spokei_conn *conn)
{
	const struct spokei_link_limits *limits = &conn->link->limits;

	if (conn->frame_ns && !conn->paused &&
	    is_over(conn, conn->frame_ns, spokei_conn_frame_limit(conn)))
		return spokei_conn_is_opening(conn) ? SPOKE_STAT_CLOSED_HANDSHAKE
						    : SPOKE_STAT_CLOSED_FRAME_TIME;
	if (conn->moved_ns && is_over(conn, conn->moved_ns, limits->slow_ns))
		return SPOKE_STAT_CLOSED_SLOW;
	if (conn->unwritable_ns && is_over(conn, conn->unwritable_ns, SPOKEI_CONN_UNWRITABLE_NS))
		return conn->shut ? SPOKE_STAT_CLOSED : SPOKE_STAT_CLOSED_BY_PEER;
	if (conn->ended && is_over(conn, conn->ended_ns, limits->half_ns))
		return SPOKE_STAT_CLOSED_BY_PEER;
	if (!conn->heard && limits->mute_ns && is_over(conn, conn->born_ns, limits->mute_ns))
		return SPOKE_STAT_CLOSED_MUTE;
	return SPOKE_STAT_COUNT;
}

static int error_of(enum spoke_stat offence)
{
	if (offence == SPOKE_STAT_CLOSED_FRAME_TIME)
		return SPOKE_EPROTOCOL;
	if (offence == SPOKE_STAT_CLOSED_HANDSHAKE)
		return SPOKE_EHANDSHAKE;
	if (offence == SPOKE_STAT_CLOSED_SLOW)
		return SPOKE_ESLOW;
	return offence == SPOKE_STAT_CLOSED_MUTE ? SPOKE_ESILENT : SPOKE_ELOST;
}

static void check_limits(struct spokei_conn *conn)
{
	enum spoke_stat offence = offence_of(conn);

	if (offence == SPOKE_STAT_COUNT)
		return;
	/* Bytes in the socket count, even if the loop has not reported them. */
	(void)spokei_conn_read(conn);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	offence = offence_of(conn);
	/* With a reason it had failed before. */
	if (offence == SPOKE_STAT_CLOSED_HANDSHAKE && spokei_stream_why(&conn->stream) == NULL)
		spokei_count(spokei_conn_engine(conn), SPOKE_STAT_HANDSHAKES_LATE);
	if (offence == SPOKE_STAT_CLOSED)
		spokei_conn_close(conn, SPOKE_ECLOSED);
	else if (offence != SPOKE_STAT_COUNT)
		spokei_conn_blame(conn, offence, error_of(offence));
}

/* A peer that does not answer READONLY has run out of time. */
static void check_drain_notice(struct spokei_conn *conn)
{
	if (conn->state != SPOKEI_CONN_FINISHING || !conn->announced || conn->readonly ||
	    !is_over(conn, conn->announced_ns, spokei_conn_goodbye_limit(conn)))
		return;
	conn->readonly = true;
	spokei_engine_last(spokei_conn_engine(conn), &conn->settle);
}

/* A caller that waits for an answer on a wire without ids gets one when its time is over. */
static void check_answer(struct spokei_conn *conn)
{
	if (spokei_conn_answer_due(conn) <= spokei_conn_engine(conn)->begin_ns)
		spokei_conn_expire(conn);
}

void spokei_conn_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_conn *conn = spoke_container_of(timer, struct spokei_conn, timer);

	(void)arg;
	if (conn->wire != NULL)
		spokei_conn_check_silence(conn);
	if (conn->state != SPOKEI_CONN_CLOSED)
		check_limits(conn);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	check_drain_notice(conn);
	check_answer(conn);
	if (conn->state != SPOKEI_CONN_CLOSED)
		spokei_conn_rearm(conn);
}

/*
 * Reads the connection of a call that is due in a late turn until it is empty: the loop may not
 * have reported its socket yet, or one read may not have taken everything. Once a turn and
 * connection, and no longer than a late turn may last, because the calls of others wait. Returns
 * whether the call has ended.
 */
static bool ends_by_reading(struct spokei_pending *pending)
{
	struct spokei_conn *conn = pending->conn;
	const struct spoke_engine *engine = spokei_conn_engine(conn);
	const uint64_t id = pending->id;
	unsigned reads = 0;
	bool given;

	if (SPOKEI_LIKELY(!spokei_engine_late(engine)) || !pending->two_way ||
	    conn->late_turn == engine->turn)
		return false;
	conn->late_turn = engine->turn;
	while (spokei_conn_read(conn) && ++reads < SPOKEI_ENGINE_LATE_ROUNDS &&
	       spokei_engine_has_time(engine))
		;
	return spokei_engine_forked(engine) || conn->state == SPOKEI_CONN_CLOSED ||
	       spokei_pendings_find(&conn->pendings, id, &given) == NULL;
}

void spokei_pending_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_pending *pending = spoke_container_of(timer, struct spokei_pending, timer);

	(void)arg;
	if (ends_by_reading(pending))
		return;
	spokei_conn_finish_pending(pending,
				   spokei_conn_may_be_written(pending) ? SPOKE_ETIMEOUT
								       : SPOKE_ETIMEOUT_UNSENT,
				   NULL);
}
