/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves requests: from the message to the handler, and from the handler's answer to the
 * connection. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_SERVE_REQUEST_H
#define SPOKEI_CLUSTER_SERVE_REQUEST_H

#include <spoke/provider.h>

struct spoke_request;
struct spokei_conn;
struct spokei_filters;
struct spokei_link;
struct spokei_message;
struct spokei_routes;

/* Serves a request of a connection: finds the handler and runs it, or refuses. *spare: memory of a
 * request that was answered, for the next; or NULL. */
void spokei_request_serve(struct spokei_routes *services, const struct spokei_filters *filters,
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

/* The methods that every service has; the argument of their handlers is the service. "$echo"
 * replies with its argument, as Dubbo's EchoFilter does; "$methods" with the names of the service's
 * methods; "$token" with nil, if a filter takes the token that is its argument, or needs none.
 */
#define SPOKEI_REQUEST_COMMONS 3u
extern const struct spoke_handler spokei_request_commons[SPOKEI_REQUEST_COMMONS];

/* The methods of the service that describes a provider: its services, and an OpenAPI document. */
extern const struct spoke_handler spokei_request_about[2];

#endif
