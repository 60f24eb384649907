/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes small files. A file is read whole, up to a bound, and written whole: to a
 * temporary file in the same directory, flushed to disk, then renamed over the old one. Appended
 * data is not flushed; if an append fails, a part of it may be in the file.
 */
#define _GNU_SOURCE
#include "core/host/files.h"

#include "core/host/filelock.h"
#include "core/host/filesweep.h"
#include "core/host/filewatch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	NAMES_MAX = 100, /* names to try for a temporary file */
	NEW_MODE = 0666,
	PRIVATE_MODE = 0600,
	MODE_MASK = 0777,
};

/* Like read(), but repeated after a signal. */
static ssize_t read_some(int fd, void *bytes, size_t len)
{
	ssize_t got;

	do
		got = read(fd, bytes, len);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

/* Rejects pipes and sockets, which would block or never end. */
static int check_kind(int fd)
{
	struct stat status;

	if (fstat(fd, &status) != 0)
		return -errno;
	if (S_ISDIR(status.st_mode))
		return -EISDIR;
	return S_ISREG(status.st_mode) || S_ISCHR(status.st_mode) ? 0 : -EINVAL;
}

static ssize_t read_all(int fd, char *bytes, size_t size)
{
	size_t len = 0;
	ssize_t got = 1;
	char more;

	while (len < size && got > 0) {
		got = read_some(fd, bytes + len, size - len);
		if (got > 0)
			len += (size_t)got;
	}
	if (got > 0)
		got = read_some(fd, &more, 1);
	if (got < 0)
		return got;
	return got > 0 ? -EFBIG : (ssize_t)len;
}

/* Rejects files that others may read. A file of root may be shared with a group, as an
 * administrator does for a service. */
static int check_secret(int fd)
{
	struct stat status;
	mode_t others = S_IRWXG | S_IRWXO;

	if (fstat(fd, &status) != 0)
		return -errno;
	if (status.st_uid == 0)
		others = S_IWGRP | S_IXGRP | S_IRWXO;
	return (status.st_mode & others) == 0 ? 0 : -EPERM;
}

static ssize_t read_file(const char *path, void *bytes, size_t size, bool secret)
{
	/* Without O_NONBLOCK, opening a pipe would wait for its writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t result;

	if (fd < 0)
		return -errno;
	result = check_kind(fd);
	if (result == 0 && secret)
		result = check_secret(fd);
	if (result == 0)
		result = read_all(fd, bytes, size);
	(void)close(fd);
	return result;
}

static ssize_t files_read(void *ctx, const char *path, void *bytes, size_t size)
{
	(void)ctx;
	return read_file(path, bytes, size, false);
}

static ssize_t files_read_secret(void *ctx, const char *path, void *bytes, size_t size)
{
	(void)ctx;
	return read_file(path, bytes, size, true);
}

/* Creates a new file next to `path` and writes its name to `ret_name`. Returns the descriptor. */
static int open_beside(const char *path, mode_t mode, char *ret_name, size_t size)
{
	static atomic_uint count;

	for (int i = 0; i < NAMES_MAX; i++) {
		int len = snprintf(ret_name, size, "%s.%ld-%u.tmp", path, (long)getpid(),
				   atomic_fetch_add(&count, 1));
		int fd;

		if (len < 0 || (size_t)len >= size)
			return -ENAMETOOLONG;
		fd = open(ret_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static int write_all(int fd, const char *bytes, size_t len)
{
	size_t written = 0;

	while (written < len) {
		ssize_t got = write(fd, bytes + written, len - written);

		if (got < 0 && errno != EINTR)
			return -errno;
		if (got > 0)
			written += (size_t)got;
	}
	return 0;
}

static int keep_mode(const char *path, int fd)
{
	struct stat old;

	if (stat(path, &old) != 0 || !S_ISREG(old.st_mode))
		return 0;
	return fchmod(fd, old.st_mode & MODE_MASK) == 0 ? 0 : -errno;
}

/* Flushes the directory, so that the rename survives a crash. Without this the file is whole, too.
 */
static void sync_folder(const char *path)
{
	char folder[PATH_MAX];
	int fd;

	if (spokei_filewatch_folder(path, folder, sizeof(folder)) == NULL)
		return;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)fsync(fd);
	(void)close(fd);
}

static int files_replace(void *ctx, const char *path, const void *bytes, size_t len,
			 bool is_private)
{
	char name[PATH_MAX];
	int fd = open_beside(path, is_private ? PRIVATE_MODE : NEW_MODE, name, sizeof(name));
	int error;

	(void)ctx;
	if (fd < 0)
		return fd;
	error = keep_mode(path, fd);
	if (!error)
		error = write_all(fd, bytes, len);
	if (!error && fsync(fd) != 0)
		error = -errno;
	if (close(fd) != 0 && !error)
		error = -errno;
	if (!error && rename(name, path) != 0)
		error = -errno;
	if (error) {
		(void)unlink(name);
		return error;
	}
	sync_folder(path);
	return 0;
}

/* Returns whether a file may be made in the folder of a path: 0 or a negative errno. */
static int check_folder(const char *path)
{
	char folder[PATH_MAX];

	if (spokei_filewatch_folder(path, folder, sizeof(folder)) == NULL)
		return -ENAMETOOLONG;
	return access(folder, W_OK | X_OK) == 0 ? 0 : -errno;
}

static int files_append(void *ctx, const char *path, const void *bytes, size_t len)
{
	/* Without O_NONBLOCK, opening a pipe would wait for its reader. */
	int fd = open(path,
		      O_WRONLY | O_APPEND | (len > 0 ? O_CREAT : 0) | O_CLOEXEC | O_NONBLOCK |
			      O_NOCTTY,
		      NEW_MODE);
	int error;

	(void)ctx;
	if (fd < 0)
		return len == 0 && errno == ENOENT ? check_folder(path) : -errno;
	error = check_kind(fd);
	if (!error)
		error = write_all(fd, bytes, len);
	if (close(fd) != 0 && !error)
		error = -errno;
	return error;
}

const struct spoke_files spokei_host_files = {
	.read = files_read,
	.replace = files_replace,
	.append = files_append,
	.watch = spokei_filewatch_open,
	.changed = spokei_filewatch_changed,
	.unwatch = spokei_filewatch_close,
	.lock = spokei_filelock_take,
	.unlock = spokei_filelock_release,
	.is_locked = spokei_filelock_held,
	.drop = spokei_filelock_drop,
	.sweep = spokei_filesweep,
	.read_secret = files_read_secret,
};
