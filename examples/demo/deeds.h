/* SPDX-License-Identifier: Apache-2.0 */
/* Actions of the driver on processes; each is printed. */
#ifndef DEMO_DEEDS_H
#define DEMO_DEEDS_H

#include "examples/demo/cast.h"

/* Freeze or kill a process and wait for the effect. They first wait until the process runs, because
 * a visitor of its page may have frozen or killed it. */
void actor_freeze(struct actor *actor);
void actor_wake(struct actor *actor);
void actor_kill(struct actor *actor);
bool actor_restart(struct actor *actor); /* as actor_start() */
/* Pauses and resumes the calls of a consumer. */
void actor_hush(struct actor *actor);
void actor_speak(struct actor *actor);
/* Has a worker give its lease back; has a frozen worker send a late write after it wakes. */
void actor_hand_over(struct actor *actor);
void actor_tempt(struct actor *actor);
/* Has a provider answer the orders that it holds; has it step aside, or come back. */
void actor_answer(struct actor *actor);
void actor_step(struct actor *actor, bool aside);
void actor_end(struct actor *actor, bool announce);

#endif
