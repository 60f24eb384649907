/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of paths, held with flock() on the file <path>.lock, which is created on first use. The
 * kernel releases a lock when the last process that has its descriptor ends: the owner, or a child
 * that was forked without an exec. The context is not used; any thread.
 */
#ifndef SPOKEI_CORE_HOST_FILELOCK_H
#define SPOKEI_CORE_HOST_FILELOCK_H

#include <spoke/env.h>

#include <stdbool.h>

/* lock(), unlock(), is_locked() and drop() of struct spoke_files. */
SPOKE_MUST_USE int spokei_filelock_take(void *ctx, const char *path, int *ret_fd);
void spokei_filelock_release(void *ctx, int fd);
SPOKE_MUST_USE int spokei_filelock_held(void *ctx, const char *path);
void spokei_filelock_drop(void *ctx, const char *path, int fd);

/* Like held(), for the file of a lock in an open folder. */
SPOKE_MUST_USE int spokei_filelock_held_at(int folder, const char *name);

/* Returns whether `name` is that of a lock which sweep() may remove, beside the file `base`. */
bool spokei_filelock_is_mark(const char *name, const char *base);

#endif
