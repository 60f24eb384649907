/* SPDX-License-Identifier: Apache-2.0 */
/* Samples the counters of an engine once a second. */
#include "cluster/admin/status.h"
#include "core/base/histogram.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"

#include <string.h>

#define MEDIAN 500000u /* of a million */
#define P99 990000u

static void remember(struct spokei_history *history, const struct spoke_engine *engine)
{
	history->last_ns = engine->begin_ns;
	memcpy(history->last, engine->stats, sizeof(history->last));
	history->latency = *engine->latency;
}

/* Adds up the time in the handlers of all methods since the start. */
static void add_handled(const struct spoke_engine *engine, struct spoke_histogram *sum)
{
	const struct spokei_figures *figures = NULL;

	while ((figures = spokei_figures_next(engine, figures)) != NULL)
		if (figures->side == SPOKEI_FIGURES_REQUESTS && figures->took.count > 0)
			spoke_histogram_merge(sum, &figures->took);
}

void spokei_history_init(struct spokei_history *history, const struct spoke_engine *engine)
{
	history->count = 0;
	history->handled = (struct spoke_histogram){ 0 };
	add_handled(engine, &history->handled);
	remember(history, engine);
}

static uint64_t since(const struct spokei_history *history, const struct spoke_engine *engine,
		      enum spoke_stat stat)
{
	return engine->stats[stat] - history->last[stat];
}

/* Takes the latencies since the last sample, by subtraction in history->latency. */
static void take_latency(struct spokei_history *history, const struct spoke_engine *engine,
			 struct spokei_sample *sample)
{
	struct spoke_histogram *spread = &history->latency;

	if (spread->count == engine->latency->count)
		return;
	for (size_t i = 0; i < SPOKE_HISTOGRAM_BUCKETS; i++)
		spread->bucket[i] = engine->latency->bucket[i] - spread->bucket[i];
	spread->count = engine->latency->count - spread->count;
	spread->max = engine->latency->max;
	sample->p50_ns = spoke_histogram_percentile(spread, MEDIAN);
	sample->p99_ns = spoke_histogram_percentile(spread, P99);
}

static void take_handled(struct spokei_history *history, const struct spoke_engine *engine,
			 struct spokei_sample *sample)
{
	struct spoke_histogram now = { 0 };
	struct spoke_histogram spread;

	/* Most requests are not timed one by one, so none may have been since. */
	add_handled(engine, &now);
	if (now.count == history->handled.count)
		return;
	spread = now;
	spoke_histogram_since(&spread, &history->handled);
	sample->handler_p50_ns = spoke_histogram_percentile(&spread, MEDIAN);
	sample->handler_p99_ns = spoke_histogram_percentile(&spread, P99);
	history->handled = now;
}

void spokei_history_take(struct spokei_history *history, const struct spoke_engine *engine)
{
	static const enum spoke_stat failures[] = {
		SPOKE_STAT_CALLS_REMOTE, SPOKE_STAT_CALLS_TIMEOUT_UNSENT, SPOKE_STAT_CALLS_TIMEOUT,
		SPOKE_STAT_CALLS_LOST,   SPOKE_STAT_CALLS_CLOSED,         SPOKE_STAT_CALLS_FAILED,
	};
	static const enum spoke_stat unserved[] = {
		SPOKE_STAT_REQUESTS_ERROR,     SPOKE_STAT_REQUESTS_NO_SERVICE,
		SPOKE_STAT_REQUESTS_EXPIRED,   SPOKE_STAT_REQUESTS_REFUSED,
		SPOKE_STAT_REQUESTS_ABANDONED,
	};
	struct spokei_sample sample = {
		.at_ns = engine->begin_ns,
		.span_ns = engine->begin_ns - history->last_ns,
		.calls = since(history, engine, SPOKE_STAT_CALLS),
		.ok = since(history, engine, SPOKE_STAT_CALLS_OK),
		.timeouts = since(history, engine, SPOKE_STAT_CALLS_TIMEOUT) +
			    since(history, engine, SPOKE_STAT_CALLS_TIMEOUT_UNSENT),
		.deferred = since(history, engine, SPOKE_STAT_CALLS_DEFERRED),
		.requests = since(history, engine, SPOKE_STAT_REQUESTS),
		.requests_ok = since(history, engine, SPOKE_STAT_REQUESTS_OK),
	};

	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		sample.failed += since(history, engine, failures[i]);
	for (size_t i = 0; i < sizeof(unserved) / sizeof(unserved[0]); i++)
		sample.requests_failed += since(history, engine, unserved[i]);
	take_latency(history, engine, &sample);
	take_handled(history, engine, &sample);
	history->samples[history->count % SPOKEI_HISTORY] = sample;
	history->count++;
	remember(history, engine);
}
