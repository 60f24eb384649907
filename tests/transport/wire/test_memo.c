/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of requests that are read with a memo. The result must equal that without a memo, and a
 * repeat must have the same names as the previous request.
 */
#include "tests/core/memory.h"
#include "tests/support/test.h"
#include "tests/transport/dubbo_frames.h"
#include "tests/transport/recall.h"
#include "tests/transport/stream.h"
#include "tests/transport/wires.h"
#include "timer/base.h"
#include "transport/wire/mprpc.h"

#include <stdio.h>
#include <string.h>

enum {
	FRAMES_MAX = 400,
	PILE_SIZE = 1 << 18,
	LINE_SIZE = 8192,
	SHUFFLED = 20000,
};

/* Concatenated frames. */
struct pile {
	unsigned char bytes[PILE_SIZE];
	size_t at[FRAMES_MAX + 1];
	size_t count;
};

static void pile_clear(struct pile *pile)
{
	pile->at[0] = 0;
	pile->count = 0;
}

static void pile_add(struct pile *pile, struct spoke_span frame)
{
	size_t at = pile->at[pile->count];

	SPOKE_ASSERT(frame.data && pile->count < FRAMES_MAX && frame.len <= PILE_SIZE - at);
	memcpy(pile->bytes + at, frame.data, frame.len);
	pile->at[++pile->count] = at + frame.len;
}

static struct spoke_span pile_frame(const struct pile *pile, size_t which)
{
	return spokei_span(pile->bytes + pile->at[which], pile->at[which + 1] - pile->at[which]);
}

/* Loads the last column of each line that begins with a frame of this wire. */
static void pile_golden(struct pile *pile, const struct spokei_wire *wire, const char *path)
{
	char line[LINE_SIZE];
	unsigned char bytes[LINE_SIZE / 2];
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	while (fgets(line, sizeof(line), file)) {
		const char *hex = strrchr(line, '\t') + 1;
		struct spokei_cut cut = { 0 };
		struct spoke_span frame = { bytes, 0 };
		size_t len;

		line[strcspn(line, "\n")] = '\0';
		if (strcmp(hex, "EOF") == 0)
			continue;
		frame.len = hex_bytes(hex, bytes, sizeof(bytes));
		if (wire_cut(wire, &stream_limits, &cut, frame, &len) == 0 && len == frame.len)
			pile_add(pile, frame);
	}
	assert_int_equal(fclose(file), 0);
}

static void pile_message(struct pile *pile, const struct spokei_wire *wire,
			 const struct spokei_message *message)
{
	struct memory memory;
	struct spokei_buffer out;

	memory_init(&memory);
	spokei_buffer_init(&out, &memory.env, 65536);
	assert_int_equal(wire->write(&stream_limits, message, &out), 0);
	pile_add(pile, spokei_span(spokei_buffer_data(&out), spokei_buffer_len(&out)));
	spokei_buffer_fini(&out);
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void read_frame_with(struct recall *recall, struct spoke_span frame)
{
	const char *difference = recall_read(recall, frame);

	if (difference)
		fail_msg("%s", difference);
}

/* Reads many frames of a pile in random order, with a fair chance of reading one twice in a row.
 * Returns the number of repeats. */
static size_t read_shuffled(const struct pile *pile, const struct spokei_wire *wire, uint32_t seed)
{
	struct recall recall;
	size_t repeats = 0;
	size_t which = 0;

	recall_init(&recall, wire, &stream_limits);
	for (int i = 0; i < SHUFFLED; i++) {
		if (next_random(&seed) % 2)
			which = next_random(&seed) % pile->count;
		read_frame_with(&recall, pile_frame(pile, which));
		repeats += recall.repeat;
	}
	recall_fini(&recall);
	return repeats;
}

TEST(memo_reads_golden_frames_in_any_order_alike)
{
	static struct pile pile;

	pile_golden(&pile, &spokei_wire_dubbo, SPOKE_GOLDEN "/dubbo-frames.tsv");
	assert_true(pile.count > 131);
	assert_true(read_shuffled(&pile, &spokei_wire_dubbo, 1) > SHUFFLED / 20);
	pile_clear(&pile);
	pile_golden(&pile, &spokei_wire_mprpc, SPOKE_GOLDEN "/msgpack-rpc.tsv");
	assert_true(pile.count > 10);
	assert_true(read_shuffled(&pile, &spokei_wire_mprpc, 2) > SHUFFLED / 20);
	pile_clear(&pile);
}

/* Makes every combination of a few names, on one of the wires. */
static void pile_calls(struct pile *pile, const struct spokei_wire *wire)
{
	static const char *const services[] = { "demo.Echo", "demo.Echp", "demo", "" };
	static const char *const methods[] = { "echo", "echp", "e" };
	static const char *const maps[] = { "",
					    "\x81\xa4path\xa9other.One",
					    "\x82\xa4path\xa9other.Two\xa5group\xa1g",
					    "\x81\xa7version\xa5"
					    "0.0.0",
					    "\x81\xa7version\xa3"
					    "2.0",
					    "\x81\xa4path\xa0" };

	for (unsigned i = 0; i < 4 * 3 * 6; i++) {
		const char *map = maps[i / 12];
		struct spokei_message message = {
			.kind = SPOKEI_REQUEST,
			.id = i,
			.two_way = i % 2 == 0,
			.codec = 27,
			.service = span_of(services[i % 4]),
			.method = span_of(methods[i / 4 % 3]),
			.args = { "\x01\xa1x", 3 },
			.arg_count = 2,
			.types = span_of(i % 5 == 0   ? "J"
					 : i % 5 == 1 ? "K"
						      : ""),
			.version = span_of(i % 3 == 0   ? "1.0"
					   : i % 3 == 1 ? "1.1"
							: ""),
			.timeout_ms = i % 7,
			.attachments = { (const unsigned char *)map, strlen(map) },
		};

		pile_message(pile, wire, &message);
	}
}

TEST(memo_reads_mixed_calls_alike)
{
	static const struct spokei_wire *const wires[] = { &spokei_wire_dubbo, &spokei_wire_mprpc };

	for (size_t w = 0; w < LENGTH(wires); w++) {
		static struct pile pile;

		pile_calls(&pile, wires[w]);
		assert_true(read_shuffled(&pile, wires[w], 3) > SHUFFLED / 4);
		pile_clear(&pile);
	}
}

/* Reads the first call of a pile, then the same call changed in one byte, for each byte. */
static void read_changed(const struct pile *pile, const struct spokei_wire *wire)
{
	static const unsigned char flips[] = { 0x01, 0x80, 0xff };
	struct recall recall;
	size_t read = 0;

	recall_init(&recall, wire, &stream_limits);
	for (size_t at = 0; at < pile->at[1] * LENGTH(flips); at++) {
		struct spokei_cut cut = { 0 };
		unsigned char changed[256];
		size_t len = pile->at[1];

		memcpy(changed, pile->bytes, len);
		changed[at / LENGTH(flips)] ^= flips[at % LENGTH(flips)];
		read_frame_with(&recall, pile_frame(pile, 0));
		if (wire_cut(wire, &stream_limits, &cut, spokei_span(changed, len), &len) != 0)
			continue;
		read_frame_with(&recall, spokei_span(changed, len));
		read++;
	}
	assert_true(read > pile->at[1]);
	recall_fini(&recall);
}

TEST(memo_reads_request_changed_in_any_byte_alike)
{
	static const struct spokei_wire *const wires[] = { &spokei_wire_dubbo, &spokei_wire_mprpc };

	for (size_t w = 0; w < LENGTH(wires); w++) {
		static struct pile pile;

		pile_calls(&pile, wires[w]);
		read_changed(&pile, wires[w]);
		pile_clear(&pile);
	}
}

#define ID_KEY "\xa8spoke.id\xd9\x20"
#define ID_1 "0123456789abcdef0123456789abcdef"
#define ID_2 "0123456789abcdef0123456789abcdeg"

/* The id stands alone, before and after others, and in the content of another one. */
static void pile_ids(struct pile *pile)
{
	static const char *const maps[] = {
		"\x81" ID_KEY ID_1,
		"\x81" ID_KEY ID_2,
		"\x82" ID_KEY ID_1 "\xa4path\xa3one",
		"\x82" ID_KEY ID_2 "\xa4path\xa3one",
		"\x82" ID_KEY ID_2 "\xa4path\xa3two",
		"\x82\xa4path\xa3one" ID_KEY ID_1,
		"\x82\xa4path\xa3two" ID_KEY ID_2,
		"\x81\xa4path\xd9\x2b" ID_KEY ID_1,
		"\x81\xa4path\xd9\x2b" ID_KEY ID_2,
		"\x82\xa1x\xd9\x2b" ID_KEY ID_1 "\xa4path\xa3one",
		"\x81\xa8spoke.id\xa4"
		"abcd",
		"\x81\xa8spoke.ie\xd9\x20" ID_1,
	};

	for (unsigned i = 0; i < LENGTH(maps); i++) {
		const struct spokei_message message = {
			.kind = SPOKEI_REQUEST,
			.id = i,
			.two_way = true,
			.codec = 27,
			.service = span_of("demo.Echo"),
			.method = span_of("echo"),
			.args = { "\x01\xa1x", 3 },
			.arg_count = 2,
			.timeout_ms = 5,
			.attachments = { (const unsigned char *)maps[i], strlen(maps[i]) },
		};

		pile_message(pile, &spokei_wire_dubbo, &message);
	}
}

TEST(memo_reads_calls_with_ids_alike)
{
	static struct pile pile;

	pile_ids(&pile);
	assert_true(read_shuffled(&pile, &spokei_wire_dubbo, 5) > SHUFFLED / 4);
	read_changed(&pile, &spokei_wire_dubbo);
	pile_clear(&pile);
}

/* Reads a Dubbo request with this body. */
static void read_request_of(struct recall *recall, const char *body, size_t len)
{
	struct frame frame;

	frame_init(&frame, 0xdb, 0, body, len);
	read_frame_with(recall, spokei_span(frame.bytes, frame.len));
}

#define REQUEST(recall, body) read_request_of(recall, body, sizeof(body) - 1)

TEST(memo_rejects_request_that_ends_in_names)
{
	static const char body[] = NAMED("\xa1J") "\x01\x80";
	struct recall recall;

	recall_init(&recall, &spokei_wire_dubbo, &frame_limits);
	for (size_t len = 0; len < sizeof(body) - 1; len++) {
		read_request_of(&recall, body, sizeof(body) - 1);
		assert_int_equal(recall.result, 0);
		assert_int_equal(recall.repeat, len > 0);
		read_request_of(&recall, body, len);
		assert_true(recall.result < 0);
	}
	recall_fini(&recall);
}

#define VERSIONED "\2452.0.2\251demo.Echo\2431.0\244echo\240"

TEST(repeat_needs_equal_names_in_attachments)
{
	struct recall recall;

	recall_init(&recall, &spokei_wire_dubbo, &frame_limits);
	REQUEST(&recall, NAMED("\xa0") "\x80");
	assert_false(recall.repeat);
	REQUEST(&recall, NAMED("\xa0") "\x81\xa7timeout\xa3"
				       "500");
	assert_true(recall.repeat);
	REQUEST(&recall, NAMED("\xa0") "\x81\xa4path\xa1p");
	assert_false(recall.repeat);
	REQUEST(&recall, NAMED("\xa0") "\x81\xa4path\xa1p");
	assert_true(recall.repeat);
	REQUEST(&recall, NAMED("\xa0") "\x81\xa4path\xa1q");
	assert_false(recall.repeat);
	REQUEST(&recall, NAMED("\xa0") "\x82\xa4path\xa1q\xa5group\xa1g");
	assert_false(recall.repeat);
	REQUEST(&recall, NAMED("\xa0") "\x83\xa5group\xa1g\xa1x\xa1y\xa4path\xa1q");
	assert_true(recall.repeat);
	REQUEST(&recall, NAMED("\xa0") "\x82\xa4path\xa1g\xa5group\xa1q");
	assert_false(recall.repeat);
	REQUEST(&recall, NAMED("\xa0") "\x81\xa7version\xa1g");
	assert_false(recall.repeat);
	/* An empty version is reported too. */
	REQUEST(&recall, VERSIONED "\x80");
	REQUEST(&recall, VERSIONED "\x81\xa7version\xa0");
	assert_false(recall.repeat);
	REQUEST(&recall, VERSIONED "\x80");
	assert_false(recall.repeat);
	REQUEST(&recall, NAMED("\xa0") "\x80");
	assert_false(recall.repeat);
	REQUEST(&recall, NAMED("\xa0") "\x80");
	assert_true(recall.repeat);
	recall_fini(&recall);
}

TEST(bad_request_leaves_memo_unchanged)
{
	struct recall recall;
	struct frame frame;

	recall_init(&recall, &spokei_wire_dubbo, &frame_limits);
	REQUEST(&recall, NAMED("\xa0") "\x81\xa5group\xa1g");
	/* Invalid arguments, attachments and names; a heartbeat; a reply. */
	REQUEST(&recall, NAMED("\xa0") "\xc1\x80");
	assert_int_equal(recall.result, SPOKE_ECORRUPT);
	REQUEST(&recall, NAMED("\xa0") "\x82\xa5group\xa1h\x01\x02");
	assert_int_equal(recall.result, SPOKE_EBADREQUEST);
	REQUEST(&recall, NAMED("\xa0") "\x81\xa5group\x01");
	assert_int_equal(recall.result, SPOKE_EBADREQUEST);
	REQUEST(&recall, NAMED("\x01") "\x80");
	assert_int_equal(recall.result, SPOKE_EBADREQUEST);
	frame_init(&frame, 0xfb, 0, "\xc0", 1);
	read_frame_with(&recall, spokei_span(frame.bytes, frame.len));
	frame_init(&frame, 0x1b, 20, "\x02", 1);
	read_frame_with(&recall, spokei_span(frame.bytes, frame.len));
	REQUEST(&recall, NAMED("\xa0") "\x81\xa5group\xa1g");
	assert_true(recall.repeat);
	recall_fini(&recall);
}

TEST(generic_call_and_next_call_are_no_repeats)
{
#define GENERIC "\2452.0.2\251demo.Echo\2450.0.0\247$invoke\240"
	struct recall recall;

	recall_init(&recall, &spokei_wire_dubbo, &frame_limits);
	REQUEST(&recall, NAMED("\xa0") "\x80");
	REQUEST(&recall, GENERIC "\xa4"
				 "echo\x90\x90\x80");
	assert_int_equal(recall.result, 0);
	REQUEST(&recall, GENERIC "\xa4"
				 "echo\x90\x90\x80");
	assert_false(recall.repeat);
	REQUEST(&recall, GENERIC "\xa4"
				 "quit\x90\x90\x80");
	assert_false(recall.repeat);
	REQUEST(&recall, NAMED("\xa0") "\x80");
	assert_false(recall.repeat);
	REQUEST(&recall, NAMED("\xa0") "\x80");
	assert_true(recall.repeat);
	/* A request that fails is no repeat. */
	REQUEST(&recall, GENERIC "\xa4"
				 "echo\x90\x91\x01\x80\x80");
	assert_true(recall.result < 0);
	REQUEST(&recall, NAMED("\xa0") "\x80");
	assert_true(recall.repeat);
	recall_fini(&recall);
}

/* Reads a request with types and a group of these lengths. */
static void read_long(struct recall *recall, size_t types_len, size_t group_len)
{
	static const char text[1024];
	static struct pile pile;
	struct spokei_message message = {
		.kind = SPOKEI_REQUEST,
		.codec = 27,
		.service = span_of("s"),
		.method = span_of("m"),
		.types = { text, types_len },
		.group = { text, group_len },
	};

	pile_message(&pile, recall->wire, &message);
	read_frame_with(recall, pile_frame(&pile, 0));
	assert_int_equal(recall->result, 0);
	pile_clear(&pile);
}

TEST(names_too_long_for_memo_are_not_kept)
{
	struct recall recall;

	recall_init(&recall, &spokei_wire_dubbo, &stream_limits);
	for (size_t len = SPOKEI_MEMO_BYTES - 40; len < SPOKEI_MEMO_BYTES + 10; len++) {
		const size_t around = 6 + 2 + 6 + 2 +
				      3; /* the other names, and the head of types */

		for (size_t group_len = 0; group_len < 40; group_len += 13) {
			read_long(&recall, len, group_len);
			assert_false(recall.repeat);
			read_long(&recall, len, group_len);
			assert_int_equal(recall.repeat,
					 around + len + group_len <= SPOKEI_MEMO_BYTES);
			read_long(&recall, len, group_len + 1);
			assert_false(recall.repeat);
			read_long(&recall, len - 1, group_len);
			assert_false(recall.repeat);
		}
	}
	recall_fini(&recall);
}

TEST(memo_applies_limits_at_same_value)
{
	struct spokei_wire_limits limits = frame_limits;
	struct frame frame;

	frame_init(&frame, 0xdb, 0, NAMED("\xa0") "\x92\x01\x91\x02\x03\x81\xa1k\x01",
		   sizeof(NAMED("\xa0") "\x92\x01\x91\x02\x03\x81\xa1k\x01") - 1);
	for (uint32_t items = 1; items <= 16; items++) {
		struct recall recall;

		recall_init(&recall, &spokei_wire_dubbo, &limits);
		limits.value.items_max = 16;
		REQUEST(&recall, NAMED("\xa0") "\x80");
		limits.value.items_max = items;
		read_frame_with(&recall, spokei_span(frame.bytes, frame.len));
		assert_int_equal(recall.result, items < 13 ? SPOKE_ETOOLARGE : 0);
		assert_int_equal(recall.repeat, items >= 13);
		recall_fini(&recall);
	}
	/* A long array, and more after it: 5 + 17 + 2 + 1 bytes. */
	frame_init(&frame, 0xdb, 0,
		   NAMED("\xa0") "\xdc\0\x10"
				 "0123456789abcdef"
				 "\x91\x01\x80",
		   sizeof(NAMED("\xa0") "\xdc\0\x10"
					"0123456789abcdef"
					"\x91\x01\x80") -
			   1);
	for (uint32_t items = 16; items <= 30; items++) {
		struct recall recall;

		limits.value.items_max = items;
		recall_init(&recall, &spokei_wire_dubbo, &limits);
		REQUEST(&recall, NAMED("\xa0") "\x80");
		read_frame_with(&recall, spokei_span(frame.bytes, frame.len));
		assert_int_equal(recall.result, items < 25 ? SPOKE_ETOOLARGE : 0);
		recall_fini(&recall);
	}
	frame_init(&frame, 0xdb, 0, NAMED("\xa0") "\x91\x91\x01\x80",
		   sizeof(NAMED("\xa0") "\x91\x91\x01\x80") - 1);
	limits.value.items_max = 0;
	for (uint32_t depth = 1; depth <= 3; depth++) {
		struct recall recall;

		limits.value.depth_max = depth;
		recall_init(&recall, &spokei_wire_dubbo, &limits);
		REQUEST(&recall, NAMED("\xa0") "\x80");
		read_frame_with(&recall, spokei_span(frame.bytes, frame.len));
		assert_int_equal(recall.result, depth < 2 ? SPOKE_EDEPTH : 0);
		recall_fini(&recall);
	}
}
