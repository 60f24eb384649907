/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of the real network alone: paths of unix sockets and flags of descriptors. */
#define _GNU_SOURCE

#include "core/host/host.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PATIENCE_MS = 20000
};

static const struct spoke_net *const net = &spokei_host_net;

struct rig {
	char folder[64];
	char path[100];
	struct spoke_address at;
};

STEP(set_up)
{
	static struct rig rig;
	char text[128];

	memset(&rig, 0, sizeof(rig));
	*state = &rig;
	folder_make(rig.folder);
	(void)snprintf(rig.path, sizeof(rig.path), "%s/s", rig.folder);
	(void)snprintf(text, sizeof(text), "unix:%s", rig.path);
	assert_int_equal(net->parse(NULL, text, &rig.at), 0);
}

STEP(tear_down)
{
	struct rig *rig = *state;

	folder_remove(rig->folder);
}

#define RIG_TEST(...) TEST_WITH(struct rig *rig, *state, __VA_ARGS__)

FIXTURE(set_up, tear_down);

static int listen_at(const struct rig *rig, int *ret_fd)
{
	return net->listen(NULL, &rig->at, 4, ret_fd);
}

/* Binds a foreign socket of this type to the path and listens on it if requested. */
static int bind_there(const struct rig *rig, int type, bool listens)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type, 0);

	assert_true(fd >= 0);
	memcpy(at.sun_path, rig->path, strlen(rig->path) + 1);
	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	if (listens)
		assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static bool exists(const struct rig *rig)
{
	struct stat status;

	return lstat(rig->path, &status) == 0;
}

RIG_TEST(a_path_comes_with_its_listener_and_goes_with_it)
{
	int fd;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(listen_at(rig, &fd), 0);
		assert_true(exists(rig));
		net->close(NULL, fd);
		assert_false(exists(rig));
	}
}

RIG_TEST(the_socket_of_a_dead_listener_is_replaced)
{
	int client;
	int fd;

	assert_int_equal(close(bind_there(rig, SOCK_STREAM, true)), 0);
	assert_true(exists(rig));
	assert_int_equal(listen_at(rig, &fd), 0);
	assert_int_equal(net->connect(NULL, &rig->at, &client), 0);
	net->close(NULL, client);
	net->close(NULL, fd);
	assert_false(exists(rig));
}

RIG_TEST(the_socket_of_a_living_listener_is_not)
{
	int other = bind_there(rig, SOCK_STREAM, true);
	int client;
	int fd = -1;

	assert_int_equal(listen_at(rig, &fd), -EADDRINUSE);
	assert_int_equal(fd, -1);
	assert_int_equal(net->connect(NULL, &rig->at, &client), 0);
	net->close(NULL, client);
	assert_int_equal(close(other), 0);
}

RIG_TEST(the_socket_of_a_listener_with_a_full_backlog_is_not)
{
	int other = bind_there(rig, SOCK_STREAM, true);
	int clients[64];
	int count = 0;
	int fd = -1;
	int error = 0;

	while (!error && count < 64) {
		error = net->connect(NULL, &rig->at, &clients[count]);
		count += error == 0;
	}
	assert_int_equal(error, -EAGAIN);
	assert_int_equal(listen_at(rig, &fd), -EADDRINUSE);
	assert_true(exists(rig));
	while (count > 0)
		net->close(NULL, clients[--count]);
	assert_int_equal(close(other), 0);
}

RIG_TEST(non_socket_at_path_is_left_alone)
{
	int fd = -1;
	int other;

	other = open(rig->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(write(other, "x", 1), 1);
	assert_int_equal(listen_at(rig, &fd), -EADDRINUSE);
	assert_int_equal(close(other), 0);
	assert_int_equal(unlink(rig->path), 0);

	assert_int_equal(mkdir(rig->path, 0700), 0);
	assert_int_equal(listen_at(rig, &fd), -EADDRINUSE);
	assert_int_equal(rmdir(rig->path), 0);

	assert_int_equal(symlink("/nowhere/at/all", rig->path), 0);
	assert_int_equal(listen_at(rig, &fd), -EADDRINUSE);
	assert_int_equal(unlink(rig->path), 0);

	other = bind_there(rig, SOCK_DGRAM, false);
	assert_int_equal(listen_at(rig, &fd), -EADDRINUSE);
	assert_true(exists(rig));
	assert_int_equal(close(other), 0);
}

RIG_TEST(path_reused_by_other_socket_is_not_removed)
{
	int other;
	int fd;

	assert_int_equal(listen_at(rig, &fd), 0);
	assert_int_equal(unlink(rig->path), 0);
	other = bind_there(rig, SOCK_STREAM, true);
	net->close(NULL, fd);
	assert_true(exists(rig));
	assert_int_equal(close(other), 0);
}

RIG_TEST(a_forked_child_leaves_the_path_to_its_parent)
{
	int status;
	pid_t child;
	int fd;

	assert_int_equal(listen_at(rig, &fd), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		net->close(NULL, fd);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(exists(rig));
	net->close(NULL, fd);
	assert_false(exists(rig));
}

TEST(a_folder_that_is_missing_is_an_error)
{
	struct spoke_address nowhere;
	int fd = -1;

	assert_int_equal(net->parse(NULL, "unix:/nowhere/at/all", &nowhere), 0);
	assert_int_equal(net->listen(NULL, &nowhere, 4, &fd), -ENOENT);
	assert_int_equal(net->connect(NULL, &nowhere, &fd), -ENOENT);
	assert_int_equal(fd, -1);
}

TEST(bytes_that_are_no_address_are_refused)
{
	struct spoke_address address = { 0 };
	int fd = -1;

	for (unsigned len = 0; len <= sizeof(address.bytes); len++) {
		address.len = len;
		memset(address.bytes, 0x7f, sizeof(address.bytes));
		assert_int_equal(net->connect(NULL, &address, &fd), -EAFNOSUPPORT);
		assert_int_equal(net->listen(NULL, &address, 4, &fd), -EAFNOSUPPORT);
	}
	assert_int_equal(fd, -1);
}

static void assert_flags(int fd, bool tcp)
{
	int value = 0;
	socklen_t len = sizeof(value);

	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	if (tcp) {
		assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &len), 0);
		assert_true(value);
	}
}

RIG_TEST(no_descriptor_blocks_is_inherited_or_waits_to_send)
{
	struct spoke_address at = rig->at;

	for (int tcp = 0; tcp < 2; tcp++) {
		struct spoke_address peer;
		int listener;
		int client;
		int server;
		int error;

		if (tcp)
			assert_int_equal(net->parse(NULL, "127.0.0.1:0", &at), 0);
		assert_int_equal(net->listen(NULL, &at, 4, &listener), 0);
		assert_int_equal(net->local(NULL, listener, &at), 0);
		error = net->connect(NULL, &at, &client);
		assert_true(error == 0 || error == -EINPROGRESS);
		assert_int_equal(poll(&(struct pollfd){ listener, POLLIN, 0 }, 1, PATIENCE_MS), 1);
		assert_int_equal(net->accept(NULL, listener, &server, &peer), 0);
		assert_flags(listener, tcp);
		assert_flags(client, tcp);
		assert_flags(server, tcp);
		net->close(NULL, listener);
		net->close(NULL, client);
		net->close(NULL, server);
	}
}

TEST(both_kinds_of_any_address_share_a_port)
{
	struct spoke_address at;
	char text[64];
	char any[80];
	int v6;
	int v4;

	assert_int_equal(net->parse(NULL, "[::]:0", &at), 0);
	if (net->listen(NULL, &at, 4, &v6) == -EAFNOSUPPORT)
		skip();
	assert_int_equal(net->local(NULL, v6, &at), 0);
	net->print(NULL, &at, text, sizeof(text));
	(void)snprintf(any, sizeof(any), "0.0.0.0%s", strrchr(text, ':'));
	assert_int_equal(net->parse(NULL, any, &at), 0);
	assert_int_equal(net->listen(NULL, &at, 4, &v4), 0);
	net->close(NULL, v4);
	net->close(NULL, v6);
}

static unsigned mode_of(const struct rig *rig)
{
	struct stat status;

	assert_int_equal(lstat(rig->path, &status), 0);
	return status.st_mode & 0777;
}

RIG_TEST(file_has_its_mode_whatever_the_umask_is)
{
	static const mode_t masks[] = { 0, 022, 077, 0777 };
	static const unsigned modes[] = { 0600, 0660, 0666, 0777, 0 };
	int fd;

	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		for (size_t j = 0; j < sizeof(modes) / sizeof(modes[0]); j++) {
			mode_t before = umask(masks[i]);

			assert_int_equal(net->listen_mode(NULL, &rig->at, 4, modes[j], &fd), 0);
			(void)umask(before);
			assert_int_equal(mode_of(rig), modes[j]);
			net->close(NULL, fd);
			assert_false(exists(rig));
		}
	}
}

TEST(address_without_file_has_no_mode)
{
	static const char *const texts[] = { "127.0.0.1:0", "[::1]:0", "unix:@spoke-test-mode" };
	struct spoke_address at;
	int fd = -1;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(net->parse(NULL, texts[i], &at), 0);
		assert_int_equal(net->listen_mode(NULL, &at, 4, 0600, &fd), -EOPNOTSUPP);
		assert_int_equal(fd, -1);
	}
}

/* The client has handed its descriptor to a child by then. */
RIG_TEST(credentials_are_those_of_the_process_that_connected)
{
	struct spoke_address peer;
	uint32_t uid = 1;
	uint32_t gid = 1;
	int32_t pid = 0;
	int listener;
	int client;
	int server;
	pid_t child;

	assert_int_equal(listen_at(rig, &listener), 0);
	assert_int_equal(net->connect(NULL, &rig->at, &client), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(write(client, "x", 1) == 1 ? 0 : 1);
	net->close(NULL, client);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(net->accept(NULL, listener, &server, &peer), 0);
	assert_int_equal(net->credentials(NULL, server, &uid, &gid, &pid), 0);
	assert_int_equal(uid, geteuid());
	assert_int_equal(gid, getegid());
	assert_int_equal(pid, getpid());
	net->close(NULL, server);
	net->close(NULL, listener);
}

/* Only root can become another user. */
RIG_TEST(other_user_is_told_from_this_one)
{
	struct spoke_address peer;
	uint32_t uid = 0;
	uint32_t gid = 0;
	int32_t pid = 0;
	int listener;
	int client;
	int server;
	pid_t child;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(rig->folder, 0711), 0);
	assert_int_equal(net->listen_mode(NULL, &rig->at, 4, 0666, &listener), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(setgid(4711) == 0 && setuid(4712) == 0 &&
				      net->connect(NULL, &rig->at, &client) == 0
			      ? 0
			      : 1);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(net->accept(NULL, listener, &server, &peer), 0);
	assert_int_equal(net->credentials(NULL, server, &uid, &gid, &pid), 0);
	assert_int_equal(uid, 4712);
	assert_int_equal(gid, 4711);
	assert_int_equal(pid, child);
	net->close(NULL, server);
	net->close(NULL, listener);
}

TEST(tcp_socket_has_no_credentials)
{
	struct spoke_address at;
	uint32_t uid = 7;
	uint32_t gid = 7;
	int32_t pid = 7;
	int listener;
	int client;
	int server;

	assert_int_equal(net->parse(NULL, "127.0.0.1:0", &at), 0);
	assert_int_equal(net->listen(NULL, &at, 4, &listener), 0);
	assert_int_equal(net->local(NULL, listener, &at), 0);
	(void)net->connect(NULL, &at, &client);
	while (net->accept(NULL, listener, &server, &at) == -EAGAIN)
		continue;
	assert_int_equal(net->credentials(NULL, server, &uid, &gid, &pid), -EOPNOTSUPP);
	assert_int_equal(uid, 7);
	net->close(NULL, server);
	net->close(NULL, client);
	net->close(NULL, listener);
}
