/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and ends of consumers, providers and engines; what idle ones and stalled ones do. */
#include "cluster/consumer/parts.h"
#include "cluster/provider/parts.h"
#include "tests/cluster/stage.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <string.h>

/*
 * --- starts and ends of consumers, providers and engines, the same on every network and wire
 */

RUNNER(stage_run);

/* A peer that ends its direction may still read. Only a reply that it rejects shows that it is
 * gone. */
STAGE_TEST(handler_is_notified_of_detected_end_of_caller)
{
	struct spoke_method *later = stage_method(stage, "later");

	for (unsigned i = 0; i < 4; i++)
		(void)stage_call(stage, later, stage_text(stage, "x"));
	stage_until_held(stage, 4);
	assert_false(spoke_request_abandoned(stage->held[0]));
	stage_free_consumer(stage);
	stage_end_all(stage);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(stage->calls[i].result.error, SPOKE_ECLOSED);
	for (unsigned i = 0; i < 3 && stage->abandoned == 0; i++) {
		stage_pass(stage, 5 * MS);
		stage_answer(stage, 0);
	}
	stage_pass(stage, 5 * MS);
	assert_true(stage->abandoned > 0);
	assert_true(spoke_request_abandoned(stage->held[0]));
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_REQUESTS_ABANDONED), stage->abandoned);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CLOSED), 1);
}

STAGE_TEST(held_request_keeps_its_contents)
{
	struct spoke_method *later = stage_method(stage, "later");
	struct spoke_method *echo = stage_method(stage, "echo");
	struct stage_call *call = stage_call(stage, later, stage_text(stage, "kept"));
	struct spoke_span method;

	stage_until_held(stage, 1);
	for (unsigned i = 0; i < 10; i++)
		(void)stage_end_of(stage, stage_call(stage, echo, stage_bin(stage, 30000)));
	method = spoke_request_method(stage->held[0]);
	assert_int_equal(method.len, 5);
	assert_memory_equal(method.data, "later", 5);
	assert_true(spoke_request_two_way(stage->held[0]));
	stage_answer(stage, 0);
	stage_assert_text(stage_end_of(stage, call), "kept");
}

STAGE_TEST(a_provider_may_be_freed_before_its_answers)
{
	struct spoke_method *later = stage_method(stage, "later");

	for (unsigned i = 0; i < 3; i++)
		(void)stage_call(stage, later, stage_text(stage, "x"));
	stage_until_held(stage, 3);
	stage_free_provider(stage);
	stage_answer(stage, 1); /* before the handler is notified */
	stage_end_all(stage);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(stage->calls[i].result.error, SPOKE_ELOST);
	stage_answer(stage, 1);
	stage_answer(stage, 0);
}

STAGE_TEST(a_consumer_may_be_freed_before_its_calls_end)
{
	struct spoke_method *later = stage_method(stage, "later");

	(void)stage_call(stage, later, stage_text(stage, "connecting"));
	(void)stage_call(stage, later, stage_text(stage, "connecting"));
	stage_until_held(stage, 2);
	(void)stage_call(stage, later, stage_text(stage, "written"));
	stage_until_held(stage, 3);
	(void)stage_call(stage, later, stage_text(stage, "fresh"));
	stage_free_consumer(stage);
	assert_int_equal(stage->ended, 0);
	stage_end_all(stage);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(stage->calls[i].result.error, SPOKE_ECLOSED);
		assert_int_equal(stage->calls[i].result.written, i < 3);
	}
}

STAGE_TEST(calls_that_wait_for_a_connection_end_with_the_consumer)
{
	(void)stage_call(stage, stage_method(stage, "echo"), stage_text(stage, "x"));
	stage_free_consumer(stage);
	assert_int_equal(stage_end_of(stage, &stage->calls[0])->error, SPOKE_ECLOSED);
	assert_false(stage->calls[0].result.written);
}

/* --- in callbacks */

typedef void action(struct stage *stage);

static action *const actions[] = { stage_free_consumer, stage_free_provider, stage_free_client,
				   stage_free_server };

/* Begins the next case on a new stage. The test runs a series of cases. */
static void again_from(void **state, unsigned round)
{
	const struct stage_setting *setting = ((struct stage *)*state)->setting;

	if (round > 0) {
		assert_int_equal(stage_tear_down(state), 0);
		*state = (void *)(uintptr_t)setting;
		assert_int_equal(stage_set_up(state), 0);
	}
}

static struct stage *begin_by_turns(void **state)
{
	struct stage *stage = stage_bare(state);

	stage->by_turns = true;
	stage->answer_abandoned = true;
	stage_provide(stage, NULL);
	stage_consume(stage, NULL);
	return stage;
}

static action *chosen;

static void act(struct stage_call *call)
{
	chosen(call->stage);
}

static void act_once(struct stage *stage)
{
	stage->in_abandoned = NULL;
	chosen(stage);
}

/* Runs the test once for each action. */
static void run_freeing(void **state, void (*test)(struct stage *stage))
{
	for (unsigned i = 0; i < LENGTH(actions); i++) {
		struct stage *stage;

		(void)stage_bare(state);
		again_from(state, i);
		stage = begin_by_turns(state);
		chosen = actions[i];
		test(stage);
		stage_end_all(stage);
	}
}

#define FREEING_TEST(rule)                                                                         \
	static void rule##_once(struct stage *stage);                                              \
	TEST(rule)                                                                                 \
	{                                                                                          \
		run_freeing(state, rule##_once);                                                   \
	}                                                                                          \
	static void rule##_once(struct stage *stage)

FREEING_TEST(everything_may_be_freed_as_a_call_ends_well)
{
	stage->calls[1].then = act;
	(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
	(void)stage_call(stage, stage_method(stage, "echo"), stage_no_args());
	(void)stage_call(stage, stage_method(stage, "echo"), stage_no_args());
}

FREEING_TEST(everything_may_be_freed_as_a_call_times_out)
{
	static const struct spoke_call_options soon = { .timeout_ns = 10 * MS };

	stage->calls[0].then = act;
	(void)stage_call_with(stage, stage_method(stage, "later"), stage_no_args(), &soon);
	(void)stage_call_with(stage, stage_method(stage, "later"), stage_no_args(), &soon);
}

FREEING_TEST(everything_may_be_freed_as_a_call_is_cancelled)
{
	stage->calls[0].then = act;
	(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
	(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
	stage_until_held(stage, 2);
	assert_true(spoke_call_cancel(stage->consumer, stage->calls[0].name));
	assert_true(spoke_call_cancel(stage->consumer, stage->calls[1].name));
}

FREEING_TEST(everything_may_be_freed_as_calls_are_lost)
{
	stage->calls[0].then = act;
	(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
	(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
	stage_until_held(stage, 2);
	stage_free_provider(stage);
}

FREEING_TEST(everything_may_be_freed_as_a_one_way_call_is_written)
{
	static const struct spoke_call_options one_way = { .one_way = true };

	stage->calls[1].then = act;
	(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
	(void)stage_call_with(stage, stage_method(stage, "echo"), stage_no_args(), &one_way);
	(void)stage_call_with(stage, stage_method(stage, "echo"), stage_no_args(), &one_way);
}

TEST(everything_may_be_freed_in_a_handler)
{
	for (unsigned i = 0; i < 2 * LENGTH(actions); i++) {
		struct stage *stage;

		(void)stage_bare(state);
		again_from(state, i);
		stage = begin_by_turns(state);
		chosen = actions[i / 2];
		stage->in_handler = act_once;
		(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
		(void)stage_call(stage, stage_method(stage, "act"),
				 stage_text(stage, i % 2 ? "later" : "now"));
		(void)stage_call(stage, stage_method(stage, "echo"), stage_no_args());
		stage_end_all(stage);
	}
}

FREEING_TEST(everything_may_be_freed_as_a_request_is_abandoned)
{
	stage->in_abandoned = act_once;
	(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
	(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
	stage_until_held(stage, 2);
	stage_free_provider(stage);
	stage_until(stage, &stage->abandoned, 2);
}

/* --- several addresses */

BARE_STAGE_TEST(a_consumer_calls_its_endpoints_in_turn)
{
	static char urls[STAGE_PLACES][256];
	const char *more[] = { urls[1], urls[2] };
	struct spoke_consumer_options options = {
		.url = urls[0],
		.balancer = &spoke_balancer_round_robin,
		.more_urls = more,
		.more_count = LENGTH(more),
	};
	struct spoke_method *echo;

	stage_provide(stage, NULL);
	assert_int_equal(stage_listen(stage), 1);
	assert_int_equal(stage_listen(stage), 2);
	for (unsigned i = 0; i < 3; i++)
		stage_url(stage, i, "", urls[i], sizeof(urls[i]));
	stage_consume(stage, &options);
	echo = stage_method(stage, "echo");
	for (unsigned i = 0; i < 3; i++)
		(void)stage_call(stage, echo, stage_no_args());
	stage_until_ready(stage, 3);
	stage_end_all(stage);
	stage_pass(stage, 5 * MS); /* the last connection may still be in the backlog */
	assert_int_equal(spoke_provider_connections(stage->provider), 3);
	for (unsigned i = 0; i < 9; i++)
		(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
	stage_until_held(stage, 9);
	while (stage->held_count > 0)
		stage_answer(stage, 0);
	stage_end_all(stage);
	for (unsigned i = 0; i < stage->call_count; i++)
		assert_int_equal(stage->calls[i].result.error, SPOKE_OK);
}

BARE_STAGE_TEST(a_provider_serves_at_all_its_places)
{
	stage_provide(stage, NULL);
	assert_int_equal(stage_listen(stage), 1);
	assert_int_equal(stage_listen(stage), 2);
	for (unsigned i = 0; i < 3; i++) {
		struct spoke_consumer_options options = { 0 };
		char url[256];

		stage_url(stage, i, "", url, sizeof(url));
		options.url = url;
		stage_consume(stage, &options);
		stage_assert_text(stage_end_of(stage, stage_call(stage, stage_method(stage, "echo"),
								 stage_text(stage, "x"))),
				  "x");
		stage_free_consumer(stage);
		stage_pass(stage, MS);
	}
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_ACCEPTED), 3);
}

/* --- drain */

STAGE_TEST(draining_provider_answers_begun_requests)
{
	struct spoke_method *later = stage_method(stage, "later");
	struct stage_call *first = stage_call(stage, later, stage_text(stage, "begun"));
	struct stage_call *second;

	stage_until_held(stage, 1);
	assert_int_equal(spoke_engine_drain(stage->server_engine, 10 * SECOND), 0);
	stage->provider = NULL; /* the engine frees it */
	stage_pass(stage, 5 * MS);
	if (stage->setting->dubbo) { /* the consumer gets the drain notice */
		while (spoke_consumer_ready(stage->consumer) > 0)
			stage_pass(stage, MS);
		assert_int_equal(stage_try(stage, later, stage_text(stage, "x"), NULL),
				 SPOKE_EUNAVAILABLE);
	} else {
		second = stage_call(stage, later, stage_text(stage, "crossed"));
		assert_int_equal(stage_end_of(stage, second)->error, SPOKE_EREMOTE);
	}
	assert_int_equal(first->ends, 0);
	stage_answer(stage, 0);
	stage_assert_text(stage_end_of(stage, first), "begun");
	stage_pass(stage, 20 * MS);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CLOSED), 1);
	assert_int_equal(spoke_provider_new(stage->server_engine, NULL, &stage->provider),
			 SPOKE_ECLOSED);
	stage->provider = NULL;
}

STAGE_TEST(a_drain_ends_when_its_time_is_over)
{
	struct stage_call *call = stage_call(stage, stage_method(stage, "later"),
					     stage_text(stage, "x"));

	stage_until_held(stage, 1);
	assert_int_equal(spoke_engine_drain(stage->server_engine, 20 * MS), 0);
	stage->provider = NULL;
	assert_int_equal(stage_end_of(stage, call)->error, SPOKE_ELOST);
	assert_int_equal(stage->abandoned, 1);
}

STAGE_TEST(a_consumer_that_drains_waits_for_its_answers)
{
	struct spoke_method *later = stage_method(stage, "later");
	struct stage_call *call = stage_call(stage, later, stage_text(stage, "x"));

	stage_until_held(stage, 1);
	assert_int_equal(spoke_engine_drain(stage->client_engine, 10 * SECOND), 0);
	stage_pass(stage, 5 * MS);
	assert_int_equal(stage_try(stage, later, stage_no_args(), NULL), SPOKE_ECLOSED);
	stage->consumer = NULL;
	stage_answer(stage, 0);
	stage_assert_text(stage_end_of(stage, call), "x");
	stage_pass(stage, 20 * MS);
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_CLOSED), 1);
}

STAGE_TEST(a_call_made_while_connecting_survives_a_drain)
{
	struct stage_call *call = stage_call(stage, stage_method(stage, "echo"),
					     stage_text(stage, "x"));

	assert_int_equal(spoke_engine_drain(stage->client_engine, 10 * SECOND), 0);
	stage->consumer = NULL;
	stage_assert_text(stage_end_of(stage, call), "x");
}

/*
 * --- after a stall, replies that have already arrived are handled before deadlines are checked
 */

enum {
	CONSUMERS = 200 /* at least 16 rounds of 1 to 64 sockets */
};

static struct {
	struct stage *stage;
	struct spoke_consumer *consumers[CONSUMERS];
	struct spoke_method *methods[CONSUMERS];
	struct spoke_alarm stall;
	unsigned ok;
	unsigned timed_out;
} quota;

static void call_done(void *arg, const struct spoke_result *result)
{
	(void)arg;
	quota.ok += result->error == SPOKE_OK;
	quota.timed_out += result->error == SPOKE_ETIMEOUT;
}

static void hold_up(struct spoke_alarm *alarm)
{
	(void)alarm;
	spokei_world_stall(&quota.stage->world, 200 * MS);
}

static void connect_all(struct stage *stage)
{
	char url[256];
	struct spoke_consumer_options options = { .url = url, .timeout_ns = 100 * MS };

	stage_url(stage, 0, "", url, sizeof(url));
	for (int i = 0; i < CONSUMERS; i++) {
		quota.consumers[i] = stage_consumer(stage, &options);
		assert_int_equal(spoke_consumer_method(quota.consumers[i], "echo", NULL,
						       &quota.methods[i]),
				 SPOKE_OK);
	}
	stage_pass(stage, SECOND);
}

/* Each reply comes after 20 ms, the loop is stalled from 15 to 215 ms, the deadline is at 100 ms.
 */
STAGE_TEST(two_hundred_answers_win_over_their_deadlines_after_a_stall)
{
	struct spokei_vnet_link link = { .latency_ns = 10 * MS };

	if (!stage->setting->in_memory)
		return;
	spokei_vnet_set_all(stage->world.net, &link);
	quota.stage = stage;
	quota.ok = 0;
	quota.timed_out = 0;
	connect_all(stage);
	for (int i = 0; i < CONSUMERS; i++)
		assert_int_equal(spoke_call(quota.methods[i], stage_text(stage, "x"), NULL,
					    call_done, NULL, NULL),
				 SPOKE_OK);
	assert_int_equal(spoke_alarm_after(stage->client_engine, &quota.stall, 15 * MS, hold_up),
			 SPOKE_OK);
	stage_pass(stage, SECOND);
	assert_int_equal(quota.timed_out, 0);
	assert_int_equal(quota.ok, CONSUMERS);
	assert_true(stage_client_stat(stage, SPOKE_STAT_TURNS_LATE) > 0);
	for (int i = 0; i < CONSUMERS; i++)
		spoke_consumer_free(quota.consumers[i]);
}

static void note_end(void *arg, const struct spoke_result *result)
{
	*(int *)arg = result->error;
}

/* A consumer, and a provider that looks at its timers every 20 ms, so that a turn is late early.
 * Returns NULL for settings with real sockets, or without Dubbo. */
static struct stage *begin_often(void **state)
{
	const struct spoke_provider_options often = { .heartbeat_ns = 20 * MS };
	struct stage *stage = stage_bare(state);

	if (!stage->setting->in_memory || !stage->setting->dubbo)
		return NULL;
	stage_provide(stage, &often);
	stage_consume(stage, NULL);
	stage_until_ready(stage, 1);
	stage_pass(stage, 5 * MS);
	return stage;
}

/* The provider is frozen. When it continues, its socket contains expired requests. */
TEST(delayed_provider_runs_no_expired_request)
{
	struct stage *stage = begin_often(state);
	const struct spoke_call_options patient = { .timeout_ns = 10 * SECOND };
	const struct spoke_call_options hasty = { .timeout_ns = 100 * MS };
	struct spoke_method *echo;
	int ends[2] = { 1, 1 };

	if (stage == NULL)
		return;
	echo = stage_method(stage, "echo");
	spokei_world_hold(&stage->processes[1], 500 * MS);
	assert_int_equal(spoke_call(echo, stage_text(stage, "x"), &hasty, note_end, &ends[0], NULL),
			 SPOKE_OK);
	assert_int_equal(spoke_call(echo, stage_text(stage, "x"), &patient, note_end, &ends[1],
				    NULL),
			 SPOKE_OK);
	stage_pass(stage, 2 * SECOND);
	assert_int_equal(ends[0], SPOKE_ETIMEOUT);
	assert_int_equal(ends[1], SPOKE_OK);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_REQUESTS_EXPIRED), 1);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_REQUESTS_OK), 1);
}

static void count_ok(void *arg, const struct spoke_result *result)
{
	*(unsigned *)arg += result->error == SPOKE_OK;
}

static void note_left(void *arg, const struct spoke_result *result)
{
	assert_int_equal(result->error, SPOKE_OK);
	assert_int_equal(spoke_value_u64(result->value, arg), SPOKE_OK);
}

/* The provider is frozen for 500 ms. */
TEST(request_that_is_read_late_has_less_time_left)
{
	struct stage *stage = begin_often(state);
	const struct spoke_call_options patient = { .timeout_ns = 10 * SECOND };
	uint64_t left_ns = 0;

	if (stage == NULL)
		return;
	spokei_world_hold(&stage->processes[1], 500 * MS);
	assert_int_equal(spoke_call(stage_method(stage, "left"), stage_text(stage, "x"), &patient,
				    note_left, &left_ns, NULL),
			 SPOKE_OK);
	stage_pass(stage, 2 * SECOND);
	assert_in_range(left_ns, 10 * SECOND - 501 * MS, 10 * SECOND - 475 * MS);
}

static struct {
	const struct stage *stage;
	uint64_t before; /* bytes that the provider had read */
	uint64_t first;  /* ... read in the first round of its late turn; 0: not yet */
} reads;

static void note_first_read(struct spokei_world_process *process)
{
	uint64_t read = stage_server_stat(reads.stage, SPOKE_STAT_BYTES_READ) - reads.before;

	(void)process;
	if (reads.first == 0)
		reads.first = read;
}

/* All peers of an engine wait while it delivers what one of them has sent. */
TEST(late_turn_reads_little_from_one_peer)
{
	struct stage *stage = begin_often(state);
	const struct spoke_call_options patient = { .timeout_ns = 10 * SECOND };
	bool rings;
	struct spoke_method *echo;
	unsigned ok = 0;

	if (stage == NULL)
		return;
	rings = stage->setting->stream && stage->setting->stream->prompt;
	echo = stage_method(stage, "echo");
	reads.stage = stage;
	reads.before = stage_server_stat(stage, SPOKE_STAT_BYTES_READ);
	reads.first = 0;
	spokei_world_hold(&stage->processes[1], 500 * MS);
	for (unsigned i = 0; i < 4000; i++)
		assert_int_equal(spoke_call(echo, stage_text(stage, "x"), &patient, count_ok, &ok,
					    NULL),
				 SPOKE_OK);
	stage->processes[1].turned = note_first_read;
	stage_pass(stage, 2 * SECOND);
	assert_int_equal(ok, 4000);
	/* Rings are read when they are looked at, and when their bell rings. */
	assert_in_range(reads.first, 1, rings ? 131072 : 65536);
	assert_true(stage_server_stat(stage, SPOKE_STAT_TURNS_LATE) > 0);
}

/* --- an idle consumer and its provider wake only for heartbeats */

enum {
	CLIENT,
	SERVER
};

/* How often a side woke although no bytes came and no timer fired. */
static struct {
	const struct stage *stage;
	uint64_t at_ns[2];
	uint64_t done[2];
	unsigned empty[2];
} turns;

static void note_turn(struct spokei_world_process *process)
{
	const struct stage *stage = turns.stage;
	unsigned side = process == &stage->processes[SERVER] ? SERVER : CLIENT;
	const struct spoke_engine *engine = side ? stage->server_engine : stage->client_engine;
	struct spoke_wheel_counts counts;
	uint64_t done;

	spoke_wheel_counts(spoke_engine_wheel(engine), &counts);
	done = counts.fired + spoke_stat_get(engine, SPOKE_STAT_READS);
	turns.empty[side] += done == turns.done[side] && turns.at_ns[side] != stage->world.now_ns;
	turns.done[side] = done;
	turns.at_ns[side] = stage->world.now_ns;
}

BARE_STAGE_TEST(idle_pair_never_wakes_for_nothing)
{
	if (!stage->setting->in_memory || !stage->setting->dubbo)
		return;
	stage_provide(stage, &(struct spoke_provider_options){ .heartbeat_ns = 0 });
	stage_consume(stage, &(struct spoke_consumer_options){ .heartbeat_ns = 0 });
	stage_until_ready(stage, 1);
	stage_pass(stage, SECOND);
	turns.stage = stage;
	for (unsigned side = 0; side < 2; side++) {
		turns.empty[side] = 0;
		stage->processes[side].turned = note_turn;
	}
	stage_pass(stage, 3600 * SECOND);
	assert_in_range(stage_client_stat(stage, SPOKE_STAT_PROBES_WRITTEN) +
				stage_server_stat(stage, SPOKE_STAT_PROBES_WRITTEN),
			58, 62);
	/* Once in 4.7 hours the wheel's highest level moves. */
	assert_in_range(turns.empty[CLIENT], 0, 1);
	assert_in_range(turns.empty[SERVER], 0, 1);
}

/* --- memory that is kept for the next call and freed during silence, on the virtual clock */

#define INTERVAL (100 * MS)
#define LARGE 100000u /* bytes of a call, whose memory the next call may reuse */
#define MANY 50u      /* calls in flight */
/* Returns the stage, or NULL if this setting has no virtual clock or no heartbeats. */
static struct stage *begin(void **state)
{
	struct stage *stage = stage_bare(state);
	struct spoke_provider_options provider = { .heartbeat_ns = INTERVAL };
	struct spoke_consumer_options consumer = { .heartbeat_ns = INTERVAL };

	if (!stage->setting->in_memory || !stage->setting->dubbo)
		return NULL;
	stage_provide(stage, &provider);
	stage_consume(stage, &consumer);
	stage_until_ready(stage, 1);
	return stage;
}

static void pass(struct stage *stage, uint64_t ns)
{
	spokei_world_run(&stage->world, stage->world.now_ns + ns);
}

static const struct spokei_conn *only_conn(struct spokei_link *link)
{
	return spoke_container_of(spokei_list_first(&link->conns), struct spokei_conn, node);
}

static int echo_of(struct stage *stage, size_t len)
{
	return stage_end_of(stage,
			    stage_call(stage, stage_method(stage, "echo"), stage_bin(stage, len)))
		->error;
}

TEST(spare_memory_is_freed_when_idle)
{
	struct stage *stage = begin(state);

	if (stage == NULL)
		return;
	assert_int_equal(echo_of(stage, LARGE), SPOKE_OK);
	assert_true(stage->client_engine->spares.bytes >= LARGE);
	assert_true(stage->server_engine->spares.bytes >= LARGE);
	pass(stage, 2 * INTERVAL);
	assert_int_equal(stage->client_engine->spares.bytes, 0);
	assert_int_equal(stage->server_engine->spares.bytes, 0);
	assert_int_equal(echo_of(stage, LARGE), SPOKE_OK);
}

/* This includes the ring of calls, the map of requests, and the memo of the last request. */
TEST(rooms_for_many_calls_are_given_back_in_silence)
{
	struct stage *stage = begin(state);
	const struct spokei_conn *caller;
	const struct spokei_conn *server;

	if (stage == NULL)
		return;
	for (unsigned i = 0; i < MANY; i++)
		(void)stage_call(stage, stage_method(stage, "later"), stage_text(stage, "x"));
	stage_until_held(stage, MANY);
	caller = only_conn(stage->consumer->link);
	server = only_conn(stage->provider->link);
	assert_true(caller->pendings.room >= MANY);
	assert_true(server->serving.room >= MANY);
	assert_non_null(server->in.reader.memo);
	while (stage->held_count > 0)
		stage_answer(stage, 0);
	stage_until(stage, &stage->ended, MANY);
	pass(stage, 2 * INTERVAL);
	assert_int_equal(caller->pendings.room, 0);
	assert_int_equal(server->serving.room, 0);
	assert_null(server->in.reader.memo);
	assert_int_equal(echo_of(stage, LARGE), SPOKE_OK);
}

TEST(spare_memory_stays_while_calls_wait)
{
	struct stage *stage = begin(state);
	struct stage_call *call;

	if (stage == NULL)
		return;
	assert_int_equal(echo_of(stage, LARGE), SPOKE_OK);
	call = stage_call(stage, stage_method(stage, "later"), stage_text(stage, "x"));
	pass(stage, 3 * INTERVAL);
	/* Either side may be the first to ask. */
	assert_true(stage_client_stat(stage, SPOKE_STAT_PROBE_ANSWERS_READ) +
			    stage_client_stat(stage, SPOKE_STAT_PROBES_READ) >
		    2);
	assert_true(stage->server_engine->spares.bytes >= LARGE);
	assert_true(spoke_call_cancel(stage->consumer, call->name));
	assert_int_equal(stage_end_of(stage, call)->error, SPOKE_ECANCELED);
}
