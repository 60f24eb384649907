/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a reader. The table of references lies at the end of the memory in use and moves
 * when the scratch grows; its entry N lies N + 1 entries before the end.
 */
#include "transport/codec/hessian2/reader.h"

#define ENTRY sizeof(struct spokei_hessian_entry)

void spokei_hessian_settle(struct spokei_hessian_reader *reader)
{
	size_t held = reader->scratch->capacity;

	reader->capacity = held < reader->capacity_max ? held : reader->capacity_max;
}

int spokei_hessian_grow(struct spokei_hessian_reader *reader, size_t len)
{
	struct spokei_buffer *scratch = reader->scratch;
	size_t written = spokei_hessian_written(reader);
	size_t tables = ENTRY * reader->begun;
	size_t before = reader->capacity;
	size_t need = written + tables + len;

	reader->swollen |= need > reader->capacity_max;
	if (written > reader->bytes_max || reader->swollen)
		return SPOKE_ETOOLARGE;
	/* All bytes count as content, so that the buffer preserves them. */
	spokei_buffer_commit(scratch, before - scratch->end);
	if (spokei_buffer_reserve(scratch, need - before) == NULL)
		return SPOKE_ENOMEM;
	spokei_hessian_settle(reader);
	memmove(scratch->bytes + reader->capacity - tables, scratch->bytes + before - tables,
		tables);
	reader->out = scratch->bytes + written;
	reader->out_end = scratch->bytes + reader->capacity - tables;
	return 0;
}

int spokei_hessian_enter(struct spokei_hessian_reader *reader, uint32_t *ret_number)
{
	int error = spokei_hessian_room(reader, ENTRY);
	struct spokei_hessian_entry entry = { 0 };

	if (error)
		return error;
	entry.at = spokei_hessian_written(reader);
	reader->out_end -= ENTRY;
	memcpy(reader->out_end, &entry, ENTRY);
	*ret_number = reader->begun++;
	return 0;
}

/* The table has the alignment of the scratch's end, which is any. */
static unsigned char *place_of(const struct spokei_hessian_reader *reader, uint32_t number)
{
	return reader->scratch->bytes + reader->capacity - ENTRY * ((size_t)number + 1);
}

void spokei_hessian_leave(struct spokei_hessian_reader *reader, uint32_t number, uint32_t items,
			  uint32_t levels)
{
	struct spokei_hessian_entry entry = spokei_hessian_entry(reader, number);

	entry.len = spokei_hessian_written(reader) - entry.at;
	entry.items = items;
	entry.levels = levels;
	memcpy(place_of(reader, number), &entry, ENTRY);
}

struct spokei_hessian_entry spokei_hessian_entry(const struct spokei_hessian_reader *reader,
						 uint32_t number)
{
	struct spokei_hessian_entry entry;

	memcpy(&entry, place_of(reader, number), ENTRY);
	return entry;
}
