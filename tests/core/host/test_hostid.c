/* SPDX-License-Identifier: Apache-2.0 */
/* The number of this host and of a process's view of its files. */
#define _GNU_SOURCE

#include "tests/support/test.h"

#include <spoke/host.h>

#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum outcome {
	EQUAL,
	OTHER,
	UNKNOWN,
	NOT_ALLOWED, /* the child may not do what the test needs */
};

static uint64_t here(void)
{
	const struct spoke_env *env = spoke_host_env();
	uint64_t id = 0;

	assert_int_equal(env->host_id(env->ctx, &id), 0);
	return id;
}

/* Compares the number in a child that `move` has moved with that of this process. */
static enum outcome in_child(int (*move)(const char *folder), const char *folder)
{
	const struct spoke_env *env = spoke_host_env();
	const uint64_t before = here();
	pid_t child = fork();
	int status = 0;
	uint64_t id = 0;

	assert_true(child >= 0);
	if (child == 0) {
		if (move(folder) != 0)
			_exit(NOT_ALLOWED);
		if (env->host_id(env->ctx, &id) != 0)
			_exit(UNKNOWN);
		_exit(id == before ? EQUAL : OTHER);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return (enum outcome)WEXITSTATUS(status);
}

static int stay(const char *folder)
{
	(void)folder;
	return 0;
}

static int leave_mounts(const char *folder)
{
	(void)folder;
	return unshare(CLONE_NEWNS);
}

static int leave_root(const char *folder)
{
	return chroot(folder);
}

TEST(number_is_the_same_each_time)
{
	assert_int_not_equal(here(), 0);
	assert_int_equal(here(), here());
}

TEST(processes_with_one_view_have_one_number)
{
	assert_int_equal(in_child(stay, NULL), EQUAL);
}

TEST(other_mount_namespace_has_another_number)
{
	enum outcome outcome = in_child(leave_mounts, NULL);

	if (outcome == NOT_ALLOWED)
		skip();
	assert_int_equal(outcome, OTHER);
}

/* A root without /proc has no number, which is as good as another one. */
TEST(other_root_has_not_the_same_number)
{
	char folder[] = "/tmp/spoke-test-root-XXXXXX";
	enum outcome outcome;

	assert_non_null(mkdtemp(folder));
	outcome = in_child(leave_root, folder);
	assert_int_equal(rmdir(folder), 0);
	if (outcome == NOT_ALLOWED)
		skip();
	assert_int_equal(outcome, UNKNOWN);
}
