/* SPDX-License-Identifier: Apache-2.0 */
/* Journals as tools see them, on a virtual disk: read beside a user, and changed without one. */
#include "cluster/journal/log.h"
#include "cluster/journal/replay.h"
#include "core/base/span.h"
#include "core/virtual/files.h"
#include "core/virtual/world.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/journal.h>
#include <spoke/ticket.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FOLDER "/journal"
#define FIRST FOLDER "/00000001.spokej"
#define LASTS (3600 * SECOND)
#define DROPS 16u

static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	const struct spoke_env *env;
	struct spokei_journal_log log;
	struct spoke_journal_report report;
	struct spoke_journal_ticket seen[8];
	char methods[8][16];
	unsigned count;
} rig;

static int set_up(void **state)
{
	(void)state;
	memset(&rig, 0, sizeof(rig));
	scene_open(&rig.world, 7);
	spokei_world_process_init(&rig.process, &rig.world);
	rig.env = &rig.process.env;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	spokei_world_process_fini(&rig.process);
	spokei_world_fini(&rig.world);
	return 0;
}

FIXTURE(set_up, tear_down);

static int take_nothing(void *arg, const struct spokei_record *record)
{
	(void)arg;
	(void)record;
	return 0;
}

/* Opens the log as a consumer with this hash does; 0: with that of the files. */
static void open_log_of(uint64_t consumer)
{
	const struct spokei_log_options options = {
		.env = rig.env,
		.folder = FOLDER,
		.journal = { 1, 2, 3 },
		.consumer = consumer,
		.take = take_nothing,
	};
	struct spokei_log_report report;
	int status;

	assert_int_equal(spokei_log_lock(&rig.log, rig.env, FOLDER, &status), 0);
	assert_int_equal(spokei_log_open(&rig.log, &options, &report), 0);
}

static void open_log(void)
{
	open_log_of(99);
}

static void close_log(void)
{
	spokei_log_close(&rig.log, false);
}

static void write_out(struct spokei_buffer *out)
{
	assert_int_equal(spokei_log_write(&rig.log, spokei_buffer_data(out), spokei_buffer_len(out),
					  true),
			 0);
	spokei_buffer_fini(out);
}

static void write_ticket(uint64_t number, const char *method)
{
	const struct spokei_record_open open = {
		.service = spokei_span_of("demo.Orders"),
		.method = spokei_span_of(method),
		.arguments = { "\xa1x\x07", 3 },
		.id = { 0xab, [15] = (unsigned char)number },
		.begun_ns = 5 * SECOND,
		.lasts_ns = LASTS,
		.period_ns = SECOND,
		.retries = 3,
		.flags = SPOKEI_RECORD_ONCE,
		.tried = { .attempts = 2, .unsure = true },
	};
	struct spokei_buffer out;

	spokei_buffer_init(&out, rig.env, 4096);
	assert_int_equal(spokei_record_put_open(&out, number, &open), 0);
	write_out(&out);
}

static void write_answer(uint64_t number, const char *id)
{
	const struct spokei_record_answer answer = {
		.service = spokei_span_of("demo.Orders"),
		.method = spokei_span_of("buy"),
		.id = spokei_span_of(id),
		.ended_ns = 5 * SECOND,
		.keeps_ns = LASTS,
		.error = (uint32_t)SPOKE_EREMOTE,
		.error_code = 7,
		.text = spokei_span_of("sold out"),
	};
	struct spokei_buffer out;

	spokei_buffer_init(&out, rig.env, 4096);
	assert_int_equal(spokei_record_put_answer(&out, number, &answer), 0);
	write_out(&out);
}

static void write_end(uint64_t number)
{
	struct spokei_buffer out;

	spokei_buffer_init(&out, rig.env, 4096);
	assert_int_equal(spokei_record_put_ended(&out, number, SPOKE_TICKET_SUCCESS), 0);
	write_out(&out);
}

static void see(void *arg, const struct spoke_journal_ticket *ticket)
{
	(void)arg;
	assert_true(rig.count < LENGTH(rig.seen));
	(void)snprintf(rig.methods[rig.count], sizeof(rig.methods[0]), "%.*s",
		       (int)ticket->method.len, (const char *)ticket->method.data);
	assert_int_equal(ticket->args.len, ticket->is_answer ? 0 : 3);
	rig.seen[rig.count++] = *ticket;
}

static int read_journal(void)
{
	rig.count = 0;
	return spoke_journal_read(rig.env, FOLDER, see, NULL, &rig.report);
}

static int change(enum spoke_journal_change what, uint64_t number)
{
	return spoke_journal_change(rig.env, FOLDER, what, number, &rig.report);
}

/* Leaves tickets 1 and 3 of three. */
static void make_journal(void)
{
	open_log();
	write_ticket(1, "one");
	write_ticket(2, "two");
	write_ticket(3, "three");
	write_end(2);
}

/* Flips a bit of the first ticket in the first file. */
static void damage(void)
{
	spokei_vfiles_flip(rig.world.files, FIRST,
			   (size_t)8 * (SPOKEI_SEGMENT_HEAD + SPOKEI_RECORD_HEAD + 3));
}

/* --- reading */

TEST(tickets_that_are_not_settled_are_read)
{
	make_journal();
	close_log();
	assert_int_equal(read_journal(), 0);
	assert_int_equal(rig.count, 2);
	assert_int_equal(rig.report.tickets, 2);
	assert_string_equal(rig.methods[0], "one");
	assert_string_equal(rig.methods[1], "three");
	assert_int_equal(rig.seen[1].number, 3);
	assert_string_equal(rig.seen[1].id, "ab000000000000000000000000000003");
	assert_int_equal(rig.seen[1].attempts, 2);
	assert_int_equal(rig.seen[1].retries, 3);
	assert_int_equal(rig.seen[1].lasts_ns, LASTS);
	assert_true(rig.seen[1].once && rig.seen[1].unsure);
	assert_false(rig.report.used || rig.report.torn);
	assert_string_equal(rig.report.why, "");
}

TEST(journal_is_read_while_its_user_writes)
{
	make_journal();
	assert_int_equal(read_journal(), 0);
	assert_int_equal(rig.count, 2);
	assert_true(rig.report.used);
	write_end(1);
	assert_int_equal(read_journal(), 0);
	assert_int_equal(rig.count, 1);
	write_ticket(4, "four");
	close_log();
	assert_int_equal(read_journal(), 0);
	assert_int_equal(rig.count, 2);
}

TEST(folder_without_a_journal_is_named_as_such)
{
	assert_int_equal(read_journal(), SPOKE_ENOENT);
	assert_true(*rig.report.why);
	assert_int_equal(change(SPOKE_JOURNAL_REPAIR, 0), SPOKE_ENOENT);
}

TEST(damage_is_told_and_the_rest_is_read)
{
	make_journal();
	close_log();
	damage();
	assert_int_equal(read_journal(), 0);
	assert_int_equal(rig.report.damaged, 1);
	assert_int_equal(rig.report.segment, 1);
	assert_int_equal(rig.report.offset, SPOKEI_SEGMENT_HEAD);
	assert_int_equal(rig.count, 1);
	assert_string_equal(rig.methods[0], "three");
}

/* --- changes */

TEST(dropped_ticket_is_gone)
{
	make_journal();
	close_log();
	assert_int_equal(change(SPOKE_JOURNAL_DROP, 1), 0);
	assert_int_equal(read_journal(), 0);
	assert_int_equal(rig.count, 1);
	assert_int_equal(rig.seen[0].number, 3);
	assert_int_equal(change(SPOKE_JOURNAL_DROP, 1), SPOKE_ENOENT);
	assert_int_equal(change(SPOKE_JOURNAL_DROP, 2), SPOKE_ENOENT);
}

TEST(retried_ticket_has_its_attempts_and_time_again)
{
	make_journal();
	close_log();
	assert_int_equal(change(SPOKE_JOURNAL_RETRY, 3), 0);
	assert_int_equal(read_journal(), 0);
	assert_int_equal(rig.count, 2);
	assert_int_equal(rig.seen[1].number, 3);
	assert_int_equal(rig.seen[1].attempts, 0);
	assert_false(rig.seen[1].unsure);
	assert_int_equal(rig.seen[1].begun_ns, rig.env->wall(rig.env->ctx));
	assert_string_equal(rig.seen[1].id, "ab000000000000000000000000000003");
	assert_int_equal(rig.seen[0].attempts, 2);
}

TEST(answers_are_shown_dropped_and_repaired_and_have_no_attempts)
{
	open_log();
	write_answer(1, "order-7");
	write_answer(2, "order-8");
	close_log();
	assert_int_equal(read_journal(), 0);
	assert_int_equal(rig.count, 2);
	assert_true(rig.seen[0].is_answer && !rig.seen[0].dropped);
	assert_string_equal(rig.seen[0].id, "order-7");
	assert_string_equal(rig.methods[0], "buy");
	assert_int_equal(rig.seen[0].error, SPOKE_EREMOTE);
	assert_int_equal(rig.seen[0].error_code, 7);
	assert_true(rig.seen[0].begun_ns == 5 * SECOND && rig.seen[0].lasts_ns == LASTS);
	assert_int_equal(change(SPOKE_JOURNAL_RETRY, 1), SPOKE_EINVAL);
	assert_non_null(strstr(rig.report.why, "has run"));
	assert_int_equal(change(SPOKE_JOURNAL_REPAIR, 0), 0);
	assert_int_equal(change(SPOKE_JOURNAL_DROP, 1), 0);
	assert_int_equal(read_journal(), 0);
	assert_int_equal(rig.count, 1);
	assert_string_equal(rig.seen[0].id, "order-8");
	assert_int_equal(rig.seen[0].error_code, 7);
}

TEST(journal_in_use_is_not_changed)
{
	make_journal();
	assert_int_equal(change(SPOKE_JOURNAL_DROP, 1), SPOKE_ESTATE);
	assert_non_null(strstr(rig.report.why, "has the journal open"));
	close_log();
	assert_int_equal(read_journal(), 0);
	assert_int_equal(rig.count, 2);
}

TEST(damaged_journal_is_changed_by_a_repair_only)
{
	make_journal();
	close_log();
	damage();
	assert_int_equal(change(SPOKE_JOURNAL_DROP, 3), SPOKE_ECORRUPT);
	assert_non_null(strstr(rig.report.why, "00000001.spokej, byte 64: damaged"));
	assert_int_equal(change(SPOKE_JOURNAL_REPAIR, 0), 0);
	assert_int_equal(rig.report.damaged, 1);
	assert_int_equal(rig.report.tickets, 1);
	assert_int_equal(read_journal(), 0);
	assert_int_equal(rig.report.damaged, 0);
	assert_int_equal(rig.count, 1);
	assert_string_equal(rig.methods[0], "three");
	assert_null(spokei_vfiles_get(rig.world.files, FIRST));
	open_log_of(0);
	assert_int_equal(rig.log.segment.journal[0], 1);
	assert_int_equal(rig.log.segment.consumer, 99);
	close_log();
}

/* By the disk's dice, a write that is not synced may survive. */
TEST(change_is_on_the_disk_after_a_loss_of_power)
{
	open_log();
	for (unsigned i = 1; i <= DROPS; i++)
		write_ticket(i, "one");
	close_log();
	for (unsigned i = 1; i <= DROPS; i++) {
		spokei_vfiles_harm(rig.world.files, i, NULL);
		assert_int_equal(change(SPOKE_JOURNAL_DROP, i), 0);
		spokei_vfiles_lose(rig.world.files);
		assert_int_equal(spoke_journal_read(rig.env, FOLDER, NULL, NULL, &rig.report), 0);
		assert_int_equal(rig.report.tickets, DROPS - i);
	}
}

TEST(failed_write_of_a_change_is_told)
{
	make_journal();
	close_log();
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_SYNC, 1, -EIO);
	assert_int_equal(change(SPOKE_JOURNAL_DROP, 1), SPOKE_ESYSTEM);
	assert_non_null(strstr(rig.report.why, "Input/output error"));
	assert_int_equal(read_journal(), 0);
	assert_int_equal(rig.count, 2);
	/* The disk may have a record although its write has failed. */
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_WRITE_AT, 1, -EIO);
	assert_int_equal(change(SPOKE_JOURNAL_DROP, 1), SPOKE_ESYSTEM);
	(void)change(SPOKE_JOURNAL_DROP, 1);
	assert_int_equal(read_journal(), 0);
	assert_int_equal(rig.count, 1);
	assert_int_equal(rig.report.damaged, 0);
}

TEST(changes_use_the_room_of_the_last_segment)
{
	open_log();
	for (unsigned i = 0; i < DROPS; i++)
		write_ticket(i, "one");
	close_log();
	for (unsigned i = 0; i < DROPS; i++)
		assert_int_equal(change(i % 2 ? SPOKE_JOURNAL_DROP : SPOKE_JOURNAL_RETRY, i), 0);
	assert_null(spokei_vfiles_get(rig.world.files, FOLDER "/00000002.spokej"));
	assert_int_equal(spoke_journal_read(rig.env, FOLDER, NULL, NULL, &rig.report), 0);
	assert_int_equal(rig.report.tickets, DROPS / 2);
}

TEST(repair_keeps_the_tickets_of_a_segment_without_a_head)
{
	static const unsigned char zeros[SPOKEI_SEGMENT_HEAD];
	int fd;

	make_journal();
	close_log();
	open_log();
	write_ticket(4, "four");
	close_log();
	assert_int_equal(rig.env->files->open_log(rig.env->ctx, FIRST, false, &fd), 0);
	assert_int_equal(rig.env->files->write_at(rig.env->ctx, fd, 0, zeros, sizeof(zeros)), 0);
	rig.env->net->close(rig.env->ctx, fd);
	assert_int_equal(read_journal(), 0);
	assert_int_equal(rig.report.damaged, 1);
	assert_int_equal(rig.count, 3);
	assert_int_equal(change(SPOKE_JOURNAL_REPAIR, 0), 0);
	assert_int_equal(read_journal(), 0);
	assert_int_equal(rig.report.damaged, 0);
	assert_int_equal(rig.count, 3);
}
