/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets in only the callers that the list of a provider and the list of the service allow. The list
 * of the service can only narrow that of the provider. A connection remembers the result. On the
 * engine's thread.
 */
#ifndef SPOKEI_CLUSTER_SERVE_CALLERS_H
#define SPOKEI_CLUSTER_SERVE_CALLERS_H

#include <spoke/filter.h>

struct spokei_callers;
struct spokei_conn;
struct spokei_message;

/* Checks a request. Is a spokei_filters_judge. `arg`: the place of the provider's list, a struct
 * spokei_callers *, which may be NULL. */
struct spoke_filter_verdict spokei_callers_judge(void *arg, const struct spoke_request *request);

/* Returns whether the list of the provider, as above, lets a caller in, so that it may learn that
 * something is not served. If not, *ret_verdict has the answer, with its text in `text`
 * (SPOKEI_GATE_TEXT bytes). */
bool spokei_callers_lets_know(void *arg, struct spokei_conn *conn,
			      const struct spokei_message *message, char *text,
			      struct spoke_filter_verdict *ret_verdict);

/* Returns whether the caller has proven a name other than its address. Any thread. */
bool spokei_callers_is_known(const struct spoke_request *request);

#endif
