/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of peers and callers in config files: valid ones, and the messages about wrong entries. */
#include "tests/core/memory.h"
#include "tests/support/test.h"

#include <spoke/config.h>
#include <spoke/host.h>

#include <stdio.h>
#include <string.h>

static struct memory memory;
static char told[1024];

static void tell(void *arg, const char *sentence)
{
	(void)arg;
	(void)snprintf(told, sizeof(told), "%s", sentence);
}

static int read_text(const char *text, struct spoke_config **ret_config)
{
	memory_init(&memory);
	memory.env.net = spoke_host_env()->net;
	told[0] = '\0';
	return spoke_config_parse(&memory.env, "a.conf", (struct spoke_span){ text, strlen(text) },
				  tell, NULL, ret_config);
}

TEST(lists_of_peers_and_callers_are_read)
{
	static const char text[] =
		"[provider]\nlisten = unix:/a?mode=0660&deny.from=10.0.0.1%2C%3A%3A1\n"
		"allow.from = 10.0.0.0/8, ::1\ndeny.from = unix\n"
		"allow.users = 0, gid:5\nallow.callers = token, uid:0\n"
		"[service.demo.Echo]\nallow.callers = dns:*.pay.test\n";
	struct spoke_config *config;

	assert_int_equal(read_text(text, &config), SPOKE_OK);
	assert_string_equal(told, "");
	assert_string_equal(spoke_config_get(config, "provider", "allow.users"), "0, gid:5");
	spoke_config_free(config);
	assert_int_equal(memory.bytes, 0);
}

TEST(lists_may_be_written_as_their_presets)
{
	static const char text[] = "[provider]\nallow.from = all\ndeny.from = none\n"
				   "allow.users = all\nallow.callers = all\n"
				   "[service.demo.Echo]\nallow.callers = all\n";
	struct spoke_config *config;

	assert_int_equal(read_text(text, &config), SPOKE_OK);
	assert_string_equal(told, "");
	spoke_config_free(config);
	assert_int_equal(memory.bytes, 0);
}

TEST(wrong_entry_refuses_the_file_with_its_number)
{
	static const struct {
		const char *text;
		const char *sentence;
	} cases[] = {
		{ "[provider]\nlisten = unix:/a?mode=rw",
		  "a.conf:2: listen = unix:/a?mode=rw: mode must be three octal digits, e.g. "
		  "mode=0660" },
		{ "[provider]\nlisten = dubbo://1.2.3.4?mode=0660",
		  "a.conf:2: listen = dubbo://1.2.3.4?mode=0660: mode is for unix sockets with a "
		  "path" },
		{ "[provider]\nlisten = dubbo://1.2.3.4?allow.from=10.0.0.1/8",
		  "a.conf:2: listen = dubbo://1.2.3.4?allow.from=10.0.0.1/8: allow.from: entry 1, "
		  "10.0.0.1/8: the address has bits beyond its prefix; set them to 0" },
		{ "[provider]\nallow.from = 10.0.0.0/8, 10.0.0.256",
		  "a.conf:2: allow.from = 10.0.0.0/8, 10.0.0.256: entry 2, 10.0.0.256: not an "
		  "address "
		  "in digits, a range like 10.0.0.0/8, or unix" },
		{ "[provider]\ndeny.from = ::/129", "a.conf:2: deny.from = ::/129: entry 1, "
						    "::/129: the prefix must be a number from 0 "
						    "to 128" },
		{ "[provider]\nallow.users = root",
		  "a.conf:2: allow.users = root: entry 1, root: not a number of a user; write e.g. "
		  "1000 or gid:100" },
		{ "[service.demo.Echo]\nallow.callers = uid:0, me",
		  "a.conf:2: allow.callers = uid:0, me: entry 2, me: unknown; write dns:NAME, "
		  "uri:URI, ip:ADDRESS, uid:N, gid:N, addr:RANGE or token" },
		{ "[consumer]\ntls = optional",
		  "a.conf:2: tls = optional: a consumer never falls back to plain connections; use "
		  "on or off" },
		{ "[consumer]\ntoken = true", "a.conf:2: token = ***: it cannot be random here: "
					      "write it, or name its file" },
		{ "[consumer]\ntoken = token-one,token-two",
		  "a.conf:2: token = ***: only one token is possible here" },
		{ "[provider]\nhttp.origins = https://a.example, null",
		  "a.conf:2: http.origins = https://a.example, null: no page of one site has the "
		  "origin \"null\"; write e.g. https://shop.example or http://localhost:3000" },
		{ "[provider]\nhttp.hosts = a.example, b.example:80",
		  "a.conf:2: http.hosts = a.example, b.example:80: \"b.example:80\" is no host "
		  "without a port; write e.g. shop.example" },
		{ "[comet]\norigins = https://a.example/",
		  "a.conf:2: origins = https://a.example/: no page of one site has the "
		  "origin \"https://a.example/\"; write e.g. https://shop.example or "
		  "http://localhost:3000" },
		{ "[service.demo.Echo]\nallow.from = unix",
		  "a.conf:2: allow.from = unix: not allowed here; write allow.from in "
		  "[provider]" },
	};
	struct spoke_config *config = NULL;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(read_text(cases[i].text, &config), SPOKE_ESYNTAX);
		assert_null(config);
		assert_string_equal(told, cases[i].sentence);
		assert_int_equal(memory.bytes, 0);
	}
}
