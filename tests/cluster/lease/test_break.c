/* SPDX-License-Identifier: Apache-2.0 */
/* Leases of any holder are broken. */
#include "cluster/lease/job.h"
#include "tests/cluster/lease/leaserig.h"

#include <string.h>

#define rig leaserig
#define PEER "285475da-9152-4c83-822a-67ee2f116a79:52"

static int broken;
static unsigned broken_count;

static void note_broken(void *arg, int error)
{
	assert_ptr_equal(arg, &broken);
	broken = error;
	broken_count++;
}

static void begin_break(const char *name)
{
	broken_count = 0;
	assert_int_equal(spoke_leases_break(rig.one.leases, name, note_broken, &broken), SPOKE_OK);
	assert_int_equal(broken_count, 0);
}

static int break_lock(const char *name)
{
	begin_break(name);
	leaserig_pass(20 * MS);
	assert_int_equal(broken_count, 1);
	return broken;
}

static void broken_lease_is_free_and_lost_by_its_holder(void **state)
{
	struct leaserig_ask *ask = leaserig_hold("reports");
	struct fakeredis_lock lock;

	(void)state;
	leaserig_join(&rig.two, NULL);
	assert_int_equal(break_lock("reports"), SPOKE_OK);
	assert_false(fakeredis_lock(&rig.server, "reports", &lock));
	leaserig_pass(LEASERIG_TTL / 2);
	assert_int_equal(ask->lost, 1);
	assert_int_equal(ask->why, SPOKE_LEASE_TAKEN);
	assert_int_equal(break_lock("reports"), SPOKE_ENOENT);
}

static void break_wakes_a_waiting_ask(void **state)
{
	struct leaserig_ask *ask;

	(void)state;
	fakeredis_put_lock(&rig.server, "reports", PEER, 1, 0);
	ask = leaserig_wait("reports");
	leaserig_pass(20 * MS);
	assert_int_equal(ask->told, 0);
	assert_int_equal(break_lock("reports"), SPOKE_OK);
	assert_int_equal(ask->told, 1);
	assert_int_equal(ask->error, SPOKE_OK);
}

static void key_of_another_type_is_not_broken(void **state)
{
	(void)state;
	fakeredis_put(&rig.server, "text", "x");
	assert_int_equal(break_lock("text"), SPOKE_ESTORE);
	assert_true(fakeredis_remove(&rig.server, "text"));
}

/* Sent again it could break the lease of the next holder. */
static void break_with_a_lost_answer_is_not_repeated(void **state)
{
	(void)state;
	fakeredis_put_lock(&rig.server, "reports", PEER, 1, 0);
	fakeredis_cut(&rig.server, FAKEREDIS_CUT_AFTER, "EVALSHA", FAKEREDIS_BREAK, 0);
	assert_int_equal(break_lock("reports"), SPOKE_EUNAVAILABLE);
	leaserig_pass(SECOND);
	assert_int_equal(fakeredis_runs(&rig.server, FAKEREDIS_BREAK), 1);
	assert_int_equal(broken_count, 1);
}

static void freeing_leases_ends_a_break(void **state)
{
	(void)state;
	begin_break("reports");
	spoke_leases_free(rig.one.leases);
	rig.one.leases = NULL;
	leaserig_pass(10 * MS);
	assert_int_equal(broken_count, 1);
	assert_int_equal(broken, SPOKE_ECLOSED);
}

static void jobs_have_a_limit(void **state)
{
	unsigned begun = 0;

	(void)state;
	fakeredis_kill(&rig.server);
	leaserig_pass(10 * MS);
	broken_count = 0;
	while (spoke_leases_break(rig.one.leases, "x", note_broken, &broken) == SPOKE_OK)
		begun++;
	assert_int_equal(begun, SPOKEI_LEASE_JOBS_MAX);
	assert_int_equal(spoke_leases_break(rig.one.leases, "x", NULL, NULL), SPOKE_ELIMIT);
	leaserig_pass(10 * SECOND);
	assert_int_equal(broken_count, begun);
	assert_int_equal(broken, SPOKE_EUNAVAILABLE);
}

static void name_has_limits(void **state)
{
	static char text[SPOKE_LEASE_NAME_MAX + 2];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	assert_int_equal(spoke_leases_break(rig.one.leases, text, note_broken, &broken),
			 SPOKE_EINVAL);
	assert_int_equal(spoke_leases_break(rig.one.leases, "", NULL, NULL), SPOKE_EINVAL);
	assert_int_equal(spoke_leases_break(rig.one.leases, "\xff", NULL, NULL), SPOKE_EINVAL);
	assert_int_equal(spoke_leases_break(rig.one.leases, NULL, NULL, NULL), SPOKE_EINVAL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, leaserig_set_up, leaserig_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(broken_lease_is_free_and_lost_by_its_holder),
		TEST(break_wakes_a_waiting_ask),
		TEST(key_of_another_type_is_not_broken),
		TEST(break_with_a_lost_answer_is_not_repeated),
		TEST(freeing_leases_ends_a_break),
		TEST(jobs_have_a_limit),
		TEST(name_has_limits),
	};

	return cmocka_run_group_tests_name("lease break", tests, NULL, NULL);
}
