/* SPDX-License-Identifier: Apache-2.0 */
/* Options that are a duration, "auto" or "off". */
#include "core/text/option.h"
#include "tests/support/test.h"

#include <string.h>

#include <spoke/error.h>

#define US UINT64_C(1000)

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
