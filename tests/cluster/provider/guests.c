/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of tests about callers: see guests.h. */
#include "tests/cluster/provider/guests.h"

#include "core/virtual/files.h"

#include <stdio.h>
#include <string.h>

struct guests guests;

/* --- handlers */

static void note_names(const struct spoke_request *request)
{
	size_t used = 0;
	char name[256];

	guests.names[0] = '\0';
	for (size_t i = 0; spoke_request_identity(request, i, name, sizeof(name)) > 0; i++)
		used += (size_t)snprintf(guests.names + used, sizeof(guests.names) - used, "%s%s",
					 i ? " " : "", name);
	guests.handled++;
}

static void handle_echo(struct spoke_request *request, void *arg)
{
	(void)arg;
	note_names(request);
	SPOKE_REPLY(request, 1);
}

static void handle_later(struct spoke_request *request, void *arg)
{
	(void)arg;
	guests.handled++;
	guests.held = request;
}

/* --- the provider */

void guests_configure(const char *text)
{
	spokei_vfiles_put(guests.world.files, GUESTS_FILE, text);
	assert_int_equal(spoke_config_load(&guests.faulty.env, GUESTS_FILE, NULL, NULL,
					   &guests.config),
			 SPOKE_OK);
}

int guests_reload(const char *text)
{
	int error;

	spokei_vfiles_put(guests.world.files, GUESTS_FILE, text);
	error = spoke_config_reload(guests.config, NULL, NULL);
	guests_pass(10 * MS);
	return error;
}

int guests_try(const struct spoke_provider_options *options)
{
	static const struct spoke_service_options services[] = { { .name = "demo.Echo" },
								 { .name = "demo.Other" } };
	static const struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = handle_echo },
		{ .method = "later", .handle = handle_later },
		{ .method = "pool", .handle = handle_echo, .flags = SPOKE_HANDLER_POOL },
	};
	struct spoke_provider_options with = { .config = NULL };
	int error;

	if (options)
		with = *options;
	with.config = guests.config;
	error = spoke_provider_new(guests.engine, &with, &guests.provider);
	for (unsigned i = 0; i < 2 && error == 0; i++)
		assert_int_equal(spoke_provider_add(guests.provider, &services[i], handlers, 3), 0);
	return error;
}

void guests_begin(const struct spoke_provider_options *options, const char *const *urls)
{
	assert_int_equal(guests_try(options), 0);
	for (; *urls; urls++)
		assert_int_equal(spoke_provider_listen(guests.provider, *urls), 0);
}

/* --- consumers */

void guests_enter(unsigned which, const char *url, const char *from, uint32_t uid, uint32_t gid)
{
	struct guest *guest = &guests.guest[which];
	struct spoke_engine_options engine = { .env = &guest->process.env };
	struct spoke_consumer_options with = { .url = url };

	guest->process.user.from = from;
	guest->process.user.uid = uid;
	guest->process.user.gid = gid;
	guest->process.user.pid = 4711;
	assert_null(guest->engine);
	assert_int_equal(spoke_engine_new(&engine, &guest->engine), 0);
	assert_int_equal(spoke_consumer_new(guest->engine, &with, &guest->consumer), 0);
	guests_pass(10 * MS);
}

void guests_leave(unsigned which)
{
	struct guest *guest = &guests.guest[which];

	spoke_consumer_free(guest->consumer);
	spoke_engine_free(guest->engine);
	guest->consumer = NULL;
	guest->engine = NULL;
}

static void call_done(void *arg, const struct spoke_result *result)
{
	struct guest *guest = arg;

	guest->ends++;
	guest->error = result->error;
	guest->code = result->error_code;
	(void)snprintf(guest->text, sizeof(guest->text), "%.*s", (int)result->error_text.len,
		       result->error_text.len ? (const char *)result->error_text.data : "");
}

int guests_call(unsigned which, const char *method)
{
	struct guest *guest = &guests.guest[which];
	struct spoke_method *made;
	unsigned ends = guest->ends;
	int error;

	assert_int_equal(spoke_consumer_method(guest->consumer, method, NULL, &made), 0);
	error = spoke_call_with(made, SPOKE_NO_ARGS, call_done, guest);
	if (error)
		return error;
	guests_pass(100 * MS);
	if (strcmp(method, "later") == 0)
		return SPOKE_OK;
	assert_int_equal(guest->ends, ends + 1);
	return guest->error;
}

void guests_pass(uint64_t ns)
{
	spokei_world_run(&guests.world, guests.world.now_ns + ns);
}

uint64_t guests_stat(enum spoke_stat stat)
{
	return spoke_stat_get(guests.engine, stat);
}

unsigned guests_events(const char *words)
{
	struct spoke_event event = { .number = 0 };
	unsigned count = 0;

	while (spoke_event_get(guests.engine, event.number + 1, &event) == SPOKE_OK)
		count += strstr(event.text, words) != NULL;
	return count;
}

/* --- set-up */

int guests_set_up(void **state)
{
	struct spoke_engine_options with = { .env = &guests.faulty.env };

	(void)state;
	memset(&guests, 0, sizeof(guests));
	if (!spokei_world_init(&guests.world, 7))
		return -1;
	spokei_world_process_init(&guests.process, &guests.world);
	spokei_faults_init(&guests.faulty, &guests.process.env);
	for (unsigned i = 0; i < GUESTS; i++)
		spokei_world_process_init(&guests.guest[i].process, &guests.world);
	return spoke_engine_new(&with, &guests.engine);
}

int guests_tear_down(void **state)
{
	(void)state;
	for (unsigned i = 0; i < GUESTS; i++)
		if (guests.guest[i].engine)
			guests_leave(i);
	spoke_provider_free(guests.provider);
	guests_pass(10 * MS);
	if (guests.held)
		SPOKE_REPLY(guests.held, 1);
	spoke_config_free(guests.config);
	spoke_engine_free(guests.engine);
	assert_int_equal(guests.faulty.blocks, 0);
	assert_int_equal(guests.faulty.fds, 0);
	for (unsigned i = 0; i < GUESTS; i++)
		spokei_world_process_fini(&guests.guest[i].process);
	spokei_world_process_fini(&guests.process);
	spokei_world_fini(&guests.world);
	return 0;
}
