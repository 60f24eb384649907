/* SPDX-License-Identifier: Apache-2.0 */
/* Filters that record their calls: see diary.h. */
#include "tests/cluster/filter/diary.h"

#include <stdio.h>
#include <string.h>

struct diarist diarists[FILTERS];

static const struct spoke_filter *filters[FILTERS];
char diary[DIARY];

static void note(char letter, char what)
{
	size_t len = strlen(diary);

	if (len + 3 < DIARY)
		(void)snprintf(diary + len, DIARY - len, "%c%c", letter, what);
}

static struct spoke_filter_verdict before_request(void *arg, const struct spoke_request *request)
{
	struct diarist *diarist = arg;

	assert_true(spoke_request_service(request).len == 1 || rig.url);
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

const struct spoke_provider_options with_filters = {
	.filters = filters,
	.filter_count = FILTERS,
};

int diary_set_up(void **state)
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
	return filterrig_set_up(state);
}

void diary_begin(void)
{
	assert_int_equal(filterrig_begin(&with_filters), 0);
}

struct filterrig_call *diary_call(struct spoke_method *method)
{
	struct filterrig_call *made = filterrig_call(method);

	filterrig_pass(100 * MS);
	assert_int_equal(made->ends, 1);
	return made;
}
