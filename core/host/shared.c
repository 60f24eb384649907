/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is shared with a process at the other end of a unix socket: a file in memory, whose
 * descriptor is sent over the socket and closed on both sides once it is mapped. Its seals forbid
 * both sides to change its size, and its pages are there before it is sent, so that a system
 * without memory refuses the file, and no access to the mapping fails. The peer is not trusted: a
 * file without these seals or pages, or one of another file system, is refused.
 *
 * No seal keeps the process that has made the file from giving its pages back. The system then
 * makes them again at the next access, which fails only if it counts memory strictly
 * (vm.overcommit_memory is 2) and has none left.
 */
#define _GNU_SOURCE
#include "core/host/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

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
