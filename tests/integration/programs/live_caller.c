/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer of many providers, or of one that is restarted, for tests with real processes.
 *
 *     live_caller url=URL [registry=URL]
 *
 * Calls "sign", checks that the answer is the argument, and records which provider answered.
 * Commands:
 *     calls N       makes N calls per second from now on
 *     bytes N       adds a second argument of N bytes to later calls, up to 16 KiB
 *     rest          makes no more calls
 *     table         prints the results of calls, when none is in flight
 *     tickets       prints the settlements of tickets, when none is left
 *     waiting       prints the number of waiting tickets
 *     from N        prints the numbers of calls and tickets that provider N has answered
 *     ready         prints the number of connected endpoints
 *     endpoints     prints the number of endpoints
 */
#include "live.h"

#include <spoke/consumer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_MAX (1u << 20)
#define IDS_MAX 64u
#define BYTES_MAX 16384u
#define PERIOD_NS LIVE_NS_PER_MS
#define BURST 50u /* calls at a time; calls missed beyond that are not made up for */

struct call {
	uint32_t ends;
	uint32_t settled;
	bool deferred;
};

/* Results of calls, or of tickets. */
struct ends {
	uint32_t all;
	uint32_t ok;
	uint32_t wrong; /* wrong answers */
	uint32_t twice;
};

static struct calling {
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_method *sign;
	struct spoke_alarm again;
	uint64_t per_second;
	size_t bytes;
	uint64_t since_ns; /* calls have been made up to this time */
	uint64_t made;
	bool wants_table;
	bool wants_tickets;
	struct call calls[CALLS_MAX];
	uint32_t taken;
	uint32_t not_taken;
	struct ends ends;
	uint32_t timeouts;
	uint32_t lost;
	uint32_t refused;
	uint32_t other;
	uint32_t unwritten; /* failed without being written */
	uint32_t deferred;
	struct ends tickets;
	uint32_t told; /* settlements reported to the option `settled` */
	uint32_t answered[IDS_MAX];
	uint32_t settled[IDS_MAX];
} calling;

static void say_table(void)
{
	if (!calling.wants_table || calling.ends.all < calling.taken)
		return;
	calling.wants_table = false;
	live_say("table taken %u ok %u wrong %u timeouts %u lost %u refused %u other %u twice %u "
		 "not_taken %u unwritten %u deferred %u",
		 calling.taken, calling.ends.ok, calling.ends.wrong, calling.timeouts, calling.lost,
		 calling.refused, calling.other, calling.ends.twice, calling.not_taken,
		 calling.unwritten, calling.deferred);
}

static void say_tickets(void)
{
	if (!calling.wants_tickets || calling.told < calling.deferred)
		return;
	calling.wants_tickets = false;
	live_say("tickets settled %u success %u wrong %u twice %u told %u", calling.tickets.all,
		 calling.tickets.ok, calling.tickets.wrong, calling.tickets.twice, calling.told);
}

/* --- ends */

static void count_answer(struct ends *ends, uint32_t *by_id, const struct call *call,
			 const struct spoke_result *result)
{
	uint64_t answer = 0;
	bool is_right = !spoke_value_u64(result->value, &answer) &&
			(uint32_t)answer == (uint32_t)(call - calling.calls);

	ends->ok += is_right;
	ends->wrong += !is_right;
	by_id[(answer >> 32) % IDS_MAX]++;
}

/* Counts a call whose deadline has passed. A provider that was stalled may detect this first. */
static bool is_timeout(int error)
{
	return error == SPOKE_ETIMEOUT || error == SPOKE_ETIMEOUT_UNSENT || error == SPOKE_EEXPIRED;
}

static void count_failure(const struct spoke_result *result)
{
	int error = result->error;

	calling.unwritten += !result->written;
	if (is_timeout(error))
		calling.timeouts++;
	else if (spoke_error_is_transport(error))
		calling.lost++;
	else if (error == SPOKE_EREFUSED)
		calling.refused++;
	else
		calling.other++;
}

static void settled(void *arg, const struct spoke_ticket_result *settled)
{
	struct call *call = arg;

	if (call->settled++ > 0) {
		calling.tickets.twice++;
		return;
	}
	calling.tickets.all++;
	if (settled->settlement == SPOKE_TICKET_SUCCESS)
		count_answer(&calling.tickets, calling.settled, call, settled->result);
	else
		live_say("ticket %s after %u attempts: %s",
			 spoke_ticket_settlement_name(settled->settlement), settled->attempts,
			 spoke_errname(settled->result->error));
}

/* The option's callback runs last. */
static void told(void *arg, const struct spoke_ticket_result *settled)
{
	(void)arg;
	(void)settled;
	calling.told++;
	say_tickets();
}

static void defer(struct call *call, struct spoke_ticket ticket)
{
	calling.deferred++;
	if (spoke_ticket_then(calling.consumer, ticket, settled, call))
		live_say("no ticket");
}

static void done(void *arg, const struct spoke_result *result)
{
	struct call *call = arg;

	if (call->ends++ > 0) {
		calling.ends.twice++;
		return;
	}
	calling.ends.all++;
	if (result->error == SPOKE_OK)
		count_answer(&calling.ends, calling.answered, call, result);
	else if (result->error == SPOKE_EDEFERRED)
		defer(call, result->ticket);
	else
		count_failure(result);
	say_table();
}

/* --- calls */

static void make_call(void)
{
	static const unsigned char bytes[BYTES_MAX];
	struct spoke_builder builder;
	unsigned char memory[BYTES_MAX + 32];
	struct spoke_span args;
	int error;

	if (calling.taken == CALLS_MAX)
		abort();
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_u64(&builder, calling.taken);
	if (calling.bytes > 0)
		spoke_pack_bin(&builder, bytes, calling.bytes);
	error = spoke_builder_finish(&builder, &args);
	if (!error)
		error = spoke_call(calling.sign, args, NULL, done, &calling.calls[calling.taken],
				   NULL);
	if (error)
		live_say("not taken: %s", spoke_errname(error));
	calling.not_taken += error != 0;
	calling.taken += error == 0;
}

static void call_again(struct spoke_alarm *alarm)
{
	uint64_t gone_ns = spoke_engine_now(calling.engine) - calling.since_ns;
	uint64_t due = gone_ns / LIVE_NS_PER_MS * calling.per_second / 1000;

	(void)alarm;
	for (unsigned i = 0; i < BURST && calling.made < due; i++) {
		calling.made++;
		make_call();
	}
	calling.made = due;
}

static void begin_calls(uint64_t per_second)
{
	int error;

	calling.per_second = per_second;
	calling.since_ns = spoke_engine_now(calling.engine);
	calling.made = 0;
	error = spoke_alarm_every(calling.engine, &calling.again, PERIOD_NS, call_again);
	if (error)
		live_say("no calls: %s", spoke_errname(error));
}

static void obey(void *arg, const struct live_command *command)
{
	const char *word = command->word;
	uint64_t id = command->first % IDS_MAX;

	(void)arg;
	if (strcmp(word, "calls") == 0) {
		begin_calls(command->first);
	} else if (strcmp(word, "bytes") == 0 && command->first <= BYTES_MAX) {
		calling.bytes = (size_t)command->first;
	} else if (strcmp(word, "rest") == 0) {
		(void)spoke_alarm_cancel(&calling.again);
	} else if (strcmp(word, "table") == 0) {
		calling.wants_table = true;
		say_table();
	} else if (strcmp(word, "tickets") == 0) {
		calling.wants_tickets = true;
		say_tickets();
	} else if (strcmp(word, "waiting") == 0) {
		live_say("waiting %zu", spoke_consumer_tickets(calling.consumer, NULL));
	} else if (strcmp(word, "from") == 0) {
		live_say("from %u answered %u settled %u", (unsigned)id, calling.answered[id],
			 calling.settled[id]);
	} else if (strcmp(word, "ready") == 0) {
		live_say("ready %zu", spoke_consumer_ready(calling.consumer));
	} else if (strcmp(word, "endpoints") == 0) {
		live_say("endpoints %zu", spoke_consumer_endpoints(calling.consumer, NULL, 0));
	} else {
		live_say("what is %s?", word);
	}
}

static int begin(char **argv)
{
	const struct spoke_consumer_options options = {
		.url = live_argument(argv, "url"),
		.registry = live_argument(argv, "registry"),
		.changed = live_changed,
		.settled = told,
	};
	int error = spoke_engine_new(NULL, &calling.engine);

	if (!error)
		error = spoke_consumer_new(calling.engine, &options, &calling.consumer);
	return error ? error : spoke_consumer_method(calling.consumer, "sign", NULL, &calling.sign);
}

int main(int argc, char **argv)
{
	uint64_t drain_ns = live_number(argv, "drain", 10000) * LIVE_NS_PER_MS;
	int error = begin(argv);

	(void)argc;
	if (!error)
		error = live_run(calling.engine, drain_ns, obey, NULL);
	spoke_engine_free(calling.engine);
	live_say("ended %s", spoke_errname(error));
	return error != 0;
}
