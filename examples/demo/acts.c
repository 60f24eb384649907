/* SPDX-License-Identifier: Apache-2.0 */
/* The acts of the demo: each injects a fault and waits for the expected events. */
#include "examples/demo/acts.h"
#include "examples/demo/await.h"
#include "examples/demo/deeds.h"
#include "examples/demo/story.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define SILENT_BEATS 4  /* heartbeats to wait for while a connection has no calls */
#define TASK_BYTES 2048 /* memory budget per failback task */
#define SERVED_AGAIN 10 /* requests of a provider that is back */

/* --- the beginning */

/* The provider to freeze; below, the ones to kill and to drain. */
static struct actor *first_of(const struct stage *stage)
{
	return stage->providers[0];
}

static struct actor *second_of(const struct stage *stage)
{
	return stage->providers[1];
}

static struct actor *third_of(const struct stage *stage)
{
	return stage->providers[2];
}

struct actor *acts_cast_server(const struct stage *stage, const char *name, const char *service,
			       uint64_t dedupe_ns)
{
	struct actor *actor = cast_add("demo_provider", name);

	actor->provides = true;
	actor_add_arg(actor, "%s", service);
	actor_add_arg(actor, "%s", stage->registry);
	actor_add_arg(actor, "dubbo://127.0.0.1:0");
	actor_add_arg(actor, "%" PRIu64, stage->plan->heartbeat_ns);
	actor_add_arg(actor, "%" PRIu64, dedupe_ns);
	if (stage->plan->live)
		actor_add_arg(actor, "127.0.0.1:0");
	return actor;
}

void acts_cast_provider(struct stage *stage, unsigned number, const char *service)
{
	char name[CAST_NAME];

	(void)snprintf(name, sizeof(name), "provider-%u", number + 1);
	stage->providers[number] = acts_cast_server(stage, name, service, 0);
}

struct actor *acts_cast_consumer(struct stage *stage, const char *name, const char *service,
				 uint64_t rate, uint64_t tasks)
{
	const struct plan *plan = stage->plan;
	struct actor *actor = cast_add("demo_consumer", name);

	/* Ejection is off, so that heartbeats alone detect the frozen provider. */
	actor_add_arg(actor,
		      "consumer://any/%s?cluster=failback&loadbalance=roundrobin&timeout=%" PRIu64
		      "&heartbeat=%" PRIu64 "ms&retry.period=%" PRIu64
		      "ms&retries=100&retry.deadline=1h&failback.tasks=%" PRIu64
		      "&failback.bytes=%" PRIu64 "&pending.max=%" PRIu64 "&eject.failures=0",
		      service, plan->timeout_ns / PLAN_MS, plan->heartbeat_ns / PLAN_MS,
		      plan->period_ns / PLAN_MS, tasks, tasks * TASK_BYTES, tasks + 1000);
	actor_add_arg(actor, "%s", stage->registry);
	actor_add_arg(actor, "%" PRIu64, rate);
	if (plan->live)
		actor_add_arg(actor, "127.0.0.1:0");
	return actor;
}

static void print_tasks(const char *who, uint64_t rate, uint64_t outage_ns, uint64_t tasks,
			const char *why)
{
	char outage[PLAN_TEXT];
	char spare[PLAN_TEXT];

	story_print("  %s: failback.tasks = %" PRIu64 " calls/s x (%s %s + %s to spare) = %" PRIu64,
		    who, rate, plan_print(outage_ns, outage), why, plan_print(PLAN_SPARE_NS, spare),
		    tasks);
}

static bool begin(struct stage *stage)
{
	const struct plan *plan = stage->plan;
	char timeout[PLAN_TEXT];
	char heartbeat[PLAN_TEXT];
	char period[PLAN_TEXT];
	char lease[PLAN_TEXT];

	story_print("%u providers and 2 consumers, each a process with one timing wheel. The wheel "
		    "has %s users:",
		    plan->providers, stage->store ? "four" : "three");
	story_print("  timeout    ends a request at its deadline, after %s",
		    plan_print(plan->timeout_ns, timeout));
	story_print("  retry      a failback task tries a failed call again, after %s",
		    plan_print(plan->period_ns, period));
	story_print("  heartbeat  probes a silent peer after %s; 3 missed heartbeats close the "
		    "connection",
		    plan_print(plan->heartbeat_ns, heartbeat));
	if (stage->store)
		story_print("  lease      renews a lease in Redis after a third of its time to "
			    "live, %s",
			    plan_print(plan->lease_ns, lease));
	if (plan->tls)
		story_print("  All connections use TLS 1.3, and both ends show certificates.");
	print_tasks("consumer-1", plan->rate, plan->outage_ns, plan->tasks,
		    "until a frozen provider is suspect");
	print_tasks("consumer-2", plan->rate2, plan->outage2_ns, plan->tasks2,
		    "until a killed provider is back");
	story_head("  time s  process      user       event");
	for (unsigned i = 0; i < plan->providers; i++) {
		acts_cast_provider(stage, i, i == 1 ? ACTS_ORDERS : ACTS_ECHO);
		if (!actor_start(stage->providers[i]) ||
		    !await_seen(stage->providers[i], TAG_LISTENS, 1))
			return false;
	}
	stage->consumer = acts_cast_consumer(stage, "consumer-1", ACTS_ECHO, plan->rate,
					     plan->tasks);
	stage->consumer2 = acts_cast_consumer(stage, "consumer-2", ACTS_ORDERS, plan->rate2,
					      plan->tasks2);
	return actor_start(stage->consumer) && actor_start(stage->consumer2);
}

/* --- the acts */

void acts_head(struct stage *stage, const char *format, ...)
{
	char text[CAST_TEXT];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	story_head("%u. %s", ++stage->acts, text);
}

static bool play_steady(struct stage *stage)
{
	bool goes_on;

	acts_head(stage,
		  "Steady calls: consumer-1 calls %s %" PRIu64
		  " times a second, consumer-2 %s %" PRIu64 " times.",
		  ACTS_ECHO, stage->plan->rate, ACTS_ORDERS, stage->plan->rate2);
	cast.pulses = true;
	goes_on = await_seen(stage->consumer, TAG_CONNECTED, stage->plan->providers - 1) &&
		  await_seen(stage->consumer, TAG_PULSE, 2) &&
		  await_seen(stage->consumer2, TAG_PULSE, 2);
	cast.pulses = false;
	return goes_on;
}

bool acts_play_silence(struct stage *stage)
{
	struct actor *consumer = stage->consumer2;
	uint64_t beats = actor_count(consumer, COUNT_BEATS);

	acts_head(stage,
		  "A consumer makes no calls for a while. Its connection is as silent as one "
		  "to a dead peer;\n"
		  "   heartbeats show that the peer is alive, and keep the connection open.");
	actor_watch(consumer, second_of(stage));
	actor_hush(consumer);
	if (!await_count(consumer, COUNT_BEATS, beats + SILENT_BEATS))
		return false;
	actor_speak(consumer);
	if (!await_seen(consumer, TAG_ANSWERED, 1))
		return false;
	return consumer->seen[TAG_CLOSED] == 0 ||
	       cast_trouble("%s: closed its connection to a live peer", consumer->name);
}

static bool play_frozen_provider(struct stage *stage)
{
	struct actor *consumer = stage->consumer;
	struct actor *provider = first_of(stage);
	uint64_t timed_out = actor_count(consumer, COUNT_TIMED_OUT);
	unsigned calm;

	acts_head(stage,
		  "A provider is frozen. Its kernel still accepts data and even connections, "
		  "so only its\n"
		  "   silence reveals the freeze. Timeouts end its calls; missed heartbeats close "
		  "its connection.");
	actor_watch(consumer, provider);
	actor_freeze(provider);
	if (!await_count(consumer, COUNT_TIMED_OUT, timed_out + 1))
		return false;
	calm = consumer->seen[TAG_CALM];
	if (!await_missed(consumer, 3) || !await_seen(consumer, TAG_CLOSED, 1) ||
	    !await_seen(consumer, TAG_RECONNECTING, 1))
		return false;
	/* With TLS there is no connection before the provider wakes, because it has to answer. */
	if (!stage->plan->tls && !await_seen(consumer, TAG_PROBATION, 1))
		return false;
	actor_wake(provider);
	return await_seen(consumer, TAG_RECOVERED, 1) && await_none(consumer, COUNT_WAITING) &&
	       await_seen(consumer, TAG_CALM, calm + 1);
}

static bool play_frozen_consumer(struct stage *stage)
{
	struct actor *consumer = stage->consumer2;
	struct actor *provider = second_of(stage);
	bool goes_on;

	acts_head(stage, "A consumer is frozen. Its provider receives no data, misses three "
			 "heartbeats and closes the\n"
			 "   connection. The other consumer continues.");
	actor_watch(provider, consumer);
	actor_watch(consumer, provider);
	cast.pulses = true;
	actor_freeze(consumer);
	goes_on = await_missed(provider, 3) && await_seen(provider, TAG_CLOSED, 1);
	cast.pulses = false;
	if (!goes_on)
		return false;
	actor_wake(consumer);
	return await_seen(consumer, TAG_CLOSED, 1) && await_seen(consumer, TAG_CONNECTED, 1) &&
	       await_seen(consumer, TAG_ANSWERED, 1) && await_none(consumer, COUNT_WAITING);
}

bool acts_play_kill(struct stage *stage)
{
	struct actor *consumer = stage->consumer2;
	struct actor *provider = second_of(stage);
	unsigned calm;

	acts_head(stage,
		  "The only provider of %s is killed. Its calls fail at once; each becomes a "
		  "failback\n"
		  "   task, which tries again every period until a provider answers.",
		  ACTS_ORDERS);
	actor_watch(consumer, provider);
	actor_kill(provider);
	/* The oldest task has made three attempts, including the call. */
	if (!await_seen(consumer, TAG_RECONNECTING, 1) || !await_count(consumer, COUNT_TRIES, 3))
		return false;
	calm = consumer->seen[TAG_CALM];
	actor_watch(provider, NULL);
	if (!actor_restart(provider))
		return false;
	return await_seen(provider, TAG_LISTENS, 1) && await_seen(consumer, TAG_CONNECTED, 1) &&
	       await_seen(consumer, TAG_ANSWERED, 1) && await_none(consumer, COUNT_WAITING) &&
	       await_seen(consumer, TAG_CALM, calm + 1);
}

static bool await_pulse(const struct actor *consumer)
{
	return await_seen(consumer, TAG_PULSE, consumer->seen[TAG_PULSE] + 1);
}

/* Returns how many calls have failed, or lost their connection. */
static uint64_t failures_of(const struct actor *consumer)
{
	return actor_count(consumer, COUNT_BROKEN) + actor_count(consumer, COUNT_FAILED) +
	       actor_count(consumer, COUNT_REFUSED);
}

/* The notice may have crossed requests, which have been answered when the next second is over. */
static bool check_aside(const struct actor *consumer, const struct actor *provider)
{
	uint64_t served;

	if (!await_seen(consumer, TAG_READONLY, 1) || !await_pulse(consumer))
		return false;
	served = actor_count(provider, COUNT_SERVED);
	if (!await_pulse(consumer))
		return false;
	return actor_count(provider, COUNT_SERVED) == served ||
	       cast_trouble("%s got calls after it had stepped aside", provider->name);
}

static bool play_aside(struct stage *stage)
{
	struct actor *consumer = stage->consumer;
	struct actor *provider = third_of(stage);
	uint64_t failures = failures_of(consumer);
	bool goes_on;

	acts_head(stage, "The third provider steps aside under load: it leaves the registry, and "
			 "consumers prefer others.\n"
			 "   It keeps running, and comes back. No call fails.");
	actor_watch(consumer, provider);
	if (!await_mended(provider))
		return false;
	cast.pulses = true;
	actor_step(provider, true);
	goes_on = check_aside(consumer, provider);
	if (goes_on) {
		actor_step(provider, false);
		goes_on = await_count(provider, COUNT_SERVED,
				      actor_count(provider, COUNT_SERVED) + SERVED_AGAIN) &&
			  await_pulse(consumer);
	}
	cast.pulses = false;
	if (goes_on && failures_of(consumer) > failures)
		return cast_trouble("calls of %s failed because %s stepped aside", consumer->name,
				    provider->name);
	return goes_on;
}

static bool play_drain(struct stage *stage)
{
	struct actor *consumer = stage->consumer;
	struct actor *provider = third_of(stage);
	uint64_t broken = actor_count(consumer, COUNT_BROKEN);
	bool goes_on;

	acts_head(stage, "The third provider is drained: it sends the drain notice (READONLY), "
			 "answers running\n"
			 "   requests, and exits. No call fails.");
	actor_watch(consumer, provider);
	if (!await_mended(provider))
		return false;
	actor_end(provider, true);
	if (!await_seen(consumer, TAG_CLOSED, 1) || !await_gone(provider))
		return false;
	if (consumer->seen[TAG_READONLY] == 0)
		return cast_trouble("%s has received no drain notice from %s", consumer->name,
				    provider->name);
	cast.pulses = true;
	goes_on = await_seen(consumer, TAG_PULSE, consumer->seen[TAG_PULSE] + 1);
	cast.pulses = false;
	if (goes_on && actor_count(consumer, COUNT_BROKEN) > broken)
		return cast_trouble("calls of %s failed because of the drain of %s", consumer->name,
				    provider->name);
	return goes_on;
}

bool acts_play(struct stage *stage)
{
	return begin(stage) && play_steady(stage) && acts_play_silence(stage) &&
	       play_frozen_provider(stage) && play_frozen_consumer(stage) &&
	       acts_play_kill(stage) && acts_play_repeat(stage) && acts_play_journal(stage) &&
	       play_aside(stage) && play_drain(stage) && acts_play_lease(stage);
}

bool acts_live(struct stage *stage, uint64_t end_ns)
{
	struct actor *third = third_of(stage);

	story_head("The cluster runs on %s. Use the buttons of these pages to freeze or kill a "
		   "process; it will recover:",
		   stage->plan->seconds ? "for a while" : "until Ctrl-C");
	for (unsigned i = 0; i < cast.count; i++)
		if (cast.actors[i].page[0] != '\0')
			story_print("  %-11s  http://%s/#token=%s", cast.actors[i].name,
				    cast.actors[i].page, cast.token);
	if (!actor_restart(third))
		return false;
	actor_watch(stage->consumer, NULL);
	actor_watch(stage->consumer2, NULL);
	(void)await_time(stage->plan->seconds ? end_ns : UINT64_MAX);
	cast_clear_interrupt();
	return cast.trouble[0] == '\0';
}

/* Waits until processes that visitors have frozen or killed run again. */
static bool mend_all(struct stage *stage)
{
	if (!await_mended(stage->consumer) || !await_mended(stage->consumer2))
		return false;
	for (unsigned i = 0; i < stage->plan->providers; i++)
		if (!stage->providers[i]->leaving && !await_mended(stage->providers[i]))
			return false;
	return true;
}

static bool end_guest(struct actor *guest)
{
	actor_watch(guest, NULL);
	actor_end(guest, true);
	return await_seen(guest, TAG_RESTS, 1) && await_gone(guest);
}

bool acts_end(struct stage *stage)
{
	if (cast.live && !mend_all(stage))
		return false;
	if (!acts_end_lease(stage))
		return false;
	acts_head(stage, "The consumers stop calling and exit when every call has an outcome.");
	actor_watch(stage->consumer, NULL);
	actor_watch(stage->consumer2, NULL);
	actor_end(stage->consumer, true);
	actor_end(stage->consumer2, true);
	cast.quiet = true;
	if (!await_seen(stage->consumer, TAG_RESTS, 1) ||
	    !await_seen(stage->consumer2, TAG_RESTS, 1) || !await_gone(stage->consumer) ||
	    !await_gone(stage->consumer2))
		return false;
	if (stage->guest && !end_guest(stage->guest))
		return false;
	for (unsigned i = 0; i < stage->plan->providers; i++)
		if (stage->providers[i]->pid)
			actor_end(stage->providers[i], false);
	for (unsigned i = 0; i < stage->plan->providers; i++)
		if (!await_gone(stage->providers[i]))
			return false;
	return true;
}
