/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A weak handle: keeps an owner (e.g. a consumer) and its engine alive while another thread uses
 * them. A thread that has entered finds both alive until it leaves; the owner is freed only after
 * that. Made for a consumer's first future, or when providers join; shared by reference count among
 * the owner, its futures and its handoffs.
 */
#ifndef SPOKEI_CORE_ENGINE_WEAK_H
#define SPOKEI_CORE_ENGINE_WEAK_H

#include "core/engine/engine.h"

struct spokei_weak {
	const struct spoke_env *env;
	struct spoke_engine
		*engine;        /* gone when it is closed, except for what it still runs itself */
	_Atomic(size_t) shares; /* reference count: the owner, and one of each future and handoff */
	_Atomic(size_t) inside; /* twice the number of threads inside; odd: closed */
	uintptr_t closer; /* the engine's thread when it closed the weak handle; set before that */
	unsigned forks;   /* the engine's count */
	/* Threads of events that happened in this turn (future.h). The engine's thread wakes them
	 * when the turn is over; the list holds a reference while it is not empty. */
	struct spokei_task wake;
	void *called;
};

/* Returns the weak handle of an owner, made if there is none, with a reference for the caller;
 * NULL: no memory. Any thread, while the owner lives. */
struct spokei_weak *spokei_weak_get(_Atomic(struct spokei_weak *) *place,
				    struct spoke_engine *engine);

/* Adds a reference. Any thread that has one. */
static inline void spokei_weak_share(struct spokei_weak *weak)
{
	(void)atomic_fetch_add_explicit(&weak->shares, 1, memory_order_relaxed);
}

/* Drops a reference; NULL is fine. Any thread. */
void spokei_weak_drop(struct spokei_weak *weak);

/* Enters. Returns false if it is closed. Any thread that has a reference; leave after a few
 * instructions, because the engine may wait for it. */
SPOKE_MUST_USE bool spokei_weak_enter(struct spokei_weak *weak);
void spokei_weak_leave(struct spokei_weak *weak);

/* Closes the weak handle on the engine's thread: no thread enters any more. Returns whether all
 * have left. NULL: no handle was ever made. */
SPOKE_MUST_USE bool spokei_weak_close(struct spokei_weak *weak);

/* Returns whether it is closed; it then stays closed. Any thread that has a reference; off
 * the engine's thread, false may be out of date. */
static inline bool spokei_weak_closed(const struct spokei_weak *weak)
{
	return atomic_load_explicit(&weak->inside, memory_order_relaxed) & 1;
}

/* Returns whether this process is a child that was forked since. Any thread that has a reference.
 */
static inline bool spokei_weak_forked(const struct spokei_weak *weak)
{
	return weak->env->forks != NULL && *weak->env->forks != weak->forks;
}

/* Returns whether the caller is on the engine's thread, or, if it is closed, on the thread
 * that was. Any thread that has a reference. */
bool spokei_weak_here(struct spokei_weak *weak);

#endif
