/* SPDX-License-Identifier: Apache-2.0 */
/* Draws measured values as plots; see draw.h. */
#include "draw.h"

#include "say.h"

#include "tests/bench/rpc/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

const char *draw_pattern(const struct curve *curve, uint32_t point)
{
	static char names[CURVES][CURVE_SIZES_MAX][32];
	char *name = names[curve - curves][point];

	(void)snprintf(name, sizeof(names[0][0]), "%s-%u", curve->name, curve->sizes[point]);
	return name;
}

/* Returns the value of a repetition; `raw` is NULL or has as many repetitions. */
static double plain(const struct report_row *row, const struct report_row *raw,
		    enum report_column column, uint32_t rep)
{
	(void)raw;
	return row->samples[column][rep];
}

static double ratio(const struct report_row *row, const struct report_row *raw,
		    enum report_column column, uint32_t rep)
{
	return row->samples[column][rep] / raw->samples[column][rep];
}

static double cost(const struct report_row *row, const struct report_row *raw,
		   enum report_column column, uint32_t rep)
{
	return fmax(0, row->samples[column][rep] - raw->samples[column][rep]);
}

static const struct {
	const char *unit;
	double (*value)(const struct report_row *row, const struct report_row *raw,
			enum report_column column, uint32_t rep);
	enum report_column column;
	bool is_against_raw;
	void (*say)(struct svg_panel *panel, const struct curve *curve, uint32_t points);
} kinds[] = {
	{ "calls/s", plain, REPORT_CALLS_PER_S, false, say_calls },
	{ "CPU time per call, both sides, \302\265s", plain, REPORT_CPU_US, false, say_time },
	{ "CPU time per call minus raw libev's, \302\265s", cost, REPORT_CPU_US, true, say_cost },
	{ "calls/s divided by raw libev's", ratio, REPORT_CALLS_PER_S, true, say_ratio },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

_Static_assert(KINDS <= SVG_PANELS_MAX, "a panel for each");
_Static_assert(CURVE_RUNNERS_MAX <= SVG_LINES_MAX, "a line for each");
_Static_assert(CURVE_SIZES_MAX <= SVG_POINTS_MAX, "a point for each");

static bool was_measured(const struct curve *curve, const struct runner *runner, uint32_t *points,
			 uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (report_find(draw_pattern(curve, points[i]), runner->name))
			return true;
	return false;
}

/* Returns the spread over the repetitions; NaN if they cannot be compared. */
static struct svg_value spread_of(unsigned kind, const struct report_row *row,
				  const struct report_row *raw)
{
	bool pairs = kinds[kind].is_against_raw;
	double samples[REPORT_REPS_MAX];
	struct report_spread spread = { (double)NAN, (double)NAN, (double)NAN };

	if (row == NULL || row->reps == 0 || (pairs && (raw == NULL || raw->reps != row->reps)))
		return (struct svg_value){ spread.low, spread.middle, spread.high };
	for (uint32_t i = 0; i < row->reps; i++)
		samples[i] = kinds[kind].value(row, raw, kinds[kind].column, i);
	spread = report_spread(samples, row->reps);
	return (struct svg_value){ spread.low, spread.middle, spread.high };
}

static void fill_panel(struct svg_panel *panel, unsigned kind, const struct curve *curve,
		       uint32_t *points, uint32_t count)
{
	panel->unit = kinds[kind].unit;
	for (uint32_t i = 0; i < curve->runner_count; i++) {
		const struct runner *runner = &curve->runners[i];
		struct svg_line *line;

		if (!was_measured(curve, runner, points, count) ||
		    (runner->is_raw && kinds[kind].is_against_raw))
			continue;
		line = &panel->lines[panel->line_count++];
		line->name = runner->name;
		line->colour = i;
		line->is_reference = runner->is_raw;
		for (uint32_t j = 0; j < count; j++) {
			const char *pattern = draw_pattern(curve, points[j]);

			line->values[j] = spread_of(kind, report_find(pattern, runner->name),
						    report_find(pattern, curve->runners[0].name));
		}
	}
	kinds[kind].say(panel, curve, count);
}

bool draw_curve(const struct curve *curve, const char *folder)
{
	struct svg_plot plot = { .x_title = curve->grows };
	uint32_t points[CURVE_SIZES_MAX];
	char path[512];

	for (uint32_t i = 0; i < curve->size_count; i++) {
		if (!report_find(draw_pattern(curve, i), curve->runners[0].name))
			continue;
		points[plot.point_count] = i;
		plot.xs[plot.point_count++] = curve->sizes[i];
	}
	if (plot.point_count < 2)
		return false;
	for (unsigned i = 0; i < KINDS; i++)
		fill_panel(&plot.panels[plot.panel_count++], i, curve, points, plot.point_count);
	say_whole(&plot, &plot.panels[1], curve,
		  report_find(draw_pattern(curve, points[0]), curve->runners[0].name)->reps);
	if (mkdir(folder, 0777) != 0 && errno != EEXIST)
		return false;
	(void)snprintf(path, sizeof(path), "%s/%s.svg", folder, curve->name);
	return svg_write(path, &plot);
}
