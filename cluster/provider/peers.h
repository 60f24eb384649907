/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The peers of a provider: its connections on which the peer has sent something, as users name
 * them. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_PROVIDER_PEERS_H
#define SPOKEI_CLUSTER_PROVIDER_PEERS_H

#include <spoke/link.h>

#include <stdbool.h>

struct spoke_peer_info;
struct spoke_provider;
struct spokei_conn;

struct spokei_peer {
	struct spokei_conn *conn;
};

/* Gives a connection its name. Returns 0, SPOKE_ELIMIT or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_peer_add(struct spoke_provider *provider, struct spokei_conn *conn);

/* Takes the name of a closed connection back, if it has one. */
void spokei_peer_drop(struct spoke_provider *provider, struct spokei_conn *conn);

/* Returns the connection of a name; NULL: it is gone. A closed connection keeps its name until its
 * end is reported. */
struct spokei_conn *spokei_peer_conn(const struct spoke_provider *provider,
				     struct spoke_peer named);

/* Returns whether a push can be sent on the connection. */
bool spokei_peer_ready(const struct spokei_conn *conn);

/* Describes a connection. */
void spokei_peer_look(const struct spokei_conn *conn, struct spoke_peer_info *ret_info);

#endif
