/* SPDX-License-Identifier: Apache-2.0 */
/* Writes HTTP responses and streams, and ends a connection after its response. */
#include "transport/http/connection.h"
#include "transport/http/parts.h"
#include "transport/http/response.h"

static void call_sent(struct spokei_http_conn *conn)
{
	if (conn->server->up->sent)
		conn->server->up->sent(conn);
}

static void begin_to_linger(struct spokei_http_conn *conn)
{
	spokei_http_leave(conn);
	spokei_list_append(&conn->server->lingering, &conn->node);
	conn->state = SPOKEI_HTTP_LINGERING;
	(void)conn->stream.kind->shut(&conn->stream);
	if (!conn->ended && spokei_http_arm(conn, conn->server->limits.linger_ns))
		spokei_http_watch(conn, false);
	else
		spokei_http_close(conn);
}

static void wrote_all(struct spokei_http_conn *conn)
{
	if (conn->state != SPOKEI_HTTP_STREAMING) {
		begin_to_linger(conn);
		call_sent(conn);
		return;
	}
	spokei_http_disarm(conn);
	spokei_http_watch(conn, false);
	if (conn->server->up->writable)
		conn->server->up->writable(conn);
}

static void write_failed(struct spokei_http_conn *conn)
{
	bool streams = conn->state == SPOKEI_HTTP_STREAMING;

	spokei_http_close(conn);
	if (!streams)
		call_sent(conn);
}

/* A response has a time for all of it, a stream for each progress. */
static void wait_to_write(struct spokei_http_conn *conn, bool moved)
{
	if (conn->state == SPOKEI_HTTP_STREAMING && moved &&
	    !spokei_http_arm(conn, conn->server->limits.slow_ns))
		spokei_http_close(conn);
	else
		spokei_http_watch(conn, true);
}

bool spokei_http_has_output(const struct spokei_http_conn *conn)
{
	return conn->state == SPOKEI_HTTP_RESPONDING ||
	       (conn->state == SPOKEI_HTTP_STREAMING && !spokei_http_idle(conn));
}

/* Has the stream passed on all that it has taken? It may hold the end of a response, whose time
 * goes on until then. Returns 0 or a negative errno. */
static int pass_on(struct spokei_http_conn *conn)
{
	if (SPOKEI_LIKELY(!conn->stream.layered) || conn->state == SPOKEI_HTTP_STREAMING)
		return 0;
	return conn->stream.kind->flush(&conn->stream);
}

void spokei_http_flush(struct spokei_http_conn *conn)
{
	struct spokei_buffer *out = &conn->out;
	bool moved = false;
	int status;

	while (spokei_buffer_len(out) > 0) {
		const struct iovec part = { spokei_buffer_data(out), spokei_buffer_len(out) };
		ssize_t wrote = conn->stream.kind->write(&conn->stream, &part, 1);

		if (spokei_http_waits(wrote)) {
			wait_to_write(conn, moved);
			return;
		}
		if (wrote < 0) {
			write_failed(conn);
			return;
		}
		spokei_buffer_consume(out, (size_t)wrote);
		moved = moved || wrote > 0;
	}
	spokei_buffer_fini(out);
	status = pass_on(conn);
	if (spokei_http_waits(status))
		wait_to_write(conn, moved);
	else if (status < 0)
		write_failed(conn);
	else
		wrote_all(conn);
}

/* --- responses */

/* There is output: written when the user's callback returns, else by the loop. */
static void begin_to_write(struct spokei_http_conn *conn, enum spokei_http_state state)
{
	conn->state = state;
	if (!conn->inside)
		spokei_http_watch(conn, true);
}

static int put_response(struct spokei_http_conn *conn, const struct spokei_http_response *response,
			const void *body, size_t len)
{
	size_t before = spokei_buffer_len(&conn->out); /* of status 100 */
	int error;

	if (conn->state == SPOKEI_HTTP_CLOSED)
		return SPOKE_ECLOSED;
	SPOKE_ASSERT(conn->state == SPOKEI_HTTP_SERVING);
	error = spokei_http_response_head(&conn->out, response);
	if (error == SPOKE_OK && !conn->head_only)
		error = spokei_buffer_append(&conn->out, body, len);
	if (error)
		spokei_buffer_truncate(&conn->out, before);
	return error;
}

int spokei_http_respond(struct spokei_http_conn *conn, const struct spokei_http_response *response,
			const void *body)
{
	int error = put_response(conn, response, body, response->len);

	if (error == SPOKE_OK)
		begin_to_write(conn, SPOKEI_HTTP_RESPONDING);
	return error;
}

int spokei_http_respond_text(struct spokei_http_conn *conn, int status, const char *allow,
			     const char *sentence)
{
	char line[SPOKEI_HTTP_SENTENCE];
	struct spokei_http_response response = {
		.status = status,
		.type = "text/plain; charset=utf-8",
		.len = strlen(sentence) + 1,
		.allow = allow,
	};

	if (response.len > sizeof(line))
		return SPOKE_ETOOLARGE;
	memcpy(line, sentence, response.len - 1);
	line[response.len - 1] = '\n';
	return spokei_http_respond(conn, &response, line);
}

int spokei_http_stream(struct spokei_http_conn *conn, const struct spokei_http_response *response,
		       const void *body)
{
	struct spokei_http_response head = *response;
	int error;

	head.len = SPOKEI_HTTP_UNTIL_CLOSE;
	error = put_response(conn, &head, body, response->len);
	if (error)
		return error;
	if (conn->head_only) {
		begin_to_write(conn, SPOKEI_HTTP_RESPONDING);
		return SPOKE_OK;
	}
	spokei_http_leave(conn);
	spokei_list_append(&conn->server->streams, &conn->node);
	conn->server->stream_count++;
	begin_to_write(conn, SPOKEI_HTTP_STREAMING);
	return SPOKE_OK;
}

int spokei_http_send(struct spokei_http_conn *conn, const void *bytes, size_t len)
{
	const struct iovec part = spokei_stream_part(bytes, len);
	bool idle = spokei_http_idle(conn);
	ssize_t wrote = 0;
	int error;

	if (conn->state != SPOKEI_HTTP_STREAMING)
		return SPOKE_ECLOSED;
	if (idle)
		wrote = conn->stream.kind->write(&conn->stream, &part, 1);
	if (wrote < 0 && !spokei_http_waits(wrote))
		return SPOKE_ELOST;
	if (wrote < 0)
		wrote = 0;
	if ((size_t)wrote == len) {
		spokei_http_watch(conn, false); /* the stream may hold some of it */
		return SPOKE_OK;
	}
	error = spokei_buffer_append(&conn->out, (const char *)bytes + wrote, len - (size_t)wrote);
	if (error || !idle)
		return error;
	spokei_http_watch(conn, true);
	return spokei_http_arm(conn, conn->server->limits.slow_ns) ? SPOKE_OK : SPOKE_ELIMIT;
}

void spokei_http_end(struct spokei_http_conn *conn)
{
	if (conn->state != SPOKEI_HTTP_STREAMING)
		return;
	spokei_http_leave(conn);
	spokei_list_append(&conn->server->conns, &conn->node);
	begin_to_write(conn, SPOKEI_HTTP_RESPONDING);
	if (!spokei_http_arm(conn, conn->server->limits.slow_ns))
		spokei_http_close(conn);
}

void spokei_http_finish_stream(struct spokei_stream *stream)
{
	spokei_http_end(spoke_container_of(stream, struct spokei_http_conn, stream));
}
