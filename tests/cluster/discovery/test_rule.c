/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of Dubbo in YAML, and the URLs that they become. */
#include "cluster/discovery/override.h"
#include "tests/core/memory.h"
#include "tests/support/test.h"

#include <stdio.h>

#define HEAD "configVersion: v3.0\nscope: service\nkey: demo.Echo\nconfigs:\n"

static struct memory memory;
static struct spokei_url_list list;
static char why[SPOKEI_RULE_WHY];

static int read_rule(const char *text)
{
	spokei_url_list_fini(&list);
	spokei_url_list_init(&list, &memory.env);
	*why = '\0';
	return spokei_rule_read(text, &list, why);
}

/* Reads a rule that has one URL. */
static const char *url_of(const char *text)
{
	static char out[1024];

	if (read_rule(text) || list.count != 1 || list.bad)
		fail_msg("%s: %zu URLs, %zu bad: %s %s", text, list.count, list.bad, why,
			 list.why.text);
	(void)spoke_url_print(&list.urls[0], SPOKE_URL_WHOLE, out, sizeof(out));
	return out;
}

TEST(rules_become_the_urls_of_earlier_versions)
{
	static const char *const rows[][2] = {
		{ HEAD "- side: consumer\n  addresses: [0.0.0.0]\n  parameters:\n    weight: 0\n",
		  "override://0.0.0.0/demo.Echo?side=consumer&enabled=true&weight=0" },
		{ HEAD "- side: consumer\n  parameters: {timeout: '500', echo.retries: 1}\n"
		       "  providerAddresses:\n  - 10.0.0.1:20880\n  - 10.0.0.2\nenabled: false\n",
		  "override://0.0.0.0/demo.Echo?side=consumer&enabled=false&"
		  "providers=10.0.0.1:20880,10.0.0.2&timeout=500&echo.retries=1" },
		{ "{key: g1/demo.Echo:1.0, configs: [{side: consumer, applications: [a, b], "
		  "parameters: {disabled: true}}]}",
		  "override://0.0.0.0/demo.Echo?side=consumer&enabled=true&application=a,b&"
		  "disabled=true&group=g1&version=1.0" },
		{ "{scope: application, key: shop, configs: [{side: consumer, parameters: {a: "
		  "b}}]}",
		  "override://0.0.0.0/*?side=consumer&enabled=true&application=shop&a=b" },
		{ "{scope: application, key: shop, configs: [{side: consumer, services: [x.Y], "
		  "parameters: {a: b}}]}",
		  "override://0.0.0.0/x.Y?side=consumer&enabled=true&application=shop&a=b" },
		{ HEAD "- {side: consumer, type: special, enabled: false, parameters: {a: b}}",
		  "override://0.0.0.0/demo.Echo?side=consumer&enabled=false&a=b" },
		{ HEAD "- {side: consumer, parameters: {a: b, enabled: false, side: provider}}",
		  "override://0.0.0.0/demo.Echo?side=consumer&enabled=true&a=b" },
		{ HEAD "- {side: provider, addresses: ['10.0.0.9'], parameters: {a: b}}",
		  "override://10.0.0.9/demo.Echo?side=provider&enabled=true&a=b" },
		{ HEAD "- {side: consumer, match: {providerAddress: {wildcard: '10.0.0.1:*'}, app: "
		       "{oneof: [{exact: a}, {exact: b}]}, param: [{key: region, value: {exact: "
		       "x}}]}, parameters: {a: b}}",
		  "override://0.0.0.0/demo.Echo?application=a,b&providers=10.0.0.1:*&~region=x&"
		  "side=consumer&enabled=true&a=b" },
		{ HEAD "- {side: consumer, match: {param: [{key: application, value: {exact: "
		       "x}}]}, parameters: {a: b}}",
		  "override://0.0.0.0/demo.Echo?providers=*&application=x&side=consumer&"
		  "enabled=true&a=b" },
		{ "[\"override://0.0.0.0/demo.Echo?weight=1\"]",
		  "override://0.0.0.0/demo.Echo?weight=1" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(url_of(rows[i][0]), rows[i][1]);
}

TEST(texts_without_content_are_no_rule)
{
	assert_int_equal(read_rule(""), 0);
	assert_int_equal(list.count, 0);
	assert_int_equal(read_rule("# nothing yet\n"), 0);
	assert_int_equal(list.count, 0);
}

TEST(entries_that_are_not_understood_are_counted)
{
	static const char *const rows[] = {
		HEAD "- side: consumer\n",
		HEAD "- parameters: {a: b}\n",
		HEAD "- {side: consumer, parameters: {}}",
		HEAD "- {side: consumer, parameters: {a: [b]}}",
		HEAD "- {side: consumer, match: {address: {exact: x}}, parameters: {a: b}}",
		HEAD "- {side: consumer, match: {service: {oneof: []}}, parameters: {a: b}}",
		HEAD "- {side: consumer, match: {app: x}, parameters: {a: b}}",
		HEAD "- {side: consumer, match: {param: [{key: k}]}, parameters: {a: b}}",
		HEAD "- {side: consumer, match: {providerAddress: {}}, parameters: {a: b}}",
		HEAD "- {side: consumer, addresses: '1.2.3.4', parameters: {a: b}}",
		HEAD "- {side: consumer, addresses: ['1.2.3.4:5'], parameters: {a: b}}",
		HEAD "- {side: consumer, providerAddresses: [[x]], parameters: {a: b}}",
		HEAD "- {side: consumer, enabled: 7, parameters: {a: b}}",
		HEAD "- word\n",
		"- {a: b}",
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (read_rule(rows[i]) || list.count != 0 || list.bad != 1)
			fail_msg("%s: %zu URLs, %zu bad", rows[i], list.count, list.bad);
}

TEST(broken_rules_are_refused_with_the_reason)
{
	static const char *const rows[][2] = {
		{ "{force: true, conditions: [", "line 1: " },
		{ "key: x\nconfigs: &a\n", "line 2: " },
		{ "word", "key: missing" },
		{ "key: x", "configs: missing" },
		{ "key: x\nconfigs: y", "configs: missing, or no list" },
		{ "scope: tag\nkey: x\nconfigs: []", "scope: " },
		{ "enabled: maybe\nkey: x\nconfigs: []", "enabled: " },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(read_rule(rows[i][0]), SPOKE_ESYNTAX);
		if (strstr(why, rows[i][1]) != why)
			fail_msg("%s: %s", rows[i][0], why);
	}
}

STEP(set_up)
{
	memory_init(&memory);
	spokei_url_list_init(&list, &memory.env);
}

STEP(tear_down)
{
	spokei_url_list_fini(&list);
}

GROUP(set_up, tear_down);
