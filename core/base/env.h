/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment as the rooms above it use it: memory whose size is checked and whose content is
 * known. Whoever allocates keeps the size, for the environment may need it back.
 */
#ifndef SPOKEI_CORE_BASE_ENV_H
#define SPOKEI_CORE_BASE_ENV_H

#include "timer/base.h"

#include <spoke/env.h>

#include <string.h>

/* `count` cells of `size` bytes, all zero; NULL: no memory, or more than a size can say. */
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

/* `size` bytes with anything in them: their pages are touched when they are used. NULL: no memory.
 */
static inline void *spokei_alloc_unset(const struct spoke_env *env, size_t size)
{
	return env->resize(env->ctx, NULL, 0, size);
}

/* Gives back what these gave; NULL is fine. */
static inline void spokei_free(const struct spoke_env *env, void *memory, size_t count, size_t size)
{
	if (memory)
		(void)env->resize(env->ctx, memory, count * size, 0);
}

#endif
