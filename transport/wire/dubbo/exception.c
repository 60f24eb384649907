/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the errors of handlers as exceptions. */
#include "transport/wire/dubbo/exception.h"

#include "transport/codec/codec.h"
#include "transport/wire/dubbo/head.h"

#include <stdio.h>

/* A class that every Java program has, and that Dubbo passes on unchanged. */
#define PLAIN "java.lang.RuntimeException"
/* The class that callers of $invoke expect, because they need not have that of the exception. */
#define GENERIC "org.apache.dubbo.rpc.service.GenericException"

#define CODE_MAX 24u /* bytes of " (code -2147483648)" */
#define SLACK 160u   /* heads, names of fields and the classes above */

static struct spoke_span text_of(const char *text)
{
	return spokei_span(text, strlen(text));
}

static bool is_of_java(struct spoke_span class_name)
{
	return (class_name.len > 5 && memcmp(class_name.data, "java.", 5) == 0) ||
	       (class_name.len > 6 && memcmp(class_name.data, "javax.", 6) == 0);
}

/* Writes a str that consists of several texts; null if none of them is there. */
static unsigned char *put_joined(unsigned char *at, const struct spoke_span *parts, size_t count)
{
	bool is_null = true;
	size_t len = 0;

	for (size_t i = 0; i < count; i++) {
		is_null = is_null && parts[i].data == NULL;
		len += parts[i].len;
	}
	if (is_null)
		return spokei_encode_nil(at);
	at = spokei_encode_str(at, len);
	for (size_t i = 0; i < count; i++)
		at = spokei_put_raw(at, parts[i].data, parts[i].len);
	return at;
}

/* Prints the code as the end of a message; 0 is no code. */
static struct spoke_span print_code(int32_t code, char text[CODE_MAX])
{
	int len = code ? snprintf(text, CODE_MAX, " (code %d)", (int)code) : 0;

	return spokei_span(code ? text : NULL, (size_t)len);
}

/* Writes an exception of class PLAIN or GENERIC, which have no field for the code. A class that the
 * handler has named stands in the message, because the caller need not have it. */
static unsigned char *put_wrapped(unsigned char *at, const struct spokei_message *message)
{
	bool generic = message->generic && message->codec == SPOKEI_CODEC_HESSIAN2;
	bool named = message->error_class.len > 0;
	struct spoke_span class_name = named ? message->error_class : text_of(PLAIN);
	char code[CODE_MAX];
	struct spoke_span parts[] = {
		named ? class_name : (struct spoke_span){ 0 },
		named && message->error_text.data ? text_of(": ") : (struct spoke_span){ 0 },
		message->error_text,
		print_code(message->error_code, code),
	};

	at = spokei_put_text(at, generic ? GENERIC : PLAIN);
	at = spokei_encode_map(at, generic ? 3 : 1);
	at = put_joined(spokei_put_text(at, "message"), parts, 4);
	if (!generic)
		return at;
	at = put_joined(spokei_put_text(at, "exceptionMessage"), parts + 2, 2);
	return spokei_put_str(spokei_put_text(at, "exceptionClass"), class_name);
}

/* Has the map of a handler this field? */
static bool has_field(struct spoke_value fields, const char *name)
{
	struct spoke_value value;

	return spoke_value_get(fields, name, &value) == 0;
}

/* Writes the fields: `message` and `code`, as far as the map of the handler lacks them, then that
 * map. */
static unsigned char *put_fields(unsigned char *at, const struct spokei_message *message,
				 struct spoke_span class_name)
{
	/* Classes of Java have no code, and most serializations cannot make them with one. */
	bool in_text = message->foreign && is_of_java(class_name);
	struct spoke_value fields = message->value;
	struct spoke_cursor pairs = { 0 };
	bool has_map = spoke_cursor_map(fields, &pairs) == 0;
	size_t count = has_map ? (size_t)pairs.left / 2 : 0;
	bool text = !has_map || (message->error_text.len > 0 && !has_field(fields, "message"));
	bool code = !in_text && !(has_map && has_field(fields, "code")) &&
		    (message->error_code != 0 ||
		     (!has_map && spokei_span_is(class_name, SPOKEI_DUBBO_EXCEPTION)));
	char digits[CODE_MAX];
	struct spoke_span parts[] = {
		message->error_text,
		print_code(in_text ? message->error_code : 0, digits),
	};

	at = spokei_encode_map(at, count + text + code);
	if (text)
		at = put_joined(spokei_put_text(at, "message"), parts, 2);
	if (code)
		at = spokei_encode_i32(spokei_put_text(at, "code"), message->error_code);
	if (!has_map)
		return at;
	return spokei_put_raw(at, pairs.at, (size_t)(pairs.end - pairs.at));
}

/* Writes a refusal as class and fields. */
static unsigned char *put_refusal(unsigned char *at, const struct spokei_message *message)
{
	char digits[CODE_MAX];
	struct spoke_span parts[] = {
		message->error_text,
		print_code(message->foreign ? message->error_code : 0, digits),
	};

	at = spokei_encode_map(spokei_put_text(at, SPOKEI_DUBBO_EXCEPTION),
			       message->foreign ? 2 : 3);
	at = put_joined(spokei_put_text(at, "message"), parts, 2);
	at = spokei_encode_i32(spokei_put_text(at, "code"), message->error_code);
	if (!message->foreign)
		at = spokei_encode_bool(spokei_put_text(at, SPOKEI_DUBBO_FORBIDDEN), true);
	return at;
}

size_t spokei_dubbo_exception_max(const struct spokei_message *message)
{
	return SLACK + 2 * (message->error_class.len + message->error_text.len + CODE_MAX) +
	       (size_t)5 * SPOKEI_PUT_HEAD_MAX + message->value.len;
}

unsigned char *spokei_dubbo_put_exception(unsigned char *at, const struct spokei_message *message)
{
	struct spoke_span class_name = message->error_class;

	if (message->error == SPOKE_EFORBIDDEN && !(message->foreign && message->generic))
		return put_refusal(at, message);
	if (message->foreign && (message->generic || class_name.len == 0))
		return put_wrapped(at, message);
	if (class_name.len == 0)
		class_name = text_of(SPOKEI_DUBBO_EXCEPTION);
	return put_fields(spokei_put_str(at, class_name), message, class_name);
}
