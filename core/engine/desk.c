/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps an owner alive while other threads use it: reference counts, and threads inside. */
#include "core/engine/desk.h"
#include "core/base/env.h"

#define CLOSED 1u
#define ONE 2u

static struct spokei_desk *make(struct spoke_engine *engine)
{
	struct spokei_desk *desk = spokei_alloc(engine->env, 1, sizeof(*desk));

	if (desk == NULL)
		return NULL;
	desk->env = engine->env;
	desk->engine = engine;
	desk->forks = engine->forks;
	atomic_init(&desk->shares, 1);
	atomic_init(&desk->inside, 0);
	return desk;
}

struct spokei_desk *spokei_desk_get(_Atomic(struct spokei_desk *) *place,
				    struct spoke_engine *engine)
{
	struct spokei_desk *desk = atomic_load_explicit(place, memory_order_acquire);

	if (desk == NULL) {
		struct spokei_desk *made = make(engine);

		if (made == NULL)
			return NULL;
		/* Another thread may have been faster. */
		if (atomic_compare_exchange_strong_explicit(place, &desk, made,
							    memory_order_acq_rel,
							    memory_order_acquire))
			desk = made;
		else
			spokei_desk_drop(made);
	}
	spokei_desk_share(desk);
	return desk;
}

void spokei_desk_drop(struct spokei_desk *desk)
{
	if (desk && atomic_fetch_sub_explicit(&desk->shares, 1, memory_order_acq_rel) == 1)
		spokei_free(desk->env, desk, 1, sizeof(*desk));
}

bool spokei_desk_enter(struct spokei_desk *desk)
{
	size_t inside = atomic_load_explicit(&desk->inside, memory_order_acquire);

	do {
		if (inside & CLOSED)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&desk->inside, &inside, inside + ONE,
							memory_order_acquire,
							memory_order_acquire));
	return true;
}

void spokei_desk_leave(struct spokei_desk *desk)
{
	(void)atomic_fetch_sub_explicit(&desk->inside, ONE, memory_order_release);
}

bool spokei_desk_close(struct spokei_desk *desk)
{
	if (desk == NULL)
		return true;
	/* Set once, read by threads that find the desk closed. */
	if (!spokei_desk_closed(desk))
		desk->closer = spokei_engine_self(desk->engine);
	/* A thread that was inside when the process forked never leaves in the child. */
	return (atomic_fetch_or_explicit(&desk->inside, CLOSED, memory_order_acq_rel) &
		~(size_t)CLOSED) == 0 ||
	       spokei_desk_forked(desk);
}

bool spokei_desk_here(struct spokei_desk *desk)
{
	const struct spoke_env *env = desk->env;
	bool here;

	if (!spokei_desk_enter(desk))
		return env->threads && desk->closer == env->threads->self(env->ctx);
	here = spokei_engine_here(desk->engine);
	spokei_desk_leave(desk);
	return here;
}
