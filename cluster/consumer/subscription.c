/* SPDX-License-Identifier: Apache-2.0 */
/* Passes the provider lists of a registry on to the directory of a consumer, and publishes the
 * consumer. */
#include "cluster/consumer/subscription.h"

#include "cluster/discovery/advert.h"
#include "cluster/discovery/keeper.h"
#include "cluster/endpoints/directory.h"
#include "core/engine/engine.h"

#define MS UINT64_C(1000000)
#define CONFIGURATORS "configurators"
#define ROUTERS "routers"
#define APPLICATION "spoke" /* of a consumer without a name */

/* --- lists */

static int pass_on(struct spokei_subscription *subscription, const struct spoke_url *urls,
		   size_t count)
{
	subscription->listed(subscription->arg, urls, count);
	return spokei_directory_set(subscription->directory, urls, count);
}

/* Passes on a list to which the rules are applied. */
static int pass_on_ruled(struct spokei_subscription *subscription, const struct spoke_url *urls,
			 size_t count)
{
	const struct spoke_env *env = subscription->engine->env;
	struct spoke_url *changed = spokei_alloc(env, count, sizeof(*changed));
	int error = changed ? SPOKE_OK : SPOKE_ENOMEM;
	size_t made = 0;

	for (; made < count && error == 0; made++)
		error = spokei_override_provider(&subscription->rules, &urls[made], &changed[made]);
	if (error == 0)
		error = pass_on(subscription, changed, count);
	while (made-- > 0)
		if (changed[made].parameters != urls[made].parameters)
			spoke_url_fini(&changed[made]);
	spokei_free(env, changed, count, sizeof(*changed));
	return error;
}

/* Dubbo 3 can register applications instead of services, which leaves the list empty. */
static void tell_empty(struct spokei_subscription *subscription, size_t count)
{
	if (count > 0 || subscription->empty || subscription->keeper == NULL ||
	    !spokei_keeper_has_categories(subscription->keeper))
		return;
	subscription->empty = true;
	spokei_event(subscription->engine, SPOKE_ENOPROVIDER,
		     "registry: %s has no providers; those of Dubbo 3 with register-mode=instance "
		     "are listed under /services only, set register-mode=interface or all there",
		     subscription->of.service);
}

static int subscription_list(void *arg, const struct spoke_url *urls, size_t count)
{
	struct spokei_subscription *subscription = arg;

	tell_empty(subscription, count);
	if (subscription->rules.count == 0 || count == 0)
		return pass_on(subscription, urls, count);
	return pass_on_ruled(subscription, urls, count);
}

/* --- rules */

static void tell_routers(struct spokei_subscription *subscription, size_t count)
{
	if (count == 0 || subscription->routed)
		return;
	subscription->routed = true;
	spokei_event(subscription->engine, SPOKE_EUNSUPPORTED,
		     "registry: %zu routers of %s ignored; spoke has no routing rules", count,
		     subscription->of.service);
}

static bool subscription_rules(void *arg, const char *category, struct spokei_lineup *lineup)
{
	struct spokei_subscription *subscription = arg;
	size_t others;

	if (strcmp(category, ROUTERS) == 0) {
		tell_routers(subscription, lineup->count);
		return false;
	}
	others = spokei_override_choose(&subscription->of, lineup);
	if (spokei_override_equal(&subscription->rules, lineup))
		return false;
	if (others > 0) {
		spokei_event(subscription->engine, SPOKE_EUNSUPPORTED,
			     "registry: %zu configurators of %s ignored; they are for others, "
			     "disabled, or no override",
			     others, subscription->of.service);
	}
	spokei_event(subscription->engine, SPOKE_OK, "registry: %zu configurators of %s apply",
		     lineup->count, subscription->of.service);
	spokei_lineup_fini(&subscription->rules);
	subscription->rules = *lineup;
	spokei_lineup_init(lineup, subscription->engine->env);
	subscription->ruled(subscription->arg, &subscription->rules);
	return true;
}

/* --- begin and end */

static int publish(struct spokei_subscription *subscription, struct spokei_keeper *keeper)
{
	const struct spoke_env *env = subscription->engine->env;
	const struct spokei_override_of *of = &subscription->of;
	const struct spokei_advert advert = {
		.service = of->service,
		.version = of->version,
		.group = of->group,
		.application = *of->application ? of->application : APPLICATION,
		.timestamp_ms = env->wall(env->ctx) / MS,
	};
	struct spokei_advert_text url;
	uint64_t id;
	int error;

	env->dice(env->ctx, &id, sizeof(id));
	error = spokei_advert_print_consumer(env, &advert, id, &url);
	if (error)
		return error;
	error = spokei_keeper_publish(keeper, of->service, url.text);
	spokei_free(env, url.text, 1, url.size);
	return error;
}

/* Requests everything of the registry. */
static int ask(struct spokei_subscription *subscription, struct spokei_keeper *keeper)
{
	const char *service = subscription->of.service;
	int error = spokei_keeper_subscribe(keeper, service);

	if (error || !spokei_keeper_has_categories(keeper))
		return error;
	error = spokei_keeper_watch(keeper, service, CONFIGURATORS);
	if (error == 0)
		error = spokei_keeper_watch(keeper, service, ROUTERS);
	if (error == 0)
		error = publish(subscription, keeper);
	return error;
}

int spokei_subscription_begin(struct spokei_subscription *subscription, struct spoke_engine *engine,
			      const struct spokei_keeper_options *options)
{
	static const struct spokei_keeper_up up = {
		.list = subscription_list,
		.rules = subscription_rules,
	};
	struct spokei_keeper *keeper;
	int error;

	subscription->engine = engine;
	spokei_lineup_init(&subscription->rules, engine->env);
	error = spokei_keeper_new(engine, options, &up, subscription, &keeper);
	if (error)
		return error;
	error = ask(subscription, keeper);
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
	spokei_keeper_free(keeper);
	if (subscription->engine)
		spokei_lineup_fini(&subscription->rules);
}
