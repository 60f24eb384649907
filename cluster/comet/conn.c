/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection: it opens, writes, reads, is timed and ends. It has no queue of output, but a cursor
 * into the rings, and at most the rest of one message or of other bytes; while such a rest waits,
 * nothing else is written. Input of a WebSocket is read into the engine's scratch; a connection
 * keeps bytes only while a frame or message is incomplete.
 */
#include "cluster/comet/comet.h"
#include "transport/http/response.h"
#include "transport/http/websocket.h"
#include "transport/stream/stream.h"

#include <spoke/json.h>

#include <errno.h>
#include <stdio.h>

#define NS_PER_MS UINT64_C(1000000)
#define ANSWER_MESSAGES 64u    /* in one answer to a long poll */
#define ANSWER_BYTES 131072u   /* ... and about their bytes */
#define ANSWER_HEAD 768u       /* bytes of a head, at most */
#define CLOSED_MAX 1024u       /* bytes of the data of the event "closed", with the NUL */
#define CLOSE_HEAD 4u          /* bytes of a close frame before its reason */
#define LONG_RETRY_MS 3600000u /* for an EventSource that shall not come again */
#define KEEP_FIRST 64u
#define STATE sizeof(struct spokei_websocket)
#define NO_BINARY 1003u
#define NO_MEMORY 1011u

static struct spoke_comet *comet_of(const struct spokei_comet_conn *conn)
{
	return conn->user->comet;
}

static enum spoke_comet_figure figure_of(const struct spokei_comet_conn *conn)
{
	return SPOKE_COMET_FIGURE_EVENTS + (conn->kind - SPOKE_COMET_EVENTS);
}

/* --- memory for a while */

/* Returns the block for the things that a connection needs for a while; NULL: no memory. */
static struct spokei_comet_more *need(struct spokei_comet_conn *conn)
{
	if (conn->more == NULL) {
		conn->more = spokei_comet_take(comet_of(conn), sizeof(*conn->more));
		if (conn->more)
			*conn->more = (struct spokei_comet_more){ .out = NULL };
	}
	return conn->more;
}

/* Frees that block, if nothing is in it. */
static void less(struct spokei_comet_conn *conn)
{
	if (conn->more == NULL || conn->more->out || conn->more->in)
		return;
	spokei_comet_give(comet_of(conn), conn->more, sizeof(*conn->more));
	conn->more = NULL;
}

static void drop_out(struct spokei_comet_conn *conn)
{
	struct spoke_comet *comet = comet_of(conn);
	struct spokei_comet_more *more = conn->more;

	if (more->message)
		spokei_comet_drop(comet, more->message);
	else
		spokei_comet_give(comet, more->out, more->out_len);
	more->message = NULL;
	more->out = NULL;
	comet->figures[SPOKE_COMET_FIGURE_BEHIND]--;
}

static void drop_more(struct spokei_comet_conn *conn)
{
	struct spoke_comet *comet = comet_of(conn);
	struct spokei_comet_more *more = conn->more;

	if (more == NULL)
		return;
	if (more->out)
		drop_out(conn);
	spokei_comet_give(comet, more->in, more->in_room);
	spokei_comet_give(comet, more, sizeof(*more));
	conn->more = NULL;
}

/* --- when its timer looks */

/* Returns when the timer has to look next. */
static uint32_t next_ms(const struct spokei_comet_conn *conn)
{
	const struct spoke_comet_options *with = &comet_of(conn)->with;
	const uint32_t slow_ms = spokei_comet_ms_of(with->slow_ns);
	uint64_t quiet_ns = with->keepalive_ns;
	uint32_t ms;

	if (spokei_comet_behind(conn))
		quiet_ns = with->slow_ns;
	else if (conn->state == SPOKEI_COMET_ENDING || conn->kind == SPOKE_COMET_POLL)
		return conn->ends_ms;
	ms = conn->moved_ms + spokei_comet_ms_of(quiet_ns);
	if (spokei_comet_partial(conn) &&
	    spokei_comet_until(conn->more->begun_ms + slow_ms, ms) < 0)
		ms = conn->more->begun_ms + slow_ms;
	return spokei_comet_until(ms, conn->ends_ms) < 0 ? ms : conn->ends_ms;
}

static uint64_t due_ns(const struct spokei_comet_conn *conn)
{
	const struct spoke_comet *comet = comet_of(conn);
	int32_t in_ms = spokei_comet_until(next_ms(conn), spokei_comet_ms(comet));

	return comet->engine->begin_ns + (in_ms > 0 ? (uint64_t)in_ms * NS_PER_MS : 0);
}

/* A timer that is armed already needs no room in the wheel. */
void spokei_comet_arm(struct spokei_comet_conn *conn)
{
	int status = spoke_wheel_reschedule(comet_of(conn)->engine->wheel, &conn->timer,
					    due_ns(conn));

	if (status != SPOKE_WHEEL_OK)
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_CLOSED_MEMORY);
}

/* --- its user, and its end */

/* Puts a connection on its user. */
static void join_user(struct spokei_comet_conn *conn, struct spokei_comet_user *user)
{
	struct spoke_comet *comet = user->comet;

	spokei_comet_here(user);
	conn->next = user->at.here.first;
	user->at.here.first = conn;
	if (user->count++ == 0)
		spokei_comet_count(comet, SPOKE_COMET_FIGURE_ONLINE);
	user->flags &= (uint8_t)~SPOKEI_COMET_POLLED;
	comet->figures[figure_of(conn)]++;
	spokei_comet_count(comet, SPOKE_COMET_FIGURE_OPENED);
	spokei_comet_dirty(user);
}

/* Takes a connection off its user. */
static void leave_user(struct spokei_comet_conn *conn)
{
	struct spoke_comet *comet = comet_of(conn);
	struct spokei_comet_user *user = conn->user;
	struct spokei_comet_conn **at = &user->at.here.first;

	if (user == comet->nobody)
		return;
	while (*at != conn)
		at = &(*at)->next;
	*at = conn->next;
	conn->next = NULL;
	conn->user = comet->nobody;
	if (--user->count == 0)
		comet->figures[SPOKE_COMET_FIGURE_ONLINE]--;
	if (conn->kind != SPOKE_COMET_POLL)
		user->flags &= (uint8_t)~SPOKEI_COMET_POLLED;
	comet->figures[figure_of(conn)]--;
	spokei_comet_dirty(user);
}

void spokei_comet_close(struct spokei_comet_conn *conn, enum spoke_comet_figure why)
{
	struct spoke_comet *comet = comet_of(conn);
	struct spoke_engine *engine = comet->engine;
	const struct spoke_env *env = engine->env;

	if (conn->state == SPOKEI_COMET_FREE)
		return;
	if (why < SPOKE_COMET_FIGURE_COUNT)
		spokei_comet_count(comet, why);
	leave_user(conn);
	drop_more(conn);
	(void)spoke_wheel_cancel(engine->wheel, &conn->timer);
	env->loop->watch(engine->loop, &conn->watch, 0);
	env->net->close(env->ctx, conn->watch.fd);
	spokei_quota_leave(&comet->quota, conn->quota_peer);
	spokei_count(engine, SPOKE_STAT_CLOSED);
	conn->state = SPOKEI_COMET_FREE;
	conn->next = comet->dead_list;
	comet->dead_list = conn;
	spokei_run_freeing(engine, &comet->dead);
}

/* --- bytes */

/* Returns the bytes written, maybe 0; -1: the connection is lost, and closed. */
static ssize_t put(struct spokei_comet_conn *conn, const struct iovec *parts, int count)
{
	struct spoke_comet *comet = comet_of(conn);
	const struct spoke_env *env = comet->engine->env;
	ssize_t wrote = env->net->write(env->ctx, conn->watch.fd, parts, count);

	comet->writes++;
	if (wrote == -EAGAIN || wrote == -EINTR)
		return 0;
	if (wrote < 0) {
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_COUNT);
		return -1;
	}
	if (wrote > 0)
		conn->moved_ms = spokei_comet_ms(comet);
	return wrote;
}

static void watch(struct spokei_comet_conn *conn, unsigned io)
{
	struct spoke_engine *engine = comet_of(conn)->engine;

	engine->env->loop->watch(engine->loop, &conn->watch, io);
}

/* Keeps the rest of `out` until it can be written. `message` owns it; NULL: the connection does.
 * Its time begins now, however long ago the last bytes were written. */
static bool keep_output(struct spokei_comet_conn *conn, struct spokei_comet_message *message,
			unsigned char *out, uint32_t len, uint32_t at)
{
	struct spokei_comet_more *more = need(conn);

	if (more == NULL) {
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_CLOSED_MEMORY);
		return false;
	}
	more->out = out;
	more->out_len = len;
	more->out_at = at;
	more->message = message;
	if (message)
		message->refs++;
	spokei_comet_count(comet_of(conn), SPOKE_COMET_FIGURE_BEHIND);
	conn->moved_ms = spokei_comet_ms(comet_of(conn));
	watch(conn, SPOKE_IO_READ | SPOKE_IO_WRITE);
	spokei_comet_arm(conn);
	return true;
}

void spokei_comet_write(struct spokei_comet_conn *conn, const void *bytes, size_t len)
{
	struct spoke_comet *comet = comet_of(conn);
	const struct iovec part = spokei_stream_part(bytes, len);
	ssize_t wrote;
	unsigned char *rest;

	SPOKE_ASSERT(!spokei_comet_behind(conn));
	wrote = put(conn, &part, 1);
	if (wrote < 0 || (size_t)wrote == len)
		return;
	len -= (size_t)wrote;
	rest = spokei_comet_take(comet, len);
	if (rest == NULL) {
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_CLOSED_MEMORY);
		return;
	}
	memcpy(rest, (const char *)bytes + wrote, len);
	if (!keep_output(conn, NULL, rest, (uint32_t)len, 0))
		spokei_comet_give(comet, rest, len);
}

static enum spokei_comet_form form_of(const struct spokei_comet_conn *conn)
{
	return conn->kind == SPOKE_COMET_EVENTS ? SPOKEI_COMET_AS_EVENT : SPOKEI_COMET_AS_FRAME;
}

/* --- messages */

/* Messages that are due to a connection, in the order of their numbers. */
struct due {
	struct spokei_comet_message *messages[ANSWER_MESSAGES];
	uint32_t count;
	uint64_t upto; /* the cursor, once they are written */
};

/* Merges the user's ring and that of all. Skips messages whose time is over. */
static void gather_due(const struct spokei_comet_conn *conn, uint32_t max, struct due *due)
{
	static const struct spokei_comet_ring none;
	const struct spoke_comet *comet = comet_of(conn);
	const struct spokei_comet_ring *own = conn->user->ring ? conn->user->ring : &none;
	const struct spokei_comet_ring *all = &comet->all;
	uint32_t i = spokei_comet_ring_after(own, conn->cursor);
	uint32_t j = spokei_comet_ring_after(all, conn->cursor);

	due->count = 0;
	due->upto = conn->cursor;
	while (due->count < max && (i < own->count || j < all->count)) {
		struct spokei_comet_message *a = i < own->count ? spokei_comet_ring_at(own, i)
								: NULL;
		struct spokei_comet_message *b = j < all->count ? spokei_comet_ring_at(all, j)
								: NULL;

		if (b == NULL || (a && a->number < b->number)) {
			i++;
		} else {
			a = b;
			j++;
		}
		due->upto = a->number;
		if (a->ends_ns > comet->engine->begin_ns)
			due->messages[due->count++] = a;
	}
}

/* Has the connection missed messages? Then it follows from here on. */
static bool has_lost(struct spokei_comet_conn *conn)
{
	struct spoke_comet *comet = comet_of(conn);

	if (!conn->lost && conn->cursor >= conn->user->floor && conn->cursor >= comet->all_floor)
		return false;
	conn->lost = false;
	conn->cursor = comet->number;
	spokei_comet_count(comet, SPOKE_COMET_FIGURE_LOST);
	return true;
}

/* Writes some messages. The one that was cut, or is the first that was not taken, is kept. */
static void write_due(struct spokei_comet_conn *conn, const struct due *due)
{
	struct spoke_comet *comet = comet_of(conn);
	const enum spokei_comet_form form = form_of(conn);
	struct iovec parts[SPOKEI_COMET_GATHER];
	ssize_t wrote;

	for (uint32_t i = 0; i < due->count; i++) {
		struct spokei_comet_message *message = due->messages[i];

		if (!spokei_comet_encode(comet, message, form)) {
			spokei_comet_close(conn, SPOKE_COMET_FIGURE_CLOSED_MEMORY);
			return;
		}
		parts[i] = (struct iovec){ message->form[form], message->form_len[form] };
	}
	wrote = put(conn, parts, (int)due->count);
	if (wrote < 0)
		return;
	for (uint32_t i = 0; i < due->count; i++) {
		struct spokei_comet_message *message = due->messages[i];
		const uint32_t len = message->form_len[form];

		conn->cursor = message->number;
		spokei_comet_count(comet, SPOKE_COMET_FIGURE_WRITTEN);
		if ((size_t)wrote < len) {
			(void)keep_output(conn, message, message->form[form], len, (uint32_t)wrote);
			return;
		}
		wrote -= (ssize_t)len;
	}
	conn->cursor = due->upto;
}

static void say_lost(struct spokei_comet_conn *conn)
{
	char id[SPOKE_COMET_ID];
	char out[SPOKEI_COMET_SAY];

	(void)spokei_comet_print_id(comet_of(conn), conn->cursor, id);
	spokei_comet_write(conn, out, spokei_comet_say(form_of(conn), "lost", id, "{}", 0, out));
}

void spokei_comet_pump(struct spokei_comet_conn *conn)
{
	struct due due;

	while (conn->state == SPOKEI_COMET_OPEN && !spokei_comet_behind(conn)) {
		if (conn->kind == SPOKE_COMET_POLL) {
			gather_due(conn, 1, &due);
			if (due.count > 0 || conn->lost || conn->cursor < conn->user->floor ||
			    conn->cursor < comet_of(conn)->all_floor)
				spokei_comet_answer(conn, 0);
			else
				conn->cursor = due.upto;
			return;
		}
		if (has_lost(conn)) {
			say_lost(conn);
			continue;
		}
		gather_due(conn, SPOKEI_COMET_GATHER, &due);
		if (due.count == 0) {
			conn->cursor = due.upto;
			return;
		}
		write_due(conn, &due);
	}
}

/* --- ends */

/* All is written: the client closes first, because closing a socket with unread input would
 * destroy the last bytes. */
static void finish(struct spokei_comet_conn *conn)
{
	const struct spoke_comet *comet = comet_of(conn);
	const struct spoke_env *env = comet->engine->env;

	conn->ends_ms = spokei_comet_ms(comet) + SPOKEI_COMET_LINGER_MS;
	spokei_comet_arm(conn);
	if (conn->state == SPOKEI_COMET_ENDING && env->net->shut(env->ctx, conn->watch.fd))
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_COUNT);
}

void spokei_comet_end(struct spokei_comet_conn *conn, const void *bytes, size_t len)
{
	struct spoke_comet *comet = comet_of(conn);

	SPOKE_ASSERT(conn->state == SPOKEI_COMET_OPEN);
	if (spokei_comet_behind(conn)) {
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_COUNT);
		return;
	}
	leave_user(conn);
	conn->state = SPOKEI_COMET_ENDING;
	conn->moved_ms = spokei_comet_ms(comet);
	/* A client that takes the rest, but slowly, does not do so for ever. */
	conn->ends_ms = conn->moved_ms + spokei_comet_ms_of(comet->draining ? comet->with.drain_ns
									    : comet->with.life_ns);
	spokei_comet_write(conn, bytes, len);
	if (conn->state != SPOKEI_COMET_ENDING)
		return;
	if (spokei_comet_behind(conn))
		spokei_comet_arm(conn);
	else
		finish(conn);
}

/* --- answers to long polls */

/* Writes the head of an answer to a long poll to `out`; returns its length. */
static size_t print_head(const struct spokei_comet_conn *conn, size_t body_len, char *out)
{
	char cors[SPOKEI_COMET_CORS];

	return (size_t)snprintf(out, ANSWER_HEAD,
				"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
				"Content-Length: %zu\r\nCache-Control: no-store\r\n"
				"X-Content-Type-Options: nosniff\r\n%sConnection: close\r\n\r\n",
				body_len, spokei_comet_cors(comet_of(conn), conn->origin, cors));
}

/* An answer without its messages. */
struct answer {
	char id[SPOKE_COMET_ID]; /* for the next poll */
	uint32_t retry_ms;       /* the pause after a poll that fails */
	uint32_t again_ms;       /* the pause before the next poll; only without messages */
	const char *closed;      /* data of the event "closed"; NULL: the gateway does not end it */
	bool lost;
};

/* Writes the body of an answer to `out`; returns its length. NULL: only counts it. */
static size_t print_answer(const struct due *due, const struct answer *answer, char *out)
{
	const bool lost = answer->lost;
	struct spokei_comet_sink all = { (unsigned char *)out, 0 };
	char text[ANSWER_HEAD];
	int len = snprintf(text, sizeof(text), "{\"last\":\"%s\",\"retry\":%u,", answer->id,
			   answer->retry_ms);

	spokei_comet_put(&all, text, (size_t)len);
	if (due->count == 0 && !lost && !answer->closed) {
		len = snprintf(text, sizeof(text), "\"again\":%u}", answer->again_ms);
		spokei_comet_put(&all, text, (size_t)len);
		return all.len;
	}
	len = snprintf(text, sizeof(text), "\"messages\":[%s%s%s", lost ? "{\"id\":\"" : "",
		       lost ? answer->id : "",
		       lost ? "\",\"event\":\"lost\",\"data\":\"{}\"}" : "");
	spokei_comet_put(&all, text, (size_t)len);
	for (uint32_t i = 0; i < due->count; i++) {
		const struct spokei_comet_message *message = due->messages[i];

		spokei_comet_put(&all, ",", i > 0 || lost);
		spokei_comet_put(&all, message->form[SPOKEI_COMET_AS_FRAME] + message->head_len,
				 message->form_len[SPOKEI_COMET_AS_FRAME] - message->head_len);
	}
	if (answer->closed) {
		static const char event[] = ",{\"id\":\"\",\"event\":\"closed\",\"data\":";
		const size_t comma = due->count > 0 || lost ? 0 : 1;

		spokei_comet_put(&all, event + comma, sizeof(event) - 1 - comma);
		spoke_json_print_text(answer->closed, strlen(answer->closed), spokei_comet_put,
				      &all);
		spokei_comet_put(&all, "}", 1);
	}
	spokei_comet_put(&all, "]}", 2);
	return all.len;
}

/* Encodes messages up to the bytes of one answer; the others wait for the next poll. */
static bool encode_due(struct spoke_comet *comet, struct due *due)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < due->count; i++) {
		if (!spokei_comet_encode(comet, due->messages[i], SPOKEI_COMET_AS_FRAME))
			return false;
		bytes += due->messages[i]->form_len[SPOKEI_COMET_AS_FRAME];
		due->upto = due->messages[i]->number;
		if (bytes >= ANSWER_BYTES)
			due->count = i + 1;
	}
	return true;
}

void spokei_comet_answer(struct spokei_comet_conn *conn, uint32_t again_ms)
{
	struct spoke_comet *comet = comet_of(conn);
	struct due due = { .count = 0 };
	struct answer answer = {
		.retry_ms = spokei_comet_retry(comet),
		.again_ms = again_ms,
		.lost = has_lost(conn),
	};
	char *out = NULL;
	size_t head_len;
	size_t body_len = 0;

	if (answer.lost)
		due.upto = conn->cursor;
	else
		gather_due(conn, ANSWER_MESSAGES, &due);
	if (encode_due(comet, &due)) {
		(void)spokei_comet_print_id(comet, due.upto, answer.id);
		body_len = print_answer(&due, &answer, NULL);
		out = spokei_comet_take(comet, ANSWER_HEAD + body_len);
	}
	if (out == NULL) {
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_CLOSED_MEMORY);
		return;
	}
	comet->figures[SPOKE_COMET_FIGURE_WRITTEN] += due.count;
	conn->user->flags |= SPOKEI_COMET_POLLED;
	head_len = print_head(conn, body_len, out);
	(void)print_answer(&due, &answer, out + head_len);
	spokei_comet_end(conn, out, head_len + body_len);
	spokei_comet_give(comet, out, ANSWER_HEAD + body_len);
}

/* --- last words */

/* Writes the data of the event "closed", with a NUL. */
static void print_closed(unsigned code, const void *reason, size_t len, char data[CLOSED_MAX])
{
	struct spokei_comet_sink text = { .out = (unsigned char *)data };

	text.len = (size_t)snprintf(data, CLOSED_MAX, "{\"code\":%u,\"reason\":", code);
	spoke_json_print_text(reason, len, spokei_comet_put, &text);
	spokei_comet_put(&text, "}", sizeof("}"));
}

/* Ends a long poll with the event "closed". */
static void answer_closed(struct spokei_comet_conn *conn, const char *closed)
{
	const struct due none = { .count = 0 };
	struct answer answer = {
		.retry_ms = spokei_comet_retry(comet_of(conn)),
		.closed = closed,
		.lost = conn->lost,
	};
	char out[ANSWER_HEAD + 2 * CLOSED_MAX];
	size_t len;

	(void)spokei_comet_print_id(comet_of(conn), conn->cursor, answer.id);
	len = print_head(conn, print_answer(&none, &answer, NULL), out);
	len += print_answer(&none, &answer, out + len);
	SPOKE_ASSERT(len <= sizeof(out));
	spokei_comet_end(conn, out, len);
}

/* A page gets the same reason in each of the three ways: as much of it as a close frame holds. */
void spokei_comet_end_with(struct spokei_comet_conn *conn, unsigned code, const char *reason)
{
	unsigned char frame[2 + SPOKEI_WEBSOCKET_CONTROL_MAX];
	const size_t frame_len = spokei_websocket_close(code, reason, frame);
	char closed[CLOSED_MAX];
	char out[SPOKEI_COMET_SAY];

	if (conn->kind == SPOKE_COMET_SOCKET) {
		spokei_comet_end(conn, frame, frame_len);
		return;
	}
	print_closed(code, frame + CLOSE_HEAD, frame_len - CLOSE_HEAD, closed);
	if (conn->kind == SPOKE_COMET_EVENTS) {
		spokei_comet_end(conn, out,
				 spokei_comet_say(SPOKEI_COMET_AS_EVENT, "closed", NULL, closed,
						  LONG_RETRY_MS, out));
	} else {
		answer_closed(conn, closed);
	}
}

/* Tells an open connection to connect again after `retry_ms`. */
static void end_again(struct spokei_comet_conn *conn, unsigned code, uint32_t retry_ms)
{
	unsigned char frame[2 + SPOKEI_WEBSOCKET_CONTROL_MAX];
	char data[64];
	char out[SPOKEI_COMET_SAY];

	if (conn->kind == SPOKE_COMET_POLL) {
		spokei_comet_answer(conn, retry_ms);
		return;
	}
	(void)snprintf(data, sizeof(data),
		       conn->kind == SPOKE_COMET_SOCKET ? "retry=%u" : "{\"retry\":%u}", retry_ms);
	if (conn->kind == SPOKE_COMET_SOCKET)
		spokei_comet_end(conn, frame, spokei_websocket_close(code, data, frame));
	else
		spokei_comet_end(conn, out,
				 spokei_comet_say(SPOKEI_COMET_AS_EVENT, "reconnect", NULL, data,
						  retry_ms, out));
}

/* --- the rest of its output */

/* The descriptor can be written. */
static void become_writable(struct spokei_comet_conn *conn)
{
	struct spokei_comet_more *more = conn->more;
	struct iovec part;
	ssize_t wrote;

	if (!spokei_comet_behind(conn))
		return;
	part = (struct iovec){ more->out + more->out_at, more->out_len - more->out_at };
	wrote = put(conn, &part, 1);
	if (wrote < 0)
		return;
	more->out_at += (uint32_t)wrote;
	if (more->out_at < more->out_len)
		return;
	drop_out(conn);
	less(conn);
	watch(conn, SPOKE_IO_READ);
	if (conn->state == SPOKEI_COMET_ENDING) {
		finish(conn);
		return;
	}
	/* While output waited the timer was set to slow_ns; a keepalive may be due earlier. */
	spokei_comet_arm(conn);
	spokei_comet_pump(conn);
}

/* --- input of a WebSocket */

/* Counts frames of a connection. Returns whether they are too many in this second. */
static bool floods(struct spokei_comet_conn *conn, uint32_t frames)
{
	const struct spoke_comet *comet = comet_of(conn);
	uint16_t second = (uint16_t)(spokei_comet_ms(comet) / 1000);

	if (conn->second != second) {
		conn->second = second;
		conn->frames = 0;
	}
	if (conn->frames + frames > comet->with.frames_per_second)
		return true;
	conn->frames = (uint8_t)(conn->frames + frames);
	return false;
}

/* The bytes that are read now, and the reader of them. */
struct reading {
	struct spokei_websocket websocket;
	struct spokei_websocket_input input;
	/* Memory taken from the connection, which the program may close meanwhile: the reader's
	 * state, and behind it the bytes that were kept. NULL: none */
	unsigned char *in;
	uint32_t room;
	uint32_t begun_ms; /* when the first bytes of the unfinished message came */
};

/* Makes room for `len` bytes behind the reader's state, of which `used` are there. */
static bool make_room(struct spoke_comet *comet, struct reading *reading, size_t used, size_t len)
{
	uint32_t room = KEEP_FIRST;
	unsigned char *in;

	if (reading->in && reading->room >= STATE + len)
		return true;
	while (room < STATE + len)
		room *= 2;
	in = spokei_comet_take(comet, room);
	if (in == NULL)
		return false;
	if (used)
		memcpy(in + STATE, reading->in + STATE, used);
	spokei_comet_give(comet, reading->in, reading->room);
	reading->in = in;
	reading->room = room;
	return true;
}

/* Joins the bytes that were kept and those that have come behind their place. The fewer bytes are
 * copied to the others, so that single bytes of a long message cost little. */
static bool join_input(struct spokei_comet_conn *conn, struct reading *reading)
{
	struct spokei_websocket_input *input = &reading->input;
	struct spokei_comet_more *more = conn->more;
	const size_t kept = input->at;
	const size_t got = input->end - kept;

	memcpy(&reading->websocket, more->in, STATE);
	reading->in = more->in;
	reading->room = more->in_room;
	reading->begun_ms = more->begun_ms;
	more->in = NULL;
	more->in_room = 0;
	more->in_len = 0;
	if (kept == 0)
		return true;
	if (got >= kept) {
		memcpy(input->bytes, reading->in + STATE, kept);
		return true;
	}
	if (!make_room(comet_of(conn), reading, kept, kept + got))
		return false;
	memcpy(reading->in + STATE + kept, input->bytes + kept, got);
	input->bytes = reading->in + STATE;
	return true;
}

/* Keeps the reader's state and the bytes that it wants to have kept. Returns false without memory.
 */
static bool keep_input(struct spokei_comet_conn *conn, struct reading *reading)
{
	struct spokei_comet_more *more = need(conn);
	const uint32_t kept = reading->websocket.kept;

	if (more == NULL || !make_room(comet_of(conn), reading, 0, kept))
		return false;
	memcpy(reading->in, &reading->websocket, STATE);
	if (kept && reading->input.bytes != reading->in + STATE)
		memcpy(reading->in + STATE, reading->input.bytes, kept);
	more->in = reading->in;
	more->in_room = reading->room;
	more->in_len = kept;
	more->begun_ms = reading->begun_ms;
	reading->in = NULL;
	return true;
}

static void end_protocol(struct spokei_comet_conn *conn, enum spoke_comet_figure why, unsigned code,
			 const char *reason)
{
	spokei_comet_count(comet_of(conn), why);
	spokei_comet_end_with(conn, code, reason);
}

/* The program may close the connection, and free the gateway. */
static void take_text(struct spokei_comet_conn *conn, struct spoke_span text)
{
	struct spoke_comet *comet = comet_of(conn);
	char id[SPOKE_COMET_USER_MAX];
	const struct spoke_span user = { id, conn->user->len };

	if (comet->with.message == NULL) {
		end_protocol(conn, SPOKE_COMET_FIGURE_CLOSED_PROTOCOL, NO_BINARY,
			     "texts are not wanted");
		return;
	}
	memcpy(id, conn->user->id, user.len);
	spokei_comet_count(comet, SPOKE_COMET_FIGURE_RECEIVED);
	comet->with.message(comet->with.arg, user, text);
}

/* While output waits there is no room for a pong; the client does not read anyway. */
static void give_pong(struct spokei_comet_conn *conn, struct spoke_span data)
{
	unsigned char frame[2 + SPOKEI_WEBSOCKET_CONTROL_MAX];
	size_t len = spokei_websocket_control(SPOKEI_WEBSOCKET_OP_PONG, data.data, data.len, frame);

	if (!spokei_comet_behind(conn))
		spokei_comet_write(conn, frame, len);
}

static void take_event(struct spokei_comet_conn *conn, enum spokei_websocket_verdict verdict,
		       const struct spokei_websocket_event *event)
{
	switch (verdict) {
	case SPOKEI_WEBSOCKET_GIVES_TEXT:
		take_text(conn, event->data);
		break;
	case SPOKEI_WEBSOCKET_GIVES_BINARY:
		end_protocol(conn, SPOKE_COMET_FIGURE_CLOSED_PROTOCOL, NO_BINARY,
			     "texts only, no binary messages");
		break;
	case SPOKEI_WEBSOCKET_GIVES_PING:
		give_pong(conn, event->data);
		break;
	case SPOKEI_WEBSOCKET_GIVES_CLOSE:
		spokei_comet_end_with(conn, event->answer, NULL);
		break;
	case SPOKEI_WEBSOCKET_GIVES_FAILURE:
		end_protocol(conn, SPOKE_COMET_FIGURE_CLOSED_PROTOCOL, event->answer,
			     event->data.data);
		break;
	case SPOKEI_WEBSOCKET_GIVES_PONG:
	case SPOKEI_WEBSOCKET_MORE:
		break;
	}
}

static void take_frames(struct spokei_comet_conn *conn, struct reading *reading)
{
	struct spoke_comet *comet = comet_of(conn);
	const struct spokei_websocket *websocket = &reading->websocket;
	struct spokei_websocket_event event;
	enum spokei_websocket_verdict verdict;

	do {
		reading->input.frames = 0;
		verdict = spokei_websocket_read(&reading->websocket, &reading->input,
						comet->with.frame_max, &event);
		if (verdict != SPOKEI_WEBSOCKET_MORE && websocket->message == 0)
			reading->begun_ms = spokei_comet_ms(comet);
		if (floods(conn, reading->input.frames))
			end_protocol(conn, SPOKE_COMET_FIGURE_CLOSED_RATE, SPOKEI_COMET_POLICY,
				     "too many frames in a second");
		else
			take_event(conn, verdict, &event);
	} while (conn->state == SPOKEI_COMET_OPEN && verdict != SPOKEI_WEBSOCKET_MORE);
	/* Between two messages the reader has no state. */
	if (conn->state == SPOKEI_COMET_OPEN && (websocket->step != 0 || websocket->message != 0) &&
	    !keep_input(conn, reading))
		end_protocol(conn, SPOKE_COMET_FIGURE_CLOSED_MEMORY, NO_MEMORY, "no memory");
}

static void read_frames(struct spokei_comet_conn *conn)
{
	struct spoke_comet *comet = comet_of(conn);
	struct spoke_engine *engine = comet->engine;
	struct reading reading = {
		.input.bytes = engine->scratch,
		.begun_ms = spokei_comet_ms(comet),
	};
	const bool was_kept = conn->more && conn->more->in;
	ssize_t got;

	if (was_kept)
		reading.input.at = conn->more->in_len;
	/* A part of the scratch, so that one client does not hold up the others. */
	got = engine->env->net->read(engine->env->ctx, conn->watch.fd,
				     reading.input.bytes + reading.input.at,
				     SPOKEI_WEBSOCKET_MESSAGE_MAX);
	if (got == -EAGAIN || got == -EINTR)
		return;
	if (got <= 0) {
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_COUNT);
		return;
	}
	reading.input.end = reading.input.at + (size_t)got;
	if (was_kept && !join_input(conn, &reading))
		end_protocol(conn, SPOKE_COMET_FIGURE_CLOSED_MEMORY, NO_MEMORY, "no memory");
	else
		take_frames(conn, &reading);
	spokei_comet_give(comet, reading.in, reading.room);
	less(conn);
}

/* --- the timer */

static void life_over(struct spokei_comet_conn *conn)
{
	struct spoke_comet *comet = comet_of(conn);
	const enum spoke_comet_figure why = conn->drains ? SPOKE_COMET_FIGURE_CLOSED_DRAIN
							 : SPOKE_COMET_FIGURE_CLOSED_LIFE;

	if (conn->kind != SPOKE_COMET_POLL)
		spokei_comet_count(comet, why);
	end_again(conn, SPOKEI_WEBSOCKET_RESTART,
		  conn->drains || conn->kind != SPOKE_COMET_POLL
			  ? spokei_comet_ms_of(comet->with.retry_min_ns)
			  : 0);
}

static void keep_alive(struct spokei_comet_conn *conn)
{
	unsigned char frame[2 + SPOKEI_WEBSOCKET_CONTROL_MAX];

	if (conn->kind == SPOKE_COMET_SOCKET) {
		spokei_comet_write(conn, frame,
				   spokei_websocket_control(SPOKEI_WEBSOCKET_OP_PING, NULL, 0,
							    frame));
	} else {
		spokei_comet_write(conn, SPOKEI_SSE_KEEPALIVE, sizeof(SPOKEI_SSE_KEEPALIVE) - 1);
	}
}

/* Returns whether the connection has been quiet for this time. */
static bool is_quiet(const struct spokei_comet_conn *conn, uint64_t ns)
{
	return -spokei_comet_until(conn->moved_ms, spokei_comet_ms(comet_of(conn))) >=
	       (int32_t)spokei_comet_ms_of(ns);
}

static bool is_over(const struct spokei_comet_conn *conn)
{
	return spokei_comet_until(conn->ends_ms, spokei_comet_ms(comet_of(conn))) <= 0;
}

static bool is_slow(const struct spokei_comet_conn *conn)
{
	return spokei_comet_behind(conn) && is_quiet(conn, comet_of(conn)->with.slow_ns);
}

/* Has a message from the page not become complete in time? */
static bool is_late(const struct spokei_comet_conn *conn)
{
	const struct spoke_comet *comet = comet_of(conn);

	return spokei_comet_partial(conn) &&
	       spokei_comet_until(conn->more->begun_ms + spokei_comet_ms_of(comet->with.slow_ns),
				  spokei_comet_ms(comet)) <= 0;
}

static void end_late(struct spokei_comet_conn *conn)
{
	spokei_comet_count(comet_of(conn), SPOKE_COMET_FIGURE_CLOSED_SLOW);
	spokei_comet_end_with(conn, SPOKEI_COMET_POLICY, "a message takes too long");
}

/* Looks at the stamps of an open connection. */
static void look(struct spokei_comet_conn *conn)
{
	if (is_over(conn))
		life_over(conn);
	else if (is_late(conn))
		end_late(conn);
	else if (!spokei_comet_behind(conn) && conn->kind != SPOKE_COMET_POLL &&
		 is_quiet(conn, comet_of(conn)->with.keepalive_ns))
		keep_alive(conn);
}

/* The timer is idle, but its room in the wheel is still free, so it can be armed again. */
void spokei_comet_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_comet_conn *conn = spoke_container_of(timer, struct spokei_comet_conn, timer);
	struct spoke_engine *engine = arg;
	struct spoke_comet *comet = comet_of(conn);

	if (is_slow(conn)) {
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_CLOSED_SLOW);
		return;
	}
	if (conn->state == SPOKEI_COMET_ENDING && is_over(conn)) {
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_COUNT);
		return;
	}
	if (spoke_wheel_schedule(engine->wheel, timer, comet->timer_class,
				 engine->begin_ns + NS_PER_MS) != SPOKE_WHEEL_OK) {
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_CLOSED_MEMORY);
		return;
	}
	if (conn->state == SPOKEI_COMET_OPEN)
		look(conn);
	if (conn->state != SPOKEI_COMET_FREE)
		spokei_comet_arm(conn);
}

/* --- readiness */

/* Input of other kinds than WebSocket: only its end is expected. While a connection ends, the
 * client may still send what it has begun. */
static void read_other(struct spokei_comet_conn *conn)
{
	struct spoke_engine *engine = comet_of(conn)->engine;
	ssize_t got = engine->env->net->read(engine->env->ctx, conn->watch.fd, engine->scratch,
					     SPOKEI_ENGINE_SCRATCH);

	if (got == -EAGAIN || got == -EINTR)
		return;
	if (got > 0 && conn->state == SPOKEI_COMET_ENDING)
		return;
	spokei_comet_close(conn,
			   got > 0 ? SPOKE_COMET_FIGURE_CLOSED_PROTOCOL : SPOKE_COMET_FIGURE_COUNT);
}

static void conn_ready(struct spoke_watch *watch, unsigned io)
{
	struct spokei_comet_conn *conn = spoke_container_of(watch, struct spokei_comet_conn, watch);

	if (io & SPOKE_IO_READ) {
		if (conn->kind == SPOKE_COMET_SOCKET && conn->state == SPOKEI_COMET_OPEN)
			read_frames(conn);
		else
			read_other(conn);
	}
	if ((io & SPOKE_IO_WRITE) && conn->state != SPOKEI_COMET_FREE)
		become_writable(conn);
}

/* --- the beginning */

static bool add_chunk(struct spoke_comet *comet)
{
	const struct spoke_env *env = comet->engine->env;
	struct spokei_comet_conn *chunk;

	if (comet->chunk_count == comet->chunk_room) {
		uint32_t room = comet->chunk_room ? 2 * comet->chunk_room : 4;
		struct spokei_comet_conn **chunks =
			spokei_alloc(env, room, sizeof(struct spokei_comet_conn *));

		if (chunks == NULL)
			return false;
		if (comet->chunk_count)
			memcpy(chunks, comet->chunks,
			       comet->chunk_count * sizeof(struct spokei_comet_conn *));
		spokei_free(env, comet->chunks, comet->chunk_room,
			    sizeof(struct spokei_comet_conn *));
		comet->chunks = chunks;
		comet->chunk_room = room;
	}
	chunk = spokei_alloc(env, SPOKEI_COMET_CHUNK, sizeof(*chunk));
	if (chunk)
		comet->chunks[comet->chunk_count++] = chunk;
	return chunk != NULL;
}

/* Takes a cell of the slab, which has no handles: nothing outside the gateway names one. */
static struct spokei_comet_conn *take_cell(struct spoke_comet *comet)
{
	struct spokei_comet_conn *conn = comet->free;

	if (conn) {
		comet->free = conn->next;
		return conn;
	}
	if (comet->used == comet->chunk_count * SPOKEI_COMET_CHUNK && !add_chunk(comet))
		return NULL;
	return spokei_comet_cell(comet, comet->used++);
}

static uint64_t life_ns(const struct spoke_comet *comet, enum spoke_comet_kind kind)
{
	if (kind == SPOKE_COMET_POLL)
		return comet->with.poll_ns;
	return spokei_comet_dice(comet, comet->with.life_ns / 10 * 9,
				 comet->with.life_ns / 10 * 11);
}

struct spokei_comet_conn *spokei_comet_open(struct spoke_comet *comet, enum spoke_comet_kind kind,
					    struct spokei_comet_user *user, int fd,
					    struct spokei_quota_peer *quota_peer)
{
	struct spoke_engine *engine = comet->engine;
	struct spokei_comet_conn *conn = take_cell(comet);
	uint32_t now_ms = spokei_comet_ms(comet);

	if (conn) {
		*conn = (struct spokei_comet_conn){
			.watch = { .ready = conn_ready, .fd = fd },
			.user = comet->nobody,
			.quota_peer = quota_peer,
			.cursor = comet->number,
			.moved_ms = now_ms,
			.ends_ms = now_ms + spokei_comet_ms_of(life_ns(comet, kind)),
			.kind = (uint8_t)kind,
		};
		if (spoke_wheel_schedule(engine->wheel, &conn->timer, comet->timer_class,
					 due_ns(conn)) == SPOKE_WHEEL_OK) {
			conn->state = SPOKEI_COMET_OPEN;
			engine->env->loop->watch(engine->loop, &conn->watch, SPOKE_IO_READ);
			if (user != comet->nobody)
				join_user(conn, user);
			conn->user = user;
			return conn;
		}
		conn->next = comet->free;
		comet->free = conn;
	}
	engine->env->net->close(engine->env->ctx, fd);
	spokei_quota_leave(&comet->quota, quota_peer);
	spokei_count(engine, SPOKE_STAT_CLOSED);
	spokei_comet_count(comet, SPOKE_COMET_FIGURE_CLOSED_MEMORY);
	/* A drain may have waited for this one only. */
	spokei_run_freeing(engine, &comet->dead);
	return NULL;
}
