/* SPDX-License-Identifier: Apache-2.0 */
/* spoke ping: measures the round-trip time to a provider repeatedly. */
#include "examples/spoke/ending.h"
#include "examples/spoke/json.h"
#include "examples/spoke/options.h"
#include "examples/spoke/secure.h"
#include "examples/spoke/shown.h"
#include "examples/spoke/stranger.h"
#include "examples/spoke/target.h"
#include "examples/spoke/terminal.h"

#include <spoke/consumer.h>
#include <spoke/histogram.h>
#include <spoke/host.h>
#include <spoke/signals.h>
#include <spoke/stats.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define VERB "ping"
#define INTERVAL_NS UINT64_C(1000000000)

enum {
	COUNT,
	INTERVAL,
	TIMEOUT,
	HEARTBEAT,
	SERVICE,
	WIRE,
	TOKEN,
	TOKEN_FILE,
	TOKEN_PLAIN,
	TLS,
	CERT,
	KEY,
	CA,
	PEER,
	QUIET,
	JSON,
};

static const struct option_row rows[] = {
	[COUNT] = { "count", 'c', "COUNT", "exit after COUNT pings (default: run until SIGINT)" },
	[INTERVAL] = { "interval", 'i', "TIME", "time between pings (default 1s)" },
	[TIMEOUT] = { "timeout", 't', "TIME", "timeout per ping (default: URL, else 1s)" },
	[HEARTBEAT] = { "heartbeat", 0, "TIME",
			"heartbeat interval; 0: no heartbeats (default 60s)" },
	[SERVICE] = { "service", 's', "NAME", "service to call, if the URL does not name one" },
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
	[QUIET] = { "quiet", 'q', NULL, "print only the summary" },
	[JSON] = { "json", 0, NULL, "print pings and summary as JSON" },
};

static const struct usage usage = {
	.verb = VERB,
	.operands = "URL",
	.about =
		"Connects to a provider and calls the method \"$echo\", which every provider has,\n"
		"repeatedly. Prints the time of each call, connection events, and at the end the\n"
		"minimum, mean, 99th percentile and maximum. Without a service any answer counts,\n"
		"even the error that the service does not exist. Exit status: 3 if a call timed "
		"out,\n"
		"4 if no connection could be made.",
	.rows = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
	.examples =
		"  spoke ping tcp://127.0.0.1:20880 -c 3\n"
		"  spoke ping dubbo://127.0.0.1:20880/demo.EchoService --interval 10ms -c 1000 -q",
};

struct pinger {
	struct spoke_consumer_options options;
	struct secure secure;
	struct target target;
	const char *place;
	const char *wire;
	const char *service;
	uint64_t count; /* 0: unlimited */
	uint64_t interval_ns;
	bool quiet;
	bool json;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	struct spoke_alarm next;
	struct spoke_signal interrupt;
	struct spoke_signal term;
	uint64_t sent;
	uint64_t ended;
	uint64_t answered;
	uint64_t forbidden; /* of these: the provider does not let this caller in */
	uint64_t timeouts;
	bool connected;
	bool described; /* the TLS of the connection has been printed */
	bool stopping;
	const char *refused; /* why the ping could not begin; NULL: it did */
	uint64_t least_ns;
	struct spoke_histogram times;
};

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static bool is_over(const struct pinger *pinger)
{
	bool all_sent = pinger->stopping || (pinger->count && pinger->sent == pinger->count);

	return all_sent && pinger->ended == pinger->sent;
}

/* --- pings */

/* Has the provider answered, even with the error that the service does not exist? */
static bool is_alive(int error)
{
	return !error || error == SPOKE_ENOSERVICE || error == SPOKE_EREMOTE ||
	       error == SPOKE_EFORBIDDEN;
}

static void print_one(const struct pinger *pinger, const struct spoke_result *result)
{
	uint64_t ns = result->queued_ns + result->waited_ns;
	bool alive = is_alive(result->error);

	if (pinger->quiet)
		return;
	if (pinger->json) {
		printf("{\"number\":%" PRIu64 ",\"ok\":%s,\"error\":\"%s\",\"ms\":%.3f}\n",
		       pinger->ended, alive ? "true" : "false",
		       alive ? "OK" : spoke_errname(result->error), ms(ns));
	} else if (alive) {
		printf("%" PRIu64 ": %s%.3f ms%s\n", pinger->ended, terminal_colour(TERMINAL_GREEN),
		       ms(ns), terminal_colour(TERMINAL_NORMAL));
	} else {
		printf("%" PRIu64 ": %s%s%s%.*s%s\n", pinger->ended, terminal_colour(TERMINAL_RED),
		       pinger->refused ? pinger->refused : spoke_strerror(result->error),
		       result->error_text.len ? ": " : "", (int)result->error_text.len,
		       (const char *)result->error_text.data, terminal_colour(TERMINAL_NORMAL));
	}
	(void)ending_show();
}

/* Returns the whole days that a certificate is valid from now on. */
static int64_t days_left(int64_t ends_s)
{
	const struct spoke_env *env = spoke_host_env();
	int64_t left_s = ends_s - (int64_t)(env->wall(env->ctx) / UINT64_C(1000000000));

	return left_s > 0 ? left_s / 86400 : 0;
}

/* Prints the TLS of the connection once. */
static void describe(struct pinger *pinger)
{
	struct spoke_tls_info info;

	if (pinger->described || !pinger->secure.used ||
	    !spoke_consumer_tls(pinger->consumer, 0, &info))
		return;
	pinger->described = true;
	if (pinger->json) {
		printf("{\"tls\":\"%s\",\"suite\":\"%s\",\"names\":", info.version, info.suite);
		json_print_text(info.names, strlen(info.names), stdout);
		printf(",\"days\":%" PRId64 "}\n", days_left(info.ends_s));
		return;
	}
	printf("%s, %s; the provider is %s; its certificate ends in %" PRId64 " days\n",
	       info.version, info.suite, *info.names ? info.names : "without a name",
	       days_left(info.ends_s));
}

static void interrupted(struct pinger *pinger)
{
	pinger->stopping = true;
	spoke_engine_stop(pinger->engine);
}

static void done(void *arg, const struct spoke_result *result)
{
	struct pinger *pinger = arg;
	uint64_t ns = result->queued_ns + result->waited_ns;

	pinger->ended++;
	if (is_alive(result->error)) {
		pinger->answered++;
		pinger->forbidden += result->error == SPOKE_EFORBIDDEN;
		pinger->connected = true;
		spoke_histogram_add(&pinger->times, ns);
		if (pinger->answered == 1 || ns < pinger->least_ns)
			pinger->least_ns = ns;
	} else if (spoke_error_exit(result->error) == VERB_TIMEOUT) {
		pinger->timeouts++;
	}
	describe(pinger);
	print_one(pinger, result);
	if (!ending_show()) /* the reader has closed the pipe */
		interrupted(pinger);
	if (is_over(pinger))
		spoke_engine_stop(pinger->engine);
}

static void send_one(struct pinger *pinger)
{
	const struct spoke_span none = { NULL, 0 };
	struct spoke_result refused = { .error = SPOKE_OK };

	pinger->sent++;
	refused.error = spoke_call(pinger->method, none, NULL, done, pinger, NULL);
	if (!refused.error)
		return;
	pinger->refused = spoke_engine_why(pinger->engine);
	done(pinger, &refused);
	pinger->refused = NULL;
}

static void next_due(struct spoke_alarm *alarm)
{
	struct pinger *pinger = spoke_container_of(alarm, struct pinger, next);

	if (pinger->stopping || (pinger->count && pinger->sent == pinger->count))
		(void)spoke_alarm_cancel(alarm);
	else
		send_one(pinger);
}

static void changed(void *arg, const struct spoke_link_event *event)
{
	struct pinger *pinger = arg;

	if (event->change == SPOKE_LINK_CONNECTED)
		pinger->connected = true;
	if (pinger->stopping || pinger->quiet)
		return;
	if (event->change == SPOKE_LINK_CLOSED && event->error == SPOKE_ECLOSED)
		return;
	(void)ending_show();
	(void)fprintf(stderr, "%s: %s%s%s", event->name, spoke_link_change_name(event->change),
		      event->error ? ": " : "", ending_reason(event));
	if (event->change == SPOKE_LINK_SUSPECT)
		(void)fprintf(stderr, ": %u heartbeats missed", event->missed);
	(void)fputc('\n', stderr);
}

static void interrupt_came(struct spoke_signal *signal)
{
	interrupted(spoke_container_of(signal, struct pinger, interrupt));
}

static void term_came(struct spoke_signal *signal)
{
	interrupted(spoke_container_of(signal, struct pinger, term));
}

/* --- the run */

static void print_summary(const struct pinger *pinger)
{
	const struct spoke_histogram *times = &pinger->times;
	double least = ms(pinger->least_ns);
	double p99 = ms(spoke_histogram_percentile(times, 990000));
	double most = ms(times->max);
	double mean = ms(spoke_histogram_mean(times));

	if (pinger->json) {
		printf("{\"sent\":%" PRIu64 ",\"answered\":%" PRIu64 ",\"timed_out\":%" PRIu64
		       ",\"min_ms\":%.3f,\"avg_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f"
		       ",\"forbidden\":%" PRIu64 "}\n",
		       pinger->ended, pinger->answered, pinger->timeouts, least, mean, p99, most,
		       pinger->forbidden);
		return;
	}
	printf("%" PRIu64 " sent, %" PRIu64 " answered, %" PRIu64 " timed out", pinger->ended,
	       pinger->answered, pinger->timeouts);
	if (pinger->forbidden)
		printf(", %" PRIu64 " forbidden", pinger->forbidden);
	if (pinger->answered)
		printf("; min %.3f avg %.3f p99 %.3f max %.3f ms", least, mean, p99, most);
	(void)putchar('\n');
}

static int fail(const struct pinger *pinger, int error)
{
	const char *why = pinger->engine ? spoke_engine_why(pinger->engine) : "";

	return ending_say(spoke_error_exit(error), VERB, "%s", *why ? why : spoke_strerror(error));
}

static int run(struct pinger *pinger)
{
	const struct spoke_method_options of = {
		.service = *pinger->target.service ? pinger->target.service : NULL,
	};
	int error = ending_quiet_engine(&(struct spoke_engine_options){ 0 }, &pinger->engine);

	pinger->options.url = pinger->target.url;
	pinger->options.tls = secure_options(&pinger->secure);
	pinger->options.changed = changed;
	pinger->options.changed_arg = pinger;
	if (!error)
		error = spoke_consumer_new(pinger->engine, &pinger->options, &pinger->consumer);
	if (!error)
		error = spoke_consumer_method(pinger->consumer, "$echo", &of, &pinger->method);
	if (!error)
		error = spoke_signal_watch(pinger->engine, &pinger->interrupt, SIGINT,
					   interrupt_came);
	if (!error)
		error = spoke_signal_watch(pinger->engine, &pinger->term, SIGTERM, term_came);
	if (!error)
		error = spoke_alarm_every(pinger->engine, &pinger->next, pinger->interval_ns,
					  next_due);
	if (error)
		return fail(pinger, error);
	send_one(pinger);
	/* A ping that is refused at once may be the last one, and a stop ends only a run that has
	 * begun. */
	error = is_over(pinger) ? SPOKE_OK : spoke_engine_run(pinger->engine);
	if (error)
		return fail(pinger, error);
	pinger->stopping = true;
	print_summary(pinger);
	if (!pinger->connected)
		return VERB_UNREACHABLE;
	if (pinger->answered == 0 && pinger->ended > 0 && !pinger->secure.used)
		stranger_print(pinger->engine, VERB, &pinger->target);
	return pinger->timeouts                    ? VERB_TIMEOUT
	       : pinger->answered == pinger->ended ? VERB_OK
						   : VERB_UNREACHABLE;
}

/* --- options and operands */

static bool take_option(struct pinger *pinger, int row, const struct options *options)
{
	switch (row) {
	case COUNT:
		return options_count(options, 1, 0, &pinger->count);
	case INTERVAL:
		if (!options_duration(options, 0, &pinger->interval_ns))
			return false;
		if (pinger->interval_ns < 1000000)
			(void)options_wrong(options, "must be at least 1ms");
		return pinger->interval_ns >= 1000000;
	case TIMEOUT:
		return options_duration(options, 0, &pinger->options.timeout_ns);
	case HEARTBEAT:
		return options_heartbeat(options, &pinger->options.heartbeat_ns);
	case SERVICE:
		pinger->service = options->value;
		return true;
	case WIRE:
		pinger->wire = options->value;
		return true;
	case TOKEN:
		pinger->options.token = options->value;
		return true;
	case TOKEN_FILE:
		pinger->options.token_file = options->value;
		return true;
	case TOKEN_PLAIN:
		pinger->options.token_plain = true;
		return true;
	case TLS:
	case CERT:
	case KEY:
	case CA:
	case PEER:
		return secure_take(&pinger->secure, row - TLS, options);
	case QUIET:
		pinger->quiet = true;
		return true;
	case JSON:
	default:
		pinger->json = true;
		return true;
	}
}

static int take_operands(struct pinger *pinger, const struct options *options)
{
	const char *service = pinger->service;
	int end;

	if (options->operand_count != 1)
		return options_lacking(options, "expected one URL");
	pinger->place = options->operands[0];
	if (target_is_registry(pinger->place))
		return ending_say(VERB_USAGE, VERB,
				  "%s: a registry cannot be pinged; spoke ls lists its providers",
				  shown_of(pinger->place).text);
	end = target_read(&pinger->target, VERB, pinger->place, NULL, pinger->wire);
	if (end != VERB_OK)
		return end;
	if (!service)
		service = target_has_service(&pinger->target) ? "" : "spoke.Ping";
	(void)snprintf(pinger->target.service, sizeof(pinger->target.service), "%s", service);
	return end;
}

int ping_verb(int argc, char **argv)
{
	struct options options = options_of(&usage, argc, argv);
	struct pinger pinger = { .interval_ns = INTERVAL_NS };
	int end;
	int row;

	while ((row = options_next(&options)) >= 0)
		if (!take_option(&pinger, row, &options))
			return VERB_USAGE;
	if (row == OPTIONS_STOP)
		return options.end;
	end = take_operands(&pinger, &options);
	if (end == VERB_OK)
		end = run(&pinger);
	spoke_engine_free(pinger.engine);
	target_fini(&pinger.target);
	return end;
}
