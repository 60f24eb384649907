/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All connections of one owner: their limits and accounts, the memory of connections and of output
 * buffers, how they begin and how they end together.
 */
#include "transport/conn/link.h"
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "core/memory/hidden.h"
#include "transport/conn/parts.h"

#include <spoke/link.h>

#include <string.h>

/* --- memory of connections: blocks, listed by how full they are */

#define UNIT (2 * sizeof(void *)) /* bytes; keeps cells aligned for all types of connections */

struct head;

/* Stands before the cells of a block. */
struct block {
	struct spoke_list node; /* in a list of blocks with free cells, unless it is full */
	struct head *free;
	uint16_t taken;
	uint16_t count; /* number of its cells */
};

/* Stands before each cell. */
struct head {
	struct block *block;
	struct head *next; /* next free cell */
};

_Static_assert(sizeof(struct head) % UNIT == 0 && sizeof(struct block) % UNIT == 0,
	       "cells are aligned");

void spokei_conn_pool_init(struct spokei_conn_pool *pool, const struct spoke_env *env, size_t size)
{
	*pool = (struct spokei_conn_pool){
		.env = env,
		.size = sizeof(struct head) + (size + UNIT - 1) / UNIT * UNIT,
	};
	for (unsigned i = 0; i < SPOKEI_CONN_POOL_BLOCK; i++)
		spokei_list_init(&pool->roomy[i]);
}

void spokei_conn_pool_fini(const struct spokei_conn_pool *pool)
{
	SPOKE_ASSERT(pool->blocks == 0);
}

static size_t block_size(const struct spokei_conn_pool *pool, unsigned count)
{
	return sizeof(struct block) + count * pool->size;
}

static void put_free(const struct spokei_conn_pool *pool, struct block *block, struct head *head)
{
	head->next = block->free;
	block->free = head;
	spokei_hide(head + 1, pool->size - sizeof(*head));
}

static struct block *add_block(struct spokei_conn_pool *pool)
{
	unsigned count = pool->blocks > 0 ? SPOKEI_CONN_POOL_BLOCK : 1;
	struct block *block = spokei_alloc_unset(pool->env, block_size(pool, count));

	if (block == NULL)
		return NULL;
	*block = (struct block){ .count = (uint16_t)count };
	for (unsigned i = count; i > 0; i--) {
		unsigned char *at = (unsigned char *)(block + 1) + (i - 1) * pool->size;
		struct head *head = (struct head *)(void *)at;

		head->block = block;
		put_free(pool, block, head);
	}
	pool->blocks++;
	return block;
}

/* Takes the fullest block with a free cell out of its list; NULL: no memory. */
static struct block *pick_block(struct spokei_conn_pool *pool)
{
	for (unsigned i = SPOKEI_CONN_POOL_BLOCK - 1; i > 0; i--) {
		struct spoke_list *node;

		if (spokei_list_empty(&pool->roomy[i]))
			continue;
		node = spokei_list_first(&pool->roomy[i]);
		spokei_list_remove(node);
		return spoke_container_of(node, struct block, node);
	}
	return add_block(pool);
}

static void put_block(struct spokei_conn_pool *pool, struct block *block)
{
	if (block->taken < block->count)
		spokei_list_append(&pool->roomy[block->taken], &block->node);
}

void *spokei_conn_pool_take(struct spokei_conn_pool *pool)
{
	struct block *block = pick_block(pool);
	struct head *head;

	if (block == NULL)
		return NULL;
	head = block->free;
	block->free = head->next;
	block->taken++;
	put_block(pool, block);
	spokei_show(head + 1, pool->size - sizeof(*head));
	memset(head + 1, 0, pool->size - sizeof(*head));
	return head + 1;
}

void spokei_conn_pool_give(struct spokei_conn_pool *pool, void *memory)
{
	struct head *head = (struct head *)memory - 1;
	struct block *block = head->block;

	SPOKE_ASSERT(block->taken > 0);
	if (block->taken < block->count)
		spokei_list_remove(&block->node);
	put_free(pool, block, head);
	block->taken--;
	if (block->taken > 0) {
		put_block(pool, block);
		return;
	}
	pool->blocks--;
	spokei_show(block, block_size(pool, block->count));
	spokei_free(pool->env, block, block_size(pool, block->count), 1);
}

/* --- limits, accounts and spare memory */

#define QUEUED_MAX 268435456u
#define HELD_MAX 268435456u
#define PENDING_MAX 65536u
#define SERVING_MAX 10000u
#define SERVING_PER_CONN_MAX 1024u
#define NAME_MAX_BYTES 65536u
#define EVENT_MAX 64u
#define SPARE_MAX 262144u   /* bytes; larger blocks are freed */
#define SPARES_MAX 8388608u /* bytes of all spare blocks */

/* Spare memory for the next output buffer; this header lies in it. */
struct spokei_spare {
	struct spokei_spare *next;
	size_t capacity;
};

_Static_assert(SPOKE_VALUE_ITEMS_MAX <= SPOKE_VALUE_BYTES_MAX &&
		       SPOKE_VALUE_ITEMS_MAX <=
			       SPOKE_VALUE_OBJECT_BYTES_MAX / SPOKE_VALUE_OBJECT_BYTES,
	       "this many bytes are within the limits of all values");

void spokei_link_limits_values(struct spokei_link_limits *limits, uint32_t max)
{
	limits->wire.value.items_max = max;
	limits->wire.free_len = max;
}

const struct spoke_value_limits spokei_link_own_values = {
	.depth_max = SPOKE_VALUE_DEPTH_MAX,
	.items_max = SPOKE_VALUE_ITEMS_MAX,
	.object_bytes_max = SIZE_MAX,
	.bytes_max = SIZE_MAX,
};

/* Memory as a tree of objects, and queued bytes, stay in proportion to a frame. */
void spokei_link_limits_frame(struct spokei_link_limits *limits, size_t max)
{
	struct spoke_value_limits *value = &limits->wire.value;

	limits->wire.frame_max = max;
	if (max <= SPOKE_VALUE_BYTES_MAX)
		return;
	value->bytes_max = max;
	value->object_bytes_max = max * (SPOKE_VALUE_OBJECT_BYTES_MAX / SPOKE_VALUE_BYTES_MAX);
	limits->out_max = max * (SPOKEI_OUT_MAX / SPOKEI_FRAME_MAX);
}

void spokei_link_limits_init(struct spokei_link_limits *limits)
{
	*limits = (struct spokei_link_limits){
		.wire = {
			.frame_max = SPOKEI_FRAME_MAX,
			.name_max = NAME_MAX_BYTES,
			.event_max = EVENT_MAX,
			.value = {
				.depth_max = SPOKE_VALUE_DEPTH_MAX,
				.items_max = SPOKE_VALUE_ITEMS_MAX,
				.object_bytes_max = SPOKE_VALUE_OBJECT_BYTES_MAX,
				.bytes_max = SPOKE_VALUE_BYTES_MAX,
			},
			.free_len = SPOKE_VALUE_ITEMS_MAX,
			.spare_max = SPOKEI_SPARE,
		},
		.out_high = SPOKEI_OUT_HIGH,
		.out_low = SPOKEI_OUT_LOW,
		.out_max = SPOKEI_OUT_MAX,
		.queued_max = QUEUED_MAX,
		.held_max = HELD_MAX,
		.pending_max = PENDING_MAX,
		.serving_max = SERVING_MAX,
		.serving_per_conn_max = SERVING_PER_CONN_MAX,
		.unknown_replies = SPOKEI_UNKNOWN_REPLIES,
		.slow_ns = SPOKEI_SLOW_NS,
		.frame_ns = SPOKEI_FRAME_NS,
		.handshake_ns = SPOKEI_HANDSHAKE_NS,
		.half_ns = SPOKEI_HALF_NS,
		.goodbye_ns = SPOKEI_GOODBYE_NS,
		.linger_ns = SPOKEI_LINGER_NS,
	};
}

void spokei_link_left(struct spokei_link *link)
{
	if (--link->alive == 0 && link->end)
		spokei_engine_dead(link->engine, link->end);
}

static struct spokei_spare *take_spare(struct spokei_link *link)
{
	struct spokei_spare *spare = link->spares;

	link->spares = spare->next;
	link->spare_bytes -= spare->capacity;
	return spare;
}

void spokei_link_lend(struct spokei_link *link, struct spokei_buffer *buffer)
{
	struct spokei_spare *spare;

	link->lent = true;
	if (link->spares == NULL)
		return;
	spare = take_spare(link);
	buffer->capacity = spare->capacity;
	buffer->bytes = (unsigned char *)spare;
	buffer->start = 0;
	buffer->end = 0;
}

void spokei_link_return(struct spokei_link *link, struct spokei_buffer *buffer)
{
	struct spokei_spare *spare = (struct spokei_spare *)(void *)buffer->bytes;
	size_t capacity = buffer->capacity;

	if (spare == NULL)
		return;
	if (capacity > SPARE_MAX || capacity < sizeof(*spare) ||
	    link->spare_bytes > SPARES_MAX - capacity) {
		spokei_buffer_fini(buffer);
		return;
	}
	*spare = (struct spokei_spare){ .next = link->spares, .capacity = capacity };
	link->spares = spare;
	link->spare_bytes += capacity;
	buffer->bytes = NULL;
	buffer->capacity = 0;
	buffer->start = 0;
	buffer->end = 0;
}

const char *spoke_link_change_name(enum spoke_link_change change)
{
	static const char *const names[] = {
		[SPOKE_LINK_CONNECTED] = "connected",       [SPOKE_LINK_PROBATION] = "probation",
		[SPOKE_LINK_SUSPECT] = "suspect",           [SPOKE_LINK_RECOVERED] = "recovered",
		[SPOKE_LINK_READONLY] = "readonly",         [SPOKE_LINK_CLOSED] = "closed",
		[SPOKE_LINK_RECONNECTING] = "reconnecting",
	};

	return (unsigned)change < sizeof(names) / sizeof(names[0]) ? names[change] : NULL;
}

void spokei_link_drop_spares(struct spokei_link *link)
{
	while (link->spares) {
		struct spokei_spare *spare = take_spare(link);

		spokei_free(link->engine->env, spare, 1, spare->capacity);
	}
}

void spokei_link_slim(struct spokei_link *link)
{
	/* An empty output buffer needs no memory, even on a busy connection. */
	if (!link->lent && link->pending_count == 0 && link->serving_count == 0)
		spokei_link_drop_spares(link);
	link->lent = false;
}

/* --- all connections together */

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
	bool trusted = link->limits.unproven_frame_max == 0;
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
		else if (trusted)
			spokei_conn_distrust(conn);
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
