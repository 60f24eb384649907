/* SPDX-License-Identifier: Apache-2.0 */
/* Providers that step aside and come back, on every network and wire. */
#include "tests/cluster/stage.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <string.h>

#define MS UINT64_C(1000000)
#define SOON (20 * MS)

static enum spoke_endpoint_state state_of(const struct stage *stage, size_t index)
{
	struct spoke_endpoint_info infos[STAGE_PLACES];

	assert_true(spoke_consumer_endpoints(stage->consumer, infos, STAGE_PLACES) > index);
	return infos[index].state;
}

/* MessagePack-RPC has no such notice. */
static enum spoke_endpoint_state aside(const struct stage *stage)
{
	return stage->setting->dubbo ? SPOKE_ENDPOINT_READONLY : SPOKE_ENDPOINT_READY;
}

static void echo(struct stage *stage, const char *text)
{
	struct spoke_method *method = stage_method(stage, "echo");

	stage_assert_text(stage_end_of(stage, stage_call(stage, method, stage_text(stage, text))),
			  text);
}

/* Steps, and waits until the consumer knows. */
static void go(struct stage *stage, bool online)
{
	enum spoke_endpoint_state wanted = online ? SPOKE_ENDPOINT_READY : aside(stage);

	assert_int_equal(online ? spoke_provider_online(stage->provider)
				: spoke_provider_offline(stage->provider),
			 SPOKE_OK);
	assert_int_equal(spoke_provider_is_online(stage->provider), online);
	for (unsigned i = 0; i < 3000 && state_of(stage, 0) != wanted; i++)
		stage_pass(stage, SOON);
	assert_int_equal(state_of(stage, 0), wanted);
}

RUNNER(stage_run);

STAGE_TEST(consumer_avoids_offline_provider_until_it_is_back)
{
	echo(stage, "before");
	go(stage, false);
	assert_int_equal(state_of(stage, 0), aside(stage));
	if (stage->setting->dubbo)
		assert_int_equal(stage_try(stage, stage_method(stage, "echo"),
					   stage_text(stage, "x"), NULL),
				 SPOKE_EUNAVAILABLE);
	go(stage, true);
	assert_int_equal(state_of(stage, 0), SPOKE_ENDPOINT_READY);
	echo(stage, "after");
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_CLOSED), 0);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CLOSED), 0);
}

STAGE_TEST(offline_provider_answers_requests_in_service)
{
	struct spoke_method *later = stage_method(stage, "later");
	struct stage_call *call = stage_call(stage, later, stage_text(stage, "held"));

	stage_until_held(stage, 1);
	go(stage, false);
	/* Longer than the time after which a drained connection is closed. */
	stage_pass(stage, 400 * MS);
	assert_int_equal(call->ends, 0);
	stage_answer(stage, 0);
	stage_assert_text(stage_end_of(stage, call), "held");
	stage_pass(stage, 400 * MS);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CLOSED), 0);
}

STAGE_TEST(offline_provider_answers_request_that_crossed_the_notice)
{
	struct spoke_method *method = stage_method(stage, "echo");
	struct stage_call *call;

	echo(stage, "before");
	assert_int_equal(spoke_provider_offline(stage->provider), SPOKE_OK);
	call = stage_call(stage, method, stage_text(stage, "crossed"));
	stage_assert_text(stage_end_of(stage, call), "crossed");
}

BARE_STAGE_TEST(new_connection_of_offline_provider_is_told)
{
	const struct spoke_provider_options options = { .offline = true };

	stage_provide(stage, &options);
	assert_false(spoke_provider_is_online(stage->provider));
	stage_consume(stage, NULL);
	for (unsigned i = 0; i < 500 && state_of(stage, 0) != aside(stage); i++)
		stage_pass(stage, SOON);
	assert_int_equal(state_of(stage, 0), aside(stage));
	go(stage, true);
	stage_until_ready(stage, 1);
	echo(stage, "online");
}

BARE_STAGE_TEST(register_delay_ends_by_itself)
{
	const struct spoke_provider_options options = { .register_delay_ns = 300 * MS };

	stage_provide(stage, &options);
	assert_false(spoke_provider_is_online(stage->provider));
	stage_consume(stage, NULL);
	stage_pass(stage, 600 * MS);
	assert_true(spoke_provider_is_online(stage->provider));
	stage_until_ready(stage, 1);
	echo(stage, "online");
}

BARE_STAGE_TEST(offline_ends_register_delay)
{
	const struct spoke_provider_options options = { .register_delay_ns = 100 * MS };

	stage_provide(stage, &options);
	assert_int_equal(spoke_provider_offline(stage->provider), SPOKE_OK);
	stage_pass(stage, 300 * MS);
	assert_false(spoke_provider_is_online(stage->provider));
}

BARE_STAGE_TEST(register_delay_is_ignored_by_an_offline_provider)
{
	const struct spoke_provider_options options = { .offline = true,
							.register_delay_ns = 100 * MS };

	stage_provide(stage, &options);
	assert_int_equal(scene_events(stage->server_engine, "register.delay is not followed"), 1);
	stage_pass(stage, 300 * MS);
	assert_false(spoke_provider_is_online(stage->provider));
}

STAGE_TEST(drain_of_offline_provider_closes_its_connections)
{
	echo(stage, "before");
	go(stage, false);
	assert_int_equal(spoke_engine_drain(stage->server_engine, 10000 * MS), SPOKE_OK);
	stage_pass(stage, 2000 * MS);
	assert_int_equal(spoke_provider_online(stage->provider), SPOKE_ECLOSED);
	assert_int_equal(spoke_provider_offline(stage->provider), SPOKE_ECLOSED);
	assert_int_equal(spoke_provider_connections(stage->provider), 0);
	assert_int_not_equal(state_of(stage, 0), SPOKE_ENDPOINT_READY);
}

/* The end of the stage frees it in the turn of the drain. */
STAGE_TEST(provider_freed_before_its_drain_leaves_no_timer)
{
	echo(stage, "before");
	go(stage, false);
	assert_int_equal(spoke_engine_drain(stage->server_engine, 10000 * MS), SPOKE_OK);
}

/* Consumers count the notices of a minute, and do not believe the later ones. */
STAGE_TEST(provider_that_toggles_too_often_ends_writable)
{
	echo(stage, "before");
	for (unsigned i = 0; i < 150; i++) {
		assert_int_equal(spoke_provider_offline(stage->provider), SPOKE_OK);
		assert_int_equal(spoke_provider_online(stage->provider), SPOKE_OK);
	}
	stage_pass(stage, SOON);
	assert_int_equal(state_of(stage, 0), SPOKE_ENDPOINT_READY);
	assert_int_equal(spoke_provider_offline(stage->provider), SPOKE_OK);
	stage_pass(stage, SOON);
	assert_int_equal(state_of(stage, 0), SPOKE_ENDPOINT_READY);
	go(stage, true);
	echo(stage, "after");
}
