/* SPDX-License-Identifier: Apache-2.0 */
/* Tests converting JSON to values and back. */
#define _GNU_SOURCE
#include <spoke/json.h>

#include <spoke/host.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void write_out(void *out, const void *bytes, size_t len)
{
	(void)fwrite(bytes, 1, len, out);
}

/* Parses a text and prints its values, separated by bars; or returns "error position text". The
 * caller frees the result. */
static char *again(const char *text, enum spoke_json_form form)
{
	size_t len = strlen(text);
	char *copy = strdup(text);
	char *out = NULL;
	size_t out_len;
	FILE *file = open_memstream(&out, &out_len);
	struct spoke_builder builder;
	struct spoke_json_error wrong = { 0, NULL };
	struct spoke_span values;
	size_t count;
	int error;

	assert_non_null(copy);
	assert_non_null(file);
	spoke_builder_init(&builder, spoke_host_env(), NULL);
	error = spoke_json_read(copy, len, &builder, &count, &wrong);
	if (error) {
		assert_true(wrong.at <= len);
		(void)fprintf(file, "%s %zu %s", spoke_errname(error), wrong.at, wrong.what);
	} else {
		struct spoke_cursor row;
		struct spoke_value value;
		size_t seen = 0;

		assert_int_equal(spoke_builder_finish(&builder, &values), 0);
		assert_int_equal(spoke_values_check(values.data, values.len, NULL, &row, NULL), 0);
		for (; spoke_cursor_next(&row, &value); seen++) {
			if (seen)
				(void)fputc('|', file);
			spoke_json_print(value, form, write_out, file);
		}
		assert_int_equal(seen, count);
	}
	(void)fclose(file);
	spoke_builder_fini(&builder);
	free(copy);
	return out;
}

static void assert_again(const char *text, const char *wanted)
{
	char *out = again(text, SPOKE_JSON_LINE);

	assert_string_equal(out, wanted);
	free(out);
}

static void value_read_from_json_prints_the_same_json(void **state)
{
	static const char *const texts[] = {
		"null",
		"true",
		"false",
		"0",
		"18446744073709551615",
		"-9223372036854775808",
		"9007199254740993",
		"0.1",
		"-0.0",
		"1.0",
		"1e+300",
		"5e-324",
		"1.7976931348623157e+308",
		"\"\"",
		"\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f\\u009f/\"",
		"\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"",
		"[]",
		"{}",
		"[[],{},[{}]]",
		"{\"a\":[1,2,{\"b\":null}],\"c\":3,\"\":4}",
		"{\"$bin\":\"\"}",
		"{\"$bin\":\"AA==\"}",
		"{\"$bin\":\"AAE=\"}",
		"{\"$bin\":\"+/8A\"}",
		"{\"$str\":\"/w==\"}",
		"{\"$ext\":[-128,\"AAEC\"]}",
		"{\"$ext\":[127,\"\"]}",
		"{\"$float\":\"nan\"}",
		"{\"$float\":\"inf\"}",
		"{\"$float\":\"-inf\"}",
		"{\"$date\":\"1970-01-01T00:00:00Z\"}",
		"{\"$date\":\"2024-02-29T23:59:59.123Z\"}",
		"{\"$date\":\"0000-01-01T00:00:00Z\"}",
		"{\"$date\":\"9999-12-31T23:59:59.000000001Z\"}",
		"{\"x\":1,\"class\":\"it.Point\"}",
		"{\"b\":1,\"$date\":\"2024-02-29T23:59:59Z\"}",
		"{\"$map\":[[1,2]]}",
		"{\"$map\":[[[],{}],[{\"$map\":[[null,1]]},\"x\"]]}",
		"{\"$map\":[[\"$bin\",\"AA==\"]]}",
		"{\"$map\":[[\"$x\",1]]}",
		"{\"$map\":[[\"$bin\",\"AA==\"],[\"b\",1]]}",
		"{\"$map\":[[\"$map\",[]],[\"b\",1]]}",
		"{\"$map\":[[\"$typed\",[\"T\",[]]],[\"b\",1]]}",
		"{\"$map\":[[\"$ext\",[1,\"AA==\"]],[\"b\",1]]}",
		"{\"$map\":[[\"$long\",1],[\"b\",1]]}",
		"{\"$map\":[[\"a\",1],[\"a\",2]]}",
		"{\"$map\":[[\"$x\",1]]}",
		"{\"$x\":1,\"$y\":2}",
		"1|\"two\"|[3]",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *text = strdup(texts[i]);

		assert_non_null(text);
		for (char *bar = text; (bar = strchr(bar, '|')) != NULL;)
			*bar = ' ';
		assert_again(text, texts[i]);
		free(text);
	}
}

static void equivalent_json_gives_the_same_value(void **state)
{
	(void)state;
	assert_again(" [ 1 ,\t2\r\n] ", "[1,2]");
	assert_again("{ \"a\" : 1 , \"b\" : { } }", "{\"a\":1,\"b\":{}}");
	assert_again("\"\\u0041\\u00e4\\ud83d\\uDE00\\/\"", "\"A\xc3\xa4\xf0\x9f\x98\x80/\"");
	assert_again("[-0,1E2,1e-2,100.0,0e5]", "[0,100.0,0.01,100.0,0.0]");
	assert_again("{ \"$bin\" : \"AAE\" }", "{\"$bin\":\"AAE=\"}");
	assert_again("{\"$str\":\"YWI=\"}", "\"ab\"");
	assert_again("{ \"$map\" : [ [ \"a\" , 1 ] ] }", "{\"a\":1}");
	assert_again("{\"$map\":[]}", "{}");
	assert_again("{\"$date\":\"2024-05-01\"}", "{\"$date\":\"2024-05-01T00:00:00Z\"}");
	assert_again("{\"$date\":\"2024-05-01T01:30:00.5+02:00\"}",
		     "{\"$date\":\"2024-04-30T23:30:00.500Z\"}");
	assert_again("{\"$date\":\"1900-02-28T20:30:00-04:30\"}",
		     "{\"$date\":\"1900-03-01T01:00:00Z\"}");
	assert_again("{ \"$long\" : -5 }", "-5");
	assert_again("[{\"$long\":5},{\"$long\":null}]", "[5,{\"$map\":[[\"$long\",null]]}]");
	assert_again("[{\"$typed\":[\"java.util.HashSet\",[1,{\"$typed\":[\"M\",{\"a\":2}]}]]},3]",
		     "[[1,{\"a\":2}],3]");
	assert_again("{\"$typed\":5}", "{\"$map\":[[\"$typed\",5]]}");
	assert_again("{\"$typed\":[1]}", "{\"$map\":[[\"$typed\",[1]]]}");
	assert_again("{\"$bin\":\"AA==\",\"b\":1}", "{\"$map\":[[\"$bin\",\"AA==\"],[\"b\",1]]}");
	assert_again("{\"\\u0024bin\":\"AA==\"}", "{\"$map\":[[\"$bin\",\"AA==\"]]}");
	assert_again("{\"$bin\":5}", "{\"$map\":[[\"$bin\",5]]}");
	assert_again("", "");
	assert_again(" \n", "");
	assert_again("[1e-400,-1e-99999999999,0e999999999,-0.0]", "[0.0,-0.0,0.0,-0.0]");
	assert_again("[18446744073709551615,-9223372036854775808,18446744073709551615.0]",
		     "[18446744073709551615,-9223372036854775808,1.8446744073709552e+19]");
	assert_again("\"\\u0000\\ud83d\\ude00\x7f\"", "\"\\u0000\xf0\x9f\x98\x80\\u007f\"");
	assert_again("{\"$map\":[[{\"$map\":[[1,2]]},{\"$float\":\"nan\"}]]}",
		     "{\"$map\":[[{\"$map\":[[1,2]]},{\"$float\":\"nan\"}]]}");
}

static void nul_byte_ends_no_text(void **state)
{
	static const struct {
		char text[16];
		size_t len;
		int error;
	} rows[] = {
		{ "[1]\0", 4, SPOKE_ESYNTAX },      { "[\0]", 3, SPOKE_ESYNTAX },
		{ "\"a\0b\"", 5, SPOKE_ESYNTAX },   { "\0", 1, SPOKE_ESYNTAX },
		{ "{\"a\":\0}", 7, SPOKE_ESYNTAX }, { "1\0", 2, SPOKE_ESYNTAX },
		{ "[1]\0", 3, SPOKE_OK },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spoke_json_error wrong;
		struct spoke_builder builder;
		char text[16];
		size_t count;

		memcpy(text, rows[i].text, sizeof(text));
		spoke_builder_init(&builder, spoke_host_env(), NULL);
		assert_int_equal(spoke_json_read(text, rows[i].len, &builder, &count, &wrong),
				 rows[i].error);
		spoke_builder_fini(&builder);
	}
}

/* Reads a text under these limits. */
static int read_under(const char *from, const struct spoke_value_limits *limits)
{
	struct spoke_json_error wrong;
	struct spoke_builder builder;
	char text[64];
	size_t count;
	int error;

	(void)snprintf(text, sizeof(text), "%s", from);
	spoke_builder_init(&builder, spoke_host_env(), limits);
	error = spoke_json_read(text, strlen(text), &builder, &count, &wrong);
	spoke_builder_fini(&builder);
	return error;
}

/* An accepted document gives values that the validator accepts under the same limits. */
static void limits_are_those_of_msgpack(void **state)
{
	static const struct {
		const char *text;
		unsigned items;
		unsigned depth;
	} rows[] = {
		{ "1", 1, 0 },
		{ "[]", 1, 1 },
		{ "1 2 3", 3, 0 },
		{ "[1,2,[3,4]]", 6, 2 },
		{ "{\"a\":{\"b\":[]},\"c\":1.5}", 7, 3 },
		{ "{\"$map\":[[1,[2]],[{},3]]}", 6, 2 },
		{ "[{\"$bin\":\"AA==\"},{\"$date\":\"2024-05-01\"}]", 3, 1 },
		{ "{\"$typed\":[\"T\",[1,{}]]}", 5, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spoke_value_limits limits = { .items_max = rows[i].items,
						     .depth_max = rows[i].depth };

		if (rows[i].depth == 0)
			limits.depth_max = 1;
		assert_int_equal(read_under(rows[i].text, &limits), SPOKE_OK);
		limits.items_max = rows[i].items - 1;
		if (limits.items_max > 0)
			assert_int_equal(read_under(rows[i].text, &limits), SPOKE_ETOOLARGE);
		limits.items_max = 0;
		limits.depth_max = rows[i].depth - 1;
		if (rows[i].depth > 1)
			assert_int_equal(read_under(rows[i].text, &limits), SPOKE_EDEPTH);
	}
}

static void map_with_a_repeated_key_prints_as_pairs(void **state)
{
	static const unsigned counts[] = { 2, 63, 64 };

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		char *out = NULL;
		size_t len;
		FILE *file = open_memstream(&out, &len);
		struct spoke_builder builder;
		struct spoke_value value;

		assert_non_null(file);
		spoke_builder_init(&builder, spoke_host_env(), NULL);
		spoke_pack_map(&builder, counts[i]);
		for (unsigned j = 0; j < counts[i]; j++) {
			char key[2] = { (char)('0' + (j + 1 < counts[i] ? j : 0)), '\0' };

			spoke_pack_text(&builder, key);
			spoke_pack_nil(&builder);
		}
		assert_int_equal(spoke_builder_finish_value(&builder, &value), 0);
		spoke_json_print(value, SPOKE_JSON_LINE, write_out, file);
		(void)fclose(file);
		assert_memory_equal(out, "{\"$map\":[[\"0\",null],", 20);
		assert_again(out, out);
		free(out);
		spoke_builder_fini(&builder);
	}
}

static const struct {
	const char *text;
	const char *wanted; /* prefix */
} wrong_ones[] = {
	{ "[1,2", "ESYNTAX 4 unexpected end inside" },
	{ "[1,]", "ESYNTAX 3 not a JSON value" },
	{ "[,1]", "ESYNTAX 1 not a JSON value" },
	{ "[1 2]", "ESYNTAX 3 expected a comma or ]" },
	{ "[1}", "ESYNTAX 2 expected a comma or ]" },
	{ "{1:2}", "ESYNTAX 1 expected a key" },
	{ "{\"a\"}", "ESYNTAX 4 expected a colon" },
	{ "{\"a\":1,}", "ESYNTAX 7 expected a key" },
	{ "{\"a\":1,\"a\":1}", "ESYNTAX 10 the object has this key already" },
	{ "[{\"a\":{\"a\":[{\"a\":1}]},\"b\":1,\"\\u0061\":1}]",
	  "ESYNTAX 36 the object has this key already" },
	{ "{\"a\":1 \"b\":2}", "ESYNTAX 7 expected a comma or }" },
	{ "]", "ESYNTAX 0 not a JSON value" },
	{ "1true", "ESYNTAX 1 unexpected text" },
	{ "[]]", "ESYNTAX 2 unexpected text" },
	{ "nul", "ESYNTAX 0 not a JSON value" },
	{ "hello", "ESYNTAX 0 not a JSON value" },
	{ "01", "ESYNTAX 0 leading 0" },
	{ "-", "ESYNTAX 0 not a JSON value" },
	{ "+1", "ESYNTAX 0 not a JSON value" },
	{ ".5", "ESYNTAX 0 not a JSON value" },
	{ "1.", "ESYNTAX 2 expected a digit" },
	{ "1.e5", "ESYNTAX 2 expected a digit" },
	{ "1e", "ESYNTAX 2 expected a digit" },
	{ "1e+", "ESYNTAX 3 expected a digit" },
	{ "0x10", "ESYNTAX 1 unexpected text" },
	{ "NaN", "ESYNTAX 0 not a JSON value" },
	{ "18446744073709551616", "ERANGE 0 integer exceeds" },
	{ "-9223372036854775809", "ERANGE 0 integer exceeds" },
	{ "1e999", "ERANGE 0 number exceeds" },
	{ "\"a", "ESYNTAX 2 unterminated string" },
	{ "\"\\", "ESYNTAX 2 invalid escape" },
	{ "\"\\x\"", "ESYNTAX 2 invalid escape" },
	{ "\"\\u12g4\"", "ESYNTAX 5 expected four hex" },
	{ "\"\\ud800\"", "ESYNTAX 7 first half" },
	{ "\"\\ud800\\u0041\"", "ESYNTAX 13 first half" },
	{ "\"\\udc00\"", "ESYNTAX 7 second half" },
	{ "\"a\nb\"", "ESYNTAX 2 control character" },
	{ "\"\xff\"", "ESYNTAX 1 invalid UTF-8" },
	{ "\"\xc0\x80\"", "ESYNTAX 1 invalid UTF-8" },
	{ "\"\xed\xa0\x80\"", "ESYNTAX 1 invalid UTF-8" },
	{ "\"\xf4\x90\x80\x80\"", "ESYNTAX 1 invalid UTF-8" },
	{ "\"\xe2\x82\"", "ESYNTAX 1 invalid UTF-8" },
	{ "\"\xe0\x9f\xbf\"", "ESYNTAX 1 invalid UTF-8" },
	{ "\"\xf0\x8f\xbf\xbf\"", "ESYNTAX 1 invalid UTF-8" },
	{ "\"0123456789abcdef\xf8\"", "ESYNTAX 17 invalid UTF-8" },
	{ "\"0123456789abcdef\x01\"", "ESYNTAX 17 control character" },
	{ "\"\\ud83d\\ud83d\"", "ESYNTAX 13 first half" },
	{ "\"\\ud83d\\\"", "ESYNTAX 7 first half" },
	{ "1e400", "ERANGE 0 number exceeds" },
	{ "-1e99999999999999999999", "ERANGE 0 number exceeds" },
	{ "1.7976931348623159e308", "ERANGE 0 number exceeds" },
	{ "[1,-01]", "ESYNTAX 3 leading 0" },
	{ "\xef\xbb\xbf[]", "ESYNTAX 0 not a JSON value" },
	{ "{\"$long\":007}", "ESYNTAX 9 a $long must" },
	{ "{\"$long\":1.5}", "ESYNTAX 10 a $ext or $long must be the only" },
	{ "{\"$ext\":[01,\"\"]}", "ESYNTAX 9 the type" },
	{ "{\"$ext\":[1,\"AA==\"],\"b\":1}", "ESYNTAX 18 a $ext or $long must be the only" },
	{ "{\"$bin\":\"A\"}", "ESYNTAX 11 the string is not base64" },
	{ "{\"$bin\":\"A*==\"}", "ESYNTAX 14 the string is not base64" },
	{ "{\"$bin\":\"AB==\"}", "ESYNTAX 14 the string is not base64" },
	{ "{\"$ext\":[128,\"\"]}", "ESYNTAX 9 the type" },
	{ "{\"$ext\":[1]}", "ESYNTAX 10 a $ext must" },
	{ "{\"$float\":\"x\"}", "ESYNTAX 13 a $float must" },
	{ "{\"$map\":[1]}", "ESYNTAX 9 a $map must contain arrays" },
	{ "{\"$map\":[[1]]}", "ESYNTAX 12 a pair" },
	{ "{\"$map\":[[1,2,3]]}", "ESYNTAX 14 a pair" },
	{ "{\"$map\":[[1,2]],\"b\":1}", "ESYNTAX 15 a $map must be the only" },
	{ "{\"$date\":\"2024-02-30\"}", "ESYNTAX 21 a $date must be" },
	{ "{\"$date\":\"1900-02-29\"}", "ESYNTAX 21 a $date must be" },
	{ "{\"$date\":\"2024-01-01T24:00:00\"}", "ESYNTAX 30 a $date must be" },
	{ "{\"$date\":\"2024-01-01T00:00:00.Z\"}", "ESYNTAX 32 a $date must be" },
	{ "{\"$date\":\"2024-01-01x\"}", "ESYNTAX 22 a $date must be" },
	{ "{\"$long\":9223372036854775808}", "ERANGE 9 a $long must be" },
	{ "{\"$long\":1,\"b\":2}", "ESYNTAX 10 a $ext or $long must be the only" },
	{ "{\"$typed\":[\"a\"]}", "ESYNTAX 14 a $typed must have the form" },
	{ "{\"$typed\":[\"a\",1]}", "ESYNTAX 15 a $typed must have the form" },
	{ "{\"$typed\":[\"a\",[],[]]}", "ESYNTAX 18 a $typed must have one value" },
	{ "{\"$typed\":[\"a\",[]],\"b\":1}", "ESYNTAX 18 a $typed must be the only" },
};

static void invalid_json_is_rejected_with_its_offset(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong_ones) / sizeof(wrong_ones[0]); i++) {
		char *out = again(wrong_ones[i].text, SPOKE_JSON_LINE);

		if (strncmp(out, wrong_ones[i].wanted, strlen(wrong_ones[i].wanted)) != 0)
			print_error("%s: %s\n", wrong_ones[i].text, out);
		assert_int_equal(strncmp(out, wrong_ones[i].wanted, strlen(wrong_ones[i].wanted)),
				 0);
		free(out);
	}
}

static void value_deeper_than_128_levels_is_rejected(void **state)
{
	char text[300] = "";

	(void)state;
	memset(text, '[', 128);
	memset(text + 128, ']', 128);
	assert_again(text, text);
	memset(text, '[', 129);
	memset(text + 129, ']', 129);
	assert_again(text, "EDEPTH 129 nested too deeply; at most 128 levels");
}

static void long_and_typed_json_have_their_bytes(void **state)
{
	char text[] = "[{\"$long\":5},{\"$typed\":[\"[int\",[1,2]]}]";
	struct spoke_builder builder;
	struct spoke_json_error wrong;
	struct spoke_span values;
	size_t count;

	(void)state;
	spoke_builder_init(&builder, spoke_host_env(), NULL);
	assert_int_equal(spoke_json_read(text, strlen(text), &builder, &count, &wrong), 0);
	assert_int_equal(spoke_builder_finish(&builder, &values), 0);
	assert_int_equal(values.len, 24);
	assert_memory_equal(values.data,
			    "\x92\xd3\0\0\0\0\0\0\0\5\xc9\0\0\0\x08H\xa4[int\x92\x01\x02", 24);
	spoke_builder_fini(&builder);
}

static void value_with_too_many_items_is_rejected(void **state)
{
	size_t items = SPOKE_VALUE_ITEMS_MAX;
	char *text = malloc(3 * items + 2);

	(void)state;
	assert_non_null(text);
	text[0] = '[';
	for (size_t i = 0; i < items; i++) {
		text[1 + 3 * i] = '"';
		text[2 + 3 * i] = '"';
		text[3 + 3 * i] = i + 1 < items ? ',' : ']';
	}
	text[3 * items + 1] = '\0';
	assert_again(text, "ETOOLARGE 12582913 too large: more values than values.max, or more "
			   "bytes than frame.max");
	free(text);
}

static void tree_form_prints_one_line_per_value(void **state)
{
	char *out = again("{\"a\":[1,{\"$bin\":\"AA==\"}],\"b\":{},\"c\":{\"$map\":[[1,[]]]}}",
			  SPOKE_JSON_TREE);

	(void)state;
	assert_string_equal(out,
			    "{\n  \"a\": [\n    1,\n    {\"$bin\": \"AA==\"}\n  ],\n  \"b\": {},\n"
			    "  \"c\": {\"$map\": [\n    [1, []]\n  ]}\n}");
	free(out);
}

static void printed_text_has_no_terminal_controls(void **state)
{
	char *out = NULL;
	size_t len;
	FILE *file = open_memstream(&out, &len);

	(void)state;
	assert_non_null(file);
	spoke_json_print_text("a\033[2J\xff\xc2\x9b", 8, write_out, file);
	spoke_json_print((struct spoke_value){ NULL, 0 }, SPOKE_JSON_LINE, write_out, file);
	(void)fclose(file);
	assert_string_equal(out, "\"a\\u001b[2J\\ufffd\\u009b\"null");
	free(out);
}

/* Prints into memory that the caller frees. */
static FILE *open_text(char **ret_text, size_t *ret_len)
{
	FILE *file = open_memstream(ret_text, ret_len);

	assert_non_null(file);
	return file;
}

/* Returns an object of so many keys; `twice` and the last one are equal. The caller frees it. */
static char *object_of(unsigned count, unsigned twice)
{
	char *text = NULL;
	size_t len;
	FILE *file = open_text(&text, &len);

	for (unsigned i = 0; i < count; i++)
		(void)fprintf(file, "%s\"k%06u\":1", i ? "," : "{", i + 1 == count ? twice : i);
	(void)fprintf(file, "}");
	(void)fclose(file);
	return text;
}

static void repeated_key_is_found_in_objects_of_any_size(void **state)
{
	static const unsigned counts[] = { 2, 15, 16, 17, 18, 19, 40, 1000, 100000 };

	(void)state;
	for (size_t i = 0; i < 4 * sizeof(counts) / sizeof(counts[0]); i++) {
		unsigned last = counts[i / 4] - 1;
		unsigned twice = (unsigned)((uint64_t)(i % 4) * last / 3);
		char *text = object_of(last + 1, twice);
		char *out = again(text, SPOKE_JSON_LINE);

		if (twice == last)
			assert_string_equal(out, text);
		else
			assert_non_null(strstr(out, "the object has "));
		free(out);
		free(text);
	}
}

static void keys_need_no_memory(void **state)
{
	static unsigned char memory[9 * 1000 + 3];
	struct spoke_json_error error;
	struct spoke_builder builder;
	char *text = object_of(1000, 999);
	size_t values;

	(void)state;
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	assert_int_equal(spoke_json_read(text, strlen(text), &builder, &values, &error), SPOKE_OK);
	free(text);
}

static void containers_of_any_size_have_their_heads(void **state)
{
	static const unsigned counts[] = { 1, 15, 16, 17, 255, 256, 65535, 65536, 70000 };

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		char *text = NULL;
		size_t len;
		FILE *file = open_text(&text, &len);

		for (unsigned j = 0; j < counts[i]; j++)
			(void)fprintf(file, "%s{\"a\":[%u]}", j ? "," : "[[", j);
		(void)fprintf(file, "],{\"b\":[]}]");
		(void)fclose(file);
		assert_again(text, text);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(value_read_from_json_prints_the_same_json),
		cmocka_unit_test(equivalent_json_gives_the_same_value),
		cmocka_unit_test(nul_byte_ends_no_text),
		cmocka_unit_test(limits_are_those_of_msgpack),
		cmocka_unit_test(map_with_a_repeated_key_prints_as_pairs),
		cmocka_unit_test(invalid_json_is_rejected_with_its_offset),
		cmocka_unit_test(value_deeper_than_128_levels_is_rejected),
		cmocka_unit_test(long_and_typed_json_have_their_bytes),
		cmocka_unit_test(value_with_too_many_items_is_rejected),
		cmocka_unit_test(tree_form_prints_one_line_per_value),
		cmocka_unit_test(printed_text_has_no_terminal_controls),
		cmocka_unit_test(repeated_key_is_found_in_objects_of_any_size),
		cmocka_unit_test(keys_need_no_memory),
		cmocka_unit_test(containers_of_any_size_have_their_heads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
