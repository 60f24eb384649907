/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of subscription tests: see subscriptionrig.h. */
#include "tests/cluster/consumer/subscriptionrig.h"
#include "tests/support/scene.h"

#include <stdio.h>
#include <string.h>

struct subscriptionrig subscriptionrig;

/* --- set-up */

int subscriptionrig_set_up(void **state)
{
	struct spoke_engine_options with = { .env = &subscriptionrig.faulty.env };

	(void)state;
	subscriptionrig = (struct subscriptionrig){ 0 };
	fakereg = (struct fakereg){ 0 };
	scene_open(&subscriptionrig.world, 1);
	for (int i = 0; i < PROCESSES; i++)
		spokei_world_process_init(&subscriptionrig.processes[i], &subscriptionrig.world);
	spokei_faults_init(&subscriptionrig.faulty, &subscriptionrig.processes[CLIENT].env);
	subscriptionrig.registry = "fake://here";
	subscriptionrig.kind = &fakereg_kind;
	return spoke_engine_new(&with, &subscriptionrig.engines[CLIENT]);
}

void subscriptionrig_pass(uint64_t ns)
{
	spokei_world_run(&subscriptionrig.world, subscriptionrig.world.now_ns + ns);
}

void subscriptionrig_free_consumer(void)
{
	spoke_consumer_free(subscriptionrig.consumer);
	subscriptionrig.consumer = NULL;
}

void subscriptionrig_end_provider(int which)
{
	spoke_provider_free(subscriptionrig.providers[which]);
	subscriptionrig.providers[which] = NULL;
	subscriptionrig_pass(10 * MS);
	spoke_engine_free(subscriptionrig.engines[which]);
	subscriptionrig.engines[which] = NULL;
}

RIG_STEP(subscriptionrig_tear_down)
{
	spokei_faults_heal(&subscriptionrig.faulty);
	subscriptionrig_free_consumer();
	subscriptionrig_pass(10 * MS);
	for (int i = 0; i < PROVIDERS; i++)
		subscriptionrig_end_provider(i);
	spoke_engine_free(subscriptionrig.engines[CLIENT]);
	assert_int_equal(subscriptionrig.faulty.blocks, 0);
	assert_int_equal(subscriptionrig.faulty.fds, 0);
	for (int i = 0; i < PROCESSES; i++) {
		assert_int_equal(subscriptionrig.processes[i].blocks, 0);
		spokei_world_process_fini(&subscriptionrig.processes[i]);
	}
	spokei_world_fini(&subscriptionrig.world);
}

/* --- both sides */

static void serve(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value text = { NULL, 0 };

	++*(unsigned *)arg;
	(void)!spoke_cursor_next(&args, &text);
	if (subscriptionrig.in_serve)
		subscriptionrig.in_serve();
	spoke_reply(request, text);
}

void subscriptionrig_provide_as(int which, const char *version)
{
	const struct spoke_provider_options options = { .registry = subscriptionrig.registry,
							.registry_kind = subscriptionrig.kind };
	const struct spoke_service_options service = { .name = ECHO, .version = version };
	const struct spoke_handler handler = { .method = "echo",
					       .handle = serve,
					       .arg = &subscriptionrig.served[which] };
	struct spoke_engine_options with = { .env = &subscriptionrig.processes[which].env };
	char url[64];

	(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:%d", 20880 + which);
	assert_int_equal(spoke_engine_new(&with, &subscriptionrig.engines[which]), 0);
	assert_int_equal(spoke_provider_new(subscriptionrig.engines[which], &options,
					    &subscriptionrig.providers[which]),
			 0);
	assert_int_equal(spoke_provider_add(subscriptionrig.providers[which], &service, &handler,
					    1),
			 0);
	assert_int_equal(spoke_provider_listen(subscriptionrig.providers[which], url), 0);
}

void subscriptionrig_provide(int which)
{
	subscriptionrig_provide_as(which, NULL);
}

static void note_change(void *arg, const struct spoke_link_event *event)
{
	(void)arg;
	(void)event;
	if (subscriptionrig.in_changed)
		subscriptionrig.in_changed();
}

int subscriptionrig_try_consumer(const char *cache)
{
	const struct spoke_consumer_options options = {
		.url = "consumer://any/" ECHO,
		.registry = subscriptionrig.registry,
		.registry_kind = subscriptionrig.kind,
		.registry_cache = cache,
		.changed = note_change,
	};
	int error = spoke_consumer_new(subscriptionrig.engines[CLIENT], &options,
				       &subscriptionrig.consumer);

	if (error)
		return error;
	return spoke_consumer_method(subscriptionrig.consumer, "echo", NULL, &subscriptionrig.echo);
}

void subscriptionrig_consume(const char *cache)
{
	assert_int_equal(subscriptionrig_try_consumer(cache), 0);
}

static void done(void *arg, const struct spoke_result *result)
{
	(void)arg;
	subscriptionrig.ended++;
	subscriptionrig.error = result->error;
	if (subscriptionrig.in_done)
		subscriptionrig.in_done();
}

int subscriptionrig_try_call(void)
{
	const struct spoke_span args = { "\xa4text", 5 };
	unsigned before = subscriptionrig.ended;
	int error = spoke_call(subscriptionrig.echo, args, NULL, done, NULL, NULL);

	if (error)
		return error;
	subscriptionrig_pass(2 * SECOND);
	assert_int_equal(subscriptionrig.ended, before + 1);
	return subscriptionrig.error;
}

size_t subscriptionrig_endpoints(void)
{
	return spoke_consumer_endpoints(subscriptionrig.consumer, NULL, 0);
}
