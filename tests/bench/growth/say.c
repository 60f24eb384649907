/* SPDX-License-Identifier: Apache-2.0 */
/* Conclusions as titles; see say.h. */
#include "say.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SAME 0.005 /* changes below this share are none */
#define WORDS 64   /* bytes of a part of a sentence */

/* The lowest and highest of some values; low > high if there are none. */
struct range {
	double low;
	double high;
};

static const struct range nothing = { (double)INFINITY, -(double)INFINITY };

static void widen(struct range *range, double value)
{
	if (isnan(value))
		return;
	range->low = fmin(range->low, value);
	range->high = fmax(range->high, value);
}

/* Returns the medians of spoke's lines, or of the reference. */
static struct range range_of(const struct svg_panel *panel, bool reference, uint32_t points)
{
	struct range range = nothing;

	for (uint32_t i = 0; i < panel->line_count; i++)
		for (uint32_t j = 0; panel->lines[i].is_reference == reference && j < points; j++)
			widen(&range, panel->lines[i].values[j].middle);
	return range;
}

/* Returns the share by which a value changes; 0 if the bars of both overlap. */
static double change(const struct svg_value *from, const struct svg_value *to)
{
	double share = to->middle / from->middle - 1;

	if (fabs(share) < SAME || (to->low <= from->high && from->low <= to->high))
		return 0;
	return share;
}

/* Returns by which shares the lines change from the first point to the last. */
static struct range change_of(const struct svg_panel *panel, bool reference, uint32_t points)
{
	struct range range = nothing;

	for (uint32_t i = 0; i < panel->line_count; i++) {
		const struct svg_value *values = panel->lines[i].values;

		if (panel->lines[i].is_reference == reference)
			widen(&range, change(&values[0], &values[points - 1]));
	}
	return range;
}

/* Prints two numbers as "3", if they are printed alike, or "3 to 4". */
static void print_range(char *words, struct range range, int digits)
{
	char low[WORDS / 4];
	char high[WORDS / 4];

	(void)snprintf(low, sizeof(low), "%.*f", digits, range.low);
	(void)snprintf(high, sizeof(high), "%.*f", digits, range.high);
	if (strcmp(low, high) == 0)
		(void)snprintf(words, WORDS, "%s", low);
	else
		(void)snprintf(words, WORDS, "%s to %s", low, high);
}

static bool is_none(struct range change)
{
	return change.low >= 0 && change.high <= 0;
}

/* Prints e.g. "45 to 50 % fewer", or "as many". */
static void print_change(char *words, struct range change)
{
	char numbers[WORDS];

	if (change.low > change.high) {
		(void)snprintf(words, WORDS, "no");
	} else if (is_none(change)) {
		(void)snprintf(words, WORDS, "as many");
	} else if (change.high <= 0) {
		print_range(numbers, (struct range){ -change.high * 100, -change.low * 100 }, 0);
		(void)snprintf(words, WORDS, "%.40s %% fewer", numbers);
	} else if (change.low >= 0) {
		print_range(numbers, (struct range){ change.low * 100, change.high * 100 }, 0);
		(void)snprintf(words, WORDS, "%.40s %% more", numbers);
	} else {
		(void)snprintf(words, WORDS, "%.0f %% fewer to %.0f %% more", -change.low * 100,
			       change.high * 100);
	}
}

static void print_us(char *words, struct range us)
{
	if (us.low > us.high)
		(void)snprintf(words, WORDS, "an unknown number of");
	else
		print_range(words, us, us.high < 1 ? 2 : 1);
}

/* Returns the subject of a sentence; several balancers share a plot. */
static const char *subject(const struct curve *curve)
{
	return curve->runner_count > 2 ? "Every balancer" : curve->runners[1].name;
}

void say_calls(struct svg_panel *panel, const struct curve *curve, uint32_t points)
{
	char ours[WORDS];
	char theirs[WORDS];

	print_change(ours, change_of(panel, false, points));
	print_change(theirs, change_of(panel, true, points));
	(void)snprintf(panel->title, sizeof(panel->title),
		       "%s makes %s calls/s at the end of the axis, %s %s", subject(curve), ours,
		       curve->runners[0].name, theirs);
}

void say_time(struct svg_panel *panel, const struct curve *curve, uint32_t points)
{
	char ours[WORDS];
	char theirs[WORDS];

	print_us(ours, range_of(panel, false, points));
	print_us(theirs, range_of(panel, true, points));
	(void)snprintf(panel->title, sizeof(panel->title),
		       "A call takes %s \302\265s of CPU time, with %s %s \302\265s", ours,
		       curve->runners[0].name, theirs);
}

void say_cost(struct svg_panel *panel, const struct curve *curve, uint32_t points)
{
	char words[WORDS];

	print_us(words, range_of(panel, false, points));
	(void)snprintf(panel->title, sizeof(panel->title),
		       "%s adds %s \302\265s of CPU time to a call", subject(curve), words);
}

void say_ratio(struct svg_panel *panel, const struct curve *curve, uint32_t points)
{
	struct range ratio = range_of(panel, false, points);
	char words[WORDS];

	print_range(words, (struct range){ ratio.low * 100, ratio.high * 100 }, 0);
	(void)snprintf(panel->title, sizeof(panel->title), "%s makes %s %% of %s's calls/s",
		       subject(curve), words, curve->runners[0].name);
}

/* Prints a number with commas. */
static void print_count(char *words, uint32_t count)
{
	if (count >= 1000000)
		(void)snprintf(words, WORDS, "%" PRIu32 ",%03" PRIu32 ",%03" PRIu32,
			       count / 1000000, count / 1000 % 1000, count % 1000);
	else if (count >= 1000)
		(void)snprintf(words, WORDS, "%" PRIu32 ",%03" PRIu32, count / 1000, count % 1000);
	else
		(void)snprintf(words, WORDS, "%" PRIu32, count);
}

/* Prints how many times the reference's median spoke's are at a point. */
static void print_times(char *words, const struct svg_panel *panel, uint32_t point)
{
	struct range times = nothing;

	for (uint32_t i = 0; i < panel->line_count; i++)
		if (!panel->lines[i].is_reference)
			widen(&times, panel->lines[i].values[point].middle /
					      panel->lines[0].values[point].middle);
	if (times.low > times.high)
		(void)snprintf(words, WORDS, "an unknown number of");
	else
		print_range(words, times, 1);
}

void say_whole(struct svg_plot *plot, const struct svg_panel *time, const struct curve *curve,
	       uint32_t reps)
{
	char first[WORDS];
	char last[WORDS];
	char before[WORDS];
	char after[WORDS];

	print_count(first, plot->xs[0]);
	print_count(last, plot->xs[plot->point_count - 1]);
	print_times(before, time, 0);
	print_times(after, time, plot->point_count - 1);
	(void)snprintf(plot->title, sizeof(plot->title),
		       "%s times %s's CPU time with %s %s, %s with %s", after,
		       curve->runners[0].name, last, curve->grows, before, first);
	(void)snprintf(plot->beside, sizeof(plot->beside),
		       "%s. Points are medians of %" PRIu32 " runs, bars their quartiles.",
		       curve->beside, reps);
}
