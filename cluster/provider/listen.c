/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses at which a provider listens: opens them, joins those of a provider of another
 * engine, and reports once that every host may call at one. */
#include "cluster/config/places.h"
#include "cluster/provider/parts.h"
#include "cluster/provider/registration.h"
#include "cluster/provider/settings.h"
#include "cluster/serve/access_control.h"
#include "cluster/serve/routes.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/text/option.h"
#include "core/text/range.h"
#include "transport/listen/group.h"
#include "transport/stream/tls/tls.h"

#include <spoke/provider.h>

#include <stdio.h>
#include <string.h>

#define NAME_SHOWN 64u /* bytes of a service */

/* --- hosts that may call */

/* Describes one address of the provider, without a service. */
static struct spokei_exposure describe(const struct spoke_provider *provider, size_t index)
{
	const struct spokei_listen_group *group = provider->listeners;
	unsigned marks = spokei_listen_group_marks(group, index);
	struct spokei_exposure of = {
		.local = spokei_places_is_local(provider->engine->env,
						spokei_listen_group_address(group, index)),
		.plain = !(marks & SPOKEI_PROVIDER_TLS),
		.asks = spokei_access_asks(provider->access->own),
		.of_owner = spokei_listen_group_rules(group),
		.of_address = spokei_listen_group_rules_at(group, index),
		.of_provider = provider->access->callers,
	};

	if (!of.plain)
		of.verify = spokei_tls_verifies(provider->tls);
	return of;
}

static enum spokei_exposed judge_service(const struct spoke_provider *provider,
					 const struct spokei_service *service,
					 struct spokei_exposure of)
{
	of.asks = spokei_access_asks(spokei_access_of(provider->access, service));
	of.of_service = service->callers;
	return spokei_exposure_judge(&of);
}

/* Finds a service that every host may call at an address, from `first` on; those before it are
 * guarded. Writes " NAME" of the first one, or "" if all are open. Without services the provider
 * itself counts. */
static enum spokei_exposed find_open(const struct spoke_provider *provider, size_t index,
				     const struct spokei_service *first, char name[NAME_SHOWN + 1])
{
	const struct spokei_routes *services = provider->services;
	const struct spokei_exposure of = describe(provider, index);
	enum spokei_exposed whole = spokei_exposure_judge(&of);
	enum spokei_exposed found = SPOKEI_EXPOSED_NOT;
	bool names = whole == SPOKEI_EXPOSED_NOT || first != spokei_routes_next(services, NULL);

	name[0] = '\0';
	if (first == NULL)
		return whole;
	for (; first; first = spokei_routes_next(services, first)) {
		enum spokei_exposed each = judge_service(provider, first, of);

		names |= each == SPOKEI_EXPOSED_NOT;
		if (each == SPOKEI_EXPOSED_NOT || found != SPOKEI_EXPOSED_NOT)
			continue;
		found = each;
		name[0] = ' ';
		(void)spokei_log_escape_end(name + 1, NAME_SHOWN, first->name.data,
					    first->name.len);
	}
	if (!names)
		name[0] = '\0';
	return found;
}

void spokei_provider_warn(struct spoke_provider *provider, const struct spokei_service *added)
{
	const struct spokei_service *first = added ? added
						   : spokei_routes_next(provider->services, NULL);
	const struct spokei_listen_group *group = provider->listeners;
	char address[SPOKEI_PLACES_SHOWN];
	char name[NAME_SHOWN + 1];

	for (size_t i = 0; i < spokei_listen_group_own(group) && !provider->warned; i++) {
		enum spokei_exposed exposed = find_open(provider, i, first, name);

		if (exposed == SPOKEI_EXPOSED_NOT)
			continue;
		provider->warned = true;
		spokei_listen_group_print(group, i, address, sizeof(address));
		spokei_event(provider->engine, SPOKE_OK,
			     "listen: all hosts that reach %s may call%s%s, allow.from, "
			     "allow.callers or token to change that",
			     address, name, spokei_exposed_why(exposed));
	}
}

/* --- listening */

static enum spokei_listen_sharing sharing_of(const struct spokei_listen_place *place)
{
	if (!place->shared)
		return SPOKEI_LISTEN_ALONE;
	return place->handed ? SPOKEI_LISTEN_BY_HANDOFF : SPOKEI_LISTEN_BY_KERNEL;
}

/* Writes the marks of an address. */
static int find_marks(struct spoke_provider *provider, const struct spokei_listen_place *place,
		      unsigned *ret)
{
	enum spokei_tls_mode mode = place->says_tls ? place->tls : provider->tls_mode;
	struct spokei_machine machine = spokei_machine_of(provider->engine->env, &place->address);

	*ret = (place->http ? SPOKEI_PROVIDER_HTTP : 0) |
	       (machine.kind == SPOKEI_MACHINE_UNIX ? SPOKEI_PROVIDER_UNIX : 0) |
	       (place->shm ? SPOKEI_LISTENER_SHM : 0);
	if (mode == SPOKEI_TLS_OFF)
		return SPOKE_OK;
	if (place->shm) {
		spokei_event(provider->engine, SPOKE_EINVAL,
			     "listen: shared memory has no TLS; write shm:/PATH?tls=off, or use "
			     "unix:/PATH");
		return SPOKE_EINVAL;
	}
	*ret |= mode == SPOKEI_TLS_ON ? SPOKEI_PROVIDER_TLS : SPOKEI_PROVIDER_TLS_OR_PLAIN;
	if (provider->tls)
		return SPOKE_OK;
	spokei_event(provider->engine, SPOKE_EINVAL,
		     "listen: tls=on needs the provider's certificate; set tls.cert and tls.key");
	return SPOKE_EINVAL;
}

static int open_place(struct spoke_provider *provider, const struct spokei_listen_place *place,
		      unsigned marks)
{
	const struct spokei_listen_at at = {
		.address = &place->address,
		.sharing = sharing_of(place),
		.marks = marks,
		.rules = place->rules,
		.has_mode = place->has_mode,
		.mode = place->mode,
	};

	return spokei_listen_group_open(provider->listeners, &at);
}

/* Reports once that an address is plain although the provider has the files of TLS: mostly tls = on
 * was forgotten. */
static void warn_of_plain(struct spoke_provider *provider, const struct spokei_listen_place *place)
{
	size_t last = spokei_listen_group_own(provider->listeners) - 1;
	char text[SPOKEI_PLACES_SHOWN];

	if (provider->told_plain || provider->tls == NULL || place->local || place->says_tls ||
	    provider->tls_mode != SPOKEI_TLS_OFF)
		return;
	provider->told_plain = true;
	spokei_listen_group_print(provider->listeners, last, text, sizeof(text));
	spokei_event(provider->engine, SPOKE_EINVAL,
		     "listen: %s is plain, although tls.cert is set; set tls = on, or write "
		     "?tls=off after the address",
		     text);
}

static int listen_at(struct spoke_provider *provider, const char *url)
{
	struct spokei_listen_place place;
	unsigned marks = 0;
	int error = spokei_engine_check(provider->engine);

	if (error)
		return error;
	if (provider->ended || provider->draining)
		return SPOKE_ECLOSED;
	if (spokei_listen_group_joined(provider->listeners))
		return SPOKE_ESTATE;
	if (spokei_listen_group_own(provider->listeners) == SPOKEI_LISTENERS_MAX) {
		spokei_event(provider->engine, SPOKE_ELIMIT,
			     "listen: a provider listens at %u addresses at most",
			     SPOKEI_LISTENERS_MAX);
		return SPOKE_ELIMIT;
	}
	error = spokei_places_listen(provider->engine, url, &place);
	if (error == 0)
		error = find_marks(provider, &place, &marks);
	if (error == 0)
		error = spokei_registration_check(provider->registration, &place.address);
	if (error == 0)
		error = open_place(provider, &place, marks);
	if (error) {
		spokei_rules_free(provider->engine->env, place.rules);
		return error;
	}
	warn_of_plain(provider, &place);
	spokei_provider_warn(provider, NULL);
	spokei_registration_changed(provider->registration);
	return SPOKE_OK;
}

int spoke_provider_listen(struct spoke_provider *provider, const char *url)
{
	uint64_t begun = spokei_why_begin(provider->engine);

	return spokei_why_end(provider->engine, begun, listen_at(provider, url), "listen");
}

int spoke_provider_listen_configured(struct spoke_provider *provider)
{
	const char *list = spokei_settings_text(&provider->settings->keys, SPOKEI_KEY_LISTEN);
	const char *at = list;
	struct spoke_span item;
	int count = spokei_engine_check(provider->engine);

	if (count)
		return count;
	while (spokei_option_item(&at, &item)) {
		char url[SPOKE_URL_HOST_MAX + 128];
		int error = SPOKE_ETOOLARGE;

		(void)snprintf(url, sizeof(url), "%.*s", (int)item.len, (const char *)item.data);
		if (strlen(url) == item.len)
			error = spoke_provider_listen(provider, url);
		else
			spokei_event(provider->engine, error, "listen: URL is too long");
		if (error)
			return error;
		count++;
	}
	return count;
}

size_t spoke_provider_address(const struct spoke_provider *provider, size_t index, char *text,
			      size_t size)
{
	if (index >= spokei_listen_group_count(provider->listeners) || size == 0)
		return 0;
	spokei_listen_group_print(provider->listeners, index, text, size);
	return strlen(text);
}

/* --- joining */

static int refuse_join(struct spoke_provider *provider, const char *why)
{
	spokei_event(provider->engine, SPOKE_EINVAL, "join: %s", why);
	return SPOKE_EINVAL;
}

/* Returns 0 if the provider may join. `first` belongs to another thread. */
static int check_join(struct spoke_provider *provider, const struct spoke_provider *first)
{
	int error = spokei_engine_check(provider->engine);

	if (error)
		return error;
	if (provider->ended || provider->draining || spokei_listen_group_stopped(first->listeners))
		return SPOKE_ECLOSED;
	if (spokei_listen_group_joined(provider->listeners))
		return SPOKE_ESTATE;
	if (provider->engine == first->engine)
		return refuse_join(provider,
				   "both providers are on the same engine; add the services "
				   "to the other one");
	if (provider->engine->env->net != first->engine->env->net)
		return refuse_join(provider, "the engines have different networks");
	if (spokei_listen_group_shared(first->listeners) == 0)
		return refuse_join(provider,
				   "the other provider shares no address; add shared=true or "
				   "shared=turns to its URLs");
	return SPOKE_OK;
}

static int join(struct spoke_provider *provider, struct spoke_provider *first)
{
	int error = check_join(provider, first);

	return error ? error : spokei_listen_group_join(provider->listeners, first->listeners);
}

int spoke_provider_join(struct spoke_provider *provider, struct spoke_provider *first)
{
	uint64_t begun = spokei_why_begin(provider->engine);

	return spokei_why_end(provider->engine, begun, join(provider, first), "join");
}
