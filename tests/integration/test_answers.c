/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows 27 and 28 of the table of faults: large requests to unknown services, and answers that are
 * too large.
 */
#include "tests/integration/harness.h"
#include "tests/support/test.h"

#include <spoke/host.h>

/* Checks that the request is refused with status 60. */
static void assert_not_found(struct raw *raw, uint64_t id)
{
	assert_reply(raw, id, 60, NULL);
	assert_counter_up_by(raw->stage, SPOKE_STAT_REQUESTS_NO_SERVICE, 1);
	assert_nothing_closed(raw->stage);
}

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
