/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of futures: work of an engine that any thread may start and wait for.
 */
#ifndef SPOKEI_CORE_ENGINE_FUTURE_H
#define SPOKEI_CORE_ENGINE_FUTURE_H

#include "core/engine/weak.h"

struct spokei_waiter;

/*
 * The common part of the futures of calls and of leases. A future is reference-counted: its user,
 * its work and each post in flight hold a share, and the last one frees it. Its work is done on the
 * engine's thread; other threads post. Embedded at the beginning of the future's memory.
 */
struct spokei_future {
	struct spokei_weak *weak;
	size_t size;          /* of the future, from here on */
	unsigned char *bytes; /* of its result; NULL: none */
	size_t bytes_len;
	atomic_uint shares;
	atomic_uint marks; /* bits of the future's own; set, and never reset */
};

/* Returns the beginning of a future of this size, with the user's share. It takes over a share of
 * the weak handle. */
static inline struct spokei_future spokei_future_make(struct spokei_weak *weak, size_t size)
{
	return (struct spokei_future){ .weak = weak, .size = size, .shares = 1 };
}

/* Adds a share. Any thread that has one. */
static inline void spokei_future_share(struct spokei_future *future)
{
	(void)atomic_fetch_add_explicit(&future->shares, 1, memory_order_relaxed);
}

/* Drops a share. Any thread. */
void spokei_future_drop(struct spokei_future *future);

/* Returns the marks. A thread that sees one sees everything that was written before it was set. */
static inline unsigned spokei_future_marks(const struct spokei_future *future)
{
	return atomic_load_explicit(&future->marks, memory_order_acquire);
}

/* Sets a mark. Returns the marks before. */
static inline unsigned spokei_future_mark(struct spokei_future *future, unsigned mark)
{
	return atomic_fetch_or_explicit(&future->marks, mark, memory_order_acq_rel);
}

/* Posts to the engine's thread, with a share that the post drops. Returns false if the weak handle
 * is closed. */
bool spokei_future_post(struct spokei_future *future, struct spoke_post *post);

/* Runs the post that begins the work: now on the engine's thread, later on any other. Returns 0, or
 * ECLOSED if the weak handle is closed; the future is freed then. */
SPOKE_MUST_USE int spokei_future_begin(struct spokei_future *future, struct spoke_post *post);

/* Allocates bytes for the result, once. Returns NULL without memory. */
unsigned char *spokei_future_bytes(struct spokei_future *future, size_t len);

/*
 * Threads that wait for one event of an engine, e.g. the end of a future. The event happens once,
 * on the engine's thread. All threads whose events happened in one turn are woken together, after
 * the turn has written, because they may take the engine's processor.
 */

/* The threads that wait for one event. Zero-initialised: the event has not happened. */
struct spokei_waiters {
	_Atomic(struct spokei_waiter *) first;
};

/* Returns whether the event has happened. Any thread. */
bool spokei_waiters_over(const struct spokei_waiters *waiters);

/* Wakes the threads that wait, soon, because the event has happened; later ones do not wait. They
 * see everything that the engine's thread wrote before. On the engine's thread, once. */
void spokei_waiters_end(struct spokei_waiters *waiters, struct spokei_weak *weak);

/*
 * Waits until the event has happened, or until `until_ns`; blocks. Any thread but the engine's,
 * with a share of the weak handle. Returns 0, ESTATE (it has not happened by then), EUNSUPPORTED
 * (there are no threads) or ENOMEM.
 */
SPOKE_MUST_USE int spokei_waiters_wait(struct spokei_waiters *waiters, struct spokei_weak *weak,
				       uint64_t until_ns);

#endif
