/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a call that its caller does not wait for any more, as the provider learns it. */
#include "tests/cluster/clusterrig.h"
#include "tests/support/test.h"

#define rig clusterrig

FIXTURE(clusterrig_set_up, clusterrig_tear_down);

static unsigned told;

static void note_abandoned(struct spoke_request *request, void *arg)
{
	(void)arg;
	assert_true(spoke_request_abandoned(request));
	told++;
}

static unsigned runs_of_held(void)
{
	return rig.providers[0].held_count + rig.providers[1].held_count;
}

/* Makes a call whose request is held by its provider. */
static struct rig_call *hold(const char *query, const struct spoke_method_options *with)
{
	struct rig_call *call;

	told = 0;
	for (unsigned i = 0; i < rig.provider_count; i++)
		rig.providers[i].manner = RIG_SILENT;
	clusterrig_consume(query, NULL);
	clusterrig_pass(10 * MS);
	call = clusterrig_call(clusterrig_method("echo", with));
	clusterrig_pass(10 * MS);
	for (unsigned i = 0; i < rig.provider_count; i++)
		if (rig.providers[i].held_count > 0)
			spoke_request_on_abandoned(rig.providers[i].held[0], note_abandoned, NULL);
	return call;
}

TEST(cancelled_call_abandons_its_request)
{
	struct rig_call *call;

	clusterrig_provide(1);
	call = hold("", NULL);
	assert_false(spoke_request_abandoned(rig.providers[0].held[0]));
	assert_true(spoke_call_cancel(rig.consumer, call->name));
	clusterrig_pass(10 * MS);
	assert_int_equal(call->error, SPOKE_ECANCELED);
	assert_int_equal(told, 1);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_REPLIES_LATE), 0);
}

TEST(call_that_times_out_abandons_its_request)
{
	clusterrig_provide(1);
	clusterrig_end(hold("timeout=100ms", NULL));
	clusterrig_pass(10 * MS);
	assert_int_equal(told, 1);
}

TEST(attempt_that_is_given_up_abandons_its_request)
{
	const struct spoke_method_options idempotent = { .idempotent = true };
	struct rig_call *call;

	clusterrig_provide(2);
	call = hold("timeout=1s", &idempotent);
	clusterrig_pass(600 * MS);
	assert_int_equal(call->ends, 0);
	assert_int_equal(told, 1);
	assert_int_equal(runs_of_held(), 2);
}

TEST(answer_elsewhere_abandons_the_slower_request)
{
	const struct spoke_method_options hedged = { .idempotent = true,
						     .hedge_after_ns = 50 * MS };
	struct rig_call *call;

	clusterrig_provide(2);
	call = hold("timeout=10s", &hedged);
	for (unsigned i = 0; i < 2; i++)
		rig.providers[i].manner = RIG_ECHO;
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	clusterrig_pass(10 * MS);
	assert_int_equal(told, 1);
}

/* Each provider runs a request of such a call. */
TEST(forking_call_abandons_no_request_when_it_is_answered)
{
	const struct spoke_method_options forked = { .policy = &spoke_policy_forking };
	struct rig_call *call;

	clusterrig_provide(2);
	call = hold("forks=2&timeout=10s", &forked);
	assert_int_equal(runs_of_held(), 2);
	spoke_reply(rig.providers[0].held[0], (struct spoke_value){ NULL, 0 });
	rig.providers[0].held_count = 0;
	clusterrig_end(call);
	clusterrig_pass(10 * MS);
	assert_int_equal(told, 0);
	assert_false(spoke_request_abandoned(rig.providers[1].held[0]));
}

TEST(request_is_abandoned_once_though_its_connection_closes_later)
{
	struct rig_call *call;

	clusterrig_provide(1);
	call = hold("", NULL);
	assert_true(spoke_call_cancel(rig.consumer, call->name));
	clusterrig_pass(10 * MS);
	clusterrig_free_consumer();
	clusterrig_pass(100 * MS);
	assert_int_equal(told, 1);
	assert_int_equal(spoke_stat_get(rig.providers[0].engine, SPOKE_STAT_REQUESTS_ABANDONED), 1);
}
