/* SPDX-License-Identifier: Apache-2.0 */
/* Plots; see svg.h. Lengths are in pixels. */
#include "svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define WIDTH 720.0
#define LEFT 76.0
#define RIGHT 150.0
#define TOP 92.0
#define BOTTOM 48.0
#define PANEL 150.0
#define GAP 60.0
#define TICKS_MAX 6.0
#define LABEL 13.0 /* smallest distance between two labels */
#define ASIDE 3.0  /* between the points of two curves at one x */
#define CAP 2.0    /* half of the width of a bar's ends */

/* Colours that are legible on white and on black. */
static const char *const colours[SVG_LINES_MAX] = { "#1f77b4", "#e07b00", "#2ca02c", "#d62728",
						    "#9467bd", "#17a2b8", "#c2569d", "#8c7a3f" };

static double x_of(const struct svg_plot *plot, uint32_t point)
{
	/* Zero is placed one decade before the smallest positive value. */
	double first = plot->xs[0] > 0 ? log10(plot->xs[0]) : log10(plot->xs[1]) - 1;
	double last = log10(plot->xs[plot->point_count - 1]);
	double at = plot->xs[point] > 0 ? log10(plot->xs[point]) : first;

	return LEFT + (WIDTH - LEFT - RIGHT) * (at - first) / (last - first);
}

static double top_of(uint32_t panel)
{
	return TOP + panel * (PANEL + GAP);
}

/* Rounds to 1, 2 or 5 times a power of 10. */
static double step_of(double max)
{
	double step = pow(10, floor(log10(max / TICKS_MAX)));

	if (max / step > TICKS_MAX * 5)
		return step * 10;
	if (max / step > TICKS_MAX * 2)
		return step * 5;
	return max / step > TICKS_MAX ? step * 2 : step;
}

static void print_number(FILE *file, double value)
{
	if (value >= 1e6)
		(void)fprintf(file, "%gM", value / 1e6);
	else if (value >= 1e3)
		(void)fprintf(file, "%gk", value / 1e3);
	else
		(void)fprintf(file, "%g", value);
}

/* A y axis, from its lowest to its highest value. */
struct axis {
	double top; /* pixels */
	double low;
	double high;
	double step;
	bool is_log; /* a step is a factor */
};

static double y_of(const struct axis *axis, double value)
{
	double share = axis->is_log ? log(value / axis->low) / log(axis->high / axis->low)
				    : (value - axis->low) / (axis->high - axis->low);

	return axis->top + PANEL * (1 - share);
}

static struct axis axis_of(const struct svg_plot *plot, uint32_t number)
{
	const struct svg_panel *panel = &plot->panels[number];
	struct axis axis = { .top = top_of(number) };
	double min = (double)INFINITY;
	double max = 0;

	for (uint32_t i = 0; i < panel->line_count; i++) {
		for (uint32_t j = 0; j < plot->point_count; j++) {
			min = fmin(min, panel->lines[i].values[j].low);
			max = fmax(max, panel->lines[i].values[j].high);
		}
	}
	axis.is_log = min > 0 && max > 10 * min;
	if (axis.is_log) {
		axis.step = 10;
		axis.low = pow(10, floor(log10(min)));
		axis.high = pow(10, ceil(log10(max)));
		return axis;
	}
	max = max > 0 ? max : 1;
	axis.step = step_of(max);
	axis.high = axis.step * ceil(max / axis.step);
	return axis;
}

static void print_axes(FILE *file, const struct svg_plot *plot, uint32_t number,
		       const struct axis *axis)
{
	const struct svg_panel *panel = &plot->panels[number];
	double bottom = axis->top + PANEL;

	(void)fprintf(file, "<text class=\"title\" x=\"%g\" y=\"%g\">%s</text>\n", LEFT,
		      axis->top - 22, panel->title);
	(void)fprintf(file, "<text x=\"%g\" y=\"%g\">%s%s</text>\n", LEFT, axis->top - 8,
		      panel->unit, axis->is_log ? " (logarithmic)" : "");
	for (double at = axis->low; at <= axis->high * 1.001;
	     at = axis->is_log ? at * axis->step : at + axis->step) {
		(void)fprintf(file, "<path class=\"grid\" d=\"M%g %.1fH%g\"/>\n", LEFT,
			      y_of(axis, at), WIDTH - RIGHT);
		(void)fprintf(file, "<text class=\"y\" x=\"%g\" y=\"%.1f\">", LEFT - 6,
			      y_of(axis, at) + 4);
		print_number(file, at);
		(void)fputs("</text>\n", file);
	}
	for (uint32_t i = 0; i < plot->point_count; i++) {
		(void)fprintf(file, "<path class=\"grid\" d=\"M%.1f %gV%g\"/>\n", x_of(plot, i),
			      axis->top, bottom);
		(void)fprintf(file, "<text class=\"x\" x=\"%.1f\" y=\"%g\">", x_of(plot, i),
			      bottom + 15);
		print_number(file, plot->xs[i]);
		(void)fputs("</text>\n", file);
	}
}

/* Prints the points of a line with their bars, `aside` of the middle. */
static void print_points(FILE *file, const struct svg_plot *plot, const struct svg_line *line,
			 const struct axis *axis, double aside)
{
	for (uint32_t i = 0; i < plot->point_count; i++) {
		const struct svg_value *value = &line->values[i];
		double x = x_of(plot, i) + aside;

		if (isnan(value->middle))
			continue;
		(void)fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>", x,
			      y_of(axis, value->middle));
		(void)fprintf(file,
			      "<path class=\"spread\" d=\"M%.1f %.1fh%gm%g 0V%.1fm%g 0h%g\"/>\n",
			      x - CAP, y_of(axis, value->low), 2 * CAP, -CAP,
			      y_of(axis, value->high), -CAP, 2 * CAP);
	}
}

static void print_line(FILE *file, const struct svg_plot *plot, uint32_t number, uint32_t index,
		       const struct axis *axis)
{
	const struct svg_panel *panel = &plot->panels[number];
	const struct svg_line *line = &panel->lines[index];
	const char *colour = line->is_reference ? "currentColor"
						: colours[line->colour % SVG_LINES_MAX];
	double aside = ASIDE * (index - (panel->line_count - 1) / 2.0);
	double y = axis->top + 10 + LABEL * index;
	const char *move = "M";

	(void)fprintf(file, "<g style=\"color:%s\"><path class=\"line%s\" d=\"", colour,
		      line->is_reference ? " reference" : "");
	for (uint32_t i = 0; i < plot->point_count; i++) {
		if (isnan(line->values[i].middle))
			continue;
		(void)fprintf(file, "%s%.1f %.1f", move, x_of(plot, i) + aside,
			      y_of(axis, line->values[i].middle));
		move = "L";
	}
	(void)fputs("\"/>\n", file);
	print_points(file, plot, line, axis, aside);
	(void)fprintf(file, "<path class=\"line%s\" d=\"M%g %gh16\"/>",
		      line->is_reference ? " reference" : "", WIDTH - RIGHT + 16, y - 4);
	(void)fprintf(file, "<text x=\"%g\" y=\"%g\">%s</text></g>\n", WIDTH - RIGHT + 38, y,
		      line->name);
}

static void print_panel(FILE *file, const struct svg_plot *plot, uint32_t number)
{
	struct axis axis = axis_of(plot, number);

	print_axes(file, plot, number, &axis);
	for (uint32_t i = 0; i < plot->panels[number].line_count; i++)
		print_line(file, plot, number, i, &axis);
}

static void print_head(FILE *file, double height)
{
	(void)fprintf(file,
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\""
		      " width=\"%g\" height=\"%g\">\n",
		      WIDTH, height, WIDTH, height);
	(void)fputs("<style>\n"
		    "svg { color: #1f2328; font: 12px sans-serif }\n"
		    "@media (prefers-color-scheme: dark) { svg { color: #d6dbe1 } }\n"
		    "text, circle { fill: currentColor }\n"
		    ".line { fill: none; stroke: currentColor; stroke-width: 2 }\n"
		    ".spread { fill: none; stroke: currentColor; opacity: 0.6 }\n"
		    ".reference { stroke-dasharray: 5 4 }\n"
		    ".grid { stroke: currentColor; opacity: 0.2 }\n"
		    ".title { font-weight: bold }\n"
		    ".y { text-anchor: end }\n"
		    ".x { text-anchor: middle }\n"
		    "</style>\n",
		    file);
}

bool svg_write(const char *path, const struct svg_plot *plot)
{
	FILE *file = fopen(path, "we");
	double height = top_of(plot->panel_count) - GAP + BOTTOM;
	bool good;

	if (file == NULL)
		return false;
	print_head(file, height);
	(void)fprintf(file, "<text class=\"title\" x=\"16\" y=\"22\">%s</text>\n", plot->title);
	(void)fprintf(file, "<text x=\"16\" y=\"42\">%s</text>\n", plot->beside);
	for (uint32_t i = 0; i < plot->panel_count; i++)
		print_panel(file, plot, i);
	(void)fprintf(file, "<text class=\"x\" x=\"%g\" y=\"%g\">%s</text>\n</svg>\n",
		      (LEFT + WIDTH - RIGHT) / 2, height - 14, plot->x_title);
	good = ferror(file) == 0;
	return fclose(file) == 0 && good;
}
