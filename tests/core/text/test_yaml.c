/* SPDX-License-Identifier: Apache-2.0 */
/* The part of YAML that is read: each text, and the values that it has. */
#include "core/text/yaml.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct spokei_yaml values[SPOKEI_YAML_NODES];
static struct spokei_yaml_error why;
static char *copies;
static char shown[4096];
static size_t shown_len;

static int read_text(const char *text)
{
	free(copies);
	copies = malloc(strlen(text) + 1);
	assert_non_null(copies);
	return spokei_yaml_read(text, copies, values, &why);
}

static void show(const char *text)
{
	shown_len += (size_t)snprintf(shown + shown_len, sizeof(shown) - shown_len, "%s", text);
	assert_true(shown_len < sizeof(shown));
}

/* Prints as {key:text,key:[text,]}. */
/* NOLINTNEXTLINE(misc-no-recursion): the reader bounds the depth */
static void print(const struct spokei_yaml *value)
{
	if (value->key) {
		show(value->key);
		show(":");
	}
	if (value->kind == SPOKEI_YAML_SCALAR) {
		show(value->text);
		return;
	}
	show(value->kind == SPOKEI_YAML_MAP ? "{" : "[");
	for (const struct spokei_yaml *at = spokei_yaml_next(value, NULL); at;
	     at = spokei_yaml_next(value, at)) {
		print(at);
		show(",");
	}
	show(value->kind == SPOKEI_YAML_MAP ? "}" : "]");
}

TEST(texts_have_their_values)
{
	static const char *const rows[][2] = {
		{ "", "" },
		{ "# only a comment\n\n", "" },
		{ "a: 1", "{a:1,}" },
		{ "---\na: 1\r\nb: two words # why\n", "{a:1,b:two words,}" },
		{ "a: x#y\n'b c' : \"d: e\"", "{a:x#y,b c:d: e,}" },
		{ "a:\nb:\n  c: 1\n  d:\n", "{a:,b:{c:1,d:,},}" },
		{ "a:\n- 1\n- b: 2\n  c: 3\nd: 4", "{a:[1,{b:2,c:3,},],d:4,}" },
		{ "a:\n  - 1\n  -\n    b: 2\n  -\nd: 4", "{a:[1,{b:2,},,],d:4,}" },
		{ "- - 1\n  - 2\n- 3", "[[1,2,],3,]" },
		{ "{a: 1, b: [x, \"y\", {}], c: {d: e}}", "{a:1,b:[x,y,{},],c:{d:e,},}" },
		{ "{\"a\":\"1\",\n  b: [ 10.0.0.1:80,\n  [] ], c:}",
		  "{a:1,b:[10.0.0.1:80,[],],c:,}" },
		{ "a: [x,y] # z\nb: {}", "{a:[x,y,],b:{},}" },
		{ "a: http://h:1/p\nb: -1", "{a:http://h:1/p,b:-1,}" },
		{ "a: 1\na: 2", "{a:1,a:2,}" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (read_text(rows[i][0]))
			fail_msg("%s: line %u: %s", rows[i][0], why.line, why.text);
		shown[0] = '\0';
		shown_len = 0;
		print(values);
		assert_string_equal(shown, rows[i][1]);
	}
}

TEST(unsupported_texts_are_refused_with_their_line)
{
	static const struct {
		const char *text;
		unsigned line;
	} rows[] = {
		{ "a: &b c", 1 },      { "a: *b", 1 },
		{ "a: !!str b", 1 },   { "a: |\n  b", 1 },
		{ "a: >\n  b", 1 },    { "a: 1\n\tb: 2", 2 },
		{ "a: 1\n  b: 2", 2 }, { "a:\n    b: 1\n  c: 2", 3 },
		{ "a: b: c", 1 },      { "a: 1\nword", 2 },
		{ "a: \"x\\n\"", 1 },  { "a: 'it''s'", 1 },
		{ "a: 'open", 1 },     { "{a: 1", 1 },
		{ "[1,\n2}", 2 },      { "{a}", 1 },
		{ "{a: 1} b", 1 },     { "a: 1\n---\nb: 2", 2 },
		{ "%YAML 1.1", 1 },    { "a: \x01", 1 },
		{ "a: [,]", 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (read_text(rows[i].text) != SPOKE_ESYNTAX || why.line != rows[i].line)
			fail_msg("%s: line %u", rows[i].text, why.line);
		assert_non_null(why.text);
	}
}

/* --- limits */

static char *repeat(const char *text, size_t count)
{
	size_t len = strlen(text);
	char *all = malloc(count * len + 1);

	assert_non_null(all);
	for (size_t i = 0; i < count; i++)
		memcpy(all + i * len, text, len);
	all[count * len] = '\0';
	return all;
}

static void expect_repeated(const char *text, size_t count, int error)
{
	char *all = repeat(text, count);

	assert_int_equal(read_text(all), error);
	free(all);
}

TEST(depth_size_and_number_of_values_are_bounded)
{
	expect_repeated("- ", SPOKEI_YAML_DEPTH, SPOKE_OK);
	expect_repeated("- ", SPOKEI_YAML_DEPTH + 1, SPOKE_ESYNTAX);
	expect_repeated("[", SPOKEI_YAML_DEPTH + 1, SPOKE_ESYNTAX);
	expect_repeated("- a\n", SPOKEI_YAML_NODES - 1, SPOKE_OK);
	expect_repeated("- a\n", SPOKEI_YAML_NODES, SPOKE_ETOOLARGE);
	expect_repeated("\n", SPOKEI_YAML_MAX, SPOKE_OK);
	expect_repeated("\n", SPOKEI_YAML_MAX + 1, SPOKE_ETOOLARGE);
}

TEST(last_entry_of_a_key_is_found)
{
	assert_int_equal(read_text("a: {b: 0}\nb: 1\nb: 2\n"), 0);
	assert_string_equal(spokei_yaml_get(values, "b")->text, "2");
	assert_null(spokei_yaml_get(values, "c"));
	assert_int_equal(read_text("- b"), 0);
	assert_null(spokei_yaml_get(values, "b"));
}

STEP(tear_down)
{
	free(copies);
	copies = NULL;
}

GROUP(NULL, tear_down);
