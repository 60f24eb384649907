/* SPDX-License-Identifier: Apache-2.0 */
/* The replies that this side sends on a connection, at most one for each request. */
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/conn/parts.h"
#include "transport/conn/serving.h"

#include <stdio.h>

#define TEXT_MAX 160u         /* bytes of an explanation */
#define SERVING_ROOM_IDLE 64u /* entries that an idle connection may keep */

static int put(struct spokei_conn *conn, struct spokei_message *message)
{
	int error;

	message->kind = SPOKEI_REPLY;
	/* Without attachments the shorter form is used. */
	message->bare |= message->attachments.len == 0;
	error = spokei_conn_put(conn, message, message->value.len);
	if (error == 0 && SPOKEI_UNLIKELY(spokei_conn_is_full(conn, conn->link->limits.out_high)))
		spokei_conn_pause(conn);
	return error;
}

/* Sends an error in place of a reply that cannot be sent. */
static SPOKEI_NOINLINE int explain_reply(struct spokei_conn *conn,
					 const struct spokei_message *message, int error)
{
	struct spokei_message instead = {
		.id = message->id,
		.codec = message->codec,
		.error = SPOKE_ETOOLARGE,
		.last = message->last,
	};
	const char *why = spoke_strerror(error);
	char text[TEXT_MAX];

	if (error == SPOKE_ETOOLARGE) {
		(void)snprintf(text, sizeof(text),
			       "the reply of %zu bytes does not fit a frame %s; the provider's "
			       "frame.max allows %zu",
			       message->value.len,
			       conn->wire->in_order ? "as text, or its attachments no head"
						    : "with its head",
			       conn->link->limits.wire.frame_max);
		why = text;
	}
	spokei_count(spokei_conn_engine(conn), SPOKE_STAT_REPLIES_TOO_LARGE);
	instead.error_text = spokei_span(why, strlen(why));
	return put(conn, &instead);
}

/* Sends the reply, or an error that explains why it cannot be sent; closes a connection that takes
 * nothing. */
static void answer(struct spokei_conn *conn, struct spokei_message *message)
{
	int error;

	if (conn->state == SPOKEI_CONN_CLOSED || spokei_conn_unwritable(conn))
		return;
	error = put(conn, message);
	if (SPOKEI_LIKELY(error == 0))
		return;
	if (error != SPOKE_ENOMEM && error != SPOKE_ELIMIT)
		error = explain_reply(conn, message, error);
	if (error == SPOKE_ELIMIT)
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_SLOW, SPOKE_ESLOW);
	else if (error)
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
}

/* Returns whether this answer ends its connection. On a wire without ids it is the drain notice, so
 * no request behind it has crossed that. */
static bool is_last(struct spokei_conn *conn)
{
	conn->readonly |= conn->since[SPOKEI_LIMIT_NOTICE] && conn->wire->in_order;
	return conn->ending;
}

void spokei_conn_reply(struct spokei_conn *conn, const struct spokei_message *request,
		       struct spokei_message *message)
{
	message->id = request->id;
	message->codec = request->codec;
	message->bare = request->bare;
	/* A question may come before its request. */
	if (SPOKEI_UNLIKELY(conn->ending) && request->kind == SPOKEI_REQUEST)
		message->last = is_last(conn);
	if (request->two_way)
		answer(conn, message);
}

void spokei_conn_note_refused(struct spokei_conn *conn, const struct spokei_message *request,
			      int error)
{
	const struct spokei_link *link = conn->link;

	if (link->refused)
		link->refused(link->serve_arg, conn, request, error);
}

void spokei_conn_refuse(struct spokei_conn *conn, const struct spokei_message *request, int error,
			const char *text)
{
	struct spokei_message message = {
		.error = error,
		.error_text = spokei_span(text, strlen(text)),
	};

	spokei_conn_note_refused(conn, request, error);
	spokei_conn_reply(conn, request, &message);
}

static void forget(struct spokei_serving *serving)
{
	struct spokei_conn *conn = serving->conn;

	SPOKE_ASSERT(conn != NULL);
	if (serving->two_way)
		(void)spokei_map_remove(&conn->serving, &serving->id, sizeof(serving->id));
	spokei_list_remove(&serving->node);
	if (SPOKEI_UNLIKELY(serving->cancelled))
		conn->link->orphan_count--;
	else
		conn->link->serving_count--;
	conn->serving_count--;
	serving->conn = NULL;
	/* A connection that was busy once may be idle for ever. */
	if (conn->serving.count == 0 && conn->serving.room > SERVING_ROOM_IDLE)
		spokei_map_fini(&conn->serving);
}

/* Later requests wait for the answer, also those that were about to be delivered. */
static SPOKEI_NOINLINE void begin_turn(struct spokei_conn *conn, int64_t timeout_ms)
{
	conn->paused |= SPOKEI_PAUSED_TURN;
	spokei_task_drop(&conn->resume);
	conn->answer_ns = spokei_engine_deadline(spokei_conn_engine(conn), timeout_ms);
	spokei_conn_arm(conn);
}

int spokei_conn_serve(struct spokei_conn *conn, struct spokei_serving *serving,
		      const struct spokei_message *message)
{
	int error;

	if (conn->state == SPOKEI_CONN_CLOSED)
		return SPOKE_ELOST;
	serving->id = message->id;
	serving->codec = message->codec;
	serving->bare = message->bare;
	serving->two_way = message->two_way;
	serving->cancelled = false;
	if (serving->two_way) {
		error = spokei_map_add(&conn->serving, &serving->id, sizeof(serving->id), serving);
		if (error)
			return error;
		if (conn->serving.count == 1 || serving->id > conn->serving_top)
			conn->serving_top = serving->id;
	}
	serving->conn = conn;
	spokei_list_append(&conn->servings, &serving->node);
	conn->link->serving_count++;
	conn->serving_count++;
	if (SPOKEI_UNLIKELY(conn->wire->in_order))
		begin_turn(conn, message->timeout_ms);
	return 0;
}

/* Makes the message the reply to a registered request. */
static void address(struct spokei_message *message, const struct spokei_serving *serving)
{
	message->id = serving->id;
	message->codec = serving->codec;
	message->bare = serving->bare;
}

/* Answers a request whose successors wait for that, and goes on with them, unless too many bytes
 * are queued. */
static SPOKEI_NOINLINE void answer_turn(struct spokei_conn *conn, struct spokei_message *message)
{
	message->last = is_last(conn);
	answer(conn, message);
	if (conn->state == SPOKEI_CONN_CLOSED || conn->paused & SPOKEI_PAUSED_FULL)
		return;
	if (spokei_conn_has_next(conn) || spokei_stream_pending(&conn->stream) > 0)
		spokei_run_soon(spokei_conn_engine(conn), &conn->resume);
	else
		spokei_conn_unpause(conn);
}

void spokei_conn_answer(struct spokei_serving *serving, struct spokei_message *message)
{
	struct spokei_conn *conn = serving->conn;
	bool two_way = serving->two_way;

	if (conn == NULL) {
		spokei_conn_leave_orphans(serving);
		return;
	}
	address(message, serving);
	forget(serving);
	if (SPOKEI_UNLIKELY(conn->wire->in_order))
		answer_turn(conn, message);
	else if (two_way)
		answer(conn, message);
	if (conn->ending)
		spokei_run_settling(spokei_conn_engine(conn), &conn->settle);
}

static struct spokei_serving *first_serving(struct spoke_list *list)
{
	return spoke_container_of(spokei_list_first(list), struct spokei_serving, node);
}

static void abandon(struct spokei_conn *conn, struct spokei_serving *serving)
{
	forget(serving);
	spokei_conn_join_orphans(serving, conn->link);
	if (serving->abandoned)
		serving->abandoned(serving);
}

/* The request goes on without a reply. It counts towards the limits of its connection, and as an
 * orphan. */
bool spokei_conn_cancelled(struct spokei_conn *conn, uint64_t id)
{
	struct spokei_serving *serving = spokei_map_remove(&conn->serving, &id, sizeof(id));

	if (serving == NULL)
		return false;
	serving->two_way = false;
	serving->cancelled = true;
	conn->link->serving_count--;
	conn->link->orphan_count++;
	if (serving->abandoned)
		serving->abandoned(serving);
	return true;
}

void spokei_conn_expire(struct spokei_conn *conn)
{
	static const char why[] = "the deadline passed before the provider answered";
	struct spokei_message message = {
		.error = SPOKE_ETIMEOUT,
		.error_text = spokei_span(why, sizeof(why) - 1),
	};
	struct spokei_serving *serving = first_serving(&conn->servings);

	address(&message, serving);
	abandon(conn, serving);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	answer_turn(conn, &message);
	if (conn->ending)
		spokei_run_settling(spokei_conn_engine(conn), &conn->settle);
}

void spokei_conn_abandon(struct spokei_conn *conn, bool all)
{
	struct spoke_list servings;

	spokei_list_init(&servings);
	spokei_list_move(&conn->servings, &servings);
	while (!spokei_list_empty(&servings)) {
		struct spokei_serving *serving = first_serving(&servings);

		if (serving->two_way || all) {
			abandon(conn, serving);
		} else {
			spokei_list_unlink(&serving->node);
			spokei_list_append(&conn->servings, &serving->node);
		}
	}
}
