/* SPDX-License-Identifier: Apache-2.0 */
/* Futures of leases in one thread: their life, and the times at which they are valid. */
#include "tests/cluster/lease/leaserig.h"
#include "tests/support/test.h"

#include <string.h>

#define rig leaserig

static struct spoke_lease_future *future;
static unsigned lost_count;
static enum spoke_lease_loss lost_why;
static struct spoke_lease_future *freed_by_lost;

static int set_up(void **state)
{
	future = NULL;
	freed_by_lost = NULL;
	lost_count = 0;
	return leaserig_set_up(state);
}

static int tear_down(void **state)
{
	leaserig_leave(&rig.one);
	spoke_lease_future_free(future);
	return leaserig_tear_down(state);
}

FIXTURE(set_up, tear_down);

static void note_lost(void *arg, struct spoke_lease lease, enum spoke_lease_loss why)
{
	assert_ptr_equal(arg, &lost_count);
	assert_int_equal(spoke_lease_left(lease), 0);
	lost_count++;
	lost_why = why;
	spoke_lease_future_free(freed_by_lost);
}

static const struct spoke_lease_options patient = {
	.wait_ns = SPOKE_LEASE_FOREVER,
	.lost = note_lost,
	.arg = &lost_count,
};

static const struct spoke_lease_options impatient = { .lost = note_lost, .arg = &lost_count };

static void start(const char *name, const struct spoke_lease_options *options)
{
	assert_int_equal(spoke_lease_start(rig.one.leases, name, options, &future), SPOKE_OK);
	assert_null(spoke_lease_future_answer(future));
	assert_int_equal(spoke_lease_future_left(future), 0);
	assert_null(spoke_lease_future_lease(future).leases);
}

static void hold(const char *name)
{
	start(name, &impatient);
	leaserig_pass(10 * MS);
	assert_int_equal(spoke_lease_future_answer(future)->error, SPOKE_OK);
}

static void free_future(void)
{
	spoke_lease_future_free(future);
	future = NULL;
}

static bool is_locked(const char *name)
{
	struct fakeredis_lock lock;

	return fakeredis_lock(&rig.server, name, &lock);
}

/* --- answers */

TEST(held_future_has_fence_lease_and_time)
{
	struct spoke_lease lease;

	hold("reports");
	lease = spoke_lease_future_lease(future);
	assert_ptr_equal(lease.leases, rig.one.leases);
	assert_int_equal(spoke_lease_future_answer(future)->fence, 1);
	assert_int_equal(spoke_lease_fence(lease), 1);
	assert_true(spoke_lease_future_left(future) > LEASERIG_TTL - LEASERIG_GUARD - 20 * MS);
	assert_int_equal(spoke_lease_future_left(future), spoke_lease_left(lease));
	/* There are no threads in this world. */
	assert_int_equal(spoke_lease_future_wait(future), SPOKE_OK);
}

TEST(renewals_extend_the_time_of_a_future)
{
	hold("reports");
	for (unsigned i = 0; i < 10; i++) {
		leaserig_pass(LEASERIG_TTL / 2);
		assert_int_equal(spoke_lease_future_left(future),
				 spoke_lease_left(spoke_lease_future_lease(future)));
		assert_true(spoke_lease_future_left(future) > LEASERIG_TTL / 2);
	}
	assert_int_equal(lost_count, 0);
}

TEST(refused_ask_has_its_answer)
{
	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 7000);
	start("reports", &impatient);
	leaserig_pass(10 * MS);
	assert_int_equal(spoke_lease_future_answer(future)->error, SPOKE_EBUSY);
	assert_in_range(spoke_lease_future_answer(future)->left_ns, 6900 * MS, 7000 * MS);
	assert_int_equal(spoke_lease_future_left(future), 0);
	assert_null(spoke_lease_future_lease(future).leases);
	assert_int_equal(spoke_lease_future_wait(future), SPOKE_EBUSY);
}

TEST(text_of_the_store_lives_as_long_as_the_future)
{
	const struct spoke_lease_answer *answer;

	fakeredis_put(&rig.server, "reports", "x");
	start("reports", &impatient);
	leaserig_pass(10 * MS);
	leaserig_leave(&rig.one);
	answer = spoke_lease_future_answer(future);
	assert_int_equal(answer->error, SPOKE_ESTORE);
	assert_true(answer->text.len > 9);
	assert_memory_equal(answer->text.data, "WRONGTYPE", 9);
}

TEST(invalid_ask_is_refused_at_once)
{
	static char name[SPOKE_LEASE_NAME_MAX + 2];
	const struct spoke_lease_options brief = { .ttl_ns = 1 };

	memset(name, 'x', sizeof(name) - 1);
	assert_int_equal(spoke_lease_start(rig.one.leases, name, NULL, &future), SPOKE_EINVAL);
	assert_int_equal(spoke_lease_start(rig.one.leases, "", NULL, &future), SPOKE_EINVAL);
	assert_int_equal(spoke_lease_start(rig.one.leases, NULL, NULL, &future), SPOKE_EINVAL);
	assert_int_equal(spoke_lease_start(rig.one.leases, "x", &brief, &future), SPOKE_ERANGE);
	assert_null(future);
}

/* --- ends */

TEST(freed_future_releases_its_lease)
{
	hold("reports");
	assert_true(is_locked("reports"));
	free_future();
	leaserig_pass(10 * MS);
	assert_false(is_locked("reports"));
	assert_int_equal(lost_count, 0);
	assert_int_equal(leaserig_stat(SPOKE_STAT_LEASES_RELEASED), 1);
}

TEST(freed_future_cancels_its_ask)
{
	struct leaserig_ask *ask = leaserig_hold("reports");

	start("reports", &patient);
	leaserig_pass(10 * MS);
	free_future();
	leaserig_pass(10 * MS);
	leaserig_release(ask);
	leaserig_pass(100 * MS);
	assert_false(is_locked("reports"));
}

TEST(future_freed_at_once_asks_for_nothing)
{
	start("reports", &patient);
	free_future();
	leaserig_pass(10 * MS);
	assert_int_equal(fakeredis_runs(&rig.server, FAKEREDIS_ACQUIRE), 0);
}

/* The release overtakes the answer to the ask. */
TEST(grant_after_a_release_is_given_back)
{
	rig.server.delay_ns = 50 * MS;
	start("reports", &patient);
	leaserig_pass(20 * MS);
	free_future();
	leaserig_pass(500 * MS);
	assert_false(is_locked("reports"));
	assert_int_equal(lost_count, 0);
}

/* The turn reads the answer of the store before the release arrives. */
TEST(future_given_up_before_its_grant_is_cancelled)
{
	rig.server.delay_ns = 50 * MS;
	start("reports", &patient);
	leaserig_pass(20 * MS);
	spokei_world_hold(&rig.one.process, 100 * MS);
	/* Without threads it does not wait. */
	assert_int_equal(spoke_lease_future_release(future), SPOKE_EUNSUPPORTED);
	assert_null(spoke_lease_future_answer(future));
	leaserig_pass(90 * MS);
	assert_true(is_locked("reports"));
	leaserig_pass(500 * MS);
	assert_int_equal(spoke_lease_future_answer(future)->error, SPOKE_ECANCELED);
	assert_int_equal(spoke_lease_future_answer(future)->fence, 0);
	assert_int_equal(spoke_lease_future_left(future), 0);
	assert_null(spoke_lease_future_lease(future).leases);
	assert_false(is_locked("reports"));
	assert_int_equal(lost_count, 0);
	assert_int_equal(leaserig_stat(SPOKE_STAT_LEASES_RELEASED), 1);
}

TEST(held_future_that_is_given_up_is_held_no_more)
{
	hold("reports");
	assert_int_equal(spoke_lease_future_release(future), SPOKE_EUNSUPPORTED);
	/* Before the engine has turned. */
	assert_int_equal(spoke_lease_future_left(future), 0);
	assert_null(spoke_lease_future_lease(future).leases);
	assert_int_equal(spoke_lease_future_answer(future)->error, SPOKE_OK);
	leaserig_pass(100 * MS);
	assert_false(is_locked("reports"));
}

TEST(broken_lease_ends_the_time_of_a_future)
{
	hold("reports");
	fakeredis_unlock(&rig.server, "reports");
	leaserig_pass(LEASERIG_TTL / 2);
	assert_int_equal(lost_count, 1);
	assert_int_equal(lost_why, SPOKE_LEASE_TAKEN);
	assert_int_equal(spoke_lease_future_left(future), 0);
	assert_null(spoke_lease_future_lease(future).leases);
	assert_int_equal(spoke_lease_future_answer(future)->error, SPOKE_OK);
	assert_int_equal(spoke_lease_future_release(future), SPOKE_EUNSUPPORTED);
}

TEST(lost_callback_can_free_the_future)
{
	hold("reports");
	freed_by_lost = future;
	future = NULL;
	fakeredis_unlock(&rig.server, "reports");
	leaserig_pass(LEASERIG_TTL / 2);
	assert_int_equal(lost_count, 1);
}

/* The lease ends as the next turn begins, before the release arrives. */
TEST(lost_callback_is_not_called_after_free)
{
	hold("reports");
	spokei_world_hold(&rig.one.process, LEASERIG_TTL);
	free_future();
	leaserig_pass(LEASERIG_TTL + 10 * MS);
	assert_int_equal(leaserig_stat(SPOKE_STAT_LEASES_LOST), 1);
	assert_int_equal(lost_count, 0);
}

/* The engine need not turn for that. */
TEST(time_of_a_future_ends_by_the_clock)
{
	hold("reports");
	spokei_world_hold(&rig.one.process, LEASERIG_TTL);
	assert_int_equal(lost_count, 0);
	assert_int_equal(spoke_lease_future_left(future), 0);
}

TEST(time_of_a_future_counts_sleep_of_the_machine)
{
	hold("reports");
	rig.one.process.boot_ahead_ns = LEASERIG_TTL;
	assert_int_equal(spoke_lease_future_left(future), 0);
}

TEST(freed_leases_end_their_futures)
{
	struct spoke_lease_future *waiting;

	hold("reports");
	assert_int_equal(spoke_lease_start(rig.one.leases, "reports", &patient, &waiting),
			 SPOKE_OK);
	leaserig_pass(10 * MS);
	assert_null(spoke_lease_future_answer(waiting));
	spoke_leases_free(rig.one.leases);
	rig.one.leases = NULL;
	leaserig_pass(10 * MS);
	assert_int_equal(lost_count, 1);
	assert_int_equal(lost_why, SPOKE_LEASE_CLOSED);
	assert_int_equal(spoke_lease_future_left(future), 0);
	assert_int_equal(spoke_lease_future_answer(waiting)->error, SPOKE_ECLOSED);
	assert_int_equal(spoke_lease_future_wait(waiting), SPOKE_ECLOSED);
	assert_int_equal(spoke_lease_future_release(future), SPOKE_ENOENT);
	spoke_lease_future_free(waiting);
}

TEST(future_on_its_way_ends_with_the_leases)
{
	start("reports", &patient);
	spoke_leases_free(rig.one.leases);
	rig.one.leases = NULL;
	leaserig_pass(10 * MS);
	assert_int_equal(spoke_lease_future_answer(future)->error, SPOKE_ECLOSED);
}

TEST(future_can_outlive_the_engine)
{
	hold("reports");
	leaserig_leave(&rig.one);
	assert_int_equal(lost_count, 1);
	assert_int_equal(spoke_lease_future_left(future), 0);
	assert_int_equal(spoke_lease_future_answer(future)->fence, 1);
}

TEST(start_without_memory_leaks_nothing)
{
	int error = SPOKE_ENOMEM;
	unsigned failed = 0;

	for (unsigned i = 0; error == SPOKE_ENOMEM; i++, failed++) {
		rig.one.faulty.rules[SPOKEI_FAULTS_MEMORY] =
			(struct spokei_faults_rule){ .skip = i, .error = -12 };
		error = spoke_lease_start(rig.one.leases, "a name of more than 24 bytes", NULL,
					  &future);
		leaserig_pass(5 * SECOND);
		rig.one.faulty.rules[SPOKEI_FAULTS_MEMORY] = (struct spokei_faults_rule){ 0 };
		if (error == SPOKE_OK) {
			error = spoke_lease_future_answer(future)->error;
			free_future();
		}
		leaserig_pass(5 * SECOND);
	}
	assert_int_equal(error, SPOKE_OK);
	assert_true(failed > 2);
}
