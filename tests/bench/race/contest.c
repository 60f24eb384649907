/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The race: spoke and other RPC libraries with the same work; see contest.h. The raw echoes are
 * included as limits, and redis as a reference for the cost of a server.
 */
#include "tests/bench/rpc/contest.h"

#include "machine.h"
#include "page.h"
#include "recorded.h"
#include "results.h"

/* Peers whose libraries were missing in the build are listed by name. */
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
	{ "raw-epoll-early", &rpc_raw_epoll_early, "" },
	{ "spoke-sleep", &rpc_spoke_sleep, "" },
	{ "spoke-spin", &rpc_spoke_spin, "" },
	{ "raw-epoll-spin", &rpc_raw_epoll_spin, "" },
};

static struct recorded_facts facts;

static bool save(const char *path)
{
	if (facts.count == 0)
		machine_facts(&facts);
	return recorded_save(path, &facts);
}

static bool load(const char *path)
{
	int line = recorded_load(path, &facts);

	if (line > 0)
		(void)fprintf(stderr, "%s: line %d is not valid\n", path, line);
	return line == 0;
}

static bool page(const char *path)
{
	if (facts.count == 0)
		machine_facts(&facts);
	return page_write(path, &facts);
}

const struct contest contest = {
	.entries = entries,
	.count = sizeof(entries) / sizeof(entries[0]),
	.reps = 5,
	.quick_reps = 3,
	.span_ms = 1000,
	.quick_span_ms = 500,
	.budget_s = 5 * 60,
	.quick_budget_s = 40,
	.is_mixed = true,
	.print = results_print,
	.save = save,
	.load = load,
	.page = page,
};
