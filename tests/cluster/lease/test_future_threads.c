/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Futures of leases used by many threads. The engine and its store live in a virtual world, which
 * the main thread drives; the threads, the memory and the waits are real. Time passes in the world
 * while threads wait for it.
 */
#include "tests/support/redis/redis.h"
#include "tests/support/test.h"

#include <spoke/engine.h>
#include <spoke/host.h>
#include <spoke/lease.h>
#include <spoke/stats.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define AT "127.0.0.1:6379"
#define STEP_NS (UINT64_C(100000))
#define THREADS 4
#define TURNS 25

static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct fakeredis server;
	struct spoke_env env;
	struct spoke_loop loop;
	struct spoke_engine *engine;
	struct spoke_leases *leases;
	const struct spoke_threads *threads;
	uintptr_t main; /* the thread that drives the world */
	void *parker;   /* ... waits here */
	_Atomic(uint64_t) now_ns;
	atomic_bool woken;
	atomic_long blocks;
	atomic_int running; /* threads */
	atomic_int failures;
	atomic_int holders;
	atomic_int lost;
} rig;

/* --- the environment: that of the process in the world, made safe for threads */

static uint64_t any_now(void *ctx)
{
	uint64_t now_ns;

	if (rig.threads->self(NULL) != rig.main)
		return atomic_load(&rig.now_ns);
	now_ns = rig.process.env.now(ctx);
	if (now_ns > atomic_load(&rig.now_ns))
		atomic_store(&rig.now_ns, now_ns);
	return now_ns;
}

static void *any_resize(void *ctx, void *memory, size_t old_len, size_t len)
{
	void *grown = spoke_host_env()->resize(ctx, memory, old_len, len);

	if (memory == NULL && grown)
		atomic_fetch_add(&rig.blocks, 1);
	else if (memory && len == 0)
		atomic_fetch_sub(&rig.blocks, 1);
	return grown;
}

static void any_wake(void *loop)
{
	(void)loop;
	atomic_store(&rig.woken, true);
	rig.threads->unpark(rig.parker);
}

static int set_up(void **state)
{
	(void)state;
	memset(&rig, 0, sizeof(rig));
	rig.threads = spoke_host_env()->threads;
	rig.main = rig.threads->self(NULL);
	if (rig.threads->open(NULL, &rig.parker) || !spokei_world_init(&rig.world, 1))
		return -1;
	fakeredis_start(&rig.server, &rig.world, AT);
	spokei_world_process_init(&rig.process, &rig.world);
	rig.loop = *rig.process.env.loop;
	rig.loop.wake = any_wake;
	rig.env = rig.process.env;
	rig.env.now = any_now;
	rig.env.boot_now = any_now;
	rig.env.resize = any_resize;
	rig.env.threads = rig.threads;
	rig.env.loop = &rig.loop;
	if (spoke_engine_new(&(struct spoke_engine_options){ .env = &rig.env }, &rig.engine))
		return -1;
	return spoke_leases_new(rig.engine,
				&(struct spoke_leases_options){ .store = "redis://" AT },
				&rig.leases);
}

STEP(tear_down)
{
	spoke_leases_free(rig.leases);
	spoke_engine_free(rig.engine);
	assert_int_equal(atomic_load(&rig.blocks), 0);
	spokei_world_process_fini(&rig.process);
	fakeredis_stop(&rig.server);
	spokei_world_fini(&rig.world);
	rig.threads->close(rig.parker);
}

FIXTURE(set_up, tear_down);

/* Lets the world go on a little, and then lets the threads run. */
static void drive(void)
{
	if (atomic_exchange(&rig.woken, false))
		rig.process.env.loop->wake(rig.process.loop);
	spokei_world_run(&rig.world, rig.world.now_ns + STEP_NS);
	(void)any_now(&rig.process);
	if (!atomic_load(&rig.woken))
		(void)rig.threads->park(rig.parker, spoke_host_env()->now(NULL) + STEP_NS);
}

static void drive_for(uint64_t ns)
{
	for (uint64_t at = 0; at < ns; at += STEP_NS)
		drive();
}

/* --- threads */

/* Counts what must not happen; cmocka's assertions are for the main thread. */
static void require(bool holds)
{
	if (!holds)
		atomic_fetch_add(&rig.failures, 1);
}

struct thread {
	void *handle;
	void (*run)(struct thread *thread);
	struct spoke_lease_future *future;
	int number;
};

static void run_thread(void *arg)
{
	struct thread *thread = arg;

	thread->run(thread);
	atomic_fetch_sub(&rig.running, 1);
	rig.threads->unpark(rig.parker);
}

static void start_thread(struct thread *thread, void (*run)(struct thread *thread))
{
	thread->run = run;
	atomic_fetch_add(&rig.running, 1);
	assert_int_equal(rig.threads->start(NULL, run_thread, thread, &thread->handle), 0);
}

/* Drives the world until all threads have ended. */
static void join(struct thread *threads, int count)
{
	while (atomic_load(&rig.running) > 0)
		drive();
	for (int i = 0; i < count; i++)
		rig.threads->join(threads[i].handle);
	assert_int_equal(atomic_load(&rig.failures), 0);
}

static void note_lost(void *arg, struct spoke_lease lease, enum spoke_lease_loss why)
{
	(void)arg;
	(void)lease;
	(void)why;
	require(rig.threads->self(NULL) == rig.main);
	atomic_fetch_add(&rig.lost, 1);
}

static const struct spoke_lease_options patient = { .wait_ns = SPOKE_LEASE_FOREVER,
						    .lost = note_lost };

static struct spoke_lease_future *start(const char *name)
{
	struct spoke_lease_future *future = NULL;

	require(spoke_lease_start(rig.leases, name, &patient, &future) == SPOKE_OK);
	return future;
}

/* --- tests */

static void take_turns(struct thread *thread)
{
	uint64_t fence = 0;

	for (int i = 0; i < TURNS; i++) {
		struct spoke_lease_future *future = start("reports");

		require(spoke_lease_future_wait(future) == SPOKE_OK);
		require(atomic_fetch_add(&rig.holders, 1) == 0);
		require(spoke_lease_future_answer(future)->fence > fence);
		require(spoke_lease_future_left(future) > 0);
		require(spoke_lease_future_lease(future).leases == rig.leases);
		fence = spoke_lease_future_answer(future)->fence;
		atomic_fetch_sub(&rig.holders, 1);
		if ((i + thread->number) % 2)
			require(spoke_lease_future_release(future) == SPOKE_OK);
		spoke_lease_future_free(future);
	}
}

TEST(threads_hold_one_lease_in_turns)
{
	struct thread threads[THREADS];

	for (int i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){ .number = i };
		start_thread(&threads[i], take_turns);
	}
	join(threads, THREADS);
	drive_for(10 * MS);
	assert_int_equal(fakeredis_token(&rig.server, "reports"), THREADS * TURNS);
	assert_false(
		fakeredis_lock(&rig.server, "reports", &(struct fakeredis_lock){ .count = 0 }));
	assert_int_equal(atomic_load(&rig.lost), 0);
}

static void wait_for_cancel(struct thread *thread)
{
	require(spoke_lease_future_wait(thread->future) == SPOKE_ECANCELED);
}

static void release_it(struct thread *thread)
{
	int error = spoke_lease_future_release(thread->future);

	require(error == SPOKE_OK || error == SPOKE_ENOENT);
}

TEST(release_cancels_an_ask_for_all_its_threads)
{
	struct thread threads[THREADS];
	struct spoke_lease_future *future;

	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 0);
	future = start("reports");
	for (int i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){ .future = future };
		start_thread(&threads[i], i < 2 ? wait_for_cancel : release_it);
	}
	join(threads, THREADS);
	assert_int_equal(spoke_lease_future_answer(future)->error, SPOKE_ECANCELED);
	spoke_lease_future_free(future);
	drive_for(10 * MS);
}

static void wait_for_the_end(struct thread *thread)
{
	struct spoke_lease_future *future = start("reports");
	int error = spoke_lease_future_wait(future);

	require(error == SPOKE_ECLOSED || error == SPOKE_OK);
	while (error == SPOKE_OK && spoke_lease_future_left(future) > 0)
		require(spoke_lease_future_answer(future) != NULL);
	/* A release before the callback would take its place. */
	while (error == SPOKE_OK && atomic_load(&rig.lost) == 0)
		continue;
	error = spoke_lease_future_release(future);
	require(error == SPOKE_ENOENT || error == SPOKE_ECLOSED);
	thread->number = error;
	spoke_lease_future_free(future);
}

TEST(freed_leases_end_the_waits_of_threads)
{
	struct thread threads[THREADS];

	for (int i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){ .number = i };
		start_thread(&threads[i], wait_for_the_end);
	}
	while (spoke_stat_get(rig.engine, SPOKE_STAT_LEASES_ASKED) < THREADS)
		drive();
	while (spoke_stat_get(rig.engine, SPOKE_STAT_LEASES_HELD) == 0)
		drive();
	spoke_leases_free(rig.leases);
	rig.leases = NULL;
	join(threads, THREADS);
	assert_int_equal(atomic_load(&rig.lost), 1);
}

static void watch_the_time(struct thread *thread)
{
	uint64_t left_ns = spoke_lease_future_left(thread->future);

	require(left_ns > 0);
	atomic_fetch_add(&rig.holders, 1);
	rig.threads->unpark(rig.parker);
	while (left_ns > 0)
		left_ns = spoke_lease_future_left(thread->future);
	require(spoke_lease_future_left(thread->future) == 0);
}

/* The main thread does not drive the world meanwhile: the engine is as good as frozen. */
TEST(time_of_a_lease_ends_in_threads_of_a_frozen_engine)
{
	struct spoke_lease_future *future = start("reports");
	struct thread threads[2];

	while (spoke_lease_future_left(future) == 0)
		drive();
	for (int i = 0; i < 2; i++) {
		threads[i] = (struct thread){ .future = future };
		start_thread(&threads[i], watch_the_time);
	}
	while (atomic_load(&rig.holders) < 2)
		(void)rig.threads->park(rig.parker, UINT64_MAX);
	assert_int_equal(atomic_load(&rig.running), 2);
	atomic_fetch_add(&rig.now_ns, 30 * SECOND);
	for (int i = 0; i < 2; i++)
		rig.threads->join(threads[i].handle);
	assert_int_equal(atomic_load(&rig.failures), 0);
	assert_int_equal(atomic_load(&rig.lost), 0);
	spoke_lease_future_free(future);
	drive_for(10 * MS);
}

static void hold_many(struct thread *thread)
{
	struct spoke_lease_future *futures[64];
	char name[32];

	for (int i = 0; i < 64; i++) {
		(void)snprintf(name, sizeof(name), "%d of %d", i, thread->number);
		futures[i] = start(name);
	}
	for (int i = 0; i < 64; i++)
		require(spoke_lease_future_wait(futures[i]) == SPOKE_OK);
	for (int i = 0; i < 64; i++) {
		require(spoke_lease_future_left(futures[i]) > 0);
		spoke_lease_future_free(futures[i]);
	}
}

TEST(threads_hold_many_leases)
{
	struct thread threads[THREADS];

	for (int i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){ .number = i };
		start_thread(&threads[i], hold_many);
	}
	join(threads, THREADS);
	drive_for(10 * MS);
	assert_int_equal(rig.server.key_count, 64 * THREADS); /* the counters of fences stay */
	assert_int_equal(atomic_load(&rig.lost), 0);
}

/* --- the engine's own thread */

static struct spoke_lease_future *here;
static int waited;
static int released;

static void wait_here(struct spoke_post *post)
{
	(void)post;
	waited = spoke_lease_future_wait(here);
	released = spoke_lease_future_release(here);
}

TEST(engine_thread_must_not_wait)
{
	struct spoke_lease_future *future = start("reports");
	struct spoke_post post = { .run = wait_here };

	here = future;
	spoke_engine_post(rig.engine, &post);
	drive_for(5 * MS);
	assert_int_equal(waited, SPOKE_ETHREAD);
	assert_int_equal(released, SPOKE_ETHREAD);
	assert_int_equal(spoke_lease_future_answer(future)->error, SPOKE_OK);
	spoke_lease_future_free(future);
	drive_for(10 * MS);
}
