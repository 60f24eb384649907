/* SPDX-License-Identifier: Apache-2.0 */
/* The table of curves; see curve.h. */
#include "curve.h"

#include "tests/bench/rpc/pattern.h"

#include <stdio.h>
#include <string.h>

#define PAYLOAD 32u

/* Calls in flight. */
#define CONNECTIONS_TOTAL 1024u
#define ENDPOINTS_TOTAL 256u
#define DEEP 64u

#define RAW                                                                                        \
	{                                                                                          \
		"raw-libev", true, true, NULL                                                      \
	}
#define SPOKE                                                                                      \
	{                                                                                          \
		"spoke", false, true, NULL                                                         \
	}

static void grow_connections(struct rpc_plan *plan, uint32_t size)
{
	plan->connections = size;
	plan->total = CONNECTIONS_TOTAL;
}

static void grow_kept(struct rpc_plan *plan, uint32_t size)
{
	plan->total = DEEP;
	plan->kept = size;
}

static void grow_endpoints(struct rpc_plan *plan, uint32_t size)
{
	plan->connections = size;
	plan->total = ENDPOINTS_TOTAL;
	plan->endpoints = size;
}

static void grow_parked(struct rpc_plan *plan, uint32_t size)
{
	plan->total = DEEP;
	plan->parked = size;
}

const struct curve curves[CURVES] = {
	{
		.name = "connections",
		.grows = "connections",
		.beside = "1,024 calls in flight in all, 32 B",
		.size_count = 5,
		.sizes = { 1, 10, 100, 1000, 10000 },
		.is_quick = { true, false, true, true, false },
		.runner_count = 2,
		.runners = { RAW, SPOKE },
		.grow = grow_connections,
	},
	{
		.name = "pending",
		.grows = "calls that wait for an answer",
		.beside = "64 other calls in flight on the same connection, 32 B",
		.size_count = 5,
		.sizes = { 0, 1000, 10000, 100000, 1000000 },
		.is_quick = { true, true, false, true, false },
		.runner_count = 2,
		.runners = { RAW, SPOKE },
		.grow = grow_kept,
	},
	{
		.name = "endpoints",
		.grows = "endpoints of one consumer",
		.beside = "256 calls in flight in all, 32 B, failover",
		.size_count = 5,
		.sizes = { 1, 3, 10, 30, 100 },
		.is_quick = { true, false, true, false, true },
		.runner_count = 7,
		.runners = { RAW,
			     { "random", false, true, "random" },
			     { "roundrobin", false, false, "roundrobin" },
			     { "leastactive", false, true, "leastactive" },
			     { "consistenthash", false, false, "consistenthash" },
			     { "shortestresponse", false, false, "shortestresponse" },
			     { "twochoices", false, false, "twochoices" } },
		.grow = grow_endpoints,
	},
	{
		.name = "failback",
		.grows = "tickets that wait for their next attempt",
		.beside = "64 other calls in flight, 32 B",
		.size_count = 5,
		.sizes = { 0, 10, 100, 1000, 10000 },
		.is_quick = { true, false, false, true, false },
		.runner_count = 2,
		.runners = { RAW, SPOKE },
		.grow = grow_parked,
	},
};

const struct curve *curve_find(const char *name)
{
	for (unsigned i = 0; i < CURVES; i++)
		if (strcmp(curves[i].name, name) == 0)
			return &curves[i];
	return NULL;
}

struct rpc_plan curve_plan(const struct curve *curve, uint32_t size, const struct runner *runner)
{
	struct rpc_plan plan = {
		.address = "127.0.0.1",
		.payload = PAYLOAD,
		.connections = 1,
		.request_len = pattern_request_len(PAYLOAD),
		.reply_len = pattern_reply_len(PAYLOAD),
	};

	curve->grow(&plan, size);
	plan.outstanding = (plan.total + plan.connections - 1) / plan.connections;
	if (runner->balancer)
		(void)snprintf(plan.balancer, sizeof(plan.balancer), "%s", runner->balancer);
	return plan;
}
