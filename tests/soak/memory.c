/* SPDX-License-Identifier: Apache-2.0 */
/* Counting allocator, and settings of malloc that make leaks visible. */
#define _GNU_SOURCE
#include "memory.h"

#include <spoke/host.h>

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define LARGE (8 * 1024)          /* bytes */
#define TUNABLES "GLIBC_TUNABLES" /* read by the C library when a program starts */

static bool plain;
static struct spoke_env env;
static _Atomic uint64_t used;

static void *resize(void *ctx, void *memory, size_t old_len, size_t len)
{
	void *moved = spoke_host_env()->resize(ctx, memory, old_len, len);

	if (moved || len == 0) {
		used += len;
		used -= memory ? old_len : 0;
	}
	return moved;
}

/*
 * glibc caches seven blocks of each of 64 sizes for each thread and never returns them. Each of
 * them may pin a page, and a thread that seldom allocates takes hours to fill its cache. Together
 * the caches exceed the memory of all connections and would hide a leak.
 */
bool memory_begin(bool as_it_comes, char **argv)
{
	plain = as_it_comes;
	if (plain || getenv(TUNABLES))
		return true;
	if (setenv(TUNABLES, "glibc.malloc.tcache_count=0", 0) == 0)
		(void)execv("/proc/self/exe", argv);
	return false;
}

const struct spoke_env *memory_env(void)
{
	if (env.resize == NULL && !plain) {
		/*
		 * By default glibc raises its mmap threshold with freed sizes and uses an arena for
		 * each thread. Then resident memory depends on the position of blocks, not on their
		 * size.
		 */
		(void)mallopt(M_ARENA_MAX, 1);
		(void)mallopt(M_MMAP_THRESHOLD, LARGE);
		(void)mallopt(M_TRIM_THRESHOLD, LARGE);
	}
	if (env.resize == NULL) {
		env = *spoke_host_env();
		env.resize = resize;
	}
	return &env;
}

uint64_t memory_used(void)
{
	return used;
}

void memory_tell(struct desk *desk)
{
	desk->memory = used;
	if (board->trim && !desk->trimmed) {
		struct mallinfo2 info;

		(void)malloc_trim(0);
		info = mallinfo2();
		desk->heap = info.uordblks + info.hblkhd;
		desk->holes = info.fordblks;
	}
	desk->trimmed = board->trim;
}
