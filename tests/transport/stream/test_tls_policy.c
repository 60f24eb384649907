/* SPDX-License-Identifier: Apache-2.0 */
/* Handshakes of TLS streams: what is refused, how the peer is told, and ends on the way. */
#include "tests/support/test.h"
#include "tests/transport/stream/tlsrig.h"

#include <openssl/err.h>

#include <errno.h>
#include <string.h>

enum {
	ROOM = 262144,
	ALERT_HANDSHAKE_FAILURE = 40,
	ALERT_BAD_CERTIFICATE = 42,
	ALERT_ILLEGAL_PARAMETER = 47,
	ALERT_PROTOCOL_VERSION = 70,
	ALERT_NO_PROTOCOL = 120,
};

static const struct tlsrig_setting accepting = { .accepts = true };

static struct tlsrig rig;
static unsigned char bytes[ROOM];

static size_t make_hello(void)
{
	tlsrig_step(&rig);
	return tlsrig_made(&rig, bytes, sizeof(bytes));
}

/* Reads what the stream has sent, as it is. Returns its length. */
static size_t read_raw(void)
{
	const struct spoke_env *env = &rig.process.env;
	ssize_t got;

	tlsrig_run(&rig);
	got = env->net->read(env->ctx, rig.fd, bytes, sizeof(bytes));
	return got > 0 ? (size_t)got : 0;
}

/* --- policy */

static void only_tls_1_2(SSL_CTX *context)
{
	assert_int_equal(SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION), 1);
}

static void only_tls_1_1(SSL_CTX *context)
{
	SSL_CTX_set_security_level(context, 0);
	assert_int_equal(SSL_CTX_set_min_proto_version(context, TLS1_1_VERSION), 1);
	assert_int_equal(SSL_CTX_set_max_proto_version(context, TLS1_1_VERSION), 1);
}

static void weak_suite(SSL_CTX *context)
{
	SSL_CTX_set_security_level(context, 0);
	only_tls_1_2(context);
	assert_int_equal(SSL_CTX_set_cipher_list(context, "ECDHE-ECDSA-AES128-SHA"), 1);
}

static void offer(SSL_CTX *context, const char *protocols)
{
	assert_int_equal(SSL_CTX_set_alpn_protos(context, (const unsigned char *)protocols,
						 (unsigned)strlen(protocols)),
			 0);
}

static void offer_h2(SSL_CTX *context)
{
	offer(context, "\2h2");
}

static void offer_spoke(SSL_CTX *context)
{
	offer(context, "\2h2\5spoke");
}

static void assert_alert(void (*set_context)(SSL_CTX *context), unsigned oldest, int alert)
{
	const struct tlsrig_setting setting = { .accepts = true,
						.set_context = set_context,
						.oldest = oldest };

	tlsrig_begin(&rig, &setting);
	tlsrig_shake(&rig);
	assert_int_equal(rig.alert, alert);
	assert_int_not_equal(rig.status, 0);
	tlsrig_end(&rig);
}

TEST(version_suite_or_protocol_of_others_is_refused_with_an_alert)
{
	assert_alert(only_tls_1_2, 13, ALERT_PROTOCOL_VERSION);
	assert_alert(only_tls_1_1, 12, ALERT_PROTOCOL_VERSION);
	assert_alert(weak_suite, 12, ALERT_HANDSHAKE_FAILURE);
	assert_alert(offer_h2, 13, ALERT_NO_PROTOCOL);
}

static void assert_opens(void (*set_context)(SSL_CTX *context), unsigned oldest)
{
	const struct tlsrig_setting setting = { .accepts = true,
						.set_context = set_context,
						.oldest = oldest };

	tlsrig_begin(&rig, &setting);
	tlsrig_open(&rig);
	tlsrig_peer_write(&rig, "x", 1);
	tlsrig_pass(&rig);
	assert_int_equal(rig.got_len, 1);
	tlsrig_end(&rig);
}

TEST(peer_without_protocols_or_with_tls_1_2_is_taken)
{
	assert_opens(NULL, 13); /* Java offers no protocol */
	assert_opens(offer_spoke, 13);
	assert_opens(only_tls_1_2, 12);
}

static void only_aes_256(SSL_CTX *context)
{
	assert_int_equal(SSL_CTX_set_ciphersuites(context, TLS1_3_RFC_AES_256_GCM_SHA384), 1);
}

static void prefer_chacha(SSL_CTX *context)
{
	assert_int_equal(SSL_CTX_set_ciphersuites(context, TLS1_3_RFC_CHACHA20_POLY1305_SHA256
						  ":" TLS1_3_RFC_AES_128_GCM_SHA256),
			 1);
}

static void assert_suite(bool accepts, void (*set_context)(SSL_CTX *context), const char *suite)
{
	const struct tlsrig_setting setting = { .accepts = accepts, .set_context = set_context };

	tlsrig_begin(&rig, &setting);
	tlsrig_open(&rig);
	assert_string_equal(SSL_get_cipher_name(rig.peer), suite);
	tlsrig_end(&rig);
}

TEST(fastest_suite_is_chosen_unless_the_peer_has_a_reason)
{
	assert_suite(true, NULL, TLS1_3_RFC_AES_128_GCM_SHA256);
	assert_suite(false, NULL, TLS1_3_RFC_AES_128_GCM_SHA256);
	assert_suite(true, only_aes_256, TLS1_3_RFC_AES_256_GCM_SHA384);
	assert_suite(false, only_aes_256, TLS1_3_RFC_AES_256_GCM_SHA384);
	assert_suite(true, prefer_chacha, TLS1_3_RFC_CHACHA20_POLY1305_SHA256);
}

TEST(renegotiation_is_refused)
{
	const struct tlsrig_setting setting = { .accepts = true,
						.set_context = only_tls_1_2,
						.oldest = 12 };

	tlsrig_begin(&rig, &setting);
	tlsrig_open(&rig);
	assert_int_equal(SSL_renegotiate(rig.peer), 1);
	tlsrig_step(&rig);
	tlsrig_pass(&rig);
	tlsrig_step(&rig);
	assert_int_not_equal(rig.peer_status, SSL_ERROR_NONE);
	tlsrig_end(&rig);
}

/* Offers a key that the stream does not know, so that the peer may send before it is answered. */
static int offer_key(SSL *ssl, const EVP_MD *hash, const unsigned char **id, size_t *len,
		     SSL_SESSION **session)
{
	static const unsigned char suite[] = { 0x13, 0x01 };
	static const unsigned char key[32] = { 1 };

	(void)hash;
	*session = SSL_SESSION_new();
	assert_int_equal(SSL_SESSION_set1_master_key(*session, key, sizeof(key)), 1);
	assert_int_equal(SSL_SESSION_set_cipher(*session, SSL_CIPHER_find(ssl, suite)), 1);
	assert_int_equal(SSL_SESSION_set_protocol_version(*session, TLS1_3_VERSION), 1);
	assert_int_equal(SSL_SESSION_set_max_early_data(*session, 1000), 1);
	*id = (const unsigned char *)"key";
	*len = 3;
	return 1;
}

static void offer_early_data(SSL_CTX *context)
{
	SSL_CTX_set_psk_use_session_callback(context, offer_key);
}

TEST(early_data_is_never_delivered)
{
	const struct tlsrig_setting setting = { .accepts = true, .set_context = offer_early_data };
	size_t wrote;

	tlsrig_begin(&rig, &setting);
	assert_int_equal(SSL_write_early_data(rig.peer, "early", 5, &wrote), 1);
	assert_int_equal(wrote, 5);
	tlsrig_shake(&rig);
	if (rig.status == 0) {
		assert_int_equal(SSL_get_early_data_status(rig.peer), SSL_EARLY_DATA_REJECTED);
		assert_int_equal(SSL_session_reused(rig.peer), 0);
		tlsrig_peer_write(&rig, "late", 4);
		tlsrig_pass(&rig);
		assert_int_equal(rig.got_len, 4);
		assert_memory_equal(rig.got, "late", 4);
	} else {
		assert_int_equal(rig.got_len, 0);
	}
	tlsrig_end(&rig);
}

/* Has a ClientHello offer compression, too. Returns its new length. */
static size_t offer_compression(unsigned char *hello, size_t len)
{
	enum {
		DEFLATE = 1,
		ID = 43, /* length of the session's id */
	};
	size_t at = (size_t)ID + 1 + hello[ID];

	at += 2 + ((size_t)hello[at] << 8 | hello[at + 1]); /* suites */
	assert_int_equal(hello[at], 1);
	assert_int_equal(hello[at + 1], 0);
	memmove(hello + at + 2, hello + at + 1, len - at - 1);
	hello[at] = 2;
	hello[at + 1] = DEFLATE;
	for (size_t field = 4; field <= 8; field += 4) { /* lengths of the record and the message */
		hello[field]++;
		assert_int_not_equal(hello[field], 0);
	}
	return len + 1;
}

TEST(compression_is_not_chosen)
{
	enum {
		ID = 43,
	};
	const struct tlsrig_setting old = { .accepts = true,
					    .set_context = only_tls_1_2,
					    .oldest = 12 };
	const unsigned char *answer;

	tlsrig_begin(&rig, &old);
	tlsrig_send(&rig, bytes, offer_compression(bytes, make_hello()));
	assert_true(read_raw() > ID + 40);
	answer = bytes + ID;
	assert_int_equal(bytes[5], SSL3_MT_SERVER_HELLO);
	assert_int_equal(answer[1 + answer[0] + 2], 0);
	tlsrig_end(&rig);
	tlsrig_begin(&rig, &accepting); /* TLS 1.3 forbids the offer */
	tlsrig_send(&rig, bytes, offer_compression(bytes, make_hello()));
	tlsrig_hear(&rig);
	tlsrig_step(&rig);
	assert_int_equal(rig.alert, ALERT_ILLEGAL_PARAMETER);
	tlsrig_end(&rig);
}

static void keep_sessions(SSL_CTX *context)
{
	(void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT);
}

TEST(no_session_is_resumed_and_no_ticket_is_given)
{
	for (unsigned oldest = 12; oldest <= 13; oldest++) {
		const struct tlsrig_setting setting = {
			.accepts = true,
			.set_context = oldest == 12 ? only_tls_1_2 : keep_sessions,
			.oldest = oldest,
		};
		SSL_SESSION *session;

		(void)state;
		tlsrig_begin(&rig, &setting);
		tlsrig_open(&rig);
		(void)tlsrig_peer_read(&rig, bytes, 1);
		session = SSL_get1_session(rig.peer);
		assert_int_equal(SSL_SESSION_has_ticket(session), 0);
		tlsrig_end(&rig);
		tlsrig_begin(&rig, &setting);
		(void)SSL_set_session(rig.peer, session);
		tlsrig_open(&rig);
		assert_int_equal(SSL_session_reused(rig.peer), 0);
		tlsrig_end(&rig);
		SSL_SESSION_free(session);
	}
}

/* --- the peer is told */

TEST(refused_peer_gets_its_alert_although_it_goes_on_sending)
{
	const struct tlsrig_setting setting = { .accepts = true, .set_context = offer_h2 };

	tlsrig_begin(&rig, &setting);
	tlsrig_send(&rig, bytes, make_hello());
	assert_int_equal(rig.status, TLSRIG_OPENING); /* it is being told */
	assert_null(tlsrig_link(&rig)->pipe.ssl);
	memset(bytes, 0x17, sizeof(bytes));
	tlsrig_send(&rig, bytes, sizeof(bytes));
	tlsrig_hear(&rig);
	assert_true(rig.peer_ended);
	tlsrig_step(&rig);
	assert_int_equal(rig.alert, ALERT_NO_PROTOCOL);
	assert_int_equal(rig.status, TLSRIG_OPENING);
	tlsrig_hang_up(&rig);
	assert_int_equal(rig.status, -EPROTO);
	tlsrig_end(&rig);
}

TEST(peer_that_this_side_refuses_gets_its_alert_and_a_second)
{
	const struct tlsrig_setting setting = { .peers = "dns:other.test" };

	for (unsigned leaves = 0; leaves < 2; leaves++) {
		tlsrig_begin(&rig, &setting);
		for (unsigned i = 0; i < 4 && tlsrig_link(&rig)->error == 0; i++) {
			tlsrig_step(&rig);
			tlsrig_pass(&rig);
		}
		assert_int_equal(rig.status, TLSRIG_OPENING);
		tlsrig_send(&rig, bytes, sizeof(bytes)); /* closing would reset it by now */
		tlsrig_hear(&rig);
		assert_true(rig.peer_ended);
		tlsrig_step(&rig);
		assert_int_equal(rig.alert, ALERT_BAD_CERTIFICATE);
		assert_int_equal(rig.status, TLSRIG_OPENING);
		if (leaves)
			tlsrig_hang_up(&rig);
		else
			spokei_world_run(&rig.world, rig.world.now_ns + 1000 * TLSRIG_MS);
		assert_int_equal(rig.status, -EPROTO);
		assert_non_null(strstr(rig.stream.kind->why(&rig.stream), "tls.peers"));
		tlsrig_end(&rig);
	}
}

TEST(sentence_about_a_failure_belongs_to_its_stream)
{
	struct spokei_stream other;

	tlsrig_begin(&rig, &accepting);
	tlsrig_send(&rig, "x", 1);
	assert_non_null(rig.stream.kind->why(&rig.stream));
	spokei_stream_init(&other, rig.engine, rig.stream.kind, -1, NULL);
	assert_null(other.kind->why(&other));
	tlsrig_end(&rig);
}

TEST(end_during_the_handshake_loses_the_peer)
{
	for (unsigned at = 0; at < 3; at++) {
		tlsrig_begin(&rig, &accepting);
		if (at > 0)
			tlsrig_send(&rig, bytes, make_hello() - (at == 1 ? 1 : 0));
		tlsrig_hang_up(&rig);
		tlsrig_run(&rig);
		assert_int_equal(rig.status, -ECONNRESET);
		assert_int_equal(rig.tls->slots, 0);
		tlsrig_end(&rig);
	}
}

TEST(reset_in_each_state_loses_the_peer)
{
	for (unsigned at = 0; at < 4; at++) {
		tlsrig_begin(&rig, &accepting);
		if (at == 3)
			tlsrig_open(&rig);
		else if (at > 0)
			tlsrig_send(&rig, bytes, make_hello() - (at == 1 ? 1 : 0));
		spokei_vnet_reset(rig.world.net, rig.fd);
		tlsrig_run(&rig);
		if (at == 3) {
			assert_int_equal(rig.ended, -ECONNRESET);
			assert_in_range(-tlsrig_write(&rig, "x", 1), 1, 200);
		} else {
			assert_int_equal(rig.status, -ECONNRESET);
		}
		assert_int_equal(rig.tls->slots, 0);
		tlsrig_end(&rig);
	}
}
