/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate between a request and its handler: the filters of the provider, then the limit of the
 * method. Returns a verdict and replies to nothing itself. Every filter and limit that let a
 * request pass is notified of its end once.
 */
#ifndef SPOKEI_CLUSTER_SERVE_GATE_H
#define SPOKEI_CLUSTER_SERVE_GATE_H

#include <spoke/filter.h>

#define SPOKEI_GATE_TEXT 192u /* bytes */

struct spokei_filters;
struct spokei_limit;
struct spokei_message;

/* Returns whether the handler may run, or the answer to send instead. The text of a verdict may be
 * in `text`. `request` has its connection. Needed only if there are filters or a limit. */
struct spoke_filter_verdict spokei_gate_enter(struct spoke_request *request,
					      const struct spokei_filters *filters,
					      struct spokei_limit *limit,
					      char text[SPOKEI_GATE_TEXT]);

/* Copies the names in the request's message, which is about to be freed, for the filters that the
 * request passed. Without memory the filters see the request without names. */
void spokei_gate_keep_names(struct spoke_request *request);

/* Notifies filters and the limit of the answer, or of the error that ends the request without
 * one. Only for requests that are `watched`. */
void spokei_gate_leave(struct spoke_request *request, const struct spokei_message *answer);
void spokei_gate_fail(struct spoke_request *request, int error);

#endif
