/* SPDX-License-Identifier: Apache-2.0 */
/* The validator: accepted input, the error of each rejected input, and input cut at any byte. */
#include "core/value/shape.h"
#include "core/value/skim.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The bytes and the length of a string literal without its NUL. */
#define BYTES(text) (text), sizeof(text) - 1

static const struct spoke_value_limits defaults = {
	.depth_max = SPOKE_VALUE_DEPTH_MAX,
	.items_max = SPOKE_VALUE_ITEMS_MAX,
	.object_bytes_max = SPOKE_VALUE_OBJECT_BYTES_MAX,
	.bytes_max = SPOKE_VALUE_BYTES_MAX,
};

static int skim_under(const struct spoke_value_limits *limits, const void *bytes, size_t len,
		      size_t count)
{
	struct spokei_skim skim;

	spokei_skim_start_body(&skim, limits, len, count);
	return spokei_skim_feed(&skim, bytes, len);
}

static int skim_one(const void *bytes, size_t len)
{
	return skim_under(&defaults, bytes, len, 1);
}

static int skim_stream(const void *bytes, size_t len, size_t *ret_seen)
{
	struct spokei_skim skim;
	int result;

	spokei_skim_start_stream(&skim, &defaults);
	result = spokei_skim_feed(&skim, bytes, len);
	*ret_seen = skim.seen;
	return result;
}

/* A body is exactly one value; a stream may continue after it. */
static const struct {
	const char *bytes;
	size_t len;
	int body;
	int stream;
} cases[] = {
	{ BYTES(""), SPOKE_ETRUNCATED, SPOKEI_SKIM_MORE },
	{ BYTES("\x00"), 0, 0 },
	{ BYTES("\xff"), 0, 0 },
	{ BYTES("\xc0"), 0, 0 },
	{ BYTES("\xc1"), SPOKE_ECORRUPT, SPOKE_ECORRUPT },
	{ BYTES("\xc2"), 0, 0 },
	{ BYTES("\xca\x7f\xc0\x00\x00"), 0, 0 },
	{ BYTES("\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00"), 0, 0 },
	{ BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), 0, 0 },
	{ BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff"), SPOKE_ETRUNCATED, SPOKEI_SKIM_MORE },
	{ BYTES("\xa0"), 0, 0 },
	{ BYTES("\xa3"
		"a\0\xff"),
	  0, 0 },
	{ BYTES("\xa3"
		"ab"),
	  SPOKE_ETRUNCATED, SPOKEI_SKIM_MORE },
	{ BYTES("\xd9\x00"), 0, 0 },
	{ BYTES("\xd9"), SPOKE_ETRUNCATED, SPOKEI_SKIM_MORE },
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
	  SPOKE_ETRUNCATED, SPOKEI_SKIM_MORE },
	{ BYTES("\xc9\xff\xff\xff\xff\x01"), SPOKE_ECORRUPT, SPOKE_ECORRUPT },
	{ BYTES("\xc9\xff\xff\xff\xfe\x01"), SPOKE_ETRUNCATED, SPOKE_ETOOLARGE },
	{ BYTES("\x90"), 0, 0 },
	{ BYTES("\x92\x01\x02"), 0, 0 },
	{ BYTES("\x92\x01"), SPOKE_ETRUNCATED, SPOKEI_SKIM_MORE },
	{ BYTES("\x82\x01\x02\x03\x04"), 0, 0 },
	{ BYTES("\x82\x01\x02\x03"), SPOKE_ETRUNCATED, SPOKEI_SKIM_MORE },
	{ BYTES("\x92\x81\xa1k\x91\x90\x02"), 0, 0 },
	{ BYTES("\x92\x81\xa1k\x91\xc1\x02"), SPOKE_ECORRUPT, SPOKE_ECORRUPT },
	{ BYTES("\xdc\x00\x00"), 0, 0 },
	{ BYTES("\xdd\x05\xf5\xe1\x00"), SPOKE_ETRUNCATED, SPOKE_ETOOLARGE },
	{ BYTES("\xdf\x05\xf5\xe1\x00"), SPOKE_ETRUNCATED, SPOKE_ETOOLARGE },
	{ BYTES("\xdf\xff\xff\xff\xff"), SPOKE_ETRUNCATED, SPOKE_ETOOLARGE },
	{ BYTES("\xdc\xff\xff"), SPOKE_ETRUNCATED, SPOKEI_SKIM_MORE },
	{ BYTES("\xde\xff\xff"), SPOKE_ETRUNCATED, SPOKEI_SKIM_MORE },
	{ BYTES("\xdf\x00\x20\x00\x00"), SPOKE_ETRUNCATED, SPOKE_ETOOLARGE },
	{ BYTES("\x01\x02"), SPOKE_ETRAILING, 0 },
	{ BYTES("\x01\xc1"), SPOKE_ETRAILING, 0 },
	{ BYTES("\x81\xa1k\x01\xc0"), SPOKE_ETRAILING, 0 },
};

TEST(skim_returns_expected_result_per_body)
{
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		assert_int_equal(skim_one(cases[i].bytes, cases[i].len), cases[i].body);
}

TEST(skim_needs_more_while_stream_is_incomplete)
{
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		size_t seen;

		assert_int_equal(skim_stream(cases[i].bytes, cases[i].len, &seen), cases[i].stream);
		assert_true(seen <= cases[i].len);
		if (cases[i].stream == SPOKEI_SKIM_MORE)
			assert_int_equal(seen, cases[i].len);
		if (cases[i].stream == 0 && cases[i].body == 0)
			assert_int_equal(seen, cases[i].len);
	}
}

/* Three values and the beginning of a fourth. `seen` records the end of each. */
static const char stream[] = "\x94\x00\x07\xa4"
			     "echo\x91\xa3"
			     "abc\x83\xd9\x02"
			     "kk\xdc\x00\x02\xc0\xcd\x12\x34\xc7\x03\x09xyz\xca\x00\x00\x00\x00"
			     "\xdb\x00\x00\x00\x01q\xdf\x00\x00\x00\x00\xc4\x02zz\xdd\x00\x00";

struct track {
	struct spokei_skim skim;
	size_t ends[8];
	size_t found;
	size_t at;
};

static void track_feed(struct track *track, const char *bytes, size_t len)
{
	size_t used = 0;

	while (used < len) {
		size_t before = track->skim.seen;
		int result = spokei_skim_feed(&track->skim, bytes + used, len - used);

		used += track->skim.seen - before;
		track->at += track->skim.seen - before;
		if (result != 0) {
			assert_int_equal(result, SPOKEI_SKIM_MORE);
			assert_int_equal(used, len);
			return;
		}
		track->ends[track->found++] = track->at;
		spokei_skim_start_stream(&track->skim, &defaults);
	}
}

TEST(skim_result_does_not_depend_on_splits)
{
	size_t len = sizeof(stream) - 1;
	struct track whole = { .found = 0 };

	spokei_skim_start_stream(&whole.skim, &defaults);
	track_feed(&whole, stream, len);
	assert_int_equal(whole.found, 3);
	for (size_t first = 0; first <= len; first++) {
		for (size_t second = first; second <= len; second++) {
			struct track split = { .found = 0 };

			spokei_skim_start_stream(&split.skim, &defaults);
			track_feed(&split, stream, first);
			track_feed(&split, stream + first, second - first);
			track_feed(&split, stream + second, len - second);
			assert_int_equal(split.found, whole.found);
			assert_memory_equal(split.ends, whole.ends, sizeof(whole.ends));
			assert_int_equal(split.skim.seen, whole.skim.seen);
		}
	}
}

TEST(skim_byte_by_byte_gives_same_result)
{
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct spokei_skim body;
		struct spokei_skim open;
		int of_body = SPOKEI_SKIM_MORE;
		int of_stream = SPOKEI_SKIM_MORE;

		spokei_skim_start_body(&body, &defaults, cases[i].len, 1);
		spokei_skim_start_stream(&open, &defaults);
		for (size_t at = 0; at < cases[i].len; at++) {
			of_body = spokei_skim_feed(&body, cases[i].bytes + at, 1);
			of_stream = spokei_skim_feed(&open, cases[i].bytes + at, 1);
		}
		assert_int_equal(of_body, cases[i].len > 0 ? cases[i].body : SPOKEI_SKIM_MORE);
		assert_int_equal(of_stream, cases[i].stream);
	}
}

TEST(skim_reads_no_byte_twice)
{
	struct spokei_skim skim;
	char bytes[64];
	size_t end = 19;

	memcpy(bytes, stream, end);
	spokei_skim_start_stream(&skim, &defaults);
	for (size_t len = 1; len <= 13; len++) {
		assert_int_equal(skim.seen, len - 1);
		assert_int_equal(spokei_skim_feed(&skim, bytes + skim.seen, len - skim.seen),
				 len < 13 ? SPOKEI_SKIM_MORE : 0);
		memset(bytes, 0xc1, len);
	}
	assert_int_equal(skim.seen, 13);
}

TEST(announced_length_is_rejected_at_head)
{
	static const unsigned char claim[] = { 0xdd, 0x05, 0xf5, 0xe1, 0x00 };
	unsigned char nested[160];
	struct spokei_skim skim;

	for (size_t i = 0; i < sizeof(nested); i++)
		nested[i] = claim[i % sizeof(claim)];
	spokei_skim_start_body(&skim, &defaults, sizeof(nested), 1);
	assert_int_equal(spokei_skim_feed(&skim, nested, sizeof(nested)), SPOKE_ETRUNCATED);
	assert_int_equal(skim.seen, 5);
	spokei_skim_start_body(&skim, &defaults, 4, 1);
	assert_int_equal(spokei_skim_feed(&skim, "\x94\x90\x90\x90", 4), SPOKE_ETRUNCATED);
	assert_int_equal(skim.seen, 1);
	spokei_skim_start_body(&skim, &defaults, SPOKE_VALUE_BYTES_MAX, 1);
	assert_int_equal(spokei_skim_feed(&skim, "\xdd\x00\x7f\xff\xfb", 5), SPOKE_ETOOLARGE);
	spokei_skim_start_body(&skim, &defaults, SPOKE_VALUE_BYTES_MAX + 1, 1);
	assert_int_equal(spokei_skim_feed(&skim, NULL, 0), SPOKE_ETOOLARGE);
}

TEST(empty_container_beyond_depth_limit_is_rejected)
{
	unsigned char bytes[2 * SPOKE_VALUE_DEPTH_MAX];
	size_t depth = SPOKE_VALUE_DEPTH_MAX;

	memset(bytes, 0x91, sizeof(bytes));
	bytes[depth] = 0xc0;
	assert_int_equal(skim_one(bytes, depth + 1), 0);
	bytes[depth - 1] = 0x90;
	assert_int_equal(skim_one(bytes, depth), 0);
	bytes[depth - 1] = 0x91;
	bytes[depth] = 0x90;
	assert_int_equal(skim_one(bytes, depth + 1), SPOKE_EDEPTH);
	bytes[depth] = 0x80;
	assert_int_equal(skim_one(bytes, depth + 1), SPOKE_EDEPTH);
	bytes[depth] = 0x91;
	assert_int_equal(skim_one(bytes, sizeof(bytes)), SPOKE_EDEPTH);
}

TEST(million_levels_are_rejected_at_first_level_too_many)
{
	size_t len = 1u << 20;
	unsigned char *bytes = malloc(len);
	struct spokei_skim skim;

	assert_non_null(bytes);
	memset(bytes, 0x91, len);
	spokei_skim_start_body(&skim, &defaults, len, 1);
	assert_int_equal(spokei_skim_feed(&skim, bytes, len), SPOKE_EDEPTH);
	assert_int_equal(skim.seen, SPOKE_VALUE_DEPTH_MAX + 1);
	free(bytes);
}

TEST(sibling_containers_do_not_add_depth)
{
	unsigned char bytes[1001];

	memset(bytes, 0x90, sizeof(bytes));
	bytes[0] = 0xdc;
	bytes[1] = 0x03;
	bytes[2] = 0xe6;
	assert_int_equal(skim_one(bytes, sizeof(bytes)), 0);
}

/* Validates an array of `count` nils with these limits. */
static int skim_nils(uint32_t count, const struct spoke_value_limits *limits)
{
	size_t len = 5 + (size_t)count;
	unsigned char *bytes = malloc(len);
	int result;

	assert_non_null(bytes);
	memset(bytes, 0xc0, len);
	bytes[0] = 0xdd;
	for (unsigned i = 0; i < 4; i++)
		bytes[1 + i] = (unsigned char)(count >> (24 - 8 * i));
	result = skim_under(limits, bytes, len, 1);
	free(bytes);
	return result;
}

TEST(container_counts_as_item)
{
	struct spoke_value_limits objects = defaults;
	struct spoke_value_limits more = defaults;

	assert_int_equal(skim_nils(SPOKE_VALUE_ITEMS_MAX - 1, &defaults), 0);
	assert_int_equal(skim_nils(SPOKE_VALUE_ITEMS_MAX, &defaults), SPOKE_ETOOLARGE);
	assert_int_equal(skim_nils(SPOKE_VALUE_BYTES_MAX - 5, &defaults), SPOKE_ETOOLARGE);
	objects.object_bytes_max = (size_t)100 * SPOKE_VALUE_OBJECT_BYTES;
	assert_int_equal(skim_nils(99, &objects), 0);
	assert_int_equal(skim_nils(100, &objects), SPOKE_ETOOLARGE);
	more.items_max = UINT32_MAX;
	more.object_bytes_max = (size_t)174762 * SPOKE_VALUE_OBJECT_BYTES;
	assert_int_equal(skim_nils(174761, &more), 0);
	assert_int_equal(skim_nils(174762, &more), SPOKE_ETOOLARGE);
}

TEST(body_must_have_expected_value_count)
{
	static const char three[] = "\x04\xa1x\x81\xa1k\xc0";
	size_t len = sizeof(three) - 1;
	struct spokei_skim skim;

	assert_int_equal(skim_under(&defaults, three, len, 3), 0);
	assert_int_equal(skim_under(&defaults, three, len, 2), SPOKE_ETRAILING);
	assert_int_equal(skim_under(&defaults, three, len, 4), SPOKE_ETRUNCATED);
	assert_int_equal(skim_under(&defaults, three, len - 1, SPOKEI_SKIM_ALL), SPOKE_ETRUNCATED);
	assert_int_equal(skim_under(&defaults, "", 0, SPOKEI_SKIM_ALL), 0);
	assert_int_equal(skim_under(&defaults, "", 0, 0), 0);
	assert_int_equal(skim_under(&defaults, "x", 1, 0), SPOKE_ETRAILING);
	spokei_skim_start_body(&skim, &defaults, len, SPOKEI_SKIM_ALL);
	assert_int_equal(spokei_skim_feed(&skim, three, len), 0);
	assert_int_equal(skim.count, 3);
	assert_int_equal(skim.seen, len);
}

TEST(endless_value_is_rejected_at_maximum)
{
	struct spoke_value_limits limits = defaults;
	struct spokei_skim skim;

	limits.bytes_max = 10;
	spokei_skim_start_stream(&skim, &limits);
	assert_int_equal(spokei_skim_feed(&skim, "\x93\xa4zzzz", 6), SPOKEI_SKIM_MORE);
	assert_int_equal(spokei_skim_feed(&skim, "\xa3", 1), SPOKEI_SKIM_MORE);
	assert_int_equal(spokei_skim_feed(&skim, "zzz\x01", 4), SPOKE_ETOOLARGE);
	assert_int_equal(spokei_skim_feed(&skim, "\x01", 1), SPOKE_ETOOLARGE);
}

/* The shortcut to the end of a scalar agrees with the full check, also for truncated input. */
TEST(skim_hop_and_cursor_agree_on_scalar_length)
{
	static const unsigned char lens[] = { 0, 1, 32, 254, 255 };
	unsigned char bytes[260] = { 0 };

	for (unsigned first = 0; first < 256; first++) {
		for (size_t i = 0; i < COUNT_OF(lens); i++) {
			bytes[0] = (unsigned char)first;
			bytes[1] = lens[i];
			for (size_t len = 1; len <= sizeof(bytes); len++)
				assert_int_equal(spokei_shape_hop(bytes, bytes + len),
						 spokei_shape_hop_any(bytes, bytes + len));
		}
	}
}
