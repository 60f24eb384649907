/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the rules of a registry. The reader of YAML stays within its bounds, its values nest, and
 * each URL that a rule becomes prints to a text that parses.
 */
#include "cluster/discovery/override.h"
#include "core/text/yaml.h"
#include "tests/core/memory.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

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
	if (spokei_rule_read(SPOKEI_RULE_CONFIGURATORS, text, &list, why))
		demand(*why && list.count == 0, "a broken rule has a reason and no URL");
	for (size_t i = 0; i < list.count; i++)
		demand(list.urls[i].host != NULL, "a URL has a host");
	spokei_url_list_fini(&list);
	demand(memory.bytes == 0, "no memory is lost");
	free(text);
	return 0;
}
