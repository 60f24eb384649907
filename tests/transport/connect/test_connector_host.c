/* SPDX-License-Identifier: Apache-2.0 */
/* The connector on real sockets, with names resolved by a real thread pool. */
#define _GNU_SOURCE

#include "core/virtual/faults.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/connect/connector.h"
#include "transport/wire/catalog.h"

#include <spoke/engine.h>
#include <spoke/host.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct hostrig {
	struct spokei_faults faulty;
	struct spoke_net net;
	struct spoke_engine *engine;
	struct spokei_link link;
	struct spokei_task finalise;
	struct spokei_connector_options options;
	struct spokei_connector *connector;
	enum spokei_connector_state told;
	int error;
	unsigned told_count;
	int listener;
	struct spoke_address at;
};

static void note_change(void *arg, struct spokei_connector *connector, int error)
{
	struct hostrig *rig = arg;

	rig->told = spokei_connector_state(connector);
	rig->error = error;
	rig->told_count++;
}

static const struct spokei_connector_up up = { .changed = note_change };

/* Listens at `at` and prepares options that the test completes. */
static bool open_rig(struct hostrig *rig, const char *at, int backlog)
{
	const struct spoke_env *env = &rig->faulty.env;
	struct spoke_engine_options options = { .env = env };
	struct spokei_link_limits limits;

	*rig = (struct hostrig){ .listener = -1 };
	spokei_faults_init(&rig->faulty, spoke_host_env());
	rig->net = *rig->faulty.env.net;
	rig->faulty.env.net = &rig->net;
	spokei_link_limits_init(&limits);
	rig->options.wire = spokei_catalog_wire("dubbo");
	rig->options.backoff.first_ns = MS;
	rig->options.backoff.cap_ns = MS;
	return spoke_engine_new(&options, &rig->engine) == SPOKE_OK &&
	       spokei_link_init(&rig->link, rig->engine, &limits) == SPOKE_OK &&
	       env->net->parse(env->ctx, at, &rig->at) == 0 &&
	       env->net->listen(env->ctx, &rig->at, backlog, &rig->listener) == 0 &&
	       env->net->local(env->ctx, rig->listener, &rig->at) == 0;
}

static uint16_t port_of(const struct hostrig *rig)
{
	char text[64];

	rig->faulty.env.net->print(rig->faulty.env.ctx, &rig->at, text, sizeof(text));
	return (uint16_t)strtoul(strrchr(text, ':') + 1, NULL, 10);
}

static int start(struct hostrig *rig)
{
	spokei_engine_refresh(rig->engine);
	return spokei_connector_new(&rig->link, &rig->options, &up, rig, &rig->connector);
}

static bool turn_until(struct hostrig *rig, enum spokei_connector_state state)
{
	while (rig->told_count == 0 || rig->told != state)
		if (spoke_engine_turn(rig->engine, true) != SPOKE_OK)
			return false;
	return true;
}

/* Frees the rig. Returns whether nothing leaked. */
static bool close_rig(struct hostrig *rig)
{
	const struct spoke_env *env = &rig->faulty.env;

	spokei_engine_refresh(rig->engine);
	spokei_connector_free(rig->connector);
	do
		if (spoke_engine_turn(rig->engine, false) != SPOKE_OK)
			return false;
	while (rig->link.alive > 0);
	spokei_link_fini(&rig->link);
	spoke_engine_free(rig->engine);
	env->net->close(env->ctx, rig->listener);
	return rig->faulty.fds == 0 && rig->faulty.blocks == 0;
}

TEST(connector_connects_over_loopback)
{
	struct hostrig rig;

	assert_true(open_rig(&rig, "127.0.0.1:0", 8));
	rig.options.host = "127.0.0.1";
	rig.options.port = port_of(&rig);
	assert_int_equal(start(&rig), SPOKE_OK);
	assert_true(turn_until(&rig, SPOKEI_CONNECTOR_OPEN));
	assert_true(close_rig(&rig));
}

TEST(a_name_is_resolved_by_the_pool)
{
	struct hostrig rig;

	assert_true(open_rig(&rig, "127.0.0.1:0", 8));
	rig.options.host = "localhost"; /* perhaps also ::1, which refuses */
	rig.options.port = port_of(&rig);
	assert_int_equal(start(&rig), SPOKE_OK);
	assert_int_equal(spokei_connector_state(rig.connector), SPOKEI_CONNECTOR_RESOLVING);
	assert_true(turn_until(&rig, SPOKEI_CONNECTOR_OPEN));
	assert_true(close_rig(&rig));
}

TEST(refused_connector_retries_until_address_listens)
{
	struct hostrig rig;
	const struct spoke_env *env;

	assert_true(open_rig(&rig, "127.0.0.1:0", 8));
	env = &rig.faulty.env;
	rig.options.host = "127.0.0.1";
	rig.options.port = port_of(&rig);
	env->net->close(env->ctx, rig.listener);
	assert_int_equal(start(&rig), SPOKE_OK);
	for (unsigned i = 0; i < 5; i++) {
		rig.told_count = 0;
		assert_true(turn_until(&rig, SPOKEI_CONNECTOR_WAITING));
		assert_int_equal(rig.error, SPOKE_ECONNECT);
	}
	assert_int_equal(env->net->listen(env->ctx, &rig.at, 8, &rig.listener), 0);
	assert_true(turn_until(&rig, SPOKEI_CONNECTOR_OPEN));
	assert_true(close_rig(&rig));
}

/* The backlog holds one connection that is never accepted, and has no room for a second. */
TEST(a_full_backlog_of_a_unix_socket_is_tried_again)
{
	char folder[] = "/tmp/spoke-XXXXXX";
	char at[64];
	struct hostrig rig;
	const struct spoke_env *env;
	struct spoke_address peer;
	int first;
	int fd;

	assert_non_null(mkdtemp(folder));
	(void)snprintf(at, sizeof(at), "unix:%s/s", folder);
	assert_true(open_rig(&rig, at, 0));
	env = &rig.faulty.env;
	assert_int_equal(env->net->connect(env->ctx, &rig.at, &first), 0);
	rig.options.path = at + strlen("unix:");
	assert_int_equal(start(&rig), SPOKE_OK);
	assert_int_equal(spokei_connector_state(rig.connector), SPOKEI_CONNECTOR_WAITING);
	assert_true(turn_until(&rig, SPOKEI_CONNECTOR_WAITING));
	assert_int_equal(rig.error, SPOKE_ECONNECT);
	assert_int_equal(env->net->accept(env->ctx, rig.listener, &fd, &peer), 0);
	assert_true(turn_until(&rig, SPOKEI_CONNECTOR_OPEN));
	env->net->close(env->ctx, first);
	env->net->close(env->ctx, fd);
	assert_true(close_rig(&rig));
	assert_int_equal(rmdir(folder), 0);
}

static void *gate;
static void *begun;

/* Resolves names like a name server that does not respond for a while. */
static int resolve_slowly(void *ctx, const char *host, uint16_t port, struct spoke_address *ret,
			  int max)
{
	(void)ctx;
	(void)host;
	(void)port;
	(void)ret;
	(void)max;
	spoke_host_env()->threads->unpark(begun);
	return spoke_host_env()->threads->park(gate, UINT64_MAX);
}

static void *freed;
static uintptr_t tester;
static void *(*resize)(void *ctx, void *memory, size_t old_len, size_t len);

/* Reports the end of a thread that was left behind: it frees its memory last. */
static void *resize_and_tell(void *ctx, void *memory, size_t old_len, size_t len)
{
	const struct spoke_env *host = spoke_host_env();
	void *resized = resize(ctx, memory, old_len, len);

	if (host->threads->self(host->ctx) != tester)
		host->threads->unpark(freed);
	return resized;
}

static void finalise(struct spokei_task *task)
{
	spokei_link_fini(&spoke_container_of(task, struct hostrig, finalise)->link);
}

TEST(engine_is_freed_while_a_resolver_hangs)
{
	const struct spoke_env *host = spoke_host_env();
	const struct spoke_threads *threads = host->threads;
	struct hostrig rig;
	const struct spoke_env *env = &rig.faulty.env;

	assert_int_equal(threads->open(host->ctx, &gate), 0);
	assert_int_equal(threads->open(host->ctx, &begun), 0);
	assert_int_equal(threads->open(host->ctx, &freed), 0);
	assert_true(open_rig(&rig, "127.0.0.1:0", 8));
	tester = threads->self(host->ctx);
	resize = rig.faulty.env.resize;
	rig.faulty.env.resize = resize_and_tell;
	rig.net.resolve = resolve_slowly;
	rig.options.host = "demo.test";
	assert_int_equal(start(&rig), SPOKE_OK);
	assert_int_equal(spoke_engine_turn(rig.engine, false), SPOKE_OK);
	spokei_engine_refresh(rig.engine);
	spokei_connector_free(rig.connector);
	assert_int_equal(spoke_engine_turn(rig.engine, false), SPOKE_OK);
	assert_int_equal(threads->park(begun, UINT64_MAX), 0);
	rig.finalise.run = finalise;
	spokei_link_end(&rig.link, &rig.finalise);
	spoke_engine_free(rig.engine);
	env->net->close(env->ctx, rig.listener);
	assert_int_equal(rig.faulty.fds, 0);
	assert_int_equal(rig.faulty.blocks, 1); /* the thread's */
	threads->unpark(gate);
	assert_int_equal(threads->park(freed, UINT64_MAX), 0);
	assert_int_equal(rig.faulty.blocks, 0);
	threads->close(gate);
	threads->close(begun);
	threads->close(freed);
}

enum {
	WELL,
	NO_RIG,
	NO_LIMIT,
	NOT_FAILED,
	NOT_AGAIN,
	NOT_CLEAN
};

/* Runs in a child process with its own limit. The exit status identifies the failed step. */
static int live_without_descriptors(void)
{
	struct hostrig rig;
	const struct spoke_env *env = &rig.faulty.env;
	struct rlimit was;
	struct rlimit none;
	int lowest = -1;

	if (!open_rig(&rig, "127.0.0.1:0", 8) || getrlimit(RLIMIT_NOFILE, &was) != 0)
		return NO_RIG;
	/* libev opens some descriptors in its first turn; later turns need no new ones. */
	if (spoke_engine_turn(rig.engine, false) != SPOKE_OK ||
	    env->net->spare(env->ctx, &lowest) != 0)
		return NO_RIG;
	env->net->close(env->ctx, lowest);
	none = was;
	none.rlim_cur = (rlim_t)lowest;
	if (setrlimit(RLIMIT_NOFILE, &none) != 0)
		return NO_LIMIT;
	rig.options.host = "127.0.0.1";
	rig.options.port = port_of(&rig);
	if (start(&rig) != SPOKE_OK)
		return NO_RIG;
	for (unsigned i = 0; i < 3; i++) {
		rig.told_count = 0;
		if (!turn_until(&rig, SPOKEI_CONNECTOR_WAITING) || rig.error != SPOKE_ECONNECT)
			return NOT_FAILED;
	}
	if (setrlimit(RLIMIT_NOFILE, &was) != 0)
		return NO_LIMIT;
	if (!turn_until(&rig, SPOKEI_CONNECTOR_OPEN))
		return NOT_AGAIN;
	return close_rig(&rig) ? WELL : NOT_CLEAN;
}

TEST(a_process_without_descriptors_tries_again)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		_exit(live_without_descriptors());
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), WELL);
}
