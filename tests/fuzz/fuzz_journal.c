/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the readers of a journal. The first byte decides what is made of the others:
 *
 * - below 0x80: a segment; odd numbers: with good sums, so that bodies are reached, too. Reading
 *   ends, stays inside the segment, moves forward, and each record that was read is written again
 *   with the same bytes.
 * - from 0x80 on: a journal of one to four segments, whose heads are good, or have one wrong byte.
 *   A salvage reads all that a strict reading reads, and is never refused. The tickets are those of
 *   the map, with all their parts in their own memory.
 */
#include "cluster/journal/log.h"
#include "cluster/journal/replay.h"
#include "tests/fuzz/fuzz.h"

#include <spoke/host.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEAD SPOKEI_SEGMENT_HEAD
#define FOLDER "j"

enum {
	SEGMENTS = 4,
	SIZE = 4096, /* of a segment, at most */
	READ_SIZE = 4 * SPOKEI_LOG_SEGMENT,
};

static const struct spokei_segment segment = { .number = 1, .journal = "0123456789abcdef" };
static struct spokei_crc crc;

static size_t padded(size_t len)
{
	return (len + 7u) & ~(size_t)7u;
}

/* Gives good sums to the records, as far as their lengths are possible. */
static void repair(const struct spokei_segment *of, unsigned char *bytes, size_t len)
{
	size_t at = HEAD;

	while (at + SPOKEI_RECORD_HEAD < len) {
		size_t size = bytes[at] | (size_t)bytes[at + 1] << 8;

		bytes[at + 2] = bytes[at + 3] = 0;
		if (size <= SPOKEI_RECORD_HEAD || padded(size) > len - at)
			return;
		memset(bytes + at + size, 0, padded(size) - size);
		spokei_records_seal(&crc, of, bytes[at + 16], bytes + at, padded(size));
		at += padded(size);
	}
}

static void check_record(const struct spokei_record *record, const unsigned char *bytes, size_t len)
{
	const unsigned char *body = record->body.data;
	struct spokei_record_open open;
	unsigned char *again = malloc(len);
	struct spokei_record_answer answer;
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
	if (spokei_record_read_answer(record, &answer) == 0)
		demand(answer.service.len > 0 && record->kind == SPOKEI_RECORD_ANSWER,
		       "answers are of one kind");
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

	spokei_record_begin(&reader, &crc, &segment, bytes, len,
			    (struct spokei_segment_end){ end, 0 });
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

/* --- whole journals */

static struct {
	unsigned char bytes[SEGMENTS][SIZE];
	size_t len[SEGMENTS];
	unsigned count;
	struct spoke_files files;
	struct spoke_env env;
	unsigned char *block; /* of READ_SIZE bytes, which takes long to make */
} disk;

static ssize_t read_file(void *ctx, const char *path, void *bytes, size_t size)
{
	unsigned long number = strtoul(path + strlen(FOLDER) + 1, NULL, 10);

	(void)ctx;
	demand(number >= 1 && number <= disk.count && size >= SIZE,
	       "a segment of the list is read");
	memcpy(bytes, disk.bytes[number - 1], disk.len[number - 1]);
	return (ssize_t)disk.len[number - 1];
}

static ssize_t list_files(void *ctx, const char *folder, char *names, size_t size)
{
	size_t len = 0;

	(void)ctx;
	(void)folder;
	for (unsigned i = disk.count; i > 0; i--)
		len += (size_t)snprintf(names + len, size - len, "%08u.spokej", i) + 1;
	return (ssize_t)len;
}

static int open_file(void *ctx, const char *path, bool is_new, int *ret_fd)
{
	(void)ctx;
	(void)path;
	(void)is_new;
	(void)ret_fd;
	return -EROFS;
}

static void *resize(void *ctx, void *memory, size_t old, size_t size)
{
	if (size == READ_SIZE)
		return disk.block;
	return old == READ_SIZE ? NULL : spoke_host_env()->resize(ctx, memory, old, size);
}

static void throw_dice(void *ctx, void *bytes, size_t len)
{
	(void)ctx;
	memset(bytes, 7, len);
}

/* Makes a segment of a part of the input: two bytes of the end of the segment before, the place
 * and the change of a wrong byte of its head, and its records. */
static void make_segment(const uint8_t *data, size_t size, bool sums)
{
	struct spokei_segment head = segment;
	unsigned number = disk.count++;
	unsigned char *bytes = disk.bytes[number];
	size_t len = size > 4 ? size - 4 : 0;

	len = len > SIZE - HEAD ? SIZE - HEAD : len;
	head.number = number + 1;
	head.previous_end = size > 1 && number > 0 ? data[0] | (uint32_t)data[1] << 8 : 0;
	if (head.previous_end == UINT16_MAX && number > 0)
		head.previous_end = (uint32_t)disk.len[number - 1];
	disk.len[number] = HEAD + len;
	if (len > 0)
		memcpy(bytes + HEAD, data + 4, len);
	if (sums)
		repair(&head, bytes, HEAD + len);
	spokei_segment_put(&crc, &head, bytes);
	if (size > 3)
		bytes[data[2] % HEAD] ^= data[3];
	if (size > 3 && data[2] == UINT8_MAX)
		disk.len[number] = data[3] % (HEAD + len + 1);
}

static void check_tickets(const struct spokei_replay *replay)
{
	uint64_t bytes = 0;
	uint32_t count = 0;

	for (struct spoke_list *node = replay->tickets.next; node != &replay->tickets;
	     node = node->next) {
		const struct spokei_replay_ticket *ticket =
			spoke_container_of(node, struct spokei_replay_ticket, node);
		const unsigned char *method = ticket->open.method.data;

		demand(spokei_map_get(&replay->by_number, &ticket->number,
				      sizeof(ticket->number)) == ticket,
		       "a ticket has one entry");
		demand(method >= ticket->bytes &&
			       method + ticket->open.method.len <=
				       (const unsigned char *)ticket + ticket->size,
		       "a ticket owns its parts");
		demand(ticket->segment >= 1 && ticket->segment <= disk.count,
		       "a ticket is in a segment");
		bytes += ticket->size;
		count++;
	}
	demand(count == replay->by_number.count && bytes == replay->bytes, "tickets are counted");
}

/* Reads the journal. Returns the number of tickets, or an error. */
static int read_journal(bool salvages, struct spokei_log_report *report)
{
	struct spokei_replay replay;
	const struct spokei_log_options options = { .env = &disk.env,
						    .folder = FOLDER,
						    .salvages = salvages,
						    .take = spokei_replay_take,
						    .arg = &replay };
	int result;

	spokei_replay_init(&replay, &disk.env, salvages);
	result = spokei_log_read(&options, report);
	check_tickets(&replay);
	if (result == 0)
		result = (int)replay.by_number.count;
	spokei_replay_fini(&replay);
	return result;
}

static void make_disk(void)
{
	if (disk.block == NULL) {
		disk.block = malloc(READ_SIZE);
		demand(disk.block != NULL, "there is memory");
		disk.env = *spoke_host_env();
		disk.files = (struct spoke_files){ .read = read_file,
						   .open_log = open_file,
						   .list = list_files };
		disk.env.files = &disk.files;
		disk.env.resize = resize;
		disk.env.dice = throw_dice;
	}
	disk.count = 0;
}

static void read_whole(const uint8_t *data, size_t size)
{
	unsigned count = 1u + data[0] / 2u % SEGMENTS;
	struct spokei_log_report report;
	size_t part = (size - 1) / count;
	int strict;
	int salvage;

	make_disk();
	for (unsigned i = 0; i < count; i++)
		make_segment(data + 1 + i * part, part, data[0] % 2 == 1);
	strict = read_journal(false, &report);
	demand(strict >= 0 || strict == SPOKE_ECORRUPT || strict == SPOKE_EINVAL ||
		       strict == SPOKE_EUNSUPPORTED,
	       "a reading has a known end");
	demand(strict < 0 || report.damaged == 0, "damage is refused");
	salvage = read_journal(true, &report);
	demand(strict < 0 || salvage == strict, "a salvage reads the same without damage");
	demand(salvage >= 0, "damage is salvaged");
}

FUZZ(journal)
{
	size_t len = size > 0 ? size - 1 + HEAD : HEAD;
	unsigned char *bytes = malloc(len);
	struct spokei_segment read;

	demand(bytes != NULL, "there is memory");
	if (crc.table[0][1] == 0)
		spokei_crc_init(&crc);
	if (size > 0 && data[0] >= 0x80) {
		free(bytes);
		read_whole(data, size);
		return 0;
	}
	if (size > 0 && spokei_segment_read(&crc, data, size, &read) == 0)
		demand(read.number > 0, "a segment has a number");
	spokei_segment_put(&crc, &segment, bytes);
	if (size > 1)
		memcpy(bytes + HEAD, data + 1, size - 1);
	if (size > 0 && data[0] % 2 == 1)
		repair(&segment, bytes, len);
	read_all(bytes, len, 0);
	read_all(bytes, len, (uint32_t)len);
	if (size > 0)
		read_all(bytes, len, (uint32_t)len + data[0]);
	free(bytes);
	return 0;
}
