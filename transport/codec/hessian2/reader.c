/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a reader. The table of references lies at the end of the memory in use and moves
 * when the scratch grows; its entry N lies N + 1 entries before the end.
 */
#include "transport/codec/hessian2/reader.h"

#define ENTRY sizeof(uint32_t)

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

	if (written > reader->bytes_max || need > reader->capacity_max)
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
	uint32_t at;

	if (error)
		return error;
	at = spokei_hessian_written(reader);
	reader->out_end -= ENTRY;
	memcpy(reader->out_end, &at, ENTRY);
	*ret_number = reader->begun++;
	return 0;
}

uint32_t spokei_hessian_position(const struct spokei_hessian_reader *reader, uint32_t number)
{
	const unsigned char *end = reader->scratch->bytes + reader->capacity;
	uint32_t at;

	memcpy(&at, end - ENTRY * (number + 1), ENTRY);
	return at;
}
