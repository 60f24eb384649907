/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider that listens at a port and at a path, a file as registry, and a consumer: on the same
 * host the path carries the calls, on another one TCP does.
 */
#include "core/virtual/files.h"
#include "core/virtual/world.h"
#include "tests/cluster/securerig.h"
#include "tests/support/test.h"

#include <spoke/spoke.h>

#include <string.h>

#define REGISTRY "/run/providers"
#define PORT "dubbo://127.0.0.1:20880"
#define PATH "unix:/run/demo.sock"

struct rig {
	struct spokei_world world;
	struct spokei_world_process server;
	struct spokei_world_process client;
	struct spoke_engine *serves; /* NULL: not started */
	struct spoke_engine *calls;
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	struct secure secure;
	int error;
	unsigned ends;
};

static struct rig rig;

STEP(set_up)
{
	memset(&rig, 0, sizeof(rig));
	assert_true(spokei_world_init(&rig.world, 3));
	spokei_world_process_init(&rig.server, &rig.world);
	spokei_world_process_init(&rig.client, &rig.world);
}

static void stop(void)
{
	spoke_engine_free(rig.serves);
	rig.serves = NULL;
}

STEP(tear_down)
{
	spoke_engine_free(rig.calls);
	stop();
	assert_int_equal(rig.client.blocks, 0);
	assert_int_equal(rig.server.blocks, 0);
	spokei_world_process_fini(&rig.server);
	spokei_world_process_fini(&rig.client);
	spokei_world_fini(&rig.world);
}

FIXTURE(set_up, tear_down);

static void pass(uint64_t ns)
{
	spokei_world_run(&rig.world, rig.world.now_ns + ns);
}

static void answer(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

/* Starts the provider; `port` and `path` may be NULL. */
static void serve(const char *port, const char *path, const struct spoke_tls_options *tls)
{
	const struct spoke_engine_options engine = { .env = &rig.server.env };
	const struct spoke_provider_options options = {
		.registry = "file://" REGISTRY,
		.tls = tls,
		.heartbeat_ns = SPOKE_OFF,
	};
	const struct spoke_service_options service = { .name = "demo.Echo" };
	const struct spoke_handler handler = { .method = "echo", .handle = answer };

	assert_int_equal(spoke_engine_new(&engine, &rig.serves), 0);
	assert_int_equal(spoke_provider_new(rig.serves, &options, &rig.provider), 0);
	assert_int_equal(spoke_provider_add(rig.provider, &service, &handler, 1), 0);
	if (port)
		assert_int_equal(spoke_provider_listen(rig.provider, port), 0);
	if (path)
		assert_int_equal(spoke_provider_listen(rig.provider, path), 0);
}

static void consume(const struct spoke_tls_options *tls)
{
	const struct spoke_engine_options engine = { .env = &rig.client.env };
	const struct spoke_consumer_options options = {
		.url = "consumer://any/demo.Echo?cluster=failfast&wait.ready=true&timeout=30s",
		.registry = "file://" REGISTRY,
		.tls = tls,
	};

	assert_int_equal(spoke_engine_new(&engine, &rig.calls), 0);
	assert_int_equal(spoke_consumer_new(rig.calls, &options, &rig.consumer), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", NULL, &rig.echo), 0);
}

static void done(void *arg, const struct spoke_result *result)
{
	(void)arg;
	rig.error = result->error;
	rig.ends++;
}

/* Makes a call, which succeeds by this way. */
static void assert_call(bool local)
{
	struct spoke_endpoint_info info;
	unsigned before = rig.ends;

	assert_int_equal(spoke_call(rig.echo, (struct spoke_span){ NULL, 0 }, NULL, done, NULL,
				    NULL),
			 0);
	for (unsigned i = 0; i < 300 && rig.ends == before; i++)
		pass(100 * MS);
	assert_int_equal(rig.ends, before + 1);
	assert_int_equal(rig.error, SPOKE_OK);
	assert_int_equal(spoke_consumer_endpoints(rig.consumer, &info, 1), 1);
	assert_string_equal(info.name, "127.0.0.1:20880");
	assert_int_equal(info.local, local);
}

TEST(path_of_the_same_host_carries_the_calls)
{
	serve(PORT, PATH, NULL);
	consume(NULL);
	assert_call(true);
}

TEST(path_of_another_host_is_not_tried)
{
	rig.client.host_id = 7;
	serve(PORT, PATH, NULL);
	consume(NULL);
	assert_call(false);
	assert_int_equal(spoke_stat_get(rig.calls, SPOKE_STAT_LOCAL_FAILED), 0);
}

/* E.g. in containers that share a folder: the path leads to another provider there. */
TEST(same_path_on_another_host_is_another_provider)
{
	const struct spoke_engine_options engine = { .env = &rig.client.env };
	struct spoke_provider *other;

	rig.client.host_id = 7;
	serve(PORT, NULL, NULL);
	assert_int_equal(spoke_provider_listen(rig.provider, "unix:/run/here.sock"), 0);
	consume(NULL);
	(void)engine;
	assert_int_equal(spoke_provider_new(rig.calls, NULL, &other), 0);
	assert_int_equal(spoke_provider_listen(other, "unix:/run/demo.sock"), 0);
	assert_call(false);
	assert_int_equal(spoke_provider_connections(other), 0);
}

TEST(path_goes_and_comes_back)
{
	serve(PORT, PATH, NULL);
	consume(NULL);
	assert_call(true);
	/* The next process does not listen there, but its predecessor's entry may be read. */
	spokei_vnet_route(rig.world.net, PATH, SPOKEI_VNET_REFUSE);
	stop();
	pass(SECOND); /* the consumer notices */
	serve(PORT, PATH, NULL);
	assert_call(false);
	spokei_vnet_route(rig.world.net, PATH, SPOKEI_VNET_NORMAL);
	assert_call(false); /* a connection that works stays */
	stop();
	pass(SECOND); /* the consumer notices */
	serve(PORT, PATH, NULL);
	assert_call(true);
}

TEST(consumer_with_tls_uses_the_port)
{
	if (!secure_begin(&rig.secure, &rig.world, "/tls"))
		skip();
	serve(PORT, PATH "?tls=off", &rig.secure.provider);
	consume(&rig.secure.consumer);
	assert_call(false);
	assert_int_equal(spoke_stat_get(rig.calls, SPOKE_STAT_CONNECTS_SECURED), 1);
	assert_int_equal(spoke_stat_get(rig.calls, SPOKE_STAT_LOCAL_FAILED), 0);
}

TEST(path_where_tls_is_spoken_is_not_published)
{
	struct spoke_endpoint_info infos[2];

	if (!secure_begin(&rig.secure, &rig.world, "/tls"))
		skip();
	serve(PORT "?tls=off", PATH, &rig.secure.provider);
	consume(NULL);
	pass(SECOND);
	/* It has an entry of its own, as without a port. */
	assert_int_equal(spoke_consumer_endpoints(rig.consumer, infos, 2), 2);
	assert_false(infos[0].local);
	assert_false(infos[1].local);
}
