/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A buyer of the demo: orders from a shop that remembers requests, so that an order may be repeated
 * after a lost connection, or a lost buyer, although it must not run twice.
 *
 *     demo_buyer <name> <url> <registry> [<journal>]
 *
 * It orders once; with a journal three times, unless the journal has orders of the process before.
 * SIGTERM ends it.
 */
#include "examples/demo/report.h"
#include "examples/demo/secure.h"

#include <spoke/consumer.h>
#include <spoke/signals.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#define DRAIN_NS UINT64_C(1000000000)
#define ORDERS 3u /* with a journal */

static struct {
	struct report report;
	struct spoke_engine *engine;
	const char *name;
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	struct spoke_method *order;
	struct spoke_signal ender;
	unsigned orders; /* to make */
	bool begun;
	uint64_t calls;
	uint64_t ok;
	uint64_t deferred;
	uint64_t failed;
	uint64_t recovered; /* tickets that were answered */
	uint64_t unrecovered;
	uint64_t survived; /* tickets of the process before */
} self;

static void count(uint64_t *counts)
{
	counts[COUNT_CALLS] = self.calls;
	counts[COUNT_OK] = self.ok;
	counts[COUNT_DEFERRED] = self.deferred;
	counts[COUNT_FAILED] = self.failed;
	counts[COUNT_OPEN] = self.calls - self.ok - self.deferred - self.failed;
	counts[COUNT_RECOVERED] = self.recovered;
	counts[COUNT_UNRECOVERED] = self.unrecovered;
	counts[COUNT_SURVIVED] = self.survived;
	if (self.consumer)
		counts[COUNT_WAITING] = spoke_consumer_tickets(self.consumer, NULL);
}

static void note(const struct spoke_result *result)
{
	if (result->error == SPOKE_OK)
		self.ok++;
	else if (result->error == SPOKE_EDEFERRED)
		self.deferred++;
	else
		self.failed++;
}

static void call(struct spoke_method *method, spoke_call_done_fn done)
{
	int error = spoke_call_with(method, SPOKE_ARGS(self.name), done, NULL);

	if (error)
		(void)fprintf(stderr, "%s: %s\n", self.name, spoke_strerror(error));
	else
		self.calls++;
}

static void ordered(void *arg, const struct spoke_result *result)
{
	char text[128];

	(void)arg;
	note(result);
	if (result->error == SPOKE_EDEFERRED)
		return;
	(void)spoke_result_print(result, text, sizeof(text));
	report_event(&self.report, SPOKE_EVENT_OF_NONE, TAG_ANSWERED, result->attempts, NULL,
		     "the order is answered at attempt %" PRIu32 ": %s", result->attempts, text);
}

/* With its first answer the shop has told which instance it is, and that it remembers requests. */
static void known(void *arg, const struct spoke_result *result)
{
	(void)arg;
	note(result);
	for (unsigned i = 0; result->error == SPOKE_OK && i < self.orders; i++)
		call(self.order, ordered);
}

static void begin(void)
{
	if (self.begun || self.orders == 0 || spoke_consumer_ready(self.consumer) == 0)
		return;
	self.begun = true;
	call(self.echo, known);
}

static void changed(void *arg, const struct spoke_link_event *event)
{
	report_link(arg, event);
	if (event->change == SPOKE_LINK_CONNECTED)
		begin();
}

static void recovered(void *arg, const struct spoke_recovered *found)
{
	(void)arg;
	self.survived = found->tickets;
	if (found->error == SPOKE_OK && found->tickets == 0) {
		self.orders = ORDERS;
		begin();
		return;
	}
	report_event(&self.report, SPOKE_EVENT_OF_RETRY, TAG_TOLD, 0, NULL,
		     "goes on with %" PRIu64 " orders in its journal", found->tickets);
}

static void settled(void *arg, const struct spoke_ticket_result *ticket)
{
	(void)arg;
	if (ticket->settlement == SPOKE_TICKET_SUCCESS)
		self.recovered++;
	else
		self.unrecovered++;
	report_event(&self.report, SPOKE_EVENT_OF_RETRY, TAG_ANSWERED, ticket->attempts, NULL,
		     "an order is settled at attempt %" PRIu32 ": %s", ticket->attempts,
		     spoke_ticket_settlement_name(ticket->settlement));
}

static void end(struct spoke_signal *ender)
{
	(void)ender;
	if (spoke_engine_drain(self.engine, DRAIN_NS))
		spoke_engine_stop(self.engine);
}

static int buy(char **argv)
{
	const struct spoke_consumer_options options = {
		.url = argv[2],
		.registry = argv[3],
		.tls = secure_options(false),
		.changed = changed,
		.changed_arg = &self.report,
		.journal = argv[4],
		.settled = argv[4] ? settled : NULL,
		.recovered = recovered,
	};
	int error = spoke_consumer_new(self.engine, &options, &self.consumer);

	self.orders = argv[4] ? 0 : 1;
	if (!error)
		error = spoke_consumer_method(self.consumer, "echo", NULL, &self.echo);
	if (!error)
		error = spoke_consumer_method(self.consumer, "order", NULL, &self.order);
	if (!error)
		error = spoke_signal_watch(self.engine, &self.ender, SIGTERM, end);
	if (error)
		(void)fprintf(stderr, "%s: %s\n", argv[1], spoke_engine_why(self.engine));
	return error ? error : spoke_engine_run(self.engine);
}

int main(int argc, char **argv)
{
	int error;

	if (argc != 4 && argc != 5) {
		(void)fprintf(stderr, "demo_buyer: must be started by demo_driver\n");
		return 2;
	}
	self.name = argv[1];
	error = spoke_engine_new(NULL, &self.engine);
	if (!error)
		error = report_begin(&self.report, self.engine, count);
	if (!error)
		error = buy(argv);
	if (error)
		(void)fprintf(stderr, "%s: %s\n", argv[1], spoke_strerror(error));
	else
		report_counts(&self.report);
	spoke_engine_free(self.engine);
	return error != 0;
}
