/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes values as Hessian 2, in the forms that Java's writer chooses. Recursion is bounded by
 * SPOKEI_HESSIAN2_DEPTH. Exts that are not of the codec's forms cannot be expressed.
 */
#include "transport/codec/hessian2/writer.h"

#include "transport/codec/hessian2/heads.h"

/* --- reading */

void spokei_hessian2_writer_start(struct spokei_hessian2_writer *writer, struct spoke_span values,
				  struct spokei_buffer *out)
{
	spokei_hessian2_put_start(&writer->put, out, values.len + values.len / 8 + 16);
	writer->at = values.data;
	writer->end = writer->at ? writer->at + values.len : NULL;
	writer->generic = false;
	writer->passes = SPOKEI_HESSIAN2_PASSES_MIN + SPOKEI_HESSIAN2_PASSES * values.len;
	writer->depth = 0;
	spokei_hessian2_tables_init(&writer->tables, values.len);
}

size_t spokei_hessian2_open_next(struct spokei_hessian2_writer *writer)
{
	struct spoke_value value = spokei_hessian2_peek(writer);
	struct spoke_cursor cursor;

	if ((spokei_hessian2_type(writer) == SPOKE_VALUE_ARRAY
		     ? spoke_cursor_array(value, &cursor)
		     : spoke_cursor_map(value, &cursor)) != 0) {
		spokei_hessian2_refuse(writer);
		return 0;
	}
	writer->at = cursor.at;
	return (size_t)cursor.left;
}

/* --- containers */

/* Enters a container or ext; the number is that of a container. */
static bool enter(struct spokei_hessian2_writer *writer, uint32_t number)
{
	if (writer->depth == SPOKEI_HESSIAN2_DEPTH) {
		spokei_hessian2_refuse(writer);
		return false;
	}
	writer->open[writer->depth++] = number;
	return true;
}

bool spokei_hessian2_open(struct spokei_hessian2_writer *writer, const unsigned char *value)
{
	return enter(writer, spokei_hessian2_begin(&writer->tables, value));
}

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
static void write_items(struct spokei_hessian2_writer *writer, size_t count)
{
	for (; count > 0 && writer->put.error == 0; count--)
		spokei_hessian2_write_value(writer);
}

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
void spokei_hessian2_write_container(struct spokei_hessian2_writer *writer,
				     const unsigned char *value,
				     const struct spokei_hessian2_name *name)
{
	bool list = spokei_hessian2_type(writer) == SPOKE_VALUE_ARRAY;
	size_t count = spokei_hessian2_open_next(writer);

	if (!spokei_hessian2_open(writer, value))
		return;
	if (list)
		spokei_hessian2_list_head(writer, name, count);
	else
		spokei_hessian2_map_head(writer, name);
	write_items(writer, count);
	if (!list)
		spokei_hessian2_map_end(writer);
	spokei_hessian2_close(writer);
}

/* --- objects */

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
void spokei_hessian2_write_object(struct spokei_hessian2_writer *writer,
				  const struct spokei_hessian2_object *object)
{
	struct spoke_value key;

	if (!spokei_hessian2_open(writer, writer->at))
		return;
	spokei_hessian2_object_head(writer, &object->class);
	writer->at = object->class.pairs.data;
	for (size_t i = 0; i < object->class.fields && writer->put.error == 0; i++)
		if (spokei_hessian2_take(writer, &key))
			spokei_hessian2_write_value(writer);
	writer->at = object->end;
	spokei_hessian2_close(writer);
}

/* --- exts */

/* Writes a timestamp of msgpack: 32 bits of seconds, 30 bits of nanoseconds and 34 of seconds, or
 * 32 bits of nanoseconds and 64 of seconds. */
static void write_date(struct spokei_hessian2_writer *writer, struct spoke_span time)
{
	const unsigned char *at = time.data;
	uint64_t number = time.len == 4 || time.len == 8 ? spokei_number(at, (unsigned)time.len)
							 : 0;
	uint64_t nanos = time.len == 8 ? number >> 34 : 0;
	int64_t seconds = (int64_t)(number & UINT64_C(0x3ffffffff));
	int64_t part;
	int64_t ms;

	if (time.len == 12) {
		nanos = spokei_number(at, 4);
		number = spokei_number(at + 4, 8);
		memcpy(&seconds, &number, sizeof(seconds));
	} else if (time.len != 4 && time.len != 8) {
		spokei_hessian2_refuse(writer);
		return;
	}
	part = (int64_t)(nanos / 1000000);
	if (seconds < 0) { /* rounding down is the same, and the sum stays in range */
		seconds++;
		part -= 1000;
	}
	if (nanos > 999999999 || __builtin_mul_overflow(seconds, 1000, &ms) ||
	    __builtin_add_overflow(ms, part, &ms))
		spokei_hessian2_refuse(writer);
	else
		spokei_hessian2_put_date(&writer->put, ms);
}

/* Writes a list or map with a type: a str and an array or map. */
/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
static void write_typed(struct spokei_hessian2_writer *writer, const unsigned char *value)
{
	struct spokei_hessian2_name name;
	struct spoke_value text;
	struct spoke_span span;
	unsigned type;

	if (!spokei_hessian2_take(writer, &text))
		return;
	type = spokei_hessian2_type(writer);
	if (!spokei_plain_str(text, &span) ||
	    (type != SPOKE_VALUE_ARRAY && type != SPOKE_VALUE_MAP)) {
		spokei_hessian2_refuse(writer);
		return;
	}
	name = spokei_hessian2_name_of(span);
	spokei_hessian2_write_container(writer, value, &name);
}

/* Writes a reference to a container that is open: a cycle. Without that container, the value is
 * null, as it reads. */
static void write_cycle(struct spokei_hessian2_writer *writer, uint64_t distance)
{
	uint32_t number = (uint32_t)(writer->tables.containers - distance);

	for (uint32_t i = 0; i < writer->depth; i++) {
		if (distance <= writer->tables.containers && writer->open[i] == number) {
			spokei_hessian2_reference(writer, number);
			return;
		}
	}
	spokei_hessian2_put_byte(&writer->put, 'N');
}

/* Writes a reference: a distance, and a copy of the target, which ends at `end`. */
/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
static void write_ref(struct spokei_hessian2_writer *writer, const unsigned char *end)
{
	struct spoke_span copy;
	struct spoke_value value;
	uint64_t distance;

	if (!spokei_hessian2_take(writer, &value))
		return;
	if (spokei_shapes[*value.data].type != SPOKE_VALUE_INT ||
	    spoke_value_u64(value, &distance) != 0 || distance == 0 || writer->at >= end) {
		spokei_hessian2_refuse(writer);
		return;
	}
	copy = (struct spoke_span){ writer->at, (size_t)(end - writer->at) };
	if (*writer->at == 0xc0) {
		writer->at++;
		write_cycle(writer, distance);
	} else if (spokei_hessian2_is_target(&writer->tables, distance, copy, writer->end)) {
		writer->at = end;
		spokei_hessian2_reference(writer, (uint32_t)(writer->tables.containers - distance));
	} else {
		spokei_hessian2_write_value(writer);
	}
}

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
static void write_ext(struct spokei_hessian2_writer *writer)
{
	const unsigned char *value = writer->at;
	struct spoke_value ext;
	const unsigned char *content;

	if (!spokei_hessian2_take(writer, &ext) || !enter(writer, UINT32_MAX))
		return;
	content = value + 1 + spokei_shapes[*value].width;
	if (*content == 0xff) {
		write_date(writer,
			   (struct spoke_span){ content + 1, (size_t)(writer->at - content) - 1 });
	} else {
		const unsigned char *end = writer->at;

		writer->at = content + 1;
		if (*content == SPOKE_EXT_TYPED)
			write_typed(writer, value);
		else if (*content == SPOKE_EXT_REF)
			write_ref(writer, end);
		else
			spokei_hessian2_refuse(writer);
		if (writer->at != end)
			spokei_hessian2_refuse(writer);
	}
	spokei_hessian2_close(writer);
}

/* --- values */

static void write_int(struct spokei_hessian2_writer *writer, struct spoke_value value)
{
	int64_t number;

	if (spoke_value_i64(value, &number) != 0)
		spokei_hessian2_refuse(writer);
	else if (value.len == 9 || number < INT32_MIN || number > INT32_MAX)
		spokei_hessian2_put_long(&writer->put, number);
	else
		spokei_hessian2_put_int(&writer->put, (int32_t)number);
}

static void write_double(struct spokei_hessian2_writer *writer, struct spoke_value value)
{
	double number = 0;

	(void)!spoke_value_double(value, &number);
	if (*value.data == 0xca)
		spokei_hessian2_put_float(&writer->put, (float)number);
	else
		spokei_hessian2_put_double(&writer->put, number);
}

static void write_scalar(struct spokei_hessian2_writer *writer, unsigned type)
{
	struct spoke_span bytes = { 0 };
	struct spoke_value value;

	if (!spokei_hessian2_take(writer, &value))
		return;
	if (type == SPOKE_VALUE_STR) {
		(void)!spoke_value_str(value, &bytes);
		spokei_hessian2_put_string(&writer->put, bytes.data, bytes.len);
	} else if (type == SPOKE_VALUE_INT) {
		write_int(writer, value);
	} else if (type == SPOKE_VALUE_DOUBLE) {
		write_double(writer, value);
	} else if (type == SPOKE_VALUE_BIN) {
		(void)!spoke_value_bin(value, &bytes);
		spokei_hessian2_put_binary(&writer->put, bytes.data, bytes.len);
	} else if (type == SPOKE_VALUE_BOOL) {
		spokei_hessian2_put_byte(&writer->put, *value.data == 0xc3 ? 'T' : 'F');
	} else {
		spokei_hessian2_put_byte(&writer->put, 'N');
	}
}

/* NOLINTNEXTLINE(misc-no-recursion): the depth of the values is bounded */
void spokei_hessian2_write_value(struct spokei_hessian2_writer *writer)
{
	struct spokei_hessian2_object object;
	unsigned type = spokei_hessian2_type(writer);

	if (type == SPOKE_VALUE_EXT)
		write_ext(writer);
	else if (type == SPOKE_VALUE_MAP && spokei_hessian2_find_object(writer, false, &object))
		spokei_hessian2_write_object(writer, &object);
	else if (type == SPOKE_VALUE_MAP || type == SPOKE_VALUE_ARRAY)
		spokei_hessian2_write_container(writer, writer->at, NULL);
	else
		write_scalar(writer, type);
}
