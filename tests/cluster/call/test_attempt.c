/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts that coincide with a wait, the end of a consumer, or a failed allocation. */
#include "tests/cluster/clusterrig.h"

#define rig clusterrig

/* --- cancelled */

static void cancelled_call_gets_no_ticket(void **state)
{
	struct rig_call *call;

	(void)state;
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

static void cancelled_call_ends_with_ecanceled_in_a_drain(void **state)
{
	struct spoke_method *echo;

	(void)state;
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

static void call_waits_for_lazy_endpoints(void **state)
{
	struct spoke_method *echo;

	(void)state;
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

static void lost_attempt_fails_broadcast(void **state)
{
	struct rig_call *call;

	(void)state;
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

static void failsafe_excuses_immediate_failure(void **state)
{
	struct spokei_faults_rule *rule = &rig.faulty.rules[SPOKEI_FAULTS_MEMORY];
	struct spoke_method *echo;
	bool failed = true;

	(void)state;
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, clusterrig_set_up, clusterrig_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(cancelled_call_gets_no_ticket),
		TEST(cancelled_call_ends_with_ecanceled_in_a_drain),
		TEST(call_waits_for_lazy_endpoints),
		TEST(lost_attempt_fails_broadcast),
		TEST(failsafe_excuses_immediate_failure),
	};

	return cmocka_run_group_tests_name("attempts", tests, NULL, NULL);
}
