/* SPDX-License-Identifier: Apache-2.0 */
/* The status and the metrics of an engine: its own facts, those of methods, and the order of all.
 */
#include "cluster/admin/status.h"

#include "cluster/admin/members.h"
#include "core/base/histogram.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"

#include <spoke/wheel.h>

#include <stdio.h>
#include <string.h>

#define MEDIAN 500000u /* of a million */
#define P99 990000u
#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char spokei_status_version[] = VERSION_TEXT(SPOKE_VERSION_MAJOR, SPOKE_VERSION_MINOR,
						  SPOKE_VERSION_PATCH);

static uint64_t time_since(const struct spoke_engine *engine, uint64_t at_ns)
{
	return engine->begin_ns > at_ns ? engine->begin_ns - at_ns : 0;
}

/* --- the process and its engine */

/* The process and its engine: the `of` of the functions that find their values. */
struct subject {
	const struct spoke_engine *engine;
	const struct spokei_status_of *page;
};

#define INFO_ROWS(FACT)                                                                            \
	FACT(spokei_status_version, LABEL("version"), NAME("spoke"))                               \
	FACT(page->name, LABEL("name"), NAME("name"))                                              \
	FACT(true, GAUGE("spoke_info", "1: the labels describe this process"))
SPOKEI_FACTS(of_info, INFO_ROWS);

static bool find_info(const void *of, spokei_facts_take_fn take, void *arg)
{
	const struct spokei_status_of *page = ((const struct subject *)of)->page;

	return take(arg, SPOKEI_FACT_VALUES(INFO_ROWS));
}

#define HEAD_ROWS(FACT)                                                                            \
	FACT(page->number, NAME("number"))                                                         \
	FACT(engine->env->wall(engine->env->ctx), MS("wall_ms"))                                   \
	FACT(engine->begin_ns, MS("now_ms"))                                                       \
	FACT(time_since(engine, page->born_ns), MS("up_ms"),                                       \
	     GAUGE("spoke_up_seconds", "time since the admin page was opened"))                    \
	FACT(spokei_engine_ending(engine), NAME("ending"),                                         \
	     GAUGE("spoke_ending", "1: the engine drains"))
SPOKEI_FACTS(of_head, HEAD_ROWS);

static bool find_head(const void *of, spokei_facts_take_fn take, void *arg)
{
	const struct spoke_engine *engine = ((const struct subject *)of)->engine;
	const struct spokei_status_of *page = ((const struct subject *)of)->page;

	return take(arg, SPOKEI_FACT_VALUES(HEAD_ROWS));
}

#define POOL_ROWS(FACT)                                                                            \
	FACT(pool.threads_max, NAME("threads_max"),                                                \
	     GAUGE("spoke_pool_threads_max", "threads that run blocking handlers"))                \
	FACT(pool.running, NAME("running"),                                                        \
	     GAUGE("spoke_pool_running", "works that such threads run now"))                       \
	FACT(pool.queue_max, NAME("queue_max"),                                                    \
	     GAUGE("spoke_pool_queue_max", "works that may wait for a thread"))                    \
	FACT(pool.queued, NAME("queued"),                                                          \
	     GAUGE("spoke_pool_queued", "works that wait for a thread now"))
SPOKEI_FACTS(of_pool, POOL_ROWS);

static bool find_pool(const void *of, spokei_facts_take_fn take, void *arg)
{
	struct spoke_pool pool;

	spoke_engine_pool(((const struct subject *)of)->engine, &pool);
	return take(arg, SPOKEI_FACT_VALUES(POOL_ROWS));
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

#define WHEEL_ROWS(FACT)                                                                           \
	FACT(shape.tick_ns, NAME("tick_ns"), NS,                                                   \
	     GAUGE("spoke_wheel_tick_seconds", "duration of a tick of the wheel"))                 \
	FACT(shape.tick, NAME("tick"))                                                             \
	FACT(shape.slots, NAME("slots"))                                                           \
	FACT(shape.levels, NAME("levels"))                                                         \
	FACT(SPOKEI_STATUS_COUNT_MAX, NAME("count_max"))                                           \
	FACT(time_until(engine, spoke_wheel_next(engine->wheel)), MS("next_in_ms"))                \
	FACT(counts.late_max_ns, NS,                                                               \
	     GAUGE("spoke_timer_late_max_seconds",                                                 \
		   "longest delay between a timer's tick and its firing"))                         \
	FACT(counts.late_recent_ns, NS,                                                            \
	     GAUGE("spoke_timer_late_recent_seconds",                                              \
		   "longest such delay of the last two minutes"))
SPOKEI_FACTS(of_wheel, WHEEL_ROWS);

/* Returns UINT64_MAX for SPOKE_WHEEL_NEVER. */
static uint64_t time_until(const struct spoke_engine *engine, uint64_t at_ns)
{
	if (at_ns == SPOKE_WHEEL_NEVER)
		return UINT64_MAX;
	return at_ns > engine->begin_ns ? at_ns - engine->begin_ns : 0;
}

static bool find_wheel(const void *of, spokei_facts_take_fn take, void *arg)
{
	const struct spoke_engine *engine = ((const struct subject *)of)->engine;
	struct spoke_wheel_counts counts;
	struct spoke_wheel_shape shape;

	spoke_wheel_counts(engine->wheel, &counts);
	spoke_wheel_shape(engine->wheel, &shape);
	return take(arg, SPOKEI_FACT_VALUES(WHEEL_ROWS));
}

/* Of a class of timers; without a name, of all. */
#define CLASS_ROWS(FACT)                                                                           \
	FACT(name, LABEL("class"), NAME("name"))                                                   \
	FACT(counts.pending, NAME("pending"), GAUGE("spoke_timers_pending", "timers armed now"))   \
	FACT(counts.scheduled, NAME("scheduled"),                                                  \
	     COUNTER("spoke_timers_scheduled_total", "timers armed"))                              \
	FACT(counts.fired, NAME("fired"),                                                          \
	     COUNTER("spoke_timers_fired_total", "timers that fired"))                             \
	FACT(counts.cancelled, NAME("cancelled"),                                                  \
	     COUNTER("spoke_timers_cancelled_total", "timers cancelled before they fired"))        \
	FACT(counts.rejected,                                                                      \
	     COUNTER("spoke_timers_rejected_total", "timers rejected because the wheel was full")) \
	FACT(counts.rescheduled, NAME("rescheduled"))                                              \
	FACT(counts.late_max_ns, NAME("late_max_ns"))                                              \
	FACT(counts.late_recent_ns, NAME("late_recent_ns"))
SPOKEI_FACTS(of_class, CLASS_ROWS);

static bool find_all_classes(const void *of, spokei_facts_take_fn take, void *arg)
{
	const struct spoke_engine *engine = of;
	const char *name = NULL;
	struct spoke_wheel_counts counts;

	spoke_wheel_counts(engine->wheel, &counts);
	return take(arg, SPOKEI_FACT_VALUES(CLASS_ROWS));
}

static bool find_classes(const void *of, spokei_facts_take_fn take, void *arg)
{
	const struct spoke_engine *engine = of;
	struct spoke_wheel_counts counts;
	const char *name;

	for (unsigned i = 0;
	     spoke_wheel_class_counts(engine->wheel, i, &counts, &name) == SPOKE_WHEEL_OK; i++)
		if (!take(arg, SPOKEI_FACT_VALUES(CLASS_ROWS)))
			return false;
	return true;
}

static bool show_class(void *arg, const struct spokei_fact_value *values)
{
	spokei_facts_object(arg, &of_class, values);
	return true;
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

static void show_wheel(struct spokei_json *json, const struct subject *subject)
{
	const struct spoke_engine *engine = subject->engine;
	struct spoke_wheel_shape shape;

	spoke_wheel_shape(engine->wheel, &shape);
	spokei_json_open_member(json, "wheel", '{');
	spokei_facts_find(json, &of_wheel, find_wheel, subject);
	spokei_json_open_member(json, "cursor", '[');
	for (uint32_t level = 0; level < shape.levels; level++)
		spokei_json_u64(json, shape.cursor[level]);
	spokei_json_close(json, ']');
	spokei_json_open_member(json, "occupied", '[');
	for (uint32_t level = 0; level < shape.levels; level++)
		show_level(json, engine->wheel, &shape, level);
	spokei_json_close(json, ']');
	spokei_facts_find(json, &of_class, find_all_classes, engine);
	spokei_json_open_member(json, "classes", '[');
	(void)find_classes(engine, show_class, json);
	spokei_json_close(json, ']');
	spokei_json_close(json, '}');
}

/* --- times */

#define TIMES_ROWS(FACT)                                                                           \
	FACT(times->count, NAME("count"))                                                          \
	FACT(spoke_histogram_mean(times), NAME("mean_ns"))                                         \
	FACT(times->max, NAME("max_ns"))                                                           \
	FACT(spoke_histogram_percentile(times, MEDIAN), NAME("p50_ns"))                            \
	FACT(spoke_histogram_percentile(times, 900000), NAME("p90_ns"))                            \
	FACT(spoke_histogram_percentile(times, P99), NAME("p99_ns"))                               \
	FACT(spoke_histogram_percentile(times, 999000), NAME("p999_ns"))
SPOKEI_FACTS(of_times, TIMES_ROWS);

static void show_times(struct spokei_json *json, const char *name,
		       const struct spoke_histogram *times)
{
	spokei_json_key(json, name);
	spokei_facts_object(json, &of_times, SPOKEI_FACT_VALUES(TIMES_ROWS));
}

/* --- the history: the counters, sampled once a second */

static void remember(struct spokei_history *history, const struct spoke_engine *engine)
{
	history->last_ns = engine->begin_ns;
	memcpy(history->last, engine->stats, sizeof(history->last));
}

void spokei_history_init(struct spokei_history *history, const struct spoke_engine *engine)
{
	history->count = 0;
	spokei_figures_took(engine, SPOKEI_FIGURES_REQUESTS, &history->handled);
	spokei_figures_took(engine, SPOKEI_FIGURES_CALLS, &history->latency);
	remember(history, engine);
}

static uint64_t since(const struct spokei_history *history, const struct spoke_engine *engine,
		      enum spoke_stat stat)
{
	return engine->stats[stat] - history->last[stat];
}

/* Takes percentiles of the times since the last sample, and keeps these times for the next one.
 * Most requests are not timed one by one, so there may be none. */
static void take_times(const struct spoke_histogram *now, struct spoke_histogram *last,
		       uint64_t *ret_median, uint64_t *ret_p99)
{
	struct spoke_histogram spread = *now;

	if (now->count == last->count)
		return;
	spoke_histogram_since(&spread, last);
	*ret_median = spoke_histogram_percentile(&spread, MEDIAN);
	*ret_p99 = spoke_histogram_percentile(&spread, P99);
	*last = *now;
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
	struct spoke_histogram handled;
	struct spoke_histogram latency;

	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		sample.failed += since(history, engine, failures[i]);
	for (size_t i = 0; i < sizeof(unserved) / sizeof(unserved[0]); i++)
		sample.requests_failed += since(history, engine, unserved[i]);
	spokei_figures_took(engine, SPOKEI_FIGURES_REQUESTS, &handled);
	spokei_figures_took(engine, SPOKEI_FIGURES_CALLS, &latency);
	take_times(&latency, &history->latency, &sample.p50_ns, &sample.p99_ns);
	take_times(&handled, &history->handled, &sample.handler_p50_ns, &sample.handler_p99_ns);
	history->samples[history->count % SPOKEI_HISTORY] = sample;
	history->count++;
	remember(history, engine);
}

#define SAMPLE_ROWS(FACT)                                                                          \
	FACT(sample->at_ns, MS("at_ms"))                                                           \
	FACT(sample->span_ns, MS("span_ms"))                                                       \
	FACT(sample->calls, NAME("calls"))                                                         \
	FACT(sample->ok, NAME("ok"))                                                               \
	FACT(sample->failed, NAME("failed"))                                                       \
	FACT(sample->timeouts, NAME("timeouts"))                                                   \
	FACT(sample->deferred, NAME("deferred"))                                                   \
	FACT(sample->requests, NAME("requests"))                                                   \
	FACT(sample->p50_ns, NAME("p50_ns"))                                                       \
	FACT(sample->p99_ns, NAME("p99_ns"))                                                       \
	FACT(sample->requests_ok, NAME("requests_ok"))                                             \
	FACT(sample->requests_failed, NAME("requests_failed"))                                     \
	FACT(sample->handler_p50_ns, NAME("handler_p50_ns"))                                       \
	FACT(sample->handler_p99_ns, NAME("handler_p99_ns"))
SPOKEI_FACTS(of_sample, SAMPLE_ROWS);

static void show_history(struct spokei_json *json, const struct spokei_status_of *of)
{
	const struct spokei_history *history = of->history;
	uint64_t from = history->count > SPOKEI_HISTORY ? history->count - SPOKEI_HISTORY : 0;

	if (from < of->history_from)
		from = of->history_from;
	spokei_json_open_member(json, "history", '[');
	for (; from < history->count; from++) {
		const struct spokei_sample *sample = &history->samples[from % SPOKEI_HISTORY];

		spokei_facts_object(json, &of_sample, SPOKEI_FACT_VALUES(SAMPLE_ROWS));
	}
	spokei_json_close(json, ']');
}

/* --- events, slow calls and slow requests */

#define EVENT_ROWS(FACT)                                                                           \
	FACT(event->number, NAME("number"))                                                        \
	FACT(time_since(engine, event->at_ns), MS("ago_ms"))                                       \
	FACT(spoke_event_user_name(event->user), NAME("user"))                                     \
	FACT(error_name(event->error), NAME("error"))                                              \
	FACT(event->text, NAME("text"))
SPOKEI_FACTS(of_event, EVENT_ROWS);

static const char *error_name(int error)
{
	return error ? spoke_errname(error) : "";
}

static void show_events(struct spokei_json *json, const struct spoke_engine *engine,
			const struct spokei_status_of *of)
{
	uint64_t last = engine->events.last;
	uint64_t number = last > SPOKEI_STATUS_EVENTS ? last - SPOKEI_STATUS_EVENTS + 1 : 1;
	const struct spoke_event *event;

	if (number < of->events_from)
		number = of->events_from;
	spokei_json_open_member(json, "events", '[');
	while ((event = spokei_events_find(engine, number)) != NULL) {
		spokei_facts_object(json, &of_event, SPOKEI_FACT_VALUES(EVENT_ROWS));
		number = event->number + 1;
	}
	spokei_json_close(json, ']');
}

#define SLOW_ROWS(FACT)                                                                            \
	FACT(slow->number, NAME("number"))                                                         \
	FACT(time_since(figures->engine, slow->at_ns), MS("ago_ms"))                               \
	FACT(spokei_figures_side_name(figures->side), NAME("side"))                                \
	FACT(figures->service, NAME("service"))                                                    \
	FACT(figures->method, NAME("method"))                                                      \
	FACT(slow->peer, NAME("peer"))                                                             \
	FACT(slow->queued_ns, NAME("queued_ns"))                                                   \
	FACT(slow->took_ns, NAME("took_ns"))                                                       \
	FACT(error_name(slow->error), NAME("error"))
SPOKEI_FACTS(of_slow, SLOW_ROWS);

static void show_slow_row(struct spokei_json *json, const struct spokei_slow_row *slow)
{
	const struct spokei_figures *figures = slow->figures;

	spokei_facts_object(json, &of_slow, SPOKEI_FACT_VALUES(SLOW_ROWS));
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

/* --- methods */

/* The names of a side's families are details. */
#define METHOD_ROWS(FACT, BEGUN, IN_FLIGHT)                                                        \
	FACT(spokei_figures_side_name(figures->side), NAME("side"))                                \
	FACT(figures->service, LABEL("service"), NAME("service"))                                  \
	FACT(figures->method, LABEL("method"), NAME("method"))                                     \
	FACT(spokei_figures_get(figures, sides[figures->side].begun), NAME("begun"), BEGUN)        \
	FACT(spokei_figures_in_flight(figures), NAME("in_flight"), IN_FLIGHT)                      \
	FACT(spokei_figures_failed(figures), NAME("failed"))
#define CALL_ROWS(FACT)                                                                            \
	METHOD_ROWS(FACT, COUNTER("spoke_method_calls_total", "calls begun"),                      \
		    GAUGE("spoke_method_calls_in_flight", "calls in flight, without tickets"))
#define REQUEST_ROWS(FACT)                                                                         \
	METHOD_ROWS(FACT, COUNTER("spoke_method_requests_total", "requests received"),             \
		    GAUGE("spoke_method_requests_in_flight", "requests being served"))
SPOKEI_FACTS(of_calls, CALL_ROWS);
SPOKEI_FACTS(of_requests, REQUEST_ROWS);

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

static void show_method(struct spokei_json *json, const struct spokei_figures *figures)
{
	unsigned at = sides[figures->side].first;
	enum spoke_stat stat;
	const char *end;

	spokei_json_open(json, '{');
	spokei_facts_show(json, &of_calls, SPOKEI_FACT_VALUES(CALL_ROWS));
	spokei_json_open_member(json, "ends", '{');
	while ((end = next_end(figures, &at, &stat)) != NULL)
		spokei_json_put_u64(json, end, spokei_figures_get(figures, stat));
	spokei_json_close(json, '}');
	show_times(json, "took", &figures->took);
	if (figures->queued)
		show_times(json, "queued", figures->queued);
	spokei_json_close(json, '}');
}

static void show_methods(struct spokei_json *json, const struct spoke_engine *engine,
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

/* The figures of a side: the `of` of a function that finds them. */
struct of_side {
	const struct spoke_engine *engine;
	enum spokei_figures_side side;
};

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

static bool find_methods(const void *of, spokei_facts_take_fn take, void *arg)
{
	const struct of_side *all = of;
	const struct spokei_figures *figures = NULL;

	while ((figures = next_of(all->engine, figures, all->side)) != NULL)
		if (!take(arg, SPOKEI_FACT_VALUES(CALL_ROWS)))
			return false;
	return true;
}

static void put_ends(struct spokei_metrics *metrics, const struct spokei_figures *figures)
{
	const struct side *side = &sides[figures->side];
	const struct spokei_fact_value *values = SPOKEI_FACT_VALUES(CALL_ROWS);
	unsigned at = side->first;
	enum spoke_stat stat;
	const char *end;

	while ((end = next_end(figures, &at, &stat)) != NULL) {
		const struct spokei_labels labels = { side->facts, values, "result", end };

		spokei_metrics_line(metrics, side->ends, &labels,
				    spokei_figures_get(figures, stat));
	}
}

static void put_times(struct spokei_metrics *metrics, const char *family,
		      const struct spokei_figures *figures, const struct spoke_histogram *times)
{
	spokei_metrics_histogram(metrics, family, sides[figures->side].facts,
				 SPOKEI_FACT_VALUES(CALL_ROWS), times);
}

static void put_side(struct spokei_metrics *metrics, const struct spoke_engine *engine,
		     enum spokei_figures_side of)
{
	const struct side *side = &sides[of];
	const struct spokei_figures *figures = NULL;

	spokei_facts_families(metrics, side->facts, find_methods, &(struct of_side){ engine, of });
	spokei_metrics_family(metrics, side->ends, "counter", side->ends_help);
	while ((figures = next_of(engine, figures, of)) != NULL)
		put_ends(metrics, figures);
	spokei_metrics_family(metrics, side->took, "histogram", side->took_help);
	while ((figures = next_of(engine, figures, of)) != NULL)
		put_times(metrics, side->took, figures, &figures->took);
}

static void put_methods(struct spokei_metrics *metrics, const struct spoke_engine *engine)
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

/* --- all */

int spokei_status_write(const struct spoke_engine *engine, const struct spokei_status_of *of,
			struct spokei_buffer *out)
{
	const struct subject subject = { engine, of };
	struct spokei_json json = spokei_json_make(out);
	struct spokei_rows rows = { SPOKEI_STATUS_ROWS_ALL };
	struct spoke_histogram latency;
	size_t before = spokei_buffer_len(out);

	spokei_json_open(&json, '{');
	spokei_facts_find(&json, &of_info, find_info, &subject);
	spokei_facts_find(&json, &of_head, find_head, &subject);
	show_wheel(&json, &subject);
	show_stats(&json, engine);
	spokei_figures_took(engine, SPOKEI_FIGURES_CALLS, &latency);
	show_times(&json, "latency", &latency);
	spokei_json_open_member(&json, "pool", '{');
	spokei_facts_find(&json, &of_pool, find_pool, &subject);
	spokei_json_close(&json, '}');
	show_history(&json, of);
	spokei_members_show(&json, engine, &rows);
	show_methods(&json, engine, &rows);
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
	const struct subject subject = { engine, of };
	struct spokei_metrics metrics = { .out = out };
	struct spoke_histogram latency;
	size_t before = spokei_buffer_len(out);

	spokei_facts_families(&metrics, &of_info, find_info, &subject);
	spokei_facts_families(&metrics, &of_head, find_head, &subject);
	put_stats(&metrics, engine);
	spokei_facts_families(&metrics, &of_class, find_classes, engine);
	spokei_facts_families(&metrics, &of_wheel, find_wheel, &subject);
	spokei_metrics_family(&metrics, duration, "histogram",
			      "duration of answered calls, with all their attempts");
	spokei_figures_took(engine, SPOKEI_FIGURES_CALLS, &latency);
	spokei_metrics_histogram(&metrics, duration, NULL, NULL, &latency);
	spokei_facts_families(&metrics, &of_pool, find_pool, &subject);
	spokei_members_families(&metrics, engine);
	put_methods(&metrics, engine);
	if (metrics.error == SPOKE_OK)
		return SPOKE_OK;
	spokei_buffer_truncate(out, before);
	return SPOKE_ENOMEM;
}
