/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the lines of spoke tap. */
#include "examples/spoke/tap_line.h"

#include "examples/spoke/escape.h"
#include "examples/spoke/json.h"
#include "examples/spoke/tap_secret.h"
#include "examples/spoke/terminal.h"

#include <spoke/host.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SHORT_TEXT 200u
#define NAME_TEXT 160u
#define FULL_TEXT 65536u
#define RAW_ROW 16u
#define MS 1e6

static bool is_request(const struct spoke_frame *frame)
{
	return frame->kind == SPOKE_FRAME_REQUEST || frame->kind == SPOKE_FRAME_ONEWAY;
}

static bool is_wrong(const struct spoke_frame *frame)
{
	return frame->bad || frame->error != SPOKE_OK;
}

static struct spoke_value value_of(struct spoke_span span)
{
	return (struct spoke_value){ span.data, span.len };
}

/* --- text */

static void print_time(uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / 1000000000u);
	struct tm tm = { 0 };

	(void)localtime_r(&seconds, &tm);
	printf("%s%02d:%02d:%02d.%06u%s ", terminal_colour(TERMINAL_DIM), tm.tm_hour, tm.tm_min,
	       tm.tm_sec, (unsigned)(wall_ns % 1000000000u / 1000),
	       terminal_colour(TERMINAL_NORMAL));
}

static void print_way(const struct tap_place *place)
{
	print_time(place->wall_ns);
	printf("#%lu %s%s%s ", place->link,
	       terminal_colour(place->to_target ? TERMINAL_BLUE : TERMINAL_GREEN),
	       place->to_target ? "->" : "<-", terminal_colour(TERMINAL_NORMAL));
}

/* Buffer for values; only one thread prints. */
static char *text_room(const struct tap_style *style, size_t *ret_size)
{
	static char text[FULL_TEXT];

	*ret_size = style->full ? FULL_TEXT : SHORT_TEXT;
	return text;
}

static void print_name(const char *before, struct spoke_span name, const char *after)
{
	char text[NAME_TEXT];

	if (name.len == 0)
		return;
	(void)escape_text(name, text, sizeof(text));
	printf("%s%s%s", before, text, after);
}

static void print_request(const struct tap_style *style, const struct spoke_frame *frame)
{
	size_t size;
	char *text = text_room(style, &size);

	(void)escape_values(frame->args, text, size);
	print_name(" ", frame->service, ".");
	print_name(frame->service.len ? "" : " ", frame->method, "");
	print_name(":", frame->version, "");
	print_name(" of group ", frame->group, "");
	printf("(%s)", text);
	if (frame->timeout_ms)
		printf(" timeout %" PRId64 " ms", frame->timeout_ms);
}

static void print_reply(const struct tap_style *style, const struct spoke_frame *frame,
			const struct tap_request *request)
{
	size_t size;
	char *text = text_room(style, &size);

	if (request->known && *request->method)
		printf(" of %s", request->method);
	printf(": ");
	if (frame->error) {
		printf("%s%s%s", terminal_colour(TERMINAL_RED), spoke_errname(frame->error),
		       terminal_colour(TERMINAL_NORMAL));
		if (frame->code)
			printf(" %d", frame->code);
		print_name(" ", frame->error_class, "");
		print_name(" \"", frame->text, "\"");
	} else {
		(void)spoke_value_print(value_of(frame->value), text, size);
		printf("%s", frame->value.len ? text : "nil");
	}
	if (request->known)
		printf(" after %.3f ms", (double)request->took_ns / MS);
}

static void print_frame(const struct tap_style *style, const struct tap_place *place,
			const struct spoke_frame *frame, const struct tap_request *request)
{
	print_way(place);
	printf("%s %" PRIu64, spoke_frame_kind_name(frame->kind), frame->id);
	if (frame->bad) {
		printf(" %s%s%s: %s (serialization %u)", terminal_colour(TERMINAL_RED),
		       spoke_errname(frame->error), terminal_colour(TERMINAL_NORMAL),
		       spoke_strerror(frame->error), frame->codec);
	} else if (is_request(frame)) {
		print_request(style, frame);
	} else if (frame->kind == SPOKE_FRAME_REPLY) {
		print_reply(style, frame, request);
	}
	printf(", %zu B\n", frame->bytes.len);
}

/* --- JSON */

static void begin_json(const struct tap_place *place, bool with_way, const char *kind)
{
	printf("{\"at_ns\":%" PRIu64 ",\"link\":%lu", place->wall_ns, place->link);
	if (with_way)
		printf(",\"way\":\"%s\"", place->to_target ? "to" : "from");
	printf(",\"kind\":\"%s\"", kind);
}

static void json_text(const char *key, struct spoke_span span)
{
	if (span.len == 0)
		return;
	printf(",\"%s\":", key);
	json_print_text(span.data, span.len, stdout);
}

static void json_value(const char *key, struct spoke_span span)
{
	if (span.len == 0)
		return;
	printf(",\"%s\":", key);
	json_print(value_of(span), SPOKE_JSON_LINE, stdout);
}

static void json_request(const struct spoke_frame *frame)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(frame->args);
	struct spoke_value value;
	const char *comma = "";

	json_text("service", frame->service);
	json_text("version", frame->version);
	json_text("group", frame->group);
	json_text("method", frame->method);
	json_text("types", frame->types);
	printf(",\"args\":[");
	while (spoke_cursor_next(&cursor, &value)) {
		printf("%s", comma);
		json_print(value, SPOKE_JSON_LINE, stdout);
		comma = ",";
	}
	printf("]");
	if (frame->timeout_ms)
		printf(",\"timeout_ms\":%" PRId64, frame->timeout_ms);
}

static void json_reply(const struct spoke_frame *frame, const struct tap_request *request)
{
	printf(",\"status\":%d", frame->status);
	if (frame->error)
		printf(",\"code\":%d", frame->code);
	json_text("text", frame->text);
	json_text("class", frame->error_class);
	json_value("value", frame->value);
	if (request->known) {
		printf(",\"after_ns\":%" PRIu64 ",\"of\":", request->took_ns);
		json_print_text(request->method, strlen(request->method), stdout);
	}
}

static void json_raw(struct spoke_span bytes)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *at = bytes.data;

	printf(",\"raw\":\"");
	for (size_t i = 0; i < bytes.len; i++) {
		(void)putchar(digits[at[i] >> 4]);
		(void)putchar(digits[at[i] & 0xf]);
	}
	printf("\"");
}

static void json_frame(const struct tap_style *style, const struct tap_place *place,
		       const struct spoke_frame *frame, const struct tap_request *request)
{
	begin_json(place, true, spoke_frame_kind_name(frame->kind));
	printf(",\"wire\":\"%s\",\"id\":%" PRIu64 ",\"bytes\":%zu,\"codec\":%u", frame->wire,
	       frame->id, frame->bytes.len, frame->codec);
	if (is_wrong(frame))
		printf(",\"error\":\"%s\",\"bad\":%s", spoke_errname(frame->error),
		       frame->bad ? "true" : "false");
	if (!frame->bad && is_request(frame))
		json_request(frame);
	if (!frame->bad && frame->kind == SPOKE_FRAME_REPLY)
		json_reply(frame, request);
	json_value("attachments", frame->attachments);
	if (style->raw)
		json_raw(frame->bytes);
	printf("}\n");
}

/* --- the functions of tap_line.h */

static void print_row(const unsigned char *bytes, size_t at, size_t len)
{
	printf("    %06zx ", at);
	for (size_t i = 0; i < RAW_ROW; i++) {
		if (i < len)
			printf(" %02x", bytes[at + i]);
		else
			printf("   ");
	}
	printf("  ");
	for (size_t i = at; i < at + len; i++)
		(void)putchar(bytes[i] >= ' ' && bytes[i] < 0x7f ? bytes[i] : '.');
	printf("\n");
}

static void print_raw(struct spoke_span bytes)
{
	for (size_t at = 0; at < bytes.len; at += RAW_ROW)
		print_row(bytes.data, at, bytes.len - at < RAW_ROW ? bytes.len - at : RAW_ROW);
}

void tap_line_bytes(const struct tap_style *style, const struct tap_place *place,
		    struct spoke_span bytes)
{
	char *copy;

	if (!style->raw)
		return;
	copy = tap_secret_guess(bytes);
	bytes = (struct spoke_span){ copy, copy ? bytes.len : 0 };
	if (!style->json) {
		print_raw(bytes);
	} else {
		begin_json(place, true, "bytes");
		json_raw(bytes);
		printf("}\n");
	}
	free(copy);
}

void tap_line_frame(const struct tap_style *style, const struct tap_place *place,
		    const struct spoke_frame *frame, const struct tap_request *request)
{
	struct tap_secret hidden;

	if (style->quiet && !is_wrong(frame))
		return;
	tap_secret_hide(frame, style->json, style->raw, &hidden);
	if (style->json)
		json_frame(style, place, &hidden.frame, request);
	else
		print_frame(style, place, &hidden.frame, request);
	if (style->raw && !style->json)
		print_raw(hidden.frame.bytes);
	tap_secret_fini(&hidden);
}

static void event_rest(const struct tap_style *style, const char *event, const char *text)
{
	if (!style->json) {
		printf("%s%s%s\n", event, text ? ": " : "", text ? text : "");
		return;
	}
	if (text) {
		printf(",\"text\":");
		json_print_text(text, strlen(text), stdout);
	}
	printf("}\n");
}

void tap_line_event(const struct tap_style *style, const struct tap_place *place, const char *event,
		    const char *text)
{
	if (style->json) {
		begin_json(place, false, event);
	} else {
		print_time(place->wall_ns);
		printf("#%lu ", place->link);
	}
	event_rest(style, event, text);
}

void tap_line_way(const struct tap_style *style, const struct tap_place *place, const char *event,
		  const char *text)
{
	if (style->json)
		begin_json(place, true, event);
	else
		print_way(place);
	event_rest(style, event, text);
}
