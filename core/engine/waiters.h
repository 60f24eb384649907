/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait for one event of an engine, e.g. the end of a future. The event happens once,
 * on the engine's thread. All threads whose events happened in one turn are woken together, after
 * the turn has written, because they may take the engine's processor.
 */
#ifndef SPOKEI_CORE_ENGINE_WAITERS_H
#define SPOKEI_CORE_ENGINE_WAITERS_H

#include "core/engine/desk.h"

struct spokei_waiter;

/* The threads that wait for one event. Zero-initialised: the event has not happened. */
struct spokei_waiters {
	_Atomic(struct spokei_waiter *) first;
};

/* Returns whether the event has happened. Any thread. */
bool spokei_waiters_over(const struct spokei_waiters *waiters);

/* Wakes the threads that wait, soon, because the event has happened; later ones do not wait. They
 * see everything that the engine's thread wrote before. On the engine's thread, once. */
void spokei_waiters_end(struct spokei_waiters *waiters, struct spokei_desk *desk);

/*
 * Waits until the event has happened, or until `until_ns`; blocks. Any thread but the engine's,
 * with a share of the desk. Returns 0, ESTATE (it has not happened by then), EUNSUPPORTED (there
 * are no threads) or ENOMEM.
 */
SPOKE_MUST_USE int spokei_waiters_wait(struct spokei_waiters *waiters, struct spokei_desk *desk,
				       uint64_t until_ns);

#endif
