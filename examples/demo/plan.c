/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the options of the demo and derives its limits. */
#define _POSIX_C_SOURCE 200809L
#include "examples/demo/plan.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Retries that the retry budget allows in any 10 s, regardless of the number of calls. */
#define FREE_RETRIES 100

#define LEASE_MIN_NS (1500 * PLAN_MS)
#define LEASE_MAX_NS (3 * PLAN_SECOND)

static const char help[] =
	"usage: sh examples/demo.sh [option]...\n"
	"\n"
	"Runs providers, consumers and workers as processes, freezes, kills and drains some of\n"
	"them, and prints the events that spoke reports. The workers share a lease in Redis; "
	"their\n"
	"act is left out if redis-server is not installed.\n"
	"\n"
	"  --providers N       number of providers, 3 to 32 (default 3)\n"
	"  --rate R            calls per second of the first consumer, 1 to 10000 (default 100)\n"
	"  --timeout D         timeout of a request, 10ms to 1m (default 300ms)\n"
	"  --heartbeat D       heartbeat interval, 100ms to 1m (default 1s)\n"
	"  --retry-period D    pause before a retry of a deferred call, 100ms to 1m (default 1s)\n"
	"  --seconds S         minimum run time, up to a day\n"
	"  --live              serve a page for each process, and run until Ctrl-C\n"
	"  --dubbo             another story: a provider and a consumer made with Node join by\n"
	"                      way of ZooKeeper; needs npm, and Debian's zookeeper\n"
	"  --comet             another story: a shop pushes to users in browsers; takes --users "
	"N,\n"
	"                      --live and --plain\n"
	"  --tls               mutual TLS between all processes, with certificates of this run\n"
	"  --plain             no colours\n"
	"  --help              print this help\n"
	"\n"
	"D is a duration, e.g. 300ms, 1.5s or 1m. Exit status: 0 if the counts add up, 1 if not,\n"
	"2 if the demo could not run.\n";

/* --- options */

static bool read_count(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)text[0]) || strlen(text) > 9)
		return false;
	*ret = strtoull(text, &end, 10);
	return *end == '\0' && *ret >= min && *ret <= max;
}

static bool read_duration(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "ms", PLAN_MS },
		{ "s", PLAN_SECOND },
		{ "m", 60 * PLAN_SECOND },
	};
	size_t digits = strspn(text, "0123456789.");
	char *end;
	double number = strtod(text, &end);

	if (!isdigit((unsigned char)text[0]) || end != text + digits || digits > 9)
		return false;
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		*ret = (uint64_t)(number * (double)units[i].ns + 0.5);
		return *ret >= min && *ret <= max;
	}
	return false;
}

char *plan_print(uint64_t ns, char *text)
{
	if (ns < PLAN_SECOND)
		(void)snprintf(text, PLAN_TEXT, "%.4gms", (double)ns / (double)PLAN_MS);
	else
		(void)snprintf(text, PLAN_TEXT, "%.4gs", (double)ns / (double)PLAN_SECOND);
	return text;
}

static enum plan_verdict wrong(const char *option, const char *value, const char *what)
{
	(void)fprintf(stderr, "demo: %s%s%s: %s\n", option, value ? " " : "", value ? value : "",
		      what);
	return PLAN_WRONG;
}

static enum plan_verdict read_value(const char *option, const char *value, struct plan *plan)
{
	uint64_t providers;

	if (strcmp(option, "--providers") == 0) {
		if (!read_count(value, 3, PLAN_PROVIDERS_MAX, &providers))
			return wrong(option, value, "must be a number from 3 to 32");
		plan->providers = (unsigned)providers;
	} else if (strcmp(option, "--rate") == 0) {
		if (!read_count(value, 1, 10000, &plan->rate))
			return wrong(option, value, "must be from 1 to 10000 calls per second");
	} else if (strcmp(option, "--timeout") == 0) {
		if (!read_duration(value, 10 * PLAN_MS, 60 * PLAN_SECOND, &plan->timeout_ns))
			return wrong(option, value,
				     "must be a duration from 10ms to 1m, e.g. 300ms");
	} else if (strcmp(option, "--heartbeat") == 0) {
		if (!read_duration(value, 100 * PLAN_MS, 60 * PLAN_SECOND, &plan->heartbeat_ns))
			return wrong(option, value, "must be a duration from 100ms to 1m, e.g. 1s");
	} else if (strcmp(option, "--retry-period") == 0) {
		if (!read_duration(value, 100 * PLAN_MS, 60 * PLAN_SECOND, &plan->period_ns))
			return wrong(option, value, "must be a duration from 100ms to 1m, e.g. 1s");
	} else if (strcmp(option, "--seconds") == 0) {
		if (!read_count(value, 0, 86400, &plan->seconds))
			return wrong(option, value, "must be from 0 to 86400 seconds");
	} else {
		return wrong(option, NULL, "no such option; --help lists the options");
	}
	return PLAN_GO;
}

static enum plan_verdict read_options(int argc, char **argv, struct plan *plan)
{
	enum plan_verdict verdict = PLAN_GO;

	for (int i = 1; i < argc && verdict == PLAN_GO; i++) {
		if (strcmp(argv[i], "--help") == 0) {
			(void)fputs(help, stdout);
			return PLAN_HELPED;
		}
		if (strcmp(argv[i], "--live") == 0)
			plan->live = true;
		else if (strcmp(argv[i], "--plain") == 0)
			plan->plain = true;
		else if (strcmp(argv[i], "--tls") == 0)
			plan->tls = true;
		else if (strcmp(argv[i], "--dubbo") == 0)
			plan->dubbo = true;
		else if (i + 1 < argc) {
			verdict = read_value(argv[i], argv[i + 1], plan);
			i++;
		} else {
			verdict = read_value(argv[i], "", plan);
		}
	}
	return verdict;
}

/* --- derived values */

static uint64_t divide_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

/* Returns the calls made during the outage and the spare time. */
static uint64_t tasks_for(uint64_t rate, uint64_t outage_ns)
{
	return divide_up(rate * ((outage_ns + PLAN_SPARE_NS) / PLAN_MS), 1000);
}

/* Checks that every act can happen with these options. */
static enum plan_verdict check(const struct plan *plan)
{
	uint64_t echoes = plan->providers - 1;
	char text[PLAN_TEXT];

	if (plan->dubbo && plan->live)
		return wrong("--dubbo", NULL, "the Node programs have no pages for --live");
	if (plan->dubbo && plan->tls)
		return wrong("--dubbo", NULL, "the Node programs of --dubbo have no TLS");
	if (plan->timeout_ns > 3 * plan->heartbeat_ns) {
		return wrong("--timeout", plan_print(plan->timeout_ns, text),
			     "must be at most 3 times --heartbeat: after 4 intervals the "
			     "connection is closed, and no request would time out");
	}
	if (plan->rate * plan->heartbeat_ns < echoes * PLAN_SECOND) {
		return wrong("--rate", NULL,
			     "too low: each provider needs one call per heartbeat interval; use a "
			     "higher --rate, a longer --heartbeat or fewer --providers");
	}
	return PLAN_GO;
}

/*
 * Requests to a frozen provider time out until it is suspect, two heartbeat intervals after its
 * last byte. Calls to a killed provider wait for two more attempts and the restart; the next
 * connect attempt comes up to 0.6 times later.
 *
 * In an outage of 4 periods each waiting call is tried once per period, which makes about 12
 * retries per call of one period. The rate of the second consumer is limited so that its retry
 * budget suffices.
 */
static void derive(struct plan *plan)
{
	plan->rate2 = plan->rate / 10;
	if (plan->rate2 > FREE_RETRIES * PLAN_SECOND / (12 * plan->period_ns))
		plan->rate2 = FREE_RETRIES * PLAN_SECOND / (12 * plan->period_ns);
	if (plan->rate2 == 0)
		plan->rate2 = 1;
	/* Less than the four silent intervals after which a provider closes the connection of a
	 * frozen worker, unless heartbeats are short. */
	plan->lease_ns = 2 * plan->heartbeat_ns;
	if (plan->lease_ns < LEASE_MIN_NS)
		plan->lease_ns = LEASE_MIN_NS;
	if (plan->lease_ns > LEASE_MAX_NS)
		plan->lease_ns = LEASE_MAX_NS;
	plan->outage_ns = 2 * plan->heartbeat_ns + plan->timeout_ns;
	plan->outage2_ns = 4 * plan->period_ns;
	plan->tasks = tasks_for(plan->rate, plan->outage_ns);
	plan->tasks2 = tasks_for(plan->rate2, plan->outage2_ns);
}

enum plan_verdict plan_read(int argc, char **argv, struct plan *ret)
{
	enum plan_verdict verdict;

	*ret = (struct plan){
		.providers = 3,
		.rate = 100,
		.timeout_ns = 300 * PLAN_MS,
		.heartbeat_ns = PLAN_SECOND,
		.period_ns = PLAN_SECOND,
	};
	verdict = read_options(argc, argv, ret);
	if (ret->dubbo)
		ret->providers = 2;
	if (verdict == PLAN_GO)
		verdict = check(ret);
	if (verdict == PLAN_GO)
		derive(ret);
	return verdict;
}
