/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two calls by failover between two providers under a virtual clock. The first provider refuses the
 * first call, so its second attempt succeeds; the other call succeeds with its first attempt.
 * trace.py steps through the code from a reply's bytes to the callback.
 */
#include "core/virtual/world.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>

#include <stdio.h>
#include <stdlib.h>

#define SERVICE "demo.EchoService"
#define PROVIDERS 2u
#define CALLS 16u
#define SECOND UINT64_C(1000000000)

/* Functions with fixed names, for trace.py. */
void stops_read(void);
void stops_called_back(void *arg, const struct spoke_result *result);

struct rig {
	struct spokei_world world;
	struct spokei_world_process server[PROVIDERS];
	struct spokei_world_process client;
	struct spoke_net net; /* the client's, with a wrapper of read */
	const struct spoke_net *real;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	bool warm;         /* the first calls of a connection do more */
	uint32_t attempts; /* of the call that has ended; 0: none has */
};

static struct rig rig;

static void must(const char *step, int error)
{
	if (error == 0)
		return;
	(void)fprintf(stderr, "bench_stops: %s: %s\n", step, spoke_strerror(error));
	exit(1);
}

__attribute__((noinline)) void stops_read(void)
{
	__asm__ volatile("");
}

void stops_called_back(void *arg, const struct spoke_result *result)
{
	(void)arg;
	must("call", result->error);
	rig.attempts = result->attempts;
}

static ssize_t read_traced(void *ctx, int fd, void *bytes, size_t len)
{
	ssize_t got = rig.real->read(ctx, fd, bytes, len);

	if (rig.warm)
		stops_read();
	return got;
}

static void handle(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

/* The first provider has a different method, so it refuses calls of "echo". */
static void open_server(size_t i)
{
	static const char *const urls[PROVIDERS] = { "dubbo://127.0.0.1:20880",
						     "dubbo://127.0.0.1:20881" };
	static const struct spoke_service_options service = { .name = SERVICE };
	const struct spoke_handler handler = { .method = i ? "echo" : "other", .handle = handle };
	struct spoke_engine_options with = { .env = &rig.server[i].env };
	struct spoke_engine *engine;
	struct spoke_provider *provider;

	spokei_world_process_init(&rig.server[i], &rig.world);
	must("engine", spoke_engine_new(&with, &engine));
	must("provider", spoke_provider_new(engine, NULL, &provider));
	must("service", spoke_provider_add(provider, &service, &handler, 1));
	must("listen", spoke_provider_listen(provider, urls[i]));
}

static void open_client(void)
{
	static const char *const more[] = { "dubbo://127.0.0.1:20881/" SERVICE };
	struct spoke_consumer_options options = {
		.serialization = SPOKE_SERIALIZATION_MSGPACK,
		.url = "dubbo://127.0.0.1:20880/" SERVICE,
		.more_urls = more,
		.more_count = 1,
		.balancer = &spoke_balancer_round_robin,
	};
	struct spoke_engine_options with = { .env = &rig.client.env };

	spokei_world_process_init(&rig.client, &rig.world);
	rig.real = rig.client.env.net;
	rig.net = *rig.real;
	rig.net.read = read_traced;
	rig.client.env.net = &rig.net;
	must("engine", spoke_engine_new(&with, &rig.engine));
	must("consumer", spoke_consumer_new(rig.engine, &options, &rig.consumer));
	must("method", spoke_consumer_method(rig.consumer, "echo", NULL, &rig.echo));
}

static void step(void)
{
	if (!spokei_world_step(&rig.world, rig.world.now_ns + SECOND)) {
		(void)fputs("bench_stops: no event is pending, but calls are in flight\n", stderr);
		exit(1);
	}
}

static void call(void)
{
	static const struct spoke_span no_args = { NULL, 0 };

	rig.attempts = 0;
	must("call", spoke_call(rig.echo, no_args, NULL, stops_called_back, NULL, NULL));
	while (rig.attempts == 0)
		step();
}

int main(void)
{
	if (!spokei_world_init(&rig.world, 1))
		must("world", SPOKE_ENOMEM);
	for (size_t i = 0; i < PROVIDERS; i++)
		open_server(i);
	open_client();
	while (spoke_consumer_ready(rig.consumer) < PROVIDERS)
		step();
	/* The first provider is called first until its failures eject it: the last call goes only
	 * to the second one. */
	for (unsigned i = 0; i < CALLS; i++) {
		rig.warm = i == 2 || i == CALLS - 1;
		call();
	}
	return 0;
}
