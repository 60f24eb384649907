/* SPDX-License-Identifier: Apache-2.0 */
/* The exceptions of Java providers in results: class, message, causes and stack traces. */
#include "tests/cluster/javarig.h"

#include <stdio.h>
#include <string.h>

#define SPAN(literal) spokei_span(literal, sizeof(literal) - 1)

/* What Jackson makes of an exception with a cause; the classes of causes are not sent. */
#define FRAME                                                                                      \
	"\x88\xaf"                                                                                 \
	"classLoaderName\xa3"                                                                      \
	"app\xaamoduleName\xc0\xadmoduleVersion\xc0\xaamethodName\xacthrowIllegal\xa8"             \
	"fileName\xac"                                                                             \
	"ApiImpl.java\xaalineNumber\x19\xa9"                                                       \
	"className\xaait.ApiImpl\xac"                                                              \
	"nativeMethod\xc2"
#define FRAMES "\xaastackTrace\x94" FRAME FRAME FRAME FRAME
#define CAUSE                                                                                      \
	"\x85\xa5"                                                                                 \
	"cause\xc0" FRAMES "\xa7message\xac"                                                       \
	"cause of bad\xaasuppressed\x90\xb0localizedMessage\xac"                                   \
	"cause of bad"
#define THROWN                                                                                     \
	"\x00\xd9\"java.lang.IllegalArgumentException\x85\xa5"                                     \
	"cause" CAUSE FRAMES "\xa7message\xa3"                                                     \
	"bad\xaasuppressed\x90\xb0localizedMessage\xa3"                                            \
	"bad"

/* The peer answers the last call. */
static void answer(struct spoke_span body)
{
	struct spokei_message request;

	assert_non_null(javarig_next(&request).data);
	javarig_frame(SPOKEI_CODEC_MSGPACK, 20, request.id, body);
	assert_int_equal(javarig.ends, 1);
}

static void call(const char *method)
{
	javarig_consume("");
	javarig_call(method, NULL, spokei_span(NULL, 0), NULL);
}

static void starts_with(const char *text, const char *start)
{
	if (strncmp(text, start, strlen(start)) != 0)
		fail_msg("\"%s\" does not start with \"%s\"", text, start);
}

static void exception_of_java_has_causes_and_frames(void **state)
{
	(void)state;
	call("throwIllegal");
	answer(SPAN(THROWN));
	assert_int_equal(javarig.error, SPOKE_EREMOTE);
	assert_int_equal(javarig.code, 0);
	assert_string_equal(javarig.exception, "java.lang.IllegalArgumentException: bad\n"
					       "\tat it.ApiImpl.throwIllegal(ApiImpl.java:25)\n"
					       "\tat it.ApiImpl.throwIllegal(ApiImpl.java:25)\n"
					       "\tat it.ApiImpl.throwIllegal(ApiImpl.java:25)\n"
					       "\t... 1 more\n"
					       "Caused by: exception: cause of bad\n"
					       "\tat it.ApiImpl.throwIllegal(ApiImpl.java:25)\n"
					       "\tat it.ApiImpl.throwIllegal(ApiImpl.java:25)\n"
					       "\tat it.ApiImpl.throwIllegal(ApiImpl.java:25)\n"
					       "\t... 1 more");
	starts_with(javarig.printed, "the handler returned an error: "
				     "java.lang.IllegalArgumentException: \"bad\"; written after ");
}

static void result_shows_class_and_code(void **state)
{
	(void)state;
	call("throwBusiness");
	answer(SPAN("\x00\xafit.BizException\x82\xa7message\xa2no\xa4"
		    "code\x2a"));
	assert_int_equal(javarig.code, 42);
	assert_string_equal(javarig.exception, "it.BizException: no");
	starts_with(javarig.printed,
		    "the handler returned an error: it.BizException: \"no\" (code 42); written");
}

static void error_of_spoke_is_shown_without_class(void **state)
{
	(void)state;
	call("fail");
	answer(SPAN("\x00\xd9!org.apache.dubbo.rpc.RpcException\x82\xa7message\xa2no\xa4"
		    "code\x2a"));
	starts_with(javarig.printed,
		    "the handler returned an error: \"no\" (code 42); written after ");
}

static void generic_exception_shows_exception_inside(void **state)
{
	(void)state;
	call("throwBusiness");
	answer(SPAN("\x00\xd9.com.alibaba.dubbo.rpc.service.GenericException\x83\xa7message\xa3"
		    "all\xae"
		    "exceptionClass\xafit.BizException\xb0"
		    "exceptionMessage\xa2no"));
	assert_string_equal(javarig.exception, "it.BizException: no");
	starts_with(javarig.printed,
		    "the handler returned an error: it.BizException: \"no\"; written after ");
}

static void null_in_generic_exception_is_no_message(void **state)
{
	(void)state;
	call("throwBusiness");
	answer(SPAN("\x00\xd9-org.apache.dubbo.rpc.service.GenericException\x83\xa7message\xafit."
		    "BizException\xae"
		    "exceptionClass\xafit.BizException\xb0"
		    "exceptionMessage\xc0"));
	assert_string_equal(javarig.exception, "it.BizException");
}

static void exception_without_message_has_class_only(void **state)
{
	(void)state;
	call("throwIllegal");
	answer(SPAN("\x00\xbejava.lang.NullPointerException\x81\xa7message\xc0"));
	assert_string_equal(javarig.exception, "java.lang.NullPointerException");
	starts_with(javarig.printed, "the handler returned an error: "
				     "java.lang.NullPointerException: \"\"; written after ");
}

/* --- values that no Java program sends */

static const struct spoke_result remote = { .error = SPOKE_EREMOTE };

static struct spoke_result with_fields(struct spoke_span fields)
{
	struct spoke_result result = remote;

	result.value = (struct spoke_value){ fields.data, fields.len };
	return result;
}

static void strange_fields_are_no_exception_of_their_own(void **state)
{
	static const struct spoke_span rows[] = {
		{ "\x81\xa5"
		  "cause\x01",
		  8 },
		{ "\x81\xa5"
		  "cause\x90",
		  8 },
		{ "\x81\xaastackTrace\x80", 13 },
		{ "\x81\xae"
		  "exceptionClass\x01",
		  17 },
		{ "\x90", 1 },
		{ "\xc0", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spoke_result result = with_fields(rows[i]);
		struct spoke_stack_frame frames[2];
		struct spoke_exception exception;

		assert_true(spoke_result_exception(&result, 0, &exception));
		assert_int_equal(exception.class_name.len, 0);
		assert_int_equal(exception.message.len, 0);
		assert_int_equal(spoke_exception_frames(&exception, frames, 2), 0);
		assert_false(spoke_result_exception(&result, 1, &exception));
	}
}

static void frame_with_strange_fields_is_unknown(void **state)
{
	struct spoke_result result = with_fields(
		SPAN("\x81\xaastackTrace\x93\x01\x82\xaalineNumber\xa1x\xaamethodName\x05\x82\xaa"
		     "lineNumber\xfe\xaamethodName\xa1m"));
	struct spoke_stack_frame frames[3];
	struct spoke_exception exception;
	char text[256];

	(void)state;
	assert_true(spoke_result_exception(&result, 0, &exception));
	assert_int_equal(spoke_exception_frames(&exception, frames, 3), 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(frames[i].class_name.len, 0);
		assert_int_equal(frames[i].file.len, 0);
		assert_int_equal(frames[i].line, i == 2 ? -2 : 0);
	}
	(void)spoke_result_print_exception(&result, 3, text, sizeof(text));
	assert_string_equal(text, "exception\n\tat .(Unknown Source)\n\tat .(Unknown Source)\n"
				  "\tat .m(Native Method)");
}

static void result_without_exception_has_none(void **state)
{
	static const struct spoke_result lost = { .error = SPOKE_ELOST };
	struct spoke_exception exception;
	char text[8] = "x";

	(void)state;
	assert_false(spoke_result_exception(&lost, 0, &exception));
	assert_int_equal(spoke_result_print_exception(&lost, 3, text, sizeof(text)), 0);
	assert_string_equal(text, "");
}

static void long_exception_is_cut_to_the_size(void **state)
{
	struct spoke_result result = remote;
	char whole[64];
	size_t len;

	(void)state;
	result.error_class = SPAN("it.BizException");
	result.error_text = SPAN("no\nmoney");
	len = spoke_result_print_exception(&result, 3, whole, sizeof(whole));
	assert_int_equal(len, strlen(whole));
	assert_string_equal(whole, "it.BizException: no\\x0amoney");
	for (size_t size = 0; size <= len; size++) {
		char text[64] = "?";

		assert_int_equal(spoke_result_print_exception(&result, 3, text, size), len);
		if (size > 0) {
			assert_int_equal(strlen(text), size - 1);
			assert_memory_equal(text, whole, size - 1);
		}
	}
}

/* Each cause is inside the one before, up to the greatest depth of a value. */
static void chain_of_causes_ends(void **state)
{
	static const char cause[] = "\x81\xa5"
				    "cause";
	char bytes[20 * (sizeof(cause) - 1) + 1];
	struct spoke_result result;
	struct spoke_exception exception;
	char text[512];
	size_t count = 0;

	(void)state;
	for (size_t i = 0; i < 20; i++)
		memcpy(bytes + i * (sizeof(cause) - 1), cause, sizeof(cause) - 1);
	bytes[sizeof(bytes) - 1] = '\xc0';
	result = with_fields(spokei_span(bytes, sizeof(bytes)));
	while (spoke_result_exception(&result, count, &exception))
		count++;
	assert_int_equal(count, 20);
	assert_int_equal(spoke_result_print_exception(&result, 3, text, sizeof(text)),
			 strlen("exception") + 16 * strlen("\nCaused by: exception"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, javarig_set_up, javarig_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(exception_of_java_has_causes_and_frames),
		TEST(result_shows_class_and_code),
		TEST(error_of_spoke_is_shown_without_class),
		TEST(generic_exception_shows_exception_inside),
		TEST(null_in_generic_exception_is_no_message),
		TEST(exception_without_message_has_class_only),
		cmocka_unit_test(strange_fields_are_no_exception_of_their_own),
		cmocka_unit_test(frame_with_strange_fields_is_unknown),
		cmocka_unit_test(result_without_exception_has_none),
		cmocka_unit_test(long_exception_is_cut_to_the_size),
		cmocka_unit_test(chain_of_causes_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
