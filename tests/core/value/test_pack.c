/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of the builder: the fewest bytes, complete containers, limits, errors, and its memory.
 */
#include "core/value/builder.h"
#include "tests/core/memory.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

/*
 * --- output of the builder: the fewest bytes, complete containers, limits, and sticky errors
 */

#define BYTES(text) (text), sizeof(text) - 1

static struct memory memory;

static unsigned char fixed[1024];

static struct spoke_builder fixed_builder(const struct spoke_value_limits *limits)
{
	struct spoke_builder builder;

	spoke_builder_init_fixed(&builder, fixed, sizeof(fixed), limits);
	return builder;
}

static void assert_packed(struct spoke_builder *builder, const char *bytes, size_t len)
{
	struct spoke_span span;

	assert_int_equal(spoke_builder_finish(builder, &span), 0);
	assert_int_equal(span.len, len);
	assert_memory_equal(span.data, bytes, len);
}

static int finish(struct spoke_builder *builder)
{
	struct spoke_span span;

	return spoke_builder_finish(builder, &span);
}

TEST(integer_uses_shortest_encoding)
{
	static const struct {
		int64_t number;
		const char *bytes;
		size_t len;
	} cases[] = {
		{ 0, BYTES("\x00") },
		{ 127, BYTES("\x7f") },
		{ 128, BYTES("\xcc\x80") },
		{ 255, BYTES("\xcc\xff") },
		{ 256, BYTES("\xcd\x01\x00") },
		{ 65535, BYTES("\xcd\xff\xff") },
		{ 65536, BYTES("\xce\x00\x01\x00\x00") },
		{ UINT32_MAX, BYTES("\xce\xff\xff\xff\xff") },
		{ INT64_C(1) << 32, BYTES("\xcf\x00\x00\x00\x01\x00\x00\x00\x00") },
		{ INT64_MAX, BYTES("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff") },
		{ -1, BYTES("\xff") },
		{ -32, BYTES("\xe0") },
		{ -33, BYTES("\xd0\xdf") },
		{ -128, BYTES("\xd0\x80") },
		{ -129, BYTES("\xd1\xff\x7f") },
		{ -32768, BYTES("\xd1\x80\x00") },
		{ -32769, BYTES("\xd2\xff\xff\x7f\xff") },
		{ INT32_MIN, BYTES("\xd2\x80\x00\x00\x00") },
		{ INT64_C(-2147483649), BYTES("\xd3\xff\xff\xff\xff\x7f\xff\xff\xff") },
		{ INT64_MIN, BYTES("\xd3\x80\x00\x00\x00\x00\x00\x00\x00") },
	};
	struct spoke_builder builder = fixed_builder(NULL);

	for (size_t i = 0; i < LENGTH(cases); i++) {
		spoke_builder_reset(&builder);
		spoke_pack_i64(&builder, cases[i].number);
		assert_packed(&builder, cases[i].bytes, cases[i].len);
		if (cases[i].number < 0)
			continue;
		spoke_builder_reset(&builder);
		spoke_pack_u64(&builder, (uint64_t)cases[i].number);
		assert_packed(&builder, cases[i].bytes, cases[i].len);
	}
	spoke_builder_reset(&builder);
	spoke_pack_u64(&builder, UINT64_MAX);
	assert_packed(&builder, BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"));
}

TEST(other_scalars_have_expected_bytes)
{
	struct spoke_builder builder = fixed_builder(NULL);

	spoke_pack_nil(&builder);
	spoke_pack_bool(&builder, false);
	spoke_pack_bool(&builder, true);
	spoke_pack_double(&builder, -1.5);
	spoke_pack_float(&builder, -1.5f);
	assert_packed(
		&builder,
		BYTES("\xc0\xc2\xc3\xcb\xbf\xf8\x00\x00\x00\x00\x00\x00\xca\xbf\xc0\x00\x00"));
}

enum kind {
	STR,
	BIN,
	EXT
};

TEST(content_uses_shortest_head)
{
	static const struct {
		enum kind kind;
		size_t len;
		const char *head;
		size_t head_len;
	} cases[] = {
		{ STR, 0, BYTES("\xa0") },
		{ STR, 31, BYTES("\xbf") },
		{ STR, 32, BYTES("\xd9\x20") },
		{ STR, 255, BYTES("\xd9\xff") },
		{ STR, 256, BYTES("\xda\x01\x00") },
		{ STR, 65535, BYTES("\xda\xff\xff") },
		{ STR, 65536, BYTES("\xdb\x00\x01\x00\x00") },
		{ BIN, 0, BYTES("\xc4\x00") },
		{ BIN, 255, BYTES("\xc4\xff") },
		{ BIN, 256, BYTES("\xc5\x01\x00") },
		{ BIN, 65536, BYTES("\xc6\x00\x01\x00\x00") },
		{ EXT, 0, BYTES("\xc7\x00\xf9") },
		{ EXT, 1, BYTES("\xd4\xf9") },
		{ EXT, 2, BYTES("\xd5\xf9") },
		{ EXT, 3, BYTES("\xc7\x03\xf9") },
		{ EXT, 4, BYTES("\xd6\xf9") },
		{ EXT, 8, BYTES("\xd7\xf9") },
		{ EXT, 16, BYTES("\xd8\xf9") },
		{ EXT, 17, BYTES("\xc7\x11\xf9") },
		{ EXT, 256, BYTES("\xc8\x01\x00\xf9") },
		{ EXT, 65536, BYTES("\xc9\x00\x01\x00\x00\xf9") },
	};
	static char content[65536];
	struct spoke_builder builder;
	struct spoke_span span;

	memory_init(&memory);
	spoke_builder_init(&builder, &memory.env, NULL);
	memset(content, 'x', sizeof(content));
	for (size_t i = 0; i < LENGTH(cases); i++) {
		spoke_builder_reset(&builder);
		if (cases[i].kind == STR)
			spoke_pack_str(&builder, content, cases[i].len);
		else if (cases[i].kind == BIN)
			spoke_pack_bin(&builder, content, cases[i].len);
		else
			spoke_pack_ext(&builder, -7, content, cases[i].len);
		assert_int_equal(spoke_builder_finish(&builder, &span), 0);
		assert_int_equal(span.len, cases[i].head_len + cases[i].len);
		assert_memory_equal(span.data, cases[i].head, cases[i].head_len);
		assert_memory_equal((const char *)span.data + cases[i].head_len, content,
				    cases[i].len);
	}
	spoke_builder_fini(&builder);
	assert_int_equal(memory.bytes, 0);
}

TEST(container_uses_shortest_head)
{
	static const struct {
		size_t count;
		const char *array;
		size_t array_len;
		const char *map;
		size_t map_len;
	} cases[] = {
		{ 0, BYTES("\x90"), BYTES("\x80") },
		{ 15, BYTES("\x9f"), BYTES("\x8f") },
		{ 16, BYTES("\xdc\x00\x10"), BYTES("\xde\x00\x10") },
		{ 65535, BYTES("\xdc\xff\xff"), BYTES("\xde\xff\xff") },
		{ 65536, BYTES("\xdd\x00\x01\x00\x00"), BYTES("\xdf\x00\x01\x00\x00") },
	};
	struct spoke_value_limits limits = { .items_max = 1000000, .object_bytes_max = 100000000 };
	struct spoke_builder builder = fixed_builder(&limits);

	for (size_t i = 0; i < LENGTH(cases); i++) {
		spoke_builder_reset(&builder);
		spoke_pack_array(&builder, cases[i].count);
		assert_int_equal(builder.len, cases[i].array_len);
		assert_memory_equal(fixed, cases[i].array, cases[i].array_len);
		spoke_builder_reset(&builder);
		spoke_pack_map(&builder, cases[i].count);
		assert_int_equal(builder.len, cases[i].map_len);
		assert_memory_equal(fixed, cases[i].map, cases[i].map_len);
		assert_int_equal(finish(&builder), cases[i].count ? SPOKE_ETRUNCATED : 0);
	}
}

TEST(finish_fails_unless_containers_are_full)
{
	struct spoke_builder builder = fixed_builder(NULL);
	struct spoke_value value;

	spoke_pack_array(&builder, 2);
	spoke_pack_map(&builder, 1);
	spoke_pack_text(&builder, "k");
	spoke_pack_array(&builder, 0);
	spoke_pack_i64(&builder, 5);
	assert_int_equal(spoke_builder_finish_value(&builder, &value), 0);
	assert_int_equal(value.len, 6);
	assert_memory_equal(value.data, "\x92\x81\xa1k\x90\x05", 6);

	spoke_builder_reset(&builder);
	spoke_pack_map(&builder, 1);
	spoke_pack_nil(&builder);
	assert_int_equal(spoke_builder_finish_value(&builder, &value), SPOKE_ETRUNCATED);

	spoke_builder_reset(&builder);
	spoke_pack_map(&builder, 1);
	for (int i = 0; i < 3; i++)
		spoke_pack_nil(&builder);
	assert_int_equal(spoke_builder_finish_value(&builder, &value), SPOKE_ETRAILING);

	spoke_builder_reset(&builder);
	assert_int_equal(spoke_builder_finish_value(&builder, &value), SPOKE_ETRUNCATED);
}

TEST(builder_enforces_limits_of_validator)
{
	static const struct spoke_value_limits limits = { .depth_max = 2,
							  .items_max = 6,
							  .bytes_max = 20 };
	struct spoke_builder builder = fixed_builder(&limits);

	spoke_pack_array(&builder, 1);
	spoke_pack_array(&builder, 1);
	spoke_pack_map(&builder, 0);
	assert_int_equal(finish(&builder), SPOKE_EDEPTH);

	spoke_builder_reset(&builder);
	spoke_pack_map(&builder, 3);
	assert_int_equal(finish(&builder), SPOKE_ETOOLARGE);
	spoke_builder_reset(&builder);
	for (int i = 0; i < 6; i++)
		spoke_pack_nil(&builder);
	assert_int_equal(finish(&builder), 0);
	spoke_pack_nil(&builder);
	assert_int_equal(finish(&builder), SPOKE_ETOOLARGE);

	spoke_builder_reset(&builder);
	spoke_pack_text(&builder, "0123456789012345678");
	assert_int_equal(finish(&builder), 0);
	spoke_pack_nil(&builder);
	assert_int_equal(finish(&builder), SPOKE_ETOOLARGE);
	spoke_builder_reset(&builder);
	spoke_pack_array(&builder, SIZE_MAX);
	assert_int_equal(finish(&builder), SPOKE_ETOOLARGE);
}

TEST(builder_keeps_first_error)
{
	static const struct spoke_value_limits wrong = { .depth_max = SPOKE_VALUE_DEPTH_MAX + 1 };
	struct spoke_builder builder = fixed_builder(NULL);

	spoke_pack_text(&builder, NULL);
	spoke_pack_array(&builder, SIZE_MAX);
	spoke_pack_nil(&builder);
	spoke_pack_raw(&builder, (struct spoke_span){ "\xc1", 1 });
	assert_int_equal(finish(&builder), SPOKE_EINVAL);
	assert_int_equal(builder.len, 0);
	spoke_builder_reset(&builder);
	spoke_pack_bin(&builder, NULL, 1);
	assert_int_equal(finish(&builder), SPOKE_EINVAL);
	spoke_builder_reset(&builder);
	spoke_pack_str(&builder, "", SIZE_MAX);
	assert_int_equal(finish(&builder), SPOKE_ETOOLARGE);
	builder = fixed_builder(&wrong);
	spoke_pack_nil(&builder);
	assert_int_equal(finish(&builder), SPOKE_EINVAL);
	spoke_builder_reset(&builder);
	assert_int_equal(finish(&builder), SPOKE_EINVAL);
}

TEST(builder_stays_within_fixed_memory)
{
	struct spoke_builder builder;

	for (size_t size = 0; size < 12; size++) {
		unsigned char *exact = malloc(size + 1);

		assert_non_null(exact);
		exact[size] = 0x77;
		spoke_builder_init_fixed(&builder, exact, size, NULL);
		spoke_pack_array(&builder, 3);
		spoke_pack_text(&builder, "abcd");
		spoke_pack_i64(&builder, 1000);
		spoke_pack_nil(&builder);
		assert_int_equal(finish(&builder), size >= 10 ? 0 : SPOKE_ETOOLARGE);
		assert_int_equal(exact[size], 0x77);
		free(exact);
	}
	spoke_builder_init_fixed(&builder, NULL, 0, NULL);
	assert_int_equal(finish(&builder), 0);
}

TEST(raw_values_count_as_items)
{
	static const struct {
		const char *bytes;
		size_t len;
		unsigned around; /* values of the enclosing array; 0 means no array */
		int result;
	} cases[] = {
		{ BYTES(""), 0, 0 },
		{ BYTES("\x01\x02"), 0, 0 },
		{ BYTES("\x01\x02"), 2, 0 },
		{ BYTES("\x01\x92\x01\x02"), 2, 0 },
		{ BYTES("\x91\x92\x01\x02"), 1, 0 },
		{ BYTES("\x91\x91\x91\xc0"), 1, SPOKE_EDEPTH },
		{ BYTES("\x91\x91\x91\xc0"), 0, 0 },
		{ BYTES("\x01"), 2, SPOKE_ETRUNCATED },
		{ BYTES("\x01\x02"), 1, SPOKE_ETRAILING },
		{ BYTES("\xc1"), 1, SPOKE_ECORRUPT },
		{ BYTES("\xa2x"), 1, SPOKE_ETRUNCATED },
		{ BYTES("\x01\x95\x01\x02\x03\x04\x05"), 2, 0 },
		{ BYTES("\x01\x96\x01\x02\x03\x04\x05\x06"), 2, SPOKE_ETOOLARGE },
	};
	static const struct spoke_value_limits limits = { .depth_max = 3, .items_max = 8 };
	struct spoke_value_limits same = limits;
	struct spoke_cursor cursor;

	for (size_t i = 0; i < LENGTH(cases); i++) {
		struct spoke_builder builder = fixed_builder(&limits);
		struct spoke_span span;

		if (cases[i].around > 0)
			spoke_pack_array(&builder, cases[i].around);
		spoke_pack_raw(&builder, (struct spoke_span){ cases[i].bytes, cases[i].len });
		assert_int_equal(spoke_builder_finish(&builder, &span), cases[i].result);
		if (cases[i].result == 0)
			assert_int_equal(spoke_values_check(span.data, span.len, &same, &cursor,
							    NULL),
					 0);
	}
}

TEST(values_after_raw_get_remaining_items)
{
	static const struct spoke_value_limits limits = { .items_max = 8 };
	struct spoke_builder builder = fixed_builder(&limits);

	spoke_pack_array(&builder, 3);
	spoke_pack_raw(&builder, (struct spoke_span){ "\x01\x92\x01\x02", 4 });
	spoke_pack_array(&builder, 2);
	spoke_pack_nil(&builder);
	spoke_pack_nil(&builder);
	assert_int_equal(finish(&builder), 0);
	spoke_pack_nil(&builder);
	assert_int_equal(finish(&builder), SPOKE_ETOOLARGE);
}

/* --- the builder's memory: its own, that of a buffer, and allocations that fail */

/* Packs values of several types; `size` sets the length of the longest. */
static void pack_some(struct spoke_builder *builder, size_t size)
{
	static const char text[300];

	spoke_pack_array(builder, 4);
	spoke_pack_str(builder, text, size);
	spoke_pack_map(builder, 1);
	spoke_pack_text(builder, "key");
	spoke_pack_raw(builder, (struct spoke_span){ "\x92\x01\x02", 3 });
	spoke_pack_bin(builder, text, size);
	spoke_pack_double(builder, 1);
}

TEST(builder_reports_enomem_without_leak)
{
	struct spoke_builder builder;
	int result = SPOKE_ENOMEM;

	for (unsigned fail_at = 1; result != 0; fail_at++) {
		memory_init(&memory);
		memory.fail_at = fail_at;
		spoke_builder_init(&builder, &memory.env, NULL);
		pack_some(&builder, 300);
		result = finish(&builder);
		if (result != 0)
			assert_int_equal(result, SPOKE_ENOMEM);
		spoke_builder_fini(&builder);
		assert_int_equal(memory.bytes, 0);
		assert_true(fail_at < 10);
	}
}

TEST(reset_keeps_memory)
{
	struct spoke_builder builder;
	unsigned asked;

	memory_init(&memory);
	spoke_builder_init(&builder, &memory.env, NULL);
	pack_some(&builder, 300);
	asked = memory.asked;
	for (int i = 0; i < 10; i++) {
		spoke_builder_reset(&builder);
		pack_some(&builder, 300);
		assert_int_equal(finish(&builder), 0);
	}
	assert_int_equal(memory.asked, asked);
	spoke_builder_fini(&builder);
}

TEST(builder_appends_values_to_buffer)
{
	struct spoke_builder builder;
	struct spoke_span expected;

	spoke_builder_init_fixed(&builder, fixed, sizeof(fixed), NULL);
	for (size_t size = 0; size < 300; size += 7) {
		struct spokei_buffer buffer;
		struct spoke_span span;

		spoke_builder_reset(&builder);
		pack_some(&builder, size);
		assert_int_equal(spoke_builder_finish(&builder, &expected), 0);

		memory_init(&memory);
		spokei_buffer_init(&buffer, &memory.env, 100000);
		assert_int_equal(spokei_buffer_append(&buffer, fixed, 1 + size), 0);
		spokei_buffer_consume(&buffer, size / 2);
		for (size_t before = 1 + size - size / 2; before < 5000; before += expected.len) {
			struct spoke_builder other;

			spokei_builder_init_buffer(&other, &buffer, NULL);
			pack_some(&other, size);
			assert_int_equal(spoke_builder_finish(&other, &span), 0);
			spokei_builder_drop(&other);
			assert_int_equal(spokei_buffer_len(&buffer), before + expected.len);
			assert_int_equal(span.len, expected.len);
			assert_ptr_equal(span.data, spokei_buffer_data(&buffer) + before);
			assert_memory_equal(span.data, expected.data, expected.len);
		}
		spokei_buffer_fini(&buffer);
		assert_int_equal(memory.bytes, 0);
	}
}

TEST(failed_build_leaves_buffer_unchanged)
{
	struct spokei_buffer buffer;
	struct spoke_builder builder;
	int result = SPOKE_ENOMEM;

	for (unsigned fail_at = 2; result != 0; fail_at++) {
		memory_init(&memory);
		spokei_buffer_init(&buffer, &memory.env, 10000);
		assert_int_equal(spokei_buffer_append(&buffer, "before", 6), 0);
		memory.fail_at = fail_at;
		spokei_builder_init_buffer(&builder, &buffer, NULL);
		for (int i = 0; i < 5; i++)
			pack_some(&builder, 300);
		result = finish(&builder);
		if (result != 0) {
			assert_int_equal(result, SPOKE_ENOMEM);
			assert_int_equal(spokei_buffer_len(&buffer), 6);
			assert_memory_equal(spokei_buffer_data(&buffer), "before", 6);
		}
		spokei_buffer_fini(&buffer);
	}
	memory_init(&memory);
	spokei_buffer_init(&buffer, &memory.env, 500);
	assert_int_equal(spokei_buffer_append(&buffer, "before", 6), 0);
	spokei_builder_init_buffer(&builder, &buffer, NULL);
	pack_some(&builder, 300);
	assert_int_equal(finish(&builder), SPOKE_ETOOLARGE);
	assert_int_equal(spokei_buffer_len(&buffer), 6);
	spokei_builder_init_buffer(&builder, &buffer, NULL);
	pack_some(&builder, 100);
	spokei_builder_drop(&builder);
	assert_int_equal(spokei_buffer_len(&buffer), 6);
	assert_int_equal(finish(&builder), SPOKE_ESTATE);
	spokei_buffer_fini(&buffer);
	assert_int_equal(memory.bytes, 0);
}
