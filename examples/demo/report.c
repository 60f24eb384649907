/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the events and counts of a process to the driver. */
#include "examples/demo/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define EVERY_NS UINT64_C(50000000)
#define PAUSE_NS UINT64_C(50000000) /* shorter ones are not reported */
#define NS_PER_MS UINT64_C(1000000)
#define TEXT 512

static void count_engine(const struct spoke_engine *engine, uint64_t *counts)
{
	static const struct {
		enum message_count count;
		enum spoke_stat stat;
	} of[] = {
		{ COUNT_TIMED_OUT, SPOKE_STAT_ATTEMPTS_TIMEOUT },
		{ COUNT_RETRIES, SPOKE_STAT_RETRIES },
		{ COUNT_UNFUNDED, SPOKE_STAT_RETRIES_UNFUNDED },
		{ COUNT_PROBES, SPOKE_STAT_PROBES_WRITTEN },
		{ COUNT_MISSED, SPOKE_STAT_PROBES_MISSED },
		{ COUNT_RECONNECTS, SPOKE_STAT_RECONNECTS },
		{ COUNT_IDLE_CLOSES, SPOKE_STAT_CLOSED_SILENT },
		{ COUNT_SERVED, SPOKE_STAT_REQUESTS_OK },
		{ COUNT_GRANTED, SPOKE_STAT_LEASES_HELD },
		{ COUNT_LOST, SPOKE_STAT_LEASES_LOST },
		{ COUNT_GIVEN, SPOKE_STAT_LEASES_RELEASED },
		{ COUNT_FENCED, SPOKE_STAT_REQUESTS_FENCED },
	};
	struct spoke_wheel_counts wheel;

	for (unsigned i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		counts[of[i].count] = spoke_stat_get(engine, of[i].stat);
	counts[COUNT_BEATS] = spoke_stat_get(engine, SPOKE_STAT_PROBES_READ) +
			      spoke_stat_get(engine, SPOKE_STAT_PROBE_ANSWERS_READ);
	spoke_wheel_counts(spoke_engine_wheel(engine), &wheel);
	counts[COUNT_LATE_US] = wheel.late_max_ns / 1000;
}

void report_counts(struct report *report)
{
	uint64_t counts[COUNTS] = { 0 };

	count_engine(report->engine, counts);
	counts[COUNT_BROKEN] = report->broken;
	if (report->count)
		report->count(counts);
	if (memcmp(counts, report->counts, sizeof(counts)) == 0)
		return;
	memcpy(report->counts, counts, sizeof(counts));
	message_write_counts(counts);
}

/* Prints the reason of a retry only when it changes. */
static void send_event(struct report *report, const struct spoke_event *event)
{
	bool retry = event->user == SPOKE_EVENT_OF_RETRY;
	bool why = retry && event->error && event->error != report->why;
	char text[TEXT];

	if (retry)
		report->why = event->error;
	if (retry && (event->error == SPOKE_ELOST || event->error == SPOKE_ECLOSED))
		report->broken++;
	(void)snprintf(text, sizeof(text), "%s%s%s", event->text, why ? ": " : "",
		       why ? spoke_strerror(event->error) : "");
	message_write_event(event->at_ns, event->user, TAG_TOLD, 0, NULL, text);
}

/* Is the event reported as it is? Connection events come by callback, and so do those of leases,
 * except the refusals of a provider's fence. */
static bool is_reported(const struct report *report, const struct spoke_event *event)
{
	return event->user == SPOKE_EVENT_OF_TIMEOUT || event->user == SPOKE_EVENT_OF_RETRY ||
	       (event->user == SPOKE_EVENT_OF_LEASE && report->provides);
}

static void send_events(struct report *report)
{
	struct spoke_event event;

	while (spoke_event_get(report->engine, report->next_event, &event) == SPOKE_OK) {
		report->next_event = event.number + 1;
		if (is_reported(report, &event))
			send_event(report, &event);
	}
}

/* An alarm that is late by more than its interval shows that the process had no CPU. */
static void report_pause(struct report *report)
{
	uint64_t now_ns = spoke_engine_now(report->engine);
	uint64_t gone_ns = report->looked_ns ? now_ns - report->looked_ns : 0;

	report->looked_ns = now_ns;
	if (gone_ns >= EVERY_NS + PAUSE_NS)
		message_write_event(now_ns, SPOKE_EVENT_OF_NONE, TAG_PAUSED,
				    (unsigned)((gone_ns - EVERY_NS) / NS_PER_MS), NULL, "");
}

static void due(struct spoke_alarm *alarm)
{
	struct report *report = spoke_container_of(alarm, struct report, alarm);

	report_pause(report);
	send_events(report);
	report_counts(report);
}

int report_begin(struct report *report, struct spoke_engine *engine,
		 void (*count)(uint64_t *counts))
{
	*report = (struct report){ .engine = engine, .count = count, .next_event = 1 };
	return spoke_alarm_every(engine, &report->alarm, EVERY_NS, due);
}

void report_event(struct report *report, enum spoke_event_user user, enum message_tag tag,
		  unsigned number, const char *peer, const char *format, ...)
{
	char text[TEXT];
	va_list args;

	send_events(report);
	va_start(args, format);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is not */
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	message_write_event(spoke_engine_now(report->engine), user, tag, number, peer, text);
	/* Send the counts with the event, in case this process is killed next. */
	report_counts(report);
}

static void report_end(struct report *report, const struct spoke_link_event *event)
{
	if (event->user == SPOKE_EVENT_OF_HEARTBEAT)
		report_event(report, event->user, TAG_CLOSED, 0, event->name,
			     "%s: connection closed after four silent intervals", event->name);
	else if (event->error == SPOKE_ECLOSED)
		report_event(report, event->user, TAG_CLOSED, 0, event->name,
			     "%s: connection closed after the drain notice", event->name);
	else
		report_event(report, event->user, TAG_CLOSED, 0, event->name, "%s: %s", event->name,
			     spoke_strerror(event->error));
}

void report_link(void *arg, const struct spoke_link_event *event)
{
	struct report *report = arg;
	const char *name = event->name;

	switch (event->change) {
	case SPOKE_LINK_CONNECTED:
		report_event(report, event->user, TAG_CONNECTED, 0, name, "%s: connected", name);
		return;
	case SPOKE_LINK_PROBATION:
		report_event(report, event->user, TAG_PROBATION, 0, name,
			     "%s: connected, on probation: no calls until it answers", name);
		return;
	case SPOKE_LINK_SUSPECT:
		report_event(report, event->user, TAG_SUSPECT, event->missed, name,
			     "%s: heartbeat missed, %u of 3%s", name, event->missed,
			     event->missed > 1  ? ""
			     : report->provides ? ": suspect"
						: ": suspect, no calls");
		return;
	case SPOKE_LINK_RECOVERED:
		report_event(report, event->user, TAG_RECOVERED, 0, name, "%s: recovered%s", name,
			     report->provides ? "" : ", gets calls again");
		return;
	case SPOKE_LINK_READONLY:
		report_event(report, event->user, TAG_READONLY, 0, name,
			     report->provides ? "%s: has received the drain notice"
					      : "%s: sent the drain notice, gets no more calls",
			     name);
		return;
	case SPOKE_LINK_CLOSED:
		report_end(report, event);
		return;
	case SPOKE_LINK_RECONNECTING:
		report_event(report, event->user, TAG_RECONNECTING, 0, name,
			     "%s: reconnecting in %u ms, attempt %u", name,
			     (unsigned)(event->pause_ns / NS_PER_MS), event->attempt);
		return;
	}
}
