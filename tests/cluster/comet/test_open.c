/* SPDX-License-Identifier: Apache-2.0 */
/* How clients open connections: the three kinds, the rules of hosts and origins, refusals. */
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define GET(path, fields) "GET " path " HTTP/1.1\r\n" COMETRIG_HOST fields "\r\n"

static void assert_begins(const char *text, const char *with)
{
	if (strncmp(text, with, strlen(with)) != 0)
		fail_msg("\"%.200s\" does not begin with \"%s\"", text, with);
}

static void assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%.400s\" does not have \"%s\"", text, part);
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
