/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin page: its paths, access to them, actions, probes, streams, and an environment that
 * fails.
 */
#include "core/virtual/files.h"
#include "tests/cluster/admin/adminrig.h"
#include "tests/core/json/jsonread.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "transport/http/request.h"

#include <spoke/config.h>
#include <spoke/consumer.h>
#include <spoke/provider.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- paths of the admin page, access to them, and actions */

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

/* Makes a page whose token [engine] of a file sets. */
static struct spoke_config *page_of_file(const char *text)
{
	struct spoke_admin_options options = adminrig_options();
	const struct spoke_env *env = rig.engine->env;
	struct spoke_config *config;

	spoke_admin_free(rig.admin);
	rig.admin = NULL;
	adminrig_run(10 * MS);
	spokei_vfiles_put(rig.world.files, "a.conf", text);
	assert_int_equal(spoke_config_load(env, "a.conf", NULL, NULL, &config), SPOKE_OK);
	options.token = NULL;
	options.config = config;
	assert_int_equal(spoke_admin_new(rig.engine, &options, &rig.admin), SPOKE_OK);
	return config;
}

TEST(token_of_the_page_is_that_of_the_settings_file)
{
	struct spoke_config *config;
	char own[64];

	spokei_vfiles_put(rig.world.files, "token", "correct-horse\n");
	config = page_of_file("[engine]\nadmin.token.file = token\n");
	assert_string_equal(spoke_admin_token(rig.admin), "correct-horse");
	/* A look finds the changed file. */
	spokei_vfiles_put(rig.world.files, "token", "battery-staple\n");
	adminrig_run(61000 * MS);
	assert_string_equal(spoke_admin_token(rig.admin), "battery-staple");
	spokei_vfiles_put(rig.world.files, "a.conf", "[engine]\n");
	assert_int_equal(spoke_config_reload(config, NULL, NULL), SPOKE_OK);
	assert_int_equal(strlen(spoke_admin_token(rig.admin)), 32);
	(void)snprintf(own, sizeof(own), "%s", spoke_admin_token(rig.admin));
	spokei_vfiles_put(rig.world.files, "a.conf", "[engine]\nadmin.token.file = none\n");
	assert_int_not_equal(spoke_config_reload(config, NULL, NULL), SPOKE_OK);
	assert_string_equal(spoke_admin_token(rig.admin), own);
	spoke_config_free(config);
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
	return scene_events(rig.engine, words);
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

/* --- the paths of probes: /live, /ready and /ready/consumers */

#define PLACE "dubbo://127.0.0.1:20880"
#define URL PLACE "/demo.Echo"
#define SOON MS

static void expect(const char *path, int status, const char *sentence)
{
	char request[128];
	const char *answer;
	const char *body;
	char head[32];

	(void)snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\n" ADMINRIG_HOST "\r\n", path);
	answer = adminrig_ask(request);
	body = strstr(answer, "\r\n\r\n");
	assert_non_null(body);
	(void)snprintf(head, sizeof(head), "HTTP/1.1 %d ", status);
	assert_memory_equal(answer, head, strlen(head));
	assert_string_equal(body + 4, sentence);
}

static void hold(struct spoke_request *request, void *arg)
{
	struct spoke_request **held = arg;

	*held = request;
}

static struct spoke_provider *make_provider(struct spoke_request **held)
{
	const struct spoke_service_options service = { .name = "demo.Echo" };
	const struct spoke_handler handler = { .method = "hold", .handle = hold, .arg = held };
	struct spoke_provider *provider;

	assert_int_equal(spoke_provider_new(rig.engine, NULL, &provider), SPOKE_OK);
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), SPOKE_OK);
	return provider;
}

static struct spoke_consumer *make_consumer(const char *url)
{
	const struct spoke_consumer_options options = { .url = url };
	struct spoke_consumer *consumer;

	assert_int_equal(spoke_consumer_new(rig.engine, &options, &consumer), SPOKE_OK);
	return consumer;
}

TEST(empty_engine_is_alive_and_ready)
{
	expect("/live", 200, "alive\n");
	expect("/ready", 200, "ready\n");
	expect("/ready/consumers", 200, "ready\n");
	assert_int_equal(adminrig_status("POST /ready HTTP/1.1\r\n" ADMINRIG_HOST "\r\n"), 405);
	assert_int_equal(adminrig_status("GET /ready HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 421);
	assert_int_equal(adminrig_status("GET /ready/ HTTP/1.1\r\n" ADMINRIG_HOST "\r\n"), 404);
	assert_null(strstr(adminrig_ask("HEAD /live HTTP/1.1\r\n" ADMINRIG_HOST "\r\n"), "alive"));
}

TEST(provider_is_ready_once_it_listens)
{
	struct spoke_provider *provider = make_provider(NULL);

	expect("/ready", 503, "provider 1 does not listen\n");
	expect("/live", 200, "alive\n");
	assert_int_equal(spoke_provider_listen(provider, PLACE), SPOKE_OK);
	expect("/ready", 200, "ready\n");
	provider = make_provider(NULL);
	expect("/ready", 503, "provider 2 does not listen\n");
	spoke_provider_free(provider);
	expect("/ready", 200, "ready\n");
}

static const char *act(const char *path)
{
	static char request[256];

	(void)snprintf(request, sizeof(request),
		       "POST /act/%s HTTP/1.1\r\n" ADMINRIG_HOST ADMINRIG_BEARER
		       "Content-Length: 0\r\n\r\n",
		       path);
	return adminrig_ask(request);
}

TEST(offline_provider_is_not_ready)
{
	struct spoke_provider *provider = make_provider(NULL);

	assert_int_equal(spoke_provider_listen(provider, PLACE), SPOKE_OK);
	expect("/ready", 200, "ready\n");
	assert_has(act("offline"), "HTTP/1.1 202 ");
	assert_false(spoke_provider_is_online(provider));
	expect("/ready", 503, "provider 1 is offline\n");
	expect("/live", 200, "alive\n");
	assert_has(adminrig_ask(GET("/status")), "\"offline\":true");
	assert_has(act("online"), "HTTP/1.1 202 ");
	assert_true(spoke_provider_is_online(provider));
	expect("/ready", 200, "ready\n");
	assert_has(adminrig_ask(GET("/status")), "\"offline\":false");
}

TEST(stepping_aside_needs_token_and_provider)
{
	static const char without[] = "POST /act/offline HTTP/1.1\r\n" ADMINRIG_HOST
				      "Content-Length: 0\r\n\r\n";
	static const char list[] = "GET /act HTTP/1.1\r\n" ADMINRIG_HOST ADMINRIG_BEARER "\r\n";
	struct spoke_provider *provider;

	assert_has(act("offline"), "HTTP/1.1 404 ");
	assert_null(strstr(adminrig_ask(list), "offline"));
	provider = make_provider(NULL);
	assert_has(adminrig_ask(list), "\"name\":\"offline\"");
	assert_int_equal(adminrig_status(without), 401);
	assert_true(spoke_provider_is_online(provider));
}

TEST(draining_engine_is_alive_but_not_ready)
{
	struct spoke_request *held = NULL;
	struct spoke_provider *provider = make_provider(&held);
	struct spoke_consumer *consumer;
	struct spoke_method *method;

	assert_int_equal(spoke_provider_listen(provider, PLACE), SPOKE_OK);
	consumer = make_consumer(URL);
	assert_int_equal(spoke_consumer_method(consumer, "hold", NULL, &method), SPOKE_OK);
	assert_int_equal(spoke_call(method, (struct spoke_span){ "\xc0", 1 }, NULL, NULL, NULL,
				    NULL),
			 SPOKE_OK);
	adminrig_run(10 * SOON);
	assert_non_null(held);
	expect("/ready", 200, "ready\n");
	assert_int_equal(spoke_engine_drain(rig.engine, UINT64_MAX), SPOKE_OK);
	expect("/ready", 503, "the engine drains\n");
	expect("/live", 200, "alive\n");
	SPOKE_REPLY(held, true);
}

TEST(consumer_is_checked_only_on_request)
{
	struct spoke_provider *provider;

	(void)make_consumer(URL);
	expect("/ready", 200, "ready\n");
	expect("/ready/consumers", 503, "consumer 1 (demo.Echo) has no ready endpoint\n");
	provider = make_provider(NULL);
	assert_int_equal(spoke_provider_listen(provider, PLACE), SPOKE_OK);
	adminrig_run(60 * SECOND);
	expect("/ready/consumers", 200, "ready\n");
	spoke_provider_free(provider);
	adminrig_run(60 * SECOND);
	expect("/ready/consumers", 503, "consumer 1 (demo.Echo) has no ready endpoint\n");
	expect("/ready", 200, "ready\n");
}

TEST(endpoint_that_the_next_call_connects_is_ready)
{
	(void)make_consumer(URL "?lazy=true");
	expect("/ready/consumers", 200, "ready\n");
}

/* --- streams of the admin page, its timeouts, limits and end */

#define STREAM "GET /events HTTP/1.1\r\n" ADMINRIG_HOST "\r\n"
#define PAGE "GET / HTTP/1.1\r\n" ADMINRIG_HOST "\r\n"
/* Returns the last document that a stream has sent. Sets *ret_count to the number of new ones. */
static struct jsonread next(int fd, unsigned *ret_count)
{
	bool ended;
	const char *text = adminrig_read(fd, &ended);
	const char *last = NULL;
	size_t at;

	assert_false(ended);
	*ret_count = 0;
	while ((text = strstr(text, "data: ")) != NULL) {
		last = text + 6;
		text = last;
		(*ret_count)++;
	}
	assert_non_null(last);
	text = strchr(last, '\n');
	assert_string_equal(text, "\n\n");
	assert_null(jsonread_check(last, (size_t)(text - last), &at));
	return jsonread_of(last, (size_t)(text - last));
}

static int open_stream(void)
{
	int fd = adminrig_connect();

	adminrig_run(MS);
	adminrig_send(fd, STREAM);
	return fd;
}

TEST(stream_sends_full_status_then_news_only)
{
	int fd;
	unsigned count;
	struct jsonread doc;

	spokei_event(rig.engine, SPOKE_OK, "one");
	spokei_event(rig.engine, SPOKE_OK, "two");
	adminrig_run(3200 * MS);
	fd = open_stream();
	doc = next(fd, &count);
	assert_non_null(strstr(rig.got, "Content-Type: text/event-stream\r\n"));
	assert_non_null(strstr(rig.got, "\r\n\r\nretry: 1000\n\ndata: {"));
	assert_null(strstr(rig.got, "Content-Length"));
	assert_int_equal(count, 1);
	assert_int_equal(jsonread_count(jsonread_get(doc, "events")), 2);
	assert_int_equal(jsonread_count(jsonread_get(doc, "history")), 3);
	spokei_event(rig.engine, SPOKE_OK, "three");
	adminrig_run(500 * MS);
	doc = next(fd, &count);
	assert_int_equal(count, 1);
	assert_int_equal(jsonread_count(jsonread_get(doc, "events")), 1);
	assert_string_equal(jsonread_text(doc, "events[0].text"), "three");
	assert_int_equal(jsonread_count(jsonread_get(doc, "history")), 0);
	adminrig_run(500 * MS);
	doc = next(fd, &count);
	assert_int_equal(jsonread_count(jsonread_get(doc, "events")), 0);
	assert_int_equal(jsonread_count(jsonread_get(doc, "history")), 1);
}

TEST(stream_is_updated_twice_a_second)
{
	int fd = open_stream();
	unsigned count;

	(void)next(fd, &count);
	adminrig_run(5 * SECOND);
	(void)next(fd, &count);
	assert_in_range(count, 9, 10);
}

TEST(stream_timer_runs_only_while_there_are_streams)
{
	int one;
	int two;
	unsigned count;

	assert_int_equal(adminrig_timers(), 1);
	one = open_stream();
	two = open_stream();
	(void)next(one, &count);
	(void)next(two, &count);
	assert_int_equal(adminrig_timers(), 2);
	adminrig_hang_up(one);
	adminrig_run(SECOND);
	assert_int_equal(adminrig_timers(), 2);
	adminrig_hang_up(two);
	adminrig_run(MS);
	assert_int_equal(adminrig_timers(), 1);
}

TEST(slow_stream_skips_updates_and_catches_up_later)
{
	int quick = open_stream();
	int slow = adminrig_connect();
	int end;
	unsigned count;
	size_t bytes;

	(void)next(quick, &count);
	end = rig.accepted;
	spokei_vnet_link(rig.world.net, end)->capacity = 512;
	adminrig_send(slow, STREAM);
	adminrig_run(SECOND);
	bytes = rig.faulty.bytes;
	spokei_event(rig.engine, SPOKE_OK, "missed");
	adminrig_run(10 * SECOND);
	(void)next(quick, &count);
	assert_true(count > 15);
	assert_true(rig.faulty.bytes <= bytes + 65536);
	spokei_vnet_link(rig.world.net, end)->capacity = 1u << 20;
	(void)next(slow, &count);
	assert_int_equal(count, 1);
	adminrig_run(600 * MS);
	(void)next(slow, &count);
	assert_int_equal(count, 1);
	assert_non_null(strstr(rig.got, "\"missed\""));
}

TEST(peer_that_reads_nothing_is_closed_after_30_s)
{
	const struct spokei_vnet_link narrow = { .capacity = 512 };
	static const char *const requests[] = { STREAM, PAGE };

	for (size_t i = 0; i < 2; i++) {
		int fd;

		spokei_vnet_set_all(rig.world.net, &narrow);
		fd = adminrig_connect();
		adminrig_run(MS);
		adminrig_send(fd, requests[i]);
		adminrig_run(29 * SECOND);
		assert_int_equal(rig.admin->quota.count, 1);
		adminrig_run(2 * SECOND);
		assert_int_equal(rig.admin->quota.count, 0);
		adminrig_hang_up(fd);
	}
	assert_int_equal(adminrig_timers(), 1);
}

TEST(incomplete_request_times_out_after_5_s)
{
	bool ended;
	int fd = adminrig_connect();

	adminrig_run(MS);
	adminrig_send(fd, "GET / HTTP/1.1\r\nHost: loc");
	adminrig_run(4900 * MS);
	assert_string_equal(adminrig_read(fd, &ended), "");
	assert_false(ended);
	adminrig_run(200 * MS);
	assert_memory_equal(adminrig_read(fd, &ended), "HTTP/1.1 408 ", 13);
	assert_true(ended);
	adminrig_run(3 * SECOND);
	assert_int_equal(rig.admin->quota.count, 0);
}

TEST(input_received_during_a_stall_is_read_before_timeout)
{
	bool ended;
	int fd = adminrig_connect();

	adminrig_run(MS);
	adminrig_send(fd, "GET /status HTTP/1.1\r\n");
	adminrig_run(SECOND);
	spokei_world_hold(&rig.server, 10 * SECOND);
	adminrig_send(fd, ADMINRIG_HOST "\r\n");
	adminrig_run(11 * SECOND);
	assert_memory_equal(adminrig_read(fd, &ended), "HTTP/1.1 200 ", 13);
}

TEST(request_in_single_bytes_is_served_and_rest_dropped)
{
	static const char request[] = PAGE PAGE "nonsense";
	char byte[2] = "";
	bool ended;
	int fd = adminrig_connect();
	const char *answer;

	adminrig_run(MS);
	for (const char *at = request; *at != '\0'; at++) {
		byte[0] = *at;
		adminrig_send(fd, byte);
		if (at - request < (ptrdiff_t)sizeof(PAGE))
			adminrig_run(MS);
	}
	answer = adminrig_read(fd, &ended);
	assert_memory_equal(answer, "HTTP/1.1 200 ", 13);
	assert_true(ended);
	assert_null(strstr(answer + 9, "HTTP/1.1 4"));
}

TEST(peer_that_ended_its_side_gets_the_response)
{
	const struct spoke_env *env = &rig.client.env;
	int fd = adminrig_connect();
	bool ended;

	adminrig_run(MS);
	adminrig_send(fd, PAGE);
	assert_int_equal(env->net->shut(env->ctx, fd), 0);
	assert_memory_equal(adminrig_read(fd, &ended), "HTTP/1.1 200 ", 13);
	assert_true(ended);
	adminrig_run(MS);
	assert_int_equal(rig.admin->quota.count, 0);
}

/* While the response waits, the end of the peer's side is read only once. */
TEST(slow_peer_that_ended_its_side_is_not_polled)
{
	const struct spoke_env *env = &rig.client.env;
	int fd = adminrig_connect();
	uint64_t reads;

	adminrig_run(MS);
	spokei_vnet_link(rig.world.net, rig.accepted)->capacity = 512;
	adminrig_send(fd, PAGE);
	assert_int_equal(env->net->shut(env->ctx, fd), 0);
	reads = rig.faulty.calls[SPOKEI_FAULTS_READ];
	adminrig_run(20 * SECOND);
	assert_int_equal(env->net->read(env->ctx, fd, rig.got, 512), 512);
	adminrig_run(9 * SECOND);
	assert_int_equal(rig.admin->quota.count, 1);
	assert_in_range(rig.faulty.calls[SPOKEI_FAULTS_READ] - reads, 2, 4);
	adminrig_run(2 * SECOND);
	assert_int_equal(rig.admin->quota.count, 0);
}

/* Silent peers cannot keep others from the page, e.g. a probe of /live. */
TEST(silent_peers_give_way_when_all_places_are_taken)
{
	int fds[81];
	bool ended;

	for (size_t i = 0; i < LENGTH(fds); i++) {
		fds[i] = adminrig_connect();
		adminrig_run(MS);
		(void)adminrig_read(fds[0], &ended);
		assert_int_equal(ended, i >= 80);
	}
	for (size_t i = 1; i < LENGTH(fds); i++) {
		(void)adminrig_read(fds[i], &ended);
		assert_false(ended);
	}
	assert_int_equal(rig.admin->quota.count, 80);
	adminrig_send(fds[80], "GET /live HTTP/1.1\r\n" ADMINRIG_HOST "\r\n");
	assert_non_null(strstr(adminrig_read(fds[80], &ended), "200 OK"));
	adminrig_run(10 * SECOND);
	assert_int_equal(rig.admin->quota.count, 0);
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_ACCEPTED),
			 spoke_stat_get(rig.engine, SPOKE_STAT_CLOSED));
}

/* A response that arrives gives its connection's place to the next one, whatever its peer does. */
TEST(peers_that_never_close_keep_neither_probe_nor_viewer_out)
{
	static const char *const asked[] = { "/live", "/metrics", "/none" };
	char text[128];
	bool ended;

	for (unsigned i = 0; i < 400; i++) {
		int fd = adminrig_connect();

		(void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\n" ADMINRIG_HOST "\r\n",
			       asked[i % 3]);
		adminrig_send(fd, text);
		adminrig_run(MS);
		assert_non_null(
			strstr(adminrig_read(fd, &ended), i % 3 == 2 ? "404 Not Found" : "200 OK"));
	}
	assert_int_equal(rig.admin->viewers, 0);
	assert_int_equal(rig.admin->quota.count, 80);
	adminrig_run(3 * SECOND);
	assert_int_equal(rig.admin->quota.count, 0);
}

/* Neither streams nor readers that do not take their response. */
TEST(probes_have_places_that_viewers_cannot_take)
{
	bool ended;

	for (unsigned i = 0; i < 150; i++) {
		int fd = adminrig_connect();

		adminrig_run(MS);
		spokei_vnet_link(rig.world.net, rig.accepted)->capacity = 512;
		adminrig_send(fd, i < 100 ? STREAM : PAGE);
		adminrig_run(MS);
	}
	assert_int_equal(rig.admin->viewers, 16);
	for (unsigned i = 0; i < 30; i++) {
		int fd = adminrig_connect();

		adminrig_send(fd, i % 2 ? "GET /live HTTP/1.1\r\n" ADMINRIG_HOST "\r\n"
					: "GET /ready HTTP/1.1\r\n" ADMINRIG_HOST "\r\n");
		adminrig_run(MS);
		assert_non_null(strstr(adminrig_read(fd, &ended), "HTTP/1.1 "));
	}
	assert_int_equal(rig.admin->viewers, 16);
	adminrig_run(30 * SECOND);
	assert_int_equal(rig.admin->viewers, rig.admin->http.stream_count);
}

/* A member that a drain waits for. */
static struct spokei_member guest;

static void guest_drain(struct spokei_member *member)
{
	(void)member;
}

static void guest_close(struct spokei_member *member)
{
	spokei_member_drop(member);
}

TEST(drain_is_shown_and_not_delayed_by_streams)
{
	int fd = open_stream();
	unsigned count;
	struct jsonread doc = next(fd, &count);

	assert_false(jsonread_is_true(doc, "ending"));
	guest = (struct spokei_member){
		.kind = "guest",
		.drain = guest_drain,
		.close = guest_close,
	};
	spokei_member_add(rig.engine, &guest);
	assert_int_equal(spoke_engine_drain(rig.engine, 10 * SECOND), SPOKE_OK);
	adminrig_run(600 * MS);
	assert_false(rig.engine->drained);
	doc = next(fd, &count);
	assert_true(jsonread_is_true(doc, "ending"));
	assert_int_equal(adminrig_status("GET / HTTP/1.1\r\n" ADMINRIG_HOST "\r\n"), 200);
	spokei_member_drop(&guest);
	adminrig_run(600 * MS);
	assert_true(rig.engine->drained);
}

TEST(engine_free_closes_page_in_every_state)
{
	bool ended;
	int watcher = open_stream();
	int half = adminrig_connect();
	unsigned count;

	(void)next(watcher, &count);
	adminrig_send(half, "GET");
	adminrig_run(MS);
	spoke_engine_free(rig.engine);
	rig.engine = NULL;
	(void)adminrig_read(watcher, &ended);
	assert_true(ended);
	(void)adminrig_read(half, &ended);
	assert_true(ended);
	assert_int_equal(rig.faulty.blocks, 0);
}

/* --- the admin page whose environment fails each call once, or fails from that call on */

FIXTURE(NULL, NULL);

#define ACT "POST /act/act HTTP/1.1\r\n" ADMINRIG_HOST ADMINRIG_BEARER "\r\n"
/* Opens, uses and frees a page while any call may fail. */
static void live(void)
{
	struct spoke_admin_options options = adminrig_options();
	static const char *const requests[] = { PAGE, STREAM, ACT, "nonsense\r\n" };
	int fds[LENGTH(requests)];

	rig.admin = NULL;
	if (spoke_admin_new(rig.engine, &options, &rig.admin))
		return;
	for (size_t i = 0; i < LENGTH(requests); i++) {
		fds[i] = adminrig_connect();
		adminrig_run(MS);
		adminrig_send(fds[i], requests[i]);
	}
	adminrig_run(2 * SECOND);
	for (size_t i = 0; i < LENGTH(requests); i++)
		adminrig_hang_up(fds[i]);
	adminrig_run(SECOND);
	spoke_admin_free(rig.admin);
	adminrig_run(MS);
}

TEST(no_single_fault_leaves_anything_behind)
{
	static const struct {
		enum spokei_faults_kind kind;
		int error;
	} faults[] = {
		{ SPOKEI_FAULTS_MEMORY, -ENOMEM }, { SPOKEI_FAULTS_LISTEN, -EADDRINUSE },
		{ SPOKEI_FAULTS_ACCEPT, -EIO },    { SPOKEI_FAULTS_READ, -EIO },
		{ SPOKEI_FAULTS_WRITE, -EPIPE },   { SPOKEI_FAULTS_SHUT, -ENOTCONN },
		{ SPOKEI_FAULTS_LOCAL, -EIO },     { SPOKEI_FAULTS_SPARE, -EMFILE },
	};

	for (size_t i = 0; i < 2 * LENGTH(faults); i++) {
		enum spokei_faults_kind kind = faults[i / 2].kind;
		uint64_t failed = 1;

		for (uint64_t nth = 1; failed > 0; nth++) {
			adminrig_open_bare();
			rig.faulty.failed[kind] = 0;
			spokei_faults_fail(&rig.faulty, kind, nth, faults[i / 2].error, i % 2 == 1);
			live();
			failed = rig.faulty.failed[kind];
			spokei_faults_heal(&rig.faulty);
			assert_int_equal(rig.faulty.fds, 0);
			live();
			assert_non_null(rig.admin);
			assert_true(rig.acted >= 1);
			adminrig_close();
			assert_in_range(nth, 1, 500);
		}
	}
}

/* A client receives one response, or none. */
TEST(memory_fault_gives_one_response_or_none)
{
	unsigned refused = 0;
	uint64_t failed = 1;

	for (uint64_t nth = 1; failed > 0; nth++) {
		const char *answer;
		bool ended;
		int fd;

		adminrig_open();
		fd = adminrig_connect();
		adminrig_run(MS);
		spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		adminrig_send(fd, PAGE);
		answer = adminrig_read(fd, &ended);
		assert_true(ended);
		failed = rig.faulty.failed[SPOKEI_FAULTS_MEMORY];
		if (answer[0] != '\0') {
			assert_memory_equal(answer, "HTTP/1.1 ", 9);
			assert_null(strstr(answer + 9, "HTTP/1.1 "));
			refused += strncmp(answer + 9, "503", 3) == 0;
		}
		adminrig_hang_up(fd);
		adminrig_close();
	}
	assert_true(refused > 2);
}
