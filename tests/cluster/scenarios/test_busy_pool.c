/* SPDX-License-Identifier: Apache-2.0 */
/* A provider whose pool has no free thread: waits are counted and explained, the queue is bounded.
 */
#include "tests/cluster/scenarios/linkrig.h"
#include "tests/support/test.h"
#include "transport/codec/codec.h"

#include <string.h>

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
