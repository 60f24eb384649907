/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of a connection over a stream that holds bytes back, over one that never opens, and in a
 * forked child. */
#include "tests/cluster/scenarios/holdrig.h"
#include "tests/support/test.h"

#include "transport/conn/link.h"

#include <errno.h>

#define SLOW (30 * SECOND)  /* default time for peers that do not read */
#define MUTE (241 * SECOND) /* after which no timer waits for first bytes */

FIXTURE(holdrig_set_up, holdrig_tear_down);

TEST(half_closed_peer_gets_reply_that_stream_holds)
{
	const struct spoke_env *env = &holdrig.peer.process.env;
	struct peer_conn *conn = holdrig_connect();

	holdrig_ask(conn, "long");
	assert_int_equal(env->net->shut(env->ctx, conn->fd), 0);
	holdrig_read(conn);
	assert_true(conn->ended);
	assert_int_equal(holdrig.replies, 1);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED), 1);
}

TEST(peer_that_leaves_bytes_in_stream_is_closed_as_slow)
{
	struct peer_conn *conn = holdrig_connect();

	holdrig_ask(conn, "long");
	holdrig_pass(SLOW - SECOND);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED), 0);
	holdrig_pass(2 * SECOND);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED_SLOW), 1);
}

TEST(peer_that_empties_stream_late_is_kept)
{
	struct peer_conn *conn = holdrig_connect();

	holdrig_ask(conn, "long");
	holdrig_pass(SLOW - 5 * SECOND);
	holdrig_read(conn);
	assert_int_equal(holdrig.replies, 1);
	holdrig_pass(SLOW);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED), 0);
}

static void read_a_little(struct peer_conn *conn)
{
	const struct spoke_env *env = &holdrig.peer.process.env;
	unsigned char bytes[4000];

	assert_in_range(env->net->read(env->ctx, conn->fd, bytes, sizeof(bytes)), 1, sizeof(bytes));
}

TEST(bytes_that_leave_stream_are_progress_of_peer)
{
	struct peer_conn *conn = holdrig_connect();

	holdrig_ask(conn, "long");
	for (unsigned i = 0; i < 12; i++) {
		holdrig_pass(SLOW / 3);
		read_a_little(conn);
	}
	holdrig_pass(SLOW - SECOND);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED), 0);
	holdrig_pass(2 * SECOND);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED_SLOW), 1);
}

TEST(bytes_that_enter_stream_are_no_progress_of_peer)
{
	struct peer_conn *conn = holdrig_connect();

	holdrig_ask(conn, "long");
	for (unsigned i = 0; i < 5; i++) {
		holdrig_pass(SLOW / 6);
		holdrig_ask(conn, "short");
	}
	holdrig_pass(SLOW / 6 - SECOND);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED), 0);
	holdrig_pass(2 * SECOND);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED_SLOW), 1);
}

/* A heartbeat waits behind bytes in the stream, which the peer takes slowly. */
TEST(bytes_that_leave_stream_are_no_silence_of_peer)
{
	const struct spokei_vnet_link narrow = { .capacity = 400 };
	struct peer_conn *conn = holdrig_connect_by("dubbo");

	spokei_vnet_set_all(holdrig.world.net, &narrow);
	for (unsigned i = 0; i < 400; i++) {
		holdrig_ask(conn, "short");
		holdrig_pass(MS / 100);
	}
	holdrig.write_max = 0;
	for (unsigned i = 0; i < 15; i++) {
		holdrig_pass(10 * MS);
		read_a_little(conn);
	}
	assert_int_equal(holdrig_stat(SPOKE_STAT_PROBES_MISSED), 0);
	holdrig_pass(200 * MS);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED_SILENT), 1);
}

TEST(read_without_memory_is_no_end_of_peer)
{
	struct peer_conn *conn = holdrig_connect();

	holdrig.read_error = -ENOMEM;
	holdrig_ask(conn, "short");
	holdrig_pass(MS);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED_MEMORY), 1);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED_BY_PEER), 0);
}

TEST(stalled_handshake_is_not_read_before_stream_is_open)
{
	holdrig.opens = false;
	(void)holdrig_connect();
	holdrig_pass(SPOKEI_HANDSHAKE_NS + SECOND);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED_HANDSHAKE), 1);
	assert_int_equal(holdrig.early_reads, 0);
}

/* A connection that needs a timer and gets none is closed, here in the midst of its write. */
TEST(no_slot_is_called_after_close_by_write)
{
	struct peer_conn *conn = holdrig_connect();

	holdrig.write_max = 100;
	holdrig_ask(conn, "short");
	holdrig_pass(MUTE);
	holdrig_use_up_timers();
	holdrig_ask(conn, "long");
	holdrig_pass(SECOND);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED), 1);
	assert_int_equal(holdrig.late_flushes, 0);
}

TEST(push_to_all_survives_connections_closed_by_write)
{
	struct spoke_value value = holdrig_long();
	size_t count = 0;

	holdrig_use_socket();
	for (unsigned i = 0; i < HOLDRIG_CONNS; i++)
		holdrig_ask(holdrig_connect(), "short");
	holdrig_pass(MUTE);
	holdrig_use_up_timers();
	assert_int_equal(spoke_push_all(holdrig.news, (struct spoke_span){ value.data, value.len },
					NULL, &count),
			 0);
	holdrig_pass(SECOND);
	assert_int_equal(count, HOLDRIG_CONNS);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED), HOLDRIG_CONNS);
}

TEST(stream_that_copies_gets_no_lent_memory)
{
	struct peer_conn *conn = holdrig_connect();

	holdrig_ask(conn, "long");
	holdrig_read(conn);
	assert_int_equal(holdrig.replies, 1);
	assert_int_equal(holdrig.lent_parts, 0);
}

/* Its parent has them, too. */
TEST(child_serves_no_other_requests_of_a_read)
{
	struct peer_conn *conn = holdrig_connect();

	holdrig_ask(conn, "fork");
	holdrig_ask(conn, "short");
	holdrig_pass(MS);
	assert_int_equal(holdrig.served, 1);
}
