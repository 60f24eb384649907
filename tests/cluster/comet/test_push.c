/* SPDX-License-Identifier: Apache-2.0 */
/* Pushed messages: order, ids, forms, who gets them, and what is refused. */
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static void assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%.400s\" does not have \"%s\"", text, part);
}

static int push_to(const char *user, const struct spoke_comet_message *message,
		   struct spoke_comet_result *result)
{
	return spoke_comet_push(cometrig.comet, spoke_comet_text(user), message, result);
}

FIXTURE(cometrig_set_up, cometrig_tear_down);

TEST(pushes_arrive_once_in_order_with_rising_ids)
{
	int fd = cometrig_events("user=ann", NULL);
	const char *lines;

	(void)cometrig_read(fd, NULL);
	for (int i = 1; i <= 100; i++) {
		char data[16];

		(void)snprintf(data, sizeof(data), "n%d", i);
		(void)cometrig_push("ann", "tick", data);
		if (i % 7 == 0)
			cometrig_run(MS);
	}
	lines = cometrig_stream(fd);
	for (int i = 1; i <= 100; i++) {
		char line[32];
		size_t len = (size_t)snprintf(line, sizeof(line), "%d tick n%d\n", i, i);

		assert_memory_equal(lines, line, len);
		lines += len;
	}
	assert_string_equal(lines, "");
}

TEST(messages_of_a_turn_are_one_write)
{
	int fd = cometrig_events("user=ann", NULL);
	uint64_t before;

	(void)cometrig_read(fd, NULL);
	before = cometrig.faulty.calls[SPOKEI_FAULTS_WRITE];
	for (int i = 0; i < 10; i++)
		(void)cometrig_push("ann", NULL, "x");
	cometrig_run(MS);
	assert_int_equal(cometrig.faulty.calls[SPOKEI_FAULTS_WRITE], before + 1);
}

TEST(every_connection_of_a_user_gets_the_message)
{
	int a = cometrig_events("user=ann", NULL);
	int b = cometrig_socket("user=ann");
	int other = cometrig_events("user=bob", NULL);
	char query[96];
	int c;

	(void)snprintf(query, sizeof(query), "user=ann&after=%s", cometrig_id(0));
	c = cometrig_poll(query);
	(void)cometrig_read(a, NULL);
	(void)cometrig_read(b, NULL);
	(void)cometrig_read(other, NULL);
	(void)cometrig_push("ann", "offer", "{\"a\":\"\xc3\xa4\"}");
	assert_string_equal(cometrig_stream(a), "1 offer {\"a\":\"\xc3\xa4\"}\n");
	assert_has(cometrig_frames(b),
		   "\"event\":\"offer\",\"data\":\"{\\\"a\\\":\\\"\xc3\xa4\\\"}\"}\n");
	assert_has(cometrig_read(c, NULL), "\"messages\":[{\"id\":\"");
	assert_string_equal(cometrig_stream(other), "");
}

TEST(push_to_all_reaches_all_users_in_one_order)
{
	int a = cometrig_events("user=ann", NULL);
	int b = cometrig_events("user=bob", NULL);

	(void)cometrig_read(a, NULL);
	(void)cometrig_read(b, NULL);
	(void)cometrig_push(NULL, "all", "1");
	(void)cometrig_push("ann", "own", "2");
	(void)cometrig_push(NULL, "all", "3");
	assert_string_equal(cometrig_stream(a), "1 all 1\n2 own 2\n3 all 3\n");
	assert_string_equal(cometrig_stream(b), "1 all 1\n3 all 3\n");
}

TEST(message_is_encoded_once_for_a_form)
{
	uint64_t one;
	int fds[3];

	for (int i = 0; i < 3; i++) {
		fds[i] = cometrig_events("user=ann", NULL);
		(void)cometrig_read(fds[i], NULL);
	}
	(void)cometrig_push("ann", "e", "0123456789");
	cometrig_run(MS);
	one = cometrig_figure(SPOKE_COMET_FIGURE_BYTES);
	assert_int_equal(one,
			 sizeof(struct spokei_comet_message) + 11 +
				 strlen("id: 0123456789abcdef.1\nevent: e\ndata: 0123456789\n\n"));
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_WRITTEN), 3);
}

TEST(lines_of_data_stay_lines)
{
	int fd = cometrig_events("user=ann", NULL);

	(void)cometrig_read(fd, NULL);
	(void)cometrig_push("ann", "text", "a\nb\nid: 99.99");
	assert_string_equal(cometrig_stream(fd), "1 text a|b|id: 99.99\n");
}

TEST(result_counts_users_and_connections)
{
	const struct spoke_comet_message message = { .data = spoke_comet_text("x") };
	const struct spoke_span users[] = { spoke_comet_text("ann"), spoke_comet_text("bob"),
					    spoke_comet_text("nobody"), spoke_comet_text("ann") };
	struct spoke_comet_result result;

	(void)cometrig_events("user=ann", NULL);
	(void)cometrig_events("user=ann", NULL);
	(void)cometrig_events("user=bob", NULL);
	assert_int_equal(push_to("ann", &message, &result), SPOKE_OK);
	assert_int_equal(result.users, 1);
	assert_int_equal(result.connections, 2);
	assert_int_equal(push_to("nobody", &message, &result), SPOKE_OK);
	assert_int_equal(result.users, 0);
	assert_int_equal(spoke_comet_push_all(cometrig.comet, &message, &result), SPOKE_OK);
	assert_int_equal(result.users, 2);
	assert_int_equal(result.connections, 3);
	assert_int_equal(spoke_comet_push_many(cometrig.comet, users, 3, &message, &result),
			 SPOKE_OK);
	assert_int_equal(result.users, 2);
	assert_int_equal(result.connections, 3);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_DROPPED), 2);
}

TEST(user_named_twice_gets_the_message_once)
{
	const struct spoke_comet_message message = { .data = spoke_comet_text("x") };
	const struct spoke_span users[] = { spoke_comet_text("ann"), spoke_comet_text("ann") };
	int fd = cometrig_events("user=ann", NULL);

	(void)cometrig_read(fd, NULL);
	assert_int_equal(spoke_comet_push_many(cometrig.comet, users, 2, &message, NULL), SPOKE_OK);
	assert_string_equal(cometrig_stream(fd), "1 message x\n");
}

TEST(kept_message_waits_for_an_unknown_user)
{
	const struct spoke_comet_message message = { .data = spoke_comet_text("x"), .keep = true };
	int fd;

	assert_int_equal(push_to("ann", &message, NULL), SPOKE_OK);
	cometrig_run(SECOND);
	fd = cometrig_events("user=ann", cometrig_id(0));
	assert_has(cometrig_stream(fd), "0 hello {");
	assert_has(cometrig.lines, "\n1 message x\n");
}

TEST(message_past_its_ttl_is_skipped_and_not_lost)
{
	struct spoke_comet_message message = { .data = spoke_comet_text("old"), .keep = true };
	int fd;

	message.ttl_ns = 2 * SECOND;
	assert_int_equal(push_to("ann", &message, NULL), SPOKE_OK);
	message.ttl_ns = 0;
	message.data = spoke_comet_text("new");
	assert_int_equal(push_to("ann", &message, NULL), SPOKE_OK);
	cometrig_run(3 * SECOND);
	fd = cometrig_events("user=ann", cometrig_id(0));
	assert_null(strstr(cometrig_stream(fd), "old"));
	assert_has(cometrig.lines, "\n2 message new\n");
	assert_null(strstr(cometrig.lines, "lost"));
}

TEST(bad_messages_are_refused)
{
	static char large[16385];
	struct spoke_comet_message message = { .data = spoke_comet_text("x") };
	struct spoke_comet_message bad;

	memset(large, 'x', sizeof(large));
	assert_int_equal(push_to("", &message, NULL), SPOKE_EINVAL);
	assert_has(spoke_engine_why(cometrig.engine), "the id of a user");
	assert_int_equal(push_to("a\nb", &message, NULL), SPOKE_EINVAL);
	assert_int_equal(push_to("\xff", &message, NULL), SPOKE_EINVAL);
	bad = message;
	bad.event = spoke_comet_text("a b");
	assert_int_equal(push_to("a", &bad, NULL), SPOKE_EINVAL);
	assert_has(spoke_engine_why(cometrig.engine), "the event is not a name");
	bad.event = spoke_comet_text("a\"b");
	assert_int_equal(push_to("a", &bad, NULL), SPOKE_EINVAL);
	bad = message;
	bad.data = spoke_comet_text("\xc3");
	assert_int_equal(push_to("a", &bad, NULL), SPOKE_EINVAL);
	assert_has(spoke_engine_why(cometrig.engine), "not UTF-8");
	bad.data = (struct spoke_span){ large, sizeof(large) };
	assert_int_equal(push_to("a", &bad, NULL), SPOKE_ETOOLARGE);
	assert_int_equal(spoke_comet_push_all(cometrig.comet, &bad, NULL), SPOKE_ETOOLARGE);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_MESSAGES), 0);
}

TEST(events_of_the_gateway_itself_are_refused)
{
	static const char *const names[] = { "hello",  "lost", "reconnect",
					     "closed", "down", "unsent" };
	struct spoke_comet_message message = { .data = spoke_comet_text("{}"), .keep = true };
	const struct spoke_span ann = spoke_comet_text("ann");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		message.event = spoke_comet_text(names[i]);
		assert_int_equal(push_to("ann", &message, NULL), SPOKE_EINVAL);
		assert_has(spoke_engine_why(cometrig.engine), names[i]);
		assert_int_equal(spoke_comet_push_many(cometrig.comet, &ann, 1, &message, NULL),
				 SPOKE_EINVAL);
		assert_int_equal(spoke_comet_push_all(cometrig.comet, &message, NULL),
				 SPOKE_EINVAL);
	}
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_PUSHED), 0);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_USERS), 0);
	/* Names that begin like them, and "message", which pages know as the default. */
	message.event = spoke_comet_text("hello2");
	assert_int_equal(push_to("ann", &message, NULL), SPOKE_OK);
	message.event = spoke_comet_text("message");
	assert_int_equal(push_to("ann", &message, NULL), SPOKE_OK);
}

TEST(limits_of_bytes_and_users_refuse_a_push, .tear_down = cometrig_tear_down)
{
	struct spoke_comet_options options = cometrig_begin();
	static char large[4001];
	struct spoke_comet_message message = { .keep = true };

	memset(large, 'x', sizeof(large) - 1);
	options.users_max = 2;
	options.bytes_max = 10000;
	cometrig_make(&options);
	message.data = spoke_comet_text(large);
	assert_int_equal(push_to("a", &message, NULL), SPOKE_OK);
	assert_int_equal(push_to("b", &message, NULL), SPOKE_OK);
	assert_int_equal(push_to("b", &message, NULL), SPOKE_ELIMIT);
	message.data = spoke_comet_text("x");
	assert_int_equal(push_to("c", &message, NULL), SPOKE_ELIMIT);
	assert_int_equal(push_to("a", &message, NULL), SPOKE_OK);
}

/* Opens a stream for each of the users u0, u1 and so on. */
static void open_many(int *fds, int count)
{
	for (int i = 0; i < count; i++) {
		char query[32];

		(void)snprintf(query, sizeof(query), "user=u%d", i);
		fds[i] = cometrig_events(query, NULL);
		(void)cometrig_read(fds[i], NULL);
	}
}

enum {
	MANY = 600 /* connections, which a pass visits in several turns */
};

static int many[MANY];

static int set_up_many(void **state)
{
	struct spoke_comet_options options = cometrig_begin();

	(void)state;
	options.connections_per_peer_max = 2 * MANY;
	options.accept_rate = 2 * MANY;
	cometrig_make(&options);
	open_many(many, MANY);
	return 0;
}

TEST(single_push_goes_before_a_broadcast, .set_up = set_up_many, .tear_down = cometrig_tear_down)
{
	(void)cometrig_push(NULL, "all", "1");
	(void)cometrig_push("u599", "own", "2");
	/* One turn: a slice of 256 writes, the single push among them. */
	assert_int_equal(spoke_engine_turn(cometrig.engine, false), SPOKE_OK);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_WRITTEN), 257);
	assert_true(cometrig.comet->pass_left > 0);
	assert_string_equal(cometrig_stream(many[MANY - 1]), "1 all 1\n2 own 2\n");
	for (int i = 0; i < MANY - 1; i++)
		assert_string_equal(cometrig_stream(many[i]), "1 all 1\n");
	assert_int_equal(cometrig.comet->pass_left, 0);
}

/* In each turn of the pass another message comes; the first connections have been visited. */
TEST(broadcast_during_a_pass_reaches_all_at_its_end, .set_up = set_up_many,
     .tear_down = cometrig_tear_down)
{
	for (int i = 0; i < 3; i++) {
		(void)cometrig_push(NULL, "all", "x");
		assert_int_equal(spoke_engine_turn(cometrig.engine, false), SPOKE_OK);
	}
	cometrig_run(MS);
	for (int i = 0; i < MANY; i++)
		assert_string_equal(cometrig_stream(many[i]), "1 all x\n2 all x\n3 all x\n");
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_WRITTEN), 3 * MANY);
}

TEST(broadcasts_share_a_pass)
{
	enum {
		COUNT = 40
	};
	int fds[COUNT];
	uint64_t before;

	open_many(fds, COUNT);
	before = cometrig.faulty.calls[SPOKEI_FAULTS_WRITE];
	for (int i = 0; i < 5; i++)
		(void)cometrig_push(NULL, "all", "x");
	cometrig_run(MS);
	assert_int_equal(cometrig.faulty.calls[SPOKEI_FAULTS_WRITE], before + COUNT);
	assert_string_equal(cometrig_stream(fds[COUNT - 1]),
			    "1 all x\n2 all x\n3 all x\n4 all x\n5 all x\n");
}
