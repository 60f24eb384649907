/* SPDX-License-Identifier: Apache-2.0 */
/* Providers of several engines that listen as one. */
#include "tests/cluster/provider/joinrig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define AT_PORT PORT "/demo.Echo"
#define AT_PATH PATH "?interface=demo.Echo"

static struct spoke_provider *provider(unsigned at)
{
	return joinrig.sides[at].provider;
}

/* All sides, of which the first listens and the others join. */
static void provide_all(const char *url)
{
	for (unsigned i = 0; i < ENGINES; i++)
		joinrig_provide(i, NULL);
	joinrig_listen(0, url);
	for (unsigned i = 1; i < ENGINES; i++)
		joinrig_join(i, 0);
	joinrig_pass(MS);
}

static void a_port_is_shared_out_by_the_network(void **state)
{
	unsigned served = 0;

	(void)state;
	provide_all(PORT "?shared=true");
	joinrig_consume(AT_PORT, 30);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), joinrig.count);
	for (unsigned i = 0; i < ENGINES; i++) {
		assert_true(joinrig.sides[i].served > 0);
		assert_int_equal(joinrig.sides[i].served, joinrig_connections(i));
		served += joinrig.sides[i].served;
	}
	assert_int_equal(served, 30);
}

static void a_port_that_the_network_chose_is_joined(void **state)
{
	char first[64];
	char second[64];

	(void)state;
	joinrig_provide(0, NULL);
	joinrig_provide(1, NULL);
	joinrig_listen(0, "dubbo://127.0.0.1:0?shared=true");
	joinrig_join(1, 0);
	assert_true(spoke_provider_address(provider(0), 0, first, sizeof(first)) > 0);
	assert_true(spoke_provider_address(provider(1), 0, second, sizeof(second)) > 0);
	assert_string_equal(first, second);
	assert_int_equal(spoke_provider_address(provider(1), 1, second, sizeof(second)), 0);
}

static void connections_are_handed_on_in_turn(const char *url, const char *place)
{
	provide_all(url);
	joinrig_consume(place, 9);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), joinrig.count);
	for (unsigned i = 0; i < ENGINES; i++) {
		assert_int_equal(joinrig.sides[i].served, 3);
		assert_int_equal(joinrig_connections(i), 3);
		assert_int_equal(spoke_stat_get(joinrig.sides[i].engine, SPOKE_STAT_ACCEPTED), 3);
	}
	assert_int_equal(spoke_provider_address(provider(1), 0, (char[64]){ "" }, 64), 0);
}

static void connections_to_a_path_are_handed_on_in_turn(void **state)
{
	(void)state;
	connections_are_handed_on_in_turn(PATH "?shared=true", AT_PATH);
}

static void connections_to_a_port_are_handed_on_in_turn_where_that_is_said(void **state)
{
	(void)state;
	connections_are_handed_on_in_turn(PORT "?shared=turns", AT_PORT);
}

/* Unlike one that the system shares out, of which others may be part who nobody knows of. */
static void a_port_with_turns_is_nobody_elses(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++)
		joinrig_provide(i, NULL);
	joinrig_listen(0, PORT "?shared=turns");
	assert_int_equal(spoke_provider_listen(provider(1), PORT "?shared=true"), SPOKE_ESYSTEM);
	assert_int_equal(spoke_provider_listen(provider(1), PORT "?shared=turns"), SPOKE_ESYSTEM);
}

static void only_shared_places_are_joined(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++)
		joinrig_provide(i, NULL);
	assert_int_equal(spoke_provider_join(provider(1), provider(0)), SPOKE_EINVAL);
	joinrig_listen(0, PORT);
	joinrig_listen(0, PATH "?shared=false");
	assert_int_equal(spoke_provider_join(provider(1), provider(0)), SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(joinrig.sides[1].engine), "shared=true"));
	joinrig_listen(0, "dubbo://127.0.0.1:20881?shared=true");
	joinrig_join(1, 0);
	joinrig_consume(AT_PORT, 8);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), joinrig.count);
	assert_int_equal(joinrig.sides[0].served, 8);
}

/* By mistake nobody listens at another's port. */
static void a_port_is_shared_when_both_say_so(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++)
		joinrig_provide(i, NULL);
	joinrig_listen(0, PORT "?shared=true");
	joinrig_listen(0, "dubbo://127.0.0.1:20881");
	assert_int_equal(spoke_provider_listen(provider(1), PORT), SPOKE_ESYSTEM);
	assert_int_equal(spoke_provider_listen(provider(1), "dubbo://127.0.0.1:20881?shared=true"),
			 SPOKE_ESYSTEM);
	assert_int_equal(spoke_provider_listen(provider(1), PORT "?shared=perhaps"), SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(joinrig.sides[1].engine), "true, turns or false"));
	joinrig_listen(1, PORT "?shared=true");
}

static void what_makes_no_sense_is_refused(void **state)
{
	struct spoke_provider *other;

	(void)state;
	joinrig_provide(0, NULL);
	joinrig_provide(1, NULL);
	joinrig_listen(0, PORT "?shared=true");
	assert_int_equal(spoke_provider_new(joinrig.sides[0].engine, NULL, &other), 0);
	assert_int_equal(spoke_provider_join(other, provider(0)), SPOKE_EINVAL);
	assert_int_equal(spoke_provider_join(provider(0), provider(0)), SPOKE_EINVAL);
	joinrig_join(1, 0);
	assert_int_equal(spoke_provider_join(provider(1), provider(0)), SPOKE_ESTATE);
	assert_int_equal(spoke_provider_listen(provider(1), PATH), SPOKE_ESTATE);
	/* Those who joined are joined by nobody. */
	joinrig_provide(2, NULL);
	assert_int_equal(spoke_provider_join(provider(2), provider(1)), SPOKE_EINVAL);
	assert_int_equal(spoke_engine_drain(joinrig.sides[2].engine, SECOND), 0);
	joinrig_pass(MS);
	assert_int_equal(spoke_provider_join(provider(2), provider(0)), SPOKE_ECLOSED);
}

static void one_that_is_full_is_passed_over(void **state)
{
	const struct spoke_provider_options few = { .connections_max = 2 };

	(void)state;
	joinrig_provide(0, &few);
	joinrig_provide(1, &few);
	joinrig_provide(2, NULL);
	joinrig_listen(0, PATH "?shared=true");
	joinrig_join(1, 0);
	joinrig_join(2, 0);
	joinrig_pass(MS);
	for (unsigned i = 0; i < 12; i++) {
		joinrig_consume(AT_PATH, 1);
		joinrig_pass(10 * MS);
	}
	assert_int_equal(joinrig_connections(0), 2);
	assert_int_equal(joinrig_connections(1), 2);
	assert_int_equal(joinrig_connections(2), 8);
	/* ... and no longer. */
	for (unsigned i = 0; i < 12; i++)
		spoke_consumer_free(joinrig.callers[i].consumer);
	joinrig_pass(SECOND);
	joinrig.count = 0;
	joinrig_consume(AT_PATH, 3);
	joinrig_pass(SECOND);
	for (unsigned i = 0; i < ENGINES; i++)
		assert_int_equal(joinrig_connections(i), 1);
}

/* However many come at one time, and wherever those are from whom it has. */
static void one_is_offered_no_more_than_it_has_room_for(void **state)
{
	const struct spoke_provider_options few = { .connections_max = 3 };

	(void)state;
	joinrig_provide(0, NULL);
	joinrig_provide(1, &few);
	joinrig_listen(0, PATH "?shared=true");
	joinrig_listen(1, PORT);
	joinrig_join(1, 0);
	joinrig_consume(AT_PORT, 2);
	joinrig_pass(10 * MS);
	assert_int_equal(joinrig_connections(1), 2);
	spokei_world_hold(&joinrig.sides[1].process, 100 * MS);
	joinrig_consume(AT_PATH, 6);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), joinrig.count);
	assert_int_equal(joinrig_connections(0), 5);
	assert_int_equal(joinrig_connections(1), 3);
	assert_int_equal(spoke_stat_get(joinrig.sides[1].engine, SPOKE_STAT_ACCEPTS_REFUSED_TOTAL),
			 0);
}

/* It became full while they were on their way. */
static void what_is_too_much_on_its_way_is_closed(void **state)
{
	const struct spoke_provider_options few = { .connections_max = 2 };

	(void)state;
	joinrig_provide(0, NULL);
	joinrig_provide(1, &few);
	joinrig_listen(0, PATH "?shared=true");
	joinrig_listen(1, PORT);
	joinrig_join(1, 0);
	joinrig_pass(MS);
	spokei_world_hold(&joinrig.sides[1].process, 100 * MS);
	joinrig_consume(AT_PORT, 2);
	joinrig_consume(AT_PATH, 6);
	joinrig_pass(150 * MS);
	assert_int_equal(joinrig_connections(1), 2);
	assert_int_equal(spoke_stat_get(joinrig.sides[1].engine, SPOKE_STAT_ACCEPTS_REFUSED_TOTAL),
			 2);
	/* They come again. */
	joinrig_pass(10 * SECOND);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), joinrig.count);
	assert_int_equal(joinrig_connections(0), 6);
}

static void no_more_than_a_bounded_number_is_on_its_way(void **state)
{
	(void)state;
	joinrig_provide(0, NULL);
	joinrig_provide(1, NULL);
	joinrig_listen(0, PATH "?shared=true");
	joinrig_join(1, 0);
	joinrig_pass(MS);
	spokei_world_hold(&joinrig.sides[1].process, 100 * MS);
	joinrig_consume(AT_PATH, CALLERS);
	joinrig_pass(50 * MS);
	assert_int_equal(joinrig_connections(0), CALLERS - 64);
	assert_int_equal(joinrig_connections(1), 0);
	joinrig_pass(100 * MS);
	assert_int_equal(joinrig_connections(1), 64);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), joinrig.count);
}

static void only_the_first_is_listed(void **state)
{
	const struct spoke_provider_options options = { .registry = "file:///run/list" };
	size_t wanted;

	(void)state;
	joinrig_provide(0, &options);
	joinrig_provide(1, &options);
	joinrig_listen(0, PORT "?shared=true");
	joinrig_join(1, 0);
	joinrig_pass(SECOND);
	assert_int_equal(spoke_provider_registered(provider(0), &wanted), 1);
	assert_int_equal(wanted, 1);
	assert_int_equal(spoke_provider_registered(provider(1), &wanted), 0);
	assert_int_equal(wanted, 0);
}

/* --- no memory, no sockets */

static void try_to_join(enum spokei_faults_kind kind, int error)
{
	struct joinrig_side *side = &joinrig.sides[1];
	unsigned nth = 1;
	int joined;

	joinrig_provide(0, NULL);
	joinrig_provide(1, NULL);
	joinrig_listen(0, PORT "?shared=true");
	joinrig_listen(0, "dubbo://127.0.0.1:20881?shared=true");
	joinrig_listen(0, PATH "?shared=true");
	do {
		size_t blocks = side->faulty.blocks;
		size_t fds = side->faulty.fds;

		assert_true(nth < 50);
		spokei_faults_fail(&side->faulty, kind, nth++, error, false);
		joined = spoke_provider_join(side->provider, provider(0));
		spokei_faults_heal(&side->faulty);
		if (joined == 0)
			break;
		assert_true(joined == SPOKE_ENOMEM || joined == SPOKE_ESYSTEM);
		joinrig_pass(MS);
		/* Its desk may stay. */
		assert_in_range(side->faulty.blocks, blocks, blocks + 1);
		assert_int_equal(side->faulty.fds, fds);
		assert_int_equal(spoke_provider_address(side->provider, 0, (char[64]){ "" }, 64),
				 0);
	} while (joined != 0);
	assert_true(nth > 3);
	joinrig_pass(MS);
	joinrig_consume(AT_PATH, 4);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), joinrig.count);
	assert_int_equal(side->served, 2);
}

static void joining_bears_that_there_is_no_memory(void **state)
{
	(void)state;
	try_to_join(SPOKEI_FAULTS_MEMORY, -ENOMEM);
}

static void joining_bears_that_it_cannot_listen(void **state)
{
	(void)state;
	try_to_join(SPOKEI_FAULTS_LISTEN, -EADDRINUSE);
}

/* Whoever cannot take what was handed to it says so, and the caller comes again. */
static void taking_bears_that_there_is_no_memory(void **state)
{
	(void)state;
	joinrig_provide(0, NULL);
	joinrig_provide(1, NULL);
	joinrig_listen(0, PATH "?shared=true");
	joinrig_join(1, 0);
	joinrig_pass(MS);
	for (unsigned nth = 1; nth < 12; nth++) {
		spokei_faults_fail(&joinrig.sides[1].faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM,
				   false);
		joinrig_consume(AT_PATH, 2);
		joinrig_pass(SECOND);
	}
	spokei_faults_heal(&joinrig.sides[1].faulty);
	assert_true(joinrig.sides[1].faulty.failed[SPOKEI_FAULTS_MEMORY] > 0);
	joinrig_pass(10 * SECOND);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), joinrig.count);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, joinrig_set_up, joinrig_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_port_is_shared_out_by_the_network),
		TEST(a_port_that_the_network_chose_is_joined),
		TEST(connections_to_a_path_are_handed_on_in_turn),
		TEST(connections_to_a_port_are_handed_on_in_turn_where_that_is_said),
		TEST(a_port_with_turns_is_nobody_elses),
		TEST(only_shared_places_are_joined),
		TEST(a_port_is_shared_when_both_say_so),
		TEST(what_makes_no_sense_is_refused),
		TEST(one_that_is_full_is_passed_over),
		TEST(one_is_offered_no_more_than_it_has_room_for),
		TEST(what_is_too_much_on_its_way_is_closed),
		TEST(no_more_than_a_bounded_number_is_on_its_way),
		TEST(only_the_first_is_listed),
		TEST(joining_bears_that_there_is_no_memory),
		TEST(joining_bears_that_it_cannot_listen),
		TEST(taking_bears_that_there_is_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
