/* SPDX-License-Identifier: Apache-2.0 */
/* Actions of the driver on processes: freeze, wake, kill, restart, pause, end. */
#define _POSIX_C_SOURCE 200809L
#include "examples/demo/deeds.h"
#include "examples/demo/await.h"
#include "examples/demo/story.h"

#include <signal.h>

/* A process that does not run has the id 0, which kill() takes for the whole process group. */
static void send_signal(const struct actor *actor, int number)
{
	if (actor->pid > 0)
		(void)kill(actor->pid, number);
}

void actor_freeze(struct actor *actor)
{
	if (!await_mended(actor))
		return;
	story_did("freezes %s, process %d (SIGSTOP)", actor->name, (int)actor->pid);
	actor->frozen_ns = story_now();
	actor->waked_ns = 0;
	send_signal(actor, SIGSTOP);
	(void)await_stopped(actor);
}

void actor_wake(struct actor *actor)
{
	story_did("wakes %s (SIGCONT)", actor->name);
	actor->waked = true;
	send_signal(actor, SIGCONT);
	actor->waked_ns = story_now();
	actor->stopped = false;
}

void actor_kill(struct actor *actor)
{
	if (!await_mended(actor))
		return;
	story_did("kills %s, process %d (SIGKILL)", actor->name, (int)actor->pid);
	actor->leaving = true;
	send_signal(actor, SIGKILL);
	(void)await_gone(actor);
}

bool actor_restart(struct actor *actor)
{
	story_did("restarts %s", actor->name);
	return actor_start(actor);
}

void actor_hush(struct actor *actor)
{
	if (!await_mended(actor))
		return;
	story_did("pauses the calls of %s (SIGUSR1)", actor->name);
	send_signal(actor, SIGUSR1);
}

void actor_speak(struct actor *actor)
{
	story_did("resumes the calls of %s (SIGUSR2)", actor->name);
	send_signal(actor, SIGUSR2);
}

void actor_hand_over(struct actor *actor)
{
	if (!await_mended(actor))
		return;
	story_did("has %s give its lease back (SIGUSR1)", actor->name);
	send_signal(actor, SIGUSR1);
}

void actor_tempt(struct actor *actor)
{
	story_did("has %s send its late write as soon as it wakes (SIGUSR2)", actor->name);
	send_signal(actor, SIGUSR2);
}

void actor_answer(struct actor *actor)
{
	story_did("has %s answer the orders that it holds (SIGUSR2)", actor->name);
	send_signal(actor, SIGUSR2);
}

void actor_step(struct actor *actor, bool aside)
{
	if (!await_mended(actor))
		return;
	story_did("has %s %s (SIGUSR1)", actor->name, aside ? "step aside" : "come back");
	send_signal(actor, SIGUSR1);
}

void actor_end(struct actor *actor, bool announce)
{
	if (announce)
		story_did("ends %s, process %d (SIGTERM)", actor->name, (int)actor->pid);
	actor->leaving = true;
	send_signal(actor, SIGTERM);
}
