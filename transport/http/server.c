/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server side of HTTP/1.1: the state of a connection and its end, responses, requests and their
 * time, and the server.
 */
#include "transport/http/server.h"

#include "core/base/env.h"
#include "core/base/pace.h"
#include "core/memory/buffer.h"
#include "timer/base.h"
#include "transport/http/request.h"
#include "transport/http/response.h"
#include "transport/stream/stream.h"

#include <spoke/env.h>
#include <spoke/wheel.h>

#include <errno.h>
#include <stdio.h>

/* --- the state of a connection, and its end */

enum spokei_http_state {
	READING,    /* the request is incomplete */
	SERVING,    /* the user has the request, and has not responded yet */
	RESPONDING, /* the rest of the response waits to be written */
	STREAMING,  /* the user appends to the response until it ends the stream */
	LINGERING,  /* all is written; the peer closes first, because closing a socket
		     * with unread input would destroy the response */
	CLOSED,     /* freed when the turn ends */
};

struct spokei_http_conn {
	struct spoke_list node; /* of the server */
	struct spokei_http_server *server;
	struct spokei_stream stream;
	struct spoke_timer timer; /* of the state; not armed while a stream has no output */
	struct spoke_address peer;
	struct spokei_buffer in;
	size_t body_max; /* of the server, when the connection was accepted */
	size_t whole;    /* bytes of the request; 0: its head is incomplete */
	struct spokei_buffer out;
	enum spokei_http_state state;
	bool open;      /* the stream is */
	bool head_only; /* the request is a HEAD: its response has no body */
	bool inside;    /* up->request() is running: the response is written when it returns */
	bool ended;     /* the peer sends no more */
	bool surplus;   /* the peer has sent more than the request */
	bool continued; /* status 100 was given for the body */
	struct spokei_task finalise;
	max_align_t user[]; /* server->up->user_size bytes */
};

static inline struct spokei_http_conn *conn_of(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_http_conn, node);
}

/* Must the operation be repeated when the loop reports readiness? */
static inline bool spokei_http_waits(ssize_t got)
{
	return got == -EAGAIN || got == -EINTR;
}

/* Arms the timer, or moves it. Returns false if the wheel has no room. */
static bool arm(struct spokei_http_conn *conn, uint64_t delay_ns)
{
	struct spoke_engine *engine = conn->server->engine;
	uint64_t due_ns = spokei_later(engine->begin_ns, delay_ns);
	int status;

	if (spoke_timer_armed(&conn->timer))
		status = spoke_wheel_reschedule(engine->wheel, &conn->timer, due_ns);
	else
		status = spoke_wheel_schedule(engine->wheel, &conn->timer,
					      conn->server->timer_class, due_ns);
	return status == SPOKE_WHEEL_OK;
}

static void disarm(struct spokei_http_conn *conn)
{
	(void)spoke_wheel_cancel(conn->server->engine->wheel, &conn->timer);
}

/* Waits for input until the peer has ended its side; for output where there is some. */
static void watch_io(struct spokei_http_conn *conn, bool output)
{
	unsigned io = conn->ended ? 0 : SPOKE_IO_READ;

	if (output)
		io |= SPOKE_IO_WRITE;
	if (SPOKEI_UNLIKELY(conn->stream.layered))
		io = conn->stream.kind->wants(&conn->stream, io);
	spokei_stream_watch(&conn->stream, io);
}

/* Closes a connection because of its peer, counts the reason and reports it. */
static void close_with_error(struct spokei_http_conn *conn, enum spoke_stat stat, int error)
{
	const char *title = conn->server->up->title;
	const struct spokei_stream_blame blame = {
		.title = title ? title : "",
		.peer = &conn->peer,
		.stat = stat,
		.error = error,
		.events = &conn->server->reports,
	};

	spokei_stream_blame(&conn->stream, &blame);
	spokei_http_close(conn);
}

/* Opens the stream, or goes on to do so. Returns whether it is open. May close. */
static bool open_stream(struct spokei_http_conn *conn)
{
	int status = conn->stream.kind->open(&conn->stream);

	if (status == 0 && !arm(conn, conn->server->limits.request_ns))
		status = -ENOMEM;
	conn->open = status == 0;
	if (status == 0 || status == SPOKEI_STREAM_MORE || spokei_http_waits(status))
		watch_io(conn, false);
	else if (status == -EPROTO)
		close_with_error(conn, SPOKE_STAT_CLOSED_HANDSHAKE, SPOKE_EHANDSHAKE);
	else
		spokei_http_close(conn);
	return conn->open;
}

/* Returns the bytes of a connection's memory. */
static size_t size_of(const struct spokei_http_server *server)
{
	return sizeof(struct spokei_http_conn) + server->up->user_size;
}

/* Frees a connection; the function of conn->finalise. */
static void finalise(struct spokei_task *task)
{
	struct spokei_http_conn *conn = spoke_container_of(task, struct spokei_http_conn, finalise);

	spokei_buffer_fini(&conn->in);
	spokei_buffer_fini(&conn->out);
	spokei_free(conn->server->engine->env, conn, 1, size_of(conn->server));
}

/* Takes a connection off the lists of its server. */
static void leave(struct spokei_http_conn *conn)
{
	if (conn->state == STREAMING)
		conn->server->stream_count--;
	spokei_list_remove(&conn->node);
}

/* Closes without calling up->closed(). */
static void shut_down(struct spokei_http_conn *conn)
{
	struct spoke_engine *engine = conn->server->engine;

	if (conn->state == READING)
		conn->server->reading_count--;
	leave(conn);
	conn->state = CLOSED;
	disarm(conn);
	spokei_stream_close(&conn->stream);
	spokei_count(engine, SPOKE_STAT_CLOSED);
	spokei_run_freeing(engine, &conn->finalise);
}

void spokei_http_close(struct spokei_http_conn *conn)
{
	if (conn->state == CLOSED)
		return;
	shut_down(conn);
	conn->server->up->closed(conn);
}

int spokei_http_detach(struct spokei_http_conn *conn)
{
	int fd = conn->stream.watch.fd;

	SPOKE_ASSERT(conn->state == SERVING);
	if (conn->ended || conn->surplus || conn->stream.layered ||
	    spokei_buffer_len(&conn->out) > 0)
		return -1;
	spokei_stream_watch(&conn->stream, 0);
	conn->stream.watch.fd = -1;
	leave(conn);
	conn->state = CLOSED;
	disarm(conn);
	spokei_run_freeing(conn->server->engine, &conn->finalise);
	return fd;
}

/* --- for the user */

void *spokei_http_user(struct spokei_http_conn *conn)
{
	return conn->user;
}

struct spokei_http_server *spokei_http_server_of(const struct spokei_http_conn *conn)
{
	return conn->server;
}

void spokei_http_peer(const struct spokei_http_conn *conn, char text[SPOKEI_HTTP_ADDRESS])
{
	const struct spoke_env *env = conn->server->engine->env;

	env->net->print(env->ctx, &conn->peer, text, SPOKEI_HTTP_ADDRESS);
}

const struct spoke_address *spokei_http_peer_address(const struct spokei_http_conn *conn)
{
	return &conn->peer;
}

bool spokei_http_is_known(const struct spokei_http_conn *conn)
{
	const struct spoke_span *names;

	return spokei_stream_names(&conn->stream, &names) > 0;
}

bool spokei_http_streams(const struct spokei_http_conn *conn)
{
	return conn->state == STREAMING;
}

bool spokei_http_idle(const struct spokei_http_conn *conn)
{
	return conn->state == STREAMING && spokei_buffer_len(&conn->out) == 0;
}

bool spokei_http_local(const struct spokei_http_conn *conn, char text[SPOKEI_HTTP_ADDRESS])
{
	const struct spoke_env *env = conn->server->engine->env;
	struct spoke_address address;

	if (env->net->local(env->ctx, conn->stream.watch.fd, &address))
		return false;
	env->net->print(env->ctx, &address, text, SPOKEI_HTTP_ADDRESS);
	return true;
}

/* --- responses
 *
 * Writes HTTP responses and streams, and ends a connection after its response. */

static void call_sent(struct spokei_http_conn *conn)
{
	if (conn->server->up->sent)
		conn->server->up->sent(conn);
}

static void begin_to_linger(struct spokei_http_conn *conn)
{
	leave(conn);
	spokei_list_append(&conn->server->lingering, &conn->node);
	conn->state = LINGERING;
	(void)conn->stream.kind->shut(&conn->stream);
	if (!conn->ended && arm(conn, conn->server->limits.linger_ns))
		watch_io(conn, false);
	else
		spokei_http_close(conn);
}

static void wrote_all(struct spokei_http_conn *conn)
{
	if (conn->state != STREAMING) {
		begin_to_linger(conn);
		call_sent(conn);
		return;
	}
	disarm(conn);
	watch_io(conn, false);
	if (conn->server->up->writable)
		conn->server->up->writable(conn);
}

static void write_failed(struct spokei_http_conn *conn)
{
	bool streams = conn->state == STREAMING;

	spokei_http_close(conn);
	if (!streams)
		call_sent(conn);
}

/* A response has a time for all of it, a stream for each progress. */
static void wait_to_write(struct spokei_http_conn *conn, bool moved)
{
	if (conn->state == STREAMING && moved && !arm(conn, conn->server->limits.slow_ns))
		spokei_http_close(conn);
	else
		watch_io(conn, true);
}

/* Does output wait to be written? */
static bool has_output(const struct spokei_http_conn *conn)
{
	return conn->state == RESPONDING || (conn->state == STREAMING && !spokei_http_idle(conn));
}

/* Has the stream passed on all that it has taken? It may hold the end of a response, whose time
 * goes on until then. Returns 0 or a negative errno. */
static int pass_on(struct spokei_http_conn *conn)
{
	if (SPOKEI_LIKELY(!conn->stream.layered) || conn->state == STREAMING)
		return 0;
	return conn->stream.kind->flush(&conn->stream);
}

/* Writes the output that waits. May close. */
static void flush_output(struct spokei_http_conn *conn)
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
		watch_io(conn, true);
}

static int put_response(struct spokei_http_conn *conn, const struct spokei_http_response *response,
			const void *body, size_t len)
{
	size_t before = spokei_buffer_len(&conn->out); /* of status 100 */
	int error;

	if (conn->state == CLOSED)
		return SPOKE_ECLOSED;
	SPOKE_ASSERT(conn->state == SERVING);
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
		begin_to_write(conn, RESPONDING);
	return error;
}

void spokei_http_respond_text(struct spokei_http_conn *conn, int status, const char *allow,
			      const char *sentence)
{
	char line[SPOKEI_HTTP_SENTENCE];
	const struct spokei_http_response response = {
		.status = status,
		.type = "text/plain; charset=utf-8",
		.len = (size_t)snprintf(line, sizeof(line), "%s\n", sentence),
		.allow = allow,
	};

	SPOKE_ASSERT(response.len < sizeof(line));
	if (spokei_http_respond(conn, &response, line))
		spokei_http_close(conn);
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
		begin_to_write(conn, RESPONDING);
		return SPOKE_OK;
	}
	leave(conn);
	spokei_list_append(&conn->server->streams, &conn->node);
	conn->server->stream_count++;
	begin_to_write(conn, STREAMING);
	return SPOKE_OK;
}

int spokei_http_send(struct spokei_http_conn *conn, const void *bytes, size_t len)
{
	const struct iovec part = spokei_stream_part(bytes, len);
	bool idle = spokei_http_idle(conn);
	ssize_t wrote = 0;
	int error;

	if (conn->state != STREAMING)
		return SPOKE_ECLOSED;
	if (idle)
		wrote = conn->stream.kind->write(&conn->stream, &part, 1);
	if (wrote < 0 && !spokei_http_waits(wrote))
		return SPOKE_ELOST;
	if (wrote < 0)
		wrote = 0;
	if ((size_t)wrote == len) {
		watch_io(conn, false); /* the stream may hold some of it */
		return SPOKE_OK;
	}
	error = spokei_buffer_append(&conn->out, (const char *)bytes + wrote, len - (size_t)wrote);
	if (error || !idle)
		return error;
	watch_io(conn, true);
	return arm(conn, conn->server->limits.slow_ns) ? SPOKE_OK : SPOKE_ELIMIT;
}

void spokei_http_end(struct spokei_http_conn *conn)
{
	if (conn->state != STREAMING)
		return;
	leave(conn);
	spokei_list_append(&conn->server->conns, &conn->node);
	begin_to_write(conn, RESPONDING);
	if (!arm(conn, conn->server->limits.slow_ns))
		spokei_http_close(conn);
}

void spokei_http_finish_stream(struct spokei_stream *stream)
{
	spokei_http_end(spoke_container_of(stream, struct spokei_http_conn, stream));
}

/* --- requests
 *
 * Reads HTTP requests, hands them to the user, and checks the timeouts of connections. */

#define BAD_REQUEST 400
#define TOO_LONG 413

/* `verdict`: the result of spokei_http_read(), or the status of an error. */
static void serve(struct spokei_http_conn *conn, int verdict,
		  const struct spokei_http_request *request)
{
	conn->state = SERVING;
	conn->server->reading_count--;
	spokei_list_remove(&conn->node);
	spokei_list_append(&conn->server->conns, &conn->node);
	conn->head_only = request->method == SPOKEI_HTTP_HEAD;
	if (!arm(conn, conn->server->limits.slow_ns)) {
		spokei_http_close(conn);
		return;
	}
	conn->inside = true;
	if (verdict == SPOKEI_HTTP_WHOLE)
		conn->server->up->request(conn, request);
	else if (verdict == TOO_LONG && conn->server->up->too_long)
		conn->server->up->too_long(conn, request);
	else
		spokei_http_respond_text(conn, verdict, NULL, spokei_http_fault(verdict));
	conn->inside = false;
	spokei_buffer_fini(&conn->in);
	if (conn->state == RESPONDING || conn->state == STREAMING)
		flush_output(conn);
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

	if (spokei_bucket_take(&server->reports, 1, server->engine->begin_ns)) {
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

	if (conn->state == READING)
		room -= spokei_buffer_len(&conn->in);
	got = conn->stream.kind->read(&conn->stream, scratch, room);
	if (spokei_http_waits(got))
		return;
	if (got > 0) {
		if (conn->state == READING)
			take(conn, scratch, (size_t)got);
		else
			conn->surplus = true;
		return;
	}
	/* E.g. the peer refuses this side's certificate, or bytes were changed. */
	if (got == -EPROTO) {
		close_with_error(conn, SPOKE_STAT_CLOSED_PROTOCOL, SPOKE_EPROTOCOL);
		return;
	}
	/* A peer that has ended its side after the request still reads the response. */
	if (got == 0 && (conn->state == SERVING || conn->state == RESPONDING)) {
		conn->ended = true;
		watch_io(conn, conn->state == RESPONDING);
	} else {
		spokei_http_close(conn);
	}
}

/* The stream may have to read in order to write, and to write in order to read. All bytes that it
 * has received are read in this turn; one call of the system gives no more than that. */
static void ready_layered(struct spokei_http_conn *conn)
{
	int status;

	if (!conn->open && !open_stream(conn))
		return;
	if (!conn->ended)
		read_some(conn);
	while (conn->state != CLOSED && !conn->ended && spokei_stream_pending(&conn->stream) > 0)
		read_some(conn);
	if (conn->state != CLOSED && has_output(conn))
		flush_output(conn);
	if (conn->state == CLOSED)
		return;
	/* The stream may be a plain socket from now on. */
	status = conn->stream.layered ? conn->stream.kind->flush(&conn->stream) : 0;
	if (status < 0 && !spokei_http_waits(status))
		spokei_http_close(conn);
	else
		watch_io(conn, has_output(conn));
}

/* The functions of the stream's watch, and of the timer's class. */
static void on_ready(struct spoke_watch *watch, unsigned io)
{
	struct spokei_stream *stream = spoke_container_of(watch, struct spokei_stream, watch);
	struct spokei_http_conn *conn = spoke_container_of(stream, struct spokei_http_conn, stream);

	if (SPOKEI_UNLIKELY(conn->stream.layered)) {
		ready_layered(conn);
		return;
	}
	if (io & SPOKE_IO_READ)
		read_some(conn);
	if ((io & SPOKE_IO_WRITE) && has_output(conn))
		flush_output(conn);
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
	close_with_error(conn, SPOKE_STAT_CLOSED_HANDSHAKE, SPOKE_EHANDSHAKE);
}

/* The time of the present state is over. Input that has arrived in time is read first. */
static void on_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_http_conn *conn = spoke_container_of(timer, struct spokei_http_conn, timer);

	(void)arg;
	if (!conn->open) {
		end_unopened(conn);
		return;
	}
	if (conn->state != READING) {
		spokei_http_close(conn);
		return;
	}
	read_some(conn);
	if (conn->state == READING)
		serve(conn, SPOKEI_HTTP_TIMEOUT, &unknown);
}

/* --- the server */

#define REPORTS 10u /* events a second */

int spokei_http_server_init(struct spokei_http_server *server, struct spoke_engine *engine,
			    const struct spokei_http_up *up,
			    const struct spokei_http_limits *limits)
{
	*server = (struct spokei_http_server){ .engine = engine, .up = up };
	if (limits)
		server->limits = *limits;
	if (server->limits.out_max == 0)
		server->limits.out_max = SPOKEI_HTTP_OUT_MAX;
	if (server->limits.body_max == 0)
		server->limits.body_max = SPOKEI_HTTP_BODY_MAX;
	if (server->limits.request_ns == 0)
		server->limits.request_ns = SPOKEI_HTTP_REQUEST_NS;
	if (server->limits.slow_ns == 0)
		server->limits.slow_ns = SPOKEI_HTTP_SLOW_NS;
	if (server->limits.linger_ns == 0)
		server->limits.linger_ns = SPOKEI_HTTP_LINGER_NS;
	SPOKE_ASSERT(SPOKEI_HTTP_HEAD_MAX + server->limits.body_max <= SPOKEI_ENGINE_SCRATCH);
	server->reports = spokei_bucket_make(REPORTS, REPORTS, engine->env->now(engine->env->ctx));
	spokei_list_init(&server->reading);
	spokei_list_init(&server->conns);
	spokei_list_init(&server->streams);
	spokei_list_init(&server->lingering);
	return spokei_engine_class(engine, "http", on_due, &server->timer_class);
}

int spokei_http_accept(struct spokei_http_server *server, int fd, const struct spoke_address *peer,
		       struct spokei_http_conn **ret_conn)
{
	const struct spoke_env *env = server->engine->env;
	struct spokei_http_conn *conn = spokei_alloc(env, 1, size_of(server));

	if (conn == NULL) {
		env->net->close(env->ctx, fd);
		spokei_count(server->engine, SPOKE_STAT_CLOSED);
		return SPOKE_ENOMEM;
	}
	conn->server = server;
	conn->peer = *peer;
	conn->finalise.run = finalise;
	conn->body_max = server->limits.body_max;
	spokei_buffer_init(&conn->in, env, SPOKEI_HTTP_HEAD_MAX + conn->body_max);
	spokei_buffer_init(&conn->out, env, server->limits.out_max);
	spokei_stream_init(&conn->stream, server->engine, &spokei_stream_socket, fd, on_ready);
	conn->stream.accepted = true;
	if (server->stream)
		spokei_stream_use(&conn->stream, server->stream);
	conn->open = !conn->stream.layered;
	spokei_list_append(&server->reading, &conn->node);
	server->reading_count++;
	if (!arm(conn, conn->open || server->limits.open_ns == 0 ? server->limits.request_ns
								 : server->limits.open_ns)) {
		shut_down(conn);
		return SPOKE_ELIMIT;
	}
	watch_io(conn, false);
	*ret_conn = conn;
	return SPOKE_OK;
}

bool spokei_http_drop_unread(struct spokei_http_server *server)
{
	if (spokei_list_empty(&server->reading))
		return false;
	spokei_count(server->engine, SPOKE_STAT_CLOSED_MUTE);
	spokei_http_close(conn_of(server->reading.next));
	return true;
}

/* The system still delivers a response that was written before its connection is closed. */
bool spokei_http_make_room(struct spokei_http_server *server)
{
	if (spokei_list_empty(&server->lingering))
		return spokei_http_drop_unread(server);
	spokei_http_close(conn_of(server->lingering.next));
	return true;
}

static void close_all(struct spoke_list *conns)
{
	while (!spokei_list_empty(conns))
		spokei_http_close(conn_of(conns->next));
}

void spokei_http_server_close(struct spokei_http_server *server)
{
	close_all(&server->reading);
	close_all(&server->conns);
	close_all(&server->streams);
	close_all(&server->lingering);
}

void spokei_http_server_drain(struct spokei_http_server *server)
{
	struct spoke_list *streams = &server->streams;

	while (!spokei_list_empty(streams))
		spokei_http_end(conn_of(streams->next));
}

struct spokei_http_conn *spokei_http_next_stream(const struct spokei_http_server *server,
						 const struct spokei_http_conn *before)
{
	struct spoke_list *node = before ? before->node.next : server->streams.next;

	return node == &server->streams ? NULL : conn_of(node);
}
