/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of calls, and ends of calls that are not answered or not accepted, the same on every
 * network and wire.
 */
#include "tests/cluster/stage.h"
#include "tests/support/test.h"
#include "tests/transport/stream/strange.h"
#include "transport/codec/codec.h"

#include <stdio.h>
#include <string.h>

/* --- results of calls, the same on every network and wire */

/* A value, and what comes back by way of Hessian 2. */
struct value {
	const char *bytes;
	size_t len;
	const char *java; /* NULL: the same */
	size_t java_len;
};

#define SAME(bytes)                                                                                \
	{                                                                                          \
		bytes, sizeof(bytes) - 1, NULL, 0                                                  \
	}
#define CHANGED(bytes, java)                                                                       \
	{                                                                                          \
		bytes, sizeof(bytes) - 1, java, sizeof(java) - 1                                   \
	}
static const struct value values[] = {
	SAME("\xc0"),
	SAME("\xc3"),
	SAME("\xc2"),
	SAME("\x00"),
	SAME("\xff"),
	/* The type of an integer above 2^63 is BigInteger. */
	CHANGED("\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
		"\xde\x00\x03\xa6signum\x01\xa3mag\xc9\x00\x00\x00\x08\x48\xa4[int\x92\xff\xff\xa5"
		"class\xb4java.math.BigInteger"),
	SAME("\xd3\x80\x00\x00\x00\x00\x00\x00\x00"),
	SAME("\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00"),
	CHANGED("\xca\x3f\xc0\x00\x00", "\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00"),
	SAME("\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"),
	SAME("\xa0"),
	SAME("\xa5h\0llo"),
	CHANGED("\xa2\xff\xfe", "\xa6\xef\xbf\xbd\xef\xbf\xbd"),
	SAME("\xc4\x00"),
	SAME("\xc4\x03\x00\x01\x02"),
	CHANGED("\xd6\x05"
		"abcd",
		""), /* cannot be expressed */
	SAME("\xd6\xff\x00\x00\x00\x01"),
	SAME("\x90"),
	SAME("\x93\x01\xa1x\x92\xc0\xc3"),
	CHANGED("\x80", "\xdf\x00\x00\x00\x00"),
	CHANGED("\x82\xa1"
		"a\x91\x80\x01\xc3",
		"\xdf\x00\x00\x00\x02\xa1"
		"a\x91\xdf\x00\x00\x00\x00\x01\xc3"),
};

RUNNER(stage_run);

STAGE_TEST(a_value_of_every_type_comes_back_as_it_was)
{
	struct spoke_method *echo = stage_method(stage, "echo");
	bool java = stage->setting->codec == &spokei_codec_hessian2;

	for (size_t i = 0; i < LENGTH(values); i++) {
		const struct value *value = &values[i];
		struct spoke_span args = { value->bytes, value->len };
		struct spoke_span back = args;
		const struct spoke_result *result;

		if (java && value->java) {
			back.data = value->java;
			back.len = value->java_len;
		}
		if (back.len == 0) {
			assert_int_equal(stage_try(stage, echo, args, NULL), SPOKE_EUNSUPPORTED);
			continue;
		}
		result = stage_end_of(stage, stage_call(stage, echo, args));
		assert_int_equal(result->error, SPOKE_OK);
		assert_int_equal(result->value.len, back.len);
		assert_memory_equal(result->value.data, back.data, back.len);
	}
}

STAGE_TEST(values_of_any_size_come_back)
{
	static const size_t sizes[] = { 1, 65536, 1048576 };
	/* A busy machine takes long for many short reads and writes. */
	static const struct spoke_call_options options = { .timeout_ns = 60 * SECOND };
	struct spoke_method *echo = stage_method(stage, "echo");

	for (size_t i = 0; i < LENGTH(sizes); i++) {
		struct spoke_span args = stage_bin(stage, sizes[i]);
		struct stage_call *call = stage_call_with(stage, echo, args, &options);

		assert_int_equal(stage_end_of(stage, call)->error, SPOKE_OK);
		assert_true(call->same);
		assert_int_equal(call->value_len, args.len);
	}
}

STAGE_TEST(a_call_without_arguments_is_answered_with_nil)
{
	struct spoke_method *echo = stage_method(stage, "echo");
	const struct spoke_result *result = stage_end_of(stage,
							 stage_call(stage, echo, stage_no_args()));

	assert_int_equal(result->error, SPOKE_OK);
	assert_true(spoke_value_is_nil(result->value));
}

STAGE_TEST(many_calls_at_once_are_all_answered_with_their_own)
{
	struct spoke_method *echo = stage_method(stage, "echo");

	for (unsigned char i = 0; i < 200; i++) {
		unsigned char arg[] = { 0xcc, i };

		(void)stage_call(stage, echo, (struct spoke_span){ arg, sizeof(arg) });
	}
	stage_end_all(stage);
	for (unsigned i = 0; i < 200; i++) {
		uint64_t number;

		assert_int_equal(stage->calls[i].result.error, SPOKE_OK);
		assert_int_equal(spoke_value_u64(stage->calls[i].result.value, &number), 0);
		assert_int_equal(number, i);
	}
	assert_int_equal(stage->handled, 200);
}

STAGE_TEST(an_answer_may_be_given_later)
{
	struct stage_call *call = stage_call(stage, stage_method(stage, "later"),
					     stage_text(stage, "kept"));

	stage_until_held(stage, 1);
	stage_pass(stage, 20 * MS);
	assert_int_equal(call->ends, 0);
	stage_answer(stage, 0);
	stage_assert_text(stage_end_of(stage, call), "kept");
	assert_true(call->result.waited_ns >= 20 * MS);
}

STAGE_TEST(answers_may_come_in_another_order)
{
	static const char *const texts[] = { "first", "second", "third" };
	struct spoke_method *later = stage_method(stage, "later");

	for (size_t i = 0; i < 3; i++)
		(void)stage_call(stage, later, stage_text(stage, texts[i]));
	stage_until_held(stage, 3);
	stage_answer(stage, 2);
	(void)stage_end_of(stage, &stage->calls[2]);
	stage_answer(stage, 0);
	(void)stage_end_of(stage, &stage->calls[0]);
	stage_answer(stage, 0);
	stage_end_all(stage);
	for (size_t i = 0; i < 3; i++)
		stage_assert_text(&stage->calls[i].result, texts[i]);
	assert_int_equal(stage->calls[2].order, 0);
	assert_int_equal(stage->calls[1].order, 2);
}

STAGE_TEST(an_error_of_the_handler_reaches_the_caller)
{
	const struct spoke_result *result =
		stage_end_of(stage,
			     stage_call(stage, stage_method(stage, "fail"), stage_no_args()));

	assert_int_equal(result->error, SPOKE_EREMOTE);
	assert_int_equal(result->error_text.len, 13);
	assert_memory_equal(result->error_text.data, "it went wrong", 13);
	/* MessagePack-RPC has no field for the code. */
	assert_int_equal(result->error_code, stage->setting->dubbo ? 7 : 0);
	assert_true(result->written);
}

STAGE_TEST(a_one_way_call_ends_when_it_is_written)
{
	static const struct spoke_call_options one_way = { .one_way = true };
	struct spoke_method *echo = stage_method(stage, "echo");
	struct stage_call *call = stage_call_with(stage, echo, stage_text(stage, "x"), &one_way);
	const struct spoke_result *result = stage_end_of(stage, call);

	assert_int_equal(result->error, SPOKE_OK);
	assert_true(result->written);
	assert_true(spoke_value_is_nil(result->value));
	stage_until(stage, &stage->handled, 1);
	(void)stage_call_with(stage, stage_method(stage, "later"), stage_text(stage, "y"),
			      &one_way);
	stage_until_held(stage, 1);
	assert_false(spoke_request_two_way(stage->held[0]));
	stage_answer(stage, 0);
	stage_assert_text(stage_end_of(stage, stage_call(stage, echo, stage_text(stage, "z"))),
			  "z");
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_REPLIES_LATE), 0);
}

STAGE_TEST(attachments_travel_both_ways)
{
	static const unsigned char own[] = "\x81\xa1k\xa1v";
	struct spoke_call_options options = {
		.attachments = { own, sizeof(own) - 1 },
	};
	struct spoke_value value;
	struct spoke_span text;
	const struct spoke_result *result;

	if (!stage->setting->dubbo) {
		assert_int_equal(stage_try(stage, stage_method(stage, "tell"), stage_no_args(),
					   &options),
				 SPOKE_EUNSUPPORTED);
		return;
	}
	result = stage_end_of(stage, stage_call_with(stage, stage_method(stage, "tell"),
						     stage_no_args(), &options));
	assert_int_equal(result->error, SPOKE_OK);
	assert_int_equal(spoke_value_get(result->value, "k", &value), 0);
	assert_int_equal(spoke_value_str(value, &text), 0);
	assert_memory_equal(text.data, "v", 1);
	assert_int_equal(spoke_value_get(result->attachments, "from", &value), 0);
	assert_int_equal(spoke_value_str(value, &text), 0);
	assert_memory_equal(text.data, "provider", 8);
}

STAGE_TEST(unknown_service_and_method_are_reported)
{
	static const struct spoke_method_options others[] = {
		{ .service = "demo.Other" },
		{ .service = "demo.Versioned", .version = "1.0" },
		{ .service = "demo.Versioned", .group = "g" },
		{ .service = "demo.Versioned", .version = "2.0", .group = "g" },
	};
	int error = stage->setting->dubbo ? SPOKE_ENOSERVICE : SPOKE_EREMOTE;

	(void)stage_call(stage, stage_method(stage, "nobody"), stage_no_args());
	for (size_t i = 0; i < LENGTH(others); i++) {
		if (stage->setting->dubbo || (!others[i].version && !others[i].group))
			(void)stage_call(stage, stage_method_with(stage, "echo", &others[i]),
					 stage_no_args());
	}
	stage_end_all(stage);
	for (unsigned i = 0; i < stage->call_count; i++) {
		assert_int_equal(stage->calls[i].result.error, error);
		assert_true(stage->calls[i].result.error_text.len > 0);
	}
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_REQUESTS_NO_SERVICE),
			 stage->call_count);
	assert_int_equal(stage->handled, 0);
}

STAGE_TEST(a_service_is_found_by_its_version_and_group)
{
	static const struct spoke_method_options versioned = {
		.service = "demo.Versioned",
		.version = "1.0",
		.group = "g",
	};
	static const char seen[] = "[\"demo.Versioned\", \"1.0\", \"g\", \"who\", true, 2, true]";
	const struct spoke_result *result;
	char text[256];

	if (!stage->setting->dubbo)
		return;
	result = stage_end_of(stage, stage_call(stage, stage_method_with(stage, "who", &versioned),
						(struct spoke_span){ "\x01\xc0", 2 }));
	assert_int_equal(result->error, SPOKE_OK);
	(void)spoke_value_print(result->value, text, sizeof(text));
	assert_string_equal(text, seen);
}

STAGE_TEST(every_service_has_an_echo)
{
	stage_assert_text(stage_end_of(stage, stage_call(stage, stage_method(stage, "$echo"),
							 stage_text(stage, "here"))),
			  "here");
	assert_int_equal(stage->handled, 0);
}

STAGE_TEST(a_generic_call_is_understood_as_the_call_it_stands_for)
{
	static const struct spoke_method_options generic = {
		.generic = true,
		.type_names = "java.lang.String,int",
	};
	struct spoke_method *echo = stage_method_with(stage, "echo", &generic);
	static const struct spoke_span args = { "\xa7generic\x05", 9 };
	int error = stage_try(stage, echo, args, NULL);

	if (error == SPOKE_EUNSUPPORTED) {
		assert_false(stage->setting->dubbo);
		return;
	}
	assert_int_equal(error, 0);
	stage_assert_text(stage_end_of(stage, &stage->calls[0]), "generic");
}

STAGE_TEST(a_handler_sees_the_time_that_is_left)
{
	static const struct spoke_call_options options = { .timeout_ns = 5 * SECOND };
	struct spoke_method *left = stage_method(stage, "left");
	uint64_t left_ns = 0;
	const struct spoke_result *result =
		stage_end_of(stage, stage_call_with(stage, left, stage_no_args(), &options));

	assert_int_equal(result->error, SPOKE_OK);
	assert_int_equal(spoke_value_u64(result->value, &left_ns), 0);
	if (stage->setting->dubbo)
		assert_in_range(left_ns, 1, 5 * SECOND);
	else
		assert_true(left_ns == UINT64_MAX);
}

/*
 * --- ends of calls that are not answered or not accepted, the same on every network and wire
 */

#define LARGE ((size_t)1 << 20)

static uint64_t took(const struct spoke_result *result)
{
	return result->queued_ns + result->waited_ns;
}

STAGE_TEST(a_call_that_is_not_answered_times_out_after_it_was_written)
{
	static const struct spoke_call_options options = { .timeout_ns = 40 * MS };
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
BARE_STAGE_TEST(a_call_that_cannot_be_written_times_out_before_it_was)
{
	static const struct spoke_call_options options = { .timeout_ns = 60 * MS };
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

BARE_STAGE_TEST(a_call_on_a_connection_that_never_opens_times_out_unsent)
{
	static const struct spoke_call_options options = { .timeout_ns = 300 * MS };
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
BARE_STAGE_TEST(call_timeout_overrides_method_and_consumer_timeout)
{
	static const struct spoke_method_options of_method = { .timeout_ns = 90 * MS };
	static const struct spoke_call_options of_call = { .timeout_ns = 30 * MS };
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

STAGE_TEST(a_call_may_be_cancelled_once)
{
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

STAGE_TEST(a_call_may_be_cancelled_in_the_turn_it_was_made)
{
	struct stage_call *call;

	stage_until_ready(stage, 1);
	call = stage_call(stage, stage_method(stage, "echo"), stage_text(stage, "x"));
	assert_true(spoke_call_cancel(stage->consumer, call->name));
	assert_int_equal(stage_end_of(stage, call)->error, SPOKE_ECANCELED);
	assert_int_equal(call->result.queued_ns, 0);
}

STAGE_TEST(a_call_may_be_cancelled_while_it_waits_for_the_connection)
{
	struct spoke_method *echo = stage_method(stage, "echo");
	struct stage_call *call = stage_call(stage, echo, stage_text(stage, "x"));

	assert_true(spoke_call_cancel(stage->consumer, call->name));
	stage_assert_text(stage_end_of(stage, stage_call(stage, echo, stage_text(stage, "y"))),
			  "y");
	assert_int_equal(stage_end_of(stage, call)->error, SPOKE_ECANCELED);
	assert_false(call->result.written);
	assert_int_equal(stage->handled, 1);
}

BARE_STAGE_TEST(calls_beyond_the_limit_are_refused_at_once)
{
	static const struct spoke_consumer_options options = { .pending_max = 2 };
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

STAGE_TEST(values_and_timeouts_that_are_none_are_refused_at_once)
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
	struct spoke_method *echo = stage_method(stage, "echo");

	for (size_t i = 0; i < LENGTH(cases); i++) {
		struct spoke_call_options options = { .timeout_ns = cases[i].timeout_ns,
						      .attachments = cases[i].attachments };

		assert_int_equal(stage_try(stage, echo, cases[i].args, &options), cases[i].error);
	}
	stage_pass(stage, 5 * MS);
	assert_int_equal(stage->ended, 0);
}

STAGE_TEST(without_an_endpoint_calls_are_refused_at_once)
{
	struct spoke_method *echo = stage_method(stage, "echo");

	(void)stage_end_of(stage, stage_call(stage, echo, stage_text(stage, "x")));
	stage_free_provider(stage);
	while (spoke_consumer_ready(stage->consumer) > 0)
		stage_pass(stage, MS);
	assert_int_equal(stage_try(stage, echo, stage_no_args(), NULL), SPOKE_EUNAVAILABLE);
}

BARE_STAGE_TEST(a_call_whose_connection_cannot_be_made_ends_with_that)
{
	const struct spoke_result *result;

	stage_close_peer(stage, stage_deaf_peer(stage));
	stage_consume(stage, NULL);
	if (stage_try(stage, stage_method(stage, "echo"), stage_no_args(), NULL))
		return; /* some kernels refuse at once */
	result = stage_end_of(stage, &stage->calls[0]);
	assert_int_equal(result->error, SPOKE_ECONNECT);
	assert_false(result->written);
}

BARE_STAGE_TEST(calls_made_while_connecting_carry_remaining_time)
{
	static const struct spoke_call_options options = { .timeout_ns = 4 * SECOND };
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

BARE_STAGE_TEST(oversized_message_fails_only_its_own_call)
{
	static const struct spoke_consumer_options options = { .frame_max = 65536 };
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
BARE_STAGE_TEST(reply_with_too_many_values_fails_only_its_own_call)
{
	static const struct spoke_consumer_options options = { .values_max = 1024 };
	static unsigned char nils[3 + 2000] = "\xdc\x07\xd0";
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

STAGE_TEST(a_call_may_be_made_as_another_one_ends)
{
	stage->calls[0].then = call_again;
	(void)stage_call(stage, stage_method(stage, "echo"), stage_text(stage, "first"));
	stage_until(stage, &stage->ended, 300);
	for (unsigned i = 0; i < 300; i++)
		assert_int_equal(stage->calls[i].result.error, SPOKE_OK);
}

/* --- calls and options rejected before anything is sent, and their messages */

STAGE_TEST(a_generic_call_has_as_many_arguments_as_types)
{
	struct spoke_method_options options = { .generic = true, .type_names = "int,int" };
	struct spoke_method *method = stage_method_with(stage, "echo", &options);

	assert_int_equal(stage_try(stage, method, stage_text(stage, "x"), NULL), SPOKE_EINVAL);
}

static int try_attachments(struct stage *stage, const char *const *keys, size_t count)
{
	unsigned char memory[256];
	struct spoke_builder builder;
	struct spoke_call_options options = { 0 };

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_map(&builder, count);
	for (size_t i = 0; i < count; i++) {
		spoke_pack_text(&builder, keys[i]);
		spoke_pack_text(&builder, "value");
	}
	assert_int_equal(spoke_builder_finish_value(&builder, &options.attachments), 0);
	return stage_try(stage, stage_method(stage, "echo"), stage_text(stage, "x"), &options);
}

STAGE_TEST(attachments_must_be_unique_texts_without_timeout_key)
{
	static const char *const twice[] = { "a", "b", "a" };
	static const char *const timeout[] = { "timeout" };
	static const char *const to[] = { "_TO" };

	assert_int_equal(try_attachments(stage, twice, 3), SPOKE_EEXIST);
	assert_int_equal(try_attachments(stage, timeout, 1), SPOKE_EINVAL);
	assert_int_equal(try_attachments(stage, to, 1), SPOKE_EINVAL);
	assert_int_equal(try_attachments(stage, twice, 2),
			 stage->setting->dubbo ? SPOKE_OK : SPOKE_EUNSUPPORTED);
	stage_end_all(stage);
}

STAGE_TEST(version_without_field_on_wire_is_rejected)
{
	struct spoke_method_options options = { .version = "1.0" };
	struct spoke_method *method = stage_method_with(stage, "echo", &options);

	assert_int_equal(stage_try(stage, method, stage_text(stage, "x"), NULL),
			 stage->setting->dubbo ? SPOKE_OK : SPOKE_EUNSUPPORTED);
	stage_end_all(stage);
}

static int try_consumer(struct stage *stage, const struct spoke_consumer_options *options,
			const char *words)
{
	struct spoke_consumer *consumer = NULL;
	int error = spoke_consumer_new(stage->client_engine, options, &consumer);

	assert_null(consumer);
	assert_non_null(strstr(spoke_engine_why(stage->client_engine), words));
	return error;
}

STAGE_TEST(every_url_of_a_consumer_is_looked_at)
{
	static const char *const bad_value[] = { "dubbo://127.0.0.1:2/S?timeout=soon" };
	static const char *const bad_key[] = { "dubbo://127.0.0.1:2/S?tmeout=1s" };
	static const char *const other[] = { "dubbo://127.0.0.1:2/T" };
	struct spoke_consumer_options options = { .url = "dubbo://127.0.0.1:1/S", .more_count = 1 };

	assert_int_equal(try_consumer(stage, &options, "more_urls"), SPOKE_EINVAL);
	options.more_urls = bad_value;
	assert_int_equal(try_consumer(stage, &options, "timeout"), SPOKE_ESYNTAX);
	options.more_urls = bad_key;
	assert_int_equal(try_consumer(stage, &options, "timeout"), SPOKE_EINVAL);
	options.more_urls = other;
	assert_int_equal(try_consumer(stage, &options, "names another service"), SPOKE_EINVAL);
	options.more_count = 0;
	options.frame_max = (64u << 20) + 1;
	assert_int_equal(try_consumer(stage, &options, "frame.max"), SPOKE_ERANGE);
	options.frame_max = 0;
	options.values_max = SPOKE_VALUE_ITEMS_MAX + 1;
	assert_int_equal(try_consumer(stage, &options, "values.max"), SPOKE_ERANGE);
}

STAGE_TEST(an_interval_is_10_ms_at_least_or_off)
{
	struct spoke_consumer_options options = { .url = "dubbo://127.0.0.1:1/S",
						  .heartbeat_ns = 10 * MS - 1 };
	struct spoke_provider_options serving = { .heartbeat_ns = 1 };
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;

	assert_int_equal(try_consumer(stage, &options, "heartbeat"), SPOKE_ERANGE);
	options.heartbeat_ns = 0;
	options.url = "dubbo://127.0.0.1:1/S?heartbeat=9ms";
	assert_int_equal(try_consumer(stage, &options,
				      "heartbeat=9ms: too small; it goes from 10ms"),
			 SPOKE_ERANGE);
	options.url = "dubbo://127.0.0.1:1/S?idle.close=1ms";
	assert_int_equal(try_consumer(stage, &options, "idle.close"), SPOKE_ERANGE);
	options.url = "dubbo://127.0.0.1:1/S?heartbeat=0&idle.close=10ms";
	assert_int_equal(spoke_consumer_new(stage->client_engine, &options, &consumer), SPOKE_OK);
	spoke_consumer_free(consumer);
	assert_int_equal(spoke_provider_new(stage->server_engine, &serving, &provider),
			 SPOKE_ERANGE);
	serving.heartbeat_ns = SPOKE_OFF;
	assert_int_equal(spoke_provider_new(stage->server_engine, &serving, &provider), SPOKE_OK);
	spoke_provider_free(provider);
}

STAGE_TEST(invalid_listen_options_are_refused)
{
	static const struct {
		const char *url;
		int error;
		const char *words;
	} cases[] = {
		{ "dubbo://127.0.0.1:0?heartbeat=1s", SPOKE_EINVAL, "heartbeat" },
		{ "dubbo://127.0.0.1:0?hartbeat=1s", SPOKE_EINVAL, "hartbeat" },
		{ "http://127.0.0.1:0", SPOKE_EUNSUPPORTED, "http" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(spoke_provider_listen(stage->provider, cases[i].url),
				 cases[i].error);
		assert_non_null(strstr(spoke_engine_why(stage->server_engine), cases[i].words));
	}
}

STAGE_TEST(further_urls_must_match_first_url)
{
	static const char *const other[] = { "dubbo://127.0.0.1:2/S?heartbeat=2s" };
	static const char *const same[] = { "dubbo://127.0.0.1:2/S?heartbeat=1000" };
	struct spoke_consumer_options options = { .url = "dubbo://127.0.0.1:1/S?heartbeat=1s",
						  .more_urls = other,
						  .more_count = 1 };
	struct spoke_consumer *consumer;

	assert_int_equal(try_consumer(stage, &options, "heartbeat applies to"), SPOKE_EINVAL);
	options.more_urls = same;
	assert_int_equal(spoke_consumer_new(stage->client_engine, &options, &consumer), SPOKE_OK);
	spoke_consumer_free(consumer);
}

STAGE_TEST(a_method_needs_a_service_where_the_wire_names_it)
{
	struct spoke_consumer_options dubbo = { .url = "dubbo://127.0.0.1:1" };
	struct spoke_consumer_options mprpc = { .url = "msgpack-rpc://127.0.0.1:1" };
	struct spoke_consumer *consumer;
	struct spoke_method *method;

	assert_int_equal(spoke_consumer_new(stage->client_engine, &dubbo, &consumer), SPOKE_OK);
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &method), SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(stage->client_engine), "no service"));
	spoke_consumer_free(consumer);
	assert_int_equal(spoke_consumer_new(stage->client_engine, &mprpc, &consumer), SPOKE_OK);
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &method), SPOKE_OK);
	spoke_consumer_free(consumer);
}
