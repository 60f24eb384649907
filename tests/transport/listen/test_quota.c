/* SPDX-License-Identifier: Apache-2.0 */
/* The quota: connections per peer, and the limits. */
#include "core/virtual/faults.h"
#include "tests/support/test.h"
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

static void init(struct spokei_quota *quota, const struct spoke_env *env, uint32_t max,
		 uint32_t per_peer_max)
{
	const struct spokei_quota_limits limits = { .max = max, .per_peer_max = per_peer_max };

	spokei_quota_init(quota, env, &limits);
}

static int enter(struct spokei_quota *quota, const char *text, bool *ret_of_peer)
{
	struct spoke_address address = parse(text);

	return spokei_quota_enter(quota, &address, ret_of_peer);
}

static void leave(struct spokei_quota *quota, const char *text)
{
	struct spoke_address address = parse(text);

	spokei_quota_leave(quota, spokei_quota_peer(quota, &address));
}

TEST(quota_counts_machines_not_ports)
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
		{ "[2001:db8::1]:5", "[2001:db8::2]:5", true },
		{ "[2001:db8::1]:5", "[2001:db8::ffff:ffff:ffff:ffff]:5", true },
		{ "[2001:db8::1]:5", "[2001:db8:0:1::1]:5", false },
		{ "unix:/run/x", "unix:/run/x", false },
		{ "unix:@1.2.3.4:5", "unix:@1.2.3.4:5", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spokei_quota quota;
		bool of_peer = true;
		int error;

		init(&quota, spoke_host_env(), 0, 1);
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

TEST(quota_distinguishes_total_limit_from_peer_limit)
{
	struct spokei_quota quota;
	bool of_peer = true;

	init(&quota, spoke_host_env(), 2, 1);
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

/* Networks of IPv6 have room for as many addresses as a peer likes. */
TEST(prefix_of_ipv6_tells_peers)
{
	static const struct {
		uint32_t prefix6;
		const char *other; /* than 2001:db8:1:2:3:4:5:6 */
		bool same;
	} cases[] = {
		{ 128, "[2001:db8:1:2:3:4:5:7]:5", false },
		{ 127, "[2001:db8:1:2:3:4:5:7]:5", true },
		{ 65, "[2001:db8:1:2:8003:4:5:6]:5", false },
		{ 64, "[2001:db8:1:2:8003:4:5:6]:5", true },
		{ 63, "[2001:db8:1:3:3:4:5:6]:5", true },
		{ 48, "[2001:db8:1:ffff::]:5", true },
		{ 48, "[2001:db8:2:2:3:4:5:6]:5", false },
		{ 1, "[2002::]:5", true },
		{ 1, "[::ffff:32.1.13.184]:5", false },
		{ 1, "[8001::]:5", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct spokei_quota_limits limits = { .per_peer_max = 1,
							    .prefix6 = cases[i].prefix6 };
		struct spokei_quota quota;
		bool of_peer;
		int error;

		spokei_quota_init(&quota, spoke_host_env(), &limits);
		assert_int_equal(enter(&quota, "[2001:db8:1:2:3:4:5:6]:5", &of_peer), SPOKE_OK);
		error = enter(&quota, cases[i].other, &of_peer);
		assert_int_equal(error, cases[i].same ? SPOKE_ELIMIT : SPOKE_OK);
		leave(&quota, "[2001:db8:1:2:3:4:5:6]:5");
		if (error == SPOKE_OK)
			leave(&quota, cases[i].other);
		spokei_quota_fini(&quota);
	}
}

/* IPv4 counts by the address, whatever the prefix of IPv6 is. */
TEST(prefix_of_ipv6_does_not_join_ipv4)
{
	const struct spokei_quota_limits limits = { .per_peer_max = 1, .prefix6 = 1 };
	struct spokei_quota quota;
	bool of_peer;

	spokei_quota_init(&quota, spoke_host_env(), &limits);
	assert_int_equal(enter(&quota, "10.0.0.1:5", &of_peer), SPOKE_OK);
	assert_int_equal(enter(&quota, "[::ffff:10.0.0.2]:5", &of_peer), SPOKE_OK);
	leave(&quota, "10.0.0.1:5");
	leave(&quota, "10.0.0.2:5");
	spokei_quota_fini(&quota);
}

/* A connection is counted out where it was counted in, although another prefix is in force. */
TEST(changed_prefix_leaves_seats_as_they_are)
{
	struct spokei_quota_limits limits = { .per_peer_max = 2, .prefix6 = 128 };
	struct spoke_address one = parse("[2001:db8::1]:5");
	struct spoke_address two = parse("[2001:db8::2]:5");
	struct spokei_quota quota;
	void *seats[3];
	bool of_peer;

	spokei_quota_init(&quota, spoke_host_env(), &limits);
	assert_int_equal(spokei_quota_enter(&quota, &one, &of_peer), SPOKE_OK);
	seats[0] = spokei_quota_peer(&quota, &one);
	assert_int_equal(spokei_quota_enter(&quota, &two, &of_peer), SPOKE_OK);
	seats[1] = spokei_quota_peer(&quota, &two);
	assert_ptr_not_equal(seats[0], seats[1]);
	limits.prefix6 = 64;
	spokei_quota_change(&quota, &limits);
	assert_int_equal(spokei_quota_enter(&quota, &two, &of_peer), SPOKE_OK);
	seats[2] = spokei_quota_peer(&quota, &two);
	assert_int_equal(enter(&quota, "[2001:db8::3]:5", &of_peer), SPOKE_OK);
	assert_int_equal(enter(&quota, "[2001:db8::4]:5", &of_peer), SPOKE_ELIMIT);
	for (size_t i = 0; i < 3; i++)
		spokei_quota_leave(&quota, seats[i]);
	leave(&quota, "[2001:db8::3]:5");
	spokei_quota_fini(&quota);
}

/* An owner whose connections have sent nothing; all are of one peer, which has no address. */
struct silent {
	struct spokei_quota quota;
	unsigned left;
};

static bool make_room(void *owner)
{
	struct silent *silent = owner;

	if (silent->left == 0)
		return false;
	silent->left--;
	spokei_quota_leave(&silent->quota, NULL);
	return true;
}

TEST(silent_connections_give_way_at_the_limit_of_all)
{
	const struct spokei_quota_limits limits = { .max = 3, .per_peer_max = 1 };
	const struct spokei_quota_limits lower = { .max = 2, .per_peer_max = 1 };
	struct silent silent = { .left = 2 };
	struct spokei_quota *quota = &silent.quota;
	bool of_peer;

	spokei_quota_init(quota, spoke_host_env(), &limits);
	spokei_quota_give_way(quota, make_room, &silent);
	assert_int_equal(enter(quota, "unix:/run/x", &of_peer), SPOKE_OK);
	assert_int_equal(enter(quota, "unix:/run/x", &of_peer), SPOKE_OK);
	assert_int_equal(enter(quota, "10.0.0.1:5", &of_peer), SPOKE_OK);
	assert_int_equal(silent.left, 2);
	/* Not for a peer that has its share. */
	assert_int_equal(enter(quota, "10.0.0.1:6", &of_peer), SPOKE_ELIMIT);
	assert_int_equal(silent.left, 2);
	assert_int_equal(enter(quota, "10.0.0.2:5", &of_peer), SPOKE_OK);
	assert_int_equal(silent.left, 1);
	assert_int_equal(quota->count, 3);
	leave(quota, "10.0.0.2:5");
	/* As many as a lower limit asks for. */
	assert_int_equal(enter(quota, "unix:/run/x", &of_peer), SPOKE_OK);
	silent.left = 2;
	spokei_quota_change(quota, &lower);
	assert_int_equal(enter(quota, "10.0.0.3:5", &of_peer), SPOKE_OK);
	assert_int_equal(silent.left, 0);
	assert_int_equal(enter(quota, "10.0.0.4:5", &of_peer), SPOKE_ELIMIT);
	assert_false(of_peer);
	assert_int_equal(quota->count, 2);
	leave(quota, "10.0.0.1:5");
	leave(quota, "10.0.0.3:5");
	spokei_quota_fini(quota);
}

TEST(quota_has_default_limits)
{
	struct spokei_quota quota;

	init(&quota, spoke_host_env(), 0, 0);
	assert_int_equal(quota.limits.max, 10000);
	assert_int_equal(quota.limits.per_peer_max, 1000);
	assert_int_equal(quota.limits.prefix6, 64);
	spokei_quota_fini(&quota);
}

TEST(peers_that_left_use_no_memory)
{
	struct spokei_faults faulty;
	struct spokei_quota quota;
	char text[32];
	bool of_peer;
	size_t blocks;

	spokei_faults_init(&faulty, spoke_host_env());
	init(&quota, &faulty.env, 0, 0);
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

TEST(quota_counts_nothing_without_memory)
{
	struct spokei_faults faulty;
	struct spokei_quota quota;
	bool of_peer;

	spokei_faults_init(&faulty, spoke_host_env());
	init(&quota, &faulty.env, 0, 0);
	for (uint64_t nth = 1; nth <= 2; nth++) {
		spokei_faults_fail(&faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		assert_int_equal(enter(&quota, "10.0.0.1:1", &of_peer), SPOKE_ENOMEM);
		assert_int_equal(quota.count, 0);
		assert_int_equal(faulty.blocks, 0);
	}
	spokei_quota_fini(&quota);
}

TEST(seat_counts_out_its_machine)
{
	struct spoke_address one = parse("10.0.0.1:5");
	struct spoke_address path = parse("unix:/run/x");
	struct spokei_quota quota;
	bool of_peer;
	struct spokei_quota_peer *quota_peer;

	init(&quota, spoke_host_env(), 0, 2);
	assert_int_equal(enter(&quota, "10.0.0.1:5", &of_peer), SPOKE_OK);
	assert_int_equal(enter(&quota, "10.0.0.1:6", &of_peer), SPOKE_OK);
	assert_int_equal(enter(&quota, "unix:/run/x", &of_peer), SPOKE_OK);
	quota_peer = spokei_quota_peer(&quota, &one);
	assert_non_null(quota_peer);
	assert_null(spokei_quota_peer(&quota, &path));
	spokei_quota_leave(&quota, quota_peer);
	assert_int_equal(enter(&quota, "10.0.0.1:7", &of_peer), SPOKE_OK);
	assert_int_equal(enter(&quota, "10.0.0.1:8", &of_peer), SPOKE_ELIMIT);
	spokei_quota_leave(&quota, NULL);
	spokei_quota_leave(&quota, quota_peer);
	spokei_quota_leave(&quota, quota_peer);
	assert_null(spokei_quota_peer(&quota, &one));
	spokei_quota_fini(&quota);
}

TEST(connection_moves_to_another_address)
{
	struct spoke_address proxy = parse("10.0.0.1:5");
	struct spoke_address client = parse("1.2.3.4:1");
	struct spokei_quota quota;
	bool of_peer;
	struct spokei_quota_peer *quota_peer = NULL;

	init(&quota, spoke_host_env(), 2, 1);
	assert_int_equal(enter(&quota, "10.0.0.1:5", &of_peer), SPOKE_OK);
	assert_int_equal(spokei_quota_move(&quota, spokei_quota_peer(&quota, &proxy), &client,
					   &quota_peer),
			 SPOKE_OK);
	assert_ptr_equal(quota_peer, spokei_quota_peer(&quota, &client));
	assert_null(spokei_quota_peer(&quota, &proxy));
	/* The total is full, which does not matter, but the client's address is, too. */
	assert_int_equal(enter(&quota, "10.0.0.1:6", &of_peer), SPOKE_OK);
	assert_int_equal(spokei_quota_move(&quota, spokei_quota_peer(&quota, &proxy), &client,
					   &quota_peer),
			 SPOKE_ELIMIT);
	assert_non_null(spokei_quota_peer(&quota, &proxy));
	assert_int_equal(quota.count, 2);
	leave(&quota, "10.0.0.1:6");
	spokei_quota_leave(&quota, quota_peer);
	spokei_quota_fini(&quota);
}

TEST(connection_at_the_limit_moves_to_its_own_address)
{
	struct spoke_address peer = parse("[::ffff:10.0.0.1]:5");
	struct spoke_address path = parse("unix:/run/x");
	struct spoke_address client = parse("10.0.0.1:1");
	struct spokei_quota quota;
	bool of_peer;
	struct spokei_quota_peer *quota_peer = NULL;

	init(&quota, spoke_host_env(), 0, 1);
	assert_int_equal(enter(&quota, "[::ffff:10.0.0.1]:5", &of_peer), SPOKE_OK);
	assert_int_equal(spokei_quota_move(&quota, spokei_quota_peer(&quota, &peer), &client,
					   &quota_peer),
			 SPOKE_OK);
	assert_non_null(quota_peer);
	assert_ptr_equal(quota_peer, spokei_quota_peer(&quota, &peer));
	assert_int_equal(quota.count, 1);
	spokei_quota_leave(&quota, quota_peer);
	/* A peer without a machine has no quota_peer, and an unknown one has none yet. */
	assert_int_equal(enter(&quota, "unix:/run/x", &of_peer), SPOKE_OK);
	assert_int_equal(spokei_quota_move(&quota, spokei_quota_peer(&quota, &path), &client,
					   &quota_peer),
			 SPOKE_OK);
	assert_ptr_equal(quota_peer, spokei_quota_peer(&quota, &client));
	assert_non_null(quota_peer);
	spokei_quota_leave(&quota, quota_peer);
	spokei_quota_fini(&quota);
}
