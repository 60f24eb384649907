/* SPDX-License-Identifier: Apache-2.0 */
/* Places of connections: who has them when all are taken, and who counts as one address. */
#include "cluster/provider/parts.h"
#include "tests/cluster/provider/proofrig.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/listen/group.h"

static const struct spoke_provider_options three = { .connections_max = 3 };

/* Asserts which connections the provider has closed, as bits. */
static void ended(unsigned bits)
{
	for (unsigned i = 0; i < CONNS; i++) {
		peer_read(&proofrig.conns[i], proofrig_take, &proofrig.seen[i]);
		if (proofrig.conns[i].ended != (bits >> i & 1))
			fail_msg("connection %u is %s", i, bits >> i & 1 ? "open" : "closed");
	}
}

/* Returns how many connections the listeners count. */
static uint32_t counted(void)
{
	return spokei_listen_group_quota(proofrig.provider->listeners)->count;
}

FIXTURE(proofrig_set_up, proofrig_tear_down);

TEST(longest_silent_connection_gives_way_to_a_new_one)
{
	proofrig_start(&three);
	proofrig_open(0, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.A", NULL), 0);
	proofrig_open(1, &spokei_wire_dubbo);
	proofrig_open(2, &spokei_wire_dubbo);
	assert_int_equal(counted(), 3);
	proofrig_open(3, &spokei_wire_dubbo);
	ended(1u << 1);
	assert_int_equal(counted(), 3);
	assert_int_equal(proofrig_stat(SPOKE_STAT_CLOSED_MUTE), 1);
	assert_int_equal(proofrig_stat(SPOKE_STAT_ACCEPTS_REFUSED_TOTAL), 0);
	assert_int_equal(proofrig_call(3, "demo.A", NULL), 0);
	assert_int_equal(proofrig_call(0, "demo.A", NULL), 0);
	proofrig_open(1, &spokei_wire_dubbo);
	ended(1u << 2);
	assert_int_equal(counted(), 3);
}

TEST(connection_that_has_sent_a_byte_keeps_its_place)
{
	proofrig_start(&three);
	for (unsigned i = 0; i < 3; i++) {
		proofrig_open(i, &spokei_wire_dubbo);
		peer_put_bytes(&proofrig.conns[i], spokei_span("\xda", 1));
		proofrig_flush(i);
	}
	proofrig_open(3, &spokei_wire_dubbo);
	ended(1u << 3);
	assert_int_equal(proofrig_stat(SPOKE_STAT_ACCEPTS_REFUSED_TOTAL), 1);
	assert_int_equal(proofrig_stat(SPOKE_STAT_CLOSED_MUTE), 0);
}

/* All of a turn, so that a flood of silent connections leaves a place for the last one. */
TEST(crowd_of_a_turn_finds_places)
{
	int fds[100];

	proofrig_start(&three);
	for (unsigned i = 0; i < 100; i++)
		fds[i] = peer_connect(&proofrig.peer, AT);
	proofrig_open(0, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.A", NULL), 0);
	assert_int_equal(counted(), 3);
	assert_int_equal(proofrig_stat(SPOKE_STAT_CLOSED_MUTE), 98);
	for (unsigned i = 0; i < 100; i++)
		proofrig.peer.process.env.net->close(proofrig.peer.process.env.ctx, fds[i]);
	proofrig_pass();
	assert_int_equal(counted(), 1);
}

static void open_from(unsigned which, const char *from)
{
	proofrig.peer.process.user.from = from;
	proofrig_open(which, &spokei_wire_dubbo);
}

TEST(network_of_ipv6_has_the_places_of_one_address)
{
	const struct spoke_provider_options two = { .connections_per_peer_max = 2 };

	proofrig_start(&two);
	open_from(0, "[2001:db8::1]:0");
	open_from(1, "[2001:db8::2:0:0:2]:0");
	open_from(2, "[2001:db8::3]:0");
	open_from(3, "[2001:db8:0:1::1]:0");
	ended(1u << 2);
	assert_int_equal(proofrig_stat(SPOKE_STAT_ACCEPTS_REFUSED_PEER), 1);
}

TEST(prefix_of_ipv6_follows_file)
{
	proofrig_configure("[provider]\nconnections.per.peer.max = 1\n"
			   "connections.per.peer.prefix6 = 48\n");
	open_from(0, "[2001:db8:1:1::1]:0");
	open_from(1, "[2001:db8:1:2::1]:0");
	open_from(2, "[2001:db8:2:1::1]:0");
	open_from(3, "[2001:db8:3:1::1]:0");
	ended(1u << 1);
	assert_int_equal(proofrig_reconfigure("[provider]\nconnections.per.peer.max = 1\n"
					      "connections.per.peer.prefix6 = 128\n"),
			 0);
	open_from(1, "[2001:db8:1:1::2]:0");
	ended(0);
	/* Each leaves where it was counted in. */
	for (unsigned i = 0; i < CONNS; i++)
		peer_close(&proofrig.conns[i]);
	proofrig_pass();
	assert_int_equal(counted(), 0);
	assert_int_equal(spokei_listen_group_quota(proofrig.provider->listeners)->peers.count, 0);
	for (unsigned i = 0; i < CONNS; i++)
		proofrig.conns[i].fd = -1;
}
