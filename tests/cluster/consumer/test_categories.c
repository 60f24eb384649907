/* SPDX-License-Identifier: Apache-2.0 */
/* Consumers at a registry with categories: they are published, and rules of operators apply. */
#include "cluster/call/method.h"
#include "cluster/consumer/parts.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/routing.h"
#include "tests/cluster/consumer/subscriptionrig.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define CONSUMERS ECHO "/consumers"
#define RULES ECHO "/configurators"
#define ROUTERS ECHO "/routers"
#define SERVICE_RULE ECHO "::/.configurators"
#define APPLICATION_RULE "spoke/.configurators"
#define FIRST "127.0.0.1:20880"
#define YAML(scope, key, rest)                                                                     \
	"scope: " scope "\nkey: " key "\nconfigs:\n- side: consumer\n  parameters:\n    " rest "\n"
#define OVERRIDE_ALL "override://0.0.0.0/" ECHO "?category=configurators&dynamic=false&"

static int set_up(void **state)
{
	int error = subscriptionrig_set_up(state);

	subscriptionrig.kind = &fakereg_with_categories;
	return error;
}

FIXTURE(set_up, subscriptionrig_tear_down);

static void start(int providers)
{
	for (int i = 0; i < providers; i++)
		subscriptionrig_provide(i);
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SOON_NS);
}

static void rule(const char *url)
{
	fakereg_add(RULES, url);
	subscriptionrig_pass(SOON_NS);
}

static void remove_rule(const char *url)
{
	fakereg_remove(RULES, url);
	subscriptionrig_pass(SOON_NS);
}

/* Returns the weight of the provider at this place, whatever the order of the list. */
static uint32_t weight_of(int which)
{
	struct spoke_endpoint_info infos[PROVIDERS];
	size_t count = spoke_consumer_endpoints(subscriptionrig.consumer, infos, PROVIDERS);
	char name[32];

	(void)snprintf(name, sizeof(name), "127.0.0.1:%d", 20880 + which);
	for (size_t i = 0; i < count; i++)
		if (strcmp(infos[i].name, name) == 0)
			return infos[i].weight;
	fail_msg("%s: not listed", name);
	return 0;
}

static uint64_t timeout_of(const char *name)
{
	struct spoke_method *method;

	assert_int_equal(spoke_consumer_method(subscriptionrig.consumer, name, NULL, &method), 0);
	return method->settings.timeout_ns;
}

static unsigned events(const char *text)
{
	return scene_events(subscriptionrig.engines[CLIENT], text);
}

/* --- consumers */

TEST(consumer_is_published_until_it_ends)
{
	const char *url;

	start(1);
	assert_int_equal(fakereg_listed(CONSUMERS), 1);
	url = fakereg_first(CONSUMERS);
	assert_int_equal(strncmp(url, "consumer://0.0.0.0/" ECHO "?application=spoke", 46), 0);
	assert_non_null(strstr(url, "category=consumers"));
	assert_non_null(strstr(url, "side=consumer"));
	assert_int_equal(fakereg_listed(ECHO), 1);
	subscriptionrig_free_consumer();
	subscriptionrig_pass(SECOND);
	assert_int_equal(fakereg_listed(CONSUMERS), 0);
}

TEST(consumer_is_published_again_after_a_loss)
{
	start(1);
	subscriptionrig_pass(10 * SECOND);
	fakereg_lose_all();
	subscriptionrig_pass(RETRY_MAX_NS);
	assert_int_equal(fakereg_listed(CONSUMERS), 1);
	assert_int_equal(subscriptionrig_try_call(), 0);
}

TEST(empty_list_is_explained_once)
{
	start(0);
	fakereg_add(ECHO, "nonsense");
	subscriptionrig_pass(SOON_NS);
	assert_int_equal(events("registry: demo.Echo has no providers"), 1);
}

/* --- configurators */

TEST(weight_of_one_provider_is_overridden)
{
	static const char url[] = "override://" FIRST "/" ECHO
				  "?category=configurators&weight=7&warmup=0";

	start(2);
	rule(url);
	assert_int_equal(weight_of(0), 7);
	assert_int_not_equal(weight_of(1), 7);
	remove_rule(url);
	assert_int_not_equal(weight_of(0), 7);
}

TEST(disabled_provider_gets_no_calls)
{
	static const char url[] = "override://" FIRST "/" ECHO "?disabled=true";

	start(2);
	rule(url);
	assert_int_equal(subscriptionrig_endpoints(), 1);
	for (int i = 0; i < 4; i++)
		assert_int_equal(subscriptionrig_try_call(), 0);
	assert_int_equal(subscriptionrig.served[0], 0);
	assert_int_equal(subscriptionrig.served[1], 4);
	remove_rule(url);
	assert_int_equal(subscriptionrig_endpoints(), 2);
}

TEST(all_providers_can_be_disabled)
{
	static const char url[] = OVERRIDE_ALL "disabled=true";

	start(2);
	rule(url);
	assert_int_equal(subscriptionrig_endpoints(), 0);
	assert_int_equal(subscriptionrig_try_call(), SPOKE_ENOPROVIDER);
	assert_int_equal(events("all providers are disabled"), 1);
	remove_rule(url);
	assert_int_equal(subscriptionrig_try_call(), 0);
}

TEST(timeout_is_overridden_and_restored)
{
	static const char url[] = OVERRIDE_ALL "timeout=4321&slow.timeout=8765";

	start(1);
	rule(url);
	assert_int_equal(timeout_of("echo"), 4321 * MS);
	assert_int_equal(subscriptionrig.echo->settings.timeout_ns, 4321 * MS);
	assert_int_equal(timeout_of("slow"), 8765 * MS);
	remove_rule(url);
	assert_int_equal(subscriptionrig.echo->settings.timeout_ns, SECOND);
	assert_int_equal(timeout_of("slow"), SECOND);
}

TEST(rules_exist_before_the_consumer)
{
	fakereg_add(RULES, OVERRIDE_ALL "weight=9&warmup=0&timeout=77");
	start(1);
	subscriptionrig_pass(SECOND);
	assert_int_equal(weight_of(0), 9);
	assert_int_equal(timeout_of("echo"), 77 * MS);
}

TEST(last_rule_by_host_and_priority_wins)
{
	start(1);
	fakereg_add(RULES, OVERRIDE_ALL "weight=1&warmup=0&priority=5");
	fakereg_add(RULES, OVERRIDE_ALL "weight=2&warmup=0&priority=10");
	rule(OVERRIDE_ALL "weight=3&warmup=0&priority=-1");
	assert_int_equal(weight_of(0), 2);
	rule(OVERRIDE_ALL "weight=5&warmup=0&priority=10");
	assert_int_equal(weight_of(0), 5);
	rule("override://" FIRST "/" ECHO "?weight=4");
	assert_int_equal(weight_of(0), 4);
	rule("absent://" FIRST "/" ECHO "?weight=6");
	assert_int_equal(weight_of(0), 4);
}

TEST(rules_for_others_are_ignored)
{
	static const char *const others[] = {
		OVERRIDE_ALL "weight=7&enabled=false",
		OVERRIDE_ALL "weight=7&side=provider",
		OVERRIDE_ALL "weight=7&application=shop",
		OVERRIDE_ALL "weight=7&group=g1",
		OVERRIDE_ALL "weight=7&version=2.0",
		OVERRIDE_ALL "weight=7&providers=10.0.0.1:20880",
		OVERRIDE_ALL "weight=7&~application=shop",
		"override://10.0.0.9/" ECHO "?weight=7",
		"override://127.0.0.1:1/" ECHO "?weight=7",
		"override://0.0.0.0/demo.Other?weight=7",
		"condition://0.0.0.0/" ECHO "?weight=7",
		"empty://0.0.0.0/" ECHO "?weight=7",
		"override:///" ECHO "?weight=7",
		"not a url",
		"",
	};
	uint32_t before;

	start(1);
	before = weight_of(0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		rule(others[i]);
		if (weight_of(0) > before + 1)
			fail_msg("%s", others[i]);
	}
	assert_int_equal(events(" configurators of " ECHO " ignored"), 8);
	rule(OVERRIDE_ALL "weight=7&side=provider&n=2");
	assert_int_equal(events("9 configurators of " ECHO " ignored"), 1);
	assert_int_equal(subscriptionrig_try_call(), 0);
}

TEST(invalid_values_of_rules_are_ignored)
{
	start(1);
	rule(OVERRIDE_ALL "timeout=-1&weight=abc&retries=4000000000&echo.timeout=x");
	assert_int_equal(timeout_of("echo"), SECOND);
	assert_int_equal(subscriptionrig_endpoints(), 1);
	assert_int_equal(subscriptionrig_try_call(), 0);
}

TEST(thousands_of_rules_are_bounded)
{
	char url[FAKEREG_TEXT];

	start(1);
	for (int i = 0; i < 1500; i++) {
		(void)snprintf(url, sizeof(url), OVERRIDE_ALL "timeout=50&n=%d", i);
		fakereg_add(RULES, url);
	}
	subscriptionrig_pass(SECOND);
	assert_int_equal(timeout_of("echo"), 50 * MS);
	assert_int_not_equal(events("256 configurators"), 0);
	assert_int_not_equal(events("1244 configurators of " ECHO " ignored"), 0);
	assert_int_equal(subscriptionrig_try_call(), 0);
}

/* --- rules as Dubbo keeps them since 2.7 */

static void replace_rule(const char *name, const char *former, const char *text)
{
	if (former)
		fakereg_remove(name, former);
	if (text)
		fakereg_add(name, text);
	subscriptionrig_pass(SOON_NS);
}

TEST(rule_of_the_service_applies_until_it_is_removed)
{
	static const char one[] = YAML("service", ECHO, "timeout: 4321");
	static const char other[] = YAML("service", ECHO, "weight: 7\n    warmup: 0");

	start(1);
	replace_rule(SERVICE_RULE, NULL, one);
	assert_int_equal(timeout_of("echo"), 4321 * MS);
	replace_rule(SERVICE_RULE, one, other);
	assert_int_equal(timeout_of("echo"), SECOND);
	assert_int_equal(weight_of(0), 7);
	replace_rule(SERVICE_RULE, other, NULL);
	assert_int_not_equal(weight_of(0), 7);
}

TEST(rule_chooses_providers_by_address)
{
	static const char *const addresses[] = { FIRST, "127.0.0.1:20880, 10.0.0.1:1",
						 "'0.0.0.0:20880'" };

	start(2);
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		char text[FAKEREG_TEXT];

		(void)snprintf(text, sizeof(text),
			       "{key: " ECHO ", configs: [{side: consumer, "
			       "providerAddresses: [%s], parameters: {disabled: true}}]}",
			       addresses[i]);
		replace_rule(SERVICE_RULE, NULL, text);
		assert_int_equal(subscriptionrig_endpoints(), 1);
		replace_rule(SERVICE_RULE, text, NULL);
		assert_int_equal(subscriptionrig_endpoints(), 2);
	}
}

TEST(service_wins_over_application_wins_over_category)
{
	static const char service[] = YAML("service", ECHO, "timeout: 3");
	static const char application[] = YAML("application", "spoke", "timeout: 2");

	start(1);
	rule(OVERRIDE_ALL "timeout=1");
	assert_int_equal(timeout_of("echo"), 1 * MS);
	replace_rule(SERVICE_RULE, NULL, service);
	replace_rule(APPLICATION_RULE, NULL, application);
	assert_int_equal(timeout_of("echo"), 3 * MS);
	replace_rule(SERVICE_RULE, service, NULL);
	assert_int_equal(timeout_of("echo"), 2 * MS);
	replace_rule(APPLICATION_RULE, application, NULL);
	assert_int_equal(timeout_of("echo"), 1 * MS);
}

TEST(rules_of_other_keys_are_ignored)
{
	static const char *const others[] = {
		YAML("service", "demo.Other", "timeout: 5"),
		YAML("service", "g/" ECHO, "timeout: 5"),
		YAML("service", ECHO ":1.0", "timeout: 5"),
		YAML("application", "shop", "timeout: 5"),
	};

	start(1);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		replace_rule(SERVICE_RULE, NULL, others[i]);
		assert_int_equal(timeout_of("echo"), SECOND);
		replace_rule(SERVICE_RULE, others[i], NULL);
	}
}

TEST(broken_rule_leaves_the_last_one_in_force)
{
	static const char good[] = YAML("service", ECHO, "timeout: 7");
	static const char broken[] = "configs: [";

	start(1);
	replace_rule(SERVICE_RULE, NULL, good);
	replace_rule(SERVICE_RULE, good, broken);
	assert_int_equal(timeout_of("echo"), 7 * MS);
	assert_int_equal(events("rule config/dubbo/" ECHO "::.configurators ignored"), 1);
	replace_rule(SERVICE_RULE, broken, NULL);
	assert_int_equal(timeout_of("echo"), SECOND);
}

/* --- routers */

#define CONDITIONS ECHO "::/.condition-router"
#define TO(port) "{force: true, conditions: ['=> port=" port "']}"

/* Makes calls, and checks which providers they have reached, a bit each. */
static void expect(unsigned providers)
{
	unsigned reached = 0;

	memset(subscriptionrig.served, 0, sizeof(subscriptionrig.served));
	for (int i = 0; i < 8; i++)
		assert_int_equal(subscriptionrig_try_call(), providers ? 0 : SPOKE_ENOPROVIDER);
	for (int i = 0; i < PROVIDERS; i++)
		reached |= subscriptionrig.served[i] ? 1u << i : 0;
	assert_int_equal(reached, providers);
}

TEST(rule_of_conditions_applies_until_it_is_removed)
{
	start(2);
	expect(1 | 2);
	replace_rule(CONDITIONS, NULL, TO("20880"));
	expect(1);
	replace_rule(CONDITIONS, TO("20880"), TO("20881"));
	expect(2);
	replace_rule(CONDITIONS, TO("20881"), TO("9"));
	expect(0);
	assert_non_null(strstr(spoke_engine_why(subscriptionrig.engines[CLIENT]),
			       "config/dubbo/" ECHO "::.condition-router leaves no provider"));
	replace_rule(CONDITIONS, TO("9"), NULL);
	expect(1 | 2);
	assert_int_equal(events("config/dubbo/" ECHO "::.condition-router routes"), 3);
	assert_int_equal(events("config/dubbo/" ECHO "::.condition-router no longer routes"), 1);
}

TEST(broken_condition_leaves_the_last_rule_in_force)
{
	static const char broken[] = "conditions: [a==b]";

	start(2);
	replace_rule(CONDITIONS, NULL, TO("20880"));
	replace_rule(CONDITIONS, TO("20880"), broken);
	expect(1);
	assert_int_equal(events("rule config/dubbo/" ECHO "::.condition-router ignored"), 1);
	replace_rule(CONDITIONS, broken, NULL);
	expect(1 | 2);
}

TEST(rule_of_a_later_version_is_none)
{
	static const char later[] = "{configVersion: v3.2, conditions: ['=>']}";

	start(2);
	replace_rule(CONDITIONS, NULL, TO("20880"));
	replace_rule(CONDITIONS, TO("20880"), later);
	expect(1 | 2);
	assert_int_equal(events("ignored: configVersion: above v3.1"), 1);
}

TEST(rules_of_applications_and_tags_apply)
{
	static const char gray[] = "{tags: [{name: gray, addresses: ['127.0.0.1:20880']}]}";

	start(3);
	replace_rule("spoke/.condition-router", NULL, TO("20880~20881"));
	expect(1 | 2);
	replace_rule("spoke/.tag-router", NULL, gray);
	expect(2);
	replace_rule("spoke/.condition-router", TO("20880~20881"), NULL);
	expect(2 | 4);
	replace_rule("spoke/.tag-router", gray, NULL);
	expect(1 | 2 | 4);
}

#define SHOP "dubbo://127.0.0.1:20881/" ECHO "?application=shop"
#define BARN "dubbo://127.0.0.1:20882/" ECHO "?application=barn"

/* The rule of an application that comes back applies again, although it has not changed. */
TEST(rules_are_those_of_the_application_of_the_first_provider)
{
	static const char gray[] = "{tags: [{name: gray, addresses: ['127.0.0.1:20881']}]}";

	start(0);
	fakereg_add("shop/.tag-router", gray);
	fakereg_add("barn/.condition-router", TO("20882"));
	subscriptionrig_pass(SOON_NS);
	for (int i = 0; i < 2; i++) {
		fakereg_add(ECHO, SHOP);
		fakereg_add(ECHO, "dubbo://127.0.0.1:20880/" ECHO "?application=shop");
		subscriptionrig_pass(SECOND);
		assert_non_null(
			subscriptionrig.consumer->directory->routing->rules.of[SPOKEI_ROUTE_TAGS]);
		assert_null(subscriptionrig.consumer->directory->routing->rules
				    .of[SPOKEI_ROUTE_PROVIDER]);
		fakereg_remove(ECHO, SHOP);
		fakereg_remove(ECHO, "dubbo://127.0.0.1:20880/" ECHO "?application=shop");
		fakereg_add(ECHO, BARN);
		subscriptionrig_pass(SECOND);
		assert_null(
			subscriptionrig.consumer->directory->routing->rules.of[SPOKEI_ROUTE_TAGS]);
		assert_non_null(subscriptionrig.consumer->directory->routing->rules
					.of[SPOKEI_ROUTE_PROVIDER]);
		fakereg_remove(ECHO, BARN);
	}
}

TEST(urls_of_routers_apply_and_others_are_logged)
{
	static const char url[] = "route://0.0.0.0/" ECHO
				  "?category=routers&force=true&rule=%3D%3E%20port%3D20881";

	start(2);
	fakereg_add(ROUTERS, url);
	fakereg_add(ROUTERS, "script://0.0.0.0/" ECHO "?category=routers");
	fakereg_add(ROUTERS, "route://0.0.0.0/demo.Other?force=true&rule=%3D%3E");
	subscriptionrig_pass(SOON_NS);
	expect(2);
	assert_int_equal(events("1 routers of " ECHO " ignored"), 1);
	fakereg_remove(ROUTERS, url);
	subscriptionrig_pass(SOON_NS);
	expect(1 | 2);
	assert_int_equal(events("1 routers of " ECHO " ignored"), 1);
}

TEST(scripts_are_logged_with_their_path)
{
	start(1);
	replace_rule("spoke/.script-router", NULL, "script: x");
	replace_rule("spoke/.MESHAPPRULE", NULL, "x");
	assert_int_equal(events("rule config/dubbo/spoke.script-router ignored: "), 1);
	assert_int_equal(events("rule config/dubbo/spoke.MESHAPPRULE ignored: "), 1);
	expect(1);
}

TEST(rules_change_while_calls_run)
{
	static const char *const ports[] = { TO("20880"), TO("20881"), TO("20882") };

	start(3);
	for (int i = 0; i < 30; i++) {
		const struct spoke_span args = { "\xa4text", 5 };

		assert_int_equal(spoke_call(subscriptionrig.echo, args, NULL, NULL, NULL, NULL), 0);
		if (i > 0)
			fakereg_remove(CONDITIONS, ports[(i - 1) % 3]);
		fakereg_add(CONDITIONS, ports[i % 3]);
		subscriptionrig_pass((uint64_t)i % 5 * MS);
	}
	subscriptionrig_pass(SECOND);
	assert_int_equal(subscriptionrig.served[0] + subscriptionrig.served[1] +
				 subscriptionrig.served[2],
			 30);
	expect(4);
}
