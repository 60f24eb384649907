/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The times of a connection: its limits, the silence of the peer (keep, probe, suspect, dead) with
 * heartbeats and READONLY, the one timer that is armed for the earliest of these times, and the
 * deadlines of its calls and answers.
 */
#include "core/text/encoding.h"
#include "transport/conn/link.h"
#include "transport/conn/parts.h"
#include "transport/stream/greet.h"
#include "transport/wire/codecs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)
#define GRACE_NS UINT64_C(1000000000) /* after a late turn, until the times are checked again */

/* --- when a time is over */

/* The limits. `field`: where the limit lies in those of the link. A connection that is over one is
 * closed with `error`, and counted and reported as `stat`, unless that is SPOKE_STAT_CLOSED, which
 * counts every end. */
static const struct {
	size_t field;
	enum spoke_stat stat;
	int error;
} rows[] = {
#define ROW(name) offsetof(struct spokei_link_limits, name##_ns)
	[SPOKEI_LIMIT_NOTICE] = { ROW(goodbye), SPOKE_STAT_CLOSED, SPOKE_OK }, /* is not closed */
	[SPOKEI_LIMIT_MUTE] = { ROW(mute), SPOKE_STAT_CLOSED_MUTE, SPOKE_ESILENT },
	[SPOKEI_LIMIT_OPENING] = { ROW(handshake), SPOKE_STAT_CLOSED_HANDSHAKE, SPOKE_EHANDSHAKE },
	[SPOKEI_LIMIT_SHUT] = { ROW(linger), SPOKE_STAT_CLOSED, SPOKE_ECLOSED },
	[SPOKEI_LIMIT_BROKEN] = { ROW(linger), SPOKE_STAT_CLOSED_BY_PEER, SPOKE_ELOST },
	[SPOKEI_LIMIT_HALF] = { ROW(half), SPOKE_STAT_CLOSED_BY_PEER, SPOKE_ELOST },
	[SPOKEI_LIMIT_SLOW] = { ROW(slow), SPOKE_STAT_CLOSED_SLOW, SPOKE_ESLOW },
	[SPOKEI_LIMIT_FRAME] = { ROW(frame), SPOKE_STAT_CLOSED_FRAME_TIME, SPOKE_EPROTOCOL },
#undef ROW
};

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Returns whether a limit counts now. */
static bool counts(const struct spokei_conn *conn, enum spokei_conn_limit limit)
{
	if (conn->since[limit] == 0)
		return false;
	switch ((int)limit) {
	case SPOKEI_LIMIT_FRAME:
		return !conn->paused; /* while paused, this side keeps the frame waiting */
	case SPOKEI_LIMIT_NOTICE:
		return !conn->readonly && conn->state == SPOKEI_CONN_FINISHING;
	case SPOKEI_LIMIT_MUTE:
		return conn->link->limits.mute_ns != 0;
	default:
		return true;
	}
}

/* Returns how long a time may last; that of the notice on a wire without ids: until the peer sends
 * a request, or the rest of one. */
static uint64_t length_of(const struct spokei_conn *conn, enum spokei_conn_limit limit)
{
	const unsigned char *limits = (const unsigned char *)&conn->link->limits;
	uint64_t length_ns;

	if (limit == SPOKEI_LIMIT_NOTICE && conn->in.wire->in_order &&
	    !spokei_intake_begun(&conn->in))
		return SPOKEI_CROSSING_NS;
	memcpy(&length_ns, limits + rows[limit].field, sizeof(length_ns));
	return length_ns;
}

/* Returns when a limit is reached; UINT64_MAX: it does not count now. */
static uint64_t limit_due(const struct spokei_conn *conn, enum spokei_conn_limit limit)
{
	return counts(conn, limit) ? spokei_later(conn->since[limit], length_of(conn, limit))
				   : UINT64_MAX;
}

/* Returns the interval of silence that counts on this connection's wire. */
static uint64_t interval_of(const struct spokei_conn *conn)
{
	const struct spokei_link_limits *limits = &conn->link->limits;

	if (!conn->wire->probes)
		return limits->idle_close_ns != SPOKEI_IDLE_OFF ? limits->idle_close_ns
								: conn->wire->idle_ns;
	if (conn->heartbeat_ns == 0 || limits->heartbeat_ns == SPOKEI_IDLE_OFF)
		return limits->heartbeat_ns;
	return earlier(limits->heartbeat_ns, conn->heartbeat_ns);
}

/* Returns when the peer's silence is to be checked next; UINT64_MAX: never. */
static uint64_t idle_due(const struct spokei_conn *conn)
{
	if (!spokei_conn_is_listened_to(conn))
		return UINT64_MAX;
	return spokei_idle_due(&conn->idle, interval_of(conn));
}

/* Returns when the answer to the request that is served is due, on wires without ids; UINT64_MAX:
 * none is. */
static uint64_t answer_due(const struct spokei_conn *conn)
{
	bool waits = conn->wire != NULL && conn->wire->in_order && conn->serving_count > 0;

	return waits ? conn->answer_ns : UINT64_MAX;
}

/* Returns when the connection is to be checked next; UINT64_MAX: never. */
static uint64_t next_due(const struct spokei_conn *conn)
{
	uint64_t due_ns = earlier(idle_due(conn), answer_due(conn));

	for (unsigned i = 0; i < SPOKEI_LIMITS; i++)
		due_ns = earlier(due_ns, limit_due(conn, (enum spokei_conn_limit)i));
	return due_ns;
}

/* Sets the timer, unless `due_ns` is UINT64_MAX. */
static void set_timer(struct spokei_conn *conn, uint64_t due_ns)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);
	int status;

	if (due_ns == UINT64_MAX)
		return;
	if (spoke_timer_armed(&conn->timer))
		status = spoke_wheel_reschedule(engine->wheel, &conn->timer, due_ns);
	else
		status = spoke_wheel_schedule(engine->wheel, &conn->timer, conn->link->conn_class,
					      due_ns);
	if (status == SPOKE_WHEEL_OK)
		conn->due_ns = due_ns;
	else /* without a timer the connection cannot be checked */
		spokei_conn_close(conn, spokei_engine_fold(status));
}

/* A timer that is due too early checks and is armed again, so it is moved only if it is too late.
 */
static void arm(struct spokei_conn *conn, uint64_t due_ns)
{
	if (!spoke_timer_armed(&conn->timer) || conn->due_ns > due_ns)
		set_timer(conn, due_ns);
}

void spokei_conn_arm(struct spokei_conn *conn)
{
	arm(conn, next_due(conn));
}

void spokei_conn_unpause(struct spokei_conn *conn)
{
	const struct spoke_env *env = spokei_conn_engine(conn)->env;

	conn->paused = 0;
	/* The turn may be an old one, where an answer is given outside of any. */
	conn->idle.since_ns = env->coarse(env->ctx);
	arm(conn, idle_due(conn));
}

/* Times that a late turn did not check come a little later. */
void spokei_conn_rearm(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);
	uint64_t now_ns = engine->begin_ns;
	uint64_t due_ns = next_due(conn);

	if (due_ns <= now_ns)
		due_ns = earlier(spokei_later(now_ns, GRACE_NS),
				 earlier(idle_due(conn), answer_due(conn)));
	set_timer(conn, due_ns);
	spoke_wheel_rest(engine->wheel);
}

/* --- probes and drain notices */

/* Sends a heartbeat. Returns 0, or what the output buffer returns. */
static int probe(struct spokei_conn *conn)
{
	const struct spokei_link *link = conn->link;
	struct spokei_message message = {
		.kind = SPOKEI_PROBE,
		.two_way = true,
		.codec = conn->probe_codec,
	};
	struct spokei_pending id_only = { 0 };
	size_t before = spokei_outlet_len(&conn->out);
	int error = spokei_pendings_add(&conn->pendings, link->engine->env, &id_only);

	if (error)
		return error;
	spokei_pendings_remove(&conn->pendings, &id_only);
	message.id = id_only.id;
	error = spokei_outlet_put_control(&conn->out, conn->wire, &link->limits.wire, &message);
	if (error)
		return error;
	spokei_count(link->engine, SPOKE_STAT_PROBES_WRITTEN);
	spokei_conn_wrote(conn, spokei_outlet_len(&conn->out) - before);
	spokei_idle_asked(&conn->idle, link->engine->begin_ns);
	conn->idle.ahead = (uint16_t)spokei_buffer_len(&conn->out.control);
	return 0;
}

bool spokei_conn_ask(struct spokei_conn *conn)
{
	if (probe(conn) == 0)
		return true;
	conn->idle.asked = false;
	conn->idle.since_ns = spokei_conn_engine(conn)->begin_ns;
	return false;
}

int spokei_conn_greeting(const struct spokei_link *link, const struct spokei_wire *wire,
			 struct spokei_greeting **ret_greeting)
{
	const struct spokei_message probe = {
		.kind = SPOKEI_PROBE,
		.two_way = true,
		.codec = SPOKEI_CODEC_HESSIAN2, /* every Dubbo peer understands it */
	};
	struct spokei_buffer frame;
	struct spoke_span bytes;
	int error;

	spokei_buffer_init(&frame, link->engine->env, SPOKEI_GREETING_MAX);
	error = wire->write(&link->limits.wire, &probe, &frame);
	bytes = spokei_span(spokei_buffer_data(&frame), spokei_buffer_len(&frame));
	if (error == 0)
		error = spokei_greeting_new(link->engine->env, bytes, ret_greeting);
	spokei_buffer_fini(&frame);
	return error;
}

/* --- the name of an instance: a text of Hessian 2, which every peer understands */

#define NAME_HEAD "\x15S" /* its length, without this byte, and what it is */
#define NAME_HEAD_LEN 2u
#define INSTANCE_DIGITS 8u
#define TIME_DIGITS 12u /* of ms */
#define NAME_LEN (NAME_HEAD_LEN + INSTANCE_DIGITS + TIME_DIGITS)

void spokei_conn_name(struct spokei_conn *conn)
{
	const struct spokei_link *link = conn->link;
	char name[NAME_LEN + 1];
	const struct spokei_message message = {
		.kind = SPOKEI_EVENT,
		.codec = SPOKEI_CODEC_HESSIAN2,
		.event = { name, NAME_LEN },
	};
	size_t before = spokei_outlet_len(&conn->out);

	if (link->instance == 0 || !conn->waits_open || spokei_conn_unwritable(conn))
		return;
	(void)snprintf(name, sizeof(name), NAME_HEAD "%08" PRIx32 "%012" PRIx64, link->instance,
		       (link->engine->begin_ns + link->clock_ns) / NS_PER_MS % (UINT64_C(1) << 48));
	/* A peer that does not learn it repeats nothing. */
	if (spokei_outlet_put_control(&conn->out, conn->wire, &link->limits.wire, &message) == 0)
		spokei_conn_wrote(conn, spokei_outlet_len(&conn->out) - before);
}

void spokei_link_name(struct spokei_link *link, uint32_t instance, uint64_t clock_ns)
{
	link->instance = instance;
	link->clock_ns = clock_ns;
	for (struct spoke_list *node = link->conns.next; node != &link->conns; node = node->next)
		spokei_conn_name(spoke_container_of(node, struct spokei_conn, node));
}

/* The turn may have begun before the peer wrote, so its time would make the peer's clock seem to be
 * ahead. */
bool spokei_conn_note_name(struct spokei_conn *conn, struct spoke_span event)
{
	const struct spoke_env *env = spokei_conn_engine(conn)->env;
	const char *text = event.data;
	uint64_t instance;
	uint64_t ms;

	if (!conn->link->connects || event.len != NAME_LEN ||
	    memcmp(text, NAME_HEAD, NAME_HEAD_LEN) != 0 ||
	    !spokei_hex_read(text + NAME_HEAD_LEN, INSTANCE_DIGITS, &instance) ||
	    !spokei_hex_read(text + NAME_HEAD_LEN + INSTANCE_DIGITS, TIME_DIGITS, &ms))
		return false;
	conn->instance = (uint32_t)instance;
	conn->instance_ns = ms < UINT64_MAX / NS_PER_MS ? ms * NS_PER_MS : 0;
	conn->instance_told_ns = env->now(env->ctx);
	conn->up->event(conn->up_arg, conn, SPOKEI_LINK_EVENT_NAMED);
	return true;
}

void spokei_conn_announce(struct spokei_conn *conn)
{
	const struct spokei_link *link = conn->link;
	struct spokei_message message = { .kind = SPOKEI_READONLY, .codec = conn->probe_codec };

	if (conn->since[SPOKEI_LIMIT_NOTICE] || spokei_conn_unwritable(conn) ||
	    conn->in.wire == NULL)
		return;
	/* On a wire without ids the next answer is the notice, also to a request that is not whole
	 * yet. Other peers that get no notice learn of the drain from refused requests. */
	if (!conn->in.wire->in_order) {
		if (conn->wire == NULL || !conn->wire->probes)
			return;
		if (spokei_conn_put(conn, &message, 0))
			return;
		spokei_count(link->engine, SPOKE_STAT_READONLY_WRITTEN);
	}
	spokei_conn_since(conn, SPOKEI_LIMIT_NOTICE, link->engine->begin_ns);
}

/* --- a silent peer: when a probe is due, when one is missed, and when the peer is dead */

enum spokei_idle_verdict spokei_idle_check(struct spokei_idle *idle,
					   const struct spokei_idle_moment *moment)
{
	if (moment->now_ns < spokei_idle_due(idle, moment->interval_ns))
		return SPOKEI_IDLE_KEEP;
	if (moment->late) {
		idle->since_ns = moment->now_ns;
		return SPOKEI_IDLE_KEEP;
	}
	if (!idle->asked)
		return SPOKEI_IDLE_PROBE;
	idle->since_ns = moment->now_ns;
	idle->misses++;
	return idle->misses < SPOKEI_IDLE_MISSES ? SPOKEI_IDLE_SUSPECT : SPOKEI_IDLE_DEAD;
}

#define LITTLE 4096u /* bytes that fit the buffer of a peer that does nothing */

static struct spokei_idle_moment moment_of(const struct spokei_conn *conn)
{
	const struct spoke_engine *engine = spokei_conn_engine(conn);
	uint64_t interval_ns = interval_of(conn);

	return (struct spokei_idle_moment){
		.now_ns = engine->begin_ns,
		.interval_ns = interval_ns,
		.late = spokei_engine_late_for(engine, interval_ns),
	};
}

/* Returns whether the kernel makes progress with the output. A socket becomes writable again only
 * when a good part of its buffer is free. */
static bool still_moves(struct spokei_conn *conn)
{
	ssize_t unsent = conn->stream.kind->unsent(&conn->stream);
	uint32_t before = conn->unsent;
	uint64_t sent_before = conn->sent;

	if (unsent < 0)
		return false;
	conn->unsent = (uint32_t)unsent;
	conn->sent = conn->out.sent - (uint64_t)unsent;
	return (before > LITTLE || conn->unsent > LITTLE) &&
	       (int64_t)(conn->sent - sent_before) > 0;
}

/* Returns whether the connection is quiet because an answer is being made. */
static bool is_served(const struct spokei_conn *conn)
{
	return !spokei_list_empty(&conn->servings) || conn->pendings.count > 0;
}

static void note_miss(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	spokei_count(engine, SPOKE_STAT_PROBES_MISSED);
	if (conn->idle.misses == 1)
		spokei_count(engine, SPOKE_STAT_SUSPECTED);
	conn->up->event(conn->up_arg, conn, SPOKEI_LINK_EVENT_MISSED);
}

/* Closes a connection of a wire whose idle connections end as a rule; that is no event. */
static void end_idle(struct spokei_conn *conn)
{
	spokei_count(spokei_conn_engine(conn), SPOKE_STAT_CLOSED_IDLE);
	spokei_conn_close(conn, SPOKE_ESILENT);
}

/* Checks for how long the peer has been silent. May close the connection. */
static void check_silence(struct spokei_conn *conn)
{
	struct spokei_idle_moment moment = moment_of(conn);

	/* Bytes in the socket count, even if the loop has not reported them. */
	if (spokei_idle_ripe(&conn->idle, &moment))
		(void)spokei_conn_read(conn);
	if (conn->state == SPOKEI_CONN_CLOSED || !spokei_conn_is_listened_to(conn))
		return;
	moment = moment_of(conn);
	if (spokei_idle_ripe(&conn->idle, &moment) && still_moves(conn) && conn->idle.asked) {
		conn->idle.since_ns = moment.now_ns;
		return;
	}
	switch (spokei_idle_check(&conn->idle, &moment)) {
	case SPOKEI_IDLE_KEEP:
		return;
	case SPOKEI_IDLE_PROBE:
		if (conn->wire->probes)
			(void)spokei_conn_ask(conn);
		else if (is_served(conn))
			conn->idle.since_ns = moment.now_ns;
		else if (conn->wire->idle_ns > 0)
			end_idle(conn);
		else
			spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_IDLE, SPOKE_ESILENT);
		return;
	case SPOKEI_IDLE_SUSPECT:
		/* A heartbeat that is still queued needs no second one. */
		if (conn->idle.handed)
			(void)spokei_conn_ask(conn);
		note_miss(conn);
		return;
	case SPOKEI_IDLE_DEAD:
		note_miss(conn);
		if (conn->state != SPOKEI_CONN_CLOSED)
			spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_SILENT, SPOKE_ESILENT);
		return;
	}
}

/* --- the timer */

/* Returns the last limit that is over, so that of the notice only if no other one is;
 * SPOKEI_LIMITS: none is. A turn that is late by much of a limit does not count, because arrived
 * bytes may be unread. */
static enum spokei_conn_limit limit_over(const struct spokei_conn *conn)
{
	const struct spoke_engine *engine = spokei_conn_engine(conn);

	for (unsigned i = SPOKEI_LIMITS; i-- > 0;) {
		enum spokei_conn_limit limit = (enum spokei_conn_limit)i;

		if (engine->begin_ns >= limit_due(conn, limit) &&
		    !spokei_engine_late_for(engine, length_of(conn, limit)))
			return limit;
	}
	return SPOKEI_LIMITS;
}

static void check_limits(struct spokei_conn *conn)
{
	enum spokei_conn_limit limit = limit_over(conn);

	if (limit == SPOKEI_LIMITS)
		return;
	/* Bytes in the socket count, even if the loop has not reported them. */
	(void)spokei_conn_read(conn);
	limit = conn->state == SPOKEI_CONN_CLOSED ? SPOKEI_LIMITS : limit_over(conn);
	if (limit == SPOKEI_LIMITS)
		return;
	if (limit == SPOKEI_LIMIT_NOTICE) { /* the peer counts as having answered */
		conn->readonly = true;
		spokei_run_settling(spokei_conn_engine(conn), &conn->settle);
		return;
	}
	/* With a reason it had failed before. */
	if (limit == SPOKEI_LIMIT_OPENING && spokei_stream_why(&conn->stream) == NULL)
		spokei_count(spokei_conn_engine(conn), SPOKE_STAT_HANDSHAKES_LATE);
	if (rows[limit].stat == SPOKE_STAT_CLOSED)
		spokei_conn_close(conn, rows[limit].error);
	else
		spokei_conn_close_with(conn, rows[limit].stat, rows[limit].error);
}

/* A caller that waits for an answer on a wire without ids gets one when its time is over. */
static void check_answer(struct spokei_conn *conn)
{
	if (answer_due(conn) <= spokei_conn_engine(conn)->begin_ns)
		spokei_conn_expire(conn);
}

/* The wheel's callback for a connection: closes it if one of its times has run out. */
static void conn_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_conn *conn = spoke_container_of(timer, struct spokei_conn, timer);

	(void)arg;
	if (spokei_conn_is_listened_to(conn))
		check_silence(conn);
	if (conn->state != SPOKEI_CONN_CLOSED)
		check_limits(conn);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	check_answer(conn);
	if (conn->state != SPOKEI_CONN_CLOSED)
		spokei_conn_rearm(conn);
}

/*
 * Reads the connection of a call that is due in a late turn until it is empty: the loop may not
 * have reported its socket yet, or one read may not have taken everything. Once a turn and
 * connection, and no longer than a late turn may last, because the calls of others wait. Returns
 * whether the call has ended.
 */
static bool ends_by_reading(struct spokei_pending *pending)
{
	struct spokei_conn *conn = pending->conn;
	const struct spoke_engine *engine = spokei_conn_engine(conn);
	const uint64_t id = pending->id;
	unsigned reads = 0;
	bool given;

	if (SPOKEI_LIKELY(!spokei_engine_late(engine)) || !pending->two_way ||
	    conn->late_turn == engine->turn)
		return false;
	conn->late_turn = engine->turn;
	while (spokei_conn_read(conn) && ++reads < SPOKEI_ENGINE_LATE_ROUNDS &&
	       spokei_engine_has_time(engine))
		;
	return spokei_engine_forked(engine) || conn->state == SPOKEI_CONN_CLOSED ||
	       spokei_pendings_find(&conn->pendings, id, &given) == NULL;
}

/* Arms the timer again if the attempt may take longer than was said when it began. */
static bool goes_on(struct spokei_pending *pending, bool written)
{
	struct spokei_conn *conn = pending->conn;
	struct spoke_engine *engine = spokei_conn_engine(conn);
	uint64_t due_ns;

	spokei_conn_prolong(pending, written, engine->begin_ns);
	due_ns = spokei_later(pending->begun_ns, pending->timeout_ns);
	return due_ns > engine->begin_ns &&
	       spoke_wheel_schedule(engine->wheel, &pending->timer, conn->link->pending_class,
				    due_ns) == SPOKE_WHEEL_OK;
}

/* The wheel's callback for a call whose time has run out. */
static void pending_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_pending *pending = spoke_container_of(timer, struct spokei_pending, timer);
	bool written;

	(void)arg;
	if (ends_by_reading(pending))
		return;
	written = spokei_conn_may_be_written(pending);
	if (!goes_on(pending, written))
		spokei_conn_cancel(pending, written ? SPOKE_ETIMEOUT : SPOKE_ETIMEOUT_UNSENT, true);
}

int spokei_link_time(struct spokei_link *link)
{
	int error = spokei_engine_class(link->engine, "call", pending_due, &link->pending_class);

	if (error == 0)
		error = spokei_engine_class(link->engine, "connection", conn_due,
					    &link->conn_class);
	return error;
}
