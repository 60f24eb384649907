/* SPDX-License-Identifier: Apache-2.0 */
/* Rows 29 to 32 and 34 of the table of faults: ids that are unknown or used twice. */
#include "tests/integration/harness.h"
#include "tests/support/test.h"

#include "transport/wire/catalog.h"

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

RUNNER(stage_run_rows);

ROW(row_29_a_reply_of_an_unknown_id_is_dropped_and_counted, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct ending ending;
	uint64_t id = begin_call(stage, stage->echo, raw, &ending);

	stage_mark(stage);
	send_reply(raw, id + 1, "the next one");
	send_reply(raw, id + (UINT64_C(1) << 63), "far away");
	assert_consumer_lives(raw);
	assert_int_equal(ending.ends, 0);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_UNKNOWN, 2);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_LATE, 0);
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
	send_reply(raw, id, "y");
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
	send_reply(raw, id, "late");
	assert_consumer_lives(raw);
	assert_int_equal(ending.ends, 1);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_LATE, 1);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_UNKNOWN, 0);
	for (unsigned i = 0; i < 2 * UNKNOWN_MAX; i++)
		send_reply(raw, id, "late");
	assert_consumer_lives(raw);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_LATE, 1 + 2 * UNKNOWN_MAX);
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
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
	assert_closed_mutely(raw);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_UNKNOWN_REPLIES);
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
	send_reply(raw, id, "at last");
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
	send_reply(raw, ids[0], "fourth");
	assert_consumer_lives(raw);
	assert_int_equal(endings[0].ends, 1);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_LATE, 3);
	assert_counter_up_by(stage, SPOKE_STAT_CALLS_OK, 2);
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
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
	send_reply(raws[1], ids[0], "wrong");
	send_reply(raws[0], ids[1], "wrong");
	assert_consumer_lives(raws[0]);
	assert_consumer_lives(raws[1]);
	assert_int_equal(endings[0].ends + endings[1].ends, 0);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_UNKNOWN, 2);
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
	for (int i = 0; i < 2; i++)
		send_reply(raws[i], ids[i], "right");
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
	send_reply(raw, ids[0], "of another life");
	assert_consumer_lives(raw);
	assert_int_equal(endings[0].ends, 1);
	assert_int_equal(endings[1].ends, 0);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_UNKNOWN, 1);
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
	send_reply(raw, ids[1], "y");
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
	assert_closed_mutely(raw);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_ID_TWICE);
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
	assert_closed_mutely(raw);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_ID_TWICE);
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
	frames_init(&frames);
	frames_request(&frames, 5, "echo", "other");
	raw_send_buffer(other, &frames);
	assert_reply(other, 5, 20, NULL);
	assert_raw_lives(raw);
	stage_answer_later(stage);
	assert_reply(raw, 5, 20, NULL);
	for (int i = 0; i < 3; i++) {
		frames_init(&frames);
		frames_request(&frames, 5, "echo", "again");
		raw_send_buffer(raw, &frames);
		assert_reply(raw, 5, 20, &reply);
	}
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
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
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
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
	send_reply(raw, id, "y");
	assert_answered(stage, &ending, "\"y\"");
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_LATE, 0);
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
}
