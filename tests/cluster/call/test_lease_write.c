/* SPDX-License-Identifier: Apache-2.0 */
/* A call under a lease is written only as long as the lease is held, however late that is noticed.
 */
#include "tests/cluster/call/leasedrig.h"

static const struct spoke_call_options plain;

/* --- before the write */

static void stall_after_the_call_keeps_it_from_being_written(void **state)
{
	const struct rig_call *made;
	const struct rig_call *other;

	(void)state;
	rig_begin();
	made = rig_stall(10, &plain, SECOND);
	rig_never_came(made, 0);
	other = rig_call_without(10);
	rig_read();
	assert_int_equal(rig.came, 1);
	assert_int_equal(other->ends, 0);
}

static void shorter_stall_does_no_harm(void **state)
{
	const struct rig_call *made;

	(void)state;
	rig_begin();
	made = rig_stall(10, &plain, 900 * MS);
	rig_read();
	assert_int_equal(rig.came, 1);
	rig_answer();
	assert_int_equal(made->error, SPOKE_OK);
}

static void stall_in_done(struct rig_call *made)
{
	(void)made;
	rig.in_done = NULL;
	(void)rig_call(10);
	spokei_world_hold(&rig.process, SECOND);
}

static void call_made_in_a_callback_that_stalls_is_not_written(void **state)
{
	(void)state;
	rig_begin();
	(void)rig_call_without(10);
	rig_read();
	rig.in_done = stall_in_done;
	rig_answer();
	rig_pass(2 * SECOND);
	assert_int_equal(rig.begun, 2);
	rig_never_came(&rig.calls[1], 1);
}

static void long_call_is_not_written_at_once(void **state)
{
	const struct rig_call *made;

	(void)state;
	rig_begin();
	made = rig_stall(300 * KIB, &plain, SECOND);
	rig_never_came(made, 0);
}

static void long_call_is_written_whole(void **state)
{
	const struct rig_call *made;

	(void)state;
	rig_begin();
	made = rig_call(300 * KIB);
	rig_read();
	assert_int_equal(rig.came, 1);
	rig_answer();
	assert_int_equal(made->error, SPOKE_OK);
}

static void one_way_call_ends_when_written(void **state)
{
	const struct spoke_call_options options = { .one_way = true };
	struct spoke_call_options leased = options;
	const struct rig_call *made;

	(void)state;
	rig_begin();
	leased.lease = rig.lease;
	made = rig_call_with(10, &leased);
	rig_pass(10 * MS);
	assert_int_equal(made->error, SPOKE_OK);
	assert_true(made->written);
	made = rig_stall(10, &options, SECOND);
	rig_never_came(made, 1);
}

static void call_to_a_connection_that_is_not_open_ends_with_its_lease(void **state)
{
	const struct rig_call *made;

	(void)state;
	rig.lease = leasing_grant("reports", 100 * MS);
	rig_consume("dubbo", SPOKE_SERIALIZATION_MSGPACK);
	made = rig_call(10);
	spokei_world_hold(&rig.process, 200 * MS);
	rig_accept("dubbo");
	rig_pass(SECOND);
	rig_never_came(made, 0);
}

static void call_waits_for_a_connection_as_long_as_its_lease(void **state)
{
	const struct rig_call *made;

	(void)state;
	rig.lease = leasing_grant("reports", SECOND);
	rig_consume("dubbo", SPOKE_SERIALIZATION_MSGPACK);
	made = rig_call(10);
	rig_accept("dubbo");
	rig_read();
	assert_int_equal(rig.came, 1);
	rig_answer();
	assert_int_equal(made->error, SPOKE_OK);
}

static void call_behind_a_blocked_peer_ends_with_its_lease(void **state)
{
	const struct rig_call *made;
	const struct rig_call *other;

	(void)state;
	rig_begin();
	(void)rig_call_without(MIB);
	rig_pass(10 * MS);
	made = rig_call(10);
	other = rig_call_without(10);
	rig_pass(990 * MS - 1);
	assert_int_equal(made->ends, 0);
	rig_pass(10 * MS);
	assert_int_equal(made->ends, 1);
	assert_in_range(made->took_ns, 980 * MS, 1002 * MS);
	rig_never_came(made, 2);
	assert_int_equal(other->ends, 0);
}

static void call_behind_a_blocked_peer_is_written_in_time(void **state)
{
	const struct rig_call *made;

	(void)state;
	rig_begin();
	(void)rig_call_without(MIB);
	rig_pass(10 * MS);
	made = rig_call(10);
	rig_pass(10 * MS);
	rig_read();
	assert_int_equal(rig.came, 2);
	rig_answer();
	assert_int_equal(made->error, SPOKE_OK);
}

/* --- the end of the lease */

static void release_takes_back_a_call_of_the_same_turn(void **state)
{
	const struct rig_call *made;

	(void)state;
	rig_begin();
	made = rig_call(10);
	leasing_release(rig.lease);
	assert_int_equal(made->ends, 0); /* not inside of the release */
	rig_pass(10 * MS);
	rig_never_came(made, 0);
}

static void release_takes_back_calls_behind_a_blocked_peer(void **state)
{
	const struct rig_call *made[3];

	(void)state;
	rig_begin();
	(void)rig_call_without(MIB);
	rig_pass(10 * MS);
	for (unsigned i = 0; i < 3; i++)
		made[i] = rig_call(10);
	rig_pass(10 * MS);
	leasing_release(rig.lease);
	rig_pass(10 * MS);
	for (unsigned i = 0; i < 3; i++)
		rig_never_came(made[i], 1);
}

static void written_call_is_answered_after_the_release(void **state)
{
	const struct rig_call *made;

	(void)state;
	rig_begin();
	made = rig_call(10);
	rig_read();
	leasing_release(rig.lease);
	rig_pass(10 * MS);
	assert_int_equal(made->ends, 0);
	rig_answer();
	assert_int_equal(made->error, SPOKE_OK);
}

static void timeout_is_cut_to_the_rest_of_the_lease(void **state)
{
	const struct rig_call *made;

	(void)state;
	rig_begin();
	rig_pass(600 * MS);
	made = rig_call(10);
	rig_pass(10 * MS);
	rig_look();
	assert_in_range(rig.timeout_ms, 380, 402);
	rig_pass(SECOND);
	assert_int_equal(made->error, SPOKE_ETIMEOUT);
	assert_true(made->written);
	assert_in_range(made->took_ns, 380 * MS, 410 * MS);
}

static void shorter_timeout_is_kept(void **state)
{
	struct spoke_call_options options = { .timeout_ns = 100 * MS };
	const struct rig_call *made;

	(void)state;
	rig_begin();
	options.lease = rig.lease;
	made = rig_call_with(10, &options);
	rig_pass(200 * MS);
	assert_int_equal(made->error, SPOKE_ETIMEOUT);
	assert_in_range(made->took_ns, 100 * MS, 110 * MS);
}

static void end_of_lease_prevails_over_the_timeout(void **state)
{
	struct spoke_call_options options = { .timeout_ns = 900 * MS };
	const struct rig_call *made;

	(void)state;
	rig_begin();
	(void)rig_call_without(MIB);
	rig_pass(10 * MS);
	options.lease = rig.lease;
	made = rig_call_with(10, &options);
	rig_pass(10 * MS);
	spokei_world_hold(&rig.process, 2 * SECOND); /* both are over now */
	rig_pass(3 * SECOND);
	rig_never_came(made, 1);
}

static void cancelled_call_ends_as_cancelled(void **state)
{
	const struct rig_call *made[2];

	(void)state;
	rig_begin();
	made[0] = rig_call(10);
	assert_true(spoke_call_cancel(rig.consumer, made[0]->name));
	made[1] = rig_call(10);
	assert_true(spoke_call_cancel(rig.consumer, made[1]->name));
	leasing_release(rig.lease);
	rig_pass(10 * MS);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(made[i]->error, SPOKE_ECANCELED);
		assert_false(made[i]->written);
	}
	rig_read();
	assert_int_equal(rig.came, 0);
}

static void leases_may_be_freed_before_their_calls(void **state)
{
	const struct rig_call *made[2];

	(void)state;
	rig_begin();
	made[0] = rig_call(10);
	rig_read();
	made[1] = rig_call(10);
	leasing_leave();
	rig_pass(10 * MS);
	rig_never_came(made[1], 1);
	rig_answer();
	assert_int_equal(made[0]->ends, 1);
	leasing_join();
}

static void free_consumer(struct rig_call *made)
{
	(void)made;
	rig.in_done = NULL;
	spoke_consumer_free(rig.consumer);
	rig.consumer = NULL;
}

static void callback_of_a_lost_call_may_free_the_consumer(void **state)
{
	const struct rig_call *made[3];

	(void)state;
	rig_begin();
	for (unsigned i = 0; i < 3; i++)
		made[i] = rig_call(10);
	rig.in_done = free_consumer;
	leasing_release(rig.lease);
	rig_pass(10 * MS);
	assert_int_equal(made[0]->error, SPOKE_ELEASE);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(made[i]->ends, 1);
	assert_int_equal(rig.came, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)
	static const struct CMUnitTest tests[] = {
		TEST(stall_after_the_call_keeps_it_from_being_written),
		TEST(shorter_stall_does_no_harm),
		TEST(call_made_in_a_callback_that_stalls_is_not_written),
		TEST(long_call_is_not_written_at_once),
		TEST(long_call_is_written_whole),
		TEST(one_way_call_ends_when_written),
		TEST(call_to_a_connection_that_is_not_open_ends_with_its_lease),
		TEST(call_waits_for_a_connection_as_long_as_its_lease),
		TEST(call_behind_a_blocked_peer_ends_with_its_lease),
		TEST(call_behind_a_blocked_peer_is_written_in_time),
		TEST(release_takes_back_a_call_of_the_same_turn),
		TEST(release_takes_back_calls_behind_a_blocked_peer),
		TEST(written_call_is_answered_after_the_release),
		TEST(timeout_is_cut_to_the_rest_of_the_lease),
		TEST(shorter_timeout_is_kept),
		TEST(end_of_lease_prevails_over_the_timeout),
		TEST(cancelled_call_ends_as_cancelled),
		TEST(leases_may_be_freed_before_their_calls),
		TEST(callback_of_a_lost_call_may_free_the_consumer),
	};

	return cmocka_run_group_tests_name("writes under a lease", tests, NULL, NULL);
}
