/* SPDX-License-Identifier: Apache-2.0 */
/* What is published, and stays so. */
#include "tests/cluster/discovery/keeperrig.h"

#include <stdio.h>
#include <string.h>

static void what_is_published_is_listed_until_it_is_withdrawn(void **state)
{
	(void)state;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	assert_int_equal(fakereg.publishes, 0); /* never from inside */
	assert_int_equal(keeperrig_true(), 0);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 1);
	assert_int_equal(keeperrig_true(), 1);
	spokei_keeper_withdraw_all(keeperrig.keeper);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 0);
	assert_int_equal(fakereg.publishes, 1);
	assert_int_equal(fakereg.withdraws, 1);
}

static void several_places_are_listed_each_for_itself(void **state)
{
	(void)state;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_publish(OTHER);
	keeperrig_publish(PLACE "?group=g");
	keeperrig_publish(PLACE "?version=1");
	keeperrig_publish("dubbo+unix:/run/echo.sock?interface=demo.Echo");
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 5);
	assert_int_equal(keeperrig_true(), 5);
}

static void the_same_thing_said_twice_is_published_once(void **state)
{
	(void)state;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg.publishes, 1);
	assert_int_equal(keeperrig_true(), 1);
}

static void the_newest_intent_wins_within_a_turn(void **state)
{
	(void)state;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	spokei_keeper_withdraw_all(keeperrig.keeper);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg.publishes, 1);
	assert_int_equal(fakereg_listed(ECHO), 1);
	spokei_keeper_withdraw_all(keeperrig.keeper);
	keeperrig_publish(PLACE);
	spokei_keeper_withdraw_all(keeperrig.keeper);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 0);
}

static void the_newest_intent_wins_over_one_that_is_under_way(void **state)
{
	(void)state;
	fakereg.delay_ns = 100 * MS;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	spokei_keeper_withdraw_all(keeperrig.keeper);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg.publishes, 1); /* it was wanted all the time */
	spokei_keeper_withdraw_all(keeperrig.keeper);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg.withdraws, 1);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg.publishes, 1); /* until the withdrawal is done */
	keeperrig_pass(SECOND);
	assert_int_equal(fakereg.publishes, 2);
	assert_int_equal(fakereg_listed(ECHO), 1);
	assert_int_equal(keeperrig_true(), 1);
}

static void a_newer_url_takes_the_place_of_the_older_one(void **state)
{
	(void)state;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE "?weight=1");
	keeperrig_pass(10 * MS);
	fakereg.delay_ns = 100 * MS;
	keeperrig_publish(PLACE "?weight=2");
	keeperrig_pass(50 * MS);
	assert_int_equal(fakereg.withdraws, 1);
	assert_int_equal(fakereg.publishes, 1); /* there are never two of one place */
	keeperrig_pass(SECOND);
	assert_int_equal(fakereg_listed(ECHO), 1);
	assert_string_equal(fakereg_first(ECHO), PLACE "?weight=2");
	keeperrig_publish(PLACE "?weight=3");
	keeperrig_publish(PLACE "?weight=2");
	keeperrig_pass(SECOND);
	assert_int_equal(fakereg_listed(ECHO), 1);
	assert_string_equal(fakereg_first(ECHO), PLACE "?weight=2");
	assert_int_equal(fakereg.publishes, 2);
}

static void a_newer_url_does_not_wait_for_ever_for_the_older_one_to_go(void **state)
{
	(void)state;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE "?weight=1");
	keeperrig_pass(10 * MS);
	fakereg.keeps = true;
	keeperrig_publish(PLACE "?weight=2");
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed_with("weight=2"), 1);
	fakereg.keeps = false;
	keeperrig_pass(RETRY_NS * 12 / 10 + 10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 1);
	assert_int_equal(fakereg_listed_with("weight=2"), 1);
}

static void a_failure_is_repeated_after_a_pause_for_as_long_as_it_takes(void **state)
{
	uint64_t before_ns = 0;

	(void)state;
	fakereg.fails = SPOKE_ECONNECT;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	for (unsigned i = 1; i <= 50; i++) {
		while (fakereg.publishes < i)
			keeperrig_pass(MS);
		if (i > 1) {
			assert_true(fakereg.last_ns - before_ns >= RETRY_NS * 8 / 10);
			assert_true(fakereg.last_ns - before_ns <= RETRY_NS * 12 / 10 + 10 * MS);
		}
		before_ns = fakereg.last_ns;
	}
	keeperrig_pass(10 * MS);
	fakereg.fails = 0;
	keeperrig_pass(RETRY_NS * 12 / 10 + 10 * MS);
	assert_int_equal(keeperrig_true(), 1);
	assert_int_equal(fakereg.publishes, 51);
	keeperrig_pass(60 * SECOND);
	assert_int_equal(fakereg.publishes, 51);
	assert_int_equal(keeperrig_events("cannot publish demo.Echo"), 1);
	assert_int_equal(keeperrig_events(": recovered"), 1);
}

static void what_cannot_even_be_asked_is_repeated_too(void **state)
{
	(void)state;
	fakereg.refuses = SPOKE_ENOMEM;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg.publishes, 1);
	fakereg.refuses = 0;
	keeperrig_pass(RETRY_NS * 12 / 10 + 10 * MS);
	assert_int_equal(keeperrig_true(), 1);
	fakereg.refuses = SPOKE_EUNAVAILABLE;
	spokei_keeper_withdraw_all(keeperrig.keeper);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 1);
	fakereg.refuses = 0;
	keeperrig_pass(RETRY_NS * 12 / 10 + 10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 0);
}

static void a_withdrawal_that_fails_is_repeated(void **state)
{
	(void)state;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	fakereg.fails = SPOKE_ECONNECT;
	spokei_keeper_withdraw_all(keeperrig.keeper);
	keeperrig_pass(12 * SECOND);
	assert_in_range(fakereg.withdraws, 2, 4);
	assert_int_equal(fakereg_listed(ECHO), 1);
	fakereg.fails = 0;
	keeperrig_pass(RETRY_NS * 12 / 10 + 10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 0);
	assert_int_equal(keeperrig_events("cannot withdraw"), 1);
}

static void who_is_wanted_again_does_not_wait_for_a_withdrawal_that_fails(void **state)
{
	(void)state;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	fakereg.fails = SPOKE_ECONNECT;
	spokei_keeper_withdraw_all(keeperrig.keeper);
	keeperrig_pass(10 * MS);
	fakereg.fails = 0;
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	assert_int_equal(keeperrig_true(), 1);
	assert_int_equal(fakereg_listed(ECHO), 1);
}

static void what_is_lost_is_said_anew_at_once(void **state)
{
	(void)state;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_publish(OTHER);
	for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
		keeperrig_pass(10 * SECOND);
		fakereg_lose_all(one_by_one);
		assert_int_equal(fakereg_listed(ECHO), 0);
		assert_int_equal(keeperrig_true(), 0);
		keeperrig_pass(10 * MS);
		assert_int_equal(fakereg_listed(ECHO), 2);
		assert_int_equal(keeperrig_true(), 2);
	}
	assert_int_equal(keeperrig_events("entries lost"), 2);
	assert_int_equal(keeperrig_events(": recovered"), 2);
}

static void what_is_lost_again_and_again_is_said_anew_at_the_pace_of_retries(void **state)
{
	(void)state;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * SECOND);
	for (int i = 0; i < 100; i++) {
		fakereg_lose_all(false);
		keeperrig_pass(100 * MS);
	}
	assert_in_range(fakereg.publishes, 3, 5);
	keeperrig_pass(RETRY_NS * 12 / 10 + 10 * MS);
	assert_int_equal(keeperrig_true(), 1);
}

static void what_is_lost_while_the_registry_fails_is_not_forgotten(void **state)
{
	(void)state;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * SECOND);
	fakereg.fails = SPOKE_ECONNECT;
	fakereg_lose_all(false);
	keeperrig_pass(60 * SECOND);
	assert_int_equal(keeperrig_true(), 0);
	fakereg.fails = 0;
	keeperrig_pass(RETRY_NS * 12 / 10 + 10 * MS);
	assert_int_equal(keeperrig_true(), 1);
	assert_int_equal(fakereg_listed(ECHO), 1);
	assert_int_equal(keeperrig_events("cannot publish"), 1);
	fakereg.fails = SPOKE_ECONNECT;
	fakereg_lose_all(false);
	keeperrig_pass(10 * MS);
	assert_int_equal(keeperrig_events("cannot publish"), 2); /* another row */
}

static void retries_may_have_a_limit_but_nothing_stays_lost(void **state)
{
	const struct spokei_keeper_options options = { .retries_max = 2, .retry_ns = SECOND };

	(void)state;
	fakereg.fails = SPOKE_ECONNECT;
	keeperrig_keep(&options);
	keeperrig_publish(PLACE);
	keeperrig_pass(60 * SECOND);
	assert_int_equal(fakereg.publishes, 3);
	assert_int_equal(keeperrig_events("given up after 2 retries"), 1);
	fakereg.fails = 0;
	keeperrig_pass(60 * SECOND);
	assert_int_equal(keeperrig_true(), 0);
	fakereg_lose_all(false); /* a sign of life */
	keeperrig_pass(10 * MS);
	assert_int_equal(keeperrig_true(), 1);
	fakereg.fails = SPOKE_ECONNECT;
	fakereg_lose_all(true);
	keeperrig_pass(60 * SECOND);
	assert_int_equal(keeperrig_events("given up after 2 retries"), 2);
	fakereg.fails = 0;
	keeperrig_publish(OTHER);
	keeperrig_pass(10 * MS);
	assert_int_equal(keeperrig_true(), 2);
}

static void wrong_options_are_refused_with_a_sentence(void **state)
{
	static const struct {
		struct spokei_keeper_options options;
		int error;
		const char *words;
	} cases[] = {
		{ { .registry = "http://[" }, SPOKE_ESYNTAX, "option registry, byte" },
		{ { .retry_ns = 1 }, SPOKE_ERANGE, "registry.retry.period" },
		{ { .cache = "" }, SPOKE_EINVAL, "registry.cache" },
	};
	struct spokei_keeper_options none = { .registry = "gopher://127.0.0.1" };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(keeperrig_try(&cases[i].options), cases[i].error);
		assert_non_null(strstr(spoke_engine_why(keeperrig.engine), cases[i].words));
	}
	assert_int_equal(spokei_keeper_new(keeperrig.engine, &none, NULL, NULL, &keeperrig.keeper),
			 SPOKE_EUNSUPPORTED);
	assert_non_null(strstr(spoke_engine_why(keeperrig.engine), "gopher"));
	fakereg.wrong = SPOKE_EINVAL;
	assert_int_equal(keeperrig_try(NULL), SPOKE_EINVAL);
	assert_null(keeperrig.keeper);
}

static void there_is_an_end_to_what_can_be_published(void **state)
{
	char url[64];

	(void)state;
	keeperrig_keep(NULL);
	for (int i = 1; i <= 1024; i++) {
		(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:%d/demo.Echo", i);
		keeperrig_publish(url);
	}
	assert_int_equal(spokei_keeper_publish(keeperrig.keeper, ECHO, PLACE), SPOKE_ELIMIT);
	assert_int_equal(spokei_keeper_publish(keeperrig.keeper, ECHO, "no url"), SPOKE_ESYNTAX);
	keeperrig_pass(10 * MS);
	assert_int_equal(keeperrig_true(), 1024);
	spokei_keeper_withdraw_all(keeperrig.keeper);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 0);
	assert_int_equal(spokei_keeper_publish(keeperrig.keeper, ECHO, "no url"), SPOKE_ESYNTAX);
	keeperrig_publish(PLACE);
}

static void all_that_is_published_may_be_published_anew(void **state)
{
	char url[64];

	(void)state;
	keeperrig_keep(NULL);
	for (int weight = 1; weight <= 3; weight++) {
		for (int i = 1; i <= 1024; i++) {
			(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:%d/demo.Echo?weight=%d",
				       i, weight);
			keeperrig_publish(url);
		}
		assert_int_equal(spokei_keeper_publish(keeperrig.keeper, ECHO, PLACE),
				 SPOKE_ELIMIT);
		(void)snprintf(url, sizeof(url), "weight=%d", weight);
		keeperrig_pass(10 * MS);
		assert_int_equal(keeperrig_true(), 1024);
		assert_int_equal(fakereg_listed_with(url), 1024);
	}
	fakereg.keeps = true;
	for (int weight = 4; weight <= 6; weight++) {
		for (int i = 1; i <= 1024; i++) {
			(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:%d/demo.Echo?weight=%d",
				       i, weight);
			keeperrig_publish(url);
		}
	}
	assert_int_equal(spokei_keeper_publish(keeperrig.keeper, ECHO, url), SPOKE_ELIMIT);
	fakereg.keeps = false;
}

#define KEPT(test) cmocka_unit_test_setup_teardown(test, keeperrig_set_up, keeperrig_tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		KEPT(what_is_published_is_listed_until_it_is_withdrawn),
		KEPT(several_places_are_listed_each_for_itself),
		KEPT(the_same_thing_said_twice_is_published_once),
		KEPT(the_newest_intent_wins_within_a_turn),
		KEPT(the_newest_intent_wins_over_one_that_is_under_way),
		KEPT(a_newer_url_takes_the_place_of_the_older_one),
		KEPT(a_newer_url_does_not_wait_for_ever_for_the_older_one_to_go),
		KEPT(a_failure_is_repeated_after_a_pause_for_as_long_as_it_takes),
		KEPT(what_cannot_even_be_asked_is_repeated_too),
		KEPT(a_withdrawal_that_fails_is_repeated),
		KEPT(who_is_wanted_again_does_not_wait_for_a_withdrawal_that_fails),
		KEPT(what_is_lost_is_said_anew_at_once),
		KEPT(what_is_lost_again_and_again_is_said_anew_at_the_pace_of_retries),
		KEPT(what_is_lost_while_the_registry_fails_is_not_forgotten),
		KEPT(retries_may_have_a_limit_but_nothing_stays_lost),
		KEPT(wrong_options_are_refused_with_a_sentence),
		KEPT(there_is_an_end_to_what_can_be_published),
		KEPT(all_that_is_published_may_be_published_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
