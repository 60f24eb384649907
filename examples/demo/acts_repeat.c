/* SPDX-License-Identifier: Apache-2.0 */
/* The act of the repeat: a shop runs an order, and is frozen before it answers. */
#include "examples/demo/acts.h"
#include "examples/demo/await.h"
#include "examples/demo/deeds.h"
#include "examples/demo/story.h"

#include <inttypes.h>

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
