/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filters of a consumer or a provider: called in their order before a call or a request, and in
 * reverse order after it. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_FILTER_FILTER_H
#define SPOKEI_CLUSTER_FILTER_FILTER_H

#include "core/base/env.h"
#include "core/memory/buffer.h"

#include <spoke/filter.h>

#define SPOKEI_FILTERS_MAX 64u /* of the user */

struct spokei_filters {
	const struct spoke_filter **list;
	size_t count;
	bool told;         /* at least one of them is notified of the end of requests */
	bool fence_proven; /* fences take numbers of callers that have proven something */
};

/* Copies the pointers. Returns 0, SPOKE_EINVAL (a NULL), SPOKE_ELIMIT or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_filters_init(struct spokei_filters *filters, const struct spoke_env *env,
				       const struct spoke_filter *const *list, size_t count);
/* Adds a filter of the owner, in addition to those, before all others. Returns 0 or SPOKE_ENOMEM.
 */
SPOKE_MUST_USE int spokei_filters_put_first(struct spokei_filters *filters,
					    const struct spoke_env *env,
					    const struct spoke_filter *filter);
void spokei_filters_fini(struct spokei_filters *filters, const struct spoke_env *env);

/* Returns the first verdict other than "go on". *ret_passed: number of filters that the call
 * passed; only these are called after it. The attachments that filters add come into `added`, an
 * empty buffer of the caller, together with those of the call; call->attachments then points
 * there. */
struct spoke_filter_verdict spokei_filters_before_call(const struct spokei_filters *filters,
						       struct spoke_filter_call *call,
						       struct spokei_buffer *added,
						       size_t *ret_passed);

/* Notifies the first `passed` filters of the end of an attempt, the last of them first. */
void spokei_filters_after_attempt(const struct spokei_filters *filters, size_t passed,
				  const struct spoke_filter_attempt *attempt);

/* Calls the first `passed` filters, the last of them first. Each may change *result, and the next
 * one sees the change. */
void spokei_filters_after_call(const struct spokei_filters *filters, size_t passed,
			       struct spoke_filter_call *call, struct spoke_result *result);

struct spoke_filter_verdict spokei_filters_before_request(const struct spokei_filters *filters,
							  const struct spoke_request *request,
							  size_t *ret_passed);
void spokei_filters_after_request(const struct spokei_filters *filters, size_t passed,
				  const struct spoke_request *request,
				  const struct spoke_filter_answer *answer);

#endif
