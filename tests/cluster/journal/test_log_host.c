/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a journal on a real disk: killed at each byte, damaged in each byte, and in the
 * hands of others. No ticket that was told is lost, and none is made up.
 */
#define _GNU_SOURCE
#include "cluster/journal/log.h"
#include "cluster/journal/replay.h"
#include "core/base/span.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <spoke/host.h>
#include <spoke/journal.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SEGMENT = 512, /* bytes */
	SEGMENTS = 8,
	RECORDS = 32,
	TICKETS = 12,
	PATH = 96,
	BLOCK = 4 * SPOKEI_LOG_SEGMENT, /* bytes of the buffer for a segment */
};

/* A record that was written, and what it says. */
struct entry {
	uint32_t segment;
	uint32_t from;
	uint32_t to;
	uint32_t whole; /* the same, without the zeros at the end, which are there before */
	enum spokei_record_kind kind;
	uint64_t ticket;
	uint32_t attempts;
};

static struct {
	struct spoke_env own; /* the host's, but for a large block that is used again and again */
	const struct spoke_env *env;
	unsigned char *block;
	char folder[FOLDER_PATH];
	struct spokei_journal_log log;
	struct spokei_log_report report;
	struct spokei_replay replay;
	unsigned char files[SEGMENTS][SEGMENT]; /* of the whole journal */
	unsigned segments;
	struct entry entries[RECORDS];
	unsigned count;
} rig;

static void *resize(void *ctx, void *memory, size_t old, size_t size)
{
	if (size == BLOCK)
		return rig.block;
	return old == BLOCK ? NULL : spoke_host_env()->resize(ctx, memory, old, size);
}

static void name(uint32_t number, char path[PATH])
{
	(void)snprintf(path, PATH, "%s/%08u.spokej", rig.folder, (unsigned)number);
}

static void put_file(uint32_t number, const void *bytes, size_t len)
{
	char path[PATH];
	int fd;

	name(number, path);
	(void)unlink(path); /* to cut it takes the disk longer */
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	assert_int_equal(close(fd), 0);
}

/* Returns the length of a segment; -1: it does not exist. */
static ssize_t get_file(uint32_t number, unsigned char bytes[SEGMENT])
{
	char path[PATH];

	name(number, path);
	return rig.env->files->read(rig.env->ctx, path, bytes, SEGMENT);
}

static void remove_files(void)
{
	char path[PATH];

	for (uint32_t number = 1; number <= SEGMENTS + 1; number++) {
		name(number, path);
		(void)unlink(path);
	}
}

/* Makes the first `count` segments of the journal anew. */
static void put_files(unsigned count)
{
	remove_files();
	for (unsigned i = 0; i < count; i++)
		put_file(i + 1, rig.files[i], SEGMENT);
}

static struct spokei_log_options prepare(bool salvages)
{
	spokei_replay_fini(&rig.replay);
	spokei_replay_init(&rig.replay, rig.env, salvages);
	return (struct spokei_log_options){ .env = rig.env,
					    .folder = rig.folder,
					    .journal = "0123456789abcdef",
					    .segment_size = SEGMENT,
					    .salvages = salvages,
					    .take = spokei_replay_take,
					    .arg = &rig.replay };
}

/* Reads as a process that starts, without a new segment, which takes the disk long. */
static int read_log(bool salvages)
{
	const struct spokei_log_options options = prepare(salvages);

	return spokei_log_read(&options, &rig.report);
}

static int open_log(bool salvages)
{
	const struct spokei_log_options options = prepare(salvages);
	int status;
	int error = spokei_log_lock(&rig.log, rig.env, rig.folder, &status);

	assert_int_equal(error, 0);
	error = spokei_log_open(&rig.log, &options, &rig.report);
	if (error)
		spokei_log_close(&rig.log, false);
	return error;
}

static void write_entry(enum spokei_record_kind kind, uint64_t ticket, uint32_t attempts)
{
	struct entry *entry = &rig.entries[rig.count++];
	const struct spokei_record_open open = { .service = spokei_span_of("demo.Orders"),
						 .method = spokei_span_of("buy"),
						 .tried = { .attempts = attempts } };
	struct spokei_buffer out;
	int error;

	assert_true(rig.count <= RECORDS);
	spokei_buffer_init(&out, rig.env, SEGMENT);
	if (kind == SPOKEI_RECORD_OPEN)
		error = spokei_record_put_open(&out, ticket, &open);
	else if (kind == SPOKEI_RECORD_TRIED)
		error = spokei_record_put_tried(&out, ticket, &open.tried);
	else
		error = spokei_record_put_ended(&out, ticket, 0);
	assert_int_equal(error, 0);
	assert_int_equal(spokei_log_write(&rig.log, spokei_buffer_data(&out),
					  spokei_buffer_len(&out), true),
			 0);
	*entry = (struct entry){ .segment = rig.log.segment.number,
				 .from = rig.log.end - (uint32_t)spokei_buffer_len(&out),
				 .to = rig.log.end,
				 .kind = kind,
				 .ticket = ticket,
				 .attempts = attempts };
	spokei_buffer_fini(&out);
}

/* Writes a journal of several segments: tickets begin, are tried, and every third one ends. */
static int set_up(void **state)
{
	(void)state;
	memset(&rig, 0, sizeof(rig));
	rig.block = malloc(BLOCK);
	assert_non_null(rig.block);
	rig.own = *spoke_host_env();
	rig.own.resize = resize;
	rig.env = &rig.own;
	folder_make(rig.folder);
	spokei_replay_init(&rig.replay, rig.env, false);
	assert_int_equal(open_log(false), 0);
	for (unsigned i = 0; i < TICKETS; i++) {
		write_entry(SPOKEI_RECORD_OPEN, 100 + i, 1);
		write_entry(SPOKEI_RECORD_TRIED, 100 + i, 2 + i);
		if (i % 3 == 1)
			write_entry(SPOKEI_RECORD_ENDED, 100 + i, 0);
	}
	rig.segments = rig.log.segment.number;
	assert_in_range(rig.segments, 3, SEGMENTS);
	spokei_log_close(&rig.log, false);
	for (unsigned i = 0; i < rig.segments; i++)
		assert_int_equal(get_file(i + 1, rig.files[i]), SEGMENT);
	for (struct entry *entry = rig.entries; entry < rig.entries + rig.count; entry++) {
		entry->whole = entry->to;
		while (rig.files[entry->segment - 1][entry->whole - 1] == 0)
			entry->whole--;
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	spokei_replay_fini(&rig.replay);
	free(rig.block);
	folder_remove(rig.folder);
	return 0;
}

FIXTURE(set_up, tear_down);

/* --- the book */

/* Asserts that exactly the tickets are there that these records leave: all that end before a place.
 * `lost`: one record that is not read; NULL: none. */
static void check_tickets(uint32_t segment, uint32_t end, const struct entry *lost)
{
	uint32_t attempts[TICKETS] = { 0 }; /* of the tickets that live */
	unsigned live = 0;

	for (const struct entry *entry = rig.entries; entry < rig.entries + rig.count; entry++) {
		uint32_t *of = &attempts[entry->ticket - 100];

		if (entry == lost || entry->segment > segment ||
		    (entry->segment == segment && entry->whole > end))
			continue;
		if (entry->kind == SPOKEI_RECORD_OPEN || *of > 0)
			*of = entry->attempts;
	}
	for (unsigned i = 0; i < TICKETS; i++)
		live += attempts[i] > 0;
	assert_int_equal(rig.replay.by_number.count, live);
	for (struct spoke_list *node = rig.replay.tickets.next; node != &rig.replay.tickets;
	     node = node->next) {
		const struct spokei_replay_ticket *ticket =
			spoke_container_of(node, struct spokei_replay_ticket, node);

		assert_in_range(ticket->number, 100, 100 + TICKETS - 1);
		assert_int_equal(ticket->open.tried.attempts, attempts[ticket->number - 100]);
		assert_true(spokei_span_is(ticket->open.method, "buy"));
	}
}

static void check_all_tickets(const struct entry *lost)
{
	check_tickets(SEGMENTS + 1, 0, lost);
}

/* --- ends of the process */

/* Starts from the files as they are, twice, and checks the tickets. */
static void start_twice(uint32_t segment, uint32_t end)
{
	for (unsigned life = 0; life < 2; life++) {
		assert_int_equal(open_log(false), 0);
		assert_int_equal(rig.report.damaged, 0);
		check_tickets(segment, end, NULL);
		spokei_log_close(&rig.log, false);
	}
}

TEST(process_that_is_killed_at_any_byte_loses_no_ticket)
{
	unsigned char bytes[SEGMENT];

	for (uint32_t segment = 1; segment <= rig.segments; segment++) {
		uint32_t last = 0;

		for (unsigned i = 0; i < rig.count; i++)
			if (rig.entries[i].segment == segment)
				last = rig.entries[i].to;
		for (uint32_t cut = 0; cut <= last; cut++) {
			if (cut == 0 || cut % 32 == 1)
				put_files(segment - 1);
			memset(bytes, 0, sizeof(bytes));
			memcpy(bytes, rig.files[segment - 1], cut);
			/* The head is one write. */
			put_file(segment, bytes,
				 cut > 0 && cut < SPOKEI_SEGMENT_HEAD ? cut : sizeof(bytes));
			assert_int_equal(read_log(false), 0);
			assert_int_equal(rig.report.damaged, 0);
			check_tickets(segment, cut, NULL);
			if (cut % 32 == 0)
				start_twice(segment, cut);
		}
	}
}

TEST(process_that_is_killed_between_segments_loses_no_ticket)
{
	for (uint32_t segment = 0; segment <= rig.segments; segment++) {
		put_files(segment);
		start_twice(segment, SEGMENT);
		put_files(segment);
		put_file(segment + 1, "", 0);
		start_twice(segment, SEGMENT);
	}
}

TEST(lock_of_a_dead_process_is_free)
{
	char path[PATH];
	int status = 0;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		if (open_log(false) == 0)
			(void)raise(SIGKILL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	(void)snprintf(path, sizeof(path), "%s/journal.lock", rig.folder);
	assert_int_equal(access(path, F_OK), 0);
	start_twice(SEGMENTS, SEGMENT);
}

/* --- damage */

/* Asserts that the files of the journal are as they were, but for a flipped bit. */
static void check_unchanged(unsigned segment, unsigned at, unsigned char flip)
{
	unsigned char bytes[SEGMENT];

	for (unsigned i = 0; i < rig.segments; i++) {
		assert_int_equal(get_file(i + 1, bytes), SEGMENT);
		if (i == segment)
			bytes[at] ^= flip;
		assert_memory_equal(bytes, rig.files[i], SEGMENT);
	}
	assert_int_equal(get_file(rig.segments + 1, bytes), -ENOENT);
}

/* Returns the record that has a byte; NULL: none has. */
static const struct entry *entry_at(unsigned segment, unsigned at)
{
	for (unsigned i = 0; i < rig.count; i++)
		if (rig.entries[i].segment == segment + 1 && at >= rig.entries[i].from &&
		    at < rig.entries[i].to)
			return &rig.entries[i];
	return NULL;
}

/* Starts and ends at once, without the new segment. */
static int start(bool salvages)
{
	int error = open_log(salvages);
	char path[PATH];

	if (error)
		return error;
	spokei_log_close(&rig.log, false);
	name(rig.segments + 1, path);
	return unlink(path);
}

/* A bit of this byte is wrong. */
static void harm(unsigned segment, unsigned at, unsigned char flip)
{
	const struct entry *hit = entry_at(segment, at);
	int error;

	rig.files[segment][at] ^= flip;
	put_file(segment + 1, rig.files[segment], SEGMENT);
	rig.files[segment][at] ^= flip;
	error = at % 32 == 0 ? start(false) : read_log(false);
	if (error) {
		assert_int_equal(rig.report.segment, segment + 1);
		check_unchanged(segment, at, flip);
	} else {
		/* Behind the end, or in the last record, which may count as torn. */
		assert_true(hit == NULL || hit == &rig.entries[rig.count - 1]);
		check_all_tickets(hit);
	}
	assert_int_equal(read_log(true), 0);
	assert_int_equal(rig.report.damaged, error != 0);
	check_all_tickets(hit);
	put_file(segment + 1, rig.files[segment], SEGMENT);
}

TEST(flipped_bit_in_any_byte_is_found_and_makes_no_wrong_ticket)
{
	for (unsigned at = 0; at < rig.segments * SEGMENT; at++)
		harm(at / SEGMENT, at % SEGMENT, (unsigned char)(1u << at % 8));
}

TEST(wrong_length_of_any_record_is_bounded)
{
	static const uint32_t lengths[] = { 0, UINT32_MAX, SEGMENT, 8, 21 };

	for (unsigned i = 0; i < rig.count; i++) {
		const struct entry *entry = &rig.entries[i];
		unsigned char *record = rig.files[entry->segment - 1] + entry->from;
		unsigned char before[4];

		memcpy(before, record, sizeof(before));
		for (unsigned k = 0; k < LENGTH(lengths); k++) {
			for (unsigned byte = 0; byte < 4; byte++)
				record[byte] = (unsigned char)(lengths[k] >> 8 * byte);
			put_file(entry->segment, rig.files[entry->segment - 1], SEGMENT);
			assert_int_equal(read_log(true), 0);
			assert_int_equal(rig.report.offset, entry->from);
			assert_int_equal(rig.report.damaged, i + 1 < rig.count);
			check_all_tickets(entry);
		}
		memcpy(record, before, sizeof(before));
		put_file(entry->segment, rig.files[entry->segment - 1], SEGMENT);
	}
}

/* --- files of others */

/* Asserts how a tool and a consumer take the files, and that neither changes them. */
static void check_refused(int error, const char *words)
{
	struct spoke_journal_report report;
	unsigned char before[SEGMENT];
	unsigned char after[SEGMENT];
	ssize_t len[SEGMENTS + 1];

	for (uint32_t i = 0; i <= rig.segments; i++)
		len[i] = get_file(i + 1, before);
	assert_int_equal(spoke_journal_read(NULL, rig.folder, NULL, NULL, &report), error);
	assert_non_null(strstr(report.why, words));
	assert_int_equal(spoke_journal_change(NULL, rig.folder, SPOKE_JOURNAL_DROP, 100, &report),
			 error);
	assert_non_null(strstr(report.why, words));
	assert_int_equal(open_log(false), error);
	for (uint32_t i = 0; i <= rig.segments; i++)
		assert_int_equal(get_file(i + 1, after), len[i]);
}

TEST(segment_of_a_newer_version_is_refused)
{
	unsigned char bytes[SEGMENT];
	uint32_t sum;

	memcpy(bytes, rig.files[1], sizeof(bytes));
	bytes[6] = SPOKEI_JOURNAL_VERSION + 1;
	sum = spokei_crc_add(&rig.log.crc, 0, bytes, 60);
	for (unsigned byte = 0; byte < 4; byte++)
		bytes[60 + byte] = (unsigned char)(sum >> 8 * byte);
	put_file(2, bytes, sizeof(bytes));
	check_refused(SPOKE_EUNSUPPORTED, "written by a newer version");
	assert_int_equal(open_log(true), SPOKE_EUNSUPPORTED);
}

TEST(segment_of_another_journal_is_refused)
{
	struct spokei_segment other = { .number = 2, .previous_end = SEGMENT, .journal = "other" };
	unsigned char bytes[SEGMENT] = { 0 };

	spokei_segment_put(&rig.log.crc, &other, bytes);
	put_file(2, bytes, sizeof(bytes));
	check_refused(SPOKE_EINVAL, "a file of another journal");
	assert_int_equal(open_log(true), SPOKE_EINVAL);
	/* Under the name of another one. */
	put_file(2, rig.files[0], SEGMENT);
	check_refused(SPOKE_EINVAL, "a file of another journal");
}

TEST(file_with_a_wrong_beginning_or_no_content_is_damage)
{
	unsigned char bytes[SEGMENT];
	struct spoke_journal_report report;

	memcpy(bytes, rig.files[1], sizeof(bytes));
	bytes[0] = 'X';
	put_file(2, bytes, sizeof(bytes));
	assert_int_equal(open_log(false), SPOKE_EINVAL);
	assert_int_equal(rig.report.segment, 2);
	memset(bytes, 0, sizeof(bytes));
	for (size_t len = 0; len <= sizeof(bytes); len += sizeof(bytes)) {
		put_file(2, bytes, len);
		assert_int_equal(open_log(false), SPOKE_ECORRUPT);
		assert_int_equal(rig.report.segment, 2);
		assert_int_equal(get_file(2, bytes), len);
		assert_int_equal(spoke_journal_read(NULL, rig.folder, NULL, NULL, &report), 0);
		assert_true(report.damaged > 0);
	}
	/* An empty last file, or one without records, is none. */
	put_files(rig.segments);
	put_file(rig.segments + 1, bytes, 0);
	start_twice(SEGMENTS, SEGMENT);
}

TEST(last_segment_without_a_record_is_read)
{
	unsigned last = 0;
	struct spokei_segment head;

	for (unsigned i = 0; i < rig.count; i++)
		if (rig.entries[i].segment == rig.segments - 1)
			last = rig.entries[i].to;
	assert_int_equal(spokei_segment_read(&rig.log.crc, rig.files[rig.segments - 1], SEGMENT,
					     &head),
			 0);
	assert_int_equal(head.previous_end, last);
	put_files(rig.segments - 1);
	put_file(rig.segments, rig.files[rig.segments - 1], SPOKEI_SEGMENT_HEAD);
	start_twice(rig.segments - 1, last);
}

TEST(symbolic_link_in_place_of_a_segment_is_refused)
{
	char path[PATH];
	char target[PATH + 8];

	for (uint32_t number = 1; number <= rig.segments; number++) {
		put_files(rig.segments);
		name(number, path);
		(void)snprintf(target, sizeof(target), "%s.real", path);
		assert_int_equal(rename(path, target), 0);
		assert_int_equal(symlink(target, path), 0);
		check_refused(SPOKE_ESYSTEM, "a symbolic link");
		assert_int_equal(rig.report.status, -ELOOP);
	}
}

TEST(all_files_belong_to_their_owner_alone)
{
	char path[PATH];
	struct stat status;

	(void)umask(0);
	(void)snprintf(path, sizeof(path), "%s/journal.lock", rig.folder);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(open_log(false), 0);
	spokei_log_close(&rig.log, false);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	name(rig.segments + 1, path);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
}
