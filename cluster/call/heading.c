/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a method's requests that depends on their peer: the serialization, the encoded
 * prefix, version and group of the endpoint, and the attachments that its provider asks for.
 */
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/endpoints/endpoint.h"
#include "core/value/builder.h"
#include "transport/codec/codec.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#define ANY "*"   /* version or group */
#define EXTRAS 4u /* attachments that a request may have in addition to those of its call */

/* --- attachments */

struct extra {
	const char *key;
	struct spoke_span text; /* empty: none */
};

static struct spoke_span span_of(const char *text)
{
	return spokei_span(text, text ? strlen(text) : 0);
}

/* Lists the attachments that the peer asks for. Returns how many there are. */
static unsigned list_extras(const struct spoke_method *method, const struct spokei_conn *conn,
			    struct extra extras[EXTRAS])
{
	const struct spokei_connector_profile *profile = conn->profile;
	unsigned count = 0;

	if (!conn->wire->attachments)
		return 0;
	if (profile && profile->token)
		extras[count++] = (struct extra){ "token", span_of(profile->token) };
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

int spokei_method_turn_to(struct spoke_method *method, const struct spokei_conn *conn)
{
	const struct spokei_buffer *bytes = &method->extras.bytes;
	struct spokei_prefix *prefix = &method->prefix;
	struct extra extras[EXTRAS];
	unsigned count;
	int error = SPOKE_OK;

	if (prefix->wire != conn->wire || prefix->made_for != conn->profile_id)
		make_prefix(method, conn);
	count = list_extras(method, conn, extras);
	prefix->profile = count == 0 ? conn->profile_id : 0;
	if (count == 0)
		return SPOKE_OK;
	if (!method->extras.lasts || method->request.attachments.len > 0)
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
