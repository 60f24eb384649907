/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the settings of a consumer and of its methods from defaults, URLs, the file and options,
 * and applies each reload of the file. Makes the methods. */
#include "cluster/consumer/settings.h"

#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/config/places.h"
#include "cluster/consumer/parts.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/routing.h"
#include "core/base/log.h"
#include "core/engine/engine.h"

#include <spoke/consumer.h>

#include <string.h>

#define NO_PLACE "consumer" /* scheme of a URL that names a service without an address */

/* --- methods */

int spokei_settings_method_values(const struct spokei_consumer_settings *settings,
				  const struct spokei_method_name *name,
				  const struct spoke_method_options *options,
				  struct spokei_key_values *ret)
{
	const struct spokei_method_code code = { SPOKEI_AT_METHOD, options };

	return spokei_settings_read_method(&settings->keys, name, &code, ret);
}

/* Fills in the settings of calls. Only the program itself may choose a policy whose calls become
 * tickets, unless it says that it expects them: else they keep the default. Returns whether that is
 * so. */
static bool fill_calls(const struct spokei_consumer_settings *settings,
		       const struct spokei_key_values *values, struct spokei_call_settings *ret)
{
	enum spokei_origin from = values->from[SPOKEI_KEY_CLUSTER];

	spokei_call_settings_fill(values, ret);
	if (settings->takes_tickets || ret->policy != &spoke_policy_failback ||
	    from == SPOKEI_FROM_CODE || from == SPOKEI_FROM_URL)
		return false;
	ret->policy = &spoke_policy_failover;
	return true;
}

static void report_tickets(struct spoke_engine *engine, const struct spokei_method_name *name)
{
	char service[SPOKE_EVENT_TEXT / 4];

	(void)spokei_log_escape_end(service, sizeof(service), name->service.data,
				    name->service.len);
	spokei_event(engine, SPOKE_EUNSUPPORTED,
		     "\"%s\" %.48s: cluster = failback is not followed, since the program takes no "
		     "tickets (options settled, takes_tickets); its calls stay failover",
		     service, name->method);
}

/* Reads the settings of a method. *ret_refused: see fill_calls(). */
static int read_method(const struct spokei_consumer_settings *settings,
		       const struct spokei_method_name *name,
		       const struct spoke_method_options *options, struct spokei_call_settings *ret,
		       bool *ret_refused)
{
	struct spokei_key_values values;
	int error = spokei_settings_method_values(settings, name, options, &values);

	if (error == SPOKE_OK)
		*ret_refused = fill_calls(settings, &values, ret);
	return error;
}

/* --- changes */

/* All methods with the consumer's balancer share its state. */
static void choose_balancer_state(struct spoke_consumer *consumer, struct spoke_method *method)
{
	const struct spoke_balancer *balancer = method->settings.balancer;

	if (balancer == consumer->balancer_state->balancer) {
		method->balancer_state = consumer->balancer_state;
		return;
	}
	method->balancer_state = &method->own_balancer_state;
	if (method->own_balancer_state.balancer == balancer)
		return;
	spokei_balancer_state_fini(&method->own_balancer_state, consumer->engine->env);
	spokei_balancer_state_init(&method->own_balancer_state, balancer);
}

/* Renews the settings of all methods after those of the consumer have changed. */
static void renew_methods(struct spoke_consumer *consumer)
{
	struct spoke_list *methods = &consumer->caller->methods;

	for (struct spoke_list *node = methods->next; node != methods; node = node->next) {
		struct spoke_method *method = spoke_container_of(node, struct spoke_method, node);
		const struct spokei_method_name name = { method->service, method->name };

		/* The options passed this check before, and a provider's settings cannot fail. */
		bool refused = false;

		(void)!read_method(consumer->settings, &name, &method->said, &method->settings,
				   &refused);
		if (refused && !method->tickets_told)
			report_tickets(consumer->engine, &name);
		method->tickets_told = refused;
		spokei_method_apply(method);
		choose_balancer_state(consumer, method);
	}
}

void spokei_consumer_inherit(struct spoke_consumer *consumer)
{
	struct spokei_consumer_settings *settings = consumer->settings;
	struct spokei_key_values values;

	spokei_settings_look(&settings->keys, &values);
	(void)fill_calls(settings, &values, &settings->calls);
	if (settings->calls.balancer != consumer->balancer_state->balancer) {
		spokei_balancer_state_fini(consumer->balancer_state, consumer->engine->env);
		spokei_balancer_state_init(consumer->balancer_state, settings->calls.balancer);
	}
	renew_methods(consumer);
}

static void apply_link(void *owner)
{
	struct spoke_consumer *consumer = owner;

	spokei_link_change(consumer->link, &consumer->settings->limits);
}

static void apply_directory(void *owner)
{
	struct spoke_consumer *consumer = owner;

	spokei_directory_change(consumer->directory, &consumer->settings->directory);
}

void spokei_consumer_limit(struct spoke_consumer *consumer)
{
	struct spokei_key_values values;

	spokei_settings_look(&consumer->settings->keys, &values);
	consumer->caller->token_plain = values.of[SPOKEI_KEY_TOKEN_PLAIN] != 0;
	consumer->caller->told_plain = false;
	consumer->caller->tag = spokei_settings_text(&consumer->settings->keys, SPOKEI_KEY_TAG);
	consumer->caller->tag_force = values.of[SPOKEI_KEY_TAG_FORCE] != 0;
	spokei_caller_resize(consumer->caller, consumer->settings->limits.pending_max,
			     spokei_keys_u32(&values, SPOKEI_KEY_FAILBACK_TASKS));
	spokei_retry_queue_limit(&consumer->caller->retry, &values);
}

static void take(void *owner)
{
	const struct spoke_consumer *consumer = owner;

	spokei_consumer_inherit(owner);
	spokei_consumer_limit(owner);
	spokei_routing_force(consumer->directory,
			     consumer->caller->tag && consumer->caller->tag_force);
}

#define AT(member) offsetof(struct spokei_consumer_settings, member)

static const struct spokei_settings_part parts[] = {
	{ SPOKEI_AT_LINK, AT(limits), apply_link },
	{ SPOKEI_AT_DIRECTORY, AT(directory), apply_directory },
	{ SPOKEI_AT_JOURNAL, AT(journal), NULL },
};

static const struct spokei_settings_kind kind = {
	.sections = 1u << SPOKEI_IN_CONSUMER | 1u << SPOKEI_IN_REGISTRY | 1u << SPOKEI_IN_SERVICE,
	.parts = parts,
	.part_count = sizeof(parts) / sizeof(parts[0]),
	.take = take,
};

/* --- consumers */

/* Returns the registry: the option's, or the file's if the URL names no address. */
static const char *find_registry(const struct spoke_consumer_options *options,
				 const struct spokei_consumer_settings *settings)
{
	if (options->registry && *options->registry == '\0')
		return "";
	if (options->registry == NULL && strcmp(settings->url.scheme, NO_PLACE) != 0)
		return NULL;
	return spokei_settings_text(&settings->keys, SPOKEI_KEY_REGISTRY_URL);
}

/* Returns the log2 of a size, rounded up. */
static uint8_t bits_of(uint64_t size)
{
	uint8_t bits = 0;

	while (UINT64_C(1) << bits < size)
		bits++;
	return bits;
}

static void fill_consumer(const struct spoke_consumer_options *options,
			  struct spokei_consumer_settings *ret)
{
	struct spokei_key_values values;

	spokei_settings_look(&ret->keys, &values);
	ret->changed = options->changed;
	ret->changed_arg = options->changed_arg;
	ret->settled = options->settled;
	ret->settled_arg = options->settled_arg;
	ret->recovered = options->recovered;
	ret->recovered_arg = options->recovered_arg;
	ret->takes_tickets = options->settled || options->takes_tickets;
	spokei_link_limits_frame(&ret->limits, ret->limits.wire.frame_max);
	spokei_link_limits_values(&ret->limits, ret->limits.wire.value.items_max);
	ret->limits.ring_bits = bits_of(values.of[SPOKEI_KEY_SHM_RING]);
	ret->directory.service = ret->service;
	ret->directory.version = spokei_keys_text(&values, SPOKEI_KEY_VERSION);
	ret->directory.group = spokei_keys_text(&values, SPOKEI_KEY_GROUP);
	ret->keeper = (struct spokei_keeper_options){
		.registry = find_registry(options, ret),
		.kind = options->registry_kind,
		.retry_ns = values.of[SPOKEI_KEY_REGISTRY_RETRY_PERIOD],
		.retries_max = spokei_keys_u32(&values, SPOKEI_KEY_REGISTRY_RETRY_TIMES),
		.cache = values.text[SPOKEI_KEY_REGISTRY_CACHE],
	};
	(void)fill_calls(ret, &values, &ret->calls);
}

static const char *find_text(const struct spokei_consumer_settings *settings,
			     struct spoke_span service, enum spokei_key key)
{
	const char *text = spoke_url_get(&settings->url, spokei_keys_name(key));

	if (text == NULL || *text == '\0')
		text = spokei_config_text(settings->keys.file.config, SPOKEI_IN_SERVICE, service,
					  key);
	return text ? text : "";
}

/* Finds version and group of another service: the URL's, else the file's. Valid until the next
 * reload. */
static void find_which(const struct spokei_consumer_settings *settings, struct spoke_span service,
		       const char **ret_version, const char **ret_group)
{
	*ret_version = find_text(settings, service, SPOKEI_KEY_VERSION);
	*ret_group = find_text(settings, service, SPOKEI_KEY_GROUP);
}

static int read_consumer(struct spoke_engine *engine, const struct spoke_consumer_options *options,
			 struct spokei_consumer_settings *ret)
{
	struct spokei_key_values values = { .of = { 0 } };
	int error = spokei_keys_read_code(engine, &values, SPOKEI_IN_CONSUMER, SPOKEI_AT_CONSUMER,
					  options);

	if (error == 0)
		error = spokei_keys_read_code(engine, &values, SPOKEI_IN_CONSUMER, SPOKEI_AT_TLS,
					      options->tls);
	if (error)
		return error;
	if ((options->policy && options->policy->next == NULL) ||
	    (options->balancer && options->balancer->pick == NULL)) {
		spokei_event(engine, SPOKE_EINVAL, "option policy or balancer: function missing");
		return SPOKE_EINVAL;
	}
	spokei_link_limits_init(&ret->limits);
	error = spokei_settings_begin(&ret->keys, engine, &values);
	if (error)
		return error;
	fill_consumer(options, ret);
	error = spokei_places_check(engine, &ret->url, ret->keeper.registry != NULL);
	if (error)
		return error;
	if (ret->keeper.registry && *ret->service == '\0') {
		spokei_event(engine, SPOKE_EINVAL,
			     "URL: with a registry it must name the service, e.g. "
			     "consumer://any/demo.EchoService");
		return SPOKE_EINVAL;
	}
	return SPOKE_OK;
}

int spokei_settings_consumer(struct spoke_engine *engine,
			     const struct spoke_consumer_options *options,
			     struct spoke_consumer *consumer, struct spokei_consumer_settings *ret)
{
	int error;

	*ret = (struct spokei_consumer_settings){ 0 };
	error = spokei_places_url(engine, options->url, &ret->url);
	if (error)
		return error;
	ret->service = spokei_places_service(&ret->url);
	ret->keys.kind = &kind;
	ret->keys.owner = consumer;
	ret->keys.structs = ret;
	ret->keys.file.config = options->config;
	ret->keys.provided = &ret->provided;
	ret->keys.service = ret->service;
	ret->keys.url = &ret->url;
	ret->keys.ruled = &ret->ruled;
	error = read_consumer(engine, options, ret);
	if (error)
		spokei_settings_consumer_fini(engine->env, ret);
	return error;
}

int spokei_settings_further(struct spoke_engine *engine,
			    const struct spokei_consumer_settings *settings,
			    const struct spoke_url *url)
{
	const char *service = spokei_places_service(url);
	struct spokei_key_values values;
	struct spokei_key_values first;
	int error;

	spokei_keys_preset(&values);
	spokei_keys_preset(&first);
	error = spokei_keys_read(engine, url, &values);
	if (error == 0)
		error = spokei_keys_read(engine, &settings->url, &first);
	for (unsigned i = 0; i < SPOKEI_KEYS && error == 0; i++) {
		if (values.from[i] == SPOKEI_FROM_DEFAULT || values.of[i] == first.of[i])
			continue;
		spokei_event(engine, SPOKE_EINVAL,
			     "URL: %s applies to the whole consumer; set it in the first URL",
			     spokei_keys_name((enum spokei_key)i));
		error = SPOKE_EINVAL;
	}
	if (error == 0 && *service && strcmp(service, settings->service) != 0) {
		spokei_event(engine, SPOKE_EINVAL,
			     "URL: names another service than the first URL; make another consumer "
			     "for it");
		error = SPOKE_EINVAL;
	}
	return error;
}

void spokei_settings_consumer_fini(const struct spoke_env *env,
				   struct spokei_consumer_settings *settings)
{
	spokei_settings_end(&settings->keys, env);
	spoke_url_fini(&settings->ruled);
	spoke_url_fini(&settings->provided);
	spoke_url_fini(&settings->url);
}

/* --- the methods of a consumer */

static const char *text_or(const char *text, const char *otherwise)
{
	return text ? text : otherwise;
}

/* Rejects a policy or a balancer that cannot be used. */
static int check_options(struct spoke_engine *engine, const struct spoke_method_options *options)
{
	const struct spoke_policy *policy = options->policy;
	const struct spoke_balancer *balancer = options->balancer;

	if ((policy == NULL || policy->next) && (balancer == NULL || balancer->pick))
		return SPOKE_OK;
	spokei_event(engine, SPOKE_EINVAL, "method: a %s without its function",
		     policy && policy->next == NULL ? "policy" : "balancer");
	return SPOKE_EINVAL;
}

/* Returns whether the connections may carry calls of this service: the file does not set other
 * tls.peers for it. */
static bool expects_peers(const struct spoke_consumer *consumer, const char *service)
{
	const struct spokei_consumer_settings *settings = consumer->settings;
	const struct spoke_span other = { service, strlen(service) };
	const char *asked = spokei_config_text(settings->keys.file.config, SPOKEI_IN_SERVICE, other,
					       SPOKEI_KEY_TLS_PEERS);
	const char *expected = spokei_settings_text(&settings->keys, SPOKEI_KEY_TLS_PEERS);

	if (consumer->tls == NULL || !consumer->peers_of_file || asked == NULL)
		return true;
	return expected && strcmp(asked, expected) == 0;
}

/* The names that providers have to bear are those of a connection. */
static int check_peers(const struct spoke_consumer *consumer, const char *service)
{
	if (service == NULL || *service == '\0' || expects_peers(consumer, service))
		return SPOKE_OK;
	spokei_event(consumer->engine, SPOKE_EINVAL,
		     "method: %s has tls.peers of its own; make a consumer whose URL names it",
		     service);
	return SPOKE_EINVAL;
}

/* Keeps what settings are made of: all but the texts, which are borrowed. */
static void keep_options(struct spoke_method *method, const struct spoke_method_options *options)
{
	method->said = *options;
	method->said.service = method->said.version = method->said.group = NULL;
	method->said.types = method->said.type_names = NULL;
	method->said.fallback = (struct spoke_value){ 0 };
}

static int add_method(struct spoke_consumer *consumer, const char *name,
		      const struct spoke_method_options *options, struct spoke_method **ret_method)
{
	static const struct spoke_method_options defaults;
	const struct spokei_consumer_settings *settings = consumer->settings;
	struct spokei_method_presets presets = {
		.service = settings->service,
		.version = settings->directory.version,
		.group = settings->directory.group,
		.advice = settings->needs_service
				  ? "write it into the URL, e.g. "
				    "dubbo://127.0.0.1:20880/demo.EchoService, or into the options"
				  : NULL,
	};
	struct spokei_method_name of;
	bool refused = false;
	int error = spokei_engine_check(consumer->engine);

	if (error)
		return error;
	if (name == NULL)
		return SPOKE_EINVAL;
	options = options ? options : &defaults;
	of.method = name;
	of.service = spokei_span(text_or(options->service, settings->service),
				 strlen(text_or(options->service, settings->service)));
	if (options->service && *options->service)
		find_which(settings, of.service, &presets.version, &presets.group);
	error = check_options(consumer->engine, options);
	if (error == 0)
		error = check_peers(consumer, options->service);
	if (error == 0)
		error = read_method(settings, &of, options, &presets.settings, &refused);
	if (error == 0)
		error = spokei_method_new(consumer->caller, name, options, &presets, ret_method);
	if (error)
		return error;
	if (refused)
		report_tickets(consumer->engine, &of);
	(*ret_method)->tickets_told = refused;
	keep_options(*ret_method, options);
	choose_balancer_state(consumer, *ret_method);
	return SPOKE_OK;
}

int spoke_consumer_method(struct spoke_consumer *consumer, const char *name,
			  const struct spoke_method_options *options,
			  struct spoke_method **ret_method)
{
	uint64_t begun = spokei_why_begin(consumer->engine);

	return spokei_why_end(consumer->engine, begun,
			      add_method(consumer, name, options, ret_method), "new method");
}
