/* SPDX-License-Identifier: Apache-2.0 */
/* Consumers that find providers through a registry of the test's own. */
#include "cluster/call/method.h"
#include "cluster/consumer/parts.h"
#include "tests/cluster/consumer/subscriptionrig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void a_consumer_finds_a_provider(void **state)
{
	(void)state;
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SECOND);
	assert_int_equal(subscriptionrig_try_call(), SPOKE_ENOPROVIDER);
	subscriptionrig_provide(0);
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(spoke_consumer_ready(subscriptionrig.consumer), 1);
	assert_int_equal(subscriptionrig_try_call(), 0);
	assert_int_equal(subscriptionrig.served[0], 1);
}

static const char here[] = "dubbo://127.0.0.1:20880/" ECHO;

static void what_a_provider_says_counts_where_the_consumer_says_nothing(void **state)
{
	struct spoke_method_options options = { .timeout_ns = 7 * SECOND };
	const struct spokei_call_settings *settings;
	struct spoke_method *echo;
	struct spoke_method *slow;
	struct spoke_method *mine;
	char url[256];

	(void)state;
	subscriptionrig_consume(NULL);
	assert_int_equal(spoke_consumer_method(subscriptionrig.consumer, "echo", NULL, &echo), 0);
	(void)snprintf(
		url, sizeof(url),
		"%s?timeout=3000&retries=7&slow.timeout=9000&cluster=failfast&retry.period=-1"
		"&loadbalance=leastactive",
		here);
	fakereg_add(ECHO, url);
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(spoke_consumer_method(subscriptionrig.consumer, "slow", NULL, &slow), 0);
	assert_int_equal(spoke_consumer_method(subscriptionrig.consumer, "slow", &options, &mine),
			 0);
	settings = &echo->settings;
	assert_int_equal(settings->timeout_ns, 3 * SECOND);
	assert_int_equal(settings->retries, 7);
	assert_ptr_equal(settings->policy, &spoke_policy_failfast);
	assert_ptr_equal(echo->balancer_state->balancer, &spoke_balancer_least_active);
	assert_int_equal(settings->period_ns, 5 * SECOND);
	assert_int_equal(slow->settings.timeout_ns, 9 * SECOND);
	assert_int_equal(mine->settings.timeout_ns, 7 * SECOND);
}

static void a_list_of_nobody_who_is_meant_is_an_empty_one(void **state)
{
	char other[256];

	(void)state;
	subscriptionrig_provide(0);
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(subscriptionrig_try_call(), 0);
	(void)snprintf(other, sizeof(other), "%s?version=9", here);
	fakereg_forget();
	fakereg_add(ECHO, other);
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(subscriptionrig_endpoints(), 1);
	assert_int_equal(subscriptionrig_try_call(), 0);
}

static void providers_come_and_go(void **state)
{
	(void)state;
	subscriptionrig_provide(0);
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(subscriptionrig_try_call(), 0);
	subscriptionrig_provide(1);
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(spoke_consumer_ready(subscriptionrig.consumer), 2);
	subscriptionrig_end_provider(0);
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(fakereg_listed(ECHO), 1);
	assert_int_equal(spoke_consumer_ready(subscriptionrig.consumer), 1);
	for (int i = 0; i < 4; i++)
		assert_int_equal(subscriptionrig_try_call(), 0);
	assert_int_equal(subscriptionrig.served[1], 4);
	subscriptionrig_provide(0);
	subscriptionrig_end_provider(1);
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(subscriptionrig_try_call(), 0);
	assert_int_equal(subscriptionrig.served[0], 2);
	assert_int_equal(subscriptionrig_endpoints(), 1);
}

static void the_last_provider_may_be_restarted(void **state)
{
	(void)state;
	subscriptionrig_provide(0);
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SOON_NS);
	subscriptionrig_end_provider(0);
	assert_int_equal(fakereg_listed(ECHO), 0);
	subscriptionrig_pass(SECOND);
	assert_int_equal(subscriptionrig_endpoints(), 1); /* protected */
	subscriptionrig_provide(0);
	subscriptionrig_pass(5 * SECOND);
	assert_int_equal(subscriptionrig_try_call(), 0);
	assert_int_equal(subscriptionrig_endpoints(), 1);
}

static void a_registry_that_is_down_at_the_start_is_stood_in_for_by_the_file(void **state)
{
	(void)state;
	subscriptionrig_provide(0);
	subscriptionrig_consume("cache");
	subscriptionrig_pass(SECOND);
	subscriptionrig_free_consumer();
	subscriptionrig_pass(SECOND);
	assert_non_null(strstr(spokei_vfiles_get(subscriptionrig.world.files, "cache"),
			       "dubbo://127.0.0.1:20880/"));
	fakereg.fails = SPOKE_ECONNECT;
	subscriptionrig_consume("cache");
	assert_int_equal(subscriptionrig_try_call(), SPOKE_EUNAVAILABLE); /* a little later */
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(subscriptionrig_try_call(), 0);
	fakereg.fails = 0;
	subscriptionrig_provide(1);
	subscriptionrig_pass(RETRY_MAX_NS + SOON_NS);
	assert_int_equal(spoke_consumer_ready(subscriptionrig.consumer), 2);
}

static void a_registry_that_is_down_later_takes_nothing_away(void **state)
{
	(void)state;
	subscriptionrig_provide(0);
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SOON_NS);
	fakereg.fails = SPOKE_ECONNECT;
	fakereg_lose_all(false);
	for (int i = 0; i < 30; i++)
		assert_int_equal(subscriptionrig_try_call(), 0);
	fakereg.fails = 0;
	subscriptionrig_pass(RETRY_MAX_NS + SOON_NS);
	assert_int_equal(fakereg_listed(ECHO), 1);
	assert_int_equal(spoke_provider_registered(subscriptionrig.providers[0], NULL), 1);
	subscriptionrig_provide(1);
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(spoke_consumer_ready(subscriptionrig.consumer), 2);
}

static void who_was_lost_is_listed_exactly_once_again(void **state)
{
	(void)state;
	subscriptionrig_provide(0);
	subscriptionrig_provide(1);
	subscriptionrig_consume(NULL);
	for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
		subscriptionrig_pass(10 * SECOND);
		fakereg_lose_all(one_by_one);
		subscriptionrig_pass(SOON_NS);
		assert_int_equal(fakereg_listed(ECHO), 2);
		assert_int_equal(spoke_consumer_ready(subscriptionrig.consumer), 2);
		assert_int_equal(subscriptionrig_endpoints(), 2);
	}
}

static void wrong_lists_harm_nobody(void **state)
{
	(void)state;
	subscriptionrig_provide(0);
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SOON_NS);
	fakereg_add(ECHO, "");
	fakereg_add(ECHO, "nonsense");
	fakereg_add(ECHO, "dubbo://127.0.0.1:0/" ECHO);
	fakereg_add(ECHO, "gopher://127.0.0.1:1/" ECHO);
	fakereg_add(ECHO, "dubbo://127.0.0.1:99999/" ECHO);
	fakereg_add(ECHO, "dubbo://127.0.0.1:1/" ECHO "?version=7");
	fakereg_add(ECHO, "dubbo://127.0.0.1:1/" ECHO "?group=x");
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(subscriptionrig_endpoints(), 1);
	assert_int_equal(subscriptionrig_try_call(), 0);
	subscriptionrig_end_provider(0); /* nobody is left, but it is not an empty list */
	subscriptionrig_pass(SOON_NS);
	subscriptionrig_provide(1);
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(subscriptionrig_try_call(), 0);
}

static void only_the_version_that_is_asked_for_is_taken(void **state)
{
	(void)state;
	subscriptionrig_provide_as(0, "2");
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(subscriptionrig_try_call(), SPOKE_ENOPROVIDER);
}

static void a_consumer_may_be_freed_as_it_is_told_of_a_link(void **state)
{
	(void)state;
	subscriptionrig.in_changed = subscriptionrig_free_consumer;
	subscriptionrig_provide(0);
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SECOND);
	assert_null(subscriptionrig.consumer);
	subscriptionrig_provide(1);
	subscriptionrig_pass(SECOND);
	assert_int_equal(fakereg.closes, 1);
}

static void a_consumer_may_be_freed_as_a_call_ends(void **state)
{
	(void)state;
	subscriptionrig.in_done = subscriptionrig_free_consumer;
	subscriptionrig_provide(0);
	subscriptionrig_consume("cache");
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(subscriptionrig_try_call(), 0);
	assert_null(subscriptionrig.consumer);
	assert_int_equal(fakereg.closes, 1);
}

static void free_first_provider(void)
{
	spoke_provider_free(subscriptionrig.providers[0]);
	subscriptionrig.providers[0] = NULL;
}

static void a_provider_may_be_freed_as_it_serves(void **state)
{
	(void)state;
	subscriptionrig.in_serve = free_first_provider;
	subscriptionrig_provide(0);
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SOON_NS);
	assert_int_not_equal(subscriptionrig_try_call(), 0);
	assert_int_equal(fakereg_listed(ECHO), 0);
}

static void a_consumer_that_drains_asks_no_more(void **state)
{
	(void)state;
	subscriptionrig_provide(0);
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(spoke_engine_drain(subscriptionrig.engines[CLIENT], 10 * SECOND), 0);
	subscriptionrig_pass(SECOND);
	assert_int_equal(fakereg.closes, 1);
	assert_int_equal(subscriptionrig_try_call(), SPOKE_ECLOSED);
}

static void wrong_options_are_refused_with_a_sentence(void **state)
{
	static const char *const more[] = { "dubbo://127.0.0.1:1/" ECHO };
	static const struct {
		struct spoke_consumer_options options;
		int error;
		const char *words;
	} cases[] = {
		{ { .url = "consumer://any" }, SPOKE_EINVAL, "must name the service" },
		{ { .url = "consumer://any/" ECHO, .registry = ":" }, SPOKE_ESYNTAX, "registry" },
		{ { .url = "consumer://any/" ECHO, .more_urls = more, .more_count = 1 },
		  SPOKE_EINVAL,
		  "more_urls" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spoke_consumer_options options = cases[i].options;

		if (options.registry == NULL)
			options.registry = "fake://here";
		options.registry_kind = &fakereg_kind;
		assert_int_equal(spoke_consumer_new(subscriptionrig.engines[CLIENT], &options,
						    &subscriptionrig.consumer),
				 cases[i].error);
		assert_non_null(
			strstr(spoke_engine_why(subscriptionrig.engines[CLIENT]), cases[i].words));
		assert_null(subscriptionrig.consumer);
	}
}

static void without_memory_it_takes_a_little_longer(void **state)
{
	(void)state;
	subscriptionrig_provide(0);
	subscriptionrig_pass(SOON_NS);
	for (unsigned i = 0; i < 200; i++) {
		spokei_faults_fail(&subscriptionrig.faulty, SPOKEI_FAULTS_MEMORY, i / 2 + 1,
				   -ENOMEM, false);
		if (subscriptionrig_try_consumer(i % 2 ? "cache" : NULL) == 0) {
			subscriptionrig_pass(RETRY_MAX_NS + SECOND);
			(void)!subscriptionrig_try_call();
			assert_int_equal(subscriptionrig_try_call(), 0);
		}
		spokei_faults_heal(&subscriptionrig.faulty);
		subscriptionrig_free_consumer();
		subscriptionrig_pass(SECOND);
	}
	assert_true(subscriptionrig.faulty.failed[SPOKEI_FAULTS_MEMORY] > 30);
}

#define RIGGED(test)                                                                               \
	cmocka_unit_test_setup_teardown(test, subscriptionrig_set_up, subscriptionrig_tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		RIGGED(a_consumer_finds_a_provider),
		RIGGED(what_a_provider_says_counts_where_the_consumer_says_nothing),
		RIGGED(a_list_of_nobody_who_is_meant_is_an_empty_one),
		RIGGED(providers_come_and_go),
		RIGGED(the_last_provider_may_be_restarted),
		RIGGED(a_registry_that_is_down_at_the_start_is_stood_in_for_by_the_file),
		RIGGED(a_registry_that_is_down_later_takes_nothing_away),
		RIGGED(who_was_lost_is_listed_exactly_once_again),
		RIGGED(wrong_lists_harm_nobody),
		RIGGED(only_the_version_that_is_asked_for_is_taken),
		RIGGED(a_consumer_may_be_freed_as_it_is_told_of_a_link),
		RIGGED(a_consumer_may_be_freed_as_a_call_ends),
		RIGGED(a_provider_may_be_freed_as_it_serves),
		RIGGED(a_consumer_that_drains_asks_no_more),
		RIGGED(wrong_options_are_refused_with_a_sentence),
		RIGGED(without_memory_it_takes_a_little_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
