/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the HTTP wire behind its input buffer. The first byte selects the pieces in which the
 * stream is read; the messages must be those of the whole stream. Each message is valid, and gets
 * an answer whose length is true. The second byte selects frame.max, so that limits are met. The
 * quick search for the end of a request must agree with the parser.
 */
#define _GNU_SOURCE
#include "tests/core/memory.h"
#include "tests/fuzz/fuzz.h"
#include "transport/http/request.h"
#include "transport/wire/http/http.h"
#include "transport/wire/intake.h"

#include <spoke/value.h>

#include <stdlib.h>
#include <string.h>

#define KEPT_MAX ((size_t)1 << 20)

static const struct spokei_http_rules rules = { "https://a.example", "b.example" };

struct story {
	uint64_t sum; /* checksum of all messages */
	size_t count;
	enum spokei_intake_result last;
};

static void add(struct story *story, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < len; i++)
		story->sum = (story->sum ^ at[i]) * UINT64_C(1099511628211);
	story->sum = (story->sum ^ len) * UINT64_C(1099511628211);
}

static void add_message(struct story *story, const struct spokei_message *message)
{
	const struct spoke_span spans[] = {
		message->service, message->version,
		message->group,   message->method,
		message->args,    { message->attachments.data, message->attachments.len },
		message->types,   message->error_text,
	};
	const int64_t numbers[] = { (int64_t)message->kind, (int64_t)message->id,
				    message->timeout_ms,    (int64_t)message->arg_count,
				    message->safe_only,     message->last };
	struct spoke_value checked;

	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
		add(story, spans[i].data, spans[i].len);
	add(story, numbers, sizeof(numbers));
	demand(spoke_values_check(message->args.data, message->args.len, NULL,
				  &(struct spoke_cursor){ 0 }, NULL) == SPOKE_OK,
	       "arguments are values");
	demand(message->attachments.len == 0 ||
		       spoke_value_check(message->attachments.data, message->attachments.len, NULL,
					 &checked) == SPOKE_OK,
	       "attachments are a value");
}

/* Answers with the first argument, or the error. */
static void answer(const struct spokei_wire_limits *limits, const struct spokei_message *request,
		   int error, struct spokei_buffer *out)
{
	struct spoke_cursor args = spoke_cursor_bytes(request->args);
	struct spokei_message reply = {
		.kind = SPOKEI_REPLY,
		.id = request->id,
		.error = error,
		.error_text = request->error_text,
		.attachments = request->attachments,
	};
	const char *head;
	const char *end;
	const char *length;
	int status;

	(void)!spoke_cursor_next(&args, &reply.value);
	spokei_buffer_clear(out);
	status = spokei_wire_http.write(limits, &reply, out);
	demand(status == SPOKE_OK || status == SPOKE_ETOOLARGE || status == SPOKE_EUNSUPPORTED,
	       "an answer can be written");
	if (status != SPOKE_OK)
		return;
	head = (const char *)spokei_buffer_data(out);
	end = memmem(head, spokei_buffer_len(out), "\r\n\r\n", 4);
	demand(strncmp(head, "HTTP/1.1 ", 9) == 0 && end != NULL, "a response has a head");
	length = memmem(head, (size_t)(end - head), "\r\nContent-Length: ", 18);
	if (length == NULL || length > end)
		return;
	demand(end + 4 == head + spokei_buffer_len(out) ||
		       strtoul(length + 18, NULL, 10) ==
			       spokei_buffer_len(out) - (size_t)(end + 4 - head),
	       "the length of a response is true");
}

static struct story read_in(const struct spokei_wire_limits *limits, const uint8_t *data,
			    size_t size, size_t piece)
{
	struct story story = { .last = SPOKEI_INTAKE_MORE };
	struct spokei_intake intake;
	struct spokei_message message;
	struct spokei_buffer out;
	struct memory memory;

	memory_init(&memory);
	spokei_intake_init(&intake, &memory.env, limits);
	spokei_buffer_init(&out, &memory.env, KEPT_MAX);
	intake.wire = &spokei_wire_http;
	for (size_t at = 0; at < size; at += piece) {
		size_t len = size - at < piece ? size - at : piece;
		unsigned char *copy = malloc(len);
		struct spoke_span rest = { copy, len };

		demand(copy != NULL, "there is memory");
		memcpy(copy, data + at, len);
		for (;;) {
			story.last = spokei_intake_next(&intake, &rest, &message);
			if (story.last == SPOKEI_INTAKE_MORE || story.last == SPOKEI_INTAKE_BROKEN)
				break;
			/* Whether status 100 is asked for depends on the pieces. */
			if (message.kind == SPOKEI_REQUEST || message.last) {
				story.count++;
				add_message(&story, &message);
			}
			answer(limits, &message, intake.reader.error, &out);
		}
		free(copy);
		demand(memory.bytes <= KEPT_MAX, "memory is bounded");
	}
	spokei_intake_fini(&intake);
	spokei_buffer_fini(&out);
	demand(memory.bytes == 0, "nothing leaks");
	return story;
}

/* The quick search for the end of a request agrees with the parser. */
static void check_validator(const uint8_t *data, size_t size)
{
	struct spokei_http_request request;
	size_t len = spokei_http_find_end(data, size);
	int status = spokei_http_read_head(data, size, NULL, NULL, &request);

	if (status == SPOKEI_HTTP_MORE)
		demand(len == 0, "no request ends before its head");
	if (status == SPOKEI_HTTP_WHOLE && len > 0)
		demand(!request.chunked && len == request.head_len + request.body_len,
		       "a request has one end");
}

FUZZ(httpwire)
{
	struct spokei_wire_limits limits = {
		.name_max = 64,
		.event_max = 64,
		.value = { 8, 1000, SPOKE_VALUE_OBJECT_BYTES_MAX, 65536, false },
		.http = &rules,
	};
	struct story whole;
	struct story pieces;

	if (size < 2)
		return 0;
	limits.frame_max = data[1] < 128 ? 65536 : 64u + 8u * (data[1] % 128u);
	check_validator(data + 2, size - 2);
	whole = read_in(&limits, data + 2, size - 2, size);
	pieces = read_in(&limits, data + 2, size - 2, 1 + data[0] % 64u);
	demand(whole.sum == pieces.sum && whole.count == pieces.count && whole.last == pieces.last,
	       "the pieces make no difference");
	return 0;
}
