/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The times of a connection: its limits, the one timer that is armed for the earliest of them, and
 * the deadlines of its calls and answers.
 */
#include "transport/conn/link.h"
#include "transport/conn/parts.h"

#define GRACE_NS UINT64_C(1000000000) /* after a late turn, until the times are checked again */

/* The limits. `field`: where the limit lies in those of the link. A connection that is over one is
 * closed with `error`, and counted and reported as `stat`, unless that is SPOKE_STAT_CLOSED, which
 * counts every end. */
static const struct {
	size_t field;
	enum spoke_stat stat;
	int error;
} rows[] = {
#define ROW(name) offsetof(struct spokei_link_limits, name##_ns)
	[SPOKEI_LIMIT_NOTICE] = { ROW(goodbye), SPOKE_STAT_CLOSED, SPOKE_OK }, /* is not closed */
	[SPOKEI_LIMIT_MUTE] = { ROW(mute), SPOKE_STAT_CLOSED_MUTE, SPOKE_ESILENT },
	[SPOKEI_LIMIT_OPENING] = { ROW(handshake), SPOKE_STAT_CLOSED_HANDSHAKE, SPOKE_EHANDSHAKE },
	[SPOKEI_LIMIT_SHUT] = { ROW(linger), SPOKE_STAT_CLOSED, SPOKE_ECLOSED },
	[SPOKEI_LIMIT_BROKEN] = { ROW(linger), SPOKE_STAT_CLOSED_BY_PEER, SPOKE_ELOST },
	[SPOKEI_LIMIT_HALF] = { ROW(half), SPOKE_STAT_CLOSED_BY_PEER, SPOKE_ELOST },
	[SPOKEI_LIMIT_SLOW] = { ROW(slow), SPOKE_STAT_CLOSED_SLOW, SPOKE_ESLOW },
	[SPOKEI_LIMIT_FRAME] = { ROW(frame), SPOKE_STAT_CLOSED_FRAME_TIME, SPOKE_EPROTOCOL },
#undef ROW
};

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Returns whether a limit counts now. */
static bool counts(const struct spokei_conn *conn, enum spokei_conn_limit limit)
{
	if (conn->since[limit] == 0)
		return false;
	switch ((int)limit) {
	case SPOKEI_LIMIT_FRAME:
		return !conn->paused; /* while paused, this side keeps the frame waiting */
	case SPOKEI_LIMIT_NOTICE:
		return !conn->readonly && conn->state == SPOKEI_CONN_FINISHING;
	case SPOKEI_LIMIT_MUTE:
		return conn->link->limits.mute_ns != 0;
	default:
		return true;
	}
}

/* Returns how long a time may last; that of the notice on a wire without ids: until the peer sends
 * a request, or the rest of one. */
static uint64_t length_of(const struct spokei_conn *conn, enum spokei_conn_limit limit)
{
	const unsigned char *limits = (const unsigned char *)&conn->link->limits;
	uint64_t length_ns;

	if (limit == SPOKEI_LIMIT_NOTICE && conn->in.wire->in_order &&
	    !spokei_intake_begun(&conn->in))
		return SPOKEI_CROSSING_NS;
	memcpy(&length_ns, limits + rows[limit].field, sizeof(length_ns));
	return length_ns;
}

/* Returns when a limit is reached; UINT64_MAX: it does not count now. */
static uint64_t limit_due(const struct spokei_conn *conn, enum spokei_conn_limit limit)
{
	return counts(conn, limit) ? spokei_later(conn->since[limit], length_of(conn, limit))
				   : UINT64_MAX;
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

/* Returns when the connection is to be checked next; UINT64_MAX: never. */
static uint64_t next_due(const struct spokei_conn *conn)
{
	uint64_t due_ns = idle_due(conn);

	for (unsigned i = 0; i < SPOKEI_LIMITS; i++)
		due_ns = earlier(due_ns, limit_due(conn, (enum spokei_conn_limit)i));
	return due_ns;
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

void spokei_conn_since(struct spokei_conn *conn, enum spokei_conn_limit limit, uint64_t since_ns)
{
	conn->since[limit] = since_ns;
	spokei_conn_arm(conn);
}

/* The timer never moves to a later time, so spokei_conn_arm() need not know of this one. */
void spokei_conn_answer_by(struct spokei_conn *conn, uint64_t due_ns)
{
	conn->answer_ns = due_ns == UINT64_MAX ? 0 : due_ns;
	arm(conn, due_ns);
}

/* Arms the timer after the times were checked. Times that a late turn did not check come a little
 * later. */
static void rearm(struct spokei_conn *conn)
{
	uint64_t now_ns = spokei_conn_engine(conn)->begin_ns;
	uint64_t due_ns = next_due(conn);

	if (due_ns <= now_ns)
		due_ns = earlier(spokei_later(now_ns, GRACE_NS), idle_due(conn));
	arm(conn, earlier(due_ns, spokei_conn_answer_due(conn)));
}

/* --- checks */

/* Returns the last limit that is over, so that of the notice only if no other one is;
 * SPOKEI_LIMITS: none is. A turn that is late by much of a limit does not count, because arrived
 * bytes may be unread. */
static enum spokei_conn_limit limit_over(const struct spokei_conn *conn)
{
	const struct spoke_engine *engine = spokei_conn_engine(conn);

	for (unsigned i = SPOKEI_LIMITS; i-- > 0;) {
		enum spokei_conn_limit limit = (enum spokei_conn_limit)i;

		if (engine->begin_ns >= limit_due(conn, limit) &&
		    !spokei_engine_late_for(engine, length_of(conn, limit)))
			return limit;
	}
	return SPOKEI_LIMITS;
}

static void check_limits(struct spokei_conn *conn)
{
	enum spokei_conn_limit limit = limit_over(conn);

	if (limit == SPOKEI_LIMITS)
		return;
	/* Bytes in the socket count, even if the loop has not reported them. */
	(void)spokei_conn_read(conn);
	limit = conn->state == SPOKEI_CONN_CLOSED ? SPOKEI_LIMITS : limit_over(conn);
	if (limit == SPOKEI_LIMITS)
		return;
	if (limit == SPOKEI_LIMIT_NOTICE) { /* the peer counts as having answered */
		conn->readonly = true;
		spokei_engine_last(spokei_conn_engine(conn), &conn->settle);
		return;
	}
	/* With a reason it had failed before. */
	if (limit == SPOKEI_LIMIT_OPENING && spokei_stream_why(&conn->stream) == NULL)
		spokei_count(spokei_conn_engine(conn), SPOKE_STAT_HANDSHAKES_LATE);
	if (rows[limit].stat == SPOKE_STAT_CLOSED)
		spokei_conn_close(conn, rows[limit].error);
	else
		spokei_conn_close_with(conn, rows[limit].stat, rows[limit].error);
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
	check_answer(conn);
	if (conn->state != SPOKEI_CONN_CLOSED)
		rearm(conn);
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
