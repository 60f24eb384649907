/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of Hessian 2 and a model of each: names of types, classes and containers, which later
 * values name by number. The writer remembers the last ones, the reader all of them.
 */
#include "tests/support/test.h"
#include "tests/transport/codec/roundbed.h"

#include "tests/core/memory.h"
#include "tests/transport/dice.h"
#include "transport/codec/hessian2/writer.h"

#include <stdio.h>

#define KEYS 400u
#define STEPS 6000u

static uint64_t dice;

static unsigned roll(size_t sides)
{
	return (unsigned)dice_below(&dice, sides);
}

/* --- the tables of the writer */

static struct spokei_hessian_writer writer;
static struct spokei_buffer out;
static struct memory memory;

/* The key that each number has. */
static unsigned history[STEPS];
static uint32_t numbers;

static int tables_begin(void **state)
{
	/* The length decides how many bytes may be compared. */
	static const struct spokei_codec_body body = { .values = { "", 1u << 20 } };

	(void)state;
	memory_init(&memory);
	spokei_buffer_init(&out, &memory.env, 16u << 20);
	spokei_hessian_writer_start(&writer, &body, &out);
	dice = 1;
	numbers = 0;
	return 0;
}

static int tables_end(void **state)
{
	(void)state;
	spokei_buffer_fini(&out);
	return 0;
}

FIXTURE(tables_begin, tables_end);

/* Returns the number under which a key is remembered, else that of the next one. */
static uint32_t expected_number(unsigned key, uint32_t room)
{
	for (uint32_t i = numbers; i > 0 && numbers - i < room; i--)
		if (history[i - 1] == key)
			return i - 1;
	return numbers;
}

/* Writes a name, of which several have the same length, and looks it up. */
static bool find_key(struct spokei_hessian_table *table, unsigned key, uint32_t *ret_number)
{
	size_t since = spokei_hessian_put_len(&writer.put);
	char text[16];
	bool known;

	(void)snprintf(text, sizeof(text), "a.B%u", key);
	spokei_hessian_put_string(&writer.put, text, strlen(text));
	known = spokei_hessian_know(&writer, table, since, ret_number);
	assert_int_equal(spokei_hessian_put_len(&writer.put),
			 since + (known ? 0 : 1 + strlen(text)));
	return known;
}

/* Looks up keys, some of which were used a moment ago, and some at the edge of the table. */
TEST(name_is_found_under_its_number_or_not_at_all)
{
	const uint32_t room = SPOKEI_HESSIAN_KNOWN;
	unsigned found = 0;

	for (unsigned i = 0; i < STEPS; i++) {
		unsigned key = roll(KEYS);
		uint32_t expected;
		uint32_t number;

		if (numbers > room + 2 && roll(3) > 0)
			key = history[numbers - room + roll(5) - 2];
		expected = expected_number(key, room);
		assert_int_equal(find_key(&writer.classes, key, &number), expected < numbers);
		assert_int_equal(number, expected);
		found += expected < numbers;
		if (number == numbers)
			history[numbers++] = key;
	}
	assert_int_equal(spokei_hessian_put_finish(&writer.put), 0);
	assert_in_range(found, STEPS / 10, STEPS * 9 / 10);
	assert_in_range(numbers, 10 * room, STEPS);
}

TEST(name_is_written_anew_after_too_many_comparisons)
{
	uint32_t number;

	assert_false(find_key(&writer.types, 1, &number));
	assert_true(find_key(&writer.types, 1, &number));
	writer.compares = 4;
	assert_false(find_key(&writer.types, 1, &number));
	assert_int_equal(number, 1);
	assert_int_equal(spokei_hessian_put_finish(&writer.put), 0);
}

TEST(container_is_target_if_remembered_and_equal)
{
	static const unsigned char values[] = "\x90\x91\x05\x91\x06\x81\x05\x06\x92\x05\x05";
	static const struct spoke_span spans[] = {
		{ values, 1 },     { values + 1, 2 }, { values + 3, 2 },
		{ values + 5, 3 }, { values + 8, 3 },
	};
	const struct spokei_codec_body body = { .values = { values, sizeof(values) - 1 } };
	unsigned yes = 0;

	writer.body = &body;
	for (numbers = 0; numbers < STEPS;) {
		unsigned key = roll(LENGTH(spans));
		uint32_t distance = roll(2) ? roll(numbers + 3)
					    : SPOKEI_HESSIAN_RECENT + roll(5) - 2;
		bool expected = distance > 0 && distance <= numbers &&
				distance <= SPOKEI_HESSIAN_RECENT &&
				history[numbers - distance] == key;

		assert_int_equal(spokei_hessian_is_target(&writer, distance, spans[key]), expected);
		yes += expected;
		history[numbers] = key;
		assert_int_equal(spokei_hessian_begin(&writer, spans[key].data), numbers++);
	}
	assert_in_range(yes, STEPS / 50, STEPS);
}

/* --- the tables of the reader */

#define ELEMENTS 2000u

/* A list that Java's writer may write, and the values that it is read as. */
struct text {
	unsigned char body[ELEMENTS * 64];
	unsigned char values[ELEMENTS * 64];
	unsigned char *at;
	unsigned char *to;
	/* Where each container is among the values. */
	unsigned char *start[ELEMENTS + 1];
	size_t len[ELEMENTS + 1];
	uint32_t containers;
	unsigned types; /* that were named in full; the text of each is its number */
	unsigned classes;
};

static unsigned char *put_number(unsigned char *at, unsigned tag, uint32_t number)
{
	*at++ = (unsigned char)tag;
	for (unsigned shift = 32; shift > 0; shift -= 8)
		*at++ = (unsigned char)(number >> (shift - 8));
	return at;
}

/* Appends four digits, with the head of a short text in Hessian 2 or in msgpack. */
static unsigned char *put_digits(unsigned char *at, unsigned head, unsigned number)
{
	char text[8];

	*at = (unsigned char)(head | 4);
	(void)snprintf(text, sizeof(text), "%04u", number);
	memcpy(at + 1, text, 4);
	return at + 5;
}

static void begin_container(struct text *text)
{
	text->start[text->containers] = text->to;
}

static void end_container(struct text *text)
{
	text->len[text->containers] = (size_t)(text->to - text->start[text->containers]);
	text->containers++;
}

/* Appends a list of one number, its own, with a type that is named or numbered. */
static void add_list(struct text *text)
{
	unsigned type = text->types > 0 && roll(2) ? roll(text->types) : text->types;

	begin_container(text);
	*text->at++ = 0x71;
	if (type == text->types)
		text->at = put_digits(text->at, 0, text->types++);
	else
		text->at = put_number(text->at, 'I', type);
	text->at = put_number(text->at, 'I', 70000 + text->containers);
	text->to = put_number(text->to, 0xc9, 11);
	*text->to++ = SPOKE_EXT_TYPED;
	text->to = put_digits(text->to, 0xa0, type);
	*text->to++ = 0x91;
	text->to = put_number(text->to, 0xce, 70000 + text->containers);
	end_container(text);
}

/* Appends an object of one field, of a class that is defined here or was before. */
static void add_object(struct text *text)
{
	unsigned class = text->classes > 0 && roll(2) ? roll(text->classes) : text->classes;

	begin_container(text);
	if (class == text->classes) {
		*text->at++ = 'C';
		text->at = put_digits(text->at, 0, text->classes++);
		*text->at++ = 0x91;
		text->at = put_digits(text->at, 0, class + 1);
	}
	text->at = put_number(text->at, 'O', 0) - 4;
	text->at = put_number(text->at, 'I', class);
	text->at = put_number(text->at, 'I', 70000 + text->containers);
	memcpy(text->to, "\xde\x00\x02", 3);
	text->to = put_digits(text->to + 3, 0xa0, class + 1);
	text->to = put_number(text->to, 0xce, 70000 + text->containers);
	memcpy(text->to, "\xa5\143lass", 6);
	text->to = put_digits(text->to + 6, 0xa0, class);
	end_container(text);
}

/* Appends a reference to any container that has ended. */
static void add_reference(struct text *text)
{
	uint32_t number = 1 + roll(text->containers - 1);
	uint32_t distance = text->containers - number;
	unsigned char payload[64];
	struct spoke_builder builder;
	struct spoke_span span;
	size_t len;

	*text->at++ = 'Q';
	text->at = put_number(text->at, 'I', number);
	spoke_builder_init_fixed(&builder, payload, sizeof(payload), NULL);
	spoke_pack_u64(&builder, distance);
	assert_int_equal(spoke_builder_finish(&builder, &span), 0);
	len = span.len + text->len[number];
	memcpy(payload + span.len, text->start[number], text->len[number]);
	spoke_builder_init_fixed(&builder, text->to, 80, NULL);
	spoke_pack_ext(&builder, SPOKE_EXT_REF, payload, len);
	assert_int_equal(spoke_builder_finish(&builder, &span), 0);
	text->to += span.len;
}

TEST(number_of_reader_names_what_had_it, .set_up = roundbed_set_up, .tear_down = roundbed_tear_down)
{
	static struct text text;
	struct spoke_span read;

	dice = 1;
	text.at = put_number(text.body, 0x91, 0) - 4;
	text.to = put_number(text.values, 0x01, 0) - 4;
	text.at = put_number(text.at, 'X', 0) - 4; /* a list of ELEMENTS, the first container */
	text.at = put_number(text.at, 'I', ELEMENTS);
	begin_container(&text);
	text.to = put_number(text.to, 0xdc, ELEMENTS << 16) - 2;
	end_container(&text);
	add_list(&text);
	for (unsigned i = 1; i < ELEMENTS; i++) {
		unsigned kind = roll(3);

		if (kind == 0)
			add_list(&text);
		else if (kind == 1)
			add_object(&text);
		else
			add_reference(&text);
	}
	assert_int_equal(body_read(&spokei_codec_hessian2, NULL, SPOKEI_CODEC_REPLY,
				   spokei_span(text.body, (size_t)(text.at - text.body)),
				   &roundbed.scratch, &read),
			 0);
	is_bytes(read, text.values, (size_t)(text.to - text.values));
}
