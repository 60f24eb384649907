/* SPDX-License-Identifier: Apache-2.0 */
/* Codec 2, Hessian 2: the parts of messages, read and written. Stateless; any thread. */
#include "transport/codec/codec.h"

#include "core/text/encoding.h"
#include "core/value/shape.h"
#include "core/value/validator.h"
#include "transport/codec/hessian2/put.h"
#include "transport/codec/hessian2/reader.h"
#include "transport/codec/hessian2/writer.h"

/* --- reading
 *
 * Reads the parts of a message. The values of a body stand in the order of Dubbo's msgpack bodies
 * already, with two differences: attachments may have a type, which is removed, and an exception
 * is an object, which becomes its class and a map of its fields. */

#define THROWABLE "\xb3java.lang.Throwable"
#define MESSAGE "\xa7message"
#define DETAIL                                                                                     \
	"\xad"                                                                                     \
	"detailMessage"
#define CAUSE                                                                                      \
	"\xa5"                                                                                     \
	"cause"
#define CLASS                                                                                      \
	"\xa5"                                                                                     \
	"class"

/* Markers of replies. */
#define EXCEPTION 0
#define EXCEPTION_ATTACHED 3
#define ATTACHED_MIN 3 /* this and greater ones: attachments follow */

/* --- attachments */

/* Returns the number of bytes before the container in an ext TYPED or REF, else 0. */
static size_t wrapping_of(const unsigned char *at, const unsigned char *end)
{
	const struct spokei_shape *shape = &spokei_shapes[*at];
	const unsigned char *payload = at + 2 + shape->width;

	if (shape->type != SPOKE_VALUE_EXT ||
	    (payload[-1] != SPOKE_EXT_TYPED && payload[-1] != SPOKE_EXT_REF))
		return 0;
	return (size_t)(payload - at) + spokei_shape_len(payload, end);
}

/* Removes the exts around the last value, the attachments. They are there if the map has a type, or
 * is a reference to an argument. SPOKE_ECORRUPT: the value is neither a map nor null. */
static int unwrap_last(struct spokei_hessian_reader *reader,
		       const struct spokei_codec_values *places)
{
	unsigned char *at = reader->scratch->bytes + places->last;

	for (size_t len = wrapping_of(at, reader->out); len > 0;
	     len = wrapping_of(at, reader->out)) {
		memmove(at, at + len, (size_t)(reader->out - at) - len);
		reader->out -= len;
	}
	return *at == 0xdf || *at == 0xc0 ? 0 : SPOKE_ECORRUPT;
}

/* --- exceptions */

static bool is_packed(struct spoke_value value, const char *packed, size_t len)
{
	return value.len == len && memcmp(value.data, packed, len) == 0;
}

#define IS(value, packed) is_packed(value, packed, sizeof(packed) - 1)

static void copy(struct spokei_hessian_reader *reader, const void *bytes, size_t len)
{
	memcpy(reader->out, bytes, len);
	reader->out += len;
}

/* Returns whether a value refers to a container that was open. */
static bool is_cycle(struct spoke_value value)
{
	const unsigned char *payload = value.data + 2 + spokei_shapes[value.data[0]].width;

	return spokei_shapes[value.data[0]].type == SPOKE_VALUE_EXT &&
	       payload[-1] == SPOKE_EXT_REF && value.data[value.len - 1] == 0xc0 &&
	       payload + spokei_shape_len(payload, value.data + value.len) + 1 ==
		       value.data + value.len;
}

/* Writes the class of an object. There is room. */
static void put_class(struct spokei_hessian_reader *reader, struct spoke_value object)
{
	struct spoke_cursor pairs = { object.data + 3, object.data + object.len,
				      2 * spokei_number(object.data + 1, 2) };
	struct spoke_value key;
	struct spoke_value value = { 0 };

	while (spoke_cursor_next_pair(&pairs, &key, &value))
		continue;
	copy(reader, value.data, value.len);
}

/* Writes the fields of an object as a map. There is room. */
static void put_fields(struct spokei_hessian_reader *reader, struct spoke_value object)
{
	uint32_t count = (uint32_t)spokei_number(object.data + 1, 2) - 1;
	struct spoke_cursor pairs = { object.data + 3, object.data + object.len,
				      (uint64_t)2 * count };
	struct spoke_value key;
	struct spoke_value value;

	if (count < 16)
		*reader->out++ = (unsigned char)(0x80 | count);
	else
		spokei_hessian_emit(reader, 0xde, count, 2);
	while (spoke_cursor_next_pair(&pairs, &key, &value)) {
		if (IS(key, DETAIL))
			copy(reader, MESSAGE, sizeof(MESSAGE) - 1);
		else
			copy(reader, key.data, key.len);
		if (IS(key, CAUSE) && is_cycle(value))
			*reader->out++ = 0xc0;
		else
			copy(reader, value.data, value.len);
	}
}

/* Writes the body again after itself, with the exception as a class and a map. Returns the position
 * of the copy. */
static int put_exception(struct spokei_hessian_reader *reader, struct spokei_codec_values *places,
			 uint32_t *ret_start)
{
	uint32_t written = spokei_hessian_written(reader);
	uint32_t after = places->count > 2 ? places->last : written;
	int error = spokei_hessian_room(reader, written + sizeof(THROWABLE) + sizeof(MESSAGE));
	const unsigned char *from;
	struct spoke_value thrown;

	if (error)
		return error;
	from = reader->scratch->bytes;
	thrown = (struct spoke_value){ from + places->first[1], after - places->first[1] };
	copy(reader, from, places->first[1]);
	if (*thrown.data == 0xde) {
		put_class(reader, thrown);
		places->first[2] = spokei_hessian_written(reader) - written;
		put_fields(reader, thrown);
	} else {
		copy(reader, THROWABLE, sizeof(THROWABLE) - 1);
		places->first[2] = spokei_hessian_written(reader) - written;
		copy(reader, "\x81" MESSAGE, sizeof("\x81" MESSAGE) - 1);
		copy(reader, thrown.data, thrown.len);
	}
	places->first[3] = places->last = spokei_hessian_written(reader) - written;
	places->count++;
	copy(reader, from + after, written - after);
	*ret_start = written;
	return 0;
}

/* --- parts */

static int finish_reply(struct spokei_hessian_reader *reader, struct spokei_codec_values *places,
			uint32_t *ret_start)
{
	static const uint8_t counts[] = { 2, 2, 1, 3, 3, 2 };
	unsigned marker = *reader->scratch->bytes;
	int error = 0;

	if (marker >= sizeof(counts))
		return SPOKE_ECORRUPT;
	if (places->count != counts[marker])
		return places->count < counts[marker] ? SPOKE_ETRUNCATED : SPOKE_ETRAILING;
	if (marker >= ATTACHED_MIN)
		error = unwrap_last(reader, places);
	if (error == 0 && (marker == EXCEPTION || marker == EXCEPTION_ATTACHED))
		error = put_exception(reader, places, ret_start);
	return error;
}

static int finish_text(const struct spokei_hessian_reader *reader,
		       const struct spokei_codec_values *places)
{
	uint8_t type = spokei_shapes[*reader->scratch->bytes].type;

	if (type != SPOKE_VALUE_STR && type != SPOKE_VALUE_NIL)
		return SPOKE_ECORRUPT;
	return places->count > 1 ? SPOKE_ETRAILING : 0;
}

/* Completes the values of a part. Writes the position of the first one. */
static int finish(struct spokei_hessian_reader *reader, enum spokei_codec_part part,
		  struct spokei_codec_values *places, uint32_t *ret_start)
{
	if (part == SPOKEI_CODEC_REPLY)
		return finish_reply(reader, places, ret_start);
	if (part == SPOKEI_CODEC_TEXT)
		return finish_text(reader, places);
	return unwrap_last(reader, places);
}

/* Takes the bytes that were made off the maximum of the scratch. */
static void spend(const struct spokei_hessian_reader *reader)
{
	struct spokei_buffer *scratch = reader->scratch;
	size_t left = scratch->max - spokei_hessian_written(reader);
	size_t worth = (size_t)reader->copies * SPOKEI_CODEC_VALUE;

	if (reader->swollen)
		left = 0;
	scratch->max = left < worth ? left : worth;
}

static int hessian2_to_values(const struct spoke_value_limits *limits, enum spokei_codec_part part,
			      struct spoke_span body, struct spokei_buffer *scratch,
			      struct spokei_codec_values *ret)
{
	struct spokei_hessian_reader reader;
	uint32_t from = 0;
	size_t len;
	int error;

	if (body.len == 0 && part != SPOKEI_CODEC_VALUES)
		return SPOKE_ETRUNCATED;
	error = spokei_hessian_read(&reader, limits, body, scratch, ret);
	if (SPOKEI_UNLIKELY(error && reader.body == NULL))
		return error;
	if (error == 0 && part != SPOKEI_CODEC_VALUES)
		error = finish(&reader, part, ret, &from);
	len = spokei_hessian_written(&reader) - from;
	if (error == 0 && len > reader.bytes_max)
		error = SPOKE_ETOOLARGE;
	spend(&reader);
	scratch->end = error ? 0 : from + len;
	ret->values = (struct spoke_span){ scratch->bytes + from, len };
	return error;
}

/* --- writing
 *
 * Writes messages in Hessian 2, with the bytes that Java's writer makes of these values. The memory
 * of the tables is bounded and on the stack, so only `out` allocates. Nothing of a reference or a
 * type gets lost when a table is full: it is written in full again. */

/* Writes all values as they are. */
static void write_all(struct spokei_hessian_writer *writer, struct spoke_span values)
{
	spokei_hessian_turn_to(writer, values);
	(void)spokei_hessian_write_values(writer, SIZE_MAX);
}

/* Writes the arguments as the text of their types demands. */
static void write_args(struct spokei_hessian_writer *writer, struct spoke_span args,
		       struct spoke_span types)
{
	struct spokei_hessian_type type;

	spokei_hessian_turn_to(writer, args);
	while (types.len > 0 && spokei_hessian_more(writer))
		if (spokei_hessian_next_type(&types, &type))
			spokei_hessian_write_as(writer, &type);
	(void)spokei_hessian_write_values(writer, SIZE_MAX);
}

/* Writes the attachments, always an untyped map. */
static void write_pairs(struct spokei_hessian_writer *writer, const struct spoke_span *pairs)
{
	if (!spokei_hessian_open(writer, NULL))
		return;
	spokei_hessian_put_byte(&writer->put, 'H');
	write_all(writer, pairs[0]);
	write_all(writer, pairs[1]);
	spokei_hessian_put_byte(&writer->put, 'Z');
	spokei_hessian_close(writer);
}

static int hessian2_from_values(const struct spokei_codec_body *body, struct spokei_buffer *out)
{
	struct spokei_hessian_writer writer;

	spokei_hessian_writer_start(&writer, body, out);
	spokei_hessian_put_skip(&writer.put, body->room);
	spokei_hessian_put_raw(&writer.put, body->prefix.data, body->prefix.len);
	write_all(&writer, body->first);
	if (body->thrown)
		spokei_hessian_write_throwable(&writer, body->values);
	else
		write_args(&writer, body->values, body->types);
	if (body->attached)
		write_pairs(&writer, body->pairs);
	return spokei_hessian_put_finish(&writer.put);
}

/* --- the codec */

#define TEXT_MAX 1023u /* units of the text of an error: one chunk, with a head of two bytes */

/* Returns the start of a text, at most TEXT_MAX units of UTF-16. */
static struct spoke_span cut(struct spoke_span text)
{
	const unsigned char *from = text.data;
	size_t units = 0;
	size_t i = 0;

	while (i < text.len) {
		size_t len = spokei_utf8_len(from + i, text.len - i);

		units += len == 4 ? 2 : 1;
		if (units > TEXT_MAX)
			break;
		i += len > 0 ? len : 1;
	}
	return (struct spoke_span){ from, i };
}

static int hessian2_from_text(struct spoke_span text, struct spokei_buffer *out)
{
	struct spoke_span start = cut(text);
	struct spokei_hessian_put put;

	spokei_hessian_put_start(&put, out, start.len + 2);
	spokei_hessian_put_string(&put, start.data, start.len);
	return spokei_hessian_put_finish(&put);
}

const struct spokei_codec spokei_codec_hessian2 = {
	.id = SPOKEI_CODEC_HESSIAN2,
	.name = "hessian2",
	.null = { "\x4e", 1 },
	.readonly = { "\x01R", 2 },
	.writable = { "\x01W", 2 },
	.cancel = { "\x01\x43", 2 },
	.to_values = hessian2_to_values,
	.from_values = hessian2_from_values,
	.put_scalars = spokei_hessian_put_scalars,
	.take_scalars = spokei_hessian_take_scalars,
	.heads = { .text = 0, .long_text = 0x30, .map = 'H', .map_end = 'Z', .value = 0x91 },
	.from_text = hessian2_from_text,
};
