/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources: things that come without a descriptor that tells it, e.g. bytes in memory that is shared
 * with another process. A source is awake or asleep. The engine looks at those that are awake, in
 * each turn and while it polls. Before it sleeps, it asks each of them to sleep: from then on the
 * peer rings at a descriptor, which wakes the source. So a source that is quiet costs nothing. On
 * the engine's thread.
 */
#ifndef SPOKEI_CORE_ENGINE_SOURCE_H
#define SPOKEI_CORE_ENGINE_SOURCE_H

#include "core/engine/engine.h"

#define SPOKEI_SOURCE_LOOKS 16u /* sources of one look */
#define SPOKEI_SOURCE_TURN 64u  /* sources that are looked at in one turn */

/* Embedded in its owner. Its functions make no system call, except ready(). */
struct spokei_source {
	struct spoke_list node; /* in engine->sources while it is awake */
	uint64_t turn;          /* that served it last */
	/* Returns whether there is something for ready(). */
	bool (*has)(struct spokei_source *source);
	/* Asks the peer to ring. Returns false if something has come meanwhile: it stays awake. */
	bool (*sleep)(struct spokei_source *source);
	/* Takes the things that have come. May end any source. */
	void (*ready)(struct spokei_source *source);
};

/* Notes that it is awake. In a user's loop, code of the user may run after settle() and before the
 * sleep: the loop must not sleep then. */
static inline void spokei_source_wake(struct spoke_engine *engine, struct spokei_source *source)
{
	if (source->node.next)
		return;
	spokei_list_append(&engine->sources, &source->node);
	if (SPOKEI_UNLIKELY(engine->native) && !engine->inside)
		engine->env->loop->again(engine->loop);
}

/* Forgets it, awake or not. */
static inline void spokei_source_end(struct spokei_source *source)
{
	if (source->node.next)
		spokei_list_remove(&source->node);
}

/* As prepare_to_sleep() of struct spoke_loop_up. */
bool spokei_sources_sleep(struct spoke_engine *engine);

#endif
