/* SPDX-License-Identifier: Apache-2.0 */
/* Row 55 of the table of faults: a peer that requests a lot and does not read the replies. */
#include "tests/integration/harness.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <string.h>

#define CROWD 1000u
#define LARGE 65536u   /* bytes of an answer */
#define TAKEN_MAX 100u /* answers that the kernel buffers for a connection that is not read */
#define SLOW_NS (30 * SECOND)
/* Returns the bytes that one connection may use: its output at the limit, the memory to which that
 * grows (a quarter more, see core/memory/buffer.c), and unanswered requests. */
#define MEMORY_MAX (2 * SPOKEI_OUT_MAX + SPOKEI_OUT_MAX / 4 + (2u << 20))

/* Appends a request for an answer of this many bytes. */
static void put_large(struct spokei_buffer *frames, uint64_t id, uint32_t len)
{
	struct spoke_builder builder;
	unsigned char memory[16];
	struct spoke_span args;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_u64(&builder, len);
	assert_int_equal(spoke_builder_finish(&builder, &args), 0);
	frames_request_with(frames, id, STAGE_SERVICE, "large", args);
	spoke_builder_fini(&builder);
}

static void put_crowd(struct spokei_buffer *frames)
{
	frames_init(frames);
	for (uint64_t id = 0; id < CROWD; id++)
		put_large(frames, id, LARGE);
}

/* Sends all requests, as far as the other side reads. */
static void ask_for_all(struct raw *raw)
{
	const struct spoke_env *env = raw->stage->peer_env;
	struct spokei_buffer frames;

	put_crowd(&frames);
	while (spokei_buffer_len(&frames) > 0 &&
	       stage_up(raw->stage, SPOKE_STAT_READS_PAUSED) == 0) {
		struct iovec part = { spokei_buffer_data(&frames), spokei_buffer_len(&frames) };
		ssize_t put = env->net->write(env->ctx, raw->fd, &part, 1);

		if (put > 0)
			spokei_buffer_consume(&frames, (size_t)put);
		stage_turn(raw->stage);
	}
	spokei_buffer_fini(&frames);
}

RUNNER(stage_run_rows);

ROW(row_55_peer_that_reads_nothing_is_paused_and_closed, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	size_t before = stage->faulty.bytes;
	unsigned handled = stage->handled;
	uint64_t paused_ns;
	uint64_t read;

	stage_shorten(stage);
	ask_for_all(raw);
	assert_counter_up_by(stage, SPOKE_STAT_READS_PAUSED, 1);
	assert_nothing_closed(stage);
	paused_ns = stage_now(stage);
	assert_second_connection_works(stage);
	assert_true(stage->handled - handled < CROWD / 2);
	if (stage_is_virtual(stage)) {
		read = stage_stat(stage, SPOKE_STAT_BYTES_READ);
		stage_pass(stage, SLOW_NS - 2 * SECOND);
		assert_int_equal(stage_stat(stage, SPOKE_STAT_BYTES_READ), read);
		assert_nothing_closed(stage);
		assert_second_connection_works(stage);
	}
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_SLOW);
	if (stage_is_virtual(stage))
		assert_true(stage_now(stage) - paused_ns <= SLOW_NS + SECOND);
	assert_true(stage->faulty.bytes_peak - before <= MEMORY_MAX);
	assert_int_equal(stage->provider->link->queued, 0);
	assert_second_connection_works(stage);
}

/* The pause does not apply to requests that were already read: their answers meet the hard limit.
 */
ROW(row_55_answers_over_the_cap_close, STAGE_ALL)
{
	static const unsigned char bytes[LARGE + 5] = { 0xc6, 0, 1, 0, 0 };
	struct raw *raw = stage_raw_to_provider(stage);
	unsigned wanted = SPOKEI_OUT_MAX / LARGE + 8 + TAKEN_MAX;
	struct spokei_buffer frames;
	unsigned answered = 0;
	unsigned taken; /* by the kernel */
	size_t before;

	frames_init(&frames);
	for (unsigned id = 0; id < wanted; id++)
		frames_request(&frames, id, "later", "x");
	raw_send_buffer(raw, &frames);
	while (stage->later_count < wanted)
		stage_turn(stage);
	assert_second_connection_works(stage);
	before = stage->faulty.bytes;
	stage_mark(stage);
	while (stage->later_count > 0) {
		spoke_reply(stage->laters[--stage->later_count],
			    (struct spoke_value){ bytes, sizeof(bytes) });
		answered += stage_up(stage, SPOKE_STAT_CLOSED) == 0;
	}
	taken = (unsigned)(stage_up(stage, SPOKE_STAT_BYTES_WRITTEN) / LARGE);
	assert_in_range(answered, taken + SPOKEI_OUT_MAX / LARGE - 2,
			taken + SPOKEI_OUT_MAX / LARGE + 1);
	assert_counter_up_by(stage, SPOKE_STAT_READS_PAUSED, 1);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_SLOW);
	assert_true(stage->faulty.bytes_peak - before <= MEMORY_MAX);
	(void)raw_wait_end(raw);
	assert_second_connection_works(stage);
	assert_int_equal(stage->provider->link->queued, 0);
}

/* The pause does not end the connection: a peer that reads gets all answers in order. */
ROW(row_55_peer_that_reads_gets_all_answers_in_order, STAGE_SMOOTH)
{
	const struct spokei_vnet_link wide = { .capacity = 1 << 20 };
	struct raw *raw = stage_raw_to_provider(stage);
	size_t before = stage->faulty.bytes;
	struct spokei_buffer frames;

	if (stage->on == STAGE_MEMORY)
		spokei_vnet_set_all(stage->world.net, &wide);
	put_crowd(&frames);
	raw_send_buffer(raw, &frames);
	for (uint64_t id = 0; id < CROWD; id++) {
		struct spokei_message reply;

		if (id % 100 == 0)
			assert_second_connection_works(stage);
		assert_reply(raw, id, 20, &reply);
		assert_int_equal(reply.value.len, LARGE + 5);
	}
	assert_nothing_closed(stage);
	assert_true(stage_up(stage, SPOKE_STAT_READS_PAUSED) > 0);
	assert_true(stage->faulty.bytes_peak - before <= MEMORY_MAX);
	assert_raw_lives(raw);
}

/* A side that has paused reading must not time out the rest of a frame that it does not read. */
ROW(row_55_frame_begun_before_a_pause_may_end_after_it, STAGE_MEMORY)
{
	static const unsigned char bytes[LARGE + 5] = { 0xc6, 0, 1, 0, 0 };
	struct raw *raw = stage_raw_to_provider(stage);
	const unsigned wanted = SPOKEI_OUT_HIGH / LARGE + 2;
	struct spokei_buffer frames;
	size_t len;

	frames_init(&frames);
	for (unsigned id = 0; id < wanted; id++)
		frames_request(&frames, id, "later", "x");
	len = spokei_buffer_len(&frames) + 20;
	frames_request(&frames, wanted, "echo", "whole");
	raw_send(raw, spokei_buffer_data(&frames), len);
	stage_until_read(stage, len);
	assert_int_equal(stage->later_count, wanted);
	while (stage->later_count > 0)
		spoke_reply(stage->laters[--stage->later_count],
			    (struct spoke_value){ bytes, sizeof(bytes) });
	assert_counter_up_by(stage, SPOKE_STAT_READS_PAUSED, 1);
	spokei_buffer_consume(&frames, len);
	/* The peer reads a little from time to time, which counts as progress. */
	for (unsigned i = 0; i < wanted; i++) {
		assert_reply(raw, wanted - 1 - i, 20, NULL);
		if (i < 4)
			stage_pass(stage, 9 * SECOND);
		assert_nothing_closed(stage);
	}
	/* After the pause the frame has its usual time limit. */
	stage_pass(stage, 9 * SECOND);
	raw_send_buffer(raw, &frames);
	assert_reply(raw, wanted, 20, NULL);
	assert_counter_up_by(stage, SPOKE_STAT_READS_PAUSED, 1);
	assert_raw_lives(raw);
	assert_second_connection_works(stage);
}

#define UPLOADS 14u
#define UPLOAD (1u << 20)

/* Both sides have more output than their limits while they do not read; neither may wait for the
 * other for ever. */
ROW(row_55_two_full_output_buffers_do_not_deadlock, STAGE_SMOOTH)
{
	static unsigned char bytes[UPLOAD + 5] = { 0xc6, 0, 0x10, 0, 0 };
	static struct ending endings[UPLOADS];
	uint64_t begun_ns;

	stage_set_provider(stage, NULL);
	stage_mark(stage);
	begun_ns = stage_now(stage);
	for (unsigned i = 0; i < UPLOADS; i++) {
		const struct spoke_span args = { bytes, sizeof(bytes) };

		assert_int_equal(stage_try_call(stage, stage->second_echo, args, NULL, &endings[i],
						NULL),
				 SPOKE_OK);
	}
	for (unsigned i = 0; i < UPLOADS; i++)
		assert_ends(stage, &endings[i], SPOKE_OK);
	if (stage->on == STAGE_MEMORY)
		assert_true(stage_now(stage) - begun_ns <= SECOND);
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
}
