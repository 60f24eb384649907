/* SPDX-License-Identifier: Apache-2.0 */
/* The fence numbers of requests: how they are read, and the table of the highest ones. */
#include "cluster/filter/fence_table.h"

#include "core/base/env.h"

#include <spoke/lease.h>

#define EVENT_PAUSE_NS UINT64_C(60000000000) /* between two events about one name */
#define EVENTS 10u                           /* events per second about all names */

/* --- reading */

/* Reads digits only: neither signs nor blanks. */
static bool read_decimal(struct spoke_span text, uint64_t *ret)
{
	const unsigned char *digits = text.data;
	uint64_t number = 0;

	for (size_t i = 0; i < text.len; i++) {
		unsigned digit = digits[i] - (unsigned)'0';

		if (digit > 9 || number > (UINT64_MAX - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret = number;
	return number > 0;
}

static bool read_number(struct spoke_value value, uint64_t *ret)
{
	struct spoke_span text;

	if (spoke_value_str(value, &text) == SPOKE_OK)
		return read_decimal(text, ret);
	return spoke_value_u64(value, ret) == SPOKE_OK && *ret > 0;
}

enum spokei_fence_mark spokei_fence_read(struct spoke_value attachments,
					 struct spoke_span *ret_name, uint64_t *ret_number)
{
	struct spoke_value value;
	struct spoke_span name;
	uint64_t number;
	bool named = spoke_value_get(attachments, SPOKEI_FENCE_NAME, &value) == SPOKE_OK;
	bool valid = named && spoke_value_str(value, &name) == SPOKE_OK && name.len > 0 &&
		     name.len <= SPOKE_LEASE_NAME_MAX;
	bool numbered = spoke_value_get(attachments, SPOKEI_FENCE_NUMBER, &value) == SPOKE_OK;

	if (!named && !numbered)
		return SPOKEI_FENCE_UNMARKED;
	if (!valid)
		return SPOKEI_FENCE_BAD_NAME;
	if (!numbered || !read_number(value, &number))
		return SPOKEI_FENCE_BAD_NUMBER;
	*ret_name = name;
	*ret_number = number;
	return SPOKEI_FENCE_MARKED;
}

/* --- the table */

struct spokei_fence_entry {
	struct spoke_list node; /* of `order` */
	uint64_t highest;
	uint64_t seen_ns;
	uint64_t due_ns; /* no event about this name before that time */
	size_t len;
	unsigned char name[];
};

static struct spokei_fence_entry *entry_of(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_fence_entry, node);
}

static void drop(struct spokei_fence_table *table, struct spokei_fence_entry *entry)
{
	(void)spokei_map_remove(&table->names, entry->name, entry->len);
	spokei_list_remove(&entry->node);
	spokei_free(table->env, entry, 1, sizeof(*entry) + entry->len);
}

void spokei_fence_table_init(struct spokei_fence_table *table, const struct spoke_env *env,
			     uint32_t names_max, uint64_t keep_ns, uint64_t now_ns)
{
	*table = (struct spokei_fence_table){
		.env = env,
		.names_max = names_max,
		.keep_ns = keep_ns,
		.now_ns = now_ns,
		.event_limit = spokei_bucket_make(EVENTS, EVENTS, now_ns),
	};
	spokei_map_init(&table->names, env);
	spokei_list_init(&table->order);
}

void spokei_fence_table_fini(struct spokei_fence_table *table)
{
	while (!spokei_list_empty(&table->order))
		drop(table, entry_of(spokei_list_first(&table->order)));
	spokei_map_fini(&table->names);
}

static void turn_to(struct spokei_fence_table *table, uint64_t now_ns)
{
	if (now_ns > table->now_ns)
		table->now_ns = now_ns;
}

bool spokei_fence_tells(struct spokei_fence_table *table, uint64_t now_ns)
{
	turn_to(table, now_ns);
	if (table->now_ns < table->others_due_ns)
		return false;
	table->others_due_ns = table->now_ns + EVENT_PAUSE_NS;
	return true;
}

/* Returns whether there is room for a further name. */
static bool make_room(struct spokei_fence_table *table)
{
	struct spokei_fence_entry *oldest;

	if (table->names.count < table->names_max)
		return true;
	oldest = entry_of(spokei_list_first(&table->order));
	if (table->now_ns - oldest->seen_ns < table->keep_ns)
		return false;
	drop(table, oldest);
	return true;
}

static struct spokei_fence_verdict refuse(struct spokei_fence_table *table,
					  enum spokei_fence_step step)
{
	return (struct spokei_fence_verdict){
		.step = step,
		.tell = spokei_fence_tells(table, table->now_ns),
	};
}

static struct spokei_fence_verdict add(struct spokei_fence_table *table, struct spoke_span name,
				       uint64_t number)
{
	struct spokei_fence_entry *entry;

	if (!make_room(table))
		return refuse(table, SPOKEI_FENCE_FULL);
	entry = spokei_alloc(table->env, 1, sizeof(*entry) + name.len);
	if (entry == NULL)
		return refuse(table, SPOKEI_FENCE_NO_MEMORY);
	entry->len = name.len;
	entry->highest = number;
	entry->seen_ns = table->now_ns;
	memcpy(entry->name, name.data, name.len);
	if (spokei_map_add(&table->names, entry->name, entry->len, entry)) {
		spokei_free(table->env, entry, 1, sizeof(*entry) + name.len);
		return refuse(table, SPOKEI_FENCE_NO_MEMORY);
	}
	spokei_list_append(&table->order, &entry->node);
	return (struct spokei_fence_verdict){ .step = SPOKEI_FENCE_PASS };
}

static struct spokei_fence_verdict refuse_stale(struct spokei_fence_table *table,
						struct spokei_fence_entry *entry)
{
	struct spokei_fence_verdict verdict = {
		.step = SPOKEI_FENCE_STALE,
		.highest = entry->highest,
	};

	if (table->now_ns < entry->due_ns ||
	    !spokei_bucket_take(&table->event_limit, 1, table->now_ns))
		return verdict;
	entry->due_ns = table->now_ns + EVENT_PAUSE_NS;
	verdict.tell = true;
	return verdict;
}

struct spokei_fence_verdict spokei_fence_note(struct spokei_fence_table *table,
					      struct spoke_span name, uint64_t number,
					      uint64_t now_ns)
{
	struct spokei_fence_entry *entry = spokei_map_get(&table->names, name.data, name.len);

	turn_to(table, now_ns);
	if (entry == NULL)
		return add(table, name, number);
	/* A number that is refused was seen, too: as long as its holder tries, the name is kept. */
	entry->seen_ns = table->now_ns;
	spokei_list_remove(&entry->node);
	spokei_list_append(&table->order, &entry->node);
	if (number < entry->highest)
		return refuse_stale(table, entry);
	entry->highest = number;
	return (struct spokei_fence_verdict){ .step = SPOKEI_FENCE_PASS };
}
