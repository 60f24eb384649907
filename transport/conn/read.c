/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing: one read a turn when there is something, one write when it ends, and early
 * ones as much is put before that, or what is long. */
#include "transport/conn/parts.h"

#include <errno.h>

/* Bytes put while messages are taken in that are not to wait for the rest: the peer wakes up by
 * them. As it is busy then, the next write of this turn may wait for so many times as many. */
#define EARLY 1024u
#define EARLY_MORE 5u

/* Bytes of args or a value that go ahead of the rest, where they are long: the peer wakes up by
 * them while the system copies what follows. */
#define AHEAD 4096u

void spokei_conn_watch(struct spokei_conn *conn)
{
	unsigned io = 0;

	if (conn->stream.watch.fd < 0)
		return;
	if (conn->state == SPOKEI_CONN_CONNECTING)
		io = SPOKE_IO_WRITE;
	else if (!conn->paused && !conn->ended)
		io = SPOKE_IO_READ;
	if (conn->blocked && !conn->writable && !conn->unwritable)
		io |= SPOKE_IO_WRITE;
	spokei_stream_watch(&conn->stream, io);
}

/* --- writing */

void spokei_conn_answered(struct spokei_conn *conn)
{
	const struct spokei_link *link = conn->link;

	if (conn->paused || spokei_buffer_len(&conn->out.out) < link->limits.out_high)
		return;
	conn->paused = true;
	spokei_count(link->engine, SPOKE_STAT_READS_PAUSED);
	spokei_conn_watch(conn);
}

/* It is read again; what was read before the pause comes first. */
static void unpause(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	if (spokei_buffer_len(&conn->held) > 0) {
		spokei_engine_soon(engine, &conn->resume);
		return;
	}
	conn->paused = false;
	if (conn->frame_ns == 0)
		return;
	conn->frame_ns = engine->settle_ns;
	spokei_conn_arm(conn);
}

/* Nothing can be written any more; what the peer sent before is still read, for a while: a broken
 * connection tells its end there too, but not every error means that it is broken. */
static void give_up_writing(struct spokei_conn *conn)
{
	conn->link->queued -= spokei_outlet_len(&conn->out);
	spokei_outlet_fini(&conn->out);
	conn->unwritable = true;
	conn->blocked = false;
	if (conn->paused)
		unpause(conn);
	conn->moved_ns = 0;
	conn->unwritable_ns = spokei_conn_engine(conn)->settle_ns;
	spokei_conn_arm(conn);
	if (conn->ended)
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_BY_PEER, SPOKE_ELOST);
}

static inline void took(struct spokei_conn *conn, size_t len)
{
	struct spokei_link *link = conn->link;
	struct spoke_engine *engine = link->engine;
	size_t waits;

	spokei_count_by(engine, SPOKE_STAT_BYTES_WRITTEN, len);
	link->queued -= len;
	spokei_outlet_took(&conn->out, conn->wire, &link->limits.wire, len);
	if (conn->idle.asked && spokei_buffer_len(&conn->out.control) == 0)
		spokei_idle_handed(&conn->idle, engine->settle_ns);
	else if (len > 0)
		spokei_idle_moved(&conn->idle, engine->settle_ns);
	waits = spokei_outlet_len(&conn->out);
	if (waits == 0) {
		conn->moved_ns = 0;
		spokei_link_return(link, &conn->out.out);
		/* Heartbeats are lent nothing: kept, one after the other would add to the spares.
		 */
		if (conn->out.control.bytes)
			spokei_buffer_fini(&conn->out.control);
	} else if (len > 0 || conn->moved_ns == 0) {
		conn->moved_ns = engine->settle_ns;
		spokei_conn_arm(conn);
	}
	if (conn->paused && waits <= link->limits.out_low)
		unpause(conn);
}

/* Returns how many bytes the stream has taken, or an error after which it takes none. */
static inline ssize_t write_parts(struct spokei_conn *conn, const struct iovec *parts, int count)
{
	ssize_t len;

	spokei_count(spokei_conn_engine(conn), SPOKE_STAT_WRITES);
	len = conn->stream.kind->write(&conn->stream, parts, count);
	return len == -EINTR || len == -EAGAIN ? 0 : len;
}

static void write_some(struct spokei_conn *conn)
{
	struct iovec parts[SPOKEI_OUTLET_PARTS];
	int count = spokei_outlet_front(&conn->out, parts);
	ssize_t len;

	if (count == 0)
		return;
	len = write_parts(conn, parts, count);
	if (len < 0)
		give_up_writing(conn);
	else
		took(conn, (size_t)len);
}

/* Writes, unless the stream has just said that it takes no more. What waited as a parcel comes into
 * the outlet only when nothing else is there: until then it can be taken back. */
static void flush(struct spokei_conn *conn)
{
	if (conn->blocked && !conn->writable)
		return;
	conn->writable = false;
	if (SPOKEI_UNLIKELY(conn->unsent_requests > 0 && spokei_buffer_len(&conn->out.out) == 0))
		spokei_conn_send_parcels(conn);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	write_some(conn);
	conn->blocked = !conn->unwritable &&
			(spokei_outlet_len(&conn->out) > 0 || conn->unsent_requests > 0);
}

/* May it be written in the middle of a turn? Not in the child of a fork, to which users' code that
 * forked returns; nor is that over, so the time is only lent, and read again when the turn ends. */
static bool begin_early(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	if (conn->state == SPOKEI_CONN_CLOSED || conn->paused || conn->blocked ||
	    spokei_engine_forked(engine))
		return false;
	engine->settle_ns = engine->env->now(engine->env->ctx);
	engine->settle_old = true;
	return true;
}

/* Enough is put in the middle of a turn to be written at once: the peer takes it in meanwhile,
 * instead of waiting for the end of all that is to be done here. */
static void write_early(struct spokei_conn *conn)
{
	if (begin_early(conn))
		flush(conn);
}

/* A part of bytes that are not changed, which the struct cannot say. */
static struct iovec part_of(const void *bytes, size_t len)
{
	union {
		const void *given;
		void *taken;
	} cast = { .given = bytes };

	return (struct iovec){ cast.taken, len };
}

/* Writes the only frame that waits, which has room for what is lent, and fills in what the stream
 * did not take. An error is told as the turn ends, when nobody is in the midst of a call. */
static void write_lent(struct spokei_conn *conn, const struct spokei_lent *lent)
{
	_Static_assert(AHEAD < SPOKEI_LENT_MIN, "there is a rest");
	const unsigned char *frame = spokei_buffer_data(&conn->out.out);
	const unsigned char *bytes = lent->bytes.data;
	size_t len = lent->bytes.len;
	size_t head_len = (size_t)(lent->at - frame);
	size_t tail_len = spokei_buffer_len(&conn->out.out) - head_len - len;
	struct iovec ahead[] = { part_of(frame, head_len), part_of(bytes, AHEAD) };
	struct iovec rest[] = { part_of(bytes + AHEAD, len - AHEAD),
				part_of(lent->at + len, tail_len) };
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
	conn->blocked = first >= 0 && second >= 0 && spokei_outlet_len(&conn->out) > 0;
}

int spokei_conn_put_long(struct spokei_conn *conn, struct spokei_message *message)
{
	struct spokei_lent lent = { .at = NULL };
	int error;

	if (!conn->unwritable && conn->unsent_requests == 0 && spokei_outlet_len(&conn->out) == 0 &&
	    begin_early(conn))
		message->lent = &lent;
	error = spokei_conn_put_short(conn, message);
	message->lent = NULL;
	if (error == 0 && lent.at)
		write_lent(conn, &lent);
	return error;
}

/* --- reading */

static void end_broken(struct spokei_conn *conn)
{
	switch (conn->in.error) {
	case SPOKE_ENOMEM:
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
		return;
	case SPOKE_ETOOLARGE:
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_LARGE, SPOKE_EPROTOCOL);
		return;
	default:
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_PROTOCOL, SPOKE_EPROTOCOL);
	}
}

/* What was read and is not to be looked at before the pause is over. */
static void hold(struct spokei_conn *conn, struct spoke_span bytes)
{
	if (bytes.len > 0 && spokei_buffer_append(&conn->held, bytes.data, bytes.len))
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
}

/* Hands on the messages of what was read, as long as it may be read. Returns whether any was whole.
 */
static bool take_in(struct spokei_conn *conn, struct spoke_span bytes)
{
	struct spokei_message message;
	size_t early = EARLY;
	bool any = false;

	for (;;) {
		switch (spokei_intake_next(&conn->in, &bytes, &message)) {
		case SPOKEI_INTAKE_MORE:
			return any;
		case SPOKEI_INTAKE_MESSAGE:
			spokei_conn_deliver(conn, &message, 0);
			break;
		case SPOKEI_INTAKE_BAD_BODY:
			spokei_conn_deliver(conn, &message, conn->in.error);
			break;
		case SPOKEI_INTAKE_BROKEN:
			end_broken(conn);
			return any;
		}
		any = true;
		if (SPOKEI_UNLIKELY(spokei_buffer_len(&conn->out.out) >= early)) {
			write_early(conn);
			early *= EARLY_MORE;
		}
		if (conn->state == SPOKEI_CONN_CLOSED)
			return any;
		if (conn->paused) {
			hold(conn, bytes);
			return any;
		}
	}
}

/* Does the peer wait for anything? What a side that only asks has not written yet never may be, for
 * its calls end as unwritten. */
static bool owes_answers(const struct spokei_conn *conn)
{
	if (!spokei_list_empty(&conn->servings))
		return true;
	return spokei_outlet_len(&conn->out) > 0 && (!conn->link->asked || conn->link->serve);
}

/* The peer sends no more: what it asked for is answered first. */
static void end_of_input(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	conn->ended = true;
	conn->ended_ns = engine->begin_ns;
	conn->frame_ns = 0;
	if (conn->shut) {
		spokei_conn_close(conn, SPOKE_ECLOSED);
		return;
	}
	/* It said goodbye before, and nobody waits for anything. */
	if (conn->readonly && conn->announced && conn->pendings.count == 0 &&
	    spokei_list_empty(&conn->servings)) {
		spokei_conn_close(conn, SPOKE_ECLOSED);
		return;
	}
	if (conn->unwritable || conn->link->connects || !owes_answers(conn)) {
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_BY_PEER, SPOKE_ELOST);
		return;
	}
	/* First, for those that fail may be made again at once, and not here. */
	if (conn->state == SPOKEI_CONN_OPEN)
		spokei_conn_move(conn, SPOKEI_CONN_FINISHING);
	spokei_conn_fail_calls(conn, SPOKE_ELOST);
	spokei_conn_watch(conn);
	if (conn->state != SPOKEI_CONN_CLOSED)
		spokei_conn_arm(conn);
}

/* What was read and waits for more. Returns whether it may: too many peers that begin frames and do
 * not end them would take all the memory there is. */
static bool count_held(struct spokei_conn *conn)
{
	struct spokei_link *link = conn->link;
	size_t held = conn->in.kept.capacity + conn->held.capacity;
	bool more = held > conn->read_held;

	if (SPOKEI_LIKELY(held == conn->read_held))
		return true;
	link->held += held - conn->read_held;
	conn->read_held = held;
	if (!more || link->held <= link->limits.held_max)
		return true;
	spokei_conn_blame(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
	return false;
}

static void note_frame(struct spokei_conn *conn, bool any)
{
	if (!spokei_intake_begun(&conn->in)) {
		conn->frame_ns = 0;
		/* What is lent to nobody again may not add to the spares. */
		if (conn->in.kept.bytes)
			spokei_buffer_fini(&conn->in.kept);
		(void)count_held(conn);
		return;
	}
	if (!count_held(conn))
		return;
	if (any || conn->frame_ns == 0)
		conn->frame_ns = spokei_conn_engine(conn)->begin_ns;
	spokei_conn_arm(conn);
}

static void read_some(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);
	ssize_t got = conn->stream.kind->read(&conn->stream, engine->scratch,
					      SPOKEI_ENGINE_SCRATCH);
	bool any;

	conn->asked_mark = conn->out.sent;
	spokei_count(engine, SPOKE_STAT_READS);
	if (got == -EAGAIN || got == -EINTR)
		return;
	if (got < 0 && conn->shut) {
		spokei_conn_close(conn, SPOKE_ECLOSED);
		return;
	}
	if (got == -ETIMEDOUT) { /* the peer's system is as silent as the peer */
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_SILENT, SPOKE_ESILENT);
		return;
	}
	if (got < 0) {
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_BY_PEER, SPOKE_ELOST);
		return;
	}
	if (got == 0) {
		end_of_input(conn);
		return;
	}
	spokei_count_by(engine, SPOKE_STAT_BYTES_READ, (uint64_t)got);
	spokei_conn_heard(conn);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	any = take_in(conn, spokei_span(engine->scratch, (size_t)got));
	if (conn->state != SPOKEI_CONN_CLOSED)
		note_frame(conn, any);
}

void spokei_conn_read(struct spokei_conn *conn)
{
	if (conn->state != SPOKEI_CONN_CLOSED && !conn->paused && !conn->ended)
		read_some(conn);
}

void spokei_conn_resume(struct spokei_task *task)
{
	struct spokei_conn *conn = spoke_container_of(task, struct spokei_conn, resume);
	struct spokei_buffer held = conn->held;
	bool any;

	spokei_buffer_init(&conn->held, held.env, SPOKEI_ENGINE_SCRATCH);
	conn->paused = false;
	any = take_in(conn, spokei_span(spokei_buffer_data(&held), spokei_buffer_len(&held)));
	spokei_buffer_fini(&held);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	note_frame(conn, any);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	spokei_engine_last(spokei_conn_engine(conn), &conn->settle);
}

void spokei_conn_ready(struct spoke_watch *ready, unsigned io)
{
	struct spokei_conn *conn = spoke_container_of(ready, struct spokei_conn, stream.watch);

	if (conn->state == SPOKEI_CONN_CONNECTING) {
		spokei_conn_finish_connect(conn);
		return;
	}
	if (io & SPOKE_IO_WRITE && conn->blocked) {
		conn->writable = true;
		spokei_engine_last(spokei_conn_engine(conn), &conn->settle);
	}
	if (io & SPOKE_IO_READ)
		spokei_conn_read(conn);
}

/* --- the end of a turn */

/* May the peer still send requests, which then have to be refused? */
static bool may_be_asked(const struct spokei_conn *conn)
{
	return conn->announced && !conn->readonly && !conn->ended && !conn->unwritable;
}

static bool is_finished(const struct spokei_conn *conn)
{
	return conn->state == SPOKEI_CONN_FINISHING && !may_be_asked(conn) &&
	       spokei_list_empty(&conn->servings) && conn->pendings.count == 0 &&
	       conn->unsent_requests == 0 && spokei_outlet_len(&conn->out) == 0 &&
	       spokei_buffer_len(&conn->held) == 0;
}

/* All is said. A socket that is closed while bytes come in takes back what the peer has not read
 * yet; so it only sends no more, and is read until the peer's end, for a while. */
static void finish(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	if (conn->shut)
		return;
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
	if (conn->state != SPOKEI_CONN_CONNECTING && !conn->unwritable)
		flush(conn);
	if (conn->state != SPOKEI_CONN_CLOSED)
		spokei_conn_settle_calls(conn);
	if (is_finished(conn))
		finish(conn);
	spokei_conn_watch(conn);
}
