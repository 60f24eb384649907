/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that do not read: memory stays bounded, no event is cut, and others are not delayed. */
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY 2000u

static void assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%.400s\" does not have \"%s\"", text, part);
}

/* Opens a stream whose client takes only CAPACITY bytes until it reads. */
static int open_narrow(const char *query)
{
	int fd = cometrig_events(query, NULL);

	(void)cometrig_read(fd, NULL);
	spokei_vnet_link(cometrig.world.net, cometrig.accepted)->capacity = CAPACITY;
	return fd;
}

static void push_many(const char *user, unsigned from, unsigned to)
{
	static char data[256];

	for (unsigned i = from; i <= to; i++) {
		(void)snprintf(data, sizeof(data), "%u%0200d", i, 0);
		(void)cometrig_push(user, "e", data);
		cometrig_run(MS);
	}
}

/* Reads until nothing more comes; returns the lines. */
static const char *read_all(int fd, bool *ret_ended)
{
	static char text[COMETRIG_READ_MAX];
	size_t len = 0;

	do {
		(void)cometrig_read(fd, ret_ended);
		memcpy(text + len, cometrig.got, cometrig.got_len + 1);
		len += cometrig.got_len;
	} while (cometrig.got_len > 0);
	return cometrig_lines(text);
}

FIXTURE(cometrig_set_up, cometrig_tear_down);

TEST(client_that_does_not_read_holds_one_message)
{
	int fast = cometrig_events("user=bob", NULL);
	int slow;

	(void)cometrig_read(fast, NULL);
	slow = open_narrow("user=ann");
	for (unsigned i = 1; i <= 1000; i++) {
		char line[320];

		push_many(NULL, i, i);
		(void)snprintf(line, sizeof(line), "%u e %u00", i, i);
		assert_has(cometrig_stream(fast), line);
	}
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BEHIND), 1);
	/* The ring of all, and the one message that the slow client has begun to take. */
	assert_in_range(cometrig_figure(SPOKE_COMET_FIGURE_MESSAGES), 256, 257);
	assert_in_range(cometrig_figure(SPOKE_COMET_FIGURE_BYTES), 1, 257 * 700);
	cometrig_hang_up(slow);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_MESSAGES), 256);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BEHIND), 0);
}

TEST(client_that_goes_on_gets_the_rest)
{
	int fd = open_narrow("user=ann");
	const char *lines;
	bool ended;

	push_many("ann", 1, 30);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BEHIND), 1);
	lines = read_all(fd, &ended);
	assert_false(ended);
	for (unsigned i = 1; i <= 30; i++) {
		char line[320];
		int len = snprintf(line, sizeof(line), "%u e %u%0200d\n", i, i, 0);

		assert_memory_equal(lines, line, (size_t)len);
		lines += len;
	}
	assert_string_equal(lines, "");
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BEHIND), 0);
	assert_null(spokei_comet_cell(cometrig.comet, 0)->more);
}

TEST(client_that_goes_on_too_late_is_told_lost)
{
	int fd = open_narrow("user=ann");
	unsigned number = 0;
	const char *lines;
	bool ended;

	push_many("ann", 1, 100);
	lines = read_all(fd, &ended);
	assert_false(ended);
	assert_null(strstr(lines, "half"));
	assert_has(lines, "\n100 lost {}\n");
	/* Whole events up to the loss, in order, and no others after it. */
	for (const char *at = lines; *at; at = strchr(at, '\n') + 1) {
		unsigned seen = (unsigned)strtoul(at, NULL, 10);

		assert_true(seen > number);
		number = seen;
	}
	assert_int_equal(number, 100);
	push_many("ann", 101, 101);
	assert_has(read_all(fd, &ended), "101 e 101");
}

TEST(client_without_progress_is_closed)
{
	int fd = open_narrow("user=ann");
	bool ended;

	push_many("ann", 1, 20);
	cometrig_run(29 * SECOND);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_EVENTS), 1);
	cometrig_run(SECOND);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_EVENTS), 0);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_CLOSED_SLOW), 1);
	/* The browser drops the event that is cut, and comes back with the id before. */
	assert_has(read_all(fd, &ended), "half");
	assert_true(ended);
}

TEST(client_that_reads_slowly_is_kept)
{
	const struct spoke_env *env = &cometrig.client.env;
	int fd = open_narrow("user=ann");
	char bytes[300];

	push_many("ann", 1, 20);
	for (int i = 0; i < 8; i++) {
		cometrig_run(20 * SECOND);
		assert_true(env->net->read(env->ctx, fd, bytes, sizeof(bytes)) > 0);
	}
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_EVENTS), 1);
}

TEST(connection_that_waits_is_not_kept_alive)
{
	int fd = open_narrow("user=ann");
	bool ended;

	push_many("ann", 1, 20);
	cometrig_run(26 * SECOND);
	assert_null(strstr(read_all(fd, &ended), ":\n"));
	cometrig_run(26 * SECOND);
	assert_has(read_all(fd, &ended), ":\n");
}

TEST(keepalive_is_in_time_after_output_has_waited, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();
	bool ended;
	int fd;

	options.slow_ns = 100 * SECOND;
	cometrig_make(&options);
	fd = open_narrow("user=ann");
	push_many("ann", 1, 20);
	cometrig_run(30 * SECOND);
	(void)read_all(fd, &ended);
	cometrig_run(24 * SECOND);
	assert_null(strstr(read_all(fd, &ended), ":\n"));
	cometrig_run(SECOND + MS);
	assert_has(read_all(fd, &ended), ":\n");
}

/* Returns how often the timers of connections have been due. */
static uint64_t looks(void)
{
	struct spoke_wheel_counts counts;

	assert_int_equal(spoke_wheel_class_counts(cometrig.engine->wheel,
						  cometrig.comet->timer_class, &counts, NULL),
			 SPOKE_WHEEL_OK);
	return counts.fired;
}

/* The client is blamed from the moment on from which it does not take what there is. */
TEST(time_of_output_begins_when_it_waits, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();
	int fd;

	options.slow_ns = SECOND;
	cometrig_make(&options);
	fd = cometrig_events("user=ann", NULL); /* its first bytes are not read */
	cometrig_run(10 * SECOND);
	assert_int_equal(looks(), 0);
	spokei_vnet_link(cometrig.world.net, cometrig.accepted)->capacity = 1;
	(void)cometrig_push("ann", "e", "1");
	cometrig_run(SECOND - 2 * MS);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BEHIND), 1);
	cometrig_run(4 * MS);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_CLOSED_SLOW), 1);
	cometrig_hang_up(fd);
}

TEST(evicted_message_lives_until_it_is_written)
{
	int fd = open_narrow("user=ann");
	bool ended;

	push_many("ann", 1, 12);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BEHIND), 1);
	push_many("ann", 13, 100);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_MESSAGES), 33);
	(void)read_all(fd, &ended);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_MESSAGES), 32);
}

TEST(life_that_ends_while_output_waits_just_closes, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();
	bool ended;
	int fd;

	options.life_ns = 10 * SECOND;
	cometrig_make(&options);
	fd = open_narrow("user=ann");
	push_many("ann", 1, 20);
	cometrig_run(12 * SECOND);
	assert_null(strstr(read_all(fd, &ended), "reconnect"));
	assert_true(ended);
}

TEST(long_answer_to_a_poll_ends_after_its_rest)
{
	static char data[10001];
	char query[96];
	bool ended;
	int fd;

	memset(data, 'x', sizeof(data) - 1);
	(void)snprintf(query, sizeof(query), "user=ann&after=%s", cometrig_id(0));
	fd = cometrig_poll(query);
	spokei_vnet_link(cometrig.world.net, cometrig.accepted)->capacity = CAPACITY;
	(void)cometrig_push("ann", "e", data);
	cometrig_run(MS);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BEHIND), 1);
	(void)cometrig_read(fd, &ended);
	assert_true(ended);
	assert_string_equal(cometrig.got + cometrig.got_len - 6, "xx\"}]}");
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BYTES) > 0, 1);
	cometrig_hang_up(fd);
	cometrig_run(130 * SECOND);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BYTES), 0);
}

/* Pushes a long message to a client that holds a poll, and takes CAPACITY bytes at a time. */
static int begin_long_answer(void)
{
	static char data[10001];
	char query[96];
	int fd;

	memset(data, 'x', sizeof(data) - 1);
	(void)snprintf(query, sizeof(query), "user=ann&after=%s", cometrig_id(0));
	fd = cometrig_poll(query);
	spokei_vnet_link(cometrig.world.net, cometrig.accepted)->capacity = CAPACITY;
	(void)cometrig_push("ann", "e", data);
	cometrig_run(MS);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BEHIND), 1);
	return fd;
}

TEST(answer_to_a_poll_lasts_as_long_as_it_moves)
{
	const struct spoke_env *env = &cometrig.client.env;
	int fd = begin_long_answer();
	char bytes[CAPACITY];
	bool ended;

	for (int i = 0; i < 3; i++) {
		cometrig_run(20 * SECOND);
		assert_true(env->net->read(env->ctx, fd, bytes, sizeof(bytes)) > 0);
	}
	(void)cometrig_read(fd, &ended);
	assert_true(ended);
	assert_string_equal(cometrig.got + cometrig.got_len - 6, "xx\"}]}");
	/* From its end on, the client has 2 s to close. */
	cometrig_run(SECOND);
	assert_int_equal(cometrig_timers(), 1);
	cometrig_run(SECOND);
	assert_int_equal(cometrig_timers(), 0);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_CLOSED_SLOW), 0);
}

TEST(answer_to_a_poll_that_stands_still_is_cut)
{
	int fd = begin_long_answer();
	bool ended;

	cometrig_run(29 * SECOND);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BEHIND), 1);
	cometrig_run(SECOND);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BEHIND), 0);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_CLOSED_SLOW), 1);
	(void)cometrig_read(fd, &ended);
	assert_true(ended);
}

TEST(answer_to_a_poll_ends_with_the_drain)
{
	(void)begin_long_answer();
	assert_int_equal(spoke_engine_drain(cometrig.engine, 60 * SECOND), SPOKE_OK);
	cometrig_run(11 * SECOND);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BEHIND), 0);
	assert_int_equal(cometrig_timers(), 0);
}

TEST(many_slow_clients_are_bounded)
{
	enum {
		COUNT = 50
	};
	int fds[COUNT];
	size_t bytes;

	for (int i = 0; i < COUNT; i++) {
		char query[32];

		(void)snprintf(query, sizeof(query), "user=u%d", i);
		fds[i] = open_narrow(query);
	}
	push_many(NULL, 1, 100);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BEHIND), COUNT);
	bytes = cometrig.faulty.bytes;
	push_many(NULL, 101, 600);
	assert_in_range(cometrig.faulty.bytes, 0, bytes + 160000);
	for (int i = 0; i < COUNT; i++)
		cometrig_hang_up(fds[i]);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_MESSAGES), 256);
}
