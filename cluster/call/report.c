/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/call/report.h"

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

/* As "100", or "100 to 900". */
static void print_times(const struct spokei_news *news, char *out, size_t size)
{
	uint64_t shortest_ms = ms_of(news->shortest_ns);
	uint64_t longest_ms = ms_of(news->longest_ns);

	if (shortest_ms == longest_ms)
		(void)snprintf(out, size, "%" PRIu64, longest_ms);
	else
		(void)snprintf(out, size, "%" PRIu64 " to %" PRIu64, shortest_ms, longest_ms);
}

static void tell_of_deadlines(struct spokei_news *news)
{
	char times[48];

	print_times(news, times, sizeof(times));
	for (unsigned i = 0; i < news->places_count; i++) {
		const struct spokei_news_place *place = &news->places[i];

		spokei_event_of(news->engine, SPOKE_EVENT_OF_TIMEOUT, SPOKE_ETIMEOUT,
				"%s: %" PRIu32 " request%s not answered within %s ms", place->name,
				place->count, plural(place->count), times);
	}
	if (news->elsewhere) {
		spokei_event_of(news->engine, SPOKE_EVENT_OF_TIMEOUT, SPOKE_ETIMEOUT,
				"%" PRIu32 " request%s not answered%s within %s ms",
				news->elsewhere, plural(news->elsewhere),
				news->places_count ? " elsewhere" : "", times);
	}
	news->places_count = 0;
	news->elsewhere = 0;
}

static void tell_of(struct spokei_news *news, enum spokei_news_kind kind)
{
	static const char *const whats[] = {
		[SPOKEI_NEWS_DEFERRED] = "deferred",
		[SPOKEI_NEWS_AGAIN] = "deferred before and tried again in vain",
		[SPOKEI_NEWS_SETTLED] = "deferred before and answered now",
		[SPOKEI_NEWS_GIVEN_UP] = "deferred before and given up",
		[SPOKEI_NEWS_RETRIED] = "tried again",
	};
	uint32_t waiting = news->tickets ? *news->tickets : 0;
	bool pauses = kind == SPOKEI_NEWS_DEFERRED || kind == SPOKEI_NEWS_AGAIN;
	uint32_t count = news->counts[kind];
	char wait[48] = "";
	char next[48] = "";

	news->counts[kind] = 0;
	if (waiting && kind != SPOKEI_NEWS_RETRIED)
		(void)snprintf(wait, sizeof(wait), ", %" PRIu32 " wait", waiting);
	if (pauses)
		(void)snprintf(next, sizeof(next), ", next try in %" PRIu64 " ms",
			       ms_of(news->pause_ns));
	spokei_event_of(news->engine, SPOKE_EVENT_OF_RETRY, news->errors[kind],
			"%" PRIu32 " call%s %s%s%s", count, plural(count), whats[kind], wait, next);
}

static void tell_all(struct spokei_news *news)
{
	tell_of_deadlines(news);
	for (unsigned kind = 0; kind < SPOKEI_NEWS_KINDS; kind++)
		if (news->counts[kind])
			tell_of(news, (enum spokei_news_kind)kind);
}

static void tell(struct spoke_alarm *alarm)
{
	struct spokei_news *news = spoke_container_of(alarm, struct spokei_news, alarm);

	news->next_ns = spokei_later(news->engine->begin_ns, EVERY_NS);
	tell_all(news);
}

/* If the wheel has no place for it now, the next one tries again. */
static void tell_later(struct spokei_news *news)
{
	uint64_t now_ns = news->engine->begin_ns;
	uint64_t delay_ns = news->next_ns > now_ns ? news->next_ns - now_ns : 0;

	if (!spoke_timer_armed(&news->alarm.timer))
		(void)!spoke_alarm_after(news->engine, &news->alarm, delay_ns, tell);
}

void spokei_news_init(struct spokei_news *news, struct spoke_engine *engine,
		      const uint32_t *tickets)
{
	*news = (struct spokei_news){ .engine = engine, .tickets = tickets };
}

void spokei_news_fini(struct spokei_news *news)
{
	(void)spoke_alarm_cancel(&news->alarm);
	if (!spokei_engine_forked(news->engine))
		tell_all(news);
}

/* NULL: there are too many places already. */
static struct spokei_news_place *place_of(struct spokei_news *news, const char *name)
{
	struct spokei_news_place *place = news->places;
	struct spokei_news_place *end = place + news->places_count;

	for (; place < end; place++)
		if (strncmp(place->name, name, SPOKEI_NEWS_NAME - 1) == 0)
			return place;
	if (news->places_count == SPOKEI_NEWS_PLACES)
		return NULL;
	news->places_count++;
	*place = (struct spokei_news_place){ 0 };
	(void)snprintf(place->name, sizeof(place->name), "%s", name);
	return place;
}

void spokei_news_timed_out(struct spokei_news *news, const char *place, uint64_t timeout_ns)
{
	struct spokei_news_place *known;

	if (news->places_count == 0 && news->elsewhere == 0) {
		news->shortest_ns = timeout_ns;
		news->longest_ns = timeout_ns;
	}
	if (timeout_ns < news->shortest_ns)
		news->shortest_ns = timeout_ns;
	if (timeout_ns > news->longest_ns)
		news->longest_ns = timeout_ns;
	known = place ? place_of(news, place) : NULL;
	if (known)
		known->count++;
	else
		news->elsewhere++;
	tell_later(news);
}

void spokei_news_add(struct spokei_news *news, enum spokei_news_kind kind, int error,
		     uint64_t pause_ns)
{
	news->counts[kind]++;
	news->errors[kind] = error;
	if (pause_ns)
		news->pause_ns = pause_ns;
	tell_later(news);
}
