/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP server: accepts connections, ends its streams, closes everything. */
#include "core/base/env.h"
#include "transport/http/connection.h"
#include "transport/http/parts.h"
#include "transport/http/request.h"

#define BLAMES 10u /* events a second */

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
	server->blames = spokei_bucket_make(BLAMES, BLAMES, engine->env->now(engine->env->ctx));
	spokei_list_init(&server->reading);
	spokei_list_init(&server->conns);
	spokei_list_init(&server->streams);
	spokei_list_init(&server->lingering);
	return spokei_engine_class(engine, "http", spokei_http_due, &server->timer_class);
}

int spokei_http_accept(struct spokei_http_server *server, int fd, const struct spoke_address *peer,
		       struct spokei_http_conn **ret_conn)
{
	const struct spoke_env *env = server->engine->env;
	struct spokei_http_conn *conn = spokei_alloc(env, 1, spokei_http_size(server));

	if (conn == NULL) {
		env->net->close(env->ctx, fd);
		spokei_count(server->engine, SPOKE_STAT_CLOSED);
		return SPOKE_ENOMEM;
	}
	conn->server = server;
	conn->peer = *peer;
	conn->bury.run = spokei_http_bury;
	conn->body_max = server->limits.body_max;
	spokei_buffer_init(&conn->in, env, SPOKEI_HTTP_HEAD_MAX + conn->body_max);
	spokei_buffer_init(&conn->out, env, server->limits.out_max);
	spokei_stream_init(&conn->stream, server->engine, &spokei_stream_socket, fd,
			   spokei_http_ready);
	conn->stream.accepted = true;
	if (server->stream)
		spokei_stream_use(&conn->stream, server->stream);
	conn->open = !conn->stream.layered;
	spokei_list_append(&server->reading, &conn->node);
	server->reading_count++;
	if (!spokei_http_arm(conn, conn->open || server->limits.open_ns == 0
					   ? server->limits.request_ns
					   : server->limits.open_ns)) {
		spokei_http_shut_down(conn);
		return SPOKE_ELIMIT;
	}
	spokei_http_watch(conn, false);
	*ret_conn = conn;
	return SPOKE_OK;
}

bool spokei_http_drop_unread(struct spokei_http_server *server)
{
	if (spokei_list_empty(&server->reading))
		return false;
	spokei_count(server->engine, SPOKE_STAT_CLOSED_MUTE);
	spokei_http_close(spokei_http_conn_of(server->reading.next));
	return true;
}

/* The system still delivers a response that was written before its connection is closed. */
bool spokei_http_make_room(struct spokei_http_server *server)
{
	if (spokei_list_empty(&server->lingering))
		return spokei_http_drop_unread(server);
	spokei_http_close(spokei_http_conn_of(server->lingering.next));
	return true;
}

static void close_all(struct spoke_list *conns)
{
	while (!spokei_list_empty(conns))
		spokei_http_close(spokei_http_conn_of(conns->next));
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
		spokei_http_end(spokei_http_conn_of(streams->next));
}

struct spokei_http_conn *spokei_http_next_stream(const struct spokei_http_server *server,
						 const struct spokei_http_conn *before)
{
	struct spoke_list *node = before ? before->node.next : server->streams.next;

	return node == &server->streams ? NULL : spokei_http_conn_of(node);
}
