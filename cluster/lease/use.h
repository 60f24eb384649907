/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The uses of a lease: calls that are made only as long as it is held. Each is embedded in its
 * owner and linked to its lease, which notifies all of them when it ends, in whichever way. A lease
 * that has ended is not touched again, so its leases may be freed before its former uses. On the
 * engine's thread.
 */
#ifndef SPOKEI_CLUSTER_LEASE_USE_H
#define SPOKEI_CLUSTER_LEASE_USE_H

#include "timer/base.h"

#include <spoke/lease.h>

struct spoke_engine;

/* Zero-initialised: none. */
struct spokei_lease_use {
	struct spokei_lease_use *next;
	struct spokei_lease_use **at; /* the pointer to this one; NULL: the lease has ended */
	struct spoke_lease lease;
	/* Called once, if the lease ends first. Must not call users, nor end other uses. */
	void (*over)(struct spokei_lease_use *use);
};

/* Ends a use; nothing happens if its lease has ended, or if there never was one. */
static inline void spokei_lease_use_end(struct spokei_lease_use *use)
{
	if (use->at == NULL)
		return;
	*use->at = use->next;
	if (use->next)
		use->next->at = use->at;
	use->at = NULL;
}

/* Returns 0, SPOKE_EINVAL (its leases are of another engine) or SPOKE_ELEASE (the lease is not
 * held, or its time is over). */
SPOKE_MUST_USE int spokei_lease_use_check(struct spoke_lease lease,
					  const struct spoke_engine *engine);

/* Begins a use, whose `over` is set. Returns the same. */
SPOKE_MUST_USE int spokei_lease_use_begin(struct spoke_lease lease,
					  const struct spoke_engine *engine,
					  struct spokei_lease_use *use);

/* Returns whether the lease has ended since the use began. Does not look at the clock. */
static inline bool spokei_lease_use_is_over(const struct spokei_lease_use *use)
{
	return use->at == NULL;
}

/* --- for the lease, which has a pointer to its first use, at first NULL */

/* Adds a use, whose `over` is set. */
static inline void spokei_lease_use_join(struct spokei_lease_use **uses,
					 struct spokei_lease_use *use)
{
	SPOKE_ASSERT(use->at == NULL && use->over != NULL);
	use->next = *uses;
	use->at = uses;
	if (use->next)
		use->next->at = &use->next;
	*uses = use;
}

/* The lease has ended: notifies all uses, after which there are none. */
static inline void spokei_lease_uses_end(struct spokei_lease_use **uses)
{
	while (*uses) {
		struct spokei_lease_use *use = *uses;

		spokei_lease_use_end(use);
		use->over(use);
	}
}

#endif
