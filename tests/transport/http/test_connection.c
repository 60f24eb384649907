/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP connections under a service other than the admin page. */
#include "tests/support/test.h"
#include "tests/transport/http/kvrig.h"

#include "transport/http/request.h"

#include <stdio.h>
#include <string.h>

#define rig kvrig
#define POST_A "POST /a HTTP/1.1\r\n" KVRIG_HOST "Content-Length: 3\r\n\r\none"

STEP(set_up)
{
	kvrig_open();
}

STEP(tear_down)
{
	kvrig_close();
}

FIXTURE(set_up, tear_down);

static const char *body_of(const char *response)
{
	const char *body = strstr(response, "\r\n\r\n");

	assert_non_null(body);
	return body + 4;
}

TEST(stored_value_is_returned)
{
	assert_int_equal(kvrig_status(KVRIG_GET("/a")), 404);
	assert_int_equal(kvrig_status(POST_A), 200);
	assert_string_equal(body_of(kvrig_ask(KVRIG_GET("/a"))), "one");
	assert_int_equal(rig.requests, 3);
	assert_int_equal(rig.sent, 3);
	assert_int_equal(rig.closed, 3);
}

TEST(request_in_single_bytes_is_served)
{
	char byte[2] = "";
	bool ended;
	int fd = kvrig_connect();

	for (const char *at = POST_A; *at != '\0'; at++) {
		byte[0] = *at;
		kvrig_send(fd, byte);
		kvrig_run(MS);
	}
	assert_string_equal(body_of(kvrig_read(fd, &ended)), "stored\n");
	assert_true(ended);
	assert_string_equal(rig.pairs[0].value, "one");
}

TEST(second_request_on_a_connection_is_dropped)
{
	bool ended;
	int fd = kvrig_connect();

	kvrig_send(fd, POST_A KVRIG_GET("/a"));
	kvrig_send(fd, KVRIG_GET("/a"));
	assert_string_equal(body_of(kvrig_read(fd, &ended)), "stored\n");
	assert_true(ended);
	assert_int_equal(rig.requests, 1);
	kvrig_hang_up(fd);
	kvrig_run(MS);
	assert_int_equal(rig.closed, 1);
}

TEST(oversized_head_and_body_are_rejected)
{
	char large[SPOKEI_HTTP_HEAD_MAX + 64];

	memset(large, 'a', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	assert_int_equal(kvrig_status(large), 414);
	memcpy(large, "GET / HTTP/1.1\r\nX:", 18);
	assert_int_equal(kvrig_status(large), 431);
	assert_int_equal(kvrig_status("POST / HTTP/1.1\r\n" KVRIG_HOST
				      "Content-Length: 1025\r\n\r\n"),
			 413);
	assert_int_equal(kvrig_status("nonsense\r\n"), 400);
	assert_int_equal(rig.requests, 0);
}

TEST(incomplete_request_times_out)
{
	bool ended;
	int fd = kvrig_connect();

	kvrig_send(fd, "GET /a HTTP/1.1\r\n");
	kvrig_run(900 * MS);
	assert_string_equal(kvrig_read(fd, &ended), "");
	assert_false(ended);
	kvrig_run(200 * MS);
	assert_memory_equal(kvrig_read(fd, &ended), "HTTP/1.1 408 ", 13);
	assert_true(ended);
}

TEST(peer_that_never_closes_is_closed_after_linger)
{
	bool ended;
	int fd = kvrig_connect();

	kvrig_send(fd, POST_A);
	(void)kvrig_read(fd, &ended);
	assert_int_equal(rig.closed, 0);
	kvrig_run(SECOND);
	assert_int_equal(rig.closed, 1);
	kvrig_hang_up(fd);
}

TEST(head_request_gets_no_body_and_no_stream)
{
	static const char *const paths[] = { "a", "none", "all", "watch" };
	char request[64] = "";

	assert_int_equal(kvrig_status(POST_A), 200);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		(void)snprintf(request, sizeof(request), "HEAD /%s HTTP/1.1\r\nHost: a\r\n\r\n",
			       paths[i]);
		assert_string_equal(body_of(kvrig_ask(request)), "");
		assert_int_equal(rig.http.stream_count, 0);
	}
}

TEST(oversized_response_leaves_room_for_a_smaller_one)
{
	assert_int_equal(kvrig_status(KVRIG_GET("/large")), 503);
}

/* --- delayed responses */

TEST(response_may_be_given_later)
{
	bool ended;
	int fd = kvrig_connect();

	kvrig_send(fd, KVRIG_GET("/later"));
	kvrig_run(SECOND);
	assert_string_equal(kvrig_read(fd, &ended), "");
	assert_false(ended);
	kvrig_respond_later("now");
	assert_int_equal(rig.sent, 0);
	assert_string_equal(body_of(kvrig_read(fd, &ended)), "now\n");
	assert_true(ended);
	assert_int_equal(rig.sent, 1);
}

TEST(later_response_reaches_peer_that_ended_its_side)
{
	const struct spoke_env *env = &rig.client.env;
	uint64_t reads;
	bool ended;
	int fd = kvrig_connect();

	kvrig_send(fd, KVRIG_GET("/later"));
	assert_int_equal(env->net->shut(env->ctx, fd), 0);
	kvrig_run(MS);
	reads = rig.faulty.calls[SPOKEI_FAULTS_READ];
	kvrig_run(SECOND);
	assert_int_equal(rig.faulty.calls[SPOKEI_FAULTS_READ], reads);
	kvrig_respond_later("now");
	assert_string_equal(body_of(kvrig_read(fd, &ended)), "now\n");
	assert_true(ended);
	assert_int_equal(rig.closed, 1);
}

TEST(request_without_response_is_closed_after_slow_time)
{
	bool ended;
	int fd = kvrig_connect();

	kvrig_send(fd, KVRIG_GET("/later"));
	kvrig_run(1900 * MS);
	assert_non_null(rig.later);
	kvrig_run(200 * MS);
	assert_null(rig.later);
	assert_string_equal(kvrig_read(fd, &ended), "");
	assert_true(ended);
	assert_int_equal(rig.sent, 0);
}

TEST(response_to_closed_connection_fails_with_eclosed)
{
	struct spokei_http_conn *conn;
	int fd = kvrig_connect();

	kvrig_send(fd, KVRIG_GET("/later"));
	kvrig_run(MS);
	conn = rig.later;
	assert_non_null(conn);
	spokei_http_close(conn);
	spokei_http_close(conn);
	assert_int_equal(rig.closed, 1);
	spokei_http_respond_text(conn, 200, NULL, "late");
	assert_int_equal(spokei_http_send(conn, "late", 4), SPOKE_ECLOSED);
	spokei_http_end(conn);
	kvrig_run(MS);
	kvrig_hang_up(fd);
}

/* --- streams */

static void fill(void)
{
	static const char *const posts[] = {
		"POST /a HTTP/1.1\r\n" KVRIG_HOST "Content-Length: 6\r\n\r\nfirst.",
		"POST /b HTTP/1.1\r\n" KVRIG_HOST "Content-Length: 7\r\n\r\nsecond.",
		"POST /c HTTP/1.1\r\n" KVRIG_HOST "Content-Length: 6\r\n\r\nthird.",
		"POST /d HTTP/1.1\r\n" KVRIG_HOST "Content-Length: 7\r\n\r\nfourth.",
	};

	for (size_t i = 0; i < sizeof(posts) / sizeof(posts[0]); i++)
		assert_int_equal(kvrig_status(posts[i]), 200);
}

static void assert_all(const char *text)
{
	assert_int_equal(*text++, ':');
	for (unsigned i = 0; i < KVRIG_REPEAT; i++) {
		assert_memory_equal(text, "first.second.third.fourth.", 26);
		text += 26;
	}
	assert_string_equal(text, "");
}

TEST(stream_is_read_completely_and_ends)
{
	fill();
	assert_all(body_of(kvrig_ask(KVRIG_GET("/all"))));
	assert_int_equal(rig.sent, 5);
	assert_int_equal(rig.http.stream_count, 0);
}

TEST(slow_reader_gets_the_stream_within_bounded_memory)
{
	struct spokei_vnet_link *link;
	size_t bytes;
	size_t len = 0;
	ssize_t got;
	int fd;

	fill();
	fd = kvrig_connect();
	link = spokei_vnet_link(rig.world.net, rig.accepted);
	link->capacity = 256;
	link->write_max = 100;
	bytes = rig.faulty.bytes;
	kvrig_send(fd, KVRIG_GET("/all"));
	do {
		const struct spoke_env *env = &rig.client.env;

		kvrig_run(10 * MS);
		assert_true(rig.faulty.bytes <= bytes + 4096);
		got = env->net->read(env->ctx, fd, rig.got + len, KVRIG_READ_MAX - 1 - len);
		len += got > 0 ? (size_t)got : 0;
	} while (got > 0);
	assert_int_equal(got, 0);
	rig.got[len] = '\0';
	assert_all(body_of(rig.got));
}

TEST(stream_without_progress_is_closed)
{
	const struct spoke_env *env = &rig.client.env;
	int fd;

	fill();
	fd = kvrig_connect();
	spokei_vnet_link(rig.world.net, rig.accepted)->capacity = 256;
	kvrig_send(fd, KVRIG_GET("/all"));
	kvrig_run(1900 * MS);
	assert_int_equal(env->net->read(env->ctx, fd, rig.got, 256), 256);
	kvrig_run(1900 * MS);
	assert_int_equal(rig.http.stream_count, 1);
	kvrig_run(200 * MS);
	assert_int_equal(rig.http.stream_count, 0);
	assert_int_equal(rig.closed, 5);
	kvrig_hang_up(fd);
}

TEST(idle_stream_has_no_timeout)
{
	bool ended;
	int fd = kvrig_connect();

	kvrig_send(fd, KVRIG_GET("/watch"));
	assert_string_equal(body_of(kvrig_read(fd, &ended)), ":");
	kvrig_run(3600 * SECOND);
	assert_int_equal(kvrig_status(POST_A), 200);
	assert_string_equal(kvrig_read(fd, &ended), "one");
	assert_false(ended);
}

TEST(stream_beyond_its_output_limit_is_closed)
{
	int fd = kvrig_connect();

	spokei_vnet_link(rig.world.net, rig.accepted)->capacity = 512;
	kvrig_send(fd, KVRIG_GET("/watch"));
	kvrig_run(MS);
	for (unsigned i = 0; i < 4000 && rig.http.stream_count == 1; i++)
		(void)kvrig_status(POST_A);
	assert_int_equal(rig.http.stream_count, 0);
	kvrig_hang_up(fd);
}

TEST(stream_is_closed_when_the_peer_ends_its_side)
{
	const struct spoke_env *env = &rig.client.env;
	bool ended;
	int fd = kvrig_connect();

	kvrig_send(fd, KVRIG_GET("/watch"));
	(void)kvrig_read(fd, &ended);
	assert_int_equal(env->net->shut(env->ctx, fd), 0);
	kvrig_run(MS);
	assert_int_equal(rig.closed, 1);
}

/* --- the end */

TEST(drain_ends_streams_and_serves_open_requests)
{
	bool ended;
	int watcher = kvrig_connect();
	int late = kvrig_connect();
	int half = kvrig_connect();

	kvrig_send(watcher, KVRIG_GET("/watch"));
	kvrig_send(late, KVRIG_GET("/later"));
	kvrig_send(half, "GET /a HTTP/1.1\r\n");
	kvrig_run(MS);
	spokei_listener_free(rig.listener);
	rig.listener = NULL;
	spokei_engine_refresh(rig.http.engine);
	spokei_http_server_drain(&rig.http);
	assert_int_equal(rig.http.stream_count, 0);
	assert_string_equal(body_of(kvrig_read(watcher, &ended)), ":");
	assert_true(ended);
	kvrig_send(half, KVRIG_HOST "\r\n");
	assert_memory_equal(kvrig_read(half, &ended), "HTTP/1.1 404 ", 13);
	kvrig_respond_later("done");
	assert_string_equal(body_of(kvrig_read(late, &ended)), "done\n");
	kvrig_run(SECOND);
	assert_int_equal(rig.closed, 3);
	assert_int_equal(rig.sent, 3);
}

TEST(server_close_ends_connections_in_every_state)
{
	static const char *const requests[] = { KVRIG_GET("/watch"), KVRIG_GET("/later"), "GET",
						KVRIG_GET("/none") };
	int fds[4];
	bool ended;

	for (size_t i = 0; i < 4; i++) {
		fds[i] = kvrig_connect();
		kvrig_send(fds[i], requests[i]);
		kvrig_run(MS);
	}
	spokei_http_server_close(&rig.http);
	assert_int_equal(rig.closed, 4);
	for (size_t i = 0; i < 4; i++) {
		(void)kvrig_read(fds[i], &ended);
		assert_true(ended);
	}
}
