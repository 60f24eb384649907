/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the counts of all processes and checks them. */
#include "examples/demo/sums.h"
#include "examples/demo/cast.h"
#include "examples/demo/pauses.h"
#include "examples/demo/story.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>

static uint64_t total(enum message_count count)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < cast.count; i++)
		sum += actor_count(&cast.actors[i], count);
	return sum;
}

static uint64_t worst_lateness_us(void)
{
	uint64_t worst = 0;

	for (unsigned i = 0; i < cast.count; i++)
		if (cast.actors[i].late_us > worst)
			worst = cast.actors[i].late_us;
	return worst;
}

/* Returns the calls and tickets that were open in killed processes, and in no journal. */
static uint64_t died(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < cast.count; i++)
		sum += cast.actors[i].died;
	return sum - total(COUNT_SURVIVED);
}

/* Returns the calls without a result and the tickets that were not settled. */
static int64_t lost(void)
{
	int64_t open = (int64_t)total(COUNT_CALLS) -
		       (int64_t)(total(COUNT_OK) + total(COUNT_DEFERRED) + total(COUNT_FAILED));
	int64_t waiting = (int64_t)total(COUNT_DEFERRED) -
			  (int64_t)(total(COUNT_RECOVERED) + total(COUNT_UNRECOVERED));

	return open + waiting - (int64_t)died();
}

static void row(const char *name, int64_t number, const char *what)
{
	story_print("  %-20s %10" PRId64 "  %s", name, number, what);
}

static uint64_t died_leases(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < cast.count; i++)
		sum += cast.actors[i].died_leases;
	return sum;
}

static bool has_store(void)
{
	for (unsigned i = 0; i < cast.count; i++)
		if (cast.actors[i].alias[0] != '\0')
			return true;
	return false;
}

static void show_leases(void)
{
	row("leases granted", (int64_t)total(COUNT_GRANTED), "to two workers, under one name");
	row("  given back", (int64_t)total(COUNT_GIVEN), "... and passed on at once");
	row("  lost", (int64_t)total(COUNT_LOST), "... and their holder was notified");
	row("    acted before", (int64_t)total(COUNT_UNTOLD), "... it was notified: must be 0");
	row("  taken over", cast.taken_over, "granted while the last holder was frozen or dead");
	row("writes", (int64_t)total(COUNT_WRITES), "answered, made by the holders");
	row("late writes", (int64_t)total(COUNT_LATE_WRITES),
	    "checked before a freeze and sent after it, on purpose");
	row("  refused", (int64_t)total(COUNT_FENCED), "... by the fence: must be all");
}

static void show_table(bool dubbo, unsigned false_kills, unsigned starved)
{
	uint64_t late_us = worst_lateness_us();

	story_head("Counts of all processes:");
	row("calls", (int64_t)total(COUNT_CALLS), "made by all consumers");
	row("  ok", (int64_t)total(COUNT_OK), "answered at the first attempt");
	row("  deferred", (int64_t)total(COUNT_DEFERRED),
	    "failed at first and became failback tasks");
	row("    recovered", (int64_t)total(COUNT_RECOVERED), "... answered by a later attempt");
	if (!dubbo)
		row("    survived", (int64_t)total(COUNT_SURVIVED),
		    "... the kill of their process, in its journal");
	row("  failed", (int64_t)(total(COUNT_FAILED) + total(COUNT_UNRECOVERED)),
	    "ended in another way");
	row("  lost", lost(), "accepted, but without an outcome: must be 0");
	if (died())
		row("  died", (int64_t)died(), "open in a killed consumer");
	if (dubbo)
		row("served", (int64_t)total(COUNT_SERVED), "answered by both providers");
	row("timed out", (int64_t)total(COUNT_TIMED_OUT), "requests that reached their deadline");
	row("retries", (int64_t)total(COUNT_RETRIES), "attempts after the first");
	row("heartbeats sent", (int64_t)total(COUNT_PROBES), "on silent or new connections");
	row("heartbeats missed", (int64_t)total(COUNT_MISSED), "not answered in time");
	row("reconnects", (int64_t)total(COUNT_RECONNECTS),
	    "connect attempts after a lost connection");
	row("idle closes", (int64_t)total(COUNT_IDLE_CLOSES),
	    "connections closed after three missed heartbeats");
	row("false kills", false_kills, "... although the peer was alive: must be 0");
	if (starved)
		row("starved", starved, "... because a process got no CPU for an interval");
	row("orders run", (int64_t)total(COUNT_RUNS), "by the shops");
	row("  answered", (int64_t)total(COUNT_ANSWERS), "... also to repeats after a lost answer");
	if (has_store())
		show_leases();
	story_print("  %-20s %7" PRIu64 ".%" PRIu64
		    " ms  worst lateness of a timer, except in frozen processes",
		    "timer lateness", late_us / 1000, late_us % 1000 / 100);
}

/* Prints an error unless `is_so`; returns `is_so`. */
static bool expect(bool is_so, const char *what, uint64_t number)
{
	if (!is_so)
		story_print("Error: %s (%" PRIu64 ").", what, number);
	return is_so;
}

static bool check_ends(void)
{
	bool well = true;

	for (unsigned i = 0; i < cast.count; i++) {
		const struct actor *actor = &cast.actors[i];

		if (actor->pid == 0 && WIFEXITED(actor->status) && WEXITSTATUS(actor->status) == 0)
			continue;
		story_print("Error: %s did not exit cleanly.", actor->name);
		well = false;
	}
	return well;
}

/* Of the main story: its faults have had their effects. */
static bool check_faults(void)
{
	uint64_t closes = total(COUNT_IDLE_CLOSES);
	bool well = true;

	well &= expect(total(COUNT_TIMED_OUT) > 0, "no request timed out", 0);
	well &= expect(total(COUNT_MISSED) >= 6, "too few heartbeats were missed",
		       total(COUNT_MISSED));
	well &= expect(closes >= 1, "the idle checks closed no connection", closes);
	return well;
}

/* Of the act of the lease. */
static bool check_leases(void)
{
	uint64_t granted = total(COUNT_GRANTED);
	uint64_t ended = total(COUNT_GIVEN) + total(COUNT_LOST) + died_leases();
	uint64_t late = total(COUNT_LATE_WRITES);
	bool well = true;

	well &= expect(granted == ended, "not every lease ended once", ended);
	well &= expect(total(COUNT_UNTOLD) == 0, "a holder acted before it was notified",
		       total(COUNT_UNTOLD));
	well &= expect(cast.taken_over > 0, "no lease was taken over", 0);
	well &= expect(total(COUNT_LOST) > 0, "no worker lost its lease", 0);
	well &= expect(late > 0, "no late write was sent", 0);
	well &= expect(total(COUNT_HARM) == 0, "late writes were accepted", total(COUNT_HARM));
	well &= expect(total(COUNT_FENCED) == late, "not only late writes were refused",
		       total(COUNT_FENCED));
	return well;
}

/* Of the story with Node peers: every answer was served by a provider, and every request that a
 * provider has served is an attempt of a call. */
static bool check_served(void)
{
	uint64_t answers = total(COUNT_OK) + total(COUNT_RECOVERED);
	uint64_t attempts = total(COUNT_CALLS) + total(COUNT_RETRIES);
	uint64_t served = total(COUNT_SERVED);

	bool all = expect(served >= answers, "fewer requests were served than answered", served);

	return expect(served <= attempts, "more requests were served than sent", served) && all;
}

bool sums_show(const struct plan *plan)
{
	bool dubbo = plan->dubbo;
	unsigned starved;
	unsigned false_kills = pauses_count(plan->heartbeat_ns, &starved);
	uint64_t calls = total(COUNT_CALLS);
	uint64_t failed = total(COUNT_FAILED) + total(COUNT_UNRECOVERED);
	uint64_t closes = total(COUNT_IDLE_CLOSES);
	bool well = true;

	show_table(dubbo, false_kills, starved);
	story_print("%s", "");
	if (cast.trouble[0] != '\0') {
		story_print("Error: %s.", cast.trouble);
		return false;
	}
	well &= expect(calls > 0, "no call was made", calls);
	well &= expect(lost() == 0, "calls were lost", (uint64_t)lost());
	well &= expect(failed == 0, "calls failed for good", failed);
	well &= expect(total(COUNT_REFUSED) == 0, "calls were refused", total(COUNT_REFUSED));
	well &= expect(total(COUNT_RECOVERED) > 0, "no deferred call was answered", 0);
	well &= dubbo ? check_served() : check_faults();
	well &= expect(closes == cast.idle_closes, "not every idle close was reported", closes);
	well &= expect(false_kills == 0, "idle checks closed connections to live peers",
		       false_kills);
	if (has_store())
		well &= check_leases();
	well &= check_ends();
	if (well)
		story_print("It adds up: every call has one outcome, and %s.",
			    dubbo ? "every answer was served by a provider"
				  : "only connections to silent peers were closed");
	if (well && has_store())
		story_print("Each holder was notified before it acted, and no late write was "
			    "accepted.");
	return well;
}
