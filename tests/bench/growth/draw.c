/* SPDX-License-Identifier: Apache-2.0 */
/* Draws measured values as plots; see draw.h. */
#include "draw.h"

#include "svg.h"

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

static double median(const struct report_row *row, const struct report_row *raw,
		     enum report_column column)
{
	(void)raw;
	return report_median(row, column);
}

/* Returns the ratio to the raw echo in the given column. */
static double ratio(const struct report_row *row, const struct report_row *raw,
		    enum report_column column)
{
	double value = (double)NAN;

	(void)column;
	(void)report_ratio(row, raw, column, &value);
	return value;
}

static double cost(const struct report_row *row, const struct report_row *raw,
		   enum report_column column)
{
	return raw ? fmax(0, report_median(row, column) - report_median(raw, column)) : (double)NAN;
}

static const struct {
	const char *title;
	double (*value)(const struct report_row *row, const struct report_row *raw,
			enum report_column column);
	enum report_column column;
	bool is_against_raw;
} kinds[] = {
	{ "calls/s", median, REPORT_CALLS_PER_S, false },
	{ "CPU per call, both sides, \302\265s", median, REPORT_CPU_US, false },
	{ "CPU time per call minus raw libev's, \302\265s", cost, REPORT_CPU_US, true },
	{ "calls/s divided by raw libev's", ratio, REPORT_CALLS_PER_S, true },
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

static void fill_panel(struct svg_panel *panel, unsigned kind, const struct curve *curve,
		       uint32_t *points, uint32_t count)
{
	panel->title = kinds[kind].title;
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
			const struct report_row *row = report_find(pattern, runner->name);
			const struct report_row *raw = report_find(pattern, curve->runners[0].name);

			line->values[j] = row ? kinds[kind].value(row, raw, kinds[kind].column)
					      : (double)NAN;
		}
	}
}

bool draw_curve(const struct curve *curve, const char *folder)
{
	struct svg_plot plot = { .title = curve->beside, .x_title = curve->grows };
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
	if (mkdir(folder, 0777) != 0 && errno != EEXIST)
		return false;
	(void)snprintf(path, sizeof(path), "%s/%s.svg", folder, curve->name);
	return svg_write(path, &plot);
}
