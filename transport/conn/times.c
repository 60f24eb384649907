/* SPDX-License-Identifier: Apache-2.0 */
/* The times of a connection: when one of its limits or its interval of silence runs out next, and
 * the one timer that is armed for that. */
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
