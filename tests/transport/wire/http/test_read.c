/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP requests as messages: streams whole and in all pieces, and what is refused. */
#include "tests/core/memory.h"
#include "tests/support/test.h"
#include "tests/transport/wire/http/requests.h"
#include "tests/transport/wires.h"
#include "transport/wire/http/http.h"
#include "transport/wire/http/parts.h"
#include "transport/wire/intake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_SIZE 4096u
static const struct spokei_http_rules rules = {
	.origins = "https://shop.example,http://other:8080",
	.hosts = "api.example",
};

static const struct spokei_wire_limits limits = {
	.frame_max = 16384,
	.name_max = 64,
	.event_max = 64,
	.value = { 8, 1000, SPOKE_VALUE_OBJECT_BYTES_MAX, 16384, false },
	.http = &rules,
};

struct run {
	struct memory memory;
	struct spokei_intake intake;
	enum spokei_intake_result last;
	bool continues; /* status 100 was asked for */
	char log[LOG_SIZE];
};

static void add(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct run *run, const char *format, ...)
{
	size_t at = strlen(run->log);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(run->log + at, LOG_SIZE - at, format, args);
	va_end(args);
}

static void add_value(struct run *run, struct spoke_value value)
{
	char text[1024];

	(void)spoke_value_print(value, text, sizeof(text));
	add(run, "%s", text);
}

static void add_call(struct run *run, const struct spokei_message *message)
{
	struct spoke_cursor args = spoke_cursor_bytes(message->args);
	struct spoke_value arg;
	size_t count = 0;

	add(run, "%.*s %.*s [", (int)message->service.len, (const char *)message->service.data,
	    (int)message->method.len, (const char *)message->method.data);
	for (; spoke_cursor_next(&args, &arg); count++) {
		add(run, count ? "," : "");
		add_value(run, arg);
	}
	add(run, "]");
	assert_int_equal(count, message->arg_count);
	assert_true(message->two_way);
	if (message->timeout_ms)
		add(run, " %lld ms", (long long)message->timeout_ms);
	if (message->version.len)
		add(run, " %.*s %.*s", (int)message->version.len,
		    (const char *)message->version.data, (int)message->group.len,
		    (const char *)message->group.data);
	if (message->attachments.len) {
		add(run, " ");
		add_value(run, message->attachments);
	}
	add(run, "%s%s%s%s", message->safe_only ? " safe" : "",
	    message->id & SPOKEI_HTTP_ID_HEAD ? " head" : "", message->last ? " last" : "",
	    message->id & SPOKEI_HTTP_ID_OLD ? " old" : "");
}

/* Reasons of the request parser are not repeated here. */
static void add_refusal(struct run *run, const struct spokei_message *message)
{
	unsigned status = message->id >> SPOKEI_HTTP_ID_STATUS & 0x3ff;

	assert_int_equal(run->intake.reader.error, SPOKE_EBADREQUEST);
	assert_true(message->error_text.len > 0);
	add(run, "%u", status);
	if (!message->last || status == 417)
		add(run, " %.*s", (int)message->error_text.len,
		    (const char *)message->error_text.data);
	add(run, "%s", message->last ? ", last" : "");
}

static void note(struct run *run, const struct spokei_message *message)
{
	unsigned origin = message->id >> SPOKEI_HTTP_ID_ORIGIN & 0xff;

	assert_int_equal(message->last, (message->id & SPOKEI_HTTP_ID_LAST) != 0);
	if (message->kind == SPOKEI_QUESTION && message->id & SPOKEI_HTTP_ID_CONTINUE) {
		assert_false(run->continues);
		run->continues = true;
		return;
	}
	run->continues = false;
	if (run->last == SPOKEI_INTAKE_BAD_BODY)
		add_refusal(run, message);
	else if (message->kind == SPOKEI_QUESTION)
		add(run, "options");
	else
		add_call(run, message);
	if (origin > 0 && run->last != SPOKEI_INTAKE_BAD_BODY)
		add(run, " origin %u", origin);
	add(run, "\n");
}

static void start(struct run *run)
{
	memset(run, 0, sizeof(*run));
	memory_init(&run->memory);
	spokei_intake_init(&run->intake, &run->memory.env, &limits);
	run->intake.wire = &spokei_wire_http;
}

static void stop(struct run *run)
{
	spokei_intake_fini(&run->intake);
	assert_int_equal(run->memory.bytes, 0);
}

/* Feeds a copy that ends with its allocation. */
static void give(struct run *run, const char *bytes, size_t len)
{
	char *piece = malloc(len ? len : 1);
	struct spoke_span rest = { piece, len };

	assert_non_null(piece);
	memcpy(piece, bytes, len);
	for (;;) {
		struct spokei_message message;

		run->last = spokei_intake_next(&run->intake, &rest, &message);
		if (run->last == SPOKEI_INTAKE_MORE || run->last == SPOKEI_INTAKE_BROKEN)
			break;
		note(run, &message);
	}
	free(piece);
}

TEST(requests_become_calls_or_are_refused)
{
	for (size_t i = 0; i < http_request_count; i++) {
		struct run run;

		start(&run);
		give(&run, http_requests[i].bytes, strlen(http_requests[i].bytes));
		if (strcmp(run.log, http_requests[i].log ? http_requests[i].log : "") != 0)
			fail_msg("%s\ngives\n%s", http_requests[i].bytes, run.log);
		stop(&run);
	}
}

TEST(cuts_make_no_difference)
{
	for (size_t i = 0; i < http_request_count; i++) {
		const char *log = http_requests[i].log ? http_requests[i].log : "";
		size_t len = strlen(http_requests[i].bytes);

		for (size_t cut = 0; cut <= len; cut++) {
			struct run run;

			start(&run);
			give(&run, http_requests[i].bytes, cut);
			give(&run, http_requests[i].bytes + cut, len - cut);
			if (strcmp(run.log, log) != 0)
				fail_msg("%s\ncut at %zu gives\n%s", http_requests[i].bytes, cut,
					 run.log);
			stop(&run);
		}
		for (size_t piece = 1; piece <= 5; piece++) {
			struct run run;

			start(&run);
			for (size_t at = 0; at < len; at += piece)
				give(&run, http_requests[i].bytes + at,
				     len - at < piece ? len - at : piece);
			if (strcmp(run.log, log) != 0)
				fail_msg("%s\nin pieces of %zu gives\n%s", http_requests[i].bytes,
					 piece, run.log);
			stop(&run);
		}
	}
}

/* Status 100 is asked for once, when the head is complete and the body is not. */
TEST(a_client_that_waits_is_told_to_go_on)
{
	static const char head[] = POST("/s/m", "Expect: 100-continue\r\n" CHUNKED, "");
	struct run run;

	start(&run);
	give(&run, head, sizeof(head) - 2);
	assert_false(run.continues);
	give(&run, head + sizeof(head) - 2, 1);
	assert_true(run.continues);
	for (const char *at = "1\r\n1\r\n0\r\n\r"; *at; at++)
		give(&run, at, 1);
	assert_true(run.continues);
	assert_string_equal(run.log, "");
	give(&run, "\n", 1);
	assert_string_equal(run.log, "s m [1]\n");
	run.log[0] = '\0';
	give(&run, head, sizeof(head) - 1);
	assert_true(run.continues);
	stop(&run);
}

/* Heads end within 8 KiB, and bodies with their heads within frame.max. Memory follows the bytes
 * that have arrived. */
TEST(long_requests_are_refused)
{
	static char bytes[3 * 16384];
	size_t head_len;
	struct run run;

	memset(bytes, 'a', sizeof(bytes));
	memcpy(bytes, "GET /s/m HTTP/1.1\r\nX: ", 22);
	for (size_t piece = 100; piece <= sizeof(bytes); piece *= 21) {
		start(&run);
		for (size_t at = 0; at < sizeof(bytes); at += piece)
			give(&run, bytes + at,
			     sizeof(bytes) - at < piece ? sizeof(bytes) - at : piece);
		assert_string_equal(run.log, "431, last\n");
		assert_true(run.memory.bytes <= 16384);
		stop(&run);
	}
	head_len = (size_t)snprintf(bytes, sizeof(bytes), POST("/s/m", CHUNKED, ""));
	/* Extensions count, too. */
	for (size_t at = head_len; at + 100 < sizeof(bytes); at += 100)
		(void)snprintf(bytes + at, 101, "1;%093u\r\n1\r\n", 0u);
	for (size_t piece = 100; piece <= sizeof(bytes); piece *= 21) {
		start(&run);
		for (size_t at = 0; at < sizeof(bytes); at += piece)
			give(&run, bytes + at,
			     sizeof(bytes) - at < piece ? sizeof(bytes) - at : piece);
		assert_string_equal(run.log, "413, last\n");
		assert_true(run.memory.bytes <= 32768);
		stop(&run);
	}
}

TEST(body_with_too_many_values_is_413_and_names_the_limit)
{
	char text[4096];
	struct run run;
	int len = snprintf(text, sizeof(text),
			   "POST /s/m HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2003\r\n\r\n");

	text[len++] = '[';
	for (unsigned i = 0; i < 1000; i++) {
		text[len++] = '1';
		text[len++] = ',';
	}
	text[len++] = '1';
	text[len++] = ']';
	start(&run);
	give(&run, text, (size_t)len);
	assert_string_equal(run.log, "413 body, byte 2004: more than 1000 values (values.max), or "
				     "16384 bytes of them (frame.max)\n");
	stop(&run);
}

/* Without memory the stream is broken, and nothing leaks. */
TEST(memory_may_fail_anywhere)
{
	static const char bytes[] = POST("/demo%2eEcho/echo", "Spoke-Attachment-a: b\r\n" CHUNKED,
					 "5\r\n[1,\"a\r\n2\r\n\"]\r\n0\r\n\r\n")
		GET("/s/m?a=1", "");
	unsigned fail_at = 0;
	struct run run;

	do {
		start(&run);
		run.memory.fail_at = ++fail_at;
		for (size_t at = 0; at < sizeof(bytes) - 1; at += 7)
			give(&run, bytes + at,
			     sizeof(bytes) - 1 - at < 7 ? sizeof(bytes) - 1 - at : 7);
		if (run.last == SPOKEI_INTAKE_BROKEN)
			assert_int_equal(run.intake.reader.error, SPOKE_ENOMEM);
		else
			assert_string_equal(run.log, "demo.Echo echo [1,\"a\"] {\"a\": \"b\"}\n"
						     "s m [1] safe\n");
		stop(&run);
	} while (run.memory.asked >= fail_at);
	assert_true(fail_at > 2);
}

/* Their bytes were not checked, or are not there. */
TEST(names_of_a_bad_path_are_not_given)
{
	static const char *const lines[] = { "PUT /%ff/m", "PUT /s/%ff",  "PUT /a%20b/m%0",
					     "PUT /s/m/n", "OPTIONS //m", "OPTIONS /s/%ffm" };
	struct run run;

	start(&run);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct spokei_message message;
		struct spokei_buffer scratch;
		char text[128];

		spokei_buffer_init(&scratch, &run.memory.env, 4096);
		(void)snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: localhost\r\n\r\n",
			       lines[i]);
		(void)wire_read(&spokei_wire_http, &limits, NULL, spokei_span(text, strlen(text)),
				&scratch, &message);
		assert_false(message.safe_only);
		assert_int_equal(message.service.len, 0);
		assert_int_equal(message.method.len, 0);
		spokei_buffer_fini(&scratch);
	}
	stop(&run);
}

TEST(a_place_without_http_refuses_each_request)
{
	static const char bytes[] = POST("/s/m", LEN("1"), "1") GET("/", "");

	for (size_t piece = 1; piece <= sizeof(bytes); piece++) {
		struct run run;

		start(&run);
		run.intake.wire = NULL;
		run.intake.no_http = true;
		for (size_t at = 0; at + 1 < sizeof(bytes); at += piece)
			give(&run, bytes + at,
			     sizeof(bytes) - 1 - at < piece ? sizeof(bytes) - 1 - at : piece);
		assert_string_equal(run.log, "403, last\n");
		stop(&run);
	}
}
