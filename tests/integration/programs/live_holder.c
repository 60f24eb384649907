/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A holder of leases for tests with real processes.
 *
 *     live_holder store=URL name=NAME [ttl=MS] [url=URL]
 *
 * All its leases have one name. Their numbers are those of the commands. It prints all that it is
 * told, and when its engine was held up for GAP_NS or more. With a provider's URL it makes calls of
 * "echo". Commands:
 *     ask N        asks for lease N, and waits as long as needed
 *     release N    releases it
 *     left N       prints how long it is valid, in ms, and a time before that, in ns
 *     call N M     makes a call under lease N; M is the argument
 *     late N M     does the same, but the process stops itself just before it writes the call
 *     ready        prints the number of connected endpoints
 *     look         prints the number of asks and of leases that are held
 */
#define _GNU_SOURCE
#include "live.h"

#include <spoke/consumer.h>
#include <spoke/host.h>
#include <spoke/lease.h>

#include <signal.h>
#include <string.h>

#define LEASES_MAX 128u
#define TICK_NS (5 * LIVE_NS_PER_MS)
#define GAP_NS (200 * LIVE_NS_PER_MS)
#define CALL_NS (60000 * LIVE_NS_PER_MS)
#define METHOD "echo"

static struct holding {
	struct spoke_env env; /* the host's, with another write() */
	struct spoke_net net;
	struct spoke_engine *engine;
	struct spoke_leases *leases;
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	const char *name;
	struct spoke_lease held[LEASES_MAX];
	struct spoke_alarm tick;
	uint64_t ticked_ns;
	bool is_late;
} holding;

/* --- leases */

static unsigned number_of(const struct spoke_lease *slot)
{
	return (unsigned)(slot - holding.held);
}

static unsigned long long left_ms(struct spoke_lease lease)
{
	return (unsigned long long)(spoke_lease_left(lease) / LIVE_NS_PER_MS);
}

static void lost(void *arg, struct spoke_lease lease, enum spoke_lease_loss why)
{
	live_say("lost %u %s left %llu", number_of(arg), spoke_lease_loss_name(why),
		 left_ms(lease));
}

static void told(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	live_say("told %u %s fence %llu left %llu %.*s", number_of(arg),
		 spoke_errname(answer->error), (unsigned long long)answer->fence, left_ms(lease),
		 (int)answer->text.len, (const char *)answer->text.data);
}

static void released(void *arg, int error)
{
	live_say("released %u %s", number_of(arg), spoke_errname(error));
}

static void ask(struct spoke_lease *slot)
{
	const struct spoke_lease_options options = {
		.wait_ns = SPOKE_LEASE_FOREVER,
		.lost = lost,
		.arg = slot,
	};
	int error = spoke_lease_ask(holding.leases, holding.name, &options, told, slot);

	if (error)
		live_say("told %u %s not taken", number_of(slot), spoke_errname(error));
}

static void release(struct spoke_lease *slot)
{
	int error = spoke_lease_release(*slot, released, slot);

	if (error)
		live_say("released %u %s", number_of(slot), spoke_errname(error));
}

static void say_look(void)
{
	struct spoke_leases_look look;

	spoke_leases_look(holding.leases, &look);
	live_say("look asked %u held %u", look.asked, look.held);
}

/* Prints that the engine was held up. */
static void tick(struct spoke_alarm *alarm)
{
	uint64_t now_ns = holding.env.now(holding.env.ctx);

	(void)alarm;
	if (now_ns - holding.ticked_ns >= GAP_NS)
		live_say("woke after %llu",
			 (unsigned long long)((now_ns - holding.ticked_ns) / LIVE_NS_PER_MS));
	holding.ticked_ns = now_ns;
}

static void say_left(const struct spoke_lease *slot)
{
	unsigned long long now_ns = holding.env.now(holding.env.ctx);

	live_say("left %u %llu at %llu", number_of(slot), left_ms(*slot), now_ns);
}

/* --- calls */

static bool is_call(const struct iovec *parts, int count)
{
	for (int i = 0; i < count; i++)
		if (memmem(parts[i].iov_base, parts[i].iov_len, METHOD, strlen(METHOD)))
			return true;
	return false;
}

/* Stops just before a call is written, when all checks are over. */
static ssize_t write_late(void *ctx, int fd, const struct iovec *parts, int count)
{
	if (holding.is_late && is_call(parts, count)) {
		holding.is_late = false;
		live_say("stops");
		(void)raise(SIGSTOP);
	}
	return spoke_host_env()->net->write(ctx, fd, parts, count);
}

static void call_ended(void *arg, const struct spoke_result *result)
{
	live_say("end %u %s written %d %.*s", (unsigned)(uintptr_t)arg,
		 spoke_errname(result->error), result->written, (int)result->error_text.len,
		 (const char *)result->error_text.data);
}

static void call(const struct spoke_lease *slot, uint64_t number)
{
	const struct spoke_call_options options = { .lease = *slot, .timeout_ns = CALL_NS };
	struct spoke_builder builder;
	unsigned char memory[16];
	struct spoke_span args;
	int error;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_u64(&builder, number);
	error = spoke_builder_finish(&builder, &args);
	if (!error)
		error = spoke_call(holding.echo, args, &options, call_ended,
				   (void *)(uintptr_t)number, NULL);
	if (error)
		live_say("end %llu %s not taken", (unsigned long long)number, spoke_errname(error));
}

/* --- life */

static void obey(void *arg, const struct live_command *command)
{
	const char *word = command->word;
	struct spoke_lease *slot = &holding.held[command->first % LEASES_MAX];

	(void)arg;
	if (strcmp(word, "ask") == 0) {
		ask(slot);
	} else if (strcmp(word, "release") == 0) {
		release(slot);
	} else if (strcmp(word, "left") == 0) {
		say_left(slot);
	} else if (strcmp(word, "call") == 0) {
		call(slot, command->second);
	} else if (strcmp(word, "late") == 0) {
		holding.is_late = true;
		call(slot, command->second);
	} else if (strcmp(word, "ready") == 0) {
		live_say("ready %zu", spoke_consumer_ready(holding.consumer));
	} else if (strcmp(word, "look") == 0) {
		say_look();
	} else {
		live_say("what is %s?", word);
	}
}

static int consume(const char *url)
{
	const struct spoke_consumer_options options = { .url = url, .heartbeat_ns = SPOKE_OFF };
	int error = spoke_consumer_new(holding.engine, &options, &holding.consumer);

	if (!error)
		error = spoke_consumer_method(holding.consumer, METHOD, NULL, &holding.echo);
	return error;
}

static int begin(char **argv)
{
	const struct spoke_leases_options options = {
		.store = live_argument(argv, "store"),
		.ttl_ns = live_time(argv, "ttl"),
	};
	const struct spoke_engine_options with = { .env = &holding.env };
	const char *url = live_argument(argv, "url");
	int error;

	holding.env = *spoke_host_env();
	holding.net = *holding.env.net;
	holding.net.write = write_late;
	holding.env.net = &holding.net;
	holding.name = live_argument(argv, "name");
	holding.ticked_ns = holding.env.now(holding.env.ctx);
	error = spoke_engine_new(&with, &holding.engine);
	if (!error)
		error = spoke_leases_new(holding.engine, &options, &holding.leases);
	if (!error && url)
		error = consume(url);
	if (!error)
		error = spoke_alarm_every(holding.engine, &holding.tick, TICK_NS, tick);
	return error;
}

int main(int argc, char **argv)
{
	int error = begin(argv);

	(void)argc;
	if (!error)
		error = live_run(holding.engine, 0, obey, NULL);
	spoke_leases_free(holding.leases);
	spoke_consumer_free(holding.consumer);
	spoke_engine_free(holding.engine);
	live_say("ended %s", spoke_errname(error));
	return error != 0;
}
