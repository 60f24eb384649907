/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plots of curves as SVG: panels above each other with a common x axis, which is logarithmic and
 * may begin with 0. A y axis begins with 0, or is logarithmic if its values span more than a
 * decade. Bars show the spread of each point. Legible on light and dark backgrounds, with the
 * reader's fonts.
 */
#ifndef BENCH_SVG_H
#define BENCH_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SVG_LINES_MAX 8
#define SVG_POINTS_MAX 8
#define SVG_PANELS_MAX 4
#define SVG_TITLE 320 /* bytes */

/* A point, and the ends of its bar; NaN: not measured. */
struct svg_value {
	double low;
	double middle;
	double high;
};

/* A curve. */
struct svg_line {
	const char *name;
	uint32_t colour;   /* index of the colour */
	bool is_reference; /* dashed, in the colour of the text */
	struct svg_value values[SVG_POINTS_MAX];
};

struct svg_panel {
	char title[SVG_TITLE];
	const char *unit; /* of the y axis */
	uint32_t line_count;
	struct svg_line lines[SVG_LINES_MAX];
};

struct svg_plot {
	char title[SVG_TITLE];
	char beside[SVG_TITLE]; /* the conditions */
	const char *x_title;
	uint32_t point_count;
	uint32_t xs[SVG_POINTS_MAX]; /* ascending */
	uint32_t panel_count;
	struct svg_panel panels[SVG_PANELS_MAX];
};

/* Writes the plot; returns whether the file was written. */
bool svg_write(const char *path, const struct svg_plot *plot);

#endif
