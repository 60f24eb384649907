/* SPDX-License-Identifier: Apache-2.0 */
/* The time of an engine: in a turn that of its begin, outside of one the present. */
#include "core/engine/engine.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"

#include <spoke/engine.h>

#include <string.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_post post;
	uint64_t begin_ns; /* the engine's time when the post ran */
	uint64_t later_ns; /* ... and after it took some time, and used the engine */
} rig;

static int set_up(void **state)
{
	struct spoke_engine_options options = { .env = &rig.process.env };

	(void)state;
	memset(&rig, 0, sizeof(rig));
	assert_true(spokei_world_init(&rig.world, 5));
	spokei_world_process_init(&rig.process, &rig.world);
	assert_int_equal(spoke_engine_new(&options, &rig.engine), SPOKE_OK);
	assert_int_equal(spoke_engine_turn(rig.engine, false), SPOKE_OK);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	spoke_engine_free(rig.engine);
	assert_int_equal(rig.process.blocks, 0);
	spokei_world_process_fini(&rig.process);
	spokei_world_fini(&rig.world);
	return 0;
}

FIXTURE(set_up, tear_down);

TEST(code_outside_of_turn_sees_the_present)
{
	rig.world.now_ns += 5 * SECOND;
	assert_int_equal(spoke_engine_now(rig.engine), rig.world.now_ns);
}

TEST(check_outside_of_turn_refreshes_times)
{
	for (unsigned i = 0; i < 3; i++) {
		rig.world.now_ns += SECOND;
		assert_int_equal(spokei_engine_check(rig.engine), SPOKE_OK);
		assert_int_equal(rig.engine->begin_ns, rig.world.now_ns);
		assert_int_equal(rig.engine->settle_ns, rig.world.now_ns);
		rig.world.now_ns += MS;
		assert_int_equal(spokei_engine_settled(rig.engine), rig.world.now_ns);
	}
}

TEST(event_outside_of_turn_has_the_present_time)
{
	struct spoke_event event = { 0 };

	rig.world.now_ns += 5 * SECOND;
	assert_int_equal(spokei_engine_check(rig.engine), SPOKE_OK);
	spokei_event(rig.engine, SPOKE_EINVAL, "a test has an event");
	assert_int_equal(spoke_event_get(rig.engine, 1, &event), SPOKE_OK);
	assert_int_equal(event.at_ns, rig.world.now_ns);
}

static void look_twice(struct spoke_post *post)
{
	(void)post;
	rig.begin_ns = spoke_engine_now(rig.engine);
	spokei_world_hold(&rig.process, 20 * MS);
	assert_int_equal(spokei_engine_check(rig.engine), SPOKE_OK);
	rig.later_ns = spoke_engine_now(rig.engine);
}

TEST(time_in_turn_stays_that_of_its_begin)
{
	rig.world.now_ns += SECOND;
	rig.post.run = look_twice;
	spoke_engine_post(rig.engine, &rig.post);
	assert_int_equal(spoke_engine_turn(rig.engine, false), SPOKE_OK);
	assert_int_equal(rig.begin_ns, rig.world.now_ns);
	assert_int_equal(rig.later_ns, rig.begin_ns);
}
