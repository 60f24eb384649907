/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of a provider that ends, also when a filter frees it; and invalid filter lists. */
#include "tests/cluster/filter/diary.h"

#include <errno.h>

static void free_ends_unanswered_requests_for_filters(void **state)
{
	(void)state;
	diary_begin();
	(void)rig_call(rig.later);
	(void)rig_call(rig.later);
	rig_pass(10 * MS);
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	rig_pass(10 * MS);
	assert_string_equal(diary, "a+b+c+a+b+c+c-b-a-c-b-a-");
	assert_int_equal(diarists[0].answer.error, SPOKE_ECLOSED);
	assert_true(diarists[0].abandoned);
	rig_answer_all();
	assert_int_equal(diarists[0].afters, 2);
}

static void answer_all_but_once(void)
{
	diarists[0].in_after = NULL;
	diarists[2].in_after = NULL;
	rig_answer_all();
}

static void filter_can_answer_request_that_free_ends(void **state)
{
	(void)state;
	diary_begin();
	(void)rig_call(rig.later);
	(void)rig_call(rig.later);
	rig_pass(10 * MS);
	diarists[2].in_after = answer_all_but_once;
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	rig_pass(10 * MS);
	for (unsigned i = 0; i < FILTERS; i++)
		assert_int_equal(diarists[i].afters, 2);
}

static void engine_end_ends_requests_for_filters(void **state)
{
	(void)state;
	diary_begin();
	(void)rig_call(rig.later);
	(void)rig_call(rig.pool);
	rig_pass(10 * MS);
	diarists[0].in_after = answer_all_but_once;
	spoke_engine_free(rig.engines[SERVER]);
	rig.engines[SERVER] = NULL;
	rig.provider = NULL;
	assert_int_equal(diarists[0].befores, 2);
	assert_int_equal(diarists[0].afters, 2);
	rig_pass(SECOND);
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

static void before_filter_can_free_provider(void **state)
{
	struct rig_call *made;

	(void)state;
	diary_begin();
	diarists[1].in_before = free_provider;
	made = rig_call(rig.echo);
	rig_pass(100 * MS);
	assert_int_equal(made->error, SPOKE_ELOST);
	assert_int_equal(rig.handled, 0);
	assert_string_equal(diary, "a+b+c+c-b-a-");
	assert_int_equal(diarists[0].answer.error, SPOKE_EREFUSED);
}

static void after_filter_can_free_provider(void **state)
{
	(void)state;
	diary_begin();
	diarists[1].in_after = free_provider;
	(void)rig_call(rig.echo);
	(void)rig_call(rig.pool);
	rig_pass(100 * MS);
	assert_int_equal(rig.ended, 2);
	assert_int_equal(diarists[0].afters, diarists[0].befores);
}

static void after_filter_of_pool_handler_can_free_provider(void **state)
{
	(void)state;
	diary_begin();
	diarists[1].in_after = free_provider;
	(void)rig_call(rig.pool);
	rig_pass(100 * MS);
	assert_int_equal(rig.handled, 1);
	assert_string_equal(diary, "a+b+c+c-b-a-");
}

static void before_filter_can_free_engine(void **state)
{
	(void)state;
	diary_begin();
	rig.by_turns = true;
	diarists[1].in_before = free_engine;
	(void)rig_call(rig.echo);
	(void)rig_call(rig.pool);
	rig_pass(100 * MS);
	assert_null(rig.engines[SERVER]);
	assert_int_equal(rig.ended, 2);
	assert_int_equal(diarists[0].afters, diarists[0].befores);
}

static void after_filter_can_free_engine(void **state)
{
	(void)state;
	diary_begin();
	rig.by_turns = true;
	diarists[0].in_after = free_engine;
	(void)rig_call(rig.pool);
	(void)rig_call(rig.echo);
	rig_pass(100 * MS);
	assert_null(rig.engines[SERVER]);
	assert_int_equal(rig.ended, 2);
	assert_int_equal(diarists[0].afters, diarists[0].befores);
}

/* --- making, and memory */

static void invalid_list_of_filters_is_rejected(void **state)
{
	const struct spoke_filter *const holes[2] = { &diarists[0].filter, NULL };
	struct spoke_provider_options options = { .filters = holes, .filter_count = 2 };

	(void)state;
	assert_int_equal(rig_begin(&options), SPOKE_EINVAL);
	options.filters = NULL;
	assert_int_equal(rig_begin(&options), SPOKE_EINVAL);
	options.filters = holes;
	options.filter_count = 65;
	assert_int_equal(rig_begin(&options), SPOKE_ELIMIT);
}

/* Whichever allocation fails, every passed `before` is followed by its `after`. */
static bool play_with_failing(uint64_t nth)
{
	bool failed;

	assert_int_equal(diary_set_up(NULL), 0);
	spokei_faults_fail(&rig.faulty[SERVER], SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
	if (rig_begin(&with_filters) == 0) {
		(void)rig_try(rig.echo);
		(void)rig_try(rig.later);
		(void)rig_try(rig.pool);
		(void)rig_try(rig.fail);
		rig_pass(SECOND);
		rig_answer_all();
		rig_pass(30 * SECOND);
	}
	failed = rig.faulty[SERVER].failed[SPOKEI_FAULTS_MEMORY] > 0;
	assert_int_equal(rig_tear_down(NULL), 0);
	assert_int_equal(diarists[0].befores, diarists[0].afters);
	assert_int_equal(diarists[2].befores, diarists[2].afters);
	return failed;
}

static void before_and_after_match_when_allocations_fail(void **state)
{
	uint64_t nth = 1;

	(void)state;
	while (play_with_failing(nth))
		nth++;
	assert_in_range(nth, 10, 1000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, diary_set_up, rig_tear_down)
	static const struct CMUnitTest tests[] = {
		TEST(free_ends_unanswered_requests_for_filters),
		TEST(filter_can_answer_request_that_free_ends),
		TEST(engine_end_ends_requests_for_filters),
		TEST(before_filter_can_free_provider),
		TEST(after_filter_can_free_provider),
		TEST(after_filter_of_pool_handler_can_free_provider),
		TEST(before_filter_can_free_engine),
		TEST(after_filter_can_free_engine),
		TEST(invalid_list_of_filters_is_rejected),
		cmocka_unit_test(before_and_after_match_when_allocations_fail),
	};

	return cmocka_run_group_tests_name("filters, free", tests, NULL, NULL);
}
