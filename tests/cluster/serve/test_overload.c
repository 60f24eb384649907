/* SPDX-License-Identifier: Apache-2.0 */
/* Providers under more load than they can take: without a limit, with a fixed one, and with that of
 * the deadlines. The time is virtual. */
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>

#include <string.h>

#define AT "127.0.0.1:20880"
#define TIMEOUT (100 * MS)
#define SERVERS 10u
#define SERVICE (10 * MS)
#define CAPACITY 1000u /* a second: SERVERS / SERVICE, and 1 / HOLD */
#define HOLD MS
#define BATCH 100u /* answers may come together */
#define QUEUE 65536u

/* Serves one request at a time. */
struct server {
	struct spoke_alarm alarm;
	struct spoke_request *request;
};

static struct {
	struct spokei_world world;
	struct spokei_world_process client;
	struct spokei_world_process process;
	struct spoke_engine *caller;
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	struct spoke_method *queued; /* handlers answer later, from a queue with servers */
	struct spoke_method *held;   /* handlers hold the loop */
	struct server servers[SERVERS];
	uint64_t service_ns;
	struct spoke_request *queue[QUEUE];
	unsigned head;
	unsigned waiting;
	unsigned calls;
	unsigned ended;
	unsigned ok; /* in time */
	unsigned refused;
	unsigned handled;
	uint64_t stats[SPOKE_STAT_COUNT]; /* of the provider, at its end */
} rig;

/* --- the provider */

static void reply(struct spoke_request *request)
{
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void serve_next(struct server *server);

static void server_done(struct spoke_alarm *alarm)
{
	struct server *server = spoke_container_of(alarm, struct server, alarm);

	reply(server->request);
	server->request = NULL;
	serve_next(server);
}

/* As a queue does that knows nothing of deadlines. */
static void serve_next(struct server *server)
{
	if (rig.waiting == 0)
		return;
	rig.waiting--;
	server->request = rig.queue[rig.head++ % QUEUE];
	assert_int_equal(spoke_alarm_after(rig.engine, &server->alarm, rig.service_ns, server_done),
			 SPOKE_OK);
}

static void handle_queued(struct spoke_request *request, void *arg)
{
	(void)arg;
	rig.handled++;
	assert_in_range(rig.waiting, 0, QUEUE - 1);
	rig.queue[(rig.head + rig.waiting++) % QUEUE] = request;
	for (unsigned i = 0; i < SERVERS; i++) {
		if (rig.servers[i].request == NULL) {
			serve_next(&rig.servers[i]);
			return;
		}
	}
}

static void handle_held(struct spoke_request *request, void *arg)
{
	(void)arg;
	rig.handled++;
	spokei_world_hold(&rig.process, HOLD);
	reply(request);
}

static void begin(uint32_t executes)
{
	static const struct spoke_service_options service = { .name = "S" };
	const struct spoke_handler handlers[] = {
		{ .method = "queued", .handle = handle_queued, .executes = executes },
		{ .method = "held", .handle = handle_held, .executes = executes },
	};
	const struct spoke_provider_options options = { .requests_max = QUEUE / 2,
							.requests_per_connection_max = QUEUE / 2 };
	const struct spoke_consumer_options with = {
		.url = "dubbo://" AT "/S?timeout=100&cluster=failfast&eject.failures=0"
		       "&pending.max=1000000",
	};

	memset(&rig, 0, sizeof(rig));
	rig.service_ns = SERVICE;
	scene_open(&rig.world, 7);
	rig.caller = scene_engine(&rig.world, &rig.client, NULL, NULL);
	rig.engine = scene_engine(&rig.world, &rig.process, NULL, NULL);
	assert_int_equal(spoke_provider_new(rig.engine, &options, &rig.provider), 0);
	assert_int_equal(spoke_provider_add(rig.provider, &service, handlers, LENGTH(handlers)), 0);
	assert_int_equal(spoke_provider_listen(rig.provider, "dubbo://" AT), 0);
	assert_int_equal(spoke_consumer_new(rig.caller, &with, &rig.consumer), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "queued", NULL, &rig.queued), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "held", NULL, &rig.held), 0);
	scene_pass(&rig.world, 10 * MS);
}

static void finish(void)
{
	scene_pass(&rig.world, 40 * SECOND); /* until the queue is empty */
	assert_int_equal(rig.waiting, 0);
	assert_int_equal(rig.ended, rig.calls);
	for (unsigned i = 0; i < SPOKE_STAT_COUNT; i++)
		rig.stats[i] = spoke_stat_get(rig.engine, (enum spoke_stat)i);
	spoke_consumer_free(rig.consumer);
	spoke_provider_free(rig.provider);
	scene_pass(&rig.world, 10 * MS);
	scene_leave(&rig.client, NULL, &rig.caller);
	scene_leave(&rig.process, NULL, &rig.engine);
	spokei_world_fini(&rig.world);
}

/* --- the callers */

static void call_done(void *arg, const struct spoke_result *result)
{
	(void)arg;
	rig.ended++;
	rig.ok += result->error == SPOKE_OK;
	rig.refused += result->error == SPOKE_EREFUSED;
}

/* Calls so many times a second, spread evenly. Returns how many calls were answered in time. */
static unsigned load(struct spoke_method *method, unsigned per_second, uint64_t ns)
{
	const struct spoke_span none = { "", 0 };
	unsigned before = rig.ok;
	uint64_t due = 0;

	for (uint64_t i = 0; i < ns / MS; i++) {
		for (due += per_second; due >= 1000; due -= 1000) {
			assert_int_equal(spoke_call(method, none, NULL, call_done, NULL, NULL), 0);
			rig.calls++;
		}
		scene_pass(&rig.world, MS);
	}
	return rig.ok - before;
}

/* --- queues of handlers */

/* Returns how many of 4 s were answered in time, after 2 s. */
static unsigned overload(bool queued, uint32_t executes, unsigned times)
{
	struct spoke_method *method;
	unsigned ok;

	begin(executes);
	method = queued ? rig.queued : rig.held;
	(void)load(method, times * CAPACITY, 2 * SECOND);
	ok = load(method, times * CAPACITY, 4 * SECOND);
	finish();
	return ok;
}

TEST(overload_without_limit_answers_none_in_time)
{
	assert_in_range(overload(true, 0, 2), 0, 4 * CAPACITY / 5);
	assert_in_range(overload(true, 0, 5), 0, 4 * CAPACITY / 5);
}

TEST(limit_of_deadlines_leaves_nine_tenths_of_the_capacity)
{
	assert_in_range(overload(true, SPOKE_EXECUTES_AUTO, 2), 4 * CAPACITY * 9 / 10,
			4 * CAPACITY + BATCH);
	assert_in_range(overload(true, SPOKE_EXECUTES_AUTO, 5), 4 * CAPACITY * 9 / 10,
			4 * CAPACITY + BATCH);
}

TEST(refused_requests_have_not_run)
{
	begin(SPOKE_EXECUTES_AUTO);
	(void)load(rig.queued, 5 * CAPACITY, 2 * SECOND);
	finish();
	assert_in_range(rig.refused, CAPACITY, 10 * CAPACITY);
	assert_int_equal(rig.handled + rig.refused, rig.calls);
	assert_int_equal(rig.stats[SPOKE_STAT_REFUSED_LATE], rig.refused);
	assert_int_equal(rig.stats[SPOKE_STAT_REQUESTS_REFUSED], rig.refused);
	assert_int_equal(rig.stats[SPOKE_STAT_REFUSED_EXECUTES], 0);
}

TEST(fixed_limit_is_counted_as_such)
{
	begin(2 * SERVERS);
	(void)load(rig.queued, 5 * CAPACITY, SECOND);
	finish();
	assert_in_range(rig.refused, CAPACITY, 5 * CAPACITY);
	assert_int_equal(rig.stats[SPOKE_STAT_REFUSED_EXECUTES], rig.refused);
	assert_int_equal(rig.stats[SPOKE_STAT_REFUSED_LATE], 0);
}

TEST(none_is_refused_before_and_after_overload)
{
	begin(SPOKE_EXECUTES_AUTO);
	(void)load(rig.queued, CAPACITY * 8 / 10, 2 * SECOND);
	assert_int_equal(rig.refused, 0);
	(void)load(rig.queued, CAPACITY * 5, 2 * SECOND);
	assert_in_range(rig.refused, CAPACITY, 10 * CAPACITY);
	(void)load(rig.queued, CAPACITY * 8 / 10, SECOND);
	rig.refused = 0;
	assert_in_range(load(rig.queued, CAPACITY * 8 / 10, 2 * SECOND), CAPACITY * 15 / 10,
			CAPACITY * 17 / 10);
	finish();
	assert_int_equal(rig.refused, 0);
}

/* --- the loop */

TEST(loop_without_limit_wastes_its_time)
{
	assert_in_range(overload(false, 0, 5), 0, 4 * CAPACITY * 7 / 10);
}

TEST(loop_with_limit_of_deadlines_answers_in_time)
{
	assert_in_range(overload(false, SPOKE_EXECUTES_AUTO, 2), 4 * CAPACITY * 9 / 10,
			4 * CAPACITY + BATCH);
	assert_in_range(overload(false, SPOKE_EXECUTES_AUTO, 5), 4 * CAPACITY * 9 / 10,
			4 * CAPACITY + BATCH);
}

TEST(requests_that_loop_refuses_have_not_run)
{
	begin(SPOKE_EXECUTES_AUTO);
	(void)load(rig.held, 5 * CAPACITY, 2 * SECOND);
	finish();
	assert_in_range(rig.refused, CAPACITY, 10 * CAPACITY);
	assert_int_equal(rig.handled + rig.refused, rig.calls);
	assert_int_equal(rig.stats[SPOKE_STAT_REFUSED_LATE], rig.refused);
}

TEST(loop_refuses_none_that_it_can_answer)
{
	begin(SPOKE_EXECUTES_AUTO);
	assert_in_range(load(rig.held, CAPACITY * 8 / 10, 2 * SECOND), CAPACITY * 15 / 10,
			CAPACITY * 17 / 10);
	finish();
	assert_int_equal(rig.refused, 0);
	assert_int_equal(rig.ok, rig.calls);
}
