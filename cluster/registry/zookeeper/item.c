/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of publications, removals and subscriptions: requests, timeouts and results. */
#include "cluster/registry/zookeeper/parts.h"
#include "core/base/env.h"
#include "core/engine/engine.h"

#include <string.h>

static void item_due(struct spoke_alarm *alarm);

static void asker_answered(struct spokei_zoo_asker *asker, const struct spokei_zoo_answer *answer)
{
	struct spokei_zoo_item *item = spoke_container_of(asker, struct spokei_zoo_item, asker);

	item->kind->answered(item, answer);
}

static void asker_touched(struct spokei_zoo_asker *asker, int event)
{
	struct spokei_zoo_item *item = spoke_container_of(asker, struct spokei_zoo_item, asker);

	if (item->kind->touched)
		item->kind->touched(item, event);
}

/* --- life */

static bool print_folder(struct spokei_zoo_item *item, const char *service, const char *category)
{
	const struct spokei_zoo_settings *settings = &item->registry->settings;
	size_t len = spokei_zoo_print_folder(settings, service, category, NULL, 0);

	item->path_size = len + 1;
	item->path = spokei_alloc(item->registry->engine->env, 1, item->path_size);
	if (item->path == NULL)
		return false;
	(void)spokei_zoo_print_folder(settings, service, category, item->path, len + 1);
	item->folder_len = len;
	return true;
}

int spokei_zoo_item_name(struct spokei_zoo_item *item, const char *url)
{
	const struct spoke_env *env = item->registry->engine->env;
	size_t leaf = spoke_url_encode(url, strlen(url), NULL, 0);
	size_t size = item->folder_len + 1 + leaf + 1;
	char *path = spokei_alloc(env, 1, size);

	if (path == NULL)
		return SPOKE_ENOMEM;
	memcpy(path, item->path, item->folder_len);
	path[item->folder_len] = '/';
	(void)spoke_url_encode(url, strlen(url), path + item->folder_len + 1, leaf + 1);
	spokei_free(env, item->path, 1, item->path_size);
	item->path = path;
	item->path_size = size;
	return SPOKE_OK;
}

struct spokei_zoo_item *spokei_zoo_item_new(struct spokei_zoo_registry *registry,
					    const struct spokei_zoo_kind *kind, uint64_t intent,
					    const char *service, const char *category,
					    const char *url)
{
	const struct spoke_env *env = registry->engine->env;
	struct spokei_zoo_item *item = spokei_alloc(env, 1, kind->size);

	if (item == NULL)
		return NULL;
	item->registry = registry;
	item->kind = kind;
	item->intent = intent;
	item->rule = spokei_zoo_is_rule(category);
	item->asker.answered = asker_answered;
	item->asker.touched = asker_touched;
	if (service &&
	    (!print_folder(item, service, category) || (url && spokei_zoo_item_name(item, url)))) {
		spokei_free(env, item->path, 1, item->path_size);
		spokei_free(env, item, 1, kind->size);
		return NULL;
	}
	spokei_list_append(&registry->items, &item->node);
	registry->item_count++;
	return item;
}

static void drop_urls(const struct spoke_env *env, struct spokei_zoo_item *item)
{
	spokei_free(env, item->urls, 1, item->urls_size);
	item->urls = NULL;
}

void spokei_zoo_item_free(struct spokei_zoo_item *item)
{
	const struct spoke_env *env = item->registry->engine->env;

	if (item->kind->fini)
		item->kind->fini(item);
	spokei_zoo_leave(&item->asker);
	(void)spoke_alarm_cancel(&item->alarm);
	spokei_list_remove(&item->node);
	if (item->news.next)
		spokei_list_remove(&item->news);
	item->registry->item_count--;
	drop_urls(env, item);
	spokei_free(env, item->path, 1, item->path_size);
	spokei_free(env, item, 1, item->kind->size);
}

struct spokei_zoo_item *spokei_zoo_item_find(const struct spokei_zoo_registry *registry,
					     uint64_t intent)
{
	for (struct spoke_list *at = registry->items.next; at != &registry->items; at = at->next) {
		struct spokei_zoo_item *item = spoke_container_of(at, struct spokei_zoo_item, node);

		if (item->intent == intent && !item->over)
			return item;
	}
	return NULL;
}

/* --- requests */

int spokei_zoo_item_await(struct spokei_zoo_item *item, uint64_t asked)
{
	int error = spoke_alarm_after(item->registry->engine, &item->alarm, SPOKEI_ZOO_DEADLINE_NS,
				      item_due);

	if (error == SPOKE_OK)
		item->asked = asked;
	return error;
}

void spokei_zoo_item_try(struct spokei_zoo_item *item)
{
	struct spokei_zoo_handle *handle = item->registry->handle;

	if (item->kind->begin == NULL || item->over)
		return;
	if (item->kind->stays && item->asked == 0 && !item->doubtful)
		return;
	if (handle == NULL || !spokei_zoo_handle_connected(handle))
		return;
	if (item->connect == spokei_zoo_handle_connects(handle))
		return;
	/* Answers to requests of an earlier connection are useless. */
	spokei_zoo_leave(&item->asker);
	spokei_zoo_join(handle, &item->asker);
	item->connect = spokei_zoo_handle_connects(handle);
	item->begun = true;
	item->kind->begin(item);
}

static void item_due(struct spoke_alarm *alarm)
{
	struct spokei_zoo_item *item = spoke_container_of(alarm, struct spokei_zoo_item, alarm);
	const struct spokei_zoo_handle *handle = item->registry->handle;

	if (item->asked == 0) {
		spokei_zoo_item_try(item);
	} else if (handle && spokei_zoo_handle_connected(handle)) {
		spokei_zoo_item_fail(item, SPOKE_ETIMEOUT);
	} else {
		spokei_zoo_item_fail(item, SPOKE_EUNAVAILABLE);
	}
}

bool spokei_zoo_item_again(struct spokei_zoo_item *item)
{
	item->connect = 0;
	return spoke_alarm_after(item->registry->engine, &item->alarm, SPOKEI_ZOO_AGAIN_NS,
				 item_due) == 0;
}

void spokei_zoo_item_ask(struct spokei_zoo_item *item, enum spokei_zoo_ask what, const char *path,
			 const char *text)
{
	int error = spokei_zoo_ask(&item->asker, what, path, text);

	if (error)
		spokei_zoo_item_fail(item, error);
}

bool spokei_zoo_item_make_parent(struct spokei_zoo_item *item)
{
	size_t len = item->made + 1;
	char after;

	if (item->made >= item->folder_len)
		return false;
	len += strcspn(item->path + len, "/");
	item->made = len;
	after = item->path[len];
	item->path[len] = '\0';
	spokei_zoo_item_ask(item, SPOKEI_ZOO_CREATE, item->path, "");
	item->path[len] = after;
	return true;
}

/* --- results */

void spokei_zoo_item_note(struct spokei_zoo_item *item)
{
	struct spokei_zoo_registry *registry = item->registry;

	if (item->news.next == NULL)
		spokei_list_append(&registry->news, &item->news);
	spokei_engine_soon(registry->engine, &registry->tell);
}

void spokei_zoo_item_done(struct spokei_zoo_item *item)
{
	(void)spoke_alarm_cancel(&item->alarm);
	item->error = SPOKE_OK;
	item->ended = true;
	spokei_zoo_item_note(item);
}

void spokei_zoo_item_fail(struct spokei_zoo_item *item, int error)
{
	(void)spoke_alarm_cancel(&item->alarm);
	spokei_zoo_leave(&item->asker);
	item->error = error;
	item->connect = 0;
	if (item->doubtful)
		return; /* until the next connection */
	if (item->asked) {
		item->ended = true;
		item->over = !item->kind->stays;
	} else {
		item->lost = true;
		item->over = true;
	}
	spokei_zoo_item_note(item);
}

void spokei_zoo_items_end(struct spokei_zoo_registry *registry)
{
	struct spoke_list *next;

	for (struct spoke_list *at = registry->items.next; at != &registry->items; at = next) {
		struct spokei_zoo_item *item = spoke_container_of(at, struct spokei_zoo_item, node);

		next = at->next;
		if (item->ended)
			item->over = true;
		else if (item->asked && item->kind->stays)
			spokei_zoo_item_done(item); /* the node to be removed is gone */
		else if (item->asked)
			spokei_zoo_item_fail(item, SPOKE_ELOST);
		else
			spokei_zoo_item_free(item);
	}
	registry->lost_all = true;
	spokei_engine_soon(registry->engine, &registry->tell);
}
