/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of joined providers: see joinrig.h. */
#include "tests/cluster/provider/joinrig.h"
#include "tests/support/scene.h"

#include <stdio.h>
#include <string.h>

struct joinrig joinrig;

static void serve(struct spoke_request *request, void *arg)
{
	struct joinrig_side *side = arg;

	side->served++;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

RIG_STEP(joinrig_set_up)
{
	memset(&joinrig, 0, sizeof(joinrig));
	scene_open(&joinrig.world, 11);
	joinrig.engine = scene_engine(&joinrig.world, &joinrig.client, NULL, NULL);
	for (unsigned i = 0; i < ENGINES; i++) {
		struct joinrig_side *side = &joinrig.sides[i];

		spokei_world_process_init(&side->process, &joinrig.world);
		side->process.user.house = &joinrig;
		spokei_faults_init(&side->faulty, &side->process.env);
		side->faulty.trades = true;
	}
}

RIG_STEP(joinrig_tear_down)
{
	unsigned user_fds = 0;
	size_t fds = 0;

	scene_leave(&joinrig.client, NULL, &joinrig.engine);
	for (unsigned i = 0; i < ENGINES; i++)
		joinrig_end(i);
	for (unsigned i = 0; i < ENGINES; i++) {
		struct joinrig_side *side = &joinrig.sides[i];

		assert_int_equal(side->faulty.blocks, 0);
		/* One process may close a descriptor that another one accepted. */
		fds += side->faulty.fds;
		user_fds += side->process.user.fds;
		spokei_world_process_fini(&side->process);
	}
	assert_int_equal(fds, 0);
	assert_int_equal(user_fds, 0);
	for (unsigned i = 0; i < joinrig.count; i++)
		assert_int_equal(joinrig.callers[i].ends, joinrig.callers[i].begun);
	spokei_world_fini(&joinrig.world);
}

void joinrig_provide(unsigned at, const struct spoke_provider_options *options)
{
	struct joinrig_side *side = &joinrig.sides[at];
	const struct spoke_engine_options engine = { .env = &side->faulty.env };
	const struct spoke_service_options service = { .name = "demo.Echo" };
	const struct spoke_handler handler = { .method = "echo", .handle = serve, .arg = side };

	assert_int_equal(spoke_engine_new(&engine, &side->engine), 0);
	assert_int_equal(spoke_provider_new(side->engine, options, &side->provider), 0);
	assert_int_equal(spoke_provider_add(side->provider, &service, &handler, 1), 0);
}

void joinrig_end(unsigned at)
{
	spoke_engine_free(joinrig.sides[at].engine);
	joinrig.sides[at].engine = NULL;
	joinrig.sides[at].provider = NULL;
}

void joinrig_listen(unsigned at, const char *url)
{
	assert_int_equal(spoke_provider_listen(joinrig.sides[at].provider, url), 0);
}

void joinrig_join(unsigned at, unsigned first)
{
	assert_int_equal(spoke_provider_join(joinrig.sides[at].provider,
					     joinrig.sides[first].provider),
			 0);
}

void joinrig_consume(const char *place, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct joinrig_caller *caller = &joinrig.callers[joinrig.count++];
		struct spoke_consumer_options options = { .url = place };

		assert_true(joinrig.count <= CALLERS);
		assert_int_equal(spoke_consumer_new(joinrig.engine, &options, &caller->consumer),
				 0);
		assert_int_equal(spoke_consumer_method(caller->consumer, "echo", NULL,
						       &caller->echo),
				 0);
	}
}

static void call_done(void *arg, const struct spoke_result *result)
{
	struct joinrig_caller *caller = arg;

	caller->ends++;
	caller->error = result->error;
}

void joinrig_call(void)
{
	for (unsigned i = 0; i < joinrig.count; i++) {
		struct joinrig_caller *caller = &joinrig.callers[i];

		caller->error = spoke_call(caller->echo, (struct spoke_span){ NULL, 0 }, NULL,
					   call_done, caller, NULL);
		caller->begun += caller->error == SPOKE_OK;
	}
}

unsigned joinrig_ended(int error)
{
	unsigned count = 0;

	joinrig_pass(SECOND);
	for (unsigned i = 0; i < joinrig.count; i++) {
		assert_int_equal(joinrig.callers[i].ends, joinrig.callers[i].begun);
		count += joinrig.callers[i].error == error;
	}
	return count;
}

void joinrig_pass(uint64_t ns)
{
	spokei_world_run(&joinrig.world, joinrig.world.now_ns + ns);
}

size_t joinrig_connections(unsigned at)
{
	return spoke_provider_connections(joinrig.sides[at].provider);
}
