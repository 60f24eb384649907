/* SPDX-License-Identifier: Apache-2.0 */
/* Fence numbers: how attachments are read, and the bounded table of the highest numbers. */
#include "cluster/filter/fence_table.h"
#include "core/base/env.h"
#include "core/virtual/faults.h"
#include "tests/support/test.h"
#include "transport/wire/message.h"

#include <spoke/host.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define LONG_NAME 10240

static struct spokei_faults faulty;
static struct spokei_fence_table table;
static uint64_t now_ns;

STEP(set_up)
{
	now_ns = 5 * HOUR;
	spokei_faults_init(&faulty, spoke_host_env());
	spokei_fence_table_init(&table, &faulty.env, 3, HOUR, now_ns);
}

STEP(tear_down)
{
	spokei_fence_table_fini(&table);
	assert_int_equal(faulty.blocks, 0);
}

FIXTURE(set_up, tear_down);

/* --- reading */

static unsigned char bytes[2 * LONG_NAME];
static struct spoke_builder builder;

static void begin(size_t pairs)
{
	spoke_builder_init_fixed(&builder, bytes, sizeof(bytes), NULL);
	spoke_pack_map(&builder, pairs);
}

static enum spokei_fence_mark read_marks(struct spoke_span *ret_name, uint64_t *ret_number)
{
	struct spoke_value map;

	*ret_name = spokei_span("unset", 5);
	*ret_number = 77;
	assert_int_equal(spoke_builder_finish_value(&builder, &map), 0);
	return spokei_fence_read(map, ret_name, ret_number);
}

/* Reads the two texts; NULL: the attachment is absent. */
static enum spokei_fence_mark read_texts(const char *name, const char *number, uint64_t *ret_number)
{
	struct spoke_span span;

	begin(1u + (name != NULL) + (number != NULL));
	spoke_pack_text(&builder, "trace");
	spoke_pack_text(&builder, "t1");
	if (name) {
		spoke_pack_text(&builder, "spoke.lease");
		spoke_pack_text(&builder, name);
	}
	if (number) {
		spoke_pack_text(&builder, "spoke.fence");
		spoke_pack_text(&builder, number);
	}
	return read_marks(&span, ret_number);
}

TEST(name_and_decimal_number_are_read)
{
	struct spoke_span name;
	uint64_t number;

	assert_int_equal(read_texts("reports", "1", &number), SPOKEI_FENCE_MARKED);
	assert_int_equal(number, 1);
	assert_int_equal(read_texts("reports", "18446744073709551615", &number),
			 SPOKEI_FENCE_MARKED);
	assert_true(number == UINT64_MAX);
	assert_int_equal(read_texts("reports", "00000000000000000000000042", &number),
			 SPOKEI_FENCE_MARKED);
	assert_int_equal(number, 42);
	begin(2);
	spoke_pack_text(&builder, "spoke.fence");
	spoke_pack_u64(&builder, 9);
	spoke_pack_text(&builder, "spoke.lease");
	spoke_pack_text(&builder, "a");
	assert_int_equal(read_marks(&name, &number), SPOKEI_FENCE_MARKED);
	assert_int_equal(number, 9);
	assert_int_equal(name.len, 1);
	assert_memory_equal(name.data, "a", 1);
}

TEST(request_without_both_attachments_is_unmarked)
{
	struct spoke_span name;
	uint64_t number;

	assert_int_equal(read_texts(NULL, NULL, &number), SPOKEI_FENCE_UNMARKED);
	assert_int_equal(spokei_fence_read((struct spoke_value){ NULL, 0 }, &name, &number),
			 SPOKEI_FENCE_UNMARKED);
	assert_int_equal(read_texts(NULL, "7", &number), SPOKEI_FENCE_BAD_NAME);
	assert_int_equal(read_texts("x", NULL, &number), SPOKEI_FENCE_BAD_NUMBER);
}

TEST(texts_that_are_no_decimal_number_are_rejected)
{
	static const char *const bad[] = {
		"",
		"0",
		"00",
		"-1",
		"+1",
		" 1",
		"1 ",
		"1.0",
		"0x10",
		"1e3",
		"\xc2\xb2",
		"seven",
		"1,000",
		"18446744073709551616",
		"99999999999999999999999999999999",
	};
	uint64_t number;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(read_texts("x", bad[i], &number), SPOKEI_FENCE_BAD_NUMBER);
		assert_int_equal(number, 77);
	}
}

static void read_number_of_type(void (*pack)(void), enum spokei_fence_mark expected)
{
	struct spoke_span name;
	uint64_t number;

	begin(2);
	spoke_pack_text(&builder, "spoke.lease");
	spoke_pack_text(&builder, "x");
	spoke_pack_text(&builder, "spoke.fence");
	pack();
	assert_int_equal(read_marks(&name, &number), expected);
}

static void pack_negative(void)
{
	spoke_pack_i64(&builder, -1);
}

static void pack_zero(void)
{
	spoke_pack_u64(&builder, 0);
}

static void pack_double(void)
{
	spoke_pack_double(&builder, 7.0);
}

static void pack_nil(void)
{
	spoke_pack_nil(&builder);
}

static void pack_map(void)
{
	spoke_pack_map(&builder, 0);
}

static void pack_bin(void)
{
	spoke_pack_bin(&builder, "7", 1);
}

static void pack_true(void)
{
	spoke_pack_bool(&builder, true);
}

TEST(numbers_of_other_types_are_rejected)
{
	read_number_of_type(pack_negative, SPOKEI_FENCE_BAD_NUMBER);
	read_number_of_type(pack_zero, SPOKEI_FENCE_BAD_NUMBER);
	read_number_of_type(pack_double, SPOKEI_FENCE_BAD_NUMBER);
	read_number_of_type(pack_nil, SPOKEI_FENCE_BAD_NUMBER);
	read_number_of_type(pack_map, SPOKEI_FENCE_BAD_NUMBER);
	read_number_of_type(pack_bin, SPOKEI_FENCE_BAD_NUMBER);
	read_number_of_type(pack_true, SPOKEI_FENCE_BAD_NUMBER);
}

static enum spokei_fence_mark read_name_of_len(size_t len)
{
	static char name[LONG_NAME + 1];
	uint64_t number;

	memset(name, 'n', len);
	name[len] = '\0';
	return read_texts(name, "7", &number);
}

TEST(names_have_1_to_1024_bytes_of_text)
{
	struct spoke_span name;
	uint64_t number;

	assert_int_equal(read_name_of_len(0), SPOKEI_FENCE_BAD_NAME);
	assert_int_equal(read_name_of_len(1), SPOKEI_FENCE_MARKED);
	assert_int_equal(read_name_of_len(1024), SPOKEI_FENCE_MARKED);
	assert_int_equal(read_name_of_len(1025), SPOKEI_FENCE_BAD_NAME);
	assert_int_equal(read_name_of_len(LONG_NAME), SPOKEI_FENCE_BAD_NAME);
	begin(2);
	spoke_pack_text(&builder, "spoke.lease");
	spoke_pack_u64(&builder, 12);
	spoke_pack_text(&builder, "spoke.fence");
	spoke_pack_text(&builder, "7");
	assert_int_equal(read_marks(&name, &number), SPOKEI_FENCE_BAD_NAME);
}

/* --- the table */

static struct spokei_fence_verdict note(const char *name, uint64_t number)
{
	return spokei_fence_note(&table, spokei_span(name, strlen(name)), number, now_ns);
}

static enum spokei_fence_step step(const char *name, uint64_t number)
{
	return note(name, number).step;
}

TEST(equal_and_higher_numbers_pass)
{
	assert_int_equal(step("a", 7), SPOKEI_FENCE_PASS);
	assert_int_equal(step("a", 7), SPOKEI_FENCE_PASS);
	assert_int_equal(step("a", 9), SPOKEI_FENCE_PASS);
	assert_int_equal(step("a", 9), SPOKEI_FENCE_PASS);
	assert_int_equal(step("a", UINT64_MAX), SPOKEI_FENCE_PASS);
}

TEST(lower_numbers_are_stale_under_their_own_name)
{
	struct spokei_fence_verdict verdict;

	assert_int_equal(step("a", 9), SPOKEI_FENCE_PASS);
	assert_int_equal(step("b", 8), SPOKEI_FENCE_PASS);
	verdict = note("a", 8);
	assert_int_equal(verdict.step, SPOKEI_FENCE_STALE);
	assert_int_equal(verdict.highest, 9);
	/* A refused number changes nothing. */
	assert_int_equal(step("a", 8), SPOKEI_FENCE_STALE);
	assert_int_equal(step("a", 9), SPOKEI_FENCE_PASS);
	assert_int_equal(step("b", 8), SPOKEI_FENCE_PASS);
}

TEST(full_table_refuses_names_until_one_is_old)
{
	assert_int_equal(step("a", 1), SPOKEI_FENCE_PASS);
	now_ns += MINUTE;
	assert_int_equal(step("b", 1), SPOKEI_FENCE_PASS);
	assert_int_equal(step("c", 1), SPOKEI_FENCE_PASS);
	assert_int_equal(step("d", 1), SPOKEI_FENCE_FULL);
	now_ns += HOUR - MINUTE - 1;
	assert_int_equal(step("d", 1), SPOKEI_FENCE_FULL);
	now_ns += 1; /* "a" was seen an hour ago */
	assert_int_equal(step("d", 1), SPOKEI_FENCE_PASS);
	assert_int_equal(step("a", 1), SPOKEI_FENCE_FULL);
	assert_int_equal(step("b", 1), SPOKEI_FENCE_PASS);
	assert_int_equal(step("c", 0), SPOKEI_FENCE_STALE);
	assert_int_equal(table.names.count, 3);
}

TEST(name_that_is_seen_keeps_its_place)
{
	assert_int_equal(step("a", 5), SPOKEI_FENCE_PASS);
	assert_int_equal(step("b", 5), SPOKEI_FENCE_PASS);
	assert_int_equal(step("c", 5), SPOKEI_FENCE_PASS);
	now_ns += HOUR / 2;
	assert_int_equal(step("a", 6), SPOKEI_FENCE_PASS);
	assert_int_equal(step("b", 4), SPOKEI_FENCE_STALE); /* seen, too */
	now_ns += HOUR / 2;
	assert_int_equal(step("d", 1), SPOKEI_FENCE_PASS); /* in place of "c" */
	assert_int_equal(step("e", 1), SPOKEI_FENCE_FULL);
	assert_int_equal(step("a", 5), SPOKEI_FENCE_STALE);
	assert_int_equal(step("b", 4), SPOKEI_FENCE_STALE);
}

TEST(time_that_goes_back_makes_no_name_old)
{
	assert_int_equal(step("a", 1), SPOKEI_FENCE_PASS);
	assert_int_equal(step("b", 1), SPOKEI_FENCE_PASS);
	now_ns -= 2 * HOUR; /* another engine's turn began earlier */
	assert_int_equal(step("c", 1), SPOKEI_FENCE_PASS);
	assert_int_equal(step("d", 1), SPOKEI_FENCE_FULL);
	assert_int_equal(step("a", 1), SPOKEI_FENCE_PASS);
	now_ns += 2 * HOUR + MINUTE;
	assert_int_equal(step("d", 1), SPOKEI_FENCE_FULL);
}

TEST(stale_numbers_are_told_once_a_minute_and_name)
{
	(void)note("a", 9);
	(void)note("b", 9);
	assert_true(note("a", 8).tell);
	assert_false(note("a", 8).tell);
	assert_true(note("b", 7).tell);
	now_ns += MINUTE - 1;
	assert_false(note("a", 7).tell);
	now_ns += 1;
	assert_true(note("a", 7).tell);
	assert_false(note("a", 7).tell);
}

TEST(stale_numbers_of_many_names_are_told_ten_at_once)
{
	unsigned told = 0;
	char name[16];

	table.names_max = 100;
	for (int i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		(void)note(name, 9);
		told += note(name, 8).tell;
	}
	assert_int_equal(told, 10);
}

TEST(refusals_for_other_reasons_are_told_once_a_minute)
{
	(void)note("a", 1);
	(void)note("b", 1);
	(void)note("c", 1);
	assert_true(note("d", 1).tell);
	assert_false(note("e", 1).tell);
	assert_false(spokei_fence_tells(&table, now_ns));
	now_ns += MINUTE;
	assert_true(spokei_fence_tells(&table, now_ns));
	assert_false(note("d", 1).tell);
}

TEST(name_is_refused_without_memory_and_passes_later)
{
	for (uint64_t nth = 1; nth <= 2; nth++) { /* the entry, and the map */
		spokei_faults_fail(&faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		assert_int_equal(step("a", 7), SPOKEI_FENCE_NO_MEMORY);
		spokei_faults_heal(&faulty);
	}
	assert_int_equal(step("a", 7), SPOKEI_FENCE_PASS);
	assert_int_equal(step("a", 6), SPOKEI_FENCE_STALE);
}
