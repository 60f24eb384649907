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

#endif
