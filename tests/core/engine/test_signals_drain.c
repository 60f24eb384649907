/* SPDX-License-Identifier: Apache-2.0 */
/* SIGTERM drains an engine: timeouts and second signals, in a virtual world. */
#include "core/engine/engine.h"
#include "core/engine/roll.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"

#include <spoke/signals.h>

#include <signal.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

/* A server with one member, which takes work_ns to finish when it is drained. */
struct fixture {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spokei_member member;
	struct spokei_task gone;
	struct spoke_alarm work;
	struct spoke_alarm again; /* sends a second signal */
	uint64_t work_ns;
	uint64_t drained_ns;
	uint64_t closed_ns;
	uint64_t left_ns;
	int number; /* signal that the alarm sends */
};

static struct fixture fixture;

static void member_gone(struct spokei_task *task)
{
	(void)task;
	fixture.left_ns = fixture.world.now_ns;
	spokei_roll_drop(fixture.engine, &fixture.member);
}

static void work_done(struct spoke_alarm *alarm)
{
	(void)alarm;
	spokei_engine_dead(fixture.engine, &fixture.gone);
}

static void member_drain(struct spokei_member *member)
{
	(void)member;
	fixture.drained_ns = fixture.world.now_ns;
	assert_int_equal(spoke_alarm_after(fixture.engine, &fixture.work, fixture.work_ns,
					   work_done),
			 SPOKE_OK);
}

static void member_close(struct spokei_member *member)
{
	(void)member;
	fixture.closed_ns = fixture.world.now_ns;
	(void)spoke_alarm_cancel(&fixture.work);
	spokei_engine_dead(fixture.engine, &fixture.gone);
}

static void send_another(struct spoke_alarm *alarm)
{
	(void)alarm;
	assert_true(spokei_world_signal(&fixture.process, fixture.number));
}

static int set_up(void **state)
{
	struct spoke_engine_options options = { .env = &fixture.process.env };

	(void)state;
	memset(&fixture, 0, sizeof(fixture));
	if (!spokei_world_init(&fixture.world, 5))
		return -1;
	spokei_world_process_init(&fixture.process, &fixture.world);
	fixture.member = (struct spokei_member){ .kind = "test",
						 .close = member_close,
						 .drain = member_drain };
	fixture.gone.run = member_gone;
	if (spoke_engine_new(&options, &fixture.engine) != SPOKE_OK)
		return -1;
	spokei_roll_add(fixture.engine, &fixture.member);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	spoke_engine_free(fixture.engine);
	assert_int_equal(fixture.process.blocks, 0);
	assert_int_equal(fixture.process.user.fds, 0);
	spokei_world_process_fini(&fixture.process);
	spokei_world_fini(&fixture.world);
	return 0;
}

FIXTURE(set_up, tear_down);

/* Runs the engine. SIGTERM comes at once, a second signal after `again_ns`; 0 means no second
 * signal. */
static uint64_t serve(uint64_t work_ns, uint64_t timeout_ns, uint64_t again_ns, int number)
{
	uint64_t start_ns = fixture.world.now_ns;

	fixture.work_ns = work_ns;
	fixture.number = number;
	assert_false(spokei_world_signal(&fixture.process, SIGTERM));
	assert_int_equal(spoke_engine_drain_on_signals(fixture.engine, timeout_ns), SPOKE_OK);
	if (again_ns)
		assert_int_equal(spoke_alarm_after(fixture.engine, &fixture.again, again_ns,
						   send_another),
				 SPOKE_OK);
	assert_true(spokei_world_signal(&fixture.process, SIGTERM));
	assert_int_equal(spoke_engine_run(fixture.engine), SPOKE_OK);
	(void)spoke_alarm_cancel(&fixture.again);
	assert_true(fixture.drained_ns >= start_ns);
	return fixture.left_ns - start_ns;
}

TEST(first_signal_waits_for_begun_work)
{
	assert_in_range(serve(3 * S, 10 * S, 0, 0), 3 * S, 3 * S + 2 * MS);
	assert_int_equal(fixture.closed_ns, 0);
}

TEST(timeout_ends_longer_work)
{
	assert_in_range(serve(30 * S, 10 * S, 0, 0), 10 * S, 10 * S + 2 * MS);
	assert_true(fixture.closed_ns > 0);
}

TEST(the_second_signal_ends_at_once)
{
	assert_in_range(serve(30 * S, 10 * S, 2 * S, SIGTERM), 2 * S, 2 * S + 3 * MS);
	assert_true(fixture.closed_ns > 0);
}

TEST(the_second_may_be_the_other_one)
{
	assert_in_range(serve(30 * S, UINT64_MAX, 2 * S, SIGINT), 2 * S, 2 * S + 3 * MS);
	assert_true(fixture.closed_ns > 0);
	assert_string_equal(spoke_engine_why(fixture.engine),
			    "a signal asks the engine to end at once");
}

TEST(called_again_it_sets_another_timeout)
{
	assert_int_equal(spoke_engine_drain_on_signals(fixture.engine, S), SPOKE_OK);
	assert_int_equal(spoke_engine_drain_on_signals(fixture.engine, 2 * S), SPOKE_OK);
	assert_int_equal(fixture.process.user.fds, 2);
	fixture.work_ns = 30 * S;
	assert_true(spokei_world_signal(&fixture.process, SIGINT));
	assert_int_equal(spoke_engine_run(fixture.engine), SPOKE_OK);
	assert_in_range(fixture.left_ns - fixture.drained_ns, 2 * S - MS, 2 * S + MS);
}

TEST(without_a_timer_for_the_drain_the_run_is_stopped)
{
	/* The timeout is beyond the range of any wheel. */
	assert_int_equal(spoke_engine_drain_on_signals(fixture.engine, UINT64_MAX - 1), SPOKE_OK);
	assert_true(spokei_world_signal(&fixture.process, SIGTERM));
	assert_int_equal(spoke_engine_run(fixture.engine), SPOKE_OK);
	assert_int_equal(fixture.drained_ns, 0);
	assert_int_equal(fixture.left_ns, 0);
}

TEST(environment_without_signals_returns_unsupported)
{
	struct spoke_signal signal = { .engine = NULL };

	fixture.process.env.signals = NULL;
	assert_int_equal(spoke_signal_watch(fixture.engine, &signal, SIGTERM, NULL),
			 SPOKE_EUNSUPPORTED);
	assert_int_equal(spoke_engine_drain_on_signals(fixture.engine, S), SPOKE_EUNSUPPORTED);
}
