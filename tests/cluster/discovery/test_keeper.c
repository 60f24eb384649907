/* SPDX-License-Identifier: Apache-2.0 */
/* A keeper's publications: each stays published until it is withdrawn. The end of a keeper, and
 * failed allocations. */
#include "tests/cluster/discovery/keeperrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

FIXTURE(keeperrig_set_up, keeperrig_tear_down);

TEST(publication_is_listed_until_withdrawn)
{
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

TEST(each_address_is_listed_separately)
{
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

TEST(repeated_publication_is_sent_once)
{
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg.publishes, 1);
	assert_int_equal(keeperrig_true(), 1);
}

TEST(newest_request_wins_within_a_turn)
{
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

TEST(newest_request_wins_over_one_in_flight)
{
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

TEST(newer_url_replaces_older_one)
{
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

TEST(newer_url_does_not_wait_for_failing_withdrawal)
{
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

TEST(failed_publication_is_retried_until_success)
{
	uint64_t before_ns = 0;

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

TEST(refused_request_is_retried)
{
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

TEST(failed_withdrawal_is_retried)
{
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

TEST(failed_publication_is_withdrawn_when_it_is_no_longer_wanted)
{
	keeperrig_keep(NULL);
	fakereg.fails = SPOKE_ETIMEOUT;
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg.publishes, 1);
	fakereg.fails = 0;
	spokei_keeper_withdraw_all(keeperrig.keeper);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg.withdraws, 1); /* it may have been listed all the same */
	keeperrig_pass(60 * SECOND);
	assert_int_equal(fakereg.publishes, 1);
	assert_int_equal(fakereg.withdraws, 1);
}

TEST(republication_does_not_wait_for_failing_withdrawal)
{
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

TEST(lost_publication_is_repeated_at_once)
{
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_publish(OTHER);
	for (int i = 0; i < 2; i++) {
		keeperrig_pass(10 * SECOND);
		fakereg_lose_all();
		assert_int_equal(fakereg_listed(ECHO), 0);
		assert_int_equal(keeperrig_true(), 0);
		keeperrig_pass(10 * MS);
		assert_int_equal(fakereg_listed(ECHO), 2);
		assert_int_equal(keeperrig_true(), 2);
	}
	assert_int_equal(keeperrig_events("entries lost"), 2);
	assert_int_equal(keeperrig_events(": recovered"), 2);
}

TEST(repeated_losses_are_retried_after_retry_period)
{
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * SECOND);
	for (int i = 0; i < 100; i++) {
		fakereg_lose_all();
		keeperrig_pass(100 * MS);
	}
	assert_in_range(fakereg.publishes, 3, 5);
	keeperrig_pass(RETRY_NS * 12 / 10 + 10 * MS);
	assert_int_equal(keeperrig_true(), 1);
}

TEST(loss_during_registry_failure_is_recovered)
{
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * SECOND);
	fakereg.fails = SPOKE_ECONNECT;
	fakereg_lose_all();
	keeperrig_pass(60 * SECOND);
	assert_int_equal(keeperrig_true(), 0);
	fakereg.fails = 0;
	keeperrig_pass(RETRY_NS * 12 / 10 + 10 * MS);
	assert_int_equal(keeperrig_true(), 1);
	assert_int_equal(fakereg_listed(ECHO), 1);
	assert_int_equal(keeperrig_events("cannot publish"), 1);
	fakereg.fails = SPOKE_ECONNECT;
	fakereg_lose_all();
	keeperrig_pass(10 * MS);
	assert_int_equal(keeperrig_events("cannot publish"), 2); /* a new series of failures */
}

TEST(given_up_entries_resume_when_registry_answers)
{
	const struct spokei_keeper_options options = { .retries_max = 2, .retry_ns = SECOND };

	keeperrig_keep(&options);
	keeperrig_subscribe();
	keeperrig_pass(SECOND);
	fakereg.fails = SPOKE_ECONNECT;
	keeperrig_publish(PLACE);
	keeperrig_pass(60 * SECOND);
	assert_int_equal(fakereg.publishes, 3);
	assert_int_equal(keeperrig_events("given up after 2 retries"), 1);
	fakereg.fails = 0;
	keeperrig_pass(60 * SECOND);
	assert_int_equal(keeperrig_true(), 1);
	fakereg_add(ECHO, OTHER); /* the list shows that the registry responds */
	keeperrig_pass(10 * MS);
	assert_int_equal(keeperrig_true(), 2);
	fakereg_remove(ECHO, OTHER);
	fakereg.fails = SPOKE_ECONNECT;
	fakereg_lose_all();
	keeperrig_pass(60 * SECOND);
	assert_int_equal(keeperrig_events("given up after 2 retries"), 2);
	fakereg.fails = 0;
	keeperrig_publish(OTHER);
	keeperrig_pass(10 * MS);
	assert_int_equal(keeperrig_true(), 3);
}

TEST(invalid_options_are_rejected_with_message)
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

TEST(publications_are_limited)
{
	char url[64];

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

TEST(all_publications_can_be_replaced_at_limit)
{
	char url[64];

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
	assert_int_equal(spokei_keeper_publish(keeperrig.keeper, ECHO, url), 0); /* it is known */
	assert_int_equal(spokei_keeper_publish(keeperrig.keeper, ECHO, PLACE), SPOKE_ELIMIT);
	fakereg.keeps = false;
}

/* --- the end */

TEST(freed_keeper_withdraws_first)
{
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_publish(OTHER);
	keeperrig_pass(10 * MS);
	spokei_keeper_free(keeperrig.keeper);
	assert_int_equal(fakereg_listed(ECHO), 2);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 0);
	assert_int_equal(fakereg.closes, 1);
	keeperrig.keeper = NULL;
}

TEST(keeper_freed_while_publishing_leaves_nothing)
{
	fakereg.delay_ns = 100 * MS;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(50 * MS);
	spokei_keeper_free(keeperrig.keeper);
	keeperrig_pass(SECOND);
	assert_int_equal(fakereg_listed(ECHO), 0);
	assert_int_equal(fakereg.withdraws, 1);
	assert_int_equal(fakereg.closes, 1);
	keeperrig.keeper = NULL;
}

TEST(freed_keeper_gives_up_after_timeout)
{
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	fakereg.mute = true;
	spokei_keeper_free(keeperrig.keeper);
	keeperrig_pass(2990 * MS);
	assert_int_equal(fakereg.closes, 0);
	keeperrig_pass(20 * MS);
	assert_int_equal(fakereg.closes, 1);
	keeperrig.keeper = NULL;
}

TEST(keeper_with_failing_withdrawal_is_freed_at_once)
{
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	fakereg.fails = SPOKE_ECONNECT;
	spokei_keeper_free(keeperrig.keeper);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg.closes, 1);
	keeperrig.keeper = NULL;
}

TEST(ending_engine_does_not_wait_for_withdrawals)
{
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_publish(OTHER);
	keeperrig_pass(10 * MS);
	keeperrig_free_engine();
	assert_int_equal(fakereg.withdraws, 2); /* the requests were made */
	assert_int_equal(fakereg.closes, 1);
}

TEST(ending_engine_frees_withdrawing_keepers)
{
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	fakereg.mute = true;
	spokei_keeper_free(keeperrig.keeper);
	keeperrig_pass(MS);
	keeperrig_free_engine();
	assert_int_equal(fakereg.closes, 1);
}

TEST(drain_waits_for_withdrawals)
{
	fakereg.delay_ns = 100 * MS;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(200 * MS);
	assert_int_equal(spoke_engine_drain(keeperrig.engine, 10 * SECOND), 0);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 1); /* the keeper is not freed yet */
	spokei_keeper_free(keeperrig.keeper);
	keeperrig.keeper = NULL;
	keeperrig_pass(SECOND);
	assert_int_equal(fakereg_listed(ECHO), 0);
	assert_int_equal(fakereg.closes, 1);
}

TEST(keeper_closed_by_drain_stays_until_freed)
{
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	assert_int_equal(spoke_engine_drain(keeperrig.engine, 20 * MS), 0);
	keeperrig_pass(SECOND);
	assert_int_equal(fakereg.closes, 1);
	assert_int_equal(spokei_keeper_publish(keeperrig.keeper, ECHO, OTHER), SPOKE_ECLOSED);
	assert_int_equal(spokei_keeper_subscribe(keeperrig.keeper, ECHO, SPOKE_REGISTRY_PROVIDERS),
			 SPOKE_ECLOSED);
	spokei_keeper_withdraw_all(keeperrig.keeper);
	assert_int_equal(keeperrig_true(), 0);
}

TEST(enomem_counts_as_failure)
{
	for (unsigned nth = 1; nth < 60; nth++) {
		struct spokei_keeper *keeper = NULL;

		spokei_faults_fail(&keeperrig.faulty, SPOKEI_FAULTS_MEMORY, nth, -12, false);
		if (keeperrig_try(NULL) == 0) {
			keeper = keeperrig.keeper;
			if (spokei_keeper_publish(keeper, ECHO, PLACE) == 0) {
				keeperrig_pass(10 * SECOND);
				assert_int_equal(keeperrig_true(), 1);
			}
			if (spokei_keeper_subscribe(keeper, ECHO, SPOKE_REGISTRY_PROVIDERS) == 0) {
				keeperrig_pass(10 * SECOND);
				assert_int_equal(keeperrig.count, fakereg_listed(ECHO));
			}
		}
		spokei_faults_heal(&keeperrig.faulty);
		spokei_keeper_free(keeper);
		keeperrig.keeper = NULL;
		keeperrig.count = 0;
		keeperrig_pass(SECOND);
		assert_int_equal(fakereg_listed(ECHO), 0);
	}
	assert_true(keeperrig.faulty.failed[SPOKEI_FAULTS_MEMORY] > 3);
}
