/* SPDX-License-Identifier: Apache-2.0 */
/* Calls go only to the endpoints that rules and tags leave. */
#include "cluster/endpoints/routing.h"
#include "cluster/route/router.h"
#include "core/value/builder.h"
#include "tests/cluster/endpoints/dirrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GRAY "?dubbo.tag=gray"
#define NORTH "?region=north"
#define SOUTH "?region=south"

static const struct spoke_consumer_options presets;
static struct spokei_route_rule *rules[SPOKEI_ROUTE_SOURCES];

static void start(unsigned count, const char *parameters,
		  const struct spoke_consumer_options *options)
{
	for (unsigned i = 0; i < count; i++)
		dirrig_start(i);
	dirrig_consume(parameters, options);
	dirrig_beat(MS);
}

/* Sets a rule as a registry does; NULL: none. */
static void rule(enum spokei_route_source source, const char *text)
{
	const char *category = source == SPOKEI_ROUTE_TAGS ? SPOKEI_RULE_TAGS
							   : SPOKEI_RULE_CONDITIONS;
	struct spokei_route_rule *former = rules[source];
	char why[SPOKEI_RULE_WHY];

	rules[source] = NULL;
	if (text)
		assert_int_equal(spokei_route_read(&dirrig.sides[0].process.env, category, text,
						   &rules[source], why),
				 0);
	if (dirrig.consumer->directory->routing == NULL) {
		struct spoke_url consumer = { .scheme = "consumer",
					      .path = "demo.Echo",
					      .port = -1 };

		assert_int_equal(spokei_routing_own(dirrig.consumer->directory, &consumer), 0);
	}
	spokei_routing_set(dirrig.consumer->directory, source, rules[source], "the rule");
	spokei_route_free(former);
}

static void to_region(const char *region)
{
	char text[100];

	(void)snprintf(text, sizeof(text), "{force: true, conditions: ['=> region=%s']}", region);
	rule(SPOKEI_ROUTE_SERVICE, text);
}

/* Makes a call with attachments, "dubbo.tag" and perhaps "dubbo.force.tag". */
static int call_tagged(const char *tag, bool force)
{
	unsigned char bytes[100];
	struct spoke_call_options options = { .timeout_ns = 100 * MS };
	struct spoke_builder builder;

	spoke_builder_init_fixed(&builder, bytes, sizeof(bytes), NULL);
	spoke_pack_map(&builder, force ? 2 : 1);
	spoke_pack_text(&builder, "dubbo.tag");
	spoke_pack_text(&builder, tag);
	if (force) {
		spoke_pack_text(&builder, "dubbo.force.tag");
		spoke_pack_text(&builder, "true");
	}
	assert_int_equal(spoke_builder_finish_value(&builder, &options.attachments), 0);
	return spoke_call(dirrig.echo, (struct spoke_span){ NULL, 0 }, &options, NULL, NULL, NULL);
}

/* Makes calls and checks which providers they have reached, a bit each. */
static void expect(const char *tag, unsigned sides)
{
	unsigned reached = 0;

	for (unsigned i = 0; i < 8; i++) {
		int error = tag ? call_tagged(tag, false) : dirrig_call();

		if (error)
			fail_msg("%s: %s", spoke_strerror(error), spoke_engine_why(dirrig.engine));
	}
	dirrig_pass(20 * MS);
	for (unsigned i = 0; i < PROVIDERS; i++)
		reached |= dirrig_served(i) > 0 ? 1u << i : 0;
	if (reached != sides)
		fail_msg("tag %s: %x, not %x", tag ? tag : "none", reached, sides);
}

static int set_up(void **state)
{
	memset(rules, 0, sizeof(rules));
	return dirrig_set_up(state);
}

static int tear_down(void **state)
{
	for (unsigned i = 0; i < SPOKEI_ROUTE_SOURCES; i++)
		if (rules[i])
			rule((enum spokei_route_source)i, NULL);
	return dirrig_tear_down(state);
}

FIXTURE(set_up, tear_down);

/* --- tags */

TEST(calls_go_to_providers_with_their_tag)
{
	start(4, "", &presets);
	LIST(A, B GRAY, C GRAY, D "?dubbo.tag=blue");
	dirrig_pass(10 * MS);
	expect(NULL, 1);
	expect("gray", 2 | 4);
	expect("blue", 8);
	expect("red", 1);
	assert_int_equal(call_tagged("red", true), SPOKE_ENOPROVIDER);
	assert_non_null(strstr(spoke_engine_why(dirrig.engine),
			       "the tags of the providers and of the call leave none"));
}

TEST(untagged_call_fails_if_all_providers_have_tags)
{
	start(2, "", &presets);
	LIST(A GRAY, B GRAY);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), SPOKE_ENOPROVIDER);
	assert_int_equal(call_tagged("red", false), SPOKE_ENOPROVIDER);
	expect("gray", 1 | 2);
}

/* The last provider with a tag may have gone. */
TEST(forced_tag_fails_where_no_provider_has_any)
{
	start(1, "", &presets);
	LIST(A);
	dirrig_pass(10 * MS);
	expect("gray", 1);
	assert_int_equal(call_tagged("gray", true), SPOKE_ENOPROVIDER);
}

TEST(tag_of_provider_changes_with_its_text)
{
	start(2, "", &presets);
	LIST(A, B GRAY "&timestamp=1");
	dirrig_pass(10 * MS);
	expect(NULL, 1);
	LIST(A GRAY, B "?timestamp=1");
	dirrig_pass(10 * MS);
	expect(NULL, 2);
	expect("gray", 1);
	LIST(A, B);
	dirrig_pass(10 * MS);
	expect(NULL, 1 | 2);
	assert_false(dirrig.consumer->directory->routes);
	LIST(A GRAY);
	dirrig_pass(10 * MS);
	LIST_NOBODY();
	dirrig_pass(10 * MS);
	assert_false(dirrig.consumer->directory->routes);
}

TEST(tag_of_the_consumer_is_that_of_calls_and_is_sent)
{
	static const char *const parameters[] = { "?tag=gray", "?dubbo.tag=gray" };

	for (unsigned i = 0; i < 3; i++) {
		const struct spoke_consumer_options options = { .tag = i == 2 ? "gray" : NULL };

		start(i == 0 ? 2 : 0, i < 2 ? parameters[i] : "", &options);
		LIST(A, B GRAY);
		dirrig_pass(10 * MS);
		expect(NULL, 2);
		assert_non_null(strstr(dirrig.sides[1].attachments, "\"dubbo.tag\": \"gray\""));
		expect("blue", 1);
		assert_non_null(strstr(dirrig.sides[0].attachments, "\"dubbo.tag\": \"blue\""));
		assert_null(strstr(dirrig.sides[0].attachments, "gray"));
		spoke_consumer_free(dirrig.consumer);
		(void)spoke_alarm_cancel(&dirrig.beat);
		dirrig_pass(SECOND);
	}
}

TEST(consumer_can_force_its_tag)
{
	start(1, "?tag=gray&dubbo.force.tag=true", &presets);
	LIST(A);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), SPOKE_ENOPROVIDER);
}

/* --- rules */

TEST(rules_apply_while_they_are_there)
{
	start(3, "", &presets);
	LIST(A NORTH, B SOUTH, C);
	dirrig_pass(10 * MS);
	expect(NULL, 1 | 2 | 4);
	to_region("north");
	expect(NULL, 1);
	to_region("*th");
	expect(NULL, 1 | 2);
	rule(SPOKEI_ROUTE_SERVICE, NULL);
	expect(NULL, 1 | 2 | 4);
	to_region("west");
	assert_int_equal(dirrig_call(), SPOKE_ENOPROVIDER);
	assert_non_null(strstr(spoke_engine_why(dirrig.engine), "the rule leaves no provider"));
}

TEST(rules_follow_the_list)
{
	start(4, "", &presets);
	LIST(A NORTH, B SOUTH);
	to_region("south");
	dirrig_pass(10 * MS);
	expect(NULL, 2);
	LIST(C SOUTH, B SOUTH, D NORTH);
	dirrig_pass(10 * MS);
	expect(NULL, 2 | 4);
	LIST(C NORTH, D SOUTH);
	dirrig_pass(10 * MS);
	expect(NULL, 8);
	LIST_NOBODY();
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), SPOKE_ENOPROVIDER);
	LIST(A SOUTH, B NORTH);
	dirrig_pass(10 * MS);
	expect(NULL, 1);
	LIST(A SOUTH, C SOUTH); /* C has the place of B */
	dirrig_pass(10 * MS);
	expect(NULL, 1 | 4);
}

TEST(rules_of_tags_name_addresses)
{
	start(3, "", &presets);
	LIST(A, B, C);
	rule(SPOKEI_ROUTE_TAGS, "{tags: [{name: gray, addresses: ['127.0.0.1:20881']}]}");
	dirrig_pass(10 * MS);
	expect(NULL, 1 | 4);
	expect("gray", 2);
}

TEST(consumer_host_is_that_of_its_connections)
{
	start(2, "", &presets);
	LIST(A NORTH, B SOUTH);
	dirrig_pass(10 * MS);
	rule(SPOKEI_ROUTE_SERVICE, "{conditions: ['host=127.0.0.1 => region=north']}");
	expect(NULL, 1);
	rule(SPOKEI_ROUTE_SERVICE, "{conditions: ['=> host=$host & region=south']}");
	expect(NULL, 2);
}

TEST(each_balancer_keeps_to_the_rules)
{
	static const struct spoke_balancer *const balancers[] = {
		&spoke_balancer_random,
		&spoke_balancer_round_robin,
		&spoke_balancer_least_active,
		&spoke_balancer_consistent_hash,
		&spoke_balancer_shortest_response,
		&spoke_balancer_two_choices,
	};

	for (size_t i = 0; i < LENGTH(balancers); i++) {
		const struct spoke_consumer_options options = { .balancer = balancers[i] };

		start(i == 0 ? 4 : 0, "", &options);
		LIST(A SOUTH, B NORTH, C SOUTH, D SOUTH);
		to_region("north");
		dirrig_pass(10 * MS);
		for (unsigned k = 0; k < 12; k++)
			assert_int_equal(dirrig_call(), 0);
		assert_int_equal(dirrig_served(1), 12);
		LIST(A SOUTH, B SOUTH, C SOUTH, D NORTH);
		dirrig_pass(10 * MS);
		for (unsigned k = 0; k < 12; k++)
			assert_int_equal(dirrig_call(), 0);
		assert_int_equal(dirrig_served(3), 12);
		rule(SPOKEI_ROUTE_SERVICE, NULL);
		spoke_consumer_free(dirrig.consumer);
		(void)spoke_alarm_cancel(&dirrig.beat);
		dirrig_pass(SECOND);
	}
}

TEST(round_robin_is_even_in_each_view)
{
	start(4, "", &presets);
	LIST(A, B, C GRAY, D GRAY);
	dirrig_pass(10 * MS);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(dirrig_call(), 0);
		assert_int_equal(call_tagged("gray", true), 0);
	}
	dirrig_pass(10 * MS);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(dirrig_served(i), 5);
}

/* --- more than one attempt */

TEST(retries_stay_inside_the_rules)
{
	const struct spoke_consumer_options options = { .policy = &spoke_policy_failover,
							.retries = 5 };

	start(3, "", &options);
	LIST(A NORTH, B NORTH, C SOUTH);
	to_region("north");
	dirrig_pass(10 * MS);
	dirrig_stop(0);
	dirrig_pass(10 * MS);
	expect(NULL, 2);
	dirrig_stop(1);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), SPOKE_EUNAVAILABLE);
	assert_int_equal(dirrig_served(2), 0);
	to_region("west");
	assert_int_equal(dirrig_call(), SPOKE_ENOPROVIDER);
}

TEST(broadcast_reaches_only_the_view)
{
	const struct spoke_consumer_options options = { .policy = &spoke_policy_broadcast };

	start(4, "", &options);
	LIST(A, B, C GRAY, D GRAY);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(dirrig_served(i), i < 2);
}

TEST(sticky_endpoint_is_left_for_a_rule)
{
	const struct spoke_consumer_options options = { .sticky = true };

	start(2, "", &options);
	LIST(A NORTH, B SOUTH);
	dirrig_pass(10 * MS);
	to_region("north");
	expect(NULL, 1);
	to_region("south");
	expect(NULL, 2);
	rule(SPOKEI_ROUTE_SERVICE, NULL);
	expect(NULL, 2);
}

TEST(call_waits_for_an_endpoint_of_its_view)
{
	const struct spoke_consumer_options options = { .wait_ready = true };
	const struct dirrig_call *call = &dirrig.calls[0];

	start(1, "", &options);
	LIST(A NORTH, B SOUTH);
	to_region("south");
	dirrig_pass(100 * MS);
	assert_int_equal(dirrig_try(20 * SECOND), 0);
	dirrig_pass(SECOND);
	assert_int_equal(call->ends, 0);
	dirrig_start(1);
	dirrig_pass(10 * SECOND);
	assert_int_equal(call->ends, 1);
	assert_int_equal(call->error, 0);
	assert_int_equal(dirrig_served(1), 1);
	assert_int_equal(dirrig_served(0), 0);
}

TEST(endpoint_at_its_limit_is_not_passed_over)
{
	const struct spoke_consumer_options options = { .endpoint_actives_max = 1 };

	start(2, "", &options);
	LIST(A NORTH, B SOUTH);
	to_region("north");
	dirrig_pass(10 * MS);
	dirrig.sides[0].mute = true;
	assert_int_equal(dirrig_try(SECOND), 0);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_try(SECOND), SPOKE_ELIMIT);
	dirrig_answer(0);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_try(SECOND), 0);
	dirrig_pass(10 * MS);
	dirrig_answer(0);
	dirrig_pass(10 * MS);
}

/* --- bounds */

TEST(number_of_views_is_bounded)
{
	char tag[20];

	start(2, "", &presets);
	LIST(A, B GRAY);
	dirrig_pass(10 * MS);
	for (unsigned i = 0; i < 100; i++) {
		(void)snprintf(tag, sizeof(tag), "tag%u", i);
		assert_int_equal(call_tagged(tag, false), 0);
		assert_int_equal(call_tagged("gray", false), 0);
		assert_true(dirrig.consumer->directory->routing->view_count <= SPOKEI_VIEWS_MAX);
	}
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_served(0), 100);
	assert_int_equal(dirrig_served(1), 100);
}

TEST(calls_without_memory_for_a_view_are_refused)
{
	unsigned refused = 0;

	start(2, "", &presets);
	for (unsigned nth = 1; nth <= 8; nth++) {
		int error;

		to_region(nth % 2 ? "north" : "south");
		if (nth % 2)
			LIST(A NORTH "&timestamp=1", B SOUTH);
		else
			LIST(A NORTH "&timestamp=2", B SOUTH "&x=y");
		dirrig_pass(10 * MS);
		spokei_faults_fail(&dirrig.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		error = dirrig_try(SECOND);
		spokei_faults_heal(&dirrig.faulty);
		refused += error == SPOKE_ENOMEM;
		if (error != SPOKE_ENOMEM)
			assert_int_equal(error, 0);
		dirrig_pass(10 * MS);
		assert_int_equal(dirrig_served(nth % 2), 0);
		expect(NULL, nth % 2 ? 1 : 2);
	}
	assert_true(refused >= 2);
}
