/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces cluster/filter/filter and cluster/serve/gate: there are no filters, and every request
 * passes. */
#include "cluster/filter/filter.h"
#include "cluster/serve/gate.h"

/* --- cluster/filter/filter */

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

void spokei_filters_set_judge(struct spokei_filters *filters, spokei_filters_judge judge, void *arg)
{
	(void)filters;
	(void)judge;
	(void)arg;
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

/* --- cluster/serve/gate */

struct spoke_filter_verdict spokei_gate_enter(struct spoke_request *request,
					      const struct spokei_filters *filters,
					      struct spokei_limit *limit,
					      char text[SPOKEI_GATE_TEXT])
{
	(void)text;
	(void)request;
	(void)filters;
	(void)limit;
	return go_on;
}

void spokei_gate_keep_names(struct spoke_request *request)
{
	(void)request;
}

void spokei_gate_leave(struct spoke_request *request, const struct spokei_message *answer)
{
	(void)request;
	(void)answer;
}

void spokei_gate_fail(struct spoke_request *request, int error)
{
	(void)request;
	(void)error;
}
