/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading: one read per turn and connection, whose bytes become messages that are delivered; and
 * the end of the peer's bytes.
 */
#include "transport/conn/foreign.h"
#include "transport/conn/link.h"
#include "transport/conn/parts.h"

#include <errno.h>

/* Output queued during input processing is written early once it reaches EARLY bytes, so that the
 * peer can start. Each further early write of the same turn needs EARLY_MORE times as many bytes. A
 * turn with several busy connections writes nothing early: the peer has enough to do, and would be
 * woken for a part of its work.
 */
#define EARLY 4096u
#define EARLY_MORE 5u
#define EARLY_PROMPT 1024u /* for streams that are prompt; more need no more bytes */

#define AHEAD 65536u /* bytes that are read while a request is served */

/* Bytes of one read from a peer that has proven nothing: they may have to be held. And in a late
 * turn, if no call to the peer is due: one that floods small messages must not make the turn longer
 * for all others. */
#define SHORT_READ 65536u

/* Reads of bytes that a stream holds, in one turn: other connections wait meanwhile. */
#define PENDING_READS 8u

/* Returns why bytes that no message begins with are there; NULL: unknown. */
static const char *why_broken(struct spokei_conn *conn, const struct spoke_span *bytes)
{
	enum spokei_foreign foreign = SPOKEI_FOREIGN_UNKNOWN;

	if (!conn->heard)
		foreign = spokei_foreign_find(bytes->data, bytes->len, conn->stream.accepted);
	/* Inside TLS it is no hello. */
	if (foreign == SPOKEI_FOREIGN_TLS && conn->stream.kind->veiled)
		foreign = SPOKEI_FOREIGN_UNKNOWN;
	conn->foreign = (uint8_t)foreign;
	return spokei_foreign_sentence(foreign, conn->stream.accepted);
}

static void end_broken(struct spokei_conn *conn, const struct spoke_span *bytes)
{
	switch (conn->in.error) {
	case SPOKE_ENOMEM:
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
		return;
	case SPOKE_ETOOLARGE:
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_LARGE, SPOKE_EPROTOCOL);
		return;
	default:
		spokei_conn_blame_for(conn, SPOKE_STAT_CLOSED_PROTOCOL, SPOKE_EPROTOCOL,
				      why_broken(conn, bytes));
	}
}

/* Keeps bytes that may not be processed before the pause is over. */
static void hold(struct spokei_conn *conn, struct spoke_span bytes)
{
	if (bytes.len > 0 && spokei_buffer_append(&conn->held, bytes.data, bytes.len))
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
	else
		spokei_conn_watch(conn);
}

/* Returns the bytes of output at which a stream with a layer writes early. */
static SPOKEI_NOINLINE size_t early_layered(const struct spokei_conn *conn)
{
	if (spokei_conn_engine(conn)->crowded)
		return SIZE_MAX;
	return conn->stream.kind->prompt ? EARLY_PROMPT : EARLY;
}

/* Delivers the messages of the bytes that were read, until a pause, which leaves the others.
 * Returns whether there was a whole message. */
static bool take_in(struct spokei_conn *conn, struct spoke_span *bytes)
{
	struct spokei_message message;
	size_t early = spokei_conn_engine(conn)->crowded ? SIZE_MAX : EARLY;
	bool any = false;

	if (SPOKEI_UNLIKELY(conn->stream.layered))
		early = early_layered(conn);
	for (;;) {
		switch (spokei_intake_next(&conn->in, bytes, &message)) {
		case SPOKEI_INTAKE_MORE:
			return any;
		case SPOKEI_INTAKE_MESSAGE:
			spokei_conn_deliver(conn, &message, 0);
			break;
		case SPOKEI_INTAKE_BAD_BODY:
			if (SPOKEI_UNLIKELY(conn->unproven) && conn->in.too_long > 0) {
				spokei_conn_blame(conn, SPOKE_STAT_CLOSED_LARGE, SPOKE_EPROTOCOL);
				return any;
			}
			spokei_conn_deliver(conn, &message, conn->in.error);
			break;
		case SPOKEI_INTAKE_BROKEN:
			end_broken(conn, bytes);
			return any;
		}
		any = true;
		/* A handler has forked: the rest is for the parent. */
		if (SPOKEI_UNLIKELY(spokei_engine_forked(spokei_conn_engine(conn))))
			return any;
		if (SPOKEI_UNLIKELY(spokei_buffer_len(&conn->out.out) >= early)) {
			spokei_conn_write_early(conn);
			if (!conn->stream.kind->prompt)
				early *= EARLY_MORE;
		}
		if (conn->state == SPOKEI_CONN_CLOSED || conn->paused)
			return any;
	}
}

/* Returns whether the peer waits for anything. A side that only calls need not send its unwritten
 * requests: those calls end as unwritten. */
static bool owes_answers(const struct spokei_conn *conn)
{
	if (!spokei_list_empty(&conn->servings))
		return true;
	return (spokei_outlet_len(&conn->out) > 0 || conn->holds) &&
	       (!conn->link->asked || conn->link->serve);
}

/* Returns whether a peer that sends no more is still served. A consumer of spoke never half-closes
 * while it waits: its process has ended, or it has given up all its calls. */
static bool may_wait(const struct spokei_conn *conn)
{
	if (!conn->waits_open && conn->link->limits.half_ns > 0)
		return owes_answers(conn);
	return !spokei_list_empty(&conn->servings);
}

/* The peer sends no more: its requests are answered first. */
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
	/* It drained before, and no reply is owed. */
	if (conn->readonly && conn->announced && conn->pendings.count == 0 &&
	    spokei_list_empty(&conn->servings)) {
		spokei_conn_answer_end(conn);
		spokei_conn_close(conn, SPOKE_ECLOSED);
		return;
	}
	if (conn->waits_open || conn->link->limits.half_ns == 0)
		spokei_conn_abandon_waiting(conn);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	if (conn->unwritable || conn->link->connects || !may_wait(conn)) {
		spokei_conn_answer_end(conn);
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_BY_PEER, SPOKE_ELOST);
		return;
	}
	/* First, because failed calls may be retried at once, and not on this connection. */
	if (conn->state == SPOKEI_CONN_OPEN)
		spokei_conn_move(conn, SPOKEI_CONN_FINISHING);
	spokei_conn_fail_calls(conn, SPOKE_ELOST);
	spokei_conn_watch(conn);
	if (conn->state != SPOKEI_CONN_CLOSED)
		spokei_conn_arm(conn);
}

/* Accounts bytes that wait for the rest of a frame. Returns whether they may: too many peers with
 * incomplete frames would take all memory. */
static bool count_held(struct spokei_conn *conn)
{
	struct spokei_link *link = conn->link;
	size_t held = conn->in.kept.capacity + conn->in.scratch.capacity + conn->held.capacity;
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
		/* A block that is not lent again must not add to the spares. */
		if (conn->in.kept.bytes)
			spokei_buffer_fini(&conn->in.kept);
		if (conn->read_held > 0 || conn->in.scratch.bytes || conn->paused)
			(void)count_held(conn);
		return;
	}
	if (!count_held(conn))
		return;
	if (any || conn->frame_ns == 0)
		conn->frame_ns = spokei_conn_engine(conn)->begin_ns;
	spokei_conn_arm(conn);
}

/* Reads into the scratch. Returns the number of bytes; 0: none are to be processed. */
static inline size_t read_bytes(struct spokei_conn *conn, size_t max)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);
	ssize_t got = conn->stream.kind->read(&conn->stream, engine->scratch, max);

	conn->asked_mark = conn->out.sent;
	spokei_count(engine, SPOKE_STAT_READS);
	if (got == -EAGAIN || got == -EINTR)
		return 0;
	if (got < 0 && conn->shut) {
		spokei_conn_close(conn, SPOKE_ECLOSED);
		return 0;
	}
	/* E.g. bytes were changed, or the peer refuses this side's certificate: a provider says so
	 * when the handshake of its consumer is over. */
	if (got == -EPROTO) {
		bool refuses = !conn->heard && !conn->stream.accepted && conn->stream.kind->veiled;

		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_PROTOCOL,
				  refuses ? SPOKE_EHANDSHAKE : SPOKE_EPROTOCOL);
		return 0;
	}
	if (got == -ETIMEDOUT) { /* the kernel's keepalive found the peer silent */
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_SILENT, SPOKE_ESILENT);
		return 0;
	}
	if (got == -ENOMEM) { /* of a stream that needs memory to read */
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
		return 0;
	}
	if (got < 0) {
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_BY_PEER, SPOKE_ELOST);
		return 0;
	}
	if (got == 0) {
		end_of_input(conn);
		return 0;
	}
	spokei_count_by(engine, SPOKE_STAT_BYTES_READ, (uint64_t)got);
	/* The list lies in a cache line that a turn does not need else. */
	if (SPOKEI_UNLIKELY(!conn->heard))
		spokei_conn_speaks(conn);
	spokei_conn_heard(conn);
	return conn->state == SPOKEI_CONN_CLOSED ? 0 : (size_t)got;
}

static inline size_t read_max(const struct spokei_conn *conn)
{
	const struct spoke_engine *engine = spokei_conn_engine(conn);

	if (SPOKEI_UNLIKELY(spokei_engine_late(engine)) && conn->late_turn != engine->turn)
		return SHORT_READ;
	return SPOKEI_UNLIKELY(conn->unproven) ? SHORT_READ : SPOKEI_ENGINE_SCRATCH;
}

/* Returns whether there were bytes. */
static bool read_some(struct spokei_conn *conn)
{
	size_t got = read_bytes(conn, read_max(conn));
	struct spoke_span bytes = { spokei_conn_engine(conn)->scratch, got };
	bool any;

	if (got == 0)
		return false;
	any = take_in(conn, &bytes);
	if (SPOKEI_UNLIKELY(conn->paused) && conn->state != SPOKEI_CONN_CLOSED)
		hold(conn, bytes);
	if (conn->state != SPOKEI_CONN_CLOSED)
		note_frame(conn, any);
	return true;
}

/* Reads while a request is served, to notice the peer's end. Its next requests wait. */
static SPOKEI_NOINLINE void read_ahead(struct spokei_conn *conn)
{
	size_t got = read_bytes(conn, AHEAD);

	if (got == 0)
		return;
	hold(conn, spokei_span(spokei_conn_engine(conn)->scratch, got));
	if (conn->state != SPOKEI_CONN_CLOSED)
		(void)count_held(conn);
}

static inline bool is_readable(const struct spokei_conn *conn)
{
	return !spokei_conn_is_opening(conn) && conn->state != SPOKEI_CONN_CLOSED && !conn->ended;
}

static bool may_read(const struct spokei_conn *conn)
{
	return is_readable(conn) && !conn->paused;
}

/* Reads bytes that the stream holds, because the descriptor will not become ready for them. */
static void read_pending(struct spokei_conn *conn)
{
	unsigned reads = 0;

	/* In a forked child the bytes are its parent's. */
	while (may_read(conn) && !spokei_engine_forked(spokei_conn_engine(conn)) &&
	       spokei_stream_pending(&conn->stream) > 0) {
		if (reads++ == PENDING_READS) {
			spokei_engine_soon(spokei_conn_engine(conn), &conn->resume);
			return;
		}
		(void)read_some(conn);
	}
}

/* A stream that is prompt is asked again in the next turn anyway, and its write costs little: the
 * peer gets answers before this turn is over. */
static void finish_read(struct spokei_conn *conn)
{
	if (!conn->stream.kind->prompt)
		read_pending(conn);
	else if (spokei_buffer_len(&conn->out.out) > 0 && !spokei_conn_engine(conn)->crowded)
		spokei_conn_write_prompt(conn);
}

bool spokei_conn_read(struct spokei_conn *conn)
{
	bool any;

	if (SPOKEI_UNLIKELY(!may_read(conn))) {
		if (is_readable(conn) && spokei_conn_has_room(conn))
			read_ahead(conn);
		return false;
	}
	any = read_some(conn);
	if (SPOKEI_UNLIKELY(conn->stream.layered))
		finish_read(conn);
	return any;
}

void spokei_conn_resume(struct spokei_task *task)
{
	struct spokei_conn *conn = spoke_container_of(task, struct spokei_conn, resume);
	struct spokei_buffer *held = &conn->held;
	struct spoke_span bytes = { spokei_buffer_data(held), spokei_buffer_len(held) };
	bool any;

	conn->paused = 0;
	conn->frame_ns = 0; /* the frame has waited for this side */
	any = take_in(conn, &bytes);
	if (bytes.len > 0 && conn->state != SPOKEI_CONN_CLOSED)
		spokei_buffer_consume(held, spokei_buffer_len(held) - bytes.len);
	else
		spokei_buffer_fini(held);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	note_frame(conn, any);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	spokei_engine_last(spokei_conn_engine(conn), &conn->settle);
	finish_read(conn);
}

void spokei_conn_ready(struct spoke_watch *ready, unsigned io)
{
	struct spokei_conn *conn = spoke_container_of(ready, struct spokei_conn, stream.watch);

	/* Such a stream may have to read in order to write, and to write in order to read. */
	if (SPOKEI_UNLIKELY(conn->stream.layered)) {
		spokei_engine_last(spokei_conn_engine(conn), &conn->settle);
		io = SPOKE_IO_READ | SPOKE_IO_WRITE;
	}
	if (io & SPOKE_IO_WRITE && conn->blocked) {
		conn->writable = true;
		spokei_engine_last(spokei_conn_engine(conn), &conn->settle);
	}
	if (io & SPOKE_IO_READ)
		(void)spokei_conn_read(conn);
}
