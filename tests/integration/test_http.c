/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls by HTTP at the port of a provider: answers, OpenAPI, deadlines, guards, and what is
 * seen of them.
 */
#include "core/virtual/files.h"
#include "tests/integration/httprig.h"
#include "tests/support/test.h"

#include <spoke/admin.h>
#include <spoke/trace.h>

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- calls by HTTP at the port of a provider: answers, statuses, order, headers */

#define ECHO "/demo.EchoService/echo"
#define LATER "/demo.EchoService/later"

RUNNER(stage_run_rows);

ROW(calls_are_answered_on_one_connection, STAGE_ALL)
{
	struct raw *raw = http_to_provider(stage, NULL);
	struct http_answer answer;

	http_post(raw, ECHO, "[\"world\", 2]");
	http_take(raw, &answer);
	assert_int_equal(answer.status, 200);
	assert_string_equal(answer.body, "\"world\"\n");
	assert_non_null(strstr(answer.head, "\r\nContent-Type: application/json\r\n"));
	assert_non_null(strstr(answer.head, "\r\nCache-Control: no-store\r\n"));
	assert_null(strstr(answer.head, "Access-Control"));
	assert_null(strstr(answer.head, "Connection"));
	http_post(raw, "/demo.Any/thing", "{\"a\": [9007199254740993, 1.5, null]}");
	http_want(raw, 200, "{\"a\":?9007199254740993,1.5,null?}\n");
	http_ask(raw, "POST " ECHO " HTTP/1.1\r\n" HTTP_HOST
		      "Transfer-Encoding: chunked\r\n\r\n1\r\n7\r\n0\r\n\r\n");
	http_want(raw, 200, "7\n");
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_OK, 3);
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
}

ROW(each_error_has_its_status, STAGE_ALL)
{
	struct raw *raw = http_to_provider(stage, NULL);

	http_post(raw, "/demo.No/echo", "");
	http_want(raw, 404,
		  "{\"error\":\"ENOSERVICE\",\"code\":0,\"text\":\"there is no such service "
		  "*\",\"written\":false}\n");
	http_post(raw, "/demo.EchoService/no", "");
	http_want(raw, 404, "*\"the service has no such method\",\"written\":false}\n");
	http_post(raw, ECHO, "[1");
	http_want(raw, 400, "{\"error\":\"EBADREQUEST\",*\"written\":false}\n");
	http_post(raw, "/demo.EchoService/refuse", "");
	http_want(raw, 500,
		  "{\"error\":\"EREMOTE\",\"code\":7,\"text\":\"no\",\"written\":true}\n");
	http_post(raw, "/demo.EchoService/integer", "\"x\"");
	http_want(raw, 400, "{\"error\":\"EREMOTE\",*\"written\":true}\n");
	http_ask(raw, "GET " ECHO "?x=1 HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_want(raw, 405,
		  "*\"GET is for methods that are marked as safe; send a POST\"*false}\n");
	http_ask(raw, "POST " ECHO " HTTP/1.1\r\n" HTTP_HOST
		      "Content-Type: text/plain\r\nContent-Length: 1\r\n\r\n1");
	http_want(raw, 415, "*false}\n");
	http_ask(raw, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
	http_want(raw, 421, "*http.hosts\",\"written\":false}\n");
	http_ask(raw, "POST " ECHO " HTTP/1.1\r\n" HTTP_HOST
		      "Spoke-Timeout: 0\r\nContent-Length: 1\r\n\r\n1");
	http_want(raw, 504, "{\"error\":\"EEXPIRED\",*\"written\":false}\n");
	http_ask(raw, "PATCH / HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_want(raw, 405, "*");
	assert_http_lives(raw);
	assert_nothing_closed(stage);
}

ROW(limits_answer_429_or_503, STAGE_VIRTUAL)
{
	struct raw *raw = http_to_provider(stage, NULL);
	struct raw *other = raw_connect(stage);
	struct http_answer answer;

	http_post(raw, "/demo.Web/seldom", "1");
	http_want(raw, 200, "1\n");
	http_post(raw, "/demo.Web/seldom", "1");
	http_take(raw, &answer);
	assert_int_equal(answer.status, 429);
	assert_non_null(strstr(answer.head, "\r\nRetry-After: 1\r\n"));
	http_post(raw, "/demo.Web/one", "1");
	stage_until_up(stage, SPOKE_STAT_REQUESTS, 3);
	http_post(other, "/demo.Web/one", "1");
	http_want(other, 429, "{\"error\":\"EREFUSED\",*\"written\":false}\n");
	stage->limits->serving_max = 1;
	http_post(other, ECHO, "1");
	http_take(other, &answer);
	assert_int_equal(answer.status, 503);
	assert_non_null(strstr(answer.head, "\r\nRetry-After: 1\r\n"));
	stage_answer_later(stage);
	http_want(raw, 200, "1\n");
	assert_http_lives(other);
	assert_nothing_closed(stage);
}

static bool has_later(void *arg)
{
	const struct stage *stage = arg;

	return stage->later_count > 0;
}

/* Handlers that answer at once, later, and on the pool. */
ROW(pipelined_requests_are_answered_in_order, STAGE_ALL)
{
	static const char *const paths[] = { ECHO, LATER, "/demo.Web/pool", ECHO, "/no/no" };
	struct raw *raw = http_to_provider(stage, NULL);
	unsigned count = stage->on == STAGE_ROUGH ? 40 : 64; /* more do not fit that network */
	unsigned kept = 0;

	for (unsigned i = 0; i < count; i++) {
		char body[8];

		(void)snprintf(body, sizeof(body), "%u", i);
		http_post(raw, paths[i % LENGTH(paths)], body);
	}
	for (unsigned i = 0; i < count; i++) {
		char body[8];

		if (paths[i % LENGTH(paths)] == paths[1]) {
			stage_until(stage, has_later, stage);
			assert_int_equal(stage->later_count, 1); /* one at a time */
			stage_pass(stage, 1 * MS);
			assert_int_equal(raw_pull(raw), 0);
			kept++;
			stage_answer_later(stage);
		}
		(void)snprintf(body, sizeof(body), "%u\n", i);
		if (i % LENGTH(paths) == 4)
			http_want(raw, 404, "*");
		else
			http_want(raw, 200, body);
	}
	assert_int_equal(kept, (count + 3) / LENGTH(paths));
	assert_http_lives(raw);
	assert_nothing_closed(stage);
}

/* Output that is written while a request is served does not end its turn. */
ROW(no_answer_overtakes_one_that_is_made_later, STAGE_ALL)
{
	struct raw *raw = http_to_provider(stage, NULL);

	http_ask(raw, "POST " ECHO " HTTP/1.1\r\n" HTTP_HOST "Content-Length: 1\r\n\r\n1"
		      "POST " LATER " HTTP/1.1\r\n" HTTP_HOST "Content-Length: 1\r\n\r\n2"
		      "POST " ECHO " HTTP/1.1\r\n" HTTP_HOST "Content-Length: 1\r\n\r\n3");
	http_want(raw, 200, "1\n");
	stage_until(stage, has_later, stage);
	http_post(raw, ECHO, "4");
	stage_pass(stage, 50 * MS);
	assert_int_equal(raw_pull(raw), 0);
	stage_answer_later(stage);
	http_want(raw, 200, "2\n");
	http_want(raw, 200, "3\n");
	http_want(raw, 200, "4\n");
	assert_http_lives(raw);
}

ROW(nothing_is_read_after_connection_close, STAGE_ALL)
{
	struct raw *raw = http_to_provider(stage, NULL);
	struct http_answer answer;

	http_ask(raw, "POST " LATER " HTTP/1.1\r\n" HTTP_HOST
		      "Connection: close\r\nContent-Length: 1\r\n\r\n1"
		      "POST " ECHO " HTTP/1.1\r\n" HTTP_HOST "Content-Length: 1\r\n\r\n2");
	stage_until(stage, has_later, stage);
	http_post(raw, ECHO, "3");
	stage_pass(stage, 20 * MS);
	stage_answer_later(stage);
	http_take(raw, &answer);
	assert_int_equal(answer.status, 200);
	assert_non_null(strstr(answer.head, "\r\nConnection: close\r\n"));
	assert_closed_mutely(raw);
	raw_close(raw);
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS, 1);
	assert_closed_once(stage, SPOKE_STAT_CLOSED);
}

ROW(old_clients_are_served, STAGE_ALL)
{
	struct raw *raw = http_to_provider(stage, NULL);
	struct http_answer answer;

	http_ask(raw, "POST " ECHO " HTTP/1.0\r\nConnection: Keep-Alive\r\n"
		      "Content-Length: 1\r\n\r\n1");
	http_take(raw, &answer);
	assert_int_equal(answer.status, 200);
	assert_non_null(strstr(answer.head, "\r\nConnection: keep-alive\r\n"));
	http_ask(raw, "GET /demo.Web/get?a=5 HTTP/1.0\r\n\r\n");
	http_take(raw, &answer);
	assert_string_equal(answer.body, "5\n");
	assert_non_null(strstr(answer.head, "\r\nConnection: close\r\n"));
	assert_closed_mutely(raw);
}

ROW(get_head_and_options, STAGE_ALL)
{
	struct raw *raw = http_to_provider(stage, NULL);
	struct http_answer answer;

	http_ask(raw, "GET /demo.Web/get?name=w%%20d HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_want(raw, 200, "\"w d\"\n");
	http_ask(raw, "HEAD /demo.Web/get?name=wd HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_take_head(raw, &answer);
	assert_int_equal(answer.status, 200);
	assert_non_null(strstr(answer.head, "Content-Length: 5\r\n"));
	http_ask(raw, "HEAD /no HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_take_head(raw, &answer);
	assert_int_equal(answer.status, 404);
	http_ask(raw, "OPTIONS * HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_take_head(raw, &answer);
	assert_int_equal(answer.status, 204);
	assert_non_null(strstr(answer.head, "\r\nAllow: POST, GET, HEAD, OPTIONS\r\n"));
	assert_null(strstr(answer.head, "Access-Control"));
	http_ask(raw, "GET / HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_want(raw, 200, "?{\"service\":\"demo.EchoService\"*{\"service\":\"demo.Web\"*}?\n");
	http_ask(raw, "GET /demo.Web HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_want(raw, 200, "*\"seldom\"*\n");
	http_ask(raw, "GET /openapi.json HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_want(raw, 200, "{\"openapi\":\"3.1.0\"*\"/demo.Web/get\":{\"post\":*\"get\":*}\n");
	assert_http_lives(raw);
}

/* Returns the methods of HTTP in the header Allow of the next response, without a body. */
static const char *take_allow(struct raw *raw, unsigned status)
{
	static const char name[] = "\r\nAllow: ";
	static struct http_answer answer;
	char *allow;

	if (status == 405)
		http_take(raw, &answer);
	else
		http_take_head(raw, &answer);
	assert_int_equal(answer.status, status);
	allow = strstr(answer.head, name);
	assert_non_null(allow);
	allow += sizeof(name) - 1;
	*strchr(allow, '\r') = '\0';
	return allow;
}

ROW(options_and_405_allow_the_same, STAGE_ALL)
{
	static const char all[] = "POST, GET, HEAD, OPTIONS";
	struct raw *raw = http_to_provider(stage, NULL);

	http_ask(raw, "OPTIONS %s HTTP/1.1\r\n" HTTP_HOST "\r\n", ECHO);
	assert_string_equal(take_allow(raw, 204), "POST, OPTIONS");
	http_ask(raw, "OPTIONS /demo.EchoService/%%65cho HTTP/1.1\r\n" HTTP_HOST "\r\n");
	assert_string_equal(take_allow(raw, 204), "POST, OPTIONS");
	http_ask(raw, "GET %s HTTP/1.1\r\n" HTTP_HOST "\r\n", ECHO);
	assert_string_equal(take_allow(raw, 405), "POST, OPTIONS");
	http_ask(raw, "PATCH %s HTTP/1.1\r\n" HTTP_HOST "\r\n", ECHO);
	assert_string_equal(take_allow(raw, 405), "POST, OPTIONS");
	http_ask(raw, "OPTIONS /demo.Web/get HTTP/1.1\r\n" HTTP_HOST "\r\n");
	assert_string_equal(take_allow(raw, 204), all);
	http_ask(raw, "PATCH /demo.Web/get HTTP/1.1\r\n" HTTP_HOST "\r\n");
	assert_string_equal(take_allow(raw, 405), all);
	http_ask(raw, "OPTIONS /no/no HTTP/1.1\r\n" HTTP_HOST "\r\n");
	assert_string_equal(take_allow(raw, 204), all);
	assert_http_lives(raw);
	assert_nothing_closed(stage);
}

ROW(a_client_that_expects_100_gets_it, STAGE_ALL)
{
	struct raw *raw = http_to_provider(stage, NULL);
	struct http_answer answer;

	/* Its turn comes after the answer to the request before it. */
	http_post(raw, LATER, "1");
	http_ask(raw, "POST " ECHO " HTTP/1.1\r\n" HTTP_HOST
		      "Expect: 100-continue\r\nContent-Length: 1\r\n\r\n");
	stage_until(stage, has_later, stage);
	stage_pass(stage, 20 * MS);
	assert_int_equal(raw_pull(raw), 0);
	stage_answer_later(stage);
	http_want(raw, 200, "1\n");
	http_take_head(raw, &answer);
	assert_int_equal(answer.status, 100);
	RAW_SEND(raw, "2");
	http_want(raw, 200, "2\n");
	assert_http_lives(raw);
}

ROW(times_and_attachments_arrive, STAGE_ALL)
{
	struct raw *raw = http_to_provider(stage, NULL);
	struct http_answer answer;

	http_post(raw, "/demo.Web/left", "");
	http_want(raw, 200, "null\n");
	http_ask(raw, "POST /demo.Web/left HTTP/1.1\r\n" HTTP_HOST "grpc-timeout: 100S\r\n\r\n");
	http_take(raw, &answer);
	assert_true(strcmp(answer.body, "100000\n") == 0 || strncmp(answer.body, "9999", 4) == 0);
	http_ask(raw, "POST /demo.Web/left HTTP/1.1\r\n" HTTP_HOST "Spoke-Timeout: 90s\r\n\r\n");
	http_take(raw, &answer);
	assert_true(strcmp(answer.body, "90000\n") == 0 || strncmp(answer.body, "8999", 4) == 0);
	http_ask(raw,
		 "POST /demo.Web/attach HTTP/1.1\r\n" HTTP_HOST "Spoke-Attachment-User: a%%0ab\r\n"
		 "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n");
	http_take(raw, &answer);
	assert_string_equal(answer.body, "{\"user\":\"a\\nb\",\"traceparent\":\"00-0af7651916cd43dd"
					 "8448eb211c80319c-b7ad6b7169203331-01\"}\n");
	assert_non_null(strstr(answer.head, "\r\nSpoke-Attachment-user: a%0Ab\r\n"));
	assert_non_null(strstr(answer.head, "\r\nSpoke-Attachment-traceparent: 00-0af7"));
}

ROW(long_values_are_answered, STAGE_ALL)
{
	struct raw *raw = http_to_provider(stage, NULL);
	struct http_answer answer;

	for (size_t len = 30000; len < 5000000; len *= 10) {
		http_ask(raw,
			 "POST /demo.EchoService/large HTTP/1.1\r\n" HTTP_HOST
			 "Content-Length: %d\r\n\r\n%zu",
			 snprintf(NULL, 0, "%zu", len), len);
		http_take(raw, &answer);
		assert_int_equal(answer.status, 200);
		assert_true(answer.body_len > len);
	}
	http_post(raw, "/demo.EchoService/large", "7000000");
	http_want(raw, 500,
		  "{\"error\":\"ETOOLARGE\",\"code\":0,\"text\":\"the reply of * bytes does not "
		  "fit a "
		  "frame as text, *frame.max allows 8388608\",\"written\":true}\n");
	assert_http_lives(raw);
}

ROW(requests_after_a_refused_one_are_read, STAGE_ALL)
{
	struct raw *raw = http_to_provider(stage, NULL);

	for (unsigned i = 0; i < 100; i++) {
		http_post(raw, ECHO, "{\"a\":1,\"a\":2}");
		http_post(raw, ECHO, "5");
	}
	for (unsigned i = 0; i < 100; i++) {
		http_want(raw, 400, "*has this key already*");
		http_want(raw, 200, "5\n");
	}
	assert_counter_up_by(stage, SPOKE_STAT_BAD_REQUESTS, 100);
	assert_nothing_closed(stage);
}

/* --- the OpenAPI document of a provider */

static void never(struct spoke_request *request, void *arg)
{
	(void)request;
	(void)arg;
	fail();
}

/* Returns the number of allocations that the answer took. */
static uint64_t ask_openapi(struct stage *stage, struct raw *raw, const char *body)
{
	stage_mark(stage);
	http_ask(raw, "GET /openapi.json HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_want(raw, 200, body);
	return stage_demands(stage);
}

ROW(openapi_document_is_made_again_only_for_new_services, STAGE_VIRTUAL)
{
	static const struct spoke_service_options options = { .name = "demo.New" };
	static const struct spoke_handler handler = { .method = "new", .handle = never };
	struct raw *raw = http_to_provider(stage, NULL);
	uint64_t made;
	uint64_t kept;

	(void)ask_openapi(stage, raw, "*\"/demo.Web/get\":*");
	kept = ask_openapi(stage, raw, "*\"/demo.Web/get\":*");
	assert_int_equal(spoke_provider_add(stage->provider, &options, &handler, 1), SPOKE_OK);
	made = ask_openapi(stage, raw, "*\"/demo.Web/get\":{*\"/demo.New/new\":*");
	assert_true(kept < made);
	assert_int_equal(ask_openapi(stage, raw, "*\"/demo.New/new\":*"), kept);
	assert_http_lives(raw);
}

ROW(openapi_lists_the_methods_of_each_version, STAGE_MEMORY)
{
	static const struct spoke_service_options options[] = {
		{ .name = "demo.New", .version = "1" },
		{ .name = "demo.New", .version = "2" },
	};
	static const struct spoke_handler handlers[] = {
		{ .method = "old", .handle = never },
		{ .method = "new", .handle = never },
	};
	struct raw *raw = http_to_provider(stage, NULL);
	struct http_answer answer;

	for (size_t i = 0; i < 2; i++)
		assert_int_equal(spoke_provider_add(stage->provider, &options[i], handlers, i + 1),
				 SPOKE_OK);
	http_ask(raw, "GET /openapi.json HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_take(raw, &answer);
	assert_int_equal(answer.status, 200);
	assert_non_null(strstr(answer.body, "\"/demo.New/old\":"));
	assert_non_null(strstr(answer.body, "\"/demo.New/new\":"));
	assert_null(strstr(strstr(answer.body, "\"/demo.New/old\":") + 1, "\"/demo.New/old\":"));
}

static void fail_with_everything(struct spoke_request *request, void *arg)
{
	static const unsigned char fields[] = { 0x81, 0xa4, 'l', 'e', 'f', 't', 0x07 };

	(void)arg;
	spoke_reply_exception(request, "it.BizException", 42, "no money",
			      (struct spoke_value){ fields, sizeof(fields) });
}

/* The document is a promise to programs that are made from it. */
ROW(openapi_describes_each_field_of_an_error, STAGE_MEMORY)
{
	static const struct spoke_service_options options = { .name = "demo.Bad" };
	static const struct spoke_handler handler = { .method = "fail",
						      .handle = fail_with_everything };
	struct raw *raw = http_to_provider(stage, NULL);

	assert_int_equal(spoke_provider_add(stage->provider, &options, &handler, 1), SPOKE_OK);
	http_post(raw, "/demo.Bad/fail", "");
	http_want(raw, 500,
		  "{\"error\":\"EREMOTE\",\"code\":42,\"text\":\"no money\",\"written\":true,"
		  "\"class\":\"it.BizException\",\"fields\":{\"left\":7}}\n");
	http_ask(raw, "GET /openapi.json HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_want(raw, 200,
		  "*\"Error\":{\"type\":\"object\",\"properties\":{\"error\":{\"type\":\"string\"},"
		  "\"code\":{\"type\":\"integer\"},\"text\":{\"type\":\"string\"},"
		  "\"written\":{\"type\":\"boolean\"},\"class\":{\"type\":\"string\"},"
		  "\"fields\":{\"type\":\"object\"}},"
		  "\"required\":?\"error\",\"code\",\"text\",\"written\"?}}}}\n");
	assert_http_lives(raw);
}

/* --- HTTP calls whose handler has not answered when the deadline passes */

static const char timed_out[] =
	"{\"error\":\"ETIMEOUT\",\"code\":0,\"text\":\"the deadline passed before the provider "
	"answered\",\"written\":true}\n";

/* The handler answers later; its answer is for no one, and the connection goes on. */
ROW(deadline_answers_504_while_the_handler_runs, STAGE_ALL)
{
	static const char *const times[] = { "Spoke-Timeout: 300ms", "grpc-timeout: 300m" };
	struct raw *raw = http_to_provider(stage, NULL);

	for (unsigned i = 0; i < LENGTH(times); i++) {
		http_ask(raw,
			 "POST " LATER " HTTP/1.1\r\n" HTTP_HOST "%s\r\nContent-Length: 1\r\n\r\n1",
			 times[i]);
		http_post(raw, ECHO, "2");
		stage_until(stage, has_later, stage);
		http_want(raw, 504, timed_out);
		http_want(raw, 200, "2\n");
		assert_int_equal(stage->abandoned, i + 1);
		http_post(raw, LATER, "3");
		while (stage->later_count < 2)
			stage_turn(stage);
		stage_answer_later(stage); /* the late one */
		stage_pass(stage, 10 * MS);
		assert_int_equal(raw_pull(raw), 0);
		stage_answer_later(stage);
		http_want(raw, 200, "3\n");
	}
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_ABANDONED, LENGTH(times));
	assert_int_equal(stage->abandoned, LENGTH(times));
	assert_http_lives(raw);
	assert_nothing_closed(stage);
}

/* A time that is over for one request means nothing for the next. */
ROW(deadline_ends_with_the_answer, STAGE_VIRTUAL)
{
	struct raw *raw = http_to_provider(stage, NULL);

	http_ask(raw, "POST " LATER " HTTP/1.1\r\n" HTTP_HOST
		      "Spoke-Timeout: 1s\r\nContent-Length: 1\r\n\r\n1");
	stage_until(stage, has_later, stage);
	stage_answer_later(stage);
	http_want(raw, 200, "1\n");
	http_post(raw, LATER, "2");
	stage_until(stage, has_later, stage);
	stage_pass(stage, 60 * SECOND);
	assert_int_equal(raw_pull(raw), 0);
	stage_answer_later(stage);
	http_want(raw, 200, "2\n");
	assert_int_equal(stage->abandoned, 0);
	assert_nothing_closed(stage);
}

ROW(late_handler_counts_for_the_limit_after_504, STAGE_VIRTUAL)
{
	struct raw *raw = http_to_provider(stage, NULL);

	http_ask(raw, "POST /demo.Web/one HTTP/1.1\r\n" HTTP_HOST
		      "Spoke-Timeout: 1s\r\nContent-Length: 1\r\n\r\n1");
	http_want(raw, 504, timed_out);
	http_post(raw, "/demo.Web/one", "2");
	http_want(raw, 429, "{\"error\":\"EREFUSED\",*\"written\":false}\n");
	stage_answer_later(stage);
	http_post(raw, "/demo.Web/one", "3");
	stage_until(stage, has_later, stage);
	stage_answer_later(stage);
	http_want(raw, 200, "3\n");
	assert_nothing_closed(stage);
}

/* The last request of a connection ends it, whether it is answered in time or not. */
ROW(deadline_ends_a_connection_that_is_to_close, STAGE_ALL)
{
	struct raw *raw = http_to_provider(stage, NULL);
	struct http_answer answer;

	http_ask(raw, "POST " LATER " HTTP/1.1\r\n" HTTP_HOST
		      "Connection: close\r\nSpoke-Timeout: 300ms\r\nContent-Length: 1\r\n\r\n1");
	http_take(raw, &answer);
	assert_int_equal(answer.status, 504);
	assert_non_null(strstr(answer.head, "\r\nConnection: close\r\n"));
	assert_closed_mutely(raw);
	stage_answer_later(stage);
	assert_second_connection_works(stage);
}

/*
 * --- guards before the handler of an HTTP request: origins of pages, places, filters, tracers
 */

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
	assert_int_equal(spoke_engine_log(stage->engine, "info"), 0);
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

/*
 * --- calls over HTTP in the access log and on the admin page, and the end of the provider in
 * its own handler
 */

#define REFUSE "/demo.EchoService/refuse"
#define LOG_MAX 8192u
#define ENDS(service, method, result)                                                              \
	"\nspoke_method_request_ends_total{service=\"" service "\",method=\"" method               \
	"\",result=\"" result "\"} "
static void free_provider(struct stage *stage)
{
	stage_end_serving(stage);
	spoke_provider_free(stage->provider);
	stage->provider = NULL;
	stage->limits = NULL;
}

/* --- the access log */

struct log {
	struct stage *stage;
	char path[128];
	const char *pattern;
	char text[LOG_MAX];
};

static void read_log(struct log *log)
{
	const char *virtual_text;
	FILE *file;
	size_t len;

	log->text[0] = '\0';
	if (stage_is_virtual(log->stage)) {
		virtual_text = spokei_vfiles_get(log->stage->world.files, log->path);
		(void)snprintf(log->text, sizeof(log->text), "%s",
			       virtual_text ? virtual_text : "");
		return;
	}
	file = fopen(log->path, "re");
	if (file == NULL)
		return;
	len = fread(log->text, 1, sizeof(log->text) - 1, file);
	log->text[len] = '\0';
	(void)fclose(file);
}

static bool log_matches(void *arg)
{
	struct log *log = arg;

	read_log(log);
	return fnmatch(log->pattern, log->text, 0) == 0;
}

/* A refused head or body is no call, and has no line. */
ROW(calls_have_a_line_in_the_access_log, STAGE_ALL)
{
	struct log log = { .stage = stage };
	const struct spoke_provider_options options = { .access_log = log.path };
	struct raw *raw;

	(void)snprintf(log.path, sizeof(log.path), "%s/access", stage->folder);
	raw = http_to_provider(stage, &options);
	http_ask(raw, "POST " ECHO " HTTP/1.1\r\n" HTTP_HOST
		      "Spoke-Version: 9\r\nContent-Length: 1\r\n\r\n1");
	http_want(raw, 404, "*");
	http_post(raw, ECHO, "\"hello\"");
	http_want(raw, 200, "\"hello\"\n");
	http_post(raw, REFUSE, "1");
	http_want(raw, 500, "*");
	http_post(raw, ECHO, "{");
	http_want(raw, 400, "*");
	http_ask(raw, "GET /demo.Web/get?a=2 HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_want(raw, 200, "2\n");
	http_post(raw, "/demo.Web/pool", "[3]");
	http_want(raw, 200, "3\n");
	log.pattern = "20* \"demo.EchoService\" \"\" \"\" \"echo\" 6 OK *\n"
		      "20* \"demo.EchoService\" \"\" \"\" \"refuse\" 1 EREMOTE *\n"
		      "20* \"demo.Web\" \"\" \"\" \"get\" 1 OK *\n"
		      "20* \"demo.Web\" \"\" \"\" \"pool\" 1 OK *\n";
	stage_until(stage, log_matches, &log);
	free_provider(stage);
	stage_pass(stage, 20 * MS);
	if (!stage_is_virtual(stage))
		assert_int_equal(remove(log.path), 0);
}

/* --- the admin page */

ROW(calls_are_counted_on_the_admin_page, STAGE_ALL)
{
	static const struct spoke_admin_options with = { .listen = "127.0.0.1:0" };
	static const char *const lines[] = {
		"\nspoke_method_requests_total{service=\"demo.Web\",method=\"get\"} 3\n",
		ENDS("demo.Web", "get", "ok") "3\n",
		ENDS("demo.Web", "seldom", "ok") "1\n",
		ENDS("demo.Web", "seldom", "refused") "1\n",
		ENDS("demo.EchoService", "refuse", "error") "1\n",
		"\nspoke_bad_requests_total 1\n",
	};
	char provider_at[sizeof(stage->provider_at)];
	struct raw *raw = http_to_provider(stage, NULL);
	struct spoke_admin *admin;
	const char *text;
	struct raw *page;

	for (unsigned i = 0; i < 3; i++) {
		http_ask(raw, "GET /demo.Web/get?a=1 HTTP/1.1\r\n" HTTP_HOST "\r\n");
		http_want(raw, 200, "1\n");
	}
	http_post(raw, "/demo.Web/seldom", "1");
	http_want(raw, 200, "1\n");
	http_post(raw, "/demo.Web/seldom", "1");
	http_want(raw, 429, "*");
	http_post(raw, REFUSE, "1");
	http_want(raw, 500, "*");
	http_post(raw, ECHO, "{");
	http_want(raw, 400, "*");
	assert_int_equal(spoke_admin_new(stage->engine, &with, &admin), SPOKE_OK);
	memcpy(provider_at, stage->provider_at, sizeof(provider_at));
	(void)snprintf(stage->provider_at, sizeof(stage->provider_at), "%s",
		       spoke_admin_address(admin));
	page = raw_start(stage);
	memcpy(stage->provider_at, provider_at, sizeof(provider_at));
	stage_pass(stage, 20 * MS);
	http_ask(page, "GET /metrics HTTP/1.1\r\n" HTTP_HOST "\r\n");
	(void)raw_wait_end(page);
	assert_int_equal(spokei_buffer_append(&page->in, "", 1), 0);
	text = (const char *)spokei_buffer_data(&page->in);
	for (size_t i = 0; i < LENGTH(lines); i++) {
		if (strstr(text, lines[i]) == NULL)
			fail_msg("no line %s", lines[i]);
	}
	raw_close(page);
	spoke_admin_free(admin);
	assert_http_lives(raw);
}

/* --- the end of the provider in its own handler */

static void end_and_reply(struct spoke_request *request, void *arg)
{
	struct stage *stage = arg;

	spoke_provider_free(stage->provider);
	stage->provider = NULL;
	stage->limits = NULL;
	spoke_reply_arg(request, SPOKE_ARG("late"));
	stage->handled++;
}

static void reply_and_end(struct spoke_request *request, void *arg)
{
	struct stage *stage = arg;

	spoke_reply_arg(request, SPOKE_ARG("early"));
	spoke_provider_free(stage->provider);
	stage->provider = NULL;
	stage->limits = NULL;
	stage->handled++;
}

static bool is_freed(void *arg)
{
	const struct stage *stage = arg;

	return stage->provider == NULL;
}

/* Returns whether the handler has run, on a connection with this many further requests. */
static void end_inside(struct stage *stage,
		       void (*handle)(struct spoke_request *request, void *arg), unsigned further)
{
	static const struct spoke_service_options service = { .name = "demo.End" };
	struct spoke_handler handler = { .method = "end", .arg = stage };
	struct raw *raw = http_to_provider(stage, NULL);
	struct raw *other = raw_connect(stage);
	unsigned before = stage->handled;

	handler.handle = handle;
	assert_int_equal(spoke_provider_add(stage->provider, &service, &handler, 1), SPOKE_OK);
	http_ask(other, "POST " ECHO " HTTP/1.1\r\n" HTTP_HOST "Content-Length: 9\r\n\r\n1");
	http_post(raw, "/demo.End/end", "");
	for (unsigned i = 0; i < further; i++)
		http_post(raw, "/demo.End/end", "");
	stage_until(stage, is_freed, stage);
	assert_closed_mutely(other);
	assert_closed_mutely(raw);
	assert_int_equal(stage->handled, before + 1);
}

ROW(a_handler_may_end_the_provider_before_it_answers, STAGE_ALL)
{
	end_inside(stage, end_and_reply, 0);
}

ROW(a_handler_may_end_the_provider_while_a_request_waits, STAGE_ALL)
{
	end_inside(stage, end_and_reply, 2);
}

ROW(a_handler_may_end_the_provider_after_it_has_answered, STAGE_ALL)
{
	end_inside(stage, reply_and_end, 2);
}
