/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sees the bytes of TLS streams, and of streams over shared memory, between the connection and the
 * stream, because the network has encrypted ones or none, and compares what one end reads with what
 * the other one has written.
 */
#include "tests/sim/oracle.h"

#include "core/engine/engine.h"
#include "transport/conn/link.h"
#include "transport/stream/tls/tls.h"

#include <stdlib.h>
#include <string.h>

/* The functions of the product, the same for all streams. */
static ssize_t (*read_stream)(struct spokei_stream *stream, void *bytes, size_t len);
static ssize_t (*write_stream)(struct spokei_stream *stream, const struct iovec *parts, int count);

static struct sim_end *end_of(const struct spokei_stream *stream)
{
	struct sim_process *process = stream->engine->env->ctx;

	return sim_end_at(process, stream->watch.fd);
}

/* --- bytes under way */

static void put(struct sim_end *end, const void *bytes, size_t len)
{
	if (end->flight_from + end->flight_len + len > end->flight_room) {
		unsigned char *room = malloc(2 * (end->flight_len + len));

		if (room == NULL)
			abort();
		if (end->flight_len > 0)
			memcpy(room, end->flight + end->flight_from, end->flight_len);
		free(end->flight);
		end->flight = room;
		end->flight_from = 0;
		end->flight_room = 2 * (end->flight_len + len);
	}
	memcpy(end->flight + end->flight_from + end->flight_len, bytes, len);
	end->flight_len += len;
}

static void check_read(struct sim_end *end, const void *bytes, size_t len)
{
	struct sim_end *from = sim_other(end);

	if (len > from->flight_len || memcmp(bytes, from->flight + from->flight_from, len) != 0)
		sim_violation(end->stream->world, SIM_S51,
			      "process %u reads %zu bytes of connection %u that its peer has not "
			      "written there",
			      end->process->number, len, end->stream->number);
	from->flight_from += len;
	from->flight_len -= len;
	if (from->flight_len == 0)
		from->flight_from = 0;
}

/* --- the stream */

/* Observes what a read has given. */
static ssize_t note_read(struct spokei_stream *stream, const void *bytes, ssize_t got)
{
	struct sim_end *end = got > 0 ? end_of(stream) : NULL;

	if (end == NULL)
		return got;
	check_read(end, bytes, (size_t)got);
	end->stream->world->counts.veiled += (uint64_t)got;
	sim_stream_read(end, bytes, (size_t)got);
	return got;
}

/* Observes what a write has taken. */
static ssize_t note_write(struct spokei_stream *stream, const struct iovec *parts, int count,
			  ssize_t took)
{
	struct sim_end *end = took > 0 ? end_of(stream) : NULL;
	size_t left = took > 0 ? (size_t)took : 0;

	for (int i = 0; end && i < count && left > 0; i++) {
		size_t part = parts[i].iov_len < left ? parts[i].iov_len : left;

		left -= part;
		if (part == 0)
			continue;
		put(end, parts[i].iov_base, part);
		sim_stream_wrote(end, parts[i].iov_base, part);
	}
	return took;
}

static ssize_t tapped_read(struct spokei_stream *stream, void *bytes, size_t len)
{
	return note_read(stream, bytes, read_stream(stream, bytes, len));
}

static ssize_t tapped_write(struct spokei_stream *stream, const struct iovec *parts, int count)
{
	return note_write(stream, parts, count, write_stream(stream, parts, count));
}

static ssize_t shared_read(struct spokei_stream *stream, void *bytes, size_t len)
{
	ssize_t got = spokei_stream_shm.read(stream, bytes, len);
	struct sim_end *end = got > 0 ? end_of(stream) : NULL;

	if (end) {
		sim_stream_reads(end);
		sim_link_taken(sim_other(end));
	}
	return note_read(stream, bytes, got);
}

static ssize_t shared_write(struct spokei_stream *stream, const struct iovec *parts, int count)
{
	return note_write(stream, parts, count, spokei_stream_shm.write(stream, parts, count));
}

/* Its end shows in the memory, and at once. */
static int shared_shut(struct spokei_stream *stream)
{
	int status = spokei_stream_shm.shut(stream);
	struct sim_end *end = status == 0 ? end_of(stream) : NULL;

	if (end) {
		end->shut = true;
		sim_other(end)->ended = true;
	}
	return status;
}

void sim_share(const struct sim_world *world, struct spokei_link *link)
{
	static struct spokei_stream_kind kind;

	if (!world->plan->shares)
		return;
	kind = spokei_stream_shm;
	kind.read = shared_read;
	kind.write = shared_write;
	kind.shut = shared_shut;
	link->stream = &kind;
	/* Each bell carries a ring at most, and some calls have little time. */
	link->limits.ring_bits = world->plan->size_max <= 2048 ? SPOKEI_SHM_BITS_MIN : 16;
}

void sim_secure_tap(const struct spokei_tls *tls)
{
	union {
		const struct spokei_stream_kind *given;
		struct spokei_stream_kind *taken;
	} kind;

	if (tls == NULL)
		return;
	kind.given = spokei_tls_secure_kind(tls);
	read_stream = kind.given->read;
	write_stream = kind.given->write;
	kind.taken->read = tapped_read;
	kind.taken->write = tapped_write;
}
