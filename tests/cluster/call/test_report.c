/* SPDX-License-Identifier: Apache-2.0 */
/* The events of the wheel's users, each with the user that caused the event. */
#include "tests/cluster/clusterrig.h"
#include "tests/support/test.h"

#include <string.h>

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
