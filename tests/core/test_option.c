/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/option.h"

#include <string.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define HOUR (3600 * SECOND)

/* Rows that take every number. */
static const struct spokei_option any_duration = {
	"timeout", SPOKEI_OPTION_DURATION, 0, UINT64_MAX, SECOND, "how long a call may take",
};
static const struct spokei_option any_size = {
	"frame.max", SPOKEI_OPTION_SIZE, 0, UINT64_MAX, 8 << 20, "bytes of a frame",
};
static const struct spokei_option any_count = {
	"retries", SPOKEI_OPTION_COUNT, 0, UINT64_MAX, 2, "attempts after the first",
};
static const struct spokei_option any_bool = {
	"check", SPOKEI_OPTION_BOOL, 0, 1, 1, "fail at start if there is no provider",
};

struct good {
	const struct spokei_option *option;
	const char *text;
	uint64_t value;
};

static void texts_are_exactly_their_values(void **state)
{
	static const struct good cases[] = {
		{ &any_duration, "250ms", 250 * MS },
		{ &any_duration, "1.5s", 1500 * MS },
		{ &any_duration, "2m", 120 * SECOND },
		{ &any_duration, "1h", HOUR },
		{ &any_duration, "10us", 10 * US },
		{ &any_duration, "7ns", 7 },
		{ &any_duration, "0s", 0 },
		{ &any_duration, "0.000000001s", 1 },
		{ &any_duration, "0.1s", 100 * MS },
		{ &any_duration, "1.10000000000000000000s", 1100 * MS },
		{ &any_duration, "1.0ns", 1 },
		{ &any_duration, "2.25h", 9 * HOUR / 4 },
		{ &any_duration, "0.00000000001h", 36 },
		{ &any_duration, "00000000000000000000000000007ms", 7 * MS },
		{ &any_duration, "18446744073709551615ns", UINT64_MAX },
		{ &any_duration, "18446744073.709551615s", UINT64_MAX },
		{ &any_size, "512", 512 },
		{ &any_size, "512B", 512 },
		{ &any_size, "64KiB", 65536 },
		{ &any_size, "8MiB", 8388608 },
		{ &any_size, "3GiB", UINT64_C(3221225472) },
		{ &any_size, "0", 0 },
		{ &any_size, "17179869183GiB", UINT64_C(17179869183) << 30 },
		{ &any_count, "0", 0 },
		{ &any_count, "42", 42 },
		{ &any_count, "18446744073709551615", UINT64_MAX },
		{ &any_bool, "true", 1 },
		{ &any_bool, "false", 0 },
		{ &any_bool, "on", 1 },
		{ &any_bool, "off", 0 },
		{ &any_bool, "yes", 1 },
		{ &any_bool, "no", 0 },
		{ &any_bool, "1", 1 },
		{ &any_bool, "0", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char why[SPOKEI_OPTION_WHY_MAX] = "untouched";
		uint64_t value = 77;

		assert_int_equal(spokei_option_parse(cases[i].option, cases[i].text, false, &value,
						     why, sizeof(why)),
				 SPOKE_OK);
		assert_true(value == cases[i].value);
		assert_string_equal(why, "untouched");
	}
}

static void a_bare_number_is_milliseconds_only_where_that_is_allowed(void **state)
{
	char why[SPOKEI_OPTION_WHY_MAX];
	uint64_t value = 77;

	(void)state;
	assert_int_equal(spokei_option_parse(&any_duration, "5000", true, &value, why, sizeof(why)),
			 SPOKE_OK);
	assert_true(value == 5 * SECOND);
	assert_int_equal(spokei_option_parse(&any_duration, "5s", true, &value, why, sizeof(why)),
			 SPOKE_OK);
	assert_int_equal(spokei_option_parse(&any_duration, "1.5", true, &value, why, sizeof(why)),
			 SPOKE_ESYNTAX);
	assert_int_equal(spokei_option_parse(&any_duration, "5000", false, &value, why,
					     sizeof(why)),
			 SPOKE_ESYNTAX);
	assert_true(value == 5 * SECOND);
	/* Other kinds do not care. */
	assert_int_equal(spokei_option_parse(&any_count, "3", true, &value, why, sizeof(why)),
			 SPOKE_OK);
	assert_true(value == 3);
}

static void what_is_no_value_is_refused_with_a_sentence_that_tells_what_is_right(void **state)
{
	static const struct {
		const struct spokei_option *option;
		const char *texts[24];
		const char *sentence;
	} cases[] = {
		{ &any_duration,
		  { "5x",   "",     "ms",   "-1s",  "+1s",    " 1s",      "1s ",
		    "1 s",  "1S",   "1,5s", "1.s",  ".5s",    "1.5",      "1e3s",
		    "0x1s", "1s1s", "1d",   "5000", "1.5.5s", "\xc2\xb5s" },
		  "not a duration; write a number and a unit, as 250ms or 1.5s" },
		{ &any_duration,
		  { "1.5ns", "0.0000000001s", "1.00000000001s", "0.000000000001h",
		    "0.0000000000001h" },
		  "finer than a nanosecond; write fewer decimals" },
		{ &any_size,
		  { "", "8MB", "8mib", "8 MiB", "1.5MiB", "-1", "KiB", "8M", "0x10", "1TiB" },
		  "not a size; write bytes, or a number and a unit, as 64KiB or 8MiB" },
		{ &any_count,
		  { "", "-1", "1.0", "1k", "B", "1B", "ten", "0x10", "1 ", "\xd9\xa1" },
		  "not a count; write a whole number, as 8" },
		{ &any_bool,
		  { "", "True", "y", "2", "01", "truefalse", "t" },
		  "neither yes nor no; write true or false" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t j = 0; j < 24 && cases[i].texts[j]; j++) {
			char why[SPOKEI_OPTION_WHY_MAX];
			uint64_t value = 77;

			assert_int_equal(spokei_option_parse(cases[i].option, cases[i].texts[j],
							     false, &value, why, sizeof(why)),
					 SPOKE_ESYNTAX);
			assert_true(value == 77);
			assert_string_equal(strstr(why, ": ") + 2, cases[i].sentence);
		}
	}
}

static void a_sentence_begins_with_key_and_value(void **state)
{
	char why[SPOKEI_OPTION_WHY_MAX];
	uint64_t value;

	(void)state;
	assert_int_equal(spokei_option_parse(&any_duration, "5x", true, &value, why, sizeof(why)),
			 SPOKE_ESYNTAX);
	assert_string_equal(why, "timeout=5x: not a duration; write a number and a unit, as 250ms "
				 "or 1.5s");
}

static void values_outside_the_range_are_refused_and_the_range_is_told(void **state)
{
	static const struct spokei_option narrow = {
		"timeout", SPOKEI_OPTION_DURATION, MS, HOUR, SECOND, "how long a call may take",
	};
	static const struct {
		const char *text;
		const char *why;
	} cases[] = {
		{ "999999ns", "timeout=999999ns: too small; it goes from 1ms to 1h" },
		{ "0s", "timeout=0s: too small; it goes from 1ms to 1h" },
		{ "3600001ms", "timeout=3600001ms: too large; it goes from 1ms to 1h" },
		{ "99999999999999999999ms",
		  "timeout=99999999999999999999ms: too large; it goes from 1ms to 1h" },
		{ "18446744073709551616ns",
		  "timeout=18446744073709551616ns: too large; it goes from 1ms to 1h" },
		{ "18446744073709551615h",
		  "timeout=18446744073709551615h: too large; it goes from 1ms to 1h" },
		{ "18446744073.709551616s",
		  "timeout=18446744073.709551616s: too large; it goes from 1ms to 1h" },
	};
	char why[SPOKEI_OPTION_WHY_MAX];
	uint64_t value = 77;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(spokei_option_parse(&narrow, cases[i].text, false, &value, why,
						     sizeof(why)),
				 SPOKE_ERANGE);
		assert_true(value == 77);
		assert_string_equal(why, cases[i].why);
	}
	assert_int_equal(spokei_option_parse(&narrow, "1ms", false, &value, why, sizeof(why)), 0);
	assert_int_equal(spokei_option_parse(&narrow, "1h", false, &value, why, sizeof(why)), 0);
}

static void more_than_64_bits_are_out_of_range_for_every_kind(void **state)
{
	static const struct good cases[] = {
		{ &any_size, "18446744073709551616", 0 },
		{ &any_size, "17179869184GiB", 0 },
		{ &any_count, "18446744073709551616", 0 },
		{ &any_count, "184467440737095516150", 0 },
		{ &any_duration, "18446744073709552ms", 0 },
		{ &any_duration, "18446744073.709551616s", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char why[SPOKEI_OPTION_WHY_MAX];
		uint64_t value = 77;

		assert_int_equal(spokei_option_parse(cases[i].option, cases[i].text, false, &value,
						     why, sizeof(why)),
				 SPOKE_ERANGE);
		assert_non_null(strstr(why, "too large"));
		assert_true(value == 77);
	}
}

static void a_sentence_is_printable_and_fits_whatever_the_value(void **state)
{
	char text[5000];
	uint64_t value;

	(void)state;
	memset(text, '\n', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (size_t size = 1; size <= SPOKEI_OPTION_WHY_MAX; size++) {
		char why[SPOKEI_OPTION_WHY_MAX + 1];

		memset(why, '#', sizeof(why));
		assert_int_equal(spokei_option_parse(&any_duration, text, false, &value, why, size),
				 SPOKE_ESYNTAX);
		assert_true(strlen(why) < size);
		for (size_t i = size; i < sizeof(why); i++)
			assert_int_equal(why[i], '#');
		assert_null(strchr(why, '\n'));
		if (size == SPOKEI_OPTION_WHY_MAX)
			assert_non_null(strstr(why, "...: not a duration; write a number and a "
						    "unit, as 250ms or 1.5s"));
	}
}

static void values_are_printed_in_the_largest_unit_that_is_exact(void **state)
{
	static const struct good cases[] = {
		{ &any_duration, "1500ms", 1500 * MS },
		{ &any_duration, "90s", 90 * SECOND },
		{ &any_duration, "24h", 24 * HOUR },
		{ &any_duration, "0s", 0 },
		{ &any_duration, "18446744073709551615ns", UINT64_MAX },
		{ &any_size, "8MiB", 8 << 20 },
		{ &any_size, "1023B", 1023 },
		{ &any_size, "0B", 0 },
		{ &any_count, "42", 42 },
		{ &any_bool, "true", 1 },
		{ &any_bool, "false", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char out[32];
		char why[SPOKEI_OPTION_WHY_MAX];
		uint64_t value = 77;

		spokei_option_print(cases[i].option->kind, cases[i].value, out, sizeof(out));
		assert_string_equal(out, cases[i].text);
		assert_int_equal(spokei_option_parse(cases[i].option, out, false, &value, why,
						     sizeof(why)),
				 SPOKE_OK);
		assert_true(value == cases[i].value);
	}
}

static const struct spokei_option table[] = {
	{ "timeout", SPOKEI_OPTION_DURATION, 0, HOUR, SECOND, "" },
	{ "heartbeat", SPOKEI_OPTION_DURATION, 0, HOUR, 60 * SECOND, "" },
	{ "retries", SPOKEI_OPTION_COUNT, 0, 100, 2, "" },
	{ "retry.period", SPOKEI_OPTION_DURATION, 0, HOUR, 5 * SECOND, "" },
	{ "tcp", SPOKEI_OPTION_BOOL, 0, 1, 1, "" },
};

#define TABLE_COUNT (sizeof(table) / sizeof(table[0]))

static void each_row_is_found_by_its_name(void **state)
{
	char why[SPOKEI_OPTION_WHY_MAX] = "untouched";

	(void)state;
	for (size_t i = 0; i < TABLE_COUNT; i++)
		assert_ptr_equal(spokei_option_find(table, TABLE_COUNT, table[i].name, why,
						    sizeof(why)),
				 &table[i]);
	assert_string_equal(why, "untouched");
}

static void an_unknown_name_is_told_with_the_nearest_one(void **state)
{
	static const struct {
		const char *name;
		const char *why;
	} cases[] = {
		{ "timeuot", "timeuot: there is no such option; did you mean timeout?" },
		{ "timeouts", "timeouts: there is no such option; did you mean timeout?" },
		{ "Timeout", "Timeout: there is no such option; did you mean timeout?" },
		{ "hartbet", "hartbet: there is no such option; did you mean heartbeat?" },
		{ "retry", "retry: there is no such option" },
		{ "retrys", "retrys: there is no such option; did you mean retries?" },
		{ "retry_period", "retry_period: there is no such option; did you mean "
				  "retry.period?" },
		{ "tcq", "tcq: there is no such option; did you mean tcp?" },
		{ "udp", "udp: there is no such option" },
		{ "x", "x: there is no such option" },
		{ "", ": there is no such option" },
		{ "frobnicate", "frobnicate: there is no such option" },
		{ "time\nout", "time\\x0aout: there is no such option; did you mean timeout?" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char why[SPOKEI_OPTION_WHY_MAX];

		assert_null(
			spokei_option_find(table, TABLE_COUNT, cases[i].name, why, sizeof(why)));
		assert_string_equal(why, cases[i].why);
	}
}

static void a_name_of_any_length_is_unknown_and_cut(void **state)
{
	char name[3000];

	(void)state;
	memset(name, 't', sizeof(name));
	for (size_t len = 40; len < 60; len++) {
		char why[SPOKEI_OPTION_WHY_MAX];

		name[len] = '\0';
		assert_null(spokei_option_find(table, TABLE_COUNT, name, why, sizeof(why)));
		name[len] = 't';
	}
	name[sizeof(name) - 1] = '\0';
	for (size_t size = 1; size < 100; size++) {
		char why[101];

		memset(why, '#', sizeof(why));
		assert_null(spokei_option_find(table, TABLE_COUNT, name, why, size));
		assert_true(strlen(why) < size);
		for (size_t i = size; i < sizeof(why); i++)
			assert_int_equal(why[i], '#');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_exactly_their_values),
		cmocka_unit_test(a_bare_number_is_milliseconds_only_where_that_is_allowed),
		cmocka_unit_test(
			what_is_no_value_is_refused_with_a_sentence_that_tells_what_is_right),
		cmocka_unit_test(a_sentence_begins_with_key_and_value),
		cmocka_unit_test(values_outside_the_range_are_refused_and_the_range_is_told),
		cmocka_unit_test(more_than_64_bits_are_out_of_range_for_every_kind),
		cmocka_unit_test(a_sentence_is_printable_and_fits_whatever_the_value),
		cmocka_unit_test(values_are_printed_in_the_largest_unit_that_is_exact),
		cmocka_unit_test(each_row_is_found_by_its_name),
		cmocka_unit_test(an_unknown_name_is_told_with_the_nearest_one),
		cmocka_unit_test(a_name_of_any_length_is_unknown_and_cut),
	};

	return cmocka_run_group_tests_name("option", tests, NULL, NULL);
}
