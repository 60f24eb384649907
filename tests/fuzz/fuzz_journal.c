/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the reader of a journal's segments. The first byte decides how the segment is made: as it
 * is, or with good sums, so that bodies are reached, too. Reading ends, stays inside the segment,
 * moves forward, and each record that was read is written again with the same bytes.
 */
#include "cluster/journal/record.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#define HEAD SPOKEI_SEGMENT_HEAD

static const struct spokei_segment segment = { .number = 1, .journal = "0123456789abcdef" };
static struct spokei_crc crc;

static size_t padded(size_t len)
{
	return (len + 7u) & ~(size_t)7u;
}

/* Gives good sums to the records, as far as their lengths are possible. */
static void repair(unsigned char *bytes, size_t len)
{
	size_t at = HEAD;

	while (at + SPOKEI_RECORD_HEAD < len) {
		size_t size = bytes[at] | (size_t)bytes[at + 1] << 8;

		bytes[at + 2] = bytes[at + 3] = 0;
		if (size <= SPOKEI_RECORD_HEAD || padded(size) > len - at)
			return;
		memset(bytes + at + size, 0, padded(size) - size);
		spokei_records_seal(&crc, &segment, bytes[at + 16], bytes + at, padded(size));
		at += padded(size);
	}
}

static void check_record(const struct spokei_record *record, const unsigned char *bytes, size_t len)
{
	const unsigned char *body = record->body.data;
	struct spokei_record_open open;
	unsigned char *again = malloc(len);
	struct spokei_record_tried tried;
	uint32_t number;

	demand(again != NULL, "there is memory");
	demand(body == bytes + SPOKEI_RECORD_HEAD, "a body lies in its record");
	demand(padded(SPOKEI_RECORD_HEAD + record->body.len) == len, "a record has one body");
	memcpy(again, bytes, len);
	spokei_records_seal(&crc, &segment, record->durable, again, len);
	demand(memcmp(again, bytes, len) == 0, "a record is written as it was read");
	free(again);
	if (spokei_record_read_open(record, &open) == 0)
		demand(open.service.len > 0 && open.method.len > 0, "a ticket has a method");
	if (spokei_record_read_tried(record, &tried) == 0)
		demand(tried.mark.len <= SPOKEI_MARK_MAX && record->kind == SPOKEI_RECORD_TRIED,
		       "attempts are of one kind");
	if (spokei_record_read_ended(record, &number) == 0)
		demand(record->kind == SPOKEI_RECORD_ENDED, "a settlement is of one kind");
}

static void read_all(const unsigned char *bytes, size_t len, uint32_t end)
{
	enum spokei_record_found found = SPOKEI_RECORD_FOUND;
	struct spokei_record_reader reader;
	struct spokei_record record;
	size_t before = HEAD;
	bool torn = false;

	spokei_record_begin(&reader, &crc, &segment, bytes, len, end);
	while (found != SPOKEI_RECORD_END) {
		found = spokei_record_next(&reader, &record);
		demand(reader.at <= len, "reading stays inside");
		demand(reader.at >= before, "reading moves forward");
		demand(!torn || found == SPOKEI_RECORD_END, "nothing follows a torn tail");
		demand(end == 0 || found != SPOKEI_RECORD_TORN, "an earlier segment is not torn");
		if (found == SPOKEI_RECORD_FOUND)
			check_record(&record, bytes + before, reader.at - before);
		torn = found == SPOKEI_RECORD_TORN;
		before = reader.at;
	}
}

FUZZ(journal)
{
	size_t len = size > 0 ? size - 1 + HEAD : HEAD;
	unsigned char *bytes = malloc(len);
	struct spokei_segment read;

	demand(bytes != NULL, "there is memory");
	if (crc.table[0][1] == 0)
		spokei_crc_init(&crc);
	if (size > 0 && spokei_segment_read(&crc, data, size, &read) == 0)
		demand(read.number > 0, "a segment has a number");
	spokei_segment_put(&crc, &segment, bytes);
	if (size > 1)
		memcpy(bytes + HEAD, data + 1, size - 1);
	if (size > 0 && data[0] % 2 == 1)
		repair(bytes, len);
	read_all(bytes, len, 0);
	read_all(bytes, len, (uint32_t)len);
	if (size > 0)
		read_all(bytes, len, (uint32_t)len + data[0]);
	free(bytes);
	return 0;
}
