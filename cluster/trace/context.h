/* SPDX-License-Identifier: Apache-2.0 */
/* Trace contexts: reads them from attachments, and makes new ones. Pure but for random ids. */
#ifndef SPOKEI_CLUSTER_TRACE_CONTEXT_H
#define SPOKEI_CLUSTER_TRACE_CONTEXT_H

#include <spoke/env.h>
#include <spoke/trace.h>

/* Bytes of a map with a traceparent and the longest tracestate. */
#define SPOKEI_TRACE_MAP (SPOKE_TRACE_STATE_MAX + 96u)

/* Reads the context of a map of attachments. Returns false if there is none, or it is invalid. */
bool spokei_trace_read(struct spoke_value attachments, struct spoke_trace_context *ret_context);

/* Writes the attachments of a context to `bytes`; the result points there. */
struct spoke_value spokei_trace_write(const struct spoke_trace_context *context,
				      unsigned char bytes[SPOKEI_TRACE_MAP]);

/* Makes the context of a new span: a child, or the first one of a new trace (`parent` NULL), which
 * is sampled with a probability of `sample` per million. */
void spokei_trace_begin(const struct spoke_trace_context *parent, uint32_t sample,
			const struct spoke_env *env, struct spoke_trace_context *ret_context);

#endif
