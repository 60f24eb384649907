/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program whose instructions callgrind counts: calls between a consumer and a provider in one
 * process, under a virtual clock, over an in-memory network. Its work is the same in each run, to
 * the instruction; the counted part runs inside cost_measured(). The program fails if a call fails
 * or has a wrong result.
 */
#include "core/virtual/world.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/value.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAYLOAD 32u
#define DEEP_MAX 1024u
#define CONNECTIONS_MAX 4096u
#define ADDRESS "127.0.0.1:20880"
#define SERVICE "demo.EchoService"
#define LATENCY_NS UINT64_C(25000) /* in each direction */
#define MANY 100000000u
#define SECOND UINT64_C(1000000000)

/* A consumer with a connection of its own. */
struct caller {
	struct rig *rig;
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
};

struct rig {
	struct spokei_world world;
	struct spokei_world_process client;
	struct spokei_world_process server;
	struct spoke_engine *client_engine;
	struct spoke_engine *server_engine;
	struct spoke_provider *provider;
	struct caller *callers;
	uint64_t connections;
	unsigned char memory[PAYLOAD + 8];
	struct spoke_span args;
	uint64_t ended;
	uint64_t until; /* ... that many the world goes on */
	/* Features beyond the defaults. */
	bool has_limits;
	bool has_filters;
	bool has_dedupe; /* the provider remembers requests, so calls bear ids */
	bool hessian2;   /* the serialization of the calls; default msgpack */
	/* Three arguments, packed again for each call; default one that is packed once. */
	bool by_hand; /* with a builder */
	bool in_line; /* with SPOKE_ARGS() */
	char text[PAYLOAD + 1];
};

void cost_measured(struct rig *rig, uint64_t calls);

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)fputs("bench_cost: ", stderr);
	(void)vfprintf(stderr, format, args);
	(void)fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static void must(const char *what, int error)
{
	if (error)
		die("%s: %s", what, spoke_strerror(error));
}

/* --- calls */

static void handle(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value;

	(void)arg;
	if (spoke_cursor_next(&args, &value))
		spoke_reply(request, value);
	else
		spoke_reply_error(request, 1, "echo: argument missing");
}

static void call(struct caller *caller);

static void call_done(void *arg, const struct spoke_result *result)
{
	struct caller *caller = arg;
	struct rig *rig = caller->rig;

	if (result->error)
		die("a call failed: %s", spoke_strerror(result->error));
	if (result->value.len != rig->args.len)
		die("a call had a wrong result");
	if (++rig->ended == rig->until)
		rig->world.halts = true;
	call(caller);
}

static int call_by_hand(struct caller *caller)
{
	struct rig *rig = caller->rig;
	struct spoke_builder builder;
	unsigned char memory[PAYLOAD + 32];
	struct spoke_span args;
	int error;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, rig->text);
	spoke_pack_i64(&builder, 42);
	spoke_pack_bool(&builder, true);
	error = spoke_builder_finish(&builder, &args);
	return error ? error : spoke_call(caller->echo, args, NULL, call_done, caller, NULL);
}

static void call(struct caller *caller)
{
	struct rig *rig = caller->rig;

	if (rig->by_hand)
		must("call", call_by_hand(caller));
	else if (rig->in_line)
		must("call", spoke_call_with(caller->echo, SPOKE_ARGS(rig->text, 42, true),
					     call_done, caller));
	else
		must("call", spoke_call(caller->echo, rig->args, NULL, call_done, caller, NULL));
}

static void make_calls(struct rig *rig, uint64_t calls)
{
	rig->until = rig->ended + calls;
	spokei_world_go(&rig->world, rig->world.now_ns + SECOND);
	if (rig->ended < rig->until)
		die("not all calls ended within a second");
}

/* A function with a fixed name, which is passed to callgrind. */
__attribute__((noinline)) void cost_measured(struct rig *rig, uint64_t calls)
{
	make_calls(rig, calls);
}

/* --- a filter that does nothing */

static struct spoke_filter_verdict see_call(void *arg, const struct spoke_filter_call *call)
{
	(void)arg;
	(void)call;
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
}

static struct spoke_filter_verdict see_request(void *arg, const struct spoke_request *request)
{
	(void)arg;
	(void)request;
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
}

static void see_answer(void *arg, const struct spoke_request *request,
		       const struct spoke_filter_answer *answer)
{
	(void)arg;
	(void)request;
	(void)answer;
}

static const struct spoke_filter filter = {
	.name = "idle",
	.before_call = see_call,
	.after_call = see_call,
	.before_request = see_request,
	.after_request = see_answer,
};
static const struct spoke_filter *const filters[] = { &filter };

/* --- set-up and main loop */

static void open_server(struct rig *rig)
{
	static const struct spoke_service_options service = { .name = SERVICE };
	struct spoke_handler handler = { .method = "echo", .handle = handle };
	struct spoke_provider_options options = { .filters = filters };
	struct spoke_engine_options with = { .env = &rig->server.env };

	options.filter_count = rig->has_filters ? 1 : 0;
	options.dedupe_ns = rig->has_dedupe ? 600 * SECOND : 0;
	if (rig->has_limits) {
		handler.executes = MANY;
		handler.per_second = MANY;
	}
	must("engine", spoke_engine_new(&with, &rig->server_engine));
	must("provider", spoke_provider_new(rig->server_engine, &options, &rig->provider));
	must("service", spoke_provider_add(rig->provider, &service, &handler, 1));
	must("listen", spoke_provider_listen(rig->provider, "dubbo://" ADDRESS));
}

static void open_client(struct rig *rig)
{
	struct spoke_engine_options with = { .env = &rig->client.env };
	struct spoke_consumer_options options = {
		.url = "dubbo://" ADDRESS "/" SERVICE,
		.timeout_ns = SECOND,
		.filters = filters,
		.serialization = rig->hessian2 ? SPOKE_SERIALIZATION_HESSIAN2
					       : SPOKE_SERIALIZATION_MSGPACK
	};
	struct spoke_method_options method = { 0 };

	options.filter_count = rig->has_filters ? 1 : 0;
	if (rig->has_limits) {
		method.actives = MANY;
		method.per_second = MANY;
	}
	must("engine", spoke_engine_new(&with, &rig->client_engine));
	rig->callers = calloc(rig->connections, sizeof(*rig->callers));
	if (!rig->callers)
		die("no memory");
	for (uint64_t i = 0; i < rig->connections; i++) {
		struct caller *caller = &rig->callers[i];

		caller->rig = rig;
		must("consumer",
		     spoke_consumer_new(rig->client_engine, &options, &caller->consumer));
		must("method",
		     spoke_consumer_method(caller->consumer, "echo", &method, &caller->echo));
	}
}

static bool are_ready(const struct rig *rig)
{
	for (uint64_t i = 0; i < rig->connections; i++)
		if (spoke_consumer_ready(rig->callers[i].consumer) == 0)
			return false;
	return true;
}

static void open_world(struct rig *rig)
{
	static const struct spokei_vnet_link link = { .latency_ns = LATENCY_NS };
	struct spoke_builder builder;
	char text[PAYLOAD];

	if (!spokei_world_init(&rig->world, 1))
		die("no memory");
	spokei_vnet_set_all(rig->world.net, &link);
	spokei_world_process_init(&rig->client, &rig->world);
	spokei_world_process_init(&rig->server, &rig->world);
	open_server(rig);
	open_client(rig);
	memset(text, 'x', sizeof(text));
	memset(rig->text, 'x', PAYLOAD);
	spoke_builder_init_fixed(&builder, rig->memory, sizeof(rig->memory), NULL);
	spoke_pack_str(&builder, text, sizeof(text));
	must("arguments", spoke_builder_finish(&builder, &rig->args));
	while (!are_ready(rig))
		if (!spokei_world_step(&rig->world, rig->world.now_ns + SECOND))
			die("a consumer does not connect");
}

static uint64_t number_of(const char *text, uint64_t most)
{
	char *end;
	unsigned long long number = strtoull(text, &end, 10);

	if (*end || number == 0 || number > most)
		die("\"%s\" is not a number from 1 to %llu", text, (unsigned long long)most);
	return number;
}

int main(int argc, char **argv)
{
	static struct rig rig;
	uint64_t deep = 64;
	uint64_t warm = 1024;
	uint64_t calls = 4096;

	rig.connections = 1;
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 < argc && strcmp(argv[i], "--deep") == 0)
			deep = number_of(argv[i + 1], DEEP_MAX);
		else if (i + 1 < argc && strcmp(argv[i], "--connections") == 0)
			rig.connections = number_of(argv[i + 1], CONNECTIONS_MAX);
		else if (i + 1 < argc && strcmp(argv[i], "--warm") == 0)
			warm = number_of(argv[i + 1], UINT32_MAX);
		else if (i + 1 < argc && strcmp(argv[i], "--calls") == 0)
			calls = number_of(argv[i + 1], UINT32_MAX);
		else if (i + 1 < argc && strcmp(argv[i], "--with") == 0 &&
			 strcmp(argv[i + 1], "limits") == 0)
			rig.has_limits = true;
		else if (i + 1 < argc && strcmp(argv[i], "--with") == 0 &&
			 strcmp(argv[i + 1], "filters") == 0)
			rig.has_filters = true;
		else if (i + 1 < argc && strcmp(argv[i], "--with") == 0 &&
			 strcmp(argv[i + 1], "dedupe") == 0)
			rig.has_dedupe = true;
		else if (i + 1 < argc && strcmp(argv[i], "--with") == 0 &&
			 strcmp(argv[i + 1], "hessian2") == 0)
			rig.hessian2 = true;
		else if (i + 1 < argc && strcmp(argv[i], "--with") == 0 &&
			 strcmp(argv[i + 1], "hand") == 0)
			rig.by_hand = true;
		else if (i + 1 < argc && strcmp(argv[i], "--with") == 0 &&
			 strcmp(argv[i + 1], "line") == 0)
			rig.in_line = true;
		else
			die("usage: bench_cost [--connections N] [--deep N] [--warm CALLS] "
			    "[--calls CALLS]"
			    " [--with limits|filters|dedupe|hessian2|hand|line]");
	}
	open_world(&rig);
	for (uint64_t i = 0; i < rig.connections * deep; i++)
		call(&rig.callers[i % rig.connections]);
	make_calls(&rig, warm);
	cost_measured(&rig, calls);
	(void)printf("%llu\t%llu\n", (unsigned long long)rig.ended,
		     (unsigned long long)rig.world.now_ns);
	return 0;
}
