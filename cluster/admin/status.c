/* SPDX-License-Identifier: Apache-2.0 */
/* The status and the metrics of an engine: its own facts, and the order of all. */
#include "cluster/admin/status.h"

#include "cluster/admin/status_parts.h"
#include "core/engine/engine.h"
#include "core/engine/events.h"
#include "core/engine/slow.h"

#include <spoke/wheel.h>

#include <stdio.h>
#include <string.h>

#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char spokei_status_version[] = VERSION_TEXT(SPOKE_VERSION_MAJOR, SPOKE_VERSION_MINOR,
						  SPOKE_VERSION_PATCH);

static uint64_t time_since(const struct spoke_engine *engine, uint64_t at_ns)
{
	return engine->begin_ns > at_ns ? engine->begin_ns - at_ns : 0;
}

/* --- the process and its engine */

struct engine_row {
	const char *version;
	const char *name;
	uint64_t number;
	uint64_t wall_ns;
	uint64_t now_ns;
	uint64_t up_ns;
	bool ending;
	bool one;
	struct spoke_pool pool;
	uint64_t late_max_ns;
	uint64_t late_recent_ns;
	struct spoke_wheel_shape shape;
	uint32_t count_max;
	uint64_t next_ns;
};

#define FACT(member, ...) SPOKEI_FACT(struct engine_row, member, __VA_ARGS__)

static const struct spokei_fact info_facts[] = {
	FACT(version, .label = "version", .name = "spoke"),
	FACT(name, .label = "name", .name = "name"),
	FACT(one, .family = "spoke_info", .help = "1: the labels describe this process"),
};
static const struct spokei_fact head_facts[] = {
	FACT(number, .name = "number"),
	FACT(wall_ns, .name = "wall_ms", .ms = true),
	FACT(now_ns, .name = "now_ms", .ms = true),
	FACT(up_ns, .name = "up_ms", .ms = true, .family = "spoke_up_seconds",
	     .help = "time since the admin page was opened"),
	FACT(ending, .name = "ending", .family = "spoke_ending", .help = "1: the engine drains"),
};
static const struct spokei_fact pool_facts[] = {
	FACT(pool.threads_max, .name = "threads_max", .family = "spoke_pool_threads_max",
	     .help = "threads that run blocking handlers"),
	FACT(pool.running, .name = "running", .family = "spoke_pool_running",
	     .help = "works that such threads run now"),
	FACT(pool.queue_max, .name = "queue_max", .family = "spoke_pool_queue_max",
	     .help = "works that may wait for a thread"),
	FACT(pool.queued, .name = "queued", .family = "spoke_pool_queued",
	     .help = "works that wait for a thread now"),
};
static const struct spokei_fact wheel_facts[] = {
	FACT(shape.tick_ns, .name = "tick_ns", .ns = true, .family = "spoke_wheel_tick_seconds",
	     .help = "duration of a tick of the wheel"),
	FACT(shape.tick, .name = "tick"),
	FACT(shape.slots, .name = "slots"),
	FACT(shape.levels, .name = "levels"),
	FACT(count_max, .name = "count_max"),
	FACT(next_ns, .name = "next_in_ms", .ms = true),
	FACT(late_max_ns, .ns = true, .family = "spoke_timer_late_max_seconds",
	     .help = "longest delay between a timer's tick and its firing"),
	FACT(late_recent_ns, .ns = true, .family = "spoke_timer_late_recent_seconds",
	     .help = "longest such delay of the last two minutes"),
};
#undef FACT
static const struct spokei_facts of_info = SPOKEI_FACTS(info_facts);
static const struct spokei_facts of_head = SPOKEI_FACTS(head_facts);
static const struct spokei_facts of_pool = SPOKEI_FACTS(pool_facts);
static const struct spokei_facts of_wheel = SPOKEI_FACTS(wheel_facts);

static struct engine_row engine_row(const struct spoke_engine *engine,
				    const struct spokei_status_of *of)
{
	struct engine_row row = {
		.version = spokei_status_version,
		.name = of->name,
		.number = of->number,
		.wall_ns = engine->env->wall(engine->env->ctx),
		.now_ns = engine->begin_ns,
		.up_ns = time_since(engine, of->born_ns),
		.ending = spokei_engine_ending(engine),
		.one = true,
		.count_max = SPOKEI_STATUS_COUNT_MAX,
		.next_ns = spoke_wheel_next(engine->wheel),
	};
	struct spoke_wheel_counts counts;

	spoke_engine_pool(engine, &row.pool);
	spoke_wheel_counts(engine->wheel, &counts);
	spoke_wheel_shape(engine->wheel, &row.shape);
	row.late_max_ns = counts.late_max_ns;
	row.late_recent_ns = counts.late_recent_ns;
	if (row.next_ns != SPOKE_WHEEL_NEVER)
		row.next_ns = row.next_ns > row.now_ns ? row.next_ns - row.now_ns : 0;
	return row;
}

/* --- counters */

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
static void put_stats(struct spokei_metrics *metrics, const struct spoke_engine *engine)
{
	for (unsigned i = 0; i < SPOKE_STAT_COUNT; i++) {
		const char *sentence = spoke_stat_sentence((enum spoke_stat)i);
		bool goes_on = strncmp(sentence, "...", 3) == 0;
		char name[64];
		char help[160];

		(void)snprintf(name, sizeof(name), "spoke_%s_total", name_of((enum spoke_stat)i));
		(void)snprintf(help, sizeof(help), "%s%s", goes_on ? "connections that ended" : "",
			       goes_on ? sentence + 3 : sentence);
		spokei_metrics_family(metrics, name, "counter", help);
		spokei_metrics_line(metrics, name, NULL, engine->stats[i]);
	}
}

static void show_stats(struct spokei_json *json, const struct spoke_engine *engine)
{
	spokei_json_open_member(json, "stats", '{');
	for (unsigned i = 0; i < SPOKE_STAT_COUNT; i++)
		spokei_json_put_u64(json, spoke_stat_name((enum spoke_stat)i), engine->stats[i]);
	spokei_json_close(json, '}');
}

/* --- the wheel */

/* Of a class of timers; without a name, of all. */
struct class_row {
	const char *name;
	struct spoke_wheel_counts counts;
};

#define FACT(member, ...) SPOKEI_FACT(struct class_row, member, __VA_ARGS__)

static const struct spokei_fact class_facts[] = {
	FACT(name, .label = "class", .name = "name"),
	FACT(counts.pending, .name = "pending", .family = "spoke_timers_pending",
	     .help = "timers armed now"),
	FACT(counts.scheduled, .name = "scheduled", .counts = true,
	     .family = "spoke_timers_scheduled_total", .help = "timers armed"),
	FACT(counts.fired, .name = "fired", .counts = true, .family = "spoke_timers_fired_total",
	     .help = "timers that fired"),
	FACT(counts.cancelled, .name = "cancelled", .counts = true,
	     .family = "spoke_timers_cancelled_total",
	     .help = "timers cancelled before they fired"),
	FACT(counts.rejected, .counts = true, .family = "spoke_timers_rejected_total",
	     .help = "timers rejected because the wheel was full"),
	FACT(counts.rescheduled, .name = "rescheduled"),
	FACT(counts.late_max_ns, .name = "late_max_ns"),
	FACT(counts.late_recent_ns, .name = "late_recent_ns"),
};
#undef FACT
static const struct spokei_facts of_class = SPOKEI_FACTS(class_facts);

static void each_class(const struct spoke_engine *engine, spokei_facts_take_fn take, void *arg)
{
	struct class_row row;

	for (unsigned i = 0;
	     spoke_wheel_class_counts(engine->wheel, i, &row.counts, &row.name) == SPOKE_WHEEL_OK;
	     i++)
		take(arg, &row);
}

static void show_class(void *arg, const void *row)
{
	struct spokei_json *json = arg;

	spokei_facts_object(json, &of_class, row);
}

/* Shows the classes of timers in a slot. Returns the number of rows. */
static uint32_t show_slot(struct spokei_json *json, const struct spoke_wheel *wheel, uint32_t level,
			  uint32_t slot)
{
	uint32_t of_class_in[SPOKE_WHEEL_CLASSES_MAX];
	uint32_t rows = 0;

	if (spoke_wheel_occupancy(wheel, level, slot, SPOKEI_STATUS_COUNT_MAX, of_class_in) == 0)
		return 0;
	for (uint32_t i = 0; i < SPOKE_WHEEL_CLASSES_MAX; i++) {
		if (of_class_in[i] == 0)
			continue;
		spokei_json_u64(json, slot);
		spokei_json_u64(json, of_class_in[i]);
		spokei_json_u64(json, i);
		rows++;
	}
	return rows;
}

/* Shows the occupied slots of a level, from the cursor on. */
static void show_level(struct spokei_json *json, const struct spoke_wheel *wheel,
		       const struct spoke_wheel_shape *shape, uint32_t level)
{
	uint32_t rows = 0;

	spokei_json_open(json, '[');
	for (uint32_t i = 0; i < shape->slots && rows < SPOKEI_STATUS_SLOTS; i++) {
		uint32_t slot = (shape->cursor[level] + i) & (shape->slots - 1);

		rows += show_slot(json, wheel, level, slot);
	}
	spokei_json_close(json, ']');
}

static void show_wheel(struct spokei_json *json, const struct spoke_engine *engine,
		       const struct engine_row *row)
{
	const struct spoke_wheel_shape *shape = &row->shape;
	struct class_row all = { .name = NULL };

	spokei_json_open_member(json, "wheel", '{');
	spokei_facts_show(json, &of_wheel, row);
	spokei_json_open_member(json, "cursor", '[');
	for (uint32_t level = 0; level < shape->levels; level++)
		spokei_json_u64(json, shape->cursor[level]);
	spokei_json_close(json, ']');
	spokei_json_open_member(json, "occupied", '[');
	for (uint32_t level = 0; level < shape->levels; level++)
		show_level(json, engine->wheel, shape, level);
	spokei_json_close(json, ']');
	spoke_wheel_counts(engine->wheel, &all.counts);
	spokei_facts_show(json, &of_class, &all);
	spokei_json_open_member(json, "classes", '[');
	each_class(engine, show_class, json);
	spokei_json_close(json, ']');
	spokei_json_close(json, '}');
}

/* --- times */

struct times_row {
	uint64_t count;
	uint64_t mean_ns;
	uint64_t max_ns;
	uint64_t p50_ns;
	uint64_t p90_ns;
	uint64_t p99_ns;
	uint64_t p999_ns;
};

#define FACT(member, ...) SPOKEI_FACT(struct times_row, member, __VA_ARGS__)

static const struct spokei_fact times_facts[] = {
	FACT(count, .name = "count"),     FACT(mean_ns, .name = "mean_ns"),
	FACT(max_ns, .name = "max_ns"),   FACT(p50_ns, .name = "p50_ns"),
	FACT(p90_ns, .name = "p90_ns"),   FACT(p99_ns, .name = "p99_ns"),
	FACT(p999_ns, .name = "p999_ns"),
};
#undef FACT
static const struct spokei_facts of_times = SPOKEI_FACTS(times_facts);

void spokei_status_times(struct spokei_json *json, const char *name,
			 const struct spoke_histogram *times)
{
	const struct times_row row = {
		.count = times->count,
		.mean_ns = spoke_histogram_mean(times),
		.max_ns = times->max,
		.p50_ns = spoke_histogram_percentile(times, 500000),
		.p90_ns = spoke_histogram_percentile(times, 900000),
		.p99_ns = spoke_histogram_percentile(times, 990000),
		.p999_ns = spoke_histogram_percentile(times, 999000),
	};

	spokei_json_open_member(json, name, '{');
	spokei_facts_show(json, &of_times, &row);
	spokei_json_close(json, '}');
}

/* --- lists that only the status has */

#define FACT(member, ...) SPOKEI_FACT(struct spokei_sample, member, __VA_ARGS__)

static const struct spokei_fact sample_facts[] = {
	FACT(at_ns, .name = "at_ms", .ms = true),
	FACT(span_ns, .name = "span_ms", .ms = true),
	FACT(calls, .name = "calls"),
	FACT(ok, .name = "ok"),
	FACT(failed, .name = "failed"),
	FACT(timeouts, .name = "timeouts"),
	FACT(deferred, .name = "deferred"),
	FACT(requests, .name = "requests"),
	FACT(p50_ns, .name = "p50_ns"),
	FACT(p99_ns, .name = "p99_ns"),
	FACT(requests_ok, .name = "requests_ok"),
	FACT(requests_failed, .name = "requests_failed"),
	FACT(handler_p50_ns, .name = "handler_p50_ns"),
	FACT(handler_p99_ns, .name = "handler_p99_ns"),
};
#undef FACT
static const struct spokei_facts of_sample = SPOKEI_FACTS(sample_facts);

static void show_history(struct spokei_json *json, const struct spokei_status_of *of)
{
	const struct spokei_history *history = of->history;
	uint64_t from = history->count > SPOKEI_HISTORY ? history->count - SPOKEI_HISTORY : 0;

	if (from < of->history_from)
		from = of->history_from;
	spokei_json_open_member(json, "history", '[');
	for (; from < history->count; from++) {
		spokei_facts_object(json, &of_sample, &history->samples[from % SPOKEI_HISTORY]);
	}
	spokei_json_close(json, ']');
}

/* An event, or a slow call or request. */
struct note_row {
	uint64_t number;
	uint64_t ago_ns;
	const char *user;
	const char *side;
	const char *service;
	const char *method;
	const char *peer;
	uint64_t queued_ns;
	uint64_t took_ns;
	const char *error;
	const char *text;
};

#define FACT(member, ...) SPOKEI_FACT(struct note_row, member, __VA_ARGS__)

static const struct spokei_fact event_facts[] = {
	FACT(number, .name = "number"), FACT(ago_ns, .name = "ago_ms", .ms = true),
	FACT(user, .name = "user"),     FACT(error, .name = "error"),
	FACT(text, .name = "text"),
};
static const struct spokei_fact slow_facts[] = {
	FACT(number, .name = "number"),       FACT(ago_ns, .name = "ago_ms", .ms = true),
	FACT(side, .name = "side"),           FACT(service, .name = "service"),
	FACT(method, .name = "method"),       FACT(peer, .name = "peer"),
	FACT(queued_ns, .name = "queued_ns"), FACT(took_ns, .name = "took_ns"),
	FACT(error, .name = "error"),
};
#undef FACT
static const struct spokei_facts of_event = SPOKEI_FACTS(event_facts);
static const struct spokei_facts of_slow = SPOKEI_FACTS(slow_facts);

static const char *error_name(int error)
{
	return error ? spoke_errname(error) : "";
}

static void show_events(struct spokei_json *json, const struct spoke_engine *engine,
			const struct spokei_status_of *of)
{
	uint64_t last = engine->events->last;
	uint64_t number = last > SPOKEI_STATUS_EVENTS ? last - SPOKEI_STATUS_EVENTS + 1 : 1;
	const struct spoke_event *event;

	if (number < of->events_from)
		number = of->events_from;
	spokei_json_open_member(json, "events", '[');
	while ((event = spokei_events_find(engine->events, number)) != NULL) {
		const struct note_row row = {
			.number = event->number,
			.ago_ns = time_since(engine, event->at_ns),
			.user = spoke_event_user_name(event->user),
			.error = error_name(event->error),
			.text = event->text,
		};

		spokei_facts_object(json, &of_event, &row);
		number = event->number + 1;
	}
	spokei_json_close(json, ']');
}

static void show_slow_row(struct spokei_json *json, const struct spokei_slow_row *slow)
{
	const struct spokei_figures *figures = slow->figures;
	const struct note_row row = {
		.number = slow->number,
		.ago_ns = time_since(figures->engine, slow->at_ns),
		.side = spokei_figures_side_name(figures->side),
		.service = figures->service,
		.method = figures->method,
		.peer = slow->peer,
		.queued_ns = slow->queued_ns,
		.took_ns = slow->took_ns,
		.error = error_name(slow->error),
	};

	spokei_facts_object(json, &of_slow, &row);
}

static void show_slow(struct spokei_json *json, const struct spoke_engine *engine)
{
	const struct spokei_slow *slow = engine->slow;
	uint64_t count = slow ? slow->count : 0;
	uint64_t shown = count < SPOKEI_SLOW_ROWS ? count : SPOKEI_SLOW_ROWS;

	spokei_json_open_member(json, "slow", '{');
	spokei_json_put_u64(json, "count", count);
	spokei_json_open_member(json, "last", '[');
	for (uint64_t i = 0; i < shown; i++)
		show_slow_row(json, &slow->last[(count - i) % SPOKEI_SLOW_ROWS]);
	spokei_json_close(json, ']');
	spokei_json_open_member(json, "slowest", '[');
	for (size_t i = 0; slow && i < slow->slowest_count; i++)
		show_slow_row(json, &slow->slowest[i]);
	spokei_json_close(json, ']');
	spokei_json_close(json, '}');
}

/* --- all */

int spokei_status_write(const struct spoke_engine *engine, const struct spokei_status_of *of,
			struct spokei_buffer *out)
{
	const struct engine_row row = engine_row(engine, of);
	struct spokei_json json = spokei_json_make(out);
	struct spokei_rows rows = { SPOKEI_STATUS_ROWS_ALL };
	size_t before = spokei_buffer_len(out);

	spokei_json_open(&json, '{');
	spokei_facts_show(&json, &of_info, &row);
	spokei_facts_show(&json, &of_head, &row);
	show_wheel(&json, engine, &row);
	show_stats(&json, engine);
	spokei_status_times(&json, "latency", engine->latency);
	spokei_json_open_member(&json, "pool", '{');
	spokei_facts_show(&json, &of_pool, &row);
	spokei_json_close(&json, '}');
	show_history(&json, of);
	spokei_status_members(&json, engine, &rows);
	spokei_status_methods(&json, engine, &rows);
	show_slow(&json, engine);
	show_events(&json, engine, of);
	spokei_json_close(&json, '}');
	if (json.error == SPOKE_OK)
		return SPOKE_OK;
	spokei_buffer_truncate(out, before);
	return SPOKE_ENOMEM;
}

int spokei_metrics_write(const struct spoke_engine *engine, const struct spokei_status_of *of,
			 struct spokei_buffer *out)
{
	const char *const duration = "spoke_call_duration_seconds";
	const struct engine_row row = engine_row(engine, of);
	struct spokei_metrics metrics = { .out = out };
	size_t before = spokei_buffer_len(out);

	spokei_facts_families_of(&metrics, &of_info, &row);
	spokei_facts_families_of(&metrics, &of_head, &row);
	put_stats(&metrics, engine);
	spokei_facts_families(&metrics, &of_class, engine, each_class);
	spokei_facts_families_of(&metrics, &of_wheel, &row);
	spokei_metrics_family(&metrics, duration, "histogram",
			      "duration of answered calls, with all their attempts");
	spokei_metrics_histogram(&metrics, duration, NULL, NULL, engine->latency);
	spokei_facts_families_of(&metrics, &of_pool, &row);
	spokei_metrics_members(&metrics, engine);
	spokei_metrics_methods(&metrics, engine);
	if (metrics.error == SPOKE_OK)
		return SPOKE_OK;
	spokei_buffer_truncate(out, before);
	return SPOKE_ENOMEM;
}
