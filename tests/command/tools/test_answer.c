/* SPDX-License-Identifier: Apache-2.0 */
/* The notes of `spoke call` about an exception of Java, and its hint about types. */
#include "examples/spoke/answer.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct spoke_span text_of(const char *text)
{
	return (struct spoke_span){ text, strlen(text) };
}

/* Returns the output of a function on one of the standard streams. */
static const char *output_of(FILE *stream, void (*print)(const struct spoke_result *),
			     const struct spoke_result *result)
{
	static char text[4096];
	FILE *file = tmpfile();
	int kept;
	size_t len;

	assert_non_null(file);
	(void)fflush(stream);
	kept = dup(fileno(stream));
	assert_true(dup2(fileno(file), fileno(stream)) >= 0);
	print(result);
	(void)fflush(stream);
	assert_true(dup2(kept, fileno(stream)) >= 0);
	(void)close(kept);
	rewind(file);
	len = fread(text, 1, sizeof(text) - 1, file);
	text[len] = '\0';
	(void)fclose(file);
	return text;
}

static void print_json(const struct spoke_result *result)
{
	answer_print_json(result, 1);
}

/* Packs what a Java provider throws: message, stack and, unless the class is NULL, a cause. */
static struct spoke_result thrown(const char *cause, bool stack)
{
	static unsigned char memory[1000];
	struct spoke_builder builder;
	struct spoke_result result = {
		.error = SPOKE_EREMOTE,
		.error_class = text_of("it.BizException"),
		.error_text = text_of("no order 5"),
	};

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_map(&builder, 3);
	spoke_pack_text(&builder, "message");
	spoke_pack_text(&builder, "no order 5");
	spoke_pack_text(&builder, "cause");
	if (cause) {
		spoke_pack_object(&builder, 1);
		spoke_pack_text(&builder, "detailMessage");
		spoke_pack_text(&builder, "disk full");
		spoke_pack_class(&builder, cause);
	} else {
		spoke_pack_nil(&builder);
	}
	spoke_pack_text(&builder, "stackTrace");
	spoke_pack_array(&builder, stack);
	if (stack) {
		spoke_pack_object(&builder, 4);
		spoke_pack_text(&builder, "declaringClass");
		spoke_pack_text(&builder, "it.Orders");
		spoke_pack_text(&builder, "methodName");
		spoke_pack_text(&builder, "find");
		spoke_pack_text(&builder, "fileName");
		spoke_pack_text(&builder, "Orders.java");
		spoke_pack_text(&builder, "lineNumber");
		spoke_pack_i64(&builder, 12);
		spoke_pack_class(&builder, "java.lang.StackTraceElement");
	}
	assert_int_equal(spoke_builder_finish_value(&builder, &result.value), 0);
	return result;
}

TEST(exception_prints_stack_and_causes)
{
	struct spoke_result result = thrown("java.io.IOException", true);
	const char *text = output_of(stderr, answer_print_exception, &result);

	assert_string_equal(text, "it.BizException: no order 5\n"
				  "\tat it.Orders.find(Orders.java:12)\n"
				  "Caused by: java.io.IOException: disk full\n");
}

TEST(exception_with_a_message_alone_prints_nothing)
{
	struct spoke_result result = thrown(NULL, false);

	assert_string_equal(output_of(stderr, answer_print_exception, &result), "");
}

TEST(json_lists_the_causes)
{
	struct spoke_result result = thrown("java.io.IOException", true);
	const char *text = output_of(stdout, print_json, &result);

	assert_non_null(strstr(text, "\"class\":\"it.BizException\",\"causes\":[{\"class\":"
				     "\"java.io.IOException\",\"text\":\"disk full\"}],"));
}

TEST(answers_about_a_missing_method_get_a_hint)
{
	static const char *const texts[] = {
		"Not found method \"find\" in class it.OrdersImpl.",
		"java.lang.NoSuchMethodException: it.Orders.find(java.lang.Object)",
		"Fail to decode request due to: RpcInvocation [methodName=find]",
		"Service not found:it.Orders, find",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const struct spoke_result result = { .error = SPOKE_EREMOTE,
						     .error_text = text_of(texts[i]) };

		assert_non_null(strstr(output_of(stderr, answer_print_hint, &result),
				       "--types 'Ljava/lang/String;J', or use --generic"));
	}
}

TEST(other_errors_get_no_hint)
{
	const struct spoke_result silent = { .error = SPOKE_ETIMEOUT };
	const struct spoke_result other = { .error = SPOKE_EREMOTE,
					    .error_text = text_of("no order 5") };

	assert_string_equal(output_of(stderr, answer_print_hint, &silent), "");
	assert_string_equal(output_of(stderr, answer_print_hint, &other), "");
}
