/* SPDX-License-Identifier: Apache-2.0 */
/* A stage for scenarios: its set-up, its time and its tear-down. See stage.h. */
#define _GNU_SOURCE
#include "tests/cluster/stage.h"

#include "tests/transport/codec/textcodec.h"
#include "tests/transport/stream/strange.h"

#include <spoke/host.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS (10 * SECOND)
#define PAUSE_NS 50000L
#define STEP_NS MS

static const struct stage_setting settings[] = {
	{ "in memory, dubbo", true, true, "dubbo://127.0.0.1:0", NULL, NULL },
	{ "in memory, dubbo as text", true, true, "dubbo://127.0.0.1:0", &textcodec, NULL },
	{ "in memory, dubbo in hessian2", true, true, "dubbo://127.0.0.1:0", &spokei_codec_hessian2,
	  NULL },
	{ "in memory, msgpack-rpc", true, false, "dubbo://127.0.0.1:0", NULL, NULL },
	{ "in memory, dubbo, strange", true, true, "dubbo://127.0.0.1:0", NULL, &strange_stream },
	{ "in memory, msgpack-rpc, strange", true, false, "dubbo://127.0.0.1:0", NULL,
	  &strange_stream },
	{ "in memory, dubbo, TLS", true, true, "dubbo://127.0.0.1:0", NULL, &secure_stream },
	{ "in memory, msgpack-rpc, TLS", true, false, "dubbo://127.0.0.1:0", NULL, &secure_stream },
	{ "in memory, dubbo, shared memory", true, true, "dubbo://127.0.0.1:0", NULL,
	  &spokei_stream_shm },
	{ "in memory, msgpack-rpc, shared memory", true, false, "dubbo://127.0.0.1:0", NULL,
	  &spokei_stream_shm },
	{ "tcp4, dubbo", false, true, "dubbo://127.0.0.1:0", NULL, NULL },
	{ "tcp4, dubbo as text", false, true, "dubbo://127.0.0.1:0", &textcodec, NULL },
	{ "tcp4, dubbo in hessian2", false, true, "dubbo://127.0.0.1:0", &spokei_codec_hessian2,
	  NULL },
	{ "tcp4, msgpack-rpc", false, false, "dubbo://127.0.0.1:0", NULL, NULL },
	{ "tcp4, dubbo, strange", false, true, "dubbo://127.0.0.1:0", NULL, &strange_stream },
	{ "tcp4, dubbo, TLS", false, true, "dubbo://127.0.0.1:0", NULL, &secure_stream },
	{ "tcp6, dubbo", false, true, "dubbo://[::1]:0", NULL, NULL },
	{ "tcp6, msgpack-rpc", false, false, "dubbo://[::1]:0", NULL, NULL },
	{ "unix, dubbo", false, true, NULL, NULL, NULL },
	{ "unix, msgpack-rpc", false, false, NULL, NULL, NULL },
	{ "unix, msgpack-rpc, strange", false, false, NULL, NULL, &strange_stream },
	{ "unix, dubbo, shared memory", false, true, NULL, NULL, &spokei_stream_shm },
	{ "unix, msgpack-rpc, shared memory", false, false, NULL, NULL, &spokei_stream_shm },
	{ "unix, msgpack-rpc, TLS", false, false, NULL, NULL, &secure_stream },
};

/* --- time */

static uint64_t now_of(const struct stage *stage)
{
	return stage->client.env.now(stage->client.env.ctx);
}

static void turn(struct spoke_engine *engine)
{
	if (engine)
		assert_int_equal(spoke_engine_turn(engine, false), 0);
}

/* Runs both sides for a moment. The test turns engines that a callback may free. */
static void go_on(struct stage *stage)
{
	static const struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct spokei_world *world = &stage->world;
	uint64_t next_ns;

	if (stage->setting->in_memory && !stage->by_turns) {
		(void)spokei_world_step(world, world->now_ns + 10 * STEP_NS);
		return;
	}
	turn(stage->client_engine);
	if (!stage->frozen)
		turn(stage->server_engine);
	if (!stage->setting->in_memory) {
		(void)nanosleep(&pause, NULL);
		return;
	}
	next_ns = spokei_vnet_next(world->net);
	if (next_ns > world->now_ns + STEP_NS)
		next_ns = world->now_ns + STEP_NS;
	if (next_ns > world->now_ns)
		world->now_ns = next_ns;
}

void stage_freeze_server(struct stage *stage, bool frozen)
{
	stage->frozen = frozen;
	stage->processes[1].held_until_ns = frozen ? UINT64_MAX / 2 : 0;
}

void stage_pass(struct stage *stage, uint64_t ns)
{
	uint64_t until_ns = now_of(stage) + ns;

	if (stage->setting->in_memory && !stage->by_turns)
		spokei_world_run(&stage->world, until_ns);
	while (now_of(stage) < until_ns)
		go_on(stage);
}

void stage_until(struct stage *stage, const unsigned *count, unsigned least)
{
	uint64_t until_ns = now_of(stage) + PATIENCE_NS;

	while (*count < least) {
		assert_true(now_of(stage) < until_ns);
		go_on(stage);
	}
}

const struct spoke_result *stage_end_of(struct stage *stage, struct stage_call *call)
{
	stage_until(stage, &call->ends, 1);
	return &call->result;
}

void stage_end_all(struct stage *stage)
{
	stage_until(stage, &stage->ended, stage->call_count);
}

void stage_until_held(struct stage *stage, unsigned count)
{
	stage_until(stage, &stage->held_count, count);
}

void stage_until_ready(struct stage *stage, size_t count)
{
	uint64_t until_ns = now_of(stage) + PATIENCE_NS;

	while (spoke_consumer_ready(stage->consumer) < count) {
		assert_true(now_of(stage) < until_ns);
		go_on(stage);
	}
}

/* --- freeing */

void stage_answer(struct stage *stage, unsigned which)
{
	struct spoke_request *request = stage->held[which];
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value first = { NULL, 0 };

	assert_in_range(which, 0, stage->held_count - 1);
	stage->held_count--;
	for (unsigned i = which; i < stage->held_count; i++)
		stage->held[i] = stage->held[i + 1];
	(void)!spoke_cursor_next(&args, &first);
	spoke_reply(request, first);
}

void stage_free_consumer(struct stage *stage)
{
	struct spoke_consumer *consumer = stage->consumer;

	stage->consumer = NULL;
	spoke_consumer_free(consumer);
}

void stage_free_provider(struct stage *stage)
{
	struct spoke_provider *provider = stage->provider;

	stage->provider = NULL;
	spoke_provider_free(provider);
}

void stage_free_client(struct stage *stage)
{
	struct spoke_engine *engine = stage->client_engine;

	stage->client_engine = NULL;
	stage->consumer = NULL;
	spoke_engine_free(engine);
}

void stage_free_server(struct stage *stage)
{
	struct spoke_engine *engine = stage->server_engine;

	stage->server_engine = NULL;
	stage->provider = NULL;
	spoke_engine_free(engine);
}

uint64_t stage_client_stat(const struct stage *stage, enum spoke_stat stat)
{
	return spoke_stat_get(stage->client_engine, stat);
}

uint64_t stage_server_stat(const struct stage *stage, enum spoke_stat stat)
{
	return spoke_stat_get(stage->server_engine, stat);
}

void stage_assert_text(const struct spoke_result *result, const char *text)
{
	struct spoke_span span;

	assert_int_equal(result->error, SPOKE_OK);
	assert_int_equal(spoke_value_str(result->value, &span), 0);
	assert_int_equal(span.len, strlen(text));
	assert_memory_equal(span.data, text, span.len);
}

/* --- fixtures and groups */

static bool is_there(const struct stage *stage)
{
	const struct spoke_env *env = spoke_host_env();
	struct spoke_address address;
	int fd;
	int error;

	if (stage->setting->in_memory || stage->setting->at == NULL)
		return true;
	error = env->net->parse(env->ctx, stage->setting->at + 8, &address);
	if (error == 0)
		error = env->net->listen(env->ctx, &address, 1, &fd);
	if (error == 0)
		env->net->close(env->ctx, fd);
	return error != -EADDRNOTAVAIL && error != -EAFNOSUPPORT;
}

/* Writes the certificates, if the setting needs any. Returns false without TLS. */
static bool secures(struct stage *stage)
{
	return stage->setting->stream != &secure_stream ||
	       secure_begin(&stage->secure, stage->setting->in_memory ? &stage->world : NULL,
			    stage->folder);
}

int stage_set_up(void **state)
{
	const struct stage_setting *setting = *state;
	struct stage *stage = calloc(1, sizeof(*stage));
	struct spoke_engine_options options = { 0 };
	bool in_memory = setting->in_memory;

	if (stage == NULL)
		return -1;
	stage->setting = setting;
	stage->args = malloc(STAGE_ARGS);
	(void)snprintf(stage->folder, sizeof(stage->folder), "/tmp/spoke-test-stage-XXXXXX");
	if (stage->args == NULL || mkdtemp(stage->folder) == NULL ||
	    !spokei_world_init(&stage->world, 7))
		return -1;
	for (size_t i = 0; i < 2; i++)
		spokei_world_process_init(&stage->processes[i], &stage->world);
	spokei_faults_init(&stage->client, in_memory ? &stage->processes[0].env : spoke_host_env());
	spokei_faults_init(&stage->server, in_memory ? &stage->processes[1].env : spoke_host_env());
	options.env = &stage->client.env;
	assert_int_equal(spoke_engine_new(&options, &stage->client_engine), 0);
	options.env = &stage->server.env;
	assert_int_equal(spoke_engine_new(&options, &stage->server_engine), 0);
	stage->absent = !is_there(stage) || !secures(stage);
	*state = stage;
	return 0;
}

static void end_all(struct stage *stage)
{
	stage->in_abandoned = NULL;
	stage_free_consumer(stage);
	stage_free_provider(stage);
	stage_pass(stage, 5 * MS);
	while (stage->held_count > 0)
		stage_answer(stage, 0);
	stage_free_client(stage);
	stage_free_server(stage);
}

RIG_STEP(stage_tear_down)
{
	struct stage *stage = *state;

	end_all(stage);
	for (unsigned i = 0; i < stage->call_count; i++)
		assert_int_equal(stage->calls[i].ends, 1);
	assert_int_equal(stage->client.blocks, 0);
	assert_int_equal(stage->server.blocks, 0);
	assert_int_equal(stage->client.fds, 0);
	assert_int_equal(stage->server.fds, 0);
	assert_int_equal(stage->client.shares, 0);
	assert_int_equal(stage->server.shares, 0);
	for (size_t i = 0; i < 2; i++)
		spokei_world_process_fini(&stage->processes[i]);
	spokei_world_fini(&stage->world);
	secure_end(&stage->secure);
	assert_int_equal(rmdir(stage->folder), 0);
	free(stage->args);
	free(stage);
}

struct stage *stage_bare(void **state)
{
	struct stage *stage = *state;

	if (stage->absent)
		skip();
	return stage;
}

struct stage *stage_begin(void **state)
{
	struct stage *stage = stage_bare(state);

	stage_provide(stage, NULL);
	stage_consume(stage, NULL);
	return stage;
}

int stage_run(const char *group, const struct CMUnitTest *tests, size_t count)
{
	enum {
		SETTINGS = sizeof(settings) / sizeof(settings[0]),
		CASES_MAX = 1024,
		NAME_SIZE = 160,
	};
	static char names[CASES_MAX][NAME_SIZE];
	static struct CMUnitTest cases[CASES_MAX];

	if (count * SETTINGS > CASES_MAX)
		return 1;
	for (size_t i = 0; i < count * SETTINGS; i++) {
		const struct CMUnitTest *test = &tests[i / SETTINGS];
		const struct stage_setting *setting = &settings[i % SETTINGS];

		(void)snprintf(names[i], NAME_SIZE, "%s: %s", test->name, setting->name);
		cases[i] = (struct CMUnitTest){ names[i], test->test_func, stage_set_up,
						stage_tear_down, (void *)(uintptr_t)setting };
	}
	return _cmocka_run_group_tests(group, cases, count * SETTINGS, NULL, NULL);
}
