/* SPDX-License-Identifier: Apache-2.0 */
/* A gateway of spoke with one engine, as a program would write it. */
#include "comet.h"

#include <spoke/comet.h>
#include <spoke/provider.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define RATE_MAX 1000000u /* connections a second: a storm is not spread */

/* Returns the port at the end of an address. */
static uint16_t port_of(const char *address)
{
	const char *colon = strrchr(address, ':');

	return (uint16_t)strtoul(colon ? colon + 1 : "", NULL, 10);
}

void gateway_play(void *arg, int in, int out)
{
	const struct gateway_plan *plan = arg;
	const struct in_addr host = { plan->host };
	struct spoke_comet_options options = {
		.query_user = true,
		.keepalive_ns = plan->keepalive_ns,
		.life_ns = 24 * 3600 * SECOND, /* longer than any measurement */
		.accept_rate = RATE_MAX,
		.connections_max = plan->conns_max,
		.connections_per_peer_max = plan->conns_max,
	};
	struct place place = { .host = plan->host };
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct spoke_comet *comet;
	char ip[INET_ADDRSTRLEN];
	char text[128];

	(void)prctl(PR_SET_NAME, "comet-gateway");
	(void)in;
	(void)inet_ntop(AF_INET, &host, ip, sizeof(ip));
	(void)snprintf(text, sizeof(text), "%s:0", ip);
	options.listen = text;
	must("engine", spoke_engine_new(NULL, &engine));
	must("comet", spoke_comet_new(engine, &options, &comet));
	must("provider", spoke_provider_new(engine, NULL, &provider));
	must("service", spoke_comet_serve(comet, provider));
	(void)snprintf(text, sizeof(text), "dubbo://%s:0", ip);
	must("listen", spoke_provider_listen(provider, text));
	if (spoke_comet_address(comet, 0, text, sizeof(text)) == 0)
		die("the gateway does not listen");
	place.http = port_of(text);
	if (spoke_provider_address(provider, 0, text, sizeof(text)) == 0)
		die("the provider does not listen");
	place.rpc = port_of(text);
	write_all(out, &place, sizeof(place));
	must("run", spoke_engine_run(engine));
}
