/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of a provider that ends, also when a filter frees it; and invalid filter lists. */
#include "tests/cluster/filter/diary.h"
#include "tests/support/test.h"

#include <errno.h>

FIXTURE(diary_set_up, filterrig_tear_down);

TEST(free_ends_unanswered_requests_for_filters)
{
	diary_begin();
	(void)filterrig_call(rig.later);
	(void)filterrig_call(rig.later);
	filterrig_pass(10 * MS);
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	filterrig_pass(10 * MS);
	assert_string_equal(diary, "a+b+c+a+b+c+c-b-a-c-b-a-");
	assert_int_equal(diarists[0].answer.error, SPOKE_ECLOSED);
	assert_true(diarists[0].abandoned);
	filterrig_answer_all();
	assert_int_equal(diarists[0].afters, 2);
}

static void answer_all_but_once(void)
{
	diarists[0].in_after = NULL;
	diarists[2].in_after = NULL;
	filterrig_answer_all();
}

TEST(filter_can_answer_request_that_free_ends)
{
	diary_begin();
	(void)filterrig_call(rig.later);
	(void)filterrig_call(rig.later);
	filterrig_pass(10 * MS);
	diarists[2].in_after = answer_all_but_once;
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	filterrig_pass(10 * MS);
	for (unsigned i = 0; i < FILTERS; i++)
		assert_int_equal(diarists[i].afters, 2);
}

TEST(engine_end_ends_requests_for_filters)
{
	diary_begin();
	(void)filterrig_call(rig.later);
	(void)filterrig_call(rig.pool);
	filterrig_pass(10 * MS);
	diarists[0].in_after = answer_all_but_once;
	spoke_engine_free(rig.engines[SERVER]);
	rig.engines[SERVER] = NULL;
	rig.provider = NULL;
	assert_int_equal(diarists[0].befores, 2);
	assert_int_equal(diarists[0].afters, 2);
	filterrig_pass(SECOND);
}

/* --- freeing inside */

static void free_provider(void)
{
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
}

static void free_engine(void)
{
	spoke_engine_free(rig.engines[SERVER]);
	rig.engines[SERVER] = NULL;
	rig.provider = NULL;
}

TEST(before_filter_can_free_provider)
{
	struct filterrig_call *made;

	diary_begin();
	diarists[1].in_before = free_provider;
	made = filterrig_call(rig.echo);
	filterrig_pass(100 * MS);
	assert_int_equal(made->error, SPOKE_ELOST);
	assert_int_equal(rig.handled, 0);
	assert_string_equal(diary, "a+b+c+c-b-a-");
	assert_int_equal(diarists[0].answer.error, SPOKE_EREFUSED);
}

TEST(after_filter_can_free_provider)
{
	diary_begin();
	diarists[1].in_after = free_provider;
	(void)filterrig_call(rig.echo);
	(void)filterrig_call(rig.pool);
	filterrig_pass(100 * MS);
	assert_int_equal(rig.ended, 2);
	assert_int_equal(diarists[0].afters, diarists[0].befores);
}

TEST(after_filter_of_pool_handler_can_free_provider)
{
	diary_begin();
	diarists[1].in_after = free_provider;
	(void)filterrig_call(rig.pool);
	filterrig_pass(100 * MS);
	assert_int_equal(rig.handled, 1);
	assert_string_equal(diary, "a+b+c+c-b-a-");
}

TEST(before_filter_can_free_engine)
{
	diary_begin();
	rig.by_turns = true;
	diarists[1].in_before = free_engine;
	(void)filterrig_call(rig.echo);
	(void)filterrig_call(rig.pool);
	filterrig_pass(100 * MS);
	assert_null(rig.engines[SERVER]);
	assert_int_equal(rig.ended, 2);
	assert_int_equal(diarists[0].afters, diarists[0].befores);
}

TEST(after_filter_can_free_engine)
{
	diary_begin();
	rig.by_turns = true;
	diarists[0].in_after = free_engine;
	(void)filterrig_call(rig.pool);
	(void)filterrig_call(rig.echo);
	filterrig_pass(100 * MS);
	assert_null(rig.engines[SERVER]);
	assert_int_equal(rig.ended, 2);
	assert_int_equal(diarists[0].afters, diarists[0].befores);
}

/* --- making, and memory */

TEST(invalid_list_of_filters_is_rejected)
{
	const struct spoke_filter *const holes[2] = { &diarists[0].filter, NULL };
	struct spoke_provider_options options = { .filters = holes, .filter_count = 2 };

	assert_int_equal(filterrig_begin(&options), SPOKE_EINVAL);
	options.filters = NULL;
	assert_int_equal(filterrig_begin(&options), SPOKE_EINVAL);
	options.filters = holes;
	options.filter_count = 65;
	assert_int_equal(filterrig_begin(&options), SPOKE_ELIMIT);
}

/* Whichever allocation fails, every passed `before` is followed by its `after`. */
static bool play_with_failing(uint64_t nth)
{
	bool failed;

	assert_int_equal(diary_set_up(NULL), 0);
	spokei_faults_fail(&rig.faulty[SERVER], SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
	if (filterrig_begin(&with_filters) == 0) {
		(void)filterrig_try(rig.echo);
		(void)filterrig_try(rig.later);
		(void)filterrig_try(rig.pool);
		(void)filterrig_try(rig.fail);
		filterrig_pass(SECOND);
		filterrig_answer_all();
		filterrig_pass(30 * SECOND);
	}
	failed = rig.faulty[SERVER].failed[SPOKEI_FAULTS_MEMORY] > 0;
	assert_int_equal(filterrig_tear_down(NULL), 0);
	assert_int_equal(diarists[0].befores, diarists[0].afters);
	assert_int_equal(diarists[2].befores, diarists[2].afters);
	return failed;
}

TEST(before_and_after_match_when_allocations_fail, .bare = true)
{
	uint64_t nth = 1;

	while (play_with_failing(nth))
		nth++;
	assert_in_range(nth, 10, 1000);
}
