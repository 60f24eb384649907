/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what many held leases cost: bytes, CPU time of the engine, commands to the store. */
#include "lease.h"

#include <spoke/host.h>
#include <spoke/stats.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEASES 10000u

struct crowd {
	struct client client;
	unsigned held;
	unsigned lost;
	bool all;
};

static void told(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	struct crowd *crowd = arg;

	(void)lease;
	must("lease", answer->error);
	crowd->all = ++crowd->held == LEASES;
}

static void lost(void *arg, struct spoke_lease lease, enum spoke_lease_loss why)
{
	struct crowd *crowd = arg;

	(void)lease;
	(void)why;
	crowd->lost++;
}

/* --- an environment that counts memory */

static int64_t bytes;

static void *resize(void *ctx, void *memory, size_t old_len, size_t len)
{
	void *grown = spoke_host_env()->resize(ctx, memory, old_len, len);

	if (grown || len == 0)
		bytes += (int64_t)len - (memory ? (int64_t)old_len : 0);
	return grown;
}

/* --- commands that the server has counted */

/* Returns the calls of a command, of a line "cmdstat_<name>:calls=<n>,...". */
static uint64_t calls_of(const char *info, const char *name)
{
	char wanted[64];
	const char *at;

	(void)snprintf(wanted, sizeof(wanted), "cmdstat_%s:calls=", name);
	at = strstr(info, wanted);
	return at ? strtoull(at + strlen(wanted), NULL, 10) : 0;
}

static uint64_t scripts(struct bench *bench)
{
	const char *info = redisclient_ask(&bench->client, REDIS_WORDS("INFO", "commandstats"));

	return calls_of(info, "evalsha") + calls_of(info, "eval");
}

/* --- the measurement */

static void hold(struct crowd *crowd)
{
	const struct spoke_lease_options options = { .lost = lost, .arg = crowd };
	int64_t before = bytes;
	char name[32];

	for (unsigned i = 0; i < LEASES; i++) {
		(void)snprintf(name, sizeof(name), "bench:held:%u", i);
		must("ask", spoke_lease_ask(crowd->client.leases, name, &options, told, NULL));
	}
	client_run(&crowd->client, &crowd->all);
	/* Buffers and other memory of the acquires are given back with time. */
	client_run_until(&crowd->client, now_ns() + SECOND);
	lease_report("held_lease", (double)(bytes - before) / LEASES, "bytes", 384, 192);
}

void measure_held(struct bench *bench)
{
	struct spoke_env env = *spoke_host_env();
	static struct crowd crowd;
	struct spoke_engine *engine;
	uint64_t begun_ns;
	uint64_t commands;
	uint64_t sent;
	uint64_t used_ns;
	double seconds;

	env.resize = resize;
	client_make(&crowd.client, bench, &env, 0);
	engine = crowd.client.engine;
	hold(&crowd);
	begun_ns = now_ns();
	used_ns = cpu_ns();
	commands = spoke_stat_get(engine, SPOKE_STAT_LEASE_COMMANDS);
	sent = scripts(bench);
	/* Intervals of renewals: a third of the default time to live. */
	client_run_until(&crowd.client, begun_ns + (bench->is_quick ? 10 : 30) * SECOND);
	used_ns = cpu_ns() - used_ns;
	commands = spoke_stat_get(engine, SPOKE_STAT_LEASE_COMMANDS) - commands;
	sent = scripts(bench) - sent;
	seconds = (double)(now_ns() - begun_ns) / (double)SECOND;
	lease_report("held_10000_cpu", (double)used_ns / (double)SECOND / seconds * 100,
		     "% of a core", 1, 0.2);
	lease_report("held_10000_commands", (double)commands / seconds, "1/s", 20, 10);
	lease_report("held_10000_scripts_at_the_server", (double)sent / seconds, "1/s", 0, 0);
	if (crowd.lost)
		die("%u leases were lost", crowd.lost);
	if (spoke_stat_get(engine, SPOKE_STAT_LEASE_RENEWALS) < LEASES)
		die("only %" PRIu64 " renewals", spoke_stat_get(engine, SPOKE_STAT_LEASE_RENEWALS));
	client_unmake(&crowd.client);
}
