/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of an engine's members, by a drain or SIGTERM, and what the service manager learns.
 */
#include "core/engine/engine.h"
#include "core/engine/members.h"
#include "core/engine/notify.h"
#include "core/virtual/world.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/notify.h>
#include <spoke/signals.h>
#include <spoke/stats.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/*
 * --- members of an engine and their end: closed when the engine is freed, drained before that
 */

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
	spokei_member_drop(&member->member);
	if (member->then)
		member->then(member);
}

static void member_close(struct spokei_member *roll)
{
	struct member *member = spoke_container_of(roll, struct member, member);

	tell('c', member->number);
	(void)spoke_alarm_cancel(&member->work);
	spokei_run_freeing(fixture.engine, &member->gone);
}

static void work_done(struct spoke_alarm *alarm)
{
	struct member *member = spoke_container_of(alarm, struct member, work);

	tell('w', member->number);
	spokei_run_freeing(fixture.engine, &member->gone);
}

static void member_drain(struct spokei_member *roll)
{
	struct member *member = spoke_container_of(roll, struct member, member);

	tell('d', member->number);
	if (member->work_ns == 0) {
		spokei_member_drop(roll);
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
	spokei_member_add(fixture.engine, &member->member);
	return member;
}

STEP(set_up)
{
	memset(&fixture, 0, sizeof(fixture));
	scene_open(&fixture.world, 3);
	fixture.engine = scene_engine(&fixture.world, &fixture.process, NULL, NULL);
}

STEP(tear_down)
{
	scene_leave(&fixture.process, NULL, &fixture.engine);
	spokei_world_fini(&fixture.world);
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
	spokei_member_drop(&fixture.members[1].member);
	spokei_member_drop(&fixture.members[1].member); /* once more */
	free_engine();
	assert_string_equal(fixture.story, "c0c2g0g2");
}

static void drop_the_next(struct spokei_member *roll)
{
	member_close(roll);
	spokei_member_drop(&fixture.members[1].member);
	spokei_member_drop(&fixture.members[0].member);
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

/* --- SIGTERM drains an engine: timeouts and second signals, in a virtual world */

#define S UINT64_C(1000000000)
/* A server with one member, which takes work_ns to finish when it is drained. */
struct signals_drain_fixture {
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

static struct signals_drain_fixture drained;

static void signals_drain_member_gone(struct spokei_task *task)
{
	(void)task;
	drained.left_ns = drained.world.now_ns;
	spokei_member_drop(&drained.member);
}

static void signals_drain_work_done(struct spoke_alarm *alarm)
{
	(void)alarm;
	spokei_run_freeing(drained.engine, &drained.gone);
}

static void signals_drain_member_drain(struct spokei_member *member)
{
	(void)member;
	drained.drained_ns = drained.world.now_ns;
	assert_int_equal(spoke_alarm_after(drained.engine, &drained.work, drained.work_ns,
					   signals_drain_work_done),
			 SPOKE_OK);
}

static void signals_drain_member_close(struct spokei_member *member)
{
	(void)member;
	drained.closed_ns = drained.world.now_ns;
	(void)spoke_alarm_cancel(&drained.work);
	spokei_run_freeing(drained.engine, &drained.gone);
}

static void send_another(struct spoke_alarm *alarm)
{
	(void)alarm;
	assert_true(spokei_world_signal(&drained.process, drained.number));
}

static int signals_drain_set_up(void **state)
{
	struct spoke_engine_options options = { .env = &drained.process.env };

	(void)state;
	memset(&drained, 0, sizeof(drained));
	scene_open(&drained.world, 5);
	spokei_world_process_init(&drained.process, &drained.world);
	drained.member = (struct spokei_member){ .kind = "test",
						 .close = signals_drain_member_close,
						 .drain = signals_drain_member_drain };
	drained.gone.run = signals_drain_member_gone;
	if (spoke_engine_new(&options, &drained.engine) != SPOKE_OK)
		return -1;
	spokei_member_add(drained.engine, &drained.member);
	return 0;
}

STEP(signals_drain_tear_down)
{
	scene_leave(&drained.process, NULL, &drained.engine);
	spokei_world_fini(&drained.world);
}

FIXTURE(signals_drain_set_up, signals_drain_tear_down);

/* Runs the engine. SIGTERM comes at once, a second signal after `again_ns`; 0 means no second
 * signal. */
static uint64_t serve(uint64_t work_ns, uint64_t timeout_ns, uint64_t again_ns, int number)
{
	uint64_t start_ns = drained.world.now_ns;

	drained.work_ns = work_ns;
	drained.number = number;
	assert_false(spokei_world_signal(&drained.process, SIGTERM));
	assert_int_equal(spoke_engine_drain_on_signals(drained.engine, timeout_ns), SPOKE_OK);
	if (again_ns)
		assert_int_equal(spoke_alarm_after(drained.engine, &drained.again, again_ns,
						   send_another),
				 SPOKE_OK);
	assert_true(spokei_world_signal(&drained.process, SIGTERM));
	assert_int_equal(spoke_engine_run(drained.engine), SPOKE_OK);
	(void)spoke_alarm_cancel(&drained.again);
	assert_true(drained.drained_ns >= start_ns);
	return drained.left_ns - start_ns;
}

TEST(first_signal_waits_for_begun_work)
{
	assert_in_range(serve(3 * S, 10 * S, 0, 0), 3 * S, 3 * S + 2 * MS);
	assert_int_equal(drained.closed_ns, 0);
}

TEST(timeout_ends_longer_work)
{
	assert_in_range(serve(30 * S, 10 * S, 0, 0), 10 * S, 10 * S + 2 * MS);
	assert_true(drained.closed_ns > 0);
}

TEST(the_second_signal_ends_at_once)
{
	assert_in_range(serve(30 * S, 10 * S, 2 * S, SIGTERM), 2 * S, 2 * S + 3 * MS);
	assert_true(drained.closed_ns > 0);
}

TEST(the_second_may_be_the_other_one)
{
	assert_in_range(serve(30 * S, UINT64_MAX, 2 * S, SIGINT), 2 * S, 2 * S + 3 * MS);
	assert_true(drained.closed_ns > 0);
	assert_string_equal(spoke_engine_why(drained.engine),
			    "a signal asks the engine to end at once");
}

TEST(called_again_it_sets_another_timeout)
{
	assert_int_equal(spoke_engine_drain_on_signals(drained.engine, S), SPOKE_OK);
	assert_int_equal(spoke_engine_drain_on_signals(drained.engine, 2 * S), SPOKE_OK);
	assert_int_equal(drained.process.user.fds, 2);
	drained.work_ns = 30 * S;
	assert_true(spokei_world_signal(&drained.process, SIGINT));
	assert_int_equal(spoke_engine_run(drained.engine), SPOKE_OK);
	assert_in_range(drained.left_ns - drained.drained_ns, 2 * S - MS, 2 * S + MS);
}

TEST(without_a_timer_for_the_drain_the_run_is_stopped)
{
	/* The timeout is beyond the range of any wheel. */
	assert_int_equal(spoke_engine_drain_on_signals(drained.engine, UINT64_MAX - 1), SPOKE_OK);
	assert_true(spokei_world_signal(&drained.process, SIGTERM));
	assert_int_equal(spoke_engine_run(drained.engine), SPOKE_OK);
	assert_int_equal(drained.drained_ns, 0);
	assert_int_equal(drained.left_ns, 0);
}

TEST(environment_without_signals_returns_unsupported)
{
	struct spoke_signal signal = { .engine = NULL };

	drained.process.env.signals = NULL;
	assert_int_equal(spoke_signal_watch(drained.engine, &signal, SIGTERM, NULL),
			 SPOKE_EUNSUPPORTED);
	assert_int_equal(spoke_engine_drain_on_signals(drained.engine, S), SPOKE_EUNSUPPORTED);
}

/* --- what an engine tells the service manager, and when, in a virtual world */

enum {
	TOLD_MAX = 64,
};

static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	uint64_t watchdog_ns;
	int error; /* of the next messages */
	unsigned tries;
	unsigned count;
	char told[TOLD_MAX][400];
} rig;

static int take_message(void *ctx, const char *text)
{
	assert_ptr_equal(ctx, rig.process.env.ctx);
	rig.tries++;
	if (rig.error)
		return rig.error;
	assert_true(rig.count < TOLD_MAX);
	(void)snprintf(rig.told[rig.count++], sizeof(rig.told[0]), "%s", text);
	return 0;
}

static uint64_t get_watchdog(void *ctx)
{
	(void)ctx;
	return rig.watchdog_ns;
}

static const struct spoke_manager manager = { .notify = take_message, .watchdog = get_watchdog };

static int notify_set_up(void **state)
{
	struct spoke_engine_options options = { .env = &rig.process.env };

	(void)state;
	memset(&rig, 0, sizeof(rig));
	scene_open(&rig.world, 5);
	spokei_world_process_init(&rig.process, &rig.world);
	rig.process.env.manager = &manager;
	return spoke_engine_new(&options, &rig.engine);
}

STEP(notify_tear_down)
{
	spoke_engine_free(rig.engine);
	spokei_world_process_fini(&rig.process);
	spokei_world_fini(&rig.world);
}

FIXTURE(notify_set_up, notify_tear_down);

static void pass(uint64_t ns)
{
	spokei_world_run(&rig.world, rig.world.now_ns + ns);
}

/* Asserts that these are all messages since the last call. */
static void assert_told(const char *first, const char *second)
{
	unsigned count = first ? second ? 2 : 1 : 0;

	assert_int_equal(rig.count, count);
	if (first)
		assert_string_equal(rig.told[0], first);
	if (second)
		assert_string_equal(rig.told[1], second);
	rig.count = 0;
}

static void notify(const char *status)
{
	assert_int_equal(spoke_engine_notify(rig.engine, status), 0);
}

TEST(engine_says_nothing_unless_asked)
{
	rig.watchdog_ns = S;
	spokei_notify_reloading(rig.engine);
	spokei_notify_reloaded(rig.engine, false);
	pass(10 * S);
	assert_int_equal(spoke_engine_drain(rig.engine, S), 0);
	pass(S);
	assert_int_equal(rig.tries, 0);
}

TEST(ready_carries_status_in_one_line)
{
	static char text[400];

	notify(NULL);
	assert_told("READY=1", NULL);
	notify("it listens\nSTOPPING=1\x7f");
	assert_told("READY=1\nSTATUS=it listens STOPPING=1 ", NULL);
	memset(text, 'x', sizeof(text) - 1);
	notify(text);
	assert_int_equal(strlen(rig.told[0]), strlen("READY=1\nSTATUS=") + SPOKE_NOTIFY_STATUS_MAX);
	rig.count = 0;
	pass(100 * S);
	assert_told(NULL, NULL);
}

TEST(watchdog_gets_two_signs_in_its_time)
{
	rig.watchdog_ns = 10 * S;
	notify("up");
	assert_told("READY=1\nSTATUS=up", NULL);
	pass(4999 * MS);
	assert_told(NULL, NULL);
	pass(10 * MS);
	assert_told("WATCHDOG=1", NULL);
	notify("still up");
	assert_told("READY=1\nSTATUS=still up", NULL);
	pass(4980 * MS);
	assert_told(NULL, NULL);
	pass(50 * MS);
	assert_told("WATCHDOG=1", NULL);
	pass(50 * S);
	assert_in_range(rig.count, 9, 11);
}

TEST(drain_stops_once_and_for_ever)
{
	notify("up");
	rig.count = 0;
	assert_int_equal(spoke_engine_drain(rig.engine, 10 * S), 0);
	assert_told("STOPPING=1\nSTATUS=finishes running requests and calls", NULL);
	assert_int_equal(spoke_engine_drain(rig.engine, 0), 0);
	spokei_notify_reloading(rig.engine);
	spokei_notify_reloaded(rig.engine, false);
	assert_told(NULL, NULL);
}

TEST(reload_is_told_with_its_time_and_result)
{
	char wanted[80];

	notify("up");
	rig.count = 0;
	(void)snprintf(wanted, sizeof(wanted),
		       "RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=reads its settings",
		       (unsigned long long)(rig.process.env.now(rig.process.env.ctx) / 1000));
	spokei_notify_reloading(rig.engine);
	spokei_notify_reloaded(rig.engine, true);
	assert_told(wanted, "READY=1\nSTATUS=up (errors in the settings file)");
	spokei_notify_reloading(rig.engine);
	spokei_notify_reloaded(rig.engine, false);
	assert_string_equal(rig.told[1], "READY=1\nSTATUS=up");
}

TEST(full_queue_is_tried_again_with_the_newest_state)
{
	rig.error = -EAGAIN;
	notify("up");
	pass(950 * MS);
	assert_int_equal(rig.tries, 10);
	spokei_notify_reloading(rig.engine);
	spokei_notify_reloaded(rig.engine, false);
	rig.error = 0;
	pass(110 * MS);
	assert_told("READY=1\nSTATUS=up", NULL);
	pass(10 * S);
	assert_told(NULL, NULL);
}

TEST(missed_sign_of_life_is_tried_again_soon)
{
	rig.watchdog_ns = 10 * S;
	notify(NULL);
	rig.count = 0;
	rig.error = -EAGAIN;
	pass(5010 * MS);
	rig.error = 0;
	pass(110 * MS);
	assert_told("WATCHDOG=1", NULL);
}

static unsigned events(const char *part)
{
	return scene_events(rig.engine, part);
}

TEST(absent_manager_is_no_error)
{
	rig.error = -ENOENT;
	notify("up");
	pass(10 * S);
	assert_int_equal(rig.tries, 1);
	assert_int_equal(events("NOTIFY_SOCKET"), 0);
	rig.process.env.manager = NULL;
	notify("up");
}

TEST(other_errors_are_logged_once)
{
	rig.watchdog_ns = S;
	rig.error = -EACCES;
	notify("up");
	pass(10 * S);
	assert_int_equal(events("NOTIFY_SOCKET cannot be notified"), 1);
}
