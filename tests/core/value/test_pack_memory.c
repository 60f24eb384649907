/* SPDX-License-Identifier: Apache-2.0 */
/* The builder's memory: its own, that of a buffer, and allocations that fail. */
#include "core/value/builder.h"
#include "tests/core/memory.h"
#include "tests/support/test.h"

#include <string.h>

static struct memory memory;
static unsigned char fixed[1024];

static int finish(struct spoke_builder *builder)
{
	struct spoke_span span;

	return spoke_builder_finish(builder, &span);
}

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
