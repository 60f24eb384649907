/* SPDX-License-Identifier: Apache-2.0 */
/* Providers with TLS to which more peers come than have a place. */
#include "tests/cluster/scenarios/secplay.h"
#include "tests/support/test.h"

#include "core/virtual/files.h"

#include <spoke/config.h>

#define LOCAL "unix:/run/secure"

enum {
	CROWD = 300, /* more than have a place at a time */
	STEPS_OF_A_TURN = 8,
};

FIXTURE(secplay_set_up, secplay_tear_down);

TEST(good_peer_is_served_when_stalled_handshakes_end)
{
	unsigned char hello[4096];
	size_t len = secplay_make_hello(hello, sizeof(hello));
	int fds[4];

	secplay.secure.provider.handshakes_max = 4;
	secplay_provide_tls(LOCAL); /* its peers have no address that counts */
	for (unsigned i = 0; i < 4; i++) {
		fds[i] = secplay_raw_connect(LOCAL);
		secplay_raw_send(fds[i], hello, len);
	}
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES), 4);
	secplay_consume("msgpack-rpc+" LOCAL "?interface=demo.Echo", &secplay.secure.consumer);
	secplay_call(20 * SECOND);
	secplay_pass(4 * SECOND);
	assert_int_equal(secplay.ended, 0);
	secplay_pass(2 * SECOND);
	assert_int_equal(secplay.ended, 1);
	assert_int_equal(secplay.error, SPOKE_OK);
	for (unsigned i = 0; i < 4; i++)
		secplay_raw_close(fds[i]);
}

TEST(address_with_too_many_handshakes_loses_the_next_ones)
{
	unsigned char hello[4096];
	size_t len = secplay_make_hello(hello, sizeof(hello));
	int fds[3];

	secplay.secure.provider.handshakes_per_peer_max = 2;
	secplay_provide_tls("dubbo://" AT);
	for (unsigned i = 0; i < 3; i++) {
		fds[i] = secplay_raw_connect(AT);
		secplay_raw_send(fds[i], hello, len);
		secplay_pass(MS);
		assert_int_equal(secplay_is_closed(fds[i]), i == 2);
	}
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_SHED), 1);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES), 2);
	secplay_raw_close(fds[0]);
	secplay_pass(MS);
	secplay_raw_close(fds[2]);
	fds[2] = secplay_raw_connect(AT);
	secplay_raw_send(fds[2], hello, len);
	assert_false(secplay_is_closed(fds[2]));
	secplay_raw_close(fds[1]);
	secplay_raw_close(fds[2]);
}

/* A host can have each address of its network. */
TEST(network_of_ipv6_has_the_handshakes_of_one_address)
{
	static const char *const from[] = { "[2001:db8::1]:0", "[2001:db8::2]:0", "[2001:db8::3]:0",
					    "[2001:db8:0:1::1]:0" };
	unsigned char hello[4096];
	size_t len = secplay_make_hello(hello, sizeof(hello));
	int fds[4];

	secplay.secure.provider.handshakes_per_peer_max = 2;
	secplay_provide_tls("dubbo://" AT);
	for (unsigned i = 0; i < 4; i++) {
		secplay.processes[STRANGER].user.from = from[i];
		fds[i] = secplay_raw_connect(AT);
		secplay_raw_send(fds[i], hello, len);
		secplay_pass(MS);
		assert_int_equal(secplay_is_closed(fds[i]), i == 2);
	}
	for (unsigned i = 0; i < 4; i++)
		secplay_raw_close(fds[i]);
}

TEST(handshakes_that_wait_count_for_their_address)
{
	unsigned char hello[4096];
	size_t len = secplay_make_hello(hello, sizeof(hello));
	int fds[4];

	secplay.secure.provider.handshakes_max = 1;
	secplay.secure.provider.handshakes_per_peer_max = 2;
	secplay_provide_tls("dubbo://" AT);
	for (unsigned i = 0; i < 3; i++) {
		fds[i] = secplay_raw_connect(AT);
		secplay_raw_send(fds[i], hello, len);
		assert_int_equal(secplay_is_closed(fds[i]), i == 2);
	}
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES), 1);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_SHED), 1);
	secplay_raw_close(fds[0]);
	secplay_pass(MS);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES), 2);
	fds[3] = secplay_raw_connect(AT);
	secplay_raw_send(fds[3], hello, len);
	assert_false(secplay_is_closed(fds[3]));
	for (unsigned i = 1; i < 4; i++)
		secplay_raw_close(fds[i]);
}

TEST(free_place_is_for_the_peer_that_has_waited_longest)
{
	enum {
		PEERS = 6,
	};
	unsigned char hello[4096];
	size_t len = secplay_make_hello(hello, sizeof(hello));
	int fds[PEERS];

	secplay.secure.provider.handshakes_max = 1;
	secplay_provide_tls("dubbo://" AT);
	for (unsigned i = 0; i < PEERS; i++) {
		fds[i] = secplay_raw_connect(AT);
		secplay_raw_send(fds[i], hello, len);
	}
	for (unsigned i = 0; i < PEERS; i++) {
		unsigned char byte;
		bool ended;

		assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES), i + 1);
		assert_int_equal(secplay_raw_read(fds[i], &byte, 1, &ended), 1);
		secplay_raw_close(fds[i]);
		secplay_pass(10 * MS);
	}
}

static void reload_config(struct spoke_config *config, const char *text)
{
	spokei_vfiles_put(secplay.world.files, "a.conf", text);
	assert_int_equal(spoke_config_reload(config, NULL, NULL), 0);
	secplay_pass(MS);
}

TEST(limits_of_handshakes_change_with_the_file)
{
	enum {
		PEERS = 10,
	};
	struct spoke_provider_options options = { .tls = &secplay.secure.provider };
	unsigned char hello[4096];
	size_t len = secplay_make_hello(hello, sizeof(hello));
	int fds[PEERS];

	spokei_vfiles_put(secplay.world.files, "a.conf", "[provider]\nhandshakes.max = 2\n");
	assert_int_equal(spoke_config_load(&secplay.processes[SERVER].env, "a.conf", NULL, NULL,
					   &options.config),
			 0);
	secplay_provide("dubbo://" AT, &options);
	for (unsigned i = 0; i < PEERS - 1; i++) {
		fds[i] = secplay_raw_connect(AT);
		secplay_raw_send(fds[i], hello, len);
	}
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES), 2);
	reload_config(options.config, "[provider]\nhandshakes.max = 5\n");
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES), 5);
	/* Those under way stay, and none begins before they are fewer. */
	reload_config(options.config,
		      "[provider]\nhandshakes.max = 4\nhandshakes.per.peer.max = 9\n");
	secplay_raw_close(fds[0]);
	secplay_pass(MS);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES), 5);
	fds[PEERS - 1] = secplay_raw_connect(AT);
	secplay_raw_send(fds[PEERS - 1], hello, len);
	assert_false(secplay_is_closed(fds[PEERS - 1]));
	fds[0] = secplay_raw_connect(AT);
	secplay_raw_send(fds[0], hello, len);
	assert_true(secplay_is_closed(fds[0]));
	/* Two begin at once, and two each second. */
	reload_config(options.config, "[provider]\nhandshakes.tps = 2\n");
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES), 7);
	reload_config(options.config, "[provider]\n");
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES), PEERS);
	for (unsigned i = 0; i < PEERS; i++)
		secplay_raw_close(fds[i]);
	spoke_config_free(options.config);
}

TEST(handshakes_begin_at_their_rate_and_in_their_order)
{
	enum {
		PEERS = 7,
		RATE = 2,
	};
	unsigned char hello[4096];
	size_t len = secplay_make_hello(hello, sizeof(hello));
	int fds[PEERS];

	secplay.secure.provider.handshakes_per_second = RATE;
	secplay_provide_tls("dubbo://" AT);
	for (unsigned i = 0; i < PEERS; i++) {
		fds[i] = secplay_raw_connect(AT);
		secplay_raw_send(fds[i], hello, len);
	}
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES), RATE);
	for (unsigned begun = RATE + 1; begun <= PEERS; begun++) {
		unsigned char byte;
		bool ended;

		secplay_pass(SECOND / RATE);
		assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES), begun);
		assert_int_equal(secplay_raw_read(fds[begun - 1], &byte, 1, &ended), 1);
	}
	for (unsigned i = 0; i < PEERS; i++)
		secplay_raw_close(fds[i]);
}

/* The server takes two steps of each handshake: one begins it, and the other ends it. */
static void note_turn(struct spokei_world_process *process)
{
	const uint64_t counts[] = { secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES),
				    secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_DONE) };

	(void)process;
	for (unsigned i = 0; i < 2; i++) {
		if (counts[i] - secplay.seen[i] > secplay.most)
			secplay.most = counts[i] - secplay.seen[i];
		secplay.seen[i] = counts[i];
	}
}

/* All come at once, and a link that lives misses no heartbeat meanwhile. */
TEST(crowd_is_let_in_a_few_steps_a_turn)
{
	static struct spoke_consumer *crowd[CROWD];
	struct spoke_consumer *live;
	const struct spoke_consumer_options options = { .url = "dubbo://" AT "/demo.Echo",
							.tls = &secplay.secure.consumer };

	secplay.secure.provider.handshakes_per_peer_max = CROWD;
	secplay_provide_tls("dubbo://" AT);
	assert_int_equal(spoke_consumer_new(secplay.engines[CLIENT],
					    &(struct spoke_consumer_options){
						    .url = "dubbo://" AT "/demo.Echo?heartbeat=1s",
						    .tls = &secplay.secure.consumer },
					    &live),
			 0);
	secplay_pass(SECOND);
	assert_int_equal(spoke_consumer_ready(live), 1);
	secplay.seen[0] = secplay.seen[1] = 1;
	secplay.processes[SERVER].turned = note_turn;
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(spoke_consumer_new(secplay.engines[CLIENT], &options, &crowd[i]),
				 0);
	secplay_pass(5 * SECOND);
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(spoke_consumer_ready(crowd[i]), 1);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_DONE), CROWD + 1);
	assert_int_equal(secplay.most, STEPS_OF_A_TURN);
	assert_int_equal(secplay_stat_of(CLIENT, SPOKE_STAT_PROBES_MISSED), 0);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_PROBES_MISSED), 0);
	secplay.processes[SERVER].turned = NULL;
}

/* Other programs take the CPU of the thread that takes the steps. */
TEST(loop_helps_a_thread_that_is_late)
{
	enum {
		PEERS = 20,
	};
	struct spoke_consumer *peers[PEERS];
	const struct spoke_consumer_options options = { .url = "dubbo://" AT "/demo.Echo",
							.tls = &secplay.secure.consumer };

	secplay_provide_tls("dubbo://" AT);
	secplay.processes[SERVER].background_waits = true;
	for (unsigned i = 0; i < PEERS; i++)
		assert_int_equal(spoke_consumer_new(secplay.engines[CLIENT], &options, &peers[i]),
				 0);
	secplay_pass(99 * MS);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES), STEPS_OF_A_TURN);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_DONE), 0);
	secplay_pass(SECOND);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_DONE),
			 PEERS - STEPS_OF_A_TURN);
	secplay.processes[SERVER].background_waits = false;
	secplay.processes[SERVER].env.loop->wake(secplay.engines[SERVER]->loop);
	secplay_pass(SECOND);
	for (unsigned i = 0; i < PEERS; i++)
		assert_int_equal(spoke_consumer_ready(peers[i]), 1);
}
