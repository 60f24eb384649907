/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences about the limits of this side that refuse a call. The engine's thread. */
#ifndef SPOKEI_CLUSTER_CALL_LIMITS_H
#define SPOKEI_CLUSTER_CALL_LIMITS_H

#include <spoke/value.h>

#include <stddef.h>

struct spoke_call_options;
struct spoke_method;
struct spokei_retry_queue;

/* Reports the limit that has just refused a call of the method with ELIMIT: its key, its value, and
 * what to do. A sentence that is the engine's newest already is not reported again. */
void spokei_limits_report(const struct spoke_method *method, struct spoke_value attachments);

/* Explains why a call with so many bytes of arguments was refused; 0: they could not be packed.
 * `options` may be NULL. */
void spokei_limits_explain(const struct spoke_method *method, int error, size_t len,
			   const struct spoke_call_options *options);

/* Returns the text of a result for a call that was just refused with this error: why its endpoints
 * cannot be reached, or the limit; empty without one. Valid until the next use of the engine. */
struct spoke_span spokei_limits_text(const struct spoke_method *method, int error);

/* Returns the text of a result for a request that waited for its connection, and did not fit a
 * frame then. Valid until the next use of the engine. */
const char *spokei_limits_frame(const struct spoke_method *method);

/* Prints why the queue has no room for a ticket of this size. Returns the length of the text. */
size_t spokei_limits_print_queue(const struct spokei_retry_queue *queue, size_t bytes, char *text,
				 size_t size);

#endif
