/* SPDX-License-Identifier: Apache-2.0 */
/* Calls by HTTP at the port of a provider: answers, statuses, order, headers. */
#include "tests/integration/httprig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
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
