/* SPDX-License-Identifier: Apache-2.0 */
/* Methods in the status whose policy or balancer is not that of their consumer. */
#include "tests/cluster/admin/statusrig.h"
#include "tests/support/test.h"

#define rig clusterrig

FIXTURE(statusrig_set_up, statusrig_tear_down);

TEST(methods_with_another_policy_or_balancer_are_shown)
{
	static const struct spoke_method_options own = { .balancer = &spoke_balancer_two_choices };
	static const struct spoke_method_options in_order = { .policy = &spoke_policy_available };
	struct jsonread status;

	clusterrig_provide(1);
	clusterrig_consume("cluster=failover&loadbalance=roundrobin", NULL);
	(void)clusterrig_method("echo", NULL);
	(void)clusterrig_method("spread", &own);
	(void)clusterrig_method("first", &in_order);
	status = statusrig_look();
	EXPECT_TEXT(status, "consumers[0].loadbalance", "roundrobin");
	assert_int_equal(jsonread_count(jsonread_get(status, "consumers[0].apart")), 2);
	EXPECT_TEXT(status, "consumers[0].apart[0].method", "spread");
	EXPECT_TEXT(status, "consumers[0].apart[0].cluster", "failover");
	EXPECT_TEXT(status, "consumers[0].apart[0].loadbalance", "twochoices");
	EXPECT_TEXT(status, "consumers[0].apart[1].method", "first");
	EXPECT_TEXT(status, "consumers[0].apart[1].cluster", "available");
	EXPECT_TEXT(status, "consumers[0].apart[1].loadbalance", "");
	EXPECT(status, "consumers[0].apart_more", 0);
}
