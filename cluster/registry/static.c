/* SPDX-License-Identifier: Apache-2.0 */
/* The registry whose URL contains the providers. */
#include "cluster/registry/registries.h"

#include "cluster/registry/urls.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/engine/engine.h"

#include <stdio.h>

#define SHOWN 64u

struct fixed {
	struct spoke_engine *engine;
	const struct spoke_registry_up *up;
	void *up_arg;
	struct spoke_url *places; /* URLs without paths */
	unsigned places_count;
	unsigned places_room;
};

/* --- entries */

static void list(struct fixed *fixed, struct spoke_registry_entry *entry)
{
	struct spokei_buffer urls;
	int error = SPOKE_OK;

	spokei_buffer_init(&urls, fixed->engine->env, SIZE_MAX);
	for (unsigned i = 0; !error && i < fixed->places_count; i++) {
		struct spoke_url url = fixed->places[i];

		url.path = entry->service;
		error = spokei_urls_put(&urls, &url);
	}
	fixed->up->state(fixed->up_arg, entry, error);
	if (!error)
		fixed->up->list(fixed->up_arg, entry, (const char *)spokei_buffer_data(&urls),
				fixed->places_count);
	spokei_buffer_fini(&urls);
}

static void want(void *registry, struct spoke_registry_entry *entry)
{
	struct fixed *fixed = registry;

	if (entry->url) {
		fixed->up->state(fixed->up_arg, entry, SPOKE_OK);
	} else if (spokei_urls_are_services(entry->service)) {
		spokei_event(fixed->engine, SPOKE_EUNSUPPORTED,
			     "registry static: knows addresses but no services; name a "
			     "service");
		fixed->up->state(fixed->up_arg, entry, SPOKE_EUNSUPPORTED);
	} else {
		list(fixed, entry);
	}
}

static void unwant(void *registry, struct spoke_registry_entry *entry)
{
	struct fixed *fixed = registry;

	fixed->up->state(fixed->up_arg, entry, SPOKE_OK);
}

/* --- life */

static void close_fixed(void *registry)
{
	struct fixed *fixed = registry;
	const struct spoke_env *env = fixed->engine->env;

	for (unsigned i = 0; i < fixed->places_count; i++)
		spoke_url_fini(&fixed->places[i]);
	spokei_free(env, fixed->places, fixed->places_room, sizeof(*fixed->places));
	spokei_free(env, fixed, 1, sizeof(*fixed));
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
	const struct spoke_url bare = {
		.scheme = "", .host = url->host, .port = url->port, .path = ""
	};
	char first[SPOKE_URL_HOST_MAX + 16];
	size_t len = spoke_url_print(&bare, SPOKE_URL_WHOLE, first, sizeof(first));
	const size_t head = strlen("://");
	int error = add_place(fixed, protocol, first + head, len - head);

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
	fixed->up = up;
	fixed->up_arg = arg;
	fixed->places_room = count_places(backup ? backup : "");
	fixed->places = spokei_alloc(engine->env, fixed->places_room, sizeof(*fixed->places));
	if (fixed->places) {
		error = add_all(fixed, url, protocol && *protocol ? protocol : "dubbo",
				backup ? backup : "");
	} else {
		error = SPOKE_ENOMEM;
		spokei_event(engine, error, "registry static: cannot be opened");
	}
	if (error)
		close_fixed(fixed);
	else
		*ret_registry = fixed;
	return error;
}

const struct spoke_registry spokei_registry_static = {
	.scheme = "static",
	.open = open_fixed,
	.want = want,
	.unwant = unwant,
	.close = close_fixed,
};
