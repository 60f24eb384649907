/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers on the thread pool of a provider that is freed while requests wait for a thread. Its
 * filters and its access log still handle every request.
 */
#define _GNU_SOURCE

#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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
