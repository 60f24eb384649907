/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing what was read: the values of Java become the bytes of Java again, and values of any shape
 * are read back as they were.
 */
#include "tests/support/test.h"
#include "tests/transport/codec/bodies.h"
#include "tests/transport/codec/roundbed.h"

#include "tests/transport/codec/goldenvalues.h"
#include "tests/transport/dice.h"

#include <string.h>

#define ROUNDS 20000u

/* --- the values of Java */

/* Returns whether Java cut the value, a binary, where its buffer of 4,096 bytes ended. */
static bool is_chunked(const struct golden_value *row)
{
	const unsigned char *marker_and_value = row->body.data;

	return strncmp(row->name, "binary.", 7) == 0 && marker_and_value[1] == 'A';
}

static void check_row(const struct golden_value *row, void *arg)
{
	unsigned *chunked = arg;
	struct spoke_span body = roundbed_written(row->part, row->values);

	if (is_chunked(row)) {
		++*chunked;
	} else {
		if (body.len != row->body.len || memcmp(body.data, row->body.data, body.len) != 0)
			print_error("row %s\n", row->name);
		is_bytes(body, row->body.data, row->body.len);
	}
	roundbed_read_is(row->part, row->values);
}

FIXTURE(roundbed_set_up, roundbed_tear_down);

TEST(golden_values_are_written_as_java_writes_them)
{
	unsigned chunked = 0;

	assert_int_equal(golden_values_each(check_row, &chunked), GOLDEN_VALUES);
	assert_int_equal(chunked, 7);
}

/* --- objects */

/* Writes a reply whose value is an object of the class P with these fields, all null. */
static size_t put_object(unsigned fields, unsigned char *body)
{
	unsigned char *at = body;

	memcpy(at, "\x91\x43\x01P", 4);
	at += 4;
	*at++ = (unsigned char)(0x90 + fields);
	for (unsigned i = 0; i < fields; i++) {
		*at++ = 1;
		*at++ = (unsigned char)('0' + i);
	}
	*at++ = 0x60;
	memset(at, 'N', fields);
	return (size_t)(at - body) + fields;
}

TEST(object_of_class_without_dot_stays_object)
{
	static const unsigned counts[] = { 0, 1, 13, 14, 15, 16, 40 };
	unsigned char body[200];

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct spoke_span bytes = { body, put_object(counts[i], body) };
		struct spoke_span read;
		struct spoke_span again;
		struct spoke_value class;

		assert_int_equal(body_read(&spokei_codec_hessian2, NULL, SPOKEI_CODEC_REPLY, bytes,
					   &roundbed.scratch, &read),
				 0);
		assert_int_equal(
			spoke_value_get((struct spoke_value){ (const unsigned char *)read.data + 1,
							      read.len - 1 },
					"class", &class),
			0);
		again = roundbed_written(SPOKEI_CODEC_REPLY, read);
		is_bytes(again, bytes.data, bytes.len);
		again = roundbed_written_generic(read);
		assert_int_equal(((const unsigned char *)again.data)[1], 'H');
	}
}

/* --- maps */

/* The wide head tells the writer that the map is no object, whatever its last key is. */
TEST(echoed_map_has_same_pairs_behind_wider_head)
{
	struct spoke_value sent;
	struct spoke_value read;
	struct spoke_span values;
	unsigned char bytes[64] = "\x01\x8a"; /* the marker of a reply, and the map */

	for (unsigned char i = 0; i < 20; i++)
		bytes[2 + i] = i;
	sent = (struct spoke_value){ bytes + 1, 21 };
	(void)roundbed_written(SPOKEI_CODEC_REPLY, spokei_span(bytes, 22));
	values = roundbed_read(SPOKEI_CODEC_REPLY);
	read = (struct spoke_value){ (const unsigned char *)values.data + 1, values.len - 1 };
	assert_false(spoke_value_equal(sent, read));
	assert_memory_equal(read.data, "\xdf\0\0\0\x0a", 5);
	is_bytes(spokei_span(read.data + 5, read.len - 5), sent.data + 1, sent.len - 1);
}

/* --- values of any shape, in the form that the reader makes */

#define CONTAINERS_MAX 300u
#define VALUES_MAX 65536u

struct made {
	unsigned char bytes[VALUES_MAX];
	size_t len;
	uint32_t count; /* containers that were begun */
	unsigned references;
	struct {
		size_t start;
		size_t end; /* 0: still open */
	} container[CONTAINERS_MAX];
	uint64_t dice;
};

static unsigned roll(struct made *made, unsigned sides)
{
	return (unsigned)(dice_throw(&made->dice) % sides);
}

static void add(struct made *made, const void *bytes, size_t len)
{
	assert_true(len <= VALUES_MAX - made->len);
	memcpy(made->bytes + made->len, bytes, len);
	made->len += len;
}

/* Appends one value that a builder packs. */
#define ADD(made, pack)                                                                            \
	do {                                                                                       \
		struct spoke_builder builder;                                                      \
		struct spoke_span packed;                                                          \
                                                                                                   \
		spoke_builder_init_fixed(&builder, (made)->bytes + (made)->len,                    \
					 VALUES_MAX - (made)->len, NULL);                          \
		pack;                                                                              \
		assert_int_equal(spoke_builder_finish(&builder, &packed), 0);                      \
		(made)->len += packed.len;                                                         \
	} while (0)

static void add_bits(struct made *made, unsigned tag, uint64_t bits)
{
	unsigned char bytes[9] = { (unsigned char)tag };

	for (unsigned i = 0; i < 8; i++)
		bytes[1 + i] = (unsigned char)(bits >> 8 * (7 - i));
	add(made, bytes, sizeof(bytes));
}

static void add_str(struct made *made)
{
	static const char *const pieces[] = {
		"a", "Zz9", "\xc3\xa9", "\xe4\xb8\x96", "\xf0\x9f\x98\x80", "name", "\xed\xa0\xbd"
	};
	char text[200];
	size_t len = 0;

	for (unsigned i = roll(made, 12); i > 0; i--) {
		const char *piece = pieces[roll(made, i > 1 ? LENGTH(pieces) - 1 : LENGTH(pieces))];

		memcpy(text + len, piece, strlen(piece));
		len += strlen(piece);
	}
	ADD(made, spoke_pack_str(&builder, text, len));
}

/* Makes an ext of the bytes from `start` on. Containers inside move with their bytes. The reader
 * gives each TYPED a length of four bytes. */
static void wrap(struct made *made, size_t start, int type)
{
	size_t len = made->len - start;
	const unsigned char typed[] = { 0xc9,
					0,
					(unsigned char)(len >> 16),
					(unsigned char)(len >> 8),
					(unsigned char)len,
					SPOKE_EXT_TYPED };
	unsigned char copy[VALUES_MAX];
	size_t head;

	memcpy(copy, made->bytes + start, len);
	made->len = start;
	if (type == SPOKE_EXT_TYPED) {
		add(made, typed, sizeof(typed));
		add(made, copy, len);
	} else {
		ADD(made, spoke_pack_ext(&builder, (int8_t)type, copy, len));
	}
	head = made->len - start - len;
	for (uint32_t i = 0; i < made->count; i++)
		if (made->container[i].start > start) {
			made->container[i].start += head;
			made->container[i].end += made->container[i].end > 0 ? head : 0;
		}
}

static void add_ref(struct made *made)
{
	uint32_t target = roll(made, made->count);
	size_t start = made->len;
	size_t from = made->container[target].start;
	size_t len = made->container[target].end - from;
	unsigned char copy[VALUES_MAX];

	ADD(made, spoke_pack_u64(&builder, made->count - target));
	if (made->container[target].end == 0) {
		ADD(made, spoke_pack_nil(&builder));
	} else {
		memcpy(copy, made->bytes + from, len);
		add(made, copy, len);
	}
	wrap(made, start, SPOKE_EXT_REF);
	made->references++;
}

static void add_scalar(struct made *made)
{
	static const unsigned char content[40] = "\xff\x00 the bytes of a binary";
	static const double doubles[] = { 0, 1, -1, 0.5, 3.14, -128, 300, 40000, 1e100, 99.99 };
	uint64_t number = dice_throw(&made->dice) >> roll(made, 64);
	double wide = doubles[roll(made, LENGTH(doubles))];
	uint64_t bits;

	switch (roll(made, 7)) {
	case 0:
		ADD(made, spoke_pack_i64(&builder, (int32_t)(uint32_t)number));
		break;
	case 1:
		add_bits(made, 0xd3, roll(made, 2) ? number : 0 - number);
		break;
	case 2:
		memcpy(&bits, &wide, sizeof(bits));
		add_bits(made, 0xcb, roll(made, 2) ? bits : number);
		break;
	case 3:
		ADD(made, spoke_pack_bool(&builder, roll(made, 2)));
		break;
	case 4: /* at most 32 bits of seconds */
		add(made, "\xd6\xff", 2);
		for (unsigned i = 0; i < 4; i++)
			add(made, (unsigned char[]){ (unsigned char)(number >> 8 * i) }, 1);
		break;
	case 5:
		ADD(made, spoke_pack_bin(&builder, content, roll(made, sizeof(content))));
		break;
	default:
		add_str(made);
	}
}

static void add_value(struct made *made, unsigned depth);

/* Appends the head of a map with this width of its count, and its pairs. */
static void add_pairs(struct made *made, unsigned tag, unsigned depth)
{
	unsigned count = roll(made, 4);
	bool object = tag == 0xde;
	unsigned all = count + object;
	const unsigned char head[] = { (unsigned char)tag, 0, 0, 0, (unsigned char)all };

	if (object)
		add(made, (unsigned char[]){ 0xde, 0, (unsigned char)all }, 3);
	else
		add(made, head, sizeof(head));
	for (unsigned i = 0; i < count; i++) {
		if (object)
			ADD(made, spoke_pack_str(&builder, &"field"[roll(made, 3)], 2));
		else
			add_value(made, 0);
		add_value(made, depth);
	}
	if (object) {
		ADD(made, spoke_pack_text(&builder, "class"));
		ADD(made, spoke_pack_text(&builder, roll(made, 2) ? "it.Point" : "E"));
	}
}

static void add_container(struct made *made, unsigned depth)
{
	static const char *const types[] = { "[int", "java.util.TreeMap", "t" };
	uint32_t number = made->count++;
	size_t start = made->len;
	unsigned kind = roll(made, 5);

	made->container[number].start = start;
	made->container[number].end = 0;
	if (kind >= 3)
		ADD(made, spoke_pack_text(&builder, types[roll(made, LENGTH(types))]));
	if (kind == 0 || kind == 3) {
		unsigned count = roll(made, 10);

		add(made, (unsigned char[]){ (unsigned char)(0x90 | count) }, 1);
		for (; count > 0; count--)
			add_value(made, depth);
	} else {
		add_pairs(made, kind == 1 ? 0xde : 0xdf, depth);
	}
	if (kind >= 3)
		wrap(made, start, SPOKE_EXT_TYPED);
	made->container[number].end = made->len;
}

/* Appends a value with at most `depth` containers inside each other. References are copies, so they
 * come only while the values are few. */
static void add_value(struct made *made, unsigned depth)
{
	unsigned kind = roll(made, 10);

	if (kind < 4 && depth > 0 && made->count < CONTAINERS_MAX)
		add_container(made, depth - 1);
	else if (kind == 4 && made->count > 0 && made->len < 4000)
		add_ref(made);
	else if (kind == 5)
		add(made, "\xc0", 1);
	else
		add_scalar(made);
}

TEST(values_of_any_shape_are_read_back)
{
	static struct made made;

	made.dice = 1;
	for (unsigned i = 0; i < ROUNDS; i++) {
		made.len = 0;
		made.count = 0;
		add(&made, "\x01", 1);
		add_value(&made, 1 + i % 6);
		roundbed_is_same(SPOKEI_CODEC_REPLY, spokei_span(made.bytes, made.len));
	}
	assert_true(made.references > ROUNDS / 10);
}
