/* SPDX-License-Identifier: Apache-2.0 */
/* Providers and consumers with TLS in the virtual world: who is closed when, what is told, and that
 * nothing falls back to plain bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/virtual/faults.h"
#include "tests/cluster/securerig.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <openssl/ssl.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define AT "127.0.0.1:20880"
#define LOCAL "unix:/run/secure"

enum {
	SERVER,
	CLIENT,
	STRANGER, /* raw connections */
	PROCESSES,
	CROWD = 64,
	STEPS_OF_A_TURN = 8,
};

static struct {
	struct spokei_world world;
	struct spokei_world_process processes[PROCESSES];
	struct spokei_faults faulty[PROCESSES];
	struct spoke_engine *engines[PROCESSES];
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	struct secure secure;
	struct spoke_request *held;
	unsigned held_count;
	unsigned ended;
	int error; /* of the last call */
	uint64_t seen;
	uint64_t most; /* handshakes that a turn has begun */
} rig;

static int set_up(void **state)
{
	(void)state;
	memset(&rig, 0, sizeof(rig));
	assert_true(spokei_world_init(&rig.world, 9));
	for (unsigned i = 0; i < PROCESSES; i++) {
		struct spoke_engine_options with = { .env = &rig.faulty[i].env };

		spokei_world_process_init(&rig.processes[i], &rig.world);
		spokei_faults_init(&rig.faulty[i], &rig.processes[i].env);
		assert_int_equal(spoke_engine_new(&with, &rig.engines[i]), 0);
	}
	assert_true(secure_begin(&rig.secure, &rig.world, "tls"));
	return 0;
}

static void pass(uint64_t ns)
{
	spokei_world_run(&rig.world, rig.world.now_ns + ns);
}

static int tear_down(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PROCESSES; i++) {
		spoke_engine_free(rig.engines[i]);
		assert_int_equal(rig.faulty[i].blocks, 0);
	}
	for (unsigned i = 0; i < PROCESSES; i++)
		spokei_world_process_fini(&rig.processes[i]);
	spokei_world_fini(&rig.world);
	return 0;
}

static uint64_t stat_of(unsigned side, enum spoke_stat stat)
{
	return spoke_stat_get(rig.engines[side], stat);
}

/* --- the sides */

static void echo(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value first = { NULL, 0 };

	(void)arg;
	(void)!spoke_cursor_next(&args, &first);
	spoke_reply(request, first);
}

static void hold(struct spoke_request *request, void *arg)
{
	(void)arg;
	assert_int_equal(spoke_request_keep(request), 0);
	rig.held = request;
	rig.held_count++;
}

static void provide(const char *at, const struct spoke_provider_options *options)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo };

	assert_int_equal(spoke_provider_new(rig.engines[SERVER], options, &rig.provider), 0);
	assert_int_equal(spoke_provider_add(rig.provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(rig.provider, at), 0);
}

static void provide_tls(const char *at)
{
	const struct spoke_provider_options options = { .tls = &rig.secure.provider };

	provide(at, &options);
}

static void consume(const char *url, const struct spoke_tls_options *tls)
{
	const struct spoke_consumer_options options = { .url = url, .tls = tls };

	assert_int_equal(spoke_consumer_new(rig.engines[CLIENT], &options, &rig.consumer), 0);
}

static void note_end(void *arg, const struct spoke_result *result)
{
	(void)arg;
	rig.ended++;
	rig.error = result->error;
}

static void call(uint64_t timeout_ns)
{
	const struct spoke_call_options options = { .timeout_ns = timeout_ns };
	struct spoke_method *method;

	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", NULL, &method), 0);
	assert_int_equal(spoke_call(method, (struct spoke_span){ "\xa4text", 5 }, &options,
				    note_end, NULL, NULL),
			 0);
}

/* Returns what an engine's events have said. */
static const char *told(unsigned side)
{
	static char text[SPOKE_EVENTS * SPOKE_EVENT_TEXT];
	struct spoke_event event = { .number = 0 };
	size_t len = 0;

	text[0] = '\0';
	while (spoke_event_get(rig.engines[side], event.number + 1, &event) == 0)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\n", event.text);
	return text;
}

/* --- raw connections */

static const struct spoke_env *raw_env(void)
{
	return &rig.processes[STRANGER].env;
}

static int raw_connect(const char *at)
{
	const struct spoke_env *env = raw_env();
	struct spoke_address address;
	int fd;

	assert_int_equal(env->net->parse(env->ctx, at, &address), 0);
	(void)env->net->connect(env->ctx, &address, &fd);
	pass(MS);
	assert_int_equal(env->net->finish(env->ctx, fd), 0);
	return fd;
}

static void raw_send(int fd, const void *bytes, size_t len)
{
	struct iovec part = spokei_stream_part(bytes, len);

	assert_int_equal(raw_env()->net->write(raw_env()->ctx, fd, &part, 1), len);
	pass(MS);
}

/* Reads all that has come. Returns its length; *ret_ended: the other side has ended. */
static size_t raw_read(int fd, unsigned char *bytes, size_t size, bool *ret_ended)
{
	ssize_t got = raw_env()->net->read(raw_env()->ctx, fd, bytes, size);

	*ret_ended = got >= 0 ? got == 0 : got != -EAGAIN;
	return got > 0 ? (size_t)got : 0;
}

static bool is_closed(int fd)
{
	unsigned char bytes[4096];
	bool ended;

	while (raw_read(fd, bytes, sizeof(bytes), &ended) > 0)
		continue;
	return ended;
}

static void raw_close(int fd)
{
	raw_env()->net->close(raw_env()->ctx, fd);
}

/* Writes a ClientHello. Returns its length. */
static size_t make_hello(unsigned char *bytes, size_t size)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	SSL *ssl = SSL_new(context);
	BIO *out = BIO_new(BIO_s_mem());
	int len;

	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
	SSL_set_connect_state(ssl);
	(void)SSL_do_handshake(ssl);
	len = BIO_read(out, bytes, (int)size);
	assert_in_range(len, 100, size - 1);
	SSL_free(ssl);
	SSL_CTX_free(context);
	return (size_t)len;
}

/* --- a peer with a library of its own */

struct tls_peer {
	SSL_CTX *context; /* NULL: it speaks plain bytes */
	SSL *ssl;
	int fd;
	unsigned char got[4096];
	size_t got_len;
	bool ended; /* the other side's bytes have ended */
};

static void pass_on(struct tls_peer *peer)
{
	unsigned char bytes[16384];
	size_t len;
	int made;

	if (peer->context == NULL) {
		peer->got_len += raw_read(peer->fd, peer->got + peer->got_len,
					  sizeof(peer->got) - peer->got_len, &peer->ended);
		return;
	}
	while ((made = BIO_read(SSL_get_wbio(peer->ssl), bytes, sizeof(bytes))) > 0)
		raw_send(peer->fd, bytes, (size_t)made);
	while ((len = raw_read(peer->fd, bytes, sizeof(bytes), &peer->ended)) > 0)
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
	peer->fd = raw_connect(AT);
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
		pass(MS);
	}
	pass_on(peer);
}

static void say(struct tls_peer *peer, const void *bytes, size_t len)
{
	if (peer->context) {
		assert_int_equal(SSL_write(peer->ssl, bytes, (int)len), len);
		pass_on(peer);
	} else {
		raw_send(peer->fd, bytes, len);
	}
	pass(MS);
}

static void leave(struct tls_peer *peer)
{
	raw_close(peer->fd);
	SSL_free(peer->ssl);
	SSL_CTX_free(peer->context);
	pass(MS);
}

/* --- deadlines */

static void assert_closed_at(int fd, uint64_t begun_ns, uint64_t after_ns)
{
	spokei_world_run(&rig.world, begun_ns + after_ns - 100 * MS);
	assert_false(is_closed(fd));
	spokei_world_run(&rig.world, begun_ns + after_ns + 100 * MS);
	assert_true(is_closed(fd));
}

static void handshake_that_stalls_is_closed_after_its_time(void **state)
{
	unsigned char hello[4096];
	const size_t len = make_hello(hello, sizeof(hello));
	const size_t sent[] = { 0, 1, len - 1, len };

	(void)state;
	provide_tls("dubbo://" AT);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t begun_ns = rig.world.now_ns;
		int fd = raw_connect(AT);

		if (sent[i] > 0)
			raw_send(fd, hello, sent[i]);
		assert_closed_at(fd, begun_ns, 5 * SECOND);
		assert_int_equal(stat_of(SERVER, SPOKE_STAT_CLOSED_HANDSHAKE), i + 1);
		raw_close(fd);
	}
	assert_int_equal(stat_of(SERVER, SPOKE_STAT_HANDSHAKES), 1);
}

/* Byte by byte its time does not begin anew. */
static void handshake_that_drips_is_closed_after_the_same_time(void **state)
{
	unsigned char hello[4096];
	uint64_t begun_ns;
	int fd;

	(void)state;
	(void)make_hello(hello, sizeof(hello));
	provide_tls("dubbo://" AT);
	begun_ns = rig.world.now_ns;
	fd = raw_connect(AT);
	for (unsigned i = 0; i < 48; i++) {
		raw_send(fd, hello + i, 1);
		pass(99 * MS);
	}
	assert_closed_at(fd, begun_ns, 5 * SECOND);
	raw_close(fd);
}

static void optional_listener_waits_for_the_first_byte_as_without_tls(void **state)
{
	uint64_t begun_ns;
	int fd;

	(void)state;
	rig.secure.provider.optional = true;
	provide_tls("dubbo://" AT);
	fd = raw_connect(AT);
	pass(20 * SECOND);
	assert_false(is_closed(fd));
	begun_ns = rig.world.now_ns;
	raw_send(fd, "\x16", 1);
	assert_closed_at(fd, begun_ns, 5 * SECOND);
	raw_close(fd);
}

static void silent_peer_costs_what_it_has_sent(void **state)
{
	unsigned char hello[4096];
	size_t bytes[2];
	size_t base;
	int fd;

	(void)state;
	(void)make_hello(hello, sizeof(hello));
	for (unsigned secures = 0; secures < 2; secures++) {
		const struct spoke_provider_options options = {
			.tls = secures ? &rig.secure.provider : NULL
		};

		provide("dubbo://" AT, &options);
		fd = raw_connect(AT); /* the first of all brings memory for the next ones */
		pass(MS);
		raw_close(fd);
		pass(MS);
		base = rig.faulty[SERVER].bytes;
		fd = raw_connect(AT);
		bytes[secures] = rig.faulty[SERVER].bytes - base;
		if (secures) {
			raw_send(fd, hello, 1);
			assert_in_range(rig.faulty[SERVER].bytes - base - bytes[1], 1, 1024);
			raw_send(fd, hello + 1, 99);
			assert_in_range(rig.faulty[SERVER].bytes - base - bytes[1], 1, 1024);
		}
		raw_close(fd);
		spoke_provider_free(rig.provider);
		pass(SECOND);
	}
	assert_int_equal(bytes[0], bytes[1]);
}

/* --- crowds */

static void good_peer_is_served_when_stalled_handshakes_end(void **state)
{
	unsigned char hello[4096];
	size_t len = make_hello(hello, sizeof(hello));
	int fds[4];

	(void)state;
	rig.secure.provider.handshakes_max = 4;
	provide_tls(LOCAL); /* its peers have no address that counts */
	for (unsigned i = 0; i < 4; i++) {
		fds[i] = raw_connect(LOCAL);
		raw_send(fds[i], hello, len);
	}
	assert_int_equal(stat_of(SERVER, SPOKE_STAT_HANDSHAKES), 4);
	consume("msgpack-rpc+" LOCAL "?interface=demo.Echo", &rig.secure.consumer);
	call(20 * SECOND);
	pass(4 * SECOND);
	assert_int_equal(rig.ended, 0);
	pass(2 * SECOND);
	assert_int_equal(rig.ended, 1);
	assert_int_equal(rig.error, SPOKE_OK);
	for (unsigned i = 0; i < 4; i++)
		raw_close(fds[i]);
}

static void address_with_too_many_handshakes_loses_the_next_ones(void **state)
{
	unsigned char hello[4096];
	size_t len = make_hello(hello, sizeof(hello));
	int fds[3];

	(void)state;
	rig.secure.provider.handshakes_per_peer_max = 2;
	provide_tls("dubbo://" AT);
	for (unsigned i = 0; i < 3; i++) {
		fds[i] = raw_connect(AT);
		raw_send(fds[i], hello, len);
		pass(MS);
		assert_int_equal(is_closed(fds[i]), i == 2);
	}
	assert_int_equal(stat_of(SERVER, SPOKE_STAT_HANDSHAKES_SHED), 1);
	assert_int_equal(stat_of(SERVER, SPOKE_STAT_HANDSHAKES), 2);
	raw_close(fds[0]);
	pass(MS);
	raw_close(fds[2]);
	fds[2] = raw_connect(AT);
	raw_send(fds[2], hello, len);
	assert_false(is_closed(fds[2]));
	raw_close(fds[1]);
	raw_close(fds[2]);
}

static void note_turn(struct spokei_world_process *process)
{
	uint64_t begun = stat_of(SERVER, SPOKE_STAT_HANDSHAKES);

	(void)process;
	if (begun - rig.seen > rig.most)
		rig.most = begun - rig.seen;
	rig.seen = begun;
}

static void crowd_is_let_in_a_few_a_turn(void **state)
{
	struct spoke_consumer *crowd[CROWD];
	const struct spoke_consumer_options options = { .url = "dubbo://" AT "/demo.Echo",
							.tls = &rig.secure.consumer };

	(void)state;
	rig.secure.provider.handshakes_per_peer_max = CROWD;
	provide_tls("dubbo://" AT);
	rig.processes[SERVER].turned = note_turn;
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(spoke_consumer_new(rig.engines[CLIENT], &options, &crowd[i]), 0);
	pass(SECOND);
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(spoke_consumer_ready(crowd[i]), 1);
	assert_int_equal(stat_of(SERVER, SPOKE_STAT_HANDSHAKES_DONE), CROWD);
	assert_in_range(rig.most, 1, STEPS_OF_A_TURN);
	rig.processes[SERVER].turned = NULL;
}

/* --- never plain */

static void consumer_with_tls_says_what_to_do_about_a_plain_provider(void **state)
{
	const struct spoke_provider_options plain = { .tls = NULL };

	(void)state;
	provide("dubbo://" AT, &plain);
	consume("dubbo://" AT "/demo.Echo", &rig.secure.consumer);
	call(2 * SECOND);
	pass(3 * SECOND);
	assert_int_equal(rig.ended, 1);
	assert_int_not_equal(rig.error, SPOKE_OK);
	assert_int_equal(spoke_consumer_ready(rig.consumer), 0);
	assert_non_null(strstr(told(CLIENT), "tls=on"));
}

static void plain_consumer_of_a_provider_with_tls_is_closed_unanswered(void **state)
{
	unsigned char byte;
	bool ended;
	int fd;

	(void)state;
	provide_tls("dubbo://" AT);
	fd = raw_connect(AT);
	raw_send(fd, "\xda", 1);
	assert_int_equal(raw_read(fd, &byte, 1, &ended), 0);
	assert_true(ended);
	assert_non_null(strstr(told(SERVER), "plain bytes"));
	assert_int_equal(stat_of(SERVER, SPOKE_STAT_HANDSHAKES), 0);
	raw_close(fd);
}

/* Every connection that is tried begins with a ClientHello, and the pauses grow. */
static void consumer_with_tls_sends_nothing_but_tls(void **state)
{
	const struct spoke_env *env = raw_env();
	struct spoke_address address;
	unsigned tries[2] = { 0, 0 };
	int listener;

	(void)state;
	assert_int_equal(env->net->parse(env->ctx, AT, &address), 0);
	assert_int_equal(env->net->listen(env->ctx, &address, 16, &listener), 0);
	consume("dubbo://" AT "/demo.Echo", &rig.secure.consumer);
	for (unsigned i = 0; i < 60000; i++) {
		unsigned char bytes[4096] = { 0 };
		bool ended;
		int fd;

		pass(MS);
		if (env->net->accept(env->ctx, listener, &fd, &address) < 0)
			continue;
		pass(5 * MS);
		assert_in_range(raw_read(fd, bytes, sizeof(bytes), &ended), 100, sizeof(bytes));
		assert_int_equal(bytes[0], 0x16);
		raw_send(fd, "\xda\xbb\x22\x14\0\0\0\0", 8); /* the start of a plain reply */
		assert_true(is_closed(fd));
		raw_close(fd);
		tries[i >= 30000]++;
	}
	assert_in_range(tries[0], 2, 30);
	assert_in_range(tries[1], 1, tries[0]);
	raw_close(listener);
	assert_non_null(strstr(told(CLIENT), "does not speak TLS"));
}

static void consumer_without_a_certificate_is_told_and_slows_down(void **state)
{
	uint64_t first;

	(void)state;
	provide_tls("dubbo://" AT);
	rig.secure.consumer.cert = rig.secure.consumer.key = NULL;
	consume("dubbo://" AT "/demo.Echo", &rig.secure.consumer);
	pass(30 * SECOND);
	first = stat_of(SERVER, SPOKE_STAT_HANDSHAKES);
	assert_in_range(first, 2, 30);
	pass(30 * SECOND);
	assert_in_range(stat_of(SERVER, SPOKE_STAT_HANDSHAKES), first + 1, 2 * first);
	assert_int_equal(stat_of(SERVER, SPOKE_STAT_HANDSHAKES_DONE), 0);
	assert_non_null(strstr(told(CLIENT), "tls.cert"));
}

static void consumer_refuses_a_provider_with_another_name(void **state)
{
	(void)state;
	provide_tls("dubbo://" AT);
	rig.secure.consumer.peers = NULL; /* the host of the URL, an address */
	consume("dubbo://" AT "/demo.Echo", &rig.secure.consumer);
	call(2 * SECOND);
	pass(3 * SECOND);
	assert_int_not_equal(rig.error, SPOKE_OK);
	assert_non_null(strstr(told(CLIENT), "tls.peers"));
}

static void optional_listener_serves_both(void **state)
{
	(void)state;
	rig.secure.provider.optional = true;
	provide_tls("dubbo://" AT);
	for (unsigned secures = 0; secures < 2; secures++) {
		consume("dubbo://" AT "/demo.Echo", secures ? &rig.secure.consumer : NULL);
		call(2 * SECOND);
		pass(SECOND);
		assert_int_equal(rig.ended, secures + 1);
		assert_int_equal(rig.error, SPOKE_OK);
	}
	assert_int_equal(stat_of(SERVER, SPOKE_STAT_HANDSHAKES_DONE), 1);
}

/* --- ends */

static const char ask_later[] = "\x94\0\2\xa5"
				"later\x91\xa1y";

static void provide_to_peers(bool secures)
{
	static const struct spoke_handler later = { .method = "later", .handle = hold };
	static const struct spoke_service_options service = { .name = "demo.Later" };
	const struct spoke_provider_options options = {
		.tls = secures ? &rig.secure.provider : NULL,
		.default_service = "demo.Later",
		.heartbeat_ns = 5 * SECOND,
	};

	rig.secure.provider.verify = SPOKE_TLS_VERIFY_NONE;
	provide("dubbo://" AT, &options);
	assert_int_equal(spoke_provider_add(rig.provider, &service, &later, 1), 0);
}

static void peer_that_ends_is_answered_before_it_is_closed(void **state)
{
	struct tls_peer peer;

	(void)state;
	provide_to_peers(true);
	join(&peer, true);
	say(&peer, ask_later, sizeof(ask_later) - 1);
	assert_non_null(rig.held);
	(void)SSL_shutdown(peer.ssl);
	pass_on(&peer);
	pass(SECOND);
	pass_on(&peer);
	assert_false(peer.ended);
	spoke_reply(rig.held, (struct spoke_value){ NULL, 0 });
	pass(MS);
	pass_on(&peer);
	assert_int_equal(peer.got_len, 5); /* [1, 2, nil, nil] */
	assert_memory_equal(peer.got, "\x94\1\2\xc0\xc0", 5);
	assert_true(peer.ended);
	assert_true(SSL_get_shutdown(peer.ssl) & SSL_RECEIVED_SHUTDOWN);
	leave(&peer);
}

static void peer_that_is_cut_off_is_lost_and_half_a_frame_is_not_served(void **state)
{
	struct tls_peer peer;

	(void)state;
	provide_to_peers(true);
	join(&peer, true);
	say(&peer, ask_later, sizeof(ask_later) - 1);
	say(&peer, ask_later, sizeof(ask_later) - 3);
	leave(&peer);
	assert_int_equal(rig.held_count, 1);
	assert_true(spoke_request_abandoned(rig.held));
	assert_int_equal(stat_of(SERVER, SPOKE_STAT_CLOSED_BY_PEER), 1);
	spoke_reply(rig.held, (struct spoke_value){ NULL, 0 });
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
	*spokei_vnet_link(rig.world.net, peer.fd + 1) = deaf;
	begun_ns = rig.world.now_ns;
	say(&peer, heartbeat, sizeof(heartbeat));
	while (stat_of(SERVER, SPOKE_STAT_CLOSED) == 0) {
		assert_true(rig.world.now_ns - begun_ns < 200 * SECOND);
		pass(SECOND);
		if (talks)
			say(&peer, heartbeat, sizeof(heartbeat));
	}
	*ret_stat = SPOKE_STAT_COUNT;
	for (unsigned i = 0; i < SPOKE_STAT_COUNT; i++)
		if ((i == SPOKE_STAT_CLOSED_SLOW || i == SPOKE_STAT_CLOSED_SILENT) &&
		    stat_of(SERVER, (enum spoke_stat)i) > 0)
			*ret_stat = (enum spoke_stat)i;
	begun_ns = rig.world.now_ns - begun_ns;
	leave(&peer);
	return begun_ns;
}

static void peer_that_does_not_read_is_judged_as_without_tls(void **state)
{
	for (unsigned talks = 0; talks < 2; talks++) {
		enum spoke_stat stats[2];
		uint64_t times_ns[2];

		for (unsigned secures = 0; secures < 2; secures++) {
			if (talks || secures) {
				(void)tear_down(state);
				(void)set_up(state);
			}
			times_ns[secures] = time_of_a_deaf_peer(secures, talks, &stats[secures]);
		}
		assert_int_equal(stats[0], stats[1]);
		assert_int_not_equal(stats[0], SPOKE_STAT_COUNT);
		assert_in_range(times_ns[1], times_ns[0] - SECOND, times_ns[0] + SECOND);
	}
}

static void freeing_an_open_link_sends_nothing(void **state)
{
	uint64_t writes[2];

	(void)state;
	provide_tls("dubbo://" AT);
	consume("dubbo://" AT "/demo.Echo", &rig.secure.consumer);
	call(SECOND);
	pass(SECOND);
	assert_int_equal(rig.error, SPOKE_OK);
	/* In a child of fork() it would end the link of the parent. */
	for (unsigned side = 0; side < 2; side++) {
		writes[side] = rig.faulty[side].calls[SPOKEI_FAULTS_WRITE];
		spoke_engine_free(rig.engines[side]);
		rig.engines[side] = NULL;
		assert_int_equal(rig.faulty[side].calls[SPOKEI_FAULTS_WRITE], writes[side]);
	}
}

static void free_side(unsigned side)
{
	spoke_engine_free(rig.engines[side]);
	rig.engines[side] = NULL;
}

static void each_side_may_be_freed_at_any_moment_of_a_handshake(void **state)
{
	for (unsigned how = 0; how < 4; how++) {
		for (unsigned steps = 0; steps < 40; steps++) {
			if (how > 0 || steps > 0) {
				(void)tear_down(state);
				(void)set_up(state);
			}
			provide_tls("dubbo://" AT);
			consume("dubbo://" AT "/demo.Echo", &rig.secure.consumer);
			call(SECOND);
			for (unsigned i = 0; i < steps; i++)
				(void)spokei_world_step(&rig.world, rig.world.now_ns + SECOND);
			if (how == 0)
				spoke_consumer_free(rig.consumer);
			else if (how == 1)
				spoke_provider_free(rig.provider);
			else
				free_side(how == 2 ? CLIENT : SERVER);
			pass(2 * SECOND);
			assert_int_equal(rig.ended, 1);
		}
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(handshake_that_stalls_is_closed_after_its_time),
		TEST(handshake_that_drips_is_closed_after_the_same_time),
		TEST(optional_listener_waits_for_the_first_byte_as_without_tls),
		TEST(silent_peer_costs_what_it_has_sent),
		TEST(good_peer_is_served_when_stalled_handshakes_end),
		TEST(address_with_too_many_handshakes_loses_the_next_ones),
		TEST(crowd_is_let_in_a_few_a_turn),
		TEST(consumer_with_tls_says_what_to_do_about_a_plain_provider),
		TEST(plain_consumer_of_a_provider_with_tls_is_closed_unanswered),
		TEST(consumer_with_tls_sends_nothing_but_tls),
		TEST(consumer_without_a_certificate_is_told_and_slows_down),
		TEST(consumer_refuses_a_provider_with_another_name),
		TEST(optional_listener_serves_both),
		TEST(peer_that_ends_is_answered_before_it_is_closed),
		TEST(peer_that_is_cut_off_is_lost_and_half_a_frame_is_not_served),
		TEST(peer_that_does_not_read_is_judged_as_without_tls),
		TEST(freeing_an_open_link_sends_nothing),
		TEST(each_side_may_be_freed_at_any_moment_of_a_handshake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
