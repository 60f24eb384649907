/* SPDX-License-Identifier: Apache-2.0 */
/* The authorizer, and messages of pages by POST. */
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define SEND(fields, length, body)                                                                 \
	"POST /spoke/send?user=ann HTTP/1.1\r\n" COMETRIG_HOST fields "Content-Length: " length    \
	"\r\n\r\n" body

static void assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%.400s\" does not have \"%s\"", text, part);
}

static int set_up(void **state)
{
	struct spoke_comet_options options = cometrig_begin();

	(void)state;
	options.authorize = cometrig_authorize;
	options.query_user = false;
	cometrig_make(&options);
	return 0;
}

FIXTURE(set_up, cometrig_tear_down);

static bool admit(unsigned number, const char *user)
{
	return spoke_comet_admit(cometrig.asked[number].entry, spoke_comet_text(user));
}

TEST(authorizer_sees_query_and_cookie)
{
	int fd = cometrig_connect();

	cometrig_send(fd, "GET /spoke/events?ticket=7&x HTTP/1.1\r\n" COMETRIG_HOST
			  "Cookie: sid=abc; b=c\r\n\r\n");
	cometrig_run(MS);
	assert_int_equal(cometrig.asked_count, 1);
	assert_int_equal(cometrig.asked[0].kind, SPOKE_COMET_EVENTS);
	assert_string_equal(cometrig.asked[0].query, "ticket=7&x");
	assert_string_equal(cometrig.asked[0].cookie, "sid=abc; b=c");
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_ASKING), 1);
}

TEST(late_answer_opens_the_connection)
{
	int fd = cometrig_events("t=1", NULL);

	cometrig_run(4900 * MS);
	assert_string_equal(cometrig_read(fd, NULL), "");
	assert_true(admit(0, "ann"));
	assert_has(cometrig_read(fd, NULL), "event: hello");
	assert_false(admit(0, "ann"));
	assert_false(spoke_comet_refuse(cometrig.asked[0].entry, NULL));
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_ASKING), 0);
	assert_string_equal(cometrig.changes, "+ann ");
}

TEST(answer_that_never_comes_ends_in_time)
{
	int events = cometrig_events("", NULL);
	int socket = cometrig_socket("");
	int poll = cometrig_poll("");
	bool ended;

	cometrig_run(5100 * MS);
	assert_has(cometrig_read(events, &ended), "HTTP/1.1 200 OK\r\n");
	assert_has(cometrig.got, "\r\n\r\nretry: ");
	assert_true(ended);
	assert_has(cometrig_frames(socket), "close 1013 retry=");
	assert_has(cometrig_read(poll, &ended), "\r\n\r\n{\"last\":\"\",\"retry\":");
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_UNANSWERED), 3);
	assert_false(admit(0, "ann"));
	assert_false(admit(1, "ann"));
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_USERS), 0);
}

TEST(answer_after_the_client_is_gone_is_harmless)
{
	int fd = cometrig_socket("");

	cometrig_hang_up(fd);
	/* A client that has ended its side may still read, so it is known at the answer. */
	(void)admit(0, "ann");
	cometrig_run(SECOND);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_SOCKETS), 0);
	assert_int_equal(cometrig.comet->quota.count, 0);
	assert_int_equal(cometrig_timers(), 0);
}

TEST(reset_while_asking_ends_the_ask)
{
	(void)cometrig_events("", NULL);
	spokei_vnet_reset(cometrig.world.net, cometrig.accepted);
	cometrig_run(MS);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_ASKING), 0);
	assert_false(admit(0, "ann"));
}

TEST(refused_clients_do_not_come_again)
{
	int events = cometrig_events("", NULL);
	int socket = cometrig_socket("");
	int poll = cometrig_poll("");
	bool ended;

	for (unsigned i = 0; i < 3; i++)
		assert_true(spoke_comet_refuse(cometrig.asked[i].entry, "log in first"));
	assert_has(cometrig_read(events, &ended), "HTTP/1.1 204 No Content\r\n");
	assert_true(ended);
	assert_string_equal(cometrig_frames(socket), "close 4001 log in first\nend\n");
	assert_has(cometrig_read(poll, NULL), "HTTP/1.1 403 ");
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_REFUSED), 3);
}

TEST(later_tells_to_come_again)
{
	int socket = cometrig_socket("");

	assert_true(spoke_comet_later(cometrig.asked[0].entry));
	assert_has(cometrig_frames(socket), "close 1013 retry=");
}

TEST(invalid_user_is_refused)
{
	int socket = cometrig_socket("");

	assert_true(admit(0, "a\tb"));
	assert_has(cometrig_frames(socket), "close 4001 ");
	assert_has(spoke_engine_why(cometrig.engine), "invalid id");
}

/* ... and no line of a log blames the authorizer, for there is none. */
TEST(user_of_a_query_with_control_bytes_is_refused, .tear_down = cometrig_tear_down)
{
	static const char *const users[] = { "%0a", "ann%0aforged", "%7f",          "ann%00", "%ff",
					     "",    "%c2%80",       "ann%c2%9b31m", "%c2%9f" };
	struct spoke_comet_options options = cometrig_begin();
	char query[64];

	cometrig_make(&options);
	for (unsigned i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		(void)snprintf(query, sizeof(query), "user=%s", users[i]);
		assert_has(cometrig_frames(cometrig_socket(query)),
			   "close 4001 no user in the query");
	}
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_USERS), 0);
	assert_null(strstr(spoke_engine_why(cometrig.engine), "authorizer"));
}

TEST(socket_that_sends_before_its_answer_is_closed)
{
	int fd = cometrig_socket("");
	bool ended;

	cometrig_frame(fd, 0x81, "early", 5);
	cometrig_run(MS);
	assert_true(admit(0, "ann"));
	(void)cometrig_read(fd, &ended);
	assert_true(ended);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_SOCKETS), 0);
	assert_int_equal(cometrig.comet->quota.count, 0);
}

TEST(drain_ends_asks_by_their_answers)
{
	int fd = cometrig_events("", NULL);

	assert_int_equal(spoke_engine_drain(cometrig.engine, 60 * SECOND), SPOKE_OK);
	cometrig_run(6 * SECOND);
	assert_has(cometrig_read(fd, NULL), "\r\n\r\nretry: ");
	cometrig_run(3 * SECOND);
	assert_true(cometrig.engine->drained);
}

TEST(answer_during_a_drain_is_to_come_again)
{
	int fd = cometrig_events("", NULL);

	assert_int_equal(spoke_engine_drain(cometrig.engine, 60 * SECOND), SPOKE_OK);
	cometrig_run(MS);
	assert_true(admit(0, "ann"));
	assert_has(cometrig_read(fd, NULL), "\r\n\r\nretry: ");
	cometrig_run(3 * SECOND);
	assert_true(cometrig.engine->drained);
}

TEST(free_ends_asks)
{
	struct spoke_comet_entry entry;

	(void)cometrig_events("", NULL);
	entry = cometrig.asked[0].entry;
	spoke_comet_free(cometrig.comet);
	assert_false(spoke_comet_admit(entry, spoke_comet_text("ann")));
}

/* --- messages of pages */

TEST(post_of_a_page_reaches_the_program)
{
	int fd = cometrig_connect();

	cometrig_send(fd, SEND(COMETRIG_ORIGIN, "5", "hello"));
	cometrig_run(MS);
	assert_int_equal(cometrig.asked[0].kind, SPOKE_COMET_SEND);
	assert_string_equal(cometrig.heard, "");
	assert_true(admit(0, "ann"));
	/* Not from inside the function. */
	assert_string_equal(cometrig.heard, "");
	assert_has(cometrig_read(fd, NULL), "HTTP/1.1 202 ");
	assert_string_equal(cometrig.heard, "ann: hello\n");
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BYTES), 0);
}

TEST(post_needs_an_origin_and_utf8)
{
	assert_has(cometrig_ask(SEND("", "2", "hi")), "HTTP/1.1 403 ");
	assert_has(cometrig_ask(SEND("Origin: http://evil.example\r\n", "2", "hi")),
		   "HTTP/1.1 403 ");
	assert_has(cometrig_ask(SEND(COMETRIG_ORIGIN, "2", "\xc3(")), "HTTP/1.1 400 ");
	assert_int_equal(cometrig.asked_count, 0);
}

/* Posts a text of this length, in two parts; returns the answer. */
static const char *post_of(size_t len, const char *origin)
{
	static char text[4096];
	char head[256];
	int fd = cometrig_connect();

	assert_true(len < sizeof(text));
	memset(text, 'x', len);
	(void)snprintf(head, sizeof(head),
		       "POST /spoke/send?user=ann HTTP/1.1\r\n" COMETRIG_HOST "%s"
		       "Content-Length: %zu\r\n\r\n",
		       origin, len);
	cometrig_send(fd, head);
	cometrig_run(MS);
	cometrig_send_bytes(fd, text, len / 2);
	cometrig_run(MS);
	cometrig_send_bytes(fd, text + len / 2, len - len / 2);
	return cometrig_read(fd, NULL);
}

TEST(post_that_expects_status_100_gets_it_before_its_body, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();
	int fd;

	options.frame_max = 3000;
	cometrig_make(&options);
	fd = cometrig_connect();
	cometrig_send(fd, "POST /spoke/send?user=ann HTTP/1.1\r\n" COMETRIG_HOST COMETRIG_ORIGIN
			  "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
	assert_string_equal(cometrig_read(fd, NULL), "HTTP/1.1 100 Continue\r\n\r\n");
	cometrig_send(fd, "he");
	assert_string_equal(cometrig_read(fd, NULL), "");
	cometrig_send(fd, "llo");
	assert_has(cometrig_read(fd, NULL), "HTTP/1.1 202 ");
	assert_string_equal(cometrig.heard, "ann: hello\n");
	/* The body is there already. */
	fd = cometrig_connect();
	cometrig_send(fd, SEND(COMETRIG_ORIGIN "Expect: 100-continue\r\n", "5", "hello"));
	assert_memory_equal(cometrig_read(fd, NULL), "HTTP/1.1 202 ", 13);
	/* The body would be refused. */
	fd = cometrig_connect();
	cometrig_send(fd, "POST /spoke/send?user=ann HTTP/1.1\r\n" COMETRIG_HOST COMETRIG_ORIGIN
			  "Expect: 100-continue\r\nContent-Length: 3001\r\n\r\n");
	assert_memory_equal(cometrig_read(fd, NULL), "HTTP/1.1 413 ", 13);
	cometrig_run(3 * SECOND);
	assert_int_equal(cometrig.comet->quota.count, 0);
}

TEST(text_longer_than_its_limit_is_413, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();

	options.frame_max = 3000;
	options.origins = "https://shop.example";
	cometrig_make(&options);
	assert_has(post_of(3000, COMETRIG_ORIGIN), "HTTP/1.1 202 ");
	assert_int_equal(strlen(cometrig.heard), strlen("ann: \n") + 3000);
	assert_has(post_of(3001, COMETRIG_ORIGIN), "HTTP/1.1 413 ");
	assert_has(cometrig.got, "\r\n\r\nA text of a page is limited to 3000 bytes (text.max).\n");
	/* The page may read the sentence. */
	assert_has(post_of(3001, "Origin: https://shop.example\r\n"), "HTTP/1.1 413 ");
	assert_has(cometrig.got, "Access-Control-Allow-Origin: https://shop.example\r\n");
	assert_null(strstr(post_of(3001, "Origin: https://evil.example\r\n"), "Access-Control"));
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_RECEIVED), 1);
	cometrig_run(3 * SECOND);
	assert_int_equal(cometrig.comet->quota.count, 0);
}

TEST(limit_of_texts_is_16_kib_by_default, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();

	cometrig_make(&options);
	assert_int_equal(cometrig.comet->http.limits.body_max, 16384);
	assert_has(cometrig_ask(SEND(COMETRIG_ORIGIN, "16385", "")),
		   "limited to 16384 bytes (text.max).");
}

TEST(post_of_a_client_that_is_gone_is_dropped)
{
	int fd = cometrig_connect();

	cometrig_send(fd, SEND(COMETRIG_ORIGIN, "5", "hello"));
	cometrig_run(MS);
	spokei_vnet_reset(cometrig.world.net, cometrig.accepted);
	cometrig_run(MS);
	assert_false(admit(0, "ann"));
	cometrig_run(MS);
	assert_string_equal(cometrig.heard, "");
}

TEST(posts_of_a_user_are_limited)
{
	int events = cometrig_events("", NULL);

	assert_true(admit(0, "ann"));
	(void)cometrig_read(events, NULL);
	cometrig_run(SECOND - cometrig.world.now_ns % SECOND);
	for (unsigned i = 1; i <= 11; i++) {
		int fd = cometrig_connect();

		cometrig_send(fd, SEND(COMETRIG_ORIGIN, "1", "x"));
		cometrig_run(MS);
		assert_true(admit(i, "ann"));
		assert_has(cometrig_read(fd, NULL), i <= 10 ? "HTTP/1.1 202 " : "HTTP/1.1 429 ");
	}
}

/* It need not be known. */
TEST(posts_of_a_user_without_connections_are_limited)
{
	cometrig_run(SECOND - cometrig.world.now_ns % SECOND);
	for (unsigned i = 0; i <= 10; i++) {
		int fd = cometrig_connect();

		cometrig_send(fd, SEND(COMETRIG_ORIGIN, "1", "x"));
		cometrig_run(MS);
		assert_true(admit(i, "ann"));
		assert_has(cometrig_read(fd, NULL), i < 10 ? "HTTP/1.1 202 " : "HTTP/1.1 429 ");
	}
	cometrig_run(61 * SECOND);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_USERS), 0);
	assert_string_equal(cometrig.changes, "");
}

static void free_gateway(struct cometrig *rig)
{
	spoke_comet_free(rig->comet);
	rig->then = NULL;
}

TEST(gateway_may_be_freed_by_a_message)
{
	int fd = cometrig_connect();

	cometrig_send(fd, SEND(COMETRIG_ORIGIN, "5", "hello"));
	cometrig_run(MS);
	cometrig.then = free_gateway;
	assert_true(admit(0, "ann"));
	cometrig_run(MS);
	assert_string_equal(cometrig.heard, "ann: hello\n");
}
