/* SPDX-License-Identifier: Apache-2.0 */
/* Leases of any holder are broken. */
#include "cluster/lease/job.h"
#include "tests/cluster/lease/leaserig.h"
#include "tests/support/test.h"

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

FIXTURE(leaserig_set_up, leaserig_tear_down);

TEST(broken_lease_is_free_and_lost_by_its_holder)
{
	struct leaserig_ask *ask = leaserig_hold("reports");
	struct fakeredis_lock lock;

	leaserig_join(&rig.two, NULL);
	assert_int_equal(break_lock("reports"), SPOKE_OK);
	assert_false(fakeredis_lock(&rig.server, "reports", &lock));
	leaserig_pass(LEASERIG_TTL / 2);
	assert_int_equal(ask->lost, 1);
	assert_int_equal(ask->why, SPOKE_LEASE_TAKEN);
	assert_int_equal(break_lock("reports"), SPOKE_ENOENT);
}

TEST(break_wakes_a_waiting_ask)
{
	struct leaserig_ask *ask;

	fakeredis_put_lock(&rig.server, "reports", PEER, 1, 0);
	ask = leaserig_wait("reports");
	leaserig_pass(20 * MS);
	assert_int_equal(ask->told, 0);
	assert_int_equal(break_lock("reports"), SPOKE_OK);
	assert_int_equal(ask->told, 1);
	assert_int_equal(ask->error, SPOKE_OK);
}

TEST(key_of_another_type_is_not_broken)
{
	fakeredis_put(&rig.server, "text", "x");
	assert_int_equal(break_lock("text"), SPOKE_ESTORE);
	assert_true(fakeredis_remove(&rig.server, "text"));
}

/* Sent again it could break the lease of the next holder. */
TEST(break_with_a_lost_answer_is_not_repeated)
{
	fakeredis_put_lock(&rig.server, "reports", PEER, 1, 0);
	fakeredis_cut(&rig.server, FAKEREDIS_CUT_AFTER, "EVALSHA", FAKEREDIS_BREAK, 0);
	assert_int_equal(break_lock("reports"), SPOKE_EUNAVAILABLE);
	leaserig_pass(SECOND);
	assert_int_equal(fakeredis_runs(&rig.server, FAKEREDIS_BREAK), 1);
	assert_int_equal(broken_count, 1);
}

TEST(freeing_leases_ends_a_break)
{
	begin_break("reports");
	spoke_leases_free(rig.one.leases);
	rig.one.leases = NULL;
	leaserig_pass(10 * MS);
	assert_int_equal(broken_count, 1);
	assert_int_equal(broken, SPOKE_ECLOSED);
}

TEST(jobs_have_a_limit)
{
	unsigned begun = 0;

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

TEST(name_has_limits)
{
	static char text[SPOKE_LEASE_NAME_MAX + 2];

	memset(text, 'x', sizeof(text) - 1);
	assert_int_equal(spoke_leases_break(rig.one.leases, text, note_broken, &broken),
			 SPOKE_EINVAL);
	assert_int_equal(spoke_leases_break(rig.one.leases, "", NULL, NULL), SPOKE_EINVAL);
	assert_int_equal(spoke_leases_break(rig.one.leases, "\xff", NULL, NULL), SPOKE_EINVAL);
	assert_int_equal(spoke_leases_break(rig.one.leases, NULL, NULL, NULL), SPOKE_EINVAL);
}
