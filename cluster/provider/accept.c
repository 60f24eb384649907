/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of a provider: accepts them, serves their requests, and reports their changes. */
#include "cluster/provider/parts.h"
#include "transport/conn/link.h"

#include "cluster/provider/access_log.h"
#include "cluster/provider/peers.h"
#include "cluster/provider/proof.h"
#include "cluster/serve/request.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"
#include "transport/listen/group.h"
#include "transport/stream/tls/tls.h"

void spokei_provider_serve(void *arg, struct spokei_conn *conn,
			   const struct spokei_message *message)
{
	struct spoke_provider *provider = arg;

	spokei_request_serve(provider->services, provider->filters, conn, message,
			     &provider->spare);
}

/* Callers that have to prove something, or are on a list, learn nothing here: browsers ask without
 * credentials. */
bool spokei_provider_is_unsafe(void *arg, struct spokei_conn *conn,
			       const struct spokei_message *message)
{
	struct spoke_provider *provider = arg;

	return !conn->unproven && provider->callers == NULL &&
	       spokei_request_is_unsafe(provider->services, message);
}

void spokei_provider_unread(void *arg, struct spokei_conn *conn)
{
	const struct spoke_provider *provider = arg;

	spokei_proof_note_unread(provider->proof, conn);
}

void spokei_provider_refused(void *arg, struct spokei_conn *conn,
			     const struct spokei_message *message, int error)
{
	const struct spoke_provider *provider = arg;

	if (provider->access_log)
		spokei_access_log_refused(provider->access_log, conn, message, error);
}

static void conn_event(void *arg, struct spokei_conn *conn, enum spokei_link_event kind)
{
	struct spoke_link_event event = { .change = SPOKE_LINK_RECOVERED };

	switch (kind) {
	case SPOKEI_LINK_EVENT_ANSWERED:
		return;
	case SPOKEI_LINK_EVENT_HEARD:
		if (spokei_peer_add(arg, conn)) {
			spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
			return;
		}
		event.change = SPOKE_LINK_CONNECTED;
		/* The connection was accepted as the drain began. */
		if (((struct spoke_provider *)arg)->draining)
			spokei_conn_finish(conn);
		break;
	case SPOKEI_LINK_EVENT_MISSED:
		event.change = SPOKE_LINK_SUSPECT;
		event.user = SPOKE_EVENT_OF_HEARTBEAT;
		event.missed = conn->idle.misses;
		break;
	case SPOKEI_LINK_EVENT_READONLY:
		event.change = SPOKE_LINK_READONLY;
		break;
	case SPOKEI_LINK_EVENT_TRUSTED:
	case SPOKEI_LINK_EVENT_WRITABLE:
		if (spokei_conn_suspect(conn) || conn->readonly)
			return;
		if (kind == SPOKEI_LINK_EVENT_TRUSTED)
			event.user = SPOKE_EVENT_OF_HEARTBEAT;
		spokei_count(conn->link->engine, SPOKE_STAT_RECOVERED);
		break;
	}
	spokei_provider_report(arg, conn, &event);
}

static void conn_changed(void *arg, struct spokei_conn *conn, int error)
{
	struct spoke_provider *provider = arg;
	const struct spoke_link_event closed = {
		.change = SPOKE_LINK_CLOSED,
		.user = error == SPOKE_ESILENT ? SPOKE_EVENT_OF_HEARTBEAT : SPOKE_EVENT_OF_NONE,
		.error = error,
	};

	if (error == SPOKE_OK)
		return;
	if (!conn->left)
		spokei_listen_group_left(provider->listeners, conn->quota_peer);
	if (conn->handle)
		spokei_provider_report(provider, conn, &closed);
	spokei_peer_drop(provider, conn);
	if (provider->draining && spokei_list_empty(&provider->link->conns))
		provider->end(provider);
}

static const struct spokei_conn_up conn_up = {
	.changed = conn_changed,
	.event = conn_event,
};

static const struct spokei_stream_kind *stream_of(const struct spoke_provider *provider,
						  unsigned marks)
{
	if (marks & SPOKEI_LISTENER_SHM)
		return &spokei_stream_shm;
	if (provider->tls == NULL)
		return NULL;
	if (marks & SPOKEI_PROVIDER_TLS_OR_PLAIN)
		return spokei_tls_or_plain(provider->tls);
	return marks & SPOKEI_PROVIDER_TLS ? spokei_tls_kind(provider->tls) : NULL;
}

void spokei_provider_accept(void *arg, int fd, const struct spoke_address *peer, unsigned marks)
{
	struct spoke_provider *provider = arg;
	struct spokei_quota_peer *quota_peer = spokei_listen_group_peer(provider->listeners, peer);
	struct spokei_conn *conn;

	const struct spokei_arrival arrival = {
		.fd = fd,
		.peer = peer,
		.http = marks & SPOKEI_PROVIDER_HTTP,
		.stream = stream_of(provider, marks),
		.local = marks & SPOKEI_PROVIDER_UNIX,
		.quota_peer = quota_peer,
	};

	/* A provider that has joined shares the address, but has no certificate: it never speaks
	 * plain bytes there. */
	if (marks & (SPOKEI_PROVIDER_TLS | SPOKEI_PROVIDER_TLS_OR_PLAIN) && provider->tls == NULL) {
		provider->engine->env->net->close(provider->engine->env->ctx, fd);
		spokei_count(provider->engine, SPOKE_STAT_CLOSED);
		spokei_count(provider->engine, SPOKE_STAT_CLOSED_HANDSHAKE);
		spokei_listen_group_left(provider->listeners, quota_peer);
		return;
	}
	if (spokei_conn_accept(provider->link, &arrival, &conn_up, provider, &conn)) {
		/* The listener has counted the connection as accepted. */
		spokei_count(provider->engine, SPOKE_STAT_CLOSED);
		spokei_count(provider->engine, SPOKE_STAT_CLOSED_MEMORY);
		spokei_listen_group_left(provider->listeners, quota_peer);
	}
}

bool spokei_provider_make_room(void *arg)
{
	struct spoke_provider *provider = arg;
	struct spokei_conn *conn = spokei_link_make_room(provider->link);

	if (conn == NULL)
		return false;
	conn->left = true;
	spokei_listen_group_left(provider->listeners, conn->quota_peer);
	return true;
}
