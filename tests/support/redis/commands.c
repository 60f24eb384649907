/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the Redis in memory: what each may be run in, and the small ones. */
#include "tests/support/redis/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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

static const char wrong_type[] =
	"WRONGTYPE Operation against a key holding the wrong kind of value";

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
