/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal with an owner that is as small as possible, and with small segments: through ends of
 * the process, losses of power and failures of the disk, each ticket that was told is restored
 * until it was settled, and the files stay small.
 */
#include "cluster/journal/journal.h"
#include "core/base/span.h"
#include "core/engine/engine.h"
#include "core/virtual/files.h"
#include "core/virtual/world.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define FOLDER "/j"

enum {
	TICKETS = 2000,
	SEGMENT = 8192,
	SEEDS = 60,
};

enum state {
	NONE,
	ADDED,
	TOLD,
	SETTLED
};

struct item {
	struct spokei_journal_ticket ticket;
	enum state state;
	bool live; /* in this life */
	bool restored;
	uint32_t attempts;
	size_t size;
};

static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spokei_journal journal;
	struct spokei_journal_options options;
	struct spokei_journal_found found;
	struct item items[TICKETS];
	unsigned next;
	unsigned recoveries;
	unsigned refused;
	unsigned restored;
	int restore_error; /* of the next restore() */
	uint64_t fail_at;  /* the allocation that fails in the next life, counted from 1; 0: none */
	bool closed;
	char bytes[4096];
} rig;

static struct item *item_of(struct spokei_journal_ticket *ticket)
{
	return spoke_container_of(ticket, struct item, ticket);
}

static int put(struct spokei_journal_ticket *ticket, struct spokei_buffer *out)
{
	const struct item *item = item_of(ticket);
	const struct spokei_record_open open = {
		.service = spokei_span_of("s"),
		.method = spokei_span_of("m"),
		.arguments = spokei_span(rig.bytes, item->size),
		.tried = { .attempts = item->attempts },
	};

	return spokei_record_put_open(out, ticket->number, &open);
}

static void waited(struct spokei_journal_ticket *ticket, int error)
{
	struct item *item = item_of(ticket);

	if (item->state != ADDED)
		return;
	if (error == 0) {
		item->state = TOLD;
		return;
	}
	item->live = false;
	item->state = SETTLED;
	rig.refused++;
	spokei_journal_settle(&rig.journal, ticket, 1);
}

static int restore(void *arg, const struct spokei_replay_ticket *ticket)
{
	struct item *item;
	int error = rig.restore_error;

	(void)arg;
	rig.restore_error = 0;
	if (error)
		return error;
	assert_true(ticket->number < rig.next);
	item = &rig.items[ticket->number];
	assert_true(item->state != NONE && !item->restored);
	assert_int_equal(ticket->open.arguments.len, item->size);
	item->attempts = ticket->open.tried.attempts;
	item->restored = true;
	item->live = true;
	rig.restored++;
	spokei_journal_adopt(&rig.journal, &item->ticket, ticket);
	return 0;
}

static void recovered(void *arg, const struct spokei_journal_found *found)
{
	(void)arg;
	rig.recoveries++;
	rig.found = *found;
}

static void closed(void *arg)
{
	(void)arg;
	rig.closed = true;
}

static const struct spokei_journal_up up = {
	.put = put,
	.waited = waited,
	.restore = restore,
	.recovered = recovered,
	.closed = closed,
};

static void boot(uint64_t seed)
{
	memset(&rig, 0, sizeof(rig));
	scene_open(&rig.world, seed);
	spokei_vfiles_harm(rig.world.files, seed, NULL);
	rig.options = (struct spokei_journal_options){
		.folder = FOLDER,
		.durability = SPOKEI_DURABILITY_POWER,
		.sync_ns = SECOND,
		.wait_ns = 100 * MS,
		.segment_size = SEGMENT,
	};
}

static int begin(void)
{
	rig.engine = scene_engine(&rig.world, &rig.process, NULL, NULL);
	rig.process.fail_at = rig.fail_at ? rig.process.demands + rig.fail_at : 0;
	rig.recoveries = 0;
	rig.restored = 0;
	rig.closed = false;
	for (unsigned i = 0; i < TICKETS; i++)
		rig.items[i].live = rig.items[i].restored = false;
	return spokei_journal_begin(&rig.journal, rig.engine, &rig.options, &up, NULL);
}

static void pass(uint64_t ns)
{
	scene_pass(&rig.world, ns);
}

/* Closes the journal and ends the process. */
static void end(void)
{
	spokei_engine_refresh(rig.engine);
	spokei_journal_close(&rig.journal);
	for (unsigned i = 0; i < 10000 && !rig.closed; i++)
		pass(MS);
	assert_true(rig.closed);
	spokei_journal_fini(&rig.journal);
	scene_leave(&rig.process, NULL, &rig.engine);
}

/* The process ends at once. */
static void kill_process(void)
{
	spokei_vfiles_cut(rig.world.files, 0);
	end();
	spokei_vfiles_cut(rig.world.files, UINT_MAX);
}

static void halt(void)
{
	spokei_world_fini(&rig.world);
}

static int add(size_t size)
{
	struct item *item = &rig.items[rig.next];
	int error;

	assert_true(rig.next < TICKETS);
	spokei_engine_refresh(rig.engine);
	*item = (struct item){ .state = ADDED, .live = true, .attempts = 1, .size = size };
	error = spokei_journal_add(&rig.journal, &item->ticket, rig.next);
	if (error)
		*item = (struct item){ .state = NONE };
	else
		rig.next++;
	if (!error && item->ticket.waiting.next == NULL)
		item->state = TOLD;
	return error;
}

static void settle(struct item *item)
{
	spokei_engine_refresh(rig.engine);
	item->live = false;
	item->state = SETTLED;
	spokei_journal_settle(&rig.journal, &item->ticket, 2);
}

static unsigned segments(void)
{
	char names[8192];
	const struct spoke_env *env = &rig.process.env;
	ssize_t len = env->files->list(env->ctx, FOLDER, names, sizeof(names));
	unsigned count = 0;

	for (ssize_t i = 0; i < len; i += (ssize_t)strlen(names + i) + 1)
		count += strstr(names + i, ".spokej") != NULL;
	return count;
}

/* Asserts that all tickets that were told go on. */
static void check_restored(void)
{
	assert_int_equal(rig.recoveries, 1);
	assert_int_equal(rig.found.error, 0);
	assert_int_equal(rig.found.log.damaged, 0);
	for (unsigned i = 0; i < rig.next; i++)
		if (rig.items[i].state == TOLD && !rig.items[i].restored)
			fail_msg("ticket %u is lost", i);
}

static uint64_t roll(uint64_t *dice)
{
	*dice = *dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *dice >> 33;
}

static void act_at_random(uint64_t *dice)
{
	struct item *item = rig.next ? &rig.items[roll(dice) % rig.next] : NULL;

	switch (roll(dice) % 4) {
	case 0:
	case 1:
		if (rig.next < TICKETS)
			(void)add(roll(dice) % 400);
		break;
	case 2:
		if (item && item->live)
			settle(item);
		break;
	default:
		if (item && item->live) {
			const struct spokei_record_tried tried = { .attempts = ++item->attempts };

			spokei_engine_refresh(rig.engine);
			(void)spokei_journal_note(&rig.journal, &item->ticket, &tried, false);
		}
		break;
	}
	if (roll(dice) % 3 == 0)
		pass(roll(dice) % (3 * MS));
}

static void live_at_random(uint64_t seed, enum spokei_durability durability,
			   const struct spokei_vfiles_harm *harm)
{
	uint64_t dice = seed;

	boot(seed);
	rig.options.durability = durability;
	for (unsigned life = 0; life < 6; life++) {
		spokei_vfiles_harm(rig.world.files, seed * 8 + life, NULL);
		assert_int_equal(begin(), 0);
		pass(20 * MS);
		check_restored();
		spokei_vfiles_harm(rig.world.files, seed * 8 + life, harm);
		for (unsigned i = 0; i < 120; i++)
			act_at_random(&dice);
		kill_process();
		if (durability == SPOKEI_DURABILITY_POWER)
			spokei_vfiles_lose(rig.world.files);
	}
	spokei_vfiles_harm(rig.world.files, seed, NULL);
	assert_int_equal(begin(), 0);
	pass(SECOND);
	check_restored();
	end();
	halt();
}

TEST(told_tickets_survive_losses_of_power)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		live_at_random(seed, SPOKEI_DURABILITY_POWER, NULL);
}

TEST(told_tickets_survive_ends_of_the_process)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		live_at_random(seed, SPOKEI_DURABILITY_PROCESS, NULL);
}

TEST(tickets_survive_a_lack_of_memory_when_they_are_read)
{
	bool failed = true;

	for (uint64_t at = 1; failed; at++) {
		boot(at);
		assert_int_equal(begin(), 0);
		pass(MS);
		for (unsigned i = 0; i < 20; i++) {
			assert_int_equal(add(1000), 0);
			pass(MS);
		}
		kill_process();
		rig.fail_at = at;
		if (begin() == 0) {
			pass(10 * MS);
			failed = rig.process.demands >= rig.process.fail_at;
			rig.process.fail_at = rig.fail_at = 0;
			/* Segments that no ticket needs are removed meanwhile. */
			for (unsigned i = 0; i < 10 && rig.found.error == 0; i++) {
				(void)add(1000);
				pass(10 * MS);
			}
			kill_process();
		}
		assert_int_equal(begin(), 0);
		pass(100 * MS);
		check_restored();
		end();
		halt();
	}
}

TEST(written_tickets_survive_a_failed_write_and_a_kill)
{
	unsigned cut = 0;
	bool over = false;

	for (; !over; cut++) {
		boot(cut + 1);
		rig.options.durability = SPOKEI_DURABILITY_PROCESS;
		assert_int_equal(begin(), 0);
		pass(MS);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(add(100), 0);
		pass(MS);
		assert_int_equal(rig.items[2].state, TOLD);
		spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_WRITE_AT, 1, -EIO);
		spokei_vfiles_cut(rig.world.files, cut);
		(void)add(100);
		for (unsigned i = 0; i < 5; i++)
			pass(MS);
		over = !spokei_vfiles_is_cut(rig.world.files);
		kill_process();
		assert_int_equal(begin(), 0);
		pass(100 * MS);
		check_restored();
		end();
		halt();
	}
	assert_in_range(cut, 5, 100);
}

TEST(told_tickets_survive_a_disk_that_fails)
{
	const struct spokei_vfiles_harm harm = { .write_fails = 30, .sync_fails = 30 };

	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		live_at_random(seed, SPOKEI_DURABILITY_POWER, &harm);
}

TEST(told_tickets_survive_losses_of_power_after_an_end)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		boot(seed);
		rig.options.durability = SPOKEI_DURABILITY_PROCESS;
		assert_int_equal(begin(), 0);
		pass(10 * MS);
		for (unsigned i = 0; i < 18; i++) /* enough to keep their segment */
			assert_int_equal(add(250), 0);
		pass(10 * MS);
		kill_process();
		assert_int_equal(begin(), 0);
		pass(10 * MS);
		check_restored();
		assert_int_equal(rig.journal.log.first, 1);
		kill_process();
		spokei_vfiles_lose(rig.world.files);
		assert_int_equal(begin(), 0);
		pass(10 * MS);
		check_restored();
		end();
		halt();
	}
}

/* Its record may not have been written when its end finds no memory. */
TEST(ticket_that_ends_without_memory_does_not_come_back)
{
	unsigned failures = 0;

	for (size_t size = 1; size < 300; size++) {
		boot(size);
		assert_int_equal(begin(), 0);
		pass(10 * MS);
		assert_int_equal(add(100), 0);
		assert_int_equal(add(size), 0);
		rig.process.fail_at = rig.process.demands + 1;
		settle(&rig.items[1]);
		failures += rig.process.demands >= rig.process.fail_at;
		rig.process.fail_at = 0;
		pass(SECOND);
		end();
		assert_int_equal(begin(), 0);
		pass(10 * MS);
		check_restored();
		assert_int_equal(rig.restored, 1);
		end();
		halt();
	}
	assert_true(failures > 0);
}

TEST(settled_tickets_do_not_come_back)
{
	boot(3);
	rig.options.segment_size = 1u << 20;
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(add(100), 0);
	pass(10 * MS);
	for (unsigned i = 0; i < 100; i++)
		if (i % 10)
			settle(&rig.items[i]);
	end();
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	check_restored();
	assert_int_equal(rig.restored, 10);
	end();
	halt();
}

TEST(tickets_that_are_kept_are_restored_from_all_segments)
{
	boot(10);
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	for (unsigned i = 0; i < 150; i++) {
		assert_int_equal(add(200), 0);
		pass(MS);
	}
	for (unsigned i = 0; i < 150; i++) {
		spokei_engine_refresh(rig.engine);
		spokei_journal_keep(&rig.journal, &rig.items[i].ticket);
		rig.items[i].live = false;
		if (i % 10 == 0) {
			assert_int_equal(add(200), 0);
			pass(MS);
			settle(&rig.items[rig.next - 1]);
			pass(MS);
		}
	}
	end();
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	check_restored();
	assert_int_equal(rig.restored, 150);
	end();
	halt();
}

TEST(files_stay_within_twice_the_tickets_and_three_segments)
{
	unsigned most = 0;

	boot(4);
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	for (unsigned i = 0; i < 20; i++) /* these stay */
		assert_int_equal(add(350), 0);
	for (unsigned i = 0; i < 1500; i++) {
		assert_int_equal(add(100), 0);
		pass(MS);
		settle(&rig.items[20 + i]);
		pass(MS);
		if (segments() > most)
			most = segments();
		assert_true((uint64_t)segments() * SEGMENT <=
			    2 * rig.journal.live_bytes + 3 * SEGMENT + 2048);
	}
	assert_true(rig.journal.log.segment.number > 20);
	kill_process();
	spokei_vfiles_lose(rig.world.files);
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	check_restored();
	assert_int_equal(rig.restored, 20);
	end();
	halt();
}

TEST(forgotten_tickets_need_no_record_and_free_their_files)
{
	boot(4);
	rig.options.no_ends = true;
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(add(100), 0);
		pass(MS);
		assert_int_equal(rig.items[i].state, TOLD);
		if (i < 20)
			continue;
		spokei_engine_refresh(rig.engine);
		rig.items[i - 20].live = false;
		rig.items[i - 20].state = SETTLED;
		spokei_journal_forget(&rig.journal, &rig.items[i - 20].ticket);
		pass(MS);
		assert_true(segments() <= 4);
	}
	assert_true(rig.journal.log.segment.number > 10);
	kill_process();
	spokei_vfiles_lose(rig.world.files);
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	check_restored();
	end();
	halt();
}

TEST(full_disk_takes_a_ticket_without_end_while_there_is_room)
{
	unsigned taken = 0;

	boot(5);
	rig.options.no_ends = true;
	spokei_vfiles_room(rig.world.files, 3 * SEGMENT);
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	while (taken < TICKETS && spokei_journal_check(&rig.journal, 200) == 0) {
		assert_int_equal(add(100), 0);
		pass(2 * MS);
		assert_int_equal(rig.items[taken++].state, TOLD);
	}
	assert_true(rig.journal.full && taken > 50 && taken < TICKETS);
	assert_int_equal(rig.journal.failures, 0);
	spokei_vfiles_room(rig.world.files, UINT64_MAX);
	pass(2 * SECOND);
	assert_int_equal(spokei_journal_check(&rig.journal, 200), 0);
	end();
	halt();
}

TEST(loss_of_power_at_each_step_of_a_compaction_loses_nothing)
{
	unsigned cut = 0;
	bool over = false;

	for (; !over; cut++) {
		boot(cut + 1);
		assert_int_equal(begin(), 0);
		pass(10 * MS);
		for (unsigned i = 0; i < 20; i++)
			assert_int_equal(add(300), 0);
		pass(10 * MS);
		spokei_vfiles_cut(rig.world.files, cut);
		for (unsigned i = 0; i < 60; i++) {
			if (add(300) == 0 && rig.items[rig.next - 1].state != NONE) {
				pass(MS);
				if (rig.items[rig.next - 1].live)
					settle(&rig.items[rig.next - 1]);
			}
			pass(MS);
		}
		over = !spokei_vfiles_is_cut(rig.world.files);
		kill_process();
		spokei_vfiles_lose(rig.world.files);
		assert_int_equal(begin(), 0);
		pass(20 * MS);
		check_restored();
		end();
		halt();
	}
	assert_true(cut > 100);
}

TEST(full_disk_refuses_new_tickets_and_takes_all_ends)
{
	unsigned taken = 0;
	int error = 0;

	boot(5);
	spokei_vfiles_room(rig.world.files, 3 * SEGMENT);
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	for (; !error && taken < TICKETS; taken += !error) {
		error = add(100);
		pass(2 * MS);
	}
	assert_int_equal(error, SPOKE_ELIMIT);
	taken = rig.next;
	assert_true(taken > 50);
	for (unsigned i = 0; i < taken; i++) {
		if (rig.items[i].live)
			settle(&rig.items[i]);
		pass(MS);
	}
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_JOURNAL_FAILURES), 0);
	kill_process();
	spokei_vfiles_lose(rig.world.files);
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	check_restored();
	assert_int_equal(rig.restored, 0);
	assert_int_equal(add(100), 0);
	end();
	halt();
}

TEST(bytes_of_the_files_are_bounded)
{
	int error = 0;

	boot(16);
	rig.options.segment_size = 0;
	rig.options.size_max = 2 * SPOKEI_LOG_SEGMENT;
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	while (!error && rig.next < TICKETS) {
		error = add(sizeof(rig.bytes));
		pass(MS);
	}
	assert_int_equal(error, SPOKE_ELIMIT);
	assert_in_range(rig.next, 900, 1200);
	end();
	halt();
}

TEST(tickets_go_on_although_the_disk_is_full_at_the_start)
{
	unsigned taken;

	boot(15);
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(add(100), 0);
		pass(2 * MS);
	}
	kill_process();
	spokei_vfiles_lose(rig.world.files);
	taken = rig.next;
	/* A spare segment that was never begun is removed. */
	spokei_vfiles_room(rig.world.files, SEGMENT);
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	check_restored();
	assert_int_equal(rig.restored, taken);
	assert_int_equal(rig.found.error, SPOKE_OK);
	assert_int_equal(add(100), SPOKE_ESYSTEM);
	for (unsigned i = 0; i < taken / 2; i++)
		settle(&rig.items[i]);
	pass(3000 * MS);
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_JOURNAL_FAILURES), 4);
	spokei_vfiles_room(rig.world.files, 100 * SEGMENT);
	pass(3000 * MS);
	assert_int_equal(add(100), 0);
	pass(10 * MS);
	kill_process();
	spokei_vfiles_lose(rig.world.files);
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	check_restored();
	assert_int_equal(rig.restored, taken - taken / 2 + 1);
	end();
	halt();
}

TEST(records_are_synced_after_a_while_if_only_written)
{
	unsigned before;

	boot(6);
	rig.options.durability = SPOKEI_DURABILITY_PROCESS;
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	before = spokei_vfiles_calls(rig.world.files, SPOKEI_VFILES_SYNC);
	for (unsigned i = 0; i < 9; i++) {
		assert_int_equal(add(10), 0);
		pass(100 * MS);
		assert_int_equal(rig.items[i].state, TOLD);
	}
	assert_int_equal(spokei_vfiles_calls(rig.world.files, SPOKEI_VFILES_SYNC), before);
	pass(200 * MS);
	assert_int_equal(spokei_vfiles_calls(rig.world.files, SPOKEI_VFILES_SYNC), before + 1);
	kill_process();
	spokei_vfiles_lose(rig.world.files);
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	check_restored();
	end();
	halt();
}

TEST(many_records_of_a_turn_are_one_write)
{
	unsigned before;

	boot(7);
	rig.options.segment_size = 1u << 20;
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	before = spokei_vfiles_calls(rig.world.files, SPOKEI_VFILES_WRITE_AT);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(add(100), 0);
	pass(MS);
	assert_int_equal(spokei_vfiles_calls(rig.world.files, SPOKEI_VFILES_WRITE_AT), before + 1);
	end();
	halt();
}

TEST(gathered_records_are_bounded)
{
	unsigned added = 0;
	int error = 0;

	boot(8);
	rig.options.segment_size = 16u << 20;
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	rig.process.pool_is_busy = true;
	while (!error && added < TICKETS) {
		error = add(sizeof(rig.bytes));
		added += !error;
	}
	assert_int_equal(error, SPOKE_ELIMIT);
	assert_in_range(added, 250, 270);
	for (unsigned i = 0; i < added; i++)
		settle(&rig.items[i]);
	rig.process.pool_is_busy = false;
	pass(20 * MS);
	end();
	halt();
}

TEST(journal_that_cannot_be_read_is_read_again)
{
	boot(17);
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(add(10), 0);
	pass(10 * MS);
	kill_process();
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_LIST, 2, -EIO);
	assert_int_equal(begin(), 0);
	assert_int_equal(add(10), 0);
	pass(10 * MS);
	assert_int_equal(rig.recoveries, 1);
	assert_int_equal(rig.found.error, SPOKE_ESYSTEM);
	assert_int_equal(rig.refused, 1);
	assert_int_equal(add(10), SPOKE_ESYSTEM);
	assert_int_equal(scene_events(rig.engine, "not used yet, and read again: Input/output"), 1);
	pass(10 * SECOND);
	assert_int_equal(rig.recoveries, 1);
	assert_int_equal(add(10), SPOKE_ESYSTEM);
	pass(10 * SECOND);
	assert_int_equal(rig.recoveries, 2);
	assert_int_equal(scene_events(rig.engine, "read again"), 1);
	rig.recoveries = 1;
	check_restored();
	assert_int_equal(rig.restored, 20);
	assert_int_equal(add(10), 0);
	pass(10 * MS);
	kill_process();
	/* The refused one does not come back. */
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	check_restored();
	assert_int_equal(rig.restored, 21);
	end();
	halt();
}

TEST(tickets_wait_for_as_long_as_the_journal_is_read)
{
	boot(18);
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	assert_int_equal(add(10), 0);
	pass(10 * MS);
	kill_process();
	/* The reading ends with a sync of the last segment, and that of the new one. */
	spokei_vfiles_harm(rig.world.files, 1,
			   &(struct spokei_vfiles_harm){ .sync_is_slow = 1,
							 .slow_ns = 2 * SECOND });
	assert_int_equal(begin(), 0);
	assert_int_equal(add(10), 0);
	pass(SECOND);
	assert_int_equal(rig.items[1].state, ADDED);
	spokei_vfiles_harm(rig.world.files, 1, NULL);
	pass(6 * SECOND);
	assert_int_equal(rig.items[1].state, TOLD);
	end();
	halt();
}

TEST(full_disk_at_the_start_is_no_full_journal)
{
	boot(19);
	spokei_vfiles_room(rig.world.files, 0);
	assert_int_equal(begin(), 0);
	for (unsigned i = 0; i < 200 && rig.recoveries == 0; i++)
		pass(MS / 10);
	assert_int_equal(add(10), SPOKE_ESYSTEM);
	assert_int_equal(rig.journal.failure, -ENOSPC);
	end();
	halt();
}

TEST(restoring_goes_on_after_a_lack_of_memory)
{
	boot(9);
	rig.options.segment_size = 1u << 20;
	assert_int_equal(begin(), 0);
	pass(10 * MS);
	for (unsigned i = 0; i < 300; i++)
		assert_int_equal(add(10), 0);
	pass(10 * MS);
	kill_process();
	assert_int_equal(begin(), 0);
	rig.restore_error = SPOKE_ENOMEM;
	pass(10 * MS);
	assert_int_equal(rig.recoveries, 0);
	pass(2 * SECOND);
	check_restored();
	assert_int_equal(rig.restored, 300);
	end();
	halt();
}
