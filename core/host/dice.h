/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dice: the system's random bytes, fetched in advance, so that a throw is a copy. Every thread has
 * its own, and a forked child does not throw what its parent throws (a child made by a bare clone()
 * or by vfork() is not noticed). The context is not used; any thread.
 */
#ifndef SPOKEI_CORE_HOST_DICE_H
#define SPOKEI_CORE_HOST_DICE_H

#include <stddef.h>

void spokei_dice(void *ctx, void *bytes, size_t len);

#endif
