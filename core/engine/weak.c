/* SPDX-License-Identifier: Apache-2.0 */
/* Weak handles: reference counts, and threads inside. */
#include "core/engine/weak.h"
#include "core/base/env.h"

#define CLOSED 1u
#define ONE 2u

static struct spokei_weak *make(struct spoke_engine *engine)
{
	struct spokei_weak *weak = spokei_alloc(engine->env, 1, sizeof(*weak));

	if (weak == NULL)
		return NULL;
	weak->env = engine->env;
	weak->engine = engine;
	weak->forks = engine->forks;
	atomic_init(&weak->shares, 1);
	atomic_init(&weak->inside, 0);
	return weak;
}

struct spokei_weak *spokei_weak_get(_Atomic(struct spokei_weak *) *place,
				    struct spoke_engine *engine)
{
	struct spokei_weak *weak = atomic_load_explicit(place, memory_order_acquire);

	if (weak == NULL) {
		struct spokei_weak *made = make(engine);

		if (made == NULL)
			return NULL;
		/* Another thread may have been faster. */
		if (atomic_compare_exchange_strong_explicit(place, &weak, made,
							    memory_order_acq_rel,
							    memory_order_acquire))
			weak = made;
		else
			spokei_weak_drop(made);
	}
	spokei_weak_share(weak);
	return weak;
}

void spokei_weak_drop(struct spokei_weak *weak)
{
	if (weak && atomic_fetch_sub_explicit(&weak->shares, 1, memory_order_acq_rel) == 1)
		spokei_free(weak->env, weak, 1, sizeof(*weak));
}

bool spokei_weak_enter(struct spokei_weak *weak)
{
	size_t inside = atomic_load_explicit(&weak->inside, memory_order_acquire);

	do {
		if (inside & CLOSED)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&weak->inside, &inside, inside + ONE,
							memory_order_acquire,
							memory_order_acquire));
	return true;
}

void spokei_weak_leave(struct spokei_weak *weak)
{
	(void)atomic_fetch_sub_explicit(&weak->inside, ONE, memory_order_release);
}

bool spokei_weak_close(struct spokei_weak *weak)
{
	if (weak == NULL)
		return true;
	/* Set once, read by threads that find the weak handle closed. */
	if (!spokei_weak_closed(weak))
		weak->closer = spokei_engine_self(weak->engine);
	/* A thread that was inside when the process forked never leaves in the child. */
	return (atomic_fetch_or_explicit(&weak->inside, CLOSED, memory_order_acq_rel) &
		~(size_t)CLOSED) == 0 ||
	       spokei_weak_forked(weak);
}

bool spokei_weak_here(struct spokei_weak *weak)
{
	const struct spoke_env *env = weak->env;
	bool here;

	if (!spokei_weak_enter(weak))
		return env->threads && weak->closer == env->threads->self(env->ctx);
	here = spokei_engine_here(weak->engine);
	spokei_weak_leave(weak);
	return here;
}
