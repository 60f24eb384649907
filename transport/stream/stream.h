/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipe of bytes in both directions, and the table that a kind of it fills in: a plain socket, or
 * one with a handshake. Embedded in a connection, on the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_STREAM_STREAM_H
#define SPOKEI_TRANSPORT_STREAM_STREAM_H

#include "core/engine/engine.h"

#define SPOKEI_STREAM_MORE 1

struct spokei_stream;

/* Functions return 0 or a count, or a negative errno; -EAGAIN: when the watch says so. */
struct spokei_stream_kind {
	const char *name;
	/* The socket is connected. 0: the stream is ready; STREAM_MORE: a handshake goes on, call
	 * again when the watch says so. */
	int (*open)(struct spokei_stream *stream);
	ssize_t (*read)(struct spokei_stream *stream, void *bytes, size_t len); /* 0: the end */
	ssize_t (*write)(struct spokei_stream *stream, const struct iovec *parts, int count);
	/* Ends the direction that writes. */
	int (*shut)(struct spokei_stream *stream);
};

struct spokei_stream {
	struct spoke_engine *engine;
	const struct spokei_stream_kind *kind;
	struct spoke_watch watch; /* its fd: -1 when closed */
	unsigned io;              /* what is watched for */
};

/* A plain socket of env->net: tcp, unix or in memory. */
extern const struct spokei_stream_kind spokei_stream_socket;

/* Takes over a descriptor, which nobody watches yet. `ready` is called as the loop does. */
void spokei_stream_init(struct spokei_stream *stream, struct spoke_engine *engine,
			const struct spokei_stream_kind *kind, int fd,
			void (*ready)(struct spoke_watch *watch, unsigned io));

/* Watches for `io`, of enum spoke_io, and nothing else. */
static inline void spokei_stream_watch(struct spokei_stream *stream, unsigned io)
{
	if (stream->io == io)
		return;
	stream->io = io;
	stream->engine->env->loop->watch(stream->engine->loop, &stream->watch, io);
}

/* Closes the descriptor; a second time does nothing. */
void spokei_stream_close(struct spokei_stream *stream);

#endif
