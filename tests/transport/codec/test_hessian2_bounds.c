/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounds of the reader of codec 2, and bodies of some bytes that would become large values.
 * Each is refused, and the memory stays within the maximum of the scratch.
 */
#include "tests/support/test.h"
#include "tests/transport/codec/hostile.h"

#include "tests/core/memory.h"
#include "tests/transport/codec/bodies.h"
#include "transport/codec/codec.h"
#include "transport/codec/hessian2/reader.h"

/* --- bounds */

FIXTURE(hostile_begin, NULL);

TEST(depth_is_bounded)
{
	const struct spoke_value_limits limits = { .depth_max = 3 };

	PUT("\x79", SPOKE_VALUE_DEPTH_MAX - 1);
	PUT("\x78", 1);
	hostile_refused(0);
	(void)hostile_begin(NULL);
	PUT("\x79", SPOKE_VALUE_DEPTH_MAX);
	PUT("\x78", 1);
	hostile_refused(SPOKE_EDEPTH);
	(void)hostile_begin(NULL);
	PUT("H", 100000);
	hostile_refused(SPOKE_EDEPTH);
	/* An ext counts as a level. */
	(void)hostile_begin(NULL);
	PUT("\x71\x01x\x78", 1);
	hostile_ends(SPOKEI_CODEC_REPLY, &limits, 0, SMALL);
	(void)hostile_begin(NULL);
	PUT("\x71\x01x\x79\x78", 1);
	hostile_ends(SPOKEI_CODEC_REPLY, &limits, SPOKE_EDEPTH, SMALL);
	(void)hostile_begin(NULL);
	PUT("\x79\x79\x70\x01x", 1);
	hostile_ends(SPOKEI_CODEC_REPLY, &limits, SPOKE_EDEPTH, SMALL);
}

TEST(references_do_not_exceed_depth)
{
	const struct spoke_value_limits limits = { .depth_max = 4 };

	PUT("\x7a\x79\x78\x79Q\x91", 1); /* the copy has two levels, in three others */
	hostile_ends(SPOKEI_CODEC_REPLY, &limits, SPOKE_EDEPTH, SMALL);
	(void)hostile_begin(NULL);
	PUT("\x7a\x79\x78Q\x91", 1);
	hostile_ends(SPOKEI_CODEC_REPLY, &limits, 0, SMALL);
	(void)hostile_begin(NULL);
	PUT("\x79\x79\x79\x79Q\x90", 1);
	hostile_ends(SPOKEI_CODEC_REPLY, &limits, SPOKE_EDEPTH, SMALL);
}

/* Each of these lists refers to the one before, so that the copies nest. */
TEST(references_in_copies_do_not_exceed_depth)
{
	const struct spoke_value_limits limits = { .depth_max = 10 };

	PUT("\x7d\x78\x79Q\x91\x79Q\x92\x79Q\x93\x79Q\x94", 1);
	hostile_ends(SPOKEI_CODEC_REPLY, &limits, 0, SMALL);
	(void)hostile_begin(NULL);
	PUT("\x7e\x78\x79Q\x91\x79Q\x92\x79Q\x93\x79Q\x94\x79Q\x95", 1);
	hostile_ends(SPOKEI_CODEC_REPLY, &limits, SPOKE_EDEPTH, SMALL);
}

TEST(items_are_bounded)
{
	const struct spoke_value_limits limits = { .items_max = 5 };

	PUT("\x7bNNN", 1);
	hostile_ends(SPOKEI_CODEC_REPLY, &limits, 0, SMALL);
	PUT("N", 1);
	hostile_ends(SPOKEI_CODEC_REPLY, &limits, SPOKE_ETOOLARGE, SMALL);
	(void)hostile_begin(NULL);
	PUT("HNNNNZ", 1);
	hostile_ends(SPOKEI_CODEC_REPLY, &limits, SPOKE_ETOOLARGE, SMALL);
	(void)hostile_begin(NULL);
	PUT("\x57NNNNZ", 1);
	hostile_ends(SPOKEI_CODEC_REPLY, &limits, SPOKE_ETOOLARGE, SMALL);
	(void)hostile_begin(NULL);
	PUT("C\x01p\x91\x01x`N", 1); /* two pairs */
	hostile_ends(SPOKEI_CODEC_REPLY, &limits, SPOKE_ETOOLARGE, SMALL);
	(void)hostile_begin(NULL);
	PUT("\x7a\x78Q\x91", 1); /* the reference has a distance and a copy */
	hostile_ends(SPOKEI_CODEC_REPLY, &limits, SPOKE_ETOOLARGE, SMALL);
}

TEST(table_of_references_is_bounded)
{
	const struct spoke_value_limits limits = { .items_max = UINT32_MAX,
						   .object_bytes_max = SIZE_MAX };

	PUT("\x57", 1);
	PUT("\x78", BODY_MAX - 10);
	hostile_ends(SPOKEI_CODEC_REPLY, &limits, SPOKE_ETOOLARGE, SCRATCH_MAX);
}

TEST(class_definitions_are_bounded)
{
	PUT("C\x00\x90", SPOKEI_HESSIAN_CLASSES_MAX);
	PUT("O\xc8\xff", 1);
	hostile_refused(0);
	(void)hostile_begin(NULL);
	PUT("C\x00\x90", SPOKEI_HESSIAN_CLASSES_MAX + 1);
	PUT("N", 1);
	hostile_refused(SPOKE_ETOOLARGE);
}

TEST(type_names_are_bounded)
{
	PUT("\x57", 1);
	PUT("\x70\x00", SPOKEI_HESSIAN_TYPES_MAX);
	PUT("Z", 1);
	hostile_refused(0);
	(void)hostile_begin(NULL);
	PUT("\x57", 1);
	PUT("\x70\x00", SPOKEI_HESSIAN_TYPES_MAX + 1);
	PUT("Z", 1);
	hostile_refused(SPOKE_ETOOLARGE);
}

TEST(fields_are_bounded)
{
	PUT("C\x00I\x00\x00\xff\xff", 1); /* 65,535, one more than allowed */
	PUT("\x00", 65535);
	PUT("N", 1);
	hostile_refused(SPOKE_ETOOLARGE);
	(void)hostile_begin(NULL);
	PUT("C\x00I\x00\x00\xff\xfe", 1);
	PUT("\x00", 65534);
	PUT("N", 1);
	hostile_refused(0);
}

/* --- bombs */

TEST(doubling_references_are_refused)
{
	PUT("\x57\x78", 1);
	for (char i = 1; i < 30; i++) {
		const char twice[] = { 0x7a, 'Q', (char)(0x90 + i), 'Q', (char)(0x90 + i) };

		hostile_put(twice, sizeof(twice), 1);
	}
	PUT("Z", 1);
	hostile_ends(SPOKEI_CODEC_REPLY, &(struct spoke_value_limits){ 0 }, SPOKE_ETOOLARGE,
		     SCRATCH_MAX);
}

/* Reads the body with much memory, of which some is there already. */
static void ends_with_much_memory(int expected, size_t held)
{
	const struct spoke_value_limits limits = { 0 };
	struct spoke_span values;
	struct spokei_buffer scratch;
	struct memory memory;

	memory_init(&memory);
	spokei_buffer_init(&scratch, &memory.env, SPOKE_VALUE_BYTES_MAX);
	assert_non_null(spokei_buffer_reserve(&scratch, held));
	assert_int_equal(body_read(&spokei_codec_hessian2, &limits, SPOKEI_CODEC_REPLY,
				   spokei_span(hostile_body.bytes, hostile_body.len), &scratch,
				   &values),
			 expected);
	spokei_buffer_fini(&scratch);
	assert_int_equal(memory.bytes, 0);
}

TEST(room_depends_on_length_of_body)
{
	PUT("\x57\x78", 1);
	for (char i = 1; i < 18; i++) {
		const char twice[] = { 0x7a, 'Q', (char)(0x90 + i), 'Q', (char)(0x90 + i) };

		hostile_put(twice, sizeof(twice), 1);
	}
	PUT("Z", 1);
	ends_with_much_memory(SPOKE_ETOOLARGE, 1);
	ends_with_much_memory(SPOKE_ETOOLARGE, SPOKE_VALUE_BYTES_MAX / 2);
	/* Objects of small values with long names fit. */
	(void)hostile_begin(NULL);
	PUT("C\x1f"
	    "com.example.shop.order.api.Item\x91\x0c"
	    "customerName\x57",
	    1);
	PUT("`N", 50000);
	PUT("Z", 1);
	ends_with_much_memory(0, 1);
}

/* Reads the body with this much scratch. Returns the maximum that is left. */
static size_t left_of(size_t max, int expected)
{
	struct spoke_span values;
	struct spokei_buffer scratch;
	struct memory memory;
	size_t left;

	memory_init(&memory);
	spokei_buffer_init(&scratch, &memory.env, max);
	assert_int_equal(body_read(&spokei_codec_hessian2, NULL, SPOKEI_CODEC_REPLY,
				   spokei_span(hostile_body.bytes, hostile_body.len), &scratch,
				   &values),
			 expected);
	left = scratch.max;
	spokei_buffer_fini(&scratch);
	return left;
}

TEST(references_spend_the_maximum_of_the_scratch)
{
	const size_t copies = 10 * 7 * SPOKEI_CODEC_VALUE;

	PUT("\127\177NNNNNNN", 1);
	PUT("Q\221", 10);
	PUT("Z", 1);
	assert_int_equal(left_of(1000, 0), 1000 - copies);
	assert_int_equal(left_of(copies, 0), 0);
	assert_int_equal(left_of(copies - 1, SPOKE_ETOOLARGE), 0);
	hostile_body.len--;
	assert_int_equal(left_of(1000, SPOKE_ETRUNCATED), 1000 - copies); /* an error spends, too */
}

TEST(list_of_one_object_a_thousand_times_fits)
{
	PUT("C\035com.example.shop.api.Customer\232", 1);
	PUT("\002id\006number\004name\006street\004city\003zip", 1);
	PUT("\007country\005phone\005email\004note", 1);
	PUT("\127`\221\222\005Maria\006Street\004Rome\003123\002IT\003123\005a@b.c\004none", 1);
	PUT("Q\221", 999);
	PUT("Z", 1);
	assert_true(left_of(262144 + SPOKEI_CODEC_GROWTH * hostile_body.len, 0) > 0);
}

TEST(references_to_long_value_are_refused)
{
	PUT("\x57\x79S\x20\x00", 1);
	PUT("x", 0x2000);
	PUT("Q\x91", 1000);
	PUT("Z", 1);
	hostile_ends(SPOKEI_CODEC_REPLY, &(struct spoke_value_limits){ 0 }, SPOKE_ETOOLARGE,
		     SCRATCH_MAX);
}

TEST(objects_of_long_names_are_refused)
{
	PUT("C\x00\x91S\x20\x00", 1);
	PUT("x", 0x2000);
	PUT("\x57", 1);
	PUT("`N", 1000);
	PUT("Z", 1);
	hostile_ends(SPOKEI_CODEC_REPLY, &(struct spoke_value_limits){ 0 }, SPOKE_ETOOLARGE,
		     SCRATCH_MAX);
}

TEST(empty_chunks_need_no_memory)
{
	PUT("R\x00\x00", 100000);
	PUT("\x00", 1);
	hostile_ends(SPOKEI_CODEC_REPLY, &(struct spoke_value_limits){ 0 }, 0, SCRATCH_MAX);
	hostile_body.len--;
	hostile_ends(SPOKEI_CODEC_REPLY, &(struct spoke_value_limits){ 0 }, SPOKE_ETRUNCATED,
		     SCRATCH_MAX);
}

TEST(result_is_bounded_in_bytes)
{
	const struct spoke_value_limits limits = { .bytes_max = 100 };

	PUT("\x30\x60", 1);
	PUT("x", 97);
	hostile_body.len--; /* 96 letters, with a head of two bytes and the marker */
	hostile_ends(SPOKEI_CODEC_REPLY, &limits, 0, SMALL);
	(void)hostile_begin(NULL);
	PUT("\x30\x62", 1);
	PUT("x", 98);
	hostile_ends(SPOKEI_CODEC_REPLY, &limits, SPOKE_ETOOLARGE, SMALL);
	(void)hostile_begin(NULL);
	PUT("S\xff\xf0", 1);
	PUT("x", 0xfff0);
	PUT("\x1fxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 1);
	hostile_refused(SPOKE_ETOOLARGE);
}

TEST(missing_memory_is_reported)
{
	const struct spoke_value_limits limits = { 0 };
	struct spoke_span values;
	unsigned fail_at = 1;
	int error;

	PUT("\x57", 1);
	PUT("\x78", 2000);
	PUT("Z", 1);
	do {
		struct spokei_buffer scratch;
		struct memory memory;

		memory_init(&memory);
		memory.fail_at = fail_at++;
		spokei_buffer_init(&scratch, &memory.env, SCRATCH_MAX);
		error = body_read(&spokei_codec_hessian2, &limits, SPOKEI_CODEC_REPLY,
				  spokei_span(hostile_body.bytes, hostile_body.len), &scratch,
				  &values);
		spokei_buffer_fini(&scratch);
		assert_int_equal(memory.bytes, 0);
		assert_true(error == 0 || error == SPOKE_ENOMEM);
	} while (error);
	assert_true(fail_at > 3);
}
