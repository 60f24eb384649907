/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements of one pattern as its readers see them: in order, and with what disturbed them.
 */
#ifndef BENCH_VIEW_H
#define BENCH_VIEW_H

#include "recorded.h"
#include "tests/bench/rpc/report.h"

#include <stdbool.h>
#include <stdint.h>

#define VIEW_BARS_MAX 20

/* Quartiles further apart than this share of the median make a bar grey. */
#define VIEW_SPREAD_MAX 0.15

enum view_kind {
	VIEW_SPOKE,
	VIEW_LIBRARY,
	VIEW_LIMIT, /* a bare echo */
};

struct view_bar {
	const struct report_row *row;
	enum view_kind kind;
	struct report_spread calls; /* calls/s; 0 without repetitions */
	char why[48];               /* what disturbed it, which makes the bar grey; "": nothing */
};

struct view {
	const char *pattern;
	uint32_t count;
	struct view_bar bars[VIEW_BARS_MAX]; /* of a kind together, the fastest first */
	const struct report_row *limit;      /* the bare echo with the most calls/s; or NULL */
};

/* Returns the view of a pattern. The facts name what counts as a disturbance. */
struct view view_of(const char *pattern, const struct recorded_facts *facts);

/* Returns the bar of a peer, or NULL. */
const struct view_bar *view_find(const struct view *view, const char *peer);

/* Stores the spread of the ratios of calls/s within each repetition. Returns false if the rows
 * cannot be compared. */
bool view_ratio(const struct report_row *row, const struct report_row *base,
		struct report_spread *ret_ratio);

#endif
