/* SPDX-License-Identifier: Apache-2.0 */
/* The table of targets and their results; see targets.h. */
#include "targets.h"

#include "report.h"

#include <stddef.h>
#include <stdio.h>

struct target {
	const char *workload;
	uint64_t n;
	const char *peer; /* its value must be at least `limit` times that of `base`, */
	const char *base; /* or, if this is NULL, at most `limit` itself */
	double limit;
};

static const struct target targets[] = {
	{ "rpc-pair", 1000, "libev", "spoke-disarm", 10 },
	{ "rpc-pair", 1000, "libevent", "spoke-disarm", 20 },
	{ "rpc-pair", 1000, "libuv", "spoke-disarm", 50 },
	{ "rpc-pair", 1000, "libev", "spoke-cancel", 4 },
	{ "rpc-pair", 100000, "libev", "spoke-disarm", 10 },
	{ "rpc-pair", 100000, "libevent", "spoke-disarm", 20 },
	{ "rpc-pair", 100000, "libuv", "spoke-disarm", 50 },
	{ "rpc-pair", 100000, "libev", "spoke-cancel", 4 },
	{ "rpc-pair", 1000000, "libev", "spoke-disarm", 8 },
	{ "rpc-pair", 1000000, "libevent", "spoke-disarm", 20 },
	{ "rpc-pair", 1000000, "libuv", "spoke-disarm", 40 },
	{ "random-victim", 100000, "libev", "spoke-disarm", 4 },
	{ "random-victim", 100000, "libevent", "spoke-disarm", 25 },
	{ "random-victim", 100000, "libuv", "spoke-disarm", 30 },
	{ "expire-step", 1000000, "libev", "spoke", 2 },
	{ "expire-step", 1000000, "libevent", "spoke", 8 },
	{ "expire-step", 1000000, "libuv", "spoke", 8 },
	{ "expire-step-worst", 1000000, "spoke", NULL, 0.5 },
	{ "update-deadline", 100000, "libev", "spoke", 7 },
	{ "update-deadline", 100000, "libevent", "spoke", 70 },
	{ "update-deadline", 100000, "libuv", "spoke", 100 },
	{ "next-expiry", 1000, "libuv", "spoke", 1 },
	{ "next-expiry", 100000, "libuv", "spoke", 1 },
	{ "next-expiry", 1000000, "libuv", "spoke", 1 },
	{ "bytes", 1, "spoke", NULL, 32 },
	{ "idle-wakeups", 1, "spoke", NULL, 0 },
	{ "lateness-p99", 4000, "spoke", NULL, 1.15 },
	{ "early", 4000, "spoke", NULL, 0 },
};

static const char *verdict(bool reached)
{
	return reached ? "ok" : "SHORT";
}

static void print_target(const struct target *target)
{
	const struct report_row *row = report_find(target->workload, target->n, target->peer);
	const struct report_row *base = NULL;
	double value = 0;

	(void)fprintf(stderr, "%-18s %8llu  ", target->workload, (unsigned long long)target->n);
	if (target->base != NULL) {
		base = report_find(target->workload, target->n, target->base);
		(void)fprintf(stderr, "%-8s / %-18s  at least %5gx  ", target->peer, target->base,
			      target->limit);
	} else {
		(void)fprintf(stderr, "%-29s  at most  %5g   ", target->peer, target->limit);
	}
	if (row == NULL || (target->base != NULL && !report_ratio(row, base, &value))) {
		(void)fputs("not measured\n", stderr);
	} else if (target->base != NULL) {
		(void)fprintf(stderr, "%7.2fx  %s\n", value, verdict(value >= target->limit));
	} else {
		value = report_median(row);
		(void)fprintf(stderr, "%7.3g   %s\n", value, verdict(value <= target->limit));
	}
}

void targets_print(void)
{
	(void)fputs("\ntargets:\n", stderr);
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		print_target(&targets[i]);
}
