/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows 27 to 34 of the table of faults: answers that are too large; ids that are unknown, used
 * twice, or wrap.
 */
#include "cluster/call/caller.h"
#include "tests/integration/harness.h"
#include "tests/support/test.h"
#include "transport/wire/catalog.h"
#include "transport/wire/dubbo/head.h"

#include <spoke/host.h>

#include <stdio.h>
#include <string.h>

/*
 * --- rows 27 and 28 of the table of faults: large requests to unknown services, and answers
 * that are too large
 */

/* Sends a request to an unknown service, with 60,000 arguments or one of 4 MiB. */
static void put_unknown(struct spokei_buffer *frames, bool many)
{
	static unsigned char bytes[4 << 20];
	struct spoke_builder builder;
	struct spoke_span args;

	spoke_builder_init(&builder, spoke_host_env(), NULL);
	for (unsigned i = 0; many && i < 60000; i++)
		spoke_pack_nil(&builder);
	if (!many)
		spoke_pack_bin(&builder, bytes, sizeof(bytes));
	assert_int_equal(spoke_builder_finish(&builder, &args), 0);
	frames_init(frames);
	frames_request_with(frames, 4, "demo.NotHere", "echo", args);
	spoke_builder_fini(&builder);
}

RUNNER(stage_run_rows);

/* Only the end of the arguments is determined: no allocation, no handler. */
ROW(row_27_unknown_service_with_huge_arguments_is_refused, STAGE_SMOOTH)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;
	unsigned handled;
	size_t before;

	assert_raw_lives(raw);
	assert_raw_lives(raw);
	handled = stage->handled;
	put_unknown(&frames, true);
	if (stage->on == STAGE_MEMORY)
		spokei_vnet_set_all(stage->world.net,
				    &(struct spokei_vnet_link){ .capacity = 1 << 20 });
	stage_mark(stage);
	raw_send_buffer(raw, &frames);
	assert_not_found(raw, 4);
	/* In memory the frame arrives as a whole and is parsed in place. */
	if (stage->on == STAGE_MEMORY)
		assert_int_equal(stage_demands(stage), 0);
	put_unknown(&frames, false);
	before = stage->faulty.bytes;
	stage_mark(stage);
	raw_send_buffer(raw, &frames);
	assert_not_found(raw, 4);
	/* The frame, and its old half while the buffer grows. */
	assert_true(stage->faulty.bytes_peak - before <= (12u << 20) + (64u << 10));
	assert_int_equal(stage->handled, handled);
	assert_second_connection_works(stage);
	assert_raw_lives(raw);
}

static void call_with_number(struct raw *raw, uint64_t id, const char *method, uint32_t number)
{
	struct spoke_builder builder;
	unsigned char memory[16];
	struct spokei_buffer frames;
	struct spoke_span args;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_u64(&builder, number);
	assert_int_equal(spoke_builder_finish(&builder, &args), 0);
	frames_init(&frames);
	frames_request_with(&frames, id, STAGE_SERVICE, method, args);
	stage_mark(raw->stage);
	raw_send_buffer(raw, &frames);
}

static void assert_too_large(struct raw *raw, uint64_t id)
{
	struct spokei_message reply;

	assert_reply(raw, id, 25, &reply);
	assert_true(reply.error_text.len > 0);
	assert_counter_up_by(raw->stage, SPOKE_STAT_REPLIES_TOO_LARGE, 1);
	assert_nothing_closed(raw->stage);
	assert_second_connection_works(raw->stage);
	assert_raw_lives(raw);
}

ROW(row_28_an_answer_over_the_frames_limit_becomes_an_error, STAGE_ALL)
{
	struct spoke_provider_options options = { .frame_max = 65536 };
	struct spokei_message reply;
	size_t longest = 0;
	struct raw *raw;

	stage_set_provider(stage, &options);
	raw = raw_connect(stage);
	call_with_number(raw, 1, "large", 65000);
	assert_reply(raw, 1, 20, &reply);
	assert_int_equal(reply.value.len, 65003);
	/* Exact to the byte: the last answer that succeeds has the length of the limit. */
	for (uint32_t i = 0; i < 40; i++) {
		size_t len;

		call_with_number(raw, i, "large", 65500 + i);
		raw_frame(raw, &reply);
		len = raw->given;
		if (reply.status != 20) {
			assert_int_equal(reply.status, 25);
			assert_int_equal(longest, options.frame_max);
			continue;
		}
		assert_true(len <= options.frame_max);
		longest = len;
	}
	call_with_number(raw, 2, "large", 65536);
	assert_too_large(raw, 2);
	call_with_number(raw, 3, "large", 1 << 20);
	assert_too_large(raw, 3);
}

ROW(row_28_an_answer_over_the_limits_of_values_becomes_an_error, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);

	call_with_number(raw, 1, "large", 8 << 20);
	assert_too_large(raw, 1);
	call_with_number(raw, 2, "large", 16 << 20);
	assert_too_large(raw, 2);
	call_with_number(raw, 3, "deep", 129);
	assert_too_large(raw, 3);
	call_with_number(raw, 4, "deep", 128);
	assert_reply(raw, 4, 20, NULL);
}

/*
 * --- frames above the limit whose length is known: each ends its own call, and the connection
 * goes on
 */

#define BEYOND 1000u /* bytes of a body above the limit */
/* Sends the body of a frame, in parts. */
static void send_body(struct raw *raw)
{
	static const unsigned char part[65536];
	size_t left = SPOKEI_FRAME_MAX + BEYOND;

	while (left > 0) {
		size_t some = left < sizeof(part) ? left : sizeof(part);

		raw_send(raw, part, some);
		left -= some;
	}
}

/* A Java peer may allow longer frames than this side. The connection and other requests go on. */
ROW(row_04_a_request_over_the_limit_is_answered_and_skipped, STAGE_SMOOTH)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_message reply;

	stage_mark(stage);
	say_head(raw, 0xdb, 0, 7, SPOKEI_FRAME_MAX + BEYOND);
	assert_reply(raw, 7, 40, &reply);
	assert_int_equal(reply.error_text.len, 53);
	assert_memory_equal(reply.error_text.data,
			    "the frame has 8389624 bytes; frame.max allows 8388608", 53);
	send_body(raw);
	assert_raw_lives(raw);
	assert_true(stage->faulty.largest <= 65536);
	assert_nothing_closed(stage);
	assert_counter_up_by(stage, SPOKE_STAT_BAD_REQUESTS, 1);
}

/* Other calls of the connection get their replies. */
ROW(row_04_a_reply_over_the_limit_ends_its_call_only, STAGE_SMOOTH)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_buffer frames;
	struct ending endings[3];
	uint64_t ids[3];

	for (size_t i = 0; i < LENGTH(endings); i++)
		ids[i] = begin_call(stage, stage->echo, raw, &endings[i]);
	stage_mark(stage);
	say_head(raw, 0x02, 20, ids[1], SPOKEI_FRAME_MAX + BEYOND);
	assert_ends(stage, &endings[1], SPOKE_ETOOLARGE);
	assert_string_equal(endings[1].text,
			    "the frame has 8389624 bytes; frame.max allows 8388608");
	send_body(raw);
	frames_init(&frames);
	frames_reply(&frames, ids[0], SPOKEI_DUBBO_OK, "x");
	frames_reply(&frames, ids[2], SPOKEI_DUBBO_OK, "x");
	raw_send_buffer(raw, &frames);
	assert_ends(stage, &endings[0], SPOKE_OK);
	assert_ends(stage, &endings[2], SPOKE_OK);
	assert_true(stage->faulty.largest <= 65536);
	assert_nothing_closed(stage);
}

ROW(row_04_a_skipped_frame_has_the_same_time_limit, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);

	stage_shorten(stage);
	say_head(raw, 0x9b, 0, 7, INT32_MAX);
	assert_refused(raw, SPOKE_STAT_CLOSED_FRAME_TIME);
}

/* --- rows 29 to 32 and 34 of the table of faults: ids that are unknown or used twice */

#define UNKNOWN_MAX 1000u /* per minute */
/* Accepts the next connection and reads its heartbeat. */
static struct raw *accept_next(struct stage *stage)
{
	struct raw *raw = raw_accept(stage);
	struct spokei_message probe;

	raw_frame(raw, &probe);
	assert_int_equal(probe.kind, SPOKEI_PROBE);
	return raw;
}

/* --- row 29 */

ROW(row_29_a_reply_of_an_unknown_id_is_dropped_and_counted, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct ending ending;
	uint64_t id = begin_call(stage, stage->echo, raw, &ending);

	stage_mark(stage);
	say_reply(raw, id + 1, 20, "the next one");
	say_reply(raw, id + (UINT64_C(1) << 63), 20, "far away");
	assert_consumer_lives(raw);
	assert_int_equal(ending.ends, 0);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_UNKNOWN, 2);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_LATE, 0);
	assert_undisturbed(stage);
	say_reply(raw, id, 20, "y");
	assert_answered(stage, &ending, "\"y\"");
}

/* Late replies are not an error of the peer, whatever their number. */
ROW(row_29_a_reply_of_a_timed_out_id_is_dropped_and_counted, STAGE_ALL)
{
	const struct spoke_call_options soon = { .timeout_ns = 20 * MS };
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message request;
	struct ending ending;
	uint64_t id;

	assert_int_equal(stage_try_call(stage, stage->echo, (struct spoke_span){ "\xc0", 1 }, &soon,
					&ending, NULL),
			 SPOKE_OK);
	raw_frame(raw, &request);
	id = request.id;
	assert_ends(stage, &ending, SPOKE_ETIMEOUT);
	assert_counter_up_by(stage, SPOKE_STAT_CALLS_TIMEOUT, 1);
	stage_mark(stage);
	say_reply(raw, id, 20, "late");
	assert_consumer_lives(raw);
	assert_int_equal(ending.ends, 1);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_LATE, 1);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_UNKNOWN, 0);
	for (unsigned i = 0; i < 2 * UNKNOWN_MAX; i++)
		say_reply(raw, id, 20, "late");
	assert_consumer_lives(raw);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_LATE, 1 + 2 * UNKNOWN_MAX);
	assert_undisturbed(stage);
}

static void send_unknown(struct raw *raw, uint64_t id, unsigned count)
{
	struct spokei_buffer frames;

	frames_init(&frames);
	for (unsigned i = 0; i < count; i++)
		frames_reply(&frames, id + i, 20, "?");
	raw_send_buffer(raw, &frames);
}

ROW(row_29_more_than_1000_unknown_replies_a_minute_close, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct ending ending;
	uint64_t id = begin_call(stage, stage->echo, raw, &ending);

	stage_mark(stage);
	send_unknown(raw, id + 1, UNKNOWN_MAX);
	assert_consumer_lives(raw);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_UNKNOWN, UNKNOWN_MAX);
	assert_nothing_closed(stage);
	assert_int_equal(ending.ends, 0);
	assert_second_connection_works(stage);
	send_unknown(raw, id + 1, 1);
	assert_ends(stage, &ending, SPOKE_EPROTOCOL);
	assert_refused(raw, SPOKE_STAT_CLOSED_UNKNOWN_REPLIES);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_UNKNOWN, UNKNOWN_MAX + 1);
	assert_second_connection_works(stage);
}

ROW(row_29_every_minute_has_its_own_1000_unknown_replies, STAGE_VIRTUAL)
{
	const struct spoke_consumer_options patient = { .timeout_ns = 1000 * SECOND,
							.heartbeat_ns = SPOKE_OFF };
	struct spokei_message probe;
	struct ending ending;
	struct raw *raw;
	uint64_t id;

	stage_set_consumer(stage, &patient);
	raw = raw_accept(stage);
	raw_frame(raw, &probe);
	id = begin_call(stage, stage->echo, raw, &ending);
	stage_mark(stage);
	for (unsigned i = 1; i <= 5; i++) {
		send_unknown(raw, id + 1, UNKNOWN_MAX);
		assert_consumer_lives(raw);
		assert_counter_up_by(stage, SPOKE_STAT_REPLIES_UNKNOWN, (uint64_t)i * UNKNOWN_MAX);
		assert_nothing_closed(stage);
		stage_pass(stage, 61 * SECOND);
	}
	send_unknown(raw, id + 1, UNKNOWN_MAX);
	stage_pass(stage, 50 * SECOND);
	assert_nothing_closed(stage);
	send_unknown(raw, id + 1, 1);
	assert_ends(stage, &ending, SPOKE_EPROTOCOL);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_UNKNOWN_REPLIES);
	assert_second_connection_works(stage);
}

ROW(row_29_unknown_replies_of_many_minutes_do_not_add_up, STAGE_VIRTUAL)
{
	const struct spoke_consumer_options patient = { .timeout_ns = 2000 * SECOND,
							.heartbeat_ns = SPOKE_OFF };
	struct spokei_message probe;
	struct ending ending;
	struct raw *raw;
	uint64_t id;

	stage_set_consumer(stage, &patient);
	raw = raw_accept(stage);
	raw_frame(raw, &probe);
	id = begin_call(stage, stage->echo, raw, &ending);
	stage_mark(stage);
	for (unsigned i = 0; i <= UNKNOWN_MAX; i++) {
		send_unknown(raw, id + 1, 1);
		stage_pass(stage, SECOND);
	}
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_UNKNOWN, UNKNOWN_MAX + 1);
	assert_nothing_closed(stage);
	say_reply(raw, id, 20, "at last");
	assert_answered(stage, &ending, "\"at last\"");
	assert_second_connection_works(stage);
}

/* --- row 30 */

ROW(row_30_of_two_replies_to_one_call_the_first_wins, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_buffer frames;
	struct ending endings[2];
	uint64_t ids[2];

	ids[0] = begin_call(stage, stage->echo, raw, &endings[0]);
	ids[1] = begin_call(stage, stage->echo, raw, &endings[1]);
	stage_mark(stage);
	frames_init(&frames);
	frames_reply(&frames, ids[0], 20, "first");
	frames_reply(&frames, ids[0], 20, "second");
	frames_reply(&frames, ids[0], 70, "third");
	frames_reply(&frames, ids[1], 20, "other");
	raw_send_buffer(raw, &frames);
	assert_answered(stage, &endings[0], "\"first\"");
	assert_answered(stage, &endings[1], "\"other\"");
	say_reply(raw, ids[0], 20, "fourth");
	assert_consumer_lives(raw);
	assert_int_equal(endings[0].ends, 1);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_LATE, 3);
	assert_counter_up_by(stage, SPOKE_STAT_CALLS_OK, 2);
	assert_undisturbed(stage);
}

/* --- row 31 */

ROW(row_31_the_right_id_on_another_connection_is_dropped, STAGE_ALL)
{
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	struct spokei_message request;
	struct ending endings[2];
	struct raw *raws[2];
	uint64_t ids[2];

	(void)stage_raw_to_consumer(stage);
	stage_add_consumer(stage, NULL, 2, &consumer, &echo);
	for (int i = 0; i < 2; i++)
		raws[i] = accept_next(stage);
	while (spoke_consumer_ready(consumer) < 2)
		stage_turn(stage);
	/* One for each, in any order. */
	for (int i = 0; i < 2; i++)
		stage_call(stage, echo, "x", &endings[i], NULL);
	for (int i = 0; i < 2; i++) {
		raw_frame(raws[i], &request);
		ids[i] = request.id;
	}
	stage_mark(stage);
	say_reply(raws[1], ids[0], 20, "wrong");
	say_reply(raws[0], ids[1], 20, "wrong");
	assert_consumer_lives(raws[0]);
	assert_consumer_lives(raws[1]);
	assert_int_equal(endings[0].ends + endings[1].ends, 0);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_UNKNOWN, 2);
	assert_undisturbed(stage);
	for (int i = 0; i < 2; i++)
		say_reply(raws[i], ids[i], 20, "right");
	for (int i = 0; i < 2; i++)
		assert_answered(stage, &endings[i], "\"right\"");
}

ROW(row_31_the_right_id_after_a_reconnect_is_dropped, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct ending endings[2];
	uint64_t ids[2];

	ids[0] = begin_call(stage, stage->echo, raw, &endings[0]);
	raw_reset(raw);
	assert_ends(stage, &endings[0], SPOKE_ELOST);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_BY_PEER);
	raw = accept_next(stage);
	ids[1] = begin_call(stage, stage->echo, raw, &endings[1]);
	stage_mark(stage);
	say_reply(raw, ids[0], 20, "of another life");
	assert_consumer_lives(raw);
	assert_int_equal(endings[0].ends, 1);
	assert_int_equal(endings[1].ends, 0);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_UNKNOWN, 1);
	assert_undisturbed(stage);
	say_reply(raw, ids[1], 20, "y");
	assert_answered(stage, &endings[1], "\"y\"");
}

/* --- row 32 */

/* Repeats the id of one of two requests in progress. */
static void assert_twice_closes(struct stage *stage, uint64_t first, uint64_t second,
				uint64_t twice)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;
	unsigned handled = stage->handled;

	frames_init(&frames);
	frames_request(&frames, first, "later", "one");
	frames_request(&frames, second, "later", "two");
	frames_request(&frames, twice, "echo", "one again");
	frames_request(&frames, 7, "echo", "never looked at");
	raw_send_buffer(raw, &frames);
	assert_refused(raw, SPOKE_STAT_CLOSED_ID_TWICE);
	assert_int_equal(stage->handled, handled + 2);
	assert_int_equal(stage->abandoned, 2);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS, 2);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_ABANDONED, 2);
	assert_second_connection_works(stage);
}

ROW(row_32_a_request_id_twice_in_flight_closes, STAGE_ALL)
{
	assert_twice_closes(stage, 5, 6, 5);
}

ROW(row_32_so_does_the_newest, STAGE_ALL)
{
	assert_twice_closes(stage, 5, 6, 6);
}

ROW(row_32_so_does_one_when_ids_fall, STAGE_ALL)
{
	assert_twice_closes(stage, 6, 5, 6);
}

ROW(row_32_so_does_the_newest_when_ids_fall, STAGE_ALL)
{
	assert_twice_closes(stage, 6, 5, 5);
}

ROW(row_32_a_request_id_twice_in_msgpack_rpc_closes, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	unsigned handled = stage->handled;

	raw->wire = spokei_catalog_wire("msgpack-rpc");
	RAW_SEND(raw, "\x94\0\5\245later\x91\1"
		      "\x94\0\xcc\5\244echo\x91\2");
	assert_refused(raw, SPOKE_STAT_CLOSED_ID_TWICE);
	assert_int_equal(stage->handled, handled + 1);
	assert_second_connection_works(stage);
}

/* An id may be used again after its reply. Other connections have their own ids, and one-way
 * requests have none. */
ROW(row_32_an_id_that_is_not_in_flight_may_come_again, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct raw *other = raw_connect(stage);
	struct spokei_buffer frames;
	struct spokei_message reply;

	stage_mark(stage);
	frames_init(&frames);
	frames_request(&frames, 5, "later", "one");
	frames_raw(&frames, 0x9b, 0, 5, BODY_ECHO(BODY_OBJECT) "\242hi\x80",
		   sizeof(BODY_ECHO(BODY_OBJECT) "\242hi\x80") - 1);
	raw_send_buffer(raw, &frames);
	say_request(other, 5, "echo", "other");
	assert_reply(other, 5, 20, NULL);
	assert_raw_lives(raw);
	stage_answer_later(stage);
	assert_reply(raw, 5, 20, NULL);
	for (int i = 0; i < 3; i++) {
		say_request(raw, 5, "echo", "again");
		assert_reply(raw, 5, 20, &reply);
	}
	assert_undisturbed(stage);
}

/* --- row 34 */

static void put_probe_answers(struct spokei_buffer *frames, uint64_t id)
{
	frames_init(frames);
	frames_raw(frames, 0x3b, 20, id, "\xc0", 1);
	frames_raw(frames, 0x3b, 20, UINT64_MAX, "\xc0", 1);
	frames_raw(frames, 0x22, 20, 0, "N", 1); /* of hessian2 */
}

ROW(row_34_unsolicited_heartbeat_reply_to_provider_is_traffic, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;

	put_probe_answers(&frames, 1);
	raw_send_buffer(raw, &frames);
	assert_raw_lives(raw);
	assert_counter_up_by(stage, SPOKE_STAT_PROBE_ANSWERS_READ, 3);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_UNKNOWN, 0);
	assert_counter_up_by(stage, SPOKE_STAT_MESSAGES_WRITTEN, 1);
	assert_undisturbed(stage);
}

ROW(row_34_a_heartbeat_reply_does_not_end_a_call, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_buffer frames;
	struct ending ending;
	uint64_t id = begin_call(stage, stage->echo, raw, &ending);

	stage_mark(stage);
	put_probe_answers(&frames, id);
	raw_send_buffer(raw, &frames);
	assert_consumer_lives(raw);
	assert_int_equal(ending.ends, 0);
	assert_counter_up_by(stage, SPOKE_STAT_PROBE_ANSWERS_READ, 3);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_UNKNOWN, 0);
	say_reply(raw, id, 20, "y");
	assert_answered(stage, &ending, "\"y\"");
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_LATE, 0);
	assert_undisturbed(stage);
}

/* --- row 33 of the table of faults: request ids and handles that wrap around */

/* Limits the ids of a connection to this many bits and sets the next one. */
static void narrow_ids(struct stage *stage, uint64_t last, uint64_t next)
{
	struct spokei_pendings *pendings = &stage_conn_of(stage->consumer)->pendings;

	assert_int_equal(pendings->count, 0);
	pendings->first = 0;
	pendings->last = last;
	pendings->next = next;
}

ROW(row_33_ids_begin_anew_after_the_last_one, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct ending endings[4];
	uint64_t ids[4];

	narrow_ids(stage, UINT64_MAX, UINT64_MAX - 1);
	for (size_t i = 0; i < LENGTH(endings); i++)
		ids[i] = begin_call(stage, stage->echo, raw, &endings[i]);
	assert_true(ids[0] == UINT64_MAX - 1 && ids[1] == UINT64_MAX);
	assert_true(ids[2] == 0 && ids[3] == 1);
	for (size_t i = LENGTH(endings); i-- > 0;) {
		char text[24];
		char value[32];

		(void)snprintf(text, sizeof(text), "%zu", i);
		(void)snprintf(value, sizeof(value), "\"%zu\"", i);
		say_reply(raw, ids[i], 20, text);
		assert_answered(stage, &endings[i], value);
	}
	assert_undisturbed(stage);
}

ROW(row_33_an_id_that_waits_is_skipped_after_a_wrap, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct ending waits[3];
	uint64_t old[3];

	narrow_ids(stage, 255, 100);
	for (size_t i = 0; i < LENGTH(waits); i++)
		old[i] = begin_call(stage, stage->echo, raw, &waits[i]);
	assert_int_equal(old[2], 102);
	for (unsigned i = 0; i < 1000; i++) {
		struct ending ending;
		uint64_t id = begin_call(stage, stage->echo, raw, &ending);

		assert_true(id < 100 || (id > 102 && id <= 255));
		say_reply(raw, id, 20, "new");
		assert_answered(stage, &ending, "\"new\"");
	}
	assert_second_connection_works(stage);
	for (size_t i = 0; i < LENGTH(waits); i++) {
		assert_int_equal(waits[i].ends, 0);
		say_reply(raw, old[i], 20, "old");
		assert_answered(stage, &waits[i], "\"old\"");
	}
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_LATE, 0);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_UNKNOWN, 0);
	assert_nothing_closed(stage);
}

#define FEW 256u
/* Makes as many calls as there are ids, each with its own id; one more call is rejected. */
ROW(row_33_with_all_ids_waiting_the_next_call_is_refused, STAGE_ALL)
{
	static struct ending endings[FEW];
	struct raw *raw = stage_raw_to_consumer(stage);
	bool seen[FEW] = { false };
	struct ending ending;

	narrow_ids(stage, FEW - 1, 250);
	for (size_t i = 0; i < FEW; i++) {
		uint64_t id = begin_call(stage, stage->echo, raw, &endings[i]);

		assert_true(id < FEW && !seen[id]);
		seen[id] = true;
	}
	stage_mark(stage);
	assert_int_equal(stage_try_call(stage, stage->echo, (struct spoke_span){ "\xc0", 1 }, NULL,
					&ending, NULL),
			 SPOKE_ELIMIT);
	assert_counter_up_by(stage, SPOKE_STAT_CALLS_REFUSED, 1);
	assert_second_connection_works(stage);
	for (uint64_t id = 0; id < FEW; id++)
		say_reply(raw, id, 20, "y");
	for (size_t i = 0; i < FEW; i++)
		assert_answered(stage, &endings[i], "\"y\"");
	assert_int_equal(ending.ends, 0);
	assert_nothing_closed(stage);
}

/* The handle of an ended call stays invalid, even after the generations of its cell have wrapped
 * around. */
ROW(row_33_stale_handle_cancels_no_call, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spoke_call calls[3];
	struct spokei_message request;
	struct ending endings[3];
	uint64_t *handle; /* of the cell; its upper half is the generation */

	/* The cell is used once; then its next generation is the last but one. */
	stage_call(stage, stage->echo, "x", &endings[0], &calls[0]);
	handle = (uint64_t *)(void *)stage->consumer->caller->calls.chunks[0];
	raw_frame(raw, &request);
	assert_int_equal(request.kind, SPOKEI_REQUEST);
	assert_int_equal(*handle, calls[0].handle);
	assert_true(spoke_call_cancel(stage->consumer, calls[0]));
	assert_ends(stage, &endings[0], SPOKE_ECANCELED);
	*handle |= (uint64_t)(UINT32_MAX - 1) << 32;
	for (int i = 1; i < 3; i++) {
		stage_call(stage, stage->echo, "x", &endings[i], &calls[i]);
		raw_frame(raw, &request);
		assert_int_equal(request.kind, SPOKEI_REQUEST);
		assert_true(calls[i].handle != 0);
		assert_false(spoke_call_cancel(stage->consumer, calls[i - 1]));
		if (i == 2)
			break;
		assert_true(spoke_call_cancel(stage->consumer, calls[i]));
		assert_ends(stage, &endings[i], SPOKE_ECANCELED);
	}
	assert_int_equal(calls[1].handle >> 32, UINT32_MAX);
	assert_int_equal(calls[2].handle >> 32, 1);
	assert_false(spoke_call_cancel(stage->consumer, (struct spoke_call){ 0 }));
	assert_consumer_lives(raw);
	assert_int_equal(endings[2].ends, 0);
	assert_true(spoke_call_cancel(stage->consumer, calls[2]));
	assert_ends(stage, &endings[2], SPOKE_ECANCELED);
	assert_undisturbed(stage);
}
