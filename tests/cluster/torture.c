/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios in failing environments: see torture.h. */
#include "tests/cluster/torture.h"

#include "cluster/consumer/parts.h"
#include "cluster/provider/parts.h"
#include "transport/conn/link.h"

#include <stdio.h>
#include <string.h>

#define LARGE 200000
#define LARGE_OF_STREAM 50000
#define HEARTBEAT_NS (20 * MS)

struct play play;

/* --- provider */

static void reply_first(struct spoke_request *request)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value first = { NULL, 0 };

	(void)!spoke_cursor_next(&args, &first);
	spoke_reply_with(request, first, spoke_request_attachments(request));
}

static void answer_now(struct spoke_request *request, void *arg)
{
	(void)arg;
	reply_first(request);
}

static void answer_later(struct spoke_request *request, void *arg)
{
	(void)arg;
	if (spoke_request_keep(request) || play.held_count == HELD)
		spoke_reply_error(request, 1, "no memory for it");
	else
		play.held[play.held_count++] = request;
}

/* Serves pushes with the same two methods. */
static void serve_pushed(struct spoke_request *request, void *arg)
{
	if (spoke_request_method(request).len == strlen("later"))
		answer_later(request, arg);
	else
		answer_now(request, arg);
}

static bool provide(unsigned places)
{
	static const char *const urls[] = { "dubbo://127.0.0.1:20880", "dubbo://127.0.0.1:20881",
					    "dubbo://127.0.0.1:20882" };
	const struct spoke_provider_options options = {
		.default_service = "demo.Echo",
		.heartbeat_ns = play.heartbeat_ns,
		.tls = play.stream == &secure_stream ? &play.secure.provider : NULL,
	};
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = answer_now },
		{ .method = "later", .handle = answer_later },
	};
	struct spoke_engine_options with = { .env = &play.faulty[SERVER].env, .timers_max = 256 };

	if (spoke_engine_new(&with, &play.engines[SERVER]) ||
	    spoke_provider_new(play.engines[SERVER], &options, &play.provider))
		return false;
	play.provider->link->limits.wire.codec = play.codec;
	if (play.stream && play.stream != &secure_stream)
		play.provider->link->stream = play.stream;
	if (spoke_provider_add(play.provider, &service, handlers, LENGTH(handlers)))
		return false;
	for (unsigned i = 0; i < places; i++)
		if (spoke_provider_listen(play.provider, urls[i]))
			return false;
	return true;
}

/* --- consumer */

static bool consume(const char *host, unsigned endpoints)
{
	static char urls[3][128];
	const char *more[] = { urls[1], urls[2] };
	struct spoke_engine_options with = { .env = &play.faulty[CLIENT].env, .timers_max = 256 };
	struct spoke_consumer_options options = {
		.url = urls[0],
		.balancer = &spoke_balancer_round_robin,
		.more_urls = more,
		.more_count = endpoints - 1,
		.heartbeat_ns = play.heartbeat_ns,
		.handle = serve_pushed,
		.tls = play.stream == &secure_stream ? &play.secure.consumer : NULL,
	};

	for (unsigned i = 0; i < endpoints; i++)
		(void)snprintf(urls[i], sizeof(urls[i]), "%s://%s:%u/demo.Echo?timeout=300ms",
			       play.scheme, host, 20880 + i);
	if (spoke_engine_new(&with, &play.engines[CLIENT]) ||
	    spoke_consumer_new(play.engines[CLIENT], &options, &play.consumer))
		return false;
	play.consumer->link->limits.wire.codec = play.codec;
	if (play.stream && play.stream != &secure_stream)
		play.consumer->link->stream = play.stream;
	return spoke_consumer_method(play.consumer, "echo", NULL, &play.echo) == 0 &&
	       spoke_consumer_method(play.consumer, "later", NULL, &play.later) == 0;
}

static void note_end(void *arg, const struct spoke_result *result)
{
	unsigned *ends = arg;

	assert_int_equal(++*ends, 1);
	play.errors[ends - play.ends] = result->error;
	play.ended++;
}

static bool call_with(struct spoke_method *method, struct spoke_span args,
		      const struct spoke_call_options *options)
{
	unsigned at = play.begun;

	if (spoke_call(method, args, options, note_end, &play.ends[at], &play.names[at]))
		return false;
	play.begun++;
	return true;
}

bool torture_call(struct spoke_method *method)
{
	return call_with(method, (struct spoke_span){ "\xa4text", 5 }, NULL);
}

void torture_pass(uint64_t ns)
{
	spokei_world_run(&play.world, play.world.now_ns + ns);
}

void torture_answer_all(void)
{
	while (play.held_count > 0)
		reply_first(play.held[--play.held_count]);
}

/* --- scenarios; each runs as far as the faults allow */

static void call_and_reply(void)
{
	if (!provide(1) || !consume("127.0.0.1", 1))
		return;
	(void)torture_call(play.echo);
	torture_pass(10 * MS);
	(void)torture_call(play.echo);
	(void)torture_call(play.echo);
	torture_pass(10 * MS);
}

static void late_answer(void)
{
	if (!provide(1) || !consume("127.0.0.1", 1))
		return;
	(void)torture_call(play.later);
	(void)torture_call(play.later);
	torture_pass(20 * MS);
	torture_answer_all();
	torture_pass(10 * MS);
}

static void connect_to_nobody(void)
{
	if (!consume("127.0.0.1", 2))
		return;
	(void)torture_call(play.echo);
	torture_pass(SECOND);
	(void)torture_call(play.echo);
	torture_pass(SECOND);
}

static void many_endpoints(void)
{
	if (!provide(3) || !consume("127.0.0.1", 3))
		return;
	for (unsigned i = 0; i < 4; i++)
		(void)torture_call(play.echo);
	torture_pass(10 * MS);
	for (unsigned i = 0; i < 4; i++)
		(void)torture_call(i % 2 ? play.echo : play.later);
	torture_pass(10 * MS);
	torture_answer_all();
	torture_pass(10 * MS);
}

static void large_frames(void)
{
	static unsigned char bytes[LARGE] = { 0xc6 };
	/* The stream of the tests makes many small system calls, each of which has to fail once. */
	const size_t size = play.stream ? LARGE_OF_STREAM : LARGE;
	struct spoke_span args = { bytes, size };

	for (unsigned i = 0; i < 4; i++)
		bytes[1 + i] = (size - 5) >> (24 - 8 * i) & 255;
	if (!provide(1) || !consume("127.0.0.1", 1))
		return;
	(void)call_with(play.echo, args, NULL);
	torture_pass(10 * MS);
	(void)call_with(play.later, args, NULL);
	(void)call_with(play.echo, args, NULL);
	torture_pass(10 * MS);
	torture_answer_all();
	torture_pass(10 * MS);
}

static void one_way_and_attachments(void)
{
	static const unsigned char pairs[] = "\x82\xa1k\xa1v\xa2kk\xa2vv";
	struct spoke_call_options options = {
		.attachments = { pairs, sizeof(pairs) - 1 },
		.one_way = true,
	};
	struct spoke_span args = { "\x01\x02", 2 };

	if (!provide(1) || !consume("127.0.0.1", 1))
		return;
	(void)call_with(play.echo, args, &options);
	torture_pass(10 * MS);
	(void)call_with(play.later, args, &options);
	options.one_way = false;
	(void)call_with(play.echo, args, &options);
	torture_pass(10 * MS);
	torture_answer_all();
	torture_pass(10 * MS);
}

static void cancel(void)
{
	if (!provide(1) || !consume("127.0.0.1", 1))
		return;
	for (unsigned i = 0; i < 6; i++) {
		unsigned at = play.begun;

		if (torture_call(i < 5 ? play.later : play.echo) && i != 2)
			(void)spoke_call_cancel(play.consumer, play.names[at]);
		torture_pass(i % 2 * 5 * MS);
	}
	torture_pass(10 * MS);
	torture_answer_all();
	torture_pass(10 * MS);
}

static void close_consumer(void)
{
	if (!provide(1) || !consume("127.0.0.1", 1))
		return;
	(void)torture_call(play.later);
	torture_pass(10 * MS);
	(void)torture_call(play.later);
	(void)torture_call(play.echo);
	spoke_consumer_free(play.consumer);
	play.consumer = NULL;
	torture_pass(10 * MS);
	torture_answer_all();
	torture_pass(10 * MS);
}

static void close_provider(void)
{
	if (!provide(2) || !consume("127.0.0.1", 1))
		return;
	(void)torture_call(play.later);
	(void)torture_call(play.later);
	torture_pass(10 * MS);
	spoke_provider_free(play.provider);
	play.provider = NULL;
	torture_pass(10 * MS);
	(void)torture_call(play.echo);
	torture_answer_all();
	torture_pass(500 * MS);
}

static void generic(void)
{
	static const struct spoke_method_options options = { .generic = true,
							     .type_names = "java.lang.String" };
	struct spoke_method *method;

	if (!provide(1) || !consume("127.0.0.1", 1) ||
	    spoke_consumer_method(play.consumer, "echo", &options, &method))
		return;
	(void)torture_call(method);
	(void)torture_call(method);
	torture_pass(10 * MS);
	(void)torture_call(method);
	torture_pass(10 * MS);
}

static void name_is_resolved(void)
{
	spokei_vnet_name(play.world.net, "demo.test", "127.0.0.2 127.0.0.1");
	if (!provide(1) || !consume("demo.test", 1))
		return;
	(void)torture_call(play.echo);
	torture_pass(10 * MS);
	(void)torture_call(play.echo);
	torture_pass(SECOND);
}

static void drain(void)
{
	if (!provide(1) || !consume("127.0.0.1", 1))
		return;
	(void)torture_call(play.later);
	torture_pass(10 * MS);
	if (spoke_engine_drain(play.engines[SERVER], 100 * MS) == 0)
		play.provider = NULL;
	torture_pass(10 * MS);
	(void)torture_call(play.echo);
	if (spoke_engine_drain(play.engines[CLIENT], 200 * MS) == 0)
		play.consumer = NULL;
	torture_answer_all();
	torture_pass(SECOND);
}

/* Lets heartbeats pass on an idle and on a busy connection. */
static void a_link_that_lives(void)
{
	play.heartbeat_ns = HEARTBEAT_NS;
	if (!provide(1) || !consume("127.0.0.1", 1))
		return;
	(void)torture_call(play.echo);
	torture_pass(3 * HEARTBEAT_NS);
	(void)torture_call(play.later);
	torture_pass(2 * HEARTBEAT_NS);
	torture_answer_all();
	torture_pass(HEARTBEAT_NS / 2);
}

/* Makes both sides time out the other one, and reconnect. */
static void silence(void)
{
	const struct spokei_vnet_link cut = { .blackhole = true };
	const struct spokei_vnet_link whole = { 0 };

	play.heartbeat_ns = HEARTBEAT_NS;
	if (!provide(1) || !consume("127.0.0.1", 1))
		return;
	(void)torture_call(play.later);
	torture_pass(5 * MS);
	spokei_vnet_set_all(play.world.net, &cut);
	(void)torture_call(play.echo);
	torture_pass(5 * HEARTBEAT_NS);
	spokei_vnet_set_all(play.world.net, &whole);
	(void)torture_call(play.echo);
	torture_answer_all();
	torture_pass(10 * HEARTBEAT_NS);
	(void)torture_call(play.echo);
	torture_pass(HEARTBEAT_NS / 2);
}

static void push_with(struct spoke_method *method, struct spoke_peer peer,
		      const struct spoke_call_options *options)
{
	unsigned at = play.begun;

	if (spoke_push(method, peer, (struct spoke_span){ "\xa4text", 5 }, options, note_end,
		       &play.ends[at], &play.names[at]) == 0)
		play.begun++;
}

static void push(void)
{
	static const struct spoke_method_options of = { .service = "demo.Push" };
	static const struct spoke_call_options one_way = { .one_way = true };
	struct spoke_method *echo;
	struct spoke_method *later;
	struct spoke_peer peer;

	if (!provide(1) || !consume("127.0.0.1", 1) ||
	    spoke_provider_method(play.provider, "echo", &of, &echo) ||
	    spoke_provider_method(play.provider, "later", &of, &later))
		return;
	(void)torture_call(play.echo);
	torture_pass(10 * MS);
	if (spoke_provider_peers(play.provider, &peer, 1) == 0)
		return;
	push_with(echo, peer, NULL);
	push_with(later, peer, NULL);
	torture_pass(10 * MS);
	push_with(echo, peer, &one_way);
	push_with(later, peer, NULL);
	(void)!spoke_push_all(echo, (struct spoke_span){ "\x01", 1 }, NULL, NULL);
	(void)torture_call(play.echo);
	torture_pass(10 * MS);
	torture_answer_all();
	torture_pass(10 * MS);
}

const struct scenario scenarios[SCENARIOS] = {
	{ "call and reply", call_and_reply },
	{ "late answer", late_answer },
	{ "connect to nobody", connect_to_nobody },
	{ "many endpoints", many_endpoints },
	{ "large frames", large_frames },
	{ "one-way and attachments", one_way_and_attachments },
	{ "cancel", cancel },
	{ "close consumer", close_consumer },
	{ "close provider", close_provider },
	{ "generic", generic },
	[NAMED] = { "name is resolved", name_is_resolved },
	{ "drain", drain },
	{ "push", push },
	[LIVING] = { "a link that lives", a_link_that_lives },
	{ "silence", silence },
};
