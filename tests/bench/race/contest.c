/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The race: spoke beside what people use today, on the same work; see contest.h. The limits are in
 * it as well, and redis as an anchor for what a server needs.
 */
#include "tests/bench/rpc/contest.h"

#include "results.h"
#include "tests/bench/rpc/targets.h"

/* What was not found when this was built is missed by its name. */
#ifdef RACE_GRPC
#define GRPC (&rpc_grpc)
#else
#define GRPC NULL
#endif
#ifdef RACE_CAPNP
#define CAPNP (&rpc_capnp)
#else
#define CAPNP NULL
#endif
#ifdef RACE_NNG
#define NNG (&rpc_nng)
#else
#define NNG NULL
#endif
#ifdef RACE_ZEROMQ
#define ZEROMQ (&rpc_zeromq)
#else
#define ZEROMQ NULL
#endif

static const struct contest_entry entries[] = {
	{ "spoke", &rpc_spoke, "" },
	{ "grpc", GRPC, "libgrpc++-dev" },
	{ "zeromq", ZEROMQ, "libzmq3-dev" },
	{ "nng", NNG, "libnng-dev" },
	{ "capnp", CAPNP, "libcapnp-dev" },
	{ "redis", &rpc_redis, "redis-tools" },
	{ "raw-libev", &rpc_raw_libev, "" },
	{ "raw-epoll", &rpc_raw_epoll, "" },
	{ "spoke-spin", &rpc_spoke_spin, "" },
	{ "raw-epoll-spin", &rpc_raw_epoll_spin, "" },
};

static const struct target targets[] = {
	{ "32B-1x64", NULL, "grpc", NULL, REPORT_CALLS_PER_S, 12 },
	{ "32B-1x64", NULL, "zeromq", NULL, REPORT_CALLS_PER_S, 1.5 },
	{ "32B-1x64", NULL, REPORT_RAW, NULL, REPORT_CALLS_PER_S, 0.85 },
	{ "32B-1x64", NULL, "grpc", NULL, REPORT_CPU_US, 25 },
	{ "32B-1x64", NULL, "zeromq", NULL, REPORT_CPU_US, 2 },
	{ "32B-1x256", NULL, "grpc", NULL, REPORT_CALLS_PER_S, 38 },
	{ "32B-1x256", NULL, "zeromq", NULL, REPORT_CALLS_PER_S, 1.7 },
	{ "32B-1x256", NULL, REPORT_RAW, NULL, REPORT_CALLS_PER_S, 0.65 },
	{ "32B-1x1", NULL, "grpc", NULL, REPORT_CALLS_PER_S, 2.2 },
	{ "32B-1x1", NULL, REPORT_RAW, NULL, REPORT_CALLS_PER_S, 0.95 },
	{ "32B-64x1", NULL, "grpc", NULL, REPORT_CALLS_PER_S, 4.5 },
	{ "32B-64x4", NULL, "grpc", NULL, REPORT_CALLS_PER_S, 16 },
	{ "64KiB-1x1", NULL, "grpc", NULL, REPORT_CALLS_PER_S, 2 },
	{ "64KiB-1x1", NULL, REPORT_RAW, NULL, REPORT_CALLS_PER_S, 0.90 },
	{ "32B-1x1", REPORT_SPOKE_SPIN, NULL, NULL, REPORT_P50_US, 12 },
	{ "32B-1x1", REPORT_SPOKE_SPIN, REPORT_RAW_SPIN, NULL, REPORT_CALLS_PER_S, 0.90 },
};

#define TARGETS (sizeof(targets) / sizeof(targets[0]))

static void conclude(FILE *results)
{
	(void)fputc('\n', stderr);
	results_print(stderr, targets, TARGETS);
	if (results != NULL)
		results_print(results, targets, TARGETS);
}

const struct contest contest = {
	.program = "bench_race",
	.entries = entries,
	.count = sizeof(entries) / sizeof(entries[0]),
	.reps = 5,
	.quick_reps = 3,
	.span_ms = 1000,
	.quick_span_ms = 500,
	.budget_s = 5 * 60,
	.quick_budget_s = 40,
	.is_mixed = true,
	.conclude = conclude,
};
