/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: the turn of an engine whose loop has only looked at them. */
#include "core/engine/parts.h"
#include "core/engine/source.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"

#include <string.h>

#define MS UINT64_C(1000000)

static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_loop loop; /* that calls look() and lull(), here: the test */
	struct spoke_engine *engine;
	struct spoke_alarm alarm;
	unsigned alarms;
	struct spokei_source source;
	unsigned waiting; /* things that the source has */
	unsigned served;
} rig;

static bool source_has(struct spokei_source *source)
{
	(void)source;
	return rig.waiting > 0;
}

static bool source_sleep(struct spokei_source *source)
{
	return !source_has(source);
}

static void source_ready(struct spokei_source *source)
{
	(void)source;
	rig.waiting--;
	rig.served++;
}

static void note_alarm(struct spoke_alarm *alarm)
{
	(void)alarm;
	rig.alarms++;
}

static int set_up(void **state)
{
	struct spoke_engine_options options = { .env = &rig.process.env };

	(void)state;
	memset(&rig, 0, sizeof(rig));
	assert_true(spokei_world_init(&rig.world, 5));
	spokei_world_process_init(&rig.process, &rig.world);
	rig.loop = *rig.process.env.loop;
	rig.loop.lulls = true;
	rig.process.env.loop = &rig.loop;
	assert_int_equal(spoke_engine_new(&options, &rig.engine), SPOKE_OK);
	rig.source = (struct spokei_source){
		.has = source_has,
		.sleep = source_sleep,
		.ready = source_ready,
	};
	spokei_source_wake(rig.engine, &rig.source);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	spokei_source_end(&rig.source);
	spoke_engine_free(rig.engine);
	assert_int_equal(rig.process.blocks, 0);
	spokei_world_process_fini(&rig.process);
	spokei_world_fini(&rig.world);
	return 0;
}

FIXTURE(set_up, tear_down);

/* One round of a loop that looks: with a poll of descriptors, or by a look alone. */
static void turn(bool polls)
{
	if (!polls)
		assert_int_equal(spokei_engine_up.look(rig.engine), SPOKE_LOOP_COME);
	spokei_engine_up.begin(rig.engine);
	spokei_engine_up.turn(rig.engine, 0);
	spokei_engine_up.settle(rig.engine);
}

static void set_alarm(uint64_t delay_ns)
{
	assert_int_equal(spoke_alarm_after(rig.engine, &rig.alarm, delay_ns, note_alarm), SPOKE_OK);
	spokei_engine_up.settle(rig.engine);
}

TEST(timer_waits_for_poll_after_look)
{
	set_alarm(10 * MS);
	rig.world.now_ns += 11 * MS;
	rig.waiting = 1;
	turn(false);
	assert_int_equal(rig.served, 1);
	assert_int_equal(rig.alarms, 0);
	turn(true);
	assert_int_equal(rig.alarms, 1);
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_TURNS_LATE), 0);
}

TEST(late_turn_is_counted_once_when_look_began_it)
{
	for (unsigned i = 1; i <= 3; i++) {
		set_alarm(10 * MS);
		rig.world.now_ns += 500 * MS;
		rig.waiting = 1;
		turn(false);
		assert_int_equal(rig.alarms, i - 1);
		assert_true(spokei_engine_late(rig.engine)); /* for messages that are read */
		for (unsigned rounds = 0; rig.alarms < i; rounds++) {
			assert_in_range(rounds, 0, SPOKEI_ENGINE_LATE_ROUNDS);
			rig.world.now_ns += MS;
			turn(true);
		}
		assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_TURNS_LATE), i);
	}
}

/* The look finds the answer that the timer waits for. */
TEST(late_turn_is_counted_though_its_timer_ends)
{
	set_alarm(10 * MS);
	rig.world.now_ns += 500 * MS;
	rig.waiting = 1;
	turn(false);
	assert_true(spoke_alarm_cancel(&rig.alarm));
	turn(true);
	turn(true);
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_TURNS_LATE), 1);
}
