/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases at a real Redis, shared with a peer that locks as Redisson does: both exclude and wake
 * each other, whatever the name. Rows 13 to 20 of the leases in FAULTS.md.
 */
#include "tests/integration/redisrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define NAME "reports"
#define TTL_NS (2 * SECOND)

static struct redispeer peer;

/* --- rows 13 and 14: a peer that releases what it does not hold */

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
