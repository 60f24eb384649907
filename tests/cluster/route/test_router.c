/* SPDX-License-Identifier: Apache-2.0 */
/* What routing rules mean, where it differs from what one may expect, and what is no rule. */
#include "core/base/span.h"
#include "tests/cluster/route/routerig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define NORTH "dubbo://10.0.0.1:20880/h9.Alpha?application=shop&region=north"
#define SOUTH "dubbo://10.0.0.2:20881/h9.Alpha?application=shop&region=south&methods=a,b"
#define PLAIN "dubbo://10.0.0.3:20882/h9.Alpha?application=other"

enum {
	OF_NORTH = 1,
	OF_SOUTH = 2,
	OF_PLAIN = 4,
	OF_ALL = 7
};

FIXTURE(routerig_set_up, routerig_tear_down);

static unsigned decide(const char *condition)
{
	char text[600];

	PROVIDE(NORTH, SOUTH, PLAIN);
	(void)snprintf(text, sizeof(text), "{force: true, conditions: [\"%s\"]}", condition);
	routerig_rule(SPOKEI_ROUTE_SERVICE, text);
	return routerig_decide(0);
}

TEST(conditions_leave_the_providers_that_meet_them)
{
	static const struct {
		const char *condition;
		unsigned left;
	} rows[] = {
		{ "=> region=north,south", OF_NORTH | OF_SOUTH },
		{ "region=north,south", OF_NORTH | OF_SOUTH }, /* without an arrow: the providers */
		{ "true => region = north , south", OF_NORTH | OF_SOUTH },
		{ "method = wh* & side=consumer => region=north & application=shop", OF_NORTH },
		{ "=> region=* & region!=south", OF_NORTH },
		{ "=> region!=south", OF_NORTH }, /* not those without a region */
		{ "=> region=north & region=south", OF_NORTH | OF_SOUTH },
		{ "=> region=north region=south", OF_SOUTH }, /* begins the key again */
		{ "=> region=north,no*", OF_NORTH },
		{ "=> region=*th", OF_NORTH | OF_SOUTH },
		{ "=> region=n*h", OF_NORTH },
		{ "=> host=10.*.2", OF_SOUTH },
		{ "=> host=*.0.*.2", 0 }, /* only the last star counts: "*.0." is a text */
		{ "=> host=10.0.*.2", OF_SOUTH },
		{ "=> address=10.0.0.1:20880", OF_NORTH },
		{ "=> protocol=dubbo & path=h9.Alpha & port=~20881", OF_NORTH | OF_SOUTH },
		{ "=> port=20881~", OF_ALL }, /* an invalid range */
		{ "port=1~ => region=north", OF_ALL },
		{ "=> port=20881~20882", OF_SOUTH | OF_PLAIN },
		{ "=> region=0~0", OF_NORTH | OF_SOUTH }, /* texts count as 0 */
		{ "=> port=~99999999999", OF_ALL },
		{ "=> interface=$interface", 0 },
		{ "=> path=$interface", OF_ALL },
		{ "=> host!=$host", OF_ALL },
		{ "=> method=who", 0 },
		{ "=> methods=a", 0 },
		{ "=> region", 0 },
		{ "=> &&&", 0 },
		{ "=>", 0 },
		{ "=> false", 0 },
		{ "method=add =>", OF_ALL },
		{ "consumer.application=cr => provider.region=north", OF_NORTH },
		{ "region=north => region=north", OF_ALL }, /* the consumer has no region */
		{ "methods=who & arguments[0]=h* => region=north", OF_NORTH },
		{ "arguments[1]=x => region=north", OF_ALL },
		{ "arguments[1]!=x => region=north", OF_NORTH },
		{ "arguments[]=hi => region=north", OF_ALL },
		{ "attachments[k]=v => region=north", OF_NORTH },
		{ "attachments[k]!=v => region=north", OF_ALL },
		{ "attachments[none]!=v => region=north", OF_ALL },
		{ "attachments[a.b]!=v => region=north", OF_NORTH }, /* Java cuts at the dot */
		{ "=> arguments[0]!=hi", OF_ALL },
		{ "host=127.0.0.1 & protocol=consumer => region=north", OF_NORTH },
		{ "application=cr,x & application!=y => region=north", OF_NORTH },
	};

	routerig_attach("k=v");
	for (size_t i = 0; i < LENGTH(rows); i++) {
		unsigned left = decide(rows[i].condition);

		if (left != rows[i].left)
			fail_msg("%s: %x", rows[i].condition, left);
	}
}

TEST(numbers_and_flags_are_arguments_as_texts)
{
	static const unsigned char args[] = "\x07\xd0\x9c\xc3\xc0\x90";
	static const char *const conditions[] = {
		"arguments[0]=7 => region=north",    "arguments[0]=5~9 => region=north",
		"arguments[1]=-100 => region=north", "arguments[2]=true => region=north",
		"arguments[3]=null => region=north",
	};

	routerig.call.args = spokei_span(args, sizeof(args) - 1);
	for (size_t i = 0; i < LENGTH(conditions); i++)
		if (decide(conditions[i]) != OF_NORTH)
			fail_msg("%s", conditions[i]);
	assert_int_equal(decide("arguments[4]=[] => region=north"), OF_ALL);
}

TEST(unmet_condition_without_force_has_no_effect)
{
	PROVIDE(NORTH, SOUTH, PLAIN);
	routerig_rule(SPOKEI_ROUTE_SERVICE,
		      "{conditions: ['=> region=west', '=> region=north', '=> region=south']}");
	assert_int_equal(routerig_decide(0), OF_NORTH);
	routerig_rule(SPOKEI_ROUTE_SERVICE, "{enabled: false, conditions: ['=>']}");
	assert_int_equal(routerig_decide(0), OF_ALL);
}

TEST(rules_of_several_places_apply_one_after_the_other)
{
	PROVIDE(NORTH, SOUTH, PLAIN);
	routerig_rule(SPOKEI_ROUTE_SERVICE, "{force: true, conditions: ['=> application=shop']}");
	routerig_rule(SPOKEI_ROUTE_PROVIDER, "{force: true, conditions: ['=> region=south']}");
	assert_int_equal(routerig_decide(0), OF_SOUTH);
	routerig_rule(SPOKEI_ROUTE_APPLICATION, "{force: true, conditions: ['=> region=north']}");
	assert_int_equal(routerig_decide(0), 0);
	assert_int_equal(routerig.verdict.by, SPOKEI_ROUTE_APPLICATION);
}

/* --- v3.1 */

static void count_drawn(unsigned shares[OF_ALL + 1])
{
	memset(shares, 0, (OF_ALL + 1) * sizeof(*shares));
	PROVIDE(NORTH, SOUTH, PLAIN);
	for (uint64_t i = 0; i < 400; i++)
		shares[routerig_decide(i << 24)]++;
}

TEST(destinations_are_drawn_by_weight_among_those_with_providers)
{
	unsigned shares[OF_ALL + 1];

	routerig_rule(SPOKEI_ROUTE_SERVICE,
		      "configVersion: v3.1\nconditions:\n- from: {match: method=who}\n  to:\n"
		      "  - match: region=north\n    weight: 300\n  - match: region=south\n"
		      "  - match: region=west\n    weight: 600\n");
	count_drawn(shares);
	assert_int_equal(shares[OF_NORTH] + shares[OF_SOUTH], 400);
	assert_true(shares[OF_SOUTH] > 60 && shares[OF_SOUTH] < 140);
}

TEST(destinations_without_providers_depend_on_force)
{
	unsigned shares[OF_ALL + 1];

	routerig_rule(
		SPOKEI_ROUTE_SERVICE,
		"{configVersion: v3.1, conditions: [{from: {}, to: [{match: region=east}]}]}");
	count_drawn(shares);
	assert_int_equal(shares[OF_ALL], 400);
	routerig_rule(SPOKEI_ROUTE_SERVICE,
		      "{configVersion: V3.1, force: true, conditions: [{from: "
		      "{}, to: [{match: region=east}, {match: host=x}]}]}");
	count_drawn(shares);
	assert_int_equal(shares[0], 400);
	routerig_rule(
		SPOKEI_ROUTE_SERVICE,
		"{configVersion: v3.1, conditions: [{from: {match: method=x}, to: []}, {from: "
		"{}, to: [{match: ''}]}]}");
	count_drawn(shares);
	assert_int_equal(shares[OF_ALL], 400);
	routerig_rule(SPOKEI_ROUTE_SERVICE,
		      "{configVersion: v3.1, conditions: [{from: {}, to: []}]}");
	count_drawn(shares);
	assert_int_equal(shares[0], 400);
}

/* --- tags */

#define GRAY "dubbo://10.0.0.4:20883/h9.Alpha?dubbo.tag=gray"

enum {
	OF_GRAY = 8
};

static unsigned decide_as(const char *tag, bool force)
{
	PROVIDE(NORTH, SOUTH, PLAIN, GRAY);
	routerig.call.tag = spokei_span_of(tag);
	routerig.call.force_tag = force;
	return routerig_decide(0);
}

TEST(tags_of_providers_count_without_a_rule)
{
	char lengthy[100] = "";

	assert_int_equal(decide_as("", false), OF_ALL);
	assert_int_equal(decide_as("", true), OF_ALL);
	assert_int_equal(decide_as("gray", true), OF_GRAY);
	assert_int_equal(decide_as("blue", false), OF_ALL);
	assert_int_equal(decide_as("blue", true), 0);
	assert_int_equal(routerig.verdict.by, SPOKEI_ROUTE_TAGS);
	memset(lengthy, 'x', sizeof(lengthy) - 1);
	assert_int_equal(decide_as(lengthy, false), OF_ALL);
	assert_int_equal(decide_as(lengthy, true), 0);
}

TEST(tags_of_a_rule_name_addresses)
{
	routerig_rule(SPOKEI_ROUTE_TAGS, "{tags: [{name: red, addresses: ['10.0.0.1:20880', "
					 "10.0.0.2]}, {name: gone, addresses: ['10.9.9.9:1']}]}");
	assert_int_equal(decide_as("", false), OF_PLAIN);
	assert_int_equal(decide_as("red", true), OF_NORTH | OF_SOUTH);
	assert_int_equal(decide_as("gone", false), OF_PLAIN);
	assert_int_equal(decide_as("gone", true), 0);
	assert_int_equal(decide_as("gray", false), OF_GRAY);
	routerig_rule(SPOKEI_ROUTE_TAGS,
		      "{force: true, tags: [{name: gone, addresses: ['10.9.9.9:1']}]}");
	assert_int_equal(decide_as("gone", false), 0);
	routerig_rule(SPOKEI_ROUTE_TAGS, "{tags: [{name: all, addresses: ['*']}]}");
	assert_int_equal(decide_as("", false), 0);
}

TEST(tags_of_v30_match_parameters)
{
	routerig_rule(
		SPOKEI_ROUTE_TAGS,
		"configVersion: v3.0\ntags:\n- name: red\n  match:\n  - key: region\n    "
		"value: {prefix: no}\n  - key: application\n    value: {exact: shop}\n- name: "
		"west\n  match: [{key: region, value: {exact: west}}]\n");
	assert_int_equal(decide_as("red", true), OF_NORTH);
	assert_int_equal(decide_as("", false), OF_SOUTH | OF_PLAIN);
	/* No provider has it, so the rule does not know it. */
	assert_int_equal(decide_as("west", false), OF_SOUTH | OF_PLAIN);
	routerig_rule(SPOKEI_ROUTE_TAGS, "{configVersion: v3.0, tags: [{name: red, match: [{key: "
					 "region, value: {empty: ''}}]}, {name: any, match: [{key: "
					 "region, value: {noempty: ''}}]}]}");
	assert_int_equal(decide_as("red", true), OF_PLAIN | OF_GRAY);
	assert_int_equal(decide_as("any", true), OF_NORTH | OF_SOUTH);
	routerig_rule(SPOKEI_ROUTE_TAGS, "{configVersion: v2.0, tags: [{name: red, match: [{key: "
					 "region, value: {exact: north}}]}]}");
	assert_int_equal(decide_as("red", true), 0);
}

TEST(patterns_of_addresses_fit)
{
	static const struct {
		const char *pattern;
		bool fits;
	} rows[] = {
		{ "10.0.3.7", true },
		{ "10.0.3.7:20880", true },
		{ "10.0.3.7:*", true },
		{ "10.0.3.7:20881", false },
		{ "*", true },
		{ "*.*.*.*", true },
		{ "10.0.*.7", true },
		{ "10.0.*.8", false },
		{ "10.0.1-3.7:20880", true },
		{ "10.0.4-9.7", false },
		{ "10.0.3", false },
		{ "10.0.3.7.1", false },
		{ "10.0.3.0/24", true },
		{ "10.0.4.0/24", false },
		{ "0.0.0.0:20880", true },
		{ "0.0.0.0", true },
		{ "0.0.0.0:1", false },
		{ "", false },
		{ "a.b.c.d", false },
		{ "10.0.-3.7", false },
		{ "10.0.3-.7", false },
		{ "[10.0.3.7]:20880", true },
		{ "[", false },
		{ "10.0.3.7/", false },
	};

	for (size_t i = 0; i < LENGTH(rows); i++)
		if (spokei_route_address_fits(spokei_span_of(rows[i].pattern), "10.0.3.7", 20880) !=
		    rows[i].fits)
			fail_msg("%s", rows[i].pattern);
	assert_true(spokei_route_address_fits(spokei_span_of("[::1]:5"), "::1", 5));
	assert_false(spokei_route_address_fits(spokei_span_of("[::1]:6"), "::1", 5));
	assert_false(spokei_route_address_fits(spokei_span_of("*"), NULL, -1));
}

/* --- texts that are no rule */

TEST(broken_rules_are_refused_with_the_reason)
{
	static const struct {
		enum spokei_route_source source;
		const char *text;
		const char *why;
	} rows[] = {
		{ SPOKEI_ROUTE_SERVICE, "{force: true, conditions: [", "line 1: " },
		{ SPOKEI_ROUTE_SERVICE, "[a]", "no map" },
		{ SPOKEI_ROUTE_SERVICE, "force: maybe", "force or enabled: " },
		{ SPOKEI_ROUTE_SERVICE, "conditions: a", "conditions: no list" },
		{ SPOKEI_ROUTE_SERVICE, "conditions: [[a]]", "a condition is no text" },
		{ SPOKEI_ROUTE_SERVICE, "conditions: ['']", "a condition is blank" },
		{ SPOKEI_ROUTE_SERVICE, "conditions: ['=a']", "a condition has signs" },
		{ SPOKEI_ROUTE_SERVICE, "conditions: ['a==b']", "a condition has signs" },
		{ SPOKEI_ROUTE_SERVICE, "conditions: ['a,b']", "a condition has signs" },
		{ SPOKEI_ROUTE_SERVICE, "conditions: ['a!b']", "a condition has signs" },
		{ SPOKEI_ROUTE_SERVICE, "{configVersion: v3.1, conditions: [a]}",
		  "a condition without" },
		{ SPOKEI_ROUTE_SERVICE,
		  "{configVersion: v3.1, conditions: [{from: {}, to: [{weight: -1}]}]}",
		  "to: write" },
		{ SPOKEI_ROUTE_TAGS, "tags: x", "tags: no list" },
		{ SPOKEI_ROUTE_TAGS, "tags: [{addresses: [a]}]", "a tag has no name" },
		{ SPOKEI_ROUTE_TAGS, "tags: [{name: a, addresses: b}]", "addresses: no list" },
		{ SPOKEI_ROUTE_TAGS, "tags: [{name: a, addresses: [[b]]}]",
		  "an address is no text" },
		{ SPOKEI_ROUTE_TAGS,
		  "{configVersion: v3.0, tags: [{name: a, match: [{key: b, value: {regex: c}}]}]}",
		  "match: write" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		assert_int_equal(routerig_try_rule(rows[i].source, rows[i].text), SPOKE_ESYNTAX);
		if (strstr(routerig.why, rows[i].why) != routerig.why)
			fail_msg("%s: %s", rows[i].text, routerig.why);
	}
}

TEST(rules_without_effect_are_none)
{
	static const char *const texts[] = { "", "# nothing", "force: true", "conditions: []",
					     "{enabled: false, conditions: ['a==b']}" };

	for (size_t i = 0; i < LENGTH(texts); i++) {
		routerig_rule(SPOKEI_ROUTE_SERVICE, texts[i]);
		assert_null(routerig.rules.of[SPOKEI_ROUTE_SERVICE]);
	}
}

/* Writes a rule with so many conditions, each with so many values. */
static char *write_rule(unsigned conditions, unsigned values)
{
	static char text[80000];
	size_t len = (size_t)snprintf(text, sizeof(text), "conditions: [");

	for (unsigned i = 0; i < conditions; i++) {
		len += (size_t)snprintf(text + len, sizeof(text) - len, "'=> a=b");
		for (unsigned k = 0; k < values; k++)
			len += (size_t)snprintf(text + len, sizeof(text) - len, ",b");
		len += (size_t)snprintf(text + len, sizeof(text) - len, "', ");
	}
	(void)snprintf(text + len, sizeof(text) - len, "]");
	return text;
}

TEST(size_of_rules_is_bounded)
{
	char text[2000];
	size_t len = (size_t)snprintf(text, sizeof(text),
				      "{configVersion: v3.1, conditions: [{from: {}, to: [");

	routerig_rule(SPOKEI_ROUTE_SERVICE, write_rule(64, 10));
	assert_int_equal(routerig_try_rule(SPOKEI_ROUTE_SERVICE, write_rule(65, 1)),
			 SPOKE_ETOOLARGE);
	assert_string_equal(routerig.why, "more than 64 conditions");
	routerig_rule(SPOKEI_ROUTE_SERVICE, write_rule(1, 4092));
	assert_int_equal(routerig_try_rule(SPOKEI_ROUTE_SERVICE, write_rule(1, 4094)),
			 SPOKE_ETOOLARGE);
	assert_string_equal(routerig.why, "more than 4,095 keys and values");
	assert_int_equal(routerig_try_rule(SPOKEI_ROUTE_SERVICE, write_rule(8, 4094)),
			 SPOKE_ETOOLARGE);
	for (unsigned i = 0; i < 33; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "{match: a=b},");
	(void)snprintf(text + len, sizeof(text) - len, "]}]}");
	assert_int_equal(routerig_try_rule(SPOKEI_ROUTE_SERVICE, text), SPOKE_ETOOLARGE);
	assert_string_equal(routerig.why, "a condition has more than 32 destinations");
}

TEST(unsupported_kinds_are_rules_that_say_so)
{
	static const char *const categories[] = { SPOKEI_RULE_SCRIPTS, SPOKEI_RULE_MESH,
						  SPOKEI_RULE_CONDITIONS };

	for (size_t i = 0; i < LENGTH(categories); i++) {
		struct spokei_route_rule *rule;

		assert_int_equal(spokei_route_read(&routerig.memory.env, categories[i],
						   "configVersion: v3.2\nconditions: ['=>']", &rule,
						   routerig.why),
				 0);
		assert_non_null(rule->unsupported);
		assert_int_equal(rule->condition_count, 0);
		spokei_route_free(rule);
	}
}

/* --- routers as URLs */

static size_t read_urls(const char *const *texts)
{
	struct spoke_url urls[8];
	size_t count = 0;
	size_t ignored;

	for (; texts[count]; count++)
		assert_int_equal(spoke_url_parse(&routerig.memory.env, texts[count],
						 strlen(texts[count]), &urls[count], NULL),
				 0);
	routerig_rule(SPOKEI_ROUTE_URLS, NULL);
	assert_int_equal(spokei_route_read_urls(&routerig.memory.env, urls, count,
						&routerig.rules.of[SPOKEI_ROUTE_URLS], &ignored),
			 0);
	while (count > 0)
		spoke_url_fini(&urls[--count]);
	return ignored;
}

TEST(urls_of_routers_apply_by_priority)
{
	static const char *const urls[] = {
		"script://0.0.0.0/h9.Alpha?rule=x",
		"condition://0.0.0.0/h9.Alpha?rule=a%3D%3Db",
		"route://0.0.0.0/h9.Alpha?router=script&rule=x",
		"route://0.0.0.0/h9.Alpha?force=true&priority=9&rule=%3D%3E%20region%3Dsouth",
		"route://0.0.0.0/h9.Alpha?priority=1&rule=%253D%253E%2520region%253Dno*",
		"route://0.0.0.0/h9.Alpha?enabled=false&rule=%3D%3E",
		NULL,
	};
	static const char *const none[] = { NULL };

	PROVIDE(NORTH, SOUTH, PLAIN);
	assert_int_equal(read_urls(urls), 3);
	assert_int_equal(routerig_decide(0), 0);
	assert_int_equal(routerig.verdict.by, SPOKEI_ROUTE_URLS);
	assert_int_equal(read_urls(none), 0);
	assert_null(routerig.rules.of[SPOKEI_ROUTE_URLS]);
	assert_int_equal(routerig_decide(0), OF_ALL);
}
