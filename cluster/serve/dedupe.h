/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises repeats of a provider's requests: the first request with an id runs, a repeat gets the
 * answer of the first, at once or when it is there. Comes after filters, so a caller without
 * permission learns nothing, and before limits, so a repeat uses up no quota; only a request whose
 * handler has run is remembered. Owned by the provider; on the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_SERVE_DEDUPE_H
#define SPOKEI_CLUSTER_SERVE_DEDUPE_H

#include "cluster/filter/dedupe_table.h"

#include <spoke/engine.h>
#include <spoke/filter.h>

struct spokei_keeping;
struct spokei_message;

struct spokei_dedupe {
	struct spoke_engine *engine;
	struct spokei_dedupe_table table;
	struct spokei_keeping *keeping; /* NULL: the answers end with the process */
	struct spoke_alarm alarm;       /* when the next entry is to be forgotten */
	bool armed;
	uint64_t told;    /* entries forgotten early when an event reported it ... */
	uint64_t told_ns; /* ... last; 0: never */
};

void spokei_dedupe_begin(struct spokei_dedupe *dedupe, struct spoke_engine *engine);

/* No request that bears an id is served any more. */
void spokei_dedupe_finish(struct spokei_dedupe *dedupe);

/* Forgets the entries that new settings do not keep. */
void spokei_dedupe_changed(struct spokei_dedupe *dedupe);

/* The way of a request. */
enum spokei_dedupe_way {
	SPOKEI_DEDUPE_GOES_ON,
	SPOKEI_DEDUPE_REFUSED,  /* by *ret_verdict */
	SPOKEI_DEDUPE_ANSWERED, /* ... already */
	SPOKEI_DEDUPE_WAITS,    /* the request is not the caller's any more */
};

/* Decides on a request to a method of a provider that recognises repeats; `method`: of the route.
 */
enum spokei_dedupe_way spokei_dedupe_check(struct spoke_request *request,
					   struct spokei_dedupe_method *method,
					   struct spoke_filter_verdict *ret_verdict);

/* Returns whether the answer with this error, or none, is that of a handler. */
bool spokei_dedupe_has_run(int error);

/* The first request of an id has ended with this answer, also if it did not run. */
void spokei_dedupe_settle(struct spoke_request *request, const struct spokei_message *answer);

#endif
