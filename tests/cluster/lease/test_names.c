/* SPDX-License-Identifier: Apache-2.0 */
/* The names of channels and fencing counters, and the scripts: their texts, and their answers. */
#include "cluster/lease/script.h"
#include "tests/support/test.h"

#include <stdlib.h>

#include <string.h>

static void assert_named(enum spokei_lease_name which, const char *name, const char *expected)
{
	struct spoke_span span = { name, strlen(name) };
	size_t room = span.len + SPOKEI_LEASE_NAME_MORE;
	char *to = malloc(room);
	size_t len;

	assert_non_null(to);
	len = spokei_lease_name(to, which, span);
	assert_in_range(len, 1, room);
	assert_int_equal(len, strlen(expected));
	assert_memory_equal(to, expected, len);
	free(to);
}

TEST(plain_name_is_put_in_braces)
{
	assert_named(SPOKEI_LEASE_CHANNEL, "job", "redisson_lock__channel:{job}");
	assert_named(SPOKEI_LEASE_TOKEN, "job", "redisson_lock_token:{job}");
	assert_named(SPOKEI_LEASE_TOKEN, "two words", "redisson_lock_token:{two words}");
	assert_named(SPOKEI_LEASE_TOKEN, "a}b", "redisson_lock_token:{a}b}");
	assert_named(SPOKEI_LEASE_CHANNEL, "", "redisson_lock__channel:{}");
}

TEST(name_with_an_open_brace_stays_as_it_is)
{
	assert_named(SPOKEI_LEASE_CHANNEL, "a:{tag}", "redisson_lock__channel:a:{tag}");
	assert_named(SPOKEI_LEASE_TOKEN, "{", "redisson_lock_token:{");
	assert_named(SPOKEI_LEASE_TOKEN, "x{", "redisson_lock_token:x{");
}

TEST(bytes_of_a_name_are_copied_unchanged)
{
	static const char name[] = { 'a', '\0', (char)0xff, '\n' };
	static const char expected[] = "redisson_lock_token:{a\0\xff\n}";
	char to[sizeof(name) + SPOKEI_LEASE_NAME_MORE];

	assert_int_equal(spokei_lease_name(to, SPOKEI_LEASE_TOKEN,
					   (struct spoke_span){ name, sizeof(name) }),
			 sizeof(expected) - 1);
	assert_memory_equal(to, expected, sizeof(expected) - 1);
}

TEST(each_script_has_a_text_of_its_own)
{
	for (int i = SPOKEI_SCRIPT_ACQUIRE; i < SPOKEI_SCRIPTS; i++) {
		const char *text = spokei_script_text((enum spokei_script)i);

		assert_in_range(strlen(text), 1, 1024);
		for (int j = SPOKEI_SCRIPT_ACQUIRE; j < i; j++) {
			assert_string_not_equal(text, spokei_script_text((enum spokei_script)j));
			assert_string_not_equal(spokei_script_name((enum spokei_script)i),
						spokei_script_name((enum spokei_script)j));
		}
	}
}

TEST(answer_of_a_script_has_its_form)
{
	static const struct {
		enum spokei_script script;
		const char *reply;
		bool answers;
	} rows[] = {
		{ SPOKEI_SCRIPT_ACQUIRE, "*2\r\n:0\r\n:7\r\n", true },
		{ SPOKEI_SCRIPT_ACQUIRE, "*2\r\n:0\r\n$1\r\n7\r\n", true },
		{ SPOKEI_SCRIPT_ACQUIRE, "*2\r\n:1\r\n:-1\r\n", true },
		{ SPOKEI_SCRIPT_ACQUIRE, "*2\r\n:0\r\n:-1\r\n", false },
		{ SPOKEI_SCRIPT_ACQUIRE, "*2\r\n:2\r\n:7\r\n", false },
		{ SPOKEI_SCRIPT_ACQUIRE, "*2\r\n:-1\r\n:7\r\n", false },
		{ SPOKEI_SCRIPT_ACQUIRE, "*2\r\n:0\r\n$1\r\nx\r\n", false },
		{ SPOKEI_SCRIPT_ACQUIRE, "*1\r\n:0\r\n", false },
		{ SPOKEI_SCRIPT_ACQUIRE, ":0\r\n", false },
		{ SPOKEI_SCRIPT_RENEW, "*2\r\n:0\r\n:1\r\n", true },
		{ SPOKEI_SCRIPT_RENEW, "*1\r\n:1\r\n", false },
		{ SPOKEI_SCRIPT_RENEW, "*2\r\n:1\r\n$1\r\n1\r\n", false },
		{ SPOKEI_SCRIPT_RENEW, "$1\r\n1\r\n", false },
		{ SPOKEI_SCRIPT_RELEASE, ":0\r\n", true },
		{ SPOKEI_SCRIPT_RELEASE, "+OK\r\n", false },
		{ SPOKEI_SCRIPT_NONE, "+OK\r\n", true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const unsigned char *at = (const unsigned char *)rows[i].reply;
		struct spokei_resp_cursor reply = { at, at + strlen(rows[i].reply) };

		assert_int_equal(spokei_script_answers(rows[i].script, 2, reply), rows[i].answers);
	}
}
