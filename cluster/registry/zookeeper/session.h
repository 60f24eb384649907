/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a ZooKeeper session: resolves names on a pool thread, because the library would block the
 * loop; then makes a handle, and a new one after the session has expired. While no server
 * answers, names are resolved again, because servers move. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_SESSION_H
#define SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_SESSION_H

#include "cluster/registry/zookeeper/handle.h"
#include "cluster/registry/zookeeper/names.h"
#include "core/engine/task.h"

#include <spoke/engine.h>

struct spokei_zoo_session {
	struct spoke_engine *engine;
	struct spokei_zoo_settings settings;
	struct spokei_zoo_handle *handle; /* NULL: names are not resolved yet */
	/* There is a new connection. NULL: the session has been ended. */
	void (*connected)(void *arg);
	/* The session has expired, and its nodes are gone; a new one begins after this. */
	void (*expired)(void *arg);
	void *arg;
	struct spoke_alarm again;  /* next resolution */
	struct spoke_alarm silent; /* since the last connection, or the first attempt */
	uint32_t failures;
	bool resolving;    /* resolved() will be called */
	bool is_connected; /* last known state */
	uint64_t connects; /* last known number of connects */
	int found_count;   /* or a negative errno */
	struct spoke_address found[SPOKEI_ZOO_PLACES_MAX];
	struct spokei_task bury;
};

/* Reads the URL of a registry, and begins a session; calls nothing back. Returns 0, or an error
 * that the engine's newest event explains. The user sets the three callback fields. */
SPOKE_MUST_USE int spokei_zoo_session_new(struct spoke_engine *engine, const struct spoke_url *url,
					  struct spokei_zoo_session **ret_session);

/* Ends the session. Its memory is freed when its last work has returned. */
void spokei_zoo_session_end(struct spokei_zoo_session *session);

/* Returns the handle if it is connected, else NULL. */
static inline struct spokei_zoo_handle *spokei_zoo_session_handle(
	const struct spokei_zoo_session *session)
{
	return session->handle && spokei_zoo_handle_connected(session->handle) ? session->handle
									       : NULL;
}

#endif
