/* SPDX-License-Identifier: Apache-2.0 */
/* Clients behind a proxy: they count under their own addresses. */
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static void assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%.400s\" does not have \"%s\"", text, part);
}

static int open_from(const char *forwarded)
{
	char text[512];
	int fd = cometrig_connect();

	(void)snprintf(text, sizeof(text),
		       "GET /spoke/events?user=ann HTTP/1.1\r\n" COMETRIG_HOST "%s\r\n", forwarded);
	cometrig_send(fd, text);
	return fd;
}

FIXTURE(NULL, cometrig_tear_down);

TEST(client_behind_a_proxy_counts_under_its_address)
{
	struct spoke_comet_options options = cometrig_begin();
	bool ended;
	int fd;

	options.proxies = "10.1.1.1,127.0.0.1";
	options.connections_per_peer_max = 2;
	cometrig_make(&options);
	fd = open_from("X-Forwarded-For: 6.6.6.6, 1.2.3.4\r\n");
	assert_has(cometrig_read(fd, NULL), "hello");
	for (int i = 0; i < 3; i++) {
		char field[64];

		(void)snprintf(field, sizeof(field), "X-Forwarded-For: 2001:db8::%d\r\n", i);
		assert_has(cometrig_read(open_from(field), NULL), i < 2 ? "hello" : "retry: ");
	}
	assert_has(cometrig_read(open_from("X-Forwarded-For: 2001:db8:0:1::1\r\n"), NULL), "hello");
	assert_has(cometrig_read(open_from("X-Forwarded-For: 9.9.9.9\r\n"
					   "X-Forwarded-For: 1.2.3.4:5678\r\n"),
				 NULL),
		   "hello");
	/* The third one of this address. */
	assert_has(cometrig_read(open_from("X-Forwarded-For: 1.2.3.4\r\n"), &ended),
		   "\r\n\r\nretry: ");
	assert_true(ended);
	cometrig_hang_up(fd);
	cometrig_run(3 * SECOND);
	assert_has(cometrig_read(open_from("X-Forwarded-For: 1.2.3.4\r\n"), NULL), "hello");
	assert_int_equal(cometrig.comet->quota.count, 5);
}

TEST(storm_from_one_address_does_not_keep_out_others)
{
	struct spoke_comet_options options = cometrig_begin();
	int opened = 0;

	options.proxies = "127.0.0.1";
	options.accept_rate = 40;
	cometrig_make(&options);
	cometrig_run(SECOND - cometrig.world.now_ns % SECOND);
	while (strstr(cometrig_read(open_from("X-Forwarded-For: 6.6.6.6\r\n"), NULL), "hello"))
		opened++;
	assert_in_range(opened, 40, 60);
	for (int i = 0; i < 2; i++)
		assert_has(cometrig_read(open_from("X-Forwarded-For: 1.2.3.4\r\n"), NULL), "hello");
	assert_has(cometrig_read(open_from("X-Forwarded-For: 1.2.3.4\r\n"), NULL),
		   "\r\n\r\nretry: ");
	/* The reserve has an end, too. */
	opened = 0;
	for (int i = 0; i < 40; i++) {
		char field[64];

		(void)snprintf(field, sizeof(field), "X-Forwarded-For: 1.2.4.%d\r\n", i);
		opened += strstr(cometrig_read(open_from(field), NULL), "hello") != NULL;
	}
	assert_in_range(opened, 18, 30);
}

/* A host can have each address of its network. */
TEST(storm_from_a_network_of_ipv6_does_not_take_the_reserve)
{
	struct spoke_comet_options options = cometrig_begin();
	int opened = 0;

	options.proxies = "127.0.0.1";
	options.accept_rate = 40;
	cometrig_make(&options);
	cometrig_run(SECOND - cometrig.world.now_ns % SECOND);
	for (int i = 0; i < 100; i++) {
		char field[64];

		(void)snprintf(field, sizeof(field), "X-Forwarded-For: 2001:db8::%x\r\n", i);
		opened += strstr(cometrig_read(open_from(field), NULL), "hello") != NULL;
	}
	assert_in_range(opened, 40, 60);
	assert_has(cometrig_read(open_from("X-Forwarded-For: 1.2.3.4\r\n"), NULL), "hello");
}

/* Prints the addresses of clients as a socket for both families has them. */
static void print_mapped(void *ctx, const struct spoke_address *address, char *text, size_t size)
{
	const struct spoke_env *env = &cometrig.server.env;
	char plain[64];

	(void)ctx;
	env->net->print(env->ctx, address, plain, sizeof(plain));
	if (strcmp(plain, COMETRIG_AT) != 0)
		(void)snprintf(text, size, "[::ffff:%.*s]%s", (int)strcspn(plain, ":"), plain,
			       strchr(plain, ':'));
	else
		(void)snprintf(text, size, "%s", plain);
}

TEST(proxy_with_a_mapped_address_is_listed_without_the_prefix)
{
	struct spoke_comet_options options = cometrig_begin();
	static struct spoke_net net;
	const struct spoke_net *own = cometrig.faulty.env.net;

	net = *own;
	net.print = print_mapped;
	cometrig.faulty.env.net = &net;
	options.proxies = "127.0.0.1";
	options.connections_per_peer_max = 1;
	cometrig_make(&options);
	assert_has(cometrig_read(open_from("X-Forwarded-For: 1.2.3.4\r\n"), NULL), "hello");
	assert_has(cometrig_read(open_from("X-Forwarded-For: 1.2.3.5\r\n"), NULL), "hello");
	assert_has(cometrig_read(open_from("X-Forwarded-For: 127.0.0.1\r\n"), NULL), "hello");
	cometrig.faulty.env.net = own;
}

TEST(forwarded_address_of_others_is_ignored)
{
	struct spoke_comet_options options = cometrig_begin();

	options.proxies = "10.1.1.1,127.0.0.11";
	options.connections_per_peer_max = 1;
	cometrig_make(&options);
	assert_has(cometrig_read(open_from("X-Forwarded-For: 1.2.3.4\r\n"), NULL), "hello");
	assert_string_equal(cometrig_read(cometrig_connect(), NULL), "");
	assert_int_equal(cometrig.comet->quota.count, 1);
}

TEST(wrong_forwarded_addresses_are_ignored)
{
	static const char *const wrong[] = { "X-Forwarded-For: \r\n", "X-Forwarded-For: x\r\n", "",
					     "X-Forwarded-For: unix:/run/x\r\n",
					     "X-Forwarded-For: 1.2.3.4,\r\n" };
	struct spoke_comet_options options = cometrig_begin();

	options.proxies = "127.0.0.1";
	options.authorize = cometrig_authorize;
	cometrig_make(&options);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int fd = open_from(wrong[i]);

		cometrig_run(MS);
		assert_true(spoke_comet_admit(cometrig.asked[i].entry, spoke_comet_text("ann")));
		assert_has(cometrig_read(fd, NULL), "hello");
		cometrig_hang_up(fd);
	}
	assert_int_equal(cometrig.comet->quota.count, 0);
}
