/* SPDX-License-Identifier: Apache-2.0 */
/* The provider's process: the engines of the plan, which listen as a group. */
#include "engines.h"

#include "tests/bench/memory/memory.h"
#include "tests/support/echo_handler.h"

#include <spoke/engine.h>
#include <spoke/provider.h>

#include <stdio.h>
#include <string.h>

static struct spoke_provider *make(struct spoke_engine **engine)
{
	static const struct spoke_service_options service = { .name = SERVICE };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo_handler };
	struct spoke_provider *provider;

	must("engine", spoke_engine_new(NULL, engine));
	must("provider", spoke_provider_new(*engine, NULL, &provider));
	must("service", spoke_provider_add(provider, &service, &handler, 1));
	return provider;
}

void play_provider(void *arg, int in, int out)
{
	const struct plan *plan = ((const struct part *)arg)->plan;
	struct spoke_provider *providers[ENGINES_MAX] = { NULL };
	struct spoke_engine *engines[ENGINES_MAX];
	char place[PLACE_SIZE] = "";
	char never;

	(void)snprintf(place, sizeof(place), "%s%s?shared=%s",
		       plan->is_unix ? "unix:" : "dubbo://127.0.0.1:0",
		       plan->is_unix ? plan->path : "", plan->takes_turns ? "turns" : "true");
	for (unsigned i = 0; i < plan->engines; i++) {
		providers[i] = make(&engines[i]);
		if (i == 0)
			must("listen", spoke_provider_listen(providers[0], place));
		else
			must("join", spoke_provider_join(providers[i], providers[0]));
	}
	memset(place, 0, sizeof(place));
	if (spoke_provider_address(providers[0], 0, place, sizeof(place)) == 0)
		die("the provider does not listen");
	for (unsigned i = 0; i < plan->engines; i++)
		must("start", spoke_engine_start(engines[i]));
	write_all(out, place, sizeof(place));
	read_all(in, &never, 1);
}
