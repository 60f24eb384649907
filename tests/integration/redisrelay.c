/* SPDX-License-Identifier: Apache-2.0 */
/* A relay between the code under test and a Redis server; see redisrelay.h. */
#define _GNU_SOURCE
#include "tests/integration/redisrelay.h"
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
#define LINKS_MAX 64u
#define CHUNK 65536u
#define SEEN_MAX (8u << 20)

/* Commands that are held back. */
struct held {
	bool holds;
	char *bytes;
	size_t len;
};

/* A connection of the code under test, and its continuation. */
struct link {
	int client; /* -1: cut; the link is free if `server` is -1, too */
	int server;
	bool cuts_reply;
	struct held commands;
};

static struct {
	int listener;
	char folder[48];
	char path[64];
	char server[108];
	struct link links[LINKS_MAX];
	enum redisrelay_trap trap;
	const char *text;
	bool has_sprung;
	unsigned accepted;
	char *seen;
	size_t seen_len;
} relay = { .listener = -1 };

/* --- life */

static void bind_listener(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", relay.path);
	relay.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(relay.listener >= 0);
	assert_int_equal(bind(relay.listener, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(relay.listener, 64), 0);
}

void redisrelay_open(const char *server)
{
	memset(&relay, 0, sizeof(relay));
	for (size_t i = 0; i < LINKS_MAX; i++)
		relay.links[i].client = relay.links[i].server = -1;
	(void)snprintf(relay.server, sizeof(relay.server), "%s", server);
	(void)snprintf(relay.folder, sizeof(relay.folder), "/tmp/spoke-relay-XXXXXX");
	assert_non_null(mkdtemp(relay.folder));
	(void)snprintf(relay.path, sizeof(relay.path), "%s/socket", relay.folder);
	relay.seen = malloc(SEEN_MAX);
	assert_non_null(relay.seen);
	bind_listener();
}

static void shut(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static void drop(struct held *held)
{
	free(held->bytes);
	*held = (struct held){ 0 };
}

static void cut(struct link *link)
{
	shut(&link->client);
	shut(&link->server);
	drop(&link->commands);
	link->cuts_reply = false;
}

/* Cuts all connections. */
static void redisrelay_cut_all(void)
{
	for (size_t i = 0; i < LINKS_MAX; i++)
		cut(&relay.links[i]);
}

void redisrelay_close(void)
{
	if (relay.listener < 0)
		return;
	redisrelay_cut_all();
	shut(&relay.listener);
	(void)unlink(relay.path);
	(void)rmdir(relay.folder);
	free(relay.seen);
	relay.seen = NULL;
}

const char *redisrelay_path(void)
{
	return relay.path;
}

/* --- traps */

void redisrelay_set(enum redisrelay_trap trap, const char *text)
{
	relay.trap = trap;
	relay.text = text;
	relay.has_sprung = false;
}

bool redisrelay_has_sprung(void)
{
	return relay.has_sprung;
}

unsigned redisrelay_accepted(void)
{
	return relay.accepted;
}

void redisrelay_forget(void)
{
	relay.seen_len = 0;
}

unsigned redisrelay_seen(const char *text)
{
	const char *at = relay.seen;
	const char *end = relay.seen + relay.seen_len;
	unsigned count = 0;

	while ((at = memmem(at, (size_t)(end - at), text, strlen(text))) != NULL) {
		at += strlen(text);
		count++;
	}
	return count;
}

static void note(const char *bytes, size_t len)
{
	assert_true(relay.seen_len + len <= SEEN_MAX);
	memcpy(relay.seen + relay.seen_len, bytes, len);
	relay.seen_len += len;
}

/* --- bytes */

/* Sends all; a peer that is gone is noticed when its end is read. */
static void send_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);

		if (sent <= 0)
			return;
		bytes += sent;
		len -= (size_t)sent;
	}
}

static void hold(struct held *held, const char *bytes, size_t len)
{
	char *all = realloc(held->bytes, held->len + len);

	assert_non_null(all);
	memcpy(all + held->len, bytes, len);
	held->bytes = all;
	held->len += len;
}

/* Sets what the trap does with these bytes, if it springs. Returns whether the link was cut. */
static bool spring(struct link *link, const char *bytes, size_t len)
{
	enum redisrelay_trap trap = relay.trap;

	if (trap == REDISRELAY_NONE || !memmem(bytes, len, relay.text, strlen(relay.text)))
		return false;
	relay.trap = REDISRELAY_NONE;
	relay.has_sprung = true;
	link->commands.holds |= trap == REDISRELAY_HOLD_COMMAND;
	link->cuts_reply |= trap == REDISRELAY_CUT_AFTER;
	if (trap == REDISRELAY_CUT_BEFORE)
		cut(link);
	return trap == REDISRELAY_CUT_BEFORE;
}

/* Waits until the server has answered, and cuts. */
static void cut_reply(struct link *link)
{
	struct pollfd answer = { .fd = link->server, .events = POLLIN };

	if (poll(&answer, 1, PATIENCE_MS) != 1)
		fail_msg("the server does not answer");
	cut(link);
}

static void take_commands(struct link *link, const char *bytes, size_t len)
{
	note(bytes, len);
	if (spring(link, bytes, len))
		return;
	if (link->commands.holds)
		hold(&link->commands, bytes, len);
	else
		send_all(link->server, bytes, len);
	if (link->cuts_reply)
		cut_reply(link);
}

static void take_replies(struct link *link, const char *bytes, size_t len)
{
	if (link->client >= 0)
		send_all(link->client, bytes, len);
}

/* The end of one side cuts the other, unless commands are held back: those reach the server. */
static void end(struct link *link, const int *fd)
{
	if (fd == &link->client && link->commands.holds)
		shut(&link->client);
	else
		cut(link);
}

/* Reads one chunk; returns whether there was one. */
static bool pass(struct link *link, const int *fd,
		 void (*take)(struct link *link, const char *bytes, size_t len))
{
	static char chunk[CHUNK];
	ssize_t got;

	if (*fd < 0)
		return false;
	got = recv(*fd, chunk, sizeof(chunk), MSG_DONTWAIT);
	if (got > 0) {
		take(link, chunk, (size_t)got);
	} else if (got == 0 || errno != EAGAIN) {
		end(link, fd);
	}
	return got > 0;
}

/* --- connections */

static int connect_to_server(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", relay.server);
	if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

static void meet(int client)
{
	struct link *link = relay.links;
	int server;

	relay.accepted++;
	server = connect_to_server();
	if (server < 0) {
		(void)close(client);
		return;
	}
	while (link < relay.links + LINKS_MAX && (link->client >= 0 || link->server >= 0))
		link++;
	assert_true(link < relay.links + LINKS_MAX);
	link->client = client;
	link->server = server;
}

void redisrelay_pump(void)
{
	bool has_passed = true;
	int client;

	while ((client = accept4(relay.listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		meet(client);
	while (has_passed) {
		has_passed = false;
		for (size_t i = 0; i < LINKS_MAX; i++) {
			struct link *link = &relay.links[i];

			has_passed |= pass(link, &link->client, take_commands);
			has_passed |= pass(link, &link->server, take_replies);
		}
	}
}

void redisrelay_let_go(void)
{
	for (size_t i = 0; i < LINKS_MAX; i++) {
		struct link *link = &relay.links[i];

		if (link->server >= 0 && link->commands.len > 0)
			send_all(link->server, link->commands.bytes, link->commands.len);
		drop(&link->commands);
	}
}

void redisrelay_leave_ghosts(void)
{
	for (size_t i = 0; i < LINKS_MAX; i++)
		if (relay.links[i].commands.holds)
			shut(&relay.links[i].client);
}
