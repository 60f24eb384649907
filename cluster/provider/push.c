/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a provider to its consumers, and the names of those. */
#include "cluster/call/call.h"
#include "cluster/provider/provider.h"

/* --- peers */

int spokei_peer_add(struct spoke_provider *provider, struct spokei_conn *conn)
{
	struct spokei_peer *peer;
	void *cell;
	int error = spokei_slab_take(&provider->peers, &cell, &conn->handle);

	if (error)
		return error;
	peer = cell;
	peer->conn = conn;
	return SPOKE_OK;
}

void spokei_peer_drop(struct spoke_provider *provider, struct spokei_conn *conn)
{
	if (conn->handle)
		spokei_slab_give(&provider->peers, conn->handle);
	conn->handle = 0;
}

/* NULL: it is gone. One that is closed keeps its name until that is told. */
static struct spokei_conn *conn_of(const struct spoke_provider *provider, struct spoke_peer named)
{
	const struct spokei_peer *peer = spokei_slab_get(&provider->peers, named.handle);

	return peer ? peer->conn : NULL;
}

static bool can_take(const struct spokei_conn *conn)
{
	return conn->handle != 0 && conn->state == SPOKEI_CONN_OPEN && !conn->unwritable &&
	       !conn->readonly;
}

size_t spoke_provider_peers(const struct spoke_provider *provider, struct spoke_peer *peers,
			    size_t max)
{
	const struct spoke_list *conns = &provider->link.conns;
	size_t count = 0;

	for (struct spoke_list *node = conns->next; node != conns; node = node->next) {
		const struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);

		if (!can_take(conn))
			continue;
		if (count < max)
			peers[count].handle = conn->handle;
		count++;
	}
	return count;
}

void spokei_peer_look(const struct spokei_conn *conn, struct spoke_peer_info *ret_info)
{
	const struct spoke_env *env = conn->link->engine->env;

	*ret_info = (struct spoke_peer_info){
		.readonly = conn->readonly,
		.missed = conn->idle.misses,
		.in_flight = conn->serving_count,
		.heard_ns = spokei_conn_quiet_ns(conn),
	};
	env->net->print(env->ctx, &conn->peer, ret_info->name, sizeof(ret_info->name));
}

bool spoke_provider_peer(const struct spoke_provider *provider, struct spoke_peer peer,
			 struct spoke_peer_info *ret_info)
{
	const struct spokei_conn *conn = conn_of(provider, peer);

	if (conn == NULL)
		return false;
	spokei_peer_look(conn, ret_info);
	return true;
}

size_t spoke_peer_print(const struct spoke_provider *provider, struct spoke_peer peer, char *text,
			size_t size)
{
	const struct spoke_env *env = provider->engine->env;
	const struct spokei_conn *conn = conn_of(provider, peer);

	if (conn == NULL || size == 0)
		return 0;
	env->net->print(env->ctx, &conn->peer, text, size);
	return strlen(text);
}

/* --- pushes */

static struct spoke_provider *provider_of(const struct spoke_method *method)
{
	return spoke_container_of(method->caller, struct spoke_provider, caller);
}

int spoke_provider_method(struct spoke_provider *provider, const char *name,
			  const struct spoke_method_options *options,
			  struct spoke_method **ret_method)
{
	struct spokei_method_presets presets = {
		.service = "",
		.version = "",
		.group = "",
		.advice = "write it into the options",
		.settings.timeout_ns = SPOKEI_TIMEOUT_NS,
	};

	if (options && options->timeout_ns > SPOKEI_TIMEOUT_MAX_NS)
		return SPOKE_ERANGE;
	if (options && options->timeout_ns)
		presets.settings.timeout_ns = options->timeout_ns;

	return spokei_method_new(&provider->caller, name, options, &presets, ret_method);
}

static int prepare(struct spoke_method *method, struct spoke_span args,
		   const struct spoke_call_options *options)
{
	return method->caller->pushes ? spokei_call_prepare(method, args, options) : SPOKE_EINVAL;
}

static int begin(struct spoke_method *method, struct spokei_conn *conn, uint64_t timeout_ns,
		 struct spokei_call **ret_call)
{
	int error = spokei_call_begin(method, conn, timeout_ns, ret_call);

	if (error == SPOKE_OK)
		spokei_count(method->caller->engine, SPOKE_STAT_PUSHES);
	return error;
}

static int take_push(struct spoke_method *method, struct spoke_peer peer, struct spoke_span args,
		     const struct spoke_call_options *options, struct spokei_call **ret_call)
{
	int error = prepare(method, args, options);
	struct spokei_conn *conn;

	if (error)
		return error;
	conn = conn_of(provider_of(method), peer);
	if (conn == NULL)
		return SPOKE_EUNAVAILABLE;
	return begin(method, conn, options->timeout_ns, ret_call);
}

/* What spoke_call() has, and the peer. */
/* NOLINTNEXTLINE(readability-function-size) */
int spoke_push(struct spoke_method *method, struct spoke_peer peer, struct spoke_span args,
	       const struct spoke_call_options *options, spoke_call_done_fn done, void *arg,
	       struct spoke_call *ret_call)
{
	static const struct spoke_call_options defaults;
	struct spokei_call *call = NULL;
	int error = take_push(method, peer, args, options ? options : &defaults, &call);

	return spokei_call_taken(method, error, call, done, arg, ret_call);
}

/* Nothing here closes a connection, or calls anybody: the list stays as it is. */
static size_t push_to_all(struct spoke_method *method, uint64_t timeout_ns)
{
	struct spoke_list *conns = &method->caller->link->conns;
	size_t count = 0;

	for (struct spoke_list *node = conns->next; node != conns; node = node->next) {
		struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);
		struct spokei_call *call;

		if (!can_take(conn))
			continue;
		if (begin(method, conn, timeout_ns, &call)) {
			spokei_count(method->caller->engine, SPOKE_STAT_CALLS_REFUSED);
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
	size_t count;
	int error;

	if (options)
		with = *options;
	with.one_way = true;
	error = prepare(method, args, &with);
	if (error) {
		spokei_count(method->caller->engine, SPOKE_STAT_CALLS_REFUSED);
		return error;
	}
	count = push_to_all(method, with.timeout_ns);
	if (ret_count)
		*ret_count = count;
	return SPOKE_OK;
}

bool spoke_push_cancel(struct spoke_provider *provider, struct spoke_call push)
{
	return spokei_call_cancel(&provider->caller, push);
}
