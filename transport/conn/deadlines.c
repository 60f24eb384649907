/* SPDX-License-Identifier: Apache-2.0 */
/* Whom time has run out for: frames begun, bytes not taken, peers that never spoke, or no more. */
#include "transport/conn/parts.h"

#define UNWRITABLE_NS                                                                              \
	UINT64_C(5000000000)          /* for the peer's end to arrive, when nothing is written */
#define GRACE_NS UINT64_C(1000000000) /* after a late turn, until the next judgement */

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* When somebody has to look at this connection next; UINT64_MAX: never. */
static uint64_t next_due(const struct spokei_conn *conn)
{
	const struct spokei_link_limits *limits = &conn->link->limits;
	uint64_t due_ns = UINT64_MAX;

	if (conn->frame_ns && !conn->paused) /* else it is not the peer who keeps it waiting */
		due_ns = spokei_later(conn->frame_ns, limits->frame_ns);
	if (conn->moved_ns)
		due_ns = earlier(due_ns, spokei_later(conn->moved_ns, limits->slow_ns));
	if (conn->unwritable_ns)
		due_ns = earlier(due_ns, spokei_later(conn->unwritable_ns, UNWRITABLE_NS));
	if (conn->ended)
		due_ns = earlier(due_ns, spokei_later(conn->ended_ns, limits->half_ns));
	if (!conn->heard && limits->mute_ns)
		due_ns = earlier(due_ns, spokei_later(conn->born_ns, limits->mute_ns));
	if (conn->announced && !conn->readonly && conn->state == SPOKEI_CONN_FINISHING)
		due_ns = earlier(due_ns, spokei_later(conn->announced_ns, limits->goodbye_ns));
	return earlier(due_ns, spokei_conn_idle_due(conn));
}

/* A timer that is due too early looks, and goes on; so it is moved only when it is too late. */
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
	else /* a connection that nobody could judge is none */
		spokei_conn_close(conn, spokei_engine_fold(status));
}

void spokei_conn_arm(struct spokei_conn *conn)
{
	arm(conn, next_due(conn));
}

/* Has more than `limit_ns` passed since then, in which this side did its part? A turn that is late
 * by much of that may not have read what came. */
static bool is_over(const struct spokei_conn *conn, uint64_t since_ns, uint64_t limit_ns)
{
	const struct spoke_engine *engine = spokei_conn_engine(conn);

	return engine->begin_ns >= spokei_later(since_ns, limit_ns) &&
	       !spokei_engine_late_for(engine, limit_ns);
}

/* What the connection is to be closed for: one of the counters CLOSED..., or the end of them: for
 * nothing. */
static enum spoke_stat offence_of(const struct spokei_conn *conn)
{
	const struct spokei_link_limits *limits = &conn->link->limits;

	if (conn->frame_ns && !conn->paused && is_over(conn, conn->frame_ns, limits->frame_ns))
		return SPOKE_STAT_CLOSED_FRAME_TIME;
	if (conn->moved_ns && is_over(conn, conn->moved_ns, limits->slow_ns))
		return SPOKE_STAT_CLOSED_SLOW;
	if (conn->unwritable_ns && is_over(conn, conn->unwritable_ns, UNWRITABLE_NS))
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
	if (offence == SPOKE_STAT_CLOSED_SLOW)
		return SPOKE_ESLOW;
	return offence == SPOKE_STAT_CLOSED_MUTE ? SPOKE_ESILENT : SPOKE_ELOST;
}

static void judge(struct spokei_conn *conn)
{
	enum spoke_stat offence = offence_of(conn);

	if (offence == SPOKE_STAT_COUNT)
		return;
	/* What has come counts, though the loop has not told of it. */
	spokei_conn_read(conn);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	offence = offence_of(conn);
	if (offence == SPOKE_STAT_CLOSED)
		spokei_conn_close(conn, SPOKE_ECLOSED);
	else if (offence != SPOKE_STAT_COUNT)
		spokei_conn_blame(conn, offence, error_of(offence));
}

/* A peer that does not know what READONLY asks of it has had its time. */
static void judge_goodbye(struct spokei_conn *conn)
{
	if (conn->state != SPOKEI_CONN_FINISHING || !conn->announced || conn->readonly ||
	    !is_over(conn, conn->announced_ns, conn->link->limits.goodbye_ns))
		return;
	conn->readonly = true;
	spokei_engine_last(spokei_conn_engine(conn), &conn->settle);
}

void spokei_conn_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_conn *conn = spoke_container_of(timer, struct spokei_conn, timer);
	struct spoke_engine *engine = arg;
	uint64_t due_ns;

	if (conn->wire != NULL)
		spokei_conn_judge_silence(conn);
	if (conn->state != SPOKEI_CONN_CLOSED)
		judge(conn);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	judge_goodbye(conn);
	due_ns = next_due(conn);
	/* What a late turn left unjudged. */
	if (due_ns <= engine->begin_ns)
		due_ns = earlier(spokei_later(engine->begin_ns, GRACE_NS),
				 spokei_conn_idle_due(conn));
	arm(conn, due_ns);
}
