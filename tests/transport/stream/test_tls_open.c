/* SPDX-License-Identifier: Apache-2.0 */
/* Handshakes of TLS streams: every cut of them, and peers that speak something else. */
#include "core/engine/engine.h"
#include "tests/support/test.h"
#include "tests/transport/stream/tlsrig.h"

#include <openssl/err.h>

#include <errno.h>
#include <string.h>

enum {
	ROOM = 262144,
	RECORD_HEAD = 5,
};

static const struct tlsrig_setting accepting = { .accepts = true };
static const struct tlsrig_setting connecting = { .accepts = false };

static struct tlsrig rig;
static unsigned char bytes[ROOM];

static size_t make_hello(void)
{
	tlsrig_step(&rig);
	return tlsrig_made(&rig, bytes, sizeof(bytes));
}

/* --- the order of a turn */

static void (*ready)(struct spoke_watch *watch, unsigned io);
static struct spokei_task behind;
static struct spokei_task behind_the_step;
static uint64_t settled_ns;

static void note_settled(struct spokei_task *task)
{
	(void)task;
	settled_ns = spokei_engine_settled(rig.engine);
}

static void go_behind_the_step(struct spokei_task *task)
{
	(void)task;
	spokei_run_settling(rig.engine, &behind);
}

static void take_long(struct spoke_watch *watch, unsigned io)
{
	watch->ready = ready;
	spokei_world_hold(&rig.process, 5 * TLSRIG_MS);
	ready(watch, io);
}

static void read_and_go_on(struct spoke_watch *watch, unsigned io)
{
	ready(watch, io);
	watch->ready = take_long;
	behind.run = note_settled;
	behind_the_step.run = go_behind_the_step;
	spokei_run_soon(rig.engine, &behind_the_step);
}

/* A step takes its time, and may call users. A call that they make must not time out early. */
TEST(tasks_behind_a_step_read_the_clock_anew)
{
	uint64_t begun_ns;
	size_t len;

	tlsrig_begin(&rig, &accepting);
	len = make_hello();
	ready = rig.stream.watch.ready;
	rig.stream.watch.ready = read_and_go_on;
	settled_ns = 0;
	begun_ns = rig.world.now_ns;
	tlsrig_send(&rig, bytes, len);
	spokei_world_run(&rig.world, begun_ns + 10 * TLSRIG_MS);
	assert_true(settled_ns >= begun_ns + 5 * TLSRIG_MS);
	tlsrig_end(&rig);
}

/* --- every cut */

TEST(hello_that_comes_byte_by_byte_opens_the_stream)
{
	size_t len;

	tlsrig_begin(&rig, &accepting);
	len = make_hello();
	tlsrig_drip(&rig, bytes, len - 1);
	assert_null(tlsrig_link(&rig));
	tlsrig_send(&rig, bytes + len - 1, 1);
	tlsrig_hear(&rig);
	tlsrig_open(&rig);
	tlsrig_end(&rig);
}

/* Sends one record as several. */
static void send_in_records(const unsigned char *record, size_t len, size_t piece)
{
	unsigned char part[ROOM];

	for (size_t at = RECORD_HEAD; at < len; at += piece) {
		size_t take = piece < len - at ? piece : len - at;

		memcpy(part, record, 3);
		part[3] = (unsigned char)(take >> 8);
		part[4] = (unsigned char)take;
		memcpy(part + RECORD_HEAD, record + at, take);
		tlsrig_send(&rig, part, RECORD_HEAD + take);
	}
}

TEST(hello_in_three_records_opens_the_stream)
{
	size_t len;

	tlsrig_begin(&rig, &accepting);
	len = make_hello();
	send_in_records(bytes, len, (len - RECORD_HEAD + 2) / 3);
	tlsrig_hear(&rig);
	tlsrig_open(&rig);
	tlsrig_end(&rig);
}

TEST(hello_in_too_many_records_is_refused)
{
	size_t len;

	tlsrig_begin(&rig, &accepting);
	len = make_hello();
	send_in_records(bytes, len, 4);
	assert_int_equal(rig.status, -EPROTO);
	tlsrig_end(&rig);
}

static int add_padding(SSL *ssl, unsigned type, unsigned context, const unsigned char **out,
		       size_t *len, X509 *cert, size_t index, int *alert, void *arg)
{
	static const unsigned char padding[1800];

	(void)ssl, (void)type, (void)context, (void)cert, (void)index, (void)alert, (void)arg;
	*out = padding;
	*len = sizeof(padding);
	return 1;
}

static void pad_hello(SSL_CTX *context)
{
	assert_int_equal(SSL_CTX_add_custom_ext(context, 65280, SSL_EXT_CLIENT_HELLO, add_padding,
						NULL, NULL, NULL, NULL),
			 1);
}

TEST(long_hello_opens_the_stream)
{
	const struct tlsrig_setting setting = { .accepts = true, .set_context = pad_hello };
	size_t len;

	tlsrig_begin(&rig, &setting);
	len = make_hello();
	assert_in_range(len, 2000, 4000);
	tlsrig_send(&rig, bytes, len / 2);
	tlsrig_send(&rig, bytes + len / 2, len - len / 2);
	tlsrig_hear(&rig);
	tlsrig_open(&rig);
	tlsrig_end(&rig);
}

TEST(handshake_in_single_bytes_opens_a_connecting_stream)
{
	tlsrig_begin(&rig, &connecting);
	for (unsigned i = 0; i < 4; i++) {
		tlsrig_hear(&rig);
		if (rig.peer_status != SSL_ERROR_NONE)
			tlsrig_step(&rig);
		tlsrig_drip(&rig, bytes, tlsrig_made(&rig, bytes, sizeof(bytes)));
	}
	tlsrig_open(&rig);
	tlsrig_end(&rig);
}

TEST(data_beside_the_end_of_the_handshake_is_read_in_that_turn)
{
	tlsrig_begin(&rig, &accepting);
	tlsrig_step(&rig);
	tlsrig_pass(&rig);
	tlsrig_step(&rig); /* makes the Finished */
	assert_int_equal(rig.peer_status, SSL_ERROR_NONE);
	tlsrig_peer_write(&rig, "first", 5);
	tlsrig_pass(&rig);
	assert_int_equal(rig.status, 0);
	assert_int_equal(rig.got_len, 5);
	assert_memory_equal(rig.got, "first", 5);
	assert_int_equal(rig.first_turn, rig.opened_turn);
	tlsrig_end(&rig);
}

TEST(data_that_the_provider_sends_at_once_is_read_as_it_opens)
{
	size_t took = 0;
	char byte;

	tlsrig_begin(&rig, &connecting);
	tlsrig_hear(&rig);
	/* A server may write behind its own Finished; the functions are named after the client's
	 * early data, of which there is none. */
	assert_int_equal(SSL_read_early_data(rig.peer, &byte, 1, &took),
			 SSL_READ_EARLY_DATA_FINISH);
	assert_int_equal(SSL_write_early_data(rig.peer, "first", 5, &took), 1);
	tlsrig_pass(&rig);
	assert_int_equal(rig.status, 0);
	assert_int_equal(rig.got_len, 5);
	assert_int_equal(rig.first_turn, rig.opened_turn);
	tlsrig_end(&rig);
}

/* --- others */

static void assert_refused_in_silence(const void *first, size_t len, size_t decides)
{
	tlsrig_begin(&rig, &accepting);
	tlsrig_send(&rig, first, decides - 1);
	assert_int_equal(rig.status, TLSRIG_OPENING);
	tlsrig_send(&rig, (const char *)first + decides - 1, 1);
	assert_int_equal(rig.status, -EPROTO);
	assert_null(tlsrig_link(&rig));
	tlsrig_hear(&rig);
	assert_int_equal(rig.answered, 0);
	tlsrig_end(&rig);
	tlsrig_begin(&rig, &accepting);
	tlsrig_send(&rig, first, len);
	assert_int_equal(rig.status, -EPROTO);
	tlsrig_hear(&rig);
	assert_int_equal(rig.answered, 0);
	tlsrig_end(&rig);
}

TEST(peer_without_tls_is_refused_at_the_byte_that_decides)
{
	assert_refused_in_silence("\xda\xbb\xc2\0\0\0\0\0\0\0\0\1\0\0\0\0", 16, 1);
	assert_refused_in_silence("GET / HTTP/1.1\r\n\r\n", 18, 1);
	assert_refused_in_silence("\x80\x2e\1\0\2\0\x15\0\0\0\x10", 11, 1); /* SSL 2 */
	assert_refused_in_silence("\x16\2\0\0\x10", 5, 2);
	assert_refused_in_silence("\x16\3\1\0\x10\2\0\0\x0c", 9, 6);      /* a ServerHello */
	assert_refused_in_silence("\x16\3\1\x40\1\1", 6, 5);              /* a record of 16,385 B */
	assert_refused_in_silence("\x16\3\1\0\x10\1\2\0\0", 9, 9);        /* it claims 131 KB */
	assert_refused_in_silence("\x16\3\1\0\0", 5, 5);                  /* an empty record */
	assert_refused_in_silence("\x16\3\1\0\1\1\x17\3\3\0\1\0", 12, 7); /* data inside */
}

TEST(plain_peer_of_an_optional_stream_is_read_as_it_is)
{
	const struct tlsrig_setting setting = { .accepts = true, .or_plain = true };

	tlsrig_begin(&rig, &setting);
	rig.piece = 3;
	tlsrig_send(&rig, "\xda\xbb plain", 8);
	assert_int_equal(rig.status, 0);
	tlsrig_send(&rig, " and more", 9);
	assert_int_equal(rig.got_len, 17);
	assert_memory_equal(rig.got, "\xda\xbb plain and more", 17);
	assert_ptr_equal(rig.stream.kind, &spokei_stream_socket);
	tlsrig_end(&rig);
}

TEST(optional_stream_opens_for_tls)
{
	const struct tlsrig_setting setting = { .accepts = true, .or_plain = true };

	tlsrig_begin(&rig, &setting);
	tlsrig_open(&rig);
	tlsrig_peer_write(&rig, "x", 1);
	tlsrig_pass(&rig);
	assert_int_equal(rig.got_len, 1);
	tlsrig_end(&rig);
}

TEST(optional_stream_never_returns_from_tls_to_plain)
{
	const struct tlsrig_setting setting = { .accepts = true, .or_plain = true };

	tlsrig_begin(&rig, &setting);
	tlsrig_send(&rig, "\x16", 1);
	tlsrig_send(&rig, "\xda\xbb", 2);
	assert_int_equal(rig.status, -EPROTO);
	tlsrig_end(&rig);
}

TEST(connecting_stream_meets_plain_bytes)
{
	tlsrig_begin(&rig, &connecting);
	tlsrig_send(&rig, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
	assert_int_equal(rig.status, -EPROTO);
	assert_non_null(strstr(rig.stream.kind->why(&rig.stream), "does not speak TLS"));
	tlsrig_end(&rig);
}

TEST(wrong_record_behind_a_good_one_is_no_plain_peer)
{
	size_t len;

	tlsrig_begin(&rig, &connecting);
	tlsrig_hear(&rig);
	tlsrig_step(&rig);
	(void)tlsrig_made(&rig, bytes, sizeof(bytes));
	len = RECORD_HEAD + ((size_t)bytes[3] << 8 | bytes[4]);
	tlsrig_send(&rig, bytes, len);
	tlsrig_send(&rig, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
	tlsrig_hang_up(&rig);
	assert_int_equal(rig.status, -EPROTO);
	assert_null(strstr(rig.stream.kind->why(&rig.stream), "tls=off"));
	tlsrig_end(&rig);
}
