/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of a provider: who is asked when, and what they may say. */
#include "tests/cluster/filter/diary.h"

#include <errno.h>
#include <string.h>

static void filters_are_asked_in_order_and_in_the_reverse_order(void **state)
{
	struct rig_call *made;

	(void)state;
	diary_begin();
	made = diary_call(rig.echo);
	assert_int_equal(made->error, SPOKE_OK);
	assert_string_equal(made->text, "hello");
	assert_string_equal(diary, "a+b+c+c-b-a-");
	for (unsigned i = 0; i < FILTERS; i++) {
		assert_int_equal(diarists[i].answer.error, SPOKE_OK);
		assert_string_equal(diarists[i].value, "hello");
		assert_string_equal(diarists[i].method, "echo");
		assert_int_equal(diarists[i].answer.arg_len, 6);
		assert_memory_equal(diarists[i].peer, "127.0.0.1:", 10);
	}
}

static void a_filter_without_functions_is_passed(void **state)
{
	(void)state;
	diarists[0].filter.after_request = NULL;
	diarists[1].filter.before_request = NULL;
	diarists[2].filter.before_request = NULL;
	diarists[2].filter.after_request = NULL;
	diary_begin();
	assert_int_equal(diary_call(rig.echo)->error, SPOKE_OK);
	assert_string_equal(diary, "a+b-");
}

static void an_error_of_the_handler_is_seen(void **state)
{
	(void)state;
	diary_begin();
	assert_int_equal(diary_call(rig.fail)->error, SPOKE_EREMOTE);
	assert_string_equal(diary, "a+b+c+c-b-a-");
	assert_int_equal(diarists[0].answer.error, SPOKE_EREMOTE);
	assert_int_equal(diarists[0].answer.error_code, 7);
	assert_string_equal(diarists[0].value, "it went wrong");
}

static void a_refusal_runs_no_handler_and_is_seen_by_those_before(void **state)
{
	struct rig_call *made;

	(void)state;
	diarists[1].verdict = (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_REFUSE,
		.error = SPOKE_ELIMIT,
		.text = "not today",
	};
	diary_begin();
	made = diary_call(rig.echo);
	assert_int_equal(made->error, SPOKE_EREFUSED);
	assert_string_equal(made->text, "not today");
	assert_int_equal(rig.handled, 0);
	assert_string_equal(diary, "a+b+a-");
	assert_int_equal(diarists[0].answer.error, SPOKE_EREFUSED);
	assert_string_equal(diarists[0].value, "not today");
	assert_int_equal(rig_stat(SPOKE_STAT_REQUESTS_REFUSED), 1);
	assert_int_equal(rig_stat(SPOKE_STAT_REQUESTS_OK), 0);
}

static void a_refusal_without_a_text_gets_one(void **state)
{
	struct rig_call *made;

	(void)state;
	diarists[0].verdict.step = SPOKE_FILTER_REFUSE;
	diary_begin();
	made = diary_call(rig.pool);
	assert_int_equal(made->error, SPOKE_EREFUSED);
	assert_non_null(strstr(made->text, "filter"));
	assert_string_equal(diary, "a+");
}

static void a_filter_answers_in_place_of_the_handler(void **state)
{
	struct rig_call *made;

	(void)state;
	diarists[2].verdict = (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_ANSWER,
		.value = { (const unsigned char *)"\xa3yes", 4 },
	};
	diary_begin();
	made = diary_call(rig.pool);
	assert_int_equal(made->error, SPOKE_OK);
	assert_string_equal(made->text, "yes");
	assert_int_equal(rig.handled, 0);
	assert_string_equal(diary, "a+b+c+b-a-");
	assert_string_equal(diarists[0].value, "yes");
	assert_int_equal(rig_stat(SPOKE_STAT_REQUESTS_OK), 1);
}

static void an_answer_that_is_no_value_becomes_an_error(void **state)
{
	(void)state;
	diarists[1].verdict = (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_ANSWER,
		.value = { (const unsigned char *)"\x92\x01", 2 },
	};
	diary_begin();
	assert_int_not_equal(diary_call(rig.echo)->error, SPOKE_OK);
	assert_string_equal(diary, "a+b+a-");
	assert_int_equal(diarists[0].answer.error, SPOKE_EREFUSED);
}

static void an_answer_of_later_is_seen_when_it_comes(void **state)
{
	(void)state;
	diary_begin();
	(void)rig_call(rig.later);
	rig_pass(250 * MS);
	assert_string_equal(diary, "a+b+c+");
	rig_answer(0);
	assert_string_equal(diary, "a+b+c+c-b-a-");
	assert_int_equal(diarists[0].answer.error, SPOKE_OK);
	assert_string_equal(diarists[0].method, "later");
	assert_memory_equal(diarists[0].peer, "127.0.0.1:", 10);
	assert_int_equal(diarists[0].args, 0);
	assert_int_equal(diarists[0].answer.arg_len, 6);
	assert_in_range(diarists[0].answer.took_ns, 240 * MS, 250 * MS);
	rig_pass(10 * MS);
}

static void a_pool_handlers_answer_is_seen_on_the_loop(void **state)
{
	struct rig_call *made;

	(void)state;
	diary_begin();
	made = rig_call(rig.pool);
	rig_pass(100 * MS);
	assert_string_equal(made->text, "hello");
	assert_string_equal(diary, "a+b+c+c-b-a-");
	assert_string_equal(diarists[0].value, "hello");
	assert_string_equal(diarists[0].method, "pool");
	assert_int_equal(diarists[0].args, 1);
}

static void an_abandoned_request_is_over_when_its_handler_answers(void **state)
{
	(void)state;
	diary_begin();
	(void)rig_call(rig.later);
	rig_pass(10 * MS);
	spoke_consumer_free(rig.consumer);
	rig.consumer = NULL;
	rig_pass(120 * SECOND);
	assert_string_equal(diary, "a+b+c+");
	rig_answer(0);
	assert_string_equal(diary, "a+b+c+c-b-a-");
	assert_true(diarists[0].abandoned);
	assert_string_equal(diarists[0].method, "later");
}

static void without_memory_for_names_filters_see_none(void **state)
{
	(void)state;
	diary_begin();
	/* From then on there is room for all but the names. */
	(void)diary_call(rig.echo);
	(void)diary_call(rig.echo);
	(void)rig_call(rig.later);
	spokei_faults_fail(&rig.faulty[SERVER], SPOKEI_FAULTS_MEMORY, 1, -ENOMEM, false);
	rig_pass(10 * MS);
	assert_int_equal(rig.faulty[SERVER].failed[SPOKEI_FAULTS_MEMORY], 1);
	assert_int_equal(rig.held_count, 1);
	rig_answer(0);
	assert_string_equal(diarists[0].method, "");
	assert_int_equal(diarists[0].answer.arg_len, 6);
	assert_int_equal(diarists[0].afters, 3);
	rig_pass(10 * MS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, diary_set_up, rig_tear_down)
	static const struct CMUnitTest tests[] = {
		TEST(filters_are_asked_in_order_and_in_the_reverse_order),
		TEST(a_filter_without_functions_is_passed),
		TEST(an_error_of_the_handler_is_seen),
		TEST(a_refusal_runs_no_handler_and_is_seen_by_those_before),
		TEST(a_refusal_without_a_text_gets_one),
		TEST(a_filter_answers_in_place_of_the_handler),
		TEST(an_answer_that_is_no_value_becomes_an_error),
		TEST(an_answer_of_later_is_seen_when_it_comes),
		TEST(a_pool_handlers_answer_is_seen_on_the_loop),
		TEST(an_abandoned_request_is_over_when_its_handler_answers),
		TEST(without_memory_for_names_filters_see_none),
	};

	return cmocka_run_group_tests_name("filters", tests, NULL, NULL);
}
