/* SPDX-License-Identifier: Apache-2.0 */
/* Rows 1 to 7 of the table of faults: beginnings and lengths of frames. */
#include "tests/integration/harness.h"
#include "tests/support/test.h"

#include "transport/wire/dubbo/head.h"

#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define HEAD SPOKEI_DUBBO_HEAD_LEN
#define CLOSES_SOON (20 * MS) /* of virtual time, within which no timer expires */

/* Checks that the connection is closed at once, without waiting for a timer. */
static void assert_closed_at_once(struct raw *raw, uint64_t sent_ns)
{
	assert_closed_mutely(raw);
	if (stage_is_virtual(raw->stage))
		assert_true(raw->ended_ns - sent_ns <= CLOSES_SOON);
}

RUNNER(stage_run_rows);

ROW(row_01_incomplete_frame_closes_after_the_frame_time, STAGE_ALL)
{
	static const char frame[] = "\xda\xbb\xdb\0\0\0\0\0\0\0\0\7\0\0\0\x64\2452.0.2";
	struct raw *raws[sizeof(frame) - 1];
	uint64_t sent_ns;

	stage_set_provider(stage, NULL);
	stage_shorten(stage);
	for (size_t i = 0; i < LENGTH(raws); i++)
		raws[i] = raw_connect(stage);
	stage_mark(stage);
	sent_ns = stage_now(stage);
	for (size_t i = 0; i < LENGTH(raws); i++)
		raw_send(raws[i], frame, i + 1);
	assert_second_connection_works(stage);
	for (size_t i = 0; i < LENGTH(raws); i++) {
		assert_closed_mutely(raws[i]);
		assert_true(raws[i]->ended_ns - sent_ns >= stage->limits->frame_ns);
		if (stage_is_virtual(stage))
			assert_true(raws[i]->ended_ns - sent_ns <=
				    stage->limits->frame_ns + CLOSES_SOON);
	}
	assert_closed_times(stage, SPOKE_STAT_CLOSED_FRAME_TIME, LENGTH(raws));
	assert_second_connection_works(stage);
}

ROW(row_01_an_unfinished_array_closes_after_the_frame_time, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	uint64_t sent_ns = stage_now(stage);

	stage_shorten(stage);
	RAW_SEND(raw, "\x94\0\1\244ec");
	assert_second_connection_works(stage);
	assert_closed_mutely(raw);
	assert_true(raw->ended_ns - sent_ns >= stage->limits->frame_ns);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_FRAME_TIME);
}

ROW(row_01_an_unfinished_reply_closes_the_consumers_connection, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message request;
	struct ending ending;

	stage_shorten(stage);
	stage_call(stage, stage->echo, "x", &ending, NULL);
	raw_frame(raw, &request);
	stage_mark(stage);
	RAW_SEND(raw, "\xda\xbb\x1b\x14\0\0");
	assert_second_connection_works(stage);
	assert_ends(stage, &ending, SPOKE_EPROTOCOL);
	assert_true(ending.written);
	assert_closed_mutely(raw);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_FRAME_TIME);
	assert_second_connection_works(stage);
}

/* Single bytes do not extend the time limit of a frame. */
ROW(row_02_frame_in_single_bytes_has_the_same_time_limit, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;
	uint64_t begun_ns = stage_now(stage);
	uint64_t step_ns;
	unsigned sent = HEAD;

	stage_shorten(stage);
	step_ns = stage->limits->frame_ns / 100;
	frames_init(&frames);
	frames_head(&frames, 0xdb, 0, 7, 100000);
	raw_send_buffer(raw, &frames);
	while (!raw->ended) {
		stage_pass(stage, step_ns);
		if (sent % 20 == 0)
			assert_second_connection_works(stage);
		(void)raw_pull(raw);
		if (raw->ended || !RAW_TRY_SEND(raw, "\0"))
			break;
		sent++;
		assert_true(sent < 10000);
	}
	assert_closed_mutely(raw);
	assert_true(raw->ended_ns - begun_ns >= stage->limits->frame_ns);
	if (stage_is_virtual(stage))
		assert_true(raw->ended_ns - begun_ns <= stage->limits->frame_ns + 2 * step_ns);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_FRAME_TIME);
}

/* A sequence of frames in pieces may take longer than the limit of one frame; each of them does
 * not. */
ROW(row_02_each_frame_has_a_time_of_its_own, STAGE_VIRTUAL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;
	const unsigned char *bytes;
	size_t len;
	size_t sent = HEAD;

	frames_init(&frames);
	for (uint64_t id = 0; id < 5; id++)
		frames_request(&frames, id, "echo", "slow");
	bytes = spokei_buffer_data(&frames);
	len = spokei_buffer_len(&frames) / 5;
	raw_send(raw, bytes, sent);
	for (uint64_t id = 0; id < 4; id++) {
		stage_pass(stage, stage->limits->frame_ns * 3 / 4);
		assert_second_connection_works(stage);
		raw_send(raw, bytes + sent, len);
		sent += len;
		assert_reply(raw, id, SPOKEI_DUBBO_OK, NULL);
	}
	raw_send(raw, bytes + sent, 5 * len - sent);
	assert_reply(raw, 4, SPOKEI_DUBBO_OK, NULL);
	spokei_buffer_fini(&frames);
	stage_pass(stage, 3 * stage->limits->frame_ns);
	assert_nothing_closed(stage);
	assert_raw_lives(raw);
}

ROW(row_03_invalid_frame_closes_at_once_without_a_reply, STAGE_ALL)
{
	static const struct {
		const char *bytes;
		size_t len;
	} strangers[] = {
		{ "get / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35 },
		{ "\x16\3\1\2\0\1\0\1\xfc\3\3", 11 }, /* ClientHello of TLS */
		{ "SSH-2.0-OpenSSH_9.2\r\n", 21 },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38 },
		{ "\xda\xbc\xdb\0\0\0\0\0\0\0\0\7\0\0\0\0", 16 },
		{ "\xbb\xda\xdb\0", 4 },
		{ "\x95\0\1\244echo\220\300", 10 },
		{ "\x94\3\1\244echo\220", 9 },                    /* no type of a frame */
		{ "\x94\0\xcf\0\0\0\1\0\0\0\0\244echo\220", 17 }, /* no id */
		{ "\x94\0\xff\244echo\220", 9 },
		{ "\0", 1 },
		{ "\n", 1 },
	};

	stage_set_provider(stage, NULL);
	for (size_t i = 0; i < LENGTH(strangers); i++) {
		struct raw *raw = raw_connect(stage);
		unsigned handled = stage->handled;
		uint64_t sent_ns = stage_now(stage);

		stage_mark(stage);
		raw_send(raw, strangers[i].bytes, strangers[i].len);
		assert_closed_at_once(raw, sent_ns);
		assert_closed_once(stage, SPOKE_STAT_CLOSED_PROTOCOL);
		assert_int_equal(stage->handled, handled);
		assert_second_connection_works(stage);
	}
}

ROW(row_03_no_byte_after_an_invalid_one_is_interpreted, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;
	unsigned handled = stage->handled;

	frames_init(&frames);
	frames_request(&frames, 1, "echo", "before");
	assert_int_equal(spokei_buffer_append(&frames, "\xda\xbb\xff\xff", 4), 0);
	frames_request(&frames, 2, "echo", "behind");
	(void)raw_try_send(raw, spokei_buffer_data(&frames), spokei_buffer_len(&frames));
	spokei_buffer_fini(&frames);
	(void)raw_wait_end(raw);
	assert_int_equal(stage->handled, handled + 1);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_PROTOCOL);
	assert_second_connection_works(stage);
}

ROW(row_04_a_length_over_the_limit_closes_before_allocating, STAGE_ALL)
{
	static const uint32_t lengths[] = { 0xffffffff, 0x80000000, 0x90000000 };

	stage_set_provider(stage, NULL);
	for (size_t i = 0; i < LENGTH(lengths); i++) {
		struct raw *raw = raw_connect(stage);
		uint64_t sent_ns = stage_now(stage);
		struct spokei_buffer frames;

		frames_init(&frames);
		frames_head(&frames, 0xdb, 0, 7, lengths[i]);
		stage_mark(stage);
		raw_send_buffer(raw, &frames);
		assert_closed_at_once(raw, sent_ns);
		assert_closed_once(stage, SPOKE_STAT_CLOSED_LARGE);
		/* The bytes that have arrived are kept. */
		if (stage->on != STAGE_ROUGH)
			assert_int_equal(stage_demands(stage), 0);
		assert_true(stage->faulty.largest <= 4096);
		assert_second_connection_works(stage);
	}
}

ROW(row_04_msgpack_length_over_limit_closes_before_allocating, STAGE_ALL)
{
	static const struct {
		const char *bytes;
		size_t len;
	} claims[] = {
		{ "\x94\0\1\xdb\xff\xff\xff\xff", 8 }, /* str */
		{ "\x94\0\1\244echo\xdd\xff\xff\xff\xff", 13 },
		{ "\x94\0\1\244echo\x91\xdf\x80\0\0\0", 14 },
		{ "\x94\0\1\244echo\x91\xc6\x80\0\0\0", 14 },
		{ "\x94\0\1\244echo\x91\xc9\x80\0\0\0\1", 15 },
		{ "\xdd\xff\xff\xff\xff\0\1", 7 },
	};

	stage_set_provider(stage, NULL);
	for (size_t i = 0; i < LENGTH(claims); i++) {
		struct raw *raw = raw_connect(stage);

		stage_mark(stage);
		raw_send(raw, claims[i].bytes, claims[i].len);
		assert_closed_mutely(raw);
		assert_closed_once(stage, SPOKE_STAT_CLOSED_LARGE);
		assert_true(stage->faulty.largest <= 4096);
		assert_second_connection_works(stage);
	}
}

ROW(row_04_a_reply_over_the_limit_ends_the_consumers_calls_once, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message request;
	struct spokei_buffer frames;
	struct ending endings[3];

	for (size_t i = 0; i < LENGTH(endings); i++)
		stage_call(stage, stage->echo, "x", &endings[i], NULL);
	for (size_t i = 0; i < LENGTH(endings); i++)
		raw_frame(raw, &request);
	stage_mark(stage);
	frames_init(&frames);
	frames_head(&frames, 0x1b, 20, request.id, 0xffffffff);
	raw_send_buffer(raw, &frames);
	for (size_t i = 0; i < LENGTH(endings); i++)
		assert_ends(stage, &endings[i], SPOKE_EPROTOCOL);
	assert_closed_mutely(raw);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_LARGE);
	assert_counter_up_by(stage, SPOKE_STAT_CALLS_LOST, LENGTH(endings));
	assert_true(stage->faulty.largest <= 4096);
	assert_second_connection_works(stage);
}

/* Sends a request of exactly this many bytes by choosing the length of its argument. */
static void send_request_of(struct raw *raw, uint64_t id, size_t len)
{
	static const char names[] = BODY_ECHO(BODY_OBJECT);
	struct spokei_buffer frames;
	size_t fixed = HEAD + sizeof(names) - 1 + 5 + 1; /* the bin's head, the attachments */
	uint32_t content = (uint32_t)(len - fixed);
	unsigned char bin[5] = { 0xc6, (unsigned char)(content >> 24),
				 (unsigned char)(content >> 16), (unsigned char)(content >> 8),
				 (unsigned char)content };
	unsigned char *room;

	frames_init(&frames);
	frames_head(&frames, 0xdb, 0, id, (uint32_t)(len - HEAD));
	assert_int_equal(spokei_buffer_append(&frames, names, sizeof(names) - 1), 0);
	assert_int_equal(spokei_buffer_append(&frames, bin, sizeof(bin)), 0);
	room = spokei_buffer_reserve(&frames, content);
	assert_non_null(room);
	memset(room, 'x', content);
	spokei_buffer_commit(&frames, content);
	assert_int_equal(spokei_buffer_append(&frames, "\x80", 1), 0);
	assert_int_equal(spokei_buffer_len(&frames), len);
	raw_send_buffer(raw, &frames);
}

ROW(row_05_a_frame_as_long_as_it_may_be_is_accepted, STAGE_SMOOTH)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_message reply;
	size_t before = stage->faulty.bytes;

	send_request_of(raw, 9, SPOKEI_FRAME_MAX);
	assert_second_connection_works(stage);
	assert_reply(raw, 9, SPOKEI_DUBBO_OK, &reply);
	assert_int_equal(reply.value.len,
			 SPOKEI_FRAME_MAX - HEAD - 1 - (sizeof(BODY_ECHO(BODY_OBJECT)) - 1));
	/* The frame, its answer, and the old half of a buffer while it is moved. */
	assert_true(stage->faulty.bytes_peak - before <= 3 * (size_t)SPOKEI_FRAME_MAX);
	assert_nothing_closed(stage);
	assert_raw_lives(raw);
	assert_second_connection_works(stage);
}

ROW(row_05_a_reply_as_long_as_it_may_be_is_accepted, STAGE_SMOOTH)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	uint32_t content = SPOKEI_FRAME_MAX - HEAD - 6;
	unsigned char bin[6] = { 1,
				 0xc6,
				 (unsigned char)(content >> 24),
				 (unsigned char)(content >> 16),
				 (unsigned char)(content >> 8),
				 (unsigned char)content };
	struct spokei_message request;
	struct spokei_buffer frames;
	struct ending ending;

	stage_call(stage, stage->echo, "x", &ending, NULL);
	raw_frame(raw, &request);
	frames_init(&frames);
	frames_head(&frames, 0x1b, 20, request.id, SPOKEI_FRAME_MAX - HEAD);
	assert_int_equal(spokei_buffer_append(&frames, bin, sizeof(bin)), 0);
	assert_non_null(spokei_buffer_reserve(&frames, content));
	memset(spokei_buffer_reserve(&frames, content), 0, content);
	spokei_buffer_commit(&frames, content);
	raw_send_buffer(raw, &frames);
	assert_second_connection_works(stage);
	assert_ends(stage, &ending, SPOKE_OK);
	assert_nothing_closed(stage);
	assert_consumer_lives(raw);
}

ROW(row_06_a_request_without_a_body_is_a_bad_request, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_head(&frames, 0xdb, 0, 8, 0);
	raw_send_buffer(raw, &frames);
	assert_reply(raw, 8, 40, NULL);
	assert_counter_up_by(stage, SPOKE_STAT_BAD_REQUESTS, 1);
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
	assert_raw_lives(raw);
}

ROW(row_06_a_heartbeat_without_a_body_is_answered, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;
	struct spokei_message answer;

	frames_init(&frames);
	frames_head(&frames, 0xfb, 0, 8, 0);
	raw_send_buffer(raw, &frames);
	raw_frame(raw, &answer);
	assert_int_equal(answer.kind, SPOKEI_PROBE_ANSWER);
	assert_int_equal(answer.id, 8);
	assert_counter_up_by(stage, SPOKE_STAT_PROBES_READ, 1);
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
	assert_raw_lives(raw);
}

ROW(row_06_a_reply_without_a_body_fails_its_call, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message request;
	struct spokei_buffer frames;
	struct ending ending;

	stage_call(stage, stage->echo, "x", &ending, NULL);
	raw_frame(raw, &request);
	frames_init(&frames);
	frames_head(&frames, 0x1b, 20, request.id, 0);
	raw_send_buffer(raw, &frames);
	assert_ends(stage, &ending, SPOKE_EBADREPLY);
	assert_counter_up_by(stage, SPOKE_STAT_BAD_REPLIES, 1);
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
	assert_consumer_lives(raw);
}

#define CLAIMERS 1000u

ROW(row_07_a_thousand_claims_of_8_mib_cost_what_was_sent, STAGE_SMOOTH)
{
	struct spoke_provider_options options = { .connections_per_peer_max = CLAIMERS + 10 };
	static struct raw *raws[CLAIMERS];
	struct spokei_buffer frames;
	size_t before;

	stage_set_provider(stage, &options);
	frames_init(&frames);
	frames_head(&frames, 0xdb, 0, 7, SPOKEI_FRAME_MAX - HEAD);
	assert_int_equal(spokei_buffer_append(&frames, "\245", 1), 0);
	before = stage->faulty.bytes;
	stage_mark(stage);
	for (unsigned i = 0; i < CLAIMERS; i++) {
		raws[i] = raw_connect(stage);
		raw_send(raws[i], spokei_buffer_data(&frames), spokei_buffer_len(&frames));
	}
	stage_until_read(stage, CLAIMERS * spokei_buffer_len(&frames));
	spokei_buffer_fini(&frames);
	assert_true(stage->faulty.bytes_peak - before < 64u << 20);
	assert_true(stage->faulty.largest <= 65536);
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
	for (unsigned i = 0; i < CLAIMERS; i++)
		raw_close(raws[i]);
}
