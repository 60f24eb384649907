/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of codec 2 that cost most for their bytes, as `sh tests/bench/run.sh hostile` finds
 * them. They may make few bytes and few values of each byte, and the places that the reader tells
 * spare a walk over them.
 */
#include "tests/support/test.h"
#include "tests/transport/codec/hostile.h"

#include "core/value/validator.h"
#include "tests/core/memory.h"
#include "tests/transport/codec/bodies.h"
#include "transport/codec/codec.h"

#define SPARE 8192u
#define NAMES                                                                                      \
	"\x05"                                                                                     \
	"2.0.2\x09"                                                                                \
	"demo.EchoN\x04takeN"

/* A piece that is repeated between a head and a tail. */
struct piece {
	const char *head;
	size_t head_len;
	const char *bytes;
	size_t len;
};

#define PIECE(head, bytes)                                                                         \
	{                                                                                          \
		NAMES head, sizeof(NAMES head) - 1, bytes, sizeof(bytes) - 1                       \
	}

static const struct piece pieces[] = {
	PIECE("\x57", "\x91"),
	PIECE("\x57", "\x78"),
	PIECE("\x57", "HZ"),
	PIECE("\x57\x70\x01x", "\x70\x90"),
	PIECE("\x57M\x01xZ", "M\x90Z"),
	PIECE("\x57"
	      "C\x01x\x90",
	      "`"),
	PIECE("\x57"
	      "C\x01x\x91\x01y",
	      "`N"),
	PIECE("\x57"
	      "C\x01x\x91\x1fyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
	      "`N"),
	PIECE("\x57"
	      "C\x01x\x99\x01y\x01y\x01y\x01y\x01y\x01y\x01y\x01y\x01y",
	      "`NNNNNNNNN"),
	PIECE("\x57\x7fNNNNNNN", "Q\x91"),
	PIECE("\x57\x78", "C\x01x\x90`"),
};

/* Makes the body of a request that repeats a piece. */
static void make(const struct piece *piece, size_t times)
{
	hostile_body.len = 0;
	hostile_put(piece->head, piece->head_len, 1);
	hostile_put(piece->bytes, piece->len, times);
	PUT("ZHZ", 1);
}

/* Returns the number of values, inside others too. */
static uint32_t count_values(struct spoke_span values)
{
	const unsigned char *at = values.data;
	size_t left = values.len;
	uint32_t items = UINT32_MAX;

	while (left > 0) {
		size_t len;

		assert_int_equal(spokei_validator_first(at, left, SPOKE_VALUE_DEPTH_MAX, &items,
							&len),
				 0);
		at += len;
		left -= len;
	}
	return UINT32_MAX - items;
}

/* Checks that the places are those that a walk finds. */
static void check_places(const struct spokei_codec_values *made)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(made->values);
	const unsigned char *begin = made->values.data;
	struct spoke_value value = { NULL, 0 };
	size_t count = 0;

	for (; spoke_cursor_next(&cursor, &value); count++)
		if (count <= SPOKEI_CODEC_TEXTS)
			assert_int_equal(made->first[count], value.data - begin);
	assert_int_equal(made->count, count);
	assert_int_equal(made->last, value.data - begin);
}

static int read_request(struct spoke_span body, struct spokei_buffer *scratch,
			struct spokei_codec_values *made)
{
	return spokei_codec_hessian2.to_values(NULL, SPOKEI_CODEC_REQUEST, body, scratch, made);
}

TEST(bytes_and_values_of_a_request_follow_its_length)
{
	static const size_t lengths[] = { 300, 3000, 30000 };

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		for (size_t j = 0; j < sizeof(lengths) / sizeof(lengths[0]); j++) {
			struct spokei_codec_values made = { 0 };
			struct spokei_buffer scratch;
			struct memory memory;
			size_t earned;
			int error;

			make(&pieces[i], lengths[j] / pieces[i].len);
			earned = SPARE + SPOKEI_CODEC_GROWTH * hostile_body.len;
			memory_init(&memory);
			spokei_buffer_init(&scratch, &memory.env, earned);
			error = read_request(spokei_span(hostile_body.bytes, hostile_body.len),
					     &scratch, &made);
			assert_true(error == 0 || error == SPOKE_ETOOLARGE);
			assert_true(memory.bytes <= 2 * earned);
			if (error == 0) {
				check_places(&made);
				assert_true(made.values.len <= earned);
				assert_true(scratch.max <= earned - made.values.len);
				/* Those of its own, and those that references copy. */
				assert_true(count_values(made.values) <=
					    3 * hostile_body.len + earned / SPOKEI_CODEC_VALUE);
			}
			spokei_buffer_fini(&scratch);
		}
	}
}

/* The last value of a request loses its type, and may be one of the first six or none of them. */
TEST(places_are_those_of_a_walk)
{
	static const struct spoke_span bodies[] = {
		{ "N", 1 },
		{ "M\x01xZ", 4 },
		{ NAMES "HZ", sizeof(NAMES "HZ") - 1 },
		{ NAMES "\x79\x91M\x01xZ", sizeof(NAMES "\x79\x91M\x01xZ") - 1 },
		{ NAMES "NTF\x91M\x01xNNZ", sizeof(NAMES "NTF\x91M\x01xNNZ") - 1 },
		{ NAMES "HZNQ\x90", sizeof(NAMES "HZNQ\x90") - 1 },
	};

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct spokei_codec_values made = { 0 };
		struct spokei_buffer scratch;
		struct memory memory;

		memory_init(&memory);
		spokei_buffer_init(&scratch, &memory.env, SCRATCH_MAX);
		assert_int_equal(read_request(bodies[i], &scratch, &made), 0);
		check_places(&made);
		spokei_buffer_fini(&scratch);
	}
}
