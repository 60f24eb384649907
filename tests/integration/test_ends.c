/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows 35 to 37, 58 and 68 of the table of faults: ways in which a connection ends, and states in
 * which it is ended.
 */
#include "tests/integration/harness.h"
#include "tests/support/test.h"

#include "transport/wire/dubbo/head.h"

#include <spoke/host.h>

#include <errno.h>

#define CALLS 8u
#define DUBBO_REFUSED 100u /* the only status that is always safe to retry */
#define MUCH (7u << 20)    /* twice as much as sockets hold */

/* --- row 35: a provider resets its connection to the consumer under test */

/* Checks that the consumer reconnects and is served. */
static void assert_comes_again(struct stage *stage)
{
	struct raw *raw = raw_accept(stage);
	struct spokei_message message;
	struct ending ending;

	raw_frame(raw, &message);
	assert_int_equal(message.kind, SPOKEI_PROBE);
	stage_call(stage, stage->echo, "again", &ending, NULL);
	raw_frame(raw, &message);
	assert_int_equal(message.kind, SPOKEI_REQUEST);
	say_reply(raw, message.id, SPOKEI_DUBBO_OK, "again");
	assert_ends(stage, &ending, SPOKE_OK);
	assert_second_connection_works(stage);
}

static void begin_calls(struct stage *stage, struct ending *endings)
{
	for (unsigned i = 0; i < CALLS; i++)
		stage_call(stage, stage->echo, "lost", &endings[i], NULL);
}

static void assert_all_lost(struct stage *stage, struct ending *endings)
{
	for (unsigned i = 0; i < CALLS; i++)
		assert_ends(stage, &endings[i], SPOKE_ELOST);
}

RUNNER(stage_run_rows);

ROW(row_35_reset_while_connecting_fails_the_attempt, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	/* A unix socket is established at once. */
	enum spokei_faults_kind kind = stage->on == STAGE_UNIX ? SPOKEI_FAULTS_CONNECT
							       : SPOKEI_FAULTS_FINISH;

	raw_reset(raw);
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
	spokei_faults_fail(&stage->faulty, kind, 1, -ECONNRESET, false);
	while (stage->faulty.failed[kind] == 0)
		stage_turn(stage);
	if (kind == SPOKEI_FAULTS_FINISH) /* the kernel had established it anyway */
		raw_close(raw_accept(stage));
	stage_until_up(stage, SPOKE_STAT_CONNECTS_FAILED, 1);
	assert_comes_again(stage);
}

ROW(row_35_reset_before_the_first_byte_fails_waiting_calls, STAGE_ALL)
{
	struct ending endings[CALLS];
	struct raw *raw;

	stage_set_consumer(stage, NULL);
	raw = raw_accept(stage);
	begin_calls(stage, endings);
	raw_need(raw, 1);
	raw_reset(raw);
	assert_all_lost(stage, endings);
	assert_comes_again(stage);
}

ROW(row_35_reset_within_a_frame_fails_waiting_calls, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message message;
	struct ending endings[CALLS];
	struct spokei_buffer frames;

	begin_calls(stage, endings);
	raw_frame(raw, &message);
	frames_init(&frames);
	frames_reply(&frames, message.id, SPOKEI_DUBBO_OK, "half of it");
	raw_send(raw, spokei_buffer_data(&frames), spokei_buffer_len(&frames) - 3);
	stage_until_read(stage, spokei_buffer_len(&frames) - 3);
	spokei_buffer_fini(&frames);
	raw_reset(raw);
	assert_all_lost(stage, endings);
	assert_comes_again(stage);
}

/* Calls that were not written end with an error that allows retries elsewhere. */
ROW(row_35_reset_during_large_writes_fails_waiting_calls, STAGE_ALL)
{
	static unsigned char bytes[MUCH + 5] = { 0xc6, 0, MUCH >> 16 };
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spoke_span args = { bytes, sizeof(bytes) };
	struct ending large[2];
	struct ending endings[CALLS];

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(stage_try_call(stage, stage->echo, args, NULL, &large[i], NULL),
				 SPOKE_OK);
	raw_need(raw, 1);
	begin_calls(stage, endings);
	stage_pass(stage, 5 * MS);
	raw_reset(raw);
	for (unsigned i = 0; i < 2; i++)
		assert_ends(stage, &large[i], SPOKE_ELOST);
	assert_true(large[0].written);
	assert_all_lost(stage, endings);
	for (unsigned i = 0; i < CALLS; i++)
		assert_false(endings[i].written);
	assert_comes_again(stage);
}

ROW(row_35_a_reset_while_draining_ends_the_drain, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct ending endings[CALLS];

	begin_calls(stage, endings);
	raw_need(raw, 1);
	assert_int_equal(spoke_engine_drain(stage->engine, UINT64_MAX), SPOKE_OK);
	stage_pass(stage, 10 * MS);
	raw_reset(raw);
	assert_all_lost(stage, endings);
	assert_int_equal(spoke_engine_run(stage->engine), SPOKE_OK);
	assert_counter_up_by(stage, SPOKE_STAT_CONNECTS, 0);
}

/* --- row 35: a consumer resets its connection to the provider under test */

ROW(row_35_consumer_reset_before_its_first_byte_is_removed, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);

	raw_reset(raw);
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_BY_PEER);
	assert_second_connection_works(stage);
}

ROW(row_35_consumer_reset_within_a_frame_is_removed, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	unsigned handled = stage->handled;
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_request(&frames, 1, "echo", "half of it");
	raw_send(raw, spokei_buffer_data(&frames), spokei_buffer_len(&frames) - 3);
	stage_until_read(stage, spokei_buffer_len(&frames) - 3);
	spokei_buffer_fini(&frames);
	raw_reset(raw);
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_BY_PEER);
	assert_int_equal(stage->handled, handled);
	assert_second_connection_works(stage);
}

ROW(row_35_requests_of_a_consumer_that_resets_are_abandoned, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_heartbeat(&frames, 99); /* an unread answer resets a unix socket, too */
	for (unsigned id = 0; id < CALLS; id++)
		frames_request(&frames, id, "later", "x");
	raw_send_buffer(raw, &frames);
	while (stage->later_count < CALLS)
		stage_turn(stage);
	stage_pass(stage, 10 * MS);
	raw_reset(raw);
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_BY_PEER);
	while (stage->abandoned < CALLS)
		stage_turn(stage);
	stage_end_serving(stage);
	stage_until_up(stage, SPOKE_STAT_REQUESTS_ABANDONED, CALLS);
	assert_second_connection_works(stage);
}

ROW(row_35_consumer_reset_during_a_write_is_removed, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;

	frames_init(&frames);
	for (uint64_t id = 1; id <= 3; id++)
		frames_request_with(&frames, id, STAGE_SERVICE, "large",
				    (struct spoke_span){ "\xce\0\x40\0\0", 5 });
	raw_send_buffer(raw, &frames);
	raw_need(raw, 1);
	assert_true(stage->provider->link->queued > 0);
	raw_reset(raw);
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_BY_PEER);
	assert_int_equal(stage->provider->link->queued, 0);
	assert_second_connection_works(stage);
}

ROW(row_35_a_consumer_that_resets_while_draining_ends_the_drain, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_heartbeat(&frames, 99);
	frames_request(&frames, 1, "later", "x");
	raw_send_buffer(raw, &frames);
	while (stage->later_count < 1)
		stage_turn(stage);
	assert_int_equal(spoke_engine_drain(stage->engine, UINT64_MAX), SPOKE_OK);
	stage_pass(stage, 10 * MS);
	raw_reset(raw);
	while (stage->abandoned < 1)
		stage_turn(stage);
	spoke_consumer_free(stage->second);
	stage_end_serving(stage);
	stage_pass(stage, 10 * MS);
	assert_int_equal(spoke_engine_run(stage->engine), SPOKE_OK);
	assert_int_equal(spoke_provider_connections(stage->provider), 0);
}

/* --- row 36 */

/* Replies that arrived before the end of the stream count. */
ROW(row_36_replies_before_the_end_are_read, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message message;
	struct spokei_buffer frames;
	struct ending endings[CALLS];
	struct ending unanswered;

	begin_calls(stage, endings);
	stage_call(stage, stage->echo, "never", &unanswered, NULL);
	frames_init(&frames);
	for (unsigned i = 0; i < CALLS; i++) {
		raw_frame(raw, &message);
		frames_reply(&frames, message.id, SPOKEI_DUBBO_OK, "late");
	}
	raw_frame(raw, &message);
	raw_send_buffer(raw, &frames);
	raw_close(raw);
	for (unsigned i = 0; i < CALLS; i++)
		assert_ends(stage, &endings[i], SPOKE_OK);
	assert_ends(stage, &unanswered, SPOKE_ELOST);
	assert_true(unanswered.written);
	assert_comes_again(stage);
}

ROW(row_36_requests_before_the_end_are_served, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	unsigned handled = stage->handled;
	struct spokei_buffer frames;

	frames_init(&frames);
	for (unsigned id = 0; id < CALLS; id++)
		frames_request(&frames, id, "later", "x");
	raw_send_buffer(raw, &frames);
	raw_close(raw);
	while (stage->handled < handled + CALLS)
		stage_turn(stage);
	stage_end_serving(stage);
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
	assert_second_connection_works(stage);
}

/* --- row 37 */

ROW(row_37_a_consumer_that_sends_no_more_gets_its_answers, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;

	frames_init(&frames);
	for (unsigned id = 0; id < CALLS; id++)
		frames_request(&frames, id, "later", "x");
	raw_send_buffer(raw, &frames);
	raw_shut(raw);
	while (stage->later_count < CALLS)
		stage_turn(stage);
	stage_pass(stage, 20 * MS);
	assert_nothing_closed(stage);
	for (unsigned id = 0; id < CALLS; id++) {
		stage_answer_later(stage);
		assert_reply(raw, id, SPOKEI_DUBBO_OK, NULL);
	}
	assert_int_equal(raw_wait_end(raw), 0);
	assert_false(raw->reset);
	assert_second_connection_works(stage);
}

/* --- row 68 */

/* Connects a peer whose request runs, and drains. The peer has read READONLY. */
static struct raw *drain_with_request(struct stage *stage)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_message message;
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_heartbeat(&frames, 99);
	frames_request(&frames, 1, "later", "begun");
	raw_send_buffer(raw, &frames);
	raw_frame(raw, &message);
	while (stage->later_count < 1)
		stage_turn(stage);
	assert_int_equal(spoke_engine_drain(stage->engine, UINT64_MAX), SPOKE_OK);
	raw_frame(raw, &message);
	assert_int_equal(message.kind, SPOKEI_READONLY);
	return raw;
}

static void exchange_echoes(struct raw *raw, struct spokei_buffer *frames, unsigned first,
			    unsigned status)
{
	for (unsigned id = first; id < first + CALLS; id++)
		frames_request(frames, id, "echo", "crossed");
	raw_send_buffer(raw, frames);
	for (unsigned id = first; id < first + CALLS; id++)
		assert_reply(raw, id, status, NULL);
}

/* Java peers do not answer READONLY, and with retries=0 they would lose refused requests. */
ROW(row_68_requests_that_cross_the_drain_notice_are_served, STAGE_VIRTUAL)
{
	struct raw *raw = drain_with_request(stage);
	unsigned handled = stage->handled;
	struct spokei_buffer frames;

	frames_init(&frames);
	stage_pass(stage, 200 * MS);
	stage_pass(stage, 200 * MS);
	exchange_echoes(raw, &frames, 2, SPOKEI_DUBBO_OK);
	assert_int_equal(stage->handled, handled + CALLS);
	frames_raw(&frames, 0xbb, 0, 98, "\xa1R", 2); /* READONLY */
	exchange_echoes(raw, &frames, 2 + CALLS, DUBBO_REFUSED);
	assert_int_equal(stage->handled, handled + CALLS);
	stage_answer_later(stage);
	assert_reply(raw, 1, SPOKEI_DUBBO_OK, NULL);
	raw_shut(raw);
	assert_int_equal(raw_wait_end(raw), 0);
	assert_int_equal(spoke_engine_run(stage->engine), SPOKE_OK);
}

/* A peer that has answered READONLY knows of the drain: its requests are refused as safe to retry,
 * and not run. */
ROW(row_68_requests_after_the_answered_notice_are_refused, STAGE_ALL)
{
	struct raw *raw = drain_with_request(stage);
	unsigned handled = stage->handled;
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_raw(&frames, 0xbb, 0, 5, "\241R", 2);
	exchange_echoes(raw, &frames, 2, DUBBO_REFUSED);
	assert_int_equal(stage->handled, handled);
	stage_answer_later(stage);
	assert_reply(raw, 1, SPOKEI_DUBBO_OK, NULL);
	raw_shut(raw); /* otherwise the consumer waits a while for more frames */
	assert_int_equal(raw_wait_end(raw), 0);
	assert_int_equal(spoke_engine_run(stage->engine), SPOKE_OK);
}

/* --- row 58 */

#define RUNNING_MAX 64u
#define BATCH 32u

static struct raw *ask_and_reset(struct stage *stage)
{
	struct raw *raw = raw_start(stage);
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_heartbeat(&frames, 99);
	frames_request(&frames, 1, "later", "x");
	(void)raw_try_send(raw, spokei_buffer_data(&frames), spokei_buffer_len(&frames));
	spokei_buffer_fini(&frames);
	return raw;
}

/* Requests of reset connections still count against the limit until their handlers have ended. */
ROW(row_58_requests_of_reset_connections_count_until_they_end, STAGE_ALL)
{
	const struct spoke_provider_options options = { .requests_max = RUNNING_MAX };
	unsigned batches = stage_is_virtual(stage) ? 100 : 10;
	struct raw *batch[BATCH];
	size_t blocks = 0;
	size_t fds;

	stage_set_provider(stage, &options);
	fds = stage->faulty.fds;
	stage_mark(stage);
	for (unsigned i = 0; i < batches; i++) {
		uint64_t requests = stage_up(stage, SPOKE_STAT_REQUESTS);

		for (unsigned k = 0; k < BATCH; k++)
			batch[k] = ask_and_reset(stage);
		stage_until_up(stage, SPOKE_STAT_REQUESTS, requests + BATCH);
		for (unsigned k = 0; k < BATCH; k++)
			raw_reset(batch[k]);
		stage_until_up(stage, SPOKE_STAT_CLOSED, (uint64_t)(i + 1) * BATCH);
		assert_true(stage->later_count <= RUNNING_MAX);
		if (i == 3)
			blocks = stage->faulty.blocks;
	}
	assert_int_equal(stage->later_count, RUNNING_MAX);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_REFUSED,
			     (uint64_t)batches * BATCH - RUNNING_MAX);
	assert_int_equal(stage->faulty.fds, fds);
	assert_true(stage->faulty.blocks <= blocks + BATCH);
	while (stage->later_count > 0)
		stage_answer_later(stage);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_ABANDONED, RUNNING_MAX);
	assert_second_connection_works(stage);
}
