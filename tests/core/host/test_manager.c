/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to a service manager, over real datagram sockets. */
#define _GNU_SOURCE

#include "core/host/host.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const struct spoke_manager *const manager = &spokei_host_manager;

struct rig {
	char folder[64];
	char path[80];
	int fd; /* the service manager's socket; -1: none */
};

STEP(set_up)
{
	static struct rig rig;

	memset(&rig, 0, sizeof(rig));
	rig.fd = -1;
	folder_make(rig.folder);
	(void)snprintf(rig.path, sizeof(rig.path), "%s/notify", rig.folder);
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("WATCHDOG_USEC");
	(void)unsetenv("WATCHDOG_PID");
	*state = &rig;
}

STEP(tear_down)
{
	struct rig *rig = *state;

	if (rig->fd >= 0)
		(void)close(rig->fd);
	folder_remove(rig->folder);
}

#define RIG_TEST(...) TEST_WITH(struct rig *rig, *state, __VA_ARGS__)

FIXTURE(set_up, tear_down);

/* Listens like a service manager. The name is a path, or begins with "@". */
static void listen_at(struct rig *rig, const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t len = strlen(name);

	memcpy(at.sun_path, name, len);
	if (name[0] == '@')
		at.sun_path[0] = '\0';
	rig->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(rig->fd >= 0);
	assert_int_equal(bind(rig->fd, (struct sockaddr *)&at,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
			 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
}

static void assert_told(const struct rig *rig, const char *text)
{
	char bytes[200];
	ssize_t len = recv(rig->fd, bytes, sizeof(bytes) - 1, 0);

	assert_true(len >= 0);
	bytes[len] = '\0';
	assert_string_equal(bytes, text);
}

RIG_TEST(message_reaches_socket_at_path)
{
	listen_at(rig, rig->path);
	assert_int_equal(manager->notify(NULL, "READY=1\nSTATUS=fine"), 0);
	assert_int_equal(manager->notify(NULL, "STOPPING=1"), 0);
	assert_told(rig, "READY=1\nSTATUS=fine");
	assert_told(rig, "STOPPING=1");
}

RIG_TEST(message_reaches_abstract_socket)
{
	char name[80];

	(void)snprintf(name, sizeof(name), "@%s", rig->folder);
	listen_at(rig, name);
	assert_int_equal(manager->notify(NULL, "READY=1"), 0);
	assert_told(rig, "READY=1");
}

RIG_TEST(missing_manager_is_enoent)
{
	char gone[200];

	assert_int_equal(manager->notify(NULL, "READY=1"), -ENOENT);
	assert_int_equal(setenv("NOTIFY_SOCKET", "", 1), 0);
	assert_int_equal(manager->notify(NULL, "READY=1"), -ENOENT);
	assert_int_equal(setenv("NOTIFY_SOCKET", "vsock:2:1", 1), 0);
	assert_int_equal(manager->notify(NULL, "READY=1"), -ENOENT);
	assert_int_equal(setenv("NOTIFY_SOCKET", rig->path, 1), 0);
	assert_int_equal(manager->notify(NULL, "READY=1"), -ENOENT);
	memset(gone, 'x', sizeof(gone));
	gone[0] = '/';
	gone[sizeof(gone) - 1] = '\0';
	assert_int_equal(setenv("NOTIFY_SOCKET", gone, 1), 0);
	assert_int_equal(manager->notify(NULL, "READY=1"), -ENAMETOOLONG);
	listen_at(rig, rig->path);
	(void)close(rig->fd);
	rig->fd = -1;
	assert_int_equal(manager->notify(NULL, "READY=1"), -ENOENT);
}

RIG_TEST(full_queue_is_eagain_and_does_not_block)
{
	int error = 0;
	unsigned sent = 0;

	listen_at(rig, rig->path);
	while (error == 0 && sent < 100000) {
		error = manager->notify(NULL, "WATCHDOG=1");
		sent++;
	}
	assert_int_equal(error, -EAGAIN);
	assert_told(rig, "WATCHDOG=1");
	assert_int_equal(manager->notify(NULL, "WATCHDOG=1"), 0);
}

TEST(watchdog_is_read_from_variables)
{
	static const char *const bad[] = { "", "x", "1x", "-1", " 1", "99999999999999999999" };
	char number[24];

	assert_int_equal(manager->watchdog(NULL), 0);
	assert_int_equal(setenv("WATCHDOG_USEC", "30000000", 1), 0);
	assert_int_equal(manager->watchdog(NULL), UINT64_C(30000000000));
	(void)snprintf(number, sizeof(number), "%ld", (long)getpid());
	assert_int_equal(setenv("WATCHDOG_PID", number, 1), 0);
	assert_int_equal(manager->watchdog(NULL), UINT64_C(30000000000));
	assert_int_equal(setenv("WATCHDOG_PID", "1", 1), 0);
	assert_int_equal(manager->watchdog(NULL), 0);
	assert_int_equal(unsetenv("WATCHDOG_PID"), 0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(setenv("WATCHDOG_USEC", bad[i], 1), 0);
		assert_int_equal(manager->watchdog(NULL), 0);
	}
}
