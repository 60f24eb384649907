/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a method's requests that depends on their peer: the serialization, the encoded
 * prefix, version and group of the endpoint, and the attachments that its provider asks for.
 */
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/config/credentials.h"
#include "cluster/endpoints/endpoint.h"
#include "cluster/filter/signature.h"
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "core/text/secret.h"
#include "core/value/builder.h"
#include "transport/codec/codec.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

/* --- tokens on wires without attachments: a connection shows its token once, by the request
 * "$token", before all others. Its answer is not awaited, because requests are judged in their
 * order; a peer that refuses the token refuses the next request, too. */

#define TIMEOUT_NS UINT64_C(10000000000)
#define METHOD "$token"
#define SHOWN_MAX 3u /* times that it is shown again on one connection */

/* A request in flight. */
struct showing {
	struct spokei_pending pending;
	struct spokei_conn *conn;
	const struct spoke_env *env;
};

/* A token that was not written, or was refused, is shown before the next request: the peer may
 * accept it by then. A peer that knows no tokens is not asked for ever. */
static void shown(struct spokei_pending *pending, const struct spokei_outcome *outcome)
{
	struct showing *showing = spoke_container_of(pending, struct showing, pending);

	if (!outcome->written || (outcome->error && showing->conn->unshown++ < SHOWN_MAX))
		showing->conn->showed = 0;
	spokei_free(showing->env, showing, 1, sizeof(*showing));
}

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
	return error;
}

/* Has a connection show this token before its next request, unless it has. `service` is the one
 * that is called. Returns 0, or an error of spokei_conn_call(). */
static int show_token(struct spokei_conn *conn, struct spoke_span service, const char *token)
{
	struct spoke_span text = { token, strlen(token) };
	uint64_t print = spokei_token_print(text.data, text.len);
	int error;

	if (conn->showed == print)
		return SPOKE_OK;
	error = send_token(conn, service, text);
	if (error == SPOKE_OK)
		conn->showed = print;
	return error;
}

#define ANY "*"             /* version or group */
#define APPLICATION "spoke" /* of a consumer without a name */
#define EXTRAS 8u /* attachments that a request may have in addition to those of its call */
#define NS_PER_MS UINT64_C(1000000)

/* --- attachments */

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

/* --- any version, any group */

static void ask_for_any(struct spoke_method *method)
{
	method->which_id = 0;
	if (method->any_version)
		method->request.version = spokei_span(ANY, strlen(ANY));
	if (method->any_group)
		method->request.group = spokei_span(ANY, strlen(ANY));
}

int spokei_method_follow(struct spoke_method *method, const struct spokei_endpoint *endpoint)
{
	size_t version_len = strlen(endpoint->version);
	size_t group_len = strlen(endpoint->group);
	const unsigned char *texts;
	int error;

	if (method->which_id == endpoint->id)
		return SPOKE_OK;
	ask_for_any(method);
	spokei_method_forget_peer(method);
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
