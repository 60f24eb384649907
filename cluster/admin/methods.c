/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the figures of methods: rows of the status, as JSON and as text, and metrics. */
#include "cluster/admin/metrics.h"
#include "cluster/admin/status_parts.h"
#include "core/engine/figures.h"

#define NAME 80u /* bytes of a name in the text */

static size_t count_sets(const struct spoke_engine *engine)
{
	const struct spokei_figures *figures = NULL;
	size_t count = 0;

	while ((figures = spokei_figures_next(engine, figures)) != NULL)
		count++;
	return count;
}

/* The ends of a call or a request that was begun, as the engine's counters name them. */
struct ends {
	const char *prefix; /* of their names */
	enum spoke_stat first;
	enum spoke_stat last;
};

static const struct ends ends_of[] = {
	[SPOKEI_FIGURES_CALLS] = { "calls_", SPOKE_STAT_CALLS_OK, SPOKE_STAT_CALLS_REFUSED },
	[SPOKEI_FIGURES_REQUESTS] = { "requests_", SPOKE_STAT_REQUESTS_OK,
				      SPOKE_STAT_REQUESTS_ABANDONED },
};

static const char *end_name(const struct ends *ends, unsigned stat)
{
	return spoke_stat_name((enum spoke_stat)stat) + strlen(ends->prefix);
}

static bool has_end(unsigned stat)
{
	return stat != SPOKE_STAT_REQUESTS_NO_SERVICE; /* such a request has no method */
}

static uint64_t begun(const struct spokei_figures *figures)
{
	return spokei_figures_get(figures, figures->side == SPOKEI_FIGURES_CALLS
						   ? SPOKE_STAT_CALLS
						   : SPOKE_STAT_REQUESTS);
}

/* --- JSON */

static void show_ends(struct spokei_json *json, const struct spokei_figures *figures)
{
	const struct ends *ends = &ends_of[figures->side];

	spokei_json_open_member(json, "ends", '{');
	for (unsigned i = ends->first; i <= ends->last; i++)
		if (has_end(i))
			spokei_json_put_u64(json, end_name(ends, i),
					    spokei_figures_get(figures, (enum spoke_stat)i));
	if (figures->side == SPOKEI_FIGURES_CALLS)
		spokei_json_put_u64(json, "deferred",
				    spokei_figures_get(figures, SPOKE_STAT_CALLS_DEFERRED));
	spokei_json_close(json, '}');
}

static void show_spread(struct spokei_json *json, const char *name,
			const struct spoke_histogram *histogram)
{
	spokei_json_open_member(json, name, '{');
	spokei_json_put_u64(json, "p50_ns", spoke_histogram_percentile(histogram, 500000));
	spokei_json_put_u64(json, "p99_ns", spoke_histogram_percentile(histogram, 990000));
	spokei_json_put_u64(json, "p999_ns", spoke_histogram_percentile(histogram, 999000));
	spokei_json_put_u64(json, "max_ns", histogram->max);
	spokei_json_close(json, '}');
}

static void show_method(struct spokei_json *json, const struct spokei_figures *figures)
{
	spokei_json_open(json, '{');
	spokei_json_put_text(json, "side", spokei_figures_side_name(figures->side));
	spokei_json_put_text(json, "service", figures->service);
	spokei_json_put_text(json, "method", figures->method);
	spokei_json_put_u64(json, "begun", begun(figures));
	spokei_json_put_u64(json, "in_flight", spokei_figures_in_flight(figures));
	spokei_json_put_u64(json, "failed", spokei_figures_failed(figures));
	show_ends(json, figures);
	show_spread(json, "took", &figures->took);
	if (figures->queued)
		show_spread(json, "queued", figures->queued);
	spokei_json_close(json, '}');
}

void spokei_status_methods(struct spokei_json *json, const struct spoke_engine *engine,
			   struct spokei_rows *rows)
{
	const struct spokei_figures *figures = NULL;
	size_t count = count_sets(engine);
	size_t shown = spokei_rows_take(rows, count);

	spokei_json_open_member(json, "methods", '[');
	for (size_t i = 0; i < shown; i++) {
		figures = spokei_figures_next(engine, figures);
		show_method(json, figures);
	}
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "methods_more", count - shown);
}

/* --- text */

static void put_method(struct spokei_lines *lines, const struct spokei_figures *figures)
{
	const struct spoke_histogram *took = &figures->took;
	char service[NAME];
	char method[NAME];

	(void)spokei_log_escape_end(service, sizeof(service), figures->service,
				    strlen(figures->service));
	(void)spokei_log_escape(method, sizeof(method), figures->method, strlen(figures->method));
	spokei_lines_put(lines,
			 "  %-8s %s/%s: %" PRIu64 " begun, %" PRIu64 " in flight, %" PRIu64
			 " failed, 50%% within %" PRIu64 " us, 99%% within %" PRIu64 " us\n",
			 spokei_figures_side_name(figures->side), service, method, begun(figures),
			 spokei_figures_in_flight(figures), spokei_figures_failed(figures),
			 spoke_histogram_percentile(took, 500000) / 1000,
			 spoke_histogram_percentile(took, 990000) / 1000);
}

void spokei_status_put_methods(struct spokei_lines *lines, const struct spoke_engine *engine,
			       struct spokei_rows *rows)
{
	const struct spokei_figures *figures = NULL;
	size_t count = count_sets(engine);
	size_t shown = spokei_rows_take(rows, count);

	if (count > 0)
		spokei_lines_put(lines, "\nMethods\n");
	for (size_t i = 0; i < shown; i++) {
		figures = spokei_figures_next(engine, figures);
		put_method(lines, figures);
	}
	if (count > shown)
		spokei_lines_put(lines, "  and %zu more\n", count - shown);
}

/* --- metrics */

/* The families of a side. */
struct families {
	const char *begun;
	const char *begun_help;
	const char *ends;
	const char *ends_help;
	const char *in_flight;
	const char *in_flight_help;
	const char *took;
	const char *took_help;
};

static const struct families families_of[] = {
	[SPOKEI_FIGURES_CALLS] = {
		"spoke_method_calls_total", "calls begun.",
		"spoke_method_call_ends_total", "calls that ended, by result; or were refused.",
		"spoke_method_calls_in_flight", "calls in flight, without tickets.",
		"spoke_method_call_duration_seconds",
		"duration of answered calls, with all their attempts.",
	},
	[SPOKEI_FIGURES_REQUESTS] = {
		"spoke_method_requests_total", "requests received.",
		"spoke_method_request_ends_total", "requests that ended, by result.",
		"spoke_method_requests_in_flight", "requests being served.",
		"spoke_method_handler_seconds",
		"time in the handler; of those that answer at once, some are timed for all.",
	},
};

static const char pool_wait[] = "spoke_method_pool_wait_seconds";

static void put_labels(struct spokei_lines *lines, const struct spokei_figures *figures)
{
	spokei_metrics_label(lines, "{", "service", figures->service);
	spokei_metrics_label(lines, ",", "method", figures->method);
}

static void put_number(struct spokei_lines *lines, const char *name,
		       const struct spokei_figures *figures, uint64_t value)
{
	spokei_lines_put(lines, "%s", name);
	put_labels(lines, figures);
	spokei_lines_put(lines, "} %" PRIu64 "\n", value);
}

static void put_end(struct spokei_lines *lines, const char *name,
		    const struct spokei_figures *figures, const char *result, uint64_t value)
{
	spokei_lines_put(lines, "%s", name);
	put_labels(lines, figures);
	spokei_lines_put(lines, ",result=\"%s\"} %" PRIu64 "\n", result, value);
}

static void put_ends(struct spokei_lines *lines, const char *name,
		     const struct spokei_figures *figures)
{
	const struct ends *ends = &ends_of[figures->side];

	for (unsigned i = ends->first; i <= ends->last; i++)
		if (has_end(i))
			put_end(lines, name, figures, end_name(ends, i),
				spokei_figures_get(figures, (enum spoke_stat)i));
	if (figures->side == SPOKEI_FIGURES_CALLS)
		put_end(lines, name, figures, "deferred",
			spokei_figures_get(figures, SPOKE_STAT_CALLS_DEFERRED));
}

/* Returns the next set of a side, NULL after the last one. */
static const struct spokei_figures *next_of(const struct spoke_engine *engine,
					    const struct spokei_figures *before,
					    enum spokei_figures_side side)
{
	do
		before = spokei_figures_next(engine, before);
	while (before && before->side != side);
	return before;
}

static void put_histogram(struct spokei_lines *lines, const char *name,
			  const struct spokei_figures *figures,
			  const struct spoke_histogram *histogram)
{
	const struct spokei_metrics_of of = { figures->service, figures->method };

	spokei_metrics_histogram(lines, name, &of, histogram);
}

static void put_side(struct spokei_lines *lines, const struct spoke_engine *engine,
		     enum spokei_figures_side side)
{
	const struct families *names = &families_of[side];
	const struct spokei_figures *figures = NULL;

	spokei_metrics_family(lines, names->begun, "counter", names->begun_help);
	while ((figures = next_of(engine, figures, side)) != NULL)
		put_number(lines, names->begun, figures, begun(figures));
	spokei_metrics_family(lines, names->ends, "counter", names->ends_help);
	while ((figures = next_of(engine, figures, side)) != NULL)
		put_ends(lines, names->ends, figures);
	spokei_metrics_family(lines, names->in_flight, "gauge", names->in_flight_help);
	while ((figures = next_of(engine, figures, side)) != NULL)
		put_number(lines, names->in_flight, figures, spokei_figures_in_flight(figures));
	spokei_metrics_family(lines, names->took, "histogram", names->took_help);
	while ((figures = next_of(engine, figures, side)) != NULL)
		put_histogram(lines, names->took, figures, &figures->took);
}

void spokei_metrics_methods(struct spokei_lines *lines, const struct spoke_engine *engine)
{
	const struct spokei_figures *figures = NULL;

	put_side(lines, engine, SPOKEI_FIGURES_CALLS);
	put_side(lines, engine, SPOKEI_FIGURES_REQUESTS);
	spokei_metrics_family(lines, pool_wait, "histogram",
			      "time that requests waited for a thread of the pool.");
	while ((figures = next_of(engine, figures, SPOKEI_FIGURES_REQUESTS)) != NULL)
		if (figures->queued)
			put_histogram(lines, pool_wait, figures, figures->queued);
}
