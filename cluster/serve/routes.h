/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who serves what: service, version, group and method to a handler, found before arguments are
 * looked at. Services are only added, so what was found stays. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_SERVE_ROUTES_H
#define SPOKEI_CLUSTER_SERVE_ROUTES_H

#include "cluster/filter/limit.h"
#include "core/memory/map.h"
#include "transport/wire/message.h"

#include <spoke/provider.h>

#define SPOKEI_SERVICE_KEY_MAX 1024u /* bytes of name, version and group, with two separators */

struct spokei_service;

/* A method that is served. */
struct spokei_route {
	const struct spokei_service *service;
	struct spoke_span method; /* empty: every other one */
	void (*handle)(struct spoke_request *request, void *arg);
	void *arg;
	unsigned flags;
	struct spokei_limit *limit; /* NULL: none */
	uint32_t executes;          /* as its handler says */
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
	size_t listed; /* at so many places of its provider, the first ones; see registration */
	struct spokei_limit *limits; /* of routes that have one */
	size_t limit_count;
	size_t size; /* of this, with its routes and texts */
};

struct spokei_routes {
	const struct spoke_env *env;
	struct spokei_map by_key;
	struct spoke_list all;    /* in the order they were added */
	bool limits_all;          /* each route has a limit, which may be set later */
	const char *default_name; /* of requests that name none; NULL: the first. Borrowed */
};

void spokei_routes_init(struct spokei_routes *services, const struct spoke_env *env,
			const char *default_name);
void spokei_routes_fini(struct spokei_routes *services);

/* As spoke_provider_add(). */
SPOKE_MUST_USE int spokei_routes_add(struct spokei_routes *services,
				     const struct spoke_service_options *options,
				     const struct spoke_handler *handlers, size_t count);

/* Who serves this request; NULL: nobody. *ret_service: is there such a service at all? */
const struct spokei_route *spokei_routes_find(const struct spokei_routes *services,
					      const struct spokei_message *message,
					      bool *ret_service);

#endif
