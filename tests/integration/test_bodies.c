/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows 16 to 26 of the table of faults: bodies that are invalid values, or of the wrong form.
 */
#include "tests/integration/harness.h"
#include "tests/support/test.h"
#include "transport/wire/catalog.h"

#include <stdio.h>
#include <string.h>

/* --- rows 16 to 21 of the table of faults: bodies that are invalid values */

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

	frames_init(&body);
	assert_int_equal(spokei_buffer_append(&body, names, sizeof(names) - 1), 0);
	assert_int_equal(spokei_buffer_append(&body, bytes, len), 0);
	assert_int_equal(spokei_buffer_append(&body, "\x80", 1), 0);
	say_raw(raw, 0xdb, 0, id, spokei_buffer_data(&body), spokei_buffer_len(&body));
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
	assert_refused(raw, SPOKE_STAT_CLOSED_PROTOCOL);
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
	assert_undisturbed(stage);
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
	assert_refused(raw, SPOKE_STAT_CLOSED_PROTOCOL);
	assert_second_connection_works(stage);
}

/* --- rows 22 to 26 of the table of faults: requests that are valid values of the wrong form */

static void send_body(struct raw *raw, uint64_t id, const void *body, size_t len)
{

	say_raw(raw, 0xdb, 0, id, body, len);
}

/* Checks that the body is answered with status 40, without allocations except the frame; no handler
 * runs, and the connection stays open. */
static void assert_bad_body(struct raw *raw, const void *body, size_t len)
{
	struct stage *stage = raw->stage;
	unsigned handled = stage->handled;

	stage_mark(stage);
	send_body(raw, 6, body, len);
	assert_reply(raw, 6, 40, NULL);
	assert_counter_up_by(stage, SPOKE_STAT_BAD_REQUESTS, 1);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS, 0);
	assert_nothing_closed(stage);
	assert_int_equal(stage->handled, handled);
	if (stage->on != STAGE_ROUGH && len < 4096)
		assert_int_equal(stage_demands(stage), 0);
}

static void assert_bad_bodies(struct raw *raw, const struct bytes *bad, size_t count)
{
	assert_raw_lives(raw);
	assert_raw_lives(raw);
	for (size_t i = 0; i < count; i++) {
		assert_bad_body(raw, bad[i].data, bad[i].len);
		assert_second_connection_works(raw->stage);
	}
	assert_raw_lives(raw);
}

ROW(row_22_bodies_of_the_wrong_shape_are_bad_requests, STAGE_ALL)
{
	static const struct bytes bodies[] = {
		BYTES("\xc0"),
		BYTES("\1"),
		BYTES("\x90"),
		BYTES("\x81\1\2"),
		BYTES("\x95\2452.0.2\242me\2450.0.0\244echo\240"), /* all in one array */
		BYTES("\2452.0.2\260demo.EchoService\2450.0.0\244echo"),
		BYTES(BODY_ECHO("\240")),      /* no attachments */
		BYTES(BODY_ECHO("\240") "\1"), /* no map */
		BYTES(BODY_ECHO("\240") "\x80\1"),
		BYTES("\2452.0.2\260demo.EchoService\2450.0.0\300\240\x80"), /* nil */
		BYTES("\2452.0.2\260demo.EchoService\2450.0.0\1\240\x80"),
		BYTES("\2452.0.2\260demo.EchoService\2450.0.0\304\4echo\240\x80"), /* bin */
		BYTES("\2452.0.2\260demo.EchoService\2450.0.0\240\240\x80"),       /* empty */
		BYTES("\2452.0.2\300\2450.0.0\244echo\240\x80"),
		BYTES("\2452.0.2\1\2450.0.0\244echo\240\x80"),
		BYTES("\2452.0.2\260demo.EchoService\1\244echo\240\x80"),
		BYTES("\2452.0.2\260demo.EchoService\2450.0.0\244echo\1\x80"),
	};

	assert_bad_bodies(stage_raw_to_provider(stage), bodies, LENGTH(bodies));
}

ROW(row_22_names_have_64_kib_at_most, STAGE_ALL)
{
	static const char start[] = "\2452.0.2\260demo.EchoService\2450.0.0";
	struct raw *raw = stage_raw_to_provider(stage);

	for (size_t len = 65536; len <= 65537; len++) {
		static unsigned char body[70000];
		unsigned char *at = body + sizeof(start) - 1;

		memcpy(body, start, sizeof(start) - 1);
		at[0] = 0xdb;
		at[1] = 0;
		at[2] = (unsigned char)(len >> 16);
		at[3] = (unsigned char)(len >> 8);
		at[4] = (unsigned char)len;
		memset(at + 5, 'm', len);
		at[5 + len] = 0xa0;
		at[6 + len] = 0x80;
		stage_mark(stage);
		if (len > 65536) {
			assert_bad_body(raw, body, sizeof(start) - 1 + 7 + len);
		} else {
			send_body(raw, 3, body, sizeof(start) - 1 + 7 + len);
			assert_not_found(raw, 3);
		}
		assert_second_connection_works(stage);
	}
	assert_raw_lives(raw);
}

ROW(row_22_malformed_msgpack_rpc_calls_are_bad_requests, STAGE_ALL)
{
	static const struct bytes calls[] = {
		BYTES("\x94\0\5\300\x90"), /* nil as a name */
		BYTES("\x94\0\5\1\x90"),
		BYTES("\x94\0\5\240\x90"),
		BYTES("\x94\0\5\244echo\300"), /* params that are no array */
		BYTES("\x94\0\5\244echo\x80"),
		BYTES("\x93\0\5\244echo"), /* too short */
		BYTES("\xdc\0\5\0\5\244echo\x90\1"),
	};
	struct raw *raw = stage_raw_to_provider(stage);

	raw->wire = spokei_catalog_wire("msgpack-rpc");
	for (size_t i = 0; i < LENGTH(calls); i++) {
		struct spokei_message reply;

		stage_mark(stage);
		raw_send(raw, calls[i].data, calls[i].len);
		assert_reply(raw, 5, 20, &reply);
		assert_int_equal(reply.error, SPOKE_EREMOTE);
		assert_true(reply.error_text.len > 0);
		assert_counter_up_by(stage, SPOKE_STAT_BAD_REQUESTS, 1);
		assert_undisturbed(stage);
	}
}

ROW(row_23_numbers_of_another_kind_are_typed_errors, STAGE_ALL)
{
	static const struct {
		struct bytes arg;
		int code; /* 0: answered with the argument */
	} numbers[] = {
		{ BYTES("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"), 0 },
		{ BYTES("\xd3\x80\0\0\0\0\0\0\0"), 0 },
		{ BYTES("\xcf\x80\0\0\0\0\0\0\0"), SPOKE_ERANGE },
		{ BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), SPOKE_ERANGE },
		{ BYTES("\xcb\x7f\xf8\0\0\0\0\0\0"), SPOKE_ETYPE }, /* NaN */
		{ BYTES("\xcb\x7f\xf0\0\0\0\0\0\0"), SPOKE_ETYPE }, /* Inf */
		{ BYTES("\xca\xff\x80\0\0"), SPOKE_ETYPE },         /* -Inf */
		{ BYTES("\xcb\x80\0\0\0\0\0\0\0"), SPOKE_ETYPE },   /* -0.0 */
		{ BYTES("\xa1\61"), SPOKE_ETYPE },
		{ BYTES("\xc3"), SPOKE_ETYPE },
	};
	struct raw *raw = stage_raw_to_provider(stage);

	for (size_t i = 0; i < LENGTH(numbers); i++) {
		struct spokei_buffer frames;
		struct spokei_message reply;

		frames_init(&frames);
		frames_request_with(&frames, i, STAGE_SERVICE, "integer",
				    spokei_span(numbers[i].arg.data, numbers[i].arg.len));
		stage_mark(stage);
		raw_send_buffer(raw, &frames);
		assert_reply(raw, i, 20, &reply);
		assert_int_equal(reply.error, numbers[i].code ? SPOKE_EREMOTE : 0);
		assert_int_equal(reply.error_code, numbers[i].code);
		assert_counter_up_by(stage,
				     numbers[i].code ? SPOKE_STAT_REQUESTS_ERROR
						     : SPOKE_STAT_REQUESTS_OK,
				     1);
		assert_nothing_closed(stage);
	}
	assert_second_connection_works(stage);
	assert_raw_lives(raw);
}

/* Sends a request with `count` attachments; if `twice`, the last key equals the first. */
static void put_attached(struct spokei_buffer *body, unsigned count, bool twice)
{
	static const char names[] = BODY_ECHO(BODY_OBJECT) "\242hi";
	unsigned char head[3] = { 0xde, (unsigned char)(count >> 8), (unsigned char)count };

	frames_init(body);
	assert_int_equal(spokei_buffer_append(body, names, sizeof(names) - 1), 0);
	assert_int_equal(spokei_buffer_append(body, head, sizeof(head)), 0);
	for (unsigned i = 0; i < count; i++) {
		char pair[16];

		(void)snprintf(pair, sizeof(pair), "\247k%06u\1", twice && i == count - 1 ? 0 : i);
		assert_int_equal(spokei_buffer_append(body, pair, 9), 0);
	}
}

ROW(row_24_attachments_are_bounded_and_keys_are_unique, STAGE_ALL)
{
	static const struct {
		unsigned count;
		bool twice;
		bool good;
	} cases[] = {
		{ 256, false, true }, { 257, false, false }, { 10000, false, false },
		{ 2, true, false },   { 256, true, false },
	};
	struct raw *raw = stage_raw_to_provider(stage);

	assert_raw_lives(raw);
	assert_raw_lives(raw);
	for (size_t i = 0; i < LENGTH(cases); i++) {
		struct spokei_buffer body;

		put_attached(&body, cases[i].count, cases[i].twice);
		stage_mark(stage);
		if (cases[i].good) {
			send_body(raw, 2, spokei_buffer_data(&body), spokei_buffer_len(&body));
			assert_reply(raw, 2, 20, NULL);
			assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_OK, 1);
		} else {
			assert_bad_body(raw, spokei_buffer_data(&body), spokei_buffer_len(&body));
		}
		spokei_buffer_fini(&body);
		assert_second_connection_works(stage);
	}
	assert_raw_lives(raw);
}

ROW(row_24_a_key_has_256_bytes_at_most, STAGE_ALL)
{
	static const char names[] = BODY_ECHO(BODY_OBJECT) "\242hi\x81\332\1";
	struct raw *raw = stage_raw_to_provider(stage);
	unsigned char body[sizeof(names) + 260];
	unsigned char *at = body + sizeof(names) - 1;

	assert_raw_lives(raw);
	assert_raw_lives(raw);
	memset(body, 'k', sizeof(body));
	memcpy(body, names, sizeof(names) - 1);
	at[0] = 0;
	at[1 + 256] = 0xc0;
	send_body(raw, 2, body, sizeof(names) - 1 + 1 + 257);
	assert_reply(raw, 2, 20, NULL);
	at[0] = 1;
	at[1 + 256] = 'k';
	at[1 + 257] = 0xc0;
	assert_bad_body(raw, body, sizeof(names) - 1 + 1 + 258);
	assert_second_connection_works(stage);
	assert_raw_lives(raw);
}

/* No event contains such a byte unescaped. */
static void assert_events_are_printable(const struct stage *stage)
{
	struct spoke_event event = { .number = 0 };

	while (spoke_event_get(stage->engine, event.number + 1, &event) == 0)
		for (const char *at = event.text; *at; at++)
			assert_in_range(*at, ' ', '~');
}

ROW(row_25_invalid_text_in_names_is_not_found, STAGE_ALL)
{
	static const struct bytes bodies[] = {
		BYTES("\2452.0.2\260demo.EchoServ\xff\xfe\x80\2450.0.0\244echo\240\x80"),
		BYTES("\2452.0.2\260demo.EchoService\2450.0.0\244ec\xc3\x28\240\x80"),
		BYTES("\2452.0.2\261demo.EchoService\0\2450.0.0\244echo\240\x80"),
		BYTES("\2452.0.2\260demo.EchoService\2450.0.0\245echo\0\240\x80"),
		BYTES("\2452.0.2\260demo.EchoService\2450.0.0\246\0\0echo\240\x80"),
		BYTES("\2452.0.2\260demo.EchoService\241\0\244echo\240\x80"),
		BYTES("\2452.0.2\260demo.EchoService\2450.0.0\244echo\240\x81\245group\241\0"),
		BYTES("\2452.0.2\244demo\2450.0.0\244echo\240\x81\244path\261demo.EchoService\0"),
		BYTES("\2452.0.2\244\x1b[2J\2450.0.0\244\r\n\x07\x08\240\x80"),
	};
	struct raw *raw = stage_raw_to_provider(stage);
	unsigned handled = stage->handled;

	for (size_t i = 0; i < LENGTH(bodies); i++) {
		stage_mark(stage);
		send_body(raw, i, bodies[i].data, bodies[i].len);
		assert_not_found(raw, i);
	}
	assert_int_equal(stage->handled, handled);
	assert_events_are_printable(stage);
	assert_second_connection_works(stage);
	assert_raw_lives(raw);
}

ROW(row_26_empty_arrays_and_sizes_of_0_are_bad_requests, STAGE_ALL)
{
	static const struct bytes bodies[] = {
		BYTES("\x90\x90\x90\x90\x90\x90"),
		BYTES("\xdc\0\0"),
		BYTES("\xdd\0\0\0\0"),
		BYTES("\xde\0\0"),
		BYTES("\xc7\0\1"),
		BYTES("\xc4\0"),
		BYTES("\2452.0.2\x90\2450.0.0\244echo\240\x80"),
		BYTES("\2452.0.2\240\2450.0.0\244echo\240\x80"),
		BYTES("\2452.0.2\260demo.EchoService\2450.0.0\x90\240\x80"),
		BYTES(BODY_ECHO("\x90") "\x80"),
		BYTES(BODY_ECHO(BODY_OBJECT) "\242hi\x90"),
		BYTES(BODY_ECHO(BODY_OBJECT) "\242hi\xc7\0\1"),
		BYTES(BODY_ECHO(BODY_OBJECT) "\242hi\x81\x90\1"),
		BYTES("\2452.0.2\260demo.EchoService\2450.0.0\247$invoke\240\240\x90\x90\x80"),
		BYTES("\2452.0.2\260demo.EchoService\2450.0.0\247$invoke\240\x90\x90\x90\x80"),
		BYTES("\2452.0.2\260demo.EchoService\2450.0.0\247$invoke\240\x80"),
		BYTES("\2452.0.2\260demo.EchoService\2450.0.0\247$"
		      "invoke\240\244echo\x91\x90\x90\x80"),
		BYTES("\2452.0.2\260demo.EchoService\2450.0.0\247$invoke\240\244echo\x90\x80\x80"),
	};

	assert_bad_bodies(stage_raw_to_provider(stage), bodies, LENGTH(bodies));
}

ROW(row_26_empty_arrays_of_msgpack_rpc_close, STAGE_ALL)
{
	static const struct bytes frames[] = { BYTES("\x90"), BYTES("\xdc\0\0"),
					       BYTES("\xdd\0\0\0\0"), BYTES("\x93\x90\x90\x90") };

	stage_set_provider(stage, NULL);
	for (size_t i = 0; i < LENGTH(frames); i++) {
		struct raw *raw = raw_connect(stage);

		stage_mark(stage);
		raw_send(raw, frames[i].data, frames[i].len);
		assert_refused(raw, SPOKE_STAT_CLOSED_PROTOCOL);
		assert_second_connection_works(stage);
	}
}
