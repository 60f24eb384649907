/* SPDX-License-Identifier: Apache-2.0 */
/* Pure parts: the filter chain, the limits, the fallback results. */
#include "cluster/call/call.h"
#include "cluster/filter/filter.h"
#include "cluster/filter/limit.h"
#include "core/virtual/world.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

enum {
	FILTERS = 3,
};

static struct scribe {
	char letter;
	struct spoke_filter filter;
	struct spoke_filter_verdict before;
	struct spoke_filter_verdict after;
	int seen; /* error of the result that the filter saw */
} scribes[FILTERS];

static char diary[64];
static struct spokei_world world;
static struct spokei_world_process process;
static struct spokei_filters filters;
static struct spokei_buffer added;

static void note(char letter, char what)
{
	size_t len = strlen(diary);

	(void)snprintf(diary + len, sizeof(diary) - len, "%c%c", letter, what);
}

static struct spoke_filter_verdict before_call(void *arg, const struct spoke_filter_call *call)
{
	struct scribe *scribe = arg;

	assert_null(call->result);
	note(scribe->letter, '+');
	return scribe->before;
}

static struct spoke_filter_verdict after_call(void *arg, const struct spoke_filter_call *call)
{
	struct scribe *scribe = arg;

	note(scribe->letter, '-');
	scribe->seen = call->result->error;
	return scribe->after;
}

static int set_up(void **state)
{
	const struct spoke_filter *list[FILTERS];

	(void)state;
	memset(scribes, 0, sizeof(scribes));
	memset(diary, 0, sizeof(diary));
	scene_open(&world, 1);
	spokei_world_process_init(&process, &world);
	for (unsigned i = 0; i < FILTERS; i++) {
		scribes[i].letter = (char)('a' + i);
		scribes[i].filter = (struct spoke_filter){
			.arg = &scribes[i],
			.before_call = before_call,
			.after_call = after_call,
		};
		list[i] = &scribes[i].filter;
	}
	spokei_buffer_init(&added, &process.env, 4096);
	return spokei_filters_init(&filters, &process.env, list, FILTERS);
}

STEP(tear_down)
{
	spokei_filters_fini(&filters, &process.env);
	spokei_buffer_fini(&added);
	assert_int_equal(process.blocks, 0);
	spokei_world_process_fini(&process);
	spokei_world_fini(&world);
}

static const struct spoke_filter_verdict refusal = {
	.step = SPOKE_FILTER_REFUSE,
	.error = SPOKE_EUNAVAILABLE,
	.text = "no",
};

static const struct spoke_filter_verdict answer = {
	.step = SPOKE_FILTER_ANSWER,
	.value = { (const unsigned char *)"\x05", 1 },
};

TEST(before_stops_at_first_filter_that_does_not_go_on, .set_up = set_up, .tear_down = tear_down)
{
	struct spoke_filter_call call = { 0 };
	struct spoke_filter_verdict verdict;
	size_t passed = 9;

	verdict = spokei_filters_before_call(&filters, &call, &added, &passed);
	assert_int_equal(verdict.step, SPOKE_FILTER_GO_ON);
	assert_int_equal(passed, FILTERS);
	scribes[1].before = refusal;
	verdict = spokei_filters_before_call(&filters, &call, &added, &passed);
	assert_int_equal(verdict.step, SPOKE_FILTER_REFUSE);
	assert_int_equal(verdict.error, SPOKE_EUNAVAILABLE);
	assert_int_equal(passed, 1);
	assert_string_equal(diary, "a+b+c+a+b+");
}

TEST(after_calls_passed_filters_in_reverse_order, .set_up = set_up, .tear_down = tear_down)
{
	struct spoke_filter_call call = { 0 };
	struct spoke_result result = { .error = SPOKE_EREMOTE };

	spokei_filters_after_call(&filters, 2, &call, &result);
	assert_string_equal(diary, "b-a-");
	spokei_filters_after_call(&filters, 0, &call, &result);
	assert_string_equal(diary, "b-a-");
	assert_int_equal(result.error, SPOKE_EREMOTE);
}

TEST(changed_result_is_seen_by_next_filter, .set_up = set_up, .tear_down = tear_down)
{
	struct spoke_filter_call call = { 0 };
	struct spoke_result result = {
		.error = SPOKE_EREMOTE,
		.error_code = 7,
		.error_text = { "it went wrong", 13 },
		.error_class = { "E", 1 },
		.written = true,
		.attempts = 3,
		.waited_ns = 11,
	};

	scribes[2].after = answer;
	scribes[1].after = refusal;
	spokei_filters_after_call(&filters, FILTERS, &call, &result);
	assert_int_equal(scribes[2].seen, SPOKE_EREMOTE);
	assert_int_equal(scribes[1].seen, SPOKE_OK);
	assert_int_equal(scribes[0].seen, SPOKE_EUNAVAILABLE);
	assert_int_equal(result.error, SPOKE_EUNAVAILABLE);
	assert_int_equal(result.error_code, 0);
	assert_int_equal(result.error_class.len, 0);
	assert_int_equal(result.value.len, 0);
	assert_int_equal(result.error_text.len, 2);
	assert_memory_equal(result.error_text.data, "no", 2);
	assert_true(result.written);
	assert_int_equal(result.attempts, 3);
	assert_int_equal(result.waited_ns, 11);
}

TEST(refusal_without_error_gets_erefused, .set_up = set_up, .tear_down = tear_down)
{
	struct spoke_filter_call call = { 0 };
	struct spoke_result result = { .error = SPOKE_OK, .value = answer.value };

	scribes[0].after.step = SPOKE_FILTER_REFUSE;
	spokei_filters_after_call(&filters, 1, &call, &result);
	assert_int_equal(result.error, SPOKE_EREFUSED);
	assert_int_equal(result.error_text.len, 0);
}

TEST(empty_list_allocates_nothing, .set_up = set_up, .tear_down = tear_down)
{
	struct spokei_filters none;
	struct spoke_filter_call call = { 0 };
	size_t passed = 9;

	assert_int_equal(spokei_filters_init(&none, &process.env, NULL, 0), SPOKE_OK);
	assert_null(none.list);
	assert_int_equal(spokei_filters_before_call(&none, &call, &added, &passed).step,
			 SPOKE_FILTER_GO_ON);
	assert_int_equal(passed, 0);
	spokei_filters_fini(&none, &process.env);
}

/* --- limits */

TEST(unset_limit_allows_everything)
{
	struct spokei_limit limit;

	spokei_limit_init(&limit, 0, 0);
	assert_false(limit.is_set);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(spokei_limit_take(&limit, 0), SPOKEI_LIMIT_FREE);
	assert_int_equal(limit.active, 1000);
}

TEST(slot_given_back_can_be_taken_again)
{
	struct spokei_limit limit;

	spokei_limit_init(&limit, 2, 0);
	assert_true(limit.is_set);
	assert_int_equal(spokei_limit_take(&limit, 0), SPOKEI_LIMIT_FREE);
	assert_int_equal(spokei_limit_take(&limit, 0), SPOKEI_LIMIT_FREE);
	assert_int_equal(spokei_limit_take(&limit, 0), SPOKEI_LIMIT_ACTIVE);
	spokei_limit_give(&limit);
	assert_int_equal(spokei_limit_take(&limit, 0), SPOKEI_LIMIT_FREE);
	assert_int_equal(spokei_limit_take(&limit, 0), SPOKEI_LIMIT_ACTIVE);
}

static unsigned take_all(struct spokei_limit *limit, uint64_t now_ns)
{
	unsigned taken = 0;

	while (spokei_limit_take(limit, now_ns) == SPOKEI_LIMIT_FREE)
		taken++;
	assert_int_equal(spokei_limit_take(limit, now_ns), SPOKEI_LIMIT_RATE);
	return taken;
}

TEST(bucket_refills_at_the_rate)
{
	struct spokei_limit limit;

	spokei_limit_init(&limit, 0, 10);
	assert_int_equal(take_all(&limit, 100 * SECOND), 10);
	assert_int_equal(take_all(&limit, 100 * SECOND + SECOND / 10 - 1), 0);
	assert_int_equal(take_all(&limit, 100 * SECOND + SECOND / 10), 1);
	assert_int_equal(take_all(&limit, 101 * SECOND), 9);
	assert_int_equal(take_all(&limit, 200 * SECOND), 10);
}

TEST(refusal_by_concurrency_uses_no_token)
{
	struct spokei_limit limit;

	spokei_limit_init(&limit, 1, 2);
	assert_int_equal(spokei_limit_take(&limit, SECOND), SPOKEI_LIMIT_FREE);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(spokei_limit_take(&limit, SECOND), SPOKEI_LIMIT_ACTIVE);
	spokei_limit_give(&limit);
	assert_int_equal(spokei_limit_take(&limit, SECOND), SPOKEI_LIMIT_FREE);
	spokei_limit_give(&limit);
	assert_int_equal(spokei_limit_take(&limit, SECOND), SPOKEI_LIMIT_RATE);
	assert_int_equal(limit.active, 0);
}

TEST(limit_text_names_method_and_limit)
{
	const struct spoke_span echo = { "echo", 4 };
	const struct spoke_span odd = { "e\n", 2 };
	struct spokei_limit limit;
	char text[40];
	size_t len;

	spokei_limit_init(&limit, 4, 100);
	len = spokei_limit_print(&limit, SPOKEI_LIMIT_ACTIVE, "executes", echo, text, sizeof(text));
	assert_string_equal(text, "echo: executes=4 reached");
	assert_int_equal(len, strlen(text));
	(void)spokei_limit_print(&limit, SPOKEI_LIMIT_RATE, "executes", odd, text, sizeof(text));
	assert_string_equal(text, "e\\x0a: executes.tps=100 reached");
	len = spokei_limit_print(&limit, SPOKEI_LIMIT_RATE, "executes", echo, text, 6);
	assert_string_equal(text, "echo:");
	assert_int_equal(len, 5);
}

/* --- fallback */

TEST(fallback_replaces_errors_not_from_the_handler)
{
	static const struct {
		int error;
		bool applies;
	} cases[] = {
		{ SPOKE_OK, false },         { SPOKE_EREMOTE, false },
		{ SPOKE_ECANCELED, false },  { SPOKE_ECLOSED, false },
		{ SPOKE_ETIMEOUT, true },    { SPOKE_ETIMEOUT_UNSENT, true },
		{ SPOKE_ELOST, true },       { SPOKE_EREFUSED, true },
		{ SPOKE_ENOPROVIDER, true }, { SPOKE_EUNAVAILABLE, true },
		{ SPOKE_ELIMIT, true },      { SPOKE_EBADREPLY, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spoke_result result = {
			.error = cases[i].error,
			.error_text = { "why", 3 },
			.written = true,
			.attempts = 2,
		};

		spokei_fallback_apply(&result, answer.value);
		assert_int_equal(result.fallback, cases[i].applies);
		assert_int_equal(result.error, cases[i].applies ? SPOKE_OK : cases[i].error);
		assert_int_equal(result.error_text.len, cases[i].applies ? 0 : 3);
		assert_ptr_equal(result.value.data, cases[i].applies ? answer.value.data : NULL);
		assert_true(result.written);
		assert_int_equal(result.attempts, 2);
	}
}

TEST(error_stays_without_fallback)
{
	struct spoke_result result = { .error = SPOKE_ELOST };

	spokei_fallback_apply(&result, (struct spoke_value){ NULL, 0 });
	assert_int_equal(result.error, SPOKE_ELOST);
	assert_false(result.fallback);
}
