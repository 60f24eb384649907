/* SPDX-License-Identifier: Apache-2.0 */
/* The late write of a former holder is refused by the provider that the next holder has called. */
#include "cluster/consumer/parts.h"
#include "tests/cluster/lease/leaserig.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <spoke/consumer.h>
#include <spoke/fence.h>
#include <spoke/provider.h>

#include <stdio.h>
#include <string.h>

#define AT "127.0.0.1:20880"

enum {
	TEXT = 128,
};

struct caller {
	struct spoke_consumer *consumer;
	struct spoke_method *write;
	unsigned ends;
	int error;
	char text[TEXT];
};

static struct {
	struct spokei_world_process process; /* of the provider */
	struct spoke_engine *engine;
	struct spoke_fence *fence;
	struct caller one;
	struct caller two;
	uint64_t written[8]; /* fence numbers, in the order of the handler */
	unsigned count;
} rig;

static void serve(struct spoke_request *request, void *arg)
{
	struct spoke_span name;

	(void)arg;
	assert_in_range(rig.count, 0, 7);
	assert_true(spoke_request_fence(request, &name, &rig.written[rig.count]));
	assert_int_equal(name.len, 7);
	assert_memory_equal(name.data, "reports", 7);
	rig.count++;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void provide(void)
{
	const struct spoke_fence_options required = { .required = true };
	const struct spoke_filter *filters[1];
	const struct spoke_provider_options options = { .filters = filters, .filter_count = 1 };
	const struct spoke_service_options service = { .name = "demo.Store" };
	const struct spoke_handler handler = { .method = "write", .handle = serve };
	struct spoke_provider *provider;

	spokei_world_process_init(&rig.process, &leaserig.world);
	assert_int_equal(spoke_engine_new(&(struct spoke_engine_options){ .env = &rig.process.env },
					  &rig.engine),
			 0);
	assert_int_equal(spoke_fence_new(&rig.process.env, &required, &rig.fence), 0);
	filters[0] = spoke_fence_filter(rig.fence);
	assert_int_equal(spoke_provider_new(rig.engine, &options, &provider), 0);
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(provider, "dubbo://" AT), 0);
}

static void consume(struct caller *caller, const struct leaserig_program *program)
{
	const struct spoke_consumer_options options = {
		.url = "dubbo://" AT "/demo.Store?timeout=60s&retries=3",
	};

	assert_int_equal(spoke_consumer_new(program->engine, &options, &caller->consumer), 0);
	assert_int_equal(spoke_consumer_method(caller->consumer, "write", NULL, &caller->write), 0);
}

static int set_up(void **state)
{
	memset(&rig, 0, sizeof(rig));
	if (leaserig_set_up(state))
		return -1;
	leaserig_join(&leaserig.two, NULL);
	provide();
	consume(&rig.one, &leaserig.one);
	consume(&rig.two, &leaserig.two);
	leaserig_pass(20 * MS);
	return 0;
}

static int tear_down(void **state)
{
	leaserig_leave(&leaserig.one);
	leaserig_leave(&leaserig.two);
	spoke_engine_free(rig.engine);
	spoke_fence_free(rig.fence);
	scene_leave(&rig.process, NULL, NULL);
	return leaserig_tear_down(state);
}

FIXTURE(set_up, tear_down);

static void note_end(void *arg, const struct spoke_result *result)
{
	struct caller *caller = arg;

	caller->ends++;
	caller->error = result->error;
	(void)snprintf(caller->text, sizeof(caller->text), "%.*s", (int)result->error_text.len,
		       (const char *)result->error_text.data);
}

static void call(struct caller *caller, struct spoke_lease lease)
{
	const struct spoke_call_options options = { .lease = lease };

	assert_int_equal(spoke_call(caller->write, (struct spoke_span){ NULL, 0 }, &options,
				    note_end, caller, NULL),
			 0);
}

/* Lets nothing through that the first program writes to the provider. */
static void cut_off(bool cut)
{
	const struct spokei_conn *conn = spoke_container_of(spokei_list_first(
								    &rig.one.consumer->link->conns),
							    struct spokei_conn, node);

	spokei_vnet_link(leaserig.world.net, conn->stream.watch.fd)->blackhole = cut;
}

TEST(late_write_of_a_former_holder_is_refused)
{
	struct leaserig_ask *former;
	struct leaserig_ask *next;

	former = leaserig_hold("reports");
	call(&rig.one, former->lease);
	leaserig_pass(10 * MS);
	assert_int_equal(rig.one.error, SPOKE_OK);
	/* Written under a lease that is held, but on its way for longer than the lease lasts. */
	cut_off(true);
	call(&rig.one, former->lease);
	leaserig_pass(10 * MS);
	spokei_world_hold(&leaserig.one.process, 40 * SECOND);
	next = leaserig_ask_with(&leaserig.two, "reports",
				 &(struct spoke_lease_options){ .wait_ns = 60 * SECOND });
	leaserig_pass(35 * SECOND);
	assert_int_equal(next->told, 1);
	assert_int_equal(next->error, SPOKE_OK);
	call(&rig.two, next->lease);
	leaserig_pass(10 * MS);
	assert_int_equal(rig.two.error, SPOKE_OK);
	cut_off(false);
	leaserig_pass(SECOND);
	/* It still arrives, but is not run. */
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_REQUESTS_FENCED), 1);
	assert_int_equal(rig.count, 2);
	assert_int_equal(rig.written[0], former->fence);
	assert_int_equal(rig.written[1], next->fence);
	assert_true(next->fence > former->fence);
	leaserig_pass(10 * SECOND);
	assert_int_equal(former->lost, 1);
	assert_int_equal(rig.one.ends, 2);
	leaserig_release(next);
	leaserig_pass(10 * MS);
}

TEST(frozen_holder_writes_nothing_when_it_wakes)
{
	struct leaserig_ask *former;
	struct leaserig_ask *next;

	former = leaserig_hold("reports");
	spokei_world_hold(&leaserig.one.process, 40 * SECOND);
	next = leaserig_ask_with(&leaserig.two, "reports",
				 &(struct spoke_lease_options){ .wait_ns = 60 * SECOND });
	leaserig_pass(35 * SECOND);
	assert_int_equal(next->error, SPOKE_OK);
	/* It wakes, and acts before its engine has begun a turn. */
	assert_int_equal(spoke_call(rig.one.write, (struct spoke_span){ NULL, 0 },
				    &(struct spoke_call_options){ .lease = former->lease },
				    note_end, &rig.one, NULL),
			 SPOKE_ELEASE);
	leaserig_pass(10 * SECOND);
	assert_int_equal(former->lost, 1);
	assert_int_equal(rig.count, 0);
	call(&rig.two, next->lease);
	leaserig_pass(10 * MS);
	assert_int_equal(rig.count, 1);
	leaserig_release(next);
	leaserig_pass(10 * MS);
}

/* Called as the first thing after the freeze. */
static void call_when_lost(struct leaserig_ask *ask)
{
	const struct spoke_call_options options = { .lease = ask->lease };

	if (ask->lost == 0)
		return;
	assert_int_equal(spoke_call(rig.one.write, (struct spoke_span){ NULL, 0 }, &options,
				    note_end, &rig.one, NULL),
			 SPOKE_ELEASE);
	rig.one.ends = 77;
}

TEST(callback_that_loses_the_lease_may_call_on)
{
	struct leaserig_ask *former;

	former = leaserig_hold("reports");
	former->then = call_when_lost;
	spokei_world_hold(&leaserig.one.process, 40 * SECOND);
	leaserig_pass(50 * SECOND);
	assert_int_equal(rig.one.ends, 77);
	assert_int_equal(rig.count, 0);
}
