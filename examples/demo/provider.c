/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider of demo.sh: demo.EchoService has "echo", which answers with its argument, and
 * "slow", which does so a second later.
 *
 *     demo_provider [--heartbeat-ms <n>] [--registry <url>] <url>...
 *
 * With an interval for heartbeats it also says what becomes of its connections. With a registry
 * consumers find it there.
 *
 * SIGTERM and SIGINT end it when the calls that were begun are answered.
 */
#include "examples/demo/story.h"

#include <spoke/provider.h>
#include <spoke/signals.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOW_NS UINT64_C(1000000000)
#define DRAIN_NS UINT64_C(10000000000)

static struct spoke_engine *engine;
static struct story story;

static void echo(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value text;

	(void)arg;
	if (spoke_cursor_next(&args, &text))
		spoke_reply(request, text);
	else
		spoke_reply_error(request, 1, "echo wants an argument");
}

struct later {
	struct spoke_alarm alarm;
	struct spoke_request *request;
};

static void answer(struct spoke_alarm *alarm)
{
	struct later *later = spoke_container_of(alarm, struct later, alarm);

	echo(later->request, NULL);
	free(later);
}

/* Other requests are served meanwhile. */
static void slow(struct spoke_request *request, void *arg)
{
	struct later *later = calloc(1, sizeof(*later));
	int error = later ? spoke_request_keep(request) : SPOKE_ENOMEM;

	(void)arg;
	if (!error) {
		later->request = request;
		error = spoke_alarm_after(engine, &later->alarm, SLOW_NS, answer);
	}
	if (error) {
		free(later);
		spoke_reply_error(request, error, spoke_strerror(error));
	}
}

/* Returns how many arguments there are before the URLs. */
static int read_options(int argc, char **argv, struct spoke_provider_options *options)
{
	int first = 1;

	for (; first + 1 < argc && argv[first][0] == '-'; first += 2) {
		if (strcmp(argv[first], "--registry") == 0)
			options->registry = argv[first + 1];
		if (strcmp(argv[first], "--heartbeat-ms") != 0)
			continue;
		options->heartbeat_ns = strtoull(argv[first + 1], NULL, 10) * UINT64_C(1000000);
		options->changed = story_changed;
		options->changed_arg = &story;
	}
	return first;
}

int main(int argc, char **argv)
{
	struct spoke_provider_options options = { 0 };
	struct spoke_service_options service = { .name = "demo.EchoService" };
	struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = echo },
		{ .method = "slow", .handle = slow },
	};
	struct spoke_provider *provider;
	char address[160];
	int first = read_options(argc, argv, &options);
	int error = spoke_engine_new(NULL, &engine);

	if (!error) {
		story_begin(&story, "provider", engine);
		error = spoke_provider_new(engine, &options, &provider);
	}
	if (!error)
		error = spoke_provider_add(provider, &service, handlers, 2);
	for (int i = first; i < argc && !error; i++)
		error = spoke_provider_listen(provider, argv[i]);
	for (size_t i = 0; !error && spoke_provider_address(provider, i, address, sizeof(address));
	     i++)
		story_say(&story, "demo.EchoService listens at %s", address);
	(void)fflush(stdout);
	if (!error)
		error = spoke_engine_drain_on_signals(engine, DRAIN_NS);
	if (!error)
		error = spoke_engine_run(engine);
	if (error)
		(void)fprintf(stderr, "demo_provider: %s\n", spoke_strerror(error));
	spoke_engine_free(engine);
	return error != 0;
}
