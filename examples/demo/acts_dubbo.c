/* SPDX-License-Identifier: Apache-2.0 */
/* The story with Node peers: programs of spoke and of Node share a ZooKeeper, in Dubbo's layout. */
#define _POSIX_C_SOURCE 200809L
#include "examples/demo/acts.h"
#include "examples/demo/await.h"
#include "examples/demo/cast.h"
#include "examples/demo/story.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SERVED_AT_LEAST 20 /* calls that each provider serves in the first act */

/* Adds a Node program of examples/demo. */
static struct actor *cast_node(const char *program, const char *name)
{
	const char *folder = getenv("SPOKE_DEMO_NODE"); /* from demo.sh */
	char path[CAST_TEXT];

	(void)snprintf(path, sizeof(path), "%s/%s", folder ? folder : "/", program);
	return cast_add(path, name);
}

static bool start_providers(struct stage *stage)
{
	struct actor *node = cast_node("node_provider.js", "js-provider");

	node->provides = true;
	actor_add_arg(node, ACTS_ECHO "," ACTS_ORDERS);
	actor_add_arg(node, "%s", stage->registry);
	actor_add_arg(node, "dubbo://127.0.0.1:0");
	acts_cast_provider(stage, 0, ACTS_ECHO);
	stage->providers[1] = node;
	for (unsigned i = 0; i < 2; i++)
		if (!actor_start(stage->providers[i]))
			return false;
	return await_seen(stage->providers[0], TAG_LISTENS, 1) && await_seen(node, TAG_LISTENS, 1);
}

static bool start_consumers(struct stage *stage)
{
	const struct plan *plan = stage->plan;
	struct actor *node;

	stage->consumer = acts_cast_consumer(stage, "consumer-1", ACTS_ECHO, plan->rate,
					     plan->tasks);
	stage->consumer2 = acts_cast_consumer(stage, "consumer-2", ACTS_ORDERS, plan->rate2,
					      plan->tasks2);
	node = cast_node("node_consumer.js", "js-consumer");
	actor_add_arg(node, ACTS_ECHO);
	actor_add_arg(node, "%s", stage->registry);
	actor_add_arg(node, "%" PRIu64, plan->rate);
	actor_add_arg(node, "%" PRIu64, plan->period_ns / PLAN_MS);
	stage->guest = node;
	return actor_start(stage->consumer) && actor_start(stage->consumer2) &&
	       actor_start(stage->guest);
}

static bool begin(struct stage *stage)
{
	story_print(
		"2 providers and 3 consumers, each a process, meet in one ZooKeeper, where Java "
		"would find them, too.");
	story_print("  provider-1, consumer-1, consumer-2   made with spoke");
	story_print("  js-provider, js-consumer             made with Node (sofa-rpc-node and "
		    "dubbo-remoting)");
	story_print("The Node libraries speak hessian2 only. %s is served by both providers, %s by "
		    "js-provider.",
		    ACTS_ECHO, ACTS_ORDERS);
	story_head("  time s  process      user       event");
	return start_providers(stage) && start_consumers(stage);
}

static bool play_steady(struct stage *stage)
{
	bool goes_on;

	acts_head(stage,
		  "Calls across both: consumer-1 and js-consumer call %s %" PRIu64
		  " times a second,\n   consumer-2 calls %s %" PRIu64 " times.",
		  ACTS_ECHO, stage->plan->rate, ACTS_ORDERS, stage->plan->rate2);
	cast.pulses = true;
	goes_on = await_seen(stage->consumer, TAG_CONNECTED, 2) &&
		  await_seen(stage->guest, TAG_CONNECTED, 1) &&
		  await_seen(stage->guest, TAG_PULSE, 2) &&
		  await_seen(stage->consumer, TAG_PULSE, 2) &&
		  await_seen(stage->consumer2, TAG_PULSE, 2) &&
		  await_count(stage->providers[0], COUNT_SERVED, SERVED_AT_LEAST) &&
		  await_count(stage->providers[1], COUNT_SERVED, SERVED_AT_LEAST);
	cast.pulses = false;
	return goes_on;
}

/* Shows that all consumers use both providers again. */
static bool play_again(struct stage *stage)
{
	uint64_t served = actor_count(stage->providers[1], COUNT_SERVED);
	unsigned pulses = stage->guest->seen[TAG_PULSE];
	bool goes_on;

	acts_head(stage, "The Node provider is back in the list of each consumer.");
	cast.pulses = true;
	goes_on = await_seen(stage->guest, TAG_PULSE, pulses + 2) &&
		  await_count(stage->providers[1], COUNT_SERVED, served + SERVED_AT_LEAST);
	cast.pulses = false;
	return goes_on;
}

bool acts_play_dubbo(struct stage *stage)
{
	return begin(stage) && play_steady(stage) && acts_play_silence(stage) &&
	       acts_play_kill(stage) && play_again(stage);
}
