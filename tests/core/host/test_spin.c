/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Busy polling. On the real loop the test sets the clock: it replaces the C library's functions
 * that read the clock and that wait, for libev too. Other tests use a virtual world.
 */
#define _GNU_SOURCE

#include "core/engine/engine.h"
#include "core/host/looks.h"
#include "core/virtual/world.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/engine.h>
#include <spoke/host.h>
#include <spoke/wheel.h>

#include <ev.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define US UINT64_C(1000)
#define SPIN_NS (50 * US)
#define KERNEL_SIGSET_BYTES 8
#define KERNEL_TIMER_MAX_MS 10000

/* Replaces a function of the C library, for shared libraries as well. */
#define IN_PLACE_OF(name) __asm__(name) __attribute__((visibility("default")))

/* The machine as the engine's thread observes it. */
static struct {
	bool on;
	uint64_t now_ns;  /* time of the clock while `on` */
	uint64_t step_ns; /* duration of a poll */
	unsigned looks;   /* polls, which do not sleep */
	unsigned sleeps;  /* waits that would sleep; they return at once */
	unsigned post_at; /* the poll during which `post` is posted; 0 means none */
	struct spoke_engine *engine;
	struct spoke_post *post;
	uint64_t due_ns; /* once the real clock reaches it, now_ns becomes it; 0 means never */
} machine;

static uint64_t real_ns(void)
{
	struct timespec time = { 0 };

	(void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

int spin_clock_gettime(clockid_t clock, struct timespec *time) IN_PLACE_OF("clock_gettime");

int spin_clock_gettime(clockid_t clock, struct timespec *time)
{
	if (!machine.on || clock != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, clock, time);
	time->tv_sec = (time_t)(machine.now_ns / 1000000000u);
	time->tv_nsec = (long)(machine.now_ns % 1000000000u);
	return 0;
}

/* Returns how long the poll may wait, in ms. The kernel may tell of a timer later than the clock
 * says that it is due. */
static int look(void)
{
	bool due = machine.due_ns && real_ns() >= machine.due_ns;

	machine.now_ns = due ? machine.due_ns : machine.now_ns + machine.step_ns;
	if (++machine.looks == machine.post_at)
		spoke_engine_post(machine.engine, machine.post);
	return due ? KERNEL_TIMER_MAX_MS : 0;
}

int spin_epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms)
	IN_PLACE_OF("epoll_wait");

int spin_epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms)
{
	if (machine.on && timeout_ms == 0) {
		timeout_ms = look();
	} else if (machine.on) {
		machine.sleeps++;
		timeout_ms = 0;
	}
	return (int)syscall(SYS_epoll_pwait, epoll, events, max, timeout_ms, NULL,
			    KERNEL_SIGSET_BYTES);
}

/* Makes an engine that spins for `spin_ns`, on a machine where a poll takes `step_ns`. */
static void set_up(uint64_t spin_ns, uint64_t step_ns)
{
	struct spoke_engine_options options = { .spin_ns = spin_ns };

	machine.now_ns = real_ns();
	machine.step_ns = step_ns;
	machine.looks = machine.sleeps = 0;
	machine.post_at = 0;
	machine.due_ns = 0;
	machine.on = true;
	assert_int_equal(spoke_engine_new(&options, &machine.engine), SPOKE_OK);
}

static void tear_down(void)
{
	spoke_engine_free(machine.engine);
	machine.on = false;
}

static void assert_waits(unsigned looks, unsigned sleeps)
{
	assert_int_equal(machine.looks, looks);
	assert_int_equal(machine.sleeps, sleeps);
}

static void wait_times(unsigned count)
{
	machine.looks = machine.sleeps = 0;
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(spoke_engine_turn(machine.engine, true), SPOKE_OK);
}

/* --- a single wait */

TEST(wait_polls_for_set_time_and_then_sleeps)
{
	set_up(SPIN_NS, US);
	wait_times(3);
	/* The clock is read after the first poll. */
	assert_waits((1 + (unsigned)(SPIN_NS / US)) * 3, 3);
	tear_down();
}

TEST(an_engine_that_does_not_spin_sleeps_at_once)
{
	set_up(SPOKE_ENGINE_SPIN_OFF, US);
	wait_times(2 * SPOKEI_LOOKS_TRY);
	assert_waits(0, 2 * SPOKEI_LOOKS_TRY);
	tear_down();
}

TEST(a_turn_that_does_not_wait_looks_once)
{
	set_up(SPIN_NS, US);
	assert_int_equal(spoke_engine_turn(machine.engine, false), SPOKE_OK);
	assert_waits(1, 0);
	tear_down();
}

struct posted {
	struct spoke_post post;
	struct spokei_task dead;
	struct spokei_task soon;
	int count;
};

static void run_post(struct spoke_post *post)
{
	spoke_container_of(post, struct posted, post)->count++;
}

TEST(event_while_spinning_is_handled_without_sleep)
{
	struct posted posted = { .post.run = run_post };

	set_up(SPIN_NS, US);
	machine.post = &posted.post;
	for (unsigned at = 1; at <= SPIN_NS / US; at += 7) {
		machine.post_at = at;
		posted.count = 0;
		wait_times(1);
		assert_int_equal(posted.count, 1);
		assert_waits(at, 0);
	}
	tear_down();
}

/* --- waits that adapt, as by default */

#define POLLS_OF_LOOK (1 + (unsigned)(SPOKEI_LOOKS_NS / US))

TEST(few_waits_look_while_looks_find_nothing)
{
	set_up(0, US);
	for (unsigned apart = SPOKEI_LOOKS_TRY; apart < SPOKEI_LOOKS_TRY_MAX; apart *= 2) {
		wait_times(apart - 1);
		assert_waits(0, apart - 1);
		wait_times(1);
		assert_waits(POLLS_OF_LOOK, 1);
	}
	wait_times(3 * SPOKEI_LOOKS_TRY_MAX);
	assert_waits(3 * POLLS_OF_LOOK, 3 * SPOKEI_LOOKS_TRY_MAX);
	tear_down();
}

/* Has the post found by the second poll of each of the next waits. */
static void wait_for_posts(struct posted *posted, unsigned count)
{
	machine.post = &posted->post;
	for (unsigned i = 0; i < count; i++) {
		machine.post_at = 2;
		wait_times(1);
		assert_waits(2, 0);
	}
	machine.post_at = 0;
}

TEST(waits_look_while_looks_pay)
{
	struct posted posted = { .post.run = run_post };

	set_up(0, US);
	wait_times(SPOKEI_LOOKS_TRY - 1);
	wait_for_posts(&posted, 1 + SPOKEI_LOOKS_CREDIT);
	/* The credit pays for two looks that find nothing. */
	wait_times(1);
	assert_waits(POLLS_OF_LOOK, 1);
	wait_for_posts(&posted, 1);
	wait_times(3);
	assert_waits(2 * POLLS_OF_LOOK, 3);
	assert_int_equal(posted.count, 2 + SPOKEI_LOOKS_CREDIT);
	tear_down();
}

/* What is there at once would also have ended a sleep. */
TEST(event_that_is_there_at_once_does_not_make_waits_look)
{
	struct posted posted = { .post.run = run_post };

	set_up(0, US);
	wait_times(SPOKEI_LOOKS_TRY - 1);
	machine.post = &posted.post;
	machine.post_at = 1;
	wait_times(1);
	assert_waits(1, 0);
	wait_times(1);
	assert_waits(0, 1);
	tear_down();
}

static void run_soon(struct spokei_task *task)
{
	spoke_container_of(task, struct posted, soon)->count++;
}

static void run_dead(struct spokei_task *task)
{
	struct posted *posted = spoke_container_of(task, struct posted, dead);

	spokei_run_soon(machine.engine, &posted->soon);
}

/* A round that was requested counts as a turn, like a round of a late turn. */
TEST(a_round_that_is_asked_for_is_a_turn_though_it_finds_nothing)
{
	struct posted posted = { .dead.run = run_dead, .soon.run = run_soon };

	set_up(SPIN_NS, US);
	spokei_run_freeing(machine.engine, &posted.dead);
	assert_int_equal(spoke_engine_turn(machine.engine, true), SPOKE_OK);
	assert_int_equal(posted.count, 1);
	assert_waits(1, 0);
	tear_down();
}

struct alarmed {
	struct spoke_alarm alarm;
	uint64_t at_ns;
};

static void note_alarm(struct spoke_alarm *alarm)
{
	struct alarmed *alarmed = spoke_container_of(alarm, struct alarmed, alarm);

	alarmed->at_ns = machine.now_ns;
	spoke_engine_stop(machine.engine);
}

/* The clock stands still until the timer's time has come, so the engine polls until then. */
TEST(a_timer_that_is_due_while_it_looks_is_not_late)
{
	struct alarmed alarmed = { .at_ns = 0 };

	set_up(SPIN_NS, 0);
	assert_int_equal(spoke_alarm_after(machine.engine, &alarmed.alarm, 2 * MS, note_alarm),
			 SPOKE_OK);
	machine.due_ns = spoke_wheel_next(machine.engine->wheel);
	assert_int_equal(spoke_engine_run(machine.engine), SPOKE_OK);
	assert_int_equal(alarmed.at_ns, machine.due_ns);
	assert_true(machine.looks > 0);
	assert_int_equal(machine.sleeps, 0);
	assert_int_equal(spoke_stat_get(machine.engine, SPOKE_STAT_TURNS_LATE), 0);
	tear_down();
}

/* --- ends of spinning, on a machine whose clock stands still */

static void drain(struct spoke_post *post)
{
	run_post(post);
	assert_int_equal(spoke_engine_drain(machine.engine, UINT64_MAX), SPOKE_OK);
}

static void stop(struct spoke_post *post)
{
	run_post(post);
	spoke_engine_stop(machine.engine);
}

static void run_until(void (*run)(struct spoke_post *post))
{
	struct posted posted = { .post.run = run };

	set_up(SPIN_NS, 0);
	machine.post = &posted.post;
	machine.post_at = 1000;
	assert_int_equal(spoke_engine_run(machine.engine), SPOKE_OK);
	assert_int_equal(posted.count, 1);
	assert_int_equal(machine.sleeps, 0);
}

TEST(a_drain_ends_an_engine_that_spins)
{
	run_until(drain);
	assert_in_range(machine.looks, 1000, 1001); /* one more turn for the drained member */
	tear_down();
}

TEST(a_stop_ends_an_engine_that_spins)
{
	run_until(stop);
	assert_int_equal(machine.looks, 1000);
	tear_down();
}

static void free_engine(struct spoke_post *post)
{
	run_post(post);
	spoke_engine_free(machine.engine);
}

TEST(an_engine_that_spins_may_be_freed_by_its_callback)
{
	run_until(free_engine);
	machine.on = false;
}

/* --- other threads */

struct passing {
	struct spoke_post post;
	void *parker;
};

static void unpark(struct spoke_post *post)
{
	struct passing *passing = spoke_container_of(post, struct passing, post);

	spoke_host_env()->threads->unpark(passing->parker);
}

TEST(posts_and_stop_are_handled_while_spinning)
{
	const struct spoke_threads *threads = spoke_host_env()->threads;
	struct passing passing = { .post.run = unpark };

	assert_int_equal(threads->open(spoke_host_env()->ctx, &passing.parker), 0);
	set_up(SPIN_NS, 0);
	assert_int_equal(spoke_engine_start(machine.engine), SPOKE_OK);
	for (int i = 0; i < 100; i++) {
		spoke_engine_post(machine.engine, &passing.post);
		assert_int_equal(threads->park(passing.parker, UINT64_MAX), 0);
	}
	spoke_engine_stop(machine.engine);
	assert_int_equal(spoke_engine_join(machine.engine), SPOKE_OK);
	assert_int_equal(machine.sleeps, 0);
	threads->close(passing.parker);
	tear_down();
}

/* --- rejected options */

static void assert_refused(struct spoke_engine_options options, int error)
{
	struct spoke_engine *engine;

	assert_int_equal(spoke_engine_new(&options, &engine), error);
}

TEST(an_engine_spins_for_10_ms_at_most_and_in_its_own_loop_only)
{
	struct spoke_loop loop = *spoke_host_env()->loop;
	struct spoke_env env = *spoke_host_env();
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO);

	assert_refused((struct spoke_engine_options){ .spin_ns = SPOKE_ENGINE_SPIN_MAX_NS + 1 },
		       SPOKE_EINVAL);
	assert_refused((struct spoke_engine_options){ .spin_ns = 1, .native = ev }, SPOKE_EINVAL);
	loop.spin = NULL;
	env.loop = &loop;
	assert_refused((struct spoke_engine_options){ .spin_ns = 1, .env = &env },
		       SPOKE_EUNSUPPORTED);
	set_up(SPOKE_ENGINE_SPIN_MAX_NS, 0);
	tear_down();
	ev_loop_destroy(ev);
}

/* --- in a virtual world */

static uint64_t turns;

static void count_turn(struct spokei_world_process *process)
{
	(void)process;
	turns++;
}

static void count_alarm(struct spoke_alarm *alarm)
{
	(void)alarm;
}

/* Runs 100 alarms, one every `period_ns`. Returns how long the loop polled. */
static uint64_t look_between(uint64_t period_ns, uint64_t spin_ns)
{
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine_options options = { .env = &process.env,
						.tick_ns = period_ns,
						.spin_ns = spin_ns };
	struct spoke_alarm alarm = { .due = NULL };
	struct spoke_engine *engine;

	scene_open(&world, 7);
	spokei_world_process_init(&process, &world);
	process.turned = count_turn;
	turns = 0;
	assert_int_equal(spoke_engine_new(&options, &engine), SPOKE_OK);
	assert_int_equal(spoke_alarm_every(engine, &alarm, period_ns, count_alarm), SPOKE_OK);
	spokei_world_run(&world, world.now_ns + 100 * period_ns);
	spoke_engine_free(engine);
	spokei_world_process_fini(&process);
	spokei_world_fini(&world);
	return process.looked_ns;
}

TEST(a_virtual_loop_looks_for_as_long_and_turns_as_often)
{
	assert_int_equal(look_between(MS, 0), 0);
	assert_int_equal(turns, 100);
	assert_int_equal(look_between(MS, SPIN_NS), 100 * SPIN_NS);
	assert_int_equal(turns, 100);
	assert_int_equal(look_between(20 * US, SPIN_NS), 100 * 20 * US);
	assert_int_equal(turns, 100);
}
