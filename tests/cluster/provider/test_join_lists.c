/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of peers and callers where providers of several engines listen together. */
#include "tests/cluster/provider/joinrig.h"
#include "tests/cluster/securerig.h"

#define AT_PORT PORT "/demo.Echo?retries=0"
#define AT_PATH PATH "?interface=demo.Echo&retries=0"
#define USER 1000u

/* Makes all providers; the first one has other options than those that join. */
static void provide_all(const char *url, const struct spoke_provider_options *first,
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

static void lists_of_an_address_hold_for_all_that_share_it(void **state)
{
	(void)state;
	provide_all(PORT "?shared=true&deny.from=10.0.0.0/8", NULL, NULL);
	joinrig.client.user.from = "10.0.0.7:0";
	joinrig_consume(AT_PORT, 30);
	joinrig_pass(SECOND);
	for (unsigned i = 0; i < ENGINES; i++) {
		assert_int_equal(joinrig_connections(i), 0);
		assert_true(refused(i) > 0);
	}
}

static void users_are_known_to_the_provider_that_gets_the_connection(void **state)
{
	static const struct spoke_provider_options options = { .allow_users = "1000",
							       .allow_callers = "uid:1000" };

	(void)state;
	provide_all(PATH "?shared=turns", &options, &options);
	joinrig_consume(AT_PATH, 30);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), 30);
	for (unsigned i = 0; i < ENGINES; i++)
		assert_int_equal(joinrig.sides[i].served, 10);
}

static void each_provider_has_lists_of_its_own_for_what_it_gets(void **state)
{
	static const struct spoke_provider_options others = { .allow_users = "1" };

	(void)state;
	provide_all(PATH "?shared=turns", NULL, &others);
	joinrig_consume(AT_PATH, 30);
	joinrig_pass(SECOND);
	assert_true(joinrig_connections(0) > 0);
	assert_int_equal(refused(0), 0);
	for (unsigned i = 1; i < ENGINES; i++) {
		assert_int_equal(joinrig_connections(i), 0);
		assert_true(refused(i) > 0);
	}
}

static void joined_provider_never_speaks_plain_where_tls_is_on(void **state)
{
	struct secure secure;
	const struct spoke_provider_options first = { .tls = &secure.provider };

	(void)state;
	if (!secure_begin(&secure, &joinrig.world, "tls"))
		return;
	provide_all(PORT "?shared=true", &first, NULL);
	joinrig_consume(AT_PORT, 30);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), 0);
	for (unsigned i = 0; i < ENGINES; i++) {
		const struct spoke_engine *engine = joinrig.sides[i].engine;

		assert_int_equal(joinrig.sides[i].served, 0);
		assert_true(spoke_stat_get(engine, SPOKE_STAT_CLOSED_HANDSHAKE) > 0);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, joinrig_set_up, joinrig_tear_down)
	static const struct CMUnitTest tests[] = {
		TEST(lists_of_an_address_hold_for_all_that_share_it),
		TEST(users_are_known_to_the_provider_that_gets_the_connection),
		TEST(each_provider_has_lists_of_its_own_for_what_it_gets),
		TEST(joined_provider_never_speaks_plain_where_tls_is_on),
	};

	return cmocka_run_group_tests_name("join_lists", tests, NULL, NULL);
}
