/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider on several engines, each on a thread of its own, that share one address:
 * demo.EchoService answers "echo" with its argument.
 *
 *     many_engines [url [engines]]          default: dubbo://127.0.0.1:20880?shared=true 2
 *
 * SIGTERM and SIGINT drain all engines: they answer running requests, then the program exits.
 */
#include <spoke/provider.h>
#include <spoke/signals.h>
#include <spoke/stats.h>

#include <stdio.h>
#include <stdlib.h>

#define ENGINES_MAX 64
#define DRAIN_NS UINT64_C(10000000000)

static struct spoke_engine *engines[ENGINES_MAX];
static struct spoke_provider *providers[ENGINES_MAX];

static void echo(struct spoke_request *request, void *arg)
{
	struct spoke_value text;

	(void)arg;
	if (SPOKE_READ_REQUEST(request, &text))
		return;
	spoke_reply(request, text);
}

/* The first provider listens, the others join it. Every engine drains on a signal. */
static int serve(const char *url, int i)
{
	struct spoke_service_options service = { .name = "demo.EchoService" };
	struct spoke_handler handler = { .method = "echo", .handle = echo };
	int error = spoke_engine_new(NULL, &engines[i]);

	if (!error)
		error = spoke_provider_new(engines[i], NULL, &providers[i]);
	if (!error)
		error = spoke_provider_add(providers[i], &service, &handler, 1);
	if (!error && i == 0)
		error = spoke_provider_listen(providers[0], url);
	if (!error && i > 0)
		error = spoke_provider_join(providers[i], providers[0]);
	if (!error)
		error = spoke_engine_drain_on_signals(engines[i], DRAIN_NS);
	if (error && engines[i] && *spoke_engine_why(engines[i]))
		(void)fprintf(stderr, "many_engines: %s\n", spoke_engine_why(engines[i]));
	return error;
}

/* The first engine runs here, the others on threads of their own, until all are drained. */
static int run(int count)
{
	int error = 0;
	int first;

	for (int i = 1; i < count && !error; i++)
		error = spoke_engine_start(engines[i]);
	if (error)
		return error;
	first = spoke_engine_run(engines[0]);
	for (int i = 1; i < count; i++) {
		int joined = spoke_engine_join(engines[i]);

		error = error ? error : joined;
	}
	return first ? first : error;
}

int main(int argc, char **argv)
{
	const char *url = argc > 1 ? argv[1] : "dubbo://127.0.0.1:20880?shared=true";
	int count = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 2;
	char address[128];
	int error = count < 1 || count > ENGINES_MAX ? SPOKE_ERANGE : 0;

	for (int i = 0; i < count && !error; i++)
		error = serve(url, i);
	if (!error && spoke_provider_address(providers[0], 0, address, sizeof(address))) {
		printf("demo.EchoService listens at %s\n", address);
		(void)fflush(stdout);
		error = run(count);
	}
	if (error)
		(void)fprintf(stderr, "many_engines: %s\n", spoke_strerror(error));
	for (int i = 0; i < ENGINES_MAX; i++)
		spoke_engine_free(engines[i]);
	return error != 0;
}
