/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of a provider: who is asked when, what they may say, and what they may free. */
#include "tests/cluster/filterrig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	FILTERS = 3,
	DIARY = 4096,
};

/* A filter that keeps a diary of what it was asked: "a+" before, "a-" after. */
static struct diarist {
	char letter;
	struct spoke_filter filter;
	struct spoke_filter_verdict verdict; /* what it says */
	void (*in_before)(void);
	void (*in_after)(void);
	struct spoke_filter_answer answer; /* the last one it was told of */
	char value[RIG_TEXT];              /* ... its value or text */
	char method[RIG_TEXT];
	char peer[RIG_TEXT];
	size_t args; /* that were there */
	bool abandoned;
	unsigned befores;
	unsigned afters;
} diarists[FILTERS];

static const struct spoke_filter *filters[FILTERS];
static char diary[DIARY];

static void note(char letter, char what)
{
	size_t len = strlen(diary);

	if (len + 3 < DIARY)
		(void)snprintf(diary + len, DIARY - len, "%c%c", letter, what);
}

static struct spoke_filter_verdict before_request(void *arg, const struct spoke_request *request)
{
	struct diarist *diarist = arg;

	assert_true(spoke_request_service(request).len == 1);
	note(diarist->letter, '+');
	diarist->befores++;
	if (diarist->in_before)
		diarist->in_before();
	return diarist->verdict;
}

static void after_request(void *arg, const struct spoke_request *request,
			  const struct spoke_filter_answer *answer)
{
	struct diarist *diarist = arg;
	struct spoke_span method = spoke_request_method(request);
	struct spoke_span text = answer->error_text;

	note(diarist->letter, '-');
	diarist->afters++;
	diarist->answer = *answer;
	diarist->args = spoke_request_arg_count(request);
	diarist->abandoned = spoke_request_abandoned(request);
	if (answer->error == SPOKE_OK && spoke_value_str(answer->value, &text))
		text = (struct spoke_span){ "", 0 };
	(void)snprintf(diarist->value, RIG_TEXT, "%.*s", (int)text.len, (const char *)text.data);
	(void)snprintf(diarist->method, RIG_TEXT, "%.*s", (int)method.len,
		       (const char *)(method.len ? method.data : ""));
	assert_true(spoke_request_peer(request, diarist->peer, RIG_TEXT) > 0);
	if (diarist->in_after)
		diarist->in_after();
}

static const struct spoke_provider_options with_filters = {
	.filters = filters,
	.filter_count = FILTERS,
};

static int set_up(void **state)
{
	memset(diarists, 0, sizeof(diarists));
	memset(diary, 0, sizeof(diary));
	for (unsigned i = 0; i < FILTERS; i++) {
		diarists[i].letter = (char)('a' + i);
		diarists[i].filter = (struct spoke_filter){
			.name = "diarist",
			.arg = &diarists[i],
			.before_request = before_request,
			.after_request = after_request,
		};
		filters[i] = &diarists[i].filter;
	}
	return rig_set_up(state);
}

static void begin(void)
{
	assert_int_equal(rig_begin(&with_filters), 0);
}

/* Calls, and waits until it is over. */
static struct rig_call *call(struct spoke_method *method)
{
	struct rig_call *made = rig_call(method);

	rig_pass(100 * MS);
	assert_int_equal(made->ends, 1);
	return made;
}

static void filters_are_asked_in_order_and_in_the_reverse_order(void **state)
{
	struct rig_call *made;

	(void)state;
	begin();
	made = call(rig.echo);
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
	begin();
	assert_int_equal(call(rig.echo)->error, SPOKE_OK);
	assert_string_equal(diary, "a+b-");
}

static void an_error_of_the_handler_is_seen(void **state)
{
	(void)state;
	begin();
	assert_int_equal(call(rig.fail)->error, SPOKE_EREMOTE);
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
	begin();
	made = call(rig.echo);
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
	begin();
	made = call(rig.pool);
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
	begin();
	made = call(rig.pool);
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
	begin();
	assert_int_not_equal(call(rig.echo)->error, SPOKE_OK);
	assert_string_equal(diary, "a+b+a-");
	assert_int_equal(diarists[0].answer.error, SPOKE_ETOOLARGE);
}

static void an_answer_of_later_is_seen_when_it_comes(void **state)
{
	(void)state;
	begin();
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
	begin();
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
	begin();
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
	begin();
	/* From then on there is room for all but the names. */
	(void)call(rig.echo);
	(void)call(rig.echo);
	(void)rig_call(rig.later);
	faulty_fail(&rig.faulty[SERVER], FAULTY_MEMORY, 1, -ENOMEM, false);
	rig_pass(10 * MS);
	assert_int_equal(rig.faulty[SERVER].failed[FAULTY_MEMORY], 1);
	assert_int_equal(rig.held_count, 1);
	rig_answer(0);
	assert_string_equal(diarists[0].method, "");
	assert_int_equal(diarists[0].answer.arg_len, 6);
	assert_int_equal(diarists[0].afters, 3);
	rig_pass(10 * MS);
}

static void what_a_freed_provider_leaves_unanswered_is_over(void **state)
{
	(void)state;
	begin();
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

static void what_is_over_may_be_answered_as_it_is_told(void **state)
{
	(void)state;
	begin();
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

static void the_engines_end_is_the_end_of_all_requests(void **state)
{
	(void)state;
	begin();
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

static void a_filter_may_free_the_provider_before(void **state)
{
	struct rig_call *made;

	(void)state;
	begin();
	diarists[1].in_before = free_provider;
	made = rig_call(rig.echo);
	rig_pass(100 * MS);
	assert_int_equal(made->error, SPOKE_ELOST);
	assert_int_equal(rig.handled, 0);
	assert_string_equal(diary, "a+b+c+c-b-a-");
	assert_int_equal(diarists[0].answer.error, SPOKE_EREFUSED);
}

static void a_filter_may_free_the_provider_after(void **state)
{
	(void)state;
	begin();
	diarists[1].in_after = free_provider;
	(void)rig_call(rig.echo);
	(void)rig_call(rig.pool);
	rig_pass(100 * MS);
	assert_int_equal(rig.ended, 2);
	assert_int_equal(diarists[0].afters, diarists[0].befores);
}

static void a_filter_may_free_the_provider_as_a_pool_handler_has_answered(void **state)
{
	(void)state;
	begin();
	diarists[1].in_after = free_provider;
	(void)rig_call(rig.pool);
	rig_pass(100 * MS);
	assert_int_equal(rig.handled, 1);
	assert_string_equal(diary, "a+b+c+c-b-a-");
}

static void a_filter_may_free_the_engine(void **state)
{
	(void)state;
	begin();
	rig.by_turns = true;
	diarists[1].in_before = free_engine;
	(void)rig_call(rig.echo);
	(void)rig_call(rig.pool);
	rig_pass(100 * MS);
	assert_null(rig.engines[SERVER]);
	assert_int_equal(rig.ended, 2);
	assert_int_equal(diarists[0].afters, diarists[0].befores);
}

static void a_filter_may_free_the_engine_after(void **state)
{
	(void)state;
	begin();
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

static void what_is_no_list_of_filters_is_refused(void **state)
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

/* Whatever the N-th failed allocation was, before and after are in step. */
static bool play_with_failing(uint64_t nth)
{
	bool failed;

	assert_int_equal(set_up(NULL), 0);
	faulty_fail(&rig.faulty[SERVER], FAULTY_MEMORY, nth, -ENOMEM, false);
	if (rig_begin(&with_filters) == 0) {
		(void)rig_try(rig.echo);
		(void)rig_try(rig.later);
		(void)rig_try(rig.pool);
		(void)rig_try(rig.fail);
		rig_pass(SECOND);
		rig_answer_all();
		rig_pass(30 * SECOND);
	}
	failed = rig.faulty[SERVER].failed[FAULTY_MEMORY] > 0;
	assert_int_equal(rig_tear_down(NULL), 0);
	assert_int_equal(diarists[0].befores, diarists[0].afters);
	assert_int_equal(diarists[2].befores, diarists[2].afters);
	return failed;
}

static void before_and_after_are_in_step_without_memory(void **state)
{
	uint64_t nth = 1;

	(void)state;
	while (play_with_failing(nth))
		nth++;
	assert_in_range(nth, 10, 1000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, rig_tear_down)
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
		TEST(what_a_freed_provider_leaves_unanswered_is_over),
		TEST(what_is_over_may_be_answered_as_it_is_told),
		TEST(the_engines_end_is_the_end_of_all_requests),
		TEST(a_filter_may_free_the_provider_before),
		TEST(a_filter_may_free_the_provider_after),
		TEST(a_filter_may_free_the_provider_as_a_pool_handler_has_answered),
		TEST(a_filter_may_free_the_engine),
		TEST(a_filter_may_free_the_engine_after),
		TEST(what_is_no_list_of_filters_is_refused),
		cmocka_unit_test(before_and_after_are_in_step_without_memory),
	};

	return cmocka_run_group_tests_name("filters", tests, NULL, NULL);
}
