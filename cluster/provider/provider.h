/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider inside: where it listens, what it serves, whom it serves. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_PROVIDER_PROVIDER_H
#define SPOKEI_CLUSTER_PROVIDER_PROVIDER_H

#include "cluster/call/caller.h"
#include "cluster/config/places.h"
#include "cluster/filter/filter.h"
#include "cluster/provider/registration.h"
#include "cluster/provider/settings.h"
#include "cluster/serve/routes.h"
#include "core/engine/roll.h"
#include "transport/conn/conn.h"
#include "transport/listen/handoff.h"
#include "transport/listen/listener.h"

#define SPOKEI_LISTENERS_MAX 64u

struct spokei_access_log;

/* Where others may listen with a provider. They read it on their threads: places are only added,
 * and what is below `count` stays as it is. */
struct spokei_shared_places {
	_Atomic(size_t) count;
	struct spokei_listen_place at[SPOKEI_LISTENERS_MAX];
};

/* What a provider has to do with those on other engines that listen with it. */
struct spokei_handoffs {
	_Atomic(struct spokei_desk *) desk; /* where they reach it; NULL: they never did */
	_Atomic(struct spokei_shared_places *) places; /* NULL: none is shared */
	struct spoke_list all;                         /* who takes connections from here */
	unsigned handoff_count;
	unsigned turn;                  /* whose the next connection is; 0: its own */
	struct spokei_handoff *handoff; /* by which it takes them itself, or NULL */
	bool joined;
	_Atomic(bool) over; /* it listens nowhere any more: there is nothing to join */
};

struct spoke_provider {
	struct spoke_engine *engine;
	struct spokei_link link;
	struct spokei_member member; /* of the engine's roll */
	struct spokei_quota quota;
	struct spokei_routes services;
	struct spokei_filters filters;
	struct spokei_access_log *access_log; /* one of them, or NULL */
	struct spokei_caller caller;          /* of pushes */
	struct spokei_slab peers;             /* of struct spokei_peer, by handle */
	/* Those of its own, and behind them those where it has joined. */
	struct spokei_listener *listeners[SPOKEI_LISTENERS_MAX];
	size_t listener_count; /* of its own, which are published */
	size_t joined_count;
	struct spokei_handoffs handoffs;
	struct spokei_registration registration;
	struct spokei_config_user file;
	struct spokei_provider_settings settings;
	char *default_service; /* NULL: none */
	size_t default_size;
	struct spoke_request *spare;   /* memory of one that was answered, for the next; or NULL */
	spoke_link_changed_fn changed; /* may be NULL */
	void *changed_arg;
	struct spokei_bucket news; /* events of connections: a provider may have very many */
	struct spoke_alarm grace;  /* of a drain, for those who have said nothing yet */
	bool draining;
	bool ended;
	bool freed; /* gone when the last connection is */
	struct spokei_task bury;
};

/* How many listeners it has. */
static inline size_t spokei_provider_places(const struct spoke_provider *provider)
{
	return provider->listener_count + provider->joined_count;
}

/* The kind of the engine's members that are providers: this very string. */
extern const char spokei_provider_kind[];

/* The file says something else now. */
void spokei_provider_changed(struct spokei_config_user *user);

/*
 * Something has become of a connection that has spoken: an event of the engine's, unless there were
 * many in this second, and the callback. May free anything.
 */
void spokei_provider_tell(struct spoke_provider *provider, const struct spokei_conn *conn,
			  const struct spoke_link_event *event);

/* How many such events there may be. */
struct spokei_bucket spokei_provider_news(uint64_t now_ns);

/* A connection to be served, counted into the crowd. */
void spokei_provider_accept(void *arg, int fd, const struct spoke_address *peer);

/* Listens, and puts the listener behind those there are. */
SPOKE_MUST_USE int spokei_provider_open(struct spoke_provider *provider,
					const struct spokei_listen_place *place);

/* --- with others (provider_join.c) */

/* Memory for one more place that is shared. */
SPOKE_MUST_USE int spokei_handoffs_prepare(struct spoke_provider *provider);

/* It listens there now, by its newest listener, and others may join. */
void spokei_handoffs_share(struct spoke_provider *provider,
			   const struct spokei_listen_place *place);

/* Takes what was handed to it, and will be handed nothing more. */
void spokei_handoffs_part(struct spoke_provider *provider);

/* There is room for more connections than before, or for fewer. */
void spokei_handoffs_look(struct spoke_provider *provider);

/* Ends all of that; false: another thread is there for a moment still, so try again. */
SPOKE_MUST_USE bool spokei_handoffs_fini(struct spoke_provider *provider);

/* The limits of methods, where a handler has none of its own, are those of the file. */
void spokei_provider_limit(struct spoke_provider *provider);

/* A connection that has spoken, as users name it. */
struct spokei_peer {
	struct spokei_conn *conn;
};

/* What is known of a connection now. */
void spokei_peer_look(const struct spokei_conn *conn, struct spoke_peer_info *ret_info);

/* A connection gets its name. Returns 0, SPOKE_ELIMIT or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_peer_add(struct spoke_provider *provider, struct spokei_conn *conn);

/* It is closed; one without a name is fine. */
void spokei_peer_drop(struct spoke_provider *provider, struct spokei_conn *conn);

#endif
