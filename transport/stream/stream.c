/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of all kinds of streams. */
#include "transport/stream/stream.h"

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
