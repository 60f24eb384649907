/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The struct of a provider, for the files of this folder. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_PROVIDER_PARTS_H
#define SPOKEI_CLUSTER_PROVIDER_PARTS_H

#include "cluster/config/config.h"
#include "core/base/pace.h"
#include "core/engine/members.h"
#include "core/engine/task.h"

#include <spoke/link.h>

struct spokei_access_control;
struct spokei_access_log;
struct spokei_caller;
struct spokei_dedupe;
struct spokei_filters;
struct spokei_link;
struct spokei_listen_group;
struct spokei_provider_settings;
struct spokei_registration;
struct spokei_routes;
struct spokei_service;
struct spokei_slab;
struct spokei_tls;

struct spoke_provider {
	struct spoke_engine *engine;
	struct spokei_member member; /* of the engine's members */
	struct spokei_link *link;    /* these ten lie in one block of memory with the provider */
	struct spokei_routes *services;
	struct spokei_filters *filters;
	struct spokei_caller *caller; /* of pushes */
	struct spokei_access_control
		*access;           /* its filter is one of the filters, if it is needed */
	struct spokei_slab *peers; /* by handle */
	struct spokei_dedupe *dedupe;
	struct spokei_registration *registration;
	struct spokei_provider_settings *settings;
	struct spokei_listen_group *listeners;
	struct spokei_tls *tls;               /* NULL: no address can ask for it */
	enum spokei_tls_mode tls_mode;        /* of addresses that do not say */
	struct spokei_access_log *access_log; /* one of the filters, or NULL */
	struct spokei_rules *next_rules;      /* while a reload prepares lists */
	bool warned;                          /* an event has reported an open address */
	bool told_plain;                      /* ... a plain one, although there is a certificate */
	struct spoke_request
		*spare; /* memory of a request that was answered, for the next; or NULL */
	spoke_link_changed_fn changed; /* may be NULL */
	void *changed_arg;
	struct spokei_bucket event_limit; /* of events about connections; there may be many */
	struct spoke_alarm grace; /* of a drain: the wait for the first bytes of new connections */
	struct spoke_alarm delay; /* until it is online for the first time: register.delay */
	bool offline;             /* it has stepped aside, or drains */
	bool draining;
	bool ended;
	bool freed; /* its memory is freed with the last connection */
	struct spokei_task finalise;
};

/* The mark of an address at which HTTP is served. */
#define SPOKEI_PROVIDER_HTTP 1u
/* ... where connections are TLS; ... or plain, as their first byte tells. */
#define SPOKEI_PROVIDER_TLS 2u
#define SPOKEI_PROVIDER_TLS_OR_PLAIN 4u
/* ... of a unix socket. */
#define SPOKEI_PROVIDER_UNIX 8u

/* --- provider.c */

/* Ends everything that the provider does. `finalise` runs after its last connection. */
void spokei_provider_end(struct spoke_provider *provider);

/* --- connections.c */

/* Makes the link and the listeners. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_provider_open(struct spoke_provider *provider);

/* --- listen.c */

/* Reports, once in the provider's life, that every host may call a service at one of its addresses.
 * Call it after a change of either. `added`: the only service that has changed; NULL: any may have.
 */
void spokei_provider_warn(struct spoke_provider *provider, const struct spokei_service *added);

#endif
