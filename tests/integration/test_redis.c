/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The peer that locks as Redisson does, among its kind: what other tests expect of locks and of the
 * relay holds without the code under test.
 */
#include "tests/integration/redispeer.h"
#include "tests/integration/redisrelay.h"
#include "tests/integration/redisserver.h"
#include "tests/integration/rig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "reports"
#define TTL_MS 30000u

static struct redisserver server;
static struct redispeer one;
static struct redispeer other;

/* --- locks */

NEEDS(redisserver_absent);

TEST(peer_excludes_the_other_and_tells_its_time)
{
	int64_t left;

	assert_int_equal(redispeer_acquire(&one, NAME, TTL_MS), REDISPEER_HELD);
	assert_string_equal(stranger("HGET", NAME, one.holder), "1");
	left = redispeer_acquire(&other, NAME, 1000);
	assert_in_range(left, 1, TTL_MS);
	assert_int_equal(redispeer_release(&other, NAME), REDISPEER_NOT_HELD);
	assert_true(redispeer_renew(&one, NAME, 2 * TTL_MS));
	assert_false(redispeer_renew(&other, NAME, 9 * TTL_MS));
	assert_in_range(stranger_number("PTTL", NAME), TTL_MS, 2 * TTL_MS);
}

TEST(release_wakes_a_waiting_peer)
{
	assert_int_equal(redispeer_acquire(&one, NAME, TTL_MS), REDISPEER_HELD);
	redispeer_subscribe(&other, NAME);
	assert_false(redispeer_has_heard(&other));
	assert_int_equal(redispeer_release(&one, NAME), 1);
	assert_string_equal(redispeer_hear(&other), "0");
	assert_int_equal(redispeer_acquire(&other, NAME, TTL_MS), REDISPEER_HELD);
}

TEST(reentered_lock_is_free_after_the_second_release)
{
	assert_int_equal(redispeer_acquire(&one, NAME, TTL_MS), REDISPEER_HELD);
	assert_int_equal(redispeer_acquire(&one, NAME, TTL_MS), REDISPEER_HELD);
	redispeer_subscribe(&other, NAME);
	assert_int_equal(redispeer_release(&one, NAME), 0);
	assert_true(redispeer_acquire(&other, NAME, TTL_MS) > 0);
	assert_int_equal(redispeer_release(&one, NAME), 1);
	assert_string_equal(redispeer_hear(&other), "0");
	assert_int_equal(stranger_number("DBSIZE"), 0);
}

TEST(latch_of_a_release_outlives_it_until_deleted)
{
	assert_int_equal(redispeer_acquire(&one, NAME, TTL_MS), REDISPEER_HELD);
	assert_int_equal(redispeer_release_with_latch_left(&one, NAME), 1);
	assert_int_equal(stranger_number("EXISTS", NAME), 0);
	assert_non_null(strstr(stranger("KEYS", "*"), "[redisson_unlock_latch:{" NAME "}:"));
}

TEST(fenced_acquires_count_tokens_up)
{
	char key[REDISPEER_NAME];
	int64_t first;
	int64_t second;

	assert_int_equal(redispeer_acquire_fenced(&one, NAME, TTL_MS, &first), REDISPEER_HELD);
	assert_int_equal(first, 1);
	assert_in_range(redispeer_acquire_fenced(&other, NAME, TTL_MS, &second), 1, TTL_MS);
	assert_int_equal(second, -1);
	assert_int_equal(redispeer_force_release(&other, NAME), 1);
	assert_int_equal(redispeer_force_release(&other, NAME), 0);
	assert_int_equal(redispeer_acquire_fenced(&other, NAME, TTL_MS, &second), REDISPEER_HELD);
	assert_int_equal(second, 2);
	redispeer_token(NAME, key);
	assert_int_equal(stranger_number("PTTL", key), -1);
}

/* --- the server and the relay */

TEST(killed_server_comes_back_empty)
{
	assert_int_equal(redispeer_acquire(&one, NAME, TTL_MS), REDISPEER_HELD);
	redisserver_kill(&server);
	assert_false(redisclient_answers(server.path));
	redisserver_revive(&server);
	redisserver_wait(&server);
	assert_int_equal(stranger_number("DBSIZE"), 0);
}

TEST(frozen_server_answers_when_it_is_thawed)
{
	redisserver_freeze(&server);
	redisclient_send(&one.asks, REDIS_WORDS("INCR", NAME));
	assert_false(redisclient_has_one(&one.asks));
	redisserver_thaw(&server);
	assert_string_equal(redisclient_read(&one.asks), "1");
}

static struct redisclient through; /* the relay */

static const char *answer_through(void)
{
	while (!redisclient_has_one(&through))
		redisrelay_pump();
	return redisclient_read(&through);
}

static const char *ask_through(const char *const *words)
{
	redisclient_send(&through, words);
	return answer_through();
}

/* Sends INCR NAME into a trap. */
static void spring(enum redisrelay_trap trap)
{
	redisrelay_set(trap, NAME);
	redisclient_send(&through, REDIS_WORDS("INCR", NAME));
	while (!redisrelay_has_sprung())
		redisrelay_pump();
}

TEST(relay_holds_a_reply_back)
{
	assert_string_equal(ask_through(REDIS_WORDS("INCR", "a")), "1");
	spring(REDISRELAY_HOLD_REPLY);
	while (stranger_number("EXISTS", NAME) == 0)
		continue;
	redisrelay_pump();
	assert_false(redisclient_has_one(&through));
	redisrelay_let_go();
	assert_string_equal(answer_through(), "1");
	assert_string_equal(ask_through(REDIS_WORDS("INCR", "a")), "2");
	assert_int_equal(redisrelay_seen("INCR"), 3);
}

TEST(relay_holds_a_command_back)
{
	spring(REDISRELAY_HOLD_COMMAND);
	redisrelay_pump();
	assert_int_equal(stranger_number("EXISTS", NAME), 0);
	redisrelay_let_go();
	assert_string_equal(answer_through(), "1");
}

TEST(relay_cuts_before_the_server_sees_a_command)
{
	spring(REDISRELAY_CUT_BEFORE);
	assert_true(redisclient_has_ended(&through));
	assert_int_equal(stranger_number("EXISTS", NAME), 0);
}

TEST(relay_cuts_after_the_server_has_run_a_command)
{
	spring(REDISRELAY_CUT_AFTER);
	assert_true(redisclient_has_ended(&through));
	assert_int_equal(stranger_number("EXISTS", NAME), 1);
}

TEST(command_of_a_ghost_runs_after_its_client_has_gone)
{
	spring(REDISRELAY_HOLD_COMMAND);
	redisclient_close(&through);
	redisrelay_pump();
	assert_int_equal(stranger_number("EXISTS", NAME), 0);
	redisrelay_let_go();
	while (stranger_number("EXISTS", NAME) == 0)
		redisrelay_pump();
}

TEST(killed_ghost_runs_no_command)
{
	char id[32];

	(void)snprintf(id, sizeof(id), "%s", ask_through(REDIS_WORDS("CLIENT", "ID")));
	spring(REDISRELAY_HOLD_COMMAND);
	redisclient_close(&through);
	assert_int_equal(stranger_number("CLIENT", "KILL", "ID", id), 1);
	redisrelay_pump();
	redisrelay_let_go();
	assert_int_equal(stranger_number("EXISTS", NAME), 0);
}

TEST(relay_cuts_subscribers_alone)
{
	assert_string_equal(ask_through(REDIS_WORDS("PING")), "PONG");
	redisrelay_cut_ears();
	assert_string_equal(ask_through(REDIS_WORDS("PING")), "PONG");
	assert_string_equal(ask_through(REDIS_WORDS("SUBSCRIBE", "c")), "[subscribe c 1]");
	redisrelay_cut_ears();
	assert_true(redisclient_has_ended(&through));
	redisrelay_shut(true);
	redisclient_close(&through);
	redisclient_open(&through, redisrelay_path());
	redisrelay_pump();
	assert_true(redisclient_has_ended(&through));
	assert_int_equal(redisrelay_accepted(), 2);
}

/* --- a cluster */

/* Asks until the reply contains the text. */
static void ask_until(const struct redisserver *where, const char *text, const char *const *words)
{
	for (unsigned tries = 0; !strstr(stranger_tries(where->path, words), text); tries++) {
		assert_true(tries < 6000);
		rig_sleep(10 * MS);
	}
}

TEST(sentinel_promotes_the_replica_when_it_is_asked_to)
{
	struct redisserver primary;
	struct redisserver replica;
	struct redisserver sentinel;
	uint16_t port = redisserver_free_port();
	char settings[64];

	redisserver_make(&primary, port, "repl-diskless-sync-delay 0\n");
	(void)snprintf(settings, sizeof(settings), "replicaof 127.0.0.1 %u\n", (unsigned)port);
	redisserver_make(&replica, redisserver_free_port(), settings);
	ask_until(&replica, "master_link_status:up", REDIS_WORDS("INFO", "replication"));
	redisserver_make_sentinel(&sentinel, redisserver_free_port(), port);
	ask_until(&sentinel, "master-link-status ok", REDIS_WORDS("SENTINEL", "REPLICAS", "main"));
	redisserver_kill(&primary);
	redisserver_promote(&sentinel, &replica);
	(void)snprintf(settings, sizeof(settings), "[127.0.0.1 %u]", (unsigned)replica.port);
	ask_until(&sentinel, settings, REDIS_WORDS("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"));
	redisserver_unmake(&sentinel);
	redisserver_unmake(&replica);
	redisserver_unmake(&primary);
	stranger_goes_to(server.path);
}

/* --- life */

static int set_up(void **state)
{
	(void)state;
	redisserver_rouse(&server);
	stranger_goes_to(server.path);
	(void)stranger("FLUSHALL");
	redispeer_open(&one, server.path, 1);
	redispeer_open(&other, server.path, 2);
	redisrelay_open(server.path);
	redisclient_open(&through, redisrelay_path());
	redisrelay_pump();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	redisclient_close(&through);
	redisrelay_close();
	redispeer_close(&one);
	redispeer_close(&other);
	stranger_leaves();
	return 0;
}

FIXTURE(set_up, tear_down);

static int set_up_all(void **state)
{
	(void)state;
	redisserver_make(&server, 0, "");
	return 0;
}

static int tear_down_all(void **state)
{
	(void)state;
	redisserver_unmake(&server);
	return 0;
}

GROUP(set_up_all, tear_down_all);
