/* SPDX-License-Identifier: Apache-2.0 */
/* The end of tickets with their consumers, and calls rejected before they become tickets. */
#include "tests/cluster/clusterrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define rig clusterrig

FIXTURE(clusterrig_set_up, clusterrig_tear_down);

TEST(closing_settles_all_tickets)
{
	struct spoke_method *echo;

	clusterrig_provide(2);
	rig.providers[0].manner = RIG_SILENT;
	rig.providers[1].manner = RIG_REFUSE;
	echo = clusterrig_failback("retry.period=100ms&timeout=1s");
	for (unsigned i = 0; i < 30; i++)
		(void)clusterrig_call(echo);
	clusterrig_pass(150 * MS);
	clusterrig_free_consumer();
	clusterrig_pass(MS);
	assert_int_equal(rig.ended, 30);
	assert_true(rig.settled > 0);
	assert_int_equal(rig.settled_by[SPOKE_TICKET_CLOSING], rig.settled);
}

TEST(draining_settles_waiting_tickets)
{
	struct spoke_method *echo;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_REFUSE;
	echo = clusterrig_failback("retry.period=1s");
	for (unsigned i = 0; i < 5; i++)
		(void)clusterrig_deferred(echo);
	assert_int_equal(spoke_engine_drain(rig.engine, 10 * SECOND), 0);
	clusterrig_pass(100 * MS);
	assert_int_equal(rig.settled_by[SPOKE_TICKET_CLOSING], 5);
}

static void free_it(struct rig_call *call)
{
	(void)call;
	if (rig.consumer)
		clusterrig_free_consumer();
}

TEST(consumer_may_be_freed_in_deferred_callback)
{
	struct spoke_method *echo;

	rig.provider_count = 1;
	echo = clusterrig_failback("retry.period=1s");
	clusterrig_pass(300 * MS);
	for (unsigned i = 0; i < 5; i++)
		(void)clusterrig_call(echo);
	rig.in_done = free_it;
	clusterrig_pass(100 * MS);
	assert_int_equal(rig.ended, 5);
}

TEST(consumer_may_be_freed_in_settled_callback)
{
	struct spoke_method *echo;

	rig.provider_count = 1;
	echo = clusterrig_failback("retry.period=1s&retries=1");
	clusterrig_pass(300 * MS);
	for (unsigned i = 0; i < 5; i++)
		(void)clusterrig_deferred(echo);
	rig.in_settled = free_it;
	clusterrig_pass(5 * SECOND);
	assert_int_equal(rig.settled, 5);
	assert_int_equal(rig.settled_by[SPOKE_TICKET_EXHAUSTED], 1);
	assert_int_equal(rig.settled_by[SPOKE_TICKET_CLOSING], 4);
}

/* Row 61 of the table of faults. */
TEST(tickets_survive_ten_minutes_without_provider)
{
	struct spoke_method *echo;
	size_t blocks = 0;

	rig.provider_count = 1;
	echo = clusterrig_failback("retry.period=5s");
	clusterrig_pass(300 * MS);
	for (unsigned second = 0; second < 600; second++) {
		for (unsigned i = 0; i < 10; i++) {
			int error = clusterrig_try(echo, NULL);

			assert_true(error == 0 || error == SPOKE_ELIMIT);
			clusterrig_pass(100 * MS);
		}
		if (second == 60)
			blocks = (size_t)rig.process.blocks;
		if (second > 60)
			assert_true(rig.process.blocks < blocks + 100);
		assert_true(spoke_consumer_tickets(rig.consumer, NULL) <= 100);
	}
	clusterrig_pass(60 * SECOND);
	assert_int_equal(rig.settled, rig.ended);
	assert_int_equal(rig.settled, clusterrig_stat(SPOKE_STAT_CALLS_DEFERRED));
}

TEST(wrong_settings_are_named_in_event)
{
	static const struct {
		const char *query;
		int error;
		const char *says[2];
	} rows[] = {
		{ "cluster=failbak", SPOKE_EINVAL, { "cluster=failbak", "failback" } },
		{ "loadbalance=best", SPOKE_EINVAL, { "loadbalance=best", "random" } },
		{ "retry.period=-5s", SPOKE_ESYNTAX, { "retry.period=-5s", "duration" } },
		{ "retry.period=9ms", SPOKE_ERANGE, { "retry.period=9ms", "10ms" } },
		{ "retries=101", SPOKE_ERANGE, { "retries=101", "100" } },
		{ "echo.retries=101", SPOKE_ERANGE, { "retries=101", "100" } },
		{ "echo.cluster=x", SPOKE_EINVAL, { "cluster=x", "failover" } },
		{ "failback.tasks=0", SPOKE_ERANGE, { "failback.tasks=0", "1" } },
		{ "failback.overflow=drop", SPOKE_EINVAL, { "failback.overflow=drop", "reject" } },
		{ "retry.perod=5s", SPOKE_EINVAL, { "retry.perod", "retry.period" } },
		{ "echo.heartbeat=5s", SPOKE_EINVAL, { "echo.heartbeat", "no such option" } },
	};
	char url[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spoke_consumer_options options = { .url = url };
		struct spoke_consumer *consumer;
		const char *why;

		(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:20880/demo.Echo?%s",
			       rows[i].query);
		assert_int_equal(spoke_consumer_new(rig.engine, &options, &consumer),
				 rows[i].error);
		why = spoke_engine_why(rig.engine);
		assert_non_null(strstr(why, rows[i].says[0]));
		assert_non_null(strstr(why, rows[i].says[1]));
	}
}
