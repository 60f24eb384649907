/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of codec 2 on the values that Java wrote. */
#include "tests/support/test.h"
#include "tests/transport/dubbo_frames.h"

#include "tests/core/memory.h"
#include "tests/transport/codec/bodies.h"
#include "tests/transport/codec/goldenvalues.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRATCH_MAX 4194304u

/* Reads a body from memory of exactly its length. */
static int read_values(const struct golden_value *row, bool cycles, struct spokei_buffer *scratch,
		       struct spoke_span *ret)
{
	struct spoke_value_limits limits = { .cycles = cycles };
	unsigned char *copy = malloc(row->body.len);
	int error;

	assert_non_null(copy);
	memcpy(copy, row->body.data, row->body.len);
	error = body_read(&spokei_codec_hessian2, &limits, row->part,
			  spokei_span(copy, row->body.len), scratch, ret);
	free(copy);
	return error;
}

static void check_row(const struct golden_value *row, void *arg)
{
	struct spoke_value_limits limits = { 0 };
	struct spoke_span values = { 0 };
	struct spokei_buffer scratch;
	struct spoke_cursor cursor;
	struct memory memory;
	int error;

	(void)arg;
	memory_init(&memory);
	spokei_buffer_init(&scratch, &memory.env, SCRATCH_MAX);
	error = read_values(row, true, &scratch, &values);
	if (error || values.len != row->values.len ||
	    memcmp(values.data, row->values.data, values.len) != 0)
		print_error("row %s\n", row->name);
	assert_int_equal(error, 0);
	is_bytes(values, row->values.data, row->values.len);
	assert_int_equal(spoke_values_check(values.data, values.len, &limits, &cursor, NULL), 0);
	assert_int_equal(read_values(row, false, &scratch, &values), row->cycle ? SPOKE_ECYCLE : 0);
	spokei_buffer_fini(&scratch);
	assert_int_equal(memory.bytes, 0);
}

TEST(golden_values_are_read_as_documented)
{
	assert_int_equal(golden_values_each(check_row, NULL), GOLDEN_VALUES);
}

/* Checks that each shorter body is truncated. The last value of a shorter request is not a map. */
static void check_cuts(const struct golden_value *row, void *arg)
{
	struct golden_value cut = *row;
	struct spoke_span values;
	struct spokei_buffer scratch;
	struct memory memory;
	unsigned *truncated = arg;

	if (row->body.len > 2000)
		return;
	memory_init(&memory);
	spokei_buffer_init(&scratch, &memory.env, SCRATCH_MAX);
	for (cut.body.len = 1; cut.body.len < row->body.len; cut.body.len++) {
		int error = read_values(&cut, true, &scratch, &values);

		if (error == SPOKE_ETRUNCATED)
			++*truncated;
		else if (error == SPOKE_ECORRUPT)
			assert_int_equal(row->part, SPOKEI_CODEC_REQUEST);
		else
			assert_int_equal(error, 0);
	}
	spokei_buffer_fini(&scratch);
}

TEST(cut_golden_values_are_truncated)
{
	unsigned truncated = 0;

	assert_int_equal(golden_values_each(check_cuts, &truncated), GOLDEN_VALUES);
	assert_true(truncated > 10000);
}
