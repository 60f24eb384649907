/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Poisons unused cells of a block, so that AddressSanitizer reports every access to them. Does
 * nothing in other builds.
 */
#ifndef SPOKEI_CORE_MEMORY_HIDDEN_H
#define SPOKEI_CORE_MEMORY_HIDDEN_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

/* Poisons memory. */
static inline void spokei_hide(void *memory, size_t size)
{
#if defined(__SANITIZE_ADDRESS__)
	ASAN_POISON_MEMORY_REGION(memory, size);
#else
	(void)memory;
	(void)size;
#endif
}

/* Makes poisoned memory accessible again. */
static inline void spokei_show(void *memory, size_t size)
{
#if defined(__SANITIZE_ADDRESS__)
	ASAN_UNPOISON_MEMORY_REGION(memory, size);
#else
	(void)memory;
	(void)size;
#endif
}

#endif
