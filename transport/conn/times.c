/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The times of a connection: its limits, the one timer that is armed for the earliest of them, and
 * the deadlines of its calls and answers.
 */
#include "transport/conn/link.h"
#include "transport/conn/parts.h"

#define GRACE_NS UINT64_C(1000000000) /* after a late turn, until the times are checked again */

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t spokei_conn_interval(const struct spokei_conn *conn)
{
	const struct spokei_link_limits *limits = &conn->link->limits;

	if (!conn->wire->probes)
		return limits->idle_close_ns != SPOKEI_IDLE_OFF ? limits->idle_close_ns
								: conn->wire->idle_ns;
	if (conn->heartbeat_ns == 0 || limits->heartbeat_ns == SPOKEI_IDLE_OFF)
		return limits->heartbeat_ns;
	return earlier(limits->heartbeat_ns, conn->heartbeat_ns);
}

/* Returns when the peer's silence is to be checked next; UINT64_MAX: never. */
static uint64_t idle_due(const struct spokei_conn *conn)
{
	if (!spokei_conn_is_listened_to(conn))
		return UINT64_MAX;
	return spokei_idle_due(&conn->idle, spokei_conn_interval(conn));
}

uint64_t spokei_conn_frame_limit(const struct spokei_conn *conn)
{
	const struct spokei_link_limits *limits = &conn->link->limits;

	return spokei_conn_is_opening(conn) ? limits->handshake_ns : limits->frame_ns;
}

uint64_t spokei_conn_goodbye_limit(const struct spokei_conn *conn)
{
	if (conn->in.wire->in_order && !spokei_intake_begun(&conn->in))
		return SPOKEI_CROSSING_NS;
	return conn->link->limits.goodbye_ns;
}

/* Returns when the connection is to be checked next; UINT64_MAX: never. */
static uint64_t next_due(const struct spokei_conn *conn)
{
	const struct spokei_link_limits *limits = &conn->link->limits;
	uint64_t due_ns = UINT64_MAX;

	if (conn->frame_ns && !conn->paused) /* while paused, this side keeps the frame waiting */
		due_ns = spokei_later(conn->frame_ns, spokei_conn_frame_limit(conn));
	if (conn->moved_ns)
		due_ns = earlier(due_ns, spokei_later(conn->moved_ns, limits->slow_ns));
	if (conn->unwritable_ns)
		due_ns = earlier(due_ns,
				 spokei_later(conn->unwritable_ns, SPOKEI_CONN_UNWRITABLE_NS));
	if (conn->ended)
		due_ns = earlier(due_ns, spokei_later(conn->ended_ns, limits->half_ns));
	if (!conn->heard && limits->mute_ns)
		due_ns = earlier(due_ns, spokei_later(conn->born_ns, limits->mute_ns));
	if (conn->announced && !conn->readonly && conn->state == SPOKEI_CONN_FINISHING)
		due_ns = earlier(due_ns,
				 spokei_later(conn->announced_ns, spokei_conn_goodbye_limit(conn)));
	return earlier(due_ns, idle_due(conn));
}

/* A timer that is due too early checks and is armed again, so it is moved only if it is too late.
 */
static void arm(struct spokei_conn *conn, uint64_t due_ns)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);
	int status;

	if (due_ns == UINT64_MAX || (spoke_timer_armed(&conn->timer) && conn->due_ns <= due_ns))
		return;
	if (spoke_timer_armed(&conn->timer))
		status = spoke_wheel_reschedule(engine->wheel, &conn->timer, due_ns);
	else
		status = spoke_wheel_schedule(engine->wheel, &conn->timer, conn->link->conn_class,
					      due_ns);
	if (status == SPOKE_WHEEL_OK)
		conn->due_ns = due_ns;
	else /* without a timer the connection cannot be checked */
		spokei_conn_close(conn, spokei_engine_fold(status));
}

void spokei_conn_arm(struct spokei_conn *conn)
{
	arm(conn, next_due(conn));
}

/* The timer never moves to a later time, so spokei_conn_arm() need not know of this one. */
void spokei_conn_answer_by(struct spokei_conn *conn, uint64_t due_ns)
{
	conn->answer_ns = due_ns == UINT64_MAX ? 0 : due_ns;
	arm(conn, due_ns);
}

void spokei_conn_rearm(struct spokei_conn *conn)
{
	uint64_t now_ns = spokei_conn_engine(conn)->begin_ns;
	uint64_t due_ns = next_due(conn);

	if (due_ns <= now_ns)
		due_ns = earlier(spokei_later(now_ns, GRACE_NS), idle_due(conn));
	arm(conn, earlier(due_ns, spokei_conn_answer_due(conn)));
}

/* --- checks */

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
