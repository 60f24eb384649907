/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows 42 to 44, 49 to 51, 62 and 64 of the table of faults: deadlines, ties, and reconnects.
 */
#define _GNU_SOURCE
#include "tests/integration/harness.h"
#include "tests/support/test.h"
#include "transport/wire/dubbo/head.h"

#include <spoke/host.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * --- rows 49 to 51 of the table of faults: deadlines, and events in the turn in which they
 * expire
 */

#define TIMEOUT_MAX_MS UINT64_C(2147483647)
#define NIL ((struct spoke_span){ "\xc0", 1 })
/* --- row 49 */

static struct spoke_method *method_of(struct spoke_consumer *consumer, const char *name,
				      const struct spoke_method_options *options)
{
	struct spoke_method *method;

	assert_int_equal(spoke_consumer_method(consumer, name, options, &method), SPOKE_OK);
	return method;
}

/* Makes a call that is not answered and checks that it ends after this time, up to a tick later. */
static void assert_times_out(struct stage *stage, struct spoke_method *method,
			     const struct spoke_call_options *options, uint64_t timeout_ns)
{
	uint64_t begun_ns = stage_now(stage);
	struct ending ending;

	stage_mark(stage);
	assert_int_equal(stage_try_call(stage, method, NIL, options, &ending, NULL), SPOKE_OK);
	assert_ends(stage, &ending, SPOKE_ETIMEOUT);
	assert_true(ending.at_ns - begun_ns >= timeout_ns);
	if (stage_is_virtual(stage))
		assert_true(ending.at_ns - begun_ns <= timeout_ns + 2 * MS);
	assert_true(ending.written);
	assert_counter_up_by(stage, SPOKE_STAT_CALLS_TIMEOUT, 1);
	assert_undisturbed(stage);
}

RUNNER(stage_run_rows);

ROW(row_49_timeout_of_0_inherits_and_defaults_to_a_second, STAGE_VIRTUAL)
{
	struct spoke_consumer_options options = { .serialization = SPOKE_SERIALIZATION_MSGPACK };
	const struct spoke_call_options own = { .timeout_ns = 300 * MS };
	struct spoke_consumer *consumer;
	char url[160];

	stage_set_consumer(stage, NULL);
	(void)snprintf(url, sizeof(url), "dubbo://%s/" STAGE_SERVICE, stage->raw_at);
	options.url = url;
	assert_int_equal(spoke_consumer_new(stage->engine, &options, &consumer), SPOKE_OK);
	while (spoke_consumer_ready(consumer) == 0)
		stage_turn(stage);
	assert_times_out(stage, method_of(consumer, "echo", NULL), NULL, SECOND);
	assert_times_out(stage,
			 method_of(consumer, "echo",
				   &(struct spoke_method_options){ .timeout_ns = 200 * MS }),
			 NULL, 200 * MS);
	assert_times_out(stage,
			 method_of(consumer, "echo",
				   &(struct spoke_method_options){ .timeout_ns = 200 * MS }),
			 &own, 300 * MS);
	spoke_consumer_free(consumer);
}

ROW(row_49_a_timeout_of_1_ms_is_that, STAGE_SMOOTH)
{
	const struct spoke_call_options options = { .timeout_ns = MS };
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message request;

	assert_times_out(stage, stage->echo, &options, MS);
	raw_frame(raw, &request);
	assert_int_equal(request.timeout_ms, 1);
}

ROW(row_49_the_longest_timeout_is_kept_to_the_millisecond, STAGE_ALL)
{
	const struct spoke_call_options options = { .timeout_ns = TIMEOUT_MAX_MS * MS };
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spoke_method *later = method_of(stage->second, "later", NULL);
	struct spokei_message request;
	static struct ending endings[2];

	assert_int_equal(stage_try_call(stage, stage->echo, NIL, &options, &endings[0], NULL),
			 SPOKE_OK);
	raw_frame(raw, &request);
	assert_int_equal(request.timeout_ms, TIMEOUT_MAX_MS);
	assert_int_equal(stage_try_call(stage, later, NIL, &options, &endings[1], NULL), SPOKE_OK);
	if (!stage_is_virtual(stage)) {
		stage_pass(stage, 20 * MS);
		assert_int_equal(endings[0].ends + endings[1].ends, 0);
		assert_second_connection_works(stage);
		return;
	}
	stage_pass(stage, TIMEOUT_MAX_MS * MS - SECOND);
	assert_int_equal(endings[1].ends, 0);
	assert_second_connection_works(stage);
	stage_pass(stage, 2 * SECOND);
	assert_ends(stage, &endings[1], SPOKE_ETIMEOUT);
}

ROW(row_49_a_timeout_beyond_is_refused, STAGE_ALL)
{
	static const uint64_t beyond[] = { TIMEOUT_MAX_MS * MS + 1, UINT64_C(1) << 63, UINT64_MAX };
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spoke_consumer *consumer;
	struct spoke_method *never;
	struct ending ending;

	for (size_t i = 0; i < LENGTH(beyond); i++) {
		const struct spoke_call_options call = { .timeout_ns = beyond[i] };
		const struct spoke_method_options method = { .timeout_ns = beyond[i] };
		const struct spoke_consumer_options options = {
			.url = "dubbo://127.0.0.1:1/demo.EchoService",
			.timeout_ns = beyond[i],
		};

		stage_mark(stage);
		assert_int_equal(stage_try_call(stage, stage->echo, NIL, &call, &ending, NULL),
				 SPOKE_ERANGE);
		assert_counter_up_by(stage, SPOKE_STAT_CALLS_REFUSED, 1);
		assert_int_equal(spoke_consumer_method(stage->consumer, "echo", &method, &never),
				 SPOKE_ERANGE);
		assert_int_equal(spoke_consumer_new(stage->engine, &options, &consumer),
				 SPOKE_ERANGE);
	}
	assert_int_equal(spoke_consumer_new(stage->engine,
					    &(struct spoke_consumer_options){
						    .url = "dubbo://127.0.0.1:1/demo.EchoService"
							   "?timeout=9223372036854775808" },
					    &consumer),
			 SPOKE_ERANGE);
	assert_int_equal(ending.ends, 0);
	assert_second_connection_works(stage);
	assert_consumer_lives(raw);
}

/* A request of "echo" with one attachment. */
static void send_timed(struct raw *raw, uint64_t id, const char *key, const char *text)
{
	char body[256];
	int len = snprintf(body, sizeof(body), "%s%c%s%c%s", BODY_ECHO(BODY_OBJECT) "\242hi\x81",
			   (char)(0xa0 | strlen(key)), key, (char)(0xa0 | strlen(text)), text);

	assert_in_range(len, 1, sizeof(body) - 1);
	say_raw(raw, 0xdb, 0, id, body, (size_t)len);
}

ROW(row_49_expired_request_is_answered_31_and_not_run, STAGE_ALL)
{
	static const char *const past[] = { "0", "-1", "-2147483648", "-99999999999999999999" };
	static const char *const ahead[] = { "60000", "2147483647", "9223372036854775808",
					     "99999999999999999999" };
	struct raw *raw = stage_raw_to_provider(stage);

	for (size_t i = 0; i < LENGTH(past); i++) {
		unsigned handled = stage->handled;

		stage_mark(stage);
		send_timed(raw, 3, "_TO", past[i]);
		assert_reply(raw, 3, 31, NULL);
		assert_int_equal(stage->handled, handled);
		assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_EXPIRED, 1);
		assert_second_connection_works(stage);
	}
	stage_mark(stage);
	for (size_t i = 0; i < LENGTH(ahead); i++) {
		send_timed(raw, 4, "_TO", ahead[i]);
		assert_reply(raw, 4, 20, NULL);
		send_timed(raw, 5, "timeout", ahead[i]);
		assert_reply(raw, 5, 20, NULL);
	}
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_EXPIRED, 0);
	assert_nothing_closed(stage);
	assert_raw_lives(raw);
}

/* Handlers that keep the thread pool busy until they are released. */
static atomic_uint blocked;

static atomic_uint ran;

static atomic_bool may_go;

static void block(struct spoke_request *request, void *arg)
{
	(void)arg;
	atomic_fetch_add(&blocked, 1);
	while (!atomic_load(&may_go))
		(void)nanosleep(&(struct timespec){ .tv_nsec = MS }, NULL);
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void note_ran(struct spoke_request *request, void *arg)
{
	(void)arg;
	atomic_fetch_add(&ran, 1);
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

#define THREADS 4u /* of the pool */

static bool all_blocked(void *arg)
{
	(void)arg;
	return atomic_load(&blocked) == THREADS;
}

ROW(row_49_request_given_up_in_the_pools_queue_is_not_run, STAGE_REAL)
{
	const struct spoke_handler handlers[] = {
		{ .method = "block", .handle = block, .flags = SPOKE_HANDLER_POOL },
		{ .method = "note", .handle = note_ran, .flags = SPOKE_HANDLER_POOL },
	};
	const struct spoke_service_options service = { .name = "demo.Pool" };
	const struct spoke_method_options of_pool = { .service = "demo.Pool" };
	const struct spoke_call_options soon = { .timeout_ns = 30 * MS };
	struct ending endings[THREADS];
	struct ending late;
	struct spoke_method *method;

	stage_set_provider(stage, NULL);
	assert_int_equal(spoke_provider_add(stage->provider, &service, handlers, LENGTH(handlers)),
			 SPOKE_OK);
	atomic_store(&blocked, 0);
	atomic_store(&ran, 0);
	atomic_store(&may_go, false);
	stage_mark(stage);
	method = method_of(stage->second, "block", &of_pool);
	for (unsigned i = 0; i < THREADS; i++)
		stage_call(stage, method, "x", &endings[i], NULL);
	stage_until(stage, all_blocked, NULL);
	method = method_of(stage->second, "note", &of_pool);
	assert_int_equal(stage_try_call(stage, method, NIL, &soon, &late, NULL), SPOKE_OK);
	assert_ends(stage, &late, SPOKE_ETIMEOUT);
	assert_second_connection_works(stage);
	atomic_store(&may_go, true);
	for (unsigned i = 0; i < THREADS; i++)
		assert_ends(stage, &endings[i], SPOKE_OK);
	stage_until_up(stage, SPOKE_STAT_MESSAGES_WRITTEN, THREADS + 1);
	assert_int_equal(atomic_load(&ran), 0);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_ABANDONED, 1);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_OK, THREADS + 1);
	assert_second_connection_works(stage);
}

/* --- row 50 */

#define CROWD 1000u

struct quota;

struct member {
	struct quota *quota;
	struct spoke_call call;
	unsigned ends;
	int error;
};

/* Makes calls that all expire at the same time. Of the first ones every other one, as it times out,
 * cancels the next and begins a call that expires at once. */
struct quota {
	struct stage *stage;
	struct member members[2 * CROWD];
	unsigned ended;
};

static void member_done(void *arg, const struct spoke_result *result);

static void call_member(struct quota *quota, size_t index, uint64_t timeout_ns)
{
	const struct spoke_call_options options = { .timeout_ns = timeout_ns };
	struct member *member = &quota->members[index];

	member->quota = quota;
	assert_int_equal(spoke_call(quota->stage->echo, NIL, &options, member_done, member,
				    &member->call),
			 SPOKE_OK);
}

static void member_done(void *arg, const struct spoke_result *result)
{
	struct member *member = arg;
	struct quota *quota = member->quota;
	size_t index = (size_t)(member - quota->members);

	member->ends++;
	member->error = result->error;
	quota->ended++;
	if (index >= CROWD || index % 2)
		return;
	assert_true(spoke_call_cancel(quota->stage->consumer, quota->members[index + 1].call));
	call_member(quota, CROWD + index / 2, 1);
}

static bool has_crowd_ended(void *arg)
{
	const struct quota *quota = arg;

	return quota->ended >= CROWD + CROWD / 2;
}

ROW(row_50_callbacks_of_one_tick_may_cancel_and_begin_calls, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct quota *quota = calloc(1, sizeof(*quota));

	assert_non_null(quota);
	quota->stage = stage;
	for (size_t i = 0; i < CROWD; i++)
		call_member(quota, i, 50 * MS);
	stage_until(stage, has_crowd_ended, quota);
	assert_int_equal(quota->ended, CROWD + CROWD / 2);
	for (size_t i = 0; i < CROWD + CROWD / 2; i++) {
		assert_int_equal(quota->members[i].ends, 1);
		if (i < CROWD && i % 2)
			assert_int_equal(quota->members[i].error, SPOKE_ECANCELED);
	}
	assert_counter_up_by(stage, SPOKE_STAT_CALLS, CROWD + CROWD / 2);
	assert_counter_up_by(stage, SPOKE_STAT_CALLS_CANCELED, CROWD / 2);
	assert_int_equal(stage_up(stage, SPOKE_STAT_CALLS_TIMEOUT) +
				 stage_up(stage, SPOKE_STAT_CALLS_TIMEOUT_UNSENT),
			 CROWD);
	assert_int_equal(stage->consumer->link->pending_count, 0);
	assert_undisturbed(stage);
	(void)raw;
	free(quota);
}

/* --- row 51 */

#define MANY 500u
/* Stalls all engines for this time. */
static void stall(struct stage *stage, uint64_t ns)
{
	if (stage_is_virtual(stage))
		spokei_world_stall(&stage->world, ns);
	else
		(void)nanosleep(&(struct timespec){ .tv_nsec = (long)ns }, NULL);
}

/* Makes calls; their replies of this many bytes are in the socket when the side under test runs
 * again, after the deadline. */
static void assert_replies_win(struct stage *stage, struct raw *raw, size_t text_len)
{
	static struct ending endings[MANY];
	const struct spoke_call_options options = { .timeout_ns = 100 * MS };
	static char text[4097];
	struct spokei_message request;
	struct spokei_buffer frames;

	memset(text, 'x', text_len);
	text[text_len] = '\0';
	frames_init(&frames);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(stage_try_call(stage, stage->echo, NIL, &options, &endings[i],
						NULL),
				 SPOKE_OK);
	for (unsigned i = 0; i < MANY; i++) {
		raw_frame(raw, &request);
		frames_reply(&frames, request.id, 20, text);
	}
	stage_mark(stage);
	raw_send_buffer(raw, &frames);
	assert_counter_up_by(stage, SPOKE_STAT_BYTES_READ, 0);
	stall(stage, 250 * MS);
	for (unsigned i = 0; i < MANY; i++)
		assert_ends(stage, &endings[i], SPOKE_OK);
	assert_counter_up_by(stage, SPOKE_STAT_CALLS_OK, MANY);
	assert_counter_up_by(stage, SPOKE_STAT_CALLS_TIMEOUT, 0);
	assert_counter_up_by(stage, SPOKE_STAT_REPLIES_LATE, 0);
	assert_nothing_closed(stage);
}

ROW(row_51_a_reply_that_has_come_wins_over_its_timeout, STAGE_SMOOTH)
{
	const struct spokei_vnet_link wide = { .capacity = 8 << 20 };
	struct raw *raw = stage_raw_to_consumer(stage);

	if (stage_is_virtual(stage))
		spokei_vnet_set_all(stage->world.net, &wide);
	assert_replies_win(stage, raw, 10);
	if (stage->on == STAGE_MEMORY) /* more than one read returns */
		assert_replies_win(stage, raw, 4096);
	assert_second_connection_works(stage);
}

/* A reply arrives at the very nanosecond of the deadline. */
ROW(row_51_a_reply_in_the_turn_of_its_deadline_wins, STAGE_MEMORY)
{
	const struct spoke_call_options options = { .timeout_ns = 100 * MS };
	struct raw *raw = stage_raw_to_consumer(stage);

	for (uint64_t early_us = 0; early_us <= 3000; early_us += 50) {
		uint64_t latency_ns = 20 * MS + early_us * 1000;
		const struct spokei_vnet_link slow = { .latency_ns = latency_ns };
		struct spokei_message request;
		struct spokei_buffer frames;
		struct ending ending;
		uint64_t begun_ns;
		uint64_t sent_ns;

		spokei_vnet_set_all(stage->world.net, &(struct spokei_vnet_link){ 0 });
		begun_ns = stage_now(stage);
		assert_int_equal(stage_try_call(stage, stage->echo, NIL, &options, &ending, NULL),
				 SPOKE_OK);
		raw_frame(raw, &request);
		frames_init(&frames);
		frames_reply(&frames, request.id, 20, "y");
		spokei_vnet_set_all(stage->world.net, &slow);
		sent_ns = begun_ns + 100 * MS + 2 * MS - latency_ns;
		stage_pass(stage, sent_ns - stage_now(stage));
		stage_mark(stage);
		raw_send_buffer(raw, &frames);
		stage_wait(stage, &ending);
		stage_pass(stage, 50 * MS);
		/* One of both happened, and the counters agree. */
		assert_int_equal(ending.ends, 1);
		assert_int_equal(stage_up(stage, SPOKE_STAT_CALLS_OK) +
					 stage_up(stage, SPOKE_STAT_CALLS_TIMEOUT),
				 1);
		assert_counter_up_by(stage, SPOKE_STAT_REPLIES_LATE, ending.error ? 1 : 0);
		if (ending.at_ns == begun_ns + 102 * MS)
			assert_int_equal(ending.error, SPOKE_OK);
	}
	spokei_vnet_set_all(stage->world.net, &(struct spokei_vnet_link){ 0 });
	assert_second_connection_works(stage);
}

/*
 * --- rows 42 to 44, 62 and 64 of the table of faults: a consumer that reconnects, the pace of
 * its attempts, and its end during an attempt
 */

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
	struct ending ending;

	raw_frame(raw, &message);
	assert_int_equal(message.kind, SPOKEI_PROBE);
	stage_call(stage, stage->echo, "again", &ending, NULL);
	raw_frame(raw, &message);
	say_reply(raw, message.id, SPOKEI_DUBBO_OK, "again");
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
	RECONNECT_CROWD = 200,
	BUCKETS = 10
};

static struct spoke_consumer *reconnect_quota[RECONNECT_CROWD];

static uint64_t came_ns[RECONNECT_CROWD];

static size_t crowd_ready(void)
{
	size_t ready = 0;

	for (unsigned i = 0; i < RECONNECT_CROWD; i++)
		ready += spoke_consumer_ready(reconnect_quota[i]);
	return ready;
}

/* times of the reconnects */
static void note_who_comes(struct stage *stage, uint64_t limit_ns)
{
	uint64_t end_ns = stage_now(stage) + limit_ns;

	memset(came_ns, 0, sizeof(came_ns));
	for (unsigned there = 0; there < RECONNECT_CROWD;) {
		assert_true(stage_now(stage) < end_ns);
		stage_turn(stage);
		for (unsigned i = 0; i < RECONNECT_CROWD; i++) {
			if (came_ns[i] == 0 && spoke_consumer_ready(reconnect_quota[i]) > 0) {
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

	for (unsigned i = 0; i < RECONNECT_CROWD; i++) {
		first = came_ns[i] < first ? came_ns[i] : first;
		last = came_ns[i] > last ? came_ns[i] : last;
	}
	for (unsigned i = 0; i < RECONNECT_CROWD; i++)
		buckets[(came_ns[i] - first) * BUCKETS / (last - first + 1)]++;
	for (unsigned i = 0; i < BUCKETS; i++)
		assert_true(buckets[i] <= 3 * RECONNECT_CROWD / BUCKETS);
}

static void play_return(struct stage *stage, uint64_t outage_ns)
{
	struct spoke_consumer_options options = { .serialization = SPOKE_SERIALIZATION_MSGPACK };
	struct spoke_provider *back;
	char url[160];

	stage_set_provider(stage, NULL);
	(void)snprintf(url, sizeof(url), "dubbo://%s/" STAGE_SERVICE, stage->provider_at);
	options.url = url;
	for (unsigned i = 0; i < RECONNECT_CROWD; i++)
		assert_int_equal(spoke_consumer_new(stage->good, &options, &reconnect_quota[i]),
				 SPOKE_OK);
	while (crowd_ready() < RECONNECT_CROWD)
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
	for (unsigned i = 0; i < RECONNECT_CROWD; i++)
		spoke_consumer_free(reconnect_quota[i]);
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
