/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts: known by their SHA-1, and run in C. */
#include "cluster/lease/script.h"
#include "tests/support/redis/parts.h"

#include <stdio.h>

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

void fakeredis_know(struct fakeredis *server, enum fakeredis_script kind, const char *text)
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

void fakeredis_eval(struct fakeredis_command *command)
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

void fakeredis_evalsha(struct fakeredis_command *command)
{
	const struct fakeredis *server = command->server;
	unsigned index = index_of(server, command->args[1]);

	if (index == server->script_count || !server->scripts[index].loaded)
		fakeredis_error(command->conn, "NOSCRIPT No matching script. Please use EVAL.");
	else
		run(command, index);
}

enum fakeredis_script fakeredis_script_of(const struct fakeredis_command *command)
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
