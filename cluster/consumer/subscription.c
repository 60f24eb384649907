/* SPDX-License-Identifier: Apache-2.0 */
/* Passes the provider lists of a registry on to the directory of a consumer, and publishes the
 * consumer. */
#include "cluster/consumer/subscription.h"

#include "cluster/call/caller.h"
#include "cluster/consumer/instances.h"
#include "cluster/consumer/parts.h"
#include "cluster/consumer/settings.h"
#include "cluster/discovery/keeper.h"
#include "cluster/discovery/override.h"
#include "cluster/discovery/provider_url.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/listing.h"
#include "cluster/endpoints/routing.h"
#include "cluster/registry/urls.h"
#include "core/engine/engine.h"

#include <spoke/registry.h>

#include <stdio.h>

#define MS UINT64_C(1000000)
#define APPLICATION "spoke" /* of a consumer without a name */

#define FIRST_MAX 16u /* texts of a list among which one of the service is looked for */

/* Kinds of rules of the provider's application. */
static const char *const routers[] = {
	SPOKEI_RULE_CONDITIONS,
	SPOKEI_RULE_TAGS,
	SPOKEI_RULE_SCRIPTS,
	SPOKEI_RULE_MESH,
};
#define ROUTERS_COUNT (sizeof(routers) / sizeof(routers[0]))

/* --- settings that lists and rules bring */

/* Keeps a copy of a provider's URL; without memory the last copy stays. */
static void keep_provided(struct spoke_consumer *consumer, const struct spoke_url *url)
{
	const struct spoke_env *env = consumer->engine->env;
	size_t size = spoke_url_print(url, SPOKE_URL_WHOLE, NULL, 0) + 1;
	char *text = spokei_alloc(env, 1, size);
	struct spoke_url copy;

	if (text == NULL)
		return;
	(void)spoke_url_print(url, SPOKE_URL_WHOLE, text, size);
	if (spoke_url_parse(env, text, size - 1, &copy, NULL) == SPOKE_OK) {
		spoke_url_fini(&consumer->settings->provided);
		consumer->settings->provided = copy;
	}
	spokei_free(env, text, 1, size);
}

/* The first provider of the service sets what the consumer leaves open. */
static void note_listed(struct spoke_consumer *consumer, const struct spoke_url *first)
{
	keep_provided(consumer, first);
	spokei_settings_renew(&consumer->settings->keys);
	spokei_consumer_inherit(consumer);
}

/* An operator has changed settings of calls; without memory the last ones stay. */
static void note_ruled(struct spoke_consumer *consumer, const struct spokei_overrides *rules)
{
	struct spoke_url ruled;

	if (spokei_override_calls(rules, &ruled))
		return;
	spoke_url_fini(&consumer->settings->ruled);
	consumer->settings->ruled = ruled;
	spokei_settings_renew(&consumer->settings->keys);
	spokei_consumer_inherit(consumer);
}

/* --- lists */

static void tell_empty(struct spokei_subscription *subscription, size_t count)
{
	if (count > 0 || subscription->empty || subscription->keeper == NULL ||
	    spokei_directory_listed(subscription->consumer->directory) > 0 ||
	    !spokei_keeper_has_categories(subscription->keeper))
		return;
	subscription->empty = true;
	spokei_event(subscription->consumer->engine, SPOKE_ENOPROVIDER,
		     "registry: %s has no providers", subscription->of.service);
}

/* Has the directory use the rule of a source; NULL: none. */
static void use_route(struct spokei_subscription *subscription, enum spokei_route_source source,
		      struct spokei_route_rule *rule, const char *key, const char *category)
{
	struct spoke_consumer *consumer = subscription->consumer;
	char name[2 * SPOKEI_RULE_WHY];

	if (rule == consumer->directory->routing->rules.of[source])
		return;
	(void)snprintf(name, sizeof(name), "%s%s%s", *key ? "config/dubbo/" : "", key, category);
	spokei_event(consumer->engine, SPOKE_OK, "registry: %s %s calls of %s", name,
		     rule ? "routes" : "no longer routes", subscription->of.service);
	spokei_routing_set(consumer->directory, source, rule, name);
}

/* Has the directory use the rules of the application of the first provider. */
static void use_first(struct spokei_subscription *subscription,
		      struct spokei_routed_application *first)
{
	const char *name = first ? first->name : "";

	subscription->first = first;
	use_route(subscription, SPOKEI_ROUTE_TAGS, first ? first->tags : NULL, name,
		  SPOKEI_RULE_TAGS);
	use_route(subscription, SPOKEI_ROUTE_PROVIDER, first ? first->conditions : NULL, name,
		  SPOKEI_RULE_CONDITIONS);
}

static struct spokei_routed_application *find_application(struct spokei_subscription *subscription,
							  const char *name)
{
	for (unsigned i = 0; i < subscription->application_count; i++)
		if (strcmp(subscription->applications[i].name, name) == 0)
			return &subscription->applications[i];
	return NULL;
}

/* Returns a new application; NULL: there are too many. */
static struct spokei_routed_application *add_application(struct spokei_subscription *subscription,
							 const char *name)
{
	struct spokei_routed_application *application;
	int error = SPOKE_OK;

	if (subscription->application_count == SPOKEI_ROUTED_APPLICATIONS) {
		if (!subscription->too_many) {
			spokei_event(subscription->consumer->engine, SPOKE_ELIMIT,
				     "registry: providers of %s have had %u application names; "
				     "routers of further ones are not looked for until a restart",
				     subscription->of.service, SPOKEI_ROUTED_APPLICATIONS);
		}
		subscription->too_many = true;
		return NULL;
	}
	application = &subscription->applications[subscription->application_count++];
	(void)snprintf(application->name, sizeof(application->name), "%s", name);
	for (size_t i = 0; i < ROUTERS_COUNT && error == 0; i++)
		error = spokei_keeper_subscribe(subscription->keeper, application->name,
						routers[i]);
	return application;
}

/* Looks for rules of the application of the first provider, as Java does. Names come from the
 * registry, so only those are used that are names. */
static void watch_routers(struct spokei_subscription *subscription, const struct spoke_url *first)
{
	const char *name = spoke_url_get(first, "application");
	struct spokei_routed_application *application;
	size_t len = name ? strlen(name) : 0;

	if (subscription->keeper == NULL || !spokei_keeper_has_categories(subscription->keeper))
		return;
	if (len == 0 || len >= sizeof(application->name) ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") !=
		    len) {
		use_first(subscription, NULL);
		return;
	}
	application = find_application(subscription, name);
	if (application == NULL)
		application = add_application(subscription, name);
	use_first(subscription, application);
}

/* Finds the first provider of the service among the first texts. Returns whether there is one. */
static bool find_first(const struct spokei_subscription *subscription,
		       const struct spokei_buffer *texts, size_t count, struct spoke_url *ret_url)
{
	const struct spoke_env *env = subscription->consumer->engine->env;
	const char *text = (const char *)spokei_buffer_data(texts);

	for (size_t i = 0; i < count && i < FIRST_MAX; i++, text += strlen(text) + 1) {
		if (spoke_url_parse(env, text, strlen(text), ret_url, NULL))
			continue;
		if (spokei_provider_url_serves(ret_url, subscription->of.service))
			return true;
		spoke_url_fini(ret_url);
	}
	return false;
}

/* Takes the list of all providers. */
static int take_list(void *arg, struct spokei_buffer *texts, size_t count)
{
	struct spokei_subscription *subscription = arg;
	struct spoke_consumer *consumer = subscription->consumer;
	struct spoke_url first;
	int error;

	consumer->caller->awaits_list = false;
	if (find_first(subscription, texts, count, &first)) {
		watch_routers(subscription, &first);
		note_listed(consumer, &first);
		spoke_url_fini(&first);
	}
	error = spokei_directory_set(consumer->directory, texts, count);
	tell_empty(subscription, count);
	return error;
}

static int subscription_list(void *arg, struct spokei_buffer *texts, size_t count)
{
	struct spokei_subscription *subscription = arg;

	if (subscription->instances)
		return spokei_instances_list(subscription->instances, texts, count);
	return take_list(subscription, texts, count);
}

int spokei_subscription_edit(const struct spokei_subscription *subscription,
			     const struct spoke_url *url, struct spoke_url *ret_url)
{
	return spokei_override_provider(&subscription->rules, url, ret_url);
}

/* --- rules */

/* Replaces a rule that the directory may use. */
static void replace_route(struct spokei_subscription *subscription, struct spokei_route_rule **at,
			  struct spokei_route_rule *rule, const char *key, const char *category)
{
	struct spokei_route_rule *former = *at;

	/* Registries repeat texts that have not changed. */
	if (former && rule && former->print == rule->print) {
		spokei_route_free(rule);
		return;
	}
	*at = rule;
	use_first(subscription, subscription->first);
	for (unsigned i = 0; i < SPOKEI_ROUTE_SOURCES; i++)
		if (at == &subscription->routes[i])
			use_route(subscription, (enum spokei_route_source)i, rule, key, category);
	spokei_route_free(former);
}

/* Reads the routers of the service, as URLs. Without memory the last ones stay. */
static void take_routers(struct spokei_subscription *subscription, struct spokei_url_list *list)
{
	const struct spokei_override_of *of = &subscription->of;
	const struct spokei_wanted wanted = { of->service, of->version, of->group };
	struct spoke_engine *engine = subscription->consumer->engine;
	struct spokei_route_rule *rule;
	size_t others;
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		struct spoke_url url = list->urls[i];

		if (!spokei_provider_url_concerns(&url, &wanted))
			continue;
		list->urls[i] = list->urls[kept];
		list->urls[kept++] = url;
	}
	if (spokei_route_read_urls(engine->env, list->urls, kept, &rule, &others))
		return;
	if (others > 0 && subscription->others_routed != others) {
		spokei_event(engine, SPOKE_EUNSUPPORTED,
			     "registry: %zu routers of %s ignored; they are no conditions, or not "
			     "understood",
			     others, of->service);
	}
	subscription->others_routed = others;
	replace_route(subscription, &subscription->routes[SPOKEI_ROUTE_URLS], rule, "",
		      SPOKE_REGISTRY_ROUTERS);
}

/* Finds where a rule with this key is kept. Returns NULL if it is none of ours. */
static struct spokei_route_rule **find_route(struct spokei_subscription *subscription,
					     const char *key, const char *category)
{
	struct spokei_routed_application *application = find_application(subscription, key);

	if (strcmp(category, SPOKEI_RULE_TAGS) == 0)
		return application ? &application->tags : NULL;
	if (strcmp(category, SPOKEI_RULE_CONDITIONS) != 0)
		return NULL;
	/* The rule of the consumer's own application is not applied as the provider's, too. */
	if (strcmp(key, subscription->of.application) == 0)
		return &subscription->routes[SPOKEI_ROUTE_APPLICATION];
	return application ? &application->conditions : &subscription->routes[SPOKEI_ROUTE_SERVICE];
}

static void subscription_route(void *arg, const char *key, const char *category,
			       struct spokei_route_rule **rule)
{
	struct spokei_subscription *subscription = arg;
	struct spokei_route_rule **at = find_route(subscription, key, category);
	struct spokei_route_rule *taken = NULL;

	if (*rule && (*rule)->unsupported) {
		if (subscription->unsupported != (*rule)->unsupported) {
			spokei_event(subscription->consumer->engine, SPOKE_EUNSUPPORTED,
				     "registry: rule config/dubbo/%s%s ignored: %s", key, category,
				     (*rule)->unsupported);
		}
		subscription->unsupported = (*rule)->unsupported;
	} else if (at) {
		taken = *rule;
		*rule = NULL;
	}
	if (at)
		replace_route(subscription, at, taken, key, category);
}

static enum spokei_override_source source_of(const struct spokei_subscription *subscription,
					     const char *service, const char *category)
{
	if (!spokei_urls_are_rule(category))
		return SPOKEI_OVERRIDE_LISTED;
	return strcmp(service, subscription->of.application) == 0 ? SPOKEI_OVERRIDE_APPLICATION
								  : SPOKEI_OVERRIDE_SERVICE;
}

/* Logs how many configurators of a source are ignored, if that has changed. */
static void tell_others(struct spokei_subscription *subscription,
			enum spokei_override_source source, size_t others)
{
	bool changed = subscription->others[source] != others;

	subscription->others[source] = others;
	if (changed && others > 0) {
		spokei_event(subscription->consumer->engine, SPOKE_EUNSUPPORTED,
			     "registry: %zu configurators of %s ignored; they are for others, "
			     "disabled, no override, or more than %u",
			     others, subscription->of.service, SPOKEI_OVERRIDES_MAX);
	}
}

static void subscription_rules(void *arg, const char *service, const char *category,
			       struct spokei_url_list *list)
{
	struct spokei_subscription *subscription = arg;
	enum spokei_override_source source;
	struct spokei_url_list *former;

	if (subscription->instances &&
	    spokei_instances_take(subscription->instances, service, category, list))
		return;
	if (strcmp(category, SPOKE_REGISTRY_ROUTERS) == 0) {
		take_routers(subscription, list);
		return;
	}
	source = source_of(subscription, service, category);
	former = &subscription->rules.of[source];
	tell_others(subscription, source, spokei_override_choose(&subscription->of, list));
	if (spokei_override_equal(former, list))
		return;
	spokei_event(subscription->consumer->engine, SPOKE_OK,
		     "registry: %zu configurators of %s apply", list->count,
		     subscription->of.service);
	spokei_url_list_fini(former);
	*former = *list;
	spokei_url_list_init(list, subscription->consumer->engine->env);
	note_ruled(subscription->consumer, &subscription->rules);
	spokei_directory_reread(subscription->consumer->directory);
}

/* --- begin and end */

static int publish(struct spokei_subscription *subscription, struct spokei_keeper *keeper)
{
	const struct spoke_env *env = subscription->consumer->engine->env;
	const struct spokei_override_of *of = &subscription->of;
	const struct spokei_provider_parts parts = {
		.service = of->service,
		.version = of->version,
		.group = of->group,
		.application = subscription->of.application,
		.timestamp_ms = env->wall(env->ctx) / MS,
	};
	struct spokei_buffer url;
	uint64_t id;
	int error;

	env->dice(env->ctx, &id, sizeof(id));
	spokei_buffer_init(&url, env, SIZE_MAX);
	error = spokei_consumer_url_format(&parts, id, &url);
	if (error == 0)
		error = spokei_keeper_publish(keeper, of->service,
					      (const char *)spokei_buffer_data(&url));
	spokei_buffer_fini(&url);
	return error;
}

/* Gives the directory the URL with which rules compare calls: that which is published, with the
 * parameters of the consumer's own URL. */
static int show_own(struct spokei_subscription *subscription)
{
	const struct spoke_env *env = subscription->consumer->engine->env;
	const struct spoke_url *given = &subscription->consumer->settings->url;
	const struct spokei_override_of *of = &subscription->of;
	struct spoke_url_parameter parameters[SPOKE_URL_PARAMETERS_MAX] = {
		{ "application", of->application },
		{ "interface", of->service },
		{ "side", "consumer" },
		{ "version", of->version },
		{ "group", of->group },
	};
	struct spoke_url url = { .scheme = "consumer",
				 .host = "0.0.0.0",
				 .path = of->service,
				 .port = -1,
				 .parameters = parameters,
				 .parameter_count = 5 };
	struct spokei_buffer text;
	int error;

	for (unsigned i = 0; i < given->parameter_count; i++)
		if (spoke_url_get(&url, given->parameters[i].key) == NULL &&
		    url.parameter_count < SPOKE_URL_PARAMETERS_MAX)
			parameters[url.parameter_count++] = given->parameters[i];
	spokei_buffer_init(&text, env, SIZE_MAX);
	error = spokei_urls_put(&text, &url);
	if (error == 0)
		error = spoke_url_parse(env, (const char *)spokei_buffer_data(&text),
					spokei_buffer_len(&text) - 1, &url, NULL);
	spokei_buffer_fini(&text);
	if (error)
		return error;
	error = spokei_routing_own(subscription->consumer->directory, &url);
	spoke_url_fini(&url);
	return error;
}

/* Requests the rules of a key. */
static int watch_rules(struct spokei_keeper *keeper, const char *key)
{
	int error = spokei_keeper_subscribe(keeper, key, SPOKEI_RULE_CONFIGURATORS);

	return error ? error : spokei_keeper_subscribe(keeper, key, SPOKEI_RULE_CONDITIONS);
}

/* Requests everything of the registry. */
static int ask(struct spokei_subscription *subscription, struct spokei_keeper *keeper)
{
	const struct spokei_override_of *of = &subscription->of;
	int error = spokei_keeper_subscribe(keeper, of->service, SPOKE_REGISTRY_PROVIDERS);
	char key[SPOKEI_RULE_KEY];

	if (error || !spokei_keeper_has_categories(keeper))
		return error;
	error = show_own(subscription);
	if (error == 0)
		error = spokei_keeper_subscribe(keeper, of->service, SPOKE_REGISTRY_CONFIGURATORS);
	if (error == 0)
		error = spokei_keeper_subscribe(keeper, of->service, SPOKE_REGISTRY_ROUTERS);
	if (error == 0)
		error = watch_rules(keeper, subscription->of.application);
	if (error == 0 && spokei_rule_print_key(of->service, of->version, of->group, key))
		error = watch_rules(keeper, key);
	if (error == 0)
		error = publish(subscription, keeper);
	return error;
}

/* Requests the instances that have the service, if the registry has such. */
static int follow_instances(struct spokei_subscription *subscription, struct spokei_keeper *keeper)
{
	const struct spokei_settings *keys = &subscription->consumer->settings->keys;
	const struct spokei_instances_options options = {
		.engine = subscription->consumer->engine,
		.keeper = keeper,
		.service = subscription->of.service,
		.mode = (enum spokei_subscribe_mode)
			spokei_settings_number(keys, SPOKEI_KEY_SUBSCRIBE_MODE),
		.list = take_list,
		.arg = subscription,
	};

	if (!spokei_keeper_has_instances(keeper) || options.mode == SPOKEI_SUBSCRIBE_INTERFACE)
		return SPOKE_OK;
	return spokei_instances_new(&options, &subscription->instances);
}

int spokei_subscription_begin(struct spoke_consumer *consumer)
{
	static const struct spokei_keeper_up up = {
		.list = subscription_list,
		.rules = subscription_rules,
		.route = subscription_route,
	};
	const struct spokei_consumer_settings *settings = consumer->settings;
	const char *application = spokei_settings_text(&settings->keys, SPOKEI_KEY_APPLICATION);
	struct spokei_subscription *subscription = consumer->subscription;
	struct spokei_keeper *keeper;
	int error;

	subscription->consumer = consumer;
	subscription->of = (struct spokei_override_of){
		.service = settings->service,
		.version = settings->directory.version,
		.group = settings->directory.group,
		.application = application && *application ? application : APPLICATION,
	};
	spokei_overrides_init(&subscription->rules, consumer->engine->env);
	error = spokei_keeper_new(consumer->engine, &settings->keeper, &up, subscription, &keeper);
	if (error)
		return error;
	error = ask(subscription, keeper);
	if (error == 0)
		error = follow_instances(subscription, keeper);
	if (error) {
		spokei_keeper_free(keeper);
		return error;
	}
	subscription->keeper = keeper;
	return SPOKE_OK;
}

void spokei_subscription_end(struct spokei_subscription *subscription)
{
	struct spokei_keeper *keeper = subscription->keeper;

	subscription->keeper = NULL;
	spokei_instances_free(subscription->instances);
	subscription->instances = NULL;
	spokei_keeper_free(keeper);
	if (subscription->consumer == NULL)
		return;
	spokei_overrides_fini(&subscription->rules);
	for (unsigned i = 0; i < SPOKEI_ROUTE_SOURCES; i++) {
		spokei_routing_set(subscription->consumer->directory, (enum spokei_route_source)i,
				   NULL, "");
		spokei_route_free(subscription->routes[i]);
	}
	for (unsigned i = 0; i < subscription->application_count; i++) {
		spokei_route_free(subscription->applications[i].tags);
		spokei_route_free(subscription->applications[i].conditions);
	}
}
