/* SPDX-License-Identifier: Apache-2.0 */
/* Hiding of secrets in texts for people. */
#include "core/text/hide.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Each case is a text, and the same one without its secrets. */
static void hide(const char *const (*cases)[2], size_t count)
{
	char text[128];

	for (size_t i = 0; i < count; i++) {
		(void)snprintf(text, sizeof(text), "%s", cases[i][0]);
		spokei_hide_secrets(text);
		assert_string_equal(text, cases[i][1]);
	}
}

TEST(secret_names_ignore_case_and_what_stands_before)
{
	static const char *const secrets[] = {
		"token",        "Token",           "say.token",
		"PASSWORD",     "lease.password",  "secret",
		"passwd",       "secretAccessKey", ".secretAccessKey",
		"access_token", "X-Signature",     "Proxy-Authorization",
	};
	static const char *const others[] = { "",       "tokens",        "token.file", "oken",
					      "token.", "token.publish", "key",        "accessKey",
					      "passw",  "secret.file",   "author" };

	for (size_t i = 0; i < COUNT(secrets); i++)
		assert_true(spokei_hide_is_secret(
			(struct spoke_span){ secrets[i], strlen(secrets[i]) }));
	for (size_t i = 0; i < COUNT(others); i++)
		assert_false(
			spokei_hide_is_secret((struct spoke_span){ others[i], strlen(others[i]) }));
}

TEST(unknown_name_may_be_secret_if_it_contains_one)
{
	assert_true(spokei_hide_may_be_secret("tokens"));
	assert_true(spokei_hide_may_be_secret("lease.Passphrase"));
	assert_true(spokei_hide_may_be_secret("secretkey"));
	assert_false(spokei_hide_may_be_secret("timeout"));
	assert_false(spokei_hide_may_be_secret("pas"));
	assert_false(spokei_hide_may_be_secret(""));
}

TEST(secrets_of_texts_become_asterisks)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "token=", "token=" },
		{ "token=a", "token=*" },
		{ "dubbo://h?token=abcd", "dubbo://h?token=***" },
		{ "dubbo://h?a=1&token=abcd&b=2: wrong", "dubbo://h?a=1&token=***&b=2: wrong" },
		{ "x?Say.Token=abcd, y?password=abcd", "x?Say.Token=***, y?password=***" },
		{ "x?access_token=abcd&passwd=abcd", "x?access_token=***&passwd=***" },
		{ "\"h#token=abcd\"; write", "\"h#token=***\"; write" },
		{ "entry 1, token:abcd: unknown", "entry 1, token:***: unknown" },
		{ "h?tokens=abcd&token.file=/a", "h?tokens=abcd&token.file=/a" },
		{ "my.token: 1 to 256", "my.token: 1 to 256" },
	};

	hide(cases, COUNT(cases));
}

TEST(commas_belong_to_secrets)
{
	static const char *const cases[][2] = {
		{ "listen = dubbo://1.2.3.4:20880?token=aaaa1111,bbbb2222",
		  "listen = dubbo://1.2.3.4:20880?token=***" },
		{ "h?token=aaaa,bbbb&c=d,e", "h?token=***&c=d,e" },
		{ "redis://u:pa,ss@h", "redis://***@h" },
		{ "token=aaaa,\tb", "token=***,\tb" },
	};

	hide(cases, COUNT(cases));
}

TEST(keys_are_decoded_before_they_count_as_secret)
{
	static const char *const cases[][2] = {
		{ "h?%74oken=abcd b", "h?%74oken=*** b" },
		{ "h?%74%6f%6B%65%6e=abcd", "h?%74%6f%6B%65%6e=***" },
		{ "h?%74oken:abcd", "h?%74oken:***" },
		{ "h?%zztoken=abcd&%7=b&%=c", "h?%zztoken=***&%7=b&%=c" },
		{ "my%20dir:8080 is in use", "my%20dir:8080 is in use" },
		{ "h?a%20b=c", "h?a%20b=c" },
		{ "%73%65%63%72%65%74%61%63%63%65%73%73%6b%65%79%73%65%63%72%65%74=abcd",
		  "%73%65%63%72%65%74%61%63%63%65%73%73%6b%65%79%73%65%63%72%65%74=***" },
	};

	hide(cases, COUNT(cases));
}

TEST(user_and_password_become_asterisks_after_slashes_only)
{
	static const char *const cases[][2] = {
		{ "redis://me:pass@h:1, z://:pass@h, z://:pass@h",
		  "redis://***@h:1, z://***@h, z://***@h" },
		{ "on z://me:p@s@h", "on z://***@h" },
		{ "dubbo:/me:pass@h", "dubbo:/***@h" },
		{ "//me:pass@h", "//***@h" },
		{ "a://me@h unix:@name b@c", "a://me@h unix:@name b@c" },
		{ "a://h/x?y@z:1", "a://h/x?y@z:1" },
		{ "demo.A:1.0@host is down", "demo.A:1.0@host is down" },
		{ "a:b@c://d", "a:b@c://d" },
	};

	hide(cases, COUNT(cases));
}
