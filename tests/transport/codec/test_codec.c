/* SPDX-License-Identifier: Apache-2.0 */
/* The table of codecs and the two built-in codecs. */
#include "tests/support/test.h"
#include "tests/transport/dubbo_frames.h"

#include "tests/core/memory.h"
#include "transport/codec/codec.h"
#include "transport/wire/codecs.h"

TEST(codec_has_its_place_by_id)
{
	const struct spokei_wire_limits limits = { 0 };

	for (unsigned id = 0; id < 256; id++) {
		const struct spokei_codec *codec = spokei_wire_codec(&limits, (uint8_t)id);

		assert_ptr_equal(codec, id == 27  ? &spokei_codec_msgpack
					: id == 2 ? &spokei_codec_hessian2
						  : NULL);
		if (codec)
			assert_int_equal(codec->id, id);
	}
}

TEST(own_codec_is_found_before_built_in_ones)
{
	static const struct spokei_codec own = { .id = 2 };
	const struct spokei_wire_limits with = { .codec = &own };
	const struct spokei_wire_limits without = { 0 };

	assert_ptr_equal(spokei_wire_codec(&with, 2), &own);
	assert_ptr_equal(spokei_wire_codec(&with, 27), &spokei_codec_msgpack);
	assert_ptr_equal(spokei_wire_codec(&without, 2), &spokei_codec_hessian2);
	assert_int_equal(spokei_wire_codec_id(&with), 2);
	assert_int_equal(spokei_wire_codec_id(&without), 27);
}

TEST(error_text_is_written_without_other_memory)
{
	const struct spokei_codec *codec = &spokei_codec_hessian2;
	struct spokei_buffer buffer;
	struct memory memory;

	memory_init(&memory);
	spokei_buffer_init(&buffer, &memory.env, 6);
	memory.fail_at = 1;
	assert_int_equal(codec->from_text(span_of("x\xf6"), &buffer), SPOKE_ENOMEM);
	assert_int_equal(codec->from_text(span_of("x\xf6"), &buffer), 0);
	assert_int_equal(spokei_buffer_len(&buffer), 5);
	is_bytes(spokei_span(spokei_buffer_data(&buffer), 5), "\x02x\xef\xbf\xbd", 5);
	assert_int_equal(codec->from_text(span_of("too long"), &buffer), SPOKE_ETOOLARGE);
	assert_int_equal(spokei_buffer_len(&buffer), 5);
	assert_int_equal(memory.asked, 2);
	spokei_buffer_fini(&buffer);
}

/* Checks the body of codec 2 for a text. */
static void is_text_of_hessian2(struct spoke_span text, const void *bytes, size_t len)
{
	const struct spokei_codec *codec = &spokei_codec_hessian2;
	struct spokei_buffer buffer;
	struct memory memory;

	memory_init(&memory);
	spokei_buffer_init(&buffer, &memory.env, 8192);
	assert_int_equal(codec->from_text(text, &buffer), 0);
	is_bytes(spokei_span(spokei_buffer_data(&buffer), spokei_buffer_len(&buffer)), bytes, len);
	spokei_buffer_fini(&buffer);
}

TEST(hessian2_text_is_counted_in_utf16_units)
{
	is_text_of_hessian2(span_of("\xc3\xa4\xe2\x82\xac"), "\x02\xc3\xa4\xe2\x82\xac", 6);
	is_text_of_hessian2(span_of("\xf0\x9f\x98\x80"), "\x02\xed\xa0\xbd\xed\xb8\x80", 7);
	is_text_of_hessian2(span_of("12345678901234567890123456789012"),
			    "\x30\x20"
			    "12345678901234567890123456789012",
			    34);
}

TEST(long_hessian2_text_is_cut_between_characters)
{
	char text[1200];
	char body[1200];

	memset(text, 'a', sizeof(text));
	memset(body, 'a', sizeof(body));
	memcpy(body, "\x33\xff", 2);
	is_text_of_hessian2(spokei_span(text, sizeof(text)), body, 2 + 1023);
	memcpy(text + 1022, "\xf0\x9f\x98\x80", 4);
	memcpy(body, "\x33\xfe", 2);
	is_text_of_hessian2(spokei_span(text, sizeof(text)), body, 2 + 1022);
}
