/* SPDX-License-Identifier: Apache-2.0 */
/* spoke compared with what an RPC needs at least; see contest.h. */
#include "contest.h"

#include "report.h"
#include "targets.h"

static const struct contest_entry entries[] = {
	{ "spoke", &rpc_spoke, "" },
	{ "spoke-sleep", &rpc_spoke_sleep, "" },
	{ "spoke-spin", &rpc_spoke_spin, "" },
	{ "raw-shm-spin", &rpc_raw_shm_spin, "" },
	{ "thin", &rpc_thin, "" },
	{ "thin-spin", &rpc_thin_spin, "" },
	{ "raw-epoll", &rpc_raw_epoll, "" },
};

static void print(FILE *out)
{
	(void)fputs("targets of spoke:\n", out);
	targets_print(out);
	report_print_failures(out);
}

const struct contest contest = {
	.entries = entries,
	.count = sizeof(entries) / sizeof(entries[0]),
	.reps = 5,
	.quick_reps = 2,
	.span_ms = 1000,
	.quick_span_ms = 700,
	.budget_s = UINT32_MAX,
	.quick_budget_s = UINT32_MAX,
	.print = print,
};
