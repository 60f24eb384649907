/* SPDX-License-Identifier: Apache-2.0 */
/* The turn, and the life of an engine; engine.h says what the order is and why. */
#include "core/engine.h"

#include <spoke/host.h>

#include <errno.h>

#define LATE_NS UINT64_C(50000000)

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

static void engine_begin(void *arg)
{
	struct spoke_engine *engine = arg;

	engine->begin_ns = engine->env->now(engine->env->ctx);
	/* A late turn stays as late as it began, however often it goes round. */
	if (engine->late_rounds == 0)
		engine->late_ns = engine->begin_ns > engine->due_ns
					  ? engine->begin_ns - engine->due_ns
					  : 0;
}

/* Moves the wheel, unless this turn is late and some sockets may not have been read yet. */
static void turn_wheel(struct spoke_engine *engine, unsigned ready)
{
	if (spokei_engine_late(engine) && ready > 0 &&
	    engine->late_rounds < SPOKEI_ENGINE_LATE_ROUNDS) {
		engine->late_rounds++;
		return;
	}
	engine->behind = spoke_wheel_advance(engine->wheel, engine->begin_ns, 0) ==
			 SPOKE_WHEEL_MORE;
	engine->late_rounds = 0;
}

static void engine_turn(void *arg, unsigned ready)
{
	struct spoke_engine *engine = arg;

	turn_wheel(engine, ready);
	(void)spokei_mailbox_run_all(&engine->posted);
	(void)spokei_task_run_all(&engine->soon);
}

static void engine_settle(void *arg)
{
	struct spoke_engine *engine = arg;
	const struct spoke_loop *loop = engine->env->loop;

	if (!spokei_list_empty(&engine->last)) {
		engine->settle_ns = engine->env->now(engine->env->ctx);
		(void)spokei_task_run_all(&engine->last);
	}
	(void)spokei_task_run_all(&engine->dead);
	engine->due_ns = spoke_wheel_next(engine->wheel);
	if (engine->late_rounds > 0 || engine->behind || !spokei_list_empty(&engine->soon) ||
	    !spokei_list_empty(&engine->last) || !spokei_list_empty(&engine->dead))
		loop->again(engine->loop);
	else
		loop->wake_at(engine->loop, engine->due_ns);
}

static const struct spoke_loop_up engine_up = {
	.settle = engine_settle,
	.begin = engine_begin,
	.turn = engine_turn,
};

/* The next whole period that lies ahead. A wheel that has no room for it ends the alarm. */
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

static int make_wheel(struct spoke_engine *engine, const struct spoke_engine_options *options)
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
	status = spoke_wheel_add_class(engine->wheel, "alarm", alarm_due, engine,
				       &engine->alarm_class);
	SPOKE_ASSERT(status == SPOKE_WHEEL_OK);
	return SPOKE_OK;
}

int spoke_engine_new(const struct spoke_engine_options *options, struct spoke_engine **ret_engine)
{
	static const struct spoke_engine_options defaults;
	const struct spoke_engine_options *with = options ? options : &defaults;
	const struct spoke_env *env = with->env ? with->env : spoke_host_env();
	struct spoke_engine *engine = spokei_alloc(env, 1, sizeof(*engine));
	int error;

	if (engine == NULL)
		return SPOKE_ENOMEM;
	engine->env = env;
	engine->late_max_ns = with->late_ns ? with->late_ns : LATE_NS;
	engine->begin_ns = env->now(env->ctx);
	engine->due_ns = UINT64_MAX;
	spokei_list_init(&engine->soon);
	spokei_list_init(&engine->last);
	spokei_list_init(&engine->dead);
	error = make_wheel(engine, with);
	if (error)
		goto err_after_alloc;
	error = env->loop->open(env->ctx, with->native, &engine_up, engine, &engine->loop);
	if (error) {
		error = error == -ENOMEM ? SPOKE_ENOMEM : SPOKE_ESYSTEM;
		goto err_after_wheel;
	}
	*ret_engine = engine;
	return SPOKE_OK;

err_after_wheel:
	spokei_free(env, engine->wheel_memory, 1, engine->wheel_size);
err_after_alloc:
	spokei_free(env, engine, 1, sizeof(*engine));
	return error;
}

void spoke_engine_free(struct spoke_engine *engine)
{
	if (engine == NULL)
		return;
	SPOKE_ASSERT(!engine->running);
	engine->env->loop->retire(engine->loop);
	/* Whoever is to be told something is told; each may put a little more. */
	while (spokei_mailbox_run_all(&engine->posted) + spokei_task_run_all(&engine->soon) +
	       spokei_task_run_all(&engine->last) + spokei_task_run_all(&engine->dead))
		continue;
	(void)spoke_wheel_stop(engine->wheel, NULL, NULL);
	engine->env->loop->close(engine->loop);
	spokei_free(engine->env, engine->wheel_memory, 1, engine->wheel_size);
	spokei_free(engine->env, engine, 1, sizeof(*engine));
}

int spoke_engine_run(struct spoke_engine *engine)
{
	if (engine->running)
		return SPOKE_ESTATE;
	engine->running = true;
	engine->env->loop->run(engine->loop);
	engine->running = false;
	return SPOKE_OK;
}

int spoke_engine_turn(struct spoke_engine *engine, bool wait)
{
	if (engine->running)
		return SPOKE_ESTATE;
	engine->running = true;
	engine->env->loop->round(engine->loop, wait);
	engine->running = false;
	return SPOKE_OK;
}

void spoke_engine_stop(struct spoke_engine *engine)
{
	engine->env->loop->stop(engine->loop);
}

uint64_t spoke_engine_now(const struct spoke_engine *engine)
{
	return engine->begin_ns;
}

void spoke_engine_post(struct spoke_engine *engine, struct spoke_post *post)
{
	if (spokei_mailbox_put(&engine->posted, post))
		engine->env->loop->wake(engine->loop);
}

static int set_alarm(struct spoke_engine *engine, struct spoke_alarm *alarm, uint64_t delay_ns,
		     uint64_t period_ns, void (*due)(struct spoke_alarm *alarm))
{
	/* Not the time of begin: a long callback may lie between, and nothing may be early. */
	uint64_t now_ns = engine->env->now(engine->env->ctx);
	uint64_t due_ns = delay_ns < UINT64_MAX - now_ns ? now_ns + delay_ns : UINT64_MAX;
	int status;

	if (spoke_timer_armed(&alarm->timer))
		status = spoke_wheel_reschedule(engine->wheel, &alarm->timer, due_ns);
	else
		status = spoke_wheel_schedule(engine->wheel, &alarm->timer, engine->alarm_class,
					      due_ns);
	if (status != SPOKE_WHEEL_OK)
		return spokei_engine_fold(status);
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
	if (alarm->engine == NULL)
		return false;
	return spoke_wheel_cancel(alarm->engine->wheel, &alarm->timer);
}
