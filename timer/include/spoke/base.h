/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Definitions that every public header uses: the version, attributes of declarations,
 * spoke_container_of() and the intrusive list.
 */
#ifndef SPOKE_BASE_H
#define SPOKE_BASE_H

#include <stddef.h>
#include <stdint.h>

/* The version of these headers. */
#define SPOKE_VERSION_MAJOR 0
#define SPOKE_VERSION_MINOR 1
#define SPOKE_VERSION_PATCH 0

#ifdef __cplusplus
/* Enclose the declarations of a header: C linkage in C++. */
#define SPOKE_BEGIN_DECLS extern "C" {
#define SPOKE_END_DECLS }
#else
/* Empty in C. */
#define SPOKE_BEGIN_DECLS
#define SPOKE_END_DECLS
#endif

#if defined(__GNUC__)
/* Exports a symbol of the shared library; all others are hidden. */
#define SPOKE_API __attribute__((visibility("default")))
/* Makes the compiler warn if a caller ignores the result, which may be an error. */
#define SPOKE_MUST_USE __attribute__((warn_unused_result))
/* Makes the compiler check a format as for printf(); `at` and `args` are the numbers of
 * the format and its first argument. */
#define SPOKE_PRINTF(at, args) __attribute__((format(printf, at, args)))
#else
/* Empty for other compilers. */
#define SPOKE_API
#define SPOKE_MUST_USE
#define SPOKE_PRINTF(at, args)
#endif

/* Returns the object of type `type` whose field `member` is at `ptr`. */
#define spoke_container_of(ptr, type, member)                                                      \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* A node of a circular doubly linked list, or its head. */
struct spoke_list {
	struct spoke_list *next;
	struct spoke_list *prev;
};

#endif
