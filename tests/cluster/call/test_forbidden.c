/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that a provider refuses because it does not let the caller in. */
#include "tests/cluster/clusterrig.h"
#include "tests/support/test.h"

#define rig clusterrig

FIXTURE(clusterrig_set_up, clusterrig_tear_down);

TEST(forbidden_call_is_not_retried_and_ejects_none)
{
	struct spoke_endpoint_info infos[2];
	struct spoke_method *echo;
	struct rig_call *call;

	clusterrig_provide(2);
	rig.providers[0].manner = RIG_FORBID;
	rig.providers[1].manner = RIG_FORBID;
	clusterrig_consume("eject.failures=2", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 8; i++) {
		call = clusterrig_call(echo);
		clusterrig_end(call);
		assert_int_equal(call->error, SPOKE_EFORBIDDEN);
		assert_int_equal(call->attempts, 1);
	}
	assert_int_equal(clusterrig_stat(SPOKE_STAT_RETRIES), 0);
	assert_int_equal(spoke_consumer_endpoints(rig.consumer, infos, 2), 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_false(infos[i].ejected);
		assert_int_equal(infos[i].failures, 0);
	}
	assert_int_equal(rig.runs, 0);
}
