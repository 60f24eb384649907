/* SPDX-License-Identifier: Apache-2.0 */
/* Providers that listen together and end in any order: no connection on its way is lost. */
#include "tests/cluster/provider/joinrig.h"
#include "tests/support/test.h"

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

FIXTURE(joinrig_set_up, joinrig_tear_down);

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
	_Atomic(struct spokei_desk *) places[2] = { NULL, NULL };
	unsigned arrived = 0;
	struct spokei_handoff_ends ends = { .joined = note_joined,
					    .arrive = note_arrived,
					    .second_arg = &arrived };
	struct spokei_handoff *handoff;
	struct spokei_handed handed;

	joinrig_provide(0, NULL);
	joinrig_provide(1, NULL);
	ends.first = spokei_desk_get(&places[0], joinrig.sides[0].engine);
	ends.second = spokei_desk_get(&places[1], joinrig.sides[1].engine);
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
		assert_true(spokei_desk_close(atomic_load(&places[i])));
		spokei_desk_drop(atomic_load(&places[i]));
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
