/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The uses of a lease: calls that are made only as long as it is held. Each is embedded in its
 * owner, and is notified when the lease ends. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_LEASE_USE_H
#define SPOKEI_CLUSTER_LEASE_USE_H

#include "core/engine/use.h"

#include <spoke/lease.h>

struct spoke_engine;

/* Zero-initialised: none. */
struct spokei_lease_use {
	struct spokei_use use;
	struct spoke_lease lease;
};

/* Returns 0, SPOKE_EINVAL (its leases are of another engine) or SPOKE_ELEASE (the lease is not
 * held, or its time is over). */
SPOKE_MUST_USE int spokei_lease_use_check(struct spoke_lease lease,
					  const struct spoke_engine *engine);

/* Begins a use, whose `over` is set. Returns the same. */
SPOKE_MUST_USE int spokei_lease_use_begin(struct spoke_lease lease,
					  const struct spoke_engine *engine,
					  struct spokei_lease_use *use);

#endif
