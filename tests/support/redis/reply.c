/* SPDX-License-Identifier: Apache-2.0 */
/* Writes replies in RESP2 to the output of a connection. */
#include "tests/support/redis/parts.h"

#include <inttypes.h>
#include <stdio.h>

void fakeredis_raw(struct fakeredis_conn *conn, const void *bytes, size_t len)
{
	if (conn->mute || len == 0)
		return;
	if (spokei_buffer_append(&conn->out, bytes, len))
		conn->ended = true; /* the client does not read */
}

static void put_line(struct fakeredis_conn *conn, char kind, const char *text)
{
	fakeredis_raw(conn, &kind, 1);
	fakeredis_raw(conn, text, strlen(text));
	fakeredis_raw(conn, "\r\n", 2);
}

static void put_number(struct fakeredis_conn *conn, char kind, int64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRId64, number);
	put_line(conn, kind, text);
}

void fakeredis_simple(struct fakeredis_conn *conn, const char *text)
{
	put_line(conn, '+', text);
}

void fakeredis_error(struct fakeredis_conn *conn, const char *text)
{
	put_line(conn, '-', text);
}

void fakeredis_integer(struct fakeredis_conn *conn, int64_t number)
{
	put_number(conn, ':', number);
}

void fakeredis_bulk(struct fakeredis_conn *conn, struct spoke_span text)
{
	put_number(conn, '$', (int64_t)text.len);
	fakeredis_raw(conn, text.data, text.len);
	fakeredis_raw(conn, "\r\n", 2);
}

void fakeredis_nil(struct fakeredis_conn *conn)
{
	put_line(conn, '$', "-1");
}

void fakeredis_array(struct fakeredis_conn *conn, size_t count)
{
	put_number(conn, '*', (int64_t)count);
}

void fakeredis_mark(struct fakeredis_conn *conn, size_t before)
{
	const struct fakeredis *server = conn->server;
	size_t len = spokei_buffer_len(&conn->out) - before;
	uint64_t due_ns = server->process.world->now_ns + server->delay_ns;
	unsigned last = conn->mark_count;

	if (len == 0)
		return;
	if (last == 0 && server->delay_ns == 0) {
		conn->free += len;
		return;
	}
	if (last < FAKEREDIS_MARKS) {
		conn->marks[last].len = 0;
		conn->marks[last].due_ns = 0;
		conn->mark_count = last + 1;
	} else {
		last--;
	}
	/* The order of answers is kept. */
	if (last > 0 && conn->marks[last - 1].due_ns > due_ns)
		due_ns = conn->marks[last - 1].due_ns;
	conn->marks[last].len += len;
	if (conn->marks[last].due_ns < due_ns)
		conn->marks[last].due_ns = due_ns;
}

void fakeredis_refuse(const struct fakeredis_command *command, const char *text)
{
	char line[256];

	if (command->sha1 == NULL) {
		fakeredis_error(command->conn, text);
		return;
	}
	(void)snprintf(line, sizeof(line), "%s script: %s, on @user_script:1.", text,
		       command->sha1);
	fakeredis_error(command->conn, line);
}
