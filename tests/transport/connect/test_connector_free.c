/* SPDX-License-Identifier: Apache-2.0 */
/* The connector: freed in each state and after each step, without memory and without timers. */
#include "tests/support/test.h"
#include "tests/transport/connect/connectrig.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <spoke/engine.h>
#include <spoke/stats.h>

#include <errno.h>

#define AT "10.0.0.2:20880"

/* Opens the rig with a name of two addresses: the first refuses connections, the second listens. */
static int open_with_name(struct connectrig *rig, uint64_t seed)
{
	connectrig_open(rig, seed);
	spokei_vnet_name(rig->world.net, "demo.test", "10.0.0.1 10.0.0.2");
	rig->options.host = "demo.test";
	return connectrig_listen(rig, AT);
}

/* Asserts that the freed connector reports nothing, connects no more and leaves nothing behind. */
static void assert_gone(struct connectrig *rig)
{
	unsigned told = rig->told_count;
	uint64_t connects = connectrig_stat(rig, SPOKE_STAT_CONNECTS);

	assert_int_equal(connectrig_timers(rig), 0);
	assert_int_equal(rig->client.user.fds, 0);
	connectrig_run(rig, 100 * SECOND);
	assert_int_equal(rig->told_count, told);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_CONNECTS), connects);
	connectrig_close(rig);
}

TEST(connector_may_be_freed_in_report_of_any_state)
{
	static const enum spokei_connector_state states[] = {
		SPOKEI_CONNECTOR_RESOLVING,
		SPOKEI_CONNECTOR_CONNECTING,
		SPOKEI_CONNECTOR_OPEN,
		SPOKEI_CONNECTOR_WAITING,
	};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		struct connectrig rig;
		int listener = open_with_name(&rig, 3);

		rig.free_in = (int)states[i];
		assert_int_equal(connectrig_start(&rig), SPOKE_OK);
		if (states[i] == SPOKEI_CONNECTOR_WAITING ||
		    states[i] == SPOKEI_CONNECTOR_RESOLVING)
			connectrig_hang_up(&rig, connectrig_wait_open(&rig, listener));
		(void)connectrig_wait(&rig, states[i]);
		assert_null(rig.connector);
		assert_gone(&rig);
	}
}

/* Runs through all states, one step further each time. */
TEST(connector_may_be_freed_after_any_step)
{
	bool whole = false;

	for (unsigned steps = 0; !whole; steps++) {
		struct connectrig rig;
		int listener = open_with_name(&rig, steps);

		assert_int_equal(connectrig_start(&rig), SPOKE_OK);
		for (unsigned i = 0; i < steps; i++) {
			int fd = connectrig_accept(&rig, listener);

			if (fd >= 0) {
				connectrig_speak(&rig, fd);
				connectrig_hang_up(&rig, fd);
			}
			(void)spokei_world_step(&rig.world, rig.world.now_ns + SECOND);
		}
		whole = connectrig_stat(&rig, SPOKE_STAT_CONNECTED) >= 3;
		connectrig_free(&rig);
		assert_gone(&rig);
	}
}

TEST(its_engine_may_be_freed_right_after_it)
{
	for (unsigned steps = 0; steps < 8; steps++) {
		struct connectrig rig;

		(void)open_with_name(&rig, steps);
		assert_int_equal(connectrig_start(&rig), SPOKE_OK);
		for (unsigned i = 0; i < steps; i++)
			(void)spokei_world_step(&rig.world, rig.world.now_ns + SECOND);
		connectrig_free(&rig);
		spoke_engine_free(rig.engine);
		assert_int_equal(rig.faulty.blocks, 0);
		assert_int_equal(rig.faulty.fds, 0);
		spokei_vnet_kill(&rig.server.user);
		spokei_world_process_fini(&rig.client);
		spokei_world_process_fini(&rig.server);
		spokei_world_fini(&rig.world);
	}
}

static struct spoke_work *held;

static int hold_work(void *loop, struct spoke_work *work)
{
	(void)loop;
	held = work;
	return 0;
}

/* Ends the work like a pool that is stopped before it has begun the work. */
static void hand_back(int status)
{
	held->status = status;
	held->done(held);
}

TEST(freed_while_a_name_is_resolved_it_stays_until_that_is_done)
{
	static const int results[] = { 0, -ECANCELED };

	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		struct connectrig rig;
		size_t blocks;

		(void)open_with_name(&rig, 3);
		rig.faulty.loop.offload = hold_work;
		blocks = rig.faulty.blocks;
		assert_int_equal(connectrig_start(&rig), SPOKE_OK);
		connectrig_run(&rig, SECOND);
		connectrig_free(&rig);
		connectrig_run(&rig, SECOND);
		assert_int_equal(rig.faulty.blocks, blocks + 2); /* and the lookup */
		if (results[i] == 0)
			held->run(held);
		hand_back(results[i]);
		connectrig_run(&rig, SECOND);
		assert_int_equal(rig.faulty.blocks, blocks);
		assert_gone(&rig);
	}
}

TEST(a_cancelled_work_is_a_failed_round)
{
	struct connectrig rig;

	(void)open_with_name(&rig, 3);
	rig.faulty.loop.offload = hold_work;
	assert_int_equal(connectrig_start(&rig), SPOKE_OK);
	hand_back(-ECANCELED);
	assert_int_equal(spokei_connector_state(rig.connector), SPOKEI_CONNECTOR_WAITING);
	assert_int_equal(connectrig_stat(&rig, SPOKE_STAT_RESOLVES_FAILED), 1);
	connectrig_free(&rig);
	assert_gone(&rig);
}

TEST(one_want_of_memory_anywhere_is_survived)
{
	bool failed = true;

	for (uint64_t nth = 1; failed; nth++) {
		struct connectrig rig;
		int listener = open_with_name(&rig, nth);
		int error;

		spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		error = connectrig_start(&rig);
		if (error == SPOKE_OK) {
			int fd = connectrig_wait_open(&rig, listener);

			connectrig_speak(&rig, fd);
			connectrig_run(&rig, MS);
			connectrig_hang_up(&rig, fd);
			connectrig_run(&rig, SECOND);
			assert_in_range(connectrig_stat(&rig, SPOKE_STAT_CONNECTED), 2, 3);
		} else {
			assert_int_equal(error, SPOKE_ENOMEM);
			assert_null(rig.connector);
		}
		failed = rig.faulty.failed[SPOKEI_FAULTS_MEMORY] > 0;
		spokei_faults_heal(&rig.faulty);
		connectrig_free(&rig);
		connectrig_run(&rig, 0);
		assert_gone(&rig);
	}
}

/* While every allocation fails, the connector can only retry with its backoff. */
TEST(without_any_memory_it_waits_and_goes_on_later)
{
	struct connectrig rig;
	int listener;

	listener = open_with_name(&rig, 10);
	assert_int_equal(connectrig_start(&rig), SPOKE_OK);
	spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_MEMORY, 1, -ENOMEM, true);
	assert_int_equal(connectrig_wait(&rig, SPOKEI_CONNECTOR_WAITING)->error, SPOKE_ENOMEM);
	assert_true(connectrig_events(&rig, SPOKE_ENOMEM, "") >= 1);
	connectrig_run(&rig, 20 * SECOND);
	assert_in_range(connectrig_stat(&rig, SPOKE_STAT_CONNECTS), 2, 30);
	spokei_faults_heal(&rig.faulty);
	(void)connectrig_wait_open(&rig, listener);
	connectrig_close(&rig);
}

static void fill_wheel(struct spoke_alarm *alarm)
{
	(void)alarm;
}

TEST(a_full_wheel_does_not_strand_it)
{
	struct spoke_engine_options options = { .timers_max = 1 };
	struct spoke_alarm alarm = { .period_ns = 0 };
	struct spokei_link_limits limits;
	struct connectrig rig;

	connectrig_open(&rig, 4);
	spokei_link_fini(&rig.link);
	spoke_engine_free(rig.engine);
	options.env = &rig.faulty.env;
	assert_int_equal(spoke_engine_new(&options, &rig.engine), SPOKE_OK);
	spokei_link_limits_init(&limits);
	assert_int_equal(spokei_link_init(&rig.link, rig.engine, &limits), SPOKE_OK);

	assert_int_equal(spoke_alarm_after(rig.engine, &alarm, SECOND, fill_wheel), SPOKE_OK);
	assert_int_equal(connectrig_start(&rig), SPOKE_ELIMIT);
	(void)spoke_alarm_cancel(&alarm);
	assert_int_equal(connectrig_start(&rig), SPOKE_OK);
	for (unsigned i = 0; i < 20; i++)
		(void)connectrig_wait(&rig, SPOKEI_CONNECTOR_WAITING);
	(void)connectrig_listen(&rig, "127.0.0.1:20880");
	(void)connectrig_wait(&rig, SPOKEI_CONNECTOR_OPEN);
	connectrig_run(&rig, 3 * 3600 * SECOND);
	assert_int_equal(connectrig_timers(&rig), 1);
	connectrig_close(&rig);
}
