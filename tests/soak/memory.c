/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <spoke/host.h>

#include <stdatomic.h>

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
	env = *spoke_host_env();
	env.resize = resize;
	return &env;
}

uint64_t memory_used(void)
{
	return used;
}
