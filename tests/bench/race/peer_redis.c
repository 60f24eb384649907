/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis with the command ECHO, called by the raw client: a reference for the cost of a server. A
 * bulk string of RESP is identical in a request and in its reply, so it can replace the payload of
 * the raw echo's frames.
 */
#include "tests/bench/rpc/meter.h"
#include "tests/bench/rpc/peer.h"
#include "tests/bench/rpc/stage.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* One program with several names: it is a server unless it is called by its name in redis-tools. */
#define PROGRAM "redis-server"
#define TOOL "redis-check-rdb"
#define ECHO_HEAD "*2\r\n$4\r\nECHO\r\n"
#define TRY_EVERY_NS 5000000

/* Returns a port that was free a moment ago, because redis cannot choose one. */
static uint16_t find_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) != 0)
		host_die("redis: no port");
	(void)close(fd);
	return ntohs(address.sin_port);
}

static bool can_connect(const struct rpc_plan *plan, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(plan->is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int result;

	if (plan->is_unix) {
		memcpy(un.sun_path, plan->address, strlen(plan->address) + 1);
		result = connect(fd, (struct sockaddr *)&un, sizeof(un));
	} else {
		in.sin_addr.s_addr = inet_addr(plan->address);
		result = connect(fd, (struct sockaddr *)&in, sizeof(in));
	}
	(void)close(fd);
	return result == 0;
}

/* Runs in a process of its own, which ends with the server at the latest: reports when the server
 * listens. */
static _Noreturn void watch(const struct rpc_plan *plan, uint16_t port)
{
	static const struct timespec pause = { .tv_nsec = TRY_EVERY_NS };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!can_connect(plan, port))
		(void)nanosleep(&pause, NULL);
	stage_ready(plan->is_unix ? 0 : port);
	_exit(0);
}

/* Executes the server in this process, whose CPU time is measured. Nothing is stored. */
static void become(const char *program, const struct rpc_plan *plan, uint16_t port)
{
	char text[8];

	(void)snprintf(text, sizeof(text), "%u", port);
	(void)execlp(program, PROGRAM, "--port", text, plan->is_unix ? "--unixsocket" : "--bind",
		     plan->address, "--save", "", "--appendonly", "no", "--logfile", "/dev/null",
		     NULL);
}

static void serve(const struct rpc_plan *plan)
{
	uint16_t port = plan->is_unix ? 0 : find_port();
	pid_t watcher = fork();

	if (watcher < 0)
		host_die("redis: no process");
	if (watcher == 0)
		watch(plan, port);
	become(PROGRAM, plan, port);
	become(TOOL, plan, port);
	host_die("redis: cannot execute " PROGRAM);
}

static void drive(const struct rpc_plan *plan, struct meter *meter)
{
	char head[64];
	size_t head_len = (size_t)snprintf(head, sizeof(head), ECHO_HEAD "$%u\r\n", plan->payload);
	size_t all = head_len + plan->payload + strlen("\r\n");
	struct rpc_plan own = *plan;
	char *request = host_memory(1, all + 1);

	memset(request, 'x', all);
	memcpy(request, head, head_len);
	(void)snprintf(request + head_len + plan->payload, strlen("\r\n") + 1, "\r\n");
	own.request_len = (uint32_t)all;
	own.payload = (uint32_t)(all - strlen(ECHO_HEAD));
	own.reply_len = own.payload;
	raw_epoll_drive(&own, meter, (const uint8_t *)request);
}

/* "Redis server v=7.0.15 sha=..." or "redis-check-rdb 7.0.15". */
static const char *version(void)
{
	static char text[128];
	static const char command[] = "{ " PROGRAM " --version || " TOOL " --version; } 2>&1";
	FILE *said = popen(command, "re"); /* NOLINT(cert-env33-c): nothing in it is from outside */
	char *from = NULL;

	while (said != NULL && from == NULL && fgets(text, sizeof(text), said) != NULL) {
		from = strstr(text, " v=");
		if (from != NULL)
			from += strlen(" v=");
		else if (strncmp(text, TOOL " ", strlen(TOOL " ")) == 0)
			from = text + strlen(TOOL " ");
	}
	if (said != NULL)
		(void)pclose(said);
	if (from != NULL)
		from[strcspn(from, " \n")] = '\0';
	return from;
}

const struct rpc_peer rpc_redis = {
	.name = "redis",
	.serve = serve,
	.drive = drive,
	.version = version,
	.note = "ECHO with the benchmark's own client; CPU time is that of the server, compared "
		"with"
		" spoke's server",
	.is_server_alone = true,
};
