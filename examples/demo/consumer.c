/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer of the demo: calls "echo" at a fixed rate, with the policy failback, and counts the
 * results.
 *
 *     demo_consumer <name> <url> <registry> <calls a second> [<page>]
 *
 * <page> is the address of its admin page. SIGUSR1 pauses the calls, SIGUSR2 resumes them. After
 * SIGTERM the consumer makes no more calls and exits when all calls and tickets have an outcome.
 */
#include "examples/demo/page.h"
#include "examples/demo/secure.h"

#include <spoke/consumer.h>
#include <spoke/histogram.h>
#include <spoke/signals.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define BEAT_NS                                                                                    \
	(10 * NS_PER_MS)           /* shortest interval of calls; several calls per beat if needed \
				    */
#define CALM_NS (1100 * NS_PER_MS) /* longer than the library groups similar events */
#define REST_NS (20 * NS_PER_MS)   /* interval of the check for open calls */
#define GIVE_UP_NS (60 * NS_PER_S) /* exits then in any case; open calls are lost */
#define DRAIN_NS NS_PER_S
#define PER_SECOND_MAX 100000u

static struct {
	struct report report;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	struct spoke_span args;
	struct spoke_alarm beat;
	struct spoke_alarm pulse;
	struct spoke_alarm calm;
	struct spoke_signal ender;
	struct spoke_signal husher;
	struct spoke_signal speaker;
	uint64_t per_second;
	uint64_t owed; /* in billionths of a call */
	uint64_t beat_ns;
	uint64_t give_up_ns;
	uint64_t calls;
	uint64_t ok;
	uint64_t deferred;
	uint64_t failed;
	uint64_t refused;
	uint64_t recovered;
	uint64_t unrecovered;
	uint64_t calm_recovered; /* at the last report that no ticket waits */
	uint64_t pulse_ok;       /* at the last report */
	uint64_t pulse_deferred; /* at the last report */
	uint64_t hushed_ns;      /* time of the pause, and ... */
	uint64_t hushed_beats;   /* ... heartbeats received until then */
	struct spoke_histogram before;
	bool begun; /* to call */
	bool hushed;
	bool silent; /* no answer since the last connection */
} self;

static void count(uint64_t *counts)
{
	struct spoke_ticket_info oldest;

	counts[COUNT_CALLS] = self.calls;
	counts[COUNT_OK] = self.ok;
	counts[COUNT_DEFERRED] = self.deferred;
	counts[COUNT_FAILED] = self.failed;
	counts[COUNT_REFUSED] = self.refused;
	counts[COUNT_RECOVERED] = self.recovered;
	counts[COUNT_UNRECOVERED] = self.unrecovered;
	counts[COUNT_OPEN] = self.calls - self.ok - self.deferred - self.failed;
	if (self.consumer == NULL)
		return;
	counts[COUNT_WAITING] = spoke_consumer_ticket_list(self.consumer, &oldest, 1);
	if (counts[COUNT_WAITING])
		counts[COUNT_TRIES] = oldest.state.attempts;
}

static void done(void *arg, const struct spoke_result *result)
{
	(void)arg;
	if (result->error == SPOKE_OK)
		self.ok++;
	else if (result->error == SPOKE_EDEFERRED)
		self.deferred++;
	else
		self.failed++;
	if (result->error == SPOKE_OK && self.silent) {
		self.silent = false;
		report_event(&self.report, SPOKE_EVENT_OF_NONE, TAG_ANSWERED, 0, NULL,
			     "calls are answered");
	}
}

/* Runs when no call was deferred since the last ticket was settled. */
static void calm(struct spoke_alarm *alarm)
{
	(void)alarm;
	if (spoke_consumer_tickets(self.consumer, NULL) > 0)
		return;
	report_event(&self.report, SPOKE_EVENT_OF_NONE, TAG_CALM, 0, NULL,
		     "no ticket waits any more: %" PRIu64 " answered by a later attempt",
		     self.recovered - self.calm_recovered);
	self.calm_recovered = self.recovered;
}

static void settled(void *arg, const struct spoke_ticket_result *settled)
{
	(void)arg;
	if (settled->settlement == SPOKE_TICKET_SUCCESS)
		self.recovered++;
	else
		self.unrecovered++;
	if (spoke_consumer_tickets(self.consumer, NULL) == 0 &&
	    spoke_alarm_after(self.engine, &self.calm, CALM_NS, calm))
		calm(&self.calm);
}

static void call(void)
{
	int error = spoke_call(self.echo, self.args, NULL, done, NULL, NULL);

	if (error)
		self.refused++;
	else
		self.calls++;
}

/* Missed beats of a late turn are skipped. */
static void beat(struct spoke_alarm *alarm)
{
	(void)alarm;
	if (self.hushed)
		return;
	for (self.owed += self.per_second * self.beat_ns; self.owed >= NS_PER_S;
	     self.owed -= NS_PER_S)
		call();
}

static void pulse(struct spoke_alarm *alarm)
{
	struct spoke_histogram now;
	struct spoke_histogram since;

	(void)alarm;
	spoke_engine_latency(self.engine, &now);
	since = now;
	spoke_histogram_since(&since, &self.before);
	self.before = now;
	report_event(&self.report, SPOKE_EVENT_OF_NONE, TAG_PULSE, 0, NULL,
		     "last second: %" PRIu64 " calls answered, %" PRIu64
		     " deferred; p50 %.2f ms, p99 %.2f ms",
		     self.ok - self.pulse_ok, self.deferred - self.pulse_deferred,
		     (double)spoke_histogram_percentile(&since, 500000) / 1e6,
		     (double)spoke_histogram_percentile(&since, 990000) / 1e6);
	self.pulse_ok = self.ok;
	self.pulse_deferred = self.deferred;
}

static uint64_t beats(void)
{
	return spoke_stat_get(self.engine, SPOKE_STAT_PROBES_READ) +
	       spoke_stat_get(self.engine, SPOKE_STAT_PROBE_ANSWERS_READ);
}

static void hush(struct spoke_signal *husher)
{
	(void)husher;
	self.hushed = true;
	self.hushed_ns = spoke_engine_now(self.engine);
	self.hushed_beats = beats();
	report_event(&self.report, SPOKE_EVENT_OF_NONE, TAG_TOLD, 0, NULL,
		     "pauses its calls: the connection is silent");
}

static void speak(struct spoke_signal *speaker)
{
	(void)speaker;
	if (!self.hushed)
		return;
	self.hushed = false;
	self.silent = true;
	report_event(&self.report, SPOKE_EVENT_OF_HEARTBEAT, TAG_TOLD, 0, NULL,
		     "no calls for %.1f s: %" PRIu64 " heartbeats kept the connection",
		     (double)(spoke_engine_now(self.engine) - self.hushed_ns) / (double)NS_PER_S,
		     beats() - self.hushed_beats);
}

/* Starts the calls at the first connection. */
static void begin(void)
{
	int error = spoke_alarm_every(self.engine, &self.beat, self.beat_ns, beat);

	if (!error)
		error = spoke_alarm_every(self.engine, &self.pulse, NS_PER_S, pulse);
	self.begun = error == 0;
}

static void changed(void *arg, const struct spoke_link_event *event)
{
	if (event->change == SPOKE_LINK_CONNECTED || event->change == SPOKE_LINK_RECOVERED)
		self.silent = true;
	report_link(arg, event);
	if (event->change == SPOKE_LINK_CONNECTED && !self.begun)
		begin();
}

/* --- the end */

static void rest(struct spoke_alarm *alarm)
{
	uint64_t open = self.calls - self.ok - self.deferred - self.failed;
	uint64_t unsettled = self.deferred - self.recovered - self.unrecovered;

	if (open + unsettled > 0 && spoke_engine_now(self.engine) < self.give_up_ns)
		return;
	(void)spoke_alarm_cancel(alarm);
	if (open + unsettled == 0)
		report_event(&self.report, SPOKE_EVENT_OF_NONE, TAG_RESTS, 0, NULL,
			     "every call has an outcome");
	else
		report_event(&self.report, SPOKE_EVENT_OF_NONE, TAG_RESTS, 0, NULL,
			     "gives up: %" PRIu64 " calls and %" PRIu64 " tickets have no outcome",
			     open, unsettled);
	if (spoke_engine_drain(self.engine, DRAIN_NS))
		spoke_engine_stop(self.engine);
}

static void end(struct spoke_signal *ender)
{
	(void)ender;
	self.begun = true; /* or never to */
	(void)spoke_alarm_cancel(&self.pulse);
	(void)spoke_alarm_cancel(&self.calm);
	self.give_up_ns = spoke_engine_now(self.engine) + GIVE_UP_NS;
	if (spoke_alarm_every(self.engine, &self.beat, REST_NS, rest))
		spoke_engine_stop(self.engine);
}

/* --- the beginning */

static int consume(char **argv)
{
	struct spoke_consumer_options options = {
		.url = argv[2],
		.registry = argv[3],
		.tls = secure_options(false),
		.changed = changed,
		.changed_arg = &self.report,
		.settled = settled,
	};
	struct spoke_builder builder;
	unsigned char memory[64];
	int error;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, argv[1]);
	error = spoke_builder_finish(&builder, &self.args);
	if (!error && argv[5] && page_open(&self.report, argv[1], argv[5], false) == NULL)
		return SPOKE_ESYSTEM;
	if (!error)
		error = spoke_consumer_new(self.engine, &options, &self.consumer);
	if (!error)
		error = spoke_consumer_method(self.consumer, "echo", NULL, &self.echo);
	if (!error)
		error = spoke_signal_watch(self.engine, &self.ender, SIGTERM, end);
	if (!error)
		error = spoke_signal_watch(self.engine, &self.husher, SIGUSR1, hush);
	if (!error)
		error = spoke_signal_watch(self.engine, &self.speaker, SIGUSR2, speak);
	if (error)
		(void)fprintf(stderr, "%s: %s\n", argv[1], spoke_engine_why(self.engine));
	return error ? error : spoke_engine_run(self.engine);
}

int main(int argc, char **argv)
{
	int error;

	if (argc != 5 && argc != 6) {
		(void)fprintf(stderr, "demo_consumer: must be started by demo_driver\n");
		return 2;
	}
	self.per_second = strtoull(argv[4], NULL, 10);
	if (self.per_second == 0 || self.per_second > PER_SECOND_MAX)
		return 2;
	self.beat_ns = NS_PER_S / self.per_second;
	if (self.beat_ns < BEAT_NS)
		self.beat_ns = BEAT_NS;
	error = spoke_engine_new(NULL, &self.engine);
	if (!error)
		error = report_begin(&self.report, self.engine, count);
	if (!error)
		error = consume(argv);
	if (error)
		(void)fprintf(stderr, "%s: %s\n", argv[1], spoke_strerror(error));
	else
		report_counts(&self.report);
	spoke_engine_free(self.engine);
	return error != 0;
}
