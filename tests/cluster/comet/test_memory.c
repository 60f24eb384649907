/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a gateway: bytes of an idle connection, and what happens when there is none. */
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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
