/* SPDX-License-Identifier: Apache-2.0 */
/* Runs all measurements of leases; fails if a first bar was missed. */
#include "lease.h"

#include "tests/bench/common/options.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SKIPPED 77

/* --- samples */

void samples_add(struct samples *samples, uint64_t ns)
{
	if (samples->count < SAMPLES_MAX)
		samples->ns[samples->count++] = ns;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t samples_percentile(struct samples *samples, uint32_t ppm)
{
	if (samples->count == 0)
		die("nothing was measured");
	qsort(samples->ns, samples->count, sizeof(samples->ns[0]), compare);
	return samples->ns[(uint64_t)(samples->count - 1) * ppm / 1000000];
}

/* --- rows */

static bool missed;

static void print_target(double target, const char *end)
{
	if (target > 0)
		printf("<= %g%s", target, end);
	else
		printf("-%s", end);
}

static void look(const char *figure, double value, const char *unit, const char *what,
		 double target)
{
	if (target > 0 && value > target)
		(void)fprintf(stderr, "missed: %s is %.3f %s, %s %g\n", figure, value, unit, what,
			      target);
}

void lease_report(const char *figure, double value, const char *unit, double bar, double goal)
{
	static bool begun;

	if (!begun)
		printf("figure\tvalue\tunit\tfirst bar\tgoal\n");
	begun = true;
	printf("%s\t%.*f\t%s\t", figure, value < 100 ? 3 : 0, value, unit);
	print_target(bar, "\t");
	print_target(goal, "\n");
	(void)fflush(stdout);
	missed |= bar > 0 && value > bar;
	if (bar > 0 && value > bar)
		look(figure, value, unit, "first bar", bar);
	else
		look(figure, value, unit, "goal", goal);
}

bool lease_report_is_good(void)
{
	return !missed;
}

/* --- a client of leases */

void client_make(struct client *client, const struct bench *bench, const struct spoke_env *env,
		 uint64_t ttl_ns)
{
	const struct spoke_engine_options options = { .env = env };
	const struct spoke_leases_options leases = { .store = bench->url, .ttl_ns = ttl_ns };
	struct spoke_leases_look look_at = { 0 };

	must("engine", spoke_engine_new(&options, &client->engine));
	must("leases", spoke_leases_new(client->engine, &leases, &client->leases));
	while (!look_at.connected) {
		must("turn", spoke_engine_turn(client->engine, true));
		spoke_leases_look(client->leases, &look_at);
	}
}

void client_unmake(struct client *client)
{
	spoke_engine_free(client->engine);
}

void client_run(struct client *client, const bool *flag)
{
	while (!*flag)
		must("turn", spoke_engine_turn(client->engine, true));
}

static void over(struct spoke_alarm *alarm)
{
	(void)alarm;
}

void client_run_until(struct client *client, uint64_t end_ns)
{
	struct spoke_alarm alarm = { 0 };
	uint64_t begun_ns = now_ns();

	if (begun_ns >= end_ns)
		return;
	must("alarm", spoke_alarm_after(client->engine, &alarm, end_ns - begun_ns, over));
	while (now_ns() < end_ns)
		must("turn", spoke_engine_turn(client->engine, true));
	(void)spoke_alarm_cancel(&alarm);
}

/* --- all */

/* Puts a process on a core, if there are at least two: the server on one, the clients on the
 * other. */
static void put(pid_t pid, unsigned core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		(void)sched_setaffinity(pid, sizeof(set), &set);
}

int main(int argc, char **argv)
{
	static struct bench bench;
	const struct option_row quick = { "--quick", .flag = &bench.is_quick };

	options_read(argc, argv, &quick, 1, "[--quick]");
	if (redisserver_absent()) {
		(void)fprintf(stderr, "skipped: leases need Redis, which is not installed "
				      "(Debian's package redis-tools)\n");
		return SKIPPED;
	}
	redisserver_make(&bench.server, 0, "");
	put(bench.server.pid, 0);
	put(0, 1);
	redisclient_open(&bench.client, bench.server.path);
	(void)snprintf(bench.url, sizeof(bench.url), "redis+unix://%s", bench.server.path);
	measure_handover(&bench);
	measure_takeover(&bench);
	measure_acquire(&bench);
	measure_held(&bench);
	measure_lost(&bench);
	redisclient_close(&bench.client);
	redisserver_unmake(&bench.server);
	return !lease_report_is_good();
}
