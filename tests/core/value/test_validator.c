/* SPDX-License-Identifier: Apache-2.0 */
/* The validator, and values that only Java has. */
#include "core/value/shape.h"
#include "core/value/validator.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

/*
 * --- the validator: accepted input, the error of each rejected input, and input cut at any
 * byte
 */

/* The bytes and the length of a string literal without its NUL. */
#define BYTES(text) (text), sizeof(text) - 1

static const struct spoke_value_limits defaults = {
	.depth_max = SPOKE_VALUE_DEPTH_MAX,
	.items_max = SPOKE_VALUE_ITEMS_MAX,
	.object_bytes_max = SPOKE_VALUE_OBJECT_BYTES_MAX,
	.bytes_max = SPOKE_VALUE_BYTES_MAX,
};

static int validate_under(const struct spoke_value_limits *limits, const void *bytes, size_t len,
			  size_t count)
{
	struct spokei_validator validator;

	spokei_validator_start_body(&validator, limits, len, count);
	return spokei_validate(&validator, bytes, len);
}

static int validate_one(const void *bytes, size_t len)
{
	return validate_under(&defaults, bytes, len, 1);
}

static int validate_stream(const void *bytes, size_t len, size_t *ret_seen)
{
	struct spokei_validator validator;
	int result;

	spokei_validator_start_stream(&validator, &defaults);
	result = spokei_validate(&validator, bytes, len);
	*ret_seen = validator.seen;
	return result;
}

/* A body is exactly one value; a stream may continue after it. */
static const struct {
	const char *bytes;
	size_t len;
	int body;
	int stream;
} inputs[] = {
	{ BYTES(""), SPOKE_ETRUNCATED, SPOKEI_VALIDATOR_MORE },
	{ BYTES("\x00"), 0, 0 },
	{ BYTES("\xff"), 0, 0 },
	{ BYTES("\xc0"), 0, 0 },
	{ BYTES("\xc1"), SPOKE_ECORRUPT, SPOKE_ECORRUPT },
	{ BYTES("\xc2"), 0, 0 },
	{ BYTES("\xca\x7f\xc0\x00\x00"), 0, 0 },
	{ BYTES("\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00"), 0, 0 },
	{ BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), 0, 0 },
	{ BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff"), SPOKE_ETRUNCATED, SPOKEI_VALIDATOR_MORE },
	{ BYTES("\xa0"), 0, 0 },
	{ BYTES("\xa3"
		"a\0\xff"),
	  0, 0 },
	{ BYTES("\xa3"
		"ab"),
	  SPOKE_ETRUNCATED, SPOKEI_VALIDATOR_MORE },
	{ BYTES("\xd9\x00"), 0, 0 },
	{ BYTES("\xd9"), SPOKE_ETRUNCATED, SPOKEI_VALIDATOR_MORE },
	{ BYTES("\xdb\x00\x00\x00\x01x"), 0, 0 },
	{ BYTES("\xdb\xff\xff\xff\xff"), SPOKE_ETRUNCATED, SPOKE_ETOOLARGE },
	{ BYTES("\xc6\x80\x00\x00\x00"), SPOKE_ETRUNCATED, SPOKE_ETOOLARGE },
	{ BYTES("\xc7\x00\x05"), 0, 0 },
	{ BYTES("\xd4\x05x"), 0, 0 },
	{ BYTES("\xd8\x05"
		"0123456789abcdef"),
	  0, 0 },
	{ BYTES("\xd8\x05"
		"0123456789abcde"),
	  SPOKE_ETRUNCATED, SPOKEI_VALIDATOR_MORE },
	{ BYTES("\xc9\xff\xff\xff\xff\x01"), SPOKE_ECORRUPT, SPOKE_ECORRUPT },
	{ BYTES("\xc9\xff\xff\xff\xfe\x01"), SPOKE_ETRUNCATED, SPOKE_ETOOLARGE },
	{ BYTES("\x90"), 0, 0 },
	{ BYTES("\x92\x01\x02"), 0, 0 },
	{ BYTES("\x92\x01"), SPOKE_ETRUNCATED, SPOKEI_VALIDATOR_MORE },
	{ BYTES("\x82\x01\x02\x03\x04"), 0, 0 },
	{ BYTES("\x82\x01\x02\x03"), SPOKE_ETRUNCATED, SPOKEI_VALIDATOR_MORE },
	{ BYTES("\x92\x81\xa1k\x91\x90\x02"), 0, 0 },
	{ BYTES("\x92\x81\xa1k\x91\xc1\x02"), SPOKE_ECORRUPT, SPOKE_ECORRUPT },
	{ BYTES("\xdc\x00\x00"), 0, 0 },
	{ BYTES("\xdd\x05\xf5\xe1\x00"), SPOKE_ETRUNCATED, SPOKE_ETOOLARGE },
	{ BYTES("\xdf\x05\xf5\xe1\x00"), SPOKE_ETRUNCATED, SPOKE_ETOOLARGE },
	{ BYTES("\xdf\xff\xff\xff\xff"), SPOKE_ETRUNCATED, SPOKE_ETOOLARGE },
	{ BYTES("\xdc\xff\xff"), SPOKE_ETRUNCATED, SPOKEI_VALIDATOR_MORE },
	{ BYTES("\xde\xff\xff"), SPOKE_ETRUNCATED, SPOKEI_VALIDATOR_MORE },
	{ BYTES("\xdf\x00\x20\x00\x00"), SPOKE_ETRUNCATED, SPOKE_ETOOLARGE },
	{ BYTES("\x01\x02"), SPOKE_ETRAILING, 0 },
	{ BYTES("\x01\xc1"), SPOKE_ETRAILING, 0 },
	{ BYTES("\x81\xa1k\x01\xc0"), SPOKE_ETRAILING, 0 },
};

TEST(validator_returns_expected_result_per_body)
{
	for (size_t i = 0; i < LENGTH(inputs); i++)
		assert_int_equal(validate_one(inputs[i].bytes, inputs[i].len), inputs[i].body);
}

TEST(validator_needs_more_while_stream_is_incomplete)
{
	for (size_t i = 0; i < LENGTH(inputs); i++) {
		size_t seen;

		assert_int_equal(validate_stream(inputs[i].bytes, inputs[i].len, &seen),
				 inputs[i].stream);
		assert_true(seen <= inputs[i].len);
		if (inputs[i].stream == SPOKEI_VALIDATOR_MORE)
			assert_int_equal(seen, inputs[i].len);
		if (inputs[i].stream == 0 && inputs[i].body == 0)
			assert_int_equal(seen, inputs[i].len);
	}
}

/* Three values and the beginning of a fourth. `seen` records the end of each. */
static const char stream[] = "\x94\x00\x07\xa4"
			     "echo\x91\xa3"
			     "abc\x83\xd9\x02"
			     "kk\xdc\x00\x02\xc0\xcd\x12\x34\xc7\x03\x09xyz\xca\x00\x00\x00\x00"
			     "\xdb\x00\x00\x00\x01q\xdf\x00\x00\x00\x00\xc4\x02zz\xdd\x00\x00";

struct track {
	struct spokei_validator validator;
	size_t ends[8];
	size_t found;
	size_t at;
};

static void track_feed(struct track *track, const char *bytes, size_t len)
{
	size_t used = 0;

	while (used < len) {
		size_t before = track->validator.seen;
		int result = spokei_validate(&track->validator, bytes + used, len - used);

		used += track->validator.seen - before;
		track->at += track->validator.seen - before;
		if (result != 0) {
			assert_int_equal(result, SPOKEI_VALIDATOR_MORE);
			assert_int_equal(used, len);
			return;
		}
		track->ends[track->found++] = track->at;
		spokei_validator_start_stream(&track->validator, &defaults);
	}
}

TEST(validator_result_does_not_depend_on_splits)
{
	size_t len = sizeof(stream) - 1;
	struct track whole = { .found = 0 };

	spokei_validator_start_stream(&whole.validator, &defaults);
	track_feed(&whole, stream, len);
	assert_int_equal(whole.found, 3);
	for (size_t first = 0; first <= len; first++) {
		for (size_t second = first; second <= len; second++) {
			struct track split = { .found = 0 };

			spokei_validator_start_stream(&split.validator, &defaults);
			track_feed(&split, stream, first);
			track_feed(&split, stream + first, second - first);
			track_feed(&split, stream + second, len - second);
			assert_int_equal(split.found, whole.found);
			assert_memory_equal(split.ends, whole.ends, sizeof(whole.ends));
			assert_int_equal(split.validator.seen, whole.validator.seen);
		}
	}
}

TEST(validator_byte_by_byte_gives_same_result)
{
	for (size_t i = 0; i < LENGTH(inputs); i++) {
		struct spokei_validator body;
		struct spokei_validator open;
		int of_body = SPOKEI_VALIDATOR_MORE;
		int of_stream = SPOKEI_VALIDATOR_MORE;

		spokei_validator_start_body(&body, &defaults, inputs[i].len, 1);
		spokei_validator_start_stream(&open, &defaults);
		for (size_t at = 0; at < inputs[i].len; at++) {
			of_body = spokei_validate(&body, inputs[i].bytes + at, 1);
			of_stream = spokei_validate(&open, inputs[i].bytes + at, 1);
		}
		assert_int_equal(of_body,
				 inputs[i].len > 0 ? inputs[i].body : SPOKEI_VALIDATOR_MORE);
		assert_int_equal(of_stream, inputs[i].stream);
	}
}

TEST(validator_reads_no_byte_twice)
{
	struct spokei_validator validator;
	char bytes[64];
	size_t end = 19;

	memcpy(bytes, stream, end);
	spokei_validator_start_stream(&validator, &defaults);
	for (size_t len = 1; len <= 13; len++) {
		assert_int_equal(validator.seen, len - 1);
		assert_int_equal(spokei_validate(&validator, bytes + validator.seen,
						 len - validator.seen),
				 len < 13 ? SPOKEI_VALIDATOR_MORE : 0);
		memset(bytes, 0xc1, len);
	}
	assert_int_equal(validator.seen, 13);
}

TEST(announced_length_is_rejected_at_head)
{
	static const unsigned char claim[] = { 0xdd, 0x05, 0xf5, 0xe1, 0x00 };
	unsigned char nested[160];
	struct spokei_validator validator;

	for (size_t i = 0; i < sizeof(nested); i++)
		nested[i] = claim[i % sizeof(claim)];
	spokei_validator_start_body(&validator, &defaults, sizeof(nested), 1);
	assert_int_equal(spokei_validate(&validator, nested, sizeof(nested)), SPOKE_ETRUNCATED);
	assert_int_equal(validator.seen, 5);
	spokei_validator_start_body(&validator, &defaults, 4, 1);
	assert_int_equal(spokei_validate(&validator, "\x94\x90\x90\x90", 4), SPOKE_ETRUNCATED);
	assert_int_equal(validator.seen, 1);
	spokei_validator_start_body(&validator, &defaults, SPOKE_VALUE_BYTES_MAX, 1);
	assert_int_equal(spokei_validate(&validator, "\xdd\x00\x7f\xff\xfb", 5), SPOKE_ETOOLARGE);
	spokei_validator_start_body(&validator, &defaults, SPOKE_VALUE_BYTES_MAX + 1, 1);
	assert_int_equal(spokei_validate(&validator, NULL, 0), SPOKE_ETOOLARGE);
}

TEST(empty_container_beyond_depth_limit_is_rejected)
{
	unsigned char bytes[2 * SPOKE_VALUE_DEPTH_MAX];
	size_t depth = SPOKE_VALUE_DEPTH_MAX;

	memset(bytes, 0x91, sizeof(bytes));
	bytes[depth] = 0xc0;
	assert_int_equal(validate_one(bytes, depth + 1), 0);
	bytes[depth - 1] = 0x90;
	assert_int_equal(validate_one(bytes, depth), 0);
	bytes[depth - 1] = 0x91;
	bytes[depth] = 0x90;
	assert_int_equal(validate_one(bytes, depth + 1), SPOKE_EDEPTH);
	bytes[depth] = 0x80;
	assert_int_equal(validate_one(bytes, depth + 1), SPOKE_EDEPTH);
	bytes[depth] = 0x91;
	assert_int_equal(validate_one(bytes, sizeof(bytes)), SPOKE_EDEPTH);
}

TEST(million_levels_are_rejected_at_first_level_too_many)
{
	size_t len = 1u << 20;
	unsigned char *bytes = malloc(len);
	struct spokei_validator validator;

	assert_non_null(bytes);
	memset(bytes, 0x91, len);
	spokei_validator_start_body(&validator, &defaults, len, 1);
	assert_int_equal(spokei_validate(&validator, bytes, len), SPOKE_EDEPTH);
	assert_int_equal(validator.seen, SPOKE_VALUE_DEPTH_MAX + 1);
	free(bytes);
}

TEST(sibling_containers_do_not_add_depth)
{
	unsigned char bytes[1001];

	memset(bytes, 0x90, sizeof(bytes));
	bytes[0] = 0xdc;
	bytes[1] = 0x03;
	bytes[2] = 0xe6;
	assert_int_equal(validate_one(bytes, sizeof(bytes)), 0);
}

/* Validates an array of `count` nils with these limits. */
static int validate_nils(uint32_t count, const struct spoke_value_limits *limits)
{
	size_t len = 5 + (size_t)count;
	unsigned char *bytes = malloc(len);
	int result;

	assert_non_null(bytes);
	memset(bytes, 0xc0, len);
	bytes[0] = 0xdd;
	for (unsigned i = 0; i < 4; i++)
		bytes[1 + i] = (unsigned char)(count >> (24 - 8 * i));
	result = validate_under(limits, bytes, len, 1);
	free(bytes);
	return result;
}

TEST(container_counts_as_item)
{
	struct spoke_value_limits objects = defaults;
	struct spoke_value_limits more = defaults;

	assert_int_equal(validate_nils(SPOKE_VALUE_ITEMS_MAX - 1, &defaults), 0);
	assert_int_equal(validate_nils(SPOKE_VALUE_ITEMS_MAX, &defaults), SPOKE_ETOOLARGE);
	assert_int_equal(validate_nils(SPOKE_VALUE_BYTES_MAX - 5, &defaults), SPOKE_ETOOLARGE);
	objects.object_bytes_max = (size_t)100 * SPOKE_VALUE_OBJECT_BYTES;
	assert_int_equal(validate_nils(99, &objects), 0);
	assert_int_equal(validate_nils(100, &objects), SPOKE_ETOOLARGE);
	more.items_max = UINT32_MAX;
	more.object_bytes_max = (size_t)174762 * SPOKE_VALUE_OBJECT_BYTES;
	assert_int_equal(validate_nils(174761, &more), 0);
	assert_int_equal(validate_nils(174762, &more), SPOKE_ETOOLARGE);
}

TEST(body_must_have_expected_value_count)
{
	static const char three[] = "\x04\xa1x\x81\xa1k\xc0";
	size_t len = sizeof(three) - 1;
	struct spokei_validator validator;

	assert_int_equal(validate_under(&defaults, three, len, 3), 0);
	assert_int_equal(validate_under(&defaults, three, len, 2), SPOKE_ETRAILING);
	assert_int_equal(validate_under(&defaults, three, len, 4), SPOKE_ETRUNCATED);
	assert_int_equal(validate_under(&defaults, three, len - 1, SPOKEI_VALIDATOR_ALL),
			 SPOKE_ETRUNCATED);
	assert_int_equal(validate_under(&defaults, "", 0, SPOKEI_VALIDATOR_ALL), 0);
	assert_int_equal(validate_under(&defaults, "", 0, 0), 0);
	assert_int_equal(validate_under(&defaults, "x", 1, 0), SPOKE_ETRAILING);
	spokei_validator_start_body(&validator, &defaults, len, SPOKEI_VALIDATOR_ALL);
	assert_int_equal(spokei_validate(&validator, three, len), 0);
	assert_int_equal(validator.count, 3);
	assert_int_equal(validator.seen, len);
}

TEST(endless_value_is_rejected_at_maximum)
{
	struct spoke_value_limits limits = defaults;
	struct spokei_validator validator;

	limits.bytes_max = 10;
	spokei_validator_start_stream(&validator, &limits);
	assert_int_equal(spokei_validate(&validator, "\x93\xa4zzzz", 6), SPOKEI_VALIDATOR_MORE);
	assert_int_equal(spokei_validate(&validator, "\xa3", 1), SPOKEI_VALIDATOR_MORE);
	assert_int_equal(spokei_validate(&validator, "zzz\x01", 4), SPOKE_ETOOLARGE);
	assert_int_equal(spokei_validate(&validator, "\x01", 1), SPOKE_ETOOLARGE);
}

/* The shortcut to the end of a scalar agrees with the full check, also for truncated input. */
TEST(validator_shape_and_cursor_agree_on_scalar_length)
{
	static const unsigned char lens[] = { 0, 1, 32, 254, 255 };
	unsigned char bytes[260] = { 0 };

	for (unsigned first = 0; first < 256; first++) {
		for (size_t i = 0; i < LENGTH(lens); i++) {
			bytes[0] = (unsigned char)first;
			bytes[1] = lens[i];
			for (size_t len = 1; len <= sizeof(bytes); len++)
				assert_int_equal(spokei_shape_len(bytes, bytes + len),
						 spokei_shape_len_any(bytes, bytes + len));
		}
	}
}

/* --- values that only Java has: typed arrays and maps, references, objects, longs */

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

	for (size_t i = 0; i < LENGTH(cases); i++) {
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

	for (size_t i = 0; i < LENGTH(cases); i++) {
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

	for (size_t i = 0; i < LENGTH(cases); i++) {
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

	for (size_t i = 0; i < LENGTH(cases); i++) {
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
	struct spokei_validator validator;

	for (size_t cut = 1; cut < sizeof(bytes) - 1; cut++) {
		spokei_validator_start_stream(&validator, &limits);
		assert_int_equal(spokei_validate(&validator, bytes, cut), SPOKEI_VALIDATOR_MORE);
		assert_int_equal(spokei_validate(&validator, bytes + cut, sizeof(bytes) - 1 - cut),
				 0);
		assert_true(validator.exts);
		assert_int_equal(validator.seen, sizeof(bytes) - 1);
	}
	spokei_validator_start_stream(&validator, &limits);
	assert_int_equal(spokei_validate(&validator, "\x91\x01", 2), 0);
	assert_false(validator.exts);
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
