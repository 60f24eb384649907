/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a registry was asked for and has not been released from, and what there is to tell of it. It
 * is told on the engine's `soon`, one thing at a time, and whoever is told may ask for more or
 * close the registry. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_ERRANDS_H
#define SPOKEI_CLUSTER_REGISTRY_ERRANDS_H

#include "core/engine/task.h"
#include "core/memory/buffer.h"

#include <spoke/registry.h>

enum spokei_errand_kind {
	SPOKEI_ERRAND_PUBLISH,
	SPOKEI_ERRAND_WITHDRAW, /* was a PUBLISH */
	SPOKEI_ERRAND_SUBSCRIBE,
	SPOKEI_ERRAND_UNSUBSCRIBE, /* was a SUBSCRIBE */
};

/* One thing that was asked for. It ends when it is told that it is over: done with an error, done
 * if it was to undo something, or lost. */
struct spokei_errand {
	struct spoke_list node; /* of all, in the order in which they were asked for */
	struct spoke_list told; /* of those with news; next == NULL: there are none */
	enum spokei_errand_kind kind;
	uint64_t intent;
	char *text; /* the service that is subscribed to, or the URL that is published; "": none */
	struct spoke_url url; /* the same, read; empty when it is a service */
	int error;
	bool has_done; /* to be told */
	bool has_list;
	bool has_lost;
	bool answered; /* its done is told, or about to be */
	/* The last list: pointers, and behind them the texts. */
	char **list;
	size_t list_count;
	size_t list_size; /* bytes */
	/* The registry's. */
	bool todo;  /* the file has not been changed for it yet */
	bool holds; /* it is published */
	bool seen;
	struct spokei_buffer found; /* URLs for the next list, each with its NUL */
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

/* Nothing is told any more; fini() then frees them, not inside a turn. */
void spokei_errands_close(struct spokei_errands *errands);
void spokei_errands_fini(struct spokei_errands *errands);

/* Notes that something is asked for. `text` is copied; that of a PUBLISH is read as a URL, which
 * may be wrong: then it is done with that error. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_errands_add(struct spokei_errands *errands, enum spokei_errand_kind kind,
				      uint64_t intent, const char *text,
				      struct spokei_errand **ret_errand);

/* Makes of what `which` asked for its undoing, as the newest errand, of which nothing is to be done
 * if there is no such thing. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_errands_undo(struct spokei_errands *errands, enum spokei_errand_kind kind,
				       uint64_t intent, uint64_t which,
				       struct spokei_errand **ret_errand);

/* There is something to tell. */
void spokei_errand_done(struct spokei_errands *errands, struct spokei_errand *errand, int error);
void spokei_errand_lost(struct spokei_errands *errands, struct spokei_errand *errand);

/* What was found is the list now; it is told if it differs from the last one. Returns 0 or
 * SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_errand_list(struct spokei_errands *errands, struct spokei_errand *errand);

static inline struct spokei_errand *spokei_errand_of(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_errand, node);
}

#endif
