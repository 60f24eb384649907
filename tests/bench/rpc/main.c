/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark of calls: every pattern with every peer. The peers alternate within each
 * repetition, in a rotating order, so that a slow minute of the machine affects all of them.
 */
#include "contest.h"
#include "host.h"
#include "pattern.h"
#include "report.h"
#include "stage.h"
#include "targets.h"
#include "tests/bench/common/options.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Limit of repeated measurements, because of other processes' CPU use. */
#define RETRIES 2

struct options {
	bool quick;
	bool unix_too;
	bool spin;
	uint64_t reps;    /* 0: default of a quick or full run */
	uint64_t span_ms; /* 0: default of a quick or full run */
	uint64_t server_cpu;
	uint64_t client_cpu;
	const char *only;    /* one pattern, by its name on a route; NULL: all */
	const char *peer;    /* one peer; NULL: all */
	const char *tls;     /* the folder of certificates; NULL: plain */
	const char *results; /* a file to create; NULL: none */
};

struct bench {
	struct options options;
	struct contest_cast cast;
	uint64_t repeat_until_ns;
	bool has_failed;
};

/* Directory and path of the unix socket; both are removed at the end, also after a failure. */
static char socket_dir[] = "/tmp/spoke-bench-XXXXXX";
static char socket_path[64];

static struct rpc_plan make_plan(const struct bench *bench, const struct pattern *pattern,
				 enum route route)
{
	bool is_shm = route == ROUTE_SHM;
	bool is_unix = route == ROUTE_UNIX || is_shm;
	const char *congestion = route_congestion(route);
	struct rpc_plan plan = {
		.is_unix = is_unix,
		.is_shm = is_shm,
		.payload = pattern->payload,
		.connections = pattern->connections,
		.outstanding = pattern->outstanding,
		.request_len = pattern_request_len(pattern->payload),
		.reply_len = pattern_reply_len(pattern->payload),
		.warm_ns = 200 * HOST_MS,
		.span_ns = bench->options.span_ms * HOST_MS,
		.server_cpu = (int)bench->options.server_cpu,
		.client_cpu = (int)bench->options.client_cpu,
	};

	(void)snprintf(plan.address, sizeof(plan.address), "%s",
		       is_unix ? socket_path : "127.0.0.1");
	if (congestion != NULL)
		(void)snprintf(plan.congestion, sizeof(plan.congestion), "%s", congestion);
	if (bench->options.tls != NULL)
		(void)snprintf(plan.certs, sizeof(plan.certs), "%s", bench->options.tls);
	return plan;
}

/* Repeats a measurement that other processes disturbed, up to a limit or the end of the time
 * budget. */
static enum stage_end measure(const struct bench *bench, const struct rpc_peer *peer,
			      const struct rpc_plan *plan, struct rpc_report *ret_report)
{
	enum stage_end end = STAGE_OK;
	bool is_last = false;

	for (int i = 0; !is_last; i++) {
		if (plan->is_unix)
			(void)unlink(socket_path);
		end = stage_measure(peer, plan, ret_report);
		if (end != STAGE_OK || ret_report->foreign <= REPORT_FOREIGN_MAX)
			break;
		is_last = i == RETRIES || host_now_ns() > bench->repeat_until_ns;
		(void)fprintf(stderr, "  %s: others used %.1f %% of the CPUs%s\n", peer->name,
			      ret_report->foreign * 100, is_last ? "" : ", again");
	}
	if (plan->is_unix)
		(void)unlink(socket_path);
	return end;
}

/* Returns whether the measurement succeeded; otherwise the run fails, but continues with other
 * peers. */
static bool judge(struct bench *bench, const char *name, const struct rpc_peer *peer,
		  enum stage_end end, const struct rpc_report *report)
{
	if (end == STAGE_OK)
		return true;
	bench->has_failed = true;
	report_fail(name, peer->name);
	if (end == STAGE_FAILED) {
		(void)fprintf(stderr, "%s %s: %llu calls failed\n", name, peer->name,
			      (unsigned long long)report->failed);
	}
	return false;
}

static void run_peer(struct bench *bench, const char *name, const struct rpc_peer *peer,
		     const struct rpc_plan *plan)
{
	struct rpc_report report;
	enum stage_end end = measure(bench, peer, plan, &report);

	if (judge(bench, name, peer, end, &report))
		report_add(name, peer->name, &report);
}

/* Measures the length of spoke's frames, with one call in flight, so that no frame is counted half.
 * If that fails, uses the lengths of the specification. */
static void measure_frames(struct bench *bench, const char *name, struct rpc_plan *plan)
{
	const struct rpc_peer *spoke = contest_find(REPORT_SPOKE);
	struct rpc_plan single = *plan;
	const char *source = "the book";
	struct rpc_report report;

	single.connections = 1;
	single.outstanding = 1;
	single.warm_ns = 50 * HOST_MS;
	single.span_ns = 100 * HOST_MS;
	if (spoke != NULL &&
	    judge(bench, name, spoke, stage_measure(spoke, &single, &report), &report)) {
		uint64_t calls = report.calls;

		plan->request_len = (uint32_t)((report.client.bytes_written + calls / 2) / calls);
		source = spoke->name;
		plan->reply_len = (uint32_t)((report.client.bytes_read + calls / 2) / calls);
	}
	(void)fprintf(stderr, "  frames of %s: request %u, reply %u bytes\n", source,
		      plan->request_len, plan->reply_len);
}

/* Returns whether the options select a route. It must not only repeat the kernel's default. */
static bool is_routed(const struct options *options, const struct pattern *pattern,
		      enum route route)
{
	const char *name = pattern->names[route];
	const char *congestion = route_congestion(route);
	bool is_only = options->only != NULL && strcmp(options->only, name) == 0;
	unsigned routes = options->quick ? 0 : pattern->routes;
	char found[16];

	if (options->unix_too)
		routes |= ROUTE_BIT(ROUTE_UNIX);
	if (route == ROUTE_TCP
		    ? options->only != NULL && !is_only
		    : !is_only && (options->only != NULL || !(routes & ROUTE_BIT(route))))
		return false;
	if (congestion == NULL)
		return true;
	if (host_find_congestion(NULL, found, sizeof(found)) && strcmp(found, congestion) == 0) {
		(void)printf("# %s: left out, because %s shows the same: %s is the default here\n",
			     name, pattern->names[ROUTE_TCP], congestion);
		return false;
	}
	if (host_find_congestion(congestion, found, sizeof(found)))
		return true;
	(void)printf("# %s: left out, because the congestion control %s is not available here\n",
		     name, congestion);
	return false;
}

/* The server of redis, another program, has the kernel's default of congestion control. */
static bool plays(const struct rpc_peer *peer, const struct pattern *pattern, enum route route)
{
	if (peer->is_spun_only && !pattern->is_spun)
		return false;
	/* The bare rings hold frames of few calls only. */
	if (route == ROUTE_SHM ? !peer->has_shm : peer->is_shm_only)
		return false;
	if (peer->is_shm_only && pattern->payload * pattern->outstanding > 16384)
		return false;
	return !peer->is_server_alone || route_congestion(route) == NULL;
}

static void run_pattern(struct bench *bench, const struct pattern *pattern)
{
	const struct options *options = &bench->options;
	const struct contest_cast *cast = &bench->cast;
	struct rpc_plan frames = make_plan(bench, pattern, ROUTE_TCP);
	struct rpc_plan plans[ROUTES];
	bool routed[ROUTES];

	(void)fprintf(stderr, "%s\n", pattern->names[ROUTE_TCP]);
	measure_frames(bench, pattern->names[ROUTE_TCP], &frames);
	for (enum route route = 0; route < ROUTES; route++) {
		routed[route] = is_routed(options, pattern, route);
		plans[route] = make_plan(bench, pattern, route);
		plans[route].request_len = frames.request_len;
		plans[route].reply_len = frames.reply_len;
	}
	for (uint32_t rep = 0; rep < options->reps; rep++) {
		for (size_t i = 0; i < cast->count; i++) {
			const struct rpc_peer *peer = cast->peers[(rep + i) % cast->count];

			for (enum route route = 0; route < ROUTES; route++)
				if (routed[route] && plays(peer, pattern, route))
					run_peer(bench, pattern->names[route], peer, &plans[route]);
		}
	}
	for (enum route route = 0; route < ROUTES; route++)
		if (routed[route])
			report_print(pattern->names[route]);
}

static const char usage[] =
	"[--quick] [--unix] [--spin] [--reps <1-16>] [--span <ms>]\n"
	"       [--server-cpu <number>] [--client-cpu <number>]\n"
	"       [--only <pattern>] [--peer <name>] [--tls <folder>] [--results <file>]";

static bool has_name(const struct pattern *pattern, const char *name)
{
	for (enum route route = 0; route < ROUTES; route++)
		if (strcmp(name, pattern->names[route]) == 0)
			return true;
	return false;
}

static bool is_pattern(const char *name)
{
	for (unsigned i = 0; i < PATTERNS; i++)
		if (has_name(&patterns[i], name))
			return true;
	return false;
}

static struct options read_options(int argc, char **argv)
{
	struct options options = { .server_cpu = 0, .client_cpu = 1 };
	const struct option_row rows[] = {
		{ "--quick", .flag = &options.quick },
		{ "--unix", .flag = &options.unix_too },
		{ "--spin", .flag = &options.spin },
		{ "--reps", .number = &options.reps, .min = 1, .max = REPORT_REPS_MAX },
		{ "--span", .number = &options.span_ms, .min = 1, .max = 60000 },
		{ "--server-cpu", .number = &options.server_cpu, .max = 1023 },
		{ "--client-cpu", .number = &options.client_cpu, .max = 1023 },
		{ "--only", .text = &options.only },
		{ "--peer", .text = &options.peer },
		{ "--tls", .text = &options.tls },
		{ "--results", .text = &options.results },
	};

	options_read(argc, argv, rows, sizeof(rows) / sizeof(rows[0]), usage);
	if ((options.only != NULL && !is_pattern(options.only)) ||
	    (options.tls != NULL && strlen(options.tls) >= sizeof(((struct rpc_plan *)0)->certs)))
		options_refuse(usage);
	if (options.reps == 0)
		options.reps = options.quick ? contest.quick_reps : contest.reps;
	if (options.span_ms == 0)
		options.span_ms = options.quick ? contest.quick_span_ms : contest.span_ms;
	return options;
}

static int play(const char *role, const char *name)
{
	const struct rpc_peer *peer = contest_find(name);

	if (peer == NULL)
		options_refuse(usage);
	return stage_play(role, peer);
}

static void remove_socket_dir(void)
{
	(void)unlink(socket_path);
	(void)rmdir(socket_dir);
}

static void interrupted(int number)
{
	remove_socket_dir();
	_exit(128 + number);
}

static void make_socket_dir(void)
{
	struct sigaction action = { .sa_handler = interrupted };

	if (mkdtemp(socket_dir) == NULL || atexit(remove_socket_dir) != 0)
		host_die("cannot create a directory for a socket");
	(void)snprintf(socket_path, sizeof(socket_path), "%s/socket", socket_dir);
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	(void)sigaction(SIGHUP, &action, NULL);
}

static struct bench open_bench(const struct options *options)
{
	uint64_t budget_s = options->quick ? contest.quick_budget_s : contest.budget_s;
	struct bench bench = {
		.options = *options,
		.repeat_until_ns = host_now_ns() + budget_s * 1000 * HOST_MS,
	};

	bench.cast = contest_gather(options->peer, options->spin, options->tls != NULL);
	if (bench.cast.count == 0)
		host_die("unknown peer, or not installed");
	return bench;
}

static bool is_chosen(const struct options *options, const struct pattern *pattern)
{
	if (options->only != NULL)
		return has_name(pattern, options->only);
	return (!options->quick || pattern->is_quick) && (!options->spin || pattern->is_spun);
}

static void conclude(const struct options *options, FILE *results)
{
	(void)fputc('\n', stderr);
	contest.print(stderr);
	if (results == NULL)
		return;
	contest.print(results);
	if (fclose(results) != 0)
		host_die("%s is incomplete", options->results);
}

/* Returns whether a measurement failed. */
static bool measure_all(const struct options *options)
{
	struct bench bench;

	make_socket_dir();
	report_print_header();
	bench = open_bench(options);
	for (unsigned i = 0; i < PATTERNS; i++) {
		if (is_chosen(options, &patterns[i]))
			run_pattern(&bench, &patterns[i]);
	}
	return bench.has_failed;
}

int main(int argc, char **argv)
{
	struct options options;
	FILE *results = NULL;
	bool has_failed;

	if (argc == 3 && (strcmp(argv[1], STAGE_SERVER) == 0 || strcmp(argv[1], STAGE_CLIENT) == 0))
		return play(argv[1], argv[2]);
	options = read_options(argc, argv);
	if (options.results != NULL && (results = fopen(options.results, "w")) == NULL)
		host_die("cannot write %s", options.results);
	has_failed = measure_all(&options);
	conclude(&options, results);
	return has_failed ? 1 : 0;
}
