/* SPDX-License-Identifier: Apache-2.0 */
/* Open TLS streams: ends of each kind, and damage to their bytes. */
#include "tests/support/test.h"
#include "tests/transport/stream/tlsrig.h"

#include <spoke/engine.h>
#include <spoke/stats.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	ROOM = 1 << 20,
	ALERT_UNEXPECTED_MESSAGE = 10,
	ALERT_BAD_RECORD = 20,
	ALERT_OVERFLOW = 22,
	RECORD_HEAD = 5,
	SECRET = 32, /* of a suite with SHA-256 */
	KEY = 16,
	NONCE = 12,
	TAG = 16,
	EMPTY_RECORDS = 32, /* that are accepted in a row */
};

static void note_secrets(SSL_CTX *context);

static const struct tlsrig_setting accepting = { .accepts = true, .set_context = note_secrets };

static struct tlsrig rig;
static unsigned char wire[ROOM];
static unsigned char text[ROOM];
static unsigned char came[ROOM];

STEP(set_up)
{
	tlsrig_begin(&rig, &accepting);
	tlsrig_open(&rig);
	for (size_t i = 0; i < ROOM; i++)
		text[i] = (unsigned char)(i * 7 + i / 251);
}

STEP(tear_down)
{
	tlsrig_end(&rig);
}

FIXTURE(set_up, tear_down);

static size_t make(const void *bytes, size_t len)
{
	tlsrig_peer_write(&rig, bytes, len);
	return tlsrig_made(&rig, wire, sizeof(wire));
}

static void assert_came(const void *bytes, size_t len)
{
	assert_int_equal(rig.got_len, len);
	assert_memory_equal(rig.got, bytes, len);
}

static void set_link(const struct spokei_vnet_link *link)
{
	*spokei_vnet_link(rig.world.net, rig.stream.watch.fd) = *link;
}

/* --- records that no library makes */

static unsigned char secret[SECRET]; /* of the peer's keys */

static void note_secret(const SSL *ssl, const char *line)
{
	static const char name[] = "CLIENT_TRAFFIC_SECRET_0 ";
	const char *digits = strrchr(line, ' ') + 1;
	size_t len;

	(void)ssl;
	if (strncmp(line, name, strlen(name)) == 0)
		assert_int_equal(OPENSSL_hexstr2buf_ex(secret, sizeof(secret), &len, digits, '\0'),
				 1);
}

static void note_secrets(SSL_CTX *context)
{
	SSL_CTX_set_keylog_callback(context, note_secret);
}

/* HKDF-Expand-Label() of RFC 8446 without a context. */
static void derive(const char *label, unsigned char *out, size_t size)
{
	unsigned char info[64];
	unsigned char digest[SECRET];
	int len = snprintf((char *)info, sizeof(info), "%c%c%ctls13 %s", 0, (int)size,
			   (int)(6 + strlen(label)), label);

	info[len++] = 0; /* bytes of the context */
	info[len++] = 1; /* number of the block */
	assert_non_null(HMAC(EVP_sha256(), secret, SECRET, info, (size_t)len, digest, NULL));
	memcpy(out, digest, size);
}

/* Writes a record of data that is the peer's record of this number. Returns its length. */
static size_t seal(unsigned char number, const char *data, unsigned char *out)
{
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
	const size_t plain_len = strlen(data) + 1; /* with the type behind it */
	unsigned char head[RECORD_HEAD] = { 0x17, 3, 3, 0, (unsigned char)(plain_len + TAG) };
	unsigned char plain[64];
	unsigned char key[KEY];
	unsigned char nonce[NONCE];
	int len;

	memcpy(plain, data, strlen(data));
	plain[strlen(data)] = 0x17;
	derive("key", key, KEY);
	derive("iv", nonce, NONCE);
	nonce[NONCE - 1] ^= number;
	memcpy(out, head, RECORD_HEAD);
	assert_int_equal(EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), NULL, key, nonce), 1);
	assert_int_equal(EVP_EncryptUpdate(context, NULL, &len, head, RECORD_HEAD), 1);
	assert_int_equal(EVP_EncryptUpdate(context, out + RECORD_HEAD, &len, plain, (int)plain_len),
			 1);
	assert_int_equal(EVP_EncryptFinal_ex(context, out + RECORD_HEAD + len, &len), 1);
	assert_int_equal(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, TAG,
					     out + RECORD_HEAD + plain_len),
			 1);
	EVP_CIPHER_CTX_free(context);
	return RECORD_HEAD + plain_len + TAG;
}

TEST(empty_records_in_a_row_are_few)
{
	unsigned char number = 0;
	size_t len = 0;

	assert_string_equal(SSL_get_cipher_name(rig.peer), "TLS_AES_128_GCM_SHA256");
	for (unsigned i = 0; i < EMPTY_RECORDS; i++)
		len += seal(number++, "", wire + len);
	len += seal(number++, "data", wire + len);
	tlsrig_send(&rig, wire, len);
	assert_came("data", 4);
	assert_int_equal(rig.ended, TLSRIG_READING);
	len = 0;
	for (unsigned i = 0; i <= EMPTY_RECORDS; i++)
		len += seal(number++, "", wire + len);
	len += seal(number, "more", wire + len);
	tlsrig_send(&rig, wire, len);
	assert_came("data", 4);
	assert_int_equal(rig.ended, -EPROTO);
	tlsrig_hear(&rig);
	(void)tlsrig_peer_read(&rig, came, sizeof(came));
	assert_int_equal(rig.alert, ALERT_UNEXPECTED_MESSAGE);
}

/* --- ends */

TEST(end_without_close_notify_is_no_end_but_a_loss)
{
	tlsrig_send(&rig, wire, make("whole", 5));
	tlsrig_send(&rig, wire, make("not whole", 9) - 1);
	tlsrig_hang_up(&rig);
	assert_came("whole", 5);
	assert_int_equal(rig.ended, -ECONNRESET);
	assert_non_null(strstr(rig.stream.kind->why(&rig.stream), "close_notify"));
}

TEST(end_between_records_is_a_loss_too)
{
	tlsrig_send(&rig, wire, make("whole", 5));
	tlsrig_hang_up(&rig);
	assert_came("whole", 5);
	assert_int_equal(rig.ended, -ECONNRESET);
}

TEST(peer_that_has_ended_is_still_answered)
{
	assert_int_equal(SSL_shutdown(rig.peer), 0);
	tlsrig_pass(&rig);
	assert_int_equal(rig.ended, 0);
	assert_int_equal(tlsrig_write(&rig, "answer", 6), 6);
	assert_int_equal(rig.stream.kind->shut(&rig.stream), 0);
	tlsrig_hear(&rig);
	assert_int_equal(tlsrig_peer_read(&rig, came, sizeof(came)), 6);
	assert_memory_equal(came, "answer", 6);
	assert_true(SSL_get_shutdown(rig.peer) & SSL_RECEIVED_SHUTDOWN);
	assert_true(rig.peer_ended);
}

TEST(end_that_comes_with_data_is_seen_without_another_byte)
{
	tlsrig_peer_write(&rig, "last", 4);
	assert_int_equal(SSL_shutdown(rig.peer), 0);
	tlsrig_pass(&rig);
	assert_came("last", 4);
	assert_int_equal(rig.ended, 0);
	assert_int_equal(spokei_stream_pending(&rig.stream), 0);
}

TEST(bytes_behind_close_notify_are_ignored)
{
	size_t len;

	assert_int_equal(SSL_shutdown(rig.peer), 0);
	len = tlsrig_made(&rig, wire, sizeof(wire));
	memset(wire + len, 0x55, 1000);
	tlsrig_send(&rig, wire, len + 1000);
	assert_int_equal(rig.ended, 0);
	assert_int_equal(rig.got_len, 0);
	assert_int_equal(spokei_stream_pending(&rig.stream), 0);
}

TEST(ends_of_both_sides_may_cross)
{
	assert_int_equal(SSL_shutdown(rig.peer), 0);
	assert_int_equal(rig.stream.kind->shut(&rig.stream), 0);
	tlsrig_pass(&rig);
	assert_int_equal(rig.ended, 0);
	assert_int_equal(SSL_shutdown(rig.peer), 1);
}

TEST(side_that_has_ended_still_reads)
{
	assert_int_equal(rig.stream.kind->shut(&rig.stream), 0);
	tlsrig_send(&rig, wire, make("more", 4));
	assert_came("more", 4);
	assert_int_equal(rig.ended, TLSRIG_READING);
}

TEST(end_follows_the_bytes_that_wait)
{
	const struct spokei_vnet_link slow = { .capacity = 1000 };
	size_t len = 0;

	set_link(&slow);
	assert_int_equal(tlsrig_write(&rig, text, 100000), 100000);
	assert_int_equal(rig.stream.kind->shut(&rig.stream), 0);
	for (unsigned i = 0; i < 300 && !rig.peer_ended; i++) {
		tlsrig_hear(&rig);
		len += tlsrig_peer_read(&rig, came + len, sizeof(came) - len);
	}
	assert_int_equal(len, 100000);
	assert_memory_equal(came, text, len);
	assert_true(SSL_get_shutdown(rig.peer) & SSL_RECEIVED_SHUTDOWN);
}

/* --- damage */

/* Sends bytes of which no plaintext may come. */
static void assert_damage_is_noticed(const void *bytes, size_t len, int alert)
{
	tlsrig_send(&rig, bytes, len);
	assert_int_equal(rig.got_len, 0);
	assert_int_equal(rig.ended, -EPROTO);
	assert_non_null(rig.stream.kind->why(&rig.stream));
	tlsrig_hear(&rig);
	(void)tlsrig_peer_read(&rig, came, 1);
	assert_int_equal(rig.alert, alert);
	assert_in_range(-tlsrig_write(&rig, "x", 1), 1, 200);
}

TEST(every_flipped_bit_of_a_record_is_noticed)
{
	size_t len = make("x", 1);

	for (size_t bit = 0; bit < len * 8; bit++) {
		if (bit > 0) {
			(void)tear_down(state);
			(void)set_up(state);
			len = make("x", 1);
		}
		wire[bit / 8] ^= (unsigned char)(1 << bit % 8);
		/* Without its last byte a longer record has not come yet. */
		tlsrig_send(&rig, wire, len);
		assert_int_equal(rig.got_len, 0);
		if (rig.ended == TLSRIG_READING)
			tlsrig_hang_up(&rig);
		assert_true(rig.ended < 0);
	}
}

TEST(damaged_tag_is_answered_with_an_alert)
{
	size_t len = make("x", 1);

	wire[len - 1] ^= 1;
	assert_damage_is_noticed(wire, len, ALERT_BAD_RECORD);
}

/* A connection is closed as soon as a read has failed: nothing flushes its stream then. */
TEST(alert_is_out_when_the_read_has_failed)
{
	const struct spoke_env *env = &rig.process.env;
	size_t len = make("x", 1);

	wire[len - 1] ^= 1;
	rig.paused = true;
	tlsrig_send(&rig, wire, len);
	assert_int_equal(rig.stream.kind->read(&rig.stream, came, sizeof(came)), -EPROTO);
	assert_true(env->net->read(env->ctx, rig.fd, came, sizeof(came)) > RECORD_HEAD);
}

TEST(repeated_record_is_refused)
{
	size_t len = make("x", 1);

	tlsrig_send(&rig, wire, len);
	assert_came("x", 1);
	rig.got_len = 0;
	assert_damage_is_noticed(wire, len, ALERT_BAD_RECORD);
}

TEST(left_out_record_is_noticed)
{
	(void)make("x", 1);
	assert_damage_is_noticed(wire, make("y", 1), ALERT_BAD_RECORD);
}

TEST(record_that_is_too_long_is_refused_by_its_head)
{
	assert_damage_is_noticed("\x17\3\3\x42\0", RECORD_HEAD, ALERT_OVERFLOW);
}

TEST(record_of_an_unknown_type_is_refused)
{
	assert_damage_is_noticed("\x99\3\3\0\1x", 6, ALERT_UNEXPECTED_MESSAGE);
}

TEST(plain_record_in_an_open_stream_is_refused)
{
	assert_damage_is_noticed("\x16\3\3\0\4\0\0\0\0", 9, ALERT_UNEXPECTED_MESSAGE);
}

TEST(data_before_the_damage_is_given_first)
{
	size_t len = make("good", 4);

	memset(wire + len, 0x55, 100);
	tlsrig_send(&rig, wire, len + 100);
	assert_came("good", 4);
	assert_int_equal(rig.ended, -EPROTO);
}
