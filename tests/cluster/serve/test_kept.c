/* SPDX-License-Identifier: Apache-2.0 */
/* Answers in the journal of their provider: held until they are written, and given again by the
 * next process, through crashes, losses of power and failures of the disk. */
#include "cluster/journal/journal.h"
#include "cluster/provider/parts.h"
#include "cluster/serve/dedupe.h"
#include "cluster/serve/kept.h"
#include "core/virtual/files.h"
#include "tests/cluster/filter/filterrig.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "transport/conn/link.h"

#include <spoke/config.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define AT "127.0.0.1:20880"
#define FOLDER "/var/answers"
#define FIRST FOLDER "/00000001.spokej"
#define KEEP (100 * SECOND)

static struct spoke_provider_options with;
static struct spoke_config *config;

static int set_up(void **state)
{
	if (filterrig_set_up(state))
		return 1;
	spokei_vfiles_harm(rig.world.files, 1, NULL);
	with = (struct spoke_provider_options){
		.dedupe_ns = KEEP,
		.journal = FOLDER,
		.durability = SPOKE_DURABILITY_POWER,
	};
	config = NULL;
	/* The tests set ids and marks themselves. */
	rig.url = "dubbo://" AT "/S?version=1.0&timeout=10s&dedupe.id=off";
	return 0;
}

static int tear_down(void **state)
{
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	filterrig_pass(10 * MS);
	filterrig_answer_all();
	spoke_config_free(config);
	return filterrig_tear_down(state);
}

FIXTURE(set_up, tear_down);

static void begin(void)
{
	assert_int_equal(filterrig_begin(&with), 0);
	filterrig_pass(20 * MS);
}

/* The process of the provider ends at once. */
static void kill_provider(void)
{
	spokei_vfiles_cut(rig.world.files, 0);
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	filterrig_pass(MS);
	filterrig_answer_all();
	scene_leave(&rig.processes[SERVER], &rig.faulty[SERVER], &rig.engines[SERVER]);
	spokei_vfiles_cut(rig.world.files, UINT_MAX);
}

/* Makes a process whose wall clock is ahead. */
static void make_process(uint64_t ahead_ns)
{
	const struct spoke_engine_options options = { .env = &rig.faulty[SERVER].env };

	spokei_world_process_init(&rig.processes[SERVER], &rig.world);
	rig.processes[SERVER].boot_ahead_ns = ahead_ns;
	spokei_faults_init(&rig.faulty[SERVER], &rig.processes[SERVER].env);
	assert_int_equal(spoke_engine_new(&options, &rig.engines[SERVER]), SPOKE_OK);
}

/* Another process begins. */
static void begin_again(void)
{
	rig.engines[SERVER] = scene_engine(&rig.world, &rig.processes[SERVER], &rig.faulty[SERVER],
					   NULL);
	assert_int_equal(filterrig_provide(&with), 0);
	for (unsigned i = 0; i < 40 && filterrig_stat(SPOKE_STAT_ACCEPTED) == 0; i++)
		filterrig_pass(SECOND);
	filterrig_pass(10 * MS);
}

static void restart(void)
{
	kill_provider();
	begin_again();
}

static void lose_power(void)
{
	kill_provider();
	spokei_vfiles_lose(rig.world.files);
	begin_again();
}

/* Begins a call with an id, and the mark of a repeat, or NULL. */
static struct filterrig_call *begin_call(struct spoke_method *method, const char *id,
					 const char *repeat, const char *text)
{
	unsigned char memory[256];
	struct spoke_call_options options = { .timeout_ns = 0 };
	struct spoke_builder builder;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_map(&builder, repeat ? 2 : 1);
	spoke_pack_text(&builder, "spoke.id");
	spoke_pack_text(&builder, id);
	if (repeat) {
		spoke_pack_text(&builder, "spoke.repeat");
		spoke_pack_text(&builder, repeat);
	}
	assert_int_equal(spoke_builder_finish_value(&builder, &options.attachments), 0);
	return filterrig_call_with(method, text, &options);
}

static struct filterrig_call *call(struct spoke_method *method, const char *id, const char *repeat)
{
	struct filterrig_call *made = begin_call(method, id, repeat, "hello");

	filterrig_pass(10 * MS);
	return made;
}

/* The mark of a repeat whose first attempt is written now. */
static const char *mark(void)
{
	const struct spokei_dedupe_table *table = &rig.provider->dedupe->table;
	static char text[32];

	(void)snprintf(text, sizeof(text), "%08x.%llx", (unsigned)table->instance,
		       (unsigned long long)((rig.world.now_ns + table->clock_ns) / MS));
	return text;
}

static const struct spokei_journal *journal(void)
{
	return &rig.provider->dedupe->keeping->journal;
}

static void assert_call(const struct filterrig_call *made, int error, const char *text)
{
	assert_int_equal(made->ends, 1);
	assert_int_equal(made->error, error);
	assert_non_null(strstr(made->text, text));
}

/* --- the next process */

TEST(answers_of_a_killed_provider_are_given_again)
{
	begin();
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	assert_call(call(rig.pool, "b", NULL), SPOKE_OK, "hello");
	assert_call(call(rig.fail, "c", NULL), SPOKE_EREMOTE, "it went wrong");
	restart();
	assert_int_equal(filterrig_stat(SPOKE_STAT_ANSWERS_RECOVERED), 3);
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	assert_call(call(rig.pool, "b", NULL), SPOKE_OK, "hello");
	restart();
	assert_call(call(rig.fail, "c", NULL), SPOKE_EREMOTE, "it went wrong");
	assert_int_equal(rig.calls[rig.begun - 1].code, 7);
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 3);
	assert_call(call(rig.echo, "d", NULL), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 4);
}

TEST(answer_of_a_handler_that_replies_later_is_kept)
{
	struct filterrig_call *first;

	begin();
	first = call(rig.later, "a", NULL);
	filterrig_answer(0);
	filterrig_pass(10 * MS);
	assert_call(first, SPOKE_OK, "");
	restart();
	assert_call(call(rig.later, "a", NULL), SPOKE_OK, "");
	assert_int_equal(rig.handled, 1);
}

TEST(caller_and_arguments_are_compared_after_a_restart)
{
	struct filterrig_call *made;

	begin();
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	restart();
	made = begin_call(rig.echo, "a", NULL, "other");
	filterrig_pass(10 * MS);
	assert_call(made, SPOKE_EREMOTE, "other arguments");
	assert_int_equal(rig.handled, 1);
}

TEST(request_without_an_id_is_not_written)
{
	begin();
	(void)filterrig_call(rig.echo);
	filterrig_pass(10 * MS);
	assert_int_equal(journal()->count, 0);
	assert_int_equal(rig.handled, 1);
}

TEST(time_of_an_answer_goes_on_while_no_process_runs)
{
	begin();
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	filterrig_pass(60 * SECOND);
	assert_call(call(rig.echo, "b", NULL), SPOKE_OK, "hello");
	kill_provider();
	filterrig_pass(50 * SECOND);
	begin_again();
	assert_int_equal(filterrig_stat(SPOKE_STAT_ANSWERS_RECOVERED), 1);
	assert_int_equal(rig.provider->dedupe->table.ids.count, 1);
	assert_call(call(rig.echo, "b", NULL), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 2);
	filterrig_pass(50 * SECOND);
	assert_int_equal(rig.provider->dedupe->table.ids.count, 0);
	assert_int_equal(journal()->count, 0);
}

TEST(answer_of_a_method_without_dedupe_is_forgotten)
{
	begin();
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	with.dedupe_ns = 0;
	restart();
	assert_int_equal(scene_events(rig.engines[SERVER], "1 by their methods"), 1);
	assert_int_equal(rig.provider->dedupe->table.ids.count, 0);
}

TEST(requests_wait_until_the_journal_is_read)
{
	const struct spokei_vfiles_harm slow = { .sync_is_slow = 1, .slow_ns = SECOND };
	struct filterrig_call *made;

	begin();
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	kill_provider();
	spokei_vfiles_harm(rig.world.files, 1, &slow);
	rig.engines[SERVER] = scene_engine(&rig.world, &rig.processes[SERVER], &rig.faulty[SERVER],
					   NULL);
	assert_int_equal(filterrig_provide(&with), 0);
	filterrig_pass(500 * MS);
	made = begin_call(rig.echo, "a", NULL, "hello");
	filterrig_pass(200 * MS);
	assert_int_equal(journal()->stage, SPOKEI_JOURNAL_READING);
	assert_int_equal(filterrig_stat(SPOKE_STAT_ACCEPTED), 0);
	filterrig_pass(6 * SECOND);
	assert_call(made, SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 1);
}

/* --- what marked repeats learn */

TEST(repeat_finds_the_instance_again)
{
	uint32_t instance;
	char first[32];
	char lost[32];

	begin();
	filterrig_pass(SECOND);
	(void)snprintf(first, sizeof(first), "%s", mark());
	instance = rig.provider->dedupe->table.instance;
	filterrig_pass(10 * MS);
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	(void)snprintf(lost, sizeof(lost), "%s", mark());
	restart();
	assert_int_equal(rig.provider->dedupe->table.instance, instance);
	assert_int_equal(rig.provider->link->instance, instance);
	assert_call(call(rig.echo, "a", first), SPOKE_OK, "hello");
	/* Written before the crash, and not answered: it may have run. */
	assert_call(call(rig.echo, "b", lost), SPOKE_EREMOTE, "is not known");
	assert_int_equal(rig.calls[rig.begun - 1].code, SPOKE_REPEAT_UNKNOWN);
	assert_int_equal(rig.handled, 1);
	filterrig_pass(SECOND);
	(void)snprintf(first, sizeof(first), "%s", mark());
	filterrig_pass(SECOND);
	assert_call(call(rig.echo, "c", first), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 2);
}

TEST(repeat_from_before_the_clock_was_set_back_finds_no_instance)
{
	char lost[32];

	scene_leave(&rig.processes[SERVER], &rig.faulty[SERVER], &rig.engines[SERVER]);
	make_process(3600 * SECOND);
	begin();
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	(void)snprintf(lost, sizeof(lost), "%s", mark());
	restart();
	assert_call(call(rig.echo, "b", lost), SPOKE_EREFUSED, "another instance");
	assert_call(call(rig.echo, "a", lost), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 1);
}

/* --- answers that are held */

TEST(answer_waits_until_the_disk_has_it)
{
	const struct spokei_vfiles_harm slow = { .sync_is_slow = 1, .slow_ns = 50 * MS };
	struct filterrig_call *first;
	struct filterrig_call *repeat;

	begin();
	spokei_vfiles_harm(rig.world.files, 1, &slow);
	first = call(rig.echo, "a", NULL);
	assert_int_equal(rig.handled, 1);
	repeat = call(rig.echo, "a", "");
	filterrig_pass(20 * MS);
	assert_int_equal(first->ends + repeat->ends, 0);
	filterrig_pass(50 * MS);
	assert_call(first, SPOKE_OK, "hello");
	assert_call(repeat, SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 1);
	assert_int_equal(filterrig_stat(SPOKE_STAT_ANSWERS_UNKEPT), 0);
}

TEST(answer_does_not_wait_for_the_disk_without_durability)
{
	const struct spokei_vfiles_harm slow = { .sync_is_slow = 1, .slow_ns = SECOND };

	with.durability = SPOKE_DURABILITY_NONE;
	begin();
	spokei_vfiles_harm(rig.world.files, 1, &slow);
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	spokei_vfiles_harm(rig.world.files, 1, NULL);
	filterrig_pass(2 * SECOND);
	restart();
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 1);
}

TEST(provider_is_freed_with_answers_that_are_held)
{
	const struct spokei_vfiles_harm slow = { .sync_is_slow = 1, .slow_ns = 50 * MS };

	begin();
	spokei_vfiles_harm(rig.world.files, 1, &slow);
	(void)call(rig.echo, "a", NULL);
	(void)call(rig.pool, "b", NULL);
	(void)call(rig.later, "c", NULL);
	filterrig_answer(0);
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	filterrig_pass(SECOND);
	assert_int_equal(rig.ended, 3);
	spokei_vfiles_harm(rig.world.files, 1, NULL);
	assert_int_equal(filterrig_provide(&with), 0);
	filterrig_pass(SECOND);
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	assert_call(call(rig.pool, "b", NULL), SPOKE_OK, "hello");
	assert_call(call(rig.later, "c", NULL), SPOKE_OK, "");
	assert_int_equal(rig.handled, 3);
}

static uint64_t roll(uint64_t *dice)
{
	*dice = *dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *dice >> 33;
}

/* Each answer that a caller got is the answer that a repeat gets in a later life, without a run. */
static void live_at_random(uint64_t seed, enum spoke_durability durability,
			   const struct spokei_vfiles_harm *harm)
{
	enum {
		IDS = 60,
	};
	const struct filterrig_call *told[IDS] = { NULL };
	uint64_t dice = seed;
	unsigned handled;

	with.durability = durability;
	begin();
	for (unsigned life = 0; life < 4; life++) {
		spokei_vfiles_harm(rig.world.files, seed * 8 + life, harm);
		for (unsigned i = 0; i < IDS / 4; i++) {
			struct spoke_method *const methods[] = { rig.echo, rig.pool, rig.fail };
			unsigned number = life * IDS / 4 + i;
			char id[16];

			(void)snprintf(id, sizeof(id), "%u", number);
			told[number] = begin_call(methods[number % 3], id, NULL, "hello");
			filterrig_pass(roll(&dice) % (2 * MS));
		}
		spokei_vfiles_harm(rig.world.files, seed * 8 + life, NULL);
		if (durability == SPOKE_DURABILITY_POWER)
			lose_power();
		else
			restart();
	}
	for (unsigned number = 0; number < IDS; number++) {
		struct spoke_method *const methods[] = { rig.echo, rig.pool, rig.fail };
		char id[16];

		if (told[number]->error != SPOKE_OK && told[number]->error != SPOKE_EREMOTE)
			continue;
		handled = rig.handled;
		(void)snprintf(id, sizeof(id), "%u", number);
		assert_call(call(methods[number % 3], id, NULL), told[number]->error,
			    told[number]->text);
		if (rig.handled != handled)
			fail_msg("seed %u: request %u ran twice", (unsigned)seed, number);
	}
}

#define SEEDS 8u

static void live_with_seeds(enum spoke_durability durability, const struct spokei_vfiles_harm *harm)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		live_at_random(seed, durability, harm);
		assert_int_equal(tear_down(NULL), 0);
		assert_int_equal(set_up(NULL), 0);
	}
}

TEST(answers_that_were_given_survive_ends_of_the_process)
{
	live_with_seeds(SPOKE_DURABILITY_PROCESS, NULL);
}

TEST(answers_that_were_given_survive_losses_of_power)
{
	live_with_seeds(SPOKE_DURABILITY_POWER, NULL);
}

TEST(answers_that_were_given_survive_a_disk_that_fails_at_times)
{
	const struct spokei_vfiles_harm harm = { .write_fails = 20, .sync_fails = 20 };

	live_with_seeds(SPOKE_DURABILITY_POWER, &harm);
}

/* --- disks that fail */

TEST(answer_is_sent_and_reported_if_the_disk_fails_for_long)
{
	begin();
	spokei_vfiles_cut(rig.world.files, 0);
	assert_int_equal(call(rig.echo, "a", NULL)->ends, 0);
	filterrig_pass(200 * MS);
	assert_call(&rig.calls[rig.begun - 1], SPOKE_OK, "hello");
	assert_int_equal(filterrig_stat(SPOKE_STAT_ANSWERS_UNKEPT), 1);
	assert_int_equal(scene_events(rig.engines[SERVER], "remembered in memory only"), 1);
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	/* The next ones do not run here. */
	assert_call(call(rig.echo, "b", NULL), SPOKE_EREFUSED, "has not run");
	assert_int_equal(rig.handled, 1);
	spokei_vfiles_cut(rig.world.files, UINT_MAX);
	filterrig_pass(11 * SECOND);
	assert_call(call(rig.echo, "b", NULL), SPOKE_OK, "hello");
	restart();
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	assert_call(call(rig.echo, "b", NULL), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 2);
}

static void configure(const char *text)
{
	const struct spoke_env *env = &rig.processes[SERVER].env;

	assert_int_equal(spoke_config_parse(env, "file", (struct spoke_span){ text, strlen(text) },
					    NULL, NULL, &config),
			 0);
	with.config = config;
}

TEST(requests_run_in_memory_only_if_the_journal_is_volatile)
{
	configure("[provider]\njournal.broken = volatile\n");
	begin();
	spokei_vfiles_cut(rig.world.files, 0);
	(void)call(rig.echo, "a", NULL);
	filterrig_pass(200 * MS);
	assert_call(call(rig.echo, "b", NULL), SPOKE_OK, "hello");
	assert_call(call(rig.echo, "b", NULL), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 2);
	assert_int_equal(filterrig_stat(SPOKE_STAT_ANSWERS_UNKEPT), 2);
	assert_int_equal(scene_events(rig.engines[SERVER], "remembered in memory only"), 1);
	spokei_vfiles_cut(rig.world.files, UINT_MAX);
}

TEST(request_is_refused_before_it_runs_if_the_disk_is_full)
{
	const uint64_t segments = 2;

	spokei_vfiles_room(rig.world.files, segments * SPOKEI_LOG_SEGMENT + 8192);
	begin();
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	spokei_vfiles_room(rig.world.files, 0);
	for (unsigned i = 0; i < 2; i++) {
		/* Uses up the rest of the files. */
		rig.provider->dedupe->keeping->journal.full = true;
		rig.provider->dedupe->keeping->journal.room = 1000;
		assert_call(call(rig.echo, "b", NULL), SPOKE_EREFUSED, "has not run");
	}
	assert_int_equal(rig.handled, 1);
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 1);
}

TEST(damaged_journal_refuses_requests_with_an_id)
{
	begin();
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	assert_call(call(rig.echo, "b", NULL), SPOKE_OK, "hello");
	kill_provider();
	spokei_vfiles_flip(rig.world.files, FIRST, (SPOKEI_SEGMENT_HEAD + 30) * 8);
	begin_again();
	assert_int_equal(journal()->stage, SPOKEI_JOURNAL_UNUSABLE);
	assert_call(call(rig.echo, "a", NULL), SPOKE_EREFUSED, "has not run");
	(void)filterrig_call(rig.echo);
	filterrig_pass(10 * MS);
	assert_int_equal(rig.handled, 3);
}

TEST(answers_elsewhere_are_salvaged)
{
	begin();
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	assert_call(call(rig.echo, "b", NULL), SPOKE_OK, "hello");
	kill_provider();
	spokei_vfiles_flip(rig.world.files, FIRST, (SPOKEI_SEGMENT_HEAD + 30) * 8);
	rig.engines[SERVER] = scene_engine(&rig.world, &rig.processes[SERVER], &rig.faulty[SERVER],
					   NULL);
	configure("[provider]\njournal.damaged = salvage\n");
	assert_int_equal(filterrig_provide(&with), 0);
	filterrig_pass(2 * SECOND);
	assert_call(call(rig.echo, "b", NULL), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 2);
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 3);
}

TEST(second_provider_of_a_folder_is_refused)
{
	struct spoke_provider *second;

	begin();
	assert_int_equal(spoke_provider_new(rig.engines[SERVER], &with, &second), SPOKE_EEXIST);
	assert_non_null(strstr(spoke_engine_why(rig.engines[SERVER]), "a folder of its own"));
}

TEST(tickets_of_a_consumer_are_not_taken_for_answers)
{
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	const struct spoke_consumer_options options = {
		.url = "dubbo://127.0.0.1:1/S?cluster=failback&retry.period=1h&retry.deadline=10h",
		.journal = FOLDER,
	};

	assert_int_equal(spoke_consumer_new(rig.engines[CLIENT], &options, &consumer), 0);
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &method), 0);
	filterrig_pass(50 * MS);
	(void)filterrig_call(method);
	filterrig_pass(SECOND);
	assert_int_equal(rig.calls[0].error, SPOKE_EDEFERRED);
	spoke_consumer_free(consumer);
	filterrig_pass(SECOND);
	begin();
	filterrig_pass(SECOND);
	assert_int_equal(rig.provider->dedupe->table.ids.count, 0);
	assert_true(journal()->pinned);
	assert_call(call(rig.echo, "a", NULL), SPOKE_OK, "hello");
}

/* --- bounds */

TEST(next_process_remembers_the_last_answers_within_its_bounds)
{
	char id[16];

	configure("[provider]\ndedupe.max = 10\n");
	begin();
	for (unsigned i = 0; i < 30; i++) {
		(void)snprintf(id, sizeof(id), "%u", i);
		assert_call(call(rig.echo, id, NULL), SPOKE_OK, "hello");
	}
	assert_int_equal(journal()->count, 10);
	with.config = NULL;
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	filterrig_pass(10 * MS);
	spoke_config_free(config);
	config = NULL;
	scene_leave(&rig.processes[SERVER], &rig.faulty[SERVER], &rig.engines[SERVER]);
	rig.engines[SERVER] = scene_engine(&rig.world, &rig.processes[SERVER], &rig.faulty[SERVER],
					   NULL);
	configure("[provider]\ndedupe.max = 10\n");
	assert_int_equal(filterrig_provide(&with), 0);
	filterrig_pass(2 * SECOND);
	assert_int_equal(rig.provider->dedupe->table.ids.count, 10);
	assert_call(call(rig.echo, "29", NULL), SPOKE_OK, "hello");
	assert_int_equal(rig.handled, 30);
}
