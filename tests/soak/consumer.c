/* SPDX-License-Identifier: Apache-2.0 */
/* Main program of a consumer process of the soak. */
#include "consumer.h"

#include "calls.h"
#include "futures.h"
#include "memory.h"

#include <spoke/signals.h>

#include <signal.h>

#define BEAT_NS (5 * NS_PER_MS)
#define BEATS_MAX 4u /* beats: a longer delay is not made up for */
#define PULSE_NS (100 * NS_PER_MS)
#define LOOK_NS NS_PER_S
#define REST_NS (20 * NS_PER_MS)
#define GIVE_UP_NS (30 * NS_PER_S)
#define DRAIN_NS (5 * NS_PER_S)

static struct {
	struct spoke_engine *engine;
	struct desk *desk;
	struct calls *calls;
	struct spoke_alarm beat;
	struct spoke_alarm pulse;
	struct spoke_alarm look;
	struct spoke_signal ender;
	uint64_t beaten_ns;
	uint64_t owed; /* in billionths of a call */
	uint64_t give_up_ns;
	unsigned storms; /* storms that have begun */
} self;

static void beat(struct spoke_alarm *alarm)
{
	uint64_t now = spoke_engine_now(self.engine);
	uint64_t since = now - self.beaten_ns;

	(void)alarm;
	self.beaten_ns = now;
	calls_cancel(self.calls);
	if (self.storms != board->storms) {
		self.storms = board->storms;
		calls_storm(self.calls);
	}
	if (board->hush)
		return;
	if (since > BEATS_MAX * BEAT_NS)
		since = BEATS_MAX * BEAT_NS;
	for (self.owed += board->rate * since; self.owed >= NS_PER_S; self.owed -= NS_PER_S)
		calls_begin(self.calls);
}

static void pulse(struct spoke_alarm *alarm)
{
	(void)alarm;
	desk_stats(self.desk, self.engine);
	self.desk->connections = self.desk->stats[SPOKE_STAT_CONNECTED] -
				 self.desk->stats[SPOKE_STAT_CLOSED];
	self.desk->ready = teams_ready(calls_team(self.calls, 0));
	self.desk->resting = calls_open_count(self.calls) == 0 && futures_rest();
	memory_tell(self.desk);
	self.desk->pulses++;
}

static void look(struct spoke_alarm *alarm)
{
	(void)alarm;
	calls_look(self.calls);
}

/* --- end of the process */

static void rest(struct spoke_alarm *alarm)
{
	if ((calls_open_count(self.calls) > 0 || !futures_gone()) &&
	    spoke_engine_now(self.engine) < self.give_up_ns)
		return;
	(void)spoke_alarm_cancel(alarm);
	(void)spoke_alarm_cancel(&self.look);
	pulse(NULL);
	if (spoke_engine_drain(self.engine, DRAIN_NS))
		spoke_engine_stop(self.engine);
}

static void end(struct spoke_signal *ender)
{
	(void)ender;
	futures_end();
	self.give_up_ns = spoke_engine_now(self.engine) + GIVE_UP_NS;
	if (spoke_alarm_every(self.engine, &self.beat, REST_NS, rest))
		spoke_engine_stop(self.engine);
}

/* --- the process */

static int run(void)
{
	int error = spoke_signal_watch(self.engine, &self.ender, SIGTERM, end);

	self.storms = board->storms;
	self.beaten_ns = spoke_engine_now(self.engine);
	if (!error)
		error = spoke_alarm_every(self.engine, &self.beat, BEAT_NS, beat);
	if (!error)
		error = spoke_alarm_every(self.engine, &self.pulse, PULSE_NS, pulse);
	if (!error)
		error = spoke_alarm_every(self.engine, &self.look, LOOK_NS, look);
	self.desk->up = !error;
	return error ? error : spoke_engine_run(self.engine);
}

int consumer_run(unsigned index, unsigned life)
{
	struct spoke_engine_options with = { .env = memory_env() };
	uint64_t seed = board->seed * 1000 + index * 100 + life * 2;
	int error;

	self.desk = &board->desks[PROVIDERS + index];
	error = spoke_engine_new(&with, &self.engine);
	if (!error)
		self.calls = calls_open(self.engine, self.desk, seed);
	if (self.calls == NULL || !futures_start(self.calls, self.desk, seed + 1))
		return 1;
	error = run();
	if (error)
		desk_complain(self.desk, "consumer %u: %s", index, spoke_engine_why(self.engine));
	futures_end();
	futures_join();
	spoke_engine_free(self.engine);
	self.desk->done = calls_close(self.calls) && !error;
	if (memory_used() > 0)
		desk_complain(self.desk, "consumer %u leaks %llu bytes", index,
			      (unsigned long long)memory_used());
	return self.desk->done && self.desk->complaint[0] == '\0' ? 0 : 1;
}
