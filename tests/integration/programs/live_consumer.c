/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer for tests with real processes.
 *
 *     live_consumer url=URL [registry=URL] [heartbeat=MS|off] [timeout=MS] [every=MS]
 *                   [consumers=N] [journal=FOLDER] [durability=power]
 *
 * Calls "echo" every MS milliseconds (default: never), in turn on each of its consumers, and checks
 * that the answer is the argument. It serves pushes and prints them. With a journal it prints the
 * id of each ticket when its call is deferred, and when it is settled. Commands: echo N, hold N,
 * large BYTES    makes a call and prints its result rest                           stops the
 * periodic calls table                          prints the results of calls, when none is in flight
 *     tickets                        prints the number of tickets that are not settled
 *     ready                          prints the number of connected endpoints
 *     free                           frees its consumers
 */
#include "live.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_MAX (1u << 20)

enum kind {
	ECHO,
	HOLD,
	LARGE,
	KINDS,
};

static const char *const kind_names[KINDS] = { "echo", "hold", "large" };

struct one {
	struct spoke_consumer *consumer;
	struct spoke_method *methods[KINDS];
};

struct call {
	uint64_t number;
	enum kind kind;
	unsigned ends;
	bool is_told; /* the result must be printed */
};

static struct calling {
	struct spoke_engine *engine;
	struct one *ones;
	unsigned one_count;
	unsigned turn; /* index of the consumer that calls next */
	struct spoke_alarm again;
	bool wants_table;
	struct call calls[CALLS_MAX];
	unsigned taken;
	unsigned not_taken;
	unsigned ended;
	unsigned ok;
	unsigned wrong; /* wrong answers */
	unsigned timeouts;
	unsigned lost;
	unsigned refused;
	unsigned other;
	unsigned twice;
} calling;

static void say_table(void)
{
	if (!calling.wants_table || calling.ended < calling.taken)
		return;
	calling.wants_table = false;
	live_say("table taken %u ok %u wrong %u timeouts %u lost %u refused %u other %u twice %u "
		 "not_taken %u",
		 calling.taken, calling.ok, calling.wrong, calling.timeouts, calling.lost,
		 calling.refused, calling.other, calling.twice, calling.not_taken);
}

/* Counts a call whose deadline has passed. A provider that was stalled may detect this first. */
static bool is_timeout(int error)
{
	return error == SPOKE_ETIMEOUT || error == SPOKE_ETIMEOUT_UNSENT || error == SPOKE_EEXPIRED;
}

/* Prints the id of a ticket. */
static void say_deferred(const struct call *call, struct spoke_ticket ticket)
{
	struct spoke_ticket_state state;

	for (unsigned i = 0; i < calling.one_count; i++)
		if (calling.ones[i].consumer &&
		    spoke_ticket_ask(calling.ones[i].consumer, ticket, &state))
			live_say("deferred %llu %016llx", (unsigned long long)call->number,
				 (unsigned long long)state.id);
}

static void settled(void *arg, const struct spoke_ticket_result *how)
{
	(void)arg;
	live_say("settled %016llx %s attempts %u", (unsigned long long)how->id,
		 spoke_ticket_settlement_name(how->settlement), how->attempts);
}

static void recovered(void *arg, const struct spoke_recovered *what)
{
	(void)arg;
	live_say("recovered %s tickets %llu expired %llu unknown %llu", spoke_errname(what->error),
		 (unsigned long long)what->tickets, (unsigned long long)what->expired,
		 (unsigned long long)what->unknown);
}

static void count(const struct call *call, const struct spoke_result *result)
{
	uint64_t number = 0;
	struct spoke_span bytes;
	int error = result->error;

	if (error == SPOKE_OK) {
		bool is_right = call->kind == LARGE ? !spoke_value_bin(result->value, &bytes) &&
							      bytes.len == call->number
						    : !spoke_value_u64(result->value, &number) &&
							      number == call->number;

		calling.ok += is_right;
		calling.wrong += !is_right;
	} else if (is_timeout(error)) {
		calling.timeouts++;
	} else if (spoke_error_is_transport(error)) {
		calling.lost++;
	} else if (error == SPOKE_EREFUSED) {
		calling.refused++;
	} else {
		calling.other++;
	}
}

static void done(void *arg, const struct spoke_result *result)
{
	struct call *call = arg;

	if (call->ends++ > 0) {
		calling.twice++;
		return;
	}
	calling.ended++;
	count(call, result);
	if (result->error == SPOKE_EDEFERRED)
		say_deferred(call, result->ticket);
	if (call->is_told)
		live_say("end %s %llu %s written %d", kind_names[call->kind],
			 (unsigned long long)call->number, spoke_errname(result->error),
			 result->written);
	say_table();
}

static int make_call(enum kind kind, uint64_t number, bool is_told)
{
	struct one *one = &calling.ones[calling.turn++ % calling.one_count];
	struct call *call = &calling.calls[calling.taken];
	struct spoke_builder builder;
	unsigned char memory[16];
	struct spoke_span args;
	int error;

	if (one->consumer == NULL || calling.taken == CALLS_MAX)
		return SPOKE_ESTATE;
	*call = (struct call){ number, kind, 0, is_told };
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_u64(&builder, number);
	error = spoke_builder_finish(&builder, &args);
	if (!error)
		error = spoke_call(one->methods[kind], args, NULL, done, call, NULL);
	if (error)
		calling.not_taken++;
	else
		calling.taken++;
	return error;
}

static void call_again(struct spoke_alarm *alarm)
{
	(void)alarm;
	(void)make_call(ECHO, calling.taken, false);
}

static void tell_call(enum kind kind, uint64_t number)
{
	int error = make_call(kind, number, true);

	if (error)
		live_say("end %s %llu %s not taken: %s", kind_names[kind],
			 (unsigned long long)number, spoke_errname(error),
			 spoke_engine_why(calling.engine));
}

static void say_ready(void)
{
	size_t ready = 0;

	for (unsigned i = 0; i < calling.one_count; i++)
		if (calling.ones[i].consumer)
			ready += spoke_consumer_ready(calling.ones[i].consumer);
	live_say("ready %zu", ready);
}

static void say_tickets(void)
{
	size_t tickets = 0;

	for (unsigned i = 0; i < calling.one_count; i++)
		if (calling.ones[i].consumer)
			tickets += spoke_consumer_tickets(calling.ones[i].consumer, NULL);
	live_say("tickets %zu", tickets);
}

static void free_all(void)
{
	for (unsigned i = 0; i < calling.one_count; i++) {
		spoke_consumer_free(calling.ones[i].consumer);
		calling.ones[i].consumer = NULL;
	}
	live_say("freed");
}

static void obey(void *arg, const struct live_command *command)
{
	const char *word = command->word;

	(void)arg;
	for (unsigned i = 0; i < KINDS; i++) {
		if (strcmp(word, kind_names[i]) == 0) {
			tell_call((enum kind)i, command->first);
			return;
		}
	}
	if (strcmp(word, "rest") == 0) {
		(void)spoke_alarm_cancel(&calling.again);
	} else if (strcmp(word, "table") == 0) {
		calling.wants_table = true;
		say_table();
	} else if (strcmp(word, "ready") == 0) {
		say_ready();
	} else if (strcmp(word, "tickets") == 0) {
		say_tickets();
	} else if (strcmp(word, "free") == 0) {
		free_all();
	} else {
		live_say("what is %s?", word);
	}
}

/* Handles a push from a provider. */
static void told(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value = { NULL, 0 };
	uint64_t number = 0;

	(void)arg;
	if (spoke_cursor_next(&args, &value))
		(void)!spoke_value_u64(value, &number);
	live_say("told %llu", (unsigned long long)number);
	spoke_reply(request, value);
}

static int consume(struct one *one, char **argv)
{
	const char *journal = live_argument(argv, "journal");
	const char *durability = live_argument(argv, "durability");
	const struct spoke_consumer_options options = {
		.url = live_argument(argv, "url"),
		.registry = live_argument(argv, "registry"),
		.timeout_ns = live_time(argv, "timeout"),
		.heartbeat_ns = live_time(argv, "heartbeat"),
		.changed = live_changed,
		.handle = told,
		.journal = journal,
		.durability = durability && strcmp(durability, "power") == 0
				      ? SPOKE_DURABILITY_POWER
				      : SPOKE_DURABILITY_DEFAULT,
		.settled = journal ? settled : NULL,
		.recovered = journal ? recovered : NULL,
	};
	int error = spoke_consumer_new(calling.engine, &options, &one->consumer);

	for (unsigned i = 0; i < KINDS && !error; i++)
		error = spoke_consumer_method(one->consumer, kind_names[i], NULL, &one->methods[i]);
	return error;
}

static int begin(char **argv)
{
	uint64_t every_ns = live_time(argv, "every");
	int error = spoke_engine_new(NULL, &calling.engine);

	calling.one_count = (unsigned)live_number(argv, "consumers", 1);
	calling.ones = calloc(calling.one_count, sizeof(*calling.ones));
	if (calling.ones == NULL)
		return SPOKE_ENOMEM;
	for (unsigned i = 0; i < calling.one_count && !error; i++)
		error = consume(&calling.ones[i], argv);
	if (every_ns > 0 && !error)
		error = spoke_alarm_every(calling.engine, &calling.again, every_ns, call_again);
	return error;
}

int main(int argc, char **argv)
{
	uint64_t drain_ns = live_number(argv, "drain", 10000) * LIVE_NS_PER_MS;
	int error = begin(argv);

	(void)argc;
	if (!error)
		error = live_run(calling.engine, drain_ns, obey, NULL);
	spoke_engine_free(calling.engine);
	free(calling.ones);
	live_say("ended %s", spoke_errname(error));
	return error != 0;
}
