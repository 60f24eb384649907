/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers of several engines that listen together, their lists, and their ends in any order.
 */
#include "tests/cluster/provider/joinrig.h"
#include "tests/cluster/securerig.h"
#include "tests/support/test.h"
#include "transport/listen/handoff.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- providers of several engines that listen together */

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

/* --- lists of peers and callers where providers of several engines listen together */

#define JOIN_LISTS_AT_PORT PORT "/demo.Echo?retries=0"
#define JOIN_LISTS_AT_PATH PATH "?interface=demo.Echo&retries=0"
#define USER 1000u
/* Makes all providers; the first one has other options than those that join. */
static void join_lists_provide_all(const char *url, const struct spoke_provider_options *first,
				   const struct spoke_provider_options *others)
{
	for (unsigned i = 0; i < ENGINES; i++)
		joinrig_provide(i, i == 0 ? first : others);
	joinrig_listen(0, url);
	for (unsigned i = 1; i < ENGINES; i++)
		joinrig_join(i, 0);
	joinrig_pass(MS);
	joinrig.client.user.uid = USER;
}

static uint64_t refused(unsigned at)
{
	return spoke_stat_get(joinrig.sides[at].engine, SPOKE_STAT_REFUSED_ADDRESS);
}

TEST(lists_of_an_address_hold_for_all_that_share_it)
{
	join_lists_provide_all(PORT "?shared=true&deny.from=10.0.0.0/8", NULL, NULL);
	joinrig.client.user.from = "10.0.0.7:0";
	joinrig_consume(JOIN_LISTS_AT_PORT, 30);
	joinrig_pass(SECOND);
	for (unsigned i = 0; i < ENGINES; i++) {
		assert_int_equal(joinrig_connections(i), 0);
		assert_true(refused(i) > 0);
	}
}

TEST(users_are_known_to_the_provider_that_gets_the_connection)
{
	static const struct spoke_provider_options options = { .allow_users = "1000",
							       .allow_callers = "uid:1000" };

	join_lists_provide_all(PATH "?shared=turns", &options, &options);
	joinrig_consume(JOIN_LISTS_AT_PATH, 30);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), 30);
	for (unsigned i = 0; i < ENGINES; i++)
		assert_int_equal(joinrig.sides[i].served, 10);
}

TEST(each_provider_has_lists_of_its_own_for_what_it_gets)
{
	static const struct spoke_provider_options others = { .allow_users = "1" };

	join_lists_provide_all(PATH "?shared=turns", NULL, &others);
	joinrig_consume(JOIN_LISTS_AT_PATH, 30);
	joinrig_pass(SECOND);
	assert_true(joinrig_connections(0) > 0);
	assert_int_equal(refused(0), 0);
	for (unsigned i = 1; i < ENGINES; i++) {
		assert_int_equal(joinrig_connections(i), 0);
		assert_true(refused(i) > 0);
	}
}

TEST(joined_provider_never_speaks_plain_where_tls_is_on)
{
	struct secure secure;
	const struct spoke_provider_options first = { .tls = &secure.provider };

	if (!secure_begin(&secure, &joinrig.world, "tls"))
		return;
	join_lists_provide_all(PORT "?shared=true", &first, NULL);
	joinrig_consume(JOIN_LISTS_AT_PORT, 30);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), 0);
	for (unsigned i = 0; i < ENGINES; i++) {
		const struct spoke_engine *engine = joinrig.sides[i].engine;

		assert_int_equal(joinrig.sides[i].served, 0);
		assert_true(spoke_stat_get(engine, SPOKE_STAT_CLOSED_HANDSHAKE) > 0);
	}
}

/* --- providers that listen together and end in any order: no connection on its way is lost */

static void provide_two(const char *url)
{
	joinrig_provide(0, NULL);
	joinrig_provide(1, NULL);
	joinrig_listen(0, url);
	joinrig_join(1, 0);
}

/* Makes six connections; three are on their way to the second engine, which does not run. */
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

TEST(drain_accepts_connections_on_their_way)
{
	hand_three_over();
	drain(1);
	/* No call is lost: requests that were sent before the drain notice are served. */
	assert_int_equal(joinrig_ended(SPOKE_OK), 6);
	joinrig_pass(10 * SECOND);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), joinrig.count);
	assert_int_equal(joinrig_connections(0), 6);
	assert_int_equal(joinrig_connections(1), 0);
}

TEST(free_closes_connections_on_their_way)
{
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

TEST(engine_end_closes_connections_on_their_way)
{
	hand_three_over();
	joinrig_end(1);
	joinrig_pass(10 * SECOND);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), joinrig.count);
	assert_int_equal(joinrig_connections(0), 6);
}

TEST(others_serve_after_first_is_freed)
{
	hand_three_over();
	joinrig_end(0);
	joinrig_pass(SECOND);
	assert_int_equal(joinrig_connections(1), 3);
	assert_int_equal(joinrig.sides[1].served, 3);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), 3);
	assert_int_equal(joinrig.sides[1].served, 6);
}

TEST(others_accept_all_at_port_after_first_is_freed)
{
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

/* A drain accepts all clients that the network has connected, even if they are more than one turn
 * accepts. */
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

TEST(drain_accepts_backlog_at_port)
{
	who_waits_to_be_accepted_is_not_left_behind(PORT "?shared=true", AT_PORT);
}

TEST(drain_accepts_backlog_at_port_with_turns)
{
	who_waits_to_be_accepted_is_not_left_behind(PORT "?shared=turns", AT_PORT);
}

TEST(drain_accepts_backlog_at_path)
{
	who_waits_to_be_accepted_is_not_left_behind(PATH "?shared=true", AT_PATH);
}

/* The first engine does not know the second before it has run a turn. */
TEST(join_ends_when_first_is_freed_at_once)
{
	provide_two(PATH "?shared=true");
	spoke_provider_free(joinrig.sides[0].provider);
	joinrig_pass(SECOND);
	joinrig_end(0);
}

TEST(join_ends_when_second_is_freed_at_once)
{
	provide_two(PATH "?shared=true");
	joinrig_end(1);
	joinrig_consume(AT_PATH, 4);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), joinrig.count);
	assert_int_equal(joinrig.sides[0].served, 4);
}

/* The provider is not freed yet, but it has no addresses left to share. */
static void drained_provider_is_not_joined(const char *url)
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

TEST(drained_provider_is_not_joined_at_port)
{
	drained_provider_is_not_joined(PORT "?shared=true");
}

TEST(drained_provider_is_not_joined_at_port_with_turns)
{
	drained_provider_is_not_joined(PORT "?shared=turns");
}

TEST(drained_provider_is_not_joined_at_path)
{
	drained_provider_is_not_joined(PATH "?shared=true");
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

/* A connection is announced by a post, but the second parts before the post runs, and may be freed.
 */
TEST(parted_engine_is_not_called)
{
	const struct spoke_address peer = { 0 };
	_Atomic(struct spokei_weak *) places[2] = { NULL, NULL };
	unsigned arrived = 0;
	struct spokei_handoff_ends ends = { .joined = note_joined,
					    .arrive = note_arrived,
					    .second_arg = &arrived };
	struct spokei_handoff *handoff;
	struct spokei_handed handed;

	joinrig_provide(0, NULL);
	joinrig_provide(1, NULL);
	ends.first = spokei_weak_get(&places[0], joinrig.sides[0].engine);
	ends.second = spokei_weak_get(&places[1], joinrig.sides[1].engine);
	handoff = spokei_handoff_new(joinrig.sides[1].engine->env, &ends);
	assert_non_null(handoff);
	assert_false(spokei_handoff_offer(handoff, 7, &peer, 0));
	spokei_handoff_want(handoff, 2);
	assert_true(spokei_handoff_offer(handoff, 7, &peer, 0));
	joinrig_pass(MS);
	assert_int_equal(arrived, 1);
	assert_true(spokei_handoff_offer(handoff, 8, &peer, 0));
	assert_false(spokei_handoff_offer(handoff, 9, &peer, 0));
	spokei_handoff_part(handoff);
	assert_true(spokei_handoff_take(handoff, &handed));
	assert_true(spokei_handoff_take(handoff, &handed));
	assert_int_equal(handed.fd, 8);
	assert_false(spokei_handoff_take(handoff, &handed));
	joinrig_pass(MS);
	assert_int_equal(arrived, 1);
	spokei_handoff_want(handoff, 2);
	assert_false(spokei_handoff_offer(handoff, 9, &peer, 0));
	spokei_handoff_drop(handoff);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(spokei_weak_close(atomic_load(&places[i])));
		spokei_weak_drop(atomic_load(&places[i]));
	}
}

/* An engine that joined and parted leaves nothing behind at the first. */
TEST(first_drops_handoffs_of_engines_that_parted)
{
	size_t blocks = 0;

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
