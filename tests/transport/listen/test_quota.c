/* SPDX-License-Identifier: Apache-2.0 */
/* The quota: connections per peer, and the limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/virtual/faults.h"
#include "transport/listen/quota.h"

#include <spoke/host.h>

#include <errno.h>
#include <stdio.h>

static struct spoke_address parse(const char *text)
{
	const struct spoke_env *env = spoke_host_env();
	struct spoke_address address;

	assert_int_equal(env->net->parse(env->ctx, text, &address), 0);
	return address;
}

static int enter(struct spokei_quota *quota, const char *text, bool *ret_of_peer)
{
	struct spoke_address address = parse(text);

	return spokei_quota_enter(quota, &address, ret_of_peer);
}

static void leave(struct spokei_quota *quota, const char *text)
{
	struct spoke_address address = parse(text);

	spokei_quota_leave(quota, &address);
}

static void quota_counts_machines_not_ports(void **state)
{
	static const struct {
		const char *one;
		const char *other;
		bool same;
	} cases[] = {
		{ "10.0.0.1:5", "10.0.0.1:6", true },
		{ "10.0.0.1:5", "10.0.0.2:5", false },
		{ "10.0.0.1:5", "10.0.0.11:5", false },
		{ "[::ffff:10.0.0.1]:5", "10.0.0.1:7", true },
		{ "[::ffff:10.0.0.1]:5", "10.0.0.2:7", false },
		{ "[::ffff:0:10]:5", "[::10]:5", false },
		{ "[2001:db8::1]:5", "[2001:db8::1]:6", true },
		{ "[2001:db8::1]:5", "[2001:db8::2]:5", false },
		{ "unix:/run/x", "unix:/run/x", false },
		{ "unix:@1.2.3.4:5", "unix:@1.2.3.4:5", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spokei_quota quota;
		bool of_peer = true;
		int error;

		spokei_quota_init(&quota, spoke_host_env(), 0, 1);
		assert_int_equal(enter(&quota, cases[i].one, &of_peer), SPOKE_OK);
		error = enter(&quota, cases[i].other, &of_peer);
		assert_int_equal(error, cases[i].same ? SPOKE_ELIMIT : SPOKE_OK);
		assert_int_equal(of_peer, cases[i].same);
		leave(&quota, cases[i].one);
		if (error == SPOKE_OK)
			leave(&quota, cases[i].other);
		spokei_quota_fini(&quota);
	}
}

static void quota_distinguishes_total_limit_from_peer_limit(void **state)
{
	struct spokei_quota quota;
	bool of_peer = true;

	(void)state;
	spokei_quota_init(&quota, spoke_host_env(), 2, 1);
	assert_int_equal(enter(&quota, "10.0.0.1:5", &of_peer), SPOKE_OK);
	assert_int_equal(enter(&quota, "unix:/run/x", &of_peer), SPOKE_OK);
	of_peer = true;
	assert_int_equal(enter(&quota, "10.0.0.1:6", &of_peer), SPOKE_ELIMIT);
	assert_false(of_peer);
	leave(&quota, "unix:/run/x");
	assert_int_equal(enter(&quota, "10.0.0.1:6", &of_peer), SPOKE_ELIMIT);
	assert_true(of_peer);
	leave(&quota, "10.0.0.1:5");
	assert_int_equal(enter(&quota, "10.0.0.1:6", &of_peer), SPOKE_OK);
	leave(&quota, "10.0.0.1:6");
	spokei_quota_fini(&quota);
}

static void quota_has_default_limits(void **state)
{
	struct spokei_quota quota;

	(void)state;
	spokei_quota_init(&quota, spoke_host_env(), 0, 0);
	assert_int_equal(quota.max, 10000);
	assert_int_equal(quota.per_peer_max, 1000);
	spokei_quota_fini(&quota);
}

static void peers_that_left_use_no_memory(void **state)
{
	struct spokei_faults faulty;
	struct spokei_quota quota;
	char text[32];
	bool of_peer;
	size_t blocks;

	(void)state;
	spokei_faults_init(&faulty, spoke_host_env());
	spokei_quota_init(&quota, &faulty.env, 0, 0);
	assert_int_equal(enter(&quota, "10.9.9.9:1", &of_peer), SPOKE_OK);
	blocks = faulty.blocks;
	for (unsigned i = 0; i < 5000; i++) {
		(void)snprintf(text, sizeof(text), "10.0.%u.%u:80", i / 256, i % 256);
		assert_int_equal(enter(&quota, text, &of_peer), SPOKE_OK);
		leave(&quota, text);
	}
	assert_int_equal(faulty.blocks, blocks);
	leave(&quota, "10.9.9.9:1");
	spokei_quota_fini(&quota);
	assert_int_equal(faulty.blocks, 0);
}

static void quota_counts_nothing_without_memory(void **state)
{
	struct spokei_faults faulty;
	struct spokei_quota quota;
	bool of_peer;

	(void)state;
	spokei_faults_init(&faulty, spoke_host_env());
	spokei_quota_init(&quota, &faulty.env, 0, 0);
	for (uint64_t nth = 1; nth <= 2; nth++) {
		spokei_faults_fail(&faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		assert_int_equal(enter(&quota, "10.0.0.1:1", &of_peer), SPOKE_ENOMEM);
		assert_int_equal(quota.count, 0);
		assert_int_equal(faulty.blocks, 0);
	}
	spokei_quota_fini(&quota);
}

static void seat_counts_out_its_machine(void **state)
{
	struct spoke_address one = parse("10.0.0.1:5");
	struct spoke_address path = parse("unix:/run/x");
	struct spokei_quota quota;
	bool of_peer;
	void *seat;

	(void)state;
	spokei_quota_init(&quota, spoke_host_env(), 0, 2);
	assert_int_equal(enter(&quota, "10.0.0.1:5", &of_peer), SPOKE_OK);
	assert_int_equal(enter(&quota, "10.0.0.1:6", &of_peer), SPOKE_OK);
	assert_int_equal(enter(&quota, "unix:/run/x", &of_peer), SPOKE_OK);
	seat = spokei_quota_seat(&quota, &one);
	assert_non_null(seat);
	assert_null(spokei_quota_seat(&quota, &path));
	spokei_quota_leave_seat(&quota, seat);
	assert_int_equal(enter(&quota, "10.0.0.1:7", &of_peer), SPOKE_OK);
	assert_int_equal(enter(&quota, "10.0.0.1:8", &of_peer), SPOKE_ELIMIT);
	spokei_quota_leave_seat(&quota, NULL);
	spokei_quota_leave_seat(&quota, seat);
	spokei_quota_leave_seat(&quota, seat);
	assert_null(spokei_quota_seat(&quota, &one));
	spokei_quota_fini(&quota);
}

static void connection_moves_to_another_address(void **state)
{
	struct spoke_address proxy = parse("10.0.0.1:5");
	struct spoke_address client = parse("1.2.3.4:1");
	struct spokei_quota quota;
	bool of_peer;
	void *seat = NULL;

	(void)state;
	spokei_quota_init(&quota, spoke_host_env(), 2, 1);
	assert_int_equal(enter(&quota, "10.0.0.1:5", &of_peer), SPOKE_OK);
	assert_int_equal(spokei_quota_move(&quota, &proxy, &client, &seat), SPOKE_OK);
	assert_ptr_equal(seat, spokei_quota_seat(&quota, &client));
	assert_null(spokei_quota_seat(&quota, &proxy));
	/* The total is full, which does not matter, but the client's address is, too. */
	assert_int_equal(enter(&quota, "10.0.0.1:6", &of_peer), SPOKE_OK);
	assert_int_equal(spokei_quota_move(&quota, &proxy, &client, &seat), SPOKE_ELIMIT);
	assert_non_null(spokei_quota_seat(&quota, &proxy));
	assert_int_equal(quota.count, 2);
	leave(&quota, "10.0.0.1:6");
	spokei_quota_leave_seat(&quota, seat);
	spokei_quota_fini(&quota);
}

static void connection_at_the_limit_moves_to_its_own_address(void **state)
{
	struct spoke_address peer = parse("[::ffff:10.0.0.1]:5");
	struct spoke_address path = parse("unix:/run/x");
	struct spoke_address client = parse("10.0.0.1:1");
	struct spokei_quota quota;
	bool of_peer;
	void *seat = NULL;

	(void)state;
	spokei_quota_init(&quota, spoke_host_env(), 0, 1);
	assert_int_equal(enter(&quota, "[::ffff:10.0.0.1]:5", &of_peer), SPOKE_OK);
	assert_int_equal(spokei_quota_move(&quota, &peer, &client, &seat), SPOKE_OK);
	assert_non_null(seat);
	assert_ptr_equal(seat, spokei_quota_seat(&quota, &peer));
	assert_int_equal(quota.count, 1);
	spokei_quota_leave_seat(&quota, seat);
	/* A peer without a machine has no seat, and an unknown one has none yet. */
	assert_int_equal(enter(&quota, "unix:/run/x", &of_peer), SPOKE_OK);
	assert_int_equal(spokei_quota_move(&quota, &path, &client, &seat), SPOKE_OK);
	assert_ptr_equal(seat, spokei_quota_seat(&quota, &client));
	assert_non_null(seat);
	spokei_quota_leave_seat(&quota, seat);
	spokei_quota_fini(&quota);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quota_counts_machines_not_ports),
		cmocka_unit_test(quota_distinguishes_total_limit_from_peer_limit),
		cmocka_unit_test(quota_has_default_limits),
		cmocka_unit_test(peers_that_left_use_no_memory),
		cmocka_unit_test(quota_counts_nothing_without_memory),
		cmocka_unit_test(seat_counts_out_its_machine),
		cmocka_unit_test(connection_moves_to_another_address),
		cmocka_unit_test(connection_at_the_limit_moves_to_its_own_address),
	};

	return cmocka_run_group_tests_name("quota", tests, NULL, NULL);
}
