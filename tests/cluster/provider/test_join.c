/* SPDX-License-Identifier: Apache-2.0 */
/* Providers of several engines that listen together. */
#include "tests/cluster/provider/joinrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define AT_PORT PORT "/demo.Echo"
#define AT_PATH PATH "?interface=demo.Echo"

static struct spoke_provider *provider(unsigned at)
{
	return joinrig.sides[at].provider;
}

/* Makes all providers; the first one listens, and the others join. */
static void provide_all(const char *url)
{
	for (unsigned i = 0; i < ENGINES; i++)
		joinrig_provide(i, NULL);
	joinrig_listen(0, url);
	for (unsigned i = 1; i < ENGINES; i++)
		joinrig_join(i, 0);
	joinrig_pass(MS);
}

FIXTURE(joinrig_set_up, joinrig_tear_down);

TEST(shared_port_is_distributed_by_network)
{
	unsigned served = 0;

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

TEST(join_uses_port_that_network_chose)
{
	char first[64];
	char second[64];

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

TEST(connections_to_path_are_handed_over_in_turn)
{
	connections_are_handed_on_in_turn(PATH "?shared=true", AT_PATH);
}

TEST(connections_to_port_are_handed_over_when_shared_is_turns)
{
	connections_are_handed_on_in_turn(PORT "?shared=turns", AT_PORT);
}

/* Unlike a port that the kernel distributes, to which unrelated sockets may bind. */
TEST(port_with_turns_is_not_shared_with_other_sockets)
{
	for (unsigned i = 0; i < 2; i++)
		joinrig_provide(i, NULL);
	joinrig_listen(0, PORT "?shared=turns");
	assert_int_equal(spoke_provider_listen(provider(1), PORT "?shared=true"), SPOKE_ESYSTEM);
	assert_int_equal(spoke_provider_listen(provider(1), PORT "?shared=turns"), SPOKE_ESYSTEM);
}

TEST(join_ignores_addresses_that_are_not_shared)
{
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

/* A provider cannot listen at the port of another one by mistake. */
TEST(port_is_shared_only_if_both_providers_share_it)
{
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

TEST(join_rejects_invalid_pairs)
{
	struct spoke_provider *other;

	joinrig_provide(0, NULL);
	joinrig_provide(1, NULL);
	joinrig_listen(0, PORT "?shared=true");
	assert_int_equal(spoke_provider_new(joinrig.sides[0].engine, NULL, &other), 0);
	assert_int_equal(spoke_provider_join(other, provider(0)), SPOKE_EINVAL);
	assert_int_equal(spoke_provider_join(provider(0), provider(0)), SPOKE_EINVAL);
	joinrig_join(1, 0);
	assert_int_equal(spoke_provider_join(provider(1), provider(0)), SPOKE_ESTATE);
	assert_int_equal(spoke_provider_listen(provider(1), PATH), SPOKE_ESTATE);
	/* A provider that has joined cannot be joined. */
	joinrig_provide(2, NULL);
	assert_int_equal(spoke_provider_join(provider(2), provider(1)), SPOKE_EINVAL);
	assert_int_equal(spoke_engine_drain(joinrig.sides[2].engine, SECOND), 0);
	joinrig_pass(MS);
	assert_int_equal(spoke_provider_join(provider(2), provider(0)), SPOKE_ECLOSED);
}

TEST(full_engine_is_skipped)
{
	const struct spoke_provider_options few = { .connections_max = 2 };

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
	/* ... but no longer. */
	for (unsigned i = 0; i < 12; i++)
		spoke_consumer_free(joinrig.callers[i].consumer);
	joinrig_pass(SECOND);
	joinrig.count = 0;
	joinrig_consume(AT_PATH, 3);
	joinrig_pass(SECOND);
	for (unsigned i = 0; i < ENGINES; i++)
		assert_int_equal(joinrig_connections(i), 1);
}

/* Joins a provider that has room for this many connections, and listens at a port too. */
static void join_limited(uint32_t connections_max)
{
	const struct spoke_provider_options few = { .connections_max = connections_max };

	joinrig_provide(0, NULL);
	joinrig_provide(1, &few);
	joinrig_listen(0, PATH "?shared=true");
	joinrig_listen(1, PORT);
	joinrig_join(1, 0);
}

/* However many connections arrive together, and whichever engines serve the others. */
TEST(engine_gets_no_more_connections_than_it_has_room)
{
	join_limited(3);
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

/* The engine became full while connections were on their way. */
TEST(handed_connections_over_the_limit_are_closed)
{
	join_limited(2);
	joinrig_pass(MS);
	spokei_world_hold(&joinrig.sides[1].process, 100 * MS);
	joinrig_consume(AT_PORT, 2);
	joinrig_consume(AT_PATH, 6);
	joinrig_pass(150 * MS);
	assert_int_equal(joinrig_connections(1), 2);
	assert_int_equal(spoke_stat_get(joinrig.sides[1].engine, SPOKE_STAT_ACCEPTS_REFUSED_TOTAL),
			 2);
	/* The consumers reconnect. */
	joinrig_pass(10 * SECOND);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), joinrig.count);
	assert_int_equal(joinrig_connections(0), 6);
}

TEST(connections_on_their_way_are_bounded)
{
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

TEST(registry_lists_only_the_first)
{
	const struct spoke_provider_options options = { .registry = "file:///run/list" };
	size_t wanted;

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
		/* The memory for the hand-over may remain. */
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

TEST(join_survives_failing_allocations)
{
	try_to_join(SPOKEI_FAULTS_MEMORY, -ENOMEM);
}

TEST(join_undoes_listeners_when_listen_fails)
{
	try_to_join(SPOKEI_FAULTS_LISTEN, -EADDRINUSE);
}

/* An engine that cannot take a connection closes it, and the consumer connects again. */
TEST(handing_over_survives_failing_allocations)
{
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
