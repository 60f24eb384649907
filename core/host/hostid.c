/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of this host and of this process's view of its files: a number made of the kernel's
 * boot id, the mount namespace and the root folder. Two processes with equal numbers see the same
 * file at the same absolute path. It is read each time, because a process can enter another
 * namespace or root.
 */
#define _GNU_SOURCE
#include "core/host/hostid.h"

#include "core/base/mix.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define MOUNTS "/proc/self/ns/mnt"
#define BOOT_ID_LEN 36u /* letters of a UUID */

/* Reads the boot id, which differs on each machine and after each boot. */
static int read_boot_id(char id[BOOT_ID_LEN])
{
	int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
	ssize_t got;
	int error;

	if (fd < 0)
		return -errno;
	got = read(fd, id, BOOT_ID_LEN);
	error = got < 0 ? -errno : 0;
	(void)close(fd);
	if (error)
		return error;
	return got == (ssize_t)BOOT_ID_LEN ? 0 : -EIO;
}

/* Mixes a word into a hash, so that each bit of either changes about half of the result. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash ^= word + UINT64_C(0x9e3779b97f4a7c15) + (hash << 6) + (hash >> 2);
	return spokei_mix(hash);
}

static uint64_t mix_text(uint64_t hash, const char *text, size_t len)
{
	for (size_t at = 0; at < len; at += sizeof(uint64_t)) {
		size_t left = len - at;
		uint64_t word = 0;

		memcpy(&word, text + at, left < sizeof(word) ? left : sizeof(word));
		hash = mix(hash, word);
	}
	return hash;
}

int spokei_hostid(void *ctx, uint64_t *ret_id)
{
	char boot_id[BOOT_ID_LEN];
	struct stat mounts;
	struct stat root;
	int error = read_boot_id(boot_id);
	uint64_t id;

	(void)ctx;
	if (error)
		return error;
	if (stat(MOUNTS, &mounts) != 0 || stat("/", &root) != 0)
		return -errno;
	id = mix_text(0, boot_id, sizeof(boot_id));
	id = mix(mix(id, mounts.st_dev), mounts.st_ino);
	id = mix(mix(id, root.st_dev), root.st_ino);
	*ret_id = id ? id : 1;
	return 0;
}
