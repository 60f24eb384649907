/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plots of curves as SVG: panels above each other with a common x axis, which is logarithmic and
 * may begin with 0; y axes begin with 0. Legible on light and dark backgrounds, with the reader's
 * fonts.
 */
#ifndef BENCH_SVG_H
#define BENCH_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SVG_LINES_MAX 8
#define SVG_POINTS_MAX 8
#define SVG_PANELS_MAX 4

/* A curve. Points that were not measured are NaN. */
struct svg_line {
	const char *name;
	uint32_t colour;   /* index of the colour */
	bool is_reference; /* dashed, in the colour of the text */
	double values[SVG_POINTS_MAX];
};

struct svg_panel {
	const char *title;
	uint32_t line_count;
	struct svg_line lines[SVG_LINES_MAX];
};

struct svg_plot {
	const char *title;
	const char *x_title;
	uint32_t point_count;
	uint32_t xs[SVG_POINTS_MAX]; /* ascending */
	uint32_t panel_count;
	struct svg_panel panels[SVG_PANELS_MAX];
};

/* Writes the plot; returns whether the file was written. */
bool svg_write(const char *path, const struct svg_plot *plot);

#endif
