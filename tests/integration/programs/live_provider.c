/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider for tests with real processes.
 *
 *     live_provider [listen=URL] [heartbeat=MS|off] [drain=MS] [connections=N] [requests=N]
 *         [id=N] [registry=URL] [fence=1] [dedupe=MS] [journal=DIR] [durability=power]
 *
 * Serves demo.EchoService: "echo" answers with its argument at once, "hold" after the command
 * "release", "large" with as many bytes as its argument specifies, "sign" with its argument and, in
 * the upper 32 bits, the provider's id. It prints a line when a "hold" runs. It has no warm-up. At
 * its end, unless it is killed, it prints the number of handler runs. With a fence it refuses
 * requests with a lower fence number than it has seen. Commands:
 *     release       answers all held requests
 *     push N        pushes to every consumer, and prints the number of pushes
 *     ask N         pushes to every consumer, and prints the result of each push
 *     runs          prints the number of handler runs, and of different "spoke.id"
 *     registered    prints the number of its current registrations
 *     offline, online  steps aside, comes back
 */
#include "live.h"

#include <spoke/fence.h>
#include <spoke/provider.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELD_MAX 4096u
#define LARGE_MAX (1u << 20)
#define IDS_MAX (1u << 16) /* a power of two; only a part is used */

struct serving {
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct spoke_request *held[HELD_MAX];
	unsigned held_count;
	uint64_t id;
	uint64_t runs;
	uint64_t ids[IDS_MAX]; /* hashes of "spoke.id"; 0: unused */
	unsigned different;
	struct spoke_method *told; /* method of consumers, for pushes */
	struct spoke_fence *fence; /* NULL: none */
};

static struct spoke_value first_of(const struct spoke_request *request)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value = { NULL, 0 };

	(void)!spoke_cursor_next(&args, &value);
	return value;
}

static void echo(struct spoke_request *request, void *arg)
{
	struct serving *serving = arg;

	serving->runs++;
	spoke_reply(request, first_of(request));
}

static void hold(struct spoke_request *request, void *arg)
{
	struct serving *serving = arg;
	uint64_t number = 0;

	serving->runs++;
	(void)!spoke_value_u64(first_of(request), &number);
	if (serving->held_count == HELD_MAX || spoke_request_keep(request)) {
		spoke_reply_error(request, 1, "no room to keep it");
		return;
	}
	serving->held[serving->held_count++] = request;
	live_say("held %llu", (unsigned long long)number);
}

static void large(struct spoke_request *request, void *arg)
{
	static unsigned char bytes[LARGE_MAX + 5] = { 0xc6 };
	struct serving *serving = arg;
	uint64_t len = 0;

	serving->runs++;
	if (spoke_value_u64(first_of(request), &len) || len > LARGE_MAX) {
		spoke_reply_error(request, 1, "how large?");
		return;
	}
	for (unsigned i = 0; i < 4; i++)
		bytes[1 + i] = (unsigned char)(len >> (24 - 8 * i));
	spoke_reply(request, (struct spoke_value){ bytes, (size_t)len + 5 });
}

static void release(struct serving *serving)
{
	while (serving->held_count > 0) {
		struct spoke_request *request = serving->held[--serving->held_count];

		spoke_reply(request, first_of(request));
	}
}

static struct spoke_span pack_number(struct spoke_builder *builder, unsigned char *memory,
				     size_t size, uint64_t number)
{
	struct spoke_span args = { NULL, 0 };

	spoke_builder_init_fixed(builder, memory, size, NULL);
	spoke_pack_u64(builder, number);
	(void)!spoke_builder_finish(builder, &args);
	return args;
}

static void push(struct serving *serving, uint64_t number)
{
	struct spoke_builder builder;
	unsigned char memory[16];
	struct spoke_span args = pack_number(&builder, memory, sizeof(memory), number);
	size_t count = 0;
	int error = spoke_push_all(serving->told, args, NULL, &count);

	live_say("push %s to %zu", spoke_errname(error), count);
}

static void asked(void *arg, const struct spoke_result *result)
{
	(void)arg;
	live_say("asked %s", spoke_errname(result->error));
}

static void ask(struct serving *serving, uint64_t number)
{
	static struct spoke_peer peers[HELD_MAX];
	struct spoke_builder builder;
	unsigned char memory[16];
	struct spoke_span args = pack_number(&builder, memory, sizeof(memory), number);
	size_t count = spoke_provider_peers(serving->provider, peers, HELD_MAX);

	for (size_t i = 0; i < count && i < HELD_MAX; i++) {
		int error = spoke_push(serving->told, peers[i], args, NULL, asked, NULL, NULL);

		if (error)
			live_say("asked %s", spoke_errname(error));
	}
}

/* Counts distinct "spoke.id": all attempts of a call have the same one. */
static void note_id(struct serving *serving, struct spoke_value attachments)
{
	struct spoke_value value;
	struct spoke_span text;
	char digits[17];
	uint64_t id;
	uint64_t at;

	if (attachments.len == 0 || spoke_value_get(attachments, "spoke.id", &value) ||
	    spoke_value_str(value, &text))
		return;
	(void)snprintf(digits, sizeof(digits), "%.*s", (int)text.len, (const char *)text.data);
	id = strtoull(digits, NULL, 16);
	for (at = id; serving->ids[at % IDS_MAX] != id; at++) {
		if (serving->ids[at % IDS_MAX] != 0)
			continue;
		if (++serving->different == IDS_MAX)
			abort();
		serving->ids[at % IDS_MAX] = id;
		return;
	}
}

static void sign(struct spoke_request *request, void *arg)
{
	struct serving *serving = arg;
	struct spoke_builder builder;
	unsigned char memory[16];
	struct spoke_span bytes;
	uint64_t number = 0;

	serving->runs++;
	note_id(serving, spoke_request_attachments(request));
	(void)!spoke_value_u64(first_of(request), &number);
	bytes = pack_number(&builder, memory, sizeof(memory), serving->id << 32 | number);
	spoke_reply(request, (struct spoke_value){ bytes.data, bytes.len });
}

static void say_runs(const struct serving *serving)
{
	live_say("runs %llu different %u", (unsigned long long)serving->runs, serving->different);
}

static void say_registered(const struct serving *serving)
{
	size_t wanted;
	size_t held = spoke_provider_registered(serving->provider, &wanted);

	live_say("registered %zu of %zu", held, wanted);
}

static void obey(void *arg, const struct live_command *command)
{
	struct serving *serving = arg;

	if (strcmp(command->word, "release") == 0)
		release(serving);
	else if (strcmp(command->word, "push") == 0)
		push(serving, command->first);
	else if (strcmp(command->word, "ask") == 0)
		ask(serving, command->first);
	else if (strcmp(command->word, "runs") == 0)
		say_runs(serving);
	else if (strcmp(command->word, "registered") == 0)
		say_registered(serving);
	else if (strcmp(command->word, "offline") == 0)
		live_say("offline %d", spoke_provider_offline(serving->provider));
	else if (strcmp(command->word, "online") == 0)
		live_say("online %d", spoke_provider_online(serving->provider));
	else
		live_say("what is %s?", command->word);
}

static int serve(struct serving *serving, char **argv)
{
	const char *url = live_argument(argv, "listen");
	const struct spoke_filter *filter = serving->fence ? spoke_fence_filter(serving->fence)
							   : NULL;
	const struct spoke_provider_options options = {
		.filters = &filter,
		.filter_count = filter != NULL,
		.connections_max = (uint32_t)live_number(argv, "connections", 0),
		.connections_per_peer_max = (uint32_t)live_number(argv, "connections", 0),
		.requests_per_connection_max = (uint32_t)live_number(argv, "requests", 0),
		.heartbeat_ns = live_time(argv, "heartbeat"),
		.changed = live_changed,
		.registry = live_argument(argv, "registry"),
		.warmup_ns = SPOKE_OFF,
		.dedupe_ns = live_time(argv, "dedupe"),
		.journal = live_argument(argv, "journal"),
		.durability = live_argument(argv, "durability") ? SPOKE_DURABILITY_POWER
								: SPOKE_DURABILITY_DEFAULT,
	};
	const struct spoke_service_options service = { .name = LIVE_SERVICE };
	const struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = echo, .arg = serving },
		{ .method = "hold", .handle = hold, .arg = serving },
		{ .method = "large", .handle = large, .arg = serving },
		{ .method = "sign", .handle = sign, .arg = serving },
	};
	const struct spoke_method_options of = { .service = "demo.Listener" };
	char address[128];
	int error = spoke_engine_new(NULL, &serving->engine);

	serving->id = live_number(argv, "id", 0);
	if (!error)
		error = spoke_provider_new(serving->engine, &options, &serving->provider);
	if (!error)
		error = spoke_provider_add(serving->provider, &service, handlers, 4);
	if (!error)
		error = spoke_provider_method(serving->provider, "told", &of, &serving->told);
	if (!error)
		error = spoke_provider_listen(serving->provider, url ? url : "dubbo://127.0.0.1:0");
	if (!error && spoke_provider_address(serving->provider, 0, address, sizeof(address)))
		live_say("listens %s", address);
	return error;
}

int main(int argc, char **argv)
{
	static struct serving serving;
	uint64_t drain_ns = live_number(argv, "drain", 10000) * LIVE_NS_PER_MS;
	int error = 0;

	(void)argc;
	if (live_number(argv, "fence", 0))
		error = spoke_fence_new(NULL, NULL, &serving.fence);
	if (!error)
		error = serve(&serving, argv);
	if (!error)
		error = live_run(serving.engine, drain_ns, obey, &serving);
	release(&serving);
	spoke_engine_free(serving.engine);
	spoke_fence_free(serving.fence);
	say_runs(&serving);
	live_say("ended %s", spoke_errname(error));
	return error != 0;
}
