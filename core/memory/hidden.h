/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that lies in somebody's block and is nobody's now: AddressSanitizer tells who touches it
 * all the same. Elsewhere this does nothing.
 */
#ifndef SPOKEI_CORE_MEMORY_HIDDEN_H
#define SPOKEI_CORE_MEMORY_HIDDEN_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

/* From now on it is nobody's ... */
static inline void spokei_hide(void *memory, size_t size)
{
#if defined(__SANITIZE_ADDRESS__)
	ASAN_POISON_MEMORY_REGION(memory, size);
#else
	(void)memory;
	(void)size;
#endif
}

/* ... and again somebody's. */
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
