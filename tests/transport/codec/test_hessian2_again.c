/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of every size, and values of every kind for every declared type, written as Hessian 2 and
 * read back. None of them gets lost, and none changes how those behind it are written.
 */
#include "tests/support/test.h"
#include "tests/transport/codec/bodies.h"
#include "tests/transport/codec/roundbed.h"

#include <stdio.h>

#define VALUES_MAX (1u << 20)

static unsigned char memory[VALUES_MAX];

static struct spoke_builder start(void)
{
	struct spoke_builder builder;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	return builder;
}

static struct spoke_span finish(struct spoke_builder *builder)
{
	struct spoke_span values;

	assert_int_equal(spoke_builder_finish(builder, &values), 0);
	return values;
}

/* --- sizes */

/* Makes a reply with an exception of so many fields, and attachments if the marker is 3. */
static struct spoke_span exception_of(unsigned marker, unsigned fields)
{
	struct spoke_builder builder = start();
	struct spoke_span values;
	char name[16];

	spoke_pack_u64(&builder, marker);
	spoke_pack_text(&builder, "it.Biz");
	spoke_pack_map(&builder, fields);
	for (unsigned i = 0; i < fields; i++) {
		(void)snprintf(name, sizeof(name), "f%u", i);
		spoke_pack_text(&builder, name);
		spoke_pack_i64(&builder, i);
	}
	values = finish(&builder);
	if (marker < 3)
		return values;
	memcpy(memory + values.len, "\xdf\0\0\0\x01\xa1k\xa1v", 9);
	return spokei_span(memory, values.len + 9);
}

FIXTURE(roundbed_set_up, roundbed_tear_down);

TEST(exception_of_any_number_of_fields_is_read_back)
{
	static const unsigned counts[] = { 0, 1, 14, 15, 16, 17, 255, 256, 2000 };

	for (size_t i = 0; i < LENGTH(counts); i++) {
		roundbed_is_same(SPOKEI_CODEC_REPLY, exception_of(0, counts[i]));
		roundbed_is_same(SPOKEI_CODEC_REPLY, exception_of(3, counts[i]));
	}
}

/* Writes a list of a list, which has a text of this length, and a reference to that. */
static void reference_is_read_back(size_t text_len)
{
	static char text[VALUES_MAX / 4];
	static unsigned char payload[VALUES_MAX / 4];
	struct spoke_builder builder = start();
	struct spoke_span target;
	size_t len;

	memset(text, 'x', sizeof(text));
	spoke_pack_array(&builder, 1);
	spoke_pack_str(&builder, text, text_len);
	target = finish(&builder);
	len = 1 + target.len;
	payload[0] = 1; /* the distance */
	memcpy(payload + 1, target.data, target.len);
	builder = start();
	spoke_pack_u64(&builder, 1); /* the marker */
	spoke_pack_array(&builder, 2);
	spoke_pack_array(&builder, 1);
	spoke_pack_str(&builder, text, text_len);
	spoke_pack_ext(&builder, SPOKE_EXT_REF, payload, len);
	roundbed_is_same(SPOKEI_CODEC_REPLY, finish(&builder));
}

/* These are around the bounds of the heads of texts and of exts. */
TEST(reference_to_list_of_any_size_is_read_back)
{
	static const size_t around[] = { 20, 250, 65530 };

	for (size_t i = 0; i < LENGTH(around); i++)
		for (size_t len = around[i] - 20; len < around[i] + 20; len++)
			reference_is_read_back(len);
	reference_is_read_back(200000);
}

/* --- kinds */

#define MANY 200u /* more than the depth that is allowed */

static const char *const types[] = {
	"Z",
	"B",
	"C",
	"S",
	"I",
	"J",
	"F",
	"D",
	"Ljava/lang/Object;",
	"Ljava/lang/String;",
	"Ljava/lang/Integer;",
	"Ljava/lang/Long;",
	"Ljava/lang/Double;",
	"Ljava/lang/Character;",
	"Ljava/util/Date;",
	"Ljava/sql/Timestamp;",
	"Ljava/math/BigDecimal;",
	"Ljava/math/BigInteger;",
	"Ljava/util/List;",
	"Ljava/util/Set;",
	"Ljava/util/Map;",
	"Ljava/util/TreeMap;",
	"Ljava/util/UUID;",
	"Ljava/util/Locale;",
	"Ljava/time/LocalDate;",
	"Lit/Point;",
	"[B",
	"[C",
	"[I",
	"[J",
	"[[J",
	"[D",
	"[Ljava/lang/String;",
	"[Ljava/util/Date;",
	"[Ljava/sql/Date;",
	"[Ljava/math/BigDecimal;",
	"[Ljava/math/BigInteger;",
	"[Lit/Color;",
};

static const struct spoke_span values[] = {
	{ "\xc0", 1 },
	{ "\xc3", 1 },
	{ "\x07", 1 },
	{ "\xfb", 1 },
	{ "\xd3\0\0\x01\0\0\0\0\0", 9 },
	{ "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9 },
	{ "\xca\x3f\x80\0\0", 5 },
	{ "\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a", 9 },
	{ "\xa0", 1 },
	{ "\xa1x", 2 },
	{ "\xa3-15", 4 },
	{ "\xc4\x01x", 3 },
	{ "\xd6\xff\0\0\0\x3c", 6 },
	{ "\x90", 1 },
	{ "\x92\x07\xc0", 3 },
	{ "\x91\xa1x", 3 },
	{ "\x91\x91\x07", 3 },
	{ "\x80", 1 },
	{ "\x81\xa1x\x07", 4 },
	{ "\x81\x07\xa1x", 4 },
	{ "\x82\xa1x\x07\xa5\143lass\xa4it.P", 15 },
	{ "\xde\0\x01\xa5\143lass\xa1P", 11 },
	{ "\xc7\x05\x48\xa3t.L\x90", 8 },
	{ "\xd5\x52\x01\xc0", 4 }, /* a reference to nothing is null */
};

/* Writes a request with so many arguments of one type, then 7 as a long. Returns like the codec. */
static int write_args(const char *type, struct spoke_span value, unsigned count)
{
	static char text[MANY * 32];
	struct spoke_builder builder = start();
	struct spoke_span head;
	size_t len = 0;
	size_t end;

	for (unsigned i = 0; i < count; i++) {
		memcpy(text + len, type, strlen(type));
		len += strlen(type);
	}
	text[len++] = 'J';
	for (unsigned i = 0; i < 4; i++)
		spoke_pack_text(&builder, "name");
	spoke_pack_str(&builder, text, len);
	head = finish(&builder);
	end = head.len;
	for (unsigned i = 0; i < count; i++, end += value.len)
		memcpy(memory + end, value.data, value.len);
	memcpy(memory + end, "\x07\x80", 2);
	spokei_buffer_truncate(&roundbed.out, 0);
	return body_write(&spokei_codec_hessian2, SPOKEI_CODEC_REQUEST,
			  spokei_span(memory, end + 2), &roundbed.out);
}

/* Asserts that so many arguments were written, and the last one is a long. */
static void args_are(unsigned count)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(roundbed_read(SPOKEI_CODEC_REQUEST));
	struct spoke_value value;

	for (unsigned i = 0; i < 5 + count; i++)
		assert_true(spoke_cursor_next(&cursor, &value));
	assert_true(spoke_cursor_next(&cursor, &value));
	is_bytes(spokei_span(value.data, value.len), "\xd3\0\0\0\0\0\0\0\x07", 9);
	assert_true(spoke_cursor_next(&cursor, &value));
	is_bytes(spokei_span(value.data, value.len), "\xdf\0\0\0\0", 5);
	assert_int_equal(spoke_cursor_rest(&cursor).len, 0);
}

TEST(each_type_writes_each_value_once)
{
	unsigned written = 0;

	for (size_t i = 0; i < LENGTH(types); i++) {
		for (size_t k = 0; k < LENGTH(values); k++) {
			int error = write_args(types[i], values[k], 1);

			if (error == 0)
				args_are(1);
			assert_int_equal(write_args(types[i], values[k], MANY), error);
			if (error == 0)
				args_are(MANY);
			else
				assert_int_equal(error, SPOKE_EUNSUPPORTED);
			written += error == 0;
		}
	}
	assert_in_range(written, LENGTH(types) * LENGTH(values) * 9 / 10, 10000);
}

/* --- plans */

/* Writes a list of objects of several classes, some of which have the same keys, or containers. */
static struct spoke_span objects_of(unsigned classes)
{
	struct spoke_builder builder = start();
	char name[32];

	spoke_pack_array(&builder, 3 * classes);
	for (unsigned i = 0; i < 3 * classes; i++) {
		unsigned class = i % 2 ? i / 2 % classes : i % classes;

		(void)snprintf(name, sizeof(name), "it.Class%u", class);
		spoke_pack_object(&builder, 2 + class % 2);
		spoke_pack_text(&builder, "id");
		if (i % 7 == 6)
			spoke_pack_array(&builder, 0);
		else
			spoke_pack_i64(&builder, i);
		spoke_pack_text(&builder, class % 3 ? "name" : "title");
		spoke_pack_text(&builder, name);
		if (class % 2) {
			spoke_pack_text(&builder, "paid");
			spoke_pack_bool(&builder, true);
		}
		spoke_pack_class(&builder, name);
	}
	return finish(&builder);
}

TEST(plans_of_earlier_messages_change_no_byte)
{
	static const unsigned counts[] = { 1, 2, 3, 15, 16, 17, 40, 130, 3, 1 };
	struct spokei_buffer plans;
	struct spokei_buffer out;

	spokei_buffer_init(&plans, &roundbed.memory.env, 512);
	spokei_buffer_init(&out, &roundbed.memory.env, VALUES_MAX);
	for (unsigned i = 0; i < 2 * LENGTH(counts); i++) {
		struct spoke_span list = objects_of(counts[i / 2]);
		struct spoke_span written = roundbed_written(SPOKEI_CODEC_VALUES, list);
		struct spokei_codec_body body = body_of_values(SPOKEI_CODEC_VALUES, list);

		body.plans = &plans;
		spokei_buffer_truncate(&out, 0);
		assert_int_equal(spokei_codec_hessian2.from_values(&body, &out), 0);
		assert_int_equal(spokei_buffer_len(&out), written.len);
		assert_memory_equal(spokei_buffer_data(&out), written.data, written.len);
	}
	assert_in_range(spokei_buffer_len(&plans), 1, 512);
	spokei_buffer_fini(&plans);
	spokei_buffer_fini(&out);
}
