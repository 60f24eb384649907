/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes /metrics: the families of the engine and its wheel, then those of metrics_cluster.c. Names
 * begin with spoke_, counters end in _total, times are in seconds.
 */
#include "cluster/admin/metrics.h"
#include "cluster/admin/secure.h"
#include "cluster/admin/status.h"
#include "core/engine/engine.h"

#include <spoke/wheel.h>

#include <stdio.h>

static void put_number(struct spokei_lines *lines, const char *name, const char *type,
		       const char *help, uint64_t value)
{
	spokei_metrics_family(lines, name, type, help);
	spokei_lines_put(lines, "%s %" PRIu64 "\n", name, value);
}

/* --- counters of the engine */

/* Returns a counter's name, with its unit where it needs one, and without a second "_total". */
static const char *name_of(enum spoke_stat stat)
{
	switch ((int)stat) {
	case SPOKE_STAT_BYTES_READ:
		return "read_bytes";
	case SPOKE_STAT_BYTES_WRITTEN:
		return "written_bytes";
	case SPOKE_STAT_ACCEPTS_REFUSED_TOTAL:
		return "accepts_refused";
	default:
		return spoke_stat_name(stat);
	}
}

/* In the list, sentences about ended connections begin with dots. */
static void write_stats(struct spokei_lines *lines, const struct spoke_engine *engine)
{
	for (unsigned i = 0; i < SPOKE_STAT_COUNT; i++) {
		const char *sentence = spoke_stat_sentence((enum spoke_stat)i);
		bool goes_on = strncmp(sentence, "...", 3) == 0;
		char name[64];
		char help[160];

		(void)snprintf(name, sizeof(name), "spoke_%s_total", name_of((enum spoke_stat)i));
		(void)snprintf(help, sizeof(help), "%s%s.", goes_on ? "connections that ended" : "",
			       goes_on ? sentence + 3 : sentence);
		put_number(lines, name, "counter", help, engine->stats[i]);
	}
}

/* --- the wheel */

/* The families of timer classes. */
static const struct {
	const char *name;
	const char *type;
	const char *help;
	size_t at; /* in struct spoke_wheel_counts */
} of_classes[] = {
	{ "spoke_timers_pending", "gauge", "timers armed now.",
	  offsetof(struct spoke_wheel_counts, pending) },
	{ "spoke_timers_scheduled_total", "counter", "timers armed.",
	  offsetof(struct spoke_wheel_counts, scheduled) },
	{ "spoke_timers_fired_total", "counter", "timers that fired.",
	  offsetof(struct spoke_wheel_counts, fired) },
	{ "spoke_timers_cancelled_total", "counter", "timers cancelled before they fired.",
	  offsetof(struct spoke_wheel_counts, cancelled) },
	{ "spoke_timers_rejected_total", "counter", "timers rejected because the wheel was full.",
	  offsetof(struct spoke_wheel_counts, rejected) },
};

static void write_wheel(struct spokei_lines *lines, const struct spoke_engine *engine)
{
	struct spoke_wheel_counts counts;
	struct spoke_wheel_shape shape;
	const char *class_name;

	for (size_t i = 0; i < sizeof(of_classes) / sizeof(of_classes[0]); i++) {
		const char *name = of_classes[i].name;

		spokei_metrics_family(lines, name, of_classes[i].type, of_classes[i].help);
		for (unsigned c = 0;
		     !spoke_wheel_class_counts(engine->wheel, c, &counts, &class_name); c++) {
			const void *at = (const char *)&counts + of_classes[i].at;

			spokei_lines_put(lines, "%s", name);
			spokei_metrics_label(lines, "{", "class", class_name);
			spokei_lines_put(lines, "} %" PRIu64 "\n", *(const uint64_t *)at);
		}
	}
	spoke_wheel_counts(engine->wheel, &counts);
	spokei_metrics_family(lines, "spoke_timer_late_max_seconds", "gauge",
			      "longest delay between a timer's tick and its firing.");
	spokei_lines_put(lines, "spoke_timer_late_max_seconds");
	spokei_metrics_seconds(lines, counts.late_max_ns);
	spokei_metrics_family(lines, "spoke_timer_late_recent_seconds", "gauge",
			      "longest such delay of the last two minutes.");
	spokei_lines_put(lines, "spoke_timer_late_recent_seconds");
	spokei_metrics_seconds(lines, counts.late_recent_ns);
	spoke_wheel_shape(engine->wheel, &shape);
	spokei_metrics_family(lines, "spoke_wheel_tick_seconds", "gauge",
			      "duration of a tick of the wheel.");
	spokei_lines_put(lines, "spoke_wheel_tick_seconds");
	spokei_metrics_seconds(lines, shape.tick_ns);
}

/* --- the pool */

static void write_pool(struct spokei_lines *lines, const struct spoke_engine *engine)
{
	struct spoke_pool pool;

	spoke_engine_pool(engine, &pool);
	put_number(lines, "spoke_pool_threads_max", "gauge", "threads that run blocking handlers.",
		   pool.threads_max);
	put_number(lines, "spoke_pool_running", "gauge", "works that such threads run now.",
		   pool.running);
	put_number(lines, "spoke_pool_queue_max", "gauge", "works that may wait for a thread.",
		   pool.queue_max);
	put_number(lines, "spoke_pool_queued", "gauge", "works that wait for a thread now.",
		   pool.queued);
}

/* --- all families */

static void write_head(struct spokei_lines *lines, const struct spoke_engine *engine,
		       const struct spokei_status_of *of)
{
	uint64_t now_ns = engine->begin_ns;

	spokei_metrics_family(lines, "spoke_info", "gauge", "1: the labels describe this process.");
	spokei_lines_put(lines, "spoke_info");
	spokei_metrics_label(lines, "{", "version", spokei_status_version);
	spokei_metrics_label(lines, ",", "name", of->name);
	spokei_lines_put(lines, "} 1\n");
	spokei_metrics_family(lines, "spoke_up_seconds", "gauge",
			      "time since the admin page was opened.");
	spokei_lines_put(lines, "spoke_up_seconds");
	spokei_metrics_seconds(lines, now_ns > of->born_ns ? now_ns - of->born_ns : 0);
	put_number(lines, "spoke_ending", "gauge", "1: the engine drains.",
		   spokei_engine_ending(engine));
}

static const char call_duration[] = "spoke_call_duration_seconds";

int spokei_metrics_write(const struct spoke_engine *engine, const struct spokei_status_of *of,
			 struct spokei_buffer *out)
{
	struct spokei_lines lines = spokei_lines_make(out);
	size_t before = spokei_buffer_len(out);

	write_head(&lines, engine, of);
	write_stats(&lines, engine);
	write_wheel(&lines, engine);
	spokei_metrics_family(&lines, call_duration, "histogram",
			      "duration of answered calls, with all their attempts.");
	spokei_metrics_histogram(&lines, call_duration, NULL, engine->latency);
	write_pool(&lines, engine);
	spokei_metrics_consumers(&lines, engine);
	spokei_metrics_endpoints(&lines, engine);
	spokei_metrics_providers(&lines, engine);
	spokei_metrics_tls(&lines, engine);
	spokei_metrics_leases(&lines, engine);
	spokei_metrics_comets(&lines, engine);
	spokei_metrics_methods(&lines, engine);
	if (lines.error == SPOKE_OK)
		return SPOKE_OK;
	spokei_buffer_truncate(out, before);
	return SPOKE_ENOMEM;
}
