/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, freezes, kills and restarts Redis servers for tests. */
#define _GNU_SOURCE
#include "tests/integration/redisserver.h"
#include "tests/support/test.h"

#include "tests/integration/redisclient.h"
#include "tests/support/folder.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 60000
#define PAUSE_MS 5
#define PROMOTION_MS 50
#define PORT_FIRST 26000u
#define PORTS 6000u

/* One program with several names: run under another name, this checker of files is the server. */
#define PROGRAM "/usr/bin/redis-check-rdb"

int redisserver_absent(void)
{
	return access(PROGRAM, X_OK) == 0 ? 0 : TEST_SKIPPED;
}

static bool is_free(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int yes = 1;
	bool is;

	assert_true(fd >= 0);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	is = bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0;
	(void)close(fd);
	return is;
}

uint16_t redisserver_free_port(void)
{
	static unsigned given;

	for (unsigned i = 0; i < PORTS; i++) {
		unsigned at = ((unsigned)getpid() * 8 + given++) % PORTS;

		if (is_free((uint16_t)(PORT_FIRST + at)))
			return (uint16_t)(PORT_FIRST + at);
	}
	fail_msg("no port is free");
	return 0;
}

static void write_settings(const struct redisserver *server)
{
	char path[128];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/redis.conf", server->folder);
	file = fopen(path, "we");
	assert_non_null(file);
	(void)fprintf(file,
		      "port %u\nbind 127.0.0.1\nunixsocket %s\nunixsocketperm 700\ndir %s\n"
		      "logfile %s/log\ndaemonize no\nprotected-mode no\n%s",
		      (unsigned)server->port, server->path, server->folder, server->folder,
		      server->settings);
	assert_int_equal(fclose(file), 0);
}

void redisserver_wait(const struct redisserver *server)
{
	for (unsigned i = 0; i < PATIENCE_MS / PAUSE_MS; i++) {
		if (redisclient_answers(server->path))
			return;
		(void)poll(NULL, 0, PAUSE_MS);
	}
	fail_msg("the Redis server does not answer; its log: %s/log", server->folder);
}

/* Kills the server when the test program ends, even by a crash. */
static void become_server(const struct redisserver *server, pid_t parent)
{
	const char *name = server->is_sentinel ? "redis-sentinel" : "redis-server";
	char settings[128];
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)snprintf(settings, sizeof(settings), "%s/redis.conf", server->folder);
	if (fd < 0 || dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
		_exit(126);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(126);
	(void)execl(PROGRAM, name, settings, (char *)NULL);
	_exit(127);
}

void redisserver_revive(struct redisserver *server)
{
	pid_t parent = getpid();

	assert_int_equal(server->pid, 0);
	write_settings(server);
	server->is_frozen = false;
	server->pid = fork();
	assert_true(server->pid >= 0);
	if (server->pid == 0)
		become_server(server, parent);
}

void redisserver_rouse(struct redisserver *server)
{
	if (server->is_frozen)
		redisserver_thaw(server);
	if (server->pid == 0)
		redisserver_revive(server);
	redisserver_wait(server);
}

static void make_folder(struct redisserver *server)
{
	memset(server, 0, sizeof(*server));
	folder_make(server->folder);
	(void)snprintf(server->path, sizeof(server->path), "%s/socket", server->folder);
}

void redisserver_make(struct redisserver *server, uint16_t port, const char *settings)
{
	make_folder(server);
	server->port = port;
	(void)snprintf(server->settings, sizeof(server->settings),
		       "save \"\"\nappendonly no\nenable-debug-command local\n%s", settings);
	redisserver_revive(server);
	redisserver_wait(server);
}

/* Has the sentinel look at its servers more often, and go on after a pause of the machine. */
static void hurry(const struct redisserver *server)
{
	struct redisclient client;

	redisclient_open(&client, server->path);
	assert_string_equal(redisclient_ask(&client, REDIS_WORDS("SENTINEL", "DEBUG", "info-period",
								 "100", "ping-period", "100",
								 "min-link-reconnect-period", "100",
								 "tilt-trigger", "60000")),
			    "OK");
	redisclient_close(&client);
}

void redisserver_make_sentinel(struct redisserver *server, uint16_t port, uint16_t primary_port)
{
	make_folder(server);
	server->port = port;
	server->is_sentinel = true;
	(void)snprintf(server->settings, sizeof(server->settings),
		       "sentinel monitor main 127.0.0.1 %u 1\n"
		       "sentinel down-after-milliseconds main 60000\n"
		       "sentinel failover-timeout main 5000\n",
		       (unsigned)primary_port);
	redisserver_revive(server);
	redisserver_wait(server);
	hurry(server);
}

/* The sentinel may refuse at first, or give up. */
void redisserver_promote(const struct redisserver *sentinel, const struct redisserver *replica)
{
	for (unsigned i = 0; i < PATIENCE_MS / PROMOTION_MS; i++) {
		(void)stranger_tries(sentinel->path, REDIS_WORDS("SENTINEL", "FAILOVER", "main"));
		(void)poll(NULL, 0, PROMOTION_MS);
		if (strncmp(stranger_tries(replica->path, REDIS_WORDS("ROLE")), "[master", 7) == 0)
			return;
	}
	fail_msg("the replica is not promoted; the sentinel's log: %s/log", sentinel->folder);
}

void redisserver_freeze(struct redisserver *server)
{
	int status = 0;

	assert_true(server->pid > 0);
	assert_int_equal(kill(server->pid, SIGSTOP), 0);
	assert_int_equal(waitpid(server->pid, &status, WUNTRACED), server->pid);
	assert_true(WIFSTOPPED(status));
	server->is_frozen = true;
}

void redisserver_thaw(struct redisserver *server)
{
	int status = 0;

	assert_true(server->pid > 0);
	assert_int_equal(kill(server->pid, SIGCONT), 0);
	assert_int_equal(waitpid(server->pid, &status, WCONTINUED), server->pid);
	assert_true(WIFCONTINUED(status));
	server->is_frozen = false;
}

void redisserver_kill(struct redisserver *server)
{
	int status;

	assert_true(server->pid > 0);
	assert_int_equal(kill(server->pid, SIGKILL), 0);
	assert_int_equal(waitpid(server->pid, &status, 0), server->pid);
	server->pid = 0;
	server->is_frozen = false;
}

void redisserver_add(struct redisserver *server, const char *settings)
{
	size_t len = strlen(server->settings);

	assert_true(len + strlen(settings) < sizeof(server->settings));
	(void)snprintf(server->settings + len, sizeof(server->settings) - len, "%s", settings);
}

void redisserver_unmake(struct redisserver *server)
{
	if (server->pid > 0)
		redisserver_kill(server);
	if (server->folder[0])
		folder_remove(server->folder);
	server->folder[0] = '\0';
}
