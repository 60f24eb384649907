/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A desk: keeps an owner (e.g. a consumer) and its engine alive while another thread uses
 * them. A thread that has entered finds both alive until it leaves; the owner is freed only after
 * that. Made for a consumer's first future, or when providers join; shared by reference count among
 * the owner, its futures and its handoffs.
 */
#ifndef SPOKEI_CORE_ENGINE_DESK_H
#define SPOKEI_CORE_ENGINE_DESK_H

#include "core/engine/engine.h"

struct spokei_desk {
	const struct spoke_env *env;
	struct spoke_engine
		*engine; /* gone when the desk is closed, except for what it still runs itself */
	_Atomic(size_t) shares; /* reference count: the owner, and one of each future and handoff */
	_Atomic(size_t) inside; /* twice the number of threads inside; odd: closed */
	uintptr_t closer;       /* the engine's thread when it closed the desk; set before that */
	unsigned forks;         /* the engine's count */
	/* Threads of events that happened in this turn (waiters.h). The engine's thread wakes them
	 * when the turn is over; the list holds a reference while it is not empty. */
	struct spokei_task wake;
	void *called;
};

/* Returns the desk of an owner, made if there is none, with a reference for the caller; NULL: no
 * memory. Any thread, while the owner lives. */
struct spokei_desk *spokei_desk_get(_Atomic(struct spokei_desk *) *place,
				    struct spoke_engine *engine);

/* Adds a reference. Any thread that has one. */
static inline void spokei_desk_share(struct spokei_desk *desk)
{
	(void)atomic_fetch_add_explicit(&desk->shares, 1, memory_order_relaxed);
}

/* Drops a reference; NULL is fine. Any thread. */
void spokei_desk_drop(struct spokei_desk *desk);

/* Enters. Returns false if the desk is closed. Any thread that has a reference; leave after a few
 * instructions, because the engine may wait for it. */
SPOKE_MUST_USE bool spokei_desk_enter(struct spokei_desk *desk);
void spokei_desk_leave(struct spokei_desk *desk);

/* Closes the desk on the engine's thread: no thread enters any more. Returns whether all have left.
 * NULL: no desk was ever made. */
SPOKE_MUST_USE bool spokei_desk_close(struct spokei_desk *desk);

/* Returns whether the desk is closed; it then stays closed. Any thread that has a reference; off
 * the engine's thread, false may be out of date. */
static inline bool spokei_desk_closed(const struct spokei_desk *desk)
{
	return atomic_load_explicit(&desk->inside, memory_order_relaxed) & 1;
}

/* Returns whether this process is a child that was forked since. Any thread that has a reference.
 */
static inline bool spokei_desk_forked(const struct spokei_desk *desk)
{
	return desk->env->forks != NULL && *desk->env->forks != desk->forks;
}

/* Returns whether the caller is on the engine's thread, or, if the desk is closed, on the thread
 * that was. Any thread that has a reference. */
bool spokei_desk_here(struct spokei_desk *desk);

#endif
