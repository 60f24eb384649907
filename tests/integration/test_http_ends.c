/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP clients that leave, are slow, send too much, or meet the end of the provider. */
#include "tests/integration/httprig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ECHO "/demo.EchoService/echo"
#define LATER "/demo.EchoService/later"
#define MEMORY_MAX ((size_t)1 << 20)

static bool has_later(void *arg)
{
	const struct stage *stage = arg;

	return stage->later_count > 0;
}

static bool is_abandoned(void *arg)
{
	const struct stage *stage = arg;

	return stage->abandoned > 0;
}

/* --- clients that leave */

RUNNER(stage_run_rows);

ROW(a_client_that_sends_no_more_gets_its_answers, STAGE_ALL)
{
	struct raw *raw = http_to_provider(stage, NULL);

	for (unsigned i = 0; i < 3; i++)
		http_post(raw, LATER, "1");
	raw_shut(raw);
	for (unsigned i = 0; i < 3; i++) {
		stage_until(stage, has_later, stage);
		stage_pass(stage, 10 * MS);
		stage_answer_later(stage);
		http_want(raw, 200, "1\n");
	}
	assert_closed_mutely(raw);
	assert_int_equal(stage->abandoned, 0);
}

/* The handler learns at once that its caller is gone. */
ROW(a_request_of_a_client_that_is_gone_is_abandoned, STAGE_ALL)
{
	struct raw *raw = http_to_provider(stage, NULL);

	http_post(raw, LATER, "1");
	stage_until(stage, has_later, stage);
	raw_reset(raw);
	if (stage->on == STAGE_UNIX) { /* no reset: the end looks like a half-close */
		stage_pass(stage, 20 * MS);
	} else {
		stage_until(stage, is_abandoned, stage);
		assert_closed_once(stage, SPOKE_STAT_CLOSED_BY_PEER);
	}
	stage_answer_later(stage);
	assert_second_connection_works(stage);
}

/* With requests waiting behind, the end is noticed at the answer. */
ROW(waiting_requests_of_a_client_that_is_gone_are_dropped, STAGE_ALL)
{
	struct raw *raw = http_to_provider(stage, NULL);

	for (unsigned i = 0; i < 20; i++)
		http_post(raw, LATER, "1");
	stage_until(stage, has_later, stage);
	raw_reset(raw);
	while (stage_up(stage, SPOKE_STAT_CLOSED) == 0) {
		if (stage->later_count > 0)
			stage_answer_later(stage);
		stage_turn(stage);
	}
	assert_true(stage_up(stage, SPOKE_STAT_REQUESTS) <= 20);
	assert_second_connection_works(stage);
}

/* --- slow and endless clients */

static void drip(struct raw *raw, const char *begin, const char *drop, size_t most)
{
	bool open = raw_try_send(raw, begin, strlen(begin));

	for (size_t i = 0; i < most && open; i++) {
		stage_pass(raw->stage, stage_is_virtual(raw->stage) ? 1000 * MS : 20 * MS);
		open = raw_try_send(raw, drop, strlen(drop)) && (raw_pull(raw), !raw->ended);
	}
	assert_false(open);
}

/* A request has the time of a frame, however it trickles in. */
ROW(slow_requests_are_cut_off, STAGE_ALL)
{
	static const char *const begins[] = {
		"GET / HT",
		"POST " ECHO " HTTP/1.1\r\n" HTTP_HOST,
		"POST " ECHO " HTTP/1.1\r\n" HTTP_HOST "Content-Length: 1000\r\n\r\n",
		"POST " ECHO " HTTP/1.1\r\n" HTTP_HOST "Transfer-Encoding: chunked\r\n\r\n",
	};
	static const char *const drops[] = { "T", "X: y\r\n", "1", "1\r\n1\r\n" };

	(void)http_to_provider(stage, NULL);
	stage_shorten(stage);
	for (size_t i = 0; i < LENGTH(begins); i++)
		drip(raw_connect(stage), begins[i], drops[i], 20);
	assert_closed_times(stage, SPOKE_STAT_CLOSED_FRAME_TIME, LENGTH(begins));
	assert_second_connection_works(stage);
}

/* While a request is served, the next one may wait: that time does not count. */
ROW(a_request_that_waits_for_its_turn_is_not_slow, STAGE_ALL)
{
	struct raw *raw = http_to_provider(stage, NULL);

	stage_shorten(stage);
	http_post(raw, LATER, "1");
	http_ask(raw, "POST " ECHO " HTTP/1.1\r\n" HTTP_HOST "Content-Length: 2\r\n\r\n1");
	stage_until(stage, has_later, stage);
	stage_pass(stage, stage_is_virtual(stage) ? 60 * SECOND : 250 * MS);
	assert_nothing_closed(stage);
	stage_answer_later(stage);
	http_want(raw, 200, "1\n");
	RAW_SEND(raw, "0");
	http_want(raw, 200, "10\n");
	assert_nothing_closed(stage);
}

ROW(long_heads_and_bodies_are_refused, STAGE_ALL)
{
	static char bytes[70000];
	struct raw *raw = http_to_provider(stage, NULL);
	size_t before = stage->faulty.bytes;

	memset(bytes, 'a', sizeof(bytes));
	memcpy(bytes, "GET / HTTP/1.1\r\nX: ", 19);
	(void)raw_try_send(raw, bytes, sizeof(bytes));
	http_want(raw, 431, "*\"written\":false}\n");
	(void)raw_wait_end(raw);
	raw_close(raw);
	raw = raw_connect(stage);
	http_ask(raw, "POST " ECHO " HTTP/1.1\r\n" HTTP_HOST "Content-Length: 999999999\r\n\r\n");
	(void)raw_try_send(raw, bytes, sizeof(bytes));
	http_want(raw, 413, "*\"the request does not fit frame.max, 8388608 bytes\"*");
	(void)raw_wait_end(raw);
	raw_close(raw);
	raw = raw_connect(stage);
	http_ask(raw, "POST " ECHO " HTTP/1.1\r\n" HTTP_HOST
		      "Transfer-Encoding: chunked\r\n\r\nfffffff0\r\n");
	(void)raw_try_send(raw, bytes, sizeof(bytes));
	http_want(raw, 413, "*");
	(void)raw_wait_end(raw);
	if (stage_is_virtual(stage))
		assert_true(stage->faulty.bytes_peak - before <= MEMORY_MAX);
	assert_second_connection_works(stage);
}

/* A client that sends requests and reads nothing stops being read, and is closed. */
ROW(a_flood_of_requests_has_a_bound, STAGE_SMOOTH)
{
	static const char *const paths[] = { ECHO, LATER };

	for (size_t i = 0; i < LENGTH(paths); i++) {
		struct raw *raw = i ? raw_connect(stage) : http_to_provider(stage, NULL);
		size_t before = stage->faulty.bytes;
		char one[256];
		int len = snprintf(one, sizeof(one),
				   "POST %s HTTP/1.1\r\n" HTTP_HOST "Content-Length: 1\r\n\r\n1",
				   paths[i]);
		bool open = true;

		stage->limits->slow_ns = stage_is_virtual(stage) ? 30 * SECOND : 150 * MS;
		stage->limits->out_high = 65536;
		stage->limits->out_low = 16384;
		stage_mark(stage);
		for (size_t sent = 0; sent < 4000000 && open; sent += (size_t)len) {
			const struct spoke_env *env = stage->peer_env;
			ssize_t put = env->net->write(env->ctx, raw->fd,
						      &(struct iovec){ one, (size_t)len }, 1);

			if (put == -EAGAIN || (put > 0 && put < len))
				break;
			open = put > 0;
			if (sent % 5000 < (size_t)len)
				stage_turn(stage);
		}
		if (stage_is_virtual(stage))
			assert_true(stage->faulty.bytes_peak - before <= MEMORY_MAX);
		if (paths[i] == paths[1]) {
			assert_int_equal(stage->later_count, 1);
			raw_reset(raw);
			stage_answer_later(stage);
		}
		raw_close(raw);
		stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
		while (stage->later_count > 0)
			stage_answer_later(stage);
		assert_second_connection_works(stage);
	}
}

ROW(idle_clients_are_closed, STAGE_MEMORY)
{
	struct raw *raw = http_to_provider(stage, NULL);

	assert_http_lives(raw);
	stage_pass(stage, 70 * SECOND);
	assert_http_lives(raw);
	http_post(raw, LATER, "1");
	stage_pass(stage, 200 * SECOND);
	assert_nothing_closed(stage);
	stage_answer_later(stage);
	http_want(raw, 200, "1\n");
	stage_pass(stage, 70 * SECOND);
	assert_nothing_closed(stage);
	stage_pass(stage, 85 * SECOND);
	assert_closed_mutely(raw);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_IDLE);
}

/* --- the end of the provider */

static void drain(struct stage *stage)
{
	assert_int_equal(spoke_engine_drain(stage->engine, UINT64_MAX), SPOKE_OK);
	stage_pass(stage, 10 * MS);
}

ROW(a_drain_answers_what_it_serves, STAGE_ALL)
{
	struct raw *idle = http_to_provider(stage, NULL);
	struct raw *raw = raw_connect(stage);
	struct raw *busy = raw_connect(stage);
	struct http_answer answer;

	assert_http_lives(idle);
	http_post(raw, LATER, "1");
	http_post(busy, LATER, "1");
	while (stage->later_count < 2)
		stage_turn(stage);
	http_post(busy, ECHO, "2");
	stage_pass(stage, 20 * MS);
	drain(stage);
	assert_closed_mutely(idle);
	raw_close(idle);
	stage_pass(stage, 100 * MS);
	assert_int_equal(raw_pull(raw), 0);
	assert_false(raw->ended);
	while (stage->later_count > 0)
		stage_answer_later(stage);
	http_take(raw, &answer);
	assert_int_equal(answer.status, 200);
	assert_non_null(strstr(answer.head, "\r\nConnection: close\r\n"));
	assert_closed_mutely(raw);
	http_take(busy, &answer);
	assert_non_null(strstr(answer.head, "\r\nConnection: close\r\n"));
	http_take(busy, &answer);
	assert_int_equal(answer.status, 503);
	assert_non_null(strstr(answer.head, "\r\nConnection: close\r\n"));
	assert_closed_mutely(busy);
}

/* Takes the last response of a connection: it says so, and the connection ends. */
static void take_last(struct raw *raw, unsigned status, const char *body)
{
	struct http_answer answer;

	http_take(raw, &answer);
	assert_int_equal(answer.status, status);
	assert_non_null(strstr(answer.head, "\r\nConnection: close\r\n"));
	assert_int_equal(fnmatch(body, answer.body, 0), 0);
	assert_closed_mutely(raw);
}

/* A client that is between two requests cannot know of the drain. */
ROW(a_drain_serves_requests_that_cross_it, STAGE_ALL)
{
	struct raw *raw = http_to_provider(stage, NULL);
	struct raw *twice = raw_connect(stage);
	struct raw *idle = raw_connect(stage);
	struct http_answer answer;

	assert_http_lives(raw);
	assert_http_lives(twice);
	assert_http_lives(idle);
	drain(stage);
	assert_int_equal(raw_pull(idle), 0);
	assert_false(idle->ended);
	http_post(raw, ECHO, "1");
	take_last(raw, 200, "1\n");
	http_ask(twice, "POST " ECHO " HTTP/1.1\r\n" HTTP_HOST "Content-Length: 1\r\n\r\n2"
			"POST " ECHO " HTTP/1.1\r\n" HTTP_HOST "Content-Length: 1\r\n\r\n3");
	http_take(twice, &answer);
	assert_int_equal(answer.status, 200);
	if (stage->on != STAGE_ROUGH) /* there the second one comes too late */
		take_last(twice, 503, "*\"written\":false}\n");
	assert_closed_mutely(idle);
}

ROW(a_drain_answers_a_request_that_comes_in_parts, STAGE_VIRTUAL)
{
	static const char begin[] = "POST " ECHO " HTTP/1.1\r\n" HTTP_HOST
				    "Content-Length: 2\r\n\r\n1";
	struct raw *early = http_to_provider(stage, NULL);
	struct raw *late = raw_connect(stage);
	struct raw *never_ends = raw_connect(stage);

	RAW_SEND(early, begin);
	RAW_SEND(late, begin);
	RAW_SEND(never_ends, begin);
	stage_pass(stage, 10 * MS);
	drain(stage);
	RAW_SEND(early, "0");
	take_last(early, 200, "10\n");
	stage_pass(stage, 310 * MS);
	assert_int_equal(raw_pull(late), 0);
	assert_false(late->ended);
	RAW_SEND(late, "0");
	take_last(late, 503, "*\"written\":false}\n");
	assert_closed_mutely(never_ends);
}

ROW(a_provider_may_end_while_it_serves, STAGE_ALL)
{
	struct raw *raw = http_to_provider(stage, NULL);

	http_post(raw, LATER, "1");
	http_post(raw, LATER, "2");
	stage_until(stage, has_later, stage);
	stage_pass(stage, 20 * MS);
	spoke_provider_free(stage->provider);
	stage->provider = NULL;
	stage->limits = NULL;
	assert_closed_mutely(raw);
	stage_until(stage, is_abandoned, stage);
	assert_int_equal(stage->later_count, 1);
	stage_answer_later(stage);
}

/* HTTP has no requests in the other direction. */
ROW(pages_get_no_pushes, STAGE_ALL)
{
	const struct spoke_method_options options = { .service = "demo.News" };
	struct raw *raw = http_to_provider(stage, NULL);
	struct spoke_method *method;
	size_t count;

	assert_http_lives(raw);
	assert_int_equal(spoke_provider_method(stage->provider, "moved", &options, &method),
			 SPOKE_OK);
	assert_int_equal(spoke_push_all_with(method, SPOKE_ARGS("x"), &count), SPOKE_OK);
	assert_int_equal(count, 1); /* the good consumer */
	stage_pass(stage, 20 * MS);
	assert_http_lives(raw);
	assert_nothing_closed(stage);
}

/* --- memory that fails */

static void talk(struct stage *stage, struct raw *raw)
{
	static const char bytes[] = "POST /demo%2eEchoService/echo HTTP/1.1\r\n" HTTP_HOST
				    "Spoke-Attachment-a: b\r\nTransfer-Encoding: chunked\r\n\r\n"
				    "3\r\n[1]\r\n0\r\n\r\n"
				    "POST " LATER " HTTP/1.1\r\n" HTTP_HOST
				    "Content-Length: 1\r\n\r\n2"
				    "GET /demo.Web/get?a=3 HTTP/1.1\r\n" HTTP_HOST "\r\n"
				    "GET /openapi.json HTTP/1.1\r\n" HTTP_HOST
				    "Connection: close\r\n\r\n";

	for (size_t at = 0; at < sizeof(bytes) - 1; at += 100) {
		size_t left = sizeof(bytes) - 1 - at;

		if (!raw_try_send(raw, bytes + at, left < 100 ? left : 100))
			return;
		stage_pass(stage, 2 * MS);
	}
	while (!raw->ended) {
		if (stage->later_count > 0)
			stage_answer_later(stage);
		stage_turn(stage);
		(void)raw_pull(raw);
	}
}

static void never(struct spoke_request *request, void *arg)
{
	(void)request;
	(void)arg;
	fail();
}

/* A new service lets the provider make its OpenAPI document again. */
static void add_service(struct stage *stage, unsigned number)
{
	static const struct spoke_handler handler = { .method = "never", .handle = never };
	char name[32];
	struct spoke_service_options options = { .name = name };

	(void)snprintf(name, sizeof(name), "demo.New%u", number);
	assert_int_equal(spoke_provider_add(stage->provider, &options, &handler, 1), SPOKE_OK);
}

/* Each request gets one answer, in order, or the connection ends. */
ROW(memory_may_fail_at_each_allocation, STAGE_VIRTUAL)
{
	uint64_t failed = 0;
	uint64_t skip = 0;
	struct raw *raw = http_to_provider(stage, NULL);

	talk(stage, raw);
	raw_close(raw);
	do {
		struct spokei_faults_rule *rule = &stage->faulty.rules[SPOKEI_FAULTS_MEMORY];

		stage_pass(stage, 10 * SECOND);
		raw = raw_connect(stage);
		add_service(stage, (unsigned)skip);
		failed = stage->faulty.failed[SPOKEI_FAULTS_MEMORY];
		*rule = (struct spokei_faults_rule){ .skip = skip++, .error = -1 };
		talk(stage, raw);
		failed = stage->faulty.failed[SPOKEI_FAULTS_MEMORY] - failed;
		*rule = (struct spokei_faults_rule){ .error = 0 };
		raw_close(raw);
	} while (failed > 0 && skip < 1000);
	assert_in_range(skip, 10, 999);
	assert_second_connection_works(stage);
}
