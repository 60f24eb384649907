/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cluster/registryrig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct registryrig registryrig;

/* --- the file */

static ssize_t read_file(void *ctx, const char *path, void *bytes, size_t size)
{
	size_t len = strlen(registryrig.file);

	(void)ctx;
	(void)path;
	if (len == 0)
		return -ENOENT;
	assert_true(len <= size);
	memcpy(bytes, registryrig.file, len);
	return (ssize_t)len;
}

static int replace_file(void *ctx, const char *path, const void *bytes, size_t len)
{
	(void)ctx;
	(void)path;
	assert_true(len < sizeof(registryrig.file));
	memcpy(registryrig.file, bytes, len);
	registryrig.file[len] = '\0';
	return 0;
}

static const struct spoke_files files = { .read = read_file, .replace = replace_file };

/* --- life */

int registryrig_set_up(void **state)
{
	struct spoke_engine_options with = { .env = &registryrig.faulty.env };

	(void)state;
	registryrig = (struct registryrig){ 0 };
	fakereg = (struct fakereg){ 0 };
	if (!virtual_world_init(&registryrig.world, 1))
		return -1;
	for (int i = 0; i < PROCESSES; i++)
		virtual_process_init(&registryrig.processes[i], &registryrig.world);
	registryrig.env = registryrig.processes[CLIENT].env;
	registryrig.env.files = &files;
	faulty_init(&registryrig.faulty, &registryrig.env);
	return spoke_engine_new(&with, &registryrig.engines[CLIENT]);
}

void registryrig_pass(uint64_t ns)
{
	virtual_run(&registryrig.world, registryrig.world.now_ns + ns);
}

void registryrig_free_consumer(void)
{
	spoke_consumer_free(registryrig.consumer);
	registryrig.consumer = NULL;
}

void registryrig_end_provider(int which)
{
	spoke_provider_free(registryrig.providers[which]);
	registryrig.providers[which] = NULL;
	registryrig_pass(10 * MS);
	spoke_engine_free(registryrig.engines[which]);
	registryrig.engines[which] = NULL;
}

int registryrig_tear_down(void **state)
{
	(void)state;
	faulty_heal(&registryrig.faulty);
	registryrig_free_consumer();
	registryrig_pass(10 * MS);
	for (int i = 0; i < PROVIDERS; i++)
		registryrig_end_provider(i);
	spoke_engine_free(registryrig.engines[CLIENT]);
	assert_int_equal(registryrig.faulty.blocks, 0);
	assert_int_equal(registryrig.faulty.fds, 0);
	for (int i = 0; i < PROCESSES; i++) {
		assert_int_equal(registryrig.processes[i].blocks, 0);
		virtual_process_fini(&registryrig.processes[i]);
	}
	virtual_world_fini(&registryrig.world);
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

void registryrig_provide_as(int which, const char *version)
{
	const struct spoke_provider_options options = { .registry = "fake://here",
							.registry_kind = &fakereg_kind };
	const struct spoke_service_options service = { .name = ECHO, .version = version };
	const struct spoke_handler handler = { .method = "echo",
					       .handle = serve,
					       .arg = &registryrig.served[which] };
	struct spoke_engine_options with = { .env = &registryrig.processes[which].env };
	char url[64];

	(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:%d", 20880 + which);
	assert_int_equal(spoke_engine_new(&with, &registryrig.engines[which]), 0);
	assert_int_equal(spoke_provider_new(registryrig.engines[which], &options,
					    &registryrig.providers[which]),
			 0);
	assert_int_equal(spoke_provider_add(registryrig.providers[which], &service, &handler, 1),
			 0);
	assert_int_equal(spoke_provider_listen(registryrig.providers[which], url), 0);
}

void registryrig_provide(int which)
{
	registryrig_provide_as(which, NULL);
}

static void note_change(void *arg, const struct spoke_link_event *event)
{
	(void)arg;
	(void)event;
	if (registryrig.in_changed)
		registryrig.in_changed();
}

int registryrig_try_consumer(const char *cache)
{
	const struct spoke_consumer_options options = {
		.url = "consumer://any/" ECHO,
		.registry = "fake://here",
		.registry_kind = &fakereg_kind,
		.registry_cache = cache,
		.changed = note_change,
	};
	int error = spoke_consumer_new(registryrig.engines[CLIENT], &options,
				       &registryrig.consumer);

	if (error)
		return error;
	return spoke_consumer_method(registryrig.consumer, "echo", NULL, &registryrig.echo);
}

void registryrig_consume(const char *cache)
{
	assert_int_equal(registryrig_try_consumer(cache), 0);
}

static void done(void *arg, const struct spoke_result *result)
{
	(void)arg;
	registryrig.ended++;
	registryrig.error = result->error;
	if (registryrig.in_done)
		registryrig.in_done();
}

int registryrig_try_call(void)
{
	const struct spoke_span args = { "\xa4text", 5 };
	unsigned before = registryrig.ended;
	int error = spoke_call(registryrig.echo, args, NULL, done, NULL, NULL);

	if (error)
		return error;
	registryrig_pass(2 * SECOND);
	assert_int_equal(registryrig.ended, before + 1);
	return registryrig.error;
}

size_t registryrig_endpoints(void)
{
	return spoke_consumer_endpoints(registryrig.consumer, NULL, 0);
}
