/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The struct of a request, for the files of this folder. On the engine's thread, except where
 * a handler runs on the pool.
 */
#ifndef SPOKEI_CLUSTER_SERVE_PARTS_H
#define SPOKEI_CLUSTER_SERVE_PARTS_H

#include "transport/conn/serving.h"

#include <spoke/provider.h>

#include <stdatomic.h>

struct spoke_filter_verdict;
struct spokei_copy;
struct spokei_dedupe_entry;
struct spokei_figures;
struct spokei_filters;
struct spokei_identity;
struct spokei_limit;
struct spokei_message;
struct spokei_sender;
struct spokei_pooled;
struct spokei_service;
struct spokei_use;

#define SPOKEI_REFUSAL_TEXT 192u /* bytes of the sentence for a refused caller */

/* The part of a request that filters read and write while they are asked. */
struct spokei_asked {
	struct spoke_request *request; /* for a filter that makes a mark */
	const struct spokei_service *service;
	struct spokei_dedupe_entry *entry; /* which will remember the request; NULL: none does */
	char text[SPOKEI_REFUSAL_TEXT];    /* room for a filter's sentence */
};

/* Does the answer of a request wait for the journal? */
enum spokei_holding {
	SPOKEI_HOLDS_NOTHING,
	SPOKEI_MAY_HOLD, /* it will have to, if it bears an id */
	SPOKEI_HOLDS,
};

struct spoke_request {
	struct spokei_serving serving; /* registered at the connection once the handler returned */
	struct spoke_engine *engine;
	struct spokei_conn *conn; /* while the handler runs on the loop; else NULL */
	const struct spokei_message *message;
	struct spokei_figures *figures; /* of the method */
	uint64_t deadline_ns;           /* UINT64_MAX: the request has none */
	void (*abandoned)(struct spoke_request *request, void *arg);
	void *abandoned_arg;
	struct spokei_copy *kept; /* the copy that `message` points into, or NULL */
	/* References, once the handler returned or runs on the pool; NULL: none. */
	struct spokei_sender *sender;
	struct spokei_identity *identity;
	struct spokei_pooled *pooled; /* NULL: the handler runs, or ran, on the loop */
	union {
		struct spokei_limit *limit; /* counts this request as active; NULL: none does */
		struct spokei_dedupe_entry *entry; /* if it is `remembered`; has the limit */
	};
	const struct spokei_filters *filters; /* those asked; valid while it is `watched` */
	struct spokei_asked *asked;           /* valid while filters are asked */
	void *mark;                           /* of a filter: see spokei_request_mark() */
	struct spokei_use *inner;             /* calls made for it; if any, it is `watched` */
	uint64_t arrived_ns;                  /* when the turn began that read the request */
	uint32_t arg_len;                     /* bytes of the arguments */
	uint16_t mark_size;
	uint8_t passed; /* number of the filters that the request passed */
	bool answered;
	atomic_bool again; /* ... twice: the second answer was dropped */
	bool slow_told;    /* a line of the log has named it as slow */
	bool watched;      /* filters, a limit or inner calls must be notified of the end */
	bool telling;      /* ... which happens now; freed afterwards */
	uint8_t holding;   /* enum spokei_holding */
	/* A Dubbo consumer other than spoke waits for the answer; noted before the message is gone.
	 */
	bool foreign;
	atomic_bool remembered; /* and not answered: repeats are to get its answer */
	atomic_bool gone;       /* the caller has gone: the answer will be dropped */
};

_Static_assert(sizeof(struct spoke_request) <= 208, "one for each request that waits");

/* Any thread. */
static inline bool spokei_request_is_gone(const struct spoke_request *request)
{
	return atomic_load_explicit(&request->gone, memory_order_relaxed);
}

/* The same for the next one. */
static inline bool spokei_request_is_remembered(const struct spoke_request *request)
{
	return atomic_load_explicit(&request->remembered, memory_order_relaxed);
}

/* Returns the address of the peer, which is empty if there was no memory for it. */
const struct spoke_address *spokei_request_address(const struct spoke_request *request);

/* Replies with an error, because the values of the handler cannot be sent. */
void spokei_request_unsendable(struct spoke_request *request, int error);

/* Answers a request; frees it if its handler has returned. */
void spokei_request_finish(struct spoke_request *request, struct spokei_message *message);

/* Sends the answer of a request that was held. */
void spokei_request_release(struct spoke_request *request, struct spokei_message *answer);

/* Prepares a request to be answered later, as after a handler that has not answered. May end it. */
void spokei_request_detach(struct spoke_request *request);

/* Frees a request that no handler has seen, and that is answered or cannot be. */
void spokei_request_forget(struct spoke_request *request, int error);

/* Returns whether the caller is a consumer of Dubbo that is not of spoke. */
bool spokei_request_is_foreign(const struct spoke_request *request);

/* Returns whether the caller has proven a name other than its address. Any thread. */
bool spokei_request_is_known(const struct spoke_request *request);

/* The methods that every service has; the argument of their handlers is the service. */
#define SPOKEI_BUILTIN_METHODS 3u
extern const struct spoke_handler spokei_builtin_methods[SPOKEI_BUILTIN_METHODS];

/* The methods of the service that describes a provider; the argument of their handlers is its
 * struct spokei_routes. */
#define SPOKEI_BUILTIN_ABOUT 2u
extern const struct spoke_handler spokei_builtin_about[SPOKEI_BUILTIN_ABOUT];

#endif
