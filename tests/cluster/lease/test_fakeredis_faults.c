/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis in memory: faults of connections and of the server, replicas and the sentinel. */
#include "tests/cluster/lease/fakeredisrig.h"
#include "tests/support/test.h"

#include <string.h>

#define rig fakeredisrig

/* --- faults */

FIXTURE(fakeredisrig_set_up, fakeredisrig_tear_down);

TEST(delayed_answers_keep_their_order)
{
	rig.server.delay_ns = 20 * MS;
	fakeredisrig_send(&rig.one, "PING a");
	fakeredisrig_pass(10 * MS);
	rig.server.delay_ns = 0;
	fakeredisrig_answer("PING b", "");
	fakeredisrig_pass(10 * MS);
	fakeredisrig_got(&rig.one, "$1\r\na\r\n$1\r\nb\r\n");
}

TEST(connection_is_cut_before_or_after_a_command)
{
	fakeredis_put(&rig.server, "a", "1");
	fakeredis_cut(&rig.server, FAKEREDIS_CUT_BEFORE, "DEL", FAKEREDIS_NO_SCRIPT, 0);
	fakeredisrig_answer("DEL a", "END");
	assert_true(fakeredis_remove(&rig.server, "a"));
	fakeredis_put(&rig.server, "a", "1");
	fakeredis_cut(&rig.server, FAKEREDIS_CUT_AFTER, "DEL", FAKEREDIS_NO_SCRIPT, 0);
	fakeredisrig_send(&rig.two, "DEL a");
	fakeredisrig_got(&rig.two, "END");
	assert_false(fakeredis_remove(&rig.server, "a"));
}

TEST(mute_connection_still_runs_commands)
{
	fakeredis_put(&rig.server, "a", "1");
	fakeredis_cut(&rig.server, FAKEREDIS_CUT_MUTE, "PING", FAKEREDIS_NO_SCRIPT, 1);
	fakeredisrig_answer("PING", "+PONG\r\n");
	fakeredisrig_answer("PING", "");
	fakeredisrig_answer("DEL a", "");
	assert_false(fakeredis_remove(&rig.server, "a"));
}

TEST(killed_server_comes_back_with_its_data)
{
	fakeredis_put(&rig.server, "a", "1");
	fakeredis_kill(&rig.server);
	fakeredisrig_got(&rig.one, "END");
	fakeredis_start(&rig.server, &rig.world, FAKEREDISRIG_AT);
	fakeredisrig_connect(&rig.two, FAKEREDISRIG_AT);
	fakeredisrig_send(&rig.two, "GET a");
	fakeredisrig_got(&rig.two, "$1\r\n1\r\n");
	fakeredis_wipe(&rig.server);
	fakeredisrig_send(&rig.two, "GET a");
	fakeredisrig_got(&rig.two, "$-1\r\n");
}

/* What a frozen server has received is run when it goes on, even if the client has gone. */
TEST(frozen_server_runs_what_it_has_received)
{
	fakeredis_put(&rig.server, "a", "1");
	spokei_world_hold(&rig.server.process, SECOND);
	fakeredisrig_send(&rig.one, "DEL a");
	spokei_vnet_kill(&rig.one.user);
	fakeredisrig_pass(SECOND / 2);
	assert_int_equal(rig.server.key_count, 1);
	fakeredisrig_pass(SECOND);
	assert_int_equal(rig.server.key_count, 0);
}

/* --- replicas */

TEST(replica_gets_writes_later_and_refuses_its_own)
{
	struct fakeredis_lock lock;

	fakeredis_put_lock(&rig.server, "n", "a:1", 1, 0);
	fakeredis_start(&rig.replica, &rig.world, FAKEREDISRIG_REPLICA_AT);
	fakeredis_follow(&rig.replica, &rig.server, 10 * MS);
	assert_true(fakeredis_lock(&rig.replica, "n", &lock));
	fakeredisrig_answer("DEL n", ":1\r\n");
	assert_true(fakeredis_lock(&rig.replica, "n", &lock));
	fakeredisrig_pass(10 * MS);
	assert_false(fakeredis_lock(&rig.replica, "n", &lock));
	fakeredisrig_connect(&rig.two, FAKEREDISRIG_REPLICA_AT);
	fakeredis_put(&rig.server, "a", "1");
	fakeredisrig_pass(10 * MS);
	fakeredisrig_send(&rig.two, "DEL a");
	fakeredisrig_got(&rig.two, "-READONLY You can't write against a read only replica.\r\n");
	fakeredisrig_send(&rig.two, "ROLE");
	fakeredisrig_got(&rig.two,
			 "*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:6379\r\n$9\r\nconnected\r\n"
			 ":3\r\n");
}

TEST(sentinel_names_the_primary_and_tells_of_another)
{
	static struct fakeredis sentinel;

	memset(&sentinel, 0, sizeof(sentinel));
	sentinel.sentinel = "mine";
	sentinel.watched = &rig.server;
	fakeredis_start(&rig.replica, &rig.world, FAKEREDISRIG_REPLICA_AT);
	fakeredis_start(&sentinel, &rig.world, "127.0.0.1:26379");
	fakeredisrig_connect(&rig.two, "127.0.0.1:26379");
	fakeredisrig_send(&rig.two, "SENTINEL get-master-addr-by-name other");
	fakeredisrig_got(&rig.two, "*-1\r\n");
	fakeredisrig_send(&rig.two, "SENTINEL get-master-addr-by-name mine");
	fakeredisrig_got(&rig.two, "*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n");
	fakeredisrig_send(&rig.two, "SUBSCRIBE +switch-master");
	fakeredisrig_got(&rig.two, "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n");
	fakeredis_switch(&sentinel, &rig.replica);
	fakeredisrig_got(&rig.two, "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$34\r\n"
				   "mine 127.0.0.1 6379 127.0.0.1 6380\r\n");
	fakeredis_stop(&sentinel);
}
