/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of the admin page, access to them, and actions. */
#include "core/virtual/files.h"
#include "tests/cluster/admin/adminrig.h"
#include "tests/support/test.h"

#include "tests/core/json/jsonread.h"
#include "transport/http/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define rig adminrig
#define GET(path) "GET " path " HTTP/1.1\r\n" ADMINRIG_HOST "\r\n"
#define POST_ACT "POST /act/act HTTP/1.1\r\n" ADMINRIG_HOST

/* Returns the body of a response, and checks its Content-Length. */
static const char *body_of(const char *answer)
{
	const char *body = strstr(answer, "\r\n\r\n");
	const char *length = strstr(answer, "Content-Length: ");

	assert_non_null(body);
	assert_non_null(length);
	assert_int_equal(strtoul(length + 16, NULL, 10), strlen(body + 4));
	return body + 4;
}

static void assert_has(const char *answer, const char *text)
{
	if (strstr(answer, text) == NULL)
		fail_msg("no \"%s\" in: %.700s", text, answer);
}

FIXTURE(adminrig_set_up, adminrig_tear_down);

TEST(page_is_served_with_security_headers)
{
	const char *answer = adminrig_ask(GET("/"));
	const char *nonce = strstr(answer, "nonce-");
	char mark[64];

	assert_has(answer, "HTTP/1.1 200 OK\r\n");
	assert_has(answer, "default-src 'none'; script-src 'nonce-");
	assert_has(answer, "X-Content-Type-Options: nosniff\r\n");
	assert_has(answer, "Cache-Control: no-store\r\n");
	assert_null(strstr(answer, "Access-Control"));
	(void)snprintf(mark, sizeof(mark), "<script nonce=\"%.32s\">", nonce + 6);
	assert_has(body_of(answer), mark);
	assert_has(body_of(answer), "<h1 id=\"name\">&lt;b&gt;rig&lt;/b&gt;</h1>");
	assert_null(strstr(answer, "<b>rig"));
	assert_null(strstr(answer, "@STATUS@"));
	assert_null(strstr(answer, "@NONCE@"));
}

TEST(every_page_has_its_own_nonce)
{
	char first[33] = "";

	memcpy(first, strstr(adminrig_ask(GET("/")), "nonce-") + 6, 32);
	assert_null(strstr(adminrig_ask(GET("/")), first));
}

TEST(status_is_valid_json)
{
	const char *body = body_of(adminrig_ask(GET("/status")));
	size_t at;

	assert_null(jsonread_check(body, strlen(body), &at));
	assert_string_equal(jsonread_text(jsonread_of(body, strlen(body)), "name"), "<b>rig</b>");
	assert_int_equal(jsonread_u64(jsonread_of(body, strlen(body)), "number"), 42);
}

TEST(head_request_gets_no_body)
{
	static const char *const paths[] = { "/", "/status", "/metrics", "/events", "/none" };
	char request[128];

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const char *answer;

		(void)snprintf(request, sizeof(request),
			       "HEAD %s HTTP/1.1\r\nHost: localhost\r\n\r\n", paths[i]);
		answer = adminrig_ask(request);
		assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
	}
}

TEST(wrong_path_method_or_request_is_rejected)
{
	char large[SPOKEI_HTTP_HEAD_MAX + 64];

	assert_int_equal(adminrig_status(GET("/none")), 404);
	assert_int_equal(adminrig_status(GET("/status/")), 404);
	assert_int_equal(adminrig_status(GET("/../status")), 404);
	assert_int_equal(adminrig_status(GET("/status?x")), 200);
	assert_has(adminrig_ask("DELETE / HTTP/1.1\r\n" ADMINRIG_HOST "\r\n"),
		   "405 Method Not Allowed\r\n");
	assert_has(adminrig_ask("POST / HTTP/1.1\r\n" ADMINRIG_HOST "\r\n"),
		   "Allow: GET, HEAD\r\n");
	assert_has(adminrig_ask(GET("/act/act")), "Allow: POST\r\n");
	assert_int_equal(adminrig_status("nonsense\r\n"), 400);
	assert_int_equal(adminrig_status("GET / HTTP/3.0\r\n"), 505);
	memset(large, 'a', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	assert_int_equal(adminrig_status(large), 414);
	memcpy(large, "GET / HTTP/1.1\r\nX:", 18);
	assert_int_equal(adminrig_status(large), 431);
}

TEST(foreign_host_name_is_rejected)
{
	assert_int_equal(adminrig_status("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 421);
	assert_int_equal(adminrig_status("GET http://evil.example/ HTTP/1.1\r\n" ADMINRIG_HOST
					 "\r\n"),
			 421);
	assert_int_equal(adminrig_status("GET / HTTP/1.1\r\nHost: " ADMINRIG_AT "\r\n\r\n"), 200);
	assert_int_equal(adminrig_status("GET / HTTP/1.1\r\nHost: rig.example:80\r\n\r\n"), 200);
}

TEST(action_requires_the_token)
{
	const char *answer;

	assert_int_equal(adminrig_status(POST_ACT "\r\n"), 401);
	assert_int_equal(adminrig_status(POST_ACT "Authorization: Bearer open-sesamE\r\n\r\n"),
			 401);
	assert_int_equal(adminrig_status(POST_ACT ADMINRIG_BEARER "Origin: http://evil\r\n\r\n"),
			 403);
	assert_int_equal(adminrig_status(GET("/act")), 401);
	assert_int_equal(rig.acted, 0);
	assert_int_equal(adminrig_status(POST_ACT ADMINRIG_BEARER
					 "Origin: http://localhost\r\nContent-Length: 2\r\n\r\nok"),
			 202);
	assert_int_equal(rig.acted, 1);
	assert_int_equal(adminrig_status("POST /act/none HTTP/1.1\r\n" ADMINRIG_HOST ADMINRIG_BEARER
					 "\r\n"),
			 404);
	answer = adminrig_ask("GET /act HTTP/1.1\r\n" ADMINRIG_HOST ADMINRIG_BEARER "\r\n");
	assert_string_equal(body_of(answer),
			    "[{\"name\":\"act\",\"sentence\":\"Does \\\"it\\\"\"}]\n");
	assert_int_equal(rig.acted, 1);
	assert_has(spoke_engine_why(rig.engine), "admin: running action \"act\" for ");
}

static void free_admin(struct adminrig *it)
{
	spoke_admin_free(it->admin);
	spoke_admin_free(it->admin);
	it->admin = NULL;
}

TEST(action_that_frees_the_page_gets_its_response)
{
	int watcher = adminrig_connect();
	bool ended;

	adminrig_send(watcher, GET("/events"));
	(void)adminrig_read(watcher, &ended);
	assert_false(ended);
	rig.then = free_admin;
	assert_int_equal(adminrig_status(POST_ACT ADMINRIG_BEARER "\r\n"), 202);
	assert_int_equal(rig.acted, 1);
	(void)adminrig_read(watcher, &ended);
	assert_true(ended);
	assert_int_equal(rig.faulty.fds, 0);
}

static void free_engine(struct adminrig *it)
{
	spoke_engine_free(it->engine);
}

TEST(action_may_free_the_engine)
{
	int fd = adminrig_connect();

	rig.then = free_engine;
	adminrig_send(fd, POST_ACT ADMINRIG_BEARER "\r\n");
	assert_int_equal(spoke_engine_run(rig.engine), SPOKE_OK);
	assert_int_equal(rig.acted, 1);
	rig.engine = NULL;
	assert_int_equal(rig.faulty.blocks, 0);
}

TEST(streams_leave_connections_for_other_requests)
{
	bool ended;

	for (unsigned i = 0; i < 12; i++) {
		int fd = adminrig_connect();

		adminrig_send(fd, GET("/events"));
		assert_has(adminrig_read(fd, &ended), " 200 OK");
		assert_false(ended);
	}
	assert_int_equal(adminrig_status(GET("/events")), 503);
	assert_int_equal(adminrig_status(GET("/metrics")), 200);
}

TEST(invalid_options_are_rejected)
{
	struct spoke_admin_options good = adminrig_options();
	struct spoke_admin_action actions[17];
	struct spoke_admin_options bad[11];
	struct spoke_admin *admin;

	for (size_t i = 0; i < 17; i++)
		actions[i] = good.actions[0];
	for (size_t i = 0; i < 11; i++) {
		bad[i] = good;
		bad[i].listen = "127.0.0.1:0";
	}
	bad[0].listen = "localhost:1";
	bad[1].token = "";
	bad[2].token = "two words";
	bad[3].actions = actions;
	bad[3].action_count = 2;
	bad[4].actions = actions;
	bad[4].action_count = 17;
	actions[1].name = "no/slash";
	bad[5].actions = actions + 1;
	actions[2].sentence = NULL;
	bad[6].actions = actions + 2;
	actions[3].act = NULL;
	bad[7].actions = actions + 3;
	bad[8].hosts = "";
	bad[9].hosts = "orders:9090";
	bad[10].hosts = "a b";
	for (size_t i = 0; i < 11; i++) {
		assert_int_equal(spoke_admin_new(rig.engine, &bad[i], &admin), SPOKE_EINVAL);
		assert_has(spoke_engine_why(rig.engine), "of the admin page: ");
	}
	assert_int_equal(spoke_admin_new(rig.engine, &good, &admin), SPOKE_ESYSTEM);
	assert_int_equal(spoke_admin_new(rig.engine, NULL, &admin), SPOKE_OK);
	assert_int_equal(strlen(spoke_admin_token(admin)), 32);
	assert_memory_equal(spoke_admin_address(admin), "127.0.0.1:", 10);
	spoke_admin_free(NULL);
}

TEST(token_comes_from_a_file_and_may_be_needed_to_read)
{
	struct spoke_admin_options options = adminrig_options();

	spoke_admin_free(rig.admin);
	rig.admin = NULL;
	spokei_world_run(&rig.world, rig.world.now_ns + 10 * MS);
	options.token_file = "token";
	assert_int_equal(spoke_admin_new(rig.engine, &options, &rig.admin), SPOKE_EINVAL);
	options.token = NULL;
	options.token_reads = true;
	assert_int_equal(spoke_admin_new(rig.engine, &options, &rig.admin), SPOKE_ESYSTEM);
	spokei_vfiles_put(rig.world.files, "token", "correct-horse\n");
	spokei_vfiles_expose(rig.world.files, "token", true);
	assert_int_equal(spoke_admin_new(rig.engine, &options, &rig.admin), SPOKE_EINVAL);
	assert_has(spoke_engine_why(rig.engine), "chmod 600");
	spokei_vfiles_expose(rig.world.files, "token", false);
	assert_int_equal(spoke_admin_new(rig.engine, &options, &rig.admin), SPOKE_OK);
	assert_string_equal(spoke_admin_token(rig.admin), "correct-horse");
	assert_int_equal(adminrig_status(GET("/metrics")), 401);
	assert_int_equal(adminrig_status(GET("/")), 401);
	assert_int_equal(adminrig_status(GET("/live")), 200);
	assert_int_equal(adminrig_status("GET /metrics HTTP/1.1\r\n" ADMINRIG_HOST
					 "Authorization: Bearer correct-horse\r\n\r\n"),
			 200);
}

TEST(page_that_any_host_may_read_says_so)
{
	struct spoke_admin_options options = adminrig_options();
	struct spoke_admin *admin;

	options.listen = "10.0.0.1:9091";
	options.token_reads = true;
	assert_int_equal(spoke_admin_new(rig.engine, &options, &admin), SPOKE_OK);
	assert_null(strstr(spoke_engine_why(rig.engine), "may read it"));
	spoke_admin_free(admin);
	options.token_reads = false;
	options.listen = "10.0.0.1:9092";
	assert_int_equal(spoke_admin_new(rig.engine, &options, &admin), SPOKE_OK);
	assert_has(spoke_engine_why(rig.engine), "all hosts that reach 10.0.0.1:9092 may read it");
	spoke_admin_free(admin);
}

static unsigned count_events(const char *words)
{
	struct spoke_event event = { .number = 0 };
	unsigned count = 0;

	while (spoke_event_get(rig.engine, event.number + 1, &event) == SPOKE_OK)
		count += strstr(event.text, words) != NULL;
	return count;
}

TEST(client_that_speaks_tls_at_a_plain_page_is_reported)
{
	static const char *const rows[] = { "\x16\x03\x01\x02", "\x16\x04\x01\x02\r\n" };

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(adminrig_status(rows[i]), 400);
		assert_int_equal(count_events("page: "), 1);
		assert_int_equal(count_events("speaks TLS, but plain HTTP is served here"), 1);
	}
}

TEST(page_cannot_be_opened_in_forked_child)
{
	struct spoke_admin_options options = adminrig_options();
	struct spoke_admin *admin;

	rig.forks++;
	assert_int_equal(spoke_admin_new(rig.engine, &options, &admin), SPOKE_EFORKED);
	spoke_admin_free(rig.admin);
}
