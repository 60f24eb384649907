/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of directory tests: see dirrig.h. */
#include "tests/cluster/endpoints/dirrig.h"

#include "cluster/endpoints/listing.h"
#include "core/engine/engine.h"
#include "tests/support/scene.h"

#include <stdio.h>
#include <string.h>

#define PORT 20880u

struct dirrig dirrig;

RIG_STEP(dirrig_set_up)
{
	memset(&dirrig, 0, sizeof(dirrig));
	scene_open(&dirrig.world, 7);
	dirrig.engine = scene_engine(&dirrig.world, &dirrig.process, &dirrig.faulty, NULL);
	for (unsigned i = 0; i < PROVIDERS; i++)
		spokei_world_process_init(&dirrig.sides[i].process, &dirrig.world);
}

RIG_STEP(dirrig_tear_down)
{
	dirrig.then = NULL;
	scene_leave(&dirrig.process, &dirrig.faulty, &dirrig.engine);
	for (unsigned i = 0; i < PROVIDERS; i++) {
		if (dirrig.sides[i].engine)
			dirrig_stop(i);
		spokei_world_process_fini(&dirrig.sides[i].process);
	}
	for (unsigned i = 0; i < dirrig.begun; i++)
		assert_int_equal(dirrig.calls[i].ends, 1);
	spokei_world_fini(&dirrig.world);
}

void dirrig_pass(uint64_t ns)
{
	spokei_world_run(&dirrig.world, dirrig.world.now_ns + ns);
}

static void nothing(struct spoke_alarm *alarm)
{
	(void)alarm;
}

void dirrig_beat(uint64_t ns)
{
	assert_int_equal(spoke_alarm_every(dirrig.engine, &dirrig.beat, ns, nothing), 0);
}

/* --- providers */

static void serve(struct spoke_request *request, void *arg)
{
	struct dirrig_side *side = arg;

	side->served++;
	(void)spoke_value_print(spoke_request_attachments(request), side->attachments,
				sizeof(side->attachments));
	if (side->mute && side->held_count < CALLS && spoke_request_keep(request) == 0)
		side->held[side->held_count++] = request;
	else
		spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

void dirrig_start(unsigned at)
{
	struct dirrig_side *side = &dirrig.sides[at];
	const struct spoke_service_options service = {
		.name = side->service ? side->service : "demo.Echo",
		.version = side->version,
		.group = side->group,
	};
	const struct spoke_handler handler = { .method = "echo", .handle = serve, .arg = side };
	const struct spoke_engine_options engine = { .env = &side->process.env };
	const struct spoke_provider_options options = { .heartbeat_ns = SPOKE_OFF,
							.requests_max = side->requests_max,
							.token = side->token };
	char url[64];

	(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:%u", PORT + at);
	assert_int_equal(spoke_engine_new(&engine, &side->engine), 0);
	assert_int_equal(spoke_provider_new(side->engine, &options, &side->provider), 0);
	assert_int_equal(spoke_provider_add(side->provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(side->provider, url), 0);
}

void dirrig_answer(unsigned at)
{
	struct dirrig_side *side = &dirrig.sides[at];

	for (unsigned i = 0; i < side->held_count; i++)
		spoke_reply(side->held[i], (struct spoke_value){ NULL, 0 });
	side->held_count = 0;
}

void dirrig_stop(unsigned at)
{
	struct dirrig_side *side = &dirrig.sides[at];

	spoke_provider_free(side->provider);
	dirrig_answer(at);
	spoke_engine_free(side->engine);
	side->engine = NULL;
}

/* --- the consumer */

static void note(void *arg, const struct spoke_link_event *event)
{
	(void)arg;
	dirrig.told[event->change]++;
	if (dirrig.then)
		dirrig.then(event);
}

void dirrig_consume(const char *parameters, const struct spoke_consumer_options *options)
{
	struct spoke_consumer_options with = *options;
	char url[256];

	/* The address in the URL is removed by the first list. */
	(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:9/demo.Echo%s%sregistry.protect=false",
		       parameters, *parameters ? "&" : "?");
	with.url = url;
	with.changed = note;
	with.heartbeat_ns = with.heartbeat_ns ? with.heartbeat_ns : SPOKE_OFF;
	with.policy = with.policy ? with.policy : &spoke_policy_failfast;
	with.balancer = with.balancer ? with.balancer : &spoke_balancer_round_robin;
	assert_int_equal(spoke_consumer_new(dirrig.engine, &with, &dirrig.consumer), 0);
	assert_int_equal(spoke_consumer_method(dirrig.consumer, "echo", NULL, &dirrig.echo), 0);
	LIST_NOBODY();
	dirrig_pass(SECOND);
	assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0), 0);
}

int dirrig_list(const char *const *texts)
{
	struct spokei_buffer list;
	size_t count = 0;
	int error;

	spokei_buffer_init(&list, &dirrig.sides[0].process.env, SIZE_MAX);
	for (; texts[count]; count++)
		assert_int_equal(spokei_buffer_append(&list, texts[count],
						      strlen(texts[count]) + 1),
				 0);
	spokei_engine_refresh(dirrig.engine);
	error = spokei_directory_set(dirrig.consumer->directory, &list, count);
	spokei_buffer_fini(&list);
	return error;
}

static void call_done(void *arg, const struct spoke_result *result)
{
	struct dirrig_call *call = arg;

	call->ends++;
	call->error = result->error;
	call->written = result->written;
}

int dirrig_try(uint64_t timeout_ns)
{
	const struct spoke_call_options options = { .timeout_ns = timeout_ns };
	struct dirrig_call *call = &dirrig.calls[dirrig.begun];
	int error;

	assert_true(dirrig.begun < CALLS);
	error = spoke_call(dirrig.echo, (struct spoke_span){ NULL, 0 }, &options, call_done, call,
			   &call->name);
	dirrig.begun += error == 0;
	return error;
}

int dirrig_call(void)
{
	const struct dirrig_call *call = &dirrig.calls[dirrig.begun];
	int error = dirrig_try(100 * MS);

	if (error)
		return error;
	dirrig_pass(110 * MS);
	assert_int_equal(call->ends, 1);
	error = call->error;
	/* Reuse the entry of the failed call. */
	if (call == &dirrig.calls[dirrig.begun - 1])
		dirrig.calls[--dirrig.begun] = (struct dirrig_call){ 0 };
	return error;
}

unsigned dirrig_served(unsigned side)
{
	unsigned served = dirrig.sides[side].served;

	dirrig.sides[side].served = 0;
	return served;
}

struct spoke_endpoint_info dirrig_info(unsigned side)
{
	struct spoke_endpoint_info infos[2 * PROVIDERS];
	size_t count = spoke_consumer_endpoints(dirrig.consumer, infos, 2 * PROVIDERS);
	char name[32];

	(void)snprintf(name, sizeof(name), "127.0.0.1:%u", PORT + side);
	assert_true(count <= 2 * PROVIDERS);
	for (size_t i = 0; i < count; i++)
		if (strcmp(infos[i].name, name) == 0)
			return infos[i];
	return (struct spoke_endpoint_info){ .state = SPOKE_ENDPOINT_REMOVED };
}
