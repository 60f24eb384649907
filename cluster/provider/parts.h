/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The struct of a provider, for the files of this folder. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_PROVIDER_PARTS_H
#define SPOKEI_CLUSTER_PROVIDER_PARTS_H

#include "cluster/config/config.h"
#include "core/base/pace.h"
#include "core/engine/roll.h"
#include "core/engine/task.h"

#include <spoke/link.h>

struct spoke_filter_verdict;
struct spoke_provider_options;
struct spokei_access_log;
struct spokei_caller;
struct spokei_callers;
struct spokei_conn;
struct spokei_filters;
struct spokei_link;
struct spokei_listen_group;
struct spokei_message;
struct spokei_proof;
struct spokei_provider_settings;
struct spokei_registration;
struct spokei_routes;
struct spokei_slab;
struct spokei_tls;

struct spoke_provider {
	struct spoke_engine *engine;
	struct spokei_member member; /* of the engine's roll */
	struct spokei_link *link;    /* these eight lie in one block of memory with the provider */
	struct spokei_routes *services;
	struct spokei_filters *filters;
	struct spokei_caller *caller; /* of pushes */
	struct spokei_slab *peers;    /* of struct spokei_peer, by handle */
	struct spokei_registration *registration;
	struct spokei_provider_settings *settings;
	struct spokei_listen_group *listeners;
	struct spokei_tls *tls;               /* NULL: no address can ask for it */
	enum spokei_tls_mode tls_mode;        /* of addresses that do not say */
	struct spokei_access_log *access_log; /* one of the filters, or NULL */
	struct spokei_proof *proof;           /* another one, if it may ask for something */
	struct spokei_callers *callers;       /* the list of callers; NULL: all are let in */
	struct spokei_rules *next_rules;      /* while a reload prepares lists */
	struct spokei_callers *next_callers;  /* ... also those of services wait there */
	uint64_t list_number;                 /* of the newest list of callers */
	bool warned;                          /* an event has reported an open address */
	bool told_plain;                      /* ... a plain one, although there is a certificate */
	struct spoke_request
		*spare; /* memory of a request that was answered, for the next; or NULL */
	spoke_link_changed_fn changed; /* may be NULL */
	void *changed_arg;
	struct spokei_bucket news; /* limits events about connections, because there may be many */
	struct spoke_alarm grace;  /* of a drain: the wait for the first bytes of new connections */
	/* Ends the provider, when it drains and the last connection has closed. */
	void (*end)(struct spoke_provider *provider);
	bool draining;
	bool ended;
	bool freed; /* its memory is freed with the last connection */
	struct spokei_task bury;
};

/* --- accept.c */

/* The mark of an address at which HTTP is served. */
#define SPOKEI_PROVIDER_HTTP 1u
/* ... where connections are TLS; ... or plain, as their first byte tells. */
#define SPOKEI_PROVIDER_TLS 2u
#define SPOKEI_PROVIDER_TLS_OR_PLAIN 4u
/* ... of a unix socket. */
#define SPOKEI_PROVIDER_UNIX 8u

/* Serves a connection that the listeners accepted. Is a spokei_accept. */
void spokei_provider_accept(void *arg, int fd, const struct spoke_address *peer, unsigned marks);

/* Is a spokei_make_room. */
bool spokei_provider_make_room(void *arg);

/* Serves a request. Is a spokei_serve_fn. */
void spokei_provider_serve(void *arg, struct spokei_conn *conn,
			   const struct spokei_message *message);

/* Returns whether a method is not safe, and the caller may know that; see struct spokei_link. */
bool spokei_provider_is_unsafe(void *provider, struct spokei_conn *conn,
			       const struct spokei_message *message);

/* Counts a request that cannot be read, of a peer that has proven nothing. */
void spokei_provider_unread(void *arg, struct spokei_conn *conn);

/* As link->refused. */
void spokei_provider_refused(void *arg, struct spokei_conn *conn,
			     const struct spokei_message *message, int error);

/* --- exposed.c */

/* Reports, once in the provider's life, that every host may call a service at one of its addresses.
 * Call it after a change of either. */
void spokei_provider_warn(struct spoke_provider *provider);

/* ... the service that was added last. */
void spokei_provider_warn_of_last(struct spoke_provider *provider);

/* --- events.c */

/* Reports a change of a connection on which the peer has sent something: as an event of the engine,
 * unless there were many in this second, and to the user's callback. May free anything. */
void spokei_provider_report(struct spoke_provider *provider, const struct spokei_conn *conn,
			    const struct spoke_link_event *event);

/* Makes the limit of such events. */
struct spokei_bucket spokei_provider_news(uint64_t now_ns);

/* --- settings.c */

/* Sets the bounds of peers that have proven nothing, if the provider asks for proof. */
void spokei_provider_bound_unproven(struct spoke_provider *provider);

/* Publishes and applies tokens and keys whose files have changed. `arg`: the provider. */
void spokei_provider_proof_changed(void *arg);

/* Sets the limits of methods whose handlers have none to those of the file, if there is one. */
void spokei_provider_limit(struct spoke_provider *provider);

/* --- secure.c */

/* Makes the TLS of the provider, if its options or the file ask for it. Returns 0, or an error that
 * an event has explained. */
SPOKE_MUST_USE int spokei_provider_secure(struct spoke_provider *provider,
					  const struct spoke_provider_options *options);

/* Returns whether a caller may learn which services there are; see struct spokei_routes. */
bool spokei_provider_lets_know(void *provider, struct spokei_conn *conn,
			       const struct spokei_message *message, char *text,
			       struct spoke_filter_verdict *ret_verdict);

#endif
