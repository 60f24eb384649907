/* SPDX-License-Identifier: Apache-2.0 */
/* Providers that listen together, each engine on its own thread, and threads that call. */
#define _GNU_SOURCE

#include "tests/support/test.h"

#include <spoke/future.h>
#include <spoke/host.h>
#include <spoke/provider.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	ENGINES = 2,
	THREADS = 4,
	CONNECTIONS = 16,
	CALLS = 60,       /* of each thread while all engines run */
	CALLS_MAX = 5000, /* ... and while engines end */
};

struct side {
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct spoke_post drain;
	struct spoke_post turned;
	atomic_bool has_turned;
	atomic_uint served;
};

struct rig {
	struct side sides[ENGINES];
	struct spoke_engine *engine;
	struct spoke_method *echo;
	char folder[40];
	char url[160];
	atomic_uint good;
	atomic_uint refused; /* refused without being run */
	atomic_uint lost;
	atomic_bool going;
};

static void serve(struct spoke_request *request, void *arg)
{
	struct side *side = arg;

	atomic_fetch_add(&side->served, 1);
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void drain(struct spoke_post *post)
{
	struct side *side = spoke_container_of(post, struct side, drain);

	if (spoke_engine_drain(side->engine, 20 * SECOND))
		spoke_engine_stop(side->engine);
}

static void note_turn(struct spoke_post *post)
{
	struct side *side = spoke_container_of(post, struct side, turned);

	atomic_store(&side->has_turned, true);
}

static void provide(struct side *side)
{
	static const struct spoke_service_options service = { .name = "demo.Join" };
	const struct spoke_handler handler = { .method = "echo", .handle = serve, .arg = side };

	side->drain.run = drain;
	side->turned.run = note_turn;
	assert_int_equal(spoke_engine_new(NULL, &side->engine), 0);
	assert_int_equal(spoke_provider_new(side->engine, NULL, &side->provider), 0);
	assert_int_equal(spoke_provider_add(side->provider, &service, &handler, 1), 0);
}

static void consume(struct rig *rig)
{
	const struct spoke_consumer_options options = { .url = rig->url,
							.timeout_ns = 30 * SECOND,
							.connections = CONNECTIONS };
	struct spoke_consumer *consumer;

	assert_int_equal(spoke_engine_new(NULL, &rig->engine), 0);
	assert_int_equal(spoke_consumer_new(rig->engine, &options, &consumer), 0);
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &rig->echo), 0);
}

/* How the engines share an address. */
enum way {
	BY_SYSTEM,
	IN_TURNS,
	AT_PATH
};

static void set_up(struct rig *rig, enum way way)
{
	struct side *sides = rig->sides;
	char place[128];

	*rig = (struct rig){ .folder = "/tmp/spoke-join-XXXXXX" };
	assert_non_null(mkdtemp(rig->folder));
	if (way == AT_PATH)
		(void)snprintf(place, sizeof(place), "unix:%s/socket?shared=true", rig->folder);
	else
		(void)snprintf(place, sizeof(place), "dubbo://127.0.0.1:0?shared=%s",
			       way == IN_TURNS ? "turns" : "true");
	for (unsigned i = 0; i < ENGINES; i++)
		provide(&sides[i]);
	assert_int_equal(spoke_provider_listen(sides[0].provider, place), 0);
	assert_true(spoke_provider_address(sides[0].provider, 0, place, sizeof(place)) > 0);
	/* The second engine joins an engine that is running. */
	assert_int_equal(spoke_engine_start(sides[0].engine), 0);
	assert_int_equal(spoke_provider_join(sides[1].provider, sides[0].provider), 0);
	assert_int_equal(spoke_engine_start(sides[1].engine), 0);
	/* The first engine knows the second once it has run a later post. */
	spoke_engine_post(sides[0].engine, &sides[0].turned);
	while (!atomic_load(&sides[0].has_turned))
		;
	(void)snprintf(rig->url, sizeof(rig->url),
		       way == AT_PATH ? "%s?interface=demo.Join" : "dubbo://%s/demo.Join", place);
	consume(rig);
	assert_int_equal(spoke_engine_start(rig->engine), 0);
}

static void tear_down(struct rig *rig)
{
	spoke_engine_free(rig->engine);
	for (unsigned i = 0; i < ENGINES; i++)
		spoke_engine_free(rig->sides[i].engine);
	assert_int_equal(rmdir(rig->folder), 0);
}

static int call(struct rig *rig)
{
	int error = spoke_call_wait(rig->echo, (struct spoke_span){ NULL, 0 }, NULL, NULL);

	if (error == SPOKE_OK)
		atomic_fetch_add(&rig->good, 1);
	else if (error == SPOKE_EREFUSED || error == SPOKE_EUNAVAILABLE)
		atomic_fetch_add(&rig->refused, 1);
	else
		atomic_fetch_add(&rig->lost, 1);
	return error;
}

static void call_often(void *arg)
{
	for (int i = 0; i < CALLS; i++)
		(void)call(arg);
}

/* Runs until no engine is left. */
static void call_to_the_end(void *arg)
{
	struct rig *rig = arg;
	int error = SPOKE_OK;

	for (int i = 0; i < CALLS_MAX && error != SPOKE_EUNAVAILABLE; i++) {
		error = call(rig);
		if (i == 20)
			atomic_store(&rig->going, true);
	}
	/* Releases the waiting thread, even if all calls failed at once. */
	atomic_store(&rig->going, true);
}

static void start_all(struct rig *rig, void (*run)(void *arg), void *threads[THREADS])
{
	const struct spoke_env *env = spoke_host_env();

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(env->threads->start(env->ctx, run, rig, &threads[i]), 0);
}

static void join_all(void *const threads[THREADS])
{
	for (int i = 0; i < THREADS; i++)
		spoke_host_env()->threads->join(threads[i]);
}

static void calls_come_to_both_and_none_is_lost(enum way way)
{
	void *threads[THREADS];
	unsigned served[ENGINES];
	struct rig rig;

	set_up(&rig, way);
	start_all(&rig, call_often, threads);
	join_all(threads);
	for (unsigned i = 0; i < ENGINES; i++)
		served[i] = atomic_load(&rig.sides[i].served);
	assert_int_equal(served[0] + served[1], THREADS * CALLS);
	assert_int_equal(atomic_load(&rig.good), THREADS * CALLS);
	/* Each engine has some of the 16 connections; the probability of the contrary is 2^-15. */
	assert_true(served[0] > 0 && served[1] > 0);

	start_all(&rig, call_to_the_end, threads);
	while (!atomic_load(&rig.going))
		;
	for (unsigned i = 0; i < ENGINES; i++)
		spoke_engine_post(rig.sides[i].engine, &rig.sides[i].drain);
	for (unsigned i = 0; i < ENGINES; i++)
		assert_int_equal(spoke_engine_join(rig.sides[i].engine), 0);
	join_all(threads);
	assert_int_equal(atomic_load(&rig.lost), 0);
	assert_int_equal(atomic_load(&rig.sides[0].served) + atomic_load(&rig.sides[1].served),
			 atomic_load(&rig.good));
	tear_down(&rig);
}

TEST(threads_share_connections_at_port)
{
	calls_come_to_both_and_none_is_lost(BY_SYSTEM);
}

TEST(threads_share_connections_at_port_with_turns)
{
	calls_come_to_both_and_none_is_lost(IN_TURNS);
}

TEST(threads_share_connections_at_path)
{
	calls_come_to_both_and_none_is_lost(AT_PATH);
}

/* One engine joins and parts while another one hands connections over. */
TEST(thread_can_join_and_part_repeatedly_at_path)
{
	struct rig rig;

	set_up(&rig, AT_PATH);
	for (int i = 0; i < 10; i++) {
		struct side side = { .engine = NULL };
		struct spoke_engine *before = rig.engine;

		provide(&side);
		assert_int_equal(spoke_provider_join(side.provider, rig.sides[0].provider), 0);
		/* Connections arrive while the engine begins, and while it ends. */
		consume(&rig);
		assert_int_equal(spoke_engine_start(rig.engine), 0);
		assert_int_equal(spoke_engine_start(side.engine), 0);
		spoke_engine_free(before);
		spoke_engine_free(side.engine);
	}
	tear_down(&rig);
}
