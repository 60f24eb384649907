/* SPDX-License-Identifier: Apache-2.0 */
/* Hiding of secrets in texts for people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/text/hide.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void secret_names_ignore_case_and_what_a_dot_ends(void **state)
{
	static const char *const secrets[] = { "token",           "Token",           "say.token",
					       "PASSWORD",        "lease.password",  "secret",
					       "secretAccessKey", ".secretAccessKey" };
	static const char *const others[] = { "",       "tokens",        "token.file", "oken",
					      "token.", "token.publish", "key" };

	(void)state;
	for (size_t i = 0; i < COUNT(secrets); i++)
		assert_true(spokei_hide_is_secret(
			(struct spoke_span){ secrets[i], strlen(secrets[i]) }));
	for (size_t i = 0; i < COUNT(others); i++)
		assert_false(
			spokei_hide_is_secret((struct spoke_span){ others[i], strlen(others[i]) }));
}

static void secrets_of_texts_become_asterisks(void **state)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "token=", "token=" },
		{ "token=a", "token=*" },
		{ "dubbo://h?token=abcd", "dubbo://h?token=***" },
		{ "dubbo://h?a=1&token=abcd&b=2: wrong", "dubbo://h?a=1&token=***&b=2: wrong" },
		{ "x?Say.Token=abcd, y?password=abcd", "x?Say.Token=***, y?password=***" },
		{ "h?%74oken=abcd b", "h?%74oken=*** b" },
		{ "\"h#token=abcd\"; write", "\"h#token=***\"; write" },
		{ "entry 1, token:abcd: unknown", "entry 1, token:***: unknown" },
		{ "h?tokens=abcd&token.file=/a", "h?tokens=abcd&token.file=/a" },
		{ "my.token: 1 to 256", "my.token: 1 to 256" },
		{ "redis://me:pass@h:1, z://:pass@h, z://:pass@h",
		  "redis://***@h:1, z://***@h, z://***@h" },
		{ "on me:p@s@h", "on ***@h" },
		{ "a://me@h unix:@name b@c", "a://me@h unix:@name b@c" },
		{ "a://h/x?y@z:1", "a://h/x?y@z:1" },
	};
	char text[128];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		(void)snprintf(text, sizeof(text), "%s", cases[i][0]);
		spokei_hide_secrets(text);
		assert_string_equal(text, cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secret_names_ignore_case_and_what_a_dot_ends),
		cmocka_unit_test(secrets_of_texts_become_asterisks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
