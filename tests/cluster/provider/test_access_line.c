/* SPDX-License-Identifier: Apache-2.0 */
/* The format of a line of the access log. */
#include "cluster/provider/access_line.h"
#include "tests/support/test.h"

#include <string.h>

#define SECOND UINT64_C(1000000000)

TEST(time_is_printed_as_iso_8601)
{
	static const struct {
		uint64_t second;
		const char *text;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00.007Z" },
		{ 951782400, "2000-02-29T00:00:00.007Z" },
		{ 951868799, "2000-02-29T23:59:59.007Z" },
		{ 1709251199, "2024-02-29T23:59:59.007Z" },
		{ 1709251200, "2024-03-01T00:00:00.007Z" },
		{ 1767225599, "2025-12-31T23:59:59.007Z" },
		{ 1767225600, "2026-01-01T00:00:00.007Z" },
		{ 4107542399, "2100-02-28T23:59:59.007Z" },
		{ 4107542400, "2100-03-01T00:00:00.007Z" },
	};
	char text[SPOKEI_ACCESS_TIME];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		spokei_access_print_time(cases[i].second * SECOND + 7999999, text);
		assert_string_equal(text, cases[i].text);
	}
	spokei_access_print_time(UINT64_MAX, text);
	assert_string_equal(text, "2554-07-21T23:34:33.709Z");
}

TEST(text_from_peers_is_escaped_and_cut)
{
	char name[2000];
	char long_name[2000];
	struct spoke_span whole = { name, sizeof(name) };
	struct spokei_access_line line = {
		.time = "T",
		.peer = "p",
		.service = { "a\"b\nc d", 7 },
		.arg_len = 3,
		.error = SPOKE_EREFUSED,
		.abandoned = true,
		.took_ns = 12345678,
	};
	char text[SPOKEI_ACCESS_LINE];
	size_t len;

	len = spokei_access_print_line(&line, text);
	assert_string_equal(text, "T \"p\" \"a\\\"b\\x0ac d\" \"\" \"\" \"\" 3 EREFUSED 12.345 "
				  "abandoned");
	assert_int_equal(len, strlen(text));
	line.identity = "dns:a\"b";
	(void)spokei_access_print_line(&line, text);
	assert_non_null(strstr(text, " abandoned as \"dns:a\\\"b\""));
	memset(name, '\1', sizeof(name));
	memset(long_name, '\1', sizeof(long_name));
	long_name[sizeof(long_name) - 1] = '\0';
	line = (struct spokei_access_line){
		.time = "2026-01-01T00:00:00.007Z",
		.peer = "p",
		.service = whole,
		.version = whole,
		.group = whole,
		.method = whole,
		.arg_len = SIZE_MAX,
		.error = SPOKE_ETIMEOUT_UNSENT,
		.abandoned = true,
		.took_ns = UINT64_MAX,
		.identity = long_name,
	};
	len = spokei_access_print_line(&line, text);
	assert_int_equal(len, strlen(text));
	assert_in_range(len, 600, SPOKEI_ACCESS_LINE - 2);
}

/* A peer chooses all these texts: none may end its quotes or the line. */
TEST(each_text_of_a_line_is_escaped)
{
	static const char hostile[] = "a\"b\\c\nT \"p\" \r\x1b[2J\x7f\xff";
	const struct spoke_span text = { hostile, sizeof(hostile) - 1 };

	for (unsigned field = 0; field < 5; field++) {
		struct spokei_access_line line = { .time = "T", .peer = "" };
		struct spokei_access_line plain = line;
		char made[SPOKEI_ACCESS_LINE];
		char usual[SPOKEI_ACCESS_LINE];
		unsigned quotes = 0;

		if (field == 0)
			line.peer = hostile;
		else
			*(struct spoke_span *[]){ &line.service, &line.version, &line.group,
						  &line.method }[field - 1] = text;
		(void)spokei_access_print_line(&plain, usual);
		(void)spokei_access_print_line(&line, made);
		for (const char *at = made; *at; at++) {
			assert_in_range(*at, 0x20, 0x7e);
			quotes += *at == '"' && at[-1] != '\\';
		}
		assert_int_equal(quotes, 10);
		assert_non_null(strstr(made, "\"a\\\"b\\\\c\\x0aT \\\"p\\\" \\x0d\\x1b[2J\\x7f"));
		assert_true(strlen(made) > strlen(usual));
	}
}
