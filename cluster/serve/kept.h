/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answers of a provider in a journal, so that its next process remembers them. An answer is
 * held until the journal has it, so that a repeat gets what the first caller got, also after a
 * crash. Owned by the provider; on the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_SERVE_KEPT_H
#define SPOKEI_CLUSTER_SERVE_KEPT_H

#include "cluster/journal/journal.h"

struct spoke_request;
struct spokei_dedupe;
struct spokei_journal_settings;
struct spokei_message;
struct spokei_routes;

struct spokei_keeping {
	struct spokei_journal journal;
	struct spokei_dedupe *dedupe;
	struct spokei_routes *services;
	bool is_optional;   /* requests run also while the journal cannot be written */
	bool is_open;       /* requests may come */
	uint64_t number;    /* of the last answer */
	uint64_t latest_ns; /* when the last one of earlier processes was given, since 1970 */
	uint64_t recovered; /* answers of these ... */
	uint64_t expired;   /* ... that are too old, or too many */
	uint64_t unserved;  /* ... to methods that are not served, or that remember nothing */
	uint64_t told_ns;   /* when an event reported an answer that is not kept; 0: never */
	void (*opened)(void *arg);
	void (*closed)(void *arg);
	void *arg;
};

struct spokei_keeping_options {
	const struct spokei_journal_settings *settings; /* with a folder */
	struct spokei_routes *services;
	/* The memory has the answers of earlier processes, or the journal is not used. */
	void (*opened)(void *arg);
	void (*closed)(void *arg); /* it may be freed, after this turn */
	void *arg;
};

/* Begins to read the journal. No request that bears an id may come before opened(). Returns 0 or an
 * error that the engine's events explain. */
SPOKE_MUST_USE int spokei_keeping_begin(struct spokei_dedupe *dedupe,
					const struct spokei_keeping_options *options);

/* Ends the journal, after the last connection. Returns whether it is closed; else closed() follows.
 */
bool spokei_keeping_end(struct spokei_dedupe *dedupe);

/* Frees a journal that is closed, after the entries; without one does nothing. */
void spokei_keeping_free(struct spokei_dedupe *dedupe);

/* Returns 0, or why no request with an id may run: the journal would not take its answer. */
int spokei_keeping_check(const struct spokei_keeping *keeping);

/* Holds the answer of a request until the journal has it: spokei_request_release() follows. Returns
 * false if it need not wait. */
bool spokei_kept_hold(struct spoke_request *request, const struct spokei_message *answer);

#endif
