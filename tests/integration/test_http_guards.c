/* SPDX-License-Identifier: Apache-2.0 */
/* Guards before the handler of an HTTP request: origins of pages, places, filters, tracers. */
#include "tests/integration/httprig.h"
#include "tests/support/test.h"

#include <spoke/trace.h>

#include <stdio.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define ECHO "/demo.EchoService/echo"

RUNNER(stage_run_rows);

ROW(pages_need_an_allowed_origin, STAGE_ALL)
{
	const struct spoke_provider_options options = {
		.http_origins = "https://shop.example",
		.http_hosts = "api.example",
	};
	struct raw *raw = http_to_provider(stage, &options);
	struct http_answer answer;

	http_ask(raw,
		 "OPTIONS " ECHO " HTTP/1.1\r\nHost: api.example\r\n"
		 "Origin: https://shop.example\r\nAccess-Control-Request-Method: POST\r\n\r\n");
	http_take_head(raw, &answer);
	assert_int_equal(answer.status, 204);
	assert_non_null(strstr(answer.head, "\r\nAccess-Control-Allow-Origin: https://shop.example"
					    "\r\n"));
	assert_non_null(strstr(answer.head, "\r\nAccess-Control-Allow-Methods: POST\r\n"));
	http_ask(raw, "POST " ECHO " HTTP/1.1\r\nHost: api.example\r\n"
		      "Origin: https://shop.example\r\nContent-Type: application/json\r\n"
		      "Content-Length: 1\r\n\r\n1");
	http_take(raw, &answer);
	assert_int_equal(answer.status, 200);
	assert_non_null(strstr(answer.head, "\r\nAccess-Control-Allow-Origin: https://shop.example"
					    "\r\nVary: Origin\r\n"));
	http_ask(raw, "POST " ECHO " HTTP/1.1\r\nHost: api.example\r\n"
		      "Origin: https://evil.example\r\nContent-Length: 1\r\n\r\n1");
	http_take(raw, &answer);
	assert_int_equal(answer.status, 403);
	assert_null(strstr(answer.head, "Access-Control"));
	http_ask(raw, "GET /demo.Web/get HTTP/1.1\r\n" HTTP_HOST "Sec-Fetch-Site: cross-site\r\n"
		      "\r\n");
	http_want(raw, 403, "*");
	assert_int_equal(stage->handled, 1 + 3);
	assert_http_lives(raw);
}

static struct spoke_filter_verdict judge(void *arg, const struct spoke_request *request)
{
	int error = *(const int *)arg;

	(void)request;
	return (struct spoke_filter_verdict){
		.step = error ? SPOKE_FILTER_REFUSE : SPOKE_FILTER_GO_ON,
		.error = error,
		.text = "not you",
	};
}

ROW(filters_judge_requests, STAGE_ALL)
{
	static const struct {
		int error;
		unsigned status;
	} rows[] = {
		{ SPOKE_EREFUSED, 503 }, { SPOKE_ELIMIT, 429 },     { SPOKE_EREMOTE, 403 },
		{ SPOKE_EINVAL, 403 },   { SPOKE_EFORBIDDEN, 403 },
	};
	int error = 0;
	const struct spoke_filter filter = { .before_request = judge, .arg = &error };
	const struct spoke_filter *const filters[] = { &filter };
	const struct spoke_provider_options options = { .filters = filters, .filter_count = 1 };
	struct raw *raw = http_to_provider(stage, &options);

	assert_http_lives(raw);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		error = rows[i].error;
		http_post(raw, ECHO, "1");
		http_want(raw, rows[i].status, "*\"not you\"*");
	}
	error = 0;
	assert_http_lives(raw);
	stage_end_serving(stage);
	spoke_provider_free(stage->provider);
	stage->provider = NULL;
	stage->limits = NULL;
}

static void note_span(void *arg, const struct spoke_trace_span *span)
{
	struct spoke_trace_span *last = arg;

	*last = *span;
}

/* The span of a request continues the trace of the HTTP client. */
ROW(traces_go_on_in_the_provider, STAGE_ALL)
{
	static const unsigned char parent[8] = { 0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31 };
	struct spoke_trace_span span = { .has_parent = false };
	const struct spoke_tracer_options with = { .ended = note_span, .arg = &span };
	const struct spoke_filter *filter;
	struct spoke_tracer *tracer;
	struct raw *raw;

	assert_int_equal(spoke_tracer_new(NULL, &with, &tracer), SPOKE_OK);
	filter = spoke_tracer_filter(tracer);
	raw = http_to_provider(stage, &(struct spoke_provider_options){ .filters = &filter,
									.filter_count = 1 });
	http_ask(raw, "POST " ECHO " HTTP/1.1\r\n" HTTP_HOST
		      "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"
		      "tracestate: a=1\r\nContent-Length: 1\r\n\r\n1");
	http_want(raw, 200, "1\n");
	assert_int_equal(span.kind, SPOKE_TRACE_SERVER);
	assert_true(span.has_parent);
	assert_memory_equal(span.parent_id, parent, sizeof(parent));
	assert_int_equal(span.context.trace_id[0], 0x0a);
	assert_string_equal(span.context.state, "a=1");
	assert_int_equal(span.error, SPOKE_OK);
	spoke_provider_free(stage->provider);
	stage->provider = NULL;
	stage->limits = NULL;
	stage_pass(stage, 20 * MS);
	spoke_tracer_free(tracer);
}

ROW(http_may_be_off, STAGE_VIRTUAL | STAGE_TCP)
{
	struct raw *raw = http_to_provider(stage, NULL);
	const char *at = stage->on == STAGE_TCP ? "dubbo://127.0.0.1:0?http=off"
						: "dubbo://127.0.0.1:20890?http=off";

	assert_http_lives(raw);
	assert_int_equal(spoke_provider_listen(stage->provider, at), SPOKE_OK);
	assert_true(spoke_provider_address(stage->provider, 1, stage->provider_at,
					   sizeof(stage->provider_at)) > 0);
	raw = raw_connect(stage);
	http_ask(raw, "POST " ECHO " HTTP/1.1\r\n" HTTP_HOST "Content-Length: 1\r\n\r\n1"
		      "GET / HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_want(raw, 403, "*its listen URL needs ?http=on\",\"written\":false}\n");
	assert_closed_mutely(raw);
	assert_raw_lives(raw_connect(stage));
}

/* Beyond loopback, HTTP has to be asked for. */
ROW(http_is_off_at_places_that_others_reach, STAGE_VIRTUAL)
{
	static const char *const urls[] = { "dubbo://0.0.0.0:20891",
					    "dubbo://0.0.0.0:20892?http=on" };
	char at[128];

	(void)http_to_provider(stage, NULL);
	for (size_t i = 0; i < LENGTH(urls); i++) {
		struct raw *raw;

		assert_int_equal(spoke_provider_listen(stage->provider, urls[i]), SPOKE_OK);
		assert_true(spoke_provider_address(stage->provider, 1 + i, at, sizeof(at)) > 0);
		(void)snprintf(stage->provider_at, sizeof(stage->provider_at), "127.0.0.1%s",
			       strrchr(at, ':'));
		raw = raw_connect(stage);
		http_post(raw, ECHO, "1");
		http_want(raw, i ? 200 : 403, "*");
	}
}

/* The lines of the access log that the engine has written. */
static struct {
	char text[8192];
	unsigned bad; /* bytes that could forge a line */
} heard;

static void hear(void *ctx, const struct spoke_log_line *line)
{
	size_t len = strlen(heard.text);

	(void)ctx;
	if (strcmp(line->module, "access") != 0)
		return;
	(void)snprintf(heard.text + len, sizeof(heard.text) - len, "%s\n", line->text);
	for (const char *at = line->text; *at; at++)
		heard.bad += *at < ' ' || *at == 0x7f;
}

ROW(nothing_of_a_request_forges_a_line_of_the_access_log, STAGE_ALL)
{
	const struct spoke_provider_options options = { .access_log = "true" };
	struct raw *raw = http_to_provider(stage, &options);

	memset(&heard, 0, sizeof(heard));
	stage->faulty.env.log = hear;
	http_ask(raw, "GET /demo.Web/get?user=%%0aforged HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_want(raw, 200, "\"?nforged\"\n");
	http_ask(raw, "POST /demo.Any/th%%0aing%%22?user=%%0a HTTP/1.1\r\n" HTTP_HOST
		      "Spoke-Attachment-user: %%0aforged\r\nSpoke-Timeout: 60s\r\n"
		      "Content-Length: 6\r\n\r\n\"\\n b\"");
	http_want(raw, 200, "*");
	stage->faulty.env.log = NULL;
	assert_int_equal(heard.bad, 0);
	assert_null(strstr(heard.text, "forged"));
	assert_non_null(strstr(heard.text, "\"demo.Web\" \"\" \"\" \"get\" "));
	assert_non_null(strstr(heard.text, "\"demo.Any\" \"\" \"\" \"th\\x0aing\\\"\" "));
	assert_http_lives(raw);
}
