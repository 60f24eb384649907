/* SPDX-License-Identifier: Apache-2.0 */
/* Pushed messages: their order, clients that come back, and clients that do not read. */
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- pushed messages: order, ids, forms, who gets them, and what is refused */

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

STEP(set_up_many)
{
	struct spoke_comet_options options = cometrig_begin();

	options.connections_per_peer_max = 2 * MANY;
	options.accept_rate = 2 * MANY;
	cometrig_make(&options);
	open_many(many, MANY);
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

/* --- clients that come back: what they have missed is sent first, or "lost" is */

static struct spokei_comet_user *find(const char *user)
{
	return spokei_comet_find(cometrig.comet, spoke_comet_text(user));
}

/* Connects, and leaves after having read all. */
static void visit(const char *query)
{
	int fd = cometrig_events(query, NULL);

	(void)cometrig_read(fd, NULL);
	cometrig_hang_up(fd);
}

TEST(missed_messages_are_replayed_to_events)
{
	int fd = cometrig_events("user=ann", NULL);

	(void)cometrig_push("ann", "e", "1");
	(void)cometrig_read(fd, NULL);
	cometrig_hang_up(fd);
	(void)cometrig_push("ann", "e", "2");
	(void)cometrig_push(NULL, "e", "3");
	(void)cometrig_push("ann", "e", "4");
	fd = cometrig_events("user=ann", cometrig_id(1));
	assert_has(cometrig_stream(fd), "1 hello {");
	assert_has(cometrig.lines, "}\n2 e 2\n3 e 3\n4 e 4\n");
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_RESUMED), 1);
}

TEST(missed_messages_are_replayed_to_a_socket)
{
	char query[96];
	int fd;

	visit("user=ann");
	(void)cometrig_push("ann", "e", "1");
	(void)snprintf(query, sizeof(query), "user=ann&last=%s", cometrig_id(0));
	fd = cometrig_socket(query);
	assert_has(cometrig_frames(fd), "\"event\":\"e\",\"data\":\"1\"}\n");
}

TEST(missed_messages_answer_a_poll_at_once)
{
	char query[96];
	char body[256];

	visit("user=ann");
	(void)cometrig_push("ann", "e", "1");
	(void)cometrig_push("ann", NULL, "\"2\"");
	(void)snprintf(query, sizeof(query), "user=ann&after=%s", cometrig_id(0));
	(void)snprintf(body, sizeof(body),
		       ",\"messages\":["
		       "{\"id\":\"%016llx.1\",\"event\":\"e\",\"data\":\"1\"},"
		       "{\"id\":\"%016llx.2\",\"event\":\"message\",\"data\":\"\\\"2\\\"\"}]}",
		       (unsigned long long)cometrig.comet->epoch,
		       (unsigned long long)cometrig.comet->epoch);
	assert_has(cometrig_read(cometrig_poll(query), NULL), body);
	(void)snprintf(body, sizeof(body), "{\"last\":\"%s\"", cometrig_id(2));
	assert_has(cometrig.got, body);
}

TEST(client_without_last_id_gets_new_messages_only)
{
	int fd;

	visit("user=ann");
	(void)cometrig_push("ann", "e", "1");
	fd = cometrig_events("user=ann", NULL);
	assert_null(strstr(cometrig_stream(fd), " e 1"));
	(void)cometrig_push("ann", "e", "2");
	assert_string_equal(cometrig_stream(fd), "2 e 2\n");
}

TEST(overflown_ring_of_a_user_is_told_as_lost)
{
	int fd;

	visit("user=ann");
	for (int i = 0; i < 33; i++)
		(void)cometrig_push("ann", "e", "x");
	fd = cometrig_events("user=ann", cometrig_id(0));
	assert_has(cometrig_stream(fd), "0 hello {");
	assert_has(cometrig.lines, "}\n33 lost {}\n");
	assert_null(strstr(cometrig.lines, " e x"));
	(void)cometrig_push("ann", "e", "new");
	assert_string_equal(cometrig_stream(fd), "34 e new\n");
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_LOST), 1);
}

TEST(messages_in_a_full_ring_are_not_lost)
{
	int fd;

	visit("user=ann");
	for (int i = 0; i < 33; i++)
		(void)cometrig_push("ann", "e", "x");
	fd = cometrig_events("user=ann", cometrig_id(1));
	assert_null(strstr(cometrig_stream(fd), "lost"));
	assert_has(cometrig.lines, "\n2 e x\n");
	assert_has(cometrig.lines, "\n33 e x\n");
}

TEST(ring_is_bounded_by_bytes)
{
	static char large[6001];
	int fd;

	memset(large, 'y', sizeof(large) - 1);
	visit("user=ann");
	for (int i = 0; i < 3; i++)
		(void)cometrig_push("ann", "e", large);
	assert_int_equal(find("ann")->ring->count, 2);
	fd = cometrig_events("user=ann", cometrig_id(0));
	assert_has(cometrig_stream(fd), "\n3 lost {}\n");
}

TEST(overflown_ring_of_all_is_told_as_lost)
{
	int fd;

	visit("user=ann");
	for (int i = 0; i < 257; i++)
		(void)cometrig_push(NULL, "e", "x");
	fd = cometrig_events("user=ann", cometrig_id(0));
	assert_has(cometrig_stream(fd), "\n257 lost {}\n");
	fd = cometrig_events("user=ann", cometrig_id(1));
	assert_null(strstr(cometrig_stream(fd), "lost"));
}

TEST(other_epochs_and_wrong_ids_are_lost)
{
	static const char *const wrong[] = { "x",  "0123456789abcdef.1",  "1", ".",
					     "-1", "99999999999999999999" };
	char text[64];
	int fd;

	visit("user=ann");
	(void)cometrig_push("ann", "e", "1");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		fd = cometrig_events("user=ann", wrong[i]);
		/* A cut between the two must not hide the loss, so only "lost" has an id. */
		assert_has(cometrig_stream(fd), "- hello {");
		assert_has(cometrig.lines, "\n1 lost {}\n");
		cometrig_hang_up(fd);
	}
	fd = cometrig_events("user=ann", cometrig_id(2));
	assert_has(cometrig_stream(fd), "\n1 lost {}\n");
	(void)snprintf(text, sizeof(text), "%s000000000000000000000", cometrig_id(1));
	fd = cometrig_events("user=ann", text);
	assert_has(cometrig_stream(fd), "\n1 lost {}\n");
}

TEST(poll_is_told_that_messages_were_lost)
{
	(void)cometrig_push(NULL, "e", "1");
	assert_has(cometrig_read(cometrig_poll("user=ann&after=0123456789abcdef.1"), NULL),
		   "\"event\":\"lost\",\"data\":\"{}\"}]}");
}

TEST(user_within_keep_is_the_same_object)
{
	struct spokei_comet_user *user;
	int fd;

	fd = cometrig_events("user=ann", NULL);
	(void)cometrig_read(fd, NULL);
	user = find("ann");
	cometrig_hang_up(fd);
	cometrig_run(59 * SECOND);
	assert_ptr_equal(find("ann"), user);
	fd = cometrig_events("user=ann", NULL);
	(void)cometrig_read(fd, NULL);
	cometrig_run(120 * SECOND);
	assert_ptr_equal(find("ann"), user);
	assert_string_equal(cometrig.changes, "+ann -ann +ann ");
}

TEST(user_after_keep_is_forgotten)
{
	int fd;

	visit("user=ann");
	(void)cometrig_push("ann", "e", "1");
	cometrig_run(61 * SECOND);
	assert_null(find("ann"));
	assert_string_equal(cometrig.changes, "+ann -ann xann ");
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_USERS), 0);
	fd = cometrig_events("user=ann", cometrig_id(0));
	assert_has(cometrig_stream(fd), "\n1 lost {}\n");
}

TEST(forgotten_user_without_messages_has_lost_nothing)
{
	int fd;

	visit("user=ann");
	cometrig_run(61 * SECOND);
	assert_null(find("ann"));
	(void)cometrig_push(NULL, "e", "1");
	fd = cometrig_events("user=ann", cometrig_id(0));
	assert_null(strstr(cometrig_stream(fd), "lost"));
	assert_has(cometrig.lines, "\n1 e 1\n");
}

TEST(message_to_an_unknown_user_is_lost_later)
{
	int fd;

	visit("user=ann");
	cometrig_run(61 * SECOND);
	(void)cometrig_push("ann", "e", "1");
	fd = cometrig_events("user=ann", cometrig_id(0));
	assert_has(cometrig_stream(fd), "\n1 lost {}\n");
}

TEST(old_messages_leave_their_rings)
{
	int fd;

	fd = cometrig_events("user=ann", NULL);
	(void)cometrig_push("ann", "e", "1");
	(void)cometrig_push(NULL, "e", "2");
	cometrig_run(61 * SECOND);
	(void)cometrig_read(fd, NULL);
	cometrig_run(60 * SECOND);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_MESSAGES), 0);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BYTES), 0);
	assert_null(find("ann")->ring);
	/* Both were read, so nothing is lost. */
	(void)cometrig_read(fd, NULL);
	(void)cometrig_push("ann", "e", "3");
	assert_string_equal(cometrig_stream(fd), "3 e 3\n");
	cometrig_hang_up(fd);
	fd = cometrig_events("user=ann", cometrig_id(1));
	assert_has(cometrig_stream(fd), "\n3 lost {}\n");
}

TEST(polls_do_not_make_a_user_leave)
{
	unsigned number = 0;

	for (int i = 0; i < 5; i++) {
		char query[96];
		int fd;

		(void)snprintf(query, sizeof(query), "user=ann&after=%s", cometrig_id(number));
		fd = cometrig_poll(query);
		(void)cometrig_push("ann", "e", "x");
		number++;
		assert_has(cometrig_read(fd, NULL), "\"data\":\"x\"");
		cometrig_hang_up(fd);
		cometrig_run(2 * SECOND);
	}
	assert_string_equal(cometrig.changes, "+ann ");
	cometrig_run(11 * SECOND);
	assert_string_equal(cometrig.changes, "+ann -ann ");
	cometrig_run(61 * SECOND);
	assert_string_equal(cometrig.changes, "+ann -ann xann ");
}

/* A poll was answered while a stream was open; when the stream ends later, nobody polls. */
TEST(user_leaves_at_once_when_its_last_stream_ends)
{
	int events = cometrig_events("user=ann", NULL);
	char query[96];
	int poll;

	(void)snprintf(query, sizeof(query), "user=ann&after=%s", cometrig_id(0));
	poll = cometrig_poll(query);
	(void)cometrig_push("ann", "e", "x");
	assert_has(cometrig_read(poll, NULL), "\"data\":\"x\"");
	cometrig_hang_up(poll);
	cometrig_run(20 * SECOND);
	cometrig_hang_up(events);
	assert_string_equal(cometrig.changes, "+ann -ann ");
}

TEST(many_users_are_found_again)
{
	struct spoke_comet_message message = { .data = spoke_comet_text("x"), .keep = true };
	char id[32];

	for (int i = 0; i < 1000; i++) {
		(void)snprintf(id, sizeof(id), "user-%d", i);
		assert_int_equal(spoke_comet_push(cometrig.comet, spoke_comet_text(id), &message,
						  NULL),
				 SPOKE_OK);
	}
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(id, sizeof(id), "user-%d", i);
		assert_non_null(find(id));
		assert_int_equal(find(id)->ring->count, 1);
	}
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_USERS), 1000);
	cometrig_run(61 * SECOND);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_USERS), 0);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BYTES), 0);
}

/*
 * --- clients that do not read: memory stays bounded, no event is cut, and others are not
 * delayed
 */

#define CAPACITY 2000u
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
