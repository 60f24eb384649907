/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases at a real Redis: shared with a peer that locks as Redisson does, refused, cut off,
 * frozen and failed over. Rows 4 to 9 and 13 to 23 of the leases in FAULTS.md.
 */
#include "tests/integration/redisrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
 * --- leases at a real Redis, shared with a peer that locks as Redisson does: both exclude and
 * wake each other, whatever the name. Rows 13 to 20 of the leases in FAULTS.md
 */

#define NAME "reports"
#define TTL_NS (2 * SECOND)

static struct redispeer peer;

/* --- rows 13 and 14: a peer that releases what it does not hold */

static int set_up(void **state)
{
	int error = redisrig_set_up(state);

	redispeer_open(&peer, redis.path, 1);
	return error;
}

static int tear_down(void **state)
{
	redispeer_close(&peer);
	return redisrig_tear_down(state);
}

FIXTURE(set_up, tear_down);

NEEDS(redisserver_absent);

GROUP(redisrig_set_up_all, redisrig_tear_down_all);

TEST(lease_13_release_by_a_stranger_changes_nothing)
{
	struct asked *asked;

	redisrig_open_direct(TTL_NS);
	asked = redisrig_hold(NAME);
	assert_int_equal(redispeer_release(&peer, NAME), REDISPEER_NOT_HELD);
	assert_int_equal(stranger_number("EXISTS", NAME), 1);
	redisrig_until_renewed(asked);
	assert_int_equal(asked->lost, 0);
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
	assert_int_equal(stranger_number("EXISTS", NAME), 0);
}

TEST(lease_14_forced_release_is_noticed_by_the_renewal)
{
	struct asked *asked;
	struct asked *waiter;

	redisrig_open_direct(TTL_NS);
	asked = redisrig_hold(NAME);
	waiter = redisrig_ask(NAME, SPOKE_LEASE_FOREVER);
	redisrig_until_waiting(NAME);
	assert_int_equal(waiter->told, 0);
	assert_int_equal(redispeer_force_release(&peer, NAME), 1);
	assert_int_equal(redisrig_answer(waiter), SPOKE_OK);
	assert_true(waiter->fence > asked->fence);
	assert_int_equal(redisrig_loss(asked), SPOKE_LEASE_TAKEN);
	assert_int_equal(redisrig_release(waiter), SPOKE_OK);
}

TEST(lease_14_broken_lease_is_not_taken_again)
{
	struct asked *asked;

	redisrig_open_direct(TTL_NS);
	asked = redisrig_hold(NAME);
	assert_int_equal(stranger_number("DEL", NAME), 1);
	assert_int_equal(redisrig_loss(asked), SPOKE_LEASE_TAKEN);
	redisrig_settle();
	assert_int_equal(stranger_number("EXISTS", NAME), 0);
}

/* --- row 15: each sees the time to live of the other */

TEST(lease_15_peer_sees_the_time_to_live_of_a_lease)
{
	struct asked *asked;
	int64_t left_ms;

	redisrig_open_direct(LONG_NS);
	asked = redisrig_hold(NAME);
	left_ms = redispeer_acquire(&peer, NAME, 1000);
	assert_in_range(left_ms, 1, LONG_MS);
	assert_true(redisrig_left(asked) < (uint64_t)left_ms * MS);
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
	assert_int_equal(redispeer_acquire(&peer, NAME, 1000), REDISPEER_HELD);
}

TEST(lease_15_ask_sees_the_time_to_live_of_a_peer)
{
	struct asked *asked;

	redisrig_open_direct(TTL_NS);
	assert_int_equal(redispeer_acquire(&peer, NAME, LONG_MS), REDISPEER_HELD);
	asked = redisrig_ask(NAME, 0);
	assert_int_equal(redisrig_answer(asked), SPOKE_EBUSY);
	assert_in_range(asked->busy_ns, (uint64_t)stranger_number("PTTL", NAME) * MS, LONG_NS);
	assert_true(redispeer_renew(&peer, NAME, LONG_MS));
}

TEST(lease_15_ask_that_waits_ends_at_its_time)
{
	const uint64_t wait_ns = 200 * MS;
	uint64_t begun_ns;
	struct asked *asked;

	redisrig_open_direct(TTL_NS);
	assert_int_equal(redispeer_acquire(&peer, NAME, LONG_MS), REDISPEER_HELD);
	begun_ns = rig_now();
	asked = redisrig_ask(NAME, wait_ns);
	assert_int_equal(redisrig_answer(asked), SPOKE_ETIMEOUT);
	assert_true(asked->told_ns - begun_ns >= wait_ns);
	assert_int_equal(redispeer_release(&peer, NAME), 1);
	redisrig_settle();
	assert_int_equal(stranger_number("EXISTS", NAME), 0);
}

/* --- rows 16 and 17: a peer that releases */

TEST(lease_16_waiter_gets_it_after_the_second_release)
{
	struct asked *asked;

	redisrig_open_direct(TTL_NS);
	assert_int_equal(redispeer_acquire(&peer, NAME, LONG_MS), REDISPEER_HELD);
	assert_int_equal(redispeer_acquire(&peer, NAME, LONG_MS), REDISPEER_HELD);
	asked = redisrig_ask(NAME, SPOKE_LEASE_FOREVER);
	redisrig_until_waiting(NAME);
	assert_int_equal(redispeer_release(&peer, NAME), 0);
	redisrig_settle();
	assert_int_equal(asked->told, 0);
	assert_int_equal(redispeer_release(&peer, NAME), 1);
	assert_int_equal(redisrig_answer(asked), SPOKE_OK);
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
}

TEST(lease_17_release_with_a_latch_wakes_a_waiter)
{
	struct asked *asked;

	redisrig_open_direct(TTL_NS);
	assert_int_equal(redispeer_acquire(&peer, NAME, LONG_MS), REDISPEER_HELD);
	asked = redisrig_ask(NAME, SPOKE_LEASE_FOREVER);
	redisrig_until_waiting(NAME);
	assert_int_equal(redispeer_release_with_latch_left(&peer, NAME), 1);
	assert_int_equal(redisrig_answer(asked), SPOKE_OK);
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
	assert_int_equal(redispeer_acquire(&peer, NAME, 1000), REDISPEER_HELD);
}

TEST(lease_17_release_wakes_a_waiting_peer)
{
	struct asked *asked;

	redisrig_open_direct(LONG_NS);
	asked = redisrig_hold(NAME);
	assert_true(redispeer_acquire(&peer, NAME, 1000) > 0);
	redispeer_subscribe(&peer, NAME);
	assert_false(redispeer_has_heard(&peer));
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
	assert_string_equal(redispeer_hear(&peer), "0");
	assert_int_equal(redispeer_acquire(&peer, NAME, 1000), REDISPEER_HELD);
	assert_false(redispeer_has_heard(&peer));
}

TEST(lease_17_waiters_of_a_process_get_it_in_their_order)
{
	struct asked *waiters[8];
	uint64_t fence = 0;

	redisrig_open_direct(LONG_NS);
	assert_int_equal(redispeer_acquire(&peer, NAME, LONG_MS), REDISPEER_HELD);
	for (size_t i = 0; i < 8; i++)
		waiters[i] = redisrig_ask(NAME, SPOKE_LEASE_FOREVER);
	redisrig_until_waiting(NAME);
	assert_int_equal(redispeer_release(&peer, NAME), 1);
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(redisrig_answer(waiters[i]), SPOKE_OK);
		assert_true(waiters[i]->fence > fence);
		fence = waiters[i]->fence;
		for (size_t later = i + 1; later < 8; later++)
			assert_int_equal(waiters[later]->told, 0);
		assert_int_equal(redisrig_release(waiters[i]), SPOKE_OK);
	}
}

/* --- row 18: tokens of a fenced peer */

TEST(lease_18_tokens_of_both_sides_increase_together)
{
	char key[REDISPEER_NAME];
	uint64_t last = 0;

	redisrig_open_direct(LONG_NS);
	redispeer_token(NAME, key);
	for (unsigned i = 0; i < 5; i++) {
		struct asked *asked = redisrig_hold(NAME);
		int64_t token;

		assert_true(asked->fence > last);
		assert_true(redispeer_acquire_fenced(&peer, NAME, 1000, &token) > 0);
		assert_int_equal(redisrig_release(asked), SPOKE_OK);
		assert_int_equal(redispeer_acquire_fenced(&peer, NAME, LONG_MS, &token),
				 REDISPEER_HELD);
		assert_true(token > (int64_t)asked->fence);
		last = (uint64_t)token;
		assert_int_equal(redispeer_release(&peer, NAME), 1);
	}
	assert_int_equal(stranger_number("PTTL", key), -1);
}

/* --- row 19: names */

/* Both use the same keys and the same channel. */
static void assert_shared(const char *name)
{
	struct asked *asked = redisrig_hold(name);
	struct redispeer listener;
	char key[REDISPEER_NAME];

	redispeer_open(&listener, redis.path, 2);
	redispeer_subscribe(&listener, name);
	redispeer_token(name, key);
	assert_true(redispeer_acquire(&peer, name, LONG_MS) > 0);
	assert_int_equal(stranger_number("GET", key), asked->fence);
	assert_int_equal(stranger_number("DBSIZE"), 2);
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
	assert_string_equal(redispeer_hear(&listener), "0");
	redispeer_close(&listener);

	assert_int_equal(redispeer_acquire(&peer, name, LONG_MS), REDISPEER_HELD);
	assert_int_equal(redisrig_answer(redisrig_ask(name, 0)), SPOKE_EBUSY);
	asked = redisrig_ask(name, SPOKE_LEASE_FOREVER);
	redisrig_until_waiting(name);
	assert_int_equal(asked->told, 0);
	assert_int_equal(redispeer_release(&peer, name), 1);
	assert_int_equal(redisrig_answer(asked), SPOKE_OK);
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
	assert_string_equal(stranger("FLUSHALL"), "OK");
}

TEST(lease_19_any_name_is_one_lock_for_both_sides)
{
	static const char *const names[] = {
		"{tag}:reports",
		"reports:{tag}",
		"{",
		"}",
		"{}",
		"a}b{c",
		"with spaces in it ",
		"line\r\n*1\r\n$8\r\nFLUSHALL\r\n",
		"%s%n*?[a-z]\\",
		"gr\xc3\xb6\xc3\x9f\x65\xe2\x82\xac",
		"redisson_lock__channel:{reports}",
	};
	char longest[SPOKE_LEASE_NAME_MAX + 1];

	redisrig_open_direct(LONG_NS);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_shared(names[i]);
	memset(longest, 'n', SPOKE_LEASE_NAME_MAX);
	longest[SPOKE_LEASE_NAME_MAX] = '\0';
	assert_shared(longest);
}

/* --- row 20: a key that is no lock */

TEST(lease_20_key_of_another_type_is_refused_with_its_text)
{
	struct asked *once;
	struct asked *waiter;

	assert_string_equal(stranger("SET", NAME, "mine"), "OK");
	redisrig_open_direct(TTL_NS);
	assert_string_equal(stranger("CONFIG", "RESETSTAT"), "OK");
	once = redisrig_ask(NAME, 0);
	waiter = redisrig_ask(NAME, SPOKE_LEASE_FOREVER);
	assert_int_equal(redisrig_answer(once), SPOKE_ESTORE);
	assert_int_equal(redisrig_answer(waiter), SPOKE_ESTORE);
	assert_non_null(strstr(once->text, "WRONGTYPE"));
	assert_non_null(strstr(waiter->text, "WRONGTYPE"));
	assert_true(redisrig_scripts() <= 2);
	assert_string_equal(stranger("GET", NAME), "mine");
	redisrig_settle();
}

/*
 * --- leases whose Redis is killed or frozen, and whose connections lose, hold back or cut
 * commands and replies at chosen places. Rows 4 to 9 of the leases in FAULTS.md
 */

#define ATTEMPTS 8 /* of a test whose assertion needs a machine that is not late */
/* --- rows 4 to 6: the server is killed or frozen */

/* Kills the server and restarts it empty. Returns false if that took so long that the lease may
 * have expired before its renewal. */
static bool restart_in_time(const struct asked *asked)
{
	uint64_t until_ns = rig_now() + redisrig_left(asked) / 3;

	redisserver_kill(&redis);
	redisserver_revive(&redis);
	redisserver_wait(&redis);
	return rig_now() < until_ns;
}

TEST(lease_4_server_that_comes_back_empty_has_lost_it)
{
	bool counts = false;

	redisrig_open_direct(3 * SECOND);
	for (int i = 0; i < ATTEMPTS && !counts; i++) {
		struct asked *asked = redisrig_hold(NAME);
		enum spoke_lease_loss why;

		counts = restart_in_time(asked);
		why = redisrig_loss(asked);
		if (counts)
			assert_int_equal(why, SPOKE_LEASE_TAKEN);
		redisrig_settle();
		assert_int_equal(stranger_number("EXISTS", NAME), 0);
	}
	assert_true(counts);
}

TEST(lease_5_lease_of_a_dead_server_ends_with_its_validity)
{
	bool counts = false;

	for (int i = 0; i < ATTEMPTS && !counts; i++) {
		struct asked *asked;
		uint64_t end_ns;

		redisserver_rouse(&redis);
		redisrig_open_direct(600 * MS);
		asked = redisrig_hold(NAME);
		redisserver_kill(&redis);
		end_ns = rig_now() + redisrig_left(asked);
		assert_int_equal(redisrig_loss(asked), SPOKE_LEASE_EXPIRED);
		assert_true(asked->lost_ns + MS >= end_ns);
		counts = asked->lost_ns < end_ns + 20 * MS;
		redisrig_free();
	}
	assert_true(counts);
}

/* The server is frozen until it owes a renewal, which is tried at a new connection. */
TEST(lease_6_lease_survives_a_server_frozen_for_half_its_time)
{
	bool counts = false;

	for (int i = 0; i < ATTEMPTS && !counts; i++) {
		uint64_t connects;
		struct asked *asked;
		uint64_t until_ns;

		redisrig_open_direct(2 * SECOND);
		asked = redisrig_hold(NAME);
		connects = redisrig.faulty.calls[SPOKEI_FAULTS_CONNECT];
		redisserver_freeze(&redis);
		until_ns = rig_now() + SECOND;
		redisrig_until(rig_now() >= until_ns);
		redisserver_thaw(&redis);
		counts = redisrig_left(asked) > 300 * MS;
		redisrig_until(!counts || asked->lost || redisrig_left(asked) > SECOND);
		if (counts) {
			assert_int_equal(asked->lost, 0);
			assert_true(redisrig.faulty.calls[SPOKEI_FAULTS_CONNECT] > connects);
			redisrig_until_renewed(asked);
			assert_int_equal(redisrig_release(asked), SPOKE_OK);
		}
		redisrig_free();
	}
	assert_true(counts);
}

/* --- rows 8 and 9: an answer is lost */

/* Loses the first command about the name. */
static struct asked *ask_into(enum redisrelay_trap trap, uint64_t wait_ns)
{
	struct asked *asked;

	redisrig_open_ttl(LONG_NS);
	redisrelay_set(trap, NAME);
	asked = redisrig_ask(NAME, wait_ns);
	redisrig_until(redisrelay_has_sprung());
	return asked;
}

static void assert_held_once(struct asked *asked)
{
	assert_int_equal(redisrig_answer(asked), SPOKE_OK);
	assert_string_equal(stranger("HVALS", NAME), "[1]");
	assert_int_equal(asked->fence, 1);
	assert_true(stranger_number("PTTL", NAME) > 0);
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
	assert_int_equal(stranger_number("EXISTS", NAME), 0);
}

TEST(lease_8_acquire_whose_reply_is_lost_is_counted_once)
{
	assert_held_once(ask_into(REDISRELAY_CUT_AFTER, SPOKE_LEASE_FOREVER));
}

TEST(lease_8_acquire_that_is_lost_is_asked_again)
{
	assert_held_once(ask_into(REDISRELAY_CUT_BEFORE, SPOKE_LEASE_FOREVER));
}

TEST(lease_8_single_try_with_a_lost_reply_leaves_no_lock)
{
	if (redisrig_answer(ask_into(REDISRELAY_CUT_AFTER, 0)) == SPOKE_OK)
		assert_int_equal(redisrig_release(&redisrig.asks[0]), SPOKE_OK);
	redisrig_until(stranger_number("EXISTS", NAME) == 0);
	redisrig_settle();
	assert_int_equal(stranger_number("EXISTS", NAME), 0);
}

TEST(lease_8_cancelled_ask_with_a_lost_reply_leaves_no_lock)
{
	struct asked *asked;

	asked = ask_into(REDISRELAY_CUT_AFTER, SPOKE_LEASE_FOREVER);
	assert_int_equal(stranger_number("EXISTS", NAME), 1);
	(void)redisrig_release(asked);
	assert_int_equal(redisrig_answer(asked), SPOKE_ECANCELED);
	assert_int_equal(stranger_number("EXISTS", NAME), 0);
}

/* The command reaches the server after the lease was asked for again, held and released. */
TEST(lease_8_late_command_of_a_dead_connection_leaves_no_lock)
{
	struct asked *asked;

	asked = ask_into(REDISRELAY_HOLD_COMMAND, SPOKE_LEASE_FOREVER);
	assert_int_equal(stranger_number("EXISTS", NAME), 0);
	redisrelay_leave_ghosts();
	assert_int_equal(redisrig_answer(asked), SPOKE_OK);
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
	redisrelay_let_go();
	redisrig_settle();
	assert_int_equal(stranger_number("EXISTS", NAME), 0);
}

static struct asked *release_into(enum redisrelay_trap trap)
{
	struct asked *asked;

	redisrig_open_ttl(LONG_NS);
	asked = redisrig_hold(NAME);
	redisrelay_set(trap, NAME);
	redisrig_begin_release(asked);
	redisrig_until(redisrelay_has_sprung());
	assert_int_equal(asked->released, 0);
	return asked;
}

TEST(lease_9_release_that_is_lost_is_asked_again)
{
	struct asked *asked;

	asked = release_into(REDISRELAY_CUT_BEFORE);
	assert_int_equal(stranger_number("EXISTS", NAME), 1);
	redisrig_until(asked->released > 0);
	assert_int_equal(asked->release_error, SPOKE_OK);
	assert_int_equal(stranger_number("EXISTS", NAME), 0);
}

/* Meanwhile a peer has taken the lock. */
TEST(lease_9_repeated_release_spares_the_next_holder)
{
	struct asked *asked;

	asked = release_into(REDISRELAY_CUT_AFTER);
	assert_int_equal(redispeer_acquire(&peer, NAME, LONG_MS), REDISPEER_HELD);
	redisrig_until(asked->released > 0);
	assert_int_equal(asked->release_error, SPOKE_OK);
	assert_true(redispeer_renew(&peer, NAME, LONG_MS));
}

/*
 * --- leases whose Redis refuses commands for a time, or for good. Row 23 of the leases in
 * FAULTS.md
 */

#define PAUSE_LEAST_NS (20 * MS) /* much shorter than any pause between tries */
#define TRIES_EXTRA 8u
/* --- row 23: refusals that pass */

/* Lets an ask wait while the server refuses. Every try is followed by a pause. */
static struct asked *ask_while_refused(const char *tried)
{
	uint64_t begun_ns = rig_now();
	uint64_t until_ns = begun_ns + 400 * MS;
	unsigned accepted = redisrelay_accepted();
	struct asked *asked;

	redisrelay_forget();
	asked = redisrig_ask(NAME, SPOKE_LEASE_FOREVER);
	redisrig_until(rig_now() >= until_ns && redisrelay_seen(tried) > 0);
	assert_int_equal(asked->told, 0);
	assert_true(redisrelay_seen("EVALSHA") + redisrelay_accepted() - accepted <=
		    TRIES_EXTRA + (rig_now() - begun_ns) / PAUSE_LEAST_NS);
	assert_true(redisrig.log_lines < 20);
	return asked;
}

static void assert_gets_it(struct asked *asked)
{
	if (redisrig_answer(asked))
		fail_msg("%s", asked->text);
	assert_string_equal(stranger("HVALS", asked->name), "[1]");
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
	assert_int_equal(stranger_number("EXISTS", asked->name), 0);
}

FIXTURE(redisrig_set_up, redisrig_tear_down);

TEST(lease_23_forgotten_scripts_are_loaded_again)
{
	struct asked *asked;

	redisrig_open_ttl(TTL_NS);
	asked = redisrig_hold(NAME);
	assert_string_equal(stranger("SCRIPT", "FLUSH", "SYNC"), "OK");
	redisrig_until_renewed(asked);
	assert_string_equal(stranger("SCRIPT", "FLUSH", "SYNC"), "OK");
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
	assert_string_equal(stranger("SCRIPT", "FLUSH", "SYNC"), "OK");
	assert_gets_it(redisrig_ask(NAME, SPOKE_LEASE_FOREVER));
}

TEST(lease_23_ask_waits_for_a_busy_script)
{
	struct redisclient busy;
	struct asked *asked;

	redisrig_open_ttl(TTL_NS);
	assert_string_equal(stranger("CONFIG", "SET", "busy-reply-threshold", "10"), "OK");
	redisclient_open(&busy, redis.path);
	redisclient_send(&busy, REDIS_WORDS("EVAL", "while true do end", "0"));
	while (strncmp(stranger("PING"), "-BUSY", 5) != 0)
		continue;
	asked = ask_while_refused("EVALSHA");
	assert_string_equal(stranger("SCRIPT", "KILL"), "OK");
	assert_gets_it(asked);
	redisclient_close(&busy);
}

TEST(lease_23_ask_waits_while_the_server_is_a_replica)
{
	struct asked *asked;

	redisrig_open_ttl(TTL_NS);
	assert_string_equal(stranger("REPLICAOF", "127.0.0.1", "1"), "OK");
	asked = ask_while_refused("EVALSHA");
	assert_string_equal(stranger("REPLICAOF", "NO", "ONE"), "OK");
	assert_gets_it(asked);
}

TEST(lease_23_ask_waits_for_memory_of_the_server)
{
	struct asked *asked;

	redisrig_open_ttl(TTL_NS);
	assert_string_equal(stranger("CONFIG", "SET", "maxmemory", "1kb"), "OK");
	asked = ask_while_refused("EVALSHA");
	assert_string_equal(stranger("CONFIG", "SET", "maxmemory", "0"), "OK");
	assert_gets_it(asked);
}

/* A server that cannot save refuses to write. */
TEST(lease_23_ask_waits_for_a_server_that_cannot_save)
{
	struct asked *asked;
	char path[128];

	redisrig_open_ttl(TTL_NS);
	(void)snprintf(path, sizeof(path), "%s/dump.rdb", redis.folder);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_string_equal(stranger("CONFIG", "SET", "save", "3600 1"), "OK");
	(void)stranger("BGSAVE");
	while (!strstr(stranger("INFO", "persistence"), "rdb_last_bgsave_status:err"))
		rig_sleep(MS);
	asked = ask_while_refused("EVALSHA");
	assert_string_equal(stranger("CONFIG", "SET", "save", ""), "OK");
	assert_gets_it(asked);
	assert_int_equal(remove(path), 0);
}

TEST(lease_23_ask_waits_while_the_server_loads)
{
	struct redisserver loader;
	struct asked *asked;
	char url[128];

	redisserver_make(&loader, 0, "");
	stranger_goes_to(loader.path);
	assert_string_equal(stranger("CONFIG", "SET", "rdbcompression", "no"), "OK");
	assert_string_equal(stranger("DEBUG", "POPULATE", "40", "key", "2000"), "OK");
	assert_string_equal(stranger("SAVE"), "OK");
	redisserver_kill(&loader);
	redisserver_add(&loader,
			"key-load-delay 20000\nloading-process-events-interval-bytes 1024\n");
	redisserver_revive(&loader);
	redisserver_wait(&loader);
	(void)snprintf(url, sizeof(url), "redis+unix://%s", loader.path);
	assert_memory_equal(stranger("PING"), "-LOADING", 8);
	redisrig_open(&(struct spoke_leases_options){ .store = url, .ttl_ns = TTL_NS });
	asked = redisrig_ask(NAME, SPOKE_LEASE_FOREVER);
	assert_int_equal(redisrig_answer(asked), SPOKE_OK);
	assert_string_equal(stranger("HVALS", NAME), "[1]");
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
	assert_true(redisrig.log_lines < 20);
	redisserver_unmake(&loader);
	stranger_goes_to(redis.path);
}

/* --- row 23: users and passwords */

TEST(lease_23_wrong_password_is_retried_with_pauses)
{
	struct asked *asked;

	assert_string_equal(stranger("CONFIG", "SET", "requirepass", "open-sesame"), "OK");
	redisrig_open(&(struct spoke_leases_options){ .password = "open-barley" });
	asked = ask_while_refused("AUTH");
	assert_true(redisrig_logged("WRONGPASS") > 0);
	assert_int_equal(redisrig_logged("open-barley"), 0);
	assert_string_equal(stranger("CONFIG", "SET", "requirepass", "open-barley"), "OK");
	assert_gets_it(asked);
	assert_string_equal(stranger("CONFIG", "SET", "requirepass", ""), "OK");
}

TEST(lease_23_missing_password_is_logged)
{
	struct asked *asked;

	assert_string_equal(stranger("CONFIG", "SET", "requirepass", "open-sesame"), "OK");
	redisrig_open(&(struct spoke_leases_options){ .ttl_ns = TTL_NS });
	asked = ask_while_refused("*");
	assert_true(redisrig_logged("NOAUTH") > 0);
	assert_string_equal(stranger("CONFIG", "SET", "requirepass", ""), "OK");
	assert_gets_it(asked);
}

/* The rights that cluster/LEASES.md names are enough. */
TEST(lease_23_user_with_few_rights_holds_leases)
{
	struct asked *asked;
	struct asked *waiter;

	assert_string_equal(stranger("ACL", "SETUSER", "keeper", "on", ">secret", "resetkeys", "~*",
				     "resetchannels", "&redisson_lock__channel:*", "-@all", "+ping",
				     "+role", "+script|load", "+evalsha", "+subscribe",
				     "+unsubscribe", "+publish", "+hexists", "+hset", "+hlen",
				     "+hgetall", "+exists", "+incr", "+get", "+del", "+type",
				     "+pexpire", "+pttl"),
			    "OK");
	redisrig_open(&(struct spoke_leases_options){
		.user = "keeper", .password = "secret", .ttl_ns = TTL_NS });
	asked = redisrig_hold(NAME);
	waiter = redisrig_ask(NAME, SPOKE_LEASE_FOREVER);
	redisrig_until_renewed(asked);
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
	assert_int_equal(redisrig_answer(waiter), SPOKE_OK);
	assert_int_equal(redisrig_release(waiter), SPOKE_OK);
	assert_true(redisrig.log_lines < 4);
	assert_int_equal(stranger_number("ACL", "DELUSER", "keeper"), 1);
}

TEST(lease_23_user_without_rights_is_told_why)
{
	struct asked *asked;

	assert_string_equal(stranger("ACL", "SETUSER", "reader", "on", ">secret", "~mine:*",
				     "~redisson_lock_*:{mine:*", "&*", "+@all"),
			    "OK");
	redisrig_open(&(struct spoke_leases_options){
		.user = "reader", .password = "secret", .ttl_ns = TTL_NS });
	asked = redisrig_ask(NAME, SPOKE_LEASE_FOREVER);
	assert_int_equal(redisrig_answer(asked), SPOKE_ESTORE);
	assert_non_null(strstr(asked->text, "NOPERM"));
	assert_gets_it(redisrig_ask("mine:" NAME, SPOKE_LEASE_FOREVER));
	assert_int_equal(stranger_number("ACL", "DELUSER", "reader"), 1);
}

/*
 * --- leases in a cluster of Redis: a primary, its replica, and a sentinel that promotes the
 * replica when the primary is dead. Writes that the replica does not have are lost then. Row 22
 * of the leases in FAULTS.md
 */

#define LEASES_FAILOVER_TTL_NS (5 * SECOND)

static struct redisserver primary;

static struct redisserver replica;

static struct redisserver sentinel;

/* --- the cluster */

/* Asks one server of the cluster. */
#define asked_at(server, ...) stranger_tries((server)->path, REDIS_WORDS(__VA_ARGS__))

static bool is_in_sync(const struct redisserver *server)
{
	return strstr(asked_at(server, "INFO", "replication"), "master_link_status:up") != NULL;
}

static void make_cluster(void)
{
	uint16_t port = redisserver_free_port();
	char settings[128];

	redisserver_make(&primary, port, "repl-diskless-sync-delay 0\n");
	(void)snprintf(settings, sizeof(settings),
		       "replicaof 127.0.0.1 %u\nrepl-diskless-sync-delay 0\n", (unsigned)port);
	redisserver_make(&replica, redisserver_free_port(), settings);
	redisrig_until(is_in_sync(&replica));
	redisserver_make_sentinel(&sentinel, redisserver_free_port(), port);
	redisrig_until(strstr(asked_at(&sentinel, "SENTINEL", "replicas", "main"),
			      "master-link-status ok"));
}

/* Leases that follow the sentinel. */
static void open_by_sentinel(void)
{
	char url[64];

	(void)snprintf(url, sizeof(url), "sentinel://127.0.0.1:%u/main", (unsigned)sentinel.port);
	redisrig_open(
		&(struct spoke_leases_options){ .store = url, .ttl_ns = LEASES_FAILOVER_TTL_NS });
}

/* Freezes the replica, and cuts its connection, so that nothing waits for it in a socket. */
static void cut_off_replica(void)
{
	redisserver_freeze(&replica);
	assert_string_equal(asked_at(&primary, "CLIENT", "KILL", "TYPE", "replica"), "1");
}

/* Kills the primary, and promotes the replica, which lacks all that was written since its cut. */
static void fail_over(void)
{
	redisserver_kill(&primary);
	redisserver_thaw(&replica);
	redisserver_promote(&sentinel, &replica);
}

/* Returns the fence number that was given last under the name, at a server. */
static int64_t last_fence(const struct redisserver *server)
{
	char key[REDISPEER_NAME];
	const char *text;

	redispeer_token(NAME, key);
	text = asked_at(server, "GET", key);
	return strcmp(text, "(nil)") == 0 ? 0 : strtoll(text, NULL, 10);
}

static bool is_free(const struct redisserver *server)
{
	return strcmp(asked_at(server, "EXISTS", NAME), "0") == 0;
}

/* --- rows */

static int leases_failover_tear_down(void **state)
{
	int error = redisrig_tear_down(state);

	redisserver_unmake(&sentinel);
	redisserver_unmake(&replica);
	redisserver_unmake(&primary);
	return error;
}

FIXTURE(redisrig_set_up, leases_failover_tear_down);

/* What Redis loses: a lease is granted twice, with the same fence number. */
TEST(lease_22_failover_grants_it_twice)
{
	struct spoke_leases *leases;
	struct asked *first;
	struct asked *second;
	char url[64];

	make_cluster();
	open_by_sentinel();
	leases = redisrig.leases;
	assert_int_equal(redisrig_release(redisrig_hold(NAME)), SPOKE_OK);
	redisrig_until(last_fence(&replica) == 1 && is_free(&replica));
	(void)snprintf(url, sizeof(url), "redis://127.0.0.1:%u", (unsigned)primary.port);
	redisrig_open(&(struct spoke_leases_options){ .store = url, .ttl_ns = LONG_NS });
	cut_off_replica();
	first = redisrig_hold(NAME);
	fail_over();
	second = redisrig_ask_at(leases, NAME,
				 &(struct spoke_lease_options){ .wait_ns = SPOKE_LEASE_FOREVER,
								.ttl_ns = LONG_NS });
	assert_int_equal(redisrig_answer(second), SPOKE_OK);
	assert_true(redisrig_left(first) > 0);
	assert_true(redisrig_left(second) > 0);
	assert_int_equal(second->fence, first->fence);
	assert_int_equal(redisrig_release(second), SPOKE_OK);
	spoke_leases_free(leases);
}
