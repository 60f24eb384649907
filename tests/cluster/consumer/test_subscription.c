/* SPDX-License-Identifier: Apache-2.0 */
/* Consumers that find providers through a registry, a file or a fixed list. */
#include "cluster/call/method.h"
#include "tests/cluster/clusterrig.h"
#include "tests/cluster/consumer/subscriptionrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- consumers that find providers through a registry of the tests */

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

/* --- consumers that find providers through a file or a fixed list */

#define PATH "/run/providers"

static int set_up(void **state)
{
	if (subscriptionrig_set_up(state))
		return -1;
	subscriptionrig.registry = "file://" PATH;
	subscriptionrig.kind = NULL;
	return 0;
}

FIXTURE(set_up, subscriptionrig_tear_down);

static struct spokei_vfiles *files(void)
{
	return subscriptionrig.world.files;
}

/* Returns the number of lines of the file that contain the words. */
static unsigned lines(const char *words)
{
	const char *at = spokei_vfiles_get(files(), PATH);
	unsigned count = 0;

	for (; at && (at = strstr(at, words)); at += strlen(words))
		count++;
	return count;
}

TEST(providers_and_consumers_meet_by_file)
{
	subscriptionrig_consume(NULL);
	subscriptionrig_provide(0);
	subscriptionrig_pass(SECOND);
	assert_int_equal(lines("dubbo://127.0.0.1:20880/"), 1);
	assert_int_equal(subscriptionrig_try_call(), 0);
	subscriptionrig_provide(1);
	subscriptionrig_pass(SECOND);
	assert_int_equal(spoke_consumer_ready(subscriptionrig.consumer), 2);
	subscriptionrig_end_provider(0);
	subscriptionrig_pass(SECOND);
	assert_int_equal(lines("dubbo://127.0.0.1:20880/"), 0);
	assert_int_equal(subscriptionrig_endpoints(), 1);
	assert_int_equal(subscriptionrig_try_call(), 0);
	assert_int_equal(subscriptionrig.served[1], 1);
}

TEST(removed_provider_is_in_file_again_once)
{
	subscriptionrig_provide(0);
	subscriptionrig_provide(1);
	subscriptionrig_consume(NULL);
	for (int i = 0; i < 3; i++) {
		subscriptionrig_pass(10 * SECOND);
		spokei_vfiles_put(files(), PATH, i ? "" : "nonsense\n");
		if (i == 2)
			spokei_vfiles_remove(files(), PATH);
		subscriptionrig_pass(RETRY_MAX_NS + SECOND);
		assert_int_equal(lines("dubbo://127.0.0.1:20880/"), 1);
		assert_int_equal(lines("dubbo://127.0.0.1:20881/"), 1);
		assert_int_equal(spoke_provider_registered(subscriptionrig.providers[0], NULL), 1);
		assert_int_equal(spoke_consumer_ready(subscriptionrig.consumer), 2);
		assert_int_equal(subscriptionrig_try_call(), 0);
	}
}

TEST(failed_write_of_file_is_retried)
{
	spokei_vfiles_fail(files(), SPOKEI_VFILES_REPLACE, 4, -ENOSPC);
	subscriptionrig_provide(0);
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SECOND);
	assert_int_equal(lines("dubbo://"), 0);
	subscriptionrig_pass(5 * RETRY_MAX_NS);
	assert_int_equal(lines("dubbo://"), 1);
	assert_int_equal(subscriptionrig_try_call(), 0);
}

TEST(foreign_lines_of_file_are_taken)
{
	subscriptionrig_provide(0);
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SECOND);
	spokei_vfiles_put(files(), PATH,
			  "dubbo://127.0.0.1:20882/demo.Echo\n"
			  "dubbo://127.0.0.1:20880/demo.Echo?weight=1\n");
	subscriptionrig_pass(SECOND);
	assert_int_equal(subscriptionrig_endpoints(), 2);
}

TEST(static_registry_has_fixed_list)
{
	subscriptionrig_provide(0);
	subscriptionrig_provide(1);
	subscriptionrig.registry = "static://127.0.0.1:20880?backup=127.0.0.1:20881";
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SECOND);
	assert_int_equal(spoke_consumer_ready(subscriptionrig.consumer), 2);
	assert_int_equal(subscriptionrig_try_call(), 0);
}

/* --- the URL of a consumer: an address, or with a registry a service */

#define rig clusterrig

FIXTURE(clusterrig_set_up, clusterrig_tear_down);

TEST(url_fits_the_registry_or_is_refused)
{
	static const struct {
		const char *url;
		const char *registry;
		const char *text;
	} cases[] = {
		{ "consumer://any/demo.Echo", NULL, "give a registry" },
		{ "file:///run/list", NULL, "file:// is a registry; give a registry" },
		{ "zookeeper://127.0.0.1:2181", NULL, "zookeeper:// is a registry; give a" },
		{ "dubbo://127.0.0.1:20880/demo.Echo", "static://127.0.0.1:20880",
		  "an address and a registry exclude each other" },
		{ "unix:/run/echo?interface=demo.Echo", "static://127.0.0.1:20880",
		  "an address and a registry exclude each other" },
		{ "http://127.0.0.1:80/demo.Echo", NULL, "unknown scheme http" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct spoke_consumer_options options = { .url = cases[i].url,
								.registry = cases[i].registry };
		struct spoke_consumer *consumer;
		int error = spoke_consumer_new(rig.engine, &options, &consumer);

		assert_int_not_equal(error, SPOKE_OK);
		if (!strstr(spoke_engine_why(rig.engine), cases[i].text))
			fail_msg("%s: %s", cases[i].url, spoke_engine_why(rig.engine));
	}
}

TEST(service_of_a_registry_is_accepted)
{
	const struct spoke_consumer_options options = { .url = "consumer://any/demo.Echo",
							.registry = "static://127.0.0.1:20880" };
	struct spoke_consumer *consumer;

	assert_int_equal(spoke_consumer_new(rig.engine, &options, &consumer), SPOKE_OK);
	spoke_consumer_free(consumer);
}

TEST(tcp_means_dubbo)
{
	struct spoke_consumer_options options = { .url = "tcp://127.0.0.1:20880/demo.Echo" };
	struct spoke_consumer *consumer;

	clusterrig_provide(1);
	assert_int_equal(spoke_consumer_new(rig.engine, &options, &rig.consumer), SPOKE_OK);
	clusterrig_pass(100 * MS);
	consumer = rig.consumer;
	assert_int_equal(spoke_consumer_ready(consumer), 1);
	clusterrig_end(clusterrig_call(clusterrig_method("echo", NULL)));
	assert_int_equal(rig.runs, 1);
	assert_int_equal(spoke_provider_listen(rig.providers[0].provider, "tcp://127.0.0.1:20999"),
			 SPOKE_OK);
}
