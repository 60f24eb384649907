/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/keeper_parts.h"

/* --- what was heard last */

static void tell(struct spokei_keeper *keeper, const struct spokei_roster *roster)
{
	if (roster->count > 0) {
		keeper->has_providers = true;
		keeper->protecting = false;
	}
	if (keeper->up)
		keeper->up->list(keeper->up_arg, roster->urls, roster->count);
}

static void keeper_begin(struct spokei_task *task)
{
	struct spokei_keeper *keeper = spoke_container_of(task, struct spokei_keeper, begin);

	if (!keeper->ended && keeper->kept.count > 0) {
		spokei_event(keeper->engine, SPOKE_OK,
			     "registry %s: begun with the %zu providers of the cache", keeper->name,
			     keeper->kept.count);
		tell(keeper, &keeper->kept);
	}
	spokei_roster_fini(&keeper->kept);
}

int spokei_keeper_read_cache(struct spokei_keeper *keeper, const char *service)
{
	int error;

	if (keeper->cache_path[0] == '\0')
		return SPOKE_OK;
	error = spokei_cache_new(keeper->engine, keeper->cache_path, service, &keeper->cache);
	if (error)
		return error;
	error = spokei_cache_read(keeper->cache, &keeper->kept);
	if (error) {
		spokei_roster_fini(&keeper->kept);
		spokei_cache_free(keeper->cache);
		keeper->cache = NULL;
		return error;
	}
	keeper->begin.run = keeper_begin;
	spokei_engine_soon(keeper->engine, &keeper->begin);
	return SPOKE_OK;
}

/* --- what the registry tells */

static struct spokei_wish *find_subscription(struct spokei_keeper *keeper, uint64_t intent)
{
	for (struct spoke_list *node = keeper->wishes.next; node != &keeper->wishes;
	     node = node->next) {
		struct spokei_wish *wish = spokei_keeper_wish(node);

		if (wish->subscribes && wish->which == intent &&
		    (wish->state == SPOKEI_WISH_SAYING || wish->state == SPOKEI_WISH_HOLDS))
			return wish;
	}
	return NULL;
}

static int read_all(struct spokei_roster *roster, const char *const *urls, size_t count)
{
	int error = SPOKE_OK;

	for (size_t i = 0; i < count && error == 0; i++)
		error = spokei_roster_add(roster, urls[i], strlen(urls[i]));
	return error;
}

static void tell_of_bad(struct spokei_keeper *keeper, const struct spokei_roster *roster)
{
	if (roster->bad > 0)
		spokei_event(keeper->engine, SPOKE_ESYNTAX,
			     "registry %s: %zu providers passed over; the first, byte %zu: %s",
			     keeper->name, roster->bad, roster->why.at, roster->why.text);
	if (roster->over > 0)
		spokei_event(keeper->engine, SPOKE_ELIMIT,
			     "registry %s: %zu providers passed over, for there are %u",
			     keeper->name, roster->over, SPOKEI_ROSTER_MAX);
}

/* An empty list is more often a registry that has lost its data than a service that has ended. */
static bool is_believed(struct spokei_keeper *keeper, const struct spokei_roster *roster)
{
	if (roster->count > 0 || keeper->takes_empty || !keeper->has_providers)
		return true;
	if (!keeper->protecting)
		spokei_event(keeper->engine, SPOKE_ENOPROVIDER,
			     "registry %s: it lists no provider any more; those known are kept, "
			     "unless registry.protect=false",
			     keeper->name);
	keeper->protecting = true;
	return false;
}

void spokei_keeper_take_list(void *arg, uint64_t intent, const char *const *urls, size_t count)
{
	struct spokei_keeper *keeper = arg;
	struct spokei_wish *wish = find_subscription(keeper, intent);
	struct spokei_roster roster;
	int error;

	if (wish == NULL || wish->stale || keeper->freed || keeper->ended)
		return;
	spokei_roster_init(&roster, keeper->engine->env);
	error = read_all(&roster, urls, count);
	if (error) {
		/* Half a list is none. It is asked for anew. */
		wish->stale = true;
		spokei_keeper_fail(keeper, wish, "take the list of", error);
		spokei_keeper_act_soon(keeper);
	} else {
		spokei_keeper_heard(keeper);
		tell_of_bad(keeper, &roster);
		if (keeper->cache && roster.count > 0)
			spokei_cache_keep(keeper->cache, roster.urls, roster.count);
		if (is_believed(keeper, &roster))
			tell(keeper, &roster);
	}
	spokei_roster_fini(&roster);
}
