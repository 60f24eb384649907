/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of providers in Java: serializations, bytes of Dubbo 2.7.23, exceptions. */
#define _GNU_SOURCE
#include "cluster/call/method.h"
#include "tests/cluster/endpoints/dirrig.h"
#include "tests/cluster/javarig.h"
#include "tests/support/test.h"
#include "transport/codec/codec.h"

#include <stdio.h>
#include <string.h>

/* --- calls of a provider in Java over Hessian 2: the bytes of Dubbo 2.7.23 */

#define SPAN(literal) spokei_span(literal, sizeof(literal) - 1)

enum {
	/* Numbers of recorded frames. */
	BUSINESS = 207,
	RUNTIME = 209,
	ILLEGAL = 211,
	RPC = 213,
	ATTACHMENTS = 215,
	ECHO = 217,
	GENERIC = 219,
	GENERIC_BUSINESS = 221,
};

static void starts_with(const char *text, const char *start)
{
	if (strncmp(text, start, strlen(start)) != 0)
		fail_msg("\"%s\" does not start with \"%s\"", text, start);
}

static void contains(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

/* Calls a method with a text, and plays a recorded reply. */
static void call(const char *method, unsigned reply)
{
	struct spokei_message request;

	javarig_consume("&serialization=hessian2");
	javarig_call(method, NULL, SPAN("\xa1x"), NULL);
	assert_non_null(javarig_next(&request).data);
	assert_int_equal(request.codec, SPOKEI_CODEC_HESSIAN2);
	javarig_send(javarig_recorded(reply));
	assert_int_equal(javarig.ends, 1);
}

FIXTURE(javarig_set_up, javarig_tear_down);

TEST(business_exception_has_class_text_and_code)
{
	call("throwBusiness", BUSINESS);
	assert_int_equal(javarig.error, SPOKE_EREMOTE);
	assert_int_equal(javarig.code, 42);
	assert_string_equal(
		javarig.exception,
		"it.BizException: no money\n"
		"\tat it.ApiImpl.throwBusiness(ApiImpl.java:23)\n"
		"\tat org.apache.dubbo.common.bytecode.Wrapper1.invokeMethod(Wrapper1.java)\n"
		"\tat org.apache.dubbo.rpc.proxy.javassist.JavassistProxyFactory$1.doInvoke("
		"JavassistProxyFactory.java:47)\n"
		"\t... 27 more");
	starts_with(javarig.printed, "the handler returned an error: it.BizException: \"no "
				     "money\" (code 42); written after ");
}

TEST(runtime_exception_has_no_code_and_no_cause)
{
	call("throwRuntime", RUNTIME);
	assert_int_equal(javarig.code, 0);
	starts_with(javarig.exception, "java.lang.RuntimeException: boom\n\tat it.ApiImpl.");
	assert_null(strstr(javarig.exception, "Caused by"));
}

TEST(cause_of_exception_has_class_text_and_frames)
{
	call("throwIllegal", ILLEGAL);
	starts_with(javarig.exception, "java.lang.IllegalArgumentException: bad\n"
				       "\tat it.ApiImpl.throwIllegal(ApiImpl.java:25)\n");
	contains(javarig.exception, "\nCaused by: java.lang.RuntimeException: cause of bad\n"
				    "\tat it.ApiImpl.throwIllegal(ApiImpl.java:25)\n");
}

TEST(rpc_exception_of_java_has_text_and_code)
{
	call("throwIllegal", RPC);
	assert_int_equal(javarig.code, 42);
	starts_with(javarig.exception, "org.apache.dubbo.rpc.RpcException: thrown by java\n\tat ");
}

TEST(generic_exception_shows_exception_of_handler)
{
	call("throwBusiness", GENERIC_BUSINESS);
	assert_int_equal(javarig.error, SPOKE_EREMOTE);
	starts_with(javarig.exception, "it.BizException: g\n\tat ");
	starts_with(javarig.printed,
		    "the handler returned an error: it.BizException: \"g\"; written after ");
}

TEST(attachments_of_reply_are_texts_and_objects)
{
	call("attachments", ATTACHMENTS);
	assert_int_equal(javarig.error, SPOKE_OK);
	assert_string_equal(javarig.attached, "{\"from-java\": \"yes\", \"dubbo\": \"2.0.2\", "
					      "\"from-java-int\": 7}");
	contains(javarig.value, "\"obj\": \"HashMap:{a=1}\"");
}

TEST(echo_returns_its_argument)
{
	call("$echo", ECHO);
	assert_string_equal(javarig.value, "\"OK\"");
}

/* The bytes up to the attachments are those of Java's own request. */
TEST(generic_call_is_written_as_java_does)
{
	static const struct spoke_method_options options = {
		.generic = true,
		.type_names = "it.Person",
	};
	struct spoke_span java = javarig_recorded(218);
	struct spokei_message request;
	struct spoke_span ours;
	size_t len;

	javarig_consume("&serialization=hessian2");
	javarig_call("echoPerson", &options,
		     SPAN("\x82\xa4name\xa1G\xa3"
			  "age\x03"),
		     NULL);
	ours = javarig_next(&request);
	assert_non_null(ours.data);
	/* The attachments begin with 'H', path. */
	len = (size_t)((const char *)memmem(java.data, java.len, "H\x04path", 6) -
		       (const char *)java.data);
	assert_memory_equal((const char *)ours.data + JAVA_HEAD,
			    (const char *)java.data + JAVA_HEAD, len - JAVA_HEAD);
	javarig_send(javarig_recorded(GENERIC));
	assert_int_equal(javarig.error, SPOKE_OK);
	contains(javarig.value, "\"class\": \"it.Person\"");
	contains(javarig.value, "\"name\": \"G\"");
}

TEST(attachments_of_call_are_texts_objects_and_nulls)
{
	static const struct spoke_call_options with = {
		.attachments = { (const unsigned char *)"\x84\xa4user\xa1u\xa3num\x05\xa3obj\x81"
							"\xa1"
							"a\x01\xa4none\xc0",
				 27 },
	};
	struct spokei_message request;
	char text[256];

	javarig_consume("&serialization=hessian2");
	javarig_call("attachments", NULL, SPAN("\xa1x"), &with);
	assert_non_null(javarig_next(&request).data);
	(void)spoke_value_print(request.attachments, text, sizeof(text));
	starts_with(text, "{\"user\": \"u\", \"num\": 5, \"obj\": {\"a\": 1}, \"none\": null");
	contains(text, "\"timeout\": \"1000\"");
	javarig_send(javarig_recorded(ATTACHMENTS));
	assert_int_equal(javarig.error, SPOKE_OK);
}

/* A thousand objects of one flag, 2 bytes each, which stand for 100. */
static size_t write_flags(unsigned char *body)
{
	static const char begin[] = "\x91"
				    "C\x30\x3c"
				    "it.orders.model.warehouse.StateOfAnArticleInOneOfTheirStores"
				    "\x91\x1e"
				    "hasBeenReservedByACustomerToday"
				    "X\xcb\xe8";
	size_t len = sizeof(begin) - 1;

	memcpy(body, begin, len);
	for (unsigned i = 0; i < 1000; i++) {
		body[len++] = 0x60;
		body[len++] = 'T';
	}
	return len;
}

TEST(any_number_of_replies_may_repeat_names_of_classes)
{
	unsigned char body[4096];
	size_t len = write_flags(body);
	struct spokei_message request;

	javarig_consume("&serialization=hessian2");
	for (unsigned i = 1; i <= 20; i++) {
		javarig_call("flags", NULL, SPAN("\xa1x"), NULL);
		assert_non_null(javarig_next(&request).data);
		javarig_frame(2, 20, javarig.asked, spokei_span(body, len));
		assert_int_equal(javarig.ends, i);
		assert_int_equal(javarig.error, SPOKE_OK);
	}
}

/* --- the exceptions of Java providers in results: class, message, causes and stack traces */

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

static void exceptions_call(const char *method)
{
	javarig_consume("");
	javarig_call(method, NULL, spokei_span(NULL, 0), NULL);
}

TEST(exception_of_java_has_causes_and_frames)
{
	exceptions_call("throwIllegal");
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
	exceptions_call("throwBusiness");
	answer(SPAN("\x00\xafit.BizException\x82\xa7message\xa2no\xa4"
		    "code\x2a"));
	assert_int_equal(javarig.code, 42);
	assert_string_equal(javarig.exception, "it.BizException: no");
	starts_with(javarig.printed,
		    "the handler returned an error: it.BizException: \"no\" (code 42); written");
}

TEST(error_of_spoke_is_shown_without_class)
{
	exceptions_call("fail");
	answer(SPAN("\x00\xd9!org.apache.dubbo.rpc.RpcException\x82\xa7message\xa2no\xa4"
		    "code\x2a"));
	starts_with(javarig.printed,
		    "the handler returned an error: \"no\" (code 42); written after ");
}

TEST(generic_exception_shows_exception_inside)
{
	exceptions_call("throwBusiness");
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
	exceptions_call("throwBusiness");
	answer(SPAN("\x00\xd9-org.apache.dubbo.rpc.service.GenericException\x83\xa7message\xafit."
		    "BizException\xae"
		    "exceptionClass\xafit.BizException\xb0"
		    "exceptionMessage\xc0"));
	assert_string_equal(javarig.exception, "it.BizException");
}

TEST(exception_without_message_has_class_only)
{
	exceptions_call("throwIllegal");
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

/*
 * --- the serialization of requests: what the provider's URL asks for, and what the consumer
 * sets
 */

#define HESSIAN2 SPOKEI_CODEC_HESSIAN2
#define MSGPACK SPOKEI_CODEC_MSGPACK

static const struct spoke_consumer_options presets;

/* Lists the provider with these parameters, and makes a call. Returns the codec of its request. */
static uint8_t codec_with(const char *parameters)
{
	char url[256];

	(void)snprintf(url, sizeof(url), "%s%s", A, parameters);
	LIST(url);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), 0);
	return dirrig.echo->request.codec;
}

static void start(const char *parameters, const struct spoke_consumer_options *options)
{
	dirrig_start(0);
	dirrig_consume(parameters, options);
	dirrig_beat(MS);
}

FIXTURE(dirrig_set_up, dirrig_tear_down);

TEST(requests_use_serialization_of_provider_url)
{
	static const struct row {
		const char *parameters;
		uint8_t codec;
	} rows[] = {
		{ "?serialization=hessian2", HESSIAN2 },
		{ "?serialization=msgpack", MSGPACK },
		{ "?serialization=hessian2&prefer.serialization=msgpack,hessian2", MSGPACK },
		{ "?prefer.serialization=hessian2,msgpack", HESSIAN2 },
		{ "?prefer.serialization=hessian2,msgpack&spoke.serialization=msgpack", MSGPACK },
		{ "?serialization=msgpack&prefer.serialization=hessian2", HESSIAN2 },
		{ "?prefer.serialization=fastjson2,hessian2", HESSIAN2 },
		{ "?prefer.serialization=hessian2,fastjson2", HESSIAN2 },
		{ "?prefer.serialization=kryo,%20msgpack", MSGPACK },
		{ "?prefer.serialization=fastjson2&serialization=msgpack", MSGPACK },
		{ "?prefer.serialization=,,&serialization=hessian2", HESSIAN2 },
	};

	start("", &presets);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (codec_with(rows[i].parameters) != rows[i].codec)
			fail_msg("%s: codec %u", rows[i].parameters, dirrig.echo->request.codec);
}

TEST(unknown_serializations_count_as_unset)
{
	static const char *const unknown[] = {
		"?serialization=fastjson2",
		"?serialization=auto",
		"?serialization=HESSIAN2",
		"?serialization=msgpackx&prefer.serialization=msg,hessian",
		"?prefer.serialization=",
	};

	start("", &presets);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_int_equal(codec_with(unknown[i]), HESSIAN2);
}

TEST(requests_use_hessian2_where_nothing_is_set)
{
	const struct spoke_consumer_options direct = { .url = A };
	const struct spoke_span none = { NULL, 0 };
	struct spoke_consumer *consumer;
	struct spoke_method *echo;

	start("", &presets);
	assert_int_equal(codec_with(""), HESSIAN2);
	assert_int_equal(spoke_consumer_new(dirrig.engine, &direct, &consumer), 0);
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &echo), 0);
	assert_int_equal(spoke_call(echo, none, NULL, NULL, NULL, NULL), 0);
	assert_int_equal(echo->request.codec, HESSIAN2);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_served(0), 2);
	spoke_consumer_free(consumer);
}

TEST(application_is_sent_in_hessian2_only)
{
	const struct spoke_consumer_options options = { .application = "shop" };

	start("", &options);
	assert_int_equal(codec_with("?serialization=hessian2"), HESSIAN2);
	assert_non_null(strstr(dirrig.sides[0].attachments, "\"remote.application\": \"shop\""));
	assert_int_equal(codec_with("?serialization=msgpack"), MSGPACK);
	assert_null(strstr(dirrig.sides[0].attachments, "application"));
}

TEST(application_that_is_not_set_is_not_sent)
{
	start("", &presets);
	assert_int_equal(codec_with("?serialization=hessian2"), HESSIAN2);
	assert_null(strstr(dirrig.sides[0].attachments, "application"));
}

TEST(setting_of_consumer_overrides_provider_url)
{
	start("?serialization=msgpack", &presets);
	assert_int_equal(codec_with("?serialization=hessian2"), MSGPACK);
	assert_int_equal(codec_with("?prefer.serialization=hessian2"), MSGPACK);
}

TEST(setting_of_method_overrides_that_of_consumer)
{
	start("?serialization=msgpack&echo.serialization=hessian2", &presets);
	assert_int_equal(codec_with("?serialization=msgpack"), HESSIAN2);
}

TEST(auto_of_method_follows_provider_again)
{
	start("?serialization=msgpack&echo.serialization=auto", &presets);
	assert_int_equal(codec_with("?serialization=hessian2"), HESSIAN2);
	assert_int_equal(codec_with("?serialization=msgpack"), MSGPACK);
}

TEST(options_override_url)
{
	const struct spoke_consumer_options options = { .serialization = SPOKE_SERIALIZATION_AUTO };
	const struct spoke_method_options method = { .serialization = SPOKE_SERIALIZATION_MSGPACK };

	start("?serialization=msgpack", &options);
	assert_int_equal(codec_with("?serialization=hessian2"), HESSIAN2);
	assert_int_equal(spoke_consumer_method(dirrig.consumer, "echo", &method, &dirrig.echo), 0);
	assert_int_equal(codec_with("?serialization=hessian2"), MSGPACK);
}

TEST(options_outside_enum_are_rejected)
{
	const struct spoke_consumer_options options = {
		.url = A,
		.serialization = (enum spoke_serialization)99,
	};
	const struct spoke_method_options method = {
		.serialization = (enum spoke_serialization)99
	};
	struct spoke_consumer *consumer;
	struct spoke_method *echo;

	dirrig_consume("", &presets);
	assert_int_equal(spoke_consumer_new(dirrig.engine, &options, &consumer), SPOKE_EINVAL);
	assert_int_equal(spoke_consumer_method(dirrig.consumer, "echo", &method, &echo),
			 SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(dirrig.engine), "serialization=99"));
}

TEST(each_provider_gets_its_own_serialization)
{
	unsigned seen[32] = { 0 };

	dirrig_start(1);
	start("", &presets);
	LIST(A "?serialization=msgpack", B "?serialization=hessian2");
	dirrig_pass(10 * MS);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(dirrig_call(), 0);
		seen[dirrig.echo->request.codec]++;
	}
	assert_int_equal(seen[MSGPACK], 2);
	assert_int_equal(seen[HESSIAN2], 2);
}
