/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker of the demo: asks for a lease, and writes to a service for as long as it holds the
 * lease. It asks again after it has lost the lease or given it back.
 *
 *     demo_worker <name> <url> <registry> <store> <time to live of the lease in ns> [<page>]
 *
 * <page> is the address of its admin page. SIGUSR1 gives the lease back. SIGTERM gives the lease
 * back and ends the worker.
 *
 * SIGUSR2, which the driver sends while the worker is frozen, sends a late write: one that the
 * worker prepared before the freeze, when it had checked that its lease was valid. A program that
 * does not check again, e.g. a thread between its check and its write, would do the same.
 */
#include "examples/demo/page.h"
#include "examples/demo/secure.h"

#include <spoke/consumer.h>
#include <spoke/lease.h>
#include <spoke/signals.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define NS_PER_MS UINT64_C(1000000)
#define BEAT_NS (50 * NS_PER_MS)   /* interval of writes */
#define PAUSE_NS (500 * NS_PER_MS) /* before it asks again, after it gave the lease back */
#define LATE_TIMEOUT_NS (10000 * NS_PER_MS)
#define DRAIN_NS (1000 * NS_PER_MS)
#define LEASE "demo.orders" /* its name */
#define TEXT 32

/* A write that is prepared under a valid lease, and sent when the lease is over. */
struct late {
	unsigned char memory[128];
	struct spoke_value attachments;
	uint64_t fence;   /* 0: none is prepared */
	uint64_t at_ns;   /* time of the check */
	uint64_t left_ns; /* ... and its result */
};

static struct {
	struct report report;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_method *write;
	struct spoke_span args;
	struct spoke_leases *leases;
	struct spoke_lease lease;
	struct spoke_alarm beat;
	struct spoke_alarm pause;
	struct spoke_signal ender;
	struct spoke_signal giver;
	struct spoke_signal tempter;
	struct late late;
	uint64_t writes;   /* answered */
	uint64_t begun;    /* under the lease that is held or was last */
	uint64_t answered; /* ... and of these */
	uint64_t untold;
	uint64_t late_writes;
	uint64_t harm;
	bool asked; /* the lease is held or asked for */
	bool holds;
	bool ending;
	int failure; /* that ends the worker */
} self;

static void count(uint64_t *counts)
{
	counts[COUNT_HOLDS] = self.holds;
	counts[COUNT_UNTOLD] = self.untold;
	counts[COUNT_WRITES] = self.writes;
	counts[COUNT_LATE_WRITES] = self.late_writes;
	counts[COUNT_HARM] = self.harm;
}

/* --- writes */

/* A write may end without an answer, e.g. because the lease was over or the provider is away. The
 * next beat writes again. */
static void written(void *arg, const struct spoke_result *result)
{
	(void)arg;
	if (result->error != SPOKE_OK)
		return;
	self.writes++;
	self.answered++;
}

/* Checks the lease, and prepares a write with the attachments that the option `lease` would add. */
static void prepare_late(void)
{
	struct late *late = &self.late;
	uint64_t left_ns = spoke_lease_left(self.lease);
	uint64_t fence = spoke_lease_fence(self.lease);
	struct spoke_builder builder;
	char number[TEXT];

	if (left_ns == 0)
		return;
	(void)snprintf(number, sizeof(number), "%" PRIu64, fence);
	spoke_builder_init_fixed(&builder, late->memory, sizeof(late->memory), NULL);
	spoke_pack_map(&builder, 2);
	spoke_pack_text(&builder, "spoke.lease");
	spoke_pack_text(&builder, LEASE);
	spoke_pack_text(&builder, "spoke.fence");
	spoke_pack_text(&builder, number);
	late->fence = spoke_builder_finish_value(&builder, &late->attachments) ? 0 : fence;
	late->at_ns = spoke_engine_now(self.engine);
	late->left_ns = left_ns;
}

static void beat(struct spoke_alarm *alarm)
{
	const struct spoke_call_options options = { .lease = self.lease };

	(void)alarm;
	if (!self.holds)
		return;
	prepare_late();
	if (spoke_call(self.write, self.args, &options, written, NULL, NULL) == SPOKE_OK)
		self.begun++;
}

static void late_written(void *arg, const struct spoke_result *result)
{
	(void)arg;
	if (result->error == SPOKE_EREMOTE) {
		report_event(&self.report, SPOKE_EVENT_OF_NONE, TAG_LATE, 0, NULL,
			     "late write refused: %.*s", (int)result->error_text.len,
			     (const char *)result->error_text.data);
		return;
	}
	self.harm += result->error == SPOKE_OK;
	report_event(&self.report, SPOKE_EVENT_OF_NONE, TAG_LATE, 0, NULL,
		     "late write not refused: %s", spoke_strerror(result->error));
}

/* The signal was sent while this process was frozen, so `lost` must have been called before. */
static void tempt(struct spoke_signal *tempter)
{
	const struct late *late = &self.late;
	/* One attempt, so that it can be refused only once. */
	const struct spoke_call_options options = {
		.attachments = late->attachments,
		.timeout_ns = LATE_TIMEOUT_NS,
	};
	uint64_t ago_ns = spoke_engine_now(self.engine) - late->at_ns;
	int error;

	(void)tempter;
	self.untold += self.holds;
	if (late->fence == 0)
		return;
	report_event(&self.report, SPOKE_EVENT_OF_NONE, TAG_TOLD, 0, NULL,
		     "sends a write all the same: checked %" PRIu64
		     " ms ago, when its lease had %" PRIu64 " ms left; fence number %" PRIu64,
		     ago_ns / NS_PER_MS, late->left_ns / NS_PER_MS, late->fence);
	error = spoke_call(self.write, self.args, &options, late_written, NULL, NULL);
	if (error)
		report_event(&self.report, SPOKE_EVENT_OF_NONE, TAG_LATE, 0, NULL,
			     "late write not sent: %s", spoke_strerror(error));
	else
		self.late_writes++;
}

/* --- the lease */

static void ask(void);

static void fail(int error, struct spoke_span text)
{
	(void)fprintf(stderr, "demo_worker: no lease: %s. %.*s\n", spoke_strerror(error),
		      (int)text.len, text.len ? (const char *)text.data : "");
	self.failure = error;
	spoke_engine_stop(self.engine);
}

static void lost(void *arg, struct spoke_lease lease, enum spoke_lease_loss why)
{
	(void)arg;
	(void)lease;
	self.holds = false;
	self.asked = false;
	report_event(&self.report, SPOKE_EVENT_OF_LEASE, TAG_LOST, 0, NULL,
		     "has lost its lease (%s): %" PRIu64 " of %" PRIu64
		     " writes were answered; stops writing",
		     spoke_lease_loss_name(why), self.answered, self.begun);
	ask();
}

static void told(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	(void)arg;
	if (answer->error) {
		self.asked = false;
		if (self.ending)
			return;
		fail(answer->error, answer->text);
		return;
	}
	self.lease = lease;
	self.holds = true;
	self.begun = 0;
	self.answered = 0;
	report_event(&self.report, SPOKE_EVENT_OF_LEASE, TAG_HELD, (unsigned)answer->fence, NULL,
		     "holds the lease \"" LEASE "\", fence number %" PRIu64 ", and writes",
		     answer->fence);
}

static void ask(void)
{
	const struct spoke_lease_options options = { .wait_ns = SPOKE_LEASE_FOREVER, .lost = lost };
	int error;

	if (self.ending || self.asked)
		return;
	error = spoke_lease_ask(self.leases, LEASE, &options, told, &self.lease);
	if (error) {
		fail(error, (struct spoke_span){ 0 });
		return;
	}
	self.asked = true;
	report_event(&self.report, SPOKE_EVENT_OF_LEASE, TAG_ASKED, 0, NULL,
		     "asks for the lease \"" LEASE "\"");
}

static void pause_over(struct spoke_alarm *alarm)
{
	(void)alarm;
	ask();
}

/* Returns whether the lease was held or asked for. */
static bool give_back(spoke_lease_released_fn done)
{
	bool held = self.holds;

	self.holds = false;
	if (!self.asked || spoke_lease_release(self.lease, done, NULL))
		return false;
	self.asked = false;
	if (held) {
		report_event(&self.report, SPOKE_EVENT_OF_LEASE, TAG_GIVEN, 0, NULL,
			     "gives its lease back: %" PRIu64 " of %" PRIu64
			     " writes were answered",
			     self.answered, self.begun);
	}
	return true;
}

static void give(struct spoke_signal *giver)
{
	(void)giver;
	if (!self.holds || !give_back(NULL))
		return;
	if (spoke_alarm_after(self.engine, &self.pause, PAUSE_NS, pause_over))
		ask();
}

/* --- the end */

static void drain(void)
{
	if (spoke_engine_drain(self.engine, DRAIN_NS))
		spoke_engine_stop(self.engine);
}

static void released(void *arg, int error)
{
	(void)arg;
	if (error)
		(void)fprintf(stderr, "demo_worker: lease not given back: %s\n",
			      spoke_strerror(error));
	drain();
}

static void end(struct spoke_signal *ender)
{
	(void)ender;
	if (self.ending)
		return;
	self.ending = true;
	(void)spoke_alarm_cancel(&self.beat);
	(void)spoke_alarm_cancel(&self.pause);
	if (!give_back(released))
		drain();
}

/* --- the beginning */

static int watch_signals(void)
{
	int error = spoke_signal_watch(self.engine, &self.ender, SIGTERM, end);

	if (!error)
		error = spoke_signal_watch(self.engine, &self.giver, SIGUSR1, give);
	if (!error)
		error = spoke_signal_watch(self.engine, &self.tempter, SIGUSR2, tempt);
	return error;
}

static int work(char **argv)
{
	const struct spoke_consumer_options consumer = {
		.url = argv[2],
		.registry = argv[3],
		.tls = secure_options(false),
		.changed = report_link,
		.changed_arg = &self.report,
	};
	const struct spoke_leases_options leases = {
		.store = argv[4],
		.ttl_ns = strtoull(argv[5], NULL, 10),
	};
	struct spoke_builder builder;
	unsigned char memory[64];
	int error;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, argv[1]);
	error = spoke_builder_finish(&builder, &self.args);
	if (!error && argv[6] && page_open(&self.report, argv[1], argv[6], false) == NULL)
		return SPOKE_ESYSTEM;
	if (!error)
		error = spoke_consumer_new(self.engine, &consumer, &self.consumer);
	if (!error)
		error = spoke_consumer_method(self.consumer, "write", NULL, &self.write);
	if (!error)
		error = spoke_leases_new(self.engine, &leases, &self.leases);
	if (!error)
		error = watch_signals();
	if (!error)
		error = spoke_alarm_every(self.engine, &self.beat, BEAT_NS, beat);
	if (error) {
		(void)fprintf(stderr, "%s: %s\n", argv[1], spoke_engine_why(self.engine));
		return error;
	}
	ask();
	error = spoke_engine_run(self.engine);
	return error ? error : self.failure;
}

int main(int argc, char **argv)
{
	int error;

	if (argc != 6 && argc != 7) {
		(void)fprintf(stderr, "demo_worker: must be started by demo_driver\n");
		return 2;
	}
	error = spoke_engine_new(NULL, &self.engine);
	if (!error)
		error = report_begin(&self.report, self.engine, count);
	if (!error)
		error = work(argv);
	if (error)
		(void)fprintf(stderr, "%s: %s\n", argv[1], spoke_strerror(error));
	else
		report_counts(&self.report);
	spoke_engine_free(self.engine);
	return error != 0;
}
