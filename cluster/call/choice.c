/* SPDX-License-Identifier: Apache-2.0 */
/* Picks the endpoint of an attempt among several. */
#include "cluster/call/call.h"

#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/endpoint.h"
#include "cluster/endpoints/routing.h"
#include "core/base/span.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <string.h>

#define ANY "*" /* version or group */

/* --- any version, any group */

static void ask_for_any(struct spoke_method *method)
{
	method->which_id = 0;
	if (method->any_version)
		method->request.version = spokei_span(ANY, strlen(ANY));
	if (method->any_group)
		method->request.group = spokei_span(ANY, strlen(ANY));
}

/* Has the requests of a method of any version or group ask for those of the endpoint. Returns 0 or
 * SPOKE_ENOMEM. */
static int follow_endpoint(struct spoke_method *method, const struct spokei_endpoint *endpoint)
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

/* --- rules and tags */

/* Reads a text of the attachments. */
static struct spoke_span find_text(struct spoke_value attachments, const char *key)
{
	struct spoke_span text = { NULL, 0 };
	struct spoke_value value;

	if (attachments.len > 0 && spoke_value_get(attachments, key, &value) == SPOKE_OK)
		(void)!spoke_value_str(value, &text);
	return text;
}

int spokei_call_view(const struct spoke_method *method, const struct spokei_call_args *args,
		     struct spokei_view **ret_view)
{
	const struct spokei_caller *caller = method->caller;
	struct spokei_route_call call = {
		.method = method->request.method,
		.args = args->values,
		.attachments = args->attachments,
	};
	struct spoke_span force = { NULL, 0 };

	*ret_view = NULL;
	if (!caller->directory->routes && caller->tag == NULL && args->attachments.len == 0)
		return SPOKE_OK;
	call.tag = find_text(args->attachments, SPOKEI_ROUTE_TAG_KEY);
	if (call.tag.len == 0 && caller->tag)
		call.tag = spokei_span_of(caller->tag);
	if (call.tag.len > 0)
		force = find_text(args->attachments, SPOKEI_ROUTE_FORCE_KEY);
	call.force_tag = force.len > 0 ? spokei_span_is(force, "true") : caller->tag_force;
	/* Where no provider has a tag, a call with one goes to any. */
	if (!caller->directory->routes && !(call.tag.len > 0 && call.force_tag))
		return SPOKE_OK;
	return spokei_routing_view(caller->directory, &call, ret_view);
}

/* --- endpoints */

/* Returns the bytes to hash without a hash key: the first argument's text, else its bytes. */
static struct spoke_span first_argument(const struct spokei_call_args *args)
{
	struct spoke_cursor cursor;
	struct spoke_value first;
	struct spoke_span text;

	if (spoke_values_check(args->values.data, args->values.len, &spokei_link_own_values,
			       &cursor, &(size_t){ 0 }) ||
	    !spoke_cursor_next(&cursor, &first))
		return spokei_span(NULL, 0);
	if (spoke_value_str(first, &text) == 0)
		return text;
	return spokei_span(first.data, first.len);
}

int spokei_call_pick_among(struct spoke_method *method, const struct spokei_call_args *args,
			   const struct spokei_tried *tried, struct spokei_endpoint **ret_endpoint,
			   struct spokei_conn **ret_conn)
{
	const struct spokei_caller *caller = method->caller;
	const struct spoke_balancer *balancer = method->balancer_state->balancer;
	struct spokei_ask ask = {
		.balancer_state = args->policy->in_order ? NULL : method->balancer_state,
		.key = args->key,
		.timeout_ns = method->settings.timeout_ns,
		.sticky = method->settings.sticky ? &method->sticky : NULL,
	};
	int error;

	if (tried) {
		ask.tried = tried->ids;
		ask.tried_count = tried->count;
	}
	if (SPOKEI_UNLIKELY(balancer && balancer->keyed) && args->key.len == 0)
		ask.key = first_argument(args);
	error = spokei_call_view(method, args, &ask.view);
	if (SPOKEI_UNLIKELY(error))
		return error;
	error = spokei_directory_pick(caller->directory, &ask, ret_endpoint, ret_conn);
	if (SPOKEI_UNLIKELY(error == SPOKE_ENOPROVIDER && caller->awaits_list))
		return SPOKE_EUNAVAILABLE; /* it is not known yet that there is no provider */
	if (error == SPOKE_OK && SPOKEI_UNLIKELY(method->any_version || method->any_group))
		error = follow_endpoint(method, *ret_endpoint);
	return error;
}

bool spokei_call_has_room_elsewhere(const struct spokei_caller *caller,
				    struct spokei_endpoint *endpoint)
{
	const struct spokei_link *link = caller->link;

	return link->pending_count < link->limits.pending_max &&
	       link->queued < link->limits.queued_max && spokei_directory_full(endpoint);
}
