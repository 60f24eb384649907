/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and ends of consumers, providers and engines, the same on every network and wire. */
#include "tests/cluster/stage.h"
#include "tests/support/test.h"

#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

RUNNER(stage_run);

/* A peer that ends its direction may still read. Only a reply that it rejects shows that it is
 * gone. */
TEST(handler_is_notified_of_detected_end_of_caller)
{
	struct stage *stage = stage_begin(state);
	struct spoke_method *later = stage_method(stage, "later");

	for (unsigned i = 0; i < 4; i++)
		(void)stage_call(stage, later, stage_text(stage, "x"));
	stage_until_held(stage, 4);
	assert_false(spoke_request_abandoned(stage->held[0]));
	stage_free_consumer(stage);
	stage_end_all(stage);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(stage->calls[i].result.error, SPOKE_ECLOSED);
	for (unsigned i = 0; i < 3 && stage->abandoned == 0; i++) {
		stage_pass(stage, 5 * MS);
		stage_answer(stage, 0);
	}
	stage_pass(stage, 5 * MS);
	assert_true(stage->abandoned > 0);
	assert_true(spoke_request_abandoned(stage->held[0]));
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_REQUESTS_ABANDONED), stage->abandoned);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CLOSED), 1);
}

TEST(held_request_keeps_its_contents)
{
	struct stage *stage = stage_begin(state);
	struct spoke_method *later = stage_method(stage, "later");
	struct spoke_method *echo = stage_method(stage, "echo");
	struct stage_call *call = stage_call(stage, later, stage_text(stage, "kept"));
	struct spoke_span method;

	stage_until_held(stage, 1);
	for (unsigned i = 0; i < 10; i++)
		(void)stage_end_of(stage, stage_call(stage, echo, stage_bin(stage, 30000)));
	method = spoke_request_method(stage->held[0]);
	assert_int_equal(method.len, 5);
	assert_memory_equal(method.data, "later", 5);
	assert_true(spoke_request_two_way(stage->held[0]));
	stage_answer(stage, 0);
	stage_assert_text(stage_end_of(stage, call), "kept");
}

TEST(a_provider_may_be_freed_before_its_answers)
{
	struct stage *stage = stage_begin(state);
	struct spoke_method *later = stage_method(stage, "later");

	for (unsigned i = 0; i < 3; i++)
		(void)stage_call(stage, later, stage_text(stage, "x"));
	stage_until_held(stage, 3);
	stage_free_provider(stage);
	stage_answer(stage, 1); /* before the handler is notified */
	stage_end_all(stage);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(stage->calls[i].result.error, SPOKE_ELOST);
	stage_answer(stage, 1);
	stage_answer(stage, 0);
}

TEST(a_consumer_may_be_freed_before_its_calls_end)
{
	struct stage *stage = stage_begin(state);
	struct spoke_method *later = stage_method(stage, "later");

	(void)stage_call(stage, later, stage_text(stage, "connecting"));
	(void)stage_call(stage, later, stage_text(stage, "connecting"));
	stage_until_held(stage, 2);
	(void)stage_call(stage, later, stage_text(stage, "written"));
	stage_until_held(stage, 3);
	(void)stage_call(stage, later, stage_text(stage, "fresh"));
	stage_free_consumer(stage);
	assert_int_equal(stage->ended, 0);
	stage_end_all(stage);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(stage->calls[i].result.error, SPOKE_ECLOSED);
		assert_int_equal(stage->calls[i].result.written, i < 3);
	}
}

TEST(calls_that_wait_for_a_connection_end_with_the_consumer)
{
	struct stage *stage = stage_begin(state);

	(void)stage_call(stage, stage_method(stage, "echo"), stage_text(stage, "x"));
	stage_free_consumer(stage);
	assert_int_equal(stage_end_of(stage, &stage->calls[0])->error, SPOKE_ECLOSED);
	assert_false(stage->calls[0].result.written);
}

/* --- in callbacks */

typedef void action(struct stage *stage);

static action *const actions[] = { stage_free_consumer, stage_free_provider, stage_free_client,
				   stage_free_server };

/* Begins the next case on a new stage. The test runs a series of cases. */
static void again_from(void **state, unsigned round)
{
	const struct stage_setting *setting = ((struct stage *)*state)->setting;

	if (round > 0) {
		assert_int_equal(stage_tear_down(state), 0);
		*state = (void *)(uintptr_t)setting;
		assert_int_equal(stage_set_up(state), 0);
	}
}

static struct stage *begin_by_turns(void **state)
{
	struct stage *stage = stage_bare(state);

	stage->by_turns = true;
	stage->answer_abandoned = true;
	stage_provide(stage, NULL);
	stage_consume(stage, NULL);
	return stage;
}

static action *chosen;

static void act(struct stage_call *call)
{
	chosen(call->stage);
}

static void act_once(struct stage *stage)
{
	stage->in_abandoned = NULL;
	chosen(stage);
}

TEST(everything_may_be_freed_as_a_call_ends_well)
{
	for (unsigned i = 0; i < LENGTH(actions); i++) {
		struct stage *stage;

		(void)stage_bare(state);
		again_from(state, i);
		stage = begin_by_turns(state);
		chosen = actions[i];
		stage->calls[1].then = act;
		(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
		(void)stage_call(stage, stage_method(stage, "echo"), stage_no_args());
		(void)stage_call(stage, stage_method(stage, "echo"), stage_no_args());
		stage_end_all(stage);
	}
}

TEST(everything_may_be_freed_as_a_call_times_out)
{
	static const struct spoke_call_options soon = { .timeout_ns = 10 * MS };

	for (unsigned i = 0; i < LENGTH(actions); i++) {
		struct stage *stage;

		(void)stage_bare(state);
		again_from(state, i);
		stage = begin_by_turns(state);
		chosen = actions[i];
		stage->calls[0].then = act;
		(void)stage_call_with(stage, stage_method(stage, "later"), stage_no_args(), &soon);
		(void)stage_call_with(stage, stage_method(stage, "later"), stage_no_args(), &soon);
		stage_end_all(stage);
	}
}

TEST(everything_may_be_freed_as_a_call_is_cancelled)
{
	for (unsigned i = 0; i < LENGTH(actions); i++) {
		struct stage *stage;

		(void)stage_bare(state);
		again_from(state, i);
		stage = begin_by_turns(state);
		chosen = actions[i];
		stage->calls[0].then = act;
		(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
		(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
		stage_until_held(stage, 2);
		assert_true(spoke_call_cancel(stage->consumer, stage->calls[0].name));
		assert_true(spoke_call_cancel(stage->consumer, stage->calls[1].name));
		stage_end_all(stage);
	}
}

TEST(everything_may_be_freed_as_calls_are_lost)
{
	for (unsigned i = 0; i < LENGTH(actions); i++) {
		struct stage *stage;

		(void)stage_bare(state);
		again_from(state, i);
		stage = begin_by_turns(state);
		chosen = actions[i];
		stage->calls[0].then = act;
		(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
		(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
		stage_until_held(stage, 2);
		stage_free_provider(stage);
		stage_end_all(stage);
	}
}

TEST(everything_may_be_freed_as_a_one_way_call_is_written)
{
	static const struct spoke_call_options one_way = { .one_way = true };

	for (unsigned i = 0; i < LENGTH(actions); i++) {
		struct stage *stage;

		(void)stage_bare(state);
		again_from(state, i);
		stage = begin_by_turns(state);
		chosen = actions[i];
		stage->calls[1].then = act;
		(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
		(void)stage_call_with(stage, stage_method(stage, "echo"), stage_no_args(),
				      &one_way);
		(void)stage_call_with(stage, stage_method(stage, "echo"), stage_no_args(),
				      &one_way);
		stage_end_all(stage);
	}
}

TEST(everything_may_be_freed_in_a_handler)
{
	for (unsigned i = 0; i < 2 * LENGTH(actions); i++) {
		struct stage *stage;

		(void)stage_bare(state);
		again_from(state, i);
		stage = begin_by_turns(state);
		chosen = actions[i / 2];
		stage->in_handler = act_once;
		(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
		(void)stage_call(stage, stage_method(stage, "act"),
				 stage_text(stage, i % 2 ? "later" : "now"));
		(void)stage_call(stage, stage_method(stage, "echo"), stage_no_args());
		stage_end_all(stage);
	}
}

TEST(everything_may_be_freed_as_a_request_is_abandoned)
{
	for (unsigned i = 0; i < LENGTH(actions); i++) {
		struct stage *stage;

		(void)stage_bare(state);
		again_from(state, i);
		stage = begin_by_turns(state);
		chosen = actions[i];
		stage->in_abandoned = act_once;
		(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
		(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
		stage_until_held(stage, 2);
		stage_free_provider(stage);
		stage_until(stage, &stage->abandoned, 2);
		stage_end_all(stage);
	}
}

/* --- several addresses */

TEST(a_consumer_calls_its_endpoints_in_turn)
{
	struct stage *stage = stage_bare(state);
	static char urls[STAGE_PLACES][256];
	const char *more[] = { urls[1], urls[2] };
	struct spoke_consumer_options options = {
		.url = urls[0],
		.balancer = &spoke_balancer_round_robin,
		.more_urls = more,
		.more_count = LENGTH(more),
	};
	struct spoke_method *echo;

	stage_provide(stage, NULL);
	assert_int_equal(stage_listen(stage), 1);
	assert_int_equal(stage_listen(stage), 2);
	for (unsigned i = 0; i < 3; i++)
		stage_url(stage, i, "", urls[i], sizeof(urls[i]));
	stage_consume(stage, &options);
	echo = stage_method(stage, "echo");
	for (unsigned i = 0; i < 3; i++)
		(void)stage_call(stage, echo, stage_no_args());
	stage_until_ready(stage, 3);
	stage_end_all(stage);
	stage_pass(stage, 5 * MS); /* the last connection may still be in the backlog */
	assert_int_equal(spoke_provider_connections(stage->provider), 3);
	for (unsigned i = 0; i < 9; i++)
		(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
	stage_until_held(stage, 9);
	while (stage->held_count > 0)
		stage_answer(stage, 0);
	stage_end_all(stage);
	for (unsigned i = 0; i < stage->call_count; i++)
		assert_int_equal(stage->calls[i].result.error, SPOKE_OK);
}

TEST(a_provider_serves_at_all_its_places)
{
	struct stage *stage = stage_bare(state);

	stage_provide(stage, NULL);
	assert_int_equal(stage_listen(stage), 1);
	assert_int_equal(stage_listen(stage), 2);
	for (unsigned i = 0; i < 3; i++) {
		struct spoke_consumer_options options = { 0 };
		char url[256];

		stage_url(stage, i, "", url, sizeof(url));
		options.url = url;
		stage_consume(stage, &options);
		stage_assert_text(stage_end_of(stage, stage_call(stage, stage_method(stage, "echo"),
								 stage_text(stage, "x"))),
				  "x");
		stage_free_consumer(stage);
		stage_pass(stage, MS);
	}
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_ACCEPTED), 3);
}

/* --- drain */

TEST(draining_provider_answers_begun_requests)
{
	struct stage *stage = stage_begin(state);
	struct spoke_method *later = stage_method(stage, "later");
	struct stage_call *first = stage_call(stage, later, stage_text(stage, "begun"));
	struct stage_call *second;

	stage_until_held(stage, 1);
	assert_int_equal(spoke_engine_drain(stage->server_engine, 10 * SECOND), 0);
	stage->provider = NULL; /* the engine frees it */
	stage_pass(stage, 5 * MS);
	if (stage->setting->dubbo) { /* the consumer gets the drain notice */
		while (spoke_consumer_ready(stage->consumer) > 0)
			stage_pass(stage, MS);
		assert_int_equal(stage_try(stage, later, stage_text(stage, "x"), NULL),
				 SPOKE_EUNAVAILABLE);
	} else {
		second = stage_call(stage, later, stage_text(stage, "crossed"));
		assert_int_equal(stage_end_of(stage, second)->error, SPOKE_EREMOTE);
	}
	assert_int_equal(first->ends, 0);
	stage_answer(stage, 0);
	stage_assert_text(stage_end_of(stage, first), "begun");
	stage_pass(stage, 20 * MS);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CLOSED), 1);
	assert_int_equal(spoke_provider_new(stage->server_engine, NULL, &stage->provider),
			 SPOKE_ECLOSED);
	stage->provider = NULL;
}

TEST(a_drain_ends_when_its_time_is_over)
{
	struct stage *stage = stage_begin(state);
	struct stage_call *call = stage_call(stage, stage_method(stage, "later"),
					     stage_text(stage, "x"));

	stage_until_held(stage, 1);
	assert_int_equal(spoke_engine_drain(stage->server_engine, 20 * MS), 0);
	stage->provider = NULL;
	assert_int_equal(stage_end_of(stage, call)->error, SPOKE_ELOST);
	assert_int_equal(stage->abandoned, 1);
}

TEST(a_consumer_that_drains_waits_for_its_answers)
{
	struct stage *stage = stage_begin(state);
	struct spoke_method *later = stage_method(stage, "later");
	struct stage_call *call = stage_call(stage, later, stage_text(stage, "x"));

	stage_until_held(stage, 1);
	assert_int_equal(spoke_engine_drain(stage->client_engine, 10 * SECOND), 0);
	stage_pass(stage, 5 * MS);
	assert_int_equal(stage_try(stage, later, stage_no_args(), NULL), SPOKE_ECLOSED);
	stage->consumer = NULL;
	stage_answer(stage, 0);
	stage_assert_text(stage_end_of(stage, call), "x");
	stage_pass(stage, 20 * MS);
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_CLOSED), 1);
}

TEST(a_call_made_while_connecting_survives_a_drain)
{
	struct stage *stage = stage_begin(state);
	struct stage_call *call = stage_call(stage, stage_method(stage, "echo"),
					     stage_text(stage, "x"));

	assert_int_equal(spoke_engine_drain(stage->client_engine, 10 * SECOND), 0);
	stage->consumer = NULL;
	stage_assert_text(stage_end_of(stage, call), "x");
}
