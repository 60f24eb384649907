/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing and printing of URLs. The errors are in test_url_split.c. */
#include "tests/core/memory.h"
#include "tests/support/test.h"

#include <string.h>

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
