/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is shared over a unix socket: what an honest peer sends, and what a hostile one may.
 */
#define _GNU_SOURCE

#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

enum {
	SIZE = 8192,
	SIZE_MAX_HERE = 65536,
};

static struct {
	const struct spoke_env *env;
	int fd[2];
	struct spoke_shared given;
	struct spoke_shared got;
	char bytes[8];
	unsigned open; /* descriptors at the beginning */
} rig;

/* Replaces a function of the C library. */
#define IN_PLACE_OF(name) __asm__(name) __attribute__((visibility("default")))

/* How the system gives pages. */
static struct {
	int error;           /* not 0: fallocate() fails with this */
	unsigned interrupts; /* it is interrupted so often before */
} machine;

int shared_fallocate(int fd, int mode, off_t at, off_t len) IN_PLACE_OF("fallocate");

int shared_fallocate(int fd, int mode, off_t at, off_t len)
{
	if (machine.interrupts > 0) {
		machine.interrupts--;
		errno = EINTR;
		return -1;
	}
	if (machine.error) {
		errno = machine.error;
		return -1;
	}
	assert_int_equal(mode, 0);
	errno = posix_fallocate(fd, at, len);
	return errno ? -1 : 0;
}

static unsigned count_open(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	assert_int_equal(closedir(folder), 0);
	return count;
}

static int set_up(void **state)
{
	(void)state;
	memset(&rig, 0, sizeof(rig));
	rig.env = spoke_host_env();
	rig.open = count_open();
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, rig.fd);
}

/* No descriptor is left open, whatever has come. */
STEP(tear_down)
{
	if (rig.given.memory)
		rig.env->net->unshare(rig.env->ctx, &rig.given);
	if (rig.got.memory)
		rig.env->net->unshare(rig.env->ctx, &rig.got);
	(void)close(rig.fd[0]);
	(void)close(rig.fd[1]);
	assert_int_equal(count_open(), rig.open);
}

FIXTURE(set_up, tear_down);

static ssize_t take(void)
{
	struct iovec part = { rig.bytes, 4 };

	return rig.env->net->shared(rig.env->ctx, rig.fd[1], &part, SIZE_MAX_HERE, &rig.got);
}

/* Sends four bytes with these descriptors, as a hostile peer might. */
static void send_files(const int *files, unsigned count)
{
	struct iovec part = { (char[]){ "abcd" }, 4 };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 16)];
	} room = { .bytes = { 0 } };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *head = &room.align;

	if (count > 0) {
		message.msg_control = room.bytes;
		message.msg_controllen = (socklen_t)CMSG_SPACE(sizeof(int) * count);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = (socklen_t)CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(head), files, sizeof(int) * count);
	}
	assert_int_equal(sendmsg(rig.fd[0], &message, 0), 4);
}

/* Makes a file whose first `filled` bytes have pages. */
static int make_sparse_file(off_t size, off_t filled, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	if (filled > 0)
		assert_int_equal(posix_fallocate(fd, 0, filled), 0);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static int make_file(off_t size, int seals)
{
	return make_sparse_file(size, size, seals);
}

static void send_one(int fd)
{
	send_files(&fd, 1);
	(void)close(fd);
}

TEST(memory_that_is_shared_is_the_same_on_both_sides)
{
	struct iovec part = { (char[]){ "abcd" }, 4 };

	assert_int_equal(rig.env->net->share(rig.env->ctx, rig.fd[0], &part, SIZE, &rig.given), 0);
	assert_int_equal(take(), 4);
	assert_memory_equal(rig.bytes, "abcd", 4);
	assert_int_equal(rig.got.size, SIZE);
	assert_ptr_not_equal(rig.got.memory, rig.given.memory);
	for (unsigned i = 0; i < SIZE; i++)
		assert_int_equal(((unsigned char *)rig.got.memory)[i], 0);
	((char *)rig.given.memory)[SIZE - 1] = 7;
	assert_int_equal(((char *)rig.got.memory)[SIZE - 1], 7);
}

TEST(memory_outlives_the_peer_that_has_made_it)
{
	struct iovec part = { (char[]){ "abcd" }, 4 };

	assert_int_equal(rig.env->net->share(rig.env->ctx, rig.fd[0], &part, SIZE, &rig.given), 0);
	assert_int_equal(take(), 4);
	((char *)rig.given.memory)[0] = 9;
	rig.env->net->unshare(rig.env->ctx, &rig.given);
	assert_null(rig.given.memory);
	assert_int_equal(((char *)rig.got.memory)[0], 9);
}

TEST(memory_is_not_sent_over_other_sockets)
{
	struct iovec part = { (char[]){ "abcd" }, 4 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(rig.env->net->share(rig.env->ctx, fd, &part, SIZE, &rig.given) < 0);
	assert_null(rig.given.memory);
	(void)close(fd);
}

TEST(bytes_without_memory_are_taken_as_they_are)
{
	assert_int_equal(take(), -EAGAIN);
	send_files(NULL, 0);
	assert_int_equal(take(), 4);
	assert_null(rig.got.memory);
	assert_int_equal(shutdown(rig.fd[0], SHUT_WR), 0);
	assert_int_equal(take(), 0);
}

TEST(memory_that_could_shrink_is_refused)
{
	static const int seals[] = { 0, F_SEAL_GROW, F_SEAL_GROW | F_SEAL_SEAL, F_SEAL_SHRINK,
				     F_SEAL_SHRINK | F_SEAL_GROW };

	for (unsigned i = 0; i < sizeof(seals) / sizeof(seals[0]); i++) {
		send_one(make_file(SIZE, seals[i]));
		assert_int_equal(take(), -EBADMSG);
		assert_null(rig.got.memory);
	}
}

TEST(memory_of_a_wrong_size_is_refused)
{
	static const off_t sizes[] = { 0, SIZE_MAX_HERE + 1, INT32_MAX };

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		send_one(make_sparse_file(sizes[i], 0, SEALS));
		assert_int_equal(take(), -EBADMSG);
		assert_null(rig.got.memory);
	}
}

TEST(memory_without_pages_is_refused)
{
	static const off_t filled[] = { 0, 1, SIZE / 2 };

	for (unsigned i = 0; i < sizeof(filled) / sizeof(filled[0]); i++) {
		send_one(make_sparse_file(SIZE, filled[i], SEALS));
		assert_int_equal(take(), -EBADMSG);
		assert_null(rig.got.memory);
	}
}

/* Nothing is sent, no descriptor is left, and the next try succeeds. */
TEST(memory_that_the_system_does_not_have_is_not_made)
{
	static const int errors[] = { ENOSPC, ENOMEM };
	struct iovec part = { (char[]){ "abcd" }, 4 };

	for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		machine.error = errors[i];
		assert_int_equal(rig.env->net->share(rig.env->ctx, rig.fd[0], &part, SIZE,
						     &rig.given),
				 -errors[i]);
		assert_null(rig.given.memory);
		assert_int_equal(take(), -EAGAIN);
		assert_int_equal(count_open(), rig.open + 2);
	}
	machine.error = 0;
	machine.interrupts = 3;
	assert_int_equal(rig.env->net->share(rig.env->ctx, rig.fd[0], &part, SIZE, &rig.given), 0);
	assert_int_equal(machine.interrupts, 0);
	assert_int_equal(take(), 4);
}

TEST(memory_that_cannot_be_written_is_refused)
{
	send_one(make_file(SIZE, SEALS | F_SEAL_WRITE));
	assert_true(take() < 0);
	assert_null(rig.got.memory);
}

TEST(descriptors_that_are_no_memory_are_refused)
{
	send_one(open("/dev/zero", O_RDWR | O_CLOEXEC));
	assert_int_equal(take(), -EBADMSG);
	send_one(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	assert_int_equal(take(), -EBADMSG);
	assert_null(rig.got.memory);
}

/* Also more than there is room for. */
TEST(more_than_one_descriptor_is_as_none)
{
	int files[16];

	for (unsigned i = 0; i < 16; i++)
		files[i] = make_file(SIZE, SEALS);
	send_files(files, 2);
	assert_int_equal(take(), 4);
	assert_null(rig.got.memory);
	send_files(files, 16);
	assert_int_equal(take(), 4);
	assert_null(rig.got.memory);
	for (unsigned i = 0; i < 16; i++)
		(void)close(files[i]);
}

/* Here because this file replaces fallocate(). */
TEST(log_has_its_zeros_where_the_file_system_cannot_allocate)
{
	const struct spoke_files *files = rig.env->files;
	char folder[64];
	char path[80];
	char bytes[100];
	int fd;

	folder_make(folder);
	(void)snprintf(path, sizeof(path), "%s/log", folder);
	assert_int_equal(files->open_log(rig.env->ctx, path, true, &fd), 0);
	machine.error = ENOSPC;
	assert_int_equal(files->allocate(rig.env->ctx, fd, 90), -ENOSPC);
	machine.error = EOPNOTSUPP;
	assert_int_equal(files->write_at(rig.env->ctx, fd, 0, "abc", 3), 0);
	assert_int_equal(files->allocate(rig.env->ctx, fd, 90), 0);
	assert_int_equal(files->read(rig.env->ctx, path, bytes, sizeof(bytes)), 90);
	assert_memory_equal(bytes, "abc\0", 4);
	machine.error = 0;
	machine.interrupts = 2;
	assert_int_equal(files->allocate(rig.env->ctx, fd, 200), 0);
	assert_int_equal(machine.interrupts, 0);
	rig.env->net->close(rig.env->ctx, fd);
	folder_remove(folder);
}
