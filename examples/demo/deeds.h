/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver does to its actors, and says that it does. */
#ifndef DEMO_DEEDS_H
#define DEMO_DEEDS_H

#include "examples/demo/cast.h"

/* Freezes it, or kills it, and waits until that is so; before, until it is there and runs: visitors
 * of its page may have done the same. */
void actor_freeze(struct actor *actor);
void actor_wake(struct actor *actor);
void actor_kill(struct actor *actor);
bool actor_restart(struct actor *actor); /* as actor_start() */
/* A consumer makes no calls until it is told to speak. */
void actor_hush(struct actor *actor);
void actor_speak(struct actor *actor);
void actor_end(struct actor *actor, bool says);

#endif
