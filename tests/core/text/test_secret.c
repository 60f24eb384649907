/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of secrets. */
#include "core/text/secret.h"
#include "tests/support/test.h"

#include <string.h>

static bool is(const char *given, const char *secret)
{
	return spokei_secret_is((struct spoke_span){ given, strlen(given) }, secret);
}

TEST(only_the_whole_secret_is_equal)
{
	static const char *const wrong[] = { "",         "a",       "s3cre",
					     "s3crets",  "s3creT",  "S3cret",
					     "3cret",    "s3cret ", "s3crets3cret",
					     "s3cre\xf4" };

	assert_true(is("s3cret", "s3cret"));
	assert_true(is("x", "x"));
	assert_true(is("\xff\x80", "\xff\x80"));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(is(wrong[i], "s3cret"));
}

TEST(empty_secret_equals_nothing)
{
	assert_false(is("", ""));
	assert_false(is("x", ""));
	assert_false(spokei_secret_is((struct spoke_span){ NULL, 0 }, ""));
	assert_false(spokei_secret_is((struct spoke_span){ NULL, 0 }, "x"));
}

TEST(bytes_after_a_nul_are_compared)
{
	assert_false(spokei_secret_is((struct spoke_span){ "x\0", 2 }, "x"));
	assert_false(spokei_secret_is((struct spoke_span){ "x\0y", 3 }, "x"));
}

TEST(every_byte_of_two_runs_is_compared)
{
	unsigned char a[37];
	unsigned char b[37];

	memset(a, 7, sizeof(a));
	memset(b, 7, sizeof(b));
	for (size_t len = 0; len <= sizeof(a); len++) {
		assert_true(spokei_secret_same(a, b, len));
		for (size_t i = 0; i < sizeof(a); i++) {
			b[i] ^= 0x10;
			assert_int_equal(spokei_secret_same(a, b, len), i >= len);
			b[i] ^= 0x10;
		}
	}
}

TEST(wiped_bytes_are_zero_and_no_others)
{
	char text[] = "xxsecretxx";

	spokei_secret_wipe(text + 2, 6);
	assert_memory_equal(text, "xx\0\0\0\0\0\0xx", sizeof(text));
	spokei_secret_wipe(text, 0);
	assert_int_equal(*text, 'x');
}
