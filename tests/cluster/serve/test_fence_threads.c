/* SPDX-License-Identifier: Apache-2.0 */
/* One fence for providers of several engines, each on its own thread. */
#define _GNU_SOURCE

#include "tests/support/test.h"

#include <spoke/fence.h>
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
	CALLS = 150, /* of each thread */
	NAMES = 3,
	TEXT = 64,
};

struct side {
	struct spoke_engine *engine; /* of the provider */
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	char url[128];
};

static struct rig {
	struct spoke_fence *fence;
	struct spoke_engine *engine; /* of the consumers */
	struct side sides[ENGINES];
	char folder[40];
	atomic_ullong next; /* fence number */
	atomic_uint served;
	atomic_uint passed;
	atomic_uint fenced;
} rig;

static void serve(struct spoke_request *request, void *arg)
{
	(void)arg;
	atomic_fetch_add(&rig.served, 1);
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void begin_side(struct side *side, unsigned index)
{
	const struct spoke_filter *filters[] = { spoke_fence_filter(rig.fence) };
	const struct spoke_provider_options options = { .filters = filters, .filter_count = 1 };
	static const struct spoke_service_options service = { .name = "S" };
	const struct spoke_handler handler = { .method = "write", .handle = serve };
	struct spoke_consumer_options with = { .url = side->url };
	struct spoke_provider *provider;

	assert_int_equal(spoke_engine_new(NULL, &side->engine), 0);
	assert_int_equal(spoke_provider_new(side->engine, &options, &provider), 0);
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), 0);
	(void)snprintf(side->url, sizeof(side->url), "unix:%s/%u", rig.folder, index);
	assert_int_equal(spoke_provider_listen(provider, side->url), 0);
	(void)snprintf(side->url, sizeof(side->url), "unix:%s/%u?interface=S&timeout=30s&retries=0",
		       rig.folder, index);
	assert_int_equal(spoke_consumer_new(rig.engine, &with, &side->consumer), 0);
	assert_int_equal(spoke_consumer_method(side->consumer, "write", NULL, &side->method), 0);
	assert_int_equal(spoke_engine_start(side->engine), 0);
}

static void begin(void)
{
	const struct spoke_fence_options options = { .names_max = NAMES };

	rig = (struct rig){ .folder = "/tmp/spoke-fence-XXXXXX" };
	atomic_store(&rig.next, 1);
	assert_non_null(mkdtemp(rig.folder));
	assert_int_equal(spoke_fence_new(NULL, &options, &rig.fence), 0);
	assert_int_equal(spoke_engine_new(NULL, &rig.engine), 0);
	for (unsigned i = 0; i < ENGINES; i++)
		begin_side(&rig.sides[i], i);
	assert_int_equal(spoke_engine_start(rig.engine), 0);
}

static void end(void)
{
	spoke_engine_free(rig.engine);
	for (unsigned i = 0; i < ENGINES; i++)
		spoke_engine_free(rig.sides[i].engine);
	spoke_fence_free(rig.fence);
	assert_int_equal(rmdir(rig.folder), 0);
}

static int call(struct side *side, const char *name, uint64_t number)
{
	unsigned char memory[256];
	struct spoke_call_options options = { 0 };
	struct spoke_builder builder;
	char text[TEXT];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_map(&builder, 2);
	spoke_pack_text(&builder, "spoke.lease");
	spoke_pack_text(&builder, name);
	spoke_pack_text(&builder, "spoke.fence");
	spoke_pack_text(&builder, text);
	if (spoke_builder_finish_value(&builder, &options.attachments))
		return SPOKE_ENOMEM;
	return spoke_call_wait(side->method, (struct spoke_span){ NULL, 0 }, &options, NULL);
}

/* Calls both providers in turn, with numbers that mostly grow. */
static void call_often(void *arg)
{
	static const char *const names[NAMES] = { "a", "b", "c" };

	(void)arg;
	for (unsigned i = 0; i < CALLS; i++) {
		uint64_t number = atomic_fetch_add(&rig.next, 1);
		int error = call(&rig.sides[i % ENGINES], names[i % NAMES], number);

		if (error == SPOKE_OK)
			atomic_fetch_add(&rig.passed, 1);
		else if (error == SPOKE_EREMOTE)
			atomic_fetch_add(&rig.fenced, 1);
	}
}

TEST(number_seen_on_one_engine_fences_the_other)
{
	begin();
	assert_int_equal(call(&rig.sides[0], "a", 9), SPOKE_OK);
	assert_int_equal(call(&rig.sides[1], "a", 8), SPOKE_EREMOTE);
	assert_int_equal(call(&rig.sides[1], "a", 10), SPOKE_OK);
	assert_int_equal(call(&rig.sides[0], "a", 9), SPOKE_EREMOTE);
	assert_int_equal(atomic_load(&rig.served), 2);
	end();
}

TEST(fence_is_used_by_several_engines_at_once)
{
	const struct spoke_env *env = spoke_host_env();
	void *threads[THREADS];

	begin();
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(env->threads->start(env->ctx, call_often, NULL, &threads[i]), 0);
	for (int i = 0; i < THREADS; i++)
		env->threads->join(threads[i]);
	assert_int_equal(atomic_load(&rig.passed) + atomic_load(&rig.fenced), THREADS * CALLS);
	assert_true(atomic_load(&rig.passed) > 0);
	assert_int_equal(atomic_load(&rig.served), atomic_load(&rig.passed));
	/* All names were seen with numbers of the last calls. */
	assert_int_equal(call(&rig.sides[0], "a", 1), SPOKE_EREMOTE);
	assert_int_equal(call(&rig.sides[1], "c", 1), SPOKE_EREMOTE);
	assert_int_equal(call(&rig.sides[1], "d", 1), SPOKE_EREFUSED);
	end();
}
