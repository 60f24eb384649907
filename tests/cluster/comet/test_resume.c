/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that come back: what they have missed is sent first, or "lost" is. */
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static void assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%.400s\" does not have \"%s\"", text, part);
}

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

FIXTURE(cometrig_set_up, cometrig_tear_down);

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
