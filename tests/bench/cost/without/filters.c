/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces cluster/filter/filter: there are no filters. */
#include "cluster/filter/filter.h"

int spokei_filters_init(struct spokei_filters *filters, const struct spoke_env *env,
			const struct spoke_filter *const *list, size_t count)
{
	(void)env;
	(void)list;
	(void)count;
	*filters = (struct spokei_filters){ .list = NULL };
	return SPOKE_OK;
}

int spokei_filters_put_first(struct spokei_filters *filters, const struct spoke_env *env,
			     const struct spoke_filter *filter)
{
	(void)filters;
	(void)env;
	(void)filter;
	return SPOKE_OK;
}

void spokei_filters_fini(struct spokei_filters *filters, const struct spoke_env *env)
{
	(void)filters;
	(void)env;
}

static const struct spoke_filter_verdict go_on = { .step = SPOKE_FILTER_GO_ON };

struct spoke_filter_verdict spokei_filters_before_call(const struct spokei_filters *filters,
						       struct spoke_filter_call *call,
						       struct spokei_buffer *added,
						       size_t *ret_passed)
{
	(void)filters;
	(void)call;
	(void)added;
	*ret_passed = 0;
	return go_on;
}

void spokei_filters_after_attempt(const struct spokei_filters *filters, size_t passed,
				  const struct spoke_filter_attempt *attempt)
{
	(void)filters;
	(void)passed;
	(void)attempt;
}

void spokei_filters_after_call(const struct spokei_filters *filters, size_t passed,
			       struct spoke_filter_call *call, struct spoke_result *result)
{
	(void)filters;
	(void)passed;
	(void)call;
	(void)result;
}

struct spoke_filter_verdict spokei_filters_before_request(const struct spokei_filters *filters,
							  const struct spoke_request *request,
							  size_t *ret_passed)
{
	(void)filters;
	(void)request;
	*ret_passed = 0;
	return go_on;
}

void spokei_filters_after_request(const struct spokei_filters *filters, size_t passed,
				  const struct spoke_request *request,
				  const struct spoke_filter_answer *answer)
{
	(void)filters;
	(void)passed;
	(void)request;
	(void)answer;
}
