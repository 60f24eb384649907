/* SPDX-License-Identifier: Apache-2.0 */
/* A stage for scenarios: making its parts, its handlers, and calls. See stage.h. */
#include "tests/cluster/stage.h"

#include "cluster/consumer/parts.h"
#include "cluster/provider/parts.h"
#include "tests/transport/stream/strange.h"
#include "transport/conn/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKLOG 16

/* --- handlers */

static struct spoke_value first_of(struct spoke_request *request)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value first = { NULL, 0 };

	(void)!spoke_cursor_next(&args, &first);
	return first;
}

static void handle_echo(struct spoke_request *request, void *arg)
{
	((struct stage *)arg)->handled++;
	spoke_reply(request, first_of(request));
}

static void handle_fail(struct spoke_request *request, void *arg)
{
	((struct stage *)arg)->handled++;
	spoke_reply_error(request, 7, "it went wrong");
}

static void note_abandoned(struct spoke_request *request, void *arg)
{
	struct stage *stage = arg;
	unsigned which = 0;

	assert_true(spoke_request_abandoned(request));
	stage->abandoned++;
	while (stage->held[which] != request)
		which++;
	if (stage->in_abandoned)
		stage->in_abandoned(stage);
	if (stage->answer_abandoned)
		stage_answer(stage, which);
}

static void hold(struct stage *stage, struct spoke_request *request)
{
	assert_in_range(stage->held_count, 0, STAGE_HELD - 1);
	assert_int_equal(spoke_request_keep(request), 0);
	spoke_request_on_abandoned(request, note_abandoned, stage);
	stage->held[stage->held_count++] = request;
}

static void handle_later(struct spoke_request *request, void *arg)
{
	struct stage *stage = arg;

	stage->handled++;
	hold(stage, request);
}

/* Runs the test's code; with an argument "later" the request is held. */
static void handle_act(struct spoke_request *request, void *arg)
{
	struct stage *stage = arg;
	struct spoke_value first = first_of(request);
	struct spoke_span text = { NULL, 0 };

	stage->handled++;
	stage->in_handler(stage);
	(void)!spoke_value_str(first, &text);
	if (text.len == 5)
		hold(stage, request);
	else
		spoke_reply(request, first);
}

/* Replies with the names of the request, as an array. */
static void handle_who(struct spoke_request *request, void *arg)
{
	struct spoke_span parts[] = {
		spoke_request_service(request),
		spoke_request_version(request),
		spoke_request_group(request),
		spoke_request_method(request),
	};
	struct spoke_builder builder;
	struct spoke_value value = { NULL, 0 };
	unsigned char memory[512];
	char peer[128];

	((struct stage *)arg)->handled++;
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_array(&builder, 7);
	for (size_t i = 0; i < 4; i++)
		spoke_pack_str(&builder, parts[i].len ? parts[i].data : "", parts[i].len);
	spoke_pack_bool(&builder, spoke_request_two_way(request));
	spoke_pack_u64(&builder, spoke_request_arg_count(request));
	spoke_pack_bool(&builder, spoke_request_peer(request, peer, sizeof(peer)) > 0);
	assert_int_equal(spoke_builder_finish_value(&builder, &value), 0);
	spoke_reply(request, value);
}

static void handle_left(struct spoke_request *request, void *arg)
{
	unsigned char memory[16];
	struct spoke_builder builder;
	struct spoke_value value;

	((struct stage *)arg)->handled++;
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_u64(&builder, spoke_request_left(request));
	assert_int_equal(spoke_builder_finish_value(&builder, &value), 0);
	spoke_reply(request, value);
}

/* Replies with the attachments of the request, and adds attachments of its own. */
static void handle_tell(struct spoke_request *request, void *arg)
{
	static const unsigned char own[] = "\x81\xa4"
					   "from\xa8provider";

	((struct stage *)arg)->handled++;
	spoke_reply_with(request, spoke_request_attachments(request),
			 (struct spoke_value){ own, sizeof(own) - 1 });
}

#define HANDLERS 7

static void make_handlers(struct stage *stage, struct spoke_handler handlers[HANDLERS])
{
	const struct spoke_handler all[HANDLERS] = {
		{ .method = "echo", .handle = handle_echo },
		{ .method = "fail", .handle = handle_fail },
		{ .method = "later", .handle = handle_later },
		{ .method = "act", .handle = handle_act },
		{ .method = "who", .handle = handle_who },
		{ .method = "left", .handle = handle_left },
		{ .method = "tell", .handle = handle_tell },
	};

	for (size_t i = 0; i < HANDLERS; i++) {
		handlers[i] = all[i];
		handlers[i].arg = stage;
	}
}

void stage_handle(struct spoke_request *request, void *stage)
{
	struct spoke_handler handlers[HANDLERS];
	struct spoke_span method = spoke_request_method(request);

	make_handlers(stage, handlers);
	for (size_t i = 0; i < HANDLERS; i++) {
		if (method.len == strlen(handlers[i].method) &&
		    memcmp(method.data, handlers[i].method, method.len) == 0) {
			handlers[i].handle(request, stage);
			return;
		}
	}
	spoke_reply_error(request, 1, "there is no such handler");
}

/* --- making */

bool stage_is_secure(const struct stage *stage)
{
	return stage->setting->stream == &secure_stream;
}

unsigned stage_opening_trips(const struct stage *stage)
{
	if (stage_is_secure(stage))
		return SECURE_ROUND_TRIPS;
	if (stage->setting->stream == &spokei_stream_shm)
		return 1;
	return stage->setting->stream ? STRANGE_ROUND_TRIPS : 0;
}

void stage_provide(struct stage *stage, const struct spoke_provider_options *options)
{
	static const struct spoke_service_options services[] = {
		{ .name = "demo.Echo" },
		{ .name = "demo.Versioned", .version = "1.0", .group = "g" },
	};
	struct spoke_handler handlers[HANDLERS];

	struct spoke_provider_options with = { 0 };

	if (options)
		with = *options;
	if (stage_is_secure(stage) && with.tls == NULL)
		with.tls = &stage->secure.provider;
	make_handlers(stage, handlers);
	assert_int_equal(spoke_provider_new(stage->server_engine, &with, &stage->provider), 0);
	stage->provider->link->limits.wire.codec = stage->setting->codec;
	if (stage->setting->stream && !stage_is_secure(stage))
		stage->provider->link->stream = stage->setting->stream;
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(spoke_provider_add(stage->provider, &services[i], handlers,
						    HANDLERS),
				 0);
	(void)stage_listen(stage);
}

static void place_url(const struct stage *stage, unsigned place, char *text, size_t size)
{
	if (stage->setting->at)
		(void)snprintf(text, size, "%s", stage->setting->at);
	else
		(void)snprintf(text, size, "unix:%s/s%u", stage->folder, place);
}

unsigned stage_listen(struct stage *stage)
{
	unsigned place = 0;
	char url[256];

	while (stage->places[place][0])
		place++;
	assert_in_range(place, 0, STAGE_PLACES - 1);
	place_url(stage, place, url, sizeof(url));
	assert_int_equal(spoke_provider_listen(stage->provider, url), 0);
	/* The last address is the new one. */
	for (size_t i = 0; spoke_provider_address(stage->provider, i, stage->places[place],
						  sizeof(stage->places[place])) > 0;
	     i++)
		continue;
	stage_url(stage, 0, "", stage->url, sizeof(stage->url));
	return place;
}

void stage_url(const struct stage *stage, unsigned place, const char *query, char *text,
	       size_t size)
{
	const char *at = stage->places[place];
	const char *scheme = stage->setting->dubbo ? "dubbo" : "msgpack-rpc";

	if (stage->setting->at)
		(void)snprintf(text, size, "%s://%s/demo.Echo?side=consumer%s", scheme, at, query);
	else
		(void)snprintf(text, size, "%s%s?interface=demo.Echo%s",
			       stage->setting->dubbo ? "" : "msgpack-rpc+", at, query);
}

struct spoke_consumer *stage_consumer(struct stage *stage,
				      const struct spoke_consumer_options *options)
{
	struct spoke_consumer_options with = *options;
	struct spoke_consumer *consumer;

	/* Scenarios send values that Hessian 2 cannot express. */
	if (with.serialization == SPOKE_SERIALIZATION_DEFAULT)
		with.serialization = SPOKE_SERIALIZATION_MSGPACK;
	if (stage_is_secure(stage) && with.tls == NULL)
		with.tls = &stage->secure.consumer;
	assert_int_equal(spoke_consumer_new(stage->client_engine, &with, &consumer), 0);
	consumer->link->limits.wire.codec = stage->setting->codec;
	if (stage->setting->stream && !stage_is_secure(stage))
		consumer->link->stream = stage->setting->stream;
	return consumer;
}

void stage_consume(struct stage *stage, const struct spoke_consumer_options *options)
{
	struct spoke_consumer_options with = { 0 };

	if (options)
		with = *options;
	if (with.url == NULL)
		with.url = stage->url;
	stage->consumer = stage_consumer(stage, &with);
}

int stage_deaf_peer(struct stage *stage)
{
	const struct spoke_env *env = &stage->server.env;
	struct spoke_address address;
	char url[256];
	int fd;

	place_url(stage, 0, url, sizeof(url));
	assert_int_equal(env->net->parse(env->ctx, stage->setting->at ? url + 8 : url, &address),
			 0);
	assert_int_equal(env->net->listen(env->ctx, &address, BACKLOG, &fd), 0);
	assert_int_equal(env->net->local(env->ctx, fd, &address), 0);
	env->net->print(env->ctx, &address, stage->places[0], sizeof(stage->places[0]));
	stage_url(stage, 0, "", stage->url, sizeof(stage->url));
	return fd;
}

void stage_close_peer(struct stage *stage, int fd)
{
	stage->server.env.net->close(stage->server.env.ctx, fd);
}

struct spoke_method *stage_method_with(struct stage *stage, const char *name,
				       const struct spoke_method_options *options)
{
	struct spoke_method *method;

	assert_int_equal(spoke_consumer_method(stage->consumer, name, options, &method), 0);
	return method;
}

struct spoke_method *stage_method(struct stage *stage, const char *name)
{
	return stage_method_with(stage, name, NULL);
}

/* --- calling */

struct spoke_span stage_no_args(void)
{
	return (struct spoke_span){ NULL, 0 };
}

struct spoke_span stage_text(struct stage *stage, const char *text)
{
	struct spoke_builder builder;

	spoke_builder_init_fixed(&builder, stage->args, STAGE_ARGS, NULL);
	spoke_pack_text(&builder, text);
	assert_int_equal(spoke_builder_finish(&builder, &stage->packed), 0);
	return stage->packed;
}

struct spoke_span stage_bin(struct stage *stage, size_t len)
{
	unsigned char *bytes = malloc(len + 1);
	struct spoke_builder builder;

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++)
		bytes[i] = (unsigned char)(i * 7 + i / 251);
	spoke_builder_init_fixed(&builder, stage->args, STAGE_ARGS, NULL);
	spoke_pack_bin(&builder, bytes, len);
	free(bytes);
	assert_int_equal(spoke_builder_finish(&builder, &stage->packed), 0);
	return stage->packed;
}

static const void *copy_of(unsigned char **at, size_t *left, const void *bytes, size_t *len)
{
	unsigned char *copy = *at;

	if (*len > *left)
		*len = *left;
	if (*len)
		memcpy(copy, bytes, *len);
	*at += *len;
	*left -= *len;
	return copy;
}

static void note_end(void *arg, const struct spoke_result *result)
{
	struct stage_call *call = arg;
	struct stage *stage = call->stage;
	struct spoke_result *kept = &call->result;
	unsigned char *at = call->bytes;
	size_t left = sizeof(call->bytes);

	assert_false(stage->calling);
	call->ends++;
	assert_int_equal(call->ends, 1);
	call->order = stage->ended++;
	*kept = *result;
	call->value_len = kept->value.len;
	call->same = kept->value.len == stage->packed.len && kept->value.len > 0 &&
		     memcmp(kept->value.data, stage->packed.data, kept->value.len) == 0;
	kept->value.data = copy_of(&at, &left, result->value.data, &kept->value.len);
	kept->attachments.data = copy_of(&at, &left, result->attachments.data,
					 &kept->attachments.len);
	kept->error_text.data = copy_of(&at, &left, result->error_text.data, &kept->error_text.len);
	kept->error_class.data = copy_of(&at, &left, result->error_class.data,
					 &kept->error_class.len);
	if (call->then)
		call->then(call);
}

static struct stage_call *next_call(struct stage *stage)
{
	struct stage_call *call = &stage->calls[stage->call_count];

	assert_in_range(stage->call_count, 0, STAGE_CALLS - 1);
	call->stage = stage;
	return call;
}

int stage_try(struct stage *stage, struct spoke_method *method, struct spoke_span args,
	      const struct spoke_call_options *options)
{
	struct stage_call *call = next_call(stage);
	bool outer = stage->calling;
	int error;

	stage->calling = true;
	error = spoke_call(method, args, options, note_end, call, &call->name);
	stage->calling = outer;
	if (error == 0)
		stage->call_count++;
	return error;
}

int stage_try_push(struct stage *stage, struct spoke_method *method, struct spoke_peer peer,
		   struct spoke_span args, const struct spoke_call_options *options)
{
	struct stage_call *call = next_call(stage);
	bool outer = stage->calling;
	int error;

	stage->calling = true;
	error = spoke_push(method, peer, args, options, note_end, call, &call->name);
	stage->calling = outer;
	if (error == 0)
		stage->call_count++;
	return error;
}

struct stage_call *stage_push(struct stage *stage, struct spoke_method *method,
			      struct spoke_peer peer, struct spoke_span args,
			      const struct spoke_call_options *options)
{
	assert_int_equal(stage_try_push(stage, method, peer, args, options), 0);
	return &stage->calls[stage->call_count - 1];
}

struct stage_call *stage_call_with(struct stage *stage, struct spoke_method *method,
				   struct spoke_span args, const struct spoke_call_options *options)
{
	assert_int_equal(stage_try(stage, method, args, options), 0);
	return &stage->calls[stage->call_count - 1];
}

struct stage_call *stage_call(struct stage *stage, struct spoke_method *method,
			      struct spoke_span args)
{
	return stage_call_with(stage, method, args, NULL);
}
