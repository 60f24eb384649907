/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links with TLS: ends of the peer and of a forked child, peers that do not read, and sides
 * that are freed.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/cluster/scenarios/secplay.h"
#include "tests/cluster/securerig.h"
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/host.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <errno.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- A forked child that frees links with TLS leaves those of its parent alone */

FIXTURE(NULL, NULL);

static struct {
	struct spoke_engine *engine; /* of both sides */
	struct spoke_consumer *consumer;
	struct spoke_provider *provider;
	struct spoke_method *echo;
	unsigned ended;
	int error; /* of the last call */
} rig;

static void echo(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void note_end(void *arg, const struct spoke_result *result)
{
	(void)arg;
	rig.ended++;
	rig.error = result->error;
}

/* Calls, and waits for the end: its deadline bounds the time. */
static void call(void)
{
	const struct spoke_call_options options = { .timeout_ns = 20 * SECOND };
	unsigned before = rig.ended;

	assert_int_equal(spoke_call(rig.echo, (struct spoke_span){ NULL, 0 }, &options, note_end,
				    NULL, NULL),
			 0);
	while (rig.ended == before)
		assert_int_equal(spoke_engine_turn(rig.engine, true), 0);
	assert_int_equal(rig.error, SPOKE_OK);
}

static void make(const struct secure *secure)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo };
	const struct spoke_provider_options serving = { .tls = &secure->provider };
	struct spoke_consumer_options calling = { .tls = &secure->consumer };
	char address[128];
	char url[256];

	assert_int_equal(spoke_engine_new(NULL, &rig.engine), 0);
	assert_int_equal(spoke_provider_new(rig.engine, &serving, &rig.provider), 0);
	assert_int_equal(spoke_provider_add(rig.provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(rig.provider, "dubbo://127.0.0.1:0"), 0);
	assert_true(spoke_provider_address(rig.provider, 0, address, sizeof(address)) > 0);
	(void)snprintf(url, sizeof(url), "dubbo://%s/demo.Echo", address);
	calling.url = url;
	assert_int_equal(spoke_consumer_new(rig.engine, &calling, &rig.consumer), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", NULL, &rig.echo), 0);
}

TEST(links_outlive_a_child_that_frees_them)
{
	char folder[] = "/tmp/spoke-test-fork-XXXXXX";
	struct secure secure;
	int status = 1;
	pid_t child;

	assert_non_null(mkdtemp(folder));
	assert_true(secure_begin(&secure, NULL, folder));
	make(&secure);
	call();
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		spoke_engine_free(rig.engine);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	call();
	call();
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_HANDSHAKES), 1);
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_CLOSED), 0);
	spoke_engine_free(rig.engine);
	secure_end(&secure);
	assert_int_equal(rmdir(folder), 0);
}

/* --- links with TLS: ends of the peer, peers that do not read, and sides that are freed */

/* --- a peer with a library of its own */

struct tls_peer {
	SSL_CTX *context; /* NULL: it speaks plain bytes */
	SSL *ssl;
	int fd;
	unsigned char got[4096];
	size_t got_len;
	bool ended; /* the other side's bytes have ended */
};

/* Sends what the peer's library has made. */
static void send_made(const struct tls_peer *peer)
{
	unsigned char bytes[16384];
	int made;

	while ((made = BIO_read(SSL_get_wbio(peer->ssl), bytes, sizeof(bytes))) > 0)
		secplay_raw_send(peer->fd, bytes, (size_t)made);
}

static void pass_on(struct tls_peer *peer)
{
	unsigned char bytes[16384];
	size_t len;

	if (peer->context == NULL) {
		peer->got_len += secplay_raw_read(peer->fd, peer->got + peer->got_len,
						  sizeof(peer->got) - peer->got_len, &peer->ended);
		return;
	}
	send_made(peer);
	while ((len = secplay_raw_read(peer->fd, bytes, sizeof(bytes), &peer->ended)) > 0)
		assert_int_equal(BIO_write(SSL_get_rbio(peer->ssl), bytes, (int)len), len);
	while (SSL_read_ex(peer->ssl, peer->got + peer->got_len, sizeof(peer->got) - peer->got_len,
			   &len) == 1)
		peer->got_len += len;
}

/* Connects to the provider, which asks for no certificate. */
static void join(struct tls_peer *peer, bool secures)
{
	BIO *in = BIO_new(BIO_s_mem());

	memset(peer, 0, sizeof(*peer));
	peer->fd = secplay_raw_connect(AT);
	if (!secures) {
		BIO_free(in);
		return;
	}
	peer->context = SSL_CTX_new(TLS_client_method());
	peer->ssl = SSL_new(peer->context);
	(void)BIO_set_mem_eof_return(in, -1);
	SSL_set_bio(peer->ssl, in, BIO_new(BIO_s_mem()));
	SSL_set_connect_state(peer->ssl);
	for (unsigned i = 0; i < 8 && SSL_do_handshake(peer->ssl) != 1; i++) {
		pass_on(peer);
		secplay_pass(MS);
	}
	pass_on(peer);
}

static void say(struct tls_peer *peer, const void *bytes, size_t len)
{
	if (peer->context) {
		assert_int_equal(SSL_write(peer->ssl, bytes, (int)len), len);
		send_made(peer);
	} else {
		secplay_raw_send(peer->fd, bytes, len);
	}
	secplay_pass(MS);
}

static void leave(struct tls_peer *peer)
{
	secplay_raw_close(peer->fd);
	SSL_free(peer->ssl);
	SSL_CTX_free(peer->context);
	secplay_pass(MS);
}

/* --- ends */

static const char ask_later[] = "\x94\0\2\xa5"
				"later\x91\xa1y";

static void provide_to_peers(bool secures)
{
	static const struct spoke_handler later = { .method = "later", .handle = secplay_hold };
	static const struct spoke_service_options service = { .name = "demo.Later" };
	const struct spoke_provider_options options = {
		.tls = secures ? &secplay.secure.provider : NULL,
		.default_service = "demo.Later",
		.heartbeat_ns = 5 * SECOND,
	};

	secplay.secure.provider.verify = SPOKE_TLS_VERIFY_NONE;
	secplay_provide("dubbo://" AT, &options);
	assert_int_equal(spoke_provider_add(secplay.provider, &service, &later, 1), 0);
}

FIXTURE(secplay_set_up, secplay_tear_down);

TEST(peer_that_ends_is_answered_before_it_is_closed)
{
	struct tls_peer peer;

	provide_to_peers(true);
	join(&peer, true);
	say(&peer, ask_later, sizeof(ask_later) - 1);
	assert_non_null(secplay.held);
	(void)SSL_shutdown(peer.ssl);
	pass_on(&peer);
	secplay_pass(SECOND);
	pass_on(&peer);
	assert_false(peer.ended);
	spoke_reply(secplay.held, (struct spoke_value){ NULL, 0 });
	secplay_pass(MS);
	pass_on(&peer);
	assert_int_equal(peer.got_len, 5); /* [1, 2, nil, nil] */
	assert_memory_equal(peer.got, "\x94\1\2\xc0\xc0", 5);
	assert_true(peer.ended);
	assert_true(SSL_get_shutdown(peer.ssl) & SSL_RECEIVED_SHUTDOWN);
	leave(&peer);
}

TEST(peer_that_is_cut_off_is_lost_and_half_a_frame_is_not_served)
{
	struct tls_peer peer;

	provide_to_peers(true);
	join(&peer, true);
	say(&peer, ask_later, sizeof(ask_later) - 1);
	say(&peer, ask_later, sizeof(ask_later) - 3);
	leave(&peer);
	assert_int_equal(secplay.held_count, 1);
	assert_true(spoke_request_abandoned(secplay.held));
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_CLOSED_BY_PEER), 1);
	spoke_reply(secplay.held, (struct spoke_value){ NULL, 0 });
}

/* Sends heartbeats of Dubbo, and reads none of the answers. Returns after how long it is closed. */
static uint64_t time_of_a_deaf_peer(bool secures, bool talks, enum spoke_stat *ret_stat)
{
	static const unsigned char heartbeat[17] = { 0xda, 0xbb, 0xe2, 0, 0, 0, 0, 0,  0,
						     0,    0,    1,    0, 0, 0, 1, 'N' };
	const struct spokei_vnet_link deaf = { .capacity = 1 };
	uint64_t begun_ns;
	struct tls_peer peer;

	provide_to_peers(secures);
	join(&peer, secures);
	/* The lowest free descriptor is given first: the provider's comes after the peer's. */
	*spokei_vnet_link(secplay.world.net, peer.fd + 1) = deaf;
	begun_ns = secplay.world.now_ns;
	say(&peer, heartbeat, sizeof(heartbeat));
	while (secplay_stat_of(SERVER, SPOKE_STAT_CLOSED) == 0) {
		assert_true(secplay.world.now_ns - begun_ns < 200 * SECOND);
		secplay_pass(SECOND);
		if (talks)
			say(&peer, heartbeat, sizeof(heartbeat));
	}
	*ret_stat = SPOKE_STAT_COUNT;
	for (unsigned i = 0; i < SPOKE_STAT_COUNT; i++)
		if ((i == SPOKE_STAT_CLOSED_SLOW || i == SPOKE_STAT_CLOSED_SILENT) &&
		    secplay_stat_of(SERVER, (enum spoke_stat)i) > 0)
			*ret_stat = (enum spoke_stat)i;
	begun_ns = secplay.world.now_ns - begun_ns;
	leave(&peer);
	return begun_ns;
}

TEST(peer_that_does_not_read_is_judged_as_without_tls)
{
	for (unsigned talks = 0; talks < 2; talks++) {
		enum spoke_stat stats[2];
		uint64_t times_ns[2];

		for (unsigned secures = 0; secures < 2; secures++) {
			if (talks || secures) {
				(void)secplay_tear_down(state);
				(void)secplay_set_up(state);
			}
			times_ns[secures] = time_of_a_deaf_peer(secures, talks, &stats[secures]);
		}
		assert_int_equal(stats[0], stats[1]);
		assert_int_not_equal(stats[0], SPOKE_STAT_COUNT);
		assert_in_range(times_ns[1], times_ns[0] - SECOND, times_ns[0] + SECOND);
	}
}

TEST(freeing_an_open_link_sends_nothing)
{
	uint64_t writes[2];

	secplay_provide_tls("dubbo://" AT);
	secplay_consume("dubbo://" AT "/demo.Echo", &secplay.secure.consumer);
	secplay_call(SECOND);
	secplay_pass(SECOND);
	assert_int_equal(secplay.error, SPOKE_OK);
	/* In a child of fork() it would end the link of the parent. */
	for (unsigned side = 0; side < 2; side++) {
		writes[side] = secplay.faulty[side].calls[SPOKEI_FAULTS_WRITE];
		spoke_engine_free(secplay.engines[side]);
		secplay.engines[side] = NULL;
		assert_int_equal(secplay.faulty[side].calls[SPOKEI_FAULTS_WRITE], writes[side]);
	}
}

TEST(consumer_that_drains_ends_with_close_notify)
{
	uint64_t writes;

	secplay_provide_tls("dubbo://" AT);
	secplay_consume("dubbo://" AT "/demo.Echo", &secplay.secure.consumer);
	secplay_call(SECOND);
	secplay_pass(SECOND);
	assert_int_equal(secplay.error, SPOKE_OK);
	/* A consumer without a handler has nothing else to say. */
	writes = secplay.faulty[CLIENT].calls[SPOKEI_FAULTS_WRITE];
	assert_int_equal(spoke_engine_drain(secplay.engines[CLIENT], SECOND), 0);
	secplay_pass(SECOND);
	assert_int_equal(secplay.faulty[CLIENT].calls[SPOKEI_FAULTS_WRITE], writes + 1);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_CLOSED_BY_PEER), 1);
}

TEST(peer_that_is_dismissed_gets_its_answer_and_close_notify)
{
	static const unsigned char ask[] = "\x94\0\2\xa5"
					   "later\x90";
	const struct spoke_provider_options options = {
		.tls = &secplay.secure.provider,
		.default_service = "demo.Later",
		.token = "a-secret-token",
	};
	static const struct spoke_handler later = { .method = "later", .handle = secplay_hold };
	static const struct spoke_service_options service = { .name = "demo.Later" };
	struct tls_peer peer;
	size_t len;

	secplay.secure.provider.verify = SPOKE_TLS_VERIFY_NONE;
	secplay_provide("dubbo://" AT, &options);
	assert_int_equal(spoke_provider_add(secplay.provider, &service, &later, 1), 0);
	join(&peer, true);
	say(&peer, ask, sizeof(ask) - 1);
	pass_on(&peer);
	len = peer.got_len;
	assert_true(len > 0);
	say(&peer, ask, sizeof(ask) - 1);
	say(&peer, ask, sizeof(ask) - 1);
	pass_on(&peer);
	assert_int_equal(peer.got_len, 3 * len);
	assert_true(peer.ended);
	assert_true(SSL_get_shutdown(peer.ssl) & SSL_RECEIVED_SHUTDOWN);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_CLOSED_AUTH), 1);
	leave(&peer);
}

/* Otherwise its callers would wait until the silence is noticed, or for their deadlines. */
TEST(side_without_memory_to_write_ends_the_link)
{
	secplay_provide_tls("dubbo://" AT);
	secplay_consume("dubbo://" AT "/demo.Echo", &secplay.secure.consumer);
	secplay_call(SECOND);
	secplay_pass(SECOND);
	assert_int_equal(secplay.error, SPOKE_OK);
	spokei_faults_fail(&secplay.faulty[SERVER], SPOKEI_FAULTS_WRITE, 1, -ENOMEM, false);
	secplay_call(3 * SECOND);
	secplay_pass(SECOND);
	assert_int_equal(secplay.ended, 2);
	assert_int_equal(secplay.error, SPOKE_ELOST);
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_CLOSED_MEMORY), 1);
}

static void free_side(unsigned side)
{
	spoke_engine_free(secplay.engines[side]);
	secplay.engines[side] = NULL;
}

TEST(each_side_may_be_freed_at_any_moment_of_a_handshake)
{
	for (unsigned how = 0; how < 4; how++) {
		for (unsigned steps = 0; steps < 40; steps++) {
			if (how > 0 || steps > 0) {
				(void)secplay_tear_down(state);
				(void)secplay_set_up(state);
			}
			secplay_provide_tls("dubbo://" AT);
			secplay_consume("dubbo://" AT "/demo.Echo", &secplay.secure.consumer);
			secplay_call(SECOND);
			for (unsigned i = 0; i < steps; i++)
				(void)spokei_world_step(&secplay.world,
							secplay.world.now_ns + SECOND);
			if (how == 0)
				spoke_consumer_free(secplay.consumer);
			else if (how == 1)
				spoke_provider_free(secplay.provider);
			else
				free_side(how == 2 ? CLIENT : SERVER);
			secplay_pass(2 * SECOND);
			assert_int_equal(secplay.ended, 1);
		}
	}
}
