/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random bytes of the system, fetched in advance, so that taking some is a copy. Every thread has
 * its own store, and a forked child does not repeat its parent's bytes (a child of a bare clone()
 * or vfork() is not noticed). The context is not used; any thread.
 */
#ifndef SPOKEI_CORE_HOST_DICE_H
#define SPOKEI_CORE_HOST_DICE_H

#include <stddef.h>

void spokei_dice(void *ctx, void *bytes, size_t len);

#endif
