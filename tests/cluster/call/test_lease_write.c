/* SPDX-License-Identifier: Apache-2.0 */
/* A call under a lease is written only as long as the lease is held, however late that is noticed.
 */
#include "tests/cluster/call/leasedrig.h"
#include "tests/support/test.h"

static const struct spoke_call_options plain;

/* --- before the write */

FIXTURE(leasedrig_set_up, leasedrig_tear_down);

TEST(stall_after_the_call_keeps_it_from_being_written)
{
	const struct leasedrig_call *made;
	const struct leasedrig_call *other;

	leasedrig_begin();
	made = leasedrig_stall(10, &plain, SECOND);
	leasedrig_never_came(made, 0);
	other = leasedrig_call_without(10);
	leasedrig_read();
	assert_int_equal(rig.came, 1);
	assert_int_equal(other->ends, 0);
}

TEST(shorter_stall_does_no_harm)
{
	const struct leasedrig_call *made;

	leasedrig_begin();
	made = leasedrig_stall(10, &plain, 900 * MS);
	leasedrig_read();
	assert_int_equal(rig.came, 1);
	leasedrig_answer();
	assert_int_equal(made->error, SPOKE_OK);
}

static void stall_in_done(struct leasedrig_call *made)
{
	(void)made;
	rig.in_done = NULL;
	(void)leasedrig_call(10);
	spokei_world_hold(&rig.process, SECOND);
}

TEST(call_made_in_a_callback_that_stalls_is_not_written)
{
	leasedrig_begin();
	(void)leasedrig_call_without(10);
	leasedrig_read();
	rig.in_done = stall_in_done;
	leasedrig_answer();
	leasedrig_pass(2 * SECOND);
	assert_int_equal(rig.begun, 2);
	leasedrig_never_came(&rig.calls[1], 1);
}

TEST(long_call_is_not_written_at_once)
{
	const struct leasedrig_call *made;

	leasedrig_begin();
	made = leasedrig_stall(300 * KIB, &plain, SECOND);
	leasedrig_never_came(made, 0);
}

TEST(long_call_is_written_whole)
{
	const struct leasedrig_call *made;

	leasedrig_begin();
	made = leasedrig_call(300 * KIB);
	leasedrig_read();
	assert_int_equal(rig.came, 1);
	leasedrig_answer();
	assert_int_equal(made->error, SPOKE_OK);
}

TEST(one_way_call_ends_when_written)
{
	const struct spoke_call_options options = { .one_way = true };
	struct spoke_call_options leased = options;
	const struct leasedrig_call *made;

	leasedrig_begin();
	leased.lease = rig.lease;
	made = leasedrig_call_with(10, &leased);
	leasedrig_pass(10 * MS);
	assert_int_equal(made->error, SPOKE_OK);
	assert_true(made->written);
	made = leasedrig_stall(10, &options, SECOND);
	leasedrig_never_came(made, 1);
}

TEST(call_to_a_connection_that_is_not_open_ends_with_its_lease)
{
	const struct leasedrig_call *made;

	rig.lease = leasing_grant("reports", 100 * MS);
	leasedrig_consume("dubbo", SPOKE_SERIALIZATION_MSGPACK);
	made = leasedrig_call(10);
	spokei_world_hold(&rig.process, 200 * MS);
	leasedrig_accept("dubbo");
	leasedrig_pass(SECOND);
	leasedrig_never_came(made, 0);
}

TEST(call_waits_for_a_connection_as_long_as_its_lease)
{
	const struct leasedrig_call *made;

	rig.lease = leasing_grant("reports", SECOND);
	leasedrig_consume("dubbo", SPOKE_SERIALIZATION_MSGPACK);
	made = leasedrig_call(10);
	leasedrig_accept("dubbo");
	leasedrig_read();
	assert_int_equal(rig.came, 1);
	leasedrig_answer();
	assert_int_equal(made->error, SPOKE_OK);
}

TEST(call_behind_a_blocked_peer_ends_with_its_lease)
{
	const struct leasedrig_call *made;
	const struct leasedrig_call *other;

	leasedrig_begin();
	(void)leasedrig_call_without(MIB);
	leasedrig_pass(10 * MS);
	made = leasedrig_call(10);
	other = leasedrig_call_without(10);
	leasedrig_pass(990 * MS - 1);
	assert_int_equal(made->ends, 0);
	leasedrig_pass(10 * MS);
	assert_int_equal(made->ends, 1);
	assert_in_range(made->took_ns, 980 * MS, 1002 * MS);
	leasedrig_never_came(made, 2);
	assert_int_equal(other->ends, 0);
}

TEST(call_behind_a_blocked_peer_is_written_in_time)
{
	const struct leasedrig_call *made;

	leasedrig_begin();
	(void)leasedrig_call_without(MIB);
	leasedrig_pass(10 * MS);
	made = leasedrig_call(10);
	leasedrig_pass(10 * MS);
	leasedrig_read();
	assert_int_equal(rig.came, 2);
	leasedrig_answer();
	assert_int_equal(made->error, SPOKE_OK);
}

/* --- the end of the lease */

TEST(release_takes_back_a_call_of_the_same_turn)
{
	const struct leasedrig_call *made;

	leasedrig_begin();
	made = leasedrig_call(10);
	leasing_release(rig.lease);
	assert_int_equal(made->ends, 0); /* not inside of the release */
	leasedrig_pass(10 * MS);
	leasedrig_never_came(made, 0);
}

TEST(release_takes_back_calls_behind_a_blocked_peer)
{
	const struct leasedrig_call *made[3];

	leasedrig_begin();
	(void)leasedrig_call_without(MIB);
	leasedrig_pass(10 * MS);
	for (unsigned i = 0; i < 3; i++)
		made[i] = leasedrig_call(10);
	leasedrig_pass(10 * MS);
	leasing_release(rig.lease);
	leasedrig_pass(10 * MS);
	for (unsigned i = 0; i < 3; i++)
		leasedrig_never_came(made[i], 1);
}

TEST(written_call_is_answered_after_the_release)
{
	const struct leasedrig_call *made;

	leasedrig_begin();
	made = leasedrig_call(10);
	leasedrig_read();
	leasing_release(rig.lease);
	leasedrig_pass(10 * MS);
	assert_int_equal(made->ends, 0);
	leasedrig_answer();
	assert_int_equal(made->error, SPOKE_OK);
}

TEST(timeout_is_cut_to_the_rest_of_the_lease)
{
	const struct leasedrig_call *made;

	leasedrig_begin();
	leasedrig_pass(600 * MS);
	made = leasedrig_call(10);
	leasedrig_pass(10 * MS);
	leasedrig_look();
	assert_in_range(rig.timeout_ms, 380, 402);
	leasedrig_pass(SECOND);
	assert_int_equal(made->error, SPOKE_ETIMEOUT);
	assert_true(made->written);
	assert_in_range(made->took_ns, 380 * MS, 410 * MS);
}

TEST(shorter_timeout_is_kept)
{
	struct spoke_call_options options = { .timeout_ns = 100 * MS };
	const struct leasedrig_call *made;

	leasedrig_begin();
	options.lease = rig.lease;
	made = leasedrig_call_with(10, &options);
	leasedrig_pass(200 * MS);
	assert_int_equal(made->error, SPOKE_ETIMEOUT);
	assert_in_range(made->took_ns, 100 * MS, 110 * MS);
}

TEST(end_of_lease_prevails_over_the_timeout)
{
	struct spoke_call_options options = { .timeout_ns = 900 * MS };
	const struct leasedrig_call *made;

	leasedrig_begin();
	(void)leasedrig_call_without(MIB);
	leasedrig_pass(10 * MS);
	options.lease = rig.lease;
	made = leasedrig_call_with(10, &options);
	leasedrig_pass(10 * MS);
	spokei_world_hold(&rig.process, 2 * SECOND); /* both are over now */
	leasedrig_pass(3 * SECOND);
	leasedrig_never_came(made, 1);
}

TEST(cancelled_call_ends_as_cancelled)
{
	const struct leasedrig_call *made[2];

	leasedrig_begin();
	made[0] = leasedrig_call(10);
	assert_true(spoke_call_cancel(rig.consumer, made[0]->name));
	made[1] = leasedrig_call(10);
	assert_true(spoke_call_cancel(rig.consumer, made[1]->name));
	leasing_release(rig.lease);
	leasedrig_pass(10 * MS);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(made[i]->error, SPOKE_ECANCELED);
		assert_false(made[i]->written);
	}
	leasedrig_read();
	assert_int_equal(rig.came, 0);
}

TEST(leases_may_be_freed_before_their_calls)
{
	const struct leasedrig_call *made[2];

	leasedrig_begin();
	made[0] = leasedrig_call(10);
	leasedrig_read();
	made[1] = leasedrig_call(10);
	leasing_leave();
	leasedrig_pass(10 * MS);
	leasedrig_never_came(made[1], 1);
	leasedrig_answer();
	assert_int_equal(made[0]->ends, 1);
	leasing_join();
}

static void free_consumer(struct leasedrig_call *made)
{
	(void)made;
	rig.in_done = NULL;
	spoke_consumer_free(rig.consumer);
	rig.consumer = NULL;
}

TEST(callback_of_a_lost_call_may_free_the_consumer)
{
	const struct leasedrig_call *made[3];

	leasedrig_begin();
	for (unsigned i = 0; i < 3; i++)
		made[i] = leasedrig_call(10);
	rig.in_done = free_consumer;
	leasing_release(rig.lease);
	leasedrig_pass(10 * MS);
	assert_int_equal(made[0]->error, SPOKE_ELEASE);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(made[i]->ends, 1);
	assert_int_equal(rig.came, 0);
}
