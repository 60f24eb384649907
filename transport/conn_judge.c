/* SPDX-License-Identifier: Apache-2.0 */
/* Whom time has run out for: frames begun, bytes not taken, peers that never spoke, or no more. */
#include "transport/conn_parts.h"

#define UNWRITABLE_NS                                                                              \
	UINT64_C(5000000000) /* for the peer's end to arrive, when nothing is written */
#define LATE_GRACE_NS UINT64_C(1000000000) /* after a late turn, until the next judgement */

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

static void judge(struct spokei_conn *conn, uint64_t now_ns)
{
	const struct spokei_link_limits *limits = &conn->link->limits;

	if (conn->frame_ns && !conn->paused &&
	    now_ns >= spokei_later(conn->frame_ns, limits->frame_ns))
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_FRAME_TIME, SPOKE_EPROTOCOL);
	else if (conn->moved_ns && now_ns >= spokei_later(conn->moved_ns, limits->slow_ns))
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_SLOW, SPOKE_ESLOW);
	else if (conn->shut && now_ns >= spokei_later(conn->unwritable_ns, UNWRITABLE_NS))
		spokei_conn_close(conn, SPOKE_ECLOSED);
	else if ((conn->unwritable_ns &&
		  now_ns >= spokei_later(conn->unwritable_ns, UNWRITABLE_NS)) ||
		 (conn->ended && now_ns >= spokei_later(conn->ended_ns, limits->half_ns)))
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_BY_PEER, SPOKE_ELOST);
	else if (!conn->heard && limits->mute_ns &&
		 now_ns >= spokei_later(conn->born_ns, limits->mute_ns))
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_MUTE, SPOKE_ESILENT);
}

/* A peer that does not know what READONLY asks of it has had its time. */
static void judge_goodbye(struct spokei_conn *conn, uint64_t now_ns)
{
	if (conn->state != SPOKEI_CONN_FINISHING || !conn->announced || conn->readonly ||
	    now_ns < spokei_later(conn->announced_ns, conn->link->limits.goodbye_ns))
		return;
	conn->readonly = true;
	spokei_engine_last(spokei_conn_engine(conn), &conn->settle);
}

void spokei_conn_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_conn *conn = spoke_container_of(timer, struct spokei_conn, timer);
	struct spoke_engine *engine = arg;

	if (conn->wire != NULL)
		spokei_conn_judge_silence(conn);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	if (spokei_engine_late(engine)) {
		arm(conn, earlier(spokei_later(engine->begin_ns, LATE_GRACE_NS),
				  spokei_conn_idle_due(conn)));
		return;
	}
	judge(conn, engine->begin_ns);
	judge_goodbye(conn, engine->begin_ns);
	if (conn->state != SPOKEI_CONN_CLOSED)
		arm(conn, next_due(conn));
}
