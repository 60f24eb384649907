/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows 42 to 44, 62 and 64 of the table of faults: a consumer that reconnects, the pace of its
 * attempts, and its end during an attempt.
 */
#include "tests/integration/harness.h"
#include "tests/support/test.h"

#include "transport/wire/dubbo/head.h"

#include <spoke/host.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define OUTAGE_NS (100 * SECOND)
#define LONGEST_PAUSE_NS (37 * SECOND) /* 30 s plus a fifth, plus the time to connect */

/* --- calls during the outage */

enum {
	ASKED_MAX = 1200
};

static struct ending asked[ASKED_MAX];
static unsigned asked_count;
static unsigned not_taken;

/* Makes one call, which may be rejected. */
static void ask(struct stage *stage)
{
	struct spoke_span args = { "\xa1x", 2 };

	assert_true(asked_count < ASKED_MAX);
	if (stage_try_call(stage, stage->echo, args, NULL, &asked[asked_count], NULL))
		not_taken++;
	else
		asked_count++;
}

static void assert_all_asked_have_ended(const struct stage *stage)
{
	(void)stage;
	for (unsigned i = 0; i < asked_count; i++) {
		assert_int_equal(asked[i].ends, 1);
		assert_true(asked[i].error == SPOKE_ECONNECT || asked[i].error == SPOKE_ELOST ||
			    asked[i].error == SPOKE_EPROTOCOL || asked[i].error == SPOKE_ESELF);
		assert_true(asked[i].error == SPOKE_EPROTOCOL || !asked[i].written);
	}
}

/* Serves the consumer under test once it connects. */
static void assert_comes(struct stage *stage)
{
	struct raw *raw = raw_accept(stage);
	struct spokei_message message;
	struct spokei_buffer frames;
	struct ending ending;

	raw_frame(raw, &message);
	assert_int_equal(message.kind, SPOKEI_PROBE);
	stage_call(stage, stage->echo, "again", &ending, NULL);
	raw_frame(raw, &message);
	frames_init(&frames);
	frames_reply(&frames, message.id, SPOKEI_DUBBO_OK, "again");
	raw_send_buffer(raw, &frames);
	assert_ends(stage, &ending, SPOKE_OK);
	assert_second_connection_works(stage);
}

/* An outage that begins with a reset; calls are made throughout. */
static void begin_outage(struct stage *stage, enum spokei_vnet_route route)
{
	struct raw *raw = stage_raw_to_consumer(stage);

	asked_count = 0;
	not_taken = 0;
	spokei_vnet_route(stage->world.net, stage->raw_at, route);
	raw_reset(raw);
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
}

static void pass_outage(struct stage *stage)
{
	for (unsigned i = 0; i < OUTAGE_NS / (100 * MS); i++) {
		ask(stage);
		stage_pass(stage, 100 * MS);
	}
}

/* Returns the bounds of the number of attempts. Pauses grow from 100 ms by a factor of 1.6 to 30 s,
 * with a jitter of a fifth; an attempt takes up to 5 s, and one may be in progress. */
static void assert_attempts_are_bounded(struct stage *stage)
{
	uint64_t connects = stage_up(stage, SPOKE_STAT_CONNECTS);

	assert_in_range(connects, 6, 16);
	assert_in_range(stage_up(stage, SPOKE_STAT_CONNECTS_FAILED), connects - 1, connects);
}

static void play_outage(struct stage *stage, enum spokei_vnet_route route)
{
	begin_outage(stage, route);
	pass_outage(stage);
	stage_pass(stage, 5 * SECOND);
	assert_true(not_taken > 0);
	assert_all_asked_have_ended(stage);
	spokei_vnet_route(stage->world.net, stage->raw_at, SPOKEI_VNET_NORMAL);
	assert_attempts_are_bounded(stage);
	stage_until_up(stage, SPOKE_STAT_CONNECTED, 1);
	assert_comes(stage);
}

/* --- row 42 */

RUNNER(stage_run_rows);

ROW(row_42_refusing_peer_is_retried_with_backoff, STAGE_MEMORY)
{
	play_outage(stage, SPOKEI_VNET_REFUSE);
}

ROW(row_42_unreachable_peer_is_retried_with_backoff, STAGE_MEMORY)
{
	play_outage(stage, SPOKEI_VNET_UNREACHABLE);
}

ROW(row_42_silent_peer_is_retried_with_backoff, STAGE_MEMORY)
{
	play_outage(stage, SPOKEI_VNET_SILENT);
}

/* Ends an attempt in each possible way. */
ROW(row_42_connect_that_fails_in_progress_is_retried, STAGE_VIRTUAL)
{
	static const int errors[] = { ECONNRESET, ECONNREFUSED, EHOSTUNREACH, ETIMEDOUT };

	begin_outage(stage, SPOKEI_VNET_NORMAL);
	for (unsigned i = 0; i < LENGTH(errors); i++) {
		uint64_t failed = stage_up(stage, SPOKE_STAT_CONNECTS_FAILED);

		spokei_faults_fail(&stage->faulty, SPOKEI_FAULTS_FINISH, 1, -errors[i], false);
		ask(stage);
		stage_until_up(stage, SPOKE_STAT_CONNECTS_FAILED, failed + 1);
		ask(stage);
		raw_close(raw_accept(stage)); /* the kernel had established it anyway */
	}
	stage_until_up(stage, SPOKE_STAT_CONNECTED, 1);
	assert_all_asked_have_ended(stage);
	assert_comes(stage);
}

/* --- row 43 */

ROW(row_43_connection_to_itself_is_retried_with_backoff, STAGE_MEMORY)
{
	play_outage(stage, SPOKEI_VNET_SELF);
	assert_in_range(stage_up(stage, SPOKE_STAT_CONNECTS_SELF), 6, 16);
}

/* --- row 44 */

static const char *const garbage[] = {
	"SSH-2.0-OpenSSH_9.2p1\r\n",
	"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
	"\x16\x03\x01\x02\x00\x01",
	"220 mail ESMTP\r\n",
	"\xda\xbb\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	"+PONG\r\n",
};

ROW(row_44_port_with_another_protocol_is_retried_with_backoff, STAGE_ALL)
{
	unsigned count = stage_is_virtual(stage) ? 12 : 4;
	uint64_t begun_ns;

	asked_count = 0;
	not_taken = 0;
	raw_reset(stage_raw_to_consumer(stage));
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
	begun_ns = stage_now(stage);
	for (unsigned i = 0; i < count; i++) {
		struct raw *raw = raw_accept(stage);
		const char *says = garbage[i % LENGTH(garbage)];

		ask(stage);
		(void)raw_try_send(raw, says, i % LENGTH(garbage) == 4 ? 16 : strlen(says));
		(void)raw_wait_end(raw);
		ask(stage);
	}
	/* The pauses are at least four fifths of 100 ms, 160 ms and so on. */
	assert_true(stage_now(stage) - begun_ns >= (count == 12 ? 35 * SECOND : 740 * MS));
	assert_counter_up_by(stage, SPOKE_STAT_CLOSED_PROTOCOL, count);
	assert_comes(stage);
	stage_pass(stage, 10 * MS);
	assert_all_asked_have_ended(stage);
}

/* --- row 62 */

enum {
	CROWD = 200,
	BUCKETS = 10
};

static struct spoke_consumer *quota[CROWD];
static uint64_t came_ns[CROWD];

static size_t crowd_ready(void)
{
	size_t ready = 0;

	for (unsigned i = 0; i < CROWD; i++)
		ready += spoke_consumer_ready(quota[i]);
	return ready;
}

/* times of the reconnects */
static void note_who_comes(struct stage *stage, uint64_t limit_ns)
{
	uint64_t end_ns = stage_now(stage) + limit_ns;

	memset(came_ns, 0, sizeof(came_ns));
	for (unsigned there = 0; there < CROWD;) {
		assert_true(stage_now(stage) < end_ns);
		stage_turn(stage);
		for (unsigned i = 0; i < CROWD; i++) {
			if (came_ns[i] == 0 && spoke_consumer_ready(quota[i]) > 0) {
				came_ns[i] = stage_now(stage);
				there++;
			}
		}
	}
}

/* No tenth of the period may contain more than three times the mean. */
static void assert_spread(void)
{
	unsigned buckets[BUCKETS] = { 0 };
	uint64_t first = UINT64_MAX;
	uint64_t last = 0;

	for (unsigned i = 0; i < CROWD; i++) {
		first = came_ns[i] < first ? came_ns[i] : first;
		last = came_ns[i] > last ? came_ns[i] : last;
	}
	for (unsigned i = 0; i < CROWD; i++)
		buckets[(came_ns[i] - first) * BUCKETS / (last - first + 1)]++;
	for (unsigned i = 0; i < BUCKETS; i++)
		assert_true(buckets[i] <= 3 * CROWD / BUCKETS);
}

static void play_return(struct stage *stage, uint64_t outage_ns)
{
	struct spoke_consumer_options options = { .serialization = SPOKE_SERIALIZATION_MSGPACK };
	struct spoke_provider *back;
	char url[160];

	stage_set_provider(stage, NULL);
	(void)snprintf(url, sizeof(url), "dubbo://%s/" STAGE_SERVICE, stage->provider_at);
	options.url = url;
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(spoke_consumer_new(stage->good, &options, &quota[i]), SPOKE_OK);
	while (crowd_ready() < CROWD)
		stage_turn(stage);
	/* Each of them has received bytes. */
	stage_pass(stage, 100 * MS);
	spoke_provider_free(stage->provider);
	stage_pass(stage, outage_ns);
	assert_int_equal(crowd_ready(), 0);
	assert_int_equal(spoke_provider_new(stage->engine, NULL, &back), SPOKE_OK);
	stage->provider = back;
	stage_serve(stage, back);
	assert_int_equal(spoke_provider_listen(back, "dubbo://127.0.0.1:20880"), SPOKE_OK);
	note_who_comes(stage, LONGEST_PAUSE_NS);
	assert_spread();
	for (unsigned i = 0; i < CROWD; i++)
		spoke_consumer_free(quota[i]);
}

ROW(row_62_reconnects_after_a_long_outage_are_spread, STAGE_MEMORY)
{
	play_return(stage, 600 * SECOND);
}

ROW(row_62_reconnects_after_a_short_outage_are_spread, STAGE_MEMORY)
{
	play_return(stage, 2 * SECOND);
}

ROW(row_62_immediate_reconnects_are_spread, STAGE_MEMORY)
{
	play_return(stage, 20 * MS);
}

/* --- row 64 */

/* Frees the consumer: no further attempt, timer or connection, and its calls end. */
static void assert_ends_for_good(struct stage *stage)
{
	struct spoke_wheel_counts timers;
	uint64_t connects;

	spoke_consumer_free(stage->consumer);
	stage->consumer = NULL;
	stage_pass(stage, 10 * MS);
	connects = stage_stat(stage, SPOKE_STAT_CONNECTS);
	for (unsigned i = 0; i < asked_count; i++) {
		assert_int_equal(asked[i].ends, 1);
		assert_true(asked[i].error == SPOKE_ECLOSED || asked[i].error == SPOKE_ECONNECT ||
			    asked[i].error == SPOKE_ELOST);
	}
	/* The other consumer has two: its connector's and its connection's. */
	spoke_wheel_counts(stage->engine->wheel, &timers);
	assert_true(timers.pending <= 2);
	stage_pass(stage, stage_is_virtual(stage) ? OUTAGE_NS : 300 * MS);
	assert_int_equal(stage_stat(stage, SPOKE_STAT_CONNECTS), connects);
	assert_second_connection_works(stage);
}

ROW(row_64_a_consumer_may_be_freed_while_it_pauses, STAGE_ALL)
{
	asked_count = 0;
	raw_reset(stage_raw_to_consumer(stage));
	stage_until_up(stage, SPOKE_STAT_RECONNECTS, 1);
	ask(stage);
	assert_ends_for_good(stage);
}

ROW(row_64_a_consumer_may_be_freed_while_it_connects, STAGE_MEMORY)
{
	begin_outage(stage, SPOKEI_VNET_SILENT);
	stage_until_up(stage, SPOKE_STAT_CONNECTS, 1);
	ask(stage);
	assert_int_equal(not_taken, 0);
	assert_ends_for_good(stage);
}

ROW(row_64_consumer_may_be_freed_before_the_first_byte, STAGE_ALL)
{
	asked_count = 0;
	stage_set_consumer(stage, NULL);
	raw_need(raw_accept(stage), 1);
	ask(stage);
	stage_pass(stage, 5 * MS);
	assert_ends_for_good(stage);
}

/* Drains the consumer: the drain ends at once and does not wait for the next attempt. */
ROW(row_64_a_consumer_that_pauses_is_drained_at_once, STAGE_ALL)
{
	uint64_t connects;

	raw_reset(stage_raw_to_consumer(stage));
	stage_until_up(stage, SPOKE_STAT_RECONNECTS, 1);
	connects = stage_stat(stage, SPOKE_STAT_CONNECTS);
	assert_int_equal(spoke_engine_drain(stage->engine, UINT64_MAX), SPOKE_OK);
	assert_int_equal(spoke_engine_run(stage->engine), SPOKE_OK);
	assert_int_equal(stage_stat(stage, SPOKE_STAT_CONNECTS), connects);
}
