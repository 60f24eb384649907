/* SPDX-License-Identifier: Apache-2.0 */
/* Rows 52, 57 and 59 of the table of faults: limits that are reached. */
#define _GNU_SOURCE
#include "cluster/endpoints/directory.h"
#include "tests/integration/harness.h"
#include "tests/support/test.h"
#include "transport/connect/connector.h"

#include <spoke/host.h>

#include <errno.h>
#include <stdio.h>

#define NIL ((struct spoke_span){ "\xc0", 1 })

/* --- row 52 */

#define WAITING 8u

RUNNER(stage_run_rows);

ROW(row_52_provider_without_descriptors_rejects_clients, STAGE_ALL)
{
	struct raw *waiting[WAITING];
	struct raw *raw;
	uint64_t accepts;

	stage_set_provider(stage, NULL);
	raw = raw_connect(stage);
	for (unsigned i = 0; i < WAITING; i++)
		waiting[i] = raw_start(stage);
	stage_mark(stage);
	accepts = stage->faulty.calls[SPOKEI_FAULTS_ACCEPT];
	stage_forbid_descriptors(stage);
	stage_until_up(stage, SPOKE_STAT_ACCEPTS_SHED, WAITING);
	assert_second_connection_works(stage);
	assert_raw_lives(raw);
	for (unsigned i = 0; i < WAITING; i++)
		assert_closed_mutely(waiting[i]);
	/* Without new connections nothing is tried. */
	stage_pass(stage, 200 * MS);
	assert_true(stage->faulty.calls[SPOKEI_FAULTS_ACCEPT] - accepts <= 4 * WAITING);
	assert_counter_up_by(stage, SPOKE_STAT_ACCEPTS_SHED, WAITING);
	assert_counter_up_by(stage, SPOKE_STAT_ACCEPTED, 0);
	assert_nothing_closed(stage);
	stage_allow_descriptors(stage);
	raw = raw_connect(stage);
	assert_raw_lives(raw);
	assert_second_connection_works(stage);
}

/* Another thread has taken the reserve descriptor too: accept is retried from time to time, not
 * continuously. */
ROW(row_52_a_listener_without_its_reserve_pauses, STAGE_ALL)
{
	struct raw *raw;
	uint64_t accepts;

	stage_set_provider(stage, NULL);
	raw = raw_start(stage);
	accepts = stage->faulty.calls[SPOKEI_FAULTS_ACCEPT];
	stage_mark(stage);
	spokei_faults_fail(&stage->faulty, SPOKEI_FAULTS_ACCEPT, 1, -EMFILE, true);
	spokei_faults_fail(&stage->faulty, SPOKEI_FAULTS_SPARE, 1, -EMFILE, true);
	stage_until_up(stage, SPOKE_STAT_ACCEPTS_FAILED, 1);
	stage_pass(stage, 300 * MS);
	assert_second_connection_works(stage);
	assert_true(stage->faulty.calls[SPOKEI_FAULTS_ACCEPT] - accepts <= 3 * 10);
	spokei_faults_heal(&stage->faulty);
	assert_raw_lives(raw);
	assert_counter_up_by(stage, SPOKE_STAT_ACCEPTED, 1);
	assert_undisturbed(stage);
}

ROW(row_52_consumer_without_descriptors_retries, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message message;
	struct ending ending;
	uint64_t failed;

	raw_close(raw);
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
	stage_forbid_descriptors(stage);
	stage_until_up(stage, SPOKE_STAT_CONNECTS_FAILED, 1);
	assert_second_connection_works(stage);
	assert_int_equal(stage_try_call(stage, stage->echo, NIL, NULL, &ending, NULL),
			 SPOKE_EUNAVAILABLE);
	stage_pass(stage, 300 * MS);
	failed = stage_up(stage, SPOKE_STAT_CONNECTS_FAILED);
	assert_in_range(failed, 1, 6); /* pauses of 100 ms and more, half of it random */
	assert_counter_up_by(stage, SPOKE_STAT_CONNECTS, failed);
	stage_allow_descriptors(stage);
	raw = raw_accept(stage);
	raw_frame(raw, &message);
	assert_int_equal(message.kind, SPOKEI_PROBE);
	assert_counter_up_by(stage, SPOKE_STAT_CONNECTED, 1);
	stage_call(stage, stage->echo, "x", &ending, NULL);
	raw_frame(raw, &message);
	assert_consumer_lives(raw);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_BY_PEER);
	assert_second_connection_works(stage);
	raw_reset(raw);
	assert_ends(stage, &ending, SPOKE_ELOST);
}

/* --- row 57 */

struct tally {
	unsigned ends;
	unsigned errors[3]; /* ETIMEOUT_UNSENT, ETIMEOUT, others */
	unsigned again;     /* calls still to be made, one from each callback */
	struct spoke_method *method;
};

static void count_end(void *arg, const struct spoke_result *result)
{
	struct tally *tally = arg;

	tally->ends++;
	tally->errors[result->error == SPOKE_ETIMEOUT_UNSENT ? 0
		      : result->error == SPOKE_ETIMEOUT      ? 1
							     : 2]++;
	if (tally->again == 0)
		return;
	tally->again--;
	assert_int_equal(spoke_call(tally->method, NIL, NULL, count_end, tally, NULL), SPOKE_OK);
}

/* Makes this many calls; returns the number of accepted ones. The others must be rejected with this
 * error. */
static unsigned call_often(struct spoke_method *method, unsigned times, int error,
			   uint64_t timeout_ns, struct tally *tally)
{
	const struct spoke_call_options options = { .timeout_ns = timeout_ns };
	unsigned taken = 0;

	for (unsigned i = 0; i < times; i++) {
		int status = spoke_call(method, NIL, &options, count_end, tally, NULL);

		taken += status == SPOKE_OK;
		if (status)
			assert_string_equal(spoke_errname(status), spoke_errname(error));
	}
	return taken;
}

static bool is_waiting(void *arg)
{
	const struct spoke_consumer *consumer = arg;

	return spokei_connector_state(
		       consumer->directory->candidates.endpoints[0]->lines[0].connector) ==
	       SPOKEI_CONNECTOR_WAITING;
}

ROW(row_57_calls_without_a_provider_are_refused, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct tally tally = { 0 };
	size_t before;

	stage->peer_env->net->close(stage->peer_env->ctx, stage->raw_listener);
	stage->raw_listener = -1;
	raw_close(raw);
	stage_until(stage, is_waiting, stage->consumer);
	before = stage->faulty.bytes;
	stage_mark(stage);
	assert_int_equal(call_often(stage->echo, 100000, SPOKE_EUNAVAILABLE, 0, &tally), 0);
	assert_counter_up_by(stage, SPOKE_STAT_CALLS_REFUSED, 100000);
	assert_int_equal(stage_demands(stage), 0);
	assert_int_equal(stage->faulty.bytes, before);
	assert_second_connection_works(stage);
	assert_int_equal(tally.ends, 0);
}

/* Without answers, the number of waiting calls keeps its limit, and each call ends at its deadline.
 */
ROW(row_57_calls_over_the_pending_limit_are_refused, STAGE_ALL)
{
	const struct spoke_consumer_options options = { .pending_max = 100 };
	struct tally tally = { 0 };

	stage_set_consumer(stage, &options);
	(void)raw_accept(stage);
	stage_mark(stage);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(call_often(stage->echo, 250, SPOKE_ELIMIT, 50 * MS, &tally), 100);
		assert_counter_up_by(stage, SPOKE_STAT_CALLS_REFUSED, (uint64_t)i * 150);
		assert_second_connection_works(stage);
		while (tally.ends < 100 * i)
			stage_turn(stage);
	}
	assert_int_equal(tally.ends, 300);
	assert_int_equal(tally.errors[2], 0);
	assert_int_equal(stage_up(stage, SPOKE_STAT_CALLS_TIMEOUT) +
				 stage_up(stage, SPOKE_STAT_CALLS_TIMEOUT_UNSENT),
			 300);
	assert_nothing_closed(stage);
}

ROW(row_57_ended_call_makes_room_for_one_of_its_callback, STAGE_ALL)
{
	const struct spoke_consumer_options options = { .pending_max = 10, .timeout_ns = 20 * MS };
	struct tally tally = { .again = 25 };

	stage_set_consumer(stage, &options);
	(void)raw_accept(stage);
	tally.method = stage->echo;
	stage_mark(stage);
	assert_int_equal(call_often(stage->echo, 20, SPOKE_ELIMIT, 0, &tally), 10);
	while (tally.ends < 35)
		stage_turn(stage);
	assert_counter_up_by(stage, SPOKE_STAT_CALLS, 35);
	assert_counter_up_by(stage, SPOKE_STAT_CALLS_REFUSED, 10);
	assert_undisturbed(stage);
}

ROW(row_57_hundred_thousand_unanswered_calls_are_bounded, STAGE_VIRTUAL)
{
	struct tally tally = { 0 };
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	size_t before;

	stage_set_consumer(stage, NULL);
	(void)raw_accept(stage);
	spokei_vnet_route(stage->world.net, stage->raw_at, SPOKEI_VNET_SILENT);
	stage_add_consumer(stage, NULL, 1, &consumer, &echo);
	before = stage->faulty.bytes;
	stage_mark(stage);
	assert_int_equal(call_often(echo, 100000, SPOKE_ELIMIT, SECOND, &tally), 65536);
	assert_counter_up_by(stage, SPOKE_STAT_CALLS, 65536);
	assert_counter_up_by(stage, SPOKE_STAT_CALLS_REFUSED, 100000 - 65536);
	assert_true(stage->faulty.bytes_peak - before <= (size_t)65536 * 1024);
	assert_second_connection_works(stage);
	while (tally.ends < 65536)
		stage_turn(stage);
	assert_int_equal(tally.errors[0], 65536);
	assert_counter_up_by(stage, SPOKE_STAT_CALLS_TIMEOUT_UNSENT, 65536);
	assert_int_equal(consumer->link->pending_count, 0);
	assert_int_equal(call_often(echo, 1, SPOKE_ELIMIT, SECOND, &tally), 1);
	assert_second_connection_works(stage);
	spoke_consumer_free(consumer);
	while (tally.ends < 65537)
		stage_turn(stage);
}

/* --- row 59 */

ROW(row_59_connections_over_the_limit_in_all_are_closed, STAGE_ALL)
{
	const struct spoke_provider_options options = { .connections_max = 5 };
	struct raw *raws[4];

	stage_set_provider(stage, &options);
	for (size_t i = 0; i < LENGTH(raws); i++) {
		raws[i] = raw_connect(stage);
		assert_raw_lives(raws[i]);
	}
	for (uint64_t i = 1; i <= 3; i++) {
		stage_mark(stage);
		assert_closed_mutely(raw_start(stage));
		assert_counter_up_by(stage, SPOKE_STAT_ACCEPTS_REFUSED_TOTAL, 1);
		assert_counter_up_by(stage, SPOKE_STAT_ACCEPTS_REFUSED_PEER, 0);
		assert_counter_up_by(stage, SPOKE_STAT_ACCEPTED, 0);
		assert_undisturbed(stage);
	}
	for (size_t i = 0; i < LENGTH(raws); i++)
		assert_raw_lives(raws[i]);
	/* A connection that closes makes room for one. */
	raw_close(raws[0]);
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
	raws[0] = raw_connect(stage);
	assert_raw_lives(raws[0]);
	stage_mark(stage);
	assert_closed_mutely(raw_start(stage));
	assert_counter_up_by(stage, SPOKE_STAT_ACCEPTS_REFUSED_TOTAL, 1);
	assert_second_connection_works(stage);
}

/* Connects from the `number`th other address. */
static struct raw *start_from(struct stage *stage, unsigned number)
{
	char digits[32];

	(void)snprintf(digits, sizeof(digits), "127.0.0.%u", number + 2);
	return raw_start_from(stage, digits);
}

ROW(row_59_connections_over_the_limit_of_an_address_are_closed, STAGE_TCP)
{
	const struct spoke_provider_options options = { .connections_per_peer_max = 3 };
	struct raw *raw;

	stage_set_provider(stage, &options);
	for (unsigned number = 0; number < 4; number++) {
		for (unsigned i = 0; i < 3; i++) {
			raw = start_from(stage, number);
			assert_raw_lives(raw);
		}
		stage_mark(stage);
		assert_closed_mutely(start_from(stage, number));
		assert_counter_up_by(stage, SPOKE_STAT_ACCEPTS_REFUSED_PEER, 1);
		assert_counter_up_by(stage, SPOKE_STAT_ACCEPTS_REFUSED_TOTAL, 0);
		assert_counter_up_by(stage, SPOKE_STAT_ACCEPTED, 0);
		assert_undisturbed(stage);
		raw_close(raw);
		stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
		assert_raw_lives(start_from(stage, number));
	}
	assert_int_equal(spoke_provider_connections(stage->provider), 4 * 3 + 1);
}

/* The good consumer has an address of its own: the provider listens at both. */
ROW(row_59_each_address_has_a_limit_of_its_own, STAGE_VIRTUAL)
{
	const struct spoke_provider_options options = { .connections_per_peer_max = 3 };
	struct raw *raws[3];

	stage_set_provider(stage, &options);
	assert_int_equal(spoke_provider_listen(stage->provider, "dubbo://[::1]:20882"), SPOKE_OK);
	(void)snprintf(stage->provider_at, sizeof(stage->provider_at), "[::1]:20882");
	for (size_t i = 0; i < LENGTH(raws); i++) {
		raws[i] = raw_connect(stage);
		assert_raw_lives(raws[i]);
	}
	stage_mark(stage);
	assert_closed_mutely(raw_start(stage));
	assert_counter_up_by(stage, SPOKE_STAT_ACCEPTS_REFUSED_PEER, 1);
	assert_undisturbed(stage);
	(void)snprintf(stage->provider_at, sizeof(stage->provider_at), "127.0.0.1:20880");
	assert_raw_lives(raw_start(stage));
	assert_raw_lives(raw_start(stage));
	assert_closed_mutely(raw_start(stage));
	assert_counter_up_by(stage, SPOKE_STAT_ACCEPTS_REFUSED_PEER, 2);
	assert_second_connection_works(stage);
}

/* Peers of a unix socket have no address. */
ROW(row_59_peers_without_an_address_count_in_all_only, STAGE_UNIX)
{
	const struct spoke_provider_options options = { .connections_max = 7,
							.connections_per_peer_max = 3 };

	stage_set_provider(stage, &options);
	for (unsigned i = 0; i < 6; i++)
		assert_raw_lives(raw_connect(stage));
	stage_mark(stage);
	assert_closed_mutely(raw_start(stage));
	assert_counter_up_by(stage, SPOKE_STAT_ACCEPTS_REFUSED_TOTAL, 1);
	assert_counter_up_by(stage, SPOKE_STAT_ACCEPTS_REFUSED_PEER, 0);
	assert_second_connection_works(stage);
}
