/* SPDX-License-Identifier: Apache-2.0 */
/* spoke bench: measures the throughput and the latency of a provider. */
#include "examples/spoke/ending.h"
#include "examples/spoke/files.h"
#include "examples/spoke/load.h"
#include "examples/spoke/load_report.h"
#include "examples/spoke/options.h"
#include "examples/spoke/secure.h"
#include "examples/spoke/shown.h"
#include "examples/spoke/stranger.h"
#include "examples/spoke/target.h"
#include "examples/spoke/terminal.h"
#include "examples/spoke/unlisted.h"
#include "examples/spoke/values.h"

#include <spoke/host.h>
#include <spoke/signals.h>
#include <spoke/stats.h>

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
#define PROGRESS_NS (SECOND / 4)
#define TICK_NS 50000u /* resolution of an open loop's start times */
#define SIZE_MAX_BYTES (UINT64_C(4) << 20)
#define CONNECTIONS_MAX 10000u
#define OTHER_FILES UINT64_C(64) /* than connections */
#define RATE_MAX 1e7

enum {
	CONCURRENCY,
	RATE,
	CALLS,
	DURATION,
	WARM_UP,
	CONNECTIONS,
	SIZE,
	DATA,
	TIMEOUT,
	WIRE,
	TOKEN,
	TOKEN_FILE,
	TOKEN_PLAIN,
	TLS,
	CERT,
	KEY,
	CA,
	PEER,
	AS_JSON,
	QUIET,
};

static const struct option_row rows[] = {
	[CONCURRENCY] = { "concurrency", 'c', "COUNT", "calls in flight (default 1)" },
	[RATE] = { "rate", 'r', "NUMBER", "start NUMBER calls per second instead" },
	[CALLS] = { "calls", 'n', "COUNT", "exit after COUNT calls" },
	[DURATION] = { "duration", 'd', "TIME", "exit after TIME (default 10s)" },
	[WARM_UP] = { "warm-up", 0, "TIME", "run for TIME before counting (default 0.5s)" },
	[CONNECTIONS] = { "connections", 0, "COUNT",
			  "connections, at most 10000 (default 1); see connections.per.peer.max" },
	[SIZE] = { "size", 's', "BYTES", "use a string of BYTES bytes as the argument" },
	[DATA] = { "data", 0, "JSON", "arguments; @FILE: read a file, @-: read stdin" },
	[TIMEOUT] = { "timeout", 't', "TIME", "timeout per call (default 1s)" },
	[WIRE] = { "wire", 'w', "WIRE",
		   "dubbo or mprpc, if the URL does not specify it (default dubbo)" },
	[TOKEN] = { "token", 0, "TEXT", "token to send; " SECURE_SEEN },
	[TOKEN_FILE] = { "token-file", 0, "FILE", "file with the token, with mode 600" },
	[TOKEN_PLAIN] = { "token-plain", 0, NULL,
			  "send it over plain TCP to another machine, too" },
	[TLS] = SECURE_TLS,
	[CERT] = SECURE_CERT,
	[KEY] = SECURE_KEY,
	[CA] = SECURE_CA,
	[PEER] = SECURE_PEER,
	[AS_JSON] = { "json", 0, NULL, "print one line of JSON; times in ns" },
	[QUIET] = { "quiet", 'q', NULL, "print only the report" },
};

static const struct usage usage = {
	"bench",
	"URL SERVICE.METHOD [JSON...]",
	"Calls a method repeatedly and reports throughput and latency. Without --rate a call\n"
	"starts when another one has ended (closed loop). With --rate calls start on schedule,\n"
	"independent of earlier calls (open loop), and latency counts from the scheduled start.\n"
	"The latency includes calls that timed out. Ctrl-C stops the run and prints the report;\n"
	"a second Ctrl-C does not wait for outstanding answers.",
	rows,
	sizeof(rows) / sizeof(rows[0]),
	"  spoke bench tcp://127.0.0.1:20880 demo.EchoService.echo '\"hi\"' -c 64 -d 5s\n"
	"  spoke bench tcp://127.0.0.1:20880 demo.EchoService.echo -s 1KiB --rate 20000 --json",
};

struct bench {
	struct load_plan plan;
	struct load load;
	struct secure secure;
	struct target target;
	struct values values;
	const char *data;
	const char *wire;
	struct spoke_alarm progress;
	struct spoke_signal interrupt;
	struct spoke_signal terminate;
	struct spoke_engine *engine;
	uint64_t size;
	bool sized;
	bool json;
	bool quiet;
};

static bool read_count(const struct options *options, uint64_t max, uint32_t *ret)
{
	uint64_t count;

	if (!options_count(options, 1, max, &count))
		return false;
	*ret = (uint32_t)count;
	return true;
}

static bool read_option(struct bench *bench, const struct options *options, int row)
{
	struct load_plan *plan = &bench->plan;

	switch (row) {
	case CONCURRENCY:
		return read_count(options, LOAD_OUTSTANDING_MAX, &plan->outstanding);
	case RATE:
		return options_number(options, 0.001, RATE_MAX, &plan->rate);
	case CALLS:
		return options_count(options, 1, 0, &plan->calls);
	case DURATION:
		return options_duration(options, 0, &plan->duration_ns);
	case WARM_UP:
		return options_duration(options, 0, &plan->warm_up_ns);
	case CONNECTIONS:
		return read_count(options, CONNECTIONS_MAX, &plan->connections);
	case SIZE:
		bench->sized = true;
		return options_size(options, SIZE_MAX_BYTES, &bench->size);
	case TIMEOUT:
		return options_duration(options, 0, &plan->timeout_ns);
	case DATA:
		bench->data = options->value;
		return true;
	case WIRE:
		bench->wire = options->value;
		return true;
	case TOKEN:
		plan->token = options->value;
		return true;
	case TOKEN_FILE:
		plan->token_file = options->value;
		return true;
	case TOKEN_PLAIN:
		plan->token_plain = true;
		return true;
	case TLS:
	case CERT:
	case KEY:
	case CA:
	case PEER:
		return secure_take(&bench->secure, row - TLS, options);
	case QUIET:
		bench->quiet = true;
		return true;
	default:
		bench->json = true;
		return true;
	}
}

/* --- operands */

static int pack_size(struct bench *bench)
{
	struct spoke_builder *builder = &bench->values.args_builder;
	char *text = malloc(bench->size + 1);
	int error;

	if (!text)
		return ending_say(VERB_REMOTE, "bench", "out of memory");
	memset(text, 'x', bench->size);
	spoke_pack_str(builder, text, bench->size);
	free(text);
	error = spoke_builder_finish(builder, &bench->values.args);
	return error ? ending_say(VERB_USAGE, "bench", "%s", spoke_strerror(error)) : VERB_OK;
}

static int read_args(struct bench *bench, const struct options *options)
{
	bool listed = options->operand_count > 2;

	if (bench->sized + (bench->data != NULL) + listed > 1)
		return options_lacking(options, "--size, --data and arguments exclude each other");
	if (bench->sized)
		return pack_size(bench);
	if (bench->data)
		return values_data(&bench->values, "bench", bench->data);
	return values_args(&bench->values, "bench", options->operands + 2,
			   options->operand_count - 2);
}

static int read_operands(struct bench *bench, const struct options *options)
{
	struct load_plan *plan = &bench->plan;
	int end;

	if (options->operand_count < 1)
		return options_lacking(options, "which URL?");
	if (options->operand_count < 2)
		return options_lacking(options, "URL and SERVICE.METHOD missing");
	end = read_args(bench, options);
	if (end == VERB_OK)
		end = target_read(&bench->target, "bench", options->operands[0],
				  options->operands[1], bench->wire);
	plan->place = options->operands[0];
	plan->url = bench->target.url;
	plan->registry = bench->target.registry;
	plan->service = *bench->target.service ? bench->target.service : NULL;
	plan->method = bench->target.method;
	plan->args = bench->values.args;
	plan->tls = secure_options(&bench->secure);
	return end;
}

/* --- the run */

static void show_progress(struct spoke_alarm *alarm)
{
	load_report_progress(&spoke_container_of(alarm, struct bench, progress)->load);
}

static void interrupted(struct spoke_signal *signal)
{
	load_stop(&spoke_container_of(signal, struct bench, interrupt)->load);
}

static void terminated(struct spoke_signal *signal)
{
	load_stop(&spoke_container_of(signal, struct bench, terminate)->load);
}

static int run(struct bench *bench)
{
	struct spoke_engine_options options = { .tick_ns = TICK_NS };
	uint64_t needed = bench->plan.connections + OTHER_FILES;
	uint64_t allowed = files_raise(needed);
	int error;

	if (allowed < needed) {
		return ending_say(VERB_REMOTE, "bench",
				  "%" PRIu32 " connections need %" PRIu64
				  " open files, and the limit is %" PRIu64 "; see ulimit -n",
				  bench->plan.connections, needed, allowed);
	}
	error = ending_quiet_engine(&options, &bench->engine);
	if (error)
		return ending_say(VERB_REMOTE, "bench", "%s", spoke_strerror(error));
	/* Connections may take all descriptors that are left. */
	error = spoke_signal_watch(bench->engine, &bench->interrupt, SIGINT, interrupted);
	if (!error)
		error = spoke_signal_watch(bench->engine, &bench->terminate, SIGTERM, terminated);
	if (!error)
		error = load_begin(&bench->load, bench->engine, &bench->plan);
	if (error)
		return ending_say(spoke_error_exit(error), "bench", "%s",
				  *spoke_engine_why(bench->engine) ? spoke_engine_why(bench->engine)
								   : spoke_strerror(error));
	if (terminal_err() && !bench->quiet)
		error = spoke_alarm_every(bench->engine, &bench->progress, PROGRESS_NS,
					  show_progress);
	if (!error)
		error = spoke_engine_run(bench->engine);
	terminal_progress_end();
	if (error)
		return ending_say(VERB_REMOTE, "bench", "%s", spoke_strerror(error));
	if (bench->load.unreachable) {
		char text[256];

		ending_cause(bench->load.reason, (struct spoke_span){ NULL, 0 },
			     bench->load.unreachable, text, sizeof(text));
		(void)ending_say(VERB_UNREACHABLE, "bench", "%s cannot be reached: %s",
				 shown_of(bench->plan.place).text, text);
		if (bench->target.registry)
			unlisted_print(bench->engine, "bench", true);
		return VERB_UNREACHABLE;
	}
	if (bench->json)
		load_report_json(&bench->load);
	else
		load_report_text(&bench->load);
	if (!bench->json && !bench->secure.used)
		stranger_print(bench->engine, "bench", &bench->target);
	return load_report_end(&bench->load);
}

int bench_verb(int argc, char **argv)
{
	static struct bench bench; /* large: contains a histogram */
	struct options options = options_of(&usage, argc, argv);
	int row;
	int end;

	bench.plan.env = spoke_host_env();
	bench.plan.outstanding = 1;
	bench.plan.connections = 1;
	bench.plan.duration_ns = 10 * SECOND;
	bench.plan.warm_up_ns = SECOND / 2;
	bench.plan.timeout_ns = SECOND;
	while ((row = options_next(&options)) >= 0)
		if (!read_option(&bench, &options, row))
			return VERB_USAGE;
	if (row == OPTIONS_STOP)
		return options.end;
	values_init(&bench.values);
	end = read_operands(&bench, &options);
	if (end == VERB_OK)
		end = run(&bench);
	spoke_engine_free(bench.engine);
	load_end(&bench.load);
	target_fini(&bench.target);
	values_fini(&bench.values);
	return end;
}
