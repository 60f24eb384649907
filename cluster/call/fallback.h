/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fallback of a method: decides when it replaces an error. Pure.
 */
#ifndef SPOKEI_CLUSTER_CALL_FALLBACK_H
#define SPOKEI_CLUSTER_CALL_FALLBACK_H

#include "core/base/error.h"

#include <spoke/call.h>

/* May a value replace this error? */
static inline bool spokei_fallback_hides(int error)
{
	return spokei_error_of(error)->replaced != SPOKEI_REPLACED_BY_NOTHING;
}

/* Does the fallback of a method replace this error? It keeps that of the handler, too. */
static inline bool spokei_fallback_applies(int error)
{
	return spokei_error_of(error)->replaced == SPOKEI_REPLACED_BY_FALLBACK;
}

/* Replaces the error of a result by OK and `value`, if the fallback applies; `written`, the times
 * and `attempts` stay. `value` { 0 }: the method has no fallback. */
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
