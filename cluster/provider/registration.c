/* SPDX-License-Identifier: Apache-2.0 */
/* Publishes the services of a provider at a registry, at each address where it listens. */
#include "cluster/provider/registration.h"

#include "cluster/config/places.h"
#include "cluster/discovery/keeper.h"
#include "cluster/provider/parts.h"
#include "cluster/provider/settings.h"
#include "cluster/serve/access_control.h"
#include "cluster/serve/routes.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "transport/listen/group.h"
#include "transport/trust/caller.h"

#include <spoke/provider.h>

#include <stdio.h>

#define APPLICATION "spoke"
#define MS UINT64_C(1000000)
#define SHOWN 64u /* bytes of a value in events */
#define ADDRESS_TEXT 160u
#define UNIX "unix:"
#define SHM "shm:"
#define ANY_METHOD "*"

/* --- options */

static int refuse(struct spoke_engine *engine, int error, const char *option, const char *value,
		  const char *advice)
{
	char shown[SHOWN];

	(void)spokei_log_escape(shown, sizeof(shown), value, strlen(value));
	spokei_event(engine, error, "option %s, %s: %s", option, shown, advice);
	return error;
}

/* `host` is part of an address, with the brackets of IPv6. */
static bool is_any_place(const char *host, size_t len)
{
	char bare[sizeof("::ffff:0.0.0.0")];
	size_t bracket = len > 0 && *host == '[';

	len -= 2 * bracket;
	if (len == 0 || len >= sizeof(bare))
		return false;
	memcpy(bare, host + bracket, len);
	bare[len] = '\0';
	return spokei_places_is_any(bare);
}

static bool is_socket(const char *address)
{
	return strncmp(address, UNIX, strlen(UNIX)) == 0;
}

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

static int check_options(struct spoke_engine *engine, const struct spoke_provider_options *options,
			 const struct spokei_settings *keys)
{
	const char *application = spokei_settings_text(keys, SPOKEI_KEY_APPLICATION);

	if (spokei_settings_text(keys, SPOKEI_KEY_REGISTRY_URL) == NULL && options->registry_kind) {
		return refuse(engine, SPOKE_EINVAL, "registry_kind", options->registry_kind->scheme,
			      "set the registry's URL too");
	}
	if (application && !is_plain(application)) {
		return refuse(engine, SPOKE_EINVAL, "application", application,
			      "contains control characters");
	}
	if (options->admin && *options->admin && !is_socket(options->admin) &&
	    !spokei_provider_url_is_admin(options->admin)) {
		return refuse(engine, SPOKE_EINVAL, "admin", options->admin,
			      "use HOST:PORT from spoke_admin_address(), at most 63 bytes, or "
			      "unix:PATH, which is not published");
	}
	return SPOKE_OK;
}

static char to_small(char letter)
{
	return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

/* Copies the host to publish, without the brackets of IPv6, in small letters. */
static void copy_advertise(struct spokei_registration *registration, const char *host)
{
	size_t bracket = *host == '[';
	size_t len = strlen(host) - 2 * bracket;

	for (size_t i = 0; i < len; i++)
		registration->advertise[i] = to_small(host[bracket + i]);
	registration->advertise[len] = '\0';
}

/* --- the path beside the ports
 *
 * The path of a unix socket that is published together with the provider's ports, for consumers on
 * the same host. Such a path has no entry of its own at the registry: it means nothing on other
 * hosts, and consumers here would see two providers.
 */

struct local {
	size_t index;            /* of the address in the group of listeners */
	uint64_t host_id;        /* of this process; 0: no path is published with ports */
	char text[ADDRESS_TEXT]; /* e.g. "unix:/run/demo.sock" */
};

/* Returns whether consumers can connect to the address by its path, in plain bytes. Names that
 * begin with "@" belong to no view of files. */
static bool is_usable(const struct spoke_provider *provider, size_t index, const char *text)
{
	return text[strlen(UNIX)] == '/' &&
	       !(spokei_listen_group_marks(provider->listeners, index) &
		 (SPOKEI_PROVIDER_TLS | SPOKEI_LISTENER_SHM));
}

/* A caller that is let in by its address over TCP would be refused at the unix socket. */
static bool asks_for_addresses(const struct spoke_provider *provider,
			       const struct spokei_service *service)
{
	return spokei_callers_ask_address(provider->access->callers) ||
	       spokei_callers_ask_address(service->callers);
}

/*
 * Finds the path for a service, or none: the provider listens at a port and at an absolute path
 * where plain bytes are accepted, `local.path` is not off, the identity of the host is known, and
 * no list of callers asks for addresses, which a unix socket has not.
 */
static void find_local(const struct spoke_provider *provider, const struct spokei_service *service,
		       struct local *ret)
{
	const struct spoke_env *env = provider->engine->env;
	size_t count = spokei_listen_group_own(provider->listeners);
	bool has_port = false;
	bool has_path = false;
	uint64_t host_id;

	*ret = (struct local){ .host_id = 0 };
	if (!provider->settings->local_path || env->host_id == NULL ||
	    asks_for_addresses(provider, service))
		return;
	for (size_t i = 0; i < count && !(has_port && has_path); i++) {
		char text[ADDRESS_TEXT];

		env->net->print(env->ctx, spokei_listen_group_address(provider->listeners, i), text,
				sizeof(text));
		if (!is_socket(text)) {
			has_port = true;
		} else if (!has_path && is_usable(provider, i, text)) {
			has_path = true;
			ret->index = i;
			memcpy(ret->text, text, sizeof(text));
		}
	}
	if (!has_port || !has_path)
		return;
	/* A lack of descriptors does not move this process to another host. */
	ret->host_id = env->host_id(env->ctx, &host_id) == 0 ? host_id : service->local_id;
}

/* --- publishing */

/* Reads the address to publish; its texts lie in `text`. */
static void read_place(const struct spokei_registration *registration, char *text,
		       struct spokei_provider_parts *parts)
{
	char *colon = strrchr(text, ':');

	if (is_socket(text)) {
		parts->socket = text + strlen(UNIX);
		return;
	}
	if (strncmp(text, SHM, strlen(SHM)) == 0) {
		parts->socket = text + strlen(SHM);
		parts->shm = true;
		return;
	}
	SPOKE_ASSERT(colon != NULL);
	for (const char *digit = colon + 1; *digit; digit++)
		parts->port = (uint16_t)(10 * parts->port + (*digit - '0'));
	*colon = '\0';
	parts->host = text;
	if (*text == '[') {
		parts->host = text + 1;
		*(colon - 1) = '\0';
	}
	if (*registration->advertise)
		parts->host = registration->advertise;
}

/* Replaces a wildcard in the address of the page by the host that is published. */
static void place_admin(struct spokei_provider_parts *parts, char text[SPOKEI_PROVIDER_URL_ADMIN])
{
	const char *colon = strrchr(parts->admin, ':');
	size_t len = colon ? (size_t)(colon - parts->admin) : 0;
	bool bracket = parts->host && strchr(parts->host, ':');
	int size = -1;

	if (!is_any_place(parts->admin, len))
		return;
	if (parts->host)
		size = snprintf(text, SPOKEI_PROVIDER_URL_ADMIN, "%s%s%s%s", bracket ? "[" : "",
				parts->host, bracket ? "]" : "", colon);
	parts->admin = size > 0 && size < (int)SPOKEI_PROVIDER_URL_ADMIN ? text : "";
}

/* Built-in methods ("$echo") are not published. */
static bool is_published(const struct spokei_route *route)
{
	return route->method.len > 0 && !spokei_route_is_common(route->method);
}

/* Prints the names of all published methods, each with a comma. */
static size_t put_methods(const struct spokei_service *service, char *out)
{
	size_t len = 0;

	for (size_t i = 0; i < service->count; i++) {
		const struct spoke_span method = service->routes[i].method;

		if (!is_published(&service->routes[i]))
			continue;
		if (out) {
			memcpy(out + len, method.data, method.len);
			out[len + method.len] = ',';
		}
		len += method.len + 1;
	}
	return len;
}

/* The texts of a service that a URL contains. */
struct service_texts {
	char key[SPOKEI_SERVICE_KEY_MAX + 1]; /* service, version and group, a NUL after each */
	char *methods;                        /* NULL: any */
	size_t methods_size;
};

static int print_service(const struct spoke_env *env, const struct spokei_service *service,
			 struct service_texts *texts, struct spokei_provider_parts *parts)
{
	size_t len = put_methods(service, NULL);

	memcpy(texts->key, service->key.data, service->key.len);
	texts->key[service->key.len] = '\0';
	parts->service = texts->key;
	parts->version = parts->service + strlen(parts->service) + 1;
	parts->group = parts->version + strlen(parts->version) + 1;
	parts->methods = ANY_METHOD;
	/* A longer list would leave too little room for the rest of the URL. */
	if (service->other || len == 0 || len > SPOKE_URL_MAX / 4)
		return SPOKE_OK;
	texts->methods = spokei_alloc(env, 1, len);
	if (texts->methods == NULL)
		return SPOKE_ENOMEM;
	texts->methods_size = len;
	(void)put_methods(service, texts->methods);
	texts->methods[len - 1] = '\0';
	parts->methods = texts->methods;
	return SPOKE_OK;
}

/* Prints the address number `index`. */
static void print_address(struct spokei_registration *registration, size_t index, char *place,
			  char *admin, struct spokei_provider_parts *parts)
{
	spokei_listen_group_print(registration->provider->listeners, index, place, ADDRESS_TEXT);
	read_place(registration, place, parts);
	place_admin(parts, admin);
}

/* Decides whether an error of the keeper is to be tried again; the others are logged once. */
static int sort_error(struct spokei_registration *registration, const char *service, int error)
{
	if (error == SPOKE_OK || error == SPOKE_ENOMEM || error == SPOKE_ECLOSED)
		return error;
	if (!registration->full)
		(void)refuse(registration->provider->engine, error, "registry", service,
			     error == SPOKE_ELIMIT ? "too many services and addresses"
						   : "the name cannot be published");
	registration->full = true;
	return SPOKE_OK;
}

/* Publishes the service at the next address. */
static int publish(struct spokei_registration *registration, const struct spokei_service *service,
		   const struct local *local)
{
	const struct spoke_provider *provider = registration->provider;
	const struct spoke_env *env = provider->engine->env;
	struct spokei_provider_parts parts = {
		.admin = registration->admin,
		.application = registration->application,
		.tag = spokei_settings_text(&provider->settings->keys, SPOKEI_KEY_TAG),
		.token = spokei_access_of(provider->access, service)->token,
		.weight = registration->weight,
		.warmup_ms = registration->warmup_ms,
	};
	struct service_texts texts = { .methods = NULL };
	struct spokei_buffer url;
	char place[ADDRESS_TEXT];
	char admin[SPOKEI_PROVIDER_URL_ADMIN];
	const char *text;
	int error = print_service(env, service, &texts, &parts);

	if (error)
		return error;
	if (registration->born_ms == 0)
		registration->born_ms = env->wall(env->ctx) / MS;
	parts.timestamp_ms = registration->born_ms;
	print_address(registration, service->listed, place, admin, &parts);
	if (parts.host) {
		parts.local = local->text;
		parts.host_id = local->host_id;
	}
	spokei_buffer_init(&url, env, SIZE_MAX);
	error = spokei_provider_url_format(&parts, &url);
	text = (const char *)spokei_buffer_data(&url);
	if (error == 0 && local->host_id != 0 && local->index == service->listed)
		error = spokei_keeper_withdraw(registration->keeper, parts.service, text);
	else if (error == 0)
		error = spokei_keeper_publish(registration->keeper, parts.service, text);
	spokei_buffer_fini(&url);
	spokei_free(env, texts.methods, 1, texts.methods_size);
	return sort_error(registration, texts.key, error);
}

static int publish_at_all(struct spokei_registration *registration, struct spokei_service *service)
{
	const struct spoke_provider *provider = registration->provider;
	struct local local;
	int error = SPOKE_OK;

	find_local(provider, service, &local);
	service->local_id = local.host_id;
	while (service->listed < spokei_listen_group_own(provider->listeners) && error == 0) {
		error = publish(registration, service, &local);
		if (error == 0)
			service->listed++;
	}
	return error;
}

static void publish_again(struct spoke_alarm *alarm)
{
	struct spokei_registration *registration =
		spoke_container_of(alarm, struct spokei_registration, retry);

	spokei_run_soon(alarm->engine, &registration->publish);
}

static void publish_all(struct spokei_task *task)
{
	struct spokei_registration *registration =
		spoke_container_of(task, struct spokei_registration, publish);
	const struct spoke_provider *provider = registration->provider;
	struct spoke_engine *engine = provider->engine;
	struct spokei_service *service = NULL;
	int error = SPOKE_OK;

	if (registration->closed)
		return;
	while (error == SPOKE_OK &&
	       (service = spokei_routes_next(provider->services, service)) != NULL)
		error = publish_at_all(registration, service);
	if (error == SPOKE_ENOMEM) {
		error = spoke_alarm_after(engine, &registration->retry,
					  spokei_settings_number(&provider->settings->keys,
								 SPOKEI_KEY_REGISTRY_RETRY_PERIOD),
					  publish_again);
	}
	if (error && error != SPOKE_ECLOSED)
		spokei_event(engine, error,
			     "registry: no memory and no timer to publish; add a service to retry");
}

void spokei_registration_changed(struct spokei_registration *registration)
{
	const struct spoke_provider *provider = registration->provider;
	const struct spokei_settings *keys = &provider->settings->keys;
	struct spokei_service *service = NULL;

	if (registration->closed)
		return;
	registration->weight = (uint32_t)spokei_settings_number(keys, SPOKEI_KEY_WEIGHT);
	registration->warmup_ms = (spokei_settings_number(keys, SPOKEI_KEY_WARMUP) + MS - 1) / MS;
	while ((service = spokei_routes_next(provider->services, service)) != NULL)
		service->listed = 0;
	spokei_run_soon(provider->engine, &registration->publish);
}

int spokei_registration_check(const struct spokei_registration *registration,
			      const struct spoke_address *address)
{
	struct spoke_engine *engine = registration->provider->engine;
	char text[ADDRESS_TEXT];
	struct spokei_provider_parts parts = { .host = NULL };

	if (registration->keeper == NULL || *registration->advertise)
		return SPOKE_OK;
	engine->env->net->print(engine->env->ctx, address, text, sizeof(text));
	read_place(registration, text, &parts);
	if (parts.host == NULL || !spokei_places_is_any(parts.host))
		return SPOKE_OK;
	spokei_event(engine, SPOKE_EINVAL,
		     "listen: %s means all addresses, and cannot be published; set the option "
		     "advertise to the host that consumers connect to",
		     text);
	return SPOKE_EINVAL;
}

/* --- life */

int spokei_registration_init(struct spoke_provider *provider,
			     const struct spoke_provider_options *options)
{
	const struct spokei_settings *keys = &provider->settings->keys;
	const char *application = spokei_settings_text(keys, SPOKEI_KEY_APPLICATION);
	const char *advertise = spokei_settings_text(keys, SPOKEI_KEY_ADVERTISE);
	struct spokei_registration *registration = provider->registration;
	const struct spokei_keeper_options with = {
		.registry = spokei_settings_text(keys, SPOKEI_KEY_REGISTRY_URL),
		.kind = options->registry_kind,
		.retry_ns = spokei_settings_number(keys, SPOKEI_KEY_REGISTRY_RETRY_PERIOD),
		.retries_max = (uint32_t)spokei_settings_number(keys,
								SPOKEI_KEY_REGISTRY_RETRY_TIMES),
		.mode = (uint8_t)spokei_settings_number(keys, SPOKEI_KEY_REGISTER_MODE),
	};
	int error = check_options(provider->engine, options, keys);

	*registration = (struct spokei_registration){
		.provider = provider,
		.publish.run = publish_all,
		.closed = true,
		.application = application && *application ? application : APPLICATION,
	};
	if (error || with.registry == NULL)
		return error;
	copy_advertise(registration, advertise ? advertise : "");
	if (options->admin && !is_socket(options->admin))
		(void)snprintf(registration->admin, sizeof(registration->admin), "%s",
			       options->admin);
	error = spokei_keeper_new(provider->engine, &with, NULL, NULL, &registration->keeper);
	registration->closed = error != SPOKE_OK;
	return error;
}

void spokei_registration_withdraw(struct spokei_registration *registration)
{
	registration->closed = true;
	if (registration->keeper)
		spokei_keeper_withdraw_all(registration->keeper);
}

void spokei_registration_resume(struct spokei_registration *registration)
{
	registration->closed = registration->keeper == NULL;
	registration->born_ms = 0;
	spokei_registration_changed(registration);
}

void spokei_registration_end(struct spokei_registration *registration)
{
	struct spokei_keeper *keeper = registration->keeper;

	registration->keeper = NULL;
	registration->closed = true;
	spokei_task_drop(&registration->publish);
	(void)spoke_alarm_cancel(&registration->retry);
	spokei_keeper_free(keeper);
}

size_t spoke_provider_registered(const struct spoke_provider *provider, size_t *ret_wanted)
{
	const struct spokei_registration *registration = provider->registration;
	const struct spokei_service *service = NULL;
	size_t own = spokei_listen_group_own(provider->listeners);
	size_t wanted = 0;
	size_t listed = 0;

	if (!registration->closed && !spokei_engine_elsewhere(provider->engine)) {
		spokei_keeper_count(registration->keeper, &wanted, &listed);
		wanted = 0;
		while ((service = spokei_routes_next(provider->services, service)) != NULL)
			wanted += own - (service->local_id != 0);
	}
	if (ret_wanted)
		*ret_wanted = wanted;
	return listed;
}
