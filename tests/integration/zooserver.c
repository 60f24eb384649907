/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, kills and restarts a ZooKeeper server for tests. */
#define _GNU_SOURCE
#include "tests/integration/zooserver.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

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
#define PAUSE_MS 20
#define ANSWER_MS 1000
#define PORT_FIRST 20000u
#define PORTS 5000u
#define JAVA "/usr/bin/java"
#define JARS "/usr/share/java/"
#define SETTINGS                                                                                   \
	"tickTime=200\n"                                                                           \
	"minSessionTimeout=400\n"                                                                  \
	"maxSessionTimeout=60000\n"                                                                \
	"maxClientCnxns=0\n"                                                                       \
	"admin.enableServer=false\n"                                                               \
	"clientPortAddress=127.0.0.1\n"

static struct {
	char folder[64];
	uint16_t port;
	pid_t pid; /* 0: not running */
} server;

int zooserver_absent(void)
{
	return access(JAVA, X_OK) == 0 && access(JARS "zookeeper.jar", R_OK) == 0 ? 0
										  : TEST_SKIPPED;
}

uint16_t zooserver_port(void)
{
	return server.port;
}

/* Returns a port that is free now. The system gives no port of this range to connections of other
 * tests, so it stays free while the server is down. */
static uint16_t free_port(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	uint16_t port = (uint16_t)(PORT_FIRST + (unsigned)getpid() % PORTS);
	int fd = -1;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (unsigned i = 0; i < PORTS; i++, port++) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_true(fd >= 0);
		at.sin_port = htons(port);
		if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0)
			break;
		(void)close(fd);
		fd = -1;
	}
	assert_true(fd >= 0);
	(void)close(fd);
	return port;
}

static void write_settings(void)
{
	char path[128];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/zoo.cfg", server.folder);
	file = fopen(path, "we");
	assert_non_null(file);
	(void)fprintf(file, SETTINGS "dataDir=%s/data\nclientPort=%u\n", server.folder,
		      (unsigned)server.port);
	assert_int_equal(fclose(file), 0);
}

/* Returns whether the server answers, which begins a while after it listens. */
static bool serves(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(server.port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pollfd answer = { .fd = fd, .events = POLLIN };
	char text[64] = "";

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 &&
	    send(fd, "srvr", 4, MSG_NOSIGNAL) == 4 && poll(&answer, 1, ANSWER_MS) == 1)
		(void)!read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	return strncmp(text, "Zookeeper version", 17) == 0;
}

void zooserver_wait(void)
{
	for (unsigned i = 0; i < PATIENCE_MS / PAUSE_MS; i++) {
		if (serves())
			return;
		(void)poll(NULL, 0, PAUSE_MS);
	}
	fail_msg("the ZooKeeper server does not answer; its log: %s/log", server.folder);
}

/* Kills the server when the test program ends, even by a crash. */
static void become_server(pid_t parent)
{
	char settings[128];
	char log[128];
	int fd;

	(void)snprintf(settings, sizeof(settings), "%s/zoo.cfg", server.folder);
	(void)snprintf(log, sizeof(log), "%s/log", server.folder);
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(126);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(126);
	(void)execl(JAVA, JAVA, "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		    "-Xshare:auto", "-Dzookeeper.forceSync=no", "-cp",
		    JARS "zookeeper.jar:" JARS "zookeeper-jute.jar:" JARS "slf4j-api.jar:" JARS
			 "slf4j-nop.jar:" JARS "snappy-java.jar:" JARS "netty-all.jar",
		    "org.apache.zookeeper.server.quorum.QuorumPeerMain", settings, (char *)NULL);
	_exit(127);
}

void zooserver_revive(void)
{
	pid_t parent = getpid();

	assert_int_equal(server.pid, 0);
	server.pid = fork();
	assert_true(server.pid >= 0);
	if (server.pid == 0)
		become_server(parent);
	zooserver_wait();
}

void zooserver_rouse(void)
{
	if (server.pid == 0)
		zooserver_revive();
}

void zooserver_make(void)
{
	folder_make(server.folder);
	server.port = free_port();
	write_settings();
	zooserver_revive();
}

void zooserver_freeze(void)
{
	int status = 0;

	assert_true(server.pid > 0);
	assert_int_equal(kill(server.pid, SIGSTOP), 0);
	/* Its threads stop one after the other. */
	assert_int_equal(waitpid(server.pid, &status, WUNTRACED), server.pid);
	assert_true(WIFSTOPPED(status));
}

void zooserver_kill(void)
{
	int status;

	assert_true(server.pid > 0);
	assert_int_equal(kill(server.pid, SIGKILL), 0);
	assert_int_equal(waitpid(server.pid, &status, 0), server.pid);
	server.pid = 0;
}

void zooserver_forget(void)
{
	char data[sizeof(server.folder) + 16];

	assert_int_equal(server.pid, 0);
	(void)snprintf(data, sizeof(data), "%s/data", server.folder);
	folder_remove(data);
}

void zooserver_unmake(void)
{
	if (server.pid > 0)
		zooserver_kill();
	folder_remove(server.folder);
}
