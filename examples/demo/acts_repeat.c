/* SPDX-License-Identifier: Apache-2.0 */
/* The acts of repeated orders: a shop runs them, and is frozen before it answers, or its buyer is
 * killed. */
#define _POSIX_C_SOURCE 200809L
#include "examples/demo/acts.h"
#include "examples/demo/await.h"
#include "examples/demo/deeds.h"
#include "examples/demo/story.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SHOP "demo.ShopService"
#define REMEMBERED_NS (600 * PLAN_SECOND)

static struct actor *cast_buyer(const struct stage *stage)
{
	const struct plan *plan = stage->plan;
	struct actor *buyer = cast_add("demo_buyer", "buyer");

	/* The freeze lasts about four intervals. Ejection is off, so that heartbeats alone end the
	 * connection. */
	actor_add_arg(buyer,
		      "consumer://any/" SHOP "?cluster=failover&timeout=%" PRIu64
		      "ms&heartbeat=%" PRIu64 "ms&eject.failures=0",
		      (20 * plan->heartbeat_ns + 60 * PLAN_SECOND) / PLAN_MS,
		      plan->heartbeat_ns / PLAN_MS);
	actor_add_arg(buyer, "%s", stage->registry);
	return buyer;
}

/* The answer of the first run goes to a connection that its buyer has closed. */
static bool lose_answer(struct actor *shop, struct actor *buyer)
{
	if (!await_seen(shop, TAG_ASKED, 1))
		return false;
	actor_freeze(shop);
	if (!await_missed(buyer, 3) || !await_seen(buyer, TAG_CLOSED, 1))
		return false;
	actor_answer(shop);
	actor_wake(shop);
	return await_seen(buyer, TAG_ANSWERED, 1) && await_count(shop, COUNT_ANSWERS, 2);
}

static bool check_counts(const struct actor *shop, const struct actor *buyer)
{
	uint64_t runs = actor_count(shop, COUNT_RUNS);
	uint64_t answers = actor_count(shop, COUNT_ANSWERS);
	uint64_t orders = actor_count(buyer, COUNT_OK) - 1; /* and its greeting */

	story_print("  %" PRIu64 " order, %" PRIu64 " run, %" PRIu64 " answers", orders, runs,
		    answers);
	return (orders == 1 && runs == 1 && answers == 2) ||
	       cast_trouble("the order was not run once and answered twice: %" PRIu64
			    " orders, %" PRIu64 " runs, %" PRIu64 " answers",
			    orders, runs, answers);
}

static bool leave(struct actor *actor)
{
	actor_end(actor, true);
	return await_gone(actor);
}

bool acts_play_repeat(struct stage *stage)
{
	struct actor *shop;
	struct actor *buyer;

	acts_head(stage,
		  "An answer is lost. A shop runs an order, and is frozen before it answers. The "
		  "buyer's heartbeats\n"
		  "   close the connection. The repeat has the id of the order, and goes to the "
		  "same shop: it gets the\n"
		  "   answer of the run. Nothing is ordered twice.");
	shop = acts_cast_server(stage, "shop", SHOP, REMEMBERED_NS);
	buyer = cast_buyer(stage);
	actor_watch(buyer, shop);
	return actor_start(shop) && await_seen(shop, TAG_LISTENS, 1) && actor_start(buyer) &&
	       lose_answer(shop, buyer) && check_counts(shop, buyer) && leave(buyer) && leave(shop);
}

/* --- a buyer with a journal */

#define ORDERS UINT64_C(3)

static struct actor *cast_clerk(const struct stage *stage)
{
	const struct plan *plan = stage->plan;
	struct actor *clerk = cast_add("demo_buyer", "clerk");
	char path[CAST_TEXT];

	(void)snprintf(path, sizeof(path), "%.400s/journal", stage->folder);
	if (mkdir(path, 0700)) {
		(void)cast_trouble("cannot create %s: %s", path, strerror(errno));
		return NULL;
	}
	actor_add_arg(clerk,
		      "consumer://any/" SHOP
		      "?cluster=failback&retry.deadline=1h&retries=100&journal.wait=60s"
		      "&timeout=%" PRIu64 "ms&retry.period=%" PRIu64 "ms",
		      plan->timeout_ns / PLAN_MS, plan->period_ns / PLAN_MS);
	actor_add_arg(clerk, "%s", stage->registry);
	actor_add_arg(clerk, "%s", path);
	return clerk;
}

static bool check_journal(const struct actor *shop, const struct actor *clerk)
{
	uint64_t runs = actor_count(shop, COUNT_RUNS);
	uint64_t answers = actor_count(shop, COUNT_ANSWERS);
	uint64_t survived = actor_count(clerk, COUNT_SURVIVED);

	story_print("  %" PRIu64 " orders, %" PRIu64 " survived, %" PRIu64 " runs, %" PRIu64
		    " answers",
		    ORDERS, survived, runs, answers);
	return (survived == ORDERS && runs == ORDERS) ||
	       cast_trouble("the orders did not survive, or were not run once each: %" PRIu64
			    " survived, %" PRIu64 " runs",
			    survived, runs);
}

bool acts_play_journal(struct stage *stage)
{
	struct actor *shop;
	struct actor *clerk;

	acts_head(stage,
		  "A consumer is killed with tickets in its journal. The shop has run the orders, "
		  "and cannot "
		  "answer.\n"
		  "   The next process finds the tickets, and repeats them with the same ids: the "
		  "shop answers them\n"
		  "   from memory. Nothing is lost, and nothing is ordered twice.");
	shop = acts_cast_server(stage, "shop-2", SHOP, REMEMBERED_NS);
	clerk = cast_clerk(stage);
	if (clerk == NULL || !actor_start(shop) || !await_seen(shop, TAG_LISTENS, 1) ||
	    !actor_start(clerk) || !await_count(clerk, COUNT_DEFERRED, ORDERS) ||
	    !await_count(shop, COUNT_RUNS, ORDERS))
		return false;
	actor_kill(clerk);
	actor_answer(shop);
	return await_count(shop, COUNT_ANSWERS, ORDERS) && actor_restart(clerk) &&
	       await_count(clerk, COUNT_RECOVERED, ORDERS) &&
	       await_count(shop, COUNT_ANSWERS, 2 * ORDERS) && check_journal(shop, clerk) &&
	       leave(clerk) && leave(shop);
}
