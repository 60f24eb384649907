/* SPDX-License-Identifier: Apache-2.0 */
/* How clients open connections, behind which proxy, and what they may send by POST. */
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

/*
 * --- how clients open connections: the three kinds, the rules of hosts and origins, refusals
 */

#define GET(path, fields) "GET " path " HTTP/1.1\r\n" COMETRIG_HOST fields "\r\n"

static void assert_begins(const char *text, const char *with)
{
	if (strncmp(text, with, strlen(with)) != 0)
		fail_msg("\"%.200s\" does not begin with \"%s\"", text, with);
}

FIXTURE(cometrig_set_up, cometrig_tear_down);

TEST(event_stream_begins_with_retry_and_id)
{
	int fd = cometrig_events("user=ann", NULL);
	bool ended;
	const char *text = cometrig_read(fd, &ended);
	char line[128];

	assert_false(ended);
	assert_begins(text, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n");
	assert_has(text, "X-Accel-Buffering: no\r\n");
	assert_has(text, "Cache-Control: no-store\r\n");
	assert_has(text, "event: hello\n");
	assert_in_range(cometrig_number(text, "\nretry: "), 1000, 15000);
	(void)snprintf(line, sizeof(line), "id: %016llx.0\n",
		       (unsigned long long)cometrig.comet->epoch);
	assert_has(text, line);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_EVENTS), 1);
	assert_int_equal(cometrig_timers(), 1);
	assert_string_equal(cometrig.changes, "+ann ");
	assert_int_equal(spokei_vnet_guard(cometrig.world.net, cometrig.accepted)->send_buffer,
			 16384);
	assert_int_equal(spokei_vnet_guard(cometrig.world.net, cometrig.accepted)->unanswered_ns,
			 30 * SECOND);
}

TEST(retry_differs_between_connections)
{
	unsigned long seen[8];
	unsigned same = 0;

	for (int i = 0; i < 8; i++) {
		char query[32];
		int fd;

		(void)snprintf(query, sizeof(query), "user=u%d", i);
		fd = cometrig_events(query, NULL);
		seen[i] = cometrig_number(cometrig_read(fd, NULL), "\nretry: ");
		same += i > 0 && seen[i] == seen[i - 1];
	}
	assert_true(same < 7);
}

TEST(websocket_opens_with_hello)
{
	int fd = cometrig_socket("user=ann");
	const char *lines = cometrig_frames(fd);

	assert_begins(cometrig.got, "HTTP/1.1 101 ");
	assert_has(cometrig.got, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	assert_null(strstr(cometrig.got, "permessage-deflate"));
	assert_begins(lines, "text {\"id\":\"");
	assert_has(lines, "\"event\":\"hello\",\"data\":\"{\\\"retry\\\":");
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_SOCKETS), 1);
}

TEST(first_poll_gets_an_id_at_once)
{
	int fd = cometrig_poll("user=ann");
	bool ended;
	const char *text = cometrig_read(fd, &ended);
	char body[128];

	assert_true(ended);
	assert_begins(text, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n");
	(void)snprintf(body, sizeof(body), "\r\n\r\n{\"last\":\"%016llx.0\",\"retry\":",
		       (unsigned long long)cometrig.comet->epoch);
	assert_has(text, body);
	assert_in_range(cometrig_number(text, body), 1000, 15000);
	assert_has(text, ",\"again\":0}");
}

TEST(every_answer_to_a_poll_has_another_retry)
{
	unsigned long seen[8];
	unsigned same = 0;

	for (unsigned i = 0; i < 8; i++) {
		char query[96];
		int fd;

		(void)snprintf(query, sizeof(query), "user=ann&after=%s", cometrig_id(i));
		fd = cometrig_poll(query);
		(void)cometrig_push("ann", "e", "x");
		assert_has(cometrig_read(fd, NULL), ",\"messages\":[{");
		seen[i] = cometrig_number(cometrig.got, ",\"retry\":");
		assert_in_range(seen[i], 1000, 15000);
		same += i > 0 && seen[i] == seen[i - 1];
	}
	assert_true(same < 7);
}

TEST(poll_is_held_until_its_time_is_over)
{
	char query[128];
	bool ended;
	int fd;

	(void)snprintf(query, sizeof(query), "user=ann&after=%016llx.0",
		       (unsigned long long)cometrig.comet->epoch);
	fd = cometrig_poll(query);
	cometrig_run(24 * SECOND);
	assert_string_equal(cometrig_read(fd, &ended), "");
	assert_false(ended);
	cometrig_run(SECOND);
	assert_has(cometrig_read(fd, &ended), "\"again\":0}");
	assert_true(ended);
}

TEST(script_is_served)
{
	const char *text = cometrig_ask(GET("/spoke.js", ""));

	assert_begins(text, "HTTP/1.1 200 OK\r\nContent-Type: text/javascript");
	assert_has(text, "self.spoke=");
	/* Pages load it with each visit. */
	assert_in_range(strlen(strstr(text, "\r\n\r\n") + 4), 1024, 4095);
	assert_has(text, "\r\nCross-Origin-Resource-Policy: same-origin\r\n");
}

TEST(script_is_for_pages_of_listed_origins_too, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();

	options.origins = "https://shop.example";
	cometrig_make(&options);
	assert_has(cometrig_ask(GET("/spoke.js", "")),
		   "\r\nCross-Origin-Resource-Policy: cross-origin\r\n");
	assert_has(cometrig_ask(GET("/other", "")),
		   "\r\nCross-Origin-Resource-Policy: same-origin\r\n");
}

/* The address of the gateway, as a socket for both families has it. */
static void print_mapped(void *ctx, const struct spoke_address *address, char *text, size_t size)
{
	(void)ctx;
	(void)address;
	(void)snprintf(text, size, "[::ffff:10.1.2.3]:8080");
}

TEST(plain_host_of_ipv4_reaches_a_socket_for_both_families)
{
	const struct spoke_net *own = cometrig.faulty.env.net;
	struct spoke_net net = *own;

	net.print = print_mapped;
	cometrig.faulty.env.net = &net;
	assert_begins(cometrig_ask("GET /spoke.js HTTP/1.1\r\nHost: 10.1.2.3:8080\r\n\r\n"),
		      "HTTP/1.1 200 ");
	assert_begins(cometrig_ask("GET /spoke.js HTTP/1.1\r\nHost: 10.1.2.4:8080\r\n\r\n"),
		      "HTTP/1.1 421 ");
	cometrig.faulty.env.net = own;
}

TEST(page_is_served_at_root_if_there_is_one)
{
	struct spoke_comet_options options;
	char page[40000];

	assert_begins(cometrig_ask(GET("/", "")), "HTTP/1.1 404 ");
	cometrig_close();
	options = cometrig_begin();
	memset(page, 'x', sizeof(page) - 1);
	page[sizeof(page) - 1] = '\0';
	options.page = page;
	cometrig_make(&options);
	assert_begins(cometrig_ask(GET("/", "")), "HTTP/1.1 200 OK\r\nContent-Type: text/html");
	assert_has(cometrig.got, "Content-Length: 39999\r\n");
	assert_string_equal(strstr(cometrig.got, "\r\n\r\n") + 4, page);
	assert_begins(cometrig_ask(GET("/x", "")), "HTTP/1.1 404 ");
}

TEST(other_paths_and_methods_are_rejected)
{
	assert_begins(cometrig_ask(GET("/", "")), "HTTP/1.1 404 ");
	assert_begins(cometrig_ask("POST /spoke/events HTTP/1.1\r\n" COMETRIG_HOST
				   "Content-Length: 0\r\n\r\n"),
		      "HTTP/1.1 405 ");
	assert_begins(cometrig_ask(GET("/spoke/send", "")), "HTTP/1.1 405 ");
}

TEST(foreign_host_is_rejected)
{
	assert_begins(cometrig_ask(
			      "GET /spoke/events?user=a HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
		      "HTTP/1.1 421 ");
}

TEST(socket_path_without_upgrade_is_426)
{
	const char *text = cometrig_ask(GET("/spoke/socket", COMETRIG_ORIGIN));

	assert_begins(text, "HTTP/1.1 426 ");
	assert_has(text, "Sec-WebSocket-Version: 13\r\n");
}

/* --- origins */

static const char *socket_of(const char *origin)
{
	char text[512];
	int fd = cometrig_connect();

	(void)snprintf(text, sizeof(text),
		       "GET /spoke/socket?user=a HTTP/1.1\r\n" COMETRIG_HOST COMETRIG_UPGRADE
		       "%s\r\n",
		       origin);
	cometrig_send(fd, text);
	return cometrig_frames(fd);
}

TEST(websocket_of_foreign_origin_is_closed_4003)
{
	static const char *const bad[] = {
		"Origin: http://evil.example\r\n",
		"Origin: null\r\n",
		"",
		"Origin: http://127.0.0.1:8081\r\n",
		"Origin: http://127.0.0.1:8080.evil.example\r\n",
		"Origin: https://shop.example.evil\r\n",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_string_equal(socket_of(bad[i]), "close 4003 origin not allowed\nend\n");
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_REFUSED_ORIGIN), 6);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_USERS), 0);
}

TEST(own_and_listed_origins_are_allowed, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();

	options.origins = "https://shop.example,https://m.shop.example:8443";
	cometrig_make(&options);
	assert_begins(socket_of("Origin: https://shop.example\r\n"), "text ");
	assert_begins(socket_of("Origin: https://m.shop.example:8443\r\n"), "text ");
	assert_begins(socket_of("Origin: http://127.0.0.1:8080\r\n"), "text ");
	assert_begins(socket_of("Origin: https://127.0.0.1:8080\r\n"), "text ");
	assert_begins(socket_of("Origin: https://m.shop.example\r\n"), "close 4003 ");
}

TEST(websocket_without_origin_needs_any_client, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();

	options.any_client = true;
	cometrig_make(&options);
	assert_begins(socket_of(""), "text ");
	assert_begins(socket_of("Origin: null\r\n"), "close 4003 ");
}

TEST(events_of_foreign_origin_are_403)
{
	assert_begins(cometrig_ask(GET("/spoke/events?user=a", "Origin: http://evil.example\r\n")),
		      "HTTP/1.1 403 ");
	assert_begins(cometrig_ask(GET("/spoke/poll?user=a", "Origin: null\r\n")), "HTTP/1.1 403 ");
}

/* Such a page could close the connections of a user by opening too many. */
TEST(image_on_a_page_of_another_site_opens_nothing)
{
	assert_begins(cometrig_ask(GET("/spoke/events?user=a", "Sec-Fetch-Site: cross-site\r\n")),
		      "HTTP/1.1 403 ");
	assert_begins(cometrig_ask(GET("/spoke/poll?user=a", "Sec-Fetch-Site: same-site\r\n")),
		      "HTTP/1.1 403 ");
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_REFUSED_ORIGIN), 2);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_OPENED), 0);
	assert_begins(cometrig_ask(GET("/spoke/poll?user=a", "Sec-Fetch-Site: same-origin\r\n")),
		      "HTTP/1.1 200 ");
	assert_begins(cometrig_ask(GET("/spoke/poll?user=a", "Sec-Fetch-Site: none\r\n")),
		      "HTTP/1.1 200 ");
}

/* Returns whether an answer lets a page of the shop read it, and no other. */
static bool is_for_the_shop(const char *answer)
{
	return strstr(answer, "\r\nAccess-Control-Allow-Origin: https://shop.example\r\n"
			      "Access-Control-Allow-Credentials: true\r\n"
			      "Vary: Origin\r\n") != NULL;
}

static int open_with(const char *path, const char *fields)
{
	char text[512];
	int fd = cometrig_connect();

	(void)snprintf(text, sizeof(text), "GET /spoke/%s HTTP/1.1\r\n" COMETRIG_HOST "%s\r\n",
		       path, fields);
	cometrig_send(fd, text);
	return fd;
}

#define SHOP "Origin: https://shop.example\r\n"

TEST(pages_of_listed_origins_may_read_the_answers, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();
	char path[96];
	int poll;

	options.origins = "https://m.shop.example:8443,https://shop.example";
	options.users_max = 1;
	cometrig_make(&options);
	assert_true(is_for_the_shop(cometrig_read(open_with("events?user=a", SHOP), NULL)));
	assert_has(cometrig.got, "hello");
	assert_true(is_for_the_shop(cometrig_read(open_with("poll?user=a", SHOP), NULL)));
	(void)snprintf(path, sizeof(path), "poll?user=a&after=%s", cometrig_id(0));
	poll = open_with(path, SHOP);
	cometrig_run(MS);
	(void)cometrig_push("a", "e", "x");
	assert_true(is_for_the_shop(cometrig_read(poll, NULL)));
	poll = open_with(path, SHOP);
	(void)snprintf(path, sizeof(path), "poll?user=a&after=%s", cometrig_id(1));
	poll = open_with(path, SHOP);
	cometrig_run(MS);
	assert_int_not_equal(spoke_comet_kick(cometrig.comet, spoke_comet_text("a"), NULL), 0);
	assert_true(is_for_the_shop(cometrig_read(poll, NULL)));
	assert_has(cometrig.got, "closed");
	/* To come again, and refused. */
	assert_true(is_for_the_shop(cometrig_read(open_with("events?user=b", SHOP), NULL)));
	assert_has(cometrig.got, "retry: ");
	assert_true(is_for_the_shop(cometrig_read(open_with("poll?user=b", SHOP), NULL)));
	assert_true(is_for_the_shop(cometrig_read(open_with("events", SHOP), NULL)));
	assert_has(cometrig.got, "HTTP/1.1 204 ");
	assert_true(is_for_the_shop(cometrig_read(open_with("poll", SHOP), NULL)));
	assert_has(cometrig.got, "HTTP/1.1 403 ");
	poll = cometrig_connect();
	cometrig_send(poll, "POST /spoke/send?user=a HTTP/1.1\r\n" COMETRIG_HOST SHOP
			    "Content-Length: 1\r\n\r\nx");
	assert_true(is_for_the_shop(cometrig_read(poll, NULL)));
	assert_has(cometrig.got, "HTTP/1.1 202 ");
}

TEST(pages_of_other_origins_may_not, .tear_down = cometrig_tear_down)
{
	static const char *const others[] = { "", COMETRIG_ORIGIN,
					      "Origin: https://evil.example\r\n" };
	struct spoke_comet_options options = cometrig_begin();

	options.origins = "https://shop.example";
	cometrig_make(&options);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		const char *answer = cometrig_read(open_with("events?user=a", others[i]), NULL);

		assert_has(answer, "HTTP/1.1 ");
		assert_null(strstr(answer, "Access-Control"));
		answer = cometrig_read(open_with("poll?user=a", others[i]), NULL);
		assert_null(strstr(answer, "Access-Control"));
	}
}

/* --- the authorizer, and messages of pages by POST */

#define SEND(fields, length, body)                                                                 \
	"POST /spoke/send?user=ann HTTP/1.1\r\n" COMETRIG_HOST fields "Content-Length: " length    \
	"\r\n\r\n" body
STEP(set_up)
{
	struct spoke_comet_options options = cometrig_begin();

	options.authorize = cometrig_authorize;
	options.query_user = false;
	cometrig_make(&options);
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
	char query[512];

	cometrig_make(&options);
	for (unsigned i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		(void)snprintf(query, sizeof(query), "user=%s", users[i]);
		assert_has(cometrig_frames(cometrig_socket(query)),
			   *users[i] ? "close 4001 the user in the query is no valid id"
				     : "close 4001 no user in the query");
	}
	(void)snprintf(query, sizeof(query), "user=%0300d", 7);
	assert_has(cometrig_frames(cometrig_socket(query)),
		   "close 4001 the user in the query is no valid id");
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

TEST(gateway_may_be_freed_by_a_message)
{
	int fd = cometrig_connect();

	cometrig_send(fd, SEND(COMETRIG_ORIGIN, "5", "hello"));
	cometrig_run(MS);
	cometrig.then = cometrig_free_gateway;
	assert_true(admit(0, "ann"));
	cometrig_run(MS);
	assert_string_equal(cometrig.heard, "ann: hello\n");
}

/* --- clients behind a proxy: they count under their own addresses */

static int open_from(const char *forwarded)
{
	char text[512];
	int fd = cometrig_connect();

	(void)snprintf(text, sizeof(text),
		       "GET /spoke/events?user=ann HTTP/1.1\r\n" COMETRIG_HOST "%s\r\n", forwarded);
	cometrig_send(fd, text);
	return fd;
}

FIXTURE(NULL, cometrig_tear_down);

TEST(client_behind_a_proxy_counts_under_its_address)
{
	struct spoke_comet_options options = cometrig_begin();
	bool ended;
	int fd;

	options.proxies = "10.1.1.1,127.0.0.0/24";
	options.connections_per_peer_max = 2;
	cometrig_make(&options);
	fd = open_from("X-Forwarded-For: 6.6.6.6, 1.2.3.4\r\n");
	assert_has(cometrig_read(fd, NULL), "hello");
	for (int i = 0; i < 3; i++) {
		char field[64];

		(void)snprintf(field, sizeof(field), "X-Forwarded-For: 2001:db8::%d\r\n", i);
		assert_has(cometrig_read(open_from(field), NULL), i < 2 ? "hello" : "retry: ");
	}
	assert_has(cometrig_read(open_from("X-Forwarded-For: 2001:db8:0:1::1\r\n"), NULL), "hello");
	assert_has(cometrig_read(open_from("X-Forwarded-For: 9.9.9.9\r\n"
					   "X-Forwarded-For: 1.2.3.4:5678\r\n"),
				 NULL),
		   "hello");
	/* The third one of this address. */
	assert_has(cometrig_read(open_from("X-Forwarded-For: 1.2.3.4\r\n"), &ended),
		   "\r\n\r\nretry: ");
	assert_true(ended);
	cometrig_hang_up(fd);
	cometrig_run(3 * SECOND);
	assert_has(cometrig_read(open_from("X-Forwarded-For: 1.2.3.4\r\n"), NULL), "hello");
	assert_int_equal(cometrig.comet->quota.count, 5);
}

TEST(storm_from_one_address_does_not_keep_out_others)
{
	struct spoke_comet_options options = cometrig_begin();
	int opened = 0;

	options.proxies = "127.0.0.1";
	options.accept_rate = 40;
	cometrig_make(&options);
	cometrig_run(SECOND - cometrig.world.now_ns % SECOND);
	while (strstr(cometrig_read(open_from("X-Forwarded-For: 6.6.6.6\r\n"), NULL), "hello"))
		opened++;
	assert_in_range(opened, 40, 60);
	for (int i = 0; i < 2; i++)
		assert_has(cometrig_read(open_from("X-Forwarded-For: 1.2.3.4\r\n"), NULL), "hello");
	assert_has(cometrig_read(open_from("X-Forwarded-For: 1.2.3.4\r\n"), NULL),
		   "\r\n\r\nretry: ");
	/* The reserve has an end, too. */
	opened = 0;
	for (int i = 0; i < 40; i++) {
		char field[64];

		(void)snprintf(field, sizeof(field), "X-Forwarded-For: 1.2.4.%d\r\n", i);
		opened += strstr(cometrig_read(open_from(field), NULL), "hello") != NULL;
	}
	assert_in_range(opened, 18, 30);
}

/* A host can have each address of its network. */
TEST(storm_from_a_network_of_ipv6_does_not_take_the_reserve)
{
	struct spoke_comet_options options = cometrig_begin();
	int opened = 0;

	options.proxies = "127.0.0.1";
	options.accept_rate = 40;
	cometrig_make(&options);
	cometrig_run(SECOND - cometrig.world.now_ns % SECOND);
	for (int i = 0; i < 100; i++) {
		char field[64];

		(void)snprintf(field, sizeof(field), "X-Forwarded-For: 2001:db8::%x\r\n", i);
		opened += strstr(cometrig_read(open_from(field), NULL), "hello") != NULL;
	}
	assert_in_range(opened, 40, 60);
	assert_has(cometrig_read(open_from("X-Forwarded-For: 1.2.3.4\r\n"), NULL), "hello");
}

/* Prints the addresses of clients as a socket for both families has them. */
static void proxy_print_mapped(void *ctx, const struct spoke_address *address, char *text,
			       size_t size)
{
	const struct spoke_env *env = &cometrig.server.env;
	char plain[64];

	(void)ctx;
	env->net->print(env->ctx, address, plain, sizeof(plain));
	if (strcmp(plain, COMETRIG_AT) != 0)
		(void)snprintf(text, size, "[::ffff:%.*s]%s", (int)strcspn(plain, ":"), plain,
			       strchr(plain, ':'));
	else
		(void)snprintf(text, size, "%s", plain);
}

TEST(proxy_with_a_mapped_address_is_listed_without_the_prefix)
{
	struct spoke_comet_options options = cometrig_begin();
	static struct spoke_net net;
	const struct spoke_net *own = cometrig.faulty.env.net;

	net = *own;
	net.print = proxy_print_mapped;
	cometrig.faulty.env.net = &net;
	options.proxies = "127.0.0.1";
	options.connections_per_peer_max = 1;
	cometrig_make(&options);
	assert_has(cometrig_read(open_from("X-Forwarded-For: 1.2.3.4\r\n"), NULL), "hello");
	assert_has(cometrig_read(open_from("X-Forwarded-For: 1.2.3.5\r\n"), NULL), "hello");
	assert_has(cometrig_read(open_from("X-Forwarded-For: 127.0.0.1\r\n"), NULL), "hello");
	cometrig.faulty.env.net = own;
}

TEST(forwarded_address_of_others_is_ignored)
{
	struct spoke_comet_options options = cometrig_begin();

	options.proxies = "10.1.1.1,127.0.0.11";
	options.connections_per_peer_max = 1;
	cometrig_make(&options);
	assert_has(cometrig_read(open_from("X-Forwarded-For: 1.2.3.4\r\n"), NULL), "hello");
	assert_string_equal(cometrig_read(cometrig_connect(), NULL), "");
	assert_int_equal(cometrig.comet->quota.count, 1);
}

TEST(wrong_forwarded_addresses_are_ignored)
{
	static const char *const wrong[] = { "X-Forwarded-For: \r\n", "X-Forwarded-For: x\r\n", "",
					     "X-Forwarded-For: unix:/run/x\r\n",
					     "X-Forwarded-For: 1.2.3.4,\r\n" };
	struct spoke_comet_options options = cometrig_begin();

	options.proxies = "127.0.0.1";
	options.authorize = cometrig_authorize;
	cometrig_make(&options);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int fd = open_from(wrong[i]);

		cometrig_run(MS);
		assert_true(spoke_comet_admit(cometrig.asked[i].entry, spoke_comet_text("ann")));
		assert_has(cometrig_read(fd, NULL), "hello");
		cometrig_hang_up(fd);
	}
	assert_int_equal(cometrig.comet->quota.count, 0);
}

/* --- the options of a gateway that the program gives */

static void new_refuses(struct spoke_comet_options options, const char *why)
{
	struct spoke_comet *comet;

	assert_int_equal(spoke_comet_new(cometrig.engine, &options, &comet), SPOKE_EINVAL);
	assert_has(spoke_engine_why(cometrig.engine), why);
}

TEST(bad_options_are_explained)
{
	struct spoke_comet_options options = cometrig_begin();
	struct spoke_comet_options bad;
	static char long_origin[282];

	bad = options;
	bad.query_user = false;
	new_refuses(bad, "option authorize");
	bad = options;
	bad.listen = "shop.example:80";
	new_refuses(bad, "option comet.listen: entry 1, shop.example:80: not a numeric address");
	bad = options;
	bad.listen = "127.0.0.1:1,,127.0.0.1:2";
	new_refuses(bad, "option comet.listen: entry 2, : not a numeric address");
	bad = options;
	bad.proxies = "10.0.0.1,127.0.0.1:80";
	new_refuses(bad, "option comet.proxies: entry 2, 127.0.0.1:80: not an address");
	bad = options;
	bad.connections_per_user_max = 251;
	new_refuses(bad, "option comet.connections.per.user.max=251: not between");
	bad = options;
	bad.bytes_max = (UINT64_C(1) << 50) + 1;
	new_refuses(bad, "option comet.bytes.max=");
	bad = options;
	bad.life_ns = UINT64_MAX;
	new_refuses(bad, "option comet.life=");
	bad = options;
	bad.retry_min_ns = 16 * SECOND;
	new_refuses(bad, "option comet.retry.min=16s: greater than retry.max, which is 15s");
	bad = options;
	bad.origins = "https://a https://b";
	new_refuses(bad, "option comet.origins: ");
	bad.origins = "https://a,\nhttps://b";
	new_refuses(bad, "option comet.origins: ");
	memset(long_origin, 'x', sizeof(long_origin) - 1);
	bad.origins = long_origin;
	new_refuses(bad, "option comet.origins: ");
	bad.origins = "https://a.example, null";
	new_refuses(bad, "option comet.origins: ");
	cometrig_make(&options);
}

TEST(blanks_around_the_commas_of_lists_are_ignored)
{
	struct spoke_comet_options options = cometrig_begin();
	char text[64];

	options.listen = " 127.0.0.1:8080 ,\t127.0.0.1:8081 ";
	options.origins = " https://a.example , https://b.example ,https://c.example ";
	options.hosts = "a.example , b.example";
	options.proxies = " 10.0.0.1 , 10.0.0.2 ";
	cometrig_make(&options);
	assert_int_equal(spoke_comet_address(cometrig.comet, 1, text, sizeof(text)), 14);
	assert_string_equal(text, "127.0.0.1:8081");
	assert_string_equal(cometrig.comet->with.proxies, "10.0.0.1,10.0.0.2");
	for (char name = 'a'; name <= 'c'; name++) {
		char request[256];

		(void)snprintf(request, sizeof(request),
			       "GET /spoke/poll?user=ann HTTP/1.1\r\nHost: %s.example\r\n"
			       "Origin: https://%c.example\r\n\r\n",
			       name == 'a' ? "a" : "b", name);
		(void)snprintf(text, sizeof(text),
			       "\r\nAccess-Control-Allow-Origin: https://%c.example\r\n", name);
		assert_has(cometrig_ask(request), text);
	}
}

TEST(gateway_listens_at_several_addresses)
{
	struct spoke_comet_options options = cometrig_begin();
	char text[64];

	options.listen = "127.0.0.1:8080,127.0.0.1:8081";
	cometrig_make(&options);
	assert_int_equal(spoke_comet_address(cometrig.comet, 1, text, sizeof(text)), 14);
	assert_string_equal(text, "127.0.0.1:8081");
	assert_int_equal(spoke_comet_address(cometrig.comet, 2, text, sizeof(text)), 0);
	assert_has(cometrig_ask("GET / HTTP/1.1\r\n" COMETRIG_HOST "\r\n"), "HTTP/1.1 404 ");
}
