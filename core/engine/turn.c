/* SPDX-License-Identifier: Apache-2.0 */
/* The turn of an engine, and its events. engine.h describes the order of a turn and the reasons for
 * it. */
#include "core/base/error.h"
#include "core/engine/early.h"
#include "core/engine/parts.h"
#include "core/engine/source.h"
#include "core/memory/hidden.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define NS_PER_TENTH UINT64_C(100000000) /* of a second */

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
	event = spokei_events_add(engine->events, engine->begin_ns, user, error, format, args);
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
	engine->why_after = engine->events->last;
}

void spokei_event_of(struct spoke_engine *engine, enum spoke_event_user user, int error,
		     const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_event(engine, SPOKEI_LOG_LIFE, user, error, format, args);
	va_end(args);
}

void spokei_engine_note_interval(struct spoke_engine *engine, uint64_t interval_ns)
{
	if (interval_ns > 0 && interval_ns / 2 < engine->late_max_ns)
		engine->late_max_ns = interval_ns / 2;
}

/* Outside of a turn: the times of the turn are over. */
static void hide_times(struct spoke_engine *engine)
{
	spokei_hide(&engine->begin_ns, sizeof(engine->begin_ns));
	spokei_hide(&engine->settle_ns, sizeof(engine->settle_ns));
}

static void show_times(struct spoke_engine *engine)
{
	spokei_show(&engine->begin_ns, sizeof(engine->begin_ns));
	spokei_show(&engine->settle_ns, sizeof(engine->settle_ns));
}

void spokei_engine_read_clock(struct spoke_engine *engine)
{
	show_times(engine);
	engine->begin_ns = engine->settle_ns = engine->env->now(engine->env->ctx);
	engine->settle_old = true;
}

/* The engine's code begins to run, in a round of the loop. */
static void enter(struct spoke_engine *engine)
{
	engine->inside = true;
	show_times(engine);
	if (!engine->running)
		atomic_store_explicit(&engine->runner, spokei_engine_self(engine),
				      memory_order_relaxed);
}

/* The user's code on this loop may run next and must not wait for the engine: the thread stays
 * noted. */
static void leave(struct spoke_engine *engine)
{
	engine->inside = false;
	hide_times(engine);
	if (!engine->running && !engine->native)
		atomic_store_explicit(&engine->runner, 0, memory_order_relaxed);
}

/* In a forked child the engine does nothing, because its descriptors are its parent's too. A
 * running engine ends here; a user's loop goes on without it. */
static bool is_parted(struct spoke_engine *engine)
{
	if (SPOKEI_LIKELY(!spokei_engine_forked(engine)))
		return false;
	if (!engine->native || engine->running)
		engine->env->loop->stop(engine->loop);
	return true;
}

static void look_for_sleep(struct spoke_engine *engine)
{
	uint64_t tenths = spokei_sleep_look(&spokei_engine_parts(engine)->sleep, engine->env,
					    engine->begin_ns) /
			  NS_PER_TENTH;

	if (SPOKEI_LIKELY(tenths == 0))
		return;
	spokei_count(engine, SPOKE_STAT_SLEEPS);
	spokei_event(engine, SPOKE_OK, "the machine slept for %" PRIu64 ".%" PRIu64 " s",
		     tenths / 10, tenths % 10);
	engine->woke(engine);
}

/* A turn stays as late as it began, however often it polls again, unless that makes it later, and
 * is counted once before the wheel advances. A turn that continues the wheel's work is as late as
 * the turn before. */
static void note_lateness(struct spoke_engine *engine)
{
	uint64_t late_ns = engine->begin_ns > engine->due_ns ? engine->begin_ns - engine->due_ns
							     : 0;

	if (engine->behind || (engine->late_rounds > 0 && late_ns <= engine->late_ns))
		return;
	engine->late_ns = late_ns;
	if (!engine->late_told && spokei_engine_late(engine)) {
		engine->late_told = true;
		spokei_count(engine, SPOKE_STAT_TURNS_LATE);
	}
}

static uint64_t engine_begin(void *arg)
{
	struct spoke_engine *engine = arg;

	if (is_parted(engine))
		return engine->turn;
	enter(engine);
	engine->begin_ns = engine->env->now(engine->env->ctx);
	if (SPOKEI_LIKELY(engine->late_rounds == 0 && !engine->behind)) {
		engine->turn++;
		engine->turn_ns = engine->begin_ns;
	}
	if (SPOKEI_UNLIKELY(!spokei_list_empty(&engine->early)))
		spokei_early_run(engine);
	look_for_sleep(engine);
	note_lateness(engine);
	return engine->turn;
}

/*
 * Returns whether a late turn polls again: sockets may be readable that the loop has not reported
 * yet, `ready` of this round were reported for the first time. A first wait that finds nothing
 * proves nothing: if the process was stopped during the wait, the wait is interrupted when it
 * continues.
 */
static bool may_be_unread(const struct spoke_engine *engine, unsigned ready)
{
	return (ready > 0 || engine->late_rounds == 0) &&
	       engine->late_rounds < SPOKEI_ENGINE_LATE_ROUNDS && spokei_engine_has_time(engine);
}

/* Advances the wheel, unless this turn is late and some sockets may not have been read yet. The
 * rounds of a late turn have read everything that came before the first of them began. A wheel that
 * is behind goes on to its previous target. */
static void turn_wheel(struct spoke_engine *engine, unsigned ready)
{
	if (!engine->behind) {
		if (spokei_engine_late(engine) && may_be_unread(engine, ready)) {
			engine->late_rounds++;
			return;
		}
		engine->wheel_ns = engine->turn_ns;
	}
	engine->behind = spoke_wheel_advance(engine->wheel, engine->wheel_ns, 0) ==
			 SPOKE_WHEEL_MORE;
	engine->late_rounds = 0;
	engine->late_told = false;
}

static void engine_turn(void *arg, unsigned ready)
{
	struct spoke_engine *engine = arg;
	const unsigned *forks = engine->forks_now;

	if (is_parted(engine))
		return;
	if (SPOKEI_UNLIKELY(!spokei_list_empty(&engine->sources))) {
		ready += spokei_sources_serve(engine);
		if (is_parted(engine))
			return;
	}
	engine->crowded = ready > 1;
	if (SPOKEI_LIKELY(!engine->looked))
		turn_wheel(engine, ready);
	else if (engine->begin_ns < engine->due_ns)
		engine->looked = false;
	if (is_parted(engine))
		return;
	(void)spokei_mailbox_run_all(&engine->posted, forks, engine->forks);
	(void)spokei_task_run_all(&engine->soon, forks, engine->forks);
	leave(engine);
	(void)is_parted(engine);
}

static void run_last(struct spoke_engine *engine)
{
	const unsigned *forks = engine->forks_now;

	if (!spokei_list_empty(&engine->last)) {
		engine->settle_ns = engine->env->now(engine->env->ctx);
		engine->settle_old = false;
		(void)spokei_task_run_all(&engine->last, forks, engine->forks);
	}
	(void)spokei_task_run_all(&engine->dead, forks, engine->forks);
}

/* Returns whether this turn is the last. A loop that its user runs is left once for a drain: the
 * user may want to go on with it, without the engine. */
static bool is_over(struct spoke_engine *engine, bool more)
{
	if (atomic_exchange_explicit(&engine->stopping, false, memory_order_relaxed))
		return true;
	if (!engine->ending || more || !spokei_list_empty(&engine->roll))
		return false;
	if (engine->drained && !engine->running)
		return false;
	engine->drained = true;
	return true;
}

/* Returns whether sources that are awake, or were in this round, keep the next one from waiting. */
static SPOKEI_NOINLINE bool keeps_awake(struct spoke_engine *engine)
{
	bool looked = engine->looked;

	/* The wheel waits for a poll. */
	engine->looked = false;
	return looked || (!engine->env->loop->lulls && spokei_sources_lull(engine));
}

static void engine_settle(void *arg)
{
	struct spoke_engine *engine = arg;
	const struct spoke_loop *loop = engine->env->loop;
	bool more;

	if (is_parted(engine))
		return;
	enter(engine);
	run_last(engine);
	leave(engine);
	if (is_parted(engine))
		return;
	more = spokei_engine_has_tasks(engine);
	if (SPOKEI_UNLIKELY(engine->looked || !spokei_list_empty(&engine->sources)))
		more |= keeps_awake(engine);
	engine->due_ns = spoke_wheel_next(engine->wheel);
	if (engine->late_rounds > 0 || engine->behind || more)
		loop->again(engine->loop);
	else
		loop->wake_at(engine->loop, engine->due_ns);
	if (is_over(engine, more))
		loop->stop(engine->loop);
}

static enum spoke_loop_found engine_look(void *arg)
{
	struct spoke_engine *engine = arg;
	enum spoke_loop_found found;

	if (SPOKEI_LIKELY(spokei_list_empty(&engine->sources)) || spokei_engine_forked(engine))
		return SPOKE_LOOP_ALL_TELL;
	found = spokei_sources_look(engine);
	engine->looked = found == SPOKE_LOOP_COME;
	return found;
}

static bool engine_lull(void *arg)
{
	struct spoke_engine *engine = arg;
	bool disturbed;

	if (SPOKEI_LIKELY(spokei_list_empty(&engine->sources)) || spokei_engine_forked(engine))
		return false;
	disturbed = spokei_sources_lull(engine);
	/* A user's loop polls in each round. */
	engine->looked = disturbed && !engine->native;
	return disturbed;
}

const struct spoke_loop_up spokei_engine_up = {
	.settle = engine_settle,
	.begin = engine_begin,
	.turn = engine_turn,
	.look = engine_look,
	.lull = engine_lull,
};

uint64_t spoke_engine_now(const struct spoke_engine *engine)
{
	return engine->inside ? engine->begin_ns : engine->env->now(engine->env->ctx);
}

const struct spoke_wheel *spoke_engine_wheel(const struct spoke_engine *engine)
{
	return engine->wheel;
}

void spoke_engine_watch(struct spoke_engine *engine, struct spoke_watch *watch, unsigned io)
{
	engine->env->loop->watch(engine->loop, watch, io);
}

void spoke_engine_post(struct spoke_engine *engine, struct spoke_post *post)
{
	if (spokei_mailbox_put(&engine->posted, post))
		engine->env->loop->wake(engine->loop);
}
