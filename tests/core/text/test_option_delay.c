/* SPDX-License-Identifier: Apache-2.0 */
/* Options that are a duration or a percentile of durations. */
#include "core/text/option.h"
#include "tests/support/test.h"

#define MS UINT64_C(1000000)
#define HOUR UINT64_C(3600000000000)

TEST(delay_is_a_duration_or_a_percentile)
{
	static const struct spokei_option delay = {
		.name = "after",
		.kind = SPOKEI_OPTION_DELAY,
		.min = MS,
		.max = HOUR,
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
	assert_int_equal(spokei_option_percentile(HOUR), 0);
}
