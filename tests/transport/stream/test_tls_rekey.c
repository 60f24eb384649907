/* SPDX-License-Identifier: Apache-2.0 */
/* Open TLS streams change their own keys, as the peer sees it. */
#include "tests/support/test.h"
#include "tests/transport/stream/tlsrig.h"

#include <spoke/engine.h>
#include <spoke/stats.h>

#include <string.h>

enum {
	ROOM = 1 << 20
};

static const struct tlsrig_setting accepting = { .accepts = true };

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

static unsigned new_keys; /* that the peer was told of */
static unsigned wanted;   /* ... with the wish for new keys of its own */

/* Counts the stream's changes of keys as they come to the peer.
 * NOLINTNEXTLINE(readability-function-size): of the library's form */
static void note_new_key(int writes, int version, int type, const void *bytes, size_t len, SSL *ssl,
			 void *arg)
{
	const unsigned char *message = bytes;

	(void)version;
	(void)ssl;
	(void)arg;
	if (writes || type != SSL3_RT_HANDSHAKE || len < 5 || message[0] != SSL3_MT_KEY_UPDATE)
		return;
	new_keys++;
	wanted += message[4] != SSL_KEY_UPDATE_NOT_REQUESTED;
}

static void watch_new_keys(void)
{
	new_keys = 0;
	wanted = 0;
	SSL_set_msg_callback(rig.peer, note_new_key);
}

TEST(own_keys_change_after_their_records_and_nothing_is_lost)
{
	rig.tls->key_records = 100;
	watch_new_keys();
	for (unsigned i = 0; i < 1050; i++) {
		assert_int_equal(tlsrig_write(&rig, text + i, 1), 1);
		tlsrig_peer_write(&rig, text + i, 1);
	}
	tlsrig_pass(&rig);
	assert_int_equal(rig.got_len, 1050);
	assert_memory_equal(rig.got, text, 1050);
	assert_int_equal(tlsrig_peer_read(&rig, came, sizeof(came)), 1050);
	assert_memory_equal(came, text, 1050);
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_TLS_REKEYS), 10);
	assert_int_equal(new_keys, 10);
	assert_int_equal(wanted, 0);
}

TEST(own_keys_change_after_a_day)
{
	const uint64_t day_ns = UINT64_C(86400) * 1000 * TLSRIG_MS;

	watch_new_keys();
	assert_int_equal(tlsrig_write(&rig, "a", 1), 1);
	spokei_world_run(&rig.world, rig.world.now_ns + day_ns);
	tlsrig_peer_write(&rig, "x", 1);
	tlsrig_send(&rig, wire, tlsrig_made(&rig, wire, sizeof(wire))); /* a turn begins */
	assert_int_equal(tlsrig_write(&rig, "b", 1), 1);
	assert_int_equal(tlsrig_write(&rig, "c", 1), 1);
	tlsrig_hear(&rig);
	assert_int_equal(tlsrig_peer_read(&rig, came, sizeof(came)), 3);
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_TLS_REKEYS), 1);
	assert_int_equal(new_keys, 1);
}

static void only_tls_1_2(SSL_CTX *context)
{
	assert_int_equal(SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION), 1);
}

TEST(keys_of_tls_1_2_never_change_and_count_nothing)
{
	const struct tlsrig_setting setting = { .accepts = true,
						.set_context = only_tls_1_2,
						.oldest = 12 };

	tlsrig_end(&rig);
	tlsrig_begin(&rig, &setting);
	tlsrig_open(&rig);
	rig.tls->key_records = 10;
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(tlsrig_write(&rig, text + i, 1), 1);
	tlsrig_hear(&rig);
	assert_int_equal(tlsrig_peer_read(&rig, came, sizeof(came)), 50);
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_TLS_REKEYS), 0);
}

/* The limit of a key counts records, not writes. */
TEST(one_long_write_changes_the_key_in_between)
{
	ssize_t len = 9 * SPOKEI_TLS_RECORD;
	size_t got = 0;

	rig.tls->key_records = 4;
	watch_new_keys();
	assert_int_equal(tlsrig_write(&rig, text, (size_t)len), len);
	for (unsigned i = 0; i < 100 && got < (size_t)len; i++) {
		tlsrig_hear(&rig);
		got += tlsrig_peer_read(&rig, came + got, sizeof(came) - got);
	}
	assert_int_equal(got, len);
	assert_memory_equal(came, text, got);
	assert_int_equal(new_keys, 2);
	assert_int_equal(wanted, 0);
}
