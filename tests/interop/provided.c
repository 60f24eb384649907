/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers that Neovim calls; see provided.h. */
#include "tests/interop/provided.h"
#include "tests/support/echo_handler.h"

#include <string.h>

#define LARGE 1048576u
#define A_LITTLE_NS UINT64_C(50000000)

/* Answers with the number of arguments, their types and the length of the first one. */
static void describe(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_builder builder;
	unsigned char memory[512];
	struct spoke_value value;
	size_t bytes = 0;

	(void)arg;
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_array(&builder, spoke_request_arg_count(request) + 1);
	while (spoke_cursor_next(&args, &value)) {
		struct spoke_span span;

		spoke_pack_text(&builder, spoke_value_type_name(spoke_value_type(value)));
		if (bytes == 0 && spoke_value_bytes(value, &span) == 0)
			bytes = span.len;
	}
	spoke_pack_u64(&builder, bytes);
	if (spoke_builder_finish_value(&builder, &value))
		spoke_reply_error(request, 2, "too many arguments");
	else
		spoke_reply(request, value);
}

static void refuse(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply_error(request, 42, "no such luck: \xe2\x82\xac 5");
}

static void note(struct spoke_request *request, void *arg)
{
	struct provided *provided = arg;
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value = { 0 };

	if (!spoke_request_two_way(request))
		provided->notes++;
	if (spoke_cursor_next(&args, &value))
		(void)spoke_value_print(value, provided->note, sizeof(provided->note));
	spoke_reply(request, (struct spoke_value){ 0 });
}

static void large(struct spoke_request *request, void *arg)
{
	static unsigned char bytes[LARGE + 5] = { 0xdb, 0, LARGE >> 16, 0, 0 };

	(void)arg;
	memset(bytes + 5, 'x', LARGE);
	spoke_reply(request, (struct spoke_value){ bytes, sizeof(bytes) });
}

static void highest(struct spoke_request *request, void *arg)
{
	static const unsigned char bytes[] = { 0xcf, 255, 255, 255, 255, 255, 255, 255, 255 };

	(void)arg;
	spoke_reply(request, (struct spoke_value){ bytes, sizeof(bytes) });
}

static void release_held(struct spoke_alarm *alarm)
{
	struct provided *provided = spoke_container_of(alarm, struct provided, release);
	static const unsigned char seven = 7;

	spoke_reply(provided->held, (struct spoke_value){ &seven, 1 });
	provided->held = NULL;
}

static void hold(struct spoke_request *request, void *arg)
{
	struct provided *provided = arg;

	provided->held = request;
	if (spoke_alarm_after(provided->engine, &provided->release, A_LITTLE_NS, release_held))
		release_held(&provided->release);
}

static void note_abandoned(struct spoke_request *request, void *arg)
{
	struct provided *provided = arg;

	(void)request;
	provided->abandoned++;
}

static void keep(struct spoke_request *request, void *arg)
{
	struct provided *provided = arg;

	provided->held = request;
	spoke_request_on_abandoned(request, note_abandoned, provided);
}

static void leave(struct spoke_request *request, void *arg)
{
	struct provided *provided = arg;

	keep(request, arg);
	spoke_provider_free(provided->provider);
	provided->provider = NULL;
}

static void who(struct spoke_request *request, void *arg)
{
	struct spoke_builder builder;
	unsigned char memory[64];
	struct spoke_value value;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, arg);
	if (spoke_builder_finish_value(&builder, &value))
		spoke_reply_error(request, 2, "too long a name");
	else
		spoke_reply(request, value);
}

int provided_serve(struct provided *provided)
{
	static char name[] = SERVICE;
	static char default_name[] = DEFAULT_SERVICE;
	static const struct spoke_provider_options options = { .default_service = DEFAULT_SERVICE };
	static const struct spoke_service_options services[] = { { .name = SERVICE },
								 { .name = DEFAULT_SERVICE } };
	const struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = echo_handler },
		{ .method = "describe", .handle = describe },
		{ .method = "refuse", .handle = refuse },
		{ .method = "note", .handle = note, .arg = provided },
		{ .method = "large", .handle = large },
		{ .method = "highest", .handle = highest },
		{ .method = "hold", .handle = hold, .arg = provided },
		{ .method = "keep", .handle = keep, .arg = provided },
		{ .method = "leave", .handle = leave, .arg = provided },
		{ .method = "who", .handle = who, .arg = name },
	};
	const struct spoke_handler default_handlers[] = {
		{ .method = "echo", .handle = echo_handler },
		{ .method = "who", .handle = who, .arg = default_name },
	};
	size_t count = sizeof(handlers) / sizeof(handlers[0]);
	int error = spoke_provider_new(provided->engine, &options, &provided->provider);

	if (error == 0)
		error = spoke_provider_add(provided->provider, &services[0], handlers, count);
	if (error == 0)
		error = spoke_provider_add(provided->provider, &services[1], default_handlers, 2);
	return error;
}
