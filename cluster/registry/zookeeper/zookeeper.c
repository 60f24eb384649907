/* SPDX-License-Identifier: Apache-2.0 */
/* The registry in ZooKeeper: requests, and reports of their results. */
#include "cluster/registry/zookeeper/zookeeper.h"
#include "core/base/env.h"

#include "cluster/registry/services.h"
#include "cluster/registry/zookeeper/parts.h"
#include "core/engine/engine.h"

#include <string.h>

/* --- results */

static void tell_done(struct spokei_zoo_item *item)
{
	struct spokei_zoo_registry *registry = item->registry;
	uint64_t intent = item->asked;
	int error = item->error;

	item->asked = 0;
	item->ended = false;
	if (item->over && item->begun && error && item->kind == &spokei_zoo_entry)
		spokei_zoo_doubt(item);
	else if (item->over)
		spokei_zoo_item_free(item);
	else if (item->urls || item->lost)
		spokei_zoo_item_note(item);
	registry->up->done(registry->up_arg, intent, error);
}

static void tell_list(struct spokei_zoo_item *item)
{
	struct spokei_zoo_registry *registry = item->registry;
	const struct spoke_env *env = registry->engine->env;
	char **urls = item->urls;
	size_t size = item->urls_size;

	item->urls = NULL;
	if (item->lost)
		spokei_zoo_item_note(item);
	registry->up->list(registry->up_arg, item->intent, (const char *const *)urls,
			   item->url_count);
	spokei_free(env, urls, 1, size);
}

static void tell_lost(struct spokei_zoo_item *item)
{
	struct spokei_zoo_registry *registry = item->registry;
	uint64_t intent = item->intent;
	int error = item->error;

	spokei_zoo_item_free(item);
	registry->up->lost(registry->up_arg, intent, error);
}

static void tell_next(struct spokei_zoo_registry *registry)
{
	struct spoke_list *first = spokei_list_first(&registry->news);
	struct spokei_zoo_item *item = spoke_container_of(first, struct spokei_zoo_item, news);

	spokei_list_remove(&item->news);
	if (item->ended)
		tell_done(item);
	else if (item->urls && !item->lost)
		tell_list(item);
	else if (item->lost)
		tell_lost(item);
	else if (item->over)
		spokei_zoo_item_free(item);
}

/* A callback may close the registry, whose memory stays for this turn. */
static void tell_news(struct spokei_task *task)
{
	struct spokei_zoo_registry *registry = spoke_container_of(task, struct spokei_zoo_registry,
								  tell);
	size_t count = 0;

	for (struct spoke_list *at = registry->news.next; at != &registry->news; at = at->next)
		count++;
	while (registry->up && count-- > 0 && !spokei_list_empty(&registry->news))
		tell_next(registry);
	if (registry->up == NULL)
		return;
	if (!spokei_list_empty(&registry->news)) {
		spokei_engine_soon(registry->engine, &registry->tell);
	} else if (registry->lost_all) {
		registry->lost_all = false;
		registry->up->lost(registry->up_arg, 0, SPOKE_ELOST);
	}
}

/* --- requests */

static int registry_open(struct spoke_engine *engine, const struct spoke_url *url,
			 const struct spoke_registry_up *up, void *arg, void **ret_registry)
{
	struct spokei_zoo_registry *registry = spokei_alloc(engine->env, 1, sizeof(*registry));
	char why[SPOKEI_ZOO_WHY_MAX];
	int error;

	if (registry == NULL) {
		spokei_event(engine, SPOKE_ENOMEM, "registry zookeeper: out of memory");
		return SPOKE_ENOMEM;
	}
	error = spokei_zoo_settings_read(engine->env, url, &registry->settings, why);
	if (error) {
		spokei_event(engine, error, "registry zookeeper: %s", why);
		spokei_free(engine->env, registry, 1, sizeof(*registry));
		return error;
	}
	registry->engine = engine;
	registry->up = up;
	registry->up_arg = arg;
	registry->tell.run = tell_news;
	spokei_list_init(&registry->items);
	spokei_list_init(&registry->news);
	spokei_zoo_keep(registry);
	*ret_registry = registry;
	return SPOKE_OK;
}

/* Starts a new item, or returns ENOMEM if it is NULL. */
static int begin(struct spokei_zoo_item *item, uint64_t asked)
{
	if (item == NULL)
		return SPOKE_ENOMEM;
	if (spokei_zoo_item_await(item, asked)) {
		spokei_zoo_item_free(item);
		return SPOKE_EUNAVAILABLE;
	}
	spokei_zoo_item_try(item);
	return SPOKE_OK;
}

static bool is_full(const struct spokei_zoo_registry *registry)
{
	return registry->item_count >= SPOKEI_ZOO_ITEMS_MAX;
}

static bool is_consumer(const char *url)
{
	static const char scheme[] = "consumer:";

	return strncmp(url, scheme, sizeof(scheme) - 1) == 0;
}

static int registry_publish(void *handle, uint64_t intent, const char *service, const char *url)
{
	struct spokei_zoo_registry *registry = handle;
	bool consumer = is_consumer(url);
	struct spokei_zoo_item *item;
	int error;

	if (is_full(registry))
		return SPOKE_EUNAVAILABLE;
	item = spokei_zoo_item_new(registry, &spokei_zoo_entry, intent, service,
				   consumer ? SPOKEI_ZOO_CONSUMERS : SPOKEI_ZOO_PROVIDERS,
				   consumer ? NULL : url);
	error = item ? spokei_zoo_entry_read(item, url) : SPOKE_OK;
	if (error == SPOKE_OK && spokei_services_wanted(service))
		error = SPOKE_EINVAL; /* the name is reserved for the list of services */
	if (error == SPOKE_ENOMEM) {
		spokei_zoo_item_free(item);
		return error;
	}
	if (item && error) {
		item->asked = intent;
		spokei_zoo_item_fail(item, error);
		return SPOKE_OK;
	}
	if (item && !consumer)
		spokei_zoo_keep_node(registry, item->path);
	return begin(item, intent);
}

static int registry_watch(void *handle, uint64_t intent, const char *service, const char *category)
{
	struct spokei_zoo_registry *registry = handle;

	if (is_full(registry))
		return SPOKE_EUNAVAILABLE;
	return begin(spokei_zoo_item_new(registry, &spokei_zoo_listing, intent, service, category,
					 NULL),
		     intent);
}

static int registry_subscribe(void *handle, uint64_t intent, const char *service)
{
	return registry_watch(handle, intent, service, SPOKEI_ZOO_PROVIDERS);
}

/* The result can be reported at once. */
static int note_done(struct spokei_zoo_registry *registry, uint64_t intent)
{
	struct spokei_zoo_item *item = spokei_zoo_item_new(registry, &spokei_zoo_note, 0, NULL,
							   NULL, NULL);

	if (item == NULL)
		return SPOKE_ENOMEM;
	item->asked = intent;
	item->over = true;
	spokei_zoo_item_done(item);
	return SPOKE_OK;
}

static int registry_withdraw(void *handle, uint64_t intent, uint64_t which)
{
	struct spokei_zoo_registry *registry = handle;
	struct spokei_zoo_item *item = spokei_zoo_item_find(registry, which);
	struct spokei_zoo_item *removal;

	if (item == NULL || item->kind == &spokei_zoo_listing)
		return note_done(registry, intent);
	if (item->kind == &spokei_zoo_entry) {
		removal = spokei_zoo_remove(item);
	} else {
		removal = item;
		if (item->asked)
			return SPOKE_EUNAVAILABLE; /* already being withdrawn */
	}
	if (removal == NULL)
		return SPOKE_ENOMEM;
	if (spokei_zoo_item_await(removal, intent))
		return SPOKE_EUNAVAILABLE; /* stays, to be requested again */
	spokei_zoo_item_try(removal);
	return SPOKE_OK;
}

static int registry_unsubscribe(void *handle, uint64_t intent, uint64_t which)
{
	struct spokei_zoo_registry *registry = handle;
	struct spokei_zoo_item *item = spokei_zoo_item_find(registry, which);
	int error = note_done(registry, intent);

	if (error == SPOKE_OK && item && item->kind == &spokei_zoo_listing)
		spokei_zoo_item_free(item);
	return error;
}

static void registry_close(void *handle)
{
	struct spokei_zoo_registry *registry = handle;

	registry->up = NULL;
	spokei_task_drop(&registry->tell);
	while (!spokei_list_empty(&registry->items))
		spokei_zoo_item_free(spoke_container_of(spokei_list_first(&registry->items),
							struct spokei_zoo_item, node));
	spokei_zoo_stop(registry);
}

const struct spoke_registry spokei_registry_zookeeper = {
	.scheme = "zookeeper",
	.open = registry_open,
	.publish = registry_publish,
	.withdraw = registry_withdraw,
	.subscribe = registry_subscribe,
	.unsubscribe = registry_unsubscribe,
	.close = registry_close,
	.watch = registry_watch,
};
