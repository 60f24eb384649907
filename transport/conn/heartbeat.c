/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heartbeats: the idle check (keep, probe, suspect, dead), probes of a silent peer, READONLY, and
 * the memory that an idle connection gives back.
 */
#include "transport/conn/link.h"
#include "transport/conn/parts.h"
#include "transport/stream/greet.h"
#include "transport/wire/codecs.h"

/* --- the idle check: pure */

void spokei_idle_start(struct spokei_idle *idle, uint64_t now_ns)
{
	*idle = (struct spokei_idle){ .since_ns = now_ns };
}

void spokei_idle_asked(struct spokei_idle *idle, uint64_t now_ns)
{
	idle->asked = true;
	idle->handed = false;
	idle->since_ns = now_ns;
}

void spokei_idle_moved(struct spokei_idle *idle, uint64_t now_ns)
{
	if (idle->asked && !idle->handed)
		idle->since_ns = now_ns;
}

void spokei_idle_handed(struct spokei_idle *idle, uint64_t now_ns)
{
	if (!idle->asked || idle->handed)
		return;
	idle->handed = true;
	idle->since_ns = now_ns;
}

uint64_t spokei_idle_due(const struct spokei_idle *idle, uint64_t interval_ns)
{
	if (interval_ns == SPOKEI_IDLE_OFF || interval_ns >= UINT64_MAX - idle->since_ns)
		return UINT64_MAX;
	return idle->since_ns + interval_ns;
}

bool spokei_idle_ripe(const struct spokei_idle *idle, const struct spokei_idle_moment *moment)
{
	return !moment->late && !moment->deaf &&
	       moment->now_ns >= spokei_idle_due(idle, moment->interval_ns);
}

enum spokei_idle_verdict spokei_idle_check(struct spokei_idle *idle,
					   const struct spokei_idle_moment *moment)
{
	if (moment->now_ns < spokei_idle_due(idle, moment->interval_ns))
		return SPOKEI_IDLE_KEEP;
	if (moment->late || moment->deaf) {
		idle->since_ns = moment->now_ns;
		return SPOKEI_IDLE_KEEP;
	}
	if (!idle->asked)
		return SPOKEI_IDLE_PROBE;
	idle->since_ns = moment->now_ns;
	idle->misses++;
	return idle->misses < SPOKEI_IDLE_MISSES ? SPOKEI_IDLE_SUSPECT : SPOKEI_IDLE_DEAD;
}

/* --- probes and drain notices */

int spokei_conn_probe(struct spokei_conn *conn)
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
	return 0;
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

void spokei_conn_heard(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	if (SPOKEI_LIKELY(!spokei_idle_heard(&conn->idle, engine->begin_ns)))
		return;
	conn->up->event(conn->up_arg, conn, SPOKEI_LINK_EVENT_TRUSTED);
}

void spokei_conn_ask(struct spokei_conn *conn)
{
	if (spokei_conn_probe(conn) == 0)
		return;
	conn->idle.asked = false;
	conn->idle.since_ns = spokei_conn_engine(conn)->begin_ns;
}

void spokei_conn_woke(struct spokei_conn *conn)
{
	if (spokei_conn_is_listened_to(conn) && conn->wire->probes &&
	    conn->link->limits.heartbeat_ns != SPOKEI_IDLE_OFF)
		spokei_conn_ask(conn);
}

void spokei_conn_slim(struct spokei_conn *conn)
{
	struct spokei_link *link = conn->link;

	if (conn->pendings.count == 0 && conn->pendings.room > 0)
		spokei_pendings_fini(&conn->pendings, link->engine->env);
	if (conn->serving.count == 0 && conn->serving.room > 0)
		spokei_map_fini(&conn->serving);
	spokei_intake_slim(&conn->in);
	spokei_link_slim(link);
}

/* --- a silent peer: when a probe is due, when one is missed, and when the peer is dead */

#define LITTLE 4096u /* bytes that fit the buffer of a peer that does nothing */

static struct spokei_idle_moment moment_of(const struct spokei_conn *conn)
{
	const struct spoke_engine *engine = spokei_conn_engine(conn);
	uint64_t interval_ns = spokei_conn_interval(conn);

	return (struct spokei_idle_moment){
		.now_ns = engine->begin_ns,
		.interval_ns = interval_ns,
		.late = spokei_engine_late_for(engine, interval_ns),
		.deaf = conn->paused,
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
static bool answer_is_due(const struct spokei_conn *conn)
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

void spokei_conn_check_silence(struct spokei_conn *conn)
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
			spokei_conn_ask(conn);
		else if (answer_is_due(conn))
			conn->idle.since_ns = moment.now_ns;
		else if (conn->wire->idle_ns > 0)
			end_idle(conn);
		else
			spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_IDLE, SPOKE_ESILENT);
		return;
	case SPOKEI_IDLE_SUSPECT:
		/* A heartbeat that is still queued needs no second one. */
		if (conn->idle.handed)
			spokei_conn_ask(conn);
		note_miss(conn);
		return;
	case SPOKEI_IDLE_DEAD:
		note_miss(conn);
		if (conn->state != SPOKEI_CONN_CLOSED)
			spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_SILENT, SPOKE_ESILENT);
		return;
	}
}
