/* SPDX-License-Identifier: Apache-2.0 */
/* After a stall, replies that have already arrived are handled before deadlines are checked. */
#include "tests/cluster/stage.h"
#include "tests/support/test.h"

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

RUNNER(stage_run);

/* Each reply comes after 20 ms, the loop is stalled from 15 to 215 ms, the deadline is at 100 ms.
 */
TEST(two_hundred_answers_win_over_their_deadlines_after_a_stall)
{
	struct spokei_vnet_link link = { .latency_ns = 10 * MS };
	struct stage *stage = stage_begin(state);

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
