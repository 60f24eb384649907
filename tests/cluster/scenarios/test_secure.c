/* SPDX-License-Identifier: Apache-2.0 */
/* Providers and consumers with TLS: who is closed when, crowds, and that nothing falls back to
 * plain bytes. */
#include "tests/cluster/scenarios/secplay.h"

#include <errno.h>
#include <string.h>

#define LOCAL "unix:/run/secure"

enum {
	CROWD = 300, /* more than have a place at a time */
	STEPS_OF_A_TURN = 8,
};

/* --- deadlines */

static void assert_closed_at(int fd, uint64_t begun_ns, uint64_t after_ns)
{
	spokei_world_run(&secplay.world, begun_ns + after_ns - 100 * MS);
	assert_false(secplay_is_closed(fd));
	spokei_world_run(&secplay.world, begun_ns + after_ns + 100 * MS);
	assert_true(secplay_is_closed(fd));
}

static void handshake_that_stalls_is_closed_after_its_time(void **state)
{
	unsigned char hello[4096];
	const size_t len = secplay_make_hello(hello, sizeof(hello));
	const size_t sent[] = { 0, 1, len - 1, len };

	(void)state;
	secplay_provide_tls("dubbo://" AT);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t begun_ns = secplay.world.now_ns;
		int fd = secplay_raw_connect(AT);

		if (sent[i] > 0)
			secplay_raw_send(fd, hello, sent[i]);
		assert_closed_at(fd, begun_ns, 5 * SECOND);
		assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_CLOSED_HANDSHAKE), i + 1);
		secplay_raw_close(fd);
	}
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES), 1);
	assert_non_null(strstr(secplay_told(SERVER), "it was not over in time"));
}

/* Byte by byte its time does not begin anew. */
static void handshake_that_drips_is_closed_after_the_same_time(void **state)
{
	unsigned char hello[4096];
	uint64_t begun_ns;
	int fd;

	(void)state;
	(void)secplay_make_hello(hello, sizeof(hello));
	secplay_provide_tls("dubbo://" AT);
	begun_ns = secplay.world.now_ns;
	fd = secplay_raw_connect(AT);
	for (unsigned i = 0; i < 48; i++) {
		secplay_raw_send(fd, hello + i, 1);
		secplay_pass(99 * MS);
	}
	assert_closed_at(fd, begun_ns, 5 * SECOND);
	secplay_raw_close(fd);
}

static void optional_listener_waits_for_the_first_byte_as_without_tls(void **state)
{
	uint64_t begun_ns;
	int fd;

	(void)state;
	secplay.secure.provider.optional = true;
	secplay_provide_tls("dubbo://" AT);
	fd = secplay_raw_connect(AT);
	secplay_pass(20 * SECOND);
	assert_false(secplay_is_closed(fd));
	begun_ns = secplay.world.now_ns;
	secplay_raw_send(fd, "\x16", 1);
	assert_closed_at(fd, begun_ns, 5 * SECOND);
	secplay_raw_close(fd);
}

static void silent_peer_costs_what_it_has_sent(void **state)
{
	unsigned char hello[4096];
	size_t bytes[2];
	size_t base;
	int fd;

	(void)state;
	(void)secplay_make_hello(hello, sizeof(hello));
	for (unsigned secures = 0; secures < 2; secures++) {
		const struct spoke_provider_options options = {
			.tls = secures ? &secplay.secure.provider : NULL
		};

		secplay_provide("dubbo://" AT, &options);
		fd = secplay_raw_connect(AT); /* the first of all brings memory for the next ones */
		secplay_pass(MS);
		secplay_raw_close(fd);
		secplay_pass(MS);
		base = secplay.faulty[SERVER].bytes;
		fd = secplay_raw_connect(AT);
		bytes[secures] = secplay.faulty[SERVER].bytes - base;
		if (secures) {
			secplay_raw_send(fd, hello, 1);
			assert_in_range(secplay.faulty[SERVER].bytes - base - bytes[1], 1, 1024);
			secplay_raw_send(fd, hello + 1, 99);
			assert_in_range(secplay.faulty[SERVER].bytes - base - bytes[1], 1, 1024);
		}
		secplay_raw_close(fd);
		spoke_provider_free(secplay.provider);
		secplay_pass(SECOND);
	}
	assert_int_equal(bytes[0], bytes[1]);
}

/* --- reasons */

static void reason_of_a_peer_outlasts_those_of_later_ones(void **state)
{
	enum {
		SUITES = 76, /* where their length stands in a ClientHello */
	};
	unsigned char hello[4096];
	size_t len = secplay_make_hello(hello, sizeof(hello));
	int first;
	int second;

	(void)state;
	memset(hello + SUITES + 2, 0x55, (size_t)hello[SUITES] << 8 | hello[SUITES + 1]);
	secplay_provide_tls("dubbo://" AT);
	first = secplay_raw_connect(AT);
	secplay_raw_send(first, hello, len); /* it has got its alert, and stays */
	second = secplay_raw_connect(AT);
	secplay_raw_send(second, "plain", 5);
	assert_non_null(strstr(secplay_told(SERVER), "plain bytes"));
	assert_null(strstr(secplay_told(SERVER), "no shared cipher"));
	secplay_raw_close(first);
	secplay_pass(MS);
	assert_non_null(strstr(secplay_told(SERVER), "no shared cipher"));
	secplay_raw_close(second);
}

/* --- crowds */

static void good_peer_is_served_when_stalled_handshakes_end(void **state)
{
	unsigned char hello[4096];
	size_t len = secplay_make_hello(hello, sizeof(hello));
	int fds[4];

	(void)state;
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

static void address_with_too_many_handshakes_loses_the_next_ones(void **state)
{
	unsigned char hello[4096];
	size_t len = secplay_make_hello(hello, sizeof(hello));
	int fds[3];

	(void)state;
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

static void handshakes_that_wait_count_for_their_address(void **state)
{
	unsigned char hello[4096];
	size_t len = secplay_make_hello(hello, sizeof(hello));
	int fds[4];

	(void)state;
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

static void free_place_is_for_the_peer_that_has_waited_longest(void **state)
{
	enum {
		PEERS = 6,
	};
	unsigned char hello[4096];
	size_t len = secplay_make_hello(hello, sizeof(hello));
	int fds[PEERS];

	(void)state;
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

static void handshakes_begin_at_their_rate_and_in_their_order(void **state)
{
	enum {
		PEERS = 7,
		RATE = 2,
	};
	unsigned char hello[4096];
	size_t len = secplay_make_hello(hello, sizeof(hello));
	int fds[PEERS];

	(void)state;
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
	uint64_t steps = secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES) +
			 secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_DONE);

	(void)process;
	if (steps - secplay.seen > secplay.most)
		secplay.most = steps - secplay.seen;
	secplay.seen = steps;
}

/* All come at once, and a link that lives misses no heartbeat meanwhile. */
static void crowd_is_let_in_a_few_steps_a_turn(void **state)
{
	static struct spoke_consumer *crowd[CROWD];
	struct spoke_consumer *live;
	const struct spoke_consumer_options options = { .url = "dubbo://" AT "/demo.Echo",
							.tls = &secplay.secure.consumer };

	(void)state;
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
	secplay.seen = 2;
	secplay.processes[SERVER].turned = note_turn;
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(spoke_consumer_new(secplay.engines[CLIENT], &options, &crowd[i]),
				 0);
	secplay_pass(5 * SECOND);
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(spoke_consumer_ready(crowd[i]), 1);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_DONE), CROWD + 1);
	assert_in_range(secplay.most, STEPS_OF_A_TURN, STEPS_OF_A_TURN);
	assert_int_equal(secplay_stat_of(CLIENT, SPOKE_STAT_PROBES_MISSED), 0);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_PROBES_MISSED), 0);
	secplay.processes[SERVER].turned = NULL;
}

/* --- never plain */

static void consumer_with_tls_says_what_to_do_about_a_plain_provider(void **state)
{
	const struct spoke_provider_options plain = { .tls = NULL };

	(void)state;
	secplay_provide("dubbo://" AT, &plain);
	secplay_consume("dubbo://" AT "/demo.Echo", &secplay.secure.consumer);
	secplay_call(2 * SECOND);
	secplay_pass(3 * SECOND);
	assert_int_equal(secplay.ended, 1);
	assert_int_not_equal(secplay.error, SPOKE_OK);
	assert_int_equal(spoke_consumer_ready(secplay.consumer), 0);
	assert_non_null(strstr(secplay_told(CLIENT), "tls=on"));
}

static void plain_consumer_of_a_provider_with_tls_is_closed_unanswered(void **state)
{
	unsigned char byte;
	bool ended;
	int fd;

	(void)state;
	secplay_provide_tls("dubbo://" AT);
	fd = secplay_raw_connect(AT);
	secplay_raw_send(fd, "\xda", 1);
	assert_int_equal(secplay_raw_read(fd, &byte, 1, &ended), 0);
	assert_true(ended);
	assert_non_null(strstr(secplay_told(SERVER), "plain bytes"));
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES), 0);
	secplay_raw_close(fd);
}

/* Every connection that is tried begins with a ClientHello, and the pauses grow. */
static void consumer_with_tls_sends_nothing_but_tls(void **state)
{
	const struct spoke_env *env = secplay_raw_env();
	struct spoke_address address;
	unsigned tries[2] = { 0, 0 };
	int listener;

	(void)state;
	assert_int_equal(env->net->parse(env->ctx, AT, &address), 0);
	assert_int_equal(env->net->listen(env->ctx, &address, 16, &listener), 0);
	secplay_consume("dubbo://" AT "/demo.Echo", &secplay.secure.consumer);
	for (unsigned i = 0; i < 60000; i++) {
		unsigned char bytes[4096] = { 0 };
		bool ended;
		int fd;

		secplay_pass(MS);
		if (env->net->accept(env->ctx, listener, &fd, &address) < 0)
			continue;
		secplay_pass(5 * MS);
		assert_in_range(secplay_raw_read(fd, bytes, sizeof(bytes), &ended), 100,
				sizeof(bytes));
		assert_int_equal(bytes[0], 0x16);
		secplay_raw_send(fd, "\xda\xbb\x22\x14\0\0\0\0",
				 8); /* the start of a plain reply */
		assert_true(secplay_is_closed(fd));
		secplay_raw_close(fd);
		tries[i >= 30000]++;
	}
	assert_in_range(tries[0], 2, 30);
	assert_in_range(tries[1], 1, tries[0]);
	secplay_raw_close(listener);
	assert_non_null(strstr(secplay_told(CLIENT), "does not speak TLS"));
}

static void consumer_without_a_certificate_is_told_and_slows_down(void **state)
{
	uint64_t first;

	(void)state;
	secplay_provide_tls("dubbo://" AT);
	secplay.secure.consumer.cert = secplay.secure.consumer.key = NULL;
	secplay_consume("dubbo://" AT "/demo.Echo", &secplay.secure.consumer);
	secplay_pass(30 * SECOND);
	first = secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES);
	assert_in_range(first, 2, 30);
	secplay_pass(30 * SECOND);
	assert_in_range(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES), first + 1, 2 * first);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_DONE), 0);
	assert_non_null(strstr(secplay_told(CLIENT), "tls.cert"));
}

static void consumer_refuses_a_provider_with_another_name(void **state)
{
	(void)state;
	secplay_provide_tls("dubbo://" AT);
	secplay.secure.consumer.peers = NULL; /* the host of the URL, an address */
	secplay_consume("dubbo://" AT "/demo.Echo", &secplay.secure.consumer);
	secplay_call(2 * SECOND);
	secplay_pass(3 * SECOND);
	assert_int_not_equal(secplay.error, SPOKE_OK);
	assert_non_null(strstr(secplay_told(CLIENT), "tls.peers"));
}

static void optional_listener_serves_both(void **state)
{
	(void)state;
	secplay.secure.provider.optional = true;
	secplay_provide_tls("dubbo://" AT);
	for (unsigned secures = 0; secures < 2; secures++) {
		secplay_consume("dubbo://" AT "/demo.Echo",
				secures ? &secplay.secure.consumer : NULL);
		secplay_call(2 * SECOND);
		secplay_pass(SECOND);
		assert_int_equal(secplay.ended, secures + 1);
		assert_int_equal(secplay.error, SPOKE_OK);
	}
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_DONE), 1);
}

static void handshakes_of_each_side_have_counters_of_their_own(void **state)
{
	(void)state;
	secplay_provide_tls("dubbo://" AT);
	secplay_consume("dubbo://" AT "/demo.Echo", &secplay.secure.consumer);
	secplay_pass(SECOND);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_DONE), 1);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_CONNECTS_SECURED), 0);
	assert_int_equal(secplay_stat_of(CLIENT, SPOKE_STAT_HANDSHAKES_DONE), 0);
	assert_int_equal(secplay_stat_of(CLIENT, SPOKE_STAT_CONNECTS_SECURED), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, secplay_set_up, secplay_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(handshake_that_stalls_is_closed_after_its_time),
		TEST(handshake_that_drips_is_closed_after_the_same_time),
		TEST(optional_listener_waits_for_the_first_byte_as_without_tls),
		TEST(silent_peer_costs_what_it_has_sent),
		TEST(reason_of_a_peer_outlasts_those_of_later_ones),
		TEST(good_peer_is_served_when_stalled_handshakes_end),
		TEST(address_with_too_many_handshakes_loses_the_next_ones),
		TEST(handshakes_that_wait_count_for_their_address),
		TEST(free_place_is_for_the_peer_that_has_waited_longest),
		TEST(handshakes_begin_at_their_rate_and_in_their_order),
		TEST(crowd_is_let_in_a_few_steps_a_turn),
		TEST(consumer_with_tls_says_what_to_do_about_a_plain_provider),
		TEST(plain_consumer_of_a_provider_with_tls_is_closed_unanswered),
		TEST(consumer_with_tls_sends_nothing_but_tls),
		TEST(consumer_without_a_certificate_is_told_and_slows_down),
		TEST(consumer_refuses_a_provider_with_another_name),
		TEST(optional_listener_serves_both),
		TEST(handshakes_of_each_side_have_counters_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
