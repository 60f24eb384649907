/* SPDX-License-Identifier: Apache-2.0 */
/* A whole program: a service and its caller in one, errors that are kept, the log. */
#define _POSIX_C_SOURCE 200809L /* mkstemp() */

#include "tests/support/test.h"

#include <spoke/host.h>
#include <spoke/signals.h>
#include <spoke/spoke.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An environment that counts memory and keeps the log. */
static struct {
	struct spoke_env env;
	int blocks;
	int fail_at; /* the n-th allocation from now on; 0: none */
	char log[4096];
	char errors[4096]; /* lines of level ERROR */
} world;

static void *counted_resize(void *ctx, void *memory, size_t old_len, size_t len)
{
	if (len && world.fail_at > 0 && --world.fail_at == 0)
		return NULL;
	world.blocks += (memory == NULL && len) - (memory && len == 0);
	return spoke_host_env()->resize(ctx, memory, old_len, len);
}

static void keep_line(void *ctx, const struct spoke_log_line *line)
{
	size_t len = strlen(world.log);

	(void)ctx;
	(void)snprintf(world.log + len, sizeof(world.log) - len, "%s%s\n", line->text,
		       line->level == SPOKE_LOG_WARN ? " (warning)" : "");
	len = strlen(world.errors);
	if (line->level == SPOKE_LOG_ERROR)
		(void)snprintf(world.errors + len, sizeof(world.errors) - len, "%s\n", line->text);
}

static struct spoke_program *begin(const char *config)
{
	struct spoke_program_options options = { .env = &world.env, .config = config };

	memset(&world, 0, sizeof(world));
	world.env = *spoke_host_env();
	world.env.resize = counted_resize;
	world.env.log = keep_line;
	return spoke_program_new_with(&options);
}

/* Begins a program with a settings file of this text. */
static struct spoke_program *begin_with(const char *text)
{
	char path[] = "/tmp/spoke-program-XXXXXX";
	int fd = mkstemp(path);
	struct spoke_program *program;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	program = begin(path);
	assert_int_equal(unlink(path), 0);
	return program;
}

/* --- a service and its caller */

struct greeter {
	struct spoke_program *program;
	struct spoke_method *greet;
	unsigned asked;
	char answer[64];
};

static void greet(struct spoke_request *request, void *greeting)
{
	(void)greeting;
	SPOKE_REPLY(request, "hello");
}

static void greeted(void *arg, const struct spoke_result *result)
{
	struct greeter *greeter = arg;

	(void)spoke_result_print(result, greeter->answer, sizeof(greeter->answer));
	if (spoke_engine_drain(spoke_program_engine(greeter->program), 0))
		greeter->answer[0] = '\0';
}

static void ask(void *arg)
{
	struct greeter *greeter = arg;

	if (greeter->asked++ == 2 &&
	    spoke_call_with(greeter->greet, SPOKE_ARGS("world"), greeted, greeter))
		greeter->answer[0] = '\0';
}

TEST(program_serves_and_calls_until_it_is_drained)
{
	struct spoke_handler handler = { .method = "greet", .handle = greet };
	struct greeter greeter = { .program = begin(NULL) };
	struct spoke_consumer_options options = { 0 };
	struct spoke_provider *provider;
	char address[64];
	char url[128];

	provider = spoke_program_serve(greeter.program, "dubbo://127.0.0.1:0", "demo.Greeter",
				       &handler, 1);
	assert_non_null(provider);
	assert_true(spoke_provider_address(provider, 0, address, sizeof(address)) > 0);
	(void)snprintf(url, sizeof(url), "dubbo://%s/demo.Greeter?timeout=60s", address);
	options.url = url;
	greeter.greet = spoke_program_method(greeter.program,
					     spoke_program_consumer(greeter.program, &options),
					     "greet", NULL);
	spoke_program_every(greeter.program, MS, ask, &greeter);
	assert_int_equal(spoke_program_run(greeter.program), 0);
	assert_string_equal(greeter.answer, "\"hello\"");
	assert_true(greeter.asked >= 3);
	assert_non_null(strstr(world.log, "demo.Greeter listens at 127.0.0.1:"));
	assert_int_equal(world.blocks, 0);
}

TEST(services_share_the_addresses_of_the_settings_file)
{
	const struct spoke_handler handler = { .method = "greet", .handle = greet };
	struct spoke_program *program = begin_with("[engine]\nadmin = 127.0.0.1:0\n"
						   "[provider]\nlisten = dubbo://127.0.0.1:0\n");
	struct spoke_provider *provider;
	char address[64];

	provider = spoke_program_serve(program, "dubbo://192.0.2.1:1", "demo.A", &handler, 1);
	assert_non_null(provider);
	assert_ptr_equal(spoke_program_serve(program, "dubbo://192.0.2.1:2", "demo.B", &handler, 1),
			 provider);
	assert_true(spoke_provider_address(provider, 0, address, sizeof(address)) > 0);
	assert_int_equal(strncmp(address, "127.0.0.1:", 10), 0);
	assert_int_equal(spoke_provider_address(provider, 1, address, sizeof(address)), 0);
	assert_non_null(strstr(world.log, "admin page at 127.0.0.1:"));
	assert_int_equal(spoke_engine_drain(spoke_program_engine(program), 0), 0);
	assert_int_equal(spoke_program_run(program), 0);
	assert_int_equal(world.blocks, 0);
}

TEST(services_share_the_provider_that_the_program_has_made)
{
	static const struct spoke_provider_options options = { .connections_max = 1 };
	const struct spoke_handler handler = { .method = "greet", .handle = greet };
	struct spoke_program *program = begin(NULL);
	struct spoke_provider *provider = spoke_program_provider(program, &options);
	char address[64];

	assert_non_null(provider);
	assert_null(spoke_program_config(program));
	assert_ptr_equal(spoke_program_serve(program, "dubbo://127.0.0.1:0", "demo.A", &handler, 1),
			 provider);
	assert_ptr_equal(spoke_program_serve(program, NULL, "demo.B", &handler, 1), provider);
	assert_true(spoke_provider_address(provider, 0, address, sizeof(address)) > 0);
	assert_int_equal(spoke_provider_address(provider, 1, address, sizeof(address)), 0);
	assert_int_equal(spoke_engine_drain(spoke_program_engine(program), 0), 0);
	assert_int_equal(spoke_program_run(program), 0);
	assert_int_equal(world.blocks, 0);
}

TEST(sections_and_keys_without_a_user_are_named)
{
	const struct spoke_handler handler = { .method = "greet", .handle = greet };
	struct spoke_program *program = begin_with("[engine]\nlog = info\n"
						   "[provider]\nrequests.max = 5\n"
						   "[consumer]\ntimeout = 1s\nretries = 1\n"
						   "[method.demo.A.greet]\nexecutes = 2\n"
						   "timeout = 2s\n"
						   "[method.demo.A.gret]\nexecutes = 2\n"
						   "[comet]\npage = /srv\nslow = 1s\n");
	struct spoke_comet_options gateway = { 0 };

	assert_non_null(spoke_program_serve(program, "dubbo://127.0.0.1:0", "demo.A", &handler, 1));
	spoke_config_comet(spoke_program_config(program), &gateway);
	assert_int_equal(spoke_engine_drain(spoke_program_engine(program), 0), 0);
	assert_int_equal(spoke_program_run(program), 0);
	assert_null(strstr(world.log, "uses [engine"));
	assert_null(strstr(world.log, "requests.max"));
	assert_null(strstr(world.log, "retries"));
	assert_null(strstr(world.log, "executes = 2: nothing in this program uses this key"));
	assert_non_null(strstr(world.log, ":10: timeout = 2s: nothing in this program uses this "
					  "key of [method.demo.A.greet] (warning)\n"));
	assert_null(strstr(world.log, "slow"));
	assert_non_null(strstr(world.log, ":6: timeout = 1s: nothing in this program uses "
					  "[consumer]\n"));
	assert_non_null(
		strstr(world.log, "nothing in this program uses [method.demo.A.gret] (warning)\n"));
	assert_non_null(strstr(world.log, ":14: page = /srv: nothing in this program uses this key "
					  "of [comet] (warning)\n"));
	assert_int_equal(world.blocks, 0);
}

/* --- errors */

TEST(first_error_is_kept_with_its_cause)
{
	struct spoke_consumer_options options = {
		.url = "dubbo://127.0.0.1:1/demo.X?timeout=soon"
	};
	struct spoke_handler handler = { .method = "greet", .handle = greet };
	struct spoke_program *program = begin(NULL);

	assert_non_null(spoke_program_engine(program));
	assert_null(spoke_program_consumer(program, &options));
	assert_non_null(strstr(world.log, "timeout=soon"));
	assert_null(spoke_program_method(program, NULL, "greet", NULL));
	assert_null(spoke_program_serve(program, "dubbo://127.0.0.1:0", "demo.X", &handler, 1));
	assert_null(spoke_program_engine(program));
	spoke_program_every(program, MS, ask, NULL);
	assert_int_equal(spoke_program_run(program), 1);
	assert_int_equal(world.blocks, 0);
}

/* A log of errors alone must explain why the program does not run. */
TEST(error_names_its_cause)
{
	static const struct spoke_consumer_options options = {
		.url = "dubbo://127.0.0.1:1/demo.X?timeout=soon"
	};
	struct spoke_handler handler = { .method = "greet", .handle = greet };
	struct spoke_program *first = begin(NULL);
	struct spoke_provider *provider;
	struct spoke_program *program;
	char address[64];
	char url[80];

	provider = spoke_program_serve(first, "dubbo://127.0.0.1:0", "demo.X", &handler, 1);
	assert_non_null(provider);
	assert_true(spoke_provider_address(provider, 0, address, sizeof(address)) > 0);
	(void)snprintf(url, sizeof(url), "dubbo://%s", address);
	program = spoke_program_new_with(&(struct spoke_program_options){ .env = &world.env });
	assert_null(spoke_program_serve(program, url, "demo.X", &handler, 1));
	assert_non_null(strstr(world.errors, "demo.X: "));
	assert_non_null(strstr(world.errors, address));
	assert_non_null(strstr(world.errors, "Address already in use"));
	assert_int_equal(spoke_program_run(program), 1);
	assert_null(spoke_program_consumer(first, &options));
	assert_non_null(strstr(world.errors, "timeout=soon"));
	assert_int_equal(spoke_program_run(first), 1);
	assert_int_equal(world.blocks, 0);
}

TEST(settings_file_that_is_missing_is_named)
{
	struct spoke_program *program = begin("/nonexistent/greeter.conf");

	assert_non_null(strstr(world.log, "/nonexistent/greeter.conf"));
	assert_null(spoke_program_engine(program));
	assert_int_equal(spoke_program_run(program), 1);
	assert_int_equal(world.blocks, 0);
}

TEST(functions_without_a_program_do_nothing)
{
	struct spoke_consumer_options options = { 0 };

	assert_null(spoke_program_consumer(NULL, &options));
	assert_null(spoke_program_method(NULL, NULL, "greet", NULL));
	assert_null(spoke_program_serve(NULL, NULL, NULL, NULL, 0));
	assert_null(spoke_program_engine(NULL));
	spoke_program_every(NULL, MS, ask, NULL);
	assert_int_equal(spoke_program_run(NULL), 1);
}

TEST(missing_memory_ends_the_program_without_a_leak)
{
	struct spoke_handler handler = { .method = "greet", .handle = greet };
	struct spoke_consumer_options options = { .url = "dubbo://127.0.0.1:1/demo.X" };
	bool failed = true;

	for (int nth = 1; failed; nth++) {
		struct spoke_program *program = begin(NULL);
		struct spoke_consumer *consumer;
		struct spoke_engine *engine;

		world.fail_at = nth;
		(void)spoke_program_serve(program, "dubbo://127.0.0.1:0", "demo.X", &handler, 1);
		consumer = spoke_program_consumer(program, &options);
		(void)spoke_program_method(program, consumer, "greet", NULL);
		spoke_program_every(program, 3600000 * MS, ask, NULL);
		failed = world.fail_at == 0;
		world.fail_at = 0;
		engine = spoke_program_engine(program);
		assert_true(engine || failed);
		if (engine)
			assert_int_equal(spoke_engine_drain(engine, 0), 0);
		assert_int_equal(spoke_program_run(program), engine == NULL);
		assert_int_equal(world.blocks, 0);
	}
}
