/* SPDX-License-Identifier: Apache-2.0 */
/* The life of an engine: how it is made, run and freed. */
#include "core/engine/figures.h"
#include "core/engine/parts.h"
#include "core/engine/roll.h"
#include "core/engine/signals.h"
#include "core/engine/slow.h"

#include <spoke/host.h>

#include <errno.h>

#define LATE_NS UINT64_C(50000000)
#define POSTS_DEEP 16 /* rounds of posts by posts that an end waits for */

static int fold_errno(int error)
{
	return error == -ENOMEM ? SPOKE_ENOMEM : SPOKE_ESYSTEM;
}

static void init_engine(struct spoke_engine *engine, const struct spoke_engine_options *options)
{
	const struct spoke_env *env = engine->env;

	engine->log = &spokei_engine_parts(engine)->log;
	engine->events = &spokei_engine_parts(engine)->events;
	engine->latency = &spokei_engine_parts(engine)->latency;
	engine->native = options->native != NULL;
	engine->late_max_ns = options->late_ns ? options->late_ns : LATE_NS;
	engine->begin_ns = env->now(env->ctx);
	engine->due_ns = UINT64_MAX;
	spokei_sleep_init(&spokei_engine_parts(engine)->sleep, env, engine->begin_ns);
	engine->forks = env->forks ? *env->forks : 0;
	engine->forks_now = env->forks ? env->forks : &engine->forks;
	engine->drain.run = spokei_roll_end;
	engine->woke = spokei_roll_wake_all;
	spokei_list_init(&engine->early);
	spokei_list_init(&engine->soon);
	spokei_list_init(&engine->last);
	spokei_list_init(&engine->dead);
	spokei_list_init(&engine->sources);
	spokei_list_init(&engine->roll);
	spokei_list_init(&engine->retired);
	spokei_list_init(&engine->signals);
	spokei_list_init(&engine->figures);
	spokei_log_init(engine->log, env, engine->begin_ns);
	spokei_engine_parts(engine)->options = *options;
	spokei_engine_parts(engine)->options.log = NULL;
}

const struct spoke_engine_options *spokei_engine_options(const struct spoke_engine *engine)
{
	return &((const struct spokei_engine_parts *)engine)->options;
}

static void free_memory(struct spoke_engine *engine)
{
	const struct spoke_env *env = engine->env;

	spokei_free(env, engine->scratch, 1, SPOKEI_ENGINE_SCRATCH);
	spokei_events_fini(engine->events, env);
	spokei_slow_free(engine);
	spokei_figures_free_all(engine);
	spokei_free(env, engine->wheel_memory, 1, engine->wheel_size);
	spokei_free(env, engine, 1, sizeof(struct spokei_engine_parts));
}

static int check_spin(const struct spoke_env *env, const struct spoke_engine_options *options)
{
	if (options->spin_ns == 0 || options->spin_ns == SPOKE_ENGINE_SPIN_OFF)
		return SPOKE_OK;
	if (options->spin_ns > SPOKE_ENGINE_SPIN_MAX_NS || options->native)
		return SPOKE_EINVAL;
	return env->loop->spin ? SPOKE_OK : SPOKE_EUNSUPPORTED;
}

static int check_pool(const struct spoke_env *env, const struct spoke_engine_options *options)
{
	if (options->pool_threads == 0 && options->pool_queue == 0)
		return SPOKE_OK;
	if (options->pool_threads > SPOKE_POOL_THREADS_MAX ||
	    options->pool_queue > SPOKE_POOL_QUEUE_MAX)
		return SPOKE_EINVAL;
	return env->loop->pool_limit ? SPOKE_OK : SPOKE_EUNSUPPORTED;
}

int spoke_engine_new(const struct spoke_engine_options *options, struct spoke_engine **ret_engine)
{
	static const struct spoke_engine_options defaults;
	const struct spoke_engine_options *with = options ? options : &defaults;
	const struct spoke_env *env = with->env ? with->env : spoke_host_env();
	struct spoke_engine *engine;
	int error = check_spin(env, with);

	if (error == 0)
		error = check_pool(env, with);
	if (error)
		return error;
	engine = spokei_alloc(env, 1, sizeof(struct spokei_engine_parts));
	if (engine == NULL)
		return SPOKE_ENOMEM;
	engine->env = env;
	init_engine(engine, with);
	error = spokei_log_choose(engine->log, with->log);
	if (error == SPOKE_OK)
		error = spokei_engine_make_wheel(engine, with);
	if (error)
		goto err_after_alloc;
	error = SPOKE_ENOMEM;
	engine->scratch = spokei_alloc_unset(env, SPOKEI_ENGINE_SCRATCH);
	if (engine->scratch == NULL || !spokei_events_init(engine->events, env))
		goto err_after_alloc;
	error = env->loop->open(env->ctx, with->native, &spokei_engine_up, engine, &engine->loop);
	if (error) {
		error = fold_errno(error);
		goto err_after_alloc;
	}
	if (env->loop->spin && !with->native && with->spin_ns != SPOKE_ENGINE_SPIN_OFF)
		env->loop->spin(engine->loop, with->spin_ns ? with->spin_ns : SPOKE_LOOP_SPIN_AUTO);
	if (with->pool_threads || with->pool_queue)
		env->loop->pool_limit(engine->loop, with->pool_threads, with->pool_queue);
	*ret_engine = engine;
	return SPOKE_OK;

err_after_alloc:
	free_memory(engine);
	return error;
}

int spoke_engine_log(struct spoke_engine *engine, const char *level)
{
	int error = spokei_engine_check(engine);

	if (error)
		return error;
	return level ? spokei_log_choose(engine->log, level) : SPOKE_EINVAL;
}

/* Runs all queues; each callback may add a little more. */
static void run_tasks(struct spoke_engine *engine)
{
	while (spokei_engine_has_tasks(engine)) {
		(void)spokei_task_run_all(&engine->soon, NULL, 0);
		engine->settle_ns = engine->env->now(engine->env->ctx);
		(void)spokei_task_run_all(&engine->last, NULL, 0);
		(void)spokei_task_run_all(&engine->dead, NULL, 0);
	}
}

/* Posts are run, too, but a user may post for ever. A child skips its parent's posts, because they
 * belong to threads that do not exist in the child. */
static void run_all(struct spoke_engine *engine)
{
	bool forked = spokei_engine_forked(engine);
	size_t ran = 1;

	for (int deep = 0; deep < POSTS_DEEP && ran > 0; deep++) {
		ran = forked ? 0 : spokei_mailbox_run_all(&engine->posted, NULL, 0);
		run_tasks(engine);
	}
}

/* Joins the engine's own thread. */
static bool join_thread(struct spoke_engine *engine)
{
	void *thread = atomic_exchange(&engine->thread, NULL);

	if (thread == NULL)
		return false;
	engine->env->threads->join(thread);
	return true;
}

static void begin_run(struct spoke_engine *engine)
{
	engine->running = true;
	atomic_store_explicit(&engine->runner, spokei_engine_self(engine), memory_order_relaxed);
}

static void destroy(struct spoke_engine *engine)
{
	const struct spoke_loop *loop = engine->env->loop;

	begin_run(engine); /* callbacks from here on come from the engine */
	spokei_engine_refresh(engine);
	engine->ending = true;
	engine->closing = true;
	spokei_roll_close_all(engine);
	run_all(engine); /* and closes members that callbacks make meanwhile */
	spokei_roll_free_all(engine);
	run_all(engine);
	loop->retire(engine->loop);
	run_all(engine);
	spokei_signals_cancel_all(engine);
	SPOKE_ASSERT(spokei_list_empty(&engine->roll));
	(void)spoke_wheel_stop(engine->wheel, NULL, NULL);
	loop->close(engine->loop);
	free_memory(engine);
}

/* Returns whether this is a child, and the engine was on another thread when the process forked.
 * That thread does not exist here, and it may have been inside any function. */
static bool is_orphan(const struct spoke_engine *engine)
{
	return spokei_engine_forked(engine) && spokei_engine_elsewhere(engine);
}

void spoke_engine_free(struct spoke_engine *engine)
{
	if (engine == NULL || is_orphan(engine))
		return;
	if (spokei_engine_here(engine) && engine->running) {
		engine->doomed = true;
		spoke_engine_stop(engine);
		return;
	}
	if (atomic_load(&engine->thread)) {
		spoke_engine_stop(engine);
		(void)join_thread(engine);
	}
	/* No other thread runs it. */
	SPOKE_ASSERT(engine->native || spokei_engine_here(engine) ||
		     atomic_load_explicit(&engine->runner, memory_order_relaxed) == 0);
	destroy(engine);
}

static void end_run(struct spoke_engine *engine)
{
	engine->running = false;
	if (!engine->native)
		atomic_store_explicit(&engine->runner, 0, memory_order_relaxed);
}

/* The run is over; the engine may be gone, too. */
static int conclude(struct spoke_engine *engine)
{
	int error = spokei_engine_forked(engine) ? SPOKE_EFORKED : SPOKE_OK;

	end_run(engine);
	if (engine->doomed)
		destroy(engine);
	return error;
}

static int check_can_run(const struct spoke_engine *engine)
{
	if (spokei_engine_forked(engine))
		return SPOKE_EFORKED;
	if (atomic_load(&engine->thread))
		return SPOKE_ESTATE;
	if (engine->native)
		return engine->running || engine->inside ? SPOKE_ESTATE : SPOKE_OK;
	return atomic_load_explicit(&engine->runner, memory_order_relaxed) ? SPOKE_ESTATE
									   : SPOKE_OK;
}

int spoke_engine_run(struct spoke_engine *engine)
{
	int error = check_can_run(engine);

	if (error)
		return error;
	atomic_store_explicit(&engine->stopping, false, memory_order_relaxed);
	begin_run(engine);
	engine->env->loop->run(engine->loop);
	return conclude(engine);
}

int spoke_engine_turn(struct spoke_engine *engine, bool wait)
{
	int error = check_can_run(engine);

	if (error)
		return error;
	atomic_store_explicit(&engine->stopping, false, memory_order_relaxed);
	begin_run(engine);
	engine->env->loop->round(engine->loop, wait);
	return conclude(engine);
}

void spoke_engine_stop(struct spoke_engine *engine)
{
	const struct spoke_loop *loop = engine->env->loop;
	bool here = spokei_engine_here(engine);

	if (here && !engine->running) {
		loop->stop(engine->loop); /* run by its user */
		return;
	}
	if (engine->native && atomic_load_explicit(&engine->runner, memory_order_relaxed) == 0)
		return; /* it has never turned */
	atomic_store_explicit(&engine->stopping, true, memory_order_relaxed);
	if (!here)
		loop->wake(engine->loop);
}

static void run_on_thread(void *arg)
{
	struct spoke_engine *engine = arg;

	begin_run(engine);
	engine->env->loop->run(engine->loop);
	end_run(engine);
}

int spoke_engine_start(struct spoke_engine *engine)
{
	const struct spoke_env *env = engine->env;
	int error = check_can_run(engine);
	void *thread;

	if (error)
		return error;
	if (engine->native)
		return SPOKE_EINVAL;
	if (env->threads == NULL)
		return SPOKE_EUNSUPPORTED;
	atomic_store_explicit(&engine->stopping, false, memory_order_relaxed);
	error = env->threads->start(env->ctx, run_on_thread, engine, &thread);
	if (error)
		return fold_errno(error);
	atomic_store(&engine->thread, thread);
	return SPOKE_OK;
}

int spoke_engine_join(struct spoke_engine *engine)
{
	if (spokei_engine_forked(engine))
		return SPOKE_EFORKED;
	if (spokei_engine_here(engine))
		return SPOKE_ETHREAD;
	if (!join_thread(engine))
		return SPOKE_ESTATE;
	if (engine->doomed)
		destroy(engine);
	return SPOKE_OK;
}
