/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of a provider: their order, and their verdicts. */
#include "tests/cluster/filter/diary.h"
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

FIXTURE(diary_set_up, filterrig_tear_down);

TEST(filters_run_in_order_before_and_reversed_after)
{
	struct filterrig_call *made;

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

TEST(filter_without_functions_lets_requests_pass)
{
	diarists[0].filter.after_request = NULL;
	diarists[1].filter.before_request = NULL;
	diarists[2].filter.before_request = NULL;
	diarists[2].filter.after_request = NULL;
	diary_begin();
	assert_int_equal(diary_call(rig.echo)->error, SPOKE_OK);
	assert_string_equal(diary, "a+b-");
}

TEST(filter_sees_error_of_handler)
{
	diary_begin();
	assert_int_equal(diary_call(rig.fail)->error, SPOKE_EREMOTE);
	assert_string_equal(diary, "a+b+c+c-b-a-");
	assert_int_equal(diarists[0].answer.error, SPOKE_EREMOTE);
	assert_int_equal(diarists[0].answer.error_code, 7);
	assert_string_equal(diarists[0].value, "it went wrong");
}

TEST(refusal_skips_handler_and_is_seen_by_earlier_filters)
{
	struct filterrig_call *made;

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
	assert_int_equal(filterrig_stat(SPOKE_STAT_REQUESTS_REFUSED), 1);
	assert_int_equal(filterrig_stat(SPOKE_STAT_REQUESTS_OK), 0);
}

/* Makes a call that the second filter forbids. Returns its end. */
static struct filterrig_call *forbid(int32_t code)
{
	diarists[1].verdict = (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_REFUSE,
		.error = SPOKE_EFORBIDDEN,
		.text = "not you",
		.code = code,
	};
	return diary_call(rig.echo);
}

TEST(caller_is_told_that_it_is_forbidden)
{
	static const int32_t codes[] = { 0, SPOKE_FORBIDDEN_UNPROVEN };
	static const int32_t told[] = { SPOKE_FORBIDDEN_CALLER, SPOKE_FORBIDDEN_UNPROVEN };

	diary_begin();
	for (unsigned i = 0; i < 2; i++) {
		struct filterrig_call *made = forbid(codes[i]);

		assert_int_equal(made->error, SPOKE_EFORBIDDEN);
		assert_int_equal(made->code, told[i]);
		assert_string_equal(made->text, "not you");
		assert_int_equal(diarists[0].answer.error, SPOKE_EFORBIDDEN);
		assert_int_equal(diarists[0].answer.error_code, told[i]);
	}
	assert_int_equal(rig.handled, 0);
	assert_int_equal(filterrig_stat(SPOKE_STAT_REQUESTS_REFUSED), 2);
	diarists[1].verdict.step = SPOKE_FILTER_GO_ON;
	assert_int_equal(diary_call(rig.echo)->error, SPOKE_OK);
}

TEST(forbidden_caller_without_codes_gets_the_text)
{
	struct filterrig_call *made;

	rig.url = "msgpack-rpc://127.0.0.1:20880?timeout=10s";
	diary_begin();
	made = forbid(SPOKE_FORBIDDEN_UNPROVEN);
	assert_int_equal(made->error, SPOKE_EREMOTE);
	assert_string_equal(made->text, "not you");
}

TEST(refusal_without_text_gets_default_text)
{
	struct filterrig_call *made;

	diarists[0].verdict.step = SPOKE_FILTER_REFUSE;
	diary_begin();
	made = diary_call(rig.pool);
	assert_int_equal(made->error, SPOKE_EREFUSED);
	assert_non_null(strstr(made->text, "filter"));
	assert_string_equal(diary, "a+");
}

TEST(filter_can_answer_instead_of_handler)
{
	struct filterrig_call *made;

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
	assert_int_equal(filterrig_stat(SPOKE_STAT_REQUESTS_OK), 1);
}

TEST(invalid_answer_of_filter_becomes_an_error)
{
	diarists[1].verdict = (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_ANSWER,
		.value = { (const unsigned char *)"\x92\x01", 2 },
	};
	diary_begin();
	assert_int_not_equal(diary_call(rig.echo)->error, SPOKE_OK);
	assert_string_equal(diary, "a+b+a-");
	assert_int_equal(diarists[0].answer.error, SPOKE_EREFUSED);
}

TEST(filter_sees_late_answer_when_it_is_sent)
{
	diary_begin();
	(void)filterrig_call(rig.later);
	filterrig_pass(250 * MS);
	assert_string_equal(diary, "a+b+c+");
	filterrig_answer(0);
	assert_string_equal(diary, "a+b+c+c-b-a-");
	assert_int_equal(diarists[0].answer.error, SPOKE_OK);
	assert_string_equal(diarists[0].method, "later");
	assert_memory_equal(diarists[0].peer, "127.0.0.1:", 10);
	assert_int_equal(diarists[0].args, 0);
	assert_int_equal(diarists[0].answer.arg_len, 6);
	assert_in_range(diarists[0].answer.took_ns, 240 * MS, 250 * MS);
	filterrig_pass(10 * MS);
}

TEST(filter_sees_answer_of_pool_handler_on_the_loop)
{
	struct filterrig_call *made;

	diary_begin();
	made = filterrig_call(rig.pool);
	filterrig_pass(100 * MS);
	assert_string_equal(made->text, "hello");
	assert_string_equal(diary, "a+b+c+c-b-a-");
	assert_string_equal(diarists[0].value, "hello");
	assert_string_equal(diarists[0].method, "pool");
	assert_int_equal(diarists[0].args, 1);
}

TEST(abandoned_request_ends_when_handler_answers)
{
	diary_begin();
	(void)filterrig_call(rig.later);
	filterrig_pass(10 * MS);
	spoke_consumer_free(rig.consumer);
	rig.consumer = NULL;
	filterrig_pass(120 * SECOND);
	assert_string_equal(diary, "a+b+c+");
	filterrig_answer(0);
	assert_string_equal(diary, "a+b+c+c-b-a-");
	assert_true(diarists[0].abandoned);
	assert_string_equal(diarists[0].method, "later");
}

TEST(filter_sees_no_names_without_memory)
{
	diary_begin();
	/* From then on only the allocation of the names fails. */
	(void)diary_call(rig.echo);
	(void)diary_call(rig.echo);
	(void)filterrig_call(rig.later);
	spokei_faults_fail(&rig.faulty[SERVER], SPOKEI_FAULTS_MEMORY, 1, -ENOMEM, false);
	filterrig_pass(10 * MS);
	assert_int_equal(rig.faulty[SERVER].failed[SPOKEI_FAULTS_MEMORY], 1);
	assert_int_equal(rig.held_count, 1);
	filterrig_answer(0);
	assert_string_equal(diarists[0].method, "");
	assert_int_equal(diarists[0].answer.arg_len, 6);
	assert_int_equal(diarists[0].afters, 3);
	filterrig_pass(10 * MS);
}
