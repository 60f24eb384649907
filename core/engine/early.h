/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that run first in a turn: right after the clock was read, before any descriptor is read
 * and before any other callback. They end things in time even if the process was frozen:
 * timers fire too late for that, because the wheel advances after the descriptors are read. On the
 * engine's thread.
 */
#ifndef SPOKEI_CORE_ENGINE_EARLY_H
#define SPOKEI_CORE_ENGINE_EARLY_H

#include "core/engine/engine.h"

/* Embedded in its owner, zero-initialised with `begin` set. */
struct spokei_early {
	struct spoke_list node; /* next == NULL: it does not run */
	/* The time is engine->begin_ns. May call users, which may call anything; may add and remove
	 * any such function. */
	void (*begin)(struct spokei_early *early);
};

/* Has early->begin() called at the begin of each turn. Does nothing if it is already. */
static inline void spokei_early_add(struct spoke_engine *engine, struct spokei_early *early)
{
	if (early->node.next == NULL)
		spokei_list_append(&engine->early, &early->node);
}

/* Ends that, also from within begin(). The memory may be freed then. */
static inline void spokei_early_drop(struct spokei_early *early)
{
	if (early->node.next)
		spokei_list_remove(&early->node);
}

/* Calls all of them; in a child that one of them forks, no more. */
void spokei_early_run(struct spoke_engine *engine);

#endif
