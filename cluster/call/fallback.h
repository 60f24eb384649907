/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a method's fallback stands in for an answer. Judges only.
 */
#ifndef SPOKEI_CLUSTER_CALL_FALLBACK_H
#define SPOKEI_CLUSTER_CALL_FALLBACK_H

#include <spoke/call.h>

/*
 * Does the method's fallback take the place of this error? Of every one but what its handler
 * answered, and what this side itself wanted: a call that was cancelled, a consumer that is closed.
 */
static inline bool spokei_fallback_applies(int error)
{
	return error != SPOKE_OK && error != SPOKE_EREMOTE && error != SPOKE_ECANCELED &&
	       error != SPOKE_ECLOSED;
}

/* Makes OK and `value` of a result, if the error is one of these; what else is known of the call
 * (written, times, attempts) stays. `value` { 0 }: the method has no fallback. */
static inline void spokei_fallback_apply(struct spoke_result *result, struct spoke_value value)
{
	static const struct spoke_span none;

	if (value.len == 0 || !spokei_fallback_applies(result->error))
		return;
	result->error = SPOKE_OK;
	result->value = value;
	result->attachments = (struct spoke_value){ NULL, 0 };
	result->error_text = none;
	result->error_class = none;
	result->error_code = 0;
	result->fallback = true;
}

#endif
