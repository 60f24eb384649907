/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The adapter to msgpack-c returns the same objects as msgpack-c itself, and packs the same bytes.
 */
#include "tests/support/test.h"

#include <spoke/value_msgpack.h>

#include <string.h>

#define BYTES(text) (text), sizeof(text) - 1

static unsigned char fixed[65536];

static int set_up_zone(void **state)
{
	*state = msgpack_zone_new(MSGPACK_ZONE_CHUNK_SIZE);
	return *state == NULL;
}

STEP(tear_down_zone)
{
	msgpack_zone_free(*state);
}

GROUP(set_up_zone, tear_down_zone);

static struct spoke_value value_of(const void *bytes, size_t len)
{
	return (struct spoke_value){ bytes, len };
}

static int pack(const msgpack_object *object, const struct spoke_value_limits *limits,
		struct spoke_value *ret_value)
{
	struct spoke_builder builder;

	spoke_builder_init_fixed(&builder, fixed, sizeof(fixed), limits);
	spoke_pack_msgpack(&builder, object);
	return spoke_builder_finish_value(&builder, ret_value);
}

static int convert_and_pack(struct spoke_value value, msgpack_zone *zone,
			    struct spoke_value *ret_value)
{
	msgpack_object object;

	assert_int_equal(spoke_value_to_msgpack(value, NULL, zone, &object), 0);
	return pack(&object, NULL, ret_value);
}

/* One value of each type in the fewest bytes, and containers of them. */
static const struct {
	const char *bytes;
	size_t len;
} samples[] = {
	{ BYTES("\xc0") },
	{ BYTES("\xc2") },
	{ BYTES("\xc3") },
	{ BYTES("\x00") },
	{ BYTES("\x7f") },
	{ BYTES("\xcd\x01\x00") },
	{ BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xff") },
	{ BYTES("\xff") },
	{ BYTES("\xd0\x80") },
	{ BYTES("\xd3\x80\x00\x00\x00\x00\x00\x00\x00") },
	{ BYTES("\xca\x3f\xc0\x00\x00") },
	{ BYTES("\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00") },
	{ BYTES("\xa0") },
	{ BYTES("\xa5h\0llo") },
	{ BYTES("\xa4\xde\xad\xbe\xef") },
	{ BYTES("\xc4\x00") },
	{ BYTES("\xc4\x02\x00\xff") },
	{ BYTES("\xd4\x00\x01") },
	{ BYTES("\xc7\x03\xffxyz") },
	{ BYTES("\x90") },
	{ BYTES("\x80") },
	{ BYTES("\x93\x01\x92\xc0\x90\xa1x") },
	{ BYTES("\x82\xa1"
		"a\x92\x01\x02\x81\x90\xc3\xc2") },
	{ BYTES("\x91\x91\x91\x91\x91\x80") },
};

TEST(objects_equal_those_of_msgpack_c)
{
	msgpack_zone *zone = *state;

	for (size_t i = 0; i < LENGTH(samples); i++) {
		struct spoke_value value = value_of(samples[i].bytes, samples[i].len);
		msgpack_object ours;
		msgpack_object theirs;
		size_t at = 0;

		assert_int_equal(spoke_value_to_msgpack(value, NULL, zone, &ours), 0);
		assert_int_equal(msgpack_unpack(samples[i].bytes, samples[i].len, &at, zone,
						&theirs),
				 MSGPACK_UNPACK_SUCCESS);
		assert_int_equal(ours.type, theirs.type);
		assert_true(msgpack_object_equal(ours, theirs));
	}
}

TEST(object_packs_to_its_original_bytes)
{
	for (size_t i = 0; i < LENGTH(samples); i++) {
		struct spoke_value value = value_of(samples[i].bytes, samples[i].len);
		struct spoke_value back;

		assert_int_equal(convert_and_pack(value, *state, &back), 0);
		assert_true(spoke_value_equal(back, value));
	}
}

TEST(object_texts_point_into_value)
{
	static const unsigned char bytes[] = "\x92\xa2hi\xc4\x01!";
	msgpack_object object;

	assert_int_equal(spoke_value_to_msgpack(value_of(bytes, 7), NULL, *state, &object), 0);
	assert_ptr_equal(object.via.array.ptr[0].via.str.ptr, bytes + 2);
	assert_ptr_equal(object.via.array.ptr[1].via.bin.ptr, bytes + 6);
}

TEST(object_of_invalid_bytes_is_rejected)
{
	static const struct {
		const char *bytes;
		size_t len;
		int error;
	} cases[] = {
		{ BYTES(""), SPOKE_ETRUNCATED },
		{ BYTES("\xc1"), SPOKE_ECORRUPT },
		{ BYTES("\x92\x01"), SPOKE_ETRUNCATED },
		{ BYTES("\xdd\xff\xff\xff\xff\x01"), SPOKE_ETRUNCATED },
		{ BYTES("\xdf\xff\xff\xff\xff\x01"), SPOKE_ETRUNCATED },
		{ BYTES("\xdb\xff\xff\xff\xffx"), SPOKE_ETRUNCATED },
		{ BYTES("\x01\x02"), SPOKE_ETRAILING },
	};

	for (size_t i = 0; i < LENGTH(cases); i++) {
		struct spoke_value value = value_of(cases[i].bytes, cases[i].len);
		msgpack_object object;

		assert_int_equal(spoke_value_to_msgpack(value, NULL, *state, &object),
				 cases[i].error);
		assert_int_equal(object.type, MSGPACK_OBJECT_NIL);
	}
}

TEST(object_depth_is_limited_both_ways)
{
	unsigned char deep[SPOKE_VALUE_DEPTH_MAX + 2];
	const struct spoke_value_limits flat = { .depth_max = 2 };
	struct spoke_value back;
	msgpack_object object;

	memset(deep, 0x91, sizeof(deep));
	deep[SPOKE_VALUE_DEPTH_MAX] = 0xc0;
	assert_int_equal(convert_and_pack(value_of(deep, SPOKE_VALUE_DEPTH_MAX + 1), *state, &back),
			 0);
	assert_int_equal(back.len, SPOKE_VALUE_DEPTH_MAX + 1);

	deep[SPOKE_VALUE_DEPTH_MAX] = 0x91;
	deep[SPOKE_VALUE_DEPTH_MAX + 1] = 0xc0;
	assert_int_equal(spoke_value_to_msgpack(value_of(deep, sizeof(deep)), NULL, *state,
						&object),
			 SPOKE_EDEPTH);

	assert_int_equal(spoke_value_to_msgpack(value_of("\x91\x91\x91\xc0", 4), &flat, *state,
						&object),
			 SPOKE_EDEPTH);
	assert_int_equal(spoke_value_to_msgpack(value_of("\x91\x91\x91\xc0", 4), NULL, *state,
						&object),
			 0);
	assert_int_equal(pack(&object, &flat, &back), SPOKE_EDEPTH);
}

TEST(typed_array_becomes_an_array)
{
	/* [typed array [1, 2], a reference to it, a reference to an open array] */
	struct spoke_value value = value_of("\x93\xc7\x08H\xa4[int\x92\x01\x02"
					    "\xc7\x0cR\x01\xc7\x08H\xa4[int\x92\x01\x02"
					    "\xd5R\x02\xc0",
					    1 + 11 + 15 + 4);
	struct spoke_value back;

	assert_int_equal(convert_and_pack(value, *state, &back), 0);
	assert_int_equal(back.len, 8);
	assert_memory_equal(back.data, "\x93\x92\x01\x02\x92\x01\x02\xc0", 8);
}

TEST(cyclic_object_ends_at_depth_limit)
{
	msgpack_object array = { .type = MSGPACK_OBJECT_ARRAY };
	msgpack_object_kv pair;
	msgpack_object map = { .type = MSGPACK_OBJECT_MAP };
	struct spoke_value back;

	array.via.array.size = 1;
	array.via.array.ptr = &array;
	assert_int_equal(pack(&array, NULL, &back), SPOKE_EDEPTH);

	map.via.map.size = 1;
	map.via.map.ptr = &pair;
	pair.key.type = MSGPACK_OBJECT_NIL;
	pair.val = map;
	assert_int_equal(pack(&map, NULL, &back), SPOKE_EDEPTH);
}

TEST(object_items_are_limited_both_ways)
{
	const struct spoke_value_limits few = { .items_max = 3 };
	struct spoke_value value = value_of("\x93\x01\x02\x03", 4);
	struct spoke_value back;
	msgpack_object object;
	msgpack_object claim = { .type = MSGPACK_OBJECT_MAP };
	msgpack_object_kv pair;

	assert_int_equal(spoke_value_to_msgpack(value, &few, *state, &object), SPOKE_ETOOLARGE);
	assert_int_equal(spoke_value_to_msgpack(value, NULL, *state, &object), 0);
	assert_int_equal(pack(&object, &few, &back), SPOKE_ETOOLARGE);

	/* Rejected before the claimed contents are read. */
	claim.via.map.size = UINT32_MAX;
	claim.via.map.ptr = &pair;
	assert_int_equal(pack(&claim, NULL, &back), SPOKE_ETOOLARGE);
}

TEST(unknown_object_type_is_einval)
{
	msgpack_object object = { .type = MSGPACK_OBJECT_ARRAY };
	struct spoke_value back;
	const int unknown = 77;

	object.via.array.size = 1;
	assert_int_equal(pack(&object, NULL, &back), SPOKE_EINVAL);
	object.type = MSGPACK_OBJECT_MAP;
	object.via.map.size = 1;
	object.via.map.ptr = NULL;
	assert_int_equal(pack(&object, NULL, &back), SPOKE_EINVAL);
	object.type = MSGPACK_OBJECT_STR;
	object.via.str.size = 1;
	object.via.str.ptr = NULL;
	assert_int_equal(pack(&object, NULL, &back), SPOKE_EINVAL);
	object.via.str.size = 0;
	assert_int_equal(pack(&object, NULL, &back), 0);
	memcpy(&object.type, &unknown, sizeof(object.type));
	assert_int_equal(pack(&object, NULL, &back), SPOKE_EINVAL);
}

TEST(object_packing_keeps_first_error)
{
	msgpack_object object = { .type = MSGPACK_OBJECT_NIL };
	struct spoke_builder builder;
	struct spoke_span span;

	spoke_builder_init_fixed(&builder, NULL, 0, NULL);
	spoke_pack_nil(&builder);
	object.type = MSGPACK_OBJECT_ARRAY;
	object.via.array.size = 1;
	object.via.array.ptr = NULL;
	spoke_pack_msgpack(&builder, &object);
	assert_int_equal(spoke_builder_finish(&builder, &span), SPOKE_ETOOLARGE);
}

TEST(object_packs_between_other_values)
{
	struct spoke_builder builder;
	struct spoke_value value;
	msgpack_object object;

	assert_int_equal(spoke_value_to_msgpack(value_of("\x92\x01\x90", 3), NULL, *state, &object),
			 0);
	spoke_builder_init_fixed(&builder, fixed, sizeof(fixed), NULL);
	spoke_pack_array(&builder, 2);
	spoke_pack_msgpack(&builder, &object);
	spoke_pack_text(&builder, "x");
	assert_int_equal(spoke_builder_finish_value(&builder, &value), 0);
	assert_true(spoke_value_equal(value, value_of("\x92\x92\x01\x90\xa1x", 6)));
}
