/* SPDX-License-Identifier: Apache-2.0 */
/* Reads HTTP requests, hands them to the user, and checks the timeouts of connections. */
#include "transport/http/connection.h"
#include "transport/http/parts.h"
#include "transport/http/request.h"
#include "transport/http/response.h"

#define BAD_REQUEST 400
#define TOO_LONG 413

/* `verdict`: the result of spokei_http_read(), or the status of an error. */
static void serve(struct spokei_http_conn *conn, int verdict,
		  const struct spokei_http_request *request)
{
	conn->state = SPOKEI_HTTP_SERVING;
	conn->server->reading_count--;
	spokei_list_remove(&conn->node);
	spokei_list_append(&conn->server->conns, &conn->node);
	conn->head_only = request->method == SPOKEI_HTTP_HEAD;
	if (!spokei_http_arm(conn, conn->server->limits.slow_ns)) {
		spokei_http_close(conn);
		return;
	}
	conn->inside = true;
	if (verdict == SPOKEI_HTTP_WHOLE)
		conn->server->up->request(conn, request);
	else if (verdict == TOO_LONG && conn->server->up->too_long)
		conn->server->up->too_long(conn, request);
	else if (spokei_http_respond_text(conn, verdict, NULL, spokei_http_fault(verdict)))
		spokei_http_close(conn);
	conn->inside = false;
	spokei_buffer_fini(&conn->in);
	if (conn->state == SPOKEI_HTTP_RESPONDING || conn->state == SPOKEI_HTTP_STREAMING)
		spokei_http_flush(conn);
}

/* Tells a client that waits to send its body to go on. Bytes that the stream does not take go
 * before the response. */
static void go_on(struct spokei_http_conn *conn)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
	const size_t len = sizeof(text) - 1;
	const struct iovec part = spokei_stream_part(text, len);
	ssize_t wrote = conn->stream.kind->write(&conn->stream, &part, 1);

	conn->continued = true;
	if (spokei_http_waits(wrote))
		wrote = 0;
	if (wrote < 0 ||
	    spokei_buffer_append(&conn->out, text + wrote, len - (size_t)wrote) != SPOKE_OK)
		spokei_http_close(conn);
}

static const struct spokei_http_request unknown = { .method = SPOKEI_HTTP_OTHER };

/* Reports a client that wants TLS, and answers in plain text. */
static void refuse_tls(struct spokei_http_conn *conn)
{
	struct spokei_http_server *server = conn->server;
	char peer[SPOKEI_HTTP_ADDRESS];

	if (spokei_bucket_take(&server->blames, 1, server->engine->begin_ns)) {
		spokei_http_peer(conn, peer);
		spokei_event(server->engine, SPOKE_EPROTOCOL,
			     "%s%s speaks TLS, but plain HTTP is served here; use http:// there, "
			     "or serve https:// here",
			     server->up->title ? server->up->title : "", peer);
	}
	serve(conn, BAD_REQUEST, &unknown);
}

static void take(struct spokei_http_conn *conn, const unsigned char *bytes, size_t len)
{
	struct spokei_http_request request;
	int verdict;

	if (spokei_buffer_append(&conn->in, bytes, len)) {
		spokei_http_close(conn);
		return;
	}
	if (!conn->stream.layered &&
	    spokei_stream_begins_tls(spokei_buffer_data(&conn->in), spokei_buffer_len(&conn->in))) {
		refuse_tls(conn);
		return;
	}
	if (spokei_buffer_len(&conn->in) < conn->whole)
		return;
	verdict = spokei_http_read(spokei_buffer_data(&conn->in), spokei_buffer_len(&conn->in),
				   conn->body_max, &request);
	conn->whole = request.len;
	if (verdict == SPOKEI_HTTP_MORE) {
		if (request.expects && !conn->continued &&
		    spokei_buffer_len(&conn->in) == request.head_len)
			go_on(conn);
		return;
	}
	conn->surplus = verdict == SPOKEI_HTTP_WHOLE && spokei_buffer_len(&conn->in) > request.len;
	serve(conn, verdict, &request);
}

/* Reads at most as much as a request can have. Bytes after the first request are dropped. */
static void read_some(struct spokei_http_conn *conn)
{
	unsigned char *scratch = conn->server->engine->scratch;
	size_t room = SPOKEI_HTTP_HEAD_MAX + conn->body_max;
	ssize_t got;

	if (conn->state == SPOKEI_HTTP_READING)
		room -= spokei_buffer_len(&conn->in);
	got = conn->stream.kind->read(&conn->stream, scratch, room);
	if (spokei_http_waits(got))
		return;
	if (got > 0) {
		if (conn->state == SPOKEI_HTTP_READING)
			take(conn, scratch, (size_t)got);
		else
			conn->surplus = true;
		return;
	}
	/* E.g. the peer refuses this side's certificate, or bytes were changed. */
	if (got == -EPROTO) {
		spokei_http_blame(conn, SPOKE_STAT_CLOSED_PROTOCOL, SPOKE_EPROTOCOL);
		return;
	}
	/* A peer that has ended its side after the request still reads the response. */
	if (got == 0 &&
	    (conn->state == SPOKEI_HTTP_SERVING || conn->state == SPOKEI_HTTP_RESPONDING)) {
		conn->ended = true;
		spokei_http_watch(conn, conn->state == SPOKEI_HTTP_RESPONDING);
	} else {
		spokei_http_close(conn);
	}
}

/* The stream may have to read in order to write, and to write in order to read. All bytes that it
 * has received are read in this turn; one call of the system gives no more than that. */
static void ready_layered(struct spokei_http_conn *conn)
{
	int status;

	if (!conn->open && !spokei_http_open(conn))
		return;
	if (!conn->ended)
		read_some(conn);
	while (conn->state != SPOKEI_HTTP_CLOSED && !conn->ended &&
	       spokei_stream_pending(&conn->stream) > 0)
		read_some(conn);
	if (conn->state != SPOKEI_HTTP_CLOSED && spokei_http_has_output(conn))
		spokei_http_flush(conn);
	if (conn->state == SPOKEI_HTTP_CLOSED)
		return;
	/* The stream may be a plain socket from now on. */
	status = conn->stream.layered ? conn->stream.kind->flush(&conn->stream) : 0;
	if (status < 0 && !spokei_http_waits(status))
		spokei_http_close(conn);
	else
		spokei_http_watch(conn, spokei_http_has_output(conn));
}

void spokei_http_ready(struct spoke_watch *watch, unsigned io)
{
	struct spokei_stream *stream = spoke_container_of(watch, struct spokei_stream, watch);
	struct spokei_http_conn *conn = spoke_container_of(stream, struct spokei_http_conn, stream);

	if (SPOKEI_UNLIKELY(conn->stream.layered)) {
		ready_layered(conn);
		return;
	}
	if (io & SPOKE_IO_READ)
		read_some(conn);
	if ((io & SPOKE_IO_WRITE) && spokei_http_has_output(conn))
		spokei_http_flush(conn);
}

/* The time of a connection whose stream is not open is over. Where the first byte decides, a peer
 * that has sent none has begun no handshake. */
static void end_unopened(struct spokei_http_conn *conn)
{
	if (conn->stream.kind->patient && conn->stream.state == NULL) {
		spokei_http_close(conn);
		return;
	}
	/* With a reason it had failed before. */
	if (spokei_stream_why(&conn->stream) == NULL)
		spokei_count(conn->server->engine, SPOKE_STAT_HANDSHAKES_LATE);
	spokei_http_blame(conn, SPOKE_STAT_CLOSED_HANDSHAKE, SPOKE_EHANDSHAKE);
}

/* The time of the present state is over. Input that has arrived in time is read first. */
void spokei_http_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_http_conn *conn = spoke_container_of(timer, struct spokei_http_conn, timer);

	(void)arg;
	if (!conn->open) {
		end_unopened(conn);
		return;
	}
	if (conn->state != SPOKEI_HTTP_READING) {
		spokei_http_close(conn);
		return;
	}
	read_some(conn);
	if (conn->state == SPOKEI_HTTP_READING)
		serve(conn, SPOKEI_HTTP_TIMEOUT, &unknown);
}
