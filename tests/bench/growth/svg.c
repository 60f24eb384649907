/* SPDX-License-Identifier: Apache-2.0 */
/* Plots; see svg.h. Lengths are in pixels. */
#include "svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define WIDTH 720.0
#define LEFT 76.0
#define RIGHT 150.0
#define TOP 56.0
#define BOTTOM 48.0
#define PANEL 150.0
#define GAP 44.0
#define TICKS_MAX 6.0
#define LABEL 13.0 /* smallest distance between two labels */

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

static double max_of(const struct svg_plot *plot, const struct svg_panel *panel)
{
	double max = 0;

	for (uint32_t i = 0; i < panel->line_count; i++)
		for (uint32_t j = 0; j < plot->point_count; j++)
			if (panel->lines[i].values[j] > max)
				max = panel->lines[i].values[j];
	return max > 0 ? max : 1;
}

static void print_axes(FILE *file, const struct svg_plot *plot, uint32_t number, double step,
		       double end)
{
	const struct svg_panel *panel = &plot->panels[number];
	double bottom = top_of(number) + PANEL;

	(void)fprintf(file, "<text class=\"title\" x=\"%g\" y=\"%g\">%s</text>\n", LEFT,
		      top_of(number) - 8, panel->title);
	for (unsigned i = 0; step * i <= end * 1.001; i++) {
		double y = bottom - PANEL * step * i / end;

		(void)fprintf(file, "<path class=\"grid\" d=\"M%g %.1fH%g\"/>\n", LEFT, y,
			      WIDTH - RIGHT);
		(void)fprintf(file, "<text class=\"y\" x=\"%g\" y=\"%.1f\">", LEFT - 6, y + 4);
		print_number(file, step * i);
		(void)fputs("</text>\n", file);
	}
	for (uint32_t i = 0; i < plot->point_count; i++) {
		(void)fprintf(file, "<path class=\"grid\" d=\"M%.1f %gV%g\"/>\n", x_of(plot, i),
			      top_of(number), bottom);
		(void)fprintf(file, "<text class=\"x\" x=\"%.1f\" y=\"%g\">", x_of(plot, i),
			      bottom + 15);
		print_number(file, plot->xs[i]);
		(void)fputs("</text>\n", file);
	}
}

static void print_line(FILE *file, const struct svg_plot *plot, uint32_t number, uint32_t index,
		       double end)
{
	const struct svg_line *line = &plot->panels[number].lines[index];
	const char *colour = line->is_reference ? "currentColor"
						: colours[line->colour % SVG_LINES_MAX];
	double bottom = top_of(number) + PANEL;
	double y = top_of(number) + 10 + LABEL * index;
	const char *move = "M";

	(void)fprintf(file, "<g style=\"color:%s\"><path class=\"line%s\" d=\"", colour,
		      line->is_reference ? " reference" : "");
	for (uint32_t i = 0; i < plot->point_count; i++) {
		if (isnan(line->values[i]))
			continue;
		(void)fprintf(file, "%s%.1f %.1f", move, x_of(plot, i),
			      bottom - PANEL * line->values[i] / end);
		move = "L";
	}
	(void)fputs("\"/>\n", file);
	for (uint32_t i = 0; i < plot->point_count; i++)
		if (!isnan(line->values[i]))
			(void)fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>\n",
				      x_of(plot, i), bottom - PANEL * line->values[i] / end);
	(void)fprintf(file, "<path class=\"line%s\" d=\"M%g %gh16\"/>",
		      line->is_reference ? " reference" : "", WIDTH - RIGHT + 10, y - 4);
	(void)fprintf(file, "<text x=\"%g\" y=\"%g\">%s</text></g>\n", WIDTH - RIGHT + 32, y,
		      line->name);
}

static void print_panel(FILE *file, const struct svg_plot *plot, uint32_t number)
{
	double max = max_of(plot, &plot->panels[number]);
	double step = step_of(max);
	double end = step * ceil(max / step);

	print_axes(file, plot, number, step, end);
	for (uint32_t i = 0; i < plot->panels[number].line_count; i++)
		print_line(file, plot, number, i, end);
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
	(void)fprintf(file, "<text x=\"%g\" y=\"20\">%s</text>\n", LEFT, plot->title);
	for (uint32_t i = 0; i < plot->panel_count; i++)
		print_panel(file, plot, i);
	(void)fprintf(file, "<text class=\"x\" x=\"%g\" y=\"%g\">%s</text>\n</svg>\n",
		      (LEFT + WIDTH - RIGHT) / 2, height - 14, plot->x_title);
	good = ferror(file) == 0;
	return fclose(file) == 0 && good;
}
