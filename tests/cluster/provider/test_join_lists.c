/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of peers and callers where providers of several engines listen together. */
#include "tests/cluster/provider/joinrig.h"
#include "tests/cluster/securerig.h"
#include "tests/support/test.h"

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

FIXTURE(joinrig_set_up, joinrig_tear_down);

TEST(lists_of_an_address_hold_for_all_that_share_it)
{
	provide_all(PORT "?shared=true&deny.from=10.0.0.0/8", NULL, NULL);
	joinrig.client.user.from = "10.0.0.7:0";
	joinrig_consume(AT_PORT, 30);
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

	provide_all(PATH "?shared=turns", &options, &options);
	joinrig_consume(AT_PATH, 30);
	joinrig_call();
	assert_int_equal(joinrig_ended(SPOKE_OK), 30);
	for (unsigned i = 0; i < ENGINES; i++)
		assert_int_equal(joinrig.sides[i].served, 10);
}

TEST(each_provider_has_lists_of_its_own_for_what_it_gets)
{
	static const struct spoke_provider_options others = { .allow_users = "1" };

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

TEST(joined_provider_never_speaks_plain_where_tls_is_on)
{
	struct secure secure;
	const struct spoke_provider_options first = { .tls = &secure.provider };

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
