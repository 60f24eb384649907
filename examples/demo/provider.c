/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider of the demo: "echo" answers with its argument, the name of the caller. "write" does
 * the same for workers that hold a lease: a fence refuses those that have lost it. "order" holds
 * its answers until SIGUSR2.
 *
 *     demo_provider <name> <service> <registry> <url to listen on> <heartbeat in ns> <dedupe in ns>
 *                   [<page>]
 *
 * Requests are remembered for the time of `dedupe`; 0: they are not. <page> is the address of its
 * admin page. SIGUSR1 has the provider step aside, and the next one come back. SIGTERM drains it.
 */
#include "examples/demo/page.h"
#include "examples/demo/secure.h"

#include <spoke/fence.h>
#include <spoke/provider.h>
#include <spoke/signals.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define DRAIN_NS UINT64_C(10000000000)
#define PEERS 64
#define NAME 64
#define HELD_MAX 8u

static struct report report;
static uint64_t known[PEERS]; /* handles of connections with known callers */
static unsigned known_next;
static uint64_t fence_seen; /* of the last write */
static struct spoke_provider *provider;
static struct spoke_signal stepper;
static bool aside;
static struct spoke_signal answerer;
static struct spoke_request *held[HELD_MAX]; /* orders that wait for SIGUSR2 */
static unsigned held_count;
static bool holds = true;
static uint64_t runs;    /* of orders */
static uint64_t answers; /* ... by their handler */

/* Reports the name of the caller to the driver, once per connection. */
static void introduce(struct spoke_request *request, struct spoke_value name)
{
	uint64_t handle = spoke_request_from(request).handle;
	struct spoke_span text;
	char address[NAME];
	char caller[NAME];

	for (unsigned i = 0; i < PEERS; i++)
		if (known[i] == handle)
			return;
	known[known_next++ % PEERS] = handle;
	if (spoke_value_str(name, &text) || text.len >= NAME ||
	    spoke_request_peer(request, address, sizeof(address)) == 0)
		return;
	(void)snprintf(caller, sizeof(caller), "%.*s", (int)text.len, (const char *)text.data);
	message_write_peer(address, caller);
}

static void echo(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value name;

	(void)arg;
	if (!spoke_cursor_next(&args, &name)) {
		spoke_reply_error(request, 1, "echo: argument missing");
		return;
	}
	introduce(request, name);
	spoke_reply(request, name);
}

static void write_entry(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value name;
	struct spoke_span writer;
	struct spoke_span lease;
	uint64_t fence;

	(void)arg;
	if (!spoke_cursor_next(&args, &name) || spoke_value_str(name, &writer)) {
		spoke_reply_error(request, 1, "write: argument missing");
		return;
	}
	introduce(request, name);
	if (spoke_request_fence(request, &lease, &fence) && fence != fence_seen) {
		fence_seen = fence;
		report_event(&report, SPOKE_EVENT_OF_NONE, TAG_TOLD, 0, NULL,
			     "writes of %.*s arrive, fence number %" PRIu64, (int)writer.len,
			     (const char *)writer.data, fence);
	}
	spoke_reply(request, name);
}

static void count(uint64_t *counts)
{
	counts[COUNT_RUNS] = runs;
	counts[COUNT_ANSWERS] = answers +
				spoke_stat_get(report.engine, SPOKE_STAT_REPEATS_ANSWERED);
}

static void answer(struct spoke_signal *signal)
{
	(void)signal;
	holds = false;
	for (; held_count > 0; answers++)
		SPOKE_REPLY(held[--held_count], "sold");
}

static void order(struct spoke_request *request, void *arg)
{
	(void)arg;
	runs++;
	if (holds && held_count < HELD_MAX) {
		held[held_count++] = request;
		report_event(&report, SPOKE_EVENT_OF_NONE, TAG_ASKED, 0, NULL,
			     "runs an order, and does not answer yet");
		return;
	}
	answers++;
	SPOKE_REPLY(request, "sold");
}

static void step(struct spoke_signal *signal)
{
	int error = aside ? spoke_provider_online(provider) : spoke_provider_offline(provider);

	(void)signal;
	if (error) {
		(void)fprintf(stderr, "demo_provider: %s\n", spoke_strerror(error));
		return;
	}
	aside = !aside;
	report_event(&report, SPOKE_EVENT_OF_NONE, TAG_TOLD, 0, NULL, "%s",
		     aside ? "steps aside: it is not listed any more, but answers requests"
			   : "comes back: it is listed again");
}

/* New connections are reported by the consumer only. */
static void changed(void *arg, const struct spoke_link_event *event)
{
	if (event->change != SPOKE_LINK_CONNECTED)
		report_link(arg, event);
}

static int serve(struct spoke_engine *engine, struct spoke_fence *fence, char **argv)
{
	const struct spoke_filter *filters[] = { spoke_fence_filter(fence) };
	const struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = echo },
		{ .method = "write", .handle = write_entry },
		{ .method = "order", .handle = order },
	};
	struct spoke_provider_options options = {
		.registry = argv[3],
		.application = argv[1],
		.tls = secure_options(true),
		.warmup_ns = SPOKE_OFF,
		.heartbeat_ns = strtoull(argv[5], NULL, 10),
		.dedupe_ns = strtoull(argv[6], NULL, 10),
		.changed = changed,
		.changed_arg = &report,
		.filters = filters,
		.filter_count = 1,
	};
	struct spoke_service_options service = { .name = argv[2] };
	char address[NAME];
	int error;

	if (argv[7]) {
		options.admin = page_open(&report, argv[1], argv[7], true);
		if (options.admin == NULL)
			return SPOKE_ESYSTEM;
	}
	error = spoke_provider_new(engine, &options, &provider);

	if (!error)
		error = spoke_provider_add(provider, &service, handlers, 3);
	if (!error)
		error = spoke_provider_listen(provider, argv[4]);
	if (!error)
		error = spoke_engine_drain_on_signals(engine, DRAIN_NS);
	if (!error)
		error = spoke_signal_watch(engine, &stepper, SIGUSR1, step);
	if (!error)
		error = spoke_signal_watch(engine, &answerer, SIGUSR2, answer);
	if (error) {
		(void)fprintf(stderr, "%s: %s\n", argv[1], spoke_engine_why(engine));
		return error;
	}
	(void)spoke_provider_address(provider, 0, address, sizeof(address));
	report_event(&report, SPOKE_EVENT_OF_NONE, TAG_LISTENS, 0, address, "serves %s at %s",
		     argv[2], address);
	return spoke_engine_run(engine);
}

int main(int argc, char **argv)
{
	struct spoke_engine *engine = NULL;
	struct spoke_fence *fence = NULL;
	int error;

	if (argc != 7 && argc != 8) {
		(void)fprintf(stderr, "demo_provider: must be started by demo_driver\n");
		return 2;
	}
	error = spoke_engine_new(NULL, &engine);
	if (!error)
		error = report_begin(&report, engine, count);
	report.provides = true;
	if (!error)
		error = spoke_fence_new(NULL, NULL, &fence);
	if (!error)
		error = serve(engine, fence, argv);
	if (error)
		(void)fprintf(stderr, "%s: %s\n", argv[1], spoke_strerror(error));
	else
		report_counts(&report);
	spoke_engine_free(engine);
	spoke_fence_free(fence);
	return error != 0;
}
