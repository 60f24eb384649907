/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the rows of a pattern in order; see view.h. */
#include "view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum view_kind kind_of(const struct report_row *row)
{
	if (row->is_limit)
		return VIEW_LIMIT;
	return strncmp(row->peer, REPORT_SPOKE, strlen(REPORT_SPOKE)) == 0 ? VIEW_SPOKE
									   : VIEW_LIBRARY;
}

/* At a real-time priority only the hypervisor takes time from the peers. */
static bool is_realtime(const struct recorded_facts *facts)
{
	for (uint32_t i = 0; i < facts->count; i++)
		if (strcmp(facts->facts[i].name, "Priority") == 0)
			return strcmp(facts->facts[i].value, "real-time") == 0;
	return false;
}

static void find_reason(struct view_bar *bar, const struct recorded_facts *facts)
{
	const struct report_row *row = bar->row;
	double spread;

	bar->why[0] = '\0';
	if (row->failed > 0) {
		(void)snprintf(bar->why, sizeof(bar->why), "failed");
		return;
	}
	spread = (bar->calls.high - bar->calls.low) / bar->calls.middle;
	if (2 * row->disturbed > row->reps) {
		(void)snprintf(bar->why, sizeof(bar->why),
			       is_realtime(facts) ? "steal" : "other load");
	} else if (spread > VIEW_SPREAD_MAX) {
		(void)snprintf(bar->why, sizeof(bar->why), "spread %.0f %%", spread * 100);
	}
}

static int compare(const void *a, const void *b)
{
	const struct view_bar *left = a;
	const struct view_bar *right = b;

	if (left->kind != right->kind)
		return left->kind < right->kind ? -1 : 1;
	return (left->calls.middle < right->calls.middle) -
	       (left->calls.middle > right->calls.middle);
}

struct view view_of(const char *pattern, const struct recorded_facts *facts)
{
	struct view view = { .pattern = pattern };
	const struct report_row *row;

	for (uint32_t i = 0; (row = report_at(i)) != NULL && view.count < VIEW_BARS_MAX; i++) {
		struct view_bar *bar = &view.bars[view.count];

		if (strcmp(row->pattern, pattern) != 0)
			continue;
		bar->row = row;
		bar->kind = kind_of(row);
		if (row->reps > 0)
			bar->calls = report_spread(row->samples[REPORT_CALLS_PER_S], row->reps);
		find_reason(bar, facts);
		view.count++;
		if (bar->kind == VIEW_LIMIT && row->failed == 0 &&
		    (view.limit == NULL ||
		     bar->calls.middle > report_median(view.limit, REPORT_CALLS_PER_S)))
			view.limit = row;
	}
	qsort(view.bars, view.count, sizeof(view.bars[0]), compare);
	return view;
}

const struct view_bar *view_find(const struct view *view, const char *peer)
{
	for (uint32_t i = 0; i < view->count; i++)
		if (strcmp(view->bars[i].row->peer, peer) == 0)
			return &view->bars[i];
	return NULL;
}

bool view_ratio(const struct report_row *row, const struct report_row *base,
		struct report_spread *ret_ratio)
{
	double ratios[REPORT_REPS_MAX];
	double ratio;

	if (!report_ratio(row, base, REPORT_CALLS_PER_S, &ratio))
		return false;
	for (uint32_t i = 0; i < row->reps; i++)
		ratios[i] = row->samples[REPORT_CALLS_PER_S][i] /
			    base->samples[REPORT_CALLS_PER_S][i];
	*ret_ratio = report_spread(ratios, row->reps);
	return true;
}
