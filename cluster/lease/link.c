/* SPDX-License-Identifier: Apache-2.0 */
/* One connection that speaks RESP: connects, with backoff; writes the queued output once a turn,
 * and cuts the input into replies. */
#include "cluster/lease/link.h"
#include "cluster/lease/redis.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/engine/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SHOWN_TEXT (4 * SPOKEI_REDIS_SHOWN + 1)
#define KEEPALIVE_NS UINT64_C(60000000000)
#define MS UINT64_C(1000000)
#define PENDING_READS 8u /* reads of bytes that a stream holds, in one turn */
#define KEPT 4096u       /* bytes that an empty input buffer keeps */

/* --- the end */

void spokei_redis_link_due(struct spokei_redis_link *link, uint64_t due_ns)
{
	if (link->state == SPOKEI_REDIS_READY && due_ns < link->dialer.due_ns)
		spokei_dialer_set_timer_at(&link->dialer, due_ns);
}

/* Returns whether the backoff starts again. A server that breaks the protocol or refuses its task
 * after each greeting must not be connected to again and again without a growing pause. */
static bool has_worked(const struct spokei_redis_link *link)
{
	if (link->state != SPOKEI_REDIS_READY)
		return false;
	if (link->answered && link->error != SPOKE_EPROTOCOL && link->error != SPOKE_ESTORE)
		return true;
	return link->engine->begin_ns - link->ready_ns >= SPOKEI_REDIS_BACKOFF_CAP_NS;
}

static void close_stream(struct spokei_redis_link *link)
{
	link->round++;
	link->reading = false;
	link->unwritable = false;
	spokei_task_drop(&link->write);
	spokei_dialer_hang_up(&link->dialer);
	spokei_stream_close(&link->stream);
	if (link->inside)
		return; /* the replies that are being read lie in the buffer */
	spokei_buffer_fini(&link->in);
	spokei_buffer_fini(&link->out);
}

void spokei_redis_link_end(struct spokei_redis_link *link, int error, const char *format, ...)
{
	va_list args;

	if (link->state <= SPOKEI_REDIS_WAITING)
		return;
	link->error = error;
	va_start(args, format);
	(void)vsnprintf(link->why, sizeof(link->why), format, args);
	va_end(args);
	link->worked = has_worked(link);
	if (link->worked)
		link->dialer.failures = 0;
	close_stream(link);
	link->state = SPOKEI_REDIS_WAITING;
	spokei_dialer_wait(&link->dialer);
	spokei_run_soon(link->engine, &link->ending);
}

static void broken(struct spokei_redis_link *link, int status)
{
	char text[SPOKEI_STATUS_TEXT];

	spokei_redis_link_end(link, spokei_redis_link_open(link) ? SPOKE_ELOST : SPOKE_ECONNECT,
			      "%s",
			      status ? spokei_status_text(status, text)
				     : "the server closed the connection");
}

void spokei_redis_link_stop(struct spokei_redis_link *link)
{
	close_stream(link);
	spokei_task_drop(&link->ending);
	link->state = SPOKEI_REDIS_STOPPED;
}

/* --- writing */

static void watch_io(struct spokei_redis_link *link)
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
	spokei_run_soon(link->engine, &link->ending);
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

static void write_due(struct spokei_task *task)
{
	struct spokei_redis_link *link = spoke_container_of(task, struct spokei_redis_link, write);

	spokei_redis_link_flush(link);
	if (spokei_redis_link_open(link))
		watch_io(link);
}

void spokei_redis_link_write(struct spokei_redis_link *link)
{
	if (spokei_redis_link_open(link))
		spokei_run_settling(link->engine, &link->write);
}

/* --- reading */

/* The reply to AUTH. */
static void take_proof(struct spokei_redis_link *link, struct spokei_resp_cursor reply)
{
	struct spokei_resp_value value;

	link->proving = false;
	(void)spokei_resp_next(&reply, &value);
	if (value.kind == SPOKEI_RESP_ERROR)
		spokei_redis_refused(link, "AUTH", &value);
	else if (value.kind != SPOKEI_RESP_SIMPLE)
		spokei_redis_strange(link, "AUTH");
}

/* Reads the replies of these bytes. Returns how many bytes are done with; SIZE_MAX: the connection
 * has ended. */
static size_t take_replies(struct spokei_redis_link *link, const unsigned char *bytes, size_t len)
{
	uint32_t round = link->round;
	size_t at = 0;

	while (at < len) {
		struct spokei_resp_cursor reply = { bytes + at, NULL };

		if (!link->reading && !link->proving && link->up->expects &&
		    !link->up->expects(link)) {
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
		if (link->proving)
			take_proof(link, reply);
		else
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

/* Returns whether bytes were taken in, and the connection has not ended. */
static bool read_once(struct spokei_redis_link *link)
{
	struct spoke_engine *engine = link->engine;
	ssize_t got = link->stream.kind->read(&link->stream, engine->scratch, SPOKEI_RESP_BYTES);
	uint32_t round = link->round;

	spokei_count(engine, SPOKE_STAT_READS);
	if (got == -EAGAIN || got == -EINTR)
		return false;
	if (got <= 0) {
		broken(link, (int)got);
		return false;
	}
	spokei_count_by(engine, SPOKE_STAT_BYTES_READ, (uint64_t)got);
	link->heard_ns = engine->begin_ns;
	take_in(link, engine->scratch, (size_t)got);
	return link->round == round;
}

/* Reads before a time limit is checked in a late turn, whose polls may not have reported the
 * socket: a reply that has come wins. Returns whether the connection goes on. */
static bool read_if_late(struct spokei_redis_link *link)
{
	uint32_t round = link->round;
	unsigned reads = 0;

	if (spokei_redis_link_open(link) && spokei_engine_late(link->engine))
		while (read_once(link) && ++reads < PENDING_READS)
			;
	return link->round == round;
}

static void io_ready(struct spoke_watch *watch, unsigned io)
{
	struct spokei_redis_link *link = spoke_container_of(watch, struct spokei_redis_link,
							    stream.watch);
	uint32_t round = link->round;
	unsigned reads = 0;

	if ((io & SPOKE_IO_READ) || link->stream.layered) {
		do {
			(void)read_once(link);
		} while (link->round == round && ++reads < PENDING_READS &&
			 spokei_stream_pending(&link->stream) > 0);
	}
	if (link->round != round)
		return;
	if ((io & SPOKE_IO_WRITE) || link->stream.layered)
		spokei_redis_link_write(link);
}

/* --- commands and replies that all links have */

void spokei_redis_put(struct spokei_redis_link *link, unsigned count, const char *const *texts)
{
	int error = spokei_resp_put_command(&link->out, count);

	for (unsigned i = 0; i < count && error == SPOKE_OK; i++)
		error = spokei_resp_put_text(&link->out,
					     (struct spoke_span){ texts[i], strlen(texts[i]) });
	if (error) {
		spokei_redis_link_end(link, SPOKE_ENOMEM, "no memory for a command");
		return;
	}
	spokei_count(link->engine, SPOKE_STAT_LEASE_COMMANDS);
	spokei_redis_link_write(link);
}

static void put_auth(struct spokei_redis_link *link)
{
	const char *const all[] = { "AUTH", link->user, link->password };
	const char *const old[] = { "AUTH", link->password };

	link->proving = *link->password != '\0';
	if (!link->proving)
		return;
	if (*link->user)
		spokei_redis_put(link, COUNT(all), all);
	else
		spokei_redis_put(link, COUNT(old), old);
}

void spokei_redis_refused(struct spokei_redis_link *link, const char *command,
			  const struct spokei_resp_value *reply)
{
	struct spoke_span text = spokei_refusal_text(reply->text);
	char shown[SHOWN_TEXT];

	if (text.len > SPOKEI_REDIS_SHOWN)
		text.len = SPOKEI_REDIS_SHOWN;
	(void)spokei_log_escape(shown, sizeof(shown), text.data, text.len);
	spokei_redis_link_end(link, SPOKE_ESTORE, "%s: %s", command, shown);
}

void spokei_redis_strange(struct spokei_redis_link *link, const char *command)
{
	spokei_redis_link_end(link, SPOKE_EPROTOCOL, "the server sent a wrong reply to %s",
			      command);
}

void spokei_redis_listens(struct spokei_redis_link *link)
{
	spokei_redis_link_ready(link);
	spokei_redis_link_due(link, spokei_later(link->heard_ns, SPOKEI_REDIS_IDLE_NS));
}

static void probe(struct spokei_redis_link *link)
{
	static const char *const ping[] = { "PING" };
	uint64_t quiet_ns = link->engine->begin_ns - link->heard_ns;
	uint64_t wait_ns = SPOKEI_REDIS_IDLE_NS;

	if (quiet_ns < wait_ns) {
		link->pinged = false;
	} else if (!link->pinged) {
		link->pinged = true;
		spokei_redis_put(link, COUNT(ping), ping);
		wait_ns += link->connect_ns;
	} else if (quiet_ns < (wait_ns += link->connect_ns)) {
		/* The answer may still come. */
	} else {
		spokei_redis_link_end(link, SPOKE_ESILENT, "the server is silent");
	}
	spokei_redis_link_due(link, spokei_later(link->heard_ns, wait_ns));
}

/* --- one attempt */

static void try_next(struct spokei_redis_link *link, int status);

static void open_stream(struct spokei_redis_link *link)
{
	int status = link->stream.kind->open(&link->stream);

	if (status == SPOKEI_STREAM_MORE || status == -EAGAIN || status == -EINTR) {
		spokei_stream_watch(&link->stream, link->stream.kind->wants(&link->stream, 0));
		return;
	}
	if (status < 0) {
		try_next(link, status);
		return;
	}
	link->state = SPOKEI_REDIS_GREETING;
	link->answered = false;
	link->pinged = false;
	link->heard_ns = link->engine->begin_ns;
	link->stream.watch.ready = io_ready;
	(void)link->stream.kind->guard(&link->stream, link->connect_ns, KEEPALIVE_NS);
	spokei_dialer_set_timer(&link->dialer, link->connect_ns);
	watch_io(link);
	put_auth(link);
	link->up->opened(link);
}

static void opening_ready(struct spoke_watch *ready, unsigned io)
{
	(void)io;
	open_stream(spoke_container_of(ready, struct spokei_redis_link, stream.watch));
}

static struct spokei_redis_link *link_of(struct spokei_dialer *dialer)
{
	return spoke_container_of(dialer, struct spokei_redis_link, dialer);
}

static void attempt_connected(struct spokei_dialer *dialer, int fd)
{
	struct spokei_redis_link *link = link_of(dialer);

	link->state = SPOKEI_REDIS_OPENING;
	spokei_stream_init(&link->stream, link->engine, &spokei_stream_socket, fd, opening_ready);
	open_stream(link);
}

static void attempt_failed(struct spokei_dialer *dialer, int status)
{
	try_next(link_of(dialer), status == -ETIME ? -ETIMEDOUT : status);
}

/* Tries the next address. `status` is why the last one failed. */
static void try_next(struct spokei_redis_link *link, int status)
{
	const struct spoke_address *to;

	spokei_stream_close(&link->stream);
	link->state = SPOKEI_REDIS_DIALING;
	while ((to = spokei_dialer_next(&link->dialer)) != NULL) {
		status = spokei_dialer_try(&link->dialer, to, link->connect_ns);
		if (status == 0)
			return;
	}
	broken(link, status);
}

static void resolved(struct spokei_dialer *dialer, int status)
{
	struct spokei_redis_link *link = link_of(dialer);

	if (link->left)
		spokei_redis_idle(link->redis);
	else if (link->state == SPOKEI_REDIS_WAITING)
		spokei_dialer_set_timer(dialer, 0); /* it was stopped and started meanwhile */
	else if (link->state == SPOKEI_REDIS_DIALING && status)
		broken(link, status);
	else if (link->state == SPOKEI_REDIS_DIALING)
		try_next(link, 0);
}

static void begin_round(struct spokei_redis_link *link)
{
	int status;

	if (link->dialer.resolving)
		return;
	link->state = SPOKEI_REDIS_DIALING;
	status = spokei_dialer_resolve(&link->dialer);
	if (status == 0)
		try_next(link, 0);
	else if (status != SPOKEI_DIALER_MORE)
		broken(link, status);
}

/* --- tasks and times */

static void report(struct spokei_task *task)
{
	struct spokei_redis_link *link = spoke_container_of(task, struct spokei_redis_link, ending);

	if (link->state == SPOKEI_REDIS_WAITING) {
		link->up->ended(link);
	} else if (link->unwritable) {
		uint32_t round = link->round;
		int status = link->error;

		(void)read_once(link);
		if (link->round == round)
			broken(link, status);
	}
}

static void link_due(struct spokei_dialer *dialer)
{
	struct spokei_redis_link *link = link_of(dialer);

	if (!read_if_late(link))
		return;
	switch (link->state) {
	case SPOKEI_REDIS_WAITING:
		begin_round(link);
		break;
	case SPOKEI_REDIS_OPENING:
		try_next(link, -ETIMEDOUT);
		break;
	case SPOKEI_REDIS_GREETING:
		spokei_redis_link_end(link, SPOKE_ESILENT,
				      "the server did not answer the first commands in %" PRIu64
				      " ms",
				      link->connect_ns / MS);
		break;
	case SPOKEI_REDIS_READY:
		if (link->up->due)
			link->up->due(link);
		else
			probe(link);
		break;
	case SPOKEI_REDIS_STOPPED:
	case SPOKEI_REDIS_DIALING:
		break;
	}
}

static const struct spokei_dialer_up dialer_up = {
	.resolved = resolved,
	.connected = attempt_connected,
	.failed = attempt_failed,
	.due = link_due,
};

void spokei_redis_link_ready(struct spokei_redis_link *link)
{
	SPOKE_ASSERT(link->state == SPOKEI_REDIS_GREETING);
	link->state = SPOKEI_REDIS_READY;
	link->ready_ns = link->engine->begin_ns;
	spokei_dialer_set_timer(&link->dialer, SPOKEI_DIALER_REST_NS);
}

/* --- life */

int spokei_redis_link_init(struct spokei_redis_link *link, struct spokei_redis *redis,
			   const struct spokei_redis_link_up *up, struct spoke_engine *engine,
			   uint64_t connect_ns)
{
	int error;

	*link = (struct spokei_redis_link){
		.engine = engine,
		.up = up,
		.redis = redis,
		.user = "",
		.password = "",
		.connect_ns = connect_ns,
		.write = { .run = write_due },
		.ending = { .run = report },
	};
	error = spokei_dialer_init(&link->dialer, engine, &dialer_up);
	link->dialer.backoff.first_ns = SPOKEI_REDIS_BACKOFF_FIRST_NS;
	link->dialer.backoff.cap_ns = SPOKEI_REDIS_BACKOFF_CAP_NS;
	spokei_stream_init(&link->stream, engine, &spokei_stream_socket, -1, io_ready);
	spokei_buffer_init(&link->in, engine->env, (size_t)2 * SPOKEI_RESP_BYTES);
	spokei_buffer_init(&link->out, engine->env, SPOKEI_REDIS_OUT_MAX);
	return error;
}

void spokei_redis_link_leave(struct spokei_redis_link *link)
{
	spokei_redis_link_stop(link);
	link->left = true;
	spokei_dialer_fini(&link->dialer);
}
