/* SPDX-License-Identifier: Apache-2.0 */
/* Time and turns: late turns, the present, sources, and a machine that has slept. */
#include "core/engine/members.h"
#include "core/engine/parts.h"
#include "core/engine/source.h"
#include "core/virtual/world.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/engine.h>
#include <spoke/wheel.h>

#include <string.h>

/* --- late turns: how long peers that send without end may hold back the timers of others */

#define LATE (50 * MS) /* the default of the option */

enum {
	PEERS = 300
};

/* A process that reads its peers slowly: each one takes `cost_ns`. */
static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_alarm alarm;
	uint64_t alarm_ns; /* when it was due, as the process saw it; 0: not yet */
	uint64_t cost_ns;
	unsigned rounds;
	bool floods; /* there is always more to read */
	bool was_reported[PEERS];
	unsigned reported;
	unsigned repeated; /* reports of a peer that was reported before */
	int listener;
	struct peer {
		struct spoke_watch watch;
		int far;
	} peers[PEERS];
	unsigned peer_count;
	struct spokei_source source;
} rig;

static uint64_t now(void)
{
	return rig.process.env.now(rig.process.env.ctx);
}

static void note_alarm(struct spoke_alarm *alarm)
{
	(void)alarm;
	rig.alarm_ns = now();
}

static void note_round(struct spokei_world_process *process)
{
	(void)process;
	rig.rounds++;
}

static void peer_ready(struct spoke_watch *watch, unsigned io)
{
	struct peer *peer = spoke_container_of(watch, struct peer, watch);
	const struct spoke_env *env = rig.engine->env;
	bool *was = &rig.was_reported[peer - rig.peers];
	char byte;

	(void)io;
	rig.repeated += *was;
	rig.reported += !*was;
	*was = true;
	spokei_world_hold(&rig.process, rig.cost_ns);
	if (!rig.floods)
		assert_int_equal(env->net->read(env->ctx, watch->fd, &byte, 1), 1);
}

STEP(set_up)
{
	memset(&rig, 0, sizeof(rig));
	scene_open(&rig.world, 11);
	rig.engine = scene_engine(&rig.world, &rig.process, NULL, NULL);
	spokei_vnet_route(rig.world.net, "mem:late", SPOKEI_VNET_AT_ONCE);
}

STEP(tear_down)
{
	const struct spoke_env *env = rig.engine->env;

	spokei_source_end(&rig.source);
	for (unsigned i = 0; i < rig.peer_count; i++) {
		env->loop->watch(rig.engine->loop, &rig.peers[i].watch, 0);
		env->net->close(env->ctx, rig.peers[i].watch.fd);
		env->net->close(env->ctx, rig.peers[i].far);
	}
	scene_leave(&rig.process, NULL, &rig.engine);
	spokei_world_fini(&rig.world);
}

FIXTURE(set_up, tear_down);

/* Connects peers that have each sent a byte. */
static void connect_peers(unsigned count)
{
	const struct spoke_env *env = rig.engine->env;
	char x = 'x';
	struct iovec byte = { &x, 1 };
	struct spoke_address at;

	assert_int_equal(env->net->parse(env->ctx, "mem:late", &at), 0);
	assert_int_equal(env->net->listen(env->ctx, &at, PEERS, &rig.listener), 0);
	for (unsigned i = 0; i < count; i++) {
		struct peer *peer = &rig.peers[i];
		struct spoke_address from;

		peer->watch.ready = peer_ready;
		assert_int_equal(env->net->connect(env->ctx, &at, &peer->far), 0);
		assert_int_equal(env->net->accept(env->ctx, rig.listener, &peer->watch.fd, &from),
				 0);
		env->loop->watch(rig.engine->loop, &peer->watch, SPOKE_IO_READ);
		assert_int_equal(env->net->write(env->ctx, peer->far, &byte, 1), 1);
	}
	rig.peer_count = count;
	env->net->close(env->ctx, rig.listener);
}

/* Sets a timer, makes its turn late, and runs until it fires. Returns how long after the begin of
 * that turn. */
static uint64_t delay_of_late_timer(void)
{
	uint64_t begin_ns;

	assert_int_equal(spoke_alarm_after(rig.engine, &rig.alarm, 10 * MS, note_alarm), SPOKE_OK);
	rig.engine->due_ns = spoke_wheel_next(rig.engine->wheel);
	spokei_world_stall(&rig.world, 500 * MS);
	begin_ns = rig.world.now_ns;
	rig.process.turned = note_round;
	while (rig.alarm_ns == 0)
		assert_true(spokei_world_step(&rig.world, begin_ns + 100000 * MS));
	return rig.alarm_ns - begin_ns;
}

TEST(peer_that_floods_postpones_timers_for_one_round)
{
	rig.floods = true;
	rig.cost_ns = MS;
	connect_peers(1);
	assert_in_range(delay_of_late_timer(), MS, 2 * MS);
	assert_int_equal(rig.rounds, 2);
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_TURNS_LATE), 1);
}

TEST(slow_round_of_peer_that_floods_postpones_no_timer)
{
	rig.floods = true;
	rig.cost_ns = 400 * MS;
	connect_peers(1);
	assert_in_range(delay_of_late_timer(), 0, 400 * MS);
	assert_int_equal(rig.rounds, 1);
}

/* Each round serves at most 64 of them. */
TEST(peers_that_are_new_postpone_timers_no_longer_than_late)
{
	rig.cost_ns = 2 * MS;
	connect_peers(PEERS);
	assert_in_range(delay_of_late_timer(), LATE, LATE + 64 * rig.cost_ns);
	assert_in_range(rig.reported, 1, PEERS - 1);
}

TEST(peers_are_all_read_before_timers_if_time_allows)
{
	rig.cost_ns = LATE / (PEERS + 1);
	connect_peers(PEERS);
	assert_in_range(delay_of_late_timer(), 0, LATE);
	assert_int_equal(rig.reported, PEERS);
	assert_int_equal(rig.repeated, 0);
}

/* Bytes that came while the rounds lasted may be unread, so a deadline in that time is not over. */
TEST(late_turn_ends_no_deadline_after_its_begin)
{
	uint64_t begin_ns;

	rig.floods = true;
	rig.cost_ns = 20 * MS;
	connect_peers(1);
	begin_ns = delay_of_late_timer();
	assert_in_range(begin_ns, 1, LATE);
	assert_true(spoke_wheel_now(rig.engine->wheel) <= rig.engine->turn_ns);
}

static bool source_has(struct spokei_source *source)
{
	(void)source;
	return true;
}

static bool source_sleep(struct spokei_source *source)
{
	(void)source;
	return false;
}

static void source_ready(struct spokei_source *source)
{
	(void)source;
	spokei_world_hold(&rig.process, rig.cost_ns);
}

TEST(source_that_floods_postpones_timers_for_one_round)
{
	rig.cost_ns = MS;
	rig.source = (struct spokei_source){
		.has = source_has,
		.sleep = source_sleep,
		.ready = source_ready,
	};
	spokei_source_wake(rig.engine, &rig.source);
	assert_in_range(delay_of_late_timer(), MS, 2 * MS);
	assert_int_equal(rig.rounds, 2);
}

/* --- the time of an engine: in a turn that of its begin, outside of one the present */

static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_post post;
	uint64_t begin_ns; /* the engine's time when the post ran */
	uint64_t later_ns; /* ... and after it took some time, and used the engine */
} present_rig;

STEP(present_set_up)
{
	memset(&present_rig, 0, sizeof(present_rig));
	scene_open(&present_rig.world, 5);
	present_rig.engine = scene_engine(&present_rig.world, &present_rig.process, NULL, NULL);
	assert_int_equal(spoke_engine_turn(present_rig.engine, false), SPOKE_OK);
}

STEP(present_tear_down)
{
	scene_leave(&present_rig.process, NULL, &present_rig.engine);
	spokei_world_fini(&present_rig.world);
}

FIXTURE(present_set_up, present_tear_down);

TEST(code_outside_of_turn_sees_the_present)
{
	present_rig.world.now_ns += 5 * SECOND;
	assert_int_equal(spoke_engine_now(present_rig.engine), present_rig.world.now_ns);
}

TEST(check_outside_of_turn_refreshes_times)
{
	for (unsigned i = 0; i < 3; i++) {
		present_rig.world.now_ns += SECOND;
		assert_int_equal(spokei_engine_check(present_rig.engine), SPOKE_OK);
		assert_int_equal(present_rig.engine->begin_ns, present_rig.world.now_ns);
		assert_int_equal(present_rig.engine->settle_ns, present_rig.world.now_ns);
		present_rig.world.now_ns += MS;
		assert_int_equal(spokei_engine_settled(present_rig.engine),
				 present_rig.world.now_ns);
	}
}

TEST(event_outside_of_turn_has_the_present_time)
{
	struct spoke_event event = { 0 };

	present_rig.world.now_ns += 5 * SECOND;
	assert_int_equal(spokei_engine_check(present_rig.engine), SPOKE_OK);
	spokei_event(present_rig.engine, SPOKE_EINVAL, "a test has an event");
	assert_int_equal(spoke_event_get(present_rig.engine, 1, &event), SPOKE_OK);
	assert_int_equal(event.at_ns, present_rig.world.now_ns);
}

static void look_twice(struct spoke_post *post)
{
	(void)post;
	present_rig.begin_ns = spoke_engine_now(present_rig.engine);
	spokei_world_hold(&present_rig.process, 20 * MS);
	assert_int_equal(spokei_engine_check(present_rig.engine), SPOKE_OK);
	present_rig.later_ns = spoke_engine_now(present_rig.engine);
}

TEST(time_in_turn_stays_that_of_its_begin)
{
	present_rig.world.now_ns += SECOND;
	present_rig.post.run = look_twice;
	spoke_engine_post(present_rig.engine, &present_rig.post);
	assert_int_equal(spoke_engine_turn(present_rig.engine, false), SPOKE_OK);
	assert_int_equal(present_rig.begin_ns, present_rig.world.now_ns);
	assert_int_equal(present_rig.later_ns, present_rig.begin_ns);
}

/* --- sources: the turn of an engine whose loop has only looked at them */

static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_loop loop; /* that calls poll() and prepare_to_sleep(), here: the test */
	struct spoke_engine *engine;
	struct spoke_alarm alarm;
	unsigned alarms;
	struct spokei_source source;
	unsigned waiting; /* things that the source has */
	unsigned served;
} source_rig;

static bool own_source_has(struct spokei_source *source)
{
	(void)source;
	return source_rig.waiting > 0;
}

static bool own_source_sleep(struct spokei_source *source)
{
	return !own_source_has(source);
}

static void own_source_ready(struct spokei_source *source)
{
	(void)source;
	source_rig.waiting--;
	source_rig.served++;
}

static void source_note_alarm(struct spoke_alarm *alarm)
{
	(void)alarm;
	source_rig.alarms++;
}

STEP(source_set_up)
{
	struct spoke_engine_options options = { .env = &source_rig.process.env };

	memset(&source_rig, 0, sizeof(source_rig));
	scene_open(&source_rig.world, 5);
	spokei_world_process_init(&source_rig.process, &source_rig.world);
	source_rig.loop = *source_rig.process.env.loop;
	source_rig.loop.prepares_to_sleep = true;
	source_rig.process.env.loop = &source_rig.loop;
	assert_int_equal(spoke_engine_new(&options, &source_rig.engine), SPOKE_OK);
	source_rig.source = (struct spokei_source){
		.has = own_source_has,
		.sleep = own_source_sleep,
		.ready = own_source_ready,
	};
	spokei_source_wake(source_rig.engine, &source_rig.source);
}

STEP(source_tear_down)
{
	spokei_source_end(&source_rig.source);
	scene_leave(&source_rig.process, NULL, &source_rig.engine);
	spokei_world_fini(&source_rig.world);
}

FIXTURE(source_set_up, source_tear_down);

/* One round of a loop that looks: with a poll of descriptors, or by a look alone. */
static void turn(bool polls)
{
	if (!polls)
		assert_int_equal(spokei_engine_up.poll(source_rig.engine), SPOKE_LOOP_COME);
	spokei_engine_up.begin(source_rig.engine);
	spokei_engine_up.turn(source_rig.engine, 0);
	spokei_engine_up.settle(source_rig.engine);
}

static void set_alarm(uint64_t delay_ns)
{
	assert_int_equal(spoke_alarm_after(source_rig.engine, &source_rig.alarm, delay_ns,
					   source_note_alarm),
			 SPOKE_OK);
	spokei_engine_up.settle(source_rig.engine);
}

TEST(timer_waits_for_poll_after_look)
{
	set_alarm(10 * MS);
	source_rig.world.now_ns += 11 * MS;
	source_rig.waiting = 1;
	turn(false);
	assert_int_equal(source_rig.served, 1);
	assert_int_equal(source_rig.alarms, 0);
	turn(true);
	assert_int_equal(source_rig.alarms, 1);
	assert_int_equal(spoke_stat_get(source_rig.engine, SPOKE_STAT_TURNS_LATE), 0);
}

TEST(late_turn_is_counted_once_when_look_began_it)
{
	for (unsigned i = 1; i <= 3; i++) {
		set_alarm(10 * MS);
		source_rig.world.now_ns += 500 * MS;
		source_rig.waiting = 1;
		turn(false);
		assert_int_equal(source_rig.alarms, i - 1);
		assert_true(spokei_engine_late(source_rig.engine)); /* for messages that are read */
		for (unsigned rounds = 0; source_rig.alarms < i; rounds++) {
			assert_in_range(rounds, 0, SPOKEI_ENGINE_LATE_ROUNDS);
			source_rig.world.now_ns += MS;
			turn(true);
		}
		assert_int_equal(spoke_stat_get(source_rig.engine, SPOKE_STAT_TURNS_LATE), i);
	}
}

/* The look finds the answer that the timer waits for. */
TEST(late_turn_is_counted_though_its_timer_ends)
{
	set_alarm(10 * MS);
	source_rig.world.now_ns += 500 * MS;
	source_rig.waiting = 1;
	turn(false);
	assert_true(spoke_alarm_cancel(&source_rig.alarm));
	turn(true);
	turn(true);
	assert_int_equal(spoke_stat_get(source_rig.engine, SPOKE_STAT_TURNS_LATE), 1);
}

/*
 * --- suspend of the machine: its detection, the notification of members, and the absence of
 * other effects
 */

#define S UINT64_C(1000000000)

enum {
	MEMBERS = 4,
};

struct member {
	struct spokei_member member;
	struct spokei_task gone;
	unsigned woken;
	struct member *drops; /* leaves when this member is notified, or NULL */
	struct member *joins;
};

struct fixture {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_alarm tick;
	unsigned ticks;
	uint64_t ticks_hash; /* hash of the times of all ticks */
	uint64_t boot_ns;    /* value of the replaced clock */
	uint64_t hold_ns;    /* delay before and after its reading, once */
	struct member members[MEMBERS];
};

static struct fixture fixture;

static void tick(struct spoke_alarm *alarm)
{
	(void)alarm;
	fixture.ticks++;
	fixture.ticks_hash = fixture.ticks_hash * 31 + fixture.world.now_ns;
}

static void begin(void)
{
	memset(&fixture, 0, sizeof(fixture));
	scene_open(&fixture.world, 9);
	fixture.engine = scene_engine(&fixture.world, &fixture.process, NULL, NULL);
	assert_int_equal(spoke_alarm_every(fixture.engine, &fixture.tick, 10 * MS, tick), SPOKE_OK);
}

static void end(void)
{
	scene_leave(&fixture.process, NULL, &fixture.engine);
	fixture.engine = NULL;
	spokei_world_fini(&fixture.world);
}

STEP(sleep_set_up)
{
	begin();
}

STEP(sleep_tear_down)
{
	end();
}

FIXTURE(sleep_set_up, sleep_tear_down);

static void member_gone(struct spokei_task *task)
{
	struct member *member = spoke_container_of(task, struct member, gone);

	spokei_member_drop(&member->member);
}

static void member_close(struct spokei_member *roll)
{
	struct member *member = spoke_container_of(roll, struct member, member);

	member->gone.run = member_gone;
	spokei_run_freeing(fixture.engine, &member->gone);
}

static void member_woke(struct spokei_member *roll)
{
	struct member *member = spoke_container_of(roll, struct member, member);

	member->woken++;
	if (member->drops)
		spokei_member_drop(&member->drops->member);
	if (member->joins)
		spokei_member_add(fixture.engine, &member->joins->member);
	member->joins = NULL;
}

static struct member *init_member(int at)
{
	struct member *member = &fixture.members[at];

	member->member = (struct spokei_member){ .kind = "test",
						 .close = member_close,
						 .woke = member_woke };
	return member;
}

static struct member *add_member(int at)
{
	struct member *member = init_member(at);

	spokei_member_add(fixture.engine, &member->member);
	return member;
}

static void pass(uint64_t ns)
{
	spokei_world_run(&fixture.world, fixture.world.now_ns + ns);
}

static uint64_t sleeps(void)
{
	return spoke_stat_get(fixture.engine, SPOKE_STAT_SLEEPS);
}

TEST(sleep_is_counted_reported_and_logged_once)
{
	struct member *one = add_member(0);
	struct member *deaf = add_member(1);
	struct member *two = add_member(2);

	deaf->member.woke = NULL;
	pass(S);
	spokei_world_sleep(&fixture.world, 90 * S + 340 * MS);
	pass(S);
	assert_int_equal(sleeps(), 1);
	assert_int_equal(one->woken, 1);
	assert_int_equal(two->woken, 1);
	assert_string_equal(spoke_engine_why(fixture.engine), "the machine slept for 90.3 s");
	spokei_world_sleep(&fixture.world, 2 * S);
	pass(S);
	assert_int_equal(sleeps(), 2);
	assert_int_equal(one->woken, 2);
	assert_string_equal(spoke_engine_why(fixture.engine), "the machine slept for 2.0 s");
}

TEST(a_sleep_before_the_first_turn_counts)
{
	spokei_world_sleep(&fixture.world, 5 * S);
	pass(200 * MS);
	assert_int_equal(sleeps(), 1);
}

TEST(a_sleep_is_noticed_within_a_tenth_of_a_second_of_turns)
{
	pass(S);
	spokei_world_sleep(&fixture.world, 5 * S);
	pass(110 * MS);
	assert_int_equal(sleeps(), 1);
}

TEST(the_second_clock_is_not_read_in_every_turn)
{
	pass(S);
	spokei_world_sleep(&fixture.world, 5 * S);
	pass(200 * MS);
	assert_int_equal(sleeps(), 1);
	/* Checks are 10 ms or 100 ms apart, so sleeps between two checks count as one. */
	for (int i = 0; i < 3; i++) {
		spokei_world_sleep(&fixture.world, 5 * S);
		pass(20 * MS);
	}
	pass(200 * MS);
	assert_in_range(sleeps(), 2, 3);
}

TEST(small_steps_and_steps_back_are_no_sleep)
{
	struct member *member = add_member(0);

	pass(S);
	for (int i = 0; i < 50; i++) {
		spokei_world_sleep(&fixture.world, S);
		pass(200 * MS);
	}
	for (int i = 0; i < 20; i++) {
		fixture.world.slept_ns -= 2 * S;
		pass(200 * MS);
	}
	assert_int_equal(sleeps(), 0);
	assert_int_equal(member->woken, 0);
	/* A difference of more than one second counts, whatever the drift so far. */
	spokei_world_sleep(&fixture.world, S + 1);
	pass(200 * MS);
	assert_int_equal(sleeps(), 1);
}

TEST(a_clock_that_begins_behind_the_other_is_fine)
{
	fixture.world.slept_ns -= 100 * S; /* below zero, so it wraps */
	pass(S);
	assert_int_equal(sleeps(), 0);
	spokei_world_sleep(&fixture.world, 3 * S);
	pass(S);
	assert_int_equal(sleeps(), 1);
}

/* Holds the process up between the readings of the two clocks, before and after the second one. */
static uint64_t odd_boot_now(void *ctx)
{
	uint64_t read_ns;

	(void)ctx;
	fixture.world.now_ns += fixture.hold_ns;
	read_ns = fixture.world.now_ns;
	fixture.world.now_ns += fixture.hold_ns;
	fixture.hold_ns = 0;
	return read_ns + fixture.world.slept_ns;
}

TEST(being_held_up_between_two_clocks_is_no_sleep)
{
	fixture.process.env.boot_now = odd_boot_now;
	for (int i = 0; i < 20; i++) {
		fixture.hold_ns = 5 * S;
		pass(300 * MS);
		assert_int_equal(fixture.hold_ns, 0);
		pass(i % 2 ? 10 * S : MS);
	}
	assert_int_equal(sleeps(), 0);
	pass(S);
	spokei_world_sleep(&fixture.world, 2 * S);
	pass(S);
	assert_int_equal(sleeps(), 1);
}

TEST(notified_member_may_remove_and_add_members)
{
	struct member *one = add_member(0);
	struct member *two = add_member(1);
	struct member *three = add_member(2);
	struct member *four = init_member(3);

	one->drops = one;
	two->drops = three;
	two->joins = four;
	pass(S);
	spokei_world_sleep(&fixture.world, 5 * S);
	pass(S);
	assert_int_equal(one->woken, 1);
	assert_int_equal(two->woken, 1);
	assert_int_equal(three->woken, 0);
	assert_int_equal(four->woken, 0);
	spokei_world_sleep(&fixture.world, 5 * S);
	pass(S);
	assert_int_equal(one->woken, 1);
	assert_int_equal(two->woken, 2);
	assert_int_equal(four->woken, 1);
}

TEST(closed_member_is_not_notified_of_sleep)
{
	struct member *member = add_member(0);

	pass(S);
	spokei_members_close_all(fixture.engine);
	spokei_members_wake_all(fixture.engine);
	assert_int_equal(member->woken, 0);
}

/* Runs one seed with and without sleep: turns, times and random numbers are the same. */
TEST(a_world_that_slept_goes_on_as_one_that_did_not)
{
	uint64_t hash[2];
	uint64_t dice[2];
	unsigned ticks[2];

	for (unsigned slept = 0; slept < 2; slept++) {
		end();
		begin();
		for (int i = 0; i < 20; i++) {
			pass(333 * MS);
			if (slept)
				spokei_world_sleep(&fixture.world, 3600 * S);
		}
		assert_int_equal(sleeps(), slept ? 19 : 0);
		hash[slept] = fixture.ticks_hash;
		dice[slept] = fixture.world.dice;
		ticks[slept] = fixture.ticks;
	}
	assert_int_equal(ticks[0], ticks[1]);
	assert_true(hash[0] == hash[1]);
	assert_true(dice[0] == dice[1]);
	assert_int_equal(spoke_stat_get(fixture.engine, SPOKE_STAT_TURNS_LATE), 0);
}
