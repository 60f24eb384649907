/* SPDX-License-Identifier: Apache-2.0 */
/* The turn of an engine: its order, its queues and mailbox, sources, sleep of the machine, timers
 * and alarms. engine.h describes the order of a turn and the reasons for it. */
#include "core/base/env.h"
#include "core/engine/figures.h"
#include "core/engine/members.h"
#include "core/engine/parts.h"
#include "core/engine/source.h"
#include "core/engine/task.h"
#include "core/memory/hidden.h"

#include <spoke/engine.h>

#include <inttypes.h>

/* --- queues of tasks, and the mailbox for other threads */

static inline bool is_child(const unsigned *forks, unsigned before)
{
	return forks && *forks != before;
}

size_t spokei_task_run_queue(struct spoke_list *queue, const unsigned *forks, unsigned before)
{
	struct spoke_list batch;
	size_t ran = 0;

	spokei_list_move(queue, &batch);
	while (!spokei_list_empty(&batch)) {
		struct spokei_task *task = spoke_container_of(batch.next, struct spokei_task, node);

		spokei_list_remove(&task->node);
		if (SPOKEI_UNLIKELY(is_child(forks, before))) {
			spokei_list_append(queue, &task->node);
			continue;
		}
		task->run(task);
		ran++;
	}
	return ran;
}

bool spokei_mailbox_put(struct spokei_mailbox *mailbox, struct spoke_post *post)
{
	struct spoke_post *newest = atomic_load_explicit(&mailbox->newest, memory_order_relaxed);

	do {
		post->next = newest;
	} while (!atomic_compare_exchange_weak_explicit(&mailbox->newest, &newest, post,
							memory_order_release,
							memory_order_relaxed));
	return newest == NULL;
}

size_t spokei_mailbox_run_posts(struct spokei_mailbox *mailbox, const unsigned *forks,
				unsigned before)
{
	struct spoke_post *newest = atomic_exchange_explicit(&mailbox->newest, NULL,
							     memory_order_acquire);
	struct spoke_post *oldest = NULL;
	size_t ran = 0;

	while (newest) {
		struct spoke_post *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	while (oldest && !is_child(forks, before)) {
		struct spoke_post *next = oldest->next;

		oldest->run(oldest);
		oldest = next;
		ran++;
	}
	return ran;
}

/* --- functions that run first */

/* Each function is back on the list before it is called, so that it can leave from there. The
 * functions that follow can leave, too. */
static void run_first(struct spoke_engine *engine)
{
	struct spoke_list batch;

	spokei_list_init(&batch);
	spokei_list_move(&engine->first, &batch);
	while (!spokei_list_empty(&batch)) {
		struct spoke_list *node = batch.next;
		struct spokei_early *early = spoke_container_of(node, struct spokei_early, node);

		spokei_list_unlink(node);
		spokei_list_append(&engine->first, node);
		if (SPOKEI_LIKELY(!spokei_engine_forked(engine)))
			early->begin(early);
	}
}

/* --- sources that no descriptor tells */

static struct spokei_source *source_of(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_source, node);
}

/* Takes the first one out and puts it at the end, so that the next look begins behind it. */
static struct spokei_source *rotate(struct spoke_engine *engine)
{
	struct spoke_list *first = engine->sources.next;

	if (first->next != &engine->sources) {
		spokei_list_remove(first);
		spokei_list_append(&engine->sources, first);
	}
	return source_of(first);
}

/* Serves those that have something. Returns how many of them for the first time in this turn. */
static unsigned serve_sources(struct spoke_engine *engine)
{
	struct spoke_list *last = engine->sources.prev;
	unsigned fresh = 0;

	for (unsigned i = 0; i < SPOKEI_SOURCE_TURN && !spokei_list_empty(&engine->sources); i++) {
		struct spokei_source *source = rotate(engine);
		bool is_last = &source->node == last;

		if (source->has(source)) {
			fresh += source->turn != engine->turn;
			source->turn = engine->turn;
			source->ready(source);
		}
		/* Others may have ended: then one is asked twice, or the next turn goes on. The
		 * memory of the others belongs to the parent of a forked child. */
		if (is_last || spokei_engine_forked(engine))
			break;
	}
	return fresh;
}

/* Polls sources that are awake, of which there is one at least. */
static enum spoke_loop_found poll_sources(struct spoke_engine *engine)
{
	struct spokei_source *first = NULL;

	for (unsigned i = 0; i < SPOKEI_SOURCE_LOOKS; i++) {
		struct spokei_source *source = source_of(engine->sources.next);

		if (source == first)
			break;
		if (source->has(source))
			return SPOKE_LOOP_COME;
		first = first ? first : source;
		(void)rotate(engine);
	}
	return SPOKE_LOOP_NOTHING;
}

bool spokei_sources_sleep(struct spoke_engine *engine)
{
	while (!spokei_list_empty(&engine->sources)) {
		struct spokei_source *source = source_of(engine->sources.next);

		if (source->has(source) || !source->sleep(source))
			return true;
		spokei_list_remove(&source->node);
	}
	return false;
}

/* --- the turn */

#define SLEEP_LOOK_NS UINT64_C(100000000) /* shortest time between two looks */
#define SLEEP_MIN_NS UINT64_C(1000000000) /* anything shorter is ignored */
#define NS_PER_TENTH UINT64_C(100000000)  /* of a second */

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

/*
 * Returns for how long the machine has slept since the last look; 0: not at all, or the last look
 * was just now. The boot-time clock goes on while it sleeps, and the monotonic clock stops. They
 * cannot be read at the same instant, and the process may be held up between two readings. So the
 * boot-time clock is read between two readings of the monotonic one, which give a lower and an
 * upper bound of its lead. Only the part between the upper bound of one look and the lower bound of
 * the next is certain.
 */
static uint64_t slept_since_look(struct spoke_engine *engine)
{
	const struct spoke_env *env = engine->env;
	struct spokei_sleep *sleep = &spokei_engine_parts(engine)->sleep;
	uint64_t boot_ns;
	int64_t slept_ns;

	if (engine->begin_ns - sleep->looked_ns < SLEEP_LOOK_NS)
		return 0;
	boot_ns = env->boot_now(env->ctx);
	slept_ns = (int64_t)(boot_ns - env->now(env->ctx) - sleep->ahead_ns);
	sleep->looked_ns = engine->begin_ns;
	sleep->ahead_ns = boot_ns - engine->begin_ns;
	return slept_ns > (int64_t)SLEEP_MIN_NS ? (uint64_t)slept_ns : 0;
}

static void look_for_sleep(struct spoke_engine *engine)
{
	uint64_t tenths = slept_since_look(engine) / NS_PER_TENTH;

	if (SPOKEI_LIKELY(tenths == 0))
		return;
	spokei_count(engine, SPOKE_STAT_SLEEPS);
	spokei_event(engine, SPOKE_OK, "the machine slept for %" PRIu64 ".%" PRIu64 " s",
		     tenths / 10, tenths % 10);
	spokei_members_wake_all(engine);
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
	if (SPOKEI_UNLIKELY(!spokei_list_empty(&engine->first)))
		run_first(engine);
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
		ready += serve_sources(engine);
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
	if (engine->handler)
		(void)spokei_figures_handled(engine);
	engine->handler = NULL;
	(void)spokei_mailbox_run_all(&engine->posted, forks, engine->forks);
	(void)spokei_task_run_all(&engine->completions, forks, engine->forks);
	leave(engine);
	(void)is_parted(engine);
}

static void run_last(struct spoke_engine *engine)
{
	const unsigned *forks = engine->forks_now;

	if (!spokei_list_empty(&engine->settling)) {
		engine->settle_ns = engine->env->now(engine->env->ctx);
		engine->settle_old = false;
		(void)spokei_task_run_all(&engine->settling, forks, engine->forks);
	}
	(void)spokei_task_run_all(&engine->freeing, forks, engine->forks);
}

/* Returns whether the engine ends and nothing is left of its members. */
static bool drain_is_over(const struct spoke_engine *engine, bool more)
{
	return engine->ending && !more && spokei_list_empty(&engine->members);
}

/* Returns whether this turn is the last. A loop that its user runs is left once for a drain: the
 * user may want to go on with it, without the engine. */
static bool is_last_turn(struct spoke_engine *engine, bool more)
{
	if (atomic_exchange_explicit(&engine->stopping, false, memory_order_relaxed))
		return true;
	if (!drain_is_over(engine, more) || (engine->drained && !engine->running))
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
	return looked || (!engine->env->loop->prepares_to_sleep && spokei_sources_sleep(engine));
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
	if (is_last_turn(engine, more))
		loop->stop(engine->loop);
}

static enum spoke_loop_found engine_poll(void *arg)
{
	struct spoke_engine *engine = arg;
	enum spoke_loop_found found;

	if (SPOKEI_LIKELY(spokei_list_empty(&engine->sources)) || spokei_engine_forked(engine))
		return SPOKE_LOOP_ALL_TELL;
	found = poll_sources(engine);
	engine->looked = found == SPOKE_LOOP_COME;
	return found;
}

static bool engine_prepare_to_sleep(void *arg)
{
	struct spoke_engine *engine = arg;
	bool disturbed;

	if (SPOKEI_LIKELY(spokei_list_empty(&engine->sources)) || spokei_engine_forked(engine))
		return false;
	disturbed = spokei_sources_sleep(engine);
	/* A user's loop polls in each round. */
	engine->looked = disturbed && !engine->native;
	return disturbed;
}

const struct spoke_loop_up spokei_engine_up = {
	.settle = engine_settle,
	.begin = engine_begin,
	.turn = engine_turn,
	.poll = engine_poll,
	.prepare_to_sleep = engine_prepare_to_sleep,
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

/* --- calls on a wrong thread */

static void log_misuse(struct spoke_post *post)
{
	struct spokei_misuse *misuse = spoke_container_of(post, struct spokei_misuse, post);
	struct spokei_engine_parts *parts = spoke_container_of(misuse, struct spokei_engine_parts,
							       misuse);

	spokei_event(&parts->engine, SPOKE_ETHREAD, "%s was refused, and did nothing",
		     misuse->function);
	atomic_store(&misuse->posted, false);
}

bool spokei_engine_refuses(struct spoke_engine *engine, const char *function)
{
	struct spokei_misuse *misuse = &spokei_engine_parts(engine)->misuse;

	if (SPOKEI_LIKELY(!spokei_engine_elsewhere(engine))) {
		spokei_engine_refresh(engine);
		return false;
	}
	/* One at a time. */
	if (!atomic_exchange(&misuse->posted, true)) {
		misuse->function = function;
		misuse->post.run = log_misuse;
		spoke_engine_post(engine, &misuse->post);
	}
	return true;
}

/* --- the wheel: how it is made, the classes of its timers, and alarms */

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
		status = spokei_engine_fold(status);
		spokei_why_explain(engine, status, "alarm");
		return status;
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
