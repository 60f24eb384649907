/* SPDX-License-Identifier: Apache-2.0 */
/* spoke against what the kernel and libev allow; see contest.h. */
#include "contest.h"

#include "targets.h"

static const struct contest_entry entries[] = {
	{ "spoke", &rpc_spoke, "" },
	{ "spoke-spin", &rpc_spoke_spin, "" },
	{ "raw-libev", &rpc_raw_libev, "" },
	{ "raw-epoll", &rpc_raw_epoll, "" },
	{ "raw-epoll-spin", &rpc_raw_epoll_spin, "" },
};

static const struct target targets[] = {
	{ "32B-1x1", NULL, REPORT_RAW, NULL, REPORT_CALLS_PER_S, 0.95 },
	{ "32B-1x64", NULL, REPORT_RAW, NULL, REPORT_CALLS_PER_S, 0.85 },
	{ "32B-1x256", NULL, REPORT_RAW, NULL, REPORT_CALLS_PER_S, 0.65 },
	{ "32B-64x1", NULL, REPORT_RAW, NULL, REPORT_CALLS_PER_S, 0.93 },
	{ "32B-64x4", NULL, REPORT_RAW, NULL, REPORT_CALLS_PER_S, 0.93 },
	{ "64KiB-1x1", NULL, REPORT_RAW, NULL, REPORT_CALLS_PER_S, 0.90 },
	{ "unix-32B-64x1", NULL, REPORT_SPOKE, "32B-64x1", REPORT_CALLS_PER_S, 2 },
	{ "32B-1x64", NULL, NULL, NULL, REPORT_SERVER_CALLS, 0.15 },
	{ "32B-1x64", NULL, NULL, NULL, REPORT_CLIENT_CALLS, 0.15 },
	{ "32B-1x1", REPORT_SPOKE_SPIN, NULL, NULL, REPORT_P50_US, 12 },
	{ "32B-1x1", REPORT_SPOKE_SPIN, REPORT_RAW_SPIN, NULL, REPORT_CALLS_PER_S, 0.90 },
};

static void conclude(FILE *results)
{
	(void)fputs("\ntargets of spoke:\n", stderr);
	targets_print(stderr, targets, sizeof(targets) / sizeof(targets[0]));
	if (results != NULL)
		targets_print(results, targets, sizeof(targets) / sizeof(targets[0]));
}

const struct contest contest = {
	.program = "bench_rpc",
	.entries = entries,
	.count = sizeof(entries) / sizeof(entries[0]),
	.reps = 5,
	.quick_reps = 2,
	.span_ms = 1000,
	.quick_span_ms = 700,
	.budget_s = UINT32_MAX,
	.quick_budget_s = UINT32_MAX,
	.conclude = conclude,
};
