/* SPDX-License-Identifier: Apache-2.0 */
/* A stream that opens with a handshake, splits, delays and holds bytes back. */
#include "tests/transport/stream/strange.h"

#include "core/base/env.h"
#include "core/memory/buffer.h"

#include <spoke/value.h>

#include <errno.h>

enum {
	HEAD = 3,     /* kind, length of what follows in two bytes */
	FRAME = 700,  /* bytes of a piece of data */
	CONSENT = 16, /* frames of data, until the peer has to consent to more */
	HOLD = 4096,  /* bytes of output that are held; more are not taken */
	PASS = 3000,  /* bytes that one flush passes on */
	PULL = 3000,  /* bytes that one call of the system reads */
	MASK = 0x5a,  /* of each byte of data */
	MAX = 64 * 1024 * 1024,
};

enum frame_kind {
	FRAME_HELLO,
	FRAME_DATA,
	FRAME_CONSENT,
};

struct strange {
	struct spokei_buffer raw;   /* read from the descriptor, less than a frame */
	struct spokei_buffer plain; /* unmasked, and not read */
	struct spokei_buffer out;   /* masked, and not written to the descriptor */
	struct spoke_span name;
	unsigned hellos; /* that have come */
	unsigned came;   /* frames of data since this side consented */
	unsigned sent;   /* ... since the peer did */
	uint64_t passed; /* bytes that the descriptor has taken */
	bool ended;      /* the peer's end has come */
	bool shut;       /* this side's end follows what is held */
	bool shut_done;
	bool unwritable; /* sticky: the direction that writes is broken */
	int error;       /* sticky: the direction that reads is */
};

static struct strange *strange_of(const struct spokei_stream *stream)
{
	return stream->state;
}

static bool needs_consent(const struct strange *strange)
{
	return strange->sent >= CONSENT && !strange->ended;
}

/* --- frames */

static int put_frame(struct strange *strange, enum frame_kind kind, const unsigned char *bytes,
		     size_t len)
{
	unsigned char *at = spokei_buffer_reserve(&strange->out, HEAD + len);

	if (at == NULL)
		return -ENOMEM;
	at[0] = (unsigned char)kind;
	at[1] = (unsigned char)(len >> 8);
	at[2] = (unsigned char)len;
	for (size_t i = 0; i < len; i++)
		at[HEAD + i] = bytes[i] ^ MASK;
	spokei_buffer_commit(&strange->out, HEAD + len);
	return 0;
}

static int take_data(struct strange *strange, const unsigned char *bytes, size_t len)
{
	unsigned char *at = spokei_buffer_reserve(&strange->plain, len);

	if (at == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++)
		at[i] = bytes[i] ^ MASK;
	spokei_buffer_commit(&strange->plain, len);
	if (++strange->came < CONSENT)
		return 0;
	strange->came = 0;
	return strange->shut ? 0 : put_frame(strange, FRAME_CONSENT, NULL, 0);
}

static int take_frame(struct spokei_stream *stream, enum frame_kind kind,
		      const unsigned char *bytes, size_t len)
{
	struct strange *strange = strange_of(stream);

	switch (kind) {
	case FRAME_HELLO:
		if (len != 0 || strange->hellos == STRANGE_ROUND_TRIPS)
			return -EPROTO;
		strange->hellos++;
		if (!stream->accepted && strange->hellos == STRANGE_ROUND_TRIPS)
			return 0;
		return put_frame(strange, FRAME_HELLO, NULL, 0);
	case FRAME_DATA:
		return strange->hellos == STRANGE_ROUND_TRIPS ? take_data(strange, bytes, len)
							      : -EPROTO;
	case FRAME_CONSENT:
		strange->sent = 0;
		return len == 0 ? 0 : -EPROTO;
	default:
		return -EPROTO;
	}
}

/* Takes whole frames out of the raw bytes. */
static int take_frames(struct spokei_stream *stream)
{
	struct strange *strange = strange_of(stream);
	int error = 0;

	while (!error && spokei_buffer_len(&strange->raw) >= HEAD) {
		const unsigned char *at = spokei_buffer_data(&strange->raw);
		size_t len;

		SPOKE_ASSERT(at != NULL);
		len = (size_t)at[1] << 8 | at[2];
		if (spokei_buffer_len(&strange->raw) < HEAD + len)
			return 0;
		error = take_frame(stream, (enum frame_kind)at[0], at + HEAD, len);
		spokei_buffer_consume(&strange->raw, HEAD + len);
	}
	return error;
}

/* Reads from the descriptor once. Returns the count, 0 at the end, or a negative errno. */
static ssize_t pull(struct spokei_stream *stream)
{
	const struct spoke_env *env = stream->engine->env;
	struct strange *strange = strange_of(stream);
	unsigned char bytes[PULL];
	ssize_t got;

	if (strange->error)
		return strange->error;
	got = env->net->read(env->ctx, stream->watch.fd, bytes, sizeof(bytes));
	if (got == 0)
		strange->ended = true;
	if (got <= 0)
		return got;
	strange->error = spokei_buffer_append(&strange->raw, bytes, (size_t)got) ? -ENOMEM : 0;
	if (!strange->error)
		strange->error = take_frames(stream);
	return strange->error ? strange->error : got;
}

/* --- the table */

static int strange_flush(struct spokei_stream *stream)
{
	const struct spoke_env *env = stream->engine->env;
	struct strange *strange = strange_of(stream);
	size_t len = spokei_buffer_len(&strange->out);

	if (len > 0) {
		struct iovec part = { spokei_buffer_data(&strange->out), len < PASS ? len : PASS };
		ssize_t took = env->net->write(env->ctx, stream->watch.fd, &part, 1);

		if (took < 0) {
			strange->unwritable = took != -EAGAIN && took != -EINTR;
			return (int)took;
		}
		strange->passed += (uint64_t)took;
		spokei_buffer_consume(&strange->out, (size_t)took);
		if ((size_t)took < len)
			return -EAGAIN;
	}
	if (!strange->shut || strange->shut_done)
		return 0;
	strange->shut_done = true;
	return env->net->shut(env->ctx, stream->watch.fd);
}

static int begin(struct spokei_stream *stream)
{
	const struct spoke_env *env = stream->engine->env;
	struct strange *strange = spokei_alloc(env, 1, sizeof(*strange));

	if (strange == NULL)
		return -ENOMEM;
	stream->state = strange;
	spokei_buffer_init(&strange->raw, env, MAX);
	spokei_buffer_init(&strange->plain, env, MAX);
	spokei_buffer_init(&strange->out, env, MAX);
	strange->name = (struct spoke_span){ STRANGE_NAME, sizeof(STRANGE_NAME) - 1 };
	return stream->accepted ? 0 : put_frame(strange, FRAME_HELLO, NULL, 0);
}

static int strange_open(struct spokei_stream *stream)
{
	struct strange *strange;
	ssize_t got;
	int status = 0;

	if (stream->state == NULL)
		status = begin(stream);
	if (status)
		return status;
	strange = strange_of(stream);
	got = strange->hellos < STRANGE_ROUND_TRIPS ? pull(stream) : 1;
	if (got == 0)
		return -ECONNRESET;
	if (got < 0 && got != -EAGAIN && got != -EINTR)
		return (int)got;
	status = strange_flush(stream);
	if (status < 0 && status != -EAGAIN && status != -EINTR)
		return status;
	return strange->hellos == STRANGE_ROUND_TRIPS && spokei_buffer_len(&strange->out) == 0
		       ? 0
		       : SPOKEI_STREAM_MORE;
}

/* Gives less than there is, so that some is pending. */
static ssize_t strange_read(struct spokei_stream *stream, void *bytes, size_t len)
{
	struct strange *strange = strange_of(stream);
	size_t there;

	while (spokei_buffer_len(&strange->plain) == 0) {
		ssize_t got = pull(stream);

		if (got <= 0)
			return got;
	}
	there = spokei_buffer_len(&strange->plain);
	if (there > 1)
		there -= there / 3;
	if (there > len)
		there = len;
	memcpy(bytes, spokei_buffer_data(&strange->plain), there);
	spokei_buffer_consume(&strange->plain, there);
	return (ssize_t)there;
}

/* Puts a part into frames, as many as may be held and sent. Returns the count or a negative errno.
 */
static ssize_t put_part(struct strange *strange, const unsigned char *bytes, size_t len)
{
	size_t done = 0;

	while (done < len && !needs_consent(strange) && spokei_buffer_len(&strange->out) < HOLD) {
		size_t piece = len - done < FRAME ? len - done : FRAME;
		int error = put_frame(strange, FRAME_DATA, bytes + done, piece);

		if (error)
			return error;
		strange->sent++;
		done += piece;
	}
	return (ssize_t)done;
}

static ssize_t strange_write(struct spokei_stream *stream, const struct iovec *parts, int count)
{
	struct strange *strange = strange_of(stream);
	ssize_t done = 0;

	if (needs_consent(strange)) {
		ssize_t got = pull(stream);

		strange->unwritable = got < 0 && got != -EAGAIN && got != -EINTR;
		if (strange->unwritable)
			return got;
	}
	for (int i = 0; i < count; i++) {
		ssize_t put = put_part(strange, parts[i].iov_base, parts[i].iov_len);

		if (put < 0) {
			strange->unwritable = true;
			return put;
		}
		done += put;
		if ((size_t)put < parts[i].iov_len)
			break;
	}
	return done > 0 ? done : -EAGAIN;
}

static int strange_shut(struct spokei_stream *stream)
{
	int status;

	strange_of(stream)->shut = true;
	status = strange_flush(stream);
	return status == -EAGAIN || status == -EINTR ? 0 : status;
}

static unsigned strange_wants(const struct spokei_stream *stream, unsigned io)
{
	const struct strange *strange = strange_of(stream);
	unsigned wants = io & SPOKE_IO_READ;

	if (strange->hellos < STRANGE_ROUND_TRIPS)
		wants = SPOKE_IO_READ;
	if (io & SPOKE_IO_WRITE)
		wants |= needs_consent(strange) ? SPOKE_IO_READ : SPOKE_IO_WRITE;
	if (spokei_buffer_len(&strange->out) > 0 && !strange->unwritable)
		wants |= SPOKE_IO_WRITE;
	return wants;
}

static size_t strange_pending(const struct spokei_stream *stream)
{
	return spokei_buffer_len(&strange_of(stream)->plain);
}

static uint64_t strange_passed(const struct spokei_stream *stream)
{
	return strange_of(stream)->passed;
}

static ssize_t strange_unsent(const struct spokei_stream *stream)
{
	const struct spoke_env *env = stream->engine->env;
	ssize_t unsent = env->net->unsent(env->ctx, stream->watch.fd);

	return unsent < 0 ? unsent : unsent + (ssize_t)spokei_buffer_len(&strange_of(stream)->out);
}

static int strange_guard(struct spokei_stream *stream, uint64_t unanswered_ns,
			 uint64_t keepalive_ns)
{
	const struct spoke_env *env = stream->engine->env;

	return env->net->guard(env->ctx, stream->watch.fd, unanswered_ns, keepalive_ns);
}

static size_t strange_names(const struct spokei_stream *stream, const struct spoke_span **ret_names)
{
	*ret_names = &strange_of(stream)->name;
	return 1;
}

static void strange_close(struct spokei_stream *stream)
{
	struct strange *strange = strange_of(stream);

	if (strange == NULL)
		return;
	spokei_buffer_fini(&strange->raw);
	spokei_buffer_fini(&strange->plain);
	spokei_buffer_fini(&strange->out);
	spokei_free(stream->engine->env, strange, 1, sizeof(*strange));
	stream->state = NULL;
}

const struct spokei_stream_kind strange_stream = {
	.name = "strange",
	.copies = true,
	.open = strange_open,
	.read = strange_read,
	.write = strange_write,
	.shut = strange_shut,
	.flush = strange_flush,
	.wants = strange_wants,
	.pending = strange_pending,
	.passed = strange_passed,
	.unsent = strange_unsent,
	.guard = strange_guard,
	.names = strange_names,
	.close = strange_close,
};
