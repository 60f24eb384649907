/* SPDX-License-Identifier: Apache-2.0 */
/* Values that only Java has: typed arrays and maps, references, objects, longs. */
#include "core/value/skim.h"
#include "tests/support/test.h"

#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define BYTES(text) (text), sizeof(text) - 1

/* An array [1, 2] with the type "[int", a reference to it, and one that is open. */
#define TYPED "\xc7\x08H\xa4[int\x92\x01\x02"
#define REF "\xc7\x0cR\x01" TYPED
#define OPEN_REF "\xd5R\x01\xc0"
#define OBJECT                                                                                     \
	"\xde\x00\x02\xa1x\x07\xa5"                                                                \
	"class\xa5Point"

static struct spoke_value value_of(const char *bytes, size_t len)
{
	return (struct spoke_value){ (const unsigned char *)bytes, len };
}

static void start(struct spoke_builder *builder)
{
	static unsigned char memory[8192];

	spoke_builder_init_fixed(builder, memory, sizeof(memory), NULL);
}

/* --- reading */

TEST(typed_array_and_reference_read_as_array)
{
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = { { BYTES(TYPED) }, { BYTES(REF) } };

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct spoke_value value = value_of(cases[i].bytes, cases[i].len);
		struct spoke_value item = { 0 };
		struct spoke_cursor items;
		struct spoke_span type;
		char text[20];
		size_t len = 0;
		int64_t number = 0;

		assert_int_equal(spoke_value_check(value.data, value.len, NULL, &value), 0);
		assert_int_equal(spoke_value_type(value), SPOKE_VALUE_ARRAY);
		assert_int_equal(spoke_value_array_len(value, &len), 0);
		assert_int_equal(len, 2);
		assert_int_equal(spoke_cursor_array(value, &items), 0);
		assert_true(spoke_cursor_next(&items, &item));
		assert_int_equal(spoke_value_i64(item, &number), 0);
		assert_int_equal(number, 1);
		assert_int_equal(spoke_value_class(value, &type), 0);
		assert_int_equal(type.len, 4);
		assert_memory_equal(type.data, "[int", 4);
		(void)spoke_value_print(value, text, sizeof(text));
		assert_string_equal(text, "[1, 2]");
	}
}

#define FIVE "\xa1k\x01\xa1k\x01\xa1k\x01\xa1k\x01\xa1k\x01"
#define FIFTEEN FIVE FIVE FIVE
#define KEY                                                                                        \
	"\xa5"                                                                                     \
	"class"
#define LONG_KEY                                                                                   \
	"\xd9\x05"                                                                                 \
	"class"

TEST(typed_map_and_object_answer_get)
{
	struct spoke_value map = value_of(BYTES("\xc7\x0aH\xa1M\xdf\x00\x00\x00\x01\xa1k\x05"));
	struct spoke_value object = value_of(BYTES(OBJECT));
	struct spoke_value found;
	struct spoke_span type;
	char text[60];

	assert_int_equal(spoke_value_type(map), SPOKE_VALUE_MAP);
	assert_int_equal(spoke_value_get(map, "k", &found), 0);
	assert_int_equal(found.data[0], 5);
	assert_int_equal(spoke_value_class(map, &type), 0);
	assert_memory_equal(type.data, "M", type.len);
	assert_int_equal(spoke_value_get(object, "x", &found), 0);
	assert_int_equal(found.data[0], 7);
	assert_int_equal(spoke_value_class(object, &type), 0);
	assert_memory_equal(type.data, "Point", type.len);
	(void)spoke_value_print(object, text, sizeof(text));
	assert_string_equal(text, "{\"x\": 7, \"class\": \"Point\"}");
}

TEST(map_is_object_by_its_keys_and_heads)
{
	static const struct {
		const char *bytes;
		size_t len;
		bool is_object;
	} cases[] = {
		{ BYTES("\x82\xa1x\x01" KEY "\xa4it.P"), true },
		{ BYTES("\x82\x05\x01" KEY "\xa4it.P"), false }, /* a key is no str */
		{ BYTES("\x82" KEY "\xa4it.P\xa1x\x01"), false },
		{ BYTES("\xdf\0\0\0\x01" KEY "\xa4it.P"), false },
		{ BYTES("\x81" KEY "\xa1P"), false },
		{ BYTES("\xde\0\x01" KEY "\xa1P"), true },
		{ BYTES("\xde\0\x02\x05\x01" KEY "\xa1P"), false },
		{ BYTES("\x81" LONG_KEY "\xa1P"), false },
		{ BYTES("\xde\0\x10" FIFTEEN KEY "\xa1P"), false },
		{ BYTES("\xde\0\x10" FIFTEEN LONG_KEY "\xa1P"), true },
	};
	struct spoke_span type;

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct spoke_value map = value_of(cases[i].bytes, cases[i].len);

		assert_int_equal(spoke_value_class(map, &type),
				 cases[i].is_object ? 0 : SPOKE_ENOENT);
	}
}

TEST(reference_to_open_container_reads_as_nil)
{
	struct spoke_value value = value_of(BYTES(OPEN_REF));
	char text[20];

	assert_true(spoke_value_is_nil(value));
	(void)spoke_value_print(value, text, sizeof(text));
	assert_string_equal(text, "null");
}

TEST(ext_of_another_form_stays_opaque)
{
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = {
		{ BYTES("\xd4H\xa0") },                  /* a name alone */
		{ BYTES("\xd5H\xa0\x01") },              /* no array or map */
		{ BYTES("\xd5H\x01\x90") },              /* no name */
		{ BYTES("\xc7\x03H\xa0\x91") },          /* truncated: rejected */
		{ BYTES("\xc7\x03H\xa0\x90\x00") },      /* a byte too many */
		{ BYTES("\xd5H\xa0\xc1") },              /* invalid */
		{ BYTES("\xd5R\x00\x90") },              /* a distance of 0 */
		{ BYTES("\xd5R\x01\x02") },              /* a number is not referred to */
		{ BYTES("\xc7\x05R\x01\xd5R\x01\x90") }, /* a reference to a reference */
		{ BYTES("\xc7\x05R\x01\xd5H\x01\x90") }, /* a reference to an opaque ext */
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct spoke_value value = value_of(cases[i].bytes, cases[i].len);
		struct spoke_span content;
		int8_t type;
		bool truncated = i == 3;
		int result = spoke_value_check(value.data, value.len, NULL, &value);

		assert_int_equal(result, truncated ? SPOKE_ETRUNCATED : 0);
		assert_int_equal(spoke_value_type(value), SPOKE_VALUE_EXT);
		assert_int_equal(spoke_value_class(value, &content), SPOKE_ETYPE);
		if (!truncated)
			assert_int_equal(spoke_value_ext(value, &type, &content), 0);
	}
}

TEST(map_with_class_is_an_object_only_by_its_form)
{
	static const struct {
		const char *bytes;
		size_t len;
		int result;
	} cases[] = {
#define LAST                                                                                       \
	"\xa5"                                                                                     \
	"class"
		{ BYTES("\x81" LAST "\xa4it.P"), 0 },
		{ BYTES("\x81" LAST "\xa6it.P$Q"), 0 },
		{ BYTES("\x81" LAST "\xa1P"), SPOKE_ENOENT },
		{ BYTES("\x81" LAST "\xa3.it"), SPOKE_ENOENT },
		{ BYTES("\x81" LAST "\xa3it."), SPOKE_ENOENT },
		{ BYTES("\x81" LAST "\xa4i..t"), SPOKE_ENOENT },
		{ BYTES("\x81" LAST "\xa4i.2t"), SPOKE_ENOENT },
		{ BYTES("\x81" LAST "\xa4i. t"), SPOKE_ENOENT },
		{ BYTES("\x81" LAST "\x01"), SPOKE_ENOENT },
		{ BYTES("\x81\xa5klass\xa4it.P"), SPOKE_ENOENT },
		{ BYTES("\x82" LAST "\xa4it.P\x01\x02"), SPOKE_ENOENT },
		{ BYTES("\xdf\x00\x00\x00\x01" LAST "\xa4it.P"), SPOKE_ENOENT },
		{ BYTES("\xde\x00\x01" LAST "\xa1P"), 0 },
		{ BYTES("\xd5R\x01\x80"), SPOKE_ENOENT },
		{ BYTES("\x80"), SPOKE_ENOENT },
		{ BYTES("\x90"), SPOKE_ENOENT },
		{ BYTES("\x01"), SPOKE_ETYPE },
#undef LAST
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct spoke_value value = value_of(cases[i].bytes, cases[i].len);
		struct spoke_span type;
		int result = spoke_value_class(value, &type);

		if (result != cases[i].result)
			fail_msg("case %zu: %s", i, spoke_strerror(result));
	}
}

/* --- limits */

/* Packs `levels` arrays of one element, each in a typed ext; returns the length. */
static size_t nest(unsigned char bytes[4096], size_t levels)
{
	struct spoke_builder builder;
	struct spoke_value value = { 0 };
	struct spoke_value_limits limits = { .depth_max = SPOKE_VALUE_DEPTH_MAX };

	spoke_builder_init_fixed(&builder, bytes, 4096, &limits);
	for (size_t i = 0; i < levels; i++) {
		spoke_pack_typed(&builder, "T");
		spoke_pack_array(&builder, 1);
	}
	spoke_pack_nil(&builder);
	return spoke_builder_finish_value(&builder, &value) == 0 ? value.len : 0;
}

TEST(ext_with_values_is_one_level_of_depth)
{
	unsigned char bytes[4096];
	struct spoke_value_limits limits = { .depth_max = 20 };
	struct spoke_value value;
	size_t len = nest(bytes, 10);

	assert_int_equal(spoke_value_check(bytes, len, &limits, &value), 0);
	limits.depth_max = 19;
	assert_int_equal(spoke_value_check(bytes, len, &limits, &value), SPOKE_EDEPTH);
	assert_int_not_equal(nest(bytes, SPOKE_VALUE_DEPTH_MAX / 2), 0);
	assert_int_equal(nest(bytes, SPOKE_VALUE_DEPTH_MAX / 2 + 1), 0);
}

TEST(values_in_an_ext_count_as_items)
{
	struct spoke_value_limits limits = { .items_max = 7 };
	struct spoke_value value;

	/* The array around, the ext, the name, the array inside, two numbers, and one after. */
	assert_int_equal(spoke_value_check(BYTES("\x92" TYPED "\x03"), &limits, &value), 0);
	limits.items_max = 6;
	assert_int_equal(spoke_value_check(BYTES("\x92" TYPED "\x03"), &limits, &value),
			 SPOKE_ETOOLARGE);
	/* An opaque ext is one item. */
	limits.items_max = 2;
	assert_int_equal(spoke_value_check(BYTES("\x91\xd5H\xa0\x01"), &limits, &value), 0);
}

TEST(builder_counts_as_the_validator_does)
{
	struct spoke_value_limits limits = { .items_max = 7, .depth_max = 3 };
	unsigned char memory[200];
	struct spoke_builder builder;
	struct spoke_value value;

	for (uint32_t items = 7; items >= 6; items--) {
		int expected = items == 7 ? 0 : SPOKE_ETOOLARGE;

		limits.items_max = items;
		spoke_builder_init_fixed(&builder, memory, sizeof(memory), &limits);
		spoke_pack_array(&builder, 2);
		spoke_pack_ext(&builder, SPOKE_EXT_TYPED, &TYPED[3], sizeof(TYPED) - 4);
		spoke_pack_i64(&builder, 3);
		assert_int_equal(spoke_builder_finish_value(&builder, &value), expected);
		spoke_builder_init_fixed(&builder, memory, sizeof(memory), &limits);
		spoke_pack_array(&builder, 2);
		spoke_pack_i64(&builder, 3);
		spoke_pack_typed(&builder, "[int");
		spoke_pack_array(&builder, 2);
		spoke_pack_i64(&builder, 1);
		spoke_pack_i64(&builder, 2);
		assert_int_equal(spoke_builder_finish_value(&builder, &value), expected);
		if (expected == 0)
			assert_int_equal(spoke_value_check(value.data, value.len, &limits, &value),
					 0);
	}
	limits = (struct spoke_value_limits){ .depth_max = 1 };
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), &limits);
	spoke_pack_ext(&builder, SPOKE_EXT_TYPED, &TYPED[3], sizeof(TYPED) - 4);
	assert_int_equal(spoke_builder_finish_value(&builder, &value), SPOKE_EDEPTH);
}

TEST(validator_defers_exts_of_a_stream)
{
	static const struct spoke_value_limits limits = { 3, 100, SIZE_MAX, 1000, false };
	static const char bytes[] = "\x93" TYPED TYPED "\x01";
	struct spokei_skim skim;

	for (size_t cut = 1; cut < sizeof(bytes) - 1; cut++) {
		spokei_skim_start_stream(&skim, &limits);
		assert_int_equal(spokei_skim_feed(&skim, bytes, cut), SPOKEI_SKIM_MORE);
		assert_int_equal(spokei_skim_feed(&skim, bytes + cut, sizeof(bytes) - 1 - cut), 0);
		assert_true(skim.exts);
		assert_int_equal(skim.seen, sizeof(bytes) - 1);
	}
	spokei_skim_start_stream(&skim, &limits);
	assert_int_equal(spokei_skim_feed(&skim, "\x91\x01", 2), 0);
	assert_false(skim.exts);
}

/* --- building */

TEST(built_values_have_the_documented_bytes)
{
	static const char object[] = "\xde\x00\x02\xa1x\x07\xa5"
				     "class\xa8it.Point";
	struct spoke_builder builder;
	struct spoke_span span = { NULL, 0 };

	start(&builder);
	spoke_pack_long(&builder, 5);
	spoke_pack_long(&builder, -2);
	assert_int_equal(spoke_builder_finish(&builder, &span), 0);
	assert_int_equal(span.len, 18);
	assert_memory_equal(span.data, "\xd3\0\0\0\0\0\0\0\5\xd3\xff\xff\xff\xff\xff\xff\xff\xfe",
			    18);
	spoke_builder_reset(&builder);
	spoke_pack_object(&builder, 1);
	spoke_pack_text(&builder, "x");
	spoke_pack_i64(&builder, 7);
	spoke_pack_class(&builder, "it.Point");
	assert_int_equal(spoke_builder_finish(&builder, &span), 0);
	assert_int_equal(span.len, sizeof(object) - 1);
	assert_memory_equal(span.data, object, span.len);
	spoke_builder_reset(&builder);
	spoke_pack_typed(&builder, "[int");
	spoke_pack_array(&builder, 2);
	spoke_pack_i64(&builder, 1);
	spoke_pack_i64(&builder, 2);
	assert_int_equal(spoke_builder_finish(&builder, &span), 0);
	assert_int_equal(span.len, 6 + 8);
	assert_memory_equal(span.data, "\xc9\0\0\0\x08H\xa4[int\x92\x01\x02", span.len);
}

TEST(enum_and_decimal_are_objects)
{
	struct spoke_builder builder;
	struct spoke_value value = { 0 };
	char text[200];

	start(&builder);
	spoke_pack_array(&builder, 2);
	spoke_pack_enum(&builder, "it.Color", "RED");
	spoke_pack_decimal(&builder, "1.50");
	assert_int_equal(spoke_builder_finish_value(&builder, &value), 0);
	(void)spoke_value_print(value, text, sizeof(text));
	assert_string_equal(text, "[{\"name\": \"RED\", \"class\": \"it.Color\"}, "
				  "{\"value\": \"1.50\", \"class\": \"java.math.BigDecimal\"}]");
}

TEST(typed_values_nest_and_stand_side_by_side)
{
	struct spoke_builder builder;
	struct spoke_value value = { 0 };
	struct spoke_value outer = { 0 };
	struct spoke_value inner = { 0 };
	struct spoke_cursor items;
	struct spoke_span type;
	char text[100];

	start(&builder);
	spoke_pack_array(&builder, 2);
	spoke_pack_typed(&builder, "java.util.TreeMap");
	spoke_pack_map(&builder, 2);
	spoke_pack_text(&builder, "a");
	spoke_pack_typed(&builder, "java.util.HashSet");
	spoke_pack_array(&builder, 0);
	spoke_pack_text(&builder, "b");
	spoke_pack_typed(&builder, "[int");
	spoke_pack_array(&builder, 1);
	spoke_pack_i64(&builder, 1);
	spoke_pack_typed(&builder, "[long");
	spoke_pack_array(&builder, 1);
	spoke_pack_long(&builder, 2);
	assert_int_equal(spoke_builder_finish_value(&builder, &value), 0);
	assert_int_equal(spoke_value_check(value.data, value.len, NULL, &value), 0);
	(void)spoke_value_print(value, text, sizeof(text));
	assert_string_equal(text, "[{\"a\": [], \"b\": [1]}, [2]]");
	assert_int_equal(spoke_cursor_array(value, &items), 0);
	assert_true(spoke_cursor_next(&items, &outer));
	assert_int_equal(spoke_value_get(outer, "a", &inner), 0);
	assert_int_equal(spoke_value_class(inner, &type), 0);
	assert_memory_equal(type.data, "java.util.HashSet", type.len);
}

TEST(misuse_of_typed_values_is_an_error)
{
	struct spoke_builder builder;
	struct spoke_value value;

	start(&builder);
	spoke_pack_typed(&builder, "[int");
	spoke_pack_i64(&builder, 1);
	assert_int_equal(spoke_builder_finish_value(&builder, &value), SPOKE_EINVAL);
	start(&builder);
	spoke_pack_typed(&builder, NULL);
	assert_int_equal(spoke_builder_finish_value(&builder, &value), SPOKE_EINVAL);
	start(&builder);
	spoke_pack_typed(&builder, "[int");
	assert_int_equal(spoke_builder_finish_value(&builder, &value), SPOKE_ETRUNCATED);
	start(&builder);
	spoke_pack_object(&builder, UINT16_MAX);
	assert_int_equal(spoke_builder_finish_value(&builder, &value), SPOKE_ETOOLARGE);
}
