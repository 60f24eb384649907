/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows 39, 46 and 63 of the table of faults, with real processes: a side that is frozen, for short
 * and for long, and a side that was stalled itself when it checks its peers. The length of a freeze
 * is determined by the other side's events.
 */
#include "tests/integration/rig.h"
#include "tests/support/test.h"

#include <stdio.h>

#define ATTEMPTS 5
#define INTERVAL_MS 900u /* in tests that thaw the process in time */
#define STALLED_MS 500u  /* while the checking side is stalled; starves for less than 2 s */
#define CALL_MS 2000u    /* timeout of calls that must be in flight before the freeze */

static struct rig_process *provider;
static struct rig_process *consumer;

/* Starts both and waits for the connection; the options are appended to those that both need. */
static void start(const char *of_provider, const char *of_consumer)
{
	provider = rig_provider(NULL, "%s", of_provider);
	consumer = rig_consumer(NULL, "url=dubbo://%s/demo.EchoService %s", rig_address(provider),
				of_consumer);
	(void)rig_wait(consumer, "link connected *");
	(void)rig_wait(provider, "link connected *");
}

static void stop(void)
{
	assert_ends_well(consumer);
	assert_ends_well(provider);
}

/* --- frozen for two intervals */

/* Freezes one side until the other has missed one answer. Returns false if this test was too slow
 * to thaw the process in time, and the result is void. */
static bool freeze_shortly(struct rig_process *frozen, struct rig_process *other)
{
	const struct rig_line *missed;

	rig_freeze(frozen);
	missed = rig_wait(other, "link suspect missed 1 *");
	rig_thaw(frozen);
	return rig_now() < missed->at_ns + INTERVAL_MS / 3 * MS;
}

static void play_short(bool freezes_provider)
{
	char options[64];
	bool counts = false;

	(void)snprintf(options, sizeof(options), "heartbeat=%u every=40 timeout=60000",
		       INTERVAL_MS);
	for (int i = 0; i < ATTEMPTS && !counts; i++) {
		struct rig_process *frozen;
		struct rig_process *other;

		start(options, options);
		frozen = freezes_provider ? provider : consumer;
		other = freezes_provider ? consumer : provider;
		counts = freeze_shortly(frozen, other);
		if (counts) {
			struct rig_table table;

			(void)rig_wait(other, "link recovered *");
			table = assert_all_ended_once(consumer);
			assert_int_equal(table.ok, table.taken);
			assert_int_equal(rig_count(consumer, "link closed *"), 0);
			assert_int_equal(rig_count(provider, "link closed *"), 0);
			/* The frozen side itself must not suspect its peer. */
			assert_int_equal(rig_count(frozen, "link suspect *"), 0);
		}
		stop();
	}
	if (!counts)
		fail_msg("the machine was too slow for the test at each try");
}

FIXTURE(rig_set_up, rig_tear_down);

TEST(row_39_a_provider_that_is_frozen_shortly_is_kept)
{
	play_short(true);
}

TEST(row_39_a_consumer_that_is_frozen_shortly_is_kept)
{
	play_short(false);
}

/* --- frozen for ten intervals and more */

/* Waits for the events of a peer that stays silent, in their order. */
static void assert_given_up(struct rig_process *process)
{
	(void)rig_wait(process, "link suspect missed 1 *");
	(void)rig_wait(process, "link suspect missed 2 *");
	(void)rig_wait(process, "link suspect missed 3 *");
	(void)rig_wait(process, "link closed * error ESILENT *");
}

/* The kernel of a frozen provider accepts connections: each new one is on probation and is given
 * up, too. */
TEST(row_39_provider_frozen_for_long_is_closed_and_reconnected)
{
	struct rig_table table;

	start("heartbeat=100", "heartbeat=100 every=10 timeout=300");
	rig_freeze(provider);
	assert_given_up(consumer);
	(void)rig_wait(consumer, "link reconnecting * attempt 1 *");
	(void)rig_wait(consumer, "link probation *");
	assert_given_up(consumer);
	(void)rig_wait(consumer, "link reconnecting * attempt 2 *");
	(void)rig_wait(consumer, "link probation *");
	rig_thaw(provider);
	(void)rig_wait(consumer, "link recovered *");
	assert_call_works(consumer);
	table = assert_all_ended_once(consumer);
	assert_true(table.ok < table.taken);
	assert_int_equal(rig_count(provider, "link closed * error ESILENT *"), 0);
	stop();
}

TEST(row_39_consumer_frozen_for_long_is_closed_and_reconnects)
{
	start("heartbeat=100", "heartbeat=100 every=10 timeout=300");
	rig_freeze(consumer);
	assert_given_up(provider);
	rig_skip(consumer);
	rig_thaw(consumer);
	(void)rig_wait(consumer, "link closed *");
	(void)rig_wait(consumer, "link reconnecting *");
	(void)rig_wait(consumer, "link connected *");
	assert_call_works(consumer);
	(void)assert_all_ended_once(consumer);
	assert_int_equal(rig_count(consumer, "link closed * error ESILENT *"), 0);
	stop();
}

/* --- row 46: the checking side itself was stalled */

/* Stalls a process with SIGSTOP for the given time. */
static void stall(struct rig_process *process, uint64_t ms)
{
	rig_freeze(process);
	rig_sleep(ms * MS);
	rig_thaw(process);
}

/* Stalls a process in one of the two ways, then lets it run. */
static void hold_up(struct rig_process *judge, uint64_t ms, bool freezes)
{
	if (freezes) {
		stall(judge, ms);
	} else {
		rig_tell(judge, "block %llu", (unsigned long long)ms);
		(void)rig_wait(judge, "free again");
	}
	rig_until_stat(judge, "probe_answers_read", rig_stat(judge, "probe_answers_read") + 2);
}

/* Counts the connections that it closed for silence since the first stall. */
static void assert_stalled_process_closes_none(struct rig_process *judge)
{
	static const unsigned halves[] = { 1, 4, 8, 20 }; /* of an interval */
	uint64_t begun_ns = rig_now();

	for (unsigned i = 0; i < 8; i++)
		hold_up(judge, halves[i / 2] * STALLED_MS / 2, i % 2);
	assert_int_equal(rig_count_between(judge, "link closed * error ESILENT *", begun_ns,
					   UINT64_MAX),
			 0);
}

TEST(row_46_stalled_consumer_suspects_no_peer)
{
	struct rig_table table;
	char options[64];

	(void)snprintf(options, sizeof(options), "heartbeat=%u", STALLED_MS);
	start("heartbeat=off", options);
	assert_stalled_process_closes_none(consumer);
	assert_call_works(consumer);
	table = assert_all_ended_once(consumer);
	assert_int_equal(table.ok, table.taken);
	stop();
}

/* Uses many more connections than one poll of libev reports. */
TEST(row_46_stalled_provider_suspects_none_of_many_peers)
{
	char options[64];

	(void)snprintf(options, sizeof(options), "heartbeat=%u connections=1000", STALLED_MS);
	start(options, "heartbeat=off consumers=500");
	rig_until_ready(consumer, 500);
	rig_until_stat(provider, "probe_answers_read", 500);
	assert_stalled_process_closes_none(provider);
	rig_until_ready(consumer, 500);
	stop();
}

/* Answers calls while their caller is frozen past their deadlines. Returns false if a deadline had
 * passed before. */
static bool answer_a_frozen_one(unsigned calls, uint64_t timeout_ns)
{
	uint64_t begun_ns = rig_now();
	uint64_t frozen_ns;

	for (unsigned i = 0; i < calls; i++)
		rig_tell(consumer, "hold %u", i);
	for (unsigned i = 0; i < calls; i++)
		(void)rig_wait(provider, "held *");
	rig_freeze(consumer);
	frozen_ns = rig_now();
	rig_tell(provider, "release");
	rig_until_stat(provider, "requests_ok", calls);
	rig_sleep(timeout_ns);
	rig_thaw(consumer);
	return frozen_ns < begun_ns + timeout_ns;
}

/* Replies in the socket complete calls whose deadlines passed during the freeze. */
TEST(row_46_replies_that_arrived_in_a_stall_beat_timeouts)
{
	char options[64];
	bool counts = false;

	for (int i = 0; i < ATTEMPTS && !counts; i++) {
		struct rig_table table;

		(void)snprintf(options, sizeof(options), "heartbeat=%u timeout=%u", STALLED_MS,
			       CALL_MS);
		start("heartbeat=off", options);
		counts = answer_a_frozen_one(100, CALL_MS * MS);
		table = assert_all_ended_once(consumer);
		if (counts)
			assert_int_equal(table.ok, 100);
		stop();
	}
	if (!counts)
		fail_msg("the machine was too slow for the test at each try");
}

/* --- row 63 */

/* The heartbeats of one side exceed the interval of the other side. */
static void play_unequal(const char *of_provider, const char *of_consumer, bool provider_asks)
{
	start(of_provider, of_consumer);
	rig_until_stat(provider_asks ? provider : consumer, "probe_answers_read", 20);
	assert_int_equal(rig_count(consumer, "link closed *"), 0);
	assert_int_equal(rig_count(provider, "link closed *"), 0);
	assert_call_works(consumer);
	stop();
}

TEST(row_63_frequent_provider_heartbeats_keep_a_slow_consumer)
{
	play_unequal("heartbeat=200", "heartbeat=3000", true);
}

TEST(row_63_frequent_consumer_heartbeats_keep_a_slow_provider)
{
	play_unequal("heartbeat=3000", "heartbeat=200", false);
}
