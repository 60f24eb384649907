/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of frames for tests of wires: see stream.h. */
#include "tests/transport/stream.h"

#include "tests/transport/wires.h"
#include "timer/base.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const struct spokei_wire_limits stream_limits = {
	.frame_max = SPOKE_VALUE_BYTES_MAX,
	.name_max = 1024,
	.event_max = 64,
	.value = { SPOKE_VALUE_DEPTH_MAX, SPOKE_VALUE_ITEMS_MAX, SPOKE_VALUE_OBJECT_BYTES_MAX,
		   SPOKE_VALUE_BYTES_MAX, false },
	.free_len = SPOKE_VALUE_ITEMS_MAX,
};

/* --- events */

/* Cuts and reads the frame that begins with `bytes`. */
static struct stream_event look(const struct stream *stream, struct spokei_cut *cut,
				struct spoke_span bytes)
{
	struct stream_event event = { 0 };

	event.cut = wire_cut(stream->wire, stream->limits, cut, bytes, &event.len);
	if (event.cut != 0)
		return event;
	SPOKE_ASSERT(event.len > 0 && event.len <= bytes.len && !cut->started);
	bytes.len = event.len;
	event.read = wire_read(stream->wire, stream->limits, NULL, bytes, NULL, &event.message);
	return event;
}

static bool is_broken(const struct stream_event *event)
{
	return event->cut < 0 || event->read == SPOKE_EPROTOCOL;
}

size_t stream_whole(const struct stream *stream, struct stream_event *events, size_t max)
{
	const unsigned char *first = stream->bytes.data;
	struct spokei_cut cut = { 0 };
	size_t at = 0;

	for (size_t count = 0; count < max; count++) {
		struct stream_event *event = &events[count];

		*event = look(stream, &cut, spokei_span(first + at, stream->bytes.len - at));
		event->at = at;
		if (event->cut != 0 || is_broken(event))
			return count + 1;
		at += event->len;
	}
	return max;
}

static const char *events_differ(const struct stream_event *a, const struct stream_event *b)
{
	if (a->cut != b->cut)
		return "the verdict of cut";
	if (a->cut != 0)
		return NULL;
	if (a->len != b->len)
		return "the length of a frame";
	if (a->read != b->read)
		return "the verdict of read";
	return a->read == SPOKE_EPROTOCOL ? NULL : messages_differ(&a->message, &b->message);
}

/* Does the same as look() on a copy that ends with its allocation, so that a sanitizer detects
 * overruns. The message points into the copy, so it is compared here. */
static const char *look_at_copy(const struct stream *stream, struct spokei_cut *cut,
				struct spoke_span bytes, const struct stream_event *expected,
				struct stream_event *ret_event)
{
	unsigned char *copy = malloc(bytes.len > 0 ? bytes.len : 1);
	const char *difference = NULL;

	SPOKE_ASSERT(copy);
	if (bytes.len > 0)
		memcpy(copy, bytes.data, bytes.len);
	*ret_event = look(stream, cut, spokei_span(copy, bytes.len));
	if (ret_event->cut != SPOKEI_NEXT_MORE)
		difference = events_differ(ret_event, expected);
	else if (ret_event->len <= bytes.len)
		difference = "cut wants no more than there is";
	else if (expected->cut == 0 && ret_event->len > expected->len)
		difference = "cut wants more than the frame has";
	free(copy);
	return difference;
}

const char *stream_pieces(const struct stream *stream, const struct stream_event *events,
			  size_t count, size_t (*piece)(void *arg), void *arg)
{
	const unsigned char *first = stream->bytes.data;
	struct spokei_cut cut = { 0 };
	size_t here = 0; /* bytes received */
	size_t done = 0; /* events compared */

	while (done < count) {
		const struct stream_event *expected = &events[done];
		struct spoke_span seen = spokei_span(first + expected->at, here - expected->at);
		struct stream_event event;
		const char *difference = look_at_copy(stream, &cut, seen, expected, &event);

		if (difference)
			return difference;
		if (event.cut != SPOKEI_NEXT_MORE) {
			done++;
		} else if (here == stream->bytes.len) {
			return expected->cut == SPOKEI_NEXT_MORE ? NULL
								 : "cut wants what there is not";
		} else {
			size_t len = piece(arg);

			here = len < stream->bytes.len - here ? here + len : stream->bytes.len;
		}
	}
	return NULL;
}

size_t stream_piece(void *arg)
{
	const size_t *len = arg;

	return *len;
}

/* --- messages */

static bool same(struct spoke_span a, struct spoke_span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

const char *messages_differ(const struct spokei_message *a, const struct spokei_message *b)
{
	if (a->kind != b->kind || a->id != b->id || a->two_way != b->two_way)
		return "kind, id or two_way";
	if (a->codec != b->codec || a->status != b->status)
		return "codec or status";
	if (!same(a->service, b->service) || !same(a->version, b->version) ||
	    !same(a->group, b->group) || !same(a->method, b->method))
		return "service, version, group or method";
	if (!same(a->types, b->types) || !same(a->args, b->args) || a->arg_count != b->arg_count)
		return "types or arguments";
	if (a->generic != b->generic || a->bare != b->bare || a->timeout_ms != b->timeout_ms)
		return "generic, bare or timeout_ms";
	if (!spoke_value_equal(a->type_names, b->type_names) || !same(a->event, b->event))
		return "type_names or event";
	if (a->error != b->error || a->error_code != b->error_code)
		return "error or error_code";
	if (!same(a->error_text, b->error_text) || !same(a->error_class, b->error_class))
		return "text or class of the error";
	if (!spoke_value_equal(a->value, b->value) ||
	    !spoke_value_equal(a->attachments, b->attachments))
		return "value or attachments";
	return NULL;
}

/* --- text */

struct line {
	char *text;
	size_t size;
	size_t len;
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct line *line, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line->text + line->len, line->size - line->len, format, args);
	va_end(args);
	SPOKE_ASSERT(len >= 0);
	line->len += (size_t)len;
	if (line->len >= line->size)
		line->len = line->size - 1;
}

static void add_bytes(struct line *line, struct spoke_span bytes)
{
	const unsigned char *at = bytes.data;

	for (size_t i = 0; i < bytes.len; i++)
		add(line, at[i] > ' ' && at[i] < 0x7f ? "%c" : "\\x%02x", at[i]);
}

static void add_value(struct line *line, struct spoke_value value)
{
	char text[256];

	(void)spoke_value_print(value, text, sizeof(text));
	add(line, "%s", text);
}

static void add_call(struct line *line, const struct spokei_message *message)
{
	struct spoke_cursor args = spoke_cursor_bytes(message->args);
	struct spoke_value arg;
	size_t count = 0;

	if (message->service.len == 0)
		add(line, " -");
	else
		add(line, " ");
	add_bytes(line, message->service);
	add(line, " ");
	add_bytes(line, message->method);
	add(line, " [");
	for (; spoke_cursor_next(&args, &arg); count++) {
		if (count > 0)
			add(line, ",");
		add_value(line, arg);
	}
	add(line, "]");
	if (count != message->arg_count)
		add(line, " but %zu arguments", message->arg_count);
}

static void add_reply(struct line *line, const struct spokei_message *message)
{
	add(line, " ");
	if (message->error == 0) {
		add_value(line, message->value);
		return;
	}
	add(line, "error ");
	if (message->error != SPOKE_EREMOTE)
		add(line, "%s ", spoke_errname(message->error));
	add(line, "%d \"", (int)message->error_code);
	add_bytes(line, message->error_text);
	add(line, "\"");
}

void message_line(int result, const struct spokei_message *message, char *text, size_t size)
{
	struct line line = { text, size, 0 };
	bool is_request = message->kind == SPOKEI_REQUEST;

	if (result != 0)
		add(&line, "%s ", spoke_errname(result));
	if (result == SPOKE_EPROTOCOL)
		return;
	if (is_request && !message->two_way)
		add(&line, "notify");
	else
		add(&line, "%s %llu", is_request ? "request" : "reply",
		    (unsigned long long)message->id);
	if (result == 0 && is_request)
		add_call(&line, message);
	else if (result == 0)
		add_reply(&line, message);
}

static unsigned hex_digit(char digit)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = digit != '\0' ? strchr(digits, tolower((unsigned char)digit)) : NULL;

	SPOKE_ASSERT(at);
	return (unsigned)(at - digits);
}

size_t hex_bytes(const char *text, unsigned char *bytes, size_t size)
{
	size_t len = 0;

	for (; *text; text++) {
		if (*text == ' ')
			continue;
		SPOKE_ASSERT(len < size);
		bytes[len++] = (unsigned char)(hex_digit(text[0]) << 4 | hex_digit(text[1]));
		text++;
	}
	return len;
}

void hex_text(struct spoke_span bytes, char *text, size_t size)
{
	const unsigned char *at = bytes.data;
	struct line line = { text, size, 0 };

	text[0] = '\0';
	for (size_t i = 0; i < bytes.len; i++)
		add(&line, "%02x", at[i]);
}
