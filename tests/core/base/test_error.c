/* SPDX-License-Identifier: Apache-2.0 */
/* Error numbers, names and sentences. */
#include "core/base/error.h"
#include "tests/support/test.h"

#include <spoke/error.h>

#include <limits.h>

static const struct {
	const char *name;
	int number;
	const char *sentence;
} errors[] = {
#define ROW(name, number, sentence) { #name, number, sentence },
	SPOKE_ERRORS(ROW)
#undef ROW
};

#define ERROR_COUNT (sizeof(errors) / sizeof(errors[0]))

TEST(error_names_and_sentences_are_unique)
{
	for (size_t i = 0; i < ERROR_COUNT; i++) {
		assert_string_equal(spoke_errname(errors[i].number), errors[i].name);
		assert_string_equal(spoke_strerror(errors[i].number), errors[i].sentence);
		for (size_t j = 0; j < i; j++) {
			assert_string_not_equal(errors[i].name, errors[j].name);
			assert_string_not_equal(errors[i].sentence, errors[j].sentence);
		}
	}
}

TEST(error_numbers_never_change)
{
	assert_int_equal(SPOKE_EINVAL, -1);
	assert_int_equal(SPOKE_ESYNTAX, -18);
	assert_int_equal(SPOKE_ERESOLVE, -100);
	assert_int_equal(SPOKE_ETIMEOUT, -105);
	assert_int_equal(SPOKE_EREMOTE, -200);
	assert_int_equal(SPOKE_ESERVER, -206);
	assert_int_equal(SPOKE_EFORBIDDEN, -207);
}

TEST(zero_means_success)
{
	assert_string_equal(spoke_errname(SPOKE_OK), "OK");
	assert_string_equal(spoke_strerror(SPOKE_OK), "success");
	assert_false(spoke_error_is_local(SPOKE_OK));
	assert_false(spoke_error_is_transport(SPOKE_OK));
	assert_false(spoke_error_is_remote(SPOKE_OK));
}

TEST(unassigned_numbers_are_unknown_errors)
{
	static const int numbers[] = { 1,    22,   -98,  -99,     -150,   -199,
				       -208, -299, -300, INT_MAX, INT_MIN };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		assert_string_equal(spoke_errname(numbers[i]), "UNKNOWN");
		assert_string_equal(spoke_strerror(numbers[i]), "unknown error");
		assert_false(spoke_error_is_local(numbers[i]));
		assert_false(spoke_error_is_transport(numbers[i]));
		assert_false(spoke_error_is_remote(numbers[i]));
	}
}

TEST(each_error_is_in_exactly_one_range)
{
	for (size_t i = 0; i < ERROR_COUNT; i++) {
		int number = errors[i].number;

		assert_int_equal(spoke_error_is_local(number), number >= -99);
		assert_int_equal(spoke_error_is_transport(number),
				 number <= -100 && number >= -199);
		assert_int_equal(spoke_error_is_remote(number), number <= -200);
	}
}

TEST(row_of_an_error_decides_what_follows)
{
	static const struct {
		int error, dubbo, http, fate, blame;
	} cases[] = {
		{ SPOKE_OK, 20, 200, SPOKEI_FATE_ANSWERED, SPOKEI_BLAME_ANSWER },
		{ SPOKE_ELIMIT, 80, 500, SPOKEI_FATE_WRITTEN, SPOKEI_BLAME_NONE },
		{ SPOKE_ELEASE, 80, 500, SPOKEI_FATE_ANSWERED, SPOKEI_BLAME_NONE },
		{ SPOKE_ELOST, 80, 500, SPOKEI_FATE_WRITTEN, SPOKEI_BLAME_LOSS },
		{ SPOKE_ETIMEOUT, 80, 504, SPOKEI_FATE_WRITTEN, SPOKEI_BLAME_FAILURE },
		{ SPOKE_EREMOTE, 20, 500, SPOKEI_FATE_ANSWERED, SPOKEI_BLAME_ANSWER },
		{ SPOKE_EREFUSED, 100, 503, SPOKEI_FATE_SAFE, SPOKEI_BLAME_REFUSAL },
		{ -99, 80, 500, SPOKEI_FATE_WRITTEN, SPOKEI_BLAME_FAILURE }, /* unknown */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct spokei_error *row = spokei_error_of(cases[i].error);

		assert_int_equal(row->dubbo_status, cases[i].dubbo);
		assert_int_equal(row->http_status, cases[i].http);
		assert_int_equal(row->fate, cases[i].fate);
		assert_int_equal(row->blame, cases[i].blame);
	}
}
