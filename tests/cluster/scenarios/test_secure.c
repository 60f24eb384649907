/* SPDX-License-Identifier: Apache-2.0 */
/* Providers and consumers with TLS: who is closed when, and that nothing falls back to
 * plain bytes. */
#include "tests/cluster/scenarios/secplay.h"
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

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
	const struct spoke_env *env = secplay_raw_env();
	struct spoke_address address;
	int fd;

	assert_int_equal(env->net->parse(env->ctx, AT, &address), 0);
	assert_int_equal(env->net->listen(env->ctx, &address, 16, ret_listener), 0);
	secplay_consume("dubbo://" AT "/demo.Echo", &secplay.secure.consumer);
	secplay_pass(5 * MS);
	assert_int_equal(env->net->accept(env->ctx, *ret_listener, &fd, &address), 0);
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
