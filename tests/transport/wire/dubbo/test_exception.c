/* SPDX-License-Identifier: Apache-2.0 */
/* The exceptions that callers receive: of spoke, of Dubbo in Java, and by $invoke. */
#include "tests/core/memory.h"
#include "tests/support/test.h"
#include "tests/transport/dubbo_frames.h"
#include "transport/wire/dubbo/exception.h"

#include <stdio.h>
#include <string.h>

#define RPC "org.apache.dubbo.rpc.RpcException"
#define RUNTIME "java.lang.RuntimeException"
#define GENERIC "org.apache.dubbo.rpc.service.GenericException"

/* An error of a handler. `fields` are packed; NULL: none. */
struct row {
	const char *class_name;
	const char *text; /* NULL: null */
	int32_t code;
	bool foreign;
	bool generic;
	unsigned codec;
	const char *fields;
	const char *written; /* the class and its fields, printed */
};

static void assert_written(const struct row *row, int error)
{
	struct spokei_message message = {
		.error = error,
		.error_class = span_of(row->class_name),
		.error_text = row->text ? span_of(row->text) : spokei_span(NULL, 0),
		.error_code = row->code,
		.foreign = row->foreign,
		.generic = row->generic,
		.codec = (uint8_t)row->codec,
	};
	size_t max;
	unsigned char *bytes;
	const unsigned char *end;
	struct spoke_cursor cursor;
	struct spoke_value value[2];
	char name[256];
	char fields[512];
	char all[1024];

	if (row->fields)
		message.value = value_of(row->fields, strlen(row->fields));
	max = spokei_dubbo_exception_max(&message);
	bytes = test_malloc(max);
	end = spokei_dubbo_put_exception(bytes, &message);
	assert_true((size_t)(end - bytes) <= max);
	cursor = spoke_cursor_bytes(spokei_span(bytes, (size_t)(end - bytes)));
	assert_true(spoke_cursor_next(&cursor, &value[0]));
	assert_true(spoke_cursor_next(&cursor, &value[1]));
	assert_int_equal(spoke_cursor_rest(&cursor).len, 0);
	assert_int_equal(spoke_value_check(value[1].data, value[1].len, NULL, &value[1]), 0);
	(void)spoke_value_print(value[0], name, sizeof(name));
	(void)spoke_value_print(value[1], fields, sizeof(fields));
	(void)snprintf(all, sizeof(all), "%s %s", name, fields);
	assert_string_equal(all, row->written);
	test_free(bytes);
}

TEST(exception_has_form_of_its_caller)
{
	static const struct row rows[] = {
		/* Consumers of spoke, with any codec. */
		{ "", "no money", 42, false, false, 27, NULL,
		  "\"" RPC "\" {\"message\": \"no money\", \"code\": 42}" },
		{ "", "no money", 42, false, true, 2, NULL,
		  "\"" RPC "\" {\"message\": \"no money\", \"code\": 42}" },
		{ "", "", 0, false, false, 27, NULL,
		  "\"" RPC "\" {\"message\": \"\", \"code\": 0}" },
		{ "it.Biz", "no", 7, false, true, 2, NULL,
		  "\"it.Biz\" {\"message\": \"no\", \"code\": 7}" },
		{ "it.Biz", "no", 0, false, false, 27, NULL, "\"it.Biz\" {\"message\": \"no\"}" },
		{ "java.lang.Error", "no", 7, false, false, 27, NULL,
		  "\"java.lang.Error\" {\"message\": \"no\", \"code\": 7}" },
		/* Others. */
		{ "", "no money", 42, true, false, 27, NULL,
		  "\"" RUNTIME "\" {\"message\": \"no money (code 42)\"}" },
		{ "", "no money", -2147483647 - 1, true, false, 2, NULL,
		  "\"" RUNTIME "\" {\"message\": \"no money (code -2147483648)\"}" },
		{ "", "no money", 0, true, false, 2, NULL,
		  "\"" RUNTIME "\" {\"message\": \"no money\"}" },
		{ "it.Biz", "no", 7, true, false, 2, NULL,
		  "\"it.Biz\" {\"message\": \"no\", \"code\": 7}" },
		{ RPC, "no", 0, true, false, 27, NULL,
		  "\"" RPC "\" {\"message\": \"no\", \"code\": 0}" },
		{ "java.lang.Error", "no", 7, true, false, 27, NULL,
		  "\"java.lang.Error\" {\"message\": \"no (code 7)\"}" },
		{ "javax.naming.NamingException", "no", 7, true, false, 27, NULL,
		  "\"javax.naming.NamingException\" {\"message\": \"no (code 7)\"}" },
		{ "javaclub.Biz", "no", 7, true, false, 27, NULL,
		  "\"javaclub.Biz\" {\"message\": \"no\", \"code\": 7}" },
		/* By $invoke. */
		{ "", "no", 7, true, true, 2, NULL,
		  "\"" GENERIC "\" {\"message\": \"no (code 7)\", \"exceptionMessage\": \"no (code "
		  "7)\", \"exceptionClass\": \"" RUNTIME "\"}" },
		{ "it.Biz", "no", 7, true, true, 2, NULL,
		  "\"" GENERIC
		  "\" {\"message\": \"it.Biz: no (code 7)\", \"exceptionMessage\": \"no "
		  "(code 7)\", \"exceptionClass\": \"it.Biz\"}" },
		{ "it.Biz", "no", 7, true, true, 27, NULL,
		  "\"" RUNTIME "\" {\"message\": \"it.Biz: no (code 7)\"}" },
		/* With fields of the handler's, which replace the usual ones. */
		{ "it.Biz", "no", 7, true, false, 2, "\x81\xa1k\x01",
		  "\"it.Biz\" {\"message\": \"no\", \"code\": 7, \"k\": 1}" },
		{ "it.Biz", "no", 7, true, false, 2,
		  "\x82\xa4"
		  "code\xa1x\xa7message\x01",
		  "\"it.Biz\" {\"code\": \"x\", \"message\": 1}" },
		{ "it.Biz", "", 0, true, false, 2, "\x80", "\"it.Biz\" {}" },
		{ "", "no", 7, false, false, 27, "\x81\xa1k\x01",
		  "\"" RPC "\" {\"message\": \"no\", \"code\": 7, \"k\": 1}" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_written(&rows[i], SPOKE_EREMOTE);
}

TEST(null_is_no_empty_text)
{
	static const struct row rows[] = {
		{ "it.Biz", NULL, 7, true, false, 2, NULL,
		  "\"it.Biz\" {\"message\": null, \"code\": 7}" },
		{ "it.Biz", "", 0, true, false, 27, NULL, "\"it.Biz\" {\"message\": \"\"}" },
		{ "", NULL, 0, true, false, 27, NULL, "\"" RUNTIME "\" {\"message\": null}" },
		{ "", NULL, 7, true, false, 27, NULL,
		  "\"" RUNTIME "\" {\"message\": \" (code 7)\"}" },
		{ "it.Biz", NULL, 0, true, true, 2, NULL,
		  "\"" GENERIC "\" {\"message\": \"it.Biz\", \"exceptionMessage\": null, "
		  "\"exceptionClass\": \"it.Biz\"}" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_written(&rows[i], SPOKE_EREMOTE);
}

TEST(refusal_has_form_of_its_caller)
{
	static const struct row rows[] = {
		{ "", "no", 4, false, false, 27, NULL,
		  "\"" RPC "\" {\"message\": \"no\", \"code\": 4, \"forbidden\": true}" },
		{ "", "no", 13, false, true, 2, NULL,
		  "\"" RPC "\" {\"message\": \"no\", \"code\": 13, \"forbidden\": true}" },
		{ "", "no", 13, true, false, 2, NULL,
		  "\"" RPC "\" {\"message\": \"no (code 13)\", \"code\": 13}" },
		{ RPC, "no", 13, true, true, 2, NULL,
		  "\"" GENERIC "\" {\"message\": \"" RPC ": no (code 13)\", "
		  "\"exceptionMessage\": \"no (code 13)\", \"exceptionClass\": \"" RPC "\"}" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_written(&rows[i], SPOKE_EFORBIDDEN);
}

TEST(long_exception_is_written_in_full)
{
	char text[3000];
	char name[3000];
	struct row row = { name, text, INT32_MIN, true, true, 2, NULL, NULL };
	struct spokei_message message = { .error = SPOKE_EREMOTE, .foreign = true, .codec = 2 };
	unsigned char *bytes;
	size_t max;

	memset(text, 'x', sizeof(text) - 1);
	memset(name, 'y', sizeof(name) - 1);
	text[sizeof(text) - 1] = '\0';
	name[sizeof(name) - 1] = '\0';
	for (unsigned generic = 0; generic < 2; generic++) {
		for (unsigned named = 0; named < 2; named++) {
			message.generic = generic != 0;
			message.error_class = span_of(named ? name : "");
			message.error_text = span_of(text);
			message.error_code = row.code;
			max = spokei_dubbo_exception_max(&message);
			bytes = test_malloc(max);
			assert_true(spokei_dubbo_put_exception(bytes, &message) <= bytes + max);
			test_free(bytes);
		}
	}
}

TEST(exception_of_long_class_is_too_large)
{
	char name[NAME_MAX_BYTES + 2];
	struct spokei_message message = {
		.kind = SPOKEI_REPLY,
		.codec = 27,
		.error = SPOKE_EREMOTE,
	};
	struct frame frame;

	memset(name, 'y', sizeof(name));
	message.error_class = spokei_span(name, NAME_MAX_BYTES);
	assert_int_equal(write_frame(&message, &frame), 0);
	message.error_class.len++;
	assert_int_equal(write_frame(&message, &frame), SPOKE_ETOOLARGE);
}

TEST(error_of_handler_is_read_as_it_was_given)
{
	static const struct spoke_span names[] = { { "", 0 }, { "it.Biz", 6 } };

	for (size_t i = 0; i < LENGTH(names); i++) {
		struct spokei_message message = {
			.kind = SPOKEI_REPLY,
			.codec = 27,
			.error = SPOKE_EREMOTE,
			.error_class = names[i],
			.error_text = span_of("no money (code 1)"),
			.error_code = 42,
		};
		struct spokei_message back;
		struct frame frame;

		assert_int_equal(write_frame(&message, &frame), 0);
		assert_int_equal(read_frame(&frame, &back), 0);
		assert_int_equal(back.error, SPOKE_EREMOTE);
		assert_int_equal(back.error_code, 42);
		is_text(back.error_text, "no money (code 1)");
		is_text(back.error_class, names[i].len ? "it.Biz" : RPC);
	}
}

TEST(refusal_is_told_from_error_of_handler_with_its_code)
{
	static const int errors[] = { SPOKE_EFORBIDDEN, SPOKE_EREMOTE };

	for (size_t i = 0; i < LENGTH(errors); i++) {
		struct spokei_message message = {
			.kind = SPOKEI_REPLY,
			.codec = 27,
			.error = errors[i],
			.error_text = span_of("not you"),
			.error_code = SPOKE_FORBIDDEN_CALLER,
		};
		struct spokei_message back;
		struct frame frame;

		assert_int_equal(write_frame(&message, &frame), 0);
		assert_int_equal(read_frame(&frame, &back), 0);
		assert_int_equal(back.error, errors[i]);
		assert_int_equal(back.error_code, SPOKE_FORBIDDEN_CALLER);
		is_text(back.error_text, "not you");
	}
}

TEST(refusal_is_known_by_its_class_and_field_only)
{
	static const struct {
		const char *body;
		size_t len;
		int error;
	} rows[] = {
		{ "\x00\xd9!" RPC "\x81\xa9"
		  "forbidden\xc3",
		  48, SPOKE_EFORBIDDEN },
		{ "\x00\xd9!" RPC "\x81\xa9"
		  "forbidden\xc2",
		  48, SPOKE_EREMOTE },
		{ "\x00\xd9!" RPC "\x81\xa9"
		  "forbidden\x01",
		  48, SPOKE_EREMOTE },
		{ "\x00\xa1"
		  "C\x81\xa9"
		  "forbidden\xc3",
		  15, SPOKE_EREMOTE },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct spokei_message message;

		assert_int_equal(read_body(0x1b, 20, rows[i].body, rows[i].len, &message), 0);
		assert_int_equal(message.error, rows[i].error);
	}
}
