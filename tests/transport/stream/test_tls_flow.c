/* SPDX-License-Identifier: Apache-2.0 */
/* Open TLS streams: every cut, keys that either side changes, and descriptors that take little. */
#include "tests/support/test.h"
#include "tests/transport/stream/tlsrig.h"

#include <spoke/engine.h>
#include <spoke/stats.h>

#include <openssl/err.h>

#include <errno.h>
#include <string.h>

enum {
	ROOM = 1 << 20,
	LARGE = 300000,
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

/* --- reading */

TEST(same_bytes_come_for_every_cut_of_three_records)
{
	size_t len = 1;

	for (size_t cut = 1; cut < len || cut == 1; cut++) {
		len = make("a", 1);
		len += (tlsrig_peer_write(&rig, "bcd", 3),
			tlsrig_made(&rig, wire + len, sizeof(wire) - len));
		len += (tlsrig_peer_write(&rig, "e", 1),
			tlsrig_made(&rig, wire + len, sizeof(wire) - len));
		rig.got_len = 0;
		tlsrig_send(&rig, wire, cut);
		tlsrig_send(&rig, wire + cut, len - cut);
		assert_came("abcde", 5);
	}
}

TEST(same_bytes_come_in_single_bytes)
{
	tlsrig_drip(&rig, wire, make("abcde", 5));
	assert_came("abcde", 5);
}

TEST(ten_thousand_records_in_one_read_give_all_their_bytes)
{
	static const size_t pieces[] = { 0, 1, 7, 20000, 65536 };

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		rig.piece = pieces[i];
		rig.got_len = 0;
		rig.reads = 0;
		rig.idle_reads = 0;
		for (size_t at = 0; at < 10000; at++)
			tlsrig_peer_write(&rig, text + at, 1);
		tlsrig_pass(&rig);
		assert_came(text, 10000);
		assert_in_range(rig.reads, 1, 10000 + rig.idle_reads);
		if (pieces[i] == 0 || pieces[i] > 1000)
			assert_in_range(rig.idle_reads, 0, 10);
	}
}

TEST(large_records_come_through_reads_of_any_size)
{
	static const size_t pieces[] = { 0, 1000, 16384, 16385, 33000, 40000, 65536, 100000 };

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		rig.piece = pieces[i];
		rig.got_len = 0;
		tlsrig_peer_write(&rig, text, LARGE);
		for (unsigned pass = 0; pass < 4; pass++)
			tlsrig_pass(&rig);
		assert_came(text, LARGE);
	}
}

TEST(nothing_that_came_is_left_without_being_pending)
{
	rig.paused = true;
	tlsrig_send(&rig, wire, make(text, 50000));
	assert_int_equal(rig.got_len, 0);
	rig.paused = false;
	tlsrig_watch(&rig);
	tlsrig_run(&rig);
	assert_came(text, 50000);
	assert_int_equal(spokei_stream_pending(&rig.stream), 0);
}

TEST(message_of_one_turn_costs_one_read_and_one_write)
{
	uint64_t reads;
	uint64_t writes;

	reads = rig.faulty.calls[SPOKEI_FAULTS_READ];
	writes = rig.faulty.calls[SPOKEI_FAULTS_WRITE];
	tlsrig_send(&rig, wire, make(text, 65536));
	assert_came(text, 65536);
	assert_int_equal(tlsrig_write(&rig, text, 65536), 65536);
	assert_int_equal(rig.faulty.calls[SPOKEI_FAULTS_READ] - reads, 1);
	assert_int_equal(rig.faulty.calls[SPOKEI_FAULTS_WRITE] - writes, 1);
}

/* --- keys */

static void change_key(int wanted)
{
	ERR_clear_error();
	assert_int_equal(SSL_key_update(rig.peer, wanted), 1);
	assert_int_equal(SSL_do_handshake(rig.peer), 1);
}

TEST(peer_may_change_its_keys_now_and_then)
{
	for (unsigned i = 0; i < 10; i++) {
		change_key(i % 2 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
		tlsrig_peer_write(&rig, text + i, 1);
	}
	tlsrig_pass(&rig);
	assert_came(text, 10);
	assert_int_equal(tlsrig_write(&rig, "y", 1), 1);
	tlsrig_hear(&rig);
	assert_int_equal(tlsrig_peer_read(&rig, came, sizeof(came)), 1);
}

TEST(peer_that_changes_its_keys_each_second_goes_on)
{
	for (unsigned i = 0; i < 200; i++) {
		change_key(SSL_KEY_UPDATE_NOT_REQUESTED);
		tlsrig_pass(&rig);
		spokei_world_run(&rig.world, rig.world.now_ns + 1000 * TLSRIG_MS);
	}
	tlsrig_send(&rig, wire, make("x", 1));
	assert_came("x", 1);
}

TEST(peer_that_changes_its_keys_too_often_is_closed)
{
	for (unsigned i = 0; i < 200; i++)
		change_key(SSL_KEY_UPDATE_NOT_REQUESTED);
	tlsrig_peer_write(&rig, "x", 1);
	tlsrig_pass(&rig);
	assert_int_equal(rig.got_len, 0);
	assert_int_equal(rig.ended, -EPROTO);
	assert_non_null(strstr(rig.stream.kind->why(&rig.stream), "keys too often"));
}

TEST(flood_of_wanted_keys_costs_as_many_answers_as_are_allowed)
{
	const struct spokei_vnet_link deaf = { .capacity = 1, .eagain_permille = 999 };
	enum {
		ALLOWED = 34,
		ANSWER = 27
	};

	set_link(&deaf);
	for (unsigned i = 0; i < 9000; i++)
		change_key(SSL_KEY_UPDATE_REQUESTED);
	rig.reads = 0;
	tlsrig_send(&rig, wire, tlsrig_made(&rig, wire, sizeof(wire)));
	assert_int_equal(rig.ended, -EPROTO);
	assert_int_equal(rig.reads, 1);
	assert_in_range(spokei_buffer_len(&tlsrig_link(&rig)->pipe.lag), 1, ALLOWED * ANSWER);
}

TEST(key_that_changes_while_output_waits_loses_nothing)
{
	const struct spokei_vnet_link slow = { .capacity = 1000 };
	size_t len = 0;

	set_link(&slow);
	assert_int_equal(tlsrig_write(&rig, text, 50000), 50000);
	change_key(SSL_KEY_UPDATE_REQUESTED);
	tlsrig_peer_write(&rig, "x", 1);
	tlsrig_send(&rig, wire, tlsrig_made(&rig, wire, sizeof(wire)));
	assert_came("x", 1);
	for (unsigned i = 0; i < 300 && len < 50005; i++) {
		tlsrig_hear(&rig);
		len += tlsrig_peer_read(&rig, came + len, sizeof(came) - len);
		if (len == 50000)
			assert_int_equal(tlsrig_write(&rig, "again", 5), 5);
	}
	assert_int_equal(len, 50005);
	assert_memory_equal(came, text, 50000);
	assert_memory_equal(came + 50000, "again", 5);
}

/* --- writing */

static void hear_all(size_t expected)
{
	size_t len = 0;

	for (unsigned i = 0; i < 4000 && len < expected; i++) {
		tlsrig_hear(&rig);
		len += tlsrig_peer_read(&rig, came + len, sizeof(came) - len);
	}
	assert_int_equal(len, expected);
	assert_memory_equal(came, text, len);
}

TEST(short_parts_share_a_record_and_long_ones_fill_theirs)
{
	struct iovec parts[] = {
		spokei_stream_part(text, 10),        spokei_stream_part(text + 10, 0),
		spokei_stream_part(text + 10, 90),   spokei_stream_part(text + 100, 40000),
		spokei_stream_part(text + 40100, 1),
	};
	uint64_t before;

	before = spoke_stat_get(rig.engine, SPOKE_STAT_TLS_RECORDS_WRITTEN);
	spokei_engine_refresh(rig.engine);
	assert_int_equal(rig.stream.kind->write(&rig.stream, parts, 3), 100);
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_TLS_RECORDS_WRITTEN) - before, 1);
	assert_int_equal(rig.stream.kind->write(&rig.stream, parts + 3, 2), 40001);
	assert_in_range(spoke_stat_get(rig.engine, SPOKE_STAT_TLS_RECORDS_WRITTEN) - before, 4, 5);
	hear_all(40101);
}

TEST(one_write_takes_no_more_than_the_scratch_has_room_for)
{
	ssize_t took;

	took = tlsrig_write(&rig, text, LARGE);
	assert_int_equal(took, SPOKEI_TLS_WRITE_RECORDS * SPOKEI_TLS_RECORD);
	assert_int_equal(tlsrig_write(&rig, text + took, (size_t)(LARGE - took)), LARGE - took);
	hear_all(LARGE);
}

TEST(descriptor_that_takes_little_loses_nothing)
{
	const struct spokei_vnet_link slow = { .write_max = 40, .eagain_permille = 500 };
	size_t done = 0;

	set_link(&slow);
	while (done < 60000) {
		ssize_t took = tlsrig_write(&rig, text + done,
					    60000 - done < 5000 ? 60000 - done : 5000);

		assert_true(took > 0 || took == -EAGAIN);
		done += took > 0 ? (size_t)took : 0;
		tlsrig_run(&rig);
	}
	hear_all(60000);
}

TEST(peer_that_does_not_read_bounds_what_waits)
{
	const struct spokei_vnet_link deaf = { .capacity = 1024 };
	size_t done = 0;
	const struct spokei_buffer *lag = &tlsrig_link(&rig)->pipe.lag;

	set_link(&deaf);
	for (unsigned i = 0; i < 100; i++) {
		ssize_t took = tlsrig_write(&rig, text, LARGE);

		done += took > 0 ? (size_t)took : 0;
		tlsrig_run(&rig);
		assert_in_range(spokei_buffer_len(lag), 1, SPOKEI_TLS_LAG_MAX);
		assert_in_range(lag->capacity, 1, 2 * SPOKEI_TLS_LAG_MAX);
	}
	assert_int_equal(done, SPOKEI_TLS_WRITE_RECORDS * SPOKEI_TLS_RECORD);
	assert_int_equal(rig.broken, 0);
	assert_int_equal(rig.stream.kind->flush(&rig.stream), -EAGAIN);
	assert_true(rig.stream.kind->wants(&rig.stream, 0) & SPOKE_IO_WRITE);
}

TEST(output_that_is_gone_leaves_no_memory)
{
	const struct spokei_vnet_link deaf = { .capacity = 1024 };

	set_link(&deaf);
	assert_int_equal(tlsrig_write(&rig, text, 60000), 60000);
	assert_non_null(tlsrig_link(&rig)->pipe.lag.bytes);
	hear_all(60000);
	tlsrig_run(&rig);
	assert_null(tlsrig_link(&rig)->pipe.lag.bytes);
	assert_null(tlsrig_link(&rig)->pipe.raw.bytes);
	assert_int_equal(rig.stream.kind->wants(&rig.stream, 0), 0);
}

TEST(few_streams_keep_buffers_and_the_oldest_gives_way)
{
	enum {
		STREAMS = 100,
		KEPT = 64,
	};
	static struct spokei_tls_link links[STREAMS];

	spokei_world_run(&rig.world, rig.world.now_ns + 3000 * TLSRIG_MS);
	assert_int_equal(rig.tls->warm_count, 0);
	for (unsigned i = 0; i < STREAMS; i++) {
		links[i] = (struct spokei_tls_link){ .tls = rig.tls };
		spokei_tls_use(&links[i]);
		spokei_tls_use(&links[i]);
		assert_int_equal(rig.tls->warm_count, i < KEPT ? i + 1 : KEPT);
	}
	for (unsigned i = 0; i < STREAMS; i++)
		assert_int_equal(links[i].warm.next != NULL, i >= STREAMS - KEPT);
	spokei_world_run(&rig.world, rig.world.now_ns + 3000 * TLSRIG_MS);
	assert_int_equal(rig.tls->warm_count, 0);
}

/* --- own keys that a stream changes, as the peer sees it */

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
