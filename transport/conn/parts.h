/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of a connection have of each other: conn_life.c how it begins and ends, conn_io.c
 * reading and writing, conn_judge.c its times, conn_idle.c silence, conn_deliver.c what comes in,
 * conn_calls.c its own calls, conn_answers.c the peer's, conn_link.c all connections of one owner.
 */
#ifndef SPOKEI_TRANSPORT_CONN_PARTS_H
#define SPOKEI_TRANSPORT_CONN_PARTS_H

#include "transport/conn/conn.h"

/* What a call says, kept until the connection takes it: what is in the outlet cannot be taken back.
 */
struct spokei_unsent {
	struct spokei_message message; /* points into `bytes` for what the caller lent */
	size_t size;                   /* of this, with its bytes */
	unsigned char bytes[];
};

static inline struct spoke_engine *spokei_conn_engine(const struct spokei_conn *conn)
{
	return conn->link->engine;
}

/* --- conn_life.c */

/* Every change of the state; those that are not legal are bugs. */
void spokei_conn_move(struct spokei_conn *conn, enum spokei_conn_state state);

/* The descriptor is writable: the connection stands, or has failed. */
void spokei_conn_finish_connect(struct spokei_conn *conn);

/* The wire is known: of the peer's first byte, or before. */
void spokei_conn_speak(struct spokei_conn *conn, const struct spokei_wire *wire);

/* Has the system watch over what it can: once the stream stands, and again when the wire is known.
 */
void spokei_conn_guard(struct spokei_conn *conn);

/* --- conn_judge.c: sees to it that somebody looks when the next of its times has run out. */
void spokei_conn_arm(struct spokei_conn *conn);

/* --- conn_io.c */

/* Watches for what the state calls for. */
void spokei_conn_watch(struct spokei_conn *conn);

/* What its watch and its task at the end of a turn run. */
void spokei_conn_ready(struct spoke_watch *ready, unsigned io);
void spokei_conn_settle(struct spokei_task *task);

/* What was read before a pause is looked at after it, until the next one. */
void spokei_conn_resume(struct spokei_task *task);

/* So many bytes were put: they are written when the turn ends, or before. */
static inline void spokei_conn_wrote(struct spokei_conn *conn, size_t len)
{
	struct spokei_link *link = conn->link;

	spokei_count(link->engine, SPOKE_STAT_MESSAGES_WRITTEN);
	link->queued += len;
	spokei_engine_last(link->engine, &conn->settle);
}

/* spokei_conn_put() of what is long: it is written at once, from where it lies, if nothing else
 * waits. */
SPOKE_MUST_USE int spokei_conn_put_long(struct spokei_conn *conn, struct spokei_message *message);

/* ... of what is not, or waits as if it were not. */
SPOKE_MUST_USE static inline int spokei_conn_put_short(struct spokei_conn *conn,
						       const struct spokei_message *message)
{
	struct spokei_buffer *out = &conn->out.out;
	size_t before = spokei_buffer_len(out);
	int error;

	if (spokei_buffer_data(out) == NULL)
		spokei_link_lend(conn->link, out);
	error = spokei_outlet_put(&conn->out, conn->wire, &conn->link->limits.wire, message);
	if (error == 0)
		spokei_conn_wrote(conn, spokei_buffer_len(out) - before);
	return error;
}

/* Puts a message, with so many bytes of args or a value, behind those that wait. Returns as
 * spokei_outlet_put(). */
SPOKE_MUST_USE static inline int spokei_conn_put(struct spokei_conn *conn,
						 struct spokei_message *message, size_t body_len)
{
	if (SPOKEI_UNLIKELY(body_len >= SPOKEI_LENT_MIN))
		return spokei_conn_put_long(conn, message);
	return spokei_conn_put_short(conn, message);
}

/* What was put is an answer: a peer that does not take them may not ask for more. Calls do not
 * count, for two sides that both wait with reading until they are written wait for ever. */
void spokei_conn_answered(struct spokei_conn *conn);

/* Reads what has come, if it is read at all now. */
void spokei_conn_read(struct spokei_conn *conn);

/* --- conn_idle.c */

/* Sends a heartbeat. Returns 0, or what the outlet says. */
SPOKE_MUST_USE int spokei_conn_probe(struct spokei_conn *conn);

/* Bytes have come. The owner may close the connection. */
void spokei_conn_heard(struct spokei_conn *conn);

/* When its silence is to be judged next; UINT64_MAX: never. */
uint64_t spokei_conn_idle_due(const struct spokei_conn *conn);

/* Judges its silence. May close it. */
void spokei_conn_judge_silence(struct spokei_conn *conn);

/* A heartbeat, or the answer to one, came in: the connection was silent, and gives back what it
 * keeps for the next call; so does its owner, if no connection has called or answered since the
 * heartbeat before. */
void spokei_conn_slim(struct spokei_conn *conn);

/* The machine slept meanwhile. */
void spokei_conn_woke(struct spokei_conn *conn);

/* Says READONLY, once, where the wire can. */
void spokei_conn_announce(struct spokei_conn *conn);

/* --- conn_deliver.c: one message of the stream, or one of which only the head is good, because of
 * `error`. */
void spokei_conn_deliver(struct spokei_conn *conn, const struct spokei_message *message, int error);

/* --- conn_calls.c */

/* Has the stream taken the first byte of it? */
static inline bool spokei_conn_has_written(const struct spokei_conn *conn,
					   const struct spokei_pending *pending)
{
	return pending->written_ns != 0 || spokei_outlet_passed(&conn->out, pending->mark);
}

/* Nothing waits to be written: calls that waited for that are put, as many as one write is likely
 * to take. Their ends may close the connection. */
void spokei_conn_send_parcels(struct spokei_conn *conn);

/* The turn ends, and what could be was written: notes that, and arms the timers of new calls. */
void spokei_conn_settle_calls(struct spokei_conn *conn);

/* The one completion of an attempt. */
void spokei_conn_finish_pending(struct spokei_pending *pending, int error,
				const struct spokei_message *reply);

/* The peer takes no more: calls that are not frames yet end. */
void spokei_conn_fail_parcels(struct spokei_conn *conn, int error);

/* Ends all. */
void spokei_conn_fail_calls(struct spokei_conn *conn, int error);

/* --- conn_answers.c */

/* Forgets the orphans: their answers come when the link is gone. */
void spokei_link_disown(struct spokei_link *link);

/* Nobody is there any more for the answers. */
void spokei_conn_abandon(struct spokei_conn *conn);

#endif
