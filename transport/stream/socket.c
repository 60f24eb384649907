/* SPDX-License-Identifier: Apache-2.0 */
/* The plain stream: a socket without any layer on top. */
#include "transport/stream/stream.h"

static int socket_open(struct spokei_stream *stream)
{
	(void)stream;
	return 0;
}

static ssize_t socket_read(struct spokei_stream *stream, void *bytes, size_t len)
{
	const struct spoke_env *env = stream->engine->env;

	return env->net->read(env->ctx, stream->watch.fd, bytes, len);
}

static ssize_t socket_write(struct spokei_stream *stream, const struct iovec *parts, int count)
{
	const struct spoke_env *env = stream->engine->env;

	return env->net->write(env->ctx, stream->watch.fd, parts, count);
}

static int socket_shut(struct spokei_stream *stream)
{
	const struct spoke_env *env = stream->engine->env;

	return env->net->shut(env->ctx, stream->watch.fd);
}

static ssize_t socket_unsent(const struct spokei_stream *stream)
{
	const struct spoke_env *env = stream->engine->env;

	return env->net->unsent(env->ctx, stream->watch.fd);
}

static int socket_guard(struct spokei_stream *stream, uint64_t unanswered_ns, uint64_t keepalive_ns)
{
	const struct spoke_env *env = stream->engine->env;

	return env->net->guard(env->ctx, stream->watch.fd, unanswered_ns, keepalive_ns);
}

const struct spokei_stream_kind spokei_stream_socket = {
	.name = "socket",
	.open = socket_open,
	.read = socket_read,
	.write = socket_write,
	.shut = socket_shut,
	.unsent = socket_unsent,
	.guard = socket_guard,
};
