/* SPDX-License-Identifier: Apache-2.0 */
/* The data: keys that expire, writes by commands and scripts, and replication with a delay. */
#include "tests/support/redis/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* --- the keys of the Redis in memory, and their times to live by the server's clock */

#define NS_PER_MS UINT64_C(1000000)
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

static void fakeredis_key_free(struct fakeredis_key *key)
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

static struct fakeredis_key *fakeredis_key_copy(const struct fakeredis_key *key)
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

/* Returns the key, made if it is not there; a made one is a hash without fields. */
static void fakeredis_drop(struct fakeredis *server, struct fakeredis_key *key)
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

static struct fakeredis_key *fakeredis_make(struct fakeredis *server, unsigned db,
					    struct spoke_span name)
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

static void fakeredis_set_string(struct fakeredis_key *key, struct spoke_span text)
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

static void fakeredis_set_field(struct fakeredis_key *key, struct spoke_span name,
				struct spoke_span value)
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

/* Puts a copy of a key in place of what is there; `state` NULL: removes it. */
static void fakeredis_replace(struct fakeredis *server, unsigned db, struct spoke_span name,
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

/* --- writes by commands and scripts: whether they are allowed, and what they do */

/* Returns whether the command may write now; answers why not. */
static bool fakeredis_may_write(const struct fakeredis_command *command, bool more_memory)
{
	const struct fakeredis *server = command->server;

	if (server->primary) {
		fakeredis_refuse(command, "READONLY You can't write against a read only replica.");
		return false;
	}
	if (server->phase == FAKEREDIS_MISCONF) {
		fakeredis_refuse(command,
				 "MISCONF Redis is configured to save RDB snapshots, but it's "
				 "currently unable to persist to disk.");
		return false;
	}
	if (more_memory && server->phase == FAKEREDIS_OOM) {
		fakeredis_refuse(command,
				 "OOM command not allowed when used memory > 'maxmemory'.");
		return false;
	}
	return true;
}

static void wrote(struct fakeredis_command *command, const struct fakeredis_key *key)
{
	fakeredis_wrote(command->server, key->db, fakeredis_span(key->name), key);
}

bool fakeredis_do_delete(struct fakeredis_command *command, struct fakeredis_key *key)
{
	if (!fakeredis_may_write(command, false))
		return false;
	fakeredis_wrote(command->server, key->db, fakeredis_span(key->name), NULL);
	fakeredis_drop(command->server, key);
	return true;
}

bool fakeredis_do_expire(struct fakeredis_command *command, struct fakeredis_key *key,
			 struct spoke_span ttl_ms)
{
	int64_t ms;

	if (!fakeredis_may_write(command, false))
		return false;
	if (!fakeredis_number(ttl_ms, &ms)) {
		fakeredis_refuse(command, "ERR value is not an integer or out of range");
		return false;
	}
	if (ms <= 0)
		return fakeredis_do_delete(command, key);
	key->expires_ms = fakeredis_now_ms(command->server) + (uint64_t)ms;
	wrote(command, key);
	return true;
}

bool fakeredis_do_count(struct fakeredis_command *command, struct spoke_span name,
			int64_t *ret_number)
{
	struct fakeredis_key *key = fakeredis_find(command->server, command->conn->db, name);
	int64_t number = 0;
	char text[24];

	if (!fakeredis_may_write(command, true))
		return false;
	if (key && key->string == NULL) {
		fakeredis_refuse(command, "WRONGTYPE Operation against a key holding the wrong "
					  "kind of value");
		return false;
	}
	if (key && !fakeredis_number(fakeredis_span(key->string), &number)) {
		fakeredis_refuse(command, "ERR value is not an integer or out of range");
		return false;
	}
	(void)snprintf(text, sizeof(text), "%" PRId64, ++number);
	key = fakeredis_make(command->server, command->conn->db, name);
	fakeredis_set_string(key, fakeredis_of(text));
	wrote(command, key);
	*ret_number = number;
	return true;
}

bool fakeredis_do_field(struct fakeredis_command *command, struct spoke_span name,
			struct spoke_span field, int64_t number)
{
	struct fakeredis_key *key;
	char text[24];

	if (!fakeredis_may_write(command, true))
		return false;
	key = fakeredis_make(command->server, command->conn->db, name);
	(void)snprintf(text, sizeof(text), "%" PRId64, number);
	fakeredis_set_field(key, field, fakeredis_of(text));
	wrote(command, key);
	return true;
}

/* --- replication with a delay, ROLE and the sentinel */

/* --- writes on their way */

static void op_free(struct fakeredis_op *op)
{
	free(op->name);
	fakeredis_key_free(op->state);
	free(op);
}

static void forget(struct fakeredis_replica *replica)
{
	while (replica->first) {
		struct fakeredis_op *op = replica->first;

		replica->first = op->next;
		op_free(op);
	}
	*replica = (struct fakeredis_replica){ 0 };
}

void fakeredis_forget_replicas(struct fakeredis *server)
{
	for (unsigned i = 0; i < FAKEREDIS_REPLICAS; i++)
		forget(&server->replicas[i]);
}

static void put_op(struct fakeredis *server, struct fakeredis_replica *replica, unsigned db,
		   struct spoke_span name, const struct fakeredis_key *key)
{
	struct fakeredis_op *op = calloc(1, sizeof(*op));

	SPOKE_ASSERT(op != NULL && server->offset - replica->acked < FAKEREDIS_OPS_MAX);
	op->due_ns = server->process.world->now_ns + replica->delay_ns;
	op->offset = server->offset;
	op->db = db;
	op->name = fakeredis_text_new(name);
	op->state = key ? fakeredis_key_copy(key) : NULL;
	if (replica->last)
		replica->last->next = op;
	else
		replica->first = op;
	replica->last = op;
}

void fakeredis_wrote(struct fakeredis *server, unsigned db, struct spoke_span name,
		     const struct fakeredis_key *key)
{
	server->offset++;
	for (unsigned i = 0; i < FAKEREDIS_REPLICAS; i++)
		if (server->replicas[i].server)
			put_op(server, &server->replicas[i], db, name, key);
}

/* Returns the next thing that is to happen to an operation, or NULL. */
static bool is_still(const struct fakeredis_replica *replica, uint64_t now_ns)
{
	const struct fakeredis *server = replica->server;

	return replica->cut || !server->running || server->process.held_until_ns > now_ns;
}

static void move(struct fakeredis *server, struct fakeredis_replica *replica)
{
	uint64_t now_ns = server->process.world->now_ns;

	if (is_still(replica, now_ns))
		return;
	for (struct fakeredis_op *op = replica->first; op && op->due_ns <= now_ns; op = op->next) {
		if (op->arrived)
			continue;
		fakeredis_replace(replica->server, op->db, fakeredis_span(op->name), op->state);
		replica->server->offset = replica->applied = op->offset;
		op->arrived = true;
	}
	while (replica->first && replica->first->arrived &&
	       replica->first->due_ns + replica->delay_ns <= now_ns) {
		struct fakeredis_op *op = replica->first;

		replica->acked = op->offset;
		replica->first = op->next;
		if (op->next == NULL)
			replica->last = NULL;
		op_free(op);
	}
}

void fakeredis_replicate(struct fakeredis *server)
{
	for (unsigned i = 0; i < FAKEREDIS_REPLICAS; i++)
		if (server->replicas[i].server)
			move(server, &server->replicas[i]);
}

static uint64_t next_of(const struct fakeredis_replica *replica, uint64_t now_ns)
{
	const struct fakeredis_op *op = replica->first;
	uint64_t next_ns;

	if (op == NULL || replica->cut || !replica->server->running)
		return UINT64_MAX;
	if (is_still(replica, now_ns))
		return replica->server->process.held_until_ns;
	next_ns = op->arrived ? op->due_ns + replica->delay_ns : op->due_ns;
	while (op && op->arrived)
		op = op->next;
	return op && op->due_ns < next_ns ? op->due_ns : next_ns;
}

uint64_t fakeredis_replicate_next(const struct fakeredis *server)
{
	uint64_t next_ns = UINT64_MAX;

	for (unsigned i = 0; i < FAKEREDIS_REPLICAS; i++) {
		const struct fakeredis_replica *replica = &server->replicas[i];
		uint64_t one_ns = replica->server ? next_of(replica, server->process.world->now_ns)
						  : UINT64_MAX;

		next_ns = one_ns < next_ns ? one_ns : next_ns;
	}
	return next_ns;
}

/* --- ROLE */

static void role_of_sentinel(struct fakeredis_command *command)
{
	fakeredis_array(command->conn, 2);
	fakeredis_bulk(command->conn, fakeredis_of("sentinel"));
	fakeredis_array(command->conn, 1);
	fakeredis_bulk(command->conn, fakeredis_of(command->server->sentinel));
}

static void role_of_replica(struct fakeredis_command *command)
{
	const struct fakeredis *primary = command->server->primary;
	int64_t port = 0;

	(void)fakeredis_number(fakeredis_of(primary->port), &port);
	fakeredis_array(command->conn, 5);
	fakeredis_bulk(command->conn, fakeredis_of("slave"));
	fakeredis_bulk(command->conn, fakeredis_of(primary->host));
	fakeredis_integer(command->conn, port);
	fakeredis_bulk(command->conn, fakeredis_of("connected"));
	fakeredis_integer(command->conn, (int64_t)command->server->offset);
}

void fakeredis_role(struct fakeredis_command *command)
{
	const struct fakeredis *server = command->server;
	unsigned count = 0;

	if (server->sentinel) {
		role_of_sentinel(command);
		return;
	}
	if (server->primary) {
		role_of_replica(command);
		return;
	}
	for (unsigned i = 0; i < FAKEREDIS_REPLICAS; i++)
		count += server->replicas[i].server != NULL;
	fakeredis_array(command->conn, 3);
	fakeredis_bulk(command->conn, fakeredis_of("master"));
	fakeredis_integer(command->conn, (int64_t)server->offset);
	fakeredis_array(command->conn, count);
	for (unsigned i = 0; i < FAKEREDIS_REPLICAS; i++) {
		char offset[24];

		if (server->replicas[i].server == NULL)
			continue;
		(void)snprintf(offset, sizeof(offset), "%llu",
			       (unsigned long long)server->replicas[i].acked);
		fakeredis_array(command->conn, 3);
		fakeredis_bulk(command->conn, fakeredis_of(server->replicas[i].server->host));
		fakeredis_bulk(command->conn, fakeredis_of(server->replicas[i].server->port));
		fakeredis_bulk(command->conn, fakeredis_of(offset));
	}
}

/* --- for tests */

void fakeredis_follow(struct fakeredis *replica, struct fakeredis *primary, uint64_t delay_ns)
{
	struct fakeredis_replica *place = primary->replicas;

	SPOKE_ASSERT(replica != primary && replica->primary == NULL);
	while (place->server) {
		place++;
		SPOKE_ASSERT(place < primary->replicas + FAKEREDIS_REPLICAS);
	}
	*place = (struct fakeredis_replica){ .server = replica,
					     .delay_ns = delay_ns,
					     .applied = primary->offset,
					     .acked = primary->offset };
	fakeredis_forget_replicas(replica);
	fakeredis_wipe(replica);
	for (unsigned i = 0; i < FAKEREDIS_BUCKETS; i++)
		for (struct fakeredis_key *key = primary->keys[i]; key; key = key->next)
			fakeredis_replace(replica, key->db, fakeredis_span(key->name), key);
	replica->primary = primary;
	replica->offset = primary->offset;
}

static struct fakeredis_replica *replica_of(struct fakeredis *replica)
{
	struct fakeredis_replica *place = replica->primary->replicas;

	while (place->server != replica)
		place++;
	return place;
}

void fakeredis_cut_off(struct fakeredis *replica, bool cut)
{
	replica_of(replica)->cut = cut;
}

void fakeredis_promote(struct fakeredis *replica)
{
	forget(replica_of(replica));
	replica->primary = NULL;
}

/* --- the sentinel */

void fakeredis_switch(struct fakeredis *sentinel, struct fakeredis *primary)
{
	const struct fakeredis *old = sentinel->watched;
	char message[256];

	sentinel->watched = primary;
	(void)snprintf(message, sizeof(message), "%s %s %s %s %s", sentinel->sentinel, old->host,
		       old->port, primary->host, primary->port);
	(void)fakeredis_publish(sentinel, "+switch-master", message);
}

void fakeredis_sentinel(struct fakeredis_command *command)
{
	const struct fakeredis *server = command->server;

	if (!fakeredis_is(command->args[1], "GET-MASTER-ADDR-BY-NAME") || command->count != 3) {
		fakeredis_error(command->conn, "ERR unknown subcommand. Try SENTINEL HELP.");
	} else if (fakeredis_same(command->args[2], fakeredis_of(server->sentinel))) {
		fakeredis_array(command->conn, 2);
		fakeredis_bulk(command->conn, fakeredis_of(server->watched->host));
		fakeredis_bulk(command->conn, fakeredis_of(server->watched->port));
	} else {
		fakeredis_raw(command->conn, "*-1\r\n", 5);
	}
}
