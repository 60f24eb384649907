/* SPDX-License-Identifier: Apache-2.0 */
/* Opens streams with a greeting, and gives the first bytes of the answer to the connection. */
#include "transport/stream/greet.h"

#include "core/base/env.h"

#include <errno.h>
#include <string.h>

#define ANSWER 64u /* bytes of the answer that are read ahead */

/* The state of a stream until the connection has taken the answer. */
struct greet {
	size_t sent;     /* bytes of the greeting */
	size_t got;      /* bytes of the answer ... */
	size_t given;    /* ... and those that the connection has */
	uint64_t passed; /* bytes that were written since the stream is open */
	bool open;
	unsigned char answer[ANSWER];
};

static const struct spokei_greeting *greeting_of(const struct spokei_stream *stream)
{
	return stream->kind->owner;
}

/* Sends the rest of the greeting. Returns 0, also if a part is left, or a negative errno. */
static int send_greeting(struct spokei_stream *stream, struct greet *greet)
{
	const struct spokei_greeting *greeting = greeting_of(stream);
	struct iovec part = spokei_stream_part(greeting->bytes + greet->sent,
					       greeting->len - greet->sent);
	ssize_t took;

	if (part.iov_len == 0)
		return 0;
	took = spokei_stream_socket.write(stream, &part, 1);
	if (took == -EAGAIN || took == -EINTR)
		return 0;
	if (took < 0)
		return (int)took;
	greet->sent += (size_t)took;
	return 0;
}

/* Reads bytes of the answer. Returns 0: the peer speaks; SPOKEI_STREAM_MORE, or a negative errno.
 */
static int read_answer(struct spokei_stream *stream, struct greet *greet)
{
	ssize_t got = spokei_stream_socket.read(stream, greet->answer + greet->got,
						ANSWER - greet->got);
	size_t same;

	if (got == -EAGAIN || got == -EINTR)
		return SPOKEI_STREAM_MORE;
	if (got <= 0)
		return got < 0 ? (int)got : -ECONNRESET;
	greet->got += (size_t)got;
	same = greet->got < SPOKEI_GREETING_SAME ? greet->got : SPOKEI_GREETING_SAME;
	if (memcmp(greet->answer, greeting_of(stream)->bytes, same) != 0)
		return -EPROTO;
	return same < SPOKEI_GREETING_SAME ? SPOKEI_STREAM_MORE : 0;
}

static int greet_open(struct spokei_stream *stream)
{
	struct greet *greet = stream->state;
	int status;

	if (greet == NULL) {
		greet = spokei_alloc(stream->engine->env, 1, sizeof(*greet));
		if (greet == NULL)
			return -ENOMEM;
		stream->state = greet;
	}
	status = send_greeting(stream, greet);
	if (status == 0)
		status = read_answer(stream, greet);
	greet->open = status == 0;
	return status;
}

/* Frees the state. The stream is a plain socket then: the kind may not outlive the opening. */
static void greet_close(struct spokei_stream *stream)
{
	spokei_free(stream->engine->env, stream->state, 1, sizeof(struct greet));
	stream->state = NULL;
	spokei_stream_use(stream, &spokei_stream_socket);
}

static ssize_t greet_read(struct spokei_stream *stream, void *bytes, size_t len)
{
	struct greet *greet = stream->state;
	size_t count = greet->got - greet->given;

	count = count < len ? count : len;
	memcpy(bytes, greet->answer + greet->given, count);
	greet->given += count;
	if (greet->given == greet->got)
		greet_close(stream);
	return (ssize_t)count;
}

static ssize_t greet_write(struct spokei_stream *stream, const struct iovec *parts, int count)
{
	struct greet *greet = stream->state;
	ssize_t took = spokei_stream_socket.write(stream, parts, count);

	greet->passed += took > 0 ? (uint64_t)took : 0;
	return took;
}

static int greet_flush(struct spokei_stream *stream)
{
	(void)stream;
	return 0;
}

static uint64_t greet_passed(const struct spokei_stream *stream)
{
	const struct greet *greet = stream->state;

	return greet->passed;
}

static unsigned greet_wants(const struct spokei_stream *stream, unsigned io)
{
	const struct greet *greet = stream->state;

	if (greet && greet->open)
		return io;
	return greet && greet->sent == greeting_of(stream)->len ? SPOKE_IO_READ
								: SPOKE_IO_READ | SPOKE_IO_WRITE;
}

static size_t greet_pending(const struct spokei_stream *stream)
{
	const struct greet *greet = stream->state;

	return greet && greet->open ? greet->got - greet->given : 0;
}

int spokei_greeting_new(const struct spoke_env *env, struct spoke_span bytes,
			struct spokei_greeting **ret_greeting)
{
	struct spokei_greeting *greeting = spokei_alloc(env, 1, sizeof(*greeting));

	SPOKE_ASSERT(bytes.len >= SPOKEI_GREETING_SAME && bytes.len <= SPOKEI_GREETING_MAX);
	if (greeting == NULL)
		return SPOKE_ENOMEM;
	greeting->kind = spokei_stream_socket;
	greeting->kind.name = "greet";
	greeting->kind.owner = greeting;
	greeting->kind.open = greet_open;
	greeting->kind.read = greet_read;
	greeting->kind.write = greet_write;
	greeting->kind.flush = greet_flush;
	greeting->kind.passed = greet_passed;
	greeting->kind.wants = greet_wants;
	greeting->kind.pending = greet_pending;
	greeting->kind.close = greet_close;
	memcpy(greeting->bytes, bytes.data, bytes.len);
	greeting->len = bytes.len;
	*ret_greeting = greeting;
	return SPOKE_OK;
}

void spokei_greeting_free(const struct spoke_env *env, struct spokei_greeting *greeting)
{
	spokei_free(env, greeting, 1, sizeof(*greeting));
}
