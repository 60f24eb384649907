/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the report of a race; see page.h. */
#include "page.h"

#include "bars.h"
#include "tests/bench/common/markup.h"
#include "tests/bench/rpc/pattern.h"
#include "view.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#define VIEWS_MAX (ROUTES * PATTERNS)

static const char style[] =
	":root { --fg: #1f2328; --dim: #59636e; --bg: #ffffff; --line: #d1d9e0; --spoke: #0969da;\n"
	"  --library: #1a8f78; --bare: #8250df; --limit: #cf222e; --grey: #b6bdc5 }\n"
	"@media (prefers-color-scheme: dark) { :root { --fg: #e6edf3; --dim: #9198a1;\n"
	"  --bg: #0d1117; --line: #3d444d; --spoke: #4493f8; --library: #3fb99c; --bare: #ab7df8;\n"
	"  --limit: #ff7b72; --grey: #596069 } }\n"
	"body { color: var(--fg); background: var(--bg); font: 14px/1.45 system-ui, sans-serif;\n"
	"  max-width: 960px; margin: 24px auto; padding: 0 20px }\n"
	"h1 { font-size: 24px; line-height: 1.25; margin: 0 0 8px }\n"
	"h2 { font-size: 17px; margin: 32px 0 4px }\n"
	"h3 { font-size: 14px; margin: 0 }\n"
	"p { margin: 4px 0 12px; color: var(--dim); max-width: 90ch }\n"
	".grid2 { display: grid; grid-template-columns: repeat(auto-fill, 470px); gap: 22px 20px "
	"}\n"
	"svg { max-width: 100%; height: auto; font: 12px system-ui, sans-serif; display: block }\n"
	"svg text { fill: var(--fg) }\n"
	".name, .figure, .end { text-anchor: end } .middle { text-anchor: middle }\n"
	".strong { font-weight: bold }\n"
	".figure { font-variant-numeric: tabular-nums }\n"
	"svg .label, svg .why { fill: var(--dim); font-size: 11px }\n"
	".spoke { fill: var(--spoke) } .library { fill: var(--library) }\n"
	".bare { fill: var(--bare); fill-opacity: 0.25; stroke: var(--bare) }\n"
	".grey { fill: var(--grey) }\n"
	".whisker { stroke: var(--fg); fill: none }\n"
	".limit { stroke: var(--limit); stroke-width: 1.5; stroke-dasharray: 4 3 }\n"
	".grid { stroke: var(--line) }\n"
	".key span { margin-right: 18px; white-space: nowrap }\n"
	".key i { display: inline-block; width: 14px; height: 10px; margin-right: 5px }\n"
	"table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums;\n"
	"  font-size: 13px; margin: 8px 0 }\n"
	"th, td { padding: 2px 8px; text-align: right; border-bottom: 1px solid var(--line) }\n"
	"th:first-child, td:first-child, td.text, th.text { text-align: left }\n"
	"td.dim { color: var(--dim) }\n"
	"tr.first td { border-top: 2px solid var(--dim) }\n"
	"dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px }\n"
	"dt { color: var(--dim) } dd { margin: 0 }\n";

/* The lowest and the highest of several ratios. */
struct range {
	double low;
	double high; /* 0: none */
};

/* Widens the range by spoke's calls/s as a multiple of a peer's, unless one was disturbed. */
static void widen(struct range *range, const struct view_bar *spoke, const struct view_bar *peer)
{
	struct report_spread ratio;

	if (spoke == NULL || peer == NULL || spoke->why[0] != '\0' || peer->why[0] != '\0' ||
	    !view_ratio(spoke->row, peer->row, &ratio))
		return;
	range->low = fmin(range->low, ratio.middle);
	range->high = fmax(range->high, ratio.middle);
}

/* The conclusion: spoke against the limit and against the other libraries. A peer whose server
 * alone is measured has the benchmark's own client, so it is no library in this sense. */
static void print_title(FILE *out, const struct view *views, uint32_t count)
{
	struct range limit = { (double)INFINITY, 0 };
	struct range others = { (double)INFINITY, 0 };

	for (uint32_t i = 0; i < count; i++) {
		const struct view *view = &views[i];
		const struct view_bar *spoke = view_find(view, REPORT_SPOKE);

		if (view->limit != NULL)
			widen(&limit, spoke, view_find(view, view->limit->peer));
		for (uint32_t j = 0; j < view->count; j++)
			if (view->bars[j].kind == VIEW_LIBRARY &&
			    !view->bars[j].row->is_server_alone)
				widen(&others, spoke, &view->bars[j]);
	}
	if (limit.high > 0)
		(void)fprintf(out, "spoke reaches %.0f to %.0f %% of the best bare echo",
			      limit.low * 100, limit.high * 100);
	else
		(void)fputs("No row of spoke and of its limit is undisturbed", out);
	if (others.high > 0)
		(void)fprintf(out, ", and makes %.1f to %.0f times the calls of other libraries",
			      others.low, others.high);
}

static void print_key(FILE *out)
{
	static const struct {
		const char *colour;
		const char *text;
	} keys[] = {
		{ "--spoke", "spoke" },
		{ "--library", "other libraries" },
		{ "--bare", "bare echoes, without RPC" },
		{ "--limit", "the limit: the best bare echo" },
		{ "--grey", "disturbed, with the reason" },
	};

	(void)fputs("<p class=\"key\">", out);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		(void)fprintf(out, "<span><i style=\"background:var(%s)\"></i>%s</span>\n",
			      keys[i].colour, keys[i].text);
	(void)fputs("</p>\n", out);
}

/* The facts but for the list of peers, in one line. */
static void print_line(FILE *out, const struct recorded_facts *facts)
{
	const char *separator = "";

	(void)fputs("<p>", out);
	for (uint32_t i = 0; i < facts->count; i++) {
		const struct recorded_fact *fact = &facts->facts[i];

		if (strcmp(fact->name, "Peers") == 0 || strcmp(fact->name, "Compiler") == 0)
			continue;
		(void)fprintf(out, "%s%s ", separator,
			      strcmp(fact->name, "Congestion control") == 0 ? "TCP with"
			      : strcmp(fact->name, "Priority") == 0         ? "priority"
									    : "");
		markup_text(out, fact->value);
		separator = " &middot; ";
	}
	(void)fputs("</p>\n", out);
}

static void print_head(FILE *out, const struct view *views, uint32_t count,
		       const struct recorded_facts *facts)
{
	(void)fprintf(
		out,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width\">\n"
		"<title>The race of spoke</title>\n<style>\n%s</style>\n</head>\n<body>\n<h1>",
		style);
	print_title(out, views, count);
	(void)fputs("</h1>\n", out);
	print_line(out, facts);
	(void)fputs(
		"<p>The title is of rows that were not disturbed. Bars are medians of the "
		"repetitions, whiskers their quartiles. The limit is the bare echo with the most "
		"calls/s in the same run, which moves frames and does nothing else; it may poll, "
		"or write before it has read everything. Each side has one core for all its "
		"threads, so libraries with threads of their own are held to one core a "
		"side.</p>\n",
		out);
	print_key(out);
}

static void print_panels(FILE *out, const struct view *views, uint32_t count)
{
	(void)fputs(
		"<h2>Calls per second, by pattern</h2>\n<p>Patterns are named payload-connections "
		"x calls in flight on each. Each has a scale of its own.</p>\n"
		"<div class=\"grid2\">\n",
		out);
	for (uint32_t i = 0; i < count; i++) {
		(void)fputs("<section><h3>", out);
		markup_text(out, views[i].pattern);
		(void)fputs("</h3>\n", out);
		bars_draw(out, &views[i]);
		(void)fputs("</section>\n", out);
	}
	(void)fputs("</div>\n", out);
}

/* Prints a cell; empty for a value that is not a number. */
static void print_cell(FILE *out, int digits, double value)
{
	char text[32] = "";

	if (isfinite(value))
		(void)snprintf(text, sizeof(text), "%.*f", digits, value);
	(void)fprintf(out, "<td>%s</td>", text);
}

static void print_row(FILE *out, const struct view *view, const struct view_bar *bar, bool is_first)
{
	const struct report_row *row = bar->row;
	bool is_measured = row->reps > 0;
	struct report_spread share = { (double)NAN, (double)NAN, (double)NAN };

	(void)view_ratio(row, view->limit, &share);
	(void)fprintf(out, "<tr%s><td>", is_first ? " class=\"first\"" : "");
	markup_text(out, is_first ? view->pattern : "");
	(void)fputs("</td><td class=\"text\">", out);
	markup_text(out, row->peer);
	(void)fputs("</td>", out);
	print_cell(out, 0, is_measured ? bar->calls.middle : (double)NAN);
	print_cell(out, 0, is_measured ? bar->calls.low : (double)NAN);
	print_cell(out, 0, is_measured ? bar->calls.high : (double)NAN);
	print_cell(out, 1, is_measured ? report_median(row, REPORT_P50_US) : (double)NAN);
	print_cell(out, 1, is_measured ? report_median(row, REPORT_P99_US) : (double)NAN);
	print_cell(out, 3, is_measured ? report_median(row, REPORT_CPU_US) : (double)NAN);
	print_cell(out, 2, share.middle);
	(void)fputs("<td class=\"text dim\">", out);
	markup_text(out, bar->why);
	(void)fputs("</td></tr>\n", out);
}

static void print_table(FILE *out, const struct view *views, uint32_t count)
{
	(void)fputs(
		"<h2>All figures</h2>\n<p>CPU time is that of both sides; for redis it is that of "
		"the server.</p>\n<table>\n<tr><th>pattern</th><th class=\"text\">peer</th>"
		"<th>calls/s</th><th>quartiles: low</th><th>high</th><th>p50, &micro;s</th>"
		"<th>p99, &micro;s</th><th>CPU, &micro;s</th><th>of the limit</th>"
		"<th class=\"text\">disturbed</th></tr>\n",
		out);
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < views[i].count; j++)
			print_row(out, &views[i], &views[i].bars[j], j == 0);
	(void)fputs("</table>\n", out);
}

static void print_facts(FILE *out, const struct recorded_facts *facts)
{
	(void)fputs("<h2>Conditions</h2>\n<dl>\n", out);
	for (uint32_t i = 0; i < facts->count; i++) {
		(void)fputs("<dt>", out);
		markup_text(out, facts->facts[i].name);
		(void)fputs("</dt><dd>", out);
		markup_text(out, facts->facts[i].value);
		(void)fputs("</dd>\n", out);
	}
	(void)fprintf(out,
		      "<dt>Grey</dt><dd>a call failed or a process died; or other processes (at "
		      "normal priority) or the hypervisor took more than %.0f %% of the CPUs in "
		      "half of the repetitions; or the quartiles are more than %.0f %% of the "
		      "median apart</dd>\n</dl>\n",
		      REPORT_FOREIGN_MAX * 100, VIEW_SPREAD_MAX * 100);
}

/* Failures to create the directory show when the file is opened. */
static void make_parent(const char *path)
{
	char folder[512];
	char *end;

	(void)snprintf(folder, sizeof(folder), "%s", path);
	end = strrchr(folder, '/');
	if (end == NULL || end == folder)
		return;
	*end = '\0';
	(void)mkdir(folder, 0777);
}

bool page_write(const char *path, const struct recorded_facts *facts)
{
	static struct view views[VIEWS_MAX];
	const char *names[VIEWS_MAX];
	uint32_t count = (uint32_t)report_patterns(names, VIEWS_MAX);
	FILE *out;
	bool good;

	make_parent(path);
	out = fopen(path, "we");
	if (out == NULL)
		return false;
	for (uint32_t i = 0; i < count; i++)
		views[i] = view_of(names[i], facts);
	print_head(out, views, count, facts);
	(void)fputs("<h2>spoke as a share of the limit</h2>\n", out);
	bars_draw_shares(out, views, count);
	print_panels(out, views, count);
	print_table(out, views, count);
	print_facts(out, facts);
	(void)fputs("</body>\n</html>\n", out);
	good = ferror(out) == 0;
	return fclose(out) == 0 && good;
}
