/* SPDX-License-Identifier: Apache-2.0 */
/* Sums up timeouts and retries, and publishes the sums as events. */
#include "cluster/call/report.h"

#include "core/engine/engine.h"

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
}

/* Returns NULL if there are too many addresses already. */
static struct spokei_report_place *place_of(struct spokei_report *report, const char *name)
{
	struct spokei_report_place *place = report->places;
	struct spokei_report_place *end = place + report->places_count;

	for (; place < end; place++)
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

void spokei_report_again(struct spokei_report *report, uint32_t *sum, int error, uint64_t pause_ns)
{
	bool is_counted = *sum == report->sum;

	*sum = report->sum;
	report->counts[SPOKEI_REPORT_AGAIN] -= is_counted;
	spokei_report_add(report, SPOKEI_REPORT_AGAIN, error, pause_ns);
}
