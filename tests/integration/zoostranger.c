/* SPDX-License-Identifier: Apache-2.0 */
/* Another client of the ZooKeeper server: one session that waits for each answer. */
#define _GNU_SOURCE
#include "tests/integration/zoorig.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define PATIENCE_S 60
#define SESSION_MS 60000
#define GHOSTS_MAX 8u
#define MANY 500u /* requests at a time */

static struct {
	unsigned waiting;
	int code;
	struct Stat stat;
	char data[URL_SIZE];
	char *names; /* one per line */
	size_t name_count;
} answer;

static zhandle_t *stranger;
static zhandle_t *ghosts[GHOSTS_MAX];
static unsigned ghost_count;

static void say_nothing(const char *line)
{
	(void)line;
}

static void ignore(zhandle_t *zh, int type, int state, const char *path, void *context)
{
	(void)zh;
	(void)type;
	(void)state;
	(void)path;
	(void)context;
}

static zhandle_t *come(const clientid_t *id, int session_ms)
{
	char host[64];
	zhandle_t *zh;

	(void)snprintf(host, sizeof(host), "127.0.0.1:%u", (unsigned)zooserver_port());
	zh = __real_zookeeper_init2(host, ignore, session_ms, id, NULL, ZOO_NO_LOG_CLIENTENV,
				    say_nothing);
	assert_non_null(zh);
	return zh;
}

static void step(zhandle_t *zh)
{
	struct timeval time;
	struct pollfd at = { .fd = -1 };
	int interest = 0;

	if (zookeeper_interest(zh, &at.fd, &interest, &time) != ZOK)
		at.fd = -1;
	at.events = (short)((interest & ZOOKEEPER_READ ? POLLIN : 0) |
			    (interest & ZOOKEEPER_WRITE ? POLLOUT : 0));
	(void)poll(&at, 1, 5);
	interest = 0;
	if (at.revents & (POLLIN | POLLERR | POLLHUP))
		interest |= ZOOKEEPER_READ;
	if (at.revents & POLLOUT)
		interest |= ZOOKEEPER_WRITE;
	if (interest)
		(void)zookeeper_process(zh, interest);
}

static void until_connected(zhandle_t *zh)
{
	time_t end = time(NULL) + PATIENCE_S;

	while (zoo_state(zh) != ZOO_CONNECTED_STATE) {
		if (time(NULL) > end)
			fail_msg("the server does not answer");
		step(zh);
	}
}

static int until_answered(zhandle_t *zh)
{
	time_t end = time(NULL) + PATIENCE_S;

	while (answer.waiting) {
		if (time(NULL) > end)
			fail_msg("the server does not answer");
		step(zh);
	}
	return answer.code;
}

static void got_void(int code, const void *data)
{
	(void)data;
	answer.waiting--;
	answer.code = code;
}

static void got_string(int code, const char *text, const void *data)
{
	(void)text;
	got_void(code, data);
}

static void got_data(int code, const char *bytes, int len, const struct Stat *stat,
		     const void *data)
{
	got_void(code, data);
	if (code)
		return;
	answer.stat = *stat;
	(void)snprintf(answer.data, sizeof(answer.data), "%.*s", len > 0 ? len : 0, bytes);
}

static void got_stat(int code, const struct Stat *stat, const void *data)
{
	(void)stat;
	got_void(code, data);
}

static int by_alphabet(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

static void got_names(int code, const struct String_vector *names, const void *data)
{
	size_t size = 1;
	char *at;

	got_void(code, data);
	free(answer.names);
	answer.names = NULL;
	answer.name_count = 0;
	if (code)
		return;
	for (int i = 0; i < names->count; i++)
		size += strlen(names->data[i]) + 1;
	if (names->count)
		qsort(names->data, (size_t)names->count, sizeof(*names->data), by_alphabet);
	answer.names = at = calloc(1, size);
	assert_non_null(at);
	answer.name_count = (size_t)names->count;
	for (int i = 0; i < names->count; i++)
		at += snprintf(at, size - (size_t)(at - answer.names), "%s\n", names->data[i]);
}

/* --- requests */

static zhandle_t *here(void)
{
	if (stranger && is_unrecoverable(stranger) != 0) {
		(void)__real_zookeeper_close(stranger);
		stranger = NULL;
	}
	if (stranger == NULL || zoo_state(stranger) != ZOO_CONNECTED_STATE)
		zooserver_wait();
	if (stranger == NULL)
		stranger = come(NULL, SESSION_MS);
	until_connected(stranger);
	return stranger;
}

/* Repeats the request while the error is a lost connection. */
#define ASK(call)                                                                                  \
	do {                                                                                       \
		zhandle_t *zh = here();                                                            \
                                                                                                   \
		answer.waiting = 1;                                                                \
		assert_int_equal(call, ZOK);                                                       \
	} while (until_answered(stranger) == ZCONNECTIONLOSS)

int zoostranger_create(const char *path, const char *data, int mode)
{
	ASK(zoo_acreate(zh, path, data, (int)strlen(data), &ZOO_OPEN_ACL_UNSAFE, mode, got_string,
			NULL));
	return answer.code;
}

int zoostranger_delete(const char *path)
{
	ASK(zoo_adelete(zh, path, -1, got_void, NULL));
	return answer.code;
}

int zoostranger_owner(const char *path, int64_t *ret_owner)
{
	ASK(zoo_aget(zh, path, 0, got_data, NULL));
	*ret_owner = answer.stat.ephemeralOwner;
	return answer.code;
}

int64_t zoostranger_owner_of(const char *path)
{
	int64_t owner = -1;

	assert_int_equal(zoostranger_owner(path, &owner), ZOK);
	return owner;
}

int zoostranger_data(const char *path, char *data, size_t size)
{
	ASK(zoo_aget(zh, path, 0, got_data, NULL));
	(void)snprintf(data, size, "%s", answer.data);
	return answer.code;
}

int zoostranger_write(const char *path, const char *data)
{
	ASK(zoo_aset(zh, path, data, (int)strlen(data), -1, got_stat, NULL));
	return answer.code;
}

const char *zoostranger_list(const char *path)
{
	ASK(zoo_aget_children(zh, path, 0, got_names, NULL));
	return answer.names ? answer.names : "(none)";
}

size_t zoostranger_count(const char *path)
{
	(void)zoostranger_list(path);
	return answer.name_count;
}

void zoostranger_makes_folder(void)
{
	(void)zoostranger_create("/dubbo", "", ZOO_PERSISTENT);
	(void)zoostranger_create("/dubbo/demo.Echo", "", ZOO_PERSISTENT);
	(void)zoostranger_create(FOLDER, "", ZOO_PERSISTENT);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tree */
void zoostranger_clears(const char *path)
{
	char *names;

	if (strcmp(zoostranger_list(path), "(none)") == 0)
		return;
	names = strdup(answer.names);
	assert_non_null(names);
	for (char *name = names; *name; name += strlen(name) + 1) {
		char child[URL_SIZE];

		name[strcspn(name, "\n")] = '\0';
		(void)snprintf(child, sizeof(child), "%s/%s", path, name);
		zoostranger_clears(child);
	}
	free(names);
	(void)zoostranger_delete(path);
}

void zoostranger_create_many(const char *prefix, unsigned count)
{
	zhandle_t *zh = here();

	for (unsigned i = 0; i < count; i++) {
		char path[URL_SIZE];

		(void)snprintf(path, sizeof(path), "%s%u", prefix, i);
		answer.waiting++;
		assert_int_equal(zoo_acreate(zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, got_string,
					     NULL),
				 ZOK);
		if (answer.waiting == MANY)
			assert_int_equal(until_answered(zh), ZOK);
	}
	assert_int_equal(until_answered(zh), ZOK);
}

/* --- other sessions */

void zoostranger_leaves_behind(const char *path)
{
	zhandle_t *zh = come(NULL, SESSION_MS);

	assert_true(ghost_count < GHOSTS_MAX);
	ghosts[ghost_count++] = zh;
	until_connected(zh);
	answer.waiting = 1;
	assert_int_equal(zoo_acreate(zh, path, "ghost", 5, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL,
				     got_string, NULL),
			 ZOK);
	assert_int_equal(until_answered(zh), ZOK);
}

void zoostranger_ends_session(void)
{
	const clientid_t id = *zoo_client_id(rig.theirs);
	zhandle_t *zh = come(&id, SESSION_MS);

	until_connected(zh);
	assert_int_equal(__real_zookeeper_close(zh), ZOK);
}

void zoostranger_leaves(void)
{
	while (ghost_count)
		(void)__real_zookeeper_close(ghosts[--ghost_count]);
	if (stranger)
		(void)__real_zookeeper_close(stranger);
	stranger = NULL;
	free(answer.names);
	answer.names = NULL;
}
