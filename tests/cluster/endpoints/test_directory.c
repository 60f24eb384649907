/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of a registry: the providers that match, and endpoints that are added and removed. */
#include "tests/cluster/endpoints/dirrig.h"
#include "tests/support/test.h"

#include "core/engine/engine.h"

#include <inttypes.h>
#include <stdio.h>

static const struct spoke_consumer_options presets;

static void start(unsigned count, const char *parameters)
{
	for (unsigned i = 0; i < count; i++)
		dirrig_start(i);
	dirrig_consume(parameters, &presets);
}

static enum spoke_endpoint_state state_of(unsigned side)
{
	return dirrig_info(side).state;
}

/* --- adding and removing */

FIXTURE(dirrig_set_up, dirrig_tear_down);

/* The arrays grow for the longer list, although its other entries do not match. */
TEST(longer_list_of_same_providers_changes_nothing)
{
	static const char *const longer[] = {
		"dubbo://127.0.0.1:20880/demo.Echo",  "dubbo://127.0.0.1:20880/demo.Other",
		"dubbo://127.0.0.1:20881/demo.Other", "dubbo://127.0.0.1:20882/demo.Other",
		"dubbo://127.0.0.1:20883/demo.Other", "dubbo://127.0.0.1:20884/demo.Other",
		"dubbo://127.0.0.1:20885/demo.Other", "dubbo://127.0.0.1:20886/demo.Other",
		"dubbo://127.0.0.1:20887/demo.Other", NULL,
	};

	start(1, "");
	assert_int_equal(dirrig_list((const char *const[]){ longer[0], NULL }), 0);
	dirrig_pass(SECOND);
	assert_int_equal(dirrig_try(SECOND), 0);
	assert_int_equal(dirrig_list(longer), 0);
	assert_int_equal(dirrig_try(SECOND), 0);
}

TEST(empty_list_means_enoprovider)
{
	start(1, "");
	assert_int_equal(dirrig_try(SECOND), SPOKE_ENOPROVIDER);
}

TEST(added_providers_get_calls_and_removed_ones_do_not)
{
	start(3, "");
	LIST(A, B);
	dirrig_pass(10 * MS);
	assert_int_equal(spoke_consumer_ready(dirrig.consumer), 2);
	for (int i = 0; i < 4; i++)
		assert_int_equal(dirrig_call(), SPOKE_OK);
	assert_int_equal(dirrig_served(0), 2);
	assert_int_equal(dirrig_served(1), 2);
	LIST(B, C);
	dirrig_pass(10 * MS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(dirrig_call(), SPOKE_OK);
	assert_int_equal(dirrig_served(0), 0);
	assert_int_equal(dirrig_served(1), 2);
	assert_int_equal(dirrig_served(2), 2);
	assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0), 2);
}

TEST(unchanged_provider_keeps_connection)
{
	uint64_t connects;

	start(2, "");
	LIST(A "?timestamp=1&pid=7", B);
	dirrig_pass(10 * MS);
	connects = spoke_stat_get(dirrig.engine, SPOKE_STAT_CONNECTS);
	LIST(B, A "?timestamp=2&pid=8");
	dirrig_pass(SECOND);
	assert_int_equal(spoke_stat_get(dirrig.engine, SPOKE_STAT_CONNECTS), connects);
	assert_int_equal(dirrig.told[SPOKE_LINK_CLOSED], 0);
}

TEST(calls_in_flight_finish_at_removed_provider)
{
	start(2, "");
	dirrig.sides[0].mute = true;
	LIST(A);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_try(20 * SECOND), SPOKE_OK);
	assert_int_equal(dirrig_try(20 * SECOND), SPOKE_OK);
	dirrig_pass(10 * MS);
	LIST(B);
	assert_int_equal(state_of(0), SPOKE_ENDPOINT_REMOVED);
	assert_int_equal(dirrig_info(0).actives, 2);
	dirrig_pass(SECOND);
	assert_int_equal(dirrig_call(), SPOKE_OK);
	assert_int_equal(dirrig_served(1), 1);
	dirrig_answer(0);
	dirrig_pass(SECOND);
	assert_int_equal(dirrig.calls[0].error, SPOKE_OK);
	assert_int_equal(dirrig.calls[1].error, SPOKE_OK);
	/* The endpoint is gone now and its connection is closed. */
	assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0), 1);
	assert_int_equal(dirrig.consumer->link->conn_count, 1);
	assert_int_equal(dirrig.told[SPOKE_LINK_CLOSED], 1);
}

TEST(removed_provider_is_not_reconnected)
{
	uint64_t connects;

	start(1, "");
	dirrig.sides[0].mute = true;
	LIST(A, B);
	dirrig_pass(10 * MS);
	assert_int_equal(state_of(1), SPOKE_ENDPOINT_BACKOFF);
	assert_int_equal(dirrig_try(20 * SECOND), SPOKE_OK);
	dirrig_pass(10 * MS);
	LIST_NOBODY();
	connects = spoke_stat_get(dirrig.engine, SPOKE_STAT_CONNECTS);
	/* This also holds if the connection is lost before its calls have ended. */
	dirrig_stop(0);
	dirrig_pass(100 * SECOND);
	assert_int_equal(dirrig.calls[0].error, SPOKE_ELOST);
	assert_int_equal(spoke_stat_get(dirrig.engine, SPOKE_STAT_CONNECTS), connects);
	assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0), 0);
	assert_int_equal(dirrig.consumer->link->alive, 0);
}

TEST(queued_calls_fail_at_once_when_provider_is_removed)
{
	start(0, "");
	spokei_vnet_route(dirrig.world.net, "127.0.0.1:20880", SPOKEI_VNET_SILENT);
	LIST(A);
	assert_int_equal(state_of(0), SPOKE_ENDPOINT_CONNECTING);
	assert_int_equal(dirrig_try(20 * SECOND), SPOKE_OK);
	LIST_NOBODY();
	assert_int_equal(dirrig.calls[0].ends, 0);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig.calls[0].error, SPOKE_EUNAVAILABLE);
	assert_false(dirrig.calls[0].written);
	assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0), 0);
	assert_int_equal(dirrig_try(SECOND), SPOKE_ENOPROVIDER);
}

TEST(returning_provider_is_new_endpoint_while_old_drains)
{
	start(1, "");
	dirrig.sides[0].mute = true;
	LIST(A);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_try(20 * SECOND), SPOKE_OK);
	dirrig_pass(10 * MS);
	LIST_NOBODY();
	dirrig_pass(10 * MS);
	LIST(A);
	dirrig_pass(10 * MS);
	assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0), 2);
	assert_int_equal(state_of(0), SPOKE_ENDPOINT_READY);
	dirrig.sides[0].mute = false;
	assert_int_equal(dirrig_call(), SPOKE_OK);
	dirrig_answer(0);
	dirrig_pass(SECOND);
	assert_int_equal(dirrig.calls[0].error, SPOKE_OK);
	assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0), 1);
}

TEST(drain_waits_for_removed_providers)
{
	start(2, "");
	dirrig.sides[0].mute = true;
	LIST(A, B);
	dirrig_pass(10 * MS);
	for (int i = 0; i < 2; i++)
		assert_int_equal(dirrig_try(20 * SECOND), SPOKE_OK);
	dirrig_pass(10 * MS);
	LIST(B);
	assert_int_equal(spoke_engine_drain(dirrig.engine, 60 * SECOND), SPOKE_OK);
	dirrig_pass(SECOND);
	assert_false(dirrig.consumer->ended);
	dirrig_answer(0);
	dirrig_pass(SECOND);
	assert_true(dirrig.consumer->ended);
	assert_int_equal(dirrig.calls[0].error, SPOKE_OK);
	assert_int_equal(dirrig.calls[1].error, SPOKE_OK);
}

/* --- matching */

static void assert_listed(const char *parameters, const char *const *urls, size_t count)
{
	start(0, parameters);
	assert_int_equal(dirrig_list(urls), 0);
	dirrig_pass(10 * MS);
	assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0), count);
}

static const char *const versions[] = {
	A "?version=1.0", B "?version=2.0", C, D "?version=0.0.0", NULL,
};

TEST(no_version_matches_only_no_version)
{
	assert_listed("", versions, 2);
	assert_int_equal(state_of(2), SPOKE_ENDPOINT_BACKOFF);
	assert_int_equal(state_of(3), SPOKE_ENDPOINT_BACKOFF);
}

TEST(version_matches_only_itself)
{
	assert_listed("?version=2.0", versions, 1);
	assert_int_equal(state_of(1), SPOKE_ENDPOINT_BACKOFF);
}

TEST(wildcard_matches_any_version)
{
	assert_listed("?version=*", versions, 4);
}

/* Each provider is called with its own version. */
TEST(wildcard_version_calls_all_providers)
{
	dirrig.sides[0].version = "1.0";
	dirrig.sides[1].version = "2.0";
	start(3, "?version=*");
	LIST(A "?version=1.0", B "?version=2.0", C);
	dirrig_pass(10 * MS);
	for (int i = 0; i < 6; i++)
		assert_int_equal(dirrig_call(), SPOKE_OK);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(dirrig_served(i), 2);
	/* Another version at the same address is another provider, which A does not serve. */
	LIST(A "?version=3.0");
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), SPOKE_ENOSERVICE);
}

static const char *const groups[] = { A "?group=x", B "?group=y", C, NULL };

TEST(groups_match_like_versions)
{
	assert_listed("?group=x", groups, 1);
	assert_int_equal(state_of(0), SPOKE_ENDPOINT_BACKOFF);
}

TEST(no_group_matches_only_no_group)
{
	assert_listed("", groups, 1);
	assert_int_equal(state_of(2), SPOKE_ENDPOINT_BACKOFF);
}

TEST(urls_that_are_no_providers_are_ignored)
{
	static const char *const urls[] = {
		"tri://127.0.0.1:20880/demo.Echo",
		"dubbo://127.0.0.1:0/demo.Echo",
		"dubbo://127.0.0.1:20880/demo.Other",
		B "?category=consumers",
		C "?disabled=true",
		"empty://127.0.0.1:20880/demo.Echo?category=providers",
		"dubbo://127.0.0.1:20883/own.path?interface=demo.Echo&category=providers",
		NULL,
	};

	assert_listed("", urls, 1);
	assert_int_equal(state_of(3), SPOKE_ENDPOINT_BACKOFF);
}

/* --- weights */

TEST(newest_url_of_an_address_wins)
{
	static const char *const urls[] = {
		A "?timestamp=5&weight=1",
		A "?timestamp=7&weight=2",
		A "?timestamp=6&weight=3",
		NULL,
	};

	assert_listed("", urls, 1);
	assert_int_equal(dirrig_info(0).weight, 2);
}

TEST(valid_weights_are_used_and_invalid_ones_ignored)
{
	start(2, "");
	LIST(A "?weight=300", B "?weight=-5");
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_info(0).weight, 300);
	assert_int_equal(dirrig_info(1).weight, 100);
	for (int i = 0; i < 4; i++)
		assert_int_equal(dirrig_call(), SPOKE_OK);
	assert_int_equal(dirrig_served(0), 3);
	assert_int_equal(dirrig_served(1), 1);
	LIST(A "?weight=100", B "?weight=300");
	for (int i = 0; i < 4; i++)
		assert_int_equal(dirrig_call(), SPOKE_OK);
	assert_int_equal(dirrig_served(0), 1);
	assert_int_equal(dirrig_served(1), 3);
}

/* An invalid address is ignored, because a link to it could lead anywhere. */
TEST(admin_address_comes_from_list)
{
	start(3, "");
	LIST(A "?admin=127.0.0.1:9090", B "?admin=%5B::1%5D:1", C "?admin=evil.test/x:80");
	assert_string_equal(dirrig_info(0).admin, "127.0.0.1:9090");
	assert_string_equal(dirrig_info(1).admin, "[::1]:1");
	assert_string_equal(dirrig_info(2).admin, "");
	LIST(A "?admin=localhost:9091", B, C "?admin=javascript:alert(1)");
	assert_string_equal(dirrig_info(0).admin, "localhost:9091");
	assert_string_equal(dirrig_info(1).admin, "");
	assert_string_equal(dirrig_info(2).admin, "");
}

/* Warm-up uses the wall clock, which may differ from the provider's. */
TEST(recently_started_provider_warms_up)
{
	const struct spoke_env *env = &dirrig.process.env;
	uint64_t wall_ms;
	char young[128];
	char ahead[128];

	start(2, "");
	wall_ms = env->wall(env->ctx) / MS + 1000;
	(void)snprintf(young, sizeof(young), A "?warmup=100000&timestamp=%" PRIu64,
		       wall_ms - 20000);
	(void)snprintf(ahead, sizeof(ahead), B "?warmup=100000&timestamp=%" PRIu64,
		       wall_ms + 10000);
	dirrig_beat(SECOND);
	dirrig_pass(SECOND);
	LIST(young, ahead);
	assert_int_equal(dirrig_info(0).weight, 20);
	assert_int_equal(dirrig_info(1).weight, 1);
	dirrig_pass(30 * SECOND);
	assert_int_equal(dirrig_info(0).weight, 50);
	assert_int_equal(dirrig_info(1).weight, 20);
	/* The balancer uses the new weight. */
	for (int i = 0; i < 14; i++)
		assert_int_equal(dirrig_call(), SPOKE_OK);
	assert_int_equal(dirrig_served(0), 10);
	assert_int_equal(dirrig_served(1), 4);
	dirrig_pass(200 * SECOND);
	assert_int_equal(dirrig_info(0).weight, 100);
	assert_int_equal(dirrig_info(1).weight, 100);
	assert_int_equal(dirrig_call(), SPOKE_OK);
	assert_int_equal(dirrig.consumer->directory->candidates.weights[0], 100);
	assert_int_equal(dirrig.consumer->directory->candidates.weights[1], 100);
}

/* --- tried endpoints */

static uint32_t fresh_after(const uint64_t *tried, size_t count)
{
	uint32_t able;
	uint32_t fresh;

	spokei_engine_refresh(dirrig.engine);
	spokei_directory_count(dirrig.consumer->directory, NULL, tried, count, &able, &fresh);
	assert_int_equal(able, spokei_directory_listed(dirrig.consumer->directory));
	return fresh;
}

TEST(tried_endpoint_does_not_count_as_fresh)
{
	const struct spokei_candidates *candidates;
	uint64_t ids[10];

	start(3, "");
	LIST(A, B, C);
	dirrig_pass(10 * MS);
	candidates = &dirrig.consumer->directory->candidates;
	for (size_t i = 0; i < 10; i++)
		ids[i] = candidates->ids[1];
	assert_int_equal(fresh_after(NULL, 0), 3);
	assert_int_equal(fresh_after(ids, 1), 2);
	assert_int_equal(fresh_after(ids, 2), 2);
	assert_int_equal(fresh_after(ids, 10), 2);
	ids[0] = candidates->ids[2];
	assert_int_equal(fresh_after(ids, 8), 1);
	assert_int_equal(fresh_after(ids, 10), 1);
	LIST(C, A);
	dirrig_pass(10 * MS);
	assert_int_equal(fresh_after(ids + 1, 1), 2);
	assert_int_equal(fresh_after(ids, 2), 1);
}

/* Returns the id of the newest endpoint. */
static uint64_t newest_id(const struct spokei_candidates *candidates)
{
	uint64_t newest = 0;

	for (size_t place = 0; place < candidates->shown.count; place++)
		newest = candidates->ids[place] > newest ? candidates->ids[place] : newest;
	return newest;
}

/* Ids keep growing while few addresses are in use. */
TEST(endpoint_is_found_by_id_after_list_changes)
{
	const struct spokei_candidates *candidates;

	start(3, "");
	LIST(A, C, B);
	candidates = &dirrig.consumer->directory->candidates;
	for (int i = 0; i < 40; i++) {
		uint64_t gone = newest_id(candidates);

		LIST(A, C);
		dirrig_pass(10 * MS);
		assert_int_equal(fresh_after(&gone, 1), 2);
		LIST(C, B, A);
		dirrig_pass(10 * MS);
		for (size_t place = 0; place < 3; place++)
			assert_int_equal(fresh_after(&candidates->ids[place], 1), 2);
	}
}
