/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands between a request and its handler: the filters of the provider, then the limit of
 * the method. Whatever let a request pass is told of its end, once. On the engine's thread.
 */
#ifndef SPOKEI_GATE_H
#define SPOKEI_GATE_H

#include "cluster/filter/filter.h"
#include "cluster/filter/limit.h"
#include "cluster/request.h"

/* May the handler run? False: it is answered in its place, and counted. `request` has its
 * connection. Asked only if there are filters or a limit. */
bool spokei_gate_enter(struct spoke_request *request, const struct spokei_filters *filters,
		       struct spokei_limit *limit);

/* What the request says is going away, and it is not answered: for the filters it passed its names
 * are kept. No memory: they will see it without. */
void spokei_gate_keep_names(struct spoke_request *request);

/* It is answered, or never will be. For those that are `watched`. */
void spokei_gate_leave(struct spoke_request *request, const struct spokei_message *answer);

/* The same without an answer. */
void spokei_gate_fail(struct spoke_request *request, int error);

/* Filters and limits are going away: the end for all requests that have outlived their
 * connections. */
void spokei_gate_close(struct spokei_link *link);

#endif
