/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer of demo.sh whose calls go on when nobody is there: calls "echo" every 50 ms by
 * failback, and says when calls become tickets, and when these are settled.
 *
 *     demo_tickets <url>
 *
 * Ends after SIGTERM; with 0 if every call was answered or became a ticket, of which there was at
 * least one, and every ticket was settled once, by an answer.
 */
#include "examples/demo/story.h"

#include <spoke/consumer.h>
#include <spoke/signals.h>
#include <spoke/stats.h>

#include <stdio.h>

#define CALL_EVERY_NS UINT64_C(50000000)
#define DRAIN_NS UINT64_C(5000000000)
#define TELL_EVERY 10

static struct {
	struct story story;
	struct spoke_consumer *consumer;
	struct spoke_alarm alarm;
	struct spoke_method *echo;
	struct spoke_span args;
	unsigned long calls; /* not taken ones included */
	unsigned long ok;
	unsigned long deferred;
	unsigned long settled;
	unsigned long successes;
	uint32_t attempts_max; /* of a ticket */
	uint64_t lasted_max_ns;
	int last; /* how the last call went */
} tickets;

static void note(int error)
{
	if (error == tickets.last)
		return;
	tickets.last = error;
	if (error == SPOKE_EDEFERRED)
		story_say(&tickets.story, "a call fails for now, and becomes a ticket");
	else if (error)
		story_say(&tickets.story, "a call ends: %s", spoke_strerror(error));
	else
		story_say(&tickets.story, "calls are answered");
}

static void settled(void *arg, const struct spoke_settled *settled)
{
	(void)arg;
	tickets.settled++;
	tickets.successes += settled->settlement == SPOKE_TICKET_SUCCESS;
	if (settled->attempts > tickets.attempts_max)
		tickets.attempts_max = settled->attempts;
	if (settled->lasted_ns > tickets.lasted_max_ns)
		tickets.lasted_max_ns = settled->lasted_ns;
	if (tickets.settled < tickets.deferred)
		return;
	story_say(&tickets.story,
		  "%lu tickets are settled, %lu by an answer; up to %u attempts, %u ms",
		  tickets.settled, tickets.successes, (unsigned)tickets.attempts_max,
		  (unsigned)(tickets.lasted_max_ns / 1000000));
}

static void done(void *arg, const struct spoke_result *result)
{
	(void)arg;
	note(result->error);
	tickets.ok += result->error == SPOKE_OK;
	if (result->error == SPOKE_EDEFERRED && ++tickets.deferred % TELL_EVERY == 0)
		story_say(&tickets.story, "%zu tickets wait",
			  spoke_consumer_tickets(tickets.consumer, NULL));
}

static void call(struct spoke_alarm *alarm)
{
	int error = spoke_call(tickets.echo, tickets.args, NULL, done, NULL, NULL);

	(void)alarm;
	if (error == SPOKE_ECLOSED)
		return;
	tickets.calls++;
	if (error)
		note(error);
}

static int run(struct spoke_engine *engine, const char *url)
{
	struct spoke_consumer_options options = {
		.url = url,
		.policy = &spoke_failback,
		.settled = settled,
		.changed = story_changed,
		.changed_arg = &tickets.story,
	};
	struct spoke_builder builder;
	unsigned char memory[64];
	int error;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, "again and again");
	error = spoke_builder_finish(&builder, &tickets.args);
	if (!error)
		error = spoke_engine_drain_on_signals(engine, DRAIN_NS);
	if (!error)
		error = spoke_consumer_new(engine, &options, &tickets.consumer);
	if (!error)
		error = spoke_consumer_method(tickets.consumer, "echo", NULL, &tickets.echo);
	if (!error)
		error = spoke_alarm_every(engine, &tickets.alarm, CALL_EVERY_NS, call);
	return error ? error : spoke_engine_run(engine);
}

/* Returns whether all went as it should. */
static bool tell_end(const struct spoke_engine *engine)
{
	story_say(&tickets.story, "%lu calls: %lu answered, %lu became tickets, %lu neither",
		  tickets.calls, tickets.ok, tickets.deferred,
		  tickets.calls - tickets.ok - tickets.deferred);
	story_say(&tickets.story, "%lu tickets: %lu settled by an answer, %lu otherwise, %lu lost",
		  tickets.deferred, tickets.successes, tickets.settled - tickets.successes,
		  tickets.deferred - tickets.settled);
	story_say(&tickets.story,
		  "%llu retries; in 10 s there may be 100, and one more for every 5 calls",
		  (unsigned long long)spoke_stat_get(engine, SPOKE_STAT_RETRIES));
	return tickets.calls == tickets.ok + tickets.deferred && tickets.deferred > 0 &&
	       tickets.settled == tickets.deferred && tickets.successes == tickets.settled;
}

int main(int argc, char **argv)
{
	struct spoke_engine *engine = NULL;
	bool is_well = false;
	int error;

	if (argc != 2) {
		(void)fprintf(stderr, "usage: demo_tickets <url>\n");
		return 2;
	}
	tickets.last = 1;
	error = spoke_engine_new(NULL, &engine);
	if (!error) {
		story_begin(&tickets.story, "consumer", engine);
		error = run(engine, argv[1]);
	}
	if (error)
		(void)fprintf(stderr, "demo_tickets: %s\n", spoke_strerror(error));
	else
		is_well = tell_end(engine);
	spoke_engine_free(engine);
	return !is_well;
}
