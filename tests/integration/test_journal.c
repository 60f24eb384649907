/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consumers and providers with a journal on the real disk, killed at any moment: every ticket that
 * was told is settled by a later process, and no request that a provider remembers runs twice.
 */
#define _GNU_SOURCE
#include "tests/integration/rig.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIVES 8u
#define TICKETS_MAX 65536u

static char folder[64];
static char answers[64]; /* the provider's folder */
static struct rig_process *provider;
static struct rig_process *consumer;
static char address[64];
static unsigned long long told[TICKETS_MAX];
static unsigned told_count;

static int set_up(void **state)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/spoke-journal-XXXXXX");
	(void)snprintf(answers, sizeof(answers), "/tmp/spoke-answers-XXXXXX");
	if (mkdtemp(folder) == NULL || mkdtemp(answers) == NULL)
		return -1;
	told_count = 0;
	return rig_set_up(state);
}

static int tear_down(void **state)
{
	int error = rig_tear_down(state);

	folder_remove(folder);
	folder_remove(answers);
	return error;
}

FIXTURE(set_up, tear_down);

static void provide(const char *options)
{
	provider = rig_provider(NULL, "%s", options);
	(void)snprintf(address, sizeof(address), "%s", rig_address(provider));
}

static void consume(const char *query, const char *options)
{
	consumer = rig_consumer(NULL,
				"url=dubbo://%s/demo.EchoService?cluster=failback&"
				"failback.tasks=100000&failback.bytes=64MiB&%s journal=%s %s",
				address, query, folder, options);
}

/* Reads the book of a process that has ended. */
static void note_told(const struct rig_process *process)
{
	for (size_t i = 0; i < process->line_count; i++) {
		unsigned long long number;
		unsigned long long id;

		if (sscanf(process->lines[i].text, "deferred %llu %llx", &number, &id) != 2)
			continue;
		assert_true(told_count < TICKETS_MAX);
		told[told_count++] = id;
	}
}

/* Asserts that the last process has settled this ticket once, or an earlier one has. */
static void assert_settled(unsigned long long id, struct rig_process *const *lives, unsigned count)
{
	char words[64];
	size_t settled = 0;

	(void)snprintf(words, sizeof(words), "settled %016llx *", id);
	for (unsigned i = 0; i < count; i++)
		settled += rig_count(lives[i], words);
	if (settled != 1)
		fail_msg("ticket %016llx was settled %zu times", id, settled);
}

static uint64_t runs(void)
{
	rig_tell(provider, "runs");
	return rig_number(rig_wait(provider, "runs *")->text, "runs ");
}

TEST(tickets_survive_a_consumer_that_is_killed_again_and_again)
{
	struct rig_process *lives[LIVES + 1];

	provide("");
	rig_kill(provider);
	for (unsigned i = 0; i < LIVES; i++) {
		consume("retry.period=2s&retries=100&retry.deadline=10m",
			i % 2 ? "every=10 durability=power" : "every=10");
		lives[i] = consumer;
		(void)rig_wait(consumer, "recovered OK *");
		for (unsigned deferred = 0; deferred < 3; deferred++)
			(void)rig_wait(consumer, "deferred *");
		rig_kill(consumer);
		note_told(consumer);
	}
	assert_true(told_count >= LIVES * 3);
	provider = rig_provider(NULL, "listen=dubbo://%s", address);
	(void)rig_address(provider);
	consume("retry.period=1s&retries=100&retry.deadline=10m", "");
	lives[LIVES] = consumer;
	(void)rig_wait(consumer, "recovered OK *");
	rig_until(consumer, "tickets", "tickets 0");
	for (unsigned i = 0; i < told_count; i++)
		assert_settled(told[i], lives, LIVES + 1);
	assert_true(runs() >= told_count);
	assert_ends_well(consumer);
	/* Nothing is left for the next one. */
	consume("retry.period=1s", "");
	(void)rig_wait(consumer, "recovered OK tickets 0 expired 0 unknown 0");
	assert_ends_well(consumer);
	assert_ends_well(provider);
}

TEST(repeat_after_the_end_of_the_consumer_runs_once)
{
	provide("dedupe=600000");
	rig_kill(provider);
	consume("retry.period=100ms&retries=100&retry.deadline=10m&timeout=60s",
		"durability=power");
	(void)rig_wait(consumer, "recovered OK *");
	rig_tell(consumer, "hold 7");
	(void)rig_wait(consumer, "deferred 7 *");
	provider = rig_provider(NULL, "listen=dubbo://%s dedupe=600000", address);
	(void)rig_address(provider);
	(void)rig_wait(provider, "held *");
	rig_kill(consumer);
	consume("retry.period=100ms&retries=100&retry.deadline=10m&timeout=60s",
		"durability=power");
	(void)rig_wait(consumer, "recovered OK tickets 1 *");
	rig_until_stat(provider, "requests", 2);
	rig_tell(provider, "release");
	(void)rig_wait(consumer, "settled * success *");
	assert_int_equal(runs(), 1);
	assert_int_equal(rig_stat(provider, "repeats_answered"), 1);
	assert_ends_well(consumer);
	assert_ends_well(provider);
}

/* Starts the next process of the provider, at the same address. */
static void provide_again(const char *options)
{
	provider = rig_provider(NULL, "listen=dubbo://%s %s", address, options);
	(void)rig_address(provider);
}

TEST(answer_of_a_killed_provider_is_given_by_the_next_one)
{
	char options[128];

	(void)snprintf(options, sizeof(options), "dedupe=600000 durability=power journal=%s",
		       answers);
	provide(options);
	rig_kill(provider);
	consume("retry.period=100ms&retries=100&retry.deadline=10m&timeout=60s",
		"durability=power");
	(void)rig_wait(consumer, "recovered OK *");
	rig_tell(consumer, "hold 7");
	(void)rig_wait(consumer, "deferred 7 *");
	provide_again(options);
	(void)rig_wait(provider, "held *");
	rig_kill(consumer);
	rig_until_stat(provider, "journal_syncs", 1); /* of the beginning */
	rig_tell(provider, "release");
	rig_until_stat(provider, "journal_syncs", 2);
	rig_kill(provider);
	provide_again(options);
	consume("retry.period=100ms&retries=100&retry.deadline=10m&timeout=60s",
		"durability=power");
	(void)rig_wait(consumer, "recovered OK tickets 1 *");
	(void)rig_wait(consumer, "settled * success *");
	assert_int_equal(runs(), 0);
	assert_int_equal(rig_stat(provider, "answers_recovered"), 1);
	assert_int_equal(rig_stat(provider, "repeats_answered"), 1);
	assert_ends_well(consumer);
	assert_ends_well(provider);
}

TEST(no_request_runs_twice_whenever_its_provider_is_killed)
{
	enum {
		ROUNDS = 16,
	};
	size_t successes = 0;
	char options[128];
	char words[64];

	(void)snprintf(options, sizeof(options), "dedupe=600000 journal=%s", answers);
	provide(options);
	consume("retry.period=50ms&retries=100&retry.deadline=10m&timeout=60s", "");
	(void)rig_wait(consumer, "recovered OK *");
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct rig_process *first = provider;

		/* An answer tells the consumer that its provider remembers requests. */
		rig_until_ready(consumer, 1);
		assert_call_works(consumer);
		rig_tell(consumer, "hold %u", 100 + i);
		(void)snprintf(words, sizeof(words), "held %u", 100 + i);
		(void)rig_wait(provider, words);
		rig_tell(provider, "release");
		rig_sleep((uint64_t)i * 100000);
		rig_kill(provider);
		provide_again(options);
		(void)snprintf(words, sizeof(words), "[de]* %u *", 100 + i);
		(void)rig_wait(consumer, words);
		rig_until(consumer, "tickets", "tickets 0");
		(void)snprintf(words, sizeof(words), "held %u", 100 + i);
		assert_int_equal(rig_count(first, words), 1);
		assert_int_equal(rig_count(provider, words), 0);
		(void)snprintf(words, sizeof(words), "end hold %u OK *", 100 + i);
		successes += rig_count(consumer, words) > 0;
	}
	successes += rig_count(consumer, "settled * success *");
	assert_true(successes > 0);
	assert_ends_well(consumer);
	assert_ends_well(provider);
}

TEST(second_process_is_refused_until_the_first_is_killed)
{
	struct rig_process *first;

	provide("");
	consume("retry.period=1s", "");
	first = consumer;
	(void)rig_wait(first, "recovered OK *");
	consume("retry.period=1s", "");
	(void)rig_wait(consumer, "ended EEXIST");
	rig_kill(first);
	consume("retry.period=1s", "");
	(void)rig_wait(consumer, "recovered OK *");
	assert_ends_well(consumer);
	assert_ends_well(provider);
}
