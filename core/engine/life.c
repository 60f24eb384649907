/* SPDX-License-Identifier: Apache-2.0 */
/* The life of an engine: how it is made, run, drained and freed, with its members and the signals
 * that it watches. */
#include "core/engine/figures.h"
#include "core/engine/members.h"
#include "core/engine/notify.h"
#include "core/engine/parts.h"

#include <spoke/host.h>

#include <errno.h>
#include <signal.h>

/* --- members */

void spokei_member_add(struct spoke_engine *engine, struct spokei_member *member)
{
	SPOKE_ASSERT(member->node.next == NULL);
	member->drained = false;
	member->closed = false;
	spokei_list_append(&engine->members, &member->node);
	if (engine->ending)
		spokei_run_soon(engine, &engine->drain);
}

void spokei_member_drop(struct spokei_member *member)
{
	if (member->node.next != NULL)
		spokei_list_remove(&member->node);
}

void spokei_member_retire(struct spoke_engine *engine, struct spokei_member *member)
{
	spokei_member_drop(member);
	spokei_list_append(&engine->retired, &member->node);
}

static void close_member(struct spokei_member *member)
{
	if (member->closed)
		return;
	member->closed = true;
	member->drained = true;
	member->close(member);
}

static void drain_member(struct spokei_member *member)
{
	if (member->drained)
		return;
	if (member->drain == NULL) {
		close_member(member);
		return;
	}
	member->drained = true;
	member->drain(member);
}

static void wake_member(struct spokei_member *member)
{
	if (member->woke && !member->closed)
		member->woke(member);
}

/* Each member is back in the list before it is notified, so that it can leave from there; so are
 * the members whose turn has not come. */
static void tell_all(struct spoke_engine *engine, void (*tell)(struct spokei_member *member))
{
	struct spoke_list batch;

	spokei_list_init(&batch);
	spokei_list_move(&engine->members, &batch);
	while (!spokei_list_empty(&batch)) {
		struct spoke_list *node = batch.next;

		spokei_list_unlink(node);
		spokei_list_append(&engine->members, node);
		tell(spoke_container_of(node, struct spokei_member, node));
	}
}

void spokei_members_close_all(struct spoke_engine *engine)
{
	tell_all(engine, close_member);
}

void spokei_members_wake_all(struct spoke_engine *engine)
{
	tell_all(engine, wake_member);
}

/* Frees the retired members. */
static void free_members(struct spoke_engine *engine)
{
	while (!spokei_list_empty(&engine->retired)) {
		struct spokei_member *member = spoke_container_of(spokei_list_first(
									  &engine->retired),
								  struct spokei_member, node);

		spokei_list_remove(&member->node);
		member->free(member);
	}
}

/* The task of an engine that ends: drains its members, or closes them once the time is over. */
static void end_members(struct spokei_task *task)
{
	struct spoke_engine *engine = spoke_container_of(task, struct spoke_engine, drain);

	if (engine->closing)
		spokei_members_close_all(engine);
	else
		tell_all(engine, drain_member);
}

/* --- signals */

static void cancel_signals(struct spoke_engine *engine)
{
	while (!spokei_list_empty(&engine->signals))
		(void)spoke_signal_cancel(spoke_container_of(spokei_list_first(&engine->signals),
							     struct spoke_signal, node));
}

static void signal_ready(struct spoke_watch *watch, unsigned io)
{
	struct spoke_signal *signal = spoke_container_of(watch, struct spoke_signal, watch);
	const struct spoke_env *env = signal->engine->env;

	(void)io;
	if (env->signals->take(env->ctx, watch->fd))
		signal->came(signal);
}

static int fold_errno(int error)
{
	switch (error) {
	case -EINVAL:
		return SPOKE_EINVAL;
	case -ENOMEM:
		return SPOKE_ENOMEM;
	default:
		return SPOKE_ESYSTEM;
	}
}

int spoke_signal_watch(struct spoke_engine *engine, struct spoke_signal *signal, int number,
		       void (*came)(struct spoke_signal *signal))
{
	const struct spoke_env *env = engine->env;
	int fd;
	int error = spokei_engine_check(engine);

	if (error)
		return error;
	if (env->signals == NULL)
		return SPOKE_EUNSUPPORTED;
	if (signal->engine)
		return SPOKE_EEXIST;
	error = env->signals->open(env->ctx, number, &fd);
	if (error)
		return fold_errno(error);
	*signal = (struct spoke_signal){
		.watch = { .ready = signal_ready, .fd = fd },
		.engine = engine,
		.came = came,
	};
	spokei_list_append(&engine->signals, &signal->node);
	env->loop->watch(engine->loop, &signal->watch, SPOKE_IO_READ);
	return SPOKE_OK;
}

bool spoke_signal_cancel(struct spoke_signal *signal)
{
	struct spoke_engine *engine = signal->engine;
	const struct spoke_env *env;

	if (engine == NULL)
		return false;
	env = engine->env;
	env->loop->watch(engine->loop, &signal->watch, 0);
	env->signals->close(env->ctx, signal->watch.fd);
	spokei_list_remove(&signal->node);
	signal->engine = NULL;
	return true;
}

/* --- drain */

/* How long peers may go on to send requests in a drain without a limit. */
#define SERVES_MAX_NS UINT64_C(60000000000)

/* The drain timeout is over: the remaining members are closed. */
static void drain_timed_out(struct spoke_alarm *alarm)
{
	alarm->engine->closing = true;
	spokei_members_close_all(alarm->engine);
}

int spoke_engine_drain(struct spoke_engine *engine, uint64_t timeout_ns)
{
	int error = spokei_engine_check(engine);

	if (error)
		return error;
	if (timeout_ns == UINT64_MAX)
		(void)spoke_alarm_cancel(&spokei_engine_parts(engine)->drain_end);
	else
		error = spoke_alarm_after(engine, &spokei_engine_parts(engine)->drain_end,
					  timeout_ns, drain_timed_out);
	if (error)
		return error;
	engine->drain_serves_ns = spokei_later(engine->env->now(engine->env->ctx),
					       timeout_ns == UINT64_MAX ? SERVES_MAX_NS
									: timeout_ns);
	engine->ending = true;
	engine->drained = false;
	spokei_notify_stopping(engine);
	spokei_run_soon(engine, &engine->drain);
	return SPOKE_OK;
}

/* The first signal drains the engine, the next one ends the drain. */
static void ender_came(struct spoke_signal *signal)
{
	struct spoke_engine *engine = signal->engine;
	uint64_t timeout_ns = spokei_engine_parts(engine)->ender_came
				      ? 0
				      : spokei_engine_parts(engine)->enders_ns;

	spokei_engine_parts(engine)->ender_came = true;
	spokei_event(engine, SPOKE_OK, "a signal asks the engine to end%s",
		     timeout_ns == 0 ? " at once" : "");
	if (spoke_engine_drain(engine, timeout_ns) != SPOKE_OK)
		spoke_engine_stop(engine);
}

int spoke_engine_drain_on_signals(struct spoke_engine *engine, uint64_t timeout_ns)
{
	static const int numbers[SPOKEI_ENGINE_ENDERS] = { SIGTERM, SIGINT };
	int error = spokei_engine_check(engine);
	bool again;

	if (error)
		return error;
	again = spokei_engine_parts(engine)->enders[0].engine != NULL;
	for (int i = 0; !again && !error && i < SPOKEI_ENGINE_ENDERS; i++)
		error = spoke_signal_watch(engine, &spokei_engine_parts(engine)->enders[i],
					   numbers[i], ender_came);
	if (error) {
		for (int i = 0; i < SPOKEI_ENGINE_ENDERS; i++)
			(void)spoke_signal_cancel(&spokei_engine_parts(engine)->enders[i]);
		return error;
	}
	spokei_engine_parts(engine)->enders_ns = timeout_ns;
	return SPOKE_OK;
}

/* --- making an engine, running and freeing it */

#define LATE_NS UINT64_C(50000000)
#define SLOW_LOOP_NS UINT64_C(100000000)
#define POSTS_DEEP 16 /* rounds of posts by posts that an end waits for */

static void init_engine(struct spoke_engine *engine, const struct spoke_engine_options *options)
{
	const struct spoke_env *env = engine->env;

	engine->log = &spokei_engine_parts(engine)->log;
	engine->native = options->native != NULL;
	engine->late_max_ns = options->late_ns ? options->late_ns : LATE_NS;
	engine->slow_loop_ns = options->slow_loop_ns ? options->slow_loop_ns : SLOW_LOOP_NS;
	engine->begin_ns = env->now(env->ctx);
	engine->due_ns = UINT64_MAX;
	spokei_engine_parts(engine)->sleep.looked_ns = engine->begin_ns;
	spokei_engine_parts(engine)->sleep.ahead_ns = env->boot_now(env->ctx) - engine->begin_ns;
	engine->forks = env->forks ? *env->forks : 0;
	engine->forks_now = env->forks ? env->forks : &engine->forks;
	engine->drain.run = end_members;
	spokei_list_init(&engine->first);
	spokei_list_init(&engine->completions);
	spokei_list_init(&engine->settling);
	spokei_list_init(&engine->freeing);
	spokei_list_init(&engine->sources);
	spokei_list_init(&engine->members);
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
	spokei_free(env, engine->events.ring, SPOKE_EVENTS, sizeof(*engine->events.ring));
	spokei_figures_free_all(engine);
	spokei_spares_fini(&engine->spares, env);
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
	/* The memory is first touched when events come. */
	engine->events.ring = spokei_alloc_unset(env, SPOKE_EVENTS * sizeof(*engine->events.ring));
	if (engine->scratch == NULL || engine->events.ring == NULL)
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
		(void)spokei_task_run_all(&engine->completions, NULL, 0);
		engine->settle_ns = engine->env->now(engine->env->ctx);
		(void)spokei_task_run_all(&engine->settling, NULL, 0);
		(void)spokei_task_run_all(&engine->freeing, NULL, 0);
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
	spokei_members_close_all(engine);
	run_all(engine); /* and closes members that callbacks make meanwhile */
	free_members(engine);
	run_all(engine);
	loop->retire(engine->loop);
	run_all(engine);
	free_members(engine); /* those that waited for a work of the pool */
	run_all(engine);
	cancel_signals(engine);
	SPOKE_ASSERT(spokei_list_empty(&engine->members));
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
