/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes that fail, and callbacks that free everything meanwhile. */
#include "tests/cluster/provider/pushrig.h"
#include "tests/support/test.h"

#include "core/engine/engine.h"

#include <string.h>

static const struct spoke_call_options soon = { .timeout_ns = 10 * MS };
static const struct spoke_call_options one_way = { .one_way = true };

static struct stage_call *push_later(struct pushrig *rig, const char *text)
{
	return stage_push(rig->stage, rig->later, rig->peer, stage_text(rig->stage, text), NULL);
}

RUNNER(stage_run);

TEST(push_without_answer_times_out)
{
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	struct stage_call *push = stage_push(stage, rig.later, rig.peer, stage_no_args(), &soon);

	stage_until_held(stage, 1);
	assert_int_equal(stage_end_of(stage, push)->error, SPOKE_ETIMEOUT);
	assert_true(push->result.written);
	stage_answer(stage, 0);
	while (stage_server_stat(stage, SPOKE_STAT_REPLIES_LATE) == 0)
		stage_pass(stage, MS);
	pushrig_speak(stage);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CALLS_TIMEOUT), 1);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CLOSED), 0);
}

TEST(push_timeout_defaults_to_one_second)
{
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	struct stage_call *push;

	if (!stage->setting->in_memory)
		skip();
	push = push_later(&rig, "x");
	stage_pass(stage, 990 * MS);
	assert_int_equal(push->ends, 0);
	stage_pass(stage, 20 * MS);
	assert_int_equal(push->result.error, SPOKE_ETIMEOUT);
	stage_answer(stage, 0);
}

TEST(push_can_be_cancelled)
{
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	struct stage_call *push = push_later(&rig, "x");

	stage_until_held(stage, 1);
	assert_true(spoke_push_cancel(stage->provider, push->name));
	assert_int_equal(push->ends, 0);
	assert_int_equal(stage_end_of(stage, push)->error, SPOKE_ECANCELED);
	assert_false(spoke_push_cancel(stage->provider, push->name));
	assert_false(spoke_push_cancel(stage->provider, (struct spoke_call){ 0 }));
	stage_answer(stage, 0);
	pushrig_speak(stage);
}

BARE_STAGE_TEST(pushes_in_flight_are_limited)
{
	static const struct spoke_provider_options few = { .pushes_max = 2 };
	static const struct spoke_provider_options endless = { .pushes_max = UINT32_MAX };
	const struct spoke_consumer_options options = { .handle = stage_handle,
							.handle_arg = stage };
	struct stage_call *push;
	struct pushrig rig;

	assert_int_equal(spoke_provider_new(stage->server_engine, &endless, &stage->provider),
			 SPOKE_ERANGE);
	stage_provide(stage, &few);
	rig = pushrig_on(stage, &options);
	push = push_later(&rig, "1");
	(void)push_later(&rig, "2");
	assert_int_equal(stage_try_push(stage, rig.later, rig.peer, stage_no_args(), NULL),
			 SPOKE_ELIMIT);
	stage_until_held(stage, 2);
	assert_int_equal(stage_try_push(stage, rig.echo, rig.peer, stage_no_args(), &one_way),
			 SPOKE_ELIMIT);
	stage_answer(stage, 0);
	stage_assert_text(stage_end_of(stage, push), "1");
	(void)push_later(&rig, "3");
	stage_until_held(stage, 2);
	stage_answer(stage, 0);
	stage_answer(stage, 0);
	stage_end_all(stage);
}

/* --- one side ends */

/* Makes a stage for each round of a test after the first. */
static void again(void **state, unsigned round)
{
	const struct stage_setting *setting = stage_bare(state)->setting;

	if (round == 0)
		return;
	assert_int_equal(stage_tear_down(state), 0);
	*state = (void *)(uintptr_t)setting;
	assert_int_equal(stage_set_up(state), 0);
}

TEST(pushes_end_when_consumer_ends)
{
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	struct stage_call *push = push_later(&rig, "x");
	int error;

	stage_until_held(stage, 1);
	stage_free_consumer(stage);
	error = stage_end_of(stage, push)->error;
	assert_int_equal(error, SPOKE_ELOST);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CALLS_LOST), 1);
	pushrig_until_peers(stage, 0);
}

TEST(pushes_end_when_provider_ends)
{
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	unsigned first = stage->call_count;

	(void)push_later(&rig, "written");
	stage_until_held(stage, 1);
	(void)push_later(&rig, "fresh");
	stage_free_provider(stage);
	assert_int_equal(stage->ended, first);
	stage_end_all(stage);
	assert_int_equal(stage->calls[first].result.error, SPOKE_ECLOSED);
	assert_true(stage->calls[first].result.written);
	assert_int_equal(stage->calls[first + 1].result.error, SPOKE_ECLOSED);
	assert_false(stage->calls[first + 1].result.written);
}

/* The drain ends long before its timeout. */
static void until_drained(struct stage *stage, const struct spoke_engine *engine)
{
	for (unsigned i = 0; !engine->drained; i++) {
		assert_in_range(i, 0, 1000);
		stage_pass(stage, MS);
	}
}

TEST(provider_drain_waits_for_pushes)
{
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	struct stage_call *push = push_later(&rig, "x");
	size_t count = 7;

	stage_until_held(stage, 1);
	assert_int_equal(spoke_engine_drain(stage->server_engine, 10 * SECOND), 0);
	stage_pass(stage, 5 * MS);
	assert_int_equal(stage_try_push(stage, rig.echo, rig.peer, stage_no_args(), NULL),
			 SPOKE_ECLOSED);
	assert_int_equal(spoke_push_all(rig.echo, stage_no_args(), NULL, &count), SPOKE_ECLOSED);
	assert_int_equal(count, 7);
	assert_int_equal(push->ends, 0);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CLOSED), 0);
	stage->provider = NULL;
	stage_answer(stage, 0);
	stage_assert_text(stage_end_of(stage, push), "x");
	until_drained(stage, stage->server_engine);
}

TEST(end_of_drain_ends_pushes)
{
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	struct stage_call *push = push_later(&rig, "x");

	stage_until_held(stage, 1);
	assert_int_equal(spoke_engine_drain(stage->server_engine, 20 * MS), 0);
	stage->provider = NULL;
	assert_int_equal(stage_end_of(stage, push)->error, SPOKE_ECLOSED);
}

/* With and without a call of its own that ends before. */
TEST(draining_consumer_answers_pushes)
{
	for (unsigned round = 0; round < 2; round++) {
		struct pushrig rig;
		struct stage *stage;
		struct stage_call *push;
		struct stage_call *call = NULL;

		again(state, round);
		rig = pushrig_begin(state);
		stage = rig.stage;
		push = push_later(&rig, "x");
		stage_until_held(stage, 1);
		if (round == 1)
			call = stage_call(stage, stage_method(stage, "later"), stage_no_args());
		stage_until_held(stage, 1 + round);
		assert_int_equal(spoke_engine_drain(stage->client_engine, 10 * SECOND), 0);
		stage->consumer = NULL;
		stage_pass(stage, 5 * MS);
		if (call) {
			stage_answer(stage, 1);
			(void)stage_end_of(stage, call);
			stage_pass(stage, 5 * MS);
		}
		assert_int_equal(stage->abandoned, 0);
		assert_int_equal(stage_client_stat(stage, SPOKE_STAT_CLOSED), 0);
		stage_answer(stage, 0);
		stage_assert_text(stage_end_of(stage, push), "x");
		until_drained(stage, stage->client_engine);
	}
}

/* --- in callbacks */

typedef void action(struct stage *stage);

static action *const actions[] = { stage_free_consumer, stage_free_provider, stage_free_client,
				   stage_free_server };
static action *chosen;

static void act(struct stage_call *call)
{
	chosen(call->stage);
}

static void act_once(struct stage *stage)
{
	stage->in_handler = NULL;
	chosen(stage);
}

static struct pushrig begin_round(void **state, unsigned round)
{
	struct spoke_consumer_options options = { .handle = stage_handle };
	struct stage *stage;

	again(state, round);
	stage = stage_bare(state);
	options.handle_arg = stage;
	stage->by_turns = true;
	stage->answer_abandoned = true;
	stage_provide(stage, NULL);
	chosen = actions[round];
	return pushrig_on(stage, &options);
}

TEST(push_callback_can_free_everything_on_success)
{
	for (unsigned i = 0; i < LENGTH(actions); i++) {
		struct pushrig rig = begin_round(state, i);
		struct stage *stage = rig.stage;

		(void)push_later(&rig, "x");
		stage->calls[stage->call_count].then = act;
		(void)stage_push(stage, rig.echo, rig.peer, stage_no_args(), NULL);
		(void)stage_push(stage, rig.echo, rig.peer, stage_no_args(), NULL);
		stage_end_all(stage);
	}
}

TEST(push_callback_can_free_everything_on_timeout)
{
	for (unsigned i = 0; i < LENGTH(actions); i++) {
		struct pushrig rig = begin_round(state, i);
		struct stage *stage = rig.stage;

		stage->calls[stage->call_count].then = act;
		(void)stage_push(stage, rig.later, rig.peer, stage_no_args(), &soon);
		(void)stage_push(stage, rig.later, rig.peer, stage_no_args(), &soon);
		stage_end_all(stage);
	}
}

TEST(push_callback_can_free_everything_on_cancel)
{
	for (unsigned i = 0; i < LENGTH(actions); i++) {
		struct pushrig rig = begin_round(state, i);
		struct stage *stage = rig.stage;
		struct stage_call *first = &stage->calls[stage->call_count];

		first->then = act;
		(void)push_later(&rig, "x");
		(void)push_later(&rig, "x");
		stage_until_held(stage, 2);
		assert_true(spoke_push_cancel(stage->provider, first[0].name));
		assert_true(spoke_push_cancel(stage->provider, first[1].name));
		stage_end_all(stage);
	}
}

TEST(push_callback_can_free_everything_on_connection_loss)
{
	for (unsigned i = 0; i < LENGTH(actions); i++) {
		struct pushrig rig = begin_round(state, i);
		struct stage *stage = rig.stage;

		stage->calls[stage->call_count].then = act;
		(void)push_later(&rig, "x");
		(void)push_later(&rig, "x");
		stage_until_held(stage, 2);
		stage_free_consumer(stage);
		stage_end_all(stage);
	}
}

TEST(push_callback_can_free_everything_when_one_way)
{
	for (unsigned i = 0; i < LENGTH(actions); i++) {
		struct pushrig rig = begin_round(state, i);
		struct stage *stage = rig.stage;

		(void)push_later(&rig, "x");
		stage->calls[stage->call_count].then = act;
		(void)stage_push(stage, rig.echo, rig.peer, stage_no_args(), &one_way);
		(void)stage_push(stage, rig.echo, rig.peer, stage_no_args(), &one_way);
		stage_end_all(stage);
	}
}

TEST(push_handler_can_free_everything)
{
	static const struct spoke_method_options of = { .service = "demo.Push" };

	for (unsigned i = 0; i < LENGTH(actions); i++) {
		struct pushrig rig = begin_round(state, i);
		struct stage *stage = rig.stage;
		struct spoke_method *method;

		assert_int_equal(spoke_provider_method(stage->provider, "act", &of, &method), 0);
		stage->in_handler = act_once;
		(void)push_later(&rig, "x");
		(void)stage_push(stage, method, rig.peer, stage_text(stage, "now"), NULL);
		stage_end_all(stage);
	}
}
