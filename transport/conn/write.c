/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output: the events that a connection watches for, the pause of reading while too many bytes are
 * queued, the output buffer on its way to the stream, and the end of a turn: one write per
 * connection, the timers of new calls, and the end of a connection on which nothing is left to do.
 */
#include "transport/conn/link.h"
#include "transport/conn/parts.h"

#include <errno.h>

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
	if (conn->paused & SPOKEI_PAUSED_FULL && stream->kind->queues &&
	    !spokei_conn_unwritable(conn)) {
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
	if (spokei_conn_has_room(conn) && !spokei_conn_ended(conn) &&
	    conn->state != SPOKEI_CONN_OPENING)
		io = SPOKE_IO_READ;
	if (conn->output == SPOKEI_OUTPUT_BLOCKED)
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

static void unpause(struct spokei_conn *conn)
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
	if (conn->since[SPOKEI_LIMIT_FRAME])
		spokei_conn_since(conn, SPOKEI_LIMIT_FRAME, engine->settle_ns);
}

/* --- writing: the output buffer, and long bodies from where they lie */

/* Bytes of a long body that are written ahead of the rest: the peer starts while the kernel copies
 * the remaining bytes. */
#define AHEAD 4096u

/* The stream takes no more bytes. Bytes that the peer has sent are still read for a while: a broken
 * connection shows its end there too, and not every error means that it is broken. But without
 * memory it is this side that is broken, and the peer would wait for answers. */
static void give_up_writing(struct spokei_conn *conn, int status)
{
	conn->link->queued -= spokei_outlet_len(&conn->out);
	spokei_outlet_fini(&conn->out);
	conn->output = SPOKEI_OUTPUT_BROKEN;
	conn->holds = false;
	if (conn->paused)
		unpause(conn);
	conn->since[SPOKEI_LIMIT_SLOW] = 0;
	spokei_conn_since(conn, SPOKEI_LIMIT_BROKEN, spokei_conn_engine(conn)->settle_ns);
	if (status == -ENOMEM)
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
	else if (spokei_conn_ended(conn))
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_BY_PEER, SPOKE_ELOST);
}

/* Ends a pause once few bytes are queued. */
static inline void unpause_if_low(struct spokei_conn *conn)
{
	if (SPOKEI_UNLIKELY(conn->paused) &&
	    !spokei_conn_queues(conn, spokei_outlet_len(&conn->out),
				spokei_link_low(conn->link, conn->unproven) + 1))
		unpause(conn);
}

/* Returns whether the descriptor has taken bytes since the last time. Bytes that a stream has taken
 * may only wait in it. */
static SPOKEI_NOINLINE bool has_passed(struct spokei_conn *conn)
{
	uint64_t before = conn->passed;

	conn->passed = conn->stream.kind->passed(&conn->stream);
	return conn->passed != before;
}

/* Notes that the stream has taken `len` bytes. */
static inline void took(struct spokei_conn *conn, size_t len)
{
	struct spokei_link *link = conn->link;
	struct spoke_engine *engine = link->engine;
	bool moved = SPOKEI_UNLIKELY(conn->stream.layered) ? has_passed(conn) : len > 0;
	size_t waits;

	spokei_count_by(engine, SPOKE_STAT_BYTES_WRITTEN, len);
	link->queued -= len;
	spokei_outlet_took(&conn->out, conn->wire, &link->limits.wire, len);
	if (conn->idle.asked && spokei_buffer_len(&conn->out.control) == 0)
		spokei_idle_handed(&conn->idle, engine->settle_ns);
	else if (len > 0 || moved)
		spokei_idle_moved(&conn->idle, engine->settle_ns);
	waits = spokei_outlet_len(&conn->out);
	if (waits == 0) {
		spokei_link_return(link, &conn->out.out);
		/* Heartbeats are lent no memory: if kept, it would add to the spares. */
		if (conn->out.control.bytes)
			spokei_buffer_fini(&conn->out.control);
	}
	if (waits == 0 && SPOKEI_LIKELY(!conn->holds)) {
		conn->since[SPOKEI_LIMIT_SLOW] = 0;
	} else if (moved || conn->since[SPOKEI_LIMIT_SLOW] == 0) {
		spokei_conn_since(conn, SPOKEI_LIMIT_SLOW, engine->settle_ns);
		if (conn->state == SPOKEI_CONN_CLOSED)
			return;
	}
	unpause_if_low(conn);
}

void spokei_conn_unqueue(struct spokei_conn *conn, uint64_t mark, uint64_t frames)
{
	struct spokei_link *link = conn->link;
	struct spokei_buffer *out = &conn->out.out;
	size_t keep = (size_t)(mark - conn->out.sent);
	size_t waits;

	SPOKE_ASSERT(keep <= spokei_buffer_len(out));
	spokei_conn_engine(conn)->stats[SPOKE_STAT_MESSAGES_WRITTEN] -= frames;
	link->queued -= spokei_buffer_len(out) - keep;
	spokei_buffer_truncate(out, keep);
	waits = spokei_outlet_len(&conn->out);
	if (waits == 0) {
		if (!conn->holds)
			conn->since[SPOKEI_LIMIT_SLOW] = 0;
		spokei_link_return(link, out);
	}
	unpause_if_low(conn);
}

/* Returns how many bytes the stream has taken, or an error after which it takes none. */
static inline ssize_t write_parts(struct spokei_conn *conn, const struct iovec *parts, int count)
{
	ssize_t len;

	spokei_count(spokei_conn_engine(conn), SPOKE_STAT_WRITES);
	len = conn->stream.kind->write(&conn->stream, parts, count);
	if (SPOKEI_UNLIKELY(conn->stream.layered) && len > 0)
		conn->holds = true;
	return len == -EINTR || len == -EAGAIN ? 0 : len;
}

static void write_output(struct spokei_conn *conn)
{
	struct iovec parts[SPOKEI_OUTLET_PARTS];
	int count = spokei_outlet_front(&conn->out, parts);
	ssize_t len;

	if (count == 0)
		return;
	len = write_parts(conn, parts, count);
	if (len < 0)
		give_up_writing(conn, (int)len);
	else
		took(conn, (size_t)len);
}

static void flush(struct spokei_conn *conn)
{
	uint64_t now_ns = spokei_conn_engine(conn)->settle_ns;
	int status = conn->stream.kind->flush(&conn->stream);

	if (spokei_conn_unwritable(conn))
		return;
	conn->holds = status == -EAGAIN || status == -EINTR;
	if (status < 0 && !conn->holds) {
		give_up_writing(conn, status);
		return;
	}
	/* The stream may have passed bytes on in write(), too: took() has noted those. */
	if (has_passed(conn)) {
		conn->since[SPOKEI_LIMIT_SLOW] = 0;
		spokei_idle_moved(&conn->idle, now_ns);
	}
	if (!conn->holds && spokei_outlet_len(&conn->out) == 0) {
		conn->since[SPOKEI_LIMIT_SLOW] = 0;
	} else if (conn->since[SPOKEI_LIMIT_SLOW] == 0) {
		spokei_conn_since(conn, SPOKEI_LIMIT_SLOW, now_ns);
		if (conn->state == SPOKEI_CONN_CLOSED)
			return;
	}
	/* The peer may have taken bytes that wait in the stream. */
	if (conn->paused & SPOKEI_PAUSED_FULL)
		unpause_if_low(conn);
}

void spokei_conn_lend(struct spokei_conn *conn)
{
	spokei_link_lend(conn->link, &conn->out.out);
}

/* Not in a forked child: control returns there to the code that forked. */
static bool may_write(const struct spokei_conn *conn)
{
	return conn->state != SPOKEI_CONN_CLOSED && !conn->paused &&
	       conn->output == SPOKEI_OUTPUT_FREE &&
	       !spokei_engine_forked(spokei_conn_engine(conn));
}

/* The code that runs is not over, so the time is read again when the turn ends. */
static bool begin_early(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	if (!may_write(conn))
		return false;
	engine->settle_ns = engine->env->now(engine->env->ctx);
	engine->settle_old = true;
	return true;
}

/* Writes the only frame that is queued, which has room for the lent bytes, and copies those that
 * the stream did not take. An error is reported when the turn ends, outside of any call. */
static void write_lent(struct spokei_conn *conn, const struct spokei_lent *lent)
{
	_Static_assert(AHEAD < SPOKEI_LENT_MIN, "there is a rest");
	const unsigned char *frame = spokei_buffer_data(&conn->out.out);
	const unsigned char *bytes = lent->bytes.data;
	size_t len = lent->bytes.len;
	size_t head_len = (size_t)(lent->at - frame);
	size_t tail_len = spokei_buffer_len(&conn->out.out) - head_len - len;
	struct iovec ahead[] = { spokei_stream_part(frame, head_len),
				 spokei_stream_part(bytes, AHEAD) };
	struct iovec rest[] = { spokei_stream_part(bytes + AHEAD, len - AHEAD),
				spokei_stream_part(lent->at + len, tail_len) };
	ssize_t first = write_parts(conn, ahead, 2);
	ssize_t second = 0;
	size_t took_len = first > 0 ? (size_t)first : 0;
	size_t gone;

	if (took_len == head_len + AHEAD)
		second = write_parts(conn, rest, tail_len > 0 ? 2 : 1);
	took_len += second > 0 ? (size_t)second : 0;
	gone = took_len > head_len ? took_len - head_len : 0;
	if (gone < len)
		memcpy(lent->at + gone, bytes + gone, len - gone);
	took(conn, took_len);
	if (first >= 0 && second >= 0 && spokei_outlet_len(&conn->out) > 0)
		conn->output = SPOKEI_OUTPUT_BLOCKED;
}

int spokei_conn_put_long(struct spokei_conn *conn, struct spokei_message *message)
{
	struct spokei_lent lent = { .at = NULL };
	int error;

	if (!conn->stream.kind->copies && !spokei_conn_unwritable(conn) &&
	    conn->unsent_requests == 0 && spokei_outlet_len(&conn->out) == 0 && begin_early(conn))
		message->lent = &lent;
	error = spokei_conn_put_short(conn, message);
	message->lent = NULL;
	if (error == 0 && lent.at)
		write_lent(conn, &lent);
	return error;
}

void spokei_conn_dismiss(struct spokei_conn *conn, enum spoke_stat stat, int error)
{
	if (!spokei_conn_unwritable(conn) && begin_early(conn)) {
		write_output(conn);
		if (conn->stream.layered && conn->state != SPOKEI_CONN_CLOSED)
			flush(conn);
		spokei_conn_part(conn);
	}
	spokei_conn_close_with(conn, stat, error);
}

/* --- the end of a turn, and early writes during it */

/* A write of a stream with a layer costs as much as some KiB of a long one, on both sides, so short
 * ones wait for the end of the turn. */
#define EARLY_LAYERED 16384u

static inline void pass_on(struct spokei_conn *conn)
{
	if (SPOKEI_UNLIKELY(conn->stream.layered) && !spokei_conn_unwritable(conn))
		flush(conn);
}

/* Notes whether output waits after a write. */
static inline void note_output(struct spokei_conn *conn, bool waits)
{
	if (!spokei_conn_unwritable(conn))
		conn->output = waits ? SPOKEI_OUTPUT_BLOCKED : SPOKEI_OUTPUT_FREE;
}

static inline void write_queued(struct spokei_conn *conn)
{
	write_output(conn);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	note_output(conn, spokei_outlet_len(&conn->out) > 0);
	pass_on(conn);
}

/* Unsent requests come into the output buffer only when nothing else is there: until then they can
 * be withdrawn. While the stream takes everything, only guarded requests are unsent, and they
 * follow the output of this turn. No user's code runs between the check of a guarded request and
 * the write. */
static SPOKEI_NOINLINE void write_unsent(struct spokei_conn *conn)
{
	struct spokei_conn_batch batch;
	bool sends = conn->output == SPOKEI_OUTPUT_FREE || spokei_buffer_len(&conn->out.out) == 0;

	if (sends)
		spokei_conn_send_unsent(conn, &batch);
	if (conn->state != SPOKEI_CONN_CLOSED)
		write_output(conn);
	if (sends)
		spokei_conn_sent_unsent(conn, &batch);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	note_output(conn, spokei_outlet_len(&conn->out) > 0 || conn->unsent_requests > 0);
	pass_on(conn);
}

/* Writes, unless the stream has just refused to take more. */
static void write_waiting(struct spokei_conn *conn)
{
	if (conn->output == SPOKEI_OUTPUT_BLOCKED)
		return;
	if (SPOKEI_UNLIKELY(conn->output == SPOKEI_OUTPUT_WRITABLE))
		conn->output = SPOKEI_OUTPUT_BLOCKED;
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
	if (begin_early(conn))
		write_queued(conn);
}

/* A reading of the clock costs as much as such a write, so the turn's begin is its time. */
void spokei_conn_write_prompt(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	if (!may_write(conn))
		return;
	if (engine->settle_ns < engine->begin_ns)
		engine->settle_ns = engine->begin_ns;
	engine->settle_old = true;
	write_queued(conn);
}

/* Returns whether the peer may still send requests, which then have to be refused. */
static bool may_be_asked(const struct spokei_conn *conn)
{
	return conn->since[SPOKEI_LIMIT_NOTICE] && !conn->readonly && !spokei_conn_ended(conn) &&
	       !spokei_conn_unwritable(conn);
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
	if (conn->output == SPOKEI_OUTPUT_SHUT)
		return;
	if (conn->state == SPOKEI_CONN_OPEN)
		spokei_conn_move(conn, SPOKEI_CONN_FINISHING);
	spokei_conn_answer_end(conn);
	if (spokei_conn_ended(conn) || spokei_conn_unwritable(conn) ||
	    conn->stream.kind->shut(&conn->stream) < 0) {
		spokei_conn_close(conn, spokei_conn_ended(conn) ? SPOKE_ELOST : SPOKE_ECLOSED);
		return;
	}
	conn->output = SPOKEI_OUTPUT_SHUT;
	spokei_conn_since(conn, SPOKEI_LIMIT_SHUT, spokei_conn_engine(conn)->settle_ns);
}

void spokei_conn_settle(struct spokei_task *task)
{
	struct spokei_conn *conn = spoke_container_of(task, struct spokei_conn, settle);

	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	if (!spokei_conn_is_opening(conn) && !spokei_conn_unwritable(conn))
		write_waiting(conn);
	else if (conn->output == SPOKEI_OUTPUT_SHUT && conn->stream.layered)
		flush(conn);
	if (conn->state != SPOKEI_CONN_CLOSED)
		spokei_conn_settle_calls(conn);
	if (is_finished(conn))
		finish(conn);
	spokei_conn_watch(conn);
}
