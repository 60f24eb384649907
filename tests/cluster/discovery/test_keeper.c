/* SPDX-License-Identifier: Apache-2.0 */
/* A keeper's publications: each stays published until it is withdrawn. */
#include "tests/cluster/discovery/keeperrig.h"

#include <stdio.h>
#include <string.h>

static void publication_is_listed_until_withdrawn(void **state)
{
	(void)state;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	assert_int_equal(fakereg.publishes, 0); /* not from within the call */
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

static void each_address_is_listed_separately(void **state)
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

static void repeated_publication_is_sent_once(void **state)
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

static void newest_wish_wins_within_a_turn(void **state)
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

static void newest_wish_wins_over_request_in_flight(void **state)
{
	(void)state;
	fakereg.delay_ns = 100 * MS;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	spokei_keeper_withdraw_all(keeperrig.keeper);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg.publishes, 1); /* unchanged: it was wanted all the time */
	spokei_keeper_withdraw_all(keeperrig.keeper);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg.withdraws, 1);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg.publishes, 1); /* not before the withdrawal is done */
	keeperrig_pass(SECOND);
	assert_int_equal(fakereg.publishes, 2);
	assert_int_equal(fakereg_listed(ECHO), 1);
	assert_int_equal(keeperrig_true(), 1);
}

static void newer_url_replaces_older_one(void **state)
{
	(void)state;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE "?weight=1");
	keeperrig_pass(10 * MS);
	fakereg.delay_ns = 100 * MS;
	keeperrig_publish(PLACE "?weight=2");
	keeperrig_pass(50 * MS);
	assert_int_equal(fakereg.withdraws, 1);
	assert_int_equal(fakereg.publishes, 1); /* an address is never published twice */
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

static void newer_url_does_not_wait_for_failing_withdrawal(void **state)
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

static void failed_publication_is_retried_until_success(void **state)
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

static void refused_request_is_retried(void **state)
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

static void failed_withdrawal_is_retried(void **state)
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

static void republication_does_not_wait_for_failing_withdrawal(void **state)
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

static void lost_publication_is_repeated_at_once(void **state)
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

static void repeated_losses_are_retried_after_retry_period(void **state)
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

static void loss_during_registry_failure_is_recovered(void **state)
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
	assert_int_equal(keeperrig_events("cannot publish"), 2); /* a new series of failures */
}

static void given_up_wishes_resume_when_registry_answers(void **state)
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
	fakereg_lose_all(false); /* shows that the registry responds */
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

static void invalid_options_are_rejected_with_message(void **state)
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

static void publications_are_limited(void **state)
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

static void all_publications_can_be_replaced_at_limit(void **state)
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
		KEPT(publication_is_listed_until_withdrawn),
		KEPT(each_address_is_listed_separately),
		KEPT(repeated_publication_is_sent_once),
		KEPT(newest_wish_wins_within_a_turn),
		KEPT(newest_wish_wins_over_request_in_flight),
		KEPT(newer_url_replaces_older_one),
		KEPT(newer_url_does_not_wait_for_failing_withdrawal),
		KEPT(failed_publication_is_retried_until_success),
		KEPT(refused_request_is_retried),
		KEPT(failed_withdrawal_is_retried),
		KEPT(republication_does_not_wait_for_failing_withdrawal),
		KEPT(lost_publication_is_repeated_at_once),
		KEPT(repeated_losses_are_retried_after_retry_period),
		KEPT(loss_during_registry_failure_is_recovered),
		KEPT(given_up_wishes_resume_when_registry_answers),
		KEPT(invalid_options_are_rejected_with_message),
		KEPT(publications_are_limited),
		KEPT(all_publications_can_be_replaced_at_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
