/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and frees keepers, and adds and removes their wishes. */
#include "cluster/discovery/parts.h"
#include "core/base/log.h"

#include "cluster/catalog.h"
#include "core/engine/engine.h"

#include <stdio.h>

#define WANTED_MAX 1024u
#define WISHES_MAX 4096u            /* including those to be withdrawn */
#define END_NS UINT64_C(3000000000) /* for withdrawals after free() */
#define RETRY_MIN_NS UINT64_C(10000000)
#define RETRY_MAX_NS UINT64_C(86400000000000)

/* --- the end */

static void destroy(struct spokei_keeper *keeper)
{
	(void)spoke_alarm_cancel(&keeper->alarm);
	spokei_task_drop(&keeper->act);
	spokei_task_drop(&keeper->begin);
	if (keeper->registry)
		keeper->kind->close(keeper->registry);
	keeper->registry = NULL;
	spokei_cache_free(keeper->cache);
	keeper->cache = NULL;
	spokei_lineup_fini(&keeper->kept);
	while (!spokei_list_empty(&keeper->wishes))
		spokei_keeper_drop_wish(keeper, spokei_keeper_wish(keeper->wishes.next));
}

static void keeper_bury(struct spokei_task *task)
{
	struct spokei_keeper *keeper = spoke_container_of(task, struct spokei_keeper, bury);
	struct spoke_engine *engine = keeper->engine;

	keeper->ended = true;
	destroy(keeper);
	if (!keeper->freed) {
		spokei_roll_retire(engine, &keeper->member);
		return;
	}
	spokei_roll_drop(engine, &keeper->member);
	spokei_free(engine->env, keeper, 1, keeper->size);
}

static void want_no_more(struct spokei_wish *wish)
{
	if (!wish->wanted)
		return;
	wish->wanted = false;
	wish->due_ns = 0;
	wish->failures = 0;
}

void spokei_keeper_withdraw_all(struct spokei_keeper *keeper)
{
	for (struct spoke_list *node = keeper->wishes.next; node != &keeper->wishes;
	     node = node->next)
		if (!spokei_keeper_wish(node)->subscribes)
			want_no_more(spokei_keeper_wish(node));
	spokei_keeper_act_soon(keeper);
}

void spokei_keeper_free(struct spokei_keeper *keeper)
{
	if (keeper == NULL || keeper->freed)
		return;
	keeper->freed = true;
	keeper->up = NULL;
	keeper->end_ns = spokei_later(spokei_keeper_now(keeper), END_NS);
	if (keeper->ended || spokei_engine_forked(keeper->engine))
		spokei_engine_dead(keeper->engine, &keeper->bury);
	else
		spokei_keeper_withdraw_all(keeper);
}

/* Requests the withdrawals before the registry is closed. */
static void keeper_close(struct spokei_member *member)
{
	struct spokei_keeper *keeper = spoke_container_of(member, struct spokei_keeper, member);

	spokei_keeper_withdraw_all(keeper);
	spokei_engine_dead(keeper->engine, &keeper->bury);
}

/* The owner drains and then frees the keeper. */
static void keeper_drain(struct spokei_member *member)
{
	(void)member;
}

static void keeper_free(struct spokei_member *member)
{
	spokei_keeper_free(spoke_container_of(member, struct spokei_keeper, member));
}

/* --- wishes */

/* Wishes that this one replaces are not counted. */
static bool has_room(struct spokei_keeper *keeper, const struct spokei_wish *wish)
{
	unsigned wanted = 0;

	for (struct spoke_list *node = keeper->wishes.next; node != &keeper->wishes;
	     node = node->next) {
		const struct spokei_wish *other = spokei_keeper_wish(node);

		wanted += other->wanted && (other->subscribes != wish->subscribes ||
					    strcmp(other->key, wish->key) != 0);
	}
	return wanted < WANTED_MAX && keeper->wish_count < WISHES_MAX;
}

static int add_wish(struct spokei_keeper *keeper, const char *service, const char *url,
		    const char *category, struct spokei_wish **ret_wish)
{
	int error = spokei_wish_new(keeper->engine->env, service, url, category, ret_wish);

	if (error)
		return error;
	if (!has_room(keeper, *ret_wish)) {
		spokei_wish_free(keeper->engine->env, *ret_wish);
		return SPOKE_ELIMIT;
	}
	(*ret_wish)->wanted = true;
	spokei_list_append(&keeper->wishes, &(*ret_wish)->node);
	keeper->wish_count++;
	return SPOKE_OK;
}

/* The newest wish about an address replaces all others. */
static struct spokei_wish *supersede(struct spokei_keeper *keeper, struct spokei_wish *wish)
{
	struct spokei_wish *same = NULL;

	for (struct spoke_list *node = keeper->wishes.next; node != &keeper->wishes;
	     node = node->next) {
		struct spokei_wish *other = spokei_keeper_wish(node);

		if (other == wish || other->subscribes || strcmp(other->key, wish->key) != 0)
			continue;
		if (strcmp(other->url, wish->url) == 0)
			same = other;
		else
			want_no_more(other);
	}
	return same;
}

int spokei_keeper_publish(struct spokei_keeper *keeper, const char *service, const char *url)
{
	struct spokei_wish *wish;
	struct spokei_wish *same;
	int error;

	if (keeper->ended || keeper->freed)
		return SPOKE_ECLOSED;
	error = add_wish(keeper, service, url, NULL, &wish);
	if (error)
		return error;
	same = supersede(keeper, wish);
	if (same) {
		spokei_keeper_drop_wish(keeper, wish);
		wish = same;
		if (!wish->wanted) {
			wish->wanted = true;
			wish->due_ns = 0;
			wish->failures = 0;
		}
	}
	spokei_keeper_heard(keeper);
	return SPOKE_OK;
}

int spokei_keeper_withdraw(struct spokei_keeper *keeper, const char *service, const char *url)
{
	const struct spoke_env *env = keeper->engine->env;
	struct spokei_wish *same;
	struct spokei_wish *wish;
	int error;

	if (keeper->ended || keeper->freed)
		return SPOKE_ECLOSED;
	error = spokei_wish_new(env, service, url, NULL, &wish);
	if (error)
		return error;
	same = supersede(keeper, wish);
	if (same)
		want_no_more(same);
	spokei_wish_free(env, wish);
	spokei_keeper_act_soon(keeper);
	return SPOKE_OK;
}

int spokei_keeper_subscribe(struct spokei_keeper *keeper, const char *service)
{
	struct spokei_wish *wish;
	int error;

	if (keeper->ended || keeper->freed)
		return SPOKE_ECLOSED;
	error = add_wish(keeper, service, NULL, "", &wish);
	if (error)
		return error;
	error = spokei_keeper_read_cache(keeper, service);
	if (error) {
		spokei_keeper_drop_wish(keeper, wish);
		return error;
	}
	spokei_keeper_act_soon(keeper);
	return SPOKE_OK;
}

bool spokei_keeper_has_categories(const struct spokei_keeper *keeper)
{
	return keeper->kind->watch != NULL;
}

static bool is_watched(const struct spokei_keeper *keeper, const char *service,
		       const char *category)
{
	for (struct spoke_list *node = keeper->wishes.next; node != &keeper->wishes;
	     node = node->next) {
		const struct spokei_wish *wish = spokei_keeper_wish(node);

		if (wish->subscribes && strcmp(wish->service, service) == 0 &&
		    strcmp(wish->url, category) == 0)
			return true;
	}
	return false;
}

int spokei_keeper_watch(struct spokei_keeper *keeper, const char *service, const char *category)
{
	struct spokei_wish *wish;
	int error;

	if (keeper->ended || keeper->freed)
		return SPOKE_ECLOSED;
	if (is_watched(keeper, service, category))
		return SPOKE_OK;
	error = add_wish(keeper, service, NULL, category, &wish);
	if (error == 0)
		spokei_keeper_act_soon(keeper);
	return error;
}

void spokei_keeper_count(const struct spokei_keeper *keeper, size_t *ret_wanted, size_t *ret_true)
{
	*ret_wanted = 0;
	*ret_true = 0;
	for (struct spoke_list *node = keeper->wishes.next; node != &keeper->wishes;
	     node = node->next) {
		const struct spokei_wish *wish = spokei_keeper_wish(node);

		*ret_wanted += wish->wanted;
		*ret_true += wish->wanted && wish->state == SPOKEI_WISH_HOLDS;
	}
}

/* --- the beginning */

static int check(struct spoke_engine *engine, const struct spokei_keeper_options *options)
{
	if (options->retry_ns &&
	    (options->retry_ns < RETRY_MIN_NS || options->retry_ns > RETRY_MAX_NS)) {
		spokei_event(engine, SPOKE_ERANGE,
			     "option registry.retry.period: not between 10ms and 24h");
		return SPOKE_ERANGE;
	}
	if (options->cache && options->cache[0] == '\0') {
		spokei_event(engine, SPOKE_EINVAL, "option registry.cache: empty path");
		return SPOKE_EINVAL;
	}
	if (options->cache && engine->env->files == NULL) {
		spokei_event(engine, SPOKE_EUNSUPPORTED,
			     "option registry.cache: this environment has no files");
		return SPOKE_EUNSUPPORTED;
	}
	return SPOKE_OK;
}

static int find_kind(struct spoke_engine *engine, const char *scheme,
		     const struct spoke_registry **ret_kind)
{
	char known[128] = "";
	char shown[SPOKEI_KEEPER_SHOWN];
	const char *name;
	size_t len = 0;

	*ret_kind = spokei_catalog_registry(scheme);
	if (*ret_kind)
		return SPOKE_OK;
	for (unsigned i = 0; (name = spokei_catalog_registry_name(i)) && len < sizeof(known); i++)
		len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", i ? ", " : "",
					name);
	(void)spokei_log_escape(shown, sizeof(shown), scheme, strlen(scheme));
	spokei_event(engine, SPOKE_EUNSUPPORTED,
		     "registry: unknown scheme %s; use one of %s, or a registry of the program",
		     shown, *known ? known : "none");
	return SPOKE_EUNSUPPORTED;
}

static int parse(struct spoke_engine *engine, const char *text, struct spoke_url *ret_url)
{
	struct spoke_url_error why;
	int error;

	if (text == NULL) {
		spokei_event(engine, SPOKE_EINVAL, "option registry: missing URL");
		return SPOKE_EINVAL;
	}
	error = spoke_url_parse(engine->env, text, strlen(text), ret_url, &why);
	if (error)
		spokei_event(engine, error, "option registry, byte %zu: %s", why.at, why.text);
	return error;
}

/* Formats the name for messages: without a password, and cut. */
static void name_it(struct spokei_keeper *keeper, const struct spoke_url *url)
{
	char text[2 * SPOKEI_KEEPER_SHOWN];
	size_t len = spoke_url_print(url, SPOKE_URL_DISPLAY, text, sizeof(text));

	(void)spokei_log_escape(keeper->name, sizeof(keeper->name), text,
				len < sizeof(text) ? len : sizeof(text) - 1);
}

static struct spokei_keeper *make(struct spoke_engine *engine,
				  const struct spokei_keeper_options *options)
{
	const char *path = options->cache ? options->cache : "";
	struct spokei_keeper *keeper;
	size_t size = sizeof(*keeper) + strlen(path) + 1;

	keeper = spokei_alloc(engine->env, 1, size);
	if (keeper == NULL)
		return NULL;
	keeper->engine = engine;
	keeper->size = size;
	keeper->retry_ns = options->retry_ns ? options->retry_ns : SPOKEI_KEEPER_RETRY_NS;
	keeper->retries_max = options->retries_max;
	keeper->takes_empty = options->takes_empty;
	memcpy(keeper->cache_path, path, strlen(path) + 1);
	keeper->act.run = spokei_keeper_act;
	keeper->bury.run = keeper_bury;
	spokei_list_init(&keeper->wishes);
	spokei_lineup_init(&keeper->kept, engine->env);
	keeper->member = (struct spokei_member){
		.kind = "keeper",
		.close = keeper_close,
		.drain = keeper_drain,
		.free = keeper_free,
	};
	return keeper;
}

static int open_registry(struct spokei_keeper *keeper, const struct spokei_keeper_options *options)
{
	struct spoke_url url;
	int error = parse(keeper->engine, options->registry, &url);

	if (error)
		return error;
	name_it(keeper, &url);
	keeper->kind = options->kind;
	if (keeper->kind == NULL)
		error = find_kind(keeper->engine, url.scheme, &keeper->kind);
	if (error == 0)
		error = spokei_keeper_set_alarm(keeper, spokei_keeper_now(keeper));
	if (error == 0)
		error = keeper->kind->open(keeper->engine, &url, &spokei_keeper_registry_up, keeper,
					   &keeper->registry);
	spoke_url_fini(&url);
	return error;
}

int spokei_keeper_new(struct spoke_engine *engine, const struct spokei_keeper_options *options,
		      const struct spokei_keeper_up *up, void *up_arg,
		      struct spokei_keeper **ret_keeper)
{
	int error = check(engine, options);
	struct spokei_keeper *keeper;

	if (error)
		return error;
	keeper = make(engine, options);
	if (keeper == NULL)
		return SPOKE_ENOMEM;
	keeper->up = up;
	keeper->up_arg = up_arg;
	error = open_registry(keeper, options);
	if (error) {
		destroy(keeper);
		spokei_free(engine->env, keeper, 1, keeper->size);
		return error;
	}
	spokei_roll_add(engine, &keeper->member);
	*ret_keeper = keeper;
	return SPOKE_OK;
}
