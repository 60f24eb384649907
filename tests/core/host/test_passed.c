/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets that a process is started with. Each test runs in a child of its own, whose descriptors
 * from 3 on are those of a service manager.
 */
#define _GNU_SOURCE

#include "core/base/address.h"
#include "core/host/host.h"
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct spoke_net *const net = &spokei_host_net;

/* In a child: ends it with the number of the line if the condition does not hold. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			(void)fprintf(stderr, "line %d: not %s\n", __LINE__, #condition);          \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static int open_listener(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	MUST(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 8) == 0);
	return fd;
}

static void say(const char *name, const char *value)
{
	MUST(setenv(name, value, 1) == 0);
}

static void say_process(void)
{
	char number[24];

	(void)snprintf(number, sizeof(number), "%ld", (long)getpid());
	say("LISTEN_PID", number);
}

/* Passes two listeners, then a datagram socket, then a file: descriptors 3 to 6. */
static void pass_all(void)
{
	int fds[4];

	fds[0] = open_listener();
	fds[1] = open_listener();
	fds[2] = socket(AF_INET, SOCK_DGRAM, 0);
	fds[3] = open("/dev/null", O_RDONLY);
	for (int i = 0; i < 4; i++) {
		int high = fcntl(fds[i], F_DUPFD, 20);

		MUST(high >= 20);
		fds[i] = high;
	}
	for (int i = 0; i < 4; i++)
		MUST(dup2(fds[i], 3 + i) == 3 + i);
	for (int i = 0; i < 4; i++)
		(void)close(fds[i]);
	say_process();
	say("LISTEN_FDS", "4");
	say("LISTEN_FDNAMES", "rpc:Page:datagrams:file");
}

static void run_child(void (*run)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		pass_all();
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static bool is_same(const struct spoke_address *one, const struct spoke_address *other)
{
	return one->len == other->len && memcmp(one->bytes, other->bytes, one->len) == 0;
}

static bool is_at(int fd, const struct spoke_address *address)
{
	struct spoke_address own;

	return net->local(NULL, fd, &own) == 0 && is_same(&own, address);
}

static void take_each_once(void)
{
	struct spoke_address rpc;
	struct spoke_address page;
	struct spoke_address again;
	int fd;

	MUST(net->passed(NULL, "rpc", &rpc) == 0 && is_at(3, &rpc));
	MUST(net->passed(NULL, "page", &page) == 0 && is_at(4, &page));
	MUST(net->passed(NULL, "3", &again) == 0 && is_same(&again, &rpc));
	MUST(net->listen(NULL, &page, 8, &fd) == 0 && fd == 4);
	MUST(fcntl(fd, F_GETFL) & O_NONBLOCK);
	MUST(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	MUST(net->passed(NULL, "page", &page) == -ENOENT);
	MUST(net->passed(NULL, "4", &page) == -ENOENT);
	MUST(net->listen(NULL, &page, 8, &fd) == -EADDRINUSE);
	MUST(net->listen(NULL, &rpc, 8, &fd) == 0 && fd == 3);
	net->close(NULL, fd);
	/* Its number is free for other descriptors. */
	MUST(net->passed(NULL, "rpc", &rpc) == -ENOENT);
	MUST(net->listen(NULL, &rpc, 8, &fd) == 0);
}

TEST(passed_socket_is_taken_once)
{
	run_child(take_each_once);
}

static void look_at_wrong_ones(void)
{
	struct spoke_address address;

	MUST(net->passed(NULL, "datagrams", &address) == -ENOTSOCK);
	MUST(net->passed(NULL, "file", &address) == -ENOTSOCK);
	MUST(net->passed(NULL, "5", &address) == -ENOTSOCK);
	/* A stream socket that does not listen. */
	MUST(dup2(socket(AF_INET, SOCK_STREAM, 0), 5) == 5);
	MUST(net->passed(NULL, "5", &address) == -ENOTSOCK);
	MUST(net->passed(NULL, "7", &address) == -ENOENT);
	MUST(net->passed(NULL, "2", &address) == -ENOENT);
	MUST(net->passed(NULL, "rp", &address) == -ENOENT);
	MUST(net->passed(NULL, "rpc:page", &address) == -ENOENT);
	MUST(net->passed(NULL, "", &address) == -ENOENT);
	MUST(net->passed(NULL, "99999999999999999999", &address) == -ENOENT);
	say("LISTEN_FDNAMES", "::");
	MUST(net->passed(NULL, "rpc", &address) == -ENOENT);
	MUST(net->passed(NULL, "3", &address) == 0);
	MUST(unsetenv("LISTEN_FDNAMES") == 0);
	MUST(net->passed(NULL, "3", &address) == 0);
	say("LISTEN_FDS", "1000000");
	MUST(net->passed(NULL, "3", &address) == 0);
	MUST(net->passed(NULL, "258", &address) == -ENOTSOCK);
	MUST(net->passed(NULL, "259", &address) == -ENOENT);
}

TEST(only_listening_stream_sockets_are_found)
{
	run_child(look_at_wrong_ones);
}

static void look_without_variables(void)
{
	static const char *const counts[] = { "", "0", "-1", "4x", "x" };
	struct spoke_address address;

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		say("LISTEN_FDS", counts[i]);
		MUST(net->passed(NULL, "rpc", &address) == -ENOENT);
	}
	say("LISTEN_FDS", "4");
	MUST(net->passed(NULL, "rpc", &address) == 0);
	say("LISTEN_PID", "1");
	MUST(net->passed(NULL, "rpc", &address) == -ENOENT);
	MUST(unsetenv("LISTEN_PID") == 0);
	MUST(net->passed(NULL, "rpc", &address) == -ENOENT);
}

TEST(sockets_of_other_processes_are_left_alone)
{
	run_child(look_without_variables);
}

static void take_two_of_one_name(void)
{
	struct spoke_address first;
	struct spoke_address second;
	int fd;

	say("LISTEN_FDNAMES", "rpc:rpc:rpc:rpc");
	MUST(net->passed(NULL, "rpc", &first) == 0);
	MUST(net->listen(NULL, &first, 8, &fd) == 0 && fd == 3);
	MUST(net->passed(NULL, "rpc", &second) == 0);
	MUST(net->listen(NULL, &second, 8, &fd) == 0 && fd == 4);
}

TEST(sockets_of_one_name_are_taken_in_order)
{
	run_child(take_two_of_one_name);
}
