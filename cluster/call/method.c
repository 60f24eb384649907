/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and frees methods, and looks up what their settings mean for calls. */
#include "cluster/call/method.h"

#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/retry.h"
#include "cluster/config/keys.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "core/text/option.h"
#include "core/value/builder.h"
#include "transport/codec/codec.h"
#include "transport/conn/link.h"

#include <spoke/filter.h>

/* --- settings, from the values of configuration keys */

#define PAUSE_CAP_NS UINT64_C(60000000000) /* longest pause of an exponential backoff */

void spokei_call_settings_fill(const struct spokei_key_values *values,
			       struct spokei_call_settings *ret)
{
	/* Of the names of the key; 0: auto. */
	static const uint8_t codecs[] = { 0, SPOKEI_CODEC_HESSIAN2, SPOKEI_CODEC_MSGPACK };

	spokei_keys_fill(values, 1u << SPOKEI_IN_METHOD, SPOKEI_AT_CALL, ret);
	ret->codec = codecs[values->of[SPOKEI_KEY_SERIALIZATION]];
}

uint64_t spokei_settings_deadline(const struct spokei_call_settings *settings,
				  const struct spoke_policy *policy, uint64_t timeout_ns)
{
	uint32_t retries = spokei_settings_retries(settings, policy);
	uint64_t pause_ns = settings->period_ns;
	uint64_t all_ns = spokei_later(pause_ns, timeout_ns);

	if (policy->repeats && settings->deadline_ns)
		return settings->deadline_ns;
	for (uint32_t i = 0; i < retries; i++) {
		/* Jitter may lengthen growing pauses by a fifth. */
		uint64_t longest_ns = settings->growing ? spokei_later(pause_ns, pause_ns / 5)
							: pause_ns;

		all_ns = spokei_later(all_ns, spokei_later(longest_ns, timeout_ns));
		if (settings->growing && pause_ns < PAUSE_CAP_NS)
			pause_ns = pause_ns / 5 * 8;
		if (settings->growing && pause_ns > PAUSE_CAP_NS &&
		    settings->period_ns < PAUSE_CAP_NS)
			pause_ns = PAUSE_CAP_NS;
	}
	return all_ns;
}

/* --- slow attempts: estimates a percentile of response times from one number */

#define PARTS 2000u /* a step is a percentage of this part of the estimate: at most 5% */

void spokei_hedge_note(struct spokei_hedge *hedge, uint64_t after, uint64_t took_ns)
{
	unsigned percent = spokei_option_percentile(after);
	uint64_t part = hedge->slow_ns / PARTS + 1;

	if (percent == 0)
		return;
	hedge->answers += hedge->answers < SPOKEI_HEDGE_LEAST;
	if (hedge->slow_ns == 0)
		hedge->slow_ns = took_ns;
	else if (took_ns > hedge->slow_ns)
		hedge->slow_ns = spokei_later(hedge->slow_ns, part * percent);
	else
		hedge->slow_ns -= hedge->slow_ns > part * (100 - percent) ? part * (100 - percent)
									  : hedge->slow_ns - 1;
}

uint64_t spokei_hedge_after(const struct spokei_hedge *hedge, uint64_t after)
{
	if (spokei_option_percentile(after) == 0)
		return after;
	if (hedge->answers < SPOKEI_HEDGE_LEAST)
		return 0;
	return hedge->slow_ns < SPOKEI_HEDGE_MIN_NS ? SPOKEI_HEDGE_MIN_NS : hedge->slow_ns;
}

#define TYPE_NAMES_MAX 256u

/* Copies a text to the end of the others. Returns the copy. */
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

/* Packs the names between commas as an array of strings. */
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
	struct spokei_figures *figures =
		spokei_figures_of(caller->engine, SPOKEI_FIGURES_CALLS,
				  spokei_span(texts->service, strlen(texts->service)),
				  spokei_span(texts->name, strlen(texts->name)));
	struct spoke_method *method = figures ? spokei_alloc(env, 1, size) : NULL;
	unsigned char *at;

	if (method == NULL)
		return SPOKE_ENOMEM;
	at = method->texts;
	method->caller = caller;
	method->figures = figures;
	method->size = size;
	method->request = (struct spokei_message){
		.kind = SPOKEI_REQUEST,
		.generic = generic,
	};
	method->service = put_text(&at, texts->service);
	method->request.service = method->service;
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
	method->any_version = strcmp(texts->version, "*") == 0;
	/* A group is any of a list, too. */
	method->any_group = strcmp(texts->group, "*") == 0 || strchr(texts->group, ',') != NULL;
	spokei_buffer_init(&method->which, env, SPOKEI_FRAME_MAX);
	spokei_buffer_init(&method->prefix.bytes, env, SPOKEI_FRAME_MAX);
	spokei_buffer_init(&method->extras.bytes, env, SPOKEI_FRAME_MAX);
	spokei_list_append(&caller->methods, &method->node);
	*ret_method = method;
	return SPOKE_OK;
}

static void free_method(struct spoke_method *method)
{
	const struct spoke_env *env = method->caller->engine->env;

	spokei_list_remove(&method->node);
	spokei_buffer_fini(&method->prefix.bytes);
	spokei_buffer_fini(&method->extras.bytes);
	spokei_buffer_fini(&method->which);
	spokei_balancer_state_fini(&method->own_balancer_state, env);
	spokei_free(env, method, 1, method->size);
}

void spokei_methods_free(struct spokei_caller *caller)
{
	while (!spokei_list_empty(&caller->methods))
		free_method(spoke_container_of(caller->methods.next, struct spoke_method, node));
}

/* --- beginning */

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
	int error = spokei_engine_check(caller->engine);

	if (error)
		return error;
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
	spokei_method_apply(*ret_method);
	return SPOKE_OK;
}

/* --- settings that change */

static bool is_in_flight(const struct spokei_slab *calls, const struct spokei_call *call)
{
	return spokei_slab_get(calls, call->handle) == call &&
	       !(call->retry && call->retry->ticket == SPOKEI_TICKET_HELD);
}

/* Applies the limits of a method. All calls in flight count, but tickets do not. */
static void apply_limits(struct spoke_method *method)
{
	const struct spokei_slab *calls = &method->caller->calls;
	bool was_set = method->limit.is_set;

	spokei_limit_change(&method->limit, method->settings.actives, method->settings.per_second);
	if (was_set || !method->limit.is_set)
		return;
	for (uint32_t i = 0; i < calls->used; i++) {
		struct spokei_call *call = spokei_slab_at(calls, i);

		if (call->method != method || call->limited || !is_in_flight(calls, call))
			continue;
		call->limited = true;
		method->limit.active++;
	}
}

void spokei_method_apply(struct spoke_method *method)
{
	const struct spokei_call_settings *settings = &method->settings;

	apply_limits(method);
	spokei_method_forget_peer(method); /* the serialization may have changed */
	if (settings->policy)
		spokei_figures_slow_after(method->figures, settings->slow_ns);
}

struct spoke_filter_call spokei_method_describe(const struct spoke_method *method)
{
	const struct spokei_message *request = &method->request;

	return (struct spoke_filter_call){
		.service = method->service,
		.version = request->version,
		.group = request->group,
		.method = request->method,
	};
}

uint64_t spokei_method_longest(const struct spoke_method *method,
			       const struct spoke_call_options *options)
{
	const struct spokei_call_settings *settings = &method->settings;
	const struct spoke_policy *policy = options->policy ? options->policy : settings->policy;
	uint64_t each_ns = options->timeout_ns ? options->timeout_ns : settings->timeout_ns;
	uint64_t attempts = 1;

	/* A call that becomes a ticket calls back after its first attempt. */
	if (!policy->repeats &&
	    (policy->attempts == SPOKE_ATTEMPTS_ANY || policy->attempts == SPOKE_ATTEMPTS_IN_TURN))
		attempts += spokei_settings_retries(settings, policy);
	return each_ns > UINT64_MAX / attempts ? UINT64_MAX : each_ns * attempts;
}
