/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shop that asks its stock for apples and, in vain, for nothing, and sends a span of each side of
 * each call to a collector:
 *
 *     traced [<port of the collector> [<calls>]]
 */
#include "otlp.h"

#include <spoke/spoke.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	struct spoke_program *program;
	struct spoke_method *take;
	unsigned calls; /* to begin */
	unsigned open;
} shop;

static void take(struct spoke_request *request, void *arg)
{
	char name[64];

	(void)arg;
	if (SPOKE_READ_REQUEST(request, SPOKE_TEXT(name)))
		return;
	if (strcmp(name, "apple") == 0)
		SPOKE_REPLY(request, name);
	else
		spoke_reply_error(request, 404, "there is \"%s\" in stock", name);
}

static void taken(void *arg, const struct spoke_result *result)
{
	(void)arg;
	(void)result;
	shop.open--;
	if (shop.calls == 0 && shop.open == 0)
		spoke_engine_stop(spoke_program_engine(shop.program));
}

static void buy(void *arg)
{
	const char *name = shop.calls % 2 ? "apple" : "nothing";

	(void)arg;
	if (shop.calls == 0 || spoke_call_with(shop.take, SPOKE_ARGS(name), taken, NULL))
		return;
	shop.calls--;
	shop.open++;
}

/* Serves and calls demo.Stock in one engine, with the same filter on both sides. */
static int open_shop(const struct spoke_filter *filter)
{
	const struct spoke_service_options stock = { .name = "demo.Stock" };
	const struct spoke_provider_options serving = { .filters = &filter, .filter_count = 1 };
	struct spoke_handler handler = { .method = "take", .handle = take };
	struct spoke_engine *engine = spoke_program_engine(shop.program);
	struct spoke_provider *provider;
	char address[128];
	char url[160];
	struct spoke_consumer_options calling = { .url = url,
						  .filters = &filter,
						  .filter_count = 1 };

	if (engine == NULL || spoke_provider_new(engine, &serving, &provider) ||
	    spoke_provider_add(provider, &stock, &handler, 1) ||
	    spoke_provider_listen(provider, "dubbo://127.0.0.1:0"))
		return -1;
	(void)spoke_provider_address(provider, 0, address, sizeof(address));
	(void)snprintf(url, sizeof(url), "dubbo://%s/demo.Stock", address);
	shop.take = spoke_program_method(shop.program,
					 spoke_program_consumer(shop.program, &calling), "take",
					 NULL);
	spoke_program_every(shop.program, 10000000, buy, NULL);
	return shop.take ? 0 : -1;
}

int main(int argc, char **argv)
{
	const struct otlp_options to = { .service = "shop", .port = argc > 1 ? argv[1] : NULL };
	struct otlp *otlp = otlp_new(&to);
	const struct spoke_tracer_options with = { .ended = otlp_span, .arg = otlp };
	struct spoke_tracer *tracer;
	struct otlp_counts counts;
	int status = 1;

	shop.calls = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 10;
	shop.program = spoke_program_new(NULL);
	if (otlp == NULL || spoke_tracer_new(NULL, &with, &tracer))
		return 1;
	if (open_shop(spoke_tracer_filter(tracer)) == 0)
		status = spoke_program_run(shop.program);
	spoke_tracer_free(tracer);
	otlp_free(otlp, &counts);
	(void)printf("spans: %lu sent, %lu dropped, %lu failed%s%s\n", counts.sent, counts.dropped,
		     counts.failed, *counts.why ? ": " : "", counts.why);
	return status;
}
