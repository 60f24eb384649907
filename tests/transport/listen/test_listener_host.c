/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listener on real sockets: many connections, resets, and a process without free descriptors.
 */
#include "core/engine/engine.h"
#include "core/virtual/faults.h"
#include "tests/support/test.h"
#include "transport/listen/listener.h"

#include <spoke/engine.h>
#include <spoke/host.h>
#include <spoke/stats.h>

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	BATCH = 100
};

struct hostrig {
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	struct spokei_quota quota;
	struct spokei_listener *listener;
	unsigned accepted;
};

static void let_go(void *arg, int fd, const struct spoke_address *peer, unsigned marks)
{
	struct hostrig *rig = arg;

	(void)marks;
	rig->accepted++;
	rig->faulty.env.net->close(rig->faulty.env.ctx, fd);
	spokei_quota_leave(&rig->quota, spokei_quota_peer(&rig->quota, peer));
}

static bool open_rig(struct hostrig *rig)
{
	static const struct spokei_quota_limits defaults;
	const struct spoke_env *env = &rig->faulty.env;
	struct spoke_engine_options options = { .env = env };
	struct spoke_address any;

	*rig = (struct hostrig){ .accepted = 0 };
	spokei_faults_init(&rig->faulty, spoke_host_env());
	if (spoke_engine_new(&options, &rig->engine) != SPOKE_OK ||
	    env->net->parse(env->ctx, "127.0.0.1:0", &any) != 0)
		return false;
	spokei_quota_init(&rig->quota, env, &defaults);
	return spokei_listener_new(rig->engine, &(struct spokei_listener_at){ .address = &any },
				   &rig->quota, let_go, rig, &rig->listener) == SPOKE_OK;
}

static void close_rig(struct hostrig *rig)
{
	spokei_listener_free(rig->listener);
	spokei_quota_fini(&rig->quota);
	spoke_engine_free(rig->engine);
}

/* Starts to connect to the listener. Returns the descriptor, or -1. */
static int connect_one(struct hostrig *rig)
{
	const struct spoke_env *env = spoke_host_env();
	int fd = -1;
	int status = env->net->connect(env->ctx, spokei_listener_address(rig->listener), &fd);

	return status == 0 || status == -EINPROGRESS ? fd : -1;
}

/* Returns the number of accepted connections, both kept and closed ones. */
static uint64_t seen(const struct hostrig *rig)
{
	return spoke_stat_get(rig->engine, SPOKE_STAT_ACCEPTED) +
	       spoke_stat_get(rig->engine, SPOKE_STAT_ACCEPTS_SHED);
}

TEST(listener_accepts_two_thousand_connections)
{
	const struct spoke_env *env = spoke_host_env();
	struct hostrig rig;

	assert_true(open_rig(&rig));
	while (rig.accepted < 2000) {
		unsigned due = rig.accepted + BATCH;
		int fds[BATCH];

		for (unsigned k = 0; k < BATCH; k++) {
			fds[k] = connect_one(&rig);
			assert_true(fds[k] >= 0);
		}
		while (rig.accepted < due)
			assert_int_equal(spoke_engine_turn(rig.engine, true), SPOKE_OK);
		for (unsigned k = 0; k < BATCH; k++)
			env->net->close(env->ctx, fds[k]);
	}
	assert_int_equal(seen(&rig), 2000);
	assert_int_equal(rig.quota.count, 0);
	assert_int_equal(rig.faulty.fds, 2); /* the socket and the spare */
	close_rig(&rig);
	assert_int_equal(rig.faulty.fds, 0);
	assert_int_equal(rig.faulty.blocks, 0);
}

/* Runs until a new connection, and thus each earlier one, is accepted. */
static void turn_until_the_last(struct hostrig *rig)
{
	const struct spoke_env *env = spoke_host_env();
	int fd = connect_one(rig);
	char byte;

	assert_true(fd >= 0);
	while (env->net->read(env->ctx, fd, &byte, 1) != 0)
		assert_int_equal(spoke_engine_turn(rig->engine, false), SPOKE_OK);
	env->net->close(env->ctx, fd);
}

TEST(thousand_resets_leave_no_descriptor)
{
	const struct spoke_env *env = spoke_host_env();
	const struct linger at_once = { .l_onoff = 1 };
	struct hostrig rig;

	assert_true(open_rig(&rig));
	for (unsigned i = 1; i <= 1000; i++) {
		int fd = connect_one(&rig);

		assert_true(fd >= 0);
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)),
				 0);
		env->net->close(env->ctx, fd);
		if (i % BATCH == 0)
			turn_until_the_last(&rig);
	}
	assert_in_range(rig.accepted, 10, 1010);
	assert_int_equal(rig.faulty.fds, 2);
	assert_int_equal(rig.quota.count, 0);
	close_rig(&rig);
	assert_int_equal(rig.faulty.blocks, 0);
}

enum {
	WELL,
	NO_RIG,
	NO_LIMIT,
	NOT_SHED,
	TOO_BUSY,
	NOT_AGAIN,
	NOT_CLEAN
};

/* Sets the limit so that no further descriptor can be opened. */
static bool forbid_descriptors(const struct rlimit *was)
{
	const struct spoke_env *env = spoke_host_env();
	struct rlimit limit = *was;
	int lowest = -1;

	if (env->net->spare(env->ctx, &lowest) != 0)
		return false;
	env->net->close(env->ctx, lowest);
	limit.rlim_cur = (rlim_t)lowest;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	       env->net->spare(env->ctx, &lowest) == -EMFILE;
}

/* Runs in a child process with its own limit. The exit status identifies the failed step. */
static int live_without_descriptors(void)
{
	struct hostrig rig;
	struct rlimit was;

	if (!open_rig(&rig))
		return NO_RIG;
	for (int i = 0; i < 8; i++)
		if (connect_one(&rig) < 0)
			return NO_RIG;
	if (getrlimit(RLIMIT_NOFILE, &was) != 0 || !forbid_descriptors(&was))
		return NO_LIMIT;
	while (seen(&rig) < 8)
		if (spoke_engine_turn(rig.engine, true) != SPOKE_OK)
			return NOT_SHED;
	if (rig.accepted != 0 || spoke_stat_get(rig.engine, SPOKE_STAT_ACCEPTS_SHED) != 8)
		return NOT_SHED;
	if (rig.faulty.calls[SPOKEI_FAULTS_ACCEPT] > 4 * 8)
		return TOO_BUSY;
	if (setrlimit(RLIMIT_NOFILE, &was) != 0 || connect_one(&rig) < 0)
		return NO_LIMIT;
	while (rig.accepted == 0)
		if (spoke_engine_turn(rig.engine, true) != SPOKE_OK)
			return NOT_AGAIN;
	close_rig(&rig);
	return rig.faulty.fds == 0 && rig.faulty.blocks == 0 ? WELL : NOT_CLEAN;
}

TEST(process_without_descriptors_closes_clients)
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
