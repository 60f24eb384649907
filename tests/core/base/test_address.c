/* SPDX-License-Identifier: Apache-2.0 */
/* Socket addresses as text: valid forms, invalid forms, and printing. */
#include "core/base/address.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	TEXT_SIZE = 200,
	PATH_LEN_MAX = 107, /* sun_path without its NUL */
};

TEST(each_address_kind_is_parsed_and_printed)
{
	static const struct {
		const char *text;
		const char *printed; /* NULL: same as the input */
	} cases[] = {
		{ "127.0.0.1:20880", NULL },
		{ "0.0.0.0:0", NULL },
		{ "255.255.255.255:65535", NULL },
		{ "[::1]:20880", NULL },
		{ "[::]:0", NULL },
		{ "[fe80::1%7]:1", NULL },
		{ "[fe80::1%lo]:1", "[fe80::1%1]:1" },
		{ "[2001:DB8:0:0:0:0:0:1]:65535", "[2001:db8::1]:65535" },
		{ "[::ffff:1.2.3.4]:9", NULL },
		{ "unix:/run/x", NULL },
		{ "unix:relative", NULL },
		{ "unix:@name", NULL },
		{ "unix:/with:colon and space", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spoke_address address;
		char text[TEXT_SIZE];

		assert_int_equal(spokei_address_parse(cases[i].text, &address), 0);
		assert_in_range(address.len, 1, sizeof(address.bytes));
		spokei_address_print(&address, text, sizeof(text));
		assert_string_equal(text, cases[i].printed ? cases[i].printed : cases[i].text);
	}
}

TEST(invalid_address_is_rejected_without_output)
{
	static const char *const none[] = {
		"",
		":",
		":1",
		"127.0.0.1",
		"127.0.0.1:",
		"127.0.0.1:x",
		"127.0.0.1:1x",
		"127.0.0.1:-1",
		"127.0.0.1:+1",
		"127.0.0.1: 1",
		"127.0.0.1:65536",
		"127.0.0.1:00",
		"127.0.0.1:080",
		"127.0.0.1:4294967297",
		"127.0.0.1:18446744073709551617",
		"127.1:1",
		"0x7f.0.0.1:1",
		"127.0.0.256:1",
		" 127.0.0.1:1",
		"1.2.3.4:5:6",
		"localhost:1",
		"::1:1",
		"[::1]",
		"[::1]:",
		"[::1:1",
		"[]:1",
		"[:::]:1",
		"[::1]1",
		"[127.0.0.1]:1",
		"[::1%]:1",
		"[::1%no such interface]:1",
		"[::1%4294967296]:1",
		"unix:",
		"unix:@",
		"unix",
		"UNIX:/x",
		"[1111111111111111111111111111111111111111111111111111111111111111111111111]:1",
	};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		struct spoke_address address = { .len = 77 };

		if (spokei_address_parse(none[i], &address) != -EINVAL)
			fail_msg("\"%s\" is taken for an address", none[i]);
		assert_int_equal(address.len, 77);
	}
}

TEST(unix_path_may_have_system_maximum)
{
	struct spoke_address address;
	char text[TEXT_SIZE] = "unix:";
	char back[TEXT_SIZE];

	for (int kind = 0; kind < 2; kind++) {
		memset(text + 5, 'x', PATH_LEN_MAX);
		text[5] = kind ? '@' : '/';
		text[5 + PATH_LEN_MAX] = '\0';
		assert_int_equal(spokei_address_parse(text, &address), 0);
		spokei_address_print(&address, back, sizeof(back));
		assert_string_equal(text, back);
		text[5 + PATH_LEN_MAX] = 'x';
		text[6 + PATH_LEN_MAX] = '\0';
		assert_int_equal(spokei_address_parse(text, &address), -ENAMETOOLONG);
	}
}

TEST(address_print_stays_within_size)
{
	struct spoke_address address = { 0 };
	char text[TEXT_SIZE];

	for (unsigned family = 0; family < 256; family++) {
		memset(address.bytes, 0xff, sizeof(address.bytes));
		address.bytes[0] = (unsigned char)family;
		address.bytes[1] = 0;
		for (address.len = 0; address.len <= sizeof(address.bytes); address.len++) {
			for (size_t size = 1; size < 20; size += 6) {
				memset(text, '#', sizeof(text));
				spokei_address_print(&address, text, size);
				assert_true(strlen(text) < size);
				assert_int_equal(text[size], '#');
			}
		}
	}
	address.len = 2;
	memset(address.bytes, 0, sizeof(address.bytes));
	spokei_address_print(&address, text, sizeof(text));
	assert_string_equal(text, "?");
}

TEST(long_unix_path_keeps_its_end)
{
	struct spoke_address address;
	char text[24];

	assert_int_equal(spokei_address_parse("unix:/run/shop/orders/a.sock", &address), 0);
	spokei_address_print(&address, text, 24);
	assert_string_equal(text, "unix:...p/orders/a.sock");
	spokei_address_print(&address, text, 10);
	assert_string_equal(text, "unix:...k");
	spokei_address_print(&address, text, 7);
	assert_string_equal(text, "unix:/");
}

TEST(only_unix_socket_is_renamed_when_memory_is_shared)
{
	static const char *const cases[][2] = {
		{ "unix:/run/x", "shm:/run/x" },
		{ "unix:@x", "shm:@x" },
		{ "unix:...p/a", "shm:...p/a" },
		{ "unix:", "shm:" },
		{ "shm:/run/x", "shm:/run/x" },
		{ "127.0.0.1:80", "127.0.0.1:80" },
		{ "unix", "unix" },
		{ "", "" },
	};
	char text[TEXT_SIZE];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)snprintf(text, sizeof(text), "%s", cases[i][0]);
		spokei_address_share(text);
		assert_string_equal(text, cases[i][1]);
	}
}
