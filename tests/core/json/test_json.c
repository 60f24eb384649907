/* SPDX-License-Identifier: Apache-2.0 */
/* JSON to values and back, its inner face, and the writer. */
#define _GNU_SOURCE
#include "core/json/document.h"
#include "core/json/json.h"
#include "core/text/encoding.h"
#include "core/virtual/faults.h"
#include "tests/core/json/jsonagain.h"
#include "tests/core/json/jsonread.h"
#include "tests/core/memory.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- tests converting JSON to values and back */

FIXTURE(NULL, NULL);

static const char *const same_texts[] = {
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
	"{\"$map\":[[1,1],[\"1\",2],[1.0,3],[[1],4],[[1,1],5],[{},6]]}",
	"{\"$map\":[[\"$x\",1]]}",
	"{\"$x\":1,\"$y\":2}",
	"{\"$ref\":\"#/components/schemas/Error\"}",
	"1|\"two\"|[3]",
};

TEST(value_read_from_json_prints_the_same_json)
{
	for (size_t i = 0; i < sizeof(same_texts) / sizeof(same_texts[0]); i++) {
		char *text = strdup(same_texts[i]);

		assert_non_null(text);
		for (char *bar = text; (bar = strchr(bar, '|')) != NULL;)
			*bar = ' ';
		jsonagain_assert(text, same_texts[i]);
		free(text);
	}
}

TEST(equivalent_json_gives_the_same_value)
{
	jsonagain_assert(" [ 1 ,\t2\r\n] ", "[1,2]");
	jsonagain_assert("{ \"a\" : 1 , \"b\" : { } }", "{\"a\":1,\"b\":{}}");
	jsonagain_assert("\"\\u0041\\u00e4\\ud83d\\uDE00\\/\"", "\"A\xc3\xa4\xf0\x9f\x98\x80/\"");
	jsonagain_assert("[-0,1E2,1e-2,100.0,0e5]", "[0,100.0,0.01,100.0,0.0]");
	jsonagain_assert("{ \"$bin\" : \"AAE\" }", "{\"$bin\":\"AAE=\"}");
	jsonagain_assert("{\"$str\":\"YWI=\"}", "\"ab\"");
	jsonagain_assert("{ \"$map\" : [ [ \"a\" , 1 ] ] }", "{\"a\":1}");
	jsonagain_assert("{\"$map\":[]}", "{}");
	jsonagain_assert("{\"$date\":\"2024-05-01\"}", "{\"$date\":\"2024-05-01T00:00:00Z\"}");
	jsonagain_assert("{\"$date\":\"2024-05-01T01:30:00.5+02:00\"}",
			 "{\"$date\":\"2024-04-30T23:30:00.500Z\"}");
	jsonagain_assert("{\"$date\":\"1900-02-28T20:30:00-04:30\"}",
			 "{\"$date\":\"1900-03-01T01:00:00Z\"}");
	jsonagain_assert("{ \"$long\" : -5 }", "-5");
	jsonagain_assert("[{\"$long\":5},{\"$long\":null}]", "[5,{\"$map\":[[\"$long\",null]]}]");
	jsonagain_assert(
		"[{\"$typed\":[\"java.util.HashSet\",[1,{\"$typed\":[\"M\",{\"a\":2}]}]]},3]",
		"[[1,{\"a\":2}],3]");
	jsonagain_assert("{\"$typed\":5}", "{\"$map\":[[\"$typed\",5]]}");
	jsonagain_assert("{\"$typed\":[1]}", "{\"$map\":[[\"$typed\",[1]]]}");
	jsonagain_assert("{\"$bin\":\"AA==\",\"b\":1}",
			 "{\"$map\":[[\"$bin\",\"AA==\"],[\"b\",1]]}");
	jsonagain_assert("{\"\\u0024bin\":\"AA==\"}", "{\"$map\":[[\"$bin\",\"AA==\"]]}");
	jsonagain_assert("{\"$bin\":5}", "{\"$map\":[[\"$bin\",5]]}");
	jsonagain_assert("", "");
	jsonagain_assert(" \n", "");
	jsonagain_assert("[1e-400,-1e-99999999999,0e999999999,-0.0]", "[0.0,-0.0,0.0,-0.0]");
	jsonagain_assert("[18446744073709551615,-9223372036854775808,18446744073709551615.0]",
			 "[18446744073709551615,-9223372036854775808,1.8446744073709552e+19]");
	jsonagain_assert("\"\\u0000\\ud83d\\ude00\x7f\"", "\"\\u0000\xf0\x9f\x98\x80\\u007f\"");
	jsonagain_assert("{\"$map\":[[{\"$map\":[[1,2]]},{\"$float\":\"nan\"}]]}",
			 "{\"$map\":[[{\"$map\":[[1,2]]},{\"$float\":\"nan\"}]]}");
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
	{ "{\"$map\":[[\"a\",1],[\"a\",2]]}", "ESYNTAX 22 the $map has this key already" },
	{ "{\"$map\":[[\"a\",1],[\"\\u0061\",2]]}", "ESYNTAX 27 the $map has this key already" },
	{ "{\"$map\":[[7,1],[8,2],[7,3]]}", "ESYNTAX 24 the $map has this key already" },
	{ "{\"$map\":[[[1,{}],1],[[1,{}],2]]}", "ESYNTAX 28 the $map has this key already" },
	{ "{\"$map\":[[[{\"$map\":[[1,2],[1,3]]}],1]]}",
	  "ESYNTAX 29 the $map has this key already" },
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

TEST(invalid_json_is_rejected_with_its_offset)
{
	for (size_t i = 0; i < sizeof(wrong_ones) / sizeof(wrong_ones[0]); i++) {
		char *out = jsonagain(wrong_ones[i].text, SPOKE_JSON_LINE);

		if (strncmp(out, wrong_ones[i].wanted, strlen(wrong_ones[i].wanted)) != 0)
			print_error("%s: %s\n", wrong_ones[i].text, out);
		assert_int_equal(strncmp(out, wrong_ones[i].wanted, strlen(wrong_ones[i].wanted)),
				 0);
		free(out);
	}
}

TEST(long_and_typed_json_have_their_bytes)
{
	char text[] = "[{\"$long\":5},{\"$typed\":[\"[int\",[1,2]]}]";
	struct spoke_builder builder;
	struct spoke_json_error wrong;
	struct spoke_span values;
	size_t count;

	spoke_builder_init(&builder, spoke_host_env(), NULL);
	assert_int_equal(spoke_json_read(text, strlen(text), &builder, &count, &wrong), 0);
	assert_int_equal(spoke_builder_finish(&builder, &values), 0);
	assert_int_equal(values.len, 24);
	assert_memory_equal(values.data,
			    "\x92\xd3\0\0\0\0\0\0\0\5\xc9\0\0\0\x08H\xa4[int\x92\x01\x02", 24);
	spoke_builder_fini(&builder);
}

TEST(tree_form_prints_one_line_per_value)
{
	char *out = jsonagain("{\"a\":[1,{\"$bin\":\"AA==\"}],\"b\":{},\"c\":{\"$map\":[[1,[]]]}}",
			      SPOKE_JSON_TREE);

	assert_string_equal(out,
			    "{\n  \"a\": [\n    1,\n    {\"$bin\": \"AA==\"}\n  ],\n  \"b\": {},\n"
			    "  \"c\": {\"$map\": [\n    [1, []]\n  ]}\n}");
	free(out);
}

TEST(printed_text_has_no_terminal_controls)
{
	char *out = NULL;
	size_t len;
	FILE *file = jsonagain_open(&out, &len);

	spoke_json_print_text("a\033[2J\xff\xc2\x9b", 8, jsonagain_write, file);
	spoke_json_print((struct spoke_value){ NULL, 0 }, SPOKE_JSON_LINE, jsonagain_write, file);
	(void)fclose(file);
	assert_string_equal(out, "\"a\\u001b[2J\\ufffd\\u009b\"null");
	free(out);
}

/*
 * --- tests the inner face of JSON: printing into a buffer, and reading the arguments of a call
 */

static struct memory memory;

static struct spokei_buffer buffer;

static void setup(size_t max)
{
	memory_init(&memory);
	spokei_buffer_init(&buffer, &memory.env, max);
}

static void teardown(void)
{
	spokei_buffer_fini(&buffer);
	assert_int_equal(memory.bytes, 0);
}

static void assert_content(const char *wanted)
{
	assert_int_equal(spokei_buffer_len(&buffer), strlen(wanted));
	if (*wanted)
		assert_memory_equal(spokei_buffer_data(&buffer), wanted, strlen(wanted));
}

/* Reads a copy of exactly the text's length, so that an overrun is detected. */
static int read_args(const char *text, struct spoke_span *args, size_t *count,
		     struct spoke_json_error *wrong)
{
	size_t len = strlen(text);
	char *copy = malloc(len > 0 ? len : 1);
	int error;

	assert_non_null(copy);
	if (len > 0)
		memcpy(copy, text, len);
	error = spokei_json_read_args(copy, len, NULL, &buffer, args, count, wrong);
	free(copy);
	return error;
}

static const struct {
	const char *text;
	const char *args; /* packed */
	size_t len;
	size_t count;
} documents[] = {
	{ "", "", 0, 0 },
	{ " \n", "", 0, 0 },
	{ "[]", "", 0, 0 },
	{ "[\"world\"]", "\xa5world", 6, 1 },
	{ " [1, [2], null]\n", "\x01\x91\x02\xc0", 4, 3 },
	{ "[[1,2]]", "\x92\x01\x02", 3, 1 },
	{ "\"world\"", "\xa5world", 6, 1 },
	{ "{\"a\":1}", "\x81\xa1\x61\x01", 4, 1 },
	{ "{\"$typed\":[\"T\",[1]]}", "\xc9\0\0\0\4H\xa1T\x91\x01", 10, 1 },
	{ "{\"$bin\":\"AA==\"}", "\xc4\x01\0", 3, 1 },
};

TEST(items_of_an_array_are_the_arguments)
{
	for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
		struct spoke_json_error wrong;
		struct spoke_span args;
		size_t count;

		setup(1000);
		assert_int_equal(spokei_buffer_append(&buffer, "before", 6), 0);
		assert_int_equal(read_args(documents[i].text, &args, &count, &wrong), 0);
		assert_int_equal(count, documents[i].count);
		assert_int_equal(args.len, documents[i].len);
		if (args.len > 0)
			assert_memory_equal(args.data, documents[i].args, args.len);
		assert_memory_equal(spokei_buffer_data(&buffer), "before", 6);
		teardown();
	}
}

TEST(two_documents_are_rejected)
{
	struct spoke_json_error wrong;
	struct spoke_span args;
	size_t count;

	setup(1000);
	assert_int_equal(spokei_buffer_append(&buffer, "before", 6), 0);
	assert_int_equal(read_args("[1] [2]", &args, &count, &wrong), SPOKE_ESYNTAX);
	assert_string_equal(wrong.what, "more than one value; write an array");
	assert_content("before");
	assert_int_equal(read_args("[1}", &args, &count, &wrong), SPOKE_ESYNTAX);
	assert_content("before");
	teardown();
}

static struct spoke_value value_of(const char *packed, size_t len)
{
	struct spoke_value value;

	assert_int_equal(spoke_value_check(packed, len, NULL, &value), 0);
	return value;
}

TEST(values_are_printed_after_the_content)
{
	setup(1000);
	assert_int_equal(spokei_buffer_append(&buffer, "HTTP ", 5), 0);
	assert_int_equal(spokei_json_append(&buffer, value_of("\x92\xa1\x61\x05", 4)), 0);
	assert_int_equal(spokei_json_append(&buffer, (struct spoke_value){ NULL, 0 }), 0);
	assert_int_equal(spokei_json_append_text(&buffer, "\"\xff", 2), 0);
	assert_content("HTTP [\"a\",5]null\"\\\"\\ufffd\"");
	teardown();
}

/* A text of 100 characters, which are 102 in JSON. */
static struct spoke_value long_text(char packed[102])
{
	memset(packed, 'x', 102);
	packed[0] = (char)(unsigned char)0xd9;
	packed[1] = 100;
	return value_of(packed, 102);
}

TEST(maximum_of_the_buffer_is_exact)
{
	char packed[102];

	for (size_t max = 3; max <= 120; max++) {
		int wanted = max < 3 + 102 ? SPOKE_ETOOLARGE : SPOKE_OK;

		setup(max);
		assert_int_equal(spokei_buffer_append(&buffer, "abc", 3), 0);
		assert_int_equal(spokei_json_append(&buffer, long_text(packed)), wanted);
		assert_int_equal(spokei_buffer_len(&buffer), wanted ? 3 : 105);
		spokei_buffer_truncate(&buffer, 3);
		assert_int_equal(spokei_json_append_text(&buffer, packed + 2, 100), wanted);
		assert_int_equal(spokei_buffer_len(&buffer), wanted ? 3 : 105);
		teardown();
	}
}

/* Reads and prints a document of a few kB, in which every kind of value occurs. */
static int convert(void)
{
	static const char item[] =
		"{\"a\":[1,-1.5e300,\"\\u00e4\"],\"b\":{\"$bin\":\"AAE=\"},\"c\":"
		"{\"$ext\":[5,\"AAE=\"]},\"d\":null}";
	char text[8192];
	struct spoke_json_error wrong;
	struct spoke_span args;
	size_t count;
	size_t len;
	int error;

	len = (size_t)snprintf(text, sizeof(text), "[");
	for (unsigned i = 0; i < 80; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? "," : "[",
					item);
	(void)snprintf(text + len, sizeof(text) - len, "]]");
	error = read_args(text, &args, &count, &wrong);
	if (!error) {
		struct spokei_buffer out;

		spokei_buffer_init(&out, &memory.env, SIZE_MAX / 2);
		error = spokei_json_append(&out, (struct spoke_value){ args.data, args.len });
		if (error)
			assert_int_equal(spokei_buffer_len(&out), 0);
		spokei_buffer_fini(&out);
	} else {
		assert_int_equal(spokei_buffer_len(&buffer), 0);
	}
	return error;
}

TEST(failure_of_any_allocation_is_enomem)
{
	unsigned fail_at = 0;
	int error;

	do {
		setup(SIZE_MAX / 2);
		memory.fail_at = ++fail_at;
		error = convert();
		if (memory.asked >= fail_at)
			assert_int_equal(error, SPOKE_ENOMEM);
		teardown();
	} while (error);
	assert_true(fail_at > 5);
}

/* --- the JSON writer: its output is valid for any input */

static struct spokei_buffer out;

STEP(set_up)
{
	spokei_buffer_init(&out, spoke_host_env(), 1u << 20);
}

STEP(tear_down)
{
	spokei_buffer_fini(&out);
}

FIXTURE(set_up, tear_down);

static struct jsonread read_out(void)
{
	const char *text = (const char *)spokei_buffer_data(&out);
	size_t len = spokei_buffer_len(&out);
	size_t at;
	const char *wrong = jsonread_check(text, len, &at);

	if (wrong)
		fail_msg("%s, at %zu: %.*s", wrong, at, (int)len, text);
	return jsonread_of(text, len);
}

static void expect(const char *text)
{
	assert_int_equal(spokei_buffer_len(&out), strlen(text));
	assert_memory_equal(spokei_buffer_data(&out), text, strlen(text));
	(void)read_out();
}

TEST(writer_separates_members_with_commas)
{
	struct spokei_json json = spokei_json_make(&out);

	spokei_json_open(&json, '{');
	spokei_json_put_u64(&json, "a", 0);
	spokei_json_put_u64(&json, "b", UINT64_MAX);
	spokei_json_open_member(&json, "c", '[');
	spokei_json_close(&json, ']');
	spokei_json_open_member(&json, "d", '[');
	spokei_json_u64(&json, 10);
	spokei_json_open(&json, '{');
	spokei_json_close(&json, '}');
	spokei_json_null(&json);
	spokei_json_bool(&json, true);
	spokei_json_close(&json, ']');
	spokei_json_put_bool(&json, "e", false);
	spokei_json_put_text(&json, "f", "x");
	spokei_json_put_ms(&json, "g", 1999999);
	spokei_json_put_ms(&json, "h", UINT64_MAX);
	spokei_json_close(&json, '}');
	assert_int_equal(json.error, 0);
	expect("{\"a\":0,\"b\":18446744073709551615,\"c\":[],\"d\":[10,{},null,true],\"e\":false,"
	       "\"f\":\"x\",\"g\":1,\"h\":null}");
}

TEST(hostile_text_is_escaped)
{
	static const struct {
		const char *text;
		const char *written;
	} texts[] = {
		{ "", "\"\"" },
		{ "a\"b\\c", "\"a\\\"b\\\\c\"" },
		{ "\n\t\x01\x7f", "\"\\n\\t\\u0001\\u007f\"" },
		{ "</script><!--", "\"\\u003c/script>\\u003c!--\"" },
		{ "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x8c",
		  "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x8c\"" },
		{ "\xff", "\"\\ufffd\"" },
		{ "\xc0\x80", "\"\\ufffd\\ufffd\"" },
		{ "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"" },
		{ "a\xe2\x82", "\"a\\ufffd\\ufffd\"" },
		{ "\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"" },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct spokei_json json = spokei_json_make(&out);

		spokei_json_text(&json, texts[i].text);
		expect(texts[i].written);
		spokei_buffer_truncate(&out, 0);
	}
}

/* Compares each pair of first bytes with the JSON reader, which checks the code point instead. */
TEST(utf8_len_accepts_exactly_valid_utf8, .bare = true)
{
	char text[8] = { '"' };
	unsigned good = 0;
	size_t at;

	for (unsigned lead = 0x80; lead < 0x100; lead++) {
		for (unsigned second = 0; second < 0x100; second++) {
			for (size_t more = 0; more < 3; more++) {
				unsigned char bytes[4] = { (unsigned char)lead,
							   (unsigned char)second, 0x80, 0x80 };
				size_t len = spokei_utf8_len(bytes, 2 + more);

				memcpy(text + 1, bytes, 2 + more);
				text[3 + more] = '"';
				if (len == 2 + more) {
					assert_null(jsonread_check(text, 4 + more, &at));
					good++;
				} else if (len == 0 && second >= 0x80) {
					assert_non_null(jsonread_check(text, 4 + more, &at));
				}
			}
		}
	}
	assert_int_equal(good, 30 * 64 + (32 + 12 * 64 + 32 + 2 * 64) + (48 + 3 * 64 + 16));
}

TEST(text_of_random_bytes_is_valid_json)
{
	uint64_t dice = 7;

	for (unsigned i = 0; i < 2000; i++) {
		struct spokei_json json = spokei_json_make(&out);
		unsigned char bytes[48];
		size_t len = i % (sizeof(bytes) + 1);

		for (size_t at = 0; at < len; at++) {
			dice = dice * UINT64_C(6364136223846793005) + 1442695040888963407u;
			bytes[at] = (unsigned char)(dice >> 56);
		}
		spokei_json_span(&json, bytes, len);
		(void)read_out();
		spokei_buffer_truncate(&out, 0);
	}
}

TEST(long_text_is_cut_at_limit)
{
	struct spokei_json json = spokei_json_make(&out);
	char text[SPOKEI_JSON_TEXT + 2];

	memset(text, 'x', sizeof(text));
	spokei_json_span(&json, text, SPOKEI_JSON_TEXT);
	assert_int_equal(spokei_buffer_len(&out), SPOKEI_JSON_TEXT + 2);
	(void)read_out();
	spokei_buffer_truncate(&out, 0);
	json = spokei_json_make(&out);
	memset(text, 0xc3, sizeof(text));
	for (size_t i = 1; i < sizeof(text); i += 2)
		text[i] = (char)0xbc;
	spokei_json_span(&json, text, SPOKEI_JSON_TEXT + 1);
	(void)read_out();
	assert_memory_equal(spokei_buffer_data(&out) + spokei_buffer_len(&out) - 4, "...\"", 4);
}

TEST(write_error_sticks_when_buffer_is_full)
{
	struct spokei_json json;

	out.max = 6;
	json = spokei_json_make(&out);
	spokei_json_open(&json, '[');
	spokei_json_text(&json, "a text");
	assert_int_equal(json.error, SPOKE_ETOOLARGE);
	spokei_json_u64(&json, 1);
	spokei_json_close(&json, ']');
	assert_int_equal(json.error, SPOKE_ETOOLARGE);
	assert_int_equal(spokei_buffer_len(&out), 1);
}

TEST(test_reader_rejects_invalid_json, .bare = true)
{
	static const char *const wrong[] = {
		"",
		"{",
		"[1,]",
		"{\"a\":1,}",
		"{\"a\" 1}",
		"01",
		"1.",
		"+1",
		"\"\x01\"",
		"\"\\x\"",
		"\"\\u12g4\"",
		"[1 2]",
		"nul",
		"{a:1}",
		"\"a",
		"[]]",
		"\"\xff\"",
		"\"\xc0\x80\"",
		"{\"a\":1,\"a\":2}",
		"--1",
		"1e",
	};
	size_t at;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (jsonread_check(wrong[i], strlen(wrong[i]), &at) == NULL)
			fail_msg("accepted: %s", wrong[i]);
}
