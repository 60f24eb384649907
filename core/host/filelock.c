/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of paths. A shared lock tells whether the exclusive one is held, so that several processes
 * may ask at one time without taking each other for its owner.
 */
#define _GNU_SOURCE
#include "core/host/filelock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
	NEW_MODE = 0666,
	FLAGS = O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW,
};

/* Writes the name of the path's lock file. Returns 0 or -ENAMETOOLONG. */
static int name_lock(const char *path, char *name, size_t size)
{
	int len = snprintf(name, size, "%s.lock", path);

	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : 0;
}

/* For reading and writing, which network file systems require for exclusive locks. A file of
 * another user may allow reading only. */
static int open_lock(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | FLAGS, NEW_MODE);

	return fd < 0 && errno == EACCES ? open(name, O_RDONLY | FLAGS) : fd;
}

int spokei_filelock_take(void *ctx, const char *path, int *ret_fd)
{
	char name[PATH_MAX];
	int error = name_lock(path, name, sizeof(name));
	int fd;

	(void)ctx;
	if (error)
		return error;
	fd = open_lock(name);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		error = errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
		(void)close(fd);
		return error;
	}
	*ret_fd = fd;
	return 0;
}

/* Unlocks explicitly: a process that was forked meanwhile has the descriptor, too. The file stays:
 * removing it could delete the file that another process is about to lock. */
void spokei_filelock_release(void *ctx, int fd)
{
	(void)ctx;
	(void)flock(fd, LOCK_UN);
	(void)close(fd);
}

int spokei_filelock_held_at(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | FLAGS);
	int held = 0;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	if (flock(fd, LOCK_SH | LOCK_NB) != 0)
		held = errno == EWOULDBLOCK ? 1 : -errno;
	spokei_filelock_release(NULL, fd);
	return held;
}

int spokei_filelock_held(void *ctx, const char *path)
{
	char name[PATH_MAX];
	int error = name_lock(path, name, sizeof(name));

	(void)ctx;
	return error ? error : spokei_filelock_held_at(AT_FDCWD, name);
}

void spokei_filelock_drop(void *ctx, const char *path, int fd)
{
	char name[PATH_MAX];

	if (name_lock(path, name, sizeof(name)) == 0)
		(void)unlink(name);
	spokei_filelock_release(ctx, fd);
}

bool spokei_filelock_is_mark(const char *name, const char *base)
{
	size_t len = strlen(base);

	if (strncmp(name, base, len) != 0 || name[len] != '.')
		return false;
	name += len + 1;
	return strspn(name, "0123456789abcdef") == SPOKE_MARK_DIGITS &&
	       strcmp(name + SPOKE_MARK_DIGITS, ".lock") == 0;
}
