/* SPDX-License-Identifier: Apache-2.0 */
/* Printing of values as text. */
#include "tests/support/test.h"

#include <spoke/value.h>

#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define BYTES(text) (text), sizeof(text) - 1

static struct spoke_value checked(const char *bytes, size_t len)
{
	struct spoke_value value = { 0 };

	assert_int_equal(spoke_value_check(bytes, len, NULL, &value), 0);
	return value;
}

TEST(print_writes_readable_text)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *text;
	} cases[] = {
		{ BYTES("\xc0"), "null" },
		{ BYTES("\xc2"), "false" },
		{ BYTES("\xc3"), "true" },
		{ BYTES("\xff"), "-1" },
		{ BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), "18446744073709551615" },
		{ BYTES("\xd3\x80\x00\x00\x00\x00\x00\x00\x00"), "-9223372036854775808" },
		{ BYTES("\xca\x3f\xc0\x00\x00"), "1.5" },
		{ BYTES("\xca\xbf\x80\x00\x00"), "-1.0" },
		{ BYTES("\xca\x7f\x80\x00\x00"), "inf" },
		{ BYTES("\xa9"
			"a\"\\\n\x00\x7f\xc3\xa9z"),
		  "\"a\\\"\\\\\\x0a\\x00\\x7f\\xc3\\xa9z\"" },
		{ BYTES("\xc4\x03\x00\xab\x10"), "bin(00ab10)" },
		{ BYTES("\xc7\x02\xff\x01\x02"), "ext(-1, 0102)" },
		{ BYTES("\x90"), "[]" },
		{ BYTES("\x80"), "{}" },
		{ BYTES("\x93\x01\x92\x02\x90\x82\xa1"
			"a\x03\x04\x80"),
		  "[1, [2, []], {\"a\": 3, 4: {}}]" },
		{ BYTES("\xc1"), "?" },
		{ BYTES(""), "?" },
		{ BYTES("\x92\x01"), "..." },
	};
	char text[100];

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct spoke_value value = { (const unsigned char *)cases[i].bytes, cases[i].len };

		assert_int_equal(spoke_value_print(value, text, sizeof(text)),
				 strlen(cases[i].text));
		assert_string_equal(text, cases[i].text);
	}
}

TEST(print_cuts_text_with_dots_at_any_size)
{
	static const char whole[] = "[1, \"ab\\xff\", {\"k\": bin(0102)}]";
	struct spoke_value value = checked(BYTES("\x93\x01\xa3"
						 "ab\xff\x81\xa1k\xc4\x02\x01\x02"));
	char text[64];

	for (size_t size = 1; size <= sizeof(whole) + 1; size++) {
		size_t len;

		memset(text, 'x', sizeof(text));
		len = spoke_value_print(value, text, size);
		assert_true(len < size);
		assert_int_equal(strlen(text), len);
		assert_int_equal(text[size], 'x');
		if (size >= sizeof(whole)) {
			assert_string_equal(text, whole);
		} else if (size >= 4) {
			assert_string_equal(text + len - 3, "...");
			assert_memory_equal(text, whole, len - 3);
		}
	}
	assert_int_equal(spoke_value_print(value, text, 0), 0);
}

TEST(print_ends_too_deep_value_in_dots)
{
	unsigned char bytes[200];
	char text[500];

	memset(bytes, 0x91, sizeof(bytes));
	bytes[sizeof(bytes) - 1] = 0xc0;
	assert_int_equal(spoke_value_print((struct spoke_value){ bytes, sizeof(bytes) }, text,
					   sizeof(text)),
			 SPOKE_VALUE_DEPTH_MAX * 2 + 3);
	assert_non_null(strstr(text, "[...]"));
}
