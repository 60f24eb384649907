/* SPDX-License-Identifier: Apache-2.0 */
/* Providers that listen as one, and end in any order: nothing gets lost on its way. */
#include "tests/cluster/provider/joinrig.h"

#include "transport/listen/handoff.h"

#define AT_PORT PORT "/demo.Echo"
#define AT_PATH PATH "?interface=demo.Echo"

static void provide_two(const char *url)
{
	joinrig_provide(0, NULL);
	joinrig_provide(1, NULL);
	joinrig_listen(0, url);
	joinrig_join(1, 0);
}

/* Six connections, of which three are on their way to the second, which does not turn. */
static void hand_three_over(void)
{
	provide_two(PATH "?shared=true");
	joinrig_pass(MS);
	spokei_world_hold(&joinrig.sides[1].process, 100 * MS);
	joinrig_consume(AT_PATH, 6);
	joinrig_call();
	joinrig_pass(50 * MS);
	assert_int_equal(joinrig_connections(0), 3);
	assert_int_equal(joinrig.sides[0].served, 3);
}

static void drain(unsigned at)
{
	assert_int_equal(spoke_engine_drain(joinrig.sides[at].engine, 10 * SECOND), 0);
}

static void who_drains_takes_what_is_on_its_way(void **state)
{
	(void)state;
	hand_three_over();
	drain(1);
	/* Nothing is lost: they are told that it did not run, goodbye, and come to the first. */
	assert_int_equal(joinrig_ended(SPOKE_OK), 3);
	assert_int_equal(joinrig_ended(SPOKE_EREFUSED), 3);
	joinrig_pass(10 * SECOND);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), joinrig.count);
	assert_int_equal(joinrig_connections(0), 6);
	assert_int_equal(joinrig_connections(1), 0);
}

static void who_is_freed_closes_what_is_on_its_way(void **state)
{
	(void)state;
	hand_three_over();
	spoke_provider_free(joinrig.sides[1].provider);
	joinrig.sides[1].provider = NULL;
	joinrig_pass(SECOND);
	assert_int_equal(spoke_stat_get(joinrig.sides[1].engine, SPOKE_STAT_ACCEPTS_FAILED), 3);
	joinrig_pass(10 * SECOND);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), joinrig.count);
	assert_int_equal(joinrig_connections(0), 6);
}

static void whose_engine_ends_closes_what_is_on_its_way(void **state)
{
	(void)state;
	hand_three_over();
	joinrig_end(1);
	joinrig_pass(10 * SECOND);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), joinrig.count);
	assert_int_equal(joinrig_connections(0), 6);
}

static void the_others_go_on_without_the_first(void **state)
{
	(void)state;
	hand_three_over();
	joinrig_end(0);
	joinrig_pass(SECOND);
	assert_int_equal(joinrig_connections(1), 3);
	assert_int_equal(joinrig.sides[1].served, 3);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), 3);
	assert_int_equal(joinrig.sides[1].served, 6);
}

static void at_a_port_the_others_take_all_without_the_first(void **state)
{
	(void)state;
	provide_two(PORT "?shared=true");
	joinrig_consume(AT_PORT, 8);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), joinrig.count);
	drain(0);
	joinrig_pass(10 * SECOND);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), joinrig.count);
	assert_int_equal(joinrig_connections(1), 8);
}

/* Who is connected as far as the network knows is nobody to be left behind: there are more than a
 * turn accepts. */
static void who_waits_to_be_accepted_is_not_left_behind(const char *url, const char *place)
{
	provide_two(url);
	joinrig_pass(MS);
	spokei_world_hold(&joinrig.sides[0].process, 100 * MS);
	joinrig_consume(place, CALLERS);
	joinrig_call();
	joinrig_pass(50 * MS);
	drain(0);
	assert_int_equal(joinrig_ended(SPOKE_OK) + joinrig_ended(SPOKE_EREFUSED), CALLERS);
	assert_true(joinrig.sides[1].served > 0);
}

static void who_waits_at_a_port_is_not_left_behind(void **state)
{
	(void)state;
	who_waits_to_be_accepted_is_not_left_behind(PORT "?shared=true", AT_PORT);
}

static void who_waits_at_a_port_with_turns_is_not_left_behind(void **state)
{
	(void)state;
	who_waits_to_be_accepted_is_not_left_behind(PORT "?shared=turns", AT_PORT);
}

static void who_waits_at_a_path_is_not_left_behind(void **state)
{
	(void)state;
	who_waits_to_be_accepted_is_not_left_behind(PATH "?shared=true", AT_PATH);
}

/* Before the first has turned, it does not know of the second. */
static void the_first_ends_before_it_knows(void **state)
{
	(void)state;
	provide_two(PATH "?shared=true");
	spoke_provider_free(joinrig.sides[0].provider);
	joinrig_pass(SECOND);
	joinrig_end(0);
}

static void the_second_ends_before_the_first_knows(void **state)
{
	(void)state;
	provide_two(PATH "?shared=true");
	joinrig_end(1);
	joinrig_consume(AT_PATH, 4);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), joinrig.count);
	assert_int_equal(joinrig.sides[0].served, 4);
}

/* It is not freed yet, but there is nothing to listen at with it. */
static void one_that_was_drained_is_not_joined(const char *url)
{
	char at[64];

	joinrig_provide(0, NULL);
	joinrig_provide(1, NULL);
	joinrig_listen(0, url);
	drain(0);
	joinrig_pass(MS);
	assert_int_equal(spoke_provider_join(joinrig.sides[1].provider, joinrig.sides[0].provider),
			 SPOKE_ECLOSED);
	assert_int_equal(spoke_provider_address(joinrig.sides[1].provider, 0, at, sizeof(at)), 0);
	joinrig_listen(1, url);
}

static void one_that_was_drained_is_not_joined_at_a_port(void **state)
{
	(void)state;
	one_that_was_drained_is_not_joined(PORT "?shared=true");
}

static void one_that_was_drained_is_not_joined_at_a_port_with_turns(void **state)
{
	(void)state;
	one_that_was_drained_is_not_joined(PORT "?shared=turns");
}

static void one_that_was_drained_is_not_joined_at_a_path(void **state)
{
	(void)state;
	one_that_was_drained_is_not_joined(PATH "?shared=true");
}

static void note_joined(void *first, struct spokei_handoff *handoff)
{
	(void)first;
	spokei_handoff_drop(handoff);
}

static void note_arrived(void *second)
{
	++*(unsigned *)second;
}

/* It was told that something had come, and parts before it hears that: it may be freed by then. */
static void who_has_parted_is_not_touched(void **state)
{
	const struct spoke_address peer = { 0 };
	_Atomic(struct spokei_desk *) places[2] = { NULL, NULL };
	unsigned arrived = 0;
	struct spokei_handoff_ends ends = { .joined = note_joined,
					    .arrive = note_arrived,
					    .second_arg = &arrived };
	struct spokei_handoff *handoff;
	struct spokei_handed handed;

	(void)state;
	joinrig_provide(0, NULL);
	joinrig_provide(1, NULL);
	ends.first = spokei_desk_get(&places[0], joinrig.sides[0].engine);
	ends.second = spokei_desk_get(&places[1], joinrig.sides[1].engine);
	handoff = spokei_handoff_new(joinrig.sides[1].engine->env, &ends);
	assert_non_null(handoff);
	assert_false(spokei_handoff_offer(handoff, 7, &peer));
	spokei_handoff_want(handoff, 2);
	assert_true(spokei_handoff_offer(handoff, 7, &peer));
	joinrig_pass(MS);
	assert_int_equal(arrived, 1);
	assert_true(spokei_handoff_offer(handoff, 8, &peer));
	assert_false(spokei_handoff_offer(handoff, 9, &peer));
	spokei_handoff_part(handoff);
	assert_true(spokei_handoff_take(handoff, &handed));
	assert_true(spokei_handoff_take(handoff, &handed));
	assert_int_equal(handed.fd, 8);
	assert_false(spokei_handoff_take(handoff, &handed));
	joinrig_pass(MS);
	assert_int_equal(arrived, 1);
	spokei_handoff_want(handoff, 2);
	assert_false(spokei_handoff_offer(handoff, 9, &peer));
	spokei_handoff_drop(handoff);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(spokei_desk_close(atomic_load(&places[i])));
		spokei_desk_drop(atomic_load(&places[i]));
	}
}

/* Whoever comes and goes leaves nothing behind at the first. */
static void many_join_one_after_the_other(void **state)
{
	size_t blocks = 0;

	(void)state;
	joinrig_provide(0, NULL);
	joinrig_listen(0, PATH "?shared=true");
	for (unsigned i = 0; i < 10; i++) {
		joinrig_provide(1, NULL);
		joinrig_join(1, 0);
		joinrig_pass(MS);
		if (i == 1)
			blocks = joinrig.sides[1].faulty.blocks;
		else if (i > 1)
			assert_int_equal(joinrig.sides[1].faulty.blocks, blocks);
		joinrig_end(1);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, joinrig_set_up, joinrig_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(who_drains_takes_what_is_on_its_way),
		TEST(who_is_freed_closes_what_is_on_its_way),
		TEST(whose_engine_ends_closes_what_is_on_its_way),
		TEST(the_others_go_on_without_the_first),
		TEST(at_a_port_the_others_take_all_without_the_first),
		TEST(who_waits_at_a_port_is_not_left_behind),
		TEST(who_waits_at_a_port_with_turns_is_not_left_behind),
		TEST(who_waits_at_a_path_is_not_left_behind),
		TEST(the_first_ends_before_it_knows),
		TEST(the_second_ends_before_the_first_knows),
		TEST(one_that_was_drained_is_not_joined_at_a_port),
		TEST(one_that_was_drained_is_not_joined_at_a_port_with_turns),
		TEST(one_that_was_drained_is_not_joined_at_a_path),
		TEST(who_has_parted_is_not_touched),
		TEST(many_join_one_after_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
