/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holders of leases in processes of their own, which are frozen and killed, and crowds of them that
 * wait. Rows 1, 2, 3, 10 and 12 of the leases in FAULTS.md.
 */
#include "tests/integration/redispeer.h"
#include "tests/integration/redisserver.h"
#include "tests/integration/rig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "reports"
#define LONG_MS 600000u
#define ATTEMPTS 16 /* of a test that needs a machine that is not late */
#define CROWD 10u
#define TURNS 6
#define UUID_SIZE 37u

static struct redisserver redis;
static struct redisclient monitor;
static struct rig_process *provider;

/* --- processes */

static void start_provider(void)
{
	provider = rig_provider(NULL, "fence=1");
	(void)rig_address(provider);
}

static struct rig_process *start_holder(unsigned ttl_ms)
{
	return rig_holder("store=redis+unix://%s name=%s ttl=%u", redis.path, NAME, ttl_ms);
}

/* Starts a holder that calls the provider at an address. */
static struct rig_process *start_caller(unsigned ttl_ms, const char *address)
{
	struct rig_process *holder =
		rig_holder("store=redis+unix://%s name=%s ttl=%u url=dubbo://%s/demo.EchoService",
			   redis.path, NAME, ttl_ms, address);

	rig_until_ready(holder, 1);
	return holder;
}

/* Lets processes and the server run turns in turn: enough for a message, the command that follows
 * from it, its reply, and the line that reports it. */
static void run_turns(struct rig_process *const *processes, unsigned count)
{
	for (unsigned turn = 0; turn < TURNS; turn++) {
		for (unsigned i = 0; i < count; i++)
			rig_tell(processes[i], "look");
		for (unsigned i = 0; i < count; i++)
			(void)rig_wait(processes[i], "look *");
		assert_string_equal(stranger("PING"), "PONG");
	}
}

/* Waits for a line, also an earlier one. */
static void await_line(struct rig_process *process, const char *pattern)
{
	uint64_t end_ns = rig_now() + 60 * SECOND;

	while (rig_count(process, pattern) == 0) {
		if (rig_now() > end_ns)
			fail_msg("%s did not print \"%s\"", process->name, pattern);
		rig_sleep(MS);
	}
}

/* Repeats a test until the machine was in time. */
static void until_in_time(bool (*attempt)(void))
{
	for (int i = 0; i < ATTEMPTS; i++) {
		assert_string_equal(stranger("FLUSHALL"), "OK");
		if (attempt())
			return;
	}
	fail_msg("not in time in %d attempts", ATTEMPTS);
}

/* --- what they say */

/* Asks, and waits until the lease is held; returns its fence number. */
static uint64_t hold(struct rig_process *holder, unsigned number)
{
	char pattern[32];

	rig_tell(holder, "ask %u", number);
	(void)snprintf(pattern, sizeof(pattern), "told %u *", number);
	return rig_number(rig_wait(holder, pattern)->text, " OK fence ");
}

/* Returns a time at which the lease is still valid as its holder says, but for less than a ms. */
static uint64_t end_by_holder(const char *text)
{
	return rig_number(text, " at ") + rig_number(text, "left 1 ") * MS;
}

/* Returns a time at which the lock has expired in the store. */
static uint64_t end_by_store(void)
{
	int64_t left_ms = stranger_number("PTTL", NAME);

	assert_true(left_ms != -1);
	return rig_now() + (left_ms > 0 ? (uint64_t)left_ms * MS : 0);
}

/* Returns the number of handler runs of the provider. */
static uint64_t runs(void)
{
	rig_tell(provider, "runs");
	return rig_number(rig_wait(provider, "runs *")->text, "runs ");
}

static void until_runs(uint64_t count)
{
	uint64_t end_ns = rig_now() + 60 * SECOND;

	while (runs() < count)
		assert_true(rig_now() < end_ns);
}

/* Returns how often a command was run, also by scripts, since CONFIG RESETSTAT. */
static uint64_t commands(const char *name)
{
	const char *text = stranger("INFO", "commandstats");
	char key[64];

	(void)snprintf(key, sizeof(key), "cmdstat_%s:calls=", name);
	return strstr(text, key) ? rig_number(text, key) : 0;
}

static void until_waiting(unsigned count)
{
	char channel[REDISPEER_NAME];
	char wanted[REDISPEER_NAME + 32];
	uint64_t end_ns = rig_now() + 60 * SECOND;

	redispeer_channel(NAME, channel);
	(void)snprintf(wanted, sizeof(wanted), "[%s %u]", channel, count);
	while (strcmp(stranger("PUBSUB", "NUMSUB", channel), wanted) != 0) {
		assert_true(rig_now() < end_ns);
		rig_sleep(MS);
	}
}

/* --- rows 1 to 3: a holder is frozen */

/* When it is thawed, there are commands for it, the reply to a call, and timers that are due. */
static bool learns_of_its_loss(void)
{
	struct rig_process *frozen;
	struct rig_process *other;
	uint64_t end_ns;
	uint64_t fence;

	start_provider();
	frozen = start_caller(2000, strstr(provider->lines[0].text, " ") + 1);
	fence = hold(frozen, 1);
	rig_freeze(provider);
	rig_tell(frozen, "call 1 76");
	run_turns(&frozen, 1);
	rig_freeze(frozen);
	end_ns = rig_now() + 7 * SECOND;
	rig_skip(frozen);
	rig_thaw(provider);
	if (rig_count(frozen, "lost *") + rig_count(frozen, "end *")) {
		rig_kill(frozen);
		rig_kill(provider);
		return false;
	}
	until_runs(1);
	rig_tell(frozen, "left 1");
	rig_tell(frozen, "call 1 77");
	other = start_holder(LONG_MS);
	assert_true(hold(other, 1) > fence);
	while (rig_now() < end_ns)
		rig_sleep(end_ns - rig_now());
	rig_skip(frozen);
	rig_thaw(frozen);
	assert_string_equal(rig_wait(frozen, "*")->text, "lost 1 expired left 0");
	await_line(frozen, "left 1 0 *");
	await_line(frozen, "end 76 OK *");
	await_line(frozen, "end 77 ELEASE *");
	await_line(frozen, "woke after *");
	run_turns(&frozen, 1);
	assert_int_equal(rig_count(frozen, "lost *"), 1);
	assert_int_equal(rig_count(frozen, "told *"), 1);
	assert_int_equal(runs(), 1);
	assert_ends_well(frozen);
	assert_ends_well(other);
	assert_ends_well(provider);
	return true;
}

NEEDS(redisserver_absent);

TEST(lease_1_thawed_holder_learns_of_the_loss_before_it_acts)
{
	until_in_time(learns_of_its_loss);
}

static bool survives_half_its_time(void)
{
	const unsigned ttl_ms = 4000;
	struct rig_process *holder = start_holder(ttl_ms);
	const char *before;
	const char *after;
	uint64_t renewals;
	uint64_t first_ns;
	uint64_t last_ns;

	(void)hold(holder, 1);
	rig_tell(holder, "left 1");
	before = rig_wait(holder, "left *")->text;
	rig_freeze(holder);
	first_ns = end_by_store();
	assert_true(end_by_holder(before) <= first_ns);
	assert_string_equal(stranger("CONFIG", "RESETSTAT"), "OK");
	rig_sleep((uint64_t)ttl_ms / 2 * MS);
	rig_tell(holder, "left 1");
	rig_thaw(holder);
	run_turns(&holder, 1);
	renewals = commands("evalsha");
	rig_tell(holder, "left 1");
	after = rig_wait(holder, "left *")->text;
	last_ns = end_by_store();
	if (rig_count(holder, "lost *") || end_by_holder(after) <= first_ns) {
		rig_kill(holder);
		return false;
	}
	assert_true(renewals >= 1);
	assert_true(end_by_holder(after) <= last_ns);
	assert_true(rig_count(holder, "woke after *") >= 1);
	assert_int_equal(rig_count(holder, "left 1 *"), 3);
	assert_int_equal(rig_count(holder, "left 1 0 *"), 0);
	assert_int_equal(rig_count(holder, "told *"), 1);
	assert_ends_well(holder);
	return true;
}

TEST(lease_2_holder_frozen_for_half_its_time_renews_at_once)
{
	until_in_time(survives_half_its_time);
}

/* The holder is frozen after the last check, as its call is written. */
TEST(lease_3_fence_refuses_the_late_call_of_a_frozen_holder)
{
	struct rig_process *frozen;
	struct rig_process *other;
	const char *address;
	uint64_t fence;

	start_provider();
	address = strstr(provider->lines[0].text, " ") + 1;
	frozen = start_caller(LONG_MS, address);
	other = start_caller(LONG_MS, address);
	fence = hold(frozen, 1);
	rig_tell(frozen, "late 1 77");
	(void)rig_wait(frozen, "stops");
	rig_until_stopped(frozen);
	assert_int_equal(stranger_number("DEL", NAME), 1);
	assert_true(hold(other, 2) > fence);
	rig_tell(other, "call 2 78");
	(void)rig_wait(other, "end 78 OK *");
	rig_thaw(frozen);
	assert_non_null(strstr(rig_wait(frozen, "end 77 EREMOTE written 1 *")->text, "fence"));
	assert_int_equal(rig_stat(provider, "requests_fenced"), 1);
	assert_int_equal(runs(), 1);
	rig_tell(other, "call 2 79");
	(void)rig_wait(other, "end 79 OK *");
	assert_ends_well(frozen);
	assert_ends_well(other);
	assert_ends_well(provider);
}

/* --- row 10: a holder is killed */

/* Returns whether the waiter got it less than 50 ms after the lock had expired. */
static bool takes_over_in_time(void)
{
	struct rig_process *holder = start_holder(1000);
	struct rig_process *waiter = start_holder(LONG_MS);
	uint64_t fence = hold(holder, 1);
	const struct rig_line *line;
	uint64_t least_ns;
	int64_t left_ms;

	rig_tell(waiter, "ask 1");
	until_waiting(1);
	run_turns(&waiter, 1);
	rig_kill(holder);
	assert_string_equal(stranger("CONFIG", "RESETSTAT"), "OK");
	/* Read first, so that the sum is not late. */
	least_ns = rig_now();
	left_ms = stranger_number("PTTL", NAME);
	if (left_ms <= 0 || left_ms > 1000) {
		rig_kill(waiter); /* it has expired already */
		return false;
	}
	least_ns += (uint64_t)left_ms * MS;
	line = rig_wait(waiter, "told 1 *");
	assert_true(rig_number(line->text, " OK fence ") > fence);
	assert_true(line->at_ns + 2 * MS >= least_ns);
	assert_int_equal(commands("publish"), 0);
	assert_in_range(commands("evalsha"), 1, 4);
	assert_ends_well(waiter);
	return line->at_ns < least_ns + 50 * MS;
}

TEST(lease_10_waiter_takes_over_when_a_dead_holder_expires)
{
	until_in_time(takes_over_in_time);
}

/* --- row 12: many wait */

/* Returns how many asks were granted, and the process and the number of the last one found. */
static unsigned grants(struct rig_process *const *crowd, unsigned *ret_process,
		       unsigned *ret_number)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CROWD; i++) {
		for (size_t at = 0; at < crowd[i]->line_count; at++) {
			const char *text = crowd[i]->lines[at].text;

			if (strncmp(text, "told ", 5) != 0)
				continue;
			assert_non_null(strstr(text, " OK fence "));
			*ret_process = i;
			*ret_number = (unsigned)rig_number(text, "told ");
			count++;
		}
	}
	return count;
}

/* Counts the scripts that the monitor has seen, each for the client that its last argument names;
 * returns the number of clients, and checks that none has run more than one. */
static unsigned clients_with_one_script(void)
{
	char uuids[CROWD][UUID_SIZE];
	unsigned count = 0;

	assert_string_equal(stranger("ECHO", "all seen"), "all seen");
	for (;;) {
		const char *text = redisclient_read(&monitor);
		const char *colon = strrchr(text, ':');

		if (strstr(text, "\"all seen\""))
			return count;
		if (!strstr(text, "\"EVALSHA\""))
			continue;
		assert_true(colon && colon - text >= (int)UUID_SIZE &&
			    colon[-(int)UUID_SIZE] == '"');
		assert_true(count < CROWD);
		(void)snprintf(uuids[count], UUID_SIZE, "%s", colon - (UUID_SIZE - 1));
		for (unsigned i = 0; i < count; i++)
			assert_string_not_equal(uuids[i], uuids[count]);
		count++;
	}
}

static void start_crowd(struct rig_process **ret_crowd)
{
	for (unsigned i = 0; i < CROWD; i++)
		ret_crowd[i] = start_holder(LONG_MS);
	for (unsigned i = 0; i < CROWD; i++)
		for (unsigned ask = 1; ask <= CROWD; ask++)
			rig_tell(ret_crowd[i], "ask %u", ask);
	until_waiting(CROWD);
	run_turns(ret_crowd, CROWD);
}

TEST(lease_12_release_wakes_one_of_a_hundred_waiters)
{
	struct rig_process *crowd[CROWD];
	struct redispeer peer;
	unsigned process = 0;
	unsigned number = 0;

	redispeer_open(&peer, redis.path, 1);
	assert_int_equal(redispeer_acquire(&peer, NAME, LONG_MS), REDISPEER_HELD);
	start_crowd(crowd);
	assert_int_equal(grants(crowd, &process, &number), 0);
	redisclient_open(&monitor, redis.path);
	assert_string_equal(redisclient_ask(&monitor, REDIS_WORDS("MONITOR")), "OK");
	assert_int_equal(redispeer_release(&peer, NAME), 1);
	run_turns(crowd, CROWD);
	assert_int_equal(grants(crowd, &process, &number), 1);
	assert_int_equal(clients_with_one_script(), CROWD);
	redisclient_close(&monitor);
	rig_tell(crowd[process], "release %u", number);
	(void)rig_wait(crowd[process], "released * OK");
	run_turns(crowd, CROWD);
	assert_int_equal(grants(crowd, &process, &number), 2);
	for (unsigned i = 0; i < CROWD; i++)
		assert_ends_well(crowd[i]);
	redispeer_close(&peer);
}

/* --- life */

static int set_up(void **state)
{
	redisserver_rouse(&redis);
	stranger_goes_to(redis.path);
	assert_string_equal(stranger("FLUSHALL"), "OK");
	return rig_set_up(state);
}

static int tear_down(void **state)
{
	stranger_leaves();
	return rig_tear_down(state);
}

FIXTURE(set_up, tear_down);

STEP(set_up_all)
{
	redisserver_make(&redis, 0, "");
}

STEP(tear_down_all)
{
	redisserver_unmake(&redis);
}

GROUP(set_up_all, tear_down_all);
