/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of the Redis in memory, and the scripts, which are known by their SHA-1 and run
 * in C.
 */
#include "cluster/lease/script.h"
#include "tests/support/redis/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* --- subscriptions, messages and the command CLIENT */

/* --- subscriptions */

static void put_subscription(struct fakeredis_conn *conn, const char *what,
			     const struct spoke_span *channel)
{
	fakeredis_array(conn, 3);
	fakeredis_bulk(conn, fakeredis_of(what));
	if (channel)
		fakeredis_bulk(conn, *channel);
	else
		fakeredis_nil(conn);
	fakeredis_integer(conn, conn->sub_count);
}

static unsigned sub_index(const struct fakeredis_conn *conn, struct spoke_span channel)
{
	unsigned i = 0;

	while (i < conn->sub_count && !fakeredis_same(fakeredis_span(conn->subs[i]), channel))
		i++;
	return i;
}

static void fakeredis_subscribe(struct fakeredis_command *command)
{
	struct fakeredis_conn *conn = command->conn;

	for (unsigned i = 1; i < command->count; i++) {
		if (sub_index(conn, command->args[i]) == conn->sub_count) {
			SPOKE_ASSERT(conn->sub_count < FAKEREDIS_SUBS);
			conn->subs[conn->sub_count] = fakeredis_text_new(command->args[i]);
			conn->sub_count++;
		}
		put_subscription(conn, "subscribe", &command->args[i]);
	}
}

/* Removes a subscription by its index. */
static void drop_sub(struct fakeredis_conn *conn, unsigned index)
{
	free(conn->subs[index]);
	conn->sub_count--;
	conn->subs[index] = conn->subs[conn->sub_count];
}

static void fakeredis_unsubscribe(struct fakeredis_command *command)
{
	struct fakeredis_conn *conn = command->conn;

	for (unsigned i = 1; i < command->count; i++) {
		unsigned index = sub_index(conn, command->args[i]);

		if (index < conn->sub_count)
			drop_sub(conn, index);
		put_subscription(conn, "unsubscribe", &command->args[i]);
	}
	if (command->count > 1)
		return;
	if (conn->sub_count == 0)
		put_subscription(conn, "unsubscribe", NULL);
	while (conn->sub_count > 0) {
		struct fakeredis_text *channel = conn->subs[0];
		struct spoke_span span = fakeredis_span(channel);

		conn->sub_count--;
		conn->subs[0] = conn->subs[conn->sub_count];
		put_subscription(conn, "unsubscribe", &span);
		free(channel);
	}
}

/* Publishes to the subscribers of this server. */
static unsigned fakeredis_tell(struct fakeredis *server, struct spoke_span channel,
			       struct spoke_span message)
{
	unsigned count = 0;

	for (unsigned i = 0; i < FAKEREDIS_CONNS; i++) {
		struct fakeredis_conn *conn = server->conns[i];
		size_t before;

		if (conn == NULL || conn->ended || sub_index(conn, channel) == conn->sub_count)
			continue;
		before = spokei_buffer_len(&conn->out);
		fakeredis_array(conn, 3);
		fakeredis_bulk(conn, fakeredis_of("message"));
		fakeredis_bulk(conn, channel);
		fakeredis_bulk(conn, message);
		fakeredis_mark(conn, before);
		count++;
	}
	return count;
}

unsigned fakeredis_publish(struct fakeredis *server, const char *channel, const char *message)
{
	return fakeredis_tell(server, fakeredis_of(channel), fakeredis_of(message));
}

/* --- CLIENT */

/* Returns whether the connection passes all filters of the command, in pairs. */
static bool is_meant(const struct fakeredis_command *command, const struct fakeredis_conn *conn)
{
	for (unsigned i = 2; i < command->count; i += 2) {
		struct spoke_span value = command->args[i + 1];
		int64_t id;

		if (fakeredis_is(command->args[i], "ID")) {
			if (!fakeredis_number(value, &id) || conn->id != (uint64_t)id)
				return false;
		} else if (!fakeredis_same(value, fakeredis_of(conn->peer))) {
			return false;
		}
	}
	return true;
}

static bool are_filters(const struct fakeredis_command *command)
{
	for (unsigned i = 2; i < command->count; i += 2)
		if (!fakeredis_is(command->args[i], "ID") &&
		    !fakeredis_is(command->args[i], "ADDR"))
			return false;
	return command->count > 2 && command->count % 2 == 0;
}

static void kill_client(struct fakeredis_command *command)
{
	int64_t count = 0;

	if (!are_filters(command)) {
		fakeredis_error(command->conn, "ERR syntax error");
		return;
	}
	for (unsigned i = 0; i < FAKEREDIS_CONNS; i++) {
		struct fakeredis_conn *conn = command->server->conns[i];

		if (conn == NULL || conn->ended || !is_meant(command, conn))
			continue;
		count++;
		if (conn == command->conn)
			conn->closing = true;
		else
			conn->ended = true;
	}
	fakeredis_integer(command->conn, count);
}

static void fakeredis_client(struct fakeredis_command *command)
{
	if (fakeredis_is(command->args[1], "ID") && command->count == 2)
		fakeredis_integer(command->conn, (int64_t)command->conn->id);
	else if (fakeredis_is(command->args[1], "SETNAME") && command->count == 3)
		fakeredis_simple(command->conn, "OK");
	else if (fakeredis_is(command->args[1], "KILL"))
		kill_client(command);
	else
		fakeredis_error(command->conn, "ERR unknown subcommand. Try CLIENT HELP.");
}

/* --- scripts: known by their SHA-1, and run in C */

const char *const fakeredis_texts[FAKEREDIS_SCRIPT_KINDS] = {
	[FAKEREDIS_REDISSON_ACQUIRE] = "-- KEYS: lock; ARGV: ttl, holder. nil, or the other's ttl",
	[FAKEREDIS_REDISSON_FENCED] =
		"-- KEYS: lock, counter; ARGV: ttl, holder. {-1, number} or {ttl, -1}",
	[FAKEREDIS_REDISSON_RELEASE] =
		"-- KEYS: lock, channel; ARGV: message, ttl, holder. nil, 0 (held still) or 1",
};

static const char wrong_type[] =
	"WRONGTYPE Operation against a key holding the wrong kind of value";

/* A script that runs: its keys and arguments. */
struct call {
	struct fakeredis_command *command;
	const struct spoke_span *keys;
	unsigned key_count;
	const struct spoke_span *args;
	unsigned arg_count;
};

/* Finds the hash of a lock. Returns false if there is a key of another type, which is answered. */
static bool find_lock(const struct call *call, struct spoke_span name, struct fakeredis_key **ret)
{
	*ret = fakeredis_find(call->command->server, call->command->conn->db, name);
	if (*ret == NULL || (*ret)->string == NULL)
		return true;
	fakeredis_refuse(call->command, wrong_type);
	return false;
}

static void answer_pair(const struct call *call, int64_t first, int64_t second)
{
	fakeredis_array(call->command->conn, 2);
	fakeredis_integer(call->command->conn, first);
	fakeredis_integer(call->command->conn, second);
}

static bool expire(const struct call *call, struct spoke_span name, struct spoke_span ttl)
{
	struct fakeredis_key *key = fakeredis_find(call->command->server, call->command->conn->db,
						   name);

	return key == NULL || fakeredis_do_expire(call->command, key, ttl);
}

/* Answers a repeated grant with the counter as text; one that was removed begins anew. */
static void answer_grant(const struct call *call)
{
	struct fakeredis_conn *conn = call->command->conn;
	const struct fakeredis_key *token = fakeredis_find(call->command->server, conn->db,
							   call->keys[1]);

	if (token && token->string == NULL) {
		fakeredis_refuse(call->command, wrong_type);
		return;
	}
	if (token == NULL) {
		int64_t first;

		if (fakeredis_do_count(call->command, call->keys[1], &first))
			answer_pair(call, 0, first);
		return;
	}
	fakeredis_array(conn, 2);
	fakeredis_integer(conn, 0);
	fakeredis_bulk(conn, fakeredis_span(token->string));
}

/* --- of spoke */

static void acquire(const struct call *call)
{
	struct fakeredis_key *lock;
	int64_t token;

	if (!find_lock(call, call->keys[0], &lock))
		return;
	if (lock && fakeredis_field(lock, call->args[1])) {
		if (fakeredis_do_expire(call->command, lock, call->args[0]))
			answer_grant(call);
		return;
	}
	if (lock) {
		answer_pair(call, 1, fakeredis_ttl(call->command->server, lock));
		return;
	}
	if (fakeredis_do_count(call->command, call->keys[1], &token) &&
	    fakeredis_do_field(call->command, call->keys[0], call->args[1], 1) &&
	    expire(call, call->keys[0], call->args[0]))
		answer_pair(call, 0, token);
}

static void renew(const struct call *call)
{
	struct fakeredis_conn *conn = call->command->conn;
	int64_t done[FAKEREDIS_ARGS];

	for (unsigned i = 0; i < call->key_count; i++) {
		struct fakeredis_key *lock = fakeredis_find(call->command->server, conn->db,
							    call->keys[i]);

		done[i] = lock && lock->string == NULL &&
			  fakeredis_field(lock, call->args[2 * i]) != NULL;
		if (done[i] && !fakeredis_do_expire(call->command, lock, call->args[2 * i + 1]))
			return;
	}
	fakeredis_array(conn, call->key_count);
	for (unsigned i = 0; i < call->key_count; i++)
		fakeredis_integer(conn, done[i]);
}

/* Deletes the lock and publishes it. */
static void give_up(const struct call *call, struct fakeredis_key *lock, struct spoke_span channel,
		    struct spoke_span message)
{
	if (!fakeredis_do_delete(call->command, lock))
		return;
	(void)fakeredis_tell(call->command->server, channel, message);
	fakeredis_integer(call->command->conn, 1);
}

/* A key of another type is not this holder's. */
static void release(const struct call *call)
{
	struct fakeredis_key *lock = fakeredis_find(call->command->server, call->command->conn->db,
						    call->keys[0]);

	if (lock && lock->string == NULL && fakeredis_field(lock, call->args[0]))
		give_up(call, lock, call->keys[1], fakeredis_of("0"));
	else
		fakeredis_integer(call->command->conn, 0);
}

/* --- of Redisson */

/* Takes the lock once more if it may. Returns false if an error was answered. */
static bool take(const struct call *call, bool *ret_taken, int64_t *ret_ttl)
{
	struct fakeredis_key *lock;
	const struct fakeredis_text *held = NULL;
	int64_t count = 0;

	if (!find_lock(call, call->keys[0], &lock))
		return false;
	if (lock)
		held = fakeredis_field(lock, call->args[1]);
	*ret_taken = lock == NULL || held != NULL;
	if (!*ret_taken) {
		*ret_ttl = fakeredis_ttl(call->command->server, lock);
		return true;
	}
	if (held)
		(void)fakeredis_number(fakeredis_span(held), &count);
	return fakeredis_do_field(call->command, call->keys[0], call->args[1], count + 1) &&
	       expire(call, call->keys[0], call->args[0]);
}

static void redisson_acquire(const struct call *call)
{
	bool taken;
	int64_t ttl;

	if (!take(call, &taken, &ttl))
		return;
	if (taken)
		fakeredis_nil(call->command->conn);
	else
		fakeredis_integer(call->command->conn, ttl);
}

static void redisson_fenced(const struct call *call)
{
	bool taken;
	int64_t ttl;
	int64_t token;

	if (!take(call, &taken, &ttl))
		return;
	if (!taken)
		answer_pair(call, ttl, -1);
	else if (fakeredis_do_count(call->command, call->keys[1], &token))
		answer_pair(call, -1, token);
}

static void redisson_release(const struct call *call)
{
	struct fakeredis_key *lock;
	const struct fakeredis_text *held = NULL;
	int64_t count = 0;

	if (!find_lock(call, call->keys[0], &lock))
		return;
	if (lock)
		held = fakeredis_field(lock, call->args[2]);
	if (held == NULL) {
		fakeredis_nil(call->command->conn);
		return;
	}
	(void)fakeredis_number(fakeredis_span(held), &count);
	if (count <= 1) {
		give_up(call, lock, call->keys[1], call->args[0]);
	} else if (fakeredis_do_field(call->command, call->keys[0], call->args[2], count - 1) &&
		   expire(call, call->keys[0], call->args[1])) {
		fakeredis_integer(call->command->conn, 0);
	}
}

/* --- which */

static const struct {
	void (*run)(const struct call *call);
	unsigned keys; /* 0: any number, with two arguments each */
	unsigned args;
} kinds[FAKEREDIS_SCRIPT_KINDS] = {
	[FAKEREDIS_ACQUIRE] = { acquire, 2, 2 },
	[FAKEREDIS_RENEW] = { renew, 0, 0 },
	[FAKEREDIS_RELEASE] = { release, 2, 1 },
	[FAKEREDIS_REDISSON_ACQUIRE] = { redisson_acquire, 1, 2 },
	[FAKEREDIS_REDISSON_FENCED] = { redisson_fenced, 2, 2 },
	[FAKEREDIS_REDISSON_RELEASE] = { redisson_release, 2, 3 },
};

/* Returns the index of a script; script_count: it is not known. */
static unsigned index_of(const struct fakeredis *server, struct spoke_span sha1)
{
	unsigned i = 0;

	while (i < server->script_count &&
	       !fakeredis_same(sha1, fakeredis_of(server->scripts[i].sha1)))
		i++;
	return i;
}

/* Makes a script known, also before the start: the text may be loaded and run, and does what `kind`
 * says. Those of the product and of REDISSON are known from the start on. A changed text of the
 * product fails a test of lease/test_leases.c, and changes scripts.c here. */
static void fakeredis_know(struct fakeredis *server, enum fakeredis_script kind, const char *text)
{
	unsigned i = server->script_count;

	SPOKE_ASSERT(i < FAKEREDIS_SCRIPTS);
	fakeredis_sha1(text, strlen(text), server->scripts[i].sha1);
	if (index_of(server, fakeredis_of(server->scripts[i].sha1)) < i)
		return;
	server->scripts[i].kind = kind;
	server->scripts[i].loaded = false;
	server->script_count++;
}

void fakeredis_know_all(struct fakeredis *server)
{
	static const enum spokei_script of_product[FAKEREDIS_SCRIPT_KINDS] = {
		[FAKEREDIS_ACQUIRE] = SPOKEI_SCRIPT_ACQUIRE,
		[FAKEREDIS_RENEW] = SPOKEI_SCRIPT_RENEW,
		[FAKEREDIS_RELEASE] = SPOKEI_SCRIPT_RELEASE,
	};

	for (unsigned i = 1; i < FAKEREDIS_SCRIPT_KINDS; i++) {
		const char *text = fakeredis_texts[i] ? fakeredis_texts[i]
						      : spokei_script_text(of_product[i]);

		fakeredis_know(server, (enum fakeredis_script)i, text);
	}
}

void fakeredis_flush_scripts(struct fakeredis *server)
{
	for (unsigned i = 0; i < server->script_count; i++)
		server->scripts[i].loaded = false;
}

static void run(struct fakeredis_command *command, unsigned index)
{
	enum fakeredis_script kind = command->server->scripts[index].kind;
	struct call call = { .command = command };
	int64_t keys;

	if (!fakeredis_number(command->args[2], &keys)) {
		fakeredis_error(command->conn, "ERR value is not an integer or out of range");
		return;
	}
	if (keys < 0 || keys > (int64_t)command->count - 3) {
		fakeredis_error(command->conn,
				"ERR Number of keys can't be greater than number of args");
		return;
	}
	call.keys = command->args + 3;
	call.key_count = (unsigned)keys;
	call.args = call.keys + keys;
	call.arg_count = command->count - 3 - (unsigned)keys;
	command->sha1 = command->server->scripts[index].sha1;
	if (kinds[kind].keys
		    ? call.key_count != kinds[kind].keys || call.arg_count != kinds[kind].args
		    : call.key_count == 0 || call.arg_count != 2 * call.key_count) {
		fakeredis_refuse(command, "ERR wrong number of keys or arguments of a script");
		command->server->unknown_commands++;
		return;
	}
	command->server->runs[kind]++;
	kinds[kind].run(&call);
}

static void refuse_script(struct fakeredis_command *command)
{
	command->server->unknown_commands++;
	fakeredis_error(command->conn, "ERR this script is not known to the Redis in memory");
}

static void fakeredis_eval(struct fakeredis_command *command)
{
	struct fakeredis *server = command->server;
	char sha1[41];
	unsigned index;

	fakeredis_sha1(command->args[1].data, command->args[1].len, sha1);
	index = index_of(server, fakeredis_of(sha1));
	if (index == server->script_count) {
		refuse_script(command);
		return;
	}
	server->scripts[index].loaded = true;
	run(command, index);
}

static void fakeredis_evalsha(struct fakeredis_command *command)
{
	const struct fakeredis *server = command->server;
	unsigned index = index_of(server, command->args[1]);

	if (index == server->script_count || !server->scripts[index].loaded)
		fakeredis_error(command->conn, "NOSCRIPT No matching script. Please use EVAL.");
	else
		run(command, index);
}

/* Returns what the command would run; FAKEREDIS_NO_SCRIPT: no script, or one that is not known. */
static enum fakeredis_script fakeredis_script_of(const struct fakeredis_command *command)
{
	const struct fakeredis *server = command->server;
	char sha1[41];
	unsigned index;

	if (command->count < 2)
		return FAKEREDIS_NO_SCRIPT;
	if (fakeredis_is(command->args[0], "EVALSHA"))
		index = index_of(server, command->args[1]);
	else if (fakeredis_is(command->args[0], "EVAL")) {
		fakeredis_sha1(command->args[1].data, command->args[1].len, sha1);
		index = index_of(server, fakeredis_of(sha1));
	} else {
		return FAKEREDIS_NO_SCRIPT;
	}
	return index < server->script_count ? server->scripts[index].kind : FAKEREDIS_NO_SCRIPT;
}

void fakeredis_script(struct fakeredis_command *command)
{
	struct fakeredis *server = command->server;
	unsigned index;
	char sha1[41];

	if (fakeredis_is(command->args[1], "FLUSH")) {
		fakeredis_flush_scripts(server);
		fakeredis_simple(command->conn, "OK");
		return;
	}
	if (!fakeredis_is(command->args[1], "LOAD") || command->count != 3) {
		fakeredis_error(command->conn, "ERR unknown subcommand. Try SCRIPT HELP.");
		return;
	}
	fakeredis_sha1(command->args[2].data, command->args[2].len, sha1);
	index = index_of(server, fakeredis_of(sha1));
	if (index == server->script_count) {
		refuse_script(command);
		return;
	}
	server->scripts[index].loaded = true;
	fakeredis_bulk(command->conn, fakeredis_of(sha1));
}

/* --- the commands of the Redis in memory: what each may be run in, and the small ones */

#define SCAN_MOST 1000
/* When a command is allowed. */
enum {
	ANY_TIME = 1,     /* before AUTH */
	LOADING = 2,      /* while the data are loaded */
	BUSY = 4,         /* while a script runs */
	SUBSCRIBED = 8,   /* while the connection has subscriptions */
	AT_SENTINEL = 16, /* at a sentinel */
};

/* --- small commands */

static struct fakeredis_key *key_of(struct fakeredis_command *command)
{
	return fakeredis_find(command->server, command->conn->db, command->args[1]);
}

static void run_ping(struct fakeredis_command *command)
{
	if (command->conn->sub_count > 0) {
		fakeredis_array(command->conn, 2);
		fakeredis_bulk(command->conn, fakeredis_of("pong"));
		fakeredis_bulk(command->conn,
			       command->count > 1 ? command->args[1] : fakeredis_of(""));
	} else if (command->count > 1) {
		fakeredis_bulk(command->conn, command->args[1]);
	} else {
		fakeredis_simple(command->conn, "PONG");
	}
}

static void run_auth(struct fakeredis_command *command)
{
	const struct fakeredis *server = command->server;
	bool named = command->count == 3;
	struct spoke_span user = named ? command->args[1] : fakeredis_of("default");

	if (server->password == NULL && !named) {
		fakeredis_error(
			command->conn,
			"ERR AUTH <password> called without any password configured for the "
			"default user. Are you sure your configuration is correct?");
		return;
	}
	if ((server->password &&
	     !fakeredis_same(command->args[command->count - 1], fakeredis_of(server->password))) ||
	    !fakeredis_same(user, fakeredis_of(server->user ? server->user : "default"))) {
		fakeredis_error(command->conn,
				"WRONGPASS invalid username-password pair or user is disabled.");
		return;
	}
	command->conn->authenticated = true;
	fakeredis_simple(command->conn, "OK");
}

static void run_select(struct fakeredis_command *command)
{
	int64_t db;

	if (!fakeredis_number(command->args[1], &db)) {
		fakeredis_error(command->conn, "ERR value is not an integer or out of range");
	} else if (db < 0 || db >= FAKEREDIS_DBS) {
		fakeredis_error(command->conn, "ERR DB index is out of range");
	} else {
		command->conn->db = (unsigned)db;
		fakeredis_simple(command->conn, "OK");
	}
}

static void run_config(struct fakeredis_command *command)
{
	const char *policy = command->server->policy ? command->server->policy : "noeviction";

	if (!fakeredis_is(command->args[1], "GET") || command->count != 3) {
		fakeredis_error(command->conn, "ERR unknown subcommand. Try CONFIG HELP.");
	} else if (fakeredis_match(command->args[2], fakeredis_of("maxmemory-policy"))) {
		fakeredis_array(command->conn, 2);
		fakeredis_bulk(command->conn, fakeredis_of("maxmemory-policy"));
		fakeredis_bulk(command->conn, fakeredis_of(policy));
	} else {
		fakeredis_array(command->conn, 0);
	}
}

static void run_get(struct fakeredis_command *command)
{
	const struct fakeredis_key *key = key_of(command);

	if (key == NULL)
		fakeredis_nil(command->conn);
	else if (key->string == NULL)
		fakeredis_error(command->conn, wrong_type);
	else
		fakeredis_bulk(command->conn, fakeredis_span(key->string));
}

static void run_del(struct fakeredis_command *command)
{
	int64_t count = 0;

	for (unsigned i = 1; i < command->count; i++) {
		struct fakeredis_key *key = fakeredis_find(command->server, command->conn->db,
							   command->args[i]);

		if (key && !fakeredis_do_delete(command, key))
			return;
		count += key != NULL;
	}
	fakeredis_integer(command->conn, count);
}

static void run_pttl(struct fakeredis_command *command)
{
	const struct fakeredis_key *key = key_of(command);

	fakeredis_integer(command->conn, key ? fakeredis_ttl(command->server, key) : -2);
}

static void run_hgetall(struct fakeredis_command *command)
{
	const struct fakeredis_key *key = key_of(command);

	if (key && key->string) {
		fakeredis_error(command->conn, wrong_type);
		return;
	}
	fakeredis_array(command->conn, key ? 2 * (size_t)key->field_count : 0);
	for (unsigned i = 0; key && i < key->field_count; i++) {
		fakeredis_bulk(command->conn, fakeredis_span(key->fields[i].name));
		fakeredis_bulk(command->conn, fakeredis_span(key->fields[i].value));
	}
}

static void run_publish(struct fakeredis_command *command)
{
	fakeredis_integer(command->conn,
			  fakeredis_tell(command->server, command->args[1], command->args[2]));
}

/* --- SCAN: a cursor is the number of the next bucket */

struct scan {
	struct spoke_span match;
	struct spoke_span type;
	int64_t count;
};

static bool read_scan(struct fakeredis_command *command, struct scan *scan)
{
	*scan = (struct scan){ .match = fakeredis_of("*"), .count = 10 };
	for (unsigned i = 2; i < command->count; i += 2) {
		const struct spoke_span *args = &command->args[i];

		if (i + 1 == command->count)
			return false;
		if (fakeredis_is(args[0], "MATCH"))
			scan->match = args[1];
		else if (fakeredis_is(args[0], "TYPE"))
			scan->type = args[1];
		else if (!fakeredis_is(args[0], "COUNT") ||
			 !fakeredis_number(args[1], &scan->count) || scan->count < 1)
			return false;
	}
	if (scan->count > SCAN_MOST)
		scan->count = SCAN_MOST;
	return true;
}

static bool scan_takes(struct fakeredis_command *command, const struct scan *scan,
		       const struct fakeredis_key *key)
{
	return key->db == command->conn->db &&
	       (key->expires_ms == 0 || fakeredis_now_ms(command->server) <= key->expires_ms) &&
	       fakeredis_match(scan->match, fakeredis_span(key->name)) &&
	       (scan->type.len == 0 || fakeredis_is(scan->type, key->string ? "STRING" : "HASH"));
}

static void run_scan(struct fakeredis_command *command)
{
	struct fakeredis *server = command->server;
	struct scan scan;
	int64_t from;
	int64_t at;
	int64_t seen = 0;
	size_t taken = 0;
	char cursor[24];

	if (!fakeredis_number(command->args[1], &from) || from < 0) {
		fakeredis_error(command->conn, "ERR invalid cursor");
		return;
	}
	if (!read_scan(command, &scan)) {
		fakeredis_error(command->conn, "ERR syntax error");
		return;
	}
	for (at = from; at < FAKEREDIS_BUCKETS && seen < scan.count; at++) {
		for (struct fakeredis_key *key = server->keys[at]; key; key = key->next, seen++)
			taken += scan_takes(command, &scan, key);
	}
	(void)snprintf(cursor, sizeof(cursor), "%" PRId64, at < FAKEREDIS_BUCKETS ? at : 0);
	fakeredis_array(command->conn, 2);
	fakeredis_bulk(command->conn, fakeredis_of(cursor));
	fakeredis_array(command->conn, taken);
	for (; from < at; from++)
		for (struct fakeredis_key *key = server->keys[from]; key; key = key->next)
			if (scan_takes(command, &scan, key))
				fakeredis_bulk(command->conn, fakeredis_span(key->name));
}

/* --- all of them */

static const struct known {
	const char *name;
	unsigned least; /* texts, the name included */
	unsigned most;
	unsigned when;
	void (*run)(struct fakeredis_command *command);
} commands[] = {
	{ "AUTH", 2, 3, ANY_TIME | LOADING | BUSY | AT_SENTINEL, run_auth },
	{ "CLIENT", 2, 6, LOADING | AT_SENTINEL, fakeredis_client },
	{ "CONFIG", 2, 3, LOADING, run_config },
	{ "DEL", 2, FAKEREDIS_ARGS, 0, run_del },
	{ "EVAL", 3, FAKEREDIS_ARGS, 0, fakeredis_eval },
	{ "EVALSHA", 3, FAKEREDIS_ARGS, 0, fakeredis_evalsha },
	{ "GET", 2, 2, 0, run_get },
	{ "HGETALL", 2, 2, 0, run_hgetall },
	{ "PING", 1, 2, SUBSCRIBED | AT_SENTINEL, run_ping },
	{ "PTTL", 2, 2, 0, run_pttl },
	{ "PUBLISH", 3, 3, LOADING | AT_SENTINEL, run_publish },
	{ "ROLE", 1, 1, LOADING | AT_SENTINEL, fakeredis_role },
	{ "SCAN", 2, 8, 0, run_scan },
	{ "SCRIPT", 2, 3, 0, fakeredis_script },
	{ "SELECT", 2, 2, LOADING, run_select },
	{ "SENTINEL", 2, 3, AT_SENTINEL, fakeredis_sentinel },
	{ "SUBSCRIBE", 2, FAKEREDIS_ARGS, LOADING | SUBSCRIBED | AT_SENTINEL, fakeredis_subscribe },
	{ "UNSUBSCRIBE", 1, FAKEREDIS_ARGS, LOADING | SUBSCRIBED | AT_SENTINEL,
	  fakeredis_unsubscribe },
};

static const struct known *known_of(struct spoke_span name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (fakeredis_is(name, commands[i].name))
			return &commands[i];
	return NULL;
}

/* Writes "name" or "name|subcommand" in lower case. */
static void print_name(const struct fakeredis_command *command, bool with_sub, char text[64])
{
	size_t len = 0;

	for (unsigned i = 0; i < command->count && i <= with_sub; i++) {
		if (i > 0)
			text[len++] = '|';
		for (size_t j = 0; j < command->args[i].len && len < 60; j++) {
			unsigned char byte = fakeredis_byte(command->args[i], j);

			text[len++] = (char)(byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte);
		}
	}
	text[len] = '\0';
}

static bool is_forbidden(const struct fakeredis_command *command)
{
	char name[64];
	char sub[64];
	char line[160];

	print_name(command, false, name);
	print_name(command, true, sub);
	for (unsigned i = 0; i < FAKEREDIS_FORBIDDEN; i++) {
		const char *one = command->server->forbidden[i];

		if (one == NULL || (strcmp(one, name) != 0 && strcmp(one, sub) != 0))
			continue;
		(void)snprintf(line, sizeof(line),
			       "NOPERM this user has no permissions to run the '%s' command", one);
		fakeredis_error(command->conn, line);
		return true;
	}
	return false;
}

static bool is_out_of_phase(const struct fakeredis_command *command, const struct known *known)
{
	enum fakeredis_phase phase = command->server->phase;

	if (phase == FAKEREDIS_LOADING && !(known->when & LOADING)) {
		fakeredis_error(command->conn, "LOADING Redis is loading the dataset in memory");
		return true;
	}
	if (phase == FAKEREDIS_BUSY && !(known->when & BUSY)) {
		fakeredis_error(command->conn, "BUSY Redis is busy running a script. You can only "
					       "call SCRIPT KILL or SHUTDOWN NOSAVE.");
		return true;
	}
	return false;
}

/* Answers an error if the command may not be run, in the order of Redis. */
static bool is_refused(const struct fakeredis_command *command, const struct known *known)
{
	char name[64];
	char line[192];

	print_name(command, false, name);
	if (known == NULL || (command->server->sentinel != NULL && !(known->when & AT_SENTINEL)) ||
	    (known->run == fakeredis_sentinel && command->server->sentinel == NULL)) {
		command->server->unknown_commands++;
		(void)snprintf(line, sizeof(line),
			       "ERR unknown command '%s', with args beginning with: ", name);
		fakeredis_error(command->conn, line);
		return true;
	}
	if (command->count < known->least || command->count > known->most) {
		(void)snprintf(line, sizeof(line), "ERR wrong number of arguments for '%s' command",
			       name);
		fakeredis_error(command->conn, line);
		return true;
	}
	if (command->server->password && !command->conn->authenticated &&
	    !(known->when & ANY_TIME)) {
		fakeredis_error(command->conn, "NOAUTH Authentication required.");
		return true;
	}
	if (is_forbidden(command))
		return true;
	if (command->conn->sub_count > 0 && !(known->when & SUBSCRIBED)) {
		(void)snprintf(line, sizeof(line),
			       "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / "
			       "PING / QUIT / RESET are allowed in this context",
			       name);
		fakeredis_error(command->conn, line);
		return true;
	}
	return is_out_of_phase(command, known);
}

/* Returns the cut that this command is to suffer; -1: none. */
static int take_cut(struct fakeredis_command *command)
{
	struct fakeredis *server = command->server;

	if (server->cut_command == NULL || !fakeredis_is(command->args[0], server->cut_command) ||
	    (server->cut_script != FAKEREDIS_NO_SCRIPT &&
	     server->cut_script != fakeredis_script_of(command)) ||
	    server->cut_skip-- > 0)
		return -1;
	server->cut_command = NULL;
	return (int)server->cut_how;
}

static void observe(const struct fakeredis_command *command, bool killed)
{
	const struct fakeredis_run run = {
		.client = command->conn->id,
		.fd = command->conn->watch.fd,
		.script = fakeredis_script_of(command),
		.args = command->args,
		.count = command->count,
		.killed = killed,
	};

	if (command->server->ran)
		command->server->ran(command->server->ran_arg, command->server, &run);
}

void fakeredis_run(struct fakeredis_conn *conn, const struct spoke_span *args, unsigned count)
{
	struct fakeredis *server = conn->server;
	struct fakeredis_command command = {
		.server = server, .conn = conn, .args = args, .count = count
	};
	size_t before = spokei_buffer_len(&conn->out);
	const struct known *known = known_of(args[0]);
	int cut = take_cut(&command);

	server->commands++;
	if (cut == FAKEREDIS_CUT_BEFORE) {
		conn->ended = conn->resets = true;
		return;
	}
	conn->mute |= cut >= 0;
	if (!is_refused(&command, known)) {
		known->run(&command);
		observe(&command, cut == FAKEREDIS_CUT_AFTER);
	}
	if (cut == FAKEREDIS_CUT_AFTER)
		conn->ended = conn->resets = true;
	fakeredis_mark(conn, before);
}
