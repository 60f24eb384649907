/* SPDX-License-Identifier: Apache-2.0 */
/* The wheel of an engine: how it is made, the classes of its timers, and alarms. */
#include "core/base/env.h"
#include "core/engine/parts.h"

#include <inttypes.h>

int spokei_engine_fold(int wheel_status)
{
	switch (wheel_status) {
	case SPOKE_WHEEL_OK:
	case SPOKE_WHEEL_MORE:
		return SPOKE_OK;
	case SPOKE_WHEEL_FULL:
	case SPOKE_WHEEL_CLASSES_FULL:
		return SPOKE_ELIMIT;
	case SPOKE_WHEEL_HORIZON:
		return SPOKE_ERANGE;
	case SPOKE_WHEEL_ARMED:
	case SPOKE_WHEEL_IDLE:
	case SPOKE_WHEEL_STOPPED:
	case SPOKE_WHEEL_BUSY:
		return SPOKE_ESTATE;
	default:
		return SPOKE_EINVAL;
	}
}

/* In a forked child the timers that are due with the one that forked are its parent's. */
static void timer_due(struct spoke_timer *timer, void *arg)
{
	const struct spokei_engine_class *class = arg;

	if (SPOKEI_LIKELY(!spokei_engine_forked(class->engine)))
		class->due(timer, class->engine);
}

int spokei_engine_class(struct spoke_engine *engine, const char *name,
			void (*due)(struct spoke_timer *timer, void *arg), unsigned *ret_class)
{
	struct spokei_engine_class *found = spokei_engine_parts(engine)->classes;
	struct spokei_engine_class *end = found + spokei_engine_parts(engine)->classes_count;
	int status;

	while (found < end && found->due != due)
		found++;
	if (found == end) {
		if (spokei_engine_parts(engine)->classes_count == SPOKE_WHEEL_CLASSES_MAX)
			return SPOKE_ELIMIT;
		found->engine = engine;
		found->due = due;
		status = spoke_wheel_add_class(engine->wheel, name, timer_due, found,
					       &found->wheel_class);
		if (status != SPOKE_WHEEL_OK)
			return spokei_engine_fold(status);
		spokei_engine_parts(engine)->classes_count++;
	}
	*ret_class = found->wheel_class;
	return SPOKE_OK;
}

/* Schedules the next whole period that lies ahead. If the wheel has no room for it, the alarm ends.
 */
static void schedule_next_period(struct spoke_engine *engine, struct spoke_alarm *alarm)
{
	uint64_t behind_ns = engine->begin_ns - alarm->due_ns;
	int status;

	alarm->due_ns += (behind_ns / alarm->period_ns + 1) * alarm->period_ns;
	status = spoke_wheel_schedule(engine->wheel, &alarm->timer, engine->alarm_class,
				      alarm->due_ns);
	if (status != SPOKE_WHEEL_OK)
		alarm->period_ns = 0;
}

static void alarm_due(struct spoke_timer *timer, void *arg)
{
	struct spoke_alarm *alarm = spoke_container_of(timer, struct spoke_alarm, timer);
	struct spoke_engine *engine = arg;

	if (alarm->period_ns)
		schedule_next_period(engine, alarm);
	alarm->due(alarm);
}

int spokei_engine_make_wheel(struct spoke_engine *engine,
			     const struct spoke_engine_options *options)
{
	struct spoke_wheel_options wheel = {
		.tick_ns = options->tick_ns,
		.pending_max = options->timers_max,
	};
	int status = spoke_wheel_size(&wheel, &engine->wheel_size);

	if (status != SPOKE_WHEEL_OK)
		return spokei_engine_fold(status);
	engine->wheel_memory = spokei_alloc(engine->env, 1, engine->wheel_size);
	if (engine->wheel_memory == NULL)
		return SPOKE_ENOMEM;
	status = spoke_wheel_init(engine->wheel_memory, engine->wheel_size, &wheel,
				  engine->begin_ns, &engine->wheel);
	SPOKE_ASSERT(status == SPOKE_WHEEL_OK);
	status = spokei_engine_class(engine, "alarm", alarm_due, &engine->alarm_class);
	SPOKE_ASSERT(status == SPOKE_OK);
	return SPOKE_OK;
}

static void explain_alarm(struct spoke_engine *engine, int status)
{
	struct spoke_wheel_counts counts;

	spoke_wheel_counts(engine->wheel, &counts);
	if (status == SPOKE_WHEEL_FULL) {
		spokei_why_set(engine,
			       "alarm: timers.max = %" PRIu64
			       " is reached (timers of the engine); raise it or cancel some",
			       counts.pending);
	} else {
		spokei_why_set(engine, "alarm: %s", spoke_strerror(spokei_engine_fold(status)));
	}
}

static int set_alarm(struct spoke_engine *engine, struct spoke_alarm *alarm, uint64_t delay_ns,
		     uint64_t period_ns, void (*due)(struct spoke_alarm *alarm))
{
	/* Not the time of begin: a long callback may have run since, and no alarm may be early. */
	uint64_t now_ns = engine->env->now(engine->env->ctx);
	uint64_t due_ns = spokei_later(now_ns, delay_ns);
	int status = spokei_engine_check(engine);

	if (status)
		return status;
	if (spoke_timer_armed(&alarm->timer))
		status = spoke_wheel_reschedule(engine->wheel, &alarm->timer, due_ns);
	else
		status = spoke_wheel_schedule(engine->wheel, &alarm->timer, engine->alarm_class,
					      due_ns);
	if (SPOKEI_UNLIKELY(status != SPOKE_WHEEL_OK)) {
		explain_alarm(engine, status);
		return spokei_engine_fold(status);
	}
	alarm->engine = engine;
	alarm->due = due;
	alarm->due_ns = due_ns;
	alarm->period_ns = period_ns;
	return SPOKE_OK;
}

int spoke_alarm_after(struct spoke_engine *engine, struct spoke_alarm *alarm, uint64_t delay_ns,
		      void (*due)(struct spoke_alarm *alarm))
{
	return set_alarm(engine, alarm, delay_ns, 0, due);
}

int spoke_alarm_every(struct spoke_engine *engine, struct spoke_alarm *alarm, uint64_t period_ns,
		      void (*due)(struct spoke_alarm *alarm))
{
	if (period_ns == 0)
		return SPOKE_EINVAL;
	return set_alarm(engine, alarm, period_ns, period_ns, due);
}

bool spoke_alarm_cancel(struct spoke_alarm *alarm)
{
	/* An alarm that is not set may have outlived its engine. */
	if (!spoke_timer_armed(&alarm->timer))
		return false;
	/* A child of the process may free what the thread of its parent has set. */
	if (spokei_engine_elsewhere(alarm->engine) && !spokei_engine_forked(alarm->engine))
		return false;
	return spoke_wheel_cancel(alarm->engine->wheel, &alarm->timer);
}
