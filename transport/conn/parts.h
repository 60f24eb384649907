/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a connection, for one another:
 *
 *     life        its beginning and its end, states, the peer's identity; all connections of an
 * owner times       its limits, the silence of the peer, heartbeats, deadlines read        stream
 * to messages, and messages to their receivers answers     replies of this side write       calls
 * of this side; output buffer to stream; the pause of reading; the end of a turn pending     the
 * ring that finds the call of an id
 */
#ifndef SPOKEI_TRANSPORT_CONN_PARTS_H
#define SPOKEI_TRANSPORT_CONN_PARTS_H

#include "transport/conn/conn.h"

/* Upper half of the ids of a connection that spoke has opened ("spok"), and so of its first
 * heartbeat. It tells the provider that no caller half-closes this connection and waits. */
#define SPOKEI_CONN_MARK UINT32_C(0x73706f6b)
/* The id of notices of a side that steps aside. */
#define SPOKEI_CONN_ASIDE ((uint64_t)SPOKEI_CONN_MARK << 32)

static inline struct spoke_engine *spokei_conn_engine(const struct spokei_conn *conn)
{
	return conn->stream.engine;
}

/* --- life.c */

/* Changes the state; an illegal move is a bug. */
void spokei_conn_move(struct spokei_conn *conn, enum spokei_conn_state state);

/* Sets the wire: before the connection is made, or from the peer's first byte. */
void spokei_conn_speak(struct spokei_conn *conn, const struct spokei_wire *wire);

/* Tells a peer that has ended, and is about to be closed, that this side ends too: streams other
 * than sockets have a word for it. */
void spokei_conn_answer_end(struct spokei_conn *conn);

/* Tells the peer in the same way that this side ends on purpose, if nothing of it is cut off. The
 * caller closes the connection next. Not in a forked child, whose parent goes on. */
static inline void spokei_conn_part(struct spokei_conn *conn)
{
	if (conn->stream.layered && !spokei_conn_is_opening(conn) &&
	    conn->state != SPOKEI_CONN_CLOSED && !spokei_conn_unwritable(conn) &&
	    spokei_outlet_len(&conn->out) == 0)
		(void)conn->stream.kind->shut(&conn->stream);
}

/* Notes that the peer of an accepted connection has sent something. */
static inline void spokei_conn_speaks(struct spokei_conn *conn)
{
	if (SPOKEI_UNLIKELY(conn->silent.next != NULL))
		spokei_list_remove(&conn->silent);
}

/* --- times.c */

/* Returns whether the peer's silence can mean anything now: this side reads. */
static inline bool spokei_conn_is_listened_to(const struct spokei_conn *conn)
{
	return !spokei_conn_is_opening(conn) && conn->wire != NULL && !conn->paused &&
	       !spokei_conn_ended(conn) && !spokei_conn_unwritable(conn);
}

/* Arms the timer for the next of the connection's times. May close the connection. */
void spokei_conn_arm(struct spokei_conn *conn);

/* Sets the timer to that time, even if it is later than before: a connection of which only
 * heartbeats are read causes no turn in vain. May close the connection. */
void spokei_conn_rearm(struct spokei_conn *conn);

/* Ends a pause of reading: the peer's silence counts from now. May close the connection. */
void spokei_conn_unpause(struct spokei_conn *conn);

/* Begins a time that is limited, and arms the timer for it. May close the connection. */
static inline void spokei_conn_since(struct spokei_conn *conn, enum spokei_conn_limit limit,
				     uint64_t since_ns)
{
	conn->since[limit] = since_ns;
	spokei_conn_arm(conn);
}

/* Sends a heartbeat. Returns whether there was memory; if not, the next attempt is an interval
 * later, and no miss is counted. */
bool spokei_conn_ask(struct spokei_conn *conn);

/* Sends READONLY, once, if the wire has it. */
void spokei_conn_announce(struct spokei_conn *conn);

/* Registers the timers of calls and connections. Returns as spokei_link_init(). */
SPOKE_MUST_USE int spokei_link_time(struct spokei_link *link);

/* --- write.c */

/* Returns whether at least `len` bytes, > 0, are queued: `here` in buffers of the connection, and
 * the others in its stream. */
static inline bool spokei_conn_queues(const struct spokei_conn *conn, size_t here, size_t len)
{
	const struct spokei_stream *stream = &conn->stream;

	if (here >= len)
		return true;
	if (SPOKEI_LIKELY(!stream->layered) || stream->kind->queues == NULL ||
	    spokei_conn_unwritable(conn))
		return false;
	return stream->kind->queues(stream, len - here);
}

/* Watches for the events that the state requires. */
void spokei_conn_watch(struct spokei_conn *conn);

/* Returns whether so much output waits for an unproven peer that nothing is read. */
bool spokei_conn_is_full_unproven(const struct spokei_conn *conn);

/* Returns whether so much output waits that nothing is read. `high`: the link's limit. */
static inline bool spokei_conn_is_full(const struct spokei_conn *conn, size_t high)
{
	if (SPOKEI_UNLIKELY(conn->unproven))
		return spokei_conn_is_full_unproven(conn);
	return spokei_conn_queues(conn, spokei_buffer_len(&conn->out.out), high);
}

/* Begins a pause after a reply: a peer that does not read its replies may not send more requests.
 * Calls do not count, because two sides that both stop reading until they are written would wait
 * for ever. */
void spokei_conn_pause(struct spokei_conn *conn);

/* Returns whether bytes after the request that is served have been read. */
static inline bool spokei_conn_has_next(const struct spokei_conn *conn)
{
	return spokei_buffer_len(&conn->held) > 0 ||
	       spokei_buffer_len(&conn->in.kept) > conn->in.given;
}

/* Returns whether reading is possible: there is no pause, or it is one for a request that is served
 * and nothing after it has been read. */
static inline bool spokei_conn_has_room(const struct spokei_conn *conn)
{
	if (SPOKEI_LIKELY(conn->paused == 0))
		return true;
	return conn->paused == SPOKEI_PAUSED_TURN && conn->serving_count > 0 &&
	       !spokei_conn_has_next(conn);
}

/* Counts `len` bytes that were queued: they are written when the turn ends, or before. */
static inline void spokei_conn_wrote(struct spokei_conn *conn, size_t len)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	spokei_count(engine, SPOKE_STAT_MESSAGES_WRITTEN);
	*conn->queued += len;
	spokei_run_settling(engine, &conn->settle);
}

/* Lends memory to the empty output buffer. */
void spokei_conn_lend(struct spokei_conn *conn);

/* spokei_conn_put() of a long body: written at once from where it lies, if nothing else is queued.
 */
SPOKE_MUST_USE int spokei_conn_put_long(struct spokei_conn *conn, struct spokei_message *message);

/* spokei_conn_put() of a message that is copied into the output buffer. */
SPOKE_MUST_USE static inline int spokei_conn_put_short(struct spokei_conn *conn,
						       const struct spokei_message *message)
{
	struct spokei_buffer *out = &conn->out.out;
	size_t before = spokei_buffer_len(out);
	int error;

	if (spokei_buffer_data(out) == NULL)
		spokei_conn_lend(conn);
	error = spokei_outlet_put(&conn->out, conn->wire, conn->in.reader.limits, message);
	if (error == 0)
		spokei_conn_wrote(conn, spokei_buffer_len(out) - before);
	return error;
}

/* Queues a message whose args or value have `body_len` bytes. Returns as spokei_outlet_put(). */
SPOKE_MUST_USE static inline int spokei_conn_put(struct spokei_conn *conn,
						 struct spokei_message *message, size_t body_len)
{
	if (SPOKEI_UNLIKELY(body_len >= SPOKEI_LENT_MIN))
		return spokei_conn_put_long(conn, message);
	return spokei_conn_put_short(conn, message);
}

/* Writes in the middle of a turn, when enough bytes are queued for the peer to start; or the output
 * of a read to a stream that is prompt. */
void spokei_conn_write_early(struct spokei_conn *conn);

/* The task at the end of a turn. */
void spokei_conn_settle(struct spokei_task *task);

/* Has an attempt take longer, if its owner now allows that. */
void spokei_conn_prolong(struct spokei_pending *pending, bool written, uint64_t now_ns);

/* The one completion of an attempt. */
void spokei_conn_finish_pending(struct spokei_pending *pending, int error,
				const struct spokei_message *reply);

/* Ends unsent requests, because the peer takes no more. */
void spokei_conn_fail_unsent(struct spokei_conn *conn, int error);

/* Ends all calls. */
void spokei_conn_fail_calls(struct spokei_conn *conn, int error);

/* --- answers.c */

/* Abandons requests that are being served: all, because the connection is closed; or those that
 * wait for a reply, because their caller is gone, while one-way requests go on. Calls users' code,
 * which may close the connection. */
void spokei_conn_abandon(struct spokei_conn *conn, bool all);

/* Abandons the request that is served, because its time is over, and answers with that error. Calls
 * users' code, which may close the connection. */
void spokei_conn_expire(struct spokei_conn *conn);

/* Abandons the request with this id, because its caller does not wait any more. Returns false if
 * none is served. Calls users' code, which may close the connection. */
bool spokei_conn_cancelled(struct spokei_conn *conn, uint64_t id);

/* Notes the instance that a provider names itself. Returns false if the event is another one. */
bool spokei_conn_note_name(struct spokei_conn *conn, struct spoke_span event);

/* --- read.c */

/* Reads once, unless reading is paused or has ended. Returns whether bytes were delivered. */
bool spokei_conn_read(struct spokei_conn *conn);

/* The task that delivers bytes read before a pause, until the next pause. */
void spokei_conn_resume(struct spokei_task *task);

/* The watch of an open connection. */
void spokei_conn_ready(struct spoke_watch *ready, unsigned io);

#endif
