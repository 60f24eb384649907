/* SPDX-License-Identifier: Apache-2.0 */
/* Link events of users, and drain notices to peers. */
#include "cluster/consumer/parts.h"
#include "cluster/endpoints/directory.h"
#include "cluster/provider/parts.h"
#include "tests/cluster/scenarios/linkrig.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <string.h>

#define INTERVAL (100 * MS)
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

FIXTURE(linkrig_set_up, linkrig_tear_down);

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
