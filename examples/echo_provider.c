/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider: demo.EchoService answers "echo" with its argument.
 *
 *     echo_provider [url]          default: dubbo://127.0.0.1:20880
 *
 * SIGTERM and SIGINT drain it: it answers running requests, then exits. The units
 * echo-provider.service and echo-provider.socket run it with systemd.
 */
#include <spoke/notify.h>
#include <spoke/provider.h>
#include <spoke/signals.h>

#include <stdio.h>

#define DRAIN_NS UINT64_C(10000000000)

static void echo(struct spoke_request *request, void *arg)
{
	struct spoke_value text;

	(void)arg;
	if (SPOKE_READ_REQUEST(request, &text))
		return;
	spoke_reply(request, text);
}

static int serve(struct spoke_engine *engine, const char *url, struct spoke_provider **provider)
{
	struct spoke_service_options service = { .name = "demo.EchoService" };
	struct spoke_handler handler = { .method = "echo", .handle = echo };
	int error = spoke_provider_new(engine, NULL, provider);

	if (!error)
		error = spoke_provider_add(*provider, &service, &handler, 1);
	return error ? error : spoke_provider_listen(*provider, url);
}

int main(int argc, char **argv)
{
	struct spoke_engine *engine = NULL;
	struct spoke_provider *provider;
	char address[128];
	int error = spoke_engine_new(NULL, &engine);

	if (!error)
		error = serve(engine, argc > 1 ? argv[1] : "dubbo://127.0.0.1:20880", &provider);
	if (!error)
		error = spoke_engine_drain_on_signals(engine, DRAIN_NS);
	if (!error && spoke_provider_address(provider, 0, address, sizeof(address))) {
		printf("demo.EchoService listens at %s\n", address);
		(void)fflush(stdout);
		error = spoke_engine_notify(engine, address);
	}
	if (!error)
		error = spoke_engine_run(engine);
	if (error)
		(void)fprintf(stderr, "echo_provider: %s\n", spoke_strerror(error));
	spoke_engine_free(engine);
	return error != 0;
}
