/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets in a journal: whatever happens to the process, the machine or the disk, a ticket that was
 * told is settled, by this process or by a later one.
 */
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/journal/journal.h"
#include "core/virtual/files.h"
#include "tests/cluster/call/lives.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define rig clusterrig

static int set_up(void **state)
{
	int error = lives_set_up(state);

	rig.provider_count = 1;
	return error;
}

FIXTURE(set_up, lives_tear_down);

static void use(const char *query)
{
	(void)snprintf(lives.query, sizeof(lives.query), "cluster=failback&%s", query);
}

static void forget_calls(void)
{
	lives.count = 0;
	memset(lives.calls, 0, sizeof(lives.calls));
}

TEST(ticket_goes_on_in_the_next_process)
{
	struct lives_call *call;

	lives_begin();
	call = lives_deferred();
	clusterrig_pass(250 * MS);
	lives_kill();
	clusterrig_start(0);
	lives_begin();
	clusterrig_pass(SECOND);
	assert_int_equal(lives.recoveries, 1);
	assert_int_equal(lives.recovered.error, 0);
	assert_int_equal(lives.recovered.tickets, 1);
	assert_int_equal(call->settled, 1);
	assert_int_equal(call->settlement, SPOKE_TICKET_SUCCESS);
	/* One of the call, two of the first process, one of the second. */
	assert_int_equal(call->attempts, 4);
	assert_int_equal(rig.runs, 1);
	assert_int_equal(rig.run_list[0].attempt, 4);
	lives_kill();
	lives_begin();
	clusterrig_pass(SECOND);
	assert_int_equal(lives.recovered.tickets, 0);
	assert_int_equal(rig.runs, 1);
}

TEST(attempts_in_all_processes_bear_one_id)
{
	clusterrig_start(0);
	rig.providers[0].manner = RIG_SILENT;
	use("retry.period=100ms&retries=50&timeout=50ms");
	lives_begin();
	(void)lives_deferred();
	clusterrig_pass(200 * MS);
	lives_kill();
	lives_begin();
	clusterrig_pass(400 * MS);
	assert_true(rig.runs >= 4);
	for (unsigned i = 1; i < rig.runs; i++) {
		assert_string_equal(rig.run_list[i].id, rig.run_list[0].id);
		assert_true(rig.run_list[i].attempt > rig.run_list[i - 1].attempt);
	}
}

TEST(no_ticket_is_lost_wherever_a_process_ends)
{
	unsigned cut = 0;
	bool over = false;

	for (; !over; cut++) {
		spokei_vfiles_cut(rig.world.files, cut);
		forget_calls();
		(void)lives_try();
		for (unsigned i = 0; lives.consumer && i < 5; i++) {
			(void)lives_call();
			clusterrig_pass(i % 2 ? 1 : 30 * MS);
		}
		over = !spokei_vfiles_is_cut(rig.world.files);
		lives_kill();
		clusterrig_start(0);
		lives_begin();
		clusterrig_pass(3 * SECOND);
		lives_check_book();
		lives_kill();
		clusterrig_kill(0);
	}
	assert_in_range(cut, 8, 200);
}

static void lose_power_at_each_step(bool slowly)
{
	unsigned cut = 0;
	bool over = false;

	lives.options.durability = SPOKE_DURABILITY_POWER;
	for (; !over; cut++) {
		spokei_vfiles_harm(rig.world.files, cut + 1, NULL);
		spokei_vfiles_cut(rig.world.files, cut);
		forget_calls();
		(void)lives_try();
		for (unsigned i = 0; lives.consumer && i < 6; i++) {
			(void)lives_call();
			clusterrig_pass(slowly ? 150 * MS : i % 2 ? 1 : 30 * MS);
		}
		over = !spokei_vfiles_is_cut(rig.world.files);
		lives_lose_power();
		clusterrig_start(0);
		lives_begin();
		clusterrig_pass(3 * SECOND);
		assert_int_equal(lives.recovered.error, 0);
		assert_int_equal(lives.recovered.damaged, 0);
		lives_check_book();
		lives_kill();
		clusterrig_kill(0);
	}
	assert_in_range(cut, 8, 300);
}

TEST(no_ticket_is_lost_wherever_power_fails)
{
	lose_power_at_each_step(false);
}

TEST(no_ticket_is_lost_wherever_power_fails_between_attempts)
{
	lose_power_at_each_step(true);
}

TEST(ticket_is_told_once_it_is_durable)
{
	struct lives_call *call;

	lives.options.durability = SPOKE_DURABILITY_POWER;
	lives_begin();
	clusterrig_pass(10 * MS);
	spokei_vfiles_harm(rig.world.files, 1,
			   &(struct spokei_vfiles_harm){ .sync_is_slow = 1, .slow_ns = 40 * MS });
	call = lives_call();
	clusterrig_pass(30 * MS);
	assert_int_equal(call->ends, 0);
	clusterrig_pass(30 * MS);
	assert_int_equal(call->error, SPOKE_EDEFERRED);
}

TEST(call_is_refused_if_the_journal_takes_too_long)
{
	struct lives_call *call;

	use("retry.period=5s&retries=3");
	lives.options.durability = SPOKE_DURABILITY_POWER;
	lives_begin();
	clusterrig_pass(10 * MS);
	spokei_vfiles_harm(rig.world.files, 1,
			   &(struct spokei_vfiles_harm){ .sync_is_slow = 1,
							 .slow_ns = 10 * SECOND });
	call = lives_call();
	clusterrig_pass(99 * MS);
	assert_int_equal(call->ends, 0);
	clusterrig_pass(20 * MS);
	assert_int_equal(call->ends, 1);
	assert_true(call->error != SPOKE_EDEFERRED && call->error != SPOKE_OK);
	assert_non_null(strstr(call->text, "journal.wait"));
	assert_int_equal(spoke_consumer_tickets(lives.consumer, NULL), 0);
	spokei_vfiles_harm(rig.world.files, 1, NULL);
	clusterrig_pass(12 * SECOND);
	lives_kill();
	lives_begin();
	clusterrig_pass(SECOND);
	assert_int_equal(lives.recovered.tickets, 0);
}

TEST(call_waits_for_a_journal_that_is_read_until_its_deadline)
{
	const struct spokei_vfiles_harm slow = { .sync_is_slow = 1, .slow_ns = 30 * SECOND };
	struct lives_call *call;

	use("retry.period=100ms&retries=50&retry.deadline=5s");
	lives_begin();
	clusterrig_pass(10 * MS);
	lives_kill();
	spokei_vfiles_harm(rig.world.files, 1, &slow);
	lives_begin();
	call = lives_call();
	clusterrig_pass(4900 * MS);
	assert_int_equal(call->ends, 0);
	clusterrig_pass(200 * MS);
	assert_int_equal(call->ends, 1);
	assert_true(call->error != SPOKE_EDEFERRED && call->error != SPOKE_OK);
	spokei_vfiles_harm(rig.world.files, 1, NULL);
	clusterrig_pass(100 * SECOND);
	assert_int_equal(lives.recoveries, 1);
	lives_kill();
	lives_begin();
	clusterrig_pass(SECOND);
	assert_int_equal(lives.recovered.tickets, 0);
}

TEST(durability_without_a_journal_is_told)
{
	lives.options.journal = NULL;
	lives_begin();
	assert_int_equal(scene_events(lives.engine, "durability"), 0);
	lives_kill();
	lives.options.durability = SPOKE_DURABILITY_POWER;
	lives_begin();
	assert_int_equal(scene_events(lives.engine, "durability is not followed"), 1);
}

/* The memory of other calls has a limit of its own. */
TEST(tickets_have_all_the_memory_of_their_own_limit)
{
	const size_t taken = (size_t)300 << 20;

	use("retry.period=100ms&retries=50&failback.bytes=1GiB");
	lives_begin();
	/* As if there were tickets of so many bytes. */
	lives.echo->caller->kept += taken;
	lives.echo->caller->retry.bytes += taken;
	(void)lives_deferred();
	lives.echo->caller->kept -= taken;
	lives.echo->caller->retry.bytes -= taken;
}

TEST(failed_sync_is_not_trusted_later)
{
	use("retry.period=5s&retries=3");
	lives.options.durability = SPOKE_DURABILITY_POWER;
	for (unsigned seed = 1; seed < 20; seed++) {
		spokei_vfiles_harm(rig.world.files, seed, NULL);
		forget_calls();
		lives_begin();
		(void)lives_deferred();
		spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_SYNC, 1, -EIO);
		(void)lives_deferred();
		(void)lives_deferred();
		assert_int_equal(spoke_stat_get(lives.engine, SPOKE_STAT_JOURNAL_FAILURES), 1);
		lives_lose_power();
		clusterrig_start(0);
		lives_begin();
		clusterrig_pass(20 * SECOND);
		assert_int_equal(lives.recovered.tickets, 3);
		lives_check_book();
		lives_kill();
		clusterrig_kill(0);
	}
}

TEST(syncs_that_fail_for_ever_lose_no_ticket_that_was_told)
{
	struct lives_call *call;

	use("retry.period=5s&retries=9");
	lives.options.durability = SPOKE_DURABILITY_POWER;
	lives_begin();
	(void)lives_deferred();
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_SYNC, 100000, -EIO);
	for (unsigned i = 0; i < 5; i++) {
		call = lives_call();
		clusterrig_pass(5 * SECOND);
		assert_int_equal(call->ends, 1);
		assert_true(call->error != SPOKE_EDEFERRED && call->error != SPOKE_OK);
	}
	/* One attempt every 10 s. */
	assert_in_range(spoke_stat_get(lives.engine, SPOKE_STAT_JOURNAL_FAILURES), 3, 5);
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_SYNC, 0, -EIO);
	clusterrig_pass(11 * SECOND);
	(void)lives_deferred();
	lives_lose_power();
	clusterrig_start(0);
	lives_begin();
	clusterrig_pass(20 * SECOND);
	assert_int_equal(lives.recovered.tickets, 2);
	lives_check_book();
}

TEST(calls_are_refused_while_the_journal_cannot_be_written)
{
	struct lives_call *call;

	use("retry.period=5s&retries=3");
	lives_begin();
	(void)lives_deferred();
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_WRITE_AT, 1000, -EIO);
	for (unsigned i = 0; i < 3; i++) {
		call = lives_call();
		clusterrig_pass(200 * MS);
		assert_int_equal(call->ends, 1);
		assert_true(call->error != SPOKE_EDEFERRED && call->error != SPOKE_OK);
	}
	assert_int_equal(scene_events(lives.engine, "cannot be written"), 1);
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_WRITE_AT, 0, -EIO);
	clusterrig_pass(11 * SECOND);
	(void)lives_deferred();
	lives_kill();
	clusterrig_start(0);
	lives_begin();
	clusterrig_pass(20 * SECOND);
	lives_check_book();
}

TEST(ticket_is_settled_although_the_disk_is_full)
{
	struct lives_call *call;
	unsigned taken = 0;

	use("retry.period=5s&retries=3&failback.tasks=400");
	spokei_vfiles_room(rig.world.files, 4u << 20); /* for one segment */
	lives_begin();
	call = lives_deferred();
	clusterrig_start(0);
	clusterrig_pass(8 * SECOND);
	assert_int_equal(call->settlement, SPOKE_TICKET_SUCCESS);
	clusterrig_kill(0);
	clusterrig_pass(100 * MS);
	for (unsigned i = 0; i < 4; i++) {
		call = lives_call();
		clusterrig_pass(100 * MS);
		taken += call->error == SPOKE_EDEFERRED;
	}
	assert_int_equal(taken, 4);
	lives_kill();
	spokei_vfiles_room(rig.world.files, UINT64_MAX);
	clusterrig_start(0);
	lives_begin();
	clusterrig_pass(20 * SECOND);
	assert_int_equal(lives.recovered.tickets, 4);
	lives_check_book();
}

TEST(second_consumer_of_a_journal_is_refused)
{
	struct spoke_consumer_options options = lives.options;
	struct spoke_consumer *other;

	lives_begin();
	options.url = "dubbo://127.0.0.1:20880/demo.Echo";
	assert_int_equal(spoke_consumer_new(lives.engine, &options, &other), SPOKE_EEXIST);
	assert_non_null(strstr(spoke_engine_why(lives.engine), "in use"));
	assert_int_equal(spoke_consumer_new(rig.engine, &options, &other), SPOKE_EEXIST);
	clusterrig_pass(10 * MS);
}

TEST(consumer_that_is_freed_keeps_its_tickets)
{
	struct lives_call *call;

	lives_begin();
	call = lives_deferred();
	spoke_consumer_free(lives.consumer);
	clusterrig_pass(10 * MS);
	assert_int_equal(call->kept, 1);
	assert_int_equal(call->settled, 0);
	assert_int_equal(spoke_stat_get(lives.engine, SPOKE_STAT_TICKETS_KEPT), 1);
	lives_kill();
	clusterrig_start(0);
	lives_begin();
	clusterrig_pass(SECOND);
	assert_int_equal(call->settlement, SPOKE_TICKET_SUCCESS);
}

/* A consumer is freed in a callback that tells of earlier processes: the tickets that are left go
 * on in the next process. */
static void free_inside(enum lives_frees where)
{
	(void)lives_deferred();
	(void)lives_deferred();
	lives_kill();
	clusterrig_start(0);
	lives.frees = where;
	lives_begin();
	clusterrig_pass(5 * SECOND);
	assert_null(lives.consumer);
	assert_int_equal(lives.recoveries, 1);
	assert_int_equal(lives.recovered.tickets, 2);
}

TEST(consumer_that_is_freed_inside_recovered_keeps_its_tickets)
{
	lives_begin();
	free_inside(LIVES_FREE_IN_RECOVERED);
	assert_int_equal(lives.settled, 0);
	assert_int_equal(rig.runs, 0);
	lives_kill();
	lives.frees = LIVES_FREE_NOWHERE;
	lives_begin();
	clusterrig_pass(5 * SECOND);
	assert_int_equal(lives.recovered.tickets, 2);
	lives_check_book();
}

TEST(consumer_that_is_freed_inside_settled_keeps_its_others)
{
	use("retry.period=2s&retries=50");
	lives_begin();
	free_inside(LIVES_FREE_IN_SETTLED);
	assert_int_equal(lives.settled, 1);
	lives_kill();
	lives.frees = LIVES_FREE_NOWHERE;
	lives_begin();
	clusterrig_pass(5 * SECOND);
	assert_int_equal(lives.recovered.tickets, 1);
	assert_int_equal(rig.runs, 2);
	lives_check_book();
}

TEST(deadline_is_one_of_wall_time)
{
	struct lives_call *call;

	use("retry.period=1s&retries=50&retry.deadline=10s");
	lives_begin();
	call = lives_deferred();
	clusterrig_pass(4 * SECOND);
	lives_kill();
	clusterrig_pass(3 * SECOND);
	lives_begin();
	clusterrig_pass(2 * SECOND);
	assert_int_equal(lives.recovered.tickets, 1);
	assert_int_equal(call->settled, 0);
	clusterrig_pass(1500 * MS);
	assert_int_equal(call->settled, 1);
	assert_int_equal(call->settlement, SPOKE_TICKET_EXPIRED);
	assert_in_range(call->lasted_ns, 9900 * MS, 10100 * MS);
}

TEST(ticket_whose_deadline_has_passed_is_expired)
{
	struct lives_call *call;

	use("retry.period=1s&retries=50&retry.deadline=10s");
	lives_begin();
	call = lives_deferred();
	lives_kill();
	clusterrig_start(0);
	clusterrig_pass(11 * SECOND);
	lives_begin();
	clusterrig_pass(SECOND);
	assert_int_equal(lives.recovered.expired, 1);
	assert_int_equal(lives.recovered.tickets, 0);
	assert_int_equal(call->settlement, SPOKE_TICKET_EXPIRED);
	assert_int_equal(rig.runs, 0);
}

TEST(request_that_must_not_run_twice_is_not_sent_again)
{
	struct lives_call *call;

	lives.method.once = true;
	use("retry.period=100ms&retries=50&timeout=10s&retry.deadline=60s");
	lives_begin();
	call = lives_deferred();
	clusterrig_start(0);
	rig.providers[0].manner = RIG_SILENT;
	clusterrig_pass(2 * SECOND);
	assert_int_equal(rig.runs, 1);
	lives_kill();
	lives_begin();
	clusterrig_pass(10 * SECOND);
	assert_int_equal(lives.recovered.unknown, 1);
	assert_int_equal(call->settlement, SPOKE_TICKET_UNKNOWN);
	assert_int_equal(rig.runs, 1);
}

TEST(consumer_that_is_freed_notes_that_a_request_may_have_run)
{
	struct lives_call *call;

	rig.provider_count = 1;
	lives.method.once = true;
	use("retry.period=100ms&retries=50&timeout=10s&retry.deadline=60s");
	lives_begin();
	call = lives_deferred();
	clusterrig_start(0);
	rig.providers[0].manner = RIG_SILENT;
	clusterrig_pass(2 * SECOND);
	assert_int_equal(rig.runs, 1);
	spoke_consumer_free(lives.consumer);
	clusterrig_pass(10 * MS);
	assert_int_equal(call->kept, 1);
	lives_kill();
	lives_begin();
	clusterrig_pass(10 * SECOND);
	assert_int_equal(call->settlement, SPOKE_TICKET_UNKNOWN);
	assert_int_equal(rig.runs, 1);
}

/* Begins a life and kills it after some turns. */
static void live_for(unsigned turns)
{
	lives_begin();
	for (unsigned i = 0; i < turns; i++)
		(void)spokei_world_step(&rig.world, rig.world.now_ns + MS);
	lives_kill();
}

TEST(end_of_a_ticket_is_told_before_the_journal_knows_it)
{
	struct lives_call *call;

	rig.provider_count = 1;
	lives.method.once = true;
	use("retry.period=100ms&retries=50&timeout=10s&retry.deadline=60s");
	for (unsigned turns = 0; turns < 30; turns++) {
		lives.count = 0;
		memset(lives.calls, 0, sizeof(lives.calls));
		lives_begin();
		call = lives_deferred();
		clusterrig_start(0);
		rig.providers[0].manner = RIG_SILENT;
		clusterrig_pass(SECOND);
		lives_kill();
		live_for(turns);
		lives_begin();
		clusterrig_pass(SECOND);
		assert_true(call->settled > 0);
		assert_int_equal(call->settlement, SPOKE_TICKET_UNKNOWN);
		lives_kill();
		clusterrig_kill(0);
	}
}

/* Asserts that no id has run twice. */
static void check_runs(void)
{
	for (unsigned i = 0; i < rig.runs; i++)
		for (unsigned k = i + 1; k < rig.runs; k++)
			assert_string_not_equal(rig.run_list[i].id, rig.run_list[k].id);
}

TEST(once_means_at_most_once_wherever_power_fails)
{
	unsigned cut = 0;
	bool over = false;

	lives.method.once = true;
	lives.options.durability = SPOKE_DURABILITY_POWER;
	for (; !over; cut++) {
		spokei_vfiles_harm(rig.world.files, cut + 1, NULL);
		spokei_vfiles_cut(rig.world.files, cut);
		forget_calls();
		rig.runs = 0;
		(void)lives_try();
		for (unsigned i = 0; lives.consumer && i < 4; i++) {
			(void)lives_call();
			clusterrig_pass(30 * MS);
		}
		/* Some have an answer, which may not be on the disk. */
		clusterrig_start(0);
		rig.providers[0].manner = cut % 2 ? RIG_ECHO : RIG_SILENT;
		clusterrig_pass(200 * MS);
		over = !spokei_vfiles_is_cut(rig.world.files);
		lives_lose_power();
		rig.providers[0].manner = RIG_ECHO;
		lives_begin();
		clusterrig_pass(20 * SECOND);
		for (unsigned i = 0; i < lives.count; i++)
			assert_true(lives.calls[i].settled >= lives.calls[i].told);
		check_runs();
		lives_kill();
		clusterrig_kill(0);
	}
	assert_in_range(cut, 8, 300);
}

TEST(ticket_that_is_answered_during_a_drain_is_settled)
{
	struct lives_call *call;

	rig.provider_count = 1;
	use("retry.period=100ms&retries=50&timeout=10s&retry.deadline=60s");
	lives_begin();
	call = lives_deferred();
	clusterrig_start(0);
	rig.providers[0].manner = RIG_SILENT;
	clusterrig_pass(2 * SECOND);
	assert_int_equal(rig.runs, 1);
	assert_int_equal(spoke_engine_drain(lives.engine, 5 * SECOND), 0);
	clusterrig_pass(10 * MS);
	spoke_reply_error(rig.providers[0].held[--rig.providers[0].held_count], 7, "no");
	clusterrig_pass(100 * MS);
	assert_int_equal(call->kept, 0);
	assert_int_equal(call->settlement, SPOKE_TICKET_EXHAUSTED);
	lives_kill();
	lives_begin();
	clusterrig_pass(SECOND);
	assert_int_equal(lives.recovered.tickets, 0);
	assert_int_equal(rig.runs, 1);
}

TEST(ticket_that_is_written_anew_keeps_the_attempt_that_begins)
{
	struct spokei_journal *journal;
	struct lives_call *call;

	rig.provider_count = 1;
	lives.method.once = true;
	use("retry.period=100ms&retries=50&timeout=10s&retry.deadline=60s");
	lives_begin();
	call = lives_deferred();
	clusterrig_start(0);
	rig.providers[0].manner = RIG_SILENT;
	/* With the next record. */
	journal = lives.echo->caller->journal;
	journal->move_before = journal->position;
	clusterrig_pass(SECOND);
	assert_int_equal(rig.runs, 1);
	lives_kill();
	lives_begin();
	clusterrig_pass(10 * SECOND);
	assert_int_equal(call->settlement, SPOKE_TICKET_UNKNOWN);
	assert_int_equal(rig.runs, 1);
}

TEST(request_that_must_not_run_twice_goes_on_if_it_has_not_run)
{
	struct lives_call *call;

	lives.method.once = true;
	lives_begin();
	call = lives_deferred();
	clusterrig_pass(350 * MS);
	lives_kill();
	clusterrig_start(0);
	lives_begin();
	clusterrig_pass(SECOND);
	assert_int_equal(call->settlement, SPOKE_TICKET_SUCCESS);
	assert_int_equal(rig.runs, 1);
}

TEST(next_process_knows_what_must_not_run_twice)
{
	struct lives_call *call;

	lives.method.once = true;
	use("retry.period=100ms&retries=50&timeout=500ms&retry.deadline=60s");
	lives_begin();
	call = lives_deferred();
	lives_kill();
	clusterrig_start(0);
	rig.providers[0].manner = RIG_SILENT;
	lives.method.once = false;
	lives_begin();
	clusterrig_pass(10 * SECOND);
	assert_int_equal(call->settlement, SPOKE_TICKET_UNKNOWN);
	assert_int_equal(rig.runs, 1);
}

TEST(attempts_go_on_although_a_full_disk_cannot_take_their_number)
{
	struct lives_call *call;

	use("retry.period=10ms&retries=100&retry.deadline=60s");
	lives_begin();
	call = lives_deferred();
	clusterrig_pass(15 * MS);
	/* As if records of attempts had used up all room but that of ends. */
	lives.echo->caller->journal->full = true;
	lives.echo->caller->journal->room = 0;
	clusterrig_pass(200 * MS);
	clusterrig_start(0);
	clusterrig_pass(2 * SECOND);
	assert_int_equal(call->settlement, SPOKE_TICKET_SUCCESS);
}

TEST(request_that_may_have_run_ends_as_unknown_without_a_repeat)
{
	struct lives_call *call;

	lives.method.once = true;
	use("retry.period=100ms&retries=50&timeout=500ms");
	lives_begin();
	call = lives_deferred();
	clusterrig_start(0);
	rig.providers[0].manner = RIG_SILENT;
	clusterrig_pass(10 * SECOND);
	assert_int_equal(call->settlement, SPOKE_TICKET_UNKNOWN);
	assert_int_equal(rig.runs, 1);
}

TEST(repeat_of_the_next_process_is_recognised)
{
	struct lives_call *call;

	rig.provider_count = 2;
	rig.dedupe_ns = 600 * SECOND;
	use("retry.period=100ms&retries=50&timeout=10s&retry.deadline=60s");
	lives_begin();
	call = lives_deferred();
	clusterrig_start(0);
	clusterrig_start(1);
	rig.providers[0].manner = rig.providers[1].manner = RIG_SLOW;
	rig.providers[0].least_ns = rig.providers[1].least_ns = 3 * SECOND;
	clusterrig_pass(2 * SECOND);
	assert_int_equal(rig.runs, 1);
	lives_kill();
	lives_begin();
	clusterrig_pass(10 * SECOND);
	assert_int_equal(call->settlement, SPOKE_TICKET_SUCCESS);
	assert_int_equal(rig.runs, 1);
}

/* The provider answers while no process reads that. */
TEST(answer_that_is_lost_with_the_process_is_given_again)
{
	struct lives_call *call;

	rig.dedupe_ns = 600 * SECOND;
	use("retry.period=100ms&retries=50&timeout=10s&retry.deadline=60s");
	lives_begin();
	call = lives_deferred();
	clusterrig_start(0);
	rig.providers[0].manner = RIG_SLOW;
	rig.providers[0].least_ns = SECOND;
	for (unsigned i = 0; i < 5000 && rig.runs == 0; i++)
		clusterrig_pass(MS);
	assert_int_equal(rig.runs, 1);
	lives_kill();
	clusterrig_pass(3 * SECOND);
	assert_int_equal(call->settled, 0);
	lives_begin();
	clusterrig_pass(5 * SECOND);
	assert_int_equal(call->settlement, SPOKE_TICKET_SUCCESS);
	assert_true(call->attempts > rig.run_list[0].attempt);
	assert_int_equal(rig.runs, 1);
}

TEST(ticket_goes_on_without_its_method_in_the_program)
{
	struct lives_call *call;

	lives_begin();
	call = lives_deferred();
	lives_kill();
	clusterrig_start(0);
	lives.lacks_method = true;
	lives_begin();
	clusterrig_pass(SECOND);
	assert_int_equal(call->settlement, SPOKE_TICKET_SUCCESS);
}

TEST(damaged_journal_is_refused_or_salvaged)
{
	struct lives_call *call;

	lives.options.durability = SPOKE_DURABILITY_POWER;
	lives_begin();
	(void)lives_deferred();
	call = lives_deferred();
	lives_kill();
	spokei_vfiles_flip(rig.world.files, LIVES_FOLDER "/00000001.spokej", 8 * (64 + 30));
	clusterrig_start(0);
	lives_begin();
	clusterrig_pass(SECOND);
	assert_int_equal(lives.recovered.error, SPOKE_ECORRUPT);
	assert_int_equal(scene_events(lives.engine, "damaged at byte 64 of 00000001.spokej"), 1);
	clusterrig_kill(0);
	clusterrig_pass(10 * MS);
	assert_true(lives_call()->error != SPOKE_EDEFERRED);
	lives_kill();
	use("retry.period=100ms&retries=50&journal.damaged=salvage");
	clusterrig_start(0);
	lives_begin();
	clusterrig_pass(SECOND);
	assert_int_equal(lives.recovered.error, 0);
	assert_int_equal(lives.recovered.damaged, 1);
	assert_int_equal(lives.recovered.tickets, 1);
	assert_int_equal(call->settlement, SPOKE_TICKET_SUCCESS);
}

TEST(many_tickets_are_spread_over_the_period)
{
	use("retry.period=1s&retries=50&failback.tasks=400");
	lives_begin();
	for (unsigned i = 0; i < 300; i++)
		(void)lives_call();
	clusterrig_pass(50 * MS);
	assert_int_equal(lives.told, 300);
	lives_kill();
	lives_begin();
	clusterrig_pass(1100 * MS);
	assert_int_equal(lives.recovered.tickets, 300);
	assert_int_equal(spoke_consumer_tickets(lives.consumer, NULL), 300);
	clusterrig_start(0);
	clusterrig_pass(60 * SECOND);
	lives_check_book();
}

TEST(recovery_that_is_interrupted_again_and_again_loses_nothing)
{
	use("retry.period=5s&retries=50&failback.tasks=400");
	lives.options.durability = SPOKE_DURABILITY_POWER;
	lives_begin();
	for (unsigned i = 0; i < 200; i++)
		(void)lives_call();
	clusterrig_pass(50 * MS);
	assert_int_equal(lives.told, 200);
	lives_lose_power();
	for (unsigned i = 0; i < 10; i++) {
		spokei_vfiles_cut(rig.world.files, i);
		if (lives_try() == 0)
			clusterrig_pass(i % 3 ? i * 100000 : 20 * MS);
		lives_lose_power();
	}
	clusterrig_start(0);
	lives_begin();
	clusterrig_pass(SECOND);
	assert_int_equal(lives.recovered.tickets, 200);
	clusterrig_pass(60 * SECOND);
	lives_check_book();
}

/* The machine's clocks jump while no process runs. */
static struct lives_call *live_through_a_jump(int64_t jump_ns)
{
	struct lives_call *call;

	use("retry.period=1s&retries=100&retry.deadline=10s");
	lives_begin();
	call = lives_deferred();
	clusterrig_pass(2 * SECOND);
	lives_kill();
	lives.ahead_ns = (uint64_t)jump_ns;
	lives_begin();
	clusterrig_pass(9 * SECOND);
	return call;
}

TEST(clock_that_was_set_forward_expires_tickets)
{
	const struct lives_call *call = live_through_a_jump((int64_t)(365 * 86400 * SECOND));

	assert_int_equal(lives.recovered.expired, 1);
	assert_int_equal(call->settlement, SPOKE_TICKET_EXPIRED);
}

TEST(clock_that_was_set_back_lengthens_no_ticket)
{
	const struct lives_call *call = live_through_a_jump(-(int64_t)(365 * 86400 * SECOND));

	assert_int_equal(lives.recovered.tickets, 1);
	assert_int_equal(call->settled, 0);
	clusterrig_pass(1200 * MS);
	assert_int_equal(call->settled, 1);
	assert_int_equal(call->settlement, SPOKE_TICKET_EXPIRED);
}

TEST(missing_or_unwritable_folder_is_told)
{
	const struct lives_call *refused;

	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_LOCK, 1, -ENOENT);
	assert_int_equal(lives_try(), SPOKE_ESYSTEM);
	assert_int_equal(scene_events(lives.engine, "journal /var/j"), 1);
	lives_kill();
	/* The lock has its file. */
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_OPEN_LOG, 3, -EACCES);
	lives_begin();
	clusterrig_pass(10 * MS);
	/* Tickets of before go on; new ones are refused until there is a segment. */
	assert_int_equal(lives.recovered.error, 0);
	assert_int_equal(scene_events(lives.engine, "journal /var/j cannot be written"), 1);
	refused = lives_call();
	clusterrig_pass(2 * SECOND);
	assert_int_equal(refused->ends, 1);
	assert_true(refused->error != SPOKE_EDEFERRED && refused->error != SPOKE_ELIMIT);
	assert_non_null(
		strstr(spoke_engine_why(lives.engine), "cannot be written: Permission denied"));
	clusterrig_pass(10 * SECOND);
	(void)lives_deferred();
	lives_kill();
	/* The descriptors are used up, and free again. */
	lives_begin();
	clusterrig_pass(10 * MS);
	assert_int_equal(lives.recovered.error, 0);
	(void)lives_deferred();
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_OPEN_LOG, 3, -EMFILE);
	(void)lives_deferred();
}

TEST(tickets_are_taken_in_memory_if_the_journal_is_optional)
{
	struct lives_call *call;

	use("retry.period=100ms&retries=50&journal.broken=volatile");
	lives_begin();
	(void)lives_deferred();
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_WRITE_AT, 1000, -EIO);
	call = lives_deferred();
	clusterrig_pass(SECOND);
	(void)lives_deferred();
	clusterrig_start(0);
	clusterrig_pass(5 * SECOND);
	assert_int_equal(call->settlement, SPOKE_TICKET_SUCCESS);
	lives_check_book();
}

/* Two lives, in which one allocation fails. Returns whether one did. */
static bool live_with_failing_allocation(uint64_t in_first, uint64_t in_second)
{
	bool failed;

	spokei_vfiles_harm(rig.world.files, 1, NULL);
	forget_calls();
	lives.fail_at = in_first;
	if (lives_try() == 0) {
		for (unsigned i = 0; i < 3; i++) {
			(void)lives_call();
			clusterrig_pass(60 * MS);
		}
	}
	failed = in_first > 0 && lives.process.demands >= lives.process.fail_at;
	lives_kill();
	clusterrig_start(0);
	lives.fail_at = in_second;
	if (lives_try() == 0)
		clusterrig_pass(5 * SECOND);
	failed |= in_second > 0 && lives.process.demands >= lives.process.fail_at;
	lives_kill();
	lives.fail_at = 0;
	lives_begin();
	clusterrig_pass(5 * SECOND);
	for (unsigned i = 0; i < lives.count; i++)
		assert_true(lives.calls[i].settled >= lives.calls[i].told);
	lives_kill();
	clusterrig_kill(0);
	return failed;
}

TEST(no_ticket_is_lost_whichever_allocation_fails)
{
	uint64_t at = 1;

	use("retry.period=50ms&retries=50");
	while (live_with_failing_allocation(at, 0))
		at++;
	assert_in_range(at, 30, 1000);
	at = 1;
	while (live_with_failing_allocation(0, at))
		at++;
	assert_in_range(at, 30, 1000);
}
