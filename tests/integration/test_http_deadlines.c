/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP calls whose handler has not answered when the deadline passes. */
#include "tests/integration/httprig.h"
#include "tests/support/test.h"

#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define ECHO "/demo.EchoService/echo"
#define LATER "/demo.EchoService/later"

static bool has_later(void *arg)
{
	const struct stage *stage = arg;

	return stage->later_count > 0;
}

static const char timed_out[] =
	"{\"error\":\"ETIMEOUT\",\"code\":0,\"text\":\"the deadline passed before the provider "
	"answered\",\"written\":true}\n";

RUNNER(stage_run_rows);

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
