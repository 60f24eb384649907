/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider and a consumer that find each other through a real ZooKeeper, which fails in
 * different ways.
 */
#define _GNU_SOURCE
#include "tests/integration/zoorig.h"
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * --- A provider and a consumer that find each other through a real ZooKeeper, which fails in
 * between
 */

static struct spoke_provider *provider;

static struct spoke_consumer *consumer;

static struct spoke_method *echo;

static unsigned ended;

static int last_error;

static void serve(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void note_end(void *arg, const struct spoke_result *result)
{
	(void)arg;
	ended++;
	last_error = result->error;
}

/* The consumer starts first, so the newest session is the provider's. */
static void begin(void)
{
	char registry[64];
	const struct spoke_consumer_options consumes = { .url = "consumer://any/" SERVICE,
							 .registry = registry,
							 .wait_ready = true };
	const struct spoke_provider_options provides = { .registry = registry };
	const struct spoke_service_options service = { .name = SERVICE };
	const struct spoke_handler handler = { .method = "echo", .handle = serve };

	(void)snprintf(registry, sizeof(registry), "zookeeper://127.0.0.1:%u", zooserver_port());
	assert_int_equal(spoke_consumer_new(rig.engine, &consumes, &consumer), 0);
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &echo), 0);
	zoorig_turn();
	assert_int_equal(spoke_provider_new(rig.engine, &provides, &provider), 0);
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(provider, "dubbo://127.0.0.1:0"), 0);
	zoorig_until(spoke_provider_registered(provider, NULL) == 1);
	zoorig_until(spoke_consumer_ready(consumer) == 1);
	assert_int_equal(zoostranger_count(FOLDER), 1);
}

static void end(void)
{
	spoke_consumer_free(consumer);
	spoke_provider_free(provider);
}

static void call(void)
{
	unsigned before = ended;

	zoorig_catch_up();
	assert_int_equal(spoke_call(echo, (struct spoke_span){ NULL, 0 }, NULL, note_end, NULL,
				    NULL),
			 0);
	zoorig_until(ended == before + 1);
	assert_int_equal(last_error, 0);
}

NEEDS(zooserver_absent);

GROUP(zoorig_set_up_all, zoorig_tear_down_all);

FIXTURE(zoorig_set_up, zoorig_tear_down);

TEST(they_meet_and_part)
{
	begin();
	call();
	spoke_provider_free(provider);
	provider = NULL;
	zoorig_until(zoostranger_count(FOLDER) == 0);
	end();
}

TEST(expired_session_is_replaced_with_the_same_listing)
{
	int64_t session;

	begin();
	session = zoorig_session();
	zoostranger_ends_session();
	zoorig_until(zoorig_session() != session);
	zoorig_until(zoostranger_count(FOLDER) == 1 &&
		     spoke_provider_registered(provider, NULL) == 1);
	call();
	assert_int_equal(zoostranger_count(FOLDER), 1);
	end();
}

#define CONDITIONS "/dubbo/config/dubbo/" SERVICE "::.condition-router"

/* Makes calls until they end like this. */
static void call_until(int error)
{
	do {
		unsigned before = ended;

		zoorig_catch_up();
		last_error = spoke_call(echo, (struct spoke_span){ NULL, 0 }, NULL, note_end, NULL,
					NULL);
		zoorig_until(last_error || ended == before + 1);
		zoorig_turn();
	} while (last_error != error);
}

TEST(rule_of_conditions_applies_until_it_is_removed)
{
	begin();
	call();
	(void)zoostranger_create("/dubbo/config", "", 0);
	(void)zoostranger_create("/dubbo/config/dubbo", "", 0);
	assert_int_equal(zoostranger_create(CONDITIONS, "{force: true, conditions: ['=> port=1']}",
					    0),
			 0);
	call_until(SPOKE_ENOPROVIDER);
	assert_int_equal(zoostranger_write(CONDITIONS, "conditions: ['=> port!=1']"), 0);
	call_until(SPOKE_OK);
	assert_int_equal(zoostranger_write(CONDITIONS, "conditions: ['method=echo =>']"), 0);
	call_until(SPOKE_ENOPROVIDER);
	assert_int_equal(zoostranger_delete(CONDITIONS), 0);
	call_until(SPOKE_OK);
	end();
}

TEST(removed_node_is_created_again)
{
	begin();
	zoostranger_clears(FOLDER);
	zoorig_until(spoke_provider_registered(provider, NULL) == 0);
	zoorig_until(spoke_provider_registered(provider, NULL) == 1);
	assert_int_equal(zoostranger_count(FOLDER), 1);
	call();
	end();
}

TEST(unreachable_server_removes_no_provider)
{
	begin();
	zooserver_kill();
	zoorig_until(zoorig_said("connection lost"));
	call();
	zooserver_revive();
	zoorig_until(zoostranger_count(FOLDER) == 1 &&
		     spoke_provider_registered(provider, NULL) == 1);
	call();
	assert_int_equal(spoke_consumer_ready(consumer), 1);
	end();
}

/*
 * --- A provider and its consumer with a real ZooKeeper that fails in different ways: the
 * provider is listed again exactly once, and calls succeed throughout
 */

#define RETRY_NS UINT64_C(300000000)

static struct {
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	zhandle_t *provider_zh; /* the provider's session */
	int64_t session;
	char registry[64];
	unsigned calls; /* number of ended calls */
	int error;
} scene;

static void zookeeper_again_serve(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value text = { NULL, 0 };

	(void)arg;
	(void)!spoke_cursor_next(&args, &text);
	spoke_reply(request, text);
}

static void provide(void)
{
	const struct spoke_provider_options options = { .registry = scene.registry,
							.registry_retry_ns = RETRY_NS };
	const struct spoke_service_options service = { .name = SERVICE };
	const struct spoke_handler handler = { .method = "echo", .handle = zookeeper_again_serve };

	assert_int_equal(spoke_provider_new(rig.engine, &options, &scene.provider), 0);
	assert_int_equal(spoke_provider_add(scene.provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(scene.provider, "dubbo://127.0.0.1:0"), 0);
}

static void consume(void)
{
	const struct spoke_consumer_options options = { .url = "consumer://any/" SERVICE,
							.registry = scene.registry };

	assert_int_equal(spoke_consumer_new(rig.engine, &options, &scene.consumer), 0);
	assert_int_equal(spoke_consumer_method(scene.consumer, "echo", NULL, &scene.echo), 0);
}

static void called(void *arg, const struct spoke_result *result)
{
	(void)arg;
	scene.calls++;
	scene.error = result->error;
}

static void assert_a_call_works(void)
{
	static const unsigned char hello[] = { 0xa5, 'h', 'e', 'l', 'l', 'o' };
	const struct spoke_span args = { hello, sizeof(hello) };
	unsigned calls = scene.calls;

	zoorig_catch_up();
	assert_int_equal(spoke_call(scene.echo, args, NULL, called, NULL, NULL), 0);
	zoorig_until(scene.calls > calls);
	assert_int_equal(scene.error, 0);
}

/* Returns the only node's name and its session. */
static bool is_listed_once(void)
{
	char path[URL_SIZE];
	const char *names;

	if (spoke_provider_registered(scene.provider, NULL) != 1 || zoostranger_count(FOLDER) != 1)
		return false;
	names = zoostranger_list(FOLDER);
	(void)snprintf(path, sizeof(path), FOLDER "/%.*s", (int)strcspn(names, "\n"), names);
	return zoostranger_owner(path, &scene.session) == ZOK &&
	       scene.session == zoo_client_id(scene.provider_zh)->client_id;
}

/* The test's state: parameters of the registry's URL, or NULL. */
static int set_up(void **state)
{
	const char *parameters = *state ? *state : "";
	int error = zoorig_set_up(state);

	memset(&scene, 0, sizeof(scene));
	(void)snprintf(scene.registry, sizeof(scene.registry), "zookeeper://127.0.0.1:%u%s",
		       (unsigned)zooserver_port(), parameters);
	provide();
	zoorig_until(spoke_provider_registered(scene.provider, NULL) == 1);
	scene.provider_zh = rig.theirs;
	zoorig_until(is_listed_once());
	consume();
	zoorig_until(spoke_consumer_ready(scene.consumer) == 1);
	assert_a_call_works();
	return error;
}

static int tear_down(void **state)
{
	spoke_consumer_free(scene.consumer);
	spoke_provider_free(scene.provider);
	zoorig_until(zoostranger_count(FOLDER) == 0);
	return zoorig_tear_down(state);
}

FIXTURE(set_up, tear_down);

static char short_sessions[] = "?session=1s";

TEST(provider_is_called_and_listed_during_zookeeper_restart)
{
	int64_t session = scene.session;

	zooserver_kill();
	zoorig_until(zoorig_said("connection lost"));
	for (unsigned i = 0; i < 10; i++)
		assert_a_call_works();
	zooserver_revive();
	zoorig_until(is_listed_once());
	assert_int_equal(scene.session, session);
	assert_a_call_works();
}

/* The server silently rejects earlier sessions. */
TEST(provider_is_listed_again_after_zookeeper_lost_its_data, .initial = short_sessions)
{
	zhandle_t *before = scene.provider_zh;

	rig.theirs = before;
	zoostranger_leaves(); /* it would be rejected as well */
	zooserver_kill();
	zooserver_forget();
	zooserver_revive();
	zoorig_until(rig.theirs != before);
	zoorig_until(spoke_provider_registered(scene.provider, NULL) == 1 &&
		     zoostranger_count(FOLDER) == 1);
	zoorig_until(spoke_consumer_ready(scene.consumer) == 1);
	assert_a_call_works();
}

TEST(provider_is_listed_again_after_its_session_expired)
{
	zhandle_t *before = scene.provider_zh;

	rig.theirs = before;
	zoostranger_ends_session();
	zoorig_until(rig.theirs != before);
	scene.provider_zh = rig.theirs;
	zoorig_until(is_listed_once());
	zoorig_until(spoke_consumer_ready(scene.consumer) == 1);
	assert_a_call_works();
}

TEST(provider_is_listed_again_after_its_node_was_removed)
{
	for (unsigned i = 0; i < 3; i++) {
		zoostranger_clears("/dubbo");
		zoorig_until(is_listed_once());
		assert_a_call_works();
	}
}

TEST(provider_replaces_the_node_of_its_former_session)
{
	char path[URL_SIZE];
	char *names = strdup(zoostranger_list(FOLDER));
	size_t place;

	assert_non_null(names);
	/* Former nodes: an older one of the same address, and the identical one. */
	place = (size_t)(strstr(names, "%3F") - names);
	(void)snprintf(path, sizeof(path), FOLDER "/%.*s%%3Ftimestamp%%3D1", (int)place, names);
	zoostranger_leaves_behind(path);
	(void)snprintf(path, sizeof(path), FOLDER "/%.*s", (int)strcspn(names, "\n"), names);
	assert_int_equal(zoostranger_delete(path), ZOK);
	zoostranger_leaves_behind(path);
	zoorig_until(is_listed_once());
	zoorig_until(spoke_consumer_ready(scene.consumer) == 1);
	free(names);
	assert_a_call_works();
}
