/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the measurements of `spoke bench` with a provider whose latency is known exactly. */
#include "core/virtual/world.h"
#include "examples/spoke/load.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/provider.h>

#include <string.h>

struct stage {
	struct spokei_world world;
	struct spokei_world_process here;
	struct spokei_world_process there;
	struct spoke_engine *client;
	struct spoke_engine *server;
	struct spoke_provider *provider;
	struct load_plan plan;
	struct load load;
};

static void serve(struct spoke_request *request, void *arg)
{
	static const unsigned char nil = 0xc0;

	(void)arg;
	spoke_reply(request, (struct spoke_value){ &nil, 1 });
}

static void fail_it(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply_error(request, 7, "no");
}

static void set_up(struct stage *stage)
{
	struct spoke_engine_options options = { .env = &stage->here.env, .tick_ns = 50000 };
	struct spoke_service_options service = { .name = "demo.Echo" };
	const struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = serve, .arg = stage },
		{ .method = "fail", .handle = fail_it, .arg = stage },
	};
	struct spokei_vnet_link link = { .latency_ns = MS };

	memset(stage, 0, sizeof(*stage));
	scene_open(&stage->world, 7);
	spokei_vnet_set_all(stage->world.net, &link);
	spokei_world_process_init(&stage->here, &stage->world);
	spokei_world_process_init(&stage->there, &stage->world);
	assert_int_equal(spoke_engine_new(&options, &stage->client), SPOKE_OK);
	options.env = &stage->there.env;
	assert_int_equal(spoke_engine_new(&options, &stage->server), SPOKE_OK);
	assert_int_equal(spoke_provider_new(stage->server, NULL, &stage->provider), SPOKE_OK);
	assert_int_equal(spoke_provider_add(stage->provider, &service, handlers, 2), SPOKE_OK);
	assert_int_equal(spoke_provider_listen(stage->provider, "dubbo://127.0.0.1:20880"),
			 SPOKE_OK);
	stage->plan = (struct load_plan){
		.env = &stage->here.env,
		.url = "dubbo://127.0.0.1:20880",
		.service = "demo.Echo",
		.method = "echo",
		.connections = 1,
		.outstanding = 1,
		.warm_up_ns = 100 * MS,
		.duration_ns = SECOND,
		.timeout_ns = SECOND,
	};
}

static void begin(struct stage *stage)
{
	assert_int_equal(load_begin(&stage->load, stage->client, &stage->plan), SPOKE_OK);
}

static void go(struct stage *stage, uint64_t ns)
{
	spokei_world_run(&stage->world, stage->world.now_ns + ns);
}

static void tear_down(struct stage *stage)
{
	const struct load *load = &stage->load;

	assert_int_equal(load->due, load->ok + load->failed + load->not_begun + load->not_ended);
	spoke_engine_free(stage->client);
	scene_leave(&stage->here, NULL, &stage->server);
	load_end(&stage->load);
	scene_leave(&stage->there, NULL, NULL);
	spokei_world_fini(&stage->world);
}

static void assert_about(uint64_t value, uint64_t wanted, uint64_t off)
{
	assert_in_range(value, wanted - off, wanted + off);
}

TEST(closed_loop_waits_for_each_answer)
{
	static struct stage stage;

	set_up(&stage);
	begin(&stage);
	go(&stage, 3 * SECOND);
	assert_int_equal(stage.load.stage, LOAD_OVER);
	assert_about(stage.load.ok, 500, 2); /* the round trip takes 2 ms */
	assert_int_equal(stage.load.failed, 0);
	assert_about(spoke_histogram_percentile(&stage.load.times, 990000), 2 * MS, MS / 8);
	assert_int_equal(load_span_ns(&stage.load, UINT64_MAX), SECOND);
	tear_down(&stage);
}

TEST(closed_loop_keeps_concurrency_calls_in_flight)
{
	static struct stage stage;

	set_up(&stage);
	stage.plan.outstanding = 64;
	stage.plan.calls = 1000;
	begin(&stage);
	go(&stage, 150 * MS);
	assert_int_equal(stage.load.stage, LOAD_OVER);
	assert_int_equal(stage.load.ok, 1000);
	assert_about(load_span_ns(&stage.load, UINT64_MAX), 32 * MS, 3 * MS);
	tear_down(&stage);
}

TEST(open_loop_starts_calls_at_its_rate)
{
	static struct stage stage;

	set_up(&stage);
	stage.plan.rate = 1000;
	begin(&stage);
	go(&stage, 3 * SECOND);
	assert_int_equal(stage.load.due, 1000);
	assert_int_equal(stage.load.ok, 1000);
	assert_about(spoke_histogram_percentile(&stage.load.times, 990000), 2 * MS, MS / 4);
	tear_down(&stage);
}

/* The provider stands still for 100 ms: a tenth of a second of users notice, and only one caller
 * who waits for each answer. */
TEST(missed_calls_are_counted_only_in_an_open_loop)
{
	static struct stage stage;

	for (int open = 0; open < 2; open++) {
		set_up(&stage);
		stage.plan.rate = open ? 1000 : 0;
		begin(&stage);
		go(&stage, 500 * MS);
		spokei_world_hold(&stage.there, 100 * MS);
		go(&stage, 3 * SECOND);
		assert_int_equal(stage.load.failed, 0);
		assert_about(stage.load.times.max, 101 * MS, 2 * MS);
		if (open) {
			assert_int_equal(stage.load.ok, 1000);
			assert_about(spoke_histogram_percentile(&stage.load.times, 950000), 51 * MS,
				     3 * MS);
		} else {
			assert_true(spoke_histogram_percentile(&stage.load.times, 990000) < 3 * MS);
		}
		tear_down(&stage);
	}
}

/* The caller stalls: its calls start late, and the delay counts as latency. */
TEST(latency_counts_from_the_due_time)
{
	static struct stage stage;

	set_up(&stage);
	stage.plan.rate = 1000;
	begin(&stage);
	go(&stage, 500 * MS);
	spokei_world_hold(&stage.here, 100 * MS);
	go(&stage, 3 * SECOND);
	assert_int_equal(stage.load.ok, 1000);
	assert_about(stage.load.times.max, 101 * MS, 3 * MS);
	assert_about(spoke_histogram_percentile(&stage.load.times, 950000), 51 * MS, 4 * MS);
	tear_down(&stage);
}

TEST(calls_that_could_not_begin_are_counted)
{
	static struct stage stage;
	uint64_t no_room = 0;

	set_up(&stage);
	stage.plan.rate = 1e6;
	stage.plan.timeout_ns = 10 * SECOND;
	stage.plan.duration_ns = 200 * MS;
	stage.plan.warm_up_ns = 0;
	begin(&stage);
	go(&stage, 3 * MS);
	spokei_world_hold(&stage.there, 15 * SECOND);
	go(&stage, 20 * SECOND);
	assert_int_equal(stage.load.stage, LOAD_OVER);
	assert_about(stage.load.due, 200000, 1);
	assert_int_equal(stage.load.not_ended, 0);
	/* Calls up to the limit of the consumer time out; the others are refused. */
	for (size_t i = 0; i < LOAD_KINDS; i++)
		if (stage.load.kinds[i].error == SPOKE_ELIMIT)
			no_room = stage.load.kinds[i].count;
	assert_true(no_room > 100000);
	assert_int_equal(stage.load.due - stage.load.ok - no_room - stage.load.not_begun,
			 LOAD_OUTSTANDING_MAX);
	tear_down(&stage);
}

/* The caller stands still until the run is over: of what was due meanwhile a little begins late. */
TEST(calls_without_time_to_begin_are_counted)
{
	static struct stage stage;

	set_up(&stage);
	stage.plan.rate = 10000;
	begin(&stage);
	go(&stage, 800 * MS);
	spokei_world_hold(&stage.here, 500 * MS);
	go(&stage, 3 * SECOND);
	assert_int_equal(stage.load.stage, LOAD_OVER);
	assert_int_equal(stage.load.due, 10000);
	assert_int_equal(stage.load.not_ended, 0);
	assert_in_range(stage.load.not_begun, 1500, 3000);
	assert_int_equal(stage.load.ok, 10000 - stage.load.not_begun);
	tear_down(&stage);
}

TEST(errors_are_counted_by_kind)
{
	static struct stage stage;

	set_up(&stage);
	stage.plan.method = "fail";
	stage.plan.calls = 10;
	begin(&stage);
	go(&stage, 3 * SECOND);
	assert_int_equal(stage.load.failed, 10);
	assert_int_equal(stage.load.kinds[0].error, SPOKE_EREMOTE);
	assert_int_equal(stage.load.times.count, 10);
	assert_non_null(strstr(stage.load.first_error, "no"));
	tear_down(&stage);
}

TEST(interrupted_run_counts_calls_not_ended)
{
	static struct stage stage;

	for (int twice = 0; twice < 2; twice++) {
		set_up(&stage);
		stage.plan.outstanding = 8;
		stage.plan.timeout_ns = 400 * MS;
		begin(&stage);
		go(&stage, 500 * MS);
		spokei_world_hold(&stage.there, 2 * SECOND);
		load_stop(&stage.load);
		assert_int_equal(stage.load.stage, LOAD_ENDING);
		if (twice)
			load_stop(&stage.load);
		else
			go(&stage, SECOND);
		assert_int_equal(stage.load.stage, LOAD_OVER);
		assert_int_equal(stage.load.not_ended, twice ? 8 : 0);
		assert_int_equal(stage.load.failed, twice ? 0 : 8);
		tear_down(&stage);
	}
}

TEST(load_without_provider_reports_unreachable)
{
	static struct stage stage;

	set_up(&stage);
	stage.plan.url = "dubbo://127.0.0.1:1";
	begin(&stage);
	go(&stage, 10 * SECOND);
	assert_int_equal(stage.load.stage, LOAD_OVER);
	assert_int_equal(stage.load.unreachable, SPOKE_ECONNECT);
	tear_down(&stage);
}

TEST(load_resumes_after_provider_restart)
{
	static struct stage stage;
	uint64_t before;

	set_up(&stage);
	stage.plan.duration_ns = 5 * SECOND;
	begin(&stage);
	go(&stage, SECOND);
	spoke_provider_free(stage.provider);
	go(&stage, 10 * MS);
	before = stage.load.ok;
	assert_int_equal(spoke_provider_new(stage.server, NULL, &stage.provider), SPOKE_OK);
	assert_int_equal(spoke_provider_add(stage.provider,
					    &(struct spoke_service_options){ .name = "demo.Echo" },
					    &(struct spoke_handler){ .method = "echo",
								     .handle = serve,
								     .arg = &stage },
					    1),
			 SPOKE_OK);
	assert_int_equal(spoke_provider_listen(stage.provider, "dubbo://127.0.0.1:20880"),
			 SPOKE_OK);
	go(&stage, 10 * SECOND);
	assert_int_equal(stage.load.stage, LOAD_OVER);
	assert_true(stage.load.ok > before + 1000);
	assert_true(stage.load.failed > 0);
	tear_down(&stage);
}
