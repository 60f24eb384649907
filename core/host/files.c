/* SPDX-License-Identifier: Apache-2.0 */
/* Files: read and written whole or in place, locked, watched and swept. */
#define _GNU_SOURCE
#include "core/host/host.h"

#include "timer/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- locks
 *
 * Locks of paths, held with flock() on the file <path>.lock, which is created on first use. The
 * kernel releases a lock when the last process that has its descriptor ends: the owner, or a child
 * that was forked without an exec. A shared lock tells whether the exclusive one is held, so that
 * several processes may ask at one time without taking each other for its owner. */

enum {
	LOCK_MODE = 0666,
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
	int fd = open(name, O_RDWR | O_CREAT | FLAGS, LOCK_MODE);

	return fd < 0 && errno == EACCES ? open(name, O_RDONLY | FLAGS) : fd;
}

/* lock(), unlock(), is_locked() and drop() of struct spoke_files. */
static int take_lock(void *ctx, const char *path, int *ret_fd)
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
static void release_lock(void *ctx, int fd)
{
	(void)ctx;
	(void)flock(fd, LOCK_UN);
	(void)close(fd);
}

/* Like held(), for the file of a lock in an open folder. */
static int is_held_at(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | FLAGS);
	int held = 0;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	if (flock(fd, LOCK_SH | LOCK_NB) != 0)
		held = errno == EWOULDBLOCK ? 1 : -errno;
	release_lock(NULL, fd);
	return held;
}

static int is_lock_held(void *ctx, const char *path)
{
	char name[PATH_MAX];
	int error = name_lock(path, name, sizeof(name));

	(void)ctx;
	return error ? error : is_held_at(AT_FDCWD, name);
}

static void drop_lock(void *ctx, const char *path, int fd)
{
	char name[PATH_MAX];

	if (name_lock(path, name, sizeof(name)) == 0)
		(void)unlink(name);
	release_lock(ctx, fd);
}

/* Returns whether `name` is that of a lock which sweep() may remove, beside the file `base`. */
static bool is_lock_mark(const char *name, const char *base)
{
	size_t len = strlen(base);

	if (strncmp(name, base, len) != 0 || name[len] != '.')
		return false;
	name += len + 1;
	return strspn(name, "0123456789abcdef") == SPOKE_MARK_DIGITS &&
	       strcmp(name + SPOKE_MARK_DIGITS, ".lock") == 0;
}

/* --- watches
 *
 * Watches files by inotify. The folder of each file is watched, because the file may be replaced
 * or may not exist yet. Changes behind a folder that is a symbolic link, and changes made on other
 * machines, are not seen. When the folder is removed or moved, the watch reports that once and
 * sees nothing more.
 *
 * A list of the process behind a mutex; any thread. The context is not used.
 *
 * Watches files by inotify. Each watch has an inotify descriptor of its own, so that no watch
 * takes the events of another; a list holds the names. In a forked child the descriptor is shared
 * with the parent: there it is closed, and nothing else is done with it. */

enum {
	NOTED = IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_MODIFY | IN_CLOSE_WRITE |
		IN_DELETE_SELF | IN_MOVE_SELF,
	ALL = IN_Q_OVERFLOW | IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF | IN_MOVE_SELF,
	READS_MAX = 16, /* reads of events in one go; further events wake the watch again */
};

struct filewatch {
	struct filewatch *next;
	int fd;
	char name[NAME_MAX + 1];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct filewatch *watches; /* guarded by the lock */

static void lock_up(void)
{
	(void)pthread_mutex_lock(&lock);
}

static void unlock(void)
{
	(void)pthread_mutex_unlock(&lock);
}

/* A child must not inherit the lock held by a thread that does not exist there. */
static void watch_forks(void)
{
	(void)pthread_atfork(lock_up, unlock, unlock);
}

/* Writes the folder of a path. Returns the name in it, or NULL if the folder does not fit. */
static const char *folder_of(const char *path, char *folder, size_t size)
{
	const char *slash = strrchr(path, '/');
	const char *from = slash ? path : ".";
	size_t len = slash && slash != path ? (size_t)(slash - path) : 1;

	if (len >= size)
		return NULL;
	memcpy(folder, from, len);
	folder[len] = '\0';
	return slash ? slash + 1 : path;
}

/* As in struct spoke_files. -ENOENT: the folder does not exist; -EINVAL: the path names no file;
 * -EMFILE, -ENOSPC: a limit of the system is reached. */
static int open_watch(void *ctx, const char *path, int *ret_fd)
{
	char folder[PATH_MAX];
	const char *name = folder_of(path, folder, sizeof(folder));
	struct filewatch *watch;
	int error;

	(void)ctx;
	if (name == NULL || strlen(name) > NAME_MAX)
		return -ENAMETOOLONG;
	if (name[0] == '\0')
		return -EINVAL;
	(void)pthread_once(&once, watch_forks);
	watch = calloc(1, sizeof(*watch));
	if (watch == NULL)
		return -ENOMEM;
	memcpy(watch->name, name, strlen(name) + 1);
	watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (watch->fd < 0) {
		error = -errno;
		goto err_after_calloc;
	}
	if (inotify_add_watch(watch->fd, folder, NOTED | IN_ONLYDIR) < 0) {
		error = -errno;
		goto err_after_init;
	}
	lock_up();
	watch->next = watches;
	watches = watch;
	unlock();
	*ret_fd = watch->fd;
	return 0;

err_after_init:
	(void)close(watch->fd);
err_after_calloc:
	free(watch);
	return error;
}

/* Returns whether the event is the end of a lock beside the file. The kernel closes the descriptors
 * of a process that dies. */
static bool is_end_of_mark(const struct filewatch *watch, const struct inotify_event *event,
			   const char *name)
{
	return event->len > 0 && (event->mask & (uint32_t)(IN_CLOSE_WRITE | IN_DELETE)) != 0 &&
	       is_lock_mark(name, watch->name);
}

/* Returns whether one of these events is about the file. */
static bool is_told(const struct filewatch *watch, const char *bytes, size_t len)
{
	bool told = false;

	while (len >= sizeof(struct inotify_event)) {
		struct inotify_event event;
		size_t size;

		memcpy(&event, bytes, sizeof(event));
		size = sizeof(event) + event.len;
		SPOKE_ASSERT(size <= len);
		told = told || (event.mask & (uint32_t)ALL) != 0 ||
		       (event.len > 0 && strcmp(bytes + sizeof(event), watch->name) == 0) ||
		       is_end_of_mark(watch, &event, bytes + sizeof(event));
		bytes += size;
		len -= size;
	}
	return told;
}

static bool has_changed(void *ctx, int fd)
{
	char bytes[4096];
	struct filewatch *watch;
	bool changed = false;
	ssize_t got = 1;

	(void)ctx;
	lock_up();
	watch = watches;
	while (watch && watch->fd != fd)
		watch = watch->next;
	unlock();
	SPOKE_ASSERT(watch != NULL);
	for (int i = 0; i < READS_MAX && got > 0; i++) {
		got = read(fd, bytes, sizeof(bytes));
		if (got > 0)
			changed = is_told(watch, bytes, (size_t)got) || changed;
	}
	return changed;
}

static void close_watch(void *ctx, int fd)
{
	struct filewatch **link = &watches;
	struct filewatch *watch;

	(void)ctx;
	lock_up();
	while (*link && (*link)->fd != fd)
		link = &(*link)->next;
	watch = *link;
	SPOKE_ASSERT(watch != NULL);
	*link = watch->next;
	unlock();
	(void)close(fd);
	free(watch);
}

/* --- files of dead processes
 *
 * Removes the files that dead processes left beside a file: <file>.<process>-<number>.tmp, which
 * is written only under the file's lock, and <file>.<16 digits>.lock if no process holds that
 * lock. */

#define DIGITS "0123456789"

static bool is_temporary(const char *name, const char *base)
{
	size_t len = strlen(base);
	size_t digits;

	if (strncmp(name, base, len) != 0 || name[len] != '.')
		return false;
	name += len + 1;
	digits = strspn(name, DIGITS);
	if (digits == 0 || name[digits] != '-')
		return false;
	name += digits + 1;
	digits = strspn(name, DIGITS);
	return digits > 0 && strcmp(name + digits, ".tmp") == 0;
}

/* sweep() of struct spoke_files. */
static int sweep(void *ctx, const char *path)
{
	char folder[PATH_MAX];
	const char *base = folder_of(path, folder, sizeof(folder));
	const struct dirent *entry;
	DIR *all;

	(void)ctx;
	if (base == NULL)
		return -ENAMETOOLONG;
	all = opendir(folder);
	if (all == NULL)
		return -errno;
	/* Safe: this thread alone has the stream. */
	while ((entry = readdir(all)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
		const char *name = entry->d_name;

		if (is_temporary(name, base) ||
		    (is_lock_mark(name, base) && is_held_at(dirfd(all), name) == 0))
			(void)unlinkat(dirfd(all), name, 0);
	}
	(void)closedir(all);
	return 0;
}

/* --- reading and writing
 *
 * Reads and writes small files. A file is read whole, up to a bound, and written whole: to a
 * temporary file in the same directory, flushed to disk, then renamed over the old one. Appended
 * data is not flushed; if an append fails, a part of it may be in the file. */

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

#define HERE UINT64_MAX /* the file's own offset */

static int write_all(int fd, const char *bytes, size_t len, uint64_t at)
{
	size_t written = 0;

	while (written < len) {
		ssize_t got = at == HERE ? write(fd, bytes + written, len - written)
					 : pwrite(fd, bytes + written, len - written,
						  (off_t)(at + written));

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

static int files_sync_folder(void *ctx, const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int error = 0;

	(void)ctx;
	if (fd < 0)
		return -errno;
	if (fsync(fd) != 0)
		error = -errno;
	(void)close(fd);
	return error;
}

/* Flushes the directory, so that the rename survives a crash. Without this the file is whole, too.
 */
static void sync_folder_of(const char *path)
{
	char folder[PATH_MAX];

	if (folder_of(path, folder, sizeof(folder)) != NULL)
		(void)files_sync_folder(NULL, folder);
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
		error = write_all(fd, bytes, len, HERE);
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
	sync_folder_of(path);
	return 0;
}

/* Returns whether a file may be made in the folder of a path: 0 or a negative errno. */
static int check_folder(const char *path)
{
	char folder[PATH_MAX];

	if (folder_of(path, folder, sizeof(folder)) == NULL)
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
		error = write_all(fd, bytes, len, HERE);
	if (close(fd) != 0 && !error)
		error = -errno;
	return error;
}

/* --- logs
 *
 * Writes files in place, flushes them, and lists and removes them. */

#define LOG_MAX INT32_MAX /* bytes of a file; an off_t may have no more */
#define ZEROS 65536u /* bytes that are written at a time where the file system cannot allocate */

static int files_open_log(void *ctx, const char *path, bool is_new, int *ret_fd)
{
	int fd = open(path,
		      O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW |
			      (is_new ? O_CREAT | O_EXCL : 0),
		      PRIVATE_MODE);
	int error = fd < 0 ? -errno : check_kind(fd);

	(void)ctx;
	if (!error)
		*ret_fd = fd;
	else if (fd >= 0)
		(void)close(fd);
	return error;
}

static int files_write_at(void *ctx, int fd, uint64_t at, const void *bytes, size_t len)
{
	(void)ctx;
	return len > LOG_MAX || at > LOG_MAX - len ? -EFBIG : write_all(fd, bytes, len, at);
}

/* Writes the zeros, so that the file has its blocks. */
static int fill(int fd, uint64_t from, uint64_t size)
{
	static const char zeros[ZEROS];
	int error = 0;

	while (!error && from < size) {
		uint64_t left = size - from;

		error = write_all(fd, zeros, left < ZEROS ? (size_t)left : ZEROS, from);
		from += left < ZEROS ? left : ZEROS;
	}
	return error;
}

static int files_allocate(void *ctx, int fd, uint64_t size)
{
	struct stat status;
	int result;

	(void)ctx;
	if (size > LOG_MAX)
		return -EFBIG;
	if (fstat(fd, &status) != 0)
		return -errno;
	if (size <= (uint64_t)status.st_size)
		return 0;
	do
		result = fallocate(fd, 0, 0, (off_t)size);
	while (result != 0 && errno == EINTR);
	if (result == 0)
		return 0;
	return errno == EOPNOTSUPP || errno == ENOSYS ? fill(fd, (uint64_t)status.st_size, size)
						      : -errno;
}

/* Never repeated after an error: the kernel marks pages clean that it could not write. */
static int files_sync(void *ctx, int fd)
{
	(void)ctx;
	return fdatasync(fd) == 0 ? 0 : -errno;
}

static ssize_t files_list(void *ctx, const char *folder, char *names, size_t size)
{
	const struct dirent *entry;
	DIR *all = opendir(folder);
	size_t len = 0;
	ssize_t result = 0;

	(void)ctx;
	if (all == NULL)
		return -errno;
	/* Safe: this thread alone has the stream. */
	while (result == 0 && (entry = readdir(all)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
		size_t more = strlen(entry->d_name) + 1;
		struct stat status;

		if (fstatat(dirfd(all), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
		    S_ISDIR(status.st_mode))
			continue;
		if (more > size - len)
			result = -EFBIG;
		else
			memcpy(names + len, entry->d_name, more);
		len += more;
	}
	(void)closedir(all);
	return result ? result : (ssize_t)len;
}

static int files_remove(void *ctx, const char *path)
{
	(void)ctx;
	return unlink(path) == 0 ? 0 : -errno;
}

const struct spoke_files spokei_host_files = {
	.read = files_read,
	.replace = files_replace,
	.append = files_append,
	.watch = open_watch,
	.changed = has_changed,
	.unwatch = close_watch,
	.lock = take_lock,
	.unlock = release_lock,
	.is_locked = is_lock_held,
	.drop = drop_lock,
	.sweep = sweep,
	.read_secret = files_read_secret,
	.open_log = files_open_log,
	.write_at = files_write_at,
	.allocate = files_allocate,
	.sync = files_sync,
	.sync_folder = files_sync_folder,
	.list = files_list,
	.remove = files_remove,
};
