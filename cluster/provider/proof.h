/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proof that a provider asks of its callers: a token, as the attachment "token" of each
 * request, and a signature, as with Dubbo; of the whole provider, or of a service by its own
 * settings. A filter checks them. Only "$token" and heartbeats need none. On the engine's thread.
 *
 * MessagePack-RPC has no attachments: a connection shows its token once, by the method "$token",
 * and it counts for all requests there.
 */
#ifndef SPOKEI_CLUSTER_PROVIDER_PROOF_H
#define SPOKEI_CLUSTER_PROVIDER_PROOF_H

#include "cluster/config/credentials.h"

#include <spoke/filter.h>

struct spoke_provider_options;
struct spokei_config_user;
struct spokei_conn;
struct spokei_message;
struct spokei_provider_settings;
struct spokei_service;

struct spokei_proof {
	struct spoke_filter filter; /* refuses requests without proof */
	const struct spokei_provider_settings *settings;
	const struct spokei_credentials *own; /* of the whole provider */
	struct spokei_credential_set set;     /* ... and those of services */
};

/* Reads the credentials of a provider, which sets set.changed, or leaves it NULL. `settings`:
 * borrowed for the proof's life. Returns 0, ENOMEM, or an error that the engine's newest
 * event explains; *ret_proof is to be freed in any case. */
SPOKE_MUST_USE int spokei_proof_new(struct spoke_engine *engine,
				    const struct spoke_provider_options *options,
				    const struct spokei_provider_settings *settings,
				    struct spokei_proof **ret_proof);
void spokei_proof_free(struct spokei_proof *proof);

/* Reads the credentials that the file has for a service of this name. *ret becomes
 * spokei_service.credentials: NULL if those of the provider count. Returns as new. */
SPOKE_MUST_USE int spokei_proof_add(struct spokei_proof *proof, const char *service,
				    const struct spokei_credentials **ret);

/* Returns the credentials that requests to a service need, with the token to publish: "": none. */
const struct spokei_credentials *spokei_proof_of(const struct spokei_proof *proof,
						 const struct spokei_service *service);

/* Returns whether these credentials ask for anything. */
bool spokei_proof_asks(const struct spokei_credentials *credentials);

/* Returns whether any may, now or after a reload. */
bool spokei_proof_may_ask(const struct spokei_proof *proof);

/* Withdraws the proof of a connection if its credentials are not valid any more. Returns whether
 * the connection may stay. */
bool spokei_proof_stands(const struct spokei_proof *proof, struct spokei_conn *conn);

/* Returns whether the peer may be told that something is not served. If not, the refusal counts,
 * and *ret_verdict has the answer, whose text is in `text`, SPOKEI_GATE_TEXT bytes. */
bool spokei_proof_lets_know(void *proof, struct spokei_conn *conn,
			    const struct spokei_message *message, char *text,
			    struct spoke_filter_verdict *ret_verdict);

/* Counts a request that cannot be read as one without proof: its sender has proven nothing. */
void spokei_proof_note_unread(const struct spokei_proof *proof, struct spokei_conn *conn);

#endif
