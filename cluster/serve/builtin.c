/* SPDX-License-Identifier: Apache-2.0 */
/* The methods that spoke itself serves: those of every service, and the service that describes a
 * provider, which lists its services and writes an OpenAPI document. */
#include "cluster/serve/parts.h"
#include "cluster/serve/routes.h"

#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/wire/http/http.h"

#define OTHER "*" /* stands for all other methods */

static void key(struct spoke_builder *builder, const char *name)
{
	spoke_pack_text(builder, name);
}

static void text(struct spoke_builder *builder, const char *name, const char *value)
{
	key(builder, name);
	spoke_pack_text(builder, value);
}

/* Returns the version and the group in the key of a service, or empty spans. */
static void split_key(const struct spokei_service *service, struct spoke_span *ret_version,
		      struct spoke_span *ret_group)
{
	const char *version = (const char *)service->key.data + service->name.len + 1;
	const char *end = (const char *)service->key.data + service->key.len;
	const char *zero = memchr(version, '\0', (size_t)(end - version));

	SPOKE_ASSERT(zero != NULL);
	*ret_version = (struct spoke_span){ version, (size_t)(zero - version) };
	*ret_group = (struct spoke_span){ zero + 1, (size_t)(end - zero - 1) };
}

/* Keeps a copy of the OpenAPI document until a service is added, if there is memory. */
static void keep_openapi(struct spokei_routes *services, struct spoke_value document)
{
	services->openapi = spokei_alloc(services->engine->env, 1, document.len);
	services->openapi_len = document.len;
	if (services->openapi)
		memcpy(services->openapi, document.data, document.len);
}

/* Answers with the packed value; `keep`: it is the OpenAPI document of these services. */
static void finish(struct spoke_request *request, struct spoke_builder *builder,
		   struct spokei_routes *keep)
{
	struct spoke_value value;
	int error = spoke_builder_finish_value(builder, &value);

	if (error == SPOKE_OK && keep)
		keep_openapi(keep, value);
	if (error)
		spokei_request_unsendable(request, error);
	else
		spoke_reply(request, value);
	spoke_builder_fini(builder);
}

/* --- methods that every service has; the argument of their handlers is the service */

/* Replies with the argument, as Dubbo's EchoFilter does. */
static void reply_echo(struct spoke_request *request, void *service)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value;

	(void)service;
	if (!spoke_cursor_next(&args, &value))
		value = (struct spoke_value){ NULL, 0 };
	spoke_reply(request, value);
}

/* Packs the names of the service's methods. */
static void pack_methods(struct spoke_builder *builder, const struct spokei_service *service)
{
	size_t count = 0;

	for (size_t i = 0; i < service->count; i++)
		count += !spokei_route_is_common(service->routes[i].method);
	spoke_pack_array(builder, count);
	for (size_t i = 0; i < service->count; i++) {
		struct spoke_span method = service->routes[i].method;

		if (method.len == 0)
			spoke_pack_text(builder, OTHER);
		else if (!spokei_route_is_common(method))
			spoke_pack_str(builder, method.data, method.len);
	}
}

static void reply_methods(struct spoke_request *request, void *arg)
{
	const struct spokei_service *service = arg;
	struct spoke_builder builder;

	spoke_builder_init(&builder, service->env, NULL);
	pack_methods(&builder, service);
	finish(request, &builder, NULL);
}

/* Runs only if a filter takes the token that is the argument, or needs none. */
static void reply_token(struct spoke_request *request, void *service)
{
	(void)service;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

const struct spoke_handler spokei_builtin_methods[SPOKEI_BUILTIN_METHODS] = {
	{ .method = "$echo", .handle = reply_echo, .flags = SPOKE_HANDLER_SAFE },
	{ .method = "$methods", .handle = reply_methods, .flags = SPOKE_HANDLER_SAFE },
	{ .method = "$token", .handle = reply_token },
};

/* --- the list of services */

static void pack_service(struct spoke_builder *builder, const struct spokei_service *service)
{
	struct spoke_span version;
	struct spoke_span group;

	split_key(service, &version, &group);
	spoke_pack_map(builder, 2u + (version.len > 0) + (group.len > 0));
	key(builder, "service");
	spoke_pack_str(builder, service->name.data, service->name.len);
	if (version.len > 0) {
		key(builder, "version");
		spoke_pack_str(builder, version.data, version.len);
	}
	if (group.len > 0) {
		key(builder, "group");
		spoke_pack_str(builder, group.data, group.len);
	}
	key(builder, "methods");
	pack_methods(builder, service);
}

static void reply_services(struct spoke_request *request, void *arg)
{
	const struct spokei_routes *services = arg;
	const struct spokei_service *service = NULL;
	struct spoke_builder builder;
	size_t count = 0;

	while ((service = spokei_routes_next(services, service)) != NULL)
		count++;
	spoke_builder_init(&builder, services->engine->env, NULL);
	spoke_pack_array(&builder, count);
	while ((service = spokei_routes_next(services, service)) != NULL)
		pack_service(&builder, service);
	finish(request, &builder, NULL);
}

/* --- the OpenAPI document */

/* Another version or group of a service has the same paths, each of which is listed once. */
static bool is_path(const struct spokei_routes *services, const struct spokei_route *route)
{
	const struct spokei_service *other = NULL;
	struct spoke_span name = route->service->name;

	if (route->method.len == 0 || spokei_route_is_common(route->method))
		return false;
	while ((other = spokei_routes_next(services, other)) != NULL && other != route->service) {
		if (other->name.len == name.len &&
		    memcmp(other->name.data, name.data, name.len) == 0 &&
		    spokei_map_get(&other->methods, route->method.data, route->method.len))
			return false;
	}
	return true;
}

static size_t count_paths(const struct spokei_routes *services)
{
	const struct spokei_service *service = NULL;
	size_t count = 0;

	while ((service = spokei_routes_next(services, service)) != NULL) {
		for (size_t i = 0; i < service->count; i++)
			count += is_path(services, &service->routes[i]);
	}
	return count;
}

/* Packs {"application/json":{"schema":{...}}} up to the schema, which follows. */
static void open_content(struct spoke_builder *builder)
{
	key(builder, "content");
	spoke_pack_map(builder, 1);
	key(builder, "application/json");
	spoke_pack_map(builder, 1);
	key(builder, "schema");
}

static void pack_responses(struct spoke_builder *builder)
{
	key(builder, "responses");
	spoke_pack_map(builder, 2);
	key(builder, "200");
	spoke_pack_map(builder, 2);
	text(builder, "description", "the result");
	open_content(builder);
	spoke_pack_map(builder, 0);
	key(builder, "default");
	spoke_pack_map(builder, 2);
	text(builder, "description", "an error");
	open_content(builder);
	spoke_pack_map(builder, 1);
	text(builder, "$ref", "#/components/schemas/Error");
}

static void pack_parameter(struct spoke_builder *builder, const char *name, struct spoke_span only)
{
	spoke_pack_map(builder, 4);
	text(builder, "name", name);
	text(builder, "in", "header");
	key(builder, "required");
	spoke_pack_bool(builder, only.len > 0);
	key(builder, "schema");
	spoke_pack_map(builder, only.len > 0 ? 2 : 1);
	text(builder, "type", "string");
	if (only.len == 0)
		return;
	key(builder, "const");
	spoke_pack_str(builder, only.data, only.len);
}

static void pack_parameters(struct spoke_builder *builder, const struct spokei_service *service)
{
	struct spoke_span version;
	struct spoke_span group;

	split_key(service, &version, &group);
	key(builder, "parameters");
	spoke_pack_array(builder, 1u + (version.len > 0) + (group.len > 0));
	pack_parameter(builder, "Spoke-Timeout", (struct spoke_span){ NULL, 0 });
	if (version.len > 0)
		pack_parameter(builder, "Spoke-Version", version);
	if (group.len > 0)
		pack_parameter(builder, "Spoke-Group", group);
}

static void pack_operation(struct spoke_builder *builder, const struct spokei_route *route,
			   const char *verb)
{
	bool has_body = strcmp(verb, "post") == 0;

	key(builder, verb);
	spoke_pack_map(builder, has_body ? 4 : 3);
	key(builder, "tags");
	spoke_pack_array(builder, 1);
	spoke_pack_str(builder, route->service->name.data, route->service->name.len);
	pack_parameters(builder, route->service);
	if (has_body) {
		key(builder, "requestBody");
		spoke_pack_map(builder, 2);
		text(builder, "description", "the arguments in an array; or the only one");
		open_content(builder);
		spoke_pack_map(builder, 0);
	}
	pack_responses(builder);
}

/* Packs "/service/method", with its length known before. */
static void pack_path(struct spoke_builder *builder, const struct spokei_route *route)
{
	char path[2 * SPOKEI_SERVICE_KEY_MAX + 2];
	size_t name_len = route->service->name.len;

	path[0] = '/';
	memcpy(path + 1, route->service->name.data, name_len);
	path[name_len + 1] = '/';
	memcpy(path + name_len + 2, route->method.data, route->method.len);
	spoke_pack_str(builder, path, name_len + 2 + route->method.len);
}

static void pack_route(struct spoke_builder *builder, const struct spokei_route *route)
{
	bool safe = route->flags & SPOKE_HANDLER_SAFE;

	pack_path(builder, route);
	spoke_pack_map(builder, safe ? 2 : 1);
	pack_operation(builder, route, "post");
	if (safe)
		pack_operation(builder, route, "get");
}

static void pack_property(struct spoke_builder *builder, const char *name, const char *type)
{
	key(builder, name);
	spoke_pack_map(builder, 1);
	text(builder, "type", type);
}

static const struct {
	const char *name;
	const char *type;
	bool always;
} error_fields[] = {
#define ERROR_FIELD(name, type, always, value) { name, #type, always },
	SPOKEI_HTTP_ERROR_FIELDS(ERROR_FIELD)
#undef ERROR_FIELD
};
#define ERROR_FIELDS (sizeof(error_fields) / sizeof(error_fields[0]))

static void pack_error_schema(struct spoke_builder *builder)
{
	uint32_t required = 0;

	key(builder, "components");
	spoke_pack_map(builder, 1);
	key(builder, "schemas");
	spoke_pack_map(builder, 1);
	key(builder, "Error");
	spoke_pack_map(builder, 3);
	text(builder, "type", "object");
	key(builder, "properties");
	spoke_pack_map(builder, ERROR_FIELDS);
	for (size_t i = 0; i < ERROR_FIELDS; i++) {
		pack_property(builder, error_fields[i].name, error_fields[i].type);
		required += error_fields[i].always;
	}
	key(builder, "required");
	spoke_pack_array(builder, required);
	for (size_t i = 0; i < ERROR_FIELDS; i++)
		if (error_fields[i].always)
			spoke_pack_text(builder, error_fields[i].name);
}

static void pack_openapi(struct spoke_builder *builder, const struct spokei_routes *services)
{
	const struct spokei_service *service = NULL;

	spoke_pack_map(builder, 4);
	text(builder, "openapi", "3.1.0");
	key(builder, "info");
	spoke_pack_map(builder, 2);
	text(builder, "title", "Services of this provider");
	text(builder, "version", "1");
	key(builder, "paths");
	spoke_pack_map(builder, count_paths(services));
	while ((service = spokei_routes_next(services, service)) != NULL) {
		for (size_t i = 0; i < service->count; i++) {
			if (is_path(services, &service->routes[i]))
				pack_route(builder, &service->routes[i]);
		}
	}
	pack_error_schema(builder);
}

static void reply_openapi(struct spoke_request *request, void *arg)
{
	struct spokei_routes *services = arg;
	struct spoke_value kept = { services->openapi, services->openapi_len };
	struct spoke_builder builder;

	if (kept.data) {
		spoke_reply(request, kept);
		return;
	}
	spoke_builder_init(&builder, services->engine->env, NULL);
	pack_openapi(&builder, services);
	finish(request, &builder, services);
}

const struct spoke_handler spokei_builtin_about[SPOKEI_BUILTIN_ABOUT] = {
	{ .method = SPOKEI_HTTP_SERVICES, .handle = reply_services, .flags = SPOKE_HANDLER_SAFE },
	{ .method = SPOKEI_HTTP_OPENAPI, .handle = reply_openapi, .flags = SPOKE_HANDLER_SAFE },
};
