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

/* Returns whether the part has the required form: NAMES are four texts, ARGS begin with the types.
 */
static bool is_part(enum spokei_codec_part part, struct spoke_cursor values)
{
	size_t texts = part == SPOKEI_CODEC_NAMES ? 4 : part == SPOKEI_CODEC_ARGS ? 1 : 0;
	struct spoke_value value;

	for (size_t i = 0; i < texts; i++)
		if (!spoke_cursor_next(&values, &value) ||
		    spoke_value_type(value) != SPOKE_VALUE_STR)
			return false;
	return part != SPOKEI_CODEC_NAMES || values.at == values.end;
}

static int text_from_values(enum spokei_codec_part part, struct spoke_span values,
			    struct spokei_buffer *out)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(values);
	struct spoke_value value;
	bool reply = part == SPOKEI_CODEC_REPLY || part == SPOKEI_CODEC_GENERIC_REPLY;
	uint64_t marker = 1;
	int error = 0;

	if (!is_part(part, cursor))
		return SPOKE_EINVAL;
	for (size_t i = 0; error == 0 && spoke_cursor_next(&cursor, &value); i++) {
		struct spoke_span name;

		if (reply && i == 0)
			(void)!spoke_value_u64(value, &marker);
		if (reply && i == 1 && marker % 3 == 0 && spoke_value_str(value, &name) == 0)
			error = put(out, "e", name);
		else
			error = put_value(out, value, &cursor);
	}
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

static int text_to_values(const struct spoke_value_limits *limits, enum spokei_codec_part part,
			  struct spoke_span body, struct spokei_buffer *scratch,
			  struct spoke_span *ret_values)
{
	const unsigned char *at = body.data;
	size_t left = body.len;
	struct spoke_builder builder;

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
	return spoke_builder_finish(&builder, ret_values);
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
