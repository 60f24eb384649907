/* SPDX-License-Identifier: Apache-2.0 */
/* The errors of a provider as the callers receive them: Java's consumers, and spoke's. */
#include "tests/cluster/javarig.h"
#include "tests/support/test.h"

#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define SPAN(literal) spokei_span(literal, sizeof(literal) - 1)

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

static struct spoke_request *held;

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

#define RUNTIME(text) "\x00\xbajava.lang.RuntimeException\x81\xa7message" text
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
	javarig_expect_body(SPAN(RUNTIME("\xb2no money (code 42)")));
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
		javarig_expect_body(SPAN(RUNTIME("\xb2no money (code 42)")));
		ASK("\xa4hold", SPOKE);
		spoke_reply_error(held, 42, "no money");
		javarig_expect_body(SPAN(RPC));
		ASK("\xa4keep", JAVA);
		spoke_reply_error(held, 42, "no money");
		javarig_expect_body(SPAN(RUNTIME("\xb2no money (code 42)")));
	}
}

/* Of such a request only the names are kept, for the filter. */
TEST(late_error_has_form_of_its_caller_after_filter)
{
	javarig_provide_filtered(handlers, LENGTH(handlers));
	ASK("\xa4hold", JAVA);
	spoke_reply_error(held, 42, "no money");
	javarig_expect_body(SPAN(RUNTIME("\xb2no money (code 42)")));
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
