/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake: the connecting side sends a hello with the memory, and the accepting side checks
 * both and answers by one byte. SHARED_MEMORY.md describes the bytes. A silent peer costs no
 * memory: the state of an accepted stream is made when the hello has come.
 */
#include "core/base/env.h"
#include "transport/stream/shm/parts.h"

#define HELLO 16u
#define VERSION 1
#define ANSWER_YES 1

static const unsigned char magic[] = { 0xf5, 's', 'h', 'm' };

static int fail(struct spokei_stream *stream, enum spokei_shm_fault fault)
{
	stream->fault = (uint8_t)fault;
	return -EPROTO;
}

static struct spokei_shm_link *make(struct spokei_stream *stream)
{
	struct spokei_shm_link *link = spokei_alloc(stream->engine->env, 1, sizeof(*link));

	if (link == NULL)
		return NULL;
	link->stream = stream;
	stream->state = link;
	return link;
}

static void attach(struct spokei_shm_link *link, const struct spoke_shared *shared, uint32_t size)
{
	struct spokei_ring_front *front = shared->memory;
	bool accepted = link->stream->accepted;

	link->shared = *shared;
	spokei_ring_attach(shared->memory, size, accepted, &link->in, &link->out);
	link->own = &front->asleep[accepted ? 1 : 0];
	link->peer = &front->asleep[accepted ? 0 : 1];
}

static int opened(struct spokei_shm_link *link)
{
	link->open = true;
	link->stream->fault = SPOKEI_SHM_FINE;
	return 0;
}

/* --- the connecting side */

static int send_hello(struct spokei_stream *stream)
{
	const struct spoke_env *env = stream->engine->env;
	unsigned bits = stream->ring_bits ? stream->ring_bits : SPOKEI_SHM_BITS;
	unsigned char hello[HELLO] = { 0 };
	struct iovec part = { hello, sizeof(hello) };
	struct spokei_shm_link *link;
	struct spoke_shared shared;
	int error;

	if (env->net->share == NULL)
		return fail(stream, SPOKEI_SHM_NOT_AVAILABLE);
	link = stream->state ? stream->state : make(stream);
	if (link == NULL)
		return -ENOMEM;
	memcpy(hello, magic, sizeof(magic));
	hello[4] = VERSION;
	hello[5] = (unsigned char)bits;
	error = env->net->share(env->ctx, stream->watch.fd, &part, spokei_ring_memory(1u << bits),
				&shared);
	if (error == -EAGAIN || error == -EINTR) {
		link->owes = true;
		return SPOKEI_STREAM_MORE;
	}
	link->owes = false;
	if (error) {
		/* The memory is not to blame if the peer has closed the socket. */
		stream->fault = error == -EPIPE || error == -ECONNRESET ? SPOKEI_SHM_NO_ANSWER
									: SPOKEI_SHM_CANNOT_MAKE;
		return error;
	}
	attach(link, &shared, 1u << bits);
	return SPOKEI_STREAM_MORE;
}

static int read_answer(struct spokei_shm_link *link)
{
	struct spokei_stream *stream = link->stream;
	const struct spoke_env *env = stream->engine->env;
	unsigned char answer = 0;
	ssize_t got = env->net->read(env->ctx, stream->watch.fd, &answer, 1);

	if (got == -EAGAIN || got == -EINTR)
		return SPOKEI_STREAM_MORE;
	if (got <= 0)
		return fail(stream, SPOKEI_SHM_NO_ANSWER), got < 0 ? (int)got : -EPROTO;
	if (answer == ANSWER_YES)
		return opened(link);
	return fail(stream, answer > ANSWER_YES && answer < SPOKEI_SHM_FAULTS
				    ? SPOKEI_SHM_REFUSED
				    : SPOKEI_SHM_NO_ANSWER);
}

/* --- the accepting side */

/* Returns the fault of a hello and its memory. */
static enum spokei_shm_fault judge(const unsigned char *hello, ssize_t len,
				   const struct spoke_shared *shared)
{
	if (len < (ssize_t)HELLO || memcmp(hello, magic, sizeof(magic)) != 0)
		return SPOKEI_SHM_NO_HELLO;
	if (hello[4] != VERSION)
		return SPOKEI_SHM_BAD_VERSION;
	if (shared->memory == NULL)
		return SPOKEI_SHM_NO_MEMORY_SENT;
	if (hello[5] < SPOKEI_SHM_BITS_MIN || hello[5] > SPOKEI_SHM_BITS_MAX ||
	    shared->size != spokei_ring_memory(1u << hello[5]))
		return SPOKEI_SHM_BAD_SIZE;
	return SPOKEI_SHM_FINE;
}

/* Tells a peer why it is refused, as far as the socket takes it. */
static int refuse(struct spokei_stream *stream, enum spokei_shm_fault fault)
{
	const struct spoke_env *env = stream->engine->env;
	unsigned char answer = (unsigned char)(ANSWER_YES + fault);
	struct iovec part = { &answer, 1 };

	/* A peer that did not send a hello does not understand the answer. */
	if (fault != SPOKEI_SHM_NO_HELLO)
		(void)env->net->write(env->ctx, stream->watch.fd, &part, 1);
	return fail(stream, fault);
}

static int send_answer(struct spokei_shm_link *link)
{
	struct spokei_stream *stream = link->stream;
	const struct spoke_env *env = stream->engine->env;
	unsigned char answer = ANSWER_YES;
	struct iovec part = { &answer, 1 };
	ssize_t sent = env->net->write(env->ctx, stream->watch.fd, &part, 1);

	link->owes = sent == -EAGAIN || sent == -EINTR;
	if (link->owes)
		return SPOKEI_STREAM_MORE;
	return sent < 0 ? (int)sent : opened(link);
}

static int take_hello(struct spokei_stream *stream)
{
	const struct spoke_env *env = stream->engine->env;
	unsigned char hello[HELLO];
	struct iovec part = { hello, sizeof(hello) };
	struct spoke_shared shared = { NULL, 0 };
	struct spokei_shm_link *link;
	enum spokei_shm_fault fault;
	ssize_t got;

	if (env->net->shared == NULL)
		return fail(stream, SPOKEI_SHM_NOT_AVAILABLE);
	got = env->net->shared(env->ctx, stream->watch.fd, &part,
			       spokei_ring_memory(1u << SPOKEI_SHM_BITS_MAX), &shared);
	if (got == -EAGAIN || got == -EINTR)
		return SPOKEI_STREAM_MORE;
	if (got == -EBADMSG)
		return refuse(stream, SPOKEI_SHM_BAD_MEMORY);
	if (got == -ENOMEM)
		return refuse(stream, SPOKEI_SHM_CANNOT_MAP), -ENOMEM;
	if (got <= 0)
		return got < 0 ? (int)got : -ECONNRESET;
	fault = judge(hello, got, &shared);
	link = fault == SPOKEI_SHM_FINE ? make(stream) : NULL;
	if (link == NULL) {
		if (shared.memory)
			env->net->unshare(env->ctx, &shared);
		return fault == SPOKEI_SHM_FINE ? -ENOMEM : refuse(stream, fault);
	}
	attach(link, &shared, 1u << hello[5]);
	return send_answer(link);
}

int spokei_shm_open(struct spokei_stream *stream)
{
	struct spokei_shm_link *link = stream->state;

	if (stream->accepted)
		return link ? send_answer(link) : take_hello(stream);
	return link && link->shared.memory ? read_answer(link) : send_hello(stream);
}
