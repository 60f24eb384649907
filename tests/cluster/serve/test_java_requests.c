/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of consumers in Java, and their exceptions. */
#include "tests/cluster/javarig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

/*
 * --- requests of a Java consumer over Hessian 2: the bytes of Dubbo 2.7.23, and what it gets
 */

#define SPAN(literal) spokei_span(literal, sizeof(literal) - 1)

enum {
	/* Numbers of recorded frames. */
	NOTHING = 202,
	MANY = 204,
	BUSINESS = 206,
	RUNTIME = 208,
	ATTACHMENTS = 214,
	ECHO = 216,
	GENERIC = 218,
	GENERIC_BUSINESS = 220,
	OTHER_VERSION = 222,
};

static char seen[1024];

static char types[256];

static char attached[512];

static struct spoke_request *held;

static bool later;

static bool as_person;

static struct spoke_value person(void)
{
	static const unsigned char map[] = "\x82\xa4name\xa1G\xa5"
					   "class\xa9it.Person";

	return (struct spoke_value){ map, sizeof(map) - 1 };
}

/* Returns the marker of a reply, then bytes. */
static struct spoke_span joined(const char *marker, const char *bytes, size_t len)
{
	static char all[256];

	all[0] = marker[0];
	memcpy(all + 1, bytes, len);
	return spokei_span(all, 1 + len);
}

static bool is(struct spoke_span span, const char *text)
{
	return span.len == strlen(text) && memcmp(span.data, text, span.len) == 0;
}

static void print_args(const struct spoke_request *request)
{
	struct spoke_span method = spoke_request_method(request);
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value;
	size_t len = (size_t)snprintf(seen, sizeof(seen), "%.*s", (int)method.len,
				      (const char *)method.data);

	while (spoke_cursor_next(&args, &value)) {
		seen[len++] = ' ';
		len += spoke_value_print(value, seen + len, sizeof(seen) - len);
	}
	(void)spoke_value_print(spoke_request_attachments(request), attached, sizeof(attached));
	(void)spoke_request_types(request, types, sizeof(types));
}

static void answer(struct spoke_request *request, void *arg)
{
	static const unsigned char map[] = "\x83\xa9"
					   "from-java\xa3yes\xa3num\x07\xa4none\xc0";
	const struct spoke_value none = { NULL, 0 };

	(void)arg;
	print_args(request);
	held = request;
	if (later)
		return;
	if (as_person)
		spoke_reply(request, person());
	else if (is(spoke_request_method(request), "throwBusiness"))
		spoke_reply_exception(request, "it.BizException", 42, "no money", none);
	else if (is(spoke_request_method(request), "throwRuntime"))
		spoke_reply_error(request, 42, "no money");
	else if (is(spoke_request_method(request), "attachments"))
		spoke_reply_with(request, none, (struct spoke_value){ map, sizeof(map) - 1 });
	else
		spoke_reply(request, none);
}

static void play(unsigned number)
{
	static const struct spoke_handler handler = { .handle = answer };

	seen[0] = '\0';
	if (javarig.provider == NULL)
		javarig_provide(&handler, 1);
	javarig_send(javarig_recorded(number));
}

/* Expects an exception as a Java consumer reads it: its class, its fields. */
static void expect_exception(const char *class_name, const char *fields)
{
	struct spokei_message message;
	char text[512];

	assert_non_null(javarig_next(&message).data);
	assert_int_equal(message.codec, SPOKEI_CODEC_HESSIAN2);
	assert_int_equal(message.status, 20);
	assert_int_equal(message.error, SPOKE_EREMOTE);
	assert_true(is(message.error_class, class_name));
	(void)spoke_value_print(message.value, text, sizeof(text));
	assert_string_equal(text, fields);
}

TEST(arguments_of_each_type_reach_the_handler)
{
	play(MANY);
	assert_string_equal(seen, "many \"a\" 1 2 3.5 true [\"x\"] {\"k\": \"v\"} \"h\"");
	assert_string_equal(types, "Ljava/lang/String;IJDZLjava/util/List;Ljava/util/Map;"
				   "Ljava/lang/String;");
	javarig_expect_body(SPAN("\x92"));
}

TEST(echo_is_answered_in_hessian2)
{
	play(ECHO);
	javarig_expect_body(SPAN("\x91\x02OK"));
}

TEST(exception_of_named_class_is_an_object_of_it)
{
	play(BUSINESS);
	javarig_expect_body(SPAN("\x90"
				 "C\x0fit.BizException\x92\x0d"
				 "detailMessage\x04"
				 "code`\x08no money\xba"));
	play(BUSINESS);
	expect_exception("it.BizException", "{\"message\": \"no money\", \"code\": 42}");
}

TEST(error_is_a_runtime_exception_with_its_code)
{
	play(RUNTIME);
	javarig_expect_body(SPAN("\x90"
				 "C\x1ajava.lang.RuntimeException\x91\x0d"
				 "detailMessage`\x12no money (code 42)"));
}

TEST(generic_call_gets_generic_exception)
{
	play(GENERIC_BUSINESS);
	assert_string_equal(seen, "throwBusiness \"g\"");
	assert_string_equal(types, "Ljava/lang/String;");
	expect_exception("org.apache.dubbo.rpc.service.GenericException",
			 "{\"message\": \"it.BizException: no money (code 42)\", "
			 "\"exceptionMessage\": \"no money (code 42)\", "
			 "\"exceptionClass\": \"it.BizException\"}");
}

TEST(generic_call_reaches_handler_of_its_method)
{
	play(GENERIC);
	assert_string_equal(seen, "echoPerson {\"name\": \"G\", \"age\": 3}");
	assert_string_equal(types, "Lit/Person;");
	javarig_expect_body(SPAN("\x92"));
}

/* Maps with a class are objects of it, but maps in the reply to a generic call. */
TEST(class_in_reply_to_generic_call_is_a_field)
{
	static const char map[] = "H\x04name\x01G\x05"
				  "class\x09it.PersonZ";
	static const char object[] = "C\x09it.Person\x91\x04name`\x01G";

	as_person = true;
	play(GENERIC);
	javarig_expect_body(joined("\x91", map, sizeof(map) - 1));
	play(NOTHING);
	javarig_expect_body(joined("\x91", object, sizeof(object) - 1));
	later = true;
	play(GENERIC);
	spoke_reply(held, person());
	javarig_expect_body(joined("\x91", map, sizeof(map) - 1));
	play(NOTHING);
	spoke_reply(held, person());
	javarig_expect_body(joined("\x91", object, sizeof(object) - 1));
}

TEST(attachments_are_texts_objects_and_nulls)
{
	play(ATTACHMENTS);
	assert_string_equal(attached, "{\"path\": \"it.Api\", \"remote.application\": \"jgold\", "
				      "\"obj\": {\"a\": 1}, \"num\": 5, \"interface\": \"it.Api\", "
				      "\"user\": \"u\", \"version\": \"0.0.0\"}");
	javarig_expect_body(SPAN("\x95H\x09"
				 "from-java\x03yes\x03num\x97\x04noneN\x05"
				 "dubbo\x05"
				 "2.0.2Z"));
}

TEST(request_of_other_version_finds_no_service)
{
	struct spokei_message message;

	play(OTHER_VERSION);
	assert_string_equal(seen, "");
	assert_non_null(javarig_next(&message).data);
	assert_int_equal(message.status, 60);
	assert_int_equal(message.codec, SPOKEI_CODEC_HESSIAN2);
	assert_true(message.error_text.len > 0);
}

TEST(one_way_request_is_served_without_an_answer)
{
	struct spoke_span frame = javarig_recorded(NOTHING);
	unsigned char bytes[512];
	struct spokei_message message;

	assert_true(frame.len <= sizeof(bytes));
	play(NOTHING);
	javarig_expect_body(SPAN("\x92"));
	frame = javarig_recorded(NOTHING);
	memcpy(bytes, frame.data, frame.len);
	bytes[2] &= (unsigned char)~0x40u;
	seen[0] = '\0';
	javarig_send(spokei_span(bytes, frame.len));
	assert_string_equal(seen, "nothing \"x\"");
	assert_null(javarig_next(&message).data);
}

static int set_up(void **state)
{
	later = false;
	as_person = false;
	return javarig_set_up(state);
}

FIXTURE(set_up, javarig_tear_down);

/* --- the errors of a provider as the callers receive them: Java's consumers, and spoke's */

/* The attachments of a Java consumer, and of one of spoke. */
#define JAVA                                                                                       \
	"\x84\xa4path\xa6it.Api\xb2remote.application\xa5jgold\xa9interface\xa6it.Api\xa7"         \
	"version\xa5"                                                                              \
	"0.0.0"
#define SPOKE                                                                                      \
	"\x81\xa7timeout\xa4"                                                                      \
	"1000"
#define REQUEST(method)                                                                            \
	"\xa5"                                                                                     \
	"2.0.2\xa6it.Api\xa5"                                                                      \
	"0.0.0" method "\xa0"
static void fail_now(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply_error(request, 42, "no money");
}

static void hold(struct spoke_request *request, void *arg)
{
	(void)arg;
	held = request;
}

static void keep(struct spoke_request *request, void *arg)
{
	assert_int_equal(spoke_request_keep(request), 0);
	hold(request, arg);
}

static void throw_biz(struct spoke_request *request, void *arg)
{
	static const unsigned char fields[] = "\x81\xa5order\x07";

	(void)arg;
	spoke_reply_exception(request, "it.BizException", 42, "no money",
			      (struct spoke_value){ fields, sizeof(fields) - 1 });
}

static void throw_bad_fields(struct spoke_request *request, void *arg)
{
	static const unsigned char fields[] = "\x81\x01\x01";

	(void)arg;
	spoke_reply_exception(request, "it.BizException", 42, "no money",
			      (struct spoke_value){ fields, sizeof(fields) - 1 });
}

static void throw_null(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply_exception(request, "it.BizException", 0, NULL, (struct spoke_value){ NULL, 0 });
}

static const struct spoke_handler handlers[] = {
	{ .method = "fail", .handle = fail_now },
	{ .method = "hold", .handle = hold },
	{ .method = "keep", .handle = keep },
	{ .method = "biz", .handle = throw_biz },
	{ .method = "bad", .handle = throw_bad_fields },
	{ .method = "null", .handle = throw_null },
	{ .method = "pool", .handle = throw_null, .flags = SPOKE_HANDLER_POOL },
};

static void ask(const char *request, size_t len)
{
	javarig_frame(JAVA_TWO_WAY | SPOKEI_CODEC_MSGPACK, 0, 7, spokei_span(request, len));
}

#define ASK(method, attachments)                                                                   \
	ask(REQUEST(method) attachments, sizeof(REQUEST(method) attachments) - 1)
#define EXCEPTIONS_RUNTIME(text) "\x00\xbajava.lang.RuntimeException\x81\xa7message" text
#define RPC                                                                                        \
	"\x00\xd9!org.apache.dubbo.rpc.RpcException\x82\xa7message\xa8no money\xa4"                \
	"code\x2a"
FIXTURE(javarig_set_up, javarig_tear_down);

TEST(error_shows_java_its_text_and_code)
{
	javarig_provide(handlers, LENGTH(handlers));
	ASK("\xa4"
	    "fail",
	    JAVA);
	javarig_expect_body(SPAN(EXCEPTIONS_RUNTIME("\xb2no money (code 42)")));
}

TEST(error_shows_spoke_its_text_and_code_exactly)
{
	javarig_provide(handlers, LENGTH(handlers));
	ASK("\xa4"
	    "fail",
	    SPOKE);
	javarig_expect_body(SPAN(RPC));
}

/* The request and its attachments are gone when the handler answers. */
TEST(late_error_has_form_of_its_caller)
{
	javarig_provide(handlers, LENGTH(handlers));
	for (unsigned round = 0; round < 2; round++) {
		ASK("\xa4hold", JAVA);
		spoke_reply_error(held, 42, "no money");
		javarig_expect_body(SPAN(EXCEPTIONS_RUNTIME("\xb2no money (code 42)")));
		ASK("\xa4hold", SPOKE);
		spoke_reply_error(held, 42, "no money");
		javarig_expect_body(SPAN(RPC));
		ASK("\xa4keep", JAVA);
		spoke_reply_error(held, 42, "no money");
		javarig_expect_body(SPAN(EXCEPTIONS_RUNTIME("\xb2no money (code 42)")));
	}
}

/* Of such a request only the names are kept, for the filter. */
TEST(late_error_has_form_of_its_caller_after_filter)
{
	javarig_provide_filtered(handlers, LENGTH(handlers));
	ASK("\xa4hold", JAVA);
	spoke_reply_error(held, 42, "no money");
	javarig_expect_body(SPAN(EXCEPTIONS_RUNTIME("\xb2no money (code 42)")));
	ASK("\xa4hold", SPOKE);
	spoke_reply_error(held, 42, "no money");
	javarig_expect_body(SPAN(RPC));
}

TEST(handler_names_class_and_fields)
{
	javarig_provide(handlers, LENGTH(handlers));
	ASK("\xa3"
	    "biz",
	    JAVA);
	javarig_expect_body(SPAN("\x00\xafit.BizException\x83\xa7message\xa8no money\xa4"
				 "code\x2a\xa5order\x07"));
	ASK("\xa3"
	    "biz",
	    SPOKE);
	javarig_expect_body(SPAN("\x00\xafit.BizException\x83\xa7message\xa8no money\xa4"
				 "code\x2a\xa5order\x07"));
}

TEST(null_message_stays_null)
{
	javarig_provide(handlers, LENGTH(handlers));
	ASK("\xa4null", JAVA);
	javarig_expect_body(SPAN("\x00\xafit.BizException\x81\xa7message\xc0"));
	ASK("\xa4pool", JAVA);
	javarig_expect_body(SPAN("\x00\xafit.BizException\x81\xa7message\xc0"));
}

/* Counts the events that name a class, and copies the last one. */
static unsigned count_told(struct spoke_event *last)
{
	struct spoke_event event = { 0 };
	unsigned count = 0;

	while (spoke_event_get(javarig.engine, event.number + 1, &event) == 0) {
		if (strstr(event.text, " throws ") == NULL)
			continue;
		*last = event;
		count++;
	}
	return count;
}

TEST(class_of_its_own_is_told_once_for_each_method)
{
	struct spoke_event last;

	javarig_provide(handlers, LENGTH(handlers));
	ASK("\xa3"
	    "biz",
	    SPOKE);
	ASK("\xa4"
	    "fail",
	    JAVA);
	assert_int_equal(count_told(&last), 0);
	for (unsigned round = 0; round < 2; round++) {
		ASK("\xa3"
		    "biz",
		    JAVA);
		assert_int_equal(count_told(&last), 1 + round);
		ASK("\xa4pool", JAVA);
		assert_int_equal(count_told(&last), 2);
	}
	assert_string_equal(last.text, "\"it.Api\" pool throws it.BizException: unless Java's "
				       "interface or serialize.allowlist names it, callers see "
				       "RpcException and retry (set retries=0)");
}

TEST(bad_fields_are_replaced_with_an_error)
{
	javarig_provide(handlers, LENGTH(handlers));
	ASK("\xa3"
	    "bad",
	    JAVA);
	javarig_expect_text(25, spoke_strerror(SPOKE_ETYPE));
}
