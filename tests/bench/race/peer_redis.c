/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis, asked for ECHO by the raw client: an anchor for what a server needs. A bulk string of RESP
 * is the same in a request and in its reply, so it can stand for the payload of the raw echo's
 * frames.
 */
#include "meter.h"
#include "peer.h"
#include "peer_raw_epoll.h"
#include "stage.h"

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

#define PROGRAM "redis-server"
#define ECHO_HEAD "*2\r\n$4\r\nECHO\r\n"
#define TRY_EVERY_NS 5000000

/* A port that was free a moment ago: redis cannot choose one. */
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

/* In a process of its own, which ends with the server at the latest: says when that listens. */
static _Noreturn void watch(const struct rpc_plan *plan, uint16_t port)
{
	static const struct timespec pause = { .tv_nsec = TRY_EVERY_NS };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!can_connect(plan, port))
		(void)nanosleep(&pause, NULL);
	stage_ready(plan->is_unix ? 0 : port);
	_exit(0);
}

static void serve(const struct rpc_plan *plan)
{
	uint16_t port = plan->is_unix ? 0 : find_port();
	char port_text[8];
	pid_t watcher;

	(void)snprintf(port_text, sizeof(port_text), "%u", port);
	watcher = fork();
	if (watcher < 0)
		host_die("redis: no process");
	if (watcher == 0)
		watch(plan, port);
	/* The server itself is this process, whose CPU time is measured. Nothing is stored. */
	if (plan->is_unix)
		(void)execlp(PROGRAM, PROGRAM, "--port", "0", "--unixsocket", plan->address,
			     "--save", "", "--appendonly", "no", "--logfile", "/dev/null", NULL);
	else
		(void)execlp(PROGRAM, PROGRAM, "--port", port_text, "--bind", plan->address,
			     "--save", "", "--appendonly", "no", "--logfile", "/dev/null", NULL);
	host_die("redis: " PROGRAM " cannot be run");
}

static void drive(const struct rpc_plan *plan, struct meter *meter)
{
	char digits[24];
	size_t head_len = strlen(ECHO_HEAD);
	struct rpc_plan own = *plan;
	uint8_t *request;
	int digits_len = snprintf(digits, sizeof(digits), "$%u\r\n", plan->payload);

	own.payload = (uint32_t)digits_len + plan->payload + 2;
	own.request_len = (uint32_t)head_len + own.payload;
	own.reply_len = own.payload;
	request = host_memory(1, own.request_len);
	memcpy(request, ECHO_HEAD, head_len);
	memcpy(request + head_len, digits, (size_t)digits_len);
	memset(request + head_len + digits_len, 'x', plan->payload);
	memcpy(request + own.request_len - 2, "\r\n", 2);
	raw_epoll_drive(&own, meter, request);
}

/* "Redis server v=7.0.15 sha=..." */
static const char *version(void)
{
	static char text[128];
	FILE *said = popen(PROGRAM " --version 2>&1", "r");
	char *from = NULL;

	if (said != NULL) {
		if (fgets(text, sizeof(text), said) != NULL)
			from = strstr(text, "v=");
		(void)pclose(said);
	}
	if (from == NULL)
		return NULL;
	from[strcspn(from, " ")] = '\0';
	return from + 2;
}

const struct rpc_peer rpc_redis = {
	.name = "redis",
	.serve = serve,
	.drive = drive,
	.version = version,
	.note = "ECHO by a client of the benchmark's own; its CPU time is the server's alone, and"
		" its ratio that to spoke's server",
	.is_server_alone = true,
};
