/* SPDX-License-Identifier: Apache-2.0 */
/* Methods: what all calls of one have in common, put together once. */
#include "cluster/consumer/parts.h"
#include "core/value/pack.h"
#include "transport/wire/codecs.h"

#include <spoke/consumer.h>

#define TYPE_NAMES_MAX 256u
#define ANY "*" /* version or group */

/* Copies a text behind the others; returns where it is. */
static struct spoke_span put_text(unsigned char **at, const char *text)
{
	struct spoke_span span = spokei_span(*at, strlen(text));

	for (; *text; text++)
		*(*at)++ = (unsigned char)*text;
	return span;
}

struct texts {
	const char *service;
	const char *version;
	const char *group;
	const char *name;
	const char *types;
	struct spoke_value type_names;
	size_t type_count;
	struct spoke_value fallback;
};

/* The names between the commas, as an array of texts. */
static int pack_type_names(struct spoke_builder *builder, const char *names, struct texts *texts)
{
	size_t count = *names != '\0';

	for (const char *at = names; *at; at++)
		count += *at == ',';
	if (count > TYPE_NAMES_MAX)
		return SPOKE_ETOOLARGE;
	texts->type_count = count;
	spoke_pack_array(builder, count);
	for (; count > 0; count--) {
		size_t len = strcspn(names, ",");

		spoke_pack_str(builder, names, len);
		names += len + 1;
	}
	return spoke_builder_finish_value(builder, &texts->type_names);
}

static int make_method(struct spokei_caller *caller, const struct texts *texts, bool generic,
		       struct spoke_method **ret_method)
{
	const struct spoke_env *env = caller->engine->env;
	size_t size = sizeof(struct spoke_method) + 1 + strlen(texts->service) +
		      strlen(texts->version) + strlen(texts->group) + strlen(texts->name) +
		      strlen(texts->types) + texts->type_names.len + texts->fallback.len;
	struct spoke_method *method = spokei_alloc(env, 1, size);
	unsigned char *at;

	if (method == NULL)
		return SPOKE_ENOMEM;
	at = method->texts;
	method->caller = caller;
	method->size = size;
	method->request = (struct spokei_message){
		.kind = SPOKEI_REQUEST,
		.codec = spokei_wire_codec_id(&caller->link->limits.wire),
		.generic = generic,
	};
	method->request.service = put_text(&at, texts->service);
	method->request.version = put_text(&at, texts->version);
	method->request.group = put_text(&at, texts->group);
	method->name = (const char *)at;
	method->request.method = put_text(&at, texts->name);
	*at++ = '\0';
	method->request.types = put_text(&at, texts->types);
	if (texts->type_names.len) {
		memcpy(at, texts->type_names.data, texts->type_names.len);
		method->type_count = texts->type_count;
		method->request.type_names = (struct spoke_value){ at, texts->type_names.len };
		at += texts->type_names.len;
	}
	if (texts->fallback.len) {
		memcpy(at, texts->fallback.data, texts->fallback.len);
		method->fallback = (struct spoke_value){ at, texts->fallback.len };
	}
	method->any_version = strcmp(texts->version, ANY) == 0;
	method->any_group = strcmp(texts->group, ANY) == 0;
	spokei_buffer_init(&method->which, env, SPOKEI_FRAME_MAX);
	spokei_buffer_init(&method->prefix.bytes, env, SPOKEI_FRAME_MAX);
	spokei_list_append(&caller->methods, &method->node);
	*ret_method = method;
	return SPOKE_OK;
}

static void say_any(struct spoke_method *method)
{
	method->which_id = 0;
	if (method->any_version)
		method->request.version = spokei_span(ANY, strlen(ANY));
	if (method->any_group)
		method->request.group = spokei_span(ANY, strlen(ANY));
}

int spokei_method_say(struct spoke_method *method, const struct spokei_endpoint *endpoint)
{
	size_t version_len = strlen(endpoint->version);
	size_t group_len = strlen(endpoint->group);
	const unsigned char *texts;
	int error;

	if (method->which_id == endpoint->id)
		return SPOKE_OK;
	say_any(method);
	method->prefix.wire = NULL;
	spokei_buffer_truncate(&method->which, 0);
	error = spokei_buffer_append(&method->which, endpoint->version, version_len);
	if (error == 0)
		error = spokei_buffer_append(&method->which, endpoint->group, group_len);
	if (error)
		return error;
	texts = spokei_buffer_data(&method->which);
	if (method->any_version)
		method->request.version = spokei_span(texts, version_len);
	if (method->any_group)
		method->request.group = spokei_span(texts + version_len, group_len);
	method->which_id = endpoint->id;
	return SPOKE_OK;
}

static bool is_too_long(const char *text)
{
	return strlen(text) >= SPOKEI_NAME_MAX;
}

static const char *text_or(const char *text, const char *otherwise)
{
	return text ? text : otherwise;
}

static int check_fallback(struct spoke_value value, struct spoke_value *ret)
{
	return value.len ? spoke_value_check(value.data, value.len, NULL, ret) : SPOKE_OK;
}

int spokei_method_new(struct spokei_caller *caller, const char *name,
		      const struct spoke_method_options *options,
		      const struct spokei_method_presets *presets, struct spoke_method **ret_method)
{
	static const struct spoke_method_options defaults;
	const struct spoke_method_options *with = options ? options : &defaults;
	struct spoke_builder builder;
	struct texts texts = { .name = name };
	int error = 0;

	if (spokei_engine_forked(caller->engine))
		return SPOKE_EFORKED;
	if (name == NULL || *name == '\0')
		return SPOKE_EINVAL;
	texts.service = text_or(with->service, presets->service);
	texts.version = text_or(with->version, presets->version);
	texts.group = text_or(with->group, presets->group);
	texts.types = text_or(with->types, "");
	if (is_too_long(name) || is_too_long(texts.service) || is_too_long(texts.version) ||
	    is_too_long(texts.group) || is_too_long(texts.types))
		return SPOKE_ETOOLARGE;
	if (presets->advice && *texts.service == '\0') {
		spokei_event(caller->engine, SPOKE_EINVAL, "method: no service; %s",
			     presets->advice);
		return SPOKE_EINVAL;
	}
	error = check_fallback(with->fallback, &texts.fallback);
	if (error)
		return error;
	spoke_builder_init(&builder, caller->engine->env, NULL);
	if (with->generic && with->type_names)
		error = pack_type_names(&builder, with->type_names, &texts);
	if (error == 0)
		error = make_method(caller, &texts, with->generic, ret_method);
	spoke_builder_fini(&builder);
	if (error)
		return error;
	(*ret_method)->settings = presets->settings;
	spokei_limit_init(&(*ret_method)->limit, presets->settings.actives,
			  presets->settings.per_second);
	return SPOKE_OK;
}

/* The consumer's balancer serves all methods that have no other. */
static void choose_balance(struct spoke_consumer *consumer, struct spoke_method *method)
{
	const struct spoke_balancer *balancer = method->settings.balancer;

	if (balancer == consumer->balancer_state.balancer) {
		method->balancer_state = &consumer->balancer_state;
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
	struct spoke_list *methods = &consumer->caller.methods;

	for (struct spoke_list *node = methods->next; node != methods; node = node->next) {
		struct spoke_method *method = spoke_container_of(node, struct spoke_method, node);
		const struct spokei_method_name name = { method->request.service, method->name };

		/* It was not refused as it was made, and what is provided cannot be. */
		(void)!spokei_settings_method(consumer->engine, &consumer->settings,
					      &consumer->provided, &name, &method->said,
					      &method->settings);
		spokei_caller_limit(method, method->settings.actives, method->settings.per_second);
		choose_balance(consumer, method);
	}
}

/* What the options of a method may not say. */
static int check_options(struct spoke_engine *engine, const struct spoke_method_options *options)
{
	const struct spoke_policy *policy = options->policy;
	const struct spoke_balancer *balancer = options->balancer;

	if ((policy == NULL || policy->next) && (balancer == NULL || balancer->pick))
		return SPOKE_OK;
	spokei_event(engine, SPOKE_EINVAL, "method: a %s without its functions",
		     policy && policy->next == NULL ? "policy" : "balancer");
	return SPOKE_EINVAL;
}

int spoke_consumer_method(struct spoke_consumer *consumer, const char *name,
			  const struct spoke_method_options *options,
			  struct spoke_method **ret_method)
{
	static const struct spoke_method_options defaults;
	const struct spokei_consumer_settings *settings = &consumer->settings;
	struct spokei_method_presets presets = {
		.service = settings->service,
		.version = settings->version,
		.group = settings->group,
		.advice = settings->needs_service
				  ? "write it into the URL, as "
				    "dubbo://127.0.0.1:20880/demo.EchoService, or into the options"
				  : NULL,
	};
	struct spokei_method_name of;
	int error;

	if (spokei_engine_forked(consumer->engine))
		return SPOKE_EFORKED;
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
		error = spokei_settings_method(consumer->engine, settings, &consumer->provided, &of,
					       options, &presets.settings);
	if (error == 0)
		error = spokei_method_new(&consumer->caller, name, options, &presets, ret_method);
	if (error)
		return error;
	(*ret_method)->said = (struct spoke_method_options){
		.timeout_ns = options->timeout_ns,
		.policy = options->policy,
		.balancer = options->balancer,
		.retries = options->retries,
		.idempotent = options->idempotent,
		.actives = options->actives,
		.per_second = options->per_second,
	};
	choose_balance(consumer, *ret_method);
	return SPOKE_OK;
}
