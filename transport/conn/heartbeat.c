/* SPDX-License-Identifier: Apache-2.0 */
/* Heartbeats and drain notices: probes of a silent peer, READONLY, and the memory that an idle
 * connection gives back. */
#include "transport/conn/link.h"
#include "transport/conn/parts.h"

#include "transport/stream/greet.h"
#include "transport/wire/codecs.h"

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

	if (conn->announced || conn->unwritable || conn->in.wire == NULL)
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
	conn->announced = true;
	conn->announced_ns = link->engine->begin_ns;
	spokei_conn_arm(conn);
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
