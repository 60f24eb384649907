/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The uses of a thing that may end: each is embedded in its owner and linked to the thing, which
 * notifies all of them when it ends, in whichever way. A thing that has ended is not touched again,
 * so it may be freed before its former uses. Of one thread.
 */
#ifndef SPOKEI_CORE_ENGINE_USE_H
#define SPOKEI_CORE_ENGINE_USE_H

#include "timer/base.h"

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialised: none. */
struct spokei_use {
	struct spokei_use *next;
	struct spokei_use **at; /* the pointer to this one; NULL: the thing has ended */
	/* Called once, if the thing ends first. Must not call users, nor end any use. */
	void (*over)(struct spokei_use *use);
	/* Called when the thing ends the use in another way, and does not need it any more, which
	 * may free it; NULL: nothing is. */
	void (*left)(struct spokei_use *use);
};

/* Ends a use; nothing happens if its thing has ended, or if there never was one. */
static inline void spokei_use_end(struct spokei_use *use)
{
	if (use->at == NULL)
		return;
	*use->at = use->next;
	if (use->next)
		use->next->at = use->at;
	use->at = NULL;
}

/* Returns whether the thing has ended since the use began. */
static inline bool spokei_use_is_over(const struct spokei_use *use)
{
	return use->at == NULL;
}

/* --- for the thing, which has a pointer to its first use, at first NULL */

/* Adds a use, whose `over` is set. */
static inline void spokei_uses_join(struct spokei_use **uses, struct spokei_use *use)
{
	SPOKE_ASSERT(use->at == NULL && use->over != NULL);
	use->next = *uses;
	use->at = uses;
	if (use->next)
		use->next->at = &use->next;
	*uses = use;
}

/* The thing has ended: notifies all uses, after which there are none. */
static inline void spokei_uses_end(struct spokei_use **uses)
{
	while (*uses) {
		struct spokei_use *use = *uses;

		spokei_use_end(use);
		use->over(use);
	}
}

#endif
