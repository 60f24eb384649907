/* SPDX-License-Identifier: Apache-2.0 */
/* Locks of real files: who holds them, their ends, and what dead processes leave. */
#define _GNU_SOURCE

#include "core/host/host.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARK ".0123456789abcdef"

static const struct spoke_files *const files = &spokei_host_files;

struct rig {
	char folder[64];
	char path[80];
	char marked[100];
};

STEP(set_up)
{
	static struct rig rig;

	memset(&rig, 0, sizeof(rig));
	folder_make(rig.folder);
	(void)snprintf(rig.path, sizeof(rig.path), "%s/file", rig.folder);
	(void)snprintf(rig.marked, sizeof(rig.marked), "%s" MARK, rig.path);
	*state = &rig;
}

/* Returns the name of an entry of the folder, valid until the next call. */
static const char *named(const struct rig *rig, const char *name)
{
	static char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", rig->folder, name);
	return path;
}

static bool exists(const struct rig *rig, const char *name)
{
	return access(named(rig, name), F_OK) == 0;
}

STEP(tear_down)
{
	struct rig *rig = *state;

	(void)unlink(named(rig, "file.lock"));
	(void)unlink(named(rig, "file" MARK ".lock"));
	assert_int_equal(rmdir(rig->folder), 0);
}

#define RIG_TEST(...) TEST_WITH(struct rig *rig, *state, __VA_ARGS__)

FIXTURE(set_up, tear_down);

/* Starts a process that holds the lock of a path until it is killed. */
static pid_t start_holder(const char *path)
{
	int ready[2];
	char byte;
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		int fd;

		if (files->lock(NULL, path, &fd) != 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	return child;
}

static void kill_holder(pid_t child)
{
	int status;

	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
}

RIG_TEST(lock_is_held_until_its_process_is_killed)
{
	pid_t holder;

	assert_int_equal(files->is_locked(NULL, rig->path), 0);
	assert_false(exists(rig, "file.lock"));
	holder = start_holder(rig->path);
	assert_int_equal(files->is_locked(NULL, rig->path), 1);
	assert_int_equal(files->is_locked(NULL, rig->path), 1);
	kill_holder(holder);
	assert_int_equal(files->is_locked(NULL, rig->path), 0);
	assert_true(exists(rig, "file.lock"));
}

RIG_TEST(own_lock_is_held_and_dropped_with_its_file)
{
	int fd;

	assert_int_equal(files->lock(NULL, rig->path, &fd), 0);
	assert_int_equal(files->is_locked(NULL, rig->path), 1);
	files->unlock(NULL, fd);
	assert_int_equal(files->is_locked(NULL, rig->path), 0);
	assert_int_equal(files->lock(NULL, rig->path, &fd), 0);
	files->drop(NULL, rig->path, fd);
	assert_false(exists(rig, "file.lock"));
	assert_int_equal(files->is_locked(NULL, rig->path), 0);
}

RIG_TEST(two_that_ask_do_not_take_each_other_for_the_owner)
{
	int asking;
	int fd;

	assert_int_equal(files->append(NULL, named(rig, "file.lock"), "x", 1), 0);
	asking = open(named(rig, "file.lock"), O_RDONLY | O_CLOEXEC);
	assert_true(asking >= 0);
	assert_int_equal(flock(asking, LOCK_SH | LOCK_NB), 0);
	assert_int_equal(files->is_locked(NULL, rig->path), 0);
	assert_int_equal(files->lock(NULL, rig->path, &fd), -EAGAIN);
	(void)close(asking);
	assert_int_equal(files->lock(NULL, rig->path, &fd), 0);
	files->unlock(NULL, fd);
}

RIG_TEST(removed_file_of_held_lock_counts_as_free)
{
	int fd;

	assert_int_equal(files->lock(NULL, rig->path, &fd), 0);
	assert_int_equal(unlink(named(rig, "file.lock")), 0);
	assert_int_equal(files->is_locked(NULL, rig->path), 0);
	files->unlock(NULL, fd);
}

TEST(path_that_is_too_long_is_an_error)
{
	static char path[PATH_MAX];
	int fd;

	memset(path, 'x', sizeof(path) - 1);
	assert_int_equal(files->is_locked(NULL, path), -ENAMETOOLONG);
	assert_int_equal(files->lock(NULL, path, &fd), -ENAMETOOLONG);
	path[0] = '/';
	path[sizeof(path) - 2] = '/';
	assert_int_equal(files->sweep(NULL, path), -ENAMETOOLONG);
}

RIG_TEST(sweep_removes_only_what_dead_processes_left)
{
	static const char *const gone[] = { "file.1-2.tmp", "file.4194304-0.tmp",
					    "file.fedcba9876543210.lock" };
	static const char *const stay[] = {
		"file",
		"file.tmp",
		"file.1-2.tmp~",
		"file.1.tmp",
		"file.x-1.tmp",
		"file.1-x.tmp",
		"other.1-2.tmp",
		"file.0123456789abcde.lock",
		"file.0123456789abcdef0.lock",
		"file.0123456789ABCDEF.lock",
		"other.0123456789abcdef.lock",
		"file1.0123456789abcdef.lock",
		"file.lock",
	};
	pid_t holder = start_holder(rig->marked);

	for (unsigned i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		assert_int_equal(files->append(NULL, named(rig, gone[i]), "x", 1), 0);
	for (unsigned i = 0; i < sizeof(stay) / sizeof(stay[0]); i++)
		assert_int_equal(files->append(NULL, named(rig, stay[i]), "x", 1), 0);
	assert_int_equal(files->sweep(NULL, rig->path), 0);
	for (unsigned i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		assert_false(exists(rig, gone[i]));
	for (unsigned i = 0; i < sizeof(stay) / sizeof(stay[0]); i++) {
		assert_true(exists(rig, stay[i]));
		assert_int_equal(unlink(named(rig, stay[i])), 0);
	}
	assert_true(exists(rig, "file" MARK ".lock"));
	kill_holder(holder);
	assert_int_equal(files->sweep(NULL, rig->path), 0);
	assert_false(exists(rig, "file" MARK ".lock"));
}

RIG_TEST(watch_reports_end_of_marked_process)
{
	pid_t holder = start_holder(rig->marked);
	int fd;
	int lock;

	assert_int_equal(files->watch(NULL, rig->path, &fd), 0);
	assert_int_equal(files->is_locked(NULL, rig->marked), 1);
	assert_int_equal(files->lock(NULL, rig->path, &lock), 0);
	files->unlock(NULL, lock);
	assert_false(files->changed(NULL, fd));
	kill_holder(holder);
	assert_true(files->changed(NULL, fd));
	assert_false(files->changed(NULL, fd));
	files->unwatch(NULL, fd);
}
