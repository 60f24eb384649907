/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider, for those that show it. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_PROVIDER_PROVIDER_H
#define SPOKEI_CLUSTER_PROVIDER_PROVIDER_H

#include <spoke/provider.h>

struct spokei_conn;
struct spokei_journal;
struct spokei_link;
struct spokei_member;
struct spokei_provider_settings;
struct spokei_routes;
struct spokei_tls;

/* The kind of the engine's members that are providers: this very string. */
extern const char spokei_provider_kind[];

/* Returns the provider of a member of this kind. */
const struct spoke_provider *spokei_provider_of(struct spokei_member *member);

/* Valid until the engine runs. */
struct spokei_provider_view {
	const struct spokei_link *link; /* with its connections */
	const struct spokei_routes *services;
	size_t addresses; /* at which it listens; see spoke_provider_address() */
	size_t peers;     /* connections on which the peer has sent something */
	bool offline;     /* it has stepped aside, or drains */
	bool draining;
	const struct spokei_tls *tls; /* NULL: no address has it */
	const struct spokei_provider_settings *settings;
	size_t remembered; /* requests, for their repeats */
	size_t remembered_bytes;
	const struct spokei_journal *journal; /* of these; NULL: they end with the process */
};

/* Has it step aside, or come back. */
void spokei_provider_step(struct spokei_member *member, bool away);

struct spokei_provider_view spokei_provider_look(const struct spoke_provider *provider);

/* Describes a connection. */
void spokei_peer_look(const struct spokei_conn *conn, struct spoke_peer_info *ret_info);

#endif
