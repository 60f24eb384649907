/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The methods that a caller calls: made, freed, and changed with their settings. The part of their
 * requests that depends on the peer: the serialization, the encoded prefix, and the attachments
 * that its provider asks for.
 */
#include "cluster/call/method.h"

#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/retry.h"
#include "cluster/config/credentials.h"
#include "cluster/config/keys.h"
#include "cluster/endpoints/directory.h"
#include "cluster/filter/signature.h"
#include "cluster/route/router.h"
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "core/text/secret.h"
#include "core/value/builder.h"
#include "transport/codec/codec.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/connect/connector.h"

#include <string.h>

#define TYPE_NAMES_MAX 256u

void spokei_call_settings_fill(const struct spokei_key_values *values,
			       struct spokei_call_settings *ret)
{
	/* Of the names of the key; 0: auto. */
	static const uint8_t codecs[] = { 0, SPOKEI_CODEC_HESSIAN2, SPOKEI_CODEC_MSGPACK };

	spokei_keys_fill(values, 1u << SPOKEI_IN_METHOD, SPOKEI_AT_CALL, ret);
	ret->codec = codecs[values->of[SPOKEI_KEY_SERIALIZATION]];
	/* Providers of Dubbo mean each attempt. */
	if (ret->attempt_ns == 0 && (values->from[SPOKEI_KEY_TIMEOUT] == SPOKEI_FROM_PROVIDER ||
				     values->from[SPOKEI_KEY_TIMEOUT] == SPOKEI_FROM_RULE))
		ret->attempt_ns = SPOKEI_ATTEMPT_WHOLE;
	ret->bounded = spokei_settings_bound_one(ret);
}

/* --- life */

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
		spokei_figures_or_other(caller->engine, SPOKEI_FIGURES_CALLS,
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

/* Decides whether calls of a method that may be repeated bear an id. */
static void mark(struct spoke_method *method)
{
	const struct spokei_directory *directory = method->caller->directory;
	struct spokei_call_settings *settings = &method->settings;

	settings->marked = directory && settings->ids != SPOKEI_IDS_OFF &&
			   (settings->ids == SPOKEI_IDS_ON || directory->named);
	settings->bounded |= settings->marked;
}

void spokei_methods_mark(struct spokei_caller *caller)
{
	for (struct spoke_list *node = caller->methods.next; node != &caller->methods;
	     node = node->next)
		mark(spoke_container_of(node, struct spoke_method, node));
}

void spokei_method_apply(struct spoke_method *method)
{
	const struct spokei_call_settings *settings = &method->settings;

	mark(method);
	apply_limits(method);
	spokei_method_forget_peer(method); /* the serialization may have changed */
	if (settings->policy)
		spokei_figures_slow_after(method->figures, settings->slow_ns);
}

uint64_t spokei_method_longest(const struct spoke_method *method,
			       const struct spoke_call_options *options)
{
	return options->timeout_ns ? options->timeout_ns : method->settings.timeout_ns;
}

/* --- tokens on wires without attachments: a connection shows its token once, by the request
 * "$token", before all others. Its answer is not awaited, because requests are judged in their
 * order; a peer that refuses the token refuses the next request, too. */

#define TIMEOUT_NS UINT64_C(10000000000)
#define METHOD "$token"
#define AGAIN_NS UINT64_C(1000000000) /* after a refusal, until it is shown again */

/* A request in flight. */
struct showing {
	struct spokei_pending pending;
	struct spokei_conn *conn;
	const struct spoke_env *env;
};

/* A token that was not written is shown before the next request. One that was refused is shown
 * again after a while, because the peer may accept it by then. */
static void shown(struct spokei_pending *pending, const struct spokei_outcome *outcome)
{
	struct showing *showing = spoke_container_of(pending, struct showing, pending);
	struct spokei_conn *conn = showing->conn;

	/* It was not counted, and was just counted out. */
	conn->link->pending_count++;
	if (!outcome->written)
		conn->showed = 0;
	else if (outcome->error)
		conn->show_again_ns = spokei_later(conn->stream.engine->begin_ns, AGAIN_NS);
	spokei_free(showing->env, showing, 1, sizeof(*showing));
}

/* The request does not count as a call that waits, because it would take the place of the call for
 * which it is sent. */
static int send_token(struct spokei_conn *conn, struct spoke_span service, struct spoke_span token)
{
	const struct spoke_env *env = conn->stream.engine->env;
	unsigned char bytes[SPOKEI_TOKEN_MAX + 8];
	struct spokei_message message = {
		.kind = SPOKEI_REQUEST,
		.two_way = true,
		.codec = conn->asked_codec,
		.service = service,
		.method = { METHOD, sizeof(METHOD) - 1 },
		.arg_count = 1,
	};
	struct spoke_builder builder;
	struct showing *showing;
	int error;

	spoke_builder_init_fixed(&builder, bytes, sizeof(bytes), NULL);
	spoke_pack_str(&builder, token.data, token.len);
	error = spoke_builder_finish(&builder, &message.args);
	if (error)
		return error;
	showing = spokei_alloc(env, 1, sizeof(*showing));
	if (showing == NULL)
		return SPOKE_ENOMEM;
	showing->conn = conn;
	showing->env = env;
	showing->pending.done = shown;
	showing->pending.timeout_ns = TIMEOUT_NS;
	error = spokei_conn_call(conn, &showing->pending, &message);
	if (error)
		spokei_free(env, showing, 1, sizeof(*showing));
	else
		conn->link->pending_count--;
	return error;
}

static bool is_due(const struct spokei_conn *conn)
{
	return conn->show_again_ns && conn->stream.engine->begin_ns >= conn->show_again_ns;
}

/* Has a connection show this token before its next request, unless it has. `service` is the one
 * that is called. Returns 0, or an error of spokei_conn_call(). */
static int show_token(struct spokei_conn *conn, struct spoke_span service, const char *token)
{
	struct spoke_span text = { token, strlen(token) };
	uint64_t print = spokei_token_print(text.data, text.len);
	int error;

	if (conn->showed == print && !is_due(conn))
		return SPOKE_OK;
	error = send_token(conn, service, text);
	if (error)
		return error;
	conn->showed = print;
	conn->show_again_ns = 0;
	return SPOKE_OK;
}

/* --- attachments */

#define APPLICATION "spoke" /* of a consumer without a name */
#define EXTRAS 9u /* attachments that a request may have in addition to those of its call */
#define NS_PER_MS UINT64_C(1000000)

struct extra {
	const char *key;
	struct spoke_span text; /* empty: none */
};

static struct spoke_span span_of(const char *text)
{
	return spokei_span(text, text ? strlen(text) : 0);
}

/* The texts of a signature, until the attachments are packed. */
struct signing {
	char time[SPOKEI_SIGNATURE_TIME + 1];
	char signature[SPOKEI_SIGNATURE];
};

/* Java's provider signs with its own URL, which has no version where the request says "0.0.0". */
static struct spoke_span version_of(const struct spokei_message *request)
{
	static const char none[] = "0.0.0";

	if (request->version.len == sizeof(none) - 1 &&
	    memcmp(request->version.data, none, sizeof(none) - 1) == 0)
		return spokei_span(NULL, 0);
	return request->version;
}

/* Signs a request as of now. Returns how many attachments that makes. */
static unsigned sign(const struct spoke_method *method, struct signing *signing,
		     struct extra *extras)
{
	const struct spokei_credentials *credentials = method->caller->credentials;
	const struct spoke_env *env = method->caller->engine->env;
	const struct spokei_message *request = &method->request;
	size_t len = spokei_signature_print_time(env->wall(env->ctx) / NS_PER_MS, signing->time);
	const struct spokei_signed of = {
		.service = method->service,
		.version = version_of(request),
		.group = request->group,
		.method = request->method,
		.time = spokei_span(signing->time, len),
	};

	spokei_signature_make(spokei_span(credentials->secret, credentials->secret_len), &of,
			      signing->signature);
	extras[0] = (struct extra){ SPOKEI_SIGNATURE_KEY_TIME, of.time };
	extras[1] = (struct extra){ SPOKEI_SIGNATURE_KEY_ID,
				    spokei_span(credentials->id, credentials->id_len) };
	extras[2] = (struct extra){
		SPOKEI_SIGNATURE_KEY_CONSUMER,
		span_of(method->caller->application ? method->caller->application : APPLICATION)
	};
	extras[3] = (struct extra){ SPOKEI_SIGNATURE_KEY,
				    spokei_span(signing->signature, SPOKEI_SIGNATURE) };
	return 4;
}

/* Returns the token to send: the consumer's own, else that of the provider's URL; NULL: none. */
static const char *token_for(const struct spokei_caller *caller, const struct spokei_conn *conn)
{
	if (caller->credentials && *caller->credentials->token)
		return caller->credentials->token;
	return conn->profile ? conn->profile->token : NULL;
}

/* Returns whether the token may be sent there: one that a provider publishes is known to many, but
 * a consumer's own must not be read on the way. Whether there is a network is known by the host of
 * the URL, because requests are put together before there is a connection. */
static bool may_send_token(struct spokei_caller *caller, const struct spokei_conn *conn)
{
	const struct spokei_connector_profile *profile = conn->profile;
	const struct spokei_credentials *credentials = caller->credentials;

	if (credentials == NULL || *credentials->token == '\0' || caller->token_plain ||
	    (profile && profile->near) || caller->link->stream->veiled ||
	    (profile && profile->token && strcmp(profile->token, credentials->token) == 0))
		return true;
	if (!caller->told_plain)
		spokei_event(caller->engine, SPOKE_EUNSUPPORTED,
			     "token: not sent over plain TCP to another machine; use TLS, or set "
			     "token.plain = true");
	caller->told_plain = true;
	return false;
}

/* Lists the attachments that the peer asks for. Returns how many there are. */
static unsigned list_extras(const struct spoke_method *method, const struct spokei_conn *conn,
			    struct signing *signing, struct extra extras[EXTRAS])
{
	const struct spokei_connector_profile *profile = conn->profile;
	const struct spokei_caller *caller = method->caller;
	const char *token = token_for(caller, conn);
	unsigned count = 0;

	if (!conn->wire->attachments)
		return 0;
	if (token)
		extras[count++] = (struct extra){ "token", span_of(token) };
	if (SPOKEI_UNLIKELY(caller->credentials && caller->credentials->signs))
		count += sign(method, signing, extras + count);
	if (profile && profile->path) {
		extras[count++] = (struct extra){ "path", span_of(profile->path) };
		extras[count++] = (struct extra){ "interface", method->service };
	}
	if (caller->tag)
		extras[count++] = (struct extra){ SPOKEI_ROUTE_TAG_KEY, span_of(caller->tag) };
	/* Java's providers log and count it. Other programs with spoke do not need it. */
	if (method->caller->application && method->request.codec == SPOKEI_CODEC_HESSIAN2)
		extras[count++] = (struct extra){ "remote.application",
						  span_of(method->caller->application) };
	return count;
}

/* Leaves out the attachments that the call sets itself. Returns how many remain. */
static unsigned leave_out(struct spoke_value attachments, struct extra *extras, unsigned count)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < count; i++) {
		struct spoke_value value;

		if (spoke_value_get(attachments, extras[i].key, &value) != SPOKE_OK)
			extras[kept++] = extras[i];
	}
	return kept;
}

/* Adds attachments to those of the request. */
static int attach(struct spoke_method *method, struct extra *extras, unsigned count)
{
	const struct spoke_value given = method->request.attachments;
	struct spokei_buffer *bytes = &method->extras.bytes;
	struct spoke_cursor pairs = { 0 };
	struct spoke_builder builder;
	struct spoke_span values;
	int error;

	method->extras.lasts = false;
	if (given.len > 0) {
		count = leave_out(given, extras, count);
		error = spoke_cursor_map(given, &pairs);
		if (error)
			return error;
	}
	spokei_buffer_truncate(bytes, 0);
	spokei_builder_init_buffer(&builder, bytes, NULL);
	spoke_pack_map(&builder, (size_t)pairs.left / 2 + count);
	spoke_pack_raw(&builder, spoke_cursor_rest(&pairs));
	for (unsigned i = 0; i < count; i++) {
		spoke_pack_text(&builder, extras[i].key);
		spoke_pack_str(&builder, extras[i].text.data, extras[i].text.len);
	}
	error = spoke_builder_finish(&builder, &values);
	spoke_builder_fini(&builder);
	method->extras.lasts = error == 0 && given.len == 0;
	return error;
}

/* --- serialization and prefix */

/* Returns the serialization of requests on a connection. */
static uint8_t codec_on(const struct spoke_method *method, const struct spokei_conn *conn)
{
	const struct spokei_wire_limits *limits = &method->caller->link->limits.wire;

	if (limits->codec)
		return limits->codec->id;
	if (method->settings.codec)
		return method->settings.codec;
	return conn->profile ? conn->profile->codec : (uint8_t)conn->profile_id;
}

static void make_prefix(struct spoke_method *method, const struct spokei_conn *conn)
{
	const struct spokei_connector_profile *profile = conn->profile;
	struct spokei_message *request = &method->request;
	struct spokei_prefix *prefix = &method->prefix;

	request->codec = codec_on(method, conn);
	request->service = method->service;
	if (profile && profile->path && conn->wire->attachments)
		request->service = span_of(profile->path);
	method->extras.lasts = false;
	spokei_buffer_truncate(&prefix->bytes, 0);
	prefix->wire = conn->wire;
	prefix->made_for = conn->profile_id;
	if (conn->wire->prefix(&method->caller->link->limits.wire, request, &prefix->bytes)) {
		spokei_buffer_truncate(&prefix->bytes, 0);
		prefix->wire = NULL;
	}
	spokei_buffer_fit(&prefix->bytes);
}

int spokei_method_turn_to(struct spoke_method *method, struct spokei_conn *conn)
{
	const struct spokei_buffer *bytes = &method->extras.bytes;
	struct spokei_prefix *prefix = &method->prefix;
	struct extra extras[EXTRAS];
	struct signing signing;
	bool signs = method->caller->credentials && method->caller->credentials->signs;
	const char *token = token_for(method->caller, conn);
	unsigned count;
	int error = SPOKE_OK;

	if (!may_send_token(method->caller, conn))
		return SPOKE_EUNSUPPORTED;
	if (prefix->wire != conn->wire || prefix->made_for != conn->profile_id)
		make_prefix(method, conn);
	if (SPOKEI_UNLIKELY(token && !conn->wire->attachments)) {
		prefix->profile = 0;
		return show_token(conn, method->request.service, token);
	}
	count = list_extras(method, conn, &signing, extras);
	prefix->profile = count == 0 ? conn->profile_id : 0;
	if (count == 0)
		return SPOKE_OK;
	if (!method->extras.lasts || method->request.attachments.len > 0 || signs)
		error = attach(method, extras, count);
	if (error)
		return error;
	method->request.attachments = (struct spoke_value){ spokei_buffer_data(bytes),
							    spokei_buffer_len(bytes) };
	return SPOKE_OK;
}
