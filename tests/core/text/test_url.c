/* SPDX-License-Identifier: Apache-2.0 */
/* URLs: parsing, printing, and the offset and sentence of each error; percent encoding. */
#include "tests/core/memory.h"
#include "tests/support/test.h"

#include <spoke/url.h>

#include <stdlib.h>
#include <string.h>

/* --- parsing and printing of URLs. The errors are in test_url_split.c */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void assert_text(const char *string, const char *expected)
{
	if (expected == NULL)
		assert_null(string);
	else
		assert_string_equal(string, expected);
}

TEST(parser_fills_fields_for_each_url_form)
{
	static const struct {
		const char *text;
		const char *scheme, *user, *password, *host, *path, *socket;
		int port;
		unsigned parameters;
	} cases[] = {
		{ "dubbo://127.0.0.1:20880/demo.EchoService?timeout=500ms", "dubbo", NULL, NULL,
		  "127.0.0.1", "demo.EchoService", NULL, 20880, 1 },
		{ "msgpack-rpc://u:p@[::1]:0", "msgpack-rpc", "u", "p", "::1", "", NULL, 0, 0 },
		{ "unix:/run/x.sock", "", NULL, NULL, NULL, "", "/run/x.sock", -1, 0 },
		{ "unix:///run/x.sock", "", NULL, NULL, NULL, "", "/run/x.sock", -1, 0 },
		{ "file:///run/spoke/providers", "file", NULL, NULL, "", "run/spoke/providers",
		  NULL, -1, 0 },
		{ "FILE:/a%20b?n=1", "file", NULL, NULL, "", "a b", NULL, -1, 1 },
		{ "file:////a", "file", NULL, NULL, "", "/a", NULL, -1, 0 },
		{ "file://h/a", "file", NULL, NULL, "h", "a", NULL, -1, 0 },
		{ "fd://7", "fd", NULL, NULL, "7", "", NULL, -1, 0 },
		{ "dubbo://1.2.3.4a", "dubbo", NULL, NULL, "1.2.3.4a", "", NULL, -1, 0 },
		{ "dubbo+unix:/run/x.sock?interface=a.B&n=2", "dubbo", NULL, NULL, NULL, "",
		  "/run/x.sock", -1, 2 },
		{ "Dubbo+UNIX:/Run/%41%20b", "dubbo", NULL, NULL, NULL, "", "/Run/A b", -1, 0 },
		{ "DUBBO://Host-1.Example_2", "dubbo", NULL, NULL, "host-1.example_2", "", NULL, -1,
		  0 },
		{ "dubbo://[FE80::1%25Eth0]:65535/", "dubbo", NULL, NULL, "fe80::1%Eth0", "", NULL,
		  65535, 0 },
		{ "dubbo://[::ffff:1.2.3.4]//x//", "dubbo", NULL, NULL, "::ffff:1.2.3.4", "/x//",
		  NULL, -1, 0 },
		{ "static://h:1,g:2?protocol=a", "static", NULL, NULL, "h", "", NULL, 1, 2 },
		{ "ZooKeeper://[::1],g/x", "zookeeper", NULL, NULL, "::1", "x", NULL, -1, 1 },
		{ "zookeeper://h?backup=a:2181,b:2181", "zookeeper", NULL, NULL, "h", "", NULL, -1,
		  1 },
		{ "a://u%3a%40@h:00080/%7e", "a", "u:@", NULL, "h", "~", NULL, 80, 0 },
		{ "a://:p:q@h", "a", "", "p:q", "h", "", NULL, -1, 0 },
		{ "a://@h", "a", "", NULL, "h", "", NULL, -1, 0 },
		{ "dubbo+unixes://h", "dubbo+unixes", NULL, NULL, "h", "", NULL, -1, 0 },
		{ "nix://h", "nix", NULL, NULL, "h", "", NULL, -1, 0 },
		{ "unix1://h", "unix1", NULL, NULL, "h", "", NULL, -1, 0 },
		{ "a.b-c+d9://h/p@q:r", "a.b-c+d9", NULL, NULL, "h", "p@q:r", NULL, -1, 0 },
	};
	struct memory memory;

	memory_init(&memory);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct spoke_url url;

		assert_int_equal(memory_parse_url(&memory, cases[i].text, strlen(cases[i].text),
						  &url, NULL),
				 SPOKE_OK);
		assert_text(url.scheme, cases[i].scheme);
		assert_text(url.user, cases[i].user);
		assert_text(url.password, cases[i].password);
		assert_text(url.host, cases[i].host);
		assert_text(url.path, cases[i].path);
		assert_text(url.socket, cases[i].socket);
		assert_int_equal(url.port, cases[i].port);
		assert_int_equal(url.parameter_count, cases[i].parameters);
		spoke_url_fini(&url);
		assert_int_equal(memory.bytes, 0);
	}
}

TEST(parameters_keep_their_order_and_are_found_by_key)
{
	static const char text[] = "dubbo://h?b=2&a=1&&flag&empty=&eq=x=y&plus=1+1&sp=return "
				   "null&url=a%26b%3Dc&utf=\xc3\xa9&%6b=k&q=?/:@&";
	static const char *const expected[][2] = {
		{ "b", "2" },
		{ "a", "1" },
		{ "flag", "" },
		{ "empty", "" },
		{ "eq", "x=y" },
		{ "plus", "1+1" },
		{ "sp", "return null" },
		{ "url", "a&b=c" },
		{ "utf", "\xc3\xa9" },
		{ "k", "k" },
		{ "q", "?/:@" },
	};
	struct memory memory;
	struct spoke_url url;

	memory_init(&memory);
	assert_int_equal(memory_parse_url(&memory, text, sizeof(text) - 1, &url, NULL), SPOKE_OK);
	assert_int_equal(url.parameter_count, COUNT(expected));
	for (size_t i = 0; i < COUNT(expected); i++) {
		assert_string_equal(url.parameters[i].key, expected[i][0]);
		assert_string_equal(url.parameters[i].value, expected[i][1]);
		assert_string_equal(spoke_url_get(&url, expected[i][0]), expected[i][1]);
	}
	assert_null(spoke_url_get(&url, "c"));
	assert_null(spoke_url_get(&url, "A"));
	assert_null(spoke_url_get(&url, ""));
	spoke_url_fini(&url);
	assert_null(spoke_url_get(&url, "a"));
}

TEST(parser_reports_misuse_and_enomem_without_leaks)
{
	struct memory memory;
	struct spoke_url url = { .port = 77 };
	struct spoke_url_error error;

	memory_init(&memory);
	assert_int_equal(spoke_url_parse(NULL, "a://h", 5, &url, &error), SPOKE_EINVAL);
	assert_int_equal(spoke_url_parse(&memory.env, NULL, 5, &url, NULL), SPOKE_EINVAL);
	assert_int_equal(memory.asked, 0);
	memory.fail_at = 1;
	assert_int_equal(memory_parse_url(&memory, "a://h", 5, &url, &error), SPOKE_ENOMEM);
	assert_string_equal(error.text, spoke_strerror(SPOKE_ENOMEM));
	assert_int_equal(url.port, 77);
	/* The parser allocates a single block. */
	assert_int_equal(memory_parse_url(&memory, "a://u:p@h/x?y=z&v=w", 19, &url, &error),
			 SPOKE_OK);
	assert_int_equal(memory.asked, 2);
	spoke_url_fini(&url);
	assert_int_equal(memory.bytes, 0);
	spoke_url_fini(&url);
	assert_int_equal(spoke_url_print(&url, SPOKE_URL_WHOLE, NULL, 0), 0);
}

TEST(printing_gives_canonical_form)
{
	static const char *const cases[][2] = {
		{ "DUBBO://LocalHost:020/demo.Echo?b=2&a=1&c",
		  "dubbo://localhost:20/demo.Echo?b=2&a=1&c=" },
		{ "unix:///run/a%20b", "unix:/run/a%20b" },
		{ "static://u@h:1,g:2,[::1]:3?a=b", "static://u@h:1?backup=g:2,%5B::1%5D:3&a=b" },
		{ "file:/run/a%20b", "file:///run/a%20b" },
		{ "file:/%2frun?a=b", "file:////run?a=b" },
		{ "Dubbo+Unix:/x?i=a.B", "dubbo+unix:/x?i=a.B" },
		{ "a://[FE80::A%25E0]:1/", "a://[fe80::a%25E0]:1" },
		{ "a://u%20%3a:%40%2f@h?", "a://u%20%3A:%40%2F@h" },
		{ "a://:@h/", "a://:@h" },
		{ "a://@h", "a://@h" },
		{ "a://h:0", "a://h:0" },
		{ "a://h/%3f%23%25/%61?k%3d=v%26%3d w", "a://h/%3F%23%25/a?k%3D=v%26=%20w" },
		{ "a://h?m=x,y;z:1*'!()$@", "a://h?m=x,y;z:1*'!()$@" },
		{ "a://h?\xe2\x82\xac={\"}|", "a://h?%E2%82%AC=%7B%22%7D%7C" },
		{ "a://h?k=%0a%7F", "a://h?k=%0A%7F" },
	};
	struct memory memory;

	memory_init(&memory);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct spoke_url url;
		char out[128];

		assert_int_equal(memory_parse_url(&memory, cases[i][0], strlen(cases[i][0]), &url,
						  NULL),
				 0);
		assert_int_equal(spoke_url_print(&url, SPOKE_URL_WHOLE, out, sizeof(out)),
				 strlen(cases[i][1]));
		assert_string_equal(out, cases[i][1]);
		spoke_url_fini(&url);
	}
}

TEST(printing_is_cut_to_size_and_returns_full_length)
{
	static const char text[] = "dubbo://user:pass@[::1]:80/a.B?k=%20v";
	struct memory memory;
	struct spoke_url url;

	memory_init(&memory);
	assert_int_equal(memory_parse_url(&memory, text, sizeof(text) - 1, &url, NULL), SPOKE_OK);
	for (size_t size = 0; size < sizeof(text) + 3; size++) {
		char out[sizeof(text) + 4];
		size_t kept = size < sizeof(text) ? size : sizeof(text);

		memset(out, '#', sizeof(out));
		assert_int_equal(spoke_url_print(&url, SPOKE_URL_WHOLE, out, size),
				 sizeof(text) - 1);
		assert_int_equal(out[kept], '#');
		if (size == 0)
			continue;
		assert_int_equal(out[kept - 1], '\0');
		assert_memory_equal(out, text, kept - 1);
	}
	spoke_url_fini(&url);
}

TEST(secrets_are_hidden_in_printed_url)
{
	static const char *const cases[][2] = {
		{ "a://me:secret@h/x", "a://me:***@h/x" },
		{ "a://:secret@h", "a://:***@h" },
		{ "a://me@h", "a://me@h" },
		{ "a://h/x?b=1&token=secret&c=2", "a://h/x?b=1&token=***&c=2" },
		{ "unix:/a?token=secret", "unix:/a?token=***" },
		{ "a://h?token", "a://h?token=***" },
		{ "a://h?password=a&c=2", "a://h?password=***&c=2" },
		{ "a://h?Token=a&say.token=b", "a://h?Token=***&say.token=***" },
		{ "a://h?secret=a&.secretAccessKey=b", "a://h?secret=***&.secretAccessKey=***" },
		{ "a://h?%74oken=a", "a://h?token=***" },
		{ "a://h?access_token=a&passwd=b", "a://h?access_token=***&passwd=***" },
		{ "a://h?token.file=/a", "a://h?token.file=/a" },
		{ "a://h?tokens=1&x=token", "a://h?tokens=1&x=token" },
		{ "a://h?token.file=/a", "a://h?token.file=/a" },
	};
	struct memory memory;

	memory_init(&memory);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct spoke_url url;
		char out[64];

		assert_int_equal(memory_parse_url(&memory, cases[i][0], strlen(cases[i][0]), &url,
						  NULL),
				 0);
		(void)spoke_url_print(&url, SPOKE_URL_DISPLAY, out, sizeof(out));
		assert_string_equal(out, cases[i][1]);
		spoke_url_fini(&url);
	}
}

/* --- invalid URLs: the offset and the sentence of each error */

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
	{ "dubbo://999.1.1.1:80", SPOKE_ESYNTAX, 8, "this is no IPv4 address" },
	{ "dubbo://u@1.2.3/x", SPOKE_ESYNTAX, 10, "this is no IPv4 address" },
	{ "dubbo://1.2.3.4.", SPOKE_ESYNTAX, 8, "this is no IPv4 address" },
	{ "dubbo://20880", SPOKE_ESYNTAX, 8, "this is no IPv4 address" },
	{ "dubbo://010.0.0.1", SPOKE_ESYNTAX, 8, "this is no IPv4 address" },
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
	{ "dubbo://[:]", SPOKE_ESYNTAX, 9, "an IPv6 address" },
	{ "dubbo://[a:b]", SPOKE_ESYNTAX, 9, "an IPv6 address" },
	{ "dubbo://[1:2:3]:1", SPOKE_ESYNTAX, 9, "an IPv6 address" },
	{ "dubbo://[1.2.3.4:]", SPOKE_ESYNTAX, 9, "an IPv6 address" },
	{ "dubbo://[1::2::3%25e]", SPOKE_ESYNTAX, 9, "an IPv6 address" },
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

/* --- percent encoding and decoding of URL components */

/* Expected output of URLEncoder.encode() of Java, which Dubbo uses for ZooKeeper node names. */
static const char *const components[][2] = {
	{ "dubbo://192.168.0.2:20880/demo.EchoService?anyhost=true&methods=say,echo&side=provider",
	  "dubbo%3A%2F%2F192.168.0.2%3A20880%2Fdemo.EchoService%3Fanyhost%3Dtrue%26methods%3D"
	  "say%2Cecho%26side%3Dprovider" },
	{ "consumer://10.0.0.1/a.B?mock=return null", "consumer%3A%2F%2F10.0.0.1%2Fa.B%3Fmock%3D"
						      "return+null" },
	{ "", "" },
	{ " ", "+" },
	{ "  a  ", "++a++" },
	{ "1+1", "1%2B1" },
	{ "a-b_c.d*e~f", "a-b_c.d*e%7Ef" },
	{ "%41", "%2541" },
	{ "\xe2\x82\xac\n", "%E2%82%AC%0A" },
};

TEST(component_is_encoded_as_java_does_and_decoded_again)
{
	for (size_t i = 0; i < COUNT(components); i++) {
		size_t len = strlen(components[i][0]);
		char encoded[512];
		char decoded[512];
		size_t encoded_len = spoke_url_encode(components[i][0], len, encoded,
						      sizeof(encoded));
		size_t decoded_len = 77;

		assert_string_equal(encoded, components[i][1]);
		assert_int_equal(encoded_len, strlen(encoded));
		assert_int_equal(spoke_url_decode(encoded, encoded_len, decoded, encoded_len + 1,
						  &decoded_len),
				 SPOKE_OK);
		assert_string_equal(decoded, components[i][0]);
		assert_int_equal(decoded_len, len);
		assert_int_equal(spoke_url_encode(components[i][0], len, NULL, 0), encoded_len);
	}
}

TEST(url_survives_encoding_as_node_name)
{
	static const char text[] = "dubbo://u:p@[::1]:80/a.B?k=%20%26%25+v&m=x,y";
	char encoded[256];
	char decoded[256];
	size_t len = spoke_url_encode(text, sizeof(text) - 1, encoded, sizeof(encoded));

	assert_null(strpbrk(encoded, "/:?&= "));
	assert_int_equal(spoke_url_decode(encoded, len, decoded, sizeof(decoded), NULL), SPOKE_OK);
	assert_string_equal(decoded, text);
}

TEST(component_that_is_not_encoded_is_rejected)
{
	static const struct {
		const char *text;
		size_t len;
	} cases[] = {
		{ "%", 1 },
		{ "a%2", 3 },
		{ "%2g", 3 },
		{ "%g2", 3 },
		{ "%2G", 3 },
		{ "%G2", 3 },
		{ "%%41", 4 },
		{ "%00", 3 },
		{ "a\0b", 3 },
		{ "a\nb", 3 },
		{ "a\x7f"
		  "b",
		  3 },
		{ "%-1", 3 },
		{ "%412%", 5 },
		{ "% 1", 3 },
	};
	char out[64];
	size_t len = 77;

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(spoke_url_decode(cases[i].text, cases[i].len, out, sizeof(out),
						  &len),
				 SPOKE_ESYNTAX);
	assert_int_equal(spoke_url_decode("abc", 3, out, 3, &len), SPOKE_ETOOLARGE);
	assert_int_equal(spoke_url_decode("", 0, out, 0, &len), SPOKE_ETOOLARGE);
	assert_int_equal(len, 77);
	assert_int_equal(spoke_url_decode("a%2fb%2F", 8, out, 9, &len), SPOKE_OK);
	assert_string_equal(out, "a/b/");
	assert_int_equal(len, 4);
}

TEST(encoding_is_cut_to_size_and_returns_full_length)
{
	static const char whole[] = "a+%2Fb%00";

	for (size_t size = 0; size < sizeof(whole) + 2; size++) {
		char out[sizeof(whole) + 3];
		size_t kept = size < sizeof(whole) ? size : sizeof(whole);

		memset(out, '#', sizeof(out));
		assert_int_equal(spoke_url_encode("a /b\0", 5, out, size), sizeof(whole) - 1);
		assert_int_equal(out[kept], '#');
		if (size > 0)
			assert_memory_equal(out, whole, kept - 1);
	}
}
