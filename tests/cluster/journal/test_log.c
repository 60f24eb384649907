/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a journal on a simulated disk: wherever power fails and whichever call fails, each
 * record that was told to be durable is read again, once, and no other one is made up.
 */
#include "cluster/journal/log.h"
#include "core/base/span.h"
#include "core/virtual/files.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "/j"
#define SEEDS 40u

enum {
	TICKETS = 64,
	SEGMENT = 8192,
};

/* What is known of each ticket, from outside of the log. */
struct book {
	bool begun[TICKETS];   /* its record may be on the disk */
	bool durable[TICKETS]; /* ... and is, for certain */
	bool found[TICKETS];   /* it was read, since the last open() */
	unsigned count;        /* of those */
};

static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spokei_journal_log log;
	struct spokei_log_options options;
	struct spokei_log_report report;
	struct book book;
	char big[SEGMENT / 4];
} rig;

static int take(void *arg, const struct spokei_record *record)
{
	struct book *book = arg;
	struct spokei_record_open open;

	assert_int_equal(record->kind, SPOKEI_RECORD_OPEN);
	assert_int_equal(spokei_record_read_open(record, &open), 0);
	assert_true(record->ticket < TICKETS && book->begun[record->ticket]);
	book->count += !book->found[record->ticket];
	book->found[record->ticket] = true;
	return 0;
}

static void boot(uint64_t seed)
{
	assert_true(spokei_world_init(&rig.world, seed));
	spokei_vfiles_harm(rig.world.files, seed, NULL);
	spokei_world_process_init(&rig.process, &rig.world);
	rig.book = (struct book){ .count = 0 };
	rig.options = (struct spokei_log_options){ .env = &rig.process.env,
						   .folder = FOLDER,
						   .journal = "0123456789abcdef",
						   .segment_size = SEGMENT,
						   .take = take,
						   .arg = &rig.book };
}

static void halt(void)
{
	spokei_vnet_kill(&rig.process.user);
	spokei_world_process_fini(&rig.process);
	spokei_world_fini(&rig.world);
}

/* The process dies, with the power of the machine. */
static void lose_power(void)
{
	spokei_vnet_kill(&rig.process.user);
	spokei_vfiles_lose(rig.world.files);
}

static int open_log(void)
{
	int status;
	int error = spokei_log_lock(&rig.log, &rig.process.env, FOLDER, &status);

	memset(rig.book.found, 0, sizeof(rig.book.found));
	rig.book.count = 0;
	if (error)
		return error;
	error = spokei_log_open(&rig.log, &rig.options, &rig.report);
	if (error)
		spokei_log_close(&rig.log, false);
	return error;
}

static void put(struct spokei_buffer *out, unsigned ticket, size_t bytes)
{
	struct spokei_record_open open = { .service = spokei_span_of("s"),
					   .method = spokei_span_of("m"),
					   .arguments = spokei_span(rig.big, bytes) };

	assert_int_equal(spokei_record_put_open(out, ticket, &open), 0);
	rig.book.begun[ticket] = true;
}

/* Writes tickets in one batch. */
static int write_tickets(unsigned from, unsigned count, size_t bytes, bool syncs)
{
	struct spokei_buffer out;
	int status;

	spokei_buffer_init(&out, &rig.process.env, 64u << 20);
	for (unsigned i = from; i < from + count; i++)
		put(&out, i, bytes);
	status = spokei_log_write(&rig.log, spokei_buffer_data(&out), spokei_buffer_len(&out),
				  syncs);
	for (unsigned i = from; !status && syncs && i < from + count; i++)
		rig.book.durable[i] = true;
	spokei_buffer_fini(&out);
	return status;
}

/* Begins anew with all durable tickets. */
static int renew(size_t bytes)
{
	struct spokei_buffer out;
	uint32_t base;
	int status;

	spokei_buffer_init(&out, &rig.process.env, 64u << 20);
	for (unsigned i = 0; i < TICKETS; i++)
		if (rig.book.durable[i])
			put(&out, i, bytes);
	status = spokei_log_restart(&rig.log);
	base = rig.log.segment.number;
	assert_int_equal(spokei_record_put_base(&out, base), 0);
	if (!status)
		status = spokei_log_write(&rig.log, spokei_buffer_data(&out),
					  spokei_buffer_len(&out), true);
	if (!status)
		spokei_log_drop(&rig.log, base);
	spokei_buffer_fini(&out);
	return status;
}

static void assert_nothing_lost(void)
{
	for (unsigned i = 0; i < TICKETS; i++)
		if (rig.book.durable[i] && !rig.book.found[i])
			fail_msg("ticket %u is lost", i);
}

static unsigned segments(void)
{
	char names[4096];
	ssize_t len = rig.process.env.files->list(&rig.process, FOLDER, names, sizeof(names));
	unsigned count = 0;

	for (ssize_t i = 0; i < len; i += (ssize_t)strlen(names + i) + 1)
		count += strstr(names + i, ".spokej") != NULL;
	return count;
}

TEST(records_are_read_by_the_next_process)
{
	boot(1);
	assert_int_equal(open_log(), 0);
	assert_int_equal(rig.book.count, 0);
	assert_int_equal(write_tickets(0, 3, 10, true), 0);
	assert_int_equal(write_tickets(3, 1, 10, false), 0);
	spokei_log_close(&rig.log, false);
	for (unsigned life = 0; life < 3; life++) {
		assert_int_equal(open_log(), 0);
		assert_int_equal(rig.book.count, 4);
		assert_int_equal(rig.report.torn + rig.report.damaged, 0);
		spokei_log_close(&rig.log, false);
	}
	halt();
}

TEST(second_user_of_a_journal_is_refused)
{
	struct spokei_journal_log other;
	int status;

	boot(1);
	assert_int_equal(open_log(), 0);
	assert_int_equal(spokei_log_lock(&other, &rig.process.env, FOLDER, &status), SPOKE_EEXIST);
	spokei_log_close(&rig.log, false);
	assert_int_equal(open_log(), 0);
	spokei_log_close(&rig.log, false);
	halt();
}

/* A life with several segments, a renewal, and unsynced writes. */
static void live(void)
{
	if (open_log() != 0)
		return;
	(void)write_tickets(0, 2, 700, true);
	(void)write_tickets(2, 2, 700, false);
	if (write_tickets(4, 3, sizeof(rig.big), true) == 0)
		(void)write_tickets(7, 2, sizeof(rig.big), true);
	(void)renew(700);
	(void)write_tickets(9, 2, 700, true);
	if (!rig.log.broken)
		(void)write_tickets(11, 1, 700, true);
	spokei_log_close(&rig.log, false);
}

TEST(loss_of_power_at_any_step_loses_no_durable_ticket)
{
	unsigned cut = 0;
	bool over = false;

	for (; !over; cut++) {
		boot(cut);
		spokei_vfiles_cut(rig.world.files, cut);
		live();
		over = !spokei_vfiles_is_cut(rig.world.files);
		lose_power();
		/* Power fails again at each step of the start, too. */
		for (unsigned again = 0; again < 8; again++) {
			spokei_vfiles_cut(rig.world.files, again);
			if (open_log() == 0)
				assert_nothing_lost();
			lose_power();
		}
		assert_int_equal(open_log(), 0);
		assert_int_equal(rig.report.damaged, 0);
		assert_nothing_lost();
		assert_int_equal(write_tickets(20, 1, 10, true), 0);
		lose_power();
		assert_int_equal(open_log(), 0);
		assert_nothing_lost();
		spokei_log_close(&rig.log, false);
		halt();
	}
	assert_in_range(cut, 30, 200);
}

/* The disk has taken some sectors of the last write, and not the others. */
TEST(any_sectors_of_the_last_write_may_be_lost)
{
	enum {
		SECTOR = 512,
		SECTORS = 6,
	};
	static const unsigned char zeros[SECTOR];

	for (unsigned lost = 0; lost < 1u << SECTORS; lost++) {
		const struct spoke_env *env = &rig.process.env;
		unsigned first;
		unsigned end;
		int fd;

		boot(1);
		assert_int_equal(open_log(), 0);
		assert_int_equal(write_tickets(0, 5, 100, true), 0);
		first = (rig.log.end + SECTOR - 1) / SECTOR;
		assert_int_equal(write_tickets(5, 24, 50, false), 0);
		end = rig.log.end;
		assert_in_range(end - first * SECTOR, (SECTORS - 1) * SECTOR, SECTORS * SECTOR);
		spokei_log_close(&rig.log, false);
		assert_int_equal(env->files->open_log(env->ctx, FOLDER "/00000001.spokej", false,
						      &fd),
				 0);
		for (unsigned i = 0; i < SECTORS; i++)
			if (lost >> i & 1)
				assert_int_equal(env->files->write_at(env->ctx, fd,
								      (first + i) * SECTOR, zeros,
								      sizeof(zeros)),
						 0);
		env->net->close(env->ctx, fd);
		assert_int_equal(open_log(), 0);
		assert_int_equal(rig.report.damaged, 0);
		assert_int_equal(rig.report.torn, lost != 0);
		assert_nothing_lost();
		assert_true(lost == 0 ? rig.book.count == 29 : rig.book.count < 29);
		spokei_log_close(&rig.log, false);
		halt();
	}
}

TEST(tickets_survive_a_disk_that_fails_at_random)
{
	const struct spokei_vfiles_harm harm = { .write_fails = 12, .sync_fails = 8 };
	unsigned renewed = 0;
	unsigned failed = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		unsigned next = 0;

		boot(seed);
		for (unsigned life = 0; life < 4; life++) {
			spokei_vfiles_harm(rig.world.files, seed * 4 + life, &harm);
			if (open_log() != 0) {
				lose_power();
				continue;
			}
			assert_int_equal(rig.report.damaged, 0);
			assert_nothing_lost();
			for (unsigned i = 0; i < 12 && next < TICKETS; i++) {
				bool fails = write_tickets(next, 1, 600, i % 3 != 2) != 0;

				next++;
				failed += fails;
				if (rig.log.broken)
					renewed += renew(600) == 0;
			}
			lose_power();
		}
		spokei_vfiles_harm(rig.world.files, seed, NULL);
		assert_int_equal(open_log(), 0);
		assert_nothing_lost();
		spokei_log_close(&rig.log, false);
		halt();
	}
	assert_true(failed > SEEDS && renewed > SEEDS);
}

TEST(failed_sync_gives_the_segment_up)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		boot(seed);
		assert_int_equal(open_log(), 0);
		assert_int_equal(write_tickets(0, 1, 600, true), 0);
		spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_SYNC, 1, -EIO);
		assert_int_equal(write_tickets(1, 1, 600, true), -EIO);
		assert_int_equal(spokei_log_sync(&rig.log), -EIO);
		assert_int_equal(write_tickets(2, 1, 600, true), -EIO);
		rig.book.durable[1] = true; /* still in memory, so it goes on */
		assert_int_equal(renew(600), 0);
		assert_int_equal(segments(), 1);
		lose_power();
		assert_int_equal(open_log(), 0);
		assert_int_equal(rig.book.count, 2);
		assert_nothing_lost();
		spokei_log_close(&rig.log, false);
		halt();
	}
}

TEST(full_disk_takes_small_records_as_long_as_there_is_room)
{
	boot(1);
	spokei_vfiles_room(rig.world.files, SEGMENT + 100);
	assert_int_equal(open_log(), 0);
	assert_int_equal(write_tickets(0, 3, sizeof(rig.big), true), 0);
	assert_int_equal(write_tickets(3, 1, sizeof(rig.big), true), -ENOSPC);
	assert_false(rig.log.broken);
	assert_int_equal(write_tickets(4, 1, 10, true), 0);
	lose_power();
	spokei_vfiles_room(rig.world.files, UINT64_MAX);
	assert_int_equal(open_log(), 0);
	assert_int_equal(rig.book.count, 4);
	assert_nothing_lost();
	spokei_log_close(&rig.log, false);
	halt();
}

TEST(renewal_larger_than_a_segment_takes_several)
{
	boot(1);
	assert_int_equal(open_log(), 0);
	for (unsigned i = 0; i < 9; i++)
		assert_int_equal(write_tickets(i, 1, sizeof(rig.big), true), 0);
	assert_int_equal(segments(), 3);
	assert_int_equal(renew(sizeof(rig.big)), 0);
	assert_int_equal(segments(), 3);
	assert_int_equal(rig.log.first, 4);
	lose_power();
	assert_int_equal(open_log(), 0);
	assert_int_equal(rig.book.count, 9);
	spokei_log_close(&rig.log, false);
	halt();
}

TEST(zeroed_head_before_records_is_damage)
{
	const unsigned char zeros[SPOKEI_SEGMENT_HEAD] = { 0 };
	const struct spoke_files *files;
	int fd;

	boot(1);
	files = rig.process.env.files;
	assert_int_equal(open_log(), 0);
	assert_int_equal(write_tickets(0, 5, 10, true), 0);
	spokei_log_close(&rig.log, false);
	assert_int_equal(files->open_log(rig.process.env.ctx, FOLDER "/00000001.spokej", false,
					 &fd),
			 0);
	assert_int_equal(files->write_at(rig.process.env.ctx, fd, 0, zeros, sizeof(zeros)), 0);
	rig.process.env.net->close(rig.process.env.ctx, fd);
	assert_int_equal(open_log(), SPOKE_ECORRUPT);
	assert_int_equal(rig.report.segment, 1);
	assert_int_equal(segments(), 1);
	halt();
}

TEST(segment_whose_head_was_written_in_part_counts_as_absent)
{
	static char bytes[SEGMENT];
	const char *head;

	boot(1);
	assert_int_equal(open_log(), 0);
	assert_int_equal(write_tickets(0, 5, 10, true), 0);
	spokei_log_close(&rig.log, false);
	assert_int_equal(open_log(), 0);
	spokei_log_close(&rig.log, false);
	head = spokei_vfiles_get(rig.world.files, FOLDER "/00000002.spokej");
	memcpy(bytes, head, SPOKEI_SEGMENT_HEAD);
	for (size_t len = SPOKEI_SEGMENT_HEAD; len-- > 0;) {
		bytes[len] = '\0';
		spokei_vfiles_put_bytes(rig.world.files, FOLDER "/00000002.spokej", bytes,
					sizeof(bytes));
		assert_int_equal(open_log(), 0);
		assert_nothing_lost();
		assert_int_equal(rig.report.damaged, 0);
		assert_int_equal(rig.log.segment.number, 2);
		spokei_log_close(&rig.log, false);
	}
	halt();
}

TEST(damage_is_refused_with_its_place_or_salvaged)
{
	boot(1);
	assert_int_equal(open_log(), 0);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(write_tickets(i, 1, 10, true), 0);
	spokei_log_close(&rig.log, false);
	assert_int_equal(open_log(), 0);
	spokei_log_close(&rig.log, false);
	spokei_vfiles_flip(rig.world.files, FOLDER "/00000001.spokej", 8 * (64 + 30));
	assert_int_equal(open_log(), SPOKE_ECORRUPT);
	assert_int_equal(rig.report.segment, 1);
	assert_int_equal(rig.report.offset, 64);
	assert_int_equal(segments(), 2);
	rig.options.salvages = true;
	assert_int_equal(open_log(), 0);
	assert_int_equal(rig.report.damaged, 1);
	assert_int_equal(rig.book.count, 4);
	assert_false(rig.book.found[0]);
	spokei_log_close(&rig.log, false);
	halt();
}

/* Gives a segment the version after ours, with a good sum. */
static void make_newer(const char *path)
{
	const struct spoke_env *env = &rig.process.env;
	unsigned char head[SPOKEI_SEGMENT_HEAD];
	uint32_t sum;
	int fd;

	memcpy(head, spokei_vfiles_get(rig.world.files, path), sizeof(head));
	head[6] = SPOKEI_JOURNAL_VERSION + 1;
	sum = spokei_crc_add(&rig.log.crc, 0, head, 60);
	for (unsigned byte = 0; byte < 4; byte++)
		head[60 + byte] = (unsigned char)(sum >> 8 * byte);
	assert_int_equal(env->files->open_log(env->ctx, path, false, &fd), 0);
	assert_int_equal(env->files->write_at(env->ctx, fd, 0, head, sizeof(head)), 0);
	assert_int_equal(env->files->sync(env->ctx, fd), 0);
	env->net->close(env->ctx, fd);
}

TEST(missing_or_foreign_segment_is_refused)
{
	boot(1);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(open_log(), 0);
		assert_int_equal(write_tickets(i, 1, 10, true), 0);
		spokei_log_close(&rig.log, false);
	}
	spokei_vfiles_put(rig.world.files, FOLDER "/00000002.spokej",
			  "This is no segment, although it has the name of one and some length.");
	assert_int_equal(open_log(), SPOKE_EINVAL);
	assert_int_equal(rig.report.segment, 2);
	spokei_vfiles_remove(rig.world.files, FOLDER "/00000002.spokej");
	assert_int_equal(open_log(), SPOKE_ECORRUPT);
	assert_int_equal(rig.report.segment, 2);
	assert_int_equal(segments(), 2);
	make_newer(FOLDER "/00000003.spokej");
	assert_int_equal(open_log(), SPOKE_EUNSUPPORTED);
	assert_int_equal(segments(), 2);
	rig.options.salvages = true;
	assert_int_equal(open_log(), SPOKE_EUNSUPPORTED);
	assert_int_equal(segments(), 2);
	halt();
}

/* Makes segments of 64 KiB with two tickets each, the first ones of which are 0, 2 and 4. */
static void make_three(void)
{
	boot(1);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(open_log(), 0);
		assert_int_equal(write_tickets(2 * i, 2, 10, true), 0);
		spokei_log_close(&rig.log, false);
	}
}

TEST(segment_whose_head_is_damaged_is_salvaged)
{
	static const char *const names[] = { FOLDER "/00000001.spokej", FOLDER "/00000002.spokej",
					     FOLDER "/00000003.spokej" };

	make_three();
	for (unsigned at = 0; at < LENGTH(names) * SPOKEI_SEGMENT_HEAD; at++) {
		const char *name = names[at / SPOKEI_SEGMENT_HEAD];
		const size_t bit = (size_t)8 * (at % SPOKEI_SEGMENT_HEAD) + at % 8;

		spokei_vfiles_flip(rig.world.files, name, bit);
		rig.options.salvages = false;
		assert_true(open_log() != 0);
		assert_int_equal(rig.report.segment, at / SPOKEI_SEGMENT_HEAD + 1);
		assert_int_equal(segments(), 3);
		rig.options.salvages = true;
		assert_int_equal(open_log(), 0);
		assert_int_equal(rig.report.damaged, 1);
		assert_int_equal(rig.report.segment, at / SPOKEI_SEGMENT_HEAD + 1);
		assert_nothing_lost();
		assert_int_equal(rig.log.segment.number, 4);
		spokei_log_close(&rig.log, false);
		spokei_vfiles_remove(rig.world.files, FOLDER "/00000004.spokej");
		spokei_vfiles_flip(rig.world.files, name, bit);
	}
	halt();
}

/* The number of the journal is in the damaged head itself. */
TEST(damaged_head_of_the_only_segment_has_the_journal)
{
	for (unsigned at = 0; at < SPOKEI_SEGMENT_HEAD; at++) {
		const bool is_hit = at >= 16 && at < 32;

		boot(1);
		assert_int_equal(open_log(), 0);
		assert_int_equal(write_tickets(0, 2, 10, true), 0);
		spokei_log_close(&rig.log, false);
		spokei_vfiles_flip(rig.world.files, FOLDER "/00000001.spokej", (size_t)8 * at);
		rig.options.salvages = true;
		assert_int_equal(open_log(), 0);
		assert_int_equal(rig.report.damaged, 1);
		assert_int_equal(rig.book.count, is_hit ? 0 : 2);
		spokei_log_close(&rig.log, false);
		halt();
	}
}

TEST(refused_start_changes_no_file)
{
	static const unsigned char zeros[SEGMENT];

	make_three();
	spokei_vfiles_put_bytes(rig.world.files, FOLDER "/00000004.spokej", zeros, sizeof(zeros));
	spokei_vfiles_flip(rig.world.files, FOLDER "/00000001.spokej", 8 * (64 + 30));
	assert_int_equal(open_log(), SPOKE_ECORRUPT);
	assert_int_equal(segments(), 4);
	spokei_vfiles_flip(rig.world.files, FOLDER "/00000001.spokej", 8 * (64 + 30));
	make_newer(FOLDER "/00000003.spokej");
	assert_int_equal(open_log(), SPOKE_EUNSUPPORTED);
	assert_int_equal(segments(), 4);
	halt();
}

TEST(log_that_appends_begins_no_segment_while_there_is_room)
{
	unsigned lives = 0;

	make_three();
	rig.options.appends = true;
	rig.options.segment_size = 1024;
	for (; segments() == 3; lives++) {
		assert_int_equal(open_log(), 0);
		assert_nothing_lost();
		assert_int_equal(write_tickets(6 + lives, 1, 700, true), 0);
		spokei_log_close(&rig.log, false);
		lose_power();
	}
	assert_in_range(lives, 9, 12);
	/* Behind a torn tail nothing is appended. */
	spokei_vfiles_flip(rig.world.files, FOLDER "/00000004.spokej", 8 * 1000);
	rig.book.durable[5 + lives] = false;
	assert_int_equal(open_log(), 0);
	assert_int_equal(rig.report.torn, 1);
	assert_nothing_lost();
	assert_int_equal(rig.log.segment.number, 5);
	spokei_log_close(&rig.log, false);
	halt();
}

TEST(error_of_the_system_is_told)
{
	boot(1);
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_LIST, 1, -EACCES);
	assert_int_equal(open_log(), SPOKE_ESYSTEM);
	assert_int_equal(rig.report.status, -EACCES);
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_ALLOCATE, 1, -ENOSPC);
	assert_int_equal(open_log(), 0);
	assert_true(rig.log.broken);
	assert_int_equal(segments(), 0);
	assert_int_equal(spokei_log_restart(&rig.log), 0);
	assert_false(rig.log.broken);
	assert_int_equal(segments(), 1);
	spokei_log_close(&rig.log, false);
	assert_int_equal(rig.process.user.fds, 0);
	halt();
}
