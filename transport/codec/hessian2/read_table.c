/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what depends on the tables of a reader: references, class definitions and types.
 */
#include "transport/codec/hessian2/reader.h"

/* --- references */

/* Writes the head of an ext REF with a payload of `len` bytes, and makes room for the payload. */
static int put_reference(struct spokei_hessian_reader *reader, size_t len)
{
	int error = spokei_hessian_room(reader, 6 + len);

	if (error)
		return error;
	if (len == 2 || len == 4 || len == 8 || len == 16) {
		unsigned head = len == 2 ? 0xd5 : len == 4 ? 0xd6 : len == 8 ? 0xd7 : 0xd8;

		*reader->out++ = (unsigned char)head;
	} else if (len <= UINT8_MAX) {
		spokei_hessian_put(reader, 0xc7, len, 1);
	} else if (len <= UINT16_MAX) {
		spokei_hessian_put(reader, 0xc8, len, 2);
	} else {
		spokei_hessian_put(reader, 0xc9, len, 4);
	}
	*reader->out++ = SPOKE_EXT_REF;
	return 0;
}

static unsigned number_len(uint32_t number)
{
	return number < 0x80 ? 1 : number <= UINT8_MAX ? 2 : number <= UINT16_MAX ? 3 : 5;
}

/* Writes a reference to a container that is still open. */
static int put_cycle(struct spokei_hessian_reader *reader, uint32_t distance)
{
	int error = put_reference(reader, number_len(distance) + 1);

	if (error)
		return error;
	spokei_hessian_put_number(reader, distance);
	*reader->out++ = 0xc0;
	return 0;
}

/* Writes a reference with a copy of its target. */
static int put_copy(struct spokei_hessian_reader *reader, const struct spokei_hessian_entry *entry,
		    uint32_t distance)
{
	int error = spokei_hessian_take(reader, entry->items);

	reader->swollen |= entry->items > reader->copies;
	if (reader->swollen)
		return SPOKE_ETOOLARGE;
	reader->copies -= entry->items;
	if (error == 0)
		error = put_reference(reader, number_len(distance) + entry->len);
	if (error)
		return error;
	spokei_hessian_put_number(reader, distance);
	memcpy(reader->out, reader->scratch->bytes + entry->at, entry->len);
	reader->out += entry->len;
	return 0;
}

int spokei_hessian_read_reference(struct spokei_hessian_reader *reader, uint32_t own)
{
	struct spokei_hessian_entry entry;
	int32_t read;
	uint32_t number;
	int error;

	reader->at++;
	error = spokei_hessian_read_int(reader, &read);
	if (error)
		return error;
	number = (uint32_t)read;
	if (number >= reader->begun)
		return SPOKE_ECORRUPT;
	entry = spokei_hessian_entry(reader, number);
	error = spokei_hessian_deepen(reader, 1 + entry.levels); /* one of the ext */
	if (error == 0)
		error = spokei_hessian_take(reader, 2); /* the distance, and the copy or nil */
	if (error)
		return error;
	if (entry.len > 0)
		return put_copy(reader, &entry, reader->begun - number);
	if (!reader->cycles && number != own)
		return SPOKE_ECYCLE;
	return put_cycle(reader, reader->begun - number);
}

/* --- classes and types */

int spokei_hessian_define(struct spokei_hessian_reader *reader)
{
	uint32_t start = spokei_hessian_written(reader);
	struct spokei_hessian_class *made = &reader->classes[reader->class_count];
	int32_t count;
	int error;

	if (reader->class_count == SPOKEI_HESSIAN_CLASSES_MAX)
		return SPOKE_ETOOLARGE;
	if (spokei_hessian_left(reader) < 2)
		return SPOKE_ETRUNCATED;
	made->name = (uint32_t)(reader->at - reader->body) + 1;
	reader->at++;
	error = spokei_hessian_read_name(reader);
	reader->out = reader->scratch->bytes + start;
	if (error == 0)
		error = spokei_hessian_read_int(reader, &count);
	if (error)
		return error;
	if (count < 0)
		return SPOKE_ECORRUPT;
	if ((uint32_t)count > SPOKEI_HESSIAN_FIELDS_MAX)
		return SPOKE_ETOOLARGE;
	if ((uint32_t)count > spokei_hessian_left(reader))
		return SPOKE_ETRUNCATED;
	made->count = (uint32_t)count;
	made->names = (uint32_t)(reader->at - reader->body);
	reader->class_count++;
	while (error == 0 && count-- > 0) {
		if (spokei_hessian_left(reader) == 0)
			return SPOKE_ETRUNCATED;
		error = spokei_hessian_read_name(reader);
		/* The name was only checked; each object contains it. */
		reader->out = reader->scratch->bytes + start;
	}
	return error;
}

static bool is_text(unsigned tag)
{
	return tag < 0x20 || (tag >= 0x30 && tag < 0x34) || tag == 'R' || tag == 'S';
}

int spokei_hessian_read_type(struct spokei_hessian_reader *reader)
{
	uint32_t after;
	int32_t number;
	int error;

	if (spokei_hessian_left(reader) == 0)
		return SPOKE_ETRUNCATED;
	if (is_text(*reader->at)) {
		if (reader->type_count == SPOKEI_HESSIAN_TYPES_MAX)
			return SPOKE_ETOOLARGE;
		reader->types[reader->type_count++] = (uint32_t)(reader->at - reader->body);
		return spokei_hessian_read_name(reader);
	}
	error = spokei_hessian_read_int(reader, &number);
	if (error)
		return error;
	if ((uint32_t)number >= reader->type_count)
		return SPOKE_ECORRUPT;
	return spokei_hessian_read_text_at(reader, reader->types[number], &after);
}
