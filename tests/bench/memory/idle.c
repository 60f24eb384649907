/* SPDX-License-Identifier: Apache-2.0 */
/* Measures a provider with many idle connections. */
#include "memory.h"

#include "tests/support/echo_handler.h"

#include <spoke/provider.h>
#include <spoke/stats.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CROWDS 2u
#define HOSTS_APART 32u

#define KIB 1024.0

struct idle {
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct helper helpers[CROWDS];
	struct quota crowds[CROWDS];
	unsigned conns;
};

static uint16_t serve(struct idle *idle)
{
	static const struct spoke_service_options service = { .name = SERVICE };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo_handler };
	const struct spoke_provider_options options = {
		.connections_max = idle->conns + 1,
		.connections_per_peer_max = idle->conns + 1,
	};
	char text[128];
	const char *port;

	must("engine", spoke_engine_new(NULL, &idle->engine));
	must("provider", spoke_provider_new(idle->engine, &options, &idle->provider));
	must("service", spoke_provider_add(idle->provider, &service, &handler, 1));
	must("listen", spoke_provider_listen(idle->provider, "dubbo://127.0.0.1:0"));
	if (spoke_provider_address(idle->provider, 0, text, sizeof(text)) == 0)
		die("the provider does not listen");
	port = strrchr(text, ':');
	return (uint16_t)strtoul(port ? port + 1 : "", NULL, 10);
}

/* Sends the same command to all child processes and waits for them. */
static void all_do(struct idle *idle, char what)
{
	for (unsigned i = 0; i < CROWDS; i++)
		helper_tell(&idle->helpers[i], &what, 1);
	for (unsigned i = 0; i < CROWDS; i++)
		helper_hear(&idle->helpers[i], idle->engine, &what, 1);
}

/* Runs turns until no work is left. */
static void settle(struct idle *idle)
{
	for (unsigned i = 0; i < 100; i++)
		must("turn", spoke_engine_turn(idle->engine, false));
}

static void report_usage(const struct idle *idle, struct usage before, const char *when,
			 double target)
{
	struct usage after = usage_now();
	double conns = idle->conns;
	char figure[64];

	(void)snprintf(figure, sizeof(figure), "idle_connection_rss_%s", when);
	report(figure, (double)(after.resident - before.resident) / conns / KIB, "KiB", target);
	(void)snprintf(figure, sizeof(figure), "idle_connection_malloc_%s", when);
	report(figure, (double)(after.handed_out - before.handed_out) / conns / KIB, "KiB", target);
}

static void measure_accept(struct idle *idle)
{
	uint64_t begun_ns = now_ns();

	all_do(idle, 'c');
	while (spoke_provider_connections(idle->provider) < idle->conns) {
		if (now_ns() - begun_ns > 60 * SECOND)
			die("only %zu connections after 60 s",
			    spoke_provider_connections(idle->provider));
		must("turn", spoke_engine_turn(idle->engine, false));
	}
	report("accept_10000", (double)(now_ns() - begun_ns) / (double)SECOND * 10000 / idle->conns,
	       "s", 2);
}

void measure_idle(unsigned conns)
{
	struct idle idle = { .conns = conns };
	struct usage before;
	uint16_t port;

	for (unsigned i = 0; i < CROWDS; i++) {
		idle.crowds[i] = (struct quota){ conns / CROWDS, 2 + i * HOSTS_APART };
		helper_start(&idle.helpers[i], crowd_play, &idle.crowds[i]);
	}
	port = serve(&idle);
	for (unsigned i = 0; i < CROWDS; i++)
		helper_tell(&idle.helpers[i], &port, sizeof(port));
	settle(&idle);
	(void)malloc_trim(0);
	before = usage_now();
	measure_accept(&idle);
	report_usage(&idle, before, "mute", 4);
	all_do(&idle, 's');
	settle(&idle);
	report_usage(&idle, before, "after_1_call", 4);
	all_do(&idle, 's');
	settle(&idle);
	report_usage(&idle, before, "after_2_calls", 4);
	if (spoke_stat_get(idle.engine, SPOKE_STAT_REQUESTS_OK) != 2 * (uint64_t)conns ||
	    spoke_provider_connections(idle.provider) != conns)
		die("not every connection was served");
	for (unsigned i = 0; i < CROWDS; i++)
		helper_end(&idle.helpers[i]);
	spoke_engine_free(idle.engine);
}
