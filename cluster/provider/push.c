/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a provider to its consumers. */
#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/call/report.h"
#include "cluster/provider/parts.h"
#include "cluster/provider/peers.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "core/value/builder.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <spoke/provider.h>

/* The link hands requests to its provider, and pushes take the same link. */
static const struct spoke_provider *provider_of(const struct spoke_method *method)
{
	return method->caller->link->serve_arg;
}

int spoke_provider_method(struct spoke_provider *provider, const char *name,
			  const struct spoke_method_options *options,
			  struct spoke_method **ret_method)
{
	struct spokei_method_presets presets = {
		.service = "",
		.version = "",
		.group = "",
		.advice = "set it in the options",
		.settings.timeout_ns = SPOKEI_TIMEOUT_NS,
	};

	if (options && options->timeout_ns > SPOKEI_TIMEOUT_MAX_NS)
		return SPOKE_ERANGE;
	if (options && options->timeout_ns)
		presets.settings.timeout_ns = options->timeout_ns;

	return spokei_method_new(provider->caller, name, options, &presets, ret_method);
}

static int prepare(const struct spoke_method *method, struct spoke_span values,
		   const struct spoke_call_options *options, struct spokei_call_args *ret)
{
	if (!method->caller->pushes || options->lease.leases)
		return SPOKE_EINVAL;
	return spokei_call_prepare(method, values, options, ret);
}

static int begin(struct spoke_method *method, struct spokei_conn *conn,
		 const struct spokei_call_args *args, struct spokei_call **ret_call)
{
	int error;

	conn->profile_id = conn->asked_codec; /* the same as the consumer uses */
	error = spokei_call_begin(method, conn, args, ret_call);
	if (error == SPOKE_OK)
		spokei_count(method->caller->engine, SPOKE_STAT_PUSHES);
	return error;
}

static int take_push(struct spoke_method *method, struct spoke_peer peer, struct spoke_span values,
		     const struct spoke_call_options *options, struct spokei_call **ret_call)
{
	struct spokei_call_args args;
	int error = prepare(method, values, options, &args);
	struct spokei_conn *conn;

	if (error)
		return error;
	conn = spokei_peer_conn(provider_of(method), peer);
	if (conn == NULL)
		return SPOKE_EUNAVAILABLE;
	return begin(method, conn, &args, ret_call);
}

/* Has the parameters of spoke_call(), and the peer. */
/* NOLINTNEXTLINE(readability-function-size) */
int spoke_push(struct spoke_method *method, struct spoke_peer peer, struct spoke_span args,
	       const struct spoke_call_options *options, spoke_call_done_fn done, void *arg,
	       struct spoke_call *ret_call)
{
	static const struct spoke_call_options defaults;
	struct spokei_call *call = NULL;
	int error;

	options = options ? options : &defaults;
	error = take_push(method, peer, args, options, &call);
	if (error)
		return spokei_limits_refuse(method, error, args.len);
	return spokei_call_taken(call, done, arg, ret_call);
}

/* No callback is called meanwhile. A connection may be closed as it writes, and leaves the list. */
static size_t push_to_all(struct spoke_method *method, const struct spokei_call_args *args)
{
	struct spoke_list *conns = &method->caller->link->conns;
	size_t count = 0;

	for (struct spoke_list *node = conns->next; node != conns;) {
		struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);
		struct spokei_call *call;

		node = node->next;
		if (!spokei_peer_ready(conn))
			continue;
		if (begin(method, conn, args, &call)) {
			spokei_figures_count(method->figures, SPOKE_STAT_CALLS_REFUSED);
			continue;
		}
		call->done = NULL;
		count++;
	}
	return count;
}

int spoke_push_all(struct spoke_method *method, struct spoke_span args,
		   const struct spoke_call_options *options, size_t *ret_count)
{
	struct spoke_call_options with = { 0 };
	struct spokei_call_args prepared;
	size_t count;
	int error;

	if (options)
		with = *options;
	with.one_way = true;
	error = prepare(method, args, &with, &prepared);
	if (error)
		return spokei_limits_refuse(method, error, args.len);
	count = push_to_all(method, &prepared);
	if (ret_count)
		*ret_count = count;
	return SPOKE_OK;
}

int spoke_push_with(struct spoke_method *method, struct spoke_peer peer, struct spoke_args args,
		    spoke_call_done_fn done, void *arg)
{
	struct spokei_packed packed;
	int error = spokei_args_pack(method->caller->engine->env, args, &packed);

	if (error)
		error = spokei_limits_refuse(method, error, 0);
	else
		error = spoke_push(method, peer, packed.values, NULL, done, arg, NULL);
	spokei_packed_free(&packed);
	return error;
}

int spoke_push_all_with(struct spoke_method *method, struct spoke_args args, size_t *ret_count)
{
	struct spokei_packed packed;
	int error = spokei_args_pack(method->caller->engine->env, args, &packed);

	if (error)
		error = spokei_limits_refuse(method, error, 0);
	else
		error = spoke_push_all(method, packed.values, NULL, ret_count);
	spokei_packed_free(&packed);
	return error;
}

bool spoke_push_cancel(struct spoke_provider *provider, struct spoke_call push)
{
	return spokei_call_cancel(provider->caller, push);
}
