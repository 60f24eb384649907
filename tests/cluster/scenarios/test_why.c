/* SPDX-License-Identifier: Apache-2.0 */
/* Each refusal has a sentence of its own in spoke_engine_why(), and never an older one. */
#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/admin.h>
#include <spoke/consumer.h>
#include <spoke/lease.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <stdio.h>
#include <string.h>

#define AT "dubbo://127.0.0.1:20880"

static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
} rig;

STEP(set_up)
{
	memset(&rig, 0, sizeof(rig));
	scene_open(&rig.world, 5);
	rig.engine = scene_engine(&rig.world, &rig.process, &rig.faulty, NULL);
	assert_int_equal(spoke_provider_new(rig.engine, NULL, &rig.provider), 0);
	assert_int_equal(spoke_consumer_new(rig.engine,
					    &(struct spoke_consumer_options){ .url = AT
									      "/demo.Echo" },
					    &rig.consumer),
			 0);
}

STEP(tear_down)
{
	scene_leave(&rig.process, NULL, &rig.engine);
	spokei_world_fini(&rig.world);
}

FIXTURE(set_up, tear_down);

/* An older sentence, which must not be seen again. */
static void fail_before(void)
{
	struct spoke_consumer *consumer;

	assert_int_equal(spoke_consumer_new(rig.engine,
					    &(struct spoke_consumer_options){ .url = "dubbo//" },
					    &consumer),
			 SPOKE_ESYNTAX);
	assert_non_null(strstr(spoke_engine_why(rig.engine), "dubbo//"));
}

/* --- functions that fail without memory */

static void echo(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static int make_consumer(void)
{
	struct spoke_consumer *made;

	return spoke_consumer_new(rig.engine,
				  &(struct spoke_consumer_options){ .url = AT "/demo.Echo" },
				  &made);
}

static int make_method(void)
{
	struct spoke_method *made;

	return spoke_consumer_method(rig.consumer, "echo", NULL, &made);
}

static int make_provider(void)
{
	struct spoke_provider *made;

	return spoke_provider_new(rig.engine, NULL, &made);
}

static int make_service(void)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo };

	return spoke_provider_add(rig.provider, &service, &handler, 1);
}

static int make_listener(void)
{
	return spoke_provider_listen(rig.provider, AT);
}

static int make_page(void)
{
	struct spoke_admin *made;

	return spoke_admin_new(rig.engine,
			       &(struct spoke_admin_options){ .listen = "127.0.0.1:8000" }, &made);
}

static int make_leases(void)
{
	struct spoke_leases *made;

	return spoke_leases_new(rig.engine,
				&(struct spoke_leases_options){ .store = "redis://127.0.0.1" },
				&made);
}

TEST(lack_of_memory_is_the_sentence)
{
	static int (*const makers[])(void) = {
		make_consumer, make_method, make_provider, make_service,
		make_listener, make_page,   make_leases,
	};

	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		int error;

		fail_before();
		rig.faulty.rules[SPOKEI_FAULTS_MEMORY] =
			(struct spokei_faults_rule){ .error = -12 };
		error = makers[i]();
		rig.faulty.rules[SPOKEI_FAULTS_MEMORY] = (struct spokei_faults_rule){ 0 };
		assert_int_equal(error, SPOKE_ENOMEM);
		assert_null(strstr(spoke_engine_why(rig.engine), "dubbo//"));
		assert_non_null(strstr(spoke_engine_why(rig.engine), "memory"));
		assert_int_equal(makers[i](), SPOKE_OK);
	}
}

/* --- limits */

static struct spoke_filter_verdict let_pass(void *arg, const struct spoke_request *request)
{
	(void)arg;
	(void)request;
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
}

static void assert_why(const char *text)
{
	if (!strstr(spoke_engine_why(rig.engine), text))
		fail_msg("\"%s\" is not in: %s", text, spoke_engine_why(rig.engine));
}

TEST(too_many_filters_or_addresses_are_counted)
{
	static const struct spoke_filter filter = { .before_request = let_pass };
	const struct spoke_filter *filters[65];
	const struct spoke_provider_options options = { .filters = filters, .filter_count = 65 };
	const struct spoke_consumer_options wishes = { .url = AT "/demo.Echo",
						       .filters = filters,
						       .filter_count = 65 };
	const struct spoke_provider_options most = { .filters = filters,
						     .filter_count = 64,
						     .token = "0123456789abcdef",
						     .access_log = "true" };
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	char at[64];

	for (size_t i = 0; i < 65; i++)
		filters[i] = &filter;
	fail_before();
	assert_int_equal(spoke_provider_new(rig.engine, &options, &provider), SPOKE_ELIMIT);
	assert_why("65 filters, at most 64");
	assert_int_equal(spoke_provider_new(rig.engine, &most, &provider), SPOKE_OK);
	spoke_provider_free(provider);
	fail_before();
	assert_int_equal(spoke_consumer_new(rig.engine, &wishes, &consumer), SPOKE_ELIMIT);
	assert_why("65 filters, at most 64");
	for (unsigned i = 0; i < 64; i++) {
		(void)snprintf(at, sizeof(at), "dubbo://10.0.0.1:%u", 21000 + i);
		assert_int_equal(spoke_provider_listen(rig.provider, at), SPOKE_OK);
	}
	fail_before();
	assert_int_equal(spoke_provider_listen(rig.provider, AT), SPOKE_ELIMIT);
	assert_why("64 addresses at most");
}

static void nothing(struct spoke_alarm *alarm)
{
	(void)alarm;
}

TEST(limit_of_timers_is_named_by_all_that_need_one)
{
	static struct spoke_alarm alarms[100];
	struct spokei_world_process process;
	struct spoke_engine_options options = { .timers_max = 20 };
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	int error = SPOKE_OK;
	unsigned i = 0;

	engine = scene_engine(&rig.world, &process, NULL, &options);
	for (; !error; i++)
		error = spoke_alarm_after(engine, &alarms[i], 1000000000, nothing);
	assert_int_equal(error, SPOKE_ELIMIT);
	assert_non_null(strstr(spoke_engine_why(engine), "alarm: timers.max = 20 is reached"));
	error = spoke_consumer_new(engine,
				   &(struct spoke_consumer_options){ .url = AT "/demo.Echo" },
				   &consumer);
	assert_int_equal(error, SPOKE_ELIMIT);
	assert_non_null(
		strstr(spoke_engine_why(engine), "new consumer: timers.max = 20 is reached"));
	while (i-- > 0)
		(void)spoke_alarm_cancel(&alarms[i]);
	spoke_engine_free(engine);
	spokei_world_process_fini(&process);
}

/* --- refused calls */

static uint64_t events(void)
{
	struct spoke_event event;
	uint64_t number = 1;

	while (spoke_event_get(rig.engine, number, &event) == SPOKE_OK)
		number = event.number + 1;
	return number;
}

TEST(refused_call_has_its_cause_and_no_event)
{
	struct spoke_method *echo;
	uint64_t before;

	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", NULL, &echo), SPOKE_OK);
	fail_before();
	before = events();
	assert_int_equal(spoke_call_with(echo, SPOKE_ARGS((const char *)NULL), NULL, NULL),
			 SPOKE_EINVAL);
	assert_why("call of echo refused: an argument is not valid");
	assert_int_equal(spoke_call(echo, (struct spoke_span){ (const unsigned char *)"\xc1", 1 },
				    NULL, NULL, NULL, NULL),
			 SPOKE_ECORRUPT);
	assert_null(strstr(spoke_engine_why(rig.engine), "not valid"));
	assert_int_equal(events(), before);
	/* No provider listens there. */
	spokei_world_run(&rig.world, rig.world.now_ns + UINT64_C(5000000000));
	fail_before();
	assert_int_equal(spoke_call_with(echo, SPOKE_ARGS("hi"), NULL, NULL), SPOKE_EUNAVAILABLE);
	assert_why("call of echo refused: no provider");
	assert_why("127.0.0.1:20880: Connection refused (ECONNREFUSED)");
	fail_before();
	assert_why("dubbo//");
}

/* --- services */

TEST(refused_service_says_what_is_wrong_with_it)
{
	static char long_name[2000];
	static const struct spoke_handler twice[] = { { .method = "echo", .handle = echo },
						      { .method = "echo", .handle = echo } };
	static const struct spoke_handler both[] = { { .handle = echo }, { .handle = echo } };
	static const struct spoke_handler none = { .method = "echo" };
	static const struct spoke_handler empty = { .method = "", .handle = echo };
	static const struct spoke_handler flags = { .method = "echo", .handle = echo, .flags = 8 };
	static const struct {
		const char *name;
		const struct spoke_handler *handlers;
		size_t count;
		int error;
		const char *sentence;
	} rows[] = {
		{ "demo.A", twice, 1, SPOKE_OK, NULL },
		{ "demo.A", twice, 1, SPOKE_EEXIST, "demo.A is there already" },
		{ "demo.B", twice, 2, SPOKE_EEXIST, "method \"echo\" of demo.B is there twice" },
		{ "demo.B", both, 2, SPOKE_EEXIST, "two handlers for all other methods" },
		{ "demo.B", &none, 1, SPOKE_EINVAL, "method \"echo\" of demo.B has no function" },
		{ "demo.B", &empty, 1, SPOKE_EINVAL, "handler 0 of demo.B has an empty name" },
		{ "demo.B", &flags, 1, SPOKE_EINVAL, "unknown flags" },
		{ "demo.B", NULL, 1, SPOKE_EINVAL, "demo.B has 1 handlers at no address" },
		{ NULL, twice, 1, SPOKE_EINVAL, "it has no name" },
		{ long_name, twice, 1, SPOKE_ETOOLARGE, "are too long" },
	};

	memset(long_name, 'x', sizeof(long_name) - 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct spoke_service_options service = { .name = rows[i].name };

		assert_int_equal(spoke_provider_add(rig.provider, &service, rows[i].handlers,
						    rows[i].count),
				 rows[i].error);
		if (rows[i].sentence && !strstr(spoke_engine_why(rig.engine), rows[i].sentence))
			fail_msg("row %zu: %s", i, spoke_engine_why(rig.engine));
	}
}

/* --- answers */

static unsigned ended;

static void reply_twice(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
	spoke_reply_error(request, 1, "again");
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void done(void *arg, const struct spoke_result *result)
{
	(void)arg;
	assert_int_equal(result->error, SPOKE_OK);
	ended++;
}

TEST(second_answer_is_dropped_and_told)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handlers[] = {
		{ .method = "here", .handle = reply_twice },
		{ .method = "there", .handle = reply_twice, .flags = SPOKE_HANDLER_POOL },
	};
	struct spoke_event event;

	ended = 0;
	assert_int_equal(spoke_provider_add(rig.provider, &service, handlers, 2), 0);
	assert_int_equal(spoke_provider_listen(rig.provider, AT), 0);
	spokei_world_run(&rig.world, rig.world.now_ns + UINT64_C(5000000000));
	for (size_t i = 0; i < 2; i++) {
		struct spoke_method *method;
		unsigned told = 0;

		assert_int_equal(spoke_consumer_method(rig.consumer, handlers[i].method, NULL,
						       &method),
				 0);
		assert_int_equal(spoke_call(method, (struct spoke_span){ NULL, 0 }, NULL, done,
					    NULL, NULL),
				 0);
		spokei_world_run(&rig.world, rig.world.now_ns + UINT64_C(1000000000));
		assert_int_equal(ended, i + 1);
		for (uint64_t at = 1; spoke_event_get(rig.engine, at, &event) == 0;
		     at = event.number + 1)
			told += strstr(event.text, handlers[i].method) != NULL &&
				strstr(event.text, "answers a request twice") != NULL;
		assert_in_range(told, 1, 2);
	}
}
