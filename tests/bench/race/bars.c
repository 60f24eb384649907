/* SPDX-License-Identifier: Apache-2.0 */
/* Draws bars; see bars.h. Lengths are in pixels. */
#include "bars.h"

#include "tests/bench/common/markup.h"

#include <math.h>

#define WIDTH 470.0
#define LEFT 112.0  /* names */
#define RIGHT 148.0 /* figures, and what disturbed them */
#define TOP 20.0    /* the label of the limit */
#define ROW 18.0
#define BAR 11.0
#define GROUP 6.0 /* between kinds of peers */
#define CAP 3.0   /* half of the height of a whisker's ends */

#define WIDE 960.0
#define WIDE_LEFT 150.0
#define WIDE_RIGHT 230.0

/* A scale from 0 on. */
struct scale {
	double left;
	double width;
	double max;
};

static double x_of(const struct scale *scale, double value)
{
	return scale->left + scale->width * fmin(1, value / scale->max);
}

static const char *class_of(const struct view_bar *bar)
{
	static const char *const names[] = {
		[VIEW_SPOKE] = "spoke",
		[VIEW_LIBRARY] = "library",
		[VIEW_LIMIT] = "bare",
	};

	return bar->why[0] != '\0' ? "grey" : names[bar->kind];
}

static void draw_text(FILE *out, const char *class, double x, double y, const char *text)
{
	(void)fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
	markup_text(out, text);
	(void)fputs("</text>\n", out);
}

static void draw_whisker(FILE *out, const struct scale *scale, const struct report_spread *spread,
			 double y)
{
	double low = x_of(scale, spread->low);
	double high = x_of(scale, spread->high);

	(void)fprintf(
		out,
		"<path class=\"whisker\" d=\"M%.1f %.1fv%.1fM%.1f %.1fH%.1fM%.1f %.1fv%.1f\"/>\n",
		low, y - CAP, 2 * CAP, low, y, high, high, y - CAP, 2 * CAP);
}

static void draw_bar(FILE *out, const struct scale *scale, const struct view_bar *bar, double y)
{
	char number[24];
	char text[96];

	draw_text(out, bar->kind == VIEW_SPOKE ? "name strong" : "name", LEFT - 6, y + 4,
		  bar->row->peer);
	if (bar->row->reps == 0) {
		draw_text(out, "why", LEFT + 4, y + 4, bar->why);
		return;
	}
	(void)fprintf(out,
		      "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
		      class_of(bar), LEFT, y - BAR / 2,
		      fmax(1, x_of(scale, bar->calls.middle) - LEFT), BAR);
	draw_whisker(out, scale, &bar->calls, y);
	markup_number(number, sizeof(number), bar->calls.middle);
	draw_text(out, "figure", WIDTH - RIGHT + 60, y + 4, number);
	(void)snprintf(text, sizeof(text), "%s", bar->why);
	if (text[0] != '\0')
		draw_text(out, "why", WIDTH - RIGHT + 68, y + 4, text);
}

/* The limit as a line over all bars, with its label above them. */
static void draw_limit(FILE *out, const struct scale *scale, const struct view *view, double height)
{
	char label[64];
	double x;

	if (view->limit == NULL)
		return;
	x = x_of(scale, report_median(view->limit, REPORT_CALLS_PER_S));
	(void)snprintf(label, sizeof(label), "limit: %s", view->limit->peer);
	(void)fprintf(out, "<path class=\"limit\" d=\"M%.1f %.1fV%.1f\"/>\n", x, TOP - 5,
		      height - 2);
	draw_text(out, x > WIDTH / 2 ? "label end" : "label", x, TOP - 8, label);
}

void bars_draw(FILE *out, const struct view *view)
{
	struct scale scale = { LEFT, WIDTH - LEFT - RIGHT, 1 };
	double height = TOP + ROW * view->count + 2 * GROUP + 4;
	double y = TOP + ROW / 2;

	for (uint32_t i = 0; i < view->count; i++)
		scale.max = fmax(scale.max, view->bars[i].calls.high);
	(void)fprintf(out, "<svg viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\">\n",
		      WIDTH, height, WIDTH, height);
	for (uint32_t i = 0; i < view->count; i++) {
		if (i > 0 && view->bars[i].kind != view->bars[i - 1].kind)
			y += GROUP;
		draw_bar(out, &scale, &view->bars[i], y);
		y += ROW;
	}
	draw_limit(out, &scale, view, height);
	(void)fputs("</svg>\n", out);
}

static void draw_share(FILE *out, const struct scale *scale, const struct view *view, double y)
{
	const struct view_bar *spoke = view_find(view, REPORT_SPOKE);
	const struct view_bar *limit = view->limit == NULL ? NULL
							   : view_find(view, view->limit->peer);
	struct report_spread share;
	char text[128];
	const char *why;

	draw_text(out, "name", WIDE_LEFT - 6, y + 4, view->pattern);
	if (spoke == NULL || limit == NULL || !view_ratio(spoke->row, limit->row, &share)) {
		draw_text(out, "why", WIDE_LEFT + 4, y + 4, "not compared");
		return;
	}
	why = spoke->why[0] != '\0' ? spoke->why : limit->why;
	(void)fprintf(out,
		      "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
		      why[0] != '\0' ? "grey" : "spoke", WIDE_LEFT, y - BAR / 2,
		      x_of(scale, share.middle) - WIDE_LEFT, BAR);
	draw_whisker(out, scale, &share, y);
	(void)snprintf(text, sizeof(text), "%.0f %%", share.middle * 100);
	draw_text(out, "figure", WIDE - WIDE_RIGHT + 52, y + 4, text);
	(void)snprintf(text, sizeof(text), "of %s%s%s", limit->row->peer,
		       why[0] != '\0' ? ": " : "", why);
	draw_text(out, why[0] != '\0' ? "why" : "label", WIDE - WIDE_RIGHT + 60, y + 4, text);
}

void bars_draw_shares(FILE *out, const struct view *views, uint32_t count)
{
	struct scale scale = { WIDE_LEFT, WIDE - WIDE_LEFT - WIDE_RIGHT, 1.25 };
	double height = TOP + ROW * count + 6;

	(void)fprintf(out, "<svg viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\">\n",
		      WIDE, height, WIDE, height);
	for (unsigned percent = 25; percent <= 100; percent += 25) {
		char text[16];

		(void)snprintf(text, sizeof(text), "%u %%", percent);
		(void)fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1fV%.1f\"/>\n",
			      percent == 100 ? "limit" : "grid", x_of(&scale, percent / 100.0),
			      TOP - 4, height - 4);
		draw_text(out, "label middle", x_of(&scale, percent / 100.0), TOP - 8,
			  percent == 100 ? "100 %: the limit" : text);
	}
	for (uint32_t i = 0; i < count; i++)
		draw_share(out, &scale, &views[i], TOP + ROW / 2 + ROW * i);
	(void)fputs("</svg>\n", out);
}
