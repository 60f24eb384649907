/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts that coincide with a wait, the end of a consumer, or a failed allocation. */
#include "tests/cluster/clusterrig.h"
#include "tests/support/test.h"

#define rig clusterrig

/* --- cancelled */

FIXTURE(clusterrig_set_up, clusterrig_tear_down);

TEST(cancelled_call_gets_no_ticket)
{
	struct rig_call *call;

	rig.provider_count = 1;
	clusterrig_consume("cluster=failback&retry.period=2s", NULL);
	clusterrig_pass(300 * MS);
	/* The first attempt has failed already. */
	call = clusterrig_call(clusterrig_method("echo", NULL));
	assert_true(spoke_call_cancel(rig.consumer, call->name));
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ECANCELED);
	assert_int_equal(rig.settled, 0);
	assert_int_equal(spoke_consumer_tickets(rig.consumer, NULL), 0);
}

static struct rig_call *other;

static void cancel_other(struct rig_call *call)
{
	rig.in_done = NULL;
	assert_int_equal(call->error, SPOKE_ECLOSED);
	assert_true(spoke_call_cancel(rig.consumer, other->name));
}

TEST(cancelled_call_ends_with_ecanceled_in_a_drain)
{
	struct spoke_method *echo;

	rig.provider_count = 2;
	clusterrig_consume("wait.ready=true&timeout=3s", NULL);
	clusterrig_pass(200 * MS);
	echo = clusterrig_method("echo", NULL);
	(void)clusterrig_call(echo);
	other = clusterrig_call(echo);
	clusterrig_pass(MS);
	rig.in_done = cancel_other;
	assert_int_equal(spoke_engine_drain(rig.engine, SECOND), 0);
	clusterrig_pass(10 * MS);
	assert_int_equal(rig.ended, 2);
	assert_int_equal(other->error, SPOKE_ECANCELED);
}

/* --- waiting for an endpoint */

TEST(call_waits_for_lazy_endpoints)
{
	struct spoke_method *echo;

	clusterrig_provide(3);
	clusterrig_consume("lazy=true&wait.ready=true&timeout=3s&loadbalance=roundrobin", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 3; i++) {
		struct rig_call *call = clusterrig_call(echo);

		clusterrig_pass(100 * MS);
		assert_int_equal(call->ends, 1);
		assert_int_equal(call->error, SPOKE_OK);
	}
}

TEST(lost_attempt_fails_broadcast)
{
	struct rig_call *call;

	clusterrig_provide(2);
	spokei_vnet_route(rig.world.net, rig.providers[2].address, SPOKEI_VNET_SILENT);
	rig.provider_count = 3;
	clusterrig_consume("cluster=broadcast&wait.ready=true&timeout=20s", NULL);
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_end(call);
	assert_int_equal(call->attempts, 3);
	assert_int_not_equal(call->error, SPOKE_OK);
}

/* --- failed allocations */

TEST(failsafe_excuses_immediate_failure)
{
	struct spokei_faults_rule *rule = &rig.faulty.rules[SPOKEI_FAULTS_MEMORY];
	struct spoke_method *echo;
	bool failed = true;

	clusterrig_provide(1);
	clusterrig_consume("cluster=failsafe&wait.ready=true", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned nth = 0; failed; nth++) {
		uint64_t before = rig.faulty.failed[SPOKEI_FAULTS_MEMORY];
		int error;

		*rule = (struct spokei_faults_rule){ .skip = nth, .error = -1 };
		error = clusterrig_try(echo, NULL);
		*rule = (struct spokei_faults_rule){ 0 };
		failed = rig.faulty.failed[SPOKEI_FAULTS_MEMORY] > before;
		assert_true(error == SPOKE_OK || error == SPOKE_ENOMEM);
		clusterrig_pass(10 * MS);
		assert_int_equal(rig.ended, rig.call_count);
	}
	assert_true(rig.ended > 1);
}
