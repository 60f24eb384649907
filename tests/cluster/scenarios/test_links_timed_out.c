/* SPDX-License-Identifier: Apache-2.0 */
/* Timeouts of peers in an engine whose turns are always late, and idle peers that are kept. */
#include "tests/cluster/scenarios/linkrig.h"
#include "tests/support/test.h"
#include "transport/wire/catalog.h"

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

FIXTURE(linkrig_set_up, linkrig_tear_down);

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
