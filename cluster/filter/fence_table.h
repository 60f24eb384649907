/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fence numbers: reads name and number of a lease from the attachments of a request, and keeps the
 * highest number of each name in a bounded table. Pure, except for the memory of the table: the
 * caller passes the time. A table belongs to one thread at a time; its owner locks it.
 */
#ifndef SPOKEI_CLUSTER_FILTER_FENCE_TABLE_H
#define SPOKEI_CLUSTER_FILTER_FENCE_TABLE_H

#include "core/base/pace.h"
#include "core/memory/map.h"

#include <spoke/value.h>

#define SPOKEI_FENCE_NAME "spoke.lease"   /* key of the attachment with the name */
#define SPOKEI_FENCE_NUMBER "spoke.fence" /* ... and of that with the number */

/* The kinds of attachments that requests come with. */
enum spokei_fence_mark {
	SPOKEI_FENCE_MARKED,
	SPOKEI_FENCE_UNMARKED,   /* neither of the two */
	SPOKEI_FENCE_BAD_NAME,   /* not a text, empty, too long, or missing */
	SPOKEI_FENCE_BAD_NUMBER, /* not a decimal number of 64 bits, 0, or missing */
};

/* Reads name and number. The number is a text in decimal, or an integer. The outputs are written if
 * both are valid; the name points into the attachments. Any thread. */
enum spokei_fence_mark spokei_fence_read(struct spoke_value attachments,
					 struct spoke_span *ret_name, uint64_t *ret_number);

struct spokei_fence_table {
	const struct spoke_env *env;
	struct spokei_map names; /* of struct spokei_fence_entry */
	struct spoke_list order; /* of entries: the one that was seen least recently first */
	uint32_t names_max;
	uint64_t keep_ns;
	uint64_t now_ns;                  /* the latest time that was passed */
	struct spokei_bucket event_limit; /* limits events about all names together */
	uint64_t others_due_ns;           /* no event about other refusals before that time */
};

/* `env` is borrowed for the table's life. */
void spokei_fence_table_init(struct spokei_fence_table *table, const struct spoke_env *env,
			     uint32_t names_max, uint64_t keep_ns, uint64_t now_ns);
void spokei_fence_table_fini(struct spokei_fence_table *table);

enum spokei_fence_step {
	SPOKEI_FENCE_PASS,
	SPOKEI_FENCE_STALE,     /* the number is lower than one seen before */
	SPOKEI_FENCE_FULL,      /* no room for a further name */
	SPOKEI_FENCE_NO_MEMORY, /* the same */
};

struct spokei_fence_verdict {
	enum spokei_fence_step step;
	uint64_t highest; /* of STALE */
	bool tell;        /* a refusal is worth an event; at most one per name and minute */
};

/*
 * Decides on a request of a lease, and notes its number. Equal numbers pass. A full table drops the
 * name that was seen least recently if that was `keep_ns` ago. Time that goes back counts as the
 * latest time, because engines that share a table read the clock at different moments.
 */
struct spokei_fence_verdict spokei_fence_note(struct spokei_fence_table *table,
					      struct spoke_span name, uint64_t number,
					      uint64_t now_ns);

/* Returns whether a refusal for another reason is worth an event: at most one per minute. */
bool spokei_fence_tells(struct spokei_fence_table *table, uint64_t now_ns);

#endif
