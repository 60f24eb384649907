/* SPDX-License-Identifier: Apache-2.0 */
/* The peers of a provider: the names of its connections, and their properties for users. */
#include "cluster/provider/peers.h"
#include "transport/conn/link.h"

#include "cluster/provider/parts.h"
#include "core/engine/engine.h"
#include "core/memory/slab.h"
#include "transport/conn/conn.h"

#include <spoke/provider.h>

int spokei_peer_add(struct spoke_provider *provider, struct spokei_conn *conn)
{
	struct spokei_peer *peer;
	void *cell;
	int error = spokei_slab_take(provider->peers, &cell, &conn->handle);

	if (error)
		return error;
	peer = cell;
	peer->conn = conn;
	return SPOKE_OK;
}

void spokei_peer_drop(struct spoke_provider *provider, struct spokei_conn *conn)
{
	if (conn->handle)
		spokei_slab_give(provider->peers, conn->handle);
	conn->handle = 0;
}

struct spokei_conn *spokei_peer_conn(const struct spoke_provider *provider, struct spoke_peer named)
{
	const struct spokei_peer *peer = spokei_slab_get(provider->peers, named.handle);

	return peer ? peer->conn : NULL;
}

bool spokei_peer_ready(const struct spokei_conn *conn)
{
	return conn->handle != 0 && conn->state == SPOKEI_CONN_OPEN &&
	       !spokei_conn_unwritable(conn) && !conn->readonly && !conn->unproven;
}

size_t spoke_provider_connections(const struct spoke_provider *provider)
{
	return provider->link->conn_count;
}

size_t spoke_provider_peers(const struct spoke_provider *provider, struct spoke_peer *peers,
			    size_t max)
{
	const struct spoke_list *conns = &provider->link->conns;
	size_t count = 0;

	for (struct spoke_list *node = conns->next; node != conns; node = node->next) {
		const struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);

		if (!spokei_peer_ready(conn))
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
		.tls = spokei_stream_look(&conn->stream, NULL),
	};
	env->net->print(env->ctx, &conn->peer, ret_info->name, sizeof(ret_info->name));
}

bool spoke_provider_peer(const struct spoke_provider *provider, struct spoke_peer peer,
			 struct spoke_peer_info *ret_info)
{
	const struct spokei_conn *conn = spokei_peer_conn(provider, peer);

	if (conn == NULL)
		return false;
	spokei_engine_refresh(provider->engine);
	spokei_peer_look(conn, ret_info);
	return true;
}

size_t spoke_peer_print(const struct spoke_provider *provider, struct spoke_peer peer, char *text,
			size_t size)
{
	const struct spoke_env *env = provider->engine->env;
	const struct spokei_conn *conn = spokei_peer_conn(provider, peer);

	if (conn == NULL || size == 0)
		return 0;
	env->net->print(env->ctx, &conn->peer, text, size);
	return strlen(text);
}
