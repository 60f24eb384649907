/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ground every public header stands on: what is exported, what must not be ignored, how an
 * embedded struct finds its owner, and the one intrusive list.
 */
#ifndef SPOKE_BASE_H
#define SPOKE_BASE_H

#include <stddef.h>
#include <stdint.h>

#define SPOKE_VERSION_MAJOR 0
#define SPOKE_VERSION_MINOR 1
#define SPOKE_VERSION_PATCH 0

#ifdef __cplusplus
#define SPOKE_BEGIN_DECLS extern "C" {
#define SPOKE_END_DECLS }
#else
#define SPOKE_BEGIN_DECLS
#define SPOKE_END_DECLS
#endif

#if defined(__GNUC__)
/* Marks a symbol of the shared library as public; everything else is hidden. */
#define SPOKE_API __attribute__((visibility("default")))
/* The result carries an error: the compiler warns where it is dropped without a (void). */
#define SPOKE_MUST_USE __attribute__((warn_unused_result))
#else
#define SPOKE_API
#define SPOKE_MUST_USE
#endif

/* The object of type `type` whose field `member` is at `ptr`. */
#define spoke_container_of(ptr, type, member)                                                      \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* A node of a circular list, or its head. */
struct spoke_list {
	struct spoke_list *next;
	struct spoke_list *prev;
};

#endif
