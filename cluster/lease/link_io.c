/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the queued output once a turn, and cuts the input into replies. */
#include "cluster/lease/link.h"

#include <errno.h>

#define PENDING_READS 8u /* reads of bytes that a stream holds, in one turn */
#define KEPT 4096u       /* bytes that an empty input buffer keeps */

/* --- writing */

void spokei_redis_link_watch(struct spokei_redis_link *link)
{
	unsigned io = SPOKE_IO_READ;

	if (!link->unwritable && spokei_buffer_len(&link->out) > 0)
		io |= SPOKE_IO_WRITE;
	if (link->stream.layered)
		io = link->stream.kind->wants(&link->stream, io);
	spokei_stream_watch(&link->stream, io);
}

/* The reason of the end may still lie in the socket: a server that has too many clients says so,
 * and closes. So the end is that of reading, in the next turn. */
static void stop_writing(struct spokei_redis_link *link, int status)
{
	link->unwritable = true;
	link->error = status;
	spokei_buffer_clear(&link->out);
	spokei_engine_soon(link->engine, &link->news);
}

void spokei_redis_link_flush(struct spokei_redis_link *link)
{
	struct spokei_buffer *out = &link->out;
	const struct spokei_stream_kind *kind = link->stream.kind;
	ssize_t wrote = 0;

	if (!spokei_redis_link_open(link) || link->unwritable)
		return;
	if (spokei_buffer_len(out) > 0) {
		const struct iovec part = { spokei_buffer_data(out), spokei_buffer_len(out) };

		spokei_count(link->engine, SPOKE_STAT_WRITES);
		wrote = kind->write(&link->stream, &part, 1);
	}
	if (wrote > 0) {
		spokei_count_by(link->engine, SPOKE_STAT_BYTES_WRITTEN, (uint64_t)wrote);
		spokei_buffer_consume(out, (size_t)wrote);
	}
	if (wrote >= 0 && link->stream.layered)
		wrote = kind->flush(&link->stream);
	if (wrote < 0 && wrote != -EAGAIN && wrote != -EINTR)
		stop_writing(link, (int)wrote);
}

void spokei_redis_link_write_task(struct spokei_task *task)
{
	struct spokei_redis_link *link = spoke_container_of(task, struct spokei_redis_link, write);

	spokei_redis_link_flush(link);
	if (spokei_redis_link_open(link))
		spokei_redis_link_watch(link);
}

void spokei_redis_link_write(struct spokei_redis_link *link)
{
	if (spokei_redis_link_open(link))
		spokei_engine_last(link->engine, &link->write);
}

/* --- reading */

/* Reads the replies of these bytes. Returns how many bytes are done with; SIZE_MAX: the connection
 * has ended. */
static size_t take_replies(struct spokei_redis_link *link, const unsigned char *bytes, size_t len)
{
	uint32_t round = link->round;
	size_t at = 0;

	while (at < len) {
		struct spokei_resp_cursor reply = { bytes + at, NULL };

		if (!link->reading && !link->up->expects(link)) {
			spokei_redis_link_end(link, SPOKE_EPROTOCOL,
					      "the server sent bytes that were not asked for");
			return SIZE_MAX;
		}
		if (!link->reading)
			spokei_resp_begin(&link->reader);
		link->reading = true;
		switch (spokei_resp_read(&link->reader, bytes + at, len - at)) {
		case SPOKEI_RESP_MORE:
			return at;
		case SPOKEI_RESP_BROKEN:
			spokei_redis_link_end(link, SPOKE_EPROTOCOL, "the server sent %s",
					      link->reader.why);
			return SIZE_MAX;
		case SPOKEI_RESP_WHOLE:
			break;
		}
		link->reading = false;
		link->answered = link->answered || link->state == SPOKEI_REDIS_READY;
		reply.end = reply.at + link->reader.at;
		at += link->reader.at;
		link->up->reply(link, reply);
		if (link->round != round)
			return SIZE_MAX;
	}
	return at;
}

/* Takes bytes that were read. They lie in the engine's scratch, or follow earlier ones. */
static void take_in(struct spokei_redis_link *link, const unsigned char *bytes, size_t len)
{
	bool kept = spokei_buffer_len(&link->in) > 0;
	size_t done;
	int error = SPOKE_OK;

	if (kept) {
		error = spokei_buffer_append(&link->in, bytes, len);
		bytes = spokei_buffer_data(&link->in);
		len = spokei_buffer_len(&link->in);
	}
	link->inside = true;
	done = error ? 0 : take_replies(link, bytes, len);
	link->inside = false;
	if (done == SIZE_MAX) { /* it has ended: see close_stream() */
		spokei_buffer_fini(&link->in);
		spokei_buffer_fini(&link->out);
		return;
	}
	if (error == SPOKE_OK && kept && done == len && link->in.capacity > KEPT)
		spokei_buffer_fini(&link->in);
	else if (error == SPOKE_OK && kept)
		spokei_buffer_consume(&link->in, done);
	else if (error == SPOKE_OK && done < len)
		error = spokei_buffer_append(&link->in, bytes + done, len - done);
	if (error)
		spokei_redis_link_end(link, SPOKE_ENOMEM, "no memory for a reply");
}

void spokei_redis_link_read(struct spokei_redis_link *link)
{
	struct spoke_engine *engine = link->engine;
	ssize_t got = link->stream.kind->read(&link->stream, engine->scratch, SPOKEI_RESP_BYTES);

	spokei_count(engine, SPOKE_STAT_READS);
	if (got == -EAGAIN || got == -EINTR)
		return;
	if (got <= 0) {
		spokei_redis_link_broken(link, (int)got);
		return;
	}
	spokei_count_by(engine, SPOKE_STAT_BYTES_READ, (uint64_t)got);
	link->heard_ns = engine->begin_ns;
	take_in(link, engine->scratch, (size_t)got);
}

void spokei_redis_link_ready_io(struct spoke_watch *watch, unsigned io)
{
	struct spokei_redis_link *link = spoke_container_of(watch, struct spokei_redis_link,
							    stream.watch);
	uint32_t round = link->round;
	unsigned reads = 0;

	if ((io & SPOKE_IO_READ) || link->stream.layered) {
		do {
			spokei_redis_link_read(link);
		} while (link->round == round && ++reads < PENDING_READS &&
			 spokei_stream_pending(&link->stream) > 0);
	}
	if (link->round != round)
		return;
	if ((io & SPOKE_IO_WRITE) || link->stream.layered)
		spokei_redis_link_write(link);
}
