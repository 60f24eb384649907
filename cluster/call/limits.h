/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences about the limits of this side that refuse a call. The engine's thread. */
#ifndef SPOKEI_CLUSTER_CALL_LIMITS_H
#define SPOKEI_CLUSTER_CALL_LIMITS_H

#include <spoke/value.h>

#include <stddef.h>

struct spoke_method;

/* Counts a call that was refused, and explains why: names the limit, its value, and what to do; a
 * sentence that is the engine's newest already is not reported again. `len`: bytes of the
 * arguments; 0: they could not be packed. Returns the error; ETHREAD on another thread than the
 * engine's, where nothing is counted or explained. */
SPOKE_MUST_USE int spokei_limits_refuse(const struct spoke_method *method, int error, size_t len);

/* Prints the limit that has just refused a call with ELIMIT, e.g. "pending.max = 5 is reached
 * (calls in flight)". Returns the length. */
size_t spokei_limits_print(const struct spoke_method *method, char *text, size_t size);

/* Returns the text of a result for a call that was just refused with this error: why its endpoints
 * cannot be reached, or the limit; empty without one. Valid until the next use of the engine. */
struct spoke_span spokei_limits_text(const struct spoke_method *method, int error);

/* Returns the text of a result for a request that waited for its connection, and did not fit a
 * frame then. Valid until the next use of the engine. */
const char *spokei_limits_frame(const struct spoke_method *method);

#endif
