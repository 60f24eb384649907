/* SPDX-License-Identifier: Apache-2.0 */
/* Calls under a lease: their beginning, their write, and the end of the lease. */
#include "tests/cluster/call/leasing.h"
#include "tests/cluster/peer.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "transport/wire/catalog.h"

#include <spoke/consumer.h>
#include <spoke/future.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <stdio.h>
#include <string.h>

static struct leasedrig_call *leasedrig_call(size_t len);

/*
 * --- fixture: a consumer, a peer whose sockets the test controls, and a lease, in the virtual
 * world. Asserts that every call ends once and that nothing leaks
 */

#define RIG_AT "127.0.0.1:20880"

enum {
	KIB = 1024,
	MIB = 1024 * KIB,
	RIG_CALLS = 64,
	RIG_TEXT = 4096,
};

struct leasedrig_call {
	struct spoke_call name;
	unsigned ends;
	int error;
	bool written;
	bool fallback;
	uint32_t attempts;
	uint64_t took_ns;
	uint64_t begun_ns;
};

struct leasedrig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	struct peer peer;
	struct peer_conn conn;
	int listener;
	struct leasedrig_call calls[RIG_CALLS];
	unsigned begun;
	struct spoke_lease lease;
	unsigned came;           /* requests */
	char attached[RIG_TEXT]; /* to the last one, printed */
	int64_t timeout_ms;      /* of the last one */
	uint64_t last_id;
	void (*in_done)(struct leasedrig_call *call); /* called by callbacks; may be NULL */
};

/* --- the fixture of calls under a lease: */

static struct leasedrig rig;

static unsigned char large[2 * MIB];

static void leasedrig_pass(uint64_t ns)
{
	spokei_world_run(&rig.world, rig.world.now_ns + ns);
}

/* --- set-up */

STEP(leasedrig_set_up)
{
	memset(&rig, 0, sizeof(rig));
	rig.conn.fd = -1;
	scene_open(&rig.world, 3);
	rig.engine = scene_engine(&rig.world, &rig.process, NULL, NULL);
	peer_init(&rig.peer, &rig.world);
	rig.listener = peer_listen(&rig.peer, RIG_AT);
	leasing_begin(&rig.world, rig.engine);
	leasing_count("reports", "41");
}

STEP(leasedrig_tear_down)
{
	leasing_leave();
	spoke_engine_free(rig.engine);
	leasing_end();
	for (unsigned i = 0; i < rig.begun; i++)
		assert_int_equal(rig.calls[i].ends, 1);
	scene_leave(&rig.process, NULL, NULL);
	peer_close(&rig.conn);
	peer_fini(&rig.peer);
	spokei_world_fini(&rig.world);
}

/* Makes a consumer of the peer, which listens. */
static void leasedrig_consume(const char *scheme, enum spoke_serialization serialization)
{
	struct spoke_consumer_options options = { .serialization = serialization };
	char url[128];

	(void)snprintf(url, sizeof(url), "%s://" RIG_AT "/demo.Echo?timeout=60s&retries=0", scheme);
	options.url = url;
	assert_int_equal(spoke_consumer_new(rig.engine, &options, &rig.consumer), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", NULL, &rig.echo), 0);
}

/* The peer accepts the consumer's connection. */
static void leasedrig_accept(const char *wire)
{
	int fd;

	leasedrig_pass(10 * MS);
	fd = peer_accept(&rig.peer, rig.listener);
	assert_true(fd >= 0);
	peer_open(&rig.peer, &rig.conn, fd, spokei_catalog_wire(wire));
	leasedrig_pass(10 * MS);
}

/* Makes a consumer that is connected, and the lease "reports" with number 42, which is valid for a
 * second. */
static void leasedrig_begin(void)
{
	leasedrig_consume("dubbo", SPOKE_SERIALIZATION_MSGPACK);
	leasedrig_accept("dubbo");
	rig.lease = leasing_grant("reports", SECOND);
}

/* --- the peer */

static void take(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	(void)arg;
	(void)conn;
	if (message->kind != SPOKEI_REQUEST)
		return;
	rig.came++;
	rig.last_id = message->id;
	rig.timeout_ms = message->timeout_ms;
	rig.attached[0] = '\0';
	if (message->attachments.len)
		(void)spoke_value_print(message->attachments, rig.attached, RIG_TEXT);
}

/* The peer reads once, and notes the request. */
static void leasedrig_look(void)
{
	peer_read(&rig.conn, take, NULL);
}

/* The peer reads for 300 ms. */
static void leasedrig_read(void)
{
	for (unsigned i = 0; i < 300; i++) {
		peer_read(&rig.conn, take, NULL);
		leasedrig_pass(MS);
	}
	assert_false(rig.conn.broken);
}

/* The peer answers the last request. */
static void leasedrig_answer(void)
{
	static const unsigned char nil[] = { 0xc0 };
	const struct spokei_message reply = {
		.kind = SPOKEI_REPLY,
		.id = rig.last_id,
		.codec = 27,
		.status = 20,
		.value = { nil, 1 },
	};

	peer_put(&rig.conn, &reply);
	(void)peer_write(&rig.conn, SIZE_MAX);
	leasedrig_pass(10 * MS);
}

/* --- calls */

static void done(void *arg, const struct spoke_result *result)
{
	struct leasedrig_call *made = arg;

	made->ends++;
	made->error = result->error;
	made->written = result->written;
	made->fallback = result->fallback;
	made->attempts = result->attempts;
	made->took_ns = rig.world.now_ns - made->begun_ns;
	if (rig.in_done)
		rig.in_done(made);
}

/* Arguments: a bin of `len` bytes. Valid until the next call. */
static struct spoke_span leasedrig_args(size_t len)
{
	large[0] = 0xc6;
	for (unsigned i = 0; i < 4; i++)
		large[1 + i] = (unsigned char)(len >> (24 - 8 * i));
	return (struct spoke_span){ large, len + 5 };
}

/* Call with `len` bytes: the first returns the result of spoke_call(), the others the call: with
 * these options, under the lease, without it. */
static int leasedrig_try(struct spoke_method *method, size_t len,
			 const struct spoke_call_options *options)
{
	struct leasedrig_call *made = &rig.calls[rig.begun];
	int error;

	assert_in_range(rig.begun, 0, RIG_CALLS - 1);
	made->begun_ns = rig.world.now_ns;
	error = spoke_call(method, leasedrig_args(len), options, done, made, &made->name);
	rig.begun += error == 0;
	return error;
}

static struct leasedrig_call *leasedrig_call_with(size_t len,
						  const struct spoke_call_options *options)
{
	assert_int_equal(leasedrig_try(rig.echo, len, options), 0);
	return &rig.calls[rig.begun - 1];
}

static struct leasedrig_call *leasedrig_call(size_t len)
{
	const struct spoke_call_options options = { .lease = rig.lease };

	return leasedrig_call_with(len, &options);
}

static struct leasedrig_call *leasedrig_call_without(size_t len)
{
	const struct spoke_call_options options = { 0 };

	return leasedrig_call_with(len, &options);
}

/* A callback that calls, and then takes long. */
static struct {
	struct spoke_alarm alarm;
	struct spoke_call_options options;
	size_t len;
	uint64_t stall_ns;
} late;

static void call_late(struct spoke_alarm *alarm)
{
	(void)alarm;
	(void)leasedrig_call_with(late.len, &late.options);
	spokei_world_hold(&rig.process, late.stall_ns);
}

/* Makes a call under the lease in a callback, which returns after `stall_ns`. */
static struct leasedrig_call *leasedrig_stall(size_t len, const struct spoke_call_options *options,
					      uint64_t stall_ns)
{
	struct leasedrig_call *made = &rig.calls[rig.begun];

	memset(&late, 0, sizeof(late));
	late.options = *options;
	late.options.lease = rig.lease;
	late.len = len;
	late.stall_ns = stall_ns;
	assert_int_equal(spoke_alarm_after(rig.engine, &late.alarm, MS, call_late), 0);
	leasedrig_pass(2 * MS);
	leasedrig_pass(stall_ns);
	return made;
}

/* Expects that the call has ended with ELEASE, and that the peer gets `others` requests only. */
static void leasedrig_never_came(const struct leasedrig_call *call, unsigned others)
{
	assert_int_equal(call->ends, 1);
	assert_int_equal(call->error, SPOKE_ELEASE);
	assert_false(call->written);
	leasedrig_read();
	assert_int_equal(rig.came, others);
}

/* --- the beginning of calls under a lease, their attachments, and the ways to make them */

static const struct spoke_call_options plain;

/* --- the beginning */

FIXTURE(leasedrig_set_up, leasedrig_tear_down);

TEST(call_carries_name_and_number_of_its_lease)
{
	const struct leasedrig_call *made;

	leasedrig_begin();
	made = leasedrig_call(10);
	leasedrig_read();
	assert_int_equal(rig.came, 1);
	assert_non_null(strstr(rig.attached, "\"spoke.lease\": \"reports\""));
	assert_non_null(strstr(rig.attached, "\"spoke.fence\": \"42\""));
	assert_null(strstr(rig.attached, "spoke.id"));
	leasedrig_answer();
	assert_int_equal(made->ends, 1);
	assert_int_equal(made->error, SPOKE_OK);
	assert_int_equal(made->attempts, 1);
	(void)leasedrig_call_without(10);
	leasedrig_read();
	assert_null(strstr(rig.attached, "spoke."));
}

TEST(hessian2_carries_name_and_number_as_texts)
{
	leasedrig_consume("dubbo", SPOKE_SERIALIZATION_HESSIAN2);
	leasedrig_accept("dubbo");
	leasing_count("reports", "123456789012");
	rig.lease = leasing_grant("reports", SECOND);
	(void)leasedrig_call(10);
	leasedrig_read();
	assert_non_null(strstr(rig.attached, "\"spoke.lease\": \"reports\""));
	assert_non_null(strstr(rig.attached, "\"spoke.fence\": \"123456789013\""));
}

TEST(wire_without_attachments_carries_the_call_alone)
{
	const struct leasedrig_call *made;

	leasedrig_consume("msgpack-rpc", SPOKE_SERIALIZATION_MSGPACK);
	leasedrig_accept("msgpack-rpc");
	rig.lease = leasing_grant("reports", SECOND);
	(void)leasedrig_call(10);
	leasedrig_read();
	assert_int_equal(rig.came, 1);
	assert_string_equal(rig.attached, "");
	made = leasedrig_call(10);
	leasing_release(rig.lease);
	leasedrig_pass(10 * MS);
	leasedrig_never_came(made, 1);
}

TEST(attachments_of_the_user_come_with_those_of_the_lease)
{
	struct spoke_call_options options = { 0 };
	unsigned char memory[64];
	struct spoke_builder builder;

	leasedrig_begin();
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_map(&builder, 2);
	spoke_pack_text(&builder, "trace");
	spoke_pack_text(&builder, "t1");
	spoke_pack_text(&builder, "spoke.id");
	spoke_pack_text(&builder, "mine");
	assert_int_equal(spoke_builder_finish_value(&builder, &options.attachments), 0);
	options.lease = rig.lease;
	(void)leasedrig_call_with(10, &options);
	leasedrig_read();
	assert_non_null(strstr(rig.attached, "\"trace\": \"t1\""));
	assert_non_null(strstr(rig.attached, "\"spoke.id\": \"mine\""));
	assert_non_null(strstr(rig.attached, "\"spoke.fence\": \"42\""));
}

static int try_with_key(const char *key)
{
	struct spoke_call_options options = { .lease = rig.lease };
	unsigned char memory[64];
	struct spoke_builder builder;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_map(&builder, 1);
	spoke_pack_text(&builder, key);
	spoke_pack_text(&builder, "9");
	assert_int_equal(spoke_builder_finish_value(&builder, &options.attachments), 0);
	return leasedrig_try(rig.echo, 10, &options);
}

TEST(attachments_of_the_lease_cannot_be_set_by_the_user)
{
	leasedrig_begin();
	assert_int_equal(try_with_key("spoke.lease"), SPOKE_EINVAL);
	assert_int_equal(try_with_key("spoke.fence"), SPOKE_EINVAL);
	rig.lease = (struct spoke_lease){ 0 };
	assert_int_equal(try_with_key("spoke.fence"), 0);
}

TEST(longest_name_is_carried)
{
	static char name[SPOKE_LEASE_NAME_MAX + 1];

	leasedrig_begin();
	memset(name, 'n', SPOKE_LEASE_NAME_MAX);
	rig.lease = leasing_grant(name, SECOND);
	(void)leasedrig_call(10);
	leasedrig_read();
	assert_non_null(strstr(rig.attached, name));
	assert_non_null(strstr(rig.attached, "\"spoke.fence\": \"1\""));
}

TEST(call_is_refused_when_its_lease_is_over)
{
	struct spoke_call_options options = { 0 };

	leasedrig_begin();
	options.lease = rig.lease;
	spokei_world_hold(&rig.process, 2 * SECOND);
	assert_int_equal(leasedrig_try(rig.echo, 10, &options), SPOKE_ELEASE);
	leasedrig_pass(3 * SECOND);
	assert_int_equal(leasedrig_try(rig.echo, 10, &options), SPOKE_ELEASE);
	options.lease.handle = 77; /* never existed */
	assert_int_equal(leasedrig_try(rig.echo, 10, &options), SPOKE_ELEASE);
	options.lease = leasing_grant("released", SECOND);
	leasing_release(options.lease);
	assert_int_equal(leasedrig_try(rig.echo, 10, &options), SPOKE_ELEASE);
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_CALLS_REFUSED), 4);
	leasedrig_read();
	assert_int_equal(rig.came, 0);
}

TEST(lease_of_another_engine_is_rejected)
{
	struct spokei_world_process process;
	const struct spoke_consumer_options consumer = { .url = "dubbo://" RIG_AT "/demo.Echo" };
	struct spoke_call_options options;
	struct spoke_consumer *other;
	struct spoke_method *method;
	struct spoke_engine *engine;

	leasedrig_begin();
	options = (struct spoke_call_options){ .lease = rig.lease };
	engine = scene_engine(&rig.world, &process, NULL, NULL);
	assert_int_equal(spoke_consumer_new(engine, &consumer, &other), 0);
	assert_int_equal(spoke_consumer_method(other, "echo", NULL, &method), 0);
	assert_int_equal(leasedrig_try(method, 10, &options), SPOKE_EINVAL);
	spoke_engine_free(engine);
	spokei_world_process_fini(&process);
}

/* --- values in place of errors */

TEST(fallback_does_not_hide_the_end_of_the_lease)
{
	static const unsigned char nil[] = { 0xc0 };
	const struct spoke_method_options with = { .fallback = { nil, 1 } };
	struct spoke_call_options options = { 0 };

	leasedrig_begin();
	options.lease = rig.lease;
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", &with, &rig.echo), 0);
	(void)leasedrig_stall(10, &plain, SECOND);
	assert_int_equal(leasedrig_try(rig.echo, 10, &options), SPOKE_ELEASE);
	assert_int_equal(rig.calls[0].error, SPOKE_ELEASE);
	assert_false(rig.calls[0].fallback);
}

TEST(failsafe_does_not_hide_the_end_of_the_lease)
{
	struct spoke_call_options options = { .policy = &spoke_policy_failsafe };
	const struct leasedrig_call *made;

	leasedrig_begin();
	made = leasedrig_stall(10, &options, SECOND);
	options.lease = rig.lease;
	assert_int_equal(leasedrig_try(rig.echo, 10, &options), SPOKE_ELEASE);
	leasedrig_never_came(made, 0);
}

TEST(limits_are_given_back_when_the_lease_ends)
{
	const struct spoke_method_options with = { .actives = 1 };
	const struct leasedrig_call *made;

	leasedrig_begin();
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", &with, &rig.echo), 0);
	made = leasedrig_call(10);
	leasing_release(rig.lease);
	leasedrig_pass(10 * MS);
	assert_int_equal(made->error, SPOKE_ELEASE);
	(void)leasedrig_call_without(10);
}

/* --- other ways to call */

TEST(future_takes_the_lease_along)
{
	struct spoke_call_options options = { 0 };
	struct spoke_future *futures[2];

	leasedrig_begin();
	options.lease = rig.lease;
	assert_int_equal(spoke_future_start(rig.echo, leasedrig_args(10), &options, &futures[0]),
			 0);
	leasedrig_pass(10 * MS);
	leasedrig_read();
	assert_non_null(strstr(rig.attached, "\"spoke.fence\": \"42\""));
	leasing_release(rig.lease);
	assert_int_equal(spoke_future_start(rig.echo, leasedrig_args(10), &options, &futures[1]),
			 0);
	leasedrig_pass(10 * MS);
	assert_non_null(spoke_future_result(futures[1]));
	assert_int_equal(spoke_future_result(futures[1])->error, SPOKE_ELEASE);
	for (unsigned i = 0; i < 2; i++)
		spoke_future_free(futures[i]);
}

TEST(push_under_a_lease_is_rejected)
{
	const struct spoke_method_options of = { .service = "demo.Prices" };
	struct spoke_call_options options = { 0 };
	struct spoke_provider *provider;
	struct spoke_method *moved;
	size_t count;

	leasedrig_begin();
	options.lease = rig.lease;
	assert_int_equal(spoke_provider_new(rig.engine, NULL, &provider), 0);
	assert_int_equal(spoke_provider_method(provider, "moved", &of, &moved), 0);
	assert_int_equal(spoke_push(moved, (struct spoke_peer){ 0 }, leasedrig_args(1), &options,
				    NULL, NULL, NULL),
			 SPOKE_EINVAL);
	assert_int_equal(spoke_push_all(moved, leasedrig_args(1), &options, &count), SPOKE_EINVAL);
}

TEST(lack_of_memory_refuses_calls_cleanly)
{
	struct spoke_call_options options = { 0 };
	int error = SPOKE_ENOMEM;

	leasedrig_begin();
	for (unsigned nth = 1; error; nth++) {
		options.lease = rig.lease;
		rig.process.fail_at = rig.process.demands + nth;
		error = leasedrig_try(rig.echo, 2000, &options);
		rig.process.fail_at = 0;
		assert_true(error == 0 || error == SPOKE_ENOMEM);
		assert_in_range(nth, 1, 20);
	}
	leasing_release(rig.lease);
	leasedrig_pass(10 * MS);
	leasedrig_never_came(&rig.calls[0], 0);
}

/*
 * --- A call under a lease is written only as long as the lease is held, however late that is
 * noticed
 */

/* --- before the write */

TEST(stall_after_the_call_keeps_it_from_being_written)
{
	const struct leasedrig_call *made;
	const struct leasedrig_call *other;

	leasedrig_begin();
	made = leasedrig_stall(10, &plain, SECOND);
	leasedrig_never_came(made, 0);
	other = leasedrig_call_without(10);
	leasedrig_read();
	assert_int_equal(rig.came, 1);
	assert_int_equal(other->ends, 0);
}

TEST(shorter_stall_does_no_harm)
{
	const struct leasedrig_call *made;

	leasedrig_begin();
	made = leasedrig_stall(10, &plain, 900 * MS);
	leasedrig_read();
	assert_int_equal(rig.came, 1);
	leasedrig_answer();
	assert_int_equal(made->error, SPOKE_OK);
}

static void stall_in_done(struct leasedrig_call *made)
{
	(void)made;
	rig.in_done = NULL;
	(void)leasedrig_call(10);
	spokei_world_hold(&rig.process, SECOND);
}

TEST(call_made_in_a_callback_that_stalls_is_not_written)
{
	leasedrig_begin();
	(void)leasedrig_call_without(10);
	leasedrig_read();
	rig.in_done = stall_in_done;
	leasedrig_answer();
	leasedrig_pass(2 * SECOND);
	assert_int_equal(rig.begun, 2);
	leasedrig_never_came(&rig.calls[1], 1);
}

TEST(long_call_is_not_written_at_once)
{
	const struct leasedrig_call *made;

	leasedrig_begin();
	made = leasedrig_stall(300 * KIB, &plain, SECOND);
	leasedrig_never_came(made, 0);
}

TEST(long_call_is_written_whole)
{
	const struct leasedrig_call *made;

	leasedrig_begin();
	made = leasedrig_call(300 * KIB);
	leasedrig_read();
	assert_int_equal(rig.came, 1);
	leasedrig_answer();
	assert_int_equal(made->error, SPOKE_OK);
}

TEST(one_way_call_ends_when_written)
{
	const struct spoke_call_options options = { .one_way = true };
	struct spoke_call_options leased = options;
	const struct leasedrig_call *made;

	leasedrig_begin();
	leased.lease = rig.lease;
	made = leasedrig_call_with(10, &leased);
	leasedrig_pass(10 * MS);
	assert_int_equal(made->error, SPOKE_OK);
	assert_true(made->written);
	made = leasedrig_stall(10, &options, SECOND);
	leasedrig_never_came(made, 1);
}

TEST(call_to_a_connection_that_is_not_open_ends_with_its_lease)
{
	const struct leasedrig_call *made;

	rig.lease = leasing_grant("reports", 100 * MS);
	leasedrig_consume("dubbo", SPOKE_SERIALIZATION_MSGPACK);
	made = leasedrig_call(10);
	spokei_world_hold(&rig.process, 200 * MS);
	leasedrig_accept("dubbo");
	leasedrig_pass(SECOND);
	leasedrig_never_came(made, 0);
}

TEST(call_waits_for_a_connection_as_long_as_its_lease)
{
	const struct leasedrig_call *made;

	rig.lease = leasing_grant("reports", SECOND);
	leasedrig_consume("dubbo", SPOKE_SERIALIZATION_MSGPACK);
	made = leasedrig_call(10);
	leasedrig_accept("dubbo");
	leasedrig_read();
	assert_int_equal(rig.came, 1);
	leasedrig_answer();
	assert_int_equal(made->error, SPOKE_OK);
}

TEST(call_behind_a_blocked_peer_ends_with_its_lease)
{
	const struct leasedrig_call *made;
	const struct leasedrig_call *other;

	leasedrig_begin();
	(void)leasedrig_call_without(MIB);
	leasedrig_pass(10 * MS);
	made = leasedrig_call(10);
	other = leasedrig_call_without(10);
	leasedrig_pass(990 * MS - 1);
	assert_int_equal(made->ends, 0);
	leasedrig_pass(10 * MS);
	assert_int_equal(made->ends, 1);
	assert_in_range(made->took_ns, 980 * MS, 1002 * MS);
	leasedrig_never_came(made, 2);
	assert_int_equal(other->ends, 0);
}

TEST(call_behind_a_blocked_peer_is_written_in_time)
{
	const struct leasedrig_call *made;

	leasedrig_begin();
	(void)leasedrig_call_without(MIB);
	leasedrig_pass(10 * MS);
	made = leasedrig_call(10);
	leasedrig_pass(10 * MS);
	leasedrig_read();
	assert_int_equal(rig.came, 2);
	leasedrig_answer();
	assert_int_equal(made->error, SPOKE_OK);
}

/* --- the end of the lease */

TEST(release_takes_back_a_call_of_the_same_turn)
{
	const struct leasedrig_call *made;

	leasedrig_begin();
	made = leasedrig_call(10);
	leasing_release(rig.lease);
	assert_int_equal(made->ends, 0); /* not inside of the release */
	leasedrig_pass(10 * MS);
	leasedrig_never_came(made, 0);
}

TEST(release_takes_back_calls_behind_a_blocked_peer)
{
	const struct leasedrig_call *made[3];

	leasedrig_begin();
	(void)leasedrig_call_without(MIB);
	leasedrig_pass(10 * MS);
	for (unsigned i = 0; i < 3; i++)
		made[i] = leasedrig_call(10);
	leasedrig_pass(10 * MS);
	leasing_release(rig.lease);
	leasedrig_pass(10 * MS);
	for (unsigned i = 0; i < 3; i++)
		leasedrig_never_came(made[i], 1);
}

TEST(written_call_is_answered_after_the_release)
{
	const struct leasedrig_call *made;

	leasedrig_begin();
	made = leasedrig_call(10);
	leasedrig_read();
	leasing_release(rig.lease);
	leasedrig_pass(10 * MS);
	assert_int_equal(made->ends, 0);
	leasedrig_answer();
	assert_int_equal(made->error, SPOKE_OK);
}

TEST(timeout_is_cut_to_the_rest_of_the_lease)
{
	const struct leasedrig_call *made;

	leasedrig_begin();
	leasedrig_pass(600 * MS);
	made = leasedrig_call(10);
	leasedrig_pass(10 * MS);
	leasedrig_look();
	assert_in_range(rig.timeout_ms, 380, 402);
	leasedrig_pass(SECOND);
	assert_int_equal(made->error, SPOKE_ETIMEOUT);
	assert_true(made->written);
	assert_in_range(made->took_ns, 380 * MS, 410 * MS);
}

TEST(shorter_timeout_is_kept)
{
	struct spoke_call_options options = { .timeout_ns = 100 * MS };
	const struct leasedrig_call *made;

	leasedrig_begin();
	options.lease = rig.lease;
	made = leasedrig_call_with(10, &options);
	leasedrig_pass(200 * MS);
	assert_int_equal(made->error, SPOKE_ETIMEOUT);
	assert_in_range(made->took_ns, 100 * MS, 110 * MS);
}

TEST(end_of_lease_prevails_over_the_timeout)
{
	struct spoke_call_options options = { .timeout_ns = 900 * MS };
	const struct leasedrig_call *made;

	leasedrig_begin();
	(void)leasedrig_call_without(MIB);
	leasedrig_pass(10 * MS);
	options.lease = rig.lease;
	made = leasedrig_call_with(10, &options);
	leasedrig_pass(10 * MS);
	spokei_world_hold(&rig.process, 2 * SECOND); /* both are over now */
	leasedrig_pass(3 * SECOND);
	leasedrig_never_came(made, 1);
}

TEST(cancelled_call_ends_as_cancelled)
{
	const struct leasedrig_call *made[2];

	leasedrig_begin();
	made[0] = leasedrig_call(10);
	assert_true(spoke_call_cancel(rig.consumer, made[0]->name));
	made[1] = leasedrig_call(10);
	assert_true(spoke_call_cancel(rig.consumer, made[1]->name));
	leasing_release(rig.lease);
	leasedrig_pass(10 * MS);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(made[i]->error, SPOKE_ECANCELED);
		assert_false(made[i]->written);
	}
	leasedrig_read();
	assert_int_equal(rig.came, 0);
}

TEST(leases_may_be_freed_before_their_calls)
{
	const struct leasedrig_call *made[2];

	leasedrig_begin();
	made[0] = leasedrig_call(10);
	leasedrig_read();
	made[1] = leasedrig_call(10);
	leasing_leave();
	leasedrig_pass(10 * MS);
	leasedrig_never_came(made[1], 1);
	leasedrig_answer();
	assert_int_equal(made[0]->ends, 1);
	leasing_join();
}

static void free_consumer(struct leasedrig_call *made)
{
	(void)made;
	rig.in_done = NULL;
	spoke_consumer_free(rig.consumer);
	rig.consumer = NULL;
}

TEST(callback_of_a_lost_call_may_free_the_consumer)
{
	const struct leasedrig_call *made[3];

	leasedrig_begin();
	for (unsigned i = 0; i < 3; i++)
		made[i] = leasedrig_call(10);
	rig.in_done = free_consumer;
	leasing_release(rig.lease);
	leasedrig_pass(10 * MS);
	assert_int_equal(made[0]->error, SPOKE_ELEASE);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(made[i]->ends, 1);
	assert_int_equal(rig.came, 0);
}
