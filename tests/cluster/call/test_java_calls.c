/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a provider in Java over Hessian 2: the bytes of Dubbo 2.7.23. */
#define _GNU_SOURCE
#include "tests/cluster/javarig.h"
#include "tests/support/test.h"

#include <string.h>

#define SPAN(literal) spokei_span(literal, sizeof(literal) - 1)
#define NONE spokei_span(NULL, 0)

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
