/* SPDX-License-Identifier: Apache-2.0 */
/* Tests converting JSON to values and back. */
#define _GNU_SOURCE

#include "tests/core/json/jsonagain.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	"{\"$map\":[[1,1],[\"1\",2],[1.0,3],[[1],4],[[1,1],5],[{},6]]}",
	"{\"$map\":[[\"$x\",1]]}",
	"{\"$x\":1,\"$y\":2}",
	"{\"$ref\":\"#/components/schemas/Error\"}",
	"1|\"two\"|[3]",
};

TEST(value_read_from_json_prints_the_same_json)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *text = strdup(texts[i]);

		assert_non_null(text);
		for (char *bar = text; (bar = strchr(bar, '|')) != NULL;)
			*bar = ' ';
		jsonagain_assert(text, texts[i]);
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
