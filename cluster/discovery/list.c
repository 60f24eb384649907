/* SPDX-License-Identifier: Apache-2.0 */
/* Takes lists of providers from the registry or the cache, and passes them on. */
#include "cluster/discovery/parts.h"
#include "cluster/discovery/rule.h"

#include "core/engine/engine.h"

/* --- cache */

/* Returns 0 or SPOKE_ENOMEM. May have freed the keeper. */
static int tell(struct spokei_keeper *keeper, const struct spokei_lineup *lineup)
{
	if (keeper->up &&
	    keeper->up->list(keeper->up_arg, lineup->urls, lineup->count) == SPOKE_ENOMEM)
		return SPOKE_ENOMEM;
	if (lineup->count > 0) {
		keeper->has_providers = true;
		keeper->protecting = false;
	}
	return SPOKE_OK;
}

static void keeper_begin(struct spokei_task *task)
{
	struct spokei_keeper *keeper = spoke_container_of(task, struct spokei_keeper, begin);

	if (keeper->ended || keeper->has_providers || keeper->kept.count == 0) {
		spokei_lineup_fini(&keeper->kept);
	} else if (tell(keeper, &keeper->kept)) {
		keeper->kept_ns = spokei_later(spokei_keeper_now(keeper), keeper->retry_ns);
		spokei_keeper_act_soon(keeper);
	} else {
		spokei_event(keeper->engine, SPOKE_OK, "registry %s: using %zu cached providers",
			     keeper->name, keeper->kept.count);
		spokei_lineup_fini(&keeper->kept);
	}
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
		spokei_lineup_fini(&keeper->kept);
		spokei_cache_free(keeper->cache);
		keeper->cache = NULL;
		return error;
	}
	keeper->begin.run = keeper_begin;
	spokei_engine_soon(keeper->engine, &keeper->begin);
	return SPOKE_OK;
}

/* --- registry */

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

static int read_all(struct spokei_lineup *lineup, const char *const *urls, size_t count)
{
	int error = SPOKE_OK;

	for (size_t i = 0; i < count && error == 0; i++)
		error = spokei_lineup_add(lineup, urls[i], strlen(urls[i]));
	return error;
}

static void tell_of_bad(struct spokei_keeper *keeper, const struct spokei_lineup *lineup)
{
	if (lineup->bad > 0) {
		spokei_event(
			keeper->engine, SPOKE_ESYNTAX,
			"registry %s: %zu invalid provider URLs ignored; the first, byte %zu: %s",
			keeper->name, lineup->bad, lineup->why.at, lineup->why.text);
	}
	if (lineup->over > 0 && !keeper->over) {
		spokei_event(keeper->engine, SPOKE_ELIMIT,
			     "registry %s: %zu providers ignored; at most %u are used",
			     keeper->name, lineup->over, SPOKEI_LINEUP_MAX);
	}
	keeper->over = lineup->over > 0;
}

/* An empty list more often means that the registry has lost its data than that the service has
 * ended. */
static bool is_believed(struct spokei_keeper *keeper, const struct spokei_lineup *lineup)
{
	if (lineup->count > 0 || keeper->takes_empty || !keeper->has_providers)
		return true;
	if (!keeper->protecting) {
		spokei_event(keeper->engine, SPOKE_ENOPROVIDER,
			     "registry %s: empty list ignored; the known providers are kept "
			     "unless registry.protect=false",
			     keeper->name);
	}
	keeper->protecting = true;
	return false;
}

/* Returns 0 or SPOKE_ENOMEM. May have freed the keeper. */
static int take(struct spokei_keeper *keeper, const struct spokei_lineup *lineup)
{
	tell_of_bad(keeper, lineup);
	if (keeper->cache && lineup->count > 0)
		spokei_cache_keep(keeper->cache, lineup->urls, lineup->count);
	return is_believed(keeper, lineup) ? tell(keeper, lineup) : SPOKE_OK;
}

/* Requests the list of providers again, to which changed rules apply. */
static void renew_list(struct spokei_keeper *keeper)
{
	for (struct spoke_list *node = keeper->wishes.next; node != &keeper->wishes;
	     node = node->next) {
		struct spokei_wish *wish = spokei_keeper_wish(node);

		if (wish->subscribes && *wish->url == 0 && spokei_wish_is_there(wish))
			wish->stale = true;
	}
	spokei_keeper_act_soon(keeper);
}

/* Returns 0 or an error that was logged; ENOMEM was not. */
static int read_rules(struct spokei_keeper *keeper, const struct spokei_wish *wish,
		      const char *const *texts, size_t count, struct spokei_lineup *lineup)
{
	char why[SPOKEI_RULE_WHY];
	int error;

	if (!spokei_rule_is(wish->url))
		return read_all(lineup, texts, count);
	error = count > 0 ? spokei_rule_read(wish->url, *texts, lineup, why) : SPOKE_OK;
	if (error && error != SPOKE_ENOMEM)
		spokei_event(keeper->engine, error,
			     "registry %s: rule config/dubbo/%s%s ignored, the last one stays: %s",
			     keeper->name, wish->service, wish->url, why);
	return error;
}

/* Takes the list of another category than providers, or a rule. Returns 0 or SPOKE_ENOMEM. */
static int take_rules(struct spokei_keeper *keeper, const struct spokei_wish *wish,
		      const char *const *texts, size_t count, struct spokei_lineup *lineup)
{
	int error = read_rules(keeper, wish, texts, count, lineup);

	if (error)
		return error == SPOKE_ENOMEM ? error : SPOKE_OK;
	if (lineup->bad > 0 || lineup->over > 0) {
		spokei_event(keeper->engine, SPOKE_ESYNTAX,
			     "registry %s: %zu rules of %s%s ignored, invalid or too many%s%s",
			     keeper->name, lineup->bad + lineup->over,
			     spokei_rule_is(wish->url) ? wish->service : "", wish->url,
			     lineup->bad ? "; the first: " : "", lineup->why.text);
	}
	if (keeper->up && keeper->up->rules(keeper->up_arg, wish->service, wish->url, lineup))
		renew_list(keeper);
	return SPOKE_OK;
}

void spokei_keeper_take_list(void *arg, uint64_t intent, const char *const *urls, size_t count)
{
	struct spokei_keeper *keeper = arg;
	struct spokei_wish *wish = find_subscription(keeper, intent);
	struct spokei_lineup lineup;
	int error;

	if (wish == NULL || wish->stale || keeper->freed || keeper->ended)
		return;
	spokei_engine_refresh(keeper->engine);
	spokei_keeper_heard(keeper);
	spokei_lineup_init(&lineup, keeper->engine->env);
	if (*wish->url) {
		error = take_rules(keeper, wish, urls, count, &lineup);
	} else {
		error = read_all(&lineup, urls, count);
		if (error == 0)
			error = take(keeper, &lineup);
	}
	spokei_lineup_fini(&lineup);
	if (error == 0 || keeper->freed)
		return;
	/* An incomplete list is dropped and requested again. */
	wish->stale = true;
	spokei_keeper_fail(keeper, wish, "take the list of", error);
	spokei_keeper_act_soon(keeper);
}
