/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider of the benchmark: it echoes, holds calls that must wait, and refuses calls that
 * become tickets.
 */
#include "load.h"

#include "tests/support/echo_handler.h"

#include <spoke/engine.h>
#include <spoke/provider.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS_MORE 4096u    /* more than the held ones */
#define CONNECTIONS_MAX 20000u /* of one address */

void must(const char *what, int error)
{
	if (error)
		host_die("spoke: %s: %s", what, spoke_strerror(error));
}

static void keep(struct spoke_request *request, void *arg)
{
	(void)request;
	(void)arg;
}

/* Listens and returns the port; 0 selects a free one. */
static uint16_t serve_at(struct spoke_engine *engine, const struct rpc_plan *plan, uint32_t number,
			 uint16_t port)
{
	static const struct spoke_service_options service = { .name = SERVICE };
	static const struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = echo_handler },
		{ .method = "keep", .handle = keep },
		{ .method = "full", .handle = keep, .executes = 1 },
	};
	const struct spoke_provider_options options = {
		.connections_max = CONNECTIONS_MAX,
		.connections_per_peer_max = CONNECTIONS_MAX,
		.requests_max = plan->kept + REQUESTS_MORE,
		.requests_per_connection_max = plan->kept + REQUESTS_MORE,
	};
	struct spoke_provider *provider;
	char text[64];
	const char *found;

	(void)snprintf(text, sizeof(text), "dubbo://" ENDPOINT_HOST ":%u", number + 1, port);
	must("provider", spoke_provider_new(engine, &options, &provider));
	must("service", spoke_provider_add(provider, &service, handlers,
					   sizeof(handlers) / sizeof(handlers[0])));
	must(text, spoke_provider_listen(provider, text));
	if (spoke_provider_address(provider, 0, text, sizeof(text)) == 0)
		host_die("spoke: listens nowhere");
	found = strrchr(text, ':');
	return found == NULL ? 0 : (uint16_t)strtoul(found + 1, NULL, 10);
}

uint16_t load_serve(struct spoke_engine *engine, const struct rpc_plan *plan)
{
	uint16_t port = serve_at(engine, plan, 0, 0);

	for (uint32_t i = 1; i < plan->endpoints; i++)
		(void)serve_at(engine, plan, i, port);
	return port;
}
