/* SPDX-License-Identifier: Apache-2.0 */
/* Codec 2, Hessian 2: the parts of messages, read and written. Stateless; any thread. */
#include "transport/codec/hessian2/hessian2.h"

#include "core/text/encoding.h"
#include "core/value/shape.h"
#include "core/value/skim.h"
#include "transport/codec/codec.h"
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

/* Returns how many values references may copy. */
static uint32_t copies_of(size_t max)
{
	size_t copies = max / SPOKEI_CODEC_VALUE;

	return copies < UINT32_MAX ? (uint32_t)copies : UINT32_MAX;
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

static int start(struct spokei_hessian_reader *reader, const struct spoke_value_limits *limits,
		 struct spoke_span body, struct spokei_buffer *scratch)
{
	struct spoke_value_limits settled;
	size_t max = scratch->max;
	int error = spokei_limits_settle(limits, &settled);

	if (error)
		return error;
	if (body.len == 0)
		return SPOKE_ETRUNCATED;
	if (body.len > UINT32_MAX)
		return SPOKE_ETOOLARGE;
	spokei_buffer_truncate(scratch, 0);
	if (spokei_buffer_reserve(scratch, body.len < max ? body.len : max) == NULL)
		return SPOKE_ENOMEM;
	reader->body = body.data;
	reader->at = reader->body;
	reader->end = reader->body + body.len;
	reader->scratch = scratch;
	reader->out = scratch->bytes;
	reader->capacity_max = max;
	spokei_hessian_settle(reader);
	reader->out_end = scratch->bytes + reader->capacity;
	reader->bytes_max = settled.bytes_max < UINT32_MAX ? (uint32_t)settled.bytes_max
							   : UINT32_MAX;
	reader->items = spokei_limits_items(&settled);
	reader->copies = copies_of(max);
	reader->swollen = false;
	reader->depth_max = settled.depth_max;
	reader->depth = 0;
	reader->open = 0;
	reader->begun = 0;
	reader->class_count = 0;
	reader->type_count = 0;
	reader->cycles = settled.cycles;
	return 0;
}

static int read_all(struct spokei_hessian_reader *reader, struct spokei_codec_places *places)
{
	int error = 0;

	while (error == 0 && reader->at < reader->end) {
		places->last = spokei_hessian_written(reader);
		if (places->count < SPOKEI_CODEC_FIRST)
			places->first[places->count] = places->last;
		places->count++;
		error = spokei_hessian_count(reader, 1);
		if (error == 0)
			error = spokei_hessian_read_value(reader);
	}
	return error;
}

/* --- attachments */

/* Returns the number of bytes before the container in an ext TYPED or REF, else 0. */
static size_t wrapping_of(const unsigned char *at, const unsigned char *end)
{
	const struct spokei_shape *shape = &spokei_shapes[*at];
	const unsigned char *payload = at + 2 + shape->width;

	if (shape->type != SPOKE_VALUE_EXT ||
	    (payload[-1] != SPOKE_EXT_TYPED && payload[-1] != SPOKE_EXT_REF))
		return 0;
	return (size_t)(payload - at) + spokei_shape_hop(payload, end);
}

/* Removes the exts around the last value, the attachments. They are there if the map has a type, or
 * is a reference to an argument. SPOKE_ECORRUPT: the value is neither a map nor null. */
static int unwrap_last(struct spokei_hessian_reader *reader,
		       const struct spokei_codec_places *places)
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
	       payload + spokei_shape_hop(payload, value.data + value.len) + 1 ==
		       value.data + value.len;
}

/* Writes the class and then the fields of an object. There is room. */
static void put_fields(struct spokei_hessian_reader *reader, struct spoke_value object)
{
	uint32_t count = (uint32_t)spokei_number(object.data + 1, 2) - 1;
	struct spoke_cursor cursor = { object.data + 3, object.data + object.len, 2 * count + 2 };
	struct spoke_cursor pairs = cursor;
	struct spoke_value key;
	struct spoke_value value = { 0 };

	while (spoke_cursor_next_pair(&cursor, &key, &value))
		continue;
	copy(reader, value.data, value.len);
	if (count < 16)
		*reader->out++ = (unsigned char)(0x80 | count);
	else
		spokei_hessian_emit(reader, 0xde, count, 2);
	for (; count > 0 && spoke_cursor_next_pair(&pairs, &key, &value); count--) {
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
static int put_exception(struct spokei_hessian_reader *reader,
			 const struct spokei_codec_places *places, uint32_t *ret_start)
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
		put_fields(reader, thrown);
	} else {
		copy(reader, THROWABLE "\x81" MESSAGE, sizeof(THROWABLE MESSAGE));
		copy(reader, thrown.data, thrown.len);
	}
	copy(reader, from + after, written - after);
	*ret_start = written;
	return 0;
}

/* --- parts */

static int finish_reply(struct spokei_hessian_reader *reader,
			const struct spokei_codec_places *places, uint32_t *ret_start)
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
		       const struct spokei_codec_places *places)
{
	uint8_t type = spokei_shapes[*reader->scratch->bytes].type;

	if (type != SPOKE_VALUE_STR && type != SPOKE_VALUE_NIL)
		return SPOKE_ECORRUPT;
	return places->count > 1 ? SPOKE_ETRAILING : 0;
}

/* Completes the values of a part. Writes the position of the first one. */
static int finish(struct spokei_hessian_reader *reader, enum spokei_codec_part part,
		  const struct spokei_codec_places *places, uint32_t *ret_start)
{
	if (part == SPOKEI_CODEC_REPLY)
		return finish_reply(reader, places, ret_start);
	if (part == SPOKEI_CODEC_TEXT)
		return finish_text(reader, places);
	return unwrap_last(reader, places);
}

static int read_part(const struct spoke_value_limits *limits, enum spokei_codec_part part,
		     struct spoke_span body, struct spokei_buffer *scratch,
		     struct spoke_span *ret_values, struct spokei_codec_places *places)
{
	struct spokei_hessian_reader reader;
	uint32_t from = 0;
	size_t len;
	int error = start(&reader, limits, body, scratch);

	places->count = 0;
	if (error)
		return error;
	error = read_all(&reader, places);
	if (error == 0)
		error = finish(&reader, part, places, &from);
	len = spokei_hessian_written(&reader) - from;
	if (error == 0 && len > reader.bytes_max)
		error = SPOKE_ETOOLARGE;
	scratch->end = error ? 0 : from + len;
	spend(&reader);
	if (error == 0)
		*ret_values = (struct spoke_span){ scratch->bytes + from, len };
	return error;
}

int spokei_hessian_to_values(const struct spoke_value_limits *limits, enum spokei_codec_part part,
			     struct spoke_span body, struct spokei_buffer *scratch,
			     struct spoke_span *ret_values)
{
	struct spokei_codec_places places;

	return read_part(limits, part, body, scratch, ret_values, &places);
}

int spokei_hessian_read_request(const struct spoke_value_limits *limits, struct spoke_span body,
				struct spokei_buffer *scratch, struct spoke_span *ret_values,
				struct spokei_codec_places *ret_places)
{
	return read_part(limits, SPOKEI_CODEC_REQUEST, body, scratch, ret_values, ret_places);
}

/* --- writing
 *
 * Writes the parts of messages in Hessian 2. Arguments are written as the text of their types
 * demands. Attachments are always an untyped map. */

#define NAMES 4u /* texts before the types: two versions, service and method around them */

/* Returns whether the next value is a map, and the last value. */
static bool is_last_map(const struct spokei_hessian_writer *writer)
{
	struct spoke_cursor cursor = { writer->at, writer->end, UINT64_MAX };
	struct spoke_value value;

	return spokei_hessian_type(writer) == SPOKE_VALUE_MAP &&
	       spoke_cursor_next(&cursor, &value) && cursor.at == writer->end;
}

/* Writes the text of the types, the arguments and the attachments. */
static void write_args(struct spokei_hessian_writer *writer)
{
	struct spoke_value value = spokei_hessian_peek(writer);
	struct spoke_span types = { 0 };
	struct spokei_hessian_type type;

	if (spokei_hessian_type(writer) == SPOKE_VALUE_STR)
		(void)!spoke_value_str(value, &types);
	spokei_hessian_write_value(writer);
	while (spokei_hessian_more(writer)) {
		if (is_last_map(writer))
			spokei_hessian_write_container(writer, writer->at, NULL);
		else if (spokei_hessian_next_type(&types, &type))
			spokei_hessian_write_as(writer, &type);
		else
			spokei_hessian_write_value(writer);
	}
}

/* Returns whether the next value is the name of a generic call. */
static bool is_generic(const struct spokei_hessian_writer *writer)
{
	struct spoke_value value = spokei_hessian_peek(writer);
	struct spoke_span name = { 0 };

	if (spokei_hessian_type(writer) != SPOKE_VALUE_STR || spoke_value_str(value, &name) != 0)
		return false;
	return (name.len == 7 && memcmp(name.data, "$invoke", 7) == 0) ||
	       (name.len == 12 && memcmp(name.data, "$invokeAsync", 12) == 0);
}

static void write_request(struct spokei_hessian_writer *writer)
{
	for (unsigned i = 0; i < NAMES && spokei_hessian_more(writer); i++) {
		writer->generic = is_generic(writer);
		spokei_hessian_write_value(writer);
	}
	if (spokei_hessian_more(writer))
		write_args(writer);
}

/* Writes the marker, the value or exception, and the attachments. */
static void write_reply(struct spokei_hessian_writer *writer)
{
	struct spoke_value value = spokei_hessian_peek(writer);
	uint64_t marker = 2;

	if (spokei_hessian_type(writer) == SPOKE_VALUE_INT)
		(void)!spoke_value_u64(value, &marker);
	spokei_hessian_write_value(writer);
	if (marker % 3 == 0)
		spokei_hessian_write_throwable(writer);
	else if (marker % 3 == 1)
		spokei_hessian_write_value(writer);
	if (is_last_map(writer))
		spokei_hessian_write_container(writer, writer->at, NULL);
}

int spokei_hessian_from_values(enum spokei_codec_part part, struct spoke_span values,
			       struct spokei_buffer *out)
{
	struct spokei_hessian_writer writer;
	int error;

	spokei_hessian_writer_start(&writer, values, out);
	writer.generic = part == SPOKEI_CODEC_GENERIC_REPLY;
	if (part == SPOKEI_CODEC_REQUEST)
		write_request(&writer);
	else if (part == SPOKEI_CODEC_ARGS)
		write_args(&writer);
	else if (part == SPOKEI_CODEC_REPLY || part == SPOKEI_CODEC_GENERIC_REPLY)
		write_reply(&writer);
	while (spokei_hessian_more(&writer))
		spokei_hessian_write_value(&writer);
	error = spokei_hessian_put_finish(&writer.put);
	return error;
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
	.to_values = spokei_hessian_to_values,
	.from_values = spokei_hessian_from_values,
	.from_text = hessian2_from_text,
};
