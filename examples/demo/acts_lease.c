/* SPDX-License-Identifier: Apache-2.0 */
/* The act of the lease: two workers, of which only the holder may write, and the holder freezes. */
#include "examples/demo/acts.h"
#include "examples/demo/await.h"
#include "examples/demo/deeds.h"
#include "examples/demo/story.h"

#include <inttypes.h>
#include <stdio.h>

#define WRITES 5 /* of a holder, before the next fault */

static struct actor *cast_worker(struct stage *stage, unsigned number)
{
	const struct plan *plan = stage->plan;
	char name[CAST_NAME];
	struct actor *actor;

	(void)snprintf(name, sizeof(name), "worker-%u", number + 1);
	actor = cast_add("demo_worker", name);
	actor_add_arg(actor,
		      "consumer://any/" ACTS_ORDERS
		      "?cluster=failover&retries=3&wait.ready=true&timeout=%" PRIu64
		      "&heartbeat=%" PRIu64 "ms&eject.failures=0",
		      plan->timeout_ns / PLAN_MS, plan->heartbeat_ns / PLAN_MS);
	actor_add_arg(actor, "%s", stage->registry);
	actor_add_arg(actor, "%s", stage->store_url);
	actor_add_arg(actor, "%" PRIu64, plan->lease_ns);
	if (plan->live)
		actor_add_arg(actor, "127.0.0.1:0");
	stage->workers[number] = actor;
	return actor;
}

static bool await_writes(const struct actor *worker)
{
	return await_count(worker, COUNT_WRITES, actor_count(worker, COUNT_WRITES) + WRITES);
}

static bool begin(struct stage *stage)
{
	const struct actor *first = cast_worker(stage, 0);

	if (!actor_start(stage->store) || !await_seen(stage->store, TAG_LISTENS, 1) ||
	    !actor_start(stage->workers[0]) || !await_seen(first, TAG_HELD, 1))
		return false;
	return actor_start(cast_worker(stage, 1)) && await_seen(stage->workers[1], TAG_ASKED, 1) &&
	       await_writes(first);
}

static bool check_order(const struct actor *before, const struct actor *after)
{
	return after->fence > before->fence ||
	       cast_trouble("%s got the fence number %u after %s had got %u", after->name,
			    after->fence, before->name, before->fence);
}

/* Has a frozen worker send its late write as the first thing that it does. */
static bool write_late(struct actor *worker)
{
	unsigned lost = worker->seen[TAG_LOST];
	unsigned late = worker->seen[TAG_LATE];

	actor_tempt(worker);
	actor_wake(worker);
	if (!await_seen(worker, TAG_LOST, lost + 1) || !await_seen(worker, TAG_LATE, late + 1))
		return false;
	return worker->first == TAG_LOST ||
	       cast_trouble("%s acted before it was notified of the loss", worker->name);
}

/* The lease goes to the other worker, and back. */
static bool pass(struct stage *stage)
{
	/* A slow machine may have passed the lease on already. */
	unsigned holds = stage->workers[1]->holds;
	struct actor *holder = stage->workers[holds];
	struct actor *waiter = stage->workers[!holds];
	unsigned held = waiter->seen[TAG_HELD];

	actor_freeze(holder);
	if (!await_seen(waiter, TAG_HELD, held + 1) || !await_writes(waiter))
		return false;
	if (!await_time(holder->frozen_ns + stage->plan->lease_ns) ||
	    !check_order(holder, waiter) || !write_late(holder))
		return false;
	held = holder->seen[TAG_HELD];
	actor_hand_over(waiter);
	return await_seen(holder, TAG_HELD, held + 1) && check_order(waiter, holder) &&
	       await_writes(holder);
}

bool acts_play_lease(struct stage *stage)
{
	if (stage->store == NULL) {
		story_head("The act of the lease is left out: it needs redis-server, e.g. of "
			   "Debian's package redis-tools.");
		return true;
	}
	acts_head(
		stage,
		"Two workers want one lease; only its holder may write to %s. The holder is\n"
		"   frozen for longer than its lease lives, and the other worker takes over. The "
		"frozen one wakes:\n"
		"   it is notified of the loss before it acts. Its late write, checked before the "
		"freeze and sent\n"
		"   after it, is refused by the fence of the provider.",
		ACTS_ORDERS);
	return begin(stage) && pass(stage);
}

bool acts_end_lease(struct stage *stage)
{
	if (stage->store == NULL || stage->store->pid == 0)
		return true;
	acts_head(stage, "The workers give the lease back, and Redis ends.");
	for (unsigned i = 0; i < ACTS_WORKERS; i++)
		if (!await_mended(stage->workers[i]))
			return false;
	for (unsigned i = 0; i < ACTS_WORKERS; i++) {
		actor_end(stage->workers[i], true);
		if (!await_gone(stage->workers[i]))
			return false;
	}
	actor_end(stage->store, false);
	return await_gone(stage->store);
}
