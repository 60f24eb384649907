/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a connection: the legal moves between states, how a connection is closed, and what
 * the kernel checks on its behalf. */
#include "transport/conn/link.h"
#include "transport/conn/parts.h"

#define KEEPALIVE_NS UINT64_C(60000000000) /* for wires without heartbeats */

static const unsigned legal_moves[] = {
	[SPOKEI_CONN_CONNECTING] = 1u << SPOKEI_CONN_OPENING | 1u << SPOKEI_CONN_CLOSED,
	[SPOKEI_CONN_OPENING] = 1u << SPOKEI_CONN_CONNECTING | 1u << SPOKEI_CONN_OPEN |
				1u << SPOKEI_CONN_CLOSED,
	[SPOKEI_CONN_OPEN] = 1u << SPOKEI_CONN_FINISHING | 1u << SPOKEI_CONN_CLOSED,
	[SPOKEI_CONN_FINISHING] = 1u << SPOKEI_CONN_CLOSED,
	[SPOKEI_CONN_CLOSED] = 0,
};

void spokei_conn_move(struct spokei_conn *conn, enum spokei_conn_state state)
{
	SPOKE_ASSERT(legal_moves[conn->state] & 1u << state);
	conn->state = state;
	conn->ending = state == SPOKEI_CONN_FINISHING;
}

void spokei_conn_speak(struct spokei_conn *conn, const struct spokei_wire *wire)
{
	const struct spoke_env *env = spokei_conn_engine(conn)->env;
	uint64_t next = wire->id_first;

	conn->wire = wire;
	conn->in.wire = wire;
	/* Where there are enough ids they begin at random and cannot be guessed. */
	if (wire->id_max == UINT64_MAX)
		env->dice(env->ctx, &next, sizeof(next));
	if (wire->id_max == UINT64_MAX && conn->link->connects)
		next = (uint64_t)SPOKEI_CONN_MARK << 32 | (next & UINT32_MAX);
	spokei_pendings_init(&conn->pendings, wire->id_first, wire->id_max, next);
}

void spokei_conn_guard(struct spokei_conn *conn)
{
	/* Above the limit for peers that do not read, which comes first. */
	uint64_t unanswered_ns = spokei_later(conn->link->limits.slow_ns,
					      conn->link->limits.slow_ns / 2);
	bool asks = conn->wire == NULL ||
		    (conn->wire->probes && conn->link->limits.heartbeat_ns != SPOKEI_IDLE_OFF);

	/* Otherwise the first lost keepalive probe would be the last one. */
	if (!asks)
		unanswered_ns = 2 * KEEPALIVE_NS;
	/* If the system cannot do this, the connection is still checked from here. */
	(void)conn->stream.kind->guard(&conn->stream, unanswered_ns, asks ? 0 : KEEPALIVE_NS);
}

void spokei_conn_answer_end(struct spokei_conn *conn)
{
	if (conn->ended && conn->stream.layered && !conn->unwritable && !conn->shut)
		(void)conn->stream.kind->shut(&conn->stream);
}

void spokei_conn_part(struct spokei_conn *conn)
{
	if (conn->stream.layered && !spokei_conn_is_opening(conn) &&
	    conn->state != SPOKEI_CONN_CLOSED && !conn->unwritable &&
	    spokei_outlet_len(&conn->out) == 0)
		(void)conn->stream.kind->shut(&conn->stream);
}

void spokei_conn_close(struct spokei_conn *conn, int error)
{
	struct spokei_link *link = conn->link;
	struct spoke_engine *engine = link->engine;

	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	if (!spokei_conn_is_opening(conn) || conn->stream.accepted)
		spokei_count(engine, SPOKE_STAT_CLOSED);
	spokei_conn_move(conn, SPOKEI_CONN_CLOSED);
	conn->error = error;
	link->queued -= spokei_outlet_len(&conn->out);
	link->held -= conn->read_held;
	link->conn_count--;
	spokei_list_remove(&conn->node);
	spokei_conn_speaks(conn);
	(void)spoke_wheel_cancel(engine->wheel, &conn->timer);
	spokei_task_drop(&conn->settle);
	spokei_task_drop(&conn->resume);
	spokei_stream_close(&conn->stream);
	spokei_engine_soon(engine, &conn->reap);
}

void spokei_conn_blame_for(struct spokei_conn *conn, enum spoke_stat stat, int error,
			   const char *why)
{
	const struct spokei_stream_blame blame = {
		.title = "",
		.why = why,
		.peer = &conn->peer,
		.stat = stat,
		.error = error,
		.events = &conn->link->blames,
	};

	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	spokei_stream_blame(&conn->stream, &blame);
	spokei_conn_close(conn, error);
}

void spokei_conn_blame(struct spokei_conn *conn, enum spoke_stat stat, int error)
{
	spokei_conn_blame_for(conn, stat, error, NULL);
}
