/* SPDX-License-Identifier: Apache-2.0 */
/* Silence on a connection, what is asked because of it, and what it means. */
#include "transport/conn/parts.h"

#define LITTLE 4096u /* bytes */

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

void spokei_conn_announce(struct spokei_conn *conn)
{
	const struct spokei_link *link = conn->link;
	struct spokei_message message = { .kind = SPOKEI_READONLY, .codec = conn->probe_codec };

	if (conn->announced || conn->unwritable || conn->wire == NULL || !conn->wire->probes)
		return;
	/* Who cannot be told learns it from what is refused. */
	if (spokei_conn_put(conn, &message, 0))
		return;
	conn->announced = true;
	conn->announced_ns = link->engine->begin_ns;
	spokei_count(link->engine, SPOKE_STAT_READONLY_WRITTEN);
	spokei_conn_arm(conn);
}

void spokei_conn_heard(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	if (SPOKEI_LIKELY(!spokei_idle_heard(&conn->idle, engine->begin_ns)))
		return;
	conn->up->event(conn->up_arg, conn, SPOKEI_LINK_EVENT_TRUSTED);
}

/* Is anything to be heard from this peer that could be missed? */
static bool is_listened_to(const struct spokei_conn *conn)
{
	return conn->state != SPOKEI_CONN_CONNECTING && conn->wire != NULL && !conn->ended &&
	       !conn->unwritable;
}

/* The silence that counts, of this wire. */
static uint64_t interval_of(const struct spokei_conn *conn)
{
	const struct spokei_link_limits *limits = &conn->link->limits;

	return conn->wire->probes ? limits->heartbeat_ns : limits->idle_close_ns;
}

uint64_t spokei_conn_idle_due(const struct spokei_conn *conn)
{
	if (!is_listened_to(conn))
		return UINT64_MAX;
	return spokei_idle_due(&conn->idle, interval_of(conn));
}

static struct spokei_idle_moment moment_of(const struct spokei_conn *conn)
{
	const struct spoke_engine *engine = spokei_conn_engine(conn);
	uint64_t interval_ns = interval_of(conn);

	return (struct spokei_idle_moment){
		.now_ns = engine->begin_ns,
		.interval_ns = interval_ns,
		.late = spokei_engine_late_for(engine, interval_ns),
		.deaf = conn->paused,
	};
}

/* One that finds no memory now asks again an interval later: the peer has not missed anything. */
static void ask(struct spokei_conn *conn)
{
	if (spokei_conn_probe(conn) == 0)
		return;
	conn->idle.asked = false;
	conn->idle.since_ns = spokei_conn_engine(conn)->begin_ns;
}

void spokei_conn_woke(struct spokei_conn *conn)
{
	if (is_listened_to(conn) && conn->wire->probes &&
	    conn->link->limits.heartbeat_ns != SPOKEI_IDLE_OFF)
		ask(conn);
}

/*
 * Does the system get rid of what was written, though slowly? It tells so late: a socket is
 * writable again when a good part of its buffer is free. What is little fits the peer's system even
 * if the peer does nothing.
 */
static bool still_moves(struct spokei_conn *conn)
{
	const struct spoke_env *env = spokei_conn_engine(conn)->env;
	ssize_t unsent = env->net->unsent(env->ctx, conn->stream.watch.fd);
	uint32_t before = conn->unsent;
	uint64_t sent_before = conn->sent;

	if (unsent < 0)
		return false;
	conn->unsent = (uint32_t)unsent;
	conn->sent = conn->out.sent - (uint64_t)unsent;
	return (before > LITTLE || conn->unsent > LITTLE) &&
	       (int64_t)(conn->sent - sent_before) > 0;
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

/* Is it quiet for an answer is being made? */
static bool somebody_waits(const struct spokei_conn *conn)
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

void spokei_conn_judge_silence(struct spokei_conn *conn)
{
	struct spokei_idle_moment moment = moment_of(conn);

	/* What has come counts, though the loop has not told of it. */
	if (spokei_idle_ripe(&conn->idle, &moment))
		spokei_conn_read(conn);
	if (conn->state == SPOKEI_CONN_CLOSED || !is_listened_to(conn))
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
			ask(conn);
		else if (somebody_waits(conn))
			conn->idle.since_ns = moment.now_ns;
		else
			spokei_conn_blame(conn, SPOKE_STAT_CLOSED_IDLE, SPOKE_ESILENT);
		return;
	case SPOKEI_IDLE_SUSPECT:
		/* One that still waits to be written needs no second one behind it. */
		if (conn->idle.handed)
			ask(conn);
		note_miss(conn);
		return;
	case SPOKEI_IDLE_DEAD:
		note_miss(conn);
		if (conn->state != SPOKEI_CONN_CLOSED)
			spokei_conn_blame(conn, SPOKE_STAT_CLOSED_SILENT, SPOKE_ESILENT);
		return;
	}
}
