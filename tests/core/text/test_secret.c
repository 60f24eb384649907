/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of secrets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/text/secret.h"

#include <string.h>

static bool is(const char *given, const char *secret)
{
	return spokei_secret_is((struct spoke_span){ given, strlen(given) }, secret);
}

static void only_the_whole_secret_is_equal(void **state)
{
	static const char *const wrong[] = { "",         "a",       "s3cre",
					     "s3crets",  "s3creT",  "S3cret",
					     "3cret",    "s3cret ", "s3crets3cret",
					     "s3cre\xf4" };

	(void)state;
	assert_true(is("s3cret", "s3cret"));
	assert_true(is("x", "x"));
	assert_true(is("\xff\x80", "\xff\x80"));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(is(wrong[i], "s3cret"));
}

static void empty_secret_equals_nothing(void **state)
{
	(void)state;
	assert_false(is("", ""));
	assert_false(is("x", ""));
	assert_false(spokei_secret_is((struct spoke_span){ NULL, 0 }, ""));
	assert_false(spokei_secret_is((struct spoke_span){ NULL, 0 }, "x"));
}

static void bytes_after_a_nul_are_compared(void **state)
{
	(void)state;
	assert_false(spokei_secret_is((struct spoke_span){ "x\0", 2 }, "x"));
	assert_false(spokei_secret_is((struct spoke_span){ "x\0y", 3 }, "x"));
}

static void every_byte_of_two_runs_is_compared(void **state)
{
	unsigned char a[37];
	unsigned char b[37];

	(void)state;
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

static void wiped_bytes_are_zero_and_no_others(void **state)
{
	char text[] = "xxsecretxx";

	(void)state;
	spokei_secret_wipe(text + 2, 6);
	assert_memory_equal(text, "xx\0\0\0\0\0\0xx", sizeof(text));
	spokei_secret_wipe(text, 0);
	assert_int_equal(*text, 'x');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_whole_secret_is_equal),
		cmocka_unit_test(empty_secret_equals_nothing),
		cmocka_unit_test(every_byte_of_two_runs_is_compared),
		cmocka_unit_test(wiped_bytes_are_zero_and_no_others),
		cmocka_unit_test(bytes_after_a_nul_are_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
