/* SPDX-License-Identifier: Apache-2.0 */
/* All leases of a store, listed in steps. */
#include "tests/cluster/lease/leaserig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define rig leaserig
#define PEER "285475da-9152-4c83-822a-67ee2f116a79:52"
#define SEEN 2048

/* What a listing has called. */
static struct {
	struct {
		char name[64];
		char holder[64];
		uint64_t left_ns;
		uint32_t count;
		uint64_t fence;
	} infos[SEEN];
	unsigned count;
	unsigned ends;
	int error;
	void (*then)(void); /* after each info; may be NULL */
} seen;

static void copy_text(char to[64], struct spoke_span text)
{
	assert_true(text.len < 64);
	memcpy(to, text.data, text.len);
	to[text.len] = '\0';
}

static void note_info(void *arg, const struct spoke_lease_info *info, int error)
{
	assert_ptr_equal(arg, &seen);
	assert_int_equal(seen.ends, 0);
	if (info == NULL) {
		seen.ends++;
		seen.error = error;
		return;
	}
	assert_int_equal(error, SPOKE_OK);
	assert_true(seen.count < SEEN);
	copy_text(seen.infos[seen.count].name, info->name);
	copy_text(seen.infos[seen.count].holder, info->holder);
	seen.infos[seen.count].left_ns = info->left_ns;
	seen.infos[seen.count].count = info->count;
	seen.infos[seen.count].fence = info->fence;
	seen.count++;
	if (seen.then)
		seen.then();
}

static void begin(const char *match)
{
	memset(&seen, 0, sizeof(seen));
	assert_int_equal(spoke_leases_list(rig.one.leases, match, note_info, &seen), SPOKE_OK);
	assert_int_equal(seen.count + seen.ends, 0);
}

static void list(const char *match)
{
	begin(match);
	leaserig_pass(200 * MS);
	assert_int_equal(seen.ends, 1);
}

/* Returns how often a name was listed. */
static unsigned times(const char *name)
{
	unsigned count = 0;

	for (unsigned i = 0; i < seen.count; i++)
		count += strcmp(seen.infos[i].name, name) == 0;
	return count;
}

static void put_locks(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "lock%u", i);
		fakeredis_put_lock(&rig.server, name, PEER, 1, 60000);
	}
}

/* --- listings */

FIXTURE(leaserig_set_up, leaserig_tear_down);

TEST(listing_describes_each_lock)
{
	struct leaserig_ask *ask = leaserig_hold("mine");

	fakeredis_put_lock(&rig.server, "theirs", PEER, 3, 0);
	list(NULL);
	assert_int_equal(seen.error, SPOKE_OK);
	assert_int_equal(seen.count, 2);
	assert_int_equal(times("mine"), 1);
	assert_int_equal(times("theirs"), 1);
	for (unsigned i = 0; i < 2; i++) {
		if (strcmp(seen.infos[i].name, "theirs") == 0) {
			assert_string_equal(seen.infos[i].holder, PEER);
			assert_int_equal(seen.infos[i].left_ns, UINT64_MAX);
			assert_int_equal(seen.infos[i].count, 3);
			assert_int_equal(seen.infos[i].fence, 0);
		} else {
			assert_in_range(seen.infos[i].left_ns, 29 * SECOND, 30 * SECOND);
			assert_int_equal(seen.infos[i].count, 1);
			assert_int_equal(seen.infos[i].fence, ask->fence);
		}
	}
}

TEST(store_that_is_frozen_ends_the_listing)
{
	fakeredis_put_lock(&rig.server, "theirs", PEER, 3, 0);
	spokei_world_hold(&rig.server.process, 600 * SECOND);
	begin(NULL);
	leaserig_pass(60 * SECOND);
	assert_int_equal(seen.ends, 1);
	assert_int_equal(seen.error, SPOKE_EUNAVAILABLE);
}

TEST(listing_of_an_empty_store_ends)
{
	list(NULL);
	assert_int_equal(seen.error, SPOKE_OK);
	assert_int_equal(seen.count, 0);
}

TEST(pattern_limits_a_listing)
{
	put_locks(20);
	fakeredis_put_lock(&rig.server, "other", PEER, 1, 60000);
	list("lock1*");
	assert_int_equal(seen.count, 11);
	assert_int_equal(times("lock1"), 1);
	assert_int_equal(times("lock2"), 0);
	assert_int_equal(times("other"), 0);
}

TEST(single_name_is_looked_at_without_a_walk)
{
	put_locks(20);
	fakeredis_put_lock(&rig.server, "a*", PEER, 1, 60000);
	fakeredis_put(&rig.server, "text", "x");
	rig.server.forbidden[0] = "scan";
	list("lock1");
	assert_int_equal(seen.error, SPOKE_OK);
	assert_int_equal(seen.count, 1);
	assert_int_equal(times("lock1"), 1);
	list("a\\*");
	assert_int_equal(times("a*"), 1);
	list("lock100");
	assert_int_equal(seen.error, SPOKE_OK);
	assert_int_equal(seen.count, 0);
	list("text");
	assert_int_equal(seen.error, SPOKE_OK);
	assert_int_equal(seen.count, 0);
}

TEST(single_name_is_looked_at_again_after_a_lost_connection)
{
	put_locks(1);
	fakeredis_cut(&rig.server, FAKEREDIS_CUT_BEFORE, "EVALSHA", FAKEREDIS_LOOK, 1);
	begin("lock0");
	leaserig_pass(2 * SECOND);
	assert_int_equal(seen.ends, 1);
	assert_int_equal(seen.error, SPOKE_OK);
	assert_int_equal(seen.count, 1);
}

TEST(keys_that_are_no_locks_are_not_listed)
{
	fakeredis_put(&rig.server, "text", "x");
	fakeredis_put_lock(&rig.server, "hash", "name", 1, 0);
	fakeredis_put_lock(&rig.server, "lock", PEER, 1, 0);
	list(NULL);
	assert_int_equal(seen.count, 1);
	assert_int_equal(times("lock"), 1);
}

TEST(large_store_is_listed_in_steps)
{
	put_locks(2000);
	list(NULL);
	assert_int_equal(seen.error, SPOKE_OK);
	assert_int_equal(seen.count, 2000);
	assert_int_equal(times("lock0"), 1);
	assert_int_equal(times("lock1999"), 1);
	assert_int_equal(fakeredis_runs(&rig.server, FAKEREDIS_LOOK), 2000);
}

static void count_info(void *arg, const struct spoke_lease_info *info, int error)
{
	unsigned *counts = arg;

	assert_int_equal(error, SPOKE_OK);
	assert_int_equal(counts[1], 0);
	counts[info ? 0 : 1]++;
}

TEST(several_listings_run_at_one_time)
{
	unsigned counts[3][2] = { { 0 } };

	put_locks(100);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(spoke_leases_list(rig.one.leases, NULL, count_info, counts[i]),
				 SPOKE_OK);
	leaserig_pass(100 * MS);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(counts[i][0], 100);
		assert_int_equal(counts[i][1], 1);
	}
}

/* --- faults of the store */

TEST(listing_goes_on_after_a_lost_connection)
{
	static const char *const commands[] = { "SCAN", "EVALSHA" };

	put_locks(100);
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned how = FAKEREDIS_CUT_BEFORE; how <= FAKEREDIS_CUT_AFTER; how++) {
			fakeredis_cut(&rig.server, (enum fakeredis_cut)how, commands[i],
				      i ? FAKEREDIS_LOOK : FAKEREDIS_NO_SCRIPT, i ? 20 : 1);
			begin(NULL);
			leaserig_pass(2 * SECOND);
			assert_int_equal(seen.ends, 1);
			assert_int_equal(seen.error, SPOKE_OK);
			assert_int_equal(seen.count, 100);
		}
	}
}

TEST(listing_ends_when_the_store_stays_away)
{
	put_locks(100);
	begin(NULL);
	fakeredis_kill(&rig.server);
	leaserig_pass(SECOND);
	assert_int_equal(seen.ends, 1);
	assert_int_equal(seen.error, SPOKE_EUNAVAILABLE);
	begin(NULL);
	leaserig_pass(10 * SECOND);
	assert_int_equal(seen.ends, 1);
	assert_int_equal(seen.error, SPOKE_EUNAVAILABLE);
}

TEST(listing_waits_for_the_first_connection, .set_up = leaserig_set_up_world,
     .tear_down = leaserig_tear_down)
{
	fakeredis_put_lock(&rig.server, "lock", PEER, 1, 0);
	assert_int_equal(spoke_leases_new(rig.one.engine,
					  &(struct spoke_leases_options){
						  .store = "redis://" LEASERIG_AT },
					  &rig.one.leases),
			 SPOKE_OK);
	list(NULL);
	assert_int_equal(seen.error, SPOKE_OK);
	assert_int_equal(seen.count, 1);
}

TEST(refused_scan_ends_with_an_event)
{
	rig.server.forbidden[0] = "scan";
	list(NULL);
	assert_int_equal(seen.error, SPOKE_ESTORE);
	assert_int_equal(seen.count, 0);
}

TEST(hostile_answers_end_a_listing)
{
	static const char *const answers[] = {
		"*0\r\n",
		":1\r\n",
		"*2\r\n:1\r\n*0\r\n",
		"*2\r\n$0\r\n\r\n*0\r\n",
		"*2\r\n$30\r\n123456789012345678901234567890\r\n*0\r\n",
		"*3\r\n$1\r\n0\r\n*0\r\n*0\r\n",
	};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		spokei_world_hold(&rig.server.process, 10 * MS);
		begin(NULL);
		leaserig_pass(MS);
		fakeredis_say(&rig.server, false, answers[i], strlen(answers[i]));
		leaserig_pass(20 * MS);
		assert_int_equal(seen.ends, 1);
		assert_int_equal(seen.error, SPOKE_ESTORE);
		leaserig_pass(SECOND);
	}
}

/* --- ends */

static void free_leases(void)
{
	spoke_leases_free(rig.one.leases);
	rig.one.leases = NULL;
}

TEST(freeing_leases_ends_a_listing)
{
	put_locks(100);
	rig.server.delay_ns = 5 * MS;
	begin(NULL);
	leaserig_pass(7 * MS);
	free_leases();
	leaserig_pass(10 * MS);
	assert_int_equal(seen.ends, 1);
	assert_int_equal(seen.error, SPOKE_ECLOSED);
}

TEST(callback_of_a_listing_can_free_the_leases)
{
	put_locks(100);
	begin(NULL);
	seen.then = free_leases;
	leaserig_pass(20 * MS);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.ends, 1);
	assert_int_equal(seen.error, SPOKE_ECLOSED);
}

TEST(draining_ends_jobs_and_refuses_new_ones)
{
	put_locks(100);
	begin(NULL);
	assert_int_equal(spoke_engine_drain(rig.one.engine, SECOND), SPOKE_OK);
	leaserig_pass(20 * MS);
	assert_int_equal(seen.ends, 1);
	assert_int_equal(seen.error, SPOKE_ECLOSED);
}

TEST(pattern_has_a_limit)
{
	static char text[2 * SPOKE_LEASE_NAME_MAX + 2];

	memset(text, 'x', sizeof(text) - 1);
	assert_int_equal(spoke_leases_list(rig.one.leases, text, note_info, &seen), SPOKE_EINVAL);
	assert_int_equal(spoke_leases_list(rig.one.leases, NULL, NULL, NULL), SPOKE_EINVAL);
}

TEST(listing_without_memory_is_refused_or_ends)
{
	int error = SPOKE_ENOMEM;

	put_locks(40);
	for (unsigned i = 0; error == SPOKE_ENOMEM; i++) {
		memset(&seen, 0, sizeof(seen));
		rig.one.faulty.rules[SPOKEI_FAULTS_MEMORY] =
			(struct spokei_faults_rule){ .skip = i, .error = -12 };
		error = spoke_leases_list(rig.one.leases, NULL, note_info, &seen);
		leaserig_pass(5 * SECOND);
		rig.one.faulty.rules[SPOKEI_FAULTS_MEMORY] = (struct spokei_faults_rule){ 0 };
		if (error == SPOKE_OK) {
			assert_int_equal(seen.ends, 1);
			error = seen.error;
		}
		leaserig_pass(5 * SECOND);
	}
	assert_int_equal(error, SPOKE_OK);
	assert_int_equal(seen.count, 40);
}
