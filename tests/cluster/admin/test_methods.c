/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of methods: what is counted, on both sides, and how many sets there are. */
#include "core/engine/figures.h"
#include "tests/cluster/admin/promread.h"
#include "tests/cluster/admin/statusrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define rig clusterrig
#define LABELS "{service=\"demo.Echo\",method=\"echo\""
#define SERVED "{service=\"demo.Echo\",method=\"*\""

static void expect(const char *metrics, const char *sample, double value)
{
	double is = promread_value(metrics, sample);

	if (is < value || is > value)
		fail_msg("%s is %f", sample, is);
}

static const struct spokei_figures *figures_at(struct spoke_engine *engine, const char *method)
{
	const struct spokei_figures *figures = NULL;

	while ((figures = spokei_figures_next(engine, figures)) != NULL)
		if (strcmp(figures->method, method) == 0)
			return figures;
	fail_msg("no figures of %s", method);
	return NULL;
}

FIXTURE(statusrig_set_up, statusrig_tear_down);

TEST(calls_and_requests_are_counted_by_method)
{
	struct spoke_method *echo;
	const char *metrics;

	clusterrig_provide(1);
	clusterrig_consume("cluster=failfast", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 5; i++)
		clusterrig_end(clusterrig_call(echo));
	rig.providers[0].manner = RIG_ERROR;
	clusterrig_end(clusterrig_call(echo));
	metrics = statusrig_metrics(rig.engine);
	expect(metrics, "spoke_method_calls_total" LABELS "}", 6);
	expect(metrics, "spoke_method_call_ends_total" LABELS ",result=\"ok\"}", 5);
	expect(metrics, "spoke_method_call_ends_total" LABELS ",result=\"remote\"}", 1);
	expect(metrics, "spoke_method_call_ends_total" LABELS ",result=\"timeout\"}", 0);
	expect(metrics, "spoke_method_calls_in_flight" LABELS "}", 0);
	expect(metrics, "spoke_method_call_duration_seconds_count" LABELS "}", 6);
	metrics = statusrig_metrics(rig.providers[0].engine);
	expect(metrics, "spoke_method_requests_total" SERVED "}", 6);
	expect(metrics, "spoke_method_request_ends_total" SERVED ",result=\"ok\"}", 5);
	expect(metrics, "spoke_method_request_ends_total" SERVED ",result=\"error\"}", 1);
	expect(metrics, "spoke_method_requests_in_flight" SERVED "}", 0);
	assert_null(strstr(metrics, "spoke_method_pool_wait_seconds_count"));
}

TEST(requests_are_in_flight_until_their_caller_has_gone)
{
	struct jsonread status;
	struct spoke_method *echo;

	clusterrig_provide(1);
	clusterrig_consume("cluster=failfast&timeout=1s", NULL);
	echo = clusterrig_method("echo", NULL);
	rig.providers[0].manner = RIG_SILENT;
	(void)clusterrig_call(echo);
	clusterrig_pass(100 * MS);
	status = statusrig_look();
	EXPECT_TEXT(status, "methods[0].side", "calls");
	EXPECT_TEXT(status, "methods[0].service", "demo.Echo");
	EXPECT_TEXT(status, "methods[0].method", "echo");
	EXPECT(status, "methods[0].begun", 1);
	EXPECT(status, "methods[0].in_flight", 1);
	assert_int_equal(spokei_figures_in_flight(figures_at(rig.providers[0].engine, "*")), 1);
	clusterrig_pass(2 * SECOND);
	status = statusrig_look();
	EXPECT(status, "methods[0].in_flight", 0);
	EXPECT(status, "methods[0].failed", 1);
	EXPECT(status, "methods[0].ends.timeout", 1);
	clusterrig_free_consumer();
	clusterrig_pass(SECOND);
	assert_int_equal(spokei_figures_in_flight(figures_at(rig.providers[0].engine, "*")), 0);
	assert_int_equal(spokei_figures_get(figures_at(rig.providers[0].engine, "*"),
					    SPOKE_STAT_REQUESTS_ABANDONED),
			 1);
}

/* Each answer takes 2 ms to 20 ms after its request was read. */
TEST(time_in_the_handler_lasts_until_the_answer)
{
	const struct spokei_figures *figures;
	struct spoke_method *echo;

	clusterrig_provide(1);
	clusterrig_consume("cluster=failfast", NULL);
	echo = clusterrig_method("echo", NULL);
	rig.providers[0].manner = RIG_SLOW;
	rig.providers[0].least_ns = 2 * MS;
	for (unsigned i = 0; i < 40; i++)
		clusterrig_end(clusterrig_call(echo));
	figures = figures_at(rig.providers[0].engine, "*");
	assert_int_equal(figures->took.count, 40);
	assert_true(spoke_histogram_percentile(&figures->took, 1000) >= 2 * MS);
	assert_true(figures->took.max <= 20 * MS);
	assert_true(figures_at(rig.engine, "echo")->took.sum >= figures->took.sum);
}

TEST(time_until_answer_outside_of_turn_is_counted)
{
	static const unsigned char nil = 0xc0;
	struct rig_provider *provider = &rig.providers[0];

	clusterrig_provide(1);
	clusterrig_consume("cluster=failfast&timeout=10s", NULL);
	provider->manner = RIG_SILENT;
	(void)clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_pass(10 * MS);
	assert_int_equal(provider->held_count, 1);
	spokei_world_stall(&rig.world, 3 * SECOND);
	spoke_reply(provider->held[--provider->held_count], (struct spoke_value){ &nil, 1 });
	assert_true(figures_at(provider->engine, "*")->took.max >= 3 * SECOND);
}

/* The first ones are all timed; later one stands for the others. */
TEST(requests_that_are_not_timed_are_counted_with_one_that_is)
{
	const struct spokei_figures *figures;
	struct spoke_method *echo;

	clusterrig_provide(1);
	clusterrig_consume("cluster=failfast", NULL);
	echo = clusterrig_method("echo", NULL);
	clusterrig_end(clusterrig_call(echo));
	figures = figures_at(rig.providers[0].engine, "*");
	assert_int_equal(figures->took.count, 1);
	for (unsigned i = 1; i < 1000; i++)
		clusterrig_end(clusterrig_call(echo));
	assert_true(figures->took.count > 1000 - SPOKEI_FIGURES_TIMED);
	assert_true(figures->took.count <= 1000);
	assert_int_equal(figures->took.count + figures->timed_for - 1 - figures->until_timed, 1000);
}

TEST(tickets_are_not_in_flight)
{
	struct spoke_method *echo;

	clusterrig_provide(1);
	echo = clusterrig_failback("retry.period=5s");
	clusterrig_kill(0);
	(void)clusterrig_deferred(echo);
	assert_int_equal(spokei_figures_in_flight(figures_at(rig.engine, "echo")), 0);
	assert_int_equal(spokei_figures_get(figures_at(rig.engine, "echo"),
					    SPOKE_STAT_CALLS_DEFERRED),
			 1);
}

TEST(refused_calls_were_not_begun)
{
	struct spoke_method *echo;

	clusterrig_provide(1);
	clusterrig_consume("cluster=failfast", NULL);
	echo = clusterrig_method("echo", NULL);
	clusterrig_kill(0);
	clusterrig_pass(100 * MS);
	assert_int_not_equal(clusterrig_try(echo, NULL), 0);
	assert_int_equal(spokei_figures_get(figures_at(rig.engine, "echo"), SPOKE_STAT_CALLS), 0);
	assert_int_equal(spokei_figures_get(figures_at(rig.engine, "echo"),
					    SPOKE_STAT_CALLS_REFUSED),
			 1);
}

TEST(figures_outlive_their_consumer)
{
	const struct spokei_figures *figures;

	clusterrig_provide(1);
	for (unsigned i = 1; i <= 3; i++) {
		clusterrig_consume("cluster=failfast", NULL);
		clusterrig_end(clusterrig_call(clusterrig_method("echo", NULL)));
		clusterrig_end(clusterrig_call(clusterrig_method("echo", NULL)));
		clusterrig_free_consumer();
		clusterrig_pass(SECOND);
		figures = figures_at(rig.engine, "echo");
		assert_int_equal(spokei_figures_get(figures, SPOKE_STAT_CALLS_OK), 2 * i);
		assert_null(spokei_figures_next(rig.engine, figures));
	}
}

TEST(methods_beyond_the_limit_share_one_set)
{
	const char *metrics;
	unsigned sets = 0;

	clusterrig_provide(1);
	clusterrig_consume("cluster=failfast", NULL);
	for (unsigned i = 0; i < 2 * SPOKEI_FIGURES_MAX; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "echo%u", i);
		clusterrig_end(clusterrig_call(clusterrig_method(name, NULL)));
	}
	for (const struct spokei_figures *at = NULL;
	     (at = spokei_figures_next(rig.engine, at)) != NULL;)
		sets++;
	assert_true(sets < SPOKEI_FIGURES_MAX);
	metrics = statusrig_metrics(rig.engine);
	expect(metrics, "spoke_method_calls_total{service=\"other\",method=\"other\"}",
	       2 * SPOKEI_FIGURES_MAX - sets + 1);
	EXPECT(statusrig_look(), "methods_more", sets - SPOKEI_STATUS_ROWS);
}

/* A name may contain any byte. */
TEST(names_are_escaped)
{
	clusterrig_provide(1);
	clusterrig_consume("cluster=failfast", NULL);
	(void)clusterrig_method("a\"b\nc\\", NULL);
	expect(statusrig_metrics(rig.engine),
	       "spoke_method_calls_total{service=\"demo.Echo\",method=\"a\\\"b\\nc\\\\\"}", 0);
	EXPECT_TEXT(statusrig_look(), "methods[0].method", "a\"b\nc\\");
}
