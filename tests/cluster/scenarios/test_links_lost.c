/* SPDX-License-Identifier: Apache-2.0 */
/* Consumers whose provider goes away at a bad moment or without notice, and the detection of it. */
#include "cluster/call/caller.h"
#include "cluster/consumer/parts.h"
#include "cluster/endpoints/directory.h"
#include "cluster/provider/parts.h"
#include "tests/cluster/scenarios/linkrig.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/connect/connector.h"

#include <errno.h>

/* Asserts a reconnect after the end of the stream, or after a reset, which a close with unread
 * input causes. */
static void assert_connects_anew(bool reads_all)
{
	const struct spoke_consumer_options options = { .heartbeat_ns = SECOND };

	linkrig_consume("dubbo", &options);
	linkrig_say(SPOKEI_PROBE);
	linkrig_ask("later");
	linkrig_pass(20 * TICK);
	assert_non_null(linkrig.held);
	if (reads_all)
		linkrig_read();
	peer_close(&linkrig.conn);
	linkrig_pass(SPOKEI_BACKOFF_FIRST_NS + 2 * TICK);
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 1);
	assert_int_equal(linkrig.error, SPOKE_ELOST);
	assert_int_equal(linkrig.told[SPOKE_LINK_CONNECTED], 2);
	assert_true(linkrig_accept());
	assert_int_equal(spoke_consumer_ready(linkrig.consumer), 1);
	assert_int_equal(linkrig.abandoned, 1);
}

FIXTURE(linkrig_set_up, linkrig_tear_down);

TEST(consumer_serving_a_push_reconnects_at_once)
{
	assert_connects_anew(true);
}

TEST(and_after_a_reset_too)
{
	assert_connects_anew(false);
}

static struct spoke_alarm drainer;

static void drain_while_it_resolves(struct spoke_alarm *alarm)
{
	const struct spokei_line *second =
		linkrig.consumer->directory->candidates.endpoints[1]->lines;

	if (spokei_connector_state(second->connector) != SPOKEI_CONNECTOR_RESOLVING)
		return;
	(void)spoke_alarm_cancel(alarm);
	assert_int_equal(spoke_engine_drain(linkrig.engine, 60 * SECOND), SPOKE_OK);
}

/* The second address refuses connections, so its name is resolved repeatedly. */
TEST(a_drain_waits_for_the_push_while_a_name_is_resolved)
{
	static const char *const more[] = { "dubbo://demo.test:20881/demo.Echo" };
	const struct spoke_consumer_options options = { .more_urls = more, .more_count = 1 };

	spokei_vnet_name(linkrig.world.net, "demo.test", "127.0.0.1");
	linkrig_consume("dubbo", &options);
	linkrig_say(SPOKEI_PROBE);
	linkrig_ask("later");
	linkrig_pass(20 * TICK);
	assert_non_null(linkrig.held);
	drainer = (struct spoke_alarm){ .engine = NULL };
	assert_int_equal(spoke_alarm_every(linkrig.engine, &drainer, TICK, drain_while_it_resolves),
			 SPOKE_OK);
	linkrig_pass(10 * SECOND);
	assert_true(linkrig.consumer->caller->closed);
	assert_false(linkrig.consumer->ended);
	linkrig_answer();
	linkrig_pass(SECOND);
	linkrig_read();
	assert_int_equal(linkrig.read[SPOKEI_REPLY], 1);
	assert_int_equal(linkrig.read[SPOKEI_READONLY], 1);
	linkrig_say(SPOKEI_READONLY);
	linkrig_pass(10 * TICK);
	linkrig_read();
	assert_true(linkrig.conn.ended);
	peer_close(&linkrig.conn);
	linkrig_pass(10 * TICK);
	assert_true(linkrig.consumer->ended);
}

/* A connection that is still being made for a waiting call serves that call only. */
TEST(nothing_is_served_on_a_link_made_in_a_drain)
{
	const struct spoke_consumer_options options = { .heartbeat_ns = SPOKE_OFF };
	const struct spoke_call_options patient = { .timeout_ns = 20 * SECOND };
	const struct spoke_span no_args = { NULL, 0 };
	struct spoke_method *method;

	linkrig_consume("dubbo", &options);
	linkrig_say(SPOKEI_PROBE);
	linkrig_pass(10 * TICK);
	spokei_vnet_route(linkrig.world.net, LINKRIG_AT, SPOKEI_VNET_SILENT);
	linkrig_read();
	peer_close(&linkrig.conn);
	linkrig_pass(SECOND);
	assert_int_equal(spoke_consumer_method(linkrig.consumer, "echo", NULL, &method), SPOKE_OK);
	assert_int_equal(spoke_call(method, no_args, &patient, NULL, NULL, NULL), SPOKE_OK);
	assert_int_equal(spoke_engine_drain(linkrig.engine, 60 * SECOND), SPOKE_OK);
	spokei_vnet_route(linkrig.world.net, LINKRIG_AT, SPOKEI_VNET_NORMAL);
	linkrig_pass(SECOND);
	assert_true(linkrig_accept());
	linkrig_ask("later");
	linkrig_pass(10 * TICK);
	linkrig_read();
	assert_int_equal(linkrig.read[SPOKEI_REQUEST], 1);
	assert_int_equal(linkrig.read[SPOKEI_REPLY], 1);
	assert_null(linkrig.held);
	assert_int_equal(linkrig_stat(SPOKE_STAT_REQUESTS_REFUSED), 1);
}

/* --- detection by the kernel */

/* Asserts the kernel's keepalive, the only check without heartbeats. */
static void assert_guarded(const struct spokei_link *link)
{
	const struct spokei_conn *conn = spoke_container_of(link->conns.next, struct spokei_conn,
							    node);
	const struct spokei_vnet_guard *guard = spokei_vnet_guard(linkrig.world.net,
								  conn->stream.watch.fd);

	assert_int_equal(guard->unanswered_ns, 120 * SECOND);
	assert_int_equal(guard->keepalive_ns, 60 * SECOND);
}

TEST(the_system_watches_for_a_consumer_without_heartbeats)
{
	const struct spoke_consumer_options options = { .heartbeat_ns = SPOKE_OFF };

	linkrig_consume("dubbo", &options);
	assert_guarded(linkrig.consumer->link);
}

TEST(the_system_watches_for_a_provider_without_heartbeats)
{
	const struct spoke_provider_options options = { .heartbeat_ns = SPOKE_OFF };

	linkrig_provide("dubbo", &options);
	linkrig_connect();
	linkrig_say(SPOKEI_PROBE);
	linkrig_pass(10 * TICK);
	assert_guarded(linkrig.provider->link);
}

/* The kernel has given up waiting for the peer's acknowledgement: the peer counts as silent, as
 * with missed heartbeats. */
TEST(connection_lost_by_system_timeout_counts_as_silent)
{
	const struct spoke_consumer_options options = { .heartbeat_ns = SPOKE_OFF };

	linkrig_consume("dubbo", &options);
	linkrig_say(SPOKEI_PROBE_ANSWER);
	linkrig_pass(10 * TICK);
	spokei_faults_fail(&linkrig.faulty, SPOKEI_FAULTS_READ, 1, -ETIMEDOUT, false);
	linkrig_say(SPOKEI_PROBE);
	linkrig_pass(10 * TICK);
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 1);
	assert_int_equal(linkrig.error, SPOKE_ESILENT);
	assert_int_equal(linkrig_stat(SPOKE_STAT_CLOSED_SILENT), 1);
	assert_true(linkrig_until(SPOKE_LINK_PROBATION, SECOND));
	assert_int_equal(linkrig_stat(SPOKE_STAT_PROBATIONS), 1);
	assert_int_equal(linkrig.told[SPOKE_LINK_CONNECTED], 1);
}

/* What answers the attempts to connect after a silent link. */
static const struct {
	enum spokei_vnet_route route;
	const char *resolves; /* NULL: the name cannot be resolved meanwhile */
	uint64_t lasts_ns;    /* until the peer can be connected to again */
} obstacles[] = {
	{ SPOKEI_VNET_REFUSE, "127.0.0.1", 5 * SECOND },
	{ SPOKEI_VNET_UNREACHABLE, "127.0.0.1", 5 * SECOND },
	{ SPOKEI_VNET_SILENT, "127.0.0.1", 20 * SECOND },
	{ SPOKEI_VNET_SELF, "127.0.0.1", 5 * SECOND },
	{ SPOKEI_VNET_NORMAL, NULL, 5 * SECOND },
};

/* A failed attempt says nothing about the peer: the link after it is on probation until the peer
 * answers a heartbeat, and the backoff goes on. */
TEST(suspicion_outlasts_failed_attempts)
{
	const struct spoke_consumer_options options = { .heartbeat_ns = SECOND };

	for (size_t i = 0; i < sizeof(obstacles) / sizeof(obstacles[0]); i++) {
		if (i > 0) {
			linkrig_tear_down(NULL);
			linkrig_set_up(NULL);
		}
		linkrig.host = "peer.test";
		spokei_vnet_name(linkrig.world.net, "peer.test", "127.0.0.1");
		linkrig_consume("dubbo", &options);
		linkrig_say(SPOKEI_PROBE_ANSWER);
		spokei_vnet_route(linkrig.world.net, LINKRIG_AT, obstacles[i].route);
		spokei_vnet_name(linkrig.world.net, "peer.test", obstacles[i].resolves);
		assert_true(linkrig_until(SPOKE_LINK_CLOSED, 10 * SECOND));
		assert_int_equal(linkrig.error, SPOKE_ESILENT);
		linkrig_pass(obstacles[i].lasts_ns);
		assert_in_range(linkrig.told[SPOKE_LINK_RECONNECTING], 2, 20);
		spokei_vnet_route(linkrig.world.net, LINKRIG_AT, SPOKEI_VNET_NORMAL);
		spokei_vnet_name(linkrig.world.net, "peer.test", "127.0.0.1");
		assert_true(linkrig_until(SPOKE_LINK_PROBATION, 60 * SECOND));
		assert_int_equal(linkrig.user, SPOKE_EVENT_OF_HEARTBEAT);
		assert_int_equal(linkrig.told[SPOKE_LINK_CONNECTED], 1);
		assert_int_equal(spoke_consumer_ready(linkrig.consumer), 0);
		assert_true(linkrig_accept());
		linkrig_say(SPOKEI_PROBE_ANSWER);
		linkrig_pass(10 * TICK);
		assert_int_equal(linkrig.told[SPOKE_LINK_RECOVERED], 1);
		assert_int_equal(spoke_consumer_ready(linkrig.consumer), 1);
	}
}
