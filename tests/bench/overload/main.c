/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider under more load than it can take: how many calls are answered in time, by what its
 * pool can answer, without a limit, with a fixed one, and with that of the deadlines. Its handlers
 * block for a time without using the CPU. Every load is one row on stdout.
 */
#include "tests/bench/common/options.h"
#include "tests/bench/memory/memory.h"

#include <spoke/consumer.h>
#include <spoke/engine.h>
#include <spoke/provider.h>

#include <stdio.h>
#include <time.h>

#define THREADS 10u
#define SERVICE_NS (10 * MS)
#define TIMEOUT_MS 100
#define CAPACITY 1000u /* a second: THREADS / SERVICE_NS */
#define FIXED (2 * THREADS)
#define BEAT_NS MS
#define GOAL 0.9 /* of the capacity, for the limit of the deadlines */

/* A run: a load and a limit. */
struct run {
	struct spoke_engine *engine;
	struct spoke_method *method;
	struct spoke_alarm beat;
	struct spoke_alarm over;
	double per_second;
	double owed;
	uint64_t beat_ns; /* of the last calls */
	uint64_t begun;
	uint64_t ended;
	uint64_t in_time;
	bool is_measured;
};

static void work(struct spoke_request *request, void *arg)
{
	const struct timespec service = { .tv_nsec = (long)SERVICE_NS };

	(void)arg;
	(void)nanosleep(&service, NULL);
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void call_done(void *arg, const struct spoke_result *result)
{
	struct run *run = arg;

	run->ended++;
	run->in_time += run->is_measured && result->error == SPOKE_OK;
}

/* Makes the calls that are due, also if the beat is late. */
static void beat(struct spoke_alarm *alarm)
{
	struct run *run = spoke_container_of(alarm, struct run, beat);
	uint64_t now_ns = spoke_engine_now(run->engine);
	const struct spoke_span none = { "", 0 };

	run->owed += run->per_second * (double)(now_ns - run->beat_ns) / (double)SECOND;
	run->beat_ns = now_ns;
	for (; run->owed >= 1; run->owed--) {
		must("call", spoke_call(run->method, none, NULL, call_done, run, NULL));
		run->begun++;
	}
}

static void over(struct spoke_alarm *alarm)
{
	spoke_engine_stop(spoke_container_of(alarm, struct run, over)->engine);
}

static void live_for(struct run *run, uint64_t ns)
{
	must("alarm", spoke_alarm_after(run->engine, &run->over, ns, over));
	must("run", spoke_engine_run(run->engine));
}

/* Returns how many calls a second were answered in time. */
static double measure(double times, uint32_t executes, uint64_t warm_ns, uint64_t ns)
{
	static const struct spoke_service_options service = { .name = SERVICE };
	const struct spoke_handler handler = {
		.method = "work",
		.handle = work,
		.flags = SPOKE_HANDLER_POOL,
		.executes = executes,
	};
	const struct spoke_engine_options with = {
		.pool_threads = THREADS,
		.pool_queue = 100000,
		.log = "off",
	};
	const struct spoke_provider_options options = { .requests_per_connection_max = 100000,
							.requests_max = 100000 };
	struct run run = { .per_second = times * CAPACITY };
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	struct spoke_consumer_options of = { 0 };
	char address[64];
	char url[256];

	must("engine", spoke_engine_new(&with, &run.engine));
	must("provider", spoke_provider_new(run.engine, &options, &provider));
	must("service", spoke_provider_add(provider, &service, &handler, 1));
	must("listen", spoke_provider_listen(provider, "dubbo://127.0.0.1:0"));
	(void)spoke_provider_address(provider, 0, address, sizeof(address));
	(void)snprintf(url, sizeof(url),
		       "dubbo://%s/" SERVICE "?timeout=%u&cluster=failfast&eject.failures=0"
		       "&pending.max=1000000",
		       address, TIMEOUT_MS);
	of.url = url;
	must("consumer", spoke_consumer_new(run.engine, &of, &consumer));
	must("method", spoke_consumer_method(consumer, "work", NULL, &run.method));
	live_for(&run, 100 * MS);
	run.beat_ns = spoke_engine_now(run.engine);
	must("beat", spoke_alarm_every(run.engine, &run.beat, BEAT_NS, beat));
	live_for(&run, warm_ns);
	run.is_measured = true;
	live_for(&run, ns);
	run.is_measured = false;
	(void)spoke_alarm_cancel(&run.beat);
	live_for(&run, 2 * TIMEOUT_MS * MS);
	if (run.ended != run.begun)
		die("calls have no end");
	spoke_engine_free(run.engine);
	return (double)run.in_time * (double)SECOND / (double)ns;
}

int main(int argc, char **argv)
{
	static const double loads[] = { 0.5, 1, 2, 5 };
	bool is_quick = false;
	const struct option_row quick = { "--quick", .flag = &is_quick };
	uint64_t warm_ns = SECOND;
	uint64_t ns = 3 * SECOND;
	bool is_good = true;

	options_read(argc, argv, &quick, 1, "[--quick]");
	if (is_quick)
		ns = SECOND;
	printf("load\tnone\tfixed\tauto\n");
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		double none = measure(loads[i], 0, warm_ns, ns) / CAPACITY;
		double fixed = measure(loads[i], FIXED, warm_ns, ns) / CAPACITY;
		double by_time = measure(loads[i], SPOKE_EXECUTES_AUTO, warm_ns, ns) / CAPACITY;

		printf("%g\t%.2f\t%.2f\t%.2f\n", loads[i], none, fixed, by_time);
		(void)fflush(stdout);
		is_good &= loads[i] < 2 || by_time >= GOAL;
	}
	if (!is_good)
		(void)fprintf(stderr, "missed: auto answers %g of the capacity\n", GOAL);
	return !is_good;
}
