/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of a connection. There is no queue: a connection has a cursor into the rings, and at most
 * the rest of one message or of other bytes. While such a rest waits, nothing else is written.
 */
#include "cluster/comet/parts.h"
#include "transport/http/websocket.h"
#include "transport/stream/stream.h"

#include <spoke/json.h>

#include <errno.h>
#include <stdio.h>

#define ANSWER_MESSAGES 64u    /* in one answer to a long poll */
#define ANSWER_BYTES 131072u   /* ... and about their bytes */
#define ANSWER_HEAD 768u       /* bytes of a head, at most */
#define CLOSED_MAX 1024u       /* bytes of the data of the event "closed", with the NUL */
#define CLOSE_HEAD 4u          /* bytes of a close frame before its reason */
#define LONG_RETRY_MS 3600000u /* for an EventSource that shall not come again */

/* --- bytes */

/* Returns the bytes written, maybe 0; -1: the connection is lost, and closed. */
static ssize_t put(struct spokei_comet_conn *conn, const struct iovec *parts, int count)
{
	struct spoke_comet *comet = conn->user->comet;
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
	struct spoke_engine *engine = conn->user->comet->engine;

	engine->env->loop->watch(engine->loop, &conn->watch, io);
}

/* Keeps the rest of `out` until it can be written. `message` owns it; NULL: the connection does.
 * Its time begins now, however long ago the last bytes were written. */
static bool keep(struct spokei_comet_conn *conn, struct spokei_comet_message *message,
		 unsigned char *out, uint32_t len, uint32_t at)
{
	struct spokei_comet_more *more = spokei_comet_need(conn);

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
	spokei_comet_count(conn->user->comet, SPOKE_COMET_FIGURE_BEHIND);
	conn->moved_ms = spokei_comet_ms(conn->user->comet);
	watch(conn, SPOKE_IO_READ | SPOKE_IO_WRITE);
	spokei_comet_arm(conn);
	return true;
}

void spokei_comet_write(struct spokei_comet_conn *conn, const void *bytes, size_t len)
{
	struct spoke_comet *comet = conn->user->comet;
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
	if (!keep(conn, NULL, rest, (uint32_t)len, 0))
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
static void gather(const struct spokei_comet_conn *conn, uint32_t max, struct due *due)
{
	static const struct spokei_comet_ring none;
	const struct spoke_comet *comet = conn->user->comet;
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
	struct spoke_comet *comet = conn->user->comet;

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
	struct spoke_comet *comet = conn->user->comet;
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
			(void)keep(conn, message, message->form[form], len, (uint32_t)wrote);
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

	(void)spokei_comet_print_id(conn->user->comet, conn->cursor, id);
	spokei_comet_write(conn, out, spokei_comet_say(form_of(conn), "lost", id, "{}", 0, out));
}

void spokei_comet_pump(struct spokei_comet_conn *conn)
{
	struct due due;

	while (conn->state == SPOKEI_COMET_OPEN && !spokei_comet_behind(conn)) {
		if (conn->kind == SPOKE_COMET_POLL) {
			gather(conn, 1, &due);
			if (due.count > 0 || conn->lost || conn->cursor < conn->user->floor ||
			    conn->cursor < conn->user->comet->all_floor)
				spokei_comet_answer(conn, 0);
			else
				conn->cursor = due.upto;
			return;
		}
		if (has_lost(conn)) {
			say_lost(conn);
			continue;
		}
		gather(conn, SPOKEI_COMET_GATHER, &due);
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
	const struct spoke_comet *comet = conn->user->comet;
	const struct spoke_env *env = comet->engine->env;

	conn->ends_ms = spokei_comet_ms(comet) + SPOKEI_COMET_LINGER_MS;
	spokei_comet_arm(conn);
	if (conn->state == SPOKEI_COMET_ENDING && env->net->shut(env->ctx, conn->watch.fd))
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_COUNT);
}

void spokei_comet_end(struct spokei_comet_conn *conn, const void *bytes, size_t len)
{
	struct spoke_comet *comet = conn->user->comet;

	SPOKE_ASSERT(conn->state == SPOKEI_COMET_OPEN);
	if (spokei_comet_behind(conn)) {
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_COUNT);
		return;
	}
	spokei_comet_leave(conn);
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
				body_len, spokei_comet_cors(conn->user->comet, conn->origin, cors));
}

/* A text that is written to `out`, or only counted if that is NULL. */
struct counted {
	char *out;
	size_t len;
};

static void add_bytes(void *arg, const void *bytes, size_t len)
{
	struct counted *text = arg;

	if (text->out)
		memcpy(text->out + text->len, bytes, len);
	text->len += len;
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
	struct counted all = { out, 0 };
	char text[ANSWER_HEAD];
	int len = snprintf(text, sizeof(text), "{\"last\":\"%s\",\"retry\":%u,", answer->id,
			   answer->retry_ms);

	add_bytes(&all, text, (size_t)len);
	if (due->count == 0 && !lost && !answer->closed) {
		len = snprintf(text, sizeof(text), "\"again\":%u}", answer->again_ms);
		add_bytes(&all, text, (size_t)len);
		return all.len;
	}
	len = snprintf(text, sizeof(text), "\"messages\":[%s%s%s", lost ? "{\"id\":\"" : "",
		       lost ? answer->id : "",
		       lost ? "\",\"event\":\"lost\",\"data\":\"{}\"}" : "");
	add_bytes(&all, text, (size_t)len);
	for (uint32_t i = 0; i < due->count; i++) {
		const struct spokei_comet_message *message = due->messages[i];

		add_bytes(&all, ",", i > 0 || lost);
		add_bytes(&all, message->form[SPOKEI_COMET_AS_FRAME] + message->head_len,
			  message->form_len[SPOKEI_COMET_AS_FRAME] - message->head_len);
	}
	if (answer->closed) {
		static const char event[] = ",{\"id\":\"\",\"event\":\"closed\",\"data\":";
		const size_t comma = due->count > 0 || lost ? 0 : 1;

		add_bytes(&all, event + comma, sizeof(event) - 1 - comma);
		spoke_json_print_text(answer->closed, strlen(answer->closed), add_bytes, &all);
		add_bytes(&all, "}", 1);
	}
	add_bytes(&all, "]}", 2);
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
	struct spoke_comet *comet = conn->user->comet;
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
		gather(conn, ANSWER_MESSAGES, &due);
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
	struct counted text = { .out = data };

	text.len = (size_t)snprintf(data, CLOSED_MAX, "{\"code\":%u,\"reason\":", code);
	spoke_json_print_text(reason, len, add_bytes, &text);
	add_bytes(&text, "}", sizeof("}"));
}

/* Ends a long poll with the event "closed". */
static void answer_closed(struct spokei_comet_conn *conn, const char *closed)
{
	const struct due none = { .count = 0 };
	struct answer answer = {
		.retry_ms = spokei_comet_retry(conn->user->comet),
		.closed = closed,
		.lost = conn->lost,
	};
	char out[ANSWER_HEAD + 2 * CLOSED_MAX];
	size_t len;

	(void)spokei_comet_print_id(conn->user->comet, conn->cursor, answer.id);
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

void spokei_comet_end_again(struct spokei_comet_conn *conn, unsigned code, uint32_t retry_ms)
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

/* --- readiness */

void spokei_comet_writable(struct spokei_comet_conn *conn)
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
	spokei_comet_drop_out(conn);
	spokei_comet_less(conn);
	watch(conn, SPOKE_IO_READ);
	if (conn->state == SPOKEI_COMET_ENDING) {
		finish(conn);
		return;
	}
	/* While output waited the timer was set to slow_ns; a keepalive may be due earlier. */
	spokei_comet_arm(conn);
	spokei_comet_pump(conn);
}
