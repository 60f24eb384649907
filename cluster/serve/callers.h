/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets in only the callers that a provider's list and the list of the service allow. The list of
 * the service can only narrow that of the provider. A connection remembers the judgement. On the
 * engine's thread.
 */
#ifndef SPOKEI_CLUSTER_SERVE_CALLERS_H
#define SPOKEI_CLUSTER_SERVE_CALLERS_H

#include <spoke/filter.h>

struct spokei_callers;
struct spokei_conn;
struct spokei_message;

/* The argument of the functions below; in the provider. */
struct spokei_callers_door {
	struct spokei_callers *callers; /* of the provider; NULL: all */
};

/* Checks a request. Is a spokei_filters_judge. */
struct spoke_filter_verdict spokei_callers_judge(void *door, const struct spoke_request *request);

/* Returns whether a caller may know that something is not served. If not, *ret_verdict has the
 * answer, with its text in `text` (SPOKEI_GATE_TEXT bytes). */
bool spokei_callers_lets_know(void *door, struct spokei_conn *conn,
			      const struct spokei_message *message, char *text,
			      struct spoke_filter_verdict *ret_verdict);

#endif
