/* SPDX-License-Identifier: Apache-2.0 */
/* Links that are lost, that time out in late engines, and their events. */
#include "cluster/call/caller.h"
#include "cluster/consumer/parts.h"
#include "cluster/endpoints/directory.h"
#include "cluster/provider/parts.h"
#include "tests/cluster/scenarios/linkrig.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/connect/connector.h"
#include "transport/wire/catalog.h"

#include <errno.h>
#include <string.h>

/*
 * --- consumers whose provider goes away at a bad moment or without notice, and the detection
 * of it
 */

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

/*
 * --- timeouts of peers in an engine whose turns are always late, and idle peers that are kept
 */

#define INTERVAL (100 * MS)
#define WHOLE 17     /* bytes of a heartbeat */
#define GRACE SECOND /* time to check again after a late turn */
/* MessagePack-RPC, whose requests need no service here. */
static const unsigned char echo[] = "\x94\x00\x01\xa4"
				    "echo\x90";

static const unsigned char later[] = "\x94\x00\x02\xa5"
				     "later\x90";

/* A complete Dubbo frame and the beginning of another one. */
static const unsigned char heartbeat[] = "\xda\xbb\xfb\0\0\0\0\0\0\0\0\1\0\0\0\1\xc0"
					 "\xda\xbb\xfb";

/* --- an engine whose turns are always late */

/* Asserts that a peer that sends only these bytes is closed soon after the timeout. */
static void assert_closed_after(const void *bytes, size_t len, uint64_t ns, enum spoke_stat why)
{
	linkrig_connect();
	linkrig_write(bytes, len);
	linkrig_pass(ns - ns / 4);
	assert_int_equal(spoke_provider_connections(linkrig.provider), 1);
	linkrig_pass(ns / 4 + 2 * GRACE);
	assert_int_equal(spoke_provider_connections(linkrig.provider), 0);
	assert_int_equal(linkrig_stat(why), 1);
}

TEST(half_a_frame_is_no_frame_after_ten_seconds)
{
	/* This delay is too long for the heartbeat check, but does not matter for the frame
	 * timeout. */
	const struct spoke_provider_options options = { .heartbeat_ns = 20 * MS };

	linkrig_provide("dubbo", &options);
	linkrig_hold_up(12 * MS);
	assert_closed_after(heartbeat, WHOLE + 3, 10 * SECOND, SPOKE_STAT_CLOSED_FRAME_TIME);
}

TEST(peer_that_never_sends_is_closed)
{
	const struct spoke_provider_options options = { .heartbeat_ns = 10 * MS };

	linkrig_provide("dubbo", &options);
	linkrig_hold_up(8 * MS);
	assert_closed_after("", 0, 240 * SECOND, SPOKE_STAT_CLOSED_MUTE);
}

TEST(silent_peer_is_closed)
{
	const struct spoke_provider_options options = { .heartbeat_ns = SECOND };

	linkrig_provide("dubbo", &options);
	linkrig_hold_up(60 * MS);
	assert_closed_after(heartbeat, WHOLE, 4 * SECOND, SPOKE_STAT_CLOSED_SILENT);
}

/* A turn that is late for another object of the engine is not late for this one. */
TEST(short_intervals_of_others_change_nothing)
{
	const struct spoke_provider_options options = { .heartbeat_ns = 10 * SECOND };
	const struct spoke_provider_options hasty = { .heartbeat_ns = 10 * MS };
	struct spoke_provider *other;

	linkrig_provide("dubbo", &options);
	assert_int_equal(spoke_provider_new(linkrig.engine, &hasty, &other), SPOKE_OK);
	linkrig_hold_up(8 * MS);
	assert_closed_after(heartbeat, WHOLE, 40 * SECOND, SPOKE_STAT_CLOSED_SILENT);
	assert_int_equal(linkrig.told[SPOKE_LINK_SUSPECT], 3);
}

/* --- idle_close_ns */

TEST(peer_with_running_request_is_not_idle)
{
	const struct spoke_provider_options options = { .idle_close_ns = INTERVAL };

	linkrig_provide("msgpack-rpc", &options);
	linkrig_connect();
	linkrig_write(later, sizeof(later) - 1);
	linkrig_pass(10 * INTERVAL);
	assert_non_null(linkrig.held);
	assert_int_equal(linkrig.abandoned, 0);
	assert_int_equal(spoke_provider_connections(linkrig.provider), 1);
	linkrig_answer();
	linkrig_pass(INTERVAL + 2 * TICK);
	linkrig_read();
	assert_int_equal(linkrig.read[SPOKEI_REPLY], 1);
	assert_int_equal(spoke_provider_connections(linkrig.provider), 0);
	assert_int_equal(linkrig_stat(SPOKE_STAT_CLOSED_IDLE), 1);
}

static void note_end(void *arg, const struct spoke_result *result)
{
	*(int *)arg = result->error;
}

TEST(whose_answer_is_waited_for_is_not_idle)
{
	const struct spoke_consumer_options options = { .idle_close_ns = INTERVAL };
	const struct spoke_call_options patient = { .timeout_ns = 10 * INTERVAL };
	const struct spoke_span no_args = { NULL, 0 };
	struct spoke_method *method;
	int error = SPOKE_OK;

	linkrig_consume("msgpack-rpc", &options);
	assert_int_equal(spoke_consumer_method(linkrig.consumer, "echo", NULL, &method), 0);
	assert_int_equal(spoke_call(method, no_args, &patient, note_end, &error, NULL), 0);
	linkrig_pass(9 * INTERVAL);
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 0);
	linkrig_pass(3 * INTERVAL);
	assert_int_equal(error, SPOKE_ETIMEOUT);
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 1);
	assert_int_equal(linkrig_stat(SPOKE_STAT_CLOSED_IDLE), 1);
}

/* --- more peers than the loop reports in one round */

static struct peer_conn quota[150];

#define CROWD (sizeof(quota) / sizeof(quota[0]))

static void crowd_connects(const char *wire)
{
	for (size_t i = 0; i < CROWD; i++)
		peer_open(&linkrig.peer, &quota[i], peer_connect(&linkrig.peer, LINKRIG_AT),
			  spokei_catalog_wire(wire));
}

static void crowd_writes(const void *bytes, size_t len)
{
	for (size_t i = 0; i < CROWD; i++) {
		peer_put_bytes(&quota[i], (struct spoke_span){ bytes, len });
		assert_int_equal(peer_write(&quota[i], SIZE_MAX), 0);
	}
}

static void crowd_leaves(void)
{
	for (size_t i = 0; i < CROWD; i++)
		peer_close(&quota[i]);
}

/* Makes all peers write shortly before their timeout, while the provider is stalled for a moment.
 */
static void crowd_writes_in_time(uint64_t left_ns, const void *bytes, size_t len)
{
	linkrig_pass(left_ns - 20 * TICK);
	spokei_world_hold(&linkrig.process, 40 * TICK);
	crowd_writes(bytes, len);
	linkrig_pass(50 * TICK);
	assert_int_equal(linkrig_stat(SPOKE_STAT_TURNS_LATE), 0);
}

TEST(whose_bytes_lie_unread_is_not_idle)
{
	const struct spoke_provider_options options = { .idle_close_ns = INTERVAL };

	linkrig_provide("msgpack-rpc", &options);
	crowd_connects("msgpack-rpc");
	crowd_writes(echo, sizeof(echo) - 1);
	crowd_writes_in_time(INTERVAL, echo, sizeof(echo) - 1);
	assert_int_equal(linkrig_stat(SPOKE_STAT_CLOSED), 0);
	assert_int_equal(linkrig_stat(SPOKE_STAT_REQUESTS), 2 * CROWD);
	crowd_leaves();
}

TEST(whose_first_bytes_lie_unread_is_not_mute)
{
	const struct spoke_provider_options options = { .heartbeat_ns = INTERVAL };

	linkrig_provide("dubbo", &options);
	crowd_connects("dubbo");
	crowd_writes_in_time(240 * SECOND, heartbeat, WHOLE);
	assert_int_equal(linkrig_stat(SPOKE_STAT_CLOSED), 0);
	assert_int_equal(linkrig_stat(SPOKE_STAT_PROBES_READ), CROWD);
	crowd_leaves();
}

/* --- link events of users, and drain notices to peers */

#define TAKEN_BACK_MAX 100 /* maximum number of READONLY revocations */
/* --- READONLY and WRITABLE */

static void provide_and_speak(uint64_t heartbeat_ns)
{
	const struct spoke_provider_options options = { .heartbeat_ns = heartbeat_ns };

	linkrig_provide("dubbo", &options);
	linkrig_connect();
	linkrig_say(SPOKEI_PROBE);
	linkrig_pass(10 * TICK);
}

TEST(writable_after_readonly_is_reported_again)
{
	provide_and_speak(SPOKE_OFF);
	linkrig_say(SPOKEI_READONLY);
	linkrig_say(SPOKEI_WRITABLE); /* both are read at once */
	linkrig_pass(10 * TICK);
	linkrig_read();
	assert_int_equal(linkrig.read[SPOKEI_READONLY], 1);
	assert_int_equal(spoke_engine_drain(linkrig.engine, 60 * SECOND), SPOKE_OK);
	linkrig_pass(10 * TICK);
	linkrig_read();
	assert_int_equal(linkrig.read[SPOKEI_READONLY], 2);
	linkrig_say(SPOKEI_READONLY);
	linkrig_pass(10 * TICK);
	linkrig_read();
	assert_true(linkrig.conn.ended);
	peer_close(&linkrig.conn);
	linkrig_pass(10 * TICK);
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 1);
}

TEST(repeated_readonly_toggles_are_limited)
{
	const struct spokei_conn *conn;

	provide_and_speak(SPOKE_OFF);
	for (unsigned i = 0; i < 3 * TAKEN_BACK_MAX; i++) {
		linkrig_say(SPOKEI_READONLY);
		linkrig_say(SPOKEI_WRITABLE);
		linkrig_pass(TICK);
	}
	assert_int_equal(linkrig.told[SPOKE_LINK_READONLY], TAKEN_BACK_MAX + 1);
	assert_int_equal(linkrig.told[SPOKE_LINK_RECOVERED], TAKEN_BACK_MAX);
	assert_int_equal(linkrig_stat(SPOKE_STAT_RECOVERED), TAKEN_BACK_MAX);
	conn = spoke_container_of(linkrig.provider->link->conns.next, struct spokei_conn, node);
	assert_true(conn->readonly);
}

/* --- the user of the wheel that caused an event */

/* Returns the number of events of this user that contain the text. */
static unsigned count_events(enum spoke_event_user user, const char *text)
{
	struct spoke_event event = { 0 };
	unsigned count = 0;

	while (spoke_event_get(linkrig.engine, event.number + 1, &event) == SPOKE_OK)
		count += event.user == user && strstr(event.text, text) != NULL;
	return count;
}

TEST(provider_reports_each_missed_heartbeat)
{
	provide_and_speak(INTERVAL);
	assert_int_equal(linkrig.user, SPOKE_EVENT_OF_NONE);
	assert_true(linkrig_until(SPOKE_LINK_SUSPECT, SECOND));
	assert_int_equal(linkrig.user, SPOKE_EVENT_OF_HEARTBEAT);
	assert_true(linkrig_until(SPOKE_LINK_CLOSED, SECOND));
	assert_int_equal(linkrig.user, SPOKE_EVENT_OF_HEARTBEAT);
	assert_int_equal(count_events(SPOKE_EVENT_OF_HEARTBEAT, "heartbeat unanswered, 1 of 3"), 1);
	assert_int_equal(count_events(SPOKE_EVENT_OF_HEARTBEAT, "heartbeat unanswered, 2 of 3"), 1);
	assert_int_equal(count_events(SPOKE_EVENT_OF_HEARTBEAT, "heartbeat unanswered, 3 of 3"), 1);
	assert_int_equal(count_events(SPOKE_EVENT_OF_HEARTBEAT, "left three heartbeats"), 1);
}

TEST(close_by_peer_has_no_wheel_user)
{
	provide_and_speak(INTERVAL);
	peer_close(&linkrig.conn);
	assert_true(linkrig_until(SPOKE_LINK_CLOSED, SECOND));
	assert_int_equal(linkrig.user, SPOKE_EVENT_OF_NONE);
	assert_int_equal(count_events(SPOKE_EVENT_OF_NONE, " connected"), 1);
	assert_int_equal(count_events(SPOKE_EVENT_OF_NONE, " closed its connection"), 1);
}

TEST(provider_reports_its_drain)
{
	provide_and_speak(SPOKE_OFF);
	assert_int_equal(spoke_engine_drain(linkrig.engine, 60 * SECOND), SPOKE_OK);
	linkrig_pass(10 * TICK);
	assert_int_equal(count_events(SPOKE_EVENT_OF_NONE, "drain begins: 1 "), 1);
	linkrig_say(SPOKEI_READONLY);
	linkrig_pass(10 * TICK);
	peer_close(&linkrig.conn);
	assert_true(linkrig_until(SPOKE_LINK_CLOSED, SECOND));
	assert_int_equal(count_events(SPOKE_EVENT_OF_NONE, " sent a drain notice"), 1);
	assert_int_equal(count_events(SPOKE_EVENT_OF_NONE, "ended after a drain notice"), 1);
}

TEST(events_after_silence_are_attributed_to_heartbeats)
{
	static const enum spoke_link_change changes[] = { SPOKE_LINK_SUSPECT, SPOKE_LINK_CLOSED,
							  SPOKE_LINK_RECONNECTING,
							  SPOKE_LINK_PROBATION };
	const struct spoke_consumer_options options = { .heartbeat_ns = INTERVAL };

	linkrig_consume("dubbo", &options);
	linkrig_say(SPOKEI_PROBE);
	for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		if (linkrig.last != changes[i])
			assert_true(linkrig_until(changes[i], 10 * SECOND));
		assert_int_equal(linkrig.user, SPOKE_EVENT_OF_HEARTBEAT);
	}
	peer_close(&linkrig.conn);
	assert_true(linkrig_accept());
	linkrig_say(SPOKEI_PROBE_ANSWER);
	assert_true(linkrig_until(SPOKE_LINK_RECOVERED, SECOND));
	assert_int_equal(linkrig.user, SPOKE_EVENT_OF_HEARTBEAT);
}

/* --- RECOVERED */

TEST(a_link_that_is_still_read_only_has_not_recovered)
{
	provide_and_speak(INTERVAL);
	linkrig_say(SPOKEI_READONLY);
	assert_true(linkrig_until(SPOKE_LINK_SUSPECT, SECOND));
	linkrig_say(SPOKEI_PROBE);
	linkrig_pass(10 * TICK);
	assert_int_equal(linkrig.told[SPOKE_LINK_RECOVERED], 0);
	linkrig_say(SPOKEI_WRITABLE);
	linkrig_pass(10 * TICK);
	assert_int_equal(linkrig.told[SPOKE_LINK_RECOVERED], 1);
	assert_int_equal(linkrig_stat(SPOKE_STAT_RECOVERED), 1);
}

/* Goes on probation and becomes suspect again. The peer's own heartbeat is no answer. */
TEST(a_link_on_probation_recovers_by_an_answer)
{
	const struct spoke_consumer_options options = { .heartbeat_ns = INTERVAL };
	const struct spokei_connector *connector;

	linkrig_consume("dubbo", &options);
	linkrig_say(SPOKEI_PROBE);
	assert_true(linkrig_until(SPOKE_LINK_PROBATION, 10 * SECOND));
	peer_close(&linkrig.conn);
	assert_true(linkrig_accept());
	linkrig.told[SPOKE_LINK_SUSPECT] = 0;
	assert_true(linkrig_until(SPOKE_LINK_SUSPECT, SECOND));
	linkrig_say(SPOKEI_PROBE);
	linkrig_pass(10 * TICK);
	connector = linkrig.consumer->directory->candidates.endpoints[0]->lines[0].connector;
	assert_int_equal(spokei_connector_grade(connector), SPOKEI_GRADE_PROBATION);
	assert_int_equal(linkrig.told[SPOKE_LINK_RECOVERED], 0);
	assert_int_equal(linkrig_stat(SPOKE_STAT_RECOVERED), 0);
	linkrig_say(SPOKEI_PROBE_ANSWER);
	linkrig_pass(10 * TICK);
	assert_int_equal(spokei_connector_grade(connector), SPOKEI_GRADE_READY);
	assert_int_equal(linkrig.told[SPOKE_LINK_RECOVERED], 1);
	assert_int_equal(linkrig_stat(SPOKE_STAT_RECOVERED), 1);
}

/* Its heartbeats keep the connection busy, so that the idle check never asks. */
TEST(a_link_on_probation_is_asked_while_its_peer_sends)
{
	const struct spoke_consumer_options options = { .heartbeat_ns = INTERVAL };
	uint64_t asked;

	linkrig_consume("dubbo", &options);
	linkrig_say(SPOKEI_PROBE);
	assert_true(linkrig_until(SPOKE_LINK_PROBATION, 10 * SECOND));
	peer_close(&linkrig.conn);
	assert_true(linkrig_accept());
	asked = linkrig_stat(SPOKE_STAT_PROBES_WRITTEN);
	for (unsigned i = 1; i <= 5; i++) {
		linkrig_say(SPOKEI_PROBE);
		linkrig_pass(INTERVAL / 2);
		assert_int_equal(linkrig_stat(SPOKE_STAT_PROBES_WRITTEN), asked + i);
	}
	linkrig_say(SPOKEI_PROBE_ANSWER);
	linkrig_pass(10 * TICK);
	assert_int_equal(linkrig.told[SPOKE_LINK_RECOVERED], 1);
	asked = linkrig_stat(SPOKE_STAT_PROBES_WRITTEN);
	linkrig_say(SPOKEI_PROBE);
	linkrig_pass(INTERVAL / 2);
	assert_int_equal(linkrig_stat(SPOKE_STAT_PROBES_WRITTEN), asked);
}

/* The same bytes end the suspicion and the probation. */
TEST(answer_that_ends_both_is_reported_once)
{
	const struct spoke_consumer_options options = { .heartbeat_ns = INTERVAL };

	linkrig_consume("dubbo", &options);
	linkrig_say(SPOKEI_PROBE);
	assert_true(linkrig_until(SPOKE_LINK_PROBATION, 10 * SECOND));
	peer_close(&linkrig.conn);
	assert_true(linkrig_accept());
	assert_true(linkrig_until(SPOKE_LINK_SUSPECT, SECOND));
	linkrig_say(SPOKEI_PROBE_ANSWER);
	linkrig_pass(10 * TICK);
	assert_int_equal(linkrig.told[SPOKE_LINK_RECOVERED], 1);
	assert_int_equal(linkrig_stat(SPOKE_STAT_RECOVERED), 1);
}

/* --- CLOSED, of a consumer that ends */

static void free_engine(void)
{
	spoke_engine_free(linkrig.engine);
	linkrig.engine = NULL;
}

static void consume(void)
{
	const struct spoke_consumer_options options = { .heartbeat_ns = SPOKE_OFF };

	linkrig_consume("dubbo", &options);
	assert_int_equal(linkrig.told[SPOKE_LINK_CONNECTED], 1);
}

TEST(end_of_engine_is_reported)
{
	consume();
	free_engine();
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 1);
	assert_int_equal(linkrig.error, SPOKE_ECLOSED);
}

TEST(end_of_drain_is_reported)
{
	consume();
	assert_int_equal(spoke_engine_drain(linkrig.engine, 0), SPOKE_OK);
	linkrig_pass(SECOND);
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 1);
	assert_int_equal(linkrig.error, SPOKE_ECLOSED);
	free_engine();
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 1);
}

TEST(freeing_a_consumer_reports_no_events)
{
	consume();
	spoke_consumer_free(linkrig.consumer);
	linkrig_pass(SECOND);
	free_engine();
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 0);
}

static void free_consumer(const struct spoke_link_event *event)
{
	if (event->change == SPOKE_LINK_CLOSED)
		spoke_consumer_free(linkrig.consumer);
}

/* The consumer has two links, but reports only the first before it is freed. */
TEST(consumer_may_be_freed_in_its_last_event)
{
	static const char *const more[] = { "dubbo://" LINKRIG_AT "/demo.Echo" };
	const struct spoke_consumer_options options = {
		.heartbeat_ns = SPOKE_OFF,
		.more_urls = more,
		.more_count = 1,
	};

	linkrig_consume("dubbo", &options);
	assert_int_equal(linkrig.told[SPOKE_LINK_CONNECTED], 2);
	linkrig.then = free_consumer;
	free_engine();
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 1);
}
