/* SPDX-License-Identifier: Apache-2.0 */
/* Calls over plain connections and over TLS, in turn. */
#include "tests/bench/tls/bench.h"

#include <spoke/consumer.h>
#include <spoke/engine.h>
#include <spoke/host.h>
#include <spoke/tls.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A round of calls. */
struct round {
	double rate; /* calls per second */
	double cpu;  /* seconds of both sides for a call */
};

struct load {
	struct spoke_engine *engine;
	struct spoke_method *method;
	struct spoke_span args;
	double until;
	uint64_t calls;
	unsigned in_flight;
};

static void call(struct load *load);

static void call_done(void *arg, const struct spoke_result *result)
{
	struct load *load = arg;

	bench_must("call", result->error);
	load->calls++;
	load->in_flight--;
	if (bench_now() < load->until)
		call(load);
	else if (load->in_flight == 0)
		spoke_engine_stop(load->engine);
}

static void call(struct load *load)
{
	load->in_flight++;
	bench_must("call", spoke_call(load->method, load->args, NULL, call_done, load, NULL));
}

static struct spoke_method *method_at(struct spoke_engine *engine, enum port port)
{
	struct spoke_tls_options tls = { .ca = bench_path("ca.pem"), .peers = "dns:localhost" };
	char url[TEXT];
	struct spoke_consumer_options options = { .url = url,
						  .tls = port == PORT_PLAIN ? NULL : &tls,
						  .timeout_ns = UINT64_C(30000000000) };
	struct spoke_consumer *consumer;
	struct spoke_method *method;

	(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:%u/demo.EchoService",
		       bench_ports[port]);
	bench_must("consumer", spoke_consumer_new(engine, &options, &consumer));
	bench_must("method", spoke_consumer_method(consumer, "echo", NULL, &method));
	return method;
}

static struct round measure(struct load *load, unsigned depth)
{
	double cpu = bench_own_cpu() + bench_server_cpu();
	double begun = bench_now();

	load->calls = 0;
	load->until = begun + ROUND_MS / 1e3;
	for (unsigned i = 0; i < depth; i++)
		call(load);
	bench_must("run", spoke_engine_run(load->engine));
	return (struct round){
		.rate = (double)load->calls / (bench_now() - begun),
		.cpu = (bench_own_cpu() + bench_server_cpu() - cpu) / (double)load->calls,
	};
}

void bench_calls(const char *figure, size_t len, unsigned depth)
{
	struct spoke_builder builder;
	struct load loads[2];
	double rates[2][ROUNDS];
	double cpus[2][ROUNDS];
	double ratios[ROUNDS];
	double cpu_ratios[ROUNDS];
	char *text = malloc(len);

	if (text == NULL)
		bench_die("no memory");
	memset(text, 'x', len);
	spoke_builder_init(&builder, spoke_host_env(), NULL);
	spoke_pack_str(&builder, text, len);
	for (unsigned i = 0; i < 2; i++) {
		loads[i] = (struct load){ .engine = NULL };
		bench_must("engine", spoke_engine_new(NULL, &loads[i].engine));
		loads[i].method = method_at(loads[i].engine, i == 0 ? PORT_PLAIN : PORT_TLS);
		if (i == 0)
			bench_must("arguments", spoke_builder_finish(&builder, &loads[0].args));
		loads[i].args = loads[0].args;
		(void)measure(&loads[i], depth);
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < 2; i++) {
			struct round one = measure(&loads[i], depth);

			rates[i][round] = one.rate;
			cpus[i][round] = one.cpu * 1e6;
		}
		ratios[round] = rates[1][round] / rates[0][round];
		cpu_ratios[round] = cpus[0][round] / cpus[1][round];
	}
	printf("calls/s %s\t%.0f\t%.0f\t%.2f\n", figure, bench_median(rates[0], ROUNDS),
	       bench_median(rates[1], ROUNDS), bench_median(ratios, ROUNDS));
	printf("us of CPU a call %s\t%.2f\t%.2f\t%.2f\n", figure, bench_median(cpus[0], ROUNDS),
	       bench_median(cpus[1], ROUNDS), bench_median(cpu_ratios, ROUNDS));
	(void)fflush(stdout);
	spoke_engine_free(loads[0].engine);
	spoke_engine_free(loads[1].engine);
	spoke_builder_fini(&builder);
	free(text);
}
