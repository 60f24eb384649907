/* SPDX-License-Identifier: Apache-2.0 */
/* Subscriptions, messages and the command CLIENT. */
#include "tests/support/redis/parts.h"

#include <stdlib.h>

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

void fakeredis_subscribe(struct fakeredis_command *command)
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

void fakeredis_unsubscribe(struct fakeredis_command *command)
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

unsigned fakeredis_tell(struct fakeredis *server, struct spoke_span channel,
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

void fakeredis_client(struct fakeredis_command *command)
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
