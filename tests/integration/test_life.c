/* SPDX-License-Identifier: Apache-2.0 */
/* Row 65 of the table of faults: each object is freed inside each callback. */
#include "tests/integration/harness.h"
#include "tests/support/test.h"

#include <stdio.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define CALLS 6u

enum victim {
	CONSUMER,
	PROVIDER,
	ENGINE,
	VICTIMS,
};

enum moment {
	IN_DONE,
	IN_HANDLER,
	IN_KEPT_HANDLER, /* answers later */
	IN_ABANDONED,
	IN_ALARM,
	IN_POST,
	MOMENTS,
};

/* A consumer and a provider on one engine, and a few calls between them. */
struct scene {
	struct stage *stage;
	struct spoke_consumer *consumer;
	struct spoke_provider *provider;
	enum victim victim;
	enum moment moment;
	bool done; /* the victim was freed */
	struct spoke_request *kept[CALLS + 1];
	unsigned kept_count;
	struct ending endings[CALLS + 1];
	struct spoke_alarm alarm;
	struct spoke_post post;
};

static void kill_at(struct scene *scene, enum moment moment)
{
	if (scene->done || scene->moment != moment)
		return;
	scene->done = true;
	if (scene->victim == CONSUMER)
		spoke_consumer_free(scene->consumer);
	else if (scene->victim == PROVIDER)
		spoke_provider_free(scene->provider);
	else
		spoke_engine_free(scene->stage->engine);
}

static void kill_handler(struct spoke_request *request, void *arg)
{
	kill_at(arg, IN_HANDLER);
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

/* The request must be answered here, because the provider ends. */
static void kill_abandoned(struct spoke_request *request, void *arg)
{
	struct scene *scene = arg;

	kill_at(scene, IN_ABANDONED);
	for (unsigned i = 0; i < scene->kept_count; i++)
		if (scene->kept[i] == request)
			scene->kept[i] = scene->kept[--scene->kept_count];
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void keep_handler(struct spoke_request *request, void *arg)
{
	struct scene *scene = arg;

	kill_at(scene, IN_KEPT_HANDLER);
	assert_int_equal(spoke_request_keep(request), SPOKE_OK);
	spoke_request_on_abandoned(request, kill_abandoned, scene);
	scene->kept[scene->kept_count++] = request;
}

static void kill_done(void *arg, const struct spoke_result *result)
{
	struct scene *scene = arg;

	scene->endings[CALLS].ends++;
	scene->endings[CALLS].error = result->error;
	kill_at(scene, IN_DONE);
}

static void kill_alarm(struct spoke_alarm *alarm)
{
	kill_at(spoke_container_of(alarm, struct scene, alarm), IN_ALARM);
}

static void kill_post(struct spoke_post *post)
{
	kill_at(spoke_container_of(post, struct scene, post), IN_POST);
}

static struct spoke_method *scene_method(struct scene *scene, const char *name)
{
	const struct spoke_method_options options = { .service = "demo.Scene" };
	struct spoke_method *method;

	assert_int_equal(spoke_consumer_method(scene->consumer, name, &options, &method), SPOKE_OK);
	return method;
}

static void set_scene(struct scene *scene)
{
	const struct spoke_handler handlers[] = {
		{ .method = "kill", .handle = kill_handler, .arg = scene },
		{ .method = "keep", .handle = keep_handler, .arg = scene },
	};
	const struct spoke_service_options service = { .name = "demo.Scene" };
	struct stage *stage = scene->stage;
	struct spoke_consumer_options options = { .serialization = SPOKE_SERIALIZATION_MSGPACK };
	char url[160];

	stage_set_provider(stage, NULL);
	scene->provider = stage->provider;
	assert_int_equal(spoke_provider_add(scene->provider, &service, handlers, LENGTH(handlers)),
			 SPOKE_OK);
	(void)snprintf(url, sizeof(url), "%s%s", stage->on == STAGE_UNIX ? "" : "dubbo://",
		       stage->provider_at);
	options.url = url;
	options.timeout_ns = STAGE_TIMEOUT_NS;
	assert_int_equal(spoke_consumer_new(stage->engine, &options, &scene->consumer), SPOKE_OK);
	while (spoke_consumer_ready(scene->consumer) == 0)
		stage_turn(stage);
}

/* A raw peer's request is kept, and the peer disconnects. */
static void abandon_one(struct scene *scene)
{
	struct raw *raw = raw_connect(scene->stage);
	struct spokei_buffer frames;
	unsigned before = scene->kept_count;

	frames_init(&frames);
	frames_heartbeat(&frames, 7);
	frames_request_with(&frames, 1, "demo.Scene", "keep", (struct spoke_span){ "\xc0", 1 });
	raw_send_buffer(raw, &frames);
	while (scene->kept_count == before)
		stage_turn(scene->stage);
	stage_pass(scene->stage, 10 * MS);
	/* Before the heartbeat's answer is read, which resets a unix socket, too. */
	raw_reset(raw);
}

/* Prepares the moment of the free. Half of the calls are waiting for an answer then, and half are
 * not written. */
static void begin_scene(struct scene *scene)
{
	struct stage *stage = scene->stage;
	struct spoke_method *keep = scene_method(scene, "keep");
	struct spoke_method *kill = scene_method(scene, "kill");

	if (scene->moment == IN_ABANDONED)
		abandon_one(scene);
	for (unsigned i = 0; i < CALLS; i++) {
		stage_call(stage, keep, "x", &scene->endings[i], NULL);
		if (i == CALLS / 2 - 1 && scene->moment != IN_KEPT_HANDLER &&
		    scene->moment != IN_ABANDONED)
			while (scene->kept_count < CALLS / 2)
				stage_turn(stage);
	}
	assert_int_equal(spoke_call(kill, (struct spoke_span){ "\xc0", 1 }, NULL, kill_done, scene,
				    NULL),
			 SPOKE_OK);
	if (scene->moment == IN_ALARM)
		assert_int_equal(spoke_alarm_after(stage->engine, &scene->alarm, 0, kill_alarm),
				 SPOKE_OK);
	scene->post.run = kill_post;
	if (scene->moment == IN_POST)
		spoke_engine_post(stage->engine, &scene->post);
}

static bool is_over(void *arg)
{
	const struct scene *scene = arg;
	unsigned ends = 0;

	for (unsigned i = 0; i <= CALLS; i++)
		ends += scene->endings[i].ends > 0;
	return scene->done && ends == CALLS + 1;
}

static void answer_kept(struct scene *scene)
{
	while (scene->kept_count > 0)
		spoke_reply(scene->kept[--scene->kept_count], (struct spoke_value){ NULL, 0 });
}

static bool has_begun_dying(void *arg)
{
	const struct scene *scene = arg;

	return scene->done;
}

static void end_scene(struct scene *scene)
{
	struct stage *stage = scene->stage;

	if (scene->victim == ENGINE) {
		assert_int_equal(spoke_engine_run(stage->engine), SPOKE_OK);
		stage->engine = NULL;
		stage->provider = NULL;
		assert_int_equal(scene->kept_count, 0);
		assert_int_equal(stage->faulty.blocks, 0);
		assert_int_equal(stage->faulty.fds, 0);
		return;
	}
	stage_until(stage, has_begun_dying, scene);
	/* The consumer that waits for the provider's answers gets them, unless it was freed. */
	stage_pass(stage, 10 * MS);
	answer_kept(scene);
	stage_until(stage, is_over, scene);
	if (scene->victim == CONSUMER) {
		assert_second_connection_works(stage);
	} else {
		spoke_consumer_free(scene->consumer);
		stage->provider = NULL;
	}
	stage_pass(stage, 10 * MS);
	assert_int_equal(scene->kept_count, 0);
}

static void play(struct stage *stage, enum victim victim, enum moment moment)
{
	static struct scene scene;

	scene = (struct scene){ .stage = stage, .victim = victim, .moment = moment };
	set_scene(&scene);
	begin_scene(&scene);
	end_scene(&scene);
	for (unsigned i = 0; i <= CALLS; i++) {
		assert_int_equal(scene.endings[i].ends, 1);
		/* Ended before, or by the free. */
		if (victim != PROVIDER && moment != IN_DONE && i < CALLS)
			assert_int_equal(scene.endings[i].error, SPOKE_ECLOSED);
	}
}

RUNNER(stage_run_rows);

#define ROW_65(victim, moment, name)                                                               \
	ROW(row_65_##name, STAGE_ALL)                                                              \
	{                                                                                          \
		play(stage, victim, moment);                                                       \
	}

ROW_65(CONSUMER, IN_DONE, a_consumer_freed_in_a_completion)
ROW_65(CONSUMER, IN_HANDLER, a_consumer_freed_in_a_handler)
ROW_65(CONSUMER, IN_KEPT_HANDLER, a_consumer_freed_in_a_handler_that_answers_later)
ROW_65(CONSUMER, IN_ABANDONED, a_consumer_freed_as_a_request_is_abandoned)
ROW_65(CONSUMER, IN_ALARM, a_consumer_freed_in_an_alarm)
ROW_65(CONSUMER, IN_POST, a_consumer_freed_in_a_post)
ROW_65(PROVIDER, IN_DONE, a_provider_freed_in_a_completion)
ROW_65(PROVIDER, IN_HANDLER, a_provider_freed_in_a_handler)
ROW_65(PROVIDER, IN_KEPT_HANDLER, a_provider_freed_in_a_handler_that_answers_later)
ROW_65(PROVIDER, IN_ABANDONED, a_provider_freed_as_a_request_is_abandoned)
ROW_65(PROVIDER, IN_ALARM, a_provider_freed_in_an_alarm)
ROW_65(PROVIDER, IN_POST, a_provider_freed_in_a_post)
ROW_65(ENGINE, IN_DONE, an_engine_freed_in_a_completion)
ROW_65(ENGINE, IN_HANDLER, an_engine_freed_in_a_handler)
ROW_65(ENGINE, IN_KEPT_HANDLER, an_engine_freed_in_a_handler_that_answers_later)
ROW_65(ENGINE, IN_ABANDONED, an_engine_freed_as_a_request_is_abandoned)
ROW_65(ENGINE, IN_ALARM, an_engine_freed_in_an_alarm)
ROW_65(ENGINE, IN_POST, an_engine_freed_in_a_post)
