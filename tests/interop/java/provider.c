/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider that Java calls:
 *
 *     javaprovider <file>      listens at a free port of 127.0.0.1, and prints the port
 *
 * All settings, e.g. those of TLS, are in the file. demo.Tokened and demo.Signed have the methods
 *
 *     echo      answers with its argument
 *     push      calls "moved" of demo.Prices at the caller, and answers with the result
 *
 * SIGTERM drains it.
 */
#include "tests/support/echo_handler.h"

#include <spoke/config.h>
#include <spoke/signals.h>

#include <stdio.h>
#include <string.h>

#define DRAIN_NS UINT64_C(10000000000)

static void answer(void *arg, const struct spoke_result *result)
{
	struct spoke_request *request = arg;

	if (result->error)
		spoke_reply_error(request, result->error, "%s", spoke_strerror(result->error));
	else
		spoke_reply(request, result->value);
}

static void push(struct spoke_request *request, void *arg)
{
	struct spoke_method *const *moved = arg;
	int error = spoke_push_with(*moved, spoke_request_from(request), SPOKE_ARGS("tea"), answer,
				    request);

	if (error)
		spoke_reply_error(request, error, "%s", spoke_strerror(error));
}

static int serve(struct spoke_engine *engine, struct spoke_config *config,
		 struct spoke_provider **ret_provider)
{
	static struct spoke_method *moved;
	static const struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = echo_handler },
		{ .method = "push", .handle = push, .arg = &moved },
	};
	const struct spoke_service_options services[] = { { .name = "demo.Tokened" },
							  { .name = "demo.Signed" } };
	const struct spoke_method_options prices = { .service = "demo.Prices" };
	const struct spoke_provider_options options = { .config = config };
	int error = spoke_provider_new(engine, &options, ret_provider);

	for (size_t i = 0; !error && i < sizeof(services) / sizeof(services[0]); i++)
		error = spoke_provider_add(*ret_provider, &services[i], handlers, 2);
	if (!error)
		error = spoke_provider_method(*ret_provider, "moved", &prices, &moved);
	return error ? error : spoke_provider_listen(*ret_provider, "dubbo://127.0.0.1:0");
}

static int provide(struct spoke_engine *engine, struct spoke_config *config)
{
	struct spoke_provider *provider = NULL;
	char address[128];
	int error = serve(engine, config, &provider);

	if (!error)
		error = spoke_engine_drain_on_signals(engine, DRAIN_NS);
	if (error)
		return error;
	if (spoke_provider_address(provider, 0, address, sizeof(address)) > 0)
		printf("%s\n", strrchr(address, ':') + 1);
	(void)fflush(stdout);
	return SPOKE_OK;
}

static void complain(void *arg, const char *sentence)
{
	(void)arg;
	(void)fprintf(stderr, "%s\n", sentence);
}

int main(int argc, char **argv)
{
	struct spoke_engine *engine = NULL;
	struct spoke_config *config = NULL;
	int error = SPOKE_EINVAL;

	if (argc == 2)
		error = spoke_config_load(NULL, argv[1], complain, NULL, &config);
	if (!error)
		error = spoke_engine_new(NULL, &engine);
	if (!error)
		error = provide(engine, config);
	if (!error)
		error = spoke_engine_run(engine);
	if (error)
		(void)fprintf(stderr, "javaprovider: %s\n", spoke_strerror(error));
	spoke_engine_free(engine);
	spoke_config_free(config);
	return error != 0;
}
