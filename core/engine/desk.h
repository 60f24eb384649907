/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where other threads reach an owner, which is a consumer or a provider, and its engine: whoever
 * has entered finds both alive until it leaves, for the owner is not freed before. Made for a
 * consumer's first future, or when providers join; shared by all futures and mates, and alive as
 * long as anyone has a share.
 */
#ifndef SPOKEI_CORE_ENGINE_DESK_H
#define SPOKEI_CORE_ENGINE_DESK_H

#include "core/engine/engine.h"

struct spokei_desk {
	const struct spoke_env *env;
	struct spoke_engine *engine; /* gone when the desk is closed, but for what it runs itself */
	_Atomic(size_t) shares;      /* the owner's, and one of each future and mate */
	_Atomic(size_t) inside;      /* twice those who have entered; odd: closed */
	uintptr_t closer;            /* the engine's thread as it closed the desk; set before */
	unsigned forks;              /* the engine's */
	/* Of futures, the engine's thread: those who wait for some that ended in this turn, to be
	 * woken when it is over; that has a share while there are any. */
	struct spokei_task wake;
	void *called;
};

/*
 * The desk of an owner, made when there is none, with a share for the caller; NULL: no memory.
 * Any thread, while the owner lives.
 */
struct spokei_desk *spokei_desk_get(_Atomic(struct spokei_desk *) *place,
				    struct spoke_engine *engine);

/* Another share. Any thread that has one. */
static inline void spokei_desk_share(struct spokei_desk *desk)
{
	(void)atomic_fetch_add_explicit(&desk->shares, 1, memory_order_relaxed);
}

/* Gives a share back; NULL is fine. Any thread. */
void spokei_desk_drop(struct spokei_desk *desk);

/* Returns false when the desk is closed. Any thread that has a share; for a few instructions, for
 * the engine may wait for it. */
SPOKE_MUST_USE bool spokei_desk_enter(struct spokei_desk *desk);
void spokei_desk_leave(struct spokei_desk *desk);

/* The engine's thread: nobody enters any more. Returns whether all have left; NULL: nobody was
 * there. */
SPOKE_MUST_USE bool spokei_desk_close(struct spokei_desk *desk);

/* Is it closed? Then it stays so. Any thread that has a share; on the engine's no is true as well.
 */
static inline bool spokei_desk_closed(const struct spokei_desk *desk)
{
	return atomic_load_explicit(&desk->inside, memory_order_relaxed) & 1;
}

/* Was the process forked since, and is this the child? Any thread that has a share. */
static inline bool spokei_desk_forked(const struct spokei_desk *desk)
{
	return desk->env->forks != NULL && *desk->env->forks != desk->forks;
}

/* Is the caller on the engine's thread, or, when the desk is closed, on what was it then? Any
 * thread that has a share. */
bool spokei_desk_here(struct spokei_desk *desk);

#endif
