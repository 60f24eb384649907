/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the Node peers, talks with them and ends them; see node.h. */
#define _GNU_SOURCE
#include "tests/interop/node.h"
#include "tests/integration/zooserver.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define INSTALL "sh " TESTS_INTEROP "/node/install.sh"

int node_absent(void)
{
	int status;

	if (zooserver_absent()) {
		(void)fprintf(stderr, "skipped: no ZooKeeper server; apt-get install zookeeper\n");
		return NVIM_SKIPPED;
	}
	status = system(INSTALL); /* NOLINT(cert-env33-c,concurrency-mt-unsafe): a fixed command */
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Runs in the new process: standard error stays the test's. */
static void become(const char *program, const char *const *arguments, const int *in, const int *out,
		   pid_t parent)
{
	char path[512];
	char name[] = "node";
	char *list[NODE_ARGUMENTS_MAX + 3] = { name, path };
	size_t count = 2;

	(void)snprintf(path, sizeof(path), TESTS_INTEROP "/node/%s", program);
	for (; *arguments && count < NODE_ARGUMENTS_MAX + 2; arguments++)
		list[count++] = (char *)(uintptr_t)*arguments; /* exec*() does not change them */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent || dup2(in[0], 0) < 0 ||
	    dup2(out[1], 1) < 0 || setenv("NODE_PATH", TESTS_NODE_MODULES, 1))
		_exit(126);
	(void)execvp("node", list);
	_exit(127);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

void node_start(struct node *node, const char *program, const char *const *arguments)
{
	pid_t parent = getpid();
	int in[2];
	int out[2];

	assert_int_equal(node->pid, 0);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	node->pid = fork();
	if (node->pid == 0)
		become(program, arguments, in, out, parent);
	assert_true(node->pid > 0);
	(void)close(in[0]);
	(void)close(out[1]);
	assert_int_equal(fcntl(out[0], F_SETFL, O_NONBLOCK), 0);
	node->to = in[1];
	node->from = out[0];
	node->len = 0;
	node->begun_ns = now_ns();
	node->start_ns = 0;
}

/* Takes the first line that was read. */
static bool take_line(struct node *node)
{
	char *end = memchr(node->text, '\n', node->len);
	size_t len;

	if (end == NULL)
		return false;
	len = (size_t)(end - node->text);
	memcpy(node->line, node->text, len);
	node->line[len] = '\0';
	node->len -= len + 1;
	memmove(node->text, end + 1, node->len);
	return true;
}

static bool has_line(void *arg)
{
	struct node *node = arg;
	ssize_t count;

	if (take_line(node))
		return true;
	assert_true(node->len < sizeof(node->text));
	count = read(node->from, node->text + node->len, sizeof(node->text) - node->len);
	if (count == 0)
		fail_msg("a Node peer has exited; its last line: %s", node->line);
	if (count > 0)
		node->len += (size_t)count;
	return take_line(node);
}

const char *node_line(struct node *node, struct spoke_engine *engine)
{
	nvim_until(engine, has_line, node);
	if (node->start_ns == 0)
		node->start_ns = now_ns() - node->begun_ns;
	return node->line;
}

uint64_t node_interval(const struct node *node)
{
	uint64_t interval_ns = node->start_ns / 5;

	return interval_ns > 100 * MS ? interval_ns : 100 * MS;
}

const char *node_ask(struct node *node, struct spoke_engine *engine, const char *format, ...)
{
	char command[512];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(command, sizeof(command) - 1, format, args);
	va_end(args);
	assert_in_range(len, 1, sizeof(command) - 2);
	command[len++] = '\n';
	assert_int_equal(write(node->to, command, (size_t)len), len);
	return node_line(node, engine);
}

void node_kill(struct node *node)
{
	if (node->pid == 0)
		return;
	assert_int_equal(kill(node->pid, SIGKILL), 0);
	assert_int_equal(waitpid(node->pid, NULL, 0), node->pid);
	(void)close(node->to);
	(void)close(node->from);
	node->pid = 0;
}
