/* SPDX-License-Identifier: Apache-2.0 */
/* Streams over shared memory: how they open, and the open stream. */
#include "transport/stream/shm/parts.h"

#include "core/base/env.h"

/* --- opening
 *
 * The handshake: the connecting side sends a hello with the memory, and the accepting side checks
 * both and answers by one byte. SHARED_MEMORY.md describes the bytes. A silent peer costs no
 * memory: the state of an accepted stream is made when the hello has come. */

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

/* The handshake, as the slot open(). */
static int open_link(struct spokei_stream *stream)
{
	struct spokei_shm_link *link = stream->state;

	if (stream->accepted)
		return link ? send_answer(link) : take_hello(stream);
	return link && link->shared.memory ? read_answer(link) : send_hello(stream);
}

/* --- the open stream
 *
 * The open stream over shared memory. The socket over which the memory was sent stays open: one
 * byte on it is a bell, for a side that sleeps, and its end is the end of the peer's process. A
 * peer that rings without need costs one read for each report of the loop. */

#define BELLS 64u /* taken at once while nothing else is read */

static const char *const sentences[SPOKEI_SHM_FAULTS] = {
	[SPOKEI_SHM_NO_HELLO] = "no hello of shared memory came first; write shm:/PATH there, too",
	[SPOKEI_SHM_NO_MEMORY_SENT] = "the peer's hello came without memory, or with more than one",
	[SPOKEI_SHM_BAD_MEMORY] =
		"the peer's memory could change its size, lacks pages or is too large",
	[SPOKEI_SHM_BAD_SIZE] = "the peer's memory has another size than its hello says",
	[SPOKEI_SHM_BAD_VERSION] = "the peer uses another version of shared memory",
	[SPOKEI_SHM_CANNOT_MAP] = "the peer's memory cannot be mapped",
	[SPOKEI_SHM_CANNOT_MAKE] = "the memory to share cannot be made or sent",
	[SPOKEI_SHM_NOT_AVAILABLE] = "shared memory is not available in this environment",
	[SPOKEI_SHM_NO_ANSWER] =
		"the peer did not answer the hello; it may listen at unix:/PATH only, or deny you",
	[SPOKEI_SHM_REFUSED] = "the peer refused the memory",
	[SPOKEI_SHM_BAD_COUNTER] = "a counter in the shared memory is impossible",
};

static const char *shm_why(const struct spokei_stream *stream)
{
	return stream->fault < SPOKEI_SHM_FAULTS ? sentences[stream->fault] : NULL;
}

static int break_up(struct spokei_shm_link *link)
{
	link->broken = true;
	link->stream->fault = SPOKEI_SHM_BAD_COUNTER;
	return -EPROTO;
}

/* --- bells */

/* Notes that the socket has ended, with an errno or as it should. */
static void note_end(struct spokei_shm_link *link, int end)
{
	link->gone = true;
	link->end = end;
	link->owes = false;
}

static void ring(struct spokei_shm_link *link)
{
	const struct spokei_stream *stream = link->stream;
	const struct spoke_env *env = stream->engine->env;
	unsigned char bell = 0;
	struct iovec part = { &bell, 1 };
	ssize_t sent;

	if (link->gone)
		return;
	sent = env->net->write(env->ctx, stream->watch.fd, &part, 1);
	link->owes = sent == -EAGAIN || sent == -EINTR;
	/* A peer that cannot be woken is lost; the bytes that it has put are still read. */
	if (sent < 0 && !link->owes)
		note_end(link, (int)sent);
}

/* A counter was published: wakes the peer, if it sleeps and waits for that. */
static inline void tell(struct spokei_shm_link *link, uint32_t bit)
{
	if (SPOKEI_UNLIKELY(spokei_ring_wakes(link->peer, bit)))
		ring(link);
}

/* Bytes were taken: the same, once there is enough room. */
static inline void tell_room(struct spokei_shm_link *link)
{
	ssize_t left = spokei_ring_len(&link->in);

	if (left < 0 || spokei_ring_roomy((size_t)left, link->in.size))
		tell(link, SPOKEI_RING_ROOM);
}

/* Takes the bells, or notices the end of the socket; rings again where a bell is owed. */
static void take_bells(struct spokei_shm_link *link, void *room, size_t len)
{
	const struct spokei_stream *stream = link->stream;
	const struct spoke_env *env = stream->engine->env;
	ssize_t got;

	if (link->gone)
		return;
	got = env->net->read(env->ctx, stream->watch.fd, room, len);
	if (got == 0)
		note_end(link, 0);
	else if (got < 0 && got != -EAGAIN && got != -EINTR)
		note_end(link, (int)got);
	if (link->owes)
		ring(link);
}

/* Not in a forked child: it is its parent that sleeps. */
static inline void wake_up(struct spokei_shm_link *link)
{
	if (SPOKEI_LIKELY(!link->slept) || spokei_engine_forked(link->stream->engine))
		return;
	link->slept = false;
	spokei_ring_wake(link->own);
	spokei_source_wake(link->stream->engine, &link->source);
}

/* --- the source */

/* Returns whether read() would give something. */
static inline size_t readable(const struct spokei_shm_link *link)
{
	bool over = link->gone || link->broken || spokei_ring_ended(&link->in);
	ssize_t len = spokei_ring_len(&link->in);

	if (len != 0)
		return len > 0 ? (size_t)len : 1;
	return over && !link->told;
}

static bool writable(const struct spokei_shm_link *link)
{
	ssize_t unread = spokei_ring_unread(&link->out);

	if (link->gone || unread < 0)
		return true;
	return spokei_ring_roomy((size_t)unread, link->out.size) && (size_t)unread <= link->low;
}

static bool has(const struct spokei_shm_link *link)
{
	return (link->wants & SPOKE_IO_READ && readable(link) > 0) ||
	       (link->wants & SPOKE_IO_WRITE && writable(link));
}

static bool source_has(struct spokei_source *source)
{
	return has(spoke_container_of(source, struct spokei_shm_link, source));
}

static bool source_sleep(struct spokei_source *source)
{
	struct spokei_shm_link *link = spoke_container_of(source, struct spokei_shm_link, source);
	uint32_t bits = (link->wants & SPOKE_IO_READ ? SPOKEI_RING_BYTES : 0) |
			(link->wants & SPOKE_IO_WRITE ? SPOKEI_RING_ROOM : 0);

	spokei_ring_sleep(link->own, bits);
	if (has(link)) {
		spokei_ring_wake(link->own);
		return false;
	}
	link->slept = true;
	return true;
}

/* The connection may end here, with the link; its stream stays until the end of the turn. */
static void source_ready(struct spokei_source *source)
{
	struct spokei_shm_link *link = spoke_container_of(source, struct spokei_shm_link, source);
	struct spokei_stream *stream = link->stream;

	link->quiet = true;
	stream->watch.ready(&stream->watch, SPOKE_IO_READ | SPOKE_IO_WRITE);
	if (stream->state == link)
		link->quiet = false;
}

/* --- the table */

static int shm_open(struct spokei_stream *stream)
{
	int status = open_link(stream);
	struct spokei_shm_link *link = stream->state;

	if (status)
		return status;
	link->source.has = source_has;
	link->source.sleep = source_sleep;
	link->source.ready = source_ready;
	spokei_source_wake(stream->engine, &link->source);
	return 0;
}

static ssize_t shm_read(struct spokei_stream *stream, void *bytes, size_t len)
{
	struct spokei_shm_link *link = stream->state;
	bool over;
	ssize_t got;

	wake_up(link);
	if (!link->quiet) /* a flood of bells goes at once, and is overwritten */
		take_bells(link, bytes, len);
	if (link->broken)
		return -EPROTO;
	over = link->gone || spokei_ring_ended(&link->in);
	got = spokei_ring_read(&link->in, bytes, len);
	if (got < 0)
		return break_up(link);
	if (got > 0) {
		tell_room(link);
		return got;
	}
	if (!over)
		return -EAGAIN;
	link->told = true;
	return link->end;
}

static ssize_t shm_write(struct spokei_stream *stream, const struct iovec *parts, int count)
{
	struct spokei_shm_link *link = stream->state;
	ssize_t done;

	if (link->gone)
		return -EPIPE;
	if (link->broken)
		return -EPROTO;
	wake_up(link);
	done = spokei_ring_write(&link->out, parts, count);
	if (done > 0) {
		link->passed += (uint64_t)done;
		tell(link, SPOKEI_RING_BYTES);
	}
	return done == -EPROTO ? break_up(link) : done;
}

static int shm_shut(struct spokei_stream *stream)
{
	struct spokei_shm_link *link = stream->state;

	if (link->gone)
		return -EPIPE;
	wake_up(link);
	spokei_ring_end(&link->out);
	tell(link, SPOKEI_RING_BYTES);
	return 0;
}

/* Bytes in the ring are the peer's. While nothing is read, bells are taken here. */
static int shm_flush(struct spokei_stream *stream)
{
	struct spokei_shm_link *link = stream->state;
	unsigned char bells[BELLS];

	if (SPOKEI_UNLIKELY(link->owes || link->wants == SPOKE_IO_WRITE)) {
		wake_up(link); /* there is one bell only for each time that it falls asleep */
		take_bells(link, bells, sizeof(bells));
	}
	return 0;
}

static uint64_t shm_passed(const struct spokei_stream *stream)
{
	const struct spokei_shm_link *link = stream->state;

	return link->passed;
}

static unsigned shm_wants(const struct spokei_stream *stream, unsigned io)
{
	struct spokei_shm_link *link = stream->state;

	if (link == NULL)
		return SPOKE_IO_READ;
	if (!link->open)
		return link->owes ? SPOKE_IO_WRITE : SPOKE_IO_READ;
	/* It has to look at more now than it did before it fell asleep. */
	if (io & ~(unsigned)link->wants || stream->low > link->low)
		wake_up(link);
	link->wants = (uint8_t)io;
	link->low = stream->low;
	if (link->gone)
		return 0;
	return (io ? SPOKE_IO_READ : 0) | (link->owes ? SPOKE_IO_WRITE : 0);
}

static size_t shm_pending(const struct spokei_stream *stream)
{
	const struct spokei_shm_link *link = stream->state;

	return link->open ? readable(link) : 0;
}

static bool shm_queues(const struct spokei_stream *stream, size_t len)
{
	struct spokei_shm_link *link = stream->state;
	ssize_t unread;

	if (SPOKEI_LIKELY(link->out.put - link->out.taken < len) || link->gone)
		return false;
	unread = spokei_ring_look(&link->out);
	if (unread < 0)
		(void)break_up(link);
	return unread >= (ssize_t)len;
}

static ssize_t shm_unsent(const struct spokei_stream *stream)
{
	const struct spokei_shm_link *link = stream->state;

	return spokei_ring_unread(&link->out);
}

static int shm_guard(struct spokei_stream *stream, uint64_t unanswered_ns, uint64_t keepalive_ns)
{
	return spokei_stream_socket.guard(stream, unanswered_ns, keepalive_ns);
}

static void shm_close(struct spokei_stream *stream)
{
	struct spokei_shm_link *link = stream->state;
	const struct spoke_env *env = stream->engine->env;

	if (link == NULL)
		return;
	spokei_source_end(&link->source);
	if (link->shared.memory)
		env->net->unshare(env->ctx, &link->shared);
	spokei_free(env, link, 1, sizeof(*link));
	stream->state = NULL;
}

const struct spokei_stream_kind spokei_stream_shm = {
	.name = "shm",
	.prompt = true,
	.open = shm_open,
	.read = shm_read,
	.write = shm_write,
	.shut = shm_shut,
	.flush = shm_flush,
	.passed = shm_passed,
	.wants = shm_wants,
	.pending = shm_pending,
	.queues = shm_queues,
	.unsent = shm_unsent,
	.guard = shm_guard,
	.why = shm_why,
	.close = shm_close,
};
