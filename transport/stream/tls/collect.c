/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first bytes of accepted streams, until a ClientHello is whole. A silent peer costs nothing
 * here and a slow one what it has sent; the state of a TLS stream comes afterwards. Where plain
 * bytes are allowed the first byte decides, and the stream becomes a plain socket.
 */
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/stream/tls/hello.h"
#include "transport/stream/tls/parts.h"

#include <errno.h>
#include <string.h>

#define ROOM_MIN 12u /* bytes that the smallest cell has room for */

_Static_assert(SPOKEI_HELLO_BYTES + SPOKEI_TLS_PIECE <= SPOKEI_ENGINE_SCRATCH, "they fit");

/* The bytes so far: the state of a stream whose peer has sent some. */
struct cell {
	uint32_t len;
	uint32_t room;
	bool plain; /* the peer speaks plain bytes, and the stream is open */
	unsigned char bytes[];
};

/* Of all peers that have sent the first byte of a ClientHello and no other. */
static struct cell lone = { .len = 1 };
static const unsigned char lone_byte = 0x16;

/* --- the cell */

static struct spoke_span bytes_of(const struct cell *cell)
{
	if (cell == NULL)
		return (struct spoke_span){ NULL, 0 };
	return (struct spoke_span){ cell == &lone ? &lone_byte : cell->bytes, cell->len };
}

static void close_cell(struct spokei_stream *stream)
{
	struct cell *cell = stream->state;

	if (cell && cell != &lone)
		spokei_free(stream->engine->env, cell, 1, sizeof(*cell) + cell->room);
	stream->state = NULL;
}

/* Keeps the bytes, which begin with those of the cell. Returns 0 or -ENOMEM. */
static int keep(struct spokei_stream *stream, struct spoke_span bytes)
{
	const struct spoke_env *env = stream->engine->env;
	struct cell *cell = stream->state == &lone ? NULL : stream->state;
	size_t room = cell ? cell->room : 0;
	size_t more = room > 0 ? room : ROOM_MIN;

	if (bytes.len == 1 && *(const unsigned char *)bytes.data == lone_byte) {
		stream->state = &lone;
		return 0;
	}
	while (more < bytes.len)
		more *= 2;
	if (more > room) {
		cell = env->resize(env->ctx, cell, cell ? sizeof(*cell) + room : 0,
				   sizeof(*cell) + more);
		if (cell == NULL)
			return -ENOMEM;
		cell->room = (uint32_t)more;
		cell->plain = false;
		stream->state = cell;
	}
	memcpy(cell->bytes, bytes.data, bytes.len);
	cell->len = (uint32_t)bytes.len;
	return 0;
}

/* --- opening */

/* Receives into the scratch, behind the bytes that came before; *ret is all of them. Returns the
 * bytes received, 0 at the end, or a negative errno. */
static ssize_t receive(struct spokei_stream *stream, struct spoke_span *ret)
{
	const struct spoke_env *env = stream->engine->env;
	struct spoke_span before = bytes_of(stream->state);
	unsigned char *scratch = spokei_tls_of(stream)->scratch;
	ssize_t got = env->net->read(env->ctx, stream->watch.fd, scratch + before.len,
				     SPOKEI_TLS_PIECE);

	if (got <= 0)
		return got;
	if (before.len > 0)
		memcpy(scratch, before.data, before.len);
	*ret = (struct spoke_span){ scratch, before.len + (size_t)got };
	return got;
}

static int refuse(struct spokei_stream *stream, const char *text)
{
	spokei_tls_tell(stream, text, NULL);
	return -EPROTO;
}

static int open_plain(struct spokei_stream *stream, struct spoke_span bytes)
{
	struct spokei_tls *tls = spokei_tls_of(stream);

	if (stream->kind == &tls->or_plain) {
		struct cell *cell;
		int status = keep(stream, bytes);

		cell = stream->state;
		if (status == 0)
			cell->plain = true;
		return status;
	}
	spokei_count(tls->engine, SPOKE_STAT_HANDSHAKES_PLAIN);
	return refuse(stream, "the peer speaks plain bytes; set tls=on there");
}

static int collect(struct spokei_stream *stream)
{
	struct spoke_span bytes;
	ssize_t got = receive(stream, &bytes);
	int status;

	if (got == -EAGAIN || got == -EINTR)
		return SPOKEI_STREAM_MORE;
	if (got <= 0)
		return got == 0 ? -ECONNRESET : (int)got;
	switch (spokei_hello_judge(bytes)) {
	case SPOKEI_HELLO_WHOLE:
		close_cell(stream);
		return spokei_tls_accept(stream, bytes);
	case SPOKEI_HELLO_MORE:
		status = keep(stream, bytes);
		return status ? status : SPOKEI_STREAM_MORE;
	case SPOKEI_HELLO_PLAIN:
		return open_plain(stream, bytes);
	case SPOKEI_HELLO_BROKEN:
	default:
		return refuse(stream, "the peer's first bytes are no ClientHello");
	}
}

static int cell_open(struct spokei_stream *stream)
{
	if (stream->state == NULL)
		spokei_tls_forget(stream);
	return collect(stream);
}

/* --- plain bytes */

/* Gives those that came, and leaves the rest to the socket. */
static ssize_t read_plain(struct spokei_stream *stream, void *bytes, size_t len)
{
	struct cell *cell = stream->state;
	size_t count = cell->len < len ? cell->len : len;

	SPOKE_ASSERT(cell->plain);
	memcpy(bytes, cell->bytes, count);
	cell->len -= (uint32_t)count;
	memmove(cell->bytes, cell->bytes + count, cell->len);
	if (cell->len == 0) {
		close_cell(stream);
		spokei_stream_use(stream, &spokei_stream_socket);
	}
	return (ssize_t)count;
}

static size_t cell_pending(const struct spokei_stream *stream)
{
	const struct cell *cell = stream->state;

	return cell && cell->plain ? cell->len : 0;
}

static unsigned cell_wants(const struct spokei_stream *stream, unsigned io)
{
	const struct cell *cell = stream->state;

	return cell && cell->plain ? io : SPOKE_IO_READ;
}

/* It holds no bytes for the peer. */
static int cell_flush(struct spokei_stream *stream)
{
	(void)stream;
	return 0;
}

static uint64_t cell_passed(const struct spokei_stream *stream)
{
	(void)stream;
	return 0;
}

void spokei_tls_collector(struct spokei_stream_kind *ret)
{
	*ret = spokei_stream_socket;
	ret->name = "tls";
	ret->copies = true;
	ret->veiled = true;
	ret->open = cell_open;
	ret->read = read_plain;
	ret->wants = cell_wants;
	ret->pending = cell_pending;
	ret->flush = cell_flush;
	ret->passed = cell_passed;
	ret->why = spokei_tls_why;
	ret->close = close_cell;
}
