/* SPDX-License-Identifier: Apache-2.0 */
/* Work for other threads whose completion runs on the loop of an engine; threads that wait. */
#include "core/engine/engine.h"
#include "tests/support/test.h"

#include <spoke/engine.h>
#include <spoke/host.h>

#include <errno.h>
#include <pthread.h>

#define MS UINT64_C(1000000)

static struct spoke_engine *make_engine(void)
{
	struct spoke_engine *engine = NULL;

	assert_int_equal(spoke_engine_new(NULL, &engine), SPOKE_OK);
	return engine;
}

struct errand {
	struct spoke_work work;
	struct spoke_engine *engine;
	pthread_t engine_thread;
	pthread_t ran_on;
	int ran;
	int done;
	int status;
};

static void run_errand(struct spoke_work *work)
{
	struct errand *errand = spoke_container_of(work, struct errand, work);

	errand->ran_on = pthread_self();
	errand->ran++;
}

static void errand_done(struct spoke_work *work)
{
	struct errand *errand = spoke_container_of(work, struct errand, work);

	assert_true(pthread_equal(pthread_self(), errand->engine_thread));
	errand->done++;
	errand->status = work->status;
	spoke_engine_stop(errand->engine);
}

TEST(work_runs_elsewhere_and_comes_back)
{
	const struct spoke_loop *loop = spoke_host_env()->loop;
	struct errand errand = {
		.work = { .run = run_errand, .done = errand_done },
		.engine = make_engine(),
		.engine_thread = pthread_self(),
	};

	for (int i = 1; i <= 10; i++) {
		assert_int_equal(loop->offload(errand.engine->loop, &errand.work), 0);
		assert_int_equal(spoke_engine_run(errand.engine), SPOKE_OK);
		assert_int_equal(errand.ran, i);
		assert_int_equal(errand.done, i);
		assert_int_equal(errand.status, 0);
		assert_false(pthread_equal(errand.ran_on, errand.engine_thread));
	}
	spoke_engine_free(errand.engine);
}

TEST(work_that_is_left_comes_back_once_when_the_engine_is_freed)
{
	enum {
		ERRANDS = 200
	};
	static struct errand errands[ERRANDS];
	const struct spoke_loop *loop = spoke_host_env()->loop;
	struct spoke_engine *engine = make_engine();

	for (int i = 0; i < ERRANDS; i++) {
		errands[i] = (struct errand){
			.work = { .run = run_errand, .done = errand_done },
			.engine = engine,
			.engine_thread = pthread_self(),
		};
		assert_int_equal(loop->offload(engine->loop, &errands[i].work), 0);
	}
	spoke_engine_free(engine);
	for (int i = 0; i < ERRANDS; i++) {
		assert_int_equal(errands[i].done, 1);
		assert_int_equal(errands[i].ran, errands[i].status == 0);
	}
}

struct waiter {
	const struct spoke_env *env;
	void *parker;
	uintptr_t self;
};

static void unpark(void *arg)
{
	struct waiter *waiter = arg;

	waiter->self = waiter->env->threads->self(waiter->env->ctx);
	waiter->env->threads->unpark(waiter->parker);
}

TEST(a_thread_waits_until_another_calls_it_or_its_time_is_over)
{
	const struct spoke_env *env = spoke_host_env();
	const struct spoke_threads *threads = env->threads;
	struct waiter waiter = { .env = env };
	uint64_t until_ns = env->now(env->ctx) + 3 * MS;
	void *thread;

	assert_int_equal(threads->open(env->ctx, &waiter.parker), 0);
	assert_int_equal(threads->park(waiter.parker, until_ns), -ETIMEDOUT);
	assert_true(env->now(env->ctx) >= until_ns);
	assert_int_equal(threads->start(env->ctx, unpark, &waiter, &thread), 0);
	assert_int_equal(threads->park(waiter.parker, UINT64_MAX), 0);
	threads->join(thread);
	assert_true(waiter.self != 0);
	assert_true(waiter.self != threads->self(env->ctx));
	threads->close(waiter.parker);
}
