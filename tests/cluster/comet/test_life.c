/* SPDX-License-Identifier: Apache-2.0 */
/* The life of connections: keepalives, the end of a life, limits and storms. */
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static void assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%.400s\" does not have \"%s\"", text, part);
}

static int open_many(int *fds, int count)
{
	for (int i = 0; i < count; i++) {
		char query[32];

		(void)snprintf(query, sizeof(query), "user=u%d", i);
		fds[i] = cometrig_events(query, NULL);
		(void)cometrig_read(fds[i], NULL);
	}
	return count;
}

/* --- keepalives and lives */

FIXTURE(cometrig_set_up, cometrig_tear_down);

TEST(silence_is_ended_by_a_keepalive)
{
	int events = cometrig_events("user=ann", NULL);
	int socket = cometrig_socket("user=ann");

	(void)cometrig_read(events, NULL);
	(void)cometrig_read(socket, NULL);
	cometrig_run(24 * SECOND);
	assert_string_equal(cometrig_stream(events), "");
	cometrig_run(SECOND);
	assert_string_equal(cometrig_stream(events), ":\n");
	assert_string_equal(cometrig_frames(socket), "ping\n");
	assert_int_equal(cometrig_timers(), 2);
}

TEST(message_moves_the_keepalive)
{
	int fd = cometrig_events("user=ann", NULL);

	(void)cometrig_read(fd, NULL);
	cometrig_run(20 * SECOND);
	(void)cometrig_push("ann", "e", "x");
	cometrig_run(20 * SECOND);
	assert_string_equal(cometrig_stream(fd), "1 e x\n");
	cometrig_run(5 * SECOND);
	assert_string_equal(cometrig_stream(fd), ":\n");
}

TEST(pong_of_a_client_is_ignored)
{
	int fd = cometrig_socket("user=ann");

	(void)cometrig_read(fd, NULL);
	cometrig_frame(fd, 0x8a, "", 0);
	assert_string_equal(cometrig_frames(fd), "");
}

TEST(life_that_is_over_is_told_to_reconnect)
{
	int events = cometrig_events("user=ann", NULL);
	int socket = cometrig_socket("user=bob");
	struct spokei_comet_user *user = spokei_comet_find(cometrig.comet, spoke_comet_text("ann"));
	uint64_t now_ns = cometrig.world.now_ns;
	bool ended = false;
	int again;

	(void)cometrig_read(socket, NULL);
	while (!ended) {
		cometrig_run(SECOND);
		(void)cometrig_read(events, &ended);
		(void)cometrig_push(NULL, "tick", "x");
	}
	assert_has(cometrig_lines(cometrig.got), "- reconnect {\"retry\":1000}\n");
	assert_has(cometrig.got, "retry: 1000\n");
	assert_in_range(cometrig.world.now_ns - now_ns, 1620 * SECOND, 1985 * SECOND);
	cometrig_hang_up(events);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_CLOSED_LIFE) > 0, 1);
	(void)cometrig_push("ann", "own", "between");
	again = cometrig_events("user=ann", cometrig_id((unsigned)cometrig.comet->number - 1));
	assert_has(cometrig_stream(again), " own between\n");
	assert_null(strstr(cometrig.lines, "lost"));
	assert_ptr_equal(spokei_comet_find(cometrig.comet, spoke_comet_text("ann")), user);
}

TEST(websocket_is_closed_1012_with_retry)
{
	int fd = cometrig_socket("user=ann");

	(void)cometrig_read(fd, NULL);
	cometrig_run(1985 * SECOND);
	assert_has(cometrig_frames(fd), "close 1012 retry=1000\nend\n");
}

TEST(lives_are_jittered)
{
	int fds[16];
	uint32_t first;
	uint32_t last;

	open_many(fds, 16);
	first = last = spokei_comet_cell(cometrig.comet, 0)->ends_ms;
	for (uint32_t i = 1; i < 16; i++) {
		uint32_t ends_ms = spokei_comet_cell(cometrig.comet, i)->ends_ms;

		first = ends_ms < first ? ends_ms : first;
		last = ends_ms > last ? ends_ms : last;
	}
	assert_true(last - first > 60000);
}

TEST(connection_that_ends_leaves_no_timer)
{
	int fd = cometrig_events("user=ann", NULL);

	(void)cometrig_read(fd, NULL);
	assert_int_equal(cometrig_timers(), 1);
	cometrig_hang_up(fd);
	assert_int_equal(cometrig_timers(), 0);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_ONLINE), 0);
	assert_int_equal(cometrig.comet->quota.count, 0);
}

TEST(ended_connection_lingers_for_its_client)
{
	int fd = cometrig_socket("user=ann");

	(void)cometrig_read(fd, NULL);
	assert_int_equal(spoke_comet_kick(cometrig.comet, spoke_comet_text("ann"), NULL), 1);
	cometrig_run(SECOND);
	assert_int_equal(cometrig_timers(), 1);
	cometrig_run(2 * SECOND);
	assert_int_equal(cometrig_timers(), 0);
	assert_int_equal(cometrig.faulty.fds, 2); /* the listener and its spare one */
}

/* --- limits */

TEST(seventh_connection_closes_the_oldest)
{
	int fds[7];

	for (int i = 0; i < 7; i++) {
		fds[i] = cometrig_socket("user=ann");
		(void)cometrig_run(SECOND);
	}
	assert_has(cometrig_frames(fds[0]), "close 4008 too many connections of this user\nend\n");
	for (int i = 1; i < 7; i++)
		assert_null(strstr(cometrig_frames(fds[i]), "close"));
	assert_int_equal(spoke_comet_connections(cometrig.comet, spoke_comet_text("ann")), 6);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_CLOSED_EXTRA), 1);
}

TEST(extra_event_stream_is_told_to_stay_away)
{
	int fd = cometrig_events("user=ann", NULL);

	(void)cometrig_read(fd, NULL);
	for (int i = 0; i < 6; i++)
		(void)cometrig_socket("user=ann");
	assert_has(cometrig_read(fd, NULL), "retry: 3600000\n");
	assert_has(cometrig_lines(cometrig.got),
		   "- closed {\"code\":4008,\"reason\":\"too many connections of this user\"}\n");
}

TEST(peer_with_too_many_connections_is_closed, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();
	int fds[4];
	bool ended;

	options.connections_per_peer_max = 3;
	cometrig_make(&options);
	open_many(fds, 3);
	fds[3] = cometrig_connect();
	assert_string_equal(cometrig_read(fds[3], &ended), "");
	assert_true(ended);
	cometrig_hang_up(fds[0]);
	assert_has(cometrig_read(cometrig_events("user=u9", NULL), NULL), "hello");
}

TEST(users_beyond_the_limit_come_again, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();
	int fds[2];
	bool ended;

	options.users_max = 2;
	cometrig_make(&options);
	open_many(fds, 2);
	assert_has(cometrig_read(cometrig_events("user=u9", NULL), &ended), "\r\n\r\nretry: ");
	assert_true(ended);
	assert_has(cometrig_frames(cometrig_socket("user=u9")), "close 1013 retry=");
	assert_has(cometrig_read(cometrig_poll("user=u9"), NULL), "\r\n\r\n{\"last\":\"\",");
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_STORMED), 3);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_USERS), 2);
}

TEST(storm_beyond_the_rate_comes_again_later, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();
	int fds[5];
	bool ended;

	options.accept_rate = 5;
	cometrig_make(&options);
	for (int i = 0; i < 5; i++)
		fds[i] = cometrig_events("user=ann", NULL);
	assert_has(cometrig_read(fds[4], NULL), "hello");
	/* Some 10 ms have passed: no new token. */
	assert_has(cometrig_read(cometrig_events("user=bob", NULL), &ended), "HTTP/1.1 200 OK\r\n");
	assert_true(ended);
	assert_in_range(cometrig_number(cometrig.got, "\r\n\r\nretry: "), 15000, 30000);
	assert_has(cometrig_frames(cometrig_socket("user=bob")), "close 1013 retry=");
	cometrig_run(SECOND);
	assert_has(cometrig_read(cometrig_events("user=bob", NULL), NULL), "hello");
}

/* Polls with this last id, which has to come again with `then`. */
static void assert_comes_again(const char *last, const char *then)
{
	char query[160];
	char body[160];
	const char *text;

	(void)snprintf(query, sizeof(query), "user=bob&last=%s", last);
	(void)snprintf(body, sizeof(body), "\r\n\r\n{\"last\":\"%s\",\"retry\":", then);
	text = cometrig_read(cometrig_poll(query), NULL);
	assert_has(text, body);
	assert_in_range(cometrig_number(text, "\"retry\":"), 1000, 15000);
	assert_in_range(cometrig_number(text, ",\"again\":"), 15000, 30000);
}

TEST(poll_beyond_the_rate_keeps_its_last_id, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();
	char id[SPOKE_COMET_ID];

	options.accept_rate = 1;
	cometrig_make(&options);
	(void)cometrig_events("user=ann", NULL);
	assert_comes_again("", "");
	assert_comes_again(cometrig_id(0), cometrig_id(0));
	/* Those of other gateways, and texts that are no ids, lead to "lost" then. */
	assert_comes_again("0123456789abcdef.77", "0123456789abcdef.77");
	assert_comes_again("x%22%7d", "0.0");
	(void)snprintf(id, sizeof(id), "%s%s", cometrig_id(0), "0000000000000000000000");
	assert_comes_again(id, id);
	assert_comes_again("0123456789abcdef.0123456789012345678901234", "0.0");
	cometrig_run(SECOND);
	assert_has(cometrig_read(cometrig_poll("user=bob&last=0.0"), NULL), "\"event\":\"lost\"");
}

/* A descriptor is kept in reserve, so that clients are refused instead of waiting. */
TEST(gateway_goes_on_after_descriptors_ran_out)
{
	int first;
	int refused;
	bool ended;

	first = cometrig_events("user=ann", NULL);
	(void)cometrig_read(first, NULL);
	cometrig.server.user.fds_max = cometrig.server.user.fds;
	refused = cometrig_connect();
	(void)cometrig_read(refused, &ended);
	assert_true(ended);
	cometrig.server.user.fds_max = 0;
	cometrig_run(SECOND);
	assert_has(cometrig_read(cometrig_events("user=bob", NULL), NULL), "hello");
	(void)cometrig_push("ann", "e", "x");
	assert_string_equal(cometrig_stream(first), "1 e x\n");
}

TEST(unfinished_heads_are_at_most_a_tenth, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();
	int fds[301];
	bool ended;

	options.connections_max = 3000;
	options.connections_per_peer_max = 3000;
	cometrig_make(&options);
	for (int i = 0; i < 300; i++)
		fds[i] = cometrig_connect();
	assert_int_equal(cometrig.comet->http.reading_count, 300);
	fds[300] = cometrig_connect();
	assert_int_equal(cometrig.comet->quota.count, 300);
	for (int i = 0; i < 301; i++) {
		(void)cometrig_read(fds[i], &ended);
		assert_int_equal(ended, i == 0);
	}
	/* Those that wait do not keep out one that asks. */
	cometrig_send(fds[300], "GET /x HTTP/1.1\r\n" COMETRIG_HOST "\r\n");
	assert_has(cometrig_read(fds[300], NULL), "HTTP/1.1 404 ");
	cometrig_run(8 * SECOND);
	assert_int_equal(cometrig.comet->quota.count, 0);
	assert_has(cometrig_read(cometrig_events("user=bob", NULL), NULL), "hello");
}

TEST(unfinished_head_gives_way_at_connections_max, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();
	bool ended;
	int fds[2];

	options.connections_max = 3;
	cometrig_make(&options);
	fds[0] = cometrig_events("user=ann", NULL);
	assert_has(cometrig_read(fds[0], NULL), "hello");
	fds[1] = cometrig_connect();
	cometrig_send(fds[1], "GET /spoke/events");
	assert_has(cometrig_read(cometrig_events("user=bob", NULL), NULL), "hello");
	assert_has(cometrig_read(cometrig_events("user=cas", NULL), NULL), "hello");
	(void)cometrig_read(fds[1], &ended);
	assert_true(ended);
	(void)cometrig_read(cometrig_connect(), &ended);
	assert_true(ended);
	(void)cometrig_read(fds[0], &ended);
	assert_false(ended);
}

TEST(answered_requests_are_not_unfinished_ones, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();

	options.connections_max = 3000;
	options.connections_per_peer_max = 3000;
	cometrig_make(&options);
	for (int i = 0; i < 300; i++)
		cometrig_send(cometrig_connect(), "GET /x HTTP/1.1\r\n" COMETRIG_HOST "\r\n");
	cometrig_run(MS);
	assert_int_equal(cometrig.comet->http.reading_count, 0);
	assert_int_equal(cometrig.comet->quota.count, 300);
	assert_has(cometrig_read(cometrig_events("user=bob", NULL), NULL), "hello");
}

TEST(unfinished_head_ends_in_time)
{
	int fd = cometrig_connect();
	bool ended;

	for (int i = 0; i < 4; i++) {
		cometrig_send(fd, "G");
		cometrig_run(SECOND);
	}
	assert_string_equal(cometrig_read(fd, &ended), "");
	assert_false(ended);
	cometrig_run(SECOND);
	assert_has(cometrig_read(fd, &ended), "HTTP/1.1 408 ");
}

TEST(large_heads_are_rejected)
{
	static char head[9300];
	int fd = cometrig_connect();

	memset(head, 'a', sizeof(head));
	cometrig_send(fd, "GET / HTTP/1.1\r\nX: ");
	cometrig_send_bytes(fd, head, 9000);
	assert_has(cometrig_read(fd, NULL), "HTTP/1.1 431 ");
	fd = cometrig_connect();
	cometrig_send(fd, "GET /");
	cometrig_send_bytes(fd, head, 3000);
	assert_has(cometrig_read(fd, NULL), "HTTP/1.1 414 ");
	cometrig_run(5 * SECOND);
	assert_int_equal(cometrig.comet->http.reading_count, 0);
	assert_int_equal(cometrig.comet->quota.count, 0);
}

TEST(input_to_an_event_stream_closes_it)
{
	int fd = cometrig_events("user=ann", NULL);
	bool ended;

	(void)cometrig_read(fd, NULL);
	cometrig_send(fd, "GET / HTTP/1.1\r\n\r\n");
	(void)cometrig_read(fd, &ended);
	assert_true(ended);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_CLOSED_PROTOCOL), 1);
}
