/* SPDX-License-Identifier: Apache-2.0 */
/* A provider whose caller ends while its requests are being served. */
#include "tests/cluster/scenarios/linkrig.h"
#include "tests/support/test.h"
#include "transport/codec/codec.h"

#include <stdio.h>

#define MARK (UINT64_C(0x73706f6b) << 32) /* ids of spoke's consumers, see WIRE.md */

static void put(enum spokei_kind kind, uint64_t id, bool two_way)
{
	const struct spokei_message message = {
		.kind = kind,
		.codec = SPOKEI_CODEC_MSGPACK,
		.id = id,
		.two_way = two_way,
		.service = { "demo.Echo", 9 },
		.method = { "later", 5 },
	};

	peer_put(&linkrig.conn, &message);
	assert_int_equal(peer_write(&linkrig.conn, SIZE_MAX), 0);
	linkrig_pass(2 * TICK);
}

static void half_close(void)
{
	const struct spoke_env *env = &linkrig.peer.process.env;

	assert_int_equal(env->net->shut(env->ctx, linkrig.conn.fd), 0);
	linkrig_pass(2 * TICK);
}

/* Lets a peer whose first heartbeat has this id send a request and half-close. */
static void begin(uint64_t half_close_ns, uint64_t id, bool two_way)
{
	const struct spoke_provider_options options = { .heartbeat_ns = SPOKE_OFF,
							.half_close_ns = half_close_ns };

	linkrig_provide("dubbo", &options);
	linkrig_connect();
	put(SPOKEI_PROBE, id, true);
	put(SPOKEI_REQUEST, id + 1, two_way);
	assert_non_null(linkrig.held);
	half_close();
}

FIXTURE(linkrig_set_up, linkrig_tear_down);

TEST(end_of_a_consumer_of_spoke_abandons_its_requests)
{
	begin(0, MARK | 0xfffffffe, true);
	assert_int_equal(linkrig.abandoned, 1);
	assert_int_equal(linkrig_stat(SPOKE_STAT_REQUESTS_ABANDONED), 1);
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 1);
}

TEST(foreign_caller_that_half_closes_is_served)
{
	begin(0, 7, true);
	linkrig_pass(59 * SECOND);
	assert_int_equal(linkrig.abandoned, 0);
	linkrig_answer();
	linkrig_pass(2 * TICK);
	linkrig_read();
	assert_int_equal(linkrig.read[SPOKEI_REPLY], 1);
}

TEST(foreign_caller_is_served_for_half_close_only)
{
	begin(2 * SECOND, 7, true);
	linkrig_pass(2 * SECOND - 5 * TICK);
	assert_int_equal(linkrig.abandoned, 0);
	linkrig_pass(10 * TICK);
	assert_int_equal(linkrig.abandoned, 1);
}

TEST(half_close_off_takes_every_fin_as_an_end)
{
	begin(SPOKE_OFF, 7, true);
	assert_int_equal(linkrig.abandoned, 1);
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 1);
}

TEST(one_way_request_goes_on_after_its_caller)
{
	begin(0, MARK, false);
	linkrig_pass(59 * SECOND);
	assert_int_equal(linkrig.abandoned, 0);
	linkrig_answer();
	linkrig_pass(2 * TICK);
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 1);
}

/* --- a consumer in another process */

static struct {
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
} caller;

static void call_later(const char *scheme)
{
	const struct spoke_engine_options options = { .env = &caller.process.env };
	const struct spoke_call_options call = { .timeout_ns = 600 * SECOND };
	struct spoke_consumer_options with = { .heartbeat_ns = SPOKE_OFF };
	struct spoke_method *method;
	char url[64];

	(void)snprintf(url, sizeof(url), "%s://" LINKRIG_AT "/demo.Echo", scheme);
	with.url = url;
	spokei_world_process_init(&caller.process, &linkrig.world);
	assert_int_equal(spoke_engine_new(&options, &caller.engine), SPOKE_OK);
	assert_int_equal(spoke_consumer_new(caller.engine, &with, &caller.consumer), SPOKE_OK);
	assert_int_equal(spoke_consumer_method(caller.consumer, "later", NULL, &method), SPOKE_OK);
	linkrig_pass(10 * TICK);
	assert_int_equal(spoke_call(method, (struct spoke_span){ NULL, 0 }, &call, NULL, NULL,
				    NULL),
			 SPOKE_OK);
	linkrig_pass(10 * TICK);
	assert_non_null(linkrig.held);
}

static void end_caller(void)
{
	spoke_engine_free(caller.engine);
	spokei_world_process_fini(&caller.process);
}

/* The descriptors are closed without a notice, as by the system when a process is killed. */
TEST(killed_caller_is_noticed_at_once)
{
	const struct spoke_provider_options options = { .heartbeat_ns = 60 * SECOND };

	linkrig_provide("dubbo", &options);
	call_later("dubbo");
	end_caller();
	linkrig_pass(5 * TICK);
	assert_int_equal(linkrig.abandoned, 1);
}

/* Without heartbeats nothing tells a consumer of spoke from Neovim, which may half-close. */
TEST(half_close_ends_requests_of_killed_caller_without_heartbeats)
{
	const struct spoke_provider_options options = { .half_close_ns = 10 * MS,
							.default_service = "demo.Echo" };

	linkrig_provide("dubbo", &options);
	call_later("msgpack-rpc");
	end_caller();
	linkrig_pass(5 * TICK);
	assert_int_equal(linkrig.abandoned, 0);
	linkrig_pass(20 * TICK);
	assert_int_equal(linkrig.abandoned, 1);
}
