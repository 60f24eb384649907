/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists during failed allocations, consumers freed by each of their callbacks, and lists that
 * change all the time during calls.
 */
#include "tests/cluster/endpoints/dirrig.h"
#include "tests/support/test.h"

#include <errno.h>

#define POINTS_MAX 400

static const struct spoke_consumer_options presets;

/* --- failed allocations */

static int torture_list(unsigned step)
{
	static const char *const first[] = { A, B "?weight=7", NULL };
	static const char *const second[] = { B, C, D, NULL };

	return dirrig_list(step % 2 ? first : second);
}

/* Sets lists while one allocation fails, or all from that one on. The list is applied, or the
 * caller gets an error; the next list is applied. */
static bool list_with_fault(unsigned point, bool for_ever)
{
	bool failed;
	int error;

	spokei_faults_fail(&dirrig.faulty, SPOKEI_FAULTS_MEMORY, point, -ENOMEM, for_ever);
	for (unsigned step = 0; step < 2; step++) {
		error = torture_list(step);
		assert_true(error == SPOKE_OK || error == SPOKE_ENOMEM);
		(void)spoke_consumer_endpoints(dirrig.consumer, NULL, 0);
		dirrig_pass(5 * MS);
	}
	failed = dirrig.faulty.failed[SPOKEI_FAULTS_MEMORY] > 0;
	dirrig.faulty.failed[SPOKEI_FAULTS_MEMORY] = 0;
	spokei_faults_heal(&dirrig.faulty);
	LIST(A, D);
	assert_int_equal(spokei_directory_listed(dirrig.consumer->directory), 2);
	dirrig_pass(SECOND);
	for (int i = 0; i < 4; i++)
		assert_int_equal(dirrig_call(), SPOKE_OK);
	assert_int_equal(dirrig_served(0), 2);
	assert_int_equal(dirrig_served(3), 2);
	LIST_NOBODY();
	dirrig_pass(SECOND);
	assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0), 0);
	return failed;
}

static void assert_bears_faults(bool for_ever)
{
	unsigned point = 1;

	for (unsigned i = 0; i < PROVIDERS; i++)
		dirrig_start(i);
	dirrig_consume("", &presets);
	while (list_with_fault(point, for_ever))
		assert_true(++point < POINTS_MAX);
	assert_true(point > 5);
}

FIXTURE(dirrig_set_up, dirrig_tear_down);

TEST(list_survives_each_single_fault)
{
	assert_bears_faults(false);
}

TEST(list_survives_lasting_enomem)
{
	assert_bears_faults(true);
}

/* Makes all connections, or none until a call chooses the endpoint. */
TEST(failed_connections_are_made_later)
{
	const struct spoke_consumer_options options = { .connections = 3 };
	unsigned asleep = 0;

	dirrig_start(0);
	dirrig_consume("", &options);
	for (unsigned point = 1; point < 40; point++) {
		spokei_faults_fail(&dirrig.faulty, SPOKEI_FAULTS_MEMORY, point, -ENOMEM, false);
		(void)!dirrig_list((const char *const[]){ A, NULL });
		spokei_faults_heal(&dirrig.faulty);
		asleep += dirrig_info(0).state == SPOKE_ENDPOINT_IDLE;
		LIST(A);
		dirrig_pass(10 * MS);
		assert_int_equal(dirrig_call(), SPOKE_OK);
		dirrig_pass(SECOND);
		assert_int_equal(dirrig_info(0).connections, 3);
		LIST_NOBODY();
		dirrig_pass(SECOND);
		assert_int_equal(dirrig.consumer->link->conn_count, 0);
	}
	assert_true(asleep > 2);
}

/* Lists an endpoint whose connection cannot be allocated. */
static void list_asleep(void)
{
	unsigned point = 1;

	dirrig_start(0);
	dirrig_consume("", &presets);
	for (;; point++) {
		assert_true(point < POINTS_MAX);
		spokei_faults_fail(&dirrig.faulty, SPOKEI_FAULTS_MEMORY, point, -ENOMEM, true);
		(void)!dirrig_list((const char *const[]){ A, NULL });
		if (dirrig_info(0).state == SPOKE_ENDPOINT_IDLE)
			break;
		spokei_faults_heal(&dirrig.faulty);
		LIST_NOBODY();
	}
	assert_int_equal(dirrig_info(0).state, SPOKE_ENDPOINT_IDLE);
	dirrig_pass(1100 * MS); /* still no memory */
	assert_int_equal(dirrig_info(0).state, SPOKE_ENDPOINT_IDLE);
	spokei_faults_heal(&dirrig.faulty);
}

/* A call that chooses the endpoint connects it. */
TEST(endpoint_with_failed_connect_stays_listed)
{
	list_asleep();
	assert_int_equal(dirrig_call(), SPOKE_OK);
}

/* A timer connects it. */
TEST(endpoint_with_failed_connect_is_retried_by_timer)
{
	list_asleep();
	dirrig_pass(1100 * MS);
	assert_int_equal(dirrig_info(0).state, SPOKE_ENDPOINT_READY);
}

/* The next list connects it, even if that list is unchanged. */
TEST(endpoint_with_failed_connect_is_retried_with_next_list)
{
	list_asleep();
	LIST(A);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_info(0).state, SPOKE_ENDPOINT_READY);
}

/* --- ends in callbacks */

static enum spoke_link_change deadly;

static void die(const struct spoke_link_event *event)
{
	if (event->change != deadly || dirrig.consumer == NULL)
		return;
	dirrig.then = NULL;
	spoke_consumer_free(dirrig.consumer);
	dirrig.consumer = NULL;
}

static void assert_bears_end(enum spoke_link_change change)
{
	void *nothing = NULL;

	assert_int_equal(dirrig_set_up(&nothing), 0);
	deadly = change;
	dirrig.then = die;
	for (unsigned i = 0; i < PROVIDERS; i++)
		dirrig_start(i);
	dirrig_consume("", &(struct spoke_consumer_options){ .heartbeat_ns = SECOND });
	dirrig.sides[0].mute = true;
	dirrig.sides[1].mute = true;
	if (dirrig.consumer)
		LIST(A, B, C);
	dirrig_pass(10 * MS);
	for (int i = 0; i < 6 && dirrig.consumer; i++)
		assert_int_equal(dirrig_try(60 * SECOND), SPOKE_OK);
	dirrig_pass(10 * MS);
	if (dirrig.consumer)
		LIST(B, D);
	dirrig_pass(10 * MS);
	dirrig_answer(0);
	dirrig_pass(10 * MS);
	dirrig_stop(1);
	dirrig_pass(10 * SECOND);
	assert_null(dirrig.consumer);
	assert_int_equal(dirrig_tear_down(&nothing), 0);
}

TEST(consumer_can_be_freed_in_any_callback, .bare = true)
{
	static const enum spoke_link_change changes[] = { SPOKE_LINK_CONNECTED, SPOKE_LINK_CLOSED,
							  SPOKE_LINK_RECONNECTING };

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		assert_bears_end(changes[i]);
}

static void free_consumer(void *arg, const struct spoke_result *result)
{
	struct dirrig_call *call = arg;

	call->ends++;
	call->error = result->error;
	spoke_consumer_free(dirrig.consumer);
}

/* Frees the consumer in the last call of a removed endpoint. */
TEST(consumer_can_be_freed_in_last_call_of_removed_one)
{
	const struct spoke_call_options options = { .timeout_ns = 60 * SECOND };

	dirrig_start(0);
	dirrig_consume("", &presets);
	dirrig.sides[0].mute = true;
	LIST(A);
	dirrig_pass(10 * MS);
	assert_int_equal(spoke_call(dirrig.echo, (struct spoke_span){ NULL, 0 }, &options,
				    free_consumer, &dirrig.calls[dirrig.begun++], NULL),
			 SPOKE_OK);
	dirrig_pass(10 * MS);
	LIST_NOBODY();
	dirrig_pass(10 * MS);
	dirrig_answer(0);
	dirrig_pass(SECOND);
	assert_int_equal(dirrig.calls[0].error, SPOKE_OK);
}

TEST(consumer_can_be_freed_while_removed_ones_drain)
{
	dirrig_start(0);
	dirrig_consume("", &presets);
	dirrig.sides[0].mute = true;
	LIST(A);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_try(60 * SECOND), SPOKE_OK);
	dirrig_pass(10 * MS);
	LIST_NOBODY();
	spoke_consumer_free(dirrig.consumer);
	dirrig_pass(SECOND);
	assert_int_equal(dirrig.calls[0].error, SPOKE_ECLOSED);
}

/* --- lists that change all the time */

/* With failover and one provider that stays, no call fails. */
TEST(calls_succeed_while_endpoints_change)
{
	static const struct spoke_consumer_options options = { .policy = &spoke_policy_failover };
	static const char *const all[] = { A, B, C, D };
	uint64_t dice = 3;

	for (unsigned i = 0; i < PROVIDERS; i++)
		dirrig_start(i);
	dirrig_consume("", &options);
	for (int i = 0; i < 400; i++) {
		const char *urls[PROVIDERS + 1] = { all[i / 100] };
		size_t count = 1;

		for (unsigned k = 0; k < PROVIDERS; k++) {
			dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			if (all[k] != urls[0] && dice >> 63)
				urls[count++] = all[k];
		}
		assert_int_equal(dirrig_list(urls), SPOKE_OK);
		if (i % 100 == 0)
			dirrig_pass(10 * MS);
		dirrig_pass(dice % 3 * MS / 2);
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(dirrig_try(SECOND), SPOKE_OK);
		if (dirrig.begun < CALLS - 3)
			continue;
		dirrig_pass(SECOND);
		for (unsigned k = 0; k < dirrig.begun; k++) {
			assert_int_equal(dirrig.calls[k].ends, 1);
			assert_int_equal(dirrig.calls[k].error, SPOKE_OK);
			dirrig.calls[k] = (struct dirrig_call){ 0 };
		}
		dirrig.begun = 0;
	}
	dirrig_pass(SECOND);
	assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0),
			 spokei_directory_listed(dirrig.consumer->directory));
}
