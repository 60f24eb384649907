/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of calls that are not answered or not accepted, the same on every network and wire. */
#include "tests/cluster/stage.h"
#include "tests/support/test.h"

#include "tests/transport/stream/strange.h"
#include <string.h>

#include <stdio.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define LARGE ((size_t)1 << 20)

static uint64_t took(const struct spoke_result *result)
{
	return result->queued_ns + result->waited_ns;
}

RUNNER(stage_run);

TEST(a_call_that_is_not_answered_times_out_after_it_was_written)
{
	static const struct spoke_call_options options = { .timeout_ns = 40 * MS };
	struct stage *stage = stage_begin(state);
	const struct spoke_result *result;

	stage_until_ready(stage, 1);
	result = stage_end_of(stage, stage_call_with(stage, stage_method(stage, "later"),
						     stage_text(stage, "x"), &options));
	assert_int_equal(result->error, SPOKE_ETIMEOUT);
	assert_true(result->written);
	assert_true(took(result) >= 40 * MS);
	assert_true(result->waited_ns > result->queued_ns);
	if (stage->setting->in_memory)
		assert_in_range(took(result), 40 * MS, 42 * MS);
	stage_until_held(stage, 1);
	stage_answer(stage, 0); /* too late */
	stage_pass(stage, 20 * MS);
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_REPLIES_LATE), 1);
}

/* The peer's kernel buffers some bytes, then no more. */
TEST(a_call_that_cannot_be_written_times_out_before_it_was)
{
	static const struct spoke_call_options options = { .timeout_ns = 60 * MS };
	struct stage *stage = stage_bare(state);
	bool with_stream = stage->setting->stream != NULL;
	int fd = with_stream ? -1 : stage_deaf_peer(stage);
	struct spoke_method *echo;
	struct spoke_span args = stage_bin(stage, LARGE);
	const struct spoke_result *last;

	/* A peer that only listens does not complete the handshake of a stream. */
	if (with_stream)
		stage_provide(stage, NULL);
	stage_consume(stage, NULL);
	stage_until_ready(stage, 1);
	stage_freeze_server(stage, with_stream);
	echo = stage_method(stage, "echo");
	for (unsigned i = 0; i < 13; i++)
		(void)stage_call_with(stage, echo, args, &options);
	stage_pass(stage, 5 * MS); /* by now the socket is known to be full */
	(void)stage_call_with(stage, echo, args, &options);
	stage_end_all(stage);
	assert_int_equal(stage->calls[0].result.error, SPOKE_ETIMEOUT);
	assert_true(stage->calls[0].result.written);
	/* Requests put before that cannot be taken back; those that wait are reported as unsent. */
	for (unsigned i = 1; i < 13; i++) {
		last = &stage->calls[i].result;
		assert_int_equal(last->error,
				 last->written ? SPOKE_ETIMEOUT : SPOKE_ETIMEOUT_UNSENT);
	}
	last = &stage->calls[13].result;
	assert_int_equal(last->error, SPOKE_ETIMEOUT_UNSENT);
	assert_false(last->written);
	assert_true(last->queued_ns >= 60 * MS);
	assert_int_equal(last->waited_ns, 0);
	stage_freeze_server(stage, false);
	if (!with_stream)
		stage_close_peer(stage, fd);
}

TEST(a_call_on_a_connection_that_never_opens_times_out_unsent)
{
	static const struct spoke_call_options options = { .timeout_ns = 300 * MS };
	struct stage *stage = stage_bare(state);
	const struct spoke_result *result;

	if (!stage->setting->in_memory)
		skip();
	stage_provide(stage, NULL);
	spokei_vnet_route(stage->world.net, stage->places[0], SPOKEI_VNET_SILENT);
	stage_consume(stage, NULL);
	result = stage_end_of(stage, stage_call_with(stage, stage_method(stage, "echo"),
						     stage_text(stage, "x"), &options));
	assert_int_equal(result->error, SPOKE_ETIMEOUT_UNSENT);
	assert_false(result->written);
	assert_in_range(result->queued_ns, 300 * MS, 302 * MS);
	assert_int_equal(result->waited_ns, 0);
}

/* All three begin together, so the timeouts determine the order of their ends. */
TEST(call_timeout_overrides_method_and_consumer_timeout)
{
	static const struct spoke_method_options of_method = { .timeout_ns = 90 * MS };
	static const struct spoke_call_options of_call = { .timeout_ns = 30 * MS };
	struct stage *stage = stage_bare(state);
	struct spoke_consumer_options options = { 0 };
	struct spoke_method *plain;
	struct spoke_method *bound;
	char url[256];

	stage_provide(stage, NULL);
	stage_url(stage, 0, "&timeout=150ms", url, sizeof(url));
	options.url = url;
	stage_consume(stage, &options);
	stage_until_ready(stage, 1);
	plain = stage_method(stage, "later");
	bound = stage_method_with(stage, "later", &of_method);
	(void)stage_call(stage, plain, stage_no_args());
	(void)stage_call(stage, bound, stage_no_args());
	(void)stage_call_with(stage, bound, stage_no_args(), &of_call);
	stage_end_all(stage);
	for (unsigned i = 0; i < 3; i++) {
		static const uint64_t least[] = { 150 * MS, 90 * MS, 30 * MS };

		assert_int_equal(stage->calls[i].result.error, SPOKE_ETIMEOUT);
		assert_int_equal(stage->calls[i].order, 2 - i);
		assert_true(took(&stage->calls[i].result) >= least[i]);
	}
}

TEST(a_call_may_be_cancelled_once)
{
	struct stage *stage = stage_begin(state);
	struct stage_call *call = stage_call(stage, stage_method(stage, "later"),
					     stage_text(stage, "x"));

	stage_until_held(stage, 1);
	assert_true(spoke_call_cancel(stage->consumer, call->name));
	assert_true(spoke_call_cancel(stage->consumer, call->name));
	assert_int_equal(call->ends, 0);
	assert_int_equal(stage_end_of(stage, call)->error, SPOKE_ECANCELED);
	assert_true(call->result.written);
	assert_false(spoke_call_cancel(stage->consumer, call->name));
	assert_false(spoke_call_cancel(stage->consumer, (struct spoke_call){ 0 }));
	/* The connection still works, and the late reply does no harm. */
	stage_answer(stage, 0);
	stage_assert_text(stage_end_of(stage, stage_call(stage, stage_method(stage, "echo"),
							 stage_text(stage, "y"))),
			  "y");
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_REPLIES_LATE), 1);
}

TEST(a_call_may_be_cancelled_in_the_turn_it_was_made)
{
	struct stage *stage = stage_begin(state);
	struct stage_call *call;

	stage_until_ready(stage, 1);
	call = stage_call(stage, stage_method(stage, "echo"), stage_text(stage, "x"));
	assert_true(spoke_call_cancel(stage->consumer, call->name));
	assert_int_equal(stage_end_of(stage, call)->error, SPOKE_ECANCELED);
	assert_int_equal(call->result.queued_ns, 0);
}

TEST(a_call_may_be_cancelled_while_it_waits_for_the_connection)
{
	struct stage *stage = stage_begin(state);
	struct spoke_method *echo = stage_method(stage, "echo");
	struct stage_call *call = stage_call(stage, echo, stage_text(stage, "x"));

	assert_true(spoke_call_cancel(stage->consumer, call->name));
	stage_assert_text(stage_end_of(stage, stage_call(stage, echo, stage_text(stage, "y"))),
			  "y");
	assert_int_equal(stage_end_of(stage, call)->error, SPOKE_ECANCELED);
	assert_false(call->result.written);
	assert_int_equal(stage->handled, 1);
}

TEST(calls_beyond_the_limit_are_refused_at_once)
{
	static const struct spoke_consumer_options options = { .pending_max = 2 };
	struct stage *stage = stage_bare(state);
	struct spoke_method *later;

	stage_provide(stage, NULL);
	stage_consume(stage, &options);
	later = stage_method(stage, "later");
	(void)stage_call(stage, later, stage_text(stage, "a"));
	(void)stage_call(stage, later, stage_text(stage, "b"));
	assert_int_equal(stage_try(stage, later, stage_no_args(), NULL), SPOKE_ELIMIT);
	stage_until_held(stage, 2);
	assert_int_equal(stage_try(stage, later, stage_no_args(), NULL), SPOKE_ELIMIT);
	stage_answer(stage, 0);
	(void)stage_end_of(stage, &stage->calls[0]);
	stage_assert_text(stage_end_of(stage, stage_call(stage, stage_method(stage, "echo"),
							 stage_text(stage, "c"))),
			  "c");
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_CALLS_REFUSED), 2);
}

TEST(values_and_timeouts_that_are_none_are_refused_at_once)
{
	static const struct {
		struct spoke_span args;
		struct spoke_value attachments;
		uint64_t timeout_ns;
		int error;
	} cases[] = {
		{ { "\xa5x", 2 }, { NULL, 0 }, 0, SPOKE_ETRUNCATED },
		{ { "\xc1", 1 }, { NULL, 0 }, 0, SPOKE_ECORRUPT },
		{ { NULL, 0 }, { (const unsigned char *)"\x90", 1 }, 0, SPOKE_ETYPE },
		{ { NULL, 0 }, { (const unsigned char *)"\x81\x01\x01", 3 }, 0, SPOKE_ETYPE },
		{ { NULL, 0 }, { (const unsigned char *)"\x81\xa1x", 3 }, 0, SPOKE_ETRUNCATED },
		{ { NULL, 0 }, { (const unsigned char *)"\x80\x80", 2 }, 0, SPOKE_ETRAILING },
		{ { NULL, 0 }, { NULL, 0 }, UINT64_C(2147483648) * 1000 * MS, SPOKE_ERANGE },
		{ { NULL, 0 }, { NULL, 0 }, UINT64_MAX, SPOKE_ERANGE },
	};
	struct stage *stage = stage_begin(state);
	struct spoke_method *echo = stage_method(stage, "echo");

	for (size_t i = 0; i < LENGTH(cases); i++) {
		struct spoke_call_options options = { .timeout_ns = cases[i].timeout_ns,
						      .attachments = cases[i].attachments };

		assert_int_equal(stage_try(stage, echo, cases[i].args, &options), cases[i].error);
	}
	stage_pass(stage, 5 * MS);
	assert_int_equal(stage->ended, 0);
}

TEST(without_an_endpoint_calls_are_refused_at_once)
{
	struct stage *stage = stage_begin(state);
	struct spoke_method *echo = stage_method(stage, "echo");

	(void)stage_end_of(stage, stage_call(stage, echo, stage_text(stage, "x")));
	stage_free_provider(stage);
	while (spoke_consumer_ready(stage->consumer) > 0)
		stage_pass(stage, MS);
	assert_int_equal(stage_try(stage, echo, stage_no_args(), NULL), SPOKE_EUNAVAILABLE);
}

TEST(a_call_whose_connection_cannot_be_made_ends_with_that)
{
	struct stage *stage = stage_bare(state);
	const struct spoke_result *result;

	stage_close_peer(stage, stage_deaf_peer(stage));
	stage_consume(stage, NULL);
	if (stage_try(stage, stage_method(stage, "echo"), stage_no_args(), NULL))
		return; /* some kernels refuse at once */
	result = stage_end_of(stage, &stage->calls[0]);
	assert_int_equal(result->error, SPOKE_ECONNECT);
	assert_false(result->written);
}

TEST(calls_made_while_connecting_carry_remaining_time)
{
	static const struct spoke_call_options options = { .timeout_ns = 4 * SECOND };
	struct stage *stage = stage_bare(state);
	struct spokei_vnet_link slow = { .latency_ns = 300 * MS };
	const struct spoke_result *result;
	uint64_t left_ns = 0;

	stage_provide(stage, NULL);
	if (stage->setting->in_memory)
		spokei_vnet_set_all(stage->world.net, &slow);
	stage_consume(stage, NULL);
	result = stage_end_of(stage, stage_call_with(stage, stage_method(stage, "left"),
						     stage_no_args(), &options));
	assert_int_equal(result->error, SPOKE_OK);
	assert_int_equal(spoke_value_u64(result->value, &left_ns), 0);
	if (!stage->setting->dubbo)
		return;
	assert_true(left_ns < 4 * SECOND);
	/* One round trip for the connection, and those that open the stream. The transit time of
	 * the request is unknown to the provider. */
	left_ns += stage_opening_trips(stage) * 600 * MS;
	if (stage->setting->in_memory)
		assert_in_range(left_ns, 3399 * MS, 3401 * MS);
}

TEST(oversized_message_fails_only_its_own_call)
{
	static const struct spoke_consumer_options options = { .frame_max = 65536 };
	struct stage *stage = stage_bare(state);
	struct spoke_method *echo;

	stage_provide(stage, NULL);
	stage_consume(stage, &options);
	echo = stage_method(stage, "echo");
	(void)stage_call(stage, echo, stage_bin(stage, 70000));
	(void)stage_call(stage, echo, stage_text(stage, "x"));
	stage_end_all(stage);
	assert_int_equal(stage->calls[0].result.error, SPOKE_ETOOLARGE);
	assert_false(stage->calls[0].result.written);
	stage_assert_text(&stage->calls[1].result, "x");
	assert_int_equal(stage_try(stage, echo, stage_bin(stage, 70000), NULL), SPOKE_ETOOLARGE);
}

/* MessagePack-RPC has no frames that could be skipped, so the connection ends. */
TEST(reply_with_too_many_values_fails_only_its_own_call)
{
	static const struct spoke_consumer_options options = { .values_max = 1024 };
	static unsigned char nils[3 + 2000] = "\xdc\x07\xd0";
	struct stage *stage = stage_bare(state);
	struct spoke_method *echo;

	if (!stage->setting->dubbo)
		return;
	memset(nils + 3, 0xc0, sizeof(nils) - 3);
	stage_provide(stage, NULL);
	stage_consume(stage, &options);
	echo = stage_method(stage, "echo");
	(void)stage_call(stage, echo, (struct spoke_span){ nils, sizeof(nils) });
	(void)stage_call(stage, echo, stage_text(stage, "x"));
	stage_end_all(stage);
	assert_int_equal(stage->calls[0].result.error, SPOKE_ETOOLARGE);
	assert_true(stage->calls[0].result.written);
	assert_non_null(strstr(spoke_strerror(SPOKE_ETOOLARGE), "values.max"));
	stage_assert_text(&stage->calls[1].result, "x");
}

/* Begins a call at the end of the previous one. */
static void call_again(struct stage_call *call)
{
	struct stage *stage = call->stage;
	struct spoke_method *echo = stage_method(stage, "echo");

	if (stage->call_count == 300)
		return;
	stage->calls[stage->call_count].then = call_again;
	(void)stage_call(stage, echo, stage_text(stage, "again"));
}

TEST(a_call_may_be_made_as_another_one_ends)
{
	struct stage *stage = stage_begin(state);

	stage->calls[0].then = call_again;
	(void)stage_call(stage, stage_method(stage, "echo"), stage_text(stage, "first"));
	stage_until(stage, &stage->ended, 300);
	for (unsigned i = 0; i < 300; i++)
		assert_int_equal(stage->calls[i].result.error, SPOKE_OK);
}
