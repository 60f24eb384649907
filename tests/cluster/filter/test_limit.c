/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on a method's concurrency and rate hold exactly, even if callers cancel and retry. */
#include "tests/cluster/filter/filterrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

static unsigned count_ends(int error)
{
	unsigned count = 0;

	for (unsigned i = 0; i < rig.begun; i++)
		count += rig.calls[i].ends > 0 && rig.calls[i].error == error;
	return count;
}

static void call_many(struct spoke_method *method, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		(void)filterrig_call(method);
}

FIXTURE(filterrig_set_up, filterrig_tear_down);

TEST(requests_over_executes_are_refused)
{
	struct filterrig_call *refused;

	rig.executes = 4;
	assert_int_equal(filterrig_begin(NULL), 0);
	call_many(rig.later, 100);
	filterrig_pass(10 * MS);
	assert_int_equal(rig.held_count, 4);
	assert_int_equal(count_ends(SPOKE_EREFUSED), 96);
	refused = &rig.calls[rig.begun - 1];
	assert_string_equal(refused->text, "later: executes=4 reached");
	assert_int_equal(filterrig_stat(SPOKE_STAT_REQUESTS_REFUSED), 96);
	filterrig_answer(0);
	filterrig_answer(1);
	call_many(rig.later, 10);
	filterrig_pass(10 * MS);
	assert_int_equal(rig.held_count, 6);
	assert_int_equal(count_ends(SPOKE_EREFUSED), 104);
}

TEST(each_method_has_its_own_limit)
{
	rig.executes = 1;
	assert_int_equal(filterrig_begin(NULL), 0);
	call_many(rig.later, 2);
	call_many(rig.pool, 3);
	call_many(rig.echo, 5);
	call_many(rig.fail, 5);
	filterrig_pass(100 * MS);
	assert_int_equal(rig.held_count, 1);
	assert_int_equal(count_ends(SPOKE_EREMOTE), 5);
	/* Handlers never overlap if they reply at once; the thread pool replies later. */
	assert_int_equal(count_ends(SPOKE_OK), 5 + 1);
	call_many(rig.pool, 1);
	filterrig_pass(100 * MS);
	assert_int_equal(count_ends(SPOKE_OK), 5 + 2);
}

TEST(abandoned_request_counts_until_it_is_answered)
{
	struct spoke_consumer_options again = { .url = "dubbo://127.0.0.1:20880/S?version=1.0" };

	rig.executes = 4;
	assert_int_equal(filterrig_begin(NULL), 0);
	call_many(rig.later, 4);
	filterrig_pass(10 * MS);
	spoke_consumer_free(rig.consumer);
	filterrig_pass(120 * SECOND);
	assert_int_equal(filterrig_stat(SPOKE_STAT_REQUESTS_ABANDONED), 4);
	assert_int_equal(spoke_consumer_new(rig.engines[CLIENT], &again, &rig.consumer), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "later", NULL, &rig.later), 0);
	call_many(rig.later, 3);
	filterrig_pass(10 * MS);
	assert_int_equal(count_ends(SPOKE_EREFUSED), 3);
	filterrig_answer(0);
	call_many(rig.later, 3);
	filterrig_pass(10 * MS);
	assert_int_equal(count_ends(SPOKE_EREFUSED), 5);
	assert_int_equal(rig.held_count, 5);
}

/* Callers cancel and call again without a pause; the handler never has more than the limit. */
TEST(cancelled_calls_do_not_raise_the_limit)
{
	uint64_t dice = 12345;
	unsigned open = 0;

	rig.executes = 8;
	assert_int_equal(filterrig_begin(NULL), 0);
	for (unsigned round = 0; round < 60; round++) {
		unsigned first = rig.begun;
		unsigned held = rig.held_count;

		call_many(rig.later, 50);
		filterrig_pass(MS);
		open += rig.held_count - held;
		assert_in_range(open, 0, 8);
		for (unsigned i = first; i < rig.begun; i++)
			(void)spoke_call_cancel(rig.consumer, rig.calls[i].name);
		filterrig_pass(MS);
		for (unsigned i = 0; i < rig.held_count; i++) {
			dice = dice * UINT64_C(6364136223846793005) + 1;
			if (rig.held[i] == NULL || (dice >> 60) > 5)
				continue;
			filterrig_answer(i);
			open--;
		}
	}
	assert_int_equal(rig.handled + filterrig_stat(SPOKE_STAT_REQUESTS_REFUSED), rig.begun);
	assert_in_range(rig.handled, 100, 1000);
}

TEST(burst_gets_one_second_of_tokens_then_the_rate)
{
	rig.per_second = 100;
	assert_int_equal(filterrig_begin(NULL), 0);
	call_many(rig.echo, 300);
	filterrig_pass(5 * MS);
	assert_int_equal(rig.handled, 100);
	assert_int_equal(count_ends(SPOKE_EREFUSED), 200);
	assert_string_equal(rig.calls[rig.begun - 1].text, "echo: executes.tps=100 reached");
	for (unsigned i = 0; i < 200; i++) {
		call_many(rig.echo, 10);
		filterrig_pass(5 * MS);
	}
	/* After a second and a few ms each bucket has a hundred more tokens. */
	assert_in_range(rig.handled, 200, 201);
	filterrig_pass(10 * SECOND);
	call_many(rig.echo, 150);
	filterrig_pass(5 * MS);
	assert_in_range(rig.handled, 300, 301);
}

TEST(refusal_by_executes_uses_no_token)
{
	rig.executes = 1;
	rig.per_second = 2;
	assert_int_equal(filterrig_begin(NULL), 0);
	call_many(rig.later, 50);
	filterrig_pass(MS);
	filterrig_answer(0);
	call_many(rig.later, 50);
	filterrig_pass(MS);
	assert_int_equal(rig.held_count, 2);
	assert_string_equal(rig.calls[rig.begun - 1].text, "later: executes=1 reached");
	filterrig_answer(1);
	call_many(rig.later, 1);
	filterrig_pass(MS);
	assert_string_equal(rig.calls[rig.begun - 1].text, "later: executes.tps=2 reached");
}

TEST(limit_is_not_used_after_provider_is_freed)
{
	rig.executes = 2;
	assert_int_equal(filterrig_begin(NULL), 0);
	call_many(rig.later, 2);
	call_many(rig.pool, 2);
	filterrig_pass(MS);
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	filterrig_pass(10 * MS);
	filterrig_answer_all();
	filterrig_pass(10 * MS);
}

/* Whichever allocation fails, no quota is in use once all requests are answered. */
static bool play_with_failing(uint64_t nth)
{
	bool failed;

	assert_int_equal(filterrig_set_up(NULL), 0);
	rig.executes = 1;
	spokei_faults_fail(&rig.faulty[SERVER], SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
	if (filterrig_begin(NULL) == 0) {
		(void)filterrig_try(rig.later);
		(void)filterrig_try(rig.pool);
		filterrig_pass(SECOND);
		filterrig_answer_all();
		filterrig_pass(40 * SECOND);
		spokei_faults_heal(&rig.faulty[SERVER]);
		if (filterrig_try(rig.pool)) {
			filterrig_pass(SECOND);
			assert_int_equal(rig.calls[rig.begun - 1].error, SPOKE_OK);
		}
		if (filterrig_try(rig.later)) {
			filterrig_pass(SECOND);
			assert_int_equal(rig.held_count, 1);
		}
	}
	failed = rig.faulty[SERVER].failed[SPOKEI_FAULTS_MEMORY] > 0;
	assert_int_equal(filterrig_tear_down(NULL), 0);
	return failed;
}

TEST(limit_is_given_back_after_lack_of_memory, .bare = true)
{
	uint64_t nth = 1;

	while (play_with_failing(nth))
		nth++;
	assert_in_range(nth, 10, 1000);
}
