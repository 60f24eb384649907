/* SPDX-License-Identifier: Apache-2.0 */
/* Public information: the peers of a provider, all tickets, and the latency histogram. */
#include "tests/cluster/clusterrig.h"
#include "tests/support/test.h"

#include <spoke/histogram.h>

#include <string.h>

#define rig clusterrig

static struct spoke_peer the_peer(const struct spoke_provider *provider)
{
	struct spoke_peer peer = { 0 };

	assert_int_equal(spoke_provider_peers(provider, &peer, 1), 1);
	return peer;
}

FIXTURE(clusterrig_set_up, clusterrig_tear_down);

TEST(provider_reports_its_peer)
{
	struct spoke_provider *provider;
	struct spoke_peer_info info;
	struct spoke_peer peer;

	clusterrig_provide(1);
	provider = rig.providers[0].provider;
	rig.providers[0].manner = RIG_SILENT;
	clusterrig_consume("heartbeat=1h", NULL);
	(void)clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_pass(10 * MS);
	peer = the_peer(provider);
	memset(&info, 0xa5, sizeof(info));
	assert_true(spoke_provider_peer(provider, peer, &info));
	assert_int_equal(strncmp(info.name, "127.0.0.1:", 10), 0);
	assert_int_equal(info.missed, 0);
	assert_int_equal(info.in_flight, 1);
	assert_false(info.readonly);
	assert_true(info.heard_ns <= 10 * MS);
	spoke_reply_error(rig.providers[0].held[0], 1, "now");
	rig.providers[0].held_count = 0;
	clusterrig_pass(10 * MS);
	assert_true(spoke_provider_peer(provider, peer, &info));
	assert_int_equal(info.in_flight, 0);
	clusterrig_free_consumer();
	clusterrig_pass(10 * SECOND);
	assert_false(spoke_provider_peer(provider, peer, &info));
	peer.handle = 0;
	assert_false(spoke_provider_peer(provider, peer, &info));
}

/* The provider sends its own heartbeats while the consumer is frozen. */
TEST(provider_reports_missed_heartbeats_of_peer)
{
	struct spoke_provider_options options = { .heartbeat_ns = SECOND };
	struct rig_provider *by = &rig.providers[0];
	struct spoke_engine_options engine = { .env = &by->process.env };
	struct spoke_peer_info info;
	struct spoke_peer peer;

	assert_int_equal(spoke_engine_new(&engine, &by->engine), 0);
	assert_int_equal(spoke_provider_new(by->engine, &options, &by->provider), 0);
	assert_int_equal(spoke_provider_listen(by->provider, by->url), 0);
	rig.provider_count = 1;
	clusterrig_consume("heartbeat=1h", NULL);
	clusterrig_pass(10 * MS);
	peer = the_peer(by->provider);
	spokei_world_hold(&rig.process, 60 * SECOND);
	clusterrig_pass(2500 * MS);
	assert_true(spoke_provider_peer(by->provider, peer, &info));
	assert_int_equal(info.missed, 1);
	assert_in_range(info.heard_ns, 2490 * MS, 2520 * MS);
	clusterrig_pass(SECOND);
	assert_true(spoke_provider_peer(by->provider, peer, &info));
	assert_int_equal(info.missed, 2);
}

TEST(consumer_lists_all_tickets)
{
	struct spoke_ticket_info infos[4];
	struct spoke_ticket_state alone;
	struct spoke_method *echo;
	struct rig_call *calls[3];

	clusterrig_provide(1);
	echo = clusterrig_failback("retry.period=5s");
	assert_int_equal(spoke_consumer_ticket_list(rig.consumer, infos, 4), 0);
	clusterrig_kill(0);
	clusterrig_pass(SECOND);
	for (unsigned i = 0; i < 3; i++) {
		calls[i] = clusterrig_deferred(echo);
		clusterrig_pass(100 * MS);
	}
	assert_int_equal(spoke_consumer_ticket_list(rig.consumer, NULL, 0), 3);
	memset(infos, 0xa5, sizeof(infos));
	assert_int_equal(spoke_consumer_ticket_list(rig.consumer, infos, 2), 3);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(infos[i].ticket.handle == calls[i]->ticket.handle);
		assert_string_equal(infos[i].method, "echo");
		assert_true(spoke_ticket_ask(rig.consumer, infos[i].ticket, &alone));
		assert_true(infos[i].state.id == alone.id);
		assert_true(infos[i].state.next_ns == alone.next_ns);
		assert_true(infos[i].state.left_ns == alone.left_ns);
		assert_int_equal(infos[i].state.attempts, 1);
	}
	assert_true(infos[2].ticket.handle != calls[2]->ticket.handle);
	assert_true(spoke_ticket_cancel(rig.consumer, calls[0]->ticket));
	clusterrig_pass(MS);
	assert_int_equal(spoke_consumer_ticket_list(rig.consumer, infos, 4), 2);
	assert_true(infos[0].ticket.handle == calls[1]->ticket.handle);
}

static uint64_t answers(void)
{
	static struct spoke_histogram latency;

	spoke_engine_latency(rig.engine, &latency);
	return latency.count;
}

TEST(histogram_counts_answers_only)
{
	const struct spoke_call_options one_way = { .one_way = true };
	const struct spoke_method_options with = { .policy = &spoke_policy_failfast,
						   .timeout_ns = 100 * MS };
	static struct spoke_histogram latency;
	struct spoke_method *echo;

	clusterrig_provide(1);
	clusterrig_consume("", NULL);
	echo = clusterrig_method("echo", &with);
	spokei_world_hold(&rig.providers[0].process, 30 * MS);
	clusterrig_end(clusterrig_call(echo));
	spoke_engine_latency(rig.engine, &latency);
	assert_int_equal(latency.count, 1);
	assert_in_range(latency.max, 29 * MS, 31 * MS);
	clusterrig_end(clusterrig_call_with(echo, &one_way));
	assert_int_equal(answers(), 1);
	rig.providers[0].manner = RIG_ERROR;
	clusterrig_end(clusterrig_call(echo));
	assert_int_equal(answers(), 2);
	rig.providers[0].manner = RIG_SILENT;
	clusterrig_end(clusterrig_call(echo));
	assert_int_equal(answers(), 2);
	clusterrig_kill(0);
	clusterrig_end(clusterrig_call(echo));
	assert_int_equal(answers(), 2);
}

/* The latency begins with the first attempt. */
TEST(histogram_counts_all_attempts_as_one_call)
{
	const struct spoke_method_options with = { .policy = &spoke_policy_failover,
						   .timeout_ns = 100 * MS,
						   .idempotent = true };
	static struct spoke_histogram latency;

	clusterrig_provide(2);
	clusterrig_consume("loadbalance=roundrobin", NULL);
	spokei_world_hold(&rig.providers[0].process, SECOND);
	clusterrig_end(clusterrig_call(clusterrig_method("echo", &with)));
	assert_int_equal(rig.calls[0].error, 0);
	spoke_engine_latency(rig.engine, &latency);
	assert_int_equal(latency.count, 1);
	assert_in_range(latency.max, 100 * MS, 110 * MS);
}

TEST(histogram_leaves_out_tickets)
{
	struct spoke_method *echo;

	clusterrig_provide(1);
	echo = clusterrig_failback("retry.period=1s");
	clusterrig_kill(0);
	clusterrig_pass(SECOND);
	(void)clusterrig_deferred(echo);
	clusterrig_start(0);
	clusterrig_pass(20 * SECOND);
	assert_int_equal(rig.settled_by[SPOKE_TICKET_SUCCESS], 1);
	assert_int_equal(answers(), 0);
	clusterrig_end(clusterrig_call(echo));
	assert_int_equal(answers(), 1);
}
