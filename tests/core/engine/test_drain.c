/* SPDX-License-Identifier: Apache-2.0 */
/* Members of an engine and their end: closed when the engine is freed, drained before that. */
#include "core/engine/engine.h"
#include "core/engine/roll.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"

#include <string.h>

#define MS UINT64_C(1000000)

enum {
	MEMBERS = 4,
	STORY = 64,
};

/* A member of the engine. It appends a letter and its number to the story for each event. */
struct member {
	struct spokei_member member;
	struct spokei_task gone; /* leaves the roll at the end of a turn */
	struct spoke_alarm work; /* work to finish before it leaves */
	struct spoke_post post;
	uint64_t work_ns;
	void (*then)(struct member *member); /* called at its end, or NULL */
	unsigned posts;                      /* runs of its post */
	unsigned posts_max;
	char number;
};

struct fixture {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct member members[MEMBERS];
	char story[STORY];
};

static struct fixture fixture;

static void tell(char letter, char number)
{
	size_t len = strlen(fixture.story);

	assert_true(len + 2 < STORY);
	fixture.story[len] = letter;
	fixture.story[len + 1] = number;
}

static void member_gone(struct spokei_task *task)
{
	struct member *member = spoke_container_of(task, struct member, gone);

	tell('g', member->number);
	spokei_roll_drop(fixture.engine, &member->member);
	if (member->then)
		member->then(member);
}

static void member_close(struct spokei_member *roll)
{
	struct member *member = spoke_container_of(roll, struct member, member);

	tell('c', member->number);
	(void)spoke_alarm_cancel(&member->work);
	spokei_engine_dead(fixture.engine, &member->gone);
}

static void work_done(struct spoke_alarm *alarm)
{
	struct member *member = spoke_container_of(alarm, struct member, work);

	tell('w', member->number);
	spokei_engine_dead(fixture.engine, &member->gone);
}

static void member_drain(struct spokei_member *roll)
{
	struct member *member = spoke_container_of(roll, struct member, member);

	tell('d', member->number);
	if (member->work_ns == 0) {
		spokei_roll_drop(fixture.engine, roll);
		return;
	}
	assert_int_equal(spoke_alarm_after(fixture.engine, &member->work, member->work_ns,
					   work_done),
			 SPOKE_OK);
}

static struct member *add_member(int at)
{
	struct member *member = &fixture.members[at];

	*member = (struct member){
		.member = { .kind = "test", .close = member_close, .drain = member_drain },
		.gone.run = member_gone,
		.number = (char)('0' + at)
	};
	spokei_roll_add(fixture.engine, &member->member);
	return member;
}

static int set_up(void **state)
{
	struct spoke_engine_options options = { .env = &fixture.process.env };

	(void)state;
	memset(&fixture, 0, sizeof(fixture));
	if (!spokei_world_init(&fixture.world, 3))
		return -1;
	spokei_world_process_init(&fixture.process, &fixture.world);
	return spoke_engine_new(&options, &fixture.engine);
}

static int tear_down(void **state)
{
	(void)state;
	spoke_engine_free(fixture.engine);
	assert_int_equal(fixture.process.blocks, 0);
	spokei_world_process_fini(&fixture.process);
	spokei_world_fini(&fixture.world);
	return 0;
}

FIXTURE(set_up, tear_down);

static void free_engine(void)
{
	spoke_engine_free(fixture.engine);
	fixture.engine = NULL;
}

static void run(void)
{
	assert_int_equal(spoke_engine_run(fixture.engine), SPOKE_OK);
}

TEST(freeing_an_engine_closes_its_members)
{
	add_member(0);
	add_member(1);
	add_member(2);
	spokei_roll_drop(fixture.engine, &fixture.members[1].member);
	spokei_roll_drop(fixture.engine, &fixture.members[1].member); /* once more */
	free_engine();
	assert_string_equal(fixture.story, "c0c2g0g2");
}

static void drop_the_next(struct spokei_member *roll)
{
	member_close(roll);
	spokei_roll_drop(fixture.engine, &fixture.members[1].member);
	spokei_roll_drop(fixture.engine, &fixture.members[0].member);
}

TEST(closed_member_may_remove_itself_and_others_from_roll)
{
	add_member(0)->member.close = drop_the_next;
	add_member(1);
	add_member(2);
	free_engine();
	assert_string_equal(fixture.story, "c0c2g0g2");
}

static void begin_another(struct member *member)
{
	if (member->number < '2') {
		assert_true(spokei_engine_ending(fixture.engine));
		add_member(member->number - '0' + 1)->then = begin_another;
	}
}

TEST(member_added_while_engine_is_freed_is_closed)
{
	add_member(0)->then = begin_another;
	free_engine();
	assert_string_equal(fixture.story, "c0g0c1g1c2g2");
}

TEST(a_drain_ends_the_run_when_all_have_left)
{
	uint64_t start_ns = fixture.world.now_ns;

	add_member(0)->work_ns = 20 * MS;
	add_member(1);
	add_member(2)->work_ns = 5 * MS;
	assert_int_equal(spoke_engine_drain(fixture.engine, 1000 * MS), SPOKE_OK);
	run();
	assert_string_equal(fixture.story, "d0d1d2w2g2w0g0");
	assert_in_range(fixture.world.now_ns - start_ns, 20 * MS, 21 * MS);
}

TEST(members_left_after_drain_timeout_are_closed)
{
	uint64_t start_ns = fixture.world.now_ns;

	add_member(0)->work_ns = 20 * MS;
	add_member(1)->work_ns = 5 * MS;
	assert_int_equal(spoke_engine_drain(fixture.engine, 10 * MS), SPOKE_OK);
	run();
	assert_string_equal(fixture.story, "d0d1w1g1c0g0");
	assert_in_range(fixture.world.now_ns - start_ns, 10 * MS, 11 * MS);
}

TEST(a_drain_without_time_waits_as_long_as_it_takes)
{
	add_member(0)->work_ns = 3600000 * MS;
	assert_int_equal(spoke_engine_drain(fixture.engine, UINT64_MAX), SPOKE_OK);
	run();
	assert_string_equal(fixture.story, "d0w0g0");
}

TEST(second_drain_changes_timeout_and_drains_members_once)
{
	uint64_t start_ns = fixture.world.now_ns;

	add_member(0)->work_ns = 100 * MS;
	assert_int_equal(spoke_engine_drain(fixture.engine, UINT64_MAX), SPOKE_OK);
	assert_int_equal(spoke_engine_turn(fixture.engine, false), SPOKE_OK);
	assert_int_equal(spoke_engine_drain(fixture.engine, 10 * MS), SPOKE_OK);
	run();
	assert_string_equal(fixture.story, "d0c0g0");
	assert_in_range(fixture.world.now_ns - start_ns, 10 * MS, 12 * MS);
}

TEST(a_drain_is_for_ever)
{
	assert_false(spokei_engine_ending(fixture.engine));
	assert_int_equal(spoke_engine_drain(fixture.engine, 50 * MS), SPOKE_OK);
	assert_true(spokei_engine_ending(fixture.engine));
	run();
	run(); /* ends at once */
	/* A run that did not request a drain. */
	add_member(0)->work_ns = 5 * MS;
	run();
	assert_string_equal(fixture.story, "d0w0g0");
	spokei_world_run(&fixture.world, fixture.world.now_ns + 100 * MS);
	add_member(1)->work_ns = 5 * MS;
	run();
	assert_string_equal(fixture.story, "d0w0g0c1g1");
}

TEST(a_member_that_cannot_drain_is_closed_instead)
{
	add_member(0)->member.drain = NULL;
	assert_int_equal(spoke_engine_drain(fixture.engine, UINT64_MAX), SPOKE_OK);
	run();
	assert_string_equal(fixture.story, "c0g0");
}

static void drain_now(struct spoke_post *post)
{
	(void)post;
	assert_true(spokei_engine_here(fixture.engine));
	assert_int_equal(spoke_engine_drain(fixture.engine, MS), SPOKE_OK);
}

TEST(a_drain_may_be_posted)
{
	add_member(0)->post.run = drain_now;
	spoke_engine_post(fixture.engine, &fixture.members[0].post);
	run();
	assert_string_equal(fixture.story, "d0");
	assert_false(spokei_engine_here(fixture.engine));
}

TEST(a_drain_that_has_no_timer_is_refused_and_nothing_happened)
{
	struct spoke_engine_options options = { .timers_max = 1, .env = &fixture.process.env };
	struct spoke_alarm alarm = { 0 };

	free_engine();
	assert_int_equal(spoke_engine_new(&options, &fixture.engine), SPOKE_OK);
	assert_int_equal(spoke_alarm_after(fixture.engine, &alarm, MS, work_done), SPOKE_OK);
	assert_int_equal(spoke_engine_drain(fixture.engine, MS), SPOKE_ELIMIT);
	assert_false(spokei_engine_ending(fixture.engine));
	assert_true(spoke_alarm_cancel(&alarm));
	assert_int_equal(spoke_engine_drain(fixture.engine, UINT64_MAX - 1), SPOKE_ERANGE);
	assert_false(spokei_engine_ending(fixture.engine));
}

static void post_again(struct spoke_post *post)
{
	struct member *member = spoke_container_of(post, struct member, post);

	member->posts++;
	if (member->posts < member->posts_max)
		spoke_engine_post(fixture.engine, post);
}

TEST(posts_made_by_posts_run_when_engine_is_freed)
{
	struct member *member = add_member(0);

	member->post.run = post_again;
	member->posts_max = 16;
	spoke_engine_post(fixture.engine, &member->post);
	free_engine();
	assert_int_equal(member->posts, 16);
	assert_string_equal(fixture.story, "c0g0");
}

TEST(an_engine_is_freed_though_a_post_posts_for_ever)
{
	struct member *member = add_member(0);

	member->post.run = post_again;
	member->posts_max = 1000;
	spoke_engine_post(fixture.engine, &member->post);
	free_engine();
	assert_in_range(member->posts, 16, 999);
	assert_string_equal(fixture.story, "c0g0");
}

TEST(an_alarm_may_be_cancelled_when_its_engine_is_gone)
{
	struct spoke_alarm alarms[2] = { 0 };

	assert_int_equal(spoke_alarm_after(fixture.engine, &alarms[0], MS, work_done), SPOKE_OK);
	assert_int_equal(spoke_alarm_after(fixture.engine, &alarms[1], MS, work_done), SPOKE_OK);
	assert_true(spoke_alarm_cancel(&alarms[1]));
	free_engine();
	assert_false(spoke_alarm_cancel(&alarms[0])); /* freeing the engine has disarmed it */
	assert_false(spoke_alarm_cancel(&alarms[1]));
}

TEST(an_environment_without_threads_cannot_start_one)
{
	assert_int_equal(spoke_engine_start(fixture.engine), SPOKE_EUNSUPPORTED);
	assert_int_equal(spoke_engine_join(fixture.engine), SPOKE_ESTATE);
}
