/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP requests as messages: streams whole and in all pieces, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/core/memory.h"
#include "transport/wire/http/http.h"
#include "transport/wire/http/parts.h"
#include "transport/wire/intake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define LOG_SIZE 4096u
#define POST(path, lines, body) "POST " path " HTTP/1.1\r\nHost: localhost\r\n" lines "\r\n" body
#define GET(path, lines) "GET " path " HTTP/1.1\r\nHost: localhost\r\n" lines "\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"
#define LEN(digits) "Content-Length: " digits "\r\n"

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

struct row {
	const char *bytes;
	const char *log; /* a line for each message */
};

/* A call: service, method, arguments; then what differs from the usual. A refusal: status, reason.
 */
static const struct row rows[] = {
	/* Calls. */
	{ POST("/demo.Echo/echo", LEN("5"), "[1,2]"), "demo.Echo echo [1,2]\n" },
	{ POST("/demo.Echo/echo", LEN("1"), "7"), "demo.Echo echo [7]\n" },
	{ POST("/demo.Echo/echo", LEN("0"), ""), "demo.Echo echo []\n" },
	{ POST("/demo.Echo/echo", "", ""), "demo.Echo echo []\n" },
	{ POST("/demo.Echo/echo", LEN("4"), "[{}]"), "demo.Echo echo [{}]\n" },
	{ POST("/demo.Echo/echo", LEN("2"), "{}"), "demo.Echo echo [{}]\n" },
	{ POST("/demo.Echo/echo?x=1", LEN("1"), "7"), "demo.Echo echo [7]\n" },
	{ POST("/demo.Echo/echo", CHUNKED, "2\r\n[1\r\n3;x\r\n,2]\r\n0\r\nA: b\r\n\r\n"),
	  "demo.Echo echo [1,2]\n" },
	{ POST("/demo.Echo/echo", CHUNKED, "0\r\n\r\n"), "demo.Echo echo []\n" },
	{ POST("/demo%2eEcho/%65cho", LEN("1"), "1"), "demo.Echo echo [1]\n" },
	{ POST("/demo.Echo", LEN("0"), ""), "demo.Echo $methods []\n" },
	{ POST("/demo.Echo/", LEN("0"), ""), "demo.Echo $methods []\n" },
	{ GET("/", ""), "spoke.Provider services [] safe\n" },
	{ GET("/openapi.json", ""), "spoke.Provider openapi [] safe\n" },
	{ GET("/demo.Echo", ""), "demo.Echo $methods [] safe\n" },
	{ GET("/demo.Echo/echo", ""), "demo.Echo echo [] safe\n" },
	{ GET("/s/m?a=1&b=x%20y&c=true&d=%22t%22&e=[1,2]&f=a+b&g=&&h", ""),
	  "s m [1,\"x y\",true,\"t\",[1, 2],\"a b\",\"\",\"h\"] safe\n" },
	{ GET("/s/m?a=007&b=%7B%22k%22:1.5%7D&c=9007199254740993", ""),
	  "s m [\"007\",{\"k\": 1.5},9007199254740993] safe\n" },
	{ "HEAD /s/m HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "s m [] safe head\n" },
	{ "OPTIONS /s/m HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "options\n" },
	{ "OPTIONS * HTTP/1.1\r\nHost: 10.0.0.1:9\r\n\r\n", "options\n" },
	{ "POST /s/m HTTP/1.0\r\nContent-Length: 1\r\n\r\n1", "s m [1] last\n" },
	{ "POST /s/m HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n1",
	  "s m [1] old\n" },
	{ POST("/s/m", "Connection: close\r\n" LEN("1"), "1") GET("/", ""), "s m [1] last\n" },
	{ POST("/s/m", LEN("1"), "1") POST("/s/n", LEN("1"), "2"), "s m [1]\ns n [2]\n" },
	{ POST("/s/m", CHUNKED, "1\r\n1\r\n0\r\n\r\n") GET("/s/n", ""), "s m [1]\ns n [] safe\n" },
	{ "\r\n", NULL },
	/* Expect. */
	{ POST("/s/m", "Expect: 100-continue\r\n" LEN("1"), "1"), "s m [1]\n" },
	{ POST("/s/m", "Expect: 100-continue\r\n" LEN("0"), ""), "s m []\n" },
	{ POST("/s/m", "Expect: tea\r\n" LEN("1"), "1"),
	  "417 The only expectation that is supported is 100-continue., last\n" },
	/* Types and encodings. */
	{ POST("/s/m", "Content-Type: application/json\r\n" LEN("1"), "1"), "s m [1]\n" },
	{ POST("/s/m", "Content-Type: Application/JSON ; charset=x\r\n" LEN("1"), "1"),
	  "s m [1]\n" },
	{ POST("/s/m", "Content-Type: application/x-www-form-urlencoded\r\n" LEN("1"), "1"),
	  "s m [1]\n" },
	{ POST("/s/m", "Content-Type: text/plain\r\n" LEN("1"), "1"),
	  "415 Content-Type: send application/json\n" },
	{ POST("/s/m", "Content-Encoding: gzip\r\n" LEN("1"), "1"),
	  "415 Content-Encoding: only identity is supported\n" },
	{ POST("/s/m", "Content-Encoding: identity\r\n" LEN("1"), "1"), "s m [1]\n" },
	/* Times. */
	{ POST("/s/m", "Spoke-Timeout: 250ms\r\n", ""), "s m [] 250 ms\n" },
	{ POST("/s/m", "Spoke-Timeout: 1.5s\r\n", ""), "s m [] 1500 ms\n" },
	{ POST("/s/m", "Spoke-Timeout: 0\r\n", ""), "s m [] -1 ms\n" },
	{ POST("/s/m", "grpc-timeout: 250m\r\n", ""), "s m [] 250 ms\n" },
	{ POST("/s/m", "grpc-timeout: 1H\r\n", ""), "s m [] 3600000 ms\n" },
	{ POST("/s/m", "grpc-timeout: 1n\r\n", ""), "s m [] 1 ms\n" },
	{ POST("/s/m", "grpc-timeout: 0S\r\n", ""), "s m [] -1 ms\n" },
	{ POST("/s/m", "grpc-timeout: 99999999H\r\n", ""), "s m [] 18446744073710 ms\n" },
	{ POST("/s/m", "grpc-timeout: 100000000m\r\n", ""),
	  "400 grpc-timeout: write at most eight digits and one of H, M, S, m, u and n, e.g. "
	  "250m\n" },
	{ POST("/s/m", "Spoke-Timeout: soon\r\n", ""),
	  "400 Spoke-Timeout: write a number and a unit, e.g. 250ms or 1.5s\n" },
	{ POST("/s/m", "Spoke-Timeout: -1s\r\n", ""),
	  "400 Spoke-Timeout: write a number and a unit, e.g. 250ms or 1.5s\n" },
	/* Versions and attachments. */
	{ POST("/s/m", "Spoke-Version: 1.0\r\nSpoke-Group: g\r\n", ""), "s m [] 1.0 g\n" },
	{ POST("/s/m", "Spoke-Attachment-User: a%20b\r\nspoke-attachment-x:\r\n", ""),
	  "s m [] {\"user\": \"a b\", \"x\": \"\"}\n" },
	{ POST("/s/m", "Spoke-Attachment-a: 1\r\nSpoke-Attachment-A: 2\r\n", ""),
	  "400 attachments: each name once, and values in UTF-8 or with %XX\n" },
	{ POST("/s/m", "Spoke-Attachment-a: 5%\r\n", ""),
	  "400 attachments: each name once, and values in UTF-8 or with %XX\n" },
	{ POST("/s/m", "Spoke-Attachment-a: %ff\r\n", ""),
	  "400 attachments: each name once, and values in UTF-8 or with %XX\n" },
	{ POST("/s/m", "Spoke-Attachment-timeout: 5\r\n", ""),
	  "400 attachments: each name once, and values in UTF-8 or with %XX\n" },
	{ POST("/s/m", "traceparent: 00-a-b-01\r\ntracestate: x=5%\r\nTraceState: y=1\r\n", ""),
	  "s m [] {\"traceparent\": \"00-a-b-01\", \"tracestate\": \"x=5%\"}\n" },
	/* Paths. */
	{ POST("/s/m/n", LEN("0"), ""), "404 the path of a call is /SERVICE/METHOD\n" },
	{ POST("//m", LEN("0"), ""), "404 the path of a call is /SERVICE/METHOD\n" },
	{ POST("/s%00/m", LEN("0"), ""), "400 the path has a bad percent sign\n" },
	{ POST("/s/m%0", LEN("0"), ""), "400 the path has a bad percent sign\n" },
	{ POST("/s/m%ff", LEN("0"), ""), "400 the path is not UTF-8\n" },
	{ POST("/0123456789012345678901234567890123456789012345678901234567890123x/m", "", ""),
	  "404 the path of a call is /SERVICE/METHOD\n" },
	{ GET("/s/m?a=%", ""),
	  "400 the query has a bad percent sign, or a text that is not UTF-8\n" },
	{ GET("/s/m?a=%ff", ""),
	  "400 the query has a bad percent sign, or a text that is not UTF-8\n" },
	/* Bodies; the connection goes on. */
	{ POST("/s/m", LEN("2"), "[1") POST("/s/m", LEN("1"), "1"),
	  "400 body, byte 3: unexpected end inside an array or object\ns m [1]\n" },
	{ POST("/s/m", LEN("13"), "{\"a\":1,\"a\":2}"),
	  "400 body, byte 11: the object has this key already\n" },
	{ POST("/s/m", LEN("11"), "[[[[[[[[[[1"),
	  "400 body, byte 10: the value is nested too deeply\n" },
	/* Methods. */
	{ "PUT /s/m HTTP/1.1\r\nHost: localhost\r\n\r\n",
	  "405 send a POST, or a GET to a safe method\n" },
	{ "DELETE /s/m HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n1" GET("/", ""),
	  "405 send a POST, or a GET to a safe method\nspoke.Provider services [] safe\n" },
	/* Browsers. */
	{ POST("/s/m", "Origin: http://localhost\r\n" LEN("1"), "1"), "s m [1]\n" },
	{ POST("/s/m", "Origin: https://shop.example\r\n" LEN("1"), "1"), "s m [1] origin 1\n" },
	{ POST("/s/m", "Origin: http://other:8080\r\n" LEN("1"), "1"), "s m [1] origin 2\n" },
	{ "OPTIONS /s/m HTTP/1.1\r\nHost: api.example\r\nOrigin: http://other:8080\r\n\r\n",
	  "options origin 2\n" },
	{ POST("/s/m", "Origin: http://shop.example\r\n" LEN("1"), "1"),
	  "403 Origin: pages of this origin are not allowed; add it to the key http.origins\n" },
	{ POST("/s/m", "Origin: null\r\n" LEN("1"), "1"),
	  "403 Origin: pages of this origin are not allowed; add it to the key http.origins\n" },
	{ POST("/s/m", "Origin: https://shop.example\r\nContent-Type: text/plain\r\n" LEN("1"),
	       "1"),
	  "415 Content-Type: send application/json\n" },
	{ POST("/s/m",
	       "Origin: https://shop.example\r\n"
	       "Content-Type: application/x-www-form-urlencoded\r\n" LEN("1"),
	       "1"),
	  "415 Content-Type: send application/json\n" },
	{ GET("/s/m", "Sec-Fetch-Site: cross-site\r\n"),
	  "403 pages of other sites are not allowed\n" },
	{ GET("/s/m", "Sec-Fetch-Site: same-site\r\n"),
	  "403 pages of other sites are not allowed\n" },
	{ GET("/s/m", "Sec-Fetch-Site: same-origin\r\n"), "s m [] safe\n" },
	{ GET("/s/m", "Sec-Fetch-Site: none\r\n"), "s m [] safe\n" },
	{ "GET /s/m HTTP/1.1\r\nHost: evil.example\r\n\r\n",
	  "421 Host: this name is not allowed; add it to the key http.hosts\n" },
	{ "GET /s/m HTTP/1.1\r\nHost: API.example:80\r\n\r\n", "s m [] safe\n" },
	{ "GET http://evil.example/s/m HTTP/1.1\r\nHost: localhost\r\n\r\n",
	  "421 Host: this name is not allowed; add it to the key http.hosts\n" },
	/* Smuggling: nothing after such a request is read. */
	{ POST("/s/m", LEN("1") CHUNKED, "1\r\n1\r\n0\r\n\r\n") GET("/", ""), "400, last\n" },
	{ POST("/s/m", CHUNKED LEN("1"), "1") GET("/", ""), "400, last\n" },
	{ POST("/s/m", LEN("1") LEN("1"), "1") GET("/", ""), "400, last\n" },
	{ POST("/s/m", LEN("1") LEN("2"), "12") GET("/", ""), "400, last\n" },
	{ POST("/s/m", LEN("1, 1"), "1") GET("/", ""), "400, last\n" },
	{ POST("/s/m", LEN("+1"), "1") GET("/", ""), "400, last\n" },
	{ POST("/s/m", LEN("0x1"), "1") GET("/", ""), "400, last\n" },
	{ POST("/s/m", LEN(""), "1") GET("/", ""), "400, last\n" },
	{ POST("/s/m", CHUNKED CHUNKED, "0\r\n\r\n") GET("/", ""), "400, last\n" },
	{ POST("/s/m", "Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), "501, last\n" },
	{ POST("/s/m", "Transfer-Encoding: identity\r\n", "0\r\n\r\n"), "501, last\n" },
	{ POST("/s/m", "Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), "400, last\n" },
	{ POST("/s/m", "X: a\r\n Transfer-Encoding: chunked\r\n", "0\r\n\r\n"), "400, last\n" },
	{ POST("/s/m", "X: a\rTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), "400, last\n" },
	{ "POST /s/m HTTP/1.0\r\n" CHUNKED "\r\n0\r\n\r\n", "400, last\n" },
	{ "GET /s/m HTTP/1.1\r\n\r\n", "400, last\n" },
	{ "GET /s/m HTTP/2.0\r\nHost: a\r\n\r\n", "505, last\n" },
	{ POST("/s/m", CHUNKED, "1\nx"), "400, last\n" },
	{ POST("/s/m", CHUNKED, "ffffff\r\n"), "413, last\n" },
	{ POST("/s/m", LEN("16385"), ""), "413, last\n" },
	{ POST("/s/m", LEN("99999999999999999999999999"), ""), "413, last\n" },
	{ "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", "400, last\n" },
	{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505, last\n" },
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

	assert_int_equal(run->intake.error, SPOKE_EBADREQUEST);
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

static void requests_become_calls_or_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct run run;

		start(&run);
		give(&run, rows[i].bytes, strlen(rows[i].bytes));
		if (strcmp(run.log, rows[i].log ? rows[i].log : "") != 0)
			fail_msg("%s\ngives\n%s", rows[i].bytes, run.log);
		stop(&run);
	}
}

static void cuts_make_no_difference(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const char *log = rows[i].log ? rows[i].log : "";
		size_t len = strlen(rows[i].bytes);

		for (size_t cut = 0; cut <= len; cut++) {
			struct run run;

			start(&run);
			give(&run, rows[i].bytes, cut);
			give(&run, rows[i].bytes + cut, len - cut);
			if (strcmp(run.log, log) != 0)
				fail_msg("%s\ncut at %zu gives\n%s", rows[i].bytes, cut, run.log);
			stop(&run);
		}
		for (size_t piece = 1; piece <= 5; piece++) {
			struct run run;

			start(&run);
			for (size_t at = 0; at < len; at += piece)
				give(&run, rows[i].bytes + at, len - at < piece ? len - at : piece);
			if (strcmp(run.log, log) != 0)
				fail_msg("%s\nin pieces of %zu gives\n%s", rows[i].bytes, piece,
					 run.log);
			stop(&run);
		}
	}
}

/* Status 100 is asked for once, when the head is complete and the body is not. */
static void a_client_that_waits_is_told_to_go_on(void **state)
{
	static const char head[] = POST("/s/m", "Expect: 100-continue\r\n" CHUNKED, "");
	struct run run;

	(void)state;
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
static void long_requests_are_refused(void **state)
{
	static char bytes[3 * 16384];
	size_t head_len;
	struct run run;

	(void)state;
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

/* Without memory the stream is broken, and nothing leaks. */
static void memory_may_fail_anywhere(void **state)
{
	static const char bytes[] = POST("/demo%2eEcho/echo", "Spoke-Attachment-a: b\r\n" CHUNKED,
					 "5\r\n[1,\"a\r\n2\r\n\"]\r\n0\r\n\r\n")
		GET("/s/m?a=1", "");
	unsigned fail_at = 0;
	struct run run;

	(void)state;
	do {
		start(&run);
		run.memory.fail_at = ++fail_at;
		for (size_t at = 0; at < sizeof(bytes) - 1; at += 7)
			give(&run, bytes + at,
			     sizeof(bytes) - 1 - at < 7 ? sizeof(bytes) - 1 - at : 7);
		if (run.last == SPOKEI_INTAKE_BROKEN)
			assert_int_equal(run.intake.error, SPOKE_ENOMEM);
		else
			assert_string_equal(run.log, "demo.Echo echo [1,\"a\"] {\"a\": \"b\"}\n"
						     "s m [1] safe\n");
		stop(&run);
	} while (run.memory.asked >= fail_at);
	assert_true(fail_at > 3);
}

static void a_place_without_http_refuses_each_request(void **state)
{
	static const char bytes[] = POST("/s/m", LEN("1"), "1") GET("/", "");

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_become_calls_or_are_refused),
		cmocka_unit_test(cuts_make_no_difference),
		cmocka_unit_test(a_client_that_waits_is_told_to_go_on),
		cmocka_unit_test(long_requests_are_refused),
		cmocka_unit_test(memory_may_fail_anywhere),
		cmocka_unit_test(a_place_without_http_refuses_each_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
