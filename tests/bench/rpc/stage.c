/* SPDX-License-Identifier: Apache-2.0 */
/* Starts server and client and waits for them; see stage.h. Needs _GNU_SOURCE (memfd_create). */
#include "stage.h"

#include "foreign.h"
#include "meter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Descriptors of a child: the shared memory, and the pipe for the server's ready message. */
#define STAGE_FD 3
#define READY_FD 4

#define START_MS 5000 /* time limit for the server to listen */
#define GRACE_MS 5000 /* time limit for the client to end after its measurement */

struct stage {
	struct rpc_plan plan;
	struct rpc_report report;
	uint16_t port; /* written by the server */
	bool is_done;  /* the report is complete */
	alignas(64) struct host_calls server;
	alignas(64) struct host_calls client;
};

struct child {
	const char *what;
	pid_t pid;
	int watch; /* readable when the process has ended */
};

static struct stage *stage;

static struct stage *map_stage(int fd)
{
	void *memory = mmap(NULL, sizeof(struct stage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		host_die("no shared memory");
	return memory;
}

static int make_stage(void)
{
	int fd = memfd_create("stage", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, sizeof(struct stage)) != 0)
		host_die("no shared memory");
	stage = map_stage(fd);
	return fd;
}

/* Sets up the child's descriptors between fork and exec. */
static _Noreturn void become(const char *role, const struct rpc_peer *peer, int fd, int ready_fd)
{
	char *const argv[] = { (char[]){ "bench" }, strdup(role), strdup(peer->name), NULL };

	/* Use high numbers first, so that no copy overwrites the other. */
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 10);
	ready_fd = fcntl(ready_fd, F_DUPFD_CLOEXEC, 10);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && dup2(fd, STAGE_FD) == STAGE_FD &&
	    dup2(ready_fd, READY_FD) == READY_FD && argv[1] != NULL && argv[2] != NULL)
		(void)execv("/proc/self/exe", argv);
	_exit(127);
}

static struct child start(const char *role, const struct rpc_peer *peer, int fd, int ready_fd)
{
	struct child child = { .what = strcmp(role, STAGE_SERVER) == 0 ? "server" : "client" };

	child.pid = fork();
	if (child.pid < 0)
		host_die("no process");
	if (child.pid == 0)
		become(role, peer, fd, ready_fd);
	child.watch = (int)syscall(SYS_pidfd_open, child.pid, 0);
	if (child.watch < 0)
		host_die("cannot watch a process");
	return child;
}

/* Waits until one of the two is readable; returns its index, or -1 after `timeout_ms`. */
static int wait_either(int first, int second, uint64_t timeout_ms)
{
	struct pollfd fds[] = { { .fd = first, .events = POLLIN },
				{ .fd = second, .events = POLLIN } };
	int count;

	do {
		count = poll(fds, 2, (int)timeout_ms);
	} while (count < 0 && errno == EINTR);
	if (count <= 0)
		return -1;
	return fds[0].revents != 0 ? 0 : 1;
}

/* Kills a child that has not ended, and returns its status as from wait(). */
static int finish(struct child *child)
{
	int status = -1;

	(void)kill(child->pid, SIGKILL);
	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
	}
	(void)close(child->watch);
	return status;
}

static void complain(const struct rpc_peer *peer, const struct child *child, const char *how)
{
	(void)fprintf(stderr, "%s: the %s %s\n", peer->name, child->what, how);
}

/* Returns whether the server has started and reported that. */
static bool await_server(const struct rpc_peer *peer, const struct child *server, int ready_fd)
{
	int which = wait_either(ready_fd, server->watch, START_MS);
	char byte;

	if (which == 0 && syscall(SYS_read, ready_fd, &byte, 1) == 1)
		return true;
	complain(peer, server, which < 0 ? "does not listen" : "died before it listened");
	return false;
}

/* Returns whether the client has ended while the server was alive. */
static bool await_client(const struct rpc_peer *peer, const struct child *server,
			 struct child *client)
{
	uint64_t span_ms = (stage->plan.warm_ns + stage->plan.span_ns) / HOST_MS;
	int which = wait_either(client->watch, server->watch, span_ms + GRACE_MS);
	int status = finish(client);

	if (which < 0)
		complain(peer, client, "hung");
	else if (which == 1)
		complain(peer, server, "died");
	else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !stage->is_done)
		complain(peer, client, "died");
	else
		return true;
	return false;
}

static bool play_both(const struct rpc_peer *peer, int fd)
{
	struct child server;
	struct child client;
	int ready[2];
	bool good;

	if (pipe2(ready, O_CLOEXEC) != 0)
		host_die("no pipe");
	server = start(STAGE_SERVER, peer, fd, ready[1]);
	good = await_server(peer, &server, ready[0]);
	if (good) {
		stage->plan.port = stage->port;
		stage->plan.server_pid = (int)server.pid;
		client = start(STAGE_CLIENT, peer, fd, ready[1]);
		good = await_client(peer, &server, &client);
	}
	(void)finish(&server);
	(void)close(ready[0]);
	(void)close(ready[1]);
	return good;
}

enum stage_end stage_measure(const struct rpc_peer *peer, const struct rpc_plan *plan,
			     struct rpc_report *ret_report)
{
	static int fd = -1;
	struct foreign foreign;

	if (fd < 0)
		fd = make_stage();
	foreign = foreign_begin();
	memset(stage, 0, sizeof(*stage));
	stage->plan = *plan;
	if (!play_both(peer, fd))
		return STAGE_DIED;
	*ret_report = stage->report;
	ret_report->is_server_alone = peer->is_server_alone;
	if (peer->is_server_alone)
		ret_report->client_cpu_ns = 0;
	ret_report->foreign = foreign_end(&foreign);
	return stage->report.failed > 0 ? STAGE_FAILED : STAGE_OK;
}

void stage_ready(uint16_t port)
{
	stage->port = port;
	if (syscall(SYS_write, READY_FD, "", 1) != 1)
		host_die("no process waits for this server");
}

static bool has_seen(const struct host_calls *calls)
{
	return calls->reads > 0 && calls->writes > 0;
}

/* Bytes in shared memory need no system call. */
static bool plan_is_quiet(const struct rpc_plan *plan)
{
	return plan->is_shm;
}

/* Otherwise a peer bypasses the functions that count. A peer that always has input never waits. */
static void check_seen(const struct rpc_peer *peer, const struct meter *meter)
{
	if (!meter_is_over(meter))
		host_die("%s: the client ended too early", peer->name);
	if (plan_is_quiet(meter->plan))
		return;
	if (meter->plan->is_idle)
		return;
	if (!has_seen(&stage->report.client) ||
	    (!peer->is_server_alone && !has_seen(&stage->report.server)))
		host_die("%s: not all system calls were counted", peer->name);
}

/* Ignores SIGPIPE: a client exits while replies to it are being written. */
static void ignore_pipes(void)
{
	struct sigaction action = { .sa_handler = SIG_IGN };

	(void)sigaction(SIGPIPE, &action, NULL);
}

int stage_play(const char *role, const struct rpc_peer *peer)
{
	static struct meter meter;
	static struct rpc_plan plan;

	stage = map_stage(STAGE_FD);
	plan = stage->plan;
	plan.spin_ns = peer->spin_ns;
	host_congestion = plan.congestion[0] == '\0' ? NULL : plan.congestion;
	ignore_pipes();
	if (strcmp(role, STAGE_SERVER) == 0) {
		host_pin(plan.server_cpu);
		host_calls = &stage->server;
		peer->serve(&plan);
		host_die("%s: the server ended", peer->name);
	}
	host_pin(plan.client_cpu);
	host_calls = &stage->client;
	meter_open(&meter, &plan, &stage->server, &stage->report);
	peer->drive(&plan, &meter);
	check_seen(peer, &meter);
	stage->is_done = true;
	return 0;
}
