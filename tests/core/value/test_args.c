/* SPDX-License-Identifier: Apache-2.0 */
/* SPOKE_ARGS() packs what the builder packs: every type, any length, lists and maps, errors. */
#include "core/value/builder.h"
#include "tests/core/memory.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

static struct memory memory;
static unsigned char fixed[8192];

static struct spoke_builder by_hand(void)
{
	struct spoke_builder builder;

	spoke_builder_init_fixed(&builder, fixed, sizeof(fixed), NULL);
	return builder;
}

static void assert_same(struct spoke_span values, struct spoke_builder *expected)
{
	struct spoke_span span;

	assert_int_equal(spoke_builder_finish(expected, &span), 0);
	assert_int_equal(values.len, span.len);
	assert_memory_equal(values.data, span.data, span.len);
}

/* Asserts that both ways of packing give these values. */
static void assert_packs(struct spoke_args args, struct spoke_builder *expected)
{
	struct spokei_packed packed;
	struct spoke_builder builder;
	unsigned char bytes[8192];
	struct spoke_span values;

	assert_int_equal(spokei_args_pack(&memory.env, args, &packed), 0);
	assert_same(packed.values, expected);
	spokei_packed_free(&packed);
	spoke_builder_init_fixed(&builder, bytes, sizeof(bytes), NULL);
	spoke_pack_args(&builder, args);
	assert_int_equal(spoke_builder_finish(&builder, &values), 0);
	assert_same(values, expected);
	assert_int_equal(memory.bytes, 0);
}

static int error_of(struct spoke_args args)
{
	struct spokei_packed packed;
	int error = spokei_args_pack(&memory.env, args, &packed);

	spokei_packed_free(&packed);
	assert_int_equal(memory.bytes, 0);
	return error;
}

TEST(integer_of_each_type_keeps_its_value)
{
	struct spoke_builder expected = by_hand();

	spoke_pack_i64(&expected, INT8_MIN);
	spoke_pack_i64(&expected, 'x');
	spoke_pack_i64(&expected, INT16_MIN);
	spoke_pack_i64(&expected, INT32_MIN);
	spoke_pack_i64(&expected, -5);
	spoke_pack_i64(&expected, INT64_MIN);
	spoke_pack_u64(&expected, UINT8_MAX);
	spoke_pack_u64(&expected, UINT16_MAX);
	spoke_pack_u64(&expected, UINT32_MAX);
	spoke_pack_u64(&expected, 6);
	spoke_pack_u64(&expected, UINT64_MAX);
	spoke_pack_u64(&expected, 7);
	assert_packs(SPOKE_ARGS((signed char)INT8_MIN, (char)'x', (short)INT16_MIN, (int)INT32_MIN,
				-5L, (long long)INT64_MIN, (unsigned char)UINT8_MAX,
				(unsigned short)UINT16_MAX, (unsigned)UINT32_MAX, 6UL,
				(unsigned long long)UINT64_MAX, (size_t)7),
		     &expected);
}

TEST(other_type_keeps_its_value)
{
	struct spoke_builder expected = by_hand();
	const struct spoke_span span = { "a\0b", 3 };
	const struct spoke_value nothing = { 0 };
	const struct spoke_value list = { (const unsigned char *)"\x92\x01\x02", 3 };
	const struct spoke_value number = { (const unsigned char *)"\x07", 1 };
	char text[] = "buffer";
	const bool flag = true;

	spoke_pack_text(&expected, "world");
	spoke_pack_text(&expected, "buffer");
	spoke_pack_str(&expected, "a\0b", 3);
	spoke_pack_bin(&expected, "\x00\xff", 2);
	spoke_pack_double(&expected, 0.5);
	spoke_pack_double(&expected, 0.25);
	spoke_pack_bool(&expected, true);
	spoke_pack_bool(&expected, false);
	spoke_pack_bool(&expected, true);
	spoke_pack_nil(&expected);
	spoke_pack_nil(&expected);
	spoke_pack_array(&expected, 2);
	spoke_pack_i64(&expected, 1);
	spoke_pack_i64(&expected, 2);
	spoke_pack_i64(&expected, 7);
	assert_packs(SPOKE_ARGS("world", text, span, SPOKE_BIN("\x00\xff", 2), 0.5, 0.25f, true,
				false, flag, SPOKE_NIL, nothing, list, number),
		     &expected);
}

TEST(comparison_is_bool_only_if_cast)
{
	struct spoke_builder expected = by_hand();

	spoke_pack_bool(&expected, true);
	spoke_pack_i64(&expected, 1);
	assert_packs(SPOKE_ARGS((bool)(memory.bytes == 0), memory.bytes == 0), &expected);
}

TEST(number_of_args_is_0_to_16)
{
	struct spoke_builder expected = by_hand();

	assert_packs(SPOKE_NO_ARGS, &expected);
	expected = by_hand();
	spoke_pack_nil(&expected);
	assert_packs(SPOKE_ARGS(SPOKE_NIL), &expected);
	expected = by_hand();
	for (int i = 1; i <= 16; i++)
		spoke_pack_i64(&expected, i);
	assert_packs(SPOKE_ARGS(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16), &expected);
	assert_int_equal(SPOKE_ARGS(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13).count, 13);
}

TEST(list_and_map_nest)
{
	struct spoke_builder expected = by_hand();

	spoke_pack_i64(&expected, 1);
	spoke_pack_map(&expected, 2);
	spoke_pack_text(&expected, "name");
	spoke_pack_text(&expected, "Ann");
	spoke_pack_text(&expected, "tags");
	spoke_pack_array(&expected, 2);
	spoke_pack_array(&expected, 1);
	spoke_pack_nil(&expected);
	spoke_pack_bool(&expected, false);
	spoke_pack_i64(&expected, 2);
	assert_packs(SPOKE_ARGS(1,
				SPOKE_MAP("name", "Ann", "tags",
					  SPOKE_LIST(SPOKE_LIST(SPOKE_NIL), false)),
				2),
		     &expected);
}

TEST(depth_of_lists_has_a_limit)
{
	struct spoke_arg chain[SPOKE_ARGS_DEPTH_MAX + 1];
	struct spoke_builder expected = by_hand();

	chain[0] = SPOKE_NIL;
	for (unsigned i = 1; i <= SPOKE_ARGS_DEPTH_MAX; i++) {
		chain[i] = spoke_arg_bytes(SPOKE_ARG_LIST, &chain[i - 1], 1);
		spoke_pack_array(&expected, 1);
	}
	spoke_pack_nil(&expected);
	assert_packs(SPOKE_ARGS(chain[SPOKE_ARGS_DEPTH_MAX]), &expected);
	assert_int_equal(error_of(SPOKE_ARGS(SPOKE_LIST(chain[SPOKE_ARGS_DEPTH_MAX]))),
			 SPOKE_EDEPTH);
}

/* Texts around the size that needs no memory, alone and after another argument. */
TEST(text_of_any_length_is_packed)
{
	static char text[4096];

	memset(text, 'x', sizeof(text) - 1);
	for (size_t len = 0; len < sizeof(text); len += len < 480 || len > 530 ? 31 : 1) {
		const struct spoke_span span = { text, len };
		struct spoke_builder expected = by_hand();

		spoke_pack_i64(&expected, 1000000);
		spoke_pack_str(&expected, text, len);
		assert_packs(SPOKE_ARGS(1000000, span), &expected);
	}
}

TEST(text_that_is_null_is_invalid)
{
	const struct spoke_span span = { NULL, 3 };
	const char *text = NULL;

	assert_int_equal(error_of(SPOKE_ARGS(1, text)), SPOKE_EINVAL);
	assert_int_equal(error_of(SPOKE_ARGS(span)), SPOKE_EINVAL);
	assert_int_equal(error_of(SPOKE_ARGS(SPOKE_BIN(NULL, 1))), SPOKE_EINVAL);
}

/* Bytes that are not exactly one value must not swallow or add arguments. */
TEST(value_that_is_not_one_is_an_error)
{
	const struct spoke_value open = { (const unsigned char *)"\x92", 1 };
	const struct spoke_value two = { (const unsigned char *)"\x01\x02", 2 };
	const struct spoke_value bad = { (const unsigned char *)"\xc1", 1 };

	assert_int_equal(error_of(SPOKE_ARGS(open, 1, 2)), SPOKE_ETRUNCATED);
	assert_int_equal(error_of(SPOKE_ARGS(two)), SPOKE_ETRAILING);
	assert_int_equal(error_of(SPOKE_ARGS(SPOKE_LIST(two))), SPOKE_ETRAILING);
	assert_int_equal(error_of(SPOKE_ARGS(bad)), SPOKE_ECORRUPT);
}

TEST(argument_made_wrong_is_an_error)
{
	const struct spoke_arg one = SPOKE_NIL;

	assert_int_equal(error_of(SPOKE_ARGS(spoke_arg_bytes(SPOKE_ARG_MAP, &one, 1))),
			 SPOKE_EINVAL);
	assert_int_equal(error_of(SPOKE_ARGS(spoke_arg_bytes((enum spoke_arg_kind)99, &one, 1))),
			 SPOKE_EINVAL);
	assert_int_equal(error_of(SPOKE_ARGS(SPOKE_BIN(fixed, SPOKEI_ARGS_BYTES_MAX))),
			 SPOKE_ETOOLARGE);
}

TEST(long_args_without_memory_are_enomem)
{
	static char text[2048];
	const struct spoke_span span = { text, sizeof(text) };

	memory.fail_at = memory.asked + 1;
	assert_int_equal(error_of(SPOKE_ARGS(span)), SPOKE_ENOMEM);
	memory.fail_at = 0;
}

STEP(set_up)
{
	memory_init(&memory);
}

GROUP(set_up, NULL);
