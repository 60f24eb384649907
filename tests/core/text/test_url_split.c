/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid URLs: the offset and the sentence of each error. */
#include "tests/core/memory.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	const char *text;
	int code;
	size_t at;
	const char *sentence; /* a part of the error text */
} wrong[] = {
	{ "", SPOKE_ESYNTAX, 0, "begins with a scheme" },
	{ "localhost", SPOKE_ESYNTAX, 0, "begins with a scheme" },
	{ "127.0.0.1:20880", SPOKE_ESYNTAX, 0, "begins with a scheme" },
	{ "://h", SPOKE_ESYNTAX, 0, "begins with a scheme" },
	{ "/run/x:y", SPOKE_ESYNTAX, 0, "begins with a scheme" },
	{ "+unix:/x", SPOKE_ESYNTAX, 0, "begins with a scheme" },
	{ "du bbo://h", SPOKE_ESYNTAX, 2, "a scheme is made of" },
	{ "localhost:20880", SPOKE_ESYNTAX, 10, "come // and a host" },
	{ "dubbo:", SPOKE_ESYNTAX, 6, "come // and a host" },
	{ "dubbo:/", SPOKE_ESYNTAX, 6, "come // and a host" },
	{ "dubbo:/h", SPOKE_ESYNTAX, 6, "come // and a host" },
	{ "dubbo:?//h", SPOKE_ESYNTAX, 6, "come // and a host" },
	{ "dubbo://", SPOKE_ESYNTAX, 8, "a host is missing" },
	{ "dubbo:///x", SPOKE_ESYNTAX, 8, "a host is missing" },
	{ "dubbo://:80", SPOKE_ESYNTAX, 8, "a host is missing" },
	{ "dubbo://u@:80", SPOKE_ESYNTAX, 10, "a host is missing" },
	{ "dubbo://a b", SPOKE_ESYNTAX, 9, "a host is made of" },
	{ "dubbo://a%20b", SPOKE_ESYNTAX, 9, "a host is made of" },
	{ "dubbo://a\xc3\xa9", SPOKE_ESYNTAX, 9, "a host is made of" },
	{ "dubbo://u@v@h", SPOKE_ESYNTAX, 11, "write %40" },
	{ "dubbo://h:", SPOKE_ESYNTAX, 10, "a port is missing" },
	{ "dubbo://h:/x", SPOKE_ESYNTAX, 10, "a port is missing" },
	{ "dubbo://h:8o", SPOKE_ESYNTAX, 11, "a port is a number" },
	{ "dubbo://h:-1", SPOKE_ESYNTAX, 10, "a port is a number" },
	{ "dubbo://h:65536", SPOKE_ERANGE, 10, "at most 65535" },
	{ "dubbo://h:99999999999999999999", SPOKE_ERANGE, 10, "at most 65535" },
	{ "dubbo://::1:80", SPOKE_ESYNTAX, 8, "a host is missing" },
	{ "dubbo://fe80::1", SPOKE_ESYNTAX, 13, "in brackets" },
	{ "dubbo://[::1", SPOKE_ESYNTAX, 8, "closing bracket" },
	{ "dubbo://[::1]80", SPOKE_ESYNTAX, 13, "behind the bracket" },
	{ "dubbo://[::1]:", SPOKE_ESYNTAX, 14, "a port is missing" },
	{ "dubbo://[]", SPOKE_ESYNTAX, 9, "an IPv6 address" },
	{ "dubbo://[1.2.3.4]", SPOKE_ESYNTAX, 9, "an IPv6 address" },
	{ "dubbo://[::g]", SPOKE_ESYNTAX, 11, "an IPv6 address" },
	{ "dubbo://[::1%eth0]", SPOKE_ESYNTAX, 12, "a zone follows" },
	{ "dubbo://[::1%25]", SPOKE_ESYNTAX, 12, "a zone follows" },
	{ "dubbo://[::1%25e/0]", SPOKE_ESYNTAX, 8, "closing bracket" },
	{ "dubbo://[::1%25e%00]", SPOKE_ESYNTAX, 16, "a zone is made of" },
	{ "dubbo://h/a b", SPOKE_ESYNTAX, 11, "a space is written %20" },
	{ "dubbo://h/a%2", SPOKE_ESYNTAX, 11, "a percent sign" },
	{ "dubbo://h/a%g0", SPOKE_ESYNTAX, 11, "a percent sign" },
	{ "dubbo://h/%", SPOKE_ESYNTAX, 10, "a percent sign" },
	{ "dubbo://h/%00", SPOKE_ESYNTAX, 10, "%00" },
	{ "dubbo://%zz@h", SPOKE_ESYNTAX, 8, "a percent sign" },
	{ "dubbo://u:%zz@h", SPOKE_ESYNTAX, 10, "a percent sign" },
	{ "dubbo://h?a%=1", SPOKE_ESYNTAX, 11, "a percent sign" },
	{ "dubbo://h?a=1%0", SPOKE_ESYNTAX, 13, "a percent sign" },
	{ "dubbo://h?a=%00", SPOKE_ESYNTAX, 12, "%00" },
	{ "dubbo://h?=1", SPOKE_ESYNTAX, 10, "a key is missing" },
	{ "dubbo://h?a=1&=", SPOKE_ESYNTAX, 14, "a key is missing" },
	{ "dubbo://h?a=1&b=2&a=1", SPOKE_ESYNTAX, 18, "parameter a is given twice" },
	{ "dubbo://h?a=1&%61", SPOKE_ESYNTAX, 14, "parameter a is given twice" },
	{ "dubbo://h?%0a&%0a", SPOKE_ESYNTAX, 14, "parameter \\x0a is given twice" },
	{ "static://h,g?backup=i", SPOKE_ESYNTAX, 13, "parameter backup is given twice" },
	{ "dubbo://h:1,g:2", SPOKE_ESYNTAX, 11, "a port is a number" },
	{ "dubbo://h/x#y", SPOKE_ESYNTAX, 11, "no fragment" },
	{ "dubbo://h/\n", SPOKE_ESYNTAX, 10, "a control byte" },
	{ "dubbo://h/\x7f", SPOKE_ESYNTAX, 10, "a control byte" },
	{ "file:///", SPOKE_ESYNTAX, 5, "file:///run/providers" },
	{ "file:/", SPOKE_ESYNTAX, 5, "file:///run/providers" },
	{ "file://?a=b", SPOKE_ESYNTAX, 5, "file:///run/providers" },
	{ "file:run/x", SPOKE_ESYNTAX, 5, "come // and a host" },
	{ "files:///x", SPOKE_ESYNTAX, 8, "a host is missing" },
	{ "unix:x.sock", SPOKE_ESYNTAX, 5, "unix:/run/echo.sock" },
	{ "unix:", SPOKE_ESYNTAX, 5, "unix:/run/echo.sock" },
	{ "unix:/", SPOKE_ESYNTAX, 5, "unix:/run/echo.sock" },
	{ "unix:///", SPOKE_ESYNTAX, 7, "unix:/run/echo.sock" },
	{ "unix://run/x", SPOKE_ESYNTAX, 5, "unix:/run/echo.sock" },
	{ "unix:/%2Frun/x", SPOKE_ESYNTAX, 5, "unix:/run/echo.sock" },
	{ "unix:/a b", SPOKE_ESYNTAX, 7, "a space is written %20" },
	{ "dubbo+unix:?a=b", SPOKE_ESYNTAX, 11, "unix:/run/echo.sock" },
};

TEST(parse_error_names_problem_and_offset)
{
	struct memory memory;

	memory_init(&memory);
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct spoke_url url = { .port = 77 };
		struct spoke_url_error error;

		assert_int_equal(memory_parse_url(&memory, wrong[i].text, strlen(wrong[i].text),
						  &url, &error),
				 wrong[i].code);
		assert_int_equal(error.at, wrong[i].at);
		assert_non_null(strstr(error.text, wrong[i].sentence));
		assert_int_equal(url.port, 77);
		assert_int_equal(memory.bytes, 0);
		assert_int_equal(memory_parse_url(&memory, wrong[i].text, strlen(wrong[i].text),
						  &url, NULL),
				 wrong[i].code);
	}
}

TEST(control_byte_is_rejected_at_any_offset)
{
	static const char good[] = "dubbo://u:p@host:80/path?key=value";
	struct memory memory;

	memory_init(&memory);
	for (size_t at = 0; at < sizeof(good) - 1; at++) {
		for (int byte = 0; byte < 0x21; byte++) {
			char text[sizeof(good)];
			struct spoke_url url;
			struct spoke_url_error error;

			memcpy(text, good, sizeof(good));
			text[at] = (char)(byte == 0x20 ? 0x7f : byte);
			assert_int_equal(memory_parse_url(&memory, text, sizeof(good) - 1, &url,
							  &error),
					 SPOKE_ESYNTAX);
			assert_int_equal(error.at, at);
		}
	}
}

TEST(error_sentence_cuts_long_duplicate_key)
{
	char text[2100] = "dubbo://h?";
	struct memory memory;
	struct spoke_url url;
	struct spoke_url_error error;

	memory_init(&memory);
	memset(text + 10, 'k', 2000);
	text[1000] = '&';
	text[1000 + 990 + 1] = '\0';
	assert_int_equal(memory_parse_url(&memory, text, strlen(text), &url, &error),
			 SPOKE_ESYNTAX);
	assert_int_equal(error.at, 1001);
	assert_true(strlen(error.text) < SPOKE_URL_ERROR_MAX);
	assert_non_null(strstr(error.text, "kkk... is given twice"));
}

/* Makes a URL of `len` bytes: "dubbo://h?" and a long value. */
static char *text_of(size_t len, char byte)
{
	static const char head[] = "dubbo://h?k=";
	char *text = malloc(len + 1);

	assert_non_null(text);
	memset(text, byte, len);
	memcpy(text, head, sizeof(head) - 1);
	text[len] = '\0';
	return text;
}

TEST(url_one_byte_above_limit_is_too_large)
{
	char *text = text_of(SPOKE_URL_MAX + 1, 'x');
	struct memory memory;
	struct spoke_url url;
	struct spoke_url_error error;

	memory_init(&memory);
	assert_int_equal(memory_parse_url(&memory, text, SPOKE_URL_MAX, &url, &error), SPOKE_OK);
	assert_int_equal(spoke_url_print(&url, SPOKE_URL_WHOLE, NULL, 0), SPOKE_URL_MAX);
	spoke_url_fini(&url);
	assert_int_equal(memory_parse_url(&memory, text, SPOKE_URL_MAX + 1, &url, &error),
			 SPOKE_ETOOLARGE);
	assert_int_equal(error.at, SPOKE_URL_MAX);
	assert_int_equal(spoke_url_parse(&memory.env, text, SIZE_MAX, &url, &error),
			 SPOKE_ETOOLARGE);
	assert_int_equal(memory.bytes, 0);
	free(text);
}

TEST(url_that_prints_beyond_limit_is_rejected)
{
	size_t fits = 12 + (SPOKE_URL_MAX - 12) / 3;
	char *text = text_of(fits + 1, ' ');
	struct memory memory;
	struct spoke_url url;
	struct spoke_url_error error;

	memory_init(&memory);
	assert_int_equal(memory_parse_url(&memory, text, fits, &url, &error), SPOKE_OK);
	spoke_url_fini(&url);
	assert_int_equal(memory_parse_url(&memory, text, fits + 1, &url, &error), SPOKE_ETOOLARGE);
	assert_int_equal(memory.bytes, 0);
	free(text);
}

TEST(hosts_and_parameters_have_limits)
{
	char text[4096] = "dubbo://";
	struct memory memory;
	struct spoke_url url;
	struct spoke_url_error error;
	size_t len;

	memory_init(&memory);
	memset(text + 8, 'h', SPOKE_URL_HOST_MAX + 1);
	assert_int_equal(memory_parse_url(&memory, text, 8 + SPOKE_URL_HOST_MAX, &url, &error),
			 SPOKE_OK);
	spoke_url_fini(&url);
	assert_int_equal(memory_parse_url(&memory, text, 9 + SPOKE_URL_HOST_MAX, &url, &error),
			 SPOKE_ETOOLARGE);
	assert_int_equal(error.at, 8);

	len = 9;
	text[len++] = '?';
	for (unsigned i = 0; i <= SPOKE_URL_PARAMETERS_MAX; i++) {
		if (i == SPOKE_URL_PARAMETERS_MAX) {
			assert_int_equal(memory_parse_url(&memory, text, len, &url, &error),
					 SPOKE_OK);
			assert_int_equal(url.parameter_count, SPOKE_URL_PARAMETERS_MAX);
			spoke_url_fini(&url);
		}
		text[len++] = (char)('a' + i / 26);
		text[len++] = (char)('a' + i % 26);
		text[len++] = '&';
	}
	assert_int_equal(memory_parse_url(&memory, text, len, &url, &error), SPOKE_ETOOLARGE);
	assert_int_equal(error.at, len - 3);
	assert_int_equal(memory.bytes, 0);
}
