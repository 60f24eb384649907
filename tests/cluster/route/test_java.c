/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of tests/golden/dubbo3-rules.tsv, and the providers that a consumer of Dubbo 3.3.1 then
 * called: A in Java, of the application "prov-all", and S, of "spoke". Rules about the migration
 * between lists are not decided here.
 */
#include "cluster/discovery/override.h"
#include "tests/cluster/route/routerig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define CASES 48
#define MIGRATIONS 4
#define NODE "/dubbo/config/dubbo/"
#define A "dubbo://10.79.0.1:25080/h9.Alpha?application=prov-all"
#define S "dubbo://10.79.0.2:25100/h9.Alpha?application=spoke&region=north&region2=south"

enum {
	OF_A = 1,
	OF_S = 2
};

struct row {
	char *name;
	char *node;
	char *rule;
	char *share;
};

static unsigned expected_of(const struct row *row)
{
	return (strstr(row->share, "A=") ? OF_A : 0u) | (strstr(row->share, "S=") ? OF_S : 0u);
}

/* Returns whether the consumer reads a rule with this key: of the service, of its own application,
 * and of that of the first provider, which was S. */
static bool reads_key(const char *node, const char *suffix, bool of_provider)
{
	static const char *const keys[] = { "h9.Alpha::", "cr", "spoke" };
	char text[100];

	for (size_t i = 0; i < LENGTH(keys) - !of_provider; i++) {
		(void)snprintf(text, sizeof(text), NODE "%s%s", keys[i], suffix);
		if (strcmp(node, text) == 0)
			return true;
	}
	return false;
}

static unsigned decide_routed(const struct row *row)
{
	bool tags = strstr(row->node, SPOKEI_RULE_TAGS) != NULL;

	if (reads_key(row->node, tags ? SPOKEI_RULE_TAGS : SPOKEI_RULE_CONDITIONS, true))
		(void)routerig_try_rule(tags ? SPOKEI_ROUTE_TAGS : SPOKEI_ROUTE_SERVICE, row->rule);
	return routerig_decide(0);
}

/* Returns the providers with a weight that no configurator has disabled. */
static unsigned decide_configured(const struct row *row)
{
	const struct spokei_override_of of = { "h9.Alpha", "", "", "cr" };
	struct spokei_overrides rules;
	unsigned left = 0;

	spokei_overrides_init(&rules, &routerig.memory.env);
	if (reads_key(row->node, SPOKEI_RULE_CONFIGURATORS, false)) {
		assert_int_equal(spokei_rule_read(row->rule, &rules.of[SPOKEI_OVERRIDE_SERVICE],
						  routerig.why),
				 0);
		(void)spokei_override_choose(&of, &rules.of[SPOKEI_OVERRIDE_SERVICE]);
	}
	for (unsigned i = 0; i < routerig.count; i++) {
		struct spoke_url edited;

		assert_int_equal(spokei_override_provider(&rules, &routerig.urls[i], &edited), 0);
		if (strcmp(spokei_urls_value(&edited, "weight"), "0") != 0 &&
		    strcmp(spokei_urls_value(&edited, "disabled"), "true") != 0)
			left |= 1u << i;
		if (edited.parameters != routerig.urls[i].parameters)
			spoke_url_fini(&edited);
	}
	spokei_overrides_fini(&rules);
	return left;
}

/* Decides without a rule, by the tag of S and that of the call, or of the consumer. */
static unsigned decide_tagged(const struct row *row)
{
	const char *attached = strstr(row->rule, "attach=");

	/* The interface's list, which the consumer fell back to for this tag, had S without one. */
	if (strcmp(row->name, "attachment dubbo.tag=blue") == 0)
		PROVIDE(A, S);
	else
		PROVIDE(A, S "&dubbo.tag=gray");
	if (attached)
		routerig_attach(attached + strlen("attach="));
	else if (strstr(row->rule, "consumer tag=gray"))
		routerig.call.tag = (struct spoke_span){ "gray", 4 };
	return routerig_decide(0);
}

static void check_row(const struct row *row)
{
	unsigned left;

	PROVIDE(A, S);
	routerig_attach("k1=v1");
	if (*row->node == '-')
		left = decide_tagged(row);
	else if (strstr(row->node, SPOKEI_RULE_CONFIGURATORS))
		left = decide_configured(row);
	else
		left = decide_routed(row);
	/* One is drawn of two. */
	for (uint64_t i = 1; strstr(row->rule, "v3.1") && i < 40; i++)
		left |= routerig_decide(97 * i << 24);
	if (left != expected_of(row))
		fail_msg("%s: %x, Java %s", row->name, left, row->share);
}

static char *next_cell(char **at)
{
	char *cell = *at;
	size_t len = strcspn(cell, "\t\n");

	*at = cell + len + (cell[len] != '\0');
	cell[len] = '\0';
	return cell;
}

TEST(rules_are_decided_as_java_has_decided, .bare = true)
{
	FILE *file = fopen(SPOKE_GOLDEN "/dubbo3-rules.tsv", "re");
	char line[1000];
	unsigned checked = 0;

	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file)); /* the head */
	while (fgets(line, sizeof(line), file)) {
		char *at = line;
		struct row row;

		row.name = next_cell(&at);
		row.node = next_cell(&at);
		row.rule = next_cell(&at);
		row.share = next_cell(&at);
		if (strstr(row.node, ".migration"))
			continue;
		assert_int_equal(routerig_set_up(NULL), 0);
		check_row(&row);
		assert_int_equal(routerig_tear_down(NULL), 0);
		checked++;
	}
	assert_int_equal(fclose(file), 0);
	assert_int_equal(checked, CASES - MIGRATIONS);
}
