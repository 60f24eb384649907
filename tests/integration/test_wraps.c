/* SPDX-License-Identifier: Apache-2.0 */
/* Row 33 of the table of faults: request ids and handles that wrap around. */
#include "cluster/call/caller.h"
#include "tests/integration/harness.h"
#include "tests/support/test.h"

#include <stdio.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Limits the ids of a connection to this many bits and sets the next one. */
static void narrow_ids(struct stage *stage, uint64_t last, uint64_t next)
{
	struct spokei_pendings *pendings = &stage_conn_of(stage->consumer)->pendings;

	assert_int_equal(pendings->count, 0);
	pendings->first = 0;
	pendings->last = last;
	pendings->next = next;
}

RUNNER(stage_run_rows);

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
		send_reply(raw, ids[i], text);
		assert_answered(stage, &endings[i], value);
	}
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
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
		send_reply(raw, id, "new");
		assert_answered(stage, &ending, "\"new\"");
	}
	assert_second_connection_works(stage);
	for (size_t i = 0; i < LENGTH(waits); i++) {
		assert_int_equal(waits[i].ends, 0);
		send_reply(raw, old[i], "old");
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
		send_reply(raw, id, "y");
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
	uint32_t *generation;

	/* The cell is used once; then its next generation is the last but one. */
	stage_call(stage, stage->echo, "x", &endings[0], &calls[0]);
	generation = (uint32_t *)(void *)stage->consumer->caller->calls.chunks[0];
	raw_frame(raw, &request);
	assert_int_equal(request.kind, SPOKEI_REQUEST);
	assert_int_equal(*generation, calls[0].handle >> 32);
	assert_true(spoke_call_cancel(stage->consumer, calls[0]));
	assert_ends(stage, &endings[0], SPOKE_ECANCELED);
	*generation = UINT32_MAX - 1;
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
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
}
