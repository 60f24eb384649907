/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the chain of filters. The caller keeps the chain alive meanwhile, because a filter may free
 * its owner. */
#include "cluster/filter/filter.h"

#include "transport/wire/message.h"

#define SLOT sizeof(const struct spoke_filter *)

/* --- life */

int spokei_filters_init(struct spokei_filters *filters, const struct spoke_env *env,
			const struct spoke_filter *const *list, size_t count)
{
	*filters = (struct spokei_filters){ .list = NULL };
	if (count == 0)
		return SPOKE_OK;
	if (list == NULL)
		return SPOKE_EINVAL;
	if (count > SPOKEI_FILTERS_MAX)
		return SPOKE_ELIMIT;
	for (size_t i = 0; i < count; i++) {
		if (list[i] == NULL)
			return SPOKE_EINVAL;
		filters->told |= list[i]->after_request != NULL;
	}
	filters->list = spokei_alloc(env, count, SLOT);
	if (filters->list == NULL)
		return SPOKE_ENOMEM;
	memcpy(filters->list, list, count * SLOT);
	filters->count = count;
	return SPOKE_OK;
}

int spokei_filters_put_first(struct spokei_filters *filters, const struct spoke_env *env,
			     const struct spoke_filter *filter)
{
	const struct spoke_filter **list;

	list = spokei_alloc(env, filters->count + 1, SLOT);
	if (list == NULL)
		return SPOKE_ENOMEM;
	list[0] = filter;
	if (filters->count > 0)
		memcpy(list + 1, filters->list, filters->count * SLOT);
	spokei_free(env, filters->list, filters->count, SLOT);
	filters->list = list;
	filters->told |= filter->after_request != NULL;
	filters->count++;
	return SPOKE_OK;
}

void spokei_filters_fini(struct spokei_filters *filters, const struct spoke_env *env)
{
	spokei_free(env, filters->list, filters->count, SLOT);
	*filters = (struct spokei_filters){ .list = NULL };
}

/* Checks the value of a filter's answer. An empty one becomes nil, an invalid one a refusal. */
static struct spoke_filter_verdict checked(struct spoke_filter_verdict verdict)
{
	static const unsigned char nil[] = { 0xc0 };
	int error;

	if (SPOKEI_LIKELY(verdict.step != SPOKE_FILTER_ANSWER))
		return verdict;
	if (verdict.value.len == 0) {
		verdict.value = (struct spoke_value){ nil, sizeof(nil) };
		return verdict;
	}
	error = spoke_value_check(verdict.value.data, verdict.value.len, NULL, &verdict.value);
	if (error == SPOKE_OK)
		return verdict;
	return (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_REFUSE,
		.error = error,
		.text = "a filter returned an invalid value",
	};
}

/* --- attachments */

/* Has the map an entry with this key? */
static bool has_key(struct spoke_value map, struct spoke_value wanted)
{
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;

	if (spoke_cursor_map(map, &pairs) != 0)
		return false;
	while (spoke_cursor_next_pair(&pairs, &key, &value))
		if (spoke_value_equal(key, wanted))
			return true;
	return false;
}

/* Counts the pairs of a map whose keys `except` does not have, and appends them, unless `to` is
 * NULL. */
static int put_pairs(struct spokei_buffer *to, struct spoke_value map, struct spoke_value except,
		     uint32_t *count)
{
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;
	int error = SPOKE_OK;

	if (map.len == 0 || spoke_cursor_map(map, &pairs) != 0)
		return SPOKE_OK;
	while (error == 0 && spoke_cursor_next_pair(&pairs, &key, &value)) {
		if (except.len > 0 && has_key(except, key))
			continue;
		++*count;
		if (to)
			error = spokei_buffer_append(to, key.data, key.len);
		if (to && error == 0)
			error = spokei_buffer_append(to, value.data, value.len);
	}
	return error;
}

static int put_all(struct spokei_buffer *to, struct spoke_value base, struct spoke_value added,
		   uint32_t *count)
{
	static const struct spoke_value none;
	int error = put_pairs(to, added, none, count);

	return error ? error : put_pairs(to, base, added, count);
}

static int merge(struct spokei_buffer *all, struct spoke_value base, struct spoke_value added)
{
	uint32_t count = 0;
	unsigned char head[5] = { 0xdf }; /* map, with the number of pairs in four bytes */
	int error = put_all(NULL, base, added, &count);

	for (unsigned i = 1; i < sizeof(head); i++)
		head[i] = (unsigned char)(count >> (32 - 8 * i));
	if (error == 0)
		error = spokei_buffer_append(all, head, sizeof(head));
	if (error == 0)
		error = put_all(all, base, added, &count);
	if (error)
		return error;
	return spokei_attachments_check((struct spoke_value){ spokei_buffer_data(all),
							      spokei_buffer_len(all) },
					false);
}

/* Replaces the content of `map` with a map of all attachments. `base` is a checked map or none, and
 * may lie in `map`; `added` wins where both have a key. Returns 0, an error of
 * spokei_attachments_check(), or SPOKE_ENOMEM; then `map` is as before. */
static int merge_attachments(struct spokei_buffer *map, struct spoke_value base,
			     struct spoke_value added)
{
	struct spokei_buffer all;
	int error = spokei_attachments_check(added, false);

	if (error)
		return error;
	spokei_buffer_init(&all, map->env, map->max);
	error = merge(&all, base, added);
	if (error) {
		spokei_buffer_fini(&all);
		return error;
	}
	spokei_buffer_fini(map);
	*map = all;
	return SPOKE_OK;
}

/* --- calls */

/* Adds the attachments of a verdict to those of the call. Invalid ones make a refusal. */
static void add_attachments(struct spoke_filter_verdict *verdict, struct spoke_filter_call *call,
			    struct spokei_buffer *added)
{
	int error;

	if (SPOKEI_LIKELY(verdict->attachments.len == 0))
		return;
	error = merge_attachments(added, call->attachments, verdict->attachments);
	if (error == SPOKE_OK) {
		call->attachments.data = spokei_buffer_data(added);
		call->attachments.len = spokei_buffer_len(added);
		return;
	}
	*verdict = (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_REFUSE,
		.error = error,
		.text = "a filter added invalid attachments",
	};
}

struct spoke_filter_verdict spokei_filters_before_call(const struct spokei_filters *filters,
						       struct spoke_filter_call *call,
						       struct spokei_buffer *added,
						       size_t *ret_passed)
{
	struct spoke_filter_verdict verdict = { .step = SPOKE_FILTER_GO_ON };
	size_t passed = 0;

	while (passed < filters->count && verdict.step == SPOKE_FILTER_GO_ON) {
		const struct spoke_filter *filter = filters->list[passed];

		if (filter->before_call)
			verdict = checked(filter->before_call(filter->arg, call));
		if (verdict.step != SPOKE_FILTER_GO_ON)
			break;
		passed++;
		add_attachments(&verdict, call, added);
	}
	*ret_passed = passed;
	return verdict;
}

/* Replaces the answer in a result; the other facts about the call stay. */
static void replace(struct spoke_result *result, const struct spoke_filter_verdict *verdict)
{
	const char *text = verdict->text ? verdict->text : "";
	bool refused = verdict->step == SPOKE_FILTER_REFUSE;

	if (verdict->step == SPOKE_FILTER_GO_ON)
		return;
	result->error = SPOKE_OK;
	result->value = verdict->value;
	result->error_text = (struct spoke_span){ "", 0 };
	if (refused) {
		result->error = verdict->error ? verdict->error : SPOKE_EREFUSED;
		result->value = (struct spoke_value){ NULL, 0 };
		result->error_text = (struct spoke_span){ text, strlen(text) };
	}
	result->attachments = (struct spoke_value){ NULL, 0 };
	result->error_class = (struct spoke_span){ "", 0 };
	result->error_code = 0;
	result->fallback = false;
}

void spokei_filters_after_call(const struct spokei_filters *filters, size_t passed,
			       struct spoke_filter_call *call, struct spoke_result *result)
{
	SPOKE_ASSERT(passed <= filters->count);
	call->result = result;
	while (passed > 0) {
		const struct spoke_filter *filter = filters->list[--passed];
		struct spoke_filter_verdict verdict;

		if (filter->after_call == NULL)
			continue;
		verdict = checked(filter->after_call(filter->arg, call));
		replace(result, &verdict);
	}
}

void spokei_filters_after_attempt(const struct spokei_filters *filters, size_t passed,
				  const struct spoke_filter_attempt *attempt)
{
	SPOKE_ASSERT(passed <= filters->count);
	while (passed > 0) {
		const struct spoke_filter *filter = filters->list[--passed];

		if (filter->after_attempt)
			filter->after_attempt(filter->arg, attempt);
	}
}

/* --- requests */

struct spoke_filter_verdict spokei_filters_before_request(const struct spokei_filters *filters,
							  const struct spoke_request *request,
							  size_t *ret_passed)
{
	struct spoke_filter_verdict verdict = { .step = SPOKE_FILTER_GO_ON };
	size_t passed = 0;

	while (passed < filters->count && verdict.step == SPOKE_FILTER_GO_ON) {
		const struct spoke_filter *filter = filters->list[passed];

		if (filter->before_request)
			verdict = checked(filter->before_request(filter->arg, request));
		passed += verdict.step == SPOKE_FILTER_GO_ON;
	}
	*ret_passed = passed;
	return verdict;
}

void spokei_filters_after_request(const struct spokei_filters *filters, size_t passed,
				  const struct spoke_request *request,
				  const struct spoke_filter_answer *answer)
{
	SPOKE_ASSERT(passed <= filters->count);
	while (passed > 0) {
		const struct spoke_filter *filter = filters->list[--passed];

		if (filter->after_request)
			filter->after_request(filter->arg, request, answer);
	}
}
