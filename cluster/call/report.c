/* SPDX-License-Identifier: Apache-2.0 */
/* Publishes sums of timeouts and retries as events, and describes the limit that refused a call. */
#include "cluster/call/report.h"

#include "cluster/call/caller.h"
#include "cluster/call/journalled.h"
#include "cluster/call/method.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/routing.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "transport/conn/link.h"
#include "transport/wire/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define EVERY_NS UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

static const char *plural(uint32_t count)
{
	return count == 1 ? "" : "s";
}

static uint64_t ms_of(uint64_t ns)
{
	return (ns + NS_PER_MS / 2) / NS_PER_MS;
}

/* Prints "100", or "100 to 900". */
static void print_times(const struct spokei_report *report, char *out, size_t size)
{
	uint64_t shortest_ms = ms_of(report->shortest_ns);
	uint64_t longest_ms = ms_of(report->longest_ns);

	if (shortest_ms == longest_ms)
		(void)snprintf(out, size, "%" PRIu64, longest_ms);
	else
		(void)snprintf(out, size, "%" PRIu64 " to %" PRIu64, shortest_ms, longest_ms);
}

static void publish_timeouts(struct spokei_report *report)
{
	char times[48];

	print_times(report, times, sizeof(times));
	for (unsigned i = 0; i < report->places_count; i++) {
		const struct spokei_report_place *place = &report->places[i];

		spokei_event_of(report->engine, SPOKE_EVENT_OF_TIMEOUT, SPOKE_ETIMEOUT,
				"%s: %" PRIu32 " request%s not answered within %s ms", place->name,
				place->count, plural(place->count), times);
	}
	if (report->elsewhere) {
		spokei_event_of(report->engine, SPOKE_EVENT_OF_TIMEOUT, SPOKE_ETIMEOUT,
				"%" PRIu32 " request%s not answered%s within %s ms",
				report->elsewhere, plural(report->elsewhere),
				report->places_count ? " elsewhere" : "", times);
	}
	report->places_count = 0;
	report->elsewhere = 0;
}

static void publish(struct spokei_report *report, enum spokei_report_kind kind)
{
	static const char *const texts[] = {
		[SPOKEI_REPORT_DEFERRED] = "deferred",
		[SPOKEI_REPORT_AGAIN] = "retried without success",
		[SPOKEI_REPORT_SETTLED] = "answered after a retry",
		[SPOKEI_REPORT_GIVEN_UP] = "given up after being deferred",
		[SPOKEI_REPORT_RETRIED] = "retried",
	};
	uint32_t waiting = report->tickets ? *report->tickets : 0;
	bool pauses = kind == SPOKEI_REPORT_DEFERRED || kind == SPOKEI_REPORT_AGAIN;
	uint32_t count = report->counts[kind];
	char wait[48] = "";
	char next[48] = "";

	report->counts[kind] = 0;
	report->sum += kind == SPOKEI_REPORT_AGAIN;
	if (waiting && kind != SPOKEI_REPORT_RETRIED)
		(void)snprintf(wait, sizeof(wait), ", %" PRIu32 " wait", waiting);
	if (pauses)
		(void)snprintf(next, sizeof(next), ", next retry in %" PRIu64 " ms",
			       ms_of(report->pause_ns));
	spokei_event_of(report->engine, SPOKE_EVENT_OF_RETRY, report->errors[kind],
			"%" PRIu32 " call%s %s%s%s", count, plural(count), texts[kind], wait, next);
}

static void publish_all(struct spokei_report *report)
{
	publish_timeouts(report);
	for (unsigned kind = 0; kind < SPOKEI_REPORT_KINDS; kind++)
		if (report->counts[kind])
			publish(report, (enum spokei_report_kind)kind);
}

static void alarm_due(struct spoke_alarm *alarm)
{
	struct spokei_report *report = spoke_container_of(alarm, struct spokei_report, alarm);

	report->next_ns = spokei_later(report->engine->begin_ns, EVERY_NS);
	publish_all(report);
}

/* If the wheel has no room for the alarm, the next event sets it. */
static void publish_later(struct spokei_report *report)
{
	uint64_t now_ns = report->engine->begin_ns;
	uint64_t delay_ns = report->next_ns > now_ns ? report->next_ns - now_ns : 0;

	if (!spoke_timer_armed(&report->alarm.timer))
		(void)!spoke_alarm_after(report->engine, &report->alarm, delay_ns, alarm_due);
}

void spokei_report_init(struct spokei_report *report, struct spoke_engine *engine,
			const uint32_t *tickets)
{
	*report = (struct spokei_report){ .engine = engine, .tickets = tickets, .sum = 1 };
}

void spokei_report_fini(struct spokei_report *report)
{
	(void)spoke_alarm_cancel(&report->alarm);
	if (!spokei_engine_forked(report->engine))
		publish_all(report);
	spokei_free(report->engine->env, report->places, SPOKEI_REPORT_PLACES,
		    sizeof(*report->places));
	report->places = NULL;
}

/* Returns NULL if there are too many addresses already, or there is no memory. */
static struct spokei_report_place *place_of(struct spokei_report *report, const char *name)
{
	struct spokei_report_place *place;

	if (report->places == NULL)
		report->places = spokei_alloc(report->engine->env, SPOKEI_REPORT_PLACES,
					      sizeof(*place));
	if (report->places == NULL)
		return NULL;
	place = report->places;
	for (; place < report->places + report->places_count; place++)
		if (strncmp(place->name, name, SPOKEI_REPORT_NAME - 1) == 0)
			return place;
	if (report->places_count == SPOKEI_REPORT_PLACES)
		return NULL;
	report->places_count++;
	*place = (struct spokei_report_place){ 0 };
	(void)snprintf(place->name, sizeof(place->name), "%s", name);
	return place;
}

void spokei_report_timed_out(struct spokei_report *report, const char *place, uint64_t timeout_ns)
{
	struct spokei_report_place *known;

	if (report->places_count == 0 && report->elsewhere == 0) {
		report->shortest_ns = timeout_ns;
		report->longest_ns = timeout_ns;
	}
	if (timeout_ns < report->shortest_ns)
		report->shortest_ns = timeout_ns;
	if (timeout_ns > report->longest_ns)
		report->longest_ns = timeout_ns;
	known = place ? place_of(report, place) : NULL;
	if (known)
		known->count++;
	else
		report->elsewhere++;
	publish_later(report);
}

void spokei_report_add(struct spokei_report *report, enum spokei_report_kind kind, int error,
		       uint64_t pause_ns)
{
	report->counts[kind]++;
	report->errors[kind] = error;
	if (pause_ns)
		report->pause_ns = pause_ns;
	publish_later(report);
}

/* --- the limit that has refused a call */

#define NAME_TEXT 96u
#define LIMIT_TEXT 92u
#define JOURNAL_TEXT 120u

struct reached {
	const char *key; /* NULL: the limit has none */
	uint64_t value;
	const char *meaning;
};

static struct reached find(const struct spoke_method *method)
{
	const struct spokei_caller *caller = method->caller;
	const struct spokei_link_limits *limits = &caller->link->limits;
	const char *pending = caller->pushes ? "pushes.max" : "pending.max";
	const char *queued = caller->pushes ? "queued.max" : NULL;

	switch (caller->link->refused_by) {
	case SPOKEI_REFUSED_BY_PENDING:
		return (struct reached){ pending, limits->pending_max, "calls in flight" };
	case SPOKEI_REFUSED_BY_CALLS:
		return (struct reached){ pending, limits->pending_max,
					 "calls that have not ended" };
	case SPOKEI_REFUSED_BY_QUEUED:
	case SPOKEI_REFUSED_BY_KEPT:
		return (struct reached){ queued, limits->queued_max,
					 "bytes of requests may be kept; call later" };
	case SPOKEI_REFUSED_BY_OUTPUT:
		return (struct reached){ NULL, limits->out_max,
					 "bytes of requests may wait for a connection; call "
					 "later" };
	case SPOKEI_REFUSED_BY_IDS:
		return (struct reached){ NULL, caller->link->pending_count,
					 "calls have an id on a connection; call later" };
	case SPOKEI_REFUSED_BY_ATTACHMENTS:
		return (struct reached){ NULL, SPOKEI_ATTACHMENTS_MAX, "attachments; send fewer" };
	case SPOKEI_REFUSED_BY_ACTIVES:
		return (struct reached){ "actives", method->limit.active_max,
					 "calls of the method in flight" };
	case SPOKEI_REFUSED_BY_RATE:
		return (struct reached){ "tps", method->limit.bucket.rate,
					 "calls of the method in a second" };
	case SPOKEI_REFUSED_BY_ENDPOINTS:
		return (struct reached){ "endpoint.actives",
					 caller->directory->settings.actives_max,
					 "calls in flight to each provider" };
	case SPOKEI_REFUSED_BY_TASKS:
		return (struct reached){ "failback.tasks", caller->retry.tasks_max, "tickets" };
	case SPOKEI_REFUSED_BY_BYTES:
		return (struct reached){ "failback.bytes", caller->retry.bytes_max,
					 "bytes of tickets" };
	case SPOKEI_REFUSED_BY_JOURNAL:
		return (struct reached){ NULL, 0,
					 "because its journal is full, or is written too slowly" };
	case SPOKEI_REFUSED_BY_TIMERS:
		return (struct reached){ NULL, 0, "because timers.max of the engine is reached" };
	case SPOKEI_REFUSED_BY_FILTER:
		break;
	}
	return (struct reached){ NULL, 0, "by a filter" };
}

size_t spokei_limits_print(const struct spoke_method *method, char *text, size_t size)
{
	const struct reached reached = find(method);
	int len;

	if (reached.key)
		len = snprintf(text, size, "%s = %" PRIu64 " is reached (%s)", reached.key,
			       reached.value, reached.meaning);
	else if (reached.value)
		len = snprintf(text, size, "at most %" PRIu64 " %s", reached.value,
			       reached.meaning);
	else
		len = snprintf(text, size, "%s", reached.meaning);
	SPOKE_ASSERT(len >= 0);
	return (size_t)len < size ? (size_t)len : size - 1;
}

static void report_limit(const struct spoke_method *method)
{
	const struct reached reached = find(method);
	struct spoke_engine *engine = method->caller->engine;
	char limit[LIMIT_TEXT];
	char text[SPOKE_EVENT_TEXT];
	char name[NAME_TEXT];

	(void)spokei_log_escape(name, sizeof(name), method->name, strlen(method->name));
	(void)spokei_limits_print(method, limit, sizeof(limit));
	(void)snprintf(text, sizeof(text), "call of %s refused%s %s%s", name,
		       reached.value ? ":" : "", limit,
		       reached.key ? "; raise it or call later" : "");
	if (strcmp(spoke_engine_why(engine), text) != 0)
		spokei_event(engine, SPOKE_ELIMIT, "%s", text);
}

/* Returns why no endpoint can take a call; NULL: not known. */
static const char *reason_of(const struct spokei_caller *caller, int error)
{
	if (error == SPOKE_ENOPROVIDER)
		return spokei_routing_why(caller->directory);
	return caller->awaits_list ? "the registry has not answered yet"
				   : spokei_directory_reason(caller->directory);
}

/* A provider that is gone refuses as many calls as there are: no event. */
static void explain_quietly(const struct spoke_method *method, int error)
{
	struct spokei_caller *caller = method->caller;
	const char *reason = NULL;
	char text[JOURNAL_TEXT];
	char name[NAME_TEXT];

	if (caller->journal_refusal) {
		(void)spokei_journalled_print(caller->journal, caller->journal_refusal, text,
					      sizeof(text));
		reason = text;
	} else if ((error == SPOKE_EUNAVAILABLE || error == SPOKE_ENOPROVIDER) &&
		   caller->directory) {
		reason = reason_of(caller, error);
	}
	(void)spokei_log_escape(name, sizeof(name), method->name, strlen(method->name));
	spokei_why_set(caller->engine, "call of %s refused: %s%s%s", name, spoke_strerror(error),
		       reason ? "; " : "", reason ? reason : "");
}

/* A filter may have closed the consumer, but its method is still there. */
int spokei_limits_refuse(const struct spoke_method *method, int error, size_t len)
{
	struct spokei_caller *caller = method->caller;

	if (spokei_engine_elsewhere(caller->engine))
		return SPOKE_ETHREAD;
	spokei_figures_count(method->figures, SPOKE_STAT_CALLS_REFUSED);
	if (caller->closed)
		return error;
	if (error == SPOKE_ELIMIT) {
		report_limit(method);
	} else if (error == SPOKE_ETOOLARGE && len > 0) {
		spokei_event(caller->engine, SPOKE_ETOOLARGE,
			     "call refused: %zu bytes of arguments and the names do not fit a "
			     "frame; frame.max allows %zu bytes, raise it on both sides",
			     len, caller->link->limits.wire.frame_max);
	} else {
		explain_quietly(method, error);
	}
	caller->journal_refusal = SPOKE_OK;
	return error;
}

struct spoke_span spokei_limits_text(const struct spoke_method *method, int error)
{
	const struct spokei_caller *caller = method->caller;
	const char *text = NULL;

	if (caller->closed)
		return spokei_span(NULL, 0);
	if ((error == SPOKE_EUNAVAILABLE || error == SPOKE_ENOPROVIDER) && caller->directory)
		text = reason_of(caller, error);
	else if (error == SPOKE_ELIMIT || error == SPOKE_ETOOLARGE)
		text = spoke_engine_why(caller->engine);
	return spokei_span(text, text ? strlen(text) : 0);
}
