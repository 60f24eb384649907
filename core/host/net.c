/* SPDX-License-Identifier: Apache-2.0 */
/* The network of the real environment: unix sockets with their files and memory that is shared over
 * them, and all functions of struct spoke_net. */
#define _GNU_SOURCE
#include "core/base/address.h"
#include "core/host/host.h"
#include "timer/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/un.h>
#include <unistd.h>

/* --- the file of a listening unix socket
 *
 * How its path is taken and given back. The socket of a dead listener, which refuses to connect, is
 * replaced. Any other file at the path is left alone, and the path counts as in use. If two
 * processes start on one path at the same moment, one of them gets an error. A listener remembers
 * device and inode of its file and removes the file on close if it is still there; a forked child
 * that closes its copy does not. The list belongs to the process, behind a mutex.
 *
 * A path can be bound before its owner listens, and then looks like a dead socket. So a listener
 * checks afterwards that its file is still there, and a process that wants to remove a file checks
 * right before that it is still the one that refused. */

#define UMASK UINT32_MAX /* a mode: as the umask of the process says */

struct sockfile {
	struct sockfile *next;
	int fd;
	pid_t owner; /* the process that bound it */
	dev_t device;
	ino_t inode;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

static pthread_mutex_t listeners_lock = PTHREAD_MUTEX_INITIALIZER;
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
	if (mode == UMASK)
		return 0;
	return fchmod(fd, (mode_t)mode) == 0 ? 0 : -errno;
}

/* Adds the bits that the umask has taken. Does not follow a link that was put in its place. */
static int widen(const char *path, uint32_t mode)
{
	if (mode == UMASK)
		return 0;
	return fchmodat(AT_FDCWD, path, (mode_t)mode, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
}

/* Binds `fd` to the path and listens. The path is not empty, ends with a NUL and fits a socket
 * address. `mode`: the permission bits of the file, which never has more than these. Returns 0 or a
 * negative errno; after an error `fd` may be bound and can only be closed. */
static int listen_at_path(int fd, const char *path, int backlog, uint32_t mode)
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

	(void)pthread_mutex_lock(&listeners_lock);
	file->next = listeners;
	listeners = file;
	atomic_fetch_add(&listeners_count, 1);
	(void)pthread_mutex_unlock(&listeners_lock);
	return 0;

err_after_bind:
	if (still_there(path, file))
		(void)unlink(path);
err_after_calloc:
	free(file);
	return error;
}

/* Gives back the path of a descriptor, if it has one, before it is closed. */
static void closing_sockfile(int fd)
{
	struct sockfile **link = &listeners;
	struct sockfile *file;

	if (atomic_load(&listeners_count) == 0)
		return;
	(void)pthread_mutex_lock(&listeners_lock);
	while (*link && (*link)->fd != fd)
		link = &(*link)->next;
	file = *link;
	if (file) {
		*link = file->next;
		atomic_fetch_sub(&listeners_count, 1);
	}
	(void)pthread_mutex_unlock(&listeners_lock);
	if (file && file->owner == getpid() && still_there(file->path, file))
		(void)unlink(file->path);
	free(file);
}

/* --- sockets
 *
 * Unix sockets: the user of the peer, and listening with a mode. */

static int net_credentials(void *ctx, int fd, uint32_t *ret_uid, uint32_t *ret_gid,
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

/* A socket that a service manager has passed keeps its own mode. */
static int net_listen_mode(void *ctx, const struct spoke_address *where, int backlog, uint32_t mode,
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
	error = listen_at_path(fd, at.sun_path, backlog, mode);
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

static void net_unshare(void *ctx, struct spoke_shared *shared)
{
	(void)ctx;
	if (shared->memory)
		(void)munmap(shared->memory, shared->size);
	*shared = (struct spoke_shared){ NULL, 0 };
}

static int net_share(void *ctx, int fd, const struct iovec *bytes, size_t size,
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
			net_unshare(ctx, &made);
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

static ssize_t net_shared(void *ctx, int fd, const struct iovec *bytes, size_t size_max,
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

/* --- all sockets */

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

enum {
	KEEP_MAX_S = 32767, /* the largest value that Linux accepts */
	PROBES_MIN = 2,
	PROBES_MAX = 4,
};

/* An address in the form that system calls expect: aligned. */
union any_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
	struct sockaddr_storage storage;
};

/* Returns the family, or AF_UNSPEC if these bytes are no address of ours. */
static int load(const struct spoke_address *address, union any_address *ret_at)
{
	*ret_at = (union any_address){ .storage = { .ss_family = AF_UNSPEC } };
	if (address->len < sizeof(sa_family_t) || address->len > sizeof(address->bytes))
		return AF_UNSPEC;
	memcpy(ret_at, address->bytes, address->len);
	switch (ret_at->any.sa_family) {
	case AF_INET:
		return address->len == sizeof(ret_at->v4) ? AF_INET : AF_UNSPEC;
	case AF_INET6:
		return address->len == sizeof(ret_at->v6) ? AF_INET6 : AF_UNSPEC;
	case AF_UNIX:
		return address->len > offsetof(struct sockaddr_un, sun_path) ? AF_UNIX : AF_UNSPEC;
	default:
		return AF_UNSPEC;
	}
}

static void store(const union any_address *at, socklen_t len, struct spoke_address *ret_address)
{
	if (len > sizeof(ret_address->bytes))
		len = sizeof(ret_address->bytes);
	*ret_address = (struct spoke_address){ .len = len };
	memcpy(ret_address->bytes, at, len);
}

static int set_option(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) == 0 ? 0 : -errno;
}

static int open_socket(int family, int *ret_fd)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int error = fd < 0 ? -errno : 0;

	if (error)
		return error;
	if (family != AF_UNIX)
		error = set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (error) {
		(void)close(fd);
		return error;
	}
	*ret_fd = fd;
	return 0;
}

static int net_connect(void *ctx, const struct spoke_address *to, int *ret_fd)
{
	union any_address at;
	int family = load(to, &at);
	int fd = -1;
	int error;

	(void)ctx;
	if (family == AF_UNSPEC)
		return -EAFNOSUPPORT;
	error = open_socket(family, &fd);
	if (error)
		return error;
	if (connect(fd, &at.any, to->len) != 0)
		error = errno == EINTR ? -EINPROGRESS : -errno;
	if (error && error != -EINPROGRESS) {
		(void)close(fd);
		return error;
	}
	*ret_fd = fd;
	return error;
}

static int net_finish(void *ctx, int fd)
{
	union any_address peer;
	socklen_t len = sizeof(peer);
	socklen_t error_len = sizeof(int);
	int error = 0;

	(void)ctx;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_len) != 0)
		return -errno;
	if (error)
		return -error;
	if (getpeername(fd, &peer.any, &len) != 0)
		return errno == ENOTCONN ? -EINPROGRESS : -errno;
	return 0;
}

static int listen_unix(int fd, const union any_address *at, socklen_t len, int backlog)
{
	if (at->local.sun_path[0] != '\0')
		return listen_at_path(fd, at->local.sun_path, backlog, UMASK);
	if (bind(fd, &at->any, len) != 0 || listen(fd, backlog) != 0)
		return -errno;
	return 0;
}

/* Accepted sockets inherit TCP_NODELAY from here. */
static int listen_tcp(int fd, const union any_address *at, socklen_t len, int backlog, bool shared)
{
	int error = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);

	if (!error && shared)
		error = set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (!error && at->any.sa_family == AF_INET6)
		error = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (error)
		return error;
	if (bind(fd, &at->any, len) != 0 || listen(fd, backlog) != 0)
		return -errno;
	return 0;
}

static int listen_at(const struct spoke_address *where, int backlog, bool shared, int *ret_fd)
{
	union any_address at;
	int family = load(where, &at);
	int fd = -1;
	int error;

	if (family == AF_UNSPEC)
		return -EAFNOSUPPORT;
	if (family == AF_UNIX && shared)
		return -EOPNOTSUPP;
	error = open_socket(family, &fd);
	if (error)
		return error;
	if (family == AF_UNIX)
		error = listen_unix(fd, &at, where->len, backlog);
	else
		error = listen_tcp(fd, &at, where->len, backlog, shared);
	if (error) {
		(void)close(fd);
		return error;
	}
	*ret_fd = fd;
	return 0;
}

static int net_listen(void *ctx, const struct spoke_address *where, int backlog, int *ret_fd)
{
	int passed = spokei_passed_take(where);

	(void)ctx;
	if (passed == -ENOENT)
		return listen_at(where, backlog, false, ret_fd);
	if (passed < 0)
		return passed;
	*ret_fd = passed;
	return 0;
}

static int net_passed(void *ctx, const char *name, struct spoke_address *ret_address)
{
	(void)ctx;
	return spokei_passed_find(name, ret_address);
}

static int net_listen_shared(void *ctx, const struct spoke_address *where, int backlog, int *ret_fd)
{
	(void)ctx;
	return listen_at(where, backlog, true, ret_fd);
}

/* Linux reports errors of a connection in the backlog here: that connection is gone, the next may
 * be fine. */
static int accept_error(int error)
{
	switch (error) {
	case ENETDOWN:
	case EPROTO:
	case ENOPROTOOPT:
	case EHOSTDOWN:
	case ENONET:
	case EHOSTUNREACH:
	case EOPNOTSUPP:
	case ENETUNREACH:
	case EPERM:
		return -ECONNABORTED;
	default:
		return -error;
	}
}

static int net_accept(void *ctx, int fd, int *ret_fd, struct spoke_address *ret_peer)
{
	union any_address peer;
	socklen_t len;
	int accepted;

	(void)ctx;
	do {
		len = sizeof(peer);
		accepted = accept4(fd, &peer.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	} while (accepted < 0 && errno == EINTR);
	if (accepted < 0)
		return accept_error(errno);
	*ret_fd = accepted;
	store(&peer, len, ret_peer);
	return 0;
}

static ssize_t net_read(void *ctx, int fd, void *bytes, size_t len)
{
	ssize_t got;

	(void)ctx;
	do
		got = recv(fd, bytes, len, 0);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

static ssize_t net_write(void *ctx, int fd, const struct iovec *parts, int count)
{
	/* The system does not change the parts; only its struct is not const. */
	union {
		const struct iovec *given;
		struct iovec *taken;
	} cast = { .given = parts };
	struct msghdr message = { .msg_iov = cast.taken };
	ssize_t written;

	(void)ctx;
	SPOKE_ASSERT(count > 0);
	message.msg_iovlen = (size_t)(count < IOV_MAX ? count : IOV_MAX);
	/* One part needs no message struct, which the system would have to copy first. */
	do
		written = count == 1 ? send(fd, parts->iov_base, parts->iov_len, MSG_NOSIGNAL)
				     : sendmsg(fd, &message, MSG_NOSIGNAL);
	while (written < 0 && errno == EINTR);
	return written < 0 ? -errno : written;
}

static int net_shut(void *ctx, int fd)
{
	(void)ctx;
	return shutdown(fd, SHUT_WR) == 0 ? 0 : -errno;
}

static int net_spare(void *ctx, int *ret_fd)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)ctx;
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static void net_close(void *ctx, int fd)
{
	int result;

	(void)ctx;
	closing_sockfile(fd);
	result = close(fd);
	SPOKE_ASSERT(result == 0 || errno != EBADF);
}

static int net_local(void *ctx, int fd, struct spoke_address *ret_address)
{
	union any_address at;
	socklen_t len = sizeof(at);

	(void)ctx;
	if (getsockname(fd, &at.any, &len) != 0)
		return -errno;
	store(&at, len, ret_address);
	return 0;
}

static int net_peer(void *ctx, int fd, struct spoke_address *ret_address)
{
	union any_address at;
	socklen_t len = sizeof(at);

	(void)ctx;
	if (getpeername(fd, &at.any, &len) != 0)
		return -errno;
	store(&at, len, ret_address);
	return 0;
}

static int net_parse(void *ctx, const char *text, struct spoke_address *ret_address)
{
	(void)ctx;
	return spokei_address_parse(text, ret_address);
}

static void net_print(void *ctx, const struct spoke_address *address, char *text, size_t size)
{
	(void)ctx;
	spokei_address_print(address, text, size);
}

static int resolve_error(int error)
{
	switch (error) {
	case EAI_AGAIN:
		return -EAGAIN;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_SYSTEM:
		return errno ? -errno : -EIO;
	case EAI_NONAME:
	case EAI_NODATA:
		return -ENOENT;
	default:
		return -EIO;
	}
}

/* In the system's order (RFC 6724), which prefers reachable addresses. */
static int net_resolve(void *ctx, const char *host, uint16_t port, struct spoke_address *ret,
		       int max)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	int count = 0;
	int error;

	(void)ctx;
	error = getaddrinfo(host, NULL, &hints, &found);
	if (error)
		return resolve_error(error);
	for (const struct addrinfo *one = found; one && count < max; one = one->ai_next) {
		union any_address at;

		if (one->ai_addrlen > sizeof(at))
			continue;
		memcpy(&at, one->ai_addr, one->ai_addrlen);
		if (one->ai_family == AF_INET)
			at.v4.sin_port = htons(port);
		else if (one->ai_family == AF_INET6)
			at.v6.sin6_port = htons(port);
		else
			continue;
		store(&at, one->ai_addrlen, &ret[count++]);
	}
	freeaddrinfo(found);
	return count > 0 ? count : -ENOENT;
}

/* Converts `ns` to units, rounded up, within the range of the system; 0 stays 0. */
static int in_units(uint64_t ns, uint64_t unit_ns, int max)
{
	uint64_t count = ns / unit_ns + (ns % unit_ns != 0);

	return count < (uint64_t)max ? (int)count : max;
}

/* Like set_option(), but an option that the system does not know is skipped. */
static int set_tcp_option(int fd, int option, int value)
{
	int error = set_option(fd, IPPROTO_TCP, option, value);

	return error == -ENOPROTOOPT ? 0 : error;
}

/* Sends the first keepalive probe after `idle_s`, then 2 to 4 more in about the same time: one lost
 * probe is not a dead peer. */
static int keep_alive(int fd, int idle_s)
{
	int count = idle_s < PROBES_MIN ? PROBES_MIN : idle_s;
	int error;

	if (count > PROBES_MAX)
		count = PROBES_MAX;
	error = set_tcp_option(fd, TCP_KEEPIDLE, idle_s);
	if (!error)
		error = set_tcp_option(fd, TCP_KEEPINTVL, idle_s < count ? 1 : idle_s / count);
	if (!error)
		error = set_tcp_option(fd, TCP_KEEPCNT, count);
	return error;
}

/* If both are set, Linux uses the time without an answer and ignores the number of probes. */
static int net_guard(void *ctx, int fd, uint64_t unanswered_ns, uint64_t keepalive_ns)
{
	int keep_s = in_units(keepalive_ns, NS_PER_S, KEEP_MAX_S);
	int protocol = 0;
	socklen_t len = sizeof(protocol);
	int error;

	(void)ctx;
	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) != 0)
		return -errno;
	if (protocol != IPPROTO_TCP)
		return 0;
	error = set_tcp_option(fd, TCP_USER_TIMEOUT, in_units(unanswered_ns, NS_PER_MS, INT_MAX));
	if (!error && keep_s > 0)
		error = keep_alive(fd, keep_s);
	return error ? error : set_option(fd, SOL_SOCKET, SO_KEEPALIVE, keep_s > 0);
}

static ssize_t net_unsent(void *ctx, int fd)
{
	int count = 0;

	(void)ctx;
	return ioctl(fd, SIOCOUTQ, &count) == 0 ? count : -errno;
}

static int net_send_buffer(void *ctx, int fd, uint32_t bytes)
{
	(void)ctx;
	return set_option(fd, SOL_SOCKET, SO_SNDBUF, bytes < INT_MAX ? (int)bytes : INT_MAX);
}

const struct spoke_net spokei_host_net = {
	.connect = net_connect,
	.finish = net_finish,
	.listen = net_listen,
	.accept = net_accept,
	.read = net_read,
	.write = net_write,
	.shut = net_shut,
	.close = net_close,
	.spare = net_spare,
	.local = net_local,
	.peer = net_peer,
	.parse = net_parse,
	.print = net_print,
	.resolve = net_resolve,
	.guard = net_guard,
	.unsent = net_unsent,
	.listen_shared = net_listen_shared,
	.passed = net_passed,
	.send_buffer = net_send_buffer,
	.credentials = net_credentials,
	.listen_mode = net_listen_mode,
	.share = net_share,
	.shared = net_shared,
	.unshare = net_unshare,
};
