/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the directory for the endpoint of an attempt, on behalf of a method and its policy. */
#include "cluster/call/pick.h"

#include "cluster/call/args.h"
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/endpoints/directory.h"
#include "transport/conn/link.h"

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

/* A method of any version or group asks for those of the endpoint. */
static inline int follow(struct spoke_method *method, const struct spokei_endpoint *endpoint)
{
	if (SPOKEI_LIKELY(!method->any_version && !method->any_group))
		return SPOKE_OK;
	return spokei_method_follow(method, endpoint);
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
	error = spokei_directory_pick(caller->directory, &ask, ret_endpoint, ret_conn);
	if (SPOKEI_LIKELY(error == SPOKE_OK))
		return follow(method, *ret_endpoint);
	/* Without a list it is not known yet that there is no provider. */
	return error == SPOKE_ENOPROVIDER && caller->awaits_list ? SPOKE_EUNAVAILABLE : error;
}

int spokei_call_pick(struct spoke_method *method, const struct spokei_call_args *args,
		     const struct spokei_tried *tried, struct spokei_endpoint **ret_endpoint,
		     struct spokei_conn **ret_conn)
{
	struct spokei_endpoint *sole = spokei_directory_sole(method->caller->directory, ret_conn);

	if (SPOKEI_UNLIKELY(sole == NULL))
		return spokei_call_pick_among(method, args, tried, ret_endpoint, ret_conn);
	*ret_endpoint = sole;
	method->sticky = sole->id;
	return follow(method, sole);
}

bool spokei_call_has_room_elsewhere(const struct spokei_caller *caller,
				    struct spokei_endpoint *endpoint)
{
	const struct spokei_link *link = caller->link;

	return link->pending_count < link->limits.pending_max &&
	       link->queued < link->limits.queued_max && spokei_directory_full(endpoint);
}
