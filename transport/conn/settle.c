/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a turn: one write per connection, the timers of new calls, and the end of a connection
 * on which nothing is left to do. Also the early writes during a turn. */
#include "transport/conn/parts.h"

/* A write of a stream with a layer costs as much as some KiB of a long one, on both sides, so short
 * ones wait for the end of the turn. */
#define EARLY_LAYERED 16384u

static inline void pass_on(struct spokei_conn *conn)
{
	if (SPOKEI_UNLIKELY(conn->stream.layered) && !conn->unwritable)
		spokei_conn_flush(conn);
}

static inline void write_queued(struct spokei_conn *conn)
{
	spokei_conn_write(conn);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	conn->blocked = !conn->unwritable && spokei_outlet_len(&conn->out) > 0;
	pass_on(conn);
}

/* Unsent requests come into the output buffer only when nothing else is there: until then they can
 * be withdrawn. While the stream takes everything, only guarded requests are unsent, and they
 * follow the output of this turn. No user's code runs between the check of a guarded request and
 * the write. */
static SPOKEI_NOINLINE void write_unsent(struct spokei_conn *conn)
{
	struct spokei_conn_batch batch;
	bool sends = !conn->blocked || spokei_buffer_len(&conn->out.out) == 0;

	if (sends)
		spokei_conn_send_unsent(conn, &batch);
	if (conn->state != SPOKEI_CONN_CLOSED)
		spokei_conn_write(conn);
	if (sends)
		spokei_conn_sent_unsent(conn, &batch);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	conn->blocked = !conn->unwritable &&
			(spokei_outlet_len(&conn->out) > 0 || conn->unsent_requests > 0);
	pass_on(conn);
}

/* Writes, unless the stream has just refused to take more. */
static void flush(struct spokei_conn *conn)
{
	if (conn->blocked && !conn->writable)
		return;
	conn->writable = false;
	if (SPOKEI_UNLIKELY(conn->unsent_requests > 0))
		write_unsent(conn);
	else
		write_queued(conn);
}

/* Guarded requests wait for the end of the turn. */
void spokei_conn_write_early(struct spokei_conn *conn)
{
	if (SPOKEI_UNLIKELY(conn->stream.layered) && !conn->stream.kind->prompt &&
	    spokei_buffer_len(&conn->out.out) < EARLY_LAYERED)
		return;
	if (spokei_conn_begin_early(conn))
		write_queued(conn);
}

/* A reading of the clock costs as much as such a write, so the turn's begin is its time. */
void spokei_conn_write_prompt(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	if (!spokei_conn_may_write(conn))
		return;
	if (engine->settle_ns < engine->begin_ns)
		engine->settle_ns = engine->begin_ns;
	engine->settle_old = true;
	write_queued(conn);
}

/* Returns whether the peer may still send requests, which then have to be refused. */
static bool may_be_asked(const struct spokei_conn *conn)
{
	return conn->announced && !conn->readonly && !conn->ended && !conn->unwritable;
}

static bool is_finished(const struct spokei_conn *conn)
{
	return conn->ending && !may_be_asked(conn) && spokei_list_empty(&conn->servings) &&
	       conn->pendings.count == 0 && conn->unsent_requests == 0 &&
	       spokei_outlet_len(&conn->out) == 0 && !conn->holds &&
	       spokei_buffer_len(&conn->held) == 0 && conn->resume.node.next == NULL;
}

/* Everything is written. Closing a socket with unread input would discard output that the peer has
 * not read yet. So this side shuts its sending side, and reads until the peer's end, for a while.
 */
static void finish(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	if (conn->shut)
		return;
	if (conn->state == SPOKEI_CONN_OPEN)
		spokei_conn_move(conn, SPOKEI_CONN_FINISHING);
	spokei_conn_answer_end(conn);
	if (conn->ended || conn->unwritable || conn->stream.kind->shut(&conn->stream) < 0) {
		spokei_conn_close(conn, conn->ended ? SPOKE_ELOST : SPOKE_ECLOSED);
		return;
	}
	conn->shut = true;
	conn->unwritable = true;
	conn->unwritable_ns = engine->settle_ns;
	spokei_conn_arm(conn);
}

void spokei_conn_settle(struct spokei_task *task)
{
	struct spokei_conn *conn = spoke_container_of(task, struct spokei_conn, settle);

	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	if (!spokei_conn_is_opening(conn) && !conn->unwritable)
		flush(conn);
	else if (conn->shut && conn->stream.layered)
		spokei_conn_flush(conn);
	if (conn->state != SPOKEI_CONN_CLOSED)
		spokei_conn_settle_calls(conn);
	if (is_finished(conn))
		finish(conn);
	spokei_conn_watch(conn);
}
