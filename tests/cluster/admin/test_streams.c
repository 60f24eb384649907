/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of the admin page, its timeouts, limits and end. */
#include "tests/cluster/admin/adminrig.h"
#include "tests/support/test.h"

#include "tests/core/json/jsonread.h"

#include <stdio.h>
#include <string.h>

#define rig adminrig
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
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

FIXTURE(adminrig_set_up, adminrig_tear_down);

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

/* Neither streams nor readers that do not hang up. */
TEST(probes_have_places_that_viewers_cannot_take)
{
	static const char *const asked[] = { "/events", "/metrics", "/none" };
	char text[128];
	bool ended;

	for (unsigned i = 0; i < 150; i++) {
		(void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\n" ADMINRIG_HOST "\r\n",
			       asked[i < 100 ? 0 : i % 3]);
		adminrig_send(adminrig_connect(), text);
		adminrig_run(MS);
	}
	assert_int_equal(rig.admin->viewers, 16);
	assert_int_equal(rig.admin->quota.count, 16);
	for (unsigned i = 0; i < 30; i++) {
		int fd = adminrig_connect();

		adminrig_send(fd, i % 2 ? "GET /live HTTP/1.1\r\n" ADMINRIG_HOST "\r\n"
					: "GET /ready HTTP/1.1\r\n" ADMINRIG_HOST "\r\n");
		adminrig_run(MS);
		assert_non_null(strstr(adminrig_read(fd, &ended), "HTTP/1.1 "));
	}
	assert_int_equal(rig.admin->viewers, 16);
	adminrig_run(10 * SECOND);
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
	spokei_roll_drop(rig.engine, member);
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
	spokei_roll_add(rig.engine, &guest);
	assert_int_equal(spoke_engine_drain(rig.engine, 10 * SECOND), SPOKE_OK);
	adminrig_run(600 * MS);
	assert_false(rig.engine->drained);
	doc = next(fd, &count);
	assert_true(jsonread_is_true(doc, "ending"));
	assert_int_equal(adminrig_status("GET / HTTP/1.1\r\n" ADMINRIG_HOST "\r\n"), 200);
	spokei_roll_drop(rig.engine, &guest);
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
