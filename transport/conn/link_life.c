/* SPDX-License-Identifier: Apache-2.0 */
/* All connections of one owner: how they begin, and how they end together. */
#include "transport/conn/link.h"
#include "transport/conn/parts.h"

#define BLAMES 10u /* in a second */

/* Sets the limits of peers that have proven nothing. */
static void bound_unproven(struct spokei_link *link, size_t frame_max)
{
	link->limits.unproven_frame_max = frame_max;
	link->unproven = link->limits.wire;
	if (frame_max > 0 && frame_max < link->unproven.frame_max)
		link->unproven.frame_max = frame_max;
}

int spokei_link_init(struct spokei_link *link, struct spoke_engine *engine,
		     const struct spokei_link_limits *limits)
{
	int error;

	*link = (struct spokei_link){
		.engine = engine,
		.stream = &spokei_stream_socket,
		.limits = *limits,
	};
	bound_unproven(link, limits->unproven_frame_max);
	spokei_list_init(&link->conns);
	spokei_conn_pool_init(&link->pool, engine->env, sizeof(struct spokei_conn));
	spokei_list_init(&link->orphans);
	link->blames = spokei_bucket_make(BLAMES, BLAMES, engine->env->now(engine->env->ctx));
	error = spokei_engine_class(engine, "call", spokei_pending_due, &link->pending_class);
	spokei_engine_note_interval(engine, limits->heartbeat_ns);
	spokei_engine_note_interval(engine, limits->idle_close_ns);
	if (error == 0)
		error = spokei_engine_class(engine, "connection", spokei_conn_due,
					    &link->conn_class);
	return error;
}

void spokei_link_change(struct spokei_link *link, const struct spokei_link_limits *limits)
{
	bool asked = link->limits.heartbeat_ns != SPOKEI_IDLE_OFF;
	bool asks = limits->heartbeat_ns != SPOKEI_IDLE_OFF;
	struct spoke_list *node = link->conns.next;

	link->limits.queued_max = limits->queued_max;
	link->limits.pending_max = limits->pending_max;
	link->limits.serving_max = limits->serving_max;
	link->limits.serving_per_conn_max = limits->serving_per_conn_max;
	link->limits.mute_ns = limits->mute_ns;
	link->limits.heartbeat_ns = limits->heartbeat_ns;
	link->limits.idle_close_ns = limits->idle_close_ns;
	bound_unproven(link, limits->unproven_frame_max);
	spokei_engine_note_interval(link->engine, limits->heartbeat_ns);
	spokei_engine_note_interval(link->engine, limits->idle_close_ns);
	while (node != &link->conns) {
		struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);

		node = node->next;
		if (limits->unproven_frame_max == 0)
			spokei_conn_trust(conn);
		/* A connection that is not open yet is guarded when it opens. */
		if (asks != asked && conn->state == SPOKEI_CONN_OPEN)
			spokei_conn_guard(conn);
		spokei_conn_arm(conn);
	}
}

void spokei_link_part(struct spokei_link *link)
{
	struct spoke_list *node = link->conns.next;

	if (spokei_engine_forked(link->engine))
		return;
	for (; node != &link->conns; node = node->next)
		spokei_conn_part(spoke_container_of(node, struct spokei_conn, node));
}

void spokei_link_end(struct spokei_link *link, struct spokei_task *end)
{
	link->closing = true;
	link->end = end;
	while (!spokei_list_empty(&link->conns))
		spokei_conn_close(spoke_container_of(spokei_list_first(&link->conns),
						     struct spokei_conn, node),
				  SPOKE_ECLOSED);
	if (link->alive == 0)
		spokei_engine_dead(link->engine, end);
}

void spokei_link_woke(struct spokei_link *link)
{
	struct spoke_list *node = link->conns.next;

	while (node != &link->conns) {
		struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);

		node = node->next;
		spokei_conn_woke(conn);
	}
}

void spokei_link_fini(struct spokei_link *link)
{
	SPOKE_ASSERT(spokei_list_empty(&link->conns));
	spokei_link_disown(link);
	spokei_link_drop_spares(link);
	spokei_conn_pool_fini(&link->pool);
}
