/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of a consumer: made from options, and renewed when settings change. */
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/consumer/parts.h"
#include "cluster/consumer/settings.h"
#include "core/engine/engine.h"

#include <spoke/consumer.h>

static const char *text_or(const char *text, const char *otherwise)
{
	return text ? text : otherwise;
}

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

void spokei_methods_inherit(struct spoke_consumer *consumer)
{
	struct spoke_list *methods = &consumer->caller->methods;

	for (struct spoke_list *node = methods->next; node != methods; node = node->next) {
		struct spoke_method *method = spoke_container_of(node, struct spoke_method, node);
		const struct spokei_method_name name = { method->service, method->name };

		/* The options passed this check before, and a provider's settings cannot fail. */
		(void)!spokei_settings_method(consumer->settings, &name, &method->said,
					      &method->settings);
		spokei_method_apply(method);
		choose_balancer_state(consumer, method);
	}
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

/* The names that providers have to bear are those of a connection. */
static int check_peers(const struct spoke_consumer *consumer, const char *service)
{
	if (service == NULL || *service == '\0' || spokei_consumer_expects(consumer, service))
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
		spokei_settings_which(settings, of.service, &presets.version, &presets.group);
	error = check_options(consumer->engine, options);
	if (error == 0)
		error = check_peers(consumer, options->service);
	if (error == 0)
		error = spokei_settings_method(settings, &of, options, &presets.settings);
	if (error == 0)
		error = spokei_method_new(consumer->caller, name, options, &presets, ret_method);
	if (error)
		return error;
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
