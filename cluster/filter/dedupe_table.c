/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a provider for requests that bear an id: reads ids, decides, and forgets. */
#include "cluster/filter/dedupe_table.h"

#include "core/base/env.h"
#include "core/base/siphash.h"
#include "core/text/encoding.h"
#include "timer/base.h"
#include "transport/wire/message.h"
#include "transport/wire/skip.h"

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
	struct spoke_value id = { NULL, 0 };
	struct spoke_value repeat = { NULL, 0 };
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;
	struct spoke_span name;

	*ret_asked = (struct spokei_dedupe_asked){ .repeat = false };
	if (attachments.len == 0 || spokei_skip_map(attachments, &pairs) != 0)
		return SPOKEI_DEDUPE_UNMARKED;
	while (spokei_skip_next(&pairs, &key) && spokei_skip_next(&pairs, &value)) {
		if (spokei_skip_str(key, &name) != 0)
			continue;
		if (spokei_span_is(name, SPOKEI_DEDUPE_ID))
			id = value;
		else if (spokei_span_is(name, SPOKEI_DEDUPE_REPEAT))
			repeat = value;
	}
	if (id.len == 0)
		return repeat.len == 0 ? SPOKEI_DEDUPE_UNMARKED : SPOKEI_DEDUPE_BAD_ID;
	if (spokei_skip_str(id, &ret_asked->id) != 0 || ret_asked->id.len == 0 ||
	    ret_asked->id.len > SPOKEI_DEDUPE_ID_MAX)
		return SPOKEI_DEDUPE_BAD_ID;
	if (repeat.len > 0 &&
	    (spokei_skip_str(repeat, &name) != 0 || !read_repeat(name, ret_asked)))
		return SPOKEI_DEDUPE_BAD_REPEAT;
	return SPOKEI_DEDUPE_MARKED;
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
	spokei_slab_init_lasting(&table->cells, table->env, sizeof(struct spokei_dedupe_entry),
				 UINT32_MAX / 2);
	if (table->named)
		return;
	table->env->dice(table->env->ctx, table->key, sizeof(table->key));
	spokei_dedupe_renew(table);
}

void spokei_dedupe_name(struct spokei_dedupe_table *table, const unsigned char number[16],
			uint64_t clock_ns)
{
	static const char purpose[] = "instance";

	memcpy(table->key, number, sizeof(table->key));
	/* Peers learn it, so it must not tell the key. */
	table->instance = (uint32_t)spokei_siphash(table->key, purpose, sizeof(purpose)) | 1;
	table->clock_ns = clock_ns;
	table->named = true;
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

static size_t key_len(const struct spokei_dedupe_entry *entry)
{
	return sizeof(void *) + entry->id_len;
}

static void free_entry(struct spokei_dedupe_table *table, struct spokei_dedupe_entry *entry)
{
	SPOKE_ASSERT(entry->ended || spokei_list_empty(&entry->waiters));
	(void)spokei_map_remove(&table->ids, entry->key, key_len(entry));
	table->bytes -= sizeof(*entry) + entry->answer_size;
	if (entry->ended) {
		spokei_list_remove(&entry->node);
		spokei_list_remove(&entry->order);
	}
	if (entry->answer_size > 0)
		spokei_free(table->env, entry->answer, 1, entry->answer_size);
	if (entry->kept)
		table->forgotten(entry);
	spokei_slab_give_cell(&table->cells, entry);
}

/* Gives back the memory of a table without entries. */
static void rest(struct spokei_dedupe_table *table)
{
	spokei_map_fini(&table->ids);
	spokei_slab_fini(&table->cells);
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
	rest(table);
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

/* Forgets the oldest entries beyond the bounds. Returns false if those that run are too many. */
static bool keep_within(struct spokei_dedupe_table *table)
{
	while (SPOKEI_UNLIKELY(table->ids.count > table->count_max ||
			       table->bytes > table->bytes_max)) {
		if (spokei_list_empty(&table->order))
			return false;
		table->early++;
		forget(spoke_container_of(spokei_list_first(&table->order),
					  struct spokei_dedupe_entry, order));
	}
	return true;
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
	return asked->since_ns > method->horizon_ns + method->table->clock_ns
		       ? SPOKEI_DEDUPE_RUN
		       : SPOKEI_DEDUPE_FORGOTTEN;
}

/* Adds an entry, or finds the one of the id. */
static enum spokei_dedupe_step add(struct spokei_dedupe_method *method,
				   const struct spokei_dedupe_asked *asked, uint64_t now_ns,
				   struct spokei_dedupe_entry **ret_entry)
{
	struct spokei_dedupe_table *table = method->table;
	struct spokei_dedupe_entry *entry;
	uint64_t unused;
	void *cell;
	int error = spokei_slab_take(&table->cells, &cell, &unused);

	if (error)
		return SPOKEI_DEDUPE_NO_MEMORY;
	entry = cell;
	entry->method = method;
	entry->limit = NULL;
	spokei_list_init(&entry->waiters);
	entry->begun_ns = now_ns;
	entry->args = asked->args;
	entry->caller = asked->caller;
	entry->answer = NULL;
	entry->answer_size = 0;
	entry->kept = NULL;
	entry->ended = false;
	entry->id_len = (uint8_t)asked->id.len;
	make_key(method, asked->id, entry->key);
	error = spokei_map_put(&table->ids, entry->key, key_len(entry), entry, &cell);
	if (SPOKEI_UNLIKELY(error)) {
		spokei_slab_give_cell(&table->cells, entry);
		if (error != SPOKE_EEXIST)
			return SPOKEI_DEDUPE_NO_MEMORY;
		*ret_entry = cell;
		return decide_known(cell, asked);
	}
	table->bytes += sizeof(*entry);
	if (!keep_within(table)) {
		free_entry(table, entry);
		return SPOKEI_DEDUPE_FULL;
	}
	*ret_entry = entry;
	return SPOKEI_DEDUPE_RUN;
}

/* Decides by a search alone. Returns true if a new entry is to be added. */
static bool is_new(const struct spokei_dedupe_method *method,
		   const struct spokei_dedupe_asked *asked, struct spokei_dedupe_entry **ret_entry,
		   enum spokei_dedupe_step *ret_step)
{
	unsigned char key[sizeof(void *) + SPOKEI_DEDUPE_ID_MAX];

	make_key(method, asked->id, key);
	*ret_entry = spokei_map_get(&method->table->ids, key, sizeof(void *) + asked->id.len);
	*ret_step = *ret_entry ? decide_known(*ret_entry, asked) : decide_unknown(method, asked);
	return *ret_entry == NULL && *ret_step == SPOKEI_DEDUPE_RUN;
}

enum spokei_dedupe_step spokei_dedupe_ask(struct spokei_dedupe_method *method,
					  const struct spokei_dedupe_asked *asked, uint64_t now_ns,
					  struct spokei_dedupe_entry **ret_entry)
{
	enum spokei_dedupe_step step;

	*ret_entry = NULL;
	/* Most requests are new, and are searched and added at once. */
	if (SPOKEI_UNLIKELY(asked->repeat) && !is_new(method, asked, ret_entry, &step))
		return step;
	return add(method, asked, now_ns, ret_entry);
}

/* --- the end of a request */

void spokei_dedupe_drop(struct spokei_dedupe_entry *entry)
{
	free_entry(entry->method->table, entry);
}

#define PARTS 4u

/* Keeps an answer, in the entry if it is short. */
static void keep(struct spokei_dedupe_entry *entry, const struct spokei_message *message)
{
	const struct spoke_span parts[PARTS] = {
		{ message->value.data, message->value.len },
		{ message->attachments.data, message->attachments.len },
		message->error_text,
		message->error_class,
	};
	struct spokei_dedupe_table *table = entry->method->table;
	struct spokei_dedupe_answer *answer = (void *)entry->room;
	size_t size = sizeof(*answer);
	unsigned char *at;

	for (unsigned i = 0; i < PARTS; i++)
		size += parts[i].len;
	if (size > sizeof(entry->room)) {
		if (size > table->bytes_max / ANSWER_PART || size > UINT32_MAX)
			return;
		answer = spokei_alloc_unset(table->env, size);
		if (answer == NULL)
			return;
		entry->answer_size = (uint32_t)size;
		table->bytes += size;
	}
	answer->error = message->error;
	answer->error_code = message->error_code;
	answer->status = message->status;
	at = answer->bytes;
	for (unsigned i = 0; i < PARTS; i++) {
		answer->lens[i] = (uint32_t)parts[i].len;
		if (parts[i].len > 0)
			memcpy(at, parts[i].data, parts[i].len);
		at += parts[i].len;
	}
	entry->answer = answer;
}

struct spokei_message spokei_dedupe_answer_of(const struct spokei_dedupe_entry *entry)
{
	const struct spokei_dedupe_answer *answer = entry->answer;
	const unsigned char *at = answer->bytes;
	struct spoke_span parts[PARTS];

	for (unsigned i = 0; i < PARTS; i++) {
		parts[i] = spokei_span(answer->lens[i] ? at : NULL, answer->lens[i]);
		at += answer->lens[i];
	}
	return (struct spokei_message){
		.kind = SPOKEI_REPLY,
		.error = answer->error,
		.error_code = answer->error_code,
		.status = answer->status,
		.value = { parts[0].data, parts[0].len },
		.attachments = { parts[1].data, parts[1].len },
		.error_text = parts[2],
		.error_class = parts[3],
	};
}

static void note_end(struct spokei_dedupe_entry *entry, uint64_t ended_ns)
{
	struct spokei_dedupe_method *method = entry->method;

	entry->ended = true;
	entry->ended_ns = ended_ns;
	spokei_list_append(&method->ended, &entry->node);
	spokei_list_append(&method->table->order, &entry->order);
}

void spokei_dedupe_end(struct spokei_dedupe_entry *entry, const struct spokei_message *answer,
		       uint64_t now_ns)
{
	SPOKE_ASSERT(spokei_list_empty(&entry->waiters));
	keep(entry, answer);
	note_end(entry, now_ns);
	if (entry->method->keep_ns == 0)
		forget(entry);
}

struct spokei_dedupe_entry *spokei_dedupe_restore(struct spokei_dedupe_method *method,
						  const struct spokei_dedupe_asked *asked,
						  const struct spokei_message *answer,
						  uint64_t age_ns, uint64_t now_ns)
{
	struct spokei_dedupe_entry *entry = NULL;

	if (age_ns >= method->keep_ns)
		return NULL;
	if (add(method, asked, 0, &entry) != SPOKEI_DEDUPE_RUN) {
		if (entry == NULL || !entry->ended)
			return NULL;
		forget(entry);
		if (add(method, asked, 0, &entry) != SPOKEI_DEDUPE_RUN)
			return NULL;
	}
	if (answer)
		keep(entry, answer);
	/* The engine's clock may have begun later. */
	note_end(entry, now_ns - age_ns);
	return entry;
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
			uint64_t age_ns = now_ns - entry->ended_ns;

			if (age_ns >= method->keep_ns) {
				forget(entry);
				continue;
			}
			if (method->keep_ns - age_ns < next_ns - now_ns)
				next_ns = now_ns + method->keep_ns - age_ns;
			break;
		}
	}
	if (table->on && table->ids.count == 0)
		rest(table);
	return next_ns;
}
