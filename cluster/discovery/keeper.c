/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps entries of a registry as they are wanted: publications and subscriptions. Several entries
 * may be about the same provider; at most one of them is wanted, and it is not requested before the
 * others are withdrawn.
 *
 * Events only change entries; a single task calls the registry and the keeper's owner, so that no
 * function of either is called from inside another. A registry does each request once. Retries,
 * the log of failures and the lists that wait for the owner are here, for all registries.
 */
#include "cluster/discovery/keeper.h"

#include "cluster/discovery/cache.h"
#include "cluster/discovery/override.h"
#include "cluster/registry/instance.h"
#include "cluster/registry/urls.h"
#include "core/base/log.h"
#include "core/base/pace.h"
#include "core/engine/engine.h"
#include "core/engine/members.h"
#include "core/engine/task.h"

#include <spoke/engine.h>
#include <spoke/registry.h>

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#define MS UINT64_C(1000000)
#define SHOWN 64u /* bytes of a name in events */
#define WANTED_MAX 1024u
#define ENTRIES_MAX 4096u               /* including those to be withdrawn */
#define END_NS UINT64_C(3000000000)     /* for withdrawals after free() */
#define IDLE_NS UINT64_C(3600000000000) /* how often an idle alarm is renewed */
#define RETRY_MIN_NS UINT64_C(10000000)
#define RETRY_MAX_NS UINT64_C(86400000000000)
#define GIVEN_UP UINT64_MAX

/* The state of an entry at the registry, as far as it is known. */
enum entry_state {
	ABSENT,
	ASKING, /* want() is in flight */
	HELD,
	ENDING, /* unwant() is in flight */
	UNSURE, /* one of them has failed, or it was lost: it may be there */
};

/* The state after the result of a request, or after a loss. */
/* clang-format off */
static const struct {
	enum entry_state success;
	enum entry_state error;
} after[] = {
	[ABSENT] = { ABSENT, ABSENT },
	[ASKING] = { HELD, UNSURE },
	[HELD] = { HELD, UNSURE },
	[ENDING] = { ABSENT, UNSURE },
	[UNSURE] = { UNSURE, UNSURE },
};
/* clang-format on */

/* An instance, as it is published. */
struct description {
	struct spokei_buffer text; /* its URL and its metadata, each with a NUL */
	struct spoke_url url;
};

struct entry {
	struct spoke_list node; /* list of the keeper */
	enum entry_state state;
	bool wanted;
	bool stale;        /* must be withdrawn and requested again */
	bool troubled;     /* failed or lost, and not restored yet */
	bool has_list;     /* a list is to be passed on, from `list_ns` on */
	bool quiet;        /* a publication that only its instance shows */
	bool seen;         /* of an instance: there are providers in it */
	bool changed;      /* ... and `next` is to be published in place of `last` */
	uint32_t failures; /* consecutive */
	uint64_t due_ns;   /* earliest next request; GIVEN_UP: never */
	uint64_t anew_ns;  /* from then on a loss is repeated at once */
	uint64_t list_ns;
	struct spokei_buffer texts;     /* that list, of providers */
	size_t count;                   /* of these texts */
	struct spokei_url_list list;    /* ... of another category */
	struct spokei_route_rule *rule; /* ... or the rule that it is; NULL: none */
	struct spoke_url url;           /* of a publication */
	struct description last;        /* of an instance: the last one published ... */
	struct description next;        /* ... and the next one */
	size_t size;                    /* of this struct, with all that follows it */
	/* The registry's struct begins with this one; after it are the texts. */
	_Alignas(max_align_t) struct spoke_registry_entry of;
};

struct spokei_keeper {
	struct spoke_engine *engine;
	struct spokei_member member; /* registration at the engine */
	const struct spoke_registry *kind;
	void *registry; /* NULL: closed */
	uint64_t retry_ns;
	uint32_t retries_max;              /* 0: no limit */
	uint8_t mode;                      /* enum spokei_keeper_mode */
	const struct spokei_keeper_up *up; /* NULL: no callbacks */
	void *up_arg;
	struct spoke_list entries;
	size_t entry_count;
	size_t troubled; /* entries that are troubled */
	bool complained; /* the failure was logged */
	bool gave_up;    /* giving up was logged */
	bool ended;      /* closed: no more requests */
	bool freed;
	bool describes;           /* the instances are to be described ... */
	bool undescribed;         /* one cannot be published, which was logged */
	uint64_t describe_ns;     /* ... from then on */
	uint64_t end_ns;          /* after free(): deadline of the withdrawals */
	struct spoke_alarm alarm; /* always armed: for the next due entry, or the end */
	struct spokei_task act;   /* sends the requests, and passes lists on */
	struct spokei_task finalise;
	struct spokei_cache *cache; /* NULL: none */
	char name[SHOWN];           /* name of the registry in events */
	size_t size;                /* of this, with the path of the cache */
	char cache_path[];          /* "": none */
};

static struct entry *entry_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct entry, node);
}

static bool subscribes(const struct entry *entry)
{
	return entry->of.url == NULL;
}

/* Returns the entry after `entry`, or the first after NULL; NULL at the end. */
static struct entry *next_of(const struct spokei_keeper *keeper, const struct entry *entry)
{
	struct spoke_list *next = entry ? entry->node.next : keeper->entries.next;

	return next == &keeper->entries ? NULL : entry_at(next);
}

static bool is_of_category(const struct entry *entry, const char *category)
{
	return strcmp(entry->of.category, category) == 0;
}

static bool is_instance(const struct entry *entry)
{
	return !subscribes(entry) && is_of_category(entry, SPOKE_REGISTRY_INSTANCES);
}

/* Returns whether the entry is the subscription to the providers. */
static bool lists_providers(const struct entry *entry)
{
	return subscribes(entry) && is_of_category(entry, SPOKE_REGISTRY_PROVIDERS);
}

/* Returns whether the entry is the subscription to a rule that is no configurator. */
static bool routes(const struct entry *entry)
{
	return spokei_urls_are_rule(entry->of.category) &&
	       strcmp(entry->of.category, SPOKEI_RULE_CONFIGURATORS) != 0;
}

static bool is_in_flight(const struct entry *entry)
{
	return entry->state == ASKING || entry->state == ENDING;
}

static uint64_t now_of(const struct spokei_keeper *keeper)
{
	return keeper->engine->env->now(keeper->engine->env->ctx);
}

static void act_soon(struct spokei_keeper *keeper)
{
	spokei_run_soon(keeper->engine, &keeper->act);
}

/* --- troubles */

static void worry(struct spokei_keeper *keeper, struct entry *entry)
{
	keeper->troubled += !entry->troubled;
	entry->troubled = true;
}

/* Returns whether this was the last troubled entry. */
static bool calm(struct spokei_keeper *keeper, struct entry *entry)
{
	if (!entry->troubled)
		return false;
	entry->troubled = false;
	if (--keeper->troubled > 0)
		return false;
	keeper->complained = false;
	keeper->gave_up = false;
	return true;
}

/* The entry is as wanted. */
static void restore(struct spokei_keeper *keeper, struct entry *entry)
{
	if (calm(keeper, entry))
		spokei_event(keeper->engine, SPOKE_OK, "registry %s: recovered", keeper->name);
}

/* Returns when the next retry is due. */
static uint64_t after_pause(const struct spokei_keeper *keeper)
{
	const struct spoke_env *env = keeper->engine->env;
	const struct spokei_backoff backoff = { keeper->retry_ns, keeper->retry_ns };
	uint64_t dice;

	env->dice(env->ctx, &dice, sizeof(dice));
	return spokei_later(now_of(keeper), spokei_backoff_pause(&backoff, 0, dice));
}

/* Logs that "cannot `verb` SERVICE", once in a series of failures. */
static void complain(struct spokei_keeper *keeper, struct entry *entry, const char *verb, int error)
{
	const char *name = entry->of.service;
	char service[SHOWN];

	worry(keeper, entry);
	if (keeper->complained)
		return;
	keeper->complained = true;
	(void)spokei_log_escape_end(service, sizeof(service), name, strlen(name));
	/* The sentence of EUNAVAILABLE is about calls. */
	spokei_event(keeper->engine, error,
		     "registry %s: cannot %s %s: %s; retrying every %" PRIu64 " ms", keeper->name,
		     verb, service,
		     error == SPOKE_EUNAVAILABLE ? "the registry does not answer"
						 : spoke_strerror(error),
		     keeper->retry_ns / MS);
}

/* Schedules the next request after a failure, or gives up. */
static void fail(struct spokei_keeper *keeper, struct entry *entry, const char *verb, int error)
{
	complain(keeper, entry, verb, error);
	entry->failures++;
	entry->due_ns = after_pause(keeper);
	if (keeper->retries_max == 0 || entry->failures <= keeper->retries_max)
		return;
	entry->due_ns = GIVEN_UP;
	if (keeper->gave_up)
		return;
	keeper->gave_up = true;
	spokei_event(keeper->engine, error,
		     "registry %s: given up after %" PRIu32
		     " retries; retrying when the registry answers",
		     keeper->name, keeper->retries_max);
}

/* The registry has answered: retries the entries that were given up. */
static void heard(struct spokei_keeper *keeper)
{
	for (struct entry *entry = next_of(keeper, NULL); entry; entry = next_of(keeper, entry)) {
		if (entry->due_ns != GIVEN_UP)
			continue;
		entry->due_ns = 0;
		entry->failures = 0;
	}
	act_soon(keeper);
}

/* --- reports of the registry */

static void succeeded(struct spokei_keeper *keeper, struct entry *entry)
{
	/* A list that could not be taken decides when it is requested again. */
	if (entry->state == HELD && entry->stale)
		return;
	entry->failures = 0;
	entry->due_ns = 0;
	if (entry->wanted == (entry->state == HELD))
		restore(keeper, entry);
}

/* Repeats the request at once, or after a pause if the entry was lost again before a pause has
 * passed. */
static void lost(struct spokei_keeper *keeper, struct entry *entry, int error)
{
	uint64_t now_ns = now_of(keeper);

	entry->stale = false;
	if (!entry->wanted)
		return;
	if (keeper->troubled == 0)
		spokei_event(keeper->engine, error,
			     "registry %s: entries lost; repeating the requests", keeper->name);
	worry(keeper, entry);
	entry->failures = 0;
	entry->due_ns = now_ns >= entry->anew_ns ? 0 : after_pause(keeper);
	entry->anew_ns = spokei_later(now_ns, keeper->retry_ns);
}

static void registry_state(void *arg, struct spoke_registry_entry *of, int error)
{
	static const char *const verbs[2][2] = { { "publish", "subscribe to" },
						 { "withdraw", "unsubscribe from" } };
	struct spokei_keeper *keeper = arg;
	struct entry *entry = spoke_container_of(of, struct entry, of);
	enum entry_state before = entry->state;

	spokei_engine_refresh(keeper->engine);
	entry->state = error ? after[before].error : after[before].success;
	if (before == HELD && error)
		lost(keeper, entry, error);
	else if (error && entry->state != before)
		fail(keeper, entry, verbs[before == ENDING][subscribes(entry)], error);
	else if (entry->state != before)
		succeeded(keeper, entry);
	if (error && (before == ASKING || before == ENDING))
		act_soon(keeper);
	else
		heard(keeper);
}

static int read_all(struct spokei_url_list *list, const char *texts, size_t count)
{
	int error = SPOKE_OK;

	for (; count > 0 && error == 0; count--) {
		size_t len = strlen(texts);

		error = spokei_url_list_add(list, texts, len);
		texts += len + 1;
	}
	return error;
}

/* Reads a rule into the list, or into *ret_rule. Returns 0 or an error that was logged; ENOMEM was
 * not. */
static int read_rule(struct spokei_keeper *keeper, const struct entry *entry, const char *text,
		     struct spokei_url_list *list, struct spokei_route_rule **ret_rule)
{
	char why[SPOKEI_RULE_WHY];
	int error = routes(entry) ? spokei_route_read(keeper->engine->env, entry->of.category, text,
						      ret_rule, why)
				  : spokei_rule_read(text, list, why);

	if (error && error != SPOKE_ENOMEM)
		spokei_event(keeper->engine, error,
			     "registry %s: rule config/dubbo/%s%s ignored, the last one stays: %s",
			     keeper->name, entry->of.service, entry->of.category, why);
	return error;
}

static void log_bad_rules(struct spokei_keeper *keeper, const struct entry *entry,
			  const struct spokei_url_list *list)
{
	const char *category = entry->of.category;

	if (list->bad > 0 || list->over > 0) {
		spokei_event(keeper->engine, SPOKE_ESYNTAX,
			     "registry %s: %zu rules of %s%s ignored, invalid or too many%s%s",
			     keeper->name, list->bad + list->over,
			     spokei_urls_are_rule(category) ? entry->of.service : "", category,
			     list->bad ? "; the first: " : "", list->why.text);
	}
}

static void forget_list(struct entry *entry)
{
	spokei_url_list_fini(&entry->list);
	spokei_route_free(entry->rule);
	entry->rule = NULL;
}

/* Lets the list of an entry wait for the owner. */
static void pass_soon(struct spokei_keeper *keeper, struct entry *entry)
{
	entry->has_list = true;
	entry->list_ns = 0;
	act_soon(keeper);
}

/* Copies a list of providers, in place of an older one. */
static int keep_texts(struct entry *entry, const char *texts, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += strlen(texts + len) + 1;
	spokei_buffer_clear(&entry->texts);
	entry->count = count;
	return len > 0 ? spokei_buffer_append(&entry->texts, texts, len) : SPOKE_OK;
}

/* Parses a list of another category, in place of an older one. Returns 0 or an error that was
 * logged; ENOMEM was not. */
static int keep_list(struct spokei_keeper *keeper, struct entry *entry, const char *texts,
		     size_t count)
{
	struct spokei_route_rule *rule = NULL;
	struct spokei_url_list list;
	int error;

	spokei_url_list_init(&list, keeper->engine->env);
	if (spokei_urls_are_rule(entry->of.category))
		error = count > 0 ? read_rule(keeper, entry, texts, &list, &rule) : SPOKE_OK;
	else
		error = read_all(&list, texts, count);
	if (error) {
		spokei_url_list_fini(&list);
		return error;
	}
	log_bad_rules(keeper, entry, &list);
	forget_list(entry);
	entry->list = list;
	entry->rule = rule;
	return SPOKE_OK;
}

static void registry_list(void *arg, struct spoke_registry_entry *of, const char *texts,
			  size_t count)
{
	struct spokei_keeper *keeper = arg;
	struct entry *entry = spoke_container_of(of, struct entry, of);
	int error;

	if (keeper->freed || entry->stale || (entry->state != ASKING && entry->state != HELD))
		return;
	spokei_engine_refresh(keeper->engine);
	heard(keeper);
	error = lists_providers(entry) ? keep_texts(entry, texts, count)
				       : keep_list(keeper, entry, texts, count);
	if (error == SPOKE_ENOMEM) {
		/* An incomplete list is dropped and requested again. */
		entry->has_list = false;
		entry->stale = true;
		fail(keeper, entry, "take the list of", error);
	} else if (error == SPOKE_OK) {
		if (lists_providers(entry) && keeper->cache && count > 0)
			spokei_cache_keep(keeper->cache, texts, count);
		pass_soon(keeper, entry);
	}
}

static const struct spoke_registry_up registry_up = {
	.state = registry_state,
	.list = registry_list,
};

/* --- entries */

static void set_wanted(struct entry *entry, bool wanted)
{
	if (entry->wanted == wanted)
		return;
	entry->wanted = wanted;
	entry->due_ns = 0;
	entry->failures = 0;
}

static bool is_same_provider(const struct entry *entry, const char *service,
			     const struct spoke_url *url)
{
	return !subscribes(entry) && !is_instance(entry) &&
	       strcmp(entry->of.service, service) == 0 && spokei_urls_same(entry->of.url, url);
}

static void drop_description(struct description *description)
{
	spokei_buffer_fini(&description->text);
	spoke_url_fini(&description->url);
}

static void drop_entry(struct spokei_keeper *keeper, struct entry *entry)
{
	(void)calm(keeper, entry);
	keeper->entry_count--;
	spokei_list_remove(&entry->node);
	spokei_buffer_fini(&entry->texts);
	forget_list(entry);
	drop_description(&entry->last);
	drop_description(&entry->next);
	spoke_url_fini(&entry->url);
	spokei_free(keeper->engine->env, entry, 1, entry->size);
}

/* Adds an entry: a publication if there is a `url`, whose memory it takes over, with its text; else
 * one of a category. */
static int add_entry(struct spokei_keeper *keeper, const char *service, const char *text,
		     struct spoke_url *url, struct entry **ret_entry)
{
	const size_t room = keeper->kind->entry_size ? keeper->kind->entry_size
						     : sizeof(struct spoke_registry_entry);
	const size_t service_size = strlen(service) + 1;
	const size_t text_size = strlen(text) + 1;
	const size_t size = offsetof(struct entry, of) + room + service_size + text_size;
	struct entry *entry;
	char *texts;

	if (keeper->entry_count >= ENTRIES_MAX)
		return SPOKE_ELIMIT;
	entry = spokei_alloc(keeper->engine->env, 1, size);
	if (entry == NULL)
		return SPOKE_ENOMEM;
	entry->size = size;
	entry->wanted = true;
	spokei_buffer_init(&entry->texts, keeper->engine->env, SIZE_MAX);
	spokei_buffer_init(&entry->last.text, keeper->engine->env, SIZE_MAX);
	spokei_buffer_init(&entry->next.text, keeper->engine->env, SIZE_MAX);
	spokei_url_list_init(&entry->list, keeper->engine->env);
	texts = (char *)&entry->of + room;
	memcpy(texts, service, service_size);
	memcpy(texts + service_size, text, text_size);
	entry->of.service = texts;
	entry->of.category = texts + service_size;
	if (url) {
		entry->url = *url;
		entry->of.url = &entry->url;
		entry->of.text = texts + service_size;
		entry->of.category = strcmp(url->scheme, "consumer") == 0
					     ? SPOKE_REGISTRY_CONSUMERS
					     : SPOKE_REGISTRY_PROVIDERS;
		entry->quiet = keeper->mode == SPOKEI_KEEPER_INSTANCE && keeper->kind->instances &&
			       url->host && is_of_category(entry, SPOKE_REGISTRY_PROVIDERS);
	}
	spokei_list_append(&keeper->entries, &entry->node);
	keeper->entry_count++;
	*ret_entry = entry;
	return SPOKE_OK;
}

/* Returns how many entries are wanted, but for those that `url` replaces; it may be NULL. */
static size_t count_wanted(struct spokei_keeper *keeper, const char *service,
			   const struct spoke_url *url)
{
	size_t wanted = 0;

	for (struct entry *entry = next_of(keeper, NULL); entry; entry = next_of(keeper, entry)) {
		wanted += entry->wanted && !(url && is_same_provider(entry, service, url));
	}
	return wanted;
}

/* Returns the publication of this text, or NULL. */
static struct entry *find_publication(struct spokei_keeper *keeper, const char *service,
				      const struct spoke_url *url, const char *text)
{
	for (struct entry *entry = next_of(keeper, NULL); entry; entry = next_of(keeper, entry)) {
		if (is_same_provider(entry, service, url) && strcmp(entry->of.text, text) == 0)
			return entry;
	}
	return NULL;
}

/* --- instances */

static bool is_provider(const struct entry *entry)
{
	return entry->wanted && !subscribes(entry) &&
	       is_of_category(entry, SPOKE_REGISTRY_PROVIDERS);
}

/* Returns the entry of the instance of a provider, or NULL. */
static struct entry *find_instance(struct spokei_keeper *keeper, const struct spoke_url *provider)
{
	const char *application = spokei_urls_value(provider, "application");

	for (struct entry *entry = next_of(keeper, NULL); entry; entry = next_of(keeper, entry)) {
		const struct spoke_url *url = entry->changed ? &entry->next.url : &entry->last.url;

		if (is_instance(entry) && strcmp(entry->of.service, application) == 0 &&
		    strcmp(url->host, provider->host) == 0 && url->port == provider->port)
			return entry;
	}
	return NULL;
}

/* Describes the instance of a provider by all providers in it. */
static int describe(struct spokei_keeper *keeper, const struct spoke_url *provider,
		    struct description *ret)
{
	const struct spoke_env *env = keeper->engine->env;
	const struct spoke_url **services = spokei_alloc(env, keeper->entry_count,
							 sizeof(const struct spoke_url *));
	size_t count = 0;
	int error = services ? SPOKE_OK : SPOKE_ENOMEM;

	for (struct entry *entry = next_of(keeper, NULL); entry && services;
	     entry = next_of(keeper, entry)) {
		if (is_provider(entry) && spokei_instance_same(&entry->url, provider))
			services[count++] = &entry->url;
	}
	if (!error)
		error = spokei_instance_describe(env, services, count, &ret->text, &ret->text);
	if (!error) {
		const char *text = (const char *)spokei_buffer_data(&ret->text);

		error = spoke_url_parse(env, text, strlen(text), &ret->url, NULL);
	}
	spokei_free(env, services, keeper->entry_count, sizeof(const struct spoke_url *));
	return error;
}

/* Sets the next description of an instance, and takes it over. */
static int set_next(struct spokei_keeper *keeper, struct entry *entry, const char *application,
		    struct description *next)
{
	int error = SPOKE_OK;

	if (entry == NULL)
		error = add_entry(keeper, application, SPOKE_REGISTRY_INSTANCES, NULL, &entry);
	if (error)
		return error;
	entry->of.url = &entry->last.url;
	entry->seen = true;
	set_wanted(entry, true);
	/* The revision in the URL stands for the metadata. */
	entry->changed = spokei_buffer_len(&entry->last.text) == 0 ||
			 strcmp((const char *)spokei_buffer_data(&next->text),
				(const char *)spokei_buffer_data(&entry->last.text)) != 0;
	drop_description(entry->changed ? &entry->next : next);
	if (entry->changed)
		entry->next = *next;
	return SPOKE_OK;
}

static int renew_instance(struct spokei_keeper *keeper, const struct spoke_url *provider)
{
	const char *application = spokei_urls_value(provider, "application");
	struct entry *entry = find_instance(keeper, provider);
	struct description next = { .url = { 0 } };
	int error = SPOKE_EINVAL;

	if (entry && entry->seen)
		return SPOKE_OK;
	spokei_buffer_init(&next.text, keeper->engine->env, SPOKEI_INSTANCE_MAX);
	if (spokei_instance_is_name(application, strlen(application)))
		error = describe(keeper, provider, &next);
	if (!error)
		error = set_next(keeper, entry, application, &next);
	if (error)
		drop_description(&next);
	return error;
}

static void tell_undescribed(struct spokei_keeper *keeper, int error)
{
	if (!keeper->undescribed) {
		spokei_event(keeper->engine, error, "registry %s: not published as an instance: %s",
			     keeper->name,
			     error == SPOKE_EINVAL ? "the application's name must be made of "
						     "letters, digits, dots, - and _"
						   : spoke_strerror(error));
	}
	keeper->undescribed = true;
}

/* Makes the instances those of the providers that are wanted. */
static void describe_all(struct spokei_keeper *keeper, uint64_t now_ns)
{
	int error = SPOKE_OK;

	if (!keeper->describes || keeper->describe_ns > now_ns)
		return;
	keeper->describes = false;
	for (struct entry *entry = next_of(keeper, NULL); entry; entry = next_of(keeper, entry))
		entry->seen = false;
	for (struct entry *entry = next_of(keeper, NULL); entry && error != SPOKE_ENOMEM;
	     entry = next_of(keeper, entry)) {
		if (!is_provider(entry) || entry->url.host == NULL)
			continue;
		error = renew_instance(keeper, &entry->url);
		if (error && error != SPOKE_ENOMEM)
			tell_undescribed(keeper, error);
	}
	if (error == SPOKE_ENOMEM) {
		keeper->describes = true;
		keeper->describe_ns = after_pause(keeper);
		return;
	}
	for (struct entry *entry = next_of(keeper, NULL); entry; entry = next_of(keeper, entry))
		if (is_instance(entry) && !entry->seen)
			set_wanted(entry, false);
}

/* Puts the next description in the place of the last one. No request is in flight. */
static void turn_to_next(struct entry *entry)
{
	const char *text;

	drop_description(&entry->last);
	entry->last = entry->next;
	entry->next.url = (struct spoke_url){ 0 };
	spokei_buffer_init(&entry->next.text, entry->last.text.env, SIZE_MAX);
	entry->changed = false;
	text = (const char *)spokei_buffer_data(&entry->last.text);
	entry->of.text = text + strlen(text) + 1;
}

/* --- publications */

/* Withdraws all publications of a provider but one, which may be NULL. */
static void withdraw_others(struct spokei_keeper *keeper, const struct entry *but,
			    const char *service, const struct spoke_url *url)
{
	for (struct entry *entry = next_of(keeper, NULL); entry; entry = next_of(keeper, entry)) {
		if (entry != but && is_same_provider(entry, service, url))
			set_wanted(entry, false);
	}
	keeper->describes = keeper->kind->instances && keeper->mode != SPOKEI_KEEPER_INTERFACE;
	keeper->describe_ns = 0;
	act_soon(keeper);
}

int spokei_keeper_publish(struct spokei_keeper *keeper, const char *service, const char *text)
{
	struct spoke_url url;
	struct entry *entry;
	int error;

	if (keeper->ended || keeper->freed)
		return SPOKE_ECLOSED;
	error = spoke_url_parse(keeper->engine->env, text, strlen(text), &url, NULL);
	if (error)
		return error;
	entry = find_publication(keeper, service, &url, text);
	if (count_wanted(keeper, service, &url) >= WANTED_MAX)
		error = SPOKE_ELIMIT;
	else if (entry == NULL)
		error = add_entry(keeper, service, text, &url, &entry);
	if (error == 0) {
		set_wanted(entry, true);
		withdraw_others(keeper, entry, service, &url);
		heard(keeper);
	}
	if (error || entry->url.scheme != url.scheme)
		spoke_url_fini(&url); /* it belongs to no entry */
	return error;
}

int spokei_keeper_withdraw(struct spokei_keeper *keeper, const char *service, const char *text)
{
	struct spoke_url url;
	int error;

	if (keeper->ended || keeper->freed)
		return SPOKE_ECLOSED;
	error = spoke_url_parse(keeper->engine->env, text, strlen(text), &url, NULL);
	if (error)
		return error;
	withdraw_others(keeper, NULL, service, &url);
	spoke_url_fini(&url);
	return SPOKE_OK;
}

void spokei_keeper_withdraw_all(struct spokei_keeper *keeper)
{
	for (struct entry *entry = next_of(keeper, NULL); entry; entry = next_of(keeper, entry))
		if (!subscribes(entry))
			set_wanted(entry, false);
	keeper->describes = false;
	act_soon(keeper);
}

/* Passes on the list of the cache, until the registry reports one. */
static int read_cache(struct spokei_keeper *keeper, struct entry *entry)
{
	int error;

	if (keeper->cache_path[0] == '\0')
		return SPOKE_OK;
	error = spokei_cache_open(keeper->engine, keeper->cache_path, entry->of.service,
				  &entry->texts, &entry->count, &keeper->cache);
	if (error || entry->count == 0)
		return error;
	spokei_event(keeper->engine, SPOKE_OK, "registry %s: using %zu cached providers",
		     keeper->name, entry->count);
	pass_soon(keeper, entry);
	return SPOKE_OK;
}

/* Returns the subscription, or NULL. */
static struct entry *find_subscription(const struct spokei_keeper *keeper, const char *service,
				       const char *category)
{
	for (struct entry *entry = next_of(keeper, NULL); entry; entry = next_of(keeper, entry)) {
		if (subscribes(entry) && strcmp(entry->of.service, service) == 0 &&
		    is_of_category(entry, category))
			return entry;
	}
	return NULL;
}

int spokei_keeper_subscribe(struct spokei_keeper *keeper, const char *service, const char *category)
{
	struct entry *entry = find_subscription(keeper, service, category);
	int error;

	if (keeper->ended || keeper->freed)
		return SPOKE_ECLOSED;
	if (entry) {
		entry->stale |= !entry->wanted; /* its list is requested again */
		set_wanted(entry, true);
		act_soon(keeper);
		return SPOKE_OK;
	}
	if (count_wanted(keeper, service, NULL) >= WANTED_MAX)
		return SPOKE_ELIMIT;
	error = add_entry(keeper, service, category, NULL, &entry);
	if (error == 0 && lists_providers(entry)) {
		error = read_cache(keeper, entry);
		if (error)
			drop_entry(keeper, entry);
	}
	if (error == 0)
		act_soon(keeper);
	return error;
}

void spokei_keeper_unsubscribe(struct spokei_keeper *keeper, const char *service,
			       const char *category)
{
	struct entry *entry = find_subscription(keeper, service, category);

	if (entry == NULL || keeper->ended || keeper->freed)
		return;
	entry->has_list = false;
	set_wanted(entry, false);
	act_soon(keeper);
}

bool spokei_keeper_has_instances(const struct spokei_keeper *keeper)
{
	return keeper->kind->instances;
}

bool spokei_keeper_has_categories(const struct spokei_keeper *keeper)
{
	return keeper->kind->categories;
}

/* Returns whether all instances are published as they should be. */
static bool has_instances(const struct spokei_keeper *keeper)
{
	for (struct entry *entry = next_of(keeper, NULL); entry; entry = next_of(keeper, entry))
		if (is_instance(entry) && entry->wanted && (entry->state != HELD || entry->changed))
			return false;
	return !keeper->describes && !keeper->undescribed;
}

void spokei_keeper_count(const struct spokei_keeper *keeper, size_t *ret_wanted, size_t *ret_true)
{
	const bool instances = has_instances(keeper);

	*ret_wanted = 0;
	*ret_true = 0;
	for (struct entry *entry = next_of(keeper, NULL); entry; entry = next_of(keeper, entry)) {
		if (!entry->wanted || is_instance(entry))
			continue;
		*ret_wanted += 1;
		*ret_true += entry->state == HELD &&
			     (instances || !is_provider(entry) || entry->url.host == NULL);
	}
}

/* --- requests */

/* Passes the entry's list on to the owner, which may free the keeper. Without memory there, the
 * list waits. */
static void pass_list(struct spokei_keeper *keeper, struct entry *entry)
{
	int error = SPOKE_OK;

	entry->has_list = false;
	if (keeper->up && lists_providers(entry))
		error = keeper->up->list(keeper->up_arg, &entry->texts, entry->count);
	else if (keeper->up && routes(entry))
		keeper->up->route(keeper->up_arg, entry->of.service, entry->of.category,
				  &entry->rule);
	else if (keeper->up)
		keeper->up->rules(keeper->up_arg, entry->of.service, entry->of.category,
				  &entry->list);
	if (error == SPOKE_ENOMEM && !keeper->freed) {
		entry->has_list = true;
		entry->list_ns = after_pause(keeper);
		complain(keeper, entry, "take the list of", error);
		return;
	}
	forget_list(entry);
	if (entry->state == HELD && !entry->stale)
		restore(keeper, entry);
}

static void request(struct spokei_keeper *keeper, struct entry *entry)
{
	entry->state = entry->wanted && (entry->state != HELD || entry->changed) ? ASKING : ENDING;
	if (entry->changed && entry->state == ASKING)
		turn_to_next(entry);
	if (entry->quiet) {
		entry->state = entry->state == ASKING ? HELD : ABSENT;
	} else if (entry->state == ASKING) {
		keeper->kind->want(keeper->registry, &entry->of);
	} else {
		entry->stale = false;
		keeper->kind->unwant(keeper->registry, &entry->of);
	}
}

/* Returns whether another entry about the same provider must be withdrawn first. An entry whose
 * withdrawal has failed does not block, because that may go on for ever. */
static bool is_blocked(struct spokei_keeper *keeper, const struct entry *entry)
{
	if (subscribes(entry) || is_instance(entry))
		return false;
	for (struct entry *other = next_of(keeper, NULL); other; other = next_of(keeper, other))
		if (other != entry && (other->state == HELD || is_in_flight(other)) &&
		    is_same_provider(other, entry->of.service, entry->of.url))
			return true;
	return false;
}

static bool is_due(struct spokei_keeper *keeper, const struct entry *entry)
{
	switch (entry->state) {
	case ABSENT:
		return entry->wanted && !is_blocked(keeper, entry);
	case UNSURE:
		return !entry->wanted || !is_blocked(keeper, entry);
	case ASKING:
		return !entry->wanted;
	case HELD:
		return !entry->wanted || entry->stale || entry->changed;
	case ENDING:
		return false;
	}
	return false;
}

static int set_alarm(struct spokei_keeper *keeper, uint64_t now_ns);

/* After free() the keeper waits for withdrawals only. */
static bool may_end(struct spokei_keeper *keeper)
{
	for (struct entry *entry = next_of(keeper, NULL); entry; entry = next_of(keeper, entry))
		if (!subscribes(entry) && is_in_flight(entry))
			return false;
	return true;
}

static void keeper_act(struct spokei_task *task)
{
	struct spokei_keeper *keeper = spoke_container_of(task, struct spokei_keeper, act);
	uint64_t now_ns = now_of(keeper);

	if (keeper->ended || spokei_engine_forked(keeper->engine))
		return;
	describe_all(keeper, now_ns);
	for (struct spoke_list *node = keeper->entries.next; node != &keeper->entries;) {
		struct entry *entry = entry_at(node);

		if (entry->has_list && entry->list_ns <= now_ns)
			pass_list(keeper, entry);
		if (entry->due_ns <= now_ns && is_due(keeper, entry))
			request(keeper, entry);
		node = node->next;
		if (!entry->wanted && entry->state == ABSENT)
			drop_entry(keeper, entry);
	}
	(void)!set_alarm(keeper, now_ns);
	if (keeper->freed && may_end(keeper))
		spokei_run_freeing(keeper->engine, &keeper->finalise);
}

static void keeper_due(struct spoke_alarm *alarm)
{
	struct spokei_keeper *keeper = spoke_container_of(alarm, struct spokei_keeper, alarm);
	uint64_t now_ns = now_of(keeper);

	/* Renewed at once, so that the keeper keeps its place in the wheel. */
	(void)!set_alarm(keeper, now_ns);
	if (keeper->freed && now_ns >= keeper->end_ns)
		spokei_run_freeing(keeper->engine, &keeper->finalise);
	else
		act_soon(keeper);
}

/* Returns the earlier of two times, unless the first one has passed. */
static uint64_t earlier(uint64_t ns, uint64_t now_ns, uint64_t due_ns)
{
	return ns > now_ns && ns < due_ns ? ns : due_ns;
}

/* Fails at most for the first time, because the alarm stays armed. */
static int set_alarm(struct spokei_keeper *keeper, uint64_t now_ns)
{
	uint64_t due_ns = spokei_later(now_ns, IDLE_NS);

	if (keeper->freed)
		due_ns = earlier(keeper->end_ns, now_ns, due_ns);
	if (keeper->describes)
		due_ns = earlier(keeper->describe_ns, now_ns, due_ns);
	for (struct entry *entry = next_of(keeper, NULL); entry; entry = next_of(keeper, entry)) {
		due_ns = earlier(entry->due_ns, now_ns, due_ns);
		if (entry->has_list)
			due_ns = earlier(entry->list_ns, now_ns, due_ns);
	}
	return spoke_alarm_after(keeper->engine, &keeper->alarm, due_ns - now_ns, keeper_due);
}

/* --- the end */

static void destroy(struct spokei_keeper *keeper)
{
	(void)spoke_alarm_cancel(&keeper->alarm);
	spokei_task_drop(&keeper->act);
	if (keeper->registry)
		keeper->kind->close(keeper->registry);
	keeper->registry = NULL;
	spokei_cache_free(keeper->cache);
	keeper->cache = NULL;
	while (!spokei_list_empty(&keeper->entries))
		drop_entry(keeper, entry_at(keeper->entries.next));
}

static void keeper_finalise(struct spokei_task *task)
{
	struct spokei_keeper *keeper = spoke_container_of(task, struct spokei_keeper, finalise);
	struct spoke_engine *engine = keeper->engine;

	keeper->ended = true;
	destroy(keeper);
	if (!keeper->freed) {
		spokei_member_retire(engine, &keeper->member);
		return;
	}
	spokei_member_drop(&keeper->member);
	spokei_free(engine->env, keeper, 1, keeper->size);
}

void spokei_keeper_free(struct spokei_keeper *keeper)
{
	if (keeper == NULL || keeper->freed)
		return;
	keeper->freed = true;
	keeper->up = NULL;
	keeper->end_ns = spokei_later(now_of(keeper), END_NS);
	if (keeper->ended || spokei_engine_forked(keeper->engine))
		spokei_run_freeing(keeper->engine, &keeper->finalise);
	else
		spokei_keeper_withdraw_all(keeper);
}

/* Requests the withdrawals before the registry is closed. */
static void keeper_close(struct spokei_member *member)
{
	struct spokei_keeper *keeper = spoke_container_of(member, struct spokei_keeper, member);

	spokei_keeper_withdraw_all(keeper);
	spokei_run_freeing(keeper->engine, &keeper->finalise);
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
	char shown[SHOWN];

	*ret_kind = spoke_registry_find(scheme);
	if (*ret_kind)
		return SPOKE_OK;
	(void)spokei_log_escape(shown, sizeof(shown), scheme, strlen(scheme));
	spokei_event(engine, SPOKE_EUNSUPPORTED,
		     "registry: unknown scheme %s; use " SPOKE_REGISTRY_URLS
		     ", or a registry of the program",
		     shown);
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
	char text[2 * SHOWN];
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
	keeper->mode = options->mode;
	memcpy(keeper->cache_path, path, strlen(path) + 1);
	keeper->act.run = keeper_act;
	keeper->finalise.run = keeper_finalise;
	spokei_list_init(&keeper->entries);
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
		error = set_alarm(keeper, now_of(keeper));
	if (error == 0)
		error = keeper->kind->open(keeper->engine, &url, &registry_up, keeper,
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
	spokei_member_add(engine, &keeper->member);
	*ret_keeper = keeper;
	return SPOKE_OK;
}
