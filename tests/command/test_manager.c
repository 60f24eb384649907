/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "spoke serve" under a service manager, which this test plays: it passes a listening socket,
 * receives the messages, and restarts the program.
 */
#define _GNU_SOURCE

#include "tests/support/test.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 30000
#define HIGH 100 /* descriptors of the test, out of the way of those that are passed */

static char folder[64];
static char config[96];
static char notify_path[96];
static int manager = -1;  /* receives the messages */
static int listener = -1; /* passed to the program */
static pid_t child;

static int move_up(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH);

	(void)close(fd);
	return high;
}

static void write_config(const char *text)
{
	FILE *file = fopen(config, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/spoke-test-manager-XXXXXX");
	if (mkdtemp(folder) == NULL)
		return -1;
	(void)snprintf(config, sizeof(config), "%s/spoke.conf", folder);
	(void)snprintf(notify_path, sizeof(notify_path), "%s/notify", folder);
	memcpy(to.sun_path, notify_path, strlen(notify_path) + 1);
	manager = move_up(socket(AF_UNIX, SOCK_DGRAM, 0));
	listener = move_up(socket(AF_INET, SOCK_STREAM, 0));
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(manager, (struct sockaddr *)&to, sizeof(to)) ||
	    bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 16))
		return -1;
	write_config("[provider]\nlisten = fd://rpc\n");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (child > 0) {
		(void)kill(child, SIGKILL);
		(void)waitpid(child, NULL, 0);
	}
	child = 0;
	(void)close(manager);
	(void)close(listener);
	(void)unlink(config);
	(void)unlink(notify_path);
	return rmdir(folder);
}

FIXTURE(set_up, tear_down);

static void be_program(const char *watchdog_us)
{
	char number[24];

	(void)snprintf(number, sizeof(number), "%ld", (long)getpid());
	if (dup2(listener, 3) != 3 || setenv("LISTEN_FDS", "1", 1) ||
	    setenv("LISTEN_PID", number, 1) || setenv("LISTEN_FDNAMES", "rpc", 1) ||
	    setenv("NOTIFY_SOCKET", notify_path, 1) || setenv("WATCHDOG_PID", number, 1) ||
	    setenv("WATCHDOG_USEC", watchdog_us, 1) || !freopen("/dev/null", "w", stdout))
		_exit(126);
	(void)execl(TESTS_SPOKE, "spoke", "serve", "--quiet", "--config", config, (char *)NULL);
	_exit(127);
}

static void start(const char *watchdog_us)
{
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		be_program(watchdog_us);
}

static void assert_ends_well(void)
{
	int status;

	assert_int_equal(kill(child, SIGTERM), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	child = 0;
	assert_int_equal(status, 0);
}

/* Asserts that the next message, apart from signs of life, matches. */
static void assert_told(const char *pattern)
{
	char text[600];
	ssize_t len;

	do {
		struct pollfd one = { .fd = manager, .events = POLLIN };

		assert_int_equal(poll(&one, 1, PATIENCE_MS), 1);
		len = recv(manager, text, sizeof(text) - 1, 0);
		assert_true(len > 0);
		text[len] = '\0';
	} while (strcmp(text, "WATCHDOG=1") == 0 && strcmp(pattern, text) != 0);
	if (fnmatch(pattern, text, 0) != 0)
		fail_msg("told \"%s\" in place of \"%s\"", text, pattern);
}

static int dial(void)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, len), 0);
	return fd;
}

/* Sends a request of MessagePack-RPC: [0, 1, "echo", [7]]. */
static void ask(int fd)
{
	static const char request[] = "\x94\x00\x01\xa4"
				      "echo\x91\x07";

	assert_int_equal(send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL), sizeof(request) - 1);
}

/* Asserts that the reply comes: [1, 1, nil, 7]. */
static void assert_answered(int fd)
{
	char bytes[5];
	size_t got = 0;

	while (got < sizeof(bytes)) {
		struct pollfd one = { .fd = fd, .events = POLLIN };
		ssize_t len;

		assert_int_equal(poll(&one, 1, PATIENCE_MS), 1);
		len = recv(fd, bytes + got, sizeof(bytes) - got, 0);
		assert_true(len > 0);
		got += (size_t)len;
	}
	assert_memory_equal(bytes, "\x94\x01\x01\xc0\x07", sizeof(bytes));
	(void)close(fd);
}

TEST(program_tells_its_life)
{
	start("0");
	assert_told("READY=1\nSTATUS=demo.EchoService listens at 127.0.0.1:*");
	assert_int_equal(kill(child, SIGHUP), 0);
	assert_told("RELOADING=1\nMONOTONIC_USEC=[1-9]*\nSTATUS=*");
	assert_told("READY=1\nSTATUS=demo.EchoService listens at 127.0.0.1:*[0-9]");
	write_config("nonsense\n");
	assert_int_equal(kill(child, SIGHUP), 0);
	assert_told("RELOADING=1\n*");
	assert_told("READY=1\nSTATUS=*errors in the settings file*");
	assert_ends_well();
	assert_told("STOPPING=1\nSTATUS=*");
}

TEST(watchdog_is_fed_while_program_turns)
{
	start("200000");
	assert_told("READY=1*");
	for (int i = 0; i < 5; i++)
		assert_told("WATCHDOG=1");
	assert_ends_well();
}

TEST(connections_wait_while_program_restarts)
{
	int early;
	int between;

	early = dial();
	ask(early);
	start("0");
	assert_answered(early);
	assert_told("READY=1*");
	assert_ends_well();
	between = dial();
	ask(between);
	start("0");
	assert_answered(between);
	assert_ends_well();
}
