/* SPDX-License-Identifier: Apache-2.0 */
/* A peer without an engine: see peer.h. */
#include "tests/cluster/peer.h"

#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "transport/conn/link.h"

#include <errno.h>

#define OUT_MAX ((size_t)1 << 25)
#define BACKLOG 16
#define READ_SIZE 65536

void peer_init(struct peer *peer, struct spokei_world *world)
{
	struct spokei_link_limits limits;

	spokei_link_limits_init(&limits);
	peer->limits = limits.wire;
	spokei_world_process_init(&peer->process, world);
}

void peer_fini(struct peer *peer)
{
	scene_kill(&peer->process);
	assert_int_equal(peer->process.blocks, 0);
}

int peer_listen(struct peer *peer, const char *at)
{
	const struct spoke_env *env = &peer->process.env;
	struct spoke_address address;
	int fd;
	int error = env->net->parse(env->ctx, at, &address);

	if (error == 0)
		error = env->net->listen(env->ctx, &address, BACKLOG, &fd);
	return error ? error : fd;
}

int peer_accept(struct peer *peer, int listener)
{
	const struct spoke_env *env = &peer->process.env;
	struct spoke_address from;
	int fd;
	int error = env->net->accept(env->ctx, listener, &fd, &from);

	return error ? error : fd;
}

int peer_connect(struct peer *peer, const char *to)
{
	const struct spoke_env *env = &peer->process.env;
	struct spoke_address address;
	int fd = -1;
	int error = env->net->parse(env->ctx, to, &address);

	if (error == 0)
		error = env->net->connect(env->ctx, &address, &fd);
	return error == 0 || error == -EINPROGRESS ? fd : error;
}

void peer_open(struct peer *peer, struct peer_conn *conn, int fd, const struct spokei_wire *wire)
{
	*conn = (struct peer_conn){ .peer = peer, .fd = fd, .wire = wire };
	spokei_intake_init(&conn->in, &peer->process.env, &peer->limits);
	conn->in.wire = wire;
	spokei_buffer_init(&conn->out, &peer->process.env, OUT_MAX);
}

void peer_close(struct peer_conn *conn)
{
	const struct spoke_env *env;

	if (conn->fd < 0)
		return;
	env = &conn->peer->process.env;
	env->net->close(env->ctx, conn->fd);
	conn->fd = -1;
	spokei_intake_fini(&conn->in);
	spokei_buffer_fini(&conn->out);
}

void peer_put(struct peer_conn *conn, const struct spokei_message *message)
{
	(void)conn->wire->write(&conn->peer->limits, message, &conn->out);
}

void peer_put_bytes(struct peer_conn *conn, struct spoke_span bytes)
{
	if (bytes.len)
		(void)!spokei_buffer_append(&conn->out, bytes.data, bytes.len);
}

size_t peer_write(struct peer_conn *conn, size_t max)
{
	const struct spoke_env *env = &conn->peer->process.env;
	size_t len = spokei_buffer_len(&conn->out);
	struct iovec part = { spokei_buffer_data(&conn->out), len < max ? len : max };
	ssize_t took = part.iov_len ? env->net->write(env->ctx, conn->fd, &part, 1) : 0;

	if (took > 0)
		spokei_buffer_consume(&conn->out, (size_t)took);
	return spokei_buffer_len(&conn->out);
}

void peer_take(struct peer_conn *conn, struct spoke_span bytes,
	       void (*take)(void *arg, struct peer_conn *conn,
			    const struct spokei_message *message),
	       void *arg)
{
	struct spokei_message message;

	for (;;) {
		switch (spokei_intake_next(&conn->in, &bytes, &message)) {
		case SPOKEI_INTAKE_MESSAGE:
			if (take)
				take(arg, conn, &message);
			break;
		case SPOKEI_INTAKE_BAD_BODY:
		case SPOKEI_INTAKE_BROKEN:
			conn->broken = true;
			return;
		case SPOKEI_INTAKE_MORE:
			return;
		}
	}
}

void peer_read(struct peer_conn *conn,
	       void (*take)(void *arg, struct peer_conn *conn,
			    const struct spokei_message *message),
	       void *arg)
{
	static unsigned char bytes[READ_SIZE];
	const struct spoke_env *env = &conn->peer->process.env;

	while (!conn->ended) {
		ssize_t got = env->net->read(env->ctx, conn->fd, bytes, sizeof(bytes));

		if (got == -EAGAIN)
			return;
		conn->ended = got <= 0;
		if (got > 0)
			peer_take(conn, spokei_span(bytes, (size_t)got), take, arg);
	}
}
