/* SPDX-License-Identifier: Apache-2.0 */
/* A small blocking client of Redis; see redisclient.h. */
#define _GNU_SOURCE
#include "tests/integration/redisclient.h"
#include "tests/support/test.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_MS 60000
#define ANSWER_MS 1000
#define DEPTH_MAX 8u

static struct redisclient here = { .fd = -1 };
static char here_path[108];

static int connect_to(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

void redisclient_open(struct redisclient *client, const char *path)
{
	client->fd = connect_to(path);
	client->len = client->at = 0;
	if (client->fd < 0)
		fail_msg("no server at %s", path);
}

void redisclient_close(struct redisclient *client)
{
	if (client->fd >= 0)
		(void)close(client->fd);
	client->fd = -1;
}

bool redisclient_answers(const char *path)
{
	int fd = connect_to(path);
	struct pollfd answer = { .fd = fd, .events = POLLIN };
	char first = '\0';

	if (fd < 0)
		return false;
	if (send(fd, "PING\r\n", 6, MSG_NOSIGNAL) == 6 && poll(&answer, 1, ANSWER_MS) == 1)
		(void)!read(fd, &first, 1);
	(void)close(fd);
	return first == '+' || first == '-';
}

/* --- commands */

static void send_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);

		if (sent <= 0)
			fail_msg("the server has closed the connection");
		bytes += sent;
		len -= (size_t)sent;
	}
}

void redisclient_send(struct redisclient *client, const char *const *words)
{
	char *bytes = NULL;
	size_t len = 0;
	size_t count = 0;
	FILE *out = open_memstream(&bytes, &len);

	assert_non_null(out);
	while (words[count])
		count++;
	(void)fprintf(out, "*%zu\r\n", count);
	for (size_t i = 0; i < count; i++)
		(void)fprintf(out, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
	assert_int_equal(fclose(out), 0);
	send_all(client->fd, bytes, len);
	free(bytes);
}

/* --- replies */

/* Returns false at the end of the connection. */
static bool read_more(struct redisclient *client)
{
	struct pollfd answer = { .fd = client->fd, .events = POLLIN };
	ssize_t got;

	memmove(client->bytes, client->bytes + client->at, client->len - client->at);
	client->len -= client->at;
	client->at = 0;
	assert_true(client->len < sizeof(client->bytes));
	if (poll(&answer, 1, PATIENCE_MS) != 1)
		fail_msg("the server does not answer");
	got = read(client->fd, client->bytes + client->len, sizeof(client->bytes) - client->len);
	client->len += got > 0 ? (size_t)got : 0;
	return got > 0;
}

/* Returns the next line, of `len` bytes if that is not SIZE_MAX, without its end. NULL at the end
 * of the connection. */
static char *next_line(struct redisclient *client, size_t len)
{
	do {
		char *from = client->bytes + client->at;
		size_t there = client->len - client->at;
		char *end = len == SIZE_MAX ? memmem(from, there, "\r\n", 2) : from + len;

		if (end && (size_t)(end - from) + 2 <= there) {
			*end = '\0';
			client->at += (size_t)(end - from) + 2;
			return from;
		}
	} while (read_more(client));
	return NULL;
}

static void add_text(struct redisclient *client, const char *text)
{
	size_t len = strlen(client->text);

	(void)snprintf(client->text + len, sizeof(client->text) - len, "%s", text);
}

#define NO_ARRAY (-1)
#define NO_VALUE (-2) /* the end of the connection */

/* Adds a value to the text; of an array, returns how many elements follow. */
static long add_value(struct redisclient *client)
{
	const char *line = next_line(client, SIZE_MAX);
	char kind = line ? line[0] : '\0';
	long number = line ? strtol(line + 1, NULL, 10) : 0;

	if (kind == '$' && number >= 0)
		line = next_line(client, (size_t)number);
	if (line == NULL)
		return NO_VALUE;
	if ((kind == '*' || kind == '$') && number < 0) {
		add_text(client, "(nil)");
	} else if (kind == '*') {
		add_text(client, "[");
		return number;
	} else {
		add_text(client, kind == '-' || kind == '$' ? line : line + 1);
	}
	return NO_ARRAY;
}

/* Returns NULL at the end of the connection. */
static const char *try_to_read(struct redisclient *client)
{
	long left[DEPTH_MAX] = { 1 };
	unsigned depth = 0;
	bool is_first = true;

	client->text[0] = '\0';
	for (;;) {
		long count;

		while (left[depth] == 0) {
			if (depth-- == 0)
				return client->text;
			add_text(client, "]");
			is_first = false;
		}
		left[depth]--;
		if (!is_first)
			add_text(client, " ");
		count = add_value(client);
		if (count == NO_VALUE)
			return NULL;
		is_first = count >= 0;
		if (count >= 0) {
			depth++;
			assert_true(depth < DEPTH_MAX);
			left[depth] = count;
		}
	}
}

const char *redisclient_read(struct redisclient *client)
{
	const char *text = try_to_read(client);

	if (text == NULL)
		fail_msg("the server has closed the connection");
	return text;
}

bool redisclient_has_one(struct redisclient *client)
{
	struct pollfd answer = { .fd = client->fd, .events = POLLIN };

	return client->at < client->len || poll(&answer, 1, 0) == 1;
}

const char *redisclient_ask(struct redisclient *client, const char *const *words)
{
	redisclient_send(client, words);
	return redisclient_read(client);
}

/* --- the stranger */

void stranger_goes_to(const char *path)
{
	stranger_leaves();
	(void)snprintf(here_path, sizeof(here_path), "%s", path);
}

void stranger_leaves(void)
{
	redisclient_close(&here);
}

/* Connects again if the server was killed since the last command. */
static void be_here(void)
{
	struct pollfd end = { .fd = here.fd, .events = POLLIN };

	if (here.fd >= 0 && poll(&end, 1, 0) == 1)
		redisclient_close(&here);
	if (here.fd < 0)
		redisclient_open(&here, here_path);
}

const char *stranger_asks(const char *const *words)
{
	be_here();
	return redisclient_ask(&here, words);
}

const char *stranger_tries(const char *path, const char *const *words)
{
	const char *text;

	stranger_goes_to(path);
	here.fd = connect_to(path);
	here.len = here.at = 0;
	if (here.fd < 0)
		return "";
	redisclient_send(&here, words);
	text = try_to_read(&here);
	return text ? text : "";
}

int64_t stranger_counts(const char *const *words)
{
	const char *text = stranger_asks(words);
	char *end;
	int64_t number = strtoll(text, &end, 10);

	if (end == text || *end)
		fail_msg("not a number: %s", text);
	return number;
}
