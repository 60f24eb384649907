/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request being served, from the message to its answer.
 */
#ifndef SPOKEI_CLUSTER_SERVE_REQUEST_H
#define SPOKEI_CLUSTER_SERVE_REQUEST_H

#include "cluster/filter/filter.h"
#include "cluster/serve/routes.h"
#include "transport/conn/conn.h"

#include <stdatomic.h>

struct spoke_request {
	struct spokei_serving serving; /* in the connection's keeping, once its handler returned */
	struct spoke_engine *engine;
	struct spokei_conn *conn;             /* inside the handler's call on the loop; else NULL */
	const struct spokei_message *message; /* what it says */
	void (*handle)(struct spoke_request *request, void *arg);
	void *arg;
	uint64_t deadline_ns; /* UINT64_MAX: none was told */
	void (*abandoned)(struct spoke_request *request, void *arg);
	void *abandoned_arg;
	struct spokei_copy *kept; /* the copy that `message` is, or NULL */
	struct spoke_address peer;
	struct spoke_peer from;
	bool answered;
	bool on_pool;     /* its handler runs there, or has */
	bool unrun;       /* it was too late when there was a thread for it */
	bool pool_done;   /* ... has, and the loop knows */
	bool delivered;   /* ... and its answer has come to the loop */
	bool watched;     /* filters that it passed or a limit want to know when it is over */
	bool telling;     /* ... and are being told; it is freed after that */
	atomic_bool gone; /* nobody is there to read the answer */
	struct spoke_work work;
	struct spoke_post post;     /* brings an answer of another thread to the loop */
	struct spokei_copy *answer; /* what it brings */
	struct spokei_limit *limit; /* of which it has one; NULL: of none */
	/* Of those that pass filters; they are there for as long as it is `watched`. */
	const struct spokei_filters *filters;
	size_t passed;       /* so many of them */
	size_t arg_len;      /* bytes of its arguments */
	uint64_t arrived_ns; /* when the turn began in which it came */
};

/* Serves a request of a connection: finds the handler and runs it, or refuses. *spare: memory of a
 * request that was answered, for the next; or NULL. */
void spokei_request_serve(const struct spokei_routes *services,
			  const struct spokei_filters *filters, struct spokei_conn *conn,
			  const struct spokei_message *message, struct spoke_request **spare);

/* Gives that memory back; NULL is fine. */
void spokei_request_free(struct spoke_request *request);

/* Serves a request that a provider pushed: a struct spokei_route serves all of a consumer. Is a
 * spokei_serve_fn. */
void spokei_request_serve_pushed(void *route, struct spokei_conn *conn,
				 const struct spokei_message *message);

/* --- the gate (gate.c): what stands between a request and its handler, the filters of the
 * provider, then the limit of the method. Whatever let a request pass is told of its end, once. */

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
