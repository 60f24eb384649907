/* SPDX-License-Identifier: Apache-2.0 */
/* Consumers that find providers through a registry of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/cluster/fakereg.h"
#include "tests/support/faulty.h"
#include "tests/support/virtual.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define RETRY_MAX_NS (6 * SECOND) /* 5 s and 20 %, */
#define SOON_NS (100 * MS)        /* ... and what else has to be done then */
#define ECHO "demo.Echo"

enum {
	PROVIDERS = 3,
	CLIENT = PROVIDERS,
	PROCESSES,
};

static struct rig {
	struct virtual_world world;
	struct virtual_process processes[PROCESSES];
	struct spoke_env env; /* of the client's process, with a file */
	struct faulty faulty;
	struct spoke_engine *engines[PROCESSES]; /* NULL: none */
	struct spoke_provider *providers[PROVIDERS];
	unsigned served[PROVIDERS];
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	unsigned ended;
	int error; /* of the last call */
	void (*in_changed)(void);
	void (*in_done)(void);
	char file[1024];
} rig;

/* --- the file */

static ssize_t read_file(void *ctx, const char *path, void *bytes, size_t size)
{
	size_t len = strlen(rig.file);

	(void)ctx;
	(void)path;
	if (len == 0)
		return -ENOENT;
	assert_true(len <= size);
	memcpy(bytes, rig.file, len);
	return (ssize_t)len;
}

static int replace_file(void *ctx, const char *path, const void *bytes, size_t len)
{
	(void)ctx;
	(void)path;
	assert_true(len < sizeof(rig.file));
	memcpy(rig.file, bytes, len);
	rig.file[len] = '\0';
	return 0;
}

static const struct spoke_files files = { .read = read_file, .replace = replace_file };

/* --- life */

static int set_up(void **state)
{
	struct spoke_engine_options with = { .env = &rig.faulty.env };

	(void)state;
	rig = (struct rig){ 0 };
	fakereg = (struct fakereg){ 0 };
	if (!virtual_world_init(&rig.world, 1))
		return -1;
	for (int i = 0; i < PROCESSES; i++)
		virtual_process_init(&rig.processes[i], &rig.world);
	rig.env = rig.processes[CLIENT].env;
	rig.env.files = &files;
	faulty_init(&rig.faulty, &rig.env);
	return spoke_engine_new(&with, &rig.engines[CLIENT]);
}

static void pass(uint64_t ns)
{
	virtual_run(&rig.world, rig.world.now_ns + ns);
}

static void free_consumer(void)
{
	spoke_consumer_free(rig.consumer);
	rig.consumer = NULL;
}

/* The process is gone, and says goodbye or not. */
static void end_provider(int which, bool politely)
{
	if (politely)
		spoke_provider_free(rig.providers[which]);
	if (politely)
		pass(10 * MS);
	if (!politely && rig.providers[which])
		spoke_provider_free(rig.providers[which]);
	rig.providers[which] = NULL;
	spoke_engine_free(rig.engines[which]);
	rig.engines[which] = NULL;
}

static int tear_down(void **state)
{
	(void)state;
	faulty_heal(&rig.faulty);
	free_consumer();
	pass(10 * MS);
	for (int i = 0; i < PROVIDERS; i++)
		end_provider(i, true);
	spoke_engine_free(rig.engines[CLIENT]);
	assert_int_equal(rig.faulty.blocks, 0);
	assert_int_equal(rig.faulty.fds, 0);
	for (int i = 0; i < PROCESSES; i++) {
		assert_int_equal(rig.processes[i].blocks, 0);
		virtual_process_fini(&rig.processes[i]);
	}
	virtual_world_fini(&rig.world);
	return 0;
}

/* --- both sides */

static void serve(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value text = { NULL, 0 };

	++*(unsigned *)arg;
	(void)!spoke_cursor_next(&args, &text);
	spoke_reply(request, text);
}

static void provide_as(int which, const char *version)
{
	const struct spoke_provider_options options = { .registry = "fake://here",
							.registry_kind = &fakereg_kind };
	const struct spoke_service_options service = { .name = ECHO, .version = version };
	const struct spoke_handler handler = { .method = "echo",
					       .handle = serve,
					       .arg = &rig.served[which] };
	struct spoke_engine_options with = { .env = &rig.processes[which].env };
	char url[64];

	(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:%d", 20880 + which);
	assert_int_equal(spoke_engine_new(&with, &rig.engines[which]), 0);
	assert_int_equal(spoke_provider_new(rig.engines[which], &options, &rig.providers[which]),
			 0);
	assert_int_equal(spoke_provider_add(rig.providers[which], &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(rig.providers[which], url), 0);
}

static void provide(int which)
{
	provide_as(which, NULL);
}

static void note_change(void *arg, const struct spoke_link_event *event)
{
	(void)arg;
	(void)event;
	if (rig.in_changed)
		rig.in_changed();
}

static int try_consumer(const char *cache)
{
	const struct spoke_consumer_options options = {
		.url = "consumer://any/" ECHO,
		.registry = "fake://here",
		.registry_kind = &fakereg_kind,
		.registry_cache = cache,
		.changed = note_change,
	};
	int error = spoke_consumer_new(rig.engines[CLIENT], &options, &rig.consumer);

	if (error)
		return error;
	return spoke_consumer_method(rig.consumer, "echo", NULL, &rig.echo);
}

static void consume(const char *cache)
{
	assert_int_equal(try_consumer(cache), 0);
}

static void done(void *arg, const struct spoke_result *result)
{
	(void)arg;
	rig.ended++;
	rig.error = result->error;
	if (rig.in_done)
		rig.in_done();
}

static int try_call(void)
{
	const struct spoke_span args = { "\xa4text", 5 };
	unsigned before = rig.ended;
	int error = spoke_call(rig.echo, args, NULL, done, NULL, NULL);

	if (error)
		return error;
	pass(2 * SECOND);
	assert_int_equal(rig.ended, before + 1);
	return rig.error;
}

static size_t endpoints(void)
{
	return spoke_consumer_endpoints(rig.consumer, NULL, 0);
}

/* --- tests */

static void a_consumer_finds_a_provider(void **state)
{
	(void)state;
	consume(NULL);
	pass(SECOND);
	assert_int_equal(try_call(), SPOKE_ENOPROVIDER);
	provide(0);
	pass(SOON_NS);
	assert_int_equal(spoke_consumer_ready(rig.consumer), 1);
	assert_int_equal(try_call(), 0);
	assert_int_equal(rig.served[0], 1);
}

static void providers_come_and_go(void **state)
{
	(void)state;
	provide(0);
	consume(NULL);
	pass(SOON_NS);
	assert_int_equal(try_call(), 0);
	provide(1);
	pass(SOON_NS);
	assert_int_equal(spoke_consumer_ready(rig.consumer), 2);
	end_provider(0, true);
	pass(SOON_NS);
	assert_int_equal(fakereg_listed(ECHO), 1);
	assert_int_equal(spoke_consumer_ready(rig.consumer), 1);
	for (int i = 0; i < 4; i++)
		assert_int_equal(try_call(), 0);
	assert_int_equal(rig.served[1], 4);
	provide(0);
	end_provider(1, true);
	pass(SOON_NS);
	assert_int_equal(try_call(), 0);
	assert_int_equal(rig.served[0], 2);
	assert_int_equal(endpoints(), 1);
}

static void the_last_provider_may_be_restarted(void **state)
{
	(void)state;
	provide(0);
	consume(NULL);
	pass(SOON_NS);
	end_provider(0, true);
	assert_int_equal(fakereg_listed(ECHO), 0);
	pass(SECOND);
	assert_int_equal(endpoints(), 1); /* protected */
	provide(0);
	pass(5 * SECOND);
	assert_int_equal(try_call(), 0);
	assert_int_equal(endpoints(), 1);
}

static void a_registry_that_is_down_at_the_start_is_stood_in_for_by_the_file(void **state)
{
	(void)state;
	provide(0);
	consume("cache");
	pass(SECOND);
	free_consumer();
	pass(SECOND);
	assert_non_null(strstr(rig.file, "dubbo://127.0.0.1:20880/"));
	fakereg.fails = SPOKE_ECONNECT;
	consume("cache");
	assert_int_equal(try_call(), SPOKE_ENOPROVIDER); /* a little later */
	pass(SOON_NS);
	assert_int_equal(try_call(), 0);
	fakereg.fails = 0;
	provide(1);
	pass(RETRY_MAX_NS + SOON_NS);
	assert_int_equal(spoke_consumer_ready(rig.consumer), 2);
}

static void a_registry_that_is_down_later_takes_nothing_away(void **state)
{
	(void)state;
	provide(0);
	consume(NULL);
	pass(SOON_NS);
	fakereg.fails = SPOKE_ECONNECT;
	fakereg_lose_all(false);
	for (int i = 0; i < 30; i++)
		assert_int_equal(try_call(), 0);
	fakereg.fails = 0;
	pass(RETRY_MAX_NS + SOON_NS);
	assert_int_equal(fakereg_listed(ECHO), 1);
	assert_int_equal(spoke_provider_registered(rig.providers[0], NULL), 1);
	provide(1);
	pass(SOON_NS);
	assert_int_equal(spoke_consumer_ready(rig.consumer), 2);
}

static void who_was_lost_is_listed_exactly_once_again(void **state)
{
	(void)state;
	provide(0);
	provide(1);
	consume(NULL);
	for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
		pass(10 * SECOND);
		fakereg_lose_all(one_by_one);
		pass(SOON_NS);
		assert_int_equal(fakereg_listed(ECHO), 2);
		assert_int_equal(spoke_consumer_ready(rig.consumer), 2);
		assert_int_equal(endpoints(), 2);
	}
}

static void wrong_lists_harm_nobody(void **state)
{
	(void)state;
	provide(0);
	consume(NULL);
	pass(SOON_NS);
	fakereg_add(ECHO, "");
	fakereg_add(ECHO, "nonsense");
	fakereg_add(ECHO, "dubbo://127.0.0.1:0/" ECHO);
	fakereg_add(ECHO, "gopher://127.0.0.1:1/" ECHO);
	fakereg_add(ECHO, "dubbo://127.0.0.1:99999/" ECHO);
	fakereg_add(ECHO, "dubbo://127.0.0.1:1/" ECHO "?version=7");
	fakereg_add(ECHO, "dubbo://127.0.0.1:1/" ECHO "?group=x");
	pass(SOON_NS);
	assert_int_equal(endpoints(), 1);
	assert_int_equal(try_call(), 0);
	end_provider(0, true); /* nobody is left, but it is not an empty list */
	pass(SOON_NS);
	provide(1);
	pass(SOON_NS);
	assert_int_equal(try_call(), 0);
}

static void only_the_version_that_is_asked_for_is_taken(void **state)
{
	(void)state;
	provide_as(0, "2");
	consume(NULL);
	pass(SOON_NS);
	assert_int_equal(try_call(), SPOKE_ENOPROVIDER);
}

static void a_consumer_may_be_freed_as_it_is_told_of_a_link(void **state)
{
	(void)state;
	rig.in_changed = free_consumer;
	provide(0);
	consume(NULL);
	pass(SECOND);
	assert_null(rig.consumer);
	provide(1);
	pass(SECOND);
	assert_int_equal(fakereg.closes, 1);
}

static void a_consumer_may_be_freed_as_a_call_ends(void **state)
{
	(void)state;
	rig.in_done = free_consumer;
	provide(0);
	consume("cache");
	pass(SOON_NS);
	assert_int_equal(try_call(), 0);
	assert_null(rig.consumer);
	assert_int_equal(fakereg.closes, 1);
}

static void a_consumer_that_drains_asks_no_more(void **state)
{
	(void)state;
	provide(0);
	consume(NULL);
	pass(SOON_NS);
	assert_int_equal(spoke_engine_drain(rig.engines[CLIENT], 10 * SECOND), 0);
	pass(SECOND);
	assert_int_equal(fakereg.closes, 1);
	assert_int_equal(try_call(), SPOKE_ECLOSED);
}

static void wrong_options_are_refused_with_a_sentence(void **state)
{
	static const char *const more[] = { "dubbo://127.0.0.1:1/" ECHO };
	static const struct {
		struct spoke_consumer_options options;
		int error;
		const char *words;
	} cases[] = {
		{ { .url = "consumer://any" }, SPOKE_EINVAL, "names the service" },
		{ { .url = "consumer://any/" ECHO, .registry = ":" }, SPOKE_ESYNTAX, "registry" },
		{ { .url = "consumer://any/" ECHO, .more_urls = more, .more_count = 1 },
		  SPOKE_EINVAL,
		  "more_urls" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spoke_consumer_options options = cases[i].options;

		if (options.registry == NULL)
			options.registry = "fake://here";
		options.registry_kind = &fakereg_kind;
		assert_int_equal(spoke_consumer_new(rig.engines[CLIENT], &options, &rig.consumer),
				 cases[i].error);
		assert_non_null(strstr(spoke_engine_why(rig.engines[CLIENT]), cases[i].words));
		assert_null(rig.consumer);
	}
}

static void without_memory_it_takes_a_little_longer(void **state)
{
	(void)state;
	provide(0);
	pass(SOON_NS);
	for (unsigned nth = 1; nth < 120; nth++) {
		faulty_fail(&rig.faulty, FAULTY_MEMORY, nth, -ENOMEM, false);
		if (try_consumer("cache") == 0) {
			pass(RETRY_MAX_NS + SECOND);
			(void)!try_call();
			assert_int_equal(try_call(), 0);
		}
		faulty_heal(&rig.faulty);
		free_consumer();
		pass(SECOND);
	}
	assert_true(rig.faulty.failed[FAULTY_MEMORY] > 15);
}

#define RIGGED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		RIGGED(a_consumer_finds_a_provider),
		RIGGED(providers_come_and_go),
		RIGGED(the_last_provider_may_be_restarted),
		RIGGED(a_registry_that_is_down_at_the_start_is_stood_in_for_by_the_file),
		RIGGED(a_registry_that_is_down_later_takes_nothing_away),
		RIGGED(who_was_lost_is_listed_exactly_once_again),
		RIGGED(wrong_lists_harm_nobody),
		RIGGED(only_the_version_that_is_asked_for_is_taken),
		RIGGED(a_consumer_may_be_freed_as_it_is_told_of_a_link),
		RIGGED(a_consumer_may_be_freed_as_a_call_ends),
		RIGGED(a_consumer_that_drains_asks_no_more),
		RIGGED(wrong_options_are_refused_with_a_sentence),
		RIGGED(without_memory_it_takes_a_little_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
