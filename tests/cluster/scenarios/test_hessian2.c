/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls whose bodies are Hessian 2, between a consumer and a provider of spoke: arguments of every
 * declared type, exceptions, attachments, one-way and generic calls, and both serializations on one
 * connection.
 */
#include "tests/cluster/stage.h"
#include "tests/support/test.h"

#include "transport/codec/codec.h"

#include <string.h>

static const struct stage_setting in_memory = {
	"in memory", true, true, "dubbo://127.0.0.1:0", &spokei_codec_hessian2, NULL,
};
static const struct stage_setting tcp = {
	"tcp4", false, true, "dubbo://127.0.0.1:0", &spokei_codec_hessian2, NULL,
};

static const struct stage_setting any_codec = {
	"any codec", true, true, "dubbo://127.0.0.1:0", NULL, NULL,
};

static struct spoke_method *method_of(struct stage *stage, const char *name, const char *types)
{
	const struct spoke_method_options options = { .types = types };

	return stage_method_with(stage, name, &options);
}

/* --- arguments and values */

/* The declared type of an argument, the argument, and the value that comes back. */
struct row {
	const char *types;
	const char *arg;
	size_t arg_len;
	const char *value;
	size_t len;
};

#define ROW(types, arg, value)                                                                     \
	{                                                                                          \
		types, arg, sizeof(arg) - 1, value, sizeof(value) - 1                              \
	}

static const struct row rows[] = {
	ROW("Z", "\xc3", "\xc3"),
	ROW("B", "\xff", "\xff"),
	ROW("S", "\x05", "\x05"),
	ROW("C", "\x41",
	    "\xa1"
	    "A"),
	ROW("I", "\xd3\0\0\0\0\0\0\0\x05", "\x05"),
	ROW("J", "\x05", "\xd3\0\0\0\0\0\0\0\x05"),
	ROW("Ljava/lang/Long;", "\xc0", "\xc0"),
	ROW("F", "\xca\x40\x48\xf5\xc3", "\xcb\x40\x09\x1e\xb8\x51\xeb\x85\x1f"),
	ROW("D", "\x01", "\xcb\x3f\xf0\0\0\0\0\0\0"),
	ROW("Ljava/lang/String;", "\xa4\xf0\x9f\x98\x80", "\xa4\xf0\x9f\x98\x80"),
	ROW("Ljava/util/Date;", "\xcd\xea\x60", "\xd6\xff\0\0\0\x3c"),
	ROW("Ljava/math/BigDecimal;",
	    "\xa4"
	    "1.50",
	    "\xde\x00\x02\xa5value\xa4"
	    "1.50\xa5"
	    "class\xb4java.math.BigDecimal"),
	ROW("[B", "\xc4\x02\x01\x02", "\xc4\x02\x01\x02"),
	ROW("[I", "\x91\x05", "\xc9\0\0\0\x07\x48\xa4[int\x91\x05"),
	ROW("[Ljava/lang/String;", "\x91\xa1x", "\xc9\0\0\0\x0b\x48\xa7[string\x91\xa1x"),
	ROW("Ljava/util/List;", "\x92\x01\xc0", "\x92\x01\xc0"),
	ROW("Ljava/util/Set;", "\x91\x01", "\xc9\0\0\0\x14\x48\xb1java.util.HashSet\x91\x01"),
	ROW("Ljava/util/Map;", "\x81\xa1k\x01", "\xdf\0\0\0\x01\xa1k\x01"),
	ROW("Lit/Point;", "\x81\xa1x\x01",
	    "\xde\x00\x02\xa1x\x01\xa5"
	    "class\xa8it.Point"),
	ROW("Lit/Color;", "\xa3RED",
	    "\xde\x00\x02\xa4name\xa3RED\xa5"
	    "class\xa8it.Color"),
	/* What was read goes out as it came, however it is declared. */
	ROW("Ljava/lang/Object;", "\xc9\0\0\0\x14\x48\xb1java.util.HashSet\x91\x01",
	    "\xc9\0\0\0\x14\x48\xb1java.util.HashSet\x91\x01"),
	ROW("Ljava/lang/Object;", "\x92\x91\x01\xc7\x03\x52\x01\x91\x01",
	    "\x92\x91\x01\xc7\x03\x52\x01\x91\x01"),
	/* Derived types: an object has its class as its type, and another map is a Map. */
	ROW(NULL, "\x05", "\x05"),
	ROW(NULL, "\xd3\0\0\0\0\0\0\0\x05", "\xd3\0\0\0\0\0\0\0\x05"),
	ROW(NULL,
	    "\x81\xa5"
	    "class\xa8it.Point",
	    "\xde\x00\x01\xa5"
	    "class\xa8it.Point"),
	ROW(NULL, "\x81\xa1k\x01", "\xdf\0\0\0\x01\xa1k\x01"),
	ROW("Ljava/lang/Object;",
	    "\x81\xa5"
	    "class\xa8it.Point",
	    "\xde\x00\x01\xa5"
	    "class\xa8it.Point"),
};

#define ON(setting) ((void *)(uintptr_t) & (setting))

FIXTURE(stage_set_up, stage_tear_down);

STAGE_TEST(argument_of_each_declared_type_comes_back, .initial = ON(in_memory))
{
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct spoke_method *echo = method_of(stage, "echo", rows[i].types);
		struct spoke_span args = { rows[i].arg, rows[i].arg_len };
		const struct spoke_result *result = stage_end_of(stage,
								 stage_call(stage, echo, args));

		assert_int_equal(result->error, SPOKE_OK);
		assert_int_equal(result->value.len, rows[i].len);
		assert_memory_equal(result->value.data, rows[i].value, rows[i].len);
	}
}
TEST_AGAIN(argument_of_each_declared_type_comes_back, tcp, .initial = ON(tcp));

STAGE_TEST(argument_that_cannot_be_expressed_is_refused, .initial = ON(in_memory))
{
	static const unsigned char foreign[] = "\xd4\x05x";
	struct spoke_span args = { foreign, sizeof(foreign) - 1 };

	struct spoke_method *echo = stage_method(stage, "echo");

	/* The first call waits for the connection, the second one is refused at once. */
	assert_int_equal(stage_end_of(stage, stage_call(stage, echo, args))->error,
			 SPOKE_EUNSUPPORTED);
	assert_int_equal(stage_try(stage, echo, args, NULL), SPOKE_EUNSUPPORTED);
	stage_assert_text(stage_end_of(stage, stage_call(stage, echo, stage_text(stage, "x"))),
			  "x");
}
TEST_AGAIN(argument_that_cannot_be_expressed_is_refused, tcp, .initial = ON(tcp));

/* --- exceptions */

static void is_text(struct spoke_span span, const char *text)
{
	assert_int_equal(span.len, strlen(text));
	assert_memory_equal(span.data, text, span.len);
}

static void throw_it(struct spoke_request *request, void *arg)
{
	/* A cause with a cause, and a field of the class. */
	static const unsigned char fields[] = "\x82\xa5"
					      "cause\x83\xa7message\xa5inner\xa5"
					      "cause"
					      "\x82\xa7message\xa4"
					      "core\xa5"
					      "class\xa6"
					      "it.End"
					      "\xa5"
					      "class\xa6it.Mid\xa3key\x05";

	(void)arg;
	spoke_reply_exception(request, "it.BizException", 7, "n\xc3\xb6",
			      (struct spoke_value){ fields, sizeof(fields) - 1 });
}

static void fail_plainly(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply_error(request, 3, "no");
}

static void reply_foreign(struct spoke_request *request, void *arg)
{
	static const unsigned char foreign[] = "\xd4\x05x";

	(void)arg;
	spoke_reply(request, (struct spoke_value){ foreign, sizeof(foreign) - 1 });
}

/* Makes a method of a service of this test. */
static struct spoke_method *own_method(struct stage *stage, const char *name)
{
	static const struct spoke_service_options service = { .name = "it.Own" };
	static const struct spoke_handler handlers[] = {
		{ .method = "throwIt", .handle = throw_it },
		{ .method = "failPlainly", .handle = fail_plainly },
		{ .method = "replyForeign", .handle = reply_foreign },
	};
	const struct spoke_method_options options = { .service = "it.Own" };

	assert_int_equal(spoke_provider_add(stage->provider, &service, handlers, LENGTH(handlers)),
			 0);
	return stage_method_with(stage, name, &options);
}

static const struct spoke_result *result_of(struct stage *stage, const char *name)
{
	return stage_end_of(stage, stage_call(stage, own_method(stage, name), stage_no_args()));
}

STAGE_TEST(exception_has_class_text_code_and_causes, .initial = ON(in_memory))
{
	const struct spoke_result *result = result_of(stage, "throwIt");
	struct spoke_exception exception;
	struct spoke_value field;
	int32_t key;

	assert_int_equal(result->error, SPOKE_EREMOTE);
	is_text(result->error_class, "it.BizException");
	is_text(result->error_text, "n\xc3\xb6");
	assert_int_equal(result->error_code, 7);
	assert_int_equal(spoke_value_get(result->value, "key", &field), 0);
	assert_int_equal(spoke_value_i32(field, &key), 0);
	assert_int_equal(key, 5);
	assert_true(spoke_result_exception(result, 1, &exception));
	is_text(exception.class_name, "it.Mid");
	is_text(exception.message, "inner");
	assert_true(spoke_result_exception(result, 2, &exception));
	is_text(exception.class_name, "it.End");
	is_text(exception.message, "core");
	assert_false(spoke_result_exception(result, 3, &exception));
}
TEST_AGAIN(exception_has_class_text_code_and_causes, tcp, .initial = ON(tcp));

TEST(error_of_handler_has_code_and_text, .initial = ON(in_memory))
{
	const struct spoke_result *result = result_of(stage_begin(state), "failPlainly");

	assert_int_equal(result->error, SPOKE_EREMOTE);
	is_text(result->error_text, "no");
	assert_int_equal(result->error_code, 3);
}
TEST_AGAIN(error_of_handler_has_code_and_text, tcp, .initial = ON(tcp));

TEST(value_that_cannot_be_expressed_is_an_error_reply, .initial = ON(in_memory))
{
	const struct spoke_result *result = result_of(stage_begin(state), "replyForeign");

	assert_int_equal(result->error, SPOKE_EBADREPLY);
	is_text(result->error_text, spoke_strerror(SPOKE_EUNSUPPORTED));
}
TEST_AGAIN(value_that_cannot_be_expressed_is_an_error_reply, tcp, .initial = ON(tcp));

/* --- the other kinds of calls */

STAGE_TEST(one_way_call_is_handled_without_reply, .initial = ON(in_memory))
{
	const struct spoke_call_options options = { .one_way = true };
	struct stage_call *call = stage_call_with(stage, stage_method(stage, "echo"),
						  stage_text(stage, "x"), &options);

	assert_int_equal(stage_end_of(stage, call)->error, SPOKE_OK);
	stage_until(stage, &stage->handled, 1);
}
TEST_AGAIN(one_way_call_is_handled_without_reply, tcp, .initial = ON(tcp));

STAGE_TEST(attachments_go_both_ways, .initial = ON(in_memory))
{
	/* A text, null, a list, and a map that ends like an object but is an attachment's value. */
	static const unsigned char pairs[] =
		"\x84\xa1t\xa1v\xa1n\xc0\xa1l\x91\x01\xa1m\x81\xa1k\x02";
	const struct spoke_call_options options = {
		.attachments = { pairs, sizeof(pairs) - 1 },
	};
	const struct spoke_result *result =
		stage_end_of(stage, stage_call_with(stage, stage_method(stage, "tell"),
						    stage_no_args(), &options));
	struct spoke_value value;
	struct spoke_span text;

	assert_int_equal(result->error, SPOKE_OK);
	assert_int_equal(spoke_value_get(result->attachments, "from", &value), 0);
	assert_int_equal(spoke_value_str(value, &text), 0);
	is_text(text, "provider");
	/* The handler's value is the map of the attachments that it received. */
	assert_int_equal(spoke_value_get(result->value, "t", &value), 0);
	assert_int_equal(spoke_value_str(value, &text), 0);
	is_text(text, "v");
	assert_int_equal(spoke_value_get(result->value, "n", &value), 0);
	assert_true(spoke_value_is_nil(value));
	assert_int_equal(spoke_value_get(result->value, "l", &value), 0);
	assert_int_equal(spoke_value_type(value), SPOKE_VALUE_ARRAY);
	assert_int_equal(spoke_value_get(result->value, "m", &value), 0);
	assert_int_equal(spoke_value_type(value), SPOKE_VALUE_MAP);
}
TEST_AGAIN(attachments_go_both_ways, tcp, .initial = ON(tcp));

STAGE_TEST(generic_call_is_the_call_that_it_describes, .initial = ON(in_memory))
{
	static const char args[] = "\x82\xa1x\x01\xa5"
				   "class\xa8it.Point";
	const struct spoke_method_options options = { .generic = true, .type_names = "it.Point" };
	struct spoke_method *echo = stage_method_with(stage, "echo", &options);
	const struct spoke_result *result = stage_end_of(
		stage, stage_call(stage, echo, (struct spoke_span){ args, sizeof(args) - 1 }));
	struct spoke_value class;
	struct spoke_span name;

	assert_int_equal(result->error, SPOKE_OK);
	assert_int_equal(spoke_value_get(result->value, "class", &class), 0);
	assert_int_equal(spoke_value_str(class, &name), 0);
	is_text(name, "it.Point");
}
TEST_AGAIN(generic_call_is_the_call_that_it_describes, tcp, .initial = ON(tcp));

/* A caller may name the generic call itself. Its map with a class stays a map, also in the reply.
 */
STAGE_TEST(generic_call_by_its_name_keeps_maps, .initial = ON(in_memory))
{
	static const char *const names[] = { "$invoke", "$invokeAsync" };
	static const char args[] = "\xa4"
				   "echo"
				   "\x91\xa8it.Point"
				   "\x91\x81\xa5"
				   "class\xa8it.Point";
	static const char value[] = "\xdf\0\0\0\x01\xa5"
				    "class\xa8it.Point";

	/* The second call goes to an open connection. */
	for (unsigned i = 0; i < 4; i++) {
		struct spoke_method *method =
			method_of(stage, names[i / 2],
				  "Ljava/lang/String;[Ljava/lang/String;[Ljava/lang/Object;");
		struct spoke_span given = { args, sizeof(args) - 1 };
		const struct spoke_result *result = stage_end_of(stage,
								 stage_call(stage, method, given));

		assert_int_equal(result->error, SPOKE_OK);
		assert_int_equal(result->value.len, sizeof(value) - 1);
		assert_memory_equal(result->value.data, value, sizeof(value) - 1);
	}
}
TEST_AGAIN(generic_call_by_its_name_keeps_maps, tcp, .initial = ON(tcp));

STAGE_TEST(each_request_is_answered_in_its_serialization, .initial = ON(any_codec))
{
	static const enum spoke_serialization kinds[] = { SPOKE_SERIALIZATION_HESSIAN2,
							  SPOKE_SERIALIZATION_MSGPACK };
	struct spoke_method *echo[2];

	for (unsigned i = 0; i < 2; i++) {
		const struct spoke_method_options options = { .types = "J",
							      .serialization = kinds[i] };

		echo[i] = stage_method_with(stage, "echo", &options);
	}
	for (unsigned i = 0; i < 6; i++) {
		struct spoke_span args = { "\x05", 1 };
		const struct spoke_result *result =
			stage_end_of(stage, stage_call(stage, echo[i % 2], args));

		/* Only Hessian 2 writes a long. */
		assert_int_equal(result->error, SPOKE_OK);
		assert_int_equal(result->value.len, i % 2 == 0 ? 9 : 1);
	}
}
