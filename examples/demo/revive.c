/* SPDX-License-Identifier: Apache-2.0 */
/* Revives processes that visitors of the pages have frozen, killed or drained. */
#define _POSIX_C_SOURCE 200809L
#include "examples/demo/revive.h"
#include "examples/demo/cast.h"
#include "examples/demo/story.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#define START_NS (3 * PLAN_SECOND)

static void tend_frozen(struct actor *actor)
{
	uint64_t now_ns = story_now();
	char text[PLAN_TEXT];

	if (actor->frozen_ns == 0 || actor->waked_ns) {
		actor->frozen_ns = now_ns;
		actor->waked_ns = 0;
		actor->revive_ns = now_ns + cast.thaw_ns;
		story_did("%s was frozen by a visitor; wakes it in %s", actor->name,
			  plan_print(cast.thaw_ns, text));
	} else if (actor->revive_ns && now_ns >= actor->revive_ns) {
		actor->revive_ns = 0;
		story_did("wakes %s (SIGCONT)", actor->name);
		(void)kill(actor->pid, SIGCONT);
		actor->waked_ns = story_now();
		actor->stopped = false;
	}
}

static void tend_ended(struct actor *actor)
{
	uint64_t now_ns = story_now();

	if (actor->revive_ns == 0) {
		actor->revive_ns = now_ns + START_NS;
		story_did("%s %s; restarts it in 3s", actor->name,
			  WIFSIGNALED(actor->status) ? "was killed" : "has exited");
	} else if (now_ns >= actor->revive_ns) {
		actor->revive_ns = 0;
		story_did("restarts %s", actor->name);
		(void)actor_start(actor);
	}
}

void revive_tend(void)
{
	for (unsigned i = 0; i < cast.count; i++) {
		struct actor *actor = &cast.actors[i];

		if (actor->pid && actor->stopped)
			tend_frozen(actor);
		else if (actor->pid == 0 && actor->started && !actor->leaving)
			tend_ended(actor);
	}
}
