/* SPDX-License-Identifier: Apache-2.0 */
/* Frames above the limit whose length is known: each ends its own call, and the connection goes on.
 */
#include "tests/integration/harness.h"
#include "tests/support/test.h"

#include "transport/wire/dubbo/head.h"

#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
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

RUNNER(stage_run_rows);

/* A Java peer may allow longer frames than this side. The connection and other requests go on. */
ROW(row_04_a_request_over_the_limit_is_answered_and_skipped, STAGE_SMOOTH)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;
	struct spokei_message reply;

	stage_mark(stage);
	frames_init(&frames);
	frames_head(&frames, 0xdb, 0, 7, SPOKEI_FRAME_MAX + BEYOND);
	raw_send_buffer(raw, &frames);
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
	frames_init(&frames);
	frames_head(&frames, 0x02, 20, ids[1], SPOKEI_FRAME_MAX + BEYOND);
	raw_send_buffer(raw, &frames);
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
	struct spokei_buffer frames;

	stage_shorten(stage);
	frames_init(&frames);
	frames_head(&frames, 0x9b, 0, 7, INT32_MAX);
	raw_send_buffer(raw, &frames);
	assert_closed_mutely(raw);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_FRAME_TIME);
}
