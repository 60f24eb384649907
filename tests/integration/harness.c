/* SPDX-License-Identifier: Apache-2.0 */
/* The harness: its participants, and how time passes for them. */
#define _GNU_SOURCE
#include "tests/integration/harness.h"
#include "cluster/endpoints/directory.h"
#include "tests/support/scene.h"

#include <spoke/consumer.h>
#include <spoke/host.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STEP_NS MS
#define REST_NS 50000
#define PATIENCE_VIRTUAL_NS (1000 * SECOND)
#define PATIENCE_REAL_NS (60 * SECOND)
#define ROWS_MAX 512
#define NAME_SIZE 160
#define ENDPOINTS_MAX 8u

enum {
	UNDER_TEST,
	GOOD,
	RAW,
};

static const struct place {
	enum stage_on on;
	const char *name;
	const char *provider_url; /* NULL: a path in the stage's directory */
	const char *raw_at;
} places[] = {
	{ STAGE_MEMORY, "memory", "dubbo://127.0.0.1:20880", "127.0.0.1:20881" },
	{ STAGE_ROUGH, "rough memory", "dubbo://127.0.0.1:20880", "127.0.0.1:20881" },
	{ STAGE_TCP, "tcp", "dubbo://127.0.0.1:0", "127.0.0.1:0" },
	{ STAGE_UNIX, "unix", NULL, NULL },
};

static const struct spokei_vnet_link rough_link = {
	.latency_ns = MS,
	.jitter_ns = MS / 2,
	.capacity = 4000,
	.write_max = 1200,
	.read_max = 800,
	.eagain_permille = 200,
};

bool stage_is_virtual(const struct stage *stage)
{
	return (stage->on & STAGE_VIRTUAL) != 0;
}

/* --- time */

uint64_t stage_now(const struct stage *stage)
{
	const struct spoke_env *env = stage->faulty.inner;

	return env->now(env->ctx);
}

/* Returns a number that grows with all progress of the engines. */
static uint64_t work_of(const struct stage *stage)
{
	static const enum spoke_stat work[] = { SPOKE_STAT_BYTES_READ, SPOKE_STAT_BYTES_WRITTEN,
						SPOKE_STAT_ACCEPTED, SPOKE_STAT_CLOSED };
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(work) / sizeof(work[0]); i++) {
		if (stage->engine)
			sum += spoke_stat_get(stage->engine, work[i]);
		sum += spoke_stat_get(stage->good, work[i]);
	}
	return sum;
}

void stage_turn(struct stage *stage)
{
	uint64_t work = work_of(stage);

	if (stage_is_virtual(stage)) {
		(void)spokei_world_step(&stage->world, stage->world.now_ns + STEP_NS);
		return;
	}
	if (stage->engine)
		assert_int_equal(spoke_engine_turn(stage->engine, false), SPOKE_OK);
	assert_int_equal(spoke_engine_turn(stage->good, false), SPOKE_OK);
	if (work_of(stage) == work)
		(void)nanosleep(&(struct timespec){ .tv_nsec = REST_NS }, NULL);
}

void stage_pass(struct stage *stage, uint64_t ns)
{
	uint64_t end_ns = stage_now(stage) + ns;

	if (stage_is_virtual(stage)) {
		spokei_world_run(&stage->world, end_ns);
		return;
	}
	assert_true(ns <= 300 * MS);
	while (stage_now(stage) < end_ns)
		stage_turn(stage);
}

void stage_until(struct stage *stage, bool (*is_so)(void *arg), void *arg)
{
	uint64_t patience_ns = stage_is_virtual(stage) ? PATIENCE_VIRTUAL_NS : PATIENCE_REAL_NS;
	uint64_t end_ns = stage_now(stage) + patience_ns;

	while (!is_so(arg)) {
		if (stage_now(stage) > end_ns)
			fail_msg("the awaited event did not occur");
		stage_turn(stage);
	}
}

/* --- counters */

uint64_t stage_stat(const struct stage *stage, enum spoke_stat stat)
{
	return spoke_stat_get(stage->engine, stat);
}

void stage_mark(struct stage *stage)
{
	for (unsigned i = 0; i < SPOKE_STAT_COUNT; i++)
		stage->stats[i] = stage_stat(stage, (enum spoke_stat)i);
	stage->demands = stage->faulty.calls[SPOKEI_FAULTS_MEMORY];
	stage->faulty.bytes_peak = stage->faulty.bytes;
	stage->faulty.largest = 0;
}

uint64_t stage_up(const struct stage *stage, enum spoke_stat stat)
{
	return stage_stat(stage, stat) - stage->stats[stat];
}

uint64_t stage_demands(const struct stage *stage)
{
	return stage->faulty.calls[SPOKEI_FAULTS_MEMORY] - stage->demands;
}

void stage_assert_up(const struct stage *stage, enum spoke_stat stat, uint64_t count,
		     const char *file, int line)
{
	uint64_t up = stage_up(stage, stat);

	if (up == count)
		return;
	print_error("%s is up by %llu, not by %llu\n", spoke_stat_name(stat),
		    (unsigned long long)up, (unsigned long long)count);
	_fail(file, line);
}

void stage_assert_closed(const struct stage *stage, enum spoke_stat stat, uint64_t count,
			 const char *file, int line)
{
	stage_assert_up(stage, SPOKE_STAT_CLOSED, count, file, line);
	for (unsigned i = SPOKE_STAT_CLOSED_BY_PEER; i <= SPOKE_STAT_CLOSED_MEMORY; i++)
		stage_assert_up(stage, (enum spoke_stat)i, i == stat ? count : 0, file, line);
}

struct counting {
	struct stage *stage;
	enum spoke_stat stat;
	uint64_t count;
};

static bool is_up(void *arg)
{
	const struct counting *counting = arg;

	return stage_up(counting->stage, counting->stat) >= counting->count;
}

void stage_until_up(struct stage *stage, enum spoke_stat stat, uint64_t count)
{
	stage_until(stage, is_up, &(struct counting){ stage, stat, count });
}

void stage_until_read(struct stage *stage, uint64_t bytes)
{
	stage_until_up(stage, SPOKE_STAT_BYTES_READ, bytes);
}

/* --- participants */

static const struct place *place_of(const struct stage *stage)
{
	const struct place *place = places;

	while (place->on != stage->on)
		place++;
	return place;
}

static bool second_is_ready(void *arg)
{
	const struct stage *stage = arg;

	return spoke_consumer_ready(stage->second) == 1;
}

/* Creates a consumer of an address, with its method "echo". */
static void make_consumers(struct spoke_engine *engine, const char *at,
			   const struct spoke_consumer_options *options, size_t count,
			   struct spoke_consumer **ret_consumer, struct spoke_method **ret_echo)
{
	struct spoke_consumer_options with = { 0 };
	bool is_path = strncmp(at, "unix:", 5) == 0;
	const char *more[ENDPOINTS_MAX];
	char url[256];

	assert_in_range(count, 1, ENDPOINTS_MAX);
	if (options)
		with = *options;
	(void)snprintf(url, sizeof(url), "%s%s%s" STAGE_SERVICE, is_path ? "" : "dubbo://", at,
		       is_path ? "?interface=" : "/");
	for (size_t i = 0; i < count; i++)
		more[i] = url;
	with.url = url;
	if (with.serialization == SPOKE_SERIALIZATION_DEFAULT)
		with.serialization = SPOKE_SERIALIZATION_MSGPACK; /* as the raw providers */
	with.balancer = &spoke_balancer_round_robin;
	with.more_urls = more;
	with.more_count = count - 1;
	if (with.timeout_ns == 0)
		with.timeout_ns = STAGE_TIMEOUT_NS;
	assert_int_equal(spoke_consumer_new(engine, &with, ret_consumer), SPOKE_OK);
	assert_int_equal(spoke_consumer_method(*ret_consumer, "echo", NULL, ret_echo), SPOKE_OK);
}

static void make_consumer(struct spoke_engine *engine, const char *at,
			  const struct spoke_consumer_options *options,
			  struct spoke_consumer **ret_consumer, struct spoke_method **ret_echo)
{
	make_consumers(engine, at, options, 1, ret_consumer, ret_echo);
}

static void make_provider(struct stage *stage, struct spoke_engine *engine,
			  const struct spoke_provider_options *options)
{
	const char *url = place_of(stage)->provider_url;
	char path[128];

	(void)snprintf(path, sizeof(path), "unix:%s/provider", stage->folder);
	assert_int_equal(spoke_provider_new(engine, options, &stage->provider), SPOKE_OK);
	stage_serve(stage, stage->provider);
	assert_int_equal(spoke_provider_listen(stage->provider, url ? url : path), SPOKE_OK);
	assert_true(spoke_provider_address(stage->provider, 0, stage->provider_at,
					   sizeof(stage->provider_at)) > 0);
}

/* A few calls allocate all the memory that a good connection needs. */
static void warm_up(struct stage *stage)
{
	stage_until(stage, second_is_ready, stage);
	for (int i = 0; i < 3; i++)
		assert_second_connection_works(stage);
}

void stage_set_provider(struct stage *stage, const struct spoke_provider_options *options)
{
	make_provider(stage, stage->engine, options);
	stage->limits = &stage->provider->link->limits;
	make_consumer(stage->good, stage->provider_at, NULL, &stage->second, &stage->second_echo);
	warm_up(stage);
}

struct raw *stage_raw_to_provider(struct stage *stage)
{
	struct raw *raw;

	stage_set_provider(stage, NULL);
	raw = raw_connect(stage);
	stage_mark(stage);
	return raw;
}

static void raw_listen(struct stage *stage)
{
	const struct spoke_env *env = stage->peer_env;
	const char *at = place_of(stage)->raw_at;
	struct spoke_address address;
	char path[128];

	(void)snprintf(path, sizeof(path), "unix:%s/raw", stage->folder);
	assert_int_equal(env->net->parse(env->ctx, at ? at : path, &address), 0);
	assert_int_equal(env->net->listen(env->ctx, &address, 64, &stage->raw_listener), 0);
	assert_int_equal(env->net->local(env->ctx, stage->raw_listener, &address), 0);
	env->net->print(env->ctx, &address, stage->raw_at, sizeof(stage->raw_at));
}

void stage_set_consumer(struct stage *stage, const struct spoke_consumer_options *options)
{
	make_provider(stage, stage->good, NULL);
	raw_listen(stage);
	make_consumer(stage->engine, stage->provider_at, NULL, &stage->second, &stage->second_echo);
	make_consumer(stage->engine, stage->raw_at, options, &stage->consumer, &stage->echo);
	stage->limits = &stage->consumer->link->limits;
	warm_up(stage);
}

void stage_add_consumer(struct stage *stage, const struct spoke_consumer_options *options,
			size_t count, struct spoke_consumer **ret_consumer,
			struct spoke_method **ret_echo)
{
	make_consumers(stage->engine, stage->raw_at, options, count, ret_consumer, ret_echo);
}

struct spokei_conn *stage_conn_of(const struct spoke_consumer *consumer)
{
	struct spokei_conn *conn = spokei_connector_conn(
		consumer->directory->candidates.endpoints[0]->lines[0].connector);

	assert_non_null(conn);
	return conn;
}

struct raw *stage_raw_to_consumer(struct stage *stage)
{
	struct spokei_message message;
	struct raw *raw;

	stage_set_consumer(stage, NULL);
	raw = raw_accept(stage);
	raw_frame(raw, &message);
	assert_int_equal(message.kind, SPOKEI_PROBE);
	stage_mark(stage);
	return raw;
}

void stage_shorten(struct stage *stage)
{
	if (stage_is_virtual(stage))
		return;
	stage->limits->frame_ns = 100 * MS;
	stage->limits->slow_ns = 150 * MS;
	stage->limits->mute_ns = 200 * MS;
}

/* --- set-up and tear-down */

struct stage_case {
	const struct row *row;
	const struct place *place;
	struct stage *stage;
};

static void open_virtual(struct stage *stage)
{
	scene_open(&stage->world, 29);
	for (unsigned i = 0; i < 3; i++)
		spokei_world_process_init(&stage->processes[i], &stage->world);
	if (stage->on == STAGE_ROUGH)
		spokei_vnet_set_all(stage->world.net, &rough_link);
	spokei_faults_init(&stage->faulty, &stage->processes[UNDER_TEST].env);
	stage->peer_env = &stage->processes[RAW].env;
}

static int set_up(void **state)
{
	struct stage_case *one = *state;
	struct stage *stage = calloc(1, sizeof(*stage));
	struct spoke_engine_options options = { 0 };
	int error;

	if (stage == NULL)
		return -1;
	one->stage = stage;
	stage->on = one->place->on;
	stage->raw_listener = -1;
	(void)snprintf(stage->folder, sizeof(stage->folder), "/tmp/spoke-test-stage-XXXXXX");
	if (mkdtemp(stage->folder) == NULL || getrlimit(RLIMIT_NOFILE, &stage->files) != 0)
		return -1;
	if (stage_is_virtual(stage)) {
		open_virtual(stage);
	} else {
		spokei_faults_init(&stage->faulty, spoke_host_env());
		stage->peer_env = spoke_host_env();
	}
	options.env = &stage->faulty.env;
	error = spoke_engine_new(&options, &stage->engine);
	if (error)
		return error;
	options.env = stage_is_virtual(stage) ? &stage->processes[GOOD].env : spoke_host_env();
	return spoke_engine_new(&options, &stage->good);
}

static int close_virtual(struct stage *stage)
{
	int left = (int)stage->processes[UNDER_TEST].blocks;

	for (unsigned i = 0; i < 3; i++) {
		left += (int)stage->processes[i].user.fds;
		spokei_world_process_fini(&stage->processes[i]);
	}
	spokei_world_fini(&stage->world);
	return left;
}

static void close_raws(struct stage *stage)
{
	while (stage->raws) {
		struct raw *raw = stage->raws;

		stage->raws = raw->next;
		raw_close(raw);
		spokei_buffer_fini(&raw->in);
		free(raw);
	}
	if (stage->raw_listener >= 0)
		stage->peer_env->net->close(stage->peer_env->ctx, stage->raw_listener);
}

static int tear_down(void **state)
{
	struct stage_case *one = *state;
	struct stage *stage = one->stage;
	int left = 0;

	(void)setrlimit(RLIMIT_NOFILE, &stage->files);
	stage_end_serving(stage);
	close_raws(stage);
	spoke_engine_free(stage->engine);
	spoke_engine_free(stage->good);
	if (stage_is_virtual(stage))
		left = close_virtual(stage);
	left += (int)(stage->faulty.blocks + stage->faulty.fds);
	left += rmdir(stage->folder);
	if (left)
		print_error("the stage was left with %zu blocks of memory, %zu descriptors\n",
			    stage->faulty.blocks, stage->faulty.fds);
	free(stage);
	return left;
}

static void run_case(void **state)
{
	struct stage_case *one = *state;

	one->row->test(one->stage);
}

int stage_run_rows(const char *group, const struct CMUnitTest *rows, size_t count)
{
	static char names[ROWS_MAX][NAME_SIZE];
	static struct CMUnitTest tests[ROWS_MAX];
	static struct stage_case cases[ROWS_MAX];
	size_t total = 0;

	for (size_t i = 0; i < count; i++) {
		const struct row *row = rows[i].initial_state;

		for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
			if ((row->on & places[k].on) == 0)
				continue;
			if (total == ROWS_MAX)
				return 1;
			cases[total] = (struct stage_case){ row, &places[k], NULL };
			(void)snprintf(names[total], NAME_SIZE, "%s %s", rows[i].name,
				       places[k].name);
			tests[total] = (struct CMUnitTest){ names[total], run_case, set_up,
							    tear_down, &cases[total] };
			total++;
		}
	}
	return _cmocka_run_group_tests(group, tests, total, NULL, NULL);
}
