/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of an engine, its list of recent events, and the sentence about the last error. */
#include "core/base/error.h"
#include "core/engine/figures.h"
#include "core/engine/parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* --- events */

/* Adds an event; a text that is too long ends in dots. Returns the event, valid until it is
 * overwritten. */
SPOKEI_PRINTF(4, 0)
static const struct spoke_event *record(struct spoke_engine *engine, enum spoke_event_user user,
					int error, const char *format, va_list args)
{
	static const char ellipsis[] = "...";
	uint64_t number = ++engine->events.last;
	struct spoke_event *event = &engine->events.ring[number % SPOKE_EVENTS];
	int len;

	*event = (struct spoke_event){
		.number = number, .at_ns = engine->begin_ns, .error = error, .user = user
	};
	len = vsnprintf(event->text, sizeof(event->text), format, args);
	if (len < 0)
		event->text[0] = '\0';
	else if ((size_t)len >= sizeof(event->text))
		memcpy(event->text + sizeof(event->text) - sizeof(ellipsis), ellipsis,
		       sizeof(ellipsis));
	return event;
}

const struct spoke_event *spokei_events_find(const struct spoke_engine *engine, uint64_t number)
{
	const struct spokei_events *events = &engine->events;
	uint64_t oldest = events->last > SPOKE_EVENTS ? events->last - SPOKE_EVENTS + 1 : 1;

	if (number > events->last || events->last == 0)
		return NULL;
	return &events->ring[(number > oldest ? number : oldest) % SPOKE_EVENTS];
}

/* `calm`: the class of a line without an error. */
SPOKEI_PRINTF(5, 0)
static void add_event(struct spoke_engine *engine, enum spokei_log_class calm,
		      enum spoke_event_user user, int error, const char *format, va_list args)
{
	const struct spokei_error *row = spokei_error_of(error);
	const char *sentence = spoke_strerror(error);
	const struct spoke_event *event;
	bool is_said;

	spokei_engine_refresh(engine);
	event = record(engine, user, error, format, args);
	is_said = row->texts_say_it || strstr(event->text, sentence) != NULL;
	if (error) {
		spokei_log(engine->log, SPOKE_LOG_WARN, "engine",
			   (enum spokei_log_class)row->log_class, engine->begin_ns, "%s%s%s",
			   event->text, is_said ? "" : ": ", is_said ? "" : sentence);
	} else {
		spokei_log(engine->log, SPOKE_LOG_INFO, "engine", calm, engine->begin_ns, "%s",
			   event->text);
	}
}

void spokei_event(struct spoke_engine *engine, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_event(engine, SPOKEI_LOG_LIFE, SPOKE_EVENT_OF_NONE, error, format, args);
	va_end(args);
}

void spokei_event_of_peer(struct spoke_engine *engine, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_event(engine, SPOKEI_LOG_ACCEPT, SPOKE_EVENT_OF_NONE, SPOKE_OK, format, args);
	va_end(args);
}

void spokei_why_set(struct spoke_engine *engine, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(engine->why, sizeof(engine->why), format, args);
	va_end(args);
	engine->why_after = engine->events.last;
}

void spokei_event_of(struct spoke_engine *engine, enum spoke_event_user user, int error,
		     const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_event(engine, SPOKEI_LOG_LIFE, user, error, format, args);
	va_end(args);
}

/* --- counters */

#define TIMERS_MAX                                                                                 \
	UINT64_C(16777216) /* unless the option timers_max is set, see <spoke/wheel.h>             \
			    */

#define STAT_NAME(name, small, sentence) #small,
#define STAT_SENTENCE(name, small, sentence) sentence,
static const char *const names[] = { SPOKE_STATS(STAT_NAME) };
static const char *const sentences[] = { SPOKE_STATS(STAT_SENTENCE) };
#undef STAT_NAME
#undef STAT_SENTENCE

const char *spoke_stat_name(enum spoke_stat stat)
{
	return (unsigned)stat < SPOKE_STAT_COUNT ? names[stat] : NULL;
}

const char *spoke_stat_sentence(enum spoke_stat stat)
{
	return (unsigned)stat < SPOKE_STAT_COUNT ? sentences[stat] : NULL;
}

uint64_t spoke_stat_get(const struct spoke_engine *engine, enum spoke_stat stat)
{
	return (unsigned)stat < SPOKE_STAT_COUNT ? engine->stats[stat] : 0;
}

void spoke_engine_latency(const struct spoke_engine *engine, struct spoke_histogram *ret_latency)
{
	spokei_figures_took(engine, SPOKEI_FIGURES_CALLS, ret_latency);
}

const char *spoke_event_user_name(enum spoke_event_user user)
{
	switch (user) {
	case SPOKE_EVENT_OF_NONE:
		return "";
	case SPOKE_EVENT_OF_TIMEOUT:
		return "timeout";
	case SPOKE_EVENT_OF_RETRY:
		return "retry";
	case SPOKE_EVENT_OF_HEARTBEAT:
		return "heartbeat";
	case SPOKE_EVENT_OF_LEASE:
		return "lease";
	default:
		return NULL;
	}
}

int spoke_event_get(const struct spoke_engine *engine, uint64_t number,
		    struct spoke_event *ret_event)
{
	const struct spoke_event *event = spokei_events_find(engine, number);

	if (event == NULL)
		return SPOKE_ENOENT;
	*ret_event = *event;
	return SPOKE_OK;
}

void spoke_engine_pool(const struct spoke_engine *engine, struct spoke_pool *ret_pool)
{
	const struct spoke_loop *loop = engine->env->loop;

	*ret_pool = (struct spoke_pool){ .threads_max = 0 };
	if (loop->pool_look)
		loop->pool_look(engine->loop, ret_pool);
}

uint64_t spokei_why_begin(const struct spoke_engine *engine)
{
	return spokei_engine_elsewhere(engine) ? 0 : engine->events.last;
}

void spokei_why_explain(struct spoke_engine *engine, int error, const char *what)
{
	uint64_t timers_max = spokei_engine_parts(engine)->options.timers_max;
	struct spoke_wheel_counts counts;

	spoke_wheel_counts(engine->wheel, &counts);
	if (timers_max == 0)
		timers_max = TIMERS_MAX;
	if (error == SPOKE_ELIMIT && counts.pending >= timers_max) {
		spokei_why_set(engine,
			       "%s: timers.max = %" PRIu64
			       " is reached (timers of the engine); raise it or cancel some",
			       what, timers_max);
	} else {
		spokei_why_set(engine, "%s: %s", what, spoke_strerror(error));
	}
}

int spokei_why_end(struct spoke_engine *engine, uint64_t begun, int error, const char *what)
{
	if (error == SPOKE_ETHREAD)
		return error;
	if (error && engine->events.last == begun) {
		spokei_why_explain(engine, error, what);
		spokei_event(engine, error, "%s", engine->why);
	}
	return error;
}

const char *spoke_engine_why(const struct spoke_engine *engine)
{
	const struct spoke_event *event;

	if (spokei_engine_elsewhere(engine))
		return spoke_strerror(SPOKE_ETHREAD);
	event = spokei_events_find(engine, engine->events.last);
	if (engine->why[0] && engine->why_after == engine->events.last)
		return engine->why;
	return event ? event->text : "";
}
