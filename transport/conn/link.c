/* SPDX-License-Identifier: Apache-2.0 */
/* Limits, accounts and spare memory that the connections of one owner share. */
#include "transport/conn/link.h"
#include "core/base/env.h"
#include "core/engine/engine.h"

#include <spoke/link.h>

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
