/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the exception in a result: its class, its message, its causes, and where it was thrown.
 * Serializations differ in the names: Java's own fields in Hessian 2, those of a bean in msgpack.
 * Prints results as text.
 */
#include "core/base/log.h"

#include <spoke/call.h>
#include <spoke/consumer.h>

#include <stdio.h>
#include <string.h>

#define CAUSES_SHOWN 16u
#define FRAMES_SHOWN 64u
#define TEXT_SHOWN 512u

static const struct spoke_span no_text = { "", 0 };

/* Returns the text in the first of two fields that is there, or an empty one. */
static struct spoke_span text_in(struct spoke_value fields, const char *name, const char *other)
{
	struct spoke_value field;
	struct spoke_span text;

	if (spoke_value_get(fields, name, &field) == 0 && spoke_value_str(field, &text) == 0)
		return text;
	if (other && spoke_value_get(fields, other, &field) == 0 &&
	    spoke_value_str(field, &text) == 0)
		return text;
	return no_text;
}

/* Reads the exception that was thrown. A GenericException stands for that of the handler. */
static bool read_thrown(const struct spoke_result *result, struct spoke_exception *ret)
{
	struct spoke_span class_name;
	struct spoke_value field;

	if (result->error != SPOKE_EREMOTE)
		return false;
	*ret = (struct spoke_exception){
		.class_name = result->error_class,
		.message = result->error_text,
	};
	if (spoke_value_type(result->value) != SPOKE_VALUE_MAP)
		return true;
	ret->fields = result->value;
	class_name = text_in(ret->fields, "exceptionClass", NULL);
	if (class_name.len > 0) {
		ret->class_name = class_name;
		if (spoke_value_get(ret->fields, "exceptionMessage", &field) == 0)
			ret->message = text_in(ret->fields, "exceptionMessage", NULL);
	}
	return true;
}

static bool read_cause(struct spoke_exception *exception)
{
	struct spoke_value cause;

	if (spoke_value_get(exception->fields, "cause", &cause) != 0 ||
	    spoke_value_type(cause) != SPOKE_VALUE_MAP)
		return false;
	*exception = (struct spoke_exception){
		.class_name = text_in(cause, "class", NULL),
		.message = text_in(cause, "detailMessage", "message"),
		.fields = cause,
	};
	return true;
}

bool spoke_result_exception(const struct spoke_result *result, size_t index,
			    struct spoke_exception *ret_exception)
{
	struct spoke_exception exception;
	bool found = read_thrown(result, &exception);

	while (found && index-- > 0)
		found = read_cause(&exception);
	if (found)
		*ret_exception = exception;
	return found;
}

static struct spoke_stack_frame read_frame(struct spoke_value value)
{
	struct spoke_stack_frame frame = {
		.class_name = text_in(value, "declaringClass", "className"),
		.method = text_in(value, "methodName", NULL),
		.file = text_in(value, "fileName", NULL),
	};
	struct spoke_value line;

	if (spoke_value_get(value, "lineNumber", &line) == 0 &&
	    spoke_value_i32(line, &frame.line) != 0)
		frame.line = 0;
	return frame;
}

size_t spoke_exception_frames(const struct spoke_exception *exception,
			      struct spoke_stack_frame *frames, size_t max)
{
	struct spoke_cursor cursor;
	struct spoke_value value;
	size_t len;

	if (spoke_value_get(exception->fields, "stackTrace", &value) != 0 ||
	    spoke_value_array_len(value, &len) != 0 || spoke_cursor_array(value, &cursor) != 0)
		return 0;
	for (size_t i = 0; i < max && spoke_cursor_next(&cursor, &value); i++)
		frames[i] = read_frame(value);
	return len;
}

/* --- as text */

struct sink {
	char *text;
	size_t size;
	size_t len; /* of the whole text */
};

static void add(struct sink *sink, const char *text, size_t len)
{
	if (sink->len < sink->size) {
		size_t room = sink->size - sink->len - 1;
		size_t fits = len < room ? len : room;

		memcpy(sink->text + sink->len, text, fits);
		sink->text[sink->len + fits] = '\0';
	}
	sink->len += len;
}

static void add_text(struct sink *sink, const char *text)
{
	add(sink, text, strlen(text));
}

/* Adds a text of the peer. */
static void add_span(struct sink *sink, struct spoke_span span)
{
	char text[TEXT_SHOWN];

	add(sink, text, spokei_log_escape(text, sizeof(text), span.data, span.len));
}

static void add_number(struct sink *sink, const char *before, long long number, const char *after)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%s%lld%s", before, number, after);
	add_text(sink, text);
}

/* Adds the place in the form of Java. */
static void add_frame(struct sink *sink, const struct spoke_stack_frame *frame)
{
	add_text(sink, "\n\tat ");
	add_span(sink, frame->class_name);
	add_text(sink, ".");
	add_span(sink, frame->method);
	add_text(sink, "(");
	if (frame->file.len > 0)
		add_span(sink, frame->file);
	else
		add_text(sink, frame->line == -2 ? "Native Method" : "Unknown Source");
	if (frame->file.len > 0 && frame->line > 0)
		add_number(sink, ":", frame->line, "");
	add_text(sink, ")");
}

static void add_exception(struct sink *sink, const struct spoke_exception *exception, size_t max)
{
	struct spoke_stack_frame frames[FRAMES_SHOWN];
	size_t shown = max < FRAMES_SHOWN ? max : FRAMES_SHOWN;
	size_t count = spoke_exception_frames(exception, frames, shown);

	if (exception->class_name.len > 0)
		add_span(sink, exception->class_name);
	else
		add_text(sink, "exception");
	if (exception->message.len > 0)
		add_text(sink, ": ");
	add_span(sink, exception->message);
	for (size_t i = 0; i < shown && i < count; i++)
		add_frame(sink, &frames[i]);
	if (shown > 0 && count > shown)
		add_number(sink, "\n\t... ", (long long)(count - shown), " more");
}

size_t spoke_result_print_exception(const struct spoke_result *result, size_t frames_max,
				    char *text, size_t size)
{
	struct sink sink = { text, size, 0 };
	struct spoke_exception exception;

	if (size > 0)
		text[0] = '\0';
	if (!read_thrown(result, &exception))
		return 0;
	add_exception(&sink, &exception, frames_max);
	for (unsigned i = 0; i < CAUSES_SHOWN && read_cause(&exception); i++) {
		add_text(&sink, "\nCaused by: ");
		add_exception(&sink, &exception, frames_max);
	}
	return sink.len;
}

/* --- results as text */

#define SHOWN 256u

/* The class in which providers of spoke wrap every error. */
#define OWN_CLASS "org.apache.dubbo.rpc.RpcException"

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static void print_timing(const struct spoke_result *result, char *text, size_t size)
{
	if (result->written)
		(void)snprintf(text, size, "written after %.1f ms, waited %.1f ms",
			       ms(result->queued_ns), ms(result->waited_ns));
	else
		(void)snprintf(text, size, "not written for %.1f ms", ms(result->queued_ns));
}

/* Prints the class of an exception before its message, if it tells more than the error. */
static void print_class(struct spoke_span name, char *text, size_t size)
{
	size_t len = 0;

	if (name.len != strlen(OWN_CLASS) || memcmp(name.data, OWN_CLASS, name.len) != 0)
		len = spokei_log_escape(text, size - 3, name.data, name.len);
	(void)snprintf(text + len, size - len, "%s", len ? ": " : "");
}

size_t spoke_result_print(const struct spoke_result *result, char *text, size_t size)
{
	struct spoke_exception exception = { .message = result->error_text };
	char class_name[SHOWN];
	char message[SHOWN];
	char timing[96];
	char code[24] = "";
	int len;

	if (result->error == SPOKE_OK && result->value.len > 0)
		return spoke_value_print(result->value, text, size);
	(void)spoke_result_exception(result, 0, &exception);
	print_timing(result, timing, sizeof(timing));
	print_class(exception.class_name, class_name, sizeof(class_name));
	(void)spokei_log_escape(message, sizeof(message), exception.message.data,
				exception.message.len);
	/* E.g. of a reply that cannot be read. */
	if (strcmp(message, spoke_strerror(result->error)) == 0)
		message[0] = '\0';
	if ((result->error == SPOKE_EREMOTE || result->error == SPOKE_EFORBIDDEN) &&
	    result->error_code)
		(void)snprintf(code, sizeof(code), " (code %d)", (int)result->error_code);
	if (class_name[0] || message[0] || code[0])
		len = snprintf(text, size, "%s: %s\"%s\"%s; %s", spoke_strerror(result->error),
			       class_name, message, code, timing);
	else
		len = snprintf(text, size, "%s; %s", spoke_strerror(result->error), timing);
	return len > 0 ? (size_t)len : 0;
}
