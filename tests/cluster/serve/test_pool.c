/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of a provider, and the fence of requests on its threads. */
#define _GNU_SOURCE
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/fence.h>
#include <spoke/future.h>
#include <spoke/host.h>
#include <spoke/provider.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * --- handlers on the thread pool of a provider that is freed while requests wait for a thread.
 * Its filters and its access log still handle every request
 */

enum {
	CALLS = 40
};

static struct {
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	atomic_uint begun; /* handlers begun */
	unsigned ended;    /* calls ended */
	unsigned befores;  /* calls of the filter */
	unsigned afters;
	bool free_engine;
} rig;

static void work(struct spoke_request *request, void *arg)
{
	struct timespec moment = { .tv_nsec = 5000000 };

	(void)arg;
	atomic_fetch_add(&rig.begun, 1);
	(void)nanosleep(&moment, NULL);
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static struct spoke_filter_verdict before(void *arg, const struct spoke_request *request)
{
	(void)arg;
	(void)request;
	rig.befores++;
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
}

static void after(void *arg, const struct spoke_request *request,
		  const struct spoke_filter_answer *answer)
{
	(void)arg;
	(void)answer;
	assert_int_equal(spoke_request_method(request).len, 4);
	rig.afters++;
}

static unsigned count_lines(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[1024];
	unsigned count = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		assert_non_null(strstr(line, " \"S\" \"\" \"\" \"work\" 0 "));
		count++;
	}
	(void)fclose(file);
	return count;
}

static void call_done(void *arg, const struct spoke_result *result)
{
	(void)arg;
	(void)result;
	if (++rig.ended == CALLS && !rig.free_engine)
		spoke_engine_stop(rig.engine);
}

/* Frees everything while some handlers run, and others wait for a thread. */
static void free_it(struct spoke_alarm *alarm)
{
	if (atomic_load(&rig.begun) == 0) {
		assert_int_equal(spoke_alarm_after(rig.engine, alarm, 1000000, free_it), SPOKE_OK);
		return;
	}
	if (rig.free_engine)
		spoke_engine_free(rig.engine);
	else
		spoke_provider_free(rig.provider);
}

static void play(const char *folder)
{
	static const struct spoke_service_options service = { .name = "S" };
	static const struct spoke_handler handler = {
		.method = "work",
		.handle = work,
		.flags = SPOKE_HANDLER_POOL,
	};
	static const struct spoke_filter filter = {
		.before_request = before,
		.after_request = after,
	};
	static const struct spoke_filter *const filters[] = { &filter };
	struct spoke_provider_options with = { .filters = filters, .filter_count = 1 };
	struct spoke_alarm alarm = { 0 };
	struct spoke_consumer_options options = { 0 };
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	char place[128];
	char url[160];
	char log[128];

	(void)snprintf(log, sizeof(log), "%s/log", folder);
	with.access_log = log;
	rig.befores = 0;
	rig.afters = 0;
	(void)snprintf(place, sizeof(place), "unix:%s/s", folder);
	(void)snprintf(url, sizeof(url), "%s?interface=S", place);
	options.url = url;
	rig.ended = 0;
	atomic_store(&rig.begun, 0);
	assert_int_equal(spoke_engine_new(NULL, &rig.engine), SPOKE_OK);
	assert_int_equal(spoke_provider_new(rig.engine, &with, &rig.provider), SPOKE_OK);
	assert_int_equal(spoke_provider_add(rig.provider, &service, &handler, 1), SPOKE_OK);
	assert_int_equal(spoke_provider_listen(rig.provider, place), SPOKE_OK);
	assert_int_equal(spoke_consumer_new(rig.engine, &options, &consumer), SPOKE_OK);
	assert_int_equal(spoke_consumer_method(consumer, "work", NULL, &method), SPOKE_OK);
	for (int i = 0; i < CALLS; i++)
		assert_int_equal(spoke_call(method, (struct spoke_span){ "", 0 }, NULL, call_done,
					    NULL, NULL),
				 SPOKE_OK);
	assert_int_equal(spoke_alarm_after(rig.engine, &alarm, 1000000, free_it), SPOKE_OK);
	assert_int_equal(spoke_engine_run(rig.engine), SPOKE_OK);
	if (!rig.free_engine)
		spoke_engine_free(rig.engine);
	assert_int_equal(rig.ended, CALLS);
	assert_in_range(rig.befores, 1, CALLS);
	assert_int_equal(rig.afters, rig.befores);
	assert_int_equal(count_lines(log), rig.befores);
	assert_int_equal(unlink(log), 0);
}

static void in_a_folder(bool free_engine)
{
	char folder[] = "/tmp/spoke-XXXXXX";

	assert_non_null(mkdtemp(folder));
	rig.free_engine = free_engine;
	for (int round = 0; round < 5; round++)
		play(folder);
	(void)rmdir(folder);
}

TEST(provider_can_be_freed_while_requests_wait_for_pool)
{
	in_a_folder(false);
}

TEST(engine_can_be_freed_while_requests_wait_for_pool)
{
	in_a_folder(true);
}

/* --- one fence for providers of several engines, each on its own thread */

enum {
	ENGINES = 2,
	THREADS = 4,
	FENCE_THREADS_CALLS = 150, /* of each thread */
	NAMES = 3,
	TEXT = 64,
};

struct side {
	struct spoke_engine *engine; /* of the provider */
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	char url[128];
};

static struct fence_threads_rig {
	struct spoke_fence *fence;
	struct spoke_engine *engine; /* of the consumers */
	struct side sides[ENGINES];
	char folder[40];
	atomic_ullong next; /* fence number */
	atomic_uint served;
	atomic_uint passed;
	atomic_uint fenced;
} fence_threads_rig;

static void serve(struct spoke_request *request, void *arg)
{
	(void)arg;
	atomic_fetch_add(&fence_threads_rig.served, 1);
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void begin_side(struct side *side, unsigned index)
{
	const struct spoke_filter *filters[] = { spoke_fence_filter(fence_threads_rig.fence) };
	const struct spoke_provider_options options = { .filters = filters, .filter_count = 1 };
	static const struct spoke_service_options service = { .name = "S" };
	const struct spoke_handler handler = { .method = "write", .handle = serve };
	struct spoke_consumer_options with = { .url = side->url };
	struct spoke_provider *provider;

	assert_int_equal(spoke_engine_new(NULL, &side->engine), 0);
	assert_int_equal(spoke_provider_new(side->engine, &options, &provider), 0);
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), 0);
	(void)snprintf(side->url, sizeof(side->url), "unix:%s/%u", fence_threads_rig.folder, index);
	assert_int_equal(spoke_provider_listen(provider, side->url), 0);
	(void)snprintf(side->url, sizeof(side->url), "unix:%s/%u?interface=S&timeout=30s&retries=0",
		       fence_threads_rig.folder, index);
	assert_int_equal(spoke_consumer_new(fence_threads_rig.engine, &with, &side->consumer), 0);
	assert_int_equal(spoke_consumer_method(side->consumer, "write", NULL, &side->method), 0);
	assert_int_equal(spoke_engine_start(side->engine), 0);
}

static void begin(void)
{
	const struct spoke_fence_options options = { .names_max = NAMES };

	fence_threads_rig = (struct fence_threads_rig){ .folder = "/tmp/spoke-fence-XXXXXX" };
	atomic_store(&fence_threads_rig.next, 1);
	assert_non_null(mkdtemp(fence_threads_rig.folder));
	assert_int_equal(spoke_fence_new(NULL, &options, &fence_threads_rig.fence), 0);
	assert_int_equal(spoke_engine_new(NULL, &fence_threads_rig.engine), 0);
	for (unsigned i = 0; i < ENGINES; i++)
		begin_side(&fence_threads_rig.sides[i], i);
	assert_int_equal(spoke_engine_start(fence_threads_rig.engine), 0);
}

static void end(void)
{
	spoke_engine_free(fence_threads_rig.engine);
	for (unsigned i = 0; i < ENGINES; i++)
		spoke_engine_free(fence_threads_rig.sides[i].engine);
	spoke_fence_free(fence_threads_rig.fence);
	assert_int_equal(rmdir(fence_threads_rig.folder), 0);
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
	for (unsigned i = 0; i < FENCE_THREADS_CALLS; i++) {
		uint64_t number = atomic_fetch_add(&fence_threads_rig.next, 1);
		int error = call(&fence_threads_rig.sides[i % ENGINES], names[i % NAMES], number);

		if (error == SPOKE_OK)
			atomic_fetch_add(&fence_threads_rig.passed, 1);
		else if (error == SPOKE_EREMOTE)
			atomic_fetch_add(&fence_threads_rig.fenced, 1);
	}
}

TEST(number_seen_on_one_engine_fences_the_other)
{
	begin();
	assert_int_equal(call(&fence_threads_rig.sides[0], "a", 9), SPOKE_OK);
	assert_int_equal(call(&fence_threads_rig.sides[1], "a", 8), SPOKE_EREMOTE);
	assert_int_equal(call(&fence_threads_rig.sides[1], "a", 10), SPOKE_OK);
	assert_int_equal(call(&fence_threads_rig.sides[0], "a", 9), SPOKE_EREMOTE);
	assert_int_equal(atomic_load(&fence_threads_rig.served), 2);
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
	assert_int_equal(atomic_load(&fence_threads_rig.passed) +
				 atomic_load(&fence_threads_rig.fenced),
			 THREADS * FENCE_THREADS_CALLS);
	assert_true(atomic_load(&fence_threads_rig.passed) > 0);
	assert_int_equal(atomic_load(&fence_threads_rig.served),
			 atomic_load(&fence_threads_rig.passed));
	/* All names were seen with numbers of the last calls. */
	assert_int_equal(call(&fence_threads_rig.sides[0], "a", 1), SPOKE_EREMOTE);
	assert_int_equal(call(&fence_threads_rig.sides[1], "c", 1), SPOKE_EREMOTE);
	assert_int_equal(call(&fence_threads_rig.sides[1], "d", 1), SPOKE_EREFUSED);
	end();
}
