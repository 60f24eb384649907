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
struct spokei_figures;
struct spokei_filters;
struct spokei_identity;
struct spokei_limit;
struct spokei_message;
struct spokei_service;

#define SPOKEI_REFUSAL_TEXT 192u /* bytes of the sentence for a refused caller */

struct spoke_request {
	struct spokei_serving serving; /* registered at the connection once the handler returned */
	struct spoke_engine *engine;
	struct spokei_conn *conn; /* while the handler runs on the loop; else NULL */
	const struct spokei_message *message;
	void (*handle)(struct spoke_request *request, void *arg);
	void *arg;
	struct spokei_figures *figures; /* of the method */
	uint64_t deadline_ns;           /* UINT64_MAX: the request has none */
	void (*abandoned)(struct spoke_request *request, void *arg);
	void *abandoned_arg;
	struct spokei_copy *kept; /* the copy that `message` points into, or NULL */
	struct spoke_address peer;
	struct spokei_identity *identity; /* a reference, without a connection; NULL: none */
	struct spoke_peer from;
	bool answered;
	atomic_bool again; /* ... twice: the second answer was dropped */
	bool on_pool;      /* the handler runs, or ran, on the pool */
	bool unrun;        /* it was too late when a thread became free; the handler did not run */
	bool pool_done;    /* the pool has finished, and the loop was notified */
	bool delivered;    /* the answer of the pool has reached the loop */
	bool watched;      /* filters or a limit must be notified of the end */
	bool telling;      /* ... which happens now; freed afterwards */
	/* A Dubbo consumer other than spoke waits for the answer; noted before the message is gone.
	 */
	bool foreign;
	atomic_bool gone; /* the connection is closed; the answer will be dropped */
	struct spoke_work work;
	struct spoke_post post;     /* brings an answer from another thread to the loop */
	struct spokei_copy *answer; /* the answer that `post` brings */
	struct spokei_limit *limit; /* counts this request as active; NULL: none does */
	/* The filters that the request passed; valid while it is `watched`. */
	const struct spokei_filters *filters;
	size_t passed;                        /* number of these filters */
	const struct spokei_service *service; /* valid while filters are asked */
	/* Room for a filter's sentence, SPOKEI_REFUSAL_TEXT bytes; valid while filters are asked.
	 */
	char *refusal;
	size_t arg_len;             /* bytes of the arguments */
	uint64_t arrived_ns;        /* when the turn began that read the request */
	uint64_t waited_ns;         /* for a thread of the pool */
	struct spoke_request *self; /* for a filter that makes a mark, once filters are asked */
	void *mark;                 /* of a filter: see spokei_request_mark() */
	size_t mark_size;
};

/* Replies with an error, because the values of the handler cannot be sent. */
void spokei_request_unsendable(struct spoke_request *request, int error);

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
