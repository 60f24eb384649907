/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "examples/demo/deeds.h"
#include "examples/demo/await.h"
#include "examples/demo/story.h"

#include <signal.h>

void actor_freeze(struct actor *actor)
{
	story_did("freezes %s, process %d (SIGSTOP)", actor->name, (int)actor->pid);
	actor->frozen_ns = story_now();
	actor->waked_ns = 0;
	(void)kill(actor->pid, SIGSTOP);
	(void)await_stopped(actor);
}

void actor_wake(struct actor *actor)
{
	story_did("wakes %s (SIGCONT)", actor->name);
	(void)kill(actor->pid, SIGCONT);
	actor->waked_ns = story_now();
	actor->stopped = false;
}

void actor_kill(struct actor *actor)
{
	story_did("kills %s, process %d (SIGKILL)", actor->name, (int)actor->pid);
	actor->leaving = true;
	(void)kill(actor->pid, SIGKILL);
	(void)await_gone(actor);
}

bool actor_restart(struct actor *actor)
{
	story_did("starts %s again", actor->name);
	return actor_start(actor);
}

void actor_end(struct actor *actor, bool says)
{
	if (says)
		story_did("asks %s, process %d, to end (SIGTERM)", actor->name, (int)actor->pid);
	actor->leaving = true;
	(void)kill(actor->pid, SIGTERM);
}
