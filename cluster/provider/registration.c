/* SPDX-License-Identifier: Apache-2.0 */
/* Publishes the services of a provider at a registry, at each address where it listens. */
#include "cluster/provider/registration.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/engine/task.h"

#include "cluster/config/places.h"
#include "cluster/discovery/keeper.h"
#include "cluster/discovery/provider_url.h"
#include "cluster/provider/proof.h"
#include "cluster/provider/settings.h"
#include "cluster/serve/routes.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "transport/listen/group.h"

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
			 const struct spokei_key_values *values)
{
	const char *application = values->text[SPOKEI_KEY_APPLICATION];

	if (values->text[SPOKEI_KEY_REGISTRY_URL] == NULL && options->registry_kind) {
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

static int copy_texts(struct spokei_registration *registration,
		      const struct spoke_provider_options *options,
		      const struct spokei_key_values *values)
{
	const char *named = spokei_keys_text(values, SPOKEI_KEY_APPLICATION);
	const char *application = *named ? named : APPLICATION;
	const char *advertise = spokei_keys_text(values, SPOKEI_KEY_ADVERTISE);
	size_t application_size = strlen(application) + 1;
	const char *admin = options->admin && !is_socket(options->admin) ? options->admin : "";
	size_t admin_size = strlen(admin) + 1;
	size_t len = strlen(advertise);

	if (*advertise == '[') {
		advertise++;
		len -= 2;
	}
	registration->texts_size = application_size + len + 1 + admin_size;
	registration->application = spokei_alloc(registration->engine->env, 1,
						 registration->texts_size);
	if (registration->application == NULL)
		return SPOKE_ENOMEM;
	memcpy(registration->application, application, application_size);
	registration->advertise = registration->application + application_size;
	for (size_t i = 0; i < len; i++)
		registration->advertise[i] = to_small(advertise[i]);
	registration->admin = registration->advertise + len + 1;
	memcpy(registration->admin, admin, admin_size);
	return SPOKE_OK;
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
	spokei_listen_group_print(registration->of.listeners, index, place, ADDRESS_TEXT);
	read_place(registration, place, parts);
	place_admin(parts, admin);
}

/* Decides whether an error of the keeper is to be tried again; the others are logged once. */
static int sort_error(struct spokei_registration *registration, const char *service, int error)
{
	if (error == SPOKE_OK || error == SPOKE_ENOMEM || error == SPOKE_ECLOSED)
		return error;
	if (!registration->full)
		(void)refuse(registration->engine, error, "registry", service,
			     error == SPOKE_ELIMIT ? "too many services and addresses"
						   : "the name cannot be published");
	registration->full = true;
	return SPOKE_OK;
}

/* Publishes the service at the next address. */
static int publish(struct spokei_registration *registration, const struct spokei_service *service,
		   const struct spokei_local *local)
{
	const struct spoke_env *env = registration->engine->env;
	struct spokei_provider_parts parts = {
		.admin = registration->admin,
		.application = registration->application,
		.token = spokei_proof_of(registration->of.proof, service)->token,
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
	if (error == 0 && spokei_local_hides(local, service->listed))
		error = spokei_keeper_withdraw(registration->keeper, parts.service, text);
	else if (error == 0)
		error = spokei_keeper_publish(registration->keeper, parts.service, text);
	spokei_buffer_fini(&url);
	spokei_free(env, texts.methods, 1, texts.methods_size);
	return sort_error(registration, texts.key, error);
}

static int publish_at_all(struct spokei_registration *registration, struct spokei_service *service)
{
	const struct spokei_registration_of *of = &registration->of;
	struct spokei_local local;
	int error = SPOKE_OK;

	spokei_local_find(&of->local, registration->engine->env, service, &local);
	if (service->local_id != local.host_id)
		service->listed = 0; /* the entries of the ports change */
	service->local_id = local.host_id;
	while (service->listed < spokei_listen_group_own(of->listeners) && error == 0) {
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

	spokei_engine_soon(alarm->engine, &registration->publish);
}

static void publish_all(struct spokei_task *task)
{
	struct spokei_registration *registration =
		spoke_container_of(task, struct spokei_registration, publish);
	struct spoke_engine *engine = registration->engine;
	struct spoke_list *all = &registration->of.services->all;
	int error = SPOKE_OK;

	if (registration->closed)
		return;
	for (struct spoke_list *node = all->next; node != all && error == 0; node = node->next)
		error = publish_at_all(registration,
				       spoke_container_of(node, struct spokei_service, node));
	if (error == SPOKE_ENOMEM)
		error = spoke_alarm_after(engine, &registration->retry, registration->retry_ns,
					  publish_again);
	if (error && error != SPOKE_ECLOSED)
		spokei_event(engine, error,
			     "registry: no memory and no timer to publish; add a service to retry");
}

void spokei_registration_changed(struct spokei_registration *registration)
{
	if (!registration->closed)
		spokei_engine_soon(registration->engine, &registration->publish);
}

int spokei_registration_check(const struct spokei_registration *registration,
			      const struct spoke_address *address)
{
	const struct spoke_env *env = registration->engine->env;
	char text[ADDRESS_TEXT];
	struct spokei_provider_parts parts = { .host = NULL };

	if (registration->keeper == NULL || *registration->advertise)
		return SPOKE_OK;
	env->net->print(env->ctx, address, text, sizeof(text));
	read_place(registration, text, &parts);
	if (parts.host == NULL || !spokei_places_is_any(parts.host))
		return SPOKE_OK;
	spokei_event(registration->engine, SPOKE_EINVAL,
		     "listen: %s means all addresses, and cannot be published; set the option "
		     "advertise to the host that consumers connect to",
		     text);
	return SPOKE_EINVAL;
}

/* --- life */

static void weigh(struct spokei_registration *registration, uint32_t weight, uint64_t warmup_ns)
{
	registration->weight = weight;
	registration->warmup_ms = (warmup_ns + MS - 1) / MS;
}

/* The newest entry of a service at an address replaces the older one. */
void spokei_registration_renew(struct spokei_registration *registration)
{
	struct spoke_list *all = &registration->of.services->all;

	if (registration->closed)
		return;
	for (struct spoke_list *node = all->next; node != all; node = node->next)
		spoke_container_of(node, struct spokei_service, node)->listed = 0;
	spokei_registration_changed(registration);
}

void spokei_registration_reweigh(struct spokei_registration *registration, uint32_t weight,
				 uint64_t warmup_ns)
{
	const uint64_t warmup_ms = registration->warmup_ms;
	const uint32_t before = registration->weight;

	if (registration->closed)
		return;
	weigh(registration, weight, warmup_ns);
	if (registration->weight == before && registration->warmup_ms == warmup_ms)
		return;
	spokei_registration_renew(registration);
}

int spokei_registration_init(struct spokei_registration *registration, struct spoke_engine *engine,
			     const struct spokei_registration_of *of,
			     const struct spoke_provider_options *options,
			     const struct spokei_provider_settings *settings)
{
	const struct spokei_key_values *values = &settings->keys.in_force;
	const struct spokei_keeper_options with = {
		.registry = values->text[SPOKEI_KEY_REGISTRY_URL],
		.kind = options->registry_kind,
		.retry_ns = values->of[SPOKEI_KEY_REGISTRY_RETRY_PERIOD],
		.retries_max = spokei_keys_u32(values, SPOKEI_KEY_REGISTRY_RETRY_TIMES),
	};
	int error = check_options(engine, options, values);

	*registration = (struct spokei_registration){
		.engine = engine,
		.of = *of,
		.publish.run = publish_all,
		.closed = true,
	};
	if (error || values->text[SPOKEI_KEY_REGISTRY_URL] == NULL)
		return error;
	weigh(registration, spokei_keys_u32(values, SPOKEI_KEY_WEIGHT),
	      values->of[SPOKEI_KEY_WARMUP]);
	registration->retry_ns = with.retry_ns;
	error = copy_texts(registration, options, values);
	if (error == 0)
		error = spokei_keeper_new(engine, &with, NULL, NULL, &registration->keeper);
	registration->closed = error != SPOKE_OK;
	if (error)
		spokei_registration_fini(registration);
	return error;
}

void spokei_registration_withdraw(struct spokei_registration *registration)
{
	registration->closed = true;
	if (registration->keeper)
		spokei_keeper_withdraw_all(registration->keeper);
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

void spokei_registration_fini(struct spokei_registration *registration)
{
	spokei_free(registration->engine->env, registration->application, 1,
		    registration->texts_size);
	registration->application = NULL;
}

size_t spokei_registration_count(const struct spokei_registration *registration, size_t *ret_wanted)
{
	struct spoke_list *all = &registration->of.services->all;
	size_t own = spokei_listen_group_own(registration->of.listeners);
	size_t listed = 0;

	*ret_wanted = 0;
	if (registration->closed)
		return 0;
	spokei_keeper_count(registration->keeper, ret_wanted, &listed);
	*ret_wanted = 0;
	for (struct spoke_list *node = all->next; node != all; node = node->next) {
		const struct spokei_service *service =
			spoke_container_of(node, struct spokei_service, node);

		*ret_wanted += own - (service->local_id != 0);
	}
	return listed;
}
