/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and reads hostile bodies. */
#include "tests/transport/codec/hostile.h"

#include "tests/core/memory.h"
#include "tests/transport/codec/bodies.h"

#include <stdlib.h>

struct hostile_body hostile_body;

void hostile_put(const char *piece, size_t len, size_t times)
{
	assert_true(len * times <= BODY_MAX - hostile_body.len);
	for (; times > 0; times--) {
		memcpy(hostile_body.bytes + hostile_body.len, piece, len);
		hostile_body.len += len;
	}
}

int hostile_begin(void **state)
{
	(void)state;
	hostile_body.len = 0;
	PUT("\x91", 1);
	return 0;
}

void hostile_ends(enum spokei_codec_part part, const struct spoke_value_limits *limits,
		  int expected, size_t scratch_max)
{
	unsigned char *copy = malloc(hostile_body.len > 0 ? hostile_body.len : 1);
	struct spoke_span values;
	struct spokei_buffer scratch;
	struct memory memory;

	assert_non_null(copy);
	memcpy(copy, hostile_body.bytes, hostile_body.len);
	memory_init(&memory);
	spokei_buffer_init(&scratch, &memory.env, SCRATCH_MAX);
	assert_int_equal(body_read(&spokei_codec_hessian2, limits, part,
				   spokei_span(copy, hostile_body.len), &scratch, &values),
			 expected);
	assert_true(memory.bytes <= scratch_max + scratch_max / 4);
	free(copy);
	spokei_buffer_fini(&scratch);
	assert_int_equal(memory.bytes, 0);
}

void hostile_refused(int expected)
{
	const struct spoke_value_limits limits = { 0 };

	hostile_ends(SPOKEI_CODEC_REPLY, &limits, expected,
		     hostile_body.len < SMALL / 2 ? SMALL : SCRATCH_MAX);
}
