/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the environment: sizes are checked and blocks are zeroed. The caller keeps the size of
 * a block, because freeing needs it.
 */
#ifndef SPOKEI_CORE_BASE_ENV_H
#define SPOKEI_CORE_BASE_ENV_H

#include "timer/base.h"

#include <spoke/env.h>

#include <string.h>

/* Allocates `count` cells of `size` bytes, all zero. Returns NULL if there is no memory or the size
 * overflows. */
static inline void *spokei_alloc(const struct spoke_env *env, size_t count, size_t size)
{
	void *memory;

	if (count == 0 || size > SIZE_MAX / count)
		return NULL;
	memory = env->resize(env->ctx, NULL, 0, count * size);
	if (memory)
		memset(memory, 0, count * size);
	return memory;
}

/* Allocates `size` bytes without initialising them, so pages are touched only when they are used.
 * Returns NULL if there is no memory. */
static inline void *spokei_alloc_unset(const struct spoke_env *env, size_t size)
{
	return env->resize(env->ctx, NULL, 0, size);
}

/* Frees a block of either function; NULL is allowed. */
static inline void spokei_free(const struct spoke_env *env, void *memory, size_t count, size_t size)
{
	if (memory)
		(void)env->resize(env->ctx, memory, count * size, 0);
}

/*
 * Frees the end of a block of `*size` bytes, but keeps `keep` bytes, and returns the block. Large
 * blocks are freed so in steps, because giving back all their pages at once takes milliseconds. If
 * the environment cannot do that, the block stays as it is.
 */
static inline void *spokei_free_end(const struct spoke_env *env, void *memory, size_t *size,
				    size_t keep)
{
	void *kept = env->resize(env->ctx, memory, *size, keep);

	if (kept)
		*size = keep;
	return kept ? kept : memory;
}

#endif
