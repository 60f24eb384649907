/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access control of a provider: lists of callers that are let in, and the credentials that it asks
 * for: a token, as the attachment "token" of each request, and a signature, as with Dubbo. Each is
 * of the whole provider, or of a service by its own settings; the list of a service can only narrow
 * that of the provider. A filter checks requests; a connection remembers the result of a list. Only
 * "$token" and heartbeats need no credentials. On the engine's thread.
 *
 * MessagePack-RPC has no attachments: a connection shows its token once, by the method "$token",
 * and it counts for all requests there.
 */
#ifndef SPOKEI_CLUSTER_SERVE_ACCESS_CONTROL_H
#define SPOKEI_CLUSTER_SERVE_ACCESS_CONTROL_H

#include "cluster/config/credentials.h"

#include <spoke/filter.h>
#include <spoke/stats.h>

struct spokei_callers;
struct spokei_conn;
struct spokei_filters;
struct spokei_message;
struct spokei_routes;
struct spokei_service;
struct spokei_settings;

struct spokei_access_control {
	struct spoke_filter filter; /* refuses requests */
	const struct spokei_settings *settings;
	const struct spokei_credentials *own; /* of the whole provider */
	struct spokei_credential_set set;     /* ... and those of services */
	struct spokei_callers *callers;       /* the provider's list; NULL: all are let in */
	struct spokei_callers *next_callers;  /* prepared by a reload; else NULL */
	uint64_t list_number;                 /* of the newest list */
};

/* Reads the list and the credentials of a provider, and puts the filter before the others if it is
 * needed, now or after a reload. `access` is all zero, and must not be moved. `settings`: the
 * provider's, borrowed. `token`: of its options, or NULL. Returns 0, ENOMEM, or an error that the
 * engine's newest event explains. Undo with fini, also after an error. */
SPOKE_MUST_USE int spokei_access_init(struct spokei_access_control *access,
				      struct spoke_engine *engine,
				      const struct spokei_settings *settings, const char *token,
				      struct spokei_filters *filters);
void spokei_access_fini(struct spokei_access_control *access);

/* Reads the list and the credentials that the file has for a service of this name; each is NULL if
 * there are none. The list is the caller's, to become spokei_service.callers. Returns as init. */
SPOKE_MUST_USE int spokei_access_read(struct spokei_access_control *access, const char *name,
				      struct spokei_callers **ret_callers,
				      const struct spokei_credentials **ret_credentials);

/* Reads all lists of a reloaded file, for replace(). Returns 0, SPOKE_ENOMEM, or SPOKE_EINVAL with
 * the reason in `why`. */
SPOKE_MUST_USE int spokei_access_prepare(struct spokei_access_control *access,
					 const struct spokei_routes *services,
					 char why[SPOKE_EVENT_TEXT]);

/* Uses or drops the lists that prepare() has read. */
void spokei_access_replace(struct spokei_access_control *access,
			   const struct spokei_routes *services, bool takes);

/* Returns the credentials that requests to a service need, with the token to publish: "": none. */
const struct spokei_credentials *spokei_access_of(const struct spokei_access_control *access,
						  const struct spokei_service *service);

/* Returns whether these credentials ask for anything. */
bool spokei_access_asks(const struct spokei_credentials *credentials);

/* Withdraws the proof of a connection if its credentials are not valid any more. Returns whether
 * the connection may stay. */
bool spokei_access_stands(const struct spokei_access_control *access, struct spokei_conn *conn);

/* Returns whether the peer may be told that something is not served. If not, the refusal counts,
 * and *ret_verdict has the answer, whose text is in `text`, SPOKEI_REFUSAL_TEXT bytes. */
bool spokei_access_lets_know(const struct spokei_access_control *access, struct spokei_conn *conn,
			     const struct spokei_message *message, char *text,
			     struct spoke_filter_verdict *ret_verdict);

/* Counts a request that cannot be read as one without proof: its sender has proven nothing. */
void spokei_access_note_unread(const struct spokei_access_control *access,
			       struct spokei_conn *conn);

#endif
