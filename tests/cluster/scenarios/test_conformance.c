/* SPDX-License-Identifier: Apache-2.0 */
/* Results of calls, the same on every network and wire. */
#include "tests/cluster/stage.h"
#include "tests/support/test.h"

#include "transport/codec/codec.h"

#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

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

TEST(a_value_of_every_type_comes_back_as_it_was)
{
	struct stage *stage = stage_begin(state);
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

TEST(values_of_any_size_come_back)
{
	static const size_t sizes[] = { 1, 65536, 1048576 };
	struct stage *stage = stage_begin(state);
	struct spoke_method *echo = stage_method(stage, "echo");

	for (size_t i = 0; i < LENGTH(sizes); i++) {
		struct spoke_span args = stage_bin(stage, sizes[i]);
		struct stage_call *call = stage_call(stage, echo, args);

		assert_int_equal(stage_end_of(stage, call)->error, SPOKE_OK);
		assert_true(call->same);
		assert_int_equal(call->value_len, args.len);
	}
}

TEST(a_call_without_arguments_is_answered_with_nil)
{
	struct stage *stage = stage_begin(state);
	struct spoke_method *echo = stage_method(stage, "echo");
	const struct spoke_result *result = stage_end_of(stage,
							 stage_call(stage, echo, stage_no_args()));

	assert_int_equal(result->error, SPOKE_OK);
	assert_true(spoke_value_is_nil(result->value));
}

TEST(many_calls_at_once_are_all_answered_with_their_own)
{
	struct stage *stage = stage_begin(state);
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

TEST(an_answer_may_be_given_later)
{
	struct stage *stage = stage_begin(state);
	struct stage_call *call = stage_call(stage, stage_method(stage, "later"),
					     stage_text(stage, "kept"));

	stage_until_held(stage, 1);
	stage_pass(stage, 20 * MS);
	assert_int_equal(call->ends, 0);
	stage_answer(stage, 0);
	stage_assert_text(stage_end_of(stage, call), "kept");
	assert_true(call->result.waited_ns >= 20 * MS);
}

TEST(answers_may_come_in_another_order)
{
	static const char *const texts[] = { "first", "second", "third" };
	struct stage *stage = stage_begin(state);
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

TEST(an_error_of_the_handler_reaches_the_caller)
{
	struct stage *stage = stage_begin(state);
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

TEST(a_one_way_call_ends_when_it_is_written)
{
	static const struct spoke_call_options one_way = { .one_way = true };
	struct stage *stage = stage_begin(state);
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

TEST(attachments_travel_both_ways)
{
	static const unsigned char own[] = "\x81\xa1k\xa1v";
	struct stage *stage = stage_begin(state);
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

TEST(unknown_service_and_method_are_reported)
{
	static const struct spoke_method_options others[] = {
		{ .service = "demo.Other" },
		{ .service = "demo.Versioned", .version = "1.0" },
		{ .service = "demo.Versioned", .group = "g" },
		{ .service = "demo.Versioned", .version = "2.0", .group = "g" },
	};
	struct stage *stage = stage_begin(state);
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

TEST(a_service_is_found_by_its_version_and_group)
{
	static const struct spoke_method_options versioned = {
		.service = "demo.Versioned",
		.version = "1.0",
		.group = "g",
	};
	static const char seen[] = "[\"demo.Versioned\", \"1.0\", \"g\", \"who\", true, 2, true]";
	struct stage *stage = stage_begin(state);
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

TEST(every_service_has_an_echo)
{
	struct stage *stage = stage_begin(state);

	stage_assert_text(stage_end_of(stage, stage_call(stage, stage_method(stage, "$echo"),
							 stage_text(stage, "here"))),
			  "here");
	assert_int_equal(stage->handled, 0);
}

TEST(a_generic_call_is_understood_as_the_call_it_stands_for)
{
	static const struct spoke_method_options generic = {
		.generic = true,
		.type_names = "java.lang.String,int",
	};
	struct stage *stage = stage_begin(state);
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

TEST(a_handler_sees_the_time_that_is_left)
{
	static const struct spoke_call_options options = { .timeout_ns = 5 * SECOND };
	struct stage *stage = stage_begin(state);
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
