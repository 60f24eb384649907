/* SPDX-License-Identifier: Apache-2.0 */
/* Rows 49 to 51 of the table of faults: deadlines, and events in the turn in which they expire. */
#define _GNU_SOURCE
#include "tests/integration/harness.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
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
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
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
	struct spokei_buffer frames;
	char body[256];
	int len = snprintf(body, sizeof(body), "%s%c%s%c%s", BODY_ECHO(BODY_OBJECT) "\242hi\x81",
			   (char)(0xa0 | strlen(key)), key, (char)(0xa0 | strlen(text)), text);

	assert_in_range(len, 1, sizeof(body) - 1);
	frames_init(&frames);
	frames_raw(&frames, 0xdb, 0, id, body, (size_t)len);
	raw_send_buffer(raw, &frames);
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

ROW(row_49_request_that_expires_in_the_pools_queue_is_not_run, STAGE_REAL)
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
	stage_until_up(stage, SPOKE_STAT_MESSAGES_WRITTEN, THREADS + 2);
	assert_int_equal(atomic_load(&ran), 0);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_EXPIRED, 1);
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
	assert_nothing_closed(stage);
	assert_second_connection_works(stage);
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
