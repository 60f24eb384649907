/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program learns of its calls: public information, and the events of the wheel's users.
 */
#include "tests/cluster/clusterrig.h"
#include "tests/support/test.h"

#include <spoke/histogram.h>

#include <string.h>

/* --- the events of the wheel's users, each with the user that caused the event */

#define rig clusterrig
#define AT "127.0.0.1:20880"
/* Returns the number of events of this user that contain the text. */
static unsigned count_events(enum spoke_event_user user, const char *text)
{
	struct spoke_event event = { 0 };
	unsigned count = 0;

	while (spoke_event_get(rig.engine, event.number + 1, &event) == SPOKE_OK)
		count += event.user == user && strstr(event.text, text) != NULL;
	return count;
}

FIXTURE(clusterrig_set_up, clusterrig_tear_down);

TEST(timeout_event_names_the_provider)
{
	struct spoke_method *echo;
	struct rig_call *call;

	clusterrig_provide(1);
	clusterrig_consume("timeout=300ms", NULL);
	echo = clusterrig_method("echo", NULL);
	rig.providers[0].manner = RIG_SILENT;
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ETIMEOUT);
	clusterrig_pass(5 * MS);
	assert_int_equal(count_events(SPOKE_EVENT_OF_TIMEOUT,
				      AT ": 1 request not answered within 300 ms"),
			 1);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_ATTEMPTS_TIMEOUT), 1);
}

TEST(timeouts_are_reported_together_once_a_second)
{
	struct spoke_method *echo;

	clusterrig_provide(1);
	clusterrig_consume("timeout=300ms&eject.failures=0", NULL);
	echo = clusterrig_method("echo", NULL);
	rig.providers[0].manner = RIG_SILENT;
	for (unsigned i = 0; i < 40; i++) {
		(void)clusterrig_call(echo);
		clusterrig_pass(100 * MS);
	}
	clusterrig_pass(2 * SECOND);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_ATTEMPTS_TIMEOUT), 40);
	/* The first event comes at once, then ten each second, then the rest. */
	assert_int_equal(count_events(SPOKE_EVENT_OF_TIMEOUT, ": 1 request not answered"), 1);
	assert_int_equal(count_events(SPOKE_EVENT_OF_TIMEOUT, "requests not answered"), 4);
	assert_int_equal(count_events(SPOKE_EVENT_OF_TIMEOUT, ": 10 requests not answered"), 3);
}

TEST(timeout_event_has_range_of_timeouts)
{
	const struct spoke_method_options patient = { .timeout_ns = 900 * MS };
	struct spoke_method *echo;

	clusterrig_provide(1);
	clusterrig_consume("timeout=300ms&eject.failures=0", NULL);
	echo = clusterrig_method("echo", NULL);
	rig.providers[0].manner = RIG_SILENT;
	(void)clusterrig_call(echo);
	clusterrig_pass(400 * MS);
	(void)clusterrig_call(clusterrig_method("echo", &patient));
	(void)clusterrig_call(echo);
	(void)clusterrig_call(echo);
	clusterrig_pass(3 * SECOND);
	(void)clusterrig_call(echo);
	clusterrig_pass(3 * SECOND);
	assert_int_equal(count_events(SPOKE_EVENT_OF_TIMEOUT, "3 requests not answered within 300 "
							      "to 900 ms"),
			 1);
	assert_int_equal(count_events(SPOKE_EVENT_OF_TIMEOUT,
				      "1 request not answered within 300 ms"),
			 2);
}

TEST(timeouts_beyond_four_providers_are_summed_up)
{
	struct spoke_method *echo;

	clusterrig_provide(RIG_PROVIDERS);
	clusterrig_consume("timeout=300ms&loadbalance=roundrobin", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < RIG_PROVIDERS; i++)
		rig.providers[i].manner = RIG_SILENT;
	for (unsigned i = 0; i < 2 * RIG_PROVIDERS; i++)
		(void)clusterrig_call(echo);
	clusterrig_pass(SECOND);
	assert_int_equal(count_events(SPOKE_EVENT_OF_TIMEOUT, ": 2 requests not answered"), 4);
	assert_int_equal(count_events(SPOKE_EVENT_OF_TIMEOUT, "2 requests not answered elsewhere"),
			 1);
}

TEST(ticket_events_report_deferral_retry_and_answer)
{
	struct spoke_method *echo;

	clusterrig_provide(1);
	echo = clusterrig_failback("retry.period=2s&retries=5");
	clusterrig_kill(0);
	clusterrig_pass(10 * MS);
	(void)clusterrig_deferred(echo);
	(void)clusterrig_deferred(echo);
	clusterrig_pass(1500 * MS);
	assert_int_equal(count_events(SPOKE_EVENT_OF_RETRY,
				      "call deferred, 2 wait, next retry in 2000 ms"),
			 1);
	clusterrig_pass(SECOND);
	assert_int_equal(count_events(SPOKE_EVENT_OF_RETRY, "2 calls retried without success, "
							    "2 wait, next retry in 2000 ms"),
			 1);
	clusterrig_start(0);
	clusterrig_pass(8 * SECOND);
	assert_int_equal(count_events(SPOKE_EVENT_OF_RETRY, "1 call answered after a retry"), 2);
}

TEST(given_up_tickets_are_reported)
{
	clusterrig_provide(1);
	rig.providers[0].manner = RIG_REFUSE;
	(void)clusterrig_deferred(clusterrig_failback("retry.period=2s&retries=1"));
	clusterrig_pass(5 * SECOND);
	assert_int_equal(count_events(SPOKE_EVENT_OF_RETRY, "1 call given up after being deferred"),
			 1);
}

TEST(last_sums_are_reported_when_consumer_ends)
{
	struct spoke_method *echo;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_REFUSE;
	echo = clusterrig_failback("retry.period=60s&retries=1");
	for (unsigned i = 0; i < 5; i++)
		(void)clusterrig_deferred(echo);
	clusterrig_pass(2 * SECOND);
	clusterrig_free_consumer();
	clusterrig_pass(10 * MS);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_TICKETS_CLOSING), 5);
	assert_int_equal(count_events(SPOKE_EVENT_OF_RETRY,
				      "5 calls given up after being deferred"),
			 1);
}

TEST(retry_without_ticket_is_reported)
{
	struct rig_call *call;

	clusterrig_provide(2);
	clusterrig_consume("cluster=failover&loadbalance=roundrobin", NULL);
	rig.providers[0].manner = RIG_REFUSE;
	rig.providers[1].manner = RIG_REFUSE;
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_end(call);
	clusterrig_pass(5 * MS);
	assert_int_equal(count_events(SPOKE_EVENT_OF_RETRY, "1 call retried"), 1);
}

TEST(report_counts_calls_and_not_their_attempts)
{
	struct spoke_method *echo;

	clusterrig_provide(3);
	clusterrig_consume("cluster=failover&loadbalance=roundrobin&retries=2", NULL);
	for (unsigned i = 0; i < 3; i++)
		rig.providers[i].manner = RIG_REFUSE;
	echo = clusterrig_method("echo", NULL);
	clusterrig_end(clusterrig_call(echo));
	clusterrig_pass(2 * SECOND);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_RETRIES), 2);
	assert_int_equal(count_events(SPOKE_EVENT_OF_RETRY, "1 call retried"), 1);
	assert_int_equal(count_events(SPOKE_EVENT_OF_RETRY, "2 calls retried"), 0);
}

TEST(report_counts_a_ticket_once_in_each_sum)
{
	struct spoke_method *echo;

	clusterrig_provide(1);
	echo = clusterrig_failback("retry.period=100ms&retries=30");
	clusterrig_kill(0);
	clusterrig_pass(10 * MS);
	(void)clusterrig_deferred(echo);
	clusterrig_pass(2900 * MS);
	assert_in_range(count_events(SPOKE_EVENT_OF_RETRY, "1 call retried without success"), 2, 3);
	assert_int_equal(count_events(SPOKE_EVENT_OF_RETRY, "calls retried"), 0);
}

TEST(answered_call_causes_no_event)
{
	struct spoke_method *echo;

	clusterrig_provide(1);
	echo = clusterrig_failback("");
	for (unsigned i = 0; i < 20; i++)
		clusterrig_end(clusterrig_call(echo));
	clusterrig_pass(SECOND);
	assert_int_equal(count_events(SPOKE_EVENT_OF_TIMEOUT, ""), 0);
	assert_int_equal(count_events(SPOKE_EVENT_OF_RETRY, ""), 0);
}

TEST(missed_heartbeats_are_events_of_heartbeats)
{
	clusterrig_provide(1);
	clusterrig_consume("heartbeat=100ms", NULL);
	spokei_world_hold(&rig.providers[0].process, 520 * MS);
	clusterrig_pass(2 * SECOND);
	for (unsigned i = 1; i <= 3; i++) {
		char text[] = AT ": heartbeat unanswered, 0 of 3";

		text[strlen(text) - 6] = (char)('0' + i);
		assert_int_equal(count_events(SPOKE_EVENT_OF_HEARTBEAT, text), 1);
	}
	assert_int_equal(count_events(SPOKE_EVENT_OF_HEARTBEAT, "lost the connection to " AT), 1);
	assert_true(count_events(SPOKE_EVENT_OF_HEARTBEAT, "has to answer first") >= 1);
	assert_int_equal(count_events(SPOKE_EVENT_OF_HEARTBEAT, AT " answers again"), 1);
	/* Earlier events belong to no user. */
	assert_int_equal(count_events(SPOKE_EVENT_OF_NONE, "connected to " AT), 1);
}

/* --- public information: the peers of a provider, all tickets, and the latency histogram */

static struct spoke_peer the_peer(const struct spoke_provider *provider)
{
	struct spoke_peer peer = { 0 };

	assert_int_equal(spoke_provider_peers(provider, &peer, 1), 1);
	return peer;
}

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
	assert_in_range(latency.max, 50 * MS, 60 * MS);
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

TEST(printed_result_has_its_reason_once)
{
	static const char unread[] = "the reply could not be decoded";
	static const char longer[] = "the body stands for too many values";
	struct spoke_result result = {
		.error = SPOKE_EBADREPLY,
		.error_text = { unread, sizeof(unread) - 1 },
	};
	char text[256];

	(void)spoke_result_print(&result, text, sizeof(text));
	assert_ptr_equal(strstr(text, unread), text);
	assert_null(strstr(text + 1, unread));
	result.error_text = (struct spoke_span){ longer, sizeof(longer) - 1 };
	(void)spoke_result_print(&result, text, sizeof(text));
	assert_non_null(strstr(text, longer));
}
