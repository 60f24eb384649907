/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of listening unix sockets. A path can be bound before its owner listens, and then looks
 * like a dead socket. So a listener checks afterwards that its file is still there, and a process
 * that wants to remove a file checks right before that it is still the one that refused.
 */
#define _GNU_SOURCE
#include "core/host/sockfile.h"

#include "timer/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct sockfile {
	struct sockfile *next;
	int fd;
	pid_t owner; /* the process that bound it */
	dev_t device;
	ino_t inode;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sockfile *files;  /* guarded by the lock */
static atomic_uint files_count; /* read without the lock: most descriptors have no file */

/* Reads the file at the path: 0 if it is a socket. */
static int look_at(const char *path, struct sockfile *ret_file)
{
	struct stat status;

	if (lstat(path, &status) != 0)
		return -errno;
	if (!S_ISSOCK(status.st_mode))
		return -EADDRINUSE;
	ret_file->device = status.st_dev;
	ret_file->inode = status.st_ino;
	return 0;
}

static bool still_there(const char *path, const struct sockfile *file)
{
	struct sockfile now = { 0 };

	return look_at(path, &now) == 0 && now.device == file->device && now.inode == file->inode;
}

/* Returns 0: no process listens there; -EADDRINUSE: one does, or it cannot be determined. */
static int probe(const struct sockaddr_un *at)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int error = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 ||
	    (errno != ECONNREFUSED && errno != ENOENT))
		error = -EADDRINUSE;
	(void)close(fd);
	return error;
}

/* Frees the path if the file there is the socket of a dead listener. */
static int remove_stale(const struct sockaddr_un *at)
{
	struct sockfile found = { 0 };
	int error = look_at(at->sun_path, &found);

	if (error == -ENOENT)
		return 0;
	if (error)
		return -EADDRINUSE;
	for (int round = 0; round < 2; round++) {
		error = probe(at);
		if (error)
			return error;
	}
	if (!still_there(at->sun_path, &found))
		return -EADDRINUSE;
	return unlink(at->sun_path) == 0 || errno == ENOENT ? 0 : -errno;
}

static int bind_path(int fd, const struct sockaddr_un *at)
{
	int error;

	if (bind(fd, (const struct sockaddr *)at, sizeof(*at)) == 0)
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	error = remove_stale(at);
	if (error)
		return error;
	return bind(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 ? 0 : -errno;
}

/* Gives the file its mode before any client can connect. Linux makes the file with the mode of the
 * unbound socket, less the umask, so the file never has more bits than wanted. */
static int narrow(int fd, uint32_t mode)
{
	if (mode == SPOKEI_SOCKFILE_UMASK)
		return 0;
	return fchmod(fd, (mode_t)mode) == 0 ? 0 : -errno;
}

/* Adds the bits that the umask has taken. Does not follow a link that was put in its place. */
static int widen(const char *path, uint32_t mode)
{
	if (mode == SPOKEI_SOCKFILE_UMASK)
		return 0;
	return fchmodat(AT_FDCWD, path, (mode_t)mode, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
}

int spokei_sockfile_listen(int fd, const char *path, int backlog, uint32_t mode)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	struct sockfile *file;
	int error;

	SPOKE_ASSERT(len > 0 && len < sizeof(at.sun_path));
	memcpy(at.sun_path, path, len + 1);
	file = calloc(1, sizeof(*file));
	if (file == NULL)
		return -ENOMEM;
	file->fd = fd;
	file->owner = getpid();
	memcpy(file->path, path, len + 1);

	error = narrow(fd, mode);
	if (error == 0)
		error = bind_path(fd, &at);
	if (error)
		goto err_after_calloc;
	error = look_at(path, file);
	if (error)
		goto err_after_calloc; /* another process has removed it */
	error = widen(path, mode);
	if (error == 0 && listen(fd, backlog) != 0)
		error = -errno;
	else if (!still_there(path, file))
		error = -EADDRINUSE;
	if (error)
		goto err_after_bind;

	(void)pthread_mutex_lock(&lock);
	file->next = files;
	files = file;
	atomic_fetch_add(&files_count, 1);
	(void)pthread_mutex_unlock(&lock);
	return 0;

err_after_bind:
	if (still_there(path, file))
		(void)unlink(path);
err_after_calloc:
	free(file);
	return error;
}

void spokei_sockfile_closing(int fd)
{
	struct sockfile **link = &files;
	struct sockfile *file;

	if (atomic_load(&files_count) == 0)
		return;
	(void)pthread_mutex_lock(&lock);
	while (*link && (*link)->fd != fd)
		link = &(*link)->next;
	file = *link;
	if (file) {
		*link = file->next;
		atomic_fetch_sub(&files_count, 1);
	}
	(void)pthread_mutex_unlock(&lock);
	if (file && file->owner == getpid() && still_there(file->path, file))
		(void)unlink(file->path);
	free(file);
}
