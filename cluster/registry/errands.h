/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to a registry that are still in force ("errands"), and their results. Results are
 * reported on the engine's `soon` queue, one at a time; a callback may add requests or close the
 * registry. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_ERRANDS_H
#define SPOKEI_CLUSTER_REGISTRY_ERRANDS_H

#include "core/engine/task.h"
#include "core/memory/buffer.h"

#include <spoke/registry.h>

enum spokei_errand_kind {
	SPOKEI_ERRAND_PUBLISH,
	SPOKEI_ERRAND_WITHDRAW, /* replaces a PUBLISH */
	SPOKEI_ERRAND_SUBSCRIBE,
	SPOKEI_ERRAND_UNSUBSCRIBE, /* replaces a SUBSCRIBE */
};

/* A request. It ends when its end is reported: an error, the result of a withdrawal, or a
 * loss. */
struct spokei_errand {
	struct spoke_list node; /* list of all, in order of the requests */
	struct spoke_list told; /* list of those with results; next == NULL: none */
	enum spokei_errand_kind kind;
	uint64_t intent;
	char *text;           /* the service to subscribe to or the URL to publish; "": none */
	struct spoke_url url; /* the parsed URL; empty for a service */
	int error;
	bool has_done; /* to be reported */
	bool has_list;
	bool has_lost;
	bool answered; /* its result is reported or about to be */
	/* The last list: pointers, then the texts. */
	char **list;
	size_t list_count;
	size_t list_size; /* bytes */
	/* For the registry. */
	bool todo;  /* the file has not been changed for it yet */
	bool holds; /* it is published */
	bool seen;
	struct spokei_buffer found; /* URLs of the next list, each with its NUL */
	size_t found_count;
};

struct spokei_errands {
	struct spoke_engine *engine;
	const struct spoke_registry_up *up;
	void *up_arg;
	struct spoke_list all;
	struct spoke_list news;
	struct spokei_task tell;
	bool closed;
};

void spokei_errands_init(struct spokei_errands *errands, struct spoke_engine *engine,
			 const struct spoke_registry_up *up, void *up_arg);

/* Stops all callbacks; fini() then frees the requests, outside of a turn. */
void spokei_errands_close(struct spokei_errands *errands);
void spokei_errands_fini(struct spokei_errands *errands);

/* Adds a request and copies `text`. A PUBLISH with an invalid URL ends with that error.
 * Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_errands_add(struct spokei_errands *errands, enum spokei_errand_kind kind,
				      uint64_t intent, const char *text,
				      struct spokei_errand **ret_errand);

/* Turns the request `which` into its withdrawal, as the newest request; it is empty if there
 * is no such request. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_errands_undo(struct spokei_errands *errands, enum spokei_errand_kind kind,
				       uint64_t intent, uint64_t which,
				       struct spokei_errand **ret_errand);

/* Schedule the report of a result. */
void spokei_errand_done(struct spokei_errands *errands, struct spokei_errand *errand, int error);
void spokei_errand_lost(struct spokei_errands *errands, struct spokei_errand *errand);

/* Makes `found` the list, and reports it if it differs from the last one. Returns 0 or
 * SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_errand_list(struct spokei_errands *errands, struct spokei_errand *errand);

static inline struct spokei_errand *spokei_errand_of(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_errand, node);
}

#endif
