/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers and consumers with TLS: who is closed when, names, crowds, and that nothing falls
 * back to plain bytes.
 */
#include "core/virtual/files.h"
#include "tests/cluster/scenarios/secplay.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * --- providers and consumers with TLS: who is closed when, and that nothing falls back to
 * plain bytes
 */

/* --- deadlines */

static void assert_closed_at(int fd, uint64_t begun_ns, uint64_t after_ns)
{
	spokei_world_run(&secplay.world, begun_ns + after_ns - 100 * MS);
	assert_false(secplay_is_closed(fd));
	spokei_world_run(&secplay.world, begun_ns + after_ns + 100 * MS);
	assert_true(secplay_is_closed(fd));
}

FIXTURE(secplay_set_up, secplay_tear_down);

TEST(handshake_that_stalls_is_closed_after_its_time)
{
	unsigned char hello[4096];
	const size_t len = secplay_make_hello(hello, sizeof(hello));
	const size_t sent[] = { 0, 1, len - 1, len };

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
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_FAILED), 1);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_LATE), 4);
	assert_non_null(strstr(secplay_told(SERVER), "it was not over in time"));
}

/* Byte by byte its time does not begin anew. */
TEST(handshake_that_drips_is_closed_after_the_same_time)
{
	unsigned char hello[4096];
	uint64_t begun_ns;
	int fd;

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

TEST(optional_listener_waits_for_the_first_byte_as_without_tls)
{
	uint64_t begun_ns;
	int fd;

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

TEST(silent_peer_costs_what_it_has_sent)
{
	unsigned char hello[4096];
	size_t bytes[2];
	size_t base;
	int fd;

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
			assert_int_equal(secplay.faulty[SERVER].bytes - base, bytes[1]);
			secplay_raw_send(fd, hello + 1, 1);
			assert_in_range(secplay.faulty[SERVER].bytes - base - bytes[1], 2, 24);
			secplay_raw_send(fd, hello + 2, 98);
			assert_in_range(secplay.faulty[SERVER].bytes - base - bytes[1], 100, 224);
		}
		secplay_raw_close(fd);
		spoke_provider_free(secplay.provider);
		secplay_pass(SECOND);
	}
	assert_int_equal(bytes[0], bytes[1]);
}

/* --- reasons */

TEST(reason_of_a_peer_outlasts_those_of_later_ones)
{
	enum {
		SUITES = 76, /* where their length stands in a ClientHello */
	};
	unsigned char hello[4096];
	size_t len = secplay_make_hello(hello, sizeof(hello));
	int first;
	int second;

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

/* --- never plain */

TEST(consumer_with_tls_says_what_to_do_about_a_plain_provider)
{
	const struct spoke_provider_options plain = { .tls = NULL };

	secplay_provide("dubbo://" AT, &plain);
	secplay_consume("dubbo://" AT "/demo.Echo", &secplay.secure.consumer);
	secplay_call(2 * SECOND);
	secplay_pass(3 * SECOND);
	assert_int_equal(secplay.ended, 1);
	assert_int_not_equal(secplay.error, SPOKE_OK);
	assert_int_equal(spoke_consumer_ready(secplay.consumer), 0);
	assert_non_null(strstr(secplay_told(CLIENT), "tls=on"));
	assert_non_null(strstr(secplay_told(SERVER),
			       "violated the protocol: it speaks TLS; set tls=on or tls=optional "
			       "here"));
}

static void ignore(void *arg, const struct spoke_result *result)
{
	(void)arg;
	(void)result;
}

TEST(plain_consumer_of_a_provider_with_tls_is_asked_about_tls)
{
	struct spoke_method *method;
	const char *question;

	secplay_provide_tls("dubbo://" AT);
	secplay_consume("dubbo://" AT "/demo.Echo?retries=0", NULL);
	secplay_pass(60 * SECOND);
	question = strstr(secplay_told(CLIENT), "does it expect TLS (tls=on here)");
	assert_non_null(question);
	assert_null(strstr(question + 1, "does it expect TLS"));
	/* A call without a connection has the same reason. */
	assert_int_equal(spoke_consumer_method(secplay.consumer, "echo", NULL, &method), 0);
	assert_int_equal(spoke_call_with(method, SPOKE_NO_ARGS, ignore, NULL), SPOKE_EUNAVAILABLE);
	assert_non_null(strstr(spoke_engine_why(secplay.engines[CLIENT]), "does it expect TLS"));
}

TEST(plain_consumer_of_a_provider_with_tls_is_closed_unanswered)
{
	unsigned char byte;
	bool ended;
	int fd;

	secplay_provide_tls("dubbo://" AT);
	fd = secplay_raw_connect(AT);
	secplay_raw_send(fd, "\xda", 1);
	assert_int_equal(secplay_raw_read(fd, &byte, 1, &ended), 0);
	assert_true(ended);
	assert_non_null(strstr(secplay_told(SERVER), "plain bytes"));
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES), 0);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_PLAIN), 1);
	secplay_raw_close(fd);
}

/* Every connection that is tried begins with a ClientHello, and the pauses grow. */
TEST(consumer_with_tls_sends_nothing_but_tls)
{
	const struct spoke_env *env = secplay_raw_env();
	struct spoke_address address;
	unsigned tries[2] = { 0, 0 };
	int listener;

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

/* The consumer has begun a handshake with a peer that does not end it. */
static int begin_without_end(int *ret_listener)
{
	int fd;

	*ret_listener = scene_listen(secplay_raw_env(), AT);
	secplay_consume("dubbo://" AT "/demo.Echo", &secplay.secure.consumer);
	secplay_pass(5 * MS);
	fd = scene_accept(secplay_raw_env(), *ret_listener);
	assert_true(fd >= 0);
	secplay_raw_send(fd, "\x16\3\3", 3);
	return fd;
}

TEST(handshake_that_stalls_is_told_as_one)
{
	int listener;
	int fd = begin_without_end(&listener);

	secplay_pass(6 * SECOND);
	assert_non_null(strstr(secplay_told(CLIENT), "has not ended the handshake in 5000 ms"));
	secplay_raw_close(fd);
	secplay_raw_close(listener);
}

TEST(handshake_that_is_lost_is_told_as_one)
{
	int listener;
	int fd = begin_without_end(&listener);

	secplay_raw_close(fd);
	secplay_pass(5 * MS);
	assert_non_null(strstr(secplay_told(CLIENT), "lost during the handshake"));
	secplay_raw_close(listener);
}

TEST(consumer_without_a_certificate_is_told_and_slows_down)
{
	uint64_t first;

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

TEST(consumer_refuses_a_provider_with_another_name)
{
	secplay_provide_tls("dubbo://" AT);
	secplay.secure.consumer.peers = NULL; /* the host of the URL, an address */
	secplay_consume("dubbo://" AT "/demo.Echo", &secplay.secure.consumer);
	secplay_call(2 * SECOND);
	secplay_pass(3 * SECOND);
	assert_int_not_equal(secplay.error, SPOKE_OK);
	assert_non_null(strstr(secplay_told(CLIENT), "tls.peers"));
}

TEST(optional_listener_serves_both)
{
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

TEST(handshakes_of_each_side_have_counters_of_their_own)
{
	secplay_provide_tls("dubbo://" AT);
	secplay_consume("dubbo://" AT "/demo.Echo", &secplay.secure.consumer);
	secplay_pass(SECOND);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_DONE), 1);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_FAILED), 0);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_CONNECTS_SECURED), 0);
	assert_int_equal(secplay_stat_of(CLIENT, SPOKE_STAT_HANDSHAKES_DONE), 0);
	assert_int_equal(secplay_stat_of(CLIENT, SPOKE_STAT_CONNECTS_SECURED), 1);
}

/* --- providers with TLS to which more peers come than have a slot */

#define LOCAL "unix:/run/secure"

enum {
	CROWD = 300, /* more than have a slot at a time */
	STEPS_OF_A_TURN = 8,
};

/* Lets `count` peers, from addresses that do not count, begin handshakes and fall silent. */
static void begin_silent(int *fds, unsigned count)
{
	unsigned char hello[4096];
	size_t len = secplay_make_hello(hello, sizeof(hello));

	secplay.secure.provider.handshakes_max = count;
	secplay_provide_tls(LOCAL);
	for (unsigned i = 0; i < count; i++) {
		fds[i] = secplay_raw_connect(LOCAL);
		secplay_raw_send(fds[i], hello, len);
		secplay_pass(MS);
	}
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES), count);
}

static void begin_good_call(void)
{
	secplay_consume("msgpack-rpc+" LOCAL "?interface=demo.Echo", &secplay.secure.consumer);
	secplay_call(20 * SECOND);
}

TEST(handshake_that_is_silent_longest_gives_way_after_a_second)
{
	int fds[4];

	begin_silent(fds, 4);
	begin_good_call();
	secplay_pass(900 * MS);
	assert_int_equal(secplay.ended, 0);
	secplay_pass(200 * MS);
	assert_int_equal(secplay.ended, 1);
	assert_int_equal(secplay.error, SPOKE_OK);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_LATE), 1);
	assert_non_null(strstr(secplay_told(SERVER), "completed no message for 1 s while other"));
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(secplay_is_closed(fds[i]), i == 0);
		secplay_raw_close(fds[i]);
	}
}

/* Each byte is received and tried. */
TEST(bytes_of_an_unfinished_message_do_not_keep_a_slot)
{
	unsigned char record[64] = { 0x17, 0x03, 0x03, 0x01, 0x00 };
	int fd;

	begin_silent(&fd, 1);
	begin_good_call();
	for (unsigned i = 0; i < 11; i++) {
		assert_int_equal(secplay.ended, 0);
		secplay_raw_send(fd, record + i, 1);
		secplay_pass(90 * MS);
	}
	secplay_pass(100 * MS);
	assert_int_equal(secplay.ended, 1);
	assert_int_equal(secplay.error, SPOKE_OK);
	assert_true(secplay_is_closed(fd));
	secplay_raw_close(fd);
}

TEST(silent_handshakes_keep_their_slots_while_none_waits)
{
	int fds[4];

	begin_silent(fds, 4);
	secplay_pass(4 * SECOND);
	for (unsigned i = 0; i < 4; i++)
		assert_false(secplay_is_closed(fds[i]));
	begin_good_call();
	secplay_pass(100 * MS);
	assert_int_equal(secplay.ended, 1);
	assert_int_equal(secplay.error, SPOKE_OK);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(secplay_is_closed(fds[i]), i == 0);
		secplay_raw_close(fds[i]);
	}
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

TEST(free_slot_is_for_the_peer_that_has_waited_longest)
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

/* --- consumers with TLS: the names that they expect, and what a call learns of a refusal */

/* Returns whether a consumer connects to a provider that a registry lists with these parameters. */
static bool connects_to_listed(const char *parameters, const char *peers)
{
	const struct spoke_consumer_options options = { .url = "consumer://any/demo.Echo",
							.registry = "file:///run/providers",
							.tls = &secplay.secure.consumer };
	struct spoke_consumer *consumer;
	char text[256];
	bool connected;

	(void)snprintf(text, sizeof(text), "dubbo://" AT "/demo.Echo?%s\n", parameters);
	spokei_vfiles_put(secplay.world.files, "/run/providers", text);
	secplay.secure.consumer.peers = peers;
	assert_int_equal(spoke_consumer_new(secplay.engines[CLIENT], &options, &consumer), 0);
	secplay_pass(3 * SECOND);
	connected = spoke_consumer_ready(consumer) == 1;
	spoke_consumer_free(consumer);
	secplay_pass(SECOND);
	return connected;
}

TEST(registry_decides_neither_about_tls_nor_about_names)
{
	static const char lies[] = "tls=off&ssl-enabled=false&tls.peers=dns:other.test";

	secplay_provide_tls("dubbo://" AT);
	assert_true(connects_to_listed(lies, "dns:server.test"));
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_DONE), 1);
	assert_false(connects_to_listed(lies, "dns:other.test"));
	assert_false(connects_to_listed("tls.peers=dns:server.test", "dns:other.test"));
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_DONE), 1);
}

/* In TLS 1.3 the consumer may write before it is refused. */
TEST(call_of_a_refused_consumer_ends_with_the_reason)
{
	secplay_provide_tls("dubbo://" AT);
	secplay.secure.consumer.cert = secplay.secure.consumer.key = NULL;
	secplay_consume("dubbo://" AT "/demo.Echo", &secplay.secure.consumer);
	secplay_call(2 * SECOND);
	secplay_pass(3 * SECOND);
	assert_int_equal(secplay.ended, 1);
	assert_int_equal(secplay.error, SPOKE_EHANDSHAKE);
	assert_non_null(strstr(secplay.error_text, "set tls.cert and tls.key"));
}

/* Makes a consumer of demo.Echo, and a method of another service. Returns the method's error. */
static int error_of_method(const struct spoke_tls_options *tls, struct spoke_config *config,
			   const char *service)
{
	const struct spoke_consumer_options options = { .url = "dubbo://" AT "/demo.Echo",
							.tls = tls,
							.config = config };
	const struct spoke_method_options with = { .service = service };
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	int error;

	assert_int_equal(spoke_consumer_new(secplay.engines[CLIENT], &options, &consumer), 0);
	error = spoke_consumer_method(consumer, "echo", &with, &method);
	spoke_consumer_free(consumer);
	secplay_pass(SECOND);
	return error;
}

TEST(method_of_a_service_with_other_peers_is_refused)
{
	static const char text[] = "[consumer]\ntls.peers = dns:server.test\n"
				   "[service.demo.Other]\ntls.peers = dns:other.test\n"
				   "[service.demo.Same]\ntls.peers = dns:server.test\n";
	struct spoke_tls_options tls = secplay.secure.consumer;
	struct spoke_config *config;

	assert_int_equal(spoke_config_parse(NULL, "a.conf",
					    (struct spoke_span){ text, strlen(text) }, NULL, NULL,
					    &config),
			 0);
	assert_int_equal(error_of_method(&tls, config, "demo.Other"), 0); /* the program wins */
	tls.peers = NULL;
	assert_int_equal(error_of_method(&tls, config, "demo.Other"), SPOKE_EINVAL);
	assert_non_null(strstr(secplay_told(CLIENT), "demo.Other has tls.peers of its own"));
	assert_int_equal(error_of_method(&tls, config, "demo.Same"), 0);
	assert_int_equal(error_of_method(&tls, config, "demo.Third"), 0);
	assert_int_equal(error_of_method(NULL, config, "demo.Other"), 0);
	spoke_config_free(config);
}
