/* SPDX-License-Identifier: Apache-2.0 */
/* The connector: name resolution, and rounds of attempts over all addresses of a name. */
#include "tests/support/test.h"
#include "tests/transport/connect/connectrig.h"
#include "transport/connect/place.h"

#include <spoke/stats.h>

#include <errno.h>
#include <string.h>

FIXTURE(connectrig_set_up, connectrig_tear_down);

TEST(a_name_is_resolved_and_its_addresses_tried_without_a_pause, .bare = true)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct connectrig rig;
		unsigned attempts = 0;
		uint64_t start_ns;

		connectrig_open(&rig, seed);
		spokei_vnet_name(rig.world.net, "demo.test", "10.0.0.1 10.0.0.2 10.0.0.3");
		(void)connectrig_listen(&rig, "10.0.0.2:20880");
		rig.options.host = "demo.test";
		start_ns = rig.world.now_ns;
		assert_int_equal(connectrig_start(&rig), SPOKE_OK);
		assert_int_equal(spokei_connector_state(rig.connector), SPOKEI_CONNECTOR_RESOLVING);
		assert_non_null(spokei_connector_conn(rig.connector));
		assert_string_equal(connectrig_wait(&rig, SPOKEI_CONNECTOR_OPEN)->peer,
				    "10.0.0.2:20880");
		assert_int_equal(rig.world.now_ns, start_ns);
		for (unsigned i = 0; i + 1 < rig.told_count; i++) {
			attempts++;
			assert_int_equal(rig.told[i].state, SPOKEI_CONNECTOR_CONNECTING);
			assert_int_equal(rig.told[i].error, SPOKE_OK);
			assert_true(i == 0 || strcmp(rig.told[i].peer, rig.told[i - 1].peer) != 0);
		}
		assert_in_range(attempts, 1, 3);
		assert_int_equal(connectrig_stat(&rig, SPOKE_STAT_CONNECTS), attempts);
		assert_int_equal(connectrig_stat(&rig, SPOKE_STAT_CONNECTS_FAILED), attempts - 1);
		assert_int_equal(
			connectrig_events(&rig, SPOKE_OK,
					  "connected to demo.test:20880 at 10.0.0.2:20880"),
			1);
		connectrig_close(&rig);
	}
}

TEST(first_address_is_chosen_at_random, .bare = true)
{
	unsigned first[4] = { 0 };

	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct connectrig rig;

		connectrig_open(&rig, seed);
		spokei_vnet_name(rig.world.net, "demo.test", "10.0.0.1 10.0.0.2 10.0.0.3");
		rig.options.host = "demo.test";
		assert_int_equal(connectrig_start(&rig), SPOKE_OK);
		first[connectrig_wait(&rig, SPOKEI_CONNECTOR_CONNECTING)->peer[7] - '0']++;
		connectrig_close(&rig);
	}
	for (unsigned i = 1; i <= 3; i++)
		assert_in_range(first[i], 8, 40);
}

CONNECT_TEST(a_round_tries_each_address_once_and_then_waits)
{
	spokei_vnet_name(rig->world.net, "demo.test", "10.0.0.1 10.0.0.2 ::3");
	rig->options.host = "demo.test";
	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	for (unsigned i = 0; i < 6; i++) {
		/* RESOLVING is reported from the second round on; the first resolution ends too
		 * early. */
		const struct told *round = &rig->told[(size_t)5 * i];
		const struct told *waiting = connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING);

		assert_int_equal(rig->told_count, 5 * i + 4);
		assert_string_not_equal(round[0].peer, round[1].peer);
		assert_string_not_equal(round[1].peer, round[2].peer);
		assert_string_not_equal(round[2].peer, round[0].peer);
		connectrig_assert_pause(connectrig_wait(rig, SPOKEI_CONNECTOR_RESOLVING)->at_ns -
						waiting->at_ns,
					i);
	}
}

CONNECT_TEST(each_round_resolves_the_name_again)
{
	int listener;
	int fd;

	spokei_vnet_name(rig->world.net, "demo.test", "10.0.0.1");
	rig->options.host = "demo.test";
	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING);
	spokei_vnet_name(rig->world.net, "demo.test", "10.0.0.2");
	listener = connectrig_listen(rig, "10.0.0.2:20880");
	fd = connectrig_wait_open(rig, listener);
	connectrig_speak(rig, fd);
	connectrig_run(rig, SECOND);
	spokei_vnet_name(rig->world.net, "demo.test", "10.0.0.3");
	(void)connectrig_listen(rig, "10.0.0.3:20880");
	connectrig_hang_up(rig, fd);
	assert_string_equal(connectrig_wait(rig, SPOKEI_CONNECTOR_OPEN)->peer, "10.0.0.3:20880");
}

TEST(an_address_that_never_speaks_does_not_hide_the_others, .bare = true)
{
	unsigned mute_first = 0;

	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct connectrig rig;
		uint64_t start_ns;
		int mute;

		connectrig_open(&rig, seed);
		spokei_vnet_name(rig.world.net, "demo.test", "10.0.0.1 10.0.0.2");
		rig.options.host = "demo.test";
		mute = connectrig_listen(&rig, "10.0.0.1:20880");
		(void)connectrig_listen(&rig, "10.0.0.2:20880");
		start_ns = rig.world.now_ns;
		assert_int_equal(connectrig_start(&rig), SPOKE_OK);
		if (connectrig_wait(&rig, SPOKEI_CONNECTOR_OPEN)->peer[7] == '1') {
			mute_first++;
			connectrig_hang_up(&rig, connectrig_accept(&rig, mute));
			assert_string_equal(connectrig_wait(&rig, SPOKEI_CONNECTOR_OPEN)->peer,
					    "10.0.0.2:20880");
		}
		assert_int_equal(rig.world.now_ns, start_ns); /* without a delay */
		connectrig_close(&rig);
	}
	assert_in_range(mute_first, 1, 9);
}

CONNECT_TEST(a_silent_address_costs_its_time_only)
{
	uint64_t start_ns = rig->world.now_ns;

	spokei_vnet_name(rig->world.net, "demo.test", "10.0.0.1 10.0.0.2 10.0.0.3");
	spokei_vnet_route(rig->world.net, "10.0.0.1:20880", SPOKEI_VNET_SILENT);
	spokei_vnet_route(rig->world.net, "10.0.0.2:20880", SPOKEI_VNET_SILENT);
	(void)connectrig_listen(rig, "10.0.0.3:20880");
	rig->options.host = "demo.test";
	rig->options.connect_ns = 300 * MS;
	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_OPEN);
	assert_true(rig->world.now_ns - start_ns <= 2 * (300 * MS + CONNECTRIG_TICK));
}

CONNECT_TEST(unknown_name_is_resolved_again)
{
	const struct told *waiting;

	rig->options.host = "demo.test";
	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	for (unsigned i = 0; i < 4; i++) {
		waiting = connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING);
		assert_int_equal(waiting->error, SPOKE_ERESOLVE);
		connectrig_assert_pause(connectrig_wait(rig, SPOKEI_CONNECTOR_RESOLVING)->at_ns -
						waiting->at_ns,
					i);
	}
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_RESOLVES_FAILED), 4);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_CONNECTS), 0);
	assert_int_equal(
		connectrig_events(rig, SPOKE_ERESOLVE,
				  "cannot connect to demo.test:20880: there is no such host name"),
		1);
	spokei_vnet_name(rig->world.net, "demo.test", "10.0.0.1");
	(void)connectrig_listen(rig, "10.0.0.1:20880");
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_OPEN);
}

/* A label has up to 63 bytes. */
CONNECT_TEST(long_name_keeps_domain_and_port_in_events)
{
	static const char host[] =
		"first.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		".bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.demo.test";

	rig->options.host = host;
	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING);
	assert_int_equal(connectrig_events(rig, SPOKE_ERESOLVE,
					   "bb.demo.test:20880: there is no such host name"),
			 1);
	assert_int_equal(connectrig_events(rig, SPOKE_ERESOLVE, "first"), 0);
	assert_non_null(strstr(spokei_connector_reason(rig->connector), "demo.test:20880: there"));
}

static int pool_is_full(void *loop, struct spoke_work *work)
{
	(void)loop;
	(void)work;
	return -EAGAIN;
}

CONNECT_TEST(a_full_pool_is_a_failed_round)
{
	int (*offload)(void *loop, struct spoke_work *work) = rig->faulty.loop.offload;

	spokei_vnet_name(rig->world.net, "demo.test", "10.0.0.1");
	(void)connectrig_listen(rig, "10.0.0.1:20880");
	rig->options.host = "demo.test";
	rig->faulty.loop.offload = pool_is_full;
	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	assert_int_equal(connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING)->error, SPOKE_ERESOLVE);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_RESOLVES_FAILED), 1);
	assert_int_equal(connectrig_events(rig, SPOKE_ERESOLVE, "the name cannot be resolved now"),
			 1);
	rig->faulty.loop.offload = offload;
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_OPEN);
}

CONNECT_TEST(options_out_of_range_are_refused)
{
	const struct spokei_connector_options good = rig->options;
	char long_name[SPOKEI_PLACE_HOST_MAX + 2];

	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	rig->options.host = NULL;
	assert_int_equal(connectrig_start(rig), SPOKE_EINVAL);
	rig->options.host = "";
	assert_int_equal(connectrig_start(rig), SPOKE_EINVAL);
	rig->options.host = long_name;
	assert_int_equal(connectrig_start(rig), SPOKE_ETOOLARGE);
	rig->options.host = NULL;
	rig->options.path = long_name;
	assert_int_equal(connectrig_start(rig), SPOKE_ETOOLARGE);
	rig->options.path = long_name + 100; /* too long for a socket's address */
	assert_int_equal(connectrig_start(rig), SPOKE_ETOOLARGE);
	rig->options.path = "";
	assert_int_equal(connectrig_start(rig), SPOKE_EINVAL);
	rig->options = good;
	rig->options.connect_ns = SPOKEI_CONNECTOR_WAIT_MAX_NS + 1;
	assert_int_equal(connectrig_start(rig), SPOKE_EINVAL);
	rig->options = good;
	rig->options.backoff.first_ns = UINT64_MAX;
	assert_int_equal(connectrig_start(rig), SPOKE_EINVAL);
	rig->options = good;
	rig->options.backoff.cap_ns = UINT64_MAX;
	assert_int_equal(connectrig_start(rig), SPOKE_EINVAL);
	assert_int_equal(connectrig_timers(rig), 0);
}

CONNECT_TEST(digits_of_ipv6_may_have_brackets_or_not)
{
	static const char *const hosts[] = { "::1", "[::1]" };

	(void)connectrig_listen(rig, "[::1]:20880");
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		rig->options.host = hosts[i];
		assert_int_equal(connectrig_start(rig), SPOKE_OK);
		assert_string_equal(spokei_connector_name(rig->connector), "[::1]:20880");
		(void)connectrig_wait(rig, SPOKEI_CONNECTOR_OPEN);
		connectrig_free(rig);
	}
}

/* Digits with dots that are no IPv4 address are no name either. */
TEST(host_that_is_a_wrong_address_is_refused, .bare = true)
{
	static const char *const hosts[] = { "999.1.1.1", "1.2.3", "1.2.3.4.", "127.1", "20880" };

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		struct connectrig rig;

		connectrig_open(&rig, i + 1);
		rig.options.host = hosts[i];
		assert_int_equal(connectrig_start(&rig), SPOKE_EINVAL);
		connectrig_close(&rig);
	}
}
