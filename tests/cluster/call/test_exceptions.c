/* SPDX-License-Identifier: Apache-2.0 */
/* The exceptions of Java providers in results: class, message, causes and stack traces. */
#include "tests/cluster/javarig.h"
#include "tests/support/test.h"

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

FIXTURE(javarig_set_up, javarig_tear_down);

TEST(exception_of_java_has_causes_and_frames)
{
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

TEST(result_shows_class_and_code)
{
	call("throwBusiness");
	answer(SPAN("\x00\xafit.BizException\x82\xa7message\xa2no\xa4"
		    "code\x2a"));
	assert_int_equal(javarig.code, 42);
	assert_string_equal(javarig.exception, "it.BizException: no");
	starts_with(javarig.printed,
		    "the handler returned an error: it.BizException: \"no\" (code 42); written");
}

TEST(error_of_spoke_is_shown_without_class)
{
	call("fail");
	answer(SPAN("\x00\xd9!org.apache.dubbo.rpc.RpcException\x82\xa7message\xa2no\xa4"
		    "code\x2a"));
	starts_with(javarig.printed,
		    "the handler returned an error: \"no\" (code 42); written after ");
}

TEST(generic_exception_shows_exception_inside)
{
	call("throwBusiness");
	answer(SPAN("\x00\xd9.com.alibaba.dubbo.rpc.service.GenericException\x83\xa7message\xa3"
		    "all\xae"
		    "exceptionClass\xafit.BizException\xb0"
		    "exceptionMessage\xa2no"));
	assert_string_equal(javarig.exception, "it.BizException: no");
	starts_with(javarig.printed,
		    "the handler returned an error: it.BizException: \"no\"; written after ");
}

TEST(null_in_generic_exception_is_no_message)
{
	call("throwBusiness");
	answer(SPAN("\x00\xd9-org.apache.dubbo.rpc.service.GenericException\x83\xa7message\xafit."
		    "BizException\xae"
		    "exceptionClass\xafit.BizException\xb0"
		    "exceptionMessage\xc0"));
	assert_string_equal(javarig.exception, "it.BizException");
}

TEST(exception_without_message_has_class_only)
{
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

TEST(strange_fields_are_no_exception_of_their_own, .bare = true)
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

TEST(frame_with_strange_fields_is_unknown, .bare = true)
{
	struct spoke_result result = with_fields(
		SPAN("\x81\xaastackTrace\x93\x01\x82\xaalineNumber\xa1x\xaamethodName\x05\x82\xaa"
		     "lineNumber\xfe\xaamethodName\xa1m"));
	struct spoke_stack_frame frames[3];
	struct spoke_exception exception;
	char text[256];

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

TEST(result_without_exception_has_none, .bare = true)
{
	static const struct spoke_result lost = { .error = SPOKE_ELOST };
	struct spoke_exception exception;
	char text[8] = "x";

	assert_false(spoke_result_exception(&lost, 0, &exception));
	assert_int_equal(spoke_result_print_exception(&lost, 3, text, sizeof(text)), 0);
	assert_string_equal(text, "");
}

TEST(long_exception_is_cut_to_the_size, .bare = true)
{
	struct spoke_result result = remote;
	char whole[64];
	size_t len;

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
TEST(chain_of_causes_ends, .bare = true)
{
	static const char cause[] = "\x81\xa5"
				    "cause";
	char bytes[20 * (sizeof(cause) - 1) + 1];
	struct spoke_result result;
	struct spoke_exception exception;
	char text[512];
	size_t count = 0;

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
