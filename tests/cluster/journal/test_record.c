/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of a journal: each is read as it was written. Whatever happened to a segment, no wrong
 * record is read, and damage to durable records is told from a torn tail.
 */
#include "cluster/journal/record.h"
#include "core/base/span.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <stdlib.h>
#include <string.h>

#define HEAD SPOKEI_SEGMENT_HEAD

enum {
	RECORDS = 8, /* of the segment of the rig */
	BATCH = 3,   /* of its second batch, which begins with the fourth record */
};

static const struct spokei_segment segment = {
	.number = 3,
	.previous_end = 0x01020304,
	.journal = "0123456789abcdef",
	.wall_ns = UINT64_C(0x1122334455667788),
	.consumer = UINT64_C(0x99aabbccddeeff00),
};

static struct {
	struct spokei_crc crc;
	struct spokei_buffer bytes; /* a segment */
	size_t at[RECORDS + 1];     /* where its records begin, and their end */
	size_t last;                /* where its last batch begins */
} rig;

static unsigned char *bytes(void)
{
	return spokei_buffer_data(&rig.bytes);
}

static size_t length(void)
{
	return spokei_buffer_len(&rig.bytes);
}

static struct spokei_record_open make_open(void)
{
	return (struct spokei_record_open){
		.service = spokei_span_of("demo.Echo"),
		.version = spokei_span_of("1.0"),
		.method = spokei_span_of("echo"),
		.arguments = spokei_span_of("\x01\x02"),
		.id = "fedcba9876543210",
		.begun_ns = 5,
		.lasts_ns = 7,
		.period_ns = UINT64_C(1) << 40,
		.retries = 3,
		.flags = SPOKEI_RECORD_ONCE,
		.tried = { .attempts = 1, .unsure = true, .mark = spokei_span_of("0000abcd.12") },
	};
}

/* Appends a record and notes where it begins. */
static void append(unsigned number)
{
	const struct spokei_record_tried tried = { .attempts = 9 };
	struct spokei_record_open open = make_open();
	int error;

	rig.at[number] = length();
	if (number % 4 == 3)
		error = spokei_record_put_ended(&rig.bytes, number, 2);
	else if (number % 4 == 2)
		error = spokei_record_put_tried(&rig.bytes, number, &tried);
	else
		error = spokei_record_put_open(&rig.bytes, number, &open);
	assert_int_equal(error, 0);
}

static void seal(size_t from, size_t durable)
{
	spokei_records_seal(&rig.crc, &segment, (uint32_t)durable, bytes() + from, length() - from);
}

/* Makes a segment of three batches. The first two are durable. */
static int set_up(void **state)
{
	unsigned char head[HEAD];

	(void)state;
	spokei_crc_init(&rig.crc);
	spokei_buffer_init(&rig.bytes, spoke_host_env(), 1u << 20);
	spokei_segment_put(&rig.crc, &segment, head);
	assert_int_equal(spokei_buffer_append(&rig.bytes, head, HEAD), 0);
	for (unsigned i = 0; i < BATCH; i++)
		append(i);
	seal(HEAD, HEAD);
	for (unsigned i = BATCH; i < 2 * BATCH; i++)
		append(i);
	seal(rig.at[BATCH], rig.at[BATCH]);
	for (unsigned i = 2 * BATCH; i < RECORDS; i++)
		append(i);
	seal(rig.at[2 * BATCH], rig.at[2 * BATCH]);
	rig.at[RECORDS] = length();
	rig.last = rig.at[2 * BATCH];
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	spokei_buffer_fini(&rig.bytes);
	return 0;
}

FIXTURE(set_up, tear_down);

/* --- reading, with all laws of what is read */

struct outcome {
	bool found[RECORDS];
	unsigned count;
	unsigned damaged;
	bool torn;
	size_t bad; /* the first */
};

/* Records are those of the rig: each is at its place, complete, and in order. */
static void note_found(struct outcome *outcome, const struct spokei_record *record, size_t end)
{
	struct spokei_record_open open;
	struct spokei_record_tried tried;
	uint32_t number;

	assert_in_range(record->ticket, 0, RECORDS - 1);
	assert_false(outcome->found[record->ticket]);
	assert_int_equal(end, rig.at[record->ticket + 1]);
	outcome->found[record->ticket] = true;
	outcome->count++;
	if (record->ticket % 4 == 3) {
		assert_int_equal(spokei_record_read_ended(record, &number), 0);
		assert_int_equal(number, 2);
	} else if (record->ticket % 4 == 2) {
		assert_int_equal(spokei_record_read_tried(record, &tried), 0);
		assert_int_equal(tried.attempts, 9);
		assert_false(tried.unsure);
	} else {
		assert_int_equal(spokei_record_read_open(record, &open), 0);
		assert_true(spokei_span_is(open.service, "demo.Echo"));
		assert_memory_equal(open.id, "fedcba9876543210", sizeof(open.id));
	}
}

/* Reads bytes as the segment of the rig, in memory of exactly this size. */
static struct outcome read_bytes(const void *from, size_t len, size_t end)
{
	unsigned char *exact = malloc(len ? len : 1);
	enum spokei_record_found found = SPOKEI_RECORD_FOUND;
	struct spokei_record_reader reader;
	struct spokei_record record;
	struct outcome outcome = { .bad = SIZE_MAX };

	assert_non_null(exact);
	memcpy(exact, from, len);
	spokei_record_begin(&reader, &rig.crc, &segment, exact, len,
			    (struct spokei_segment_end){ (uint32_t)end, 0 });
	while (found != SPOKEI_RECORD_END) {
		found = spokei_record_next(&reader, &record);
		assert_true(!outcome.torn || found == SPOKEI_RECORD_END);
		if (found == SPOKEI_RECORD_FOUND)
			note_found(&outcome, &record, reader.at);
		outcome.damaged += found == SPOKEI_RECORD_DAMAGED;
		outcome.torn = outcome.torn || found == SPOKEI_RECORD_TORN;
		if (found != SPOKEI_RECORD_FOUND && found != SPOKEI_RECORD_END &&
		    outcome.bad == SIZE_MAX)
			outcome.bad = reader.bad;
	}
	free(exact);
	return outcome;
}

static struct outcome read_rig(size_t end)
{
	return read_bytes(bytes(), length(), end);
}

/* --- CRC32C */

TEST(sums_are_those_of_rfc_3720)
{
	unsigned char block[32];

	assert_int_equal(spokei_crc_add(&rig.crc, 0, "123456789", 9), 0xe3069283);
	memset(block, 0, sizeof(block));
	assert_int_equal(spokei_crc_add(&rig.crc, 0, block, sizeof(block)), 0x8a9136aa);
	memset(block, 0xff, sizeof(block));
	assert_int_equal(spokei_crc_add(&rig.crc, 0, block, sizeof(block)), 0x62a8ab43);
	for (unsigned i = 0; i < sizeof(block); i++)
		block[i] = (unsigned char)i;
	for (unsigned cut = 0; cut <= sizeof(block); cut++) {
		uint32_t sum = spokei_crc_add(&rig.crc, 0, block, cut);

		sum = spokei_crc_add(&rig.crc, sum, block + cut, sizeof(block) - cut);
		assert_int_equal(sum, 0x46dd794e);
	}
}

/* --- heads */

TEST(head_is_read_as_it_was_written)
{
	struct spokei_segment read;

	assert_int_equal(spokei_segment_read(&rig.crc, bytes(), length(), &read), 0);
	assert_int_equal(read.number, segment.number);
	assert_int_equal(read.previous_end, segment.previous_end);
	assert_memory_equal(read.journal, segment.journal, SPOKEI_JOURNAL_ID);
	assert_int_equal(read.wall_ns, segment.wall_ns);
	assert_int_equal(read.consumer, segment.consumer);
}

TEST(head_with_any_flipped_bit_is_refused)
{
	struct spokei_segment read;

	for (size_t bit = 0; bit < 8 * HEAD; bit++) {
		int error;

		bytes()[bit / 8] ^= (unsigned char)(1u << bit % 8);
		error = spokei_segment_read(&rig.crc, bytes(), length(), &read);
		assert_int_equal(error, bit < 48 ? SPOKE_EINVAL : SPOKE_ECORRUPT);
		bytes()[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
}

TEST(head_of_a_newer_version_is_told_from_a_damaged_one)
{
	struct spokei_segment read;
	uint32_t sum;

	for (unsigned version = 2; version < 1000; version += 249) {
		bytes()[6] = (unsigned char)version;
		bytes()[7] = (unsigned char)(version >> 8);
		sum = spokei_crc_add(&rig.crc, 0, bytes(), 60);
		for (unsigned byte = 0; byte < 4; byte++)
			bytes()[60 + byte] = (unsigned char)(sum >> 8 * byte);
		assert_int_equal(spokei_segment_read(&rig.crc, bytes(), length(), &read),
				 SPOKE_EUNSUPPORTED);
	}
}

TEST(head_that_was_never_finished_is_told_from_a_wrong_one)
{
	unsigned char zeros[4096] = { 0 };
	struct spokei_segment read;

	for (size_t len = 0; len < HEAD; len++)
		assert_int_equal(spokei_segment_read(&rig.crc, bytes(), len, &read),
				 SPOKE_ETRUNCATED);
	assert_int_equal(spokei_segment_read(&rig.crc, zeros, sizeof(zeros), &read),
			 SPOKE_ETRUNCATED);
	zeros[HEAD - 1] = 1;
	assert_int_equal(spokei_segment_read(&rig.crc, zeros, sizeof(zeros), &read), SPOKE_EINVAL);
}

/* --- records */

TEST(records_are_read_as_they_were_written)
{
	struct outcome outcome = read_rig(0);

	assert_int_equal(outcome.count, RECORDS);
	assert_int_equal(outcome.damaged + outcome.torn, 0);
	outcome = read_rig(length());
	assert_int_equal(outcome.count, RECORDS);
	assert_int_equal(outcome.damaged + outcome.torn, 0);
}

TEST(every_field_of_a_ticket_comes_back)
{
	struct spokei_record_open open = make_open();
	struct spokei_record_reader reader;
	struct spokei_record_open read;
	struct spokei_record record;

	open.group = spokei_span_of("g");
	open.key = spokei_span_of("key");
	open.attachments = spokei_span_of("\x80");
	spokei_buffer_truncate(&rig.bytes, HEAD);
	assert_int_equal(spokei_record_put_open(&rig.bytes, UINT64_MAX, &open), 0);
	seal(HEAD, 17);
	spokei_record_begin(&reader, &rig.crc, &segment, bytes(), length(),
			    (struct spokei_segment_end){ 0, 0 });
	assert_int_equal(spokei_record_next(&reader, &record), SPOKEI_RECORD_FOUND);
	assert_int_equal(record.ticket, UINT64_MAX);
	assert_int_equal(record.durable, 17);
	assert_int_equal(spokei_record_read_open(&record, &read), 0);
	assert_true(spokei_span_same(read.service, open.service));
	assert_true(spokei_span_same(read.group, open.group));
	assert_true(spokei_span_same(read.version, open.version));
	assert_true(spokei_span_same(read.method, open.method));
	assert_true(spokei_span_same(read.arguments, open.arguments));
	assert_true(spokei_span_same(read.attachments, open.attachments));
	assert_true(spokei_span_same(read.key, open.key));
	assert_memory_equal(read.id, open.id, sizeof(read.id));
	assert_int_equal(read.begun_ns, open.begun_ns);
	assert_int_equal(read.lasts_ns, open.lasts_ns);
	assert_int_equal(read.period_ns, open.period_ns);
	assert_int_equal(read.retries, open.retries);
	assert_int_equal(read.tried.attempts, open.tried.attempts);
	assert_int_equal(read.tried.unsure, open.tried.unsure);
	assert_int_equal(read.tried.mark.len, open.tried.mark.len);
	assert_int_equal(read.flags, open.flags);
	assert_int_equal(spokei_record_next(&reader, &record), SPOKEI_RECORD_END);
}

TEST(every_field_of_an_answer_comes_back)
{
	const struct spokei_record_answer answer = {
		.service = spokei_span_of("S"),
		.group = spokei_span_of("g"),
		.version = spokei_span_of("1.0"),
		.method = spokei_span_of("m"),
		.id = spokei_span_of("order-7"),
		.print = UINT64_MAX,
		.caller = 5,
		.ended_ns = 6,
		.keeps_ns = 7,
		.dropped = true,
		.error = (uint32_t)SPOKE_EREMOTE,
		.error_code = (uint32_t)-8,
		.status = 100,
		.value = spokei_span_of("\x01"),
		.attachments = spokei_span_of("\x80"),
		.text = spokei_span_of("no"),
		.class_name = spokei_span_of("E"),
	};
	struct spokei_record_reader reader;
	struct spokei_record_answer read;
	struct spokei_record record;

	spokei_buffer_truncate(&rig.bytes, HEAD);
	assert_int_equal(spokei_record_put_answer(&rig.bytes, 9, &answer), 0);
	seal(HEAD, 17);
	spokei_record_begin(&reader, &rig.crc, &segment, bytes(), length(),
			    (struct spokei_segment_end){ 0, 0 });
	assert_int_equal(spokei_record_next(&reader, &record), SPOKEI_RECORD_FOUND);
	assert_int_equal(record.kind, SPOKEI_RECORD_ANSWER);
	assert_int_equal(record.ticket, 9);
	assert_int_equal(spokei_record_read_answer(&record, &read), 0);
	assert_true(spokei_span_same(read.service, answer.service));
	assert_true(spokei_span_same(read.group, answer.group));
	assert_true(spokei_span_same(read.version, answer.version));
	assert_true(spokei_span_same(read.method, answer.method));
	assert_true(spokei_span_same(read.id, answer.id));
	assert_true(spokei_span_same(read.value, answer.value));
	assert_true(spokei_span_same(read.attachments, answer.attachments));
	assert_true(spokei_span_same(read.text, answer.text));
	assert_true(spokei_span_same(read.class_name, answer.class_name));
	assert_true(read.print == answer.print && read.caller == 5);
	assert_true(read.ended_ns == 6 && read.keeps_ns == 7 && read.dropped);
	assert_int_equal((int32_t)read.error, SPOKE_EREMOTE);
	assert_int_equal((int32_t)read.error_code, -8);
	assert_int_equal(read.status, 100);
	assert_int_equal(spokei_record_next(&reader, &record), SPOKEI_RECORD_END);
}

/* The example in FORMAT.md. */
TEST(bytes_are_those_of_the_documented_format)
{
	static const unsigned char ended[] = {
		0x19, 0,    0,    0,    0xce, 0xb9, 0xe1, 0xba, /* length, sum */
		0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* ticket */
		0x40, 0,    0,    0,    0x03, 0x81, 0xa1, 0x65, /* durable, kind, a map: "e" */
		0x02, 0,    0,    0,    0,    0,    0,    0,    /* 2, padding */
	};

	assert_memory_equal(bytes(),
			    "SPOKEJ\1\0\3\0\0\0\4\3\2\1"
			    "0123456789abcdef\x88\x77\x66\x55\x44\x33\x22\x11",
			    40);
	spokei_buffer_truncate(&rig.bytes, HEAD);
	assert_int_equal(spokei_record_put_ended(&rig.bytes, UINT64_C(0x0102030405060708), 2), 0);
	seal(HEAD, HEAD);
	assert_int_equal(length() - HEAD, sizeof(ended));
	assert_memory_equal(bytes() + HEAD, ended, sizeof(ended));
}

TEST(segment_cut_at_any_byte_has_the_records_before_the_cut)
{
	for (size_t len = HEAD; len < length(); len++) {
		struct outcome outcome = read_bytes(bytes(), len, 0);
		unsigned whole = 0;

		while (rig.at[whole + 1] <= len)
			whole++;
		assert_int_equal(outcome.count, whole);
		assert_int_equal(outcome.damaged, 0);
		assert_int_equal(outcome.torn, len != rig.at[whole]);

		/* A cut of an earlier segment is damage wherever it is. */
		outcome = read_bytes(bytes(), len, length());
		assert_int_equal(outcome.count, whole);
		assert_in_range(outcome.damaged, 1, 2);
		assert_int_equal(outcome.bad, rig.at[whole]);
	}
}

TEST(any_flipped_bit_is_found_and_spoils_one_record)
{
	for (size_t bit = 8 * HEAD; bit < 8 * length(); bit++) {
		struct outcome outcome;
		unsigned hit = 0;

		while (rig.at[hit + 1] <= bit / 8)
			hit++;
		bytes()[bit / 8] ^= (unsigned char)(1u << bit % 8);
		outcome = read_rig(0);
		assert_int_equal(outcome.bad, rig.at[hit]);
		assert_int_equal(outcome.torn, bit / 8 >= rig.last);
		assert_int_equal(outcome.damaged, bit / 8 < rig.last);
		assert_int_equal(outcome.count, bit / 8 < rig.last ? RECORDS - 1 : hit);
		outcome = read_rig(length());
		assert_int_equal(outcome.bad, rig.at[hit]);
		assert_int_equal(outcome.damaged, 1);
		assert_int_equal(outcome.count, RECORDS - 1);
		bytes()[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
}

TEST(flipped_length_is_bounded)
{
	static const uint32_t lengths[] = { 0,  1,          8,          20,         21,
					    22, 0x7fffffff, 0xffffffff, 0xfffffff8, 1u << 20 };

	for (unsigned i = 0; i < LENGTH(lengths); i++) {
		for (unsigned which = 0; which < RECORDS; which++) {
			unsigned char *record = bytes() + rig.at[which];
			unsigned char before[4];
			struct outcome outcome;

			memcpy(before, record, 4);
			for (unsigned byte = 0; byte < 4; byte++)
				record[byte] = (unsigned char)(lengths[i] >> 8 * byte);
			outcome = read_rig(0);
			assert_int_equal(outcome.bad, rig.at[which]);
			assert_int_equal(outcome.damaged, which < 2 * BATCH);
			assert_int_equal(outcome.count, which < 2 * BATCH ? RECORDS - 1 : which);
			memcpy(record, before, 4);
		}
	}
}

TEST(allocated_zeros_after_the_last_record_are_its_end)
{
	static const unsigned char zeros[100];
	struct outcome outcome;

	assert_int_equal(spokei_buffer_append(&rig.bytes, zeros, sizeof(zeros)), 0);
	outcome = read_rig(0);
	assert_int_equal(outcome.count, RECORDS);
	assert_int_equal(outcome.torn + outcome.damaged, 0);
	bytes()[length() - 1] = 1;
	outcome = read_rig(0);
	assert_int_equal(outcome.count, RECORDS);
	assert_true(outcome.torn);
	assert_int_equal(outcome.bad, rig.at[RECORDS]);
}

/* A record may reach the disk before those that were written ahead of it. */
TEST(hole_in_the_last_batch_is_torn_and_in_an_earlier_one_damage)
{
	for (unsigned which = 0; which < RECORDS - 1; which++) {
		size_t len = rig.at[which + 1] - rig.at[which];
		unsigned char before[200];
		struct outcome outcome;

		assert_true(len <= sizeof(before));
		memcpy(before, bytes() + rig.at[which], len);
		memset(bytes() + rig.at[which], 0, len);
		outcome = read_rig(0);
		assert_int_equal(outcome.bad, rig.at[which]);
		assert_int_equal(outcome.torn, which >= 2 * BATCH);
		assert_int_equal(outcome.damaged, which < 2 * BATCH);
		assert_int_equal(outcome.count, which < 2 * BATCH ? RECORDS - 1 : which);
		memcpy(bytes() + rig.at[which], before, len);
	}
}

TEST(records_of_another_segment_or_journal_are_none)
{
	struct spokei_segment other = segment;

	for (unsigned which = 0; which < 2; which++) {
		struct outcome outcome;

		other = segment;
		other.number += which == 0;
		other.journal[15] ^= which == 1;
		spokei_records_seal(&rig.crc, &other, HEAD, bytes() + rig.last,
				    length() - rig.last);
		outcome = read_rig(0);
		assert_int_equal(outcome.count, 2 * BATCH);
		assert_true(outcome.torn);
	}
	seal(rig.last, rig.last);
	assert_int_equal(read_rig(0).count, RECORDS);
}

TEST(record_that_does_not_fit_leaves_the_buffer_as_it_was)
{
	struct spokei_record_open open = make_open();
	struct spokei_buffer small;

	for (size_t max = 0; max < 200; max++) {
		int error;

		spokei_buffer_init(&small, spoke_host_env(), max);
		error = spokei_record_put_open(&small, 1, &open);
		assert_true(error == 0 || error == SPOKE_ETOOLARGE || error == SPOKE_ENOMEM);
		assert_int_equal(spokei_buffer_len(&small), error ? 0 : rig.at[1] - rig.at[0]);
		spokei_buffer_fini(&small);
	}
}

/* --- bodies */

TEST(body_with_a_wrong_field_is_corrupt)
{
	static const char *const keys[] = { "s", "m", "v", "i", "b", "l", "p", "r", "n" };
	struct spokei_record_reader reader;
	struct spokei_record_open open;
	struct spokei_record record;
	struct spokei_record_tried tried;
	uint32_t number;

	spokei_record_begin(&reader, &rig.crc, &segment, bytes(), length(),
			    (struct spokei_segment_end){ 0, 0 });
	assert_int_equal(spokei_record_next(&reader, &record), SPOKEI_RECORD_FOUND);
	assert_int_equal(spokei_record_read_tried(&record, &tried), SPOKE_ECORRUPT);
	assert_int_equal(spokei_record_read_ended(&record, &number), SPOKE_ECORRUPT);
	for (unsigned i = 0; i < LENGTH(keys); i++) {
		unsigned char *key = bytes() + HEAD + SPOKEI_RECORD_HEAD;
		bool optional = keys[i][0] == 'v';

		while (key[0] != 0xa1 || key[1] != (unsigned char)keys[i][0])
			key++;
		key[1] = 'z'; /* an unknown field, which is skipped */
		assert_int_equal(spokei_record_read_open(&record, &open),
				 optional ? 0 : SPOKE_ECORRUPT);
		key[1] = (unsigned char)keys[i][0];
		assert_int_equal(spokei_record_read_open(&record, &open), 0);
	}
}

/* --- a hostile file */

TEST(search_in_a_hostile_segment_ends)
{
	enum {
		SIZE = 4u << 20
	};
	unsigned char *hostile = malloc(SIZE);
	struct spokei_record_reader reader;
	struct spokei_record record;
	unsigned steps = 0;

	assert_non_null(hostile);
	memset(hostile, 0, SIZE);
	for (size_t at = HEAD; at + 24 <= SIZE; at += 8) {
		uint32_t len = (uint32_t)(SIZE - at);

		for (unsigned byte = 0; byte < 4; byte++)
			hostile[at + byte] = (unsigned char)(len >> 8 * byte);
		hostile[at + 4] = 1; /* is also the kind of the record 16 bytes before */
	}
	spokei_record_begin(&reader, &rig.crc, &segment, hostile, SIZE,
			    (struct spokei_segment_end){ 0, 0 });
	while (spokei_record_next(&reader, &record) != SPOKEI_RECORD_END)
		assert_in_range(++steps, 1, 2);
	/* It is taken for damage, because the rest was not looked at. */
	assert_int_equal(reader.search_left, 0);
	free(hostile);
}
