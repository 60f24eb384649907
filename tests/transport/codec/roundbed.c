/* SPDX-License-Identifier: Apache-2.0 */
/* The buffers of tests that write Hessian 2 and read it back. */
#include "tests/transport/codec/roundbed.h"
#include "tests/transport/codec/bodies.h"

#define BYTES_MAX (1u << 22)

struct roundbed roundbed;

int roundbed_set_up(void **state)
{
	(void)state;
	memory_init(&roundbed.memory);
	spokei_buffer_init(&roundbed.out, &roundbed.memory.env, BYTES_MAX);
	spokei_buffer_init(&roundbed.scratch, &roundbed.memory.env, BYTES_MAX);
	return 0;
}

int roundbed_tear_down(void **state)
{
	(void)state;
	spokei_buffer_fini(&roundbed.out);
	spokei_buffer_fini(&roundbed.scratch);
	assert_int_equal(roundbed.memory.bytes, 0);
	return 0;
}

struct spoke_span roundbed_written(enum spokei_codec_part part, struct spoke_span values)
{
	spokei_buffer_truncate(&roundbed.out, 0);
	assert_int_equal(body_write(&spokei_codec_hessian2, part, values, &roundbed.out), 0);
	return spokei_span(spokei_buffer_data(&roundbed.out), spokei_buffer_len(&roundbed.out));
}

struct spoke_span roundbed_written_generic(struct spoke_span values)
{
	struct spokei_codec_body body = body_of_values(SPOKEI_CODEC_REPLY, values);

	body.generic = true;
	spokei_buffer_truncate(&roundbed.out, 0);
	assert_int_equal(spokei_codec_hessian2.from_values(&body, &roundbed.out), 0);
	return spokei_span(spokei_buffer_data(&roundbed.out), spokei_buffer_len(&roundbed.out));
}

struct spoke_span roundbed_read(enum spokei_codec_part part)
{
	static const struct spoke_value_limits with_cycles = { .cycles = true };
	struct spoke_span body = spokei_span(spokei_buffer_data(&roundbed.out),
					     spokei_buffer_len(&roundbed.out));
	struct spoke_span read;

	spokei_buffer_truncate(&roundbed.scratch, 0);
	roundbed.scratch.max = BYTES_MAX; /* earlier bodies have spent some */
	assert_int_equal(body_read(&spokei_codec_hessian2, &with_cycles, part, body,
				   &roundbed.scratch, &read),
			 0);
	return read;
}

void roundbed_read_is(enum spokei_codec_part part, struct spoke_span values)
{
	is_bytes(roundbed_read(part), values.data, values.len);
}

void roundbed_is_same(enum spokei_codec_part part, struct spoke_span values)
{
	(void)roundbed_written(part, values);
	roundbed_read_is(part, values);
}
