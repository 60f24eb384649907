/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases whose Redis is killed or frozen, and whose connections lose, hold back or cut commands,
 * replies and messages at chosen places. Rows 4 to 9 and 11 of the leases in FAULTS.md.
 */
#include "tests/integration/redisrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define NAME "reports"
#define OTHER "others"
#define ATTEMPTS 8 /* of a test whose assertion needs a machine that is not late */

static struct redispeer peer;

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

NEEDS(redisserver_absent);
GROUP(redisrig_set_up_all, redisrig_tear_down_all);

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

TEST(lease_5_asks_end_at_their_time_without_a_server)
{
	const uint64_t wait_ns = 300 * MS;
	struct asked *waiter;
	struct asked *once;
	struct asked *cancelled;
	uint64_t begun_ns;

	redisrig_open_direct(LONG_NS);
	redisserver_kill(&redis);
	begun_ns = rig_now();
	waiter = redisrig_ask(NAME, wait_ns);
	once = redisrig_ask(NAME, 0);
	cancelled = redisrig_ask(NAME, SPOKE_LEASE_FOREVER);
	assert_int_equal(redisrig_answer(once), SPOKE_EUNAVAILABLE);
	assert_int_equal(redisrig_answer(waiter), SPOKE_ETIMEOUT);
	assert_true(waiter->told_ns - begun_ns >= wait_ns);
	redisrig_begin_release(cancelled);
	assert_int_equal(redisrig_answer(cancelled), SPOKE_ECANCELED);
	redisserver_rouse(&redis);
	redisrig_settle();
	redisrig_until(cancelled->released > 0);
	assert_int_equal(stranger_number("EXISTS", NAME), 0);
}

TEST(lease_5_waiter_gets_it_when_the_server_is_back)
{
	struct asked *waiter;

	redisrig_open_direct(LONG_NS);
	redisserver_kill(&redis);
	waiter = redisrig_ask(NAME, SPOKE_LEASE_FOREVER);
	redisrig_turn();
	redisserver_rouse(&redis);
	assert_int_equal(redisrig_answer(waiter), SPOKE_OK);
	assert_int_equal(redisrig_release(waiter), SPOKE_OK);
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

/* --- row 7: a grant that is told too late */

/* Asks, and stops before the engine sees the reply. */
static struct asked *ask_and_hold_reply(uint64_t ttl_ns, uint64_t wait_ns)
{
	struct asked *asked;

	redisrig_open_ttl(ttl_ns);
	assert_string_equal(stranger("CONFIG", "RESETSTAT"), "OK");
	redisrelay_set(REDISRELAY_HOLD_REPLY, NAME);
	asked = redisrig_ask(NAME, wait_ns);
	redisrig_until(redisrelay_has_sprung());
	while (!redisrelay_holds())
		redisrelay_pump();
	assert_int_equal(asked->told, 0);
	assert_int_equal(redisrig_scripts(), 1);
	return asked;
}

/* The engine is held up while the reply lies in the socket. */
TEST(lease_7_grant_read_after_its_validity_is_asked_again)
{
	struct asked *asked;

	asked = ask_and_hold_reply(300 * MS, SPOKE_LEASE_FOREVER);
	redisrelay_let_go();
	rig_sleep(300 * MS);
	assert_int_equal(redisrig_answer(asked), SPOKE_OK);
	assert_true(redisrig_scripts() > 1);
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
}

/* The machine sleeps until shortly before the lease would have expired in the store, which does not
 * sleep in this test. */
TEST(lease_7_grant_read_after_its_validity_is_released)
{
	struct asked *asked;

	asked = ask_and_hold_reply(LONG_NS, 0);
	redisrig.boot_ahead_ns += LONG_NS;
	redisrelay_let_go();
	assert_true(redisrig_answer(asked) != SPOKE_OK);
	redisrig_until(stranger_number("EXISTS", NAME) == 0);
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

	redisrelay_shut(false);
	asked = release_into(REDISRELAY_CUT_AFTER);
	assert_int_equal(redispeer_acquire(&peer, NAME, LONG_MS), REDISPEER_HELD);
	redisrig_until(asked->released > 0);
	assert_int_equal(asked->release_error, SPOKE_OK);
	assert_true(redispeer_renew(&peer, NAME, LONG_MS));
}

/* --- row 11: a message is lost */

static struct asked *wait_for_peer(unsigned ttl_ms)
{
	struct asked *asked;

	assert_int_equal(redispeer_acquire(&peer, NAME, ttl_ms), REDISPEER_HELD);
	asked = redisrig_ask(NAME, SPOKE_LEASE_FOREVER);
	return asked;
}

TEST(lease_11_waiter_that_missed_a_message_tries_again)
{
	struct asked *asked;

	redisrig_open_ttl(LONG_NS);
	asked = wait_for_peer(LONG_MS);
	redisrig_until_waiting(NAME);
	redisrelay_shut(true);
	redisrelay_cut_ears();
	while (!strstr(stranger("PUBSUB", "CHANNELS"), "[]"))
		redisrelay_pump();
	assert_int_equal(redispeer_release(&peer, NAME), 1);
	redisrelay_shut(false);
	assert_int_equal(redisrig_answer(asked), SPOKE_OK);
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
	redisrig_until(strstr(stranger("PUBSUB", "CHANNELS"), "[]"));
}

TEST(lease_11_waiter_that_hears_nothing_tries_when_it_expires)
{
	struct asked *asked;

	redisrig_open_ttl(LONG_NS);
	redisrelay_set(REDISRELAY_HOLD_COMMAND, "SUBSCRIBE");
	asked = wait_for_peer(500);
	assert_int_equal(redisrig_answer(asked), SPOKE_OK);
	assert_true(redisrelay_has_sprung());
	assert_false(redispeer_renew(&peer, NAME, 500));
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
}

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
