/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a tracestate. Pure. */
#ifndef SPOKEI_CLUSTER_TRACE_STATE_H
#define SPOKEI_CLUSTER_TRACE_STATE_H

#include <spoke/value.h>

#include <stdbool.h>

/* Returns whether a tracestate may be passed on: at most 512 bytes and 32 members, each "key=value"
 * with valid characters, and no key twice. */
bool spokei_trace_state_check(struct spoke_span text);

#endif
