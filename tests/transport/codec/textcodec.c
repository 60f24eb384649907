/* SPDX-License-Identifier: Apache-2.0 */
/* The text codec of the tests: see textcodec.h. It keeps no state and does not recurse. */
#include "tests/transport/codec/textcodec.h"

#include "core/value/builder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HEAD 4u
#define NUMBER_MAX 24u /* characters of a number, and of the type of an ext */

/* --- writing */

/* Appends a value whose text consists of two pieces. */
static int put(struct spokei_buffer *out, const char *text, struct spoke_span more)
{
	size_t text_len = strlen(text);
	size_t len = text_len + more.len;
	const unsigned char head[HEAD] = { (unsigned char)(len >> 24), (unsigned char)(len >> 16),
					   (unsigned char)(len >> 8), (unsigned char)len };
	int error = spokei_buffer_append(out, head, HEAD);

	if (error == 0)
		error = spokei_buffer_append(out, text, text_len);
	return error ? error : spokei_buffer_append(out, more.data, more.len);
}

static int put_int(struct spokei_buffer *out, struct spoke_value value)
{
	char text[NUMBER_MAX + 1] = "";
	uint64_t large;
	int64_t number;

	if (spoke_value_u64(value, &large) == 0)
		(void)snprintf(text, sizeof(text), "i%" PRIu64, large);
	else if (spoke_value_i64(value, &number) == 0)
		(void)snprintf(text, sizeof(text), "i%" PRId64, number);
	return put(out, text, (struct spoke_span){ NULL, 0 });
}

/* Appends a float or a double as the hexadecimal digits of its bits. */
static int put_bits(struct spokei_buffer *out, struct spoke_value value)
{
	char text[NUMBER_MAX + 1] = "d";

	if (value.len == 5)
		text[0] = 'g';
	for (size_t i = 1; i < value.len; i++)
		(void)snprintf(text + 2 * i - 1, 3, "%02x", value.data[i]);
	return put(out, text, (struct spoke_span){ NULL, 0 });
}

static int put_ext(struct spokei_buffer *out, struct spoke_value value)
{
	char text[NUMBER_MAX + 1];
	struct spoke_span bytes;
	int8_t type;

	if (spoke_value_ext(value, &type, &bytes) != 0)
		return SPOKE_EUNSUPPORTED;
	(void)snprintf(text, sizeof(text), "x%d:", type);
	return put(out, text, bytes);
}

/* Appends the head of an array or map. The elements follow. */
static int put_container(struct spokei_buffer *out, struct spoke_value value, bool is_map,
			 struct spoke_cursor *cursor)
{
	const unsigned char *end = cursor->end;
	char text[NUMBER_MAX + 1];
	struct spoke_cursor inner;
	size_t count;

	if ((is_map ? spoke_cursor_map(value, &inner) : spoke_cursor_array(value, &inner)) != 0 ||
	    (is_map ? spoke_value_map_len(value, &count) : spoke_value_array_len(value, &count)) !=
		    0)
		return SPOKE_EUNSUPPORTED;
	*cursor = spoke_cursor_bytes((struct spoke_span){ inner.at, (size_t)(end - inner.at) });
	(void)snprintf(text, sizeof(text), "%c%zu", is_map ? 'm' : 'a', count);
	return put(out, text, (struct spoke_span){ NULL, 0 });
}

static int put_value(struct spokei_buffer *out, struct spoke_value value,
		     struct spoke_cursor *cursor)
{
	struct spoke_span bytes = { NULL, 0 };
	bool truth = false;

	switch (spoke_value_type(value)) {
	case SPOKE_VALUE_NIL:
		return put(out, "n", bytes);
	case SPOKE_VALUE_BOOL:
		(void)!spoke_value_bool(value, &truth);
		return put(out, truth ? "t" : "f", bytes);
	case SPOKE_VALUE_INT:
		return put_int(out, value);
	case SPOKE_VALUE_DOUBLE:
		return put_bits(out, value);
	case SPOKE_VALUE_STR:
		(void)!spoke_value_str(value, &bytes);
		return put(out, "s", bytes);
	case SPOKE_VALUE_BIN:
		(void)!spoke_value_bin(value, &bytes);
		return put(out, "b", bytes);
	case SPOKE_VALUE_EXT:
		return put_ext(out, value);
	case SPOKE_VALUE_ARRAY:
	case SPOKE_VALUE_MAP:
		return put_container(out, value, spoke_value_type(value) == SPOKE_VALUE_MAP,
				     cursor);
	case SPOKE_VALUE_NONE:
	default:
		return SPOKE_EUNSUPPORTED;
	}
}

/* Appends values one after another. */
static int put_values(struct spokei_buffer *out, struct spoke_span values)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(values);
	struct spoke_value value;
	int error = 0;

	while (error == 0 && spoke_cursor_next(&cursor, &value))
		error = put_value(out, value, &cursor);
	return error;
}

/* Appends the attachments, a map of the pairs in both pieces. */
static int put_pairs(struct spokei_buffer *out, const struct spoke_span *pairs)
{
	struct spoke_value value;
	char text[NUMBER_MAX + 1];
	size_t count = 0;
	int error;

	for (unsigned i = 0; i < 2; i++) {
		struct spoke_cursor cursor = spoke_cursor_bytes(pairs[i]);

		while (spoke_cursor_next(&cursor, &value))
			count++;
	}
	(void)snprintf(text, sizeof(text), "m%zu", count / 2);
	error = put(out, text, (struct spoke_span){ NULL, 0 });
	for (unsigned i = 0; i < 2 && error == 0; i++)
		error = put_values(out, pairs[i]);
	return error;
}

static int text_from_values(const struct spokei_codec_body *body, struct spokei_buffer *out)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(body->values);
	struct spoke_span values = body->values;
	struct spoke_value class;
	struct spoke_span name;
	static const unsigned char room[64];
	int error = spokei_buffer_append(out, room, body->room);

	if (error == 0)
		error = spokei_buffer_append(out, body->prefix.data, body->prefix.len);

	if (error == 0)
		error = put_values(out, body->first);
	if (error == 0 && body->thrown && spoke_cursor_next(&cursor, &class) &&
	    spoke_value_str(class, &name) == 0) {
		error = put(out, "e", name);
		values = spoke_cursor_rest(&cursor);
	}
	if (error == 0)
		error = put_values(out, values);
	if (error == 0 && body->attached)
		error = put_pairs(out, body->pairs);
	return error;
}

static int text_from_text(struct spoke_span text, struct spokei_buffer *out)
{
	return put(out, "s", text);
}

/* --- reading */

/* Reads decimal digits up to `end`. */
static bool read_number(const char *text, const char *end, bool *negative, uint64_t *ret)
{
	*negative = text < end && *text == '-';
	text += *negative;
	*ret = 0;
	if (text == end || end - text > 20)
		return false;
	for (; text < end; text++) {
		uint64_t digit = (uint64_t)(*text - '0');

		if (*text < '0' || *text > '9' || *ret > (UINT64_MAX - digit) / 10)
			return false;
		*ret = *ret * 10 + digit;
	}
	return true;
}

static bool take_int(struct spoke_builder *builder, const char *text, const char *end)
{
	bool negative;
	uint64_t number;

	if (!read_number(text, end, &negative, &number) ||
	    (negative && number > (uint64_t)INT64_MAX + 1))
		return false;
	if (negative)
		spoke_pack_i64(builder, (int64_t)(0 - number));
	else
		spoke_pack_u64(builder, number);
	return true;
}

static bool take_bits(struct spoke_builder *builder, const char *text, size_t len, bool is_short)
{
	uint64_t bits = 0;
	uint32_t short_bits;
	double number;
	float short_number;

	if (len != (is_short ? 8 : 16))
		return false;
	for (size_t i = 0; i < len; i++) {
		const char *digit = strchr("0123456789abcdef", text[i]);

		if (digit == NULL || *digit == '\0')
			return false;
		bits = bits << 4 | (uint64_t)(*digit - (*digit < 'a' ? '0' : 'a' - 10));
	}
	short_bits = (uint32_t)bits;
	memcpy(&number, &bits, sizeof(number));
	memcpy(&short_number, &short_bits, sizeof(short_number));
	if (is_short)
		spoke_pack_float(builder, short_number);
	else
		spoke_pack_double(builder, number);
	return true;
}

static bool take_ext(struct spoke_builder *builder, const char *text, const char *end)
{
	const char *colon = memchr(text, ':', (size_t)(end - text));
	bool negative;
	uint64_t type;

	if (colon == NULL || !read_number(text, colon, &negative, &type) ||
	    type > (negative ? 128 : 127))
		return false;
	spoke_pack_ext(builder, (int8_t)(negative ? -(int)type : (int)type), colon + 1,
		       (size_t)(end - colon - 1));
	return true;
}

static bool take_container(struct spoke_builder *builder, const char *text, const char *end)
{
	bool negative;
	uint64_t count;

	if (!read_number(text + 1, end, &negative, &count) || negative)
		return false;
	if (*text == 'm')
		spoke_pack_map(builder, (size_t)count);
	else
		spoke_pack_array(builder, (size_t)count);
	return true;
}

/* Packs the value that this text encodes. Returns false if the text is invalid. */
static bool take_value(struct spoke_builder *builder, enum spokei_codec_part part, const char *text,
		       size_t len)
{
	const char *end = text + len;

	switch (len > 0 ? text[0] : '\0') {
	case 'n':
		spoke_pack_nil(builder);
		return len == 1;
	case 't':
	case 'f':
		spoke_pack_bool(builder, text[0] == 't');
		return len == 1;
	case 'i':
		return take_int(builder, text + 1, end);
	case 'g':
	case 'd':
		return take_bits(builder, text + 1, len - 1, text[0] == 'g');
	case 'e':
	case 's':
		if (text[0] == 'e' && part != SPOKEI_CODEC_REPLY)
			return false;
		spoke_pack_str(builder, text + 1, len - 1);
		return true;
	case 'b':
		spoke_pack_bin(builder, text + 1, len - 1);
		return true;
	case 'x':
		return take_ext(builder, text + 1, end);
	case 'a':
	case 'm':
		return take_container(builder, text, end);
	default:
		return false;
	}
}

/* Notes where the values begin. */
static void note_places(struct spokei_codec_values *ret)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(ret->values);
	const unsigned char *start = cursor.at;
	struct spoke_value value;

	ret->body_args = ret->body_last = SPOKEI_CODEC_NOWHERE;
	for (ret->count = 0; spoke_cursor_next(&cursor, &value); ret->count++) {
		ret->last = (uint32_t)(value.data - start);
		if (ret->count <= SPOKEI_CODEC_TEXTS)
			ret->first[ret->count] = ret->last;
	}
}

static int text_to_values(const struct spoke_value_limits *limits, enum spokei_codec_part part,
			  struct spoke_span body, struct spokei_buffer *scratch,
			  struct spokei_codec_values *ret)
{
	const unsigned char *at = body.data;
	size_t left = body.len;
	struct spoke_builder builder;
	int error;

	spokei_builder_init_buffer(&builder, scratch, limits);
	while (left > 0 && builder.error == 0) {
		size_t len = left < HEAD ? left
					 : (size_t)at[0] << 24 | (size_t)at[1] << 16 |
						   (size_t)at[2] << 8 | at[3];

		if (left < HEAD || len > left - HEAD) {
			spokei_builder_drop(&builder);
			return SPOKE_ETRUNCATED;
		}
		if (!take_value(&builder, part, (const char *)at + HEAD, len)) {
			spokei_builder_drop(&builder);
			return SPOKE_ECORRUPT;
		}
		at += HEAD + len;
		left -= HEAD + len;
	}
	error = spoke_builder_finish(&builder, &ret->values);
	if (error == 0)
		note_places(ret);
	return error;
}

const struct spokei_codec textcodec = {
	.id = 30,
	.name = "text",
	.null = { "\0\0\0\1n", 5 },
	.readonly = { "\0\0\0\2sR", 6 },
	.writable = { "\0\0\0\2sW", 6 },
	.to_values = text_to_values,
	.from_values = text_from_values,
	.from_text = text_from_text,
};
