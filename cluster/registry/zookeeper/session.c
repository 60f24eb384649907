/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a ZooKeeper session: resolves names on a pool thread, because the library would block the
 * loop; then makes a handle, and a new one after the session has expired. While no server
 * answers, names are resolved again, because servers move.
 */
#include "cluster/registry/zookeeper/parts.h"
#include "core/base/env.h"
#include "core/base/pace.h"
#include "core/engine/engine.h"
#include "transport/connect/lookup.h"

#include <errno.h>

#define ADDRESS_TEXT 160u
#define SECOND_NS UINT64_C(1000000000)
#define SHOWN 128

static void keep_changed(void *arg);

static const struct spokei_zoo_handle_up handle_up = { .changed = keep_changed };

static const char *first_name(const struct spokei_zoo_registry *registry)
{
	return registry->settings.places[0].name;
}

static bool has_names(const struct spokei_zoo_registry *registry)
{
	for (unsigned i = 0; i < registry->settings.place_count; i++)
		if (!registry->settings.places[i].fixed)
			return true;
	return false;
}

/* --- pauses */

static void again_due(struct spoke_alarm *alarm)
{
	struct spokei_zoo_registry *registry = spoke_container_of(alarm, struct spokei_zoo_registry,
								  again);

	if (registry->handle == NULL || !spokei_zoo_handle_connected(registry->handle))
		spokei_zoo_keep(registry);
}

static void later(struct spokei_zoo_registry *registry, uint64_t delay_ns)
{
	int error = spoke_alarm_after(registry->engine, &registry->again, delay_ns, again_due);

	if (error)
		spokei_event(registry->engine, error,
			     "registry zookeeper %.*s: cannot set its timer; make a new engine",
			     SHOWN, first_name(registry));
}

static void failed(struct spokei_zoo_registry *registry, int error, const char *why)
{
	static const struct spokei_backoff backoff = { SPOKEI_ZOO_BACKOFF_FIRST_NS,
						       SPOKEI_ZOO_BACKOFF_CAP_NS };
	const struct spoke_env *env = registry->engine->env;
	uint64_t dice;

	spokei_event(registry->engine, error, "registry zookeeper %.*s: %s; retrying", SHOWN,
		     first_name(registry), why);
	env->dice(env->ctx, &dice, sizeof(dice));
	later(registry, spokei_backoff_pause(&backoff, registry->failures, dice));
	if (registry->failures < UINT32_MAX)
		registry->failures++;
}

/* --- a handle */

/* Prints addresses in the library's format: without brackets, with commas between. */
static void print_servers(const struct spokei_zoo_registry *registry, char *out, size_t size)
{
	const struct spoke_env *env = registry->engine->env;
	size_t len = 0;

	for (int i = 0; i < registry->found_count; i++) {
		char text[ADDRESS_TEXT];

		env->net->print(env->ctx, &registry->found[i], text, sizeof(text));
		if (len > 0 && len + 1 < size)
			out[len++] = ',';
		for (const char *at = text; *at && len + 1 < size; at++)
			if (*at != '[' && *at != ']')
				out[len++] = *at;
	}
	out[len] = '\0';
}

/* The requests fail later: their users learn from this line why. */
static void silent_due(struct spoke_alarm *alarm)
{
	struct spokei_zoo_registry *registry = spoke_container_of(alarm, struct spokei_zoo_registry,
								  silent);

	if (!registry->connected) {
		spokei_event(registry->engine, SPOKE_EUNAVAILABLE,
			     "registry zookeeper %.*s: no server has answered for %u s; trying on",
			     SHOWN, first_name(registry),
			     (unsigned)(SPOKEI_ZOO_SILENT_NS / SECOND_NS));
	}
}

/* Without a timer there is no line. */
static void watch_silence(struct spokei_zoo_registry *registry)
{
	(void)!spoke_alarm_after(registry->engine, &registry->silent, SPOKEI_ZOO_SILENT_NS,
				 silent_due);
}

static void use_found(struct spokei_zoo_registry *registry)
{
	char servers[SPOKEI_ZOO_PLACES_MAX * ADDRESS_TEXT];
	int error;

	print_servers(registry, servers, sizeof(servers));
	if (registry->handle) {
		spokei_zoo_handle_use(registry->handle, servers);
	} else {
		error = spokei_zoo_handle_new(registry->engine, servers,
					      registry->settings.session_ms, &handle_up, registry,
					      &registry->handle);
		if (error) {
			registry->handle = NULL;
			failed(registry, error, "the ZooKeeper library failed to start");
			return;
		}
		registry->connects = 0;
		registry->connected = false;
		watch_silence(registry);
	}
	registry->failures = 0;
	if (has_names(registry))
		later(registry, SPOKEI_ZOO_REFRESH_NS);
}

static void session_over(struct spokei_zoo_registry *registry)
{
	struct spokei_zoo_handle *handle = registry->handle;

	spokei_event(registry->engine, SPOKE_ELOST,
		     "registry zookeeper %.*s: session expired; starting a new one", SHOWN,
		     first_name(registry));
	registry->handle = NULL;
	spokei_zoo_items_end(registry);
	spokei_zoo_handle_give_up(handle);
	spokei_zoo_keep(registry);
}

static void keep_changed(void *arg)
{
	struct spokei_zoo_registry *registry = arg;
	struct spokei_zoo_handle *handle = registry->handle;
	uint64_t connects = spokei_zoo_handle_connects(handle);
	bool connected = spokei_zoo_handle_connected(handle);

	if (spokei_zoo_handle_over(handle)) {
		session_over(registry);
		return;
	}
	if (connected && connects != registry->connects) {
		spokei_event(registry->engine, SPOKE_OK, "registry zookeeper %.*s: connected",
			     SHOWN, first_name(registry));
		for (struct spoke_list *at = registry->items.next; at != &registry->items;
		     at = at->next)
			spokei_zoo_item_try(spoke_container_of(at, struct spokei_zoo_item, node));
	} else if (!connected && registry->connected) {
		spokei_event(registry->engine, SPOKE_ELOST,
			     "registry zookeeper %.*s: connection lost; reconnecting", SHOWN,
			     first_name(registry));
		watch_silence(registry);
		if (has_names(registry))
			later(registry, SPOKEI_ZOO_REFRESH_NS);
	}
	registry->connects = connects;
	registry->connected = connected;
}

/* --- names */

static void keep_bury(struct spokei_task *task)
{
	struct spokei_zoo_registry *registry = spoke_container_of(task, struct spokei_zoo_registry,
								  bury);

	spokei_free(registry->engine->env, registry, 1, sizeof(*registry));
}

static void resolved(void *arg, const struct spoke_address *found, int count)
{
	struct spokei_zoo_registry *registry = arg;

	registry->resolving = false;
	registry->found_count = count;
	if (count > 0)
		memcpy(registry->found, found, (unsigned)count * sizeof(*found));
	if (registry->up == NULL)
		spokei_engine_dead(registry->engine, &registry->bury);
	else if (count <= 0)
		failed(registry, SPOKE_ERESOLVE, "cannot resolve any server name");
	else
		use_found(registry);
}

static void use_addresses(struct spokei_zoo_registry *registry)
{
	registry->found_count = (int)registry->settings.place_count;
	for (unsigned i = 0; i < registry->settings.place_count; i++)
		registry->found[i] = registry->settings.places[i].address;
	use_found(registry);
}

void spokei_zoo_keep(struct spokei_zoo_registry *registry)
{
	const struct spokei_zoo_settings *settings = &registry->settings;

	if (registry->resolving)
		return;
	if (!has_names(registry))
		use_addresses(registry);
	else if (spokei_lookup(registry->engine, settings->places, settings->place_count,
			       SPOKEI_ZOO_PLACES_MAX, resolved, registry))
		failed(registry, SPOKE_ERESOLVE,
		       "no thread is available to resolve its server names");
	else
		registry->resolving = true;
}

void spokei_zoo_stop(struct spokei_zoo_registry *registry)
{
	(void)spoke_alarm_cancel(&registry->again);
	(void)spoke_alarm_cancel(&registry->silent);
	spokei_zoo_handle_give_up(registry->handle);
	registry->handle = NULL;
	registry->bury.run = keep_bury;
	if (!registry->resolving)
		spokei_engine_dead(registry->engine, &registry->bury);
}
