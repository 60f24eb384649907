/* SPDX-License-Identifier: Apache-2.0 */
/* Measures calls that wait for an answer: their memory, and their effect on other calls. */
#include "memory.h"

#include "cluster/call/call.h"
#include "core/memory/slab.h"
#include "transport/conn/conn.h"

#include "tests/support/echo_handler.h"

#include <spoke/consumer.h>
#include <spoke/host.h>
#include <spoke/provider.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS 5
#define OUTSTANDING 64u
#define FILL_AT_ONCE 1000u
#define LONG_NS (3600 * SECOND)

/* --- sizes of structures and tables */

void measure_sizes(void)
{
	struct spokei_slab slab;
	double cell;

	spokei_slab_init(&slab, spoke_host_env(), sizeof(struct spokei_call), 1);
	cell = (double)slab.cell_size;
	report("sizeof_conn", sizeof(struct spokei_conn), "bytes", 0);
	report("sizeof_conn_intake", sizeof(struct spokei_intake), "bytes", 0);
	report("sizeof_conn_outlet", sizeof(struct spokei_outlet), "bytes", 0);
	report("sizeof_conn_pendings", sizeof(struct spokei_pendings), "bytes", 0);
	report("sizeof_conn_stream", sizeof(struct spokei_stream), "bytes", 0);
	report("sizeof_conn_peer", sizeof(struct spoke_address), "bytes", 0);
	report("sizeof_call", sizeof(struct spokei_call), "bytes", 0);
	report("pending_call_in_slab", cell, "bytes", 0);
	/* At least a quarter of the ring's cells are in use, or the ring would not have grown.
	 * While it grows, the cells of the next ring that are in memory count as well: a third. */
	report("pending_call_at_most", cell + 4 * sizeof(void *), "bytes", 256);
}

/* --- the peers */

/* Accepts one connection and reads what arrives. */
static void play_silent(void *arg, int in, int out)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	static char bytes[65536];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint16_t port;

	(void)arg;
	(void)in;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 1) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		die("silent peer: errno %d", errno);
	port = ntohs(at.sin_port);
	write_all(out, &port, sizeof(port));
	fd = accept(fd, NULL, NULL);
	while (fd >= 0 && read(fd, bytes, sizeof(bytes)) > 0)
		;
}

static void play_echo(void *arg, int in, int out)
{
	static const struct spoke_service_options service = { .name = SERVICE };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo_handler };
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	char text[128];
	const char *digits;
	uint16_t port;

	(void)arg;
	(void)in;
	must("engine", spoke_engine_new(NULL, &engine));
	must("provider", spoke_provider_new(engine, NULL, &provider));
	must("service", spoke_provider_add(provider, &service, &handler, 1));
	must("listen", spoke_provider_listen(provider, "dubbo://127.0.0.1:0"));
	(void)spoke_provider_address(provider, 0, text, sizeof(text));
	digits = strrchr(text, ':');
	port = (uint16_t)strtoul(digits ? digits + 1 : "", NULL, 10);
	write_all(out, &port, sizeof(port));
	must("run", spoke_engine_run(engine));
}

/* --- the caller */

struct caller {
	struct spoke_engine *engine;
	struct helper silent;
	struct helper echoing;
	struct spoke_consumer *waiting_consumer;
	struct spoke_method *waiting;
	struct spoke_method *measured;
	struct spoke_span args;
	struct spoke_call *calls; /* the waiting calls */
	unsigned count;
	unsigned left; /* calls left in this measurement */
	unsigned ended;
};

static void connect_to(struct caller *caller, const struct helper *helper, uint32_t pending_max,
		       uint64_t timeout_ns, struct spoke_consumer **ret_consumer,
		       struct spoke_method **ret_method)
{
	char url[80];
	struct spoke_consumer_options options = { .serialization = SPOKE_SERIALIZATION_MSGPACK,
						  .url = url,
						  .pending_max = pending_max };
	const struct spoke_method_options method = { .timeout_ns = timeout_ns };
	uint16_t port;

	helper_hear(helper, NULL, &port, sizeof(port));
	(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:%u/" SERVICE, port);
	must("consumer", spoke_consumer_new(caller->engine, &options, ret_consumer));
	must("method", spoke_consumer_method(*ret_consumer, "echo", &method, ret_method));
	while (spoke_consumer_ready(*ret_consumer) == 0)
		must("turn", spoke_engine_turn(caller->engine, true));
}

static void fill(struct caller *caller, unsigned count)
{
	while (caller->count < count) {
		for (unsigned i = 0; i < FILL_AT_ONCE && caller->count < count; i++) {
			int error = spoke_call(caller->waiting, caller->args, NULL, NULL, NULL,
					       &caller->calls[caller->count]);

			if (error == SPOKE_ELIMIT)
				break;
			must("waiting call", error);
			caller->count++;
		}
		must("turn", spoke_engine_turn(caller->engine, false));
	}
	for (unsigned i = 0; i < 100; i++)
		must("turn", spoke_engine_turn(caller->engine, false));
}

static void cancel_down_to(struct caller *caller, unsigned count)
{
	while (caller->count > count)
		if (!spoke_call_cancel(caller->waiting_consumer, caller->calls[--caller->count]))
			die("a waiting call has ended");
	for (unsigned i = 0; i < 100; i++)
		must("turn", spoke_engine_turn(caller->engine, false));
}

static void call(struct caller *caller);

static void call_done(void *arg, const struct spoke_result *result)
{
	struct caller *caller = arg;

	must("measured call", result->error);
	caller->ended++;
	if (caller->left > 0)
		call(caller);
}

static void call(struct caller *caller)
{
	caller->left--;
	must("call", spoke_call(caller->measured, caller->args, NULL, call_done, caller, NULL));
}

/* Returns the CPU time of this process per call, over `count` calls. */
static double measure(struct caller *caller, unsigned calls)
{
	uint64_t begun_ns;

	caller->left = calls;
	caller->ended = 0;
	begun_ns = cpu_ns();
	for (unsigned i = 0; i < OUTSTANDING; i++)
		call(caller);
	while (caller->ended < calls)
		must("turn", spoke_engine_turn(caller->engine, true));
	return (double)(cpu_ns() - begun_ns) / calls;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a;
	double right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare);
	return values[ROUNDS / 2];
}

static void measure_cost(struct caller *caller, unsigned few, unsigned many, unsigned calls)
{
	double with_few[ROUNDS];
	double with_many[ROUNDS];
	double ratios[ROUNDS];
	struct usage before;
	struct usage after;

	fill(caller, few);
	(void)measure(caller, calls);
	before = usage_now();
	for (unsigned i = 0; i < ROUNDS; i++) {
		with_few[i] = measure(caller, calls);
		fill(caller, many);
		after = usage_now();
		if (i == 0) {
			report("pending_call_malloc",
			       (double)(after.handed_out - before.handed_out) / (many - few),
			       "bytes", 256);
			report("pending_call_rss",
			       (double)(after.resident - before.resident) / (many - few), "bytes",
			       0);
		}
		with_many[i] = measure(caller, calls);
		ratios[i] = with_many[i] / with_few[i];
		cancel_down_to(caller, few);
	}
	report("call_cost_with_few_pending", median(with_few), "ns", 0);
	report("call_cost_with_many_pending", median(with_many), "ns", 0);
	report("call_cost_many_to_few", median(ratios), "ratio", 1.5);
}

void measure_pending(unsigned few, unsigned many, unsigned calls)
{
	struct caller caller = { .calls = calloc(many, sizeof(struct spoke_call)) };
	struct spoke_consumer *measured_consumer;
	struct spoke_builder builder;
	unsigned char memory[64];

	if (caller.calls == NULL)
		die("no memory");
	helper_start(&caller.silent, play_silent, NULL);
	helper_start(&caller.echoing, play_echo, NULL);
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, "hello");
	must("arguments", spoke_builder_finish(&builder, &caller.args));
	must("engine", spoke_engine_new(NULL, &caller.engine));
	connect_to(&caller, &caller.silent, many + 1, LONG_NS, &caller.waiting_consumer,
		   &caller.waiting);
	connect_to(&caller, &caller.echoing, 0, 10 * SECOND, &measured_consumer, &caller.measured);
	measure_cost(&caller, few, many, calls);
	helper_end(&caller.silent);
	helper_end(&caller.echoing);
	spoke_engine_free(caller.engine);
	free(caller.calls);
}
