/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of filter tests: see filterrig.h. */
#include "tests/cluster/filter/filterrig.h"
#include "tests/support/scene.h"

#include <string.h>

#define AT "127.0.0.1:20880"

struct filter_rig rig;

/* --- handlers */

static void handle_echo(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value first = { NULL, 0 };

	(void)arg;
	rig.handled++;
	if (rig.in_echo)
		rig.in_echo(request);
	(void)!spoke_cursor_next(&args, &first);
	spoke_reply(request, first);
	if (rig.in_reply)
		rig.in_reply();
}

static void handle_fail(struct spoke_request *request, void *arg)
{
	(void)arg;
	rig.handled++;
	spoke_reply_error(request, 7, "it went wrong");
}

static void handle_later(struct spoke_request *request, void *arg)
{
	(void)arg;
	rig.handled++;
	assert_in_range(rig.held_count, 0, RIG_CALLS - 1);
	rig.held[rig.held_count++] = request;
}

/* --- calls */

static void call_done(void *arg, const struct spoke_result *result)
{
	struct filterrig_call *call = arg;
	struct spoke_span text = result->error_text;

	call->ends++;
	call->error = result->error;
	call->code = result->error_code;
	rig.ended++;
	if (result->error == SPOKE_OK && spoke_value_str(result->value, &text))
		return;
	assert_in_range(text.len, 0, RIG_TEXT - 1);
	if (text.len)
		memcpy(call->text, text.data, text.len);
}

static int try_call(struct spoke_method *method, const char *text,
		    const struct spoke_call_options *options)
{
	struct filterrig_call *call = &rig.calls[rig.begun];
	unsigned char memory[RIG_TEXT];
	struct spoke_builder builder;
	struct spoke_span args;
	int error;

	assert_in_range(rig.begun, 0, RIG_CALLS - 1);
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, text);
	assert_int_equal(spoke_builder_finish(&builder, &args), 0);
	error = spoke_call(method, args, options, call_done, call, &call->name);
	rig.begun += error == SPOKE_OK;
	return error;
}

struct filterrig_call *filterrig_call_with(struct spoke_method *method, const char *text,
					   const struct spoke_call_options *options)
{
	assert_int_equal(try_call(method, text, options), SPOKE_OK);
	return &rig.calls[rig.begun - 1];
}

bool filterrig_try(struct spoke_method *method)
{
	return try_call(method, "hello", NULL) == SPOKE_OK;
}

struct filterrig_call *filterrig_call(struct spoke_method *method)
{
	return filterrig_call_with(method, "hello", NULL);
}

void filterrig_answer(unsigned which)
{
	struct spoke_request *request = rig.held[which];

	assert_non_null(request);
	rig.held[which] = NULL;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

void filterrig_answer_all(void)
{
	for (unsigned i = 0; i < rig.held_count; i++) {
		if (rig.held[i])
			filterrig_answer(i);
	}
	rig.held_count = 0;
}

void filterrig_pass(uint64_t ns)
{
	uint64_t until_ns = rig.world.now_ns + ns;

	if (!rig.by_turns)
		spokei_world_run(&rig.world, until_ns);
	while (rig.world.now_ns < until_ns) {
		for (unsigned i = 0; i < 2; i++) {
			if (rig.engines[i])
				assert_int_equal(spoke_engine_turn(rig.engines[i], false), 0);
		}
		rig.world.now_ns += MS;
	}
}

uint64_t filterrig_stat(enum spoke_stat stat)
{
	return spoke_stat_get(rig.engines[SERVER], stat);
}

/* --- set-up */

RIG_STEP(filterrig_set_up)
{
	memset(&rig, 0, sizeof(rig));
	scene_open(&rig.world, 5);
	for (unsigned i = 0; i < 2; i++)
		rig.engines[i] = scene_engine(&rig.world, &rig.processes[i], &rig.faulty[i], NULL);
}

RIG_STEP(filterrig_tear_down)
{
	spoke_consumer_free(rig.consumer);
	spoke_provider_free(rig.provider);
	rig.consumer = NULL;
	rig.provider = NULL;
	filterrig_pass(10 * MS);
	filterrig_answer_all();
	for (unsigned i = 0; i < 2; i++)
		scene_leave(&rig.processes[i], &rig.faulty[i], &rig.engines[i]);
	spokei_world_fini(&rig.world);
	assert_int_equal(rig.ended, rig.begun);
	for (unsigned i = 0; i < rig.begun; i++)
		assert_int_equal(rig.calls[i].ends, 1);
}

int filterrig_provide(const struct spoke_provider_options *options)
{
	static const struct spoke_service_options service = { .name = "S", .version = "1.0" };
	struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = handle_echo },
		{ .method = "fail", .handle = handle_fail },
		{ .method = "later", .handle = handle_later },
		{ .method = "pool", .handle = handle_echo, .flags = SPOKE_HANDLER_POOL },
	};
	size_t count = sizeof(handlers) / sizeof(handlers[0]);
	int error = spoke_provider_new(rig.engines[SERVER], options, &rig.provider);

	for (size_t i = 0; i < count; i++) {
		handlers[i].executes = rig.executes;
		handlers[i].per_second = rig.per_second;
	}
	if (error == 0)
		error = spoke_provider_add(rig.provider, &service, handlers, count);
	if (error == 0)
		error = spoke_provider_listen(rig.provider, "dubbo://" AT);
	return error;
}

int filterrig_begin(const struct spoke_provider_options *options)
{
	struct spoke_consumer_options with = {
		.serialization = SPOKE_SERIALIZATION_MSGPACK,
		.url = rig.url ? rig.url : "dubbo://" AT "/S?version=1.0&timeout=10s",
		.filters = rig.filters,
		.filter_count = rig.filter_count,
	};
	struct {
		const char *name;
		struct spoke_method **method;
	} methods[] = {
		{ "echo", &rig.echo },
		{ "fail", &rig.fail },
		{ "later", &rig.later },
		{ "pool", &rig.pool },
	};
	int error = filterrig_provide(options);

	if (error)
		return error;
	assert_int_equal(spoke_consumer_new(rig.engines[CLIENT], &with, &rig.consumer), 0);
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		assert_int_equal(spoke_consumer_method(rig.consumer, methods[i].name, NULL,
						       methods[i].method),
				 0);
	filterrig_pass(10 * MS);
	return 0;
}
