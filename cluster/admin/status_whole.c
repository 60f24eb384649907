/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the status: the members of the engine itself, and the order of all members. */
#include "cluster/admin/status_parts.h"
#include "core/engine/engine.h"
#include "core/engine/events.h"

#include <spoke/stats.h>

#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char spokei_status_version[] = VERSION_TEXT(SPOKE_VERSION_MAJOR, SPOKE_VERSION_MINOR,
						  SPOKE_VERSION_PATCH);

static void show_head(struct spokei_json *json, const struct spoke_engine *engine,
		      const struct spokei_status_of *of)
{
	uint64_t now_ns = engine->begin_ns;

	spokei_json_put_text(json, "spoke", spokei_status_version);
	spokei_json_put_text(json, "name", of->name);
	spokei_json_put_u64(json, "number", of->number);
	spokei_json_put_ms(json, "wall_ms", engine->env->wall(engine->env->ctx));
	spokei_json_put_ms(json, "now_ms", now_ns);
	spokei_json_put_ms(json, "up_ms", now_ns > of->born_ns ? now_ns - of->born_ns : 0);
	spokei_json_put_bool(json, "ending", spokei_engine_ending(engine));
}

static void show_stats(struct spokei_json *json, const struct spoke_engine *engine)
{
	spokei_json_open_member(json, "stats", '{');
	for (unsigned i = 0; i < SPOKE_STAT_COUNT; i++)
		spokei_json_put_u64(json, spoke_stat_name((enum spoke_stat)i), engine->stats[i]);
	spokei_json_close(json, '}');
}

static void show_latency(struct spokei_json *json, const struct spoke_histogram *latency)
{
	static const struct {
		const char *name;
		uint32_t per_million;
	} points[] = {
		{ "p50_ns", 500000 },
		{ "p90_ns", 900000 },
		{ "p99_ns", 990000 },
		{ "p999_ns", 999000 },
	};

	spokei_json_open_member(json, "latency", '{');
	spokei_json_put_u64(json, "count", latency->count);
	spokei_json_put_u64(json, "mean_ns", spoke_histogram_mean(latency));
	spokei_json_put_u64(json, "max_ns", latency->max);
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		spokei_json_put_u64(json, points[i].name,
				    spoke_histogram_percentile(latency, points[i].per_million));
	}
	spokei_json_close(json, '}');
}

static void show_pool(struct spokei_json *json, const struct spoke_engine *engine)
{
	struct spoke_pool pool;

	spoke_engine_pool(engine, &pool);
	spokei_json_open_member(json, "pool", '{');
	spokei_json_put_u64(json, "threads_max", pool.threads_max);
	spokei_json_put_u64(json, "running", pool.running);
	spokei_json_put_u64(json, "queue_max", pool.queue_max);
	spokei_json_put_u64(json, "queued", pool.queued);
	spokei_json_close(json, '}');
}

/* --- history and events */

static void show_sample(struct spokei_json *json, const struct spokei_sample *sample)
{
	spokei_json_open(json, '{');
	spokei_json_put_ms(json, "at_ms", sample->at_ns);
	spokei_json_put_ms(json, "span_ms", sample->span_ns);
	spokei_json_put_u64(json, "calls", sample->calls);
	spokei_json_put_u64(json, "ok", sample->ok);
	spokei_json_put_u64(json, "failed", sample->failed);
	spokei_json_put_u64(json, "timeouts", sample->timeouts);
	spokei_json_put_u64(json, "deferred", sample->deferred);
	spokei_json_put_u64(json, "requests", sample->requests);
	spokei_json_put_u64(json, "p50_ns", sample->p50_ns);
	spokei_json_put_u64(json, "p99_ns", sample->p99_ns);
	spokei_json_put_u64(json, "requests_ok", sample->requests_ok);
	spokei_json_put_u64(json, "requests_failed", sample->requests_failed);
	spokei_json_put_u64(json, "handler_p50_ns", sample->handler_p50_ns);
	spokei_json_put_u64(json, "handler_p99_ns", sample->handler_p99_ns);
	spokei_json_close(json, '}');
}

static void show_history(struct spokei_json *json, const struct spokei_status_of *of)
{
	const struct spokei_history *history = of->history;
	uint64_t from = history->count > SPOKEI_HISTORY ? history->count - SPOKEI_HISTORY : 0;

	if (from < of->history_from)
		from = of->history_from;
	spokei_json_open_member(json, "history", '[');
	for (; from < history->count; from++)
		show_sample(json, &history->samples[from % SPOKEI_HISTORY]);
	spokei_json_close(json, ']');
}

uint64_t spokei_status_first_event(const struct spoke_engine *engine,
				   const struct spokei_status_of *of)
{
	uint64_t last = engine->events->last;
	uint64_t first = last > SPOKEI_STATUS_EVENTS ? last - SPOKEI_STATUS_EVENTS + 1 : 1;

	return first > of->events_from ? first : of->events_from;
}

static void show_event(struct spokei_json *json, const struct spoke_event *event, uint64_t now_ns)
{
	spokei_json_open(json, '{');
	spokei_json_put_u64(json, "number", event->number);
	spokei_json_put_ms(json, "ago_ms", now_ns > event->at_ns ? now_ns - event->at_ns : 0);
	spokei_json_put_text(json, "user", spoke_event_user_name(event->user));
	spokei_json_put_text(json, "error", event->error ? spoke_errname(event->error) : "");
	spokei_json_put_text(json, "text", event->text);
	spokei_json_close(json, '}');
}

static void show_events(struct spokei_json *json, const struct spoke_engine *engine,
			const struct spokei_status_of *of)
{
	uint64_t number = spokei_status_first_event(engine, of);
	const struct spoke_event *event;

	spokei_json_open_member(json, "events", '[');
	while ((event = spokei_events_find(engine->events, number)) != NULL) {
		show_event(json, event, engine->begin_ns);
		number = event->number + 1;
	}
	spokei_json_close(json, ']');
}

/* --- the whole status */

int spokei_status_write(const struct spoke_engine *engine, const struct spokei_status_of *of,
			struct spokei_buffer *out)
{
	struct spokei_json json = spokei_json_make(out);
	struct spokei_rows rows = { SPOKEI_STATUS_ROWS_ALL };
	size_t before = spokei_buffer_len(out);

	spokei_json_open(&json, '{');
	show_head(&json, engine, of);
	spokei_status_wheel(&json, engine);
	show_stats(&json, engine);
	show_latency(&json, engine->latency);
	show_pool(&json, engine);
	show_history(&json, of);
	spokei_status_consumers(&json, engine, &rows);
	spokei_status_providers(&json, engine, &rows);
	spokei_status_leases(&json, engine, &rows);
	spokei_status_comets(&json, engine, &rows);
	spokei_status_methods(&json, engine, &rows);
	spokei_status_slow(&json, engine);
	show_events(&json, engine, of);
	spokei_json_close(&json, '}');
	if (json.error == SPOKE_OK)
		return SPOKE_OK;
	spokei_buffer_truncate(out, before);
	return SPOKE_ENOMEM;
}
