/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of methods, in the status and the metrics. */
#include "cluster/admin/facts.h"
#include "cluster/admin/status_parts.h"
#include "core/engine/figures.h"

#include <string.h>

struct method_row {
	const char *side;
	const char *service;
	const char *method;
	uint64_t begun;
	uint64_t in_flight;
	uint64_t failed;
};

#define FACT(member, ...) SPOKEI_FACT(struct method_row, member, __VA_ARGS__)

static const struct spokei_fact call_facts[] = {
	FACT(side, .name = "side"),
	FACT(service, .label = "service", .name = "service"),
	FACT(method, .label = "method", .name = "method"),
	FACT(begun, .name = "begun", .counts = true, .family = "spoke_method_calls_total",
	     .help = "calls begun"),
	FACT(in_flight, .name = "in_flight", .family = "spoke_method_calls_in_flight",
	     .help = "calls in flight, without tickets"),
	FACT(failed, .name = "failed"),
};
static const struct spokei_fact request_facts[] = {
	FACT(service, .label = "service"),
	FACT(method, .label = "method"),
	FACT(begun, .counts = true, .family = "spoke_method_requests_total",
	     .help = "requests received"),
	FACT(in_flight, .family = "spoke_method_requests_in_flight",
	     .help = "requests being served"),
};
#undef FACT
static const struct spokei_facts of_calls = SPOKEI_FACTS(call_facts);
static const struct spokei_facts of_requests = SPOKEI_FACTS(request_facts);

/* The ends of the calls or requests of a side, which the engine counts. */
static const struct side {
	const struct spokei_facts *facts;
	const char *ends; /* families */
	const char *ends_help;
	const char *took;
	const char *took_help;
	const char *prefix; /* of the counters' names */
	enum spoke_stat begun;
	enum spoke_stat first;
	enum spoke_stat last;
} sides[] = {
	[SPOKEI_FIGURES_CALLS] = {
		&of_calls, "spoke_method_call_ends_total",
		"calls that ended, by result; or were refused",
		"spoke_method_call_duration_seconds",
		"duration of answered calls, with all their attempts", "calls_",
		SPOKE_STAT_CALLS, SPOKE_STAT_CALLS_OK, SPOKE_STAT_CALLS_REFUSED,
	},
	[SPOKEI_FIGURES_REQUESTS] = {
		&of_requests, "spoke_method_request_ends_total",
		"requests that ended, by result",
		"spoke_method_handler_seconds",
		"time in the handler; of those that answer at once, some are timed for all",
		"requests_", SPOKE_STAT_REQUESTS, SPOKE_STAT_REQUESTS_OK,
		SPOKE_STAT_REQUESTS_ABANDONED,
	},
};

static struct method_row row_of(const struct spokei_figures *figures)
{
	return (struct method_row){
		.side = spokei_figures_side_name(figures->side),
		.service = figures->service,
		.method = figures->method,
		.begun = spokei_figures_get(figures, sides[figures->side].begun),
		.in_flight = spokei_figures_in_flight(figures),
		.failed = spokei_figures_failed(figures),
	};
}

/* Finds the next way in which a call or request can end, from `*at` on. Returns NULL after the
 * last one. */
static const char *next_end(const struct spokei_figures *figures, unsigned *at,
			    enum spoke_stat *ret_stat)
{
	const struct side *side = &sides[figures->side];

	if (*at == SPOKE_STAT_REQUESTS_NO_SERVICE) /* such a request has no method */
		++*at;
	*ret_stat = (enum spoke_stat) * at;
	if (*at == (unsigned)side->last + 1 && figures->side == SPOKEI_FIGURES_CALLS)
		*ret_stat = SPOKE_STAT_CALLS_DEFERRED;
	else if (*at > (unsigned)side->last)
		return NULL;
	++*at;
	return spoke_stat_name(*ret_stat) + strlen(side->prefix);
}

/* --- JSON */

static void show_method(struct spokei_json *json, const struct spokei_figures *figures)
{
	const struct method_row row = row_of(figures);
	unsigned at = sides[figures->side].first;
	enum spoke_stat stat;
	const char *end;

	spokei_json_open(json, '{');
	spokei_facts_show(json, &of_calls, &row);
	spokei_json_open_member(json, "ends", '{');
	while ((end = next_end(figures, &at, &stat)) != NULL)
		spokei_json_put_u64(json, end, spokei_figures_get(figures, stat));
	spokei_json_close(json, '}');
	spokei_status_times(json, "took", &figures->took);
	if (figures->queued)
		spokei_status_times(json, "queued", figures->queued);
	spokei_json_close(json, '}');
}

void spokei_status_methods(struct spokei_json *json, const struct spoke_engine *engine,
			   struct spokei_rows *rows)
{
	const struct spokei_figures *figures = NULL;
	size_t count = 0;
	size_t shown;

	while ((figures = spokei_figures_next(engine, figures)) != NULL)
		count++;
	shown = spokei_rows_take(rows, count);
	spokei_json_open_member(json, "methods", '[');
	for (size_t i = 0; i < shown; i++) {
		figures = spokei_figures_next(engine, figures);
		show_method(json, figures);
	}
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "methods_more", count - shown);
}

/* --- metrics */

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

static void each_of(const struct spoke_engine *engine, enum spokei_figures_side side,
		    spokei_facts_take_fn take, void *arg)
{
	const struct spokei_figures *figures = NULL;

	while ((figures = next_of(engine, figures, side)) != NULL) {
		const struct method_row row = row_of(figures);

		take(arg, &row);
	}
}

static void each_call(const struct spoke_engine *engine, spokei_facts_take_fn take, void *arg)
{
	each_of(engine, SPOKEI_FIGURES_CALLS, take, arg);
}

static void each_request(const struct spoke_engine *engine, spokei_facts_take_fn take, void *arg)
{
	each_of(engine, SPOKEI_FIGURES_REQUESTS, take, arg);
}

static void put_ends(struct spokei_metrics *metrics, const struct spokei_figures *figures)
{
	const struct side *side = &sides[figures->side];
	const struct method_row row = row_of(figures);
	unsigned at = side->first;
	enum spoke_stat stat;
	const char *end;

	while ((end = next_end(figures, &at, &stat)) != NULL) {
		const struct spokei_labels labels = { side->facts, &row, "result", end };

		spokei_metrics_line(metrics, side->ends, &labels,
				    spokei_figures_get(figures, stat));
	}
}

static void put_times(struct spokei_metrics *metrics, const char *family,
		      const struct spokei_figures *figures, const struct spoke_histogram *times)
{
	const struct method_row row = row_of(figures);

	spokei_metrics_histogram(metrics, family, sides[figures->side].facts, &row, times);
}

static void put_side(struct spokei_metrics *metrics, const struct spoke_engine *engine,
		     enum spokei_figures_side of)
{
	const struct side *side = &sides[of];
	const struct spokei_figures *figures = NULL;

	spokei_facts_families(metrics, side->facts, engine,
			      of == SPOKEI_FIGURES_CALLS ? each_call : each_request);
	spokei_metrics_family(metrics, side->ends, "counter", side->ends_help);
	while ((figures = next_of(engine, figures, of)) != NULL)
		put_ends(metrics, figures);
	spokei_metrics_family(metrics, side->took, "histogram", side->took_help);
	while ((figures = next_of(engine, figures, of)) != NULL)
		put_times(metrics, side->took, figures, &figures->took);
}

void spokei_metrics_methods(struct spokei_metrics *metrics, const struct spoke_engine *engine)
{
	static const char wait[] = "spoke_method_pool_wait_seconds";
	const struct spokei_figures *figures = NULL;

	put_side(metrics, engine, SPOKEI_FIGURES_CALLS);
	put_side(metrics, engine, SPOKEI_FIGURES_REQUESTS);
	spokei_metrics_family(metrics, wait, "histogram",
			      "time that requests waited for a thread of the pool");
	while ((figures = next_of(engine, figures, SPOKEI_FIGURES_REQUESTS)) != NULL)
		if (figures->queued)
			put_times(metrics, wait, figures, figures->queued);
}
