/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows 35 to 37, 58 and 65 to 68 of the table of faults: ends of connections, objects and
 * processes.
 */
#define _GNU_SOURCE
#include "tests/integration/harness.h"
#include "tests/support/test.h"
#include "transport/wire/dubbo/head.h"

#include <spoke/future.h>
#include <spoke/host.h>

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * --- rows 35 to 37, 58 and 68 of the table of faults: ways in which a connection ends, and
 * states in which it is ended
 */

#define CALLS 8u
#define DUBBO_REFUSED 100u /* the only status that is always safe to retry */
#define MUCH (7u << 20)    /* twice as much as sockets hold */
/* --- row 35: a provider resets its connection to the consumer under test */

/* Checks that the consumer reconnects and is served. */
static void assert_comes_again(struct stage *stage)
{
	struct raw *raw = raw_accept(stage);
	struct spokei_message message;
	struct ending ending;

	raw_frame(raw, &message);
	assert_int_equal(message.kind, SPOKEI_PROBE);
	stage_call(stage, stage->echo, "again", &ending, NULL);
	raw_frame(raw, &message);
	assert_int_equal(message.kind, SPOKEI_REQUEST);
	say_reply(raw, message.id, SPOKEI_DUBBO_OK, "again");
	assert_ends(stage, &ending, SPOKE_OK);
	assert_second_connection_works(stage);
}

static void begin_calls(struct stage *stage, struct ending *endings)
{
	for (unsigned i = 0; i < CALLS; i++)
		stage_call(stage, stage->echo, "lost", &endings[i], NULL);
}

static void assert_all_lost(struct stage *stage, struct ending *endings)
{
	for (unsigned i = 0; i < CALLS; i++)
		assert_ends(stage, &endings[i], SPOKE_ELOST);
}

RUNNER(stage_run_rows);

ROW(row_35_reset_while_connecting_fails_the_attempt, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	/* A unix socket is established at once. */
	enum spokei_faults_kind kind = stage->on == STAGE_UNIX ? SPOKEI_FAULTS_CONNECT
							       : SPOKEI_FAULTS_FINISH;

	raw_reset(raw);
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
	spokei_faults_fail(&stage->faulty, kind, 1, -ECONNRESET, false);
	while (stage->faulty.failed[kind] == 0)
		stage_turn(stage);
	if (kind == SPOKEI_FAULTS_FINISH) /* the kernel had established it anyway */
		raw_close(raw_accept(stage));
	stage_until_up(stage, SPOKE_STAT_CONNECTS_FAILED, 1);
	assert_comes_again(stage);
}

ROW(row_35_reset_before_the_first_byte_fails_waiting_calls, STAGE_ALL)
{
	struct ending endings[CALLS];
	struct raw *raw;

	stage_set_consumer(stage, NULL);
	raw = raw_accept(stage);
	begin_calls(stage, endings);
	raw_need(raw, 1);
	raw_reset(raw);
	assert_all_lost(stage, endings);
	assert_comes_again(stage);
}

ROW(row_35_reset_within_a_frame_fails_waiting_calls, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message message;
	struct ending endings[CALLS];
	struct spokei_buffer frames;

	begin_calls(stage, endings);
	raw_frame(raw, &message);
	frames_init(&frames);
	frames_reply(&frames, message.id, SPOKEI_DUBBO_OK, "half of it");
	raw_send(raw, spokei_buffer_data(&frames), spokei_buffer_len(&frames) - 3);
	stage_until_read(stage, spokei_buffer_len(&frames) - 3);
	spokei_buffer_fini(&frames);
	raw_reset(raw);
	assert_all_lost(stage, endings);
	assert_comes_again(stage);
}

/* Calls that were not written end with an error that allows retries elsewhere. */
ROW(row_35_reset_during_large_writes_fails_waiting_calls, STAGE_ALL)
{
	static unsigned char bytes[MUCH + 5] = { 0xc6, 0, MUCH >> 16 };
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spoke_span args = { bytes, sizeof(bytes) };
	struct ending large[2];
	struct ending endings[CALLS];

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(stage_try_call(stage, stage->echo, args, NULL, &large[i], NULL),
				 SPOKE_OK);
	raw_need(raw, 1);
	begin_calls(stage, endings);
	stage_pass(stage, 5 * MS);
	raw_reset(raw);
	for (unsigned i = 0; i < 2; i++)
		assert_ends(stage, &large[i], SPOKE_ELOST);
	assert_true(large[0].written);
	assert_all_lost(stage, endings);
	for (unsigned i = 0; i < CALLS; i++)
		assert_false(endings[i].written);
	assert_comes_again(stage);
}

ROW(row_35_a_reset_while_draining_ends_the_drain, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct ending endings[CALLS];

	begin_calls(stage, endings);
	raw_need(raw, 1);
	assert_int_equal(spoke_engine_drain(stage->engine, UINT64_MAX), SPOKE_OK);
	stage_pass(stage, 10 * MS);
	raw_reset(raw);
	assert_all_lost(stage, endings);
	assert_int_equal(spoke_engine_run(stage->engine), SPOKE_OK);
	assert_counter_up_by(stage, SPOKE_STAT_CONNECTS, 0);
}

/* --- row 35: a consumer resets its connection to the provider under test */

ROW(row_35_consumer_reset_before_its_first_byte_is_removed, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);

	raw_reset(raw);
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_BY_PEER);
	assert_second_connection_works(stage);
}

ROW(row_35_consumer_reset_within_a_frame_is_removed, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	unsigned handled = stage->handled;
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_request(&frames, 1, "echo", "half of it");
	raw_send(raw, spokei_buffer_data(&frames), spokei_buffer_len(&frames) - 3);
	stage_until_read(stage, spokei_buffer_len(&frames) - 3);
	spokei_buffer_fini(&frames);
	raw_reset(raw);
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_BY_PEER);
	assert_int_equal(stage->handled, handled);
	assert_second_connection_works(stage);
}

ROW(row_35_requests_of_a_consumer_that_resets_are_abandoned, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_heartbeat(&frames, 99); /* an unread answer resets a unix socket, too */
	for (unsigned id = 0; id < CALLS; id++)
		frames_request(&frames, id, "later", "x");
	raw_send_buffer(raw, &frames);
	while (stage->later_count < CALLS)
		stage_turn(stage);
	stage_pass(stage, 10 * MS);
	raw_reset(raw);
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_BY_PEER);
	while (stage->abandoned < CALLS)
		stage_turn(stage);
	stage_end_serving(stage);
	stage_until_up(stage, SPOKE_STAT_REQUESTS_ABANDONED, CALLS);
	assert_second_connection_works(stage);
}

ROW(row_35_consumer_reset_during_a_write_is_removed, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;

	frames_init(&frames);
	for (uint64_t id = 1; id <= 3; id++)
		frames_request_with(&frames, id, STAGE_SERVICE, "large",
				    (struct spoke_span){ "\xce\0\x40\0\0", 5 });
	raw_send_buffer(raw, &frames);
	raw_need(raw, 1);
	assert_true(stage->provider->link->queued > 0);
	raw_reset(raw);
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_BY_PEER);
	assert_int_equal(stage->provider->link->queued, 0);
	assert_second_connection_works(stage);
}

ROW(row_35_a_consumer_that_resets_while_draining_ends_the_drain, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_heartbeat(&frames, 99);
	frames_request(&frames, 1, "later", "x");
	raw_send_buffer(raw, &frames);
	while (stage->later_count < 1)
		stage_turn(stage);
	assert_int_equal(spoke_engine_drain(stage->engine, UINT64_MAX), SPOKE_OK);
	stage_pass(stage, 10 * MS);
	raw_reset(raw);
	while (stage->abandoned < 1)
		stage_turn(stage);
	spoke_consumer_free(stage->second);
	stage_end_serving(stage);
	stage_pass(stage, 10 * MS);
	assert_int_equal(spoke_engine_run(stage->engine), SPOKE_OK);
	assert_int_equal(spoke_provider_connections(stage->provider), 0);
}

/* --- row 36 */

/* Replies that arrived before the end of the stream count. */
ROW(row_36_replies_before_the_end_are_read, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message message;
	struct spokei_buffer frames;
	struct ending endings[CALLS];
	struct ending unanswered;

	begin_calls(stage, endings);
	stage_call(stage, stage->echo, "never", &unanswered, NULL);
	frames_init(&frames);
	for (unsigned i = 0; i < CALLS; i++) {
		raw_frame(raw, &message);
		frames_reply(&frames, message.id, SPOKEI_DUBBO_OK, "late");
	}
	raw_frame(raw, &message);
	raw_send_buffer(raw, &frames);
	raw_close(raw);
	for (unsigned i = 0; i < CALLS; i++)
		assert_ends(stage, &endings[i], SPOKE_OK);
	assert_ends(stage, &unanswered, SPOKE_ELOST);
	assert_true(unanswered.written);
	assert_comes_again(stage);
}

ROW(row_36_requests_before_the_end_are_served, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	unsigned handled = stage->handled;
	struct spokei_buffer frames;

	frames_init(&frames);
	for (unsigned id = 0; id < CALLS; id++)
		frames_request(&frames, id, "later", "x");
	raw_send_buffer(raw, &frames);
	raw_close(raw);
	while (stage->handled < handled + CALLS)
		stage_turn(stage);
	stage_end_serving(stage);
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
	assert_second_connection_works(stage);
}

/* --- row 37 */

ROW(row_37_a_consumer_that_sends_no_more_gets_its_answers, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;

	frames_init(&frames);
	for (unsigned id = 0; id < CALLS; id++)
		frames_request(&frames, id, "later", "x");
	raw_send_buffer(raw, &frames);
	raw_shut(raw);
	while (stage->later_count < CALLS)
		stage_turn(stage);
	stage_pass(stage, 20 * MS);
	assert_nothing_closed(stage);
	for (unsigned id = 0; id < CALLS; id++) {
		stage_answer_later(stage);
		assert_reply(raw, id, SPOKEI_DUBBO_OK, NULL);
	}
	assert_int_equal(raw_wait_end(raw), 0);
	assert_false(raw->reset);
	assert_second_connection_works(stage);
}

/* --- row 68 */

/* Connects a peer whose request runs, and drains. The peer has read READONLY. */
static struct raw *drain_with_request(struct stage *stage)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_message message;
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_heartbeat(&frames, 99);
	frames_request(&frames, 1, "later", "begun");
	raw_send_buffer(raw, &frames);
	raw_frame(raw, &message);
	while (stage->later_count < 1)
		stage_turn(stage);
	assert_int_equal(spoke_engine_drain(stage->engine, UINT64_MAX), SPOKE_OK);
	raw_frame(raw, &message);
	assert_int_equal(message.kind, SPOKEI_READONLY);
	return raw;
}

static void exchange_echoes(struct raw *raw, struct spokei_buffer *frames, unsigned first,
			    unsigned status)
{
	for (unsigned id = first; id < first + CALLS; id++)
		frames_request(frames, id, "echo", "crossed");
	raw_send_buffer(raw, frames);
	for (unsigned id = first; id < first + CALLS; id++)
		assert_reply(raw, id, status, NULL);
}

/* Java peers do not answer READONLY, and with retries=0 they would lose refused requests. */
ROW(row_68_requests_that_cross_the_drain_notice_are_served, STAGE_VIRTUAL)
{
	struct raw *raw = drain_with_request(stage);
	unsigned handled = stage->handled;
	struct spokei_buffer frames;

	frames_init(&frames);
	stage_pass(stage, 200 * MS);
	stage_pass(stage, 200 * MS);
	exchange_echoes(raw, &frames, 2, SPOKEI_DUBBO_OK);
	assert_int_equal(stage->handled, handled + CALLS);
	frames_raw(&frames, 0xbb, 0, 98, "\xa1R", 2); /* READONLY */
	exchange_echoes(raw, &frames, 2 + CALLS, DUBBO_REFUSED);
	assert_int_equal(stage->handled, handled + CALLS);
	stage_answer_later(stage);
	assert_reply(raw, 1, SPOKEI_DUBBO_OK, NULL);
	raw_shut(raw);
	assert_int_equal(raw_wait_end(raw), 0);
	assert_int_equal(spoke_engine_run(stage->engine), SPOKE_OK);
}

/* A peer that has answered READONLY knows of the drain: its requests are refused as safe to retry,
 * and not run. */
ROW(row_68_requests_after_the_answered_notice_are_refused, STAGE_ALL)
{
	struct raw *raw = drain_with_request(stage);
	unsigned handled = stage->handled;
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_raw(&frames, 0xbb, 0, 5, "\241R", 2);
	exchange_echoes(raw, &frames, 2, DUBBO_REFUSED);
	assert_int_equal(stage->handled, handled);
	stage_answer_later(stage);
	assert_reply(raw, 1, SPOKEI_DUBBO_OK, NULL);
	raw_shut(raw); /* otherwise the consumer waits a while for more frames */
	assert_int_equal(raw_wait_end(raw), 0);
	assert_int_equal(spoke_engine_run(stage->engine), SPOKE_OK);
}

/* --- row 58 */

#define RUNNING_MAX 64u
#define BATCH 32u

static struct raw *ask_and_reset(struct stage *stage)
{
	struct raw *raw = raw_start(stage);
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_heartbeat(&frames, 99);
	frames_request(&frames, 1, "later", "x");
	(void)raw_try_send(raw, spokei_buffer_data(&frames), spokei_buffer_len(&frames));
	spokei_buffer_fini(&frames);
	return raw;
}

/* Requests of reset connections still count against the limit until their handlers have ended. */
ROW(row_58_requests_of_reset_connections_count_until_they_end, STAGE_ALL)
{
	const struct spoke_provider_options options = { .requests_max = RUNNING_MAX };
	unsigned batches = stage_is_virtual(stage) ? 100 : 10;
	struct raw *batch[BATCH];
	size_t blocks = 0;
	size_t fds;

	stage_set_provider(stage, &options);
	fds = stage->faulty.fds;
	stage_mark(stage);
	for (unsigned i = 0; i < batches; i++) {
		uint64_t requests = stage_up(stage, SPOKE_STAT_REQUESTS);

		for (unsigned k = 0; k < BATCH; k++)
			batch[k] = ask_and_reset(stage);
		stage_until_up(stage, SPOKE_STAT_REQUESTS, requests + BATCH);
		for (unsigned k = 0; k < BATCH; k++)
			raw_reset(batch[k]);
		stage_until_up(stage, SPOKE_STAT_CLOSED, (uint64_t)(i + 1) * BATCH);
		assert_true(stage->later_count <= RUNNING_MAX);
		if (i == 3)
			blocks = stage->faulty.blocks;
	}
	assert_int_equal(stage->later_count, RUNNING_MAX);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_REFUSED,
			     (uint64_t)batches * BATCH - RUNNING_MAX);
	assert_int_equal(stage->faulty.fds, fds);
	assert_true(stage->faulty.blocks <= blocks + BATCH);
	while (stage->later_count > 0)
		stage_answer_later(stage);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_ABANDONED, RUNNING_MAX);
	assert_second_connection_works(stage);
}

/* --- row 65 of the table of faults: each object is freed inside each callback */

#define LIFE_CALLS 6u

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
	struct spoke_request *kept[LIFE_CALLS + 1];
	unsigned kept_count;
	struct ending endings[LIFE_CALLS + 1];
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

	scene->endings[LIFE_CALLS].ends++;
	scene->endings[LIFE_CALLS].error = result->error;
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
	for (unsigned i = 0; i < LIFE_CALLS; i++) {
		stage_call(stage, keep, "x", &scene->endings[i], NULL);
		if (i == LIFE_CALLS / 2 - 1 && scene->moment != IN_KEPT_HANDLER &&
		    scene->moment != IN_ABANDONED)
			while (scene->kept_count < LIFE_CALLS / 2)
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

	for (unsigned i = 0; i <= LIFE_CALLS; i++)
		ends += scene->endings[i].ends > 0;
	return scene->done && ends == LIFE_CALLS + 1;
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
	for (unsigned i = 0; i <= LIFE_CALLS; i++) {
		assert_int_equal(scene.endings[i].ends, 1);
		/* Ended before, or by the free. */
		if (victim != PROVIDER && moment != IN_DONE && i < LIFE_CALLS)
			assert_int_equal(scene.endings[i].error, SPOKE_ECLOSED);
	}
}

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

/*
 * --- rows 66 and 67 of the table of faults: endless chains of calls made in callbacks; and a
 * process that forks
 */

#define NIL ((struct spoke_span){ "\xc0", 1 })
/* --- row 66 */

#define STACK_MAX (64u << 10)
#define STRANDS 200u /* parallel chains, so that not every call needs a turn */

struct chain {
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	bool cancels; /* cancel each call as soon as it has begun */
	bool probes;  /* also make calls that are rejected at once */
	int expected;
	uint64_t left; /* calls to be begun */
	uint64_t ended;
	uintptr_t lowest; /* stack addresses in callbacks */
	uintptr_t highest;
};

static void link_done(void *arg, const struct spoke_result *result);

static void begin_link(struct chain *chain)
{
	static const struct spoke_call_options impossible = { .timeout_ns = UINT64_MAX };
	struct spoke_call call;

	if (chain->left == 0)
		return;
	chain->left--;
	if (chain->probes)
		assert_int_equal(spoke_call(chain->method, NIL, &impossible, link_done, chain,
					    NULL),
				 SPOKE_ERANGE);
	assert_int_equal(spoke_call(chain->method, NIL, NULL, link_done, chain, &call), SPOKE_OK);
	if (chain->cancels)
		assert_true(spoke_call_cancel(chain->consumer, call));
}

static void link_done(void *arg, const struct spoke_result *result)
{
	struct chain *chain = arg;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (here < chain->lowest)
		chain->lowest = here;
	if (here > chain->highest)
		chain->highest = here;
	assert_int_equal(result->error, chain->expected);
	chain->ended++;
	begin_link(chain);
}

static bool has_run_out(void *arg)
{
	const struct chain *chain = arg;

	return chain->left == 0 && chain->ended > 0;
}

/* Makes this many calls, each but the first ones in the callback of another. */
static void pull(struct stage *stage, struct chain *chain, uint64_t count)
{
	chain->consumer = stage->consumer ? stage->consumer : stage->second;
	chain->left = count;
	chain->lowest = UINTPTR_MAX;
	for (unsigned i = 0; i < STRANDS; i++)
		begin_link(chain);
	stage_until(stage, has_run_out, chain);
	while (chain->ended < count)
		stage_turn(stage);
	stage_pass(stage, MS);
	assert_int_equal(chain->ended, count);
	assert_true(chain->highest - chain->lowest < STACK_MAX);
}

static uint64_t length_of(const struct stage *stage)
{
	return stage->on == STAGE_MEMORY ? 1000000 : stage->on == STAGE_ROUGH ? 2000 : 20000;
}

ROW(row_66_a_chain_of_calls_does_not_grow_the_stack, STAGE_ALL)
{
	struct chain chain = { 0 };

	stage_set_provider(stage, NULL);
	chain.method = stage->second_echo;
	stage_mark(stage);
	pull(stage, &chain, length_of(stage));
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_OK, length_of(stage));
	assert_second_connection_works(stage);
}

/* The provider is full and refuses all calls. */
ROW(row_66_a_chain_of_refused_calls_does_not_grow_the_stack, STAGE_ALL)
{
	const struct spoke_provider_options options = { .requests_max = 1 };
	struct chain chain = { .expected = SPOKE_EREFUSED, .probes = true };
	struct spoke_method *later;
	struct ending ending;

	stage_set_provider(stage, &options);
	chain.method = stage->second_echo;
	assert_int_equal(spoke_consumer_method(stage->second, "later", NULL, &later), SPOKE_OK);
	stage_call(stage, later, "x", &ending, NULL);
	while (stage->later_count == 0)
		stage_turn(stage);
	stage_mark(stage);
	pull(stage, &chain, length_of(stage) / 10);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_REFUSED, length_of(stage) / 10);
	stage_answer_later(stage);
	assert_ends(stage, &ending, SPOKE_OK);
	assert_second_connection_works(stage);
}

ROW(row_66_a_chain_of_cancelled_calls_does_not_grow_the_stack, STAGE_ALL)
{
	struct chain chain = { .expected = SPOKE_ECANCELED, .cancels = true };

	stage_set_provider(stage, NULL);
	chain.method = stage->second_echo;
	pull(stage, &chain, length_of(stage) / 10);
	assert_second_connection_works(stage);
	assert_nothing_closed(stage);
}

/* --- row 67 */

enum child {
	WELL,
	NOT_REFUSED,
	NOT_FREED,
	ENDED_TWICE,
};

static void nothing_due(struct spoke_post *post)
{
	(void)post;
}

/* In the child, each function that can return an error returns one. */
static enum child try_all(struct stage *stage, struct spoke_future *future)
{
	const struct spoke_service_options service = { .name = "demo.Other" };
	const struct spoke_consumer_options options = {
		.serialization = SPOKE_SERIALIZATION_MSGPACK,
		.url = "dubbo://127.0.0.1:20880/demo.EchoService"
	};
	struct spoke_future *other = NULL;
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	struct spoke_post post = { .run = nothing_due };
	const int errors[] = {
		spoke_engine_run(stage->engine),
		spoke_engine_turn(stage->engine, true),
		spoke_engine_start(stage->engine),
		spoke_engine_join(stage->engine),
		spoke_engine_drain(stage->engine, 0),
		spoke_consumer_new(stage->engine, &options, &consumer),
		spoke_consumer_method(stage->consumer, "echo", NULL, &method),
		spoke_call(stage->echo, NIL, NULL, NULL, NULL, NULL),
		spoke_call(stage->second_echo, NIL, NULL, NULL, NULL, NULL),
		spoke_provider_new(stage->engine, NULL, &provider),
		spoke_provider_add(stage->provider, &service, NULL, 0),
		spoke_provider_listen(stage->provider, "dubbo://127.0.0.1:0"),
		spoke_future_start(stage->echo, NIL, NULL, &other),
		spoke_future_wait(future),
		spoke_future_then(future, NULL, NULL),
		spoke_future_wait_all(&future, 1),
		spoke_call_wait(stage->echo, NIL, NULL, &other),
	};

	spoke_engine_post(stage->engine, &post);
	for (size_t i = 0; i < LENGTH(errors); i++) {
		if (errors[i] == SPOKE_EFORKED)
			continue;
		print_error("the %zuth function of the child returned %s\n", i,
			    spoke_errname(errors[i]));
		return NOT_REFUSED;
	}
	return WELL;
}

static enum child live_as_child(struct stage *stage, struct spoke_future *future,
				struct ending *ending)
{
	enum child child = try_all(stage, future);

	if (child != WELL)
		return child;
	spoke_future_free(future);
	spoke_consumer_free(stage->consumer);
	stage_end_serving(stage);
	spoke_engine_free(stage->engine);
	spoke_engine_free(stage->good);
	if (ending->ends > 1)
		return ENDED_TWICE;
	if (stage->faulty.blocks || stage->faulty.fds)
		print_error("the child was left with %zu blocks of memory, %zu descriptors\n",
			    stage->faulty.blocks, stage->faulty.fds);
	return stage->faulty.blocks == 0 && stage->faulty.fds == 0 ? WELL : NOT_FREED;
}

ROW(row_67_forked_child_does_not_disturb_its_parent, STAGE_REAL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message request;
	struct spoke_future *future;
	struct spoke_method *later;
	static struct ending endings[2];
	int status = -1;
	uint64_t id;
	pid_t pid;

	assert_int_equal(spoke_consumer_method(stage->second, "later", NULL, &later), SPOKE_OK);
	stage_call(stage, stage->echo, "x", &endings[0], NULL);
	stage_call(stage, later, "y", &endings[1], NULL);
	raw_frame(raw, &request);
	id = request.id;
	assert_int_equal(spoke_future_start(later, NIL, NULL, &future), SPOKE_OK);
	while (stage->later_count < 2)
		stage_turn(stage);
	stage_mark(stage);
	pid = fork();
	if (pid == 0)
		_exit((int)live_as_child(stage, future, &endings[0]));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), WELL);
	/* The parent's calls continue: those in flight, and new ones. */
	assert_int_equal(endings[0].ends + endings[1].ends, 0);
	stage_answer_later(stage);
	stage_answer_later(stage);
	while (spoke_future_result(future) == NULL)
		stage_turn(stage);
	assert_int_equal(spoke_future_result(future)->error, SPOKE_OK);
	spoke_future_free(future);
	say_reply(raw, id, 20, "z");
	assert_ends(stage, &endings[0], SPOKE_OK);
	assert_ends(stage, &endings[1], SPOKE_OK);
	assert_second_connection_works(stage);
	assert_consumer_lives(raw);
	assert_nothing_closed(stage);
	assert_raw_lives(raw_start(stage)); /* the listener, too */
}
