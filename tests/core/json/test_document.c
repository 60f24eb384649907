/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer: its output is valid for any input. */
#include "core/json/document.h"
#include "core/text/utf8.h"
#include "core/virtual/faults.h"
#include "tests/core/json/jsonread.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <string.h>

static struct spokei_buffer out;

static int set_up(void **state)
{
	(void)state;
	spokei_buffer_init(&out, spoke_host_env(), 1u << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	spokei_buffer_fini(&out);
	return 0;
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
