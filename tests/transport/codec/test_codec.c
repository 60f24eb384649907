/* SPDX-License-Identifier: Apache-2.0 */
/* The table of codecs and the two built-in codecs. */
#include "tests/transport/dubbo_frames.h"

#include "tests/core/memory.h"
#include "transport/codec/catalog.h"
#include "transport/wire/codecs.h"

static void find_returns_codec_with_this_id(void **state)
{
	(void)state;
	for (unsigned id = 0; id < 256; id++) {
		const struct spokei_codec *codec = spokei_codec_find((uint8_t)id);

		assert_ptr_equal(codec, id == 27  ? &spokei_codec_msgpack
					: id == 2 ? &spokei_codec_hessian2
						  : NULL);
		if (codec)
			assert_int_equal(codec->id, id);
	}
}

static void bodies_are_translated_by_msgpack_alone(void **state)
{
	(void)state;
	for (unsigned id = 0; id < 256; id++) {
		const struct spokei_codec *codec = spokei_codec_find((uint8_t)id);

		if (codec) {
			assert_true((codec->to_values != NULL) == (id == 27));
			assert_true((codec->from_values != NULL) == (id == 27));
		}
	}
}

static void own_codec_is_found_before_built_in_ones(void **state)
{
	static const struct spokei_codec own = { .id = 2 };
	const struct spokei_wire_limits with = { .codec = &own };
	const struct spokei_wire_limits without = { 0 };

	(void)state;
	assert_ptr_equal(spokei_wire_codec(&with, 2), &own);
	assert_ptr_equal(spokei_wire_codec(&with, 27), &spokei_codec_msgpack);
	assert_ptr_equal(spokei_wire_codec(&without, 2), &spokei_codec_hessian2);
	assert_int_equal(spokei_wire_codec_id(&with), 2);
	assert_int_equal(spokei_wire_codec_id(&without), 27);
}

static void codec_of_msgpack_is_identity_after_check(void **state)
{
	const struct spokei_codec *codec = spokei_codec_find(27);
	const struct spoke_value_limits *limits = &frame_limits.value;
	struct spoke_span values = { 0 };
	struct spokei_buffer buffer;
	struct memory memory;

	(void)state;
	assert_int_equal(codec->to_values(limits, SPOKEI_CODEC_REPLY, span_of("\x01\x90"), NULL,
					  &values),
			 0);
	is_text(values, "\x01\x90");
	assert_int_equal(codec->to_values(limits, SPOKEI_CODEC_REPLY, span_of("\x91"), NULL,
					  &values),
			 SPOKE_ETRUNCATED);
	memory_init(&memory);
	spokei_buffer_init(&buffer, &memory.env, 3);
	assert_int_equal(codec->from_values(SPOKEI_CODEC_REPLY, values, &buffer), 0);
	assert_int_equal(codec->from_values(SPOKEI_CODEC_REPLY, values, &buffer), SPOKE_ETOOLARGE);
	is_bytes(spokei_span(spokei_buffer_data(&buffer), 2), "\x01\x90", 2);
	spokei_buffer_fini(&buffer);
}

static void error_text_is_written_without_other_memory(void **state)
{
	static const struct {
		unsigned id;
		const char *bytes;
	} rows[] = { { 2, "\x02x?" }, { 27, "\xa2x\xf6" } };

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const struct spokei_codec *codec = spokei_codec_find((uint8_t)rows[i].id);
		struct spokei_buffer buffer;
		struct memory memory;

		memory_init(&memory);
		spokei_buffer_init(&buffer, &memory.env, 6);
		memory.fail_at = 1;
		assert_int_equal(codec->from_text(span_of("x\xf6"), &buffer), SPOKE_ENOMEM);
		assert_int_equal(codec->from_text(span_of("x\xf6"), &buffer), 0);
		is_bytes(spokei_span(spokei_buffer_data(&buffer), 3), rows[i].bytes, 3);
		assert_int_equal(codec->from_text(span_of("too long"), &buffer), SPOKE_ETOOLARGE);
		assert_int_equal(spokei_buffer_len(&buffer), 3);
		assert_int_equal(memory.asked, 2);
		spokei_buffer_fini(&buffer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find_returns_codec_with_this_id),
		cmocka_unit_test(bodies_are_translated_by_msgpack_alone),
		cmocka_unit_test(own_codec_is_found_before_built_in_ones),
		cmocka_unit_test(codec_of_msgpack_is_identity_after_check),
		cmocka_unit_test(error_text_is_written_without_other_memory),
	};

	return cmocka_run_group_tests_name("codec", tests, NULL, NULL);
}
