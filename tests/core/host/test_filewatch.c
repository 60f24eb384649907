/* SPDX-License-Identifier: Apache-2.0 */
/* Real files: appending, notification of changes, and locks. */
#define _GNU_SOURCE

#include "core/host/host.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct spoke_files *const files = &spokei_host_files;

struct rig {
	char folder[64];
	char path[PATH_MAX];
	char other[PATH_MAX];
	char lock[PATH_MAX];
	int fd; /* watches `path` */
};

STEP(set_up)
{
	static struct rig rig;

	memset(&rig, 0, sizeof(rig));
	folder_make(rig.folder);
	(void)snprintf(rig.path, sizeof(rig.path), "%s/file", rig.folder);
	(void)snprintf(rig.other, sizeof(rig.other), "%s/file2", rig.folder);
	(void)snprintf(rig.lock, sizeof(rig.lock), "%s/file.lock", rig.folder);
	*state = &rig;
	assert_int_equal(files->watch(NULL, rig.path, &rig.fd), 0);
}

STEP(tear_down)
{
	struct rig *rig = *state;

	files->unwatch(NULL, rig->fd);
	folder_remove(rig->folder);
}

#define RIG_TEST(...) TEST_WITH(struct rig *rig, *state, __VA_ARGS__)

FIXTURE(set_up, tear_down);

static bool is_readable(const struct rig *rig)
{
	struct pollfd one = { .fd = rig->fd, .events = POLLIN };

	return poll(&one, 1, 0) == 1;
}

static void assert_told(const struct rig *rig)
{
	assert_true(is_readable(rig));
	assert_true(files->changed(NULL, rig->fd));
	assert_false(is_readable(rig));
	assert_false(files->changed(NULL, rig->fd));
}

RIG_TEST(every_change_of_file_is_reported_once)
{
	assert_false(files->changed(NULL, rig->fd));
	assert_int_equal(files->append(NULL, rig->path, "one", 3), 0);
	assert_told(rig);
	assert_int_equal(files->append(NULL, rig->path, "two", 3), 0);
	assert_told(rig);
	assert_int_equal(files->replace(NULL, rig->path, "three", 5, false), 0);
	assert_told(rig);
	assert_int_equal(truncate(rig->path, 0), 0);
	assert_told(rig);
	assert_int_equal(rename(rig->path, rig->other), 0);
	assert_told(rig);
	assert_int_equal(rename(rig->other, rig->path), 0);
	assert_told(rig);
	assert_int_equal(unlink(rig->path), 0);
	assert_told(rig);
}

RIG_TEST(change_of_another_file_is_not_reported)
{
	assert_int_equal(files->replace(NULL, rig->other, "x", 1, false), 0);
	assert_true(is_readable(rig));
	assert_false(files->changed(NULL, rig->fd));
	assert_false(is_readable(rig));
}

RIG_TEST(each_watch_of_a_file_reports_change)
{
	int second;
	int other;

	assert_int_equal(files->watch(NULL, rig->path, &second), 0);
	assert_int_equal(files->watch(NULL, rig->other, &other), 0);
	assert_int_equal(files->append(NULL, rig->path, "x", 1), 0);
	assert_told(rig);
	assert_true(files->changed(NULL, second));
	assert_false(files->changed(NULL, other));
	files->unwatch(NULL, second);
	files->unwatch(NULL, other);
	assert_int_equal(unlink(rig->path), 0);
	assert_told(rig);
}

RIG_TEST(more_than_the_system_remembers_is_a_change)
{
	FILE *limit = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
	int count = 16384;

	if (limit) {
		char text[32];

		assert_non_null(fgets(text, sizeof(text), limit));
		count = (int)strtol(text, NULL, 10);
		(void)fclose(limit);
	}
	if (count > 100000)
		skip();
	for (int i = 0; i < count; i++) {
		assert_int_equal(files->append(NULL, i % 2 ? rig->other : rig->lock, "x", 1), 0);
	}
	for (int i = 0; i < count; i++)
		if (files->changed(NULL, rig->fd))
			return;
	fail_msg("of %d events none was lost", count);
}

RIG_TEST(removed_folder_is_reported)
{
	char moved[PATH_MAX];

	(void)snprintf(moved, sizeof(moved), "%s-moved", rig->folder);
	assert_int_equal(rename(rig->folder, moved), 0);
	assert_told(rig);
	assert_int_equal(rmdir(moved), 0);
	assert_true(files->changed(NULL, rig->fd));
	assert_int_equal(mkdir(rig->folder, 0700), 0);
	assert_false(files->changed(NULL, rig->fd));
}

RIG_TEST(a_path_that_cannot_be_watched_is_an_error)
{
	char path[PATH_MAX + 300];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/no/file", rig->folder);
	assert_int_equal(files->watch(NULL, path, &fd), -ENOENT);
	(void)snprintf(path, sizeof(path), "%s/", rig->folder);
	assert_int_equal(files->watch(NULL, path, &fd), -EINVAL);
	assert_int_equal(files->append(NULL, rig->other, "x", 1), 0);
	(void)snprintf(path, sizeof(path), "%s/file", rig->other);
	assert_int_equal(files->watch(NULL, path, &fd), -ENOTDIR);
	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(files->watch(NULL, path, &fd), -ENAMETOOLONG);
	path[300] = '/';
	path[0] = '/';
	assert_int_equal(files->watch(NULL, path, &fd), -ENAMETOOLONG);
}

RIG_TEST(a_path_without_a_folder_is_watched_where_the_process_is)
{
	int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd;

	assert_true(here >= 0);
	assert_int_equal(chdir(rig->folder), 0);
	assert_int_equal(files->watch(NULL, "file", &fd), 0);
	assert_int_equal(files->append(NULL, "file", "x", 1), 0);
	assert_int_equal(fchdir(here), 0);
	assert_true(files->changed(NULL, fd));
	files->unwatch(NULL, fd);
	(void)close(here);
}

RIG_TEST(descriptors_do_not_block_and_are_not_inherited)
{
	int fd;

	assert_true(fcntl(rig->fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(rig->fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(files->lock(NULL, rig->path, &fd), 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	files->unlock(NULL, fd);
}

RIG_TEST(a_forked_child_that_ends_its_watch_leaves_that_of_its_parent)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		files->unwatch(NULL, rig->fd);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(files->append(NULL, rig->path, "x", 1), 0);
	assert_told(rig);
}

RIG_TEST(appended_bytes_are_whole_and_at_the_end)
{
	char path[PATH_MAX];
	char bytes[16];

	assert_int_equal(files->append(NULL, rig->path, "one", 3), 0);
	assert_int_equal(files->append(NULL, rig->path, "two", 3), 0);
	assert_int_equal(files->read(NULL, rig->path, bytes, sizeof(bytes)), 6);
	assert_memory_equal(bytes, "onetwo", 6);
	assert_int_equal(files->append(NULL, rig->folder, "x", 1), -EISDIR);
	(void)snprintf(path, sizeof(path), "%s/no/file", rig->folder);
	assert_int_equal(files->append(NULL, path, "x", 1), -ENOENT);
	assert_int_equal(mkfifo(rig->other, 0600), 0);
	assert_int_equal(files->append(NULL, rig->other, "x", 1), -ENXIO);
}

RIG_TEST(a_lock_keeps_out_all_others_and_ends_with_its_process)
{
	int fd;
	int other;
	int status;
	char name[PATH_MAX];
	pid_t child;

	assert_int_equal(files->lock(NULL, rig->path, &fd), 0);
	assert_int_equal(files->lock(NULL, rig->path, &other), -EAGAIN);
	assert_int_equal(files->lock(NULL, rig->other, &other), 0);
	files->unlock(NULL, other);
	(void)snprintf(name, sizeof(name), "%s/file2.lock", rig->folder);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(access(rig->path, F_OK), -1);
	files->unlock(NULL, fd);
	child = fork();
	if (child == 0)
		_exit(files->lock(NULL, rig->path, &fd) == 0 ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(files->lock(NULL, rig->path, &fd), 0);
	/* A child that inherited the descriptor does not keep the lock. */
	child = fork();
	if (child == 0) {
		for (;;)
			(void)pause();
	}
	files->unlock(NULL, fd);
	assert_int_equal(files->lock(NULL, rig->path, &fd), 0);
	files->unlock(NULL, fd);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
}
