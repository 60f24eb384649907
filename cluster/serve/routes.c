/* SPDX-License-Identifier: Apache-2.0 */
/* The table of services and methods: finds the handler of a request. */
#include "cluster/serve/routes.h"
#include "cluster/serve/parts.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/engine/figures.h"

#include "cluster/filter/admission.h"
#include "cluster/filter/dedupe_table.h"
#include "cluster/filter/limit.h"
#include "transport/trust/caller.h"
#include "transport/wire/http/http.h"
#include "transport/wire/message.h"

#include <spoke/provider.h>

#include <stdarg.h>
#include <stdio.h>

#define HANDLERS_MAX 65536u
#define FLAGS (SPOKE_HANDLER_POOL | SPOKE_HANDLER_SAFE)
#define SHOWN 64u /* bytes of a name in a reason */

/* --- keys */

static size_t put(unsigned char *key, size_t at, struct spoke_span part)
{
	if (part.len)
		memcpy(key + at, part.data, part.len);
	return at + part.len;
}

/* Writes the key of a service. Returns its length; 0: it is too long for any service here. */
static size_t make_key(unsigned char key[SPOKEI_SERVICE_KEY_MAX], struct spoke_span name,
		       struct spoke_span version, struct spoke_span group)
{
	size_t at;

	if (name.len >= SPOKEI_SERVICE_KEY_MAX || version.len >= SPOKEI_SERVICE_KEY_MAX ||
	    group.len >= SPOKEI_SERVICE_KEY_MAX ||
	    name.len + version.len + group.len + 2 > SPOKEI_SERVICE_KEY_MAX)
		return 0;
	at = put(key, 0, name);
	key[at++] = '\0';
	at = put(key, at, version);
	key[at++] = '\0';
	return put(key, at, group);
}

/* --- refusing */

/* Where the reason is written for which a service is refused. */
struct why {
	char service[SHOWN]; /* its name, printable */
	char *text;
	size_t size;
};

/* Writes the reason of an error. Returns the error. */
SPOKEI_PRINTF(3, 4)
static int refuse(const struct why *why, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why->text, why->size, format, args);
	va_end(args);
	return error;
}

static int refuse_long(const struct why *why)
{
	return refuse(why, SPOKE_ETOOLARGE,
		      "the names of %s are too long: version and group with it, and a method, have "
		      "at most %u bytes",
		      why->service, SPOKEI_SERVICE_KEY_MAX - 2);
}

static int refuse_method(const struct why *why, int error, const char *method, const char *reason)
{
	char shown[SHOWN];

	(void)spokei_log_escape(shown, sizeof(shown), method ? method : "",
				method ? strlen(method) : 0);
	return refuse(why, error, "method \"%s\" of %s %s", shown, why->service, reason);
}

/* --- adding */

static struct spoke_span text_of(const char *text)
{
	return spokei_span(text ? text : "", text ? strlen(text) : 0);
}

static bool has_limit(const struct spoke_handler *handler)
{
	return handler->executes > 0 || handler->per_second > 0;
}

static int check_handler(const struct spoke_handler *handlers, size_t at, const struct why *why)
{
	const struct spoke_handler *handler = &handlers[at];
	const char *method = handler->method;

	if (method && *method == '\0')
		return refuse(why, SPOKE_EINVAL,
			      "handler %zu of %s has an empty name; NULL: all others", at,
			      why->service);
	if (handler->handle == NULL)
		return refuse_method(why, SPOKE_EINVAL, method, "has no function");
	if (handler->flags & ~(unsigned)FLAGS)
		return refuse_method(why, SPOKE_EINVAL, method, "has unknown flags");
	return method && strlen(method) >= SPOKEI_SERVICE_KEY_MAX ? refuse_long(why) : SPOKE_OK;
}

static int check_handlers(const struct spoke_handler *handlers, size_t count, const struct why *why,
			  size_t *ret_texts, size_t *ret_limits)
{
	size_t texts = 0;
	size_t limits = 0;

	if (count > HANDLERS_MAX || (count > 0 && handlers == NULL))
		return refuse(why, SPOKE_EINVAL, "%s has %zu handlers at no address, or too many",
			      why->service, count);
	for (size_t i = 0; i < count; i++) {
		struct spoke_span method = text_of(handlers[i].method);
		int error = check_handler(handlers, i, why);

		if (error)
			return error;
		texts += method.len;
		limits += has_limit(&handlers[i]);
	}
	*ret_texts = texts;
	*ret_limits = limits;
	return SPOKE_OK;
}

/* Returns the figures of a route, NULL without memory. Those of methods that every service has are
 * for all services. */
static struct spokei_figures *figures_of(struct spoke_engine *engine, struct spoke_span service,
					 struct spoke_span method)
{
	if (method.len == 0)
		return spokei_figures_or_other(engine, SPOKEI_FIGURES_REQUESTS, service,
					       text_of("*"));
	if (spokei_route_is_common(method))
		service = text_of("*");
	return spokei_figures_or_other(engine, SPOKEI_FIGURES_REQUESTS, service, method);
}

int spokei_route_of_pushes(struct spoke_engine *engine, const char *service,
			   spokei_handle_fn handle, void *arg, struct spokei_route *ret_route)
{
	*ret_route = (struct spokei_route){
		.handle = handle,
		.arg = arg,
		.figures = figures_of(engine, text_of(service), text_of("")),
	};
	return ret_route->figures ? SPOKE_OK : SPOKE_ENOMEM;
}

static int add_route(struct spokei_service *service, const struct spoke_handler *handler,
		     const struct spokei_routes *services, bool limited, const struct why *why,
		     unsigned char **texts)
{
	struct spokei_route *route = &service->routes[service->count];
	struct spoke_span method = text_of(handler->method);
	int error;

	*route = (struct spokei_route){
		.service = service,
		.method = spokei_span(*texts, method.len),
		.handle = handler->handle,
		.arg = handler->arg,
		.flags = handler->flags,
		.figures = figures_of(services->engine, service->name, method),
	};
	if (route->figures == NULL)
		return SPOKE_ENOMEM;
	service->count++;
	route->executes = handler->executes;
	route->per_second = handler->per_second;
	if (has_limit(handler) || limited) {
		if (limited) {
			route->dedupe = &service->dedupes[service->limit_count];
			route->dedupe->route = route;
			if (services->holds_all)
				route->flags |= SPOKEI_ROUTE_HOLDS;
		}
		route->limit = &service->limits[service->limit_count];
		spokei_limit_init(route->limit, 0, 0);
		route->limit->room = &service->admissions[service->limit_count++];
		spokei_limit_change(route->limit, handler->executes, handler->per_second);
	}
	if (method.len == 0) {
		if (service->other)
			return refuse(why, SPOKE_EEXIST,
				      "%s has two handlers for all other methods", why->service);
		service->other = route;
		return SPOKE_OK;
	}
	memcpy(*texts, method.data, method.len);
	*texts += method.len;
	error = spokei_map_add(&service->methods, route->method.data, method.len, route);
	return error == SPOKE_EEXIST ? refuse_method(why, error, handler->method, "is there twice")
				     : error;
}

/* Adds what every service has, unless it has a handler of its own for that. */
static int add_commons(struct spokei_service *service, const struct spokei_routes *services,
		       const struct why *why, unsigned char **texts)
{
	int error = SPOKE_OK;

	for (size_t i = 0; i < SPOKEI_BUILTIN_METHODS && error == SPOKE_OK; i++) {
		struct spoke_handler common = spokei_builtin_methods[i];

		common.arg = service;
		if (spokei_map_get(&service->methods, common.method, strlen(common.method)) == NULL)
			error = add_route(service, &common, services, false, why, texts);
	}
	return error;
}

static int add_routes(struct spokei_service *service, const struct spokei_routes *services,
		      const struct spoke_handler *handlers, size_t count, const struct why *why,
		      unsigned char *texts)
{
	int error = SPOKE_OK;

	for (size_t i = 0; i < count && error == SPOKE_OK; i++)
		error = add_route(service, &handlers[i], services, services->limits_all, why,
				  &texts);
	return error ? error : add_commons(service, services, why, &texts);
}

static void free_service(struct spokei_service *service)
{
	spokei_callers_free(service->env, service->callers);
	spokei_map_fini(&service->methods);
	spokei_free(service->env, service, 1, service->size);
}

/* Makes a service that is not in the table. */
static int make_service(const struct spokei_routes *services,
			const struct spoke_service_options *options,
			const struct spoke_handler *handlers, size_t count, const struct why *why,
			struct spokei_service **ret_service)
{
	struct spoke_span name = text_of(options->name);
	unsigned char key[SPOKEI_SERVICE_KEY_MAX];
	struct spokei_service *service;
	unsigned char *texts;
	size_t texts_len = 0;
	size_t limits = 0;
	size_t dedupes = services->limits_all ? count : 0;
	size_t key_len;
	size_t size;
	int error = check_handlers(handlers, count, why, &texts_len, &limits);

	if (error)
		return error;
	if (name.len == 0)
		return refuse(why, SPOKE_EINVAL, "it has no name; write e.g. demo.EchoService");
	key_len = make_key(key, name, text_of(options->version), text_of(options->group));
	if (key_len == 0)
		return refuse_long(why);
	if (spokei_map_get(&services->by_key, key, key_len))
		return refuse(why, SPOKE_EEXIST,
			      "%s is there already, with the same version and group", why->service);
	if (services->limits_all)
		limits = count;
	for (size_t i = 0; i < SPOKEI_BUILTIN_METHODS; i++)
		texts_len += strlen(spokei_builtin_methods[i].method);
	size = sizeof(*service) + (count + SPOKEI_BUILTIN_METHODS) * sizeof(struct spokei_route) +
	       limits * (sizeof(struct spokei_limit) + sizeof(struct spokei_admission)) +
	       dedupes * sizeof(struct spokei_dedupe_method) + key_len + texts_len;
	service = spokei_alloc(services->engine->env, 1, size);
	if (service == NULL)
		return SPOKE_ENOMEM;
	service->env = services->engine->env;
	service->size = size;
	service->routes = (struct spokei_route *)(void *)(service + 1);
	service->limits = (struct spokei_limit *)(void *)(service->routes + count +
							  SPOKEI_BUILTIN_METHODS);
	service->admissions = (struct spokei_admission *)(void *)(service->limits + limits);
	service->dedupes = (struct spokei_dedupe_method *)(void *)(service->admissions + limits);
	texts = (unsigned char *)(service->dedupes + dedupes);
	memcpy(texts, key, key_len);
	service->key = spokei_span(texts, key_len);
	service->name = spokei_span(texts, name.len);
	spokei_map_init(&service->methods, services->engine->env);
	error = add_routes(service, services, handlers, count, why, texts + key_len);
	if (error)
		free_service(service);
	else
		*ret_service = service;
	return error;
}

static void drop_openapi(struct spokei_routes *services)
{
	spokei_free(services->engine->env, services->openapi, 1, services->openapi_len);
	services->openapi = NULL;
}

int spokei_routes_add(struct spokei_routes *services, const struct spoke_service_options *options,
		      const struct spoke_handler *handlers, size_t count, char *text, size_t size)
{
	struct why why = { .text = text, .size = size };
	struct spokei_service *service;
	int error;

	(void)spokei_log_escape_end(why.service, sizeof(why.service),
				    options->name ? options->name : "",
				    options->name ? strlen(options->name) : 0);
	error = make_service(services, options, handlers, count, &why, &service);
	if (error)
		return error;
	error = spokei_map_add(&services->by_key, service->key.data, service->key.len, service);
	if (error) {
		free_service(service);
		return error;
	}
	spokei_list_append(&services->all, &service->node);
	drop_openapi(services);
	return SPOKE_OK;
}

/* --- finding */

static const struct spokei_service *first_named(const struct spokei_routes *services,
						struct spoke_span name)
{
	const struct spokei_service *service = NULL;

	while ((service = spokei_routes_next(services, service)) != NULL && name.len > 0 &&
	       (service->name.len != name.len ||
		memcmp(service->name.data, name.data, name.len) != 0))
		continue;
	return service;
}

static const struct spokei_service *find_service(const struct spokei_routes *services,
						 const struct spokei_message *message)
{
	unsigned char key[SPOKEI_SERVICE_KEY_MAX];
	size_t len;

	if (message->service.len == 0)
		return first_named(services, text_of(services->default_name));
	len = make_key(key, message->service, message->version, message->group);
	return len ? spokei_map_get(&services->by_key, key, len) : NULL;
}

/* Returns the route of a request that describes the provider; NULL: it is none, or there is no
 * memory. The service is made with the first request. */
static const struct spokei_route *find_about(struct spokei_routes *services,
					     const struct spokei_message *message)
{
	static const struct spoke_service_options options = { .name = SPOKEI_HTTP_ABOUT };
	static const struct why unsaid;
	struct spoke_handler handlers[SPOKEI_BUILTIN_ABOUT];

	if (!spokei_span_is(message->service, SPOKEI_HTTP_ABOUT))
		return NULL;
	if (services->about_service == NULL) {
		memcpy(handlers, spokei_builtin_about, sizeof(handlers));
		for (size_t i = 0; i < SPOKEI_BUILTIN_ABOUT; i++)
			handlers[i].arg = services;
		if (make_service(services, &options, handlers, SPOKEI_BUILTIN_ABOUT, &unsaid,
				 &services->about_service))
			return NULL;
	}
	return spokei_map_get(&services->about_service->methods, message->method.data,
			      message->method.len);
}

const struct spokei_route *spokei_routes_find(struct spokei_routes *services,
					      const struct spokei_message *message,
					      bool *ret_service)
{
	const struct spokei_service *service = find_service(services, message);
	const struct spokei_route *route;

	*ret_service = service != NULL;
	if (service == NULL)
		return find_about(services, message);
	route = spokei_map_get(&service->methods, message->method.data, message->method.len);
	if (route == NULL)
		route = service->other;
	return route ? route : find_about(services, message);
}

/* --- life */

void spokei_routes_init(struct spokei_routes *services, struct spoke_engine *engine,
			const char *default_name)
{
	*services = (struct spokei_routes){
		.engine = engine,
		.default_name = default_name,
	};
	spokei_map_init(&services->by_key, engine->env);
	spokei_list_init(&services->all);
}

void spokei_routes_fini(struct spokei_routes *services)
{
	while (!spokei_list_empty(&services->all)) {
		struct spokei_service *service = spoke_container_of(services->all.next,
								    struct spokei_service, node);

		spokei_list_remove(&service->node);
		free_service(service);
	}
	if (services->about_service)
		free_service(services->about_service);
	drop_openapi(services);
	spokei_map_fini(&services->by_key);
}
