/* SPDX-License-Identifier: Apache-2.0 */
/* Option values: parsing, ranges, printing, and the sentences of the errors. */
#include "core/text/option.h"
#include "tests/support/test.h"

#include <spoke/error.h>

#include <string.h>

/* --- option values: parsing, ranges, printing, and the sentences of the errors */

#define US UINT64_C(1000)
#define HOUR (3600 * SECOND)
/* Options that accept every number. */
static const struct spokei_option any_duration = {
	.name = "timeout",
	.kind = SPOKEI_OPTION_DURATION,
	.min = 0,
	.max = UINT64_MAX,
	.preset = SECOND,
	.sentence = "how long a call may take",
};

static const struct spokei_option any_size = {
	.name = "frame.max",
	.kind = SPOKEI_OPTION_SIZE,
	.min = 0,
	.max = UINT64_MAX,
	.preset = 8 << 20,
	.sentence = "bytes of a frame",
};

static const struct spokei_option any_count = {
	.name = "retries",
	.kind = SPOKEI_OPTION_COUNT,
	.min = 0,
	.max = UINT64_MAX,
	.preset = 2,
	.sentence = "attempts after the first",
};

static const struct spokei_option any_bool = {
	.name = "check",
	.kind = SPOKEI_OPTION_BOOL,
	.min = 0,
	.max = 1,
	.preset = 1,
	.sentence = "fail at start if there is no provider",
};

struct good {
	const struct spokei_option *option;
	const char *text;
	uint64_t value;
};

TEST(valid_text_gives_its_value)
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

TEST(bare_number_is_milliseconds_only_where_allowed)
{
	char why[SPOKEI_OPTION_WHY_MAX];
	uint64_t value = 77;

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
	/* Options of other kinds accept a bare number. */
	assert_int_equal(spokei_option_parse(&any_count, "3", true, &value, why, sizeof(why)),
			 SPOKE_OK);
	assert_true(value == 3);
}

TEST(invalid_value_error_names_the_valid_form)
{
	static const struct {
		const struct spokei_option *option;
		const char *texts[24];
		const char *sentence;
	} cases[] = {
		{ &any_duration,
		  { "5x", "", "ms", "-1s", "+1s", " 1s", "1s ", "1 s", "1S", "1,5s", "1.s", ".5s",
		    "1e3s", "0x1s", "1s1s", "1d", "1.5.5s", "\xc2\xb5s" },
		  "not a duration; write a number and a unit, e.g. 250ms or 1.5s" },
		{ &any_duration,
		  { "1.5ns", "0.0000000001s", "1.00000000001s", "0.000000000001h",
		    "0.0000000000001h" },
		  "finer than a nanosecond; write fewer decimals" },
		{ &any_size,
		  { "", "8MB", "8mib", "8 MiB", "1.5MiB", "-1", "KiB", "8M", "0x10", "1TiB" },
		  "not a size; write bytes, or a number and a unit, e.g. 64KiB or 8MiB" },
		{ &any_count,
		  { "", "-1", "1.0", "1k", "B", "1B", "ten", "0x10", "1 ", "\xd9\xa1" },
		  "not a count; write a whole number, e.g. 8" },
		{ &any_bool,
		  { "", "True", "y", "2", "01", "truefalse", "t" },
		  "neither yes nor no; write true or false" },
	};

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

TEST(error_sentence_begins_with_key_and_value)
{
	char why[SPOKEI_OPTION_WHY_MAX];
	uint64_t value;

	assert_int_equal(spokei_option_parse(&any_duration, "5x", true, &value, why, sizeof(why)),
			 SPOKE_ESYNTAX);
	assert_string_equal(why,
			    "timeout=5x: not a duration; write a number and a unit, e.g. 250ms "
			    "or 1.5s");
}

TEST(value_outside_range_error_names_the_range)
{
	static const struct spokei_option narrow = {
		.name = "timeout",
		.kind = SPOKEI_OPTION_DURATION,
		.min = MS,
		.max = HOUR,
		.preset = SECOND,
		.sentence = "how long a call may take",
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

TEST(number_above_64_bits_is_out_of_range_for_every_kind)
{
	static const struct good cases[] = {
		{ &any_size, "18446744073709551616", 0 },
		{ &any_size, "17179869184GiB", 0 },
		{ &any_count, "18446744073709551616", 0 },
		{ &any_count, "184467440737095516150", 0 },
		{ &any_duration, "18446744073709552ms", 0 },
		{ &any_duration, "18446744073.709551616s", 0 },
	};

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

TEST(error_sentence_is_printable_and_fits_for_any_value)
{
	char text[5000];
	uint64_t value;

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
						    "unit, e.g. 250ms or 1.5s"));
	}
}

TEST(value_is_printed_in_largest_exact_unit)
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

static const char *colour(unsigned index)
{
	static const char *const names[] = { "red", "green", "blue", NULL };

	return names[index];
}

TEST(name_text_and_list_give_their_values)
{
	static const struct spokei_option name = { .name = "colour",
						   .kind = SPOKEI_OPTION_NAME,
						   .names = colour };
	static const struct spokei_option text = {
		.name = "title", .kind = SPOKEI_OPTION_TEXT, .min = 1, .max = 8
	};
	static const struct spokei_option list = {
		.name = "listen", .kind = SPOKEI_OPTION_LIST, .min = 1, .max = 3
	};
	static const struct {
		const struct spokei_option *option;
		const char *text;
		int error;
		uint64_t value;
		const char *why;
	} cases[] = {
		{ &name, "blue", 0, 2, NULL },
		{ &name, "Blue", SPOKE_EINVAL, 0, "not known; use red, green or blue" },
		{ &text, "caf\xc3\xa9", 0, 5, NULL },
		{ &text, "", SPOKE_ERANGE, 0, "there is nothing; write a text" },
		{ &text, "ninebytes", SPOKE_ERANGE, 0, "too long; it has at most 8 bytes" },
		{ &text, "a\x1b", SPOKE_ESYNTAX, 0, "not a text; write printable characters" },
		{ &list, "a", 0, 1, NULL },
		{ &list, "a, b ,c", 0, 3, NULL },
		{ &list, "a,b,c,d", SPOKE_ERANGE, 0, "too long; it has at most 3 values" },
		{ &list, "a,,b", SPOKE_ESYNTAX, 0,
		  "not a list; write values separated by commas, e.g. one, two" },
		{ &list, "", SPOKE_ESYNTAX, 0,
		  "not a list; write values separated by commas, e.g. one, two" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char why[SPOKEI_OPTION_WHY_MAX];
		uint64_t value = 0;

		assert_int_equal(spokei_option_read(cases[i].option, cases[i].text, false, &value,
						    why, sizeof(why)),
				 cases[i].error);
		assert_int_equal(value, cases[i].value);
		if (cases[i].why)
			assert_string_equal(why, cases[i].why);
	}
}

TEST(none_is_accepted_only_where_allowed)
{
	static const struct spokei_option option = {
		.name = "heartbeat",
		.kind = SPOKEI_OPTION_DURATION,
		.min = 10 * MS,
		.max = HOUR,
		.or_none = true,
	};
	char why[SPOKEI_OPTION_WHY_MAX];
	uint64_t value = 7;

	assert_int_equal(spokei_option_read(&option, "0", false, &value, why, sizeof(why)), 0);
	assert_int_equal(value, 0);
	assert_int_equal(spokei_option_read(&option, "0s", true, &value, why, sizeof(why)), 0);
	assert_int_equal(spokei_option_read(&option, "1ms", false, &value, why, sizeof(why)),
			 SPOKE_ERANGE);
	assert_string_equal(why, "too small; it goes from 10ms to 1h, or 0 for none");
	assert_int_equal(spokei_option_read(&option, "5", false, &value, why, sizeof(why)),
			 SPOKE_ESYNTAX);
	assert_string_equal(why, "a duration needs a unit; write 5ms or 5s");
}

TEST(list_items_are_returned_without_blanks)
{
	static const char *const values[] = { "one", "two three", "", "4" };
	const char *at = " one,two three\t,,4 ";
	struct spoke_span item;

	for (size_t i = 0; i < 4; i++) {
		assert_true(spokei_option_item(&at, &item));
		assert_int_equal(item.len, strlen(values[i]));
		assert_memory_equal(item.data, values[i], item.len);
	}
	assert_false(spokei_option_item(&at, &item));
}

/* --- options that are a duration or a percentile of durations */

#define OPTION_DELAY_HOUR UINT64_C(3600000000000)

TEST(delay_is_a_duration_or_a_percentile)
{
	static const struct spokei_option delay = {
		.name = "after",
		.kind = SPOKEI_OPTION_DELAY,
		.min = MS,
		.max = OPTION_DELAY_HOUR,
		.or_none = true,
	};
	static const struct {
		const char *text;
		uint64_t value;
	} cases[] = {
		{ "20ms", 20 * MS },
		{ "0", 0 },
		{ "p1", SPOKEI_OPTION_PERCENTILE(1) },
		{ "p99", SPOKEI_OPTION_PERCENTILE(99) },
	};
	static const char *const wrong[] = {
		"p", "p0", "p100", "p95%", "p9.5", "95", "P95", "1us"
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char why[SPOKEI_OPTION_WHY_MAX];
		char text[32];
		uint64_t value = 77;

		assert_int_equal(spokei_option_read(&delay, cases[i].text, false, &value, why,
						    sizeof(why)),
				 SPOKE_OK);
		assert_true(value == cases[i].value);
		spokei_option_print(SPOKEI_OPTION_DELAY, value, text, sizeof(text));
		assert_string_equal(text, value ? cases[i].text : "0s");
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char why[SPOKEI_OPTION_WHY_MAX] = "";
		uint64_t value = 77;

		assert_int_not_equal(spokei_option_read(&delay, wrong[i], false, &value, why,
							sizeof(why)),
				     SPOKE_OK);
		assert_int_equal(value, 77);
		assert_true(*why != '\0');
	}
	assert_int_equal(spokei_option_percentile(SPOKEI_OPTION_PERCENTILE(95)), 95);
	assert_int_equal(spokei_option_percentile(UINT64_MAX), 0);
	assert_int_equal(spokei_option_percentile(OPTION_DELAY_HOUR), 0);
}

/* --- options that are a count or "auto" */

TEST(cap_is_a_count_or_auto)
{
	static const struct spokei_option cap = {
		.name = "executes",
		.kind = SPOKEI_OPTION_CAP,
		.max = UINT32_MAX / 2,
	};
	static const char *const wrong[] = { "Auto", "automatic", "-1", "1.5", "4294967294" };
	char why[SPOKEI_OPTION_WHY_MAX];
	char text[32];
	uint64_t value = 77;

	assert_int_equal(spokei_option_read(&cap, "auto", false, &value, why, sizeof(why)),
			 SPOKE_OK);
	assert_true(value == SPOKEI_OPTION_CAP_AUTO);
	spokei_option_print(SPOKEI_OPTION_CAP, value, text, sizeof(text));
	assert_string_equal(text, "auto");
	assert_int_equal(spokei_option_read(&cap, "8", false, &value, why, sizeof(why)), SPOKE_OK);
	assert_true(value == 8);
	spokei_option_print(SPOKEI_OPTION_CAP, value, text, sizeof(text));
	assert_string_equal(text, "8");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_not_equal(spokei_option_read(&cap, wrong[i], false, &value, why,
							sizeof(why)),
				     SPOKE_OK);
	assert_true(value == 8);
}

/* --- options that are a duration, "auto" or "off" */

static const struct spokei_option spin = {
	.name = "spin",
	.kind = SPOKEI_OPTION_SPIN,
	.min = 1,
	.max = 10000 * US,
};

TEST(spin_of_no_time_is_off_with_and_without_a_unit)
{
	static const struct {
		const char *text;
		uint64_t value;
	} cases[] = {
		{ "auto", 0 },
		{ "off", SPOKEI_OPTION_OFF },
		{ "0", SPOKEI_OPTION_OFF },
		{ "0s", SPOKEI_OPTION_OFF },
		{ "0.0us", SPOKEI_OPTION_OFF },
		{ "50us", 50 * US },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char why[SPOKEI_OPTION_WHY_MAX];
		uint64_t value = 77;

		assert_int_equal(spokei_option_read(&spin, cases[i].text, false, &value, why,
						    sizeof(why)),
				 SPOKE_OK);
		assert_true(value == cases[i].value);
	}
}

TEST(spin_of_the_longest_time_is_too_large)
{
	char why[SPOKEI_OPTION_WHY_MAX];
	uint64_t value = 77;

	assert_int_equal(spokei_option_read(&spin, "18446744073709551615ns", false, &value, why,
					    sizeof(why)),
			 SPOKE_ERANGE);
	assert_non_null(strstr(why, "too large"));
	assert_true(value == 77);
}
