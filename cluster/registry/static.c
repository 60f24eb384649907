/* SPDX-License-Identifier: Apache-2.0 */
/* The registry whose URL contains the providers. */
#include "cluster/registry/static.h"

#include "cluster/registry/errands.h"
#include "cluster/registry/services.h"
#include "core/base/log.h"
#include "core/engine/engine.h"

#include <stdio.h>

#define SHOWN 64u

struct fixed {
	struct spoke_engine *engine;
	struct spokei_errands errands;
	struct spokei_task reap;
	struct spoke_url *places; /* URLs without paths */
	unsigned places_count;
	unsigned places_room;
};

/* --- requests */

/* Appends the URL of the service at an address, with its NUL. */
static int put_provider(struct spokei_buffer *out, const struct spoke_url *place,
			const char *service)
{
	struct spoke_url url = *place;
	unsigned char *room;
	size_t len;

	url.path = service;
	len = spoke_url_print(&url, SPOKE_URL_WHOLE, NULL, 0);
	room = spokei_buffer_reserve(out, len + 1);
	if (room == NULL)
		return SPOKE_ENOMEM;
	(void)spoke_url_print(&url, SPOKE_URL_WHOLE, (char *)room, len + 1);
	spokei_buffer_commit(out, len + 1);
	return SPOKE_OK;
}

static int subscribe(void *registry, uint64_t intent, const char *service)
{
	struct fixed *fixed = registry;
	struct spokei_errand *errand;
	int error = spokei_errands_add(&fixed->errands, SPOKEI_ERRAND_SUBSCRIBE, intent, service,
				       &errand);

	if (error)
		return error;
	if (spokei_services_wanted(service)) {
		spokei_event(fixed->engine, SPOKE_EUNSUPPORTED,
			     "registry static: knows addresses but no services; name a "
			     "service");
		spokei_errand_done(&fixed->errands, errand, SPOKE_EUNSUPPORTED);
		return SPOKE_OK;
	}
	for (unsigned i = 0; !error && i < fixed->places_count; i++)
		error = put_provider(&errand->found, &fixed->places[i], service);
	errand->found_count = fixed->places_count;
	if (!error)
		error = spokei_errand_list(&fixed->errands, errand);
	spokei_errand_done(&fixed->errands, errand, error);
	spokei_buffer_fini(&errand->found);
	return SPOKE_OK;
}

static int undo(struct fixed *fixed, enum spokei_errand_kind kind, uint64_t intent, uint64_t which)
{
	struct spokei_errand *errand;
	int error = spokei_errands_undo(&fixed->errands, kind, intent, which, &errand);

	if (error == SPOKE_OK)
		spokei_errand_done(&fixed->errands, errand, SPOKE_OK);
	return error;
}

static int unsubscribe(void *registry, uint64_t intent, uint64_t which)
{
	return undo(registry, SPOKEI_ERRAND_UNSUBSCRIBE, intent, which);
}

static int publish(void *registry, uint64_t intent, const char *service, const char *url)
{
	struct fixed *fixed = registry;
	struct spokei_errand *errand;
	int error = spokei_errands_add(&fixed->errands, SPOKEI_ERRAND_PUBLISH, intent, url,
				       &errand);

	(void)service;
	if (error == SPOKE_OK && !errand->answered)
		spokei_errand_done(&fixed->errands, errand, SPOKE_OK);
	return error;
}

static int withdraw(void *registry, uint64_t intent, uint64_t which)
{
	return undo(registry, SPOKEI_ERRAND_WITHDRAW, intent, which);
}

/* --- life */

static void free_fixed(struct fixed *fixed)
{
	const struct spoke_env *env = fixed->engine->env;

	for (unsigned i = 0; i < fixed->places_count; i++)
		spoke_url_fini(&fixed->places[i]);
	spokei_free(env, fixed->places, fixed->places_room, sizeof(*fixed->places));
	spokei_free(env, fixed, 1, sizeof(*fixed));
}

static void reap(struct spokei_task *task)
{
	struct fixed *fixed = spoke_container_of(task, struct fixed, reap);

	spokei_errands_fini(&fixed->errands);
	free_fixed(fixed);
}

static void close_fixed(void *registry)
{
	struct fixed *fixed = registry;

	spokei_errands_close(&fixed->errands);
	spokei_engine_dead(fixed->engine, &fixed->reap);
}

/* Adds an address, e.g. "host:port", to the list. */
static int add_place(struct fixed *fixed, const char *protocol, const char *place, size_t len)
{
	struct spoke_url_error why;
	struct spoke_url *url = &fixed->places[fixed->places_count];
	char text[SPOKE_URL_HOST_MAX + 64];
	char shown[SHOWN];
	int text_len = snprintf(text, sizeof(text), "%s://%.*s", protocol, (int)len, place);
	int error = SPOKE_ETOOLARGE;

	(void)snprintf(why.text, sizeof(why.text), "too long");
	if (text_len > 0 && (size_t)text_len < sizeof(text))
		error = spoke_url_parse(fixed->engine->env, text, (size_t)text_len, url, &why);
	if (error == SPOKE_OK && (!url->host || url->path[0] != '\0' || url->parameter_count > 0)) {
		spoke_url_fini(url);
		(void)snprintf(why.text, sizeof(why.text), "write a host and a port");
		error = SPOKE_ESYNTAX;
	}
	if (error == SPOKE_OK) {
		fixed->places_count++;
		return SPOKE_OK;
	}
	(void)spokei_log_escape(shown, sizeof(shown), place, len);
	spokei_event(fixed->engine, error, "registry static, address %s: %s", shown, why.text);
	return error;
}

static unsigned count_places(const char *backup)
{
	unsigned count = 1;

	for (; *backup; backup++)
		count += *backup == ',';
	return count + 1;
}

static int add_all(struct fixed *fixed, const struct spoke_url *url, const char *protocol,
		   const char *backup)
{
	char first[SPOKE_URL_HOST_MAX + 16];
	bool is_v6 = strchr(url->host, ':') != NULL;
	int len = snprintf(first, sizeof(first), "%s%s%s", is_v6 ? "[" : "", url->host,
			   is_v6 ? "]" : "");
	int error;

	if (url->port >= 0)
		len += snprintf(first + len, sizeof(first) - (size_t)len, ":%d", url->port);
	error = add_place(fixed, protocol, first, (size_t)len);
	while (!error && *backup) {
		size_t part = strcspn(backup, ",");

		if (part > 0)
			error = add_place(fixed, protocol, backup, part);
		backup += part;
		backup += *backup == ',';
	}
	return error;
}

static int open_fixed(struct spoke_engine *engine, const struct spoke_url *url,
		      const struct spoke_registry_up *up, void *arg, void **ret_registry)
{
	const char *protocol = spoke_url_get(url, "protocol");
	const char *backup = spoke_url_get(url, "backup");
	struct fixed *fixed;
	int error;

	if (url->host == NULL || url->host[0] == '\0' || url->path[0] != '\0') {
		spokei_event(engine, SPOKE_EINVAL,
			     "registry static: needs hosts and ports, e.g. "
			     "static://10.0.0.1:20880?backup=10.0.0.2:20880");
		return SPOKE_EINVAL;
	}
	fixed = spokei_alloc(engine->env, 1, sizeof(*fixed));
	if (fixed == NULL) {
		spokei_event(engine, SPOKE_ENOMEM, "registry static: cannot be opened");
		return SPOKE_ENOMEM;
	}
	fixed->engine = engine;
	fixed->reap.run = reap;
	fixed->places_room = count_places(backup ? backup : "");
	fixed->places = spokei_alloc(engine->env, fixed->places_room, sizeof(*fixed->places));
	if (fixed->places) {
		error = add_all(fixed, url, protocol && *protocol ? protocol : "dubbo",
				backup ? backup : "");
	} else {
		error = SPOKE_ENOMEM;
		spokei_event(engine, error, "registry static: cannot be opened");
	}
	if (error) {
		free_fixed(fixed);
		return error;
	}
	spokei_errands_init(&fixed->errands, engine, up, arg);
	*ret_registry = fixed;
	return SPOKE_OK;
}

const struct spoke_registry spokei_registry_static = {
	.scheme = "static",
	.open = open_fixed,
	.publish = publish,
	.withdraw = withdraw,
	.subscribe = subscribe,
	.unsubscribe = unsubscribe,
	.close = close_fixed,
};
