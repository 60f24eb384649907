/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider and a consumer that find each other through a real ZooKeeper, which fails in between.
 */
#include "tests/integration/zoorig.h"
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>

#include <stdio.h>
#include <string.h>

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
