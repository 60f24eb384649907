/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets: their files, the user of the peer, and memory that is shared over them. */
#define _GNU_SOURCE
#include "core/host/local.h"

#include "timer/base.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/un.h>
#include <unistd.h>

/* --- the file of a listener
 *
 * Files of listening unix sockets. A path can be bound before its owner listens, and then looks
 * like a dead socket. So a listener checks afterwards that its file is still there, and a process
 * that wants to remove a file checks right before that it is still the one that refused. */

struct sockfile {
	struct sockfile *next;
	int fd;
	pid_t owner; /* the process that bound it */
	dev_t device;
	ino_t inode;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sockfile *listeners;  /* guarded by the lock */
static atomic_uint listeners_count; /* read without the lock: most descriptors have no file */

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
	file->next = listeners;
	listeners = file;
	atomic_fetch_add(&listeners_count, 1);
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
	struct sockfile **link = &listeners;
	struct sockfile *file;

	if (atomic_load(&listeners_count) == 0)
		return;
	(void)pthread_mutex_lock(&lock);
	while (*link && (*link)->fd != fd)
		link = &(*link)->next;
	file = *link;
	if (file) {
		*link = file->next;
		atomic_fetch_sub(&listeners_count, 1);
	}
	(void)pthread_mutex_unlock(&lock);
	if (file && file->owner == getpid() && still_there(file->path, file))
		(void)unlink(file->path);
	free(file);
}

/* --- sockets
 *
 * Unix sockets: the user of the peer, and listening with a mode. */

int spokei_local_credentials(void *ctx, int fd, uint32_t *ret_uid, uint32_t *ret_gid,
			     int32_t *ret_pid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	(void)ctx;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		return -errno;
	/* The system gives this to sockets without a peer on this machine. */
	if (peer.uid == (uid_t)-1)
		return -EOPNOTSUPP;
	*ret_uid = peer.uid;
	*ret_gid = peer.gid;
	*ret_pid = peer.pid;
	return 0;
}

/* Reads the path of an address, which ends with a NUL. Returns whether it has one. */
static bool read_path(const struct spoke_address *where, struct sockaddr_un *ret_at)
{
	*ret_at = (struct sockaddr_un){ .sun_family = AF_UNSPEC };
	if (where->len <= offsetof(struct sockaddr_un, sun_path) || where->len > sizeof(*ret_at))
		return false;
	memcpy(ret_at, where->bytes, where->len);
	return ret_at->sun_family == AF_UNIX && ret_at->sun_path[0] != '\0';
}

int spokei_local_listen(void *ctx, const struct spoke_address *where, int backlog, uint32_t mode,
			int *ret_fd)
{
	struct sockaddr_un at;
	int error;
	int fd;

	(void)ctx;
	if (!read_path(where, &at))
		return -EOPNOTSUPP;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	error = spokei_sockfile_listen(fd, at.sun_path, backlog, mode);
	if (error)
		(void)close(fd);
	else
		*ret_fd = fd;
	return error;
}

/* --- shared memory
 *
 * Memory that is shared with a process at the other end of a unix socket: a file in memory, whose
 * descriptor is sent over the socket and closed on both sides once it is mapped. Its seals forbid
 * both sides to change its size, and its pages are there before it is sent, so that a system
 * without memory refuses the file, and no access to the mapping fails. The peer is not trusted: a
 * file without these seals or pages, or one of another file system, is refused.
 *
 * No seal keeps the process that has made the file from giving its pages back. The system then
 * makes them again at the next access, which fails only if it counts memory strictly
 * (vm.overcommit_memory is 2) and has none left. */

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define FDS_MAX 8       /* descriptors that are received, to be closed; the system closes others */
#define BLOCK_BYTES 512 /* of st_blocks */

/* Room for the descriptors of one message, aligned as the system wants it. */
union fds_room {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
};

/* Maps the file and closes it. */
static int map(int fd, size_t size, struct spoke_shared *ret)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory != MAP_FAILED) {
		*ret = (struct spoke_shared){ memory, size };
		return 0;
	}
	/* Not EAGAIN, which would mean: when the socket is ready. A seal forbids to write. */
	return errno == EPERM ? -EBADMSG : -ENOMEM;
}

/* Gives an empty file its size, with all pages. */
static int fill(int fd, size_t size)
{
	while (fallocate(fd, 0, 0, (off_t)size) != 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static int make_file(size_t size, int *ret_fd)
{
	int fd = memfd_create("spoke", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int error;

	if (fd < 0)
		return -errno;
	error = fill(fd, size);
	if (!error && fcntl(fd, F_ADD_SEALS, SEALS) != 0)
		error = -errno;
	if (error)
		(void)close(fd);
	else
		*ret_fd = fd;
	return error;
}

/* Sends the bytes and the descriptor, which the system does in one piece, if at all. */
static int send_file(int fd, const struct iovec *bytes, int file)
{
	struct iovec part = *bytes;
	union fds_room room = { .bytes = { 0 } };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = room.bytes,
		.msg_controllen = CMSG_SPACE(sizeof(int)),
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	ssize_t sent;

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &file, sizeof(int));
	do
		sent = sendmsg(fd, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return errno == EINVAL ? -EOPNOTSUPP : -errno;
	return (size_t)sent == part.iov_len ? 0 : -EPROTO;
}

int spokei_shared_give(void *ctx, int fd, const struct iovec *bytes, size_t size,
		       struct spoke_shared *ret)
{
	struct spoke_shared made = { NULL, 0 };
	int file = -1;
	int error = make_file(size, &file);

	if (error)
		return error;
	error = map(file, size, &made);
	if (!error) {
		error = send_file(fd, bytes, file);
		if (error)
			spokei_shared_drop(ctx, &made);
	}
	(void)close(file);
	if (!error)
		*ret = made;
	return error;
}

/* Takes the only descriptor out of a message, and closes all if there are more: the system puts
 * them into one control message. Returns it, or -1; -ENOMEM: this process has no room for it. */
static int take_file(struct msghdr *message)
{
	const struct cmsghdr *head = CMSG_FIRSTHDR(message);
	bool cut = (message->msg_flags & MSG_CTRUNC) != 0;
	size_t len = 0;
	int files[FDS_MAX] = { -1 };

	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		len = head->cmsg_len - CMSG_LEN(0);
	if (len == 0)
		return cut ? -ENOMEM : -1;
	memcpy(files, CMSG_DATA(head), len);
	if (len == sizeof(int) && !cut)
		return files[0];
	for (size_t i = 0; i < len / sizeof(int); i++)
		(void)close(files[i]);
	return -1;
}

/* Checks that the size of the file is known and stays, and that its pages are there. */
static int measure(int file, size_t size_max, size_t *ret_size)
{
	struct statfs system;
	struct stat stat;
	int seals = fcntl(file, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS) != SEALS)
		return -EBADMSG;
	/* Pages of other kinds may run out at any access. */
	if (fstatfs(file, &system) != 0 || system.f_type != TMPFS_MAGIC)
		return -EBADMSG;
	if (fstat(file, &stat) != 0)
		return -errno;
	if (stat.st_size <= 0 || (uintmax_t)stat.st_size > size_max)
		return -EBADMSG;
	/* This side would have to pay for the others. */
	if ((uintmax_t)stat.st_blocks * BLOCK_BYTES < (uintmax_t)stat.st_size)
		return -EBADMSG;
	*ret_size = (size_t)stat.st_size;
	return 0;
}

ssize_t spokei_shared_take(void *ctx, int fd, const struct iovec *bytes, size_t size_max,
			   struct spoke_shared *ret)
{
	struct iovec part = *bytes;
	union fds_room room;
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = room.bytes,
		.msg_controllen = sizeof(room.bytes),
	};
	size_t size = 0;
	int file;
	int error;
	ssize_t got;

	(void)ctx;
	*ret = (struct spoke_shared){ NULL, 0 };
	do
		got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	file = take_file(&message);
	if (file < 0)
		return file == -ENOMEM ? -ENOMEM : got;
	error = measure(file, size_max, &size);
	if (!error)
		error = map(file, size, ret);
	(void)close(file);
	return error ? error : got;
}

void spokei_shared_drop(void *ctx, struct spoke_shared *shared)
{
	(void)ctx;
	if (shared->memory)
		(void)munmap(shared->memory, shared->size);
	*shared = (struct spoke_shared){ NULL, 0 };
}
