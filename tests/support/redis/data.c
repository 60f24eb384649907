/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of the Redis in memory, and their times to live by the server's clock. */
#include "tests/support/redis/parts.h"

#include <stdio.h>
#include <stdlib.h>

#define NS_PER_MS 1000000u
#define DERIVED_MAX 1100

uint64_t fakeredis_now_ms(const struct fakeredis *server)
{
	const struct spokei_world *world = server->process.world;
	uint64_t ns = world->now_ns + world->slept_ns + server->process.boot_ahead_ns;

	/* Far from 0, so that the clock may be set back. */
	return (uint64_t)((int64_t)(ns / NS_PER_MS) + server->clock_ms) + UINT64_C(1767225600000);
}

static size_t bucket_of(unsigned db, struct spoke_span name)
{
	uint32_t hash = 2166136261u + db;

	for (size_t i = 0; i < name.len; i++)
		hash = (hash ^ fakeredis_byte(name, i)) * 16777619u;
	return hash % FAKEREDIS_BUCKETS;
}

static void clear(struct fakeredis_key *key)
{
	free(key->string);
	key->string = NULL;
	for (unsigned i = 0; i < key->field_count; i++) {
		free(key->fields[i].name);
		free(key->fields[i].value);
	}
	key->field_count = 0;
}

void fakeredis_key_free(struct fakeredis_key *key)
{
	if (key == NULL)
		return;
	clear(key);
	free(key->name);
	free(key);
}

static void copy_content(struct fakeredis_key *to, const struct fakeredis_key *from)
{
	to->expires_ms = from->expires_ms;
	to->string = fakeredis_text_copy(from->string);
	to->field_count = from->field_count;
	for (unsigned i = 0; i < from->field_count; i++) {
		to->fields[i].name = fakeredis_text_copy(from->fields[i].name);
		to->fields[i].value = fakeredis_text_copy(from->fields[i].value);
	}
}

static struct fakeredis_key *key_new(unsigned db, struct spoke_span name)
{
	struct fakeredis_key *key = calloc(1, sizeof(*key));

	SPOKE_ASSERT(key != NULL);
	key->db = db;
	key->name = fakeredis_text_new(name);
	return key;
}

struct fakeredis_key *fakeredis_key_copy(const struct fakeredis_key *key)
{
	struct fakeredis_key *copy = key_new(key->db, fakeredis_span(key->name));

	copy_content(copy, key);
	return copy;
}

/* Returns the place of the pointer to the key, which may be NULL there. */
static struct fakeredis_key **place_of(struct fakeredis *server, unsigned db,
				       struct spoke_span name)
{
	struct fakeredis_key **at = &server->keys[bucket_of(db, name)];

	while (*at && ((*at)->db != db || !fakeredis_same(fakeredis_span((*at)->name), name)))
		at = &(*at)->next;
	return at;
}

void fakeredis_drop(struct fakeredis *server, struct fakeredis_key *key)
{
	struct fakeredis_key **at = place_of(server, key->db, fakeredis_span(key->name));

	SPOKE_ASSERT(*at == key);
	*at = key->next;
	server->key_count--;
	fakeredis_key_free(key);
}

struct fakeredis_key *fakeredis_find(struct fakeredis *server, unsigned db, struct spoke_span name)
{
	struct fakeredis_key *key = *place_of(server, db, name);

	if (key == NULL || key->expires_ms == 0 || fakeredis_now_ms(server) <= key->expires_ms)
		return key;
	fakeredis_drop(server, key);
	return NULL;
}

struct fakeredis_key *fakeredis_make(struct fakeredis *server, unsigned db, struct spoke_span name)
{
	struct fakeredis_key *key = fakeredis_find(server, db, name);
	struct fakeredis_key **bucket;

	if (key)
		return key;
	SPOKE_ASSERT(server->key_count < FAKEREDIS_KEYS_MAX);
	key = key_new(db, name);
	bucket = &server->keys[bucket_of(db, name)];
	key->next = *bucket;
	*bucket = key;
	server->key_count++;
	return key;
}

void fakeredis_set_string(struct fakeredis_key *key, struct spoke_span text)
{
	struct fakeredis_text *string = fakeredis_text_new(text);

	clear(key);
	key->string = string;
}

static unsigned field_index(const struct fakeredis_key *key, struct spoke_span name)
{
	unsigned i = 0;

	while (i < key->field_count && !fakeredis_same(fakeredis_span(key->fields[i].name), name))
		i++;
	return i;
}

const struct fakeredis_text *fakeredis_field(const struct fakeredis_key *key,
					     struct spoke_span name)
{
	unsigned i = field_index(key, name);

	return i < key->field_count ? key->fields[i].value : NULL;
}

void fakeredis_set_field(struct fakeredis_key *key, struct spoke_span name, struct spoke_span value)
{
	unsigned i = field_index(key, name);

	if (i == key->field_count) {
		SPOKE_ASSERT(i < FAKEREDIS_FIELDS && key->string == NULL);
		key->fields[i].name = fakeredis_text_new(name);
		key->fields[i].value = NULL;
		key->field_count++;
	}
	free(key->fields[i].value);
	key->fields[i].value = fakeredis_text_new(value);
}

int64_t fakeredis_ttl(const struct fakeredis *server, const struct fakeredis_key *key)
{
	if (key->expires_ms == 0)
		return -1;
	return (int64_t)(key->expires_ms - fakeredis_now_ms(server));
}

void fakeredis_replace(struct fakeredis *server, unsigned db, struct spoke_span name,
		       const struct fakeredis_key *state)
{
	struct fakeredis_key *key = *place_of(server, db, name);

	if (key)
		fakeredis_drop(server, key);
	if (state)
		copy_content(fakeredis_make(server, db, name), state);
}

void fakeredis_wipe(struct fakeredis *server)
{
	for (unsigned i = 0; i < FAKEREDIS_BUCKETS; i++)
		while (server->keys[i])
			fakeredis_drop(server, server->keys[i]);
}

/* --- for tests */

bool fakeredis_lock(struct fakeredis *server, const char *name, struct fakeredis_lock *ret)
{
	const struct fakeredis_key *key = fakeredis_find(server, 0, fakeredis_of(name));
	int64_t count;

	if (key == NULL || key->field_count != 1 || key->fields[0].name->len >= sizeof(ret->holder))
		return false;
	if (!fakeredis_number(fakeredis_span(key->fields[0].value), &count))
		return false;
	memcpy(ret->holder, key->fields[0].name->bytes, key->fields[0].name->len + 1);
	ret->count = (uint64_t)count;
	ret->ttl_ms = fakeredis_ttl(server, key);
	return true;
}

/* Writes the name of what belongs to a lock, as Redisson does. */
static void derive(const char *prefix, const char *name, char ret_text[DERIVED_MAX])
{
	bool tagged = strchr(name, '{') != NULL;

	SPOKE_ASSERT(strlen(prefix) + strlen(name) + 3 <= DERIVED_MAX);
	(void)snprintf(ret_text, DERIVED_MAX, tagged ? "%s%s" : "%s{%s}", prefix, name);
}

uint64_t fakeredis_token(struct fakeredis *server, const char *name)
{
	char text[DERIVED_MAX];
	const struct fakeredis_key *key;
	int64_t number = 0;

	derive("redisson_lock_token:", name, text);
	key = fakeredis_find(server, 0, fakeredis_of(text));
	if (key && key->string)
		(void)fakeredis_number(fakeredis_span(key->string), &number);
	return (uint64_t)number;
}

void fakeredis_put_lock(struct fakeredis *server, const char *name, const char *holder,
			uint64_t count, uint64_t ttl_ms)
{
	struct fakeredis_key *key;
	char text[24];

	(void)fakeredis_remove(server, name);
	key = fakeredis_make(server, 0, fakeredis_of(name));
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)count);
	fakeredis_set_field(key, fakeredis_of(holder), fakeredis_of(text));
	key->expires_ms = ttl_ms ? fakeredis_now_ms(server) + ttl_ms : 0;
	fakeredis_wrote(server, 0, fakeredis_of(name), key);
}

bool fakeredis_remove(struct fakeredis *server, const char *key)
{
	struct fakeredis_key *found = fakeredis_find(server, 0, fakeredis_of(key));

	if (found == NULL)
		return false;
	fakeredis_wrote(server, 0, fakeredis_of(key), NULL);
	fakeredis_drop(server, found);
	return true;
}

void fakeredis_put(struct fakeredis *server, const char *key, const char *text)
{
	struct fakeredis_key *made = fakeredis_make(server, 0, fakeredis_of(key));

	fakeredis_set_string(made, fakeredis_of(text));
	made->expires_ms = 0;
	fakeredis_wrote(server, 0, fakeredis_of(key), made);
}

void fakeredis_unlock(struct fakeredis *server, const char *name)
{
	char channel[DERIVED_MAX];

	(void)fakeredis_remove(server, name);
	derive("redisson_lock__channel:", name, channel);
	(void)fakeredis_publish(server, channel, "0");
}
