/* SPDX-License-Identifier: Apache-2.0 */
/* Samples the counters of an engine once a second. */
#include "cluster/admin/status.h"
#include "core/base/histogram.h"
#include "core/engine/engine.h"

#include <string.h>

#define MEDIAN 500000u /* of a million */
#define P99 990000u

static void remember(struct spokei_history *history, const struct spoke_engine *engine)
{
	history->last_ns = engine->begin_ns;
	memcpy(history->last, engine->stats, sizeof(history->last));
	history->latency = *engine->latency;
}

void spokei_history_init(struct spokei_history *history, const struct spoke_engine *engine)
{
	history->count = 0;
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

void spokei_history_take(struct spokei_history *history, const struct spoke_engine *engine)
{
	static const enum spoke_stat failures[] = {
		SPOKE_STAT_CALLS_REMOTE, SPOKE_STAT_CALLS_TIMEOUT_UNSENT, SPOKE_STAT_CALLS_TIMEOUT,
		SPOKE_STAT_CALLS_LOST,   SPOKE_STAT_CALLS_CLOSED,         SPOKE_STAT_CALLS_FAILED,
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
	};

	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		sample.failed += since(history, engine, failures[i]);
	take_latency(history, engine, &sample);
	history->samples[history->count % SPOKEI_HISTORY] = sample;
	history->count++;
	remember(history, engine);
}
