/* SPDX-License-Identifier: Apache-2.0 */
/* All connections of one owner: how they begin, and how they end together. */
#include "transport/conn/link.h"
#include "transport/conn/parts.h"

#define BLAMES 10u /* in a second */

static void set_limits(struct spokei_link *link, const struct spokei_link_limits *limits)
{
	const size_t unproven_max = limits->unproven_frame_max;

	link->limits = *limits;
	link->unproven = limits->wire;
	link->unproven.spare_max = SPOKEI_UNPROVEN_SPARE;
	if (unproven_max > 0 && unproven_max < link->unproven.frame_max)
		link->unproven.frame_max = unproven_max;
	spokei_engine_note_interval(link->engine, limits->heartbeat_ns);
	spokei_engine_note_interval(link->engine, limits->idle_close_ns);
}

int spokei_link_init(struct spokei_link *link, struct spoke_engine *engine,
		     const struct spokei_link_limits *limits)
{
	int error;

	*link = (struct spokei_link){
		.engine = engine,
		.stream = &spokei_stream_socket,
	};
	spokei_list_init(&link->conns);
	spokei_list_init(&link->silent);
	spokei_conn_pool_init(&link->pool, engine->env, sizeof(struct spokei_conn));
	spokei_list_init(&link->orphans);
	link->blames = spokei_bucket_make(BLAMES, BLAMES, engine->env->now(engine->env->ctx));
	set_limits(link, limits);
	error = spokei_engine_class(engine, "call", spokei_pending_due, &link->pending_class);
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
	struct spokei_link_limits with = *limits;

	/* No settings: a pause of reading ends by the mark by which it began. */
	with.out_high = link->limits.out_high;
	with.out_low = link->limits.out_low;
	set_limits(link, &with);
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

struct spokei_conn *spokei_link_make_room(struct spokei_link *link)
{
	struct spokei_conn *conn;

	if (spokei_list_empty(&link->silent))
		return NULL;
	conn = spoke_container_of(spokei_list_first(&link->silent), struct spokei_conn, silent);
	spokei_count(link->engine, SPOKE_STAT_CLOSED_MUTE);
	spokei_conn_close(conn, SPOKE_ELIMIT);
	return conn;
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
