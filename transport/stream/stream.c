/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of all kinds of streams, and the plain stream: a socket without any layer on top.
 */
#include "transport/stream/stream.h"

#include "core/base/pace.h"

#include <string.h>

/* --- sockets */

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

/* --- all kinds */

#define ADDRESS_TEXT 160u

void spokei_stream_init(struct spokei_stream *stream, struct spoke_engine *engine,
			const struct spokei_stream_kind *kind, int fd,
			void (*ready)(struct spoke_watch *watch, unsigned io))
{
	*stream = (struct spokei_stream){
		.engine = engine,
		.watch = { .ready = ready, .fd = fd },
		.low = SIZE_MAX,
	};
	spokei_stream_use(stream, kind);
}

void spokei_stream_close(struct spokei_stream *stream)
{
	const struct spoke_env *env = stream->engine->env;

	if (stream->watch.fd < 0)
		return;
	spokei_stream_watch(stream, 0);
	if (stream->kind->close)
		stream->kind->close(stream);
	stream->state = NULL;
	env->net->close(env->ctx, stream->watch.fd);
	stream->watch.fd = -1;
}

void spokei_stream_blame(const struct spokei_stream *stream,
			 const struct spokei_stream_blame *blame)
{
	const bool of_handshake = blame->stat == SPOKE_STAT_CLOSED_HANDSHAKE;
	enum spoke_event_user user = SPOKE_EVENT_OF_NONE;
	struct spoke_engine *engine = stream->engine;
	char peer[ADDRESS_TEXT] = "";
	const char *why = blame->why;

	spokei_count(engine, blame->stat);
	if (blame->stat == SPOKE_STAT_CLOSED_BY_PEER ||
	    !spokei_bucket_take(blame->events, 1, engine->begin_ns))
		return;
	if (blame->stat == SPOKE_STAT_CLOSED_SILENT || blame->stat == SPOKE_STAT_CLOSED_IDLE)
		user = SPOKE_EVENT_OF_HEARTBEAT;
	engine->env->net->print(engine->env->ctx, blame->peer, peer, sizeof(peer));
	if (why == NULL && (of_handshake || blame->stat == SPOKE_STAT_CLOSED_PROTOCOL))
		why = spokei_stream_why(stream);
	if (of_handshake && why == NULL)
		why = "it was not over in time";
	spokei_event_of(engine, user, blame->error, "%sconnection of %s closed %s%s%s",
			blame->title, peer, spoke_stat_sentence(blame->stat) + strlen("... "),
			why ? ": " : "", why ? why : "");
}
