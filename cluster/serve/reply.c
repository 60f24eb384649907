/* SPDX-License-Identifier: Apache-2.0 */
/* Replies with values that are made in place, and arguments that go into variables. */
#include "cluster/serve/parts.h"
#include "cluster/serve/request.h"
#include "cluster/serve/routes.h"

#include "core/engine/engine.h"
#include "core/value/builder.h"

#define UNREAD_TEXT 256 /* bytes of a sentence about arguments */

void spoke_reply_arg(struct spoke_request *request, struct spoke_arg value)
{
	const struct spoke_args args = { &value, 1 };
	struct spokei_packed packed;
	int error = spokei_args_pack(request->engine->env, args, &packed);

	if (error)
		spokei_request_unsendable(request, error);
	else
		spoke_reply(request, spokei_packed_value(&packed));
	spokei_packed_free(&packed);
}

void spoke_reply_unread(struct spoke_request *request, const struct spoke_reader *reader)
{
	char text[UNREAD_TEXT];

	(void)spoke_reader_why(reader, text, sizeof(text));
	spoke_reply_error(request, reader->error, "%s", text);
}

struct spoke_reader spoke_request_reader(const struct spoke_request *request)
{
	return spoke_reader_values(spoke_request_args(request), "argument");
}

int spoke_request_read(struct spoke_request *request, const struct spoke_into *into, size_t count)
{
	struct spoke_reader reader = spoke_request_reader(request);
	int error = spoke_read(&reader, into, count);

	if (error)
		spoke_reply_unread(request, &reader);
	return error;
}

/* --- methods that every service has */

static void reply_echo(struct spoke_request *request, void *service)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value;

	(void)service;
	if (!spoke_cursor_next(&args, &value))
		value = (struct spoke_value){ NULL, 0 };
	spoke_reply(request, value);
}

/* "*" stands for all other methods. */
static void reply_methods(struct spoke_request *request, void *arg)
{
	const struct spokei_service *service = arg;
	struct spoke_builder builder;
	struct spoke_value value;
	size_t count = 0;
	int error;

	for (size_t i = 0; i < service->count; i++)
		count += !spokei_route_is_common(service->routes[i].method);
	spoke_builder_init(&builder, service->env, NULL);
	spoke_pack_array(&builder, count);
	for (size_t i = 0; i < service->count; i++) {
		const struct spoke_span method = service->routes[i].method;

		if (method.len == 0)
			spoke_pack_str(&builder, "*", 1);
		else if (!spokei_route_is_common(method))
			spoke_pack_str(&builder, method.data, method.len);
	}
	error = spoke_builder_finish_value(&builder, &value);
	if (error)
		spokei_request_unsendable(request, error);
	else
		spoke_reply(request, value);
	spoke_builder_fini(&builder);
}

static void reply_token(struct spoke_request *request, void *service)
{
	(void)service;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

const struct spoke_handler spokei_request_commons[SPOKEI_REQUEST_COMMONS] = {
	{ .method = "$echo", .handle = reply_echo, .flags = SPOKE_HANDLER_SAFE },
	{ .method = "$methods", .handle = reply_methods, .flags = SPOKE_HANDLER_SAFE },
	{ .method = "$token", .handle = reply_token },
};
