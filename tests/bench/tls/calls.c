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

/* A call that is kept in flight. */
struct seat {
	struct bench_load *load;
	double begun;
};

struct bench_load {
	struct spoke_engine *engine;
	struct spoke_method *method;
	struct spoke_builder builder;
	struct spoke_span args;
	double until;
	uint64_t calls;
	unsigned in_flight;
	struct seat seats[SEATS];
	double *latencies; /* of the first LATENCIES calls; NULL: not wanted */
};

static void call(struct seat *seat);

static void call_done(void *arg, const struct spoke_result *result)
{
	struct seat *seat = arg;
	struct bench_load *load = seat->load;
	double now = bench_now();

	bench_must("call", result->error);
	if (load->latencies && load->calls < LATENCIES)
		load->latencies[load->calls] = now - seat->begun;
	load->calls++;
	load->in_flight--;
	if (now < load->until)
		call(seat);
	else if (load->in_flight == 0)
		spoke_engine_stop(load->engine);
}

static void call(struct seat *seat)
{
	struct bench_load *load = seat->load;

	load->in_flight++;
	if (load->latencies)
		seat->begun = bench_now();
	bench_must("call", spoke_call(load->method, load->args, NULL, call_done, seat, NULL));
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

static struct bench_load *open_load(enum port port, size_t len)
{
	struct bench_load *load = calloc(1, sizeof(*load));
	char *text = malloc(len);

	if (load == NULL || text == NULL)
		bench_die("no memory");
	memset(text, 'x', len);
	spoke_builder_init(&load->builder, spoke_host_env(), NULL);
	spoke_pack_str(&load->builder, text, len);
	free(text);
	bench_must("arguments", spoke_builder_finish(&load->builder, &load->args));
	bench_must("engine", spoke_engine_new(NULL, &load->engine));
	load->method = method_at(load->engine, port);
	for (unsigned i = 0; i < SEATS; i++)
		load->seats[i].load = load;
	return load;
}

void bench_load_free(struct bench_load *load)
{
	spoke_engine_free(load->engine);
	spoke_builder_fini(&load->builder);
	free(load->latencies);
	free(load);
}

static void run(struct bench_load *load, unsigned depth)
{
	load->calls = 0;
	load->until = bench_now() + ROUND_MS / 1e3;
	for (unsigned i = 0; i < depth; i++)
		call(&load->seats[i]);
	bench_must("run", spoke_engine_run(load->engine));
}

static struct round measure(struct bench_load *load, unsigned depth)
{
	double cpu = bench_own_cpu() + bench_server_cpu();
	double begun = bench_now();

	run(load, depth);
	return (struct round){
		.rate = (double)load->calls / (bench_now() - begun),
		.cpu = (bench_own_cpu() + bench_server_cpu() - cpu) / (double)load->calls,
	};
}

struct bench_load *bench_load_new(size_t len)
{
	struct bench_load *load = open_load(PORT_TLS, len);

	load->latencies = calloc(LATENCIES, sizeof(*load->latencies));
	if (load->latencies == NULL)
		bench_die("no memory");
	return load;
}

double bench_load_p99(struct bench_load *load, unsigned depth)
{
	size_t count;

	run(load, depth);
	count = load->calls < LATENCIES ? load->calls : LATENCIES;
	(void)bench_median(load->latencies, count); /* sorts them */
	return load->latencies[count * 99 / 100];
}

double bench_load_rate(struct bench_load *load, unsigned depth, double *ret_cpu)
{
	struct round round = measure(load, depth);

	*ret_cpu = round.cpu;
	return round.rate;
}

/* --- the four of a figure, in turn */

enum subject {
	CALL_PLAIN,
	CALL_TLS,
	RAW_PLAIN,
	RAW_TLS,
	SUBJECTS,
};

static struct round measure_raw(struct bench_raw *raw, size_t len, unsigned depth)
{
	double cpu = bench_raw_cpu(raw);
	double begun = bench_now();
	double rate = bench_raw_rate(raw, len, depth);

	return (struct round){
		.rate = rate,
		.cpu = (bench_raw_cpu(raw) - cpu) / (rate * (bench_now() - begun)),
	};
}

/* Prints a line: the medians, and the median of the ratios in each round. */
static void print(const char *unit, const char *figure, double (*values)[ROUNDS], bool of_cpu)
{
	double ratios[ROUNDS];
	double plain;
	double secure;

	for (unsigned i = 0; i < ROUNDS; i++)
		ratios[i] = of_cpu ? values[0][i] / values[1][i] : values[1][i] / values[0][i];
	plain = bench_median(values[0], ROUNDS);
	secure = bench_median(values[1], ROUNDS);
	printf("%s %s\t%.*f\t%.*f\t%.2f\n", unit, figure, of_cpu ? 2 : 0, plain, of_cpu ? 2 : 0,
	       secure, bench_median(ratios, ROUNDS));
	(void)fflush(stdout);
}

void bench_calls(const char *figure, size_t len, unsigned depth)
{
	struct bench_load *loads[2];
	struct bench_raw *raws[2];
	double rates[SUBJECTS][ROUNDS];
	double cpus[SUBJECTS][ROUNDS];

	for (unsigned i = 0; i < 2; i++) {
		raws[i] = bench_raw_open(i == 1);
		loads[i] = open_load(i == 0 ? PORT_PLAIN : PORT_TLS, len);
		(void)measure(loads[i], depth);
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < SUBJECTS; i++) {
			struct round one = i < RAW_PLAIN
						   ? measure(loads[i], depth)
						   : measure_raw(raws[i - RAW_PLAIN], len, depth);

			rates[i][round] = one.rate;
			cpus[i][round] = one.cpu * 1e6;
		}
	}
	print("calls/s", figure, &rates[CALL_PLAIN], false);
	print("us of CPU a call", figure, &cpus[CALL_PLAIN], true);
	print("... raw echoes/s", figure, &rates[RAW_PLAIN], false);
	print("... us of CPU of one", figure, &cpus[RAW_PLAIN], true);
	for (unsigned i = 0; i < 2; i++) {
		bench_load_free(loads[i]);
		bench_raw_close(raws[i]);
	}
}
