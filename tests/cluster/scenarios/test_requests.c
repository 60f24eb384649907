/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests at a provider: without a free thread, of callers that end, large, and with cycles.
 */
#include "tests/cluster/scenarios/linkrig.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "transport/codec/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * --- A provider whose pool has no free thread: waits are counted and explained, the queue is
 * bounded
 */

#define MINUTE (60 * SECOND)

static uint64_t asked;

/* Sends requests with this time left; 0: without a deadline. */
static void ask_within(unsigned count, int64_t timeout_ms)
{
	const struct spokei_message pattern = {
		.kind = SPOKEI_REQUEST,
		.codec = SPOKEI_CODEC_MSGPACK,
		.two_way = true,
		.service = { "demo.Echo", 9 },
		.method = { "block", 5 },
		.timeout_ms = timeout_ms,
	};

	for (unsigned i = 0; i < count; i++) {
		struct spokei_message message = pattern;

		message.id = ++asked;
		peer_put(&linkrig.conn, &message);
	}
	assert_int_equal(peer_write(&linkrig.conn, SIZE_MAX), 0);
	linkrig_pass(10 * TICK);
}

static void ask(unsigned count)
{
	ask_within(count, 0);
}

static void begin(void)
{
	const struct spoke_provider_options options = { .heartbeat_ns = SPOKE_OFF };

	asked = 0;
	linkrig_provide("dubbo", &options);
	linkrig_connect();
}

/* Returns the number of events that name the key of the pool's threads, and the last of them. */
static unsigned hints(struct spoke_event *ret_last)
{
	struct spoke_event event = { .number = 0 };
	unsigned count = 0;

	while (spoke_event_get(linkrig.engine, event.number + 1, &event) == SPOKE_OK) {
		if (strstr(event.text, "pool.threads") == NULL)
			continue;
		count++;
		*ret_last = event;
	}
	return count;
}

FIXTURE(linkrig_set_up, linkrig_tear_down);

TEST(long_wait_for_the_pool_is_counted_and_explained)
{
	struct spoke_event hint;
	struct spoke_pool pool;

	begin();
	linkrig.process.pool_is_busy = true;
	ask(3);
	linkrig_pass(300 * MS);
	spoke_engine_pool(linkrig.engine, &pool);
	assert_int_equal(pool.queued, 3);
	assert_int_equal(pool.queue_max, 256);
	assert_int_equal(pool.threads_max, 4);
	assert_int_equal(hints(&hint), 0);
	linkrig.process.pool_is_busy = false;
	ask(1);
	linkrig_read();
	assert_int_equal(linkrig.read[SPOKEI_REPLY], 4);
	assert_int_equal(linkrig_stat(SPOKE_STAT_REQUESTS_OK), 4);
	assert_int_equal(linkrig_stat(SPOKE_STAT_POOL_REQUESTS), 4);
	assert_int_equal(linkrig_stat(SPOKE_STAT_POOL_WAITED), 3);
	assert_int_equal(linkrig_stat(SPOKE_STAT_POOL_FULL), 0);
	assert_int_equal(hints(&hint), 1);
	assert_non_null(strstr(hint.text, " 4 threads"));
	assert_non_null(strstr(hint.text, "pool.threads"));
	spoke_engine_pool(linkrig.engine, &pool);
	assert_int_equal(pool.queued, 0);
}

TEST(short_waits_for_the_pool_give_no_hint)
{
	struct spoke_event hint;

	begin();
	for (unsigned i = 0; i < 20; i++) {
		linkrig.process.pool_is_busy = true;
		ask(1);
		linkrig_pass(60 * MS);
		linkrig.process.pool_is_busy = false;
		ask(1);
	}
	assert_int_equal(linkrig_stat(SPOKE_STAT_POOL_REQUESTS), 40);
	assert_int_equal(linkrig_stat(SPOKE_STAT_POOL_WAITED), 0);
	assert_int_equal(hints(&hint), 0);
}

TEST(full_pool_refuses_and_says_so_once_a_minute)
{
	struct spoke_event hint;

	begin();
	for (unsigned round = 1; round <= 3; round++) {
		linkrig.process.pool_is_busy = true;
		ask(SPOKE_POOL_QUEUE + 10);
		assert_int_equal(linkrig_stat(SPOKE_STAT_POOL_FULL), 10 * round);
		assert_int_equal(linkrig_stat(SPOKE_STAT_REQUESTS_REFUSED), 10 * round);
		assert_int_equal(hints(&hint), round == 3 ? 2 : 1);
		assert_non_null(strstr(hint.text, "pool.queue"));
		linkrig.process.pool_is_busy = false;
		ask(1);
		linkrig_read();
		assert_int_equal(linkrig.read[SPOKEI_REPLY], asked);
		if (round == 2)
			linkrig_pass(MINUTE);
	}
}

TEST(requests_in_the_queue_are_refused_when_the_engine_ends)
{
	begin();
	linkrig.process.pool_is_busy = true;
	ask(7);
	/* The rig frees the engine, and asserts that nothing is left. */
}

/* Those with time left are run, in the same queue. */
TEST(pool_runs_no_request_whose_deadline_passed_in_queue)
{
	begin();
	linkrig.process.pool_is_busy = true;
	ask_within(2, 100);
	ask_within(3, 1000);
	linkrig_pass(300 * MS);
	linkrig.process.pool_is_busy = false;
	ask_within(1, 100);
	linkrig_read();
	assert_int_equal(linkrig.read[SPOKEI_REPLY], 6);
	assert_int_equal(linkrig_stat(SPOKE_STAT_REQUESTS_EXPIRED), 2);
	assert_int_equal(linkrig_stat(SPOKE_STAT_REQUESTS_OK), 4);
}

TEST(pool_runs_no_request_whose_caller_has_left)
{
	begin();
	linkrig.process.pool_is_busy = true;
	ask(3);
	spokei_vnet_reset(linkrig.world.net, linkrig.conn.fd);
	peer_close(&linkrig.conn);
	linkrig_pass(10 * TICK);
	linkrig.process.pool_is_busy = false;
	linkrig_connect();
	ask(1);
	assert_int_equal(linkrig_stat(SPOKE_STAT_POOL_REQUESTS), 4);
	assert_int_equal(linkrig_stat(SPOKE_STAT_REQUESTS_OK), 1);
	assert_int_equal(linkrig_stat(SPOKE_STAT_REQUESTS_ABANDONED), 3);
}

/* --- A provider whose caller ends while its requests are being served */

#define MARK (UINT64_C(0x73706f6b) << 32) /* ids of spoke's consumers, see WIRE.md */

static void put(enum spokei_kind kind, uint64_t id, bool two_way)
{
	const struct spokei_message message = {
		.kind = kind,
		.codec = SPOKEI_CODEC_MSGPACK,
		.id = id,
		.two_way = two_way,
		.service = { "demo.Echo", 9 },
		.method = { "later", 5 },
	};

	peer_put(&linkrig.conn, &message);
	assert_int_equal(peer_write(&linkrig.conn, SIZE_MAX), 0);
	linkrig_pass(2 * TICK);
}

static void half_close(void)
{
	const struct spoke_env *env = &linkrig.peer.process.env;

	assert_int_equal(env->net->shut(env->ctx, linkrig.conn.fd), 0);
	linkrig_pass(2 * TICK);
}

/* Lets a peer whose first heartbeat has this id send a request and half-close. */
static void callers_gone_begin(uint64_t half_close_ns, uint64_t id, bool two_way)
{
	const struct spoke_provider_options options = { .heartbeat_ns = SPOKE_OFF,
							.half_close_ns = half_close_ns };

	linkrig_provide("dubbo", &options);
	linkrig_connect();
	put(SPOKEI_PROBE, id, true);
	put(SPOKEI_REQUEST, id + 1, two_way);
	assert_non_null(linkrig.held);
	half_close();
}

TEST(end_of_a_consumer_of_spoke_abandons_its_requests)
{
	callers_gone_begin(0, MARK | 0xfffffffe, true);
	assert_int_equal(linkrig.abandoned, 1);
	assert_int_equal(linkrig_stat(SPOKE_STAT_REQUESTS_ABANDONED), 1);
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 1);
}

TEST(foreign_caller_that_half_closes_is_served)
{
	callers_gone_begin(0, 7, true);
	linkrig_pass(59 * SECOND);
	assert_int_equal(linkrig.abandoned, 0);
	linkrig_answer();
	linkrig_pass(2 * TICK);
	linkrig_read();
	assert_int_equal(linkrig.read[SPOKEI_REPLY], 1);
}

TEST(foreign_caller_is_served_for_half_close_only)
{
	callers_gone_begin(2 * SECOND, 7, true);
	linkrig_pass(2 * SECOND - 5 * TICK);
	assert_int_equal(linkrig.abandoned, 0);
	linkrig_pass(10 * TICK);
	assert_int_equal(linkrig.abandoned, 1);
}

TEST(half_close_off_takes_every_fin_as_an_end)
{
	callers_gone_begin(SPOKE_OFF, 7, true);
	assert_int_equal(linkrig.abandoned, 1);
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 1);
}

TEST(one_way_request_goes_on_after_its_caller)
{
	callers_gone_begin(0, MARK, false);
	linkrig_pass(59 * SECOND);
	assert_int_equal(linkrig.abandoned, 0);
	linkrig_answer();
	linkrig_pass(2 * TICK);
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 1);
}

/* --- a consumer in another process */

static struct {
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
} caller;

static void call_later(const char *scheme)
{
	const struct spoke_call_options call = { .timeout_ns = 600 * SECOND };
	struct spoke_consumer_options with = { .heartbeat_ns = SPOKE_OFF };
	struct spoke_method *method;
	char url[64];

	(void)snprintf(url, sizeof(url), "%s://" LINKRIG_AT "/demo.Echo", scheme);
	with.url = url;
	caller.engine = scene_engine(&linkrig.world, &caller.process, NULL, NULL);
	assert_int_equal(spoke_consumer_new(caller.engine, &with, &caller.consumer), SPOKE_OK);
	assert_int_equal(spoke_consumer_method(caller.consumer, "later", NULL, &method), SPOKE_OK);
	linkrig_pass(10 * TICK);
	assert_int_equal(spoke_call(method, (struct spoke_span){ NULL, 0 }, &call, NULL, NULL,
				    NULL),
			 SPOKE_OK);
	linkrig_pass(10 * TICK);
	assert_non_null(linkrig.held);
}

static void end_caller(void)
{
	spoke_engine_free(caller.engine);
	spokei_world_process_fini(&caller.process);
}

/* The descriptors are closed without a notice, as by the system when a process is killed. */
TEST(killed_caller_is_noticed_at_once)
{
	const struct spoke_provider_options options = { .heartbeat_ns = 60 * SECOND };

	linkrig_provide("dubbo", &options);
	call_later("dubbo");
	end_caller();
	linkrig_pass(5 * TICK);
	assert_int_equal(linkrig.abandoned, 1);
}

/* Without heartbeats nothing tells a consumer of spoke from Neovim, which may half-close. */
TEST(half_close_ends_requests_of_killed_caller_without_heartbeats)
{
	const struct spoke_provider_options options = { .half_close_ns = 10 * MS,
							.default_service = "demo.Echo" };

	linkrig_provide("dubbo", &options);
	call_later("msgpack-rpc");
	end_caller();
	linkrig_pass(5 * TICK);
	assert_int_equal(linkrig.abandoned, 0);
	linkrig_pass(20 * TICK);
	assert_int_equal(linkrig.abandoned, 1);
}

/*
 * --- messages above the default of frame.max, which both sides may raise, and above the limit
 */

#define MIB ((size_t)1048576)
#define LARGE (40 * MIB)
#define INTEGERS 66000u

static struct {
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	unsigned ends;
	int error;
	size_t len;         /* of the value */
	char text[200];     /* of the error */
	unsigned char *bin; /* LARGE bytes with a head */
	size_t give;        /* bytes that the provider replies; 0: an echo */
} rig;

static struct spoke_span bin(size_t len)
{
	size_t rest = len - 5;

	rig.bin[0] = 0xc6;
	for (int i = 0; i < 4; i++)
		rig.bin[1 + i] = (unsigned char)(rest >> (24 - 8 * i));
	return (struct spoke_span){ rig.bin, len };
}

static void echo(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value = { NULL, 0 };

	(void)arg;
	if (!spoke_cursor_next(&args, &value))
		value.len = 0;
	if (rig.give > 0)
		value = (struct spoke_value){ bin(rig.give).data, rig.give };
	spoke_reply(request, value);
}

static void large_begin(size_t providers_max, size_t consumers_max)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo };
	const struct spoke_provider_options serving = { .frame_max = providers_max };
	const struct spoke_consumer_options calling = {
		.url = "dubbo://" LINKRIG_AT "/demo.Echo",
		.frame_max = consumers_max,
		.serialization = SPOKE_SERIALIZATION_MSGPACK,
	};

	memset(&rig, 0, sizeof(rig));
	rig.bin = calloc(1, LARGE);
	assert_non_null(rig.bin);
	assert_int_equal(spoke_provider_new(linkrig.engine, &serving, &linkrig.provider), 0);
	assert_int_equal(spoke_provider_add(linkrig.provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(linkrig.provider, "dubbo://" LINKRIG_AT), 0);
	rig.engine = scene_engine(&linkrig.world, &rig.process, NULL, NULL);
	assert_int_equal(spoke_consumer_new(rig.engine, &calling, &rig.consumer), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", NULL, &rig.echo), 0);
	linkrig_pass(10 * TICK);
}

static void finish(void)
{
	spoke_engine_free(rig.engine);
	spokei_world_process_fini(&rig.process);
	free(rig.bin);
}

static void note_end(void *arg, const struct spoke_result *result)
{
	(void)arg;
	rig.ends++;
	rig.error = result->error;
	rig.len = result->value.len;
	(void)snprintf(rig.text, sizeof(rig.text), "%.*s", (int)result->error_text.len,
		       result->error_text.len ? (const char *)result->error_text.data : "");
}

static int try(struct spoke_span args)
{
	const struct spoke_call_options options = { .timeout_ns = 600 * SECOND };
	unsigned ends = rig.ends;
	int error = spoke_call(rig.echo, args, &options, note_end, NULL, NULL);

	for (unsigned i = 0; error == 0 && rig.ends == ends && i < 100000; i++)
		linkrig_pass(10 * TICK);
	return error;
}

TEST(both_sides_may_raise_the_largest_frame)
{
	large_begin(64 * MIB, 64 * MIB);
	assert_int_equal(try(bin(LARGE)), SPOKE_OK);
	assert_int_equal(rig.error, SPOKE_OK);
	assert_int_equal(rig.len, LARGE);
	finish();
}

TEST(arguments_in_a_line_may_be_as_large_as_the_frame)
{
	const struct spoke_call_options options = { .timeout_ns = 600 * SECOND };
	const size_t lens[] = { 9 * MIB, 65 * MIB };
	char *text = malloc(lens[1] + 1);

	assert_non_null(text);
	large_begin(64 * MIB, 64 * MIB);
	for (size_t i = 0; i < 2; i++) {
		int error;

		memset(text, 'x', lens[i]);
		text[lens[i]] = '\0';
		error = spoke_call_args(rig.echo, SPOKE_ARGS(text, 1), &options, note_end, NULL,
					NULL);
		assert_int_equal(error, i == 0 ? SPOKE_OK : SPOKE_ETOOLARGE);
		for (unsigned turns = 0; rig.ends == 0 && turns < 100000; turns++)
			linkrig_pass(10 * TICK);
		assert_int_equal(rig.error, SPOKE_OK);
		assert_int_equal(rig.len, 5 + lens[0]);
	}
	assert_non_null(strstr(spoke_engine_why(rig.engine), "call of echo refused: too large"));
	free(text);
	finish();
}

static void reply_in_a_line(struct spoke_request *request, void *arg)
{
	SPOKE_REPLY(request, (const char *)arg);
}

TEST(reply_in_a_line_may_be_as_large_as_the_frame)
{
	static const struct spoke_service_options service = { .name = "demo.Large" };
	const struct spoke_method_options at = { .service = "demo.Large" };
	struct spoke_handler handler = { .method = "echo", .handle = reply_in_a_line };
	char *text = malloc(9 * MIB + 1);

	assert_non_null(text);
	memset(text, 'x', 9 * MIB);
	text[9 * MIB] = '\0';
	handler.arg = text;
	large_begin(64 * MIB, 64 * MIB);
	assert_int_equal(spoke_provider_add(linkrig.provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", &at, &rig.echo), 0);
	assert_int_equal(try((struct spoke_span){ NULL, 0 }), SPOKE_OK);
	assert_int_equal(rig.error, SPOKE_OK);
	assert_int_equal(rig.len, 5 + 9 * MIB);
	free(text);
	finish();
}

TEST(many_integers_fit_by_default)
{
	unsigned char *list;

	large_begin(0, 0);
	list = calloc(1, 5 + INTEGERS);
	assert_non_null(list);
	list[0] = 0xdd;
	list[2] = INTEGERS >> 16 & 0xff;
	list[3] = INTEGERS >> 8 & 0xff;
	list[4] = INTEGERS & 0xff;
	assert_int_equal(try((struct spoke_span){ list, 5 + INTEGERS }), SPOKE_OK);
	assert_int_equal(rig.error, SPOKE_OK);
	assert_int_equal(rig.len, 5 + INTEGERS);
	free(list);
	finish();
}

TEST(call_that_is_too_large_names_limit_and_key)
{
	large_begin(0, 0);
	assert_int_equal(try(bin(9 * MIB)), SPOKE_ETOOLARGE);
	assert_non_null(strstr(spoke_engine_why(rig.engine), "9437184 bytes"));
	assert_non_null(strstr(spoke_engine_why(rig.engine), "frame.max allows 8388608"));
	finish();
}

TEST(call_before_its_connection_names_limit_and_key)
{
	struct spoke_consumer_options options = { .url = "dubbo://" LINKRIG_AT "/demo.Echo" };
	struct spoke_consumer *consumer;

	large_begin(0, 0);
	assert_int_equal(spoke_consumer_new(rig.engine, &options, &consumer), 0);
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &rig.echo), 0);
	/* The length of the frame is known when the connection is open. */
	assert_int_equal(try(bin(8 * MIB - 2)), SPOKE_OK);
	assert_int_equal(rig.error, SPOKE_ETOOLARGE);
	assert_non_null(strstr(rig.text, "frame.max allows 8388608 bytes"));
	finish();
}

TEST(provider_names_its_limit_for_a_request)
{
	large_begin(0, 64 * MIB);
	assert_int_equal(try(bin(9 * MIB)), SPOKE_OK);
	assert_int_not_equal(rig.error, SPOKE_OK);
	assert_non_null(strstr(rig.text, "frame.max allows 8388608"));
	finish();
}

TEST(provider_names_its_limit_for_a_reply)
{
	large_begin(0, 64 * MIB);
	rig.give = 9 * MIB;
	assert_int_equal(try(bin(10)), SPOKE_OK);
	assert_int_not_equal(rig.error, SPOKE_OK);
	assert_non_null(strstr(rig.text, "9437184 bytes"));
	assert_non_null(strstr(rig.text, "provider's frame.max allows 8388608"));
	finish();
}

TEST(consumer_names_its_limit_for_a_reply)
{
	large_begin(64 * MIB, 0);
	rig.give = 9 * MIB;
	assert_int_equal(try(bin(10)), SPOKE_OK);
	assert_int_equal(rig.error, SPOKE_ETOOLARGE);
	assert_non_null(strstr(rig.text, "frame.max allows 8388608"));
	finish();
}

/* --- requests with a cycle of references, as a Java consumer sends them */

#define HEAD 16u
#define CYCLE "\x79Q\x90" /* a list that contains itself */

static const char request_with_cycle[] = "\x05"
					 "2.0.2"
					 "\x09"
					 "demo.Echo"
					 "\x05"
					 "0.0.0"
					 "\x04"
					 "echo"
					 "\x10Ljava/util/List;" CYCLE "HZ";

/* A reply that the peer has read. */
struct kept {
	unsigned replies;
	int error;
	char text[80];
};

static void keep(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	struct kept *kept = arg;

	(void)conn;
	kept->replies += message->kind == SPOKEI_REPLY;
	kept->error = message->error;
	(void)snprintf(kept->text, sizeof(kept->text), "%.*s", (int)message->error_text.len,
		       (const char *)message->error_text.data);
}

/* Sends a request with a cycle and reads the reply. */
static void request_cycle(const struct spoke_provider_options *options, struct kept *ret)
{
	unsigned char frame[HEAD + sizeof(request_with_cycle) - 1] = { 0xda, 0xbb, 0xc2 };

	linkrig_provide("dubbo", options);
	linkrig_connect();
	frame[11] = 7;
	frame[15] = sizeof(frame) - HEAD;
	memcpy(frame + HEAD, request_with_cycle, sizeof(frame) - HEAD);
	linkrig_write(frame, sizeof(frame));
	linkrig_pass(10 * MS);
	peer_read(&linkrig.conn, keep, ret);
}

TEST(cycle_in_request_is_status_40_with_reason)
{
	struct kept kept = { 0 };

	request_cycle(&(struct spoke_provider_options){ 0 }, &kept);
	assert_int_equal(kept.error, SPOKE_EBADREQUEST);
	assert_string_equal(kept.text, spoke_strerror(SPOKE_ECYCLE));
	assert_int_equal(spoke_provider_connections(linkrig.provider), 1);
}

TEST(cycle_in_request_is_accepted_if_allowed)
{
	struct kept kept = { 0 };

	request_cycle(&(struct spoke_provider_options){ .values_cycles = true }, &kept);
	assert_int_equal(kept.error, 0);
	assert_int_equal(kept.replies, 1);
}
