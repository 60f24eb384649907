/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves requests: from the message to the handler, and from the handler's answer to the
 * connection. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_SERVE_REQUEST_H
#define SPOKEI_CLUSTER_SERVE_REQUEST_H

#include <spoke/provider.h>

struct spoke_request;
struct spoke_engine;
struct spokei_conn;
struct spokei_filters;
struct spokei_link;
struct spokei_message;
struct spokei_route;
struct spokei_routes;
struct spokei_use;

/* Finds the route of a request, and notes it at the connection for its repeats. Returns NULL after
 * refusing the request. */
const struct spokei_route *spokei_request_route(struct spokei_routes *services,
						struct spokei_conn *conn,
						const struct spokei_message *message);

/* Runs the handler, or refuses. *spare: memory of a request that was answered, for the next; or
 * NULL. */
void spokei_request_run(const struct spokei_route *route, const struct spokei_filters *filters,
			struct spokei_conn *conn, const struct spokei_message *message,
			struct spoke_request **spare);

/* Returns whether there is such a method, and it is not marked as safe. */
bool spokei_request_is_unsafe(struct spokei_routes *services, const struct spokei_message *message);

/* Serves a request that a provider pushed: a struct spokei_route serves all of a consumer. Is a
 * spokei_serve_fn. */
void spokei_request_serve_pushed(void *route, struct spokei_conn *conn,
				 const struct spokei_message *message);

/* Ends the requests that have outlived their connections, as filters and limits see it: these are
 * about to be freed. */
void spokei_request_end_orphans(struct spokei_link *link);

/* Frees the memory of a request; NULL is fine. */
void spokei_request_free(struct spoke_request *request);

/* --- calls made for a request, its inner calls */

/* Returns the engine of a request. Any thread. */
struct spoke_engine *spokei_request_engine(const struct spoke_request *request);

/* Returns whether the answer has not reached the loop yet. */
bool spokei_request_waits(const struct spoke_request *request);

/* Links an inner call to a request that waits for its answer. use->over() is called if the request
 * is abandoned first; the answer ends the use, and calls use->left(). */
void spokei_request_join(struct spoke_request *request, struct spokei_use *use);

/* The mark of a request: memory in which a filter keeps what it knows of the request. It is freed
 * with the request, so a handler on the pool may read it as long as it has the request. Returns the
 * mark, with the content of the last request that used the same memory; NULL: there is none. Any
 * thread. */
void *spokei_request_mark(const struct spoke_request *request);

/* Returns the mark. The first time it is allocated with `size` bytes, all zero, always the same
 * number; NULL: no memory. */
void *spokei_request_make_mark(const struct spoke_request *seen, size_t size);

#endif
