/* SPDX-License-Identifier: Apache-2.0 */
/* The life of connections, their ends, and the memory that they take. */
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- the life of connections: keepalives, the end of a life, limits and storms */

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

/* --- how connections and gateways end: kicks, drains, and frees */

static unsigned count_of(const char *text, const char *part)
{
	unsigned count = 0;

	while ((text = strstr(text, part)) != NULL) {
		text += strlen(part);
		count++;
	}
	return count;
}

TEST(kick_closes_all_connections_of_a_user)
{
	int socket = cometrig_socket("user=ann");
	int events = cometrig_events("user=ann", NULL);
	int other = cometrig_socket("user=bob");
	char query[96];
	int poll;

	(void)snprintf(query, sizeof(query), "user=ann&after=%s", cometrig_id(0));
	poll = cometrig_poll(query);
	(void)cometrig_frames(socket);
	(void)cometrig_read(events, NULL);
	(void)cometrig_frames(other);
	assert_int_equal(spoke_comet_kick(cometrig.comet, spoke_comet_text("ann"), "logged out"),
			 3);
	assert_int_equal(spoke_comet_kick(cometrig.comet, spoke_comet_text("ann"), NULL), 0);
	assert_string_equal(cometrig_frames(socket), "close 4004 logged out\nend\n");
	assert_string_equal(cometrig_stream(events),
			    "- closed {\"code\":4004,\"reason\":\"logged out\"}\nend\n");
	assert_has(cometrig_read(poll, NULL),
		   ",\"messages\":[{\"id\":\"\",\"event\":\"closed\",\"data\":"
		   "\"{\\\"code\\\":4004,\\\"reason\\\":\\\"logged out\\\"}\"}]}");
	assert_string_equal(cometrig_frames(other), "");
	assert_string_equal(cometrig.changes, "+ann +bob -ann ");
}

/* Returns the texts that pages of the three ways get for this reason, one after the other. */
static const char *kick_for(const char *reason)
{
	static char texts[4096];
	int socket = cometrig_socket("user=ann");
	int events = cometrig_events("user=ann", NULL);
	char query[96];
	int poll;

	(void)snprintf(query, sizeof(query), "user=ann&after=%s", cometrig_id(0));
	poll = cometrig_poll(query);
	(void)cometrig_frames(socket);
	(void)cometrig_read(events, NULL);
	assert_int_equal(spoke_comet_kick(cometrig.comet, spoke_comet_text("ann"), reason), 3);
	(void)snprintf(texts, sizeof(texts), "%s", cometrig_frames(socket));
	(void)snprintf(texts + strlen(texts), sizeof(texts) - strlen(texts), "%s",
		       cometrig_read(events, NULL));
	(void)snprintf(texts + strlen(texts), sizeof(texts) - strlen(texts), "%s",
		       cometrig_read(poll, NULL));
	return texts;
}

TEST(reason_of_a_kick_is_json_in_events_and_polls)
{
	const char *texts = kick_for("a \"b\" \\c");

	assert_has(texts, "close 4004 a \"b\" \\c\nend\n");
	assert_has(texts, "data: {\"code\":4004,\"reason\":\"a \\\"b\\\" \\\\c\"}\n\n");
	assert_has(texts, "\\\"reason\\\":\\\"a \\\\\\\"b\\\\\\\" \\\\\\\\c\\\"}\"}]}");
	assert_has(kick_for(NULL), "data: {\"code\":4004,\"reason\":\"\"}\n\n");
}

/* A character takes at most 7 bytes in the JSON of a poll. */
TEST(longest_reason_of_a_kick_ends_alike_in_all_ways)
{
	char long_reason[201];
	char shown[6 * 123 + 1] = "";
	const char *texts;

	memset(long_reason, 1, 200);
	long_reason[200] = '\0';
	for (size_t i = 0; i < 123; i++)
		memcpy(shown + 6 * i, "\\u0001", 6);
	texts = kick_for(long_reason);
	assert_has(texts, shown);
	assert_int_equal(count_of(texts, "\001"), 123);
	assert_int_equal(count_of(texts, "\\u0001"), 2 * 123);
	assert_has(texts, "\\\\u0001\\\"}\"}]}");
}

TEST(drain_spreads_reconnects_and_ends)
{
	enum {
		COUNT = 100
	};
	static int fds[COUNT];
	unsigned open = COUNT;
	unsigned early = 0;
	unsigned steps = 0;

	open_many(fds, COUNT);
	assert_int_equal(spoke_engine_drain(cometrig.engine, 60 * SECOND), SPOKE_OK);
	while (open > 0 && steps++ < 30) {
		cometrig_run(SECOND / 2);
		open = 0;
		for (int i = 0; i < COUNT; i++) {
			bool ended;

			if (fds[i] < 0)
				continue;
			(void)cometrig_read(fds[i], &ended);
			if (ended) {
				assert_int_equal(count_of(cometrig.got, "event: reconnect\n"), 1);
				cometrig_hang_up(fds[i]);
				fds[i] = -1;
			} else {
				open++;
			}
		}
		if (steps == 5)
			early = open;
	}
	assert_int_equal(open, 0);
	assert_in_range(early, 10, 90);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_CLOSED_DRAIN), COUNT);
	cometrig_run(3 * SECOND);
	assert_true(cometrig.engine->drained);
}

TEST(poll_in_a_drain_is_told_when_to_come_again)
{
	char query[96];
	int fd;

	(void)snprintf(query, sizeof(query), "user=ann&after=%s", cometrig_id(0));
	fd = cometrig_poll(query);
	assert_int_equal(spoke_engine_drain(cometrig.engine, 60 * SECOND), SPOKE_OK);
	cometrig_run(10 * SECOND + MS);
	assert_has(cometrig_read(fd, NULL), "\"again\":1000}");
}

TEST(drained_gateway_accepts_no_more)
{
	int fd = cometrig_events("user=ann", NULL);
	const struct spoke_env *env = &cometrig.client.env;
	int late = cometrig_connect();
	bool ended;

	(void)cometrig_read(fd, NULL);
	assert_int_equal(spoke_engine_drain(cometrig.engine, 60 * SECOND), SPOKE_OK);
	cometrig_run(MS);
	cometrig_send(late, "GET /spoke/events?user=bob HTTP/1.1\r\n" COMETRIG_HOST "\r\n");
	assert_has(cometrig_read(late, &ended), "\r\n\r\nretry: ");
	assert_true(ended);
	assert_int_equal(env->net->finish(env->ctx, cometrig_connect()), -111);
}

TEST(drain_ends_although_the_last_client_finds_no_memory)
{
	int late = cometrig_connect();

	cometrig_run(MS);
	assert_int_equal(spoke_engine_drain(cometrig.engine, 60 * SECOND), SPOKE_OK);
	cometrig_send(late, "GET /spoke/socket?user=bob HTTP/1.1\r\n" COMETRIG_HOST COMETRIG_ORIGIN
				    COMETRIG_UPGRADE);
	cometrig_run(MS);
	assert_false(cometrig.engine->drained);
	spokei_faults_fail(&cometrig.faulty, SPOKEI_FAULTS_MEMORY, 1, -12, true);
	cometrig_send(late, "\r\n");
	cometrig_run(MS);
	spokei_faults_heal(&cometrig.faulty);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_CLOSED_MEMORY), 1);
	assert_true(cometrig.engine->drained);
}

TEST(free_with_connections_leaves_nothing)
{
	int fds[10];
	bool ended;

	open_many(fds, 10);
	(void)cometrig_connect();
	(void)cometrig_push(NULL, "e", "x");
	spoke_comet_free(cometrig.comet);
	(void)cometrig_read(fds[0], &ended);
	assert_true(ended);
	assert_string_equal(strstr(cometrig.changes, "-") ? "told" : "quiet", "quiet");
}

TEST(gateway_may_be_freed_in_a_callback)
{
	cometrig.then = cometrig_free_gateway;
	(void)cometrig_events("user=ann", NULL);
	cometrig_run(SECOND);
	assert_null(cometrig.then);
	assert_string_equal(cometrig.changes, "+ann ");
}

/* --- memory of a gateway: bytes of an idle connection, and what happens when there is none */

#define ROUNDS_MAX 400u
/* Opens idle connections, each of a user of its own. Returns the bytes of the server's memory that
 * one takes beyond the first chunk of connections. */
static size_t bytes_of_one(int (*open)(const char *query))
{
	enum {
		FIRST = SPOKEI_COMET_CHUNK,
		COUNT = 1024
	};
	size_t before = 0;

	for (int i = 0; i < COUNT; i++) {
		char query[32];

		if (i == FIRST)
			before = cometrig.faulty.bytes;
		(void)snprintf(query, sizeof(query), "user=customer-%05d", i);
		(void)cometrig_read(open(query), NULL);
	}
	return (cometrig.faulty.bytes - before + COUNT - FIRST - 1) / (COUNT - FIRST);
}

static int open_events(const char *query)
{
	return cometrig_events(query, NULL);
}

static void make_large(void)
{
	struct spoke_comet_options options = cometrig_begin();

	options.connections_per_peer_max = 10000;
	options.accept_rate = 100000;
	cometrig_make(&options);
}

FIXTURE(NULL, cometrig_tear_down);

/* With its user, whose id has 14 bytes, and with their places in tables. */
TEST(idle_event_stream_takes_256_bytes)
{
	size_t bytes;

	make_large();
	bytes = bytes_of_one(open_events);
	print_message("an idle connection takes %zu bytes\n", bytes);
	assert_in_range(bytes, 100, 256);
	assert_int_equal(cometrig_timers(), 1024);
	assert_int_equal(cometrig.faulty.fds, 1024 + 2);
}

TEST(idle_websocket_takes_256_bytes)
{
	make_large();
	assert_in_range(bytes_of_one(cometrig_socket), 100, 256);
}

static void may_fail(int error)
{
	assert_true(error == SPOKE_OK || error == SPOKE_ENOMEM);
}

/* What many kinds of clients do, while one allocation fails. Clients without an answer close. */
static void act(void)
{
	char query[96];
	int fds[6];
	int post;

	fds[0] = cometrig_events("user=ann", NULL);
	fds[1] = cometrig_socket("user=ann");
	(void)snprintf(query, sizeof(query), "user=bob&after=%s", cometrig_id(0));
	fds[2] = cometrig_poll(query);
	fds[3] = cometrig_events("user=bob", "wrong");
	fds[4] = cometrig_events("user=eve", NULL);
	if (cometrig_figure(SPOKE_COMET_FIGURE_EVENTS) == 4)
		spokei_vnet_link(cometrig.world.net, cometrig.accepted)->capacity = 300;
	for (int i = 0; i < 6; i++) {
		const struct spoke_comet_message message = {
			.event = spoke_comet_text("e"),
			.data = spoke_comet_text("some text that fills the narrow connection soon"),
			.keep = true,
		};

		may_fail(spoke_comet_push(cometrig.comet, spoke_comet_text("ann"), &message, NULL));
		may_fail(spoke_comet_push(cometrig.comet, spoke_comet_text("new"), &message, NULL));
		may_fail(spoke_comet_push_all(cometrig.comet, &message, NULL));
		cometrig_run(MS);
	}
	post = cometrig_connect();
	cometrig_send(post, "POST /spoke/send?user=ann HTTP/1.1\r\n" COMETRIG_HOST COMETRIG_ORIGIN
			    "Content-Length: 2\r\n\r\nhi");
	cometrig_run(MS);
	if (cometrig_figure(SPOKE_COMET_FIGURE_SOCKETS) == 1) {
		cometrig_frame(fds[1], 0x01, "some text in", 12);
		cometrig_run(MS);
		if (cometrig_figure(SPOKE_COMET_FIGURE_SOCKETS) == 1)
			cometrig_frame(fds[1], 0x80, "two parts", 9);
	}
	cometrig_run(MS);
	fds[5] = cometrig_events("user=ann", cometrig_id(1));
	for (int i = 0; i < 6; i++) {
		(void)cometrig_read(fds[i], NULL);
		cometrig_hang_up(fds[i]);
	}
	cometrig_hang_up(post);
}

TEST(failing_allocation_ends_at_most_its_connection, .bare = true)
{
	unsigned failed = 0;

	for (unsigned nth = 1; nth <= ROUNDS_MAX; nth++) {
		struct spoke_comet_options options = cometrig_begin();
		uint64_t before;
		int bystander;
		bool ended;

		options.all_messages = 4;
		cometrig_make(&options);
		bystander = cometrig_events("user=zoe", NULL);
		(void)cometrig_read(bystander, NULL);
		before = cometrig.faulty.failed[SPOKEI_FAULTS_MEMORY];
		spokei_faults_fail(&cometrig.faulty, SPOKEI_FAULTS_MEMORY, nth, -12, false);
		act();
		spokei_faults_heal(&cometrig.faulty);
		failed += cometrig.faulty.failed[SPOKEI_FAULTS_MEMORY] != before;
		/* The others go on: this one gets every message, or closes for want of memory to
		 * write one. */
		(void)cometrig_read(bystander, &ended);
		if (!ended) {
			(void)cometrig_push("zoe", "e", "after");
			assert_non_null(strstr(cometrig_read(bystander, NULL), "data: after\n"));
		} else {
			assert_true(cometrig_figure(SPOKE_COMET_FIGURE_CLOSED_MEMORY) > 0);
		}
		cometrig_hang_up(bystander);
		cometrig_run(130 * SECOND);
		assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_USERS), 0);
		assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BYTES), 0);
		assert_int_equal(cometrig.comet->quota.count, 0);
		assert_int_equal(cometrig_timers(), 0);
		before = cometrig.faulty.failed[SPOKEI_FAULTS_MEMORY] - before;
		cometrig_close();
		if (before == 0)
			break;
	}
	print_message("%u allocations failed\n", failed);
	assert_in_range(failed, 30, ROUNDS_MAX - 1);
}

TEST(failing_system_calls_end_at_most_their_connection, .bare = true)
{
	static const enum spokei_faults_kind kinds[] = {
		SPOKEI_FAULTS_READ,  SPOKEI_FAULTS_WRITE,  SPOKEI_FAULTS_SHUT,
		SPOKEI_FAULTS_GUARD, SPOKEI_FAULTS_ACCEPT,
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		for (unsigned nth = 1; nth <= 60; nth++) {
			struct spoke_comet_options options = cometrig_begin();

			cometrig_make(&options);
			spokei_faults_fail(&cometrig.faulty, kinds[i], nth, -103, false);
			act();
			spokei_faults_heal(&cometrig.faulty);
			cometrig_run(130 * SECOND);
			assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_USERS), 0);
			assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BYTES), 0);
			assert_int_equal(cometrig.comet->quota.count, 0);
			cometrig_close();
		}
	}
}

TEST(gateway_without_memory_is_not_made, .bare = true)
{
	unsigned nth = 0;
	int error;

	do {
		struct spoke_comet_options options = cometrig_begin();

		spokei_faults_fail(&cometrig.faulty, SPOKEI_FAULTS_MEMORY, ++nth, -12, false);
		error = spoke_comet_new(cometrig.engine, &options, &cometrig.comet);
		spokei_faults_heal(&cometrig.faulty);
		assert_true(error == SPOKE_OK || error == SPOKE_ENOMEM);
		cometrig_close();
	} while (error);
	assert_in_range(nth, 4, 20);
}

/* Users in a bucket are found by their chain; a table without memory grows later. */
TEST(table_of_users_works_without_memory_to_grow)
{
	const struct spoke_comet_message message = { .data = spoke_comet_text("x"), .keep = true };
	unsigned made = 0;

	make_large();
	for (int i = 0; i < 500; i++) {
		char id[32];

		(void)snprintf(id, sizeof(id), "u%d", i);
		/* Each push allocates a message, maybe a table, and a user. */
		if (i >= 64)
			spokei_faults_fail(&cometrig.faulty, SPOKEI_FAULTS_MEMORY, 2, -12, false);
		if (spoke_comet_push(cometrig.comet, spoke_comet_text(id), &message, NULL) ==
		    SPOKE_OK) {
			made++;
			assert_non_null(spokei_comet_find(cometrig.comet, spoke_comet_text(id)));
		}
		spokei_faults_heal(&cometrig.faulty);
	}
	assert_int_equal(cometrig.comet->bucket_count, 64);
	assert_int_equal(made, 500);
}

/* The ring drops older messages later, which hides nothing. */
TEST(message_without_room_in_its_ring_stays_lost)
{
	const struct spoke_comet_message message = { .event = spoke_comet_text("e"), .keep = true };
	struct spoke_comet_options options = cometrig_begin();

	options.ring_messages = 5;
	cometrig_make(&options);
	for (int number = 1; number <= 7; number++) {
		/* The ring grows for its fifth message. */
		if (number == 5)
			spokei_faults_fail(&cometrig.faulty, SPOKEI_FAULTS_MEMORY, 2, -ENOMEM,
					   false);
		assert_int_equal(spoke_comet_push(cometrig.comet, spoke_comet_text("ann"), &message,
						  NULL),
				 number == 5 ? SPOKE_ENOMEM : SPOKE_OK);
		spokei_faults_heal(&cometrig.faulty);
	}
	assert_non_null(
		strstr(cometrig_stream(cometrig_events("user=ann", cometrig_id(4))), " lost {}"));
}
