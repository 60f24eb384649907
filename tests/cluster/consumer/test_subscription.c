/* SPDX-License-Identifier: Apache-2.0 */
/* Consumers that find providers through a registry of the tests. */
#include "cluster/call/method.h"
#include "tests/cluster/consumer/subscriptionrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

FIXTURE(subscriptionrig_set_up, subscriptionrig_tear_down);

TEST(consumer_finds_provider)
{
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

TEST(provider_settings_apply_where_consumer_has_none)
{
	struct spoke_method_options options = { .timeout_ns = 7 * SECOND };
	const struct spokei_call_settings *settings;
	struct spoke_method *echo;
	struct spoke_method *slow;
	struct spoke_method *mine;
	char url[256];

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

TEST(list_of_other_services_counts_as_empty)
{
	char other[256];

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

TEST(providers_come_and_go)
{
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

TEST(last_provider_may_restart)
{
	subscriptionrig_provide(0);
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SOON_NS);
	subscriptionrig_end_provider(0);
	assert_int_equal(fakereg_listed(ECHO), 0);
	subscriptionrig_pass(SECOND);
	assert_int_equal(subscriptionrig_endpoints(), 1); /* an empty list is ignored */
	subscriptionrig_provide(0);
	subscriptionrig_pass(5 * SECOND);
	assert_int_equal(subscriptionrig_try_call(), 0);
	assert_int_equal(subscriptionrig_endpoints(), 1);
}

TEST(cache_file_replaces_registry_that_is_down_at_start)
{
	subscriptionrig_provide(0);
	subscriptionrig_consume("cache");
	subscriptionrig_pass(SECOND);
	subscriptionrig_free_consumer();
	subscriptionrig_pass(SECOND);
	assert_non_null(strstr(spokei_vfiles_get(subscriptionrig.world.files, "cache"),
			       "dubbo://127.0.0.1:20880/"));
	fakereg.fails = SPOKE_ECONNECT;
	subscriptionrig_consume("cache");
	assert_int_equal(subscriptionrig_try_call(), SPOKE_EUNAVAILABLE); /* not read yet */
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(subscriptionrig_try_call(), 0);
	fakereg.fails = 0;
	subscriptionrig_provide(1);
	subscriptionrig_pass(RETRY_MAX_NS + SOON_NS);
	assert_int_equal(spoke_consumer_ready(subscriptionrig.consumer), 2);
}

TEST(registry_outage_keeps_list)
{
	subscriptionrig_provide(0);
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SOON_NS);
	fakereg.fails = SPOKE_ECONNECT;
	fakereg_lose_all();
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

TEST(lost_provider_is_listed_again_once)
{
	subscriptionrig_provide(0);
	subscriptionrig_provide(1);
	subscriptionrig_consume(NULL);
	for (int i = 0; i < 2; i++) {
		subscriptionrig_pass(10 * SECOND);
		fakereg_lose_all();
		subscriptionrig_pass(SOON_NS);
		assert_int_equal(fakereg_listed(ECHO), 2);
		assert_int_equal(spoke_consumer_ready(subscriptionrig.consumer), 2);
		assert_int_equal(subscriptionrig_endpoints(), 2);
	}
}

TEST(invalid_lists_are_harmless)
{
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
	subscriptionrig_end_provider(0); /* no provider is left, but the list is not empty */
	subscriptionrig_pass(SOON_NS);
	subscriptionrig_provide(1);
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(subscriptionrig_try_call(), 0);
}

TEST(other_versions_are_left_out)
{
	subscriptionrig_provide_as(0, "2");
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(subscriptionrig_try_call(), SPOKE_ENOPROVIDER);
}

TEST(consumer_may_be_freed_in_link_callback)
{
	subscriptionrig.in_changed = subscriptionrig_free_consumer;
	subscriptionrig_provide(0);
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SECOND);
	assert_null(subscriptionrig.consumer);
	subscriptionrig_provide(1);
	subscriptionrig_pass(SECOND);
	assert_int_equal(fakereg.closes, 1);
}

TEST(subscribed_consumer_may_be_freed_in_call_callback)
{
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

TEST(provider_may_be_freed_in_handler)
{
	subscriptionrig.in_serve = free_first_provider;
	subscriptionrig_provide(0);
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SOON_NS);
	assert_int_not_equal(subscriptionrig_try_call(), 0);
	assert_int_equal(fakereg_listed(ECHO), 0);
}

TEST(draining_consumer_stops_requesting_lists)
{
	subscriptionrig_provide(0);
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(spoke_engine_drain(subscriptionrig.engines[CLIENT], 10 * SECOND), 0);
	subscriptionrig_pass(SECOND);
	assert_int_equal(fakereg.closes, 1);
	assert_int_equal(subscriptionrig_try_call(), SPOKE_ECLOSED);
}

TEST(wrong_options_are_refused_with_event)
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

TEST(subscription_recovers_from_lack_of_memory)
{
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
