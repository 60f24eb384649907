/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output: the calls that this side makes, each from its id to its one end, and requests that wait
 * for the stream; the events that the connection watches for, and the pause of reading while too
 * many bytes are queued; the output buffer on its way to the stream; and the end of a turn: one
 * write per connection, the timers of new calls, and the end of a connection on which nothing is
 * left to do.
 */
#include "core/base/env.h"
#include "transport/conn/link.h"
#include "transport/conn/parts.h"

#include <errno.h>
#include <string.h>

/* --- unsent requests
 *
 * Unsent requests are values that a connection has not taken yet, because it is not open, the peer
 * has blocked, or the request is guarded. Once a request is in the output buffer, it cannot be
 * withdrawn. A guarded one can until its first byte is written, and stays unsent until then.
 */

/* Owned by its call. */
struct spokei_unsent {
	struct spokei_message message; /* the spans that may change point into `bytes` */
	size_t size;                   /* of this struct, with `bytes` */
	spokei_conn_guard_fn guard;    /* NULL: none */
	int error;                     /* that the request ends with; 0: none yet */
	unsigned char bytes[];
};

#define FRAME_BASE 128u /* about the size of a small request on the wire */

/* Returns the bytes that an unsent request counts for: about the size of its frame. */
static size_t weight_of(const struct spokei_message *message)
{
	return FRAME_BASE + message->args.len + message->attachments.len;
}

void spokei_conn_withdraw(struct spokei_pending *pending)
{
	struct spokei_unsent *unsent = pending->unsent;
	struct spokei_conn *conn = pending->conn;
	const struct spoke_env *env = spokei_conn_engine(conn)->env;

	if (unsent == NULL)
		return;
	pending->unsent = NULL;
	conn->unsent_requests -= weight_of(&unsent->message);
	if (conn->state != SPOKEI_CONN_CLOSED) /* which has counted out all of them */
		conn->link->queued -= weight_of(&unsent->message);
	spokei_free(env, unsent, 1, unsent->size);
}

/* Copies a span to *at, and moves *at behind it. Returns the copy. */
static struct spoke_span put_span(unsigned char **at, struct spoke_span span)
{
	unsigned char *copy = *at;

	if (span.len == 0)
		return spokei_span(NULL, 0);
	memcpy(copy, span.data, span.len);
	*at += span.len;
	return spokei_span(copy, span.len);
}

static struct spokei_unsent *make_unsent(const struct spoke_env *env,
					 const struct spokei_message *message)
{
	const struct spoke_span pairs = { message->attachments.data, message->attachments.len };
	size_t size = sizeof(struct spokei_unsent) + message->args.len + pairs.len +
		      message->service.len + message->version.len + message->group.len;
	struct spokei_unsent *unsent = spokei_alloc_unset(env, size);
	unsigned char *at;

	if (unsent == NULL)
		return NULL;
	unsent->message = *message;
	unsent->size = size;
	unsent->guard = NULL;
	unsent->error = SPOKE_OK;
	at = unsent->bytes;
	unsent->message.args = put_span(&at, message->args);
	unsent->message.attachments.data = put_span(&at, pairs).data;
	/* The method may rename these three for another endpoint before this request is sent, and
	 * rebuild its prefix for another wire. */
	unsent->message.service = put_span(&at, message->service);
	unsent->message.version = put_span(&at, message->version);
	unsent->message.group = put_span(&at, message->group);
	unsent->message.prefix = spokei_span(NULL, 0);
	return unsent;
}

/* Makes the request of a call an unsent one, with copies of its values. Unsent requests count like
 * queued bytes, so there is room when they are queued. Returns 0, SPOKE_ELIMIT or SPOKE_ENOMEM. */
static int keep_unsent(struct spokei_conn *conn, struct spokei_pending *pending,
		       const struct spokei_message *message)
{
	const struct spokei_link_limits *limits = &conn->link->limits;
	size_t waits = conn->unsent_requests + spokei_buffer_len(&conn->out.out);
	size_t len = weight_of(message);

	if (waits > limits->out_max || len > limits->out_max - waits)
		return SPOKE_ELIMIT;
	pending->unsent = make_unsent(spokei_conn_engine(conn)->env, message);
	if (pending->unsent == NULL)
		return SPOKE_ENOMEM;
	conn->unsent_requests += len;
	conn->link->queued += len;
	return SPOKE_OK;
}

/* --- the end of a call */

/* Returns whether the stream has taken the first byte of the request. */
static inline bool has_written(const struct spokei_conn *conn, const struct spokei_pending *pending)
{
	return pending->written_ns != 0 || spokei_outlet_passed(&conn->out, pending->mark);
}

/* A frame in the output buffer is sent if
 * anything is, even after its call has ended. */
bool spokei_conn_may_be_written(const struct spokei_pending *pending)
{
	const struct spokei_conn *conn = pending->conn;

	if (has_written(conn, pending))
		return true;
	return pending->mark != UINT64_MAX && conn->state != SPOKEI_CONN_CLOSED &&
	       !spokei_conn_unwritable(conn);
}

void spokei_conn_finish_pending(struct spokei_pending *pending, int error,
				const struct spokei_message *reply)
{
	struct spokei_conn *conn = pending->conn;
	struct spoke_engine *engine = spokei_conn_engine(conn);
	uint64_t now_ns = engine->begin_ns;
	struct spokei_outcome outcome = { .error = error, .reply = reply };

	if (pending->lasting)
		(void)spoke_wheel_disarm(engine->wheel, &pending->timer);
	else
		(void)spoke_wheel_cancel(engine->wheel, &pending->timer);
	if (pending->node.next)
		spokei_list_remove(&pending->node);
	if (pending->two_way)
		spokei_pendings_remove(&conn->pendings, pending);
	if (SPOKEI_UNLIKELY(pending->unsent))
		spokei_conn_withdraw(pending);
	conn->link->pending_count--;
	outcome.written = spokei_conn_may_be_written(pending);
	if (pending->written_ns) {
		outcome.queued_ns = pending->written_ns - pending->begun_ns;
		if (now_ns > pending->written_ns)
			outcome.waited_ns = now_ns - pending->written_ns;
	} else if (pending->begun_ns && now_ns > pending->begun_ns) {
		outcome.queued_ns = now_ns - pending->begun_ns;
	}
	pending->conn = NULL;
	engine->settle_old = true;
	pending->done(pending, &outcome);
	if (conn->ending)
		spokei_run_settling(engine, &conn->settle);
}

/* Tells a peer of spoke that this side does not wait for the reply to a request any more. */
static void tell_cancel(const struct spokei_pending *pending)
{
	struct spokei_conn *conn = pending->conn;
	struct spokei_message message = {
		.kind = SPOKEI_CANCEL,
		.id = pending->id,
		.codec = conn->probe_codec,
	};

	if (!conn->cancels || !pending->two_way || conn->state > SPOKEI_CONN_FINISHING ||
	    spokei_conn_unwritable(conn) || !spokei_conn_may_be_written(pending))
		return;
	/* It follows its request. A peer that takes nothing is told nothing. */
	(void)!spokei_conn_put_short(conn, &message);
}

void spokei_conn_cancel(struct spokei_pending *pending, int error, bool tells)
{
	if (tells)
		tell_cancel(pending);
	spokei_conn_finish_pending(pending, error, NULL);
}

static void fail_list(struct spoke_list *list, int error)
{
	while (!spokei_list_empty(list))
		spokei_conn_finish_pending(spoke_container_of(spokei_list_first(list),
							      struct spokei_pending, node),
					   error, NULL);
}

void spokei_conn_fail_unsent(struct spokei_conn *conn, int error)
{
	struct spoke_list fresh;

	if (conn->wire == NULL)
		return;
	fail_list(&conn->pendings.kept, error);
	/* Calls of this turn may be written or not. */
	spokei_list_init(&fresh);
	spokei_list_move(&conn->pendings.fresh, &fresh);
	while (!spokei_list_empty(&fresh)) {
		struct spoke_list *node = spokei_list_first(&fresh);
		struct spokei_pending *pending = spoke_container_of(node, struct spokei_pending,
								    node);

		if (pending->unsent) {
			spokei_conn_finish_pending(pending, error, NULL);
		} else {
			spokei_list_unlink(node);
			spokei_list_append(&conn->pendings.fresh, node);
		}
	}
}

void spokei_conn_fail_calls(struct spokei_conn *conn, int error)
{
	struct spokei_pending *pending;

	if (conn->wire == NULL)
		return;
	/* Unwritten calls first: they are in order. */
	fail_list(&conn->pendings.unwritten, error);
	fail_list(&conn->pendings.kept, error);
	fail_list(&conn->pendings.fresh, error);
	while ((pending = spokei_pendings_any(&conn->pendings)) != NULL)
		spokei_conn_finish_pending(pending, error, NULL);
}

/* --- the beginning of a call */

#define NS_PER_MS UINT64_C(1000000)
#define PUT_HIGH 262144u     /* queued bytes above which unsent requests stay unsent */
#define RING_ROOM_IDLE 1024u /* cells that an idle connection may keep */

static int put_request(struct spokei_conn *conn, struct spokei_pending *pending,
		       struct spokei_message *message, uint64_t left_ns)
{
	uint64_t mark = spokei_outlet_mark(&conn->out);
	int error;

	if (conn->wire->deadlines)
		message->timeout_ms = (int64_t)(left_ns / NS_PER_MS + (left_ns % NS_PER_MS != 0));
	error = spokei_conn_put(conn, message, message->args.len);
	if (error == 0)
		pending->mark = mark;
	return error;
}

static int check_room(const struct spokei_conn *conn)
{
	const struct spokei_link *link = conn->link;

	if (conn->state > SPOKEI_CONN_OPEN || spokei_conn_unwritable(conn) || conn->readonly ||
	    conn->wire == NULL)
		return SPOKE_ESTATE;
	if (link->pending_count >= link->limits.pending_max)
		return spokei_link_refused(conn->link, SPOKE_ELIMIT, SPOKEI_REFUSED_BY_PENDING);
	if (link->queued >= link->limits.queued_max)
		return spokei_link_refused(conn->link, SPOKE_ELIMIT, SPOKEI_REFUSED_BY_QUEUED);
	return 0;
}

/* `guard` NULL: the request is queued at once if the connection takes it. */
static inline int begin_call(struct spokei_conn *conn, struct spokei_pending *pending,
			     struct spokei_message *message, spokei_conn_guard_fn guard)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);
	int error = check_room(conn);

	if (error)
		return error;
	error = spokei_pendings_add(&conn->pendings, engine->env, pending);
	if (error)
		return spokei_link_refused(conn->link, error, SPOKEI_REFUSED_BY_IDS);
	pending->mark = UINT64_MAX;
	pending->two_way = message->two_way;
	message->id = pending->id;
	if (!message->two_way) /* a one-way request needs an id, but waits for no reply */
		spokei_pendings_remove(&conn->pendings, pending);
	if (guard == NULL && spokei_conn_takes_at_once(conn))
		error = put_request(conn, pending, message, pending->timeout_ns);
	else
		error = keep_unsent(conn, pending, message);
	if (error) {
		if (message->two_way)
			spokei_pendings_remove(&conn->pendings, pending);
		return spokei_link_refused(conn->link, error, SPOKEI_REFUSED_BY_OUTPUT);
	}
	pending->conn = conn;
	if (guard)
		pending->unsent->guard = guard;
	spokei_list_append(&conn->pendings.fresh, &pending->node);
	conn->link->pending_count++;
	conn->link->asked = true;
	spokei_run_settling(engine, &conn->settle);
	return 0;
}

int spokei_conn_call(struct spokei_conn *conn, struct spokei_pending *pending,
		     struct spokei_message *message)
{
	return begin_call(conn, pending, message, NULL);
}

SPOKEI_NOINLINE int spokei_conn_call_guarded(struct spokei_conn *conn,
					     struct spokei_pending *pending,
					     struct spokei_message *message,
					     spokei_conn_guard_fn guard)
{
	SPOKE_ASSERT(guard != NULL);
	return begin_call(conn, pending, message, guard);
}

/* --- watching, and the pause of reading */

bool spokei_conn_is_full_unproven(const struct spokei_conn *conn)
{
	return spokei_conn_queues(conn, spokei_outlet_len(&conn->out), SPOKEI_UNPROVEN_OUT);
}

/* Has a stream whose bytes count as queued call when so few wait that the pause ends. */
static SPOKEI_NOINLINE unsigned watch_layered(struct spokei_conn *conn, unsigned io)
{
	struct spokei_stream *stream = &conn->stream;

	stream->low = SIZE_MAX;
	if (conn->paused & SPOKEI_PAUSED_FULL && stream->kind->queues &&
	    !spokei_conn_unwritable(conn)) {
		stream->low = spokei_link_low(conn->link, conn->unproven);
		io |= SPOKE_IO_WRITE;
	}
	return stream->kind->wants(stream, io);
}

void spokei_conn_watch(struct spokei_conn *conn)
{
	unsigned io = 0;

	if (conn->stream.watch.fd < 0)
		return;
	if (spokei_conn_has_room(conn) && !spokei_conn_ended(conn) &&
	    conn->state != SPOKEI_CONN_OPENING)
		io = SPOKE_IO_READ;
	if (conn->output == SPOKEI_OUTPUT_BLOCKED)
		io |= SPOKE_IO_WRITE;
	if (SPOKEI_UNLIKELY(conn->stream.layered))
		io = watch_layered(conn, io);
	spokei_stream_watch(&conn->stream, io);
}

void spokei_conn_pause(struct spokei_conn *conn)
{
	spokei_task_drop(&conn->resume); /* also if the end of the pause has queued the task */
	if (conn->paused & SPOKEI_PAUSED_FULL)
		return;
	conn->paused |= SPOKEI_PAUSED_FULL;
	spokei_count(spokei_conn_engine(conn), SPOKE_STAT_READS_PAUSED);
	spokei_conn_watch(conn);
}

/* The queue of bytes is low again. */
static void end_full_pause(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	if (SPOKEI_UNLIKELY(conn->unproven) &&
	    spokei_conn_is_full(conn, conn->link->limits.out_high))
		return;
	if (conn->paused & SPOKEI_PAUSED_TURN && conn->serving_count > 0) {
		conn->paused = SPOKEI_PAUSED_TURN; /* the answer ends the pause */
		return;
	}
	if (conn->paused & SPOKEI_PAUSED_TURN || spokei_buffer_len(&conn->held) > 0 ||
	    (conn->wire->in_order && spokei_conn_has_next(conn)) ||
	    spokei_stream_pending(&conn->stream) > 0) {
		spokei_run_soon(engine, &conn->resume);
		return;
	}
	spokei_conn_unpause(conn);
	if (conn->since[SPOKEI_LIMIT_FRAME])
		spokei_conn_since(conn, SPOKEI_LIMIT_FRAME, engine->settle_ns);
}

/* Ends a pause once few bytes are queued. */
static inline void unpause_if_low(struct spokei_conn *conn)
{
	if (SPOKEI_UNLIKELY(conn->paused) &&
	    !spokei_conn_queues(conn, spokei_outlet_len(&conn->out),
				spokei_link_low(conn->link, conn->unproven) + 1))
		end_full_pause(conn);
}

/* --- writing: the output buffer, and long bodies from where they lie */

/* Bytes of a long body that are written ahead of the rest: the peer starts while the kernel copies
 * the remaining bytes. */
#define AHEAD 4096u

/* The stream takes no more bytes. Bytes that the peer has sent are still read for a while: a broken
 * connection shows its end there too, and not every error means that it is broken. But without
 * memory it is this side that is broken, and the peer would wait for answers. */
static void give_up_writing(struct spokei_conn *conn, int status)
{
	conn->link->queued -= spokei_outlet_len(&conn->out);
	spokei_outlet_fini(&conn->out);
	conn->output = SPOKEI_OUTPUT_BROKEN;
	conn->holds = false;
	if (conn->paused)
		end_full_pause(conn);
	conn->since[SPOKEI_LIMIT_SLOW] = 0;
	spokei_conn_since(conn, SPOKEI_LIMIT_BROKEN, spokei_conn_engine(conn)->settle_ns);
	if (status == -ENOMEM)
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
	else if (spokei_conn_ended(conn))
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_BY_PEER, SPOKE_ELOST);
}

/* Returns whether the descriptor has taken bytes since the last time. Bytes that a stream has taken
 * may only wait in it. */
static SPOKEI_NOINLINE bool has_passed(struct spokei_conn *conn)
{
	uint64_t before = conn->passed;

	conn->passed = conn->stream.kind->passed(&conn->stream);
	return conn->passed != before;
}

/* Notes for a probe that is queued how many bytes of the control queue were taken. Frames behind
 * the probe do not count. */
static SPOKEI_NOINLINE void follow_probe(struct spokei_conn *conn, size_t taken, bool moved)
{
	struct spokei_idle *idle = &conn->idle;
	const uint64_t now_ns = spokei_conn_engine(conn)->settle_ns;

	idle->ahead = (uint16_t)(taken < idle->ahead ? idle->ahead - taken : 0);
	if (idle->ahead == 0)
		spokei_idle_handed(idle, now_ns);
	else if (moved)
		spokei_idle_moved(idle, now_ns);
}

/* Notes that the stream has taken `len` bytes. */
static inline void took(struct spokei_conn *conn, size_t len)
{
	struct spokei_link *link = conn->link;
	struct spoke_engine *engine = link->engine;
	bool moved = SPOKEI_UNLIKELY(conn->stream.layered) ? has_passed(conn) : len > 0;
	size_t control;
	size_t waits;

	spokei_count_by(engine, SPOKE_STAT_BYTES_WRITTEN, len);
	link->queued -= len;
	control = spokei_buffer_len(&conn->out.control);
	spokei_outlet_took(&conn->out, conn->wire, len);
	if (SPOKEI_UNLIKELY(conn->idle.asked && !conn->idle.handed))
		follow_probe(conn, control - spokei_buffer_len(&conn->out.control),
			     len > 0 || moved);
	waits = spokei_outlet_len(&conn->out);
	if (waits == 0) {
		spokei_spares_return(&engine->spares, &conn->out.out);
		/* Heartbeats are lent no memory: if kept, it would add to the spares. */
		if (conn->out.control.bytes)
			spokei_buffer_fini(&conn->out.control);
	}
	if (waits == 0 && SPOKEI_LIKELY(!conn->holds)) {
		conn->since[SPOKEI_LIMIT_SLOW] = 0;
	} else if (moved || conn->since[SPOKEI_LIMIT_SLOW] == 0) {
		spokei_conn_since(conn, SPOKEI_LIMIT_SLOW, engine->settle_ns);
		if (conn->state == SPOKEI_CONN_CLOSED)
			return;
	}
	unpause_if_low(conn);
}

/* Returns how many bytes the stream has taken, or an error after which it takes none. */
static inline ssize_t write_parts(struct spokei_conn *conn, const struct iovec *parts, int count)
{
	ssize_t len;

	spokei_count(spokei_conn_engine(conn), SPOKE_STAT_WRITES);
	len = conn->stream.kind->write(&conn->stream, parts, count);
	if (SPOKEI_UNLIKELY(conn->stream.layered) && len > 0)
		conn->holds = true;
	return len == -EINTR || len == -EAGAIN ? 0 : len;
}

static void write_output(struct spokei_conn *conn)
{
	struct iovec parts[SPOKEI_OUTLET_PARTS];
	int count = spokei_outlet_front(&conn->out, parts);
	ssize_t len;

	if (count == 0)
		return;
	len = write_parts(conn, parts, count);
	if (len < 0)
		give_up_writing(conn, (int)len);
	else
		took(conn, (size_t)len);
}

static void flush(struct spokei_conn *conn)
{
	uint64_t now_ns = spokei_conn_engine(conn)->settle_ns;
	int status = conn->stream.kind->flush(&conn->stream);

	if (spokei_conn_unwritable(conn))
		return;
	conn->holds = status == -EAGAIN || status == -EINTR;
	if (status < 0 && !conn->holds) {
		give_up_writing(conn, status);
		return;
	}
	/* The stream may have passed bytes on in write(), too: took() has noted those. */
	if (has_passed(conn)) {
		conn->since[SPOKEI_LIMIT_SLOW] = 0;
		spokei_idle_moved(&conn->idle, now_ns);
	}
	if (!conn->holds && spokei_outlet_len(&conn->out) == 0) {
		conn->since[SPOKEI_LIMIT_SLOW] = 0;
	} else if (conn->since[SPOKEI_LIMIT_SLOW] == 0) {
		spokei_conn_since(conn, SPOKEI_LIMIT_SLOW, now_ns);
		if (conn->state == SPOKEI_CONN_CLOSED)
			return;
	}
	/* The peer may have taken bytes that wait in the stream. */
	if (conn->paused & SPOKEI_PAUSED_FULL)
		unpause_if_low(conn);
}

void spokei_conn_lend(struct spokei_conn *conn)
{
	spokei_spares_lend(&spokei_conn_engine(conn)->spares, &conn->out.out);
}

/* Not in a forked child: control returns there to the code that forked. */
static bool may_write(const struct spokei_conn *conn)
{
	return conn->state != SPOKEI_CONN_CLOSED && !conn->paused &&
	       conn->output == SPOKEI_OUTPUT_FREE &&
	       !spokei_engine_forked(spokei_conn_engine(conn));
}

/* The code that runs is not over, so the time is read again when the turn ends. */
static bool begin_early(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	if (!may_write(conn))
		return false;
	engine->settle_ns = engine->env->now(engine->env->ctx);
	engine->settle_old = true;
	return true;
}

/* Writes the only frame that is queued, which has room for the lent bytes, and copies those that
 * the stream did not take. An error is reported when the turn ends, outside of any call. */
static void write_lent(struct spokei_conn *conn, const struct spokei_lent *lent)
{
	_Static_assert(AHEAD < SPOKEI_LENT_MIN, "there is a rest");
	const unsigned char *frame = spokei_buffer_data(&conn->out.out);
	const unsigned char *bytes = lent->bytes.data;
	size_t len = lent->bytes.len;
	size_t head_len = (size_t)(lent->at - frame);
	size_t tail_len = spokei_buffer_len(&conn->out.out) - head_len - len;
	struct iovec ahead[] = { spokei_stream_part(frame, head_len),
				 spokei_stream_part(bytes, AHEAD) };
	struct iovec rest[] = { spokei_stream_part(bytes + AHEAD, len - AHEAD),
				spokei_stream_part(lent->at + len, tail_len) };
	ssize_t first = write_parts(conn, ahead, 2);
	ssize_t second = 0;
	size_t took_len = first > 0 ? (size_t)first : 0;
	size_t gone;

	if (took_len == head_len + AHEAD)
		second = write_parts(conn, rest, tail_len > 0 ? 2 : 1);
	took_len += second > 0 ? (size_t)second : 0;
	gone = took_len > head_len ? took_len - head_len : 0;
	if (gone < len)
		memcpy(lent->at + gone, bytes + gone, len - gone);
	took(conn, took_len);
	if (first >= 0 && second >= 0 && spokei_outlet_len(&conn->out) > 0)
		conn->output = SPOKEI_OUTPUT_BLOCKED;
}

int spokei_conn_put_long(struct spokei_conn *conn, struct spokei_message *message)
{
	struct spokei_lent lent = { .at = NULL };
	int error;

	if (!conn->stream.kind->copies && !spokei_conn_unwritable(conn) &&
	    conn->unsent_requests == 0 && spokei_outlet_len(&conn->out) == 0 && begin_early(conn))
		message->lent = &lent;
	error = spokei_conn_put_short(conn, message);
	message->lent = NULL;
	if (error == 0 && lent.at)
		write_lent(conn, &lent);
	return error;
}

void spokei_conn_dismiss(struct spokei_conn *conn, enum spoke_stat stat, int error)
{
	if (!spokei_conn_unwritable(conn) && begin_early(conn)) {
		write_output(conn);
		if (conn->stream.layered && conn->state != SPOKEI_CONN_CLOSED)
			flush(conn);
		spokei_conn_part(conn);
	}
	spokei_conn_close_with(conn, stat, error);
}

/* --- calls at the end of a turn */

/* Notes that the request was written. A one-way call then ends. */
static void note_written(struct spokei_conn *conn, struct spokei_pending *pending)
{
	pending->written_ns = spokei_conn_engine(conn)->settle_ns;
	if (!pending->two_way)
		spokei_conn_finish_pending(pending, SPOKE_OK, NULL);
	else if (pending->node.next)
		spokei_list_remove(&pending->node);
}

/* Returns the list of earlier calls that this one belongs to: queued, or still unsent. */
static struct spoke_list *list_of(struct spokei_conn *conn, const struct spokei_pending *pending)
{
	return pending->unsent ? &conn->pendings.kept : &conn->pendings.unwritten;
}

static void arm_call(struct spokei_conn *conn, struct spokei_pending *pending, bool waits)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);
	uint64_t now_ns = spokei_engine_settled(engine);
	uint64_t due_ns = spokei_later(now_ns, pending->timeout_ns);
	int status;

	pending->begun_ns = now_ns;
	status = spoke_wheel_schedule(engine->wheel, &pending->timer, conn->link->pending_class,
				      due_ns);
	if (status != SPOKE_WHEEL_OK) {
		spokei_conn_finish_pending(pending, spokei_engine_fold(status), NULL);
		return;
	}
	if (!waits)
		note_written(conn, pending);
}

static void settle_fresh(struct spokei_conn *conn)
{
	struct spoke_list fresh;

	if (spokei_list_empty(&conn->pendings.fresh))
		return;
	spokei_list_init(&fresh);
	spokei_list_move(&conn->pendings.fresh, &fresh);
	while (!spokei_list_empty(&fresh)) {
		struct spoke_list *node = spokei_list_first(&fresh);
		struct spokei_pending *pending = spoke_container_of(node, struct spokei_pending,
								    node);
		bool waits = !spokei_outlet_passed(&conn->out, pending->mark);

		spokei_list_remove(node);
		if (waits)
			spokei_list_append(list_of(conn, pending), node);
		arm_call(conn, pending, waits);
	}
}

/* After the write: notes which calls were written, and arms the timers of new calls. */
static void settle_calls(struct spokei_conn *conn)
{
	struct spokei_pendings *pendings = &conn->pendings;

	if (conn->wire == NULL)
		return;
	while (!spokei_list_empty(&pendings->unwritten)) {
		struct spokei_pending *pending = spoke_container_of(spokei_list_first(
									    &pendings->unwritten),
								    struct spokei_pending, node);

		if (!spokei_outlet_passed(&conn->out, pending->mark))
			break;
		note_written(conn, pending);
	}
	settle_fresh(conn);
	/* A connection that was busy once may be idle for ever. */
	if (pendings->count == 0 && SPOKEI_UNLIKELY(pendings->room > RING_ROOM_IDLE))
		spokei_pendings_fini(pendings, spokei_conn_engine(conn)->env);
}

void spokei_conn_prolong(struct spokei_pending *pending, bool written, uint64_t now_ns)
{
	const struct spokei_link *link = pending->conn->link;

	if (link->prolong)
		pending->timeout_ns = link->prolong(pending, written, now_ns);
}

/* Unsent requests that were queued for one write. */
struct batch {
	bool guarded;             /* at least one of them is guarded */
	struct spoke_list failed; /* calls after that one that could not be queued */
};

/* Returns the error that ends the request before it is queued, or 0. */
static int check_unsent(struct spokei_pending *pending, uint64_t gone_ns)
{
	uint64_t now_ns = pending->begun_ns + gone_ns;

	/* The wheel will end it: it advances after all sockets were read. */
	if (gone_ns >= pending->timeout_ns)
		spokei_conn_prolong(pending, false, now_ns);
	if (gone_ns >= pending->timeout_ns)
		return SPOKE_ETIMEOUT_UNSENT;
	return pending->unsent->guard ? pending->unsent->guard(pending) : SPOKE_OK;
}

/* Returns whether there may be room for the next one. */
static bool send_unsent(struct spokei_conn *conn, struct spokei_pending *pending,
			struct batch *batch)
{
	struct spokei_unsent *unsent = pending->unsent;
	uint64_t now_ns = spokei_conn_engine(conn)->settle_ns;
	uint64_t gone_ns = now_ns > pending->begun_ns ? now_ns - pending->begun_ns : 0;
	int error = check_unsent(pending, gone_ns);

	if (error == 0)
		spokei_conn_prolong(pending, true, now_ns);
	if (error == 0)
		error = put_request(conn, pending, &unsent->message, pending->timeout_ns - gone_ns);
	if (error == SPOKE_ELIMIT && spokei_buffer_len(&conn->out.out) > 0)
		return false; /* the next write is for this frame alone */
	if (error && !batch->guarded) {
		spokei_conn_finish_pending(pending, error, NULL);
		return true;
	}
	spokei_list_remove(&pending->node);
	if (error) {
		unsent->error = error;
		spokei_list_append(&batch->failed, &pending->node);
		return true;
	}
	spokei_list_append(&conn->pendings.unwritten, &pending->node);
	batch->guarded |= unsent->guard != NULL;
	if (!batch->guarded)
		spokei_conn_withdraw(pending);
	return true;
}

/* Queues unsent requests, as many as one write is likely to take. Calls no user after a guarded
 * request was checked. May close the connection before. */
static void send_batch(struct spokei_conn *conn, struct batch *batch)
{
	struct spoke_list *kept = &conn->pendings.kept;
	struct spoke_list withdrawn; /* calls that are about to end */
	bool room = true;

	settle_fresh(conn);
	spokei_list_init(&batch->failed);
	batch->guarded = false;
	spokei_list_init(&withdrawn);
	while (room && conn->state != SPOKEI_CONN_CLOSED && !spokei_list_empty(kept) &&
	       spokei_buffer_len(&conn->out.out) < PUT_HIGH) {
		struct spokei_pending *pending = spoke_container_of(spokei_list_first(kept),
								    struct spokei_pending, node);

		if (pending->unsent) {
			room = send_unsent(conn, pending, batch);
		} else {
			spokei_list_remove(&pending->node);
			spokei_list_append(&withdrawn, &pending->node);
		}
	}
	while (!spokei_list_empty(&withdrawn)) {
		struct spoke_list *node = spokei_list_first(&withdrawn);

		spokei_list_unlink(node);
		spokei_list_append(kept, node);
	}
}

/* Takes `frames` out of the buffer again, which are queued last and begin at the mark. The stream
 * has taken nothing of them. */
static void unqueue(struct spokei_conn *conn, uint64_t mark, uint64_t frames)
{
	struct spokei_link *link = conn->link;
	struct spokei_buffer *out = &conn->out.out;
	size_t keep = (size_t)(mark - conn->out.sent);
	size_t waits;

	SPOKE_ASSERT(keep <= spokei_buffer_len(out));
	spokei_conn_engine(conn)->stats[SPOKE_STAT_MESSAGES_WRITTEN] -= frames;
	link->queued -= spokei_buffer_len(out) - keep;
	spokei_buffer_truncate(out, keep);
	waits = spokei_outlet_len(&conn->out);
	if (waits == 0) {
		if (!conn->holds)
			conn->since[SPOKEI_LIMIT_SLOW] = 0;
		spokei_spares_return(&link->engine->spares, out);
	}
	unpause_if_low(conn);
}

/* Makes requests unsent again whose frames the stream has not begun to take. They were queued last,
 * so those of a batch with a guarded request are the last ones with an unsent request. */
static void take_back(struct spokei_conn *conn)
{
	struct spoke_list *unwritten = &conn->pendings.unwritten;
	uint64_t mark = UINT64_MAX;
	uint64_t frames = 0;

	while (!spokei_list_empty(unwritten)) {
		struct spoke_list *node = unwritten->prev;
		struct spokei_pending *pending = spoke_container_of(node, struct spokei_pending,
								    node);

		if (pending->unsent == NULL || has_written(conn, pending))
			break;
		mark = pending->mark;
		pending->mark = UINT64_MAX;
		spokei_list_unlink(node);
		spokei_list_append(conn->pendings.kept.next, node);
		frames++;
	}
	if (frames > 0 && !spokei_conn_unwritable(conn) && conn->state != SPOKEI_CONN_CLOSED)
		unqueue(conn, mark, frames);
	for (struct spoke_list *node = unwritten->prev; node != unwritten; node = node->prev) {
		struct spokei_pending *pending = spoke_container_of(node, struct spokei_pending,
								    node);

		if (pending->unsent == NULL)
			break;
		spokei_conn_withdraw(pending);
	}
}

/* After the write: makes requests of a guarded batch unsent again if the stream has not begun to
 * take them, and ends those that have failed, which may close the connection. */
static void end_batch(struct spokei_conn *conn, struct batch *batch)
{
	if (batch->guarded)
		take_back(conn);
	while (!spokei_list_empty(&batch->failed)) {
		struct spokei_pending *pending = spoke_container_of(spokei_list_first(
									    &batch->failed),
								    struct spokei_pending, node);

		if (pending->unsent) {
			spokei_conn_finish_pending(pending, pending->unsent->error, NULL);
		} else { /* withdrawn by the callback of another one: it is about to end */
			spokei_list_remove(&pending->node);
			spokei_list_append(&conn->pendings.kept, &pending->node);
		}
	}
}

/* --- the end of a turn, and early writes during it */

/* A write of a stream with a layer costs as much as some KiB of a long one, on both sides, so short
 * ones wait for the end of the turn. */
#define EARLY_LAYERED 16384u

static inline void pass_on(struct spokei_conn *conn)
{
	if (SPOKEI_UNLIKELY(conn->stream.layered) && !spokei_conn_unwritable(conn))
		flush(conn);
}

/* Notes whether output waits after a write. */
static inline void note_output(struct spokei_conn *conn, bool waits)
{
	if (!spokei_conn_unwritable(conn))
		conn->output = waits ? SPOKEI_OUTPUT_BLOCKED : SPOKEI_OUTPUT_FREE;
}

static inline void write_queued(struct spokei_conn *conn)
{
	write_output(conn);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	note_output(conn, spokei_outlet_len(&conn->out) > 0);
	pass_on(conn);
}

/* Unsent requests come into the output buffer only when nothing else is there: until then they can
 * be withdrawn. While the stream takes everything, only guarded requests are unsent, and they
 * follow the output of this turn. No user's code runs between the check of a guarded request and
 * the write. */
static SPOKEI_NOINLINE void write_unsent(struct spokei_conn *conn)
{
	struct batch batch;
	bool sends = conn->output == SPOKEI_OUTPUT_FREE || spokei_buffer_len(&conn->out.out) == 0;

	if (sends)
		send_batch(conn, &batch);
	if (conn->state != SPOKEI_CONN_CLOSED)
		write_output(conn);
	if (sends)
		end_batch(conn, &batch);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	note_output(conn, spokei_outlet_len(&conn->out) > 0 || conn->unsent_requests > 0);
	pass_on(conn);
}

/* Writes, unless the stream has just refused to take more. */
static void write_waiting(struct spokei_conn *conn)
{
	if (conn->output == SPOKEI_OUTPUT_BLOCKED)
		return;
	if (SPOKEI_UNLIKELY(conn->output == SPOKEI_OUTPUT_WRITABLE))
		conn->output = SPOKEI_OUTPUT_BLOCKED;
	if (SPOKEI_UNLIKELY(conn->unsent_requests > 0))
		write_unsent(conn);
	else
		write_queued(conn);
}

/* Guarded requests wait for the end of the turn. */
void spokei_conn_write_early(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	if (SPOKEI_LIKELY(!conn->stream.kind->prompt)) {
		if (SPOKEI_UNLIKELY(conn->stream.layered) &&
		    spokei_buffer_len(&conn->out.out) < EARLY_LAYERED)
			return;
		if (begin_early(conn))
			write_queued(conn);
		return;
	}
	if (!may_write(conn))
		return;
	/* A reading of the clock costs as much as such a write, so the turn's begin is its time. */
	if (engine->settle_ns < engine->begin_ns)
		engine->settle_ns = engine->begin_ns;
	engine->settle_old = true;
	write_queued(conn);
}

/* Returns whether the peer may still send requests, which then have to be refused. */
static bool may_be_asked(const struct spokei_conn *conn)
{
	return conn->since[SPOKEI_LIMIT_NOTICE] && !conn->readonly && !spokei_conn_ended(conn) &&
	       !spokei_conn_unwritable(conn);
}

static bool is_finished(const struct spokei_conn *conn)
{
	return conn->ending && !may_be_asked(conn) && spokei_list_empty(&conn->servings) &&
	       conn->pendings.count == 0 && conn->unsent_requests == 0 &&
	       spokei_outlet_len(&conn->out) == 0 && !conn->holds &&
	       spokei_buffer_len(&conn->held) == 0 && conn->resume.node.next == NULL;
}

/* Everything is written. Closing a socket with unread input would discard output that the peer has
 * not read yet. So this side shuts its sending side, and reads until the peer's end, for a while.
 */
static void finish(struct spokei_conn *conn)
{
	if (conn->output == SPOKEI_OUTPUT_SHUT)
		return;
	if (conn->state == SPOKEI_CONN_OPEN)
		spokei_conn_move(conn, SPOKEI_CONN_FINISHING);
	spokei_conn_answer_end(conn);
	if (spokei_conn_ended(conn) || spokei_conn_unwritable(conn) ||
	    conn->stream.kind->shut(&conn->stream) < 0) {
		spokei_conn_close(conn, spokei_conn_ended(conn) ? SPOKE_ELOST : SPOKE_ECLOSED);
		return;
	}
	conn->output = SPOKEI_OUTPUT_SHUT;
	spokei_conn_since(conn, SPOKEI_LIMIT_SHUT, spokei_conn_engine(conn)->settle_ns);
}

void spokei_conn_settle(struct spokei_task *task)
{
	struct spokei_conn *conn = spoke_container_of(task, struct spokei_conn, settle);

	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	if (!spokei_conn_is_opening(conn) && !spokei_conn_unwritable(conn))
		write_waiting(conn);
	else if (conn->output == SPOKEI_OUTPUT_SHUT && conn->stream.layered)
		flush(conn);
	if (conn->state != SPOKEI_CONN_CLOSED)
		settle_calls(conn);
	if (is_finished(conn))
		finish(conn);
	spokei_conn_watch(conn);
}
