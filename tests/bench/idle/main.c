/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of idle connections: CPU time of a provider whose consumers send only heartbeats, over
 * two intervals after a warm-up of one, and the waits of both sides of an idle pair that ended for
 * no heartbeat. Fails if a connection is lost or a target is missed.
 */
#include "tests/bench/common/options.h"
#include "tests/bench/memory/memory.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define CROWDS 2u
#define SHARE_MAX 3.0 /* percent of a core */
#define INTERVALS 2u  /* measured intervals */
#define PAIR_NS (600 * SECOND)
#define PAIR_QUICK_NS (15 * SECOND)
#define PAIR_WARM_NS (6 * SECOND) /* a new connection has a timer of 5 s */

struct idle {
	unsigned conns;
	uint64_t heartbeat_ns;
	uint64_t pair_ns;
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct helper helpers[CROWDS];
};

static void make_room(unsigned conns)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		die("cannot read the limit of descriptors");
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_max < conns + 100 || setrlimit(RLIMIT_NOFILE, &limit))
		die("%u connections need a hard limit of %u descriptors; it is %lu", conns,
		    conns + 100, (unsigned long)limit.rlim_max);
}

/* --- the consumers, in processes of their own */

static size_t ready_of(struct spoke_consumer *const *consumers, unsigned count)
{
	size_t ready = 0;

	for (unsigned i = 0; i < count; i++)
		ready += spoke_consumer_ready(consumers[i]);
	return ready;
}

/* Reads the port, and returns an engine with this many connected consumers. */
static struct spoke_engine *connect_crowd(const struct idle *idle, unsigned count, int in)
{
	struct spoke_consumer **consumers = calloc(count, sizeof(struct spoke_consumer *));
	struct spoke_consumer_options options = { .serialization = SPOKE_SERIALIZATION_MSGPACK,
						  .heartbeat_ns = idle->heartbeat_ns };
	struct spoke_engine *engine;
	uint16_t port;
	char url[64];

	read_all(in, &port, sizeof(port));
	(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:%u/" SERVICE, port);
	options.url = url;
	must("engine", spoke_engine_new(NULL, &engine));
	for (unsigned i = 0; consumers && i < count; i++)
		must("consumer", spoke_consumer_new(engine, &options, &consumers[i]));
	while (consumers && ready_of(consumers, count) < count)
		must("turn", spoke_engine_turn(engine, true));
	free(consumers);
	return engine;
}

/* Writes a byte when all are connected, and runs until it is killed. */
static void play_crowd(void *arg, int in, int out)
{
	const struct idle *idle = arg;
	struct spoke_engine *engine = connect_crowd(idle, idle->conns / CROWDS, in);

	write_all(out, "r", 1);
	must("run", spoke_engine_run(engine));
}

/* --- the provider */

/* Listens, and tells the port to this many helpers. */
static void serve(struct idle *idle, unsigned helpers)
{
	const struct spoke_provider_options options = {
		.connections_max = idle->conns + 1,
		.connections_per_peer_max = idle->conns + 1,
		.heartbeat_ns = idle->heartbeat_ns,
	};
	char text[128];
	const char *colon;
	uint16_t port;

	must("engine", spoke_engine_new(NULL, &idle->engine));
	must("provider", spoke_provider_new(idle->engine, &options, &idle->provider));
	must("listen", spoke_provider_listen(idle->provider, "dubbo://127.0.0.1:0"));
	if (spoke_provider_address(idle->provider, 0, text, sizeof(text)) == 0)
		die("the provider does not listen");
	colon = strrchr(text, ':');
	port = (uint16_t)strtoul(colon ? colon + 1 : "", NULL, 10);
	for (unsigned i = 0; i < helpers; i++)
		helper_tell(&idle->helpers[i], &port, sizeof(port));
}

static void over(struct spoke_alarm *alarm)
{
	(void)alarm;
}

static void live_for(struct idle *idle, uint64_t ns)
{
	struct spoke_alarm alarm = { 0 };
	uint64_t end_ns = now_ns() + ns;

	must("alarm", spoke_alarm_after(idle->engine, &alarm, ns, over));
	while (now_ns() < end_ns)
		must("turn", spoke_engine_turn(idle->engine, true));
	(void)spoke_alarm_cancel(&alarm);
}

/* --- an idle pair */

/* Returns how many waits ended without a message to read or a heartbeat to send. The end of the
 * time is not one of them. */
static uint64_t empty_waits(struct spoke_engine *engine, uint64_t ns)
{
	struct spoke_alarm alarm = { 0 };
	uint64_t end_ns = now_ns() + ns;
	uint64_t waits = 0;
	uint64_t seen = 0;

	must("alarm", spoke_alarm_after(engine, &alarm, ns, over));
	while (now_ns() < end_ns) {
		uint64_t reasons = spoke_stat_get(engine, SPOKE_STAT_MESSAGES_READ) +
				   spoke_stat_get(engine, SPOKE_STAT_PROBES_WRITTEN);

		waits += reasons == seen;
		seen = reasons;
		must("turn", spoke_engine_turn(engine, true));
	}
	(void)spoke_alarm_cancel(&alarm);
	return waits;
}

static void play_one(void *arg, int in, int out)
{
	const struct idle *idle = arg;
	struct spoke_engine *engine = connect_crowd(idle, 1, in);
	uint64_t waits;

	(void)empty_waits(engine, PAIR_WARM_NS);
	waits = empty_waits(engine, idle->pair_ns);
	write_all(out, &waits, sizeof(waits));
}

static void measure_pair(struct idle *idle)
{
	uint64_t waits[2];

	serve(idle, 1);
	(void)empty_waits(idle->engine, PAIR_WARM_NS);
	waits[0] = empty_waits(idle->engine, idle->pair_ns);
	helper_hear(&idle->helpers[0], idle->engine, &waits[1], sizeof(waits[1]));
	report("idle_pair_empty_waits", (double)(waits[0] + waits[1]), "", 0);
	if (waits[0] + waits[1] > 0)
		die("an idle pair waited in vain");
	helper_end(&idle->helpers[0]);
	spoke_engine_free(idle->engine);
}

/* --- many connections */

static void measure(struct idle *idle)
{
	uint64_t probes;
	uint64_t begun_ns;
	uint64_t used_ns;

	live_for(idle, idle->heartbeat_ns);
	probes = spoke_stat_get(idle->engine, SPOKE_STAT_MESSAGES_READ);
	begun_ns = now_ns();
	used_ns = cpu_ns();
	live_for(idle, INTERVALS * idle->heartbeat_ns);
	used_ns = cpu_ns() - used_ns;
	begun_ns = now_ns() - begun_ns;
	probes = spoke_stat_get(idle->engine, SPOKE_STAT_MESSAGES_READ) - probes;
	report("idle_connections", (double)spoke_provider_connections(idle->provider), "", 0);
	report("idle_heartbeats", (double)probes * (double)SECOND / (double)begun_ns, "1/s", 0);
	report("idle_cpu", 100.0 * (double)used_ns / (double)begun_ns, "% of a core", SHARE_MAX);
	if (probes < (uint64_t)idle->conns * INTERVALS / 2)
		die("only %lu heartbeats arrived", (unsigned long)probes);
	if (spoke_stat_get(idle->engine, SPOKE_STAT_CLOSED) > 0 ||
	    spoke_provider_connections(idle->provider) != idle->conns)
		die("%lu connections were lost",
		    (unsigned long)spoke_stat_get(idle->engine, SPOKE_STAT_CLOSED));
}

int main(int argc, char **argv)
{
	bool is_quick = false;
	const struct option_row quick = { "--quick", .flag = &is_quick };
	struct idle idle = { 0 };
	char ready;

	options_read(argc, argv, &quick, 1, "[--quick]");
	idle.conns = is_quick ? 1000 : 10000;
	idle.heartbeat_ns = (is_quick ? 3 : 10) * SECOND;
	idle.pair_ns = is_quick ? PAIR_QUICK_NS : PAIR_NS;
	make_room(idle.conns);
	helper_start(&idle.helpers[0], play_one, &idle);
	measure_pair(&idle);
	for (unsigned i = 0; i < CROWDS; i++)
		helper_start(&idle.helpers[i], play_crowd, &idle);
	serve(&idle, CROWDS);
	for (unsigned i = 0; i < CROWDS; i++)
		helper_hear(&idle.helpers[i], idle.engine, &ready, 1);
	measure(&idle);
	for (unsigned i = 0; i < CROWDS; i++)
		helper_end(&idle.helpers[i]);
	spoke_engine_free(idle.engine);
	return !report_is_good();
}
