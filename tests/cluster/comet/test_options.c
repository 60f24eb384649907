/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a gateway that the program gives. */
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static void assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%.400s\" does not have \"%s\"", text, part);
}

static void new_refuses(struct spoke_comet_options options, const char *why)
{
	struct spoke_comet *comet;

	assert_int_equal(spoke_comet_new(cometrig.engine, &options, &comet), SPOKE_EINVAL);
	assert_has(spoke_engine_why(cometrig.engine), why);
}

FIXTURE(NULL, cometrig_tear_down);

TEST(bad_options_are_explained)
{
	struct spoke_comet_options options = cometrig_begin();
	struct spoke_comet_options bad;
	static char long_origin[282];

	bad = options;
	bad.query_user = false;
	new_refuses(bad, "option authorize");
	bad = options;
	bad.listen = "shop.example:80";
	new_refuses(bad, "option listen");
	bad = options;
	bad.listen = "127.0.0.1:1,,127.0.0.1:2";
	new_refuses(bad, "option comet.listen");
	bad = options;
	bad.connections_per_user_max = 251;
	new_refuses(bad, "option comet.connections.per.user.max=251: not between");
	bad = options;
	bad.bytes_max = (UINT64_C(1) << 50) + 1;
	new_refuses(bad, "option comet.bytes.max=");
	bad = options;
	bad.life_ns = UINT64_MAX;
	new_refuses(bad, "option comet.life=");
	bad = options;
	bad.retry_min_ns = 16 * SECOND;
	new_refuses(bad, "option retry_min_ns");
	bad = options;
	bad.origins = "https://a https://b";
	new_refuses(bad, "option comet.origins: ");
	bad.origins = "https://a,\nhttps://b";
	new_refuses(bad, "option comet.origins: ");
	memset(long_origin, 'x', sizeof(long_origin) - 1);
	bad.origins = long_origin;
	new_refuses(bad, "option comet.origins: ");
	bad.origins = "https://a.example, null";
	new_refuses(bad, "option comet.origins: ");
	cometrig_make(&options);
}

TEST(blanks_around_the_commas_of_lists_are_ignored)
{
	struct spoke_comet_options options = cometrig_begin();
	char text[64];

	options.listen = " 127.0.0.1:8080 ,\t127.0.0.1:8081 ";
	options.origins = " https://a.example , https://b.example ,https://c.example ";
	options.hosts = "a.example , b.example";
	options.proxies = " 10.0.0.1 , 10.0.0.2 ";
	cometrig_make(&options);
	assert_int_equal(spoke_comet_address(cometrig.comet, 1, text, sizeof(text)), 14);
	assert_string_equal(text, "127.0.0.1:8081");
	assert_string_equal(cometrig.comet->with.proxies, "10.0.0.1,10.0.0.2");
	for (char name = 'a'; name <= 'c'; name++) {
		char request[256];

		(void)snprintf(request, sizeof(request),
			       "GET /spoke/poll?user=ann HTTP/1.1\r\nHost: %s.example\r\n"
			       "Origin: https://%c.example\r\n\r\n",
			       name == 'a' ? "a" : "b", name);
		(void)snprintf(text, sizeof(text),
			       "\r\nAccess-Control-Allow-Origin: https://%c.example\r\n", name);
		assert_has(cometrig_ask(request), text);
	}
}

TEST(gateway_listens_at_several_addresses)
{
	struct spoke_comet_options options = cometrig_begin();
	char text[64];

	options.listen = "127.0.0.1:8080,127.0.0.1:8081";
	cometrig_make(&options);
	assert_int_equal(spoke_comet_address(cometrig.comet, 1, text, sizeof(text)), 14);
	assert_string_equal(text, "127.0.0.1:8081");
	assert_int_equal(spoke_comet_address(cometrig.comet, 2, text, sizeof(text)), 0);
	assert_has(cometrig_ask("GET / HTTP/1.1\r\n" COMETRIG_HOST "\r\n"), "HTTP/1.1 404 ");
}
