/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a provider for requests that bear an id: reads ids, decides, and forgets. */
#include "cluster/filter/dedupe_table.h"

#include "core/base/env.h"
#include "core/text/encoding.h"
#include "timer/base.h"
#include "transport/wire/message.h"

#define NS_PER_MS UINT64_C(1000000)
#define INSTANCE_DIGITS 8u
#define TIME_DIGITS 12u
#define ANSWER_PART 4u /* the largest answer has this part of the bytes */

/* --- attachments */

static bool read_repeat(struct spoke_span text, struct spokei_dedupe_asked *asked)
{
	const char *at = text.data;
	const size_t head = INSTANCE_DIGITS + 1;
	uint64_t instance;
	uint64_t since_ms;

	asked->repeat = true;
	if (text.len == 0)
		return true;
	if (text.len <= head || text.len > head + TIME_DIGITS || at[INSTANCE_DIGITS] != '.' ||
	    !spokei_hex_read(at, INSTANCE_DIGITS, &instance) ||
	    !spokei_hex_read(at + head, text.len - head, &since_ms))
		return false;
	asked->instance = (uint32_t)instance;
	/* 2^48 ms in ns fit no number of 64 bits; no clock has run that long. */
	asked->since_ns = since_ms < UINT64_MAX / NS_PER_MS ? since_ms * NS_PER_MS : 0;
	return true;
}

enum spokei_dedupe_mark spokei_dedupe_read(struct spoke_value attachments,
					   struct spokei_dedupe_asked *ret_asked)
{
	struct spoke_value value;
	struct spoke_span text;
	bool has_id = spoke_value_get(attachments, SPOKEI_DEDUPE_ID, &value) == SPOKE_OK;

	*ret_asked = (struct spokei_dedupe_asked){ .repeat = false };
	if (has_id && (spoke_value_str(value, &ret_asked->id) != SPOKE_OK ||
		       ret_asked->id.len == 0 || ret_asked->id.len > SPOKEI_DEDUPE_ID_MAX))
		return SPOKEI_DEDUPE_BAD_ID;
	if (spoke_value_get(attachments, SPOKEI_DEDUPE_REPEAT, &value) == SPOKE_OK) {
		if (!has_id)
			return SPOKEI_DEDUPE_BAD_ID;
		if (spoke_value_str(value, &text) != SPOKE_OK || !read_repeat(text, ret_asked))
			return SPOKEI_DEDUPE_BAD_REPEAT;
	}
	return has_id ? SPOKEI_DEDUPE_MARKED : SPOKEI_DEDUPE_UNMARKED;
}

/* --- life */

void spokei_dedupe_init(struct spokei_dedupe_table *table, const struct spoke_env *env)
{
	*table = (struct spokei_dedupe_table){ .env = env };
	spokei_list_init(&table->order);
	spokei_list_init(&table->methods);
}

/* Draws the random numbers that the table needs once a method is turned on. */
static void turn_on(struct spokei_dedupe_table *table)
{
	table->on = true;
	spokei_map_init(&table->ids, table->env);
	table->env->dice(table->env->ctx, table->key, sizeof(table->key));
	spokei_dedupe_renew(table);
}

void spokei_dedupe_renew(struct spokei_dedupe_table *table)
{
	const struct spoke_env *env = table->env;
	uint32_t before = table->instance;

	if (!table->on)
		return;
	while (table->instance == 0 || table->instance == before)
		env->dice(env->ctx, &table->instance, sizeof(table->instance));
}

static size_t size_of(const struct spokei_dedupe_entry *entry)
{
	return sizeof(*entry) + (entry->answer ? entry->answer->size : 0);
}

static size_t key_len(const struct spokei_dedupe_entry *entry)
{
	return sizeof(void *) + entry->id_len;
}

static void free_entry(struct spokei_dedupe_table *table, struct spokei_dedupe_entry *entry)
{
	SPOKE_ASSERT(spokei_list_empty(&entry->waiters));
	(void)spokei_map_remove(&table->ids, entry->key, key_len(entry));
	table->bytes -= size_of(entry);
	if (entry->ended) {
		spokei_list_remove(&entry->node);
		spokei_list_remove(&entry->order);
	}
	spokei_copy_free(table->env, entry->answer);
	spokei_free(table->env, entry, 1, sizeof(*entry));
}

/* Requests that came no later than this one may be forgotten from now on. */
static void forget(struct spokei_dedupe_entry *entry)
{
	struct spokei_dedupe_method *method = entry->method;

	if (method->horizon_ns < entry->begun_ns)
		method->horizon_ns = entry->begun_ns;
	free_entry(method->table, entry);
}

static struct spokei_dedupe_entry *first_of(const struct spoke_list *ended)
{
	return spoke_container_of(spokei_list_first(ended), struct spokei_dedupe_entry, node);
}

void spokei_dedupe_fini(struct spokei_dedupe_table *table)
{
	struct spokei_dedupe_entry *entry;
	size_t place = 0;

	if (!table->on)
		return;
	while ((entry = spokei_map_each(&table->ids, &place)) != NULL) {
		free_entry(table, entry);
		place = 0;
	}
	spokei_map_fini(&table->ids);
}

void spokei_dedupe_bound(struct spokei_dedupe_table *table, uint32_t count_max, size_t bytes_max)
{
	table->count_max = count_max;
	table->bytes_max = bytes_max;
}

void spokei_dedupe_set(struct spokei_dedupe_table *table, struct spokei_dedupe_method *method,
		       uint64_t keep_ns, bool runs_unknown, uint64_t now_ns)
{
	if (keep_ns > 0 && !table->on)
		turn_on(table);
	method->runs_unknown = runs_unknown;
	if (method->table == NULL) {
		if (!table->on)
			return;
		method->table = table;
		spokei_list_init(&method->ended);
		spokei_list_append(&table->methods, &method->node);
	}
	if (method->keep_ns == 0)
		method->horizon_ns = now_ns;
	method->keep_ns = keep_ns;
	while (keep_ns == 0 && !spokei_list_empty(&method->ended))
		forget(first_of(&method->ended));
}

/* --- room */

static bool is_within(const struct spokei_dedupe_table *table, size_t more)
{
	return table->ids.count < table->count_max && table->bytes + more <= table->bytes_max;
}

/* Forgets the oldest entries until there is room for another one, or none is left that has ended.
 */
static bool make_room(struct spokei_dedupe_table *table)
{
	const size_t more = sizeof(struct spokei_dedupe_entry);

	while (!is_within(table, more) && !spokei_list_empty(&table->order)) {
		table->early++;
		forget(spoke_container_of(spokei_list_first(&table->order),
					  struct spokei_dedupe_entry, order));
	}
	return is_within(table, more);
}

/* --- decisions */

static void make_key(const struct spokei_dedupe_method *method, struct spoke_span id,
		     unsigned char key[sizeof(void *) + SPOKEI_DEDUPE_ID_MAX])
{
	uintptr_t number = (uintptr_t)method;

	memcpy(key, &number, sizeof(number));
	memcpy(key + sizeof(number), id.data, id.len);
}

static enum spokei_dedupe_step decide_known(const struct spokei_dedupe_entry *entry,
					    const struct spokei_dedupe_asked *asked)
{
	if (entry->caller != asked->caller)
		return SPOKEI_DEDUPE_OTHER_CALLER;
	if (entry->args != asked->args)
		return SPOKEI_DEDUPE_OTHER_ARGS;
	if (!entry->ended)
		return SPOKEI_DEDUPE_WAIT;
	return entry->answer ? SPOKEI_DEDUPE_REPLAY : SPOKEI_DEDUPE_NOT_KEPT;
}

/* Decides on a request whose id is not known. */
static enum spokei_dedupe_step decide_unknown(const struct spokei_dedupe_method *method,
					      const struct spokei_dedupe_asked *asked)
{
	if (!asked->repeat || method->runs_unknown)
		return SPOKEI_DEDUPE_RUN;
	if (asked->instance != method->table->instance)
		return SPOKEI_DEDUPE_ELSEWHERE;
	return asked->since_ns > method->horizon_ns ? SPOKEI_DEDUPE_RUN : SPOKEI_DEDUPE_FORGOTTEN;
}

static enum spokei_dedupe_step add(struct spokei_dedupe_method *method,
				   const struct spokei_dedupe_asked *asked, uint64_t now_ns,
				   struct spokei_dedupe_entry **ret_entry)
{
	struct spokei_dedupe_table *table = method->table;
	struct spokei_dedupe_entry *entry;

	if (!make_room(table))
		return SPOKEI_DEDUPE_FULL;
	entry = spokei_alloc_unset(table->env, sizeof(*entry));
	if (entry == NULL)
		return SPOKEI_DEDUPE_NO_MEMORY;
	entry->method = method;
	spokei_list_init(&entry->waiters);
	entry->begun_ns = now_ns;
	entry->args = asked->args;
	entry->caller = asked->caller;
	entry->limit = NULL;
	entry->answer = NULL;
	entry->ended = false;
	entry->id_len = (uint8_t)asked->id.len;
	make_key(method, asked->id, entry->key);
	if (spokei_map_add(&table->ids, entry->key, key_len(entry), entry)) {
		spokei_free(table->env, entry, 1, sizeof(*entry));
		return SPOKEI_DEDUPE_NO_MEMORY;
	}
	table->bytes += sizeof(*entry);
	*ret_entry = entry;
	return SPOKEI_DEDUPE_RUN;
}

enum spokei_dedupe_step spokei_dedupe_ask(struct spokei_dedupe_method *method,
					  const struct spokei_dedupe_asked *asked, uint64_t now_ns,
					  struct spokei_dedupe_entry **ret_entry)
{
	unsigned char key[sizeof(void *) + SPOKEI_DEDUPE_ID_MAX];
	enum spokei_dedupe_step step;

	make_key(method, asked->id, key);
	*ret_entry = spokei_map_get(&method->table->ids, key, sizeof(void *) + asked->id.len);
	if (*ret_entry)
		return decide_known(*ret_entry, asked);
	step = decide_unknown(method, asked);
	return step == SPOKEI_DEDUPE_RUN ? add(method, asked, now_ns, ret_entry) : step;
}

/* --- the end of a request */

void spokei_dedupe_drop(struct spokei_dedupe_entry *entry)
{
	free_entry(entry->method->table, entry);
}

void spokei_dedupe_end(struct spokei_dedupe_entry *entry, struct spokei_copy *answer,
		       uint64_t now_ns)
{
	struct spokei_dedupe_method *method = entry->method;
	struct spokei_dedupe_table *table = method->table;

	if (answer && answer->size > table->bytes_max / ANSWER_PART) {
		spokei_copy_free(table->env, answer);
		answer = NULL;
	}
	entry->answer = answer;
	table->bytes += answer ? answer->size : 0;
	entry->ended = true;
	entry->ended_ns = now_ns;
	spokei_list_append(&method->ended, &entry->node);
	spokei_list_append(&table->order, &entry->order);
	if (method->keep_ns == 0)
		forget(entry);
}

uint64_t spokei_dedupe_expire(struct spokei_dedupe_table *table, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;

	for (struct spoke_list *node = table->methods.next; node != &table->methods;
	     node = node->next) {
		struct spokei_dedupe_method *method =
			spoke_container_of(node, struct spokei_dedupe_method, node);

		while (!spokei_list_empty(&method->ended)) {
			struct spokei_dedupe_entry *entry = first_of(&method->ended);
			uint64_t due_ns = entry->ended_ns + method->keep_ns;

			if (due_ns <= now_ns) {
				forget(entry);
				continue;
			}
			if (due_ns < next_ns)
				next_ns = due_ns;
			break;
		}
	}
	return next_ns;
}
