/* SPDX-License-Identifier: Apache-2.0 */
/* The sentence about a call that a limit of this side refuses: the key, its value, what to do. And
 * the time by which a limit fills again. */
#include "tests/cluster/clusterrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define rig clusterrig

/* Calls until the method refuses; returns the sentence about it. */
static const char *refusal(struct spoke_method *method)
{
	int error = 0;

	for (unsigned i = 0; i < 100 && error == 0; i++)
		error = clusterrig_try(method, NULL);
	assert_int_equal(error, SPOKE_ELIMIT);
	return spoke_engine_why(rig.engine);
}

FIXTURE(clusterrig_set_up, clusterrig_tear_down);

TEST(refusal_names_the_limit_its_value_and_its_key)
{
	static const struct {
		const char *query;
		const char *text;
	} cases[] = {
		{ "echo.actives=3", "call of echo refused: actives = 3 is reached (calls of the "
				    "method in flight); raise it or call later" },
		{ "echo.tps=4", "call of echo refused: tps = 4 is reached (calls of the method in "
				"a second); raise it or call later" },
		{ "pending.max=5", "call of echo refused: pending.max = 5 is reached (calls in "
				   "flight); raise it or call later" },
		{ "endpoint.actives=2", "call of echo refused: endpoint.actives = 2 is reached "
					"(calls in flight to each provider); raise it or call "
					"later" },
	};

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_SILENT;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		clusterrig_consume(cases[i].query, NULL);
		assert_string_equal(refusal(clusterrig_method("echo", NULL)), cases[i].text);
		clusterrig_free_consumer();
	}
}

/* No provider can be reached, so a call becomes a ticket inside spoke_call(), or is refused. */
TEST(refused_ticket_names_the_limit_of_tickets)
{
	static const struct {
		const char *query;
		const char *text;
	} cases[] = {
		{ "cluster=failback&failback.tasks=2",
		  "call of echo refused: failback.tasks = 2 is reached (tickets); raise it or call "
		  "later" },
		{ "cluster=failback&failback.bytes=1KiB",
		  "call of echo refused: failback.bytes = 1024 is reached (bytes of tickets); "
		  "raise "
		  "it or call later" },
	};

	clusterrig_provide(1);
	clusterrig_kill(0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		clusterrig_consume(cases[i].query, NULL);
		clusterrig_pass(SECOND);
		assert_string_equal(refusal(clusterrig_method("echo", NULL)), cases[i].text);
		clusterrig_free_consumer();
	}
}

TEST(repeated_refusal_is_one_event)
{
	struct spoke_method *echo;
	struct spoke_event event;
	uint64_t number;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_SILENT;
	clusterrig_consume("pending.max=1", NULL);
	echo = clusterrig_method("echo", NULL);
	(void)refusal(echo);
	for (number = 0; spoke_event_get(rig.engine, number + 1, &event) == 0;)
		number = event.number;
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(clusterrig_try(echo, NULL), SPOKE_ELIMIT);
	assert_int_equal(spoke_event_get(rig.engine, number + 1, &event), SPOKE_ENOENT);
}

static char full[128]; /* the text of the result with ELIMIT */

static void note(void *arg, const struct spoke_result *result)
{
	(void)arg;
	if (result->error == SPOKE_ELIMIT)
		(void)snprintf(full, sizeof(full), "%.*s", (int)result->error_text.len,
			       (const char *)result->error_text.data);
}

TEST(result_names_the_limit_of_tickets)
{
	struct spoke_consumer_options options = { 0 };
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	char url[192];

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_SILENT;
	(void)snprintf(
		url, sizeof(url),
		"%s/demo.Echo?cluster=failback&retry.period=2s&failback.tasks=2&timeout=100ms",
		rig.providers[0].url);
	options.url = url;
	assert_int_equal(spoke_consumer_new(rig.engine, &options, &consumer), SPOKE_OK);
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &echo), SPOKE_OK);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(spoke_call(echo, (struct spoke_span){ "\x01", 1 }, NULL, note,
					    NULL, NULL),
				 SPOKE_OK);
	clusterrig_pass(200 * MS);
	assert_string_equal(full, "failback.tasks = 2 is reached (tickets)");
	spoke_consumer_free(consumer);
}

/* Between turns the limit fills again, although nothing wakes the engine. */
TEST(per_second_limit_counts_time_outside_of_turns)
{
	struct spoke_method *echo;
	unsigned taken;

	clusterrig_provide(1);
	clusterrig_consume("", NULL);
	echo = clusterrig_method("echo", &(struct spoke_method_options){ .per_second = 100 });
	while (clusterrig_try(echo, NULL) == 0)
		;
	clusterrig_pass(MS);
	spokei_world_stall(&rig.world, 500 * MS);
	for (taken = 0; clusterrig_try(echo, NULL) == 0; taken++)
		;
	assert_in_range(taken, 50, 51);
}
