/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of routes: service, version, group and method of a request lead to its handler, before
 * its arguments are read. Services are only added, so a route stays valid. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_SERVE_ROUTES_H
#define SPOKEI_CLUSTER_SERVE_ROUTES_H

#include "core/memory/map.h"

#include <spoke/value.h>

#define SPOKEI_SERVICE_KEY_MAX 1024u /* bytes of name, version and group, with two separators */

struct spoke_engine;
struct spoke_handler;
struct spoke_request;
struct spoke_service_options;
struct spokei_access_control;
struct spokei_callers;
struct spokei_credentials;
struct spokei_dedupe_method;
struct spokei_figures;
struct spokei_limit;
struct spokei_message;
struct spokei_service;

/* A flag of routes besides those of their handlers: answers may be held for a journal. */
#define SPOKEI_ROUTE_HOLDS 0x8000u

typedef void (*spokei_handle_fn)(struct spoke_request *request, void *arg);

/* A method that is served. */
struct spokei_route {
	const struct spokei_service *service;
	struct spoke_span method; /* empty: all methods without a route of their own */
	spokei_handle_fn handle;
	void *arg;
	unsigned flags;
	struct spokei_figures *figures;      /* the engine's */
	struct spokei_limit *limit;          /* NULL: none */
	struct spokei_dedupe_method *dedupe; /* NULL: it has no limit either */
	uint32_t executes;                   /* the limits in its struct spoke_handler */
	uint32_t per_second;
};

struct spokei_service {
	const struct spoke_env *env;
	struct spoke_list node;
	struct spoke_span key; /* name, version, group with zeros between */
	struct spoke_span name;
	struct spokei_map methods;        /* of struct spokei_route, by name */
	const struct spokei_route *other; /* for all other methods, or NULL */
	struct spokei_route *routes;
	size_t count;
	struct spokei_callers *callers;      /* its own list; NULL: none */
	struct spokei_callers *next_callers; /* prepared by a reload; else NULL */
	/* Credentials of its callers; NULL: those that the provider asks for. */
	const struct spokei_credentials *credentials;
	size_t listed;     /* number of the provider's addresses at which it is published */
	uint64_t local_id; /* of the host whose path is published with its ports; 0: none */
	struct spokei_limit *limits;          /* of the routes that have one ... */
	struct spokei_admission *admissions;  /* ... with what these need for "auto" ... */
	struct spokei_dedupe_method *dedupes; /* ... and what they remember, if all have one */
	size_t limit_count;
	size_t size; /* bytes of the service with its routes and texts */
};

/* Is this the name of a method that every service has? */
static inline bool spokei_route_is_common(struct spoke_span method)
{
	return method.len > 0 && *(const char *)method.data == '$';
}

struct spokei_routes {
	struct spoke_engine *engine;
	struct spokei_map by_key;
	struct spoke_list all; /* in the order they were added */
	/* Each route has a limit, and may recognise repeats, which may be set later. */
	bool limits_all;
	bool holds_all;           /* ... and answers may be held */
	const char *default_name; /* of requests without a service; NULL: the first. Borrowed */
	struct spokei_service *about_service; /* which describes all others; NULL: not made yet */
	unsigned char
		*openapi; /* the value of the document; NULL: it is made when it is asked for */
	size_t openapi_len;
	/* Decides whether a caller may know that something is not served. NULL: every one may. */
	const struct spokei_access_control *access;
};

/* Returns the service that was added after this one; NULL is before the first, and after the last.
 */
static inline struct spokei_service *spokei_routes_next(const struct spokei_routes *services,
							const struct spokei_service *before)
{
	struct spoke_list *node = before ? before->node.next : services->all.next;

	return node == &services->all ? NULL
				      : spoke_container_of(node, struct spokei_service, node);
}

void spokei_routes_init(struct spokei_routes *services, struct spoke_engine *engine,
			const char *default_name);
void spokei_routes_fini(struct spokei_routes *services);

/* As spoke_provider_add(). Writes the reason to `why` if it returns EINVAL, EEXIST or ETOOLARGE. */
SPOKE_MUST_USE int spokei_routes_add(struct spokei_routes *services,
				     const struct spoke_service_options *options,
				     const struct spoke_handler *handlers, size_t count, char *why,
				     size_t size);

/* Makes the route of what providers push to a consumer of the service. Returns 0 or SPOKE_ENOMEM.
 */
SPOKE_MUST_USE int spokei_route_of_pushes(struct spoke_engine *engine, const char *service,
					  spokei_handle_fn handle, void *arg,
					  struct spokei_route *ret_route);

/* Finds the route of a request; NULL: there is none. *ret_service: does the service exist? */
const struct spokei_route *spokei_routes_find(struct spokei_routes *services,
					      const struct spokei_message *message,
					      bool *ret_service);

#endif
