/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "memory.h"

#include <spoke/host.h>

#include <malloc.h>
#include <stdatomic.h>

#define LARGE (8 * 1024) /* bytes */

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

const struct spoke_env *memory_env(void)
{
	if (env.resize == NULL) {
		/* By itself the C library raises its threshold with what is freed, and has heaps
		 * for threads: then what is resident says where pieces came to lie, not how much
		 * they are. */
		(void)mallopt(M_ARENA_MAX, 1);
		(void)mallopt(M_MMAP_THRESHOLD, LARGE);
		(void)mallopt(M_TRIM_THRESHOLD, LARGE);
		env = *spoke_host_env();
		env.resize = resize;
	}
	return &env;
}

void memory_trim(void)
{
	(void)malloc_trim(0);
}

uint64_t memory_used(void)
{
	return used;
}
