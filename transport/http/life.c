/* SPDX-License-Identifier: Apache-2.0 */
/* State of an HTTP connection: its timer, its readiness, its end. */
#include "core/base/env.h"
#include "transport/http/connection.h"
#include "transport/http/parts.h"

bool spokei_http_arm(struct spokei_http_conn *conn, uint64_t delay_ns)
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

void spokei_http_disarm(struct spokei_http_conn *conn)
{
	(void)spoke_wheel_cancel(conn->server->engine->wheel, &conn->timer);
}

void spokei_http_watch(struct spokei_http_conn *conn, bool output)
{
	unsigned io = conn->ended ? 0 : SPOKE_IO_READ;

	if (output)
		io |= SPOKE_IO_WRITE;
	if (SPOKEI_UNLIKELY(conn->stream.layered))
		io = conn->stream.kind->wants(&conn->stream, io);
	spokei_stream_watch(&conn->stream, io);
}

void spokei_http_blame(struct spokei_http_conn *conn, enum spoke_stat stat, int error)
{
	const char *title = conn->server->up->title;
	const struct spokei_stream_blame blame = {
		.title = title ? title : "",
		.peer = &conn->peer,
		.stat = stat,
		.error = error,
		.events = &conn->server->blames,
	};

	spokei_stream_blame(&conn->stream, &blame);
	spokei_http_close(conn);
}

bool spokei_http_open(struct spokei_http_conn *conn)
{
	int status = conn->stream.kind->open(&conn->stream);

	if (status == 0 && !spokei_http_arm(conn, conn->server->limits.request_ns))
		status = -ENOMEM;
	conn->open = status == 0;
	if (status == 0 || status == SPOKEI_STREAM_MORE || spokei_http_waits(status))
		spokei_http_watch(conn, false);
	else if (status == -EPROTO)
		spokei_http_blame(conn, SPOKE_STAT_CLOSED_HANDSHAKE, SPOKE_EHANDSHAKE);
	else
		spokei_http_close(conn);
	return conn->open;
}

size_t spokei_http_size(const struct spokei_http_server *server)
{
	return sizeof(struct spokei_http_conn) + server->up->user_size;
}

void spokei_http_bury(struct spokei_task *task)
{
	struct spokei_http_conn *conn = spoke_container_of(task, struct spokei_http_conn, bury);

	spokei_buffer_fini(&conn->in);
	spokei_buffer_fini(&conn->out);
	spokei_free(conn->server->engine->env, conn, 1, spokei_http_size(conn->server));
}

void spokei_http_leave(struct spokei_http_conn *conn)
{
	if (conn->state == SPOKEI_HTTP_STREAMING)
		conn->server->stream_count--;
	spokei_list_remove(&conn->node);
}

void spokei_http_shut_down(struct spokei_http_conn *conn)
{
	struct spoke_engine *engine = conn->server->engine;

	if (conn->state == SPOKEI_HTTP_READING)
		conn->server->reading_count--;
	spokei_http_leave(conn);
	conn->state = SPOKEI_HTTP_CLOSED;
	spokei_http_disarm(conn);
	spokei_stream_close(&conn->stream);
	spokei_count(engine, SPOKE_STAT_CLOSED);
	spokei_engine_dead(engine, &conn->bury);
}

void spokei_http_close(struct spokei_http_conn *conn)
{
	if (conn->state == SPOKEI_HTTP_CLOSED)
		return;
	spokei_http_shut_down(conn);
	conn->server->up->closed(conn);
}

int spokei_http_detach(struct spokei_http_conn *conn)
{
	int fd = conn->stream.watch.fd;

	SPOKE_ASSERT(conn->state == SPOKEI_HTTP_SERVING);
	if (conn->ended || conn->surplus || conn->stream.layered ||
	    spokei_buffer_len(&conn->out) > 0)
		return -1;
	spokei_stream_watch(&conn->stream, 0);
	conn->stream.watch.fd = -1;
	spokei_http_leave(conn);
	conn->state = SPOKEI_HTTP_CLOSED;
	spokei_http_disarm(conn);
	spokei_engine_dead(conn->server->engine, &conn->bury);
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
	return conn->state == SPOKEI_HTTP_STREAMING;
}

bool spokei_http_idle(const struct spokei_http_conn *conn)
{
	return conn->state == SPOKEI_HTTP_STREAMING && spokei_buffer_len(&conn->out) == 0;
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
