/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the rules of a registry. The reader of YAML stays within its bounds, its values nest, and
 * each URL that a rule becomes prints to a text that parses. A routing rule is read or refused with
 * a sentence, and decides about any call.
 */
#include "cluster/discovery/override.h"
#include "cluster/route/router.h"
#include "core/text/yaml.h"
#include "tests/core/memory.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* Returns the number of values inside one, with itself. */
/* NOLINTNEXTLINE(misc-no-recursion): the reader bounds the depth */
static unsigned count(const struct spokei_yaml *value)
{
	unsigned all = 1;

	demand((value->kind == SPOKEI_YAML_SCALAR) == (value->text != NULL),
	       "only scalars have texts");
	for (const struct spokei_yaml *at = spokei_yaml_next(value, NULL); at;
	     at = spokei_yaml_next(value, at)) {
		demand((value->kind == SPOKEI_YAML_MAP) == (at->key != NULL), "maps have keys");
		all += count(at);
	}
	return all;
}

static void read_yaml(const char *text)
{
	static struct spokei_yaml values[SPOKEI_YAML_NODES];
	struct spokei_yaml_error why = { 0, NULL };
	char *copies = malloc(strlen(text) + 1);

	demand(copies != NULL, "there is memory");
	if (spokei_yaml_read(text, copies, values, &why))
		demand(why.line > 0 && why.text, "an error has a line and a sentence");
	else
		demand(count(values) == values->size, "values nest");
	free(copies);
}

static void decide(const struct spokei_route_rules *rules, const struct spoke_url *urls)
{
	static const unsigned char args[] = "\xa2hi\x07";
	static const unsigned char attachments[] = "\x81\xa1k\xa1v";
	const struct spokei_route_call call = {
		.consumer = &urls[0],
		.method = { "echo", 4 },
		.args = { args, sizeof(args) - 1 },
		.attachments = { attachments, sizeof(attachments) - 1 },
		.tag = { "gray", 4 },
	};
	const struct spokei_route_provider providers[] = { { &urls[1], "" }, { &urls[2], "gray" } };
	struct spokei_route_verdict verdict;
	struct spokei_route_choice choice;
	uint8_t members[2];
	const struct spokei_route_field field = { providers, 2, members };
	uint16_t empty = UINT16_MAX;
	uint32_t tried = 0;

	spokei_route_choose(rules, &call, 7, &choice);
	for (unsigned i = 0;; i++) {
		demand(i <= SPOKEI_ROUTE_CONDITIONS_ALL * SPOKEI_ROUTE_DESTINATIONS, "draws end");
		spokei_route_apply(rules, &choice, call.consumer, &field, &verdict);
		if (verdict.empty == UINT16_MAX)
			break;
		tried = verdict.empty == empty ? tried : 0;
		empty = verdict.empty;
		spokei_route_draw_again(rules, empty, &tried, i, &choice);
	}
	demand(members[0] <= 1 && members[1] <= 1, "a provider is left or not");
	demand(verdict.left == (size_t)members[0] + members[1], "providers are counted");
}

/* Reads a text as a rule, and as that of a URL. */
static void route(const struct spoke_env *env, const char *text)
{
	static const char *const kinds[] = { SPOKEI_RULE_CONDITIONS, SPOKEI_RULE_TAGS };
	static const char *const texts[] = { "consumer://10.0.0.9/demo.Echo?application=shop",
					     "dubbo://10.0.0.1:20880/demo.Echo?region=north",
					     "dubbo://10.0.0.2:20881/demo.Echo?dubbo.tag=gray" };
	struct spoke_url_parameter rule = { "rule", text };
	const struct spoke_url router = {
		.scheme = "route", .host = "0.0.0.0", .parameters = &rule, .parameter_count = 1
	};
	struct spoke_url urls[3];
	size_t ignored;

	for (size_t i = 0; i < 3; i++)
		demand(spoke_url_parse(env, texts[i], strlen(texts[i]), &urls[i], NULL) == 0,
		       "the URLs are valid");
	for (size_t i = 0; i < 3; i++) {
		struct spokei_route_rules rules = { { NULL } };
		enum spokei_route_source source = i == 1 ? SPOKEI_ROUTE_TAGS : SPOKEI_ROUTE_SERVICE;
		char why[SPOKEI_RULE_WHY] = "";
		int error = i < 2 ? spokei_route_read(env, kinds[i], text, &rules.of[source], why)
				  : spokei_route_read_urls(env, &router, 1, &rules.of[source],
							   &ignored);

		demand(error == 0 || (*why && rules.of[source] == NULL),
		       "a broken rule has a reason and is none");
		decide(&rules, urls);
		spokei_route_free(rules.of[source]);
	}
	for (size_t i = 0; i < 3; i++)
		spoke_url_fini(&urls[i]);
}

FUZZ(rule)
{
	struct memory memory;
	struct spokei_url_list list;
	char why[SPOKEI_RULE_WHY] = "";
	char *text = malloc(size + 1);

	demand(text != NULL, "there is memory");
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	read_yaml(text);
	memory_init(&memory);
	spokei_url_list_init(&list, &memory.env);
	if (spokei_rule_read(text, &list, why))
		demand(*why && list.count == 0, "a broken rule has a reason and no URL");
	for (size_t i = 0; i < list.count; i++)
		demand(list.urls[i].host != NULL, "a URL has a host");
	spokei_url_list_fini(&list);
	route(&memory.env, text);
	demand(memory.bytes == 0, "no memory is lost");
	free(text);
	return 0;
}
