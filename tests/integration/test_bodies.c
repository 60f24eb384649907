/* SPDX-License-Identifier: Apache-2.0 */
/* Rows 16 to 21 of the table of faults: bodies that are invalid values. */
#include "tests/integration/harness.h"
#include "tests/support/test.h"

#include "transport/wire/catalog.h"

#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

struct bytes {
	const char *data;
	size_t len;
};

#define BYTES(literal)                                                                             \
	{                                                                                          \
		(literal), sizeof(literal) - 1                                                     \
	}

/* Bytes in place of an argument, followed by the attachments. */
static void send_argument(struct raw *raw, uint64_t id, const void *bytes, size_t len)
{
	static const char names[] = BODY_ECHO(BODY_OBJECT);
	struct spokei_buffer body;
	struct spokei_buffer frames;

	frames_init(&body);
	assert_int_equal(spokei_buffer_append(&body, names, sizeof(names) - 1), 0);
	assert_int_equal(spokei_buffer_append(&body, bytes, len), 0);
	assert_int_equal(spokei_buffer_append(&body, "\x80", 1), 0);
	frames_init(&frames);
	frames_raw(&frames, 0xdb, 0, id, spokei_buffer_data(&body), spokei_buffer_len(&body));
	raw_send_buffer(raw, &frames);
	spokei_buffer_fini(&body);
}

/* Checks that a request is answered with status 40, without allocations except the frame and its
 * answer; no handler runs, and the connection stays open. */
static void assert_bad_argument(struct raw *raw, const void *bytes, size_t len)
{
	struct stage *stage = raw->stage;
	unsigned handled = stage->handled;
	struct spokei_message reply;

	stage_mark(stage);
	send_argument(raw, 6, bytes, len);
	assert_reply(raw, 6, 40, &reply);
	assert_true(reply.error_text.len > 0);
	assert_counter_up_by(stage, SPOKE_STAT_BAD_REQUESTS, 1);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS, 0);
	assert_nothing_closed(stage);
	assert_int_equal(stage->handled, handled);
	if (stage->on != STAGE_ROUGH && len < 4096)
		assert_int_equal(stage_demands(stage), 0);
}

static void assert_bad_arguments(struct raw *raw, const struct bytes *bad, size_t count)
{
	assert_raw_lives(raw);
	assert_raw_lives(raw);
	for (size_t i = 0; i < count; i++) {
		assert_bad_argument(raw, bad[i].data, bad[i].len);
		assert_second_connection_works(raw->stage);
	}
	assert_raw_lives(raw);
}

/* Sends the same bytes as the value of a reply: the call fails, and the connection stays open. */
static void assert_bad_replies(struct raw *raw, const char *marker, const struct bytes *bad,
			       size_t count)
{
	struct stage *stage = raw->stage;

	for (size_t i = 0; i < count; i++) {
		struct spokei_message request;
		struct spokei_buffer body;
		struct spokei_buffer frames;
		struct ending ending;

		stage_call(stage, stage->echo, "x", &ending, NULL);
		raw_frame(raw, &request);
		frames_init(&body);
		assert_int_equal(spokei_buffer_append(&body, marker, strlen(marker)), 0);
		assert_int_equal(spokei_buffer_append(&body, bad[i].data, bad[i].len), 0);
		frames_init(&frames);
		frames_raw(&frames, 0x1b, 20, request.id, spokei_buffer_data(&body),
			   spokei_buffer_len(&body));
		spokei_buffer_fini(&body);
		stage_mark(stage);
		raw_send_buffer(raw, &frames);
		assert_ends(stage, &ending, SPOKE_EBADREPLY);
		assert_counter_up_by(stage, SPOKE_STAT_BAD_REPLIES, 1);
		assert_counter_up_by(stage, SPOKE_STAT_CALLS_REMOTE, 1);
		assert_nothing_closed(stage);
		if (stage->on != STAGE_ROUGH)
			assert_int_equal(stage_demands(stage), 0);
		assert_second_connection_works(stage);
	}
	assert_consumer_lives(raw);
}

static void assert_bad_values(struct raw *raw, const struct bytes *bad, size_t count)
{
	assert_bad_replies(raw, "\1", bad, count);
}

static const struct bytes claims[] = {
	BYTES("\xdd\5\xf5\xe1\0"), /* 100,000,000 */
	BYTES("\xdf\5\xf5\xe1\0"), BYTES("\xdd\xff\xff\xff\xff"), BYTES("\xdf\x80\0\0\0"),
	BYTES("\xdc\xff\xff"),     BYTES("\xde\xff\xff"),
};

RUNNER(stage_run_rows);

ROW(row_16_claims_of_many_items_are_refused_without_memory, STAGE_ALL)
{
	assert_bad_arguments(stage_raw_to_provider(stage), claims, LENGTH(claims));
}

ROW(row_16_claims_of_many_items_in_a_reply_fail_its_call, STAGE_ALL)
{
	assert_bad_values(stage_raw_to_consumer(stage), claims, LENGTH(claims));
}

ROW(row_17_nested_length_claims_are_refused_without_memory, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	static const unsigned char heads[2][5] = { { 0xdd, 0, 0, 0xff, 0xff },
						   { 0xdd, 0, 0, 0, 0x2 } };
	unsigned char bytes[32 * 5];

	assert_raw_lives(raw);
	assert_raw_lives(raw);
	for (size_t k = 0; k < LENGTH(heads); k++) {
		for (size_t i = 0; i < 32; i++)
			memcpy(bytes + 5 * i, heads[k], 5);
		assert_bad_argument(raw, bytes, sizeof(bytes));
		assert_second_connection_works(stage);
	}
	assert_raw_lives(raw);
}

ROW(row_18_a_depth_of_128_is_answered_and_more_is_refused, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	static unsigned char bytes[(1 << 20) + 1];
	struct spokei_message reply;

	assert_raw_lives(raw);
	assert_raw_lives(raw);
	memset(bytes, 0x91, sizeof(bytes));
	bytes[128] = 0xc0;
	stage_mark(stage);
	send_argument(raw, 6, bytes, 129);
	assert_reply(raw, 6, 20, &reply);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_OK, 1);
	assert_int_equal(reply.value.len, 129);
	bytes[128] = 0x90; /* the innermost is empty */
	assert_bad_argument(raw, bytes, 129);
	bytes[128] = 0x91;
	bytes[129] = 0xc0;
	assert_bad_argument(raw, bytes, 130);
	bytes[129] = 0x91;
	bytes[1 << 20] = 0xc0;
	assert_bad_argument(raw, bytes, sizeof(bytes));
	assert_second_connection_works(stage);
	assert_raw_lives(raw);
}

ROW(row_18_msgpack_rpc_value_that_is_too_deep_closes, STAGE_ALL)
{
	unsigned char bytes[9 + 40] = "\x94\0\1\244echo\x91";
	struct raw *raw = stage_raw_to_provider(stage);

	raw->wire = spokei_catalog_wire("msgpack-rpc");
	memset(bytes + 9, 0x91, 40);
	bytes[9 + 30] = 0xc0;
	raw_send(raw, bytes, 9 + 31);
	assert_reply(raw, 1, 20, NULL);
	assert_nothing_closed(stage);
	bytes[9 + 30] = 0x90;
	raw_send(raw, bytes, 9 + 31);
	assert_closed_mutely(raw);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_PROTOCOL);
	assert_second_connection_works(stage);
}

ROW(row_19_an_array_of_too_many_nils_is_refused, STAGE_SMOOTH)
{
	struct raw *raw = stage_raw_to_provider(stage);
	static const size_t counts[] = { 4194304, 5000000, (8 << 20) - 200 };
	struct spokei_message reply;
	static unsigned char bytes[8 << 20];

	memset(bytes, 0xc0, sizeof(bytes));
	for (size_t i = 0; i < LENGTH(counts); i++) {
		bytes[0] = 0xdd;
		for (unsigned k = 0; k < 4; k++)
			bytes[1 + k] = (unsigned char)(counts[i] >> (24 - 8 * k));
		assert_bad_argument(raw, bytes, 5 + counts[i]);
		assert_second_connection_works(stage);
	}
	send_argument(raw, 6, bytes, 5 + counts[2]);
	assert_reply(raw, 6, 40, &reply);
	assert_memory_equal(reply.error_text.data, "too large: more values than values.max", 38);
	/* The same number as adjacent arguments. */
	assert_bad_argument(raw, bytes + 5, 4200000);
	assert_raw_lives(raw);
}

/* A list of a few thousand objects is an everyday value. */
ROW(row_19_an_array_of_a_million_nils_is_answered, STAGE_SMOOTH)
{
	struct raw *raw = stage_raw_to_provider(stage);
	static unsigned char bytes[5 + 1000000] = "\xdd\x00\x0f\x42\x40";
	struct spokei_message reply;

	memset(bytes + 5, 0xc0, sizeof(bytes) - 5);
	send_argument(raw, 6, bytes, sizeof(bytes));
	assert_reply(raw, 6, 20, &reply);
	assert_int_equal(reply.value.len, sizeof(bytes));
}

/* A body at the limit of items, which its handler keeps: spoke must not build a tree of it. */
ROW(row_19_a_body_costs_32_times_its_bytes_at_most, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	static unsigned char bytes[3 + 65000];
	struct spokei_buffer frames;
	struct spokei_message reply;
	size_t before;
	size_t len;

	assert_raw_lives(raw);
	memset(bytes, 0xc0, sizeof(bytes));
	bytes[0] = 0xdc;
	bytes[1] = 65000 >> 8;
	bytes[2] = 65000 & 0xff;
	frames_init(&frames);
	frames_request_with(&frames, 6, STAGE_SERVICE, "later", spokei_span(bytes, sizeof(bytes)));
	len = spokei_buffer_len(&frames);
	before = stage->faulty.bytes;
	stage_mark(stage);
	raw_send_buffer(raw, &frames);
	assert_raw_lives(raw);
	stage_answer_later(stage);
	assert_reply(raw, 6, 20, &reply);
	assert_int_equal(reply.value.len, sizeof(bytes));
	assert_true(stage->faulty.bytes_peak - before <= 32 * len);
	assert_true(stage->faulty.bytes_peak - before <= 4u << 20);
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
}

static const struct bytes lengths[] = {
	BYTES("\xbf!"),
	BYTES("\xd9\xff!"),
	BYTES("\xda\xff\xff!"),
	BYTES("\xdb\xff\xff\xff\xff!"),
	BYTES("\xdb\x7f\xff\xff\xff!"),
	BYTES("\xc4\xff!"),
	BYTES("\xc5\xff\xff!"),
	BYTES("\xc6\xff\xff\xff\xff!"),
	BYTES("\xc7\xff\1!"),
	BYTES("\xc8\xff\xff\1!"),
	BYTES("\xc9\xff\xff\xff\xff\1!"),
	BYTES("\xc9\xff\xff\xff\xfe\1!"),
	BYTES("\xd8\1!"),
	BYTES("\xcf\1\2"),
};

ROW(row_20_lengths_beyond_the_end_are_refused, STAGE_ALL)
{
	assert_bad_arguments(stage_raw_to_provider(stage), lengths, LENGTH(lengths));
}

ROW(row_20_lengths_beyond_the_end_of_a_reply_fail_its_call, STAGE_ALL)
{
	assert_bad_values(stage_raw_to_consumer(stage), lengths, LENGTH(lengths));
}

ROW(row_21_invalid_request_body_is_refused, STAGE_ALL)
{
	static const struct bytes bodies[] = {
		BYTES("\xc1"),
		BYTES(BODY_ECHO(BODY_OBJECT) "\xc1\x80"),
		BYTES(BODY_ECHO(BODY_OBJECT) "\242hi\x80\xc1"),
		BYTES(BODY_ECHO(BODY_OBJECT) "\242hi\x80\1"),    /* a value behind the map */
		BYTES(BODY_ECHO(BODY_OBJECT) "\242hi\x80\242h"), /* half a one */
		BYTES(BODY_ECHO(BODY_OBJECT) "\242hi\x81\241k"), /* half a map */
	};
	struct raw *raw = stage_raw_to_provider(stage);
	unsigned handled = stage->handled;

	for (size_t i = 0; i < LENGTH(bodies); i++) {
		struct spokei_buffer frames;

		frames_init(&frames);
		frames_raw(&frames, 0xdb, 0, i, bodies[i].data, bodies[i].len);
		stage_mark(stage);
		raw_send_buffer(raw, &frames);
		assert_reply(raw, i, 40, NULL);
		assert_counter_up_by(stage, SPOKE_STAT_BAD_REQUESTS, 1);
		assert_nothing_closed(stage);
	}
	assert_int_equal(stage->handled, handled);
	assert_second_connection_works(stage);
	assert_raw_lives(raw);
}

ROW(row_21_invalid_reply_body_fails_its_call, STAGE_ALL)
{
	static const struct bytes values[] = {
		BYTES("\xc1"), BYTES("\2\2"),     BYTES("\2\242h"),
		BYTES(""),     BYTES("\xc0\xc1"), BYTES("\2\x80\x80"),
	};

	assert_bad_values(stage_raw_to_consumer(stage), values, LENGTH(values));
}

ROW(row_22_replies_of_the_wrong_shape_fail_their_calls, STAGE_ALL)
{
	static const struct bytes bodies[] = {
		BYTES("\6\300"), /* no such marker */
		BYTES("\7\300\200"),
		BYTES("\10\200"),
		BYTES("\377\300"),
		BYTES("\300"),
		BYTES("\2421x\300"),
		BYTES("\221\1"),
		BYTES("\1"),       /* no value */
		BYTES("\4\300"),   /* no attachments */
		BYTES("\4\300\1"), /* no map */
		BYTES("\0\241E"),  /* an exception without fields */
		BYTES("\0\241E\1"),
		BYTES("\0\300\200"),           /* ... without a class */
		BYTES("\5\202\241k\1\241k\2"), /* a key twice */
	};

	assert_bad_replies(stage_raw_to_consumer(stage), "", bodies, LENGTH(bodies));
}

ROW(row_21_invalid_msgpack_rpc_value_closes, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);

	RAW_SEND(raw, "\x94\0\1\244echo\x91\xc1");
	assert_closed_mutely(raw);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_PROTOCOL);
	assert_second_connection_works(stage);
}
