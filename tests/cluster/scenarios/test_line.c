/* SPDX-License-Identifier: Apache-2.0 */
/* Calls, pushes and replies with arguments made in place, on every wire and codec. */
#include "tests/cluster/stage.h"
#include "tests/support/test.h"

#include <spoke/future.h>

#include <string.h>

#define LONG 3000u /* bytes of a text that does not fit on the stack */
#define TAIL "\";[1, [false]];"

static char long_text[LONG + 1];

static void print_args(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value;
	char text[2 * LONG] = "";
	size_t len = 0;

	(void)arg;
	while (spoke_cursor_next(&args, &value)) {
		len += spoke_value_print(value, text + len, sizeof(text) - len - 2);
		text[len++] = ';';
		text[len] = '\0';
	}
	SPOKE_REPLY(request, text);
}

static void reply_map(struct spoke_request *request, void *arg)
{
	(void)arg;
	SPOKE_REPLY(request, SPOKE_MAP("n", 5, "text", long_text));
}

static void reply_null(struct spoke_request *request, void *arg)
{
	const char *text = NULL;

	(void)arg;
	SPOKE_REPLY(request, text);
}

/* Takes a text, a number and a flag. */
static void read_three(struct spoke_request *request, void *arg)
{
	char name[8];
	uint16_t count;
	bool flag = false;

	(void)arg;
	if (SPOKE_READ_REQUEST(request, SPOKE_TEXT(name), &count, SPOKE_OPTIONAL(&flag)))
		return;
	SPOKE_REPLY(request, SPOKE_LIST(count, flag, name));
}

/* Takes a map. */
static void read_person(struct spoke_request *request, void *arg)
{
	struct spoke_reader reader = spoke_request_reader(request);
	struct spoke_span name;
	uint8_t age;

	(void)arg;
	if (SPOKE_READ_MAP(&reader, "name", &name, "age", &age))
		spoke_reply_unread(request, &reader);
	else
		spoke_reply_error(request, 7, "%.*s is %u", (int)name.len, (const char *)name.data,
				  age);
}

static void reply_long_error(struct spoke_request *request, void *arg)
{
	struct spoke_reader reader = spoke_request_reader(request);
	int before = 0;

	(void)arg;
	if (SPOKE_READ(&reader, &before))
		spoke_reply_error(request, 1, NULL);
	else /* the euro sign takes 3 bytes */
		spoke_reply_error(request, 1, "%.*s\xe2\x82\xac, and more", before, long_text);
}

static struct stage *begin(void **state)
{
	static const struct spoke_service_options service = { .name = "demo.Line" };
	static const struct spoke_handler handlers[] = {
		{ .method = "print", .handle = print_args },
		{ .method = "map", .handle = reply_map },
		{ .method = "null", .handle = reply_null },
		{ .method = "three", .handle = read_three },
		{ .method = "person", .handle = read_person },
		{ .method = "error", .handle = reply_long_error },
	};
	struct stage *stage = stage_begin(state);

	memset(long_text, 'x', LONG);
	assert_int_equal(spoke_provider_add(stage->provider, &service, handlers, LENGTH(handlers)),
			 0);
	return stage;
}

static struct spoke_method *method_of(struct stage *stage, const char *name)
{
	const struct spoke_method_options options = { .service = "demo.Line" };

	return stage_method_with(stage, name, &options);
}

struct ending {
	struct stage *stage;
	unsigned ends;
	int error;
	int32_t code;
	char text[2 * LONG]; /* of the value or the error */
};

static void end(void *arg, const struct spoke_result *result)
{
	struct ending *ending = arg;
	struct spoke_span text;

	ending->ends++;
	ending->error = result->error;
	ending->code = result->error_code;
	ending->text[0] = '\0';
	if (result->error_text.len > 0) {
		memcpy(ending->text, result->error_text.data, result->error_text.len);
		ending->text[result->error_text.len] = '\0';
	} else if (spoke_value_str(result->value, &text) == 0 && text.len < sizeof(ending->text)) {
		memcpy(ending->text, text.data, text.len);
		ending->text[text.len] = '\0';
	} else if (!result->error) {
		(void)spoke_value_print(result->value, ending->text, sizeof(ending->text));
	}
}

RUNNER(stage_run);

TEST(args_of_every_type_arrive)
{
	struct stage *stage = begin(state);
	struct spoke_method *print = method_of(stage, "print");
	static struct ending ending;

	ending.ends = 0;
	assert_int_equal(spoke_call_with(print, SPOKE_ARGS("world", 42, true, 0.5, SPOKE_NIL, -1L),
					 end, &ending),
			 0);
	stage_until(stage, &ending.ends, 1);
	assert_int_equal(ending.error, SPOKE_OK);
	assert_string_equal(ending.text, "\"world\";42;true;0.5;null;-1;");
}

TEST(call_without_args_has_none)
{
	struct stage *stage = begin(state);
	struct spoke_method *print = method_of(stage, "print");
	static struct ending ending;

	ending.ends = 0;
	assert_int_equal(spoke_call_with(print, SPOKE_NO_ARGS, end, &ending), 0);
	stage_until(stage, &ending.ends, 1);
	assert_string_equal(ending.text, "");
}

TEST(long_and_nested_args_arrive)
{
	struct stage *stage = begin(state);
	struct spoke_method *print = method_of(stage, "print");
	static struct ending ending;
	static char expected[2 * LONG];

	ending.ends = 0;
	assert_int_equal(spoke_call_with(print,
					 SPOKE_ARGS(long_text, SPOKE_LIST(1, SPOKE_LIST(false))),
					 end, &ending),
			 0);
	stage_until(stage, &ending.ends, 1);
	expected[0] = '"';
	memcpy(expected + 1, long_text, LONG);
	memcpy(expected + 1 + LONG, TAIL, sizeof(TAIL));
	assert_string_equal(ending.text, expected);
}

TEST(call_with_options_uses_them)
{
	static const struct spoke_call_options options = { .timeout_ns = 5 * MS };
	struct stage *stage = begin(state);
	struct spoke_method *later = stage_method(stage, "later");
	static struct ending ending;
	struct spoke_call call = { 0 };

	ending.ends = 0;
	assert_int_equal(spoke_call_args(later, SPOKE_ARGS("hold"), &options, end, &ending, &call),
			 0);
	assert_true(call.handle != 0);
	stage_until(stage, &ending.ends, 1);
	/* On a slow machine the time is over before the connection is made. */
	assert_true(ending.error == SPOKE_ETIMEOUT || ending.error == SPOKE_ETIMEOUT_UNSENT);
}

TEST(reply_of_a_map_arrives)
{
	struct stage *stage = begin(state);
	struct stage_call *call = stage_call(stage, method_of(stage, "map"), stage_no_args());
	const struct spoke_result *result = stage_end_of(stage, call);
	struct spoke_value value;
	struct spoke_span text;
	int32_t n = 0;

	assert_int_equal(result->error, SPOKE_OK);
	assert_int_equal(spoke_value_get(result->value, "n", &value), 0);
	assert_int_equal(spoke_value_i32(value, &n), 0);
	assert_int_equal(n, 5);
	assert_int_equal(spoke_value_get(result->value, "text", &value), 0);
	assert_int_equal(spoke_value_str(value, &text), 0);
	assert_int_equal(text.len, LONG);
}

TEST(reply_that_cannot_be_packed_is_an_error)
{
	struct stage *stage = begin(state);
	struct stage_call *call = stage_call(stage, method_of(stage, "null"), stage_no_args());

	assert_true(stage_end_of(stage, call)->error < 0);
}

TEST(args_that_cannot_be_packed_refuse_the_call)
{
	struct stage *stage = begin(state);
	struct spoke_method *print = method_of(stage, "print");
	uint64_t refused = stage_client_stat(stage, SPOKE_STAT_CALLS_REFUSED);
	const char *text = NULL;

	assert_int_equal(spoke_call_with(print, SPOKE_ARGS(text), NULL, NULL), SPOKE_EINVAL);
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_CALLS_REFUSED), refused + 1);
}

/* Calls a method and compares the text of its value or error. */
static void assert_answer(struct stage *stage, const char *method, struct spoke_args args,
			  int32_t code, const char *text)
{
	static struct ending ending;

	ending.ends = 0;
	assert_int_equal(spoke_call_with(method_of(stage, method), args, end, &ending), 0);
	stage_until(stage, &ending.ends, 1);
	assert_string_equal(ending.text, text);
	if (code == 0) {
		assert_int_equal(ending.error, SPOKE_OK);
		return;
	}
	assert_int_equal(ending.error, SPOKE_EREMOTE);
	if (stage->setting->dubbo) /* MessagePack-RPC has no codes */
		assert_int_equal(ending.code, code);
}

TEST(handler_reads_args_into_variables)
{
	struct stage *stage = begin(state);

	assert_answer(stage, "three", SPOKE_ARGS("Ann", 65535, true), 0, "[65535, true, \"Ann\"]");
	assert_answer(stage, "three", SPOKE_ARGS("Ann", 1), 0, "[1, false, \"Ann\"]");
}

TEST(unread_args_are_answered_with_a_sentence)
{
	struct stage *stage = begin(state);

	assert_answer(stage, "three", SPOKE_ARGS("Ann", "Bob"), SPOKE_ETYPE,
		      "argument 2: integer wanted, text came");
	assert_answer(stage, "three", SPOKE_ARGS("Ann", 65536), SPOKE_ERANGE,
		      "argument 2: integer from 0 to 65535 wanted, 65536 came");
	assert_answer(stage, "three", SPOKE_ARGS("Barbara!", 1), SPOKE_ERANGE,
		      "argument 1: text of at most 7 bytes wanted, 8 bytes came");
	assert_answer(stage, "three", SPOKE_ARGS("Ann", 1, true, 1), SPOKE_ETRAILING,
		      "3 arguments wanted, more came");
	assert_answer(stage, "three", SPOKE_NO_ARGS, SPOKE_ETRUNCATED,
		      "argument 1: text wanted, none came");
}

TEST(handler_reads_a_map_and_formats_an_error)
{
	struct stage *stage = begin(state);

	assert_answer(stage, "person", SPOKE_ARGS(SPOKE_MAP("age", 42, "name", "Ann")), 7,
		      "Ann is 42");
	assert_answer(stage, "person", SPOKE_ARGS(SPOKE_MAP("age", 256, "name", "Ann")),
		      SPOKE_ERANGE,
		      "argument 1, key \"age\": integer from 0 to 255 wanted, 256 came");
}

/* Cut before, in and after the character that no longer fits. */
TEST(long_error_text_is_cut_between_characters)
{
	struct stage *stage = begin(state);
	static char expected[SPOKE_ERROR_TEXT_MAX + 8];

	for (int before = (int)SPOKE_ERROR_TEXT_MAX - 5; before < (int)SPOKE_ERROR_TEXT_MAX + 2;
	     before++) {
		size_t len = (size_t)before;

		memset(expected, 0, sizeof(expected));
		memset(expected, 'x', len);
		memcpy(expected + len, "\xe2\x82\xac,", 4);
		if (len > SPOKE_ERROR_TEXT_MAX - 4)
			expected[len < SPOKE_ERROR_TEXT_MAX ? len : SPOKE_ERROR_TEXT_MAX - 1] =
				'\0';
		else
			expected[SPOKE_ERROR_TEXT_MAX - 1] = '\0';
		assert_answer(stage, "error", SPOKE_ARGS(before), 1, expected);
	}
	if (stage->setting->dubbo)
		assert_answer(stage, "error", SPOKE_ARGS("none"), 1, "");
}

BARE_STAGE_TEST(push_with_args_arrives)
{
	struct spoke_consumer_options options = { .handle = stage_handle, .handle_arg = stage };
	const struct spoke_method_options of = { .service = "demo.Line" };
	static struct ending ending;
	struct spoke_method *echo;
	struct spoke_peer peer;
	size_t count = 0;

	stage_provide(stage, NULL);
	stage_consume(stage, &options);
	stage_until_ready(stage, 1);
	stage_end_of(stage, stage_call(stage, stage_method(stage, "echo"), stage_no_args()));
	assert_int_equal(spoke_provider_peers(stage->provider, &peer, 1), 1);
	assert_int_equal(spoke_provider_method(stage->provider, "echo", &of, &echo), 0);
	ending.ends = 0;
	assert_int_equal(spoke_push_with(echo, peer, SPOKE_ARGS("news"), end, &ending), 0);
	stage_until(stage, &ending.ends, 1);
	assert_int_equal(ending.error, SPOKE_OK);
	assert_string_equal(ending.text, "news");
	assert_int_equal(spoke_push_all_with(echo, SPOKE_ARGS("to all"), &count), 0);
	assert_int_equal(count, 1);
	stage_until(stage, &stage->handled, 3);
}

TEST(future_with_args_ends)
{
	struct stage *stage = begin(state);
	struct spoke_method *print = method_of(stage, "print");
	static struct ending ending;
	struct spoke_future *future;
	const char *text = NULL;

	ending.ends = 0;
	assert_int_equal(spoke_future_start_with(print, SPOKE_ARGS("a", 1), &future), 0);
	assert_int_equal(spoke_future_then(future, end, &ending), 0);
	stage_until(stage, &ending.ends, 1);
	assert_string_equal(ending.text, "\"a\";1;");
	spoke_future_free(future);
	assert_int_equal(spoke_future_start_with(print, SPOKE_ARGS(text), &future), SPOKE_EINVAL);
	assert_int_equal(spoke_call_wait_with(print, SPOKE_ARGS(text), &future), SPOKE_EINVAL);
	assert_null(future);
}
